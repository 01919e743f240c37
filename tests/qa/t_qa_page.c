/* t_qa_page.c - tests of the suite's HTML page and GitHub's summary: complete, limited in size, safe
 * against hostile text; and of reports that cannot be written. */
#include "base/file.h"
#include "base/image.h"
#include "qa/report/report.h"

#include "check.h"
#include "results_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char hostile[] =
    "</script></pre><script>alert(1)</script>\"'><img src=http://x/y onerror=alert(2)> {{tests}} "
    "| a | [x](javascript:alert(3)) `b` <!-- &amp; \x1b[2J\xff";

/* Creates a run with n screenshots of w x h pixels, with noise if `noisy` (which PNG cannot compress). */
static char *run_with(const struct fixture *m, const char *name, int n, int w, int h, bool noisy)
{
    struct err e = ERR_INIT;
    char *run = fixture_path(m, name), *frames = xasprintf("%s/frames", run),
         *events = xasprintf("%s/events.jsonl", run), *page = xasprintf("%s/report.html", run), *text = NULL;
    size_t size;
    uint64_t seed = check_seed();
    struct image im;
    assert_int_equal(dir_make(frames, &e), 0);
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; i < n; i++) {
        char *png = xasprintf("%s/%06d.png", frames, i);
        assert_int_equal(image_alloc(&im, w, h, &e), 0);
        for (size_t k = 0; noisy && k < (size_t)w * (size_t)h * 3; k++)
            im.rgb[k] = (uint8_t)(check_random(&seed) * 256);
        im.rgb[0] = (uint8_t)i;
        assert_int_equal(image_write_png(&im, png, &e), 0);
        image_free(&im);
        free(png);
        fprintf(f, "{\"step\": %d, \"kind\": \"observe\", \"frame\": %d}\n", i + 1, i);
        fprintf(f, "{\"step\": %d, \"kind\": \"step\", \"thought\": \"thought %d\"}\n", i + 1, i + 1);
        fprintf(f,
                "{\"step\": %d, \"kind\": \"action\", \"what\": \"click %d\", \"action\": {\"kind\": "
                "\"click\", \"x\": 5, \"y\": 6}}\n",
                i + 1, i + 1);
    }
    fclose(f);
    assert_int_equal(file_write(events, text, size, &e), 0);
    assert_int_equal(file_write(page, "x", 1, &e), 0);
    free(text), free(page), free(events), free(frames);
    return run;
}

/* ---- the page ------------------------------------------------------------------------------------ */

static void t_page(void **state)
{
    struct fixture *m = fixture_one_of_each();
    char *run = run_with(m, "a run #1", 5, 320, 200, false),
         *png = fixture_path(m, "a run #1/frames/000000.png");
    m->attempts[OUTCOME_FAILED][0].run_dir = run;
    m->attempts[OUTCOME_PASSED][0].run_dir = run;
    m->checks[OUTCOME_FAILED][0].pictures[2] = png;
    char *page = fixture_report(m, "report.html", REPORT_HTML);
    check_has(page, "<title>nimbus</title>",
              "<span class=\"status bad\">2 failed, 1 error, 1 claimed, 1 inconclusive, 1 stopped, 1 flaky, "
              "1 skipped, 1 passed</span>",
              "<a class=\"of-failed\" data-of=\"failed\" href=\"#test-0\"><i></i><b>2</b> failed</a>",
              "<a class=\"of-flaky\" data-of=\"flaky\" href=\"#test-6\"><i></i><b>1</b> flaky</a>",
              "<section class=\"test of-failed\" id=\"test-0\" data-of=\"failed\">",
              "<p class=\"why\">shell: true: expected exit code 0, got 1</p>", "curl: (7) refused",
              "last screen, before step 5", "before step 3", "before step 4", "thought 1<code>click 1</code>",
              "href=\"a%20run%20%231/report.html\"", "href=\"a%20run%20%231/frames/000004.png\"",
              "<figcaption>difference</figcaption>", "the log of the program",
              "<details class=\"test of-passed\"",
              "<details class=\"earlier\"><summary>attempt 1 of 2: failed, ", "step 3: other pixels",
              "the X server is gone", "yes, by a model", "</html>");
    assert_null(strstr(page, "{{"));
    assert_int_equal(check_count(page, "<details class=\"test") + check_count(page, "<section class=\"test"),
                     9);
    /* the last screenshots of three tests, and the difference of the failed one; none of the passed one */
    assert_int_equal(check_count(page, "data:image/png;base64,"), 4);
    assert_int_equal(check_count(page, "<circle cx=\"5\" cy=\"6\""), 3);
    free(page), free(run), free(png);
    fixture_free(m);
}

static void t_order(void **state)
{
    struct fixture *m = fixture_one_of_each();
    char *page = fixture_report(m, "report.html", REPORT_HTML), *at = page;
    static const char *const order[] = {"failed",  "meant to fail", "error",   "claimed", "inconclusive",
                                        "stopped", "flaky one",     "skipped", "passed"};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        char head[64];
        snprintf(head, sizeof head, "<h2>%s</h2>", order[i]);
        at = strstr(at, head);
        if (!at)
            fail_msg("'%s' is not where it should be", order[i]);
    }
    free(page);
    fixture_free(m);
}

