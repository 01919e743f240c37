/* json.c - writes results.json, the complete results of a suite for other programs.
 *
 *     {"schema": "holorun-qa", "schema_version": 2, "suite": ..., "counts": {...}, "tests": [{"id": ...
 *
 * Keys have a fixed order, and each test starts a new line. Texts are not cleaned; only invalid UTF-8 is
 * replaced. Times are in seconds, memory in bytes. schema_version changes when a key is removed or changes
 * its meaning, not when one is added. */
#include "qa/report/report.h"

#include "base/json.h"
#include "qa/report/summary.h"

#include <stdlib.h>
#include <string.h>

enum {
    SCHEMA_VERSION = RESULTS_SCHEMA,
    TEXT = 16 << 10, /* bytes */
};

/* Sets a member to a text, or to its end if it is longer than TEXT. */
static void set_text(json_t *o, const char *key, const char *value)
{
    size_t n = value ? strlen(value) : 0;
    json_set_text(o, key, n > TEXT ? value + (n - TEXT) : value);
}

static void set_int(json_t *o, const char *key, json_int_t value)
{
    json_object_set_new(o, key, json_integer(value));
}

static void set_bool(json_t *o, const char *key, bool value)
{
    json_object_set_new(o, key, json_boolean(value));
}

static void set_list(json_t *o, const char *key, const char *const *list)
{
    json_t *all = json_array();
    for (int i = 0; list && list[i]; i++)
        json_array_append_new(all, json_clean_string(list[i]));
    json_object_set_new(o, key, all);
}

static json_t *check_json(const struct check_result *c)
{
    const char *pictures[4] = {0};
    int n = 0;
    json_t *o = json_object();
    set_text(o, "kind", check_kind_name(c->check->kind));
    set_text(o, "name", c->check->name);
    set_text(o, "text", c->check->text);
    set_int(o, "line", c->check->line);
    set_text(o, "answer", summary_answer(c->answer));
    set_bool(o, "by_model", check_evidence(c->check->kind) == BY_MODEL);
    if (c->check->reading)
        set_text(o, "by", "the embedded model's reading");
    set_text(o, "detail", c->detail);
    set_text(o, "output", c->output);
    for (int i = 0; i < 3; i++)
        if (c->pictures[i])
            pictures[n++] = c->pictures[i];
    set_list(o, "pictures", pictures);
    json_set_rounded(o, "seconds", c->ms / 1000, 3);
    return o;
}

