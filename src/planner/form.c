/* form.c - see form.h. */
#include "planner/form.h"

#include "atspi/roles.h"
#include "base/utf8.h"
#include "plain/resolve.h"
#include "planner/planner_impl.h"
#include "planner/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SHOWN = 40, SPAN_WORDS = 5, OPTIONS_SHOWN = 12, TEXTS = 4, TEXT_PRINTED = 100 };

void form_free(struct form *p)
{
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; k < p->l[i].n; k++)
            free(p->l[i].v[k].text);
        free(p->l[i].v);
    }
    *p = (struct form){0};
}

/* Replaces line breaks and other control characters, which would begin a new line of the text. */
static void make_plain(char *text)
{
    for (; *text; text++)
        *text = iscntrl((unsigned char)*text) ? ' ' : *text;
}

static struct form_line *add_line(struct form *p, enum line_kind kind, const char *name,
                                  const struct candidate *of)
{
    if (p->n == (kind < LINE_ROW ? FORM_LINES - LINE_BUTTON : FORM_LINES))
        return NULL;
    struct form_line *l = &p->l[p->n++];
    *l = (struct form_line){.kind = kind, .of = of, .v = xcalloc(FORM_VALUES, sizeof *l->v)};
    size_t n = strlen(name);
    while (n && strchr(": \n", name[n - 1]))
        n--;
    snprintf(l->name, sizeof l->name, "%.*s", (int)n, name);
    make_plain(l->name);
    for (struct form_line *o = p->l; o < l; o++)
        if (!strcmp(o->name, l->name))
            o->twin = l->twin = true;
    return l;
}

/* Adds a value, if it is not there; takes the text.  Returns its index, -1: there are too many. */
static int add_value(struct form_line *l, char *text, const struct candidate *c)
{
    int i = 0;
    make_plain(text);
    while (i < l->n && strcmp(l->v[i].text, text) != 0)
        i++;
    if (i < l->n)
        l->v[i].twin = l->v[i].twin || (c && l->v[i].c && l->v[i].c != c);
    if (i < l->n || l->n == FORM_VALUES)
        free(text);
    else
        l->v[l->n++] = (struct form_value){text, c, false};
    return i < l->n ? i : -1;
}

/* ---- fields -------------------------------------------------------------------------------------------- */

static char *in_quotes(const char *text, size_t most)
{
    struct buf b = buf_of(PLANNER_TEXT);
    buf_putc(&b, '"');
    size_t n = strlen(text);
    for (n = n < most ? n : most; (text[n] & 0xC0) == 0x80;) /* whole characters */
        n++;
    for (size_t i = 0; i < n; i++)
        buf_putc(&b, text[i] == '"' ? '\'' : text[i]);
    buf_putc(&b, '"');
    return buf_take(&b);
}

static bool takes_number(const struct element *e)
{
    return !strcmp(e->role, "spin button") || !strcmp(e->role, "slider");
}

/* Returns whether a text that is typed may begin or end with this word. */
static bool ends_value(struct span s, int i)
{
    return s.w[i].quoted || clause_is_hard(s, i, i == 0) || !match_is_filler(s.w[i].text);
}

int form_part(struct form_line *l, struct span s, int i, int to)
{
    const struct element *e = l->of->e;
    bool spin = takes_number(e);
    char number[MATCH_WORD];
    bool is_number = !s.w[i].quoted && quantity_number(s, i, number) == to - i;
    is_number = is_number || quantity_date(s, i, e->value, number) == to - i;
    autofree char *text = is_number ? xstrdup(number) : words_text(words_part(s, i, to));
    size_t n = strlen(text);
    while (!s.w[to - 1].quoted && n &&
           (strchr("!?:", text[n - 1]) || (text[n - 1] == ')' && (*text == '(' || !strchr(text, '(')))))
        text[--n] = 0;
    if (*text == '(' && !s.w[i].quoted)
        memmove(text, text + 1, n--);
    if (!n || n >= CANDIDATE_NAME || (spin && strspn(text, "0123456789.,-+") != n))
        return -1;
    if (spin && e->least < e->most && (strtod(text, NULL) < e->least || strtod(text, NULL) > e->most))
        return -1;
    return add_value(l, in_quotes(text, CANDIDATE_NAME), NULL);
}

/* Adds the parts of the task that may be typed: a quoted text, or a few words without a comma inside. */
static void add_parts(struct form_line *l, struct span s)
{
    struct match_words name = match_words_of(l->name);
    for (int i = 0; i < s.n; i++) {
        struct match_words first = match_words_of(s.w[i].text);
        if (!ends_value(s, i) || (!s.w[i].quoted && match_within(&first, &name)))
            continue;
        for (int k = i; k < s.n && k < i + SPAN_WORDS; k++) {
            if (k > i &&
                (s.w[k].quoted || s.w[k - 1].quoted || (s.w[k - 1].after && !quantity_is_year(s, k))))
                break;
            if (ends_value(s, k))
                form_part(l, s, i, k + 1);
        }
    }
}

