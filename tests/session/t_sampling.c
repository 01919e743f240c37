/* t_sampling.c - tests top_k, min_p and penalties against distributions of transformers' samplers
 * (golden/samplers), and in the replies of a session.
 */
#include "tiny_check.h"

#include "ops/sample_filter.h"
#include "ops/sample_sums.h"
#include "ops/sampling.h"
#include "session/generate.h"
#include "session/session_impl.h"

#include <jansson.h>
#include <math.h>

/* ---- one row ------------------------------------------------------------------------------------------ */

enum { FILTER_N = 60, DRAWS = 4000 };

static double number_of(const json_t *c, const char *key)
{
    return json_number_value(json_object_get(c, key));
}

static int32_t *ids_of(const json_t *c, const char *key, int32_t *to)
{
    json_t *id;
    size_t i;
    json_array_foreach(json_object_get(c, key), i, id) *to++ = (int32_t)json_integer_value(id);
    return to;
}

/* Draws with evenly spaced random numbers. The frequencies must equal transformers' probabilities within 1.5
 * draws, which excludes ids of probability 0. */
static void check_filter(const json_t *c, int at)
{
    float logits[FILTER_N];
    int32_t tokens[64], *reply = ids_of(c, "prompt", tokens), *end = ids_of(c, "reply", reply);
    uint64_t known[1] = {(1ull << FILTER_N) - 1};
    int count[FILTER_N] = {0};
    for (int i = 0; i < FILTER_N; i++)
        logits[i] = (float)json_number_value(json_array_get(json_object_get(c, "logits"), (size_t)i));
    const struct sample_filter f = {.top_k = (int)number_of(c, "top_k"),
                                    .min_p = (float)number_of(c, "min_p"),
                                    .presence = (float)number_of(c, "presence_penalty"),
                                    .frequency = (float)number_of(c, "frequency_penalty"),
                                    .repetition = (float)number_of(c, "repetition_penalty"),
                                    .tokens = tokens,
                                    .n_tokens = end - tokens,
                                    .reply = reply - tokens};
    struct sampler how = {.known = known,
                          .temperature = (float)number_of(c, "temperature"),
                          .top_p = (float)number_of(c, "top_p")};
    for (int k = 0; k < DRAWS; k++) {
        how.random = (k + 0.5) / DRAWS;
        struct sampled s = sample_filtered(logits, FILTER_N, &how, &f);
        count[s.id]++;
        if (k == 0) /* the reported logprob is the one before penalties */
            assert_true(s.logprob == sample_report(logits, FILTER_N, &how, s.id).logprob);
    }
    for (int i = 0; i < FILTER_N; i++) {
        double p = json_number_value(json_array_get(json_object_get(c, "probabilities"), (size_t)i));
        if (fabs(count[i] - p * DRAWS) > 1.5)
            fail_msg("case %d, id %d: %d of %d, not %g", at, i, count[i], DRAWS, p);
    }
}

static void t_filters(void **state)
{
    json_t *golden = json_load_file("tests/golden/samplers/samplers.json", 0, NULL), *c;
    size_t i;
    assert_non_null(golden);
    json_array_foreach(json_object_get(golden, "cases"), i, c) check_filter(c, (int)i);
    check_note("%zu rows of transformers' samplers", json_array_size(json_object_get(golden, "cases")));
    json_decref(golden);
}

/* Compares with a sort, with ties and with masks of all kinds. */
static void t_kth_largest(void **state)
{
    enum { MOST = 300 };
    uint64_t rng = check_seed(), known[5], allowed[5];
    float logits[MOST];
    for (int row = 0; row < 2000; row++) {
        int n = 1 + (int)(check_random(&rng) * MOST), k = 1 + (int)(check_random(&rng) * 40), above = 0,
            equal = 0;
        bool masked = check_random(&rng) < 0.5;
        for (int i = 0; i < n; i++)
            logits[i] = (float)((int)(check_random(&rng) * 64) - 32) / 8;
        for (int i = 0; i < 5; i++) {
            known[i] = (uint64_t)(check_random(&rng) * 0x1p53) * 0x9e3779b97f4a7c15;
            allowed[i] = (uint64_t)(check_random(&rng) * 0x1p53) * 0x9e3779b97f4a7c15;
        }
        float v = sample_kth_largest(logits, n, known, masked ? allowed : NULL, k);
        for (int i = 0; i < n; i++)
            if (sampling_has(known, i) && (!masked || sampling_has(allowed, i))) {
                above += logits[i] > v;
                equal += logits[i] == v;
            }
        assert_true(isfinite(v) ? above < k && above + equal >= k : equal == 0 && above < k);
    }
}

