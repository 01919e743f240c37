/* open_planner.c - a planner in place of a model: plans the first window before the run begins, asks the
 * user, and supplies the player with the steps of each window.
 *
 * Nothing is pressed before the whole task is understood.  Without a user who confirms the steps they are
 * performed only with --confirm yes-to-all and if the planner is sure (planner.h).  A model without vision is
 * asked where the rules do not decide; it is opened when that happens. */
#include "run/job.h"

#include "base/clock.h"
#include "base/json.h"
#include "checkpoint/find.h"
#include "cli/shared_options.h"
#include "model/config.h"
#include "plain/player.h"
#include "planner/planner.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEGIN_MS = 4000, SAME_LEAST = 6, READ_MS = 4000, AGAIN_MS = 200, STEPS_TEXT = 1 << 16 };

struct job_planner {
    struct job *j;
    struct planner *planner;
    struct plan first;
    char *json;            /* of the first plan */
    bool began;            /* the first plan was given to the player */
    bool asks;             /* --model has no vision: it can be asked, but not see a screen */
    struct engine *engine; /* of that model, owned; NULL: not opened, or of the job */
    struct buf performed;  /* steps that the player got, a line each */
    struct player_source source;
};

static const struct snapshot *read_window(struct job *j, char *why, size_t size)
{
    struct err e = ERR_INIT;
    const struct snapshot *now = NULL;
    struct elements_scope scope = {.closed = true};
    if (elements_snapshot(j->elements, &scope, READ_MS, &now, &e) == 0 && now->n)
        return now;
    snprintf(why, size, "%s", e.kind ? e.text : "the window describes no elements");
    return NULL;
}

/* Asks the user about a plan.  CONFIRM_NOBODY: no user can be asked. */
static enum confirm_answer ask(const struct job *j, const struct plan *plan)
{
    struct confirm confirm;
    struct buf steps, json;
    const char *who;
    if (job_confirm(j, &confirm, NULL) || confirm.method == CONFIRM_YES)
        return CONFIRM_NOBODY;
    buf_init(&steps, STEPS_TEXT);
    buf_init(&json, STEPS_TEXT);
    plan_print(plan, &steps);
    buf_puts(&json, "{\"kind\": \"plan\", \"task\": ");
    buf_put_json(&json, j->task, strlen(j->task));
    buf_puts(&json, ", \"plan\": ");
    plan_json(plan, &json);
    buf_putc(&json, '}');
    struct confirm_line lines[] = {{"task", j->task},
                                   {"understood", steps.data ? steps.data : ""},
                                   {"sure", plan->sure ? "yes" : "no: below the bounds for acting alone"}};
    struct confirm_question q = {.lines = lines, .n_lines = 3, .json = json.data};
    enum confirm_answer a = confirm_ask(&confirm, &q, screen_stop_flag(j->screen), &who);
    buf_free(&steps);
    buf_free(&json);
    return a;
}

/* Returns whether sure steps are performed without a user: about tasks of strangers, one report of success in
 * four was false. */
static bool acts_alone(const struct job *j)
{
    struct confirm confirm;
    return job_confirm(j, &confirm, NULL) == 0 && confirm.method == CONFIRM_YES;
}

/* Returns whether the steps may be performed, else the reason is in why.  *answered: a user was asked. */
static bool is_allowed(const struct job *j, const struct plan *plan, bool *answered, char *why, size_t size)
{
    static const char *const reasons[] = {[CONFIRM_DECLINED] = "you declined: ",
                                          [CONFIRM_TIMED_OUT] = "you did not answer in time: ",
                                          [CONFIRM_NOBODY] = "not sure enough to act without a user: ",
                                          [CONFIRM_STOPPED] = "stopped: "};
    enum confirm_answer answer = plan->steps.n ? ask(j, plan) : CONFIRM_NOBODY;
    struct buf b;
    *answered = answer != CONFIRM_NOBODY;
    bool alone = plan->sure && (!plan->steps.n || acts_alone(j));
    if (answer == CONFIRM_ALLOWED || (answer == CONFIRM_NOBODY && (alone || j->proposals)))
        return true;
    buf_init(&b, size);
    buf_puts(&b, answer == CONFIRM_NOBODY && plan->sure ? "without a user only with --confirm yes-to-all: "
                                                        : reasons[answer]);
    plan_print(plan, &b);
    if (*plan->why) /* the word that no step covers, and the nearest readings */
        buf_printf(&b, "; %s", plan->why);
    snprintf(why, size, "%s", b.data ? b.data : "");
    buf_free(&b);
    return false;
}

