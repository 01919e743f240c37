/* t_shards.c - tests of sharded suites: the shard number from a scheduler's variables, and the merged
 * report, which is never green if results are missing.
 */
#include "qa_program.h"

#include "check.h"
#include "replies.h"

#include "base/clock.h"
#include "base/file.h"
#include "qa/suite/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- shard numbers ------------------------------------------------------------------------------- */

static const char *const variables[] = {"SLURM_ARRAY_TASK_ID",
                                        "SLURM_ARRAY_TASK_COUNT",
                                        "SLURM_ARRAY_TASK_MIN",
                                        "SLURM_ARRAY_TASK_STEP",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "JOB_COMPLETION_INDEX",
                                        "AWS_BATCH_JOB_ARRAY_INDEX",
                                        "AWS_BATCH_JOB_ARRAY_SIZE",
                                        "CI_NODE_INDEX",
                                        "CI_NODE_TOTAL",
                                        "BUILDKITE_PARALLEL_JOB",
                                        "BUILDKITE_PARALLEL_JOB_COUNT",
                                        "CIRCLE_NODE_INDEX",
                                        "CIRCLE_NODE_TOTAL",
                                        "SYSTEM_JOBPOSITIONINPHASE",
                                        "SYSTEM_TOTALJOBSINPHASE"};

static void clear_variables(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
}

/* words: "NAME=value NAME=value" */
static void set_variables(const char *words)
{
    char *text = xstrdup(words), *rest = text, *word;
    clear_variables();
    while ((word = strsep(&rest, " ")))
        if (*word)
            *strchr(word, '=') = 0, setenv(word, word + strlen(word) + 1, 1);
    free(text);
}

#define SUITE                                                                                                \
    "tests:\n"                                                                                               \
    "  - { id: \"t{n}\", task: Press it., matrix: { n: [1, 2, 3, 4, 5, 6] },\n"                              \
    "      checks: [{ kind: shell, run: \"true\" }] }\n"                                                     \
    "  - { id: bad, task: Press it., checks: [{ kind: shell, run: \"exit 3\" }] }\n"

/* Returns the shard for these variables; e is set if they are refused. */
static struct shard ask(const char *words, const char *shard, struct err *e)
{
    struct suite *s = suite_parse(SUITE, strlen(SUITE), "s.yaml", NULL);
    const struct suite_selection c = {.shard = shard};
    assert_non_null(s);
    set_variables(words);
    *e = (struct err)ERR_INIT;
    int n = suite_select(s, &c, e);
    struct shard out = s->shard;
    assert_true((n < 0) == (e->kind == ERR_USAGE));
    suite_free(s);
    clear_variables();
    return out;
}

