/* oversee.c - between think and act: shows the current reply to the overseer and follows its decision; see
 * overseer.h.
 *
 * After a fork there are several replies. a->reply is the current one, the others are saved; taking another
 * reply exchanges the two.
 */
#include "agent/private.h"

#include "base/clock.h"
#include "base/flag.h"
#include "screen/observed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLIES = OVERSEER_FORKS + 1 };
/* Temperature of another reply if the dialect samples greedily, which would only repeat the first. */
static const float fork_temperature = 0.7f;

struct review { /* review of one step by the overseer */
    struct agent *a;
    struct agent_reply saved[REPLIES]; /* all replies but the current one */
    int n, taken; /* number of replies to choose from, 0: only the current one; its index */
    bool moved;
    double moved_on;
    char rule[160], where[320];
    bool asks;          /* the rule asks: `where` is the window of the first such action */
    bool changed;       /* an approved area has changed since it was shown */
    struct image shown; /* screen shown instead of the frame; empty: the frame */
};

static const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {"run", "edit", "veto", "again", "rewind", "fork", "take", "stop"};
    return names[v];
}

/* ---- replies --------------------------------------------------------------------------------- */

static void save_reply(struct review *s)
{
    s->saved[s->taken] = s->a->reply;
    s->a->reply = (struct agent_reply){0};
}

static void restore_reply(struct review *s, int i)
{
    s->a->reply = s->saved[i];
    s->saved[i] = (struct agent_reply){0};
    s->taken = i;
}

static void free_replies(struct review *s)
{
    for (int i = 0; i < s->n; i++)
        agent_reply_free(&s->saved[i]);
    s->n = s->taken = 0;
}

/* Samples one more reply, with other random numbers, at the dialect's temperature. Returns -1 with e. */
static int resample(struct review *s, struct err *e)
{
    struct agent *a = s->a;
    float t = a->o->sampling.temperature;
    enum attempt got = agent_attempt(a, a->step.resamples + 1, t > 0 ? t : fork_temperature, e);
    agent_restore_secrets(a);
    return got == ATTEMPT_FAILED || (got == ATTEMPT_UNREADABLE && agent_record_unreadable(a, e)) ? -1 : 0;
}

/* ---- contents of a proposal --------------------------------------------------------------------- */

/* Returns the lowest probability of the tokens sampled inside a slot, and their product in *product. Returns
 * -1 if no token was sampled. */
static double slot_confidence(const struct generated *g, const struct slot *slot, double *product)
{
    double least = -1;
    size_t begin = 0;
    *product = 1;
    for (int i = 0; g->choices && i < g->n; i++) {
        bool inside = begin < slot->end && g->choices[i].end > slot->begin;
        double p = exp((double)g->choices[i].logprob_masked);
        begin = g->choices[i].end;
        if (!inside || g->choices[i].forced)
            continue;
        least = least < 0 || p < least ? p : least;
        *product *= p;
    }
    return least;
}

/* Returns the lowest confidence of all slots; -1: not known. */
static double confidence(const struct proposed_reply *t)
{
    double least = -1, product;
    for (int k = 0; k < t->n_slots; k++) {
        double p = slot_confidence(t->generated, &t->slots[k], &product);
        least = p >= 0 && (least < 0 || p < least) ? p : least;
    }
    return least;
}

static struct proposed_reply shown_reply(const struct agent *a, const struct agent_reply *r)
{
    struct proposed_reply t = {.step = &r->step,
                               .fault = r->fault,
                               .message = r->fault == FAULT_NONE ? "" : r->why.text,
                               .reply = r->raw.text.data ? r->raw.text.data : "",
                               .generated = &r->raw,
                               .resample = r->resample,
                               .temperature = r->temperature};
    t.n_slots = dialect_slots(a->o->dialect, t.reply, r->raw.text.len, t.slots, SLOTS_MAX);
    t.confidence = confidence(&t);
    return t;
}

