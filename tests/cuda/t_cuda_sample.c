/* t_cuda_sample.c - tests of sampling on the device and on the host against the definition.
 *
 * The definition sorts all candidates and adds integers; log-probabilities are compared with a softmax in
 * f64. The sampled token and its log-probabilities must be bit-identical on device and host.
 */
#include "lab.h"
#include "tiny_check.h"

#include "emu/emu.h"
#include "ops/sampling.h"
#include "session/generate.h"
#include "session/session_impl.h"
#include "src/ops/cuda.h"

#include <float.h>
#include <math.h>

static bool chance(double p)
{
    return check_random(&lab_random) < p;
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { MOST_IDS = 9000, MOST_ROWS = 140, WORDS = MOST_IDS / 64 + 1 };

struct rows {
    int n, ids, stride;
    float logits[MOST_ROWS * MOST_IDS];
    uint64_t known[WORDS], allowed[MOST_ROWS][WORDS];
    struct sampler how[MOST_ROWS];
};

static void random_set(uint64_t *set, int ids)
{
    double dense = chance(0.3) ? 1 : chance(0.5) ? 0.02 : check_random(&lab_random);
    memset(set, 0, WORDS * sizeof *set);
    if (chance(0.2))
        dense = 0; /* a single id */
    for (int i = 0; i < WORDS * 64; i++)
        if (chance(dense))
            set[i / 64] |= 1ull << (i % 64);
    int one = lab_between(0, ids - 1);
    set[one / 64] |= 1ull << (one % 64);
}

static void random_logits(float *x, int n)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 3e38f, -3e38f, 1e-42f};
    int kind = lab_between(0, 6);
    double wide = pow(10, check_random(&lab_random) * 4 - 1);
    for (int i = 0; i < n; i++) {
        double u = check_random(&lab_random) * 2 - 1;
        x[i] = (float)(kind == 0   ? 1.25         /* all equal */
                       : kind == 1 ? floor(u * 4) /* many ties */
                       : kind == 2 ? u * u * u * wide
                       : kind == 3 ? (chance(0.5) ? -0.0 : 0.0)
                                   : u * wide);
    }
    if (kind == 4) /* some infinities, NaN or extreme values */
        for (int k = lab_between(1, 3); k > 0; k--)
            x[lab_between(0, n - 1)] = odd[lab_between(0, 6)];
    if (kind == 5) /* most ids are impossible */
        for (int i = 0; i < n; i++)
            x[i] = chance(0.99) ? -INFINITY : x[i];
}

/* n: number of rows; 0: random */
static void random_rows(struct rows *r, int most_ids, int n)
{
    static const double edges[] = {0, 0x1p-53, 0.5, 1 - 0x1p-53};
    r->n = n ? n : chance(0.1) ? lab_between(33, 40) : lab_between(1, 4);
    r->ids = lab_between(1, most_ids);
    r->stride = r->ids + lab_between(0, 70);
    r->stride = r->stride > MOST_IDS ? MOST_IDS : r->stride;
    random_set(r->known, r->ids);
    if (chance(0.7))
        memset(r->known, 255, sizeof r->known);
    for (int i = 0; i < r->n; i++) {
        random_set(r->allowed[i], r->ids);
        random_logits(r->logits + (size_t)i * (size_t)r->stride, r->stride);
        r->how[i] = (struct sampler){
            .known = r->known,
            .allowed = chance(0.5) ? r->allowed[i] : NULL,
            .temperature = chance(0.3)   ? 0
                           : chance(0.3) ? 1
                                         : (float)pow(10, check_random(&lab_random) * 5 - 3),
            .top_p = chance(0.5)   ? 1
                     : chance(0.1) ? 0
                                   : (float)check_random(&lab_random),
            .random = chance(0.1) ? edges[lab_between(0, 3)] : check_random(&lab_random),
        };
    }
}

