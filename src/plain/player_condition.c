/* player_condition.c - conditions that steps wait for or check, and whether they confirm earlier presses. */
#include "plain/player_impl.h"

#include "atspi/roles.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

bool player_same_text(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " \t\r\n");
        b += strspn(b, " \t\r\n");
        if (*a != *b || !*a)
            return *a == *b;
    }
}

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
    return player_is_on(box ? box : e);
}

/* Returns whether the value of an element is, or contains, that of a step. */
static bool value_holds(const struct player *p, const struct plain_step *s, const struct element *e,
                        char *why, size_t size)
{
    const char *text = player_is_closed_list(e)           ? player_shown_choice(e, s->what)
                       : *e->value || resolve_is_field(e) ? e->value
                                                          : resolve_name(e);
    if (p->secret)
        snprintf(why, size, "'%.80s' has another value", s->what);
    else
        snprintf(why, size, "'%.80s' contains '%.80s'", s->what, text);
    if (s->state == PLAIN_EQUALS && player_is_date(p->now, e))
        return player_date_is(p->now, e, s->value);
    return s->state == PLAIN_EQUALS ? player_same_text(text, s->value) : strstr(text, s->value) != NULL;
}

/* Returns whether the program of the focused window describes that window, or no window has the focus: then
 * the window manager gives it to a window of one pixel. */
static bool front_is_described(struct player *p)
{
    struct screen_window front;
    if (!p->screen || screen_focused_window(p->screen, &front) != 0 || !front.id || front.rect.w <= 1 ||
        front.rect.h <= 1)
        return true;
    for (int i = 0; i < p->now->n; i++) {
        const struct element *e = &p->now->e[i];
        bool here = e->window ? e->window == front.id : state_in(e->states, STATE_ACTIVE);
        if (here && (e->parent >= 0 || (i + 1 < p->now->n && p->now->e[i + 1].parent == i)))
            return true;
    }
    return false;
}

/* Returns whether the condition of a step holds; otherwise the reason is in why. */
static bool holds(struct player *p, const struct plain_step *s, char *why, size_t size)
{
    bool several, value = s->state == PLAIN_EQUALS || s->state == PLAIN_CONTAINS;
    bool ticked = s->state == PLAIN_TICKED || s->state == PLAIN_UNTICKED;
    enum resolve_for use = value ? RESOLVE_FIELD : ticked ? RESOLVE_TICK : RESOLVE_ANY;
    const struct element *e = player_find_target(p, use, &several, why, size);
    if (value && !e && !several)
        e = player_find_target(p, RESOLVE_ANY, &several, why, size);
    bool shown = e || several || is_window(p, s->what);
    if (s->state == PLAIN_SHOWN)
        return shown;
    if (s->state == PLAIN_GONE) {
        bool whole = p->now && (p->now->end == SNAPSHOT_WHOLE || p->now->end == SNAPSHOT_NOTHING) &&
                     front_is_described(p);
        snprintf(why, size, "'%.80s' is %s", s->what,
                 shown ? "still on the screen or in the page"
                       : "possibly in a window "
                         "that was not read");
        return whole && !shown;
    }
    if (!e)
        return false;
    if (value)
        return value_holds(p, s, e, why, size);
    bool on = ticked ? is_ticked(p, e) : player_is_off(e);
    if (ticked && state_in(e->states, STATE_INDETERMINATE)) {
        snprintf(why, size, "'%.80s' is partly ticked", s->what);
        return false;
    }
    snprintf(why, size, "'%.80s' is %s%s", s->what, on ? "" : "not ", ticked ? "ticked" : "disabled");
    return on == (s->state == PLAIN_TICKED || s->state == PLAIN_DISABLED);
}

enum player_next player_condition(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    bool yes = !p->s.typing && holds(p, s, why, size);
    if ((!yes || s->state == PLAIN_GONE) && (p->s.typing || player_selects_by_typing(p)))
        return player_select_by_typing(p, b, why, size);
    if (yes && (s->state != PLAIN_GONE || !player_shows_directory(p, s)))
        return NEXT_STEP;
    if (p->blame == PLAYER_NOT_FOUND && (s->state == PLAIN_SHOWN || s->state == PLAIN_GONE))
        p->blame = PLAYER_NOT_DONE;
    if (s->verb != PLAIN_WAIT)
        return player_wait_or_fail(p, PLAYER_PATIENCE_MS);
    return player_still_waits(p) ? NEXT_WAIT : NEXT_FAILED;
}

/* ---- confirmed presses --------------------------------------------------------------------------------- */

bool player_asks(const struct plain_step *s)
{
    return s->verb == PLAIN_WAIT || s->verb == PLAIN_CHECK;
}

bool player_may_be_idle(const struct plain_step *s)
{
    return s->verb <= PLAIN_RIGHT_CLICK || s->verb == PLAIN_CHOOSE;
}

/* Counts the elements and windows that the name of the current step means, also those out of sight. */
static int count_meant(const struct player *p)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    const struct element *found[16];
    struct resolve_query q = {s->what, RESOLVE_ANY, s->row, NULL, true}, whole = q;
    whole.name = s->whole;
    int n = resolve(p->now, &q, found, 16);
    n = n || !whole.name ? n : resolve(p->now, &whole, found, 16);
    return n + is_window(p, s->what);
}

/* Weighs the condition of the current step, which was not awaited yet. Returns 0 if it does not hold. If it
 * does, returns the number of elements of the name that shall be shown; for other conditions, or if the
 * window could not be read, INT_MAX. */
static int weigh(struct player *p)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    char unused[ERR_TEXT];
    if (!p->now || p->now->end != SNAPSHOT_WHOLE)
        return INT_MAX;
    if (s->state == PLAIN_SHOWN)
        return count_meant(p);
    bool held = s->state == PLAIN_GONE ? !count_meant(p) : holds(p, s, unused, sizeof unused);
    return held ? INT_MAX : 0;
}

void player_weigh_conditions(struct player *p)
{
    const struct player_state current = p->s;
    const struct resolve_query sought = p->sought;
    const uint32_t below = p->below;
    const enum player_end blame = p->blame;
    p->weights = xrealloc(p->weights, (size_t)p->steps.n + 1, sizeof *p->weights);
    for (int i = p->n_weights = current.at + 1; i < p->steps.n; i++) {
        p->weights[i] = INT_MAX;
        p->n_weights = i + 1;
        if (!player_asks(&p->steps.s[i]))
            continue;
        p->s = (struct player_state){.at = i};
        p->weights[i] = weigh(p);
    }
    p->s = current;
    p->sought = sought;
    p->below = below;
    p->blame = blame;
}

void player_look_ahead(struct player *p)
{
    bool all = p->s.all, any = false;
    p->n_weights = 0;
    for (int i = p->s.at + 1; i < p->steps.n; i++)
        any = any || player_asks(&p->steps.s[i]);
    if (!any)
        return;
    p->s.all = true;
    player_look(p);
    p->s.all = all;
    player_weigh_conditions(p);
}

bool player_confirms(const struct player *p)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    if (!player_asks(s) || p->s.at >= p->n_weights || !p->now)
        return false;
    return p->weights[p->s.at] < (s->state == PLAIN_SHOWN ? count_meant(p) : INT_MAX);
}
