/* subject.h - what an action would touch, in the numbers the executor will use.
 *
 * Pure: places only.  Whoever can see the screen fills in the windows (gate.h).
 */
#ifndef HOLORUN_GATE_SUBJECT_H
#define HOLORUN_GATE_SUBJECT_H

#include "gate/policy.h"

enum { SUBJECT_CORNERS = ACTION_MAX_PATH };

struct subject { /* a policy's subject and what it borrows */
    struct policy_subject s;
    int corners[2 * SUBJECT_CORNERS];
};

/* The pointer is where an action without a place acts; NULL: not known. */
struct subject_root {
    int w, h; /* of the root window: places outside are clamped to it, as events are */
    const int *pointer;
};

/* Targets: a drag has its start and its end, a pointer's action its place, one of keys none placed but the
 * window that has the keyboard, typing into a place that place. */
void subject_make(struct subject *out, const struct action *a, const struct exec_place *p,
                  const struct subject_root *root);

/* Keys that are down after the action, given those before. */
void subject_hold(const struct action *a, uint32_t held[POLICY_MAX_KEYS], int *n);

#endif
