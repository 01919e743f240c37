/* t_lines.c - tests that line-delimited JSON has the same lines for every reader: ours, Python's
 * str.splitlines() and Node's readline.
 */
#include "check.h"

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "driven.h"
#include "program.h"
#include "replies.h"

#include <string.h>
#include <sys/wait.h>

/* U+2028, U+0085, U+2029, DEL and a C1 control character, as UTF-8 and as JSON. */
#define BREAKS                                                                                               \
    "\xe2\x80\xa8"                                                                                           \
    "b\xc2\x85"                                                                                              \
    "c\xe2\x80\xa9"                                                                                          \
    "d\x7f"                                                                                                  \
    "e\xc2\x9b"
#define ESCAPED "\\u2028b\\u0085c\\u2029d\\u007fe\\u009b"

static bool breaks(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029;
}

/* Fails if text[n], except for its last byte, has a character at which a reader may split. */
static void one_piece(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int len = utf8_decode(text + i, n - i, &cp);
        if (len < 1 || (breaks(cp) && !(cp == '\n' && i + 1 == n)))
            fail_msg("U+%04X at byte %zu of %.200s", cp, i, text);
        i += (size_t)len;
    }
}

/* Writes every character up to U+2100 and some above, in a value and in a key, with both writers. */
static void t_characters(void **state)
{
    struct buf all, line;
    buf_init(&all, 1 << 20);
    buf_init(&line, 1 << 20);
    for (uint32_t cp = 1; cp < 0x2100; cp++) {
        char c[4];
        buf_put(&all, c, (size_t)utf8_encode(cp, c));
    }
    buf_puts(&all, "\xef\xbb\xbf\xef\xbf\xbd\xf0\x9f\x98\x80");
    json_t *v = json_pack("{s:[s]}", all.data, all.data);
    char *text = json_line(v, JSON_COMPACT);
    one_piece(text, strlen(text));
    json_t *back = json_loads(text, 0, NULL);
    assert_true(json_equal(v, back));
    buf_put_json(&line, all.data, all.len);
    one_piece(line.data, line.len);
    json_t *string = json_loads(line.data, JSON_DECODE_ANY, NULL);
    assert_string_equal(json_string_value(string), all.data);
    buf_clear(&line);
    buf_put_json_text(&line, "\"\xc2", 2); /* a truncated character is copied */
    assert_string_equal(line.data, "\"\xc2");
    assert_null(json_line(NULL, 0));
    json_decref(string);
    json_decref(back);
    json_decref(v);
    free(text);
    buf_free(&all);
    buf_free(&line);
}

static void t_invalid(void **state)
{
    static const char *const texts[][2] = {
        {"plain", "\"plain\""},
        {"a\xff"
         "b",
         "\"a\xef\xbf\xbd"
         "b\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* a surrogate */
        {"\xe2\x80\xa8\xe2\x80", "\"\\u2028\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc2\x85", "\"\\u0085\""}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *string = json_clean_string(texts[i][0]);
        char *line = json_line(string, 0);
        assert_string_equal(line, texts[i][1]);
        free(line);
        json_decref(string);
    }
}

/* Sets the title of the stage's window. */
static void set_title(const struct stage *t, const char *title)
{
    Window root, parent, *children = NULL;
    unsigned n = 0;
    XQueryTree(t->other, DefaultRootWindow(t->other), &root, &parent, &children, &n);
    for (unsigned i = 0; i < n; i++)
        XChangeProperty(t->other, children[i], XInternAtom(t->other, "_NET_WM_NAME", False),
                        XInternAtom(t->other, "UTF8_STRING", False), 8, PropModeReplace,
                        (const unsigned char *)title, (int)strlen(title));
    XFree(children);
    XSync(t->other, False);
}

/* Returns the output of a shell command, at most 1 MB; *code: its exit status. */
static char *shell(int *code, const char *command)
{
    char *out = xcalloc(1 << 20, 1);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(out, 1, (1 << 20) - 1, f);
    out[n] = 0;
    int status = pclose(f);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return out;
}

/* Checks that all three readers see the same lines; returns their number. */
static int read_by_all(const char *path)
{
    char *text;
    size_t len;
    int lines = 0, code;
    struct err e = ERR_INIT;
    assert_int_equal(file_read(path, 64 << 20, &text, &len, &e), 0);
    for (char *p = text, *end; p < text + len; p = end + 1, lines++) {
        end = strchr(p, '\n');
        assert_non_null(end);
        one_piece(p, (size_t)(end + 1 - p));
    }
    free(text);
    static const char *const readers[][2] = {
        {"python3",
         "python3 -c 'import json, sys; text = open(sys.argv[1], encoding=\"utf-8\", newline=\"\").read(); "
         "print(len([json.loads(line) for line in text.splitlines()]))'"},
        {"node", "node tests/hosts/lines.mjs read"}};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        char *command =
            xasprintf("command -v %s >/dev/null || exit 77; %s '%s'", readers[i][0], readers[i][1], path);
        char *said = shell(&code, command);
        if (code == 77)
            check_note("%s is not on this machine", readers[i][0]);
        else if (code || atoi(said) != lines)
            fail_msg("%s: %s reads %s lines, not %d", path, readers[i][0], said, lines);
        free(said);
        free(command);
    }
    return lines;
}

