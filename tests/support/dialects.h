/* dialects.h - loads a dialect or fails the test. To be included after check.h. */
#pragma once

#include "actions/dialect.h"

static struct dialect *dialect_need(const char *name)
{
    struct err e = ERR_INIT;
    struct dialect *d = dialect_load(name, &e);
    if (!d)
        fail_msg("%s", e.text);
    return d;
}
