/* copies.c - finds further occurrences of rendered text in an image; see copies.h.
 *
 * A copy in the same typeface has one colour wherever the original has one colour; the colours themselves do
 * not matter, so selected text is found too. A bold copy covers the ink of the original and little more than
 * the adjacent pixels. Letters of bold text are matched separately, because bold letters are wider and shift.
 * A single letter may match poorly, but not all of them together: letters that are almost solid, like a
 * narrow m, match many others. */
#include "gate/copies.h"

#include "base/err.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    EDGE = 48, /* minimum difference of the two pixels that are compared first */
    INK = 45,  /* percent of the contrast by which an ink pixel differs from the background */
    LETTERS = 64,
    LETTERS_LEAST = 3, /* minimum number of letters of a bold copy; fewer could match any text */
    MISSING = 25,      /* percent of a letter's ink that may be missing in its copy */
    /* percent of a letter's ink that its copy may have beyond the original and adjacent pixels */
    BEYOND = 12,
    BOLDEST = 230, /* maximum ink of a letter's copy in percent */
    MISFIT = 8,    /* percent of all ink that may be missing or additional */
    DRIFT = 2,     /* pixels by which the distance to the previous letter may differ */
    WIDER = 3,     /* pixels by which a letter may be wider */
};

struct letter {
    int x, w, ink; /* columns of the letter in the original; its number of ink pixels */
};

struct shape {
    const struct image *g;
    int ax, ay;  /* the pixel that differs most from the one to its right */
    int fx, fy;  /* the same within the first letter */
    int *colour; /* [h][w] index of the pixel's colour */
    int *seen;   /* [colours] last position at which the colour was met; the colour of the copy there */
    const uint8_t **there;
    uint8_t ground[3];
    int gx, gy;       /* background pixel surrounded by background; -1: none */
    bool *ink, *near; /* [h][w]; near: the pixel or an adjacent one is ink */
    struct letter letters[LETTERS];
    int n, all_ink; /* number of letters; their ink */
};

static int difference(const uint8_t *a, const uint8_t *b)
{
    int most = 0;
    for (int c = 0; c < 3; c++)
        most = abs(a[c] - b[c]) > most ? abs(a[c] - b[c]) : most;
    return most;
}

/* ---- the original ------------------------------------------------------------------------------ */

/* Assigns an index to each colour; the most frequent one is the background. */
static void number_colours(struct shape *s)
{
    int n = s->g->w * s->g->h, *count = xcalloc((size_t)n, sizeof *count), most = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (memcmp(s->g->rgb + 3 * k, s->g->rgb + 3 * i, 3) != 0)
            k++;
        s->colour[i] = k;
        most = ++count[k] > count[most] ? k : most;
    }
    memcpy(s->ground, s->g->rgb + 3 * most, 3);
    free(count);
}

/* Returns the largest difference from the background within this width and the height of the original. */
static int contrast_at(const struct shape *s, const struct image *im, int x, int y, int w,
                       const uint8_t ground[3])
{
    int most = 0;
    for (int v = 0; v < s->g->h; v++)
        for (int u = 0; u < w; u++) {
            int d = difference(image_at(im, x + u, y + v), ground);
            most = d > most ? d : most;
        }
    return most;
}

static bool any_ink(const struct shape *s, int x, int y, int dx, int dy)
{
    for (int v = y - dy; v <= y + dy; v++)
        for (int u = x - dx; u <= x + dx; u++)
            if (u >= 0 && v >= 0 && u < s->g->w && v < s->g->h && s->ink[v * s->g->w + u])
                return true;
    return false;
}

static void find_letters(struct shape *s)
{
    struct letter now = {0};
    for (int x = 0; x <= s->g->w && s->n < LETTERS; x++) {
        int ink = 0;
        for (int y = 0; x < s->g->w && y < s->g->h; y++)
            ink += s->ink[y * s->g->w + x];
        if (ink) {
            now.x = now.ink ? now.x : x;
            now.ink += ink;
            now.w = x + 1 - now.x;
        } else if (now.ink) {
            s->letters[s->n++] = now;
            now = (struct letter){0};
        }
    }
}