static json_t *script_json(const struct attempt *a)
{
    json_t *list = json_array();
    for (int i = 0; i < a->n_script; i++) {
        const struct step_result *s = &a->script[i];
        json_t *o = json_object();
        set_int(o, "line", s->line);
        set_text(o, "text", s->text);
        set_text(o, "end", step_end_name(s->end));
        set_text(o, "said", s->said);
        set_bool(o, "proof", s->proof);
        json_set_rounded(o, "seconds", s->seconds, 3);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *attempt_json(const struct attempt *a)
{
    json_t *o = json_object(), *checks = json_array();
    set_text(o, "outcome", outcome_name(a->outcome));
    set_text(o, "agent", a->status);
    set_text(o, "answer", a->answer);
    set_text(o, "did", a->did);
    set_text(o, "error", a->error);
    set_text(o, "error_kind", a->error_kind);
    set_text(o, "run", a->run_dir);
    set_text(o, "log", a->log);
    set_text(o, "picture", a->picture);
    set_bool(o, "crashed", a->crashed);
    set_int(o, "steps", a->steps);
    set_int(o, "cancelled", a->cancelled);
    set_int(o, "reused", a->reused);
    set_text(o, "reused_from", a->reused_from);
    set_text(o, "program_of", a->program_of);
    json_set_rounded(o, "seconds", a->seconds, 3);
    json_set_rounded(o, "start_seconds", a->start_seconds, 3);
    if (a->n_script)
        json_object_set_new(o, "script", script_json(a));
    for (int i = 0; i < a->n_checks; i++)
        json_array_append_new(checks, check_json(&a->checks[i]));
    json_object_set_new(o, "checks", checks);
    return o;
}

static json_t *test_json(const struct results *all, const struct result *r)
{
    const struct test *t = r->test;
    char *why = summary_reason(r), *kind = summary_kind(r);
    json_t *o = json_object(), *attempts = json_array();
    set_text(o, "id", t->id);
    set_text(o, "outcome", outcome_name(r->outcome));
    set_text(o, "ci", ci_name(results_ci(all, r)));
    set_text(o, "kind", kind);
    set_text(o, "why", why);
    set_text(o, "flaky", flaky_name(r->flaky));
    set_text(o, "flaky_where", r->flaky_where);
    set_bool(o, "judged", r->judged);
    set_int(o, "line", t->line);
    set_int(o, "index", t - all->suite->tests);
    set_text(o, "task", t->task);
    set_text(o, "spec", t->spec);
    set_text(o, "display", t->display);
    set_text(o, "program", t->start);
    set_list(o, "tags", t->tags);
    json_object_set_new(o, "seed", json_seed(t->seed));
    set_bool(o, "expect_fail", t->expect_fail);
    set_text(o, "expect", t->expect_infeasible ? "infeasible" : "done");
    set_int(o, "worker", r->worker);
    json_set_rounded(o, "began", r->began, 3);
    json_set_rounded(o, "seconds", r->seconds, 3);
    for (int i = 0; i < r->n; i++)
        json_array_append_new(attempts, attempt_json(&r->attempts[i]));
    json_object_set_new(o, "attempts", attempts);
    free(why), free(kind);
    return o;
}

/* Sets the members that merging several results needs (merge.c). */
static void set_suite(json_t *o, const struct results *r)
{
    const struct suite *s = r->suite;
    if (r->identity)
        json_object_set(o, "identity", (json_t *)r->identity);
    set_int(o, "suite_tests", s->n);
    set_int(o, "selected_tests", s->n_selected);
    set_int(o, "flaky_max", s->flaky_max);
    json_object_set_new(o, "shard",
                        s->shard.of ? json_pack("{s:i, s:i}", "index", s->shard.which, "of", s->shard.of)
                                    : json_null());
    set_text(o, "undecided", undecided_name(r->undecided));
    set_bool(o, "accept_claims", r->accept_claims);
    set_bool(o, "time_over", r->time_over);
    set_bool(o, "complete", r->complete);
}

static json_t *counts_json(const struct results *r)
{
    json_t *o = json_object();
    set_int(o, "total", r->n);
    for (int i = 0; i < OUTCOMES; i++)
        set_int(o, outcome_name((enum outcome)i), results_count(r, (enum outcome)i));
    set_int(o, "flaky", results_flaky(r));
    return o;
}

static void set_notes(json_t *o, const char *const *notes)
{
    json_t *list = json_array();
    for (; notes && *notes; notes++)
        json_array_append_new(list, json_string(*notes));
    if (json_array_size(list))
        json_object_set(o, "notes", list);
    json_decref(list);
}

/* Makes all members but "tests". */
static json_t *head_json(const struct results *r)
{
    json_t *o = json_object();
    set_text(o, "schema", "holorun-qa");
    set_int(o, "schema_version", SCHEMA_VERSION);
    set_text(o, "version", r->version);
    set_text(o, "suite", r->suite->name);
    set_text(o, "path", r->suite->path);
    set_text(o, "started", r->started);
    set_suite(o, r);
    json_set_rounded(o, "seconds", r->seconds, 3);
    set_int(o, "jobs", r->jobs);
    set_text(o, "model", r->model);
    set_text(o, "dialect", r->dialect);
    set_text(o, "host", r->host);
    set_text(o, "dir", r->dir);
    set_notes(o, r->notes);
    json_object_set_new(o, "memory",
                        json_pack("{s:I, s:I, s:I}", "weights", (json_int_t)r->memory_weights, "state",
                                  (json_int_t)r->memory_state, "most", (json_int_t)r->memory_peak));
    set_int(o, "exit_code", results_exit_code(r));
    json_object_set_new(o, "counts", counts_json(r));
    return o;
}

void report_json(const struct results *r, const char *path, FILE *f)
{
    json_auto_t *head = head_json(r);
    autofree char *line = json_line(head, JSON_ROUNDED);
    fprintf(f, "%.*s,\n\"tests\": [", (int)strlen(line) - 1, line); /* without its "}" */
    for (int i = 0; i < r->n; i++) {
        json_auto_t *test = test_json(r, &r->results[i]);
        fputs(i ? ",\n" : "\n", f);
        json_print(test, f, JSON_ROUNDED);
    }
    fputs("\n]}\n", f);
}