static struct alternative show_alternative(const struct agent *a, const struct slot *slot, const char *text,
                                           size_t len, double p)
{
    struct alternative to = {.p = p, .x = ACTION_ABSENT, .y = ACTION_ABSENT};
    snprintf(to.text, sizeof to.text, "%.*s", (int)(len < sizeof to.text ? len : sizeof to.text), text);
    if (slot->kind == SLOT_POINT &&
        !dialect_slot_point(a->o->dialect, text, len, a->step.frame.w, a->step.frame.h, &to.x, &to.y))
        snprintf(to.text, sizeof to.text, "%d,%d", to.x, to.y);
    return to;
}

void agent_show_chosen(const struct agent *a, struct history_step *to)
{
    const struct proposed_reply t = shown_reply(a, &a->reply);
    to->confidence = t.confidence;
    to->n_chosen = 0;
    for (int i = 0; i < t.n_slots; i++) {
        const struct slot *slot = &t.slots[i];
        double product;
        if (slot_confidence(t.generated, slot, &product) >= 0)
            to->chosen[to->n_chosen++] =
                show_alternative(a, slot, t.reply + slot->begin, slot->end - slot->begin, product);
    }
}

static int search_alternatives(const struct proposal *p, const struct slot *slot, struct alternative *out,
                               int max)
{
    struct agent *a = p->searcher;
    struct beam_candidate found[BEAM_WIDTH];
    const struct beam_request x = {.goal = a->step.budget == AGENT_RUNNING ? GOAL_STEP : GOAL_ANSWER,
                                   .think = a->o->dialect->think,
                                   .said = &a->reply.raw,
                                   .slot = slot,
                                   .cancel = screen_stop_flag(a->o->screen)};
    struct err why = ERR_INIT; /* out of memory or stopped: no candidates */
    int n = context_beam_search(a->run.context, &x, found, max < BEAM_WIDTH ? max : BEAM_WIDTH, &why);
    for (int i = 0; i < n; i++)
        out[i] = show_alternative(a, slot, found[i].text, strlen(found[i].text), found[i].p);
    return n < 0 ? 0 : n;
}

static void make_proposal(const struct review *s, const struct proposed_reply *forks, struct proposal *p)
{
    const struct agent *a = s->a;
    *p = (struct proposal){
        .number = a->step.number,
        .max_steps = a->o->max_steps,
        .task = a->run.task,
        .dir = trace_dir(a->o->trace),
        .stop = screen_stop_flag(a->o->screen),
        .beyond_budget = a->step.beyond_budget,
        .seconds = agent_seconds(a),
        .frame = s->shown.rgb ? &s->shown : &a->step.frame,
        .frame_number = a->step.frame_number,
        .place = a->step.place,
        .title = a->step.window.title,
        .class = a->step.window.class,
        .recorded = a->step.from != 0,
        .from = a->step.from,
        .moved_on = s->moved_on,
        .moved = s->moved,
        .changed_since = s->changed,
        .where = "",
        .lead = a->outcome.lead,
        .now = shown_reply(a, &a->reply),
        .forks = forks,
        .n_forks = s->n,
        .taken = s->n ? s->taken : -1,
        .reused = a->step.cost.reused,
        .prefilled = a->step.cost.prefilled,
        .sampled = a->step.generated - a->step.forced,
        .forced = a->step.forced,
        .images = a->step.cost.images,
        .judged = a->outcome.tiles >= 0 && !a->o->dry_run,
        .changed = a->outcome.tiles > 0,
        .tiles = a->outcome.tiles,
        .expected = a->outcome.expects_change,
        .history = a->run.history.steps,
        .n_history = a->run.history.n - 1,
        .beam_search = search_alternatives,
        .searcher = s->a,
    };
    memcpy(p->ms, a->step.ms, sizeof p->ms);
}

/* ---- decisions ----------------------------------------------------------------------------------- */

