/* t_expected.c - tests replaying recorded actions on a page that is slower than in the record, never comes, or
 * shows a button before it works. The page is a Tk program; the file that it writes decides.
 */
#include "check.h"
#include "hands.h"
#include "replies.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "trace/story.h"

#include <unistd.h>

/* First shows the second page after LATE ms; its button is ignored for DEAD ms. Quietly changes nothing on the
 * screen, and after LATE ms the second button works. */
static const char page[] =
    "lassign $argv out late dead quietly\n"
    "wm title . Page\nwm geometry . 400x300+0+0\n"
    "option add *font {Helvetica 24}\n"
    "set ready 0\n"
    "proc works {} {global ready dead; expr {$ready && [clock milliseconds] - $ready >= $dead}}\n"
    "proc second {} {global ready; set ready [clock milliseconds]\n"
    "  place .b -x 200 -y 100 -width 160 -height 60; place .t -x 20 -y 20}\n"
    "proc quiet {} {global ready; set ready [clock milliseconds]}\n"
    "proc write {} {global out; if {![works]} return\n"
    "  set f [open $out w]; puts $f second; close $f; .t configure -text Finished}\n"
    "label .t -text {Second page}\n"
    "button .b -text Second -command write -takefocus 0 -relief flat -activebackground gray85\n"
    "button .a -text First -takefocus 0 -relief flat -activebackground gray85 "
    "-command {after $late [expr {$quietly ? {quiet} : {second}}]}\n"
    ". configure -background gray85\n.t configure -background gray85\n"
    "place .a -x 20 -y 200 -width 160 -height 60\n"
    "if {$quietly} {place .b -x 200 -y 100 -width 160 -height 60; place .t -x 20 -y 20\n"
    "  bind .a <ButtonPress> {break}; bind .a <ButtonRelease> {break}\n"
    "  bind .a <ButtonRelease> {after $late quiet; break}}\n";

#define SCRIPT CLICK(250, 766) CLICK(700, 433) ANSWER("Done.")

static char *script, *out, *runs;
static pid_t wish;

static void start(const char *late, const char *dead, const char *quietly)
{
    unlink(out);
    wish = xvfb_spawn(&hands_x, "wish.log", WORDS("wish", script, "--", out, late, dead, quietly));
    assert_true(wish > 0 && xvfb_wait_window(&hands_x, "^Page"));
    hands_point(390, 10);
    clock_sleep_ms(500);
}

/* Records a run on the page without delays; the caller frees its folder. */
static char *record_run(const char *quietly)
{
    struct outcome o = {0};
    hands_open("400x300x24");
    if (!program_exists("wish"))
        skip();
    script = xvfb_put(&hands_x, "page.tcl", page);
    out = xvfb_place(&hands_x, "page.out");
    runs = xvfb_place(&hands_x, "runs");
    char *replies = xvfb_put(&hands_x, "replies", SCRIPT);
    start("0", "0", quietly);
    program_run(&hands_x, &o, WORDS("run", "Press both", "-q", "--fake", replies, "--runs", runs));
    if (o.code && o.code != ERR_UNVERIFIED)
        fail_msg("%d: %s", o.code, o.err);
    hands_assert_text(out, "second\n");
    process_end(wish);
    free(replies);
    outcome_free(&o);
    return record_newest(runs, NULL);
}

static void close_all(char *run)
{
    free(run);
    free(script);
    free(out);
    free(runs);
    hands_close();
}

/* Replays the run on a page with these delays. Returns the outcome as JSON, which the caller releases; *did:
 * whether the page was finished. */
