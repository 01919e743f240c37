/* picture.c - coarse search and exact scores of pictures; see picture.h. */
#include "record/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES = 48,
    APART = 4,      /* minimum distance of two matches, in pixels */
    PLAIN = 3,      /* standard deviation of a channel, in levels of 255 */
    SHIFT = 48,     /* maximum difference of a channel's mean */
    TAPS = 14,      /* approximate side of the reduced picture in the search */
    SMALLEST = 8,   /* minimum side of a picture, in pixels */
    DIFFERENT = 40, /* levels of 255 */
    CARET_W = 3,
    CARET_LEAST = 11, /* lowest and highest text cursor, in pixels */
    CARET_MOST = 64,
    CARETS = 2, /* one that appeared, and one that disappeared */
};
static const double COARSE = 0.55, CONTRAST = 1.7;

/* ---- exact ------------------------------------------------------------------------------------------ */

struct moments {
    double mean[3], square, n; /* square: sum of squared deviations of all channels */
};

static struct moments moments_of(const struct image *im, int x, int y, int w, int h, int step)
{
    double sum[3] = {0}, square = 0, n = 0;
    for (int j = 0; j < h; j += step) {
        const uint8_t *p = im->rgb + 3 * ((size_t)(y + j) * (size_t)im->w + (size_t)x);
        for (int i = 0; i < w; i += step)
            for (int c = 0; c < 3; c++) {
                sum[c] += p[3 * i + c];
                square += p[3 * i + c] * p[3 * i + c];
            }
        int columns = (w + step - 1) / step;
        n += columns;
    }
    struct moments m = {.n = n};
    for (int c = 0; c < 3; c++) {
        m.mean[c] = sum[c] / n;
        square -= n * m.mean[c] * m.mean[c];
    }
    m.square = fmax(square, 0);
    return m;
}

static bool flat(const struct moments *m)
{
    return m->square < 3 * m->n * PLAIN * PLAIN;
}

/* Returns the correlation of a part of `small` (left top corner ax, ay) with im at x, y. */
static double correlate(const struct image *im, int x, int y, const struct image *small, int ax, int ay,
                        int w, int h, int step)
{
    struct moments a = moments_of(small, ax, ay, w, h, step), b = moments_of(im, x, y, w, h, step);
    double product = 0, ratio = sqrt((b.square + 1) / (a.square + 1));
    for (int c = 0; c < 3; c++)
        if (fabs(a.mean[c] - b.mean[c]) > SHIFT)
            return 0;
    if (flat(&a) || flat(&b))
        return flat(&a) && flat(&b);
    if (ratio > CONTRAST || ratio < 1 / CONTRAST)
        return 0;
    for (int j = 0; j < h; j += step) {
        const uint8_t *p = small->rgb + 3 * ((size_t)(ay + j) * (size_t)small->w + (size_t)ax);
        const uint8_t *q = im->rgb + 3 * ((size_t)(y + j) * (size_t)im->w + (size_t)x);
        int sum = 0;
        for (int i = 0; i < w; i += step)
            sum += p[3 * i] * q[3 * i] + p[3 * i + 1] * q[3 * i + 1] + p[3 * i + 2] * q[3 * i + 2];
        product += sum;
    }
    for (int c = 0; c < 3; c++)
        product -= a.n * a.mean[c] * b.mean[c];
    return product / sqrt(a.square * b.square);
}

/* Returns the length of the part of [0, size) within PICTURE_MIDDLE / 2 of c, and its start in *from. */
static int middle(int c, int size, int *from)
{
    int lo = c - PICTURE_MIDDLE / 2, hi = c + PICTURE_MIDDLE / 2;
    lo = lo < 0 ? 0 : lo;
    hi = hi > size ? size : hi;
    *from = lo;
    return hi - lo;
}

static bool inside(const struct image *im, const struct image *small, int x, int y)
{
    return x >= 0 && y >= 0 && x + small->w <= im->w && y + small->h <= im->h;
}

/* ---- text cursors ------------------------------------------------------------------------------------ */

