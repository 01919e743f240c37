/* paint.h - a dialog in pixels, as Chromium draws the page: assets/demo/kiosk.css with FreeType instead
 * of a browser. */
#ifndef HOLORUN_TESTS_FORM_PAINT_H
#define HOLORUN_TESTS_FORM_PAINT_H

#include "form/dialog.h"

struct canvas {
    uint32_t px[SCREEN_H][SCREEN_W]; /* 0xRRGGBB */
};

struct font; /* DejaVu Sans Mono at 26 pixels */
/* path: NULL: where Debian, Fedora and Arch have it.  NULL when it is not there. */
struct font *font_open(const char *path);
void font_close(struct font *f); /* NULL is fine */

void paint_empty(struct canvas *c);
void paint_dialog(struct canvas *c, struct font *f, const struct dialog *d, const struct item *items, int n);
/* A bar along the last row, `part` of it full: the page is busy. */
void paint_busy(struct canvas *c, double part);

/* The smallest box that holds what differs; w 0: nothing. */
struct box canvas_difference(const struct canvas *a, const struct canvas *b);

#endif
