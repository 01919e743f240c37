/* t_rpc.c - tests JSON-RPC without descriptors, and the entry in a client's configuration. */
#include "check.h"

#include "base/file.h"
#include "host/install.h"
#include "host/rpc.h"
#include "program.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- messages ---------------------------------------------------------------------------------------- */

struct peer {
    struct rpc *r;
    int requests, notices, answers;
    bool later; /* requests are answered later */
    char why[64];
};

static void request(void *arg, const json_t *id, const char *method, json_t *params)
{
    struct peer *p = arg;
    p->requests++;
    if (!p->later)
        rpc_reply(p->r, id, json_pack("{s:s, s:O}", "method", method, "params", params));
}

static void notice(void *arg, const char *method, json_t *params)
{
    ((struct peer *)arg)->notices++;
}

static void answered(void *arg, int64_t ask, json_t *result, const char *why)
{
    struct peer *p = arg;
    p->answers += result ? 1 : 100;
    snprintf(p->why, sizeof p->why, "%s", why);
}

static void peer_open(struct peer *p)
{
    static const struct rpc_handlers handlers = {request, notice, answered};
    *p = (struct peer){.r = rpc_new(&handlers, p)};
}

static void say(struct peer *p, const char *text)
{
    rpc_feed(p->r, text, strlen(text));
}

/* Returns and removes all pending output. */
static char *take(struct peer *p)
{
    size_t n;
    const char *out = rpc_output(p->r, &n);
    char *text = xasprintf("%.*s", (int)n, out);
    rpc_written(p->r, n);
    return text;
}

static void expect(struct peer *p, const char *line, const char *holds)
{
    say(p, line);
    char *got = take(p);
    if (*holds ? !strstr(got, holds) : *got != 0)
        fail_msg("%s -> %s, not %s", line, got, holds);
    free(got);
}

static void t_pieces(void **state)
{
    static const char text[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\r\n\n  \n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"\xc3\xa4\",\"params\":{\"k\":\"v\"}}\n";
    char *first = NULL;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        struct peer p;
        peer_open(&p);
        for (size_t at = 0; at < sizeof text - 1; at += piece)
            rpc_feed(p.r, text + at, piece < sizeof text - 1 - at ? piece : sizeof text - 1 - at);
        char *got = take(&p);
        assert_int_equal(p.requests, 2);
        assert_int_equal(p.notices, 1);
        if (first)
            assert_string_equal(got, first);
        if (first)
            free(got);
        else
            first = got;
        rpc_free(p.r);
    }
    free(first);
}

static void t_refused(void **state)
{
    struct peer p;
    peer_open(&p);
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",}\n", "-32700");
    expect(&p, "\"\\ud800\"\n", "-32700");
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"a\"}\n", "-32700"); /* a duplicate name */
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n", "-32700");
    expect(&p, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}\n", "\"id\":1,\"error\":{\"code\":-32600");
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}\n", "-32600");
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}\n", "-32600");
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":3}\n", "-32600");
    expect(&p, "[]\n", "-32600");
    expect(&p, "[[]]\n", "[{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600");
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[1]}\n",
           "'params' must be an object");
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"a\",\"params\":{\"k\":[\"b\\u0000c\"]}}\n",
           "\"id\":4,\"error\":{\"code\":-32600,\"message\":\"a string contains U+0000");
    /* no request was sent: only stderr reports it */
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n", "");
    assert_int_equal(p.requests + p.notices + p.answers, 0);
    say(&p, "{\"jsonrpc\"");
    rpc_end(p.r);
    expect(&p, "", "in the middle of a line");
    rpc_free(p.r);
}

#define ASK(id, more) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"a\"" more "}"

/* Other spellings of the same message. */
static void t_accepted(void **state)
{
    static const struct {
        const char *line, *answer;
    } lines[] = {
        {ASK("1", ",\"params\":null"),
         "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"method\":\"a\",\"params\":{}}}\n"},
        {ASK("1", ",\"params\":[]"), "\"params\":{}}}\n"},
        {"\xef\xbb\xbf" ASK("2", ""), "\"id\":2,\"result\""},
        {ASK("3.0", ""), "\"id\":3.0,\"result\""},
        {ASK("\"\"", ""), "\"id\":\"\",\"result\""},
        {ASK("1", ",\"_meta\":null,\"more\":[1]"), "\"id\":1,\"result\""},
        {ASK("1", ",\"params\":{\"k\":\"\\ud83d\"}"), "{\"k\":\"\xef\xbf\xbd\"}"},
        {ASK("1", ",\"params\":{\"k\":\"\\uDC00\\uD83D\\uD83D\\uDE00x\"}"),
         "{\"k\":\"\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80x\"}"},
        {ASK("1", ",\"params\":{\"k\":\"\\\\ud83d\"}"), "{\"k\":\"\\\\ud83d\"}"},
        {"[" ASK("1", "") "," ASK("\"1\"", "") "]", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\""},
        {"[" ASK("1", "") ",7]", "},{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600"},
        {"[{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]", ""},
    };
    struct peer p;
    peer_open(&p);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *line = xasprintf("%s\r\n", lines[i].line);
        expect(&p, line, lines[i].answer);
        free(line);
    }
    rpc_free(p.r);
}

