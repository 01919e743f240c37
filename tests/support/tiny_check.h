/* tiny_check.h - tests of a tiny model: one `tiny` for all tests of a program or a new one for each, and an
 * `engine` over it for each test.
 *
 *     static const struct CMUnitTest tests[] = {
 *         WITH_MODEL("a fork is equal and independent", t_fork),           a new model;
 *         WITH_MODEL_F32: opened in f32
 *     };
 *     TINY_MAIN(check_seed())                                              or: a model for all of them
 */
#pragma once

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
    return tiny_ready(false);
}

__attribute__((unused)) static int tiny_setup_f32(void **state)
{
    return tiny_ready(true);
}

__attribute__((unused)) static int tiny_teardown(void **state)
{
    engine_close(engine);
    tiny_free(&tiny);
    return 0;
}

__attribute__((unused)) static void tiny_begin(uint64_t seed)
{
    place_make();
    tiny_init(&tiny, seed);
    tiny_write(&tiny);
}

/* CHECK_MAIN() with a model on disk that the claims open as they need it. */
#define TINY_MAIN(seed) CHECK_MAIN_WITH(tiny_begin(seed), tiny_free(&tiny))