/* ---- definition ------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t at_which(const uint64_t *keys, int n, uint64_t t, uint64_t *total)
{
    *total = 0;
    for (int i = 0; i < n; i++)
        if ((*total += sampling_key_weight(keys[i])) > t)
            return keys[i];
    fail_msg("the sum of all weights is not above the number");
    return 0;
}

static int32_t defined(const float *x, int n, const struct sampler *how)
{
    static uint64_t keys[MOST_IDS];
    int best = -1, count = 0;
    uint64_t mass = 0, ignored;
    for (int i = 0; i < n; i++) {
        if (!sampling_has(how->known, i))
            continue;
        if (isnan(x[i]) || x[i] == INFINITY)
            return -1;
        if ((!how->allowed || sampling_has(how->allowed, i)) && (best < 0 || x[i] > x[best]))
            best = i;
    }
    if (best < 0 || x[best] == -INFINITY)
        return -1;
    if (how->temperature == 0)
        return best;
    for (int i = 0; i < n; i++)
        if (sampling_has(how->known, i) && (!how->allowed || sampling_has(how->allowed, i))) {
            uint64_t fall = sampling_fall(x[best] - x[i], sampling_rate(how->temperature));
            keys[count++] = sampling_key(fall, i);
            mass += sampling_weight(fall);
        }
    qsort(keys, (size_t)count, sizeof *keys, by_size);
    if (how->top_p < 1)
        at_which(keys, count, sampling_last(how->top_p, mass), &mass);
    return sampling_key_id(at_which(keys, count, sampling_drawn(how->random, mass), &ignored));
}

/* Returns the log-probability computed by a softmax in f64. */
static double exact_log(const float *x, int n, const uint64_t *known, const uint64_t *allowed, int id)
{
    double best = -INFINITY, total = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++)
            if (sampling_has(known, i) && (!allowed || sampling_has(allowed, i))) {
                best = pass == 0 ? fmax(best, x[i]) : best;
                total += pass == 0 ? 0 : exp((double)x[i] - best);
            }
    return x[id] - best - log(total);
}

/* The difference of two extreme logits may exceed the range of a float. */
static void expect_log(float is, double exact)
{
    bool near = exact < -FLT_MAX ? isinf(is) : fabs(is - exact) <= 1e-6 + 1e-6 * fabs(exact);
    if (!near)
        fail_msg("log probability %.9g, not %.9g", is, exact);
}

static void check_rows(struct backend *gpu, const struct rows *r, int *refused)
{
    struct sampled out[MOST_ROWS];
    struct tensor t = gpu->ops->alloc(gpu, DT_F32, r->n, r->stride);
    gpu->ops->upload(gpu, t,
                     (struct tensor){(void *)(uintptr_t)r->logits, DT_F32, r->n, r->stride, r->stride});
    gpu->ops->sample(gpu, tensor_cols(t, 0, r->ids), r->how, out);
    gpu->ops->free(gpu, &t);
    for (int i = 0; i < r->n; i++) {
        const float *x = r->logits + (size_t)i * (size_t)r->stride;
        const struct sampler *how = &r->how[i];
        struct sampled host = sample_token(x, r->ids, how);
        assert_int_equal(host.id, defined(x, r->ids, how));
        assert_memory_equal(&host, &out[i], sizeof host);
        *refused += host.id < 0;
        if (host.id < 0)
            continue;
        double all = exact_log(x, r->ids, how->known, NULL, host.id),
               some = exact_log(x, r->ids, how->known, how->allowed, host.id);
        expect_log(host.logprob, all);
        expect_log(host.logprob_masked, some);
    }
}

static void t_rows(void **state)
{
    struct backend *gpu = lab_gpu();
    struct rows *r = malloc(sizeof *r);
    int rows = 0, refused = 0;
    for (int k = 0; k < 120; k++) {
        /* one case has more rows than are processed together */
        random_rows(r, k % 10 == 0 ? MOST_IDS : 300, k == 99 ? MOST_ROWS : 0);
        check_rows(gpu, r, &refused);
        rows += r->n;
    }
    check_note("%d rows; %d were refused by all", rows, refused);
    assert_true(refused > 0 && refused < rows / 2);
    free(r);
    backend_free(gpu);
}

