/* player_step.c - the next action of one plain step. */
#include "plain/player_impl.h"

#include "atspi/roles.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Returns the innermost element that reports the keyboard focus, NULL: none. */
static const struct element *focused(const struct snapshot *s)
{
    const struct element *found = NULL;
    for (int i = 0; s && i < s->n; i++)
        if (state_in(s->e[i].states, STATE_FOCUSED) && s->e[i].parent >= 0 &&
            (!found || s->e[i].depth > found->depth))
            found = &s->e[i];
    return found;
}

bool player_is_loading(const struct snapshot *s)
{
    for (int i = 0; s && i < s->n; i++)
        if (!strcmp(s->e[i].role, "document web") && state_in(s->e[i].states, STATE_BUSY))
            return true;
    return false;
}

/* Returns whether the window is still being filled: a page loads, or the elements have changed just now. */
static bool is_changing(struct player *p, char *why, size_t size)
{
    uint64_t now = player_digest(p);
    if (now != p->s.seen || !p->s.seen_at)
        p->s.seen_at = clock_ns();
    p->s.seen = now;
    snprintf(why, size, "the elements of the window still change");
    return (player_is_loading(p->now) || clock_ms_since(p->s.seen_at) < PLAYER_STEADY_MS) &&
           player_wait_or_fail(p, PLAYER_START_MS) == NEXT_WAIT;
}

/* Returns whether keys of the first step could be lost, because the program has not opened its document yet:
 * it describes elements, but none of them has the keyboard, or they still change. */
static bool is_starting(struct player *p, char *why, size_t size)
{
    bool described = p->now && (p->now->n || p->now->end != SNAPSHOT_NOTHING);
    if (p->s.acted || !described)
        return false;
    if (focused(p->now))
        return is_changing(p, why, size);
    snprintf(why, size, "no element has the keyboard yet");
    return player_wait_or_fail(p, PLAYER_START_MS) == NEXT_WAIT;
}

/* ---- kinds of steps ------------------------------------------------------------------------------------ */

/* Returns whether the name of a key is also a usual name of buttons, which may not be on the screen yet. */
static bool is_button_word(const char *name)
{
    static const char *const words[] = {"delete", "insert", "print", "home", "end", "pause", "menu"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(name, words[i]))
            return true;
    return false;
}

/* Waits for a button that has the name of a key.  Returns NEXT_STEP if the window has none. */
static enum player_next wait_for_button(struct player *p, const char *name, char *why, size_t size)
{
    bool read = p->now && (p->now->end == SNAPSHOT_WHOLE || p->now->end == SNAPSHOT_NOTHING);
    if (is_changing(p, why, size) || player_wait_or_fail(p, PLAYER_EFFECT_MS) == NEXT_WAIT)
        return NEXT_WAIT;
    if (read && !player_is_loading(p->now))
        return NEXT_STEP;
    snprintf(why, size, "%s and may have a button '%.40s'; for the key, write: press key %.40s",
             read ? "the page still loads" : "the window cannot be read completely", name, name);
    return player_wait_or_fail(p, PLAYER_CUT_MS);
}

/* Returns whether a radio button is on, or a tab is the only selected one: a press would change nothing. */
static bool is_chosen(const struct player *p, const struct element *e)
{
    if (!e || p->ref)
        return false;
    if (!strcmp(e->role, "radio button"))
        return player_is_on(e);
    bool chosen = !strcmp(e->role, "page tab") && state_in(e->states, STATE_SELECTED);
    for (const struct element *o = p->now->e; chosen && o < p->now->e + p->now->n; o++)
        chosen = o == e || o->parent != e->parent || !state_in(o->states, STATE_SELECTED);
    return chosen;
}

/* Selects a row without a reliable place, and opens it or its menu if the step asks for that. */
static enum player_next press_row(struct player *p, const struct element *e, struct buf *b, char *why,
                                  size_t size)
{
    enum plain_verb verb = p->steps.s[p->s.at].verb;
    enum player_next next = player_select_by_keys(p, e, b, why, size);
    if (next != NEXT_STEP || verb == PLAIN_PRESS)
        return next;
    p->s.keyed = false;
    player_keys(verb == PLAIN_DOUBLE_CLICK ? "Return" : "shift+F10", 1, b);
    return NEXT_ACTION;
}

