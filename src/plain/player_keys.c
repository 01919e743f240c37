/* player_keys.c - selects with the keyboard what programs do not place on the screen: items of menus whose
 * rectangle is wrong, entries of lists that are not reported, and files in icon views.
 *
 * The effect of each key is read before the next one: a key that arrives late would select another item. */
#include "plain/player_impl.h"

#include "atspi/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEYS_MAX = 60 };
#define SELECTED_ALL UINT32_MAX /* mark after ctrl+a; no element has this ref */

/* Returns the innermost element of the active window that has the keyboard, NULL: none. */
static const struct element *focused(const struct snapshot *s)
{
    const struct element *at = NULL;
    for (int i = 0; i < s->n; i++)
        if (state_in(s->e[i].states, STATE_FOCUSED) && s->e[i].parent >= 0 &&
            resolve_in_active_window(s, &s->e[i]) && (!at || s->e[i].depth > at->depth))
            at = &s->e[i];
    return at;
}

/* ---- menus -------------------------------------------------------------------------------------------- */

static enum player_next press_return(struct player *p, struct buf *b)
{
    p->s.keyed = false;
    player_keys("Return", 1, b);
    return NEXT_ACTION;
}

static enum player_next press_key(struct player *p, const char *key, uint32_t mark, struct buf *b)
{
    p->s.keys++;
    p->s.keyed = true;
    p->s.mark = mark;
    player_keys(key, 1, b);
    return NEXT_ACTION;
}

/* Returns the selected item of the menu or list that e is in, another one than e if there are several, NULL:
 * none. */
static const struct element *selected_beside(const struct snapshot *s, const struct element *e)
{
    const struct element *found = NULL;
    for (const struct element *o = s->e; o < s->e + s->n; o++)
        if (o->parent == e->parent && state_in(o->states, STATE_SELECTED) && (!found || found == e))
            found = o;
    return found;
}

enum player_next player_press_by_keys(struct player *p, const struct element *e, struct buf *b, char *why,
                                      size_t size)
{
    const struct element *opener = resolve_opener(p->now, e);
    const struct element *at = focused(p->now);
    bool has_focus = resolve_is_button(e) && !strstr(e->role, "menu"),
         popover = opener && (strstr(opener->role, "button") || (at && resolve_is_below(p->now, at, opener)));
    if ((has_focus || popover) && player_goes_by_keys(p, e)) { /* GTK 4, also items of its popovers */
        enum player_next next = player_focus_by_keys(p, e, b, why, size);
        return next == NEXT_STEP ? player_press_focused(p, b) : next;
    }
    const struct element *selected = selected_beside(p->now, e);
    uint32_t mark = selected ? selected->ref : 0;
    if (selected == e)
        return press_return(p, b);
    if (!p->s.keyed || (mark && mark != p->s.mark && p->s.keys < KEYS_MAX))
        return press_key(p, selected > e ? "Up" : "Down", mark, b);
    snprintf(why, size,
             "the program does not say reliably where %s '%.80s' is, and the arrow keys do not select it",
             e->role, resolve_name(e));
    return player_wait_or_fail(p, PLAYER_EFFECT_MS);
}

/* Returns the arrow key that leads from one element to another, whose places are relative to one group. */
static const char *arrow(const struct element *from, const struct element *to)
{
    int dx = to->rect.x - from->rect.x, dy = to->rect.y - from->rect.y;
    if (2 * abs(dy) < from->rect.h && dx)
        return dx > 0 ? "Right" : "Left";
    return dy > 0 || (!dy && to > from) ? "Down" : "Up";
}

/* Returns the open menu of the menu bar that e is in, e itself if it is the menu of a button or that button,
 * NULL: none. */
static const struct element *open_menu(const struct snapshot *s, const struct element *e)
{
    bool bar = !strcmp(s->e[e->parent].role, "menu bar");
    if (!strcmp(e->role, "menu") && state_in(s->e[e->parent].states, STATE_EXPANDED))
        return e;
    for (const struct element *o = s->e; o < s->e + s->n; o++)
        if ((o == e || (bar && o->parent == e->parent)) && state_in(o->states, STATE_EXPANDED))
            return o;
    return NULL;
}

