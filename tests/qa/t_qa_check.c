/* t_qa_check.c - tests of errors that `holorun qa` finds before it starts anything: all of them with
 * --check, and those in --fake and secrets also without it; files with a byte order mark.
 */
#include "check.h"
#include "qa_program.h"

#include "base/buf.h"
#include "base/file.h"

#include <sys/wait.h>

#define BOM "\xef\xbb\xbf"

static void put(const struct qa_program *q, const char *name, const char *text)
{
    char *path = xvfb_put(&q->x, name, text);
    free(path);
}

static char *text_in(const struct qa_program *q, const char *name)
{
    char *path = xvfb_place(&q->x, name), *text;
    size_t len;
    assert_int_equal(file_read(path, 1 << 20, &text, &len, NULL), 0);
    free(path);
    return text;
}

/* Runs the program in the test's directory, so that messages contain relative file names. */
static void run_in(struct qa_program *q, const char *const *words)
{
    char *program = realpath(program_path(), NULL);
    struct buf line;
    buf_init(&line, 1 << 16);
    buf_printf(&line, "cd '%s' && exec '%s'", q->x.dir, program);
    for (; *words; words++)
        buf_printf(&line, " '%s'", *words);
    buf_puts(&line, " </dev/null >said.out 2>said.err");
    int rc = system(line.data);
    outcome_free(&q->o);
    q->o = (struct outcome){WIFEXITED(rc) ? WEXITSTATUS(rc) : -1, text_in(q, "said.out"),
                            text_in(q, "said.err")};
    buf_free(&line);
    free(program);
}

/* ---- --check ------------------------------------------------------------------------------------- */

static const char many[] = "suite:\n"
                           "  dispaly: tv\n"
                           "  retries: many\n"
                           "  env: { HOME: /x, 9A: b }\n"
                           "  secrets: [PASSWORD=env:QA_NOT_SET, hunter2]\n"
                           "tests:\n"
                           "  - id: a b\n"
                           "    task: Type {{TOKEN}} at {base}.\n"
                           "    chekcs: []\n"
                           "    checks:\n"
                           "      - { kind: shell, rum: x }\n"
                           "      - { kind: windw, title: x }\n"
                           "      - { kind: window, title: '(' }\n"
                           "  - id: good\n"
                           "    task: Do it.\n"
                           "    policy: p.yaml\n"
                           "    checks: [{ kind: region, png: none.png }]\n"
                           "  - id: good\n"
                           "    task: Do it again.\n"
                           "  - task: nothing\n"
                           "    timeout_s: -1\n"
                           "  - spec: gone.md\n";

static void t_many(void **state)
{
    static const char *const lines[] = {
        "m.yaml:2: key 'dispaly': no such key",
        "m.yaml:3: key 'retries': expected a whole number",
        "m.yaml:4: key 'HOME': each test has its own",
        "m.yaml:4: key '9A': expected the name of an environment variable",
        "m.yaml:5: key 'secrets': expected NAME=env:VARIABLE",
        "m.yaml:7: key 'id': expected an id",
        "m.yaml:8: key 'task': no variable {base}",
        "m.yaml:8: key 'task': no secret TOKEN",
        "m.yaml:9: key 'chekcs': no such key",
        "m.yaml:11: key 'rum': no such key",
        "m.yaml:11: expected the key run",
        "m.yaml:12: key 'kind': expected one of",
        "m.yaml:13: key 'title': expected a regular expression",
        "m.yaml:14: test 'good': --fake 'replies/good.txt': reply 2: ",
        "m.yaml:14: test 'good': secret PASSWORD: environment variable 'QA_NOT_SET' is not set",
        "m.yaml:14: test 'good': /tmp", /* its policy, in the test's directory */
        "m.yaml:14: test 'good': reference image '",
        "m.yaml:18: key 'id': the id 'good' is already used",
        "m.yaml:18: test 'good': --fake 'replies/good.txt': reply 2: ",
        "m.yaml:20: expected the key id",
        "m.yaml:21: key 'timeout_s': expected a number",
        "cannot open '",
        "m.yaml: 2 tests, 22 mistakes",
    };
    struct qa_program q;
    qa_program_open(&q);
    put(&q, "m.yaml", many);
    put(&q, "p.yaml", "rules:\n  - foo: 3\n");
    qa_program_reply(&q, "good", ANSWER("Done.") "rubbish\n");
    run_in(&q, WORDS("qa", "m.yaml", "--check", "--fake", "replies"));
    assert_int_equal(q.o.code, ERR_USAGE);
    char *save = NULL, *line = strtok_r(q.o.err, "\n", &save);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++, line = strtok_r(NULL, "\n", &save)) {
        const char *want = strstr(lines[i], ": /tmp") ? "m.yaml:14: test 'good': /" : lines[i];
        if (!line || strncmp(line, want, strlen(want)) != 0)
            fail_msg("line %zu: '%s' instead of '%s'", i + 1, line ? line : "nothing", want);
    }
    assert_null(line);
    run_in(&q, WORDS("qa", "m.yaml", "--check", "--json", "--fake", "replies"));
    json_t *all = json_loads(q.o.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(all, "mistakes")), 22);
    json_decref(all);
    put(&q, "m.yaml", "tests:\n  - id: good\n    task: Do it.\n");
    qa_program_reply(&q, "good", ANSWER("Done."));
    run_in(&q, WORDS("qa", "m.yaml", "--check", "--fake", "replies"));
    assert_int_equal(q.o.code, 0);
    assert_string_equal(q.o.out, "m.yaml: 1 test, 0 mistakes\n");
    qa_program_close(&q);
}