static enum player_next press(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    enum player_next next;
    bool several;
    const struct element *e = player_find_target(p, RESOLVE_PRESS, &several, why, size);
    if (p->s.phase > p->s.keys) {
        p->s.verified = e && !strcmp(e->role, "radio button") && player_is_on(e);
        return NEXT_STEP;
    }
    if (s->verb == PLAIN_PRESS && is_chosen(p, e))
        return NEXT_STEP;
    if (e && e->trust == PLACE_DOUBTFUL && resolve_is_row(e) && !player_is_off(e))
        return press_row(p, e, b, why, size);
    if (s->verb == PLAIN_PRESS && player_goes_by_keys(p, e)) {
        p->s.focuses = resolve_is_field(e);
        next = player_focus_by_keys(p, e, b, why, size);
        return next == NEXT_STEP && !p->s.focuses ? player_press_focused(p, b) : next;
    }
    if (p->s.typing || (!e && !p->s.keys && !s->maybe_key && player_selects_by_typing(p)))
        return player_select_by_typing(p, b, why, size);
    if (!e && !several && !p->s.keys && s->maybe_key) {
        if (!p->s.compared) {
            p->s.compared = true;
            p->s.in_page = player_find_away(p);
            player_look(p);
        }
        if (p->s.in_page)
            return player_missing(p, why, size);
        if (is_button_word(s->what) && (next = wait_for_button(p, s->what, why, size)) != NEXT_STEP)
            return next;
        if (is_starting(p, why, size))
            return NEXT_WAIT;
        player_keys(s->what, 1, b);
        return NEXT_ACTION;
    }
    if (!(e = player_usable(p, e, &next, why, size)))
        return next;
    p->s.focuses = resolve_is_field(e) || resolve_is_row(e);
    p->s.by_group = resolve_acts_by_group(p->now, e);
    player_click(p, e, s->verb == PLAIN_RIGHT_CLICK ? "right" : "left", s->verb == PLAIN_DOUBLE_CLICK ? 2 : 1,
                 b);
    return NEXT_ACTION;
}

enum tick_state { TICK_OFF, TICK_ON, TICK_PARTLY };

static enum tick_state tick_of(const struct element *e)
{
    return state_in(e->states, STATE_INDETERMINATE) ? TICK_PARTLY : player_is_on(e) ? TICK_ON : TICK_OFF;
}

