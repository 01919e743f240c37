/* coords.c - maps the model's coordinates to pixels.
 *
 *     norm1000  px = min(size - 1, floor(v * size / 1000))   v in 0..1000
 *     norm1     px = min(size - 1, floor(v * size))          v in 0..1
 *     px        px = floor(v)                                v in 0..size - 1
 *     native    px = floor(v / image_native_scale())         v in 0..1023, of the image as such a model
 *               sees it: a large one reduced to 1024 pixels a side, a small one enlarged
 *     px28      px = floor(v * size / resized size)          v in 0..resized size - 1, of the image as the
 *               processors of Qwen2.5-VL resize it: sides that are multiples of 28
 *     fit       as px28, of the image scaled down to 1568 pixels on its longer side and 1.15 million in all,
 *               which Anthropic's models are given
 *
 * A number out of range is an error that the model reads: a click somewhere else is worse than no click.  Up
 * to 1 % beyond an edge is clamped to the edge and recorded. */
#include "actions/parse.h"

#include "base/image.h"

#include <math.h>

enum { NATIVE_SIDE = 1024, FACTOR = 28, FIT_SIDE = 1568, FIT_PIXELS = 1150000 };
enum { LEAST_PIXELS = 4 * FACTOR * FACTOR, MOST_PIXELS = 16384 * FACTOR * FACTOR };

/* Rounds to a multiple of FACTOR, half to even, as in the training of these models. */
static int round_to_factor(double v)
{
    return (int)rint(v / FACTOR) * FACTOR;
}

static void size_px28(int least, int most, int *w, int *h)
{
    double pixels = (double)*w * *h;
    int rw = round_to_factor(*w), rh = round_to_factor(*h);
    double beta = (double)rw * rh > most    ? sqrt(pixels / most)
                  : (double)rw * rh < least ? sqrt(least / pixels)
                                            : 0;
    if ((double)rw * rh > most) {
        rw = (int)fmax(FACTOR, floor(*w / beta / FACTOR) * FACTOR);
        rh = (int)fmax(FACTOR, floor(*h / beta / FACTOR) * FACTOR);
    } else if (beta > 0) {
        rw = (int)(ceil(*w * beta / FACTOR) * FACTOR);
        rh = (int)(ceil(*h * beta / FACTOR) * FACTOR);
    }
    *w = rw;
    *h = rh;
}

static void size_fit(int *w, int *h)
{
    double scale =
        fmin(1, fmin((double)FIT_SIDE / (*w > *h ? *w : *h), sqrt((double)FIT_PIXELS / ((double)*w * *h))));
    *w = (int)fmax(1, floor(*w * scale));
    *h = (int)fmax(1, floor(*h * scale));
}

static void size_native(int *w, int *h)
{
    double scale = image_native_scale(*w, *h, NATIVE_SIDE);
    *w = (int)fmax(1, rint(*w * scale));
    *h = (int)fmax(1, rint(*h * scale));
}

static bool picture_size(enum coord_space space, const struct dialect *d, int *w, int *h)
{
    int was_w = *w, was_h = *h;
    if (space == COORD_PX28)
        size_px28(d && d->least_pixels ? d->least_pixels : LEAST_PIXELS,
                  d && d->most_pixels ? d->most_pixels : MOST_PIXELS, w, h);
    else if (space == COORD_FIT)
        size_fit(w, h);
    else if (space == COORD_NATIVE)
        size_native(w, h);
    return *w != was_w || *h != was_h;
}

bool dialect_picture_size(enum coord_space space, int *w, int *h)
{
    return picture_size(space, NULL, w, h);
}

bool dialect_shown_size(const struct dialect *d, int *w, int *h)
{
    return picture_size(d->coords, d, w, h);
}

/* pixels of the image per pixel of the image that the numbers refer to */
struct scale {
    double x, y;
};

static struct scale scale_of(enum coord_space space, const struct dialect *d, int w, int h)
{
    int pw = w, ph = h;
    double native = 1 / image_native_scale(w, h, NATIVE_SIDE);
    if (space == COORD_NATIVE)
        return (struct scale){native, native};
    picture_size(space, d, &pw, &ph);
    return (struct scale){(double)w / pw, (double)h / ph};
}

/* Computes the unrounded position of v along an extent, up to and including the far edge of the last pixel.
 * Returns -1 if v is out of range. */
static int to_extent(enum coord_space space, double v, int size, double scale, double *position,
                     bool *clamped)
{
    bool scaled = space == COORD_NATIVE || space == COORD_PX28 || space == COORD_FIT;
    if (scaled) {
        v *= scale;
        space = COORD_PIXEL;
    }
    double top = space == COORD_NORM1000 ? 1000 : space == COORD_NORM1 ? 1 : size - 1;
    double slack = space == COORD_PIXEL ? size * 0.01 : top * 0.01;
    if (!isfinite(v) || v < -slack || v > (scaled ? size : top) + slack)
        return -1;
    *clamped =
        /* a scaled position may be inside the last pixel */
        *clamped || v < 0 || (scaled ? v >= size : v > top);
    v = fmin(fmax(v, 0), top);
    double at = space == COORD_PIXEL ? v : v * size / top, whole = rint(at);
    *position = fabs(at - whole) < 1e-9 ? whole : at; /* 0.57 * 800 is 456, not 455.99999999999994 */
    return 0;
}

/* Converts fractions. In norm1000, fractions from 0 to 1 are parts of the extent; in pixels they may be parts
 * of the extent, too, and are rejected (returns false). Other fractions of whole numbers are rounded half up.
 * *changed: there were any. */
