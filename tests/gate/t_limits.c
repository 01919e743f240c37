/* t_limits.c - tests of the limits of a run: typed characters, actions per minute, errors, actions without
 * effect.
 *
 * The tests check the window's events, and the limit named in the record, the report and the program's
 * output.
 */
#include "check.h"
#include "driven.h"
#include "play.h"

#include "base/clock.h"
#include "base/file.h"

#define KEYS(keys)      STEP("\"hotkey_desktop\", \"keys\": [" keys "]")
#define KEYS_N(keys, n) STEP("\"hotkey_desktop\", \"keys\": [" keys "], \"repeat_count\": " #n)
#define BAD_KEY         KEYS("\"hyperspace\"")
#define FIVE(what)      what what what what what
#define CLICK_AND_CLICK CLICK(500, 500) CLICK(500, 501)

static void ended(const struct play *p, enum agent_status status, const char *limit, double allowed)
{
    const json_t *end = p->story.end;
    if (p->r.status != status)
        fail_msg("ended as '%s', not as '%s'", agent_status_name(p->r.status), agent_status_name(status));
    assert_string_equal(p->r.limit, limit);
    assert_string_equal(field_text(end, "limit"), limit);
    assert_true(field_number(end, "allowed") == allowed && p->r.allowed == allowed);
}

/* Returns the number of characters that have reached the window. */
static int arrived(struct play *p)
{
    json_t *list = stage_events(&p->stage, "key_press");
    int n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t sym = field(list, i, "keysym");
        n += sym >= 0x20 && sym < 0xfe00;
    }
    return n;
}

static void focus(struct play *p)
{
    Window root, parent, *children;
    unsigned n;
    Display *d = p->stage.other;
    assert_true(XQueryTree(d, DefaultRootWindow(d), &root, &parent, &children, &n) && n);
    XSetInputFocus(d, children[n - 1], RevertToPointerRoot, CurrentTime);
    XSync(d, False);
    XFree(children);
}

/* ---- characters ------------------------------------------------------------------------------ */

static void t_typed(void **state)
{
    struct play p;
    play_open(&p);
    focus(&p);
    p.o.force_answer = true;
    p.o.answer_seconds = 60;
    p.o.max_typed = 10;
    play_script(&p, TYPE("abcd") TYPE("efgh") TYPE("ijk") ANSWER("So far."), NULL);
    ended(&p, AGENT_TYPED, "limits.typed", 10);
    assert_int_equal(arrived(&p), 8); /* a text that would exceed the limit is not typed at all */
    assert_string_equal(p.r.answer, "So far.");
    assert_int_equal(played.asked[3].goal, GOAL_ANSWER);
    assert_non_null(
        strstr(played.told[3], "E_BUDGET: not done: this run may type 10 characters; it has typed 8"));
    assert_int_equal(field_int(json_object_get(p.story.end, "totals"), "typed"), 8);
    assert_non_null(strstr(p.story.steps[2].actions[0].failure, "E_BUDGET"));

    play_forget(); /* exactly the limit is allowed; single key presses count as typed */
    play_script(&p,
                TYPE("abcdefgh") KEYS("\"shift\", \"x\"") KEYS("\"y\"") KEYS("\"ctrl\", \"a\"")
                    KEYS("\"left\"") KEYS_N("\"z\"", 2) ANSWER("So far."),
                NULL);
    ended(&p, AGENT_TYPED, "limits.typed", 10);
    assert_int_equal(p.r.typed, 10);
    assert_int_equal(p.r.steps, 6);
    assert_int_equal(arrived(&p), 11); /* one of them with Control held */

    play_forget();
    p.o.force_answer = false;
    play_script(&p, TYPE("abcdefghijk") ANSWER("Never asked for."), NULL);
    ended(&p, AGENT_TYPED, "limits.typed", 10);
    assert_null(p.r.answer);
    assert_int_equal(arrived(&p), 0);

    play_forget();
    p.o.max_typed = 0;
    play_script(&p, TYPE(HUNDRED) ANSWER("Done."), NULL);
    assert_int_equal(p.r.status, AGENT_ANSWERED);
    assert_null(p.r.limit);
    assert_string_equal(field_text(p.story.end, "limit"), "");
    play_close(&p);
}

/* ---- actions within a minute ----------------------------------------------------------------- */

