/* t_surroundings.c - tests unusual environments: closed descriptors, pipes instead of files, an invalid HOME.
 */
#include "check.h"
#include "driven.h"
#include "place.h"
#include "program.h"

#include "base/clock.h"
#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 15000, SOON_MS = 9000 };

static void open_place(struct xvfb *x)
{
    *x = (struct xvfb){0};
    assert_non_null(mkdtemp(place_template(x->dir)));
}

/* Runs a shell command in x's folder; %s is the program. Returns its exit code, or -1 if it was killed after
 * PATIENCE_MS. */
static int shell(const struct xvfb *x, const char *format, char **err)
{
    char *dir = xasprintf("cd %s && ", x->dir), *program = realpath(program_path(), NULL);
    char *line = xasprintf(format, program), *all = xasprintf("%s{ %s; } >said 2>&1", dir, line);
    int64_t start = clock_ns();
    int status = 0;
    pid_t pid = fork(), got;
    if (pid == 0) {
        setpgid(0, 0);
        execl("/bin/bash", "bash", "-c", all, (char *)NULL);
        _exit(127);
    }
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && clock_ms_since(start) < PATIENCE_MS)
        clock_sleep_ms(5);
    if (got == 0) {
        kill(-pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    char *said = xvfb_place(x, "said"), *text = NULL;
    size_t len;
    assert_int_equal(file_read(said, 1 << 20, &text, &len, NULL), 0);
    *err = text;
    free(said);
    free(all);
    free(line);
    free(program);
    free(dir);
    return got && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(const struct xvfb *x, const char *format, int code, const char *words)
{
    char *err;
    int got = shell(x, format, &err);
    if (got != code || (words && !strstr(err, words)))
        fail_msg("%s: exit code %d, not %d: %s", format, got, code, err);
    printf("           %d  %.*s\n", code, (int)strcspn(err, "\n"), err);
    free(err);
}

static void t_pipes(void **state)
{
    static const struct {
        const char *line;
        int code;
    } cases[] = {
        {"'%s' ask --chat f.png", ERR_ENV},
        {"'%s' policy f.png", ERR_USAGE},
        {"'%s' eval f.png", ERR_USAGE},
        {"'%s' qa f.png", ERR_USAGE},
    };
    struct xvfb x;
    char run[200], path[240];
    open_place(&x);
    snprintf(run, sizeof run, "%s/run", x.dir);
    snprintf(path, sizeof path, "%s/events.jsonl", run);
    assert_true(mkdir(run, 0700) == 0 && mkfifo(path, 0600) == 0);
    snprintf(path, sizeof path, "%s/f.png", x.dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(run, sizeof run, "%s/model", x.dir);
    snprintf(path, sizeof path, "%s/config.json", run);
    assert_true(mkdir(run, 0700) == 0 && mkfifo(path, 0600) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t start = clock_ns();
        expect(&x, cases[i].line, cases[i].code, "pipe");
        assert_true(clock_ms_since(start) < SOON_MS);
    }
}

static void t_written_pipes(void **state)
{
    struct xvfb x;
    open_place(&x);
    expect(&x, "'%s' policy <(echo 'rules: [{deny: mine, keys: ctrl+q}]')", 0, "mine");
    expect(&x, "mkfifo p; (sleep 0.3; echo 'rules: [{deny: late, keys: ctrl+q}]' >p) & '%s' policy p", 0,
           "late");
    expect(&x, "echo 'rules: [{deny: piped, keys: ctrl+q}]' | '%s' policy /dev/stdin", 0, "piped");
    expect(&x, "(sleep 2; echo 'rules: [{deny: slow, keys: ctrl+q}]') | '%s' policy /dev/stdin", 0, "slow");
}

static void t_closed(void **state)
{
    struct xvfb x;
    open_place(&x);
    expect(&x, "'%s' version >&-", ERR_ENV, "cannot write to stdout");
    expect(&x, "'%s' policy <&- >out 2>&-; c=$?; cat out; (exit $c)", 0, "built in");
    expect(&x, "'%s' policy nothing <&- >&- 2>&-", ERR_USAGE, NULL);
    /* The program's first descriptors must not be 0, 1 or 2, or its messages would go into a file. */
    expect(&x,
           "'%s' run x --fake /dev/null --display :9999 --step=script:/proc/self/fd/3 3<<<quit <&- >&- 2>&-",
           ERR_ENV, NULL);
}

static void t_home(void **state)
{
    struct xvfb x;
    open_place(&x);
    expect(&x, "env -u XDG_STATE_HOME HOME=foo '%s' report", ERR_ENV, "HOME is 'foo'");
    expect(&x, "env -u XDG_STATE_HOME -u HOME '%s' report", ERR_ENV,
           "neither XDG_STATE_HOME nor HOME is set");
}

static void t_hardened(void **state)
{
    struct xvfb x;
    if (CHECK_SANITIZED || !program_exists("readelf"))
        skip();
    open_place(&x);
    expect(&x, "readelf -dW '%s' | grep 'Flags: NOW PIE'", 0, "NOW PIE");
    expect(&x, "readelf -lW '%s' | grep GNU_RELRO", 0, "GNU_RELRO");
    expect(&x, "readelf -lW '%s' | grep 'GNU_STACK.*RW '", 0, "GNU_STACK");
    expect(&x, "readelf --dyn-syms -W '%s' | grep __stack_chk_fail", 0, "__stack_chk_fail");
    expect(&x, "readelf --dyn-syms -W '%s' | grep __snprintf_chk", 0, "__snprintf_chk");
}

/* Returns whether the text is in the environment of a process according to /proc. */
static bool has_in_environment(pid_t pid, const char *text)
{
    char *path = xasprintf("/proc/%d/environ", (int)pid), *data = NULL;
    size_t len;
    bool found = file_read(path, 1 << 20, &data, &len, NULL) == 0 && memmem(data, len, text, strlen(text));
    free(data);
    free(path);
    return found;
}

static void t_guard(void **state)
{
    DRIVEN(t, o);
    setenv("PIN", "quokka-4417-willow", 1);
    pid_t run = driven_start_with(&t, TYPE("a") WAIT(30) ANSWER("Done."), WORDS("--secret", "PIN=env:PIN"));
    unsetenv("PIN");
    driven_wait(&t, "key_press", 1);
    char *path = xasprintf("/proc/%d/task/%d/children", (int)run, (int)run), *list = NULL;
    size_t len;
    int n = 0;
    assert_int_equal(file_read(path, 4096, &list, &len, NULL), 0);
    for (char *at = list, *end; strtol(at, &end, 10) > 0; at = end, n++)
        if (has_in_environment((pid_t)strtol(at, NULL, 10), "quokka"))
            fail_msg("process %.*s has the secret in its environment", (int)(end - at), at);
    assert_in_range(n, 1, 2); /* the guard, and the reader of elements if there is a bus */
    assert_false(has_in_environment(run, "quokka"));
    kill(run, SIGTERM);
    program_finish(&t.x, run, &o);
    assert_int_equal(o.code, ERR_STOPPED);
    free(list);
    free(path);
}

static const struct CMUnitTest tests[] = {
    CLAIM("each command refuses a pipe instead of a file by name within seconds", t_pipes),
    CLAIM("a pipe with a writer is read to its end; so are a late one and stdin", t_written_pipes),
    CLAIM("closed descriptors 0 to 2: the lost answer is reported, everything else works", t_closed),
    CLAIM("the program has full RELRO, a non-executable stack, stack protector and FORTIFY", t_hardened),
    CLAIM("the guard of a run has no secret in its environment", t_guard),
    CLAIM("a HOME that is not an absolute path is reported literally", t_home),
};

CHECK_MAIN()
