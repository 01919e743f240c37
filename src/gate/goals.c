/* goals.c - compares the words of plans with the words of the task; see goals.h. Words are stored as hashes
 * of their first letters. */
#include "gate/goals.h"

#include "base/err.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    STEM = 4,  /* number of letters compared */
    LEAST = 3, /* minimum length of a word */
    WORDS_MAX = 4096,
    TITLES_MAX = 1024,
};

enum script {
    SCRIPT_NONE,
    SCRIPT_DIGIT = 1,
    SCRIPT_LATIN = 2,
    SCRIPT_GREEK = 4,
    SCRIPT_CYRILLIC = 8,
    SCRIPT_HAN = 16,
    SCRIPT_OTHER = 32
};

struct words {
    uint64_t at[WORDS_MAX];
    int n;
    unsigned scripts;
};

struct goals {
    struct words known;
    uint64_t titles[TITLES_MAX];
    int n_titles;
    bool planned;
};

/* ---- words ------------------------------------------------------------------------------------ */

static enum script script_of(uint32_t c)
{
    if (c < 0x80)
        return isdigit((int)c) ? SCRIPT_DIGIT : isalpha((int)c) ? SCRIPT_LATIN : SCRIPT_NONE;
    if (c < 0xc0 || c == 0xd7 || c == 0xf7)
        return SCRIPT_NONE;
    if (c < 0x370)
        return SCRIPT_LATIN;
    if (c < 0x400)
        return SCRIPT_GREEK;
    if (c < 0x530)
        return SCRIPT_CYRILLIC;
    if ((c >= 0x2000 && c < 0x2e80) || (c >= 0x3000 && c < 0x3040) || (c >= 0xfe00 && c < 0xff10))
        return SCRIPT_NONE;
    if ((c >= 0x2e80 && c < 0xa000) || (c >= 0xac00 && c < 0xd7b0) || (c >= 0xf900 && c < 0xfb00) ||
        c >= 0x20000)
        return SCRIPT_HAN;
    return SCRIPT_OTHER;
}

static uint32_t lower(uint32_t c)
{
    if (c < 0x80)
        return (uint32_t)tolower((int)c);
    if ((c >= 0xc0 && c < 0xdf) || (c >= 0x391 && c < 0x3aa) || (c >= 0x410 && c < 0x430))
        return c + 0x20;
    return c >= 0x400 && c < 0x410 ? c + 0x50 : c;
}

/* Returns whether the word is a stop word. */
static bool is_common(const uint32_t *w, int n)
{
    static const char common[] =
        " the and for with from into onto this that then than them they their there when what which "
        "will you your its are was were has have not all any each every out off but can may task "
        "step using about after before ";
    char word[20] = " ";
    for (int i = 0; i < n; i++)
        word[i + 1] = w[i] < 0x80 ? (char)w[i] : '?';
    word[n + 1] = ' '; /* the remaining bytes are zero */
    return strstr(common, word);
}

static bool has_word(const struct words *w, uint64_t hash)
{
    for (int i = 0; i < w->n; i++)
        if (w->at[i] == hash)
            return true;
    return false;
}

static void add_word(struct words *w, const uint32_t *letters, int n)
{
    uint64_t hash = XXH3_64bits(letters, (size_t)n * sizeof *letters);
    if (w->n < WORDS_MAX && !has_word(w, hash))
        w->at[w->n++] = hash;
}

struct word { /* the word being read; longer ones are truncated */
    uint32_t letters[16];
    int n;
    unsigned scripts;
};

static void end_word(struct words *w, struct word *x)
{
    bool number = x->scripts == SCRIPT_DIGIT;
    int n = x->n;
    if ((number && n >= 2) || (n >= LEAST && !is_common(x->letters, n))) {
        add_word(w, x->letters, number || n < STEM ? n : STEM);
        w->scripts |= x->scripts & ~(unsigned)SCRIPT_DIGIT;
    }
    *x = (struct word){0};
}

/* Adds a character to the current word. In scripts without spaces between words, each pair of adjacent
 * characters is a word. */
static void add_letter(struct words *w, struct word *x, uint32_t c, enum script s)
{
    bool han = s == SCRIPT_HAN;
    if (x->n && han != (x->scripts == SCRIPT_HAN))
        end_word(w, x);
    if (han && x->n) {
        const uint32_t pair[2] = {x->letters[0], c};
        add_word(w, pair, 2);
        w->scripts |= SCRIPT_HAN;
        x->n = 0;
    }
    if (x->n < (int)(sizeof x->letters / sizeof *x->letters))
        x->letters[x->n++] = lower(c);
    x->scripts |= s;
}

static void add_words(struct words *w, const char *text, size_t len)
{
    struct word x = {0};
    for (size_t i = 0; i < len;) {
        uint32_t c = 0;
        int n = utf8_decode(text + i, len - i, &c);
        enum script s = n > 0 ? script_of(c) : SCRIPT_NONE;
        if (s == SCRIPT_NONE)
            end_word(w, &x);
        else
            add_letter(w, &x, c, s);
        i += n > 0 ? (size_t)n : 1;
    }
    end_word(w, &x);
}

/* ---- titles ----------------------------------------------------------------------------------- */

struct title {
    const char *text;
    size_t len;
};

/* Reads the next non-empty line of *plan without its number and status. Returns false at the end. */
static bool next_title(const char **plan, struct title *out)
{
    const char *p = *plan + strspn(*plan, " \n");
    size_t n = strcspn(p, "\n");
    *plan = p + n;
    size_t digits = strspn(p, "0123456789");
    if (digits && p[digits] == '.') {
        p += digits + 1;
        n -= digits + 1;
    }
    const char *status = n && p[n - 1] == ']' ? memrchr(p, '[', n) : NULL;
    *out = (struct title){p, status ? (size_t)(status - p) : n};
    return n > 0 || **plan;
}

static uint64_t hash_of(const struct title *t)
{
    return XXH3_64bits(t->text, t->len);
}

static bool known_title(const struct goals *g, const struct title *t)
{
    for (int i = 0; i < g->n_titles; i++)
        if (g->titles[i] == hash_of(t))
            return true;
    return false;
}

/* ---- goals ------------------------------------------------------------------------------------ */

struct goals *goals_new(const char *task)
{
    struct goals *g = xcalloc(1, sizeof *g);
    add_words(&g->known, task, strlen(task));
    return g;
}

void goals_free(struct goals *g)
{
    free(g);
}

bool goals_has_new(const struct goals *g, const char *plan)
{
    autofree struct words *fresh = xcalloc(1, sizeof *fresh);
    struct title t;
    while (next_title(&plan, &t))
        if (!known_title(g, &t))
            add_words(fresh, t.text, t.len);
    bool strange = fresh->n && (g->planned || (fresh->scripts & g->known.scripts));
    for (int i = 0; i < fresh->n && strange; i++)
        strange = !has_word(&g->known, fresh->at[i]);
    return strange;
}

void goals_add_plan(struct goals *g, const char *plan)
{
    struct title t;
    while (next_title(&plan, &t)) {
        if (known_title(g, &t))
            continue;
        add_words(&g->known, t.text, t.len);
        if (g->n_titles < TITLES_MAX)
            g->titles[g->n_titles++] = hash_of(&t);
    }
    g->planned = true;
}
