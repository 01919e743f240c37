/* resolve.c - compares names in a sentence with those of visible elements. */
#include "plain/resolve.h"

#include "atspi/roles.h"
#include "base/utf8.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

enum {
    EXACT = 100,
    BY_LABEL = 90,
    BY_VALUE = 80,
    BY_START = 60,
    PREFERRED = 5,
    ACTIVE = 2,
    IN_PAGE = 1,
    LABEL_ABOVE = 40, /* px */
    LABEL_BESIDE = 300,
    OVERLAP = 8,
};

/* ---- names --------------------------------------------------------------------------------------------- */

/* Removes a key combination after the name of a menu item: "Save As...   Ctrl+S", "Save Ctrl+S". */
static size_t without_keys(const char *name, size_t n)
{
    const char *gap = strchr(name, '\t'), *last = strrchr(name, ' ');
    if (gap)
        return (size_t)(gap - name);
    if (last && (text_starts(last, " Ctrl+") || text_starts(last, " Alt+") || text_starts(last, " Shift+")))
        return (size_t)(last - name);
    gap = strstr(name, "  ");
    return gap && strchr(gap, '+') ? (size_t)(gap - name) : n;
}

void resolve_normalize(const char *name, char out[RESOLVE_NAME])
{
    size_t n = without_keys(name, strlen(name)), used = 0, len;
    uint32_t cp = ' ';
    for (size_t i = 0; i < n && used + 8 < RESOLVE_NAME; i += len) {
        int got = utf8_decode(name + i, n - i, &cp);
        len = got > 0 ? (size_t)got : 1;
        bool icon = (cp >= 0xe000 && cp <= 0xf8ff) || cp >= 0xf0000 || /* of a font: private use */
                    (cp >= 0x25b2 && cp <= 0x25c5);                    /* triangles */
        bool space =
            got <= 0 || cp <= ' ' || cp == 0xa0 || cp == 0xfffc || cp == 0xfffd || cp == 0x2026 || icon;
        if (cp == '_' && i + 1 < n && isalnum((unsigned char)name[i + 1]) && (i == 0 || name[i - 1] == ' '))
            continue; /* mnemonic mark */
        if (cp == '&' && (i == 0 || name[i - 1] != ' ') && isalnum((unsigned char)name[i + 1]) &&
            (i == 0 || !isalnum((unsigned char)name[i - 1])))
            continue;
        if (space) {
            if (used && out[used - 1] != ' ')
                out[used++] = ' ';
        } else if (cp == '&') {
            memcpy(out + used, "and", 3);
            used += 3;
        } else if (cp == 0x2019) {
            out[used++] = '\'';
        } else {
            used += (size_t)utf8_encode(
                cp < 128 ? (uint32_t)tolower((int)cp) : (uint32_t)towlower((wint_t)cp), out + used);
        }
    }
    while (used && strchr(" .:*", out[used - 1]))
        used--;
    out[used] = 0;
}

bool resolve_same(const char *a, const char *b)
{
    char x[RESOLVE_NAME], y[RESOLVE_NAME];
    resolve_normalize(a, x);
    resolve_normalize(b, y);
    return (*x && !strcmp(x, y)) || !strcmp(a, b);
}

const char *resolve_name(const struct element *e)
{
    return *e->name ? e->name : *e->label ? e->label : e->value;
}

/* Returns whether a name begins with another one, and one of these characters follows, or a space and "(". */
static bool begins(const char *name, const char *with, const char *then)
{
    char x[RESOLVE_NAME], y[RESOLVE_NAME];
    resolve_normalize(name, x);
    resolve_normalize(with, y);
    size_t n = strlen(y);
    return n > 2 && !strncmp(x, y, n) && x[n] && (strchr(then, x[n]) || text_starts(x + n, " ("));
}

bool resolve_begins(const char *name, const char *with)
{
    return begins(name, with, " ,:;(-") || resolve_same(name, with);
}

/* ---- roles --------------------------------------------------------------------------------------------- */

#define END NULL
static const char *const buttons[] = {"push button",     "toggle button",   "link",     "menu item",
                                      "check menu item", "radio menu item", "page tab", "push button menu",
                                      "check box",       "radio button",    "switch",   END};
