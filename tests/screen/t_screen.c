/* t_screen.c - tests captures and window queries against drawn content.
 *
 * The test draws on a private X server through its own connection and compares pixels of every depth and
 * path, views of monitors and windows, the cursor image, and the active window and its name. t_settle.c tests
 * settling.
 */
#include "canvas.h"
#include "check.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/image.h"
#include "screen/screen.h"
#include "screen/x11/x11_impl.h"

#include <X11/Xatom.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/Xrandr.h>

static void capture(struct screen *s, struct image *im)
{
    if (screen_capture(s, im, &canvas_why))
        fail_msg("%s", canvas_why.text);
}

/* ---- pixels ------------------------------------------------------------------------------------ */

/* A pattern in which each pixel encodes its position, in colours that 5 bits represent exactly. */
static void pattern_rgb(int x, int y, uint8_t rgb[3])
{
    static const uint8_t level[4] = {0, 255, 132, 33}; /* n * 255 / 31 for n = 0, 31, 16, 4 */
    rgb[0] = level[x & 3];
    rgb[1] = (x ^ y) & 4 ? 255 : 0;
    rgb[2] = level[(x * 7 + y * 3) >> 3 & 3];
}

static unsigned long pixel_of(Display *dpy, const uint8_t rgb[3])
{
    Visual *v = DefaultVisual(dpy, DefaultScreen(dpy));
    unsigned long mask[3] = {v->red_mask, v->green_mask, v->blue_mask}, p = 0;
    for (int c = 0; c < 3; c++) {
        unsigned long max = mask[c] >> __builtin_ctzl(mask[c]);
        p |= (rgb[c] * max + 127) / 255 << __builtin_ctzl(mask[c]);
    }
    return p;
}

static void draw_pattern(struct canvas *t, int w, int h)
{
    int depth = DefaultDepth(t->other, DefaultScreen(t->other));
    XImage *im = XCreateImage(t->other, DefaultVisual(t->other, DefaultScreen(t->other)), (unsigned)depth,
                              ZPixmap, 0, NULL, (unsigned)w, (unsigned)h, 32, 0);
    im->data = malloc((size_t)im->bytes_per_line * (size_t)h);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            uint8_t rgb[3];
            pattern_rgb(x, y, rgb);
            XPutPixel(im, x, y, pixel_of(t->other, rgb));
        }
    XPutImage(t->other, t->root, t->gc, im, 0, 0, 0, 0, (unsigned)w, (unsigned)h);
    XSync(t->other, False);
    XDestroyImage(im);
}

static void check_pattern(const struct image *im, int ox, int oy)
{
    for (int y = 0; y < im->h; y++)
        for (int x = 0; x < im->w; x++) {
            uint8_t want[3];
            const uint8_t *got = im->rgb + 3 * (y * im->w + x);
            pattern_rgb(x + ox, y + oy, want);
            if (memcmp(got, want, 3))
                fail_msg("pixel %d,%d is %d %d %d, drawn was %d %d %d", x, y, got[0], got[1], got[2], want[0],
                         want[1], want[2]);
        }
}

static void check_paths(const char *screen)
{
    struct canvas t;
    canvas_open(&t, screen, NULL);
    draw_pattern(&t, 321, 243);
    for (int no_shm = 0; no_shm < 2; no_shm++) {
        struct screen *s = canvas_view(NULL, no_shm, false);
        struct image im = {0};
        int64_t start = clock_ns();
        for (int i = 0; i < 3; i++) {
            capture(s, &im);
            assert_int_equal(im.w, 321);
            assert_int_equal(im.h, 243);
            check_pattern(&im, 0, 0);
        }
        struct buf b;
        buf_init(&b, 10000);
        screen_describe(s, &b);
        assert_non_null(strstr(b.data, no_shm ? "shm: no, disabled" : "shm: yes"));
        check_note("%s %s: %.2f ms a capture, checked", screen, no_shm ? "XGetImage" : "MIT-SHM",
                   clock_ms_since(start) / 3);
        buf_free(&b);
        image_free(&im);
        screen_close(s);
    }
    canvas_close(&t);
}

static void t_depth24(void **state)
{
    check_paths("321x243x24");
}

static void t_depth16(void **state)
{
    check_paths("321x243x16");
}

static void t_depth30(void **state)
{
    check_paths("321x243x30");
}

