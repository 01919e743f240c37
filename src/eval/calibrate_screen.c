/* calibrate_screen.c - draws a test screen: labelled buttons on an empty page, from an image of letters.
 *
 * Everything is aligned to cells of 20 x 30 pixels, the grid of the embedded model's theme; other models see
 * large type.  Labels are random syllables with different first letters, so that no model was trained on
 * them. */
#include "eval/calibrate.h"

#include "base/embed.h"

#include <stdlib.h>
#include <string.h>

enum { CELL_W = 20, CELL_H = 30, PAD = 2, RISE = 5, TRIES = 2000 };

EMBED(calibrate_glyphs, "assets/calibrate/glyphs.png");

static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

struct colours {
    uint8_t ground[3], frame[3], ink[3];
};
static const uint8_t page[3] = {0xf3, 0xf5, 0xf7};
static const struct colours looks[] = {
    {{0x0a, 0x52, 0x99}, {0x0a, 0x52, 0x99}, {0xff, 0xff, 0xff}},
    {{0xdd, 0xe4, 0xeb}, {0x15, 0x20, 0x2b}, {0x15, 0x20, 0x2b}},
};

/* Returns the next number of splitmix64. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int below(uint64_t *state, int n)
{
    return (int)(next(state) % (uint64_t)n);
}

static void fill(struct image *im, int x0, int y0, int w, int h, const uint8_t rgb[3])
{
    for (int y = y0; y < y0 + h; y++)
        for (int x = x0; x < x0 + w; x++)
            memcpy(im->rgb + ((size_t)y * (size_t)im->w + (size_t)x) * 3, rgb, 3);
}

/* Draws one letter into a cell.  The image of letters is black on white; its darkness is the opacity of the
 * ink. */
static void put_letter(struct image *im, int x0, int y0, const struct image *glyphs, int which,
                       const uint8_t ink[3])
{
    for (int y = 0; y < CELL_H; y++) {
        const uint8_t *from = glyphs->rgb + ((size_t)y * (size_t)glyphs->w + (size_t)(which * CELL_W)) * 3;
        uint8_t *to = im->rgb + ((size_t)(y0 + y) * (size_t)im->w + (size_t)x0) * 3;
        for (int i = 0; i < CELL_W * 3; i++)
            to[i] = (uint8_t)((to[i] * from[i] + ink[i % 3] * (255 - from[i]) + 127) / 255);
    }
}

static void put_button(struct image *im, const struct calibration_target *t, const struct colours *c,
                       const struct image *glyphs)
{
    int x = (int)t->box[0], y = (int)t->box[1], w = (int)(t->box[2] - t->box[0]),
        h = (int)(t->box[3] - t->box[1]);
    fill(im, x, y, w, h, c->frame);
    fill(im, x + 2, y + 2, w - 4, h - 4, c->ground);
    for (int i = 0; t->label[i]; i++)
        put_letter(im, x + (PAD + i) * CELL_W, y + RISE, glyphs, (int)(strchr(chars, t->label[i]) - chars),
                   c->ink);
}

/* ---- labels and positions ------------------------------------------------------------------------------ */

static void random_label(char out[CALIBRATE_LABEL], uint64_t *random)
{
    static const char starts[] = "BCDFGHJKLMNPRSTVWZ", mids[] = "bdgklmnprstvz", vowels[] = "aeiou";
    int syllables = 2 + below(random, 2), n = 0;
    for (int i = 0; i < syllables; i++) {
        out[n++] = i ? mids[below(random, sizeof mids - 1)] : starts[below(random, sizeof starts - 1)];
        out[n++] = vowels[below(random, sizeof vowels - 1)];
    }
    out[n++] = mids[below(random, sizeof mids - 1)];
    out[n] = 0;
}

static bool first_letter_taken(const struct calibration_screen *s, char letter)
{
    for (int i = 0; i < s->n; i++)
        if (s->targets[i].label[0] == letter)
            return true;
    return false;
}

/* Returns whether a button is at least a cell away from others in x and RISE pixels in y. */
static bool is_free(const struct calibration_screen *s, const double box[4])
{
    for (int i = 0; i < s->n; i++) {
        const double *o = s->targets[i].box;
        if (box[0] < o[2] + CELL_W && o[0] < box[2] + CELL_W && box[1] < o[3] + RISE && o[1] < box[3] + RISE)
            return false;
    }
    return true;
}

static bool add_target(struct calibration_screen *s, uint64_t *random)
{
    struct calibration_target *t = &s->targets[s->n];
    int columns = s->image.w / CELL_W, rows = s->image.h / CELL_H;
    for (int i = 0; i < TRIES; i++) {
        random_label(t->label, random);
        int cells = (int)strlen(t->label) + 2 * PAD;
        int x = below(random, columns - cells + 1) * CELL_W,
            y = (1 + below(random, rows - 2)) * CELL_H - RISE;
        const double box[4] = {x, y, x + cells * CELL_W, y + CELL_H + 2 * RISE};
        if (first_letter_taken(s, t->label[0]) || !is_free(s, box))
            continue;
        memcpy(t->box, box, sizeof box);
        s->n++;
        return true;
    }
    return false;
}

int calibration_draw(struct calibration_screen *s, int w, int h, int n, uint64_t seed, struct err *e)
{
    struct image glyphs = {0};
    *s = (struct calibration_screen){0};
    if (w < CALIBRATE_MIN_W || h < CALIBRATE_MIN_H || n < 1 || n > CALIBRATE_ON_SCREEN)
        return err_set(e, ERR_USAGE,
                       "cannot draw a screen of %d x %d with %d buttons: expected at least %d x %d and 1 to "
                       "%d buttons",
                       w, h, n, CALIBRATE_MIN_W, CALIBRATE_MIN_H, CALIBRATE_ON_SCREEN);
    if (image_parse_png(&glyphs, calibrate_glyphs,
                        (uintptr_t)calibrate_glyphs_end - (uintptr_t)calibrate_glyphs, e) ||
        image_alloc(&s->image, w, h, e)) {
        image_free(&glyphs);
        return -1;
    }
    fill(&s->image, 0, 0, w, h, page);
    while (s->n < n && add_target(s, &seed))
        put_button(&s->image, &s->targets[s->n - 1], &looks[below(&seed, 2)], &glyphs);
    image_free(&glyphs);
    if (s->n == n)
        return 0;
    image_free(&s->image);
    return err_set(e, ERR_USAGE, "%d buttons do not fit on %d x %d", n, w, h);
}
