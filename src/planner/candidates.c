/* candidates.c - candidates of the active window and their context; see candidates.h. */
#include "planner/candidates.h"

#include "atspi/roles.h"
#include "base/utf8.h"
#include "plain/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_HEIGHT = 60 }; /* px; the text beside a higher field does not name it */

static const struct {
    const char *roles;
    enum candidate_kind kind;
} kinds[] = {
    {"push button|link|push button menu|icon|column header|table column header", CANDIDATE_PRESS},
    {"toggle button|check box|switch", CANDIDATE_TICK},
    {"check menu item|radio menu item|menu item|menu", CANDIDATE_MENU},
    {"radio button|option", CANDIDATE_OPTION},
    {"list item|table cell|tree item", CANDIDATE_ROW},
    {"entry|text|password text|spin button|slider", CANDIDATE_FIELD},
    {"page tab", CANDIDATE_TAB},
};

static int root_of(const struct snapshot *s, int i)
{
    while (s->e[i].parent >= 0)
        i = s->e[i].parent;
    return i;
}

/* Returns the window to plan for: the active one, a dialog before others; -1: all. */
static int active_root(const struct snapshot *s)
{
    int found = -1;
    for (int i = 0; i < s->n; i++)
        if (s->e[i].parent < 0 && state_in(s->e[i].states, STATE_ACTIVE) &&
            (found < 0 || !strcmp(s->e[i].role, "dialog")))
            found = i;
    return found;
}

/* Copies a name without the key combination that follows it after spaces. */
static void copy_name(char out[CANDIDATE_NAME], const char *text)
{
    text += strspn(text, " ");
    const char *gap = strstr(text, "  ");
    size_t n = gap ? (size_t)(gap - text) : strlen(text);
    n = utf8_valid_prefix(text, n < CANDIDATE_NAME ? n : CANDIDATE_NAME - 1);
    memcpy(out, text, n);
    out[n] = 0;
}

/* Appends a text to a context, separated by a space. */
static void append(char out[CANDIDATE_NAME], const char *text)
{
    size_t n = strlen(out);
    if (*text && n + 2 < CANDIDATE_NAME)
        snprintf(out + n, CANDIDATE_NAME - n, "%s%s", n ? " " : "", text);
    out[utf8_valid_prefix(out, strlen(out))] = 0;
}

static bool shows_choice(const struct snapshot *s, int list)
{
    const struct element *e = &s->e[list];
    if (*e->value && resolve_same(e->name, e->value))
        return true;
    for (int i = list + 1; i < s->n && s->e[i].depth > e->depth; i++)
        if (*s->e[i].name && resolve_same(s->e[i].name, e->name))
            return true;
    return false;
}

/* Sets the name of the list that holds an option.  The options of a list follow each other: `before` may have
 * it. */
static void name_list(const struct snapshot *s, int list, const struct candidate *before,
                      char out[CANDIDATE_NAME])
{
    const struct element *e = &s->e[list];
    if (before && before->list_of == e) {
        memcpy(out, before->list, CANDIDATE_NAME);
        return;
    }
    const char *name = *e->name && !shows_choice(s, list) ? e->name
                       : *e->label                        ? e->label
                                                          : resolve_beside(s, e);
    copy_name(out, name);
}

static void add_level(struct candidate *c, const char *text)
{
    char name[CANDIDATE_NAME];
    copy_name(name, text);
    c->path[c->levels++] = xstrdup(name);
}

/* Returns whether an element opens the menu below it: in Qt a menu item that has a menu of the same name. */
static bool is_menu(const struct element *e)
{
    return *e->name && text_choice("menu|menu item|popup menu", e->role) >= 0;
}

/* Sets path, list, group and tab from the elements above. */
static void take_ancestors(const struct snapshot *s, int i, const struct candidate *before,
                           struct candidate *c)
{
    const char *up_path[PLAIN_PATH_MAX];
    int n = 0;
    for (int k = s->e[i].parent; k >= 0; k = s->e[k].parent) {
        const struct element *up = &s->e[k];
        if (is_menu(up) && n < PLAIN_PATH_MAX - 1 && (!n || strcmp(up_path[n - 1], up->name) != 0))
            up_path[n++] = up->name;
        else if (!strcmp(up->role, "combo box") && !c->list_of) {
            name_list(s, k, before, c->list);
            c->list_of = up;
            c->kind = CANDIDATE_OPTION;
        } else if (!strcmp(up->role, "page tab") && c->closed && c->kind != CANDIDATE_OPTION && !*c->tab)
            copy_name(c->tab, up->name);
        else if (up->parent >= 0 && *up->name && strcmp(up->role, "menu bar") != 0 && !is_menu(up))
            append(c->group, up->name);
    }
    if (c->kind != CANDIDATE_MENU)
        return;
    while (n)
        add_level(c, up_path[--n]);
    add_level(c, s->e[i].name);
}

/* Returns the first text in the row of an element: the leftmost element as high as its middle. */
static const char *row_text(const struct snapshot *s, const struct element *e)
{
    const struct element *first = NULL;
    int middle = e->rect.y + e->rect.h / 2;
    for (int i = 0; i < s->n; i++) {
        const struct element *r = &s->e[i];
        int m = r->rect.y + r->rect.h / 2;
        if (r == e || r->window != e->window || r->parent < 0 || r->rect.h <= 0 ||
            r->rect.h > 3 * e->rect.h || m < e->rect.y || m >= e->rect.y + e->rect.h ||
            abs(m - middle) >= e->rect.h || (first && r->rect.x >= first->rect.x))
            continue;
        if (*resolve_name(r) && !resolve_same(resolve_name(r), resolve_name(e)))
            first = r;
    }
    return first ? resolve_name(first) : "";
}

