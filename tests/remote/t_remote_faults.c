/* t_remote_faults.c - tests whole runs whose server or proxy fails at the second reply: it cuts, stalls,
 * sends half a JSON, is busy, redirects, never stops, or is replaced.
 *
 * A fault that ends a run gives one line with its exit code and without the key. The first action is not
 * repeated, and the run can be resumed when the server works again.
 */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "far_run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- one reply --------------------------------------------------------------------------------------- */

#define HALF      FAR_SAYS("{\\\"note")
#define HTML      "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
#define CHUNKED   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define TEXT      "and so on, and so forth, and what else there is to say of it, once more, "
#define LONG      TEXT TEXT TEXT TEXT TEXT TEXT TEXT TEXT
#define DELTA     "{\"choices\": [{\"delta\": {\"content\": \"" LONG LONG LONG LONG "\"}}]}"
#define ELSEWHERE "HTTP/1.1 307 Moved\r\nLocation: %s\r\nConnection: close\r\n\r\n"
#define PACKED                                                                                               \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"

static const struct fault {
    const char *reply, *says;
    int times, code; /* code 0: the run continues */
} faults[] = {
    /* a proxy that cuts: before the headers, after them, within the stream, once and permanently */
    {"CUT", NULL, 1, 0},
    {"CUT", "127.0.0.1", 9, ERR_ENV},
    {FAR_OK "CUT", NULL, 1, 0},
    {FAR_OK HALF "CUT", NULL, 1, 0},
    {CHUNKED "20\r\ndata: {\"choices\": [{\"delta\": {\"CUT", NULL, 1, 0},
    {FAR_OK HALF "CUT", "the stream ended in the middle of a reply", 9, ERR_ENV},
    /* one that stalls: before the first byte, within the stream */
    {"SILENCE", "nothing received for", 9, ERR_ENV},
    {FAR_OK HALF "STALL", "nothing more received for", 9, ERR_ENV},
    /* half a JSON: an event, a whole reply, one shorter than its Content-Length */
    {FAR_OK "data: {\"choices\": [{\"del\n\n", "an event that is not JSON", 1, ERR_MODEL},
    {FAR_JSON "{\"choices\": [{\"mess", "the JSON ends too early", 1, ERR_ENV},
    {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{\"choices\": [CUT",
     NULL, 1, 0},
    /* busy or broken for a moment */
    {FAR_ERROR("500 Oops", "it fell over"), NULL, 1, 0},
    {FAR_ERROR("529 Busy", "Overloaded"), NULL, 1, 0},
    {FAR_JSON "{\"detail\": \"Internal Server Error\"}", NULL, 1, 0},
    {FAR_OK HALF "data: {\"error\": {\"message\": \"out of memory\", \"code\": 500}}\n\n", NULL, 1, 0},
    /* permanently */
    {"HTTP/1.1 429 Slow\r\nRetry-After: 0.2\r\nConnection: close\r\n\r\n", NULL, 1, 0},
    {FAR_ERROR("429 Slow", "no more today"), "rate limited (429): no more today", 9, ERR_ENV},
    {FAR_ERROR("500 Oops", "it fell over"), "server error (500): it fell over", 1, ERR_ENV},
    {FAR_ERROR("401 No", FAR_KEY " has no credit"), "key refused (401): {{KEY}}", 1, ERR_ENV},
    {FAR_OK "data: {\"error\": \"" FAR_KEY " has no credit\"}\n\n", "quota used up: {{KEY}}", 1, ERR_ENV},
    /* other content: compressed, not HTTP, a page */
    {PACKED "\x1f\x8b\x08", "something other than a reply, beginning with: ...", 1, ERR_ENV},
    {"not HTTP at all", "127.0.0.1", 9, ERR_ENV},
    {HTML "<!DOCTYPE html><title>Sign in</title>", "beginning with: <!DOCTYPE html>", 1, ERR_ENV},
};

/* Counts lines on stderr except warnings. */
static int error_lines(const char *err)
{
    int n = 0;
    for (const char *line = err; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        n += strncmp(line, "holorun: warning: ", 18) != 0;
    return n;
}

static void fail_at(const struct far_run *f, const char *when)
{
    fail_msg("'%.80s'%s: %d: %s%s; %d presses, %d keys", f->fault, when, f->o.code, f->o.out, f->o.err,
             far_run_presses((struct far_run *)(uintptr_t)f), far_run_keys((struct far_run *)(uintptr_t)f));
}

static void check_done(struct far_run *f, const char *when)
{
    if (f->o.code || strcmp(f->o.out, "Done.\n") != 0 || far_run_presses(f) != 1 || far_run_keys(f) != 3)
        fail_at(f, when);
}

/* Checks that the run ended with the code and one line, then resumes it. */
static void check_broken(struct far_run *f, const char *profile, int code, const char *says)
{
    if (f->o.code != code || !check_count(f->o.err, says) || check_count(f->o.err, FAR_KEY) ||
        error_lines(f->o.err) != 1 || far_run_presses(f) != 1 || far_run_keys(f))
        fail_at(f, "");
    f->times = 0;
    far_run_resume(f, profile);
    check_done(f, ", resumed");
}

static void check_fault(struct far_run *f, const char *profile, const struct fault *fault)
{
    f->fault = fault->reply;
    f->times = fault->times;
    far_run(f, profile);
    if (fault->code)
        check_broken(f, profile, fault->code, fault->says);
    else
        check_done(f, "");
}

/* Returns whether a file of the runs contains the key. */
static bool key_was_kept(const struct far_run *f)
{
    char *command = xasprintf("grep -rqaF '%s' '%s'", FAR_KEY, f->runs);
    bool kept = system(command) == 0;
    free(command);
    return kept;
}

static void t_faults(void **state)
{
    struct far_run f;
    far_run_open(&f);
    char *once = xvfb_put(&f.stage.x, "p.json", "{\"tries\": 1}"),
         *twice = xvfb_put(&f.stage.x, "q.json", "{\"tries\": 2, \"backoff_s\": 0.01}"),
         *hasty = xvfb_put(&f.stage.x, "r.json", "{\"tries\": 1, \"first_byte_s\": 1, \"idle_s\": 1}");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        bool waits = faults[i].code && check_count(faults[i].says, " for");
        check_fault(&f, waits ? hasty : faults[i].code ? once : twice, &faults[i]);
    }
    assert_false(key_was_kept(&f));
    check_note("%zu faults", sizeof faults / sizeof *faults);
    free(once);
    free(twice);
    free(hasty);
    far_run_close(&f);
}

/* ---- too much ------------------------------------------------------------------------------------------ */

/* Returns the maximum memory of ended children in MiB. */
static long largest_child(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return u.ru_maxrss >> 10;
}

static char *pack_nothing(const struct far_run *f)
{
    char *path = xvfb_place(&f->stage.x, "bomb.gz");
    char *command = xasprintf("head -c 100M /dev/zero | gzip -1 > '%s'", path);
    if (system(command))
        fail_msg("no gzip");
    free(command);
    return path;
}

/* A gigabyte as a stream, as an error, as headers; 100 MiB compressed in one reply of 450 KiB. */
static void t_endless(void **state)
{
    static const struct fault too_much[] = {
        {FAR_OK "ENDLESSdata: " DELTA "\n\n", "sent more than 64 MiB in one reply", 1, ERR_ENV},
        {"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\nENDLESSno", "sent more than 64 MiB", 1, ERR_ENV},
        {"HTTP/1.1 200 OK\r\nENDLESSX-More: and more\r\n", "KiB of headers", 1, ERR_ENV},
    };
    struct far_run f;
    far_run_open(&f);
    char *once = xvfb_put(&f.stage.x, "p.json", "{\"tries\": 1}"), *bomb = pack_nothing(&f),
         *packed = xasprintf(PACKED "FILE %s", bomb);
    for (size_t i = 0; i < sizeof too_much / sizeof *too_much; i++) {
        f.server.endless = 0;
        check_fault(&f, once, &too_much[i]);
        assert_true(f.server.endless < (size_t)100 << 20);
    }
    check_fault(&f, once, &(struct fault){packed, "something other than a reply", 1, ERR_ENV});
    check_note("at most %ld MiB of memory", largest_child());
    assert_true(largest_child() < 400);
    free(packed);
    free(bomb);
    free(once);
    far_run_close(&f);
}

/* --max-time includes the model's time: during a reply, the list of models, and the last answer. */
static void t_late(void **state)
{
    static const char *const replies[] = {FAR_OK "STALL", FAR_OK FAR_SAYS("half") "STALL",
                                          "HTTP/1.1 200 OK\r\nX-More: STALL"};
    struct far_run f;
    far_run_open(&f);
    for (int lists = 0; lists < 2; lists++)
        for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
            struct far_turn turns[4];
            struct far_server s;
            for (int k = 0; k < 4; k++)
                turns[k] = (struct far_turn){replies[i], 0};
            far_open(&s, turns, 4);
            char *url = far_address(&s);
            int64_t start = clock_ns();
            program_run(&f.stage.x, &f.o,
                        WORDS("run", "Press Save", "--quiet", "--base-url", url, "--runs", f.runs,
                              "--no-report", "--max-time", "2", lists ? NULL : "-m", "tiny"));
            double seconds = clock_ms_since(start) / 1000;
            if (f.o.code != ERR_TIME || seconds > 12)
                fail_msg("%zu: %d after %.1f s: %s", i, f.o.code, seconds, f.o.err);
            check_note("%.1f s: %.100s", seconds, f.o.err);
            free(url);
            far_close(&s);
        }
    far_run_close(&f);
}

