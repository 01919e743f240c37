/* t_hub.c - tests of pulling a model from a simulated hub with the routes of the real one: the file list,
 * files behind a redirect to another host, ranges, and errors.
 */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "checkpoint/find.h"
#include "checkpoint/hub.h"
#include "checkpoint/known.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPO   "Hcompany/Holo-3.1-0.8B"
#define FIRST  "1111111111111111111111111111111111111111"
#define SECOND "2222222222222222222222222222222222222222"

enum { WEIGHTS = 700001, LOG = 64 << 10 };

/* ---- the hub ------------------------------------------------------------------------------------- */

struct fault {
    int refuse;                                             /* status of the list without a token */
    int busy;                                               /* number of requests that first get 503 */
    long cut;                                               /* bytes of the weights per reply; 0: all */
    bool wrong, no_range, elsewhere, doubled, escape, huge; /* elsewhere: large files are at "localhost" */
    const char *commit;
};

struct hub_server {
    int fd, port;
    pthread_t thread;
    struct fault fault;
    char *weights, hash[65], log[LOG]; /* log: a line "PATH RANGE TOKEN HOST" per request */
    size_t logged;
};

static void say(int fd, const char *head, const char *body, size_t n)
{
    if (write(fd, head, strlen(head)) == (ssize_t)strlen(head) && n)
        while (n) {
            ssize_t w = send(fd, body, n, MSG_NOSIGNAL);
            if (w <= 0)
                break;
            body += w;
            n -= (size_t)w;
        }
}

static void say_list(const struct hub_server *s, int fd)
{
    char body[2048], head[256];
    const struct fault *f = &s->fault;
    int n = snprintf(
        body, sizeof body,
        "{\"id\": \"" REPO "\", \"sha\": \"%s\", \"siblings\": ["
        "{\"rfilename\": \"model.safetensors\", \"size\": %d, \"blobId\": \"0\", \"lfs\": {\"sha256\": \"%s\", "
        "\"size\": %lld, \"pointerSize\": 134}}, "
        "{\"rfilename\": \"%s\", \"size\": 3, \"blobId\": \"0967ef424bce6791893e9a57bb952f80fd536e93\"}, "
        "{\"rfilename\": \"%s\", \"size\": 6, \"blobId\": \"ce013625030ba8dba906f756967f9e9ca394464a\"}, "
        "{\"rfilename\": \"README.md\", \"size\": 6, \"blobId\": \"ce013625030ba8dba906f756967f9e9ca394464a\"}]}",
        f->commit, WEIGHTS, s->hash, f->huge ? 1LL << 41 : (long long)WEIGHTS,
        f->escape ? "../config.json" : "config.json",
        f->doubled ? "config.json" : "below/chat_template.jinja");
    snprintf(head, sizeof head,
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", n);
    say(fd, head, body, (size_t)n);
}

static void say_weights(const struct hub_server *s, int fd, long from)
{
    char head[256];
    long n = WEIGHTS - from, sent = s->fault.cut && s->fault.cut < n ? s->fault.cut : n;
    snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %ld\r\n\r\n",
             from ? "206 Partial Content" : "200 OK", n);
    char *copy = xmalloc((size_t)WEIGHTS, 1);
    memcpy(copy, s->weights, WEIGHTS);
    copy[WEIGHTS / 2] = (char)(copy[WEIGHTS / 2] ^ (s->fault.wrong ? 1 : 0));
    say(fd, head, copy + from, (size_t)sent);
    free(copy);
}

