/* stage.h - a display with one window that records every event (helpers/xclient).
 *
 * Tests check input with that window and the X server, not with the code under test. Include after check.h.
 */
#pragma once

#include "actions/action.h"
#include "screen/screen.h"
#include "xvfb.h"

#include <X11/XKBlib.h>
#include <X11/extensions/XInput.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <jansson.h>

struct stage {
    struct xvfb x;
    struct screen *s;
    Display *other; /* the test's own connection */
    char events[160];
    json_t *seen; /* last result of stage_events() */
    long skip;
};

/* Set before opening: the window does not redraw on input, until the stage is closed. */
extern bool stage_still;
void stage_open(struct stage *t);                         /* skips the test without Xvfb */
void stage_open_sized(struct stage *t, const char *size); /* "1920x1080x24"; else 800x600 */
void stage_close(struct stage *t);

/* Waits until no event arrives, and returns those since the last stage_clear() as objects, borrowed until the
 * next call. name NULL: all except motion and raw events. */
json_t *stage_events(struct stage *t, const char *name);
void stage_clear(struct stage *t);

json_int_t field(json_t *list, size_t i, const char *name);
const char *word(json_t *list, size_t i, const char *name); /* "" if absent */

int pressed(Display *dpy);           /* keys and buttons that are down according to the server */
int borrowed_keycodes(Display *dpy); /* keysyms on the keyboard that are Unicode characters */
void pointer_at(Display *dpy, int *x, int *y);
XDevice *persons_keyboard(Display *dpy); /* the server's second keyboard, used as the user's */
XDevice *persons_mouse(Display *dpy);

struct action action_of(enum action_kind kind); /* without any point */

extern struct err why; /* reason of the last must() */
#define must(call)                                                                                           \
    do {                                                                                                     \
        if (call)                                                                                            \
            fail_msg("%s: %s", #call, why.text);                                                             \
    } while (0)