static void t_schedulers(void **state)
{
    static const struct {
        const char *words, *shard;
        int which, of;
    } cases[] = {
        {"SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=0", "auto", 1, 4},
        {"SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_STEP=2",
         "auto", 3, 3},
        {"SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_PROCID=0 SLURM_NTASKS=1",
         "auto", 2, 3},
        {"SLURM_PROCID=4 SLURM_NTASKS=5", "auto", 5, 5},
        {"JOB_COMPLETION_INDEX=0", "auto/3", 1, 3},
        {"CI_NODE_INDEX=1 CI_NODE_TOTAL=3", "auto", 1, 3},
        {"CI_NODE_TOTAL=1 BUILDKITE_PARALLEL_JOB=2 BUILDKITE_PARALLEL_JOB_COUNT=3", "auto", 3, 3},
        {"CIRCLE_NODE_INDEX=0 CIRCLE_NODE_TOTAL=2", "auto/2", 1, 2},
        {"SYSTEM_JOBPOSITIONINPHASE=2 SYSTEM_TOTALJOBSINPHASE=2", "auto", 2, 2},
        {"AWS_BATCH_JOB_ARRAY_INDEX=3 AWS_BATCH_JOB_ARRAY_SIZE=4", "auto", 4, 4},
        {"SLURM_PROCID=0 SLURM_NTASKS=1 CI_NODE_INDEX=2 CI_NODE_TOTAL=3", "auto", 2, 3},
        {"CI_NODE_INDEX=2 CI_NODE_TOTAL=3 CIRCLE_NODE_INDEX=1 CIRCLE_NODE_TOTAL=3", "auto", 2, 3},
        {"CI_NODE_INDEX=2 CI_NODE_TOTAL=3", "3/4", 3, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e;
        struct shard s = ask(cases[i].words, cases[i].shard, &e);
        if (s.which != cases[i].which || s.of != cases[i].of)
            fail_msg("%s: %d of %d, %s", cases[i].words, s.which, s.of, e.text);
    }
}

static void t_refused(void **state)
{
    static const char *const cases[][3] = {
        {"", "auto", "no scheduler's variables are set"},
        {"CI_NODE_TOTAL=3", "auto", "no scheduler's variables"},
        {"JOB_COMPLETION_INDEX=1", "auto", "Kubernetes gives no number of shards; write --shard auto/N"},
        {"JOB_COMPLETION_INDEX=5", "auto/5", "JOB_COMPLETION_INDEX is 5 of 5 tasks"},
        {"CI_NODE_INDEX=0 CI_NODE_TOTAL=3", "auto", "CI_NODE_INDEX is 0 of 3 tasks"},
        {"CI_NODE_INDEX=two CI_NODE_TOTAL=3", "auto", "CI_NODE_INDEX is 'two'; expected a number"},
        {"CI_NODE_INDEX=1 CI_NODE_TOTAL=99999999999", "auto", "expected a number"},
        {"CI_NODE_INDEX=1 CI_NODE_TOTAL=3", "auto/4", "GitLab has 3 tasks"},
        {"CI_NODE_INDEX=1 CI_NODE_TOTAL=3 CIRCLE_NODE_INDEX=1 CIRCLE_NODE_TOTAL=3", "auto",
         "CircleCI 2 of 3"},
        {"SLURM_ARRAY_TASK_ID=4 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_STEP=2",
         "auto", "not in the array"},
        {"", "auto/0", "expected a shard as 2/5"},
        {"", "auto/2x", "expected a shard as 2/5"},
        {"", "automatic", "expected a shard as 2/5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e;
        ask(cases[i][0], cases[i][1], &e);
        if (!strstr(e.text, cases[i][2]))
            fail_msg("%s: %s", cases[i][0], e.text);
    }
}

/* ---- merged reports ------------------------------------------------------------------------------ */

static void open_suite(struct qa_program *q)
{
    static const char *const ids[] = {"t1", "t2", "t3", "t4", "t5", "t6", "bad"};
    clear_variables();
    qa_program_open(q);
    qa_program_suite(q, SUITE);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        qa_program_reply(q, ids[i], CLICK(500, 500) ANSWER("Done."));
}

/* Runs a shard with its own output directory. */
static void run_shard(struct qa_program *q, const char *shard, const char *folder, const char *more)
{
    char *out = xvfb_place(&q->x, folder);
    qa_program_run(q, WORDS("--shard", shard, "--out", out, "--jobs", "2", more));
    free(out);
}

/* Runs `holorun qa merge` on directories, ended by NULL; q->results are the merged results. */
static void run_merge(struct qa_program *q, const char *const *folders)
{
    const char *words[16] = {"qa", "merge", "--out"};
    char *owned[16] = {xvfb_place(&q->x, "merged")};
    int n = 1;
    for (; folders[n - 1]; n++)
        owned[n] = xvfb_place(&q->x, folders[n - 1]);
    for (int i = 0; i < n; i++)
        words[3 + i] = owned[i];
    program_run(&q->x, &q->o, words);
    char *path = xasprintf("%s/results.json", owned[0]);
    json_decref(q->results);
    q->results = json_load_file(path, 0, NULL);
    free(path);
    for (int i = 0; i < n; i++)
        free(owned[i]);
}

/* Checks that no report is green, and that each names the fault. */
static void assert_red(const struct qa_program *q, int code, const char *fault)
{
    static const char *const files[][2] = {{"merged/junit.xml", "<error"}, {"merged/results.tap", "not ok"}};
    if (q->o.code != code || !strstr(q->o.err, fault))
        fail_msg("exit %d instead of %d, %s", q->o.code, code, q->o.err);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = xvfb_place(&q->x, files[i][0]), *text;
        size_t len;
        assert_int_equal(file_read(path, 1 << 20, &text, &len, NULL), 0);
        assert_non_null(strstr(text, files[i][1]));
        free(text);
        free(path);
    }
}

/* Returns ids, outcomes and reasons of all tests, in order. */
static char *verdicts(const struct qa_program *q)
{
    char *out = xstrdup("");
    size_t i;
    const json_t *test;
    json_array_foreach(json_object_get(q->results, "tests"), i, test)
    {
        char *before = out;
        out = xasprintf("%s%s %s %s %s\n", out, json_string_value(json_object_get(test, "id")),
                        json_string_value(json_object_get(test, "outcome")),
                        json_string_value(json_object_get(test, "ci")),
                        json_string_value(json_object_get(test, "why")));
        free(before);
    }
    return out;
}

static void t_merge(void **state)
{
    struct qa_program q;
    open_suite(&q);
    qa_program_run(&q, WORDS("--jobs", "2"));
    assert_int_equal(q.o.code, ERR_FAILED);
    char *whole = verdicts(&q);
    run_shard(&q, "2/2", "b", NULL);
    run_shard(&q, "1/2", "a", NULL);
    run_merge(&q, WORDS("b", "a"));
    assert_int_equal(q.o.code, ERR_FAILED);
    char *merged = verdicts(&q);
    assert_string_equal(merged, whole);
    check_note("%s", q.o.err + 1);
    free(whole);
    free(merged);

    run_merge(&q, WORDS("a", "b", "b"));
    assert_red(&q, ERR_FAILED, "shard 2 of 2 occurs twice");
    char *path = xvfb_place(&q.x, "c");
    assert_int_equal(dir_make(path, NULL), 0);
    free(path);
    run_merge(&q, WORDS("a", "b", "c"));
    assert_red(&q, ERR_FAILED, "c/results.json");
    qa_program_suite(&q, "tests:\n  - { id: t1, task: Press something else., "
                         "checks: [{ kind: shell, run: \"true\" }] }\n");
    run_shard(&q, "1/2", "other", NULL);
    run_merge(&q, WORDS("a", "b", "other"));
    assert_red(&q, ERR_FAILED, "a/results.json and");
    assert_red(&q, ERR_FAILED, "differ in the tests of the suite (id)");
    qa_program_close(&q);
}

/* All tests are good, so that only the fault makes the report red. */
static void t_missing(void **state)
{
    struct qa_program q;
    open_suite(&q);
    for (int i = 1; i <= 3; i++) {
        char shard[8], folder[16];
        snprintf(shard, sizeof shard, "%d/3", i);
        snprintf(folder, sizeof folder, "shards/s%d", i);
        char *out = xvfb_place(&q.x, folder);
        qa_program_run(&q, WORDS("--shard", shard, "--out", out, "--jobs", "2", "--only", "t*"));
        assert_int_equal(q.o.code, 0);
        free(out);
    }
    run_merge(&q, WORDS("shards/s1", "shards/s3"));
    assert_red(&q, ERR_UNSURE, "shard 2 of 3 is missing");
    run_merge(&q, WORDS("shards")); /* a folder of folders */
    assert_int_equal(q.o.code, 0);  /* all selected tests have passed */
    run_shard(&q, "2/3", "whole", NULL);
    run_merge(&q, WORDS("shards/s1", "whole", "shards/s3"));
    assert_red(&q, ERR_UNSURE, "differ in the selected tests (--only, --rerun-failed)");
    run_shard(&q, "2/3", "again", "--retries=1");
    run_merge(&q, WORDS("whole", "again"));
    assert_red(&q, ERR_UNSURE, "differ in --retries (0 and 1)");
    qa_program_close(&q);
}

static void t_cut(void **state)
{
    struct qa_program q;
    open_suite(&q);
    char *out = xvfb_place(&q.x, "cut"), *path = xasprintf("%s/results.json", out);
    pid_t pid = qa_program_start(&q, WORDS("--shard", "1/1", "--out", out, "--resume-shard"));
    for (int ms = 0, done = 0; ms < 60000 && done < 2; ms += 20) {
        json_t *now = json_load_file(path, 0, NULL);
        done = (int)json_integer_value(json_object_get(json_object_get(now, "counts"), "passed"));
        json_decref(now);
        clock_sleep_ms(20);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    run_merge(&q, WORDS("cut"));
    assert_red(&q, ERR_UNSURE, "was cut off");
    char *times = NULL;
    const json_t *first = json_array_get(json_object_get(q.results, "tests"), 0);
    times = xstrdup(
        json_string_value(json_object_get(json_array_get(json_object_get(first, "attempts"), 0), "run")));
    pid = qa_program_start(&q, WORDS("--shard", "1/1", "--out", out, "--resume-shard"));
    program_finish(&q.x, pid, &q.o);
    assert_int_equal(q.o.code, ERR_FAILED);
    assert_non_null(strstr(q.o.err, "of 7 tests have results"));
    run_merge(&q, WORDS("cut"));
    assert_int_equal(q.o.code, ERR_FAILED);
    assert_null(strstr(q.o.err, "(results)"));
    assert_int_equal(json_array_size(json_object_get(q.results, "tests")), 7);
    first = json_array_get(json_object_get(q.results, "tests"), 0);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(first, "attempts"), 0), "run")),
        times);
    free(times);
    free(path);
    free(out);
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

