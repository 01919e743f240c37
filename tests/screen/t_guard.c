/* t_guard.c - tests that keys and buttons are released: by the watchdog when their owner is killed, suspended
 * or hangs, and at once at a stop.
 */
#include "check.h"
#include "driven.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the watchdog ---------------------------------------------------------------------------- */

enum { PATIENCE_MS = 20000 }; /* loaded machines are slow */

static double until_released(const struct stage *t)
{
    int64_t start = clock_ns();
    while (pressed(t->other) && clock_ms_since(start) < PATIENCE_MS)
        clock_sleep_ms(5);
    return clock_ms_since(start);
}

/* Returns the pid of an ended orphan of a killed run (this process is its reaper), or 0 after a timeout. */
static pid_t orphan_ended(void)
{
    int status;
    pid_t got = 0;
    for (int ms = 0; ms < PATIENCE_MS && got == 0; ms += 5) {
        clock_sleep_ms(5);
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
            got = pid;
    }
    return got;
}

/* A cancelled drag is dropped where it began, not on whatever is under the pointer. */
static void assert_taken_back(struct stage *t)
{
    json_t *down = stage_events(t, "button_press");
    json_int_t x = field(down, 0, "x"), y = field(down, 0, "y");
    json_t *up = stage_events(t, "button_release");
    assert_int_equal(json_array_size(up), 1);
    assert_int_equal(field(up, 0, "x"), x);
    assert_int_equal(field(up, 0, "y"), y);
}

static void t_guard_killed(void **state)
{
    struct stage t;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    driven_open(&t);
    pid_t pid = driven_start(&t, HELD_DRAG);
    driven_wait(&t, "button_press", 1);
    assert_int_equal(pressed(t.other), 3); /* Shift, Control and the button */
    driven_wait(&t, "motion", 8);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    check_note("killed: released after %.0f ms", until_released(&t));
    assert_int_equal(pressed(t.other), 0);
    assert_taken_back(&t);
    assert_true(orphan_ended() > 0);
    char *path = xasprintf("%s/holorun/run-%d.json", t.x.dir, (int)pid);
    assert_false(file_exists(path));
    free(path);
    driven_left_nothing(&t);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    stage_close(&t);
}

static unsigned locks(const struct stage *t)
{
    XkbStateRec st;
    XkbGetState(t->other, XkbUseCoreKbd, &st);
    return st.locked_mods & (LockMask | ControlMask);
}

static void t_guard_locks(void **state)
{
    struct stage t;
    driven_open(&t);
    XkbLockModifiers(t.other, XkbUseCoreKbd, LockMask | ControlMask, LockMask | ControlMask);
    XSync(t.other, False);
    pid_t pid = driven_start(&t, TYPE_LONG ANSWER("Done."));
    driven_wait(&t, "key_press", 30);
    assert_int_equal(locks(&t), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int ms = 0; ms < PATIENCE_MS && !locks(&t); ms += 5)
        clock_sleep_ms(5);
    assert_int_equal(locks(&t), LockMask | ControlMask);
    driven_left_nothing(&t);
    stage_close(&t);
}

static void t_guard_stopped(void **state)
{
    struct stage t;
    struct outcome o = {0};
    driven_open(&t);
    pid_t pid = driven_start(&t, HELD_DRAG);
    driven_wait(&t, "button_press", 1);
    driven_wait(&t, "motion", 8);
    kill(pid, SIGSTOP);
    check_note("stopped: released after %.0f ms", until_released(&t));
    assert_int_equal(pressed(t.other), 0);
    assert_taken_back(&t);
    kill(pid, SIGCONT); /* its action was cancelled: it ends */
    program_finish(&t.x, pid, &o);
    assert_int_equal(o.code, ERR_STOPPED);
    driven_was_stopped(&t, "watchdog");
    driven_left_nothing(&t);
    outcome_free(&o);
    stage_close(&t);
}

