/* github.c - writes suite results in Markdown, for the summary of a GitHub job ($GITHUB_STEP_SUMMARY).
 *
 * Tests that did not pass come first, each with its reason; the others are in a collapsed table. GitHub shows
 * nothing of a summary above 1 MiB, so tests beyond that are omitted and counted. The text is appended,
 * because earlier steps of the job may have written to the file.
 *
 * Untrusted text cannot become Markdown or HTML: each special character of either is written as a numeric
 * entity. */
#include "qa/report/report.h"

#include "base/bar.h"
#include "base/buf.h"
#include "base/file.h"
#include "qa/report/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUMMARY_MAX = 1 << 20, TAIL = 1024, WHY = 300, ID = 120, OUTPUT = 1500 };

static const char *const marks[OUTCOMES] = {
    [OUTCOME_PASSED] = "✅",       [OUTCOME_FAILED] = "❌", [OUTCOME_CLAIMED] = "⚠️",
    [OUTCOME_INCONCLUSIVE] = "❔", [OUTCOME_ERROR] = "💥",  [OUTCOME_SKIPPED] = "⏭️",
    [OUTCOME_STOPPED] = "✋",
};

static void put_entities(struct buf *b, const char *s)
{
    for (; *s; s++) {
        if (strchr("\\`*_{}[]#!|<>&~@:\"'$", *s))
            buf_printf(b, "&#%d;", *s);
        else
            buf_putc(b, *s);
    }
}

static void put_line(struct buf *b, const char *s, size_t most)
{
    autofree char *line = clean_line(s, most);
    put_entities(b, line);
}

/* Appends a part completely or not at all. Returns whether it fit. */
static bool append(struct buf *all, struct buf *part)
{
    bool fits = !part->full && all->len + part->len + TAIL <= all->max;
    if (fits)
        buf_put(all, part->data, part->len);
    buf_clear(part);
    return fits;
}

static void put_row(struct buf *b, const struct result *r)
{
    autofree char *why = summary_reason(r);
    buf_printf(b, "| %s %s | ", marks[r->outcome], summary_group_name(summary_group(r)));
    put_line(b, r->test->id, ID);
    buf_printf(b, " | %.1f s | ", r->seconds);
    put_line(b, why, WHY);
    buf_puts(b, " |\n");
}

/* Writes the output of checks that did not pass, collapsed. Within <pre>, Markdown is not interpreted. */
static void put_outputs(struct buf *b, const struct result *r)
{
    const struct attempt *a = summary_last_attempt(r);
    for (int i = 0; a && i < a->n_checks; i++) {
        const struct check_result *c = &a->checks[i];
        if (c->answer == ANSWER_YES || !c->output || !*c->output)
            continue;
        autofree char *output = clean_text(c->output, OUTPUT);
        buf_puts(b, "\n<details><summary>");
        put_line(b, r->test->id, ID);
        buf_puts(b, ", ");
        put_line(b, c->check->name, ID);
        buf_puts(b, "</summary>\n\n<pre>");
        put_entities(b, output);
        buf_puts(b, "</pre>\n\n</details>\n");
    }
}

static void put_heading(struct buf *b, const struct results *r)
{
    char took[32], *counts = summary_counts(r);
    buf_printf(b, "\n## %s ", results_exit_code(r) ? marks[OUTCOME_FAILED] : marks[OUTCOME_PASSED]);
    put_line(b, r->suite->name, ID);
    bar_time(r->seconds, took);
    buf_printf(b, ": %s\n\n%s, %d worker%s, model ", counts, took, r->jobs, r->jobs == 1 ? "" : "s");
    free(counts);
    put_line(b, r->model, ID);
    buf_puts(b, "\n");
    for (int i = 0; r->notes && r->notes[i]; i++) {
        buf_puts(b, "\n> ");
        put_line(b, r->notes[i], WHY);
        buf_puts(b, "\n");
    }
}

/* Writes the rows that need attention, or the others. Returns the number of rows that did not fit. */
static int put_rows(struct buf *all, struct buf *part, const struct result *const *list, int n,
                    bool attention)
{
    int left = 0, rows = 0;
    for (int i = 0; i < n; i++) {
        const struct result *r = list[i];
        if ((summary_needs_attention(r) || r->flaky != FLAKY_NOT) != attention)
            continue;
        if (!rows && !left && !attention)
            buf_puts(part, "\n<details><summary>the others</summary>\n");
        if (!rows && !left)
            buf_printf(part, "\n| | test | time | %s |\n|---|---|--:|---|\n", attention ? "why" : "");
        put_row(part, r);
        if (left || !append(all, part))
            left++;
        else
            rows++;
    }
    buf_clear(part);
    if (rows && !attention)
        buf_puts(all, "\n</details>\n");
    return left;
}

static void put_summary(struct buf *all, const struct results *r)
{
    autobuf part = buf_of(SUMMARY_MAX);
    const struct result **list = summary_worst_first(r);
    put_heading(&part, r);
    append(all, &part);
    int left = put_rows(all, &part, list, r->n, true);
    for (int i = 0; i < r->n; i++) {
        if (summary_needs_attention(list[i]))
            put_outputs(&part, list[i]);
        append(all, &part);
    }
    left += put_rows(all, &part, list, r->n, false);
    if (left)
        buf_printf(all, "\n%d more test%s in the report; %s did not fit here.\n", left, left == 1 ? "" : "s",
                   left == 1 ? "it" : "they");
    free(list);
}

int report_github(const struct results *r, const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600), rc = 0;
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) {
        err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, O_APPEND); /* non-blocking mode is only needed to open a pipe */
    struct buf all;
    buf_init(&all, st.st_size < SUMMARY_MAX ? (size_t)(SUMMARY_MAX - st.st_size) : 0);
    put_summary(&all, r);
    if (!all.len)
        warn("no space left for a summary in '%s': GitHub takes 1 MiB", path);
    rc = file_write_all(fd, path, all.data, all.len, e);
    if (rc && S_ISREG(st.st_mode) && ftruncate(fd, st.st_size)) /* undo a partial write */
        warn("'%s' may hold only part of the summary", path);
    if (close(fd) && rc == 0)
        rc = err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    buf_free(&all);
    return rc;
}
