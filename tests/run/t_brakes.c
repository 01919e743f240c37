/* t_brakes.c - tests stopping runs from outside: `holorun stop`, and stop files of one process. */
#include "check.h"
#include "driven.h"

#include "base/clock.h"
#include "base/file.h"
#include "run/running.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void t_stop(void **state)
{
    static const char *const replies[] = {SHIFT_DOWN TYPE_LONG ANSWER("Done."), HELD_DRAG,
                                          SHIFT_DOWN CLICK(500, 500) WAIT(60) ANSWER("Done.")};
    static const char *const events[] = {"key_press", "button_press", "button_release"};
    static const int n[] = {30, 1, 1};
    for (int i = 0; i < 3; i++) {
        struct stage t;
        struct outcome o = {0}, stop = {0};
        driven_open(&t);
        pid_t pid = driven_start(&t, replies[i]);
        driven_wait(&t, events[i], n[i]);
        assert_true(pressed(t.other) > 0);
        program_finish(&t.x, program_start_into(&t.x, "/dev/null", WORDS("stop")), &stop);
        assert_int_equal(stop.code, 0);
        int status;
        assert_int_equal(waitpid(pid, &status, WNOHANG), pid); /* it ended before stop returned */
        assert_int_equal(WEXITSTATUS(status), ERR_STOPPED);
        assert_non_null(strstr(stop.err, "stopped after"));
        driven_was_stopped(&t, "SIGTERM");
        driven_left_nothing(&t);
        outcome_free(&o);
        outcome_free(&stop);
        stage_close(&t);
    }
}

/* Starts a process that registers as a run and sleeps. */
static pid_t sleeper(const char *display)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL); /* another test may have installed the program's handlers */
        struct running_own *own = running_enter(0, display, "sleep\nand more", "now", NULL);
        if (!own || running_set_dir(own, "/tmp/runs/20260101T000000Z-aaaa", NULL))
            _exit(99);
        for (;;)
            pause();
    }
    char *path = xasprintf("%s/holorun/run-%d.json", getenv("XDG_RUNTIME_DIR"), (int)pid);
    bool told = false; /* its record folder is registered last */
    for (int i = 0; i < 5000 && !told; i++) {
        char *text = NULL;
        size_t len;
        clock_sleep_ms(2);
        told = file_read(path, RUNNING_BYTES, &text, &len, NULL) == 0 && strstr(text, "Z-aaaa");
        free(text);
    }
    assert_true(told);
    free(path);
    return pid;
}

static bool runs_still(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static void t_choose(void **state)
{
    char number[16];
    DRIVEN(t, o);
    program_run(&t.x, &o, WORDS("stop"));
    ONE_LINE(&o, ERR_FAILED, "no active runs");
    program_run(&t.x, &o, WORDS("stop", "--all"));
    assert_int_equal(o.code, 0);
    pid_t a = sleeper(":77"), b = sleeper(":78.0"), c = sleeper("far:79");
    program_run(&t.x, &o, WORDS("stop"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "3 runs"));
    snprintf(number, sizeof number, "%d\t:77\t", (int)a);
    assert_non_null(strstr(o.err, number));
    program_run(&t.x, &o, WORDS("stop", ":7"));
    ONE_LINE(&o, ERR_FAILED, "':7'", "--list");
    program_run(&t.x, &o, WORDS("stop", "20260101T000000Z-aaaa/")); /* matches three runs */
    assert_int_equal(o.code, ERR_USAGE);
    program_run(&t.x, &o, WORDS("stop", ":78"));
    assert_int_equal(o.code, 0);
    assert_true(runs_still(a) && !runs_still(b) && runs_still(c));
    program_run(&t.x, &o, WORDS("stop", "--list"));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "far:79\t/tmp/runs/20260101T000000Z-aaaa\tsleep\n"));
    assert_null(strstr(o.out, ":78"));
    assert_true(runs_still(a) && runs_still(c));
    snprintf(number, sizeof number, "%d", (int)a);
    program_run(&t.x, &o, WORDS("stop", number, "--json"));
    json_t *json = json_loads(o.out, 0, NULL), *run = json_array_get(json_object_get(json, "runs"), 0);
    assert_string_equal(field_text(run, "stopped"), "asked");
    assert_int_equal(field_int(run, "pid"), a);
    json_decref(json);
    assert_true(!runs_still(a) && runs_still(c));
    program_run(&t.x, &o, WORDS("stop", "--all"));
    assert_int_equal(o.code, 0);
    assert_false(runs_still(c));
}

