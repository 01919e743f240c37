/* moments.c - see moments.h. */
#include "moments.h"

#include "driven.h"

#include "base/clock.h"
#include "base/file.h"

#include <X11/extensions/XInput2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEGIN_MS = 60000, END_MS = 30000, LATE_MS = 100 };

const char *const doing_names[DOINGS] = {"typing", "dragging", "settling", "model"};

/* ---- stage ---------------------------------------------------------------------------------------- */

/* Directs programs started from now on to this session's display. */
static void enter(const struct moments *m)
{
    char auth[96];
    snprintf(auth, sizeof auth, "%s/auth", m->x.dir);
    setenv("DISPLAY", m->x.display, 1);
    setenv("XAUTHORITY", auth, 1);
    setenv("XDG_RUNTIME_DIR", m->x.dir, 1);
    setenv("HOME", m->x.dir, 1);
}

static int device_of(Display *dpy, const char *part)
{
    int n = 0, id = 0;
    XIDeviceInfo *list = XIQueryDevice(dpy, XIAllDevices, &n);
    for (int i = 0; i < n; i++)
        if (strstr(list[i].name, part))
            id = list[i].deviceid;
    XIFreeDeviceInfo(list);
    return id;
}

static void listen_raw(struct moments *m)
{
    int event, error, major = 2, minor = 2;
    unsigned char bits[XIMaskLen(XI_LASTEVENT)] = {0};
    XQueryExtension(m->eyes, "XInputExtension", &m->opcode, &event, &error);
    XIQueryVersion(m->eyes, &major, &minor);
    for (int e = XI_RawKeyPress; e <= XI_RawMotion; e++)
        XISetMask(bits, e);
    XIEventMask mask = {.deviceid = XIAllMasterDevices, .mask_len = sizeof bits, .mask = bits};
    XISelectEvents(m->eyes, DefaultRootWindow(m->eyes), &mask, 1);
    m->keyboard = device_of(m->eyes, "XTEST keyboard");
    m->pointer = device_of(m->eyes, "XTEST pointer");
    XSync(m->eyes, False);
}

int moments_open(struct moments *m)
{
    memset(m, 0, sizeof *m);
    if (xvfb_start(&m->x, "1280x1024x24", NULL))
        return -1;
    char events[96];
    snprintf(events, sizeof events, "%s/events.jsonl", m->x.dir);
    const char *argv[] = {helper_path("xclient"), events, "--geometry", "1000x900+20+20", NULL};
    xvfb_spawn(&m->x, "xclient.log", argv);
    m->eyes = xvfb_wait_window(&m->x, "^xclient$") ? XOpenDisplay(NULL) : NULL;
    if (!m->eyes) {
        xvfb_stop(&m->x);
        return -1;
    }
    m->person = persons_keyboard(m->eyes);
    listen_raw(m);
    return 0;
}

void moments_close(struct moments *m)
{
    if (m->run > 0) {
        kill(m->run, SIGKILL);
        waitpid(m->run, NULL, 0);
    }
    if (m->person)
        XCloseDevice(m->eyes, m->person);
    if (m->eyes)
        XCloseDisplay(m->eyes);
    free(m->before);
    xvfb_stop(&m->x);
}

/* ---- run ------------------------------------------------------------------------------------------ */

#define FOUR(x) x x x x

void moments_start(struct moments *m, enum doing doing)
{
    static const char *const replies[] = {
        [DOING_TYPE] = CLICK(500, 500) TYPE(FOUR(FOUR(FOUR(HUNDRED)))) ANSWER("Done."),
        [DOING_DRAG] = FOUR(FOUR(CTRL_DRAG)) ANSWER("Done."),
        [DOING_SETTLE] =
            SHIFT_DOWN CLICK(300, 300) CLICK(400, 400) CLICK(500, 500) CLICK(600, 600) ANSWER("Done."),
    };
    enter(m);
    char *script = xvfb_place(&m->x, "script"), *runs = xvfb_place(&m->x, "runs");
    free(m->before);
    m->before = record_newest(runs, NULL);
    m->doing = doing;
    m->last = m->escape = 0;
    if (doing == DOING_MODEL) {
        m->run = program_start(&m->x,
                               WORDS("run", "Press the Save button", "--runs", runs, "--quiet", "--threads",
                                     "1", "--temperature", "1", "--settle-min", "1", "--settle-quiet", "1"));
    } else {
        file_write(script, replies[doing], strlen(replies[doing]), NULL);
        m->run = program_start(&m->x, WORDS("run", "Press Save", "--quiet", "--fake", script, "--runs", runs,
                                            "--settle-min", doing == DOING_SETTLE ? "2000" : "50"));
    }
    free(script);
    free(runs);
}

static bool ended(struct moments *m, int *status)
{
    if (m->run > 0 && waitpid(m->run, status, WNOHANG) == m->run)
        m->run = 0;
    return m->run == 0;
}