/* Records the actions of a step as a JSON list. */
static void put_actions(struct trace *t, const char *key, const struct step *step)
{
    autobuf b = buf_of(AGENT_TEXT_MAX);
    buf_puts(&b, "[");
    for (int i = 0; i < step->nactions; i++) {
        buf_puts(&b, i ? ", " : "");
        action_to_json(&step->actions[i], &b);
    }
    buf_puts(&b, "]");
    trace_json(t, key, b.full ? "null" : b.data);
}

static int record_decision(const struct review *s, const struct decision *d, struct err *e)
{
    const struct agent *a = s->a;
    struct trace *t = a->o->trace;
    if (!d->by)
        return 0;
    trace_begin(t, a->step.number, "human");
    trace_text(t, "what", verdict_name(d->verdict));
    trace_text(t, "by", d->by);
    if (d->verdict == VERDICT_EDIT) {
        put_actions(t, "from", &a->reply.step);
        put_actions(t, "to", &d->edited);
    } else if (d->verdict == VERDICT_REWIND || d->verdict == VERDICT_TAKE) {
        trace_int(t, "to", d->to);
    } else if (d->verdict == VERDICT_FORK) {
        trace_int(t, "n", d->n);
    }
    if (d->reason)
        trace_text(t, "reason", d->reason);
    if (a->step.from)
        trace_number(t, "moved_on", s->moved_on);
    return trace_end(t, e);
}

/* Captures the current display into step.decided_on and updates step.place. *moved: the view has moved since
 * it was shown. Returns -1 with e. */
static int capture_now(struct review *s, bool *moved, struct err *e)
{
    struct agent *a = s->a;
    if (screen_capture(a->o->screen, &a->step.decided_on, e))
        return -1;
    if (a->step.from) /* the step was decided on a recorded screen but acts on this one */
        observed_take(a->o->screen, &a->step.decided_on);
    gate_redact(a->o->gate, &a->step.decided_on);
    struct view_transform now;
    if (agent_place(a, &now, e))
        return -1;
    const struct view_transform *was = &a->step.place;
    *moved = now.ox != was->ox || now.oy != was->oy || now.sx != was->sx || now.sy != was->sy;
    a->step.place = now;
    return 0;
}

static void replace_actions(struct agent *a, struct decision *d)
{
    struct step *step = &a->reply.step;
    for (int i = 0; i < step->nactions; i++)
        action_free(&step->actions[i]);
    memcpy(step->actions, d->edited.actions, sizeof step->actions);
    step->nactions = d->edited.nactions;
    d->edited.nactions = 0;
    memset(d->edited.actions, 0, sizeof d->edited.actions);
    a->reply.fault = FAULT_NONE;
    a->reply.status = ATTEMPT_READ;
    a->step.edited = true;
}

static int fork_replies(struct review *s, int n, struct err *e)
{
    free_replies(s);
    n = n < 1 ? 1 : n > OVERSEER_FORKS ? OVERSEER_FORKS : n;
    s->n = 1;
    for (int i = 1; i <= n; i++) {
        save_reply(s);
        s->n = i + 1;
        s->taken = i;
        if (resample(s, e))
            return -1;
        if (s->a->reply.status == ATTEMPT_OUT_OF_TIME)
            return 0;
        s->saved[i - 1].as_said = false; /* the session holds the last reply */
    }
    save_reply(s);
    restore_reply(s, 0);
    return 0;
}

static int take_reply(struct review *s, int i, struct err *e)
{
    if (i < 0 || i >= s->n)
        return err_set(e, ERR_USAGE, "reply %d does not exist", i);
    if (i != s->taken) {
        save_reply(s);
        restore_reply(s, i);
    }
    return 0;
}

enum review_result { REVIEW_DONE = 1, REVIEW_ASK_AGAIN = 0, REVIEW_FAILED = -1 };

/* Sets *changed if the area that an action would touch differs from the screen that was shown, or lies in
 * another window. Never clears *changed. Returns -1 with e. */