/* ---- --fake and secrets -------------------------------------------------------------------------- */

static void t_fake(void **state)
{
    static const struct {
        const char *fake, *says;
    } cases[] = {{"nowhere", "--fake: cannot open 'nowhere'"},
                 {"replies", "test 'b': --fake: cannot open 'replies/b.txt'"},
                 {"empty.txt", "--fake: 'empty.txt' has no replies"},
                 {"/dev/null", "--fake: '/dev/null' is not a file"}};
    struct qa_program q;
    qa_program_open(&q);
    put(&q, "s.yaml", "tests:\n  - id: a\n    task: Do it.\n  - id: b\n    task: Do it.\n");
    put(&q, "empty.txt", "\n\n");
    qa_program_reply(&q, "a", ANSWER("Done."));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_in(&q, WORDS("qa", "s.yaml", "--fake", cases[i].fake, "--out", "out.d"));
        ONE_LINE(&q.o, ERR_USAGE, cases[i].says);
    }
    char *out = xvfb_place(&q.x, "out.d");
    assert_false(file_exists(out)); /* no test has started */
    free(out);
    qa_program_close(&q);
}

/* A test with a recording needs no replies, and errors in the recording are found. */
static void t_recording(void **state)
{
    static const char good[] = "{\"holorun_recording\": 1, \"screen\": [800, 600]}\n"
                               "{\"wait_until\": \"rest\", \"seconds\": 1}\n";
    struct qa_program q;
    qa_program_open(&q);
    put(&q, "s.yaml", "tests:\n  - id: a\n    task: Do it.\n    recording: r.jsonl\n");
    put(&q, "r.jsonl", good);
    run_in(&q, WORDS("qa", "s.yaml", "--check"));
    assert_int_equal(q.o.code, ERR_USAGE);
    assert_non_null(strstr(q.o.err, "s.yaml:2: test 'a': the recording has no check"));
    put(&q, "s.yaml",
        "tests:\n  - id: a\n    task: Do it.\n    recording: r.jsonl\n"
        "    checks:\n      - {kind: file, path: a}\n  - id: b\n    task: Do it.\n");
    qa_program_reply(&q, "b", ANSWER("Done."));
    run_in(&q, WORDS("qa", "s.yaml", "--check", "--fake", "replies"));
    if (q.o.code)
        fail_msg("%s", q.o.err);
    run_in(&q, WORDS("qa", "s.yaml", "--check", "--fake", "r.jsonl"));
    if (q.o.code)
        fail_msg("%s", q.o.err);
    put(&q, "r.jsonl", "{\"holorun_recording\": 1, \"screen\": [800, 600]}\n{\"action\": 3}\n");
    run_in(&q, WORDS("qa", "s.yaml", "--check", "--fake", "replies"));
    assert_int_equal(q.o.code, ERR_USAGE);
    check_has(q.o.err, "s.yaml:2: test 'a': ", "r.jsonl");
    qa_program_close(&q);
}

