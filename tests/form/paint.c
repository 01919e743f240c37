/* paint.c - draws rectangles, symbols and glyphs of the kiosk theme.
 *
 * Glyphs are rendered by FreeType with the light hinting of Debian's default settings, at whole pixels, as
 * in Chromium. Chromium contains its own FreeType, which differs at the edges of round strokes by up to a
 * quarter of full contrast. Round and slanted edges of symbols are sampled 8 x 8 times per pixel.
 */
#include "form/paint.h"

#include <ft2build.h>
#include FT_FREETYPE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FONT_PX = 26, ASCENT = 24, INDENT = 2, SAMPLES = 8 };
enum {
    PAGE = 0xf3f5f7,
    PAPER = 0xffffff,
    INK = 0x15202b,
    ACCENT = 0x0a5299,
    QUIET = 0xdde4eb,
    FOCUSED = 0xfff7cf,
};

struct font {
    FT_Library library;
    FT_Face face;
};

struct font *font_open(const char *path)
{
    static const char *const places[] = {"/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
                                         "/usr/share/fonts/dejavu-sans-mono-fonts/DejaVuSansMono.ttf",
                                         "/usr/share/fonts/TTF/DejaVuSansMono.ttf"};
    for (size_t k = 0; !path && k < sizeof places / sizeof *places; k++)
        if (!access(places[k], R_OK))
            path = places[k];
    struct font *f = calloc(1, sizeof *f);
    if (path && f && !FT_Init_FreeType(&f->library) && !FT_New_Face(f->library, path, 0, &f->face) &&
        !FT_Set_Pixel_Sizes(f->face, 0, FONT_PX))
        return f;
    font_close(f);
    return NULL;
}

void font_close(struct font *f)
{
    if (f && f->face)
        FT_Done_Face(f->face);
    if (f && f->library)
        FT_Done_FreeType(f->library);
    free(f);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static void blend(struct canvas *c, int x, int y, uint32_t colour, int alpha)
{
    if (x < 0 || y < 0 || x >= SCREEN_W || y >= SCREEN_H)
        return;
    uint32_t old = c->px[y][x], new = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        int a = (int)(old >> shift & 255), b = (int)(colour >> shift & 255);
        new |= (uint32_t)((a * (255 - alpha) + b * alpha + 127) / 255) << shift;
    }
    c->px[y][x] = new;
}

static void fill(struct canvas *c, struct box b, uint32_t colour)
{
    for (int y = b.y; y < b.y + b.h; y++)
        for (int x = b.x; x < b.x + b.w; x++)
            blend(c, x, y, colour, 255);
}