/* The array of answers is sent with the last one; a cancelled request has none. */
static void t_batch(void **state)
{
    struct peer p;
    peer_open(&p);
    p.later = true;
    json_t *one = json_integer(1), *two = json_string("2"), *three = json_integer(3);
    expect(&p, "[" ASK("1", "") "," ASK("\"2\"", "") "," ASK("3", "") "," ASK("1", "") "]\n", "");
    expect(&p, ASK("3", "") "\n", "in use");
    assert_true(rpc_reply(p.r, three, json_object()));
    assert_true(rpc_drop(p.r, one));
    expect(&p, "", "");
    assert_true(rpc_fail(p.r, two, RPC_INTERNAL, NULL, "no"));
    char *got = take(&p);
    json_t *answers = json_loads(got, 0, NULL);
    assert_int_equal(json_array_size(answers), 3); /* one of them for the id in use */
    assert_false(rpc_reply(p.r, three, json_object()));
    expect(&p, "[" ASK("9", "") "]\n", ""); /* freed with an open request */
    rpc_free(p.r);
    json_decref(answers);
    json_decref(one);
    json_decref(two);
    json_decref(three);
    free(got);
}

/* No character of a text ends a line for other readers (tests/hosts/lines.mjs checks Node). */
static void t_one_line(void **state)
{
    static const char raw[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"\xe2\x80\xa8\",\"method\":\"\xc2\x85\",\"params\":{\"\xe2\x80\xa9\":"
        "\"\x7f\xc2\x9f \xc2\xa0\xe2\x80\xa7\xe2\x80\xaa\\u000b\\u001c\"}}\n";
    struct peer p;
    peer_open(&p);
    say(&p, raw);
    char *got = take(&p);
    assert_string_equal(
        got, "{\"jsonrpc\":\"2.0\",\"id\":\"\\u2028\",\"result\":{\"method\":\"\\u0085\",\"params\":{"
             "\"\\u2029\":\"\\u007f\\u009f \xc2\xa0\xe2\x80\xa7\\u202a\\u000B\\u001C\"}}}\n");
    free(got);
    rpc_free(p.r);
}

static void t_long_line(void **state)
{
    struct peer p;
    peer_open(&p);
    char *much = xcalloc(1 << 20, 1);
    memset(much, ' ', 1 << 20);
    for (int i = 0; i < 40; i++)
        rpc_feed(p.r, much, 1 << 20);
    expect(&p, "", "16 MiB");
    expect(&p, "\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n", "\"id\":1,\"result\"");
    free(much);
    rpc_free(p.r);
}

static void t_open(void **state)
{
    struct peer p;
    char line[80];
    peer_open(&p);
    p.later = true;
    for (int i = 0; i <= RPC_OPEN_MAX; i++) {
        snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"a\"}\n", i);
        expect(&p, line, i == RPC_OPEN_MAX ? "-32000" : "");
    }
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\"}\n", "in use");
    json_t *seven = json_integer(7), *text = json_string("7");
    assert_false(rpc_drop(p.r, text));
    assert_true(rpc_reply(p.r, seven, json_object()));
    assert_false(rpc_reply(p.r, seven, json_object())); /* each only once */
    assert_false(rpc_fail(p.r, seven, RPC_INTERNAL, NULL, "twice"));
    json_decref(seven);
    json_decref(text);
    expect(&p, "", "\"id\":7,\"result\":{}");
    rpc_free(p.r);
}

static void t_asked(void **state)
{
    struct peer p;
    peer_open(&p);
    int64_t one = rpc_ask(p.r, "q", json_object()), two = rpc_ask(p.r, "q", json_object());
    rpc_forget(p.r, two);
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"no way\"}}\n",
           "\"id\":2,\"method\":\"q\"");
    assert_int_equal(p.answers, 100);
    assert_string_equal(p.why, "no way");
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n", "");
    expect(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", ""); /* a second time */
    assert_int_equal(p.answers, 100);
    assert_int_equal(one + two, 3);
    rpc_free(p.r);
}

static void t_clogged(void **state)
{
    struct peer p;
    peer_open(&p);
    char *line = xcalloc(2 << 20, 1);
    int n = snprintf(line, 100, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"k\":\"");
    memset(line + n, 'b', 1 << 20);
    strcpy(line + n + (1 << 20), "\"}}\n");
    int rounds = 0;
    while (!rpc_clogged(p.r) && rounds++ < 100)
        say(&p, line);
    size_t waiting;
    rpc_output(p.r, &waiting);
    assert_true(rounds < 80);
    assert_true(waiting > RPC_OUTPUT_MAX && waiting < RPC_OUTPUT_MAX + (8 << 20));
    check_note("disconnected after %d answers of 1 MiB", rounds);
    free(line);
    rpc_free(p.r);
}

