/* read.c - reads results.json, which json.c writes. */
#include "qa/report/read.h"

#include "base/file.h"
#include "base/json.h"
#include "qa/report/identity.h"
#include "qa/report/report.h"
#include "qa/report/summary.h"
#include "trace/status.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 256 << 20, MOST_ATTEMPTS = 256 };

/* ---- parts of JSON ------------------------------------------------------------------------------- */

/* Returns a copy of a text member, owned; NULL if it is missing or "". */
static char *copy_of(const json_t *from, const char *key)
{
    const char *s = json_text(from, key);
    return s && *s ? xstrdup(s) : NULL;
}

static int int_of(const json_t *from, const char *key, int least, int most)
{
    json_int_t v = json_integer_value(json_object_get(from, key));
    return (int)(v < least ? least : v > most ? most : v);
}

static double number_of(const json_t *from, const char *key)
{
    double v = json_number_value(json_object_get(from, key));
    return v >= 0 && v < 1e15 ? v : 0;
}

static bool is_true(const json_t *from, const char *key)
{
    return json_is_true(json_object_get(from, key));
}

/* Returns the index of a text among the n words of name(); n: not among them. */
#define WHICH_OF(text, name, n)                                                                              \
    ({                                                                                                       \
        const char *word_ = text;                                                                            \
        int i_ = 0;                                                                                          \
        while (i_ < (n) && (!word_ || strcmp(word_, name(i_)) != 0))                                         \
            i_++;                                                                                            \
        i_;                                                                                                  \
    })

/* Converts a path in the directory that was written to one in the directory where the file was found;
 * owned. */
static char *path_of(const struct results_file *f, const char *path)
{
    const char *was = json_text(f->json, "dir");
    size_t n = was ? strlen(was) : 0;
    if (!path || !*path)
        return NULL;
    if (n && !strncmp(path, was, n) && path[n] == '/' && !strstr(path + n, "/../"))
        return xasprintf("%s%s", f->dir, path + n);
    return xstrdup(path);
}

/* ---- attempts ------------------------------------------------------------------------------------ */

static void read_check(struct results_file *f, const json_t *from, struct check *c, struct check_result *out)
{
    const json_t *pictures = json_object_get(from, "pictures");
    int kind = WHICH_OF(json_text(from, "kind"), check_kind_name, CHECK_JUDGE + 1);
    int answer = WHICH_OF(json_text(from, "answer"), summary_answer, ANSWER_NOT_ASKED + 1);
    const char *name = json_text(from, "name");
    *c = (struct check){.kind = (enum check_kind)(kind > CHECK_JUDGE ? CHECK_SHELL : kind),
                        .name = name ? name : "",
                        .text = json_text(from, "text"),
                        .line = int_of(from, "line", 0, 1 << 30),
                        .reading = json_object_get(from, "by") != NULL};
    *out = (struct check_result){.check = c,
                                 .answer = answer > ANSWER_NOT_ASKED ? ANSWER_ERROR : (enum answer)answer,
                                 .detail = copy_of(from, "detail"),
                                 .output = copy_of(from, "output"),
                                 .ms = 1000 * number_of(from, "seconds")};
    for (size_t i = 0; i < 3; i++)
        out->pictures[i] = path_of(f, json_string_value(json_array_get(pictures, i)));
}

/* Reads the steps of an attempt. */
static void read_script(const json_t *list, struct attempt *out)
{
    size_t n = json_array_size(list) < SUITE_MAX_STEPS ? json_array_size(list) : SUITE_MAX_STEPS;
    out->script = xcalloc(n + 1, sizeof *out->script);
    out->n_script = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *from = json_array_get(list, i);
        int end = WHICH_OF(json_text(from, "end"), step_end_name, STEP_ENDS);
        out->script[i] = (struct step_result){.line = int_of(from, "line", 0, 1 << 30),
                                              .text = copy_of(from, "text"),
                                              .said = copy_of(from, "said"),
                                              .end = end == STEP_ENDS ? STEP_NOT_RUN : (enum step_end)end,
                                              .proof = is_true(from, "proof"),
                                              .seconds = number_of(from, "seconds")};
    }
}