/* Starts `holorun run` with its output in a pipe; returns the read end. */
static int start_into_pipe(const struct stage *t, const char *replies, pid_t *pid)
{
    int out[2];
    char *script = xvfb_put(&t->x, "script", replies), *runs = xvfb_place(&t->x, "runs");
    assert_int_equal(pipe(out), 0);
    fflush(stdout);
    if ((*pid = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        close(out[0]);
        close(out[1]);
        execl(program_path(), program_path(), "run", "Press Save", "--fake", script, "--runs", runs,
              (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    free(script);
    free(runs);
    return out[0];
}

static bool ends_within(int fd, int ms)
{
    char text[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t start = clock_ns();
    ssize_t n = 1;
    for (double left = ms; n > 0 && left > 0; left = ms - clock_ms_since(start))
        if (poll(&p, 1, (int)left + 1) > 0)
            n = read(fd, text, sizeof text);
    return n == 0;
}

/* The server hangs, so the watchdog stays until the server continues. */
static void t_output_ends(void **state)
{
    for (int how = 0; how < 2; how++) {
        struct stage t;
        pid_t pid;
        driven_open(&t);
        int fd = start_into_pipe(&t, HELD_DRAG, &pid);
        driven_wait(&t, "button_press", 1);
        driven_wait(&t, "motion", 8);
        kill(t.x.server, SIGSTOP);
        kill(pid, how ? SIGKILL : SIGTERM);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        int64_t start = clock_ns();
        bool ended = ends_within(fd, 5000);
        double ms = clock_ms_since(start);
        kill(t.x.server, SIGCONT);
        close(fd);
        assert_true(ended);
        check_note("%s: its output ends after %.0f ms", how ? "killed" : "stopped", ms);
        until_released(&t);
        assert_int_equal(pressed(t.other), 0);
        stage_close(&t);
    }
}

enum { TREE_MOST = 64 };

static int add_tree(pid_t pid, pid_t *all, int n)
{
    char *path = xasprintf("/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    int child;
    all[n++] = pid;
    while (f && n < TREE_MOST && fscanf(f, "%d", &child) == 1)
        n = add_tree(child, all, n);
    if (f)
        fclose(f);
    free(path);
    return n;
}

/* Kills the run and all its descendants. */
static void kill_tree(pid_t pid)
{
    pid_t all[TREE_MOST];
    int n = add_tree(pid, all, 0);
    for (int i = 0; i < n; i++)
        kill(all[i], SIGSTOP);
    for (int i = 0; i < n; i++)
        kill(all[i], SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Returns how many files of runs and desktops are in a folder, by their prefixes. */
static int count_left(const char *dir)
{
    static const char *const ours[] = {"run-", "stop-", "holorun-desks-"};
    DIR *d = opendir(dir);
    int n = 0;
    for (const struct dirent *f; d && (f = readdir(d));)
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
            n += !strncmp(f->d_name, ours[i], strlen(ours[i]));
    if (d)
        closedir(d);
    return n;
}

static void t_left_files(void **state)
{
    for (int on_desk = 0; on_desk < 2; on_desk++) {
        struct stage t;
        struct outcome o = {0};
        driven_open(&t);
        char *runtime = xvfb_place(&t.x, "holorun"),
             *before = xstrdup(getenv("TMPDIR") ? getenv("TMPDIR") : "");
        setenv("TMPDIR", t.x.dir, 1);
        pid_t pid = driven_start_with(&t, SHIFT_DOWN WAIT(60) ANSWER("Done."),
                                      on_desk ? WORDS("--on", "desk") : WORDS(NULL));
        for (int ms = 0; ms < PATIENCE_MS && count_left(runtime) + count_left(t.x.dir) < 1 + on_desk;
             ms += 20)
            clock_sleep_ms(20);
        clock_sleep_ms(1000);
        kill_tree(pid);
        char *stop = xasprintf("%s/stop-%d-1", runtime, (int)pid),
             *entry = xasprintf("%s/run-%d.json", runtime, (int)pid), *tmp = file_temp_name(entry);
        assert_int_equal(file_write(stop, "", 0, NULL), 0);
        assert_int_equal(file_write(tmp, "{", 1, NULL), 0);
        assert_int_equal(count_left(runtime), 3);
        assert_int_equal(count_left(t.x.dir), on_desk);
        driven_run(&t, ANSWER("Done."), NULL, &o);
        assert_int_equal(o.code, ERR_UNVERIFIED);
        assert_int_equal(count_left(runtime), 0);
        assert_int_equal(count_left(t.x.dir), 0);
        if (*before)
            setenv("TMPDIR", before, 1);
        else
            unsetenv("TMPDIR");
        outcome_free(&o);
        free(stop);
        free(tmp);
        free(entry);
        free(runtime);
        free(before);
        stage_close(&t);
    }
}

/* Holds Shift and does nothing: first between two actions, as while the model thinks, then inside an action
 * until go_fd is written. */
static pid_t child_that_hangs(int ready_fd, int go_fd)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (screen_guard(NULL))
        _exit(97);
    struct screen *s = screen_open(NULL, NULL);
    if (!s || screen_watch(s, NULL) || screen_key(s, XK_Shift_L, true, NULL) || write(ready_fd, "r", 1) != 1)
        _exit(99);
    clock_sleep_ms(3000);
    screen_set_acting(s, true);
    char c;
    if (write(ready_fd, "r", 1) != 1 || read(go_fd, &c, 1) != 1)
        _exit(98);
    struct err e = ERR_INIT;
    _exit(screen_move(s, 5, 5, &e) == -1 && e.kind == ERR_STOPPED ? 42 : 43);
}

static void t_guard_hangs(void **state)
{
    struct stage t;
    int fds[2], go[2], status;
    char c;
    driven_open(&t);
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(go), 0);
    pid_t pid = child_that_hangs(fds[1], go[0]);
    assert_int_equal(read(fds[0], &c, 1), 1);
    assert_int_equal(read(fds[0], &c, 1), 1);
    assert_int_equal(pressed(t.other), 1); /* a key held while the model thinks */
    check_note("hangs: released after %.0f ms", until_released(&t));
    assert_int_equal(pressed(t.other), 0);
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 42); /* no further action is possible */
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        close(go[i]);
    }
    stage_close(&t);
}

/* A check like that of a gate that asks a slow program what the keys would press. */
static int check_slowly(void *arg, struct err *e)
{
    bool *done = arg;
    if (!*done)
        clock_sleep_ms(3000);
    *done = true;
    return 0;
}

/* Types in an action, with a slow check before the first key. The exit status says whether typing
 * succeeded. */
static pid_t child_that_types(bool slow)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid)
        return pid;
    struct err e = ERR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (screen_guard(NULL))
        _exit(97);
    struct screen *s = screen_open(NULL, NULL);
    if (!s || screen_watch(s, NULL))
        _exit(99);
    bool done = !slow;
    screen_set_acting(s, true);
    if (slow && screen_key(s, XK_Shift_L, true, &e))
        _exit(98);
    screen_set_check(s, check_slowly, &done);
    int rc = screen_type(s, "abc", 3, &e);
    screen_set_check(s, NULL, NULL);
    if (rc)
        fprintf(stderr, "%s\n", e.text);
    screen_set_acting(s, false);
    screen_close(s);
    _exit(rc ? 43 : 42);
}

static void add_command(const char *dir, const char *name, const char *script)
{
    char *path = xasprintf("%s/%s", dir, name);
    assert_int_equal(file_write(path, script, strlen(script), NULL), 0);
    assert_int_equal(chmod(path, 0700), 0);
    free(path);
}

static void t_guard_waits(void **state)
{
    static const char slow[] = "#!/bin/sh\nexec sleep 20\n";
    struct stage t;
    int status;
    char *path = xstrdup(getenv("PATH"));
    setenv("GTK_IM_MODULE", "ibus", 1); /* for the program of the window */
    setenv("XMODIFIERS", "@im=fcitx", 1);
    driven_open(&t);
    char *with = xasprintf("%s:%s", t.x.dir, path);
    add_command(t.x.dir, "ibus", slow);
    add_command(t.x.dir, "fcitx5-remote", slow);
    setenv("PATH", with, 1);
    XkbLockModifiers(t.other, XkbUseCoreKbd, LockMask, LockMask); /* the run turns Caps Lock off */
    XSync(t.other, False);
    int64_t start = clock_ns();
    pid_t pid = child_that_types(false);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    check_note("typed after %.0f ms", clock_ms_since(start));
    setenv("PATH", path, 1);
    unsetenv("GTK_IM_MODULE");
    unsetenv("XMODIFIERS");
    assert_true(clock_ms_since(start) > 2500); /* longer than the watchdog allows without a heartbeat */
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_int_equal(json_array_size(stage_events(&t, "key_press")), 3);
    XkbLockModifiers(t.other, XkbUseCoreKbd, LockMask, 0);
    XSync(t.other, False);
    free(path);
    free(with);
    stage_close(&t);
}

static void t_guard_asks(void **state)
{
    struct stage t;
    int status;
    driven_open(&t);
    pid_t pid = child_that_types(true);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 42);
    stage_close(&t);
}

/* ---- stop ------------------------------------------------------------------------------------ */

/* The owner is busy elsewhere and holds Shift; the watching thread releases it. */
static void t_lift(void **state)
{
    struct stage t;
    stage_open(&t);
    must(screen_watch(t.s, &why));
    screen_install_signals();
    for (int i = 0; i < 2; i++) {
        must(screen_key(t.s, XK_Shift_L, true, &why));
        must(screen_button(t.s, 1, true, &why));
        assert_int_equal(pressed(t.other), 2);
        if (i == 0)
            raise(SIGTERM);
        else
            *screen_stop_flag(t.s) = SIGTERM; /* no thread is woken: the next poll finds it */
        double ms = until_released(&t);
        check_note("released after %.1f ms", ms);
        assert_int_equal(pressed(t.other), 0);
        assert_int_equal(screen_key(t.s, XK_a, true, NULL), -1);
        assert_int_equal(screen_button(t.s, 1, false, NULL), 0);
        assert_int_equal(pressed(t.other), 0);
        screen_stop_all(0);
        screen_release_all(t.s);
        clock_sleep_ms(300);
    }
    stage_close(&t);
}

static int no_more(void *arg, struct err *e)
{
    int *left = arg;
    return --*left < 0 ? err_set(e, ERR_FAILED, "no more") : 0;
}

static void t_taken_back(void **state)
{
    static const int way[] = {120, 130, 400, 350};
    struct stage t;
    stage_open(&t);
    must(screen_watch(t.s, &why));
    for (int how = 0; how < 3; how++) { /* by its owner, by a stop, in a drag that is refused midway */
        int left = 30;
        stage_clear(&t);
        if (how < 2) {
            must(screen_move(t.s, way[0], way[1], &why));
            must(screen_button(t.s, 1, true, &why));
            must(screen_move(t.s, way[2], way[3], &why));
        }
        if (how == 0) {
            screen_release_all(t.s);
        } else if (how == 1) {
            *screen_stop_flag(t.s) = SIGTERM;
            until_released(&t);
            screen_stop_all(0);
        } else {
            screen_set_check(t.s, no_more, &left);
            assert_int_equal(screen_drag(t.s, way, 2, 1, 300, NULL), -1);
            screen_set_check(t.s, NULL, NULL);
        }
        assert_int_equal(pressed(t.other), 0);
        assert_taken_back(&t);
        screen_release_all(t.s);
    }
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a stop releases held keys while their owner is busy, and nothing is pressed afterwards", t_lift),
    CLAIM("a cancelled, stopped or refused drag is dropped where it began", t_taken_back),
    CLAIM("a run killed in the middle of a drag releases all keys and leaves nothing behind", t_guard_killed),
    CLAIM("a run's output ends with it, even if its watchdog waits for a server that hangs", t_output_ends),
    CLAIM("a run whose rules query a slow program before a key does not count as hanging", t_guard_asks),
    CLAIM("a run that waits for an input method's command does not count as hanging", t_guard_waits),
    CLAIM("the next run removes the files of a run killed together with its watchdog", t_left_files),
    CLAIM("after a kill during typing, the locks that the run cleared are set again", t_guard_locks),
    CLAIM("a run suspended in the middle of a drag releases all keys, and ends when resumed",
          t_guard_stopped),
    CLAIM("an action that hangs releases all keys and buttons; a key held between actions stays down",
          t_guard_hangs),
};

CHECK_MAIN()
