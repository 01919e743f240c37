/* t_observed.c - tests a screen that changes while the model thinks: nothing is clicked or typed that the
 * model has not seen, and animations stop nothing.
 *
 * The agent loop is real. The application and the disturbances are windows of a second connection, which
 * reads their events.
 */
#include "check.h"
#include "play.h"

#include "base/clock.h"
#include "screen/observed.h"

#include <X11/Xutil.h>
#include <pthread.h>

enum {
    APP_X = 100,
    APP_Y = 80,
    APP_W = 400,
    APP_H = 360,
    SAVE_X = 60,
    SAVE_Y = 40,
    DELETE_X = 240,
    ROW = 24
};
enum { ROUNDS = 1 };

/* the centre of the button Save of 800x600, in thousandths as in the dialect */
#define CLICK_SAVE CLICK(250, 216)
#define CLICK_ROW  CLICK(250, 400)

static struct app {
    struct play p;
    Display *dpy;
    GC gc;
    Window main, other;
    bool swapped;
    int first_row, rows_x;
} app;

struct got { /* events that reached a window */
    int presses, keys, x, y;
};

static void text_at(int x, int y, const char *text)
{
    XDrawString(app.dpy, app.main, app.gc, x, y, text, (int)strlen(text));
}

static void button(int x, int y, const char *label)
{
    XDrawRectangle(app.dpy, app.main, app.gc, x, y, 100, 24);
    text_at(x + 20, y + 16, label);
}

static void draw(void)
{
    XWindowAttributes a;
    XGetWindowAttributes(app.dpy, app.main, &a);
    XClearWindow(app.dpy, app.main);
    int shift = a.width - APP_W; /* right-aligned buttons, as in dialogs */
    button(SAVE_X + shift, SAVE_Y, app.swapped ? "Delete all" : "Save");
    button(DELETE_X + shift, SAVE_Y, app.swapped ? "Save" : "Delete all");
    for (int i = 0; i < 8; i++) {
        char row[40];
        snprintf(row, sizeof row, "Message %d of the archive", app.first_row + i);
        text_at(app.rows_x, 110 + i * ROW, row);
    }
    XSync(app.dpy, False);
}

static Window window(const char *title, int x, int y, int w, int h, bool unmanaged)
{
    XSetWindowAttributes a = {.background_pixel = 0xf0f0e0,
                              .override_redirect = unmanaged,
                              .event_mask = ButtonPressMask | KeyPressMask | ExposureMask};
    Window made =
        XCreateWindow(app.dpy, DefaultRootWindow(app.dpy), x, y, (unsigned)w, (unsigned)h, 1, CopyFromParent,
                      InputOutput, CopyFromParent, CWBackPixel | CWOverrideRedirect | CWEventMask, &a);
    XSizeHints hints = {.flags = USPosition | PPosition, .x = x, .y = y};
    XClassHint class = {(char *)(uintptr_t)title, (char *)(uintptr_t)title};
    XSetWMNormalHints(app.dpy, made, &hints);
    XSetClassHint(app.dpy, made, &class);
    XStoreName(app.dpy, made, title);
    return made;
}

static void show(Window w)
{
    XMapRaised(app.dpy, w);
    XSync(app.dpy, False);
    for (XWindowAttributes a = {.map_state = IsUnmapped}; a.map_state != IsViewable; clock_sleep_ms(5))
        XGetWindowAttributes(app.dpy, w, &a);
}

static struct got got(Window w)
{
    struct got g = {0, 0, 0, 0};
    XEvent ev;
    XSync(app.dpy, False);
    while (XCheckWindowEvent(app.dpy, w, ButtonPressMask | KeyPressMask, &ev)) {
        if (ev.type == KeyPress)
            g.keys++;
        else
            g = (struct got){g.presses + 1, g.keys, ev.xbutton.x, ev.xbutton.y};
    }
    return g;
}