static const char *const rows[] = {"list item", "table cell", "tree item", "icon",
                                   "table row", "option",     END};
static const char *const others[] = {"menu",
                                     "combo box",
                                     "column header",
                                     "table column header",
                                     "entry",
                                     "text",
                                     "spin button",
                                     "password text",
                                     "slider",
                                     "canvas",
                                     END};
static const char *const ticks[] = {"check box",       "radio button",    "switch", "toggle button",
                                    "check menu item", "radio menu item", END};
static const char *const cells[] = {"table cell", "list item", "tree item", END};
static const char *const lists[] = {"combo box",  "list", "list box", "push button menu", "table", "tree",
                                    "tree table", "menu", "panel",    "grouping",         END};
static const char *const fields[] = {"entry",
                                     "text",
                                     "password text",
                                     "spin button",
                                     "autocomplete",
                                     "date editor",
                                     "combo box",
                                     "terminal",
                                     "paragraph",
                                     "document text",
                                     END};
static const char *const scales[] = {"slider", "dial", END}, *const tabs[] = {"page tab", END};
static const char *const menus[] = {
    "menu", "menu item", "check menu item", "radio menu item", "push button menu", END};
static const char *const options[] = {
    "list item",       "menu item",  "option",    "radio button", "check menu item",
    "radio menu item", "table cell", "tree item", "check box",    END};

/* Returns how well a role suits a use: 2: preferred, 1: possible, 0: not. */
static int suits(const struct element *e, enum resolve_for use)
{
    switch (use) {
    case RESOLVE_PRESS:
        return text_listed(buttons, e->role) ? 2 : text_listed(rows, e->role) || text_listed(others, e->role);
    case RESOLVE_TICK:
        return text_listed(ticks, e->role) ? 2 : text_listed(cells, e->role);
    case RESOLVE_OPTION:
        return text_listed(options, e->role) ? 2 : 0;
    case RESOLVE_LIST:
        return !strcmp(e->role, "combo box") ? 2 : text_listed(lists, e->role);
    case RESOLVE_FIELD:
        return text_listed(fields, e->role) ? 2 : text_listed(scales, e->role);
    case RESOLVE_TAB:
        return text_listed(tabs, e->role) ? 2 : !strcmp(e->role, "radio button");
    case RESOLVE_MENU_ITEM:
        return text_listed(menus, e->role) ? 2 : 0;
    case RESOLVE_MENU:
        return text_listed(menus, e->role)
                   ? 2
                   : !strcmp(e->role, "push button") || !strcmp(e->role, "toggle button");
    default:
        return text_listed(buttons, e->role) || text_listed(fields, e->role) ? 2 : 1;
    }
}

bool resolve_suits(const struct element *e, enum resolve_for use)
{
    return suits(e, use) > 0;
}

bool resolve_is_field(const struct element *e)
{
    return text_listed(fields, e->role);
}

bool resolve_is_button(const struct element *e)
{
    return text_listed(buttons, e->role);
}

bool resolve_is_row(const struct element *e)
{
    return text_listed(rows, e->role);
}

/* ---- candidates ---------------------------------------------------------------------------------------- */

bool resolve_is_below(const struct snapshot *s, const struct element *e, const struct element *top)
{
    int i = (int)(e - s->e);
    while (i >= 0 && &s->e[i] != top)
        i = s->e[i].parent;
    return i >= 0;
}

/* Returns whether the middle of an element is inside a rectangle. */
static bool is_inside(const struct element *e, struct screen_rect r)
{
    return screen_rect_contains(r, e->rect.x + e->rect.w / 2, e->rect.y + e->rect.h / 2);
}

const struct element *resolve_opener(const struct snapshot *s, const struct element *e)
{
    static const char *const openers[] = {"menu",      "menu item",  "menu bar",    "push button menu",
                                          "combo box", "popup menu", "push button", "toggle button",
                                          NULL};
    for (int i = e->parent; i >= 0; i = s->e[i].parent)
        if (text_listed(openers, s->e[i].role) && !is_inside(e, s->e[i].rect))
            return &s->e[i];
    return NULL;
}

