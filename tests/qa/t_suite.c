/* t_suite.c - tests of reading suites, and of the error messages for invalid ones. */
#include "check.h"

#include "suite_fixture.h"

#include <math.h>
#include <unistd.h>

/* ---- invalid suites ------------------------------------------------------------------------------ */

#define TEST   "tests:\n  - id: a\n    task: t\n" /* three lines; more keys of the test follow */
#define WARM   "    reuse: program\n    start: x\n    setup: x\n    wait_until: [{ kind: window, title: x }]\n"
#define STEPS  "tests:\n  - id: a\n    task:\n" /* three lines; steps from line 4 */
#define CHECKS TEST "    checks:\n"             /* line 4; checks from line 5 */

static const struct {
    const char *text, *says; /* after "s.yaml:" */
} wrong[] = {
    {"suite: [", "2: not YAML"},
    {"suite:\n\tname: x\n", "2: not YAML: found character that cannot start any token"},
    {"- a\n", "1: expected the keys suite and tests"},
    {"suite: {}\ntest: []\n", "2: key 'test': no such key, did you mean 'tests'?; a file has suite, tests"},
    {"suite: x\n" TEST, "1: key 'suite': expected keys, as name and display"},
    {"suite: {}\n", "1: expected the key tests with a list of tests"},
    {"tests: []\n", "1: key 'tests': expected a list of tests"},
    {"tests: { id: a }\n", "1: key 'tests': expected a list of tests"},
    {"tests:\n  - hello\n", "2: expected a test, as \"- id: its-name\""},
    {"tests:\n  - id: a\n", "2: expected the key task or spec in a test"},
    {"tests:\n  - task: t\n", "2: expected the key id in a test"},
    {TEST "    spec: x.md\n", "2: expected task or spec in a test, not both"},
    {TEST "  - id: a\n    task: t\n", "4: key 'id': the id 'a' is already used by the test on line 2"},
    {TEST "    matrix: { page: [x, y] }\n    stpes: 3\n",
     "5: key 'stpes': no such key, did you mean 'steps'?; a test has id, task, spec, matrix, vars, seed, "
     "display, wm"},
    {"suite:\n  retry: 2\n" TEST, "2: key 'retry': no such key, did you mean 'retries'?; a suite has"},
    {"suite:\n  port: 2\n" TEST, "2: key 'port': no such key; a suite has"},
    {TEST "    name: x\n", "4: key 'name': no such key"},
    {"suite:\n  expect_fail: yes\n" TEST,
     "2: key 'expect_fail': no such key; a suite has name, flaky_max, vars"},
    {"suite:\n  tsags: [x]\n" TEST, "2: key 'tsags': no such key, did you mean 'tags'?; a suite has"},
    {"suite:\n  name: [a]\n" TEST, "2: key 'name': expected a text"},
    {"suite:\n  name: ''\n" TEST, "2: key 'name': expected a text that is not empty"},
    {"suite:\n  name: \"a\\nb\"\n" TEST, "2: key 'name': expected one line"},
    {"suite:\n  flaky_max: many\n" TEST,
     "2: key 'flaky_max': expected a whole number from 0 to 50000, not 'many'"},
    {"suite:\n  setup: { a: b }\n" TEST, "2: key 'setup': expected a shell command, or a list of them"},
    {"suite:\n  setup: ['']\n" TEST, "2: key 'setup': expected a shell command, or a list of them"},
    {"suite:\n  retries: -1\n" TEST, "2: key 'retries': expected a whole number from 0 to 20, not '-1'"},
    {"suite:\n  steps: x\n" TEST "    steps: 3\n", "2: key 'steps': expected a whole number"},
    {"suite:\n  window: '('\n" TEST "    window: x\n", "2: key 'window': expected a regular expression"},
    {"suite:\n  steps: 3\n  steps: 4\n" TEST, "3: key 'steps': appears twice"},
    {"suite:\n  vars: [a]\n" TEST, "2: key 'vars': expected names and values"},
    {"suite:\n  vars: { Base: x }\n" TEST, "2: key 'Base': expected a variable's name"},
    {"suite:\n  vars: { id: x }\n" TEST, "2: key 'id': expected a variable's name"},
    {"suite:\n  vars:\n    a: '{b}'\n    b: x\n" TEST,
     "3: key 'a': no variable {b}; known: dir, seed, id ({{b}} writes"},
    {"tests:\n  - id: a b\n    task: t\n",
     "2: key 'id': expected an id of at most 100 letters, digits and . _ -, not 'a b'"},
    {"tests:\n  - id: '-a'\n    task: t\n", "2: key 'id': expected an id"},
    {"tests:\n  - id: a\n    task: Open {bsae}\n",
     "3: key 'task': no variable {bsae}; known: dir, seed, id ("},
    {"tests:\n  - id: a\n    task: |\n      one\n      two {x}\n",
     "3: key 'task': no variable {x} (line 2 of the text)"},
    {"tests:\n  - id: a\n    task: Type {{PIN}}\n", "3: key 'task': no secret PIN for {{PIN}}: give it with"},
    {"tests:\n  - id: a\n    task: Type {{PIN}} {{P_2}}\n    secrets: [PIN=env:P_2]\n",
     "3: key 'task': no secret P_2"},
    {TEST "    wait_until: [{ kind: judge, ask: x }]\n",
     "4: expected a check that can pass before the agent starts, not judge"},
    {TEST "    wait_until: [{ kind: text, text: x }]\n", "4: expected a check that can pass"},
    {CHECKS "      - { kind: clipboard }\n", "5: expected the key match in a check of kind clipboard"},
    {CHECKS "      - { kind: clipboard, match: x, selection: both }\n",
     "5: key 'selection': expected clipboard or primary"},
    {CHECKS "      - { kind: element, state: checked }\n",
     "5: expected the key name or role in a check of kind element"},
    {CHECKS "      - { kind: text, text: x, by: me }\n", "5: key 'by': expected model or reading"},
    {TEST "    expect: fail\n", "4: key 'expect': expected done, or infeasible"},
    {"tests:\n  - id: a\n    task: { t: u }\n", "3: key 'task': expected a text"},
    {TEST "    display: 1280x720\n",
     "4: key 'display': expected xvfb:WIDTHxHEIGHT (64 to 16384 pixels) or an "
     "existing display as \":0\", not '1280x720'"},
    {TEST "    display: xvfb:10x10\n", "4: key 'display': expected xvfb"},
    {TEST "    display: xvfb:1280x720x24\n", "4: key 'display': expected xvfb"},
    {"suite:\n  display: tv\n" TEST, "2: key 'display': expected xvfb"},
    {TEST "    home: no/such\n", "4: key 'home': cannot read '"},
    {TEST "    policy: none.yaml\n", "4: key 'policy': cannot read '"},
    {TEST "    env: [A=b]\n", "4: key 'env': expected names and values"},
    {TEST "    env: { A-B: c }\n", "4: key 'A-B': expected the name of an environment variable"},
    {TEST "    env: { HOLORUN_DIR: c }\n",
     "4: key 'HOLORUN_DIR': expected the name of an environment variable"},
    {TEST "    env: { HOME: /root }\n", "4: key 'HOME': each test has its own"},
    {TEST "    env: { A: [b] }\n", "4: key 'A': expected a text"},
    {TEST "    window: '(x'\n", "4: key 'window': expected a regular expression: missing"},
    {TEST "    start: [a, b]\n", "4: key 'start': expected a text"},
    {TEST "    start_timeout_s: 0\n",
     "4: key 'start_timeout_s': expected a number from 0.1 to 3600, not '0'"},
    {TEST "    steps: 1.5\n", "4: key 'steps': expected a whole number from 1 to 100000, not '1.5'"},
    {TEST "    steps: 0x10\n", "4: key 'steps': expected a whole number"},
    {TEST "    steps: [1]\n", "4: key 'steps': expected a whole number from 1 to 100000"},
    {TEST "    settle_quiet_ms: -1\n", "4: key 'settle_quiet_ms': expected a number from 0 to 60000"},
    {TEST "    timeout_s: nan\n", "4: key 'timeout_s': expected a number from 0.1 to 1000000, not 'nan'"},
    {TEST "    timeout_s: 1e9\n", "4: key 'timeout_s': expected a number"},
    {TEST "    attempts: 0\n", "4: key 'attempts': expected a whole number from 1 to 20, not '0'"},
    {TEST "    validator: 21\n", "4: key 'validator': expected a whole number from 0 to 20"},
    {TEST "    seed: -3\n", "4: key 'seed': expected a whole number of at most 19 digits"},
    {TEST "    seed: 99999999999999999999\n", "4: key 'seed': expected a whole number of at most 19 digits"},
    {TEST "    secrets: [PASSWORD=hunter2]\n",
     "4: key 'secrets': expected NAME=env:VARIABLE or NAME=file:PATH, NAME of up to"},
    {TEST "    secrets: [password=env:X]\n", "4: key 'secrets': expected NAME=env:VARIABLE"},
    {TEST "    secrets: { A: b }\n", "4: key 'secrets': expected NAME=env:VARIABLE, or a list of them"},
    {TEST "    tags: [a b]\n", "4: key 'tags': expected a word of letters, digits and . _ -, not 'a b'"},
    {TEST "    tags: [[a]]\n", "4: key 'tags': expected a tag, or a list of them"},
    {TEST "    elements: maybe\n", "4: key 'elements': expected yes or no"},
    {TEST "    expect_fail: perhaps\n", "4: key 'expect_fail': expected yes or no"},
    {TEST "    matrix: [a]\n", "4: key 'matrix': expected variables and values"},
    {TEST "    matrix: { id: [a] }\n", "4: key 'id': expected a variable's name: lower-case letters"},
    {TEST "    matrix: { page: [] }\n", "4: key 'page': expected values of one line, in a list or as 1..20"},
    {TEST "    matrix: { page: [{ a: b }] }\n", "4: key 'page': expected values of one line"},
    {TEST "    matrix: { n: 9..1 }\n", "4: key 'n': expected an ascending range, not '9..1'"},
    {TEST "    matrix: { n: 0..50000 }\n", "4: key 'n': expected at most 50000 values"},
    {TEST "    matrix: { a: 1..501, b: 1..100 }\n",
     "4: key 'b': expected at most 50000 combinations in a matrix"},
    {TEST "    matrix: { seed: [one] }\n", "4: key 'seed': expected whole numbers, not 'one'"},
    {TEST "    matrix: { a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1 }\n",
     "4: key 'g': expected at most 6 axes in a matrix"},
    {TEST "    matrix: { p: 1 }\n    vars: { p: 2 }\n", "5: key 'p': is an axis of this test's matrix, too"},
    {"tests:\n  - id: 'x{p}'\n    task: t\n    matrix: { p: [1, 1] }\n",
     "2: key 'id': the id 'x1' is already used by the test on line 2; a matrix needs"},
    {"tests:\n  - id: 'x{q}'\n    task: t\n    matrix: { p: [1, 1] }\n",
     "2: key 'id': no variable {q}; known: dir, p, seed ("},
    {TEST "    checks: { kind: shell }\n", "4: key 'checks': expected a list of checks"},
    {CHECKS "      - shell\n",
     "5: expected a check, as { kind: shell, run: \"test -f out\" }; its kind is one of shell, answer"},
    {CHECKS "      - { run: x }\n", "5: expected a check"},
    {CHECKS "      - { kind: shel, run: x }\n",
     "5: key 'kind': expected one of shell, answer, window, file, "
     "process, port, region, clipboard, element, text, judge, not 'shel'"},
    {CHECKS "      - { kind: [shell] }\n", "5: key 'kind': expected one of"},
    {CHECKS "      - { kind: shell }\n", "5: expected the key run in a check of kind shell"},
    {CHECKS "      - { kind: window }\n", "5: expected the key title or class in a check of kind window"},
    {CHECKS "      - kind: answer\n        run: x\n",
     "6: key 'run': no such key; a check of kind answer has kind, label, when, seconds, match"},
    {CHECKS "      - kind: judge\n        askk: x\n",
     "6: key 'askk': no such key, did you mean 'ask'?; a check of kind judge has"},
    {CHECKS "      - kind: shell\n        run: x\n        absent: yes\n", "7: key 'absent': no such key"},
    {CHECKS "      - { kind: answer, match: '[' }\n",
     "5: key 'match': expected a regular expression: missing terminating ]"},
    {CHECKS "      - { kind: answer, match: [x] }\n", "5: key 'match': expected a regular expression"},
    {CHECKS "      - { kind: window, class: '(?<x' }\n", "5: key 'class': expected a regular expression"},
    {CHECKS "      - { kind: process, name: '*x' }\n",
     "5: key 'name': expected a regular expression: quantifier"},
    {CHECKS "      - { kind: file, path: x, sha256: abc }\n", "5: key 'sha256': expected 64 hex digits"},
    {CHECKS "      - { kind: port, port: 65536 }\n",
     "5: key 'port': expected a whole number from 1 to 65535, not '65536'"},
    {CHECKS "      - { kind: region, png: x, area: [0, 0, 10] }\n",
     "5: key 'area': expected [x, y, width, height]"},
    {CHECKS "      - { kind: region, png: x, area: [0, 0, 0, 9] }\n",
     "5: key 'area': expected [x, y, width, height]"},
    {CHECKS "      - { kind: region, png: x, area: [0, 0, 1, 99999] }\n",
     "5: key 'area': expected [x, y, width, height]"},
    {CHECKS "      - { kind: region, png: x, max_diff: 2 }\n",
     "5: key 'max_diff': expected a number from 0 to 1, not '2'"},
    {CHECKS "      - { kind: region, png: x, tolerance: 256 }\n",
     "5: key 'tolerance': expected a whole number from 0 to 255"},
    {CHECKS "      - { kind: judge, ask: x, passes: 0 }\n",
     "5: key 'passes': expected a whole number from 1 to 9"},
    {CHECKS "      - { kind: judge, ask: x, frames: 9 }\n",
     "5: key 'frames': expected a whole number from 1 to 8"},
    {CHECKS "      - { kind: judge, ask: 'is {it}?' }\n", "5: key 'ask': no variable {it}"},
    {CHECKS "      - { kind: shell, run: x, when: never }\n",
     "5: key 'when': expected passed (only if the agent finished)"},
    {CHECKS "      - { kind: shell, run: x, seconds: -1 }\n",
     "5: key 'seconds': expected a number from 0 to 86400, not '-1'"},
    {"suite:\n  checks: [{ kind: shell, run: x, when: [] }]\n" TEST, "2: key 'when': expected passed"},
    {"tests:\n  - id: a\n    task: [t]\n", "3: expected a list of steps, as \"- press: Save\""},
    {"tests:\n  - id: a\n    task: []\n", "3: key 'task': expected a list of steps"},
    {STEPS "      - {}\n", "4: expected a list of steps"},
    {STEPS "      - pres: Save\n",
     "4: key 'pres': no such key, did you mean 'press'?; a step has one of press, double_click"},
    {STEPS "      - press: Save\n        tick: Bold\n",
     "5: key 'tick': expected one step in an item of the list, besides 'press'; begin another with -"},
    {STEPS "      - press: Save\n        steps: [press OK]\n",
     "5: key 'steps': expected the key do beside it"},
    {STEPS "      - press: { a: b }\n", "4: key 'press': expected a name, or a list of them"},
    {STEPS "      - press: []\n", "4: key 'press': expected a name, or a list of them"},
    {STEPS "      - press: [[a]]\n", "4: key 'press': expected a name"},
    {STEPS "      - press: ''\n", "4: key 'press': expected a text that is not empty"},
    {STEPS "      - press: '{it}'\n", "4: key 'press': no variable {it}"},
    {STEPS "      - fill: Ana\n", "4: key 'fill': expected names and values, as { Name: Ana }"},
    {STEPS "      - fill:\n          Name: Ana\n          PIN: '{{PIN}}'\n",
     "6: no secret PIN for {{PIN}}: give it with secrets"},
    {STEPS "      - fill: { Name: [a] }\n", "4: key 'Name': expected a text"},
    {STEPS "      - choose: { Size: '' }\n", "4: key 'Size': expected a text that is not empty"},
    {STEPS "      - menu: File >\n", "4: key 'menu': expected at most 8 names, as File > Save As"},
    {STEPS "      - menu: a>b>c>d>e>f>g>h>i\n", "4: key 'menu': expected at most 8 names"},
    {STEPS "      - menu: { a: b }\n", "4: key 'menu': expected a menu, as File > Save As"},
    {STEPS "      - keys: Ana\n",
     "4: key 'keys': expected a key, as ctrl+s or Enter, not 'Ana'; for text use type"},
    {STEPS "      - close: door\n", "4: key 'close': expected window"},
    {STEPS "      - check: Save\n", "4: key 'check': expected a condition, as 'Save is shown' or"},
    {STEPS "      - check: Save is shown, then press Save\n", "4: key 'check': expected a condition"},
    {STEPS "      - do: ''\n", "4: key 'do': expected a text that is not empty"},
    {STEPS "      - do: tidy up\n        steps: [tidy up]\n",
     "5: 'tidy up' is not a step: no rule covers: 'tidy up' (holorun help sentences)"},
    {STEPS "      - do: tidy up\n        steps: press OK\n        steps_of: never\n",
     "6: key 'steps_of': expected the 16 hex digits"},
    {STEPS "      - press: a\n    expect: infeasible\n",
     "2: expected a task as text, not steps, with expect"},
    {STEPS "      - press: a\n    recording: Makefile\n",
     "2: expected a task as text, not steps, with recording"},
    {TEST "    reuse: browser\n",
     "4: key 'reuse': expected run, to repeat the last run that passed, program"},
    {TEST "    reuse: program\n    start: x\n", "2: expected start, setup and wait_until"},
    {TEST "    reuse: program\n    setup: x\n", "2: expected start, setup and wait_until"},
    {TEST "    reuse: program\n    start: x\n    setup: x\n", "2: expected start, setup and wait_until"},
    {TEST WARM "    home: tests\n", "2: reuse: program is not possible with home"},
    {TEST WARM "    retries: 1\n", "2: reuse: program is not possible with retries or attempts"},
    {TEST WARM "    attempts: 2\n", "2: reuse: program is not possible with retries or attempts"},
    {TEST WARM "    display: ':0'\n", "2: reuse: program is not possible with an existing display"},
    {TEST WARM "    secrets: [PIN=env:PIN]\n", "2: reuse: program is not possible with secrets"},
    {"suite:\n  tags: &t [a]\n" TEST, "2: anchors (&name) are not allowed"},
    {"tests:\n  - id: a\n    spec: no.md\n", ""},
};

