/* drift.c - drift from f32 by rounding and quantization, for every storage type: see bench.h.
 *
 * Two engines decode the same text, so that errors accumulate in the state: one computes in f32 with the
 * weights as stored, the other in bf16 with weights, states, or keys and values of the storage type.  Their
 * distributions of the next token are compared after every token: Kullback-Leibler divergence, whether the
 * likeliest token is the same, and the largest difference of two logits.  The text is one sentence repeated;
 * with --text it comes from a file, see rounding.c. */
#include "session/drift.h"
#include "bench/subject.h"

enum { TOKENS = 2048, TRIAL = 64 };

struct choice {
    const char *name;
    enum weight_storage weights;
    enum state_storage state;
    enum kv_storage kv;
    enum activation_rounding activations;
};

static struct engine *open_engine(const struct subject *m, bool f32, const struct choice *c)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = m->dir,
                               .device = m->k->device,
                               .isa = m->k->isa,
                               .threads = m->k->threads,
                               .f32 = f32,
                               .weights = c->weights,
                               .activations = c->activations,
                               .state = c->state,
                               .kv = c->kv,
                               .any_drift = true,
                               .cache = m->k->weight_cache,
                               .random = m->synthetic};
    struct engine *g = engine_open(&o, &e);
    subject_need(g ? 0 : -1, &e);
    return g;
}

static struct drift measure(const struct subject *m, struct engine *exact, const struct choice *c)
{
    struct err e = ERR_INIT;
    struct engine *g = open_engine(m, false, c);
    struct session *a = session_new(exact, 1), *b = session_new(g, 1);
    struct drift d = {0};
    int steps = m->trial ? TRIAL / 16 : m->k->repeat > 1 ? TOKENS : TRIAL;
    if (steps > m->c->lm.max_tokens)
        steps = m->c->lm.max_tokens;
    for (int i = 0; i < steps; i++) {
        subject_need(session_append(a, m->ids + i, 1, &e), &e);
        subject_need(session_append(b, m->ids + i, 1, &e), &e);
        drift_add(&d, session_logits(a), session_logits(b), engine_vocab(exact), i >= steps - steps / 4);
    }
    session_free(a);
    session_free(b);
    engine_close(g);
    return d;
}

void bench_drift(struct subject *m)
{
    static const struct choice
        exactly = {.weights = WEIGHTS_AUTO},
        choices[] = {{"as stored", WEIGHTS_AUTO, STATE_FP32, KV_AUTO, ACTIVATIONS_BF16},
                     {"int8", WEIGHTS_INT8, STATE_FP32, KV_AUTO, ACTIVATIONS_BF16},
                     {"int4", WEIGHTS_INT4, STATE_FP32, KV_AUTO, ACTIVATIONS_BF16},
                     {"fp8", WEIGHTS_FP8, STATE_FP32, KV_AUTO, ACTIVATIONS_BF16},
                     {"as stored, state fp16", WEIGHTS_AUTO, STATE_FP16, KV_AUTO, ACTIVATIONS_BF16},
                     {"as stored, kv fp8", WEIGHTS_AUTO, STATE_FP32, KV_FP8, ACTIVATIONS_BF16},
                     {"int8, activations int8", WEIGHTS_INT8, STATE_FP32, KV_AUTO, ACTIVATIONS_INT8},
                     {"int4, activations int8", WEIGHTS_INT4, STATE_FP32, KV_AUTO, ACTIVATIONS_INT8}};
    struct engine *exact = open_engine(m, true, &exactly);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        bool halves = choices[i].state == STATE_FP16 && family_is_qwen(m->c->family),
             bytes = choices[i].activations == ACTIVATIONS_INT8 &&
                     (!m->k->b->ops->round_activations || m->k->b->ops->rounds_to_f8),
             others = choices[i].weights == WEIGHTS_FP8 && m->synthetic;
        if (halves || bytes || others) /* rejected by the engine; synthetic codes of fp8 have other values */
            continue;
        struct drift d = measure(m, exact, &choices[i]);
        const struct {
            const char *what, *unit;
            double value;
        } rows[] = {{"mean KL from f32", "nat", d.sum / d.steps},
                    {"mean KL, the last quarter", "nat", 4 * d.last / d.steps},
                    {"largest KL", "nat", d.most},
                    {"same likeliest token", "%", 100.0 * d.same / d.steps},
                    {"largest difference of logits", "logit", d.logit}};
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            const char *length = d.steps == TOKENS ? ", 2048 tokens" : ", fewer tokens";
            bench_value(m->k, "drift",
                        bench_name("weights %s: %s%s", choices[i].name, rows[k].what, k ? "" : length),
                        rows[k].value, rows[k].unit);
        }
    }
    engine_close(exact);
}
