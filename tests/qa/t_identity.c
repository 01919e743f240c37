/* t_identity.c - tests that results of different suites, settings or versions, and edited results, are never
 * taken for parts of one run. */
#include "qa_program.h"

#include "check.h"
#include "replies.h"

#include "base/file.h"
#include "qa/report/identity.h"
#include "qa/suite/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- suites -------------------------------------------------------------------------------------- */

static const char suite_text[] = "suite: { name: shop, flaky_max: 3, env: { LANG: C.UTF-8 } }\n"
                                 "tests:\n"
                                 "  - id: a\n"
                                 "    task: Press Save.\n"
                                 "    start: xterm -e true\n"
                                 "    window: xterm\n"
                                 "    display: xvfb:640x480\n"
                                 "    wm: openbox\n"
                                 "    seed: 7\n"
                                 "    steps: 9\n"
                                 "    timeout_s: 60\n"
                                 "    start_timeout_s: 30\n"
                                 "    retries: 1\n"
                                 "    attempts: 1\n"
                                 "    validator: 1\n"
                                 "    elements: yes\n"
                                 "    home: home\n"
                                 "    policy: rules.yaml\n"
                                 "    recording: saved.rec\n"
                                 "    secrets: KEY=env:SHOP_KEY\n"
                                 "    tags: fast\n"
                                 "    setup: touch x\n"
                                 "    teardown: rm x\n"
                                 "    expect: done\n"
                                 "    wait_until: [{ kind: window, title: Shop }]\n"
                                 "    checks:\n"
                                 "      - { kind: answer, match: Done }\n"
                                 "      - { kind: region, png: seen.png, area: [0, 0, 9, 9], tolerance: 8 }\n"
                                 "  - id: b\n"
                                 "    task:\n      - press: Save\n      - check: Saved is shown\n"
                                 "    expect_fail: yes\n"
                                 "    checks: [{ kind: shell, run: \"true\" }]\n";

static const char *const files[] = {"home/settings.ini", "rules.yaml", "saved.rec", "seen.png"};

static void write_file(const char *dir, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", dir, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    free(path);
}

/* Makes a directory with the files that the suite names. */
static char *make_files(void)
{
    char *dir = xstrdup("/tmp/t_identity_XXXXXX"), *home;
    assert_non_null(mkdtemp(dir));
    home = xasprintf("%s/home", dir);
    assert_int_equal(dir_make(home, NULL), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        write_file(dir, files[i], "one");
    free(home);
    return dir;
}

static void remove_files(char *dir)
{
    char *command = xasprintf("rm -r '%s'", dir);
    assert_int_equal(system(command), 0);
    free(command);
    free(dir);
}

static json_t *identity_in(const char *dir, const char *text)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/suite.yaml", dir);
    struct suite *s = suite_parse(text, strlen(text), path, &e);
    if (!s)
        fail_msg("%s", e.text);
    json_t *all = json_pack("{s:o}", "suite", suite_identity(s));
    suite_free(s);
    free(path);
    return all;
}

static void expect_difference(const json_t *a, const json_t *b, const char *what, const char *where)
{
    char *difference = identity_difference(a, b);
    if (!difference || !strstr(difference, where))
        fail_msg("%s: %s instead of %s", what, difference ? difference : "no difference", where);
    free(difference);
}

