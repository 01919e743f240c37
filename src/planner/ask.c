/* ask.c - plans a task as the state of the window after it, which rules or a model write.
 *
 * The lines that differ are the steps.  They are performed only if they cover the task (cover.c). */
#include "planner/asked.h"

#include "plain/resolve.h"

#include <stdlib.h>
#include <string.h>

static bool is_bit(uint64_t bits, int i)
{
    return bits >> i & 1;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* Returns whether a dialog for a file name is closed by this button: Enter is pressed instead, because a
 * list of completions may cover it. */
static bool is_file_dialog(const struct asked *a, const struct candidate *button)
{
    bool typed = false;
    for (int i = 0; i < a->form.n; i++)
        typed = typed || (a->form.l[i].kind == LINE_FIELD && a->reply.value[i]);
    const struct element *root = a->f->all->root;
    if (!typed || !root || !(resolve_same(button->name, "Save") || resolve_same(button->name, "Open")))
        return false;
    return !strcmp(root->role, "file chooser") ||
           (!strcmp(root->role, "dialog") &&
            (text_starts(root->name, "Save") || text_starts(root->name, "Open")));
}

/* Returns whether another radio button beside that of line i is turned on, which turns this one off. */
static bool other_radio(const struct asked *a, int i)
{
    for (int k = 0; k < a->form.n; k++) {
        const struct form_line *l = &a->form.l[k];
        if (k != i && l->kind == LINE_TICK && a->reply.value[k] && l->of->kind == CANDIDATE_OPTION &&
            l->of->e->parent == a->form.l[i].of->e->parent && !strcmp(l->v[a->reply.value[k]].text, "yes"))
            return true;
    }
    return false;
}

/* Returns whether a clause with words of a menu item turns it off. */
static bool turns_off(const struct asked *a, const struct candidate *item)
{
    for (int i = 0; i < a->s.n; i++) {
        const struct clause *k = asked_clause(a, i);
        struct match_words said = {.n = 0};
        match_split(a->s.w[i].text, false, &said);
        if (k && k->deed == DEED_UNTICK && said.n && match_among(&said.w[0], &item->words) > 0)
            return true;
    }
    return false;
}

static enum framed use_line(struct asked *a, int i)
{
    struct frame *f = a->f;
    const struct form_line *l = &a->form.l[i];
    const struct form_value *v = &l->v[a->reply.value[i]];
    const struct candidate *c = l->of && l->kind != LINE_LIST ? l->of : v->c;
    enum use use = USE_PRESS;
    if ((l->twin && l->kind <= LINE_TICK) || v->twin)
        return frame_unsure(f, "several elements are called '%.60s'", l->twin ? l->name : v->text);
    if (l->kind == LINE_FIELD) {
        autofree char *text = xasprintf("%.*s", (int)strlen(v->text) - 2, v->text + 1);
        return frame_enter(f, c, text, a->reply.p[i]);
    }
    if (l->kind == LINE_TICK) {
        bool toggle = !strcmp(c->e->role, "toggle button");
        use = toggle ? USE_PRESS : !strcmp(v->text, "yes") ? USE_ON : USE_OFF;
        if (use == USE_OFF && c->kind == CANDIDATE_OPTION)
            return other_radio(a, i) ? FRAME_DONE : frame_unsure(f, "'%.60s' cannot be turned off", l->name);
    }
    if (l->kind == LINE_MENU)
        use = turns_off(a, c) ? USE_OFF : USE_ON;
    if (l->kind == LINE_BUTTON && is_file_dialog(a, c)) {
        f->out->at.pressed = true;
        f->out->at.filled = false;
        return frame_key(f, "enter");
    }
    return frame_use(f, c, use, a->reply.p[i]);
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
                presses > 1 ? frame_unsure(a->f, "two things would be pressed") : use_line(a, i);
            if (done != FRAME_DONE)
                return done;
        }
    return FRAME_DONE;
}

/* Returns whether the form lacks rows of the window, and the task names no cell of the chosen row alone. */
static bool is_one_of_many(const struct asked *a, const struct form_line *l, const struct form_value *v)
{
    struct match_words task = {.n = 0}, cell = {.n = 0};
    const struct candidate *c = l->kind == LINE_ROW ? v->c : l->of;
    for (int w = 0; w < a->s.n; w++)
        match_split(a->s.w[w].text, false, &task);
    match_split(c ? c->name : "", false, &cell);
    return l->cut && (v->twin || !match_within(&cell, &task));
}

