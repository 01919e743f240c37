/* player_ref.c - one deed on an element that the caller names by its ref.
 *
 * Pressing, filling, ticking and choosing are plain steps (player_step.c) whose element is found by the ref
 * instead of its name.  Two deeds exist only here: focusing a field, and scrolling an element into sight. */
#include "plain/player_impl.h"

#include "atspi/refs.h"
#include "atspi/roles.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct player_ref {
    struct player p;
    enum player_deed deed;
    struct player_state before; /* the last reply */
    int x, y;                   /* place of the element before the last turn of the wheel */
    int unmoved;                /* turns in a row that did not move it */
};

enum { UNMOVED_MAX = 3, WHEEL_CLICKS = 3 };

static const struct {
    enum plain_verb verb;
    enum resolve_for use; /* the roles that the deed is possible with */
    const char *instead;  /* advice for other roles */
} deeds[PLAYER_DEEDS] = {
    [PLAYER_DO_PRESS] = {PLAIN_PRESS, RESOLVE_ANY, ""},
    [PLAYER_DO_DOUBLE_PRESS] = {PLAIN_DOUBLE_CLICK, RESOLVE_ANY, ""},
    [PLAYER_DO_RIGHT_PRESS] = {PLAIN_RIGHT_CLICK, RESOLVE_ANY, ""},
    [PLAYER_DO_FILL] = {PLAIN_ENTER, RESOLVE_FIELD, "cannot be filled"},
    [PLAYER_DO_CHOOSE] = {PLAIN_CHOOSE, RESOLVE_LIST, "is not a list; press an option itself"},
    [PLAYER_DO_TICK] = {PLAIN_TICK, RESOLVE_TICK, "cannot be ticked; press it"},
    [PLAYER_DO_UNTICK] = {PLAIN_UNTICK, RESOLVE_TICK, "cannot be unticked; press it"},
    [PLAYER_DO_FOCUS] = {PLAIN_PRESS, RESOLVE_FIELD, "is not a field; only fields can be focused"},
    [PLAYER_DO_SCROLL] = {PLAIN_SCROLL, RESOLVE_ANY, ""},
};

/* Returns whether an element shows one of several options and takes no text. */
static bool is_choice(const struct element *e)
{
    return !strcmp(e->role, "combo box") && !state_in(e->states, STATE_EDITABLE);
}

/* Returns why a deed does not suit an element, NULL: it does. */
static const char *unsuited(enum player_deed deed, const struct element *e)
{
    bool typed = deed == PLAYER_DO_FILL || deed == PLAYER_DO_FOCUS;
    if (!resolve_suits(e, deeds[deed].use))
        return deeds[deed].instead;
    if (typed && is_choice(e))
        return "is a list; use choose";
    if (deed != PLAYER_DO_SCROLL && (e->trust == PLACE_NONE || e->rect.w <= 0 || e->rect.h <= 0))
        return "has no place on the screen";
    return NULL;
}

struct player_ref *player_ref_open(enum player_deed deed, const struct element *on, const char *value,
                                   struct screen *screen, struct err *e)
{
    const char *why = unsuited(deed, on);
    if (why) {
        struct buf what;
        buf_init(&what, 512);
        refs_describe(on, &what);
        err_set(e, ERR_USAGE, "e%u %s %s", on->ref, what.data, why);
        buf_free(&what);
        return NULL;
    }
    struct player_ref *r = xcalloc(1, sizeof *r);
    struct plain_step *s = xcalloc(1, sizeof *s);
    const char *name = *resolve_name(on) ? resolve_name(on) : on->role;
    bool choice = deed == PLAYER_DO_CHOOSE;
    *s = (struct plain_step){.verb = deeds[deed].verb, .what = xstrdup(choice ? value : name), .times = 1};
    s->in = choice ? xstrdup(name) : NULL;
    s->value = deed == PLAYER_DO_FILL ? xstrdup(value) : NULL;
    r->deed = deed;
    r->p.steps = (struct plain_steps){s, 1};
    r->p.screen = screen;
    r->p.ref = on->ref;
    r->p.secret = s->value && strstr(s->value, "{{");
    return r;
}

void player_ref_free(struct player_ref *r)
{
    if (!r)
        return;
    plain_free(&r->p.steps);
    free(r);
}

/* ---- scrolling and focusing ---------------------------------------------------------------------------- */