static void open_app(void)
{
    memset(&app, 0, sizeof app);
    play_open(&app.p);
    app.dpy = app.p.stage.other;
    app.gc = XCreateGC(app.dpy, DefaultRootWindow(app.dpy), 0, NULL);
    app.first_row = 1;
    app.rows_x = 30;
    app.main = window("Mail", APP_X, APP_Y, APP_W, APP_H, false);
    app.other = window("Chat", 140, 60, 300, 300, false);
    show(app.main);
    XSetInputFocus(app.dpy, app.main, RevertToParent, CurrentTime);
    draw();
}

static void close_app(void)
{
    XFreeGC(app.dpy, app.gc);
    play_close(&app.p);
}

/* Restores the initial state. */
static void reset(void)
{
    app.swapped = false;
    app.first_row = 1;
    XUnmapWindow(app.dpy, app.other);
    XMoveResizeWindow(app.dpy, app.main, APP_X, APP_Y, APP_W, APP_H);
    show(app.main);
    XSetInputFocus(app.dpy, app.main, RevertToParent, CurrentTime);
    draw();
    got(app.main);
    got(app.other);
    play_forget();
    played.slow_ms = 60;
}

static const json_t *stale_event(void)
{
    for (int i = 0; i < app.p.record.n; i++)
        if (!strcmp(app.p.record.events[i].kind, "stale"))
            return app.p.record.events[i].fields;
    return NULL;
}

/* Checks that the prompt gave the reason and that the run continued. */
static void was_stopped(const char *reason, const char *told)
{
    const json_t *stale = stale_event();
    assert_int_equal(app.p.r.status, AGENT_INTERRUPTED);
    if (!stale)
        fail_msg("the change was not detected");
    assert_string_equal(field_text(stale, "reason"), reason);
    assert_true(field_number(stale, "ms") >= 60);
    const struct story_step *step = &app.p.story.steps[0];
    assert_ptr_equal(step->stale, stale);
    assert_non_null(strstr(step->actions[0].failure, "nothing was pressed"));
    assert_true(played.n_told >= 2);
    if (!strstr(played.told[1], told) || !strstr(played.told[1], "look again"))
        fail_msg("the prompt was '%s', not '%s'", played.told[1], told);
}

static void play(const char *replies)
{
    play_script(&app.p, replies, NULL);
}

/* Disturbs a click on Save while the model thinks; no press may arrive. */
static void interfere(const char *name, void (*meanwhile)(void), const char *replies, const char *reason,
                      const char *told)
{
    for (int i = 0; i < ROUNDS; i++) {
        reset();
        played.meanwhile = meanwhile;
        play(replies);
        struct got main_got = got(app.main), other_got = got(app.other);
        if (main_got.presses || main_got.keys || other_got.presses || other_got.keys)
            fail_msg("%s: %d presses and %d keys in the application, %d and %d elsewhere", name,
                     main_got.presses, main_got.keys, other_got.presses, other_got.keys);
        was_stopped(reason, told);
    }
}

/* ---- disturbances ----------------------------------------------------------------------------- */

static void other_comes(void)
{
    show(app.other);
}

static void notification_comes(void)
{
    XMoveResizeWindow(app.dpy, app.other, 180, 100, 160, 50);
    show(app.other);
}

static void focus_goes(void)
{
    XMoveResizeWindow(app.dpy, app.other, 560, 400, 100, 100);
    show(app.other);
    XSetInputFocus(app.dpy, app.other, RevertToParent, CurrentTime);
    XSync(app.dpy, False);
}

static void buttons_swap(void)
{
    app.swapped = true;
    draw();
}

static void window_moves(void)
{
    XMoveWindow(app.dpy, app.main, APP_X + 30, APP_Y + 7);
    draw();
}

static void list_scrolls(void)
{
    app.first_row = 2;
    draw();
}

static void window_grows(void)
{
    XResizeWindow(app.dpy, app.main, APP_W + 180, APP_H);
    draw();
}

