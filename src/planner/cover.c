/* cover.c - which words of a task the steps of a window cover.
 *
 * Each word that names a thing must be in the name or the value of a line that differs, or make the reply of
 * the model much more probable ("sideways" for Landscape, but not "with a sea view" for a room).  A word with
 * a capital, a digit or quotation marks, a number, a weak negation and a word of quantity must be in a name
 * or value. */
#include "planner/asked.h"

#include <stdlib.h>
#include <string.h>

enum { GROUPS = 5 };
/* words that name no thing; those that a filled field, a changed tick, one that is taken away, and a file that
 * is saved cover */
#define LIGHT                                                                                                \
    "want|wants|need|needs|like|likes|love|prefer|prefers|get|gets|give|take|takes|make|makes|"              \
    "use|uses|have|has|having|go|going|goes|come|comes|stay|staying|do|does|let|lets|got|been|"              \
    "was|were|yes|ok|okay|sure|fine|good|great|nice|well|thank|too|really|very|quite|perhaps|"               \
    "maybe|ready|finished|done|right|thing|things|one|ones|kind|included|additional|additionally|"           \
    "hi|hello|hey|dear|i'm|i'd|i'll|we'd|we're|we'll|it's|that's|he|she|they|through|onto|along|around|"     \
    "i've|we've|who|am|being|down|today|then"
/* of what people say about themselves: "I am travelling to Prague" */
#define STATES                                                                                               \
    "work|works|working|live|lives|living|travel|travels|travelling|traveling|speak|speaks|speaking|"        \
    "come|coming|arrive|arriving|fly|flying|drive|driving|ride|sleep|start|starting|study|studying|say|"     \
    "think|guess|choose|select|pick|going|staying|looking"
#define SETS                                                                                                 \
    "set|change|adjust|move|turn|switch|put|add|give|show|play|view|open|print|bump|raise|lower|increase|"   \
    "decrease|reduce"
#define ENTERS                                                                                               \
    "name|call|create|new|enter|register|fill|sign|log|number|address|complete|write|type|input|"            \
    "insert|jot|note"
#define TICKS   "include|enable|tick|check|activate|including"
#define UNTICKS "take|off|remove|drop|untick|uncheck|disable|deactivate|deselect"
#define SAVES                                                                                                \
    "save|store|keep|file|copy|name|named|call|called|under|as|document|text|note|changes|put|what's"
#define NUMBERS "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen"

/* A pressed button covers the verbs that are in a group with a word of its name. */
static const char *const commits[] = {"order|buy|purchase|book|reserve|request|reservation|booking|get",
                                      "submit|send", "confirm|accept|ok|okay|agree|approve",
                                      "register|sign|join|registration|enrol|enroll|subscribe",
                                      "continue|proceed|next"};

static bool is_bit(uint64_t bits, int i)
{
    return bits >> i & 1;
}

/* ---- words --------------------------------------------------------------------------------------------- */

const struct clause *asked_clause(const struct asked *a, int i)
{
    for (int c = 0; c < a->clauses; c++)
        if (&a->s.w[i] >= a->k[c].all.w && &a->s.w[i] < a->k[c].all.w + a->k[c].all.n)
            return &a->k[c];
    return NULL;
}

/* Returns whether word i is the verb of its clause. */
static bool is_verb(const struct asked *a, int i)
{
    const struct clause *k = asked_clause(a, i);
    return k && k->known && &a->s.w[i] == k->all.w;
}

/* Returns whether word i is a verb that says only that something is pressed or chosen, which its clause
 * names. */
static bool is_light(const struct asked *a, int i)
{
    const struct clause *k = asked_clause(a, i);
    bool names = false;
    for (int w = 1; k && w < k->all.n; w++)
        names = names || k->all.w[w].quoted || !match_is_filler(k->all.w[w].text);
    return names && is_verb(a, i) && (k->deed == DEED_PRESS || k->deed == DEED_CHOOSE);
}

/* Returns the bits of the parts that begin with "never mind". */
static uint64_t idioms(const struct asked *a)
{
    uint64_t bits = 0;
    for (int i = 0; i < a->s.n; i++)
        if (clause_is_idiom(a->s, i) || (i && is_bit(bits, i - 1) && !a->s.w[i - 1].after))
            bits |= BIT(i);
    return bits;
}

