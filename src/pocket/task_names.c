/* task_names.c - see task_names.h.
 *
 * A name has up to three words without punctuation between them.  Exact matches of longer names are tried
 * first; then single words with a few misread characters, and longer names of these. */
#include "pocket/task_names.h"

#include "base/buf.h"
#include "base/err.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORDS = 64, LONGEST_NAME = 3, REPLY_MOST = 1 << 20 };

struct word {
    int begin, end; /* bytes of the task, without punctuation around the word */
    bool last;      /* last word of a clause: punctuation follows */
    bool mentioned; /* in a reply */
    bool used;      /* part of a name that was found */
};

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 128;
}

static bool stands_at(const char *text, const char *s, const char *words, size_t n)
{
    return strncasecmp(s, words, n) == 0 && (s == text || !in_word(s[-1]) || !in_word(*words)) &&
           (!in_word(s[n]) || !in_word(s[n - 1]));
}

const char *words_find_last(const char *text, const char *words)
{
    size_t n = strlen(words);
    const char *found = NULL;
    for (const char *s = text; n && *s; s++)
        found = stands_at(text, s, words, n) ? s : found;
    return found;
}

int words_count(const char *text, const char *words)
{
    size_t n = strlen(words);
    int times = 0;
    for (const char *s = text; n && *s; s++)
        times += stands_at(text, s, words, n);
    return times;
}

bool task_has_conditions(const char *task)
{
    static const char *const words[] = {"not",     "never", "without", "unless", "if",  "except",
                                        "instead", "or",    "avoid",   "until",  "only"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words_find_last(task, words[i]))
            return true;
    for (const char *s = task; (s = strcasestr(s, "n't")); s += 3)
        if (!in_word(s[3]))
            return true;
    return false;
}

char *reply_words(const char *reply)
{
    autobuf b = buf_of(REPLY_MOST);
    for (const char *s = reply; *s; s++) {
        const char *end = *s == '<' ? strchr(s, '>') : NULL;
        buf_put(&b, end ? "\n" : s, 1);
        s = end ? end : s;
    }
    return xstrdup(b.data ? b.data : "");
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

/* Copies words [i, i + n) of the task; false: punctuation is between them, or one is used. */
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

static bool is_one_of(const char *task, const struct word *w, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((size_t)(w->end - w->begin) == strlen(words[i]) &&
            !strncasecmp(task + w->begin, words[i], strlen(words[i])))
            return true;
    return false;
}

/* Returns whether a name cannot begin or end with this word. */
static bool is_filler(const char *task, const struct word *w)
{
    static const char *const words[] = {"the",  "a",   "an",   "to", "in", "into", "on", "of",  "for",
                                        "from", "and", "with", "as", "at", "it",   "by", "then"};
    return is_one_of(task, w, words, sizeof words / sizeof *words);
}

/* Returns whether a word is an instruction: the first of a task, or in lower case the first of a clause. */
static bool is_verb(const char *task, const struct word *w, int i)
{
    static const char *const joins[] = {"and", "then", "please"};
    bool first = i == 0 || w[i - 1].last || is_one_of(task, &w[i - 1], joins, sizeof joins / sizeof *joins);
    return i == 0 || (first && islower((unsigned char)task[w[i].begin]));
}

int task_pieces(const char *task, const char *said, char (*out)[TASK_NAME], int max)
{
    struct word w[WORDS];
    int words = split(task, w), n = 0;
    for (int i = 0; i < words; i++) {
        bool pressed = i == words - 1 && i > 0 && is_verb(task, w, i - 1); /* "..., then press Done" */
        w[i].used = pressed || is_verb(task, w, i) ||
                    (piece_at(task, w, words, i, 1, out[n]) && words_find_last(said, out[n]));
    }
    for (int i = 0; i < words; i++)
        for (int k = 1; k <= LONGEST_NAME && i + k <= words && n < max; k++)
            n += !is_filler(task, &w[i]) && !is_filler(task, &w[i + k - 1]) &&
                 piece_at(task, w, words, i, k, out[n]);
    return n;
}

/* Marks words [i, i + n) as used by a name.  Returns whether none of them was mentioned: "Egg" is enough for
 * "Egg 24". */
static bool use(struct word *w, int i, int n)
{
    bool fresh = true;
    for (int k = i; k < i + n; k++) {
        fresh = fresh && !w[k].mentioned;
        w[k].used = true;
    }
    return fresh;
}

bool task_unmentioned(const char *task, int until, const char *said, const struct seen *s,
                      char name[TASK_NAME], struct thing *thing)
{
    struct word w[WORDS];
    struct thing is;
    char piece[TASK_NAME];
    int words = split(task, w), first = until;
    for (int i = 0; i < words; i++)
        w[i].mentioned = piece_at(task, w, words, i, 1, piece) && words_find_last(said, piece);
    for (int pass = 0; pass < 2 * LONGEST_NAME; pass++)
        for (int i = 0; i < words; i++) {
            bool exactly = pass < LONGEST_NAME;
            int n = exactly ? LONGEST_NAME - pass : pass - LONGEST_NAME + 1;
            if (!piece_at(task, w, words, i, n, piece) || (n == 1 && w[i].mentioned) || strlen(piece) < 2 ||
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
