/* t_prefix.c - tests the prefix cache: sessions that begin with equal tokens compute them once, with the same
 * bits as without the cache.
 */
#include "pool_check.h"
#include "tiny_check.h"

#include "base/flag.h"
#include "llm/llm.h"
#include "session/session_impl.h"

static struct engine *open_as(bool shared, enum state_storage state, enum kv_storage kv, size_t bound)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = tiny.dir,
                               .device = "cpu",
                               .threads = 1,
                               .shared = shared,
                               .state = state,
                               .any_drift = true,
                               .state_memory = bound,
                               .kv = kv};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

/* Appends tokens [first, first + n) of text number `which`. */
static void append(struct session *s, int which, int first, int n)
{
    for (int i = first; i < first + n; i++)
        assert_int_equal(session_append(s, &(int32_t){16 + (which * 53 + i * 7 + i / 31) % 256}, 1, NULL), 0);
}

/* Compares two sessions with equal tokens, one of them with the cache: `common` tokens of text 0, then a text
 * of their own up to `system`, then an image if `sees`, then `said` tokens. Returns the number of tokens
 * taken from the cache. */
static int64_t begins(struct engine *g, struct engine *plain, int which, int common, int system, int said,
                      bool sees)
{
    struct session *s[2] = {session_new(g, 1), session_new(plain, 1)};
    struct image im = tiny_image(80, 60, 1);
    for (int i = 0; i < 2; i++) {
        append(s[i], 0, 0, common);
        append(s[i], which, common, system - common);
        if (i == 0)
            assert_int_equal(session_reuse_prefix(s[i], NULL), 0);
        if (sees)
            assert_int_equal(session_append_image(s[i], &im, NULL), 0);
        append(s[i], 9, 0, said);
    }
    image_free(&im);
    pool_check_same(s[0], s[1]);
    for (int i = 0; i < 2; i++)
        append(s[i], 5, 0, 1);
    pool_check_same(s[0], s[1]);
    int64_t reused = session_stats(s[0]).reused;
    assert_int_equal(session_stats(s[0]).prefilled + reused, session_stats(s[1]).prefilled);
    session_free(s[0]);
    session_free(s[1]);
    return reused;
}

static void t_bits(void **state)
{
    uint64_t rng = check_seed() + 1;
    int64_t reused = 0;
    for (int kind = 0; kind < 3; kind++) {
        enum state_storage numbers = kind == 1 ? STATE_FP16 : STATE_FP32;
        enum kv_storage kv = kind == 2 ? KV_FP8 : KV_AUTO;
        struct engine *g = open_as(true, numbers, kv, 0), *plain = open_as(false, numbers, kv, 0);
        for (int i = 0; i < 25; i++) {
            int system = 2 + (int)(check_random(&rng) * (i % 5 ? 700 : 40));
            int common = (int)(check_random(&rng) * (system + 1)), said = (int)(check_random(&rng) * 600);
            if (i % 4 == 0) /* the last chunk would have one token */
                said = LANGUAGE_ROWS * 2 + 1 - system;
            if (i % 7 == 0)
                common = system; /* the whole text is shared */
            reused += begins(g, plain, i % 3, common, system, said, i % 3 == 0);
        }
        engine_close(g);
        engine_close(plain);
    }
    check_note("%lld tokens reused", (long long)reused);
    assert_true(reused > 1000);
}

/* Prefixes are cached in multiples of 8 tokens; at least two tokens are left to prefill. */
static void t_lengths(void **state)
{
    struct engine *g = open_as(true, STATE_FP32, KV_AUTO, 0), *plain = open_as(false, STATE_FP32, KV_AUTO, 0);
    assert_int_equal(begins(g, plain, 1, 0, 9, 3, false), 0);
    assert_int_equal(begins(g, plain, 1, 0, 10, 3, false), 8);
    assert_int_equal(g->prefixes.n, 1);
    assert_int_equal(begins(g, plain, 1, 0, 100, 0, false), 96);
    assert_int_equal(begins(g, plain, 1, 0, 100, 0, false), 96);
    assert_int_equal(g->prefixes.n, 2);
    assert_int_equal(begins(g, plain, 2, 60, 200, 5, false), 192);
    assert_int_equal(begins(g, plain, 3, 60, 200, 5, false), 192);
    assert_int_equal(g->prefixes.n, 5); /* the common 56 tokens are an entry of their own */
    int64_t before = g->prefixes.entries[2]->n, computed = 0;
    for (int i = 0; i < g->prefixes.n; i++)
        computed += session_stats(g->prefixes.entries[i]).prefilled;
    assert_int_equal(before, 192);
    assert_int_equal(computed, 8 + 88 + 192 + 56 + 136);
    for (int i = 4; i < 20; i++)
        assert_int_equal(begins(g, plain, i, 0, 100, 0, false), 96);
    assert_int_equal(g->prefixes.n, PREFIX_MAX);
    engine_close(plain);
    engine_close(g);
    g = open_as(false, STATE_FP32, KV_AUTO, 0); /* an engine without sharing caches nothing */
    plain = open_as(true, STATE_FP32, KV_AUTO, 1 << 20);
    assert_int_equal(begins(g, plain, 1, 0, 100, 0, false), 0);
    /* nor does one whose memory limit leaves no room */
    assert_int_equal(begins(plain, g, 1, 0, 100, 0, false), 0);
    engine_close(plain);
    engine_close(g);
}

