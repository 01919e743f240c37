/* paint.h - draws shapes and text with cairo and pango, in pixels at scale 1.
 *
 * Colours have names; text is cut where its space ends.  Text may come from models and screens: invalid
 * UTF-8 is replaced, control characters become spaces.  Not thread-safe.
 */
#ifndef HOLORUN_STEP_PAINT_H
#define HOLORUN_STEP_PAINT_H

#include "base/image.h"

#include <cairo.h>
#include <pango/pangocairo.h>
#include <stdbool.h>

struct box {
    double x, y, w, h;
};

bool box_has(struct box b, double x, double y);
struct box box_inset(struct box b, double by);
bool box_meets(struct box a, struct box b); /* they have a point in common */

/* clang-format off */
enum colour {
    INK_GROUND, INK_PANEL, INK_RAISED, INK_LINE, INK_TEXT, INK_DIM, INK_FAINT, INK_ACCENT, INK_WARN, INK_BAD,
    INK_BLUE, INK_VIOLET, INK_COUNT
};
/* clang-format on */

/* A list of everything that was drawn and where, within the clip; for tests of the layout. */
struct painted {
    struct box at;
    char what[96]; /* the text, or the name of a part */
    bool part;     /* a part, not a text */
    bool cut;      /* the text did not fit and ends in dots */
};
struct paint_log {
    struct painted *list; /* owned by who reads it */
    int n, cap;
};

struct paint {
    cairo_t *cr;
    PangoLayout *layout;
    struct paint_log *log; /* NULL: nothing is written down */
};

/* On a surface of w x h pixels, units `scale` pixels large. */
void paint_begin(struct paint *p, cairo_surface_t *s, double scale, struct paint_log *log);
/* Writes down that a part of the window takes this place. */
void paint_part(struct paint *p, struct box b, const char *name);
void paint_clip(struct paint *p, struct box b); /* until cairo_restore() */
void paint_end(struct paint *p);

void paint_ink(struct paint *p, enum colour c, double alpha);
void paint_box(struct paint *p, struct box b, double radius, enum colour c, double alpha);
void paint_frame(struct paint *p, struct box b, double radius, double width, enum colour c, double alpha);
void paint_line(struct paint *p, double x0, double y0, double x1, double y1, double width);

enum face { FACE_PLAIN, FACE_BOLD, FACE_MONO, FACE_ITALIC };
struct text {
    enum face face;
    double size;  /* of the font, in pixels */
    int lines;    /* at most; 0: one */
    double align; /* 0 left, 0.5 middle, 1 right */
    enum colour ink;
};
/* Into [x, x + w], from y down; returns its height. */
double paint_text(struct paint *p, double x, double y, double w, struct text how, const char *text);
double paint_text_width(struct paint *p, struct text how, const char *text);

/* At the right edge of a part of which only `b.h` of `length` can be seen, from `down` on. */
void paint_scrollbar(struct paint *p, struct box b, double down, double length);

/* A stacked bar. */
struct share {
    double value;
    enum colour ink;
};
void paint_shares(struct paint *p, struct box b, const struct share *s, int n);

/* A target and a movement: light on a dark edge, so that they are seen on any picture. */
void paint_ring(struct paint *p, double x, double y, double r, enum colour ink);
void paint_arrow(struct paint *p, double x0, double y0, double x1, double y1, enum colour ink);

void paint_picture(struct paint *p, cairo_surface_t *s, struct box b); /* scaled to fill b */
/* A copy of the image for cairo; NULL: out of memory. */
cairo_surface_t *paint_image(const struct image *im);

#endif
