/* json.c - writes results.json, the complete results of a suite for other programs.
 *
 *     {"schema": "holorun-qa", "schema_version": 1, "suite": ..., "counts": {...}, "tests": [{"id": ...
 *
 * Keys have a fixed order, and each test starts a new line. Texts are not cleaned; only invalid UTF-8 is
 * replaced. Times are in seconds, memory in bytes. schema_version changes when a key is removed or changes
 * its meaning, not when one is added. */
#include "qa/report/report.h"

#include "base/buf.h"
#include "qa/report/summary.h"

#include <stdlib.h>
#include <string.h>

enum {
    SCHEMA_VERSION = 1,
    TEXT = 16 << 10,    /* bytes */
    TEST_MAX = 1 << 30, /* far above the total length of a test's texts */
};

/* Writes a text; if it is longer than TEXT, only its end. */
static void put_text(struct buf *b, const char *key, const char *value)
{
    size_t n = value ? strlen(value) : 0;
    buf_put_member(b, key, n > TEXT ? value + (n - TEXT) : value);
}

static void put_list(struct buf *b, const char *key, const char *const *list)
{
    buf_printf(b, ", \"%s\": [", key);
    for (int i = 0; list && list[i]; i++) {
        buf_puts(b, i ? ", " : "");
        buf_put_json(b, list[i], strlen(list[i]));
    }
    buf_putc(b, ']');
}

static void put_check(struct buf *b, const struct check_result *c)
{
    const char *pictures[4] = {0};
    int n = 0;
    buf_printf(b, "{\"kind\": \"%s\"", check_kind_name(c->check->kind));
    put_text(b, "name", c->check->name);
    put_text(b, "text", c->check->text);
    buf_printf(b, ", \"line\": %d, \"answer\": \"%s\", \"by_model\": %s", c->check->line,
               summary_answer(c->answer), check_evidence(c->check->kind) == BY_MODEL ? "true" : "false");
    if (c->check->reading)
        put_text(b, "by", "the embedded model's reading");
    put_text(b, "detail", c->detail);
    put_text(b, "output", c->output);
    for (int i = 0; i < 3; i++)
        if (c->pictures[i])
            pictures[n++] = c->pictures[i];
    put_list(b, "pictures", pictures);
    buf_printf(b, ", \"seconds\": %.3f}", c->ms / 1000);
}

static void put_attempt(struct buf *b, const struct attempt *a)
{
    buf_printf(b, "{\"outcome\": \"%s\"", outcome_name(a->outcome));
    put_text(b, "agent", a->status);
    put_text(b, "answer", a->answer);
    put_text(b, "did", a->did);
    put_text(b, "error", a->error);
    put_text(b, "error_kind", a->error_kind);
    put_text(b, "run", a->run_dir);
    put_text(b, "log", a->log);
    put_text(b, "picture", a->picture);
    buf_printf(b,
               ", \"crashed\": %s, \"steps\": %d, \"seconds\": %.3f, \"start_seconds\": %.3f, \"checks\": [",
               a->crashed ? "true" : "false", a->steps, a->seconds, a->start_seconds);
    for (int i = 0; i < a->n_checks; i++) {
        buf_puts(b, i ? ", " : "");
        put_check(b, &a->checks[i]);
    }
    buf_puts(b, "]}");
}

static void put_test(struct buf *b, const struct results *all, const struct result *r)
{
    const struct test *t = r->test;
    char *why = summary_reason(r), *kind = summary_kind(r);
    buf_puts(b, "{\"id\": ");
    buf_put_json(b, t->id, strlen(t->id));
    buf_printf(b, ", \"outcome\": \"%s\", \"ci\": \"%s\"", outcome_name(r->outcome),
               ci_name(results_ci(all, r)));
    put_text(b, "kind", kind);
    put_text(b, "why", why);
    buf_printf(b, ", \"flaky\": \"%s\"", flaky_name(r->flaky));
    put_text(b, "flaky_where", r->flaky_where);
    buf_printf(b, ", \"judged\": %s, \"line\": %d, \"index\": %td", r->judged ? "true" : "false", t->line,
               t - all->suite->tests);
    put_text(b, "task", t->task);
    put_text(b, "spec", t->spec);
    put_text(b, "display", t->display);
    put_text(b, "program", t->start);
    put_list(b, "tags", t->tags);
    buf_printf(b, ", \"seed\": %llu, \"expect_fail\": %s, \"expect\": \"%s\"", (unsigned long long)t->seed,
               t->expect_fail ? "true" : "false", t->expect_infeasible ? "infeasible" : "done");
    buf_printf(b, ", \"worker\": %d, \"began\": %.3f, \"seconds\": %.3f", r->worker, r->began, r->seconds);
    buf_puts(b, ", \"attempts\": [");
    for (int i = 0; i < r->n; i++) {
        buf_puts(b, i ? ", " : "");
        put_attempt(b, &r->attempts[i]);
    }
    buf_puts(b, "]}");
    free(why), free(kind);
}

/* Writes the data needed to merge the results of several shards (merge.c). */
static void put_suite(struct buf *b, const struct results *r)
{
    const struct suite *s = r->suite;
    buf_printf(b, ", \"suite_hash\": \"%016llx\", \"suite_tests\": %d, \"flaky_max\": %d, \"shard\": ",
               (unsigned long long)r->suite_hash, s->n, s->flaky_max);
    if (s->shard.of)
        buf_printf(b, "{\"index\": %d, \"of\": %d}", s->shard.which, s->shard.of);
    else
        buf_puts(b, "null");
    buf_printf(b, ", \"undecided\": \"%s\", \"accept_claims\": %s, \"time_over\": %s, \"complete\": %s",
               undecided_name(r->undecided), r->accept_claims ? "true" : "false",
               r->time_over ? "true" : "false", r->complete ? "true" : "false");
}

static void put_head(struct buf *b, const struct results *r)
{
    buf_printf(b, "{\"schema\": \"holorun-qa\", \"schema_version\": %d", SCHEMA_VERSION);
    put_text(b, "version", r->version);
    put_text(b, "suite", r->suite->name);
    put_text(b, "path", r->suite->path);
    put_text(b, "started", r->started);
    put_suite(b, r);
    buf_printf(b, ", \"seconds\": %.3f, \"jobs\": %d", r->seconds, r->jobs);
    put_text(b, "model", r->model);
    put_text(b, "dialect", r->dialect);
    put_text(b, "host", r->host);
    put_text(b, "dir", r->dir);
    buf_printf(b, ", \"memory\": {\"weights\": %zu, \"state\": %zu, \"most\": %zu}", r->memory_weights,
               r->memory_state, r->memory_peak);
    buf_printf(b, ", \"exit_code\": %d, \"counts\": {\"total\": %d", results_exit_code(r), r->n);
    for (int o = 0; o < OUTCOMES; o++)
        buf_printf(b, ", \"%s\": %d", outcome_name((enum outcome)o), results_count(r, (enum outcome)o));
    buf_printf(b, ", \"flaky\": %d},\n\"tests\": [", results_flaky(r));
}

void report_json(const struct results *r, const char *path, FILE *f)
{
    struct buf b;
    buf_init(&b, TEST_MAX);
    put_head(&b, r);
    for (int i = 0; i < r->n; i++) {
        buf_puts(&b, i ? ",\n" : "\n");
        put_test(&b, r, &r->results[i]);
        fwrite(b.data, 1, b.len, f);
        buf_clear(&b);
    }
    buf_puts(&b, "\n]}\n");
    fwrite(b.data, 1, b.len, f);
    buf_free(&b);
}
