/* player_step.c - the next action of one plain step. */
#include "plain/player_impl.h"

#include "atspi/roles.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERIFIED_MAX = 150 }; /* bytes: longer texts may be cut in the snapshot */

/* ---- finding ------------------------------------------------------------------------------------------- */

/* Returns the only element that fits, or NULL with the reason; *several: the name is ambiguous. */
static const struct element *find(struct player *p, const struct resolve_query *q, bool *several, char *why,
                                  size_t size)
{
    const struct element *found[4];
    int n = p->now ? resolve(p->now, q, found, 4) : 0;
    *several = n > 1;
    if (n == 1)
        return found[0];
    struct buf b;
    buf_init(&b, size);
    if (!p->now) {
        buf_printf(&b, "the elements cannot be read: %s", p->unread);
    } else if (n > 1) {
        buf_printf(&b, "'%.80s' is the name of several elements: ", q->name);
        for (int i = 0; i < n; i++)
            buf_printf(&b, "%s%s at %d,%d", i ? ", " : "", found[i]->role, found[i]->rect.x,
                       found[i]->rect.y);
    } else {
        buf_printf(&b, "'%.80s' is not on the screen", q->name);
        resolve_nearest(p->now, q, &b);
    }
    snprintf(why, size, "%s", b.data ? b.data : "not found");
    buf_free(&b);
    return NULL;
}

/* Finds the element of the current step by its name without and then with the words around it. */
static const struct element *find_target(struct player *p, enum resolve_for use, const char *row,
                                         bool *several, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct resolve_query q = {s->what, use, row, NULL};
    const struct element *e = find(p, &q, several, why, size);
    if (!e && !*several && s->whole && strcmp(s->whole, s->what) != 0) {
        struct resolve_query whole = {s->whole, use, row, NULL};
        char unused[ERR_TEXT];
        e = find(p, &whole, several, unused, sizeof unused);
    }
    return e;
}

static bool is_off(const struct element *e)
{
    return !state_in(e->states, STATE_SENSITIVE) && !state_in(e->states, STATE_ENABLED);
}

static bool is_on(const struct element *e)
{
    return state_in(e->states, STATE_CHECKED) || state_in(e->states, STATE_PRESSED);
}

/* Returns whether two texts are the same apart from white space, which programs and the bus may change. */
static bool same_text(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " \t\r\n");
        b += strspn(b, " \t\r\n");
        if (*a != *b || !*a)
            return *a == *b;
    }
}

/* Waits for the name while it is missing; otherwise fails. */
static enum player_next wait_or_fail(struct player *p, double ms)
{
    if (!p->s.since)
        p->s.since = clock_ns();
    return clock_ms_since(p->s.since) < ms ? NEXT_WAIT : NEXT_FAILED;
}

static enum player_next missing(struct player *p)
{
    return wait_or_fail(p, p->s.acted ? PLAYER_PATIENCE_MS : PLAYER_START_MS);
}

/* Returns whether an element is part of an open menu or list, which is a window of its own above the others.
 * */
static bool is_in_popup(const struct snapshot *s, const struct element *e)
{
    static const char *const openers[] = {"menu", "menu item", "popup menu", "combo box", NULL};
    while (e->parent >= 0) {
        e = &s->e[e->parent];
        if (text_listed(openers, e->role))
            return true;
    }
    return false;
}

static bool is_covered(const struct player *p, const struct element *e)
{
    int x = e->rect.x + e->rect.w / 2, y = e->rect.y + e->rect.h / 2;
    struct screen_window at;
    if (is_in_popup(p->now, e))
        return false;
    return e->window && screen_window_at(p->screen, x, y, &at) == 0 && at.id && at.id != e->window &&
           !screen_window_covers(p->screen, e->window, x, y);
}

/* Returns the element if it can be used; otherwise NULL with what happens next. */
static const struct element *usable(struct player *p, const struct element *e, enum player_next *next,
                                    char *why, size_t size)
{
    if (!e) {
        *next = missing(p);
        return NULL;
    }
    if (is_off(e))
        snprintf(why, size, "%s '%.80s' is disabled", e->role, resolve_name(e));
    else if (e->trust == PLACE_DOUBTFUL)
        snprintf(why, size, "the program does not say reliably where %s '%.80s' is", e->role,
                 resolve_name(e));
    else if (is_covered(p, e))
        snprintf(why, size, "%s '%.80s' is covered by another window", e->role, resolve_name(e));
    else
        return e;
    *next = missing(p);
    return NULL;
}