/* Returns whether a reader that continues after errors finds this one as well. */
static bool among_all(const char *text, size_t len, const char *want)
{
    struct err e = ERR_INIT;
    json_t *faults = json_object(), *unused;
    const char *fault;
    struct suite *s = suite_parse_all(text, len, "s.yaml", faults, &e);
    bool found = !strncmp(e.text, want, strlen(want));
    json_object_foreach(faults, fault, unused) found |= !strncmp(fault, want, strlen(want));
    if (!found)
        print_error("not among all mistakes: '%s'\n", want);
    suite_free(s);
    json_decref(faults);
    return found;
}

static int unlike(const char *text, size_t len, const char *says)
{
    struct err e = ERR_INIT;
    struct suite *s = suite_parse(text, len, "s.yaml", &e);
    char want[300];
    snprintf(want, sizeof want, "%s%s", *says ? "s.yaml:" : "", says);
    int bad = s || e.kind != ERR_USAGE || strncmp(e.text, want, strlen(want)) != 0;
    if (bad)
        print_error("instead of '%s': '%s'\n", want, s ? "accepted" : e.text);
    suite_free(s);
    return bad + !among_all(text, len, want);
}

static void t_wrong(void **state)
{
    size_t n = sizeof wrong / sizeof *wrong;
    int bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += unlike(wrong[i].text, strlen(wrong[i].text), wrong[i].says);
    assert_int_equal(bad, 0);
    check_note("%zu wrong suites, each refused with its line, its key and the expected value", n);
}

