/* agent.c - the loop; see agent.h.
 *
 *     while the run goes on:  observe -> think -> act -> record
 *
 * observe  waits until the screen rests, takes a picture, judges what the last action changed
 * think    shows it to the model and gets a step that can be read, asking again if need be
 * act      writes each action down, syncs, performs it
 * record   prints, adds up, syncs
 *
 * A function of these returns -1 when the run breaks off; a run that comes to its own end sets
 * result->status instead.  What is to be told to the model about a step is gathered in `lead`, which
 * opens its next turn.
 */
#include "agent/agent.h"

#include "agent/context.h"
#include "agent/wording.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ATTEMPTS = 4,      /* one reply and three more */
    MAX_ERRORS = 5,    /* in a row */
    REPEATS_TOLD = 3,  /* same action, same screen: say so */
    REPEATS_ENDED = 5, /* ... and give up */
    HELD_STEPS = 10,   /* longest that a key may stay down */
    TEXT_MAX = 1 << 20,
};
static const double tile_level = 3.0; /* a caret blinking or one character typed stays below */

struct agent {
    const struct agent_options *o;
    struct agent_result *r;
    struct context *context;
    int64_t start;

    /* the step at hand */
    int number;
    struct image frame;
    enum agent_status budget; /* the one that is used up, or RUNNING */
    struct step step;
    enum action_fault fault; /* of reading the reply */
    char *reply;             /* as history holds it */
    struct context_cost cost;
    double ms[PHASES];
    int generated, forced;
    bool as_said; /* the reply in the session is byte for byte what history holds */

    /* from one step to the next */
    char *lead;          /* opens the next turn: the task, then what came of the last step */
    struct image before; /* the screen before the last step's actions */
    char *signature;     /* the last step's actions */
    const char *tool;    /* what the last step called */
    char *result;        /* what it gave, or its error */
    bool failed;         /* it is an error */
    bool expects_change;
    int repeats, errors;
};

/* ---- names ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int exit;
} statuses[] = {
    [AGENT_RUNNING] = {"running", 0},
    [AGENT_ANSWERED] = {"answered", 0},
    [AGENT_INFEASIBLE] = {"infeasible", ERR_FAILED},
    [AGENT_DRY_RUN] = {"dry-run", 0},
    [AGENT_STEPS] = {"steps", ERR_STEPS},
    [AGENT_TOKENS] = {"tokens", ERR_STEPS},
    [AGENT_TIME] = {"time", ERR_TIME},
    [AGENT_LOOP] = {"loop", ERR_UNSURE},
    [AGENT_ERRORS] = {"errors", ERR_UNSURE},
    [AGENT_UNPARSABLE] = {"unparsable", ERR_MODEL},
    [AGENT_STOPPED] = {"stopped", ERR_STOPPED},
    [AGENT_FAILED] = {"failed", ERR_ENV},
};

const char *agent_status_name(enum agent_status s)
{
    return statuses[s].name;
}

int agent_exit_code(enum agent_status s, const struct err *e)
{
    return s == AGENT_FAILED && e->kind ? (int)e->kind : statuses[s].exit;
}

static double seconds_since_start(const struct agent *a)
{
    return clock_ms_since(a->start) / 1000;
}

static enum agent_status budget_used_up(const struct agent *a)
{
    const struct agent_options *o = a->o;
    if (a->number >= o->max_steps)
        return o->dry_run ? AGENT_DRY_RUN : AGENT_STEPS;
    if (seconds_since_start(a) >= o->max_seconds)
        return AGENT_TIME;
    if (o->max_tokens && a->r->generated >= o->max_tokens)
        return AGENT_TOKENS;
    return AGENT_RUNNING;
}

static void set_text(char **at, char *text)
{
    free(*at);
    *at = text;
}

/* ---- observe ---------------------------------------------------------------------------------- */

