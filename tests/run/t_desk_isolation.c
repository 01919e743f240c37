/* t_desk_isolation.c - tests desktops beside others: separate displays, homes and limits, and refused
 * options.
 */
#include "check.h"
#include "desks.h"
#include "place.h"
#include "xvfb.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- many desktops ------------------------------------------------------------------------------- */

enum { MANY = 24, ROUNDS = 3 };

static void *live(void *arg) /* cmocka's assertions need the main thread */
{
    char *failed = arg;
    struct err e = ERR_INIT;
    for (int i = 0; i < ROUNDS && !*failed; i++) {
        struct desk *d = desk_open(
            &(struct desk_options){.display = DESKS_SCREEN, .wm = "", .seconds = DESKS_PATIENCE}, &e);
        struct buf out;
        int code = -1;
        buf_init(&out, 100);
        if (!d || desk_run(d, "printf %s \"$DISPLAY\"; xset q >/dev/null", NULL, DESKS_PATIENCE, NULL, &code,
                           &out, &e))
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
    desks_ready();
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
    desks_ready();
    struct desk *a = desks_open_bare(), *b = desks_open_bare();
    char *other = xasprintf("DISPLAY=%s xset q >/dev/null 2>&1", desk_display(b));
    char *stolen = xasprintf("DISPLAY=%s XAUTHORITY=%s/auth xset q >/dev/null 2>&1", desk_display(b), b->dir);
    assert_int_equal(desks_run(a, "xset q >/dev/null", NULL), 0);
    assert_int_not_equal(desks_run(a, other, NULL), 0);
    assert_int_not_equal(desks_run(a, "XAUTHORITY=/dev/null xset q >/dev/null 2>&1", NULL), 0);
    assert_int_equal(desks_run(a, stolen, NULL), 0); /* only the cookie was missing */
    desks_says(a, "stat -c %a $HOLORUN_DESK $XAUTHORITY", "700\n600\n");
    free(other);
    free(stolen);
    desk_close(a);
    desk_close(b);
    desks_end();
}

static void t_home(void **state)
{
    char from[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(from)));
    char *make = xasprintf(
        "cd %s && mkdir -p .config/app sub && echo text >.config/app/rc && echo run >sub/x && "
        "chmod 755 sub/x && ln -s /etc/passwd link && ln -s sub folder && mkfifo pipe && seq 30000 >long",
        from);
    assert_int_equal(system(make), 0);
    desks_ready();
    struct err e = ERR_INIT;
    struct desk_options o = {.display = DESKS_SCREEN, .wm = "", .home = from, .seconds = DESKS_PATIENCE};
    struct desk *d = desks_open(&o);
    desks_says(
        d,
        "cd && cat .config/app/rc && stat -c %a .config sub/x && readlink link folder && ls -A | wc -l && "
        "seq 30000 | cmp - long && echo whole",
        "text\n700\n700\n/etc/passwd\nsub\n5\nwhole\n");
    assert_int_equal(desks_run(d, "echo changed >~/.config/app/rc; rm -r ~/folder/", NULL), 1); /* a link */
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
    desks_ready();
    static const struct {
        struct desk_options o;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {{.display = "xvfb:10x10"}, ERR_USAGE, "64"},
        {{.display = "xvfb:640x480x8"}, ERR_USAGE, "xvfb:1280x720"},
        {{.display = "wayland-0"}, ERR_USAGE, "'wayland-0'"},
        {{.display = "xvfb"}, ERR_USAGE, "expected"},
        {{.display = DESKS_SCREEN, .dir = "/no/such"}, ERR_ENV, "'/no/such': not a folder"},
        {{.display = DESKS_SCREEN, .home = "/no/such"}, ERR_ENV, "'/no/such'"},
        {{.display = DESKS_SCREEN, .wm = "echo broken; exit 4"}, ERR_ENV, "exit code 4; output: broken"},
        {{.display = DESKS_SCREEN, .wm = "sleep 6666", .seconds = 4}, ERR_ENV, "was not ready within 4 s"},
        {{.display = "xvfb:640x480", .wm = "", .seconds = 0.001}, ERR_ENV, "not ready in time"},
    };
    char root[DESK_PATH];
    struct desk *well = desks_open_bare();
    snprintf(root, sizeof root, "%s", well->dir);
    *strrchr(root, '/') = 0;
    desk_close(well);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        assert_null(desk_open(&cases[i].o, &e));
        if (e.kind != cases[i].kind || !strstr(e.text, cases[i].says))
            fail_msg("case %zu: %d '%s' does not contain '%s'", i, e.kind, e.text, cases[i].says);
        assert_int_equal(desks_marked(root, NULL, NULL, 0), 0);
    }
    desks_end();
}

