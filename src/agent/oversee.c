/* oversee.c - between think and act: the overseer's turn; see overseer.h.
 *
 * The reply at hand is in the agent's own fields.  After a fork there are several: those that are not at hand are put
 * aside (struct aside), and taking one exchanges the two.
 */
#include "agent/private.h"

#include "base/clock.h"
#include "base/flag.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLIES = OVERSEER_FORKS + 1 };
static const float warmth = 0.7f;     /* of another reply where the likeliest one would be the same again */
static const double tile_level = 3.0; /* as an effect is judged (observe.c) */

struct saved_reply { /* a reply that is not at hand */
    struct step step;
    enum action_fault fault;
    struct err unread;
    char *reply;
    bool as_said;
    struct generated raw_reply;
    int resample;
    float temperature;
    enum attempted got;
};

struct review { /* one step before the overseer */
    struct agent *a;
    enum attempted got; /* of the reply at hand */
    struct saved_reply saved[REPLIES];
    int n, taken; /* replies to choose from, 0: only the one at hand; which that is */
    bool moved;
    double moved_on;
    char rule[160];
};

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {"run", "edit", "veto", "again", "rewind", "fork", "take", "stop"};
    return names[v];
}

/* ---- replies --------------------------------------------------------------------------------- */

/* The reply at hand goes to `to`; the agent is left without one. */
static void save_reply(struct review *s, struct saved_reply *to)
{
    struct agent *a = s->a;
    *to = (struct saved_reply){a->step,      a->fault,    a->unread,      a->reply, a->as_said,
                               a->raw_reply, a->resample, a->temperature, s->got};
    a->step = (struct step){0};
    a->raw_reply = (struct generated){0};
    a->reply = NULL;
}

static void restore_reply(struct review *s, struct saved_reply *from)
{
    struct agent *a = s->a;
    a->step = from->step;
    a->fault = from->fault;
    a->unread = from->unread;
    a->reply = from->reply;
    a->as_said = from->as_said;
    a->raw_reply = from->raw_reply;
    a->resample = from->resample;
    a->temperature = from->temperature;
    s->got = from->got;
    *from = (struct saved_reply){0};
}

static void forget(struct review *s)
{
    for (int i = 0; i < s->n; i++) {
        step_free(&s->saved[i].step);
        generated_free(&s->saved[i].raw_reply);
        free(s->saved[i].reply);
        s->saved[i] = (struct saved_reply){0};
    }
    s->n = s->taken = 0;
}

/* Other dice, at the temperature of the dialect. */
static enum attempted another(struct review *s, struct err *e)
{
    struct agent *a = s->a;
    float t = a->o->sampling.temperature;
    enum attempted got = agent_attempt(a, a->resamples + 1, t > 0 ? t : warmth, e);
    if (got == ATTEMPT_UNREADABLE &&
        agent_record_fault(a, "unreadable", action_fault_name(a->fault), a->unread.text, e))
        return ATTEMPT_FAILED;
    return got;
}

/* ---- what is shown --------------------------------------------------------------------------- */

/* Of the tokens that were sampled where a slot is. */
static double confidence(const struct proposed_reply *t)
{
    const struct generated *g = t->generated;
    double least = -1;
    size_t begin = 0;
    for (int i = 0; g->choices && i < g->n; i++) {
        bool inside = false;
        for (int k = 0; k < t->n_slots; k++)
            inside = inside || (begin < t->slots[k].end && g->choices[i].end > t->slots[k].begin);
        double p = exp((double)g->choices[i].logprob_masked);
        if (inside && !g->choices[i].forced)
            least = least < 0 || p < least ? p : least;
        begin = g->choices[i].end;
    }
    return least;
}

static struct proposed_reply shown_reply(const struct agent *a, const struct step *step,
                                         enum action_fault fault, const struct err *unread,
                                         const struct generated *made)
{
    struct proposed_reply t = {.step = step,
                               .fault = fault,
                               .message = fault == FAULT_NONE ? "" : unread->text,
                               .reply = made->text.data ? made->text.data : "",
                               .generated = made};
    t.n_slots = dialect_slots(a->o->dialect, t.reply, made->text.len, t.slots, SLOTS_MAX);
    t.confidence = confidence(&t);
    return t;
}