/* ---- configuration of a client ----------------------------------------------------------------------- */

static char *edited(const char *host, const char *text, int *rc)
{
    struct err e = ERR_INIT;
    struct buf out;
    buf_init(&out, 1 << 20);
    *rc = install_edit(host, "/opt/holo run", text, strlen(text), &out, &e);
    char *got = xstrdup(*rc < 0 ? e.text : out.len ? out.data : "");
    buf_free(&out);
    return got;
}

/* Without the lines of the entry and its comma, the rest of the file is unchanged. */
static void t_edit(void **state)
{
    static const char *const files[] = {
        "",
        "{}",
        "{\"a\": 1.10, \"b\": [1, {\"mcpServers\": {}}]}\n",
        "{\n\t\"mcpServers\" : {\n\t\t\"x\": {\"command\": \"y\\\"}\"}\n\t},\n\t\"last\": 1e3\n}\n",
        "{\"mcpServers\": {}}",
        "{\"text\": \"mcpServers\", \"mcpServers\": { }, \"z\": null}",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int rc, again;
        char *got = edited("cursor", files[i], &rc);
        json_t *now = json_loads(got, JSON_REJECT_DUPLICATES, NULL);
        json_t *then = json_loads(*files[i] ? files[i] : "{}", 0, NULL);
        json_t *servers = json_object_get(now, "mcpServers"), *mine = json_object_get(servers, "holorun");
        if (rc || !mine)
            fail_msg("%s -> %s", files[i], got);
        assert_string_equal(json_string_value(json_object_get(mine, "command")), "/opt/holo run");
        char *twice = edited("cursor", got, &again);
        assert_int_equal(again, 1);
        json_object_del(servers, "holorun");
        if (!json_object_get(then, "mcpServers"))
            json_object_del(now, "mcpServers");
        assert_true(json_equal(now, then));
        const char *kept[] = {"1.10", "1e3", "\t\"mcpServers\" : {", "{ }"};
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(!strstr(files[i], kept[k]), !strstr(got, kept[k]));
        json_decref(now);
        json_decref(then);
        free(twice);
        free(got);
    }
    static const char *const refused[] = {"// mine\n{}", "[1]", "{\"mcpServers\": 1}",
                                          "{\"mcpServers\": {\"holorun\": {\"command\": \"old\"}}}"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int rc;
        free(edited("cursor", refused[i], &rc));
        assert_int_equal(rc, -1);
    }
    int rc;
    char *toml = edited("codex", "model = \"x\"", &rc);
    assert_int_equal(rc, 0);
    assert_non_null(strstr(
        toml, "model = \"x\"\n\n[mcp_servers.holorun]\ncommand = \"/opt/holo run\"\nargs = [\"mcp\"]\n"));
    free(edited("codex", toml, &rc));
    assert_int_equal(rc, 1);
    free(toml);
}

/* The file keeps its mode and its link, and a backup of the old content is made. */
static void t_write(void **state)
{
    struct xvfb x;
    struct err e = ERR_INIT;
    struct stat st;
    char *path;
    xvfb_folder(&x);
    setenv("HOME", x.dir, 1);
    assert_int_equal(install_write("gemini", "/usr/bin/holorun", &path, &e), 0); /* the file did not exist */
    free(path);
    char *real = xvfb_put(&x, "real.json", "{\"a\": 1}\n"), *link = xvfb_place(&x, ".claude.json");
    assert_int_equal(chmod(real, 0640), 0);
    assert_int_equal(symlink("real.json", link), 0);
    assert_int_equal(install_write("claude-code", "/usr/bin/holorun", &path, &e), 0);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(real, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    char *before = xasprintf("%s.before-holorun", real), *text;
    size_t len;
    assert_int_equal(file_read(before, 1 << 20, &text, &len, &e), 0);
    assert_string_equal(text, "{\"a\": 1}\n");
    free(path);
    assert_int_equal(install_write("claude-code", "/usr/bin/holorun", &path, &e), 1);
    free(path);
    assert_int_equal(install_write("emacs", "/usr/bin/holorun", &path, &e), -1);
    assert_non_null(strstr(e.text, "claude-code, codex"));
    free(path);
    free(text);
    free(before);
    free(real);
    free(link);
}

static const struct CMUnitTest tests[] = {
    CLAIM("lines are read the same in any division into pieces", t_pieces),
    CLAIM("an invalid message gets one error", t_refused),
    CLAIM("other spellings of a message are accepted", t_accepted),
    CLAIM("a batch is answered with one array after all its requests", t_batch),
    CLAIM("no character in an answer ends a line for any reader", t_one_line),
    CLAIM("a line without end has a memory limit", t_long_line),
    CLAIM("each request is answered once, and the number of open ones is limited", t_open),
    CLAIM("requests to the client are answered once, or are forgotten", t_asked),
    CLAIM("a client that does not read is disconnected", t_clogged),
    CLAIM("edits of a client's file keep everything else", t_edit),
    CLAIM("a client's file keeps its mode and its link", t_write),
};

CHECK_MAIN()
