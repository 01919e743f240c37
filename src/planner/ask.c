/* ask.c - a task that the rules do not decide: a model writes the state of the window after it.
 *
 * The lines that differ are the steps.  They are performed only if they cover the task: each word that
 * names a thing must be in the name or the value of a line that differs, or make the reply much more
 * probable ("sideways" for Landscape, but not "with a sea view" for a room).  A word with a capital, a
 * digit or quotation marks, a number and a word of quantity must be in a name or value. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"
#include "planner/fill.h"
#include "planner/writer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASK_WORDS = 64, GROUPS = 5 };
/* words that name no thing; those that a pressed button, a filled field, a changed tick, and one that is
 * taken away cover */
#define LIGHT                                                                                                \
    "want|wants|need|needs|like|likes|love|prefer|prefers|get|gets|give|take|takes|make|makes|"              \
    "use|uses|have|has|having|go|going|goes|come|comes|stay|staying|do|does|let|lets|got|been|"              \
    "was|were|yes|ok|okay|sure|fine|good|great|nice|well|thank|too|really|very|quite|perhaps|"               \
    "maybe|ready|finished|done|right|thing|things|one|ones|kind|included|additional|additionally|"           \
    "hi|hello|dear|i'm|i'd|i'll|we'd|we'll|it's|that's|he|she|they|through|onto|along|around|"               \
    "back|i've|we've"
#define COMMITS                                                                                              \
    "order|buy|book|reserve|submit|confirm|accept|register|sign|apply|finish|continue|proceed|"              \
    "agree|approve|complete|reservation|booking|registration|ahead"
#define SETS "set|change|adjust|move|turn|switch|put|add|give|show|play|view|open|print"
#define ENTERS                                                                                               \
    "name|call|create|new|enter|register|fill|sign|log|number|address|complete|write|type|input|"            \
    "insert|jot|note"
#define TICKS   "include|enable|tick|check|activate"
#define UNTICKS "take|off|remove|drop|untick|uncheck|disable|deactivate|deselect"
#define NUMBERS "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen"
#define BIT(i)  (1ULL << (i))

struct asked {
    struct frame *f;
    struct span s; /* words of the task */
    struct form form;
    struct written reply;
    char *window;     /* as the model sees it */
    uint64_t content; /* bits of the words that must be covered */
    uint64_t hard;    /* ... literally */
    uint64_t covered;
    float least; /* smallest probability of a line that differs */
    bool rules;  /* the values are by rules, not by the model */
};

static bool is_bit(uint64_t bits, int i)
{
    return bits >> i & 1;
}

/* ---- words --------------------------------------------------------------------------------------------- */

/* Returns the clause that has word i. */
static const struct clause *clause_of(const struct asked *a, int i)
{
    const struct clauses *k = &a->f->p->clauses;
    for (int c = 0; c < k->n; c++)
        if (&a->s.w[i] >= k->c[c].all.w && &a->s.w[i] < k->c[c].all.w + k->c[c].all.n)
            return &k->c[c];
    return NULL;
}

/* Returns whether word i is the verb of its clause. */
static bool is_verb(const struct asked *a, int i)
{
    const struct clause *k = clause_of(a, i);
    return k && k->known && &a->s.w[i] == k->all.w;
}

/* Returns whether word i is a verb that says only that something is pressed or chosen. */
static bool is_light(const struct asked *a, int i)
{
    const struct clause *k = clause_of(a, i);
    return !k || (is_verb(a, i) && (k->deed == DEED_PRESS || k->deed == DEED_CHOOSE));
}

static void read_words(struct asked *a)
{
    bool first = true;
    for (int i = 0; i < a->s.n; i++) {
        struct match_words q = {.n = 0};
        const struct word *w = &a->s.w[i];
        bool hard = clause_is_hard(words_part(a->s, i, a->s.n), 0, first) || words_is(a->s, i, NUMBERS) ||
                    clause_is_quantity(a->s, i);
        match_split(w->text, false, &q);
        bool light = words_is(a->s, i, LIGHT) || (q.n && match_is_filler(q.w[0].text)) || is_light(a, i);
        bool topic = match_within(&q, &a->f->all->labels) && !is_verb(a, i);
        first = w->after && w->after != ',';
        if (hard)
            a->hard |= BIT(i);
        if (hard || (q.n && !topic && !light))
            a->content |= BIT(i);
    }
}