static void read_attempt(struct results_file *f, const json_t *from, struct check **checks,
                         struct attempt *out)
{
    const json_t *list = json_object_get(from, "checks");
    int outcome = WHICH_OF(json_text(from, "outcome"), outcome_name, OUTCOMES);
    const char *status = json_text(from, "agent");
    const struct status_row *row = status && *status ? status_find(status) : NULL;
    *out = (struct attempt){.outcome = outcome == OUTCOMES ? OUTCOME_ERROR : (enum outcome)outcome,
                            .status = row ? row->name : "",
                            .answer = copy_of(from, "answer"),
                            .did = copy_of(from, "did"),
                            .error = copy_of(from, "error"),
                            .error_kind = copy_of(from, "error_kind"),
                            .run_dir = path_of(f, json_text(from, "run")),
                            .log = copy_of(from, "log"),
                            .picture = path_of(f, json_text(from, "picture")),
                            .crashed = is_true(from, "crashed"),
                            .steps = int_of(from, "steps", 0, 1 << 30),
                            .cancelled = int_of(from, "cancelled", 0, 1 << 30),
                            .reused = int_of(from, "reused", 0, 1 << 30),
                            .reused_from = copy_of(from, "reused_from"),
                            .program_of = copy_of(from, "program_of"),
                            .seconds = number_of(from, "seconds"),
                            .start_seconds = number_of(from, "start_seconds")};
    size_t n = json_array_size(list) < SUITE_MAX_CHECKS ? json_array_size(list) : SUITE_MAX_CHECKS;
    read_script(json_object_get(from, "script"), out);
    out->checks = xcalloc(n + 1, sizeof *out->checks);
    out->n_checks = (int)n;
    for (size_t i = 0; i < n; i++)
        read_check(f, json_array_get(list, i), (*checks)++, &out->checks[i]);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void read_test(const json_t *from, const char *suite, struct test *t)
{
    const json_t *tags = json_object_get(from, "tags");
    const char *task = json_text(from, "task"), *display = json_text(from, "display");
    *t = (struct test){.id = json_text(from, "id"),
                       .suite = suite,
                       .line = int_of(from, "line", 0, 1 << 30),
                       .task = task ? task : "",
                       .spec = json_text(from, "spec"),
                       .display = display ? display : "",
                       .start = json_text(from, "program"),
                       .seed = json_seed_value(json_object_get(from, "seed")),
                       .expect_fail = is_true(from, "expect_fail"),
                       .selected = true};
    const char *expect = json_text(from, "expect");
    t->expect_infeasible = expect && !strcmp(expect, "infeasible");
    for (size_t i = 0, n = 0; i < json_array_size(tags) && n < SUITE_MAX_TAGS; i++)
        if ((t->tags[n] = json_string_value(json_array_get(tags, i))))
            n++;
}

/* Computes the outcome of the last attempt again, in case the file was edited. Returns -1 with e if a test
 * passed for no reason. */
static int check_outcome(const struct results_file *f, const struct result *r, struct err *e)
{
    bool judged, passed = r->outcome == OUTCOME_PASSED || r->outcome == OUTCOME_CLAIMED;
    if (!passed)
        return 0;
    if (!r->n)
        return err_set(e, ERR_USAGE, "%s: test '%s' is %s without an attempt", f->path, r->test->id,
                       outcome_name(r->outcome));
    enum outcome o = result_outcome(r->test, &r->attempts[r->n - 1], &judged);
    if (o == r->outcome && judged == r->judged)
        return 0;
    return err_set(e, ERR_USAGE, "%s: test '%s' is %s%s, but by its checks it is %s%s", f->path, r->test->id,
                   outcome_name(r->outcome), r->judged ? " (judged)" : "", outcome_name(o),
                   judged ? " (judged)" : "");
}

static void read_result(struct results_file *f, const json_t *from, struct check **checks, struct result *r)
{
    const json_t *list = json_object_get(from, "attempts");
    int outcome = WHICH_OF(json_text(from, "outcome"), outcome_name, OUTCOMES);
    int flaky = WHICH_OF(json_text(from, "flaky"), flaky_name, FLAKY_UNKNOWN + 1);
    const char *ci = json_text(from, "ci"), *why = json_text(from, "why");
    r->outcome = outcome == OUTCOMES ? OUTCOME_ERROR : (enum outcome)outcome;
    r->flaky = flaky > FLAKY_UNKNOWN ? FLAKY_UNKNOWN : (enum flaky)flaky;
    r->flaky_where = copy_of(from, "flaky_where");
    r->judged = is_true(from, "judged");
    r->worker = int_of(from, "worker", 0, 255);
    r->began = number_of(from, "began");
    r->seconds = number_of(from, "seconds");
    size_t n = json_array_size(list) < MOST_ATTEMPTS ? json_array_size(list) : MOST_ATTEMPTS;
    r->attempts = xcalloc(n + 1, sizeof *r->attempts);
    for (size_t i = 0; i < n; i++)
        read_attempt(f, json_array_get(list, i), checks, &r->attempts[r->n++]);
    r->reason = n || !why || !*why ? NULL : why;
    r->excused = r->outcome == OUTCOME_SKIPPED && ci && !strcmp(ci, "skipped");
}

/* ---- the file ------------------------------------------------------------------------------------ */

static size_t count_checks(const json_t *tests)
{
    size_t n = 0, i, k;
    const json_t *test, *attempt;
    json_array_foreach(tests, i, test) json_array_foreach(json_object_get(test, "attempts"), k, attempt) n +=
        json_array_size(json_object_get(attempt, "checks"));
    return n;
}

static int check_tests(const json_t *tests, const char *path, struct err *e)
{
    size_t i;
    const json_t *test;
    if (!json_is_array(tests) || json_array_size(tests) > SUITE_MAX_TESTS)
        return err_set(e, ERR_USAGE, "'%s' is not a results.json: expected a list of at most %d tests", path,
                       SUITE_MAX_TESTS);
    json_array_foreach(tests, i, test)
    {
        const char *id = json_text(test, "id");
        if (!id || !*id || strlen(id) > SUITE_MAX_ID)
            return err_set(e, ERR_USAGE, "%s: test %zu: expected an id of at most %d bytes", path, i + 1,
                           SUITE_MAX_ID);
    }
    return 0;
}

static void read_head(struct results_file *f)
{
    const json_t *shard = json_object_get(f->json, "shard"), *memory = json_object_get(f->json, "memory");
    const char *name = json_text(f->json, "suite"), *path = json_text(f->json, "path"),
               *started = json_text(f->json, "started");
    struct results *r = &f->results;
    f->suite =
        (struct suite){.name = name ? name : "",
                       .path = path ? path : "",
                       .flaky_max = int_of(f->json, "flaky_max", 0, SUITE_MAX_TESTS),
                       .shard = {int_of(shard, "index", 0, 99999), int_of(shard, "of", 0, 99999), NULL}};
    f->suite.n_selected = int_of(f->json, "selected_tests", 0, SUITE_MAX_TESTS);
    *r = (struct results){.suite = &f->suite,
                          .jobs = int_of(f->json, "jobs", 1, 256),
                          .accept_claims = is_true(f->json, "accept_claims"),
                          .time_over = is_true(f->json, "time_over"),
                          .complete = is_true(f->json, "complete"),
                          .seconds = number_of(f->json, "seconds"),
                          .identity = json_object_get(f->json, "identity"),
                          .dir = f->dir,
                          .model = json_text(f->json, "model"),
                          .dialect = json_text(f->json, "dialect"),
                          .version = json_text(f->json, "version"),
                          .host = json_text(f->json, "host"),
                          .memory_weights = (size_t)number_of(memory, "weights"),
                          .memory_state = (size_t)number_of(memory, "state"),
                          .memory_peak = (size_t)number_of(memory, "most")};
    int undecided = WHICH_OF(json_text(f->json, "undecided"), undecided_name, UNDECIDED_SKIPPED + 1);
    r->undecided = undecided > UNDECIDED_SKIPPED ? UNDECIDED_ERROR : (enum undecided)undecided;
    snprintf(r->started, sizeof r->started, "%s", started ? started : "");
}

int results_file_parse(const char *text, size_t len, const char *path, struct results_file *f, struct err *e)
{
    json_error_t why;
    struct results *r = &f->results;
    *f = (struct results_file){.path = xstrdup(path), .dir = artifact_folder(path)};
    f->json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!f->json)
        return err_set(e, ERR_USAGE, "%s:%d: expected the results.json of a suite: %s", path, why.line,
                       why.text);
    const json_t *tests = json_object_get(f->json, "tests");
    int schema = int_of(f->json, "schema_version", 0, 1 << 30);
    if (check_tests(tests, path, e))
        return -1;
    if (schema != RESULTS_SCHEMA)
        return err_set(e, ERR_USAGE,
                       "'%s' was written by another version of holorun: its schema is %d, not %d", path,
                       schema, RESULTS_SCHEMA);
    read_head(f);
    size_t n = json_array_size(tests);
    struct check *next = f->checks = xcalloc(count_checks(tests) + 1, sizeof *f->checks);
    f->suite.tests = xcalloc(n + 1, sizeof *f->suite.tests);
    f->index = xcalloc(n + 1, sizeof *f->index);
    r->results = xcalloc(n + 1, sizeof *r->results);
    for (size_t i = 0; i < n; i++) {
        const json_t *test = json_array_get(tests, i);
        read_test(test, f->suite.name, &f->suite.tests[i]);
        f->index[i] = json_is_integer(json_object_get(test, "index"))
                          ? int_of(test, "index", 0, SUITE_MAX_TESTS)
                          : (int)i;
        r->results[r->n].test = &f->suite.tests[i];
        read_result(f, test, &next, &r->results[r->n++]);
        if (check_outcome(f, &r->results[r->n - 1], e))
            return -1;
    }
    f->suite.n = (int)n;
    return 0;
}

