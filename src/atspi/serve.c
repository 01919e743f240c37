/* serve.c - the child process of elements.c: answers questions by reading programs, and reports focus
 * changes.
 *
 * A question is a line {"id", "refs", "window", "x", "y", "all", "closed", "beyond", "ms"}, an answer a
 * line {"id", "end", "hit", "window", "calls", "nodes", "ms", "read", "young", "empty", "elements": [[...],
 * ...]}. {"focus": true} arrives unrequested whenever the keyboard focus moves to another element, false if
 * typed text is not shown there. {"error"} says why nothing can be read. */
#include "atspi/answer_impl.h"
#include "atspi/elements_impl.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PROGRAMS_MAX = 256,
    FOCUS_MAX = 8,
    ASK_MS = 400,
    FIRST_MS = 500, /* to find the element that has the focus at the start */
    IDLE_MS = 1000,
    YOUNG_S = 10, /* a program this old has registered with the bus */
    QUESTION_BYTES = 1 << 20,
};

struct focus {
    char bus[64], path[512];
};

static struct {
    struct xdisplay *x;
    struct reader r;
    struct program programs[PROGRAMS_MAX];
    struct xwindow windows[XWINDOWS_MAX];
    struct focus focus[FOCUS_MAX]; /* objects of events that arrived during a read */
    int n_programs, n_windows, n_focus, wire;
    bool listed; /* the registry has answered */
} child;

/* ---- lines ------------------------------------------------------------------------------------------- */

static void say(json_t *line)
{
    char *text = json_line(line, JSON_COMPACT);
    json_decref(line);
    for (size_t n = text ? strlen(text) : 0, at = 0; at <= n && text;) {
        text[n] = '\n';
        ssize_t k = send(child.wire, text + at, n + 1 - at, MSG_NOSIGNAL);
        if (k <= 0 && errno != EINTR)
            _exit(0);
        at += k > 0 ? (size_t)k : 0;
    }
    free(text);
}

/* ---- programs ---------------------------------------------------------------------------------------- */

static int pid_of(const char *bus)
{
    DBusMessage *m =
        bus_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, "GetConnectionUnixProcessID");
    dbus_int64_t pid = 0;
    if (m)
        dbus_message_append_args(m, DBUS_TYPE_STRING, &bus, DBUS_TYPE_INVALID);
    DBusMessage *reply = bus_ask(child.r.bus, m, ASK_MS);
    bus_integer(reply, &pid);
    if (reply)
        dbus_message_unref(reply);
    return (int)pid;
}

/* Keeps a program at index `at`, with its properties from earlier reads. */
static void keep_program(int at, const char *bus, const char *path)
{
    struct program p = {0};
    int i = at;
    while (i < child.n_programs && strcmp(child.programs[i].bus, bus) != 0)
        i++;
    if (i < child.n_programs) {
        p = child.programs[i];
    } else {
        snprintf(p.bus, sizeof p.bus, "%s", bus);
        snprintf(p.path, sizeof p.path, "%s", path);
        p.pid = pid_of(bus);
        i = child.n_programs < PROGRAMS_MAX ? child.n_programs++ : PROGRAMS_MAX - 1;
    }
    child.programs[i] = child.programs[at];
    child.programs[at] = p;
}

/* Lists the programs of the registry; those that have left it are dropped. */
static void list_programs(void)
{
    DBusMessageIter at, in, pair;
    DBusMessage *reply =
        bus_ask(child.r.bus, bus_call(ATSPI_REGISTRY, ATSPI_ROOT, "org.a11y.atspi.Accessible", "GetChildren"),
                ASK_MS);
    int n = 0;
    if (!reply)
        return;
    if (dbus_message_iter_init(reply, &at) && dbus_message_iter_get_arg_type(&at) == DBUS_TYPE_ARRAY &&
        dbus_message_iter_get_element_type(&at) == DBUS_TYPE_STRUCT)
        for (dbus_message_iter_recurse(&at, &in);
             dbus_message_iter_get_arg_type(&in) == DBUS_TYPE_STRUCT && n < PROGRAMS_MAX;
             dbus_message_iter_next(&in)) {
            const char *bus = "", *path = "";
            dbus_message_iter_recurse(&in, &pair);
            if (dbus_message_iter_get_arg_type(&pair) == DBUS_TYPE_STRING)
                dbus_message_iter_get_basic(&pair, &bus);
            if (dbus_message_iter_next(&pair) &&
                dbus_message_iter_get_arg_type(&pair) == DBUS_TYPE_OBJECT_PATH)
                dbus_message_iter_get_basic(&pair, &path);
            if (dbus_validate_bus_name(bus, NULL) && strlen(bus) < 64 && strlen(path) < 128 && *path)
                keep_program(n++, bus, path);
        }
    child.n_programs = n;
    child.listed = true;
    dbus_message_unref(reply);
}

