/* t_desk_view.c - tests `holorun desk` and `run --on desk`: kept, viewed, controlled by a viewer and handed
 * back.
 *
 * The viewers are libvncclient's. Their image is compared with the pixels of the display, their input with
 * the events of a window on it (helpers/xclient).
 */
#include "check.h"
#include "desks.h"
#include "driven.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/x11/displays.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rfb/rfbclient.h>
#include <signal.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, WIDTH = 400, HEIGHT = 300 };

/* ---- kept desktop -------------------------------------------------------------------------------- */

struct kept {
    struct xvfb x; /* its folder */
    pid_t pid;
    char display[16], auth[200], address[128];
    struct stage t; /* for the window's events and the test's own connection */
};

/* Waits until a file of the desktop's folder has this text; copies the text after it, up to `end`, to
 * `out`. */
static void said(const struct kept *k, const char *file, const char *text, const char *end, char *out,
                 size_t size)
{
    char *path = xvfb_place(&k->x, file), *all = NULL, *at = NULL;
    size_t n;
    for (int ms = 0; ms < PATIENCE_MS && !at; ms += 10) {
        free(all);
        all = NULL;
        at = file_read(path, 1 << 20, &all, &n, NULL) == 0 ? strstr(all, text) : NULL;
        at = at && strpbrk(at + strlen(text), end) ? at : NULL;
        if (!at)
            clock_sleep_ms(10);
    }
    if (!at)
        fail_msg("the desk never printed '%s': %s", text, all ? all : "");
    at += strlen(text);
    snprintf(out, size, "%.*s", (int)strcspn(at, end), at);
    free(all);
    free(path);
}

static void window_is_there(const struct kept *k)
{
    char *text = NULL;
    size_t n;
    for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
        if (file_read(k->t.events, 16 << 20, &text, &n, NULL) == 0 && strstr(text, "\"ready\"")) {
            free(text);
            return;
        }
        free(text);
        text = NULL;
        clock_sleep_ms(10);
    }
    fail_msg("no window on the desk");
}

static void keep(struct kept *k)
{
    memset(k, 0, sizeof *k);
    if (!program_exists("Xvfb") || access(helper_path("xclient"), X_OK))
        skip();
    xvfb_folder(&k->x);
    char *password = xvfb_put(&k->x, "password", "letmein1\n");
    snprintf(k->t.events, sizeof k->t.events, "%s/events.jsonl", k->x.dir);
    k->pid = program_start(&k->x, WORDS("desk", "--size", "400x300", "--view=127.0.0.1:0", "--password-file",
                                        password, "--", helper_path("xclient"), k->t.events, "--geometry",
                                        "300x200+20+20"));
    said(k, "out", "DISPLAY='", "'", k->display, sizeof k->display);
    said(k, "out", "XAUTHORITY='", "'", k->auth, sizeof k->auth);
    said(k, "err", "vncviewer 127.0.0.1::", "\n", k->address, sizeof k->address);
    window_is_there(k);
    setenv("XAUTHORITY", k->auth, 1);
    k->t.other = XOpenDisplay(k->display);
    assert_non_null(k->t.other);
    free(password);
}

static void end(struct kept *k)
{
    OUTCOME(o);
    XCloseDisplay(k->t.other);
    unsetenv("XAUTHORITY");
    kill(k->pid, SIGTERM);
    program_finish(&k->x, k->pid, &o);
    assert_int_equal(o.code, 0);
    assert_false(file_exists(k->auth)); /* with the rest of its files */
    json_decref(k->t.seen);
    xvfb_stop(&k->x);
}

/* ---- viewers --------------------------------------------------------------------------------------- */

static char *give_password(rfbClient *c)
{
    const char *password = rfbClientGetClientData(c, NULL);
    return *password ? strdup(password) : NULL; /* the library does not free an empty one */
}

static void quietly(const char *format, ...)
{
}

