/* t_displays.c - tests many displays in one process, each driven by its own thread.
 *
 * Each X server has a window that records its events (helpers/xclient). The tests share servers and windows;
 * each test restarts those that an earlier one killed.
 */
#include "check.h"
#include "program.h"
#include "stage.h"
#include "x_relay.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/x11/xtrap.h"

#include <X11/Xlib-xcb.h>
#include <X11/extensions/XTest.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPEN_TOGETHER "--open-together"

enum { MANY = 8, KEYS = 100, OPENINGS = 10, PATIENCE_MS = 20000 };

struct one {
    struct xvfb x;
    char events[160];
    size_t skip; /* bytes in it before this test */
    Display *eyes;
    atomic_bool eyes_lost;
    struct screen *s;
    pthread_t thread;
    char text[KEYS + 1];
    int rc;
    struct err e;
};
static struct one all[MANY];
static struct xvfb first; /* holds the cookies of all; not driven */

/* ---- servers and windows ------------------------------------------------------------------------- */

/* Returns the events that the window got in this test. */
static char *seen(struct one *o)
{
    char *text;
    size_t len;
    assert_int_equal(file_read(o->events, 16 << 20, &text, &len, NULL), 0);
    memmove(text, text + o->skip, len - o->skip + 1);
    return text;
}

static size_t written(const struct one *o)
{
    struct stat st;
    return stat(o->events, &st) ? 0 : (size_t)st.st_size;
}

/* Waits until no window gets more events. */
static void quiet(void)
{
    size_t before, now = 0;
    do {
        clock_sleep_ms(150);
        before = now;
        now = 1;
        for (int i = 0; i < MANY; i++)
            now += written(&all[i]);
    } while (now != before);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void begin_server(struct one *o)
{
    char display[32];
    if (xvfb_start_beside(&o->x, "640x480x24", &first))
        fail();
    snprintf(display, sizeof display, "DISPLAY=%s", o->x.display);
    snprintf(o->events, sizeof o->events, "%s/events.jsonl", o->x.dir);
    xvfb_spawn(&o->x, "xclient.log",
               WORDS("env", display, helper_path("xclient"), o->events, "--geometry", "600x440+20+20"));
    assert_true(xvfb_wait_window(&o->x, "^xclient$"));
    o->eyes_lost = false;
    o->eyes = xtrap_open(o->x.display, &o->eyes_lost);
    assert_non_null(o->eyes);
}

static void end_server(struct one *o)
{
    if (o->eyes)
        xtrap_close(o->eyes, &o->eyes_lost);
    o->eyes = NULL;
    xvfb_stop(&o->x);
}

static void open_one(struct one *o, int i)
{
    const struct screen_options options = {.display = o->x.display};
    struct err e = ERR_INIT;
    o->skip = written(o);
    o->s = screen_open(&options, &e);
    if (!o->s || screen_watch(o->s, &e))
        fail_msg("%s", e.text);
    /* one letter specific to this display, between common ones */
    for (int k = 0; k < KEYS; k++)
        o->text[k] = (char)(k % 4 ? 'a' + i : "xyz "[k / 4 % 4]);
    o->text[KEYS] = 0;
}

/* Starts missing servers and windows; skips the test without Xvfb. */
static void open_all(void)
{
    screen_stop_all(0);
    if (access(helper_path("xclient"), X_OK))
        skip();
    if (!first.server && xvfb_start(&first, "64x64x24", NULL))
        skip();
    for (int i = 0; i < MANY; i++)
        if (!all[i].x.server)
            begin_server(&all[i]);
    quiet();
    for (int i = 0; i < MANY; i++)
        open_one(&all[i], i);
}

static void close_all(void)
{
    for (int i = 0; i < MANY; i++) {
        screen_close(all[i].s);
        all[i].s = NULL;
    }
    screen_stop_all(0);
}

/* Types the text and draws a line. */
static void *work(void *arg)
{
    struct one *o = arg;
    int i = (int)(o - all), path[] = {100 + i, 100 + 10 * i, 500 - i, 400 - 10 * i};
    o->e = (struct err)ERR_INIT;
    screen_set_acting(o->s, true);
    o->rc = screen_type(o->s, o->text, KEYS, &o->e);
    if (o->rc == 0)
        o->rc = screen_drag(o->s, path, 2, 1, 300, &o->e);
    screen_set_acting(o->s, false);
    return NULL;
}

static void start_all(void)
{
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&all[i].thread, NULL, work, &all[i]), 0);
}