enum player_next player_open_menu_by_keys(struct player *p, const struct element *e, struct buf *b, char *why,
                                          size_t size)
{
    const struct element *open = open_menu(p->now, e);
    bool bar = !strcmp(p->now->e[e->parent].role, "menu bar");
    if (open == e) {
        p->s.keys--; /* the last key was the action of this level */
        p->s.keyed = false;
        return NEXT_STEP;
    }
    if (open && (!p->s.keyed || open->ref != p->s.mark) && p->s.keys < KEYS_MAX)
        return press_key(p, arrow(open, e), open->ref, b);
    snprintf(why, size,
             "the program does not say reliably where menu '%.80s' is, and F10 does not lead to it",
             resolve_name(e));
    enum player_next next = bar ? NEXT_FAILED : player_press_by_keys(p, e, b, why, size);
    if (next != NEXT_FAILED || p->s.main_menu)
        return bar ? player_wait_or_fail(p, PLAYER_EFFECT_MS) : next;
    p->s.main_menu = true;
    p->s.since = 0;
    return press_key(p, "F10", 0, b);
}

/* ---- elements without a reliable place ---------------------------------------------------------------- */

bool player_goes_by_keys(const struct player *p, const struct element *e)
{
    static const char *const roles[] = {"push button",
                                        "toggle button",
                                        "check box",
                                        "radio button",
                                        "switch",
                                        "link",
                                        "text",
                                        "entry",
                                        "spin button",
                                        "menu item",
                                        "check menu item",
                                        "radio menu item",
                                        "combo box",
                                        NULL};
    return e && !p->ref && e->trust == PLACE_DOUBTFUL && !player_is_off(e) &&
           resolve_in_active_window(p->now, e) && (text_listed(roles, e->role) || element_is_password(e));
}

static bool has_tabs(const struct snapshot *s)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->e[i].role, "page tab") && resolve_in_active_window(s, &s->e[i]))
            return true;
    return false;
}

/* Presses a key on the way to an element, unless the one before has had no effect: `mark` is the ref of what
 * it should change.  A text `at` takes Tab as a character, but not ctrl+Tab, which changes the page of a
 * window with tabs. */
static enum player_next press_on_the_way(struct player *p, const char *key, uint32_t mark,
                                         const struct element *e, struct buf *b, char *why, size_t size)
{
    const struct element *at = focused(p->now);
    bool typed =
        at && at != e && state_in(at->states, STATE_MULTI_LINE) && state_in(at->states, STATE_EDITABLE);
    bool tab = !strcmp(key, "Tab"), moved = !p->s.keyed || (mark && mark != p->s.mark);
    if (tab && !moved && !p->s.up && !has_tabs(p->now) &&
        player_wait_or_fail(p, PLAYER_EFFECT_MS) == NEXT_FAILED) /* the name of a file takes Tab */
        moved = p->s.up = true;
    if ((!typed || !has_tabs(p->now)) && moved && p->s.keys < KEYS_MAX)
        return press_key(p, tab && (typed || p->s.up) ? "ctrl+Tab" : key, mark, b);
    snprintf(why, size, "the program does not say reliably where %s '%.80s' is, and no key reaches it",
             e->role, resolve_name(e));
    return player_wait_or_fail(p, PLAYER_EFFECT_MS);
}

/* Returns whether two elements are radio buttons of one group, and Tab reaches only the
 * chosen one of their group: no other is chosen below the element around both. */
static bool is_one_group(const struct snapshot *s, const struct element *a, const struct element *b)
{
    int up = a->parent, chosen = 0;
    while (up >= 0 && !resolve_is_below(s, b, &s->e[up]))
        up = s->e[up].parent;
    for (int i = 0; up >= 0 && i < s->n; i++)
        chosen += !strcmp(s->e[i].role, "radio button") && player_is_on(&s->e[i]) &&
                  resolve_is_below(s, &s->e[i], &s->e[up]);
    return !strcmp(a->role, "radio button") && !strcmp(b->role, "radio button") && chosen == 1;
}

enum player_next player_focus_by_keys(struct player *p, const struct element *e, struct buf *b, char *why,
                                      size_t size)
{
    const struct element *at = focused(p->now);
    if (at && resolve_is_below(p->now, at, e))
        return NEXT_STEP;
    const char *key = !at || !is_one_group(p->now, at, e) ? "Tab" : at < e ? "Down" : "Up";
    return press_on_the_way(p, key, at ? at->ref : 0, e, b, why, size);
}

enum player_next player_select_by_keys(struct player *p, const struct element *e, struct buf *b, char *why,
                                       size_t size)
{
    const struct snapshot *s = p->now;
    const struct element *at = focused(s), *row = e;
    while (row->parent >= 0 && strcmp(row->role, "table row") != 0 && strcmp(row->role, "list item") != 0)
        row = &s->e[row->parent];
    row = row->parent < 0 ? e : row;
    const struct element *selected = selected_beside(s, row), *from = at;
    while (from && from->parent != row->parent)
        from = from->parent >= 0 ? &s->e[from->parent] : NULL;
    bool holds = at && !from && resolve_is_below(s, row, at); /* the list has the keyboard */
    from = holds ? selected : from;
    if (from == row && selected == row)
        return NEXT_STEP;
    const char *key = from == row ? "space" : from ? arrow(from, row) : holds ? "Down" : "Tab";
    return press_on_the_way(p, key, from ? from->ref : at ? at->ref : 0, e, b, why, size);
}

