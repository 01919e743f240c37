/* t_run.c - tests runs as processes under failures: the number of error lines, the exit code, the record, and
 * the keys that the X server reports as down afterwards.
 */
#include "check.h"
#include "driven.h"
#include "program.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/x11/xtrap.h"
#include "trace/read.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"

/* ---- runs ------------------------------------------------------------------------------------ */

static void report_works(const struct stage *t)
{
    OUTCOME(o);
    char *runs = xvfb_place(&t->x, "runs"), *page = xvfb_place(&t->x, "page.html");
    program_run(&t->x, &o, WORDS("report", "--runs", runs, "-o", page));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.err, "");
    assert_true(file_exists(page));
    free(runs);
    free(page);
}

/* ---- no display ------------------------------------------------------------------------------ */

static void t_no_display(void **state)
{
    static const char *const no_xtest[] = {"-extension", "XTEST", NULL};
    struct xvfb x;
    OUTCOME(o);
    const char *const *words = WORDS("run", "Press Save", "--fake", "/dev/null");
    if (xvfb_start(&x, "320x240x24", no_xtest))
        skip();
    program_run(&x, &o, words);
    ONE_LINE(&o, ERR_ENV, x.display, "no XTEST", "start the X server without");
    program_run(&x, &o, WORDS("run", "Press Save", "--fake", "/dev/null", "--display", ":987"));
    ONE_LINE(&o, ERR_ENV, "cannot open display ':987'", "no X server there", "xauth");
    char *cookies = xstrdup(getenv("XAUTHORITY"));
    setenv("XAUTHORITY", "/dev/null", 1);
    program_run(&x, &o, words); /* without a line from libxcb */
    ONE_LINE(&o, ERR_ENV, x.display, "denies access", "xauth");
    setenv("XAUTHORITY", cookies, 1);
    free(cookies);
    unsetenv("DISPLAY");
    program_run(&x, &o, words);
    ONE_LINE(&o, ERR_ENV, "DISPLAY is not set", "holorun run --on desk");
    setenv("WAYLAND_DISPLAY", "wayland-0", 1);
    program_run(&x, &o, WORDS("run", "Press Save", "--fake", "/dev/null", "--json"));
    ONE_LINE(&o, ERR_ENV, "Wayland session", "log in to an X11 session", "--on desk");
    json_t *json = json_loads(o.out, 0, NULL); /* a program that reads stdout gets the error, too */
    assert_int_equal(field_int(json, "exit"), ERR_ENV);
    assert_non_null(strstr(field_text(json, "error"), "Wayland session"));
    json_decref(json);
    unsetenv("WAYLAND_DISPLAY");
    xvfb_stop(&x);
}

static void t_doctor(void **state)
{
    DRIVEN(t, o);
    program_run(&t.x, &o, WORDS("doctor"));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.err, "");
    assert_non_null(strstr(o.out, "twice within 0.6 s"));
    program_run(&t.x, &o, WORDS("doctor", "--json", "--model", "/nowhere"));
    assert_int_equal(o.code, ERR_MODEL);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_non_null(json);
    json_decref(json);
    unsetenv("DISPLAY");
    program_run(&t.x, &o, WORDS("doctor", "--model", "/nowhere"));
    assert_int_equal(o.code, ERR_ENV);
    assert_non_null(strstr(o.out, "DISPLAY is not set"));
    assert_null(strstr(o.out, "names of elements")); /* nothing to install helps without a display */
    program_run(&t.x, &o, WORDS("doctor", "--display", t.x.display));
    assert_int_equal(o.code, 0);
    setenv("DISPLAY", t.x.display, 1);
}

static void t_lost(void **state)
{
    static const char *const replies[] = {CLICK(500, 500) SHIFT_DOWN TYPE_LONG ANSWER("Done."),
                                          CLICK(500, 500) CTRL_DRAG ANSWER("Done."),
                                          CLICK(500, 500) WAIT(30) ANSWER("Done.")};
    static const char *const events[] = {"key_press", "button_press", "button_press"};
    static const int n[] = {40, 2, 1};
    for (int i = 0; i < 3; i++) {
        struct record r;
        DRIVEN(t, o);
        atomic_bool lost = false;
        xtrap_watch(t.other, &lost);
        pid_t pid = driven_start(&t, replies[i]);
        driven_wait(&t, events[i], n[i]);
        xvfb_kill_server(&t.x);
        program_finish(&t.x, pid, &o);
        ONE_LINE(&o, ERR_ENV, t.x.display, "was lost");
        driven_read(&t, &r);
        assert_string_equal(field_text(driven_last(&r, "end"), "status"), "failed");
        assert_non_null(strstr(field_text(driven_last(&r, "end"), "error"), "was lost"));
        assert_int_equal(field_int(r.run, "exit"), ERR_ENV);
        record_free(&r);
        report_works(&t);
    }
}