/* Returns whether a process has started within YOUNG_S. */
static bool is_young(int pid)
{
    char path[64], text[1024];
    unsigned long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strrchr(text, ')');
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    if (!at ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1)
        return false;
    return (double)now.tv_sec - (double)ticks / (double)sysconf(_SC_CLK_TCK) < YOUNG_S;
}

/* ---- focus ------------------------------------------------------------------------------------------- */

/* Ends the silence of a program: an answer that comes late shows that it works again. */
static void hear_from(const char *bus)
{
    for (int i = 0; bus && i < child.n_programs; i++)
        if (!strcmp(child.programs[i].bus, bus))
            child.programs[i].silent_until = 0;
}

static void on_message(void *arg, DBusMessage *m)
{
    const char *kind = "", *from = dbus_message_get_sender(m), *path = dbus_message_get_path(m);
    dbus_int32_t on = 0;
    DBusMessageIter at;
    (void)arg;
    hear_from(from);
    if (!dbus_message_is_signal(m, "org.a11y.atspi.Event.Object", "StateChanged") || !from || !path ||
        !dbus_message_iter_init(m, &at) || dbus_message_iter_get_arg_type(&at) != DBUS_TYPE_STRING)
        return;
    dbus_message_iter_get_basic(&at, &kind);
    if (dbus_message_iter_next(&at) && dbus_message_iter_get_arg_type(&at) == DBUS_TYPE_INT32)
        dbus_message_iter_get_basic(&at, &on);
    if (strcmp(kind, "focused") != 0 || !on)
        return;
    struct focus *f = &child.focus[child.n_focus < FOCUS_MAX ? child.n_focus++ : FOCUS_MAX - 1];
    snprintf(f->bus, sizeof f->bus, "%s", from);
    snprintf(f->path, sizeof f->path, "%s", path);
}

static void listen_to_focus(void)
{
    const char *event = "object:state-changed:focused", *app = "";
    const char **properties = NULL;
    dbus_bus_add_match(
        child.r.bus,
        "type='signal',interface='org.a11y.atspi.Event.Object',member='StateChanged',arg0='focused'", NULL);
    DBusMessage *m = bus_call(ATSPI_REGISTRY, "/org/a11y/atspi/registry", ATSPI_REGISTRY, "RegisterEvent");
    if (m)
        dbus_message_append_args(m, DBUS_TYPE_STRING, &event, DBUS_TYPE_ARRAY, DBUS_TYPE_STRING, &properties,
                                 0, DBUS_TYPE_STRING, &app, DBUS_TYPE_INVALID);
    DBusMessage *reply = bus_ask(child.r.bus, m, ASK_MS);
    if (reply)
        dbus_message_unref(reply);
}

/* ---- questions --------------------------------------------------------------------------------------- */

/* Returns the window that a question is about, NULL: none. */
static const struct xwindow *window_meant(const char *title, bool at_point, int x, int y)
{
    const struct xwindow *found = NULL;
    for (int i = 0; i < child.n_windows; i++) {
        const struct xwindow *w = &child.windows[i];
        if (at_point && screen_rect_contains(w->frame, x, y))
            return w;
        if (!at_point && *title && !strcmp(w->title, title) && (!found || w->active))
            found = w;
    }
    for (int i = 0; i < child.n_windows && !found; i++)
        if (child.windows[i].active)
            found = &child.windows[i];
    return found;
}

struct reading {
    json_t *elements;
    enum snapshot_end end;
    int hit, calls, nodes;
    double ms; /* limit */
    int64_t start;
};

static void read_program(struct reading *q, struct program *p, bool at_point, int x, int y)
{
    enum snapshot_end end = SNAPSHOT_SILENT;
    double left = q->ms - clock_ms_since(q->start);
    if (p->silent_until < clock_ns() && left > 0) {
        p->overdue = 0;
        reader_begin(&child.r, p, at_point ? x : -1, y);
        end = reader_run(&child.r, left, on_message, NULL);
        place_nodes(child.r.nodes, child.r.n, p, child.windows, child.n_windows);
        size_t before = json_array_size(q->elements);
        int hit = answer_put(&child.r, q->elements);
        q->hit = hit >= 0 ? hit : q->hit;
        if (end == SNAPSHOT_WHOLE && json_array_size(q->elements) == before)
            end = SNAPSHOT_NOTHING;
        q->calls += child.r.calls;
        q->nodes += child.r.n;
        reader_end(&child.r);
        if (child.r.lost)
            _exit(0);
    } else if (left <= 0) {
        end = SNAPSHOT_CUT;
    }
    bool more = end != SNAPSHOT_NOTHING && (q->end == SNAPSHOT_NOTHING || end > q->end);
    q->end = more ? end : q->end;
}

