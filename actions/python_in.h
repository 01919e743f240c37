/* python_in.h - the little of Python that pyautogui scripts need. Private to actions/.
 *
 * Calls with literal arguments, one a statement.  It is read, never run: whatever is not in this
 * grammar is refused.
 */
#ifndef HOLORUN_ACTIONS_PYTHON_IN_H
#define HOLORUN_ACTIONS_PYTHON_IN_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct python_in {
    const char *at, *end;
    bool cut; /* what was refused is not finished, rather than not understood */
    struct err *e;
};

struct python_call {
    char name[64]; /* dotted: "pyautogui.click" */
    bool called;   /* false: a name alone, such as DONE */
    int times;     /* 1, or n of "for _ in range(n):" */
    json_t *list;  /* positional arguments */
    json_t *keywords;
};

/* The next statement; imports, comments and empty lines are passed over. 1 read, 0 at the end, -1 refused.
 * The caller drops it with python_call_free. */
int python_next(struct python_in *in, struct python_call *call);
void python_call_free(struct python_call *call);

#endif