static void t_page_hostile(void **state)
{
    struct fixture *m = fixture_one_of_each();
    char *evil = strdup(hostile);
    m->suite.name = m->suite.path = m->all.host = m->all.model = m->all.version = evil;
    for (int i = 0; i < m->all.n; i++) {
        struct test *t = &m->tests[i];
        t->id = t->task = t->display = t->start = t->tags[0] = t->checks[0].name = t->checks[1].name = evil;
        m->results[i].flaky_where = evil;
        m->results[i].reason = evil;
        for (int k = 0; k < 2; k++) {
            struct attempt *a = &m->attempts[i][k];
            a->answer = a->error = a->error_kind = a->log = evil;
            a->run_dir = evil;
            m->checks[i][k].detail = m->checks[i][k].output = m->checks[i][k].pictures[k] = evil;
            m->checks[i][k].answer = ANSWER_NO;
        }
    }
    char *page = fixture_report(m, "report.html", REPORT_HTML);
    assert_int_equal(check_count(page, "<script"), 1);
    assert_int_equal(check_count(page, "</script"), 1);
    assert_int_equal(check_count(page, "<img"), 0);
    assert_int_equal(check_count(page, "<!--"), 0);
    assert_int_equal(check_count(page, "href=\"java"), 0);
    assert_int_equal(check_count(page, "\x1b"), 0);
    assert_null(strstr(page, "'><"));
    assert_true(check_count(page, "alert(1)") > 60);
    assert_int_equal(check_count(page, "alert(1)"),
                     check_count(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    free(page);
    char *path = fixture_path(m, "summary.md");
    struct err e = ERR_INIT;
    size_t len;
    assert_int_equal(report_github(&m->all, path, &e), 0);
    assert_int_equal(file_read(path, 8 << 20, &page, &len, &e), 0);
    static const char *const never[] = {"<script", "<img", "<!--", "](", "javascript:", "`", "{{", "http:"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(page, never[i]))
            fail_msg("the summary has '%s'", never[i]);
    assert_int_equal(check_count(page, "<pre>"), check_count(page, "</pre>"));
    assert_int_equal(check_count(page, "<details>"), check_count(page, "</details>"));
    free(page), free(path), free(evil);
    fixture_free(m);
}

static void t_self_contained(void **state)
{
    struct fixture *m = fixture_one_of_each();
    char *page = fixture_report(m, "report.html", REPORT_HTML);
    static const char *const never[] = {"http:", "https:",  "src=",   "@import", "url(",
                                        "<link", "<iframe", "fetch(", "XMLHttp", "import("};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(page, never[i]))
            fail_msg("the page has '%s'", never[i]);
    check_has(page, "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-");
    free(page);
    fixture_free(m);
}

/* 48 runs with noise are 230 MB.  The page stays below its limit and links to the rest. */
static void t_size(void **state)
{
    struct fixture *m = fixture_new(48);
    char *run = run_with(m, "run", 3, 800, 500, true);
    for (int i = 0; i < m->all.n; i++) {
        fixture_outcome(m, i, "noisy", OUTCOME_FAILED);
        m->attempts[i][0].run_dir = run;
    }
    char *page = fixture_report(m, "report.html", REPORT_HTML);
    int shown = check_count(page, "data:image/png"),
        linked = check_count(page, "too large to embed: open the file");
    check_note("%.1f MB, %d images, %d links", (double)strlen(page) / 1e6, shown, linked);
    assert_in_range(strlen(page), 10 << 20, 20 << 20);
    assert_true(shown >= 8 && shown + linked >= 48);
    free(page), free(run);
    fixture_free(m);
}

static void t_shrink(void **state)
{
    struct image in, out;
    struct err e = ERR_INIT;
    assert_int_equal(image_alloc(&in, 7, 4, &e), 0);
    for (int i = 0; i < 28; i++)
        in.rgb[3 * i] = (uint8_t)(i % 7 < 3 ? 10 : 100), in.rgb[3 * i + 1] = (uint8_t)(i < 14 ? 20 : 40);
    assert_int_equal(image_shrink(&out, &in, 2, 1, &e), 0);
    assert_int_equal(out.rgb[0], 10);  /* columns 0 to 2 */
    assert_int_equal(out.rgb[3], 100); /* 3 to 6 */
    assert_int_equal(out.rgb[1], 30);
    image_free(&out);
    assert_int_equal(image_shrink(&out, &in, 8, 4, &e), -1);
    assert_null(out.rgb);
    image_free(&in);
}

/* ---- GitHub -------------------------------------------------------------------------------------- */

static void t_github(void **state)
{
    struct fixture *m = fixture_one_of_each();
    struct err e = ERR_INIT;
    char *path = fixture_path(m, "summary.md"), *text;
    size_t len;
    assert_int_equal(file_write(path, "# of a step before\n", 19, &e), 0);
    assert_int_equal(report_github(&m->all, path, &e), 0);
    assert_int_equal(file_read(path, 2 << 20, &text, &len, &e), 0);
    static const char *const wanted[] = {
        "# of a step before\n",
        "\n## ❌ nimbus: 2 failed, 1 error, 1 claimed, 1 inconclusive, 1 stopped, 1 flaky, 1 skipped, 1 passed\n",
        "| ❌ failed | failed | 5.2 s | shell&#58; true&#58; expected exit code 0, got 1 |\n",
        "| ⚠️ claimed | claimed | 5.2 s | no check confirms",
        "<pre>curl&#58; (7) refused\n</pre>",
        "<details><summary>the others</summary>\n\n| | test | time |  |\n",
    };
    text[len] = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        check_has(text, wanted[i]);
    assert_true(strstr(text, "| failed |") < strstr(text, "| passed |"));
    free(text), free(path);
    fixture_free(m);
}

static void t_github_limit(void **state)
{
    enum { MANY = 20000 };
    struct fixture *m = fixture_one_of_each();
    struct result *many = calloc(MANY, sizeof *many);
    for (int i = 0; i < MANY; i++)
        many[i] = m->results[i % 2 ? OUTCOME_FAILED : OUTCOME_PASSED];
    m->all.results = many;
    m->all.n = MANY;
    struct err e = ERR_INIT;
    char *path = fixture_path(m, "summary.md"), *text;
    size_t len;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(report_github(&m->all, path, &e), 0);
        assert_int_equal(file_read(path, 2 << 20, &text, &len, &e), 0);
        assert_in_range(len, 1000000, 1 << 20);
        if (round == 0)
            check_has(text, " more tests in the report; they did not fit here.\n");
        assert_int_equal(check_count(text, "<details>"), check_count(text, "</details>"));
        free(text);
    }
    free(path), free(many);
    fixture_free(m);
}