enum player_next player_press_focused(struct player *p, struct buf *b)
{
    p->s.keyed = false;
    player_keys("space", 1, b);
    return NEXT_ACTION;
}

enum player_next player_write_focused(struct player *p, const char *text, struct buf *b)
{
    if (p->s.mark != SELECTED_ALL)
        return press_key(p, "ctrl+a", SELECTED_ALL, b);
    p->s.keyed = false;
    player_call(b, "type", "text", text);
    return NEXT_ACTION;
}

/* ---- lists -------------------------------------------------------------------------------------------- */

/* Returns whether entries of an open list are on the screen: below it, in a window of their own, or elsewhere
 * in a page since the list was pressed. */
static bool shows_entries(const struct player *p, const struct element *list)
{
    const struct snapshot *s = p->now;
    const struct element *end = list + 1;
    while (end < s->e + s->n && end->depth > list->depth)
        end++;
    for (const struct element *e = s->e; e < s->e + s->n; e++)
        if (resolve_suits(e, RESOLVE_OPTION) && e->trust != PLACE_NONE &&
            ((e > list && e < end) || e->window != list->window || player_is_new(p, e)))
            return true;
    return false;
}

static uint32_t hash_of(const char *text)
{
    uint32_t sum = 2166136261u;
    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 16777619u;
    return sum;
}

bool player_chooses_by_keys(struct player *p, const struct element *list, const char *name)
{
    return list && *player_shown_choice(list, name) && !shows_entries(p, list) &&
           (p->s.keys || player_wait_or_fail(p, PLAYER_EFFECT_MS) == NEXT_FAILED);
}

enum player_next player_choose_by_keys(struct player *p, const struct element *list, struct buf *b, char *why,
                                       size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    const char *shown = player_shown_choice(list, s->in);
    uint32_t mark = hash_of(shown);
    bool moved = !p->s.keyed || mark != p->s.mark;
    if (resolve_same(shown, s->what))
        return press_return(p, b);
    snprintf(why, size, "'%.80s' has no '%.80s': the arrow keys reach '%.80s'", s->in ? s->in : "the list",
             s->what, shown);
    if (!moved && player_wait_or_fail(p, PLAYER_EFFECT_MS) == NEXT_WAIT)
        return NEXT_WAIT;
    if (p->s.keys >= KEYS_MAX || (!moved && p->s.up))
        return NEXT_FAILED;
    p->s.up = p->s.up || !moved; /* the last entry is reached: the others are above the first choice */
    return press_key(p, p->s.up ? "Up" : "Down", mark, b);
}

/* ---- files --------------------------------------------------------------------------------------------- */

/* Returns whether the active window shows a directory without describing its files, and no element elsewhere
 * has the keyboard: Thunar then selects the file whose name is typed. */
static bool is_blank_directory(const struct snapshot *s)
{
    int pane = -1;
    for (int i = 0; s && i < s->n && pane < 0; i++)
        if (!strcmp(s->e[i].role, "directory pane") && resolve_in_active_window(s, &s->e[i]))
            pane = i;
    for (int i = 0; pane >= 0 && i < s->n; i++) {
        const struct element *e = &s->e[i];
        bool inside = resolve_is_below(s, e, &s->e[pane]),
             focused = state_in(e->states, STATE_FOCUSED) && e->parent >= 0;
        if (inside ? i != pane && (*resolve_name(e) || e->children) : focused)
            return false;
    }
    return pane >= 0;
}

/* Returns the number of bytes of the quotation mark at the start of a text, with the spaces beside it; 0: it
 * does not start with one. */
static size_t quote_length(const char *text)
{
    static const char *const marks[] = {"\"", "'", "“", "”", "„", "‘", "’", "‚", "«", "»", "「", "」"};
    static const char *const spaces[] = {" ", "\u00a0", "\u202f"};
    size_t n = 0, quotes = 0;
    for (size_t k = 0; k < 3; k++)
        n += text_starts(text + n, spaces[k]) ? strlen(spaces[k]) : 0;
    for (size_t k = 0; k < sizeof marks / sizeof *marks && !quotes; k++)
        quotes = text_starts(text + n, marks[k]) ? strlen(marks[k]) : 0;
    n += quotes;
    for (size_t k = 0; k < 3; k++)
        n += text_starts(text + n, spaces[k]) ? strlen(spaces[k]) : 0;
    return quotes ? n : 0;
}

