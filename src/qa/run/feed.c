/* feed.c - runs tests on request of another program, such as a trainer, over stdin and stdout.
 *
 * Requests are lines on stdin, answers lines on stdout; both are JSON objects:
 *
 *     {"test": "log-in", "sample": 2}
 *     {"test": "log-in", "sample": 2, "outcome": "passed", "ci": "passed", "seconds": 3.1, "steps": 4,
 *      "dir": "OUT/17"}
 *     {"error": "no such test", "test": "logn-in"}
 *     {"weights": "/models/step-7"}
 *     {"weights": "/models/step-7", "version": 8}
 *
 * The program writes a request when a worker is free; answers come in the order in which tests end. Each test
 * has its own directory with results.json and the run, which the program may move or remove.
 *
 * "weights" replaces the model by another model directory, for trainers: it waits until running tests have
 * ended, and later requests use the new model. If that cannot be opened, the old one remains, and the answer
 * has the error. */
#include "qa/run/workers.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"
#include "base/json.h"
#include "base/lock.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REQUEST_MAX = 64 << 10, LOOK_MS = 100, SAMPLE_MAX = 1 << 20 };

struct feed {
    const struct results *head; /* suite properties for the results of each test */
    pthread_mutex_t in, out;    /* locks for stdin and stdout */
    struct buf waiting;         /* bytes of stdin up to an incomplete line */
    int number;                 /* of the last request */
    int64_t start;
    int running; /* running tests; protected by `count` */
    pthread_mutex_t count;
    pthread_cond_t ended;
    int version; /* version of the weights, from 1; protected by `in` */
    int (*reload)(void *arg, const char *dir, struct err *e);
    void *arg;
};

struct feed *feed_open(const struct results *head, int (*reload)(void *arg, const char *dir, struct err *e),
                       void *arg)
{
    struct feed *f = xcalloc(1, sizeof *f);
    f->head = head;
    f->start = clock_ns();
    f->version = 1;
    f->reload = reload;
    f->arg = arg;
    pthread_mutex_init(&f->count, NULL);
    pthread_cond_init(&f->ended, NULL);
    pthread_mutex_init(&f->in, NULL);
    pthread_mutex_init(&f->out, NULL);
    buf_init(&f->waiting, REQUEST_MAX);
    return f;
}

void feed_close(struct feed *f)
{
    if (!f)
        return;
    buf_free(&f->waiting);
    pthread_mutex_destroy(&f->in);
    pthread_mutex_destroy(&f->out);
    pthread_mutex_destroy(&f->count);
    pthread_cond_destroy(&f->ended);
    free(f);
}

/* Returns the next line of stdin; NULL: end of input, or the suite was stopped. */
static json_t *next_request(struct feed *f)
{
    char *end, part[4096];
    while (!(end = f->waiting.len ? memchr(f->waiting.data, '\n', f->waiting.len) : NULL)) {
        struct pollfd p = {STDIN_FILENO, POLLIN, 0};
        if (flag_up(screen_stop_flag(NULL)))
            return NULL;
        if (poll(&p, 1, LOOK_MS) <= 0)
            continue;
        ssize_t n = read(STDIN_FILENO, part, sizeof part);
        if (n <= 0 || buf_put(&f->waiting, part, (size_t)n))
            return NULL;
    }
    json_t *request = json_loadb(f->waiting.data, (size_t)(end - f->waiting.data), 0, NULL);
    struct buf rest;
    buf_init(&rest, REQUEST_MAX);
    buf_put(&rest, end + 1, f->waiting.len - (size_t)(end + 1 - f->waiting.data));
    buf_free(&f->waiting);
    f->waiting = rest;
    return request ? request : json_null();
}

static void answer(struct feed *f, json_t *line)
{
    pthread_mutex_lock(&f->out);
    json_print(line, stdout, JSON_COMPACT);
    fputc('\n', stdout);
    fflush(stdout);
    pthread_mutex_unlock(&f->out);
    json_decref(line);
}

static const struct test *find_test(const struct suite *s, const char *id)
{
    for (int i = 0; id && i < s->n; i++)
        if (s->tests[i].selected && !strcmp(s->tests[i].id, id))
            return &s->tests[i];
    return NULL;
}

static void count_running(struct feed *f, int by)
{
    LOCKED(&f->count);
    f->running += by;
    pthread_cond_broadcast(&f->ended);
}

static void await_ended(struct feed *f)
{
    LOCKED(&f->count);
    while (f->running)
        pthread_cond_wait(&f->ended, &f->count);
}

/* Replaces the model. The caller holds the lock of requests, so that no test starts meanwhile. */
static void exchange_weights(struct feed *f, const char *dir)
{
    struct err e = ERR_INIT;
    await_ended(f);
    if (*dir != '/')
        err_set(&e, ERR_USAGE, "'weights' must be the absolute path of a model directory");
    else if (f->reload(f->arg, dir, &e) == 0)
        f->version++;
    answer(f, e.kind ? json_pack("{s:s, s:s}", "error", e.text, "weights", dir)
                     : json_pack("{s:s, s:i}", "weights", dir, "version", f->version));
}

/* Returns the next request for a test, which then counts as running. */
static json_t *next_test(struct feed *f, int *number)
{
    json_t *request;
    const char *dir;
    LOCKED(&f->in);
    while ((request = next_request(f)) && (dir = json_string_value(json_object_get(request, "weights")))) {
        exchange_weights(f, dir);
        json_decref(request);
    }
    *number = f->number += request != NULL;
    if (request)
        count_running(f, 1);
    return request;
}

bool feed_next(struct feed *f, struct feed_request *out)
{
    int number;
    for (;;) {
        json_t *request = next_test(f, &number);
        if (!request)
            return false;
        const char *id = json_string_value(json_object_get(request, "test"));
        json_int_t sample = json_integer_value(json_object_get(request, "sample"));
        *out = (struct feed_request){find_test(f->head->suite, id), (uint64_t)sample, NULL};
        if (out->test && sample >= 0 && sample < SAMPLE_MAX)
            out->dir = xasprintf("%s/%d", f->head->dir, number);
        else
            answer(f, out->test ? json_pack("{s:s, s:I}", "error", "no number of a sample", "sample", sample)
                                : json_pack("{s:s, s:s*}", "error", "no such test", "test", id));
        json_decref(request);
        if (out->dir)
            return true;
        count_running(f, -1);
    }
}

void feed_done(struct feed *f, struct feed_request *q, struct result *r)
{
    struct err e = ERR_INIT;
    struct results one = *f->head;
    one.results = r;
    one.n = one.jobs = 1;
    one.complete = true;
    one.seconds = r->seconds;
    one.dir = q->dir;
    autofree char *path = xasprintf("%s/results.json", q->dir);
    json_t *line = json_pack("{s:s, s:I}", "test", q->test->id, "sample", (json_int_t)q->sample);
    if (dir_make(q->dir, &e) || report_save(REPORT_JSON, &one, path, &e))
        json_object_set_new(line, "error", json_string(e.text));
    else
        json_object_update_new(line,
                               json_pack("{s:s, s:s, s:f, s:i, s:s}", "outcome", outcome_name(r->outcome),
                                         "ci", ci_name(results_ci(&one, r)), "seconds", r->seconds, "steps",
                                         r->n ? r->attempts[r->n - 1].steps : 0, "dir", q->dir));
    answer(f, line);
    count_running(f, -1);
    free(q->dir);
    one.results = NULL;
    struct results row = {.results = xcalloc(1, sizeof *r), .n = 1};
    row.results[0] = *r;
    results_free(&row);
}
