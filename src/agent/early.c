/* early.c - a turn: observes and thinks, and does both again if the screen changes meanwhile.
 *
 * Think early, act late:
 *
 *     pause      early_ms without redraws, while the screen may still change
 *     capture    the model begins to think; a thread watches the screen
 *     commit     once the reply is there and the screen has settled (settle.c), the turn stands
 *
 * A change in the view before the commit cancels the turn: the model is stopped, and everything that the
 * turn has changed is restored: the conversation with its random numbers, the loop's counters, the record.
 * Only the event "cancelled" and two counters report it. After CANCELLED_MOST cancelled turns the next one
 * waits until the screen has settled and is not watched, so that a screen that never rests cannot stop the
 * run.
 *
 * The effect of an action is probably still to come, because a server or a timer is awaited, in two cases:
 * a press has changed nothing but the look of the pressed element; or an action other than typing has
 * replaced content by placeholders or blank space (screen/emptied.h). Then the wait continues for up to
 * effect_ms, in the first case until the first change, in the second until the area is no longer empty. With
 * --settle-quiet, --settle-min or --settle-max the user has said how long to wait, and it ends as usual.
 *
 * The thread uses the screen only while the model works (agent_watch() to agent_unwatch()), when the loop
 * does not; between these calls redraws are collected by the display system. Changes after the commit are
 * noticed before each press (screen/observed.h). */
#include "agent/private.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/pool.h"
#include "screen/emptied.h"
#include "screen/observed.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CANCELLED_MOST = 2 };
static const double early_ms = 30;
/* With --think-early auto: a turn begins early unless the model needed less than this for the last one. */
static const double worth_ms = 20;

/* Time for the effect of an action after the screen has settled without any, or emptied. */
static const double effect_ms = 700;

struct early { /* a turn and its cancelled predecessors */
    struct agent *a;
    struct settle_run *settle;
    int64_t rested; /* clock_ns() of the first end of the wait; 0: not yet */
    int64_t begin;
    double captured_ms; /* since begin */
    int cancelled;      /* turns */

    bool changed;       /* the screen has, since the capture */
    struct err failure; /* of the watch */
    volatile int stop;  /* stops the model: the screen has changed, or the run is to stop */
    bool watching;
    pthread_t thread;
    int end; /* eventfd that ends the thread */

    struct agent_outcome outcome; /* as before the turn */
    bool secret_spelled;
};

/* ---- the watch --------------------------------------------------------------------------------------- */

/* Compares the areas redrawn since the last call. Returns the ms to sleep before the next one, or -1 with
 * w->failure. */
static double look(struct early *w)
{
    double ms = settle_look(w->settle, &w->failure);
    struct screen_rect r = settle_redrawn(w->settle);
    if (ms >= 0 && r.w && observed_view_changed(w->a->o->screen, r, &w->changed, &w->failure))
        return -1;
    return ms;
}

static void *watch_thread(void *arg)
{
    struct early *w = arg;
    struct pollfd end = {w->end, POLLIN, 0};
    for (double ms = 0; ms >= 0 && !w->changed && poll(&end, 1, (int)ms) <= 0;) {
        ms = look(w);
        if (ms < 0 || w->changed || flag_up(screen_stop_flag(w->a->o->screen))) {
            flag_set(&w->stop, 1);
            flag_set(&w->a->run.cancel, 1);
        }
    }
    return NULL;
}

void agent_watch(struct agent *a)
{
    struct early *w = a->early;
    if (!w || w->changed || a->step.budget != AGENT_RUNNING)
        return;
    w->end = eventfd(0, EFD_CLOEXEC);
    w->watching = w->end >= 0 && thread_start(&w->thread, 0, watch_thread, w) == 0;
    if (!w->watching && w->end >= 0)
        close(w->end); /* without a thread the change is noticed later, in commit() */
}

int agent_unwatch(struct agent *a, struct err *e)
{
    struct early *w = a->early;
    if (!w)
        return 0;
    if (w->watching) {
        uint64_t one = 1;
        while (write(w->end, &one, sizeof one) < 0)
            ;
        pthread_join(w->thread, NULL);
        close(w->end);
        w->watching = false;
    }
    llm_set_cancel(a->o->llm, screen_stop_flag(a->o->screen)); /* from now on nobody sets w->stop */
    if ((w->changed || w->failure.kind) && flag_up(screen_stop_flag(a->o->screen)))
        return err_set(e, ERR_STOPPED, "stopped while the model was deciding");
    if (w->failure.kind)
        return err_set(e, w->failure.kind, "%s", w->failure.text);
    return w->changed ? err_set(e, ERR_FAILED, "the screen has changed since the screenshot") : 0;
}