/* Clicks until the element has the state: a box with three states may pass another one on the way. */
static enum player_next tick(struct player *p, struct buf *b, char *why, size_t size)
{
    bool several;
    enum tick_state wanted = p->steps.s[p->s.at].verb == PLAIN_TICK ? TICK_ON : TICK_OFF, is;
    enum player_next next;
    const struct element *e = player_find_target(p, RESOLVE_TICK, &several, why, size), *box;
    if (e && !strcmp(e->role, "table cell") && (box = resolve_box(p->now, e)))
        e = box;
    bool by_keys = e && player_goes_by_keys(p, e);
    if (!by_keys && !(e = player_usable(p, e, &next, why, size)))
        return next;
    if ((is = tick_of(e)) == wanted)
        return NEXT_STEP;
    if (by_keys && p->s.phase == p->s.keys) {
        next = player_focus_by_keys(p, e, b, why, size);
        return next == NEXT_STEP ? player_press_focused(p, b) : next;
    }
    if (p->s.phase && (by_keys || (int)is == p->s.ticked || p->s.phase > TICK_PARTLY)) {
        static const char *const words[] = {"off", "on", "partly on"};
        snprintf(why, size, "'%.80s' is still %s after a click", p->steps.s[p->s.at].what, words[is]);
        return player_wait_or_fail(p, PLAYER_EFFECT_MS);
    }
    p->s.ticked = is;
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

/* Types into the element that has the keyboard.  If that is a field whose value can be read, the value must
 * change; a button takes no text. */
static enum player_next type(struct player *p, struct buf *b, char *why, size_t size)
{
    static const char *const buttons[] = {"push button",  "toggle button", "check box",
                                          "radio button", "link",          NULL};
    const struct plain_step *s = &p->steps.s[p->s.at];
    const struct element *e = focused(p->now);
    bool readable =
        e && resolve_is_field(e) && !element_is_password(e) && strlen(e->value) < PLAYER_VERIFIED_MAX;
    if (!p->s.phase) {
        if (is_starting(p, why, size))
            return NEXT_WAIT;
        if (e && text_listed(buttons, e->role)) {
            snprintf(why, size, "%s '%.80s' has the keyboard, which takes no text", e->role, resolve_name(e));
            return player_missing(p, why, size);
        }
        free(p->typed_over);
        p->typed_over = readable ? xstrdup(e->value) : NULL;
        p->typed_into = e ? e->ref : 0;
        player_call(b, "type", "text", s->value);
        return NEXT_ACTION;
    }
    if (!readable || !p->typed_over || e->ref != p->typed_into || !s->value[strspn(s->value, " \t\r\n")] ||
        strcmp(e->value, p->typed_over) != 0)
        return NEXT_STEP;
    snprintf(why, size, "%s '%.80s' has not changed after typing", e->role, resolve_name(e));
    return player_wait_or_fail(p, PLAYER_EFFECT_MS);
}

const struct element *player_text_of(const struct snapshot *s, const struct element *e)
{
    if (e && !strcmp(e->role, "combo box"))
        for (const struct element *at = e + 1; at < s->e + s->n && at->depth > e->depth; at++)
            if (resolve_is_field(at))
                return at;
    return e;
}

static bool same_number(const char *a, const char *b)
{
    char *m, *n;
    return strtod(a, &m) == strtod(b, &n) && m > a && n > b && !*m && !*n;
}

/* Returns whether a spin button has the number that was typed when it lost the keyboard: it shows the
 * number, or with a unit or grouped digits reports it. */
static bool keeps_number(const struct player *p, const struct element *e, const char *typed)
{
    char *end;
    strtod(e->value, &end);
    return p->s.left && (same_number(e->value, typed) || (p->s.counts && *end && player_has_taken(e, typed)));
}

/* Returns whether a number that was typed still has to be left: programs take it over, and may change it,
 * when the field loses the keyboard, or at Return. */
static bool is_to_be_left(const struct player *p, const struct element *e, const char *typed)
{
    const struct plain_step *next = p->s.at + 1 < p->steps.n ? &p->steps.s[p->s.at + 1] : NULL;
    if (p->s.left || !e || strcmp(e->role, "spin button") != 0)
        return false;
    if (next && (next->verb == PLAIN_KEYS || next->maybe_key))
        return strchr(next->what, '+');
    bool more = !next && p->source && !p->ended; /* its next step may be a key */
    return p->s.counts && !more && !p->ref && !player_has_taken(e, typed);
}

/* Returns whether a program would change a number to the nearest one that it allows.  Fields of pages keep
 * any. */
static bool is_out_of_range(const struct player *p, const struct element *e, const char *value, char *why,
                            size_t size)
{
    char *end;
    double v = strtod(value, &end);
    if (!e || !player_counts(e) || end == value || *end || (v >= e->least && v <= e->most) ||
        (!strcmp(e->role, "spin button") && resolve_page(p->now, e)))
        return false;
    snprintf(why, size, "%s '%.80s' takes numbers from %.6g to %.6g, not %.40s", e->role, resolve_name(e),
             e->least, e->most, value);
    return true;
}

static enum player_next enter(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    enum player_next next;
    bool several;
    if (!s->what)
        return type(p, b, why, size);
    const struct element *e = player_find_target(p, RESOLVE_FIELD, &several, why, size);
    if (!p->s.phase) {
        p->s.counts = e && player_counts(e) && !resolve_page(p->now, e);
        if (is_out_of_range(p, e, s->value, why, size))
            return NEXT_FAILED;
    }
    if (e && player_is_date(p->now, e) && (p->s.phase || player_usable(p, e, &next, why, size)))
        return player_enter_date(p, e, b, why, size);
    if (e && player_is_adjusted(e) && (p->s.phase || player_usable(p, e, &next, why, size)))
        return player_adjust(p, e, b, why, size);
    const struct element *field = player_text_of(p->now, e);
    if (p->s.phase == p->s.keys && player_goes_by_keys(p, field) && !player_is_closed_list(field)) {
        next = player_focus_by_keys(p, field, b, why, size);
        return next == NEXT_STEP ? player_write_focused(p, s->value, b) : next;
    }
    /* pages give another meaning to Home and End in spin buttons */
    bool over = e && !strcmp(e->role, "spin button") && resolve_page(p->now, e) && !p->secret;
    if (over && p->s.phase == p->s.keys + 1) {
        player_call(b, "type", "text", s->value);
        return NEXT_ACTION;
    }
    if (p->s.phase == p->s.keys) {
        if (!(e = player_usable(p, e, &next, why, size)))
            return next;
        if (over)
            player_click(p, e, "left", 3, b);
        else
            player_write(p, e, s->value, b);
        return NEXT_ACTION;
    }
    e = field;
    if (p->s.unsure && e && (element_is_password(e) || strlen(s->value) > PLAYER_VERIFIED_MAX)) {
        snprintf(why, size, "%s", p->failed);
        return NEXT_FAILED;
    }
    bool hidden = p->secret || (e && element_is_password(e)) || strlen(s->value) > PLAYER_VERIFIED_MAX;
    if (hidden || (e && (player_same_text(e->value, s->value) || keeps_number(p, e, s->value)))) {
        if (!is_to_be_left(p, e, s->value))
            return NEXT_STEP;
        p->s.left = true;
        player_keys("Tab", 1, b);
        return NEXT_ACTION;
    }
    if (e)
        snprintf(why, size, "field '%.80s' contains '%.80s' after typing", s->what, e->value);
    else
        snprintf(why, size, "field '%.80s' is gone after typing", s->what);
    bool unread = !e && (!p->now || p->now->end != SNAPSHOT_WHOLE); /* the program is busy */
    return player_wait_or_fail(p, unread ? PLAYER_CUT_MS : PLAYER_EFFECT_MS);
}

static enum player_next menu(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    enum player_next next;
    bool several;
    int level = p->s.phase - p->s.keys;
    if (level == s->levels)
        return NEXT_STEP;
    struct resolve_query q = {s->path[level], level ? RESOLVE_MENU_ITEM : RESOLVE_MENU, NULL, NULL, false};
    const struct element *e = player_find(p, &q, &several, why, size);
    if (several && !level) { /* twins in a tool bar: the menu bar comes first */
        const struct element *found[4];
        int n = resolve(p->now, &q, found, 4);
        for (int i = 0; i < n && !e; i++)
            if (!strcmp(found[i]->role, "menu"))
                e = found[i];
    }
    p->s.verified = e && !strcmp(e->role, "radio menu item") && player_is_on(e);
    bool by_keys = e && e->trust == PLACE_DOUBTFUL && !player_is_off(e);
    if (by_keys && !level && resolve_suits(e, RESOLVE_MENU)) {
        next = player_open_menu_by_keys(p, e, b, why, size);
        return next == NEXT_STEP ? menu(p, b, why, size) : next;
    }
    if (by_keys && level)
        return player_press_by_keys(p, e, b, why, size);
    if (!(e = player_usable(p, e, &next, why, size)))
        return next;
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

static enum player_next tab(struct player *p, struct buf *b, char *why, size_t size)
{
    enum player_next next;
    bool several;
    const struct element *e = player_find_target(p, RESOLVE_TAB, &several, why, size);
    if (p->s.phase > p->s.keys) {
        p->s.verified = e && state_in(e->states, STATE_SELECTED);
        return player_verify_selected(p, e, why, size);
    }
    if (is_chosen(p, e))
        return NEXT_STEP;
    if (e && e->trust == PLACE_DOUBTFUL && !player_is_off(e))
        return player_select_by_keys(p, e, b, why, size);
    if (!(e = player_usable(p, e, &next, why, size)))
        return next;
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

static enum player_next scroll(struct player *p, struct buf *b, char *why, size_t size)
{
    struct screen_rect view = screen_view(p->screen), area = view;
    bool several;
    const struct element *e = player_find_target(p, RESOLVE_ANY, &several, why, size);
    const struct element *pane = e && p->now ? resolve_hidden_by(p->now, e) : NULL;
    if (pane)
        area = pane->rect;
    if (several || (e && !pane && e->rect.y >= view.y && e->rect.y + e->rect.h <= view.y + view.h))
        return NEXT_STEP;
    if (p->s.phase >= PLAYER_SCROLLS)
        return NEXT_FAILED;
    buf_printf(
        b,
        "<tool_call>{\"name\": \"scroll\", \"arguments\": {\"x\": %d, \"y\": %d, \"direction\": \"%s\", "
        "\"amount\": 3}}</tool_call>",
        area.x + area.w / 2 - view.x, area.y + area.h / 2 - view.y, e && e->rect.y < area.y ? "up" : "down");
    return NEXT_ACTION;
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
    struct plain_step unused = {0};
    bool chosen = s->verb == PLAIN_CHOOSE && (player_whole_option(p) || player_choice(p, s, &unused));
    plain_step_free(&unused);
    if (chosen || (s->verb == PLAIN_CHOOSE && !s->in && player_list_with(p, s->what)))
        return true;
    if (s->verb == PLAIN_MENU || (s->verb == PLAIN_CHOOSE && s->in)) {
        struct resolve_query q = {s->verb == PLAIN_MENU ? s->path[0] : s->in,
                                  s->verb == PLAIN_MENU ? RESOLVE_MENU : RESOLVE_LIST, s->row, NULL, false};
        return player_find(p, &q, &several, why, sizeof why) || several;
    }
    bool named = s->what && s->verb != PLAIN_KEYS && s->verb != PLAIN_WAIT && !s->maybe_key &&
                 !(s->verb == PLAIN_CHECK && s->state == PLAIN_GONE);
    return !named || player_find_target(p, uses[s->verb], &several, why, sizeof why);
}

enum player_next player_step(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    switch (s->verb) {
    case PLAIN_TICK:
    case PLAIN_UNTICK:
        return tick(p, b, why, size);
    case PLAIN_CHOOSE:
        return player_choose(p, b, why, size);
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
        return player_condition(p, b, why, size);
    case PLAIN_KEYS:
    case PLAIN_CLOSE:
        if (p->s.phase)
            return NEXT_STEP;
        if (is_starting(p, why, size))
            return NEXT_WAIT;
        player_keys(s->verb == PLAIN_KEYS ? s->what : "alt+F4", s->verb == PLAIN_KEYS ? s->times : 1, b);
        return NEXT_ACTION;
    default:
        return press(p, b, why, size);
    }
}