/* Writes the task as one line, without words [from, to). */
static char *request(const struct asked *a, int from, int to)
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
        if (a->reply.value[i] == 0 && (!there || l->twin)) { /* "both sides of the paper" */
            if (l->kind <= LINE_LIST && !l->twin)
                cover(a, &name, parts_of(a) & ~a->hard);
            continue;
        }
        if (l->kind <= LINE_TICK)
            match_split(l->name, false, &have);
        if (v->c)
            add_names(v->c, &have);
        cover(a, &have, ~0ULL);
        if (a->reply.value[i])
            a->least = a->reply.p[i] < a->least ? a->reply.p[i] : a->least;
    }
}

/* Covers verbs by the kind of step: "reserve" by a button, "add" by a field. */
static void cover_verbs(struct asked *a)
{
    bool pressed = false, set = false, entered = false, ticked = false, unticked = false;
    for (int i = 0; i < a->form.n; i++) {
        pressed = pressed || (a->reply.value[i] && a->form.l[i].kind == LINE_BUTTON);
        set = set || (a->reply.value[i] && a->form.l[i].kind <= LINE_ROW);
        entered = entered || (a->reply.value[i] && a->form.l[i].kind == LINE_FIELD);
        bool tick = a->reply.value[i] && a->form.l[i].kind == LINE_TICK;
        ticked = ticked || (tick && !strcmp(a->form.l[i].v[0].text, "no"));
        unticked = unticked || (tick && !strcmp(a->form.l[i].v[0].text, "yes"));
    }
    for (int i = 0; i < a->s.n; i++)
        if ((pressed && words_is(a->s, i, COMMITS)) || (set && words_is(a->s, i, SETS)) ||
            (entered && words_is(a->s, i, ENTERS)) || (ticked && words_is(a->s, i, TICKS)) ||
            (unticked && words_is(a->s, i, UNTICKS)))
            a->covered |= BIT(i);
}

static uint64_t open_words(const struct asked *a)
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
        if (said && !(a->content & part & (a->hard | a->covered)))
            a->covered |= part;
    }
}

/* Returns whether clause of word i has no covered word: it may be for a later window. */
static bool is_later(const struct asked *a, int i)
{
    const struct clause *k = clause_of(a, i);
    if (!k || !k->known)
        return false;
    for (int c = 0; c < a->s.n; c++)
        if (is_bit(a->covered & a->content, c) && clause_of(a, c) == k)
            return false;
    return true;
}

/* Covers each group of open words that makes the reply more probable.  later: leaves out clauses that may be
 * for another window.  Returns -1 with e. */
