/* player_step.c - the next action of one plain step. */
#include "plain/player_impl.h"

#include "atspi/roles.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- replies ------------------------------------------------------------------------------------------- */

void player_call(struct buf *b, const char *tool, const char *key, const char *text)
{
    buf_printf(b, "<tool_call>{\"name\": \"%s\", \"arguments\": {\"%s\": ", tool, key);
    buf_put_json(b, text, strlen(text));
    buf_puts(b, "}}</tool_call>");
}

/* Begins a call with an element and its middle, in pixels of the screenshot. */
static void begin_call(struct player *p, const char *tool, const struct element *e, struct buf *b)
{
    const char *said = p->steps.s[p->at].what, *name = *resolve_name(e) ? resolve_name(e) : said ? said : "";
    struct screen_rect view = screen_view(p->screen);
    int wide = e->rect.w > 4 * e->rect.h &&
                       text_listed((const char *const[]){"table cell", "list item", NULL}, e->role)
                   ? e->rect.w / 6
                   : e->rect.w / 2;
    buf_printf(b, "%s \"%.80s\" is at %d,%d by its name\n", e->role, name, e->rect.x, e->rect.y);
    buf_printf(b, "<tool_call>{\"name\": \"%s\", \"arguments\": {\"element\": ", tool);
    buf_put_json(b, name, strlen(name));
    buf_printf(b, ", \"x\": %d, \"y\": %d", e->rect.x + wide - view.x, e->rect.y + e->rect.h / 2 - view.y);
}

void player_click(struct player *p, const struct element *e, const char *button, int count, struct buf *b)
{
    begin_call(p, "click", e, b);
    buf_printf(b, ", \"button\": \"%s\", \"count\": %d}}</tool_call>", button, count);
}

static void write_text(struct player *p, const struct element *e, const char *text, struct buf *b)
{
    begin_call(p, "write", e, b);
    buf_puts(b, ", \"text\": ");
    buf_put_json(b, text, strlen(text));
    buf_puts(b, "}}</tool_call>");
}

void player_keys(const char *keys, int times, struct buf *b)
{
    buf_printf(b, "<tool_call>{\"name\": \"key\", \"arguments\": {\"repeat\": %d, \"keys\": [", times);
    char *copy = xstrdup(keys), *rest = NULL;
    bool plus = strlen(copy) > 1 && copy[strlen(copy) - 1] == '+'; /* "ctrl++" */
    if (plus)
        copy[strlen(copy) - 1] = 0;
    int n = 0;
    for (char *k = strtok_r(copy, "+", &rest); k; k = strtok_r(NULL, "+", &rest)) {
        buf_puts(b, n++ ? ", " : "");
        buf_put_json(b, k, strlen(k));
    }
    buf_puts(b, plus ? ", \"+\"]}}</tool_call>" : "]}}</tool_call>");
    free(copy);
}

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
    const struct plain_step *s = &p->steps.s[p->at];
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
    return state_in(e->states, STATE_CHECKED) || state_in(e->states, STATE_PRESSED) ||
           (state_in(e->states, STATE_SELECTED) && strcmp(e->role, "table cell") != 0);
}

/* Waits for the name while it is missing; otherwise fails. */
static enum player_next wait_or_fail(struct player *p, double ms)
{
    if (!p->since)
        p->since = clock_ns();
    return clock_ms_since(p->since) < ms ? NEXT_WAIT : NEXT_FAILED;
}

static enum player_next missing(struct player *p)
{
    return wait_or_fail(p, p->acted ? PLAYER_PATIENCE_MS : PLAYER_START_MS);
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
    else
        return e;
    *next = missing(p);
    return NULL;
}

/* ---- kinds of steps ------------------------------------------------------------------------------------ */

