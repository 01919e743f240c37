/* elements_serve.c - the child process of elements.c: queries programs through libatspi.
 *
 * The library limits the time of each call to a program; a whole search has its own time limit, and a bound
 * on the number of elements.
 */
#include "atspi/elements.h"

#include "atspi/atspi.h"
#include "atspi/elements_impl.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CALL_MS = 400,     /* time limit for one call to a program */
    STARTUP_MS = 1000, /* the same while a program starts */
    SEARCH_MS = 1500,
    DEFAULT_MS = 200, /* for a window's default button */
    ELEMENTS_MOST = 8000,
    DEPTH = 40,
    CHILDREN = 2000,
    TICK_MS = 15,
};

static const struct atspi *spi;

/* ---- one element ------------------------------------------------------------------------------------ */

static bool is_in(void *object, int state)
{
    return atspi_is(spi, object, state);
}

static bool holds(const struct atspi_rect *r, int x, int y)
{
    return x >= r->x && y >= r->y && x < r->x + r->width && y < r->y + r->height;
}

static json_t *describe(void *object)
{
    struct atspi_rect r = {0};
    gchar *name = spi->name(object, NULL), *role = spi->role(object, NULL);
    atspi_extents(spi, object, &r);
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
    int64_t start, step; /* step: clock_ns() at the start of the last element */
    int budget, ms;
    bool torn;                                     /* an element did not answer in time */
    bool enter, known;                             /* about the element that a key would press */
    bool (*visit)(struct search *q, void *window); /* returns true to end the search */
    json_t *(*read)(const struct atspi *spi,
                    void *object); /* reads the element's text; NULL: reads name and role */
};

static bool is_over(struct search *q)
{
    bool over = --q->budget < 0 || clock_ms_since(q->start) > q->ms;
    q->torn = q->torn || over || clock_ms_since(q->step) > CALL_MS * 0.9;
    q->step = clock_ns();
    return over;
}

/* Order of windows in a search; of two windows with the same title the active one is first. */
enum { TITLED_AND_ACTIVE, TITLED, OTHERS };

static int class_of(const struct search *q, void *window)
{
    if (!*q->window || !is_called(window, spi->name, q->window))
        return OTHERS;
    return is_in(window, ATSPI_ACTIVE) ? TITLED_AND_ACTIVE : TITLED;
}

/* Visits the visible windows: those of the right title, then the others. */
static void each_window(struct search *q)
{
    void *desktop = spi->desktop(0);
    int n = desktop ? spi->child_count(desktop, NULL) : 0;
    bool enough = false;
    for (int pass = *q->window ? TITLED_AND_ACTIVE : OTHERS; pass <= OTHERS && !enough; pass++)
        for (int i = n - 1; i >= 0 && !enough && !is_over(q); i--) {
            void *program = spi->child_at(desktop, i, NULL);
            int windows = program ? spi->child_count(program, NULL) : 0;
            for (int k = 0; k < windows && k < CHILDREN && !enough && !is_over(q); k++) {
                void *w = spi->child_at(program, k, NULL);
                if (w && class_of(q, w) == pass && is_in(w, ATSPI_SHOWING))
                    enough = q->visit(q, w);
                atspi_drop(w);
            }
            atspi_drop(program);
        }
    atspi_drop(desktop);
}

/* Descends to the deepest element at the point and adds it to q->found. */
static bool visit_at(struct search *q, void *window)
{
    struct atspi_rect r;
    if (!atspi_extents(spi, window, &r) || !holds(&r, q->x, q->y))
        return false;
    void *at = g_object_ref(window);
    for (int depth = 0; depth < DEPTH && !is_over(q); depth++) {
        void *component = spi->component(at);
        void *inner = component ? spi->at_point(component, q->x, q->y, ATSPI_SCREEN, NULL) : NULL;
        atspi_drop(component);
        if (!inner || inner == at) {
            atspi_drop(inner);
            break;
        }
        atspi_drop(at);
        at = inner;
    }
    if (at != window)
        json_array_append_new(q->found, q->read ? q->read(spi, at) : describe(at));
    atspi_drop(at);
    return json_array_size(q->found) > 0;
}

static void find_below(struct search *q, void *object, int depth)
{
    if (depth > DEPTH || is_over(q) || json_array_size(q->found) == ELEMENTS_MATCHES)
        return;
    if (is_called(object, spi->role, q->role) && is_called(object, spi->name, q->name) &&
        is_in(object, ATSPI_SHOWING)) {
        json_array_append_new(q->found, describe(object));
        return;
    }
    int n = spi->child_count(object, NULL);
    for (int i = 0; i < n && i < CHILDREN; i++) {
        void *child = spi->child_at(object, i, NULL);
        if (child)
            find_below(q, child, depth + 1);
        atspi_drop(child);
    }
}

