/* t_sticky.c - tests that keyboard settings of the user are restored after each action and after a run killed
 * at any moment; also killed watchdogs, and servers that hang and continue.
 *
 * HOLORUN_STICKY_KILLS=n: n kills instead of 6. HOLORUN_STICKY_RESULT=FILE: writes a line about them.
 */
#include "check.h"
#include "driven.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { PATIENCE_MS = 20000, CONTROLS = XkbStickyKeysMask | XkbSlowKeysMask | XkbBounceKeysMask };

struct settings {
    unsigned locks, latches, controls, group;
};

static struct settings settings_of(Display *dpy)
{
    XkbStateRec st;
    XkbDescRec d = {.device_spec = XkbUseCoreKbd};
    XkbGetState(dpy, XkbUseCoreKbd, &st);
    XkbGetControls(dpy, XkbControlsEnabledMask, &d);
    struct settings out = {st.locked_mods, st.latched_mods, d.ctrls->enabled_ctrls & CONTROLS,
                           st.locked_group};
    XkbFreeControls(&d, XkbAllControlsMask, True);
    return out;
}

static bool same(struct settings a, struct settings b)
{
    return a.locks == b.locks && a.latches == b.latches && a.controls == b.controls && a.group == b.group;
}

static void set(Display *dpy, struct settings s)
{
    XkbChangeEnabledControls(dpy, XkbUseCoreKbd, CONTROLS, 0);
    XkbChangeEnabledControls(dpy, XkbUseCoreKbd, s.controls, s.controls);
    XkbLockModifiers(dpy, XkbUseCoreKbd, 0xff, s.locks);
    XkbLatchModifiers(dpy, XkbUseCoreKbd, 0xff, s.latches);
    XSync(dpy, False);
}

static void check_settings(Display *dpy, struct settings want, const char *when)
{
    struct settings now = settings_of(dpy);
    if (!same(now, want))
        fail_msg("%s: locks %x latches %x controls %x group %u; they were %x %x %x %u", when, now.locks,
                 now.latches, now.controls, now.group, want.locks, want.latches, want.controls, want.group);
}