static void join_all(void)
{
    for (int i = 0; i < MANY; i++)
        pthread_join(all[i].thread, NULL);
}

/* Waits until the window has got n key events. */
static void wait_keys(struct one *o, size_t n)
{
    size_t have = 0;
    for (int64_t start = clock_ns(); have < n && clock_ms_since(start) < PATIENCE_MS; clock_sleep_ms(5)) {
        char *text = seen(o);
        have = count(text, "\"key_press\"");
        free(text);
    }
    assert_true(have >= n);
}

/* Checks that the window got all events of its thread and no others. */
static void complete(struct one *o)
{
    if (o->rc)
        fail_msg("%s: %s", o->x.display, o->e.text);
    char *text = seen(o), typed[KEYS + 1], place[64];
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, "\"key_press\"")) && n < KEYS; p++)
        typed[n++] = strstr(p, "\"text\":\"")[8];
    typed[n] = 0;
    assert_int_equal(count(text, "\"key_press\""), KEYS);
    assert_int_equal(count(text, "\"key_release\""), KEYS);
    assert_string_equal(typed, o->text);
    assert_int_equal(count(text, "\"button_press\""), 1);
    assert_int_equal(count(text, "\"button_release\""), 1);
    int i = (int)(o - all);
    snprintf(place, sizeof place, "\"x\":%d,\"y\":%d}", 100 + i, 100 + 10 * i);
    assert_true(count(text, place) >= 1);
    assert_int_equal(pressed(o->eyes), 0);
    free(text);
}

static void others_complete(const struct one *but)
{
    quiet();
    for (int i = 0; i < MANY; i++)
        if (&all[i] != but)
            complete(&all[i]);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void t_apart(void **state)
{
    open_all();
    start_all();
    join_all();
    others_complete(NULL);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(*screen_stop_flag(all[i].s), 0);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(screen_number(all[i].s), screen_number(all[k].s));
    }
    close_all();
}

static void t_escape(void **state)
{
    struct one *o = &all[3];
    open_all();
    XDevice *person = persons_keyboard(o->eyes);
    unsigned escape = XKeysymToKeycode(o->eyes, XK_Escape);
    start_all();
    wait_keys(o, 20);
    for (int i = 0; i < 4; i++)
        XTestFakeDeviceKeyEvent(o->eyes, person, escape, i % 2 == 0, NULL, 0, CurrentTime);
    XSync(o->eyes, False);
    pthread_join(o->thread, NULL);
    clock_sleep_ms(50); /* lets events already sent arrive */
    char *text = seen(o);
    size_t n = count(text, "\"event\"");
    assert_true(count(text, "\"key_press\"") < KEYS);
    free(text);
    for (int i = 0; i < MANY; i++)
        if (&all[i] != o)
            pthread_join(all[i].thread, NULL);
    quiet();
    text = seen(o);
    assert_int_equal(count(text, "\"event\""), n); /* no more have arrived */
    free(text);
    assert_int_equal(o->rc, -1);
    assert_int_equal(o->e.kind, ERR_STOPPED);
    assert_int_equal(*screen_stop_flag(o->s), STOP_HUMAN);
    assert_int_equal(*screen_stop_flag(NULL), 0);
    assert_int_equal(pressed(o->eyes), 0);
    others_complete(o);
    XCloseDevice(o->eyes, person);
    close_all();
}

