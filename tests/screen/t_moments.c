/* t_moments.c - tests that runs stopped at random moments leave nothing behind. `make stop-latency` measures
 * the time; this test only requires less than seconds.
 */
#include "check.h"
#include "moments.h"

static void t_moments(void **state)
{
    struct moments m;
    struct moment got;
    uint64_t rng = check_seed();
    double worst = 0, end = 0;
    if (moments_open(&m))
        skip();
    for (int k = 0; k < DOINGS + 2; k++) {
        enum gesture how = (enum gesture)(check_random(&rng) * GESTURES);
        double ms = check_random(&rng) * 900;
        do {
            moments_start(&m, (enum doing)(k % DOINGS));
        } while (moments_stop(&m, how, ms, &got));
        if (*got.wrong || got.silence_ms > 1000)
            fail_msg("%s, gesture %d after %.0f ms: silent after %.0f ms; %s", doing_names[k % DOINGS], how,
                     ms, got.silence_ms, got.wrong);
        worst = got.silence_ms > worst ? got.silence_ms : worst;
        end = got.end_ms > end ? got.end_ms : end;
    }
    moments_close(&m);
    check_note("silent after at most %.0f ms, ended after %.0f ms", worst, end);
}

static const struct CMUnitTest tests[] = {
    CLAIM("stopped at any moment: no key pressed, no keycode borrowed, exit code 130, complete record",
          t_moments),
};

CHECK_MAIN()