static void t_formats(void **state)
{
    static const struct {
        int bits, order;
        unsigned long r, g, b;
        uint8_t bytes[4], want[3];
    } cases[] = {
        {32, LSBFirst, 0xff0000, 0xff00, 0xff, {3, 2, 1, 9}, {1, 2, 3}},
        {32, MSBFirst, 0xff0000, 0xff00, 0xff, {9, 1, 2, 3}, {1, 2, 3}},
        {32, LSBFirst, 0xff, 0xff00, 0xff0000, {1, 2, 3, 9}, {1, 2, 3}},
        {24, LSBFirst, 0xff0000, 0xff00, 0xff, {3, 2, 1}, {1, 2, 3}},
        {24, MSBFirst, 0xff0000, 0xff00, 0xff, {1, 2, 3}, {1, 2, 3}},
        {16, LSBFirst, 0xf800, 0x7e0, 0x1f, {0x1f, 0x84}, {132, 130, 255}}, /* 10000 100000 11111 */
        {16, MSBFirst, 0xf800, 0x7e0, 0x1f, {0x84, 0x1f}, {132, 130, 255}},
        {16, LSBFirst, 0x7c00, 0x3e0, 0x1f, {0xff, 0x7f}, {255, 255, 255}},
        {32, LSBFirst, 0x3ff00000, 0xffc00, 0x3ff, {0xff, 0x03, 0x08, 0x20}, {128, 128, 255}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        XImage im = {.width = 1,
                     .height = 1,
                     .format = ZPixmap,
                     .data = (char *)cases[i].bytes,
                     .byte_order = cases[i].order,
                     .bits_per_pixel = cases[i].bits,
                     .bytes_per_line = 4,
                     .red_mask = cases[i].r,
                     .green_mask = cases[i].g,
                     .blue_mask = cases[i].b};
        uint8_t rgb[3];
        assert_int_equal(pixels_to_rgb(&im, rgb, 1, 1, &canvas_why), 0);
        if (memcmp(rgb, cases[i].want, 3))
            fail_msg("case %zu: %d %d %d", i, rgb[0], rgb[1], rgb[2]);
    }
    XImage palette = {.width = 1, .height = 1, .format = ZPixmap, .bits_per_pixel = 8};
    uint8_t rgb[3];
    assert_int_equal(pixels_to_rgb(&palette, rgb, 1, 1, &canvas_why), -1);
}

static void t_cursor(void **state)
{
    struct canvas t;
    canvas_open(&t, "200x150x24", NULL);
    XSetForeground(t.other, t.gc, 0x204060);
    XFillRectangle(t.other, t.root, t.gc, 0, 0, 200, 150);
    /* A red 9x9 square as the cursor; its centre is the hot spot */
    Pixmap p = XCreatePixmap(t.other, t.root, 9, 9, 1);
    GC one = XCreateGC(t.other, p, 0, NULL);
    XSetForeground(t.other, one, 1);
    XFillRectangle(t.other, p, one, 0, 0, 9, 9);
    XColor red = {.red = 65535}, black = {0};
    XDefineCursor(t.other, t.root, XCreatePixmapCursor(t.other, p, p, &red, &black, 4, 4));
    XFreeGC(t.other, one);
    XSync(t.other, False);

    struct screen *s = canvas_view(NULL, false, true);
    struct image im = {0};
    assert_int_equal(screen_move(s, 100, 60, &canvas_why), 0);
    capture(s, &im);
    static const uint8_t r[3] = {255, 0, 0}, back[3] = {0x20, 0x40, 0x60};
    assert_memory_equal(im.rgb + 3 * (56 * 200 + 96), r, 3);
    assert_memory_equal(im.rgb + 3 * (64 * 200 + 104), r, 3);
    assert_memory_equal(im.rgb + 3 * (55 * 200 + 96), back, 3);
    assert_memory_equal(im.rgb + 3 * (64 * 200 + 105), back, 3);
    assert_int_equal(screen_move(s, 199, 0, &canvas_why), 0); /* clipped at the corner */
    capture(s, &im);
    assert_memory_equal(im.rgb + 3 * 195, r, 3);
    screen_close(s);

    s = canvas_view(NULL, false, false);
    capture(s, &im);
    assert_memory_equal(im.rgb + 3 * 195, back, 3); /* off by default */
    image_free(&im);
    screen_close(s);

    /* Half transparent, premultiplied; one pixel per long, with garbage in the upper half. */
    unsigned long argb = 0xdeadbeef80400020ul;
    uint8_t rgb[3] = {100, 101, 102};
    struct image dot = {rgb, 1, 1};
    pixels_blend(&dot, &argb, 0, 0, 1, 1);
    static const uint8_t mixed[3] = {64 + 50, 50, 32 + 51};
    assert_memory_equal(rgb, mixed, 3);
    canvas_close(&t);
}

/* ---- views ------------------------------------------------------------------------------------- */

static void add_monitor(struct canvas *t, const char *name, int x, int y, int w, int h, bool with_output)
{
    XRRScreenResources *res = XRRGetScreenResources(t->other, t->root);
    XRRMonitorInfo *m = XRRAllocateMonitor(t->other, with_output);
    m->name = XInternAtom(t->other, name, False);
    m->x = x, m->y = y, m->width = w, m->height = h;
    m->mwidth = m->mheight = 100;
    if (with_output)
        m->outputs[0] = res->outputs[0];
    XRRSetMonitor(t->other, t->root, m);
    XRRFreeMonitors(m);
    XRRFreeScreenResources(res);
    XSync(t->other, False);
}

static void t_monitors(void **state)
{
    struct canvas t;
    canvas_open(&t, "640x400x24", NULL);
    draw_pattern(&t, 640, 400);
    add_monitor(&t, "left", 0, 0, 320, 400, true);
    add_monitor(&t, "right", 320, 100, 320, 200, false);
    struct image im = {0};
    static const struct {
        const char *view;
        struct screen_rect r;
    } views[] = {
        {"all", {0, 0, 640, 400}}, {"left", {0, 0, 320, 400}},  {"right", {320, 100, 320, 200}},
        {"0", {0, 0, 320, 400}},   {"1", {320, 100, 320, 200}},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        struct screen *s = canvas_view(views[i].view, false, false);
        struct screen_rect r = screen_view(s);
        if (memcmp(&r, &views[i].r, sizeof r))
            fail_msg("view %s is %dx%d+%d+%d", views[i].view, r.w, r.h, r.x, r.y);
        capture(s, &im);
        check_pattern(&im, r.x, r.y);
        assert_true(screen_visible(s, 10, 10));
        assert_true(screen_visible(s, 630, 150));
        assert_false(screen_visible(s, 630, 50)); /* above the right monitor: not visible */
        screen_close(s);
    }
    struct screen_options o = {.view = "middle"};
    assert_null(screen_open(&o, &canvas_why));
    assert_int_equal(canvas_why.kind, ERR_USAGE);
    assert_non_null(strstr(canvas_why.text, "0 or left, 1 or right"));

    struct screen *s = canvas_view("right", false, false);
    Atom right = XInternAtom(t.other, "right", False);
    XRRDeleteMonitor(t.other, t.root, right);
    add_monitor(&t, "right", 320, 200, 300, 150, false); /* another mode, another position */
    capture(s, &im);
    assert_int_equal(im.w, 300);
    check_pattern(&im, 320, 200);
    XRRDeleteMonitor(t.other, t.root, right);
    XSync(t.other, False);
    assert_int_equal(screen_capture(s, &im, &canvas_why), -1);
    assert_int_equal(canvas_why.kind, ERR_ENV); /* it existed when the run began */
    assert_non_null(strstr(canvas_why.text, "'right'"));
    screen_close(s);
    image_free(&im);
    canvas_close(&t);
}

static Window make_window(struct canvas *t, const char *title, int x, int y, int w, int h)
{
    Window win = XCreateSimpleWindow(t->other, t->root, x, y, (unsigned)w, (unsigned)h, 0, 0, 0x808080);
    XChangeProperty(t->other, win, XInternAtom(t->other, "_NET_WM_NAME", False),
                    XInternAtom(t->other, "UTF8_STRING", False), 8, PropModeReplace,
                    (const unsigned char *)title, (int)strlen(title));
    XClassHint hint = {(char *)"instance", (char *)"Klass"};
    XSetClassHint(t->other, win, &hint);
    XMapRaised(t->other, win);
    XSync(t->other, False);
    return win;
}

static void t_window_view(void **state)
{
    struct canvas t;
    canvas_open(&t, "640x400x24", NULL);
    Window w = make_window(&t, "w", 100, 50, 200, 120);
    draw_pattern(&t, 640, 400);
    char view[32];
    snprintf(view, sizeof view, "window:0x%lx", w);
    struct screen *s = canvas_view(view, false, false);
    struct image im = {0};
    capture(s, &im);
    assert_int_equal(im.w, 200);
    assert_int_equal(im.h, 120);
    check_pattern(&im, 100, 50);
    XMoveWindow(t.other, w, 540, 300); /* now half off the screen */
    XSync(t.other, False);
    draw_pattern(&t, 640, 400);
    capture(s, &im);
    assert_int_equal(im.w, 100);
    assert_int_equal(im.h, 100);
    check_pattern(&im, 540, 300);
    XDestroyWindow(t.other, w);
    XSync(t.other, False);
    assert_int_equal(screen_capture(s, &im, &canvas_why), -1);
    assert_non_null(strstr(canvas_why.text, "not found"));
    image_free(&im);
    screen_close(s);
    static const char *const bad[] = {"window:", "window:abc", "window:0x12345678", "window:-1"};
    for (size_t i = 0; i < 4; i++) {
        struct screen_options o = {.view = bad[i]};
        assert_null(screen_open(&o, &canvas_why));
    }
    canvas_close(&t);
}

/* ---- windows ----------------------------------------------------------------------------------- */

static void t_windows(void **state)
{
    struct canvas t;
    canvas_open(&t, "640x400x24", NULL);
    struct screen *s = canvas_view(NULL, false, false);
    char title[64], klass[64];
    assert_int_equal(screen_active_window(s, title, sizeof title, klass, sizeof klass), -1);
    make_window(&t, "Első – 日本", 0, 0, 200, 200);
    make_window(&t, "Second (unsaved)", 300, 0, 200, 200);
    Window hidden = make_window(&t, "Hidden", 0, 250, 50, 50);
    XUnmapWindow(t.other, hidden);
    XSync(t.other, False);

    /* without a window manager: the one under the pointer */
    assert_int_equal(screen_move(s, 50, 50, &canvas_why), 0);
    assert_int_equal(screen_active_window(s, title, sizeof title, klass, sizeof klass), 0);
    assert_string_equal(title, "Első – 日本");
    assert_string_equal(klass, "Klass");
    assert_int_equal(screen_active_window(s, title, 5, NULL, 0), 0);
    assert_string_equal(title, "Els"); /* truncated before the character that does not fit */

    assert_int_equal(xvfb_find_window(s, "日本$", title, sizeof title, &canvas_why), 1);
    assert_string_equal(title, "Első – 日本");
    assert_int_equal(xvfb_find_window(s, "^Second \\(\\w+\\)$", NULL, 0, &canvas_why), 1);
    assert_int_equal(xvfb_find_window(s, "(?i)SECOND", NULL, 0, &canvas_why), 1);
    assert_int_equal(xvfb_find_window(s, "Hidden", NULL, 0, &canvas_why), 0);
    assert_int_equal(xvfb_find_window(s, "(", NULL, 0, &canvas_why), -1);
    assert_int_equal(canvas_why.kind, ERR_USAGE);
    screen_close(s);
    canvas_close(&t);
}

/* Asks the window manager to activate w, and waits until it has. */
static void activate(struct canvas *t, Window w)
{
    Atom active = XInternAtom(t->other, "_NET_ACTIVE_WINDOW", False), type;
    XEvent ev = {.xclient = {.type = ClientMessage, .window = w, .message_type = active, .format = 32}};
    ev.xclient.data.l[0] = 2; /* a pager asks */
    XSendEvent(t->other, t->root, False, SubstructureRedirectMask | SubstructureNotifyMask, &ev);
    for (int ms = 0; ms < 3000; ms += 10) {
        unsigned long n = 0, after, *now = NULL;
        int format;
        XGetWindowProperty(t->other, t->root, active, 0, 1, False, XA_WINDOW, &type, &format, &n, &after,
                           (unsigned char **)(void *)&now);
        bool done = n == 1 && *now == w;
        if (now)
            XFree(now);
        if (done)
            return;
        clock_sleep_ms(10);
    }
    fail_msg("the window manager has not activated window 0x%lx", w);
}

static void t_activate(void **state)
{
    struct canvas t;
    canvas_open(&t, "640x400x24", NULL);
    if (xvfb_window_manager(&t.x)) {
        check_note("openbox is not installed");
        canvas_close(&t);
        skip();
    }
    struct screen *s = canvas_view(NULL, false, false);
    Window one = make_window(&t, "one", 0, 0, 200, 200), two = make_window(&t, "two", 100, 0, 200, 200);
    char title[64];
    assert_true(xvfb_wait_window(&t.x, "^two$"));
    Window order[] = {one, two, one};
    for (int i = 0; i < 3; i++) {
        activate(&t, order[i]);
        assert_int_equal(screen_active_window(s, title, sizeof title, NULL, 0), 0);
        assert_string_equal(title, order[i] == one ? "one" : "two");
    }
    screen_close(s);
    canvas_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a capture equals the drawn content, depth 24, with shared memory and without", t_depth24),
    CLAIM("a capture equals the drawn content, depth 16", t_depth16),
    CLAIM("a capture equals the drawn content, depth 30", t_depth30),
    CLAIM("pixels of every mask and byte order become RGB; palettes are refused", t_formats),
    CLAIM("the cursor is drawn at its hot spot, clipped, and only on request", t_cursor),
    CLAIM("views: all, monitors by name and number, gaps, unknown names, changed and removed monitors",
          t_monitors),
    CLAIM("a window view follows its window and fails when it is closed", t_window_view),
    CLAIM("windows are found by title, the active one is named, bad patterns are refused", t_windows),
    CLAIM("the active window is the one that the window manager has activated", t_activate),
};

CHECK_MAIN()
