/* elements.c - the client side of elements.h: sends questions to the child process and reads its answers.
 *
 * A question is a line {"id", "ask": "at" | "find" | "pressed" | "field" | "dialog", ...}, an answer a line
 * {"id", "elements": [...], "known"}. A line {"focus": {...}} arrives unrequested whenever the keyboard
 * focus moves to another element.
 */
#include "atspi/elements.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTS = 3, LINE_MAX_BYTES = 64 << 10, NEAR = 3, OVERDUE_MS = 3000, FOCUS_KEPT = 8 };

struct focus {
    struct element element;
    int64_t from; /* clock_ns() */
};

struct elements {
    pid_t child;
    int fd; /* -1: no child */
    int starts;
    struct buf in;
    long id, answered; /* ids of the newest question and of the newest answer */
    int64_t asked;     /* clock_ns() of the oldest open question; 0: none */
    int px, py;
    struct element found[ELEMENTS_MATCHES];
    int n_found;
    bool known;                 /* the answer is valid */
    struct element_field field; /* from the newest answer */
    char dialog[512];
    struct focus focus[FOCUS_KEPT]; /* the newest first */
    int n_focus;
};

/* Returns whether libatspi can be expected to find a bus; without one it would start its own. */
static bool bus_expected(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct stat st;
    if (getenv("AT_SPI_BUS_ADDRESS") || getenv("DBUS_SESSION_BUS_ADDRESS"))
        return true;
    char *path = runtime ? xasprintf("%s/bus", runtime) : NULL;
    bool there = path && stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
    free(path);
    return there;
}

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
        elements_serve(pair[1], pair[1]);
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

struct elements *elements_open(void)
{
    if (!bus_expected())
        return NULL;
    struct elements *x = xcalloc(1, sizeof *x);
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
    buf_free(&x->in);
    free(x);
}

int elements_fd(const struct elements *x)
{
    return x ? x->fd : -1;
}

/* ---- answers ---------------------------------------------------------------------------------------- */