static int cover_gains(struct asked *a, bool later, struct err *e)
{
    struct writer *m = a->f->p->writer;
    double all = 0, less = 0;
    char *whole = request(a, 0, 0);
    int groups = 0, rc = 0;
    for (int i = 0, to; i < a->s.n && rc == 0; i = to) {
        uint64_t open = open_words(a) & ~a->hard;
        for (to = i; to < a->s.n && is_bit(open, to) && !(later && is_later(a, to));)
            to++;
        if (to == i) {
            to++;
            continue;
        }
        char *fewer = request(a, i, to);
        rc = groups++ ? 0 : writer_score(m, a->window, whole, a->reply.text, &all, e);
        rc = rc || groups > GROUPS ? -1 : writer_score(m, a->window, fewer, a->reply.text, &less, e);
        for (int k = i; k < to && rc == 0 && all - less >= GAIN_LEAST; k++)
            a->covered |= BIT(k);
        free(fewer);
    }
    free(whole);
    return rc;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static struct pick pick_of(const struct candidate *c, float p)
{
    return (struct pick){.best = c, .score = {.score = p, .hard = true}, .lead = 1};
}

/* Returns whether a dialog for a file name is closed by this button: Enter is pressed instead, because a
 * list of completions may cover it. */
static bool is_file_dialog(const struct asked *a, const struct candidate *button)
{
    bool typed = false;
    for (int i = 0; i < a->form.n; i++)
        typed = typed || (a->form.l[i].kind == LINE_FIELD && a->reply.value[i]);
    return typed && (resolve_same(button->name, "Save") || resolve_same(button->name, "Open")) &&
           strcmp(a->f->all->s->e[0].role, "frame") != 0;
}

static enum framed use_line(struct asked *a, int i)
{
    struct frame *f = a->f;
    const struct form_line *l = &a->form.l[i];
    const struct form_value *v = &l->v[a->reply.value[i]];
    struct pick k = pick_of(l->of && l->kind != LINE_LIST ? l->of : v->c, a->reply.p[i]);
    f->p->whole.deed = DEED_OTHER;
    if ((l->twin && l->kind <= LINE_TICK) || v->twin)
        return frame_unsure(f, "several elements are called '%.60s'", l->twin ? l->name : v->text);
    if (l->kind == LINE_FIELD) {
        char *text = xstrdup(v->text + 1);
        text[strlen(text) - 1] = 0;
        enum framed done = frame_enter(f, &k, text);
        free(text);
        return done;
    }
    if (l->kind == LINE_TICK) {
        f->p->whole.deed = !strcmp(v->text, "yes") ? DEED_TICK : DEED_UNTICK;
        if (f->p->whole.deed == DEED_UNTICK && k.best->kind == CANDIDATE_OPTION)
            return FRAME_DONE; /* a radio button: another one is on */
    }
    if (l->kind == LINE_BUTTON && is_file_dialog(a, k.best)) {
        struct plain_step enter = {.verb = PLAIN_KEYS, .what = (char *)(uintptr_t) "enter", .times = 1};
        f->out->at.pressed = true;
        return frame_add(f, &enter, NULL) ? FRAME_DONE : FRAME_UNSURE;
    }
    return frame_use(f, &k);
}

/* Appends the steps of the lines that differ: values, then ticks that are taken away, then the
 * button or menu item. */
static enum framed use_lines(struct asked *a)
{
    int presses = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < a->form.n; i++) {
            const struct form_line *l = &a->form.l[i];
            bool off =
                l->kind == LINE_TICK && a->reply.value[i] && !strcmp(l->v[a->reply.value[i]].text, "no");
            if (!a->reply.value[i] || pass != (l->kind >= LINE_TAB ? 2 : off))
                continue;
            presses += pass == 2;
            enum framed done =
                presses > 1 ? frame_unsure(a->f, "the model presses two things") : use_line(a, i);
            if (done != FRAME_DONE)
                return done;
        }
    return FRAME_DONE;
}

/* Returns whether the words that are found in a row are in another row too: "the order of Meyer". */
static bool is_one_of_two(const struct asked *a)
{
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        struct match_words row = {.n = 0};
        uint64_t found = 0;
        if (l->kind != LINE_ROW || !a->reply.value[i])
            continue;
        match_split(l->v[a->reply.value[i]].text, false, &row);
        for (int w = 0; w < a->s.n; w++) {
            struct match_words q = {.n = 0};
            match_split(a->s.w[w].text, false, &q);
            found |= is_bit(a->content, w) && match_within(&q, &row) ? BIT(w) : 0;
        }
        for (int k = 1; k < l->n; k++) {
            struct match_words other = {.n = 0};
            bool all = true;
            match_split(l->v[k].text, false, &other);
            for (int w = 0; w < a->s.n; w++) {
                struct match_words q = {.n = 0};
                match_split(a->s.w[w].text, false, &q);
                all = all && (!is_bit(found, w) || match_within(&q, &other));
            }
            if (all && k != a->reply.value[i])
                return true;
        }
    }
    return false;
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

static void write_window(struct asked *a)
{
    struct buf b;
    buf_init(&b, PLANNER_TEXT);
    form_print(&a->form, a->f->all, &b);
    const struct planner *p = a->f->p;
    if (p->done.len)
        buf_printf(&b, "Done:\n%s", p->done.data);
    a->window = buf_take(&b);
}

static bool has_menus(const struct asked *a)
{
    for (int i = 0; i < a->form.n; i++)
        if (a->form.l[i].kind == LINE_MENU)
            return true;
    return false;
}

/* Returns whether the clause of all open words is for a window that these steps leave or open. */
static bool goes_on(const struct asked *a)
{
    struct plan *out = a->f->out;
    uint64_t open = open_words(a);
    bool opens = out->steps.n && out->steps.s[out->steps.n - 1].verb == PLAIN_MENU;
    for (int i = 0; i < a->s.n; i++)
        if (is_bit(open, i) && !(opens && (is_later(a, i) || is_bit(a->hard, i))))
            return false;
    return open != 0;
}