/* What the last step changed, and what the model is told about it. */
static int judge_last_step(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    double tiles = image_tiles_changed(&a->before, &a->frame, tile_level);
    bool changed = tiles > 0;
    trace_begin(o->trace, a->number - 1, "effect");
    trace_bool(o->trace, "changed", changed);
    trace_number(o->trace, "tiles", tiles);
    if (trace_end(o->trace, e))
        return -1;
    a->repeats = changed || o->dry_run ? 0 : a->repeats;
    if (a->repeats >= REPEATS_ENDED) {
        a->r->status = AGENT_LOOP;
        return 0;
    }
    if (a->repeats >= REPEATS_TOLD && !a->failed) {
        set_text(&a->result,
                 xasprintf("the same action was done %d times without any visible effect; try another way",
                           a->repeats));
        a->failed = true;
    }
    if (!changed && a->expects_change && !a->failed && !*a->result && !o->dry_run)
        set_text(&a->result, xstrdup(o->dialect->no_effect));
    char *lead = (a->failed ? wording_error : wording_output)(o->dialect, a->tool, a->result, e);
    if (!lead)
        return -1;
    set_text(&a->lead, lead);
    if (!*a->result)
        return 0;
    trace_begin(o->trace, a->number - 1, "tool_output");
    trace_text(o->trace, "text", a->result);
    trace_bool(o->trace, "error", a->failed);
    return trace_end(o->trace, e);
}

static int record_observation(struct agent *a, const struct settled *settled, struct err *e)
{
    struct trace *t = a->o->trace;
    char hash[17], title[256] = "", class[128] = "";
    struct buf json;
    uint64_t h = image_hash(&a->frame);
    int number;
    if (trace_frame(t, &a->frame, h, &number, e))
        return -1;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)h);
    screen_active_window(a->o->screen, title, sizeof title, class, sizeof class);
    buf_init(&json, TEXT_MAX);
    buf_puts(&json, "{\"title\": ");
    buf_put_json(&json, title, strlen(title));
    buf_puts(&json, ", \"class\": ");
    buf_put_json(&json, class, strlen(class));
    buf_puts(&json, "}");
    trace_begin(t, a->number, "observe");
    trace_int(t, "frame", number);
    trace_text(t, "hash", hash);
    trace_number(t, "settle_ms", settled->ms);
    trace_text(t, "settle_why", settled->why);
    trace_number(t, "capture_ms", a->ms[PHASE_SEE]);
    trace_json(t, "window", json.data);
    buf_free(&json);
    return trace_end(t, e);
}

/* Waits until the screen rests, looks, and shows it to the model. */
static int observe(struct agent *a, struct err *e)
{
    const struct agent_options *o = a->o;
    struct settled settled;
    if (screen_settle(o->screen, &o->settle, &settled, e))
        return -1;
    int64_t start = clock_ns();
    if (screen_capture(o->screen, &a->frame, e))
        return -1;
    a->ms[PHASE_SETTLE] = settled.ms;
    a->ms[PHASE_SEE] = clock_ms_since(start);
    if (record_observation(a, &settled, e) || (a->number > 1 && judge_last_step(a, e)))
        return -1;
    if (a->r->status != AGENT_RUNNING)
        return 0;
    if (context_observe(a->context, a->lead, &a->frame, &a->cost, e))
        return -1;
    a->ms[PHASE_READ] = a->cost.ms;
    trace_begin(o->trace, a->number, "prompt");
    trace_int(o->trace, "tokens_total", a->cost.total);
    trace_int(o->trace, "tokens_reused", a->cost.reused);
    trace_int(o->trace, "tokens_prefilled", a->cost.prefilled);
    trace_int(o->trace, "images", a->cost.images);
    trace_bool(o->trace, "cut", a->cost.cut);
    trace_number(o->trace, "ms", a->cost.ms);
    return trace_end(o->trace, e);
}

/* ---- think ------------------------------------------------------------------------------------ */

