/* coords.c - the one definition of where the model points.
 *
 *   norm1000  px = min(size - 1, floor(v * size / 1000))     v in 0..1000
 *   norm1     px = min(size - 1, floor(v * size))            v in 0..1
 *   px        px = floor(v)                                  v in 0..size - 1
 *   bin64     px = floor((v + 0.5) * size / 64)              v in 0..63, whole
 *
 * A number outside its range is an error the model hears about, because a click somewhere else is worse
 * than no click.  Up to 1 % beyond an edge is rounding noise, taken as the edge, and recorded.
 */
#include "actions/parse.h"

#include <math.h>

enum { BINS = 64 };

int coords_map(enum coord_space space, double v, int size, int *pixel, bool *clamped)
{
    double top = space == COORD_NORM1000 ? 1000
                 : space == COORD_NORM1  ? 1
                 : space == COORD_PIXEL  ? size - 1
                                         : BINS - 1;
    double slack = space == COORD_BIN64 ? 0 : space == COORD_PIXEL ? size * 0.01 : top * 0.01;
    if (!isfinite(v) || v < -slack || v > top + slack || (space == COORD_BIN64 && v != floor(v)))
        return -1;
    *clamped = *clamped || v < 0 || v > top;
    v = fmin(fmax(v, 0), top);
    double px = v;
    if (space == COORD_BIN64)
        px = (v + 0.5) * size / BINS;
    else if (space != COORD_PIXEL)
        px = v * size / top;
    *pixel = (int)fmin(floor(px), size - 1);
    return 0;
}

int dialect_to_pixel(const struct dialect *d, double v, int size, int *pixel)
{
    bool clamped = false;
    return coords_map(d->coords, v, size, pixel, &clamped);
}

enum action_fault coords_place(struct parse *p, const char *what, struct place n, int32_t *x, int32_t *y)
{
    static const char *const ranges[] = {"integers from 0 to 1000", "numbers from 0 to 1",
                                         "pixels of the screenshot", "bins from 0 to 63"};
    bool clamped = false, whole = p->space == COORD_NORM1000 || p->space == COORD_PIXEL;
    double nx = n.x, ny = n.y;
    int px, py;
    if (whole && (n.fx || n.fy)) {
        bool parts =
            n.fx && n.fy && nx >= 0 && nx <= 1 && ny >= 0 && ny <= 1 && (nx != floor(nx) || ny != floor(ny));
        parts = parts && p->space == COORD_NORM1000;
        p->out->repairs |= REPAIR_FLOAT;
        nx = parts ? nx * 1000 : floor(nx + 0.5);
        ny = parts ? ny * 1000 : floor(ny + 0.5);
    }
    if (coords_map(p->space, nx, p->w, &px, &clamped) || coords_map(p->space, ny, p->h, &py, &clamped))
        return parse_fault(p, FAULT_RANGE, "%s = %g, %g is outside the screen: coordinates are %s", what, n.x,
                           n.y, ranges[p->space]);
    *x = px;
    *y = py;
    p->out->repairs |= clamped ? REPAIR_CLAMP : 0;
    return FAULT_NONE;
}