/* Waits for the record; returns false if the run has ended or the record does not appear. */
static bool begun(struct moments *m)
{
    char *runs = xvfb_place(&m->x, "runs");
    bool there = false;
    int status;
    for (int64_t start = clock_ns(); !there && !ended(m, &status) && clock_ms_since(start) < BEGIN_MS;) {
        char *now = record_newest(runs, NULL);
        there = now && (!m->before || strcmp(now, m->before) != 0);
        free(now);
        if (!there)
            clock_sleep_ms(5);
    }
    free(runs);
    return there;
}

/* ---- stop ------------------------------------------------------------------------------------------- */

static void drain(struct moments *m)
{
    unsigned escape = XKeysymToKeycode(m->eyes, XK_Escape);
    while (XPending(m->eyes)) {
        XEvent ev;
        XNextEvent(m->eyes, &ev);
        if (ev.type == MappingNotify)
            XRefreshKeyboardMapping(&ev.xmapping);
        if (ev.type != GenericEvent || ev.xcookie.extension != m->opcode ||
            !XGetEventData(m->eyes, &ev.xcookie))
            continue;
        const XIRawEvent *raw = ev.xcookie.data;
        if (raw->sourceid == m->keyboard || raw->sourceid == m->pointer)
            m->last = (double)raw->time;
        else if (raw->evtype == XI_RawKeyPress && raw->detail == (int)escape)
            m->escape = (double)raw->time;
        XFreeEventData(m->eyes, &ev.xcookie);
    }
}

/* The server's clock is the system's, in ms of 32 bits. */
static double server_now(void)
{
    return (double)(uint32_t)(clock_ns() / 1000000);
}

static void escape_twice(struct moments *m)
{
    unsigned code = XKeysymToKeycode(m->eyes, XK_Escape);
    for (int i = 0; i < 4; i++) {
        XTestFakeDeviceKeyEvent(m->eyes, m->person, code, i % 2 == 0, NULL, 0, CurrentTime);
        XSync(m->eyes, False);
        if (i == 1)
            clock_sleep_ms(60);
    }
}

static double make_gesture(struct moments *m, enum gesture how)
{
    double now = server_now();
    if (how == GESTURE_ESCAPE) {
        escape_twice(m);
        drain(m);
        return m->escape;
    }
    if (how == GESTURE_SIGNAL) {
        kill(m->run, SIGTERM);
    } else {
        char *path = xasprintf("%s/holorun/stop-%d", m->x.dir, (int)m->run);
        file_write(path, "", 0, NULL);
        free(path);
    }
    return now;
}

/* Returns whether the run ended by itself at the same moment. */
static bool was_over(const struct record *r)
{
    const char *status = r->n ? field_text(r->events[r->n - 1].fields, "status") : "";
    return !strcmp(status, "answered") || !strcmp(status, "loop") || !strcmp(status, "errors") ||
           !strcmp(status, "infeasible");
}

/* Checks what the run left behind; returns 1 if it was not stopped. */
static int check_left(struct moments *m, int status, struct moment *out)
{
    char *runs = xvfb_place(&m->x, "runs"), *dir = record_newest(runs, NULL),
         *page = xasprintf("%s/report.html", dir);
    struct record r = {0};
    const char *wrong = "";
    bool read = record_open(&r, dir, NULL) == 0, over = read && was_over(&r);
    if (pressed(m->eyes))
        wrong = "something is still pressed";
    else if (borrowed_keycodes(m->eyes))
        wrong = "keycodes are still borrowed";
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != ERR_STOPPED)
        wrong = "the exit code is not that of a stop";
    else if (!read || r.torn || r.skipped)
        wrong = "the record cannot be read";
    else if (!r.n || strcmp(r.events[r.n - 1].kind, "end") != 0)
        wrong = "the record has no end";
    else if (strcmp(field_text(r.run, "status"), "stopped") != 0 || !file_exists(page))
        wrong = "run.json or the report is not complete";
    snprintf(out->wrong, sizeof out->wrong, "%s", wrong);
    record_free(&r);
    free(page);
    free(dir);
    free(runs);
    return over;
}

int moments_stop(struct moments *m, enum gesture how, double wait_ms, struct moment *out)
{
    int status = 0;
    *out = (struct moment){0};
    if (!begun(m))
        return 1;
    clock_sleep_ms(wait_ms);
    if (ended(m, &status))
        return 1;
    drain(m);
    int64_t start = clock_ns();
    double at = make_gesture(m, how);
    while (!ended(m, &status) && clock_ms_since(start) < END_MS)
        clock_sleep_ms(1);
    out->end_ms = clock_ms_since(start);
    if (m->run) {
        snprintf(out->wrong, sizeof out->wrong, "it does not end");
        kill(m->run, SIGKILL);
        waitpid(m->run, NULL, 0);
        m->run = 0;
        return 0;
    }
    clock_sleep_ms(LATE_MS); /* for late events */
    XSync(m->eyes, False);
    drain(m);
    out->silence_ms = m->last > at ? m->last - at : 0;
    return check_left(m, status, out);
}
