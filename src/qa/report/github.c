/* github.c - a suite in Markdown, for the summary of a GitHub job ($GITHUB_STEP_SUMMARY).
 *
 * What did not pass comes first, each with its reason; what passed is a folded table.  GitHub takes 1 MiB for a step and
 * shows nothing of a longer one: what does not fit is left out and counted.  The file is appended to, since the steps of a
 * job before this one may have written to it.
 *
 * Texts cannot turn into Markdown or HTML: every character that means anything to either is a numeric entity.
 */
#include "qa/report/report.h"

#include "base/bar.h"
#include "base/buf.h"
#include "base/file.h"
#include "qa/report/words.h"

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
    char *line = words_line(s, most);
    put_entities(b, line);
    free(line);
}

/* Appends a piece as a whole, or not at all. */
static bool fits(struct buf *all, struct buf *piece)
{
    bool room = !piece->full && all->len + piece->len + TAIL <= all->max;
    if (room)
        buf_put(all, piece->data, piece->len);
    buf_clear(piece);
    return room;
}

static void put_row(struct buf *b, const struct result *r)
{
    char *why = words_why(r);
    buf_printf(b, "| %s %s | ", marks[r->outcome], outcome_name(r->outcome));
    put_line(b, r->test->id, ID);
    buf_printf(b, " | %.1f s | ", r->seconds);
    put_line(b, why, WHY);
    buf_puts(b, " |\n");
    free(why);
}

static void put_table(struct buf *b, const char *last)
{
    buf_printf(b, "\n| | test | time | %s |\n|---|---|--:|---|\n", last);
}

/* Outputs of the checks that are not well, folded; a block that begins with <pre> is not Markdown up to its end. */
static void put_outputs(struct buf *b, const struct result *r)
{
    const struct attempt *a = words_last(r);
    for (int i = 0; a && i < a->n_checks; i++) {
        const struct check_result *c = &a->checks[i];
        if (c->answer == ANSWER_YES || !c->output || !*c->output)
            continue;
        char *output = words_clean(c->output, OUTPUT);
        buf_puts(b, "\n<details><summary>");
        put_line(b, r->test->id, ID);
        buf_puts(b, ", ");
        put_line(b, c->check->name, ID);
        buf_puts(b, "</summary>\n\n<pre>");
        put_entities(b, output);
        buf_puts(b, "</pre>\n\n</details>\n");
        free(output);
    }
}

static void put_heading(struct buf *b, const struct results *r)
{
    char took[32];
    bool any = false;
    buf_puts(b, "\n## ");
    put_line(b, r->suite->name, ID);
    buf_puts(b, ": ");
    for (int o = 0; o < OUTCOMES; o++) {
        int n = results_count(r, (enum outcome)o);
        if (n)
            buf_printf(b, "%s%d %s", any ? ", " : "", n, outcome_name((enum outcome)o));
        any = any || n;
    }
    bar_time(r->seconds, took);
    buf_printf(b, "%s\n\n%s, %d job%s, model ", any ? "" : "no test has run", took, r->jobs,
               r->jobs == 1 ? "" : "s");
    put_line(b, r->model, ID);
    buf_puts(b, "\n");
}

/* Rows of one kind; the number of those left out. */
static int put_rows(struct buf *all, struct buf *piece, const struct result *const *list, int n, bool bad)
{
    int left = 0, rows = 0;
    for (int i = 0; i < n; i++) {
        const struct result *r = list[i];
        if ((words_wants_a_look(r) || r->flaky != FLAKY_NOT) != bad)
            continue;
        if (!rows && !left && !bad)
            buf_puts(piece, "\n<details><summary>the others</summary>\n");
        if (!rows && !left)
            put_table(piece, bad ? "why" : "");
        put_row(piece, r);
        if (left || !fits(all, piece))
            left++;
        else
            rows++;
    }
    buf_clear(piece);
    if (rows && !bad)
        buf_puts(all, "\n</details>\n");
    return left;
}

static void put_summary(struct buf *all, const struct results *r)
{
    struct buf piece;
    const struct result **list = words_worst_first(r);
    buf_init(&piece, SUMMARY_MAX);
    put_heading(&piece, r);
    fits(all, &piece);
    int left = put_rows(all, &piece, list, r->n, true);
    for (int i = 0; i < r->n; i++) {
        if (words_wants_a_look(list[i]))
            put_outputs(&piece, list[i]);
        fits(all, &piece);
    }
    left += put_rows(all, &piece, list, r->n, false);
    if (left)
        buf_printf(all, "\n%d more test%s in the report: no room for %s here.\n", left, left == 1 ? "" : "s",
                   left == 1 ? "it" : "them");
    buf_free(&piece);
    free(list);
}

int report_github(const struct results *r, const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), rc = 0;
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) {
        err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    struct buf all;
    buf_init(&all, st.st_size < SUMMARY_MAX ? (size_t)(SUMMARY_MAX - st.st_size) : 0);
    put_summary(&all, r);
    if (!all.len)
        warn("no room for a summary in '%s': GitHub takes 1 MiB", path);
    rc = file_write_all(fd, path, all.data, all.len, e);
    if (rc && S_ISREG(st.st_mode) && ftruncate(fd, st.st_size)) /* no half a table */
        warn("'%s' may hold a part of the summary", path);
    if (close(fd) && rc == 0)
        rc = err_set(e, ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    buf_free(&all);
    return rc;
}