static void window_goes(void)
{
    XMapWindow(app.dpy, app.other);
    XUnmapWindow(app.dpy, app.main);
    XSync(app.dpy, False);
}

static void t_windows(void **state)
{
    open_app();
    interfere("a dialog over the target", other_comes, CLICK_SAVE ANSWER("Done."), "window",
              "another window ('Chat') is at the target now; nothing was pressed");
    interfere("a notification over the target", notification_comes, CLICK_SAVE ANSWER("Done."), "window",
              "'Chat'");
    interfere("a window that goes", window_goes, CLICK_SAVE ANSWER("Done."), "window", "'Chat'");
    interfere("a window that moves", window_moves, CLICK_SAVE ANSWER("Done."), "moved", "has moved");
    close_app();
}

static void t_pixels(void **state)
{
    open_app();
    interfere("buttons that swap", buttons_swap, CLICK_SAVE ANSWER("Done."), "pixels",
              "shows something else");
    interfere("a list that scrolls by a row", list_scrolls, CLICK_ROW ANSWER("Done."), "pixels",
              "something else");
    interfere("a window that grows", window_grows, CLICK_SAVE ANSWER("Done."), "pixels", "something else");
    interfere("a list that scrolls, with the click far from its text", list_scrolls,
              CLICK(580, 400) ANSWER("Done."), "pixels", "something else");
    close_app();
}

static void t_keys(void **state)
{
    open_app();
    interfere("a focus that goes", focus_goes, TYPE("secret words") ANSWER("Done."), "focus",
              "another window ('Chat') has the keyboard now");
    reset();
    app.p.o.dialect = app.p.dialect;
    played.meanwhile = focus_goes;
    play(CLICK_SAVE TYPE("ab")
             ANSWER("Done.")); /* the target is free, and the second step has its own screenshot */
    assert_int_equal(got(app.main).presses, 1);
    close_app();
}

/* ---- popups at any moment --------------------------------------------------------------------- */

struct popup {
    pthread_t thread;
    double after_ms;
    int presses;
};
static struct popup popup;

/* Shows a popup for 50 ms, after_ms after the model's request. */
static void *show_popup(void *arg)
{
    struct popup *u = arg;
    Display *d = XOpenDisplay(NULL);
    XSetWindowAttributes a = {.override_redirect = True, .background_pixel = 0x80ff80};
    Window w = XCreateWindow(d, DefaultRootWindow(d), 150, 100, 160, 60, 0, CopyFromParent, InputOutput,
                             CopyFromParent, CWOverrideRedirect | CWBackPixel, &a);
    XEvent ev;
    XSelectInput(d, w, ButtonPressMask);
    clock_sleep_ms(u->after_ms);
    XMapRaised(d, w);
    XSync(d, False);
    clock_sleep_ms(50);
    XUnmapWindow(d, w);
    XSync(d, False);
    while (XCheckTypedEvent(d, ButtonPress, &ev))
        u->presses++;
    XCloseDisplay(d);
    return NULL;
}

static void popup_comes(void)
{
    assert_int_equal(pthread_create(&popup.thread, NULL, show_popup, &popup), 0);
}

static void t_popups(void **state)
{
    int stopped = 0, done = 0, wrong = 0;
    uint64_t seed = check_seed();
    open_app();
    for (int i = 0; i < 10; i++) {
        reset();
        popup = (struct popup){.after_ms = check_within(&seed, 0, 160)};
        played.meanwhile = popup_comes;
        play(CLICK_SAVE ANSWER("Done."));
        pthread_join(popup.thread, NULL);
        done += got(app.main).presses;
        wrong += popup.presses;
        stopped += stale_event() != NULL;
    }
    check_note("10 clicks, each with a popup of 50 ms: %d done, %d stopped, %d on the popup", done, stopped,
               wrong);
    assert_int_equal(wrong, 0);
    assert_int_equal(done + stopped, 10);
    close_app();
}

/* ---- tolerated changes ------------------------------------------------------------------------- */

