/* clauses.c - see clauses.h. */
#include "planner/clauses.h"

#include "plain/plain.h"
#include "planner/lexicon.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REFUSED NEGATIONS "|" QUANTITIES

static const struct {
    const char *words;
    enum deed deed;
} verbs[] = {{VERBS_PRESS, DEED_PRESS},   {VERBS_WRITE, DEED_WRITE}, {VERBS_CHOOSE, DEED_CHOOSE},
             {VERBS_UNTICK, DEED_UNTICK}, {VERBS_SAVE, DEED_SAVE},   {VERBS_CLOSE, DEED_CLOSE},
             {VERBS, DEED_OTHER}};

static bool find_verb(struct span s, int i, enum deed *deed)
{
    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++)
        if (words_is(s, i, verbs[v].words)) {
            *deed = verbs[v].deed;
            return true;
        }
    *deed = DEED_OTHER;
    return false;
}

static bool is_capital(const char *text)
{
    return isupper((unsigned char)text[0]);
}

bool clause_is_hard(struct span s, int i, bool first)
{
    const char *text = s.w[i].text, *dot = strchr(text, '.');
    if (s.w[i].quoted)
        return true;
    return (is_capital(text) && !(first && i == 0) && strcmp(text, "I") != 0 &&
            strncmp(text, "I'", 2) != 0) ||
           strpbrk(text, "0123456789@/") || (dot && dot > text && isalnum((unsigned char)dot[1]));
}

/* Returns whether a word ends like "don't", with any apostrophe. */
static bool ends_in_not(const char *word)
{
    static const char *const marks[] = {"'", "`", "\xe2\x80\x98", "\xe2\x80\x99", "\xc2\xb4", "\xca\xbc"};
    size_t n = strlen(word), end;
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        if ((end = strlen(marks[k]) + 2) < n && !strncasecmp(word + n - end, "n", 1) &&
            !memcmp(word + n - end + 1, marks[k], end - 2) && !strcasecmp(word + n - 1, "t"))
            return true;
    return false;
}

/* Returns the length of a mark that may be attached to a word: "(not", "red/blue", a dash; 0: none. */
static size_t mark_at(const char *text)
{
    if (!strncmp(text, "\xe2\x80", 2) && text[2])
        return text[2] == '\x98' || text[2] == '\x99' ? 0 : 3; /* apostrophes */
    return strchr("()[]{}<>!?:;,-/*_", *text) ? 1 : 0;
}

/* Returns whether a part of a word between attached marks is one of these; nots: or ends like "don't". */
static bool has_part(struct span s, int i, const char *any, bool nots)
{
    bool found = false;
    autofree char *copy = xstrdup(s.w[i].quoted || strchr(s.w[i].text, '@') ? "" : s.w[i].text);
    for (char *at = copy, *next; *at && !found; at = next) {
        size_t n = 0, mark = 0;
        while (at[n] && (mark = mark_at(at + n)) == 0)
            n++;
        next = at + n + mark;
        at[n] = 0;
        found = n &&
                (words_is((struct span){&(struct word){.text = at}, 1}, 0, any) || (nots && ends_in_not(at)));
    }
    return found;
}

/* Returns whether a word makes the sentence one that steps do not express.  A capital inside a sentence makes
 * a word part of a name, but "NOT" and "Not" are one only after a verb: "press Not now". */
static bool is_refused(struct span s, int i, bool first)
{
    enum deed before = DEED_OTHER;
    if (s.w[i].quoted)
        return false;
    bool named = i && is_capital(s.w[i].text) && !s.w[i - 1].after && find_verb(s, i - 1, &before);
    if (has_part(s, i, NEGATIONS, true) && (!named || (before != DEED_PRESS && before != DEED_CHOOSE)))
        return true;
    if ((!first && is_capital(s.w[i].text)) || (words_is(s, i, "all") && i && words_is(s, i - 1, "select")))
        return false;
    return has_part(s, i, REFUSED, false) || (words_is(s, i, "first|last") && !words_is(s, i + 1, "name"));
}

bool clause_is_quantity(struct span s, int i)
{
    return is_refused(s, i, true) || has_part(s, i, WEAK_NOTS, true);
}

bool clause_is_negation(struct span s, int i)
{
    return has_part(s, i, NEGATIONS, true) && is_refused(s, i, true);
}

static bool ends_sentence(const struct word *w)
{
    return w->after && w->after != ',';
}

/* Returns the sign that ends a sentence within a word, "?" or "!"; 0: none. */
static char sentence_sign(const struct word *w)
{
    size_t n = strlen(w->text);
    while (n && strchr(")]'\"", w->text[n - 1]))
        n--;
    return !w->quoted && n && strchr("?!", w->text[n - 1]) ? w->text[n - 1] : 0;
}

