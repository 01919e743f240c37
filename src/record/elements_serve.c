/* elements_serve.c - the child of elements.c: asks programs through libatspi.
 *
 * The library is loaded here and nowhere else.  The few prototypes that are needed are those of
 * at-spi2-core 2.46 (atspi/atspi-accessible.h and its neighbours).  Each call to a program has a time limit
 * of the library's own; a whole search has another one, and a bound on the number of elements.
 */
#include "record/elements.h"

#include "base/buf.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glib-object.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CALL_MS = 400,     /* one answer of a program */
    STARTUP_MS = 1000, /* the same while a program starts */
    SEARCH_MS = 1500,
    ELEMENTS_MOST = 8000,
    DEPTH = 40,
    CHILDREN = 2000,
    TICK_MS = 15,
    STATE_FOCUSED = 12,
    STATE_SHOWING = 25,
    SCREEN = 0, /* ATSPI_COORD_TYPE_SCREEN */
};

struct rect {
    gint x, y, width, height;
};

struct event { /* AtspiEvent */
    gchar *type;
    void *source;
    gint detail1, detail2;
    GValue any_data;
};

static struct {
    int (*init)(void);
    void (*set_timeout)(gint, gint);
    void *(*get_desktop)(gint);
    gint (*child_count)(void *, GError **);
    void *(*child_at)(void *, gint, GError **);
    gchar *(*name)(void *, GError **);
    gchar *(*role)(void *, GError **);
    void *(*states)(void *);
    gboolean (*has_state)(void *, int);
    void *(*component)(void *);
    void *(*at_point)(void *, gint, gint, int, GError **);
    struct rect *(*extents)(void *, int, GError **);
    void *(*listener_new)(void (*)(struct event *, void *), void *, void *);
    gboolean (*listener_register)(void *, const gchar *, GError **);
    GType (*event_type)(void);
} spi;

static bool load(void)
{
    void *lib = dlopen("libatspi.so.0", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *to;
    } wanted[] = {
        {"atspi_init", &spi.init},
        {"atspi_set_timeout", &spi.set_timeout},
        {"atspi_get_desktop", &spi.get_desktop},
        {"atspi_accessible_get_child_count", &spi.child_count},
        {"atspi_accessible_get_child_at_index", &spi.child_at},
        {"atspi_accessible_get_name", &spi.name},
        {"atspi_accessible_get_role_name", &spi.role},
        {"atspi_accessible_get_state_set", &spi.states},
        {"atspi_state_set_contains", &spi.has_state},
        {"atspi_accessible_get_component_iface", &spi.component},
        {"atspi_component_get_accessible_at_point", &spi.at_point},
        {"atspi_component_get_extents", &spi.extents},
        {"atspi_event_listener_new", &spi.listener_new},
        {"atspi_event_listener_register", &spi.listener_register},
        {"atspi_event_get_type", &spi.event_type},
    };
    for (size_t i = 0; lib && i < sizeof wanted / sizeof *wanted; i++) {
        void *at = dlsym(lib, wanted[i].name);
        if (!at)
            return false;
        memcpy(wanted[i].to, &at, sizeof at);
    }
    return lib != NULL;
}

/* ---- one element ------------------------------------------------------------------------------------ */

static void drop(void *object)
{
    if (object)
        g_object_unref(object);
}

static bool is_in(void *object, int state)
{
    void *set = spi.states(object);
    bool yes = set && spi.has_state(set, state);
    drop(set);
    return yes;
}

static bool extents_of(void *object, struct rect *out)
{
    void *component = spi.component(object);
    struct rect *r = component ? spi.extents(component, SCREEN, NULL) : NULL;
    bool known = r && r->width > 0 && r->height > 0;
    if (known)
        *out = *r;
    g_free(r);
    drop(component);
    return known;
}

static bool holds(const struct rect *r, int x, int y)
{
    return x >= r->x && y >= r->y && x < r->x + r->width && y < r->y + r->height;
}

