/* t_resume.c - tests resuming runs: after a crash in a new run, and from an earlier step in the same run. The
 * embedded model works on a private display.
 */
#include "check.h"
#include "program.h"

#include "agent/agent.h"
#include "base/clock.h"
#include "base/file.h"
#include "replay/interrupted.h"
#include "replay/verify.h"
#include "trace/story.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"
#define TASK   "Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima"
#define RUN                                                                                                  \
    "run", TASK, "--model", POCKET, "--runs", runs, "-q", "-n", "6", "--temperature", "0.9", "--seed", "5",  \
        "--settle-min", "1", "--settle-quiet", "30", "--no-report"

/* Writes the embedded dialect without a way to give up, and with an end word that the model rarely produces.
 * Samples depend on the CPU, and the run must not end before it is killed. */
static void write_endless(const char *path)
{
    json_t *d = json_load_file("prompts/pocket-wide.json", 0, NULL), *tools = json_object_get(d, "tools");
    for (size_t i = json_array_size(tools); i-- > 0;) {
        json_t *tool = json_array_get(tools, i);
        const char *name = json_string_value(json_object_get(tool, "name"));
        if (!strcmp(name, "missing") || !strcmp(name, "drag"))
            json_array_remove(tools, i);
        else if (!strcmp(name, "done"))
            json_object_set_new(tool, "name", json_string("drag"));
    }
    assert_int_equal(json_dump_file(d, path, 0), 0);
    json_decref(d);
}

static char *only_run(const char *runs)
{
    struct err e = ERR_INIT;
    char *dir = record_newest(runs, &e);
    if (!dir)
        fail_msg("%s", e.text);
    return dir;
}

static int count(const struct record *r, const char *kind)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += !strcmp(r->events[i].kind, kind);
    return n;
}

static const json_t *first(const struct record *r, const char *kind)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->events[i].kind, kind))
            return r->events[i].fields;
    fail_msg("'%s' not found", kind);
    return NULL;
}

/* Waits until the run has recorded n steps, and kills it during the next one. */
static void kill_after(const struct xvfb *x, pid_t pid, const char *runs, int steps)
{
    struct outcome o = {0};
    for (int i = 0; i < 4000; i++) {
        char *dir = record_newest(runs, NULL);
        struct record r = {0};
        int n = dir && record_open(&r, dir, NULL) == 0 ? count(&r, "step") : 0;
        record_free(&r);
        free(dir);
        if (n >= steps)
            break;
        clock_sleep_ms(5);
    }
    kill(pid, SIGKILL);
    program_finish(x, pid, &o);
    assert_int_equal(o.code, -1);
    outcome_free(&o);
}

static void verifies(const struct xvfb *x, const char *run)
{
    struct outcome o = {0};
    program_run(x, &o, WORDS("replay", run, "--verify", "-q"));
    if (o.code)
        fail_msg("%s%s", o.out, o.err);
    outcome_free(&o);
}