static void add_field(struct form *p, const struct candidate *c, struct span task)
{
    struct form_line *l = add_line(p, LINE_FIELD, *c->name ? c->name : "Text", c);
    if (!l)
        return;
    add_value(l, in_quotes(c->e->value, TEXT_SHOWN), NULL);
    add_parts(l, task);
}

/* ---- choices ------------------------------------------------------------------------------------------- */

struct offer { /* a line whose values are candidates */
    enum line_kind kind;
    const char *name;
    const struct element *list; /* of LINE_LIST */
    const char *done;           /* steps that are not offered again */
};

static void add_tick(struct form *p, const char *name, const struct candidate *c, bool on, bool cut)
{
    struct form_line *l = add_line(p, LINE_TICK, name, c);
    if (!l)
        return;
    l->cut = cut;
    add_value(l, xstrdup(on ? "yes" : "no"), NULL);
    add_value(l, xstrdup(on ? "no" : "yes"), c);
}

static bool same_row(const struct candidate *a, const struct candidate *b)
{
    return a->kind == CANDIDATE_ROW && b->kind == CANDIDATE_ROW && a->e->parent == b->e->parent &&
           !strcmp(a->e->role, "table cell") && a->e->rect.y == b->e->rect.y;
}

static bool is_unique(const struct candidates *all, const struct candidate *c)
{
    for (int i = 0; i < all->n; i++)
        if (&all->c[i] != c && all->c[i].kind == CANDIDATE_ROW && resolve_same(all->c[i].name, c->name))
            return false;
    return true;
}

/* Joins the cells of the row that begins with candidate i.  *by: the first cell whose name finds it. */
static char *row_text(const struct candidates *all, int i, const struct candidate **by)
{
    struct buf b = buf_of(PLANNER_TEXT);
    for (int k = i; k < all->n && (k == i || same_row(&all->c[i], &all->c[k])); k++) {
        buf_printf(&b, "%s%s", k > i ? " " : "", all->c[k].name);
        if (by && !*by && is_unique(all, &all->c[k]))
            *by = &all->c[k];
    }
    if (by && !*by)
        *by = &all->c[i];
    return buf_take(&b);
}

static bool is_pressed(const char *done, const struct candidate *c)
{
    autobuf b = buf_of(PLANNER_TEXT);
    frame_describe(c, &b);
    buf_putc(&b, '\n');
    return done && b.data && strstr(done, b.data);
}

/* Returns how well candidate i fits the task; 0: a line does not offer it. */
static float score(const struct candidates *all, int i, const struct offer *o, const struct match_words *q)
{
    const struct candidate *c = &all->c[i];
    bool list = o->kind == LINE_LIST && c->kind == CANDIDATE_OPTION && c->list_of == o->list;
    bool tab = o->kind == LINE_TAB && c->kind == CANDIDATE_TAB;
    bool item = o->kind == LINE_MENU && c->kind == CANDIDATE_MENU && c->levels > 1;
    bool button = o->kind == LINE_BUTTON && c->kind == CANDIDATE_PRESS &&
                  !text_ends(c->e->role, "column header") && strcmp(c->e->role, "icon") != 0;
    if (list || tab || ((item || button) && !is_pressed(o->done, c)))
        return 0.01F + candidate_score(c, q);
    if (o->kind != LINE_ROW || c->kind != CANDIDATE_ROW || (i && same_row(&all->c[i - 1], c)))
        return 0;
    autofree char *text = row_text(all, i, NULL);
    struct match_words row = match_words_of(text);
    float s = 0.01F;
    for (int w = 0; w < q->n; w++)
        s += match_among(&q->w[w], &row);
    return s;
}

/* Returns the scores of the `most` best candidates, 0 for others.  *cut: some are left out. */
static float *best_scores(const struct candidates *all, const struct offer *o, const struct match_words *q,
                          int most, bool *cut)
{
    float *scores = xcalloc((unsigned long)all->n + 1, sizeof *scores);
    int n = 0;
    for (int i = 0; i < all->n; i++)
        n += (scores[i] = score(all, i, o, q)) > 0;
    for (*cut = n > most; n > most; n--) {
        int worst = -1;
        for (int i = 0; i < all->n; i++)
            worst = scores[i] > 0 && (worst < 0 || scores[i] <= scores[worst]) ? i : worst;
        scores[worst] = 0;
    }
    return scores;
}

static char *choice_text(const struct candidate *c)
{
    struct buf b = buf_of(PLANNER_TEXT);
    for (int i = 0; i < c->levels; i++)
        buf_printf(&b, "%s%s", i ? " > " : "", c->path[i]);
    if (!c->levels)
        buf_printf(&b, *c->row ? "%s of %s" : "%s", c->name, c->row);
    return buf_take(&b);
}