static struct proposed_reply at_hand(const struct agent *a)
{
    struct proposed_reply t = shown_reply(a, &a->step, a->fault, &a->unread, &a->raw_reply);
    t.resample = a->resample;
    t.temperature = a->temperature;
    return t;
}

static void put_forks(const struct review *s, struct proposed_reply *forks)
{
    for (int i = 0; i < s->n; i++) {
        const struct saved_reply *r = &s->saved[i];
        forks[i] = shown_reply(s->a, &r->step, r->fault, &r->unread, &r->raw_reply);
        forks[i].resample = r->resample;
        forks[i].temperature = r->temperature;
        if (i == s->taken)
            forks[i] = at_hand(s->a);
    }
}

static void show_alternative(const struct agent *a, const struct slot *slot,
                             const struct beam_candidate *from, struct alternative *to)
{
    *to = (struct alternative){.p = from->p, .x = ACTION_ABSENT, .y = ACTION_ABSENT};
    _Static_assert(sizeof to->text >= sizeof from->text, "it fits");
    memcpy(to->text, from->text, sizeof from->text);
    if (slot->kind == SLOT_POINT && !dialect_slot_point(a->o->dialect, from->text, strlen(from->text),
                                                        a->frame.w, a->frame.h, &to->x, &to->y))
        snprintf(to->text, sizeof to->text, "%d,%d", to->x, to->y);
}

static int search_reply(const struct proposal *p, const struct slot *slot, struct alternative *out, int max)
{
    struct agent *a = p->searcher;
    struct beam_candidate found[BEAM_WIDTH];
    const struct beam_request x = {.goal = a->budget == AGENT_RUNNING ? GOAL_STEP : GOAL_ANSWER,
                                   .think = a->o->dialect->think,
                                   .said = &a->raw_reply,
                                   .slot = slot,
                                   .cancel = screen_stop_flag(a->o->screen)};
    struct err why = ERR_INIT; /* no room, stopped: nothing is known */
    int n = context_beam_search(a->context, &x, found, max < BEAM_WIDTH ? max : BEAM_WIDTH, &why);
    for (int i = 0; i < n; i++)
        show_alternative(a, slot, &found[i], &out[i]);
    return n < 0 ? 0 : n;
}

static void propose(const struct review *s, const struct proposed_reply *forks, struct proposal *p)
{
    const struct agent *a = s->a;
    *p = (struct proposal){
        .number = a->number,
        .max_steps = a->o->max_steps,
        .task = a->o->task,
        .dir = trace_dir(a->o->trace),
        .stop = screen_stop_flag(a->o->screen),
        .beyond = a->beyond,
        .seconds = agent_seconds(a),
        .frame = &a->frame,
        .frame_number = a->frame_number,
        .place = a->place,
        .title = a->title,
        .class = a->class,
        .recorded = a->from != 0,
        .from = a->from,
        .moved_on = s->moved_on,
        .moved = s->moved,
        .lead = a->lead,
        .now = at_hand(a),
        .forks = forks,
        .n_forks = s->n,
        .taken = s->n ? s->taken : -1,
        .reused = a->cost.reused,
        .prefilled = a->cost.prefilled,
        .sampled = a->generated - a->forced,
        .forced = a->forced,
        .images = a->cost.images,
        .judged = a->tiles >= 0 && !a->o->dry_run,
        .changed = a->tiles > 0,
        .tiles = a->tiles,
        .expected = a->expects_change,
        .history = a->history.steps,
        .n_history = a->history.n - 1,
        .beam_search = search_reply,
        .searcher = s->a,
    };
    memcpy(p->ms, a->ms, sizeof p->ms);
}

/* ---- what is decided ------------------------------------------------------------------------- */

/* A step's actions as JSON: one object, or a list of them. */
static void put_actions(struct trace *t, const char *key, const struct step *step)
{
    struct buf b;
    buf_init(&b, AGENT_TEXT_MAX);
    buf_puts(&b, "[");
    for (int i = 0; i < step->nactions; i++) {
        buf_puts(&b, i ? ", " : "");
        action_to_json(&step->actions[i], &b);
    }
    buf_puts(&b, "]");
    trace_json(t, key, b.full ? "null" : b.data);
    buf_free(&b);
}