void asked_read_words(struct asked *a)
{
    bool first = true;
    uint64_t aside = idioms(a);
    a->said = aside != 0;
    a->typed |= aside;
    for (int i = 0; i < a->s.n; i++) {
        struct match_words q = {.n = 0};
        const struct word *w = &a->s.w[i];
        const struct clause *k = asked_clause(a, i); /* "cancel the account" does not only leave its window */
        bool hard = clause_is_hard(words_part(a->s, i, a->s.n), 0, first) || words_is(a->s, i, NUMBERS) ||
                    clause_is_quantity(a->s, i);
        first = w->after && w->after != ',';
        if (i == a->file || is_bit(aside, i) || !k)
            continue;
        match_split(w->text, false, &q);
        bool verb = is_verb(a, i) && (k->deed == DEED_PRESS || k->deed == DEED_CHOOSE);
        bool light =
            verb ? is_light(a, i) : words_is(a->s, i, LIGHT) || (q.n && match_is_filler(q.w[0].text));
        bool topic = q.n && match_among(&q.w[0], &a->f->all->topic) >= 0.7F && !is_verb(a, i) &&
                     !(k && words_is(k->all, 0, "cancel"));
        a->hard |= hard ? BIT(i) : 0;
        a->content |= hard || (q.n && !topic && !light) ? BIT(i) : 0;
    }
}

char *asked_request(const struct asked *a, int from, int to)
{
    struct buf b;
    buf_init(&b, PLANNER_TEXT);
    for (int i = 0; i < a->s.n; i++) {
        const struct word *w = &a->s.w[i];
        if (i >= from && i < to)
            continue;
        buf_printf(&b, w->quoted ? "%s\"%s\"" : "%s%s", b.len ? " " : "", w->text);
        if (w->after == ',' || w->after == '.')
            buf_putc(&b, w->after);
    }
    return b.data ? buf_take(&b) : xstrdup("");
}

/* ---- coverage ------------------------------------------------------------------------------------------ */

/* Covers those words of `which` (bits) that are among the others. */
static void cover(struct asked *a, const struct match_words *have, uint64_t which)
{
    for (int i = 0; i < a->s.n; i++) {
        struct match_words q = {.n = 0};
        bool all = true;
        match_split(a->s.w[i].text, is_bit(a->hard, i), &q);
        for (int k = 0; k < q.n; k++)
            all = all && match_among(&q.w[k], have) > 0;
        a->covered |= all && q.n ? BIT(i) & which : 0;
    }
}

static void add_names(const struct candidate *c, struct match_words *have)
{
    match_split(c->name, false, have);
    match_split(c->list, false, have);
    match_split(c->row, false, have);
    match_split(c->tab, false, have);
    for (int i = 0; i < c->levels; i++)
        match_split(c->path[i], false, have);
}

/* Returns the bits of words after "of": "the sides of the paper". */
static uint64_t parts_of(const struct asked *a)
{
    uint64_t bits = 0;
    for (int i = 1; i < a->s.n; i++)
        if (words_is(a->s, i - 1, "of") ||
            (i > 1 && words_is(a->s, i - 1, "the") && words_is(a->s, i - 2, "of")))
            bits |= BIT(i);
    return bits;
}

/* Covers the words of the lines that differ, and of those that already have what the task asks for. */
static void cover_lines(struct asked *a)
{
    struct match_words task = {.n = 0};
    for (int i = 0; i < a->s.n; i++)
        match_split(a->s.w[i].text, false, &task);
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        const struct form_value *v = &l->v[a->reply.value[i]];
        struct match_words name = {.n = 0}, have = {.n = 0};
        match_split(l->name, false, &name);
        match_split(v->text, false, &have);
        bool there = l->kind == LINE_TICK ? !strcmp(v->text, "yes") && match_within(&name, &task)
                                          : l->kind <= LINE_LIST && match_within(&have, &task);
        bool named = a->reply.value[i] || match_within(&name, &task);
        if (a->reply.value[i] == 0 && (!there || l->twin)) { /* "both sides of the paper" */
            if (l->kind <= LINE_LIST && !l->twin)
                cover(a, &name, parts_of(a) & ~a->hard);
            continue;
        }
        if (l->kind <= LINE_TICK)
            match_split(l->name, false, &have);
        if (v->c)
            add_names(v->c, &have);
        cover(a, &have, named ? ~0ULL : ~a->hard);
        if (a->reply.value[i])
            a->least = a->reply.p[i] < a->least ? a->reply.p[i] : a->least;
    }
}

bool asked_is_empty(struct span s)
{
    if (!words_is(s, 0, "i|i'm|i've|we|we're|we've|it's|that's|thanks|thank|hi|hello|great|good|fine|well"))
        return false;
    for (int i = 0; i < s.n; i++)
        if (s.w[i].quoted || (!words_is(s, i, LIGHT) && !match_is_filler(s.w[i].text)))
            return false;
    return true;
}

bool asked_commits(const struct asked *a, int i, const char *name)
{
    for (size_t g = 0; g < sizeof commits / sizeof *commits; g++)
        if (words_is(a->s, i, commits[g]) && fill_has(name, commits[g]))
            return true;
    return false;
}