static bool can_ask(const struct job *j)
{
    struct confirm confirm;
    return job_confirm(j, &confirm, NULL) == 0 && confirm.method != CONFIRM_NEVER &&
           confirm.method != CONFIRM_YES;
}

/* Plans by all that is allowed, where the rules did not decide. */
static void plan_harder(struct job_planner *p, const struct snapshot *now, struct plan *out)
{
    bool shown = can_ask(p->j) || p->j->s.dry_run || p->j->proposals;
    if (!shown && !p->asks)
        return;
    plan_free(out);
    planner_next(p->planner, now, shown ? PLAN_PROPOSAL : PLAN_MODEL, out);
}

/* Plans the first window, which may still be opening.  Returns false with the reason. */
static bool plan_first(struct job *j, struct job_planner *p, char *why, size_t size)
{
    int64_t start = clock_ns();
    int before = -1, same = 0; /* readings with the same number of elements */
    const struct snapshot *now;
    do {
        now = read_window(j, why, size);
        plan_free(&p->first);
        if (now) {
            planner_next(p->planner, now, PLAN_RULES, &p->first);
            snprintf(why, size, "%s", p->first.why);
        }
        if (now && p->first.end != PLAN_UNSURE && p->first.sure && now->n == before)
            return true;
        same = now && now->n == before ? same + 1 : 0;
        before = now ? now->n : -1;
        clock_sleep_ms(AGAIN_MS);
    } while (clock_ms_since(start) < BEGIN_MS && same < SAME_LEAST && !*screen_stop_flag(NULL));
    if (now && (p->first.end == PLAN_UNSURE || !p->first.sure)) {
        plan_harder(p, now, &p->first);
        snprintf(why, size, "%s", p->first.why);
    }
    return p->first.steps.n && p->first.end != PLAN_UNSURE; /* also of a window that does not stop changing */
}

/* Frees the planner.  Returns 0 if the model of the run may do the task instead, else -1 with e. */
static int refuse(struct job *j, bool answered, const char *why, struct err *e)
{
    bool ends = answered || j->planner->asks || j->s.planner == JOB_PLAIN_ONLY;
    job_planner_free(j);
    if (*screen_stop_flag(NULL))
        return err_set(e, ERR_STOPPED, "stopped while the task was being planned");
    return ends ? err_set(e, ERR_UNCLEAR, "not performed: %s", why) : 0;
}

static void tell(const struct job *j, const struct plan *plan)
{
    autobuf b = buf_of(STEPS_TEXT);
    plan_explain(plan, &b);
    if (!j->s.quiet && b.data)
        fprintf(stderr, "%s", b.data);
}

/* ---- the model without vision -------------------------------------------------------------------------- */

/* Returns whether --model names a model without vision. */
static bool is_text_model(const struct job *j)
{
    struct model_config c;
    struct err e = ERR_INIT;
    autofree char *dir = j->s.model && !ENDPOINT_GIVEN(j->s) ? model_find(j->s.model, &e) : NULL;
    return dir && config_load(&c, dir, &e) == 0 && config_check_vision(&c, dir, &e) != 0;
}

static struct engine *open_writer(void *arg, struct err *e)
{
    struct job_planner *p = arg;
    struct engine_options o = MODEL_ENGINE(p->j->s);
    autofree char *dir = model_find(p->j->s.model, e);
    o.dir = dir;
    o.cancel = screen_stop_flag(NULL);
    p->engine = dir ? engine_open(&o, e) : NULL;
    return p->engine;
}

