/* names.c - approximate matching of names in the recognized text by edit distance (Sellers 1980).  Spaces are
 * ignored on both sides, since the character head does not detect them.
 */
#include "pocket/locate.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE = 512,    /* characters of a line that are compared */
    LONG_WORD = 4, /* characters */
};
static const float glued_cost = 0.8f;
static const float max_misread = 0.4f; /* fraction of a name's characters */

struct cell {
    int cost, start;
};

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Computes, for each end in the line, the edit distance of the whole name to the best substring that ends
 * there, and its start; `whole`: substrings start at the first character. */
static void match(const char *name, int n, const struct letter *line, int m, bool whole, struct cell *row)
{
    for (int j = 0; j <= m; j++)
        row[j] = (struct cell){whole ? j : 0, j};
    for (int i = 1; i <= n; i++) {
        struct cell diagonal = row[0];
        row[0] = (struct cell){i, 0};
        for (int j = 1; j <= m; j++) {
            struct cell best = {diagonal.cost + !same(name[i - 1], line[j - 1].c), diagonal.start};
            if (row[j].cost + 1 < best.cost)
                best = (struct cell){row[j].cost + 1, row[j].start};
            if (row[j - 1].cost + 1 < best.cost)
                best = (struct cell){row[j - 1].cost + 1, row[j - 1].start};
            diagonal = row[j];
            row[j] = best;
        }
    }
}

/* Returns the median distance of characters [from, to) of a line. */
static float pitch(const struct letter *line, int from, int to)
{
    float gap[LINE];
    int n = 0;
    for (int i = from + 1; i < to; i++)
        gap[n++] = line[i].x - line[i - 1].x;
    if (n == 0)
        return 9;
    letters_sort(gap, n);
    return n % 2 ? gap[n / 2] : (gap[n / 2 - 1] + gap[n / 2]) / 2;
}

/* Returns the number of sides on which the word continues. */
static int glued(const struct letter *line, int m, int from, int to)
{
    float near = 1.35f * pitch(line, from, to);
    bool left =
        from > 0 && line[from].x - line[from - 1].x < near && isalnum((unsigned char)line[from - 1].c);
    bool right = to < m && line[to].x - line[to - 1].x < near && isalnum((unsigned char)line[to].c);
    return left + right;
}

/* Inserts a match, sorted by cost, unless it overlaps a better one; removes worse ones that it overlaps. */
static int add(struct written *out, int n, const struct written *w)
{
    int at = 0;
    for (int i = 0; i < n; i++) {
        bool overlaps = fabsf(out[i].y - w->y) < 8 && out[i].x0 <= w->x1 && w->x0 <= out[i].x1;
        if (overlaps && out[i].cost <= w->cost)
            return n;
        if (overlaps) {
            memmove(&out[i], &out[i + 1], (size_t)(n - i - 1) * sizeof *out);
            n--, i--;
        }
    }
    while (at < n && out[at].cost <= w->cost)
        at++;
    if (at == LOCATE_PLACES)
        return n;
    n -= n == LOCATE_PLACES;
    memmove(&out[at + 1], &out[at], (size_t)(n - at) * sizeof *out);
    out[at] = *w;
    return n + 1;
}

/* Copies a name without its spaces; returns its length. */
static int plain_name(const char *name, char *plain)
{
    int n = 0;
    for (; *name && n < LOCATE_NAME; name++)
        if (!isspace((unsigned char)*name))
            plain[n++] = *name;
    return n;
}

/* Returns whether a name contains all characters of a line: "Odd" in "Odd for 2". */
static bool is_part(const struct letter *line, int m, const char *plain, int n)
{
    for (int from = 0; m > 1 && from + m <= n; from++) {
        int k = 0;
        while (k < m && same(plain[from + k], line[k].c))
            k++;
        if (k == m)
            return true;
    }
    return false;
}

float text_unlike(const struct letter *line, int m, const char *name)
{
    char plain[LOCATE_NAME] = "";
    struct cell row[LINE + 1] = {{0}};
    int n = plain_name(name, plain);
    m = m < LINE ? m : LINE;
    match(plain, n, line, m, true, row);
    return n || m ? (float)row[m].cost / (float)(n > m ? n : m) : 0;
}

float text_differs(const struct letter *line, int m, const char *name)
{
    char plain[LOCATE_NAME] = "";
    int n = plain_name(name, plain);
    return is_part(line, m, plain, n) ? 0 : text_unlike(line, m, name);
}

static float least_differs(const struct picture_text *t, const char *name)
{
    struct written w[LOCATE_PLACES];
    char plain[LOCATE_NAME];
    int n = plain_name(name, plain);
    return text_find(t, name, 1, w) ? fminf(w[0].cost / (float)n, 1) : n > 1;
}

float text_absent(const struct picture_text *t, const char *name)
{
    float least = least_differs(t, name);
    char word[LOCATE_NAME];
    for (const char *s = name; *s;) {
        size_t n = strcspn(s, " ");
        if (n >= LONG_WORD && n < sizeof word && n < strlen(name)) {
            memcpy(word, s, n);
            word[n] = 0;
            least = fminf(least, least_differs(t, word));
        }
        s += n + strspn(s + n, " ");
    }
    return least > max_misread ? least : 0;
}

bool text_is_written(const struct picture_text *t, const char *text)
{
    struct written w[LOCATE_PLACES];
    return strlen(text) < LOCATE_NAME && text_find(t, text, 0, w) && w[0].cost < glued_cost;
}

int text_find(const struct picture_text *t, const char *name, float may_differ, struct written *out)
{
    char plain[LOCATE_NAME] = "";
    struct cell row[LINE + 1];
    int n = plain_name(name, plain), found = 0;
    for (int k = 0; n > 1 && k < t->n_lines; k++) {
        const struct letter *line = t->letters + t->lines[k].first;
        int m = t->lines[k].n < LINE ? t->lines[k].n : LINE;
        match(plain, n, line, m, false, row);
        for (int j = 1; j <= m; j++) {
            int from = row[j].start;
            if ((float)row[j].cost > may_differ * (float)n || from >= j)
                continue;
            float y = 0, edits = (float)row[j].cost;
            for (int i = from; i < j; i++)
                y += line[i].y / (float)(j - from);
            found = add(out, found,
                        &(struct written){line[from].x, line[j - 1].x, y,
                                          edits + glued_cost * (float)glued(line, m, from, j)});
        }
    }
    return found;
}