static void t_all_mistakes(void **state)
{
    static const char text[] = "suite:\n  retries: x\n  steps: y\n  env: { HOME: a, B-: c }\ntests:\n"
                               "  - id: a b\n    task: Type {{PIN}} at {x}\n    chekcs: []\n    checks:\n"
                               "      - { kind: shell, rum: x }\n      - { kind: port, port: 0 }\n"
                               "  - id: c\n    task: t\n  - id: c\n    task: t\n  - id: c\n    task: t\n";
    static const int lines[] = {2, 3, 4, 4, 6, 7, 7, 8, 10, 10, 11, 14, 16};
    struct err e = ERR_INIT;
    json_t *faults = json_object(), *unused;
    const char *fault;
    struct suite *s = suite_parse_all(text, strlen(text), "s.yaml", faults, &e);
    int found = 0, left = (int)(sizeof lines / sizeof *lines);
    json_object_foreach(faults, fault, unused)
    {
        int line = 0;
        assert_int_equal(sscanf(fault, "s.yaml:%d: ", &line), 1);
        for (int i = 0; i < left; i++)
            found += lines[i] == line && (i == 0 || lines[i - 1] != line);
    }
    if (found != left)
        json_dumpf(faults, stdout, JSON_INDENT(1));
    assert_int_equal(found, left);
    assert_int_equal(json_object_size(faults), left);
    assert_int_equal(e.kind, ERR_NONE);
    assert_int_equal(s->n, 3);
    suite_free(s);
    json_decref(faults);
}