/* ---- late effects ------------------------------------------------------------------------------------- */

static bool is_given(const struct settle *p)
{
    return p->quiet_ms >= 0 || p->min_ms >= 0 || p->max_ms >= 0;
}

/* Returns whether the last action was a press without an effect, or has emptied the view. first: the wait has
 * ended for the first time. */
static bool awaits_effect(const struct early *w, bool first)
{
    const struct agent *a = w->a;
    const struct image *now = settle_shown(w->settle);
    if (a->step.budget != AGENT_RUNNING || a->o->settle.known || is_given(&a->o->settle) ||
        (a->o->recorded && !a->o->idle))
        return false;
    return (first && a->outcome.pressed &&
            screen_only_feedback(&a->run.before, now, a->outcome.pressed_x, a->outcome.pressed_y)) ||
           (a->outcome.may_load && emptied_since(a->run.emptied, a->o->screen, &a->run.before, now));
}

/* Returns whether the wait is over. If an effect is still to come, it is continued, until effect_ms after its
 * first end. */
static bool is_over(struct early *w, struct settled *out)
{
    if (!settle_over(w->settle, out))
        return false;
    bool first = w->rested == 0;
    w->rested = first ? clock_ns() : w->rested;
    double left = effect_ms - clock_ms_since(w->rested);
    if (left > 0 && awaits_effect(w, first))
        settle_await_change(w->settle, left);
    return settle_over(w->settle, out);
}

/* ---- the end of a turn ----------------------------------------------------------------------------- */

static int record_committed(struct early *w, const char *why, double now, struct err *e)
{
    struct agent *a = w->a;
    struct trace *t = a->o->trace;
    trace_begin(t, a->step.number, "committed");
    trace_number(t, "captured_ms", w->captured_ms);
    trace_number(t, "committed_ms", now);
    trace_int(t, "cancelled", w->cancelled);
    trace_text(t, "settle_why", why);
    trace_number(t, "settle_ms", a->step.ms[PHASE_SETTLE]);
    return trace_end(t, e);
}

/* Waits until the screen has settled, and compares the view with the screenshot. Sets w->changed, or records
 * that the turn stands. An answer requested because a budget is used up waits for nothing. Returns -1 with
 * e. */
static int commit(struct early *w, struct err *e)
{
    struct agent *a = w->a;
    struct settled settled;
    int64_t start = clock_ns();
    bool waits = a->early && a->step.budget == AGENT_RUNNING;
    while (waits && !w->changed && !is_over(w, &settled)) {
        double ms = look(w);
        if (ms < 0)
            return err_set(e, w->failure.kind, "%s", w->failure.text);
        if (!w->changed && !is_over(w, &settled) && screen_wait(a->o->screen, ms, e))
            return -1;
    }
    if (waits && !w->changed &&
        observed_view_changed(a->o->screen, screen_view(a->o->screen), &w->changed, e))
        return -1;
    if (w->changed || (!a->early && !w->cancelled))
        return 0;
    settle_over(w->settle, &settled);
    a->step.ms[PHASE_SETTLE] = w->captured_ms + clock_ms_since(start); /* with the cancelled turns */
    return record_committed(w, settled.why, clock_ms_since(w->begin), e);
}

/* Restores everything as it was before the turn. Returns -1 with e. */
static int cancel(struct early *w, struct err *e)
{
    struct agent *a = w->a;
    struct trace *t = a->o->trace;
    int frame = a->step.frame_number, tokens = a->step.generated;
    double cost = a->step.server.cost;
    w->cancelled++;
    a->r->cancelled.turns++;
    a->r->cancelled.tokens += tokens;
    a->r->server.cost += cost; /* an endpoint charges for every token */
    a->r->status = AGENT_RUNNING;
    agent_outcome_free(&a->outcome);
    a->outcome = w->outcome;
    w->outcome = (struct agent_outcome){0};
    a->run.n_ids = a->run.kept_least; /* up to there the ids are still those recorded before the turn */
    a->run.secret_spelled = w->secret_spelled;
    agent_begin_step(a, a->step.number, AGENT_RUNNING);
    trace_drop(t);
    trace_begin(t, a->step.number, "cancelled");
    trace_int(t, "frame", frame);
    trace_number(t, "captured_ms", w->captured_ms);
    trace_number(t, "cancelled_ms", clock_ms_since(w->begin));
    trace_int(t, "tokens", tokens);
    return trace_end(t, e) || context_undo(a->run.context, e) ? -1 : 0;
}