static volatile int stop;
static int layers;

static void stop_soon(void *arg, int layer, struct tensor h)
{
    flag_set(&stop, layers-- <= 0);
}

static void t_stopped(void **state)
{
    struct err e = ERR_INIT;
    struct engine *g = open_as(true, STATE_FP32, KV_AUTO, 0), *plain = open_as(false, STATE_FP32, KV_AUTO, 0);
    struct session *s = session_new(g, 1), *straight = session_new(plain, 1);
    append(s, 1, 0, 600);
    append(straight, 1, 0, 600);
    session_set_cancel(s, &stop);
    g->language.watch = stop_soon;
    layers = 7; /* in the second chunk */
    assert_int_equal(session_reuse_prefix(s, &e), -1);
    assert_int_equal(e.kind, ERR_STOPPED);
    g->language.watch = NULL;
    assert_int_equal(g->prefixes.n, 0);
    flag_set(&stop, 0);
    assert_int_equal(session_reuse_prefix(s, &e), 0);
    pool_check_same(s, straight);
    session_free(s);
    session_free(straight);
    engine_close(plain);
    engine_close(g);
}

/* ---- conversations --------------------------------------------------------------------------- */

static const char system_text[] = "You work on a computer. Say what you see, and do one thing at a time.";

static uint64_t spoken(struct llm *m, const char *task, struct err *e)
{
    struct llm_request r = {.goal = GOAL_STEP, .sampling = {1, 1, 40}};
    struct generated g = {.n = 0};
    int rc = m->ops->user(m, &(struct chat_part){.text = task}, 1, CHAT_PLACE_TEMPLATE, e);
    rc = rc ? rc : m->ops->speak(m, &r, &g, e);
    uint64_t hash = rc ? 0 : g.logits_hash;
    generated_free(&g);
    return hash;
}

static void t_llms(void **state)
{
    struct err e = ERR_INIT;
    struct engine *g = open_as(true, STATE_FP32, KV_AUTO, 0), *plain = open_as(false, STATE_FP32, KV_AUTO, 0);
    struct dialect *d = dialect_load("anthropic-computer", NULL);
    struct llm *alone = llm_local(plain, d, 3), *m[2] = {llm_local(g, d, 3), llm_local(g, d, 3)};
    assert_int_equal(alone->ops->begin(alone, system_text, NULL), 0);
    uint64_t hash = spoken(alone, "open it", &e);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(m[i]->ops->begin(m[i], system_text, NULL), 0);
        assert_true(m[i]->ops->stats(m[i]).reused > 64);
        assert_true(spoken(m[i], "open it", &e) == hash);
    }
    assert_int_equal(g->prefixes.n, 1);
    flag_set(&stop, 0);
    llm_set_cancel(m[0], &stop);
    assert_int_equal(m[0]->ops->begin(m[0], system_text, NULL), 0); /* a new session keeps the stop flag */
    struct llm_mark *mark = m[0]->ops->mark(m[0], NULL);
    flag_set(&stop, 1);
    assert_true(spoken(m[0], "open it", &e) == 0 && e.kind == ERR_STOPPED);
    assert_true(spoken(m[1], "open it", &e) != 0);
    flag_set(&stop, 0);
    assert_int_equal(m[0]->ops->rewind(m[0], mark, NULL), 0);
    assert_int_equal(m[0]->ops->branch(m[0], mark, NULL), 0); /* a branch has the flag, too */
    flag_set(&stop, 1);
    e = (struct err)ERR_INIT;
    assert_true(spoken(m[0], "open it", &e) == 0 && e.kind == ERR_STOPPED);
    m[0]->ops->mark_free(mark);
    for (int i = 0; i < 2; i++)
        llm_free(m[i]);
    llm_free(alone);
    dialect_free(d);
    engine_close(plain);
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a session built on a cached prefix is bit-identical to one that prefilled everything", t_bits),
    CLAIM("prefixes are cached in whole steps, and a common part is an entry of its own", t_lengths),
    CLAIM("conversations share one cached system prompt but stop independently", t_llms),
    CLAIM("a stopped prefill leaves no cache entry and can be repeated", t_stopped),
};

TINY_MAIN(check_seed())
