/* account.c - writes run.json, which `stop`, `resume` and `replay` read, and prints the outcome of a run.
 * See job.h.
 *
 * stdout gets the answer, or one object with --json; progress and messages go to stderr. */
#include "run/job.h"

#include "base/json.h"
#include "base/utf8.h"
#include "cli/version.h"
#include "remote/protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- run.json -------------------------------------------------------------------------------- */

/* Sets a member to 16 hexadecimal digits. */
static void set_hash(json_t *object, const char *key, uint64_t hash)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
    json_set_text(object, key, digits);
}

/* Returns a description of the model and of its computation, owned by the caller. */
static json_t *model_json(const struct job_model *m)
{
    struct endpoint *far = m->endpoint;
    json_t *all = json_object();
    json_set_text(all, "name", far ? far->model : m->dir ? m->dir : "script");
    if (far) {
        json_set_text(all, "base_url", far->base);
        json_set_text(all, "api", far->protocol->name);
        json_t *without = far->own ? json_pack("[s]", "states") : json_pack("[s, s]", "tokens", "states");
        if (!endpoint_gives_odds(far))
            json_array_append_new(without, json_string("alternatives")); /* see job_tell_model() */
        json_object_set_new(all, "without", without);
    }
    if (!m->engine)
        return all;
    set_hash(all, "hash", engine_hash(m->engine));
    json_set_text(all, "isa", engine_isa(m->engine));
    json_object_set_new(all, "rounded_matrices", json_integer(engine_rounded_matrices(m->engine)));
    json_object_set_new(all, "threads", json_integer(engine_threads(m->engine)));
    if (m->hashed)
        set_hash(all, "weights", m->hash);
    else
        json_object_set_new(all, "weights", json_null());
    autofree char *dir = realpath(m->dir, NULL);
    json_set_text(all, "dir", dir);
    return all;
}

static json_t *dialect_json(const struct job *j)
{
    json_t *all = json_object();
    json_set_text(all, "name", j->dialect->name);
    json_set_text(all, "sha256", j->dialect->sha256);
    json_set_text(all, "source", j->dialect_source);
    return all;
}

static json_t *policy_json(const struct policy *p)
{
    json_t *all = json_object();
    json_set_text(all, "name", policy_name(p));
    json_set_text(all, "sha256", policy_sha256(p));
    json_object_set_new(all, "limits", policy_limits_json(p));
    return all;
}

static json_t *display_json(const struct job *j)
{
    struct screen_rect view = screen_view(j->screen);
    json_t *all = json_object();
    json_set_text(all, "name", screen_name(j->screen));
    json_object_update_new(
        all, json_pack("{s:i, s:i, s:i, s:i}", "x", view.x, "y", view.y, "w", view.w, "h", view.h));
    return all;
}

int job_record(struct job *j, const char *status, int exit_code, struct err *e)
{
    json_t *all = json_pack("{s:i}", "schema", 1), *argv = json_array();
    json_set_text(all, "version", HOLORUN_VERSION);
    json_set_text(all, "build", *j->build ? j->build : NULL);
    json_set_text(all, "parent", j->resume.parent);
    json_set_text(all, "task", j->task);
    for (int i = 0; i < j->argc; i++)
        json_array_append_new(argv, json_clean_string(j->argv[i]));
    json_object_set_new(all, "argv", argv);
    json_object_set_new(all, "warm_up", json_boolean(j->warm_up));
    json_set_text(all, "started", j->started);
    json_set_text(all, "status", status);
    if (exit_code >= 0)
        json_object_set_new(all, "exit", json_integer(exit_code));
    json_object_set_new(all, "model", model_json(j->model));
    json_object_set_new(all, "dialect", dialect_json(j));
    json_object_set_new(all, "policy", policy_json(j->policy));
    json_object_set_new(all, "display", display_json(j));
    json_object_set_new(all, "settings", options_json(job_options, &j->s));
    autofree char *line = json_line(all, JSON_REAL_PRECISION(12)), *text = xasprintf("%s\n", line);
    int rc = trace_run_json(j->trace, text, strlen(text), e);
    json_decref(all);
    return rc;
}

/* ---- the outcome ----------------------------------------------------------------------------- */

static json_t *server_json(const struct agent_server *s)
{
    json_t *all = json_pack("{s:i, s:I}", "replies", s->replies, "prompt", (json_int_t)s->prompt);
    json_object_set_new(all, "cached", s->says_cached ? json_integer(s->cached) : json_null());
    if (s->currency && *s->currency) {
        json_set_rounded(all, "cost", s->cost, 9);
        json_set_text(all, "currency", s->currency);
    }
    return all;
}