static bool convert_fractions(enum coord_space space, const struct dialect_numbers *n, double *nx, double *ny,
                              bool *changed)
{
    bool inside = n->x >= 0 && n->x <= 1 && n->y >= 0 && n->y <= 1;
    bool parts = inside && ((n->fx && n->fy) || n->x != floor(n->x) || n->y != floor(n->y));
    if (space == COORD_PIXEL) /* (1.82, 0.32) is neither: nobody counts a third of a pixel */
        parts = parts || (n->fx && n->x > 0 && n->x < 1) || (n->fy && n->y > 0 && n->y < 1);
    *nx = n->x;
    *ny = n->y;
    *changed = (n->fx || n->fy) && (space == COORD_NORM1000 || space == COORD_PIXEL);
    if ((!n->fx && !n->fy) || space == COORD_NORM1)
        return true;
    if (space == COORD_NORM1000) {
        *nx = parts ? *nx * 1000 : floor(*nx + 0.5);
        *ny = parts ? *ny * 1000 : floor(*ny + 0.5);
    } else if (space == COORD_PIXEL) {
        *nx = floor(*nx + 0.5);
        *ny = floor(*ny + 0.5);
    }
    return space == COORD_NORM1000 || !parts || (n->x == 0 && n->y == 0);
}

static const char *const ranges[] = {
    "integers from 0 to 1000",          "numbers from 0 to 1",
    "pixels of the screenshot",         "pixels of the picture that the model saw",
    "pixels of the resized screenshot", "pixels of the resized screenshot"};

/* Converts numbers to a position.  Returns 0, or -1 with the reason in why[0..size). */
static int to_position(enum coord_space space, const struct dialect *d, const struct dialect_numbers *n,
                       int w, int h, double *x, double *y, unsigned *repairs, char *why, size_t size)
{
    bool clamped = false, changed;
    double nx, ny;
    struct scale scale = scale_of(space, d, w, h);
    if (!convert_fractions(space, n, &nx, &ny, &changed)) {
        snprintf(why, size, "is a part of the screen: coordinates are %s", ranges[space]);
        return -1;
    }
    if (to_extent(space, nx, w, scale.x, x, &clamped) || to_extent(space, ny, h, scale.y, y, &clamped)) {
        snprintf(why, size, "is outside the screen: coordinates are %s", ranges[space]);
        return -1;
    }
    *repairs |= (changed ? REPAIR_FLOAT : 0) | (clamped ? REPAIR_CLAMP : 0);
    return 0;
}

/* Converts a position and the corners of its box, as to_position(); *bad: the rejected numbers. */
static int place_position(enum coord_space space, const struct dialect *d, const struct place *at, int w,
                          int h, double *x, double *y, unsigned *repairs, struct dialect_numbers *bad,
                          char *why, size_t size)
{
    struct dialect_numbers all[] = {at->n, at->corners[0], at->corners[1]};
    double px = 0, py = 0;
    unsigned unused = 0;
    for (int i = 0; i < (at->box ? 3 : 1); i++) {
        *bad = all[i];
        if (at->percent) {
            space = COORD_NORM1;
            all[i].x /= 100;
            all[i].y /= 100;
        }
        if (to_position(space, d, &all[i], w, h, i ? &px : x, i ? &py : y, i ? &unused : repairs, why, size))
            return -1;
    }
    *repairs |= at->percent ? REPAIR_FLOAT : 0;
    return 0;
}

static int32_t to_pixel(double position, int size)
{
    return (int32_t)fmin(floor(position), size - 1);
}

enum action_fault coords_place(struct parse *p, const char *what, const struct place *at, int32_t *x,
                               int32_t *y)
{
    double px = 0, py = 0;
    char why[120];
    struct dialect_numbers bad;
    if (at->absent)
        return parse_fault(p, FAULT_RANGE, "%s: the model says that the element is not on the screen", what);
    if (place_position(p->space, p->d, at, p->w, p->h, &px, &py, &p->out->repairs, &bad, why, sizeof why))
        return parse_fault(p, FAULT_RANGE, "%s = %g, %g %s", what, bad.x, bad.y, why);
    *x = to_pixel(px, p->w);
    *y = to_pixel(py, p->h);
    return FAULT_NONE;
}

enum action_fault coords_to_pixels(struct parse *p, const char *what, struct dialect_numbers n, int32_t *x,
                                   int32_t *y)
{
    return coords_place(p, what, &(struct place){.n = n}, x, y);
}

int dialect_place_position(const struct dialect *d, const struct place *at, int w, int h, double *x,
                           double *y, struct err *e)
{
    unsigned repairs = 0;
    char why[120];
    struct dialect_numbers bad;
    if (place_position(d->coords, d, at, w, h, x, y, &repairs, &bad, why, sizeof why))
        return err_set(e, ERR_FAILED, "%g, %g %s", bad.x, bad.y, why);
    return 0;
}

int dialect_place_pixel(const struct dialect *d, const struct place *at, int w, int h, int32_t *x, int32_t *y,
                        struct err *e)
{
    double px = 0, py = 0;
    if (dialect_place_position(d, at, w, h, &px, &py, e))
        return -1;
    *x = to_pixel(px, w);
    *y = to_pixel(py, h);
    return 0;
}

int dialect_exact_point(enum coord_space space, const struct dialect *d, const struct dialect_numbers *n,
                        int w, int h, double *x, double *y, struct err *e)
{
    unsigned repairs = 0;
    char why[120];
    if (to_position(space, d, n, w, h, x, y, &repairs, why, sizeof why))
        return err_set(e, ERR_FAILED, "%g, %g %s", n->x, n->y, why);
    return 0;
}

int dialect_to_pixels(const struct dialect *d, const double v[2], int w, int h, int32_t *x, int32_t *y)
{
    return dialect_place_pixel(d, &(struct place){.n = {.x = v[0], .y = v[1]}}, w, h, x, y, NULL);
}
