/* junit.c - writes suite results as JUnit XML for Jenkins (schema in tests/golden/junit) and GitLab.
 *
 * A test has at most one <failure> or <error>, which lists all failed checks, because readers show only the
 * first. The text is both in `message` and in the element, because GitLab reads only the latter.
 *
 * <system-out> starts with the artifacts as [[ATTACHMENT|path]] lines. Paths are relative to the directory of
 * the CI job (Jenkins' WORKSPACE, GitLab's CI_PROJECT_DIR, else the current one), or absolute if outside it.
 * GitLab shows only the first, so the final screen comes first. Such a line in the output of a program or
 * model could make CI publish any file of the machine, so it is altered there. */
#include "qa/report/report.h"

#include "base/file.h"
#include "qa/report/summary.h"
#include "trace/page.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT = 16 << 10, SHORT = 1000, FRAMES = 1 }; /* in bytes: an output, a line */

struct junit {
    FILE *f;
    const struct results *r;
    const char *base; /* directory that attachments are relative to */
};

/* ---- text ---------------------------------------------------------------------------------------- */

/* Writes an escaped text and frees it; page_text escapes everything that XML requires. */
static void put_clean(FILE *f, char *clean)
{
    for (char *p = clean; (p = strstr(p, "[[ATTACHMENT")); p += 2)
        p[1] = '(';
    page_text(f, clean);
    free(clean);
}

static void put_text(FILE *f, const char *s)
{
    put_clean(f, clean_text(s, TEXT));
}

static void put_line(FILE *f, const char *s)
{
    put_clean(f, clean_line(s, SHORT));
}

static void put_attribute(FILE *f, const char *name, const char *value)
{
    fprintf(f, " %s=\"", name);
    put_line(f, value);
    fputc('"', f);
}

static void put_property(FILE *f, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    fputs("      <property", f);
    put_attribute(f, "name", name);
    put_attribute(f, "value", value);
    fputs("/>\n", f);
}

static void put_number(FILE *f, const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.0f", value);
    put_property(f, name, value > 0 ? text : "");
}

/* ---- failures ------------------------------------------------------------------------------------ */

static void put_check(FILE *f, const struct check_result *c)
{
    put_line(f, c->check->name);
    fprintf(f, ": %s", summary_answer(c->answer));
    if (c->detail && *c->detail) {
        fputs("; ", f);
        put_line(f, c->detail);
    }
    fputc('\n', f);
}

/* Writes a step as "line 12: press "Save": done; pressed 'Save'; the window closed". */
static void put_step(FILE *f, const struct step_result *s)
{
    fprintf(f, "line %d: ", s->line);
    put_line(f, s->text);
    fprintf(f, ": %s", step_end_name(s->end));
    if (s->said && *s->said) {
        fputs("; ", f);
        put_line(f, s->said);
    }
    fputc('\n', f);
}

/* Writes the checks that did not pass, with their output. */
static void put_bad_checks(FILE *f, const struct attempt *a)
{
    for (int i = 0; a && i < a->n_checks; i++) {
        const struct check_result *c = &a->checks[i];
        if (c->answer == ANSWER_YES || c->answer == ANSWER_NOT_ASKED)
            continue;
        put_check(f, c);
        if (c->output && *c->output) {
            put_text(f, c->output);
            fputc('\n', f);
        }
    }
}

static void put_outcome(const struct junit *j, const struct result *r)
{
    enum ci ci = results_ci(j->r, r);
    if (ci == CI_PASSED)
        return;
    char *why = summary_reason(r), *kind = summary_kind(r);
    const char *group = summary_group_name(summary_group(r));
    bool plain = r->outcome == OUTCOME_FAILED || r->outcome == OUTCOME_ERROR || r->excused;
    fprintf(j->f, "      <%s", ci_name(ci));
    put_attribute(j->f, "type", kind);
    fprintf(j->f, " message=\"%s%s", plain ? "" : group, plain ? "" : ": ");
    put_line(j->f, why);
    fputs("\">", j->f);
    if (r->outcome != OUTCOME_FAILED)
        fprintf(j->f, "%s: ", group);
    put_line(j->f, why);
    fputc('\n', j->f);
    put_bad_checks(j->f, summary_last_attempt(r));
    fprintf(j->f, "</%s>\n", ci_name(ci));
    free(why), free(kind);
}

