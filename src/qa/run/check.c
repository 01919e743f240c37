/* check.c - the checks of a test one after the other, each until it says yes or its time is over; see check.h.
 *
 * What a check looks at is in check_desk.c, check_screen.c and check_llm.c; here is what they share: waiting, being
 * absent, a desk that is lost, and the line about it.
 */
#include "qa/run/check_impl.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double poll_first_ms = 50, poll_last_ms = 500, shortest_look = 1;

static const struct {
    check_fn *look;
    bool of_desk, of_screen; /* needs it */
    bool again;              /* may say yes a little later */
} kinds[] = {
    [CHECK_SHELL] = {check_shell, true, false, true},
    [CHECK_ANSWER] = {check_answer, false, false, false},
    [CHECK_WINDOW] = {check_window, false, true, true},
    [CHECK_FILE] = {check_file, true, false, true},
    [CHECK_PROCESS] = {check_process, true, false, true},
    [CHECK_PORT] = {check_port, false, false, true},
    [CHECK_REGION] = {check_region, false, true, true},
    [CHECK_TEXT] = {check_text, false, true, false},
    [CHECK_JUDGE] = {check_judge, false, true, false},
};

/* ---- words ------------------------------------------------------------------------------------------------------ */

int look_cut(const char *text, size_t len)
{
    enum { SHOWN = 160 };
    return (int)utf8_valid_prefix(text, len < SHOWN ? len : SHOWN);
}

void look_says(struct look *l, const char *fmt, ...)
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
    free(l->r.detail);
    l->r.detail = xstrdup(line);
}

bool look_cancelled(const struct look *l)
{
    return flag_up(l->s->cancel);
}

/* ---- one look --------------------------------------------------------------------------------------------------- */

/* A no is about the program under test only as long as its desk is well. */
static int desk_is_well(const struct look *l, struct err *e)
{
    char what[256];
    enum desk_state state = l->s->desk ? desk_state(l->s->desk, what, sizeof what) : DESK_OK;
    if (state == DESK_OK || state == DESK_NO_PROGRAM || state == DESK_PROGRAM_DONE)
        return 0;
    return err_set(e, ERR_ENV, "%s", what);
}

static enum answer look_once(struct look *l)
{
    struct err e = ERR_INIT;
    const struct check *c = l->c;
    enum answer a = ANSWER_ERROR;
    if (kinds[c->kind].of_desk && !l->s->desk)
        err_set(&e, ERR_ENV, "the desktop of the test was lost");
    else if (kinds[c->kind].of_screen && !l->s->screen)
        err_set(&e, ERR_ENV, "the screen of the test was lost");
    else
        a = kinds[c->kind].look(l, &e);
    if (a == ANSWER_NO && desk_is_well(l, &e))
        a = ANSWER_ERROR;
    if (a == ANSWER_ERROR)
        look_says(l, "%s", e.text);
    if (c->absent && (a == ANSWER_YES || a == ANSWER_NO))
        a = a == ANSWER_YES ? ANSWER_NO : ANSWER_YES;
    return a;
}

static void forget(struct check_result *r)
{
    free(r->detail);
    free(r->output);
    *r = (struct check_result){0};
}

/* false: cancelled. */
static bool pause_before_next(const struct look *l, double *ms)
{
    for (int64_t start = clock_ns(); clock_ms_since(start) < *ms && !look_cancelled(l);)
        clock_sleep_ms(10);
    *ms = *ms * 1.5 < poll_last_ms ? *ms * 1.5 : poll_last_ms;
    return !look_cancelled(l);
}

/* Looks until it is a yes, or no longer worth it.  A further look that takes longer than what is left says nothing that the
 * one before has not said. */
static void look_until(struct look *l)
{
    int64_t start = clock_ns();
    double pause_ms = poll_first_ms, left = l->c->seconds;
    for (bool first = true;; first = false) {
        struct check_result before = l->r;
        l->r = (struct check_result){0};
        l->late = false;
        l->seconds = first || left > shortest_look ? left : shortest_look;
        image_free(&l->expected);
        image_free(&l->actual);
        l->r.answer = look_once(l);
        if (l->late && !first) {
            forget(&l->r);
            l->r = before;
            return;
        }
        forget(&before);
        left = l->c->seconds - clock_ms_since(start) / 1000;
        if (l->r.answer != ANSWER_NO || !kinds[l->c->kind].again || l->late || left <= 0 ||
            !pause_before_next(l, &pause_ms))
            return;
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void ask_check(struct look *l, int number)
{
    struct err e = ERR_INIT;
    look_until(l);
    if (look_cancelled(l) && l->r.answer != ANSWER_YES) {
        l->r.answer = ANSWER_NOT_ASKED;
        look_says(l, "not asked to the end: stopped meanwhile");
    } else if (l->r.answer == ANSWER_NO && check_region_pictures(l, number, &e)) {
        char *said = xstrdup(l->r.detail);
        look_says(l, "%s; no pictures of it: %s", said, e.text);
        free(said);
    }
}

static void run_check(const struct check_scene *s, const struct check *c, int number,
                      struct check_result *out)
{
    struct look l = {.s = s, .c = c, .r = {.answer = ANSWER_NOT_ASKED}};
    int64_t start = clock_ns();
    if (look_cancelled(&l))
        look_says(&l, "not asked: stopped before");
    else if (!s->ended && !c->always)
        look_says(&l, "not asked: the agent did not come to an end of its own");
    else
        ask_check(&l, number);
    image_free(&l.expected);
    image_free(&l.actual);
    *out = l.r;
    out->check = c;
    out->ms = clock_ms_since(start);
}

int checks_run(const struct check_scene *s, struct attempt *a)
{
    const struct test *t = s->test;
    a->n_checks = t->n_checks;
    a->checks = xcalloc((unsigned long)t->n_checks + 1, sizeof *a->checks);
    for (int i = 0; i < t->n_checks; i++)
        run_check(s, &t->checks[i], i + 1, &a->checks[i]);
    return flag_up(s->cancel) ? -1 : 0;
}
