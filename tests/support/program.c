/* program.c - see program.h. */
#include "program.h"

#include "base/clock.h"
#include "base/file.h"

/* cmocka.h needs these headers first */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 40, PATIENCE_MS = 120000 };

const char *program_path(void)
{
    static char path[4096];
    char *dir = file_exe_dir();
    snprintf(path, sizeof path, "%s/../holorun", dir);
    free(dir);
    return file_exists(path) ? path : "./holorun";
}

char *xvfb_place(const struct xvfb *x, const char *name)
{
    return xasprintf("%s/%s", x->dir, name);
}

char *xvfb_put(const struct xvfb *x, const char *name, const char *text)
{
    char *path = xvfb_place(x, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    return path;
}

pid_t program_start_into(const struct xvfb *x, const char *out, const char *const *words)
{
    char *err = xvfb_place(x, "err");
    const char *argv[MAX_WORDS] = {program_path()};
    for (int i = 0; words[i] && i + 2 < MAX_WORDS; i++)
        argv[i + 1] = words[i];
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_RDONLY), 0);
        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    free(err);
    return pid;
}

pid_t program_start(const struct xvfb *x, const char *const *words)
{
    char *out = xvfb_place(x, "out");
    pid_t pid = program_start_into(x, out, words);
    free(out);
    return pid;
}

static char *text_of(const struct xvfb *x, const char *name)
{
    char *path = xvfb_place(x, name), *text = NULL;
    size_t len;
    if (file_read(path, 16 << 20, &text, &len, NULL))
        text = xstrdup("");
    free(path);
    return text;
}

void program_finish(const struct xvfb *x, pid_t pid, struct outcome *o)
{
    int status = 0;
    free(o->out);
    free(o->err);
    *o = (struct outcome){.code = -1};
    int64_t begin = clock_ns();
    pid_t got;
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && clock_ms_since(begin) < PATIENCE_MS)
        clock_sleep_ms(5);
    if (got == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    } else if (WIFEXITED(status)) {
        o->code = WEXITSTATUS(status);
    }
    o->out = text_of(x, "out");
    o->err = text_of(x, "err");
}

void program_run(const struct xvfb *x, struct outcome *o, const char *const *words)
{
    program_finish(x, program_start(x, words), o);
}

void outcome_free(struct outcome *o)
{
    free(o->out);
    free(o->err);
    *o = (struct outcome){0};
}

void one_line(const struct outcome *o, int code, const char *const *names)
{
    size_t n = strlen(o->err);
    if (o->code != code || strncmp(o->err, "holorun: ", 9) != 0 || strchr(o->err, '\n') != o->err + n - 1)
        fail_msg("exit %d instead of %d, stderr: '%s'", o->code, code, o->err);
    for (; *names; names++)
        if (!strstr(o->err, *names))
            fail_msg("'%s' is not in: %s", *names, o->err);
    printf("           %d  %s", code, o->err);
}