static void answer(struct hub_server *s, int fd, const char *request)
{
    struct fault *f = &s->fault;
    char path[512] = "", host[128] = "", head[512];
    long from = 0;
    const char *range = strstr(request, "Range: bytes="), *at = strstr(request, "\nHost: ");
    bool token = strstr(request, "Authorization: Bearer hf_sesame") != NULL;
    sscanf(request, "GET %511s", path);
    if (at)
        sscanf(at, "\nHost: %127[^:\r]", host);
    if (range && !f->no_range)
        from = atol(range + 13);
    s->logged += (size_t)snprintf(s->log + s->logged, LOG - s->logged, "%s %ld %s %s\n", path, from,
                                  token ? "token" : "-", host);
    if (f->busy > 0) {
        f->busy--;
        say(fd, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: 0.01\r\n\r\n", NULL, 0);
    } else if (f->refuse && !token) {
        snprintf(head, sizeof head, "HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n", f->refuse);
        say(fd, head, NULL, 0);
    } else if (!strcmp(path, "/api/models/" REPO "/revision/main?blobs=true")) {
        say_list(s, fd);
    } else if (strstr(path, "model.safetensors") && f->elsewhere && !strcmp(host, "127.0.0.1")) {
        snprintf(
            head, sizeof head,
            "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://localhost:%d/cdn/model.safetensors?sig=%0200d\r\n\r\n",
            s->port, 1);
        say(fd, head, NULL, 0);
    } else if (strstr(path, "model.safetensors")) {
        say_weights(s, fd, from);
    } else if (strstr(path, "config.json")) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "{}\n", 3);
    } else if (strstr(path, "below/chat_template.jinja")) {
        say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", "hello\n", 6);
    } else {
        say(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", NULL, 0);
    }
}

static void *serve(void *arg)
{
    struct hub_server *s = arg;
    char request[8192];
    int fd;
    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        size_t n = 0;
        ssize_t got;
        request[0] = 0;
        while (n < sizeof request - 1 && !strstr(request, "\r\n\r\n") &&
               (got = read(fd, request + n, sizeof request - 1 - n)) > 0)
            request[n += (size_t)got] = 0;
        if (n)
            answer(s, fd, request);
        close(fd);
    }
    return NULL;
}

static void hub_begin(struct hub_server *s, struct fault f)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    uint64_t seed = check_seed();
    *s = (struct hub_server){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .fault = f};
    s->fault.commit = f.commit ? f.commit : FIRST;
    s->weights = xmalloc(WEIGHTS, 1);
    for (int i = 0; i < WEIGHTS; i++)
        s->weights[i] = (char)(256 * check_random(&seed));
    sha256(s->weights, WEIGHTS, s->hash);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    getsockname(s->fd, (struct sockaddr *)&a, &len);
    s->port = ntohs(a.sin_port);
    pthread_create(&s->thread, NULL, serve, s);
    char url[64], place[PLACE_PATH];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", s->port);
    setenv("HF_ENDPOINT", url, 1);
    assert_non_null(mkdtemp(place_template(place)));
    setenv("HF_HOME", place, 1);
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_TOKEN_PATH");
}

static void hub_end(struct hub_server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    free(s->weights);
}

/* Pulls the model; returns its path, or NULL with *e. */
static char *pull(const char *key, struct err *e)
{
    const struct pull_options o = {.repo = REPO, .key = key, .quiet = true};
    *e = (struct err)ERR_INIT;
    struct hub *h = hub_open(&o, e);
    char *folder = h ? hub_pull(h, e) : NULL;
    hub_close(h);
    return folder;
}

static void assert_whole(const struct hub_server *s, const char *folder)
{
    static const char *const small[][2] = {{"config.json", "{}\n"}, {"below/chat_template.jinja", "hello\n"}};
    char *path = xasprintf("%s/model.safetensors", folder), *data;
    size_t len;
    struct stat st;
    assert_int_equal(file_read(path, WEIGHTS, &data, &len, NULL), 0);
    assert_int_equal(len, WEIGHTS);
    assert_memory_equal(data, s->weights, len);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    free(path);
    free(data);
    for (int i = 0; i < 2; i++) {
        path = xasprintf("%s/%s", folder, small[i][0]);
        assert_int_equal(file_read(path, 100, &data, &len, NULL), 0);
        assert_string_equal(data, small[i][1]);
        free(path);
        free(data);
    }
    path = xasprintf("%s/README.md", folder);
    assert_false(file_exists(path));
    free(path);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void t_whole(void **state)
{
    struct hub_server s;
    struct err e = ERR_INIT;
    hub_begin(&s, (struct fault){.elsewhere = true, .busy = 1});
    assert_null(model_find("holo3.1-0.8b", &e));
    assert_non_null(strstr(e.text, "run 'holorun pull holo3.1-0.8b'"));
    char *folder = pull(NULL, &e);
    if (!folder)
        fail_msg("%s", e.text);
    assert_whole(&s, folder);
    static const char *const names[] = {"holo3.1-0.8b", "HOLO3.1-0.8B", REPO, REPO "@main", REPO "@" FIRST};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *found = model_find(names[i], &e);
        if (!found)
            fail_msg("%s: %s", names[i], e.text);
        assert_string_equal(found, folder);
        free(found);
    }
    size_t before = s.logged;
    char *again = pull(NULL, &e); /* requests the file list only */
    assert_string_equal(again, folder);
    assert_int_equal(check_count(s.log + before, "\n"), 1);
    free(again);
    free(folder);
    hub_end(&s);
}