/* Draws a frame inside the box, `thick` pixels wide. */
static void frame(struct canvas *c, struct box b, int thick, uint32_t colour, uint32_t inside)
{
    fill(c, b, colour);
    fill(c, (struct box){b.x + thick, b.y + thick, b.w - 2 * thick, b.h - 2 * thick}, inside);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static bool in_disc(double x, double y, double r)
{
    return x * x + y * y <= r * r;
}

/* The two strokes of a check mark: a corner of 12 x 18, rotated by 45 degrees around its centre. */
static bool in_tick(double x, double y, double unused)
{
    double u = (x + y) * M_SQRT1_2, v = (y - x) * M_SQRT1_2;
    return u >= -6 && u <= 6 && v >= -9 && v <= 9 && (u >= 2 || v >= 5);
}

static void shape(struct canvas *c, double cx, double cy, bool (*inside)(double x, double y, double r),
                  double r, uint32_t colour)
{
    for (int y = (int)cy - 12; y < (int)cy + 12; y++)
        for (int x = (int)cx - 12; x < (int)cx + 12; x++) {
            int hit = 0;
            for (int j = 0; j < SAMPLES; j++)
                for (int i = 0; i < SAMPLES; i++)
                    hit += inside(x + (i + 0.5) / SAMPLES - cx, y + (j + 0.5) / SAMPLES - cy, r);
            blend(c, x, y, colour, hit * 255 / (SAMPLES * SAMPLES));
        }
}

static void mark(struct canvas *c, const struct item *it, bool on)
{
    int x = it->col * CELL_W + 8, y = it->row * CELL_H + 3;
    if (it->kind == ITEM_TICK) {
        frame(c, (struct box){x, y, 24, 24}, 2, INK, on ? ACCENT : PAPER);
        if (on)
            shape(c, x + 14, y + 12, in_tick, 0, PAPER);
    } else {
        shape(c, x + 12, y + 12, in_disc, 12, on ? ACCENT : INK);
        shape(c, x + 12, y + 12, in_disc, on ? 5 : 10, PAPER);
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Adjusts coverage like the browser's rasterizer: edges of dark text are slightly lighter, those of white
 * text stronger. The curves are fitted to images of the page. */
static int toned(int coverage, uint32_t colour)
{
    double a = coverage / 255.0;
    if (colour == INK)
        a -= 0.4 * a * a * a * a * (1 - a);
    else if (colour == PAPER)
        a += 0.22 * a * (1 - a);
    return (int)(a * 255 + 0.5);
}

static void glyph(struct canvas *c, struct font *f, uint32_t scalar, int x, int base, uint32_t colour,
                  struct box clip)
{
    if (FT_Load_Char(f->face, scalar, FT_LOAD_RENDER | FT_LOAD_TARGET_LIGHT))
        return;
    const FT_Bitmap *b = &f->face->glyph->bitmap;
    x += f->face->glyph->bitmap_left;
    base -= f->face->glyph->bitmap_top;
    for (int j = 0; j < (int)b->rows; j++)
        for (int i = 0; i < (int)b->width; i++)
            if (x + i >= clip.x && x + i < clip.x + clip.w && base + j >= clip.y &&
                base + j < clip.y + clip.h)
                blend(c, x + i, base + j, colour, toned(b->buffer[j * b->pitch + i], colour));
}

/* Draws text from pixel x on, in a row of cells. */
static void text(struct canvas *c, struct font *f, const uint32_t *t, int n, int x, int row, uint32_t colour,
                 struct box clip)
{
    for (int k = 0; k < n; k++)
        glyph(c, f, t[k], x + k * CELL_W + INDENT, row * CELL_H - 1 + ASCENT, colour, clip);
}

/* ---- items ----------------------------------------------------------------------------------- */

static void paint_field(struct canvas *c, struct font *f, const struct dialog *d, const struct item *it)
{
    struct box b = item_box(it);
    bool focus = d->focus == it->index;
    frame(c, b, focus ? 4 : 2, focus ? ACCENT : INK, focus ? FOCUSED : PAPER);
    struct box room = {b.x + 10, b.y, b.w - 10, b.h};
    /* the caret is not drawn, but kept visible */
    int over = focus ? INDENT + d->caret * CELL_W - room.w : 0;
    text(c, f, it->text->c, it->text->n, room.x - (over > 0 ? over : 0), it->row, INK, room);
}

static void paint_text(struct canvas *c, struct font *f, const struct item *it, uint32_t colour)
{
    static const uint32_t report[] = {'P', 'r', 'e', 's', 's', 'e', 'd', ' '};
    struct box clip = item_box(it);
    int x = it->column * CELL_W;
    if (it->report) {
        text(c, f, report, 8, x, it->row, colour, clip);
        x += 8 * CELL_W;
    }
    text(c, f, it->text->c + it->first, it->chars, x, it->row, colour, clip);
}

static void paint_item(struct canvas *c, struct font *f, const struct dialog *d, const struct item *it)
{
    struct box b = item_box(it);
    uint32_t ink = it->look == LOOK_PLAIN ? INK : it->look == LOOK_ACCENT ? ACCENT : PAPER;
    switch (it->kind) {
    case ITEM_BAND:
        fill(c, b, ACCENT);
        return;
    case ITEM_FIELD:
        paint_field(c, f, d, it);
        return;
    case ITEM_BUTTON:
        if (it->pressed || it->look == LOOK_MAIN)
            fill(c, b, it->pressed ? INK : ACCENT);
        else
            frame(c, b, 2, INK, QUIET);
        ink = it->pressed ? PAPER : ink;
        break;
    case ITEM_TICK:
    case ITEM_OPTION:
        mark(c, it, d->on[it->index]);
        break;
    case ITEM_TEXT:
        break;
    }
    paint_text(c, f, it, ink);
}

void paint_empty(struct canvas *c)
{
    fill(c, (struct box){0, 0, SCREEN_W, SCREEN_H}, PAGE);
}

void paint_dialog(struct canvas *c, struct font *f, const struct dialog *d, const struct item *items, int n)
{
    paint_empty(c);
    for (int k = 0; k < n; k++)
        paint_item(c, f, d, &items[k]);
}

void paint_busy(struct canvas *c, double part)
{
    int full = (int)(SCREEN_W * (part < 0 ? 0 : part > 1 ? 1 : part));
    fill(c, (struct box){0, SCREEN_H - CELL_H, full, CELL_H}, ACCENT);
    fill(c, (struct box){full, SCREEN_H - CELL_H, SCREEN_W - full, CELL_H}, QUIET);
}

struct box canvas_difference(const struct canvas *a, const struct canvas *b)
{
    int left = SCREEN_W, right = 0, top = SCREEN_H, bottom = 0;
    for (int y = 0; y < SCREEN_H; y++) {
        if (!memcmp(a->px[y], b->px[y], sizeof a->px[y]))
            continue;
        for (int x = 0; x < SCREEN_W; x++)
            if (a->px[y][x] != b->px[y][x]) {
                left = x < left ? x : left;
                right = x + 1 > right ? x + 1 : right;
                top = y < top ? y : top;
                bottom = y + 1;
            }
    }
    return right > left ? (struct box){left, top, right - left, bottom - top} : (struct box){0, 0, 0, 0};
}