/* ---- other servers --------------------------------------------------------------------------------------- */

static char *any_reply(void *arg, int n, const char *request)
{
    return far_stream("I should not have been asked.");
}

/* A redirect is not followed, so the other server gets neither key nor images. */
static void t_redirect(void **state)
{
    struct far_run f;
    struct far_server other;
    far_run_open(&f);
    far_open_with(&other, any_reply, NULL);
    char *once = xvfb_put(&f.stage.x, "p.json", "{\"tries\": 1}"), *url = far_address(&other),
         *moved = xasprintf(ELSEWHERE, url),
         *says = xasprintf("moved (307): %s; pass that address to --base-url", url);
    check_fault(&f, once, &(struct fault){moved, says, 1, ERR_ENV});
    assert_int_equal(other.served, 0);
    far_close(&other);
    free(says);
    free(moved);
    free(url);
    free(once);
    far_run_close(&f);
}

/* The server is gone; the run is resumed with one at another address. */
static void t_gone(void **state)
{
    struct far_run f;
    far_run_open(&f);
    char *once = xvfb_put(&f.stage.x, "p.json", "{\"tries\": 1}"), *well = f.url;
    f.fault = "CUT";
    f.times = 1;
    far_run(&f, once);
    program_run(&f.stage.x, &f.o, WORDS("resume", "--quiet", "--no-report", "--runs", f.runs));
    ONE_LINE(&f.o, ERR_USAGE, "the model of that run was at http://127.0.0.1", "--provider");
    f.fault = "nobody listens";
    f.url = xasprintf("http://127.0.0.1:9/v1");
    far_run_resume(&f, once);
    assert_int_equal(f.o.code, ERR_ENV);
    assert_true(check_count(f.o.err, "127.0.0.1:9"));
    free(f.url);
    f.url = well;
    check_broken(&f, once, ERR_ENV, "127.0.0.1:9");
    free(once);
    far_run_close(&f);
}