static int record_decision(const struct review *s, const struct decision *d, struct err *e)
{
    const struct agent *a = s->a;
    struct trace *t = a->o->trace;
    if (!d->by)
        return 0;
    trace_begin(t, a->number, "human");
    trace_text(t, "what", verdict_name(d->verdict));
    trace_text(t, "by", d->by);
    if (d->verdict == VERDICT_EDIT) {
        put_actions(t, "from", &a->step);
        put_actions(t, "to", &d->edited);
    } else if (d->verdict == VERDICT_REWIND || d->verdict == VERDICT_TAKE) {
        trace_int(t, "to", d->to);
    } else if (d->verdict == VERDICT_FORK) {
        trace_int(t, "n", d->n);
    }
    if (d->reason)
        trace_text(t, "reason", d->reason);
    if (a->from)
        trace_number(t, "moved_on", s->moved_on);
    return trace_end(t, e);
}

/* The display as it is now.  What was shown lies elsewhere by now: true. */
static int look(struct review *s, bool *moved, struct err *e)
{
    struct agent *a = s->a;
    if (screen_capture(a->o->screen, &a->at_hand, e))
        return -1;
    gate_redact(a->o->gate, &a->at_hand);
    struct view_transform now;
    if (agent_place(a, &now, e))
        return -1;
    *moved = now.ox != a->place.ox || now.oy != a->place.oy || now.sx != a->place.sx || now.sy != a->place.sy;
    a->place = now;
    return 0;
}

static void edit(struct review *s, struct decision *d)
{
    struct agent *a = s->a;
    for (int i = 0; i < a->step.nactions; i++)
        action_free(&a->step.actions[i]);
    memcpy(a->step.actions, d->edited.actions, sizeof a->step.actions);
    a->step.nactions = d->edited.nactions;
    d->edited.nactions = 0;
    memset(d->edited.actions, 0, sizeof d->edited.actions);
    a->fault = FAULT_NONE;
    a->edited = true;
    s->got = ATTEMPT_READ;
}

static int again(struct review *s, struct err *e)
{
    forget(s);
    s->got = another(s, e);
    return s->got == ATTEMPT_FAILED ? -1 : 0;
}

static int fork_replies(struct review *s, int n, struct err *e)
{
    forget(s);
    n = n < 1 ? 1 : n > OVERSEER_FORKS ? OVERSEER_FORKS : n;
    s->n = 1;
    for (int i = 1; i <= n; i++) {
        save_reply(s, &s->saved[i - 1]);
        s->n = i + 1;
        s->taken = i;
        s->got = another(s, e);
        if (s->got == ATTEMPT_FAILED)
            return -1;
        if (s->got == ATTEMPT_OUT_OF_TIME)
            return 0;
        s->saved[i - 1].as_said = false; /* the conversation holds the last one */
    }
    save_reply(s, &s->saved[s->taken]);
    restore_reply(s, &s->saved[0]);
    s->taken = 0;
    return 0;
}

static int take(struct review *s, int i, struct err *e)
{
    if (i < 0 || i >= s->n)
        return err_set(e, ERR_USAGE, "there is no reply %d to take", i);
    if (i == s->taken)
        return 0;
    save_reply(s, &s->saved[s->taken]);
    restore_reply(s, &s->saved[i]);
    s->taken = i;
    return 0;
}

enum outcome { GO_ON = 1, ASK_AGAIN = 0, BROKEN = -1 };

