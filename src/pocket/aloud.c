/* aloud.c - snaps a transcribed line to the recognized text.
 *
 * A language model that copies a line character by character loses its position and continues with another
 * line; the character head reads the image directly.  A transcription is replaced by the most similar rest
 * of a line, from any of its words on, because users ask for a line or its rest.  A transcription that
 * differs in few characters is kept: the model may be right. */
#include "pocket/locate.h"

enum {
    SHORTEST = 4,  /* characters of an answer; shorter ones, such as "yes" or a number, are kept */
    CUT_OFF = 30,  /* characters; a longer answer may have ended before its line */
    LINE_MOST = 60 /* characters that are compared */
};
/* Edit distances: up to the first one a transcription is kept; lines at the second one or above are not
 * similar. */
static const float max_kept = 0.15f, max_similar = 0.5f;
static const float min_length = 0.8f; /* minimum length of a line, as a fraction of the transcription */
static const float blank = 0.14f;     /* ems */

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
    float least = max_similar;
    for (int k = 0; n >= SHORTEST && k < t->n_lines; k++) {
        const struct letter *l = t->letters + t->lines[k].first;
        int m = t->lines[k].n;
        float pitch = text_pitch(l, m);
        for (int from = 0; from < m; from++) {
            int rest = m - from, compared = n >= CUT_OFF && rest > n ? n : rest;
            if (!begins_word(l, from, pitch) || (float)rest < min_length * (float)n)
                continue;
            float differs = text_unlike(l + from, compared < LINE_MOST ? compared : LINE_MOST, said);
            if (differs < least) {
                least = differs;
                found = t->lines[k].first + from;
                n_found = rest;
            }
        }
    }
    if (found < 0 || least <= max_kept)
        return false;
    text_spell(t->letters + found, n_found, blank, out, size);
    return true;
}