static void t_large(void **state)
{
    static const struct {
        const char *head, *text;
        int n;
        const char *tail, *says;
    } big[] = {
        {"#", "x", 2 << 20, "", " 2097153 bytes; the limit is 1048576"},
        {"tests: [", "1, ", 200000, "]", "1: more than 100000 values"},
        {"suite:\n  env: {", "a: 1, ", 0, "}\n", "1: expected the key tests"},
        {TEST "    task2: ", "[", 50, "", "4: nested more than 12 deep"},
        {"tests:\n  - id: ", "x", 101, "\n    task: t\n", "2: key 'id': expected an id of at most 100"},
        {"tests:\n  - id: a\n    task: ", "x", 70000, "\n",
         "3: key 'task': expected at most 65536 bytes of text"},
        {"suite:\n  vars: { a: ", "x", 60000, " }\ntests:\n  - id: a\n    task: '{a}{a}'\n",
         "5: key 'task': expected at most 65536 bytes of text"},
        {TEST "    window: ", "(a|b)", 500, "\n",
         "4: key 'window': expected a regular expression: pattern of 2500 bytes; the limit is 2000"},
        {TEST "    setup: [", "a, ", 33, "]\n", "4: key 'setup': expected at most 32 of them"},
        {CHECKS, "      - { kind: shell, run: x }\n", 33, "", "37: expected at most 32 checks"},
        {"tests:\n  - { id: x, task: ", "y", 60000, ", matrix: { n: 1..10000 } }\n",
         "2: the tests up to this one have more than 128 MiB of text"},
        {STEPS "      - press: ", "x", 501, "\n", "4: key 'press': expected a name of at most 500 bytes"},
        {STEPS, "      - press: x\n", 201, "", "204: key 'press': expected at most 200 steps in a test"},
        {"tests:\n", "  - { id: x, task: t, matrix: { n: 1..26000 } }\n", 2, "",
         "3: expected at most 50000 tests in a suite"},
    };
    int bad = 0;
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        char *text = repeat(big[i].head, big[i].text, big[i].n, big[i].tail);
        bad += unlike(text, strlen(text), big[i].says);
        free(text);
    }
    bad += unlike("a\0b", 3, "");
    bad += unlike("a: \xff", 4, "1: not valid UTF-8");
    assert_int_equal(bad, 0);
}

