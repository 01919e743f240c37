/* t_remote_program.c - tests the program with an endpoint: doctor, questions, evaluation sets and
 * calibration; a whole run on a display; where the key is stored, and which sockets are open.
 */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "far_run.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY FAR_KEY

/* ---- questions ---------------------------------------------------------------------------------------- */

static int pictures_in(const char *request)
{
    int n = 0;
    for (; (request = strstr(request, "\"image_url\":{")); request++)
        n++;
    return n;
}

/* A server with limits: two images, only structured_outputs, a thinking switch, no cache. */
static char *habits(void *arg, int n, const char *request)
{
    if (check_count(request, "GET /v1/models"))
        return xstrdup(FAR_JSON "{\"data\": [{\"id\": \"tiny\"}]}");
    if (check_count(request, "GET /version"))
        return xstrdup(FAR_JSON "{\"version\": \"0.11.2\"}");
    if (check_count(request, "GET /props")) /* a page for every path */
        return xstrdup(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>Hm</html>");
    if (check_count(request, "GET "))
        return xstrdup(FAR_ERROR("404 Not Found", "no"));
    if (pictures_in(request) > 2)
        return xstrdup(FAR_ERROR("400 Bad Request", "At most 2 image(s) may be provided"));
    if (check_count(request, "response_format"))
        return xstrdup(FAR_ERROR("400 Bad Request", "unknown response_format"));
    if (check_count(request, "\"enable_thinking\":true"))
        return xstrdup(FAR_OK
                       "data: {\"choices\": [{\"delta\": {\"reasoning\": \"hm\"}}]}\n\n" FAR_STOP FAR_DONE);
    if (check_count(request, "structured_outputs"))
        return far_stream(check_count(request, "brindle-41") ? "{\"zq\": \"brindle-41\"}"
                                                             : "{\"x\": 500, \"y\": 500}");
    return far_stream("1 2 3");
}

static void put_picture(const struct xvfb *x)
{
    struct image im = {0};
    struct err e = ERR_INIT;
    char *path = xvfb_place(x, "a.png");
    if (image_alloc(&im, 640, 480, &e) || image_write_png(&im, path, &e))
        fail_msg("%s", e.text);
    image_free(&im);
    free(path);
}

static void t_questions(void **state)
{
    struct far_server s;
    struct xvfb x;
    OUTCOME(o);
    struct stat st;
    xvfb_folder(&x);
    far_open_with(&s, habits, NULL);
    put_picture(&x);
    char *url = far_address(&s), *picture = xvfb_place(&x, "a.png"), *state_dir = xvfb_place(&x, "state");
    char *set = xvfb_put(&x, "set.jsonl",
                         "{\"image\": \"a.png\", \"instruction\": \"Save\", \"box\": [300, 200, 340, 260]}\n"
                         "{\"image\": \"a.png\", \"instruction\": \"Quit\", \"box\": [0, 0, 9, 9]}\n");
    setenv("XDG_STATE_HOME", state_dir, 1);
    program_run(&x, &o, WORDS("doctor", "--base-url", url));
    static const char *const rows[] = {"vLLM; model tiny",
                                       "constraint        structured_outputs",
                                       "thinking          enable_thinking",
                                       "seed              repeats",
                                       "80 of 100 when a prompt is repeated",
                                       "2 in a request",
                                       "none of 8 answers in dialect holo3"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!check_count(o.out, rows[i]))
            fail_msg("%s: %s%s", rows[i], o.out, o.err);
    if (check_count(o.out, " 0.0 tokens/s") || check_count(o.out, "-1 ms"))
        fail_msg("a speed that was not measured: %s", o.out);
    assert_int_equal(o.code, 0);
    const char *kept = strstr(o.out, state_dir);
    assert_non_null(kept);
    char *path = xasprintf("%.*s", (int)strcspn(kept, "\n"), kept);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    int asked = s.served;
    program_run(&x, &o, WORDS("ground", picture, "Save", "--base-url", url));
    assert_string_equal(o.out, "320 240\n");
    assert_int_equal(s.served, asked + 2); /* the list of models, and no option refused before */
    program_run(&x, &o, WORDS("ask", "What?", "--base-url", url, "--json"));
    assert_true(check_count(o.out, "\"answer\": \"1 2 3\""));
    program_run(&x, &o, WORDS("eval", set, "--base-url", url, "--json", "-q"));
    assert_int_equal(o.code, 0);
    assert_true(check_count(o.out, "\"hits\":1"));
    program_run(
        &x, &o,
        WORDS("calibrate", "--base-url", url, "--targets", "8", "--no-steps", "-q", "--dialect", "holo3"));
    assert_int_equal(o.code, ERR_UNSURE);
    unsetenv("XDG_STATE_HOME");
    far_close(&s);
    free(path);
    free(set);
    free(state_dir);
    free(picture);
    free(url);
}

/* A conversation from a file, with an image, a call, its result and tools; the reply is a call. */
static char *call_again(void *arg, int n, const char *request)
{
    return xstrdup(FAR_JSON
                   "{\"choices\": [{\"message\": {\"content\": null, \"tool_calls\": [{\"id\": \"c\", "
                   "\"function\": {\"name\": \"press\", \"arguments\": \"{\\\"x\\\": 9}\"}}]}}]}");
}

static void t_chat(void **state)
{
    struct far_server s;
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    far_open_with(&s, call_again, NULL);
    put_picture(&x);
    char *url = far_address(&s);
    char *chat = xvfb_put(
        &x, "chat.json",
        "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"content\": "
        "[{\"type\": \"image\", \"image\": \"a.png\"}, {\"type\": \"text\", \"text\": \"Press twice.\"}]}, "
        "{\"role\": \"assistant\", \"content\": \"Once.\", \"tool_calls\": [{\"function\": {\"name\": \"press\", "
        "\"arguments\": {\"x\": 3}}}]}, {\"role\": \"tool\", \"content\": \"done\"}], "
        "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"press\"}}]}");
    program_run(&x, &o, WORDS("ask", "--chat", chat, "--base-url", url, "-m", "tiny"));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "{\"name\": \"press\", \"arguments\": {\"x\": 9}}\n");
    json_t *sent = json_loads(strstr(s.requests[0], "\r\n\r\n") + 4, 0, NULL);
    json_t *messages = json_object_get(sent, "messages");
    json_t *url_part = json_array_get(json_object_get(json_array_get(messages, 1), "content"), 0);
    json_object_set_new(json_object_get(url_part, "image_url"), "url", json_string("..."));
    json_t *wanted = json_loads(
        "[{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"content\": [{\"type\": "
        "\"image_url\", \"image_url\": {\"url\": \"...\"}}, {\"type\": \"text\", \"text\": \"Press twice.\"}]}, "
        "{\"role\": \"assistant\", \"content\": \"Once.\", \"tool_calls\": [{\"id\": \"call_2_0\", \"type\": "
        "\"function\", \"function\": {\"name\": \"press\", \"arguments\": \"{\\\"x\\\":3}\"}}]}, {\"role\": \"tool\", "
        "\"tool_call_id\": \"call_2_0\", \"content\": \"done\"}]",
        0, NULL);
    assert_true(json_equal(messages, wanted));
    assert_int_equal(json_array_size(json_object_get(sent, "tools")), 1);
    program_run(&x, &o, WORDS("ask", "--chat", chat, "--base-url", url, "-m", "tiny", "--api", "messages"));
    ONE_LINE(&o, ERR_USAGE, "own tools needs --api chat");
    json_decref(wanted);
    json_decref(sent);
    far_close(&s);
    free(chat);
    free(url);
}

