/* exec.h - performs an action on the screen. */
#pragma once

#include "actions/action.h"
#include "screen/screen.h"

struct exec_result {
    int events;
    double ms;
    /* static text about the part of a performed action that could not be confirmed; or NULL */
    const char *unsure;
};

struct view_transform { /* root pixel = o + image pixel * s */
    double ox, oy, sx, sy;
};
/* Performs one action.  The stop flag is checked before every event (FAULT_STOPPED); on any failure all keys
 * and buttons that this action holds are released.  Returns FAULT_NONE or a fault with e. */
enum action_fault action_execute(struct screen *s, const struct action *a, const struct view_transform *p,
                                 struct exec_result *r, struct err *e);

/* Computes the root pixel of a pixel of the image; the screen clamps points outside the root window. */
void action_root_point(const struct view_transform *p, int32_t x, int32_t y, int *root_x, int *root_y);
