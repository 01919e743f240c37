/* zone.c - see zone.h. */
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
                "as 0,0,100%%,32; not '%.60s'",
                from, texts[n]);
    }
    return n;
}

/* Its begin and end along one side of `size` pixels. */
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
