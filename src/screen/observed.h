/* observed.h - whether the screen is still the one that a decision was made on.
 *
 * A model thinks for seconds.  Meanwhile dialogs open, windows take the keyboard, lists scroll.  After
 * observed_take() each event that presses something is compared with the screen as it was then:
 *
 *   buttons   When the pointer is sent to a place: the window there must be the observed one, where it was
 *             (or moved with the view that follows it), and the pixels around the place must show the same.
 *             Just before the press the window under the pointer is read once more.
 *   wheel     the window only
 *   keys      The keyboard must be in the same top-level window, or in one that was pressed since.  If
 *             that window has another title, most of its pixels must be the same.
 *
 * When something differs the event fails with ERR_FAILED and observed_changed() says why.  Releases always
 * pass.
 *
 * Pixels are compared as shapes against their background, so that highlights of hover and focus, carets, and
 * places that change all the time (animations, clocks) do not count.  Not noticed are changes of colour only,
 * changes away from the target, and keys that another element of the same window gets.
 */
#ifndef HOLORUN_SCREEN_OBSERVED_H
#define HOLORUN_SCREEN_OBSERVED_H

#include "screen/screen.h"

enum observed_reason {
    OBSERVED_SAME,
    OBSERVED_WINDOW, /* another window is at the target */
    OBSERVED_MOVED,  /* the window under the target has moved */
    OBSERVED_PIXELS, /* the same window shows something else there */
    OBSERVED_FOCUS,  /* keys would go to another window */
    OBSERVED_CONTENT /* the window that gets the keys has another title and shows something else */
};

struct observed_change {
    enum observed_reason reason;
    char text[300]; /* "another window ('Chat') is at the target now"; UTF-8 */
};

/* Remembers the screen as the last screen_capture() got it; call it right after that.  frame: the image that
 * it returned, borrowed.  Takes 1 to 4 ms. */
void observed_take(struct screen *s, const struct image *frame);
void observed_renew(struct screen *s, const struct image *frame); /* the same, if there is one already */
/* From now on nothing is compared. */
void observed_drop(struct screen *s);

/* Texts for the model, which follow the reason. */
#define OBSERVED_NOTHING "; nothing was pressed"
#define OBSERVED_PARTLY  "; the rest of the action was not done"

/* Why an event was refused since the last observed_take(); NULL: none was. */
const struct observed_change *observed_changed(const struct screen *s);
const char *
observed_reason_name(enum observed_reason r); /* "window", "moved", "pixels", "focus", "content" */
/* Presses of buttons and keys that passed since the last observed_take(). */
int observed_presses(const struct screen *s);

double observed_age_ms(const struct screen *s); /* since observed_take() */

/* An observation apart from its screen: it may be handed to another connection to the same display.  NULL:
 * there is none. */
struct observed *observed_detach(struct screen *s);
void observed_attach(struct screen *s, struct observed *o); /* takes o over in place of its own */
void observed_free(struct observed *o);                     /* NULL is fine */

#endif
