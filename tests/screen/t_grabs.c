/* t_grabs.c - tests that input taken or changed by another program is not reported as done.
 *
 * The test's own connection is the other program. Menus of real toolkits grab keyboard and pointer too, and
 * must be usable.
 */
#include "check.h"
#include "stage.h"
#include "typed_field.h"

#include "base/clock.h"

#include <pthread.h>
#include <string.h>
#include <xcb/xcb.h>

static int grab_keyboard(Display *dpy)
{
    int rc = XGrabKeyboard(dpy, DefaultRootWindow(dpy), False, GrabModeAsync, GrabModeAsync, CurrentTime);
    XSync(dpy, False);
    return rc;
}

static void let_go(Display *dpy)
{
    XUngrabKeyboard(dpy, CurrentTime);
    XUngrabPointer(dpy, CurrentTime);
    XSync(dpy, False);
}

static size_t keys_seen(struct stage *t)
{
    return json_array_size(stage_events(t, "key_press"));
}

static void t_keyboard(void **state)
{
    struct stage t;
    struct err e = ERR_INIT;
    const uint32_t save[] = {XK_Control_L, XK_s};
    stage_open(&t);
    assert_int_equal(grab_keyboard(t.other), GrabSuccess);
    assert_int_equal(screen_type(t.s, "abc", 3, &e), -1);
    assert_non_null(strstr(e.text, "another program (t_grabs) holds the keyboard"));
    assert_int_equal(screen_chord(t.s, save, 2, &e), -1);
    assert_non_null(strstr(e.text, "holds the keyboard"));
    assert_int_equal(pressed(t.other), 0);
    assert_int_equal(keys_seen(&t), 0);
    let_go(t.other);
    must(screen_type(t.s, "abc", 3, &why));
    must(screen_chord(t.s, save, 2, &why));
    assert_int_equal(keys_seen(&t), 5);
    stage_close(&t);
}

static void t_held_key(void **state)
{
    struct stage t;
    const uint32_t keys[] = {XK_Shift_L, XK_a};
    stage_open(&t);
    must(screen_key(t.s, XK_Shift_L, true, &why));
    assert_int_equal(pressed(t.other), 1);
    XDevice *mouse = persons_mouse(t.other);
    XTestFakeDeviceButtonEvent(t.other, mouse, 1, True, NULL, 0, CurrentTime);
    XSync(t.other, False);
    assert_int_equal(screen_chord(t.s, keys, 2, NULL), -1); /* the user holds a button */
    XTestFakeDeviceButtonEvent(t.other, mouse, 1, False, NULL, 0, CurrentTime);
    XSync(t.other, False);
    assert_int_equal(pressed(t.other), 1); /* for later actions */
    must(screen_key(t.s, XK_Shift_L, false, &why));
    assert_int_equal(pressed(t.other), 0);
    XCloseDevice(t.other, mouse);
    stage_close(&t);
}

static void *grab_later(void *arg)
{
    clock_sleep_ms(150);
    grab_keyboard(arg);
    return NULL;
}

static void t_middle(void **state)
{
    struct stage t;
    struct err e = ERR_INIT;
    pthread_t thread;
    static const char text[] =
        "a text that takes longer to type than it takes to grab the keyboard, and continues "
        "for another line of some eighty characters, so that it ends after the grab";
    stage_open(&t);
    pthread_create(&thread, NULL, grab_later, t.other);
    assert_int_equal(screen_type(t.s, text, strlen(text), &e), -1);
    pthread_join(thread, NULL);
    assert_non_null(strstr(e.text, "unsure"));
    assert_non_null(strstr(e.text, "holds the keyboard"));
    assert_true(keys_seen(&t) < strlen(text));
    assert_int_equal(pressed(t.other), 0);
    stage_close(&t);
}

static void t_hotkey(void **state)
{
    struct stage t;
    struct err e = ERR_INIT;
    stage_open(&t);
    XGrabKey(t.other, XKeysymToKeycode(t.other, XK_e), 0, DefaultRootWindow(t.other), False, GrabModeAsync,
             GrabModeAsync);
    XSync(t.other, False);
    assert_int_equal(screen_type(t.s, "hello", 5, &e), -1);
    assert_non_null(strstr(e.text, "a hotkey"));
    assert_int_equal(keys_seen(&t), 0);
    must(screen_type(t.s, "hallo", 5, &why));
    assert_int_equal(keys_seen(&t), 5);
    stage_close(&t);
}

