/* t_settle.c - tests when the screen is settled: a thread draws on a private X server, and the wait must
 * report why it ended.
 */
#include "canvas.h"
#include "check.h"

#include "base/clock.h"
#include "screen/screen.h"

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XTest.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- settling ---------------------------------------------------------------------------------- */

struct painter { /* redraws a rectangle in two colours until `end` */
    char display[16];
    int w, h, every_ms;
    atomic_bool end;
    bool wander;
};

static void *paint(void *arg)
{
    struct painter *p = arg;
    Display *dpy = XOpenDisplay(p->display);
    GC gc = XCreateGC(dpy, DefaultRootWindow(dpy), 0, NULL);
    for (int i = 0; !p->end; i++) {
        XSetForeground(dpy, gc, i & 1 ? 0xffffff : 0);
        XFillRectangle(dpy, DefaultRootWindow(dpy), gc, 40 + (p->wander ? i * 37 % 300 : 0), 40,
                       (unsigned)p->w, (unsigned)p->h);
        XSync(dpy, False);
        clock_sleep_ms(p->every_ms);
    }
    XFreeGC(dpy, gc);
    XCloseDisplay(dpy);
    return NULL;
}

static struct settled settle_under(struct canvas *t, int w, int h, int every_ms, bool wander, int times)
{
    struct painter p = {.w = w, .h = h, .every_ms = every_ms, .wander = wander};
    snprintf(p.display, sizeof p.display, "%s", t->x.display);
    struct screen *s = canvas_view(NULL, false, false);
    static const struct settle limits = {-1, -1, 1200};
    struct settled out = {0};
    pthread_t thread;
    if (w)
        pthread_create(&thread, NULL, paint, &p);
    for (int i = 0; i < times; i++)
        assert_int_equal(screen_settle(s, &limits, &out, &canvas_why), 0);
    p.end = true;
    if (w)
        pthread_join(thread, NULL);
    screen_close(s);
    return out;
}

static void check_settle(const char *const *extra)
{
    struct canvas t;
    canvas_open(&t, "640x400x24", extra);
    struct settled r = settle_under(&t, 0, 0, 0, false, 1);
    check_note("still screen: %s after %.0f ms", r.why, r.ms);
    assert_string_equal(r.why, "quiet");
    assert_true(r.ms >= 300);
    r = settle_under(&t, 2, 16, 120, false, 1); /* a fast caret */
    check_note("caret: %s after %.0f ms", r.why, r.ms);
    assert_true(!strcmp(r.why, "stable") || !strcmp(r.why, "quiet"));
    r = settle_under(&t, 200, 150, 70, true, 1);
    check_note("animation: %s after %.0f ms", r.why, r.ms);
    assert_string_equal(r.why, "timeout");
    assert_true(r.ms >= 1200 && r.ms < 6000); /* loaded machines are slow */
    canvas_close(&t);
}

static void t_settle(void **state)
{
    check_settle(NULL);
}

static void t_settle_polling(void **state)
{
    static const char *const no_damage[] = {"-extension", "DAMAGE", NULL};
    check_settle(no_damage);
}

static void t_settle_blinker(void **state)
{
    struct canvas t;
    canvas_open(&t, "640x400x24", NULL);
    /* High contrast, so that tiles differ and only the caret rule can make the screen quiet. */
    struct settled r = settle_under(&t, 23, 39, 110, false, 3);
    check_note("third wait with a caret: %s after %.0f ms", r.why, r.ms);
    assert_string_equal(r.why, "quiet");
    r = settle_under(&t, 24, 40, 110, false, 1); /* just too big for a caret: ignored after it has repeated */
    check_note("a blinking area: %s after %.0f ms", r.why, r.ms);
    assert_string_equal(r.why, "quiet");
    assert_true(r.ms >= 300);
    canvas_close(&t);
}

