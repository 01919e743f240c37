/* t_qwen.c - compares tiny models of Qwen3.5 and Qwen3-VL, dense and with experts, of Qwen2.5-VL and of the
 * text models Qwen2 and Qwen3 with Hugging Face transformers (tests/golden/qwen, made by
 * tests/reference/make_qwen.py, make_qwen_kin.py and make_qwen_text.py), and with themselves.
 *
 * Both sides sum in f32 in different orders.  In transformers, a prompt at once and token by token differ
 * by 1e-5 of the largest logit.  The tolerance is 1e-4 of the largest logit, and 1e-5 of the largest value
 * of a state.
 */
#include "check.h"
#include "golden.h"

#include "model/language.h"
#include "model/rope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IMAGES = 4 };

struct run {
    struct golden g;
    struct model_config config;
    struct model_weights weights;
    struct safetensors *files;
    struct backend *b;
    struct language m;
    enum dtype act;
};

static void run_open(struct run *r, const char *name, const char *isa, struct pool *pool, enum dtype act)
{
    struct err e = ERR_INIT;
    *r = (struct run){.act = act};
    golden_open(&r->g, name);
    golden_checkpoint(&r->g);
    r->b = backend_cpu(isa, pool, &e);
    if (config_load(&r->config, r->g.checkpoint, &e) || !(r->files = safetensors_open(r->g.checkpoint, &e)))
        fail_msg("%s", e.text);
    struct bind_options o = {.f32 = act == DT_F32};
    if (weights_bind(&r->weights, &r->config, r->files, r->b, &o, &e))
        fail_msg("%s", e.text);
    language_init(&r->m, &r->config.lm, &r->weights, r->b, act);
}

static void run_close(struct run *r)
{
    language_free(&r->m);
    weights_free(&r->weights, &r->config, r->b);
    safetensors_close(r->files);
    backend_free(r->b);
    golden_close(&r->g);
}

static struct lm_state new_state(struct run *r)
{
    struct lm_state s;
    state_init(&s, &r->config.lm, r->b, (struct state_types){r->act, DT_F32, r->act});
    return s;
}

static struct golden_array part(const struct golden *g, const char *name, const char *of)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s%s", name, of);
    struct golden_array a = golden_find(g, whole);
    if (!a.data)
        fail_msg("no array '%s'", whole);
    return a;
}

static double tensor_apart(struct run *r, struct tensor t, struct golden_array want)
{
    assert_true(t.rows == want.rows && t.cols == want.cols);
    float *have = malloc((size_t)(t.rows * t.cols) * sizeof *have);
    r->b->ops->download(r->b, (struct tensor){have, DT_F32, t.rows, t.cols, t.cols}, t);
    double off = golden_apart(have, want.data, t.rows * t.cols);
    free(have);
    return off;
}

/* ---- conversations ------------------------------------------------------------------------------------- */

struct talk { /* a conversation of the golden data */
    const int32_t *ids;
    int64_t n;
    struct image_rows images[MOST_IMAGES];
    int n_images;
};

/* Opens a conversation; the rows of its images are in one array. */
static struct talk talk_open(struct run *r, const char *name)
{
    struct golden_array ids = part(&r->g, name, ".ids");
    struct talk t = {.ids = ids.data, .n = ids.rows};
    char text[64];
    snprintf(text, sizeof text, "%s.grids", name);
    struct golden_array grids = golden_find(&r->g, text);
    int64_t width = config_image_cols(&r->config), at = 0, drawn = 0;
    snprintf(text, sizeof text, "%s.rows", name);
    for (int64_t i = 0; i < grids.rows; i++) {
        const int32_t *grid = (const int32_t *)grids.data + 2 * i;
        int64_t rows = (int64_t)grid[0] * grid[1];
        while (t.ids[at] != golden_number(&r->g, "image"))
            at++;
        uint16_t *values = malloc((size_t)(rows * width) * sizeof *values);
        golden_draw(r->g.seed, text, drawn, rows * width, 0, (float)(0.16 / 37837.2), values);
        struct tensor on = r->b->ops->alloc(r->b, r->act, rows, width);
        r->b->ops->upload(r->b, on, (struct tensor){values, DT_BF16, rows, width, width});
        t.images[t.n_images++] = (struct image_rows){at, on, grid[1]};
        free(values);
        drawn += rows * width;
        at += rows;
    }
    return t;
}

static void talk_close(struct run *r, struct talk *t)
{
    for (int i = 0; i < t->n_images; i++)
        r->b->ops->free(r->b, &t->images[i].rows);
}

/* Runs tokens [first, first + n) of a conversation. */
static void forward(struct run *r, struct lm_state *s, const struct talk *t, int64_t first, int64_t n)
{
    struct image_rows images[MOST_IMAGES];
    for (int i = 0; i < t->n_images; i++) {
        images[i] = t->images[i];
        images[i].at -= first;
    }
    assert_int_equal(language_forward(&r->m, s, t->ids + first, n, images, t->n_images), 0);
}

