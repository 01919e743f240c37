/* use.c - the steps of the lines that differ: values, then ticks that are taken away, then the button. */
#include "planner/asked.h"

#include "plain/resolve.h"

#include <stdlib.h>
#include <string.h>

/* Returns whether a dialog for a file name is closed by this button: Enter is pressed instead, because a
 * list of completions may cover it. */
static bool is_file_dialog(const struct asked *a, const struct candidate *button)
{
    const struct element *root = a->f->all->root;
    bool names = resolve_same(button->name, "Save") || resolve_same(button->name, "Open");
    return a->entered && root && names &&
           (!strcmp(root->role, "file chooser") ||
            (!strcmp(root->role, "dialog") &&
             (text_starts(root->name, "Save") || text_starts(root->name, "Open"))));
}

bool asked_is_off(const struct form_line *l, const struct form_value *v)
{
    return l->kind == LINE_TICK && v && !strcmp(v->text, "no");
}

/* Returns whether another radio button beside that of line i is turned on, which turns this one off. */
static bool other_radio(const struct asked *a, int i)
{
    const struct candidate *off = a->form.l[i].of;
    for (int k = 0; k < a->form.n && off; k++) {
        const struct form_line *l = &a->form.l[k];
        if (k != i && l->kind == LINE_TICK && a->reply.value[k] && l->of->kind == CANDIDATE_OPTION &&
            l->of->e->parent == off->e->parent && !asked_is_off(l, asked_new(a, k)))
            return true;
    }
    return false;
}

/* Returns whether a clause with words of a menu item turns it off. */
static bool turns_off(const struct asked *a, const struct candidate *item)
{
    uint64_t bits = asked_among(a, &item->words, 0.7F);
    for (int i = 0; i < a->s.n; i++)
        if (HAS(bits, i) && asked_clause(a, i) && asked_clause(a, i)->deed == DEED_UNTICK)
            return true;
    return false;
}

static enum framed use_line(struct asked *a, int i)
{
    struct frame *f = a->f;
    const struct form_line *l = &a->form.l[i];
    const struct form_value *v = asked_new(a, i);
    const struct candidate *c = l->of && l->kind != LINE_LIST ? l->of : v->c;
    enum use use = USE_PRESS;
    if ((l->twin && l->kind <= LINE_TICK) || v->twin)
        return frame_unsure(f, "several elements are called '%.60s'", l->twin ? l->name : v->text);
    if (l->kind == LINE_FIELD) {
        autofree char *text = xasprintf("%.*s", (int)strlen(v->text) - 2, v->text + 1);
        return frame_enter(f, c, text, a->reply.p[i]);
    }
    if (asked_is_off(l, v) && c->kind == CANDIDATE_OPTION)
        return other_radio(a, i) ? FRAME_DONE : frame_unsure(f, "'%.60s' cannot be turned off", l->name);
    if (l->kind == LINE_TICK && strcmp(c->e->role, "toggle button") != 0)
        use = asked_is_off(l, v) ? USE_OFF : USE_ON;
    if (l->kind == LINE_MENU)
        use = turns_off(a, c) ? USE_OFF : USE_ON;
    if (l->kind != LINE_BUTTON || !is_file_dialog(a, c))
        return frame_use(f, c, use, a->reply.p[i]);
    f->out->at.pressed = true;
    f->out->at.filled = false;
    return frame_key(f, "enter");
}

/* Appends the steps of the lines that differ: values, then ticks that are taken away, then the
 * button or menu item. */
static enum framed use_lines(struct asked *a)
{
    if (a->presses + (a->file >= 0) > 1)
        return frame_unsure(a->f, "two things would be pressed");
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < a->form.n; i++) {
            const struct form_line *l = &a->form.l[i];
            bool now =
                a->reply.value[i] && pass == (l->kind >= LINE_TAB ? 2 : asked_is_off(l, asked_new(a, i)));
            if (now && use_line(a, i) != FRAME_DONE)
                return FRAME_UNSURE;
        }
    return a->file >= 0 ? frame_use(a->f, find_save_as(a->f), USE_PRESS, 1) : FRAME_DONE;
}

/* Returns whether the words that are found in a row are in another row too ("the order of Meyer"), or the
 * form lacks rows of the window and the task names no cell of this row alone. */
static bool is_one_of_two(const struct asked *a, int i)
{
    const struct form_line *l = &a->form.l[i];
    const struct form_value *v = asked_new(a, i);
    const struct candidate *c = l->kind == LINE_ROW && v ? v->c : l->of;
    if (v && l->cut && (v->twin || !c || !match_within(&c->words, &a->all)))
        return true;
    if (!v || l->kind != LINE_ROW)
        return false;
    struct match_words row = match_words_of(v->text);
    uint64_t found = asked_among(a, &row, 0.9F) & a->content;
    for (int k = 1; k < l->n; k++) {
        struct match_words other = match_words_of(l->v[k].text);
        if (k != a->reply.value[i] && !(found & ~asked_among(a, &other, 0.9F)))
            return true;
    }
    return false;
}

/* Returns whether a text that is typed begins with the verb of a clause: the model types the task. */
static bool types_task(const struct asked *a)
{
    for (int i = 0; i < a->form.n && a->entered; i++)
        for (int c = 0; c < a->clauses; c++) {
            const struct form_value *v = a->form.l[i].kind == LINE_FIELD ? asked_new(a, i) : NULL;
            const char *verb = a->k[c].all.w[0].text;
            if (v && a->k[c].known && text_starts(v->text + 1, verb) && v->text[1 + strlen(verb)] == ' ')
                return true;
        }
    return false;
}

/* Returns the bits of the words that a name has, apart from articles and prepositions. */
static uint64_t named_by(const struct asked *a, const struct match_words *name)
{
    uint64_t bits = asked_among(a, name, 0.9F);
    for (int i = 0; i < a->s.n; i++)
        if (words_is(a->s, i, "a|an|the|of|in|to|for|at|on|by|with|and|or|is|my|your"))
            bits &= ~BIT(i);
    return bits;
}

/* Returns whether the words of the task that are in the name of a new value's field are all in the name of
 * another field, too: "the name" for "Passenger name", beside "Driver name". */
static bool is_either(const struct asked *a, int i)
{
    struct match_words name = match_words_of(a->form.l[i].name);
    uint64_t bits = named_by(a, &name);
    if (a->form.l[i].kind != LINE_FIELD || !asked_new(a, i) || !bits || match_within(&name, &a->all))
        return false;
    for (int k = 0; k < a->form.n; k++) {
        struct match_words other = match_words_of(a->form.l[k].name);
        if (k != i && a->form.l[k].kind == LINE_FIELD && !asked_new(a, k) && !(bits & ~named_by(a, &other)))
            return true;
    }
    return false;
}

enum framed asked_use(struct asked *a)
{
    for (int i = 0; i < a->form.n; i++)
        if (is_either(a, i))
            return frame_unsure(a->f, "the name of another field fits '%.60s' as well", a->form.l[i].name);
    if (types_task(a))
        return frame_unsure(a->f, "the task itself would be typed");
    for (int i = 0; i < a->form.n; i++)
        if (is_one_of_two(a, i))
            return frame_unsure(a->f, "'%.60s' may be one of several rows", a->f->p->task);
    return use_lines(a);
}
