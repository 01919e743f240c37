/* check.c - runs the checks of a test in order.
 *
 * The checks themselves are in check_desk.c, check_screen.c and check_llm.c. This file has the common part:
 * retries, `absent`, a lost desktop, and the detail line. */
#include "qa/run/check_impl.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/regex.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double poll_first_ms = 50, poll_last_ms = 500, shortest_probe = 1;

static const struct {
    check_fn *run;
    bool needs_desk, needs_screen;
    bool retried; /* retried, because a "no" may become a "yes" */
} kinds[] = {
    [CHECK_SHELL] = {check_shell, true, false, true},
    [CHECK_ANSWER] = {check_answer, false, false, false},
    [CHECK_WINDOW] = {check_window, false, true, true},
    [CHECK_FILE] = {check_file, true, false, true},
    [CHECK_PROCESS] = {check_process, true, false, true},
    [CHECK_PORT] = {check_port, false, false, true},
    [CHECK_REGION] = {check_region, false, true, true},
    [CHECK_CLIPBOARD] = {check_clipboard, true, false, true},
    [CHECK_ELEMENT] = {check_element, true, false, true},
    [CHECK_TEXT] = {check_text, false, true, false},
    [CHECK_JUDGE] = {check_judge, false, true, false},
};

/* ---- details ------------------------------------------------------------------------------------- */

int probe_cut(const char *text, size_t len)
{
    enum { SHOWN = 160 };
    return (int)utf8_valid_prefix(text, len < SHOWN ? len : SHOWN);
}

void probe_detail(struct probe *probe, const char *fmt, ...)
{
    char line[CHECK_DETAIL];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    line[utf8_valid_prefix(line, strlen(line))] = 0;
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    free(probe->r.detail);
    probe->r.detail = xstrdup(line);
}

enum answer probe_find(const char *pattern, const char *text, size_t len, struct err *e)
{
    struct regex *r = pattern ? regex_new(pattern, false, e) : NULL;
    int found = r ? regex_find(r, text, len) : pattern ? -2 : 1;
    regex_free(r);
    if (found == -1)
        err_set(e, ERR_USAGE, "matching '%.80s' against %zu bytes takes too long", pattern, len);
    return found < 0 ? ANSWER_ERROR : found ? ANSWER_YES : ANSWER_NO;
}

bool probe_cancelled(const struct probe *probe)
{
    return flag_up(probe->s->cancel);
}

/* ---- one probe ----------------------------------------------------------------------------------- */

/* Checks that the desktop still works, because a "no" counts against the program under test only then. */
static int require_desk(const struct probe *probe, struct err *e)
{
    char what[256];
    enum desk_state state = probe->s->desk ? desk_state(probe->s->desk, what, sizeof what) : DESK_OK;
    if (state == DESK_OK || state == DESK_NO_PROGRAM || state == DESK_PROGRAM_DONE)
        return 0;
    return err_set(e, ERR_ENV, "%s", what);
}

static enum answer probe_once(struct probe *probe)
{
    struct err e = ERR_INIT;
    const struct check *c = probe->c;
    enum answer a = ANSWER_ERROR;
    if (kinds[c->kind].needs_desk && !probe->s->desk)
        err_set(&e, ERR_ENV, "the desktop of the test was lost");
    else if (kinds[c->kind].needs_screen && !probe->s->screen)
        err_set(&e, ERR_ENV, "the screen of the test was lost");
    else
        a = kinds[c->kind].run(probe, &e);
    if (a == ANSWER_NO && require_desk(probe, &e))
        a = ANSWER_ERROR;
    if (a == ANSWER_ERROR)
        probe_detail(probe, "%s", e.text);
    if (c->absent && (a == ANSWER_YES || a == ANSWER_NO))
        a = a == ANSWER_YES ? ANSWER_NO : ANSWER_YES;
    return a;
}

static void check_result_clear(struct check_result *r)
{
    free(r->detail);
    free(r->output);
    *r = (struct check_result){0};
}