static volatile bool motion_ends;
static int motion_x, motion_y, motion_w, motion_h, motion_ms;

/* Draws something that changes all the time: a caret, a spinner, a clock. */
static void *motion(void *arg)
{
    Display *d = XOpenDisplay(NULL);
    Window w = *(Window *)arg;
    GC gc = XCreateGC(d, w, 0, NULL);
    for (int i = 0; !motion_ends; i++) {
        XSetForeground(d, gc, i % 2 ? 0x000000 : 0xf0f0e0);
        XFillRectangle(d, w, gc, motion_x, motion_y, (unsigned)motion_w, (unsigned)motion_h);
        if (motion_w > 4) {
            XSetForeground(d, gc, i % 3 ? 0xf0f0e0 : 0xc00000);
            XFillRectangle(d, w, gc, motion_x + i % motion_w / 2, motion_y + 2, (unsigned)motion_w / 3, 8);
        }
        XSync(d, False);
        clock_sleep_ms(motion_ms);
    }
    XFreeGC(d, gc);
    XCloseDisplay(d);
    return NULL;
}

/* Draws an indeterminate progress bar: a block that moves back and forth in steps. */
static void *pulse(void *arg)
{
    Display *d = XOpenDisplay(NULL);
    Window w = *(Window *)arg;
    GC gc = XCreateGC(d, w, 0, NULL);
    for (int i = 0; !motion_ends; i++) {
        int step = i % 16 < 8 ? i % 16 : 16 - i % 16;
        XSetForeground(d, gc, 0xd0d0d0);
        XFillRectangle(d, w, gc, motion_x, motion_y, (unsigned)motion_w, (unsigned)motion_h);
        XSetForeground(d, gc, 0x3060d0);
        XFillRectangle(d, w, gc, motion_x + step * motion_w / 10, motion_y, (unsigned)motion_w / 5,
                       (unsigned)motion_h);
        XSync(d, False);
        clock_sleep_ms(motion_ms);
    }
    XFreeGC(d, gc);
    XCloseDisplay(d);
    return NULL;
}

/* Draws a clock, and an animation far away that prevents the screen from settling. */
static void *tick(void *arg)
{
    static const char digits[] = "2468357";
    Display *d = XOpenDisplay(NULL);
    Window w = *(Window *)arg;
    GC gc = XCreateGC(d, w, 0, NULL);
    for (int i = 0; !motion_ends; i++) {
        XSetForeground(d, gc, 0xf0f0e0);
        XFillRectangle(d, w, gc, motion_x, motion_y, (unsigned)motion_w, (unsigned)motion_h);
        XSetForeground(d, gc, 0);
        for (int k = 0; k < motion_w / 8; k++)
            XDrawString(d, w, gc, motion_x + 8 * k, motion_y + motion_h - 2, digits + (i + 2 * k) % 7, 1);
        XSync(d, False);
        int64_t start = clock_ns();
        for (int k = 0; clock_ms_since(start) < motion_ms && !motion_ends; k++) {
            XSetForeground(d, gc, k % 2 ? 0x40a040 : 0xffffff);
            XFillRectangle(d, w, gc, 200, 180, 120, 60);
            XSync(d, False);
            clock_sleep_ms(20);
        }
    }
    XFreeGC(d, gc);
    XCloseDisplay(d);
    return NULL;
}

static void *(*moves)(void *) = motion;

static void quiet_with(const char *name, int x, int y, int w, int h, int ms)
{
    pthread_t thread;
    reset();
    motion_x = x, motion_y = y, motion_w = w, motion_h = h, motion_ms = ms;
    motion_ends = false;
    assert_int_equal(pthread_create(&thread, NULL, moves, &app.main), 0);
    played.slow_ms = moves == tick ? 1300 : 300;
    app.p.o.settle = (struct settle){1, 100, 600};
    play(CLICK_SAVE CLICK_SAVE CLICK_SAVE CLICK_SAVE ANSWER("Done."));
    motion_ends = true;
    pthread_join(thread, NULL);
    const json_t *stale = stale_event();
    if (stale)
        fail_msg("%s: %s", name, field_text(stale, "text"));
    assert_int_equal(got(app.main).presses, 4);
}

