/* results_fixture.c - see results_fixture.h. */
#include "results_fixture.h"

#include "base/buf.h"
#include "base/file.h"

#include "check.h"
#include "place.h"

#include <sys/stat.h>
#include <unistd.h>

struct fixture *fixture_new(int n)
{
    struct fixture *m = calloc(1, sizeof *m);
    assert_non_null(mkdtemp(place_template(m->dir)));
    m->suite =
        (struct suite){.name = "nimbus", .path = "qa/nimbus.yaml", .dir = "qa", .tests = m->tests, .n = n};
    m->all = (struct results){.suite = &m->suite,
                              .results = m->results,
                              .n = n,
                              .jobs = 4,
                              .started = "2026-11-21T05:45:00Z",
                              .seconds = 200.5,
                              .dir = m->dir,
                              .model = "pocket",
                              .dialect = "h",
                              .version = "1",
                              .host = "ci-7",
                              .memory_weights = 1000,
                              .memory_state = 20,
                              .memory_peak = 3000};
    for (int i = 0; i < n; i++) {
        struct test *t = &m->tests[i];
        *t = (struct test){.id = "t", .suite = "nimbus", .task = "do it", .line = 3 + i, .n_checks = 2};
        t->checks[0] =
            (struct check){.kind = CHECK_SHELL, .name = "shell: true", .text = "true", .line = 4 + i};
        t->checks[1] =
            (struct check){.kind = CHECK_JUDGE, .name = "judge: is it there", .text = "is it there"};
        for (int k = 0; k < 2; k++)
            m->checks[i][k] = (struct check_result){.check = &t->checks[k], .answer = ANSWER_YES, .ms = 12};
        for (int k = 0; k < 2; k++)
            m->attempts[i][k] = (struct attempt){.outcome = OUTCOME_PASSED,
                                                 .status = "answered",
                                                 .steps = 3,
                                                 .seconds = 4.5,
                                                 .checks = m->checks[i],
                                                 .n_checks = 2};
        m->results[i] = (struct result){
            .test = t, .attempts = m->attempts[i], .n = 1, .worker = i % 4, .began = i, .seconds = 5.25};
    }
    return m;
}

void fixture_free(struct fixture *m)
{
    place_remove(m->dir);
    free(m);
}

char *fixture_path(const struct fixture *m, const char *name)
{
    return xasprintf("%s/%s", m->dir, name);
}

void fixture_outcome(struct fixture *m, int i, const char *id, enum outcome o)
{
    m->tests[i].id = id;
    m->results[i].outcome = o;
    m->attempts[i][0].outcome = o;
}

static char failing_detail[] = "expected exit code 0, got 1", failing_output[] = "curl: (7) refused\n",
            unsure[] = "half of it is hidden", lost[] = "the X server is gone", display[] = "display",
            said[] = "Done.", where[] = "step 3: other pixels", hung[] = "the log of the program";

struct fixture *fixture_one_of_each(void)
{
    struct fixture *m = fixture_new(OUTCOMES + 2);
    for (int o = 0; o < OUTCOMES; o++)
        fixture_outcome(m, o, outcome_name((enum outcome)o), (enum outcome)o);
    m->checks[OUTCOME_FAILED][0] = (struct check_result){.check = &m->tests[OUTCOME_FAILED].checks[0],
                                                         .answer = ANSWER_NO,
                                                         .detail = failing_detail,
                                                         .output = failing_output};
    m->attempts[OUTCOME_FAILED][0].log = hung;
    m->attempts[OUTCOME_CLAIMED][0].answer = said;
    m->checks[OUTCOME_INCONCLUSIVE][1].answer = ANSWER_UNKNOWN;
    m->checks[OUTCOME_INCONCLUSIVE][1].detail = unsure;
    m->attempts[OUTCOME_ERROR][0].error = lost;
    m->attempts[OUTCOME_ERROR][0].error_kind = display;
    m->results[OUTCOME_SKIPPED].n = 0;
    m->results[OUTCOME_SKIPPED].reason = "--fail-fast: 'failed' has failed";
    m->results[OUTCOME_SKIPPED].excused = true;
    fixture_outcome(m, OUTCOMES, "flaky one", OUTCOME_PASSED);
    m->results[OUTCOMES].n = 2;
    m->results[OUTCOMES].flaky = FLAKY_APPLICATION;
    m->results[OUTCOMES].flaky_where = where;
    m->attempts[OUTCOMES][0].outcome = OUTCOME_FAILED;
    m->attempts[OUTCOMES][0].n_checks = 0;
    fixture_outcome(m, OUTCOMES + 1, "meant to fail", OUTCOME_FAILED);
    m->tests[OUTCOMES + 1].expect_fail = true;
    return m;
}