/* ---- tests on request ---------------------------------------------------------------------------- */

/* Runs `holorun qa --feed` with these lines on stdin; returns its answers, one per line. */
static json_t *run_feed_with(struct qa_program *q, const char *requests, const char *options)
{
    char *in = xvfb_place(&q->x, "requests"), *out = xvfb_place(&q->x, "answers"), *line = NULL;
    assert_int_equal(file_write(in, requests, strlen(requests), NULL), 0);
    char *program = realpath(program_path(), NULL);
    char *command =
        xasprintf("cd %s && exec %s qa suite.yaml --feed %s --out fed <requests >answers 2>errors", q->x.dir,
                  program, options);
    assert_int_equal(system(command), 0);
    json_t *answers = json_array();
    FILE *f = fopen(out, "r");
    assert_non_null(f);
    size_t size = 0;
    while (getline(&line, &size, f) > 0)
        json_array_append_new(answers, json_loads(line, 0, NULL));
    fclose(f);
    free(line);
    free(command);
    free(program);
    free(out);
    free(in);
    return answers;
}

static json_t *run_feed(struct qa_program *q, const char *requests)
{
    return run_feed_with(q, requests, "--fake replies --jobs 3");
}

static const json_t *answer_of(const json_t *answers, const char *test, int sample)
{
    size_t i;
    const json_t *a;
    json_array_foreach(answers, i, a)
    {
        const char *id = json_string_value(json_object_get(a, "test"));
        if (id && !strcmp(id, test) && json_integer_value(json_object_get(a, "sample")) == sample)
            return a;
    }
    fail_msg("no answer for %s, sample %d", test, sample);
    return NULL;
}

