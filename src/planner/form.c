/* form.c - see form.h. */
#include "planner/form.h"

#include "atspi/roles.h"
#include "base/utf8.h"
#include "plain/resolve.h"
#include "planner/planner_impl.h"

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

/* Appends a value; takes the text. */
static void add_value(struct form_line *l, char *text, const struct candidate *c)
{
    make_plain(text);
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->v[i].text, text)) {
            l->v[i].twin = l->v[i].twin || (c && l->v[i].c && l->v[i].c != c);
            free(text);
            return;
        }
    if (l->n == FORM_VALUES)
        free(text);
    else
        l->v[l->n++] = (struct form_value){text, c, false};
}

/* ---- fields -------------------------------------------------------------------------------------------- */

static char *in_quotes(const char *text, size_t most)
{
    struct buf b;
    buf_init(&b, PLANNER_TEXT);
    buf_putc(&b, '"');
    size_t n = strlen(text);
    for (n = n < most ? n : most; (text[n] & 0xC0) == 0x80;) /* whole characters */
        n++;
    for (size_t i = 0; i < n; i++)
        buf_putc(&b, text[i] == '"' ? '\'' : text[i]);
    buf_putc(&b, '"');
    return buf_take(&b);
}

/* Returns whether a text that is typed may begin or end with this word. */
static bool ends_value(struct span s, int i)
{
    return s.w[i].quoted || clause_is_hard(s, i, i == 0) || !match_is_filler(s.w[i].text);
}

