/* copied.c - snaps a text that a small model copied to the task.
 *
 * A model that spells words character by character sometimes makes a mistake and continues with a more
 * usual ending.  A typed text that is similar to a phrase of the task, but not equal, is replaced by that
 * phrase; a text that ends within a word that contains punctuation ("notes" of "notes.txt") gets the rest
 * of that word.  Short texts, numbers and case differences are kept. */
#include "pocket/private.h"

#include "base/buf.h"
#include "base/err.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHORTEST = 8, PIECES = 256, PIECE = 32 };

static int words_of(const char *text)
{
    int n = 0;
    for (const char *s = text; *s; s++)
        n += *s != ' ' && (s == text || s[-1] == ' ');
    return n;
}

/* Copies the first n words of a text without punctuation around them; false: there are fewer, or they are too
 * long. */
static bool piece_of(const char *text, int n, char piece[PIECE])
{
    const char *end = text;
    for (int k = 0; k < n; k++) {
        end += strspn(end, " ");
        if (!*end)
            return false;
        end += strcspn(end, " ");
    }
    text += strspn(text, " \"'(");
    while (end > text && strchr(",.;:!?\"')", end[-1]))
        end--;
    size_t len = (size_t)(end - text);
    if (len == 0 || len >= PIECE)
        return false;
    memcpy(piece, text, len);
    piece[len] = 0;
    return true;
}

static bool same_digits(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a && !isdigit((unsigned char)*a))
            a++;
        while (*b && !isdigit((unsigned char)*b))
            b++;
        if (*a != *b || !*a)
            return *a == *b;
    }
}

/* Returns whether a word continues at p: "notes|.txt", "ana|@example.org", "Don|'t"; not "13|:05". */
static bool word_continues(const char *begin, const char *p)
{
    return p > begin && isalpha((unsigned char)p[-1]) && *p && strchr(".@_-'", *p) &&
           isalpha((unsigned char)p[1]);
}

/* Returns the text with the rest of its last word, if the word continues at each occurrence in the task;
 * NULL: it ends at one, or the text is not in the task. */
static char *whole_word(const char *text, const char *task)
{
    size_t n = strlen(text), whole = 0;
    const char *found = NULL;
    for (const char *at = task; n && (at = strstr(at, text)); at++) {
        if (at > task && isalnum((unsigned char)at[-1]))
            continue;
        if (!word_continues(task, at + n))
            return NULL;
        found = at;
    }
    if (!found)
        return NULL;
    for (whole = n; found[whole] && !strchr(" \t\n\"()<>,;", found[whole]); whole++)
        ;
    while (whole > n && strchr(".:!?'", found[whole - 1]))
        whole--;
    return xasprintf("%.*s", (int)whole, found);
}

char *copied_text(const char *text, const char *task)
{
    char *whole = whole_word(text, task);
    if (whole)
        return whole;
    char(*piece)[PIECE] = xmalloc(PIECES, sizeof *piece);
    const char *all[PIECES], *near = NULL;
    int n = 0, words = words_of(text);
    if (strlen(text) >= SHORTEST && !strstr(task, text))
        for (const char *s = task; *s && n < PIECES; s++)
            if (*s != ' ' && (s == task || s[-1] == ' ') && piece_of(s, words, piece[n])) {
                all[n] = piece[n];
                n++;
            }
    near = nearest_word(text, all, n);
    char *out = near && strcasecmp(near, text) != 0 && same_digits(near, text) ? xstrdup(near) : NULL;
    free(piece);
    return out;
}
