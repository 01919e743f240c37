/* t_remote_program.c - the program with a model behind an address: doctor, questions, sets and calibration;
 * whole runs on a display, with faults of the server; where the key is, and which sockets there are.
 */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "driven.h"
#include "far.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "sk-tests-0123456789abcdef"

static char *stream_of(const char *text)
{
    json_t *event = json_pack("{s:[{s:{s:s}}]}", "choices", "delta", "content", text);
    char *json = json_dumps(event, JSON_COMPACT),
         *all = xasprintf(FAR_OK "data: %s\n\n" FAR_STOP FAR_USAGE FAR_DONE, json);
    free(json);
    json_decref(event);
    return all;
}

static char *address(const struct far_server *s)
{
    return xasprintf("http://127.0.0.1:%d/v1", s->port);
}

static void folder_end(struct xvfb *x)
{
    char *command = xasprintf("rm -rf '%s'", x->dir);
    assert_int_equal(system(command), 0);
    free(command);
}

static bool has(const char *text, const char *what)
{
    return strstr(text, what) != NULL;
}

/* ---- questions ---------------------------------------------------------------------------------------- */

static int pictures_in(const char *request)
{
    int n = 0;
    for (; (request = strstr(request, "\"image_url\":{")); request++)
        n++;
    return n;
}

/* A server with habits: two pictures, structured_outputs alone, a switch of thinking, no cache. */
static char *habits(void *arg, int n, const char *request)
{
    (void)arg;
    (void)n;
    if (has(request, "GET /v1/models"))
        return xstrdup(FAR_JSON "{\"data\": [{\"id\": \"tiny\"}]}");
    if (has(request, "GET /version"))
        return xstrdup(FAR_JSON "{}");
    if (has(request, "GET "))
        return xstrdup(FAR_ERROR("404 Not Found", "no"));
    if (pictures_in(request) > 2)
        return xstrdup(FAR_ERROR("400 Bad Request", "At most 2 image(s) may be provided"));
    if (has(request, "response_format"))
        return xstrdup(FAR_ERROR("400 Bad Request", "unknown response_format"));
    if (has(request, "\"enable_thinking\":true"))
        return xstrdup(FAR_OK
                       "data: {\"choices\": [{\"delta\": {\"reasoning\": \"hm\"}}]}\n\n" FAR_STOP FAR_DONE);
    if (has(request, "structured_outputs"))
        return stream_of(has(request, "brindle-41") ? "{\"zq\": \"brindle-41\"}"
                                                    : "{\"x\": 500, \"y\": 500}");
    return stream_of("1 2 3");
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
    (void)state;
    struct far_server s;
    struct xvfb x;
    struct outcome o = {0};
    struct stat st;
    xvfb_folder(&x);
    far_open_with(&s, habits, NULL);
    put_picture(&x);
    char *url = address(&s), *picture = xvfb_place(&x, "a.png"), *state_dir = xvfb_place(&x, "state");
    char *set = xvfb_put(&x, "set.jsonl",
                         "{\"image\": \"a.png\", \"instruction\": \"Save\", \"box\": [300, 200, 340, 260]}\n"
                         "{\"image\": \"a.png\", \"instruction\": \"Quit\", \"box\": [0, 0, 9, 9]}\n");
    setenv("XDG_STATE_HOME", state_dir, 1);
    program_run(&x, &o, WORDS("doctor", "--base-url", url));
    static const char *const rows[] = {"vLLM; model tiny",
                                       "constraint        structured_outputs",
                                       "thinking          enable_thinking",
                                       "seed              repeats",
                                       "80 of 100 when a prompt comes again",
                                       "2 in a request",
                                       "none of 8 answers in dialect holo3"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!has(o.out, rows[i]))
            fail_msg("%s: %s%s", rows[i], o.out, o.err);
    assert_int_equal(o.code, 0);
    const char *kept = strstr(o.out, state_dir);
    assert_non_null(kept);
    char *path = xasprintf("%.*s", (int)strcspn(kept, "\n"), kept);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    int asked = s.served;
    program_run(&x, &o, WORDS("ground", picture, "Save", "--base-url", url));
    assert_string_equal(o.out, "320 240\n");
    assert_int_equal(s.served, asked + 2); /* the list of models, and no way that was refused before */
    program_run(&x, &o, WORDS("ask", "What?", "--base-url", url, "--json"));
    assert_true(has(o.out, "\"answer\": \"1 2 3\""));
    program_run(&x, &o, WORDS("eval", set, "--base-url", url, "--json", "-q"));
    assert_int_equal(o.code, 0);
    assert_true(has(o.out, "\"hits\":1"));
    program_run(
        &x, &o,
        WORDS("calibrate", "--base-url", url, "--targets", "8", "--no-steps", "-q", "--dialect", "holo3"));
    assert_int_equal(o.code, ERR_UNSURE);
    unsetenv("XDG_STATE_HOME");
    outcome_free(&o);
    far_close(&s);
    free(path);
    free(set);
    free(state_dir);
    free(picture);
    free(url);
    folder_end(&x);
}