static enum candidate_kind kind_of(const struct element *e)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_choice(kinds[i].roles, e->role) >= 0)
            return kinds[i].kind;
    return 0;
}

/* Returns whether an element is a candidate, and fills it. */
static bool read_one(const struct snapshot *s, int i, const struct candidate *before, struct candidate *c)
{
    const struct element *e = &s->e[i];
    *c = (struct candidate){.e = e, .kind = kind_of(e)};
    if (!c->kind)
        return false;
    c->closed = e->trust == PLACE_NONE || e->rect.w <= 0;
    c->on = state_in(e->states, STATE_CHECKED) || state_in(e->states, STATE_PRESSED);
    c->off = !state_in(e->states, STATE_SENSITIVE) && !state_in(e->states, STATE_ENABLED);
    take_ancestors(s, i, before, c);
    bool field = c->kind == CANDIDATE_FIELD, line = field && e->rect.h <= LINE_HEIGHT;
    const char *name = *e->name         ? e->name
                       : field && !line ? ""
                       : *e->label      ? e->label
                       : line           ? resolve_beside(s, e)
                                        : e->value;
    copy_name(c->name, name);
    if (!*c->name && !field)
        return false;
    bool children = i + 1 < s->n && s->e[i + 1].parent == i;
    if (!strcmp(e->role, "menu") && (*c->list || (c->levels == 1 && !children && c->closed)))
        return false;
    match_split(c->name, false, &c->words);
    return !c->closed || *c->tab || c->kind == CANDIDATE_MENU || c->kind == CANDIDATE_OPTION;
}

static void add_context(struct candidate *c)
{
    match_split(c->list, false, &c->context);
    match_split(c->row, false, &c->context);
    match_split(c->tab, false, &c->context);
    for (int k = 0; k + 1 < c->levels; k++)
        match_split(c->path[k], false, &c->context);
    match_split(c->group, false, &c->context);
}

/* Returns whether two names may be the same, at less cost than resolve_same(). */
static bool is_alike(const struct candidate *a, const struct candidate *b)
{
    return a->words.n == b->words.n && (!a->words.n || !strcmp(a->words.w[0].text, b->words.w[0].text));
}

/* Gives elements with a namesake of the same kind the text of their row. */
static void tell_apart(struct candidates *p)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->n && !*p->c[i].row; k++) {
            struct candidate *a = &p->c[i], *b = &p->c[k];
            bool acts = a->kind == CANDIDATE_PRESS || a->kind == CANDIDATE_TICK;
            bool header = text_ends(a->e->role, "column header") != text_ends(b->e->role, "column header");
            if (i != k && acts && !header && a->kind == b->kind && !a->closed && is_alike(a, b) &&
                resolve_same(a->name, b->name))
                copy_name(a->row, row_text(p->s, a->e));
        }
}

static void free_path(struct candidate *c)
{
    while (c->levels)
        free(c->path[--c->levels]);
}

void candidates_read(const struct snapshot *s, struct candidates *out)
{
    int root = active_root(s);
    bool page = false; /* then the browser's own controls are none */
    for (int i = 0; i < s->n; i++)
        page = page || (!strcmp(s->e[i].role, "document web") && (root < 0 || root_of(s, i) == root));
    *out = (struct candidates){.c = xcalloc(CANDIDATES_MAX, sizeof *out->c), .s = s, .title = ""};
    out->root = root >= 0 ? &s->e[root] : NULL;
    out->title = root >= 0 ? s->e[root].name : "";
    match_split(out->title, false, &out->topic);
    for (int i = 0; i < s->n; i++) {
        if ((root >= 0 && root_of(s, i) != root) || (page && !resolve_page(s, &s->e[i])))
            continue;
        out->cut = out->cut || out->n == CANDIDATES_MAX;
        if (out->n == CANDIDATES_MAX)
            break;
        if (read_one(s, i, out->n ? &out->c[out->n - 1] : NULL, &out->c[out->n]))
            out->n++;
        else
            free_path(&out->c[out->n]);
    }
    tell_apart(out);
    for (int i = 0; i < out->n; i++)
        add_context(&out->c[i]);
}

void candidates_free(struct candidates *p)
{
    for (int i = 0; i < p->n; i++)
        free_path(&p->c[i]);
    free(p->c);
    *p = (struct candidates){0};
}

float candidate_score(const struct candidate *c, const struct match_words *q)
{
    float found = 0, used = 0, named = 0;
    for (int i = 0; i < q->n; i++) {
        float in_name = match_among(&q->w[i], &c->words), around = 0.75F * match_among(&q->w[i], &c->context);
        found += in_name > around ? in_name : around;
    }
    for (int i = 0; i < c->words.n; i++) {
        float best = match_among(&c->words.w[i], q);
        named += match_is_filler(c->words.w[i].text) && best <= 0 && c->words.n > 1 ? 0.5F : 1;
        used += best;
    }
    return found > 0 && named > 0 ? 0.6F * found / (float)q->n + 0.4F * used / named : 0;
}

bool candidate_same_command(const struct candidate *a, const struct candidate *b)
{
    return (a->kind == CANDIDATE_MENU) != (b->kind == CANDIDATE_MENU) && resolve_same(a->name, b->name);
}