static void t_weights(void **state)
{
    double worst = 0;
    for (int k = 0; k < 300000; k++) {
        uint64_t fall = (uint64_t)(check_random(&lab_random) * 20 * (1 << SAMPLING_STEPS));
        double want = exp2(40 - ldexp((double)fall, -SAMPLING_STEPS)), have = (double)sampling_weight(fall);
        worst = check_worse(worst, (fabs(have - want) - 1) / want);
    }
    check_note("weights have a relative error of %.1e", worst);
    assert_true(worst < 0x1p-28);
    assert_true(sampling_weight(0) == 1ull << 40 && sampling_weight(SAMPLING_NOTHING) == 0);
    assert_true(sampling_fall(INFINITY, sampling_rate(1)) == SAMPLING_NOTHING);
    assert_true(sampling_drawn(1 - 0x1p-53, (1ull << 61) - 1) < (1ull << 61) - 1);
    assert_true(sampling_last(0.5f, 1ull << 41) == (1ull << 40) - 1); /* one of two equal halves */
}

/* ---- whole model ----------------------------------------------------------------------------- */

static struct grammar *answer(struct engine *g)
{
    struct err e = ERR_INIT;
    struct gx *x = gx_new();
    gx_node root = GX_SEQ(x, gx_lit(x, "{\"n\": "), gx_int(x, 10, 9999), gx_lit(x, ", \"t\": "),
                          gx_json_string(x, 3, 300), gx_lit(x, "}"));
    struct grammar *made = grammar_compile(x, root, engine_tokenizer(g), &e);
    gx_free(x);
    if (!made)
        fail_msg("%s", e.text);
    return made;
}

static struct generated reply(struct engine *g, const struct sampling *p, bool with_grammar)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(g, 7);
    struct grammar *rules = with_grammar ? answer(g) : NULL;
    struct generated out;
    int32_t ids[] = {50, 60, 70, 51, 52};
    if (session_append(s, ids, 5, &e) ||
        generate(s, &(struct generation){.grammar = rules, .sampling = *p}, &out, &e))
        fail_msg("%s", e.text);
    grammar_free(rules);
    session_free(s);
    return out;
}

static void t_generate(void **state)
{
    static const struct sampling ways[] = {{0, 1, 12}, {1, 1, 12}, {0.8f, 0.9f, 12}};
    struct engine *cpu = tiny_open_on(&tiny, "cpu", "ref", true),
                  *gpu = tiny_open_on(&tiny, "cuda", NULL, true);
    for (int k = 0; k < 6; k++) {
        struct generated a = reply(cpu, &ways[k % 3], k >= 3), b = reply(gpu, &ways[k % 3], k >= 3);
        double off = 0;
        assert_int_equal(a.n, b.n);
        assert_int_equal(a.finish, b.finish);
        for (int i = 0; i < a.n; i++) {
            assert_int_equal(a.choices[i].id, b.choices[i].id);
            assert_int_equal(a.choices[i].forced, b.choices[i].forced);
            off = check_worse(off, fabsf(a.choices[i].logprob - b.choices[i].logprob));
            off = check_worse(off, fabsf(a.choices[i].logprob_masked - b.choices[i].logprob_masked));
        }
        check_note("temperature %.1f, top_p %.1f%s: %d tokens, log-probabilities differ by %.1e",
                   (double)ways[k % 3].temperature, (double)ways[k % 3].top_p, k < 3 ? "" : ", grammar", a.n,
                   off);
        assert_true(off < 1e-4);
        generated_free(&a);
        generated_free(&b);
    }
    engine_close(cpu);
    engine_close(gpu);
}

/* Sessions sampled together, some with several pending tokens, choose the same tokens as each from its
 * logits. */