/* The stop file, the stop flag and the deadline of a screen each affect only that screen. */
static void t_one_each(void **state)
{
    struct one *by_file = &all[1], *by_flag = &all[2], *by_time = &all[5];
    open_all();
    start_all();
    wait_keys(by_time, 10);
    screen_deadline(by_time->s, clock_ns());
    wait_keys(by_flag, 10);
    *screen_stop_flag(by_flag->s) = SIGINT;
    wait_keys(by_file, 10);
    char *own = xasprintf("%s/holorun/stop-%d-%d", first.dir, (int)getpid(), screen_number(by_file->s));
    assert_int_equal(file_write(own, "", 0, NULL), 0);
    join_all();
    quiet();
    assert_int_equal(by_time->e.kind, ERR_TIME);
    assert_int_equal(by_flag->e.kind, ERR_STOPPED);
    assert_non_null(strstr(by_file->e.text, "stop file"));
    for (int i = 0; i < MANY; i++) {
        if (&all[i] != by_file && &all[i] != by_flag && &all[i] != by_time)
            complete(&all[i]);
        assert_int_equal(pressed(all[i].eyes), 0);
    }
    close_all();
    assert_false(file_exists(own));
    free(own);
}

static void t_killed_server(void **state)
{
    struct one *o = &all[6];
    open_all();
    start_all();
    wait_keys(o, 20);
    xvfb_kill_server(&o->x);
    join_all();
    assert_int_equal(o->rc, -1);
    assert_int_equal(o->e.kind, ERR_ENV);
    assert_non_null(strstr(o->e.text, "was lost"));
    others_complete(o);
    int64_t start = clock_ns();
    screen_close(o->s);
    o->s = NULL;
    check_note("closed after %.0f ms", clock_ms_since(start));
    assert_true(clock_ms_since(start) < 5000); /* does not wait for the others */
    end_server(o);
    close_all();
}

static void t_hung_server(void **state)
{
    struct one *o = &all[4];
    open_all();
    start_all();
    wait_keys(o, 20);
    kill(o->x.server, SIGSTOP);
    for (int i = 0; i < MANY; i++)
        if (&all[i] != o)
            pthread_join(all[i].thread, NULL);
    others_complete(o);
    assert_int_equal(pthread_tryjoin_np(o->thread, NULL), EBUSY); /* its thread waits for the server */
    *screen_stop_flag(o->s) = SIGINT;
    int64_t start = clock_ns();
    pthread_join(o->thread, NULL);
    check_note("abandoned %.0f ms after the stop", clock_ms_since(start));
    assert_int_equal(o->e.kind, ERR_ENV);
    screen_close(o->s);
    o->s = NULL;
    kill(o->x.server, SIGCONT);
    end_server(o);
    close_all();
}

/* No stop is requested: closing alone must end. */
static void t_hung_close(void **state)
{
    struct one *o = &all[0];
    open_all();
    must(screen_key(o->s, XK_Shift_L, true, &why));
    int free_code = 0; /* at this moment the thread that detects the hang requests the new map */
    XDisplayKeycodes(o->eyes, &(int){0}, &free_code);
    XChangeKeyboardMapping(o->eyes, free_code, 1, (KeySym[]){XK_F20}, 1);
    XSync(o->eyes, False);
    kill(o->x.server, SIGSTOP);
    int64_t start = clock_ns();
    screen_close(o->s);
    o->s = NULL;
    check_note("closed after %.0f ms", clock_ms_since(start));
    kill(o->x.server, SIGCONT);
    end_server(o);
    close_all();
}