/* Finds the pixel in columns [from, to) that differs most from its right neighbour. */
static void find_edge(const struct image *g, int from, int to, int *ex, int *ey)
{
    int most = 0;
    *ex = *ey = 0;
    for (int y = 0; y < g->h; y++)
        for (int x = from; x + 1 < to; x++) {
            int d = difference(image_at(g, x, y), image_at(g, x + 1, y));
            if (d > most) {
                most = d;
                *ex = x;
                *ey = y;
            }
        }
}

static void shape_make(struct shape *s, const struct image *g)
{
    int w = g->w;
    size_t n = (size_t)w * (size_t)g->h;
    *s = (struct shape){.g = g, .gx = -1};
    s->colour = xcalloc(n, sizeof *s->colour);
    s->seen = xcalloc(n, sizeof *s->seen);
    s->there = xcalloc(n, sizeof *s->there);
    s->ink = xcalloc(n, sizeof *s->ink);
    s->near = xcalloc(n, sizeof *s->near);
    number_colours(s);
    int least = INK * contrast_at(s, g, 0, 0, w, s->ground) / 100;
    for (int y = 0; y < g->h; y++)
        for (int x = 0; x < w; x++)
            s->ink[y * w + x] = difference(image_at(g, x, y), s->ground) > least;
    for (int y = 0; y < g->h; y++)
        for (int x = 0; x < w; x++) {
            s->near[y * w + x] = any_ink(s, x, y, 1, 1);
            if (s->gx < 0 && !any_ink(s, x, y, 2, 2)) {
                s->gx = x;
                s->gy = y;
            }
        }
    find_letters(s);
    for (int i = 0; i < s->n; i++)
        s->all_ink += s->letters[i].ink;
    find_edge(g, 0, w, &s->ax, &s->ay);
    int end = s->letters[0].x + s->letters[0].w + 1;
    find_edge(g, s->letters[0].x, end < w ? end : w, &s->fx, &s->fy);
}

static void shape_free(struct shape *s)
{
    free(s->colour);
    free(s->seen);
    free(s->there);
    free(s->ink);
    free(s->near);
}

/* ---- copies ----------------------------------------------------------------------------------------- */

/* Returns whether the area has the same pixels except for their colours. stamp: unique for each position. */
static bool is_same(struct shape *s, const struct image *im, int x, int y, int stamp)
{
    for (int v = 0, i = 0; v < s->g->h; v++)
        for (int u = 0; u < s->g->w; u++, i++) {
            const uint8_t *p = image_at(im, x + u, y + v);
            int k = s->colour[i];
            if (s->seen[k] == stamp && memcmp(s->there[k], p, 3) != 0)
                return false;
            s->seen[k] = stamp;
            s->there[k] = p;
        }
    return true;
}

struct place { /* a position to test for a copy */
    const struct image *im;
    int x, y, least; /* minimum difference of ink from the background */
    const uint8_t *ground;
};

/* Returns how many pixels of a letter mismatch that begins in column x of the image, stretched to this width;
 * -1: not this letter. */
static int letter_misfit(const struct shape *s, const struct letter *l, const struct place *p, int x,
                         int width)
{
    int missing = 0, beyond = 0, all = 0, w = s->g->w;
    if (x < 0 || x + width > p->im->w)
        return -1;
    for (int u = 0; u < width; u++)
        for (int v = 0; v < s->g->h; v++) {
            int at = v * w + l->x + u * l->w / width;
            bool ink = difference(image_at(p->im, x + u, p->y + v), p->ground) > p->least;
            all += ink;
            missing += s->ink[at] && !ink;
            beyond += ink && !s->near[at];
            if (100 * missing > MISSING * l->ink || 100 * beyond > BEYOND * l->ink ||
                100 * all > BOLDEST * l->ink)
                return -1;
        }
    return missing + beyond;
}

