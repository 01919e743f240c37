/* t_speculate.c - tests n-gram speculation: it changes only the time, for any temperature, grammar and
 * backend, and rejected tokens leave no trace.
 */
#include "speculated.h"

/* ---- proposals ------------------------------------------------------------------------------- */

static void t_propose(void **state)
{
    static const int32_t text[] = {1, 2, 3, 4, 5, 9, 2, 3, 7, 8, 1, 2, 3};
    int32_t out[8];
    /* a match of three tokens wins over a later one of two */
    assert_int_equal(speculate_propose(text, 13, out, 4), 4);
    assert_memory_equal(out, ((const int32_t[]){4, 5, 9, 2}), 4 * sizeof *out);
    assert_int_equal(speculate_propose(text + 1, 12, out, 2), 2); /* the last match of two tokens */
    assert_memory_equal(out, ((const int32_t[]){7, 8}), 2 * sizeof *out);
    assert_int_equal(speculate_propose(text, 5, out, 4), 0);
    assert_int_equal(speculate_propose(text, 1, out, 4), 0);
    static const int32_t same[] = {6, 6, 6, 6};
    assert_int_equal(speculate_propose(same, 4, out, 4), 1); /* no further than the end of the text */
    assert_int_equal(out[0], 6);
}

/* ---- equal replies --------------------------------------------------------------------------- */

static void t_same(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++)
        for (int f32 = 0; f32 < 2; f32++)
            compare("cpu", names[i], STATE_FP32, f32, LENGTH);
    compare("cpu", NULL, STATE_FP16, false, LENGTH);
}

/* With masks and forced tokens; the prompt contains every text that the grammar allows. */
static void t_grammar(void **state)
{
    struct engine *plain = open_with("cpu", NULL, 0, STATE_FP32, false),
                  *fast = open_with("cpu", NULL, 6, STATE_FP32, false);
    int64_t proposed = 0;
    for (int warm = 0; warm < 20; warm++) {
        struct grammar *g[2];
        struct said r[2];
        for (int i = 0; i < 2; i++) {
            struct engine *e = i ? fast : plain;
            struct gx *x = gx_new();
            gx_node word = GX_ALT(x, gx_lit(x, "to 12! "), gx_lit(x, "to 13! "), gx_lit(x, "true, "),
                                  gx_lit(x, "click(12) "), gx_lit(x, "tr"));
            g[i] = grammar_compile(x, gx_repeat(x, word, 3, 9), engine_tokenizer(e), NULL);
            gx_free(x);
            r[i] = say(e, g[i], 0.15f * (float)warm, LENGTH);
        }
        same(&r[0], &r[1], engine_vocab(plain));
        proposed += r[1].stats.proposed;
        for (int i = 0; i < 2; i++) {
            drop(&r[i]);
            grammar_free(g[i]);
        }
    }
    /* 0 is possible: some random models repeat nothing here */
    check_note("%lld proposals", (long long)proposed);
    engine_close(fast);
    engine_close(plain);
}

/* ---- stop conditions ------------------------------------------------------------------------- */

/* Proposed tokens that end the reply: each token of the reply in turn becomes a stop token. */
static void t_stops(void **state)
{
    struct engine *plain = open_with("cpu", NULL, 0, STATE_FP32, false),
                  *fast = open_with("cpu", NULL, 8, STATE_FP32, false);
    struct said whole = say(plain, NULL, 0, LENGTH);
    int had = plain->n_stops;
    for (int at = 2; at < whole.out.n && at < 40; at += 3) {
        plain->stops[had] = fast->stops[had] = whole.out.choices[at].id;
        plain->n_stops = fast->n_stops = had + 1;
        for (int limit = 1; limit < LENGTH; limit += 11) { /* replies of any length */
            struct said a = say(plain, NULL, 0, limit), b = say(fast, NULL, 0, limit);
            same(&a, &b, engine_vocab(plain));
            drop(&a);
            drop(&b);
        }
    }
    int32_t b = tokenizer_find(plain->tokenizer, "b");
    for (int i = 0; b >= 0 && i < 40; i++) { /* in the prompt "bb" follows "aa" */
        struct grammar *two[2] = {letters(plain, 12), letters(fast, 12)};
        plain->stops[had] = fast->stops[had] = b;
        plain->n_stops = fast->n_stops = had + 1;
        struct said x = say(plain, two[0], 1 + 0.1f * (float)i, LENGTH),
                    y = say(fast, two[1], 1 + 0.1f * (float)i, LENGTH);
        same(&x, &y, engine_vocab(plain));
        drop(&x);
        drop(&y);
        grammar_free(two[0]);
        grammar_free(two[1]);
    }
    drop(&whole);
    engine_close(fast);
    engine_close(plain);
}