/* Connects a viewer; returns NULL if it is rejected. */
static rfbClient *viewer(const struct kept *k, const char *password)
{
    rfbClientLog = rfbClientErr = quietly;
    rfbClient *c = rfbGetClient(8, 3, 4);
    rfbClientSetClientData(c, NULL, (void *)(uintptr_t)password);
    c->GetPassword = give_password;
    c->appData.encodingsString = "zrle raw"; /* lossless */
    free(c->serverHost);
    c->serverHost = strdup("127.0.0.1");
    c->serverPort = atoi(k->address);
    return rfbInitClient(c, NULL, NULL) ? c : NULL;
}

static void leave(rfbClient *c)
{
    free(c->frameBuffer);
    rfbClientCleanup(c);
}

/* Handles messages until none arrive for 150 ms; the library may have read several at once. */
static void look(rfbClient *c)
{
    while (c->buffered || WaitForMessage(c, 150000) > 0)
        assert_true(HandleRFBServerMessage(c));
}

static void as_image(const rfbClient *c, struct image *im)
{
    assert_int_equal(image_alloc(im, c->width, c->height, NULL), 0);
    const rfbPixelFormat *f = &c->format;
    for (int i = 0; i < c->width * c->height; i++) {
        uint32_t p = ((const uint32_t *)(const void *)c->frameBuffer)[i];
        im->rgb[3 * i] = (uint8_t)(p >> f->redShift);
        im->rgb[3 * i + 1] = (uint8_t)(p >> f->greenShift);
        im->rgb[3 * i + 2] = (uint8_t)(p >> f->blueShift);
    }
}

/* Waits until this viewer's image equals the display, except for the pointer. */
static void sees(rfbClient *c, struct screen *s, double most)
{
    struct image real = {0}, seen = {0};
    double differs = 1;
    for (int ms = 0; ms < PATIENCE_MS && differs > most; ms += 150) {
        look(c);
        assert_int_equal(screen_capture(s, &real, NULL), 0);
        image_free(&seen);
        as_image(c, &seen);
        differs = image_pixels_changed(&real, &seen, 8);
    }
    image_free(&real);
    image_free(&seen);
    if (differs > most)
        fail_msg("%.1f %% of the pixels differ", 100 * differs);
}

static void tap(rfbClient *c, uint32_t keysym)
{
    assert_true(SendKeyEvent(c, keysym, TRUE));
    assert_true(SendKeyEvent(c, keysym, FALSE));
}

/* ---- tests ----------------------------------------------------------------------------------------- */

static void t_three(void **state)
{
    struct kept k;
    struct err e = ERR_INIT;
    rfbClient *c[3];
    struct image im = {0};
    keep(&k);
    struct screen *s = screen_open(&(struct screen_options){.display = k.display, .cursor = true}, &e);
    assert_non_null(s);
    for (int i = 0; i < 3; i++)
        assert_non_null(c[i] = viewer(&k, "letmein1"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(c[i]->width, WIDTH);
        assert_int_equal(c[i]->height, HEIGHT);
        sees(c[i], s, 0.005);
    }
    as_image(c[0], &im);
    int light = 0;
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        light += im.rgb[3 * i] > 100;
    assert_true(light > WIDTH * HEIGHT / 4); /* the window */
    image_free(&im);

    /* One viewer moves the pointer; all see it there. */
    assert_true(SendPointerEvent(c[1], 60, 70, 0));
    for (int x, y, ms = 0; pointer_at(k.t.other, &x, &y), x != 60 || y != 70; ms += 10) {
        assert_true(ms < PATIENCE_MS);
        clock_sleep_ms(10);
    }
    for (int i = 0; i < 3; i++)
        sees(c[i], s, 0.0002);
    for (int i = 0; i < 3; i++)
        leave(c[i]);
    screen_close(s);
    end(&k);
}

/* Returns the number of texts that have arrived in this order; *selects: Left came with Shift. */
static size_t texts_of(json_t *list, bool *selects)
{
    static const char *const text[] = {"a", "A", "\xc5\x91"};
    size_t n = 0;
    *selects = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (n < 3 && !strcmp(word(list, i, "text"), text[n]))
            n++;
        *selects |= field(list, i, "keysym") == XK_Left && field(list, i, "state") & ShiftMask;
    }
    return n;
}