static enum player_next press(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->at];
    enum player_next next;
    bool several;
    if (p->phase)
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
    bool wanted = p->steps.s[p->at].verb == PLAIN_TICK, several;
    enum player_next next;
    const struct element *e = find_target(p, RESOLVE_TICK, NULL, &several, why, size), *box;
    if (e && !strcmp(e->role, "table cell") && (box = resolve_box(p->now, e)))
        e = box;
    if (!(e = usable(p, e, &next, why, size)))
        return next;
    if (is_on(e) == wanted)
        return NEXT_STEP;
    if (p->phase) {
        snprintf(why, size, "'%.80s' is still %s after a click", p->steps.s[p->at].what,
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

/* Opens the list in the first phase, and clicks the option in the second.  An option that is visible without
 * that is clicked at once. */
static enum player_next choose(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->at];
    struct resolve_query lists = {s->in, RESOLVE_LIST, NULL, NULL},
                         option = {s->what, RESOLVE_OPTION, NULL, NULL};
    const struct element *list = NULL, *e;
    enum player_next next;
    bool several = false;
    if (s->in && !(list = find(p, &lists, &several, why, size)) && !p->phase)
        return several ? NEXT_FAILED : missing(p);
    bool closed = list && (!strcmp(list->role, "combo box") || !strcmp(list->role, "push button menu"));
    if (closed && p->phase != 1 && resolve_same(shown_choice(list, s->in), s->what))
        return NEXT_STEP;
    if (p->phase == 2 || (p->phase == 1 && !closed)) {
        snprintf(why, size, "'%.80s' shows '%.80s', not '%.80s'", s->in ? s->in : "",
                 closed ? shown_choice(list, s->in) : "", s->what);
        return closed && *shown_choice(list, s->in) ? wait_or_fail(p, PLAYER_EFFECT_MS) : NEXT_STEP;
    }
    if (closed && p->phase == 0) {
        if (!(e = usable(p, list, &next, why, size)))
            return next;
        player_click(p, e, "left", 1, b);
        return NEXT_ACTION;
    }
    option.below = list && !closed ? list : NULL;
    if (!(e = usable(p, find(p, &option, &several, why, size), &next, why, size)))
        return several ? NEXT_FAILED : next;
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

static enum player_next enter(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->at];
    enum player_next next;
    bool several;
    if (!s->what) {
        if (!p->phase)
            player_call(b, "type", "text", s->value);
        return p->phase ? NEXT_STEP : NEXT_ACTION;
    }
    const struct element *e = find_target(p, RESOLVE_FIELD, NULL, &several, why, size);
    if (p->phase && (!e || element_is_password(e) || !*e->value))
        return NEXT_STEP; /* the program does not report what the field contains */
    if (!(e = usable(p, e, &next, why, size)))
        return next;
    if (!p->phase) {
        write_text(p, e, s->value, b);
        return NEXT_ACTION;
    }
    if (!strcmp(e->value, s->value) || strlen(s->value) > 150)
        return NEXT_STEP;
    snprintf(why, size, "field '%.80s' contains '%.80s' after typing", resolve_name(e), e->value);
    return wait_or_fail(p, PLAYER_EFFECT_MS);
}

static enum player_next menu(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->at];
    enum player_next next;
    bool several;
    if (p->phase == s->levels)
        return NEXT_STEP;
    struct resolve_query q = {s->path[p->phase], RESOLVE_MENU, NULL, NULL};
    const struct element *e = find(p, &q, &several, why, size);
    if (several && !p->phase) { /* twins in a tool bar: the menu bar comes first */
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
    if (p->phase)
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
    if (p->phase >= PLAYER_SCROLLS)
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
        if (p->now->e[i].parent < 0 && strstr(p->now->e[i].name, name))
            return true;
    return false;
}

/* Returns whether the condition of a step holds; otherwise the reason is in why. */
static bool holds(struct player *p, const struct plain_step *s, char *why, size_t size)
{
    bool several;
    bool value = s->state == PLAIN_EQUALS || s->state == PLAIN_CONTAINS;
    bool ticked = s->state == PLAIN_TICKED || s->state == PLAIN_UNTICKED;
    const struct element *e = find_target(p,
                                          value    ? RESOLVE_FIELD
                                          : ticked ? RESOLVE_TICK
                                                   : RESOLVE_ANY,
                                          NULL, &several, why, size);
    if (value && !e && !several)
        e = find_target(p, RESOLVE_ANY, NULL, &several, why, size);
    bool shown = e || several || is_window(p, s->what);
    if (s->state == PLAIN_SHOWN)
        return shown;
    if (s->state == PLAIN_GONE) {
        snprintf(why, size, "'%.80s' is still on the screen", s->what);
        return p->now && !shown;
    }
    if (!e)
        return false;
    const char *text = *e->value ? e->value : resolve_name(e);
    switch (s->state) {
    case PLAIN_TICKED:
    case PLAIN_UNTICKED:
        snprintf(why, size, "'%.80s' is %s", s->what, is_on(e) ? "ticked" : "not ticked");
        return is_on(e) == (s->state == PLAIN_TICKED);
    case PLAIN_ENABLED:
    case PLAIN_DISABLED:
        snprintf(why, size, "'%.80s' is %s", s->what, is_off(e) ? "disabled" : "enabled");
        return is_off(e) == (s->state == PLAIN_DISABLED);
    default:
        snprintf(why, size, "'%.80s' contains '%.80s'", s->what, text);
        return s->state == PLAIN_EQUALS ? !strcmp(text, s->value) : strstr(text, s->value) != NULL;
    }
}

static enum player_next condition(struct player *p, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->at];
    if (holds(p, s, why, size))
        return NEXT_STEP;
    return wait_or_fail(p, s->verb == PLAIN_WAIT ? PLAYER_WAIT_MS : PLAYER_PATIENCE_MS);
}

bool player_finds(struct player *p)
{
    static const enum resolve_for uses[PLAIN_VERBS] = {
        [PLAIN_TICK] = RESOLVE_TICK,   [PLAIN_UNTICK] = RESOLVE_TICK, [PLAIN_CHOOSE] = RESOLVE_OPTION,
        [PLAIN_ENTER] = RESOLVE_FIELD, [PLAIN_MENU] = RESOLVE_MENU,   [PLAIN_TAB] = RESOLVE_TAB,
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
    bool named = s->what && s->verb != PLAIN_KEYS && s->verb != PLAIN_WAIT && s->verb != PLAIN_CHECK &&
                 s->verb != PLAIN_SCROLL && !s->maybe_key;
    return !named || find_target(p, uses[s->verb], s->in, &several, why, sizeof why);
}

enum player_next player_step(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->at];
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
        if (p->phase)
            return NEXT_STEP;
        player_keys(s->verb == PLAIN_KEYS ? s->what : "alt+F4", s->verb == PLAIN_KEYS ? s->times : 1, b);
        return NEXT_ACTION;
    default:
        return press(p, b, why, size);
    }
}
