/* python_in.h - reads Python calls with literal arguments; anything else is rejected.  Nothing is
 * executed. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

struct python_in {
    const char *at, *end;
    bool cut; /* rejected because it is truncated */
    struct err *e;
};

struct python_call {
    char name[64]; /* dotted: "pyautogui.click" */
    bool called;   /* false: a name alone, such as DONE */
    int times;     /* 1, or n of "for _ in range(n):" */
    json_t *list;  /* positional arguments */
    json_t *keywords;
};

/* Reads the next statement of a script; imports, comments and empty lines are skipped.  Returns 1, 0 at the
 * end, -1 if it is rejected.  Free the call with python_call_free(). */
int python_next(struct python_in *in, struct python_call *call);
/* Reads one call, NAME(ARGUMENTS), and leaves the text after it.  Returns 0, -1 if it is rejected. */
int python_read_call(struct python_in *in, struct python_call *call);
void python_call_free(struct python_call *call);