/* Starts a process that registers a run for itself and one for each of two screens. A stopped screen leaves;
 * the process remains. */
static pid_t two_sessions(const struct xvfb *first, const struct xvfb *second)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        const struct xvfb *x[] = {first, second};
        struct screen *s[2];
        struct running_own *whole, *own[2];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL);
        for (int i = 0; i < 2; i++) {
            s[i] = screen_open(&(struct screen_options){.display = x[i]->display}, NULL);
            if (!s[i] || screen_watch(s[i], NULL))
                _exit(99);
            own[i] = running_enter(screen_number(s[i]), x[i]->display, "one of two", "now", NULL);
        }
        whole = running_enter(0, "", "two at once", "now", NULL); /* last: now all are registered */
        for (int left = 2; left; clock_sleep_ms(5))
            for (int i = 0; i < 2; i++)
                if (s[i] && *screen_stop_flag(s[i]) == STOP_FILE) {
                    screen_close(s[i]);
                    running_leave(own[i]);
                    s[i] = NULL;
                    left--;
                }
        running_leave(whole);
        for (;;)
            pause();
    }
    char *path = xasprintf("%s/holorun/run-%d.json", getenv("XDG_RUNTIME_DIR"), (int)pid);
    for (int i = 0; i < 5000 && !file_exists(path); i++)
        clock_sleep_ms(2);
    assert_true(file_exists(path));
    free(path);
    return pid;
}

static void t_sessions(void **state)
{
    struct xvfb second;
    char line[200];
    DRIVEN(t, o);
    assert_int_equal(xvfb_start_beside(&second, "320x240x24", &t.x), 0);
    pid_t pid = two_sessions(&t.x, &second);
    program_run(&t.x, &o, WORDS("stop", "--list"));
    const char *numbers = strchr(o.out, '.'); /* numbered from the first screen that this process opened */
    int one = numbers ? atoi(numbers + 1) : 0, two = one + 1;
    snprintf(line, sizeof line, "%d\t-\t-\ttwo at once\n%d.%d\t%s\t-\tone of two\n%d.%d\t%s\t-\tone of two\n",
             pid, pid, one, t.x.display, pid, two, second.display);
    assert_string_equal(o.out, line);
    program_run(&t.x, &o, WORDS("stop", second.display, "--json"));
    assert_int_equal(o.code, 0);
    json_t *json = json_loads(o.out, 0, NULL), *run = json_array_get(json_object_get(json, "runs"), 0);
    assert_string_equal(field_text(run, "stopped"), "asked");
    assert_int_equal(field_int(run, "session"), two);
    json_decref(json);
    program_run(&t.x, &o, WORDS("stop", second.display)); /* already stopped */
    ONE_LINE(&o, ERR_FAILED, "not found; holorun stop");
    program_run(&t.x, &o, WORDS("stop", "--list"));
    assert_non_null(strstr(o.out, t.x.display));
    snprintf(line, sizeof line, "%d.%d", pid, one);
    program_run(&t.x, &o, WORDS("stop", line));
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, "stopped after"));
    assert_true(runs_still(pid)); /* no signal was sent */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);

    pid = two_sessions(&t.x, &second);
    program_run(&t.x, &o, WORDS("stop")); /* the only process, with all its sessions */
    assert_int_equal(o.code, 0);
    assert_false(runs_still(pid));
    driven_left_nothing(&t);
    xvfb_stop(&second);
}

