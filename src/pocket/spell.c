/* spell.c - characters of a line as text with spaces.
 *
 * The character head does not detect spaces.  A space is where two characters are further apart than
 * within a word: by the median distance in a monospaced typeface, else by usual character widths; the line
 * itself shows which. */
#include "pocket/locate.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the width of a character in ems, as in most sans-serif typefaces. */
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

/* Returns the distance of two characters within a word, in units: constant, or by their widths. */
static float usual_gap(const struct letter *l, bool even)
{
    return even ? 1 : (width_of(l[0].c) + width_of(l[1].c)) / 2;
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void letters_sort(float *gaps, int n)
{
    qsort(gaps, (size_t)n, sizeof *gaps, by_size);
}

/* Returns the pixels of a unit, the median over the gaps of n characters; *off: mean relative deviation. */
static float unit_of(const struct letter *l, int n, bool even, float *off)
{
    float scale[LOCATE_NAME] = {0}, unit;
    int k = 0;
    for (; k + 1 < n && k < LOCATE_NAME; k++)
        scale[k] = (l[k + 1].x - l[k].x) / usual_gap(&l[k], even);
    letters_sort(scale, k);
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
