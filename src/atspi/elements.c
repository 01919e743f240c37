/* elements.c - the client side of elements.h: sends questions to the child process and reads its answers
 * (serve.c describes both). */
#include "atspi/elements_impl.h"

#include "atspi/roles.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time of a question that the child does not use, so that a partial answer arrives in time. */
enum { TRANSFER_MS = 250 };

enum {
    STARTS = 3,
    LINE_MAX_BYTES = 16 << 20,
    OVERDUE_MS = 2000,
    FOCUS_KEPT = 8,
    AGAIN_MS = 300,
    DEPTH_MAX = 64
};

struct focus {
    bool password;
    int64_t from; /* clock_ns() */
};

struct elements {
    char *display; /* NULL: $DISPLAY */
    pid_t child;
    int fd; /* -1: no child */
    int starts;
    struct buf in;
    char *question; /* the newest, and its scope without a title */
    struct elements_scope scope;
    long id, answered; /* ids of the newest question and of the newest answer */
    double ms;         /* limit of the newest question */
    int64_t asked;     /* clock_ns() of the oldest open question; 0: none */
    bool young;        /* a program that describes nothing yet may still do so */
    bool empty;        /* no program has registered with the bus */
    struct snapshot snapshot;
    uint32_t refs; /* the highest ref so far: a later child continues from it */
    char error[200];
    struct focus focus[FOCUS_KEPT]; /* the newest first */
    int n_focus;
};

static void end_child(struct elements *x)
{
    if (x->fd < 0)
        return;
    close(x->fd);
    kill(x->child, SIGKILL);
    while (waitpid(x->child, NULL, 0) < 0 && errno == EINTR)
        ;
    x->fd = -1;
    x->asked = 0;
    buf_clear(&x->in);
}

