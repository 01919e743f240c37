/* t_greedy.c - compares greedy continuations of a model trained to count with mamba-ssm and transformers
 * (tests/reference/train_counting.py, make_greedy.py): in f32 all tokens, in bf16 those before the first
 * difference.
 *
 * In bf16 a near tie may be decided differently, which is not an error; the texts differ from there on. The
 * score is the fraction of tokens before the first difference, over all prompts. The reference is computed in
 * f32, so the loss from bf16 itself is included.
 */
#include "check.h"
#include "golden.h"

#include "model/language.h"

enum { PROMPTS = 20, TOKENS = 256 };
#define DIR "tests/golden/counting"

struct run {
    struct model_config config;
    struct model_weights weights;
    struct backend *backend;
    struct language m;
    enum dtype act;
};

static int best(const float *logits, int n)
{
    int most = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[most])
            most = i;
    return most;
}

/* Returns the number of tokens before the first difference. */
static int follow(struct run *r, const struct golden *g, int prompt)
{
    char name[16];
    snprintf(name, sizeof name, "prompt%d", prompt);
    struct golden_array ids = golden_find(g, name);
    snprintf(name, sizeof name, "ids%d", prompt);
    struct golden_array want = golden_find(g, name);
    assert_true(ids.data && want.rows == TOKENS);
    float *logits = malloc((size_t)r->weights.vocab * sizeof *logits);
    struct lm_state s;
    int same = 0;
    state_init(&s, &r->config.lm, r->backend, (struct state_types){r->act, DT_F32, r->act});
    language_forward(&r->m, &s, ids.data, ids.rows, NULL, 0);
    for (; same < TOKENS; same++) {
        language_logits(&r->m, &s, logits);
        int32_t id = best(logits, r->weights.vocab);
        if (id != ((const int32_t *)want.data)[same])
            break;
        language_forward(&r->m, &s, &id, 1, NULL, 0);
    }
    state_free(&s, &r->config.lm, r->backend);
    free(logits);
    return same;
}

/* Returns the fraction of tokens before the first difference. */
static double run(const char *isa, enum dtype act, int prompts)
{
    struct err e = ERR_INIT;
    struct golden g;
    struct run r = {.act = act};
    golden_open(&g, "counting");
    if (config_load(&r.config, DIR, &e))
        fail_msg("%s", e.text);
    struct safetensors *s = safetensors_open(DIR, &e);
    r.backend = backend_cpu(isa, NULL, &e);
    struct bind_options o = {.f32 = act == DT_F32};
    if (!s || !r.backend || weights_bind(&r.weights, &r.config, s, r.backend, &o, &e))
        fail_msg("%s", e.text);
    language_init(&r.m, &r.config.lm, &r.weights, r.backend, act);
    int same = 0, whole = 0;
    for (int i = 0; i < prompts; i++) {
        int n = follow(&r, &g, i);
        same += n;
        whole += n == TOKENS;
    }
    double part = (double)same / (prompts * TOKENS);
    check_note("%s %s: %d of %d continuations whole, %.2f %% of tokens before a difference",
               act == DT_F32 ? "f32" : "bf16", r.backend->ops->name, whole, prompts, 100 * part);
    language_free(&r.m);
    weights_free(&r.weights, &r.config, r.backend);
    backend_free(r.backend);
    safetensors_close(s);
    golden_close(&g);
    return part;
}

static double worst_of_all(enum dtype act)
{
    const char *names[8];
    int isas = backend_cpu_list(names, 8);
    double worst = 1;
    for (int i = 0; i < isas; i++) {
        double part = run(names[i], act, strcmp(names[i], "ref") ? PROMPTS : PROMPTS / 4); /* ref is slow */
        worst = part < worst ? part : worst;
    }
    return worst;
}

static void t_f32(void **state)
{
    assert_true(worst_of_all(DT_F32) == 1);
}

static void t_bf16(void **state)
{
    assert_true(worst_of_all(DT_BF16) >= 0.95);
}

static const struct CMUnitTest tests[] = {
    CLAIM("f32: 20 greedy continuations of 256 tokens equal the reference", t_f32),
    CLAIM("bf16: 95 % of tokens are before the first difference", t_bf16),
};

CHECK_MAIN()