const struct element *resolve_page(const struct snapshot *s, const struct element *e)
{
    int i = e->parent;
    while (i >= 0 && strcmp(s->e[i].role, "document web") != 0)
        i = s->e[i].parent;
    return i >= 0 ? &s->e[i] : NULL;
}

static bool is_apart(const struct element *e, const struct element *group)
{
    struct screen_rect both = screen_rect_intersect(e->rect, group->rect);
    return state_in(e->states, STATE_SHOWING) && e->rect.w > 0 && e->rect.h > 0 &&
           (both.w <= OVERLAP || both.h <= OVERLAP);
}

/* Returns whether a page draws an element, one beside it or one around it apart from a group around them,
 * or at its edge, as it does with lists that open. Elements that are scrolled away are not showing. */
static bool is_drawn_outside(const struct snapshot *s, const struct element *e, const struct element *group)
{
    const struct element *page = state_in(e->states, STATE_SHOWING) ? resolve_page(s, e) : NULL;
    if (!page || group <= page)
        return false;
    for (const struct element *in = e; in > group; in = &s->e[in->parent])
        if (is_apart(in, group))
            return true;
    for (const struct element *o = page; o < s->e + s->n; o++)
        if (o->parent == e->parent && is_apart(o, group))
            return true;
    return false;
}

/* Returns whether an element is part of a page that does not show it. */
static bool is_away(const struct snapshot *s, const struct element *e)
{
    return !state_in(e->states, STATE_SHOWING) && resolve_page(s, e);
}

const struct element *resolve_hidden_by(const struct snapshot *s, const struct element *e)
{
    const struct element *end = resolve_opener(s, e);
    for (const struct element *up = e; up->parent >= 0;) {
        up = &s->e[up->parent];
        if (up == end)
            return NULL;
        if (!strcmp(up->role, "page tab")) /* GTK 3: the page is below its tab */
            continue;
        struct screen_rect r = up->rect;
        bool doubtful =
            up->trust == PLACE_DOUBTFUL && !resolve_page(s, up); /* not a list that a page opens */
        bool placed = r.w > 1 && r.h > 1 && up->trust != PLACE_NONE && !doubtful;
        if (placed && up->parent >= 0 && !is_inside(e, r) && !is_drawn_outside(s, e, up))
            return up;
    }
    return NULL;
}

/* Returns whether the middle of an element is inside all elements around it: not scrolled out of sight. */
static bool is_in_sight(const struct snapshot *s, const struct element *e)
{
    return !resolve_hidden_by(s, e);
}

const struct element *resolve_scrolled_by(const struct snapshot *s, const struct element **e)
{
    const struct element *pane = resolve_hidden_by(s, *e), *page = resolve_page(s, *e);
    if (!pane || !page || pane <= page ||
        (state_in(pane->states, STATE_SHOWING) && is_inside(pane, page->rect)))
        return pane;
    *e = pane;
    return page;
}

bool resolve_is_beyond(const struct snapshot *s, const struct element *e)
{
    const struct element *moved = e, *pane = resolve_page(s, e) ? resolve_scrolled_by(s, &moved) : NULL;
    int middle = e->rect.x + e->rect.w / 2;
    for (const struct element *in = e; pane && in != pane; in = &s->e[in->parent])
        if (in->rect.w <= 1 || in->rect.h <= 1) /* folded up */
            return false;
    return pane && middle >= pane->rect.x && middle < pane->rect.x + pane->rect.w;
}

bool resolve_in_active_window(const struct snapshot *s, const struct element *e)
{
    while (e->parent >= 0)
        e = &s->e[e->parent];
    return state_in(e->states, STATE_ACTIVE);
}

static bool is_shown(const struct snapshot *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (resolve_same(resolve_name(&s->e[i]), name))
            return true;
    return false;
}