/* ---- runs --------------------------------------------------------------------------------------------- */

/* Returns whether a file below the folder contains the text. */
static bool folder_holds(const char *dir, const char *text)
{
    char *command = xasprintf("grep -rqaF '%s' '%s'", text, dir);
    int status = system(command);
    free(command);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void t_run(void **state)
{
    struct far_run f;
    struct record r;
    far_run_open(&f);
    char *profile = xvfb_put(&f.stage.x, "p.json", "{\"price\": {\"prompt\": 2, \"reply\": 10}}");
    far_run(&f, profile);
    if (f.o.code)
        fail_msg("%d: %s", f.o.code, f.o.err);
    assert_string_equal(f.o.out, "Done.\n");
    assert_int_equal(far_run_presses(&f), 1);
    assert_false(folder_holds(f.runs, KEY));
    assert_false(check_count(f.o.err, KEY));
    driven_read(&f.stage, &r);
    char *exchanges = xasprintf("%s/exchanges.jsonl", r.dir);
    assert_true(folder_holds(exchanges, "sha256:"));
    assert_false(folder_holds(exchanges, "base64,"));
    free(exchanges);
    assert_int_equal(field_int(driven_last(&r, "generate"), "server_prompt"), 100);
    assert_int_equal(field_int(driven_last(&r, "generate"), "server_cached"), 80);
    assert_int_equal(field_int(driven_last(&r, "generate"), "exchange"), 3);
    assert_int_equal(json_array_size(json_object_get(json_object_get(r.run, "model"), "without")), 2);

    /* The same run again from the record: no server, no key. */
    int served = f.server.served;
    char *recorded = xasprintf("recorded:%s", r.dir);
    stage_clear(&f.stage);
    program_run(&f.stage.x, &f.o,
                WORDS("run", "Press Save", "--quiet", "--base-url", recorded, "--runs", f.runs,
                      "--settle-min", "1", "--settle-quiet", "30"));
    assert_string_equal(f.o.out, "Done.\n");
    assert_int_equal(far_run_presses(&f), 1);
    assert_int_equal(f.server.served, served);
    free(recorded);
    record_free(&r);
    free(profile);
    far_run_close(&f);
}

/* The user vetoes the first step, takes another reply for the second screenshot, and later returns to it. */
static char *stepped(void *arg, int n, const char *request)
{
    static const char *const said[] = {CLICK(300, 300), CLICK(500, 500), CLICK(700, 700), TYPE("abc"),
                                       ANSWER("Done.")};
    return far_stream(said[n < 4 ? n : 4]);
}

static json_t *messages_of(const struct far_server *s, int i)
{
    json_t *body = json_loads(strstr(s->requests[i], "\r\n\r\n") + 4, 0, NULL),
           *list = json_incref(json_object_get(body, "messages"));
    json_decref(body);
    return list;
}

static void t_stepped(void **state)
{
    struct far_server s;
    DRIVEN(t, o);
    far_open_with(&s, stepped, NULL);
    char *url = far_address(&s), *runs = xvfb_place(&t.x, "runs");
    char *commands = xvfb_put(&t.x, "commands",
                              "veto not that one\nfork 1\ntake 1\nedit {\"x\": 40}\nrun\nrewind 2\nrun\n"),
         *how = xasprintf("--step=script:%s", commands);
    program_run(&t.x, &o,
                WORDS("run", "Press Save", how, "--base-url", url, "-m", "tiny", "--runs", runs,
                      "--no-report", "--settle-min", "1", "--settle-quiet", "30"));
    if (o.code || strcmp(o.out, "Done.\n") != 0)
        fail_msg("%d: %s", o.code, o.err);
    assert_int_equal(s.served, 5);
    json_t *second = messages_of(&s, 1), *fork = messages_of(&s, 2), *third = messages_of(&s, 3),
           *back = messages_of(&s, 4);
    assert_true(check_count(s.requests[1], "not that one"));
    assert_true(json_equal(second, fork) && json_equal(second, back));
    assert_int_equal(json_array_size(third), json_array_size(second) + 2);
    json_t *presses = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(presses), 1);
    assert_int_equal(field(presses, 0, "x"), 40);
    assert_int_equal(json_array_size(stage_events(&t, "key_press")), 0);
    json_decref(second);
    json_decref(fork);
    json_decref(third);
    json_decref(back);
    far_close(&s);
    free(how);
    free(commands);
    free(runs);
    free(url);
}