static int record_reply(struct agent *a, const struct generated *g, float temperature, struct err *e)
{
    static const char *const finish[] = {"stop", "length", "grammar", "cancelled"};
    struct trace *t = a->o->trace;
    trace_begin(t, a->number, "generate");
    trace_text(t, "text", g->text.data ? g->text.data : "");
    trace_int(t, "tokens", g->n);
    trace_int(t, "forced", g->forced);
    trace_text(t, "finish", finish[g->finish]);
    trace_number(t, "temperature", (double)temperature);
    trace_number(t, "ms", g->ms);
    if (a->o->log_tokens) {
        int64_t at;
        int32_t *ids = xmalloc((unsigned long)g->n + 1, sizeof *ids);
        for (int i = 0; i < g->n; i++)
            ids[i] = g->choices[i].id;
        int rc = trace_tokens(t, ids, g->n, &at, e);
        free(ids);
        if (rc)
            return -1;
        trace_int(t, "tokens_at", at);
    }
    return trace_end(t, e);
}

/* A first reply as the dialect wants it; the next ones a little cooler, then warmer.  After an action
 * that changed nothing even the first is warmer: the same question would get the same answer. */
static float temperature_of(const struct agent *a, int attempt)
{
    float t = a->o->sampling.temperature;
    if (attempt == 0)
        return a->repeats ? fmaxf(t, 0.3f * (float)a->repeats) : t;
    if (t == 0)
        return 0.3f * (float)attempt;
    return attempt == 1 ? fmaxf(t - 0.1f, 0.1f) : t + 0.1f * (float)(attempt - 1);
}

/* One attempt: 0 when the reply can be read, 1 when not (the reason in e), -1 on failure. */
static int attempt(struct agent *a, int number, struct err *e)
{
    const struct agent_options *o = a->o;
    struct mind_request r = {.goal = a->budget == AGENT_RUNNING ? GOAL_STEP : GOAL_ANSWER,
                             .sampling = o->sampling,
                             .think = o->dialect->think,
                             .reroll = number,
                             .cancel = screen_stop_flag()};
    struct generated g;
    r.sampling.temperature = temperature_of(a, number);
    int rc = context_think(a->context, &r, &g, e);
    if (rc == 0)
        rc = record_reply(a, &g, r.sampling.temperature, e);
    if (rc == 0 && g.finish == FINISH_CANCELLED)
        rc = err_set(e, ERR_STOPPED, "stopped while the model was deciding");
    if (rc == 0) {
        a->ms[PHASE_WRITE] += g.ms;
        a->generated += g.n;
        a->forced += g.forced;
        set_text(&a->reply, wording_history(g.text.data));
        a->as_said = !o->dialect->think;
        step_free(&a->step);
        a->fault = action_parse(g.text.data, g.text.len, o->dialect, a->frame.w, a->frame.h, &a->step, e);
        rc = a->fault != FAULT_NONE;
    }
    generated_free(&g);
    return rc;
}

static int record_fault(struct agent *a, const char *code, const char *message, struct err *e)
{
    trace_begin(a->o->trace, a->number, "error");
    trace_text(a->o->trace, "code", code);
    trace_text(a->o->trace, "message", message);
    progress_trouble(a->o->progress, message);
    return trace_end(a->o->trace, e);
}

static int think(struct agent *a, struct err *e)
{
    int rc = 1;
    for (int i = 0; i < ATTEMPTS && rc > 0; i++) {
        struct err unread = ERR_INIT;
        rc = attempt(a, i, &unread);
        if (rc < 0)
            *e = unread;
        else if (rc > 0 && record_fault(a, action_fault_name(a->fault), unread.text, e))
            return -1;
    }
    if (rc > 0) {
        a->r->status = AGENT_UNPARSABLE;
        return err_set(e, ERR_MODEL, "no usable reply in %d attempts; the last one: %.200s", ATTEMPTS,
                       a->reply);
    }
    if (rc < 0 || context_accept(a->context, a->reply, a->as_said, e))
        return -1;
    struct trace *t = a->o->trace;
    progress_thought(a->o->progress, a->number, a->step.thought ? a->step.thought : "");
    trace_begin(t, a->number, "step");
    trace_text(t, "note", a->step.note);
    trace_text(t, "thought", a->step.thought);
    trace_int(t, "repairs", a->step.repairs);
    return trace_end(t, e);
}

