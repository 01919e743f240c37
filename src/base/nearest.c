/* nearest.c - see nearest.h: the Damerau-Levenshtein distance. */
#include "base/nearest.h"

#include <string.h>

enum {
    NEAR = 2,      /* edits at most */
    WORD_MAX = 32, /* longer words are not compared */
};

/* Edits (insert, delete, replace, swap neighbours) between two short words. */
static int edit_distance(const char *a, const char *b)
{
    int na = (int)strlen(a), nb = (int)strlen(b);
    if (na >= WORD_MAX || nb >= WORD_MAX)
        return WORD_MAX;
    int d[WORD_MAX][WORD_MAX];
    for (int i = 0; i <= na; i++) {
        for (int j = 0; j <= nb; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            int same = a[i - 1] == b[j - 1], best = d[i - 1][j - 1] + !same;
            best = best < d[i - 1][j] + 1 ? best : d[i - 1][j] + 1;
            best = best < d[i][j - 1] + 1 ? best : d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[na][nb];
}

const char *nearest_word(const char *word, const char *const *candidates, int n)
{
    const char *nearest = NULL;
    int least = NEAR + 1;
    for (int i = 0; i < n; i++) {
        int d = edit_distance(word, candidates[i]);
        if (d < least && d < (int)strlen(word)) {
            least = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}