/* Returns whether one sentence is a question.  "Could you order it?" is a task. */
static bool is_question(struct span s)
{
    while (s.n > 1 && words_is(s, 0, GREETINGS))
        s = words_part(s, 1, s.n);
    for (int i = s.n - 1; i > 0 && sentence_sign(&s.w[s.n - 1]) == '?'; i--)
        if (s.w[i - 1].after == ',' && words_is(s, i, REQUESTS) && words_is(s, i + 1, "you"))
            return false; /* "I lost it, could you tell them?" */
    if (sentence_sign(&s.w[s.n - 1]) == '?')
        return !words_is(s, 0, REQUESTS) ||
               !(words_is(s, 1, "you") || (words_is(s, 1, "i|we") && words_is(s, 2, "get|have")));
    return words_is(s, 0, ASKS) || (words_is(s, 0, BE "|" DO) && words_is(s, 1, "there|i|we|they|he|she")) ||
           (words_is(s, 0, BE) && words_is(s, 1, "it|this|that|these|those|the|my|you"));
}

bool clause_is_idiom(struct span s, int i)
{
    return (words_is(s, i, "never") && words_is(s, i + 1, "mind")) ||
           (words_is(s, i, "forget") && words_is(s, i + 1, "about|it|that")) || clause_is_polite(s, i);
}

bool clause_is_polite(struct span s, int i)
{
    return words_is(s, i, "if") &&
           (words_is(s, i + 1, "possible") ||
            (words_is(s, i + 1, "you") && words_is(s, i + 2, "could|would|please|can")));
}

/* Returns whether parts.c may explain a negation: "without X", one inside a statement ("I don't want X"), or
 * "but", "while" and "when" inside one. */
static bool is_explained(struct span s, int i)
{
    int from = i;
    while (from && !s.w[from - 1].after && !sentence_sign(&s.w[from - 1]) &&
           !words_is(s, from, "but|because|so"))
        from--;
    while (from < i && words_is(s, from, "and|but|so|because|since|well|yes"))
        from++;
    bool states = from < i && words_is(s, from, SELF "|they|he|she");
    if (words_is(s, i, "but"))
        return i && !words_is(s, i - 1, "all|anything|nothing|everything|everyone|none|any") &&
               !words_is(s, i + 1, "only|if|when|not");
    if (words_is(s, i, "rather"))
        return words_is(s, i - 1, "i'd|we'd|would");
    if (words_is(s, i, "not") && words_is(s, i + 1, "now|today|yet") && (i + 2 == s.n || s.w[i + 1].after))
        return true;      /* the name of a button */
    bool doubled = false; /* "I can't live without it" */
    for (int k = i - 1; k >= 0 && !s.w[k].after; k--)
        doubled = doubled || has_part(s, k, NEGATIONS "|no|never", true);
    if (words_is(s, i, "without"))
        return i && !doubled;
    if (words_is(s, i, "not") && s.w[i].text[0] == 'n' && from == i)
        return i && words_is(s, i + 1, "the");
    return states && (ends_in_not(s.w[i].text) || words_is(s, i, "not|while|when|until"));
}

/* Returns whether a model may read a negation: "not of the screen", but no condition, and no order to do
 * nothing ("don't send it"). */
static bool is_contrast(struct span s, int i)
{
    static const char *const starts = "please|just|so|and|but|well|ok|okay|no|then|hold|on|wait|stop";
    int from = i - words_is(s, i - 1, "do");
    while (from && !s.w[from - 1].after && words_is(s, from - 1, starts))
        from--;
    bool first = !from || s.w[from - 1].after;
    bool order =
        words_is(s, i, "dont|never") || (ends_in_not(s.w[i].text) && !strncasecmp(s.w[i].text, "don", 3));
    for (int k = 0; k < s.n; k++)
        if (words_is(s, k, "yet"))
            return false;
    return words_is(s, i, "not|nothing|none|never|dont|cant|cannot|instead|rather|but|without|neither|nor") +
               ends_in_not(s.w[i].text) &&
           !(first && (order || words_is(s, i - 1, "do") || words_is(s, i, "nothing|none")));
}

/* Refuses questions, negations, conditions and alternatives.  Returns -1 with the reason. */
static int check(struct span s, bool model, struct clauses *out, struct err *why)
{
    bool first = true;
    for (int i = 0, from = 0; i < s.n; i++) {
        bool ends = i + 1 == s.n || ends_sentence(&s.w[i]) || sentence_sign(&s.w[i]);
        if (ends && is_question(words_part(s, from, i + 1)))
            return err_set(why, ERR_UNCLEAR, "this is a question, not a task");
        from = ends ? i + 1 : from;
        if (is_refused(s, i, first) && has_part(s, i, NEGATIONS, true) && !clause_is_idiom(s, i)) {
            out->nots = true;
            if (is_explained(s, i))
                continue;
            if (model && is_contrast(s, i)) {
                out->by_model = true;
                continue;
            }
            return err_set(why, ERR_UNCLEAR, "the rules do not express '%.40s'", s.w[i].text);
        }
        first = ends;
    }
    return 0;
}