/* The suite's own keys are checked even if every test overrides them; no message shows a secret. */
static void t_secret_kept(void **state)
{
    static const char *const lists[] = {"[PASSWORD=hunter2]",   "[hunter2]",
                                        "[PASSWORD: hunter2]",  "hunter2",
                                        "{PASSWORD: hunter2}",  "[password=env:hunter2]",
                                        "[[PASSWORD, hunter2]]"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct err e = ERR_INIT;
        char *text = xasprintf(TEST "    secrets: %s\n", lists[i]);
        if (suite_parse(text, strlen(text), "s.yaml", &e) || !strstr(e.text, "s.yaml:") ||
            strstr(e.text, "hunter2"))
            fail_msg("%s: %s", lists[i], e.text);
        free(text);
    }
}

/* ---- keys ---------------------------------------------------------------------------------------- */

static const char full[] = "suite:\n"
                           "  name: nimbus\n"
                           "  display: xvfb:1024x768\n"
                           "  wm: openbox --sm-disable\n"
                           "  home: .\n"
                           "  env: { LANG: C, COLOR: red }\n"
                           "  setup: [\"./up.sh {base}\", make]\n"
                           "  teardown: ./down.sh\n"
                           "  start: ./app --id {id}\n"
                           "  window: ^App\n"
                           "  start_timeout_s: 12.5\n"
                           "  steps: 40\n"
                           "  timeout_s: 240\n"
                           "  retries: 2\n"
                           "  settle_quiet_ms: 50\n"
                           "  key_delay_ms: 3\n"
                           "  attempts: 3\n"
                           "  validator: 4\n"
                           "  flaky_max: 5\n"
                           "  seed: 7\n"
                           "  secrets: [USER=env:A]\n"
                           "  tags: all\n"
                           "  vars: { base: \"http://x\" }\n"
                           "  checks: [{ kind: port, port: 80 }]\n"
                           "tests:\n"
                           "  - id: one\n"
                           "    task: Go to {base}.\n"
                           "    tags: [auth, all]\n"
                           "  - id: two\n"
                           "    task: t\n"
                           "    display: \":0\"\n"
                           "    wm: \"\"\n"
                           "    home: /tmp\n"
                           "    env: { COLOR: blue }\n"
                           "    setup: a\n"
                           "    teardown: [b, c]\n"
                           "    start: \"\"\n"
                           "    window: \"\"\n"
                           "    start_timeout_s: 1\n"
                           "    steps: 2\n"
                           "    timeout_s: 3\n"
                           "    settle_quiet_ms: 0\n"
                           "    settle_min_ms: 7\n"
                           "    retries: 0\n"
                           "    attempts: 1\n"
                           "    validator: 0\n"
                           "    seed: 18\n"
                           "    policy: Makefile\n"
                           "    secrets: [USER=env:B, KEY=file:k]\n"
                           "    vars: { base: y }\n"
                           "    expect_fail: yes\n"
                           "    checks: [{ kind: shell, run: x }]\n";

