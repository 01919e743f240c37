/* redact.h - covers fields into which a secret was typed in every later picture.
 *
 * The field is found by what typing has changed inside the window; if nothing changed, a band of the window
 * around the typing position, or all of it, is taken.  In every later picture, the model's and the recorded
 * one, the field is filled with its mean colour from before, with stripes, so that neither the text nor its
 * exact length shows.  This ends when the window is gone; where another window covers the field, that one
 * is shown.  The field follows the innermost window that holds the text, also when that moves, is hidden and
 * shown again, or gets another parent.  Wherever the same characters appear (copies.h), they are covered too.
 *
 * The fields of one display may be shared by several screens and threads: a picture that another thread took
 * while a secret was being typed is covered once that has ended.
 */
#ifndef HOLORUN_GATE_REDACT_H
#define HOLORUN_GATE_REDACT_H

#include "screen/screen.h"

struct redact;

enum { REDACT_FIELDS = 32 };

struct redact *redact_new(void);
void redact_free(struct redact *r); /* NULL is fine */

/* Before typing, and after it (waits until the text has been drawn).  x, y: where it was typed in root
 * pixels, or -1.  -1 with e: the screen cannot be captured; before typing: then the secret must not be
 * typed. */
int redact_before(struct redact *r, struct screen *s, struct err *e);
int redact_after(struct redact *r, struct screen *s, const struct screen_window *w, int x, int y,
                 struct err *e);
/* In place of redact_after(): nothing was typed. */
void redact_untyped(struct redact *r);
/* Returns whether any field is covered. */
bool redact_has_fields(struct redact *r);

/* Later changes are not the field's.  Until then the field grows with every picture that shows more of it;
 * to be called before the next action. */
void redact_seal(struct redact *r);

/* Ends what this screen has begun: it is about to be closed, or its run has ended. */
void redact_leave(struct redact *r, const struct screen *s);

/* Covers the fields in a capture of the screen's view, in place. */
void redact_image(struct redact *r, struct screen *s, struct image *im);

/* Paints over a part of a picture as over a field; part: in pixels of the picture. */
void redact_paint(struct image *im, struct screen_rect part, const uint8_t colour[3]);

#endif
