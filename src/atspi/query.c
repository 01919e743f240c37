/* query.c - answers questions about a display from a snapshot: the element at a point, by name, with the
 * keyboard, and the text around it. */
#include "atspi/elements_impl.h"
#include "atspi/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEAR = 3,
    DIALOG_BYTES = 500,
    DIALOG_DEPTH = 12,
    SMALL = 40, /* elements of a message window that is not marked as a dialog */
    LABELS = 8, /* a dialog with more labels is a form: they name its fields */
    ABOVE = 40, /* px between a field and the label above it */
    BESIDE = 300,
};

static const char *const documents[] = {"document web", "document frame", "html container", NULL};
static const struct element none = {.role = "", .name = "", .value = "", .label = "", .parent = -1};

static bool has_role(const struct element *e, const char *const *roles)
{
    return text_listed(roles, e->role);
}

static bool is_in(const struct element *e, int state)
{
    return state_in(e->states, state);
}

bool element_is_password(const struct element *e)
{
    return !strcmp(e->role, role_name(ROLE_PASSWORD));
}

static int window_of(const struct snapshot *s, int i)
{
    while (s->e[i].parent >= 0)
        i = s->e[i].parent;
    return i;
}

/* Returns whether a is b or an ancestor of b. */
static bool contains(const struct snapshot *s, int a, int b)
{
    while (b >= 0 && b != a)
        b = s->e[b].parent;
    return b == a;
}

/* Returns the index of the element or its nearest ancestor with one of these roles, -1: none. */
static int ancestor(const struct snapshot *s, int i, const char *const *roles)
{
    while (i >= 0 && !has_role(&s->e[i], roles))
        i = s->e[i].parent;
    return i;
}

/* ---- labels ------------------------------------------------------------------------------------------ */

/* Returns the distance of a label from the element that it may name: left in the same row, or just above; -1:
 * neither. */
static int distance(struct screen_rect label, struct screen_rect r)
{
    int middle = label.y + label.h / 2, gap = r.x - label.x - label.w, above = r.y - label.y - label.h;
    if (middle >= r.y && middle < r.y + r.h && gap >= -2 && gap < BESIDE)
        return gap > 0 ? gap : 0;
    return above >= -2 && above < ABOVE && label.x < r.x + r.w && r.x < label.x + label.w ? ABOVE + above
                                                                                          : -1;
}

/* Sets the value of a list that shows its choice in a child: a selected one, as in web pages, or in GTK 4 the
 * first label apart from its name. */
static void set_choice(struct snapshot *s, int list)
{
    struct element *e = &s->e[list];
    for (int i = list + 1; i < s->n && s->e[i].depth > e->depth && !*e->value; i++)
        if (is_in(&s->e[i], STATE_SELECTED) ||
            (!strcmp(s->e[i].role, "label") && strcmp(s->e[i].name, e->name) != 0))
            e->value = s->e[i].name;
}

/* Returns the text of the only label in an entry of a list, "": none.  GTK 4 gives such entries no name. */
static const char *only_text(const struct snapshot *s, int entry)
{
    const char *found = "";
    for (int i = entry + 1; i < s->n && s->e[i].depth > s->e[entry].depth; i++) {
        if (strcmp(s->e[i].role, "label") != 0 || !*s->e[i].name)
            continue;
        if (*found)
            return "";
        found = s->e[i].name;
    }
    return found;
}

/* Returns, for each element, the index of the next label below the same parent (-1: none), and in *first that
 * of the first label below each element.  The caller frees both. */
static int *link_labels(const struct snapshot *s, int **first)
{
    static const char *const labels[] = {"label", "static", NULL};
    int *next = xcalloc((size_t)s->n + 1, sizeof *next);
    *first = xcalloc((size_t)s->n + 1, sizeof **first);
    for (int i = 0; i <= s->n; i++)
        next[i] = (*first)[i] = -1;
    for (int i = s->n - 1; i >= 0; i--) {
        const struct element *l = &s->e[i];
        bool empty = i + 1 == s->n || s->e[i + 1].parent != i; /* a label around a field names only that */
        if (empty && l->parent >= 0 && l->trust != PLACE_NONE && has_role(l, labels) &&
            (*l->name || *l->value)) {
            next[i] = (*first)[l->parent];
            (*first)[l->parent] = i;
        }
    }
    return next;
}

/* Returns whether a text field takes a password according to its label, or without one according to the
 * nearest label of its window, or without that according to the title. */