static void t_suite_keys(void **state)
{
    struct suite *s = suite_of(full);
    char cwd[500];
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_string_equal(s->name, "nimbus");
    assert_string_equal(s->dir, cwd);
    same_list(s->setup, LIST("./up.sh http://x", "make"));
    same_list(s->teardown, LIST("./down.sh"));
    assert_true(has(s->env, "LANG=C") && has(s->env, "HOLORUN_VAR_BASE=http://x"));
    assert_int_equal(s->flaky_max, 5);
    assert_int_equal(s->n, 2);

    const struct test *t = test_of(s, "one");
    assert_true(t->settle_quiet == 50 && t->key_delay == 3 && isnan(t->settle_min));
    assert_true(test_of(s, "two")->settle_quiet == 0 && test_of(s, "two")->settle_min == 7);
    assert_int_equal(t->line, 26);
    assert_string_equal(t->task, "Go to http://x.");
    assert_string_equal(t->display, "xvfb:1024x768");
    assert_string_equal(t->wm, "openbox --sm-disable");
    assert_string_equal(t->dir, cwd);
    assert_int_equal(strncmp(t->home, cwd, strlen(cwd)), 0);
    assert_string_equal(t->start, "./app --id one");
    assert_string_equal(t->window, "^App");
    assert_true(t->start_timeout == 12.5 && t->timeout == 240);
    assert_int_equal(t->steps, 40);
    assert_int_equal(t->retries, 2);
    assert_int_equal(t->attempts, 3);
    assert_int_equal(t->validator, 4);
    assert_int_equal(t->seed, 7);
    assert_null(t->policy);
    same_list(t->secrets, LIST("USER=env:A"));
    same_list(t->tags, LIST("all", "auth"));
    assert_null(*t->setup);
    assert_true(has(t->env, "LANG=C") && has(t->env, "COLOR=red") && has(t->env, "HOLORUN_VAR_ID=one") &&
                has(t->env, "HOLORUN_VAR_SEED=7"));
    assert_int_equal(t->n_checks, 1);
    assert_false(t->expect_fail);
    assert_true(t->selected);
    suite_free(s);
}