static int place_changed(struct review *s, const struct action *action, bool first, bool *changed,
                         struct err *e)
{
    struct agent *a = s->a;
    const struct image *seen = s->shown.rgb ? &s->shown : &a->step.frame, *now = &a->step.decided_on;
    struct image was = {0}, is = {0};
    struct screen_rect r;
    char where[320];
    if (gate_shown(a->o->gate, action, &a->step.place, &r, where, e))
        return -1;
    bool inside =
        r.w > 0 && r.x + r.w <= seen->w && r.y + r.h <= seen->h && seen->w == now->w && seen->h == now->h;
    *changed = *changed || (r.w > 0 && !inside) || (first && s->asks && strcmp(s->where, where) != 0);
    if (inside && image_crop(&was, seen, r.x, r.y, r.w, r.h, NULL) == 0 &&
        image_crop(&is, now, r.x, r.y, r.w, r.h, NULL) == 0)
        *changed = *changed || gate_picture_changed(&was, &is);
    image_free(&was);
    image_free(&is);
    return 0;
}

/* Checks the actions approved by the user that the rules ask about: the areas shown for them must be
 * unchanged. If so, the gate does not ask again; otherwise sets s->changed, and the step is shown once more
 * with the current screen. Returns -1 with e. */
static int check_approved(struct review *s, const struct step *step, struct err *e)
{
    struct agent *a = s->a;
    bool first = true; /* first action that the rules ask about; s->where describes it */
    s->changed = false;
    for (int i = 0; a->o->gate && i < step->nactions && !s->changed; i++) {
        struct policy_ruling r;
        if (gate_judge(a->o->gate, &step->actions[i], &a->step.place, &r, e))
            return -1;
        if (r.verdict != POLICY_CONFIRM)
            continue;
        if (place_changed(s, &step->actions[i], first, &s->changed, e))
            return -1;
        first = false;
    }
    image_free(&s->shown);
    if (!s->changed)
        return 0;
    observed_take(a->o->screen, &a->step.decided_on); /* the user decides on this screen */
    return image_copy(&s->shown, &a->step.decided_on, e);
}

static enum review_result follow_decision(struct review *s, struct decision *d, struct err *e)
{
    struct agent *a = s->a;
    bool moved = false;
    s->moved = false;
    switch (d->verdict) {
    case VERDICT_RUN:
    case VERDICT_EDIT:
        if ((d->by || a->step.from) && capture_now(s, &moved, e))
            return REVIEW_FAILED;
        s->moved = moved && d->by;
        if (d->verdict == VERDICT_EDIT) {
            replace_actions(a, d);
            s->asks = false; /* `where` described the model's step */
        }
        if (s->moved)
            return REVIEW_ASK_AGAIN;
        if (d->confirmed && check_approved(s, &a->reply.step, e))
            return REVIEW_FAILED;
        if (d->confirmed && s->changed)
            return REVIEW_ASK_AGAIN;
        a->step.confirmed = d->confirmed;
        return REVIEW_DONE;
    case VERDICT_VETO:
        agent_set_text(&a->step.veto, d->reason ? d->reason : xstrdup(""));
        d->reason = NULL;
        a->reply.status = ATTEMPT_READ;
        return REVIEW_DONE;
    case VERDICT_AGAIN:
        free_replies(s);
        return resample(s, e) ? REVIEW_FAILED : REVIEW_ASK_AGAIN;
    case VERDICT_FORK:
        return fork_replies(s, d->n, e) ? REVIEW_FAILED : REVIEW_ASK_AGAIN;
    case VERDICT_TAKE:
        return take_reply(s, d->to, e) ? REVIEW_FAILED : REVIEW_ASK_AGAIN;
    case VERDICT_REWIND:
        if (history_find(&a->run.history, d->to) < 0) {
            err_set(e, ERR_USAGE, "cannot rewind to step %d", d->to);
            return REVIEW_FAILED;
        }
        a->run.rewind_to = d->to;
        agent_history_done(a, false);
        return REVIEW_DONE;
    case VERDICT_STOP:
        err_set(e, ERR_STOPPED, "stopped before step %d%s%s", a->step.number,
                d->reason && *d->reason ? ": " : "", d->reason ? d->reason : "");
        return REVIEW_FAILED;
    }
    return REVIEW_FAILED;
}