/* Names the first open word.  Returns whether the steps may be proposed without the open words. */
static bool name_open(struct asked *a)
{
    uint64_t open = open_words(a);
    for (int i = 0; i < a->s.n; i++)
        if (is_bit(open, i)) {
            frame_unsure(a->f, "nothing in this window is called '%.60s'", a->s.w[i].text);
            return !(open & a->hard);
        }
    return true;
}

/* Returns whether values are given and a button is pressed that leaves the form without them. */
static bool contradicts_itself(const struct asked *a)
{
    bool values = false, leaves = false;
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        values = values || (l->kind <= LINE_ROW && a->reply.value[i]);
        leaves = leaves ||
                 (l->kind == LINE_BUTTON && a->reply.value[i] && fill_leaves(l->v[a->reply.value[i]].text));
    }
    return values && leaves;
}

static enum framed decide(struct asked *a)
{
    struct plan *out = a->f->out;
    struct err e = ERR_INIT;
    cover_lines(a);
    cover_verbs(a);
    cover_statements(a);
    a->covered |= out->at.covered;
    if (!a->rules && contradicts_itself(a))
        return frame_unsure(a->f, "the model fills the form and leaves it");
    if (is_one_of_two(a))
        return frame_unsure(a->f, "'%.60s' may be one of several rows", a->f->p->whole.text);
    if (use_lines(a) != FRAME_DONE)
        return FRAME_UNSURE;
    bool later = !a->rules && goes_on(a);
    if (!later && (open_words(a) & a->hard)) {
        name_open(a);
        return FRAME_UNSURE;
    }
    if (!a->rules && cover_gains(a, has_menus(a), &e))
        return frame_unsure(a->f, e.kind ? "the model failed: %s" : "'%.0s' has too many words", e.text);
    later = !a->rules && goes_on(a);
    out->sure = out->sure && a->least >= P_LEAST && out->steps.n;
    if (!later && open_words(a)) {
        if (!name_open(a) || !a->f->proposal)
            return FRAME_UNSURE;
        out->sure = false;
    }
    if (!out->steps.n || a->least < P_PROPOSED || (!out->sure && !a->f->proposal))
        return frame_unsure(a->f, "the model is not sure about '%.60s'", a->f->p->whole.text);
    out->at.covered = a->covered;
    return later ? FRAME_OPENS : FRAME_DONE;
}

/* Returns a line that the task names and that has a namesake; NULL: none. */
static const struct form_line *named_twin(const struct asked *a)
{
    struct match_words task = {.n = 0}, name;
    for (int i = 0; i < a->s.n; i++)
        match_split(a->s.w[i].text, false, &task);
    for (int i = 0; i < a->form.n; i++) {
        name.n = 0;
        match_split(a->form.l[i].name, false, &name);
        if (a->form.l[i].twin && match_within(&name, &task))
            return &a->form.l[i];
    }
    return NULL;
}

/* Plans the values that the rules find. */
static enum framed fill(struct asked *a)
{
    for (int i = 0; i < FORM_LINES; i++)
        a->reply.p[i] = 1;
    const struct form_line *twin = named_twin(a);
    if (twin)
        return frame_unsure(a->f, "several elements are called '%.60s'", twin->name);
    return form_fill(&a->form, a->s, &a->f->p->clauses, a->reply.value) ? decide(a) : FRAME_NONE;
}

enum framed frame_ask(struct frame *f, bool rules)
{
    struct asked a = {
        .f = f, .rules = rules, .s = {f->p->clauses.words.w, f->p->clauses.words.n}, .least = 1};
    struct err e = ERR_INIT;
    f->k = &f->p->whole;
    if (a.s.n > TASK_WORDS)
        return frame_unsure(f, "the task is too long for the model");
    form_read(f->all, a.s, f->p->done.data, &a.form);
    read_words(&a);
    write_window(&a);
    char *task = request(&a, 0, 0);
    enum framed done = FRAME_UNSURE;
    if (!a.form.n || !a.window)
        frame_unsure(f, "the window has nothing that the model can use");
    else if (rules)
        done = fill(&a);
    else if (writer_write(f->p->writer, a.window, task, &a.form, &a.reply, &e))
        frame_unsure(f, "the model failed: %s", e.text);
    else
        done = decide(&a);
    free(task);
    free(a.window);
    written_free(&a.reply);
    form_free(&a.form);
    return done;
}