/* Keeps the turn, and judges the last step if the turn did: only now its effect is certain. settled: the
 * screen had, so a step without an effect will have none. */
static int keep(struct early *w, bool settled, struct err *e)
{
    struct agent *a = w->a;
    double tiles = a->outcome.tiles;
    a->run.thought_ms = a->step.ms[PHASE_READ] + a->step.ms[PHASE_WRITE];
    agent_outcome_free(&w->outcome);
    if (tiles > 0 || (tiles == 0 && settled))
        agent_deeds_judge(a, a->step.number - 1, tiles > 0);
    return trace_release(a->o->trace, e);
}

/* ---- turns --------------------------------------------------------------------------------------------- */

/* expected: a screen that is waited for, which ends the wait by itself. A turn that repeats a recorded reply
 * cannot be undone. */
static bool is_early(const struct early *w, bool expected)
{
    const struct agent *a = w->a;
    bool follows = a->o->follows && a->o->follows(a->o->settle.arg);
    bool worth = llm_session(a->o->llm) && (!(a->run.thought_ms > 0) || a->run.thought_ms >= worth_ms);
    return w->cancelled < CANCELLED_MOST && a->step.budget == AGENT_RUNNING && !a->o->recorded && !expected &&
           !follows && (a->o->think_early == THINK_EARLY_AUTO ? worth : a->o->think_early == THINK_EARLY_YES);
}

static void prepare(struct early *w, bool early)
{
    struct agent *a = w->a;
    w->changed = false;
    flag_set(&w->stop, 0);
    w->outcome = agent_outcome_copy(&a->outcome);
    a->outcome.tiles = -1; /* not known yet */
    a->run.kept_least = a->run.n_ids;
    w->secret_spelled = a->run.secret_spelled;
    w->captured_ms = clock_ms_since(w->begin);
    a->early = early ? w : NULL;
    context_allow_undo(a->run.context, early ? &w->stop : NULL);
    if (early) /* no other turn is cancelled */
        trace_hold(a->o->trace);
}

static int see_and_think(struct early *w, const struct settled *settled, struct err *e)
{
    struct agent *a = w->a;
    if (agent_see(a, settled, e))
        return -1;
    settle_redrawn(w->settle); /* before the capture */
    if (a->r->status == AGENT_RUNNING && (agent_show(a, e) || agent_think(a, e)))
        return -1;
    return commit(w, e);
}

/* Makes one attempt at the turn. *again: it was cancelled. Returns -1 with e. */
static int attempt(struct early *w, bool *again, struct err *e)
{
    struct agent *a = w->a;
    struct settle patience = agent_patience(a);
    struct settled settled;
    bool early = is_early(w, patience.known != NULL);
    if (w->settle && settle_over(w->settle, &settled)) { /* the turn was cancelled after the wait */
        settle_end(w->settle);
        w->settle = NULL;
    }
    if (!w->settle) {
        w->settle = settle_begin(a->o->screen, &patience);
        w->rested = 0;
    }
    do
        if (settle_pause(w->settle, early ? early_ms : 0, e))
            return -1;
    while (!is_over(w, &settled) && !early);
    prepare(w, early);
    int rc = see_and_think(w, &settled, e);
    a->early = NULL;
    *again = w->changed && !flag_up(screen_stop_flag(a->o->screen));
    if (*again) {
        *e = (struct err)ERR_INIT;
        rc = cancel(w, e);
    } else {
        rc = keep(w, rc == 0 || !early, rc ? NULL : e) || rc ? -1 : 0;
    }
    context_allow_undo(a->run.context, NULL);
    return rc;
}

int agent_turn(struct agent *a, struct err *e)
{
    struct early w = {.a = a, .end = -1};
    bool again = true;
    int rc = 0;
    if (a->run.rewind_to)
        return agent_rewind(a, e) || agent_think(a, e) ? -1 : 0;
    if (agent_wait_for_human(a, e))
        return -1;
    w.begin = clock_ns();
    emptied_note_windows(a->run.emptied, a->o->screen);
    while (again && rc == 0)
        rc = attempt(&w, &again, e);
    settle_end(w.settle);
    return rc;
}