/* Penalties apply to greedy sampling; top_k and min_p have no effect on it. Masks hold; a NaN is refused. */
static void t_filter_edges(void **state)
{
    float logits[4] = {1, 3, 2.5f, -1};
    uint64_t known[1] = {15}, some[1] = {9};
    const int32_t said[] = {1, 1};
    struct sampler greedy = {.known = known, .top_p = 1},
                   warm = {.known = known, .temperature = 1, .top_p = 1};
    struct sample_filter f = {.top_k = 1, .min_p = 1, .presence = 1, .tokens = said, .n_tokens = 2};
    assert_int_equal(sample_filtered(logits, 4, &greedy, &f).id, 2);
    f.reply = 2; /* the tokens now belong to the prompt */
    assert_int_equal(sample_filtered(logits, 4, &greedy, &f).id, 1);
    for (int i = 0; i < 50; i++) {
        warm.random = i / 50.0;
        assert_int_equal(sample_filtered(logits, 4, &warm, &f).id, 1);
        warm.allowed = some;
        assert_int_equal(sample_filtered(logits, 4, &warm, &f).id, 0);
        warm.allowed = NULL;
    }
    assert_false(sample_filter_is_on(&(struct sample_filter){.repetition = 1}));
    assert_true(sample_filter_is_on(&(struct sample_filter){.frequency = -1}));
    logits[2] = NAN;
    assert_int_equal(sample_filtered(logits, 4, &warm, &f).id, -1);
}

/* ---- replies ------------------------------------------------------------------------------------------ */

/* Compares greedy replies with the definition, computed over another session's logits. A reply generated in
 * two parts must be equal. */
static void t_replies(void **state)
{
    const float presence = 2, frequency = 0.25f;
    struct sampling p = {
        .top_p = 1, .max_tokens = 40, .presence_penalty = presence, .frequency_penalty = frequency};
    struct session *whole = session_new(engine, 1), *hand = session_new(engine, 1),
                   *parts = session_new(engine, 1);
    struct generated out, more;
    struct err e = ERR_INIT;
    int count[275] = {0}, n = 0;
    tiny_append_text(whole, "<s>Once upon a time");
    tiny_append_text(hand, "<s>Once upon a time");
    tiny_append_text(parts, "<s>Once upon a time");
    assert_int_equal(generate(whole, &(struct generation){.sampling = p}, &out, &e), 0);
    for (; n < out.n; n++) {
        const float *logits = session_logits(hand);
        float best = -INFINITY;
        int32_t id = -1;
        for (int32_t k = 0; k < 275; k++) {
            float v = logits[k] - (count[k] ? frequency * (float)count[k] + presence : 0);
            if (k != 272 && v > best) {
                best = v;
                id = k;
            }
        }
        assert_int_equal(out.choices[n].id, id);
        count[id]++;
        assert_int_equal(session_append(hand, &id, 1, NULL), 0);
    }
    p.max_tokens = out.n < 7 ? out.n : 7;
    assert_int_equal(generate(parts, &(struct generation){.sampling = p}, &more, &e), 0);
    int first = more.n;
    generated_free(&more);
    p.max_tokens = out.n - first;
    if (p.max_tokens > 0) {
        assert_int_equal(generate(parts, &(struct generation){.sampling = p, .earlier = first}, &more, &e),
                         0);
        assert_int_equal(more.n, out.n - first);
        for (int i = 0; i < more.n; i++)
            assert_int_equal(more.choices[i].id, out.choices[first + i].id);
        generated_free(&more);
    }
    check_note("%d tokens in one piece and in two", out.n);
    generated_free(&out);
    session_free(whole);
    session_free(hand);
    session_free(parts);
}

/* top_k 1 and min_p 1 are greedy; limits that exclude nothing leave the draws unchanged. */
static void t_cuts(void **state)
{
    struct sampling ways[] = {
        {.top_p = 1, .max_tokens = 30},
        {.temperature = 1.5f, .top_p = 1, .max_tokens = 30, .top_k = 1},
        {.temperature = 1.5f, .top_p = 1, .max_tokens = 30, .min_p = 1},
        {.temperature = 1.5f, .top_p = 1, .max_tokens = 30},
        {.temperature = 1.5f, .top_p = 1, .max_tokens = 30, .top_k = 275, .min_p = 1e-20f}};
    struct generated out[5];
    struct err e = ERR_INIT;
    for (int i = 0; i < 5; i++) {
        struct session *s = session_new(engine, 1);
        tiny_append_text(s, "<s>Once upon a time");
        session_set_rng(s, 7);
        assert_int_equal(generate(s, &(struct generation){.sampling = ways[i]}, &out[i], &e), 0);
        session_free(s);
    }
    for (int i = 1; i < 5; i++) {
        const struct generated *want = &out[i < 3 ? 0 : 3];
        assert_int_equal(out[i].n, want->n);
        for (int k = 0; k < want->n; k++)
            assert_int_equal(out[i].choices[k].id, want->choices[k].id);
    }
    for (int i = 0; i < 5; i++)
        generated_free(&out[i]);
}

static const struct CMUnitTest tests[] = {
    CLAIM("limits and penalties give the distributions of transformers' samplers", t_filters),
    CLAIM("the k-th largest equals that of a sort, with ties and masks", t_kth_largest),
    CLAIM("penalties apply to greedy replies, masks hold, a NaN is refused", t_filter_edges),
    WITH_MODEL("a reply under penalties follows the definition, in one part or two", t_replies),
    WITH_MODEL("top_k 1 and min_p 1 are greedy, and limits that exclude nothing change nothing", t_cuts),
};

CHECK_MAIN()