static bool takes_password(const struct snapshot *s, int i)
{
    static const char *const texts[] = {"text", "entry", NULL}, *const labels[] = {"label", "static", NULL};
    const struct element *e = &s->e[i];
    const char *label = e->label;
    int best = -1, window = window_of(s, i);
    if (*e->name || !has_role(e, texts))
        return false;
    for (int k = window; !*e->label && k < s->n && (k == window || s->e[k].parent >= 0); k++) {
        const struct element *l = &s->e[k];
        int d = has_role(l, labels) && l->trust != PLACE_NONE ? distance(l->rect, e->rect) : -1;
        if (d >= 0 && (best < 0 || d < best)) {
            best = d;
            label = *l->name ? l->name : l->value;
        }
    }
    if (!*label && !is_in(e, STATE_MULTI_LINE)) /* not the text of a file "passwords" in an editor */
        label = s->e[window].name;
    return role_hides_text(label);
}

/* Makes a field one for passwords, and removes the text of the elements in it. */
static void hide_text(struct snapshot *s, int field)
{
    s->e[field].role = role_name(ROLE_PASSWORD);
    for (int i = field; i < s->n && (i == field || s->e[i].depth > s->e[field].depth); i++)
        s->e[i].value = "";
}

void snapshot_label(struct snapshot *s)
{
    static const char *const fields[] = {
        "text", "entry",    "password text", "combo box",   "spin button", "slider",        "check box",
        "list", "list box", "push button",   "date editor", "switch",      "toggle button", NULL};
    int *first, *next = link_labels(s, &first);
    for (int i = 0; i < s->n; i++) {
        struct element *e = &s->e[i];
        int best = -1;
        if (!strcmp(e->role, role_name(ROLE_COMBO_BOX)))
            set_choice(s, i);
        if (!*e->name && !*e->value && !strcmp(e->role, role_name(ROLE_LIST_ITEM)))
            e->label = only_text(s, i);
        if (*e->name || e->trust == PLACE_NONE || e->parent < 0 || !has_role(e, fields))
            continue;
        for (int k = first[e->parent]; k >= 0; k = next[k]) {
            const struct element *l = &s->e[k];
            int d = distance(l->rect, e->rect);
            if (d >= 0 && (best < 0 || d < best)) {
                best = d;
                e->label = *l->name ? l->name : l->value;
            }
        }
    }
    free(first);
    free(next);
    for (int i = 0; i < s->n; i++)
        if (takes_password(s, i))
            hide_text(s, i);
}

/* ---- at a point -------------------------------------------------------------------------------------- */

/* Finds the innermost element at a point; of several the smallest. only: in the X window at the point. */
static int innermost(const struct snapshot *s, int x, int y, bool only)
{
    int best = -1;
    for (int i = 0; i < s->n; i++) {
        const struct element *e = &s->e[i], *b = best >= 0 ? &s->e[best] : NULL;
        if (e->trust == PLACE_NONE || !screen_rect_contains(e->rect, x, y) ||
            (only && e->window != s->window))
            continue;
        if (!b || contains(s, best, i) || (double)e->rect.w * e->rect.h <= (double)b->rect.w * b->rect.h)
            best = i;
    }
    return best;
}

int snapshot_at(const struct snapshot *s, int x, int y)
{
    int at = s->window ? innermost(s, x, y, true) : -1;
    /* GTK 3 reports the items of a menu below the menu bar, but they are in a window of their own. */
    return at >= 0 && s->e[at].parent >= 0 ? at : innermost(s, x, y, false);
}

void elements_ask_at(struct elements *x, int px, int py)
{
    if (x)
        elements_ask(x, &(struct elements_scope){.at_point = true, .x = px, .y = py}, ELEMENTS_ASK_MS);
}

const struct snapshot *elements_answer(struct elements *x, int px, int py, double ms, int *at)
{
    const struct elements_scope *q = elements_question(x);
    bool same = q && q->at_point && abs(px - q->x) <= NEAR && abs(py - q->y) <= NEAR;
    const struct snapshot *s = same ? elements_await(x, ms) : NULL;
    *at = s ? snapshot_at(s, px, py) : -1;
    if (s && (*at < 0 || s->e[*at].parent < 0))
        *at = s->hit;
    return s;
}

bool elements_answer_at(struct elements *x, int px, int py, double ms, struct element *out,
                        struct element *other)
{
    int at;
    const struct snapshot *s = elements_answer(x, px, py, ms, &at);
    int hit = s ? s->hit : -1;
    *out = none;
    *other = none;
    if (at < 0)
        return false;
    *out = s->e[at];
    if (hit >= 0 && !contains(s, hit, at) && !contains(s, at, hit))
        *other = s->e[hit];
    return true;
}

