/* policy_spent.c - names of what a run uses up, and limits such as "50 steps". */
#include "gate/policy.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[SPENT_COUNTERS] = {"steps",   "seconds",    "tokens",
                                                  "actions", "characters", "errors"};

const char *policy_spent_name(enum policy_counter c)
{
    return names[c];
}

bool policy_spent_read(const char *text, enum policy_counter *c, double *n)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *n = strtod(text, &end);
    if (*end != ' ' || *n > 1e12)
        return false;
    for (int i = 0; i < SPENT_COUNTERS; i++) {
        if (strcmp(names[i], end + 1) != 0)
            continue;
        *c = (enum policy_counter)i;
        return true;
    }
    return false;
}
