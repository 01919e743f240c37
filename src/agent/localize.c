/* localize.c - puts right where the elements are that a reply names: by what the model's own tower reads of
 * the newest screenshot (locate.h), if it has heads for that, or by asking a second model about it.
 *
 * The second is for a policy model that names elements well but points badly.  The localizer is asked the
 * dialect's grounding question and sampled greedily; its point replaces the one in the reply.  An element
 * that is not found is the model's mistake, which it is told of.
 */
#include "agent/private.h"

#include "actions/place.h"
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

enum { PLACE_TOKENS = 128 };

static bool names_a_place(const struct action *action)
{
    return (action->kind == ACT_CLICK || action->kind == ACT_TYPE) && *action->element;
}

static int ask_localizer(struct agent *a, const char *element, struct generated *g, struct err *e)
{
    const struct dialect *d = a->o->dialect;
    struct llm *m = a->o->localizer;
    char *inert = prompt_escape(element);
    struct buf question;
    buf_init(&question, 1 << 20);
    const struct llm_request r = {.goal = GOAL_GROUND,
                                  .sampling = {.temperature = 0, .top_p = 1, .max_tokens = PLACE_TOKENS},
                                  .cancel = screen_stop_flag(a->o->screen)};
    llm_set_cancel(m, r.cancel);
    enum chat_place place = d->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE;
    int rc = dialect_fill(d->ground, (const char *const[]){"target", inert, NULL}, &question, e);
    struct chat_part parts[3];
    if (rc == 0)
        rc = llm_ask(m, "", parts, llm_question(d, question.data, &a->step.frame, 1, parts), place, &r, g, e);
    if (rc == 0 && g->finish == FINISH_CANCELLED)
        rc = err_set(e, ERR_STOPPED, "stopped while an element was being localized");
    buf_free(&question);
    free(inert);
    return rc;
}

static int record_localized(struct agent *a, int index, const struct action *was, const struct action *is,
                            double ms, struct err *e)
{
    struct trace *t = a->o->trace;
    trace_begin(t, a->step.number, "localize");
    trace_int(t, "index", index);
    trace_text(t, "element", was->element);
    trace_bool(t, "found", is != NULL);
    if (was->x != ACTION_ABSENT) {
        trace_int(t, "said_x", was->x);
        trace_int(t, "said_y", was->y);
    }
    if (is) {
        trace_int(t, "x", is->x);
        trace_int(t, "y", is->y);
    }
    trace_number(t, "ms", ms);
    return trace_end(t, e);
}

static int localize(struct agent *a, int index, struct err *e)
{
    struct action *action = &a->reply.step.actions[index], was = *action; /* borrows its texts */
    struct generated g = {0};
    struct err why = ERR_INIT;
    struct place at;
    int64_t start = clock_ns();
    if (ask_localizer(a, action->element, &g, e)) {
        generated_free(&g);
        return -1;
    }
    const struct dialect *d = a->o->dialect;
    const struct image *frame = &a->step.frame;
    bool read = g.finish != FINISH_LENGTH && !dialect_read_place(d, g.text.data, g.text.len, &at, &why);
    bool found =
        read && !at.absent && !dialect_place_pixel(d, &at, frame->w, frame->h, &action->x, &action->y, &why);
    if (!found) {
        a->reply.fault = FAULT_RANGE;
        err_set(&a->reply.why, ERR_FAILED, "'%.200s' was not found on the screen%s%s", action->element,
                *why.text ? ": " : "", why.text);
    }
    generated_free(&g);
    double ms = clock_ms_since(start);
    a->step.ms[PHASE_WRITE] += ms;
    return record_localized(a, index, &was, found ? action : NULL, ms, e);
}

/* In place of a press of a button that says something else: what was to be pressed is not there. */
static int say_missing(struct agent *a, struct action *action, double ms, struct err *e)
{
    struct action missing = {.kind = ACT_INFEASIBLE,
                             .x = ACTION_ABSENT,
                             .y = ACTION_ABSENT,
                             .x2 = ACTION_ABSENT,
                             .y2 = ACTION_ABSENT,
                             .text = xstrdup(action->element)};
    int rc = record_localized(a, (int)(action - a->reply.step.actions), action, NULL, ms, e);
    action_free(action);
    *action = missing;
    return rc;
}

/* What a small model types is held to the task. */
static int copy_from_task(struct agent *a, int index, struct err *e)
{
    struct action *action = &a->reply.step.actions[index];
    char *copied =
        action->kind == ACT_TYPE && action->text ? agent_copied_text(action->text, a->run.task) : NULL;
    if (!copied)
        return 0;
    trace_begin(a->o->trace, a->step.number, "copy");
    trace_int(a->o->trace, "index", index);
    trace_text(a->o->trace, "said", action->text);
    trace_text(a->o->trace, "text", copied);
    free(action->text);
    action->text = copied;
    return trace_end(a->o->trace, e);
}

static int locate_by_name(struct agent *a, int index, struct err *e)
{
    struct action *action = &a->reply.step.actions[index], was = *action; /* borrows its texts */
    int64_t start = clock_ns();
    double x = action->x + 0.5, y = action->y + 0.5;
    enum locate_for what = action->kind == ACT_TYPE ? LOCATE_TYPE : LOCATE_CLICK;
    enum located found;
    int rc = llm_locate(a->o->llm, &a->step.frame, action->element, what, &x, &y, &found, e);
    double ms = clock_ms_since(start);
    a->step.ms[PHASE_WRITE] += ms;
    if (rc || found == LOCATED_THERE)
        return rc;
    if (found == LOCATED_NOWHERE)
        return say_missing(a, action, ms, e);
    action->x = (int32_t)floor(x);
    action->y = (int32_t)floor(y);
    return record_localized(a, index, &was, action, ms, e);
}

/* Refuses a place in the padding of the view with a message to the model.  A recorded screen has all of its
 * pixels. */
static void refuse_hidden_places(struct agent *a)
{
    for (int i = 0; !a->step.from && a->reply.fault == FAULT_NONE && i < a->reply.step.nactions; i++) {
        const struct action *action = &a->reply.step.actions[i];
        const int32_t at[2][2] = {{action->x, action->y}, {action->x2, action->y2}};
        for (int k = 0; k < 2; k++)
            if (at[k][0] != ACTION_ABSENT && !screen_shows(a->o->screen, at[k][0], at[k][1])) {
                a->reply.fault = FAULT_RANGE;
                err_set(&a->reply.why, ERR_FAILED,
                        "%d,%d is outside the window: the picture shows nothing there; nothing was done",
                        at[k][0], at[k][1]);
            }
    }
}

int agent_localize(struct agent *a, struct err *e)
{
    int rc = 0;
    for (int i = 0; rc == 0 && a->reply.fault == FAULT_NONE && i < a->reply.step.nactions; i++) {
        const struct action *action = &a->reply.step.actions[i];
        if (a->o->localizer && names_a_place(action))
            rc = localize(a, i, e);
        else if (llm_is_located(a->o->llm)) {
            rc = copy_from_task(a, i, e);
            if (rc == 0 && names_a_place(action) && action->x != ACTION_ABSENT)
                rc = locate_by_name(a, i, e);
        }
    }
    refuse_hidden_places(a);
    return rc;
}