static void t_test_keys(void **state)
{
    struct suite *s = suite_of(full);
    const struct test *t = test_of(s, "two");
    char path[600];
    assert_string_equal(t->display, ":0");
    assert_string_equal(t->wm, "");
    assert_string_equal(t->home, "/tmp");
    same_list(t->setup, LIST("a"));
    same_list(t->teardown, LIST("b", "c"));
    assert_null(t->start);
    assert_null(t->window);
    assert_true(t->start_timeout == 1 && t->timeout == 3);
    assert_int_equal(t->steps, 2);
    assert_int_equal(t->retries, 0);
    assert_int_equal(t->attempts, 1);
    assert_int_equal(t->validator, 0);
    assert_int_equal(t->seed, 18);
    snprintf(path, sizeof path, "%s/Makefile", s->dir);
    assert_string_equal(t->policy, path);
    snprintf(path, sizeof path, "KEY=file:%s/k", s->dir);
    same_list(t->secrets, LIST("USER=env:B", path));
    assert_true(t->expect_fail);
    assert_true(has(t->env, "LANG=C") && has(t->env, "COLOR=blue") && !has(t->env, "COLOR=red") &&
                has(t->env, "HOLORUN_VAR_BASE=y"));
    assert_int_equal(t->n_checks, 2);
    assert_int_equal(t->checks[0].kind, CHECK_PORT);
    assert_int_equal(t->checks[1].kind, CHECK_SHELL);
    suite_free(s);

    s = suite_of(TEST);
    t = &s->tests[0];
    assert_string_equal(s->name, "s");
    assert_string_equal(t->display, "xvfb:1280x720");
    assert_true(!t->wm && !t->home && !t->start && !t->window && !t->policy && !t->spec);
    assert_true(t->start_timeout == 30 && t->timeout == 0 && t->steps == 0 && t->retries == -1);
    assert_true(t->attempts == 0 && t->validator == 0 && t->seed == 0);
    assert_int_equal(s->flaky_max, SUITE_MAX_TESTS);
    assert_true(!*t->secrets && !*t->tags && !*t->matrix && !*s->setup && !*s->teardown);
    suite_free(s);
}

static const struct CMUnitTest tests[] = {
    CLAIM("all errors of a suite are found at once, each once", t_all_mistakes),
    CLAIM("a wrong suite is refused with its line, its key and the expected value", t_wrong),
    CLAIM("sizes and depths are limited", t_large),
    CLAIM("no message shows a possible secret", t_secret_kept),
    CLAIM("every key of a suite is read and is a default for its tests", t_suite_keys),
    CLAIM("every key of a test is read and overrides its suite's", t_test_keys),
};

CHECK_MAIN()