static void t_each_key_counts(void **state)
{
    static const char *const cases[][3] = {
        {"flaky_max: 3", "flaky_max: 4", "flaky_max"},
        {"LANG: C.UTF-8", "LANG: de_DE.UTF-8", "env"},
        {"id: a", "id: c", "id"},
        {"Press Save.", "Press Save as.", "task"},
        {"press: Save\n", "press: Send\n", "task"},
        {"- check: Saved", "- do: Saved", "task"},
        {"xterm -e true", "xterm -e false", "start"},
        {"window: xterm", "window: Shop", "start, window"},
        {"640x480", "800x600", "display"},
        {"wm: openbox", "wm: ''", "display, wm"},
        {"seed: 7", "seed: 8", "seed"},
        {"steps: 9", "steps: 10", "steps"},
        {"timeout_s: 60", "timeout_s: 61", "timeouts"},
        {"start_timeout_s: 30", "start_timeout_s: 31", "timeouts"},
        {"retries: 1", "retries: 2", "retries"},
        {"attempts: 1", "attempts: 2", "attempts"},
        {"validator: 1", "validator: 2", "validator"},
        {"elements: yes", "elements: only", "elements"},
        {"SHOP_KEY", "OTHER_KEY", "secrets"},
        {"tags: fast", "tags: slow", "tags"},
        {"touch x", "touch y", "setup"},
        {"rm x", "rm y", "teardown"},
        {"expect: done", "expect: infeasible", "expect"},
        {"title: Shop", "title: Till", "wait_until"},
        {"match: Done", "match: .*", "checks"},
        {"tolerance: 8", "tolerance: 9", "checks"},
        {"[0, 0, 9, 9]", "[0, 0, 9, 8]", "checks"},
        {"run: \"true\"", "run: \"true \"", "checks"},
        {"expect_fail: yes", "expect_fail: no", "expect_fail"},
        {"setup: touch x", "setup: [touch x, sleep 0]", "setup"},
    };
    char *dir = make_files();
    json_t *base = identity_in(dir, suite_text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(suite_text, cases[i][0]);
        assert_non_null(at);
        char *text =
            xasprintf("%.*s%s%s", (int)(at - suite_text), suite_text, cases[i][1], at + strlen(cases[i][0]));
        json_t *other = identity_in(dir, text);
        expect_difference(base, other, cases[i][1], cases[i][2]);
        json_decref(other);
        free(text);
    }
    json_decref(base);
    remove_files(dir);
}

static void t_contents_of_files_count(void **state)
{
    static const char *const keys[] = {"home", "policy", "recording", "checks"};
    char *dir = make_files();
    json_t *base = identity_in(dir, suite_text);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file(dir, files[i], "two");
        json_t *other = identity_in(dir, suite_text);
        expect_difference(base, other, files[i], keys[i]);
        json_decref(other);
        write_file(dir, files[i], "one");
    }
    json_decref(base);
    remove_files(dir);
}

static void t_comments_order_of_keys_and_folder_do_not_count(void **state)
{
    char *dir = make_files(), *other_dir = make_files();
    char *text = xasprintf("# a comment\n%s", suite_text);
    char *seed = strstr(text, "    seed: 7\n    steps: 9\n");
    assert_non_null(seed);
    memcpy(seed, "    steps: 9\n    seed: 7\n", strlen("    steps: 9\n    seed: 7\n"));
    json_t *base = identity_in(dir, suite_text), *other = identity_in(other_dir, text);
    assert_null(identity_difference(base, other));
    json_decref(base);
    json_decref(other);
    free(text);
    remove_files(dir);
    remove_files(other_dir);
}

/* The files that --policy and --profile name. */
static void t_contents_of_files_of_options_count(void **state)
{
    static const char *const options[][2] = {{"policy", "--policy (contents "},
                                             {"profile", "--profile (contents "}};
    struct err e = ERR_INIT;
    char *dir = make_files(), *suite = xasprintf("%s/suite.yaml", dir);
    struct suite *s = suite_parse(suite_text, strlen(suite_text), suite, &e);
    if (!s)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        char *one = make_files(), *two = make_files();
        json_t *ids[3];
        for (int k = 0; k < 3; k++) { /* the same contents at two paths, then other contents */
            char *path = xasprintf("%s/rules.yaml", k ? two : one);
            write_file(k ? two : one, "rules.yaml", k < 2 ? "one" : "two");
            ids[k] = identity_new(s, "1", "", json_pack("{s:s}", options[i][0], path));
            free(path);
        }
        assert_null(identity_difference(ids[0], ids[1]));
        expect_difference(ids[0], ids[2], options[i][0], options[i][1]);
        for (int k = 0; k < 3; k++)
            json_decref(ids[k]);
        remove_files(one);
        remove_files(two);
    }
    suite_free(s);
    free(suite);
    remove_files(dir);
}

/* ---- results ------------------------------------------------------------------------------------- */

