/* aloud.c - a line that a small model reads aloud, as the letters of the picture have it.
 *
 * A language model that copies a line letter by letter loses its way in it and goes on with another; the
 * tower's letters are what it copies from.  The end of a line that is nearest to what was said is taken for
 * it: a line, or what stands there from a word on, is what people ask for.  Where only a few letters differ
 * the model may be the one that is right.
 */
#include "locate/locate.h"

#include <string.h>

enum {
    SHORTEST = 4,  /* letters of an answer; "yes" and a number stay as they are */
    CUT_OFF = 30,  /* letters from which an answer may have ended before its line */
    LINE_MOST = 60 /* letters that are compared */
};
/* Shares of the letters that may differ: so few that the model spells it as well, and so many. */
static const float alike = 0.15f, near = 0.5f;
static const float shorter = 0.8f; /* of the letters said a line has at least */
static const float blank = 0.14f;  /* ems */

static int letters_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text != ' ';
    return n;
}

static bool begins_word(const struct letter *l, int i, float pitch)
{
    return i == 0 || l[i].x - l[i - 1].x > pitch;
}

bool text_aloud(const struct picture_text *t, const char *said, char *out, int size)
{
    int n = letters_of(said), found = -1, n_found = 0;
    float least = near;
    for (int k = 0; n >= SHORTEST && k < t->n_lines; k++) {
        const struct letter *l = t->letters + t->lines[k].first;
        int m = t->lines[k].n;
        float pitch = text_pitch(l, m);
        for (int from = 0; from < m; from++) {
            int rest = m - from, compared = n >= CUT_OFF && rest > n ? n : rest;
            if (!begins_word(l, from, pitch) || (float)rest < shorter * (float)n)
                continue;
            float differs = text_unlike(l + from, compared < LINE_MOST ? compared : LINE_MOST, said);
            if (differs < least) {
                least = differs;
                found = t->lines[k].first + from;
                n_found = rest;
            }
        }
    }
    if (found < 0 || least <= alike)
        return false;
    text_spell(t->letters + found, n_found, blank, out, size);
    return true;
}
