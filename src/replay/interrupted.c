/* interrupted.c - rebuilds the state of an interrupted run from its recording, to resume it. */
#include "replay/interrupted.h"

#include "actions/action.h"
#include "llm/prompt.h"
#include "trace/status.h"
#include "trace/story.h"

#include <stdlib.h>
#include <string.h>

struct builder {
    struct resume *p;
    int *steps;                      /* [p->n] steps to which the turns belong */
    const struct turn *open, *reply; /* observation and reply that were not accepted yet */
};

static void add_turn(struct builder *m, int step, const char *lead, char *history)
{
    struct resume *p = m->p;
    p->turns = xrealloc(p->turns, (unsigned long)p->n + 1, sizeof *p->turns);
    m->steps = xrealloc(m->steps, (unsigned long)p->n + 1, sizeof *m->steps);
    p->turns[p->n] = (struct resume_turn){xstrdup(lead), history};
    m->steps[p->n++] = step;
}

/* Rewinds to a step: removes the turns from that step on from the conversation. */
static void rewind_turns(struct builder *m, int step)
{
    struct resume *p = m->p;
    while (m->steps && p->n && m->steps[p->n - 1] >= step) {
        p->n--;
        free(p->turns[p->n].lead);
        free(p->turns[p->n].history);
    }
}

static void follow_turn(struct builder *m, const struct turn *u)
{
    switch (u->op) {
    case TURN_RECALL:
        add_turn(m, 0, u->lead, xstrdup(u->history));
        break;
    case TURN_OBSERVE:
        if (u->from)
            rewind_turns(m, u->from);
        m->open = u;
        break;
    case TURN_REPLY:
        m->reply = u;
        break;
    case TURN_ACCEPT:
        if (!m->open || !m->reply) /* timeline.c checks that both exist */
            break;
        add_turn(m, m->open->from ? m->open->from : u->step, m->open->lead,
                 u->history ? xstrdup(u->history) : prompt_reply_as_history(m->reply->reply.text));
        m->p->number = u->step;
        m->open = NULL;
        break;
    }
}

static int64_t clamped(int64_t v, int64_t max)
{
    return v < 0 ? 0 : v > max ? max : v;
}

static void add_totals(struct resume *p, const struct record *r)
{
    struct agent_result *sum = &p->so_far;
    for (int i = 0; i < r->n; i++) {
        const json_t *f = r->events[i].fields;
        if (!strcmp(r->events[i].kind, "resume")) {
            int64_t number = field_int(f, "number"), steps = field_int(f, "steps");
            p->number = number >= 0 && number < RECORD_MAX_EVENTS ? (int)number : 0;
            sum->steps = steps >= 0 && steps < RECORD_MAX_EVENTS ? (int)steps : 0;
            double seconds = field_number(f, "seconds");
            sum->seconds = seconds >= 0 && seconds < 1e9 ? seconds : 0;
            sum->generated = field_int(f, "generated");
            sum->forced = field_int(f, "forced");
            sum->prefilled = field_int(f, "prefilled");
            sum->reused = field_int(f, "reused");
            sum->typed = clamped(field_int(f, "typed"), 1LL << 40);
            sum->acted = (int)clamped(field_int(f, "acted"), RECORD_MAX_EVENTS);
        } else if (!strcmp(r->events[i].kind, "exec")) {
            sum->typed += clamped(field_int(f, "typed"), ACTION_MAX_TEXT);
            sum->acted += field_int(f, "events") > 0;
        } else if (!strcmp(r->events[i].kind, "cancelled")) {
            sum->cancelled.turns++;
            sum->cancelled.tokens += clamped(field_int(f, "tokens"), 1LL << 40);
        } else if (!strcmp(r->events[i].kind, "generate")) {
            sum->generated += field_int(f, "tokens");
            sum->forced += field_int(f, "forced");
        } else if (!strcmp(r->events[i].kind, "prompt")) {
            sum->prefilled += field_int(f, "tokens_prefilled");
            sum->reused += field_int(f, "tokens_reused");
        }
    }
    double seconds = r->n ? (double)(r->events[r->n - 1].ns - r->events[0].ns) / 1e9 : 0;
    sum->seconds += seconds > 0 && seconds < 1e9 ? seconds : 0;
}

static int refuse_ended(const struct record *r, const struct story *s, struct err *e)
{
    const char *status = field_text(s->end, "status");
    const struct status_row *row = status_find(status);
    if (row && !row->resumable)
        return err_set(e, ERR_USAGE, "cannot resume '%s': the run has ended (%s)", r->dir, status);
    return 0;
}

/* Returns whether a step is the final answer after a budget was used up. It is not repeated, because the
 * budget may be larger now. */
static bool is_beyond(const struct story *s, int number)
{
    for (int i = 0; i < s->n; i++)
        if (s->steps[i].number == number)
            return s->steps[i].beyond_budget;
    return false;
}

int interrupted_make(struct resume *p, const struct timeline *t, struct err *e)
{
    return interrupted_continue(p, t, NULL, e);
}

int interrupted_continue(struct resume *p, const struct timeline *t, const char *task, struct err *e)
{
    struct builder m = {.p = p};
    struct story s;
    *p = (struct resume){.parent = t->record->dir, .system = t->system, .task = task};
    story_make(&s, t->record);
    int rc = task ? 0 : refuse_ended(t->record, &s, e);
    if (rc == 0 && (!t->system || !t->n))
        rc = err_set(e, ERR_USAGE, "cannot resume '%s': no screenshot yet; start a new run", t->record->dir);
    add_totals(p, t->record);
    for (int i = 0; i < t->n && rc == 0; i++)
        if (!is_beyond(&s, t->turns[i].step))
            follow_turn(&m, &t->turns[i]);
    p->so_far.steps += s.counted;
    p->lead = m.open ? m.open->lead : NULL;
    free(m.steps);
    story_free(&s);
    if (rc)
        interrupted_free(p);
    return rc;
}

void interrupted_free(struct resume *p)
{
    for (int i = 0; i < p->n; i++) {
        free(p->turns[i].lead);
        free(p->turns[i].history);
    }
    free(p->turns);
    *p = (struct resume){0};
}