/* Prints the limits of a model behind an endpoint, or advice about the embedded model. */
void job_tell_model(const struct job *j)
{
    const struct endpoint *far = j->model->endpoint;
    if (j->model == &j->own && !far && !j->s.fake && !j->s.model && !j->plain && !j->planner)
        job_advise_model(j);
    if (!far)
        return;
    autofree char *text = xasprintf(
        "%s at %s; the run has no saved states and cannot be verified token by token%s", far->model,
        far->base, endpoint_gives_odds(j->model->endpoint) ? "" : "; the server returns no probabilities");
    progress_head(&j->progress, "model", text);
}

static void print_json(const struct job *j, const struct agent_result *r, const struct err *e, int code)
{
    static const char *const phases[PHASES] = {"settle", "see", "read", "decide", "act"};
    json_t *all = json_pack("{s:s, s:i}", "status", agent_status_name(r->status), "exit", code);
    json_t *deeds = r->deeds ? json_loads(r->deeds, 0, NULL) : NULL, *ms = json_object();
    json_set_text(all, "answer", r->answer);
    if (r->said)
        json_set_text(all, "said", r->said);
    json_set_text(all, "did", r->did);
    json_object_set_new(all, "actions", deeds ? deeds : json_array());
    if (job_planner_json(j))
        json_object_set_new(all, "plan", json_loads(job_planner_json(j), 0, NULL));
    if (e->kind)
        json_set_text(all, "error", e->text);
    if (r->limit) {
        json_set_text(all, "limit", r->limit);
        json_set_rounded(all, "allowed", r->allowed, r->allowed == trunc(r->allowed) ? 0 : 9);
    }
    json_object_set_new(all, "steps", json_integer(r->steps));
    json_set_rounded(all, "seconds", r->seconds, 3);
    json_set_text(all, "run_dir", j->trace ? trace_dir(j->trace) : NULL);
    json_set_text(all, "report", j->report);
    for (int p = 0; p < PHASES; p++)
        json_set_rounded(ms, phases[p], r->ms[p], 1);
    json_object_set_new(all, "ms", ms);
    json_object_set_new(all, "tokens",
                        json_pack("{s:I, s:I, s:I, s:I}", "generated", (json_int_t)r->generated, "forced",
                                  (json_int_t)r->forced, "prefilled", (json_int_t)r->prefilled, "reused",
                                  (json_int_t)r->reused));
    json_object_set_new(
        all, "cancelled",
        json_pack("{s:i, s:I}", "turns", r->cancelled.turns, "tokens", (json_int_t)r->cancelled.tokens));
    if (r->server.replies)
        json_object_set_new(all, "server", server_json(&r->server));
    options_print_json(all, JSON_ROUNDED);
}

void job_outcome(const struct job *j, const struct agent_result *r, const struct err *e, int code)
{
    const struct progress *p = &j->progress;
    char text[128], limit[ERR_TEXT + 128];
    if (!j->began) {
        fprintf(stderr, "holorun: %s\n", e->text);
        if (j->s.json)
            print_json(j, r, e, code);
        return;
    }
    const struct status_row *row = status_row(r->status);
    bool dry = r->status == AGENT_DRY_RUN;
    const char *why = e->kind ? e->text : r->status == AGENT_ANSWERED || r->said ? r->answer : row->meaning;
    if (!e->kind && r->limit) {
        snprintf(limit, sizeof limit, "%s (%s%s %.10g)", why, strchr(r->limit, '.') ? "" : "--", r->limit,
                 r->allowed);
        why = limit;
    }
    bool done = r->status == AGENT_ANSWERED && code == 0;
    progress_tail(p, done ? STATUS_GREEN : code ? row->colour : STATUS_AMBER, done ? "done" : "ended", why);
    /* the words of a model that reached no result */
    const char *said = r->said ? r->said : row->own ? NULL : r->answer;
    if (said && *said)
        progress_head(p, "said", said);
    snprintf(text, sizeof text, "%d step%s in %.1f s", r->steps, r->steps == 1 ? "" : "s", r->seconds);
    progress_head(p, "took", text);
    if (r->server.currency && *r->server.currency) {
        snprintf(text, sizeof text, "%.4g %s", r->server.cost, r->server.currency);
        progress_head(p, "cost", text);
    }
    progress_head(p, "run", trace_dir(j->trace));
    if (j->report)
        progress_head(p, "see", j->report);
    if (r->did)
        progress_head(p, "did", r->did);
    if (j->s.quiet && code) /* --quiet suppresses progress, not failures */
        fprintf(stderr, "holorun: %s%s%s\n", why, r->status == AGENT_UNVERIFIED ? "; " : "",
                r->status == AGENT_UNVERIFIED ? r->did : "");
    if (j->s.json)
        print_json(j, r, e, code);
    else if ((row->own || dry) && r->answer)
        utf8_print_result(stdout, r->answer, strlen(r->answer));
}