static void t_pointer(void **state)
{
    struct stage t;
    struct err e = ERR_INIT;
    stage_open(&t);
    XGrabPointer(t.other, DefaultRootWindow(t.other), False, ButtonPressMask, GrabModeAsync, GrabModeAsync,
                 None, None, CurrentTime);
    XSync(t.other, False);
    assert_int_equal(screen_click(t.s, 100, 100, 1, 1, &e), -1);
    assert_non_null(strstr(e.text, "another program (t_grabs) holds the pointer"));
    assert_int_equal(pressed(t.other), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    let_go(t.other);
    must(screen_click(t.s, 100, 100, 1, 1, &why));
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 1);
    stage_close(&t);
}

/* Shows a window of the other program and waits until it is mapped. */
static void show_window(Display *dpy, int x, int y)
{
    XEvent ev;
    Window w = XCreateSimpleWindow(dpy, DefaultRootWindow(dpy), x, y, 100, 100, 0, 0, 0);
    XSelectInput(dpy, w, ButtonPressMask | ExposureMask);
    XMapRaised(dpy, w);
    XMoveWindow(dpy, w, x, y);
    XWindowEvent(dpy, w, ExposureMask, &ev);
    XSync(dpy, False);
}

static void t_refused(void **state)
{
    struct stage t;
    XEvent ev;
    struct err e = ERR_INIT;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    XGrabPointer(t.other, DefaultRootWindow(t.other), False, ButtonPressMask, GrabModeAsync, GrabModeAsync,
                 None, None, CurrentTime);
    XSync(t.other, False);
    XWarpPointer(t.other, None, DefaultRootWindow(t.other), 0, 0, 0, 0, 120, 130);
    XSync(t.other, False);
    assert_int_equal(screen_button(t.s, 1, true, &e), -1);
    assert_non_null(strstr(e.text, "somebody else moved the pointer"));
    let_go(t.other);
    show_window(t.other, 300, 300);
    must(screen_click(t.s, 350, 350, 1, 1, &why));
    XSync(t.other, False);
    assert_true(XCheckTypedEvent(t.other, ButtonPress, &ev));
    stage_close(&t);
}

/* The grabbing program uses the pointer itself, as a viewer of another machine or a game. */
static void t_own_pointer(void **state)
{
    struct stage t;
    stage_open(&t);
    show_window(t.other, 300, 300);
    must(screen_move(t.s, 350, 350, &why));
    XGrabPointer(t.other, DefaultRootWindow(t.other), False, ButtonPressMask, GrabModeAsync, GrabModeAsync,
                 None, None, CurrentTime);
    XSync(t.other, False);
    int64_t start = clock_ns();
    must(screen_scroll(t.s, 0, 5, &why));
    must(screen_click(t.s, 350, 350, 1, 1, &why));
    double ms = clock_ms_since(start);
    check_note("5 steps of the wheel and a click took %.0f ms", ms);
    assert_true(ms < 8000); /* one wait of 2 s */
    let_go(t.other);
    stage_close(&t);
}

/* A launcher grabs the keyboard for an override-redirect window. */
static void t_launcher(void **state)
{
    struct stage t;
    XEvent ev;
    int got = 0;
    stage_open(&t);
    XSetWindowAttributes a = {.override_redirect = True, .event_mask = KeyPressMask};
    Window w = XCreateWindow(t.other, DefaultRootWindow(t.other), 10, 10, 300, 30, 0, CopyFromParent,
                             InputOutput, NULL, CWOverrideRedirect | CWEventMask, &a);
    XMapRaised(t.other, w);
    XSync(t.other, False);
    assert_int_equal(XGrabKeyboard(t.other, w, False, GrabModeAsync, GrabModeAsync, CurrentTime),
                     GrabSuccess);
    XSync(t.other, False);
    must(screen_type(t.s, "abc", 3, &why));
    XSync(t.other, False);
    while (XCheckTypedEvent(t.other, KeyPress, &ev))
        got += XLookupKeysym(&ev.xkey, 0) >= XK_a && XLookupKeysym(&ev.xkey, 0) <= XK_c;
    assert_int_equal(got, 3);
    stage_close(&t);
}