/* After speculation a checkpoint, a rewind and a fork behave as without it. */
static void t_rewind(void **state)
{
    struct err e = ERR_INIT;
    struct session *s[2], *forks[2];
    struct engine *g[2];
    for (int i = 0; i < 2; i++) {
        struct generated out;
        struct generation how = {.sampling = {0.4f, 1, 30}};
        g[i] = open_with("cpu", NULL, 6 * i, STATE_FP32, false);
        s[i] = session_new(g[i], 5);
        tiny_append_text(s[i], "<s>one two one two one two one");
        assert_int_equal(generate(s[i], &how, &out, &e), 0);
        generated_free(&out);
        struct checkpoint *c = session_checkpoint(s[i]);
        assert_int_equal(generate(s[i], &how, &out, &e), 0);
        generated_free(&out);
        forks[i] = session_fork(s[i]);
        if (session_rewind(s[i], c, &e))
            fail_msg("%s", e.text);
        assert_int_equal(generate(s[i], &how, &out, &e), 0);
        generated_free(&out);
        checkpoint_free(c);
    }
    for (int k = 0; k < 2; k++) {
        struct session **pair = k ? forks : s;
        assert_int_equal(session_length(pair[0]), session_length(pair[1]));
        assert_memory_equal(session_tokens(pair[0]), session_tokens(pair[1]),
                            (size_t)session_length(pair[0]) * sizeof(int32_t));
        assert_memory_equal(session_logits(pair[0]), session_logits(pair[1]),
                            (size_t)engine_vocab(g[0]) * sizeof(float));
    }
    assert_memory_equal(session_tokens(s[1]), session_tokens(forks[1]),
                        (size_t)session_length(s[1]) * sizeof(int32_t)); /* the random numbers repeat, too */
    for (int i = 0; i < 2; i++) {
        session_free(s[i]);
        session_free(forks[i]);
        engine_close(g[i]);
    }
}

/* Nothing is proposed without memory for a copy of the state. */
static void t_no_room(void **state)
{
    struct engine *plain = open_with("cpu", NULL, 0, STATE_FP32, false),
                  *fast = open_with("cpu", NULL, 6, STATE_FP32, false);
    struct said a = say(plain, NULL, 0, LENGTH);
    struct session *s = session_new(fast, 7);
    tiny_append_text(s, "<s>to 12! to 12! to 12! click(12) click(12) true, aabb aabb true, tr");
    struct err e = ERR_INIT;
    if (session_prefill(s, &e) || session_pin(s, LENGTH + 20, &e))
        fail_msg("%s", e.text);
    fast->state_pool.bound = fast->state_pool.used;
    struct generated out;
    struct generation how = {.sampling = {0, 0.95f, LENGTH}};
    if (generate(s, &how, &out, &e))
        fail_msg("%s", e.text);
    assert_int_equal(out.n, a.out.n);
    for (int i = 0; i < out.n; i++)
        assert_int_equal(out.choices[i].id, a.out.choices[i].id);
    assert_int_equal(session_stats(s).proposed, 0);
    session_unpin(s);
    generated_free(&out);
    session_free(s);
    drop(&a);
    engine_close(fast);
    engine_close(plain);
}

/* ---- the distribution ------------------------------------------------------------------------ */

/* Counts how often replies of eight letters from {a, b} end with each group of four. */
static void count_ends(struct engine *g, int64_t seed, int *count, struct session_stats *stats)
{
    enum { SEEDS = 700, LETTERS = 8 };
    struct err e = ERR_INIT;
    struct grammar *two = letters(g, LETTERS);
    struct session *s = session_new(g, 1);
    tiny_append_text(s, "<s>ab ab aa bb ab aabb abab");
    struct checkpoint *c = session_checkpoint(s);
    for (int i = 0; i < SEEDS; i++) {
        struct generated out;
        struct generation how = {.grammar = two, .sampling = {1.5f, 1, 20}};
        if (session_rewind(s, c, &e))
            fail_msg("%s", e.text);
        session_set_rng(s, (uint64_t)(seed + i) * 7919);
        if (generate(s, &how, &out, &e))
            fail_msg("%s", e.text);
        int end = 0;
        for (int k = LETTERS - 4; k < LETTERS; k++)
            end = 2 * end + (out.text.data[k] == 'b');
        count[end]++;
        generated_free(&out);
    }
    *stats = session_stats(s);
    checkpoint_free(c);
    session_free(s);
    grammar_free(two);
}

/* Compares the two samples by chi squared. */
static void t_distribution(void **state)
{
    enum { BINS = 16 };
    struct engine *plain = open_with("cpu", NULL, 0, STATE_FP32, false),
                  *fast = open_with("cpu", NULL, 5, STATE_FP32, false);
    struct session_stats none, stats;
    int count[2][BINS] = {{0}};
    count_ends(plain, 1, count[0], &none);
    count_ends(fast, 100000, count[1], &stats);
    double chi = 0;
    for (int b = 0; b < BINS; b++) {
        double sum = count[0][b] + count[1][b], d = count[0][b] - count[1][b];
        chi += sum > 0 ? d * d / sum : 0;
    }
    check_note("%lld of %lld proposals accepted; chi squared %.1f of %d", (long long)stats.accepted,
               (long long)stats.proposed, chi, BINS - 1);
    assert_true(stats.accepted > 100 && stats.proposed > stats.accepted);
    assert_true(chi < 65); /* 15 degrees of freedom: exceeded less than once in 10^7 */
    engine_close(fast);
    engine_close(plain);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the tokens after the last match of the last tokens are proposed", t_propose),
    CLAIM("a reply with speculation is bit-identical to one without, for each CPU's kernels", t_same),
    CLAIM("proposals follow a grammar's masks and forced tokens", t_grammar),
    CLAIM("stop tokens and limits inside a proposal end the reply as without it", t_stops),
    CLAIM("a session can be rewound and forked after speculation", t_rewind),
    CLAIM("without room for a copy of the state nothing is proposed", t_no_room),
    CLAIM("speculation keeps the distribution of sampled replies", t_distribution),
};

TINY_MAIN(check_seed())
