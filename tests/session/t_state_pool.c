/* t_state_pool.c - tests sessions under a limit of state memory on the CPU, where nothing can be spilled: a
 * session that does not fit is refused, and batches change no bit. t_cuda_state_pool.c tests the same on a
 * GPU.
 */
#include "pool_check.h"
#include "tiny_check.h"

#include "session/generate.h"
#include "session/session_impl.h"

static void no_memory_left(struct engine *g)
{
    assert_int_equal(engine_state_memory(g).used, 0);
}

static void append(struct session *s, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(session_append(s, &(int32_t){16 + i % 256}, 1, NULL), 0);
}

/* Returns the id of the largest logit. */
static int32_t likeliest(struct session *s)
{
    const float *logits = session_logits(s);
    int32_t best = 16;
    for (int32_t i = 17; i < 272; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* Appends a prompt of 1 to 1,200 tokens; some are longer than a prefill chunk. */
static void prompt(struct session *s, int i)
{
    uint64_t rng = check_seed() * 77 + (uint64_t)i * 1001;
    int n = i ? 1 + (int)(check_random(&rng) * 1200) : 1;
    for (int t = 0; t < n; t++)
        assert_int_equal(session_append(s, &(int32_t){16 + (int32_t)(check_random(&rng) * 256)}, 1, NULL), 0);
}

static void t_many(void **state)
{
    enum { N = 24, TOKENS = 4 };
    struct engine *g = pool_check_engine(&tiny, "cpu", 0);
    size_t bound = N * pool_check_need(g, 1536);
    static int32_t alone[N][TOKENS];
    for (int i = 0; i < N; i++) {
        struct session *s = session_new(g, 1);
        prompt(s, i);
        for (int t = 0; t < TOKENS; t++) {
            alone[i][t] = likeliest(s);
            assert_int_equal(session_append(s, &alone[i][t], 1, NULL), 0);
        }
        session_free(s);
    }
    engine_close(g);
    g = pool_check_engine(&tiny, "cpu", bound);
    struct session *s[N];
    for (int i = 0; i < N; i++)
        prompt(s[i] = session_new(g, 1), i);
    for (int t = 0; t < TOKENS; t++) {
        session_decode_batch(s, N);
        for (int i = 0; i < N; i++) {
            assert_int_equal(likeliest(s[i]), alone[i][t]);
            assert_int_equal(session_append(s[i], &alone[i][t], 1, NULL), 0);
        }
    }
    struct state_memory m = engine_state_memory(g);
    check_note("%d sessions, %zu of %zu bytes at most", N, m.peak, m.bound);
    assert_true(m.peak <= bound && m.peak > bound / 3);
    assert_int_equal(m.spilled, 0);
    for (int i = 0; i < N; i++)
        session_free(s[i]);
    no_memory_left(g);
    engine_close(g);
}

static void t_refused(void **state)
{
    struct err e = ERR_INIT;
    struct engine *g = pool_check_engine(&tiny, "cpu", 0);
    size_t one = pool_check_need(g, 512), two = pool_check_need(g, 1024);
    engine_close(g);
    g = pool_check_engine(&tiny, "cpu", one + 1000); /* room for neither a checkpoint nor more tokens */
    struct session *a = session_new(g, 1), *b = session_new(g, 1);
    append(a, 500);
    append(b, 20);
    assert_int_equal(session_compute_logits(a, &e), 0);
    assert_int_equal(session_compute_logits(b, &e), -1);
    assert_non_null(strstr(e.text, "not enough memory"));
    assert_int_equal(e.kind, ERR_ENV);
    assert_null(session_try_checkpoint(a, &e));
    assert_null(session_try_fork(a, &e));
    struct generated out;
    struct sampling p = {.max_tokens = 3};
    assert_int_equal(generate(b, &(struct generation){.sampling = p}, &out, &e), -1);
    generated_free(&out);
    append(a, 100); /* growing is refused, and the session keeps its tokens */
    assert_int_equal(session_compute_logits(a, &e), -1);
    assert_int_equal(session_pending(a), 100);
    assert_int_equal(engine_state_memory(g).used, one);
    session_free(a);
    no_memory_left(g);
    assert_int_equal(session_compute_logits(b, &e), 0);
    session_free(b);
    no_memory_left(g);
    engine_close(g);

    g = pool_check_engine(&tiny, "cpu", two); /* growing needs the old and the new buffer at the same time */
    a = session_new(g, 1);
    append(a, 500);
    assert_int_equal(session_compute_logits(a, &e), 0);
    append(a, 100);
    assert_int_equal(session_compute_logits(a, &e), -1);
    assert_int_equal(engine_state_memory(g).used, one);
    session_free(a);
    engine_close(g);

    struct engine_options o = {.dir = tiny.dir, .device = "cpu", .threads = 1, .state_memory = 1000};
    assert_null(engine_open(&o, &e));
    assert_non_null(strstr(e.text, "one session takes"));
    assert_int_equal(e.kind, ERR_USAGE);
}

static const struct CMUnitTest tests[] = {
    CLAIM("24 sessions that decode in batches write what each writes alone, and free their memory", t_many),
    CLAIM("beyond the limit there is an error, and the existing tokens stay", t_refused),
};

TINY_MAIN(check_seed())