static bool visit_find(struct search *q, void *window)
{
    find_below(q, window, 0);
    return json_array_size(q->found) == ELEMENTS_MATCHES;
}

/* ---- the element that a key would press ------------------------------------------------------------- */

static void *last_focus; /* element of the last focus event */

/* Returns whether Enter or space press an element of this role; in lists, the entry. */
static bool is_pressed_by_keys(void *object)
{
    static const char *const roles[] = {
        "push button", "toggle button",   "check box",       "radio button", "switch",     "link",
        "menu item",   "check menu item", "radio menu item", "list item",    "table cell", "tree item",
        "icon",        "push button menu"};
    gchar *role = spi->role(object, NULL);
    bool yes = false;
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        yes = yes || !strcmp(role, roles[i]);
    g_free(role);
    return yes && !is_in(object, ATSPI_EDITABLE);
}

/* Returns the window of an element: the ancestor just below its program. The caller drops it; NULL: none. */
static void *window_of(void *object)
{
    void *at = g_object_ref(object);
    for (int depth = 0; depth < DEPTH; depth++) {
        void *up = spi->parent(at, NULL);
        bool top = !up || is_called(up, spi->role, "application");
        if (top) {
            atspi_drop(up);
            return at;
        }
        atspi_drop(at);
        at = up;
    }
    atspi_drop(at);
    return NULL;
}

static bool find_default(struct search *q, void *object, int depth)
{
    if (depth > DEPTH || is_over(q) || is_called(object, spi->role, "document web"))
        return false;
    if (is_in(object, ATSPI_IS_DEFAULT) && is_in(object, ATSPI_SENSITIVE)) {
        json_array_append_new(q->found, describe(object));
        return true;
    }
    int n = spi->child_count(object, NULL);
    bool enough = false;
    for (int i = 0; i < n && i < CHILDREN && !enough; i++) {
        void *child = spi->child_at(object, i, NULL);
        enough = child && is_in(child, ATSPI_SHOWING) && find_default(q, child, depth + 1);
        atspi_drop(child);
    }
    return enough;
}

/* Replaces the focused element in q->found by the element that the keys would press, or by its text. */
static void keep_pressed(struct search *q, void *window, void *focus)
{
    json_array_clear(q->found);
    if (q->read) {
        json_array_append_new(q->found, q->read(spi, focus));
        return;
    }
    if (is_pressed_by_keys(focus))
        json_array_append_new(q->found, describe(focus));
    else if (q->enter && !is_in(focus, ATSPI_MULTI_LINE)) {
        q->ms = (int)clock_ms_since(q->start) + DEFAULT_MS;
        find_default(q, window, 0);
        q->known = q->known && (json_array_size(q->found) || !q->torn);
    }
}

static void *focus_below(struct search *q, void *object, int depth)
{
    void *found = NULL;
    if (depth > DEPTH || is_over(q))
        return NULL;
    bool focused = depth && is_in(object, ATSPI_FOCUSED);
    if (focused && !is_called(object, spi->role, "panel")) /* Qt's button box reports focus, too */
        return g_object_ref(object);
    int n = spi->child_count(object, NULL);
    for (int i = 0; i < n && i < CHILDREN && !found; i++) {
        void *child = spi->child_at(object, i, NULL);
        found = child && is_in(child, ATSPI_SHOWING) ? focus_below(q, child, depth + 1) : NULL;
        atspi_drop(child);
    }
    return found || !focused ? found : g_object_ref(object);
}

/* Returns a focused field outside of pages, or NULL: Chromium also reports its page as focused while the
 * address bar has the focus. */
static void *field_below(struct search *q, void *object, int depth)
{
    void *found = NULL;
    if (depth > DEPTH || is_over(q) || is_called(object, spi->role, "document web"))
        return NULL;
    if (depth && is_in(object, ATSPI_FOCUSED) && is_in(object, ATSPI_EDITABLE))
        return g_object_ref(object);
    int n = spi->child_count(object, NULL);
    for (int i = 0; i < n && i < CHILDREN && !found; i++) {
        void *child = spi->child_at(object, i, NULL);
        found = child && is_in(child, ATSPI_SHOWING) ? field_below(q, child, depth + 1) : NULL;
        atspi_drop(child);
    }
    return found;
}

/* Reads the focused element of a window. Returns true to end the search. The focus is unknown if an element
 * did not answer in time, because it may contain the focus. */
