/* t_driver.c - tests that one run at a time drives a display, whatever the spelling of its name and the
 * runtime folder: the lock is on the X server, and `holorun stop` asks the server.
 */
#include "check.h"
#include "driven.h"

#include "screen/x11/xtrap.h"

#include <X11/extensions/XTest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_WAIT TYPE("a") WAIT(60) ANSWER("Done.")

struct other { /* its own runtime folder, and another spelling of the display */
    char folder[160], display[32];
};

static void open_other(const struct stage *t, const char *spelling, struct other *o)
{
    snprintf(o->folder, sizeof o->folder, "%s/elsewhere", t->x.dir);
    assert_int_equal(mkdir(o->folder, 0700), 0);
    snprintf(o->display, sizeof o->display, "%s%s", spelling, t->x.display);
}

/* Runs the program with that runtime folder. */
static void run_there(const struct stage *t, const struct other *o, const char *const *words,
                      struct outcome *out)
{
    char *runtime = xstrdup(getenv("XDG_RUNTIME_DIR")), *said = xvfb_place(&t->x, "out");
    setenv("XDG_RUNTIME_DIR", o->folder, 1);
    program_finish(&t->x, program_start_into(&t->x, said, words), out);
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    free(runtime);
    free(said);
}

static pid_t start_long(const struct stage *t)
{
    pid_t pid = driven_start(t, LONG_WAIT);
    driven_wait(t, "key_press", 1);
    return pid;
}

static void t_second(void **state)
{
    static const char *const spellings[] = {"unix", ""};
    for (int i = 0; i < 2; i++) {
        struct stage t;
        struct other o;
        struct outcome second = {0}, stop = {0}, after = {0};
        char number[24];
        driven_open(&t);
        open_other(&t, spellings[i], &o);
        char *script = xvfb_put(&t.x, "second", TYPE("b") ANSWER("Done."));
        pid_t first = start_long(&t);
        snprintf(number, sizeof number, "process %d", (int)first);
        const char *const *words = WORDS("run", "Type", "--display", o.display, "--fake", script);
        run_there(&t, &o, words, &second);
        if (second.code != ERR_ENV || !strstr(second.err, "in use by another holorun") ||
            !strstr(second.err, number))
            fail_msg("'%s': exit code %d: %s", o.display, second.code, second.err);
        printf("           %s: %.*s\n", o.display, (int)strcspn(second.err, "\n"), second.err);
        assert_int_equal(waitpid(first, NULL, WNOHANG), 0);
        run_there(&t, &o, WORDS("stop", o.display), &stop);
        if (stop.code)
            fail_msg("stop: exit code %d: %s", stop.code, stop.err);
        int status;
        assert_int_equal(waitpid(first, &status, 0), first);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ERR_STOPPED);
        run_there(&t, &o, words, &after); /* the display is free again */
        if (after.code)
            fail_msg("afterwards: exit code %d: %s", after.code, after.err);
        outcome_free(&second);
        outcome_free(&stop);
        outcome_free(&after);
        free(script);
        stage_close(&t);
    }
}

static void t_killed(void **state)
{
    struct stage t;
    struct other o;
    struct outcome second = {0};
    driven_open(&t);
    open_other(&t, "unix", &o);
    char *script = xvfb_put(&t.x, "second", TYPE("b") ANSWER("Done."));
    pid_t first = start_long(&t);
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    run_there(&t, &o, WORDS("run", "Type", "--display", o.display, "--fake", script), &second);
    if (second.code)
        fail_msg("exit code %d: %s", second.code, second.err);
    outcome_free(&second);
    free(script);
    stage_close(&t);
}

static void t_stop_alone(void **state)
{
    struct stage t;
    struct other o;
    struct outcome stop = {0};
    int status;
    driven_open(&t);
    open_other(&t, "", &o);
    pid_t first = start_long(&t);
    run_there(&t, &o, WORDS("stop"), &stop); /* $DISPLAY */
    assert_int_equal(stop.code, 0);
    assert_int_equal(waitpid(first, &status, 0), first);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ERR_STOPPED);
    run_there(&t, &o, WORDS("stop"), &stop);
    ONE_LINE(&stop, ERR_FAILED, "no active runs");
    outcome_free(&stop);
    stage_close(&t);
}

/* In a child: exits with 0 if the display was reported as lost. */
_Noreturn static void ask_lost(struct xvfb *x, int err)
{
    atomic_bool lost = false;
    xtrap_setup();
    Display *dpy = xtrap_open(x->display, &lost);
    xvfb_kill_server(x);
    dup2(err, STDERR_FILENO);
    if (dpy)
        XTestGrabControl(dpy, True);
    _exit(dpy && lost ? 0 : 1);
}

/* The first request of an extension checks whether the server has it, and the library takes silence for "no".
 * Runs in a child, because the library asks only once per process. */
static void t_silent(void **state)
{
    struct xvfb x;
    char said[64] = "";
    int pipes[2], status;
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        ask_lost(&x, pipes[1]);
    close(pipes[1]);
    assert_int_equal(read(pipes[0], said, sizeof said - 1), 0);
    assert_string_equal(said, "");
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a second run under another name or runtime folder is refused, and stop finds the first", t_second),
    CLAIM("after a kill the display is free at once", t_killed),
    CLAIM("a display lost while an extension is queried prints nothing on stderr", t_silent),
    CLAIM("stop without a name ends the run on $DISPLAY, whatever its runtime folder", t_stop_alone),
};

CHECK_MAIN()
