/* t_desk.c - desks: what runs on them, and that nothing is left of them whatever happens. */
#include "check.h"
#include "desks.h"
#include "xvfb.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "screen/screen.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCREEN "xvfb:640x480,noglx"

enum { PATIENCE = 60 }; /* s: machines are loaded */

/* ---- shared by tests ---------------------------------------------------------------------------- */

static void begin(void)
{
    struct err e = ERR_INIT;
    if (!program_exists("Xvfb"))
        skip();
    if (desks_begin(&e))
        fail_msg("%s", e.text);
}

static struct desk *open_with(const struct desk_options *o)
{
    struct err e = ERR_INIT;
    struct desk *d = desk_open(o, &e);
    if (!d)
        fail_msg("%s", e.text);
    return d;
}

static struct desk *open_bare(void)
{
    return open_with(&(struct desk_options){.display = SCREEN, .wm = "", .seconds = PATIENCE});
}

/* Exit code; the output in `out`. */
static int run_on(struct desk *d, const char *command, struct buf *out)
{
    struct err e = ERR_INIT;
    int code = -1;
    if (desk_run(d, command, NULL, PATIENCE, NULL, &code, out, &e))
        fail_msg("'%s': %s", command, e.text);
    return code;
}

static void assert_says(struct desk *d, const char *command, const char *expected)
{
    struct buf out;
    buf_init(&out, 4096);
    int code = run_on(d, command, &out);
    if (code || strcmp(out.data, expected) != 0)
        fail_msg("'%s' said '%s' (exit code %d), not '%s'", command, out.data, code, expected);
    buf_free(&out);
}

static void assert_gone(const struct desk_trace *t)
{
    const char *left = desk_trace_left(t);
    if (left)
        fail_msg("%s", left);
}

/* ---- what a desk is ------------------------------------------------------------------------------ */

static void t_place(void **state)
{
    (void)state;
    setenv("WAYLAND_DISPLAY", "wayland-7", 1);
    setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere", 1);
    begin();
    static const char *const env[] = {"COLOR=green blue", NULL};
    struct desk *d = open_with(&(struct desk_options){
        .display = "xvfb:800x500", .wm = "", .dir = "/usr", .env = env, .seconds = PATIENCE});
    struct err e = ERR_INIT;
    struct screen *s = screen_open(&(struct screen_options){.display = desk_display(d)}, &e);
    assert_non_null(s);
    assert_int_equal(screen_root(s).w, 800);
    assert_int_equal(screen_root(s).h, 500);
    screen_close(s);
    char *home = xasprintf("%s %s", desk_home(d), desk_display(d)), *below;
    assert_says(d, "printf '%s %s' \"$HOME\" \"$DISPLAY\"", home);
    below = xasprintf("%s/.config", desk_home(d));
    assert_says(d, "printf %s \"$XDG_CONFIG_HOME\"", below);
    assert_says(d, "printf %s \"$WAYLAND_DISPLAY$DBUS_SESSION_BUS_ADDRESS$SESSION_MANAGER\"", "");
    assert_says(d, "printf %s \"$COLOR\"; pwd", "green blue/usr\n");
    assert_says(d, "ls -A ~; touch ~/a \"$TMPDIR/b\" \"$XDG_RUNTIME_DIR/c\"; stat -c %a ~ $XDG_RUNTIME_DIR",
                "700\n700\n");
    assert_says(d, "readlink /proc/self/fd/0; ls /proc/self/fd | wc -l", "/dev/null\n4\n"); /* and ls's own */
    struct desk_trace t = desk_trace_of(d);
    desk_close(d);
    assert_gone(&t);
    desks_end();
    unsetenv("WAYLAND_DISPLAY");
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    free(home);
    free(below);
}

static void *cancel_soon(void *arg)
{
    clock_sleep_ms(200);
    *(volatile int *)arg = 1;
    return NULL;
}