static enum outcome follow(struct review *s, struct decision *d, struct err *e)
{
    struct agent *a = s->a;
    bool moved = false;
    s->moved = false;
    switch (d->verdict) {
    case VERDICT_RUN:
    case VERDICT_EDIT:
        if ((d->by || a->from) && look(s, &moved, e))
            return BROKEN;
        s->moved = moved && d->by;
        if (s->moved)
            return ASK_AGAIN;
        a->seen = d->seen;
        if (d->verdict == VERDICT_EDIT)
            edit(s, d);
        return GO_ON;
    case VERDICT_VETO:
        agent_set_text(&a->veto, d->reason ? d->reason : xstrdup(""));
        d->reason = NULL;
        s->got = ATTEMPT_READ;
        return GO_ON;
    case VERDICT_AGAIN:
        return again(s, e) ? BROKEN : ASK_AGAIN;
    case VERDICT_FORK:
        return fork_replies(s, d->n, e) ? BROKEN : ASK_AGAIN;
    case VERDICT_TAKE:
        return take(s, d->to, e) ? BROKEN : ASK_AGAIN;
    case VERDICT_REWIND:
        if (history_find(&a->history, d->to) < 0) {
            err_set(e, ERR_USAGE, "step %d cannot be gone back to", d->to);
            return BROKEN;
        }
        a->back = d->to;
        agent_history_done(a, false);
        return GO_ON;
    case VERDICT_STOP:
        err_set(e, ERR_STOPPED, "stopped before step %d%s%s", a->number, d->reason && *d->reason ? ": " : "",
                d->reason ? d->reason : "");
        return BROKEN;
    }
    return BROKEN;
}

/* Labels the proposal with the first rule that asks about one of its actions or forbids it, as "confirm: sending".  Only
 * an action that the rules would ask about counts as irreversible: a forbidden one will not happen. */
static int label_with_rule(struct review *s, struct proposal *p, struct err *e)
{
    const struct agent *a = s->a;
    for (int i = 0; a->o->gate && i < a->step.nactions && !p->gate; i++) {
        struct policy_ruling r;
        if (gate_judge(a->o->gate, &a->step.actions[i], &a->place, &r, e))
            return -1;
        if (r.verdict == POLICY_ALLOW)
            continue;
        snprintf(s->rule, sizeof s->rule, "%s: %s", policy_verdict_name(r.verdict), r.rule);
        p->gate = s->rule;
        p->irreversible = r.verdict == POLICY_CONFIRM;
    }
    return 0;
}

/* The clock of the run stands still meanwhile. */
static int ask(struct review *s, struct decision *d, struct err *e)
{
    struct agent *a = s->a;
    struct proposed_reply forks[REPLIES];
    struct proposal p;
    agent_tell_spent(a);
    put_forks(s, forks);
    propose(s, forks, &p);
    if (label_with_rule(s, &p, e))
        return -1;
    int64_t start = clock_ns();
    int rc = a->o->overseer->decide(a->o->overseer, &p, d, e);
    a->waited += clock_ns() - start;
    if (rc == 0 && flag_up(screen_stop_flag(a->o->screen)))
        rc = err_set(e, ERR_STOPPED, "stopped before step %d", a->number);
    return rc;
}

/* How far the display is from what is shown, which is from the record. */
static int look_at_first(struct review *s, struct err *e)
{
    struct agent *a = s->a;
    bool moved;
    s->moved_on = -1;
    if (agent_place(a, &a->place, e))
        return -1;
    if (!a->from)
        return 0;
    if (look(s, &moved, e))
        return -1;
    s->moved_on = image_tiles_changed(&a->frame, &a->at_hand, tile_level);
    return 0;
}

enum attempted agent_oversee(struct agent *a, enum attempted got, struct err *e)
{
    struct review s = {.a = a, .got = got};
    a->seen = false;
    enum outcome what = look_at_first(&s, e) ? BROKEN : ASK_AGAIN;
    while (what == ASK_AGAIN && s.got != ATTEMPT_OUT_OF_TIME) {
        struct decision d = {0};
        what = ask(&s, &d, e) || record_decision(&s, &d, e) ? BROKEN : follow(&s, &d, e);
        step_free(&d.edited);
        free(d.reason);
    }
    if (s.n)
        s.saved[s.taken] = (struct saved_reply){0}; /* it is at hand */
    forget(&s);
    if (s.got == ATTEMPT_OUT_OF_TIME && a->budget == AGENT_RUNNING)
        a->budget = AGENT_TIME;
    return what == BROKEN ? ATTEMPT_FAILED : s.got;
}