static void t_killed(void **state)
{
    struct xvfb x;
    struct outcome o = {0};
    struct record then, now;
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    char *runs = xvfb_place(&x, "runs"), *endless = xvfb_place(&x, "endless.json");
    write_endless(endless);
    kill_after(&x, program_start(&x, WORDS(RUN, "--dialect", endless)), runs, 3);
    char *old = only_run(runs), *events = xasprintf("%s/events.jsonl", old), *before, *after;
    size_t n_before, n_after;
    FILE *f = fopen(events, "a"); /* the last line is torn */
    fputs("{\"v\": 1, \"seq\": 99, \"ki", f);
    fclose(f);
    assert_int_equal(file_read(events, 1 << 22, &before, &n_before, NULL), 0);
    assert_int_equal(record_open(&then, old, NULL), 0);
    int accepted = count(&then, "step"), generated = 0;
    for (int i = 0; i < then.n; i++)
        if (!strcmp(then.events[i].kind, "generate"))
            generated += (int)field_int(then.events[i].fields, "tokens");
    assert_true(accepted >= 3 && accepted < 6 && then.torn);
    clock_sleep_ms(1100); /* the newest run is the one with the later second */
    program_run(&x, &o, WORDS("resume", old, "--runs", runs, "-q", "--no-report", "--json"));
    assert_int_equal(o.code, ERR_STEPS);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_int_equal(field_int(json, "steps"), 6); /* step numbers continue */
    assert_true(field_int(json_object_get(json, "tokens"), "generated") > generated);
    json_decref(json);

    char *new = only_run(runs);
    assert_string_not_equal(new, old);
    assert_int_equal(record_open(&now, new, NULL), 0);
    assert_string_equal(field_text(now.run, "parent"), old);
    assert_string_equal(field_text(now.run, "task"), TASK);
    assert_int_equal(field_int(json_object_get(now.run, "settings"), "seed"), 5);
    assert_int_equal(count(&now, "recall"), accepted);
    assert_string_equal(field_text(first(&now, "recall"), "lead"), TASK "\n");
    const json_t *prompt = first(&now, "prompt");
    assert_int_equal(field_int(prompt, "step"), accepted + 1);
    assert_non_null(strstr(field_text(prompt, "lead"), "interrupted"));
    assert_int_equal(field_int(prompt, "images"), 1);
    verifies(&x, new);
    verifies(&x, old);
    assert_int_equal(file_read(events, 1 << 22, &after, &n_after, NULL), 0);
    assert_true(n_after == n_before && !memcmp(before, after, n_after)); /* the old record is unchanged */
    check_note("%d steps, killed, %d more", accepted, count(&now, "step"));
    free(before);
    free(after);

    /* resumed again, with a larger budget: the whole conversation is repeated */
    clock_sleep_ms(1100);
    program_run(&x, &o, WORDS("resume", new, "--runs", runs, "-q", "--no-report", "-n", "8"));
    assert_int_equal(o.code, ERR_STEPS);
    char *third = only_run(runs);
    record_free(&now);
    assert_int_equal(record_open(&now, third, NULL), 0);
    assert_int_equal(count(&now, "recall"), 6);
    assert_int_equal(field_int(first(&now, "prompt"), "step"), 7);
    verifies(&x, third);
    record_free(&then);
    record_free(&now);
    free(third);
    free(new);
    free(old);
    free(events);
    free(endless);
    free(runs);
    outcome_free(&o);
    xvfb_stop(&x);
}

static void t_refused(void **state)
{
    static const char waits[] = "Thought: a\nAction: wait()\n\nThought: b\nAction: wait()\n";
    struct xvfb x;
    struct outcome o = {0};
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    char *runs = xvfb_place(&x, "runs"), *script = xvfb_place(&x, "script"),
         *policy = xvfb_place(&x, "p.yaml");
    assert_int_equal(file_write(script, "look<done>Done.\n", 16, NULL), 0);
    assert_int_equal(file_write(policy, "rules: []\n", 10, NULL), 0);
    program_run(&x, &o, WORDS(RUN, "--fake", script, "--dialect", "pocket-wide"));
    assert_int_equal(o.code, ERR_UNVERIFIED); /* it has done nothing */
    program_run(&x, &o, WORDS("resume", "--runs", runs));
    ONE_LINE(&o, ERR_USAGE, "has ended (unverified)");
    free(runs);
    runs = xvfb_place(&x, "others");
    char *endless = xvfb_place(&x, "endless.json");
    write_endless(endless);
    kill_after(&x, program_start(&x, WORDS(RUN, "--dialect", endless, "--policy", policy)), runs, 1);
    program_run(&x, &o, WORDS("resume", "--runs", runs)); /* its rules came from another file */
    ONE_LINE(&o, ERR_USAGE, "used other rules", "--policy");
    unlink(endless);
    program_run(&x, &o, WORDS("resume", "--runs", runs, "--policy", policy));
    ONE_LINE(&o, ERR_USAGE, "endless.json', which cannot be loaded: ", "--dialect");
    free(runs);
    runs = xvfb_place(&x, "scripted");
    assert_int_equal(file_write(script, waits, sizeof waits - 1, NULL), 0);
    kill_after(&x, program_start(&x, WORDS(RUN, "--fake", script, "--dialect", "uitars")), runs, 1);
    program_run(&x, &o, WORDS("resume", "--runs", runs)); /* another model is not chosen automatically */
    ONE_LINE(&o, ERR_USAGE, "came from a file", "--fake");
    outcome_free(&o);
    free(endless);
    free(policy);
    free(script);
    free(runs);
    xvfb_stop(&x);
}

/* ---- going back ------------------------------------------------------------------------------ */

static struct {
    int asked, forked, took, back;
} seen;

/* Runs steps with exceptions: at the second, forks two replies and takes the original one; at the fourth,
 * goes back to the second; at the fifth, asks again. */