static const struct settings kinds[] = {
    {0, 0, XkbStickyKeysMask, 0},
    {0, ShiftMask, XkbStickyKeysMask, 0},
    {ControlMask, 0, XkbStickyKeysMask, 0},
    {LockMask | Mod2Mask, 0, XkbStickyKeysMask, 0},
    {Mod2Mask, ControlMask, 0, 0},
    {LockMask, 0, XkbSlowKeysMask | XkbBounceKeysMask, 0},
    {LockMask | Mod2Mask | ControlMask, ShiftMask, CONTROLS, 0},
    {0, 0, 0, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- after each action ----------------------------------------------------------------------- */

static void typed_is(struct stage *t, const char *want)
{
    char got[256] = "";
    json_t *ev = stage_events(t, "key_press");
    for (size_t i = 0; i < json_array_size(ev); i++)
        if (strlen(word(ev, i, "text")) < sizeof got - strlen(got))
            strcat(got, word(ev, i, "text"));
    assert_string_equal(got, want);
}

static void t_as_before(void **state)
{
    static const uint32_t copy[] = {XK_Control_L, XK_c}, tab[] = {XK_Shift_L, XK_Tab};
    static const int path[] = {100, 100, 300, 300};
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    for (int i = 0; i < KINDS; i++) {
        set(t.other, kinds[i]);
        check_settings(t.other, kinds[i], "set");
        stage_clear(&t);
        must(screen_type(t.s, "aBéÉll WW", strlen("aBéÉll WW"), &why));
        typed_is(&t, "aBéÉll WW");
        check_settings(t.other, kinds[i], "after a text");
        must(screen_chord(t.s, copy, 2, &why));
        check_settings(t.other, kinds[i], "after ctrl+c");
        must(screen_chord(t.s, tab, 2, &why));
        check_settings(t.other, kinds[i], "after shift+Tab");
        stage_clear(&t);
        must(screen_click(t.s, 200, 200, 1, 1, &why));
        json_t *ev = stage_events(&t, "button_press");
        assert_int_equal(json_array_size(ev), 1);
        assert_int_equal(field(ev, 0, "state") & (ShiftMask | ControlMask), 0);
        check_settings(t.other, kinds[i], "after a click");
        must(screen_drag(t.s, path, 2, 1, 50, &why));
        must(screen_scroll(t.s, 0, 2, &why));
        check_settings(t.other, kinds[i], "after a drag and the wheel");
        must(screen_key(t.s, XK_Shift_L, true, &why));
        must(screen_click(t.s, 210, 210, 1, 1, &why));
        must(screen_key(t.s, XK_Shift_L, false, &why));
        check_settings(t.other, kinds[i], "after a click with Shift");
        assert_int_equal(pressed(t.other), 0);
    }
    stage_close(&t);
}

/* ---- killed ---------------------------------------------------------------------------------- */

static int guards_of(pid_t parent, pid_t *out, int max)
{
    int n = 0;
    DIR *d = opendir("/proc");
    for (const struct dirent *f; n < max && (f = readdir(d));) {
        char path[64], *text = NULL, name[32];
        size_t len;
        int ppid;
        pid_t pid = atoi(f->d_name);
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        if (pid < 2 || file_read(path, 4096, &text, &len, NULL))
            continue;
        if (sscanf(text, "%*d (%31[^)]) %*c %d", name, &ppid) == 2 && ppid == parent &&
            !strcmp(name, "holorun-guard"))
            out[n++] = pid;
        free(text);
    }
    closedir(d);
    return n;
}

/* Finds the guard's processes, the supervisor first; returns their number. */
static int guards(pid_t run, pid_t out[2])
{
    int n = guards_of(run, out, 1);
    return n ? n + guards_of(out[0], out + n, 1) : 0;
}

static bool held_files(const struct stage *t)
{
    char *place = xasprintf("%s/holorun", t->x.dir);
    DIR *d = opendir(place);
    bool found = false;
    for (const struct dirent *f; d && (f = readdir(d));)
        found = found || !strncmp(f->d_name, "held-", 5);
    if (d)
        closedir(d);
    free(place);
    return found;
}

static bool all_well(const struct stage *t, struct settings want)
{
    return !pressed(t->other) && !borrowed_keycodes(t->other) && same(settings_of(t->other), want) &&
           !held_files(t);
}

static int kills(void)
{
    const char *s = getenv("HOLORUN_STICKY_KILLS");
    return s && atoi(s) > 0 ? atoi(s) : 6;
}

static void reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void t_killed(void **state)
{
    struct stage t;
    uint64_t rng = check_seed();
    int n = kills(), both = 0;
    double slowest = 0;
    static const char *const replies[] = {TYPE_LONG ANSWER("x"), HELD_DRAG,
                                          SHIFT_DOWN TYPE("ABC " TEN " DEF " TEN) CTRL_DRAG ANSWER("x")};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    driven_open(&t);
    for (int i = 0; i < n; i++) {
        struct settings want = {check_below(&rng, 2) * LockMask | check_below(&rng, 2) * Mod2Mask |
                                    (check_below(&rng, 4) ? 0 : ControlMask),
                                check_below(&rng, 3) ? 0 : ShiftMask, check_below(&rng, 4) * XkbSlowKeysMask,
                                0};
        set(t.other, want);
        stage_clear(&t);
        pid_t own[2], pid = driven_start(&t, replies[check_below(&rng, 3)]);
        clock_sleep_ms(check_within(&rng, 50, 900));
        /* in one of four cases with all its watchdogs */
        int n_own = check_below(&rng, 4) ? 0 : guards(pid, own);
        both += n_own > 0;
        for (int k = 0; k < n_own; k++)
            kill(own[k], SIGKILL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        if (n_own) { /* the next start restores the settings instead */
            clock_sleep_ms(20);
            screen_close(screen_open(NULL, NULL));
        }
        int64_t start = clock_ns();
        while (!all_well(&t, want) && clock_ms_since(start) < PATIENCE_MS) {
            clock_sleep_ms(10);
            reap();
        }
        slowest = fmax(slowest, clock_ms_since(start));
        if (!all_well(&t, want)) {
            check_note("kill %d: %d pressed, %d borrowed, held file %d", i, pressed(t.other),
                       borrowed_keycodes(t.other), held_files(&t));
            check_settings(t.other, want, "after a kill");
            fail();
        }
        for (int ms = 0; ms < PATIENCE_MS && waitpid(-1, NULL, WNOHANG) >= 0 && guards(pid, own); ms += 5)
            clock_sleep_ms(5);
    }
    check_note("%d kills, %d of them with all watchdogs: all restored, after %.0f ms at most", n, both,
               slowest);
    const char *path = getenv("HOLORUN_STICKY_RESULT");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (out) {
        fprintf(
            out,
            "%d kills, %d of them with all watchdogs at the same time: nothing pressed, no keycode borrowed, "
            "settings as before, no file left; %.0f ms at most\n",
            n, both, slowest);
        fclose(out);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    stage_close(&t);
}

/* ---- watchdogs ------------------------------------------------------------------------------- */

static void t_watchdog(void **state)
{
    struct stage t;
    struct outcome o = {0};
    pid_t own[2] = {0}, again[2] = {0};
    driven_open(&t);
    pid_t pid = driven_start(&t, HELD_DRAG);
    driven_wait(&t, "button_press", 1);
    assert_int_equal(guards(pid, own), 2);
    kill(own[1], SIGKILL);
    for (int ms = 0; ms < PATIENCE_MS && (guards(pid, again) < 2 || again[1] == own[1]); ms += 5)
        clock_sleep_ms(5);
    assert_int_equal(again[0], own[0]);
    assert_int_not_equal(again[1], own[1]);
    program_finish(&t.x, pid, &o);
    assert_int_equal(o.code, 0); /* the run continues */
    outcome_free(&o);
    stage_clear(&t);

    static const char slow[] = TYPE_LONG TYPE_LONG ANSWER("Done.");
    pid = driven_start(&t, slow);
    driven_wait(&t, "key_press", 30);
    assert_int_equal(guards(pid, own), 2);
    kill(own[0], SIGKILL);
    program_finish(&t.x, pid, &o);
    assert_int_equal(o.code, ERR_STOPPED);
    driven_was_stopped(&t, "watchdog process was killed");
    driven_left_nothing(&t);
    assert_false(held_files(&t));
    outcome_free(&o);
    stage_close(&t);
}

static void t_hung_server(void **state)
{
    struct stage t;
    int status;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    driven_open(&t);
    pid_t pid = driven_start(&t, HELD_DRAG);
    driven_wait(&t, "button_press", 1);
    assert_true(pressed(t.other) > 0);
    kill(t.x.server, SIGSTOP);
    kill(pid, SIGTERM); /* it gives up on the server and ends */
    for (int ms = 0; ms < PATIENCE_MS && waitpid(pid, &status, WNOHANG) == 0; ms += 20)
        clock_sleep_ms(20);
    clock_sleep_ms(1500); /* long after */
    kill(t.x.server, SIGCONT);
    int64_t start = clock_ns();
    while (pressed(t.other) && clock_ms_since(start) < PATIENCE_MS)
        clock_sleep_ms(5);
    check_note("released %.0f ms after the server continued", clock_ms_since(start));
    assert_int_equal(pressed(t.other), 0);
    while (held_files(&t) && clock_ms_since(start) < PATIENCE_MS)
        clock_sleep_ms(5);
    assert_false(held_files(&t));
    for (int ms = 0; ms < PATIENCE_MS && waitpid(-1, NULL, WNOHANG) == 0; ms += 5)
        clock_sleep_ms(5);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    stage_close(&t);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static void layout(struct stage *t, const char *name)
{
    assert_int_equal(xvfb_run(&t->x, (const char *const[]){"setxkbmap", "-layout", name, NULL}), 0);
}

static void t_between(void **state)
{
    static const uint32_t capital[] = {XK_Shift_L, XK_a};
    static const char *const names[] = {"us", "de", "fr", "ara", "us", "gr", "cz"};
    struct stage t;
    stage_open(&t);
    must(screen_move(t.s, 100, 100, &why));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        layout(&t, names[i]);
        stage_clear(&t);
        must(screen_type(t.s, "yz-2 é", strlen("yz-2 é"), &why));
        typed_is(&t, "yz-2 é");
        stage_clear(&t);
        must(screen_chord(t.s, capital, 2, &why)); /* also if no key gives an a */
        json_t *ev = stage_events(&t, "key_press");
        assert_string_equal(word(ev, json_array_size(ev) - 1, "text"), "A");
    }
    assert_int_equal(xvfb_run(&t.x, (const char *const[]){"xmodmap", "-e", "keycode 29 = z Z", NULL}), 0);
    stage_clear(&t);
    must(screen_type(t.s, "yz", 2, &why));
    typed_is(&t, "yz");
    screen_close(t.s);
    t.s = NULL;
    assert_false(held_files(&t));
    stage_close(&t);
}

static void t_escape(void **state)
{
    struct stage t;
    stage_open(&t);
    XDevice *hers = persons_keyboard(t.other);
    assert_non_null(hers);
    must(screen_watch(t.s, &why));
    assert_int_equal(
        xvfb_run(&t.x, (const char *const[]){"setxkbmap", "us", "-option", "caps:swapescape", NULL}), 0);
    clock_sleep_ms(300);
    Display *fresh = XOpenDisplay(NULL); /* has the new map */
    unsigned code = XKeysymToKeycode(fresh, XK_Escape);
    XCloseDisplay(fresh);
    assert_int_equal(code, 66);
    for (int i = 0; i < 4; i++) {
        XTestFakeDeviceKeyEvent(t.other, hers, code, i % 2 == 0, NULL, 0, CurrentTime);
        XSync(t.other, False);
        clock_sleep_ms(20);
    }
    for (int ms = 0; ms < PATIENCE_MS && !*screen_stop_flag(t.s); ms += 5)
        clock_sleep_ms(5);
    assert_int_equal(*screen_stop_flag(t.s), STOP_HUMAN);
    XCloseDevice(t.other, hers);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("sticky, slow and bounce keys, locks and latches are kept across each action", t_as_before),
    CLAIM("a run killed at any moment, with or without its watchdogs: all settings are restored", t_killed),
    CLAIM("a killed watchdog is replaced; without any the run stops", t_watchdog),
    CLAIM("a button held on a server that hangs is released when the server continues after the run",
          t_hung_server),
    CLAIM("Escape twice stops the run with the most recently loaded layout", t_escape),
    CLAIM("a layout loaded between two actions is used by the next; no file stays", t_between),
};

CHECK_MAIN()