/* ---- act -------------------------------------------------------------------------------------- */

static bool should_change(enum action_kind k)
{
    return k == ACT_CLICK || k == ACT_TYPE || k == ACT_KEY || k == ACT_SCROLL || k == ACT_DRAG ||
           k == ACT_HOLDTAP;
}

static int record_action(struct agent *a, int index, const char *what, struct err *e)
{
    struct trace *t = a->o->trace;
    struct buf json;
    buf_init(&json, TEXT_MAX);
    action_to_json(&a->step.actions[index], &json);
    trace_begin(t, a->number, "action");
    trace_int(t, "index", index);
    trace_text(t, "what", what);
    trace_json(t, "action", json.data);
    buf_free(&json);
    return trace_end(t, e);
}

/* Performs one action that was written down; a failure that the model can be told of is not ours. */
static int perform(struct agent *a, int index, struct err *e)
{
    const struct agent_options *o = a->o;
    struct screen_rect view = screen_view(o->screen);
    struct exec_place place = {view.x, view.y, (double)view.w / a->frame.w, (double)view.h / a->frame.h};
    struct exec_result done = {0};
    struct err why = ERR_INIT;
    enum action_fault fault = FAULT_NONE;
    if (trace_sync(o->trace, e))
        return -1;
    if (!o->dry_run)
        fault = action_execute(o->screen, &a->step.actions[index], &place, &done, &why);
    a->ms[PHASE_ACT] += done.ms;
    trace_begin(o->trace, a->number, "exec");
    trace_int(o->trace, "index", index);
    trace_bool(o->trace, "ok", fault == FAULT_NONE);
    if (fault != FAULT_NONE)
        trace_text(o->trace, "error", why.text);
    trace_int(o->trace, "events", done.events);
    trace_number(o->trace, "ms", done.ms);
    if (trace_end(o->trace, e))
        return -1;
    if (fault == FAULT_NONE)
        return 0;
    if (fault == FAULT_STOPPED || why.kind == ERR_STOPPED || why.kind == ERR_ENV) {
        *e = why; /* stopped, or the display is lost */
        return -1;
    }
    progress_trouble(o->progress, why.text);
    set_text(&a->result, xstrdup(why.text));
    a->failed = true;
    return 0;
}

static void finish(struct agent *a, const struct action *last)
{
    a->r->answer = xstrdup(last->text ? last->text : "");
    if (a->budget != AGENT_RUNNING)
        a->r->status = a->budget;
    else
        a->r->status = last->kind == ACT_INFEASIBLE ? AGENT_INFEASIBLE : AGENT_ANSWERED;
}

static int act(struct agent *a, struct err *e)
{
    struct buf what;
    int rc = 0;
    buf_init(&what, TEXT_MAX);
    set_text(&a->result, xstrdup(""));
    a->failed = a->expects_change = false;
    a->tool = wording_tool(a->o->dialect, a->step.actions[0].kind, a->reply);
    for (int i = 0; i < a->step.nactions && rc == 0 && !a->failed; i++) {
        const struct action *action = &a->step.actions[i];
        size_t at = what.len;
        action_describe(action, &what);
        progress_action(a->o->progress, what.data + at);
        rc = record_action(a, i, what.data + at, e);
        if (action_ends_run(action->kind)) {
            finish(a, action);
            break;
        }
        a->expects_change |= should_change(action->kind);
        if (rc == 0)
            rc = perform(a, i, e);
        buf_putc(&what, '\n');
    }
    a->errors = a->failed ? a->errors + 1 : 0;
    if (a->errors >= MAX_ERRORS)
        a->r->status = AGENT_ERRORS;
    a->repeats = a->signature && !strcmp(a->signature, what.data) ? a->repeats + 1 : 1;
    set_text(&a->signature, buf_take(&what));
    buf_free(&what);
    return rc;
}

/* ---- record ----------------------------------------------------------------------------------- */

