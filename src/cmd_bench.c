/* cmd_bench.c - `holorun bench`: how fast, beside the limit that bounds it.
 *
 * Every figure is a median of several runs in one process (the minimum stands beside it), on this
 * machine, now; limits are measured in the same run: the fastest matrix product that stays in the
 * cache, and how fast memory can be read.  What a figure is compared with is named in its row:
 * "of peak" for arithmetic, "of memory" for what must stream weights.
 *
 * Sections: peak, kernels (operations at the shapes of the embedded model and of Holotron-12B), and with a
 * model: vision (tiles changed or known), prefill, decode (at several contexts), session (checkpoint,
 * rewind), drift (bf16 against f32).
 */
#include "commands.h"

#include "base/clock.h"
#include "base/pool.h"
#include "model/find.h"
#include "model/model.h"
#include "ops/ops.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *model, *isa;
    int threads, repeat;
    const char *section;
    bool json;
};

static const struct option_spec options[] = {
    MODEL_OPTIONS(struct settings),
    {"section", 's', OPTION_TEXT, offsetof(struct settings, section), "NAME", 0, 32, "all",
     "peak, kernels, vision, prefill, decode, session, drift or all", NULL},
    {"repeat", 'r', OPTION_INT, offsetof(struct settings, repeat), "N", 1, 1000, "5", "runs of each figure",
     NULL},
    {"json", 0, OPTION_FLAG, offsetof(struct settings, json), .help = "one JSON object a line on stdout"},
    {0},
};

const struct command bench_command = {"bench",
                                      "",
                                      "measure speed against this machine's own limits",
                                      NULL,
                                      "holorun bench\nholorun bench --section decode --threads 1 --json\n",
                                      options,
                                      cmd_bench};

/* ---- measuring ---------------------------------------------------------------------------------- */

struct bench {
    struct settings s;
    struct pool *pool;
    struct backend *b;
    double peak[2], memory; /* GFLOP/s in f32 and bf16, GB/s */
};