static void t_driven(void **state)
{
    struct stage t;
    OUTCOME(o);
    stage_open(&t); /* this process holds the input lock */
    driven_run(&t, CLICK(500, 500) ANSWER("Done."), NULL, &o);
    char *number = xasprintf("(process %d)", (int)getpid());
    ONE_LINE(&o, ERR_ENV, "in use by another holorun", number, "stop that process first");
    char *runs = xvfb_place(&t.x, "runs");
    assert_null(record_newest(runs, NULL)); /* refused before any slow step */
    program_run(&t.x, &o, WORDS("run", "Press Save", "--model", POCKET, "--json", "--runs", runs));
    assert_int_equal(o.code, ERR_ENV);
    assert_null(record_newest(runs, NULL));
    free(runs);
    assert_int_equal(json_array_size(stage_events(&t, NULL)), 0);
    free(number);
    stage_close(&t);
}

/* ---- the disk -------------------------------------------------------------------------------- */

static void t_no_place(void **state)
{
    DRIVEN(t, o);
    const char *const *words =
        WORDS("run", "Press Save", "--fake", "/dev/null", "--runs", "/proc/holorun/runs");
    program_run(&t.x, &o, words);
    ONE_LINE(&o, ERR_ENV, "cannot create directory '/proc/holorun", "--runs");
    program_run(&t.x, &o, WORDS("run", "Press Save", "--fake", "/dev/null", "--runs", "/dev/null"));
    ONE_LINE(&o, ERR_ENV, "'/dev/null' is not a directory", "--runs");
    char *script = xvfb_place(&t.x, "script");
    assert_int_equal(
        file_write(script, CLICK(300, 300) ANSWER("Done."), strlen(CLICK(300, 300) ANSWER("Done.")), NULL),
        0);
    program_finish(
        &t.x, program_start_into(&t.x, "/dev/full", WORDS("run", "Press Save", "-q", "--fake", script)), &o);
    ONE_LINE(&o, ERR_ENV, "cannot write to stdout", "No space left");
    free(script);
}

/* Many small steps: moves, which are not expected to change the screen. */
static char *long_script(void)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_puts(&b, SHIFT_DOWN);
    for (int i = 0; i < 90; i++)
        buf_printf(&b, STEP("\"move_to_desktop\", \"element\": \"number %d\", \"x\": %d, \"y\": 500"), i,
                   100 + i);
    char *text = buf_take(&b);
    buf_free(&b);
    return text;
}