/* Waits before the next retry; returns false if cancelled. */
static bool wait_for_retry(const struct probe *probe, double *ms)
{
    for (int64_t start = clock_ns(); clock_ms_since(start) < *ms && !probe_cancelled(probe);)
        clock_sleep_ms(10);
    *ms = *ms * 1.5 < poll_last_ms ? *ms * 1.5 : poll_last_ms;
    return !probe_cancelled(probe);
}

/* Retries until the check says yes or its time is over. A retry that exceeds the time limit is discarded,
 * because the previous one has more information. */
static void probe_until_yes(struct probe *probe)
{
    int64_t start = clock_ns();
    double pause_ms = poll_first_ms, left = probe->c->seconds;
    for (bool first = true;; first = false) {
        struct check_result before = probe->r;
        probe->r = (struct check_result){0};
        probe->late = false;
        probe->seconds = first || left > shortest_probe ? left : shortest_probe;
        image_free(&probe->expected);
        image_free(&probe->actual);
        probe->r.answer = probe_once(probe);
        if (probe->late && !first) {
            check_result_clear(&probe->r);
            probe->r = before;
            return;
        }
        check_result_clear(&before);
        left = probe->c->seconds - clock_ms_since(start) / 1000;
        if (probe->r.answer != ANSWER_NO || !kinds[probe->c->kind].retried || probe->late || left <= 0 ||
            !wait_for_retry(probe, &pause_ms))
            return;
    }
}

/* ---- all checks ---------------------------------------------------------------------------------- */

static void run_retries(struct probe *probe, int number)
{
    struct err e = ERR_INIT;
    probe_until_yes(probe);
    if (probe_cancelled(probe) && probe->r.answer != ANSWER_YES) {
        probe->r.answer = ANSWER_NOT_ASKED;
        probe_detail(probe, "not finished: stopped");
    } else if (probe->r.answer == ANSWER_NO && check_region_pictures(probe, number, &e)) {
        autofree char *said = xstrdup(probe->r.detail);
        probe_detail(probe, "%s; no pictures: %s", said, e.text);
    }
}

static void run_check(const struct check_context *s, const struct check *c, int number,
                      struct check_result *out)
{
    struct probe probe = {.s = s, .c = c, .r = {.answer = ANSWER_NOT_ASKED}};
    int64_t start = clock_ns();
    if (probe_cancelled(&probe))
        probe_detail(&probe, "not run: stopped before it");
    else if (!s->ended && !c->always)
        probe_detail(&probe, "not run: the agent did not finish");
    else
        run_retries(&probe, number);
    image_free(&probe.expected);
    image_free(&probe.actual);
    *out = probe.r;
    out->check = c;
    out->ms = clock_ms_since(start);
}

int check_wait(const struct check_context *s, const struct check *c, struct err *e)
{
    struct probe probe = {.s = s, .c = c, .r = {.answer = ANSWER_NOT_ASKED}};
    int64_t start = clock_ns();
    do {
        check_result_clear(&probe.r);
        probe_until_yes(&probe);
    } while (probe.r.answer != ANSWER_YES && probe.r.answer != ANSWER_ERROR && !probe_cancelled(&probe) &&
             clock_ms_since(start) < 1000 * c->seconds && wait_for_retry(&probe, &(double){poll_last_ms}));
    int rc = 0;
    if (probe_cancelled(&probe))
        rc = err_set(e, ERR_STOPPED, "stopped");
    else if (probe.r.answer != ANSWER_YES)
        rc = err_set(e, probe.r.answer == ANSWER_ERROR ? ERR_ENV : ERR_TIME, "waited %.0f s until %s: %s",
                     clock_ms_since(start) / 1000, c->name, probe.r.detail);
    image_free(&probe.expected);
    image_free(&probe.actual);
    check_result_clear(&probe.r);
    return rc;
}

int checks_run(const struct check_context *s, struct attempt *a)
{
    const struct test *t = s->test;
    a->n_checks = t->n_checks;
    a->checks = xcalloc((unsigned long)t->n_checks + 1, sizeof *a->checks);
    for (int i = 0; i < t->n_checks; i++)
        run_check(s, &t->checks[i], i + 1, &a->checks[i]);
    return flag_up(s->cancel) ? -1 : 0;
}