/* Covers the object of a pressed button that leaves the form: "cancel the order". */
static void cover_left(struct asked *a)
{
    for (int i = 0; i < a->form.n; i++)
        for (int w = 0; w < a->s.n; w++)
            if (a->form.l[i].kind == LINE_BUTTON && fill_leaves(a->form.l[i].v[a->reply.value[i]].text) &&
                (words_is(a->s, w, "back") || fill_is_left(a, w) ||
                 (words_is(a->s, w, "everything|all|put") &&
                  fill_has(a->form.l[i].v[a->reply.value[i]].text, "reset|defaults"))))
                a->covered |= BIT(w);
}

/* Returns whether word i is a verb of a statement: "I work", "we are travelling". */
static bool is_state(const struct asked *a, int i)
{
    return words_is(a->s, i, STATES) && (!asked_clause(a, i) || !is_verb(a, i) || i == 0) &&
           (!i || words_is(a->s, i - 1, "i|we|he|she|they|i'm|we're|am|are|is|to|i'd|i'll|we'll|would|will"));
}

/* Covers verbs by the kind of step: "reserve" by a button, "add" by a field. */
static void cover_verbs(struct asked *a)
{
    bool set = false, entered = false, ticked = false, unticked = false, saved = a->file >= 0;
    const char *button = "";
    int ticks = 0;
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        const struct form_value *v = &l->v[a->reply.value[i]];
        const struct candidate *c = l->kind == LINE_TICK ? l->of : v->c;
        bool differs = a->reply.value[i] != 0;
        bool tick = differs && (l->kind == LINE_TICK || (c && text_starts(c->e->role, "check menu")));
        ticked = ticked || (tick && !c->on);
        unticked = unticked || (tick && c->on);
        ticks += tick;
        set = set || tick || (differs && l->kind <= LINE_ROW);
        entered = entered || (differs && l->kind == LINE_FIELD);
        button = differs && l->kind == LINE_BUTTON ? v->text : button;
    }
    for (int i = 0; i < a->s.n; i++)
        if (asked_commits(a, i, button) || (set && words_is(a->s, i, SETS)) ||
            (entered && words_is(a->s, i, ENTERS)) || (ticked && words_is(a->s, i, TICKS)) ||
            (unticked && words_is(a->s, i, UNTICKS)) || (saved && words_is(a->s, i, SAVES)) ||
            (ticks == 2 && words_is(a->s, i, "both")) || (set && is_state(a, i)))
            a->covered |= BIT(i);
}

uint64_t asked_open(const struct asked *a)
{
    return a->content & ~a->covered;
}

/* Covers the words of statements beside the task, "I changed my mind, ": parts that begin with a pronoun
 * and name no wish and no value. */
static void cover_statements(struct asked *a)
{
    for (int from = 0, to; from < a->s.n; from = to) {
        bool said = words_is(a->s, from, "i|we|i've|we've|they|he|she") && !is_bit(a->covered, from);
        uint64_t part = 0;
        for (to = from; to < a->s.n && (to == from || !a->s.w[to - 1].after); to++) {
            part |= BIT(to);
            said =
                said && !words_is(a->s, to, "need|needs|want|wants|like|prefer|must|should|would|with|for");
        }
        if (said && !(a->content & part & (a->hard | a->covered))) {
            a->said = a->said || (a->content & part & ~a->covered);
            a->covered |= part;
        }
    }
}

void asked_cover(struct asked *a)
{
    cover_lines(a);
    cover_left(a);
    cover_verbs(a);
    cover_statements(a);
}

bool asked_is_later(const struct asked *a, int i)
{
    const struct clause *k = asked_clause(a, i);
    if (!k || !k->known)
        return false;
    for (int c = 0; c < a->s.n; c++)
        if (is_bit(a->covered & a->content, c) && asked_clause(a, c) == k)
            return false;
    return true;
}

/* Negations and words of quantity are hard: they are never covered by a gain. */
int asked_cover_gains(struct asked *a, bool later, struct err *e)
{
    struct writer *m = a->f->p->writer;
    double all = 0, less = 0;
    char *whole = asked_request(a, 0, 0);
    int groups = 0, rc = 0;
    for (int i = 0, to; i < a->s.n && rc == 0; i = to) {
        uint64_t open = asked_open(a) & ~a->hard;
        for (to = i; to < a->s.n && is_bit(open, to) && !(later && asked_is_later(a, to));)
            to++;
        if (to == i) {
            to++;
            continue;
        }
        char *fewer = asked_request(a, i, to);
        rc = groups++ ? 0 : writer_score(m, a->window, whole, a->reply.text, &all, e);
        rc = rc || groups > GROUPS ? -1 : writer_score(m, a->window, fewer, a->reply.text, &less, e);
        for (int k = i; k < to && rc == 0 && all - less >= GAIN_LEAST; k++)
            a->covered |= BIT(k);
        free(fewer);
    }
    free(whole);
    return rc;
}
