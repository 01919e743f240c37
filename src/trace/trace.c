/* trace.c - writes the record of a run; see trace.h. */
#include "trace/trace.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "trace/frames.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENT_MAX = 1 << 20, HELD_MAX = 64 << 20, NAME_TRIES = 16 };

struct rows { /* a file of fixed-size rows */
    char *path;
    int fd; /* -1: not open */
    int64_t n;
};

struct trace {
    char *dir, *events_path;
    int events_fd; /* -1: not open */
    int64_t seq;
    struct rows tokens, logprobs, exchanges;
    struct frames *frames;
    struct buf line; /* the event being written */
    bool holds;
    struct buf held;  /* lines of events that are not written yet */
    int64_t held_seq; /* number of the first of them */
    struct err failure;
    void (*scrub)(const void *arg, struct buf *json);
    const void *scrub_arg;
    void (*listen)(void *arg, const char *json, size_t len);
    void *listen_arg;
};

char *trace_runs_dir(struct err *e)
{
    autofree char *state = file_place(PLACE_STATE, e);
    if (!state)
        return NULL;
    return xasprintf("%s/runs", state);
}

/* Creates the run's directory. The random part distinguishes runs that start in the same second. */
static char *make_run_dir(const char *runs, struct err *e)
{
    if (dir_make(runs, e))
        return NULL;
    for (int i = 0; i < NAME_TRIES; i++) {
        char stamp[20];
        uint32_t salt;
        clock_utc(stamp);
        if (getrandom(&salt, sizeof salt, 0) != sizeof salt)
            salt = (uint32_t)clock_ns();
        char *dir = xasprintf("%s/%s-%08x", runs, stamp, salt);
        if (!mkdir(dir, 0700))
            return dir;
        int why = errno;
        if (why != EEXIST) {
            err_set(e, ERR_ENV, "cannot create directory '%s': %s", dir, strerror(why));
            free(dir);
            return NULL;
        }
        free(dir);
    }
    err_set(e, ERR_ENV, "cannot create a run in '%s': no free name found", runs);
    return NULL;
}

struct trace *trace_open(const char *runs, struct err *e)
{
    char *standard = runs ? NULL : trace_runs_dir(e);
    if (!runs && !standard)
        return NULL;
    struct trace *t = xcalloc(1, sizeof *t);
    t->events_fd = t->tokens.fd = t->logprobs.fd = t->exchanges.fd = -1;
    buf_init(&t->line, EVENT_MAX);
    buf_init(&t->held, HELD_MAX);
    t->dir = make_run_dir(runs ? runs : standard, e);
    free(standard);
    if (!t->dir)
        goto failed;
    t->events_path = xasprintf("%s/events.jsonl", t->dir);
    t->tokens.path = xasprintf("%s/tokens.bin", t->dir);
    t->logprobs.path = xasprintf("%s/logprobs.bin", t->dir);
    t->exchanges.path = xasprintf("%s/exchanges.jsonl", t->dir);
    t->events_fd = file_append(t->events_path, e);
    if (t->events_fd < 0)
        goto failed;
    t->frames = frames_open(t->dir, e);
    if (!t->frames)
        goto failed;
    return t;
failed:
    trace_close(t, NULL);
    return NULL;
}

const char *trace_dir(const struct trace *t)
{
    return t->dir;
}

static void rows_close(struct rows *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->path);
}

int trace_close(struct trace *t, struct err *e)
{
    if (!t)
        return 0;
    bool reported = t->failure.kind != ERR_NONE;
    int rc = frames_close(t->frames, reported ? NULL : e) && !reported ? -1 : 0;
    if (t->events_fd >= 0)
        close(t->events_fd);
    rows_close(&t->tokens);
    rows_close(&t->logprobs);
    rows_close(&t->exchanges);
    buf_free(&t->line);
    buf_free(&t->held);
    free(t->dir);
    free(t->events_path);
    free(t);
    return rc;
}

/* Stores the first failure, with advice if the disk is full, and reports it. */
static int trace_fail(struct trace *t, const struct err *cause, struct err *e)
{
    if (t->failure.kind == ERR_NONE) {
        bool full = strstr(cause->text, strerror(ENOSPC)) || strstr(cause->text, strerror(EDQUOT)) ||
                    strstr(cause->text, strerror(EFBIG));
        err_set(&t->failure, ERR_ENV, "%s%s", cause->text,
                full ? "; free some space or choose another directory with --runs (suites: --out)" : "");
    }
    return err_set(e, t->failure.kind, "%s", t->failure.text);
}

static int failed_before(const struct trace *t, struct err *e)
{
    return t->failure.kind == ERR_NONE ? 0 : err_set(e, t->failure.kind, "%s", t->failure.text);
}

void trace_scrub(struct trace *t, void (*scrub)(const void *arg, struct buf *json), const void *arg)
{
    t->scrub = scrub;
    t->scrub_arg = arg;
}

void trace_listen(struct trace *t, void (*listen)(void *arg, const char *json, size_t len), void *arg)
{
    t->listen = listen;
    t->listen_arg = arg;
}

int trace_run_json(struct trace *t, const char *json, size_t len, struct err *e)
{
    struct err cause = ERR_INIT;
    struct buf text;
    buf_init(&text, len + EVENT_MAX);
    buf_put(&text, json, len);
    if (t->scrub)
        t->scrub(t->scrub_arg, &text);
    autofree char *path = xasprintf("%s/run.json", t->dir);
    /* Written even after an earlier failure, and twice: otherwise the file would say "running" forever. */
    int rc = file_write(path, text.data, text.len, &cause);
    if (rc)
        rc = file_write(path, text.data, text.len, NULL);
    buf_free(&text);
    return rc ? trace_fail(t, &cause, e) : failed_before(t, e);
}