static bool start_child(struct elements *x)
{
    int pair[2];
    if (x->fd >= 0)
        return true;
    if (x->starts == STARTS || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return false;
    x->starts++;
    pid_t parent = getpid();
    x->child = fork();
    if (x->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        prctl(PR_SET_NAME, "holorun-names");
        elements_serve(pair[1], x->display);
    }
    close(pair[1]);
    if (x->child < 0) {
        close(pair[0]);
        return false;
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    x->fd = pair[0];
    return true;
}

struct elements *elements_open(const char *display)
{
    const char *wanted = getenv("HOLORUN_ELEMENTS");
    if (wanted && !strcmp(wanted, "no"))
        return NULL;
    struct elements *x = xcalloc(1, sizeof *x);
    x->display = display ? xstrdup(display) : NULL;
    x->fd = -1;
    buf_init(&x->in, LINE_MAX_BYTES);
    start_child(x);
    return x;
}

void elements_close(struct elements *x)
{
    if (!x)
        return;
    end_child(x);
    snapshot_free(&x->snapshot);
    buf_free(&x->in);
    free(x->question);
    free(x->display);
    free(x);
}

void elements_retry(struct elements *x)
{
    if (!x)
        return;
    x->starts = 0;
    x->error[0] = 0;
}

int elements_fd(const struct elements *x)
{
    return x ? x->fd : -1;
}

/* ---- answers ----------------------------------------------------------------------------------------- */

void snapshot_free(struct snapshot *s)
{
    free(s->e);
    json_decref(s->memory);
    *s = (struct snapshot){.hit = -1};
}

static const char *text_at(const json_t *one, size_t i)
{
    const char *text = json_string_value(json_array_get(one, i));
    return text ? text : "";
}

static int int_at(const json_t *one, size_t i)
{
    json_int_t v = json_integer_value(json_array_get(one, i));
    return v < -1000000 ? -1000000 : v > 1000000000 ? 1000000000 : (int)v;
}

/* Reads one element. Returns -1 if its parent does not come before it. */
static int read_element(const json_t *one, struct snapshot *s)
{
    struct element *e = &s->e[s->n];
    *e = (struct element){
        .ref = (uint32_t)json_integer_value(json_array_get(one, 0)),
        .role = text_at(one, 1),
        .name = text_at(one, 2),
        .value = text_at(one, 3),
        .label = "",
        .states = (uint64_t)json_integer_value(json_array_get(one, 4)),
        .rect = {int_at(one, 5), int_at(one, 6), int_at(one, 7), int_at(one, 8)},
        .trust = (enum place_trust)int_at(one, 9),
        .parent = int_at(one, 10),
        .children = int_at(one, 11),
        .window = (unsigned long)json_integer_value(json_array_get(one, 12)),
        .least = json_number_value(json_array_get(one, 13)),
        .most = json_number_value(json_array_get(one, 14)),
        .number = json_is_number(json_array_get(one, 15)) ? json_number_value(json_array_get(one, 15)) : NAN};
    if (e->parent < -1 || e->parent >= s->n || e->trust > PLACE_NONE || e->rect.w < 0 || e->rect.h < 0)
        return -1;
    e->depth = e->parent < 0 ? 0 : s->e[e->parent].depth + 1;
    s->n++;
    return e->depth > DEPTH_MAX ? -1 : 0;
}

int snapshot_read(json_t *line, struct snapshot *out)
{
    json_t *list = json_object_get(line, "elements"), *one;
    size_t i;
    int rc = json_is_array(list) ? 0 : -1;
    *out = (struct snapshot){.memory = line,
                             .end = (enum snapshot_end)json_integer_value(json_object_get(line, "end")),
                             .hit = (int)json_integer_value(json_object_get(line, "hit")),
                             .window = (unsigned long)json_integer_value(json_object_get(line, "window")),
                             .calls = (int)json_integer_value(json_object_get(line, "calls")),
                             .nodes = (int)json_integer_value(json_object_get(line, "nodes")),
                             .ms = json_number_value(json_object_get(line, "ms")),
                             .read = json_integer_value(json_object_get(line, "read"))};
    out->e = xcalloc(json_array_size(list) + 1, sizeof *out->e);
    json_array_foreach(list, i, one) rc = rc || read_element(one, out) ? -1 : 0;
    rc = out->hit < -1 || out->hit >= out->n || out->end > SNAPSHOT_SILENT ? -1 : rc;
    if (rc)
        snapshot_free(out);
    else
        snapshot_label(out);
    return rc;
}

void elements_take(struct elements *x, struct snapshot *out)
{
    *out = x->snapshot;
    x->snapshot = (struct snapshot){.hit = -1};
}

static void note_focus(struct elements *x, bool password)
{
    memmove(x->focus + 1, x->focus, (FOCUS_KEPT - 1) * sizeof *x->focus);
    x->focus[0] = (struct focus){password, clock_ns()};
    x->n_focus += x->n_focus < FOCUS_KEPT;
}

static void read_line(struct elements *x, const char *text, size_t len)
{
    json_t *line = json_loadb(text, len, 0, NULL), *focus = json_object_get(line, "focus");
    const char *error = json_string_value(json_object_get(line, "error"));
    if (error)
        snprintf(x->error, sizeof x->error, "%s", error);
    if (focus)
        note_focus(x, json_is_false(focus));
    if (json_is_integer(json_object_get(line, "id")) && x->asked)
        x->asked = clock_ns(); /* the child works: the newest question is next */
    if (json_is_integer(json_object_get(line, "id")) &&
        json_integer_value(json_object_get(line, "id")) == x->id) {
        snapshot_free(&x->snapshot);
        if (snapshot_read(json_incref(line), &x->snapshot) == 0)
            x->answered = x->id;
        x->error[0] = 0;
        for (int i = 0; i < x->snapshot.n; i++)
            x->refs = x->snapshot.e[i].ref > x->refs ? x->snapshot.e[i].ref : x->refs;
        x->young = json_is_true(json_object_get(line, "young"));
        x->empty = json_is_true(json_object_get(line, "empty"));
        x->asked = 0;
    }
    json_decref(line);
}

void elements_pump(struct elements *x)
{
    char part[4096];
    while (x && x->fd >= 0) {
        ssize_t n = read(x->fd, part, sizeof part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0 || buf_put(&x->in, part, (size_t)n)) {
            end_child(x);
            return;
        }
        char *end;
        while ((end = memchr(x->in.data, '\n', x->in.len))) {
            size_t used = (size_t)(end - x->in.data) + 1;
            read_line(x, x->in.data, used - 1);
            memmove(x->in.data, x->in.data + used, x->in.len - used + 1);
            x->in.len -= used;
        }
    }
    if (x && x->asked && clock_ms_since(x->asked) > x->ms + OVERDUE_MS)
        end_child(x);
}

/* ---- questions --------------------------------------------------------------------------------------- */

static bool send_question(struct elements *x)
{
    if (!start_child(x))
        return false;
    char *line = xasprintf("{\"id\": %ld, \"refs\": %u, %s\n", ++x->id, x->refs, x->question);
    size_t len = strlen(line);
    bool sent = send(x->fd, line, len, MSG_NOSIGNAL) == (ssize_t)len;
    free(line);
    if (!sent)
        end_child(x);
    else
        x->asked = x->asked ? x->asked : clock_ns();
    return sent;
}

bool elements_ask(struct elements *x, const struct elements_scope *s, double ms)
{
    elements_pump(x);
    json_t *q =
        json_pack("{s:s, s:b, s:b, s:b, s:f}", "window", s->window ? s->window : "", "all", s->all, "closed",
                  s->closed, "beyond", s->beyond, "ms", ms > 2 * TRANSFER_MS ? ms - TRANSFER_MS : ms);
    if (q && s->at_point) {
        json_object_set_new(q, "x", json_integer(s->x));
        json_object_set_new(q, "y", json_integer(s->y));
    }
    char *text = q ? json_line(q, JSON_COMPACT) : NULL;
    json_decref(q);
    free(x->question);
    x->question = text ? xstrdup(text + 1) : NULL;
    x->ms = ms;
    x->scope = *s;
    x->scope.window = NULL;
    free(text);
    return x->question && send_question(x);
}

const struct elements_scope *elements_question(const struct elements *x)
{
    return x && x->question ? &x->scope : NULL;
}

/* Waits for an answer to the newest question. */
static bool answered(struct elements *x, double ms)
{
    int64_t start = clock_ns();
    elements_pump(x);
    while (x->answered != x->id && x->fd >= 0) {
        double left = ms - clock_ms_since(start);
        struct pollfd p = {x->fd, POLLIN, 0};
        if (left <= 0)
            return false;
        poll(&p, 1, (int)left + 1);
        elements_pump(x);
    }
    return x->answered == x->id;
}

/* A program that has just started is asked again until it describes something. */
const struct snapshot *elements_await(struct elements *x, double ms)
{
    int64_t start = clock_ns();
    bool got = answered(x, ms);
    while (got && x->young && !x->snapshot.n && clock_ms_since(start) + 2 * AGAIN_MS < ms) {
        clock_sleep_ms(AGAIN_MS);
        got = send_question(x) && answered(x, ms - clock_ms_since(start));
    }
    return got ? &x->snapshot : NULL;
}

bool elements_no_bus(const struct elements *x)
{
    return x && *x->error;
}

bool elements_nobody(const struct elements *x)
{
    return !x || *x->error || (x->empty && !x->young);
}

int elements_snapshot(struct elements *x, const struct elements_scope *s, double ms,
                      const struct snapshot **out, struct err *e)
{
    if (!x)
        return err_set(e, ERR_ENV, "elements are switched off by HOLORUN_ELEMENTS=no");
    *out = elements_ask(x, s, ms) ? elements_await(x, ms + OVERDUE_MS) : NULL;
    if (*out)
        return 0;
    if (*x->error)
        return err_set(e, ERR_ENV, "%s", x->error);
    return err_set(e, ERR_TIME, "no answer from the accessibility bus within %.0f ms", ms);
}

/* ---- focus ------------------------------------------------------------------------------------------- */

bool elements_focus_since(const struct elements *x, int64_t since)
{
    return x && x->n_focus && x->focus[0].from >= since;
}

bool elements_password_between(const struct elements *x, int64_t since, int64_t until)
{
    for (int i = 0; x && i < x->n_focus; i++) {
        const struct focus *f = &x->focus[i];
        if (f->from <= until && f->password)
            return true;
        if (f->from <= since) /* the element that had the keyboard then */
            return false;
    }
    return false;
}
