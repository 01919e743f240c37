/* t_diff.c - tests comparing two runs: all kinds of differences are found and displayed, and no content of a
 * run can change the page or the terminal.
 */
#include "check.h"
#include "folder_check.h"
#include "program.h"

#include "base/file.h"
#include "replay/diff.h"
#include "trace/trace.h"

#include <sys/stat.h>

struct what { /* content of a step */
    int steps;
    int shade; /* grey level of a screen corner from step 2 on */
    const char *thought, *action, *status;
    bool changed;
};
static const struct what usual = {3,          0,   "the form", "{\"kind\": \"click\", \"x\": 3, \"y\": 4}",
                                  "answered", true};

static char *make_run(const struct what *w)
{
    struct err e = ERR_INIT;
    struct trace *t = trace_open(place.dir, &e);
    struct image im;
    int frame;
    assert_non_null(t);
    assert_int_equal(image_alloc(&im, 128, 96, &e), 0);
    assert_int_equal(trace_run_json(t, "{\"task\": \"Book\"}", 16, &e), 0);
    for (int i = 1; i <= w->steps; i++) {
        for (int y = 0; y < 32 && i > 1; y++)
            memset(im.rgb + y * 128 * 3, w->shade, 32 * 3);
        char hash[17];
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)image_hash(&im));
        assert_int_equal(trace_frame(t, &im, image_hash(&im), &frame, &e), 0);
        trace_begin(t, i, "observe");
        trace_int(t, "frame", frame);
        trace_text(t, "hash", hash);
        assert_int_equal(trace_end(t, &e), 0);
        trace_begin(t, i, "step");
        trace_text(t, "thought", i == 2 ? w->thought : "same");
        assert_int_equal(trace_end(t, &e), 0);
        trace_begin(t, i, "action");
        trace_int(t, "index", 0);
        trace_text(t, "what", i == 2 ? w->action : "click");
        trace_json(t, "action", i == 2 ? w->action : "{\"kind\": \"back\"}");
        assert_int_equal(trace_end(t, &e), 0);
        trace_begin(t, i, "effect");
        trace_bool(t, "changed", i == 2 ? w->changed : true);
        assert_int_equal(trace_end(t, &e), 0);
    }
    trace_begin(t, w->steps, "end");
    trace_text(t, "status", w->status);
    assert_int_equal(trace_end(t, &e), 0);
    char *dir = xstrdup(trace_dir(t));
    assert_int_equal(trace_close(t, &e), 0);
    image_free(&im);
    return dir;
}

static void diff_of(struct run_diff *d, const struct what *w)
{
    char *a = make_run(&usual), *b = make_run(w);
    struct err e = ERR_INIT;
    if (diff_open(d, a, b, &e))
        fail_msg("%s", e.text);
    free(a);
    free(b);
}

static void t_kinds(void **state)
{
    struct run_diff d;
    struct what w = usual;
    diff_of(&d, &w);
    assert_false(diff_any(&d));
    assert_int_equal(d.n, 3);
    diff_free(&d);

    w.thought = "another";
    w.action = "{\"kind\": \"click\", \"x\": 3, \"y\": 5}";
    w.changed = false;
    diff_of(&d, &w);
    assert_int_equal(d.steps[1].differs, DIFF_THOUGHT | DIFF_ACTION | DIFF_EFFECT);
    assert_true(d.differing == 1 && !d.end_differs);
    diff_free(&d);

    w = usual;
    w.shade = 90;
    diff_of(&d, &w);
    for (int i = 0; i < 3; i++)
        assert_int_equal(d.steps[i].differs, i ? DIFF_FRAME : 0);
    assert_true(d.steps[1].tiles > 0.08 && d.steps[1].tiles < 0.09); /* 1 of 12 tiles */
    diff_free(&d);

    w = usual;
    w.shade = 2; /* other pixels, below the threshold of a change */
    diff_of(&d, &w);
    assert_false(diff_any(&d));
    diff_free(&d);

    w = usual;
    w.steps = 5;
    w.status = "loop";
    diff_of(&d, &w);
    assert_true(d.n == 5 && d.differing == 2 && d.end_differs);
    assert_int_equal(d.steps[4].differs, DIFF_MISSING);
    assert_null(d.steps[4].side[0]);
    diff_free(&d);
}

static char *printed(const struct run_diff *d, bool page)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    if (page)
        diff_page_print(d, "Two <runs>", f);
    else
        diff_print(d, f);
    fclose(f);
    return text;
}

static void t_hostile(void **state)
{
    struct run_diff d;
    struct what w = usual;
    w.shade = 200;
    w.thought =
        "</section><script>alert(1)</script>\"'><img src=http://x/y> {{steps}} \x1b[31mred\x1b]0;title\a";
    w.action = "{\"kind\": \"type\", \"text\": \"<b>\\u001b[2J</b>\"}";
    diff_of(&d, &w);
    char *page = printed(&d, true), *text = printed(&d, false);
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<img src"));
    assert_null(strstr(page, "<b>"));
    assert_null(strchr(page, '\x1b'));
    assert_non_null(strstr(page, "default-src 'none'; img-src data:; style-src 'unsafe-inline';"));
    assert_non_null(strstr(page, "Two &lt;runs&gt;"));
    assert_non_null(strstr(page, "{{steps}}")); /* literal text, not a template slot */
    assert_int_equal(check_count(page, "<section"), 3);
    assert_int_equal(check_count(page, "</section>"), 3);
    assert_int_equal(check_count(page, "<svg "), 6);
    assert_int_equal(check_count(page, "difference: "), 2);
    assert_null(strchr(text, '\x1b'));
    assert_null(strchr(text, '\a'));
    assert_non_null(strstr(text, "2 of 3 steps differ"));
    free(page);
    free(text);
    diff_free(&d);
}

static void t_command(void **state)
{
    struct outcome o = {0};
    struct what w = usual;
    w.thought = "another";
    char *a = make_run(&usual), *b = make_run(&w), *html = xvfb_place(&place, "both.html");
    program_run(&place, &o, WORDS("diff", a, a));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "the same in all 3 steps"));
    program_run(&place, &o, WORDS("diff", a, b, "--json", "--html", html));
    assert_int_equal(o.code, ERR_FAILED);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_string_equal(field_text(json, "status"), "differs");
    const json_t *second = json_array_get(json_object_get(json, "steps"), 1);
    assert_true(field_bool(second, "thought") && !field_bool(second, "action"));
    json_decref(json);
    struct stat st;
    assert_int_equal(stat(html, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    program_run(&place, &o, WORDS("diff", a));
    assert_int_equal(o.code, ERR_USAGE);
    program_run(&place, &o, WORDS("diff", a, "/nowhere/else", "--runs", place.dir));
    ONE_LINE(&o, ERR_USAGE, "/nowhere/else");
    program_run(&place, &o, WORDS("diff", a, b, "--html", "/nowhere/x.html"));
    ONE_LINE(&o, ERR_ENV, "/nowhere/x.html");
    outcome_free(&o);
    free(a);
    free(b);
    free(html);
}

static const struct CMUnitTest tests[] = {
    CLAIM_WITH("screen, thought, action, effect, missing steps, end: each difference is found", t_kinds,
               folder_setup, folder_teardown),
    CLAIM_WITH("no content of a run changes the page or the terminal", t_hostile, folder_setup,
               folder_teardown),
    CLAIM_WITH("exit code, JSON, a private page, and one line for a run that does not exist", t_command,
               folder_setup, folder_teardown),
};

CHECK_MAIN()