static bool read_pressed(struct search *q, void *window)
{
    q->step = clock_ns();
    q->torn = false;
    void *focus = q->read == elements_read_field ? field_below(q, window, 0) : NULL;
    focus = focus ? focus : focus_below(q, window, 0);
    is_over(q);
    if (!focus || q->torn) {
        atspi_drop(focus);
        return q->torn;
    }
    q->known = true;
    keep_pressed(q, window, focus);
    atspi_drop(focus);
    return true;
}

static bool visit_pressed(struct search *q, void *window)
{
    bool meant = !*q->window || class_of(q, window) != OTHERS || is_in(window, ATSPI_ACTIVE);
    return meant && read_pressed(q, window);
}

/* Tries the element of the last focus event first: it is the usual answer and saves a search. Returns false
 * if the element does not have the focus any more. */
static bool pressed_at_last_focus(struct search *q)
{
    if (!last_focus || !is_in(last_focus, ATSPI_FOCUSED) || is_called(last_focus, spi->role, "panel"))
        return false;
    void *window = window_of(last_focus);
    q->known = window && is_in(last_focus, ATSPI_SHOWING) &&
               (!*q->window || is_called(window, spi->name, q->window));
    if (q->known)
        keep_pressed(q, window, last_focus);
    atspi_drop(window);
    return q->known;
}

static void begin_search(struct search *q)
{
    q->start = q->step = clock_ns();
    q->budget = ELEMENTS_MOST;
    q->ms = SEARCH_MS;
    q->found = json_array();
}

/* Finds the element with the focus, once at the start; later changes arrive as events. */
static bool visit_focus(struct search *q, void *window)
{
    void *focus = focus_below(q, window, 0);
    if (focus)
        json_array_append_new(q->found, describe(focus));
    atspi_drop(focus);
    return focus != NULL;
}

/* ---- lines ------------------------------------------------------------------------------------------ */

static int wire = -1;

static void say(json_t *line)
{
    char *text = json_line(line, JSON_COMPACT);
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

static void on_focus(struct atspi_event *v, void *arg)
{
    if (v->detail1 && v->source) {
        atspi_drop(last_focus);
        last_focus = g_object_ref(v->source);
        say(json_pack("{s:o}", "focus", describe(v->source)));
    }
    g_boxed_free(spi->event_type(), v);
}

static void answer(const char *text, size_t len)
{
    json_t *line = json_loadb(text, len, 0, NULL);
    const char *ask = json_string_value(json_object_get(line, "ask"));
    const char *window = json_string_value(json_object_get(line, "window"));
    const char *name = json_string_value(json_object_get(line, "name"));
    const char *role = json_string_value(json_object_get(line, "role"));
    struct search q = {
        .window = window ? window : "", .name = name ? name : "", .role = role ? atspi_role(role) : ""};
    q.x = (int)json_integer_value(json_object_get(line, "x"));
    q.y = (int)json_integer_value(json_object_get(line, "y"));
    q.enter = json_is_true(json_object_get(line, "enter"));
    bool dialog = ask && !strcmp(ask, "dialog"), field = ask && !strcmp(ask, "field");
    bool pressed = (ask && !strcmp(ask, "pressed")) || field || (dialog && q.x < 0);
    q.read = dialog ? elements_read_dialog : field ? elements_read_field : NULL;
    q.visit = pressed ? visit_pressed : ask && !strcmp(ask, "find") ? visit_find : visit_at;
    begin_search(&q);
    if (!pressed || field || !pressed_at_last_focus(&q))
        each_window(&q);
    say(json_pack("{s:O, s:o, s:b}", "id", json_object_get(line, "id"), "elements", q.found, "known",
                  !pressed || q.known));
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

_Noreturn void elements_serve(int in, int out)
{
    struct buf lines;
    struct search focus = {.window = "", .visit = visit_focus};
    if (dup2(in, 0) < 0 || out != in)
        _exit(1);
    wire = 0;
    int none = open("/dev/null", O_WRONLY | O_CLOEXEC); /* the library prints warnings to stderr */
    if (none >= 0 && (dup2(none, 1) < 0 || dup2(none, 2) < 0))
        _exit(1);
    close_range(3, ~0U, 0);
    signal(SIGINT, SIG_IGN); /* the parent decides */
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
    if (!(spi = atspi_load(NULL)) || spi->init() > 1)
        _exit(0);
    spi->set_timeout(CALL_MS, STARTUP_MS);
    void *listener = spi->listener_new(on_focus, NULL, NULL);
    if (listener)
        spi->listener_register(listener, "object:state-changed:focused", NULL);
    begin_search(&focus);
    each_window(&focus);
    if (json_array_size(focus.found))
        say(json_pack("{s:O}", "focus", json_array_get(focus.found, 0)));
    json_decref(focus.found);
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