static void t_commands(void **state)
{
    (void)state;
    begin();
    struct desk *d = open_bare();
    struct err e = ERR_INIT;
    struct buf out;
    int code = -1;
    buf_init(&out, 20);
    assert_int_equal(run_on(d, "exit 7", NULL), 7);
    assert_int_equal(run_on(d, "kill -9 $$", NULL), 137);
    assert_int_equal(run_on(d, "no-such-program 2>&1", NULL), 127);
    assert_int_equal(run_on(d, "seq 1 20000; echo end >&2", &out), 0);
    assert_string_equal(out.data, "998\n19999\n20000\nend\n");
    static const char *const env[] = {"HOLORUN_ANSWER=42", NULL};
    assert_int_equal(desk_run(d, "echo $HOLORUN_ANSWER", env, PATIENCE, NULL, &code, &out, &e), 0);
    assert_string_equal(out.data, "42\n");

    /* Its children go with it; those of a command that has ended stay. */
    assert_int_equal(run_on(d, "setsid sleep 1111 & sleep 1112 & true", NULL), 0);
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
    assert_int_equal(desk_run(d, "sleep 3333", NULL, PATIENCE, &cancel, &code, NULL, &e), -1);
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
    (void)state;
    begin();
    struct desk *d = open_with(&(struct desk_options){.display = SCREEN, .seconds = PATIENCE});
    struct err e = ERR_INIT;
    char what[ERR_TEXT],
        *command = xasprintf("exec '%s' $HOME/out.jsonl --title 'A form'", helper_path("xclient"));
    assert_int_equal(desk_wait_window(d, NULL, 0.2, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_int_equal(desk_start(d, command, &e), 0);
    if (desk_wait_window(d, "^A f.rm$", PATIENCE, NULL, &e) || desk_wait_window(d, NULL, PATIENCE, NULL, &e))
        fail_msg("%s", e.text);
    assert_int_equal(desk_state(d, what, sizeof what), DESK_WELL);
    assert_int_equal(desk_wait_window(d, "^B", 0.2, NULL, &e), -1);
    assert_non_null(strstr(e.text, "'^B'"));
    assert_non_null(strstr(e.text, "there is 'A form'"));
    volatile int cancel = 1;
    assert_int_equal(desk_wait_window(d, "^B", PATIENCE, &cancel, &e), -1);
    assert_int_equal(e.kind, ERR_STOPPED);
    assert_int_equal(desk_wait_window(d, "(", PATIENCE, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_USAGE);

    /* A launcher that ends well leaves others; one that fails is told of at once. */
    assert_int_equal(desk_start(d, "sleep 1234 & exit 0", &e), 0);
    assert_int_equal(desk_wait_window(d, "^B", 0.3, NULL, &e), -1);
    assert_non_null(strstr(e.text, "no window"));
    assert_int_equal(desk_start(d, "echo one; echo 'cannot find it' >&2; exit 3", &e), 0);
    int64_t start = clock_ns();
    assert_int_equal(desk_wait_window(d, "^B", 10 * PATIENCE, NULL, &e), -1);
    assert_true(clock_ms_since(start) < PATIENCE * 1000);
    assert_non_null(strstr(e.text, "exit code 3"));
    assert_non_null(strstr(e.text, "cannot find it"));
    struct buf log;
    buf_init(&log, 1000);
    desk_log(d, &log, 1000);
    assert_string_equal(log.data, "one\ncannot find it\n");
    buf_free(&log);
    free(command);

    /* Nor is it worth more waiting for one that crashes. */
    desk_close(d);
    d = open_with(&(struct desk_options){.display = SCREEN, .seconds = PATIENCE});
    assert_int_equal(desk_wait_window(d, "^B", 0.2, NULL, &e), -1);
    assert_non_null(strstr(e.text, "there is none at all"));
    assert_int_equal(desk_start(d, "kill -SEGV $$", &e), 0);
    assert_int_equal(desk_wait_window(d, "^B", 10 * PATIENCE, NULL, &e), -1);
    assert_non_null(strstr(e.text, "signal 11, SIGSEGV"));
    desk_close(d);
    desks_end();
}

static const char NASTY[] =
    "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; (sleep 4441 &) ; sleep 4442' &) ; "
    "setsid setsid sleep 4443 & while :; do sleep 4444; done";

static void t_nothing_left(void **state)
{
    (void)state;
    begin();
    struct err e = ERR_INIT;
    struct desk *d = open_with(&(struct desk_options){.display = SCREEN, .seconds = PATIENCE});
    assert_int_equal(desk_start(d, NASTY, &e), 0);
    assert_int_equal(
        run_on(d, "mkdir -p ~/a/b ~/c && touch ~/a/b/f && ln -s / ~/root && chmod 0 ~/a/b ~/c", NULL), 0);
    assert_int_equal(
        run_on(d, "d=~/x; i=0; while [ $i -lt 300 ]; do mkdir $d && cd $d; d=yyyyyyyyyy; i=$((i+1)); done",
               NULL),
        0);
    assert_int_equal(run_on(d, "nohup setsid sh -c 'while :; do sleep 0.01; done' >/dev/null 2>&1 &", NULL),
                     0);
    while (desk_processes(d, "^sleep 444", &e) < 4)
        clock_sleep_ms(10);
    struct desk_trace t = desk_trace_of(d);
    desk_close(d);
    assert_gone(&t);
    desks_end();
}

static void kill_part(struct desk *d, const char *name)
{
    pid_t pids[8] = {d->pids[0]};
    int n = strcmp(name, "keeper") != 0 ? desks_marked(d->dir, name, pids, 8) : 1;
    assert_true(n > 0 && n <= 8);
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
}

static void t_parts(void **state)
{
    (void)state;
    if (!program_exists("openbox"))
        skip();
    begin();
    struct err e = ERR_INIT;
    static const struct {
        const char *name, *says;
        enum desk_state state;
    } parts[] = {{"sleep", "sleep 5555", DESK_NO_PROGRAM},
                 {"openbox", "window manager", DESK_NO_WM},
                 {"Xvfb", "X server", DESK_NO_SERVER},
                 {"keeper", "keeps", DESK_NO_KEEPER}};
    struct desk *d = open_with(&(struct desk_options){.display = SCREEN, .seconds = PATIENCE});
    struct desk *other = open_bare();
    struct desk_trace t = desk_trace_of(d);
    char what[ERR_TEXT] = "";
    assert_int_equal(desk_start(d, "exec sleep 5555", &e), 0);
    while (desk_processes(d, "^sleep 5555", &e) != 1)
        clock_sleep_ms(5);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        kill_part(d, parts[i].name);
        enum desk_state now;
        while ((now = desk_state(d, what, sizeof what)) != parts[i].state) {
            assert_true(now == (i ? parts[i - 1].state : DESK_WELL));
            clock_sleep_ms(5);
        }
        if (!strstr(what, parts[i].says))
            fail_msg("'%s' does not say '%s'", what, parts[i].says);
        assert_int_equal(desk_state(other, what, sizeof what), DESK_WELL);
    }
    assert_int_equal(desk_run(d, "true", NULL, 5, NULL, NULL, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    desk_close(d);
    assert_gone(&t);
    assert_says(other, "echo well", "well\n");
    desk_close(other);
    desks_end();
}

/* ---- many, and apart ----------------------------------------------------------------------------- */

enum { MANY = 24, ROUNDS = 3 };

static void *live(void *arg) /* cmocka's assertions are for the main thread */
{
    char *failed = arg;
    struct err e = ERR_INIT;
    for (int i = 0; i < ROUNDS && !*failed; i++) {
        struct desk *d =
            desk_open(&(struct desk_options){.display = SCREEN, .wm = "", .seconds = PATIENCE}, &e);
        struct buf out;
        int code = -1;
        buf_init(&out, 100);
        if (!d ||
            desk_run(d, "printf %s \"$DISPLAY\"; xset q >/dev/null", NULL, PATIENCE, NULL, &code, &out, &e))
            snprintf(failed, ERR_TEXT, "%s", e.text);
        else if (code || strcmp(out.data, desk_display(d)) != 0)
            snprintf(failed, ERR_TEXT, "exit code %d, '%s' on '%s'", code, out.data, desk_display(d));
        buf_free(&out);
        desk_close(d);
    }
    return NULL;
}

static void t_many(void **state)
{
    (void)state;
    begin();
    static char failed[MANY][ERR_TEXT];
    pthread_t threads[MANY];
    int64_t start = clock_ns();
    for (int i = 0; i < MANY; i++)
        pthread_create(&threads[i], NULL, live, failed[i]);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    check_note("%d desks by %d threads in %.1f s", MANY * ROUNDS, MANY, clock_ms_since(start) / 1000);
    for (int i = 0; i < MANY; i++)
        if (*failed[i])
            fail_msg("%s", failed[i]);
    desks_end();
}

static void t_cookies(void **state)
{
    (void)state;
    begin();
    struct desk *a = open_bare(), *b = open_bare();
    char *other = xasprintf("DISPLAY=%s xset q >/dev/null 2>&1", desk_display(b));
    char *stolen =
        xasprintf("DISPLAY=%s XAUTHORITY=%s/auth xset q >/dev/null 2>&1", desk_display(b), desk_folder(b));
    assert_int_equal(run_on(a, "xset q >/dev/null", NULL), 0);
    assert_int_not_equal(run_on(a, other, NULL), 0);
    assert_int_not_equal(run_on(a, "XAUTHORITY=/dev/null xset q >/dev/null 2>&1", NULL), 0);
    assert_int_equal(run_on(a, stolen, NULL), 0); /* it is the cookie that it lacks */
    assert_says(a, "stat -c %a $HOLORUN_DESK $XAUTHORITY", "700\n600\n");
    free(other);
    free(stolen);
    desk_close(a);
    desk_close(b);
    desks_end();
}

static void t_home(void **state)
{
    (void)state;
    char from[] = "/tmp/holorun-test-XXXXXX";
    assert_non_null(mkdtemp(from));
    char *make = xasprintf(
        "cd %s && mkdir -p .config/app sub && echo text >.config/app/rc && echo run >sub/x && "
        "chmod 755 sub/x && ln -s /etc/passwd link && ln -s sub folder && mkfifo pipe && seq 30000 >long",
        from);
    assert_int_equal(system(make), 0);
    begin();
    struct err e = ERR_INIT;
    struct desk_options o = {.display = SCREEN, .wm = "", .home = from, .seconds = PATIENCE};
    struct desk *d = open_with(&o);
    assert_says(
        d,
        "cd && cat .config/app/rc && stat -c %a .config sub/x && readlink link folder && ls -A | wc -l && "
        "seq 30000 | cmp - long && echo whole",
        "text\n700\n700\n/etc/passwd\nsub\n5\nwhole\n");
    assert_int_equal(run_on(d, "echo changed >~/.config/app/rc; rm -r ~/folder/", NULL), 1); /* a link */
    desk_close(d);
    char *rc = xasprintf("%s/.config/app/rc", from), *text;
    size_t len;
    assert_int_equal(file_read(rc, 100, &text, &len, &e), 0);
    assert_string_equal(text, "text\n");
    free(text);
    char *huge = xasprintf("truncate -s 1025M %s/huge", from);
    assert_int_equal(system(huge), 0);
    assert_null(desk_open(&o, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "1024 MiB"));
    desks_end();
    folder_remove(from);
    free(make);
    free(rc);
    free(huge);
}

static void t_refusals(void **state)
{
    (void)state;
    begin();
    static const struct {
        struct desk_options o;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {{.display = "xvfb:10x10"}, ERR_USAGE, "64"},
        {{.display = "xvfb:640x480x8"}, ERR_USAGE, "xvfb:1280x720"},
        {{.display = "wayland-0"}, ERR_USAGE, "'wayland-0'"},
        {{.display = "xvfb"}, ERR_USAGE, "expected"},
        {{.display = SCREEN, .dir = "/no/such"}, ERR_ENV, "'/no/such' is not a folder"},
        {{.display = SCREEN, .home = "/no/such"}, ERR_ENV, "'/no/such'"},
        {{.display = SCREEN, .wm = "echo broken; exit 4"}, ERR_ENV, "exit code 4; it says: broken"},
        {{.display = SCREEN, .wm = "sleep 6666", .seconds = 4}, ERR_ENV, "has not begun to work within 4 s"},
        {{.display = "xvfb:640x480", .wm = "", .seconds = 0.001}, ERR_ENV, "not ready in time"},
    };
    char root[DESK_PATH];
    struct desk *well = open_bare();
    snprintf(root, sizeof root, "%s", desk_folder(well));
    *strrchr(root, '/') = 0;
    desk_close(well);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        assert_null(desk_open(&cases[i].o, &e));
        if (e.kind != cases[i].kind || !strstr(e.text, cases[i].says))
            fail_msg("case %zu: %d '%s' does not say '%s'", i, e.kind, e.text, cases[i].says);
        assert_int_equal(desks_marked(root, NULL, NULL, 0), 0);
    }
    desks_end();
}

static void t_existing(void **state)
{
    (void)state;
    begin();
    struct err e = ERR_INIT;
    struct desk *server = open_bare();
    char *cookie = xasprintf("XAUTHORITY=%s/auth", desk_folder(server)), *command, *home;
    const char *const env[] = {cookie, NULL};
    struct desk *d = open_with(&(struct desk_options){.display = desk_display(server), .env = env});
    struct desk_trace t = desk_trace_of(d);
    command = xasprintf("exec '%s' \"$HOLORUN_DESK/out.jsonl\" --title 'A guest'", helper_path("xclient"));
    home = xasprintf("%s", getenv("HOME"));
    assert_string_equal(desk_home(d), home);
    assert_says(d, "printf %s \"$HOME\"", home);
    assert_int_equal(desk_start(d, command, &e), 0);
    if (desk_wait_window(d, "^A guest$", PATIENCE, NULL, &e))
        fail_msg("%s", e.text);
    desk_close(d);
    assert_gone(&t);
    assert_int_equal(run_on(server, "xset q >/dev/null", NULL), 0);
    desk_close(server);
    assert_null(desk_open(&(struct desk_options){.display = ":4321"}, &e));
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "':4321'"));
    desks_end();
    free(cookie);
    free(command);
    free(home);
}

static void t_machine(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct rlimit files, few;
    char *path = xstrdup(getenv("PATH"));
    if (!program_exists("Xvfb"))
        skip();
    getrlimit(RLIMIT_NOFILE, &files);
    few = (struct rlimit){100, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    begin();
    struct desk *d = open_bare();
    assert_says(d, "ulimit -Sn", "100\n");
    getrlimit(RLIMIT_NOFILE, &few);
    assert_int_equal(few.rlim_cur, files.rlim_max);
    desk_close(d);
    desks_end();
    setrlimit(RLIMIT_NOFILE, &files);

    setenv("PATH", "/nowhere", 1);
    assert_int_equal(desks_begin(&e), 0);
    assert_null(desk_open(&(struct desk_options){.display = SCREEN}, &e));
    desks_end();
    setenv("PATH", path, 1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "Xvfb is not installed"));
    free(path);
}

/* In a process of its own, whose mounts nobody else sees; exit codes: 0 well, 77 not allowed here. */
_Noreturn static void with_little_disk(const char *dir)
{
    struct err e = ERR_INIT;
    int code = -1;
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", dir, "tmpfs", 0, "size=256k"))
        _exit(77);
    setenv("TMPDIR", dir, 1);
    if (desks_begin(&e))
        _exit(1);
    struct desk_options o = {.display = SCREEN, .wm = "", .seconds = PATIENCE};
    struct desk *d = desk_open(&o, &e);
    if (!d || desk_run(d, "head -c 1000000 /dev/zero >~/full", NULL, PATIENCE, NULL, &code, NULL, &e) ||
        code == 0)
        _exit(2);
    if (desk_run(d, "echo still >&2; ls", NULL, PATIENCE, NULL, &code, NULL, &e) || code != 0)
        _exit(3);
    struct desk *second = desk_open(&o, &e);
    if (second || e.kind != ERR_ENV || !strstr(e.text, "No space left on device"))
        _exit(4);
    struct desk_trace t = desk_trace_of(d);
    desk_close(d);
    if (desk_trace_left(&t))
        _exit(5);
    if (!(d = desk_open(&o, &e))) /* there is room again */
        _exit(6);
    desks_end();
    if (rmdir(dir) != 0 && errno != EBUSY) /* it is a mount, and empty */
        _exit(7);
    _exit(0);
}

static void t_full(void **state)
{
    (void)state;
    char dir[] = "/tmp/holorun-test-XXXXXX";
    if (!program_exists("Xvfb"))
        skip();
    assert_non_null(mkdtemp(dir));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        with_little_disk(dir);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rmdir(dir);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static const struct CMUnitTest tests[] = {
    CLAIM(
        "a desk is a screen of the size asked for, a home, an environment, and nothing of the user's session",
        t_place),
    CLAIM("a command gives its exit code and the end of its output, and ends with its children when it must",
          t_commands),
    CLAIM("a window is waited for; a program that has ended says so at once, and why", t_windows),
    CLAIM("what detaches itself, hides deep and ignores TERM is gone with its desk", t_nothing_left),
    CLAIM("a desk tells which part of it has died", t_parts),
    CLAIM("many desks at once, opened and closed by threads, have displays of their own", t_many),
    CLAIM("a program cannot reach another desk's display with its own cookie", t_cookies),
    CLAIM("a fresh home is a copy, links are links, and what is too large is refused", t_home),
    CLAIM("a desk that cannot be opened says why in one line, and leaves nothing", t_refusals),
    CLAIM("on a display that is there programs run and end, and it stays", t_existing),
    CLAIM("without Xvfb it says so; programs have the user's limit of open files, this process the highest",
          t_machine),
    CLAIM("on a full disk no desk opens, and the one that is open goes on", t_full),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
