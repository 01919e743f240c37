/* redact.h - covers fields that contain a typed secret in every later image.
 *
 * A field is located by the pixels that typing has changed inside the window; if nothing changed, a band of
 * the window around the typing position, or all of the window, is used. In every later image, for the model
 * and for the record, the field is filled with its mean colour from before and stripes, so that neither the
 * text nor its exact length is visible. This ends when the window is closed; if another window covers the
 * field, that window is shown. The field follows the innermost window that contains the text, also when that
 * window moves, is hidden and shown again, or gets another parent. Further occurrences of the same characters
 * (copies.h) are covered too.
 *
 * The fields of one display may be shared by several screens and threads: an image captured by another thread
 * while a secret is being typed is covered after the typing has ended. */
#pragma once

#include "screen/screen.h"

struct redact;

enum { REDACT_FIELDS = 32 };

struct redact *redact_new(void);
void redact_free(struct redact *r); /* NULL is allowed. */

/* Enclose the typing of a secret; redact_after() waits until the text has been drawn. x, y: typing position
 * in root pixels, or -1. Return -1 with e if the screen cannot be captured; after a failed redact_before()
 * the secret must not be typed. */
int redact_before(struct redact *r, struct screen *s, struct err *e);
int redact_after(struct redact *r, struct screen *s, const struct screen_window *w, int x, int y,
                 struct err *e);
/* Replaces redact_after() if nothing was typed. */
void redact_untyped(struct redact *r);
/* Returns whether any field is covered. */
bool redact_has_fields(struct redact *r);

/* Fixes the size of the last field, which until then grows whenever an image shows more of the typed text.
 * Call it before the next action. */
void redact_seal(struct redact *r);

/* Ends the typing of a secret if this screen has begun one; call it when the screen closes or its run
 * ends. */
void redact_leave(struct redact *r, const struct screen *s);

/* Covers the fields in a screenshot of the screen's view, in place. */
void redact_image(struct redact *r, struct screen *s, struct image *im);

/* Paints over a part of an image in the style of a covered field; part: pixels of the image. */
void redact_paint(struct image *im, struct screen_rect part, const uint8_t colour[3]);
