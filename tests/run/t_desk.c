/* t_desk.c - tests desktops: the programs on them, and that they leave nothing behind. t_desk_isolation.c
 * tests many.
 */
#include "check.h"
#include "desks.h"
#include "program.h"
#include "replies.h"
#include "xvfb.h"

#include "base/buf.h"
#include "base/clock.h"
#include "screen/screen.h"

#include <signal.h>

/* ---- properties ---------------------------------------------------------------------------------- */

static void t_place(void **state)
{
    setenv("WAYLAND_DISPLAY", "wayland-7", 1);
    setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere", 1);
    desks_ready();
    static const char *const env[] = {"COLOR=green blue", NULL};
    struct desk *d = desks_open(&(struct desk_options){.display = "xvfb:800x500",
                                                       .wm = "",
                                                       .dir = "/usr",
                                                       .env = env,
                                                       .no_elements = true,
                                                       .seconds = DESKS_PATIENCE});
    struct err e = ERR_INIT;
    struct screen *s = screen_open(&(struct screen_options){.display = desk_display(d)}, &e);
    assert_non_null(s);
    assert_int_equal(screen_root(s).w, 800);
    assert_int_equal(screen_root(s).h, 500);
    screen_close(s);
    char *home = xasprintf("%s %s", desk_home(d), desk_display(d)), *below;
    desks_says(d, "printf '%s %s' \"$HOME\" \"$DISPLAY\"", home);
    below = xasprintf("%s/.config", desk_home(d));
    desks_says(d, "printf %s \"$XDG_CONFIG_HOME\"", below);
    desks_says(d, "printf %s \"$WAYLAND_DISPLAY$DBUS_SESSION_BUS_ADDRESS$SESSION_MANAGER\"", "");
    desks_says(d, "printf %s \"$COLOR\"; pwd", "green blue/usr\n");
    desks_says(d, "ls -A ~; touch ~/a \"$TMPDIR/b\" \"$XDG_RUNTIME_DIR/c\"; stat -c %a ~ $XDG_RUNTIME_DIR",
               "700\n700\n");
    /* one is ls's own */
    desks_says(d, "readlink /proc/self/fd/0; ls /proc/self/fd | wc -l", "/dev/null\n4\n");
    struct desk_trace t = desk_trace_of(d);
    desk_close(d);
    desks_gone(&t);
    desks_end();
    unsetenv("WAYLAND_DISPLAY");
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    free(home);
    free(below);
}

/* A folder used as HOME keeps its files and belongs to one desktop at a time, even if that one is killed. */
static void t_kept_home(void **state)
{
    struct err e = ERR_INIT;
    char *home = xstrdup("/tmp/holorun-t-home-XXXXXX");
    assert_non_null(mkdtemp(home));
    desks_ready();
    const struct desk_options o = {
        .display = DESKS_SCREEN, .wm = "", .home_kept = home, .seconds = DESKS_PATIENCE};
    struct desk *d = desks_open(&o);
    assert_string_equal(desk_home(d), home);
    desks_says(d, "printf %s \"$HOME\"", home);
    desks_says(d, "mkdir ~/.config; echo kept >~/.config/profile; ls -A ~", ".config\n");
    assert_null(desk_open(&o, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "is in use by another private desktop"));
    struct desk_trace t = desk_trace_of(d);
    kill(d->pids[0], SIGKILL); /* its supervisor */
    desk_close(d);
    desks_gone(&t);
    d = desks_open(&o);
    desks_says(d, "cat \"$XDG_CONFIG_HOME\"/profile", "kept\n");
    desk_close(d);
    assert_int_equal(chmod(home, 0777), 0);
    assert_null(desk_open(&o, &e));
    assert_non_null(strstr(e.text, "it is writable by other users"));
    desks_end();
    folder_remove(home);
    free(home);
}