/* Opens the field's context menu, moves in it with keys, and leaves it with Escape or a click. */
static void menus_of(const char *name)
{
    struct field f;
    const uint32_t down = XK_Down, escape = XK_Escape;
    struct screen_window w;
    typed_open(&f, name);
    assert_int_equal(screen_focused_window(f.s, &w), 0);
    int x = w.rect.x + 60, y = w.rect.y + 30;
    for (int i = 0; i < 3; i++) {
        must(screen_click(f.s, x, y, 3, 1, &why));
        clock_sleep_ms(500);
        must(screen_chord(f.s, &down, 1, &why));
        if (i % 2)
            must(screen_chord(f.s, &escape, 1, &why));
        else
            must(screen_click(f.s, x + 2, y + 2, 1, 1, &why)); /* outside the menu, or its first entry */
        clock_sleep_ms(300);
        must(screen_chord(f.s, &escape, 1, &why));
    }
    clock_sleep_ms(1500); /* some menus open late */
    must(screen_chord(f.s, &escape, 1, &why));
    must(screen_click(f.s, x, y, 1, 1, &why));
    must(screen_type(f.s, "then", 4, &why));
    char *got = typed_wait(&f, "then");
    bool right = strstr(got, "then") != NULL;
    free(got);
    typed_close(&f);
    if (!right)
        fail_msg("%s does not have the text after its menu", name);
}

#define MENUS(fn, name)                                                                                      \
    static void fn(void **state)                                                                             \
    {                                                                                                        \
        menus_of(name);                                                                                      \
    }
MENUS(t_gtk3, "GTK 3")
MENUS(t_gtk4, "GTK 4")
MENUS(t_qt, "Qt")
MENUS(t_chromium, "Chromium line")
MENUS(t_firefox, "Firefox line")

/* ---- borrowed keycodes ---------------------------------------------------------------------------- */

static int mappings(xcb_connection_t *c)
{
    int n = 0;
    free(xcb_get_input_focus_reply(c, xcb_get_input_focus(c), NULL));
    for (xcb_generic_event_t *ev; (ev = xcb_poll_for_event(c)); free(ev))
        n += (ev->response_type & 0x7f) == XCB_MAPPING_NOTIFY;
    return n;
}

/* A window manager grabs its keys again after each mapping change, and holds clicks meanwhile. */
static void t_mappings(void **state)
{
    struct stage t;
    static const char kanji[] = "日本語漢字東京大阪名古屋";
    stage_open(&t);
    if (xvfb_window_manager(&t.x)) {
        check_note("no window manager here (openbox)");
        skip();
    }
    clock_sleep_ms(1000);
    struct screen_window w;
    assert_int_equal(screen_window_at(t.s, 300, 300, &w), 0);
    must(screen_click(t.s, 300, 300, 1, 1, &why));
    xcb_connection_t *c = xcb_connect(NULL, NULL);
    mappings(c);
    must(screen_type(t.s, kanji, sizeof kanji - 1, &why));
    stage_clear(&t);
    must(screen_click(t.s, 300, 300, 1, 1, &why));
    size_t clicks = json_array_size(stage_events(&t, "button_press"));
    int bound = mappings(c);
    screen_close(t.s);
    int freed = mappings(c);
    t.s = screen_open(NULL, NULL);
    xcb_disconnect(c);
    check_note("%d mappings for the text, %d at the end", bound, freed);
    stage_close(&t);
    assert_int_equal(clicks, 1);
    assert_in_range(bound, 1, 2);
    assert_in_range(freed, 1, 2);
}

/* ---- input methods -------------------------------------------------------------------------------- */

/* Runs a shell command until it succeeds; gives up after 20 s. */
static bool succeeds(const char *command)
{
    for (int i = 0; i < 100; i++, clock_sleep_ms(200))
        if (system(command) == 0)
            return true;
    return false;
}