static void t_token(void **state)
{
    struct hub_server s;
    struct err e;
    hub_begin(&s, (struct fault){.elsewhere = true, .refuse = 401});
    assert_null(pull(NULL, &e));
    check_has(e.text, "(401; no token was given)", "--key file:PATH");
    setenv("HUB_TOKEN", "hf_sesame", 1);
    s.fault.refuse = 0; /* the token must not go to the other host */
    char *folder = pull("env:HUB_TOKEN", &e);
    if (!folder)
        fail_msg("%s", e.text);
    assert_whole(&s, folder);
    assert_null(strstr(s.log, "token localhost"));
    assert_int_equal(check_count(s.log, " - localhost"), 1);
    assert_true(check_count(s.log, "token 127.0.0.1") >= 4);
    free(folder);
    char *path = xasprintf("%s/token", getenv("HF_HOME")); /* as stored by other tools */
    assert_int_equal(file_write(path, "hf_sesame\n", 10, NULL), 0);
    s.fault.refuse = 403;
    assert_non_null(folder = pull(NULL, &e));
    free(folder);
    free(path);
    hub_end(&s);
}

static void t_cut(void **state)
{
    struct hub_server s;
    struct err e;
    hub_begin(&s, (struct fault){.cut = 300000});
    char *folder = pull(NULL, &e); /* retries after 1 s and after 2 s */
    if (!folder)
        fail_msg("%s", e.text);
    assert_whole(&s, folder);
    check_has(s.log, "model.safetensors 300000 ", "model.safetensors 600000 ");
    free(folder);
    hub_end(&s);
}

/* Writes a partial file, as an earlier pull would leave it. */
static void leave_part(const struct hub_server *s, size_t n, char flip)
{
    char *dir = xasprintf("%s/hub/models--Hcompany--Holo-3.1-0.8B/blobs", getenv("HF_HOME"));
    char *path = xasprintf("%s/%s.incomplete", dir, s->hash), *part = xmalloc(n, 1);
    memcpy(part, s->weights, n);
    part[n / 2] = (char)(part[n / 2] ^ flip);
    assert_int_equal(dir_make(dir, NULL), 0);
    assert_int_equal(file_write(path, part, n, NULL), 0);
    free(dir);
    free(path);
    free(part);
}

static void t_resume(void **state)
{
    static const struct {
        size_t n;
        char flip;
        bool no_range;
        const char *asks;
    } parts[] = {{1000, 0, false, "model.safetensors 1000 "},
                 {1000, 0, true, "model.safetensors 0 "},  /* the server ignores the range */
                 {1000, 1, false, "model.safetensors 0 "}, /* a part of another file: starts again */
                 {WEIGHTS, 0, false, NULL}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct hub_server s;
        struct err e;
        hub_begin(&s, (struct fault){.no_range = parts[i].no_range});
        leave_part(&s, parts[i].n, parts[i].flip);
        char *folder = pull(NULL, &e);
        if (!folder)
            fail_msg("part %zu: %s", i, e.text);
        assert_whole(&s, folder);
        if (parts[i].asks)
            assert_non_null(strstr(s.log, parts[i].asks));
        else
            assert_null(strstr(s.log, "resolve/" FIRST "/model.safetensors"));
        free(folder);
        hub_end(&s);
    }
}

