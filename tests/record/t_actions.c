/* t_actions.c - tests performing recorded actions again: the events that reach a window, where it stops, and
 * the record of it. The run is scripted, display and program are real.
 */
#include "check.h"
#include "driven.h"

#include "base/clock.h"
#include "base/file.h"
#include "trace/story.h"

#include <signal.h>
#include <unistd.h>

#define QUICK "--settle-min", "1", "--settle-quiet", "30"

/* Records a run on a private display; returns its folder, which the caller frees. */
static char *record_run(struct stage *t, const char *replies, const char *option)
{
    struct outcome o = {0};
    stage_still = true; /* the screens of both runs must be comparable */
    driven_open(t);
    char *script = xvfb_put(&t->x, "script", replies), *runs = xvfb_place(&t->x, "runs");
    program_run(&t->x, &o, WORDS("run", "Press Save", "-q", "--fake", script, "--runs", runs, QUICK, option));
    if (o.code != ERR_UNVERIFIED)
        fail_msg("%s", o.err);
    char *dir = record_newest(runs, NULL);
    outcome_free(&o);
    free(script);
    free(runs);
    return dir;
}

static json_t *replay(struct stage *t, const char *run, int code, const char *a, const char *b, const char *c)
{
    struct outcome o = {0};
    char *runs = xvfb_place(&t->x, "replays");
    stage_clear(t);
    program_run(&t->x, &o, WORDS("replay", run, "--actions", "--json", "-q", "--runs", runs, a, b, c));
    if (o.code != code)
        fail_msg("exit %d, not %d: %s%s", o.code, code, o.out, o.err);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_non_null(json);
    assert_int_equal(pressed(t->other), 0);
    outcome_free(&o);
    free(runs);
    return json;
}

static void paint(struct stage *t, int x, int y, int w, int h)
{
    GC gc = XCreateGC(t->other, DefaultRootWindow(t->other), 0, NULL);
    XSetForeground(t->other, gc, 0xe02040);
    XSetSubwindowMode(t->other, gc, IncludeInferiors);
    XFillRectangle(t->other, DefaultRootWindow(t->other), gc, x, y, (unsigned)w, (unsigned)h);
    XFreeGC(t->other, gc);
    XSync(t->other, False);
}

static void t_same(void **state)
{
    struct stage t;
    char *run = record_run(&t, CLICK(300, 300) TYPE("abc") CLICK(400, 500) ANSWER("Done."), NULL);
    json_t *json = replay(&t, run, 0, NULL, NULL, NULL);
    assert_string_equal(field_text(json, "status"), "replayed");
    assert_int_equal(field_int(json, "actions"), 3);
    json_t *list = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(field(list, 0, "x"), 240); /* of 800 x 600 */
    assert_int_equal(field(list, 1, "x"), 320);
    assert_int_equal(json_array_size(stage_events(&t, "key_press")), 3);
    assert_true(file_exists(field_text(json, "report")));

    struct record r;
    struct story s;
    assert_int_equal(record_open(&r, field_text(json, "run_dir"), NULL), 0);
    story_make(&s, &r);
    assert_string_equal(field_text(r.run, "parent"), run);
    assert_int_equal(s.n, 4);
    assert_string_equal(field_text(s.end, "status"), "replayed");
    story_free(&s);
    record_free(&r);
    struct outcome o = {0};
    program_run(&t.x, &o, WORDS("diff", run, field_text(json, "run_dir"), "--json"));
    json_t *diff = json_loads(o.out, 0, NULL);
    assert_int_equal(field_int(diff, "differing"), 0);
    json_decref(diff);
    json_decref(json);

    json = replay(&t, run, 0, "--from=2", "--to=2", NULL);
    assert_int_equal(field_int(json, "actions"), 1);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    assert_int_equal(json_array_size(stage_events(&t, "key_press")), 3);
    json_decref(json);
    json = replay(&t, run, 0, "--dry-run", NULL, NULL);
    assert_int_equal(field_int(json, "actions"), 3);
    assert_int_equal(json_array_size(stage_events(&t, NULL)), 0);
    json_decref(json);
    int64_t start = clock_ns();
    json = replay(&t, run, 0, "--speed=0.2", NULL, NULL); /* five times as slow */
    check_note("slowly in %.0f ms", clock_ms_since(start));
    json_decref(json);
    outcome_free(&o);
    free(run);
    stage_close(&t);
}