int job_open_planner(struct job *j, struct err *e)
{
    bool only = j->s.planner == JOB_PLAIN_ONLY, answered = false;
    bool replaced = j->s.fake || j->plain || j->resume.parent || j->s.dialect || j->s.localizer ||
                    j->s.validator || (j->host && j->host->decide);
    char why[ERR_TEXT] = "";
    struct err odd = ERR_INIT;
    struct buf json;
    if (j->s.planner == JOB_PLAIN_NO || (replaced && !only) || j->plain)
        return 0;
    if (replaced || !j->elements)
        return err_set(e, ERR_USAGE,
                       "--planner only needs the elements of programs, and does not go with "
                       "--fake, --dialect, --localizer, --validator or resume");
    struct job_planner *p = j->planner = xcalloc(1, sizeof *p);
    p->j = j;
    buf_init(&p->performed, STEPS_TEXT);
    p->asks = is_text_model(j);
    const struct planner_model model = {.open = open_writer, .arg = p, .cancel = screen_stop_flag(NULL)};
    if (!(p->planner = planner_open(j->task, p->asks ? &model : NULL, &odd)))
        return refuse(j, false, odd.text, e);
    if (!plan_first(j, p, why, sizeof why))
        return refuse(j, false, why, e);
    buf_init(&json, STEPS_TEXT);
    plan_json(&p->first, &json);
    p->json = buf_take(&json);
    tell(j, &p->first);
    if (!j->s.dry_run && !is_allowed(j, &p->first, &answered, why, sizeof why))
        return refuse(j, answered, why, e);
    j->s.dialect = PLAYER_DIALECT;
    if (!j->s.max_steps && !j->s.dry_run)
        j->s.max_steps = PLAYER_STEPS;
    return 0;
}

/* ---- the player's source ------------------------------------------------------------------------------- */

static void record_plan(struct job *j, const struct plan *plan)
{
    autobuf json = buf_of(STEPS_TEXT);
    plan_json(plan, &json);
    trace_begin(j->trace, 0, "plan");
    trace_json(j->trace, "plan", json.data);
    trace_end(j->trace, NULL);
}

/* Gives a plan's steps to the player.  Returns 1, or 0 if there are none: the task is done. */
static int give(struct job_planner *p, struct plan *plan, struct plain_steps *more)
{
    int n = plan->steps.n;
    record_plan(p->j, plan);
    planner_accept(p->planner, plan);
    *more = plan->steps;
    for (int i = 0; i < n; i++) {
        plain_print(&plan->steps.s[i], &p->performed);
        buf_putc(&p->performed, '\n');
    }
    *plan = (struct plan){0};
    if (!n)
        plain_free(more);
    return n > 0;
}

static int next_steps(void *arg, const struct snapshot *now, bool last, struct plain_steps *more, char *why,
                      size_t size)
{
    struct job_planner *p = arg;
    struct plan plan;
    if (!p->began) {
        p->began = true;
        return give(p, &p->first, more);
    }
    bool answered;
    planner_next(p->planner, now, PLAN_RULES, &plan);
    if ((plan.end == PLAN_UNSURE || !plan.sure) && last)
        plan_harder(p, now, &plan);
    if (plan.end == PLAN_UNSURE || (!plan.sure && !last)) {
        snprintf(why, size, "not understood after the steps before: %.400s", plan.why);
        plan_free(&plan);
        return -1;
    }
    if (plan.steps.n && !is_allowed(p->j, &plan, &answered, why, size)) {
        plan_free(&plan);
        return -2;
    }
    return give(p, &plan, more);
}

struct llm *job_planner_llm(struct job *j)
{
    j->planner->source = (struct player_source){.arg = j->planner, .next = next_steps};
    return player_open((struct plain_steps){0}, j->screen, j->elements, &j->planner->source);
}

const bool *job_planner_unclear(const struct job *j)
{
    return j->planner ? &j->planner->source.unclear : NULL;
}

char *job_planner_text(const struct job *j)
{
    struct buf b;
    if (!j->planner)
        return NULL;
    buf_init(&b, STEPS_TEXT);
    buf_puts(&b, "I understood: ");
    plan_print(&j->planner->first, &b);
    if (!j->planner->first.sure)
        buf_puts(&b, "  (not sure enough to act without a user)");
    return buf_take(&b);
}

const char *job_planner_json(const struct job *j)
{
    return j->planner ? j->planner->json : NULL;
}

char *job_planner_steps(const struct job *j)
{
    return j->planner && j->planner->performed.len ? xstrdup(j->planner->performed.data) : NULL;
}

void job_planner_free(struct job *j)
{
    autofree struct job_planner *p = j->planner;
    if (p) {
        planner_free(p->planner);
        plan_free(&p->first);
        engine_close(p->engine);
        buf_free(&p->performed);
        free(p->json);
    }
    j->planner = NULL;
}
