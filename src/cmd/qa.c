/* cmd/qa.c - `holorun qa SUITE.yaml`: runs a suite of tests on private desktops. */
#include "cmd/commands.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"
#include "capacity/memory.h"
#include "cli/version.h"
#include "qa/report/identity.h"
#include "qa/report/read.h"
#include "qa/report/report.h"
#include "qa/report/summary.h"
#include "qa/run/room.h"
#include "qa/run/workers.h"
#include "remote/llm_remote.h"
#include "run/running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct qa_settings {
    struct run_settings run; /* must be first: options of `run` use its offsets */
    const char *only[OPTION_LIST_MAX + 1], *shard, *shard_times, *rerun_failed, *out, *junit, *tap, *html,
        *confirm;
    int jobs, retries, attempts;
    double max_time;
    int undecided;
    bool list, check, fresh, fail_fast, update_golden, accept_claims, resume_shard, feed, freeze;
    int update; /* enum update */
};

enum update { UPDATE_WRITE, UPDATE_DIFF };

#define AT(member)  offsetof(struct qa_settings, member)
#define RUN(member) offsetof(struct run_settings, member)

static const struct option_spec options[] = {
    {"jobs", 'j', OPTION_INT, AT(jobs), "N", 1, 256, NULL,
     "worker threads: tests that run at the same time, each on its own desktop, all with one model; "
     "default: as many as the cores and the memory leave room for, at most two for each core, and one for "
     "tests that share a port, a display or the suite's setup; tests that write the same file, or need what "
     "another one has done, need --jobs 1",
     "HOLORUN_JOBS"},
    {"only", 0, OPTION_LIST, AT(only), "ID|tag:NAME", 0, 512, NULL,
     "only tests with this id (* and ? are wildcards) or this tag; may be repeated", NULL},
    {"shard", 0, OPTION_TEXT, AT(shard), "I/N|auto", 0, 32, NULL,
     "run only shard I of N; the id of a test determines its shard; auto, or auto/N: read the variables of "
     "Slurm, Kubernetes, GitLab, Buildkite, CircleCI, Azure or AWS Batch; qa merge combines the results",
     NULL},
    {"shard-times", 0, OPTION_TEXT, AT(shard_times), "FILE", 0, 4096, NULL,
     "with --shard: make shards of equal duration, from the times in results.json of an earlier run", NULL},
    {"resume-shard", 0, OPTION_FLAG, AT(resume_shard),
     .help = "continue a restarted job: skip tests that passed or failed in the results in --out"},
    {"feed", 0, OPTION_FLAG, AT(feed),
     .help = "run tests on request of another program: read lines such as {\"test\": \"ID\", \"sample\": 2} "
             "from stdin and print one line of JSON for each finished test, with the folder of its results "
             "below --out; {\"weights\": \"DIR\"} loads another model directory without a restart"},
    {"rerun-failed", 0, OPTION_TEXT, AT(rerun_failed), "FILE", 0, 4096, NULL,
     "only tests that did not pass in an earlier run: its results.json", NULL},
    {"list", 0, OPTION_FLAG, AT(list), .help = "list the selected tests without running them"},
    {"check", 0, OPTION_FLAG, AT(check),
     .help = "print all errors in the suite, its secrets, policies, images and --fake; run no test"},
    {"fresh", 0, OPTION_FLAG, AT(fresh),
     .help = "let the model decide all steps, also of tests with reuse: run"},
    {"fail-fast", 0, OPTION_FLAG, AT(fail_fast), .help = "start no further tests after a failure"},
    {"retries", 0, OPTION_INT, AT(retries), "N", 0, 100, "0",
     "retries of a test that did not pass, unless the suite sets it; one that then passes is flaky", NULL},
    {"max-time", 0, OPTION_NUMBER, AT(max_time), "SECONDS", 0, 1e6, "0",
     "start no further tests after this time; 0: no limit", NULL},
    {"update-golden", 0, OPTION_FLAG, AT(update_golden),
     .help = "replace the images of region checks by the current screen instead of comparing"},
    {"freeze", 0, OPTION_FLAG, AT(freeze),
     .help =
         "plan the sentences of do: without a model (holorun help planner), or with -m FILE.gguf, a model "
         "without vision, and write their steps into the suite when the test has passed twice"},
    {"update", 0, OPTION_CHOICE, AT(update), "write|diff", 0, 0, "write",
     "with --freeze: write the suite, or print the difference and exit with 1 if there is one", NULL},
    {"accept-claims", 0, OPTION_FLAG, AT(accept_claims),
     .help = "count a test that only the agent claims to be done as skipped instead of undecided"},
    {"undecided", 0, OPTION_CHOICE, AT(undecided), "error|failure|skipped", 0, 0, "error",
     "how JUnit, TAP and the exit code count a test without a verdict (claimed, inconclusive, stopped or "
     "not run)",
     NULL},
    {"out", 'o', OPTION_TEXT, AT(out), "DIR", 0, 4096, NULL,
     "folder for reports, runs and images; default: a new one in qa of the user's state folder", NULL},
    {"junit", 0, OPTION_TEXT, AT(junit), "FILE", 0, 4096, NULL, "also write JUnit XML to this file", NULL},
    {"tap", 0, OPTION_TEXT, AT(tap), "FILE", 0, 4096, NULL, "also write TAP to this file; - for stdout",
     NULL},
    {"html", 0, OPTION_TEXT, AT(html), "FILE", 0, 4096, NULL, "also write the HTML report to this file",
     NULL},
    {"json", 0, OPTION_FLAG, RUN(json), .help = "print the results as one JSON object on stdout"},
    QUIET_OPTION(struct run_settings),
    MODEL_OPTIONS(struct run_settings),
    ENDPOINT_OPTIONS(struct run_settings),
    DIALECT_OPTION(struct run_settings),
    {"max-steps", 'n', OPTION_INT, RUN(max_steps), "N", 1, 100000, NULL,
     "maximum steps of a test, unless the suite sets it; default: 100", NULL},
    {"temperature", 't', OPTION_NUMBER, RUN(temperature), "T", 0, 10, NULL,
     "sampling temperature, 0 for greedy; default: the dialect's", NULL},
    THINK_EARLY_OPTION(struct run_settings),
    ASSIST_OPTION(struct run_settings),
    ASKED_ANEW_OPTIONS(struct run_settings, ", unless the suite sets this"),
    {"attempts", 0, OPTION_INT, AT(attempts), "N", 1, 100, "1",
     "maximum attempts of a task, each from the start on a new desktop, until one passes, unless the suite "
     "sets it; the last attempt counts, the report shows all",
     NULL},
    {"policy", 0, OPTION_TEXT, RUN(policy), "FILE", 0, 4096, NULL,
     "file of rules for actions, unless the suite sets it", "HOLORUN_POLICY"},
    {"confirm", 0, OPTION_TEXT, AT(confirm), "HOW", 0, 4096, NULL,
     "how actions are confirmed if a rule requires it (see run); default: yes on private desktops, ask the "
     "user on an existing display; never: refuse",
     NULL},
    ELEMENTS_OPTIONS(struct run_settings),
    HIDE_OPTION(struct run_settings, ""),
    PACE_OPTIONS(struct run_settings, ", unless the suite sets it"),
    STEP_OPTION(struct run_settings, "; runs one test at a time"),
    {"ui-display", 0, OPTION_TEXT, RUN(ui_display), ":N", 0, 256, NULL,
     "with --step=window: display for the step window; default: $DISPLAY", "DISPLAY"},
    BREAK_OPTION(struct run_settings),
    {"fake", 0, OPTION_TEXT, RUN(fake), "FILE|DIR", 0, 4096, NULL,
     "instead of a model, use replies or a recording from a file, or from DIR/ID.txt for each test", NULL},
    {0},
};