/* libxcb waits for the rest of a message in the thread that would detect the hang. */
static void t_half_message(void **state)
{
    struct one *o = &all[1];
    struct x_relay r;
    struct err e = ERR_INIT;
    open_all();
    x_relay_open(&r, &o->x);
    struct screen *s = screen_open(&(struct screen_options){.display = r.display}, &e);
    if (!s || screen_watch(s, &e))
        fail_msg("%s", e.text);
    r.cut = 1000; /* the keyboard map, which the watching thread requests after a change */
    int free_code = 0;
    XDisplayKeycodes(o->eyes, &(int){0}, &free_code);
    XChangeKeyboardMapping(o->eyes, free_code, 1, (KeySym[]){XK_F21}, 1);
    XSync(o->eyes, False);
    x_relay_wait_frozen(&r);
    int64_t start = clock_ns();
    screen_close(s);
    check_note("closed after %.0f ms", clock_ms_since(start));
    x_relay_close(&r);
    close_all();
}

static void t_signal(void **state)
{
    open_all();
    screen_install_signals();
    start_all();
    for (int i = 0; i < MANY; i++)
        wait_keys(&all[i], 10);
    raise(SIGTERM);
    join_all();
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(all[i].rc, -1);
        assert_int_equal(all[i].e.kind, ERR_STOPPED);
        assert_int_equal(pressed(all[i].eyes), 0);
        assert_int_equal(borrowed_keycodes(all[i].eyes), 0);
    }
    const struct screen_options options = {.display = all[0].x.display};
    screen_close(all[0].s);
    all[0].s = screen_open(&options, NULL);
    assert_non_null(all[0].s);
    assert_int_equal(screen_key(all[0].s, XK_a, true, &why), -1);
    assert_int_equal(why.kind, ERR_STOPPED);
    close_all();
}

/* ---- the guard ------------------------------------------------------------------------------------ */

/* In the child: opens a screen with a watch and holds Shift. */
static struct screen *hold_shift(const char *display)
{
    const struct screen_options options = {.display = display};
    struct screen *s = screen_open(&options, NULL);
    if (!s || screen_watch(s, NULL) || screen_key(s, XK_Shift_L, true, NULL))
        _exit(99);
    return s;
}

/* In the child: number 2 hangs in an action while the others keep typing; only 2 must be stopped. Reports
 * this on `ready` and waits. */
static void be_guarded(int ready)
{
    struct screen *s[MANY];
    struct err e = ERR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (screen_guard(&e))
        _exit(97);
    for (int k = 0; k < 30; k++) { /* slots are reused, displays are forgotten */
        const struct screen_options options = {.display = all[k % MANY].x.display};
        screen_close(screen_open(&options, NULL));
    }
    for (int i = 0; i < MANY; i++)
        s[i] = hold_shift(all[i].x.display);
    screen_set_acting(s[2], true);
    for (int64_t start = clock_ns(); !*screen_stop_flag(s[2]) && clock_ms_since(start) < PATIENCE_MS;) {
        for (int i = 0; i < MANY; i++)
            if (i != 2 && screen_wait(s[i], 1, NULL))
                _exit(96);
    }
    for (int i = 0; i < MANY; i++)
        if (*screen_stop_flag(s[i]) != (i == 2 ? STOP_HANG : 0))
            _exit(95);
    if (write(ready, "r", 1) != 1)
        _exit(94);
    for (;;)
        pause();
}

