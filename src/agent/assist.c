/* assist.c - the loop's implementation of assist.h: view of a step, resampling, and recording. */
#include "llm/assist.h"
#include "agent/private.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct assisted {            /* one call of an assist */
    struct assist_step step; /* step.arg points to this struct */
    struct agent *a;
    int64_t start, noted; /* clock_ns() of the call; of its last note, or else of the call */
};

void assist_free(struct assist *x)
{
    if (x)
        x->ops->free(x);
}

/* ---- the record ---------------------------------------------------------------------------------------- */

int agent_record_assist(struct agent *a, const struct assist_note *n, double ms, struct err *e)
{
    struct trace *t = a->o->trace;
    const struct {
        const char *key, *text;
    } texts[] = {{"element", n->element}, {"from", n->from}, {"to", n->to}};
    trace_begin(t, a->step.number, "assist");
    trace_text(t, "by", n->by);
    if (n->index >= 0)
        trace_int(t, "index", n->index);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text)
            trace_text(t, texts[i].key, texts[i].text);
    if (n->logprob) {
        trace_number(t, "logprob", *n->logprob);
        trace_bool(t, "taken", n->taken);
    }
    trace_number(t, "ms", ms);
    return trace_end(t, e);
}

static int note(struct assist_step *s, const struct assist_note *n, struct err *e)
{
    struct assisted *x = s->arg;
    double ms = clock_ms_since(x->noted);
    x->noted = clock_ns();
    return agent_record_assist(x->a, n, ms, e);
}

/* ---- other replies ------------------------------------------------------------------------------------- */

static void show_reply(struct assisted *x)
{
    const struct agent_reply *r = &x->a->reply;
    x->step.step = &r->step;
    x->step.text = r->text;
    x->step.raw = &r->raw;
}

static int resample(struct assist_step *s, const char *by, const char *begins, double *min_logprob,
                    struct err *e)
{
    struct assisted *x = s->arg;
    struct agent *a = x->a;
    struct agent_reply was = a->reply;
    a->reply = (struct agent_reply){0};
    a->step.begins = begins;
    enum attempt got = agent_attempt(a, a->step.resamples + 1, 0, e);
    a->step.begins = NULL;
    bool read = got == ATTEMPT_READ && a->reply.fault == FAULT_NONE;
    double logprob = read ? generated_prefix_logprob(&a->reply.raw, strlen(begins)) : 0;
    bool taken = read && logprob > *min_logprob;
    if (taken) {
        *min_logprob = logprob;
        agent_reply_free(&was);
    } else {
        agent_reply_free(&a->reply);
        a->reply = was;
        a->reply.as_said = false; /* the session now ends with the rejected reply */
    }
    show_reply(x);
    const struct assist_note n = {.by = by, .index = -1, .to = begins, .logprob = &logprob, .taken = taken};
    return got == ATTEMPT_FAILED ? -1 : note(s, &n, e);
}

static int search(struct assist_step *s, enum slot_kind kind, const char *const *words, int n,
                  struct slot *slot, struct beam_candidate *out, int max, struct err *e)
{
    const struct assisted *x = s->arg;
    struct agent *a = x->a;
    const struct generated *said = &a->reply.raw;
    const struct beam_request r = {.goal = GOAL_STEP,
                                   .said = said,
                                   .slot = slot,
                                   .words = words,
                                   .n_words = n,
                                   .cancel = &a->run.cancel};
    if ((words && n == 0) || !dialect_word_slot(s->dialect, kind, said->text.data, said->text.len, slot))
        return 0;
    return context_beam_search(a->run.context, &r, out, max, e);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Fills *x with the view of the current step; the caller frees x->step.earlier. */
static void begin(struct assisted *x, struct agent *a)
{
    int first = a->run.turns_before, n = context_turns(a->run.context) - 1 - first;
    const char **earlier = xmalloc((size_t)(n > 0 ? n : 0) + 1, sizeof *earlier);
    for (int i = 0; i < n; i++)
        earlier[i] = context_reply(a->run.context, first + i);
    int64_t now = clock_ns();
    *x = (struct assisted){.a = a,
                           .start = now,
                           .noted = now,
                           .step = {.dialect = a->o->dialect,
                                    .task = a->run.task,
                                    .frame = &a->step.frame,
                                    .earlier = earlier,
                                    .n_earlier = n > 0 ? n : 0,
                                    .resample = resample,
                                    .search = search,
                                    .note = note,
                                    .arg = x}};
    show_reply(x);
}

int agent_correct_reply(struct agent *a, struct err *e)
{
    struct assist *assist = a->o->assist;
    struct assisted x;
    if (!ASSIST(assist, correct_reply) || a->reply.status != ATTEMPT_READ || a->reply.fault != FAULT_NONE ||
        a->step.budget != AGENT_RUNNING || a->reply.raw.reused)
        return 0;
    begin(&x, a);
    int rc = assist->ops->correct_reply(assist, &x.step, e);
    free((void *)(uintptr_t)x.step.earlier);
    return rc;
}

int agent_correct_action(struct agent *a, int index, struct err *e)
{
    struct assist *assist = a->o->assist;
    struct assisted x;
    if (!ASSIST(assist, correct_action))
        return 0;
    begin(&x, a);
    int rc = assist->ops->correct_action(assist, &x.step, index, &a->reply.step.actions[index], e);
    free((void *)(uintptr_t)x.step.earlier);
    a->step.ms[PHASE_WRITE] += clock_ms_since(x.start);
    return rc;
}

void agent_restore_secrets(struct agent *a)
{
    if (ASSIST(a->o->assist, restore_secrets))
        a->o->assist->ops->restore_secrets(a->o->assist, &a->reply.step);
}