static int decide(struct overseer *o, const struct proposal *p, struct decision *d, struct err *e)
{
    seen.asked++;
    d->by = "test";
    if (p->number == 2 && !p->n_forks) {
        d->verdict = VERDICT_FORK;
        d->n = 2;
        seen.forked++;
    } else if (p->number == 2 && p->taken != 1) {
        d->verdict = VERDICT_TAKE;
        d->to = 1;
        seen.took++;
    } else if (p->number == 4) {
        d->verdict = VERDICT_REWIND;
        d->to = 2;
        seen.back++;
    } else if (p->number == 5 && !p->now.resample) {
        d->verdict = VERDICT_AGAIN;
    }
    return 0;
}

static void t_back(void **state)
{
    struct xvfb x;
    struct err e = ERR_INIT;
    struct overseer watcher = {.decide = decide};
    struct progress silent = {0};
    struct agent_result result;
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    char *runs = xvfb_place(&x, "runs");
    struct engine *g = engine_open(&(struct engine_options){.dir = POCKET, .device = "cpu"}, &e);
    struct dialect *d = dialect_load("pocket-wide", &e);
    struct screen *s = screen_open(&(struct screen_options){0}, &e);
    struct trace *t = trace_open(runs, &e);
    if (!g || !d || !s || !t)
        fail_msg("%s", e.text);
    struct agent_options o = {.task = TASK,
                              .dialect = d,
                              .llm = llm_local(g, d, 20),
                              .screen = s,
                              .trace = t,
                              .progress = &silent,
                              .overseer = &watcher,
                              .window = WINDOW_SAWTOOTH,
                              .max_images = 2,
                              .sampling = {0.9f, 1, 200},
                              .max_steps = 6,
                              .max_seconds = 60,
                              .force_answer = true,
                              .answer_seconds = 60,
                              .dry_run = true,
                              .log_tokens = true,
                              .settle = {1, 20, 200}};
    screen_stop_all(0);
    memset(&seen, 0, sizeof seen);
    if (agent_run(&o, &result, &e))
        fail_msg("%s", e.text);
    assert_true(seen.forked == 1 && seen.took == 1 && seen.back == 1);
    char *dir = xstrdup(trace_dir(t));
    assert_int_equal(trace_close(t, &e), 0);

    struct record r;
    struct timeline line;
    struct verification v = {0};
    struct resume p;
    assert_int_equal(record_open(&r, dir, &e), 0);
    if (timeline_open(&line, &r, &e))
        fail_msg("%s", e.text);
    struct verify_options how = {.engine = g,
                                 .dialect = d,
                                 .window = WINDOW_SAWTOOTH,
                                 .max_images = 2,
                                 .seed = 20,
                                 .cancel = screen_stop_flag(NULL)};
    if (verify_run(&line, &how, &v, &e))
        fail_msg("%s", e.text);
    if (v.n)
        fail_msg("step %d: %s: %s, not %s", v.differences[0].step, v.differences[0].what,
                 v.differences[0].now, v.differences[0].recorded);
    assert_int_equal(v.steps, 6);
    assert_int_equal(v.replies, count(&r, "generate"));
    assert_true(v.replies >= 6 + 2 + 1);
    assert_int_equal(v.hashed, v.replies);
    check_note("%d replies, %lld tokens", v.replies, (long long)v.tokens);

    /* After the rewind, steps 5 and 6 replace 2 and 3. */
    for (int i = 0; i < r.n; i++)
        if (!strcmp(r.events[i].kind, "end"))
            json_object_set_new(r.events[i].fields, "status", json_string("stopped"));
    if (interrupted_make(&p, &line, &e))
        fail_msg("%s", e.text);
    assert_int_equal(p.n, 3); /* 1, then 5 instead of 2, 6 instead of 3 */
    assert_int_equal(p.number, 6);
    assert_null(p.lead);
    interrupted_free(&p);
    timeline_free(&line);
    record_free(&r);
    free(result.answer);
    llm_free(o.llm);
    screen_close(s);
    dialect_free(d);
    engine_close(g);
    free(dir);
    free(runs);
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a killed run resumes in a new run with its whole conversation, and continues the step numbers",
          t_killed),
    CLAIM("a finished run is not resumed; rules and replies from files must be named again", t_refused),
    CLAIM("a run with forks, other replies and rewinds is verified bit for bit", t_back),
};

CHECK_MAIN()
