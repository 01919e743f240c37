/* t_cpu_wait.c - tests that a screen is not settled while a program waits for a CPU, and when programs are at
 * rest. */
#include "check.h"
#include "program.h"
#include "stage.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/private.h"

#include <X11/Xatom.h>
#include <X11/Xutil.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct busy {
    struct stage t;
    pid_t field;
    cpu_set_t all;
};

/* Restricts this process and its later children to one CPU. */
static void crowd(struct busy *b)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof b->all, &b->all), 0);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &b->all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static void spread(struct busy *b)
{
    assert_int_equal(sched_setaffinity(0, sizeof b->all, &b->all), 0);
}

/* Opens a text field beside the stage's window and finds the field's window. */
static void open_field(struct busy *b)
{
    char *typed;
    Window root, parent, *list;
    unsigned n;
    stage_open(&b->t);
    typed = xvfb_place(&b->t.x, "typed");
    const char *argv[] = {helper_path("xfield"), typed, "--geometry", "300x200+640+20", NULL};
    crowd(b);
    b->field = xvfb_spawn(&b->t.x, "xfield.log", argv);
    spread(b);
    assert_true(xvfb_wait_window(&b->t.x, "^xfield$"));
    free(typed);
    Display *d = b->t.other;
    assert_true(XQueryTree(d, DefaultRootWindow(d), &root, &parent, &list, &n) && n);
    long pid = b->field;
    XChangeProperty(d, list[n - 1], XInternAtom(d, "_NET_WM_PID", False), XA_CARDINAL, 32, PropModeReplace,
                    (const unsigned char *)&pid, 1);
    XSetInputFocus(d, list[n - 1], RevertToPointerRoot, CurrentTime);
    XSync(d, False);
    XFree(list);
}

static void wait_until_begun(const struct busy *b)
{
    char *log = xvfb_place(&b->t.x, "others.log"), *text = NULL;
    size_t len;
    for (int i = 0; i < 2000 && !(text && strstr(text, "begun")); i++) {
        clock_sleep_ms(10);
        free(text);
        if (file_read(log, 4096, &text, &len, NULL))
            text = NULL;
    }
    assert_non_null(text);
    free(text);
    free(log);
}

/* Starts twelve processes that compete for the CPU of the field. */
static pid_t compete(struct busy *b, const char *seconds)
{
    const char *others[] = {
        "timeout",
        seconds,
        "sh",
        "-c",
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do while :; do :; done & done; echo begun; wait",
        NULL};
    crowd(b);
    pid_t pid = xvfb_spawn(&b->t.x, "others.log", others);
    spread(b);
    assert_true(pid > 0);
    wait_until_begun(b);
    return pid;
}

/* Presses a key that makes the field work, while others compete for its CPU. Returns whether the screen
 * settled only after the field was drawn. */
static bool seen(struct busy *b, const char *seconds, const struct settle *p, struct settled *out)
{
    struct image before = {0}, after = {0};
    uint32_t key = XK_F5;
    struct err e = ERR_INIT;
    assert_int_equal(screen_capture(b->t.s, &before, &e), 0);
    compete(b, seconds);
    assert_int_equal(screen_chord(b->t.s, &key, 1, &e), 0);
    assert_int_equal(screen_settle(b->t.s, p, out, &e), 0);
    assert_int_equal(screen_capture(b->t.s, &after, &e), 0);
    bool changed = image_tiles_changed(&before, &after, 3) > 0;
    image_free(&before);
    image_free(&after);
    check_note("%s after %.0f ms, %s", out->why, out->ms, changed ? "changed" : "unchanged");
    return changed;
}

static void t_waits(void **state)
{
    struct busy b = {0};
    struct settled out;
    open_field(&b);
    const struct settle patient = {150, 300, 20000};
    assert_true(seen(&b, "1.5", &patient, &out)); /* the field has drawn once the others have ended */
    assert_string_not_equal(out.why, "timeout");
    stage_close(&b.t);
}

static void t_bounded(void **state)
{
    struct busy b = {0};
    struct settled out;
    open_field(&b);
    const struct settle impatient = {150, 300, 600};
    seen(&b, "30", &impatient, &out);
    assert_string_equal(out.why, "timeout");
    stage_close(&b.t);
}

