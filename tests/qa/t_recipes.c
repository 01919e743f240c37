/* t_recipes.c - tests the recipes for schedulers (tests/scripts/recipes.py). */
#include "check.h"

#include <stdlib.h>

static void t_recipes(void **state)
{
    if (system("command -v python3 >/dev/null"))
        skip();
    assert_int_equal(system("python3 tests/scripts/recipes.py >&2"), 0);
}

static const struct CMUnitTest tests[] = {
    CLAIM("each recipe can be parsed, and its elements run each test once", t_recipes),
};

CHECK_MAIN()