/* Reads the known programs of a process. Returns whether they describe something; else the list of programs
 * may be old. */
static bool read_pid(struct reading *q, int pid, bool at_point, int x, int y)
{
    for (int i = 0; pid && i < child.n_programs; i++)
        if (child.programs[i].pid == pid)
            read_program(q, &child.programs[i], at_point, x, y);
    return q->end != SNAPSHOT_NOTHING;
}

static void answer(const char *text, size_t len)
{
    json_t *line = json_loadb(text, len, 0, NULL);
    const char *window = json_string_value(json_object_get(line, "window"));
    bool at_point = json_is_integer(json_object_get(line, "x")),
         all = json_is_true(json_object_get(line, "all"));
    int x = (int)json_integer_value(json_object_get(line, "x")),
        y = (int)json_integer_value(json_object_get(line, "y"));
    struct reading q = {.elements = json_array(), .end = SNAPSHOT_NOTHING, .hit = -1, .start = clock_ns()};
    q.ms = json_number_value(json_object_get(line, "ms"));
    uint32_t refs = (uint32_t)json_integer_value(json_object_get(line, "refs"));
    if (refs > child.r.refs) { /* an earlier child gave these */
        g_hash_table_remove_all(child.r.known);
        child.r.refs = refs;
    }
    child.r.closed = json_is_true(json_object_get(line, "closed"));
    child.r.beyond = json_is_true(json_object_get(line, "beyond"));
    child.n_windows = child.x ? xdisplay_windows(child.x, child.windows) : 0;
    const struct xwindow *meant = window_meant(window ? window : "", at_point, x, y);
    int pid = meant ? meant->pid : 0;
    all = all || !pid; /* the window does not name its process */
    if (all || !read_pid(&q, pid, at_point, x, y)) {
        list_programs();
        all = !read_pid(&q, pid, at_point, x, y) || all; /* a process of another machine or container */
    }
    for (int i = 0; all && i < child.n_programs; i++)
        if (!pid || child.programs[i].pid != pid)
            read_program(&q, &child.programs[i], at_point, x, y);
    bool young = pid && q.end == SNAPSHOT_NOTHING && is_young(pid);
    say(json_pack("{s:O, s:i, s:i, s:I, s:i, s:i, s:f, s:I, s:b, s:b, s:o}", "id",
                  json_object_get(line, "id"), "end", (int)q.end, "hit", q.hit, "window",
                  (json_int_t)(at_point && meant ? meant->id : 0), "calls", q.calls, "nodes", q.nodes, "ms",
                  clock_ms_since(q.start), "read", (json_int_t)clock_ns(), "young", young, "empty",
                  child.listed && !child.n_programs, "elements", q.elements));
    json_decref(line);
}

/* Answers complete lines. If several questions wait, only the last is answered. */
static void answer_lines(struct buf *in)
{
    char *end;
    while ((end = memchr(in->data, '\n', in->len))) {
        size_t used = (size_t)(end - in->data) + 1;
        if (!memchr(end + 1, '\n', in->len - used))
            answer(in->data, used - 1);
        memmove(in->data, in->data + used, in->len - used + 1);
        in->len -= used;
    }
}

/* ---- the process ------------------------------------------------------------------------------------- */

/* Keeps only the wire, as descriptor 0. */
static void close_others(int wire)
{
    int none;
    if (dup2(wire, 0) < 0)
        _exit(1);
    child.wire = 0;
    none = open("/dev/null", O_WRONLY | O_CLOEXEC); /* libdbus prints warnings to stderr */
    if (none >= 0 && (dup2(none, 1) < 0 || dup2(none, 2) < 0))
        _exit(1);
    close_range(3, ~0U, 0);
    signal(SIGINT, SIG_IGN); /* the parent decides */
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
}

static void open_bus(const char *display)
{
    struct err e = ERR_INIT;
    char address[512] = "";
    child.x = xdisplay_open(display);
    if (child.x)
        xdisplay_bus(child.x, address, sizeof address);
    child.r.known = g_hash_table_new_full(g_str_hash, g_str_equal, free, free);
    child.r.bus = bus_open(address, &e);
    if (!child.r.bus) {
        say(json_pack("{s:s}", "error", e.text));
        _exit(0);
    }
}