static void t_hand(void **state)
{
    struct kept k;
    keep(&k);
    rfbClient *c = viewer(&k, "letmein1");
    assert_non_null(c);
    assert_true(SendPointerEvent(c, 100, 100, 1));
    assert_true(SendPointerEvent(c, 100, 100, 0));
    driven_wait(&k.t, "button_release", 1);
    tap(c, 'a');
    tap(c, 'A');       /* without Shift, as from a keyboard with another layout */
    tap(c, 0x1000151); /* on no key of this layout */
    assert_true(SendKeyEvent(c, XK_Shift_L, TRUE));
    tap(c, XK_Left);
    assert_true(SendKeyEvent(c, XK_Shift_L, FALSE));
    driven_wait(&k.t, "key_release", 6); /* the A has its own Shift */
    bool selects;
    json_t *list = stage_events(&k.t, "key_press");
    size_t n = texts_of(list, &selects);
    if (n < 2 || !selects)
        fail_msg("%zu texts came, Shift with Left: %d", n, selects);
    check_note("the character that no key has %s", n == 3 ? "came" : "did not come (known: src/README.md)");

    /* Disconnects with a key and a button down. */
    assert_true(SendPointerEvent(c, 110, 100, 1));
    assert_true(SendKeyEvent(c, 'x', TRUE));
    for (int ms = 0; pressed(k.t.other) != 2; ms += 10) {
        assert_true(ms < PATIENCE_MS);
        clock_sleep_ms(10);
    }
    leave(c);
    for (int ms = 0; pressed(k.t.other) || borrowed_keycodes(k.t.other); ms += 10) {
        assert_true(ms < PATIENCE_MS);
        clock_sleep_ms(10);
    }
    end(&k);
}

/* Returns the process of the only viewer, a grandchild of the desktop's process. */
static pid_t viewer_process(pid_t desk)
{
    struct proc *list;
    pid_t found = 0;
    int n = procs_below(desk, &list);
    for (int i = 0; i < n; i++) {
        char path[64], *name = NULL;
        size_t len;
        snprintf(path, sizeof path, "/proc/%d/comm", (int)list[i].pid);
        if (file_read(path, 64, &name, &len, NULL) == 0 && !strcmp(name, "holorun-viewer\n"))
            found = list[i].pid;
        free(name);
    }
    free(list);
    return found;
}

static void t_killed(void **state)
{
    struct kept k;
    keep(&k);
    rfbClient *c = viewer(&k, "letmein1");
    assert_non_null(c);
    assert_true(SendPointerEvent(c, 110, 100, 1));
    assert_true(SendKeyEvent(c, 'x', TRUE));
    for (int ms = 0; pressed(k.t.other) != 2; ms += 10) {
        assert_true(ms < PATIENCE_MS);
        clock_sleep_ms(10);
    }
    pid_t pid = viewer_process(k.pid);
    assert_true(pid > 0);
    kill(pid, SIGKILL);
    for (int ms = 0; pressed(k.t.other); ms += 10) {
        assert_true(ms < PATIENCE_MS);
        clock_sleep_ms(10);
    }
    leave(c);
    assert_non_null(c = viewer(&k, "letmein1"));
    leave(c);
    end(&k);
}

/* Opens connections that send nothing; the caller closes them. */
static void connect_silently(const struct kept *k, int *fds, int n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(k->address))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < n; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&a, sizeof a), 0);
    }
}