int elements_find(struct elements *x, const char *name, const char *role, const char *window, double ms,
                  struct element out[ELEMENTS_MATCHES])
{
    int n = 0;
    if (!x || !elements_ask(x, &(struct elements_scope){.window = window}, ms))
        return 0;
    const struct snapshot *s = elements_await(x, ms);
    for (int pass = 0; s && pass < 2; pass++)
        for (int i = 0; i < s->n && n < ELEMENTS_MATCHES; i++) {
            bool titled = !strcmp(s->e[window_of(s, i)].name, window);
            if (titled == !pass && !strcmp(s->e[i].role, role_canonical(role)) && !strcmp(s->e[i].name, name))
                out[n++] = s->e[i];
        }
    return n;
}

/* ---- the keyboard ------------------------------------------------------------------------------------ */

/* Returns the element with the keyboard in a window of this title, or else in any, -1: none. Of several the
 * innermost counts, but not Qt's button box, a panel that also reports the focus. Chromium reports its page
 * as focused even while the address bar has the focus: with `field`, a field outside of pages comes first. */
static int focus_of(const struct snapshot *s, const char *title, bool field)
{
    int best = -1, best_score = 0;
    for (int i = 0; i < s->n; i++) {
        const struct element *e = &s->e[i];
        int w = window_of(s, i);
        if (!is_in(e, STATE_FOCUSED) || e->parent < 0)
            continue;
        bool titled = !*title || !strcmp(s->e[w].name, title), active = is_in(&s->e[w], STATE_ACTIVE);
        bool outside = field && is_in(e, STATE_EDITABLE) && ancestor(s, i, documents) < 0;
        int score = 1 + (strcmp(e->role, "panel") != 0) + 2 * outside + 4 * active + 8 * titled;
        if (score > best_score || (score == best_score && contains(s, best, i))) {
            best = i;
            best_score = score;
        }
    }
    return best;
}

/* Returns whether Enter or space press an element of this role; in lists, the entry. */
static bool is_pressed_by_keys(const struct element *e)
{
    static const char *const roles[] = {"push button",  "toggle button",    "check box",
                                        "radio button", "switch",           "link",
                                        "menu item",    "check menu item",  "radio menu item",
                                        "list item",    "table cell",       "tree item",
                                        "icon",         "push button menu", NULL};
    return has_role(e, roles) && !is_in(e, STATE_EDITABLE);
}

/* Returns the default button of the window of an element, -1: none. */
static int default_of(const struct snapshot *s, int focus)
{
    int window = window_of(s, focus);
    for (int i = 0; i < s->n; i++)
        if (is_in(&s->e[i], STATE_IS_DEFAULT) && is_in(&s->e[i], STATE_SENSITIVE) &&
            window_of(s, i) == window && ancestor(s, i, documents) < 0)
            return i;
    return -1;
}

/* Asks about the window of this title. Returns NULL without an answer within ms. */
static const struct snapshot *ask_window(struct elements *x, const char *window, double ms)
{
    bool sent = x && elements_ask(x, &(struct elements_scope){.window = window}, ms);
    return sent ? elements_await(x, ms) : NULL;
}

bool elements_pressed(struct elements *x, bool enter, const char *window, double ms, struct element *out)
{
    const struct snapshot *s = ask_window(x, window, ms);
    int focus = s ? focus_of(s, window, false) : -1, found = -1;
    bool whole = s && s->end == SNAPSHOT_WHOLE; /* else an element that was not read may have the focus */
    *out = none;
    if (focus < 0)
        return false;
    if (is_pressed_by_keys(&s->e[focus]))
        found = focus;
    else if (enter && !is_in(&s->e[focus], STATE_MULTI_LINE))
        found = default_of(s, focus);
    if (found >= 0)
        *out = s->e[found];
    return found >= 0 || whole;
}

void elements_ask_focus(struct elements *x, const char *window)
{
    if (x)
        elements_ask(x, &(struct elements_scope){.window = window}, ELEMENTS_ASK_MS);
}

const struct snapshot *elements_answer_focus(struct elements *x, const char *window, double ms, int *at)
{
    const struct elements_scope *q = elements_question(x);
    const struct snapshot *s = q && !q->at_point ? elements_await(x, ms) : NULL;
    *at = s ? focus_of(s, window, true) : -1;
    return s;
}

static bool is_of_tools(const struct element *document)
{
    static const char *const addresses[] = {"devtools", "chrome-devtools", "about:devtools",
                                            "chrome://devtools"};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        if (text_starts(document->value, addresses[i]))
            return true;
    return text_starts(document->name, "DevTools") || text_starts(document->name, "Developer Tools");
}