static const float *logits_of(struct run *r, struct lm_state *s)
{
    static float logits[512];
    assert_true(r->weights.vocab <= 512);
    language_logits(&r->m, s, logits);
    return logits;
}

/* ---- comparison with transformers ---------------------------------------------------------------------- */

struct stages {
    struct run *r;
    double worst;
    int seen;
};

/* Compares two sums of every row with random signs, relative to its norm. */
static void watch_layer(void *arg, int layer, struct tensor h)
{
    struct stages *s = arg;
    char name[32];
    snprintf(name, sizeof name, "layer%d", layer);
    struct golden_array want = part(&s->r->g, name, ".sums");
    float *have = malloc((size_t)(h.rows * h.cols) * sizeof *have);
    s->r->b->ops->download(s->r->b, (struct tensor){have, DT_F32, h.rows, h.cols, h.cols}, h);
    assert_int_equal(want.rows, h.rows);
    for (int64_t i = 0; i < h.rows; i++)
        for (int k = 0; k < 2; k++) {
            const float *w = (const float *)want.data + 3 * i;
            double sum = 0;
            for (int64_t c = 0; c < h.cols; c++)
                sum += (double)golden_sign((uint64_t)k + 1, c) * (double)have[i * h.cols + c];
            s->worst = check_worse(s->worst, fabs(sum - (double)w[k]) / (double)w[2]);
        }
    free(have);
    s->seen++;
    if (s->r->config.lm.pattern[layer] != LAYER_SWIGLU_MOE)
        return;
    snprintf(name, sizeof name, "chosen%d", layer);
    struct golden_array chosen = part(&s->r->g, name, "");
    assert_int_equal(chosen.rows * chosen.cols, h.rows * s->r->config.lm.moe.route.chosen);
    assert_memory_equal(chosen.data, s->r->m.moe.ids.data,
                        (size_t)(chosen.rows * chosen.cols) * sizeof(int32_t));
}

/* Returns the largest difference of the states after a prompt. */
static double states_apart(struct run *r, const struct lm_state *s)
{
    double worst = 0;
    for (int i = 0; i < r->config.lm.layers; i++) {
        char name[16];
        if (r->config.lm.pattern[i] != LAYER_DELTA)
            continue;
        snprintf(name, sizeof name, "state%d", i);
        worst = check_worse(worst, tensor_apart(r, s->now.ssm[i], part(&r->g, name, "")));
        snprintf(name, sizeof name, "tail%d", i);
        worst = check_worse(worst, tensor_apart(r, s->now.conv[i], part(&r->g, name, "")));
    }
    return worst;
}

static const char *const models[] = {"qwen/dense", "qwen/moe",   "qwen/vl3",       "qwen/vl3moe",
                                     "qwen/vl25",  "qwen/text2", "qwen/text2tied", "qwen/text3"};
enum { MODELS = sizeof models / sizeof *models };

static void each_model(enum dtype act, void (*fn)(struct run *r, const char *isa))
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < MODELS; k++) {
            struct run r;
            run_open(&r, models[k], names[i], NULL, act);
            fn(&r, names[i]);
            run_close(&r);
        }
}

#define IN_F32(name, check)                                                                                  \
    static void name(void **state)                                                                           \
    {                                                                                                        \
        each_model(DT_F32, check);                                                                           \
    }

static void check_layers(struct run *r, const char *isa)
{
    struct talk t = talk_open(r, "prompt");
    struct lm_state s = new_state(r);
    struct stages watch = {.r = r};
    struct golden_array want = part(&r->g, "logits", "");
    r->m.watch = watch_layer;
    r->m.watch_arg = &watch;
    forward(r, &s, &t, 0, t.n);
    r->m.watch = NULL;
    assert_int_equal(watch.seen, 8);
    double logits =
        golden_apart(logits_of(r, &s), (const float *)want.data + (t.n - 1) * want.cols, want.cols);
    double states = states_apart(r, &s);
    check_note("%-10s %-10s layers %.1e, states %.1e, logits %.1e of the largest", isa, r->g.dir + 13,
               watch.worst, states, logits);
    assert_true(watch.worst < 1e-4 && states < 2e-5 && logits < 1e-4);
    assert_int_equal(s.position, t.n);
    state_free(&s, &r->config.lm, r->b);
}

IN_F32(t_layers, check_layers)

/* Compares the logits after each token of a prompt computed at once with token-by-token decoding.  They are
 * bit-identical except for the delta rule, whose chunks are summed in another order. */