/* Writes earlier attempts as the elements that Maven Surefire uses. */
static void put_earlier(FILE *f, const struct result *r)
{
    bool flaky = r->flaky != FLAKY_NOT, bad = r->outcome == OUTCOME_FAILED || r->outcome == OUTCOME_ERROR;
    for (int i = 0; (flaky || bad) && i < r->n - 1; i++) {
        struct result before = summary_as_of(r, i);
        const char *name = before.outcome == OUTCOME_ERROR ? flaky ? "flakyError" : "rerunError"
                           : flaky                         ? "flakyFailure"
                                                           : "rerunFailure";
        char *why = summary_reason(&before), *kind = summary_kind(&before);
        fprintf(f, "      <%s", name);
        put_attribute(f, "type", *kind ? kind : "attempt");
        put_attribute(f, "message", why);
        fputs("><stackTrace>", f);
        put_bad_checks(f, &r->attempts[i]);
        fprintf(f, "</stackTrace></%s>\n", name);
        free(why), free(kind);
    }
}

/* ---- system-out ---------------------------------------------------------------------------------- */

static void put_attachment(const struct junit *j, const char *path)
{
    if (!path || !file_exists(path))
        return;
    char *seen = artifact_link(j->base, path), *clean = clean_text(seen, strlen(seen));
    if (!strcmp(seen, clean) && !strpbrk(seen, "|\n") && !strstr(seen, "]]") && !strstr(seen, "[[")) {
        fputs("[[ATTACHMENT|", j->f);
        page_text(j->f, seen);
        fputs("]]\n", j->f);
    }
    free(seen), free(clean);
}

static void put_attachments(const struct junit *j, const struct attempt *a)
{
    int frames[FRAMES], n = artifact_last_frames(a->run_dir, frames, FRAMES);
    put_attachment(j, a->picture);
    for (int i = 0; i < n; i++) {
        autofree char *path = artifact_frame(a->run_dir, frames[i]);
        put_attachment(j, path);
    }
    for (int i = 0; i < a->n_checks; i++)
        for (int k = 2; k >= 0 && a->checks[i].answer != ANSWER_YES; k--) /* the difference image first */
            put_attachment(j, a->checks[i].pictures[k]);
    if (a->run_dir) {
        autofree char *page = xasprintf("%s/report.html", a->run_dir);
        put_attachment(j, page);
    }
}

static void put_out_line(FILE *f, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    fprintf(f, "%s: ", name);
    put_line(f, value);
    fputc('\n', f);
}

static void put_system_out(const struct junit *j, const struct result *r)
{
    const struct attempt *a = summary_last_attempt(r);
    if (!a)
        return;
    fputs("      <system-out>", j->f);
    if (r->outcome != OUTCOME_PASSED)
        put_attachments(j, a);
    put_out_line(j->f, "outcome", outcome_name(r->outcome));
    if (r->flaky != FLAKY_NOT) {
        put_out_line(j->f, "flaky", flaky_description(r->flaky));
        put_out_line(j->f, "flaky where", r->flaky_where);
    }
    put_out_line(j->f, "task", r->test->task);
    put_out_line(j->f, "agent", a->status);
    put_out_line(j->f, "answer", a->answer);
    put_out_line(j->f, "did", a->did);
    put_out_line(j->f, "run", a->run_dir);
    autofree char *reused = summary_reused(a);
    put_out_line(j->f, "reused", reused);
    put_out_line(j->f, "program of test", a->program_of);
    fprintf(j->f, "steps: %d\nattempts: %d\n", a->steps, r->n);
    for (int i = 0; i < a->n_script; i++) {
        fputs("step: ", j->f);
        put_step(j->f, &a->script[i]);
    }
    for (int i = 0; i < a->n_checks; i++) {
        fputs("check: ", j->f);
        put_check(j->f, &a->checks[i]);
    }
    fputs("</system-out>\n", j->f);
    if (a->log && *a->log) {
        fputs("      <system-err>", j->f);
        put_text(j->f, a->log);
        fputs("</system-err>\n", j->f);
    }
}

