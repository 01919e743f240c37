/* type.c - performs actions that passed the gate; typing a secret is done in parts:
 *
 *     capture | click | check the focus | type with keys only | capture | Enter
 *
 * The difference between the captures locates the field (redact.h).
 */
#include "gate/gate_impl.h"

#include <X11/keysym.h>

enum { FOCUS_MS = 120 }; /* until a click has moved the focus */

struct typing {
    struct gate *g;
    const struct action *a;
    const struct view_transform *transform;
    struct exec_result *r;
    struct err *e;
};

/* Executes a part of the action. */
static enum action_fault execute_part(const struct typing *t, const struct action *a)
{
    struct exec_result one = {0};
    enum action_fault f = action_execute(t->g->screen, a, t->transform, &one, t->e);
    t->r->events += one.events;
    t->r->ms += one.ms;
    return f;
}

static enum action_fault wait_ms(const struct typing *t, int ms)
{
    return screen_wait(t->g->screen, ms, t->e) ? FAULT_STOPPED : FAULT_NONE;
}

/* Clicks the place, if there is one; FAULT_FOCUS when another window than expected has the focus. */
static enum action_fault focus_target(const struct typing *t, struct screen_window *w)
{
    enum action_fault f = FAULT_NONE;
    if (t->a->x != ACTION_ABSENT && t->a->y != ACTION_ABSENT) {
        struct action click = {.kind = ACT_CLICK, .x = t->a->x, .y = t->a->y, .button = 1, .count = 1};
        f = execute_part(t, &click);
        f = f ? f : wait_ms(t, FOCUS_MS);
    }
    if (f)
        return f;
    if (screen_focused_window(t->g->screen, w))
        return err_set(t->e, ERR_ENV, "display '%s' was lost", screen_name(t->g->screen)), FAULT_X11;
    if (w->id == t->g->window)
        return FAULT_NONE;
    err_set(t->e, ERR_FAILED, "the secret was not typed: another window has the keyboard");
    return FAULT_FOCUS;
}

static enum action_fault type_filled(const struct typing *t)
{
    char *filled = secrets_fill(t->g->o.secrets, t->a->text);
    struct action type = {.kind = ACT_TYPE, .text = filled, .overwrite = t->a->overwrite, .secret = true};
    type.x = type.y = ACTION_ABSENT;
    enum action_fault f = execute_part(t, &type);
    secrets_free_filled(filled);
    return f;
}

/* Enter comes last: the second capture must still show the field. */
static enum action_fault type_secret(const struct typing *t)
{
    struct gate *g = t->g;
    struct screen_window w;
    if (g->redact && redact_before(g->redact, t->e))
        return FAULT_X11;
    enum action_fault f = focus_target(t, &w);
    if (f)
        return f;
    f = type_filled(t);
    if (g->redact) { /* also when typing failed half-way */
        struct err late = ERR_INIT;
        const struct policy_target *at = &g->subject.s.targets[0];
        if (redact_after(g->redact, &w, at->placed ? at->x : -1, at->y, &late) && !f) {
            *t->e = late;
            return FAULT_X11;
        }
        if (t->a->press_enter)
            redact_seal(g->redact);
    }
    if (f || !t->a->press_enter)
        return f;
    struct action enter = {.kind = ACT_KEY, .keys = {XK_Return}, .nkeys = 1, .count = 1};
    enter.x = enter.y = ACTION_ABSENT;
    return execute_part(t, &enter);
}

/* Other actions change more than the field that a secret was typed into. */
static enum action_fault execute(struct gate *g, const struct action *a,
                                 const struct view_transform *transform, struct exec_result *r, struct err *e)
{
    bool harmless =
        a->kind == ACT_WAIT || a->kind == ACT_OBSERVE || a->kind == ACT_PLAN || a->kind == ACT_MOVE;
    if (g->redact && !harmless)
        redact_seal(g->redact);
    return action_execute(g->screen, a, transform, r, e);
}

enum action_fault gate_execute(struct gate *g, const struct action *a, const struct view_transform *transform,
                               struct exec_result *r, struct err *e)
{
    const char *names[SECRETS_MAX];
    if (a->kind != ACT_TYPE || !a->text || !secrets_find_names(g->o.secrets, a->text, names))
        return execute(g, a, transform, r, e);
    *r = (struct exec_result){0};
    struct typing t = {g, a, transform, r, e};
    return type_secret(&t);
}
