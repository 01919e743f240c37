/* cmd/qa.c - `holorun qa SUITE.yaml`: tests in plain words, many at once, with a verdict for each.
 *
 *   read and choose (qa/suite.h) -> desks, guard, model -> tests at work (qa/run/workers.h) -> reports (qa/report.h)
 *
 * Results go to a folder of the run's own and, when all went well, the summary to stdout.
 */
#include "cmd/commands.h"

#include "base/clock.h"
#include "base/file.h"
#include "capacity/memory.h"
#include "cli/version.h"
#include "qa/report/report.h"
#include "qa/report/words.h"
#include "qa/run/llm_judge.h"
#include "qa/run/workers.h"
#include "run/running.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SAVE_MS = 2000,
    SAVE_PAUSE = 50, /* times as long as a save takes */
    SUITE_SECONDS = 600,
    SAID_BYTES = 16 << 10,
};

struct qa_settings {
    struct run_settings run; /* the first member: options of `run` land in it */
    const char *only[OPTION_LIST_MAX + 1], *shard, *shard_times, *rerun_failed, *out, *junit, *tap, *html,
        *confirm;
    int jobs, retries, attempts;
    double max_time;
    bool list, fail_fast, update_golden, accept_claims;
};

#define AT(member)  offsetof(struct qa_settings, member)
#define RUN(member) offsetof(struct run_settings, member)

static const struct option_spec options[] = {
    {"jobs", 'j', OPTION_INT, AT(jobs), "N", 1, 256, "1",
     "tests at work at the same time, each on a desktop of its own, with one model", "HOLORUN_JOBS"},
    {"only", 0, OPTION_LIST, AT(only), "ID|tag:NAME", 0, 512, NULL,
     "only tests with this id, in which * and ? match anything, or this tag; may be given several times",
     NULL},
    {"shard", 0, OPTION_TEXT, AT(shard), "I/N", 0, 32, NULL,
     "the I-th of N parts: each test is in exactly one, by its id", NULL},
    {"shard-times", 0, OPTION_TEXT, AT(shard_times), "FILE", 0, 4096, NULL,
     "with --shard: shards of equal duration, by the times in results.json of an earlier run",
     NULL},
    {"rerun-failed", 0, OPTION_TEXT, AT(rerun_failed), "FILE", 0, 4096, NULL,
     "only tests that did not pass in an earlier run: its results.json", NULL},
    {"list", 0, OPTION_FLAG, AT(list), .help = "say which tests would run, and run none"},
    {"fail-fast", 0, OPTION_FLAG, AT(fail_fast), .help = "begin no new test after one that failed"},
    {"retries", 0, OPTION_INT, AT(retries), "N", 0, 100, "0",
     "how often a test that did not pass is done again, where the suite does not say; one that passes then "
     "is "
     "flaky",
     NULL},
    {"max-time", 0, OPTION_NUMBER, AT(max_time), "SECONDS", 0, 1e6, "0",
     "no new test begins after this time, 0 for no limit", NULL},
    {"update-golden", 0, OPTION_FLAG, AT(update_golden),
     .help = "write the pictures of region checks anew instead of comparing with them"},
    {"accept-claims", 0, OPTION_FLAG, AT(accept_claims),
     .help = "a success that only the agent itself speaks of is good enough for exit code 0"},
    {"out", 'o', OPTION_TEXT, AT(out), "DIR", 0, 4096, NULL,
     "folder for reports, runs and pictures; without it a new one in qa of the user's state folder", NULL},
    {"junit", 0, OPTION_TEXT, AT(junit), "FILE", 0, 4096, NULL, "JUnit XML here too", NULL},
    {"tap", 0, OPTION_TEXT, AT(tap), "FILE", 0, 4096, NULL, "TAP here too, - for stdout", NULL},
    {"html", 0, OPTION_TEXT, AT(html), "FILE", 0, 4096, NULL, "the report here too", NULL},
    {"json", 0, OPTION_FLAG, RUN(json), .help = "the results as one JSON object on stdout"},
    QUIET_OPTION(struct run_settings),
    MODEL_OPTIONS(struct run_settings),
    DIALECT_OPTION(struct run_settings),
    {"max-steps", 'n', OPTION_INT, RUN(max_steps), "N", 1, 100000, NULL,
     "steps of an agent, where the suite does not say; 100 without it", NULL},
    {"temperature", 't', OPTION_NUMBER, RUN(temperature), "T", 0, 10, NULL,
     "0 for the likeliest reply, more for variety; without it what the dialect says", NULL},
    ASKED_ANEW_OPTIONS(struct run_settings, ", where the suite does not say how often"),
    {"attempts", 0, OPTION_INT, AT(attempts), "N", 1, 100, "1",
     "how often a task is begun anew, on a fresh desktop, until it is passed, where the suite does not say; "
     "what counts is the best of them, and the report has all",
     NULL},
    {"policy", 0, OPTION_TEXT, RUN(policy), "FILE", 0, 4096, NULL,
     "rules on what may be done, where the suite does not say", "HOLORUN_POLICY"},
    {"confirm", 0, OPTION_TEXT, AT(confirm), "HOW", 0, 4096, NULL,
     "what the rules would ask a person about (see run): without it everything is done on desktops that are "
     "thrown away, as the suite says, and on one that is there somebody is asked; never refuses it",
     NULL},
    HIDE_OPTION(struct run_settings, ""),
    STEP_OPTION(struct run_settings, "; one test at a time"),
    {"ui-display", 0, OPTION_TEXT, RUN(ui_display), ":N", 0, 256, NULL,
     "with --step=window: where its window opens; without it on your own display", "DISPLAY"},
    BREAK_OPTION(struct run_settings),
    {"fake", 0, OPTION_TEXT, RUN(fake), "FILE|DIR", 0, 4096, NULL,
     "take replies from a file, or for each test from DIR/ID.txt, instead of a model", NULL},
    {0},
};