/* ---- the file ------------------------------------------------------------------------------------ */

static void put_case(const struct junit *j, const struct result *r)
{
    fputs("    <testcase", j->f);
    put_attribute(j->f, "classname", r->test->suite);
    put_attribute(j->f, "name", r->test->id);
    fprintf(j->f, " time=\"%.3f\">\n", r->seconds > 0 ? r->seconds : 0);
    put_outcome(j, r);
    put_earlier(j->f, r);
    put_system_out(j, r);
    fputs("    </testcase>\n", j->f);
}

static void put_properties(const struct junit *j)
{
    const struct results *r = j->r;
    fputs("    <properties>\n", j->f);
    put_property(j->f, "holorun.version", r->version);
    put_property(j->f, "holorun.suite", r->suite->path);
    put_property(j->f, "holorun.model", r->model);
    put_property(j->f, "holorun.dialect", r->dialect);
    put_property(j->f, "holorun.results", r->dir);
    put_number(j->f, "holorun.jobs", r->jobs);
    put_number(j->f, "holorun.memory.weights", (double)r->memory_weights);
    put_number(j->f, "holorun.memory.state", (double)r->memory_state);
    put_number(j->f, "holorun.memory.most", (double)r->memory_peak);
    for (int i = 0; r->notes && r->notes[i]; i++)
        put_property(j->f, "holorun.note", r->notes[i]);
    for (int i = 0; i < r->n; i++)
        if (r->results[i].flaky != FLAKY_NOT)
            put_property(j->f, "holorun.flaky", r->results[i].test->id);
    fputs("    </properties>\n", j->f);
}

static void put_counts(const struct junit *j, bool with_skipped)
{
    const struct results *r = j->r;
    int n[CI_SKIPPED + 1] = {0};
    for (int i = 0; i < r->n; i++)
        n[results_ci(r, &r->results[i])]++;
    put_attribute(j->f, "name", r->suite->name);
    fprintf(j->f, " tests=\"%d\" failures=\"%d\" errors=\"%d\"", r->n, n[CI_FAILURE], n[CI_ERROR]);
    if (with_skipped)
        fprintf(j->f, " skipped=\"%d\"", n[CI_SKIPPED]);
    fprintf(j->f, " time=\"%.3f\"", r->seconds > 0 ? r->seconds : 0);
}

static const char *job_folder(void)
{
    const char *gitlab = getenv("CI_PROJECT_DIR"), *jenkins = getenv("WORKSPACE");
    return gitlab && *gitlab == '/' ? gitlab : jenkins && *jenkins == '/' ? jenkins : ".";
}

void report_junit(const struct results *r, const char *path, FILE *f)
{
    struct junit j = {f, r, job_folder()};
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", j.f);
    put_counts(&j, false);
    fputs(">\n  <testsuite", j.f);
    put_counts(&j, true);
    /* UTC, without the time zone */
    fprintf(j.f, " timestamp=\"%.*s\"", (int)strcspn(r->started, ".Z"), r->started);
    if (r->host && *r->host)
        put_attribute(j.f, "hostname", r->host);
    fputs(">\n", j.f);
    put_properties(&j);
    for (int i = 0; i < r->n; i++)
        put_case(&j, &r->results[i]);
    fputs("  </testsuite>\n</testsuites>\n", j.f);
}