/* ---- certificates ------------------------------------------------------------------------------------------ */

/* Starts openssl with a self-signed certificate for this host, or for another one. Returns its pid, or 0
 * without openssl. */
static pid_t serve_tls(const struct xvfb *x, int port, bool this_host)
{
    char *start = xasprintf(
        "cd '%s' && openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 2 -subj /CN=x "
        "-addext subjectAltName=%s 2>/dev/null && (openssl s_server -naccept 40 -key k.pem -cert c.pem -accept "
        "127.0.0.1:%d -www >/dev/null 2>&1 & echo $! > pid) && for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; "
        "openssl s_client -connect 127.0.0.1:%d </dev/null >/dev/null 2>&1 && break; done",
        x->dir, this_host ? "IP:127.0.0.1" : "DNS:elsewhere.example", port, port);
    char *path = xvfb_place(x, "pid"), *text = NULL;
    size_t len;
    pid_t pid = 0;
    if (!system("command -v openssl >/dev/null") && !system(start) &&
        !file_read(path, 100, &text, &len, NULL))
        pid = atoi(text);
    free(text);
    free(path);
    free(start);
    return pid;
}

static void ask_over_tls(const struct xvfb *x, struct outcome *o, const char *url, bool trusted)
{
    char *ca = xvfb_place(x, "c.pem"), *text = xasprintf("{\"tries\": 1, \"ca_file\": \"%s\"}", ca),
         *trusting = xvfb_put(x, "trusting.json", text), *plain = xvfb_put(x, "plain.json", "{\"tries\": 1}");
    program_run(x, o, WORDS("ask", "What?", "--base-url", url, "--profile", trusted ? trusting : plain));
    free(plain);
    free(trusting);
    free(text);
    free(ca);
}

static void t_certificate(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    for (int this_host = 0; this_host < 2; this_host++) {
        int port = 20000 + (getpid() * 2 + this_host) % 20000;
        pid_t pid = serve_tls(&x, port, this_host);
        char *url = xasprintf("https://127.0.0.1:%d/v1", port);
        if (!pid)
            skip();
        ask_over_tls(&x, &o, url, false);
        ONE_LINE(&o, ERR_ENV, "certificate verification failed");
        ask_over_tls(&x, &o, url, true);
        if (this_host) /* it returns a page instead of a list of models */
            ONE_LINE(&o, ERR_MODEL, "lists no models");
        else
            ONE_LINE(&o, ERR_ENV, "certificate verification failed", "127.0.0.1");
        kill(pid, SIGTERM);
        free(url);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("each fault is one line with its exit code; no action is repeated, the run can be resumed",
          t_faults),
    CLAIM("a reply that never ends is abandoned within the memory limit", t_endless),
    CLAIM("--max-time ends a run whose endpoint begins a reply and then stalls", t_late),
    CLAIM("a redirect is reported and not followed", t_redirect),
    CLAIM("a run is resumed after its server was gone", t_gone),
    CLAIM("a certificate of an unknown authority or another host is refused", t_certificate),
};

CHECK_MAIN()