/* The animation is above the viewed window. */
static void t_settle_elsewhere(void **state)
{
    struct canvas t;
    char view[32];
    struct settled out;
    pthread_t thread;
    canvas_open(&t, "640x400x24", NULL);
    struct painter p = {.w = 200, .h = 150, .every_ms = 20, .wander = true};
    snprintf(p.display, sizeof p.display, "%s", t.x.display);
    Display *d = XOpenDisplay(t.x.display);
    Window w = XCreateSimpleWindow(d, DefaultRootWindow(d), 40, 250, 300, 100, 0, 0, 0xffffff);
    XMapWindow(d, w);
    XSync(d, False);
    snprintf(view, sizeof view, "window:0x%lx", w);
    struct screen *s = canvas_view(view, false, false);
    pthread_create(&thread, NULL, paint, &p);
    assert_int_equal(screen_settle(s, NULL, &out, &canvas_why), 0);
    p.end = true;
    pthread_join(thread, NULL);
    check_note("%s after %.0f ms", out.why, out.ms);
    assert_string_equal(out.why, "quiet");
    screen_close(s);
    XCloseDisplay(d);
    canvas_close(&t);
}

/* A message that appears and disappears, and then the content: its return to the pixels below is a change. */
static void *show_message(void *arg)
{
    Display *dpy = XOpenDisplay(arg);
    GC gc = XCreateGC(dpy, DefaultRootWindow(dpy), 0, NULL);
    static const struct {
        int ms, x;
        unsigned long colour;
    } draw[] = {{50, 40, 0xffffff}, {220, 40, 0}, {220, 300, 0xffffff}};
    for (size_t i = 0; i < sizeof draw / sizeof *draw; i++) {
        clock_sleep_ms(draw[i].ms);
        XSetForeground(dpy, gc, draw[i].colour);
        XFillRectangle(dpy, DefaultRootWindow(dpy), gc, draw[i].x, 40, 90, 20);
        XSync(dpy, False);
    }
    XFreeGC(dpy, gc);
    XCloseDisplay(dpy);
    return NULL;
}

static void t_settle_message(void **state)
{
    struct canvas t;
    canvas_open(&t, "640x400x24", NULL);
    struct screen *s = canvas_view(NULL, false, false);
    struct settled out;
    struct image im = {0};
    pthread_t thread;
    pthread_create(&thread, NULL, show_message, t.x.display);
    assert_int_equal(screen_settle(s, NULL, &out, &canvas_why), 0);
    check_note("a message for 220 ms, content after as long: %s after %.0f ms", out.why, out.ms);
    assert_int_equal(screen_capture(s, &im, &canvas_why), 0);
    assert_int_equal(*image_at(&im, 310, 50), 0xff);
    pthread_join(thread, NULL);
    image_free(&im);
    screen_close(s);
    canvas_close(&t);
}

/* Options are exact on a still screen. */
static void t_settle_options(void **state)
{
    static const struct {
        struct settle limits;
        double ms;
    } cases[] = {{{-1, 1000, -1}, 1000}, {{-1, 50, -1}, 50},   {{-1, 0, -1}, 0},
                 {{0, 0, -1}, 0},        {{200, 50, -1}, 200}, {{-1, 4000, -1}, 4000}};
    struct canvas t;
    canvas_open(&t, "320x200x24", NULL);
    struct screen *s = canvas_view(NULL, false, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct settled out, least = {.ms = 1e9};
        for (int k = 0; k < (cases[i].ms > 500 ? 1 : 5); k++) {
            assert_int_equal(screen_settle(s, &cases[i].limits, &out, &canvas_why), 0);
            assert_string_equal(out.why, "quiet");
            assert_true(out.ms >= cases[i].ms);
            least.ms = out.ms < least.ms ? out.ms : least.ms;
        }
        check_note("minimum %g, quiet %g: %.1f ms", cases[i].limits.min_ms, cases[i].limits.quiet_ms,
                   least.ms);
    }
    screen_close(s);
    canvas_close(&t);
}

static void *stop_later(void *arg)
{
    clock_sleep_ms(100);
    screen_stop_all(STOP_FILE);
    return NULL;
}