struct timing {
    double median, least; /* ms */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One warm-up, then `repeat` timed calls. */
static struct timing measure(const struct bench *k, void (*fn)(void *), void *arg)
{
    double ms[1000] = {0};
    int n = k->s.repeat;
    fn(arg);
    for (int i = 0; i < n; i++) {
        int64_t start = clock_ns();
        fn(arg);
        ms[i] = clock_ms_since(start);
    }
    qsort(ms, (size_t)n, sizeof *ms, by_value);
    return (struct timing){ms[n / 2], ms[0]};
}

/* One row: what, how long, a rate with its unit, and the fraction of a limit (0: none). */
static void row(const struct bench *k, const char *section, const char *name, struct timing t, double rate,
                const char *unit, double fraction, const char *limit)
{
    if (k->s.json) {
        printf("{\"section\": \"%s\", \"name\": \"%s\", \"median_ms\": %.4f, \"min_ms\": %.4f, \"rate\": "
               "%.3f, \"unit\": \"%s\"",
               section, name, t.median, t.least, rate, unit);
        if (fraction > 0)
            printf(", \"fraction\": %.4f, \"of\": \"%s\"", fraction, limit);
        printf(", \"isa\": \"%s\", \"threads\": %d}\n", k->b->ops->name, pool_threads(k->pool));
    } else {
        printf("%-8s %-44s %9.3f %9.3f %10.1f %-7s", section, name, t.median, t.least, rate, unit);
        if (fraction > 0)
            printf(" %5.1f %% of %s", 100 * fraction, limit);
        putchar('\n');
    }
    fflush(stdout);
}

static bool wants(const struct bench *k, const char *section)
{
    return !strcmp(k->s.section, "all") || !strcmp(k->s.section, section);
}

/* ---- peak and kernels ------------------------------------------------------------------------------ */

struct product {
    struct backend *b;
    struct tensor x, y, bias;
    struct weight *w;
    int times;
};

static void run_product(void *arg)
{
    struct product *p = arg;
    for (int i = 0; i < p->times; i++)
        p->b->ops->linear(p->b, p->y, p->x, p->w, p->bias, EPI_NONE, 0);
}

static struct timing time_product(const struct bench *k, enum dtype act, int T, int N, int K, int times)
{
    struct backend *b = k->b;
    struct tensor host = b->ops->alloc(b, DT_F32, N, K);
    for (int64_t i = 0; i < (int64_t)N * K; i++)
        ((float *)host.data)[i] = (float)(i % 17 - 8) * 0.01f;
    struct product p = {b,   b->ops->alloc(b, act, T, K), b->ops->alloc(b, act, T, N),
                        {0}, b->ops->pack(b, host, act),  times};
    b->ops->copy(b, tensor_rows(p.x, 0, T < N ? T : N), tensor_rows(host, 0, T < N ? T : N));
    struct timing t = measure(k, run_product, &p);
    b->ops->unpack_free(b, p.w);
    b->ops->free(b, &p.x);
    b->ops->free(b, &p.y);
    b->ops->free(b, &host);
    return (struct timing){t.median / times, t.least / times};
}

struct reading {
    struct pool *pool;
    const uint64_t *data;
    int64_t words;
    uint64_t sums[256];
};

static void read_range(void *arg, int64_t begin, int64_t end, int thread)
{
    struct reading *r = arg;
    uint64_t lane[8] = {0};
    for (int64_t i = begin; i + 8 <= end; i += 8)
        for (int j = 0; j < 8; j++)
            lane[j] += r->data[i + j];
    for (int j = 0; j < 8; j++)
        r->sums[thread] += lane[j];
}

static void run_reading(void *arg)
{
    struct reading *r = arg;
    pool_for(r->pool, r->words, 1 << 16, read_range, r);
}

static void section_peak(struct bench *k)
{
    static const char *const names[2] = {"matrix product in the cache, f32",
                                         "matrix product in the cache, bf16"};
    for (int i = 0; i < 2; i++) {
        int T = 384, N = 128, K = 256;
        struct timing t = time_product(k, i ? DT_BF16 : DT_F32, T, N, K, 50);
        k->peak[i] = 2.0 * T * N * K / t.least * 1e-6;
        if (wants(k, "peak"))
            row(k, "peak", names[i], t, k->peak[i], "GFLOP/s", 0, "");
    }
    size_t bytes = (size_t)256 << 20;
    struct reading r = {.pool = k->pool, .data = xcalloc(bytes, 1), .words = (int64_t)(bytes / 8)};
    memset((void *)(uintptr_t)r.data, 1, bytes);
    struct timing t = measure(k, run_reading, &r);
    k->memory = (double)bytes / t.least * 1e-6;
    if (wants(k, "peak"))
        row(k, "peak", "reading 256 MiB of memory", t, k->memory, "GB/s", 0, "");
    free((void *)(uintptr_t)r.data);
}

static void section_kernels(struct bench *k)
{
    static const struct {
        const char *name;
        int T, N, K;
    } shapes[] = {
        {"embedded: ViT qkv, one tile", 1028, 384, 128},
        {"embedded: Mamba in_proj, 258 tokens", 258, 1288, 256},
        {"embedded: MLP up, 258 tokens", 258, 768, 256},
        {"embedded: MLP up, 1 token", 1, 768, 256},
        {"Holotron: ViT fc1, one tile", 1040, 5120, 1280},
        {"Holotron: Mamba in_proj, 256 tokens", 256, 22656, 5120},
        {"Holotron: Mamba in_proj, 1 token", 1, 22656, 5120},
        {"Holotron: MLP down, 1 token", 1, 5120, 20480},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double flop = 2.0 * shapes[i].T * shapes[i].N * shapes[i].K, bytes = 2.0 * shapes[i].N * shapes[i].K;
        bool small = flop < 1e7, stream = shapes[i].T == 1 && bytes > 64e6;
        struct timing t = time_product(k, DT_BF16, shapes[i].T, shapes[i].N, shapes[i].K, small ? 100 : 1);
        if (stream)
            row(k, "kernels", shapes[i].name, t, bytes / t.median * 1e-6, "GB/s",
                bytes / t.median * 1e-6 / k->memory, "memory");
        else
            row(k, "kernels", shapes[i].name, t, flop / t.median * 1e-6, "GFLOP/s",
                flop / t.median * 1e-6 / k->peak[1], "peak");
    }
}

/* ---- with a model ------------------------------------------------------------------------------------ */

struct subject {
    struct engine *g;
    struct session *s;
    struct checkpoint *start;
    struct image im;
    int32_t *ids;
    int64_t n;
    int frame;
};

static void die_on(int rc, const struct err *e)
{
    if (rc)
        die(e->kind, "%s", e->text);
}

static void run_prefill(void *arg)
{
    struct subject *m = arg;
    struct err e = ERR_INIT;
    die_on(session_rewind(m->s, m->start, &e), &e);
    die_on(session_append(m->s, m->ids, m->n, &e), &e);
}

static void run_decode(void *arg)
{
    struct subject *m = arg;
    struct err e = ERR_INIT;
    for (int i = 0; i < 16; i++)
        die_on(session_append(m->s, m->ids + i, 1, &e), &e);
}

static void run_same_image(void *arg)
{
    struct subject *m = arg;
    struct err e = ERR_INIT;
    die_on(session_rewind(m->s, m->start, &e), &e);
    die_on(session_append_image(m->s, &m->im, &e), &e);
}

/* Changes one pixel of every 16th row, so that no tile was seen before. */
static void run_new_image(void *arg)
{
    struct subject *m = arg;
    m->frame++;
    for (int y = 0; y < m->im.h; y += 16)
        m->im.rgb[((size_t)y * (size_t)m->im.w + (size_t)(m->frame % m->im.w)) * 3] ^= 0xff;
    run_same_image(m);
}

static void run_checkpoint(void *arg)
{
    struct subject *m = arg;
    checkpoint_free(session_checkpoint(m->s));
}

static void run_rewind(void *arg)
{
    struct subject *m = arg;
    struct err e = ERR_INIT;
    die_on(session_rewind(m->s, m->start, &e), &e);
}

static void section_vision(const struct bench *k, struct subject *m)
{
    int cols, rows, tokens = engine_image_tokens(m->g, m->im.w, m->im.h, &cols, &rows);
    char name[80];
    struct timing t = measure(k, run_new_image, m);
    snprintf(name, sizeof name, "new %dx%d screenshot, %d tokens", m->im.w, m->im.h, tokens);
    row(k, "vision", name, t, 1000 / t.median, "shots/s", 0, "");
    t = measure(k, run_same_image, m);
    row(k, "vision", "the same screenshot again (tiles known)", t, 1000 / t.median, "shots/s", 0, "");
}

static void section_prefill(const struct bench *k, struct subject *m)
{
    static const int lengths[] = {64, 256, 512, 1024};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char name[80];
        m->n = lengths[i];
        struct timing t = measure(k, run_prefill, m);
        snprintf(name, sizeof name, "%d tokens", lengths[i]);
        row(k, "prefill", name, t, lengths[i] / t.median * 1000, "tok/s", 0, "");
    }
}