/* ---- runs --------------------------------------------------------------------------------------------- */

struct play { /* replies in order; before reply `at`, faults that come first */
    const char *const *replies;
    const char *fault;
    int at, times, given, next;
};

static char *play(void *arg, int n, const char *request)
{
    struct play *p = arg;
    (void)n;
    (void)request;
    if (p->next == p->at && p->given < p->times) {
        p->given++;
        return xstrdup(p->fault);
    }
    return stream_of(p->replies[p->next++]);
}

static const char *const press_and_type[] = {CLICK(300, 300), TYPE("abc"), ANSWER("Done.")};

struct far_run {
    struct stage stage;
    struct far_server server;
    struct play play;
    struct outcome o;
    char *url, *key, *runs;
};

static void far_run_open(struct far_run *f, const char *fault, int at, int times)
{
    *f = (struct far_run){.play = {press_and_type, fault, at, times, 0, 0}};
    driven_open(&f->stage);
    far_open_with(&f->server, play, &f->play);
    f->url = address(&f->server);
    char *path = xvfb_put(&f->stage.x, "key", KEY "\n");
    f->key = xasprintf("file:%s", path);
    f->runs = xvfb_place(&f->stage.x, "runs");
    free(path);
}

static void far_run_close(struct far_run *f)
{
    outcome_free(&f->o);
    far_close(&f->server);
    free(f->url);
    free(f->key);
    free(f->runs);
    stage_close(&f->stage);
}

static void run_at(struct far_run *f, const char *url, const char *profile)
{
    program_run(&f->stage.x, &f->o,
                WORDS("run", "Press Save", "--quiet", "--base-url", url, "-m", "tiny", "--key", f->key,
                      "--runs", f->runs, "--no-report", "--settle-min", "1", "--settle-quiet", "30",
                      "--profile", profile));
}

static int presses(struct far_run *f)
{
    return (int)json_array_size(stage_events(&f->stage, "button_press"));
}