static void t_silent(void **state)
{
    struct kept k;
    int fds[60];
    keep(&k);
    rfbClient *first = viewer(&k, "letmein1");
    assert_non_null(first);
    connect_silently(&k, fds, 60);
    for (int i = 0; i < 3; i++) {
        rfbClient *c = viewer(&k, "letmein1");
        assert_non_null(c);
        leave(c);
    }
    assert_true(SendPointerEvent(first, 60, 70, 0)); /* the silent ones were closed instead of this one */
    for (int x, y, ms = 0; pointer_at(k.t.other, &x, &y), x != 60 || y != 70; ms += 10) {
        assert_true(ms < PATIENCE_MS);
        clock_sleep_ms(10);
    }
    for (int i = 0; i < 60; i++)
        close(fds[i]);
    leave(first);
    end(&k);
}

/* Reads the greeting and disconnects. */
static void greet(const struct kept *k)
{
    char greeting[12];
    int fd;
    connect_silently(k, &fd, 1);
    (void)!read(fd, greeting, sizeof greeting);
    close(fd);
}

static void t_lockout(void **state)
{
    struct kept k;
    keep(&k);
    int64_t start = clock_ns();
    for (int i = 0; i < 3; i++) {
        assert_null(viewer(&k, "wrong"));
        greet(&k);
        clock_sleep_ms(50);
    }
    assert_null(viewer(&k, "letmein1")); /* after three failures no password is read for a second */
    clock_sleep_ms(1100);
    assert_null(viewer(&k, "wrong"));
    greet(&k);
    clock_sleep_ms(1100);
    assert_null(viewer(&k, "letmein1")); /* nor for two seconds after the fourth */
    check_note("%.1f s", clock_ms_since(start) / 1000);
    clock_sleep_ms(1100);
    rfbClient *c = viewer(&k, "letmein1");
    assert_non_null(c);
    leave(c);
    assert_null(viewer(&k, "wrong")); /* the count starts again */
    assert_non_null(c = viewer(&k, "letmein1"));
    leave(c);
    end(&k);
}

static void t_password(void **state)
{
    struct kept k;
    keep(&k);
    assert_null(viewer(&k, "letmein2"));
    assert_null(viewer(&k, ""));
    rfbClient *c = viewer(&k, "letmein1");
    assert_non_null(c);
    leave(c);
    for (int i = 0; i < 3; i++)
        assert_null(viewer(&k, "wrong"));
    said(&k, "err", "wrong passwords of viewers in a row: ", "\n", k.address + 64, 64);
    end(&k);
}

/* Without the Pause key the run would wait for ten minutes. */
static void t_hand_back(void **state)
{
    struct kept k;
    struct stage run = {0}; /* the run's own folder */
    OUTCOME(o);
    struct record r;
    keep(&k);
    xvfb_folder(&run.x);
    rfbClient *c = viewer(&k, "letmein1");
    assert_non_null(c);
    unsetenv("XAUTHORITY"); /* the run finds the cookie itself */
    pid_t pid = driven_start_with(&run, CLICK(500, 500) TYPE_LONG CLICK(400, 400) ANSWER("Done."),
                                  WORDS("--display", k.display, "--human-quiet", "600"));
    driven_wait(&k.t, "key_press", 20);
    assert_true(SendPointerEvent(c, 200, 150, 0));
    clock_sleep_ms(500);
    assert_int_equal(pressed(k.t.other), 0);
    long before = (long)json_array_size(stage_events(&k.t, NULL));
    clock_sleep_ms(200);
    assert_int_equal(json_array_size(stage_events(&k.t, NULL)), before);
    assert_int_equal(kill(pid, 0), 0);
    tap(c, XK_Pause);
    program_finish(&run.x, pid, &o);
    assert_int_equal(o.code, 0);
    driven_read(&run, &r);
    int paused = 0;
    for (int i = 0; i < r.n; i++)
        paused += !strcmp(r.events[i].kind, "human");
    assert_int_equal(paused, 1);
    assert_string_equal(field_text(driven_last(&r, "human"), "what"), "pointer");
    record_free(&r);
    leave(c);
    setenv("XAUTHORITY", k.auth, 1);
    end(&k);
    xvfb_stop(&run.x);
}

