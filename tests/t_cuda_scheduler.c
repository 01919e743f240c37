/* t_cuda_scheduler.c - claims about threads that share one engine on the device: who is idle goes to the
 * host's memory, and everybody writes what he would alone.
 */
#include "pool_check.h"
#include "threads.h"
#include "tiny_check.h"

#include "session/session_impl.h"

#include <pthread.h>

static void t_spilled(void **state)
{
    (void)state;
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

static const struct CMUnitTest tests[] = {
    CLAIM("6 threads with room for 3 states write what each writes alone", t_spilled),
};

int main(int argc, char **argv)
{
    return tiny_main(argc, argv, check_seed(), tests, sizeof tests / sizeof *tests);
}