static void t_together(void **state)
{
    enum { N = 5 };
    struct engine *g = tiny_open_on(&tiny, "cuda", NULL, true);
    int size = tokenizer_size(engine_tokenizer(g));
    uint64_t all[16];
    struct session *s[N];
    struct sampler how[N];
    struct sampled out[N];
    memset(all, 255, sizeof all);
    assert_true(size <= 16 * 64);
    for (int i = 0; i < N; i++) {
        s[i] = session_new(g, 1);
        for (int32_t k = 0; k <= i * 3; k++)
            session_append(s[i], &(int32_t){40 + i + k}, 1, NULL);
        how[i] = (struct sampler){all, NULL, (float)i / 2, i % 2 ? 0.9f : 1, check_random(&lab_random)};
    }
    for (int step = 0; step < 3; step++) {
        assert_int_equal(session_sample_batch(s, N, how, out, NULL), 0);
        for (int i = 0; i < N; i++) {
            assert_int_equal(s[i]->logits_at, 0); /* the logits were not copied to the host */
            struct sampled host = sample_token(session_logits(s[i]), size, &how[i]);
            assert_memory_equal(&host, &out[i], sizeof host);
            s[i]->logits_at = 0;
            session_append(s[i], &(int32_t){40 + out[i].id % 200}, 1, NULL);
        }
    }
    for (int i = 0; i < N; i++)
        session_free(s[i]);
    engine_close(g);
}

/* One session samples within the graph of its step, the other separately; work runs when the host waits for
 * it. */
static void t_one_graph(void **state)
{
    enum { STEPS = 8, WARM = 4 };
    struct engine *g = tiny_open_on(&tiny, "cuda", NULL, false);
    int size = tokenizer_size(engine_tokenizer(g));
    uint64_t all[16], some[16];
    struct session *s[2] = {session_new(g, 1), session_new(g, 1)};
    memset(all, 255, sizeof all);
    memset(some, 0xa6, sizeof some);
    assert_true(size <= 16 * 64);
    for (int i = 0; i < 2; i++)
        for (int32_t k = 0; k < 9; k++)
            session_append(s[i], &(int32_t){40 + k}, 1, NULL);
    if (&emu_card)
        emu_card.late = true;
    for (int step = 0; step < STEPS; step++) {
        struct sampler how = {all, some, 0.7f, step < 3 ? 1 : 0.9f, check_random(&lab_random)};
        struct sampled out[2];
        long graphs = 0, singles = 0, syncs = 0;
        if (&emu_card)
            graphs = emu_card.graphs, singles = emu_card.singles, syncs = emu_card.syncs;
        some[step] ^= 0xff00; /* a new mask each time */
        assert_int_equal(session_sample(s[0], &how, &out[0], NULL), 0);
        if (&emu_card && step >= WARM + 2) {
            assert_int_equal(emu_card.graphs, graphs + 1);
            assert_int_equal(emu_card.singles, singles);
            assert_int_equal(emu_card.syncs, syncs + 1);
        }
        session_logits(s[1]); /* so that no token is pending */
        assert_int_equal(session_sample(s[1], &how, &out[1], NULL), 0);
        assert_memory_equal(&out[0], &out[1], sizeof out[0]);
        for (int i = 0; i < 2; i++)
            session_append(s[i], &(int32_t){40 + out[0].id % 200}, 1, NULL);
    }
    if (&emu_card)
        emu_card.late = false;
    for (int i = 0; i < 2; i++)
        session_free(s[i]);
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a decode step and its sampling use one graph and one wait", t_one_graph),
    CLAIM("device and host choose the token of the definition, to the bit", t_rows),
    CLAIM("weights are powers of two", t_weights),
    CLAIM("device and host generate the same reply, greedy and random, with and without a grammar",
          t_generate),
    CLAIM("sessions that sample together choose the same tokens as each alone", t_together),
};

TINY_MAIN(lab_random = check_seed())
