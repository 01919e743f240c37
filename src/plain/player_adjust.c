/* player_adjust.c - sets sliders, and spin buttons that take no text, with the arrow keys.
 *
 * The first key shows the step of the value and its direction; the others are counted.
 * Each effect is read before the next keys. */
#include "plain/player_impl.h"

#include "atspi/roles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_AT_ONCE = 20 /* of the action */, ROUNDS_MAX = 40 };

static bool is_same(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (1 + fabs(a));
}

bool player_is_adjusted(const struct element *e)
{
    return !strcmp(e->role, "slider") ||
           (!strcmp(e->role, "spin button") && !state_in(e->states, STATE_EDITABLE));
}

static enum player_next press_arrow(struct player *p, const struct element *e, bool more, int times,
                                    double is, struct buf *b)
{
    bool slider = !strcmp(e->role, "slider");
    p->s.was = is;
    p->s.times = more ? times : -times;
    player_keys(slider ? more ? "Right" : "Left" : more ? "Up" : "Down", times, b);
    return NEXT_ACTION;
}

enum player_next player_adjust(struct player *p, const struct element *e, struct buf *b, char *why,
                               size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    char *end;
    double wanted = strtod(s->value, &end), is = strtod(e->value, NULL);
    if (end == s->value || *end || !*e->value) {
        snprintf(why, size, "%s '%.80s' %s", e->role, resolve_name(e),
                 *e->value ? "takes only a number" : "reports no value");
        return NEXT_FAILED;
    }
    if (is_same(is, wanted))
        return NEXT_STEP;
    if (!p->s.phase) { /* the keyboard */
        player_click(p, e, "left", 1, b);
        return NEXT_ACTION;
    }
    if (!p->s.times)
        return press_arrow(p, e, true, 1, is, b);
    double moved = is - p->s.was, expected = p->s.unit * p->s.times;
    snprintf(why, size, "%s '%.80s' is %.6g after %d keys", e->role, resolve_name(e), is, abs(p->s.times));
    if ((!p->s.unit ? is_same(moved, 0) : !is_same(moved, expected)) &&
        player_wait_or_fail(p, PLAYER_EFFECT_MS) == NEXT_WAIT)
        return NEXT_WAIT;
    if (is_same(moved, 0)) /* it may be at its end */
        return !p->s.unit && p->s.times > 0 ? press_arrow(p, e, false, 1, is, b) : NEXT_FAILED;
    if (!p->s.unit)
        p->s.unit = moved / p->s.times;
    double n = (wanted - is) / p->s.unit;
    if (fabs(n - round(n)) > 0.01) {
        snprintf(why, size, "%s '%.80s' goes from %.6g in steps of %.6g", e->role, resolve_name(e), is,
                 fabs(p->s.unit));
        return NEXT_FAILED;
    }
    int times = (int)fmin(fabs(round(n)), KEYS_AT_ONCE);
    return p->s.phase < ROUNDS_MAX ? press_arrow(p, e, n > 0, times, is, b) : NEXT_FAILED;
}