/* Returns whether the words that are found in a row are in another row too: "the order of Meyer". */
static bool is_one_of_two(const struct asked *a)
{
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        struct match_words row = {.n = 0};
        uint64_t found = 0;
        if (a->reply.value[i] && is_one_of_many(a, l, &l->v[a->reply.value[i]]))
            return true;
        if (l->kind != LINE_ROW || !a->reply.value[i])
            continue;
        match_split(l->v[a->reply.value[i]].text, false, &row);
        for (int w = 0; w < a->s.n; w++) {
            struct match_words q = {.n = 0};
            match_split(a->s.w[w].text, false, &q);
            found |= is_bit(a->content, w) && match_within(&q, &row) ? 1ULL << w : 0;
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

/* Returns the text of the window for the model; NULL: it is too long. */
static char *window_text(const struct asked *a)
{
    struct buf b;
    buf_init(&b, PLANNER_TEXT);
    form_print(&a->form, a->f->all, &b);
    const struct planner *p = a->f->p;
    if (p->done.len)
        buf_printf(&b, "Done:\n%s", p->done.data);
    if (!b.full && !p->done.full)
        return buf_take(&b);
    buf_free(&b);
    return NULL;
}

static bool has_menus(const struct asked *a)
{
    for (int i = 0; i < a->form.n; i++)
        if (a->form.l[i].kind == LINE_MENU)
            return true;
    return false;
}

/* Returns whether a text that is typed begins with the verb of a clause: the model types the task. */
static bool types_task(const struct asked *a, const char *text)
{
    for (int c = 0; c < a->clauses; c++) {
        const char *verb = a->k[c].all.w[0].text;
        if (a->k[c].known && text_starts(text + 1, verb) && text[1 + strlen(verb)] == ' ')
            return true;
    }
    return false;
}

/* Returns whether the clause of all open words is for a window that these steps leave or open. */
static bool goes_on(const struct asked *a)
{
    struct plan *out = a->f->out;
    uint64_t open = asked_open(a);
    bool opens = out->steps.n && out->steps.s[out->steps.n - 1].verb == PLAIN_MENU;
    for (int i = 0; i < a->s.n; i++)
        if (is_bit(open, i) && !(opens && (asked_is_later(a, i) || is_bit(a->hard, i))))
            return false;
    return open && (a->covered & a->content); /* not a dialog that no word names */
}

/* Appends the best readings of some words. */
static void put_nearest(const struct candidates *all, const struct match_words *q, struct buf *b)
{
    float below = 10;
    for (int n = 0; n < PLANNER_NEAREST; n++) {
        const struct candidate *best = NULL;
        float score = 0;
        for (int i = 0; i < all->n; i++) {
            float s = candidate_score(&all->c[i], q);
            best = s < below && s > score ? &all->c[i] : best;
            score = s < below && s > score ? s : score;
        }
        if (!best)
            break;
        buf_puts(b, n ? "; " : "; nearest: ");
        frame_describe(best, b);
        below = score;
    }
}

/* Returns whether an element has word i in its name or around it. */
static bool is_anywhere(const struct asked *a, int i)
{
    for (int k = 0; k < a->f->all->n; k++)
        if (candidate_score(&a->f->all->c[k], &a->w[i]) > 0)
            return true;
    return false;
}

/* Names the first open word.  Returns whether the steps may be proposed without the open words. */
static bool name_open(struct asked *a)
{
    uint64_t open = asked_open(a);
    struct match_words q = {.n = 0};
    autobuf b = buf_of(PLANNER_TEXT);
    for (int i = 0; i < a->s.n; i++)
        match_split(a->s.w[i].text, false, &q);
    if (!open)
        return true;
    int first = __builtin_ctzll(open);
    for (int i = a->s.n - 1; i >= 0; i--) /* one that no element has, if there is one */
        first = is_bit(open, i) && !is_anywhere(a, i) ? i : first;
    buf_printf(&b, "nothing in this window is called '%.60s'", a->s.w[first].text);
    put_nearest(a->f->all, &q, &b);
    frame_unsure(a->f, "%s", b.data);
    return !(open & a->hard);
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

/* Returns whether nothing but a button that leaves the form is pressed. */
static bool only_leaves(const struct asked *a)
{
    for (int i = 0; i < a->form.n; i++) {
        const struct form_line *l = &a->form.l[i];
        if (a->reply.value[i] && (l->kind != LINE_BUTTON || !fill_leaves(l->v[a->reply.value[i]].text)))
            return false;
    }
    return true;
}

static enum framed decide(struct asked *a)
{
    struct plan *out = a->f->out;
    struct err e = ERR_INIT;
    asked_cover(a);
    a->covered |= a->rules ? 0 : out->at.covered;
    if (!a->rules && contradicts_itself(a))
        return frame_unsure(a->f, "the model fills the form and leaves it");
    for (int i = 0; i < a->form.n; i++)
        if (a->reply.value[i] && a->form.l[i].kind == LINE_FIELD &&
            types_task(a, a->form.l[i].v[a->reply.value[i]].text))
            return frame_unsure(a->f, "the task itself would be typed");
    if (is_one_of_two(a))
        return frame_unsure(a->f, "'%.60s' may be one of several rows", a->f->p->task);
    if (use_lines(a) != FRAME_DONE ||
        (a->file >= 0 && frame_use(a->f, find_save_as(a->f), USE_PRESS, 1) != FRAME_DONE))
        return FRAME_UNSURE;
    bool later = !a->rules && goes_on(a);
    if (!later && (asked_open(a) & a->hard)) {
        name_open(a);
        return FRAME_UNSURE;
    }
    if (!a->rules && asked_cover_gains(a, has_menus(a), &e))
        return frame_unsure(a->f, e.kind ? "the model failed: %s" : "'%.0s' has too many words", e.text);
    later = !a->rules && goes_on(a);
    out->sure = out->sure && a->least >= P_LEAST && out->steps.n && (!a->said || only_leaves(a)) && !a->doubt;
    if (!later && asked_open(a)) {
        if (!name_open(a) || !a->f->proposal)
            return FRAME_UNSURE;
        out->sure = false;
    }
    if (!out->steps.n || a->least < P_PROPOSED || (!out->sure && !a->f->proposal))
        return frame_unsure(a->f, "%s: '%.60s'", a->doubt ? a->doubt : "not sure", a->f->p->task);
    if (!a->rules)
        out->at.covered = a->covered;
    return later || (a->rules && a->file >= 0) ? FRAME_OPENS : FRAME_DONE;
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
    return asked_fill(a) ? decide(a) : frame_unsure(a->f, "'%.60s' is not understood", a->f->p->task);
}

/* Plans the values that the model writes. */
static enum framed write_lines(struct asked *a)
{
    struct err e = ERR_INIT;
    char *task = asked_request(a, 0, 0);
    enum framed done = FRAME_UNSURE;
    a->window = window_text(a);
    if (!a->window)
        frame_unsure(a->f, "the window has too much text for the model");
    else if (writer_write(a->f->p->writer, a->window, task, &a->form, &a->reply, &e))
        frame_unsure(a->f, "the model failed: %s", e.text);
    else
        done = decide(a);
    free(task);
    free(a->window);
    return done;
}

enum framed frame_ask(struct frame *f, int from, int n, bool rules)
{
    struct span all = {f->p->clauses.words.w, f->p->clauses.words.n};
    const struct clause *k = &f->p->clauses.c[from];
    int first = from ? (int)(k->all.w - all.w) : 0;
    int end = from + n < f->p->clauses.n ? (int)(k[n - 1].all.w - all.w) + k[n - 1].all.n : all.n;
    struct asked a = {
        .f = f, .rules = rules, .s = words_part(all, first, end), .k = k, .clauses = n, .least = 1};
    for (int i = 0; i < a.s.n && i < TASK_WORDS; i++)
        match_split(a.s.w[i].text, false, &a.w[i]);
    a.file = rules ? file_word(f->p) - first : -1;
    a.file = a.file < a.s.n ? a.file : -1;
    if (a.s.n > TASK_WORDS || strlen(f->p->task) > PLANNER_TEXT / 2)
        return frame_unsure(f, "the task is too long");
    form_read(f->all, a.s, f->p->done.data, &a.form);
    const struct clause *saves = a.file >= 0 ? asked_clause(&a, a.file) : NULL;
    bool kept = saves && words_is(saves->all, 0, "save|store|keep|put|name|call");
    a.file = kept && find_save_as(f) ? a.file : -1;
    asked_read_words(&a);
    enum framed done = FRAME_UNSURE;
    if (!a.form.n)
        frame_unsure(f, "the window has nothing that can be changed");
    else
        done = rules ? fill(&a) : write_lines(&a);
    written_free(&a.reply);
    form_free(&a.form);
    return done;
}
