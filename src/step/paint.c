/* paint.c - draws shapes, text and images with cairo and pango; see paint.h. */
#include "step/paint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 8192 };

static const double inks[INK_COUNT][3] = {
    [INK_GROUND] = {0.071, 0.082, 0.102}, [INK_PANEL] = {0.102, 0.118, 0.145},
    [INK_RAISED] = {0.149, 0.169, 0.204}, [INK_LINE] = {0.192, 0.216, 0.259},
    [INK_TEXT] = {0.914, 0.929, 0.953},   [INK_DIM] = {0.604, 0.651, 0.718},
    [INK_FAINT] = {0.392, 0.435, 0.502},  [INK_ACCENT] = {0.271, 0.788, 0.694},
    [INK_WARN] = {0.961, 0.733, 0.247},   [INK_BAD] = {0.953, 0.404, 0.404},
    [INK_BLUE] = {0.412, 0.667, 1.0},     [INK_VIOLET] = {0.718, 0.573, 1.0},
};

bool box_has(struct box b, double x, double y)
{
    return x >= b.x && y >= b.y && x < b.x + b.w && y < b.y + b.h;
}

struct box box_inset(struct box b, double by)
{
    return (struct box){b.x + by, b.y + by, fmax(b.w - 2 * by, 0), fmax(b.h - 2 * by, 0)};
}

