/* zone.c - parses zones and tests points and lines against them; see zone.h. */
#include "gate/zone.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool zone_length(const char *word, int side, struct zone_length *out)
{
    char *end;
    if (!isdigit((unsigned char)*word))
        return false;
    out->v = strtod(word, &end);
    out->percent = *end == '%';
    double max = out->percent ? 100 : 32767;
    bool whole = out->percent || (out->v <= max && out->v == (int)out->v);
    return !end[out->percent] && whole && out->v <= max && (side < 2 || out->v > 0);
}

static bool read_zone(const char *text, struct zone *out)
{
    char word[4][32], rest;
    if (sscanf(text, "%31[^,],%31[^,],%31[^,],%31[^,]%c", word[0], word[1], word[2], word[3], &rest) != 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (!zone_length(word[i], i, &out->at[i]))
            return false;
    return true;
}

int zones_read(const char *const *texts, const char *from, struct zone out[ZONES_MAX], struct err *e)
{
    int n = 0;
    for (; texts[n]; n++) {
        if (n == ZONES_MAX)
            return err_set(e, ERR_USAGE, "%s is given more than %d times", from, ZONES_MAX);
        if (!read_zone(texts[n], &out[n]))
            return err_set(
                e, ERR_USAGE,
                "%s expects X,Y,WIDTH,HEIGHT in pixels of the root window or in %% of it, none negative, "
                "for example 0,0,100%%,32; not '%.60s'",
                from, texts[n]);
    }
    return n;
}

/* Computes begin and end of a zone along one side of `size` pixels. */
static void span(const struct zone *z, int side, double size, int *from, int *to)
{
    struct zone_length a = z->at[side], b = z->at[side + 2];
    double x = a.percent ? a.v * size / 100 : a.v, y = b.percent ? b.v * size / 100 : b.v;
    *from = (int)floor(x);
    *to = (int)ceil((b.percent ? x : floor(x)) + y);
}

struct screen_rect zone_rect(const struct zone *z, int w, int h)
{
    int x0, y0, x1, y1;
    span(z, 0, w, &x0, &x1);
    span(z, 1, h, &y0, &y1);
    return (struct screen_rect){x0, y0, x1 - x0, y1 - y0};
}

/* Clips the part [0, 1] of a line that remains to the interval from..to of one axis. Returns false if nothing
 * remains. */
static bool cut(double at, double step, double from, double to, double part[2])
{
    if (step == 0)
        return at >= from && at <= to;
    double enter = (from - at) / step, leave = (to - at) / step;
    part[0] = fmax(part[0], fmin(enter, leave));
    part[1] = fmin(part[1], fmax(enter, leave));
    return part[0] <= part[1];
}

bool zone_touched(const struct screen_rect *r, const int a[2], const int b[2])
{
    double part[2] = {0, 1};
    return r->w > 0 && r->h > 0 && cut(a[0], b[0] - a[0], r->x - 0.5, r->x + r->w - 0.5, part) &&
           cut(a[1], b[1] - a[1], r->y - 0.5, r->y + r->h - 0.5, part);
}
