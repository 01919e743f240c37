/* paint.h - draws shapes and text with cairo and pango, in pixels at scale 1.
 *
 * Colours have names; text is truncated at the end of its space. Text may come from models and screens:
 * invalid UTF-8 is replaced, control characters become spaces. Not thread-safe. */
#pragma once

#include "base/image.h"

#include <cairo.h>
#include <pango/pangocairo.h>
#include <stdbool.h>

struct box {
    double x, y, w, h;
};

bool box_has(struct box b, double x, double y);
struct box box_inset(struct box b, double by);
bool box_meets(struct box a, struct box b); /* Returns whether the boxes overlap. */

/* clang-format off */
enum colour {
    INK_GROUND, INK_PANEL, INK_RAISED, INK_LINE, INK_TEXT, INK_DIM, INK_FAINT, INK_ACCENT, INK_WARN, INK_BAD,
    INK_BLUE, INK_VIOLET, INK_COUNT
};
/* clang-format on */

/* Log of everything that was drawn and its position within the clip, for tests of the layout. */
struct painted {
    struct box at;
    char what[96]; /* the text, or the name of a part */
    bool part;     /* a part, not a text */
    bool cut;      /* the text was truncated with an ellipsis */
};
struct paint_log {
    struct painted *list; /* owned by the reader */
    int n, cap;
};

struct paint {
    cairo_t *cr;
    PangoLayout *layout;
    struct paint_log *log; /* NULL: no log */
};

/* Begins drawing on a surface in units of `scale` pixels. */
void paint_begin(struct paint *p, cairo_surface_t *s, double scale, struct paint_log *log);
/* Logs that a part of the window occupies this box. */
void paint_part(struct paint *p, struct box b, const char *name);
void paint_clip(struct paint *p, struct box b); /* Clips until cairo_restore(). */
void paint_end(struct paint *p);

void paint_ink(struct paint *p, enum colour c, double alpha);
void paint_box(struct paint *p, struct box b, double radius, enum colour c, double alpha);
void paint_frame(struct paint *p, struct box b, double radius, double width, enum colour c, double alpha);
void paint_line(struct paint *p, double x0, double y0, double x1, double y1, double width);

enum face { FACE_PLAIN, FACE_BOLD, FACE_MONO, FACE_ITALIC };
struct text {
    enum face face;
    double size;  /* font size in pixels */
    int lines;    /* maximum number of lines; 0: one */
    double align; /* 0 left, 0.5 middle, 1 right */
    enum colour ink;
};
/* Draws text into [x, x + w], downwards from y. Returns its height. */
double paint_text(struct paint *p, double x, double y, double w, struct text how, const char *text);
double paint_text_width(struct paint *p, struct text how, const char *text);

/* Draws a scrollbar at the right edge of b, which shows `b.h` of `length`, beginning at `down`. */
void paint_scrollbar(struct paint *p, struct box b, double down, double length);

/* a part of a stacked bar */
struct share {
    double value;
    enum colour ink;
};
void paint_shares(struct paint *p, struct box b, const struct share *s, int n);

/* Draw a target and a movement, light with a dark outline, to be visible on any image. */
void paint_ring(struct paint *p, double x, double y, double r, enum colour ink);
void paint_arrow(struct paint *p, double x0, double y0, double x1, double y1, enum colour ink);

/* Draws the surface scaled to fill b. */
void paint_picture(struct paint *p, cairo_surface_t *s, struct box b);
/* Returns a copy of the image for cairo, or NULL if memory is short. */
cairo_surface_t *paint_image(const struct image *im);
