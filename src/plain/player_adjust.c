/* player_adjust.c - sets sliders, dials, and spin buttons that take no text, with the arrow keys.
 *
 * The first key shows the step of the value and its direction; the others are counted.
 * Each effect is read before the next keys.  If the steps miss the number, a spin button is typed into, since
 * those of Qt take text without reporting that, and a slider is set to its least number first: the click that
 * gave it the keyboard may have moved it. */
#include "plain/player_impl.h"

#include "atspi/roles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_AT_ONCE = 20 /* of the action */, ROUNDS_MAX = 40, SPIN_KEYS = 100 /* longer ways are typed */ };

enum { WRITING_SELECTED = 1 /* the old number was selected */, WRITING_TYPED };

static bool is_same(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (1 + fabs(a));
}

static bool is_spin(const struct element *e)
{
    return !strcmp(e->role, "spin button");
}

bool player_counts(const struct element *e)
{
    if (e->least >= e->most || !isfinite(e->number))
        return false;
    const char *at = e->value + strcspn(e->value, "+-0123456789"); /* after a currency */
    char *end;
    double shown = strtod(at, &end);
    bool same = end > at && fabs(shown - e->number) <= 0.005 + 1e-6 * fabs(shown);
    return same && (!*end || e->number != 0); /* 0 % is 0 in all units */
}

bool player_has_taken(const struct element *e, const char *number)
{
    char *end;
    double v = strtod(number, &end);
    return end > number && !*end && is_same(e->number, v);
}

bool player_is_adjusted(const struct element *e)
{
    return !strcmp(e->role, "slider") || !strcmp(e->role, "dial") ||
           (is_spin(e) && !state_in(e->states, STATE_EDITABLE));
}

/* Returns the number of an element, NAN: unknown.  A text may have a unit, but its digits may be grouped. */
static double number_of(const struct element *e)
{
    if (e->least < e->most && isfinite(e->number))
        return e->number;
    char *end;
    double v = strtod(e->value, &end);
    return end == e->value || end[strcspn(end, "0123456789")] ? NAN : v;
}

static enum player_next press_arrow(struct player *p, const struct element *e, bool more, int times,
                                    double is, struct buf *b)
{
    p->s.was = is;
    p->s.times = more ? times : -times;
    player_keys(is_spin(e) ? more ? "Up" : "Down" : more ? "Right" : "Left", times, b);
    return NEXT_ACTION;
}

/* Returns how many keys lead from one number to another, NAN: none do. */
static double keys_between(const struct player *p, double from, double to)
{
    double n = (to - from) / p->s.unit;
    return fabs(n - round(n)) > 0.01 ? NAN : round(n);
}

static enum player_next fail_by_steps(const struct player *p, const struct element *e, double is, char *why,
                                      size_t size)
{
    snprintf(why, size, "%s '%.80s' goes from %.6g in steps of %.6g", e->role, resolve_name(e), is,
             fabs(p->s.unit));
    return NEXT_FAILED;
}

/* Types the number, and waits until it is taken over, at the latest when the element loses the keyboard. */
static enum player_next write_number(struct player *p, const struct element *e, double is, struct buf *b,
                                     char *why, size_t size)
{
    const char *text = p->steps.s[p->s.at].value;
    if (p->s.writing == WRITING_SELECTED) {
        p->s.writing = WRITING_TYPED;
        player_call(b, "type", "text", text);
        return NEXT_ACTION;
    }
    snprintf(why, size, "%s '%.80s' is %.6g after typing %.40s", e->role, resolve_name(e), is, text);
    enum player_next next = player_wait_or_fail(p, PLAYER_EFFECT_MS);
    if (next == NEXT_WAIT || p->s.left)
        return next;
    p->s.left = true;
    player_keys("Tab", 1, b);
    return NEXT_ACTION;
}

/* Sets the number in another way, because the arrow keys miss it. */
static enum player_next reach_otherwise(struct player *p, const struct element *e, double is, double wanted,
                                        struct buf *b, char *why, size_t size)
{
    if (is_spin(e) && !resolve_page(p->now, e)) {
        p->s.writing = WRITING_SELECTED; /* without the unit, which writing into a field would miss */
        player_keys("ctrl+a", 1, b);
        return NEXT_ACTION;
    }
    if (!is_spin(e) && !p->s.home && e->least < e->most && !isnan(keys_between(p, e->least, wanted))) {
        p->s.home = true;
        p->s.was = is;
        p->s.times = 0;
        player_keys("Home", 1, b);
        return NEXT_ACTION;
    }
    return fail_by_steps(p, e, is, why, size);
}

enum player_next player_adjust(struct player *p, const struct element *e, struct buf *b, char *why,
                               size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    char *end;
    double wanted = strtod(s->value, &end), is = number_of(e);
    if (end == s->value || *end || isnan(is)) {
        snprintf(why, size, "%s '%.80s' %s", e->role, resolve_name(e),
                 isnan(is) ? "reports no value" : "takes only a number");
        return NEXT_FAILED;
    }
    if (is_same(is, wanted))
        return NEXT_STEP;
    if (p->s.writing)
        return write_number(p, e, is, b, why, size);
    if (!p->s.phase) { /* the keyboard */
        player_click(p, e, "left", 1, b);
        return NEXT_ACTION;
    }
    if (!p->s.times && !p->s.home)
        return press_arrow(p, e, true, 1, is, b);
    double moved = is - p->s.was, expected = p->s.unit * p->s.times;
    bool known = p->s.unit && p->s.times; /* not after Home */
    snprintf(why, size, "%s '%.80s' is %.6g after %d keys", e->role, resolve_name(e), is, abs(p->s.times));
    if ((known ? !is_same(moved, expected) : is_same(moved, 0)) &&
        player_wait_or_fail(p, PLAYER_EFFECT_MS) == NEXT_WAIT)
        return NEXT_WAIT;
    if (is_same(moved, 0) && !p->s.times)
        return fail_by_steps(p, e, is, why, size);
    if (is_same(moved, 0)) /* it may be at its end */
        return !p->s.unit && p->s.times > 0 ? press_arrow(p, e, false, 1, is, b) : NEXT_FAILED;
    if (!p->s.unit)
        p->s.unit = moved / p->s.times;
    double n = keys_between(p, is, wanted);
    if (isnan(n) || (is_spin(e) && fabs(n) > SPIN_KEYS && !resolve_page(p->now, e)))
        return reach_otherwise(p, e, is, wanted, b, why, size);
    return p->s.phase < ROUNDS_MAX ? press_arrow(p, e, n > 0, (int)fmin(fabs(n), KEYS_AT_ONCE), is, b)
                                   : NEXT_FAILED;
}