/* A script that is too short is noticed only at run time. */
static void t_short(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    qa_program_suite(&q, "tests:\n  - id: a\n    task: Wait.\n");
    qa_program_reply(&q, "a", WAIT(0));
    qa_program_run(&q, WORDS("--quiet"));
    assert_string_equal(qa_program_outcome(&q, "a"), "error");
    assert_int_equal(q.o.code, ERR_USAGE);
    qa_program_close(&q);
}

static void t_secret_names(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    put(&q, "s.yaml", "tests:\n  - id: a\n    task: Type {{PASWORD}}.\n    secrets: [PASSWORD=env:HOME]\n");
    run_in(&q, WORDS("qa", "s.yaml", "--list"));
    ONE_LINE(&q.o, ERR_USAGE, "s.yaml:3: key 'task': no secret PASWORD for {{PASWORD}}");
    run_in(&q, WORDS("qa", "s.yaml"));
    ONE_LINE(&q.o, ERR_USAGE, "no secret PASWORD");
    put(&q, "s.yaml", "tests:\n  - spec: s.md\n");
    put(&q, "s.md", "---\nid: a\ncredentials: [USER]\n---\n## Task\nLog in as {{USER}} with {{PASSWORD}}.\n");
    run_in(&q, WORDS("qa", "s.yaml", "--list"));
    ONE_LINE(&q.o, ERR_USAGE, "no secret PASSWORD for {{PASSWORD}}");
    put(&q, "s.md", "---\nid: a\ncredentials: [USER]\n---\n## Task\nLog in as {{USER}} at {{page}}.\n");
    run_in(&q, WORDS("qa", "s.yaml", "--list"));
    assert_int_equal(q.o.code, 0);
    qa_program_close(&q);
}

/* ---- a byte order mark --------------------------------------------------------------------------- */

static void t_bom(void **state)
{
    struct qa_program q;
    qa_program_open(&q);
    put(&q, "s.yaml",
        BOM "suite:\r\n  name: marked\r\n  display: xvfb:800x600\r\n  wm: ''\r\ntests:\r\n  - spec: s.md\r\n"
            "    policy: p.yaml\r\n    checks: [{kind: shell, run: 'true'}]\r\n");
    put(&q, "s.md", BOM "---\r\nid: a\r\n---\r\n## Task\r\nWait.\r\n");
    put(&q, "p.yaml", BOM "otherwise: allow\r\n");
    put(&q, "replies.txt", BOM STEP("\"wait_desktop\", \"seconds\": 0") "\r\n" ANSWER("VERDICT: PASSED"));
    run_in(&q, WORDS("qa", "s.yaml", "--check", "--fake", "replies.txt"));
    if (q.o.code)
        fail_msg("%s", q.o.err);
    run_in(&q, WORDS("qa", "s.yaml", "--fake", "replies.txt", "--out", "out.d", "--quiet"));
    if (q.o.code)
        fail_msg("%s", q.o.err);
    put(&q, "earlier.json", BOM "{\"tests\": [{\"id\": \"a\", \"outcome\": \"failed\"}]}");
    run_in(&q, WORDS("qa", "s.yaml", "--list", "--rerun-failed", "earlier.json"));
    assert_int_equal(q.o.code, 0);
    put(&q, "wide.yaml", "\xff\xfes");
    run_in(&q, WORDS("qa", "wide.yaml", "--list"));
    ONE_LINE(&q.o, ERR_USAGE, "not valid UTF-8: it is UTF-16");
    qa_program_close(&q);
}

static const struct CMUnitTest tests[] = {
    CLAIM("--check finds all errors of a suite at once, also in secrets, policies, images and replies",
          t_many),
    CLAIM("an invalid --fake is a usage error, and no test starts", t_fake),
    CLAIM("a recording replaces replies, and errors in it are found", t_recording),
    CLAIM("replies that end too early give the exit code of a usage error", t_short),
    CLAIM("a {{NAME}} without such a secret is an error, also with --list", t_secret_names),
    CLAIM("suites, specs, policies and replies may have a byte order mark and CR LF", t_bom),
};

CHECK_MAIN()