/* Turns the wheel over the element that hides the target, until the middle of the target is in sight. */
static enum player_next scroll_to(struct player_ref *r, const struct element *e, struct buf *b, char *why,
                                  size_t size)
{
    const struct element *clip = resolve_hidden_by(r->p.now, e);
    struct screen_rect view = screen_view(r->p.screen);
    if (!clip)
        return NEXT_STEP;
    int middle = e->rect.y + e->rect.h / 2, x = e->rect.x + e->rect.w / 2;
    bool up = middle < clip->rect.y, down = middle >= clip->rect.y + clip->rect.h;
    const char *direction = up ? "up" : down ? "down" : x < clip->rect.x ? "left" : "right";
    r->unmoved = r->p.s.phase && r->x == e->rect.x && r->y == e->rect.y ? r->unmoved + 1 : 0;
    r->x = e->rect.x;
    r->y = e->rect.y;
    if (r->unmoved >= UNMOVED_MAX || r->p.s.phase >= PLAYER_SCROLLS) {
        snprintf(why, size, "'%.80s' is still out of sight after %d turns of the wheel", r->p.steps.s[0].what,
                 r->p.s.phase);
        return NEXT_FAILED;
    }
    buf_printf(b,
               "<tool_call>{\"name\": \"scroll\", \"arguments\": {\"x\": %d, \"y\": %d, \"direction\": "
               "\"%s\", \"amount\": %d}}</tool_call>",
               clip->rect.x + clip->rect.w / 2 - view.x, clip->rect.y + clip->rect.h / 2 - view.y, direction,
               WHEEL_CLICKS);
    return NEXT_ACTION;
}

/* Returns whether an element or one below it has the keyboard. */
static bool has_focus(const struct snapshot *s, const struct element *e)
{
    for (const struct element *at = e; at < s->e + s->n && (at == e || at->depth > e->depth); at++)
        if (state_in(at->states, STATE_FOCUSED))
            return true;
    return false;
}

static enum player_next focus(struct player_ref *r, const struct element *e, struct buf *b, char *why,
                              size_t size)
{
    if (has_focus(r->p.now, e))
        return NEXT_STEP;
    if (!r->p.s.phase)
        return player_step(&r->p, b, why, size); /* a click */
    r->p.s.since = r->p.s.since ? r->p.s.since : clock_ns();
    snprintf(why, size, "'%.80s' does not report the keyboard focus after a click", r->p.steps.s[0].what);
    return clock_ms_since(r->p.s.since) < PLAYER_EFFECT_MS ? NEXT_WAIT : NEXT_FAILED;
}

/* ---- the deed ------------------------------------------------------------------------------------------ */

static enum player_next next(struct player_ref *r, struct buf *b, char *why, size_t size)
{
    const struct element *e = refs_element(r->p.now, r->p.ref);
    bool touches = r->deed != PLAYER_DO_SCROLL && !r->p.s.phase;
    if (touches && e && resolve_hidden_by(r->p.now, e)) {
        snprintf(why, size, "'%.80s' is scrolled out of sight; use scroll_to first", r->p.steps.s[0].what);
        return NEXT_FAILED;
    }
    if (r->deed != PLAYER_DO_SCROLL && r->deed != PLAYER_DO_FOCUS)
        return player_step(&r->p, b, why, size);
    if (!e) {
        snprintf(why, size, "'%.80s' is gone", r->p.steps.s[0].what);
        return NEXT_FAILED;
    }
    return r->deed == PLAYER_DO_SCROLL ? scroll_to(r, e, b, why, size) : focus(r, e, b, why, size);
}

enum player_answer player_ref_next(struct player_ref *r, const struct snapshot *now, struct buf *b, char *why,
                                   size_t size)
{
    r->p.now = now;
    r->before = r->p.s;
    switch (next(r, b, why, size)) {
    case NEXT_ACTION:
        r->p.s.phase++;
        r->p.s.acted = true;
        r->p.s.since = 0;
        return PLAYER_REPLIES;
    case NEXT_WAIT:
        return PLAYER_WAITS;
    case NEXT_STEP:
        return PLAYER_IS_DONE;
    default:
        return PLAYER_GIVES_UP;
    }
}

void player_ref_again(struct player_ref *r)
{
    r->p.s = r->before;
}
