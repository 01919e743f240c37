/* localize.c - corrects the positions of the elements that a reply names: with the model's assist
 * (assist.h), or with a second model, the localizer.
 *
 * A localizer is for models that name elements well but locate them badly. It reads the dialect's grounding
 * question and is sampled greedily; its point replaces the one in the reply. If it does not find the
 * element, the model gets a message.
 */
#include "agent/private.h"
#include "llm/assist.h"

#include "actions/place.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { PLACE_TOKENS = 128 };

static bool names_a_place(const struct action *action)
{
    return (action_is(action->kind, ACTION_CLICKS) || action_is(action->kind, ACTION_TYPES)) &&
           *action->element;
}

static int ask_localizer(struct agent *a, const char *element, struct generated *g, struct err *e)
{
    const struct dialect *d = a->o->dialect;
    struct llm *m = a->o->localizer;
    autofree char *inert = prompt_escape(element);
    autobuf question = buf_of(1 << 20);
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
    return rc;
}

/* Records a localization. is: the action with its new position; NULL: the element was not found. */
static int record_localized(struct agent *a, int index, const struct action *was, const struct action *is,
                            double ms, struct err *e)
{
    char from[32], to[32];
    snprintf(from, sizeof from, "%d, %d", was->x, was->y);
    if (is)
        snprintf(to, sizeof to, "%d, %d", is->x, is->y);
    const struct assist_note n = {.by = "localizer",
                                  .index = index,
                                  .element = was->element,
                                  .from = was->x == ACTION_ABSENT ? NULL : from,
                                  .to = is ? to : NULL};
    return agent_record_assist(a, &n, ms, e);
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

/* Rejects a position in the padding of the view with a message to the model. A recorded screen is complete,
 * so its positions are not checked. */
static void refuse_hidden_places(struct agent *a)
{
    for (int i = 0; !a->step.from && a->reply.fault == FAULT_NONE && i < a->reply.step.nactions; i++) {
        const struct action *action = &a->reply.step.actions[i];
        const int32_t at[2][2] = {{action->x, action->y}, {action->x2, action->y2}};
        for (int k = 0; k < 2; k++)
            if (at[k][0] != ACTION_ABSENT && !screen_shows(a->o->screen, at[k][0], at[k][1])) {
                a->reply.fault = FAULT_RANGE;
                err_set(&a->reply.why, ERR_FAILED,
                        "%d,%d is outside the window, where the screenshot shows nothing; nothing was done",
                        at[k][0], at[k][1]);
            }
    }
}

int agent_localize(struct agent *a, struct err *e)
{
    int rc = 0;
    unsigned placed = agent_resolve_refs(a);
    for (int i = 0; rc == 0 && a->reply.fault == FAULT_NONE && i < a->reply.step.nactions; i++) {
        const struct action *action = &a->reply.step.actions[i];
        if (placed >> i & 1) /* where the program says */
            continue;
        if (a->o->localizer && names_a_place(action))
            rc = localize(a, i, e);
        else
            rc = agent_correct_action(a, i, e);
    }
    refuse_hidden_places(a);
    return rc;
}
