/* stage.h - a display with one window on it that writes down every event (helpers/xclient).
 *
 * What is asserted about input comes from that window and from the X server, never from the code
 * under test.  To be included after check.h.
 */
#ifndef HOLORUN_TESTS_STAGE_H
#define HOLORUN_TESTS_STAGE_H

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
    Display *other; /* the test's own eyes */
    char events[160];
    json_t *seen; /* what stage_events() returned last */
    long skip;
};

/* The window shows each press; set before opening, it stays as it is until the stage is closed. */
extern bool stage_still;
void stage_open(struct stage *t);                         /* skips the test where there is no Xvfb */
void stage_open_sized(struct stage *t, const char *size); /* "1920x1080x24"; else 800x600 */
void stage_close(struct stage *t);

/* Events since the last stage_clear(), as objects; borrowed until the next call.  Only those named
 * `name`; NULL: all but motion and raw ones.  Waits until nothing new comes. */
json_t *stage_events(struct stage *t, const char *name);
void stage_clear(struct stage *t);

json_int_t field(json_t *list, size_t i, const char *name);
const char *word(json_t *list, size_t i, const char *name); /* "" when absent */

int pressed(Display *dpy);           /* keys and buttons the server has down */
int borrowed_keycodes(Display *dpy); /* keysyms on the keyboard that are Unicode characters */
void pointer_at(Display *dpy, int *x, int *y);
XDevice *persons_keyboard(Display *dpy); /* the server's other keyboard plays the person */
XDevice *persons_mouse(Display *dpy);

struct action action_of(enum action_kind kind); /* without any point */

extern struct err why; /* of the last must() */
#define must(call)                                                                                           \
    do {                                                                                                     \
        if (call)                                                                                            \
            fail_msg("%s: %s", #call, why.text);                                                             \
    } while (0)

#endif