bool box_meets(struct box a, struct box b)
{
    return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

/* Logs a box in window units, clipped to the current clip. */
static void log_box(struct paint *p, struct box b, const char *what, bool part, bool cut)
{
    double x0, y0, x1, y1;
    struct paint_log *l = p->log;
    if (!l)
        return;
    cairo_clip_extents(p->cr, &x0, &y0, &x1, &y1);
    x0 = fmax(b.x, x0);
    y0 = fmax(b.y, y0);
    struct painted d = {{x0, y0, fmin(b.x + b.w, x1) - x0, fmin(b.y + b.h, y1) - y0}, "", part, cut};
    if (d.at.w <= 0 || d.at.h <= 0)
        return;
    snprintf(d.what, sizeof d.what, "%s", what);
    if (l->n == l->cap)
        l->list = xrealloc(l->list, (unsigned long)(l->cap = l->cap ? 2 * l->cap : 64), sizeof *l->list);
    l->list[l->n++] = d;
}

void paint_part(struct paint *p, struct box b, const char *name)
{
    log_box(p, b, name, true, false);
}

void paint_clip(struct paint *p, struct box b)
{
    cairo_save(p->cr);
    cairo_rectangle(p->cr, b.x, b.y, b.w, b.h);
    cairo_clip(p->cr);
}

void paint_begin(struct paint *p, cairo_surface_t *s, double scale, struct paint_log *log)
{
    p->log = log;
    p->cr = cairo_create(s);
    cairo_scale(p->cr, scale, scale);
    p->layout = pango_cairo_create_layout(p->cr);
}

void paint_end(struct paint *p)
{
    g_object_unref(p->layout);
    cairo_destroy(p->cr);
}

void paint_ink(struct paint *p, enum colour c, double alpha)
{
    cairo_set_source_rgba(p->cr, inks[c][0], inks[c][1], inks[c][2], alpha);
}

static void rounded_path(cairo_t *cr, struct box b, double r)
{
    r = fmin(r, fmin(b.w, b.h) / 2);
    cairo_new_sub_path(cr);
    cairo_arc(cr, b.x + b.w - r, b.y + r, r, -M_PI / 2, 0);
    cairo_arc(cr, b.x + b.w - r, b.y + b.h - r, r, 0, M_PI / 2);
    cairo_arc(cr, b.x + r, b.y + b.h - r, r, M_PI / 2, M_PI);
    cairo_arc(cr, b.x + r, b.y + r, r, M_PI, 3 * M_PI / 2);
    cairo_close_path(cr);
}

void paint_box(struct paint *p, struct box b, double radius, enum colour c, double alpha)
{
    rounded_path(p->cr, b, radius);
    paint_ink(p, c, alpha);
    cairo_fill(p->cr);
}

void paint_frame(struct paint *p, struct box b, double radius, double width, enum colour c, double alpha)
{
    rounded_path(p->cr, b, radius);
    paint_ink(p, c, alpha);
    cairo_set_line_width(p->cr, width);
    cairo_stroke(p->cr);
}

void paint_line(struct paint *p, double x0, double y0, double x1, double y1, double width)
{
    cairo_move_to(p->cr, x0, y0);
    cairo_line_to(p->cr, x1, y1);
    cairo_set_line_width(p->cr, width);
    cairo_stroke(p->cr);
}

void paint_scrollbar(struct paint *p, struct box b, double down, double length)
{
    double h = fmax(b.h * b.h / length, 20), y = b.y + (b.h - h) * down / (length - b.h);
    paint_box(p, (struct box){b.x + b.w - 6, b.y + 3, 3, b.h - 6}, 1.5, INK_RAISED, 1);
    paint_box(p, (struct box){b.x + b.w - 6, fmax(y, b.y + 3), 3, h - 6}, 1.5, INK_FAINT, 1);
}

void paint_shares(struct paint *p, struct box b, const struct share *s, int n)
{
    double sum = 0, x = b.x;
    for (int i = 0; i < n; i++)
        sum += s[i].value;
    paint_box(p, b, b.h / 2, INK_RAISED, 1);
    if (sum <= 0)
        return;
    cairo_save(p->cr);
    rounded_path(p->cr, b, b.h / 2);
    cairo_clip(p->cr);
    for (int i = 0; i < n; i++) {
        double w = b.w * s[i].value / sum;
        paint_box(p, (struct box){x, b.y, w, b.h}, 0, s[i].ink, 1);
        x += w;
    }
    cairo_restore(p->cr);
}

/* Returns valid UTF-8 for pango, without control characters except (lines) newlines. */
static char *clean_text(const char *text, bool lines)
{
    char *out = g_utf8_make_valid(text, (gssize)strnlen(text, TEXT_MAX));
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' && !(lines && *c == '\n'))
            *c = ' ';
    return out;
}

static void set_layout(struct paint *p, double w, struct text how, const char *text)
{
    static const char *const faces[] = {"sans", "sans bold", "monospace", "sans italic"};
    int lines = how.lines ? how.lines : 1;
    char *s = clean_text(text, lines > 1);
    PangoFontDescription *font = pango_font_description_from_string(faces[how.face]);
    pango_font_description_set_absolute_size(font, how.size * PANGO_SCALE);
    pango_layout_set_font_description(p->layout, font);
    pango_font_description_free(font);
    pango_layout_set_single_paragraph_mode(p->layout, lines == 1);
    pango_layout_set_wrap(p->layout, PANGO_WRAP_WORD_CHAR);
    pango_layout_set_ellipsize(p->layout, w < 0 ? PANGO_ELLIPSIZE_NONE : PANGO_ELLIPSIZE_END);
    pango_layout_set_width(p->layout, w < 0 ? -1 : (int)(w * PANGO_SCALE));
    pango_layout_set_height(p->layout, -lines);
    pango_layout_set_alignment(p->layout, how.align >= 1  ? PANGO_ALIGN_RIGHT
                                          : how.align > 0 ? PANGO_ALIGN_CENTER
                                                          : PANGO_ALIGN_LEFT);
    pango_layout_set_text(p->layout, s, -1);
    g_free(s);
}

double paint_text(struct paint *p, double x, double y, double w, struct text how, const char *text)
{
    PangoRectangle r;
    set_layout(p, fmax(w, 1), how, text);
    pango_layout_get_extents(p->layout, NULL, &r);
    paint_ink(p, how.ink, 1);
    cairo_move_to(p->cr, x, y);
    pango_cairo_show_layout(p->cr, p->layout);
    const double unit = 1.0 / PANGO_SCALE;
    log_box(p, (struct box){x + r.x * unit, y + r.y * unit, r.width * unit, r.height * unit}, text, false,
            pango_layout_is_ellipsized(p->layout));
    return r.height * unit;
}

double paint_text_width(struct paint *p, struct text how, const char *text)
{
    int width, height;
    set_layout(p, -1, how, text);
    pango_layout_get_size(p->layout, &width, &height);
    return (double)width / PANGO_SCALE;
}

cairo_surface_t *paint_image(const struct image *im)
{
    cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_RGB24, im->w, im->h);
    if (cairo_surface_status(s) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(s);
        return NULL;
    }
    int stride = cairo_image_surface_get_stride(s);
    unsigned char *data = cairo_image_surface_get_data(s);
    for (int y = 0; y < im->h; y++) {
        const uint8_t *from = im->rgb + (size_t)y * (size_t)im->w * 3;
        for (int x = 0; x < im->w; x++, from += 3) {
            uint32_t pixel = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
            memcpy(data + (size_t)y * (size_t)stride + (size_t)x * 4, &pixel, 4);
        }
    }
    cairo_surface_mark_dirty(s);
    return s;
}