static void check_rows(struct run *r, const char *isa)
{
    struct talk t = talk_open(r, "prompt");
    struct lm_state s = new_state(r), alone = new_state(r);
    struct golden_array want = part(&r->g, "logits", "");
    float have[512], *row = have;
    double worst = 0, steps = 0;
    assert_int_equal(language_rows(&r->m, &s, t.ids, (int)t.n), 0);
    for (int i = 0; i < t.n; i++) {
        language_verify_logits(&r->m, i, 1, &row);
        worst = check_worse(worst, golden_apart(have, (const float *)want.data + i * want.cols, want.cols));
        forward(r, &alone, &t, i, 1);
        steps = check_worse(steps, golden_apart(have, logits_of(r, &alone), want.cols));
    }
    check_note("%-10s %-10s transformers %.1e, decoding %.1e of the largest", isa, r->g.dir + 13, worst,
               steps);
    assert_true(worst < 1e-4 && steps <= (r->config.lm.delta.value_heads ? 1e-4 : 0));
    state_free(&s, &r->config.lm, r->b);
    state_free(&alone, &r->config.lm, r->b);
}

IN_F32(t_rows, check_rows)

/* Prompts cut at these positions must have the same logits at the end of each piece, and the same final
 * states. */
static const struct split {
    const char *name;
    int64_t sizes[5]; /* the last one continues to the end */
} splits[] = {
    {"at once", {1000}},
    {"1", {1}},
    {"2", {2}},
    {"3", {3}},
    {"7", {7}},
    {"64", {64}},
    {"63,1,65,71", {63, 1, 65, 71}},
    {"1,2,3,194", {1, 2, 3, 194}},
    {"199,1", {199, 1}},
};

static double run_split(struct run *r, const struct split *p, double *states)
{
    struct talk t = talk_open(r, "prompt");
    struct lm_state s = new_state(r);
    struct golden_array want = part(&r->g, "logits", "");
    double worst = 0;
    for (int64_t at = 0, n, i = 0; at < t.n; at += n) {
        n = p->sizes[i];
        i += p->sizes[i + 1] > 0;
        n = n < t.n - at ? n : t.n - at;
        forward(r, &s, &t, at, n);
        worst =
            check_worse(worst, golden_apart(logits_of(r, &s),
                                            (const float *)want.data + (at + n - 1) * want.cols, want.cols));
    }
    *states = states_apart(r, &s);
    state_free(&s, &r->config.lm, r->b);
    return worst;
}

static void check_splits(struct run *r, const char *isa)
{
    double worst = 0, states = 0;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        double of;
        double logits = run_split(r, &splits[i], &of);
        if (!(logits < 1e-4 && of < 2e-5))
            fail_msg("%s in pieces of %s: logits off by %.1e of the largest, states by %.1e", isa,
                     splits[i].name, logits, of);
        worst = fmax(worst, logits);
        states = fmax(states, of);
    }
    check_note("%-10s %-10s logits %.1e, states %.1e", isa, r->g.dir + 13, worst, states);
}

IN_F32(t_splits, check_splits)

/* ---- positions ----------------------------------------------------------------------------------------- */

/* Computes all positions in one call and in calls of every size. */
static void check_positions(struct run *r, const char *isa)
{
    struct talk t = talk_open(r, "pictures");
    struct golden_array want = part(&r->g, "pictures.positions", "");
    struct rope_position at[256];
    assert_true(t.n <= 256 && want.rows == t.n);
    for (int64_t piece = 1; piece <= t.n; piece++) {
        int64_t next = 0;
        for (int64_t first = 0; first < t.n; first += piece) {
            struct image_rows images[MOST_IMAGES];
            for (int i = 0; i < t.n_images; i++) {
                images[i] = t.images[i];
                images[i].at -= first;
            }
            int64_t n = piece < t.n - first ? piece : t.n - first;
            next = rope_walk(at + first, next, 0, n, images, t.n_images);
        }
        for (int64_t i = 0; i < t.n; i++)
            for (int k = 0; k < 3; k++)
                assert_int_equal(at[i].axis[k], ((const int32_t *)want.data)[3 * i + k]);
        assert_int_equal(next, at[t.n - 1].axis[0] + 1);
        assert_true(next < t.n);
    }
    talk_close(r, &t);
}

static void t_positions(void **state)
{
    struct run r;
    run_open(&r, "qwen/dense", "ref", NULL, DT_F32);
    check_positions(&r, "ref");
    run_close(&r);
}