static void t_on_desk(void **state)
{
    struct stage t = {0};
    OUTCOME(o);
    if (!program_exists("Xvfb") || access(helper_path("xclient"), X_OK))
        skip();
    xvfb_folder(&t.x);
    snprintf(t.events, sizeof t.events, "%s/events.jsonl", t.x.dir);
    char *start = xasprintf("%s %s --geometry 300x200+20+20", helper_path("xclient"), t.events);
    char *script = xvfb_put(&t.x, "script", CLICK(300, 300) ANSWER("Done.")),
         *runs = xvfb_place(&t.x, "runs");
    program_run(&t.x, &o,
                WORDS("run", "Press Save", "--fake", script, "--runs", runs, "--on", "desk:400x300",
                      "--start", start, "--desk-view"));
    assert_int_equal(o.code, 0);
    driven_wait(&t, "button_press", 1);
    json_t *list = stage_events(&t, "button_press");
    assert_int_equal(field(list, 0, "x"), 120);
    assert_int_equal(field(list, 0, "y"), 90);
    char *address = strstr(o.err, "vncviewer /");
    assert_non_null(address);
    address += strlen("vncviewer ");
    address[strcspn(address, "\n")] = 0;
    assert_false(file_exists(address));
    struct display_found found[DISPLAYS_MAX];
    for (int i = 0, n = displays_list(found, DISPLAYS_MAX); i < n; i++)
        assert_false(found[i].desk && *found[i].auth && strstr(found[i].auth, t.x.dir));
    free(start);
    free(script);
    free(runs);
    json_decref(t.seen);
    xvfb_stop(&t.x);
}

static void t_found(void **state)
{
    struct kept k;
    OUTCOME(o);
    struct xvfb x;
    if (xvfb_start(&x, "64x64x24", NULL))
        skip();
    keep(&k);
    unsetenv("XAUTHORITY");
    unsetenv("DISPLAY");
    char *named = xasprintf("%s (a desk of holorun)", k.display),
         *other = xasprintf(" %s (a desk of holorun)", x.display);
    program_run(&x, &o, WORDS("run", "Press Save", "--fake", "/dev/null"));
    bool cut = strstr(o.err, "..."); /* with many displays on this machine it may not be listed */
    ONE_LINE(&o, ERR_ENV, "DISPLAY is not set", cut ? "," : named, "--display", "holorun run --on desk");
    assert_null(strstr(o.err, other));
    program_run(&x, &o, WORDS("doctor", "--display", k.display, "--model", "/nowhere"));
    check_has(o.out, "it opens with XAUTHORITY=", k.auth);
    setenv("XDG_SESSION_TYPE", "wayland", 1);
    program_run(&x, &o, WORDS("run", "Press Save", "--fake", "/dev/null"));
    ONE_LINE(&o, ERR_ENV, "Wayland", "--on desk");
    unsetenv("XDG_SESSION_TYPE");
    setenv("XAUTHORITY", k.auth, 1);
    free(named);
    free(other);
    end(&k);
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("three viewers at once see the desktop, and the pointer that one of them moves", t_three),
    CLAIM("a viewer's keys type their characters; no key stays pressed or borrowed", t_hand),
    CLAIM("input of a killed viewer is released, and the next one can connect", t_killed),
    CLAIM("a wrong password is rejected; after three in a row all are for a while", t_password),
    CLAIM("60 silent connections keep no viewer out", t_silent),
    CLAIM("connections that close after the greeting do not reset the count of wrong passwords", t_lockout),
    CLAIM("a viewer's mouse interrupts the agent, and its Pause key resumes the run", t_hand_back),
    CLAIM("a run on its own desktop starts its program, and leaves nothing", t_on_desk),
    CLAIM("without DISPLAY the user's displays are listed, and one opens without naming its cookie", t_found),
};

CHECK_MAIN()