static void t_existing(void **state)
{
    desks_ready();
    struct err e = ERR_INIT;
    struct desk *server = desks_open_bare();
    char *cookie = xasprintf("XAUTHORITY=%s/auth", server->dir), *command, *home;
    const char *const env[] = {cookie, NULL};
    struct desk *d = desks_open(&(struct desk_options){.display = desk_display(server), .env = env});
    struct desk_trace t = desk_trace_of(d);
    command = xasprintf("exec '%s' \"$HOLORUN_DESK/out.jsonl\" --title 'A guest'", helper_path("xclient"));
    home = xasprintf("%s", getenv("HOME"));
    assert_string_equal(desk_home(d), home);
    desks_says(d, "printf %s \"$HOME\"", home);
    assert_int_equal(desk_start(d, command, &e), 0);
    if (desk_wait_window(d, "^A guest$", DESKS_PATIENCE, NULL, &e))
        fail_msg("%s", e.text);
    desk_close(d);
    desks_gone(&t);
    assert_int_equal(desks_run(server, "xset q >/dev/null", NULL), 0);
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
    struct err e = ERR_INIT;
    struct rlimit files, few;
    char *path = xstrdup(getenv("PATH"));
    if (!program_exists("Xvfb"))
        skip();
    getrlimit(RLIMIT_NOFILE, &files);
    few = (struct rlimit){100, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    desks_ready();
    struct desk *d = desks_open_bare();
    desks_says(d, "ulimit -Sn", "100\n");
    getrlimit(RLIMIT_NOFILE, &few);
    assert_int_equal(few.rlim_cur, files.rlim_max);
    desk_close(d);
    desks_end();
    setrlimit(RLIMIT_NOFILE, &files);

    setenv("PATH", "/nowhere", 1);
    assert_int_equal(desks_begin(&e), 0);
    assert_null(desk_open(&(struct desk_options){.display = DESKS_SCREEN}, &e));
    desks_end();
    setenv("PATH", path, 1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "Xvfb is not installed"));
    free(path);
}

/* Runs with a private mount namespace. Exit codes: 0 success, 77 not permitted here. */
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
    struct desk_options o = {.display = DESKS_SCREEN, .wm = "", .seconds = DESKS_PATIENCE};
    struct desk *d = desk_open(&o, &e);
    if (!d || desk_run(d, "head -c 1000000 /dev/zero >~/full", NULL, DESKS_PATIENCE, NULL, &code, NULL, &e) ||
        code == 0)
        _exit(2);
    if (desk_run(d, "echo still >&2; ls", NULL, DESKS_PATIENCE, NULL, &code, NULL, &e) || code != 0)
        _exit(3);
    struct desk *second = desk_open(&o, &e);
    if (second || e.kind != ERR_ENV || !strstr(e.text, "No space left on device"))
        _exit(4);
    struct desk_trace t = desk_trace_of(d);
    desk_close(d);
    if (desk_trace_left(&t))
        _exit(5);
    if (!(d = desk_open(&o, &e))) /* after disk space is free again */
        _exit(6);
    desks_end();
    if (rmdir(dir) != 0 && errno != EBUSY) /* it is an empty mount */
        _exit(7);
    _exit(0);
}

static void t_full(void **state)
{
    char dir[PLACE_PATH];
    if (!program_exists("Xvfb"))
        skip();
    assert_non_null(mkdtemp(place_template(dir)));
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
    CLAIM("desktops opened and closed by many threads have separate displays", t_many),
    CLAIM("a program cannot reach another desktop's display with its own cookie", t_cookies),
    CLAIM("a fresh home is a copy with links kept; one that is too large is refused", t_home),
    CLAIM("a desktop that cannot be opened gives one line of reason, and leaves nothing", t_refusals),
    CLAIM("on an existing display programs run and end, and the display stays", t_existing),
    CLAIM("Xvfb missing is reported; programs have the user's limit of open files, this process the highest",
          t_machine),
    CLAIM("on a full disk no desktop opens, and an open one continues", t_full),
};

CHECK_MAIN()
