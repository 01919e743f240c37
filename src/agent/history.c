/* history.c - the steps that lie behind: what became of them, and how one is begun again.
 *
 * A step can be gone back to as long as its turn is part of the conversation.  The conversation goes back by itself
 * (context.h); the loop's own counters and texts are those that were saved; the screen is read from the record, where it
 * is to the last bit.  What then happens is a new step with a number of its own.
 */
#include "agent/private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list -------------------------------------------------------------------------------- */

struct history_step *history_add(struct history *p, const struct history_step *step,
                                 const struct saved *saved)
{
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 32;
        p->steps = xrealloc(p->steps, (unsigned long)p->cap, sizeof *p->steps);
        p->saved = xrealloc(p->saved, (unsigned long)p->cap, sizeof *p->saved);
    }
    p->steps[p->n] = *step;
    p->saved[p->n] = *saved;
    return &p->steps[p->n++];
}

int history_find(const struct history *p, int number)
{
    for (int i = 0; i < p->n; i++)
        if (p->steps[i].number == number)
            return p->steps[i].reachable ? i : -1;
    return -1;
}

void history_leave(struct history *p, int turn)
{
    for (int i = 0; i < p->n; i++) {
        if (p->saved[i].turn < turn)
            continue;
        p->steps[i].left = true;
        p->steps[i].reachable = false;
    }
}

void history_free(struct history *p)
{
    for (int i = 0; i < p->n; i++) {
        free(p->steps[i].what);
        free(p->steps[i].thought);
        free(p->saved[i].lead);
        free(p->saved[i].signature);
        free(p->saved[i].result);
    }
    free(p->steps);
    free(p->saved);
    *p = (struct history){0};
}

/* ---- what a step leaves ---------------------------------------------------------------------- */

void agent_history_begin(struct agent *a)
{
    struct history_step step = {.number = a->number,
                                .frame = a->frame_number,
                                .recorded = a->from != 0,
                                .from = a->from,
                                .what = xstrdup(""),
                                .thought = xstrdup(""),
                                .tiles = -1,
                                .reachable = true};
    struct saved saved = {.turn = context_turns(a->context) - 1,
                          .lead = xstrdup(a->lead),
                          .signature = a->signature ? xstrdup(a->signature) : NULL,
                          .result = xstrdup(a->result),
                          .tool = a->tool,
                          .failed = a->failed,
                          .expects_change = a->expects_change,
                          .repeats = a->repeats,
                          .errors = a->errors,
                          .still = a->still,
                          .tiles = a->tiles};
    memcpy(saved.title, a->title, sizeof saved.title);
    memcpy(saved.class, a->class, sizeof saved.class);
    history_add(&a->history, &step, &saved);
}

static char *description(const struct agent *a)
{
    struct buf b;
    buf_init(&b, AGENT_TEXT_MAX);
    for (int i = 0; i < a->step.nactions; i++) {
        buf_puts(&b, i ? "; " : "");
        action_describe(&a->step.actions[i], &b);
    }
    if (a->veto)
        buf_printf(&b, "%srefused", b.len ? ": " : "");
    else if (a->fault != FAULT_NONE)
        buf_puts(&b, action_fault_name(a->fault));
    char *text = buf_take(&b);
    buf_free(&b);
    return text;
}

void agent_history_done(struct agent *a, bool ran)
{
    if (!a->history.n)
        return;
    struct history_step *s = &a->history.steps[a->history.n - 1];
    agent_set_text(&s->what, description(a));
    agent_set_text(&s->thought, xstrdup(a->step.thought ? a->step.thought : ""));
    s->ran = ran;
    s->failed = a->failed;
    memcpy(s->ms, a->ms, sizeof s->ms);
}

void agent_history_judged(struct agent *a)
{
    if (!a->history.n)
        return;
    struct history_step *s = &a->history.steps[a->history.n - 1];
    s->judged = true;
    s->changed = a->tiles > 0;
    s->tiles = a->tiles;
}

/* ---- going back ------------------------------------------------------------------------------ */

static int load_frame(const struct agent *a, int number, struct image *out, struct err *e)
{
    char *path = xasprintf("%s/frames/%06d.png", trace_dir(a->o->trace), number);
    int rc = image_read_png(out, path, e);
    free(path);
    return rc;
}

/* The screenshot of a turn that is part of the conversation. */
static int frame_of_turn(void *arg, int turn, struct image *out, struct err *e)
{
    const struct agent *a = arg;
    for (int i = 0; i < a->history.n; i++)
        if (a->history.saved[i].turn == turn && !a->history.steps[i].left)
            return load_frame(a, a->history.steps[i].frame, out, e);
    bug("turn %d has no step", turn);
}

static void restore(struct agent *a, const struct saved *s)
{
    agent_set_text(&a->lead, xstrdup(s->lead));
    agent_set_text(&a->signature, s->signature ? xstrdup(s->signature) : NULL);
    agent_set_text(&a->result, xstrdup(s->result));
    a->tool = s->tool;
    a->failed = s->failed;
    a->expects_change = s->expects_change;
    a->repeats = s->repeats;
    a->errors = s->errors;
    a->still = s->still;
    a->tiles = s->tiles;
    memcpy(a->title, s->title, sizeof a->title);
    memcpy(a->class, s->class, sizeof a->class);
}

int agent_recall(struct agent *a, struct err *e)
{
    static const struct settled recorded = {0, "recorded"};
    int i = history_find(&a->history, a->back);
    if (i < 0)
        bug("step %d cannot be gone back to", a->back);
    const struct history_step *step = &a->history.steps[i];
    int64_t start = clock_ns();
    int turn = a->history.saved[i].turn;
    image_free(&a->frame);
    if (trace_sync(a->o->trace, e) || load_frame(a, step->frame, &a->frame, e))
        return -1;
    a->ms[PHASE_SEE] = clock_ms_since(start);
    if (context_back(a->context, turn, frame_of_turn, a, &a->cost, e))
        return -1;
    restore(a, &a->history.saved[i]);
    a->from = step->recorded ? step->from : step->number;
    a->back = 0;
    history_leave(&a->history, turn);
    return agent_record_observation(a, &recorded, e) || agent_record_prompt(a, e) ? -1 : 0;
}
