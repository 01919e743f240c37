/* paint.h - draws a dialog as Chromium draws the page (assets/demo/kiosk.css), with FreeType instead of a
 * browser. */
#pragma once

#include "form/dialog.h"

struct canvas {
    uint32_t px[SCREEN_H][SCREEN_W]; /* 0xRRGGBB */
};

struct font; /* DejaVu Sans Mono at 26 pixels */
/* path NULL: the default of Debian, Fedora and Arch.  Returns NULL if the file does not exist. */
struct font *font_open(const char *path);
void font_close(struct font *f); /* NULL is allowed */

void paint_empty(struct canvas *c);
void paint_dialog(struct canvas *c, struct font *f, const struct dialog *d, const struct item *items, int n);
/* Draws a progress bar in the last row. */
void paint_busy(struct canvas *c, double part);

/* Returns the smallest box that contains all differences; w is 0 if there are none. */
struct box canvas_difference(const struct canvas *a, const struct canvas *b);
