/* observed.h - detects that the screen has changed since the screenshot on which a decision was based.
 *
 * A model takes seconds to reply. Meanwhile dialogs open, windows take the focus, lists scroll. After
 * observed_take() each event that presses something is checked against the screen as it was then:
 *
 *   buttons   When the pointer moves to the target, the window there must be the observed one at its old
 *             position (or moved with the view that follows it), and the pixels around the target must be
 *             the same. Just before the press the window under the pointer is checked once more.
 *   wheel     the window only
 *   keys      The focus must be in the same top-level window, or in one that was pressed since. If that
 *             window has another title, most of its pixels must be the same.
 *
 * If something differs, the event fails with ERR_FAILED, and observed_changed() returns the reason. Releases
 * are always allowed.
 *
 * Pixels are compared as shapes against their background, so that hover and focus highlights, carets, and
 * areas that change continuously (animations, clocks) are ignored. Not detected: changes of colour only,
 * changes away from the target, and a focus that moved to another element of the same window. */
#pragma once

#include "screen/screen.h"

enum observed_reason {
    OBSERVED_SAME,
    OBSERVED_WINDOW, /* another window is at the target */
    OBSERVED_MOVED,  /* the window under the target has moved */
    OBSERVED_PIXELS, /* the same window shows something else there */
    OBSERVED_FOCUS,  /* keys would go to another window */
    OBSERVED_CONTENT /* the focused window has another title and shows something else */
};

struct observed_change {
    enum observed_reason reason;
    char text[300]; /* "another window ('Chat') is at the target now"; UTF-8 */
};

/* Records the screen as captured by the last screen_capture(); call it right after that. frame: the image
 * that it returned, borrowed. Takes 1 to 4 ms. */
void observed_take(struct screen *s, const struct image *frame);
/* Does the same if an observation exists; otherwise nothing. */
void observed_renew(struct screen *s, const struct image *frame);
/* Discards the observation: events are no longer compared. */
void observed_drop(struct screen *s);

/* Suffixes of the reason in messages for the model. */
#define OBSERVED_NOTHING "; nothing was pressed"
#define OBSERVED_PARTLY  "; the rest of the action was not done"

/* Returns why an event was refused since the last observed_take(), or NULL. */
const struct observed_change *observed_changed(const struct screen *s);
const char *
observed_reason_name(enum observed_reason r); /* Returns "window", "moved", "pixels", "focus" or "content". */
/* Returns the number of buttons and keys pressed since the last observed_take(). */
int observed_presses(const struct screen *s);

/* Sets *changed to whether the view has moved since the last observed_take(), or shows something else in r
 * (root pixels). Carets and areas that change by themselves are ignored. Returns -1 with e if the display is
 * lost. */
int observed_view_changed(struct screen *s, struct screen_rect r, bool *changed, struct err *e);

double observed_age_ms(const struct screen *s); /* Returns the ms since observed_take(). */

/* Detaches the observation from its screen, for example to attach it to another connection to the same
 * display. Returns NULL if there is none; the caller owns the result. */
struct observed *observed_detach(struct screen *s);
/* Takes ownership of o and frees the screen's own observation. */
void observed_attach(struct screen *s, struct observed *o);
void observed_free(struct observed *o); /* NULL is allowed. */