const struct command qa_command = {
    .name = "qa",
    .arguments = "SUITE.yaml|-",
    .purpose = "run a suite of tests written in plain English",
    .details = suite_keys_help,
    .examples = "holorun qa suite.yaml\n"
                "holorun qa suite.yaml --jobs 8 --base-url http://127.0.0.1:8717/v1 --key file:token\n"
                "holorun qa suite.yaml --list --only tag:login\n"
                "holorun qa suite.yaml --rerun-failed results/results.json\n"
                "holorun qa suite.yaml --only sign-in --step=window\n"
                "holorun qa suite.yaml --shard auto --out results/$SLURM_ARRAY_TASK_ID\n"
                "holorun qa merge results/* --out merged\n",
    .options = options,
    .run = cmd_qa,
};

struct qa {
    struct qa_settings s;
    struct suite *suite;
    struct secret_store *secret_store;
    struct job_model model;
    struct suite_run run;
    struct results results;
    json_t *identity; /* of the results */
    struct reports reports;
    struct results_file earlier; /* results that --resume-shard continues */
    struct progress *progress;
    struct running_own *running; /* entry in the registry of runs, for `holorun stop`; or NULL */
    struct dialect *dialect;     /* dialect of the judge */
    struct judge_model judge;
};

static int select_tests(struct qa *q, struct err *e)
{
    const struct qa_settings *s = &q->s;
    const struct suite_selection selection = {.only = *s->only ? s->only : NULL,
                                              .shard = s->shard,
                                              .shard_times = s->shard_times,
                                              .rerun_failed = s->rerun_failed,
                                              .sentences = s->freeze};
    if (suite_select(q->suite, &selection, e) < 0)
        return -1;
    const struct shard *shard = &q->suite->shard;
    if (shard->from && !s->run.quiet)
        fprintf(stderr, "%-12s %d of %d, from the variables of %s\n", "shard", shard->which, shard->of,
                shard->from);
    return 0;
}