static void section_decode(const struct bench *k, struct subject *m)
{
    static const int contexts[] = {512, 4096};
    struct err e = ERR_INIT;
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        char name[80];
        die_on(session_rewind(m->s, m->start, &e), &e);
        while (session_length(m->s) < contexts[i])
            die_on(session_append(m->s, m->ids, 256, &e), &e);
        struct timing t = measure(k, run_decode, m);
        snprintf(name, sizeof name, "one token after %d", contexts[i]);
        row(k, "decode", name, (struct timing){t.median / 16, t.least / 16}, 16000 / t.median, "tok/s", 0,
            "");
    }
}

static void section_session(const struct bench *k, struct subject *m)
{
    run_prefill(m);
    struct timing t = measure(k, run_checkpoint, m);
    row(k, "session", "checkpoint", t, 1000 / t.median, "per s", 0, "");
    t = measure(k, run_rewind, m);
    row(k, "session", "rewind", t, 1000 / t.median, "per s", 0, "");
}

/* Kullback-Leibler divergence of the next-token distribution in bf16 from that in f32. */
static double divergence(const float *p, const float *q, int n)
{
    double mp = -INFINITY, mq = -INFINITY, sp = 0, sq = 0, kl = 0;
    for (int i = 0; i < n; i++) {
        mp = fmax(mp, p[i]);
        mq = fmax(mq, q[i]);
    }
    for (int i = 0; i < n; i++) {
        sp += exp(p[i] - mp);
        sq += exp(q[i] - mq);
    }
    for (int i = 0; i < n; i++) {
        double lp = p[i] - mp - log(sp), lq = q[i] - mq - log(sq);
        kl += exp(lp) * (lp - lq);
    }
    return kl;
}

