/* marks.c - draws the refs of elements on a screenshot: a frame around each element, and its ref on a plate
 * of the same colour at the place around it where the plate hides least. */
#include "host/private.h"

#include "plain/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS_MAX = 400, GLYPH_W = 5, GLYPH_H = 7, PLATE_H = GLYPH_H + 4, STEP = GLYPH_W + 1, PLACES = 7 };

struct mark {
    uint32_t ref;
    struct screen_rect box, plate; /* in pixels of the image */
};

struct marks {
    struct mark m[MARKS_MAX];
    struct screen_rect texts[MARKS_MAX]; /* that plates should not hide */
    int n, n_texts;
};

static const uint8_t colours[][3] = {{178, 24, 43},  {33, 102, 172}, {0, 104, 55},
                                     {118, 42, 131}, {153, 82, 4},   {1, 102, 94}};

/* Rows of the glyphs 0 to 9, from the top; the highest of five bits is on the left. */
static const uint8_t digits[10][GLYPH_H] = {
    {14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},  {14, 17, 1, 2, 4, 8, 31},
    {31, 2, 4, 2, 1, 17, 14},     {2, 6, 10, 18, 31, 2, 2}, {31, 16, 30, 1, 1, 17, 14},
    {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},   {14, 17, 17, 14, 17, 17, 14},
    {14, 17, 17, 15, 1, 2, 12},
};
static const uint8_t letter_e[GLYPH_H] = {0, 0, 14, 17, 31, 16, 14};

/* ---- drawing ------------------------------------------------------------------------------------------- */

static void fill(struct image *im, struct screen_rect r, const uint8_t colour[3])
{
    struct screen_rect in = screen_rect_intersect(r, (struct screen_rect){0, 0, im->w, im->h});
    for (int y = in.y; y < in.y + in.h; y++)
        for (int x = in.x; x < in.x + in.w; x++)
            memcpy(image_at(im, x, y), colour, 3);
}

static void draw_frame(struct image *im, struct screen_rect r, const uint8_t colour[3])
{
    fill(im, (struct screen_rect){r.x, r.y, r.w, 1}, colour);
    fill(im, (struct screen_rect){r.x, r.y + r.h - 1, r.w, 1}, colour);
    fill(im, (struct screen_rect){r.x, r.y, 1, r.h}, colour);
    fill(im, (struct screen_rect){r.x + r.w - 1, r.y, 1, r.h}, colour);
}

static void draw_glyph(struct image *im, int x, int y, const uint8_t rows[GLYPH_H])
{
    static const uint8_t white[3] = {255, 255, 255};
    for (int row = 0; row < GLYPH_H; row++)
        for (int column = 0; column < GLYPH_W; column++)
            if (rows[row] >> (GLYPH_W - 1 - column) & 1)
                fill(im, (struct screen_rect){x + column, y + row, 1, 1}, white);
}

static void draw_plate(struct image *im, const struct mark *m, const uint8_t colour[3])
{
    char text[16];
    int x = m->plate.x + 2, y = m->plate.y + 2;
    fill(im, m->plate, colour);
    snprintf(text, sizeof text, "%u", m->ref);
    draw_glyph(im, x, y, letter_e);
    for (const char *d = text; *d; d++)
        draw_glyph(im, x += STEP, y, digits[*d - '0']);
}

/* ---- placing ------------------------------------------------------------------------------------------- */

static int overlap(struct screen_rect a, struct screen_rect b)
{
    struct screen_rect both = screen_rect_intersect(a, b);
    return both.w > 0 && both.h > 0 ? both.w * both.h : 0;
}

/* Returns the cost of a place: the weighted area that it hides of other plates, other boxes, texts and the
 * own box. */
static int badness(const struct marks *all, int i, struct screen_rect r, const struct image *im)
{
    int outside = r.w * r.h - overlap(r, (struct screen_rect){0, 0, im->w, im->h});
    int bad = 16 * outside + overlap(r, all->m[i].box);
    for (int k = 0; k < all->n; k++) {
        if (k < i)
            bad += 8 * overlap(r, all->m[k].plate);
        if (k != i)
            bad += 3 * overlap(r, all->m[k].box);
    }
    for (int k = 0; k < all->n_texts; k++)
        bad += 3 * overlap(r, all->texts[k]);
    return bad;
}

/* Puts the plate of mark i where it hides least: above, left, right, below, or in a corner of the box. */
static void place_plate(struct marks *all, int i, const struct image *im)
{
    struct screen_rect b = all->m[i].box;
    int w = STEP * snprintf(NULL, 0, "e%u", all->m[i].ref) + 3, h = PLATE_H, best = -1;
    const struct screen_rect places[PLACES] = {
        {b.x, b.y - h, w, h},
        {b.x - w, b.y, w, h},
        {b.x + b.w, b.y, w, h},
        {b.x, b.y + b.h, w, h},
        {b.x, b.y, w, h},
        {b.x + b.w - w, b.y, w, h},
        {b.x + b.w - w, b.y + b.h - h, w, h},
    };
    for (int k = 0; k < PLACES; k++) {
        int bad = badness(all, i, places[k], im);
        if (best >= 0 && bad >= best)
            continue;
        best = bad;
        all->m[i].plate = places[k];
    }
}

/* ---- marks --------------------------------------------------------------------------------------------- */

/* Adds an element in the image that can be acted on, or a text. */
static void add(struct marks *all, const struct snapshot *s, const struct element *e, struct screen_rect view,
                double scale, const struct image *im)
{
    static const char *const texts[] = {"label", "static", "heading", NULL};
    struct screen_rect box = {(int)((e->rect.x - view.x) * scale), (int)((e->rect.y - view.y) * scale),
                              (int)(e->rect.w * scale + 0.5), (int)(e->rect.h * scale + 0.5)};
    bool usable = element_word(e->role) && e->trust != PLACE_NONE && e->trust != PLACE_DOUBTFUL &&
                  !resolve_hidden_by(s, e);
    int x = box.x + box.w / 2, y = box.y + box.h / 2;
    if (x < 0 || y < 0 || x >= im->w || y >= im->h || box.w <= 0 || box.h <= 0)
        return;
    if (usable && all->n < MARKS_MAX)
        all->m[all->n++] = (struct mark){.ref = e->ref, .box = box};
    else if (all->n_texts < MARKS_MAX && text_listed(texts, e->role))
        all->texts[all->n_texts++] = box;
}

int look_draw_marks(const struct work *w, struct screen *s, struct image *im, double scale, int x, int y,
                    struct err *e)
{
    const struct elements_scope scope = {0};
    struct screen_rect view = screen_view(s);
    const struct snapshot *now = tree_read(w->host->tree, &scope, s, e);
    if (!now)
        return -1;
    autofree struct marks *all = xcalloc(1, sizeof *all);
    view.x += x;
    view.y += y;
    for (int i = 0; i < now->n; i++)
        add(all, now, &now->e[i], view, scale, im);
    for (int i = 0; i < all->n; i++)
        place_plate(all, i, im);
    for (int i = 0; i < all->n; i++)
        draw_frame(im, all->m[i].box, colours[all->m[i].ref % (sizeof colours / sizeof *colours)]);
    for (int i = 0; i < all->n; i++)
        draw_plate(im, &all->m[i], colours[all->m[i].ref % (sizeof colours / sizeof *colours)]);
    refs_note(tree_refs(w->host->tree), now, NULL);
    int n = all->n;
    tree_done(w->host->tree);
    return n;
}