/* Returns whether a selected test needs a model; true for an empty suite. */
static bool needs_model(const struct suite *s)
{
    bool any = s->n == 0;
    for (int i = 0; i < s->n; i++)
        any = any || (s->tests[i].selected && test_needs_model(&s->tests[i]));
    return any;
}

/* Returns a conversation with the endpoint, for a judge's question. */
static struct llm *remote_partner(void *arg, struct err *e)
{
    const struct qa *q = arg;
    return llm_remote(q->model.endpoint, q->dialect, q->s.run.seed ? q->s.run.seed : 1, NULL);
}

/* Loads the weights of a trainer, while no test runs.  Returns -1 with e. */
static int reload_model(void *arg, const char *dir, struct err *e)
{
    struct qa *q = arg;
    if (job_model_replace(&q->model, &q->s.run, dir, e))
        return -1;
    q->judge.engine = q->model.engine;
    q->results.model = q->model.dir;
    identity_set_model(q->identity, &q->model, q->dialect);
    return 0;
}

static int open_model(struct qa *q, struct err *e)
{
    if (q->s.run.fake || q->s.freeze || !needs_model(q->suite))
        return 0;
    if (job_model_find(&q->model, &q->s.run, e) ||
        job_model_open(&q->model, &q->s.run, screen_stop_flag(NULL), true, e))
        return -1;
    q->results.memory_weights = memory_use().own;
    autofree char *source = q->s.run.dialect ? xstrdup(q->s.run.dialect)
                            : q->model.dir
                                ? dialect_for_model(q->model.dir, e)
                                : xstrdup(q->model.endpoint ? endpoint_dialect(q->model.endpoint) : "holo3");
    q->dialect = source ? dialect_load(source, e) : NULL;
    if (!q->dialect)
        return -1;
    q->judge = (struct judge_model){.engine = q->model.engine,
                                    .dialect = q->dialect,
                                    .seed = q->s.run.seed ? q->s.run.seed : 1,
                                    .partner = q->model.endpoint ? remote_partner : NULL,
                                    .arg = q};
    q->run.judge = judge_model_judge(&q->judge);
    q->results.model = q->model.dir;
    q->results.dialect = q->dialect->name;
    return 0;
}

static void describe(struct qa *q)
{
    struct results *r = &q->results;
    static char host[256];
    gethostname(host, sizeof host - 1);
    results_begin(r, q->suite);
    r->undecided = (enum undecided)q->s.undecided;
    r->accept_claims = q->s.accept_claims;
    r->host = host;
    r->version = HOLORUN_VERSION;
    r->model = "script";
    r->identity = q->identity =
        identity_new(q->suite, HOLORUN_VERSION, version_build(), options_json(options, &q->s));
    identity_set_model(q->identity, &q->model, NULL);
    clock_iso(r->started);
}

/* Takes over the results that --resume-shard continues.  The model is compared when it is open.  Returns the
 * number of remaining tests, -1 with e. */
static int resume(struct qa *q, struct err *e)
{
    if (q->earlier.json)
        identity_copy_model(q->identity, q->earlier.results.identity);
    int kept = q->earlier.json ? results_resume(&q->results, &q->earlier, e) : 0;
    if (kept > 0 && !q->s.run.quiet)
        fprintf(stderr, "%-12s %d of %d tests have results\n", "resumed", kept, q->results.n);
    return kept < 0 ? -1 : q->results.n - kept;
}

/* Sets the model in the identity of the results.  Returns -1 with e if earlier results had another one. */
static int check_model(struct qa *q, struct err *e)
{
    identity_set_model(q->identity, &q->model, q->dialect);
    char *difference = q->earlier.json ? identity_difference(q->earlier.results.identity, q->identity) : NULL;
    if (difference)
        err_set(e, ERR_USAGE, "cannot continue '%s': that run and this one differ in %s", q->earlier.path,
                difference);
    free(difference);
    return difference ? -1 : 0;
}

static void save_progress(void *arg, const struct results *r)
{
    reports_save_progress(arg, r);
}