/* Whether any file below the folder holds the text. */
static bool folder_holds(const char *dir, const char *text)
{
    char *command = xasprintf("grep -rqaF '%s' '%s'", text, dir);
    int status = system(command);
    free(command);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void t_run(void **state)
{
    (void)state;
    struct far_run f;
    struct record r;
    far_run_open(&f, NULL, -1, 0);
    char *profile = xvfb_put(&f.stage.x, "p.json", "{\"price\": {\"prompt\": 2, \"reply\": 10}}");
    run_at(&f, f.url, profile);
    if (f.o.code)
        fail_msg("%d: %s", f.o.code, f.o.err);
    assert_string_equal(f.o.out, "Done.\n");
    assert_int_equal(presses(&f), 1);
    assert_false(folder_holds(f.runs, KEY));
    assert_false(has(f.o.err, KEY));
    driven_read(&f.stage, &r);
    char *exchanges = xasprintf("%s/exchanges.jsonl", r.dir);
    assert_true(folder_holds(exchanges, "sha256:"));
    assert_false(folder_holds(exchanges, "base64,"));
    free(exchanges);
    assert_int_equal(field_int(driven_last(&r, "generate"), "server_prompt"), 100);
    assert_int_equal(field_int(driven_last(&r, "generate"), "server_cached"), 80);
    assert_int_equal(field_int(driven_last(&r, "generate"), "exchange"), 3);
    assert_int_equal(json_array_size(json_object_get(json_object_get(r.run, "model"), "without")), 3);

    /* The same again from the record: no server, no key. */
    int served = f.server.served;
    char *recorded = xasprintf("recorded:%s", r.dir);
    stage_clear(&f.stage);
    program_run(&f.stage.x, &f.o,
                WORDS("run", "Press Save", "--quiet", "--base-url", recorded, "--runs", f.runs,
                      "--settle-min", "1", "--settle-quiet", "30"));
    assert_string_equal(f.o.out, "Done.\n");
    assert_int_equal(presses(&f), 1);
    assert_int_equal(f.server.served, served);
    free(recorded);
    record_free(&r);
    free(profile);
    far_run_close(&f);
}

/* What a server may do instead of the second reply.  Each ends the run in one line; nothing that was done
 * is done again, and the run goes on where it was. */
static const struct fault {
    const char *reply, *says;
    int times, code; /* 0: the run does not notice */
    bool resumed;    /* afterwards */
} faults[] = {
    {"SILENCE", "nothing came for", 3, ERR_ENV},
    {FAR_OK FAR_SAYS("{\\\"note") "STALL", "nothing more for", 3, ERR_ENV, true},
    {FAR_OK FAR_SAYS("{\\\"note") "CUT", NULL, 1, 0},
    {FAR_OK FAR_SAYS("{\\\"note") "CUT", "the stream ended in the middle of a reply", 5, ERR_ENV},
    {FAR_OK "data: {\"choices\": [{\"del\n\n", "an event that is not JSON", 1, ERR_MODEL, true},
    {FAR_JSON "{\"choices\": [{\"mess", "holds no message", 1, ERR_MODEL},
    {"HTTP/1.1 429 Slow\r\nRetry-After: 0.2\r\nConnection: close\r\n\r\n", NULL, 1, 0},
    {FAR_ERROR("429 Slow", "no more today"), "answers 429: no more today", 9, ERR_MODEL},
    {FAR_ERROR("500 Oops", "it fell over"), "answers 500: it fell over", 1, ERR_ENV},
    {"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.2:9/v1\r\nConnection: close\r\n\r\n",
     "sends elsewhere: give --base-url the address it means, http://127.0.0.2:9/v1", 1, ERR_ENV},
    {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"
     "\x1f\x8b\x08",
     "the stream ended in the middle of a reply", 5, ERR_ENV},
    {"not HTTP at all", "127.0.0.1", 5, ERR_ENV},
};

static void check_fault(struct far_run *f, const struct fault *fault, const char *profile)
{
    f->play = (struct play){press_and_type, fault->reply, 1, fault->times, 0, 0};
    stage_clear(&f->stage);
    run_at(f, f->url, profile);
    if (f->o.code != fault->code || (fault->says && !has(f->o.err, fault->says)) || has(f->o.err, KEY))
        fail_msg("'%.60s': %d: %s", fault->reply, f->o.code, f->o.err);
    assert_int_equal(presses(f), 1);
    if (!fault->resumed)
        return;
    f->play.times = 0;
    program_run(&f->stage.x, &f->o,
                WORDS("resume", "--quiet", "--no-report", "--runs", f->runs, "--base-url", f->url, "-m",
                      "tiny", "--key", f->key, "--profile", profile));
    if (f->o.code || strcmp(f->o.out, "Done.\n") != 0)
        fail_msg("'%.60s', resumed: %d: %s", fault->reply, f->o.code, f->o.err);
    assert_int_equal(presses(f), 1);
}

static void t_faults(void **state)
{
    (void)state;
    struct far_run f;
    far_run_open(&f, NULL, -1, 0);
    char *once = xvfb_put(&f.stage.x, "p.json", "{\"tries\": 1, \"first_byte_s\": 0.5, \"idle_s\": 0.5}");
    char *twice = xvfb_put(&f.stage.x, "q.json", "{\"tries\": 2}");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        check_fault(&f, &faults[i], faults[i].code ? once : twice);
    check_note("%zu faults", sizeof faults / sizeof *faults);
    free(once);
    free(twice);
    far_run_close(&f);
}

/* ---- the key, certificates, sockets ----------------------------------------------------------------------- */

static char *slow(void *arg, int n, const char *request)
{
    (void)n;
    (void)request;
    clock_sleep_ms(1500);
    return stream_of(arg);
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

/* An environment variable is overwritten where the process list shows it; nothing can be dumped. */
static void t_key(void **state)
{
    (void)state;
    struct far_server s;
    struct xvfb x;
    struct outcome o = {0};
    xvfb_folder(&x);
    far_open_with(&s, slow, (void *)(uintptr_t) "fine");
    char *url = address(&s);
    setenv("FAR_KEY", KEY, 1);
    pid_t pid =
        program_start(&x, WORDS("ask", "What?", "--base-url", url, "-m", "tiny", "--key", "env:FAR_KEY"));
    unsetenv("FAR_KEY");
    for (int i = 0; i < 1000 && !__atomic_load_n(&s.served, __ATOMIC_RELAXED); i++)
        clock_sleep_ms(10);
    char *line = proc_file(pid, "cmdline"), *environ_now = proc_file(pid, "environ");
    assert_true(has(line, "ask"));
    assert_false(has(line, KEY));
    assert_false(has(environ_now, KEY));
    program_finish(&x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_true(has(s.requests[0], "Authorization: Bearer " KEY "\r\n"));
    free(line);
    free(environ_now);
    free(url);
    outcome_free(&o);
    far_close(&s);
    folder_end(&x);
}

/* openssl serves a certificate that nobody has signed. */
static void t_certificate(void **state)
{
    (void)state;
    struct xvfb x;
    struct outcome o = {0};
    xvfb_folder(&x);
    int port = 20000 + getpid() % 20000;
    char *start = xasprintf(
        "cd '%s' && openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 2 -subj "
        "/CN=elsewhere.example 2>/dev/null && (openssl s_server -naccept 40 -key k.pem -cert c.pem -accept "
        "127.0.0.1:%d -www >/dev/null 2>&1 & echo $! > pid) && for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; "
        "openssl s_client -connect 127.0.0.1:%d </dev/null >/dev/null 2>&1 && break; done",
        x.dir, port, port);
    if (system("command -v openssl >/dev/null") || system(start)) {
        free(start);
        folder_end(&x);
        skip();
    }
    char *url = xasprintf("https://127.0.0.1:%d/v1", port), *stop = xasprintf("kill $(cat '%s/pid')", x.dir);
    program_run(&x, &o, WORDS("ask", "What?", "--base-url", url, "-m", "tiny"));
    assert_int_equal(system(stop), 0);
    ONE_LINE(&o, ERR_ENV, "its certificate was refused");
    free(start);
    free(stop);
    free(url);
    outcome_free(&o);
    folder_end(&x);
}

/* Under strace: without --base-url there is no socket but those of the display and of this machine's bus. */
static void t_sockets(void **state)
{
    (void)state;
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
    assert_true(has(text, "AF_UNIX"));
    static const char *const families[] = {"AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (has(text, families[i]))
            fail_msg("%.200s", strstr(text, families[i]));
    free(text);
    free(command);
    free(calls);
    free(runs);
    free(script);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("doctor finds out what a server can do, keeps it, and questions use it", t_questions),
    CLAIM("a run has its exchanges in the record, no key, and happens again from there", t_run),
    CLAIM("each fault is one line with its exit code; nothing is done twice, the run goes on", t_faults),
    CLAIM("the key is not in the process list", t_key),
    CLAIM("a certificate that nobody signed is refused", t_certificate),
    CLAIM("without an address no socket leaves the machine", t_sockets),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