static void t_rate(void **state)
{
    struct play p;
    play_open(&p);
    p.o.force_answer = true;
    p.o.answer_seconds = 60;
    p.o.max_rate = 3;
    played.repaint = true;
    play_script(&p,
                CLICK(500, 500) WAIT(0) WAIT(0) CLICK(500, 500) CLICK(500, 500) WAIT(0) CLICK(500, 500)
                    ANSWER("So far."),
                NULL);
    ended(&p, AGENT_RATE, "limits.rate", 3);
    assert_int_equal(json_array_size(stage_events(&p.stage, "button_press")), 3);
    assert_int_equal(p.r.acted, 3);
    assert_int_equal(p.r.steps, 7); /* waits do not count */
    assert_string_equal(p.r.answer, "So far.");
    assert_non_null(strstr(played.told[7], "E_BUDGET: not done: 3 actions within a minute"));

    play_forget();
    p.o.dry_run = true; /* sends no events */
    p.o.max_steps = 5;
    play_script(&p, FIVE(CLICK(500, 500)), NULL);
    assert_int_equal(p.r.status, AGENT_DRY_RUN);
    play_close(&p);
}

/* ---- errors, and actions without effect ------------------------------------------------------- */

static void t_errors(void **state)
{
    struct play p;
    play_open(&p);
    p.o.max_errors = 2;
    play_script(&p, BAD_KEY CLICK(500, 500) BAD_KEY BAD_KEY ANSWER("Never asked for."), NULL);
    ended(&p, AGENT_ERRORS, "limits.errors", 2);
    assert_int_equal(played.n_asked, 4);
    play_forget();
    p.o.max_errors = 0;
    p.o.max_repeats = 0;
    play_script(&p, FIVE(BAD_KEY) FIVE(BAD_KEY) ANSWER("Done."), NULL);
    assert_int_equal(p.r.status, AGENT_REFUSED);
    assert_null(p.r.limit);
    play_close(&p);
}

static void t_without_effect(void **state)
{
    struct play p;
    stage_still = true;
    play_open(&p);
    p.o.max_repeats = 2;
    play_script(&p, FIVE(CLICK(500, 500)) ANSWER("Never asked for."), NULL);
    ended(&p, AGENT_LOOP, "limits.repeats", 2);
    assert_int_equal(json_array_size(stage_events(&p.stage, "button_press")), 2);
    play_forget();
    p.o.max_still = 4;
    play_script(&p, CLICK_AND_CLICK CLICK_AND_CLICK CLICK_AND_CLICK ANSWER("Never asked for."), NULL);
    ended(&p, AGENT_LOOP, "limits.no_effect", 4);
    assert_int_equal(json_array_size(stage_events(&p.stage, "button_press")), 4);
    play_forget();
    p.o.max_still = p.o.max_repeats = 0;
    play_script(&p, FIVE(CLICK(500, 500)) FIVE(CLICK(500, 500)) FIVE(CLICK(500, 500)) ANSWER("Done."), NULL);
    assert_int_equal(p.r.status, AGENT_UNVERIFIED);
    play_close(&p);
}

/* ---- the program ----------------------------------------------------------------------------- */

static char *read_report(const struct record *r)
{
    char *path = xasprintf("%s/report.html", r->dir), *text;
    size_t len;
    assert_int_equal(file_read(path, 64 << 20, &text, &len, NULL), 0);
    free(path);
    return text;
}

/* Returns a policy file with one limit. */
static char *limit_file(struct stage *t, const char *name, const char *value)
{
    char *text = xasprintf("limits:\n  %s: %s\n", name, value), *path = xvfb_put(&t->x, "limits.yaml", text);
    free(text);
    return path;
}

