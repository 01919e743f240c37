/* tiny_check.h - tests of a tiny model: one `tiny` for all tests of a program or a new one for each, and an
 * `engine` over it for each test.
 *
 *     static const struct CMUnitTest tests[] = {
 *         WITH_MODEL("a fork is equal and independent", t_fork),           a new model;
 *         WITH_MODEL_F32: opened in f32
 *     };
 *     int main(int argc, char **argv)                                      or: one model for all
 *     {
 *         return tiny_main(argc, argv, check_seed(), tests, sizeof tests / sizeof *tests);
 *     }
 */
#ifndef HOLORUN_TESTS_TINY_CHECK_H
#define HOLORUN_TESTS_TINY_CHECK_H

#include "check.h"
#include "tiny_model.h"

static struct tiny tiny;
__attribute__((unused)) static struct engine *engine;

#define WITH_MODEL(text, fn)     CLAIM_WITH(text, fn, tiny_setup, tiny_teardown)
#define WITH_MODEL_F32(text, fn) CLAIM_WITH(text, fn, tiny_setup_f32, tiny_teardown)

__attribute__((unused)) static int tiny_ready(bool f32)
{
    tiny_init(&tiny, check_seed());
    tiny_write(&tiny);
    engine = tiny_open(&tiny, NULL, 1, f32);
    return 0;
}

__attribute__((unused)) static int tiny_setup(void **state)
{
    (void)state;
    return tiny_ready(false);
}

__attribute__((unused)) static int tiny_setup_f32(void **state)
{
    (void)state;
    return tiny_ready(true);
}

__attribute__((unused)) static int tiny_teardown(void **state)
{
    (void)state;
    engine_close(engine);
    tiny_free(&tiny);
    return 0;
}

/* Writes a model that the tests open as needed, then calls check_main(). */
__attribute__((unused)) static int tiny_main(int argc, char **argv, uint64_t seed,
                                             const struct CMUnitTest *tests, size_t n)
{
    place_make();
    tiny_init(&tiny, seed);
    tiny_write(&tiny);
    int rc = check_main(argc, argv, tests, n);
    tiny_free(&tiny);
    return rc;
}

#endif