/* Labels the proposal with the first rule that asks about one of its actions or forbids it, as "confirm:
 * sending". Only an action that the rules would ask about counts as irreversible: a forbidden action is
 * never performed. Returns -1 with e. */
static int label_with_rule(struct review *s, struct proposal *p, struct err *e)
{
    const struct agent *a = s->a;
    s->asks = false;
    if (a->o->gate)
        gate_set_thought(a->o->gate, a->reply.step.thought);
    for (int i = 0; a->o->gate && i < a->reply.step.nactions && !p->gate; i++) {
        struct policy_ruling r;
        if (gate_judge(a->o->gate, &a->reply.step.actions[i], &a->step.place, &r, e))
            return -1;
        if (r.verdict == POLICY_ALLOW)
            continue;
        snprintf(s->rule, sizeof s->rule, "%s: %s", policy_verdict_name(r.verdict), r.rule);
        p->gate = s->rule;
        p->irreversible = s->asks = r.verdict == POLICY_CONFIRM;
        struct screen_rect area;
        p->where = s->where;
        if (gate_shown(a->o->gate, &a->reply.step.actions[i], &a->step.place, &area, s->where, e))
            return -1;
    }
    return 0;
}

/* Asks the overseer for a decision; the run's clock is paused meanwhile. Returns -1 with e. */
static int ask_overseer(struct review *s, struct decision *d, struct err *e)
{
    struct agent *a = s->a;
    struct proposed_reply forks[REPLIES];
    struct proposal p;
    agent_tell_spent(a);
    for (int i = 0; i < s->n; i++)
        forks[i] = shown_reply(a, i == s->taken ? &a->reply : &s->saved[i]);
    make_proposal(s, forks, &p);
    if (label_with_rule(s, &p, e))
        return -1;
    int64_t start = clock_ns();
    int rc = a->o->overseer->decide(a->o->overseer, &p, d, e);
    a->run.paused_ns += clock_ns() - start;
    if (rc == 0 && flag_up(screen_stop_flag(a->o->screen)))
        rc = err_set(e, ERR_STOPPED, "stopped before step %d", a->step.number);
    return rc;
}

/* Updates the position of the frame on the display and, for a recorded frame, the share of the screen that
 * has changed since (moved_on). Returns -1 with e. */
static int compare_with_display(struct review *s, struct err *e)
{
    struct agent *a = s->a;
    bool moved;
    s->moved_on = -1;
    if (agent_place(a, &a->step.place, e))
        return -1;
    if (!a->step.from)
        return 0;
    if (capture_now(s, &moved, e))
        return -1;
    s->moved_on = image_tiles_changed(&a->step.frame, &a->step.decided_on, IMAGE_EFFECT_LEVEL);
    return 0;
}

int agent_oversee(struct agent *a, struct err *e)
{
    struct review s = {.a = a};
    enum review_result what = compare_with_display(&s, e) ? REVIEW_FAILED : REVIEW_ASK_AGAIN;
    while (what == REVIEW_ASK_AGAIN && a->reply.status != ATTEMPT_OUT_OF_TIME) {
        struct decision d = {0};
        what = ask_overseer(&s, &d, e) || record_decision(&s, &d, e) ? REVIEW_FAILED
                                                                     : follow_decision(&s, &d, e);
        step_free(&d.edited);
        free(d.reason);
    }
    free_replies(&s);
    image_free(&s.shown);
    if (what == REVIEW_FAILED)
        return -1;
    if (a->reply.status == ATTEMPT_OUT_OF_TIME && a->step.budget == AGENT_RUNNING)
        a->step.budget = AGENT_TIME;
    return 0;
}