static void section_drift(const struct bench *k, struct subject *m, const char *dir)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = dir, .isa = k->s.isa, .threads = k->s.threads, .f32 = true};
    struct engine *exact = engine_open(&o, &e);
    if (!exact)
        die(e.kind, "%s", e.text);
    struct session *a = session_new(m->g, 1), *b = session_new(exact, 1);
    double sum = 0, most = 0;
    enum { STEPS = 256 };
    int64_t start = clock_ns();
    for (int i = 0; i < STEPS; i++) {
        die_on(session_append(a, m->ids + i, 1, &e), &e);
        die_on(session_append(b, m->ids + i, 1, &e), &e);
        double kl = divergence(session_logits(b), session_logits(a), engine_vocab(exact));
        sum += kl;
        most = fmax(most, kl);
    }
    struct timing t = {clock_ms_since(start) / STEPS, clock_ms_since(start) / STEPS};
    row(k, "drift", "bf16 from f32, mean KL over 256 tokens (1e-6)", t, sum / STEPS * 1e6, "nat", 0, "");
    row(k, "drift", "bf16 from f32, largest KL (1e-6)", t, most * 1e6, "nat", 0, "");
    session_free(a);
    session_free(b);
    engine_close(exact);
}

static int with_model(const struct bench *k, struct err *e)
{
    char *dir = model_find(k->s.model, e);
    struct engine_options o = {.dir = dir, .isa = k->s.isa, .threads = k->s.threads};
    struct subject m = {.g = dir ? engine_open(&o, e) : NULL};
    if (!m.g || image_alloc(&m.im, 640, 480, e)) {
        engine_close(m.g);
        free(dir);
        return -1;
    }
    m.n = 1024;
    m.ids = xcalloc((size_t)m.n, sizeof *m.ids);
    for (int64_t i = 0; i < m.n; i++) /* text tokens below the image token */
        m.ids[i] = 32 + (int32_t)(i * 7 % 200);
    m.s = session_new(m.g, 1);
    int rc = session_append(m.s, m.ids, 4, e);
    m.start = session_checkpoint(m.s);
    if (rc == 0 && wants(k, "vision"))
        section_vision(k, &m);
    if (rc == 0 && wants(k, "prefill"))
        section_prefill(k, &m);
    if (rc == 0 && wants(k, "decode"))
        section_decode(k, &m);
    if (rc == 0 && wants(k, "session"))
        section_session(k, &m);
    if (rc == 0 && wants(k, "drift"))
        section_drift(k, &m, dir);
    checkpoint_free(m.start);
    session_free(m.s);
    image_free(&m.im);
    engine_close(m.g);
    free(m.ids);
    free(dir);
    return rc;
}

/* ---- the command ------------------------------------------------------------------------------------- */

static bool known(const char *section)
{
    static const char *const names[] = {"all",     "peak",   "kernels", "vision",
                                        "prefill", "decode", "session", "drift"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], section))
            return true;
    return false;
}

int cmd_bench(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct bench k = {0};
    int n = options_parse(&bench_command, &k.s, argc, argv, &e);
    if (n == OPTIONS_HELP)
        return 0;
    if (n > 0)
        n = err_set(&e, ERR_USAGE, "bench takes no argument '%s'", argv[0]);
    if (n == 0 && !known(k.s.section))
        n = err_set(&e, ERR_USAGE, "there is no section '%s'", k.s.section);
    if (n < 0)
        return options_refuse(&bench_command, &e);
    k.pool = pool_new(k.s.threads);
    k.b = backend_cpu(k.s.isa, k.pool, &e);
    int rc = k.b ? 0 : -1;
    if (rc == 0) {
        if (!k.s.json)
            printf("%s, %d threads\n%-8s %-44s %9s %9s %10s\n", k.b->ops->name, pool_threads(k.pool),
                   "section", "", "median ms", "min ms", "rate");
        if (wants(&k, "peak") || wants(&k, "kernels"))
            section_peak(&k);
        if (wants(&k, "kernels"))
            section_kernels(&k);
        if (strcmp(k.s.section, "peak") != 0 && strcmp(k.s.section, "kernels") != 0)
            rc = with_model(&k, &e);
    }
    backend_free(k.b);
    pool_free(k.pool);
    if (rc) {
        fprintf(stderr, "holorun: %s\n", e.text);
        return e.kind;
    }
    return 0;
}
