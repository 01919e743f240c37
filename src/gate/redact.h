/* redact.h - fields into which a secret was typed, taken out of every picture from then on.
 *
 * Nobody says where on the screen a field is.  What typing has changed inside the window is taken for it, and
 * where nothing changed a band of the window at the place that was typed into, or all of it.  In every later
 * picture, the model's as well as the recorded one, the field is filled with one colour of the time before, with
 * stripes, so that nothing of what was typed is left, and its length only roughly.  That ends when the window is
 * gone; while another window lies over the field, that one is shown.  A field that was scrolled away is looked
 * for: wherever the same pixels are, they are taken out.
 */
#ifndef HOLORUN_GATE_REDACT_H
#define HOLORUN_GATE_REDACT_H

#include "screen/screen.h"

struct redact;

enum { REDACT_FIELDS = 16 };

struct redact *redact_new(struct screen *s); /* borrowed */
void redact_free(struct redact *r);          /* NULL is fine */

/* Around typing: the screen before, and the screen when what was typed is seen (a program may take its time).  x, y:
 * root pixels of the place typed into, or -1.  -1 when the screen cannot be seen: then it is not to be typed. */
int redact_before(struct redact *r, struct err *e);
int redact_after(struct redact *r, const struct screen_window *w, int x, int y, struct err *e);

/* What changes from now on is not the field's.  Until then every picture that shows more of it makes it grow: to be
 * called before something else is done to the screen. */
void redact_seal(struct redact *r);

/* A capture of the screen's view, in place. */
void redact_image(struct redact *r, struct image *im);

/* Painted over as a field is; part: in pixels of the picture. */
void redact_paint(struct image *im, struct screen_rect part, const uint8_t colour[3]);

int redact_fields(const struct redact *r);                      /* how many there are */
struct screen_rect redact_field(const struct redact *r, int i); /* in root pixels, where it was seen last */

#endif