static void t_refused(void **state)
{
    static const struct {
        struct fault f;
        const char *says;
    } faults[] = {{{.wrong = true}, "'model.safetensors' does not match the hub's list: its SHA-256 differs"},
                  {{.escape = true}, "lists a file '../config.json', whose name is not allowed"},
                  {{.doubled = true}, "lists 'config.json' twice"},
                  {{.huge = true}, "set HF_HOME to another directory"},
                  {{.refuse = 404}, "does not have '" REPO "' with revision 'main' (404)"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct hub_server s;
        struct err e;
        hub_begin(&s, faults[i].f);
        assert_null(pull(NULL, &e));
        if (!strstr(e.text, faults[i].says))
            fail_msg("'%s' does not say '%s'", e.text, faults[i].says);
        assert_int_equal(e.kind, ERR_ENV);
        check_note("%s", e.text);
        assert_null(known_pulled(REPO, &e)); /* an incomplete model is not listed */
        hub_end(&s);
    }
}

/* An unknown host name and a refused connection are retried once only; the message has a remedy. */
static void t_closed(void **state)
{
    static const char *const hubs[] = {"http://hub.invalid", "http://127.0.0.1:1"};
    struct hub_server s;
    struct err e;
    hub_begin(&s, (struct fault){0});
    for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++) {
        setenv("HF_ENDPOINT", hubs[i], 1);
        int64_t start = clock_ns();
        assert_null(pull(NULL, &e));
        assert_true(clock_ms_since(start) < 6000); /* five attempts would take 15 s */
        assert_int_equal(e.kind, ERR_ENV);
        check_has(e.text, hubs[i] + strlen("http://"), "HF_ENDPOINT", "--model");
        check_note("%s", e.text);
    }
    hub_end(&s);
}

static void t_full(void **state)
{
    struct hub_server s;
    struct err e;
    struct rlimit before, small = {100000, RLIM_INFINITY};
    hub_begin(&s, (struct fault){0});
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    assert_null(pull(NULL, &e));
    setrlimit(RLIMIT_FSIZE, &before);
    assert_non_null(strstr(e.text, "the downloaded part is kept, and the next pull continues it"));
    char *folder = pull(NULL, &e);
    assert_non_null(folder);
    assert_whole(&s, folder);
    assert_non_null(strstr(s.log, "model.safetensors 100000 "));
    free(folder);
    hub_end(&s);
}

static void t_moved(void **state)
{
    struct hub_server s;
    struct err e;
    hub_begin(&s, (struct fault){0});
    char *first = pull(NULL, &e), *second;
    assert_non_null(strstr(first, "/snapshots/" FIRST));
    s.fault.commit = SECOND;
    const struct pull_options o = {.repo = REPO, .quiet = true};
    struct hub *h = hub_open(&o, &e);
    assert_string_equal(hub_before(h), FIRST);
    assert_int_equal(hub_missing(h), 0); /* the files have not changed */
    second = hub_pull(h, &e);
    assert_non_null(strstr(second, "/snapshots/" SECOND));
    assert_whole(&s, second);
    assert_whole(&s, first); /* still available under its commit */
    hub_close(h);
    free(first);
    free(second);
    hub_end(&s);
}

/* An invalid address is not retried. */
static void t_address(void **state)
{
    static const char *const addresses[] = {"file:///tmp/hub", "ftp://127.0.0.1", "127.0.0.1:80", "https:/x"};
    char *before = getenv("HF_ENDPOINT") ? xstrdup(getenv("HF_ENDPOINT")) : NULL;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct err e;
        int64_t start = clock_ns();
        setenv("HF_ENDPOINT", addresses[i], 1);
        assert_null(pull(NULL, &e));
        assert_true(clock_ms_since(start) < 800);
        if (e.kind != ERR_USAGE || !strstr(e.text, "is not an address"))
            fail_msg("%s: %d %s", addresses[i], e.kind, e.text);
    }
    before ? setenv("HF_ENDPOINT", before, 1) : unsetenv("HF_ENDPOINT");
    free(before);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a model is pulled to the shared folder, found by its names, and not fetched twice", t_whole),
    CLAIM("a token goes to the hub and to no other host; without one the error has a remedy", t_token),
    CLAIM("a truncated transfer is continued at its end", t_cut),
    CLAIM("an older part is continued, or fetched again if it does not match", t_resume),
    CLAIM("a wrong hash, wrong names, a full disk or an unknown repository give one line and no model",
          t_refused),
    CLAIM("a hub that cannot be reached is tried twice, and the message has the remedy", t_closed),
    CLAIM("an address that is not HTTP is refused at once", t_address),
    CLAIM("nothing is lost if the disk becomes full", t_full),
    CLAIM("a branch that has moved is reported, and the older snapshot stays", t_moved),
};

CHECK_MAIN()