/* The file of a crashed run whose pid now belongs to another process. */
static void t_recycled(void **state)
{
    DRIVEN(t, o);
    pid_t pid = sleeper(":77");
    char *path = xasprintf("%s/holorun/run-%d.json", getenv("XDG_RUNTIME_DIR"), (int)pid), *text;
    size_t len;
    assert_int_equal(file_read(path, RUNNING_BYTES, &text, &len, NULL), 0);
    char *at = strstr(text, "\"born\": ") + 8;
    *at = *at == '9' ? '8' : (char)(*at + 1);
    assert_int_equal(file_write(path, text, len, NULL), 0);
    program_run(&t.x, &o, WORDS("stop", "--all"));
    assert_int_equal(o.code, 0);
    assert_true(runs_still(pid));
    assert_false(file_exists(path)); /* and the file is removed */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    free(text);
    free(path);
}

static void t_bad_files(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"pid\": 1, \"born\": 5}",
        "{\"pid\": -4, \"born\": 5}",
        "{\"pid\": 4711, \"born\": 0}",
        "{\"pid\": 4711, \"born\": 5, \"display\": 7, \"dir\": \"\", \"task\": \"\", \"started\": \"\"}",
        "{\"pid\": 4711, \"born\": 5, \"display\": \":1\", \"dir\": \"\", \"task\": \"\"}",
        "{\"pid\": 99999999999, \"born\": 5, \"display\": \":1\", \"dir\": \"\", \"task\": \"\", "
        "\"started\": \"\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct running r;
        struct err e = ERR_INIT;
        assert_int_equal(running_parse(bad[i], strlen(bad[i]), &r, &e), -1);
        assert_true(*e.text);
    }
    static const char good[] = "{\"pid\": 4711, \"born\": 5, \"display\": \":1\", \"dir\": \"\", \"task\": "
                               "\"a\\u001b[2Jb\", \"started\": \"\"}";
    struct running r;
    assert_int_equal(running_parse(good, sizeof good - 1, &r, NULL), 0);
    assert_string_equal(r.task, "a?[2Jb"); /* no escape sequence reaches the terminal */
}

static void t_own_file(void **state)
{
    DRIVEN(t, o);
    pid_t pid = driven_start(&t, SHIFT_DOWN TYPE_LONG ANSWER("Done."));
    driven_wait(&t, "key_press", 30);
    char *other = xasprintf("%s/holorun/stop-%d", t.x.dir, (int)pid + 1),
         *own = xasprintf("%s/holorun/stop-%d", t.x.dir, (int)pid);
    assert_int_equal(file_write(other, "", 0, NULL), 0);
    clock_sleep_ms(200);
    assert_true(runs_still(pid));
    assert_int_equal(file_write(own, "", 0, NULL), 0);
    program_finish(&t.x, pid, &o);
    assert_int_equal(o.code, ERR_STOPPED);
    driven_was_stopped(&t, "stop file");
    driven_left_nothing(&t);
    assert_false(file_exists(own));
    free(other);
    free(own);
}

/* The run does not react: stop kills it in the end and releases its keys. */
static void t_deaf(void **state)
{
    int status;
    DRIVEN(t, o);
    pid_t pid = driven_start(&t, HELD_DRAG);
    driven_wait(&t, "button_press", 1);
    kill(pid, SIGSTOP);
    int64_t start = clock_ns();
    program_run(&t.x, &o, WORDS("stop", t.x.display));
    check_note("%.1f s", clock_ms_since(start) / 1000);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.err, "killed"));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    driven_left_nothing(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("of a process with two sessions one can be stopped, by display or number, without a signal; or all "
          "of it",
          t_sessions),
    CLAIM("holorun stop ends a run that types, drags or waits, and comes back when it has ended", t_stop),
    CLAIM("holorun stop names the runs there are, and stops the one that is named", t_choose),
    CLAIM("a process that has the number of a dead run is not hit", t_recycled),
    CLAIM("files of runs that make no sense are refused; what they say is safe to print", t_bad_files),
    CLAIM("a stop file of one process stops that one, and goes with it", t_own_file),
    CLAIM("a run that does not answer is killed, and what it held goes up", t_deaf),
};

CHECK_MAIN()