static json_int_t seed_of(const json_t *answer)
{
    char *path = xasprintf("%s/results.json", json_string_value(json_object_get(answer, "dir")));
    json_t *all = json_load_file(path, 0, NULL), *tests_ = json_object_get(all, "tests");
    assert_int_equal(json_array_size(tests_), 1);
    const json_t *attempt = json_array_get(json_object_get(json_array_get(tests_, 0), "attempts"), 0);
    const char *run = json_string_value(json_object_get(attempt, "run"));
    char *file = *run == '/'
                     ? xasprintf("%s/run.json", run)
                     : xasprintf("%s/%s/run.json", json_string_value(json_object_get(answer, "dir")), run);
    json_t *record = json_load_file(file, 0, NULL);
    json_int_t seed = json_integer_value(json_object_get(json_object_get(record, "settings"), "seed"));
    assert_non_null(record);
    json_decref(record);
    json_decref(all);
    free(file);
    free(path);
    return seed;
}

static void t_feed(void **state)
{
    struct qa_program q;
    open_suite(&q);
    json_t *answers = run_feed(&q, "{\"test\": \"t2\"}\n{\"test\": \"bad\"}\nnonsense\n"
                                   "{\"test\": \"t2\", \"sample\": 1}\n{\"test\": \"none\"}\n"
                                   "{\"test\": \"t3\", \"sample\": -1}\n{\"weights\": \"/none\"}\n"
                                   "{\"test\": \"half");
    assert_int_equal(json_array_size(answers), 7);
    const json_t *first = answer_of(answers, "t2", 0), *second = answer_of(answers, "t2", 1);
    assert_string_equal(json_string_value(json_object_get(first, "outcome")), "passed");
    assert_string_equal(json_string_value(json_object_get(second, "outcome")), "passed");
    assert_string_equal(json_string_value(json_object_get(answer_of(answers, "bad", 0), "outcome")),
                        "failed");
    assert_non_null(json_object_get(answer_of(answers, "none", 0), "error"));
    assert_true(seed_of(first) != seed_of(second));
    json_decref(answers);
    run_merge(&q, WORDS("fed/1", "fed/2", "fed/4"));
    assert_red(&q, ERR_FAILED, "test 't2' occurs twice");
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

/* Returns the model's directory in the run of an answer. */
static char *model_of(const json_t *answer)
{
    char *path = xasprintf("%s/results.json", json_string_value(json_object_get(answer, "dir")));
    json_t *all = json_load_file(path, 0, NULL);
    char *model = xstrdup(json_string_value(json_object_get(all, "model")));
    json_decref(all);
    free(path);
    return model;
}

static void t_weights(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(&q, "tests:\n  - { id: a, task: Press it., steps: 1,\n"
                         "      checks: [{ kind: shell, run: \"true\" }] }\n");
    char *first = realpath("assets/pocket/model", NULL), *second = xvfb_place(&q.x, "second");
    assert_non_null(first);
    char *copy = xasprintf("cp -r '%s' '%s'", first, second);
    assert_int_equal(system(copy), 0);
    char *requests = xasprintf("{\"test\": \"a\"}\n{\"weights\": \"/none\"}\n{\"weights\": \"%s\"}\n"
                               "{\"test\": \"a\", \"sample\": 1}\n",
                               second);
    char *options = xasprintf("--model '%s' --jobs 2", first);
    json_t *answers = run_feed_with(&q, requests, options);
    assert_int_equal(json_array_size(answers), 4);
    assert_non_null(json_object_get(json_array_get(answers, 1), "error"));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(answers, 2), "version")), 2);
    char *before = model_of(json_array_get(answers, 0)), *after = model_of(json_array_get(answers, 3));
    assert_string_equal(before, first);
    assert_string_equal(after, second);
    json_decref(answers);
    free(before);
    free(after);
    free(options);
    free(requests);
    free(copy);
    free(first);
    free(second);
    assert_int_equal(qa_program_remains(&q), 0);
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the variables of eight schedulers give the shard", t_schedulers),
    CLAIM("missing, invalid or contradictory variables are refused with a remedy", t_refused),
    CLAIM("merged shards have the verdicts of one run; duplicate, unreadable and foreign ones are named",
          t_merge),
    CLAIM("a missing shard or test makes the whole undecided", t_missing),
    CLAIM("requested tests have their own results, and samples have different random numbers", t_feed),
    CLAIM("another model replaces the loaded one without a restart, once no test is running", t_weights),
    CLAIM("a killed shard is reported as cut off, and can be resumed", t_cut),
};

CHECK_MAIN()
