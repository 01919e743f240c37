/* coords.c - maps the model's coordinates to pixels.
 *
 *   norm1000  px = min(size - 1, floor(v * size / 1000))     v in 0..1000
 *   norm1     px = min(size - 1, floor(v * size))            v in 0..1
 *   px        px = floor(v)                                  v in 0..size - 1
 *   native    px = floor(v / image_native_scale())           v in 0..1023, of the picture as such a model
 *             sees it: a large one reduced to 1024 pixels a side, a small one enlarged
 *   px28      px = floor(v * size / resized size)            v in 0..resized size - 1, of the picture as the
 *             processors of Qwen2.5-VL resize it: sides that are multiples of 28
 *   fit       the same, of the picture scaled down to 1568 pixels on its longer side and 1.15 million in all,
 *             which Anthropic's models are given
 *
 * A number out of range is an error that the model reads: a click somewhere else is worse than no click.
 * Up to 1 % beyond an edge is clamped to the edge and recorded.
 */
#include "actions/parse.h"

#include "base/image.h"

#include <math.h>

enum { NATIVE_SIDE = 1024, FACTOR = 28, FIT_SIDE = 1568, FIT_PIXELS = 1150000 };
enum { LEAST_PIXELS = 4 * FACTOR * FACTOR, MOST_PIXELS = 16384 * FACTOR * FACTOR };

/* Half goes to the even one, as where these models were trained. */
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

/* Pixels of the image for one of the picture that the numbers are about. */
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

/* The unrounded position of v along an extent, up to and including the far edge of the last pixel. */
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
    if (!isfinite(v) || v < -slack || v > top + slack)
        return -1;
    *clamped =
        *clamped || v < 0 || (scaled ? v >= size : v > top); /* a scaled one may lie inside the last pixel */
    v = fmin(fmax(v, 0), top);
    *position = space == COORD_PIXEL ? v : v * size / top;
    return 0;
}

static int coords_to_pixel(enum coord_space space, double v, int size, double scale, int *pixel,
                           bool *clamped)
{
    double position;
    if (to_extent(space, v, size, scale, &position, clamped))
        return -1;
    *pixel = (int)fmin(floor(position), size - 1);
    return 0;
}

int dialect_to_pixels(const struct dialect *d, const double v[2], int w, int h, int32_t *x, int32_t *y)
{
    bool clamped = false;
    int px, py;
    struct scale scale = scale_of(d->coords, d, w, h);
    if (coords_to_pixel(d->coords, v[0], w, scale.x, &px, &clamped) ||
        coords_to_pixel(d->coords, v[1], h, scale.y, &py, &clamped))
        return -1;
    *x = px;
    *y = py;
    return 0;
}

/* In spaces of whole numbers, fractions from 0 to 1 are taken as parts of the extent, other fractions are
 * rounded half up; true when there were any. */
static bool convert_fractions(enum coord_space space, const struct dialect_numbers *n, double *nx, double *ny)
{
    *nx = n->x;
    *ny = n->y;
    if ((space != COORD_NORM1000 && space != COORD_PIXEL) || (!n->fx && !n->fy))
        return false;
    bool inside = *nx >= 0 && *nx <= 1 && *ny >= 0 && *ny <= 1 && (*nx != floor(*nx) || *ny != floor(*ny));
    bool parts = n->fx && n->fy && inside && space == COORD_NORM1000;
    *nx = parts ? *nx * 1000 : floor(*nx + 0.5);
    *ny = parts ? *ny * 1000 : floor(*ny + 0.5);
    return true;
}

static const char *const ranges[] = {
    "integers from 0 to 1000",          "numbers from 0 to 1",
    "pixels of the screenshot",         "pixels of the picture that the model saw",
    "pixels of the resized screenshot", "pixels of the resized screenshot"};

enum action_fault coords_to_pixels(struct parse *p, const char *what, struct dialect_numbers n, int32_t *x,
                                   int32_t *y)
{
    bool clamped = false;
    double nx, ny;
    int px, py;
    struct scale scale = scale_of(p->space, p->d, p->w, p->h);
    p->out->repairs |= convert_fractions(p->space, &n, &nx, &ny) ? REPAIR_FLOAT : 0;
    if (coords_to_pixel(p->space, nx, p->w, scale.x, &px, &clamped) ||
        coords_to_pixel(p->space, ny, p->h, scale.y, &py, &clamped))
        return parse_fault(p, FAULT_RANGE, "%s = %g, %g is outside the screen: coordinates are %s", what, n.x,
                           n.y, ranges[p->space]);
    *x = px;
    *y = py;
    p->out->repairs |= clamped ? REPAIR_CLAMP : 0;
    return FAULT_NONE;
}

int dialect_exact_point(enum coord_space space, const struct dialect *d, const struct dialect_numbers *n,
                        int w, int h, double *x, double *y, struct err *e)
{
    bool clamped = false;
    double nx, ny;
    struct scale scale = scale_of(space, d, w, h);
    convert_fractions(space, n, &nx, &ny);
    if (to_extent(space, nx, w, scale.x, x, &clamped) || to_extent(space, ny, h, scale.y, y, &clamped))
        return err_set(e, ERR_FAILED, "%g, %g is outside the image: coordinates are %s", n->x, n->y,
                       ranges[space]);
    return 0;
}