static void t_full_disk(void **state)
{
    struct stage t;
    OUTCOME(o);
    struct record r = {0};
    driven_open(&t);
    char *runs = xvfb_place(&t.x, "runs"), *script = long_script();
    assert_int_equal(mkdir(runs, 0700), 0);
    if (mount("none", runs, "tmpfs", 0, "size=64k")) {
        printf("           a small file system cannot be mounted here\n");
        free(script);
        free(runs);
        stage_close(&t);
        skip();
    }
    driven_run(&t, script, NULL, &o);
    char *dir = record_newest(runs, NULL);
    int rc = dir ? record_open(&r, dir, NULL) : -1;
    struct outcome page = {0};
    char *file = xvfb_place(&t.x, "page.html");
    program_run(&t.x, &page, WORDS("report", "--runs", runs, "-o", file));
    assert_int_equal(umount2(runs, MNT_DETACH), 0); /* always, even after a failure */

    ONE_LINE(&o, ERR_ENV, runs, "No space left", "--runs");
    assert_int_equal(rc, 0);
    assert_int_equal(r.skipped, 0);
    assert_true(r.n > 40);
    check_note("%d events of %d steps were on disk", r.n, r.events[r.n - 1].step);
    assert_int_equal(page.code, 0);
    assert_true(file_exists(file));
    assert_int_equal(pressed(t.other), 0);
    record_free(&r);
    outcome_free(&page);
    free(file);
    free(dir);
    free(script);
    free(runs);
    stage_close(&t);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void t_signals(void **state)
{
    static const struct {
        int signal;
        const char *name, *replies, *event;
        int n;
    } cases[] = {
        {SIGINT, "SIGINT", SHIFT_DOWN TYPE_LONG ANSWER("Done."), "key_press", 30},
        {SIGTERM, "SIGTERM", TYPE_LONG ANSWER("Done."), "key_press", 30},
        {SIGTERM, "SIGTERM", CTRL_DRAG ANSWER("Done."), "button_press", 1},
        {SIGINT, "SIGINT", CTRL_DRAG ANSWER("Done."), "button_press", 1},
        {SIGHUP, "SIGHUP", SHIFT_DOWN CLICK(500, 500) WAIT(60) ANSWER("Done."), "button_release", 1},
        {SIGUSR1, "SIGUSR1", SHIFT_DOWN CLICK(500, 500) WAIT(60) ANSWER("Done."), "button_release", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct record r;
        DRIVEN(t, o);
        pid_t pid = driven_start(&t, cases[i].replies);
        driven_wait(&t, cases[i].event, cases[i].n);
        if (strstr(cases[i].replies, "wait"))
            clock_sleep_ms(500);                      /* the wait has begun */
        assert_true(i != 2 || pressed(t.other) == 2); /* Control and the button */
        kill(pid, cases[i].signal);
        program_finish(&t.x, pid, &o);
        ONE_LINE(&o, ERR_STOPPED, "stopped by signal", cases[i].name);
        assert_int_equal(pressed(t.other), 0);
        assert_int_equal(borrowed_keycodes(t.other), 0);
        driven_read(&t, &r);
        assert_false(r.torn);
        const json_t *exec = driven_last(&r, "exec"), *end = driven_last(&r, "end");
        assert_non_null(driven_last(&r, "action"));
        assert_false(field_bool(exec, "ok"));
        assert_non_null(strstr(field_text(exec, "error"), cases[i].name));
        assert_string_equal(field_text(end, "status"), "stopped");
        assert_string_equal(field_text(r.run, "status"), "stopped");
        assert_int_equal(field_int(r.run, "exit"), ERR_STOPPED);
        record_free(&r);
        report_works(&t);
    }
}

/* An answer requested at the end of the steps is not the run's result, so it is not on stdout. */
static void t_no_result(void **state)
{
    DRIVEN(t, o);
    char *script = xvfb_place(&t.x, "script"), *runs = xvfb_place(&t.x, "runs");
    const char *text = CLICK(500, 500) CLICK(400, 400) CLICK(300, 300) ANSWER("Done.");
    assert_int_equal(file_write(script, text, strlen(text), NULL), 0);
#define THREE                                                                                                \
    "run", "Press Save", "-n", "3", "--fake", script, "--runs", runs, "--settle-min", "1", "--settle-quiet", \
        "30"
    program_run(&t.x, &o, WORDS(THREE));
    assert_int_equal(o.code, ERR_STEPS);
    assert_string_equal(o.out, "");
    check_has(o.err, "used up its steps", "said  Done.", "3 steps in");
    assert_null(strstr(o.err, "   4  "));
    program_run(&t.x, &o, WORDS(THREE, "--json"));
    json_t *json = json_loads(o.out, 0, NULL);
    assert_string_equal(field_text(json, "status"), "steps");
    assert_string_equal(field_text(json, "answer"), "Done.");
    assert_int_equal(field_int(json, "steps"), 3);
    json_decref(json);
    program_run(&t.x, &o, WORDS(THREE, "-n", "4", "-q"));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "Done.\n");
    free(script);
    free(runs);
}

/* The watchdog survives the run, and releases its keys. */
static void wait_for_watchdog(const struct stage *t)
{
    for (int ms = 0; ms < 20000 && pressed(t->other); ms += 10)
        clock_sleep_ms(10);
}

static void t_killed(void **state)
{
    static const char *const replies[] = {SHIFT_DOWN TYPE_LONG, CTRL_DRAG};
    static const char *const events[] = {"key_press", "button_press"};
    static const int n[] = {30, 1};
    for (int i = 0; i < 2; i++) {
        struct record r;
        DRIVEN(t, o);
        pid_t pid = driven_start(&t, replies[i]);
        driven_wait(&t, events[i], n[i]);
        kill(pid, SIGKILL);
        program_finish(&t.x, pid, &o);
        assert_int_equal(o.code, -1);
        wait_for_watchdog(&t);
        assert_int_equal(pressed(t.other), 0);

        driven_read(&t, &r); /* the decision is on disk, the outcome is not */
        assert_string_equal(r.events[r.n - 1].kind, "gate");
        assert_string_equal(field_text(json_object_get(driven_last(&r, "action"), "action"), "kind"),
                            i ? "drag" : "type");
        assert_string_equal(field_text(r.run, "status"), "running");
        record_free(&r);
        report_works(&t);

        program_run(&t.x, &o, WORDS("doctor"));
        assert_int_equal(o.code, 0);
        assert_int_equal(pressed(t.other), 0);
        assert_int_equal(borrowed_keycodes(t.other), 0);
    }
}

static void t_unread(void **state)
{
    struct stage t;
    int fds[2], status = 0;
    driven_open(&t);
    char *script = xvfb_place(&t.x, "script"), *runs = xvfb_place(&t.x, "runs");
    assert_int_equal(file_write(script, CLICK(500, 500) CTRL_DRAG ANSWER("Done."),
                                strlen(CLICK(500, 500) CTRL_DRAG ANSWER("Done.")), NULL),
                     0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fds[1], 2);
        dup2(open("/dev/null", O_WRONLY), 1);
        execl(program_path(), "holorun", "run", "Press Save", "--fake", script, "--runs", runs, NULL);
        _exit(127);
    }
    close(fds[0]); /* closes the reader of its output */
    close(fds[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(pressed(t.other), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_release")), 2);
    free(script);
    free(runs);
    stage_close(&t);
}

static void t_no_room(void **state)
{
    DRIVEN(t, o);
    char *runs = xvfb_place(&t.x, "runs");
    program_run(
        &t.x, &o,
        WORDS("run", "Press Save", "-q", "--dialect", "holo3", "--runs", runs, "--settle-quiet", "30"));
    assert_int_equal(o.code, ERR_MODEL);
    assert_non_null(strstr(o.err, "tokens long; the model's context has 8192"));
    assert_string_equal(o.out, "");
    free(runs);
}

/* ---- no accessibility bus ------------------------------------------------------------------------- */

/* Names the window of the stage like a browser, which describes its page only after the first question. */
static void name_as_browser(Display *d)
{
    Window root, parent, *list;
    unsigned n;
    assert_true(XQueryTree(d, DefaultRootWindow(d), &root, &parent, &list, &n) && n);
    for (unsigned i = 0; i < n; i++) {
        XStoreName(d, list[i], "Page - Chromium");
        XDeleteProperty(d, list[i], XInternAtom(d, "_NET_WM_NAME", False));
    }
    XSync(d, False);
    XFree(list);
}

static void t_no_bus(void **state)
{
    struct record r;
    DRIVEN(t, o);
    setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent", 1);
    name_as_browser(t.other);
    driven_run(&t, CLICK(500, 500) ANSWER("Done."), NULL, &o);
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    assert_int_equal(o.code, 0);
    driven_read(&t, &r);
    assert_string_equal(field_text(json_object_get(driven_last(&r, "observe"), "window"), "title"),
                        "Page - Chromium");
    int action = 0;
    while (action < r.n && strcmp(r.events[action].kind, "action") != 0)
        action++;
    assert_true(action + 1 < r.n);
    assert_string_equal(r.events[action + 1].kind, "gate");
    double ms = (double)(field_int(r.events[action + 1].fields, "t_mono_ns") -
                         field_int(r.events[action].fields, "t_mono_ns")) /
                1e6;
    check_note("the rules took %.0f ms", ms);
    assert_true(ms > 0 && ms < 1500); /* 2500 ms is the time for a browser to describe its page */
    record_free(&r);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a model without room for the conversation is a failure, not an answer", t_no_room),
    CLAIM("no display, no server, Wayland only, no XTEST: exit code 3 and one line with the remedy",
          t_no_display),
    CLAIM("doctor's exit code: 0 on a display, 3 without one, 4 without a model", t_doctor),
    CLAIM("a display lost while typing, dragging, waiting: one line, and the record is complete", t_lost),
    CLAIM("a display that another holorun drives is not touched", t_driven),
    CLAIM("an unwritable place for runs or the answer is refused with the remedy", t_no_place),
    CLAIM("a disk that becomes full: one line, nothing pressed, and the record so far makes a report",
          t_full_disk),
    CLAIM("SIGINT, SIGTERM, SIGHUP, SIGUSR1 while typing, dragging, waiting: nothing pressed, all recorded",
          t_signals),
    CLAIM("an answer requested at the end is neither a result on stdout nor a step", t_no_result),
    CLAIM("SIGKILL while typing or dragging: all keys are released, and the record makes a report", t_killed),
    CLAIM("a run continues when its output has no reader", t_unread),
    CLAIM("without an accessibility bus a click in a browser does not wait for the name of its target",
          t_no_bus),
};

CHECK_MAIN()
