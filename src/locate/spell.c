/* spell.c - letters of a line as text.
 *
 * A reader of letters sees no blanks.  They are where two letters are further apart than they would be in a
 * word: all alike in a type of one width, else by how wide letters usually are; which of the two, the line
 * itself says.
 */
#include "locate/locate.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Width of a letter in ems, as in most types without serifs. */
static float width_of(char c)
{
    if (strchr("iljI|!.,:;'", c))
        return 0.25f;
    if (strchr("frt()[]-", c))
        return 0.31f;
    if (strchr("mMwW@%", c))
        return 0.8f;
    return isupper((unsigned char)c) ? 0.68f : strchr("sckvxyzJ", c) ? 0.5f : 0.556f;
}

/* How far apart two letters are in a word, in units of the type: all alike, or by their widths. */
static float usual_gap(const struct letter *l, bool even)
{
    return even ? 1 : (width_of(l[0].c) + width_of(l[1].c)) / 2;
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Pixels of a unit, by most of the gaps between n letters; *off: how far they are from it, in its parts. */
static float unit_of(const struct letter *l, int n, bool even, float *off)
{
    float scale[LOCATE_NAME] = {0}, unit;
    int k = 0;
    for (; k + 1 < n && k < LOCATE_NAME; k++)
        scale[k] = (l[k + 1].x - l[k].x) / usual_gap(&l[k], even);
    qsort(scale, (size_t)k, sizeof *scale, by_size);
    unit = k ? scale[(k - 1) / 2] : 1;
    *off = 0;
    for (int i = 0; i < k; i++)
        *off += fminf(fabsf(scale[i] / unit - 1), 0.5f) / (float)k;
    return unit;
}

float text_pitch(const struct letter *l, int n)
{
    float off;
    return unit_of(l, n, true, &off);
}

void text_spell(const struct letter *l, int n, float blank, char *out, int size)
{
    float off_even, off, one = unit_of(l, n, true, &off_even), em = unit_of(l, n, false, &off);
    bool even = off_even < off;
    int len = 0;
    for (int i = 0; i < n && len + 2 < size; i++) {
        if (i &&
            l[i].x - l[i - 1].x > (even ? one * (1 + 2 * blank) : em * (usual_gap(&l[i - 1], false) + blank)))
            out[len++] = ' ';
        out[len++] = l[i].c;
    }
    out[len] = 0;
}