char *fixture_report(const struct fixture *m, const char *name, enum report which)
{
    char *path = fixture_path(m, name), *text;
    size_t len;
    struct err e = ERR_INIT;
    if (report_save(which, &m->all, path, &e) || file_read(path, 64 << 20, &text, &len, &e))
        fail_msg("%s", e.text);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(strlen(text), len); /* no NUL inside */
    free(path);
    return text;
}

/* Returns random bytes, many of them special in some format. */
static char *random_text(uint64_t *seed, char *pool[], int *used)
{
    static const char *const bits[] = {
        "]]>",          "<",      "&",         "\"",   "'",    "\x1b[31m", "\x1b]0;x\a", "[[ATTACHMENT|/x]]",
        "\n",           "# TODO", "\\",        "...",  "---",  "\r",       "\xc3",       "\xef\xbf\xbf",
        "\xed\xa0\x80", "<!--",   "<![CDATA[", "1..9", "ok 1", "|",        "`",          "\xf0\x9f\x98\x80"};
    struct buf b;
    buf_init(&b, 4096);
    int n = (int)(check_random(seed) * 30);
    for (int i = 0; i < n; i++) {
        if (check_random(seed) < .5)
            buf_puts(&b, bits[(size_t)(check_random(seed) * (double)(sizeof bits / sizeof *bits))]);
        else
            buf_putc(&b, (char)(1 + (int)(check_random(seed) * 255)));
    }
    pool[*used] = buf_take(&b);
    buf_free(&b);
    return pool[(*used)++];
}

static struct fixture *random_results(uint64_t *seed, char *pool[], int *used)
{
    struct fixture *m = fixture_new(1 + (int)(check_random(seed) * 20));
#define TEXT random_text(seed, pool, used)
    m->suite.name = TEXT;
    m->all.host = TEXT;
    m->all.model = TEXT;
    for (int i = 0; i < m->all.n; i++) {
        fixture_outcome(m, i, TEXT, (enum outcome)(int)(check_random(seed) * OUTCOMES));
        struct attempt *a = m->attempts[i];
        m->tests[i].suite = m->suite.name;
        m->tests[i].task = TEXT;
        m->tests[i].checks[0].name = TEXT;
        m->results[i].n = (int)(check_random(seed) * 3);
        m->results[i].flaky = m->results[i].n > 1 ? (enum flaky)(int)(check_random(seed) * 4) : FLAKY_NOT;
        m->results[i].flaky_where = TEXT;
        m->results[i].reason = TEXT;
        m->results[i].excused = check_random(seed) < 0.5;
        a[0].answer = TEXT;
        a[0].error = a[1].error = TEXT;
        a[0].error_kind = TEXT;
        a[1].log = TEXT;
        a[0].run_dir = TEXT;
        for (int k = 0; k < 2; k++) {
            m->checks[i][k].answer = (enum answer)(int)(check_random(seed) * 5);
            m->checks[i][k].detail = TEXT;
            m->checks[i][k].output = TEXT;
        }
    }
#undef TEXT
    return m;
}

enum { POOL = 64 * 24 };

void fixture_random(int rounds, void (*look)(const struct fixture *m))
{
    static char *pool[POOL];
    uint64_t seed = check_seed();
    for (int round = 0; round < rounds; round++) {
        int used = 0;
        struct fixture *m = random_results(&seed, pool, &used);
        assert_true(used < POOL);
        look(m);
        fixture_free(m);
        while (used)
            free(pool[--used]);
    }
}