static void t_guard(void **state)
{
    int fds[2], status;
    char c = 0;
    open_all();
    close_all();
    assert_int_equal(pipe(fds), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        be_guarded(fds[1]);
    close(fds[1]);
    if (read(fds[0], &c, 1) != 1) {
        waitpid(pid, &status, 0);
        fail_msg("the guarded process ended with %d", WEXITSTATUS(status));
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pressed(all[i].eyes), i != 2);
    xvfb_kill_server(&all[5].x);    /* the guard must survive a dead server */
    kill(all[7].x.server, SIGSTOP); /* and a suspended one */
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    for (int i = 0; i < MANY; i++)
        for (int64_t start = clock_ns(); i != 5 && i != 7 && pressed(all[i].eyes);) {
            assert_true(clock_ms_since(start) < PATIENCE_MS);
            clock_sleep_ms(5);
        }
    kill(all[7].x.server, SIGCONT);
    end_server(&all[5]);
    close(fds[0]);
    close_all();
}

/* xcb takes the output buffer from Xlib, which takes it back for its next request. */
static void t_lost_unnoticed(void **state)
{
    atomic_bool lost = false;
    if (!first.server && xvfb_start(&first, "64x64x24", NULL))
        skip();
    Display *dpy = xtrap_open(first.display, &lost);
    assert_non_null(dpy);
    int unused;
    assert_true(XTestQueryExtension(dpy, &unused, &unused, &unused, &unused));
    xcb_connection_t *c = XGetXCBConnection(dpy);
    free(xcb_get_input_focus_reply(c, xcb_get_input_focus(c), NULL));
    shutdown(ConnectionNumber(dpy), SHUT_RDWR);
    xcb_get_input_focus_unchecked(c);
    xcb_flush(c);
    assert_false(lost);
    for (unsigned i = 0; i < 40; i++)
        XTestFakeKeyEvent(dpy, 38, i % 2 == 0, CurrentTime);
    assert_true(lost);
    xtrap_close(dpy, &lost);
}

/* Opens a display, uses an extension as the guard does, and closes it, many times. */
static void *open_and_close(void *display)
{
    for (int i = 0; i < OPENINGS; i++) {
        atomic_bool lost = false;
        Display *dpy = xtrap_open(display, &lost);
        if (!dpy)
            _exit(99);
        XTestGrabControl(dpy, True);
        xtrap_close(dpy, &lost);
    }
    return NULL;
}

static int open_together(char *display)
{
    pthread_t threads[MANY];
    for (int i = 0; i < MANY; i++)
        if (pthread_create(&threads[i], NULL, open_and_close, display))
            return 98;
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* In new processes without another display, because libXext frees its list with the last one. */
static void t_open_together(void **state)
{
    if (!first.server && xvfb_start(&first, "64x64x24", NULL))
        skip();
    /* A server without clients resets, perhaps just now. */
    xcb_connection_t *other = xcb_connect(first.display, NULL);
    for (int64_t start = clock_ns();
         xcb_connection_has_error(other) && clock_ms_since(start) < PATIENCE_MS;) {
        xcb_disconnect(other);
        clock_sleep_ms(10);
        other = xcb_connect(first.display, NULL);
    }
    assert_int_equal(xcb_connection_has_error(other), 0);
    for (int k = 0; k < 10; k++) {
        int status;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            execl("/proc/self/exe", "t_displays", OPEN_TOGETHER, first.display, NULL);
            _exit(97);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    xcb_disconnect(other);
}

static const struct CMUnitTest tests[] = {
    CLAIM("threads may open and close the only displays of a process at the same time", t_open_together),
    CLAIM("keys that are sent after xcb lost the connection do not crash", t_lost_unnoticed),
    CLAIM("eight screens at once: each event reaches its own window and no other", t_apart),
    CLAIM("Escape twice stops the actions on its own display only", t_escape),
    CLAIM("stop flag, stop file and deadline affect one screen", t_one_each),
    CLAIM("a killed server fails only its own screen, which closes at once", t_killed_server),
    CLAIM("a server that hangs blocks only its own thread, until that is stopped", t_hung_server),
    CLAIM("a screen closes while its server hangs, just after a change of the keyboard map", t_hung_close),
    CLAIM("a screen closes when its server stops in the middle of a message", t_half_message),
    CLAIM("a signal stops all screens, also those opened later; nothing stays pressed", t_signal),
    CLAIM("the guard handles displays separately: one hangs, one dies, others open and close", t_guard),
};

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], OPEN_TOGETHER))
        return open_together(argv[2]);
    int rc = check_main(argc, argv, tests, sizeof tests / sizeof *tests);
    for (int i = 0; i < MANY; i++)
        end_server(&all[i]);
    xvfb_stop(&first);
    return rc;
}