/* A change that is expected is awaited for a time of the clock. */
static void t_awaited(void **state)
{
    struct busy b = {0};
    struct settled out;
    uint32_t key = XK_F5;
    struct image before = {0}, after = {0};
    const struct settle patient = {150, 300, 20000};
    open_field(&b);
    struct settle_run *w = settle_begin(b.t.s, &patient);
    assert_int_equal(settle_pause(w, 0, NULL) || screen_capture(b.t.s, &before, NULL), 0);
    pid_t others = compete(&b, "20");
    assert_int_equal(screen_chord(b.t.s, &key, 1, NULL), 0);
    assert_true(settle_await_change(w, 500));
    assert_int_equal(settle_pause(w, 0, NULL) || screen_capture(b.t.s, &after, NULL), 0);
    kill(others, SIGTERM);
    assert_true(settle_over(w, &out));
    check_note("%s after %.0f ms", out.why, out.ms);
    assert_string_equal(out.why, "quiet");
    assert_true(image_equal(&before, &after));
    settle_end(w);
    image_free(&before);
    image_free(&after);
    stage_close(&b.t);
}

/* A stopped or closed program does not wait for a CPU. */
static void t_gone(void **state)
{
    struct busy b = {0};
    struct settled out;
    const struct settle patient = {150, 300, 60000};
    open_field(&b);
    kill(b.field, SIGSTOP);
    assert_int_equal(screen_settle(b.t.s, &patient, &out, NULL), 0);
    assert_string_not_equal(out.why, "timeout");
    kill(b.field, SIGCONT);
    Window root, parent, *list;
    unsigned n;
    Display *d = b.t.other;
    assert_true(XQueryTree(d, DefaultRootWindow(d), &root, &parent, &list, &n) && n);
    long pid = 0x7ffffff0;
    XChangeProperty(d, list[n - 1], XInternAtom(d, "_NET_WM_PID", False), XA_CARDINAL, 32, PropModeReplace,
                    (const unsigned char *)&pid, 1);
    XSync(d, False);
    XFree(list);
    assert_int_equal(screen_settle(b.t.s, &patient, &out, NULL), 0);
    assert_string_not_equal(out.why, "timeout");
    stage_close(&b.t);
}

/* ---- programs at rest ------------------------------------------------------------------------------------ */

static void work_ms(double ms)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    for (int64_t end = t.tv_sec * 1000000000 + t.tv_nsec + (int64_t)(1e6 * ms);
         t.tv_sec * 1000000000 + t.tv_nsec < end;)
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
}

/* Starts a process that works `first` ms, and then `ms` every `period` ms. */
static pid_t start_worker(double first, double ms, double period)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (work_ms(first);; work_ms(ms))
        clock_sleep_ms(period - ms);
}

/* Returns whether the worker is at rest before it has worked for max_ms. */
static bool rests(struct screen *s, pid_t worker, double max_ms)
{
    struct at_rest v;
    struct err e = ERR_INIT;
    bool yes;
    const int pid = (int)worker;
    int64_t start = clock_ns();
    at_rest_begin(&v, &pid, 1, 0);
    assert_int_equal(at_rest_wait(&v, s, max_ms, &yes, &e), 0);
    check_note("%s after %.0f ms", yes ? "at rest" : "at work", clock_ms_since(start));
    return yes;
}

static void t_rest(void **state)
{
    struct stage t;
    struct timespec used;
    clockid_t clock;
    (void)state;
    stage_open(&t);
    pid_t frames = start_worker(0, 0.4, 16), busy = start_worker(0, 5, 9), burst = start_worker(60, 0, 1000);
    assert_true(rests(t.s, burst, 1000));
    assert_int_equal(clock_getcpuclockid(burst, &clock), 0);
    clock_gettime(clock, &used);
    assert_true(used.tv_nsec >= 60000000);
    assert_true(rests(t.s, frames, 1000));
    assert_false(rests(t.s, busy, 200));
    kill(busy, SIGSTOP);
    assert_false(rests(t.s, busy, 200));
    for (int i = 0; i < 3; i++) {
        kill((pid_t[]){frames, busy, burst}[i], SIGKILL);
        waitpid((pid_t[]){frames, busy, burst}[i], NULL, 0);
    }
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a screen is not settled while its program waits for a CPU", t_waits),
    CLAIM("the wait for the CPU ends at the time limit", t_bounded),
    CLAIM("an expected change is not awaited for longer while its program waits for a CPU", t_awaited),
    CLAIM("a stopped or closed program is not waited for", t_gone),
    CLAIM(
        "a program is at rest after its work, also if it paints a frame now and then, but not while stopped",
        t_rest),
};

CHECK_MAIN()