static void copy_text(const char *from, char *to, size_t size)
{
    size_t n = from ? strlen(from) : 0;
    n = n < size ? n : size - 1;
    n = utf8_valid_prefix(from ? from : "", n);
    memcpy(to, from ? from : "", n);
    to[n] = 0;
    for (char *c = to; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? ' ' : *c;
}

static struct element element_of(json_t *from)
{
    struct element one = {0};
    json_t *rect = json_object_get(from, "rect");
    copy_text(json_string_value(json_object_get(from, "name")), one.name, sizeof one.name);
    copy_text(json_string_value(json_object_get(from, "role")), one.role, sizeof one.role);
    int *const to[] = {&one.rect.x, &one.rect.y, &one.rect.w, &one.rect.h};
    for (size_t i = 0; i < 4; i++)
        *to[i] = (int)json_integer_value(json_array_get(rect, i));
    one.password = !strcmp(one.role, "password text");
    return one;
}

/* Reads an answer about texts; its only member differs from that of an element. */
static void read_text(struct elements *x, json_t *one)
{
    struct element_field *f = &x->field;
    *f = (struct element_field){.in_page = json_is_true(json_object_get(one, "page")),
                                .tools = json_is_true(json_object_get(one, "tools")),
                                .editable = json_is_true(json_object_get(one, "editable"))};
    copy_text(json_string_value(json_object_get(one, "text")), f->text, sizeof f->text);
    copy_text(json_string_value(one), x->dialog, sizeof x->dialog);
}

static void read_line(struct elements *x, const char *text, size_t len)
{
    json_t *line = json_loadb(text, len, 0, NULL), *focus = json_object_get(line, "focus"), *one;
    size_t i;
    if (focus) {
        memmove(x->focus + 1, x->focus, (FOCUS_KEPT - 1) * sizeof *x->focus);
        x->focus[0] = (struct focus){element_of(focus), clock_ns()};
        x->n_focus += x->n_focus < FOCUS_KEPT;
    } else if (json_integer_value(json_object_get(line, "id")) == x->id) {
        x->n_found = 0;
        read_text(x, json_array_get(json_object_get(line, "elements"), 0));
        json_array_foreach(json_object_get(line, "elements"), i, one) if (x->n_found < ELEMENTS_MATCHES)
            x->found[x->n_found++] = element_of(one);
        x->known = json_is_true(json_object_get(line, "known"));
        x->answered = x->id;
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
    if (x && x->asked && clock_ms_since(x->asked) > OVERDUE_MS)
        end_child(x);
}

/* Waits until the newest question is answered. Returns false if not within ms. */
static bool await(struct elements *x, double ms)
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

/* ---- questions -------------------------------------------------------------------------------------- */

static bool ask(struct elements *x, json_t *question)
{
    json_object_set_new(question, "id", json_integer(++x->id));
    char *text = start_child(x) ? json_line(question, JSON_COMPACT) : NULL;
    json_decref(question);
    if (!text)
        return false;
    char *line = xasprintf("%s\n", text);
    size_t len = strlen(line);
    bool sent = send(x->fd, line, len, MSG_NOSIGNAL) == (ssize_t)len;
    free(line);
    free(text);
    if (!sent)
        end_child(x);
    else
        x->asked = x->asked ? x->asked : clock_ns();
    return sent;
}

void elements_ask_at(struct elements *x, int px, int py, const char *window)
{
    if (!x)
        return;
    elements_pump(x);
    x->px = px;
    x->py = py;
    x->n_found = 0;
    ask(x, json_pack("{s:s, s:i, s:i, s:s}", "ask", "at", "x", px, "y", py, "window", window));
}

bool elements_answer_at(struct elements *x, int px, int py, double ms, struct element *out)
{
    *out = (struct element){0};
    if (!x || abs(px - x->px) > NEAR || abs(py - x->py) > NEAR || !await(x, ms) || !x->n_found)
        return false;
    *out = x->found[0];
    return *out->role != 0;
}

int elements_find(struct elements *x, const char *name, const char *role, const char *window, double ms,
                  struct element out[ELEMENTS_MATCHES])
{
    if (!x || !ask(x, json_pack("{s:s, s:s, s:s, s:s}", "ask", "find", "name", name, "role", role, "window",
                                window)))
        return 0;
    if (!await(x, ms))
        return 0;
    memcpy(out, x->found, sizeof x->found);
    return x->n_found;
}

bool elements_pressed(struct elements *x, bool enter, const char *window, double ms, struct element *out)
{
    *out = (struct element){0};
    if (!x)
        return false;
    x->n_found = 0;
    x->px = x->py = -1 - NEAR;
    if (!ask(x, json_pack("{s:s, s:b, s:s}", "ask", "pressed", "enter", enter, "window", window)) ||
        !await(x, ms) || !x->known)
        return false;
    if (x->n_found)
        *out = x->found[0];
    return true;
}

bool elements_field(struct elements *x, const char *window, double ms, struct element_field *out)
{
    *out = (struct element_field){.in_page = false};
    if (!x)
        return false;
    x->px = x->py = -1 - NEAR;
    if (!ask(x, json_pack("{s:s, s:s}", "ask", "field", "window", window)) || !await(x, ms) || !x->known)
        return false;
    *out = x->field;
    return true;
}

int elements_dialog(struct elements *x, int px, int py, const char *window, double ms, char *text,
                    size_t size)
{
    text[0] = 0;
    if (!x)
        return 0;
    x->px = x->py = -1 - NEAR;
    if (!ask(x, json_pack("{s:s, s:i, s:i, s:s}", "ask", "dialog", "x", px, "y", py, "window", window)))
        return 0;
    if (!await(x, ms))
        return -1;
    if (x->known)
        copy_text(x->dialog, text, size);
    return x->known;
}

bool elements_focus_since(const struct elements *x, int64_t since)
{
    return x && x->n_focus && x->focus[0].from >= since;
}

bool elements_password_between(const struct elements *x, int64_t since, int64_t until, struct element *out)
{
    for (int i = 0; x && i < x->n_focus; i++) {
        const struct focus *f = &x->focus[i];
        if (f->from <= until && f->element.password) {
            *out = f->element;
            return true;
        }
        if (f->from <= since) /* the element that had the keyboard then */
            return false;
    }
    return false;
}
