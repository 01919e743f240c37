/* plan_windows.h - snapshots of windows for tests of the planner. */
#pragma once

#include "atspi/roles.h"
#include "planner/planner.h"

#define ON     (1ULL << STATE_SHOWING | 1ULL << STATE_SENSITIVE | 1ULL << STATE_ENABLED)
#define ACTIVE (ON | 1ULL << STATE_ACTIVE)
#define EDITOR (ON | 1ULL << STATE_EDITABLE | 1ULL << STATE_FOCUSED | 1ULL << STATE_MULTI_LINE)
#define TICKED (ON | 1ULL << STATE_CHECKED)
#define FIELD  (ON | 1ULL << STATE_EDITABLE)
#define AT(y)  .rect = {100, y, 80, 20}
#define CLOSED .trust = PLACE_NONE
#define WINDOW(title)                                                                                        \
    {                                                                                                        \
        .role = "frame", .name = title, .states = ACTIVE, .rect = {0, 0, 400, 400}, .parent = -1             \
    }

/* Sets ref, depth and missing texts of n elements, and returns them as a snapshot. */
struct snapshot plan_complete(struct element *e, int n);
/* Returns a window by its name in plan_windows.c. */
struct snapshot plan_window(const char *name);
/* Returns the steps as text, after "not sure: " if a user must confirm them, or the reason; the caller frees
 * it. */
char *plan_text(const struct snapshot *s, const char *task, bool proposal);