/* Checks titles, typed texts, thoughts and answers in the record and in --json. */
static void t_run(void **state)
{
    struct record r;
    DRIVEN(t, o);
    set_title(&t, "a" BREAKS);
    driven_run(&t, CLICK_ON("a" BREAKS, 300, 300) ANSWER("a" BREAKS), WORDS("--json"), &o);
    assert_int_equal(o.code, 0);
    one_piece(o.out, strlen(o.out));
    assert_non_null(strstr(o.out, "a" ESCAPED));
    driven_read(&t, &r);
    char *events = xasprintf("%s/events.jsonl", r.dir), *text;
    size_t len;
    const json_t *window = json_object_get(driven_last(&r, "observe"), "window");
    assert_string_equal(json_string_value(json_object_get(window, "title")), "a" BREAKS);
    assert_int_equal(read_by_all(events), r.n);
    assert_int_equal(file_read(events, 16 << 20, &text, &len, NULL), 0);
    assert_non_null(strstr(text, "a" ESCAPED));
    free(text);
    free(events);
    record_free(&r);
}

/* Uses a host in JavaScript, as most are. */
static void t_node(void **state)
{
    struct stage t;
    int code;
    driven_open(&t);
    set_title(&t, "a" BREAKS);
    char *runs = xvfb_place(&t.x, "runs");
    char *command =
        xasprintf("command -v node >/dev/null || exit 77; timeout 20 node tests/hosts/lines.mjs mcp '%s' mcp "
                  "--quiet --fake /dev/null --runs '%s'",
                  program_path(), runs);
    char *said = shell(&code, command);
    if (code == 77)
        check_note("node is not on this machine");
    else if (code || !strstr(said, "a<U+2028>b<U+0085>c"))
        fail_msg("exit %d: %s", code, said);
    free(said);
    free(command);
    free(runs);
    stage_close(&t);
}

#define SUITE                                                                                                \
    "suite: {name: \"s\\u2028\\u0085\"}\ntests:\n  - id: a\n    task: \"t\\u2029\\u0085x\"\n    checks: [{kind: shell, run: \"true\"}]\n"

/* Checks the output of --list, --check and --feed. */
static void t_suite(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    char *suite = xvfb_put(&x, "s.yaml", SUITE), *out = xvfb_place(&x, "results");
    char *script = xvfb_put(&x, "replies", ANSWER("Done."));
    program_run(&x, &o, WORDS("qa", suite, "--list", "--json"));
    assert_int_equal(o.code, 0);
    one_piece(o.out, strlen(o.out));
    assert_non_null(strstr(o.out, "t\\u2029\\u0085x"));
    free(suite);
    suite = xvfb_put(&x, "s.yaml", "tests:\n  - id: a\n    \"t\\u2029\\u0085x\": b\n");
    program_run(&x, &o, WORDS("qa", suite, "--check", "--json"));
    assert_int_equal(o.code, ERR_USAGE);
    one_piece(o.out, strlen(o.out));
    free(suite);
    suite = xvfb_put(&x, "s.yaml", SUITE);
    char *command = xasprintf(
        "printf '{\"test\": \"n\\\\u2028o\\\\u0085\"}\\n' | '%s' qa '%s' --feed --fake '%s' --out '%s'",
        program_path(), suite, script, out);
    int code;
    char *said = shell(&code, command);
    one_piece(said, strlen(said));
    if (!strstr(said, "n\\u2028o\\u0085"))
        fail_msg("exit %d: %s", code, said);
    free(said);
    free(command);
    free(script);
    free(suite);
    free(out);
}

static const struct CMUnitTest tests[] = {
    CLAIM("every character stays within its line and is restored", t_characters),
    CLAIM("invalid bytes are replaced", t_invalid),
    CLAIM("the record and --json of a run have the same lines for every reader", t_run),
    CLAIM("a host in JavaScript reads titles with line separators", t_node),
    CLAIM("the lists and answers of a suite have one line", t_suite),
};

CHECK_MAIN()