void paint_picture(struct paint *p, cairo_surface_t *s, struct box b)
{
    cairo_save(p->cr);
    cairo_translate(p->cr, b.x, b.y);
    cairo_scale(p->cr, b.w / cairo_image_surface_get_width(s), b.h / cairo_image_surface_get_height(s));
    cairo_set_source_surface(p->cr, s, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(p->cr), CAIRO_FILTER_GOOD);
    cairo_paint(p->cr);
    cairo_restore(p->cr);
}

static void stroke_twice(struct paint *p, double width, enum colour ink)
{
    cairo_set_line_cap(p->cr, CAIRO_LINE_CAP_ROUND);
    cairo_set_source_rgba(p->cr, 0, 0, 0, 0.55);
    cairo_set_line_width(p->cr, width + 2.5);
    cairo_stroke_preserve(p->cr);
    paint_ink(p, ink, 1);
    cairo_set_line_width(p->cr, width);
    cairo_stroke(p->cr);
}

void paint_ring(struct paint *p, double x, double y, double r, enum colour ink)
{
    const double gap = r / 3;
    cairo_new_path(p->cr);
    cairo_arc(p->cr, x, y, r, 0, 2 * M_PI);
    for (int i = 0; i < 4; i++) {
        double c = cos(i * M_PI / 2), d = sin(i * M_PI / 2);
        cairo_move_to(p->cr, x + c * (r - gap), y + d * (r - gap));
        cairo_line_to(p->cr, x + c * (r + gap), y + d * (r + gap));
    }
    stroke_twice(p, 2.5, ink);
    cairo_arc(p->cr, x, y, 2, 0, 2 * M_PI);
    paint_ink(p, ink, 1);
    cairo_fill(p->cr);
}

void paint_arrow(struct paint *p, double x0, double y0, double x1, double y1, enum colour ink)
{
    double dx = x1 - x0, dy = y1 - y0, len = sqrt(dx * dx + dy * dy), head = 11;
    if (len < 1)
        return;
    dx /= len;
    dy /= len;
    cairo_new_path(p->cr);
    cairo_move_to(p->cr, x0, y0);
    cairo_line_to(p->cr, x1, y1);
    cairo_move_to(p->cr, x1 - head * (dx + 0.6 * dy), y1 - head * (dy - 0.6 * dx));
    cairo_line_to(p->cr, x1, y1);
    cairo_line_to(p->cr, x1 - head * (dx - 0.6 * dy), y1 - head * (dy + 0.6 * dx));
    stroke_twice(p, 2.5, ink);
}