static void t_settle_stop(void **state)
{
    struct canvas t;
    canvas_open(&t, "320x200x24", NULL);
    struct screen *s = canvas_view(NULL, false, false);
    struct settled out;
    static const struct settle slow = {5000, -1, 9000};
    pthread_t thread;
    pthread_create(&thread, NULL, stop_later, NULL);
    assert_int_equal(screen_settle(s, &slow, &out, &canvas_why), -1);
    pthread_join(thread, NULL);
    assert_int_equal(canvas_why.kind, ERR_STOPPED);
    assert_string_equal(out.why, "stopped");
    assert_true(out.ms < slow.min_ms);
    screen_stop_all(0);
    screen_close(s);
    canvas_close(&t);
}

/* ---- busy program ------------------------------------------------------------------------------ */

enum { BUSY_MS = 900 };

static struct {
    char display[16];
    Window window;
    atomic_bool ready, end, drawn;
} busy;

/* A window that answers pings. After a click its program is busy for BUSY_MS before it draws. */
static void *work(void *arg)
{
    Display *d = XOpenDisplay(busy.display);
    Window root = DefaultRootWindow(d), w = XCreateSimpleWindow(d, root, 50, 50, 200, 150, 0, 0, 0xffffff);
    Atom protocols = XInternAtom(d, "WM_PROTOCOLS", False), ping = XInternAtom(d, "_NET_WM_PING", False);
    GC gc = XCreateGC(d, w, 0, NULL);
    XSetWMProtocols(d, w, &ping, 1);
    XSelectInput(d, w, ButtonPressMask | KeyPressMask | ExposureMask);
    XMapRaised(d, w);
    XSync(d, False);
    clock_sleep_ms(100);
    XSetInputFocus(d, w, RevertToParent, CurrentTime);
    XSync(d, False);
    busy.window = w;
    for (busy.ready = true; !busy.end; clock_sleep_ms(5))
        while (XPending(d)) {
            XEvent e;
            XNextEvent(d, &e);
            if (e.type == ButtonPress) {
                clock_sleep_ms(BUSY_MS);
                XFillRectangle(d, w, gc, 20, 20, 100, 80);
                XSync(d, False);
                busy.drawn = true;
            } else if (e.type == ClientMessage && e.xclient.message_type == protocols) {
                e.xclient.window = root;
                XSendEvent(d, root, False, SubstructureNotifyMask | SubstructureRedirectMask, &e);
                XFlush(d);
            }
        }
    XCloseDisplay(d);
    return NULL;
}

static void t_settle_busy(void **state)
{
    struct canvas t;
    canvas_open(&t, "640x400x24", NULL);
    snprintf(busy.display, sizeof busy.display, "%s", t.x.display);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    while (!busy.ready)
        clock_sleep_ms(10);
    struct screen *s = canvas_view(NULL, false, false);
    struct settled out;
    Display *d = XOpenDisplay(t.x.display);
    XTestFakeMotionEvent(d, -1, 100, 100, 0);
    XTestFakeButtonEvent(d, 1, True, 0);
    XTestFakeButtonEvent(d, 1, False, 0);
    XSync(d, False);
    assert_int_equal(screen_settle(s, NULL, &out, &canvas_why), 0);
    check_note("a program busy for %d ms: %s after %.0f ms", BUSY_MS, out.why, out.ms);
    assert_true(busy.drawn);
    assert_int_equal(screen_settle(s, NULL, &out, &canvas_why), 0);
    check_note("then: %s after %.0f ms", out.why, out.ms);
    assert_string_equal(out.why, "quiet");
    busy.end = true;
    pthread_join(thread, NULL);
    XCloseDisplay(d);
    screen_close(s);
    canvas_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("settling: quiet, stable under a caret, timeout under an animation", t_settle),
    CLAIM("settling without XDAMAGE gives the same results", t_settle_polling),
    CLAIM("a blinking caret is ignored, and a larger blinking area once it repeats", t_settle_blinker),
    CLAIM("a message that disappears is a change, although the pixels below it are not new",
          t_settle_message),
    CLAIM("quiet time and minimum are exact, also 0 and 1000, and the minimum follows the quiet time",
          t_settle_options),
    CLAIM("an animation beside the view does not prolong the wait", t_settle_elsewhere),
    CLAIM("a stop ends the wait", t_settle_stop),
    CLAIM("the wait includes the time that a program is busy after a click", t_settle_busy),
};

CHECK_MAIN()