static void t_program(void **state)
{
    static const struct {
        const char *option, *value, *replies, *status, *words;
        int code;
    } cases[] = {
        {"limits.typed", "4", TYPE("abc") TYPE("def") ANSWER("So far."), "typed",
         "used up its typed characters (limits.typed 4)", ERR_STEPS},
        {"limits.rate", "1", CLICK(500, 500) CLICK(400, 400) ANSWER("So far."), "rate",
         "exceeded its actions per minute (limits.rate 1)", ERR_STEPS},
        {"limits.errors", "1", BAD_KEY, "errors", "had too many consecutive errors (limits.errors 1)",
         ERR_UNSURE},
        {"limits.repeats", "1", CLICK(500, 500) CLICK(500, 500), "loop",
         "repeated itself without progress (limits.repeats 1)", ERR_UNSURE},
        {"limits.no_effect", "1", CLICK(500, 500) CLICK(400, 400), "loop",
         "repeated itself without progress (limits.no_effect 1)", ERR_UNSURE},
        {"max-steps", "1", CLICK(500, 500) ANSWER("So far."), "steps", "used up its steps (--max-steps 1)",
         ERR_STEPS},
        {"max-tokens", "9", CLICK(500, 500) ANSWER("So far."), "tokens",
         "used up its tokens (--max-tokens 9)", ERR_STEPS},
        {"max-time", "0.2", WAIT(60) ANSWER("So far."), "time", "used up its time (--max-time 0.2)",
         ERR_TIME},
    };
    struct stage t;
    stage_still = true;
    driven_open(&t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o = {0};
        struct record r;
        const char *limit = strchr(cases[i].option, '.');
        char *option = xasprintf("--%s", limit ? "policy" : cases[i].option),
             *shown = xasprintf("(%s%s %s)", limit ? "" : "--", cases[i].option, cases[i].value),
             *value = limit ? limit_file(&t, limit + 1, cases[i].value) : xstrdup(cases[i].value);
        if (i)
            clock_sleep_ms(1100); /* start times of runs have a resolution of one second */
        driven_run(&t, cases[i].replies, WORDS(option, value, "--json"), &o);
        if (o.code != cases[i].code || !strstr(o.err, cases[i].words))
            fail_msg("%s: exit %d, '%s'", option, o.code, o.err);
        json_t *json = json_loads(o.out, 0, NULL);
        assert_string_equal(field_text(json, "status"), cases[i].status);
        assert_string_equal(field_text(json, "limit"), cases[i].option);
        assert_true(field_number(json, "allowed") == atof(cases[i].value));
        driven_read(&t, &r);
        const json_t *now = limit ? json_object_get(json_object_get(r.run, "policy"), "limits")
                                  : json_object_get(r.run, "settings");
        assert_true(field_number(now, limit ? limit + 1 : cases[i].option) == atof(cases[i].value));
        char *html = read_report(&r);
        assert_non_null(strstr(html, shown));
        free(html);
        free(option);
        free(value);
        free(shown);
        json_decref(json);
        record_free(&r);
        outcome_free(&o);
    }
    stage_close(&t);
}

static void t_resumed(void **state)
{
    struct stage t;
    struct outcome o = {0};
    struct record r;
    driven_open(&t);
    char *runs = xvfb_place(&t.x, "runs"), *limits = limit_file(&t, "typed", "5\n  errors: 3");
    driven_run(&t, TYPE("abc") TYPE("de") TYPE("f") ANSWER("So far."),
               WORDS("--policy", limits, "--no-report"), &o);
    assert_int_equal(o.code, ERR_STEPS);
    /* with the same limit, a resumed run ends where it ended before */
    char *script = xvfb_put(&t.x, "script", TYPE("g") ANSWER("Still so far."));
    for (int i = 0; i < 2; i++) {
        free(limits);
        limits = limit_file(&t, "typed", i ? "6\n  errors: 3" : "5\n  errors: 3");
        clock_sleep_ms(1100);
        program_run(&t.x, &o,
                    WORDS("resume", "--runs", runs, "--fake", script, "--json", "-q", "--no-report",
                          "--policy", limits, "--settle-min", "1"));
        json_t *json = json_loads(o.out, 0, NULL);
        driven_read(&t, &r);
        assert_string_equal(field_text(json, "status"), i ? "answered" : "typed");
        assert_int_equal(field_int(json_object_get(driven_last(&r, "end"), "totals"), "typed"), 5 + i);
        assert_int_equal(field_int(json_object_get(json_object_get(r.run, "policy"), "limits"), "errors"), 3);
        record_free(&r);
        json_decref(json);
    }
    outcome_free(&o);
    free(script);
    free(limits);
    free(runs);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a run types no more characters than allowed, in whatever way", t_typed),
    CLAIM("no more actions per minute are executed than allowed", t_rate),
    CLAIM("consecutive errors end a run at the configured number", t_errors),
    CLAIM("consecutive actions without effect end a run, and the record names the limit", t_without_effect),
    CLAIM("stderr, JSON, record and report name the limit that ended a run", t_program),
    CLAIM("typed characters still count when a run is resumed", t_resumed),
};

CHECK_MAIN()