/* Adds the parts of the task that may be typed: a quoted text, or a few words without a comma inside. */
static void add_parts(struct form_line *l, struct span s)
{
    struct match_words name = {.n = 0};
    bool spin = !strcmp(l->of->e->role, "spin button");
    match_split(l->name, false, &name);
    for (int i = 0; i < s.n; i++) {
        struct match_words first = {.n = 0};
        match_split(s.w[i].text, false, &first);
        if (!ends_value(s, i) || (!s.w[i].quoted && match_within(&first, &name)))
            continue;
        for (int k = i; k < s.n && k < i + SPAN_WORDS; k++) {
            if (k > i && (s.w[k].quoted || s.w[k - 1].quoted || s.w[k - 1].after))
                break;
            if (!ends_value(s, k))
                continue;
            char *text = words_text(words_part(s, i, k + 1));
            size_t n = strlen(text);
            while (!s.w[k].quoted && n && strchr("!?", text[n - 1]))
                text[--n] = 0;
            bool number = n && strspn(text, "0123456789.,-+") == n;
            if (spin && k == i && match_number(text) >= 0) {
                free(text);
                text = xasprintf("%d", match_number(s.w[i].text));
                number = true;
            }
            if (n && n < CANDIDATE_NAME && (number || !spin))
                add_value(l, in_quotes(text, CANDIDATE_NAME), NULL);
            free(text);
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

/* Marks the `most` candidates with the best scores, those not above 0 excluded.  Returns whether some are
 * left out. */
static bool mark_best(float *scores, bool *fits, int all, int most)
{
    for (int i = 0; i < all; i++)
        fits[i] = false;
    for (int n = 0; n <= most; n++) {
        int best = -1;
        for (int i = 0; i < all; i++)
            best = scores[i] > 0 && (best < 0 || scores[i] > scores[best]) ? i : best;
        if (best < 0)
            return false;
        scores[best] = 0;
        fits[best] = n < most;
    }
    return true;
}

/* Marks the `most` candidates of a kind with the best scores for the task. */
static void mark_likeliest(const struct candidates *all, const struct match_words *q, bool *fits, int most)
{
    float *scores = xcalloc((unsigned long)all->n + 1, sizeof *scores);
    for (int i = 0; i < all->n; i++)
        scores[i] = fits[i] ? 0.01F + candidate_score(&all->c[i], q) : 0;
    mark_best(scores, fits, all->n, most);
    free(scores);
}

static void add_list(struct form *p, const struct candidates *all, const struct candidate *first,
                     const struct match_words *q)
{
    struct form_line *l = add_line(p, LINE_LIST, *first->list ? first->list : "List", first);
    bool *fits = xcalloc((unsigned long)all->n + 1, sizeof *fits);
    const struct element *list = first->list_of;
    for (int i = 0; i < all->n; i++)
        fits[i] = all->c[i].list_of == list && all->c[i].kind == CANDIDATE_OPTION;
    mark_likeliest(all, q, fits, OPTIONS_SHOWN);
    if (l)
        add_value(l, xstrdup(*list->value ? list->value : *list->name ? list->name : "none"), NULL);
    for (int i = 0; i < all->n && l; i++)
        if (fits[i])
            add_value(l, xstrdup(all->c[i].name), &all->c[i]);
    free(fits);
}

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

/* Joins the cells of the row that begins with candidate i.  *by: the cell whose name finds it. */
static char *row_words(const struct candidates *all, int i, const struct candidate **by)
{
    struct buf b;
    buf_init(&b, PLANNER_TEXT);
    *by = NULL;
    for (int k = i; k < all->n && (k == i || same_row(&all->c[i], &all->c[k])); k++) {
        buf_printf(&b, "%s%s", k > i ? " " : "", all->c[k].name);
        if (is_unique(all, &all->c[k]))
            *by = *by ? *by : &all->c[k];
    }
    *by = *by ? *by : &all->c[i];
    return buf_take(&b);
}

/* Marks the rows whose cells together have the most words of the task.  Returns whether some are left out. */
static bool mark_rows(const struct candidates *all, const struct match_words *q, bool *fits)
{
    float *scores = xcalloc((unsigned long)all->n + 1, sizeof *scores);
    for (int i = 0; i < all->n; i++) {
        struct match_words row = {.n = 0};
        if (all->c[i].kind != CANDIDATE_ROW || (i && same_row(&all->c[i - 1], &all->c[i])))
            continue;
        for (int k = i; k < all->n && (k == i || same_row(&all->c[i], &all->c[k])); k++)
            match_split(all->c[k].name, false, &row);
        scores[i] = 0.01F;
        for (int w = 0; w < q->n; w++)
            scores[i] += match_among(&q->w[w], &row);
    }
    bool cut = mark_best(scores, fits, all->n, FORM_SHOWN);
    free(scores);
    return cut;
}

/* Adds the rows: a line for each if they have a check box, else one line whose values they are. */
static void add_rows(struct form *p, const struct candidates *all, const struct match_words *q)
{
    struct form_line *l = NULL;
    bool *fits = xcalloc((unsigned long)all->n + 1, sizeof *fits);
    bool cut = mark_rows(all, q, fits) || all->cut;
    for (int i = 0; i < all->n; i++) {
        const struct candidate *by;
        if (!fits[i])
            continue;
        const struct element *box = resolve_box(all->s, all->c[i].e);
        char *text = row_words(all, i, &by);
        if (box) {
            add_tick(p, text, by, state_in(box->states, STATE_CHECKED), cut);
            free(text);
            continue;
        }
        if (!l && (l = add_line(p, LINE_ROW, "Row", NULL)))
            add_value(l, xstrdup("none"), NULL);
        if (l)
            add_value(l, text, by);
        else
            free(text);
        if (l)
            l->cut = cut;
    }
    free(fits);
}

static bool is_pressed(const char *done, const struct candidate *c)
{
    autobuf b = buf_of(PLANNER_TEXT);
    frame_describe(c, &b);
    buf_putc(&b, '\n');
    return done && b.data && strstr(done, b.data);
}

static bool is_offered(const struct candidate *c, enum line_kind kind, const char *done)
{
    switch (kind) {
    case LINE_TAB:
        return c->kind == CANDIDATE_TAB;
    case LINE_MENU:
        return c->kind == CANDIDATE_MENU && c->levels > 1 && !is_pressed(done, c);
    default:
        return c->kind == CANDIDATE_PRESS && !text_ends(c->e->role, "column header") &&
               strcmp(c->e->role, "icon") != 0 && !is_pressed(done, c);
    }
}

static char *choice_text(const struct candidate *c)
{
    struct buf b;
    buf_init(&b, PLANNER_TEXT);
    for (int i = 0; i < c->levels; i++)
        buf_printf(&b, "%s%s", i ? " > " : "", c->path[i]);
    if (!c->levels)
        buf_printf(&b, *c->row ? "%s of %s" : "%s", c->name, c->row);
    return buf_take(&b);
}

static void add_choices(struct form *p, const struct candidates *all, enum line_kind kind, const char *name,
                        const struct match_words *q, const char *done)
{
    struct form_line *l = NULL;
    bool *fits = xcalloc((unsigned long)all->n + 1, sizeof *fits);
    for (int i = 0; i < all->n; i++)
        fits[i] = is_offered(&all->c[i], kind, done);
    mark_likeliest(all, q, fits, FORM_SHOWN);
    for (int i = 0; i < all->n; i++) {
        if (!fits[i])
            continue;
        if (!l && (l = add_line(p, kind, name, NULL)))
            add_value(l, xstrdup("none"), NULL);
        if (l)
            add_value(l, choice_text(&all->c[i]), &all->c[i]);
    }
    free(fits);
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
        if (c->kind == CANDIDATE_FIELD && state_in(c->e->states, STATE_EDITABLE))
            add_field(out, c, task);
        else if (c->kind == CANDIDATE_OPTION && c->list_of && c->list_of != list)
            add_list(out, all, c, &q);
        else if (c->kind == CANDIDATE_TICK || (c->kind == CANDIDATE_OPTION && !c->list_of))
            add_tick(out, c->name, c, c->on, false);
        list = c->list_of ? c->list_of : list;
    }
    add_rows(out, all, &q);
    add_choices(out, all, LINE_TAB, "Tab", &q, done);
    add_choices(out, all, LINE_MENU, "Menu", &q, done);
    add_choices(out, all, LINE_BUTTON, "Button", &q, done);
}

/* Appends "name: text" as one line. */
static void print_line(const char *name, const char *text, struct buf *out)
{
    char *copy = xasprintf("%.*s", (int)utf8_valid_prefix(text, strnlen(text, TEXT_PRINTED)), text);
    make_plain(copy);
    buf_printf(out, "%s: %s\n", name, copy);
    free(copy);
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
        bool chosen = l->kind != LINE_FIELD && l->kind != LINE_TICK && l->n > first;
        for (int k = first; k < l->n && chosen; k++)
            buf_printf(out, "%s%s", k > first ? ", " : " (", l->v[k].text);
        buf_puts(out, chosen ? ")\n" : "\n");
    }
}