/* ---- a full disk --------------------------------------------------------------------------------- */

/* Limits files to `most` bytes; returns the number of reports that failed, and the message. */
static int failing_within(const struct fixture *m, const struct report_paths *wanted, long most,
                          struct err *e)
{
    struct rlimit before, limit;
    struct report_paths p = *wanted;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)most;
    signal(SIGXFSZ, SIG_IGN);
    fflush(NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int rc = reports_write(&m->all, &p, e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    int failed = !p.of[0] + !p.of[1] + !p.of[2] + !p.of[3] + !p.of[4];
    assert_int_equal(rc, failed ? -1 : 0);
    assert_int_equal(e->kind, failed ? ERR_ENV : ERR_NONE);
    return failed;
}

static void t_full_disk(void **state)
{
    struct fixture *m = fixture_one_of_each();
    char *names[] = {fixture_path(m, "junit.xml"), fixture_path(m, "results.tap"),
                     fixture_path(m, "results.json"), fixture_path(m, "report.html"),
                     fixture_path(m, "summary.md")},
         *text;
    const struct report_paths p = {{names[0], names[1], names[2], names[3], names[4]}};
    struct err e = ERR_INIT;
    size_t len;
    assert_int_equal(file_write(names[3], "old", 3, &e), 0);
    assert_int_equal(failing_within(m, &p, 12000, &e), 1); /* only the page is longer */
    check_has(e.text, "report.html': File too large");
    assert_null(strstr(e.text, "more"));
    assert_int_equal(file_read(names[3], 1 << 20, &text, &len, &e), 0);
    assert_string_equal(text, "old");
    free(text);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(file_read(names[i], 1 << 20, &text, &len, &e), 0);
        assert_true(len > 1000);
        free(text);
    }
    char *list = xasprintf("ls '%s' | grep -q tmp", m->dir);
    assert_int_not_equal(system(list), 0); /* no temporary file is left */
    assert_int_equal(failing_within(m, &p, 100, &e), 5);
    check_has(e.text, "junit.xml': File too large, and 4 more reports were not written");
    assert_int_equal(file_read(names[4], 1 << 20, &text, &len, &e), 0);
    assert_true(len > 1000); /* unchanged */
    free(text), free(list);
    for (int i = 0; i < 5; i++)
        free(names[i]);
    fixture_free(m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the page has counts, reasons, checks, steps and screenshots, and links to each run's page",
          t_page),
    CLAIM("tests that need attention come first, then flaky ones, then the rest", t_order),
    CLAIM("hostile text from suite, program and model is escaped, on the page and in the summary",
          t_page_hostile),
    CLAIM("the page loads nothing from outside and runs only its own script", t_self_contained),
    CLAIM("the page stays below 20 MB whatever its images are", t_size),
    CLAIM("an image shrinks to the means of its pixels", t_shrink),
    CLAIM("GitHub's summary is appended to, failures first", t_github),
    CLAIM("GitHub's summary stays below 1 MiB and counts the omitted tests", t_github_limit),
    CLAIM("a report that cannot be written gives one message, and leaves the others and its old file intact",
          t_full_disk),
};

CHECK_MAIN()