static bool differs(const struct image *im, const struct image *small, int x, int y, int i, int j)
{
    const uint8_t *p = small->rgb + 3 * ((size_t)j * (size_t)small->w + (size_t)i);
    const uint8_t *q = im->rgb + 3 * ((size_t)(y + j) * (size_t)im->w + (size_t)(x + i));
    return abs(p[0] - q[0]) > DIFFERENT || abs(p[1] - q[1]) > DIFFERENT || abs(p[2] - q[2]) > DIFFERENT;
}

/* Returns the number of differing rows of a column, and the first in *top. Returns 0 if none differ, -1 if
 * they are not contiguous. */
static int differing_rows(const struct image *im, const struct image *small, int x, int y, int i, int *top)
{
    int n = 0, last = -1;
    for (int j = 0; j < small->h; j++)
        if (differs(im, small, x, y, i, j)) {
            if (n && j != last + 1)
                return -1;
            *top = n++ ? *top : j;
            last = j;
        }
    return n;
}

/* Returns whether all differences are thin vertical lines, such as a blinking text cursor. If so, *out is
 * the part of the screen without these lines; the caller frees it. */
static bool without_carets(const struct image *im, const struct image *small, int x, int y, struct image *out)
{
    int lines = 0, wide = 0, top = 0, first = 0, rows = 0;
    for (int i = 0; i < small->w; i++) {
        int n = differing_rows(im, small, x, y, i, &top);
        if (n && (n < CARET_LEAST || n > CARET_MOST || ++wide > CARET_W ||
                  (wide > 1 && (top != first || n != rows))))
            return false;
        lines += n && wide == 1;
        first = top;
        rows = n;
        wide = n ? wide : 0;
    }
    if (!lines || lines > CARETS || image_crop(out, im, x, y, small->w, small->h, NULL))
        return false;
    for (int j = 0; j < small->h; j++)
        for (int i = 0; i < small->w; i++)
            if (differs(im, small, x, y, i, j))
                memcpy(out->rgb + 3 * (j * small->w + i), small->rgb + 3 * (j * small->w + i), 3);
    return true;
}

/* ---- scores ------------------------------------------------------------------------------------------- */

static double score_as_is(const struct image *im, const struct image *small, int x, int y, int cx, int cy)
{
    int ax, ay, w = middle(cx, small->w, &ax), h = middle(cy, small->h, &ay);
    if (!small->rgb || !inside(im, small, x, y))
        return 0;
    double whole = correlate(im, x, y, small, 0, 0, small->w, small->h, 1);
    if (w < SMALLEST || h < SMALLEST)
        return whole;
    return fmin(whole, correlate(im, x + ax, y + ay, small, ax, ay, w, h, 1));
}

double picture_score(const struct image *im, const struct image *small, int x, int y, int cx, int cy)
{
    struct image clean = {0};
    double score = score_as_is(im, small, x, y, cx, cy);
    if (score < PICTURE_FOUND && small->rgb && inside(im, small, x, y) &&
        without_carets(im, small, x, y, &clean))
        score = score_as_is(&clean, small, 0, 0, cx, cy);
    image_free(&clean);
    return score;
}

/* Finds the best position within `reach` of x, y: first with every `step`-th pixel of the picture, then
 * exactly around the best. Returns its score, -1 if there is none. */
static double refine(const struct image *im, const struct image *small, int x, int y, int reach, int step,
                     int cx, int cy, struct picture_match *at)
{
    struct picture_match rough = {x, y, -1};
    *at = (struct picture_match){x, y, -1};
    for (int j = y - reach; j <= y + reach; j += step > 2 ? 2 : 1)
        for (int i = x - reach; i <= x + reach; i += step > 2 ? 2 : 1) {
            double s =
                inside(im, small, i, j) ? correlate(im, i, j, small, 0, 0, small->w, small->h, step) : -1;
            if (s > rough.score)
                rough = (struct picture_match){i, j, s};
        }
    for (int j = rough.y - 1; rough.score > 0 && j <= rough.y + 1; j++)
        for (int i = rough.x - 1; i <= rough.x + 1; i++) {
            double s = picture_score(im, small, i, j, cx, cy);
            if (s > at->score)
                *at = (struct picture_match){i, j, s};
        }
    return at->score;
}

