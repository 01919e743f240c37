/* driven.c - see driven.h. */
#include "driven.h"

#include "base/clock.h"
#include "base/file.h"
#include "run/running.h"

/* cmocka.h needs these headers first */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 20000 };

void driven_open(struct stage *t)
{
    stage_open(t);
    screen_close(t->s); /* the program needs the input lock */
    t->s = NULL;
}

pid_t driven_start_with(const struct stage *t, const char *replies, const char *const *more)
{
    char *script = xvfb_put(&t->x, "script", replies), *runs = xvfb_place(&t->x, "runs");
    const char *words[24] = {"run", "Press Save",   "--quiet", "--fake",         script, "--runs",
                             runs,  "--settle-min", "1",       "--settle-quiet", "30"};
    int n = 11;
    for (; *more && n < 23; more++)
        words[n++] = *more;
    pid_t pid = program_start(&t->x, words);
    free(script);
    free(runs);
    return pid;
}

pid_t driven_start(const struct stage *t, const char *replies)
{
    return driven_start_with(t, replies, WORDS(NULL));
}

void driven_run(const struct stage *t, const char *replies, const char *const *more, struct outcome *o)
{
    program_finish(&t->x, driven_start_with(t, replies, more ? more : WORDS(NULL)), o);
}

void driven_wait(const struct stage *t, const char *name, int n)
{
    char *what = xasprintf("\"event\":\"%s\"", name), *text = NULL;
    int count = 0;
    for (int i = 0; count < n && i < PATIENCE_MS / 5; i++) {
        size_t len;
        clock_sleep_ms(5);
        free(text);
        assert_int_equal(file_read(t->events, 16 << 20, &text, &len, NULL), 0);
        count = 0;
        for (const char *p = text; (p = strstr(p, what)); p++)
            count++;
    }
    free(text);
    free(what);
    assert_true(count >= n);
}

void driven_read(const struct stage *t, struct record *r)
{
    char *runs = xvfb_place(&t->x, "runs"), *dir = record_newest(runs, NULL);
    assert_non_null(dir);
    assert_int_equal(record_open(r, dir, NULL), 0);
    assert_int_equal(r->skipped, 0);
    free(dir);
    free(runs);
}

const json_t *driven_last(const struct record *r, const char *kind)
{
    for (int i = r->n - 1; i >= 0; i--)
        if (!strcmp(r->events[i].kind, kind))
            return r->events[i].fields;
    return NULL;
}

void driven_left_nothing(const struct stage *t)
{
    struct running *runs;
    assert_int_equal(pressed(t->other), 0);
    assert_int_equal(borrowed_keycodes(t->other), 0);
    assert_int_equal(running_list(&runs, NULL), 0);
    free(runs);
}

void driven_was_stopped(const struct stage *t, const char *by)
{
    struct record r;
    driven_read(t, &r);
    assert_false(r.torn);
    assert_string_equal(field_text(driven_last(&r, "end"), "status"), "stopped");
    assert_non_null(strstr(field_text(driven_last(&r, "end"), "error"), by));
    assert_int_equal(field_int(r.run, "exit"), ERR_STOPPED);
    char *page = xasprintf("%s/report.html", r.dir);
    assert_true(file_exists(page));
    free(page);
    record_free(&r);
}