const struct command qa_command = {
    .name = "qa",
    .arguments = "SUITE.yaml|-",
    .purpose = "run tests that are written in plain words",
    .details = suite_keys_help,
    .examples = "holorun qa suite.yaml --jobs 4\nholorun qa suite.yaml --list --only tag:login\n"
                "holorun qa suite.yaml --rerun-failed results/results.json\n"
                "holorun qa suite.yaml --only sign-in --step=window\n",
    .options = options,
    .run = cmd_qa,
};

struct qa {
    struct qa_settings s;
    struct suite *suite;
    struct secret_store *secret_store;
    struct job_model model;
    struct workers workers;
    struct results results;
    struct live *live;
    struct running_own *told; /* to others; NULL: not */
    struct dialect *dialect;  /* of the judge */
    struct judge_model judge;
    char *reports[4]; /* files in the folder of results */
    struct report_paths paths;
    int64_t saved;
    double save_ms;        /* that it took */
    struct err missing[2]; /* reports: in the folder, and elsewhere */
};

/* ---- where it goes ------------------------------------------------------------------------------------------ */

static int make_dir(struct qa *q, struct err *e)
{
    char *dir;
    if (q->s.out) {
        dir = xstrdup(q->s.out);
    } else {
        char stamp[20], *state = file_place(PLACE_STATE, e);
        if (!state)
            return -1;
        clock_utc(stamp);
        dir = xasprintf("%s/qa/%s-%d", state, stamp, (int)getpid());
        free(state);
    }
    char *pictures = xasprintf("%s/pictures", dir), *runs = xasprintf("%s/runs", dir);
    int rc = dir_make(pictures, e) || dir_make(runs, e) ? -1 : 0;
    free(pictures);
    free(runs);
    q->results.dir = rc ? NULL : realpath(dir, NULL);
    free(dir);
    if (!q->results.dir)
        return -1;
    static const char *const names[] = {"junit.xml", "results.tap", "results.json", "report.html"};
    for (int i = 0; i < 4; i++) {
        q->reports[i] = xasprintf("%s/%s", q->results.dir, names[i]);
        unlink(q->reports[i]); /* those of an earlier run say nothing of this one */
    }
    const char *github = getenv("GITHUB_STEP_SUMMARY");
    q->paths = (struct report_paths){.junit = q->reports[0],
                                     .tap = q->reports[1],
                                     .json = q->reports[2],
                                     .html = q->reports[3],
                                     .github = github && *github ? github : NULL};
    return 0;
}

/* What there is of them so far, so that a run that is killed leaves what it knows; what fails here fails at the end, and is
 * told there. */
static void save_some(struct qa *q)
{
    int64_t start = clock_ns();
    report_json(&q->results, q->paths.json, NULL);
    report_junit(&q->results, q->paths.junit, NULL);
    if (q->s.junit)
        report_junit(&q->results, q->s.junit, NULL);
    q->saved = clock_ns();
    q->save_ms = clock_ms_since(start);
}

/* As tests end; seldom enough to cost them nothing. */
static void save_now_and_then(void *arg, const struct results *r)
{
    struct qa *q = arg;
    (void)r;
    if (clock_ms_since(q->saved) >= SAVE_MS + SAVE_PAUSE * q->save_ms)
        save_some(q);
}

/* All of them into the folder, and where else they were asked for. */
static void save_all(struct qa *q)
{
    const struct qa_settings *s = &q->s;
    struct report_paths copies = {
        .junit = s->junit, .tap = s->tap && strcmp(s->tap, "-") != 0 ? s->tap : NULL, .html = s->html};
    reports_write(&q->results, &q->paths, &q->missing[0]);
    reports_write(&q->results, &copies, &q->missing[1]);
}