static void clear_and_write(Display *d, GC gc, int x, int y, int w, const char *text)
{
    XSetForeground(d, gc, 0xf0f0e0);
    XFillRectangle(d, app.main, gc, x, y - 12, (unsigned)w, 16);
    XSetForeground(d, gc, 0);
    XDrawString(d, app.main, gc, x, y, text, (int)strlen(text));
}

/* Re-sorts a list every second. */
static void *sort_rows(void *arg)
{
    Display *d = XOpenDisplay(NULL);
    GC gc = XCreateGC(d, app.main, 0, NULL);
    for (int n = 0; !motion_ends; n++) {
        for (int i = 0; i < 8; i++) {
            char row[40];
            snprintf(row, sizeof row, "Process %d of %d", (i * 5 + n * 3) % 8 * 1117, 40 + i * n % 5);
            clear_and_write(d, gc, app.rows_x, 110 + i * ROW, 220, row);
        }
        XSync(d, False);
        int64_t start = clock_ns();
        while (clock_ms_since(start) < 1000 && !motion_ends)
            clock_sleep_ms(20);
    }
    XFreeGC(d, gc);
    XCloseDisplay(d);
    return arg;
}

/* Changes a button's label when the pointer enters. */
static void *relabel(void *arg)
{
    Display *d = XOpenDisplay(NULL);
    GC gc = XCreateGC(d, app.main, 0, NULL);
    XSelectInput(d, app.main, PointerMotionMask | EnterWindowMask);
    XSync(d, False);
    for (; !motion_ends; clock_sleep_ms(2))
        while (XPending(d)) {
            XEvent e;
            XNextEvent(d, &e);
            clear_and_write(d, gc, SAVE_X + 20, SAVE_Y + 16, 75, "Delete");
            XSync(d, False);
        }
    XFreeGC(d, gc);
    XCloseDisplay(d);
    return arg;
}

static void stops_with(void *(*thing)(void *), const char *reply)
{
    pthread_t thread;
    reset();
    motion_ends = false;
    assert_int_equal(pthread_create(&thread, NULL, thing, NULL), 0);
    clock_sleep_ms(100);
    played.slow_ms = 1300;
    app.p.o.settle = (struct settle){1, 100, 600};
    play(reply);
    motion_ends = true;
    pthread_join(thread, NULL);
    assert_non_null(stale_event());
    assert_int_equal(got(app.main).presses, 0);
}

static void t_changing(void **state)
{
    open_app();
    stops_with(relabel, CLICK_SAVE ANSWER("Done."));
    stops_with(sort_rows, CLICK_ROW ANSWER("Done."));
    close_app();
}

static void highlight(void)
{
    XSetForeground(app.dpy, app.gc, 0xd0d8ff);
    XFillRectangle(app.dpy, app.main, app.gc, SAVE_X, SAVE_Y, 100, 24);
    XSetForeground(app.dpy, app.gc, 0x3060ff);
    XDrawRectangle(app.dpy, app.main, app.gc, SAVE_X, SAVE_Y, 100, 24);
    XSetForeground(app.dpy, app.gc, 0);
    text_at(SAVE_X + 20, SAVE_Y + 16, "Save");
    XSync(app.dpy, False);
}

static void tooltip_comes(void)
{
    XMoveResizeWindow(app.dpy, app.other, 200, 150, 120, 20); /* below the button */
    show(app.other);
}