/* Starts a session bus and ibus with a Russian transliteration. */
static void start_ibus(struct xvfb *x)
{
    char *bus = xasprintf("--address=unix:path=%s/bus", x->dir),
         *address = xasprintf("unix:path=%s/bus", x->dir);
    const char *const daemon[] = {"dbus-daemon", "--session", "--nofork", bus, NULL};
    const char *const ibus[] = {"ibus-daemon", "--xim", "--panel", "disable", NULL};
    setenv("DBUS_SESSION_BUS_ADDRESS", address, 1);
    setenv("GTK_IM_MODULE", "ibus", 1);
    setenv("QT_IM_MODULE", "ibus", 1);
    setenv("XMODIFIERS", "@im=ibus", 1);
    xvfb_spawn(x, "bus.log", daemon);
    char *there = xasprintf("test -e %s/bus", x->dir);
    bool ready = succeeds(there);
    xvfb_spawn(x, "ibus.log", ibus);
    ready = ready && succeeds("ibus list-engine >/dev/null 2>&1");
    ready = ready &&
            succeeds("ibus engine m17n:ru:translit >/dev/null 2>&1; ibus engine 2>/dev/null | grep -q m17n");
    free(bus);
    free(address);
    free(there);
    if (!ready)
        fail_msg("ibus does not start");
}

static void stop_ibus(void)
{
    if (system("ibus exit >/dev/null 2>&1")) { /* ibus has already ended */
    }
    static const char *const names[] = {"DBUS_SESSION_BUS_ADDRESS", "GTK_IM_MODULE", "QT_IM_MODULE",
                                        "XMODIFIERS"};
    for (int i = 0; i < 4; i++)
        unsetenv(names[i]);
    clock_sleep_ms(500);
}

static void through_ibus(const char *name)
{
    struct field f;
    struct err e = ERR_INIT;
    if (!program_exists("ibus-daemon") || system("ls /usr/share/m17n/ru-translit.mim >/dev/null 2>&1")) {
        check_note("ibus with m17n is not installed");
        skip();
    }
    typed_open_with(&f, name, start_ibus);
    int rc = screen_type(f.s, "hello 7", 7, &e);
    char *got = typed_wait(&f, "hello 7");
    int secret = screen_type_secret(f.s, "pw", 2, NULL);
    assert_int_equal(system("ibus engine xkb:us::eng"), 0);
    int plain = screen_type(f.s, "x", 1, &e);
    char *more = typed_wait(&f, "hello 7x");
    stop_ibus();
    typed_close(&f);
    if (rc || plain)
        fail_msg("%s: %s", name, e.text);
    assert_string_equal(got, "hello 7");
    assert_string_equal(more, "hello 7x");
    assert_int_equal(secret, -1);
    free(got);
    free(more);
}

static void t_ibus_gtk(void **state)
{
    through_ibus("GTK 3");
}

static void t_ibus_qt(void **state)
{
    through_ibus("Qt");
}

static void t_ibus_tk(void **state)
{
    through_ibus("Tk");
}

static const struct CMUnitTest tests[] = {
    CLAIM("twelve characters without a key need one or two mappings, and the next click arrives", t_mappings),
    CLAIM("text reaches a GTK program unchanged through ibus, and a secret is refused", t_ibus_gtk),
    CLAIM("text reaches a Qt program unchanged through ibus, and a secret is refused", t_ibus_qt),
    CLAIM("text reaches a Tk program unchanged through ibus (XIM), and a secret is refused", t_ibus_tk),
    CLAIM("keys fail with the program's name while another program grabs the keyboard", t_keyboard),
    CLAIM("a key held by an earlier action stays down when a chord with it is refused", t_held_key),
    CLAIM("typing is unsure when another program grabs the keyboard in the middle of it", t_middle),
    CLAIM("a text with a key that is another program's hotkey is not typed", t_hotkey),
    CLAIM("a click fails with the program's name when another program's grab takes it", t_pointer),
    CLAIM("after a click refused during a grab, the next click reaches its window", t_refused),
    CLAIM("a program that grabs the pointer for itself is waited for once", t_own_pointer),
    CLAIM("a launcher that grabs the keyboard for its window receives a text", t_launcher),
    CLAIM("keys and clicks work in a menu of GTK 3", t_gtk3),
    CLAIM("keys and clicks work in a menu of GTK 4", t_gtk4),
    CLAIM("keys and clicks work in a menu of Qt", t_qt),
    CLAIM("keys and clicks work in a menu of Chromium", t_chromium),
    CLAIM("keys and clicks work in a menu of Firefox", t_firefox),
};

CHECK_MAIN()