static bool tell_missing(const struct qa *q)
{
    for (int i = 0; i < 2; i++)
        if (q->missing[i].kind)
            fprintf(stderr, "holorun: %s\n", q->missing[i].text);
    return q->missing[0].kind || q->missing[1].kind;
}

/* ---- before and after --------------------------------------------------------------------------------------- */

static int open_suite(struct qa *q, const char *path, struct err *e)
{
    const struct qa_settings *s = &q->s;
    const struct suite_choice choice = {.only = *s->only ? s->only : NULL,
                                        .shard = s->shard,
                                        .shard_times = s->shard_times,
                                        .rerun_failed = s->rerun_failed};
    if (!(q->suite = suite_read(path, e)))
        return -1;
    int n = suite_select(q->suite, &choice, e);
    return n < 0 ? -1 : 0;
}

static int open_model(struct qa *q, struct err *e)
{
    if (q->s.run.fake)
        return 0;
    if (job_model_find(&q->model, &q->s.run, e) ||
        job_model_open(&q->model, &q->s.run, screen_stop_flag(NULL), true, e))
        return -1;
    q->results.memory_weights = memory_use().own;
    char *source = q->s.run.dialect ? xstrdup(q->s.run.dialect) : dialect_for_model(q->model.dir, e);
    q->dialect = source ? dialect_load(source, e) : NULL;
    free(source);
    if (!q->dialect)
        return -1;
    q->judge = (struct judge_model){
        .engine = q->model.engine, .dialect = q->dialect, .seed = q->s.run.seed ? q->s.run.seed : 1};
    q->workers.judge = judge_of(&q->judge);
    q->results.model = q->model.dir;
    q->results.dialect = q->dialect->name;
    return 0;
}

/* Said once for all tests, where a run says it of itself. */
static void warn_of_sizes(const struct qa *q)
{
    const struct dialect *d = q->dialect;
    const struct test *odd = NULL;
    int n = 0, w, h;
    for (int i = q->suite->n - 1; d && d->screen_w && i >= 0; i--) {
        const struct test *t = &q->suite->tests[i];
        if (!t->chosen || sscanf(t->display, "xvfb:%dx%d", &w, &h) != 2 ||
            (w == d->screen_w && h == d->screen_h))
            continue;
        odd = t;
        n++;
    }
    if (odd)
        warn("this model was made for screens of %dx%d, and %d test%s another ('%s': %s): expect mistakes, "
             "or say "
             "display: xvfb:%dx%d",
             d->screen_w, d->screen_h, n, n == 1 ? " has" : "s have", odd->id, odd->display, d->screen_w,
             d->screen_h);
}

static void describe(struct qa *q)
{
    struct results *r = &q->results;
    static char host[256];
    gethostname(host, sizeof host - 1);
    results_begin(r, q->suite);
    r->jobs = q->s.jobs;
    r->host = host;
    r->version = HOLORUN_VERSION;
    r->model = "script";
    clock_iso(r->started);
}

static void measure(struct qa *q)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    q->results.memory_most = (size_t)used.ru_maxrss << 10;
    if (q->model.engine)
        q->results.memory_state = engine_state_memory(q->model.engine).peak;
}

/* What was asked for on stdout is there also when the disk is full. */
static void tell(const struct qa *q)
{
    if (q->s.run.json)
        report_json_print(&q->results, stdout);
    else if (q->s.tap && !strcmp(q->s.tap, "-"))
        report_tap_print(&q->results, stdout);
}

/* ---- the run -------------------------------------------------------------------------------------------------- */

/* What it wrote is told, and why, without the secrets in either. */
static void setup_failed(const struct qa *q, const struct buf *said, struct err *e)
{
    char *why = secret_store_mask(q->secret_store, e->text),
         *wrote = secret_store_mask(q->secret_store, said->data);
    char *clean = words_clean(wrote, SAID_BYTES);
    if (!q->s.run.quiet)
        fputs(clean, stderr);
    snprintf(e->text, sizeof e->text, "%s", why);
    free(clean);
    free(wrote);
    free(why);
}