bool resolve_in_row(const struct snapshot *s, const struct element *e, const char *row)
{
    bool exact = is_shown(s, row);
    for (int i = 0; i < s->n; i++) {
        const struct element *r = &s->e[i];
        int middle = r->rect.y + r->rect.h / 2;
        if (r != e && r->window == e->window && r->rect.h > 0 && middle >= e->rect.y &&
            middle < e->rect.y + e->rect.h &&
            (resolve_same(resolve_name(r), row) || (!exact && resolve_begins(resolve_name(r), row))))
            return true;
    }
    return false;
}

static bool is_placed(const struct element *e)
{
    return e->trust != PLACE_NONE && e->rect.w > 0 && e->rect.h > 0 && e->parent >= 0;
}

bool resolve_visible(const struct snapshot *s, const struct element *e)
{
    return is_placed(e) && is_in_sight(s, e);
}

/* Returns whether an element is a time of a page in Firefox, which describes it as a group. */
static bool is_time(const struct snapshot *s, const struct element *e)
{
    return !strcmp(e->role, "panel") && e + 1 < s->e + s->n && e[1].parent == (int)(e - s->e) &&
           !strcmp(e[1].role, "spin button") && resolve_page(s, e);
}

static int score(const struct snapshot *s, const struct resolve_query *q, const struct element *e)
{
    int role = q->use == RESOLVE_FIELD && is_time(s, e) ? 1 : suits(e, q->use), by = 0;
    bool clicked = !role && q->use == RESOLVE_PRESS && resolve_is_clickable(s, e);
    bool text = q->use == RESOLVE_ANY || q->use == RESOLVE_OPTION || text_listed(rows, e->role) || clicked;
    role += clicked;
    if (!role || !is_placed(e))
        return 0;
    if (q->use == RESOLVE_MENU_ITEM && !strcmp(s->e[e->parent].role, "menu bar"))
        return 0;
    bool sight = !is_away(s, e) && (q->use == RESOLVE_ANY || is_in_sight(s, e));
    if (!sight && !(q->beyond && resolve_is_beyond(s, e)))
        return 0;
    if (q->below && (e == q->below || !resolve_is_below(s, e, q->below)))
        return 0;
    if (*e->name && resolve_same(e->name, q->name))
        by = EXACT;
    else if (*e->label && resolve_same(e->label, q->name))
        by = BY_LABEL;
    else if (*e->value && text && resolve_same(e->value, q->name))
        by = BY_VALUE;
    else if (begins(resolve_name(e), q->name, text && !clicked ? " ,:;(-" : "("))
        by = BY_START;
    if (!by || (q->row && !resolve_in_row(s, e, q->row)))
        return 0;
    return by + (role == 2 ? PREFERRED : 0) + (resolve_in_active_window(s, e) ? ACTIVE : 0) +
           (resolve_page(s, e) ? IN_PAGE : 0);
}

/* Returns whether an element repeats another one at the same place: a cell and the label in it. */
static bool is_repeated(const struct element *a, const struct element *b)
{
    int x = a->rect.x + a->rect.w / 2, y = a->rect.y + a->rect.h / 2;
    return x >= b->rect.x && x < b->rect.x + b->rect.w && y >= b->rect.y && y < b->rect.y + b->rect.h;
}

/* Returns the distance of an element from the label on its left or above it, -1: it is elsewhere. */
static int from_label(const struct element *label, const struct element *e)
{
    struct screen_rect l = label->rect, r = e->rect;
    int middle = l.y + l.h / 2, gap = r.x - l.x - l.w, below = r.y - l.y - l.h;
    if (label->window != e->window || l.w <= 0)
        return -1;
    if (middle >= r.y && middle < r.y + r.h && gap >= -2 && gap < LABEL_BESIDE)
        return gap > 0 ? gap : 0;
    return below >= -2 && below < LABEL_ABOVE && l.x < r.x + r.w && r.x < l.x + l.w ? LABEL_ABOVE + below
                                                                                    : -1;
}

static const char *const texts[] = {"label", "static", "caption", "heading", NULL};
static const char *const heads[] = {"column header", "table column header", NULL};