/* Adds a line with the candidates that fit best; rows with a check box are a line each. */
static void add_choices(struct form *p, const struct candidates *all, const struct offer *o,
                        const struct candidate *of, const struct match_words *q)
{
    bool cut, list = o->kind == LINE_LIST;
    autofree float *fits = best_scores(all, o, q, list ? OPTIONS_SHOWN : FORM_SHOWN, &cut);
    struct form_line *l = NULL;
    const char *now = !list             ? "none"
                      : *o->list->value ? o->list->value
                      : *o->list->name  ? o->list->name
                                        : "none";
    for (int i = 0; i < all->n; i++) {
        const struct candidate *c = &all->c[i], *by = NULL;
        if (fits[i] <= 0)
            continue;
        const struct element *box = o->kind == LINE_ROW ? resolve_box(all->s, c->e) : NULL;
        autofree char *text = o->kind == LINE_ROW ? row_text(all, i, &by) : NULL;
        if (box) {
            add_tick(p, text, by, state_in(box->states, STATE_CHECKED), cut || all->cut);
            continue;
        }
        if (!l && (l = add_line(p, o->kind, o->name, of)))
            add_value(l, xstrdup(now), NULL);
        if (!l)
            return;
        l->cut = o->kind == LINE_ROW && (cut || all->cut);
        add_value(l, by ? xstrdup(text) : choice_text(c), by ? by : c);
    }
}

/* ---- the window ---------------------------------------------------------------------------------------- */

void form_read(const struct candidates *all, struct span task, const char *done, struct form *out)
{
    struct match_words q = {.n = 0};
    const struct element *list = NULL;
    *out = (struct form){.n = 0};
    for (int i = 0; i < task.n; i++)
        if (!match_is_filler(task.w[i].text))
            match_split(task.w[i].text, false, &q);
    for (int i = 0; i < all->n; i++) {
        const struct candidate *c = &all->c[i];
        if (c->off)
            continue;
        if (c->kind == CANDIDATE_FIELD && (state_in(c->e->states, STATE_EDITABLE) || takes_number(c->e)))
            add_field(out, c, task);
        else if (c->kind == CANDIDATE_OPTION && c->list_of && c->list_of != list)
            add_choices(out, all, &(struct offer){LINE_LIST, *c->list ? c->list : "List", c->list_of, NULL},
                        c, &q);
        else if (c->kind == CANDIDATE_TICK || (c->kind == CANDIDATE_OPTION && !c->list_of))
            add_tick(out, c->name, c, c->on, false);
        list = c->list_of ? c->list_of : list;
    }
    const struct offer offers[] = {{LINE_ROW, "Row"},
                                   {LINE_TAB, "Tab"},
                                   {LINE_MENU, "Menu", NULL, done},
                                   {LINE_BUTTON, "Button", NULL, done}};
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        add_choices(out, all, &offers[i], NULL, &q);
}

/* Appends "name: text" as one line. */
static void print_line(const char *name, const char *text, struct buf *out)
{
    autofree char *copy = xasprintf("%.*s", (int)utf8_valid_prefix(text, strnlen(text, TEXT_PRINTED)), text);
    make_plain(copy);
    buf_printf(out, "%s: %s\n", name, copy);
}

/* Appends the texts of the window that name no element: "Delete 3 photos?". */
static void print_texts(const struct form *p, const struct candidates *all, struct buf *out)
{
    static const char *const roles[] = {"label", "static", "heading", "caption", NULL};
    for (int i = 0, n = 0; i < all->s->n && n < TEXTS; i++) {
        const struct element *e = &all->s->e[i];
        bool names = !*e->name || !text_listed(roles, e->role) || e->trust == PLACE_NONE;
        for (int k = 0; k < p->n && !names; k++)
            names = resolve_same(p->l[k].name, e->name);
        for (int k = 0; k < all->n && !names; k++)
            names = resolve_same(all->c[k].name, e->name);
        if (names)
            continue;
        print_line("Text", e->name, out);
        n++;
    }
}

void form_print(const struct form *p, const struct candidates *all, struct buf *out)
{
    print_line("Window", all->title, out);
    print_texts(p, all, out);
    for (int i = 0; i < p->n; i++) {
        const struct form_line *l = &p->l[i];
        buf_printf(out, "%s = %s", l->name, l->v[0].text);
        int first = l->kind == LINE_LIST ? 0 : 1; /* "none" is not offered */
        if (l->kind == LINE_FIELD && l->of->e->least < l->of->e->most)
            buf_printf(out, " (%.6g to %.6g)", l->of->e->least, l->of->e->most);
        bool chosen = l->kind != LINE_FIELD && l->kind != LINE_TICK && l->n > first;
        for (int k = first; k < l->n && chosen; k++)
            buf_printf(out, "%s%s", k > first ? ", " : " (", l->v[k].text);
        buf_puts(out, chosen ? ")\n" : "\n");
    }
}
