/* t_cuda_scheduler.c - tests of threads that share one engine on the device: idle sessions are spilled to
 * host memory, and each thread gets the same tokens as alone.
 */
#include "pool_check.h"
#include "threads.h"
#include "tiny_check.h"

#include "session/session_impl.h"

static void t_spilled(void **state)
{
    enum { N = 6 };
    struct threads c = {.rounds = 1, .longest = 30, .loose = true, .seed = check_seed()};
    struct played *alone = xcalloc(N, sizeof *alone);
    struct engine *g = threads_engine(&tiny, "cuda", 0, false, 1);
    size_t bound = 3 * pool_check_need(g, 512);
    for (int i = 0; i < N; i++)
        threads_alone(&c, g, i, &alone[i]);
    engine_close(g);
    g = threads_engine(&tiny, "cuda", bound, true, 1);
    threads_play(&c, g, N, alone);
    struct state_memory m = engine_state_memory(g);
    struct scheduler_stats k = engine_scheduler_stats(g);
    check_note("room for 3 of %d: %lld went to the host; %lld batches of %.2f rows", N, (long long)m.spilled,
               (long long)k.batches, (double)k.rows / (double)k.batches);
    assert_true(m.peak <= bound);
    assert_true(m.spilled > 0);
    assert_int_equal(m.used, 0);
    engine_close(g);
    free(alone);
}

/* Uses sessions with 1 to 16 pending tokens, and one with 17, which is prefilled separately. */
static void t_go_along(void **state)
{
    enum { N = 5 };
    static const int waiting[N] = {1, 16, 3, 17, 5};
    struct engine *g = tiny_open_on(&tiny, "cuda", NULL, true);
    struct session *s[N], *alone[N];
    for (int i = 0; i < N; i++)
        for (int twin = 0; twin < 2; twin++) {
            struct session *one = *(twin ? &alone[i] : &s[i]) = session_new(g, 1);
            struct err e = ERR_INIT;
            int32_t ids[64];
            for (int t = 0; t < 64; t++)
                ids[t] = 16 + (i * 31 + t * 7) % 256;
            if (session_append(one, ids, 20 + i, &e))
                fail_msg("%s", e.text);
            session_logits(one);
            if (session_append(one, ids + 30, waiting[i], &e))
                fail_msg("%s", e.text);
        }
    session_decode_batch(s, N);
    for (int i = 0; i < N; i++) {
        double off =
            tiny_distance(session_logits(s[i]), session_logits(alone[i]), engine_vocab(session_engine(s[i])));
        check_note("%d tokens: %.1e from alone", waiting[i], off);
        assert_true(off < 2e-5);
        assert_int_equal(session_stats(s[i]).decoded, waiting[i] <= 16 ? waiting[i] : 0);
        assert_int_equal(session_stats(s[i]).prefilled, 20 + i + (waiting[i] <= 16 ? 0 : waiting[i]));
        session_free(s[i]);
        session_free(alone[i]);
    }
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a batch also prefills up to 16 pending tokens of a session, with the same result", t_go_along),
    CLAIM("6 threads with memory for 3 states get the same tokens as each alone", t_spilled),
};

TINY_MAIN(check_seed())
