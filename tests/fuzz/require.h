/* require.h - stops a fuzz target when a property does not hold. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

static void require(bool holds, const char *what)
{
    if (!holds)
        bug("%s", what);
}