/* Sets the number of workers, or the most that may be used if there is room. */
static void set_jobs(struct qa *q)
{
    bool one = q->s.run.step || *q->s.run.breaks || (q->s.feed && !q->s.jobs);
    q->results.jobs = one         ? 1
                      : q->s.jobs ? q->s.jobs
                                  : room_most(q->suite, q->results.memory_weights, group_limits(""));
}

/* Runs the tests between the suite's setup and teardown. */
static int run_tests(struct qa *q, struct err *e)
{
    struct desk *desk;
    int rc = suite_setup(&q->run, &desk, e);
    const struct workers_options o = {.jobs = q->results.jobs,
                                      .paced = !q->s.jobs,
                                      .retries = q->s.retries,
                                      .attempts = q->s.attempts,
                                      .fail_fast = q->s.fail_fast,
                                      .seconds = q->s.max_time,
                                      .progress = q->progress,
                                      .feed = q->s.feed ? feed_open(&q->results, reload_model, q) : NULL,
                                      .saved = save_progress,
                                      .arg = &q->reports};
    if (rc == 0)
        workers_run(&q->run, &o, &q->results);
    feed_close(o.feed);
    suite_teardown(&q->run, desk);
    return rc;
}

/* Writes reports that list all tests with the reason why none could run.  Returns -1. */
static int abort_suite(struct qa *q, const struct err *why)
{
    results_abort(&q->results, why);
    if (reports_save(&q->reports, &q->results) && !q->s.run.quiet)
        fprintf(stderr, "%-12s %s\n", "report", q->reports.paths.of[REPORT_HTML]);
    reports_print_errors(&q->reports);
    return -1;
}

static void finish(struct qa *q)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    q->results.memory_peak = (size_t)used.ru_maxrss << 10;
    q->results.complete = !q->results.stopped;
    if (q->model.engine)
        q->results.memory_state = engine_state_memory(q->model.engine).peak;
    reports_save(&q->reports, &q->results);
    progress_summary(q->progress, &q->results, q->reports.paths.of[REPORT_HTML]);
    if (q->s.run.json) /* works even if the disk is full */
        report_json(&q->results, "-", stdout);
    else if (q->s.tap && !strcmp(q->s.tap, "-"))
        report_tap(&q->results, "-", stdout);
}

static struct report_paths copies_of(const struct qa_settings *s)
{
    return (struct report_paths){{[REPORT_JUNIT] = s->junit,
                                  [REPORT_TAP] = s->tap && strcmp(s->tap, "-") != 0 ? s->tap : NULL,
                                  [REPORT_HTML] = s->html}};
}

/* Prints all mistakes of the suite (--check).  Returns the exit code. */
static int check_suite(struct qa *q, const char *path)
{
    json_auto_t *faults = json_object();
    struct err e = ERR_INIT;
    if ((q->suite = suite_check(path, faults)) && select_tests(q, &e) < 0)
        json_object_set_new_nocheck(faults, e.text, json_null());
    if (q->suite)
        preflight(q->suite, &q->s.run, q->s.update_golden, faults);
    int n = suite_print_mistakes(faults, path, q->suite, q->s.run.json);
    return n ? ERR_USAGE : 0;
}

/* Checks steps and --fake and reports the first mistake.  Returns -1 with e. */
static int check_first(const struct qa *q, struct err *e)
{
    json_auto_t *faults = json_object();
    preflight_first(q->suite, &q->s.run, q->s.freeze, faults);
    const char *first = json_object_iter_key(json_object_iter(faults));
    size_t n = json_object_size(faults);
    return n > 1 ? err_set(e, ERR_USAGE, "%.400s (and %zu more; --check shows all)", first, n - 1)
           : n   ? err_set(e, ERR_USAGE, "%s", first)
                 : 0;
}