/* Prefers the exact position if its score is higher: a text cursor has a large weight in a small picture and
 * moves the best position of the search. */
double picture_score_near(const struct image *im, const struct image *small, int x, int y, int reach, int cx,
                          int cy, struct picture_match *at)
{
    double score = picture_score(im, small, x, y, cx, cy);
    if (refine(im, small, x, y, reach, 1, cx, cy, at) < score)
        *at = (struct picture_match){x, y, score};
    return at->score;
}

bool picture_plain(const struct image *im)
{
    struct moments m = moments_of(im, 0, 0, im->w, im->h, 1);
    return flat(&m);
}

/* ---- coarse ----------------------------------------------------------------------------------------- */

struct grey { /* means of f x f pixels, and sums for the moments of any rectangle */
    float *v;
    double *sum, *square; /* [h + 1][w + 1] summed-area tables */
    int w, h;
};

static void grey_free(struct grey *g)
{
    free(g->v);
    free(g->sum);
    free(g->square);
}

/* Returns the means of im from x0, y0 onwards; sums only on request. */
static struct grey grey_of(const struct image *im, int x0, int y0, int f, bool sums)
{
    struct grey g = {.w = (im->w - x0) / f, .h = (im->h - y0) / f};
    g.v = xcalloc((unsigned long)g.w * (unsigned long)g.h + 1, sizeof *g.v);
    for (int y = 0; y < g.h; y++)
        for (int j = 0; j < f; j++) {
            const uint8_t *p = im->rgb + 3 * ((size_t)(y0 + y * f + j) * (size_t)im->w + (size_t)x0);
            for (int x = 0; x < g.w; x++)
                for (int i = 0; i < f; i++, p += 3)
                    g.v[y * g.w + x] += (float)(p[0] + 2 * p[1] + p[2]);
        }
    for (int i = 0; i < g.w * g.h; i++)
        g.v[i] /= (float)(4 * f * f);
    if (!sums)
        return g;
    size_t row = (size_t)g.w + 1;
    g.sum = xcalloc(row * ((size_t)g.h + 1), sizeof *g.sum);
    g.square = xcalloc(row * ((size_t)g.h + 1), sizeof *g.square);
    for (int y = 0; y < g.h; y++)
        for (int x = 0; x < g.w; x++) {
            size_t at = (size_t)(y + 1) * row + (size_t)x + 1;
            double v = g.v[y * g.w + x];
            g.sum[at] = v + g.sum[at - 1] + g.sum[at - row] - g.sum[at - row - 1];
            g.square[at] = v * v + g.square[at - 1] + g.square[at - row] - g.square[at - row - 1];
        }
    return g;
}

static double rectangle(const double *sums, int width, int x, int y, int w, int h)
{
    size_t row = (size_t)width + 1;
    const double *top = sums + (size_t)y * row + x, *bottom = top + (size_t)h * row;
    return bottom[w] - bottom[0] - top[w] + top[0];
}

/* Raises map[y][x] to the correlation where that is larger, and stores the phase ph of the small picture
 * there. Subtracts the mean from small->v. */
static void slide(const struct grey *big, struct grey *small, int ph, float *map, uint8_t *phase)
{
    int n = small->w * small->h;
    double mean = 0, square = 0;
    for (int i = 0; i < n; i++)
        mean += small->v[i] / n;
    for (int i = 0; i < n; i++) {
        small->v[i] -= (float)mean;
        square += small->v[i] * small->v[i];
    }
    for (int y = 0; y + small->h <= big->h; y++)
        for (int x = 0; x + small->w <= big->w; x++) {
            double sum = rectangle(big->sum, big->w, x, y, small->w, small->h);
            double var = rectangle(big->square, big->w, x, y, small->w, small->h) - sum * sum / n;
            if (var < square / 6 || var > square * 6) /* contrast is checked exactly later */
                continue;
            float product = 0;
            for (int j = 0; j < small->h; j++) {
                const float *a = small->v + j * small->w, *b = big->v + (y + j) * big->w + x;
                float line = 0;
                for (int i = 0; i < small->w; i++)
                    line += a[i] * b[i];
                product += line;
            }
            float r = product / (float)sqrt(square * var);
            size_t at = (size_t)y * (size_t)big->w + (size_t)x;
            if (r > map[at]) {
                map[at] = r;
                phase[at] = (uint8_t)ph;
            }
        }
}