/* ---- kinds of steps ------------------------------------------------------------------------------------ */

static enum player_next press(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    enum player_next next;
    bool several;
    if (p->s.phase)
        return NEXT_STEP;
    const struct element *e = find_target(p, RESOLVE_PRESS, s->in, &several, why, size);
    if (!e && !several && s->maybe_key) {
        player_keys(s->what, 1, b);
        return NEXT_ACTION;
    }
    if (!(e = usable(p, e, &next, why, size)))
        return next;
    player_click(p, e, s->verb == PLAIN_RIGHT_CLICK ? "right" : "left", s->verb == PLAIN_DOUBLE_CLICK ? 2 : 1,
                 b);
    return NEXT_ACTION;
}

static enum player_next tick(struct player *p, struct buf *b, char *why, size_t size)
{
    bool wanted = p->steps.s[p->s.at].verb == PLAIN_TICK, several;
    enum player_next next;
    const struct element *e = find_target(p, RESOLVE_TICK, NULL, &several, why, size), *box;
    if (e && !strcmp(e->role, "table cell") && (box = resolve_box(p->now, e)))
        e = box;
    if (!(e = usable(p, e, &next, why, size)))
        return next;
    if (is_on(e) == wanted)
        return NEXT_STEP;
    if (p->s.phase) {
        snprintf(why, size, "'%.80s' is still %s after a click", p->steps.s[p->s.at].what,
                 wanted ? "off" : "on");
        return wait_or_fail(p, PLAYER_EFFECT_MS);
    }
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

/* Returns the choice that a list shows, as far as the program reports it: toolkits that name a list by its
 * choice report no value. */
static const char *shown_choice(const struct element *list, const char *name)
{
    return *list->value ? list->value : resolve_same(list->name, name) ? "" : list->name;
}

static bool is_closed_list(const struct element *e)
{
    return !strcmp(e->role, "combo box") || !strcmp(e->role, "push button menu");
}

/* Finds the list that the step has opened: by its name, or where it was. */
static const struct element *opened_list(struct player *p, const struct resolve_query *q)
{
    bool several;
    char why[ERR_TEXT];
    const struct element *e = find(p, q, &several, why, sizeof why);
    for (int i = 0; !e && p->now && i < p->now->n; i++)
        if (is_closed_list(&p->now->e[i]) && screen_rect_contains(p->now->e[i].rect, p->s.x, p->s.y))
            e = &p->now->e[i];
    return e;
}

/* Compares the choice of the list that was opened with the option. */
static enum player_next verify_choice(struct player *p, const struct resolve_query *lists, char *why,
                                      size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    const struct element *list = opened_list(p, lists);
    const char *shows = list ? shown_choice(list, s->in) : "";
    if (list && (!*shows || resolve_same(shows, s->what)))
        return NEXT_STEP;
    if (list)
        snprintf(why, size, "'%.80s' shows '%.80s' after the choice", s->in, shows);
    else
        snprintf(why, size, "'%.80s' is gone after the choice", s->in);
    return wait_or_fail(p, PLAYER_EFFECT_MS);
}

static enum player_next click_option(struct player *p, const struct element *below, struct buf *b, char *why,
                                     size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct resolve_query option = {s->what, RESOLVE_OPTION, NULL, below};
    enum player_next next;
    bool several;
    const struct element *e = find(p, &option, &several, why, size);
    if (!(e = usable(p, e, &next, why, size)))
        return next;
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

/* Opens a closed list, clicks the option, and verifies the choice.  An option of an open list is clicked at
 * once. */
static enum player_next choose(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct resolve_query lists = {s->in, RESOLVE_LIST, NULL, NULL};
    const struct element *list = NULL;
    enum player_next next;
    bool several = false;
    if (p->s.phase && !p->s.opened)
        return NEXT_STEP;
    if (p->s.phase)
        return p->s.phase == 1 ? click_option(p, NULL, b, why, size) : verify_choice(p, &lists, why, size);
    p->s.opened = false;
    if (s->in && !(list = find(p, &lists, &several, why, size)))
        return missing(p);
    if (!list || !is_closed_list(list))
        return click_option(p, list, b, why, size);
    if (resolve_same(shown_choice(list, s->in), s->what))
        return NEXT_STEP;
    if (!usable(p, list, &next, why, size))
        return next;
    p->s.opened = true;
    p->s.x = list->rect.x + list->rect.w / 2;
    p->s.y = list->rect.y + list->rect.h / 2;
    player_click(p, list, "left", 1, b);
    return NEXT_ACTION;
}

static enum player_next enter(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    enum player_next next;
    bool several;
    if (!s->what) {
        if (!p->s.phase)
            player_call(b, "type", "text", s->value);
        return p->s.phase ? NEXT_STEP : NEXT_ACTION;
    }
    const struct element *e = find_target(p, RESOLVE_FIELD, NULL, &several, why, size);
    if (!p->s.phase) {
        if (!(e = usable(p, e, &next, why, size)))
            return next;
        player_write(p, e, s->value, b);
        return NEXT_ACTION;
    }
    bool hidden = p->secret || (e && element_is_password(e)) || strlen(s->value) > VERIFIED_MAX;
    if (hidden || (e && same_text(e->value, s->value)))
        return NEXT_STEP;
    if (e)
        snprintf(why, size, "field '%.80s' contains '%.80s' after typing", s->what, e->value);
    else
        snprintf(why, size, "field '%.80s' is gone after typing", s->what);
    return wait_or_fail(p, PLAYER_EFFECT_MS);
}

static enum player_next menu(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    enum player_next next;
    bool several;
    if (p->s.phase == s->levels)
        return NEXT_STEP;
    struct resolve_query q = {s->path[p->s.phase], p->s.phase ? RESOLVE_MENU_ITEM : RESOLVE_MENU, NULL, NULL};
    const struct element *e = find(p, &q, &several, why, size);
    if (several && !p->s.phase) { /* twins in a tool bar: the menu bar comes first */
        const struct element *found[4];
        int n = resolve(p->now, &q, found, 4);
        for (int i = 0; i < n && !e; i++)
            if (!strcmp(found[i]->role, "menu"))
                e = found[i];
    }
    if (!(e = usable(p, e, &next, why, size)))
        return next;
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

static enum player_next tab(struct player *p, struct buf *b, char *why, size_t size)
{
    enum player_next next;
    bool several;
    if (p->s.phase)
        return NEXT_STEP;
    const struct element *e = find_target(p, RESOLVE_TAB, NULL, &several, why, size);
    if (!(e = usable(p, e, &next, why, size)))
        return next;
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

static enum player_next scroll(struct player *p, struct buf *b, char *why, size_t size)
{
    struct screen_rect view = screen_view(p->screen);
    bool several;
    const struct element *e = find_target(p, RESOLVE_ANY, NULL, &several, why, size);
    if (several || (e && e->rect.y >= view.y && e->rect.y + e->rect.h <= view.y + view.h))
        return NEXT_STEP;
    if (p->s.phase >= PLAYER_SCROLLS)
        return NEXT_FAILED;
    buf_printf(
        b,
        "<tool_call>{\"name\": \"scroll\", \"arguments\": {\"x\": %d, \"y\": %d, \"direction\": \"%s\", "
        "\"amount\": 3}}</tool_call>",
        view.w / 2, view.h / 2, e && e->rect.y < view.y ? "up" : "down");
    return NEXT_ACTION;
}

/* ---- conditions ---------------------------------------------------------------------------------------- */

static bool is_window(const struct player *p, const char *name)
{
    for (int i = 0; p->now && i < p->now->n; i++)
        if (p->now->e[i].parent < 0 &&
            (resolve_same(p->now->e[i].name, name) || resolve_begins(p->now->e[i].name, name)))
            return true;
    return false;
}

static bool is_ticked(const struct player *p, const struct element *e)
{
    const struct element *box = !strcmp(e->role, "table cell") ? resolve_box(p->now, e) : NULL;
    return is_on(box ? box : e);
}

/* Returns whether the value of an element is, or contains, that of a step. */
static bool value_holds(const struct player *p, const struct plain_step *s, const struct element *e,
                        char *why, size_t size)
{
    const char *text = *e->value || resolve_is_field(e) ? e->value : resolve_name(e);
    if (p->secret)
        snprintf(why, size, "'%.80s' has another value", s->what);
    else
        snprintf(why, size, "'%.80s' contains '%.80s'", s->what, text);
    return s->state == PLAIN_EQUALS ? same_text(text, s->value) : strstr(text, s->value) != NULL;
}

/* Returns whether the condition of a step holds; otherwise the reason is in why. */
static bool holds(struct player *p, const struct plain_step *s, char *why, size_t size)
{
    bool several, value = s->state == PLAIN_EQUALS || s->state == PLAIN_CONTAINS;
    bool ticked = s->state == PLAIN_TICKED || s->state == PLAIN_UNTICKED;
    enum resolve_for use = value ? RESOLVE_FIELD : ticked ? RESOLVE_TICK : RESOLVE_ANY;
    const struct element *e = find_target(p, use, NULL, &several, why, size);
    if (value && !e && !several)
        e = find_target(p, RESOLVE_ANY, NULL, &several, why, size);
    bool shown = e || several || is_window(p, s->what);
    if (s->state == PLAIN_SHOWN)
        return shown;
    if (s->state == PLAIN_GONE) {
        bool whole = p->now && (p->now->end == SNAPSHOT_WHOLE || p->now->end == SNAPSHOT_NOTHING);
        snprintf(why, size, "'%.80s' is %s", s->what,
                 shown ? "still on the screen"
                       : "possibly in a window "
                         "that was not read");
        return whole && !shown;
    }
    if (!e)
        return false;
    if (value)
        return value_holds(p, s, e, why, size);
    bool on = ticked ? is_ticked(p, e) : is_off(e);
    snprintf(why, size, "'%.80s' is %s%s", s->what, on ? "" : "not ", ticked ? "ticked" : "disabled");
    return on == (s->state == PLAIN_TICKED || s->state == PLAIN_DISABLED);
}

static enum player_next condition(struct player *p, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    if (holds(p, s, why, size))
        return NEXT_STEP;
    return wait_or_fail(p, s->verb == PLAIN_WAIT ? PLAYER_WAIT_MS : PLAYER_PATIENCE_MS);
}

bool player_finds(struct player *p)
{
    static const enum resolve_for uses[PLAIN_VERBS] = {
        [PLAIN_CHECK] = RESOLVE_ANY,   [PLAIN_SCROLL] = RESOLVE_ANY,    [PLAIN_TICK] = RESOLVE_TICK,
        [PLAIN_UNTICK] = RESOLVE_TICK, [PLAIN_CHOOSE] = RESOLVE_OPTION, [PLAIN_ENTER] = RESOLVE_FIELD,
        [PLAIN_MENU] = RESOLVE_MENU,   [PLAIN_TAB] = RESOLVE_TAB,
    };
    const struct plain_step *s = &p->steps.s[0];
    char why[ERR_TEXT];
    bool several;
    if (!p->now || !p->now->n)
        return false;
    if (s->verb == PLAIN_MENU || (s->verb == PLAIN_CHOOSE && s->in)) {
        struct resolve_query q = {s->verb == PLAIN_MENU ? s->path[0] : s->in,
                                  s->verb == PLAIN_MENU ? RESOLVE_MENU : RESOLVE_LIST, NULL, NULL};
        return find(p, &q, &several, why, sizeof why) || several;
    }
    bool named = s->what && s->verb != PLAIN_KEYS && s->verb != PLAIN_WAIT && !s->maybe_key &&
                 !(s->verb == PLAIN_CHECK && s->state == PLAIN_GONE);
    return !named || find_target(p, uses[s->verb], s->in, &several, why, sizeof why);
}

enum player_next player_step(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    switch (s->verb) {
    case PLAIN_TICK:
    case PLAIN_UNTICK:
        return tick(p, b, why, size);
    case PLAIN_CHOOSE:
        return choose(p, b, why, size);
    case PLAIN_ENTER:
        return enter(p, b, why, size);
    case PLAIN_MENU:
        return menu(p, b, why, size);
    case PLAIN_TAB:
        return tab(p, b, why, size);
    case PLAIN_SCROLL:
        return scroll(p, b, why, size);
    case PLAIN_WAIT:
    case PLAIN_CHECK:
        return condition(p, why, size);
    case PLAIN_KEYS:
    case PLAIN_CLOSE:
        if (p->s.phase)
            return NEXT_STEP;
        player_keys(s->verb == PLAIN_KEYS ? s->what : "alt+F4", s->verb == PLAIN_KEYS ? s->times : 1, b);
        return NEXT_ACTION;
    default:
        return press(p, b, why, size);
    }
}