static json_t *describe(void *object)
{
    struct rect r = {0};
    gchar *name = spi.name(object, NULL), *role = spi.role(object, NULL);
    extents_of(object, &r);
    json_t *one = json_pack(
        "{s:s, s:s, s:[i,i,i,i]}", "name", name && g_utf8_validate(name, -1, NULL) ? name : "", "role",
        role && g_utf8_validate(role, -1, NULL) ? role : "", "rect", r.x, r.y, r.width, r.height);
    g_free(name);
    g_free(role);
    return one;
}

static bool is_called(void *object, gchar *(*what)(void *, GError **), const char *text)
{
    gchar *s = what(object, NULL);
    bool yes = s && !strcmp(s, text);
    g_free(s);
    return yes;
}

/* ---- searches --------------------------------------------------------------------------------------- */

struct search {
    const char *name, *role, *window;
    int x, y;
    json_t *found;
    int64_t start;
    int budget;
    bool (*visit)(struct search *q, void *window); /* true: enough */
};

static bool is_over(struct search *q)
{
    return --q->budget < 0 || clock_ms_since(q->start) > SEARCH_MS;
}

/* Visits windows that show: those of the right title, then the others. */
static void each_window(struct search *q)
{
    void *desktop = spi.get_desktop(0);
    int n = desktop ? spi.child_count(desktop, NULL) : 0;
    bool enough = false;
    for (int pass = *q->window ? 0 : 1; pass < 2 && !enough; pass++)
        for (int i = n - 1; i >= 0 && !enough && !is_over(q); i--) {
            void *program = spi.child_at(desktop, i, NULL);
            int windows = program ? spi.child_count(program, NULL) : 0;
            for (int k = 0; k < windows && k < CHILDREN && !enough && !is_over(q); k++) {
                void *w = spi.child_at(program, k, NULL);
                if (w && is_called(w, spi.name, q->window) == (pass == 0) && is_in(w, STATE_SHOWING))
                    enough = q->visit(q, w);
                drop(w);
            }
            drop(program);
        }
    drop(desktop);
}

/* Down to the deepest element at the point. */
static bool visit_at(struct search *q, void *window)
{
    struct rect r;
    if (!extents_of(window, &r) || !holds(&r, q->x, q->y))
        return false;
    void *at = g_object_ref(window);
    for (int depth = 0; depth < DEPTH && !is_over(q); depth++) {
        void *component = spi.component(at);
        void *inner = component ? spi.at_point(component, q->x, q->y, SCREEN, NULL) : NULL;
        drop(component);
        if (!inner || inner == at) {
            drop(inner);
            break;
        }
        drop(at);
        at = inner;
    }
    if (at != window)
        json_array_append_new(q->found, describe(at));
    drop(at);
    return json_array_size(q->found) > 0;
}

static void find_below(struct search *q, void *object, int depth)
{
    if (depth > DEPTH || is_over(q) || json_array_size(q->found) == ELEMENTS_MATCHES)
        return;
    if (is_called(object, spi.role, q->role) && is_called(object, spi.name, q->name) &&
        is_in(object, STATE_SHOWING)) {
        json_array_append_new(q->found, describe(object));
        return;
    }
    int n = spi.child_count(object, NULL);
    for (int i = 0; i < n && i < CHILDREN; i++) {
        void *child = spi.child_at(object, i, NULL);
        if (child)
            find_below(q, child, depth + 1);
        drop(child);
    }
}

static bool visit_find(struct search *q, void *window)
{
    find_below(q, window, 0);
    return json_array_size(q->found) == ELEMENTS_MATCHES;
}