/* Returns whether a clause asks for no change: "leave the rest as it is". */
static bool is_nothing(struct span s)
{
    bool rest = false;
    for (int i = 1; i < s.n; i++) {
        rest = rest || words_is(s, i, "rest|others|else");
        if (!words_is(s, i,
                      "the|rest|others|everything|all|else|other|as|it|they|is|are|was|were|unchanged|"
                      "alone|untouched|of|form"))
            return false;
    }
    return rest && words_is(s, 0, "leave|keep");
}

/* Removes polite words at the start. */
static struct span bare(struct span s)
{
    enum { STARTS = 4 };
    static const char *const starts[][STARTS] = {POLITE};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        int n = 0;
        while (n < STARTS && starts[i][n] && words_is(s, n, starts[i][n]))
            n++;
        if (n && (n == STARTS || !starts[i][n]) && s.n > n)
            return bare(words_part(s, n + words_is(s, n, "to"), s.n));
    }
    return s;
}

/* Returns the words as a sentence in which the same words are quoted; the caller frees it. */
static char *quoted_text(struct span s)
{
    struct buf b = buf_of(1 << 20);
    for (int i = 0; i < s.n; i++) {
        buf_puts(&b, i ? " " : "");
        if (s.w[i].quoted)
            plain_quote(s.w[i].text, &b);
        else
            buf_puts(&b, s.w[i].text);
        if (s.w[i].after == ',' && i + 1 < s.n)
            buf_putc(&b, ',');
    }
    return buf_take(&b);
}

static void add_clause(struct clauses *out, struct span s)
{
    s = bare(s);
    if (!s.n || is_nothing(s))
        return;
    struct clause *c = &out->c[out->n++];
    *c = (struct clause){.all = s, .text = quoted_text(s)};
    c->known = find_verb(s, 0, &c->deed);
    if (words_is(s, 0, "turn|switch") && (words_is(s, 1, "off") || words_is(s, s.n - 1, "off")))
        c->deed = DEED_UNTICK;
    c->rest = words_part(s, c->known && c->deed != DEED_OTHER, s.n);
    if (!c->known && s.n == 1 && out->n > 1 && c[-1].deed == DEED_PRESS) { /* "press 4, then 2" */
        char *name = c->text;
        c->text = xasprintf("press %s", name);
        free(name);
    }
}

/* Returns the number of words that separate a clause before word i from the next one; -1: none does. */
static int separator(struct span s, int i)
{
    enum deed deed;
    int next = i;
    char after = s.w[i - 1].after;
    if (ends_sentence(&s.w[i - 1]))
        return 0;
    next += words_is(s, next, "and|&");
    if (words_is(s, next, "then|afterwards|finally"))
        return next + 1 - i;
    next += words_is(s, next, "also|please");
    if ((next > i || after == ',') && next < s.n && islower((unsigned char)s.w[next].text[0]) &&
        find_verb(s, next, &deed) && !words_is(s, next + 1, "and|is|to|field|button") && next + 1 <= s.n)
        return next - i;
    return -1;
}

/* Ends parts at "!", ":" and a dash, too. */
static void end_parts(struct words *w)
{
    for (int i = 0; i + 1 < w->n; i++) {
        size_t n = strlen(w->w[i].text);
        if (w->w[i].quoted || w->w[i].after || n < 2)
            continue;
        w->w[i].after = w->w[i].text[n - 1] == '!' ? '.' : w->w[i].text[n - 1] == ':' ? ',' : 0;
        if (!strcmp(w->w[i + 1].text, "-"))
            w->w[i].after = ',';
    }
}

int clauses_split(const char *sentence, bool model, struct clauses *out, struct err *why)
{
    struct err e = ERR_INIT;
    *out = (struct clauses){0};
    if (words_split(sentence, &out->words, &e) < 0)
        return err_set(why, ERR_UNCLEAR, "%s", e.text);
    struct span s = {out->words.w, out->words.n};
    if (!s.n)
        return err_set(why, ERR_UNCLEAR, "the sentence is empty");
    if (check(s, model, out, why) < 0)
        return -1;
    end_parts(&out->words);
    out->c = xcalloc(CLAUSES_MAX + 1, sizeof *out->c);
    int from = 0;
    for (int i = 1; i < s.n && out->n < CLAUSES_MAX; i++) {
        int n = separator(s, i);
        if (n < 0)
            continue;
        add_clause(out, words_part(s, from, i));
        from = i + n;
        i = from > i ? from : i;
    }
    if (from < s.n)
        add_clause(out, words_part(s, from, s.n));
    if (out->n > CLAUSES_MAX || !out->n)
        return err_set(why, ERR_UNCLEAR, "the sentence has %s clauses", out->n ? "too many" : "no");
    return 0;
}

void clauses_free(struct clauses *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->c[i].text);
    free(p->c);
    words_free(&p->words);
    *p = (struct clauses){0};
}