static int record(struct agent *a, struct err *e)
{
    struct agent_result *r = a->r;
    struct progress_tokens tokens = {a->cost.reused, a->cost.prefilled, a->generated - a->forced, a->forced,
                                     a->cost.images};
    progress_times(a->o->progress, a->ms, &tokens);
    r->steps = a->number;
    r->generated += a->generated;
    r->forced += a->forced;
    r->prefilled += a->cost.prefilled;
    r->reused += a->cost.reused;
    for (int p = 0; p < PHASES; p++)
        r->ms[p] += a->ms[p];
    if (a->number % HELD_STEPS == 0)
        screen_release_all(a->o->screen); /* a key that the model pressed and forgot */
    image_free(&a->before);
    if (image_copy(&a->before, &a->frame, e))
        return -1;
    return trace_sync(a->o->trace, e);
}

/* ---- the run ---------------------------------------------------------------------------------- */

static int one_step(struct agent *a, struct err *e)
{
    a->number++;
    a->generated = a->forced = 0;
    memset(a->ms, 0, sizeof a->ms);
    if (observe(a, e))
        return -1;
    if (a->r->status != AGENT_RUNNING) /* going in circles: seen only now */
        return 0;
    if (think(a, e) || act(a, e))
        return -1;
    return record(a, e);
}

static int steps(struct agent *a, struct err *e)
{
    while (a->r->status == AGENT_RUNNING) {
        a->budget = budget_used_up(a);
        if (a->budget != AGENT_RUNNING && (a->budget == AGENT_DRY_RUN || !a->o->force_answer)) {
            a->r->status = a->budget;
            return 0;
        }
        if (one_step(a, e))
            return -1;
    }
    return 0;
}

static int record_end(struct agent *a, const char *error, struct err *e)
{
    const struct agent_result *r = a->r;
    struct trace *t = a->o->trace;
    char totals[256];
    snprintf(totals, sizeof totals,
             "{\"steps\": %d, \"seconds\": %.3f, \"generated\": %lld, \"forced\": %lld, \"prefilled\": %lld, "
             "\"reused\": %lld}",
             r->steps, r->seconds, (long long)r->generated, (long long)r->forced, (long long)r->prefilled,
             (long long)r->reused);
    trace_begin(t, a->number, "end");
    trace_text(t, "status", agent_status_name(r->status));
    if (r->answer)
        trace_text(t, "answer", r->answer);
    if (error)
        trace_text(t, "error", error);
    trace_json(t, "totals", totals);
    return trace_end(t, e) || trace_sync(t, e) ? -1 : 0;
}

static void agent_free(struct agent *a)
{
    context_free(a->context);
    image_free(&a->frame);
    image_free(&a->before);
    step_free(&a->step);
    free(a->reply);
    free(a->lead);
    free(a->signature);
    free(a->result);
}

int agent_run(const struct agent_options *o, struct agent_result *r, struct err *e)
{
    struct agent a = {.o = o, .r = r, .start = clock_ns(), .result = xstrdup("")};
    struct screen_rect view = screen_view(o->screen);
    struct wording w = {o->task, o->max_steps, view.w, view.h, o->max_seconds};
    *r = (struct agent_result){.status = AGENT_RUNNING};
    a.lead = wording_task(o->dialect, o->task);
    char *system = wording_system(o->dialect, &w, e);
    int rc = -1;
    if (system)
        a.context = context_new(o->mind, o->dialect, o->window, o->max_images, system, e);
    if (a.context)
        rc = steps(&a, e);
    screen_release_all(o->screen);
    r->seconds = seconds_since_start(&a);
    if (rc && r->status != AGENT_UNPARSABLE)
        r->status = e->kind == ERR_STOPPED ? AGENT_STOPPED : AGENT_FAILED;
    if (record_end(&a, rc ? e->text : NULL, rc ? NULL : e) && rc == 0) {
        r->status = AGENT_FAILED;
        rc = -1;
    }
    free(system);
    agent_free(&a);
    return rc;
}