/* The element that has the keyboard, once at the start: later ones are told by events. */
static bool find_focus(struct search *q, void *object, int depth)
{
    if (depth > DEPTH || is_over(q))
        return false;
    if (is_in(object, STATE_FOCUSED)) {
        json_array_append_new(q->found, describe(object));
        return true;
    }
    int n = spi.child_count(object, NULL);
    bool enough = false;
    for (int i = 0; i < n && i < CHILDREN && !enough; i++) {
        void *child = spi.child_at(object, i, NULL);
        enough = child && is_in(child, STATE_SHOWING) && find_focus(q, child, depth + 1);
        drop(child);
    }
    return enough;
}

static bool visit_focus(struct search *q, void *window)
{
    return find_focus(q, window, 0);
}

static json_t *search(struct search q)
{
    q.start = clock_ns();
    q.budget = ELEMENTS_MOST;
    q.found = json_array();
    each_window(&q);
    return q.found;
}

/* ---- lines ------------------------------------------------------------------------------------------ */

static int wire = -1;

static void say(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    json_decref(line);
    for (size_t n = text ? strlen(text) : 0, at = 0; at <= n && text;) {
        text[n] = '\n';
        ssize_t k = send(wire, text + at, n + 1 - at, MSG_NOSIGNAL);
        if (k <= 0 && errno != EINTR)
            _exit(0);
        at += k > 0 ? (size_t)k : 0;
    }
    free(text);
}

static void on_focus(struct event *v, void *arg)
{
    (void)arg;
    if (v->detail1 && v->source)
        say(json_pack("{s:o}", "focus", describe(v->source)));
    g_boxed_free(spi.event_type(), v);
}

static void answer(const char *text, size_t len)
{
    json_t *line = json_loadb(text, len, 0, NULL);
    const char *ask = json_string_value(json_object_get(line, "ask"));
    const char *window = json_string_value(json_object_get(line, "window"));
    const char *name = json_string_value(json_object_get(line, "name"));
    const char *role = json_string_value(json_object_get(line, "role"));
    struct search q = {.window = window ? window : "", .name = name ? name : "", .role = role ? role : ""};
    q.x = (int)json_integer_value(json_object_get(line, "x"));
    q.y = (int)json_integer_value(json_object_get(line, "y"));
    q.visit = ask && !strcmp(ask, "find") ? visit_find : visit_at;
    json_t *found = search(q);
    say(json_pack("{s:O, s:o}", "id", json_object_get(line, "id"), "elements", found));
    json_decref(line);
}

/* Answers whole lines; when several questions of the kind "at" wait, the last one is enough. */
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

_Noreturn void elements_serve(int in, int out)
{
    struct buf lines;
    struct search focus = {.window = "", .visit = visit_focus};
    if (dup2(in, 0) < 0 || out != in)
        _exit(1);
    wire = 0;
    int none = open("/dev/null", O_WRONLY | O_CLOEXEC); /* the library writes its complaints to stderr */
    if (none >= 0 && (dup2(none, 1) < 0 || dup2(none, 2) < 0))
        _exit(1);
    close_range(3, ~0U, 0);
    signal(SIGINT, SIG_IGN); /* the parent decides */
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
    if (!load() || spi.init() > 1)
        _exit(0);
    spi.set_timeout(CALL_MS, STARTUP_MS);
    void *listener = spi.listener_new(on_focus, NULL, NULL);
    if (listener)
        spi.listener_register(listener, "object:state-changed:focused", NULL);
    json_t *first = search(focus);
    if (json_array_size(first))
        say(json_pack("{s:O}", "focus", json_array_get(first, 0)));
    json_decref(first);
    buf_init(&lines, 1 << 20);
    for (;;) {
        char part[4096];
        struct pollfd p = {wire, POLLIN, 0};
        while (g_main_context_iteration(NULL, FALSE))
            ;
        if (poll(&p, 1, TICK_MS) <= 0)
            continue;
        ssize_t n = read(wire, part, sizeof part);
        if (n == 0 || (n < 0 && errno != EINTR) || (n > 0 && buf_put(&lines, part, (size_t)n)))
            _exit(0);
        if (n > 0)
            answer_lines(&lines);
    }
}