/* Reads the elements of an answer, which it takes, with their labels. */
static void snapshot_of(json_t *elements, struct snapshot *out)
{
    snapshot_read(json_pack("{s:o, s:i}", "elements", elements, "hit", -1), out);
}

/* Reports whether an element has the keyboard already. */
static void report_first_focus(void)
{
    struct reading q = {.elements = json_array(), .hit = -1, .ms = FIRST_MS, .start = clock_ns()};
    struct snapshot s;
    child.n_windows = child.x ? xdisplay_windows(child.x, child.windows) : 0;
    list_programs();
    const struct xwindow *active = window_meant("", false, 0, 0);
    int pid = active ? active->pid : 0;
    for (int k = 0; k < child.n_programs; k++)
        if (!pid || child.programs[k].pid == pid)
            read_program(&q, &child.programs[k], false, 0, 0);
    snapshot_of(q.elements, &s);
    for (int i = 0; i < s.n; i++)
        if (state_in(s.e[i].states, STATE_FOCUSED))
            say(json_pack("{s:b}", "focus", !element_is_password(&s.e[i])));
    snapshot_free(&s);
}

static struct program *program_of(const char *bus)
{
    for (int i = 0; i < child.n_programs; i++)
        if (!strcmp(child.programs[i].bus, bus))
            return &child.programs[i];
    return NULL;
}

/* Returns whether a text field without a name takes a password according to its label. Only GTK 4 reports
 * such fields as ordinary ones; a field that cannot be read may be one. */
static bool hides_by_label(const struct focus *f)
{
    struct reading q = {.elements = json_array(), .hit = -1, .ms = FIRST_MS, .start = clock_ns()};
    struct snapshot s;
    bool shows = false;
    if (!program_of(f->bus))
        list_programs();
    struct program *p = program_of(f->bus);
    if (p && *p->toolkit && strcmp(p->toolkit, "GTK") != 0)
        shows = true;
    else if (p)
        read_program(&q, p, false, 0, 0);
    snapshot_of(q.elements, &s);
    for (int i = 0; i < s.n; i++)
        shows = shows || (state_in(s.e[i].states, STATE_FOCUSED) && s.e[i].parent >= 0 &&
                          !element_is_password(&s.e[i]));
    snapshot_free(&s);
    return !shows;
}

/* Returns whether typed text shows in the element that has the focus. */
static bool shows_text(const struct focus *f)
{
    dbus_int64_t role = ROLE_PASSWORD; /* also without a reply */
    char name[256];
    DBusMessage *reply =
        bus_ask(child.r.bus, bus_call(f->bus, f->path, "org.a11y.atspi.Accessible", "GetRole"), ASK_MS);
    bus_integer(reply, &role);
    if (reply)
        dbus_message_unref(reply);
    if (role != ROLE_TEXT && role != ROLE_ENTRY)
        return role != ROLE_PASSWORD;
    reply = bus_ask(child.r.bus, bus_get(f->bus, f->path, "org.a11y.atspi.Accessible", "Name"), ASK_MS);
    bus_text(reply, name, sizeof name);
    if (reply)
        dbus_message_unref(reply);
    return *name && !reader_class_name(name) ? !role_hides_text(name) : !hides_by_label(f);
}

static void report_focus(void)
{
    for (int i = 0; i < child.n_focus; i++) {
        const struct focus f = child.focus[i];
        say(json_pack("{s:b}", "focus", shows_text(&f)));
    }
    child.n_focus = 0;
}

/* Handles the messages that have arrived on the bus. */
static void drain_bus(void)
{
    DBusMessage *m;
    if (!dbus_connection_read_write(child.r.bus, 0))
        _exit(0);
    while ((m = dbus_connection_pop_message(child.r.bus))) {
        on_message(NULL, m);
        dbus_message_unref(m);
    }
    report_focus();
}

_Noreturn void elements_serve(int wire, const char *display)
{
    struct buf lines;
    int bus = -1;
    close_others(wire);
    open_bus(display);
    listen_to_focus();
    report_first_focus();
    dbus_connection_get_unix_fd(child.r.bus, &bus);
    buf_init(&lines, QUESTION_BYTES);
    for (;;) {
        char part[4096];
        struct pollfd p[2] = {{child.wire, POLLIN, 0}, {bus, POLLIN, 0}};
        drain_bus();
        if (poll(p, 2, IDLE_MS) <= 0 || !p[0].revents)
            continue;
        ssize_t n = read(child.wire, part, sizeof part);
        if (n == 0 || (n < 0 && errno != EINTR) || (n > 0 && buf_put(&lines, part, (size_t)n)))
            _exit(0);
        if (n > 0)
            answer_lines(&lines);
    }
}