/* --home makes the folder, and reports why one is unusable. */
static void t_home_option(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    struct stat st;
    xvfb_folder(&x);
    char *home = xvfb_place(&x, "profiles"), *runs = xvfb_place(&x, "runs"), *made, *file;
    char *replies = xvfb_put(&x, "replies", ANSWER("Done."));
    program_run(&x, &o,
                WORDS("run", "Press Save", "--on", "desk", "--home", home, "--start",
                      "touch ~/made; exec xmessage -title one hello", "--fake", replies, "--runs", runs));
    if (o.code == ERR_ENV)
        skip();                               /* no Xvfb or no xmessage */
    assert_int_equal(o.code, ERR_UNVERIFIED); /* it did nothing */
    assert_int_equal(stat(home, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    made = xasprintf("%s/made", home);
    assert_int_equal(stat(made, &st), 0);
    file = xasprintf("%s/made", home);
    program_run(&x, &o, WORDS("run", "Press Save", "--on", "desk", "--home", file, "--fake", replies));
    ONE_LINE(&o, ERR_ENV, "is not a directory");
    program_run(&x, &o, WORDS("run", "Press Save", "--home", home, "--fake", replies));
    ONE_LINE(&o, ERR_USAGE, "--home", "--on desk");
    xvfb_stop(&x);
    free(home), free(runs), free(made), free(file), free(replies);
}

static void *cancel_soon(void *arg)
{
    clock_sleep_ms(200);
    *(volatile int *)arg = 1;
    return NULL;
}

static void t_commands(void **state)
{
    desks_ready();
    struct desk *d = desks_open_bare();
    struct err e = ERR_INIT;
    struct buf out;
    int code = -1;
    buf_init(&out, 20);
    assert_int_equal(desks_run(d, "exit 7", NULL), 7);
    assert_int_equal(desks_run(d, "kill -9 $$", NULL), 137);
    assert_int_equal(desks_run(d, "no-such-program 2>&1", NULL), 127);
    assert_int_equal(desks_run(d, "seq 1 20000; echo end >&2", &out), 0);
    assert_string_equal(out.data, "998\n19999\n20000\nend\n");
    static const char *const env[] = {"HOLORUN_ANSWER=42", NULL};
    assert_int_equal(desk_run(d, "echo $HOLORUN_ANSWER", env, DESKS_PATIENCE, NULL, &code, &out, &e), 0);
    assert_string_equal(out.data, "42\n");

    /* On a timeout the children of a command end with it; those of an earlier command stay. */
    assert_int_equal(desks_run(d, "setsid sleep 1111 & sleep 1112 & true", NULL), 0);
    while (desk_processes(d, "^sleep 111[12]$", &e) != 2)
        clock_sleep_ms(5);
    const char *command =
        "echo begun; (setsid sh -c 'trap \"\" TERM; sleep 2221; sleep 2222' &) ; sleep 2223";
    assert_int_equal(desk_run(d, command, NULL, 0.5, NULL, &code, &out, &e), -1);
    assert_int_equal(e.kind, ERR_TIME);
    assert_string_equal(out.data, "begun\n");
    assert_int_equal(desk_processes(d, "^sleep 222", &e), 0);
    assert_int_equal(desk_processes(d, "^sleep 111[12]$", &e), 2);

    volatile int cancel = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, cancel_soon, (void *)(uintptr_t)&cancel);
    assert_int_equal(desk_run(d, "sleep 3333", NULL, DESKS_PATIENCE, &cancel, &code, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_STOPPED);
    pthread_join(thread, NULL);
    assert_int_equal(desk_processes(d, "^sleep 3333", &e), 0);
    assert_int_equal(desk_processes(d, "(", &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);
    buf_free(&out);
    desk_close(d);
    desks_end();
}

static void t_windows(void **state)
{
    desks_ready();
    struct desk *d = desks_open(&(struct desk_options){.display = DESKS_SCREEN, .seconds = DESKS_PATIENCE});
    struct err e = ERR_INIT;
    char what[ERR_TEXT],
        *command = xasprintf("exec '%s' $HOME/out.jsonl --title 'A form'", helper_path("xclient"));
    assert_int_equal(desk_wait_window(d, NULL, 0.2, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_int_equal(desk_start(d, command, &e), 0);
    if (desk_wait_window(d, "^A f.rm$", DESKS_PATIENCE, NULL, &e) ||
        desk_wait_window(d, NULL, DESKS_PATIENCE, NULL, &e))
        fail_msg("%s", e.text);
    assert_int_equal(desk_state(d, what, sizeof what), DESK_OK);
    assert_int_equal(desk_wait_window(d, "^B", 0.2, NULL, &e), -1);
    check_has(e.text, "'^B'", "open windows: 'A form'");
    volatile int cancel = 1;
    assert_int_equal(desk_wait_window(d, "^B", DESKS_PATIENCE, &cancel, &e), -1);
    assert_int_equal(e.kind, ERR_STOPPED);
    assert_int_equal(desk_wait_window(d, "(", DESKS_PATIENCE, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);

    /* A launcher that succeeds leaves children; one that fails is reported at once. */
    assert_int_equal(desk_start(d, "sleep 1234 & exit 0", &e), 0);
    assert_int_equal(desk_wait_window(d, "^B", 0.3, NULL, &e), -1);
    assert_non_null(strstr(e.text, "no window"));
    assert_int_equal(desk_start(d, "echo one; echo 'cannot find it' >&2; exit 3", &e), 0);
    int64_t start = clock_ns();
    assert_int_equal(desk_wait_window(d, "^B", 10 * DESKS_PATIENCE, NULL, &e), -1);
    assert_true(clock_ms_since(start) < DESKS_PATIENCE * 1000);
    check_has(e.text, "exit code 3", "cannot find it");
    struct buf log;
    buf_init(&log, 1000);
    desk_log(d, &log, 1000);
    assert_string_equal(log.data, "one\ncannot find it\n");
    buf_free(&log);
    free(command);

    /* A crash ends the wait, too. */
    desk_close(d);
    d = desks_open(&(struct desk_options){.display = DESKS_SCREEN, .seconds = DESKS_PATIENCE});
    assert_int_equal(desk_wait_window(d, "^B", 0.2, NULL, &e), -1);
    assert_non_null(strstr(e.text, "open windows: none"));
    assert_int_equal(desk_start(d, "kill -SEGV $$", &e), 0);
    assert_int_equal(desk_wait_window(d, "^B", 10 * DESKS_PATIENCE, NULL, &e), -1);
    assert_non_null(strstr(e.text, "signal 11, SIGSEGV"));
    desk_close(d);
    desks_end();
}

static const char NASTY[] =
    "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; (sleep 4441 &) ; sleep 4442' &) ; "
    "setsid setsid sleep 4443 & while :; do sleep 4444; done";

static void t_nothing_left(void **state)
{
    desks_ready();
    struct err e = ERR_INIT;
    struct desk *d = desks_open(&(struct desk_options){.display = DESKS_SCREEN, .seconds = DESKS_PATIENCE});
    assert_int_equal(desk_start(d, NASTY, &e), 0);
    assert_int_equal(
        desks_run(d, "mkdir -p ~/a/b ~/c && touch ~/a/b/f && ln -s / ~/root && chmod 0 ~/a/b ~/c", NULL), 0);
    assert_int_equal(
        desks_run(d, "d=~/x; i=0; while [ $i -lt 300 ]; do mkdir $d && cd $d; d=yyyyyyyyyy; i=$((i+1)); done",
                  NULL),
        0);
    assert_int_equal(
        desks_run(d, "nohup setsid sh -c 'while :; do sleep 0.01; done' >/dev/null 2>&1 &", NULL), 0);
    while (desk_processes(d, "^sleep 444", &e) < 4)
        clock_sleep_ms(10);
    struct desk_trace t = desk_trace_of(d);
    desk_close(d);
    desks_gone(&t);
    desks_end();
}

static void kill_part(struct desk *d, const char *name)
{
    pid_t pids[8] = {d->pids[0]};
    int n = strcmp(name, "supervisor") != 0 ? desks_marked(d->dir, name, pids, 8) : 1;
    assert_true(n > 0 && n <= 8);
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
}

static void t_parts(void **state)
{
    if (!program_exists("openbox"))
        skip();
    desks_ready();
    struct err e = ERR_INIT;
    static const struct {
        const char *name, *says;
        enum desk_state state;
    } parts[] = {{"sleep", "sleep 5555", DESK_NO_PROGRAM},
                 {"openbox", "window manager", DESK_NO_WM},
                 {"Xvfb", "X server", DESK_NO_SERVER},
                 {"supervisor", "supervisor of", DESK_NO_SUPERVISOR}};
    struct desk *d = desks_open(&(struct desk_options){.display = DESKS_SCREEN, .seconds = DESKS_PATIENCE});
    struct desk *other = desks_open_bare();
    struct desk_trace t = desk_trace_of(d);
    char what[ERR_TEXT] = "";
    assert_int_equal(desk_start(d, "exec sleep 5555", &e), 0);
    while (desk_processes(d, "^sleep 5555", &e) != 1)
        clock_sleep_ms(5);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        kill_part(d, parts[i].name);
        enum desk_state now;
        while ((now = desk_state(d, what, sizeof what)) != parts[i].state) {
            assert_true(now == (i ? parts[i - 1].state : DESK_OK));
            clock_sleep_ms(5);
        }
        if (!strstr(what, parts[i].says))
            fail_msg("'%s' does not contain '%s'", what, parts[i].says);
        assert_int_equal(desk_state(other, what, sizeof what), DESK_OK);
    }
    assert_int_equal(desk_run(d, "true", NULL, 5, NULL, NULL, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    desk_close(d);
    desks_gone(&t);
    desks_says(other, "echo well", "well\n");
    desk_close(other);
    desks_end();
}

static const struct CMUnitTest tests[] = {
    CLAIM("a desktop has the requested size, its own home and environment, and nothing of the user's",
          t_place),
    CLAIM("a folder used as HOME stays, and belongs to one desktop at a time", t_kept_home),
    CLAIM("--home makes the folder, and refuses a file in one line", t_home_option),
    CLAIM("a command returns its exit code and the end of its output; its children end on a timeout",
          t_commands),
    CLAIM("waiting for a window ends at once, with the reason, if the program has ended", t_windows),
    CLAIM("detached, deeply nested and TERM-ignoring processes end with their desktop", t_nothing_left),
    CLAIM("a desktop reports which of its parts has died", t_parts),
};

CHECK_MAIN()
