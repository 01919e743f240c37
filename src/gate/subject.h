/* subject.h - which points an action would touch, in the executor's root pixels.
 *
 * Pure: no X requests.  The gate fills in the windows.
 */
#ifndef HOLORUN_GATE_SUBJECT_H
#define HOLORUN_GATE_SUBJECT_H

#include "gate/policy.h"

enum { SUBJECT_CORNERS = ACTION_MAX_PATH };

struct subject { /* with the corners that s borrows */
    struct policy_subject s;
    int corners[2 * SUBJECT_CORNERS];
};

struct subject_root {
    int w, h;           /* of the root window: points outside are clamped, as events are */
    const int *pointer; /* x, y: where actions without a place act; NULL: unknown */
};

/* Targets: start and end of a drag, the place of a pointer action or of typing into a place; key actions
 * have one without a place, the focused window. */
void subject_build(struct subject *out, const struct action *a, const struct view_transform *p,
                   const struct subject_root *root);

/* Keys that are down after the action, given those before. */
void subject_update_held(const struct action *a, uint32_t held[POLICY_MAX_KEYS], int *n);

#endif