/* Returns whether keys in an element go to a terminal. xterm.js, the terminal of VS Code and others, is
 * described as a text field "Terminal input" or "Terminal 1, bash". */
static bool is_terminal(const struct element *e, bool in_page)
{
    return !strcmp(e->role, "terminal") || (in_page && text_starts(e->name, "Terminal "));
}

bool elements_field(struct elements *x, const char *window, double ms, struct element_field *out)
{
    static const char *const fields[] = {"entry", "text", "password text", "combo box", "spin button", NULL};
    const struct snapshot *s = ask_window(x, window, ms);
    int focus = s ? focus_of(s, window, true) : -1;
    *out = (struct element_field){.in_page = false};
    if (focus < 0)
        return false;
    const struct element *e = &s->e[focus];
    int document = ancestor(s, focus, documents);
    out->in_page = document >= 0;
    out->tools = document >= 0 && is_of_tools(&s->e[document]);
    out->editable = (is_in(e, STATE_EDITABLE) || has_role(e, fields)) && !is_terminal(e, out->in_page);
    if (focus != document) /* the value of a document is its address */
        snprintf(out->text, sizeof out->text, "%s", e->value);
    return true;
}

/* ---- dialogs ----------------------------------------------------------------------------------------- */

struct collected {
    struct buf text;
    int labels, seen;
    bool large; /* has a menu, a table or a page, unlike a message */
};

/* Collects the labels in dialog d. Returns the index behind element i and its descendants. */
static int collect(const struct snapshot *s, int d, int i, struct collected *c)
{
    static const char *const labels[] = {"label", "static", "paragraph", "heading", NULL};
    static const char *const skipped[] = {"push button", "menu bar", "table",     "tree table", "tree",
                                          "list",        "entry",    "combo box", "tool bar",   NULL};
    static const char *const parts[] = {
        "menu bar",   "tool bar", "document web", "document frame", "terminal", "table",
        "tree table", "canvas",   "drawing area", "status bar",     NULL};
    const struct element *e = &s->e[i];
    const char *text = *e->name ? e->name : e->value;
    int next = i + 1;
    c->seen++;
    c->large |= has_role(e, parts);
    bool label = has_role(e, labels),
         inside = e->depth - s->e[d].depth <= DIALOG_DEPTH && !has_role(e, skipped);
    if (inside && label && *text && c->text.len < DIALOG_BYTES) {
        buf_printf(&c->text, "%s%.400s", c->text.len ? "\n" : "", text);
        c->labels++;
    }
    if (inside && !label)
        return next;
    while (next < s->n && s->e[next].depth > e->depth)
        next++;
    return next;
}

/* Writes the text of the dialog around an element. */
static void dialog_around(const struct snapshot *s, int i, char *text, size_t size)
{
    /* Firefox shows its questions in frames outside the page. */
    static const char *const dialogs[] = {
        "dialog",         "alert",        "alert dialog",   "message dialog",
        "internal frame", "document web", "document frame", NULL};
    static const char *const windows[] = {"frame", "window", NULL};
    struct collected c = {.labels = 0};
    int d = ancestor(s, i, dialogs);
    if (d >= 0 && has_role(&s->e[d], documents))
        return;
    bool plain = d < 0; /* windows of yad are not marked as dialogs */
    d = plain ? ancestor(s, i, windows) : d;
    if (d < 0)
        return;
    buf_init(&c.text, 2 * (size_t)DIALOG_BYTES + 512);
    for (int k = d + 1; k < s->n && s->e[k].depth > s->e[d].depth;)
        k = collect(s, d, k, &c);
    if (c.labels > LABELS)
        buf_clear(&c.text);
    bool message = !plain || (!c.large && c.labels <= LABELS && c.seen < SMALL);
    if (message)
        snprintf(text, size, "%s%s%.200s", c.text.len ? c.text.data : "", *s->e[d].name ? "\n" : "",
                 s->e[d].name);
    buf_free(&c.text);
}

int elements_dialog(struct elements *x, int px, int py, const char *window, double ms, char *text,
                    size_t size)
{
    struct elements_scope scope = {.window = window, .at_point = px >= 0, .x = px, .y = py};
    text[0] = 0;
    if (!x || !elements_ask(x, &scope, ms))
        return 0;
    const struct snapshot *s = elements_await(x, ms);
    if (!s)
        return elements_no_bus(x) ? 0 : -1;
    int at = px >= 0 ? snapshot_at(s, px, py) : focus_of(s, window, false);
    if (at >= 0)
        dialog_around(s, at, text, size);
    return s->end == SNAPSHOT_SILENT && at < 0 ? -1 : at >= 0;
}
