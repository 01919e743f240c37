/* account.c - writes run.json, which `stop`, `resume` and `replay` read, and prints the outcome of a
 * run.  See job.h.
 *
 * stdout gets the answer, or with --json one object; everything a person watches goes to stderr.
 */
#include "run/job.h"

#include "base/utf8.h"
#include "cli/version.h"
#include "remote/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- run.json -------------------------------------------------------------------------------- */

/* Which model, and how it computes. */
static void put_engine(const struct job_model *m, struct buf *b)
{
    buf_printf(b, ", \"hash\": \"%016llx\", \"isa\": \"%s\", \"threads\": %d, \"weights\": ",
               (unsigned long long)engine_hash(m->engine), engine_isa(m->engine), engine_threads(m->engine));
    if (m->hashed)
        buf_printf(b, "\"%016llx\"", (unsigned long long)m->hash);
    else
        buf_puts(b, "null");
    char *dir = realpath(m->dir, NULL);
    buf_put_member(b, "dir", dir);
    free(dir);
}

int job_record(struct job *j, const char *status, int exit_code, struct err *e)
{
    struct screen_rect view = screen_view(j->screen);
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_puts(&b, "{\"schema\": 1");
    buf_put_member(&b, "version", HOLORUN_VERSION);
    buf_put_member(&b, "build", *j->build ? j->build : NULL);
    buf_put_member(&b, "parent", j->resume.parent);
    buf_put_member(&b, "task", j->task);
    buf_puts(&b, ", \"argv\": [");
    for (int i = 0; i < j->argc; i++) {
        buf_puts(&b, i ? ", " : "");
        buf_put_json(&b, j->argv[i], strlen(j->argv[i]));
    }
    buf_puts(&b, "]");
    buf_printf(&b, ", \"warm_up\": %s", j->warm_up ? "true" : "false");
    buf_put_member(&b, "started", j->started);
    buf_put_member(&b, "status", status);
    if (exit_code >= 0)
        buf_printf(&b, ", \"exit\": %d", exit_code);
    buf_puts(&b, ", \"model\": {\"name\": ");
    const struct endpoint *far = j->model->endpoint;
    const char *name = far ? far->model : j->model->dir ? j->model->dir : "script";
    buf_put_json(&b, name, strlen(name));
    if (far) {
        buf_put_member(&b, "base_url", far->base);
        buf_put_member(&b, "api", far->protocol->name);
        buf_printf(&b, ", \"without\": [\"tokens\", \"states\"%s]",
                   endpoint_gives_odds(j->model->endpoint) ? ""
                                                           : ", \"other places\""); /* see job_tell_model */
    }
    if (j->model->engine)
        put_engine(j->model, &b);
    buf_puts(&b, "}, \"dialect\": {\"name\": ");
    buf_put_json(&b, j->dialect->name, strlen(j->dialect->name));
    buf_put_member(&b, "sha256", j->dialect->sha256);
    buf_put_member(&b, "source", j->dialect_source);
    buf_puts(&b, "}, \"policy\": {\"name\": ");
    buf_put_json(&b, policy_name(j->policy), strlen(policy_name(j->policy)));
    buf_put_member(&b, "sha256", policy_sha256(j->policy));
    policy_put_limits(j->policy, &b);
    buf_puts(&b, "}, \"display\": {\"name\": ");
    buf_put_json(&b, screen_name(j->screen), strlen(screen_name(j->screen)));
    buf_printf(&b, ", \"x\": %d, \"y\": %d, \"w\": %d, \"h\": %d}, \"settings\": ", view.x, view.y, view.w,
               view.h);
    options_to_json(job_options, &j->s, &b);
    buf_puts(&b, "}\n");
    int rc = trace_run_json(j->trace, b.data, b.len, e);
    buf_free(&b);
    return rc;
}

/* ---- the outcome ----------------------------------------------------------------------------- */

static void put_server(struct buf *b, const struct agent_server *s)
{
    buf_printf(b, ", \"server\": {\"replies\": %d, \"prompt\": %lld, \"cached\": ", s->replies,
               (long long)s->prompt);
    if (s->says_cached)
        buf_printf(b, "%lld", (long long)s->cached);
    else
        buf_puts(b, "null");
    if (s->currency && *s->currency) {
        buf_printf(b, ", \"cost\": %.9g", s->cost);
        buf_put_member(b, "currency", s->currency);
    }
    buf_puts(b, "}");
}

/* Prints the limits of a model behind an endpoint. */
void job_tell_model(const struct job *j)
{
    const struct endpoint *far = j->model->endpoint;
    if (j->model == &j->own && !far && !j->s.fake && !j->s.model)
        job_advise_model(j);
    if (!far)
        return;
    char *text = xasprintf(
        "%s at %s; its run cannot be verified token by token and has no saved states%s", far->model,
        far->base, endpoint_gives_odds(j->model->endpoint) ? "" : "; it says nothing of other places");
    progress_head(&j->progress, "model", text);
    free(text);
}

static void print_json(const struct job *j, const struct agent_result *r, const struct err *e, int code)
{
    static const char *const phases[PHASES] = {"settle", "see", "read", "decide", "act"};
    struct buf b;
    buf_init(&b, 4 << 20);
    buf_printf(&b, "{\"status\": \"%s\", \"exit\": %d", agent_status_name(r->status), code);
    buf_put_member(&b, "answer", r->answer);
    if (r->said)
        buf_put_member(&b, "said", r->said);
    buf_put_member(&b, "did", r->did);
    buf_printf(&b, ", \"actions\": %s", r->deeds ? r->deeds : "[]");
    if (e->kind)
        buf_put_member(&b, "error", e->text);
    if (r->limit)
        buf_printf(&b, ", \"limit\": \"%s\", \"allowed\": %.10g", r->limit, r->allowed);
    buf_printf(&b, ", \"steps\": %d, \"seconds\": %.3f", r->steps, r->seconds);
    buf_put_member(&b, "run_dir", j->trace ? trace_dir(j->trace) : NULL);
    buf_put_member(&b, "report", j->report);
    buf_puts(&b, ", \"ms\": {");
    for (int p = 0; p < PHASES; p++)
        buf_printf(&b, "%s\"%s\": %.1f", p ? ", " : "", phases[p], r->ms[p]);
    buf_printf(
        &b, "}, \"tokens\": {\"generated\": %lld, \"forced\": %lld, \"prefilled\": %lld, \"reused\": %lld}",
        (long long)r->generated, (long long)r->forced, (long long)r->prefilled, (long long)r->reused);
    if (r->server.replies)
        put_server(&b, &r->server);
    buf_puts(&b, "}");
    puts(b.data);
    buf_free(&b);
}

void job_outcome(const struct job *j, const struct agent_result *r, const struct err *e, int code)
{
    const struct progress *p = &j->progress;
    char text[128], limit[128];
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
    const char *said = r->said ? r->said : row->own ? NULL : r->answer; /* no result */
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
    if (j->s.quiet && code) /* quiet about progress, not about failure */
        fprintf(stderr, "holorun: %s%s%s\n", why, r->status == AGENT_UNVERIFIED ? "; " : "",
                r->status == AGENT_UNVERIFIED ? r->did : "");
    if (j->s.json)
        print_json(j, r, e, code);
    else if ((row->own || dry) && r->answer)
        utf8_print_result(stdout, r->answer, strlen(r->answer));
}