/* Returns the end of the i-th letter, whose predecessor ends at x; -1: not found. Adds its mismatch to
 * *misfits. */
static int follow_letter(const struct shape *s, int i, const struct place *p, int x, int *misfits)
{
    const struct letter *l = &s->letters[i];
    int gap = i ? l->x - l[-1].x - l[-1].w : 0, best = INT_MAX, end = -1;
    for (int d = i ? -DRIFT : 0; d <= (i ? DRIFT : 0); d++)
        for (int wider = 0; wider <= WIDER; wider++) {
            int misfit = letter_misfit(s, l, p, x + gap + d, l->w + wider);
            if (misfit >= 0 && misfit < best) {
                best = misfit;
                end = x + gap + d + l->w + wider;
            }
        }
    *misfits += end < 0 ? 0 : best;
    return end;
}

/* Returns the width of a bold copy on the background colour of this pixel; 0: none. */
static int bold_width_on(const struct shape *s, struct place *p, int gx, int gy)
{
    int x = p->x;
    if (gx < 0 || gx + 1 >= p->im->w)
        return 0;
    p->ground = image_at(p->im, gx, gy);
    if (difference(p->ground, image_at(p->im, gx + 1, gy)) > EDGE / 4)
        return 0;
    int contrast = contrast_at(s, p->im, p->x, p->y, s->letters[0].w, p->ground);
    if (contrast < EDGE)
        return 0;
    p->least = INK * contrast / 100;
    int misfits = 0;
    for (int i = 0; i < s->n && x >= 0 && 100 * misfits <= MISFIT * s->all_ink; i++)
        x = follow_letter(s, i, p, x, &misfits);
    return x < 0 || 100 * misfits > MISFIT * s->all_ink ? 0 : x - p->x;
}

/* Returns the width of a bold copy; 0: none. Bold letters may cover background pixels of the original, but
 * rarely the pixels to the left of the first letter, so these are tried next. */
static int bold_width(const struct shape *s, struct place *p)
{
    int w = s->gx < 0 ? 0 : bold_width_on(s, p, p->x + s->gx, p->y + s->gy);
    w = w ? w : bold_width_on(s, p, p->x - 3, p->y);
    return w ? w : bold_width_on(s, p, p->x - 3, p->y + s->g->h - 1);
}

static int edge_at(const struct image *im, int x, int y)
{
    return x < 0 || x + 1 >= im->w ? 0 : difference(image_at(im, x, y), image_at(im, x + 1, y));
}

/* Returns whether the position has the edges of the plain letter, or edges in an adjacent pixel. */
static bool may_be_bold(const struct shape *s, const struct image *im, int x, int y)
{
    for (int d = -1; d <= 1; d++)
        if (edge_at(im, x + s->fx + d, y + s->fy) >= EDGE / 2)
            return s->n >= LETTERS_LEAST;
    return false;
}

int copies_find(const struct image *im, const struct image *glyphs, struct copy **out)
{
    struct shape s;
    int n = 0;
    *out = NULL;
    if (!glyphs->rgb || glyphs->w > im->w || glyphs->h > im->h)
        return 0;
    shape_make(&s, glyphs);
    for (int y = 0, stamp = 1; y + glyphs->h <= im->h; y++)
        for (int x = 0; x + glyphs->w <= im->w; x++, stamp++) {
            struct place p = {.im = im, .x = x, .y = y};
            bool same = edge_at(im, x + s.ax, y + s.ay) >= EDGE / 2 && is_same(&s, im, x, y, stamp);
            int w = same ? glyphs->w : may_be_bold(&s, im, x, y) ? bold_width(&s, &p) : 0;
            if (!w)
                continue;
            *out = xrealloc(*out, (unsigned long)n + 1, sizeof **out);
            (*out)[n++] = (struct copy){x, y, w};
        }
    shape_free(&s);
    return n;
}
