/* blocks.c - see blocks.h.
 *
 * Each character is an upper half block: its colour is the upper pixel, its background the lower one.
 */
#include "gate/blocks.h"

#include <stdlib.h>
#include <string.h>

enum colours { COLOURS_NONE, COLOURS_256, COLOURS_TRUE };

static enum colours colours(void)
{
    const char *no = getenv("NO_COLOR"), *depth = getenv("COLORTERM"), *term = getenv("TERM");
    if (no && *no)
        return COLOURS_NONE;
    if (depth && (strstr(depth, "truecolor") || strstr(depth, "24bit")))
        return COLOURS_TRUE;
    return term && strstr(term, "256color") ? COLOURS_256 : COLOURS_NONE;
}

/* Mean of the pixels that fall on cell (x, y) of a grid of w by h. */
static void mean(const struct image *im, int x, int y, int w, int h, int out[3])
{
    int x0 = x * im->w / w, x1 = (x + 1) * im->w / w, y0 = y * im->h / h, y1 = (y + 1) * im->h / h;
    long sum[3] = {0}, n = 0;
    for (int j = y0; j < (y1 > y0 ? y1 : y0 + 1) && j < im->h; j++)
        for (int i = x0; i < (x1 > x0 ? x1 : x0 + 1) && i < im->w; i++, n++)
            for (int c = 0; c < 3; c++)
                sum[c] += im->rgb[3 * ((size_t)j * (size_t)im->w + (size_t)i) + (size_t)c];
    for (int c = 0; c < 3; c++)
        out[c] = n ? (int)(sum[c] / n) : 0;
}

static void put_colour(FILE *f, enum colours depth, int ground, const int c[3])
{
    if (depth == COLOURS_TRUE)
        fprintf(f, "\033[%d;2;%d;%d;%dm", ground, c[0], c[1], c[2]);
    else /* a cube of 6 x 6 x 6 */
        fprintf(f, "\033[%d;5;%dm", ground,
                16 + 36 * (c[0] * 5 / 255) + 6 * (c[1] * 5 / 255) + c[2] * 5 / 255);
}

void blocks_print(FILE *f, const struct image *im, int columns)
{
    enum colours depth = colours();
    int w = im->w < columns ? im->w : columns, h = w ? im->h * w / im->w : 0;
    for (int y = 0; depth != COLOURS_NONE && y + 1 < h; y += 2) {
        fputs("      ", f);
        for (int x = 0; x < w; x++) {
            int upper[3], lower[3];
            mean(im, x, y, w, h, upper);
            mean(im, x, y + 1, w, h, lower);
            put_colour(f, depth, 38, upper);
            put_colour(f, depth, 48, lower);
            fputs("\xe2\x96\x80", f);
        }
        fputs("\033[0m\n", f);
    }
}