static void t_tolerated(void **state)
{
    open_app();
    quiet_with("a caret in the target", SAVE_X + 60, SAVE_Y + 4, 2, 16, 250);
    quiet_with("a spinner beside the target", SAVE_X + 70, SAVE_Y + 2, 24, 24, 50);
    moves = pulse;
    quiet_with("a progress bar below the target", 20, SAVE_Y + 26, 360, 8, 250);
    quiet_with("a progress bar across the target", 20, SAVE_Y + 8, 360, 8, 250);
    moves = tick;
    quiet_with("a clock in the target", SAVE_X + 38, SAVE_Y + 4, 24, 16, 1000);
    moves = motion;
    reset();
    played.meanwhile = highlight;
    play(CLICK_SAVE ANSWER("Done."));
    assert_null(stale_event());
    assert_int_equal(got(app.main).presses, 1);
    reset();
    played.meanwhile = tooltip_comes;
    play(CLICK_SAVE ANSWER("Done."));
    assert_null(stale_event());
    assert_int_equal(got(app.main).presses, 1);
    close_app();
}

static void restless(void)
{
    app.first_row++;
    draw();
}

static void window_moves_on(void)
{
    static int x;
    x = (x + 9) % 50;
    XMoveWindow(app.dpy, app.main, APP_X + x, APP_Y);
    draw();
}

static void t_endless(void **state)
{
    open_app();
    reset();
    played.always = restless;
    app.p.o.max_errors = 2; /* stale steps do not count */
    play(CLICK_ROW CLICK_ROW CLICK_ROW ANSWER("Gave up."));
    assert_int_equal(app.p.r.status, AGENT_ANSWERED);
    reset();
    played.always = window_moves_on;
    play(CLICK_SAVE CLICK_SAVE CLICK_SAVE CLICK_SAVE CLICK_SAVE CLICK_SAVE CLICK_SAVE CLICK_SAVE CLICK_SAVE
             ANSWER("Never reached."));
    assert_int_equal(app.p.r.status, AGENT_INTERRUPTED);
    assert_int_equal(got(app.main).presses, 0);
    close_app();
}

/* ---- another workspace -------------------------------------------------------------------------- */

static void to_workspace(int n)
{
    XEvent ev = {.xclient = {.type = ClientMessage,
                             .window = DefaultRootWindow(app.dpy),
                             .message_type = XInternAtom(app.dpy, "_NET_CURRENT_DESKTOP", False),
                             .format = 32,
                             .data.l = {n}}};
    XSendEvent(app.dpy, DefaultRootWindow(app.dpy), False, SubstructureRedirectMask | SubstructureNotifyMask,
               &ev);
    XSync(app.dpy, False);
    clock_sleep_ms(200);
}

static void workspace_changes(void)
{
    to_workspace(1);
}

static void t_workspace(void **state)
{
    open_app();
    XUnmapWindow(app.dpy, app.main);
    if (xvfb_window_manager(&app.p.stage.x)) {
        close_app();
        skip();
    }
    for (int i = 0; i < 2; i++) {
        to_workspace(0);
        show(app.main);
        XSetInputFocus(app.dpy, app.main, RevertToParent, CurrentTime);
        draw();
        clock_sleep_ms(200);
        got(app.main);
        play_forget();
        played.meanwhile = workspace_changes;
        play(i ? CLICK_SAVE ANSWER("Done.") : TYPE("some words") ANSWER("Done."));
        assert_int_equal(got(app.main).presses, 0);
        was_stopped(i ? "window" : "focus", i ? "at the target" : "keyboard");
    }
    close_app();
}

static const struct CMUnitTest tests[] = {
    CLAIM("no click reaches a window that opened, closed or moved while the model thought", t_windows),
    CLAIM("no click reaches a button that changes when hovered, or a list that is re-sorted", t_changing),
    CLAIM("no click reaches a swapped button, a scrolled row or a rearranged window", t_pixels),
    CLAIM("no key reaches a window that took the focus while the model thought", t_keys),
    CLAIM("no click reaches a popup of 50 ms", t_popups),
    CLAIM("no click or key reaches another workspace", t_workspace),
    CLAIM("carets, spinners, highlights and tooltips stop no click", t_tolerated),
    CLAIM("a screen that never settles does not count as an error, and ends the run", t_endless),
};

CHECK_MAIN()