const char *resolve_beside(const struct snapshot *s, const struct element *e)
{
    const char *found = "";
    int nearest = INT_MAX;
    for (int i = 0; i < s->n; i++) {
        bool beside = text_listed(texts, s->e[i].role) && !resolve_is_below(s, &s->e[i], e);
        int far = beside ? from_label(&s->e[i], e) : -1;
        if (far >= 0 && far < nearest && *resolve_name(&s->e[i])) {
            nearest = far;
            found = resolve_name(&s->e[i]);
        }
    }
    return found;
}

const char *resolve_label(const struct snapshot *s, const struct element *e)
{
    return *e->label || strcmp(e->role, "combo box") != 0 ? e->label : resolve_beside(s, e);
}

/* Returns the distance of an element from the label of its column, at any height above it, or -1. */
static int from_header(const struct element *label, const struct element *e)
{
    struct screen_rect l = label->rect, r = e->rect;
    int below = r.y - l.y - l.h;
    bool over = label->window == e->window && l.w > 0 && l.x < r.x + r.w && r.x < l.x + l.w;
    return over && below >= -2 ? LABEL_ABOVE + below : -1;
}

/* Returns whether a query can mean a field or list that has no name of its own. */
static bool can_be_meant(const struct snapshot *s, const struct resolve_query *q, const struct element *e)
{
    return suits(e, q->use) > (q->use != RESOLVE_FIELD) && is_placed(e) &&
           (is_in_sight(s, e) || (q->beyond && resolve_is_beyond(s, e))) &&
           (!q->below || (e != q->below && resolve_is_below(s, e, q->below))) &&
           (!q->row || resolve_in_row(s, e, q->row));
}

/* Finds the fields or lists nearest to a text of that name: toolkits name some lists by their choice.  In a
 * given row, the text is also the head of a column.  Returns their number, more than 1: at the same
 * distance. */
static int beside_label(const struct snapshot *s, const struct resolve_query *q, const struct element **out,
                        int max)
{
    int nearest = INT_MAX, n = 0;
    for (int i = 0; i < s->n; i++) {
        const struct element *label = &s->e[i];
        bool head = q->row && text_listed(heads, label->role);
        if ((!head && !text_listed(texts, label->role)) || !resolve_same(resolve_name(label), q->name))
            continue;
        for (const struct element *e = s->e; e < s->e + s->n; e++) {
            int far = from_label(label, e);
            far = far < 0 && q->row ? from_header(label, e) : far;
            bool again = far == nearest && n && is_repeated(e, out[n - 1]);
            if (far < 0 || far > nearest || again || !can_be_meant(s, q, e))
                continue;
            n = far < nearest ? 0 : n;
            nearest = far;
            if (n < max)
                out[n++] = e;
        }
    }
    return n;
}

/* Returns the check box or radio button that GTK 4 describes in a cell; in GTK 3 the cell is one. */
static const struct element *box_in(const struct snapshot *s, const struct element *cell)
{
    for (const struct element *e = cell + 1; e < s->e + s->n && e->depth > cell->depth; e++)
        if (text_listed(ticks, e->role))
            return e;
    return cell;
}

const struct element *resolve_box(const struct snapshot *s, const struct element *e)
{
    for (int i = 0; i < s->n; i++) {
        const struct element *box = &s->e[i];
        int middle = box->rect.y + box->rect.h / 2;
        if (box != e && box->parent == e->parent && !*box->name && !*box->value && box->rect.w > 0 &&
            text_listed(cells, box->role) && middle >= e->rect.y && middle < e->rect.y + e->rect.h)
            return box_in(s, box);
    }
    return NULL;
}

int resolve(const struct snapshot *s, const struct resolve_query *q, const struct element **out, int max)
{
    int best = 0, n = 0;
    for (int i = 0; i < s->n; i++) {
        const struct element *e = &s->e[i];
        int points = score(s, q, e);
        if (!points || points < best)
            continue;
        if (points > best)
            n = 0;
        best = points;
        bool again = n && is_repeated(e, out[n - 1]);
        if (!again && n < max)
            out[n++] = e;
    }
    return n || (q->use != RESOLVE_LIST && q->use != RESOLVE_FIELD) ? n : beside_label(s, q, out, max);
}