/* ---- the key, sockets ----------------------------------------------------------------------- */

static char *slow(void *arg, int n, const char *request)
{
    clock_sleep_ms(1500);
    return far_stream(arg);
}

static char *proc_file(pid_t pid, const char *name)
{
    char *path = xasprintf("/proc/%d/%s", (int)pid, name), *text = NULL;
    size_t len = 0;
    FILE *file = fopen(path, "r");
    text = xcalloc(1 << 20, 1);
    len = file ? fread(text, 1, (1 << 20) - 1, file) : 0;
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] ? text[i] : ' ';
    if (file)
        fclose(file);
    free(path);
    return text;
}

/* The environment variable is overwritten in the process list, and core dumps are disabled. */
static void t_key(void **state)
{
    struct far_server s;
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    far_open_with(&s, slow, (void *)(uintptr_t) "fine");
    char *url = far_address(&s);
    setenv("FAR_KEY", KEY, 1);
    pid_t pid =
        program_start(&x, WORDS("ask", "What?", "--base-url", url, "-m", "tiny", "--key", "env:FAR_KEY"));
    unsetenv("FAR_KEY");
    for (int i = 0; i < 1000 && !__atomic_load_n(&s.served, __ATOMIC_RELAXED); i++)
        clock_sleep_ms(10);
    char *line = proc_file(pid, "cmdline"), *environ_now = proc_file(pid, "environ"),
         *limits = proc_file(pid, "limits");
    assert_true(check_count(line, "ask"));
    assert_true(check_count(limits, "Max core file size        0                    0  "));
    assert_false(check_count(line, KEY));
    assert_false(check_count(environ_now, KEY));
    program_finish(&x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_true(check_count(s.requests[0], "Authorization: Bearer " KEY "\r\n"));
    free(line);
    free(limits);
    free(environ_now);
    free(url);
    far_close(&s);
}

/* Under strace: without --base-url the only sockets are those of the display and of the local bus. */
static void t_sockets(void **state)
{
    struct stage t;
    driven_open(&t);
    char *script = xvfb_put(&t.x, "script", CLICK(300, 300) ANSWER("Done.")),
         *runs = xvfb_place(&t.x, "runs"), *calls = xvfb_place(&t.x, "calls");
    char *command = xasprintf(
        "strace -f -qq -e trace=socket,connect,sendto -o '%s' '%s' run 'Press Save' --quiet --fake '%s' "
        "--runs '%s' --settle-min 1 --settle-quiet 30 >/dev/null 2>&1",
        calls, program_path(), script, runs);
    size_t len;
    char *text = NULL;
    if (system("strace -qq -o /dev/null true 2>/dev/null") || system(command) ||
        file_read(calls, 64 << 20, &text, &len, NULL)) {
        stage_close(&t);
        skip();
    }
    assert_true(check_count(text, "AF_UNIX"));
    static const char *const families[] = {"AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (check_count(text, families[i]))
            fail_msg("%.200s", strstr(text, families[i]));
    free(text);
    free(command);
    free(calls);
    free(runs);
    free(script);
    stage_close(&t);
}

/* A server that takes 100 ms per reply, one at a time. */
static char *in_turn(void *arg, int n, const char *request)
{
    assert_non_null(strstr(request, "x-session-id: bench-"));
    clock_sleep_ms(100);
    return xstrdup(FAR_OK FAR_SAYS("wait") FAR_STOP FAR_USAGE FAR_DONE);
}

static void t_agents(void **state)
{
    struct far_server s;
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    far_open_with(&s, in_turn, NULL);
    char *url = far_address(&s), *line, *rest;
    program_run(&x, &o,
                WORDS("bench", "--base-url", url, "-m", "tiny", "--dialect", "holo3", "--bound", "0.65",
                      "--pause", "0", "--seconds", "1", "--agents", "32", "--json"));
    if (o.code)
        fail_msg("exit %d: %s", o.code, o.err);
    int good = -1, levels = 0, at_once = 0;
    for (rest = o.out; (line = strsep(&rest, "\n")) && *line; levels++) {
        json_t *row = json_loads(line, 0, NULL);
        const json_t *carries = json_object_get(row, "carries");
        if (carries)
            good = (int)json_integer_value(carries);
        else if (json_number_value(json_object_get(row, "p95_ms")) <= 650)
            at_once = (int)fmax(at_once, json_number_value(json_object_get(row, "agents")));
        json_decref(row);
    }
    assert_true(levels >= 2 && good == at_once && good <= 6); /* seven take 700 ms */
    check_note("carries %d agents", good);
    far_close(&s);
    free(url);
}

static const struct CMUnitTest tests[] = {
    CLAIM("doctor finds and stores the server's features, and questions use them", t_questions),
    CLAIM("a conversation from a file is continued at an endpoint, with its tools", t_chat),
    CLAIM("a run's exchanges are recorded without the key, and can be replayed", t_run),
    CLAIM("veto, fork, edit and rewind work with messages", t_stepped),
    CLAIM("the key is neither in the process list nor in a core dump", t_key),
    CLAIM("bench --base-url finds how many agents an endpoint serves within the time limit", t_agents),
    CLAIM("without an address no socket leaves the machine", t_sockets),
};

CHECK_MAIN()