static void t_other_screen(void **state)
{
    struct stage t;
    char *run = record_run(&t, CLICK(300, 300) TYPE("abc") ANSWER("Done."), NULL);
    paint(&t, 0, 0, 800, 64); /* two rows of 19: 10 % */
    json_t *json = replay(&t, run, ERR_FAILED, NULL, NULL, NULL);
    assert_string_equal(field_text(json, "status"), "differs");
    assert_int_equal(field_int(json, "step"), 1);
    assert_true(field_number(json, "tiles") > 0.10 && field_number(json, "tiles") < 0.11);
    assert_int_equal(json_array_size(stage_events(&t, NULL)), 0);
    char *page;
    size_t len;
    assert_int_equal(file_read(field_text(json, "report"), 64 << 20, &page, &len, NULL), 0);
    assert_non_null(strstr(page, "difference: 10."));
    assert_non_null(strstr(page, "screen of a at step 1"));
    assert_non_null(strstr(page, "screen of b at step 1"));
    free(page);
    json_decref(json);
    json = replay(&t, run, 0, "--threshold=0.2", NULL, NULL);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 1);
    json_decref(json);
    free(run);
    stage_close(&t);
}

static void t_rules(void **state)
{
    struct stage t;
    char *run = record_run(&t, CLICK(300, 300) TYPE("abc") ANSWER("Done."), NULL);
    json_t *json = replay(&t, run, ERR_FAILED, "--observe-only", NULL, NULL);
    assert_non_null(strstr(field_text(json, "error"), "step 1 was not allowed"));
    assert_int_equal(json_array_size(stage_events(&t, NULL)), 0);
    json_decref(json);

    /* one process at a time holds the input lock */
    struct err e = ERR_INIT;
    t.s = screen_open(NULL, &e);
    assert_non_null(t.s);
    assert_int_equal(screen_acquire_input(t.s, &e), 0);
    struct outcome o = {0};
    char *runs = xvfb_place(&t.x, "replays");
    program_run(&t.x, &o, WORDS("replay", run, "--actions", "--runs", runs));
    ONE_LINE(&o, ERR_ENV, "in use by another holorun");
    program_run(&t.x, &o, WORDS("replay", run, "--actions", "--verify"));
    assert_int_equal(o.code, ERR_USAGE);
    outcome_free(&o);
    free(runs);
    free(run);
    stage_close(&t);
}

static void t_stopped(void **state)
{
    struct stage t;
    char *run =
        record_run(&t,
                   TYPE("abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz")
                       ANSWER("Done."),
                   NULL);
    struct outcome o = {0};
    char *runs = xvfb_place(&t.x, "replays");
    stage_clear(&t);
    pid_t pid = program_start(
        &t.x, WORDS("replay", run, "--actions", "--json", "-q", "--runs", runs, "--key-delay", "50"));
    for (int i = 0; i < 400 && json_array_size(stage_events(&t, "key_press")) < 5; i++)
        clock_sleep_ms(5);
    kill(pid, SIGINT);
    program_finish(&t.x, pid, &o);
    assert_int_equal(o.code, ERR_STOPPED);
    assert_int_equal(pressed(t.other), 0);
    size_t typed = json_array_size(stage_events(&t, "key_press"));
    assert_true(typed >= 5 && typed < 80);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_string_equal(field_text(json, "status"), "stopped");
    struct record r;
    assert_int_equal(record_open(&r, field_text(json, "run_dir"), NULL), 0);
    assert_string_equal(r.events[r.n - 1].kind, "end");
    assert_string_equal(field_text(r.run, "status"), "stopped");
    record_free(&r);
    json_decref(json);
    outcome_free(&o);
    free(runs);
    free(run);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("recorded actions reach the window again, all or some, and make a run of their own", t_same),
    CLAIM("on another screen nothing is pressed, and the report shows both and the difference",
          t_other_screen),
    CLAIM("rules and input lock of a run apply: a denied action ends it", t_rules),
    CLAIM("stopped while typing: nothing pressed, everything recorded", t_stopped),
};

CHECK_MAIN()