/* Runs a suite of one test; returns its results.json. */
static char *run_suite(struct qa_program *q)
{
    char *text;
    size_t len;
    qa_program_open(q);
    char *path = xvfb_place(&q->x, "first/results.json"), *out = xvfb_place(&q->x, "first");
    qa_program_suite(q, "tests: [{ id: a, task: Press it., checks: [{ kind: shell, run: \"true\" }] }]\n");
    qa_program_reply(q, "a", CLICK(500, 500) ANSWER("Done."));
    qa_program_run(q, WORDS("--out", out));
    if (q->o.code)
        fail_msg("exit %d, %s", q->o.code, q->o.err);
    assert_int_equal(file_read(path, 1 << 20, &text, &len, NULL), 0);
    free(out);
    free(path);
    return text;
}

/* Merges the results with a copy in which one text is replaced; the merge must not be green and must name the
 * fault. */
static void expect_fault(struct qa_program *q, const char *text, const char *const row[3])
{
    const char *at = strstr(text, row[0]);
    if (!at)
        fail_msg("%s is not in %s", row[0], text);
    char *edited = xasprintf("%.*s%s%s", (int)(at - text), text, row[1], at + strlen(row[0]));
    char *one = xvfb_place(&q->x, "first"), *two = xvfb_place(&q->x, "two"),
         *merged = xvfb_place(&q->x, "merged");
    assert_int_equal(dir_make(two, NULL), 0);
    write_file(two, "results.json", edited);
    program_run(&q->x, &q->o, WORDS("qa", "merge", "--out", merged, one, two));
    if (q->o.code == 0 || !strstr(q->o.err, row[2]))
        fail_msg("%s: exit %d, %s", row[1], q->o.code, q->o.err);
    free(merged);
    free(two);
    free(one);
    free(edited);
}

static void t_edited_results_are_refused(void **state)
{
    static const char *const cases[][3] = {
        {"\"schema_version\": 2", "\"schema_version\": 99", "its schema is 99"},
        {"\"model\": \"script\"", "\"model\": \"pocket\"", "the model (script and pocket)"},
        {"\"answer\": \"yes\"", "\"answer\": \"no\"", "is passed, but by its checks it is failed"},
        {"\"answer\": \"yes\"", "\"answer\": \"error\"", "by its checks it is error"},
        {"\"crashed\": false", "\"crashed\": true", "by its checks it is failed"},
        {"\"judged\": false", "\"judged\": true", "is passed (judged), but by its checks it is passed"},
        {"\"expect_fail\": false", "\"expect_fail\": true", "by its checks it is failed"},
        {"\"identity\"", "\"other\"", "written by an older holorun"},
        {"\"retries\": 0", "\"retries\": 3", "--retries (0 and 3)"},
        {"\"build\": \"", "\"build\": \"9.", "the build"},
    };
    struct qa_program q;
    char *text = run_suite(&q);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_fault(&q, text, cases[i]);
    free(text);
    qa_program_close(&q);
}

static void t_a_refused_continuation_keeps_the_results(void **state)
{
    struct qa_program q;
    char *before = run_suite(&q), *after, *path = xvfb_place(&q.x, "first/results.json");
    char *out = xvfb_place(&q.x, "first");
    size_t len;
    qa_program_run(&q, WORDS("--out", out, "--resume-shard", "--retries", "2"));
    assert_int_equal(q.o.code, ERR_USAGE);
    assert_non_null(strstr(q.o.err, "that run and this one differ in --retries (0 and 2)"));
    assert_int_equal(file_read(path, 1 << 20, &after, &len, NULL), 0);
    assert_string_equal(after, before);
    free(after);
    free(before);
    free(out);
    free(path);
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("another value of any key of a suite is named", t_each_key_counts),
    CLAIM("other contents of a file that a suite names are named", t_contents_of_files_count),
    CLAIM("the files of --policy and --profile count by their contents, not their paths",
          t_contents_of_files_of_options_count),
    CLAIM("comments, the order of keys and the folder make no difference",
          t_comments_order_of_keys_and_folder_do_not_count),
    CLAIM("results that were edited, or have another model or setting, are refused with the reason",
          t_edited_results_are_refused),
    CLAIM("a refused --resume-shard keeps the earlier results", t_a_refused_continuation_keeps_the_results),
};

CHECK_MAIN()