int results_file_read(const char *path, struct results_file *f, struct err *e)
{
    struct stat st;
    autofree char *text = NULL, *file = stat(path, &st) == 0 && S_ISDIR(st.st_mode)
                                            ? xasprintf("%s/results.json", path)
                                            : xstrdup(path);
    size_t len;
    *f = (struct results_file){0};
    int rc = file_read(file, MOST_BYTES, &text, &len, e);
    if (rc && e)
        e->kind = ERR_USAGE;
    if (rc == 0)
        rc = results_file_parse(text, len, file, f, e);
    return rc;
}

void results_file_free(struct results_file *f)
{
    results_free(&f->results);
    free(f->suite.tests);
    free(f->index);
    free(f->checks);
    free(f->path);
    free(f->dir);
    json_decref(f->json);
    *f = (struct results_file){0};
}

/* ---- continuing an interrupted shard ------------------------------------------------------------- */

/* Replaces the checks by those of the suite; returns false if they differ. */
static bool bind_checks(struct result *from, const struct test *t)
{
    for (int i = 0; i < from->n; i++) {
        struct attempt *a = &from->attempts[i];
        if (a->n_checks > t->n_checks)
            return false;
        for (int k = 0; k < a->n_checks; k++)
            a->checks[k].check = &t->checks[k];
    }
    return true;
}

int results_resume(struct results *r, struct results_file *f, struct err *e)
{
    const struct shard *now = &r->suite->shard, *then = &f->suite.shard;
    int kept = 0;
    char *difference = identity_difference(f->results.identity, r->identity);
    if (difference)
        err_set(e, ERR_USAGE, "cannot continue '%s': that run and this one differ in %s", f->path,
                difference);
    free(difference);
    if (difference)
        return -1;
    if (now->which != then->which || now->of != then->of)
        return err_set(e, ERR_USAGE, "'%s' belongs to shard %d of %d, not %d of %d", f->path, then->which,
                       then->of, now->which, now->of);
    for (int i = 0; i < r->n; i++) {
        struct result *row = &r->results[i];
        for (int k = 0; k < f->results.n; k++) {
            struct result *x = &f->results.results[k];
            bool decided = x->n && (x->outcome == OUTCOME_PASSED || x->outcome == OUTCOME_FAILED);
            if (!decided || strcmp(x->test->id, row->test->id) != 0 || !bind_checks(x, row->test))
                continue;
            const struct test *t = row->test;
            *row = *x;
            row->test = t;
            *x = (struct result){.test = x->test};
            kept++;
            break;
        }
    }
    return kept;
}