static int by_score(const void *a, const void *b)
{
    double d = ((const struct picture_match *)b)->score - ((const struct picture_match *)a)->score;
    return d > 0 ? 1 : d < 0 ? -1 : 0;
}

/* Inserts m into the sorted list of the best CANDIDATES. */
static void keep(struct picture_match *list, int *n, struct picture_match m)
{
    if (*n == CANDIDATES && m.score <= list[*n - 1].score)
        return;
    int i = *n < CANDIDATES ? (*n)++ : *n - 1;
    for (; i > 0 && list[i - 1].score < m.score; i--)
        list[i] = list[i - 1];
    list[i] = m;
}

/* Finds the local maxima of the map, as positions of the left top corner in pixels; returns their number. */
static int maxima(const float *map, const uint8_t *phase, int w, int h, int f, struct picture_match *list)
{
    int n = 0;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float v = map[y * w + x];
            bool top = v > COARSE;
            for (int j = y ? y - 1 : 0; top && j <= y + 1 && j < h; j++)
                for (int i = x ? x - 1 : 0; i <= x + 1 && i < w; i++)
                    top = top && map[j * w + i] <= v;
            if (top) {
                int ph = phase[y * w + x];
                keep(list, &n, (struct picture_match){x * f - (ph & 15), y * f - (ph >> 4), v});
            }
        }
    return n;
}

static int coarse(const struct image *im, const struct image *small, int f, struct picture_match *list)
{
    struct grey big = grey_of(im, 0, 0, f, true);
    size_t n = (size_t)big.w * (size_t)big.h;
    float *map = xcalloc(n + 1, sizeof *map);
    uint8_t *phase = xcalloc(n + 1, 1);
    for (int py = 0; py < f; py += f / 2) /* the picture may begin between two means */
        for (int px = 0; px < f; px += f / 2) {
            struct grey part = grey_of(small, px, py, f, false);
            if (part.w && part.h)
                slide(&big, &part, py << 4 | px, map, phase);
            grey_free(&part);
        }
    int found = maxima(map, phase, big.w, big.h, f, list);
    grey_free(&big);
    free(map);
    free(phase);
    return found;
}

int picture_find(const struct image *im, const struct image *small, int cx, int cy,
                 struct picture_match out[PICTURE_MATCHES])
{
    struct picture_match list[CANDIDATES], at;
    int f = 4, n = 0;
    if (!small->rgb || small->w < SMALLEST || small->h < SMALLEST || small->w > im->w || small->h > im->h ||
        picture_plain(small))
        return 0;
    while (f < 16 && sqrt((double)small->w * small->h) / f > TAPS)
        f *= 2;
    while (f > 2 && (small->w < 3 * f || small->h < 3 * f))
        f /= 2;
    int candidates = coarse(im, small, f, list);
    for (int i = 0; i < candidates; i++) {
        if (refine(im, small, list[i].x, list[i].y, f / 2 + 1, f / 4 > 1 ? f / 4 : 1, cx, cy, &at) <
            PICTURE_FOUND)
            continue;
        bool known = false;
        for (int k = 0; k < n; k++)
            known = known || (abs(out[k].x - at.x) < APART && abs(out[k].y - at.y) < APART);
        if (!known && n < PICTURE_MATCHES)
            out[n++] = at;
    }
    qsort(out, (size_t)n, sizeof *out, by_score);
    return n;
}