static void put_key(struct trace *t, const char *key)
{
    buf_puts(&t->line, ", ");
    buf_put_json(&t->line, key, strlen(key));
    buf_puts(&t->line, ": ");
}

void trace_begin(struct trace *t, int step, const char *kind)
{
    char wall[28];
    clock_iso(wall);
    buf_clear(&t->line);
    buf_printf(
        &t->line,
        "{\"v\": 1, \"seq\": %lld, \"t_mono_ns\": %lld, \"t_wall\": \"%s\", \"step\": %d, \"kind\": \"%s\"",
        (long long)t->seq, (long long)clock_ns(), wall, step, kind);
}

void trace_text(struct trace *t, const char *key, const char *value)
{
    buf_put_member(&t->line, key, value);
}

void trace_int(struct trace *t, const char *key, int64_t value)
{
    put_key(t, key);
    buf_printf(&t->line, "%lld", (long long)value);
}

void trace_number(struct trace *t, const char *key, double value)
{
    put_key(t, key);
    if (isfinite(value))
        buf_printf(&t->line, "%.9g", value);
    else
        buf_puts(&t->line, "null");
}

void trace_bool(struct trace *t, const char *key, bool value)
{
    put_key(t, key);
    buf_puts(&t->line, value ? "true" : "false");
}

void trace_hash(struct trace *t, const char *key, uint64_t hash)
{
    put_key(t, key);
    buf_printf(&t->line, "\"%016llx\"", (unsigned long long)hash);
}

void trace_json(struct trace *t, const char *key, const char *json)
{
    put_key(t, key);
    buf_put_json_text(&t->line, json, strlen(json));
}

static int write_event(struct trace *t, const char *line, size_t len, struct err *e)
{
    struct err cause = ERR_INIT;
    if (file_write_all(t->events_fd, t->events_path, line, len, &cause))
        return trace_fail(t, &cause, e);
    if (t->listen)
        t->listen(t->listen_arg, line, len);
    return 0;
}

int trace_end(struct trace *t, struct err *e)
{
    buf_puts(&t->line, "}\n");
    if (t->scrub && !t->line.full)
        t->scrub(t->scrub_arg, &t->line);
    if (failed_before(t, e))
        return -1;
    if (t->line.full)
        return err_set(e, ERR_ENV, "cannot record an event of more than %d bytes", EVENT_MAX);
    t->seq++;
    if (!t->holds)
        return write_event(t, t->line.data, t->line.len, e);
    return buf_put(&t->held, t->line.data, t->line.len)
               ? err_set(e, ERR_ENV, "cannot record a turn of more than %d bytes", HELD_MAX)
               : 0;
}

void trace_hold(struct trace *t)
{
    t->holds = true;
    t->held_seq = t->seq;
}

int trace_release(struct trace *t, struct err *e)
{
    int rc = 0;
    t->holds = false;
    for (size_t at = 0, n; at < t->held.len && rc == 0; at += n) {
        n = (size_t)((const char *)memchr(t->held.data + at, '\n', t->held.len - at) - t->held.data) + 1 - at;
        rc = failed_before(t, e) || write_event(t, t->held.data + at, n, e) ? -1 : 0;
    }
    buf_clear(&t->held);
    return rc;
}

void trace_drop(struct trace *t)
{
    t->seq = t->holds ? t->held_seq : t->seq;
    t->holds = false;
    buf_clear(&t->held);
}

int trace_frame(struct trace *t, const struct image *im, uint64_t hash, int *number, struct err *e)
{
    struct err cause = ERR_INIT;
    *number = -1;
    if (failed_before(t, e))
        return -1;
    return frames_put(t->frames, im, hash, number, &cause) ? trace_fail(t, &cause, e) : 0;
}

static int put_rows(struct trace *t, struct rows *r, const void *data, size_t size, int64_t n, int64_t *at,
                    struct err *e)
{
    struct err cause = ERR_INIT;
    *at = r->n;
    if (failed_before(t, e))
        return -1;
    if (r->fd < 0 && (r->fd = file_append(r->path, &cause)) < 0)
        return trace_fail(t, &cause, e);
    if (file_write_all(r->fd, r->path, data, (size_t)n * size, &cause))
        return trace_fail(t, &cause, e);
    r->n += n;
    return 0;
}

int trace_tokens(struct trace *t, const int32_t *ids, int64_t n, int64_t *at, struct err *e)
{
    return put_rows(t, &t->tokens, ids, sizeof *ids, n, at, e);
}

int trace_logprobs(struct trace *t, const float *pairs, int64_t n, int64_t *at, struct err *e)
{
    return put_rows(t, &t->logprobs, pairs, 2 * sizeof *pairs, n, at, e);
}

int trace_exchange(struct trace *t, const char *json, size_t len, struct err *e)
{
    struct buf line;
    int64_t at;
    buf_init(&line, 2 * len + EVENT_MAX);
    buf_put_json_text(&line, json, len);
    if (t->scrub)
        t->scrub(t->scrub_arg, &line);
    buf_putc(&line, '\n');
    int rc = put_rows(t, &t->exchanges, line.data, 1, (int64_t)line.len, &at, e);
    buf_free(&line);
    return rc;
}

int trace_sync(struct trace *t, struct err *e)
{
    struct err cause = ERR_INIT;
    if (failed_before(t, e))
        return -1;
    if (frames_flush(t->frames, &cause))
        return trace_fail(t, &cause, e);
    if (fdatasync(t->events_fd) && errno != EINVAL) { /* EINVAL: not supported by the file system */
        err_set(&cause, ERR_ENV, "cannot write '%s': %s", t->events_path, strerror(errno));
        return trace_fail(t, &cause, e);
    }
    return 0;
}
