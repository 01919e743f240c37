/* tap.c - writes suite results as TAP 13: a line for each test, with failed checks as YAML below it. TAP 14
 * is not used, because `prove` rejects its version line.
 *
 * An undecided test is `not ok`, unless it counts as skipped for CI. */
#include "qa/report/report.h"

#include "base/buf.h"
#include "qa/report/summary.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT = 4 << 10, SHORT = 300 };

/* Writes one line with # and \ escaped. */
static void put_plain(FILE *f, const char *s)
{
    autofree char *line = clean_line(s, SHORT);
    for (const char *p = line; *p; p++) {
        if (*p == '#' || *p == '\\')
            fputc('\\', f);
        fputc(*p, f);
    }
}

/* Writes a YAML member. A JSON string is valid YAML. */
static void put_member(FILE *f, int indent, const char *key, const char *value)
{
    struct buf b;
    if (!value || !*value)
        return;
    autofree char *clean = clean_text(value, TEXT);
    buf_init(&b, 8 * strlen(clean) + 64);
    buf_put_json(&b, clean, strlen(clean));
    fprintf(f, "%*s%s: %s\n", indent, "", key, b.data);
    buf_free(&b);
}

static void put_checks(FILE *f, const struct attempt *a)
{
    bool any = false;
    for (int i = 0; i < a->n_checks; i++) {
        const struct check_result *c = &a->checks[i];
        if (c->answer == ANSWER_YES)
            continue;
        fputs(any ? "" : "  checks:\n", f);
        any = true;
        fprintf(f, "    - kind: %s\n", check_kind_name(c->check->kind));
        /* quoted, because a bare `no` is false in YAML */
        put_member(f, 6, "answer", summary_answer(c->answer));
        put_member(f, 6, "name", c->check->name);
        put_member(f, 6, "detail", c->detail);
        put_member(f, 6, "output", c->output);
    }
}

/* Writes the steps that were not done. */
static void put_script(FILE *f, const struct attempt *a)
{
    bool any = false;
    for (int i = 0; i < a->n_script; i++) {
        const struct step_result *s = &a->script[i];
        if (s->end == STEP_DONE)
            continue;
        fputs(any ? "" : "  steps:\n", f);
        any = true;
        fprintf(f, "    - line: %d\n", s->line);
        put_member(f, 6, "end", step_end_name(s->end));
        put_member(f, 6, "text", s->text);
        put_member(f, 6, "said", s->said);
    }
}

static void put_yaml(FILE *f, const struct result *r)
{
    const struct attempt *a = summary_last_attempt(r);
    autofree char *why = summary_reason(r);
    fputs("  ---\n", f);
    fprintf(f, "  outcome: %s\n", outcome_name(r->outcome));
    put_member(f, 2, "message", why);
    if (r->flaky != FLAKY_NOT)
        put_member(f, 2, "flaky", flaky_description(r->flaky));
    fprintf(f, "  seconds: %.3f\n  attempts: %d\n", r->seconds, r->n);
    if (a) {
        put_member(f, 2, "agent", a->status);
        put_member(f, 2, "answer", a->answer);
        put_member(f, 2, "did", a->did);
        put_member(f, 2, "run", a->run_dir);
        put_member(f, 2, "picture", a->picture);
        put_script(f, a);
        put_checks(f, a);
    }
    fputs("  ...\n", f);
}

static void put_test(FILE *f, int number, const struct results *all, const struct result *r)
{
    enum ci ci = results_ci(all, r);
    fprintf(f, "%s %d - ", ci == CI_PASSED || ci == CI_SKIPPED ? "ok" : "not ok", number);
    put_plain(f, r->test->id);
    if (ci == CI_SKIPPED) {
        autofree char *why = summary_reason(r);
        fprintf(f, " # SKIP %s: ", summary_group_name(summary_group(r)));
        put_plain(f, why);
    }
    fputc('\n', f);
    if (ci != CI_PASSED || r->flaky != FLAKY_NOT || r->judged)
        put_yaml(f, r);
}

void report_tap(const struct results *r, const char *path, FILE *f)
{
    fprintf(f, "TAP version 13\n1..%d%s\n", r->n, r->n ? "" : " # SKIP no test was selected");
    for (int i = 0; i < r->n; i++)
        put_test(f, i + 1, r, &r->results[i]);
}