static json_t *replay(const char *run, const char *late, const char *dead, const char *quietly, bool *did,
                      const char *option)
{
    struct outcome o = {0};
    char *again = xvfb_place(&hands_x, "again");
    start(late, dead, quietly);
    program_run(&hands_x, &o,
                WORDS("replay", run, "--actions", "--json", "-q", "--no-report", "--runs", again, option));
    json_t *json = json_loads(o.out, 0, NULL);
    if (!json)
        fail_msg("exit code %d: %s", o.code, o.err);
    clock_sleep_ms(200);
    *did = file_exists(out);
    check_note("late %s, dead %s: %s, %s", late, dead, field_text(json, "status"),
               *did ? "done" : "not done");
    if (field_int(json, "exit") != 0)
        check_note("step %d, %.0f ms, area %s", (int)field_int(json, "step"), field_number(json, "waited_ms"),
                   json_dumps(json_object_get(json, "area"), 0));
    process_end(wish);
    free(again);
    outcome_free(&o);
    return json;
}

static void t_slow(void **state)
{
    static const char *const late[] = {"0", "150", "350", "700", "1200", "2000"};
    char *run = record_run("0");
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        bool did;
        json_t *json = replay(run, late[i], "0", "0", &did, NULL);
        assert_string_equal(field_text(json, "status"), "replayed");
        assert_true(did);
        json_decref(json);
    }
    close_all(run);
}

static void t_never(void **state)
{
    char *run = record_run("0");
    bool did;
    json_t *json = replay(run, "60000", "0", "0", &did, NULL), *area = json_object_get(json, "area");
    assert_string_equal(field_text(json, "status"), "differs");
    assert_int_equal(field_int(json, "step"), 2);
    assert_false(did);
    assert_true(field_number(json, "waited_ms") >= 3000);
    int x = (int)json_integer_value(json_array_get(area, 0)),
        y = (int)json_integer_value(json_array_get(area, 1)),
        w = (int)json_integer_value(json_array_get(area, 2)),
        h = (int)json_integer_value(json_array_get(area, 3));
    assert_true(x <= 32 && y <= 32 && x + w >= 320 && y + h >= 128 &&
                y + h <= 192); /* around title and button */
    json_decref(json);

    struct outcome o = {0};
    char *again = xvfb_place(&hands_x, "again");
    start("60000", "0", "0");
    program_run(&hands_x, &o, WORDS("replay", run, "--actions", "-q", "--no-report", "--runs", again));
    check_note("%.*s", (int)strcspn(o.out, "\n"), o.out);
    assert_int_equal(o.code, ERR_FAILED);
    assert_non_null(strstr(o.out, "differs before step 2"));
    assert_non_null(strstr(o.out, "pixels at "));
    process_end(wish);
    outcome_free(&o);
    free(again);
    close_all(run);
}

/* A press on a button that does not work yet has no effect: then the replay fails, or it came late enough. */
static void t_dead(void **state)
{
    static const char *const dead[] = {"200", "500", "1500"};
    char *run = record_run("0");
    bool did;
    json_t *json;
    for (size_t i = 0; i < sizeof dead / sizeof *dead; i++) {
        json = replay(run, "0", dead[i], "0", &did, NULL);
        assert_int_equal(field_int(json, "exit"), did ? 0 : ERR_FAILED);
        if (!did)
            assert_int_equal(field_int(json, "step"), 3);
        json_decref(json);
    }
    json = replay(run, "0", "500", "0", &did, "--speed=0.2");
    assert_int_equal(field_int(json, "exit"), 0); /* at a fifth of the recorded speed the button works */
    assert_true(did);
    json_decref(json);
    close_all(run);
}

static void t_invisible(void **state)
{
    char *run = record_run("1");
    bool did;
    json_t *json = replay(run, "150", "0", "1", &did, NULL);
    assert_int_equal(field_int(json, "exit"), 0);
    assert_true(did);
    json_decref(json);
    close_all(run);
}

static const struct CMUnitTest tests[] = {
    CLAIM("recorded actions wait for a page that is up to 2 s slower than in the record", t_slow),
    CLAIM("a recorded screen that never comes ends the replay, with the differing area", t_never),
    CLAIM("a replay whose press was ignored does not pass; at the recorded pace it works", t_dead),
    CLAIM("after an action without visible effect the screen must also settle", t_invisible),
};

CHECK_MAIN()
