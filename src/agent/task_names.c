/* task_names.c - see task_names.h.
 *
 * A name has up to three words, between which no mark stands.  Longer ones are looked for first, as they
 * are written; then single words of which a letter or two may have been read wrongly, and then longer ones
 * of these.
 */
#include "agent/task_names.h"

#include "base/buf.h"
#include "base/err.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORDS = 64, LONGEST_NAME = 3, REPLY_MOST = 1 << 20 };

struct word {
    int begin, end; /* bytes of the task, without the marks around it */
    bool last;      /* of a clause: a mark follows */
    bool spoken;    /* of in a reply */
    bool used;      /* part of a name that has been found */
};

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 128;
}

const char *spoken_of(const char *text, const char *words)
{
    size_t n = strlen(words);
    const char *found = NULL;
    for (const char *s = text; n && *s; s++)
        if (strncasecmp(s, words, n) == 0 && (s == text || !in_word(s[-1]) || !in_word(*words)) &&
            (!in_word(s[n]) || !in_word(s[n - 1])))
            found = s;
    return found;
}

bool task_has_conditions(const char *task)
{
    static const char *const words[] = {"not",    "don't",   "never", "without", "unless", "if",
                                        "except", "instead", "or",    "avoid",   "until",  "only"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (spoken_of(task, words[i]))
            return true;
    return false;
}

char *reply_words(const char *reply)
{
    struct buf b;
    buf_init(&b, REPLY_MOST);
    for (const char *s = reply; *s; s++) {
        const char *end = *s == '<' ? strchr(s, '>') : NULL;
        buf_put(&b, end ? "\n" : s, 1);
        s = end ? end : s;
    }
    char *out = xstrdup(b.data ? b.data : "");
    buf_free(&b);
    return out;
}

static int split(const char *task, struct word *w)
{
    int n = 0;
    for (const char *s = task; *s && n < WORDS;) {
        s += strspn(s, " \t\n\"'(");
        size_t most = strcspn(s, " \t\n"), len = most;
        while (len && strchr(",.;:!?\"')", s[len - 1]))
            len--;
        if (len)
            w[n++] = (struct word){(int)(s - task), (int)(s - task) + (int)len, len < most, false, false};
        s += most;
    }
    return n;
}

/* Words [i, i + n) as a piece of the task; false: a mark stands between them, or one is used. */
static bool piece_at(const char *task, const struct word *w, int words, int i, int n, char piece[TASK_NAME])
{
    if (i + n > words)
        return false;
    for (int k = i; k < i + n; k++)
        if (w[k].used || (k < i + n - 1 && w[k].last))
            return false;
    int len = w[i + n - 1].end - w[i].begin;
    if (len >= TASK_NAME)
        return false;
    memcpy(piece, task + w[i].begin, (size_t)len);
    piece[len] = 0;
    return true;
}

bool any_spoken_of(const char *text, const char *words)
{
    struct word w[WORDS];
    char piece[TASK_NAME];
    int n = split(words, w);
    for (int i = 0; i < n; i++)
        if (piece_at(words, w, n, i, 1, piece) && spoken_of(text, piece))
            return true;
    return false;
}

bool task_last_word(const char *task, char name[TASK_NAME])
{
    struct word w[WORDS];
    int n = split(task, w);
    return n && piece_at(task, w, n, n - 1, 1, name) && strlen(name) > 1;
}

/* Words [i, i + n) are found as a name.  Whether none of them has been spoken of: "Egg" is enough for "Egg
 * 24". */
static bool use(struct word *w, int i, int n)
{
    bool fresh = true;
    for (int k = i; k < i + n; k++) {
        fresh = fresh && !w[k].spoken;
        w[k].used = true;
    }
    return fresh;
}

bool task_left_out(const char *task, int until, const char *said, const struct seen *s, char name[TASK_NAME],
                   struct thing *thing)
{
    struct word w[WORDS];
    struct thing is;
    char piece[TASK_NAME];
    int words = split(task, w), first = until;
    for (int i = 0; i < words; i++)
        w[i].spoken = piece_at(task, w, words, i, 1, piece) && spoken_of(said, piece);
    for (int pass = 0; pass < 2 * LONGEST_NAME; pass++)
        for (int i = 0; i < words; i++) {
            bool exactly = pass < LONGEST_NAME;
            int n = exactly ? LONGEST_NAME - pass : pass - LONGEST_NAME + 1;
            if (!piece_at(task, w, words, i, n, piece) || (n == 1 && w[i].spoken) || strlen(piece) < 2 ||
                !thing_of_name(&s->map, &s->text, piece, exactly, LOCATE_CLICK, &is))
                continue;
            if (use(w, i, n) && w[i].begin < first) {
                first = w[i].begin;
                *thing = is;
                memcpy(name, piece, sizeof piece);
            }
        }
    return first < until;
}
