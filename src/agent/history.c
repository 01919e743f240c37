/* history.c - the steps before the current one, and rewinding to one of them.
 *
 * The run can rewind to a step as long as its turn is part of the conversation. context_rewind() rewinds the
 * conversation, the saved outcome restores the loop's counters and texts, and the screen is loaded bit for
 * bit from the record. The run then continues with a new step and a new number.
 */
#include "agent/private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static char *copied(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct agent_outcome agent_outcome_copy(const struct agent_outcome *o)
{
    struct agent_outcome c = *o;
    c.lead = copied(o->lead);
    c.signature = copied(o->signature);
    c.result = copied(o->result);
    c.dropped = copied(o->dropped);
    return c;
}

void agent_outcome_free(struct agent_outcome *o)
{
    free(o->lead);
    free(o->signature);
    free(o->result);
    free(o->dropped);
    *o = (struct agent_outcome){0};
}

/* Appends a step; takes ownership of the contents of both structs. */
static void history_add(struct history *h, const struct history_step *step, const struct agent_saved *saved)
{
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 32;
        h->steps = xrealloc(h->steps, (unsigned long)h->cap, sizeof *h->steps);
        h->saved = xrealloc(h->saved, (unsigned long)h->cap, sizeof *h->saved);
    }
    h->steps[h->n] = *step;
    h->saved[h->n++] = *saved;
}

int history_find(const struct history *h, int number)
{
    for (int i = 0; i < h->n; i++)
        if (h->steps[i].number == number)
            return h->steps[i].reachable ? i : -1;
    return -1;
}

/* Marks the steps from this turn onwards as no longer part of the conversation. */
static void history_leave(struct history *h, int turn)
{
    for (int i = 0; i < h->n; i++) {
        if (h->saved[i].turn < turn)
            continue;
        h->steps[i].left = true;
        h->steps[i].reachable = false;
    }
}

void history_free(struct history *h)
{
    for (int i = 0; i < h->n; i++) {
        free(h->steps[i].what);
        free(h->steps[i].thought);
        free(h->steps[i].window);
        agent_outcome_free(&h->saved[i].outcome);
    }
    free(h->steps);
    free(h->saved);
    *h = (struct history){0};
}

void agent_history_begin(struct agent *a)
{
    struct history_step step = {.number = a->step.number,
                                .frame = a->step.frame_number,
                                .recorded = a->step.from != 0,
                                .from = a->step.from,
                                .what = xstrdup(""),
                                .thought = xstrdup(""),
                                .window = xstrdup(a->step.window.title),
                                .x = ACTION_ABSENT,
                                .x2 = ACTION_ABSENT,
                                .confidence = -1,
                                .tiles = -1,
                                .reachable = true};
    struct agent_saved saved = {.turn = context_turns(a->run.context) - 1,
                                .outcome = agent_outcome_copy(&a->outcome),
                                .window = a->step.window};
    history_add(&a->run.history, &step, &saved);
}

static char *description(const struct agent *a)
{
    char *what = actions_describe(a->reply.step.actions, a->reply.step.nactions);
    if (a->step.veto)
        agent_set_text(&what, xasprintf("%s%srefused", what, *what ? ": " : ""));
    else if (a->reply.fault != FAULT_NONE)
        agent_set_text(&what, xasprintf("%s%s", what, action_fault_name(a->reply.fault)));
    return what;
}

void agent_history_done(struct agent *a, bool ran)
{
    if (!a->run.history.n)
        return;
    struct history_step *s = &a->run.history.steps[a->run.history.n - 1];
    const char *thought = a->reply.step.thought;
    agent_set_text(&s->what, description(a));
    agent_set_text(&s->thought, xstrdup(thought ? thought : ""));
    s->ran = ran;
    s->failed = a->outcome.failed;
    s->edited = a->step.edited;
    s->refused = a->step.veto;
    if (a->reply.step.nactions) {
        const struct action *first = &a->reply.step.actions[0];
        s->x = first->x, s->y = first->y, s->x2 = first->x2, s->y2 = first->y2;
    }
    agent_show_chosen(a, s);
    memcpy(s->ms, a->step.ms, sizeof s->ms);
}

void agent_history_judged(struct agent *a)
{
    if (!a->run.history.n)
        return;
    struct history_step *s = &a->run.history.steps[a->run.history.n - 1];
    s->judged = true;
    s->changed = a->outcome.tiles > 0;
    s->tiles = a->outcome.tiles;
}

static int load_frame(const struct agent *a, int number, struct image *out, struct err *e)
{
    autofree char *path = xasprintf("%s/frames/%06d.png", trace_dir(a->o->trace), number);
    return image_read_png(out, path, e);
}

/* Loads the screenshot of a turn that is part of the conversation; a context_image. */
static int frame_of_turn(void *arg, int turn, struct image *out, struct err *e)
{
    const struct agent *a = arg;
    const struct history *h = &a->run.history;
    for (int i = 0; i < h->n; i++)
        if (h->saved[i].turn == turn && !h->steps[i].left)
            return load_frame(a, h->steps[i].frame, out, e);
    bug("turn %d has no step", turn);
}

int agent_rewind(struct agent *a, struct err *e)
{
    static const struct settled recorded = {0, "recorded"};
    struct history *h = &a->run.history;
    int i = history_find(h, a->run.rewind_to);
    if (i < 0)
        bug("cannot rewind to step %d", a->run.rewind_to);
    const struct history_step *step = &h->steps[i];
    int64_t start = clock_ns();
    int turn = h->saved[i].turn;
    image_free(&a->step.frame);
    if (trace_sync(a->o->trace, e) || load_frame(a, step->frame, &a->step.frame, e))
        return -1;
    a->step.ms[PHASE_SEE] = clock_ms_since(start);
    if (context_rewind(a->run.context, turn, frame_of_turn, a, &a->step.cost, e))
        return -1;
    agent_outcome_free(&a->outcome);
    a->outcome = agent_outcome_copy(&h->saved[i].outcome);
    a->step.window = h->saved[i].window;
    a->step.from = step->recorded ? step->from : step->number;
    a->run.rewind_to = 0;
    history_leave(h, turn);
    return agent_record_observation(a, &recorded, e) || agent_record_prompt(a, e) ? -1 : 0;
}
