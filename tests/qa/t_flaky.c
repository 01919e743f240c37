/* t_flaky.c - tests that find where two runs of a test diverge, and why. */
#include "check.h"
#include "folder_check.h"

#include "base/file.h"
#include "qa/run/workers.h"
#include "trace/trace.h"

#include <unistd.h>

struct what { /* the second of three steps */
    const char *thought, *action, *failure;
    int shade; /* colour of a corner of its screen */
    int steps;
};
static const struct what usual = {"the form", "{\"kind\": \"click\", \"x\": 3, \"y\": 4}", NULL, 0, 3};

static void put(struct trace *t, int step, const char *kind, const char *key, const char *text,
                const char *json)
{
    struct err e = ERR_INIT;
    trace_begin(t, step, kind);
    if (!strcmp(kind, "action") || !strcmp(kind, "exec"))
        trace_int(t, "index", 0);
    if (!strcmp(kind, "exec"))
        trace_bool(t, "ok", text == NULL);
    trace_text(t, key, text);
    if (json)
        trace_json(t, "action", json);
    if (trace_end(t, &e))
        fail_msg("%s", e.text);
}

static char *make_run(const struct what *w)
{
    struct err e = ERR_INIT;
    struct trace *t = trace_open(place.dir, &e);
    assert_non_null(t);
    for (int i = 1; i <= w->steps; i++) {
        struct image im;
        int frame;
        char hash[17];
        assert_int_equal(image_alloc(&im, 64, 64, &e), 0);
        for (int y = 0; y < 32 && i == 2; y++)
            memset(im.rgb + y * 64 * 3, w->shade, 32 * 3);
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)image_hash(&im));
        assert_int_equal(trace_frame(t, &im, image_hash(&im), &frame, &e), 0);
        image_free(&im);
        trace_begin(t, i, "observe");
        trace_int(t, "frame", frame);
        trace_text(t, "hash", hash);
        assert_int_equal(trace_end(t, &e), 0);
        put(t, i, "step", "thought", i == 2 ? w->thought : "same", NULL);
        put(t, i, "action", "what", i == 2 ? w->action : "go back",
            i == 2 ? w->action : "{\"kind\": \"back\"}");
        put(t, i, "exec", "error", i == 2 ? w->failure : NULL, NULL);
    }
    char *dir = xstrdup(trace_dir(t));
    assert_int_equal(trace_close(t, &e), 0);
    return dir;
}

static void parts(const struct what *failed, const struct what *passed, enum flaky why, const char *where)
{
    char *a = make_run(failed), *b = make_run(passed), *said;
    enum flaky f = flaky_cause(a, b, &said);
    if (f != why || !said || !strstr(said, where))
        fail_msg("%s: %s", flaky_description(f), said ? said : "nowhere");
    free(said);
    free(a);
    free(b);
}

static void t_parts(void **state)
{
    struct what w = usual;
    w.action = "{\"kind\": \"click\", \"x\": 3, \"y\": 5}";
    parts(&w, &usual, FLAKY_MODEL,
          "step 2: same screen, different action: failed with {\"kind\": \"click\", \"x\": 3, \"y\": 5}");
    parts(&usual, &w, FLAKY_MODEL, "failed with {\"kind\": \"click\", \"x\": 3, \"y\": 4}");
    w.shade = 90; /* a different screen as well, which takes precedence */
    parts(&w, &usual, FLAKY_APPLICATION, "step 2: 25.0 % of the screen differs");
    w.shade = 2; /* a small colour difference is ignored */
    parts(&w, &usual, FLAKY_MODEL, "step 2: same screen except for a few pixels, different action");
    w = usual;
    w.shade = 90;
    parts(&usual, &w, FLAKY_APPLICATION, "step 2: 25.0 % of the screen differs");
    w = usual;
    w.failure = "no such window";
    parts(&w, &usual, FLAKY_APPLICATION, "succeeded only when the test passed");
    parts(&usual, &w, FLAKY_APPLICATION, "succeeded only when the test failed");
    w = usual;
    w.thought = "another";
    parts(&w, &usual, FLAKY_APPLICATION, "after step 3: same screens and actions");
    w.steps = 2;
    parts(&w, &usual, FLAKY_UNKNOWN, "step 3: only the run that passed has it");
}

static void unknown(const char *a, const char *b)
{
    char *where = (char *)1;
    assert_int_equal(flaky_cause(a, b, &where), FLAKY_UNKNOWN);
    free(where);
}

static void t_unreadable(void **state)
{
    struct err e = ERR_INIT;
    char *a = make_run(&usual), *b = make_run(&usual), *path, *where;
    unknown(NULL, b);
    unknown(a, NULL);
    unknown(a, "/nowhere");
    path = xasprintf("%s/events.jsonl", a);
    assert_int_equal(file_write(path, "not a line\n{\"v\": 1}\n[]", 22, &e), 0);
    unknown(a, b);
    free(path);
    path = xasprintf("%s/events.jsonl", b); /* an unreadable line might have been the difference */
    char *c = make_run(&usual), *events;
    size_t len;
    assert_int_equal(file_read(path, 1 << 20, &events, &len, &e), 0);
    events = xrealloc(events, len + 5, 1);
    memcpy(events + len, "half\n", 5);
    assert_int_equal(file_write(path, events, len + 5, &e), 0);
    unknown(b, c);
    assert_int_equal(file_write(path, events, len, &e), 0);
    free(events);
    free(path);
    free(c);
    struct what w = usual; /* without the screenshot the cause is unknown */
    w.shade = 90;
    c = make_run(&w);
    path = xasprintf("%s/frames/000002.png", c);
    if (unlink(path)) { /* numbered from 0 */
        free(path);
        path = xasprintf("%s/frames/000001.png", c);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(flaky_cause(b, c, &where), FLAKY_UNKNOWN);
    assert_non_null(strstr(where, "step 2: a screenshot is missing"));
    free(where);
    free(path);
    free(a);
    free(b);
    free(c);
}

#define IN_FOLDER(text, fn) CLAIM_WITH(text, fn, folder_setup, folder_teardown)

static const struct CMUnitTest tests[] = {
    IN_FOLDER("runs diverge at the first different screen or action, which identifies the cause", t_parts),
    IN_FOLDER("runs that cannot be read diverge for an unknown reason", t_unreadable),
};

CHECK_MAIN()