static int work(struct qa *q, struct err *e)
{
    const struct qa_settings *s = &q->s;
    const struct report_paths copies = copies_of(s);
    struct err unguarded = ERR_INIT, unlisted = ERR_INIT;
    if (check_first(q, e) || !(q->secret_store = secret_store_open(q->suite, s->run.secrets, e)))
        return -1;
    describe(q);
    int left = resume(q, e); /* before the reports of the earlier run are removed */
    if (left < 0 || reports_open(&q->reports, s->out, &copies, e))
        return -1;
    q->results.dir = q->reports.dir;
    if (!s->feed)
        reports_save_progress(&q->reports, &q->results);
    if (desks_begin(e))
        return abort_suite(q, e);
    if (screen_guard(&unguarded)) /* before there are threads */
        warn("%s", unguarded.text);
    screen_install_signals();
    memory_return_large(); /* workers come and go, each with its screenshots */
    if (open_model(q, e))
        return abort_suite(q, e);
    if (check_model(q, e))
        return -1;
    q->run.settings = &s->run;
    q->run.suite = q->suite;
    q->run.model = &q->model;
    q->run.secret_store = q->secret_store;
    q->run.fake = s->run.fake;
    q->run.confirm = s->confirm;
    q->run.dir = q->results.dir;
    q->run.update_golden = s->update_golden;
    q->run.freezes = s->freeze;
    q->run.fresh = s->fresh;
    q->run.identity = s->feed || s->run.step || *s->run.breaks ? NULL : q->identity;
    q->running = running_enter(0, "", q->suite->name, q->results.started, &unlisted);
    if (!q->running || running_set_dir(q->running, q->results.dir, &unlisted))
        warn("holorun stop cannot find this suite: %s", unlisted.text);
    suite_warn(q->suite);
    preflight_warn_sizes(q->suite, q->dialect);
    set_jobs(q);
    q->progress = progress_begin(left, q->results.jobs, s->run.quiet || s->feed);
    if (run_tests(q, e))
        return abort_suite(q, e);
    if (!s->feed)
        finish(q);
    return 0;
}

static void close_all(struct qa *q)
{
    running_leave(q->running);
    progress_free(q->progress);
    results_free(&q->results);
    json_decref(q->identity);
    results_file_free(&q->earlier);
    if (q->dialect)
        dialect_free(q->dialect);
    job_model_close(&q->model);
    desks_end();
    screen_guard_end();
    secret_store_free(q->secret_store);
    suite_free(q->suite);
    reports_close(&q->reports);
    for (int i = 0; i < q->run.argc; i++)
        free(q->run.argv[i]);
    free(q->run.argv);
}

/* Copies the command line for the records, because parsing reorders argv. */
static void copy_arguments(struct suite_run *c, int argc, char **argv)
{
    c->argc = argc;
    c->argv = xcalloc((unsigned long)argc, sizeof *c->argv);
    for (int i = 0; i < argc; i++)
        c->argv[i] = xstrdup(argv[i]);
}

/* Reads the results of a job that was interrupted.  A missing file is accepted, so that the first start of
 * the job can use the same option.  Returns -1 with e. */
static int read_earlier(struct qa *q, struct err *e)
{
    if (!q->s.out)
        return err_set(e, ERR_USAGE, "--resume-shard needs --out, the folder of the results");
    autofree char *path = xasprintf("%s/results.json", q->s.out);
    return file_exists(path) ? results_file_read(path, &q->earlier, e) : 0;
}

int cmd_qa(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "merge"))
        return cmd_qa_merge(argc - 1, argv + 1);
    struct err e = ERR_INIT;
    struct qa q = {.run = {.build = version_build()}};
    copy_arguments(&q.run, argc, argv);
    job_unset(&q.s.run);
    if (options_defaults(job_options, &q.s.run, &e))
        return options_refuse(&qa_command, &e);
    int n = options_parse(&qa_command, &q.s, argc, argv, &e), code;
    if (n == 0)
        n = err_set(&e, ERR_USAGE, "qa takes one suite: a file, or - for stdin");
    if (n == -1 && !strcmp(argv[0], "merge"))
        err_set(&e, ERR_USAGE,
                "write the options of merge after it: holorun qa merge [OPTION...] RESULTS...");
    if (n < 0 || (q.s.resume_shard && read_earlier(&q, &e)))
        return options_refuse(&qa_command, &e);
    const struct report_paths copies = copies_of(&q.s);
    if (!q.s.list && !q.s.check && !q.s.resume_shard)
        reports_discard(q.s.out, &copies);
    if (q.s.check) {
        code = check_suite(&q, argv[0]);
    } else if (!(q.suite = suite_read(argv[0], &e)) || select_tests(&q, &e)) {
        code = options_failed(&e);
    } else if (q.s.list) {
        suite_print(stdout, q.suite, q.s.run.json);
        code = 0;
    } else {
        int frozen = work(&q, &e) ? -1 : 0;
        if (frozen == 0 && q.s.freeze)
            frozen = qa_freeze(&q.results, argv[0], q.s.update == UPDATE_DIFF, q.s.run.quiet, &e);
        code = frozen < 0                            ? options_failed(&e)
               : frozen && q.s.update == UPDATE_DIFF ? ERR_FAILED
               : reports_print_errors(&q.reports)    ? ERR_ENV
               : q.s.feed                            ? (flag_up(screen_stop_flag(NULL)) ? ERR_STOPPED : 0)
                                                     : results_exit_code(&q.results);
    }
    close_all(&q);
    return code;
}
