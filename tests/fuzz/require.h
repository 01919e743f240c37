/* require.h - stops a fuzz target when a property does not hold. */
#ifndef HOLORUN_TESTS_REQUIRE_H
#define HOLORUN_TESTS_REQUIRE_H

#include "base/err.h"

#include <stdbool.h>

static void require(bool holds, const char *what)
{
    if (!holds)
        bug("%s", what);
}

#endif
