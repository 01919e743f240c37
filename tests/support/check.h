/* check.h - cmocka with descriptive test names and random order.
 *
 *     static const struct CMUnitTest tests[] = {
 *         CLAIM("a chunked scan equals the recurrence", t_scan),
 *     };
 *     CHECK_MAIN()
 *
 * CLAIM_WITH adds a setup and a teardown function.
 *
 * Each test prints its name; check_note() prints figures below it. The order is random: the seed is printed,
 * and HOLORUN_TEST_SEED=n repeats it; check_seed() seeds random data inside a test. An argument runs the
 * tests whose name contains it; --list lists the names.
 */
#pragma once

#include "place.h"

/* cmocka.h needs these headers first */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#ifdef assert_int_in_range /* cmocka 2 */
#undef assert_in_range
#define assert_in_range assert_int_in_range
#undef stop
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
enum { CHECK_SANITIZED = 1 }; /* the sanitizer changes memory use and times */
#else
enum { CHECK_SANITIZED = 0 };
#endif

#define CLAIM(text, fn) CLAIM_WITH(text, fn, NULL, NULL)
#define CLAIM_WITH(text, fn, setup, teardown)                                                                \
    {                                                                                                        \
        (text), (fn), (setup), (teardown), NULL                                                              \
    }
#define check_note(...) (printf("           "), printf(__VA_ARGS__), putchar('\n'))

__attribute__((unused)) static uint64_t check_seed(void)
{
    static uint64_t seed;
    if (!seed) {
        char now[24];
        snprintf(now, sizeof now, "%lld", (long long)time(NULL));
        setenv("HOLORUN_TEST_SEED", now, 0); /* for this function in other sources, a second later */
        seed = strtoull(getenv("HOLORUN_TEST_SEED"), NULL, 10);
        seed = seed ? seed : 1;
    }
    return seed;
}

/* xorshift64*: uniform in [0, 1) */
__attribute__((unused)) static double check_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 0x2545F4914F6CDD1Dull) >> 11) / 9007199254740992.0;
}

__attribute__((unused)) static double check_within(uint64_t *state, double low, double high)
{
    return low + check_random(state) * (high - low);
}

/* Returns an integer from 0 to n - 1. */
__attribute__((unused)) static int check_below(uint64_t *state, int n)
{
    return (int)(check_random(state) * n);
}

/* Fails the test unless the text contains each of the others. */
#define check_has(text, ...) check_has_all(text, (const char *const[]){__VA_ARGS__, NULL})
__attribute__((unused)) static void check_has_all(const char *text, const char *const *parts)
{
    for (; *parts; parts++)
        if (!strstr(text, *parts))
            fail_msg("it lacks: %s\nin: %.4000s", *parts, text);
}

/* Returns the larger of two differences. A NaN is the largest, while fmax would drop it. */
__attribute__((unused)) static double check_worse(double a, double b)
{
    return isnan(a) || isnan(b) ? INFINITY : fmax(a, b);
}

/* Returns how often text has the part. */
__attribute__((unused)) static int check_count(const char *text, const char *part)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
        n++;
    return n;
}

/* Returns the root mean square of differences relative to that of the values. */
__attribute__((unused)) static double check_relative(double squares, double squares_of_all)
{
    double relative = sqrt(squares / squares_of_all);
    return isfinite(relative) ? relative : INFINITY;
}

/* Fails unless `have` is within the fraction `part` of `want`. */
__attribute__((unused)) static void check_about(const char *what, double have, double want, double part)
{
    if (!(fabs(have - want) <= part * want))
        fail_msg("%s: %.6g instead of %.6g", what, have, want);
}

__attribute__((unused)) static int check_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
    struct CMUnitTest *run = malloc(n * sizeof *run);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (argc > 1 && !strcmp(argv[1], "--list"))
            puts(tests[i].name);
        else if (argc < 2 || strstr(tests[i].name, argv[1]))
            run[m++] = tests[i];
    }
    if (m)
        place_make();
    uint64_t state = check_seed();
    for (size_t i = m; i > 1; i--) {
        size_t j = (size_t)(check_random(&state) * (double)i);
        struct CMUnitTest t = run[i - 1];
        run[i - 1] = run[j];
        run[j] = t;
    }
    int failed = 0;
    if (m) {
        printf("seed %llu\n", (unsigned long long)check_seed());
        fflush(stdout);
        failed = _cmocka_run_group_tests(argv[0], run, m, NULL, NULL);
    }
    free(run);
    return failed != 0;
}

/* Defines main(), which runs `tests`; the argument is a statement to run before them. */
#define CHECK_MAIN(...) CHECK_MAIN_WITH(__VA_ARGS__, )
/* As CHECK_MAIN(), with a statement to run after them, too. */
#define CHECK_MAIN_WITH(before, after)                                                                       \
    int main(int argc, char **argv)                                                                          \
    {                                                                                                        \
        before;                                                                                              \
        int rc = check_main(argc, argv, tests, sizeof tests / sizeof *tests);                                \
        after;                                                                                               \
        return rc;                                                                                           \
    }