/* The suite's own commands run once, without a display; what they start stays until the end. */
static int run_tests(struct qa *q, struct err *e)
{
    const struct desk_options nowhere = {.dir = q->suite->dir, .env = q->suite->env};
    struct desk *house = NULL;
    struct buf said;
    int rc = 0;
    buf_init(&said, SAID_BYTES);
    if (*q->suite->setup || *q->suite->teardown) {
        house = desk_open(&nowhere, e);
        rc = house ? desk_run_all(house, q->suite->setup, "the suite's setup", SUITE_SECONDS,
                                  screen_stop_flag(NULL), &said, e)
                   : -1;
    }
    if (rc)
        setup_failed(q, &said, e);
    buf_free(&said);
    const struct workers_options o = {.jobs = q->s.run.step || *q->s.run.breaks ? 1 : q->s.jobs,
                                      .retries = q->s.retries,
                                      .attempts = q->s.attempts,
                                      .fail_fast = q->s.fail_fast,
                                      .seconds = q->s.max_time,
                                      .live = q->live,
                                      .saved = save_now_and_then,
                                      .arg = q};
    if (rc == 0)
        workers_run(&q->workers, &o, &q->results);
    struct err late = ERR_INIT;
    if (house &&
        desk_run_all(house, q->suite->teardown, "the suite's teardown", SUITE_SECONDS, NULL, NULL, &late))
        warn("%s", late.text);
    desk_close(house);
    return rc;
}

/* Every test is in the reports, with the reason. */
static int nothing_ran(struct qa *q, const struct err *why)
{
    results_kept(&q->results, why);
    save_all(q);
    if (!tell_missing(q) && !q->s.run.quiet)
        fprintf(stderr, "%-12s %s\n", "report", q->paths.html);
    return -1;
}

static int work(struct qa *q, struct err *e)
{
    struct err unguarded = ERR_INIT;
    if (!(q->secret_store = secret_store_open(q->suite, q->s.run.secrets, e)) || make_dir(q, e))
        return -1;
    describe(q);
    save_some(q);
    if (desks_begin(e))
        return nothing_ran(q, e);
    if (screen_guard(&unguarded)) /* before there are threads */
        warn("%s", unguarded.text);
    screen_install_signals();
    memory_return_large(); /* threads come and go, and all look at screenshots */
    if (open_model(q, e))
        return nothing_ran(q, e);
    q->workers.settings = &q->s.run;
    q->workers.suite = q->suite;
    q->workers.model = &q->model;
    q->workers.secret_store = q->secret_store;
    q->workers.fake = q->s.run.fake;
    q->workers.confirm = q->s.confirm;
    q->workers.dir = q->results.dir;
    q->workers.update_golden = q->s.update_golden;
    struct err untold = ERR_INIT;
    q->told = running_enter(0, "", q->suite->name, q->results.started, &untold);
    if (!q->told || running_set_dir(q->told, q->results.dir, &untold))
        warn("holorun stop will not find this suite: %s", untold.text);
    suite_warn(q->suite);
    warn_of_sizes(q);
    q->live = live_begin(q->results.n, q->s.jobs, q->s.run.quiet);
    if (run_tests(q, e))
        return nothing_ran(q, e);
    measure(q);
    save_all(q);
    live_summary(q->live, &q->results, q->paths.html);
    tell(q);
    return 0;
}

static void close_all(struct qa *q)
{
    running_leave(q->told);
    live_free(q->live);
    results_free(&q->results);
    if (q->dialect)
        dialect_free(q->dialect);
    job_model_close(&q->model);
    desks_end();
    screen_guard_end();
    secret_store_free(q->secret_store);
    suite_free(q->suite);
    for (int i = 0; i < 4; i++)
        free(q->reports[i]);
    for (int i = 0; i < q->workers.argc; i++)
        free(q->workers.argv[i]);
    free(q->workers.argv);
}

/* Parsing moves the words. */
static void keep_words(struct workers *c, int argc, char **argv)
{
    c->argc = argc;
    c->argv = xcalloc((unsigned long)argc, sizeof *c->argv);
    for (int i = 0; i < argc; i++)
        c->argv[i] = xstrdup(argv[i]);
}

int cmd_qa(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct qa q = {.workers = {.build = version_build()}};
    keep_words(&q.workers, argc, argv);
    job_unset(&q.s.run);
    if (options_defaults(job_options, &q.s.run, &e))
        return options_refuse(&qa_command, &e);
    int n = options_parse(&qa_command, &q.s, argc, argv, &e), code;
    if (n >= 0 && n != 1)
        n = err_set(&e, ERR_USAGE, "qa takes one suite: a file, or - for stdin");
    if (n < 0)
        return n == OPTIONS_HELP ? 0 : options_refuse(&qa_command, &e);
    if (open_suite(&q, argv[0], &e)) {
        code = options_failed(&e);
    } else if (q.s.list) {
        suite_print(stdout, q.suite, q.s.run.json);
        code = 0;
    } else {
        code = work(&q, &e)       ? options_failed(&e)
               : tell_missing(&q) ? ERR_ENV
                                  : results_exit_code(&q.results, q.s.accept_claims);
    }
    close_all(&q);
    return code;
}