/* The second image in a separate call gives the same result as in one call. */
static void check_pictures(struct run *r, const char *isa)
{
    struct golden_array want = golden_find(&r->g, "pictures.logits");
    double worst = 0;
    if (!want.data && strstr(r->g.dir, "/text"))
        return;
    assert_non_null(want.data);
    struct talk t = talk_open(r, "pictures");
    for (int64_t cut = 0; cut < t.n; cut += cut < 20 ? 20 + (int64_t)(check_seed() % 7) : 7) {
        struct lm_state s = new_state(r);
        if (cut)
            forward(r, &s, &t, 0, cut);
        forward(r, &s, &t, cut, t.n - want.rows - cut > 0 ? t.n - want.rows - cut : 1);
        for (int64_t i = s.length - (t.n - want.rows); i < want.rows; i++) {
            worst =
                check_worse(worst, i ? golden_apart(logits_of(r, &s),
                                                    (const float *)want.data + (i - 1) * want.cols, want.cols)
                                     : 0);
            forward(r, &s, &t, s.length, 1);
        }
        worst = check_worse(worst,
                            golden_apart(logits_of(r, &s),
                                         (const float *)want.data + (want.rows - 1) * want.cols, want.cols));
        state_free(&s, &r->config.lm, r->b);
    }
    check_note("%-10s %-10s logits %.1e of the largest", isa, r->g.dir + 13, worst);
    assert_true(worst < 1e-4);
    talk_close(r, &t);
}

IN_F32(t_pictures, check_pictures)

/* ---- greedy continuations ------------------------------------------------------------------------------ */

/* Returns the number of tokens before the first difference. */
static int64_t follow(struct run *r, int prompt)
{
    char name[16];
    snprintf(name, sizeof name, "greedy%d", prompt);
    struct golden_array want = part(&r->g, name, "");
    struct talk t = talk_open(r, name);
    struct lm_state s = new_state(r);
    int64_t same = 0;
    forward(r, &s, &t, 0, t.n);
    for (; same < want.rows; same++) {
        int32_t id = golden_best(logits_of(r, &s), r->weights.vocab);
        if (id != ((const int32_t *)want.data)[same])
            break;
        language_forward(&r->m, &s, &id, 1, NULL, 0);
    }
    state_free(&s, &r->config.lm, r->b);
    talk_close(r, &t);
    return same;
}

static void check_greedy(struct run *r, const char *isa)
{
    int prompts = r->config.lm.moe.width ? 4 : 8;
    for (int i = 0; i < (strcmp(isa, "ref") ? prompts : 3); i++)
        if (follow(r, i) != 256)
            fail_msg("%s %s: prompt %d differs after %d tokens", isa, r->g.dir, i, (int)follow(r, i));
}

IN_F32(t_greedy, check_greedy)

/* ---- consistency --------------------------------------------------------------------------------------- */

static void run_prompt(const char *model, const char *isa, enum dtype act, int threads, int64_t piece,
                       float *logits)
{
    struct pool *pool = threads > 1 ? pool_new(threads) : NULL;
    struct run r;
    run_open(&r, model, isa, pool, act);
    struct talk t = talk_open(&r, "prompt");
    struct lm_state s = new_state(&r);
    for (int64_t at = 0; at < t.n; at += piece)
        forward(&r, &s, &t, at, piece < t.n - at ? piece : t.n - at);
    memcpy(logits, logits_of(&r, &s), (size_t)r.weights.vocab * sizeof *logits);
    state_free(&s, &r.config.lm, r.b);
    run_close(&r);
    pool_free(pool);
}

/* In bf16 a value may be rounded the other way, and a router may choose another expert. */
static void t_itself(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < MODELS; k++) {
            bool experts = strstr(models[k], "moe");
            float whole[512], other[512], steps[512];
            run_prompt(models[k], names[i], DT_BF16, 1, 1000, whole);
            run_prompt(models[k], names[i], DT_BF16, 3, 1000, other);
            assert_memory_equal(whole, other, 160 * sizeof *whole);
            run_prompt(models[k], names[i], DT_BF16, 2, 1, steps);
            run_prompt(models[k], names[i], DT_F32, 1, 1000, other);
            double drift = golden_apart(whole, other, 160), by_steps = golden_apart(steps, other, 160);
            check_note("%-10s %-10s bf16 compared with f32: at once %.1e, token by token %.1e of the largest",
                       names[i], models[k], drift, by_steps);
            assert_true(drift < (experts ? 0.4 : 0.06) && by_steps < (experts ? 0.4 : 0.06));
        }
}

static const struct CMUnitTest tests[] = {
    CLAIM("every layer, state, choice of experts and logit of a prompt agrees with transformers", t_layers),
    CLAIM("logits after every token of a prompt computed at once equal those of decoding", t_rows),
    CLAIM("a prompt cut anywhere leaves the same logits and states", t_splits),
    CLAIM("positions of text and images equal those of transformers, in calls of any size", t_positions),
    CLAIM("images in the first call or in a later one give the logits of one call", t_pictures),
    CLAIM("greedy continuations of 256 tokens equal those of transformers, with and without images",
          t_greedy),
    CLAIM("the number of threads changes no bit in bf16, and bf16 is close to f32", t_itself),
};

CHECK_MAIN()