/* Returns whether a text of the window begins with the quoted name of a file, as status bars report the
 * selected one. */
static bool is_reported(const struct snapshot *s, const char *name)
{
    for (int i = 0; s && i < s->n; i++) {
        const char *text = *s->e[i].name ? s->e[i].name : s->e[i].value;
        size_t quote = resolve_is_field(&s->e[i]) ? 0 : quote_length(text);
        if (quote && text_starts(text + quote, name) && quote_length(text + quote + strlen(name)))
            return true;
    }
    return false;
}

/* Returns whether the active window has a status bar with a text, which would name the selected file. */
static bool reports_selection(const struct snapshot *s)
{
    for (int i = 0; s && i < s->n; i++)
        for (int up = *resolve_name(&s->e[i]) ? i : -1; up >= 0; up = s->e[up].parent)
            if (!strcmp(s->e[up].role, "status bar") && resolve_in_active_window(s, &s->e[up]))
                return true;
    return false;
}

/* Returns whether the word after a name, or NULL, can mean a file. */
static bool is_file_word(const char *role)
{
    static const char *const words[] = {"file", "folder", "icon", "item"};
    for (size_t i = 0; role && i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(role, words[i]))
            return true;
    return !role;
}

/* Returns whether a condition has to be verified by typing a name, because it may be that of a file.  That a
 * name is shown is not verified so without a dot or the word "file" or "folder": other texts would be typed
 * into the view.  That it is gone is: the view would not describe it either. */
static bool is_of_file(const struct plain_step *s)
{
    return s->state == PLAIN_GONE || (s->state == PLAIN_SHOWN && (s->role || strchr(s->what, '.')));
}

bool player_selects_by_typing(struct player *p)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    bool asks = s->verb == PLAIN_CHECK || s->verb == PLAIN_WAIT;
    return is_file_word(s->role) && (!asks || is_of_file(s)) && p->s.absent && !p->ref && !s->row &&
           is_blank_directory(p->now) && player_wait_or_fail(p, PLAYER_SEARCH_MS) == NEXT_FAILED;
}

bool player_shows_directory(const struct player *p, const struct plain_step *s)
{
    return is_file_word(s->role) && is_of_file(s) && is_blank_directory(p->now);
}

/* Compares what the status bar reports after the name was typed with a condition.  A step that waits types it
 * again later. */
static enum player_next judge_typed(struct player *p, bool reported, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    snprintf(why, size, "'%.80s' is %s the directory", s->what, reported ? "in" : "not in");
    if (reported == (s->state == PLAIN_SHOWN))
        return NEXT_STEP;
    p->s.keys = 0;
    p->s.typing = p->s.keyed = false;
    p->s.since = 0;
    return s->verb == PLAIN_WAIT && player_still_waits(p) ? NEXT_WAIT : NEXT_FAILED;
}

enum player_next player_select_by_typing(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    bool reported = is_reported(p->now, s->what), asks = s->verb == PLAIN_CHECK || s->verb == PLAIN_WAIT;
    snprintf(why, size, "'%.80s' cannot be verified: no status bar of this window would name it", s->what);
    if (asks && !reports_selection(p->now))
        return s->verb == PLAIN_WAIT && player_still_waits(p) ? NEXT_WAIT : NEXT_FAILED;
    snprintf(why, size, "'%.80s' is not on the screen, and is not selected after its name was typed",
             s->what);
    if (!p->s.keys && !reported) {
        p->s.keys++;
        p->s.typing = p->s.keyed = true;
        player_call(b, "type", "text", s->what);
        return NEXT_ACTION;
    }
    if (!reported && player_wait_or_fail(p, PLAYER_EFFECT_MS) == NEXT_WAIT)
        return NEXT_WAIT;
    if (p->s.keys == 1) { /* closes the field that shows the typed name */
        p->s.keyed = !reported || s->verb != PLAIN_PRESS;
        p->s.keys += p->s.keyed;
        player_keys("Escape", 1, b);
        return NEXT_ACTION;
    }
    if (asks)
        return judge_typed(p, reported, why, size);
    p->s.keyed = false;
    if (!reported)
        return NEXT_FAILED;
    if (s->verb == PLAIN_PRESS) /* it was selected before */
        return NEXT_STEP;
    player_keys(s->verb == PLAIN_DOUBLE_CLICK ? "Return" : "shift+F10", 1, b);
    return NEXT_ACTION;
}
