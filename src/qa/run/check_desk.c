/* check_desk.c - checks of what is on the desk but not to be seen: commands, the answer, files, processes, ports.
 *
 * Files may be anything that a program has left: their size is bounded, and none is opened that one could wait for.
 */
#include "qa/run/check_impl.h"

#include "base/clock.h"
#include "base/regex.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANSWER_MOST = 32 << 10 }; /* bytes of it in the environment of a command */

/* ---- shell ------------------------------------------------------------------------------------------------------ */

static void say_exit_code(struct look *l, int code, const struct buf *output)
{
    size_t len;
    const char *line = text_last_line(output->data, output->len, &len);
    int shown = look_cut(line, len);
    look_says(l, "expected exit code 0, it was %d%s%.*s", code, shown ? "; the end of its output: " : "",
              shown, line);
}

enum answer check_shell(struct look *l, struct err *e)
{
    const struct check_scene *s = l->s;
    const char *said = s->answer ? s->answer : "";
    size_t n = strlen(said);
    char *dir = xasprintf("HOLORUN_DIR=%s", s->run_dir ? s->run_dir : "");
    char *home = xasprintf("HOLORUN_HOME=%s", desk_home(s->desk));
    char *answer = xasprintf("HOLORUN_ANSWER=%.*s",
                             (int)(n > ANSWER_MOST ? utf8_valid_prefix(said, ANSWER_MOST) : n), said);
    const char *const env[] = {dir, home, answer, NULL};
    double seconds = l->seconds > 0 ? l->seconds : 60;
    struct buf output;
    buf_init(&output, CHECK_OUTPUT);
    int code = 0, rc = desk_run(s->desk, l->c->text, env, seconds, s->cancel, &code, &output, e);
    for (size_t i = 0; i < output.len; i++)
        output.data[i] = output.data[i] ? output.data[i] : '?';
    l->late = rc && e->kind == ERR_TIME;
    if (l->late)
        look_says(l, "expected exit code 0, it took longer than %.0f s and was ended", ceil(seconds));
    else if (!rc)
        say_exit_code(l, code, &output);
    l->r.output = output.len ? buf_take(&output) : NULL;
    buf_free(&output);
    free(dir);
    free(home);
    free(answer);
    return l->late ? ANSWER_NO : rc ? ANSWER_ERROR : code == 0 ? ANSWER_YES : ANSWER_NO;
}

/* ---- patterns --------------------------------------------------------------------------------------------------- */

/* Whether a text has a pattern that somebody wrote in the suite, which has been read. */
static enum answer has_pattern(const char *pattern, const char *text, size_t len, struct err *e)
{
    struct regex *r = regex_new(pattern, false, e);
    if (!r)
        return ANSWER_ERROR;
    int found = regex_find(r, text, len);
    regex_free(r);
    if (found < 0)
        err_set(e, ERR_USAGE, "it takes too long to look for '%.80s' in %zu bytes", pattern, len);
    return found < 0 ? ANSWER_ERROR : found ? ANSWER_YES : ANSWER_NO;
}

enum answer check_answer(struct look *l, struct err *e)
{
    const char *text = l->s->answer, *pattern = l->c->text;
    if (!text) {
        look_says(l, "expected an answer that matches '%s', there is none", pattern);
        return ANSWER_NO;
    }
    size_t n = strlen(text);
    look_says(l, "expected an answer that matches '%.200s', it is '%.*s'", pattern, look_cut(text, n), text);
    return has_pattern(pattern, text, n, e);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* A regular file of at most `most` bytes; the caller frees *data.  NO: it is something else, which has been said. */
static enum answer read_content(struct look *l, const char *path, size_t most, char **data, size_t *len,
                                struct err *e)
{
    struct stat st;
    *data = NULL;
    *len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st)) {
        err_set(e, ERR_ENV, "cannot open '%s': %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        look_says(l, "expected a file '%s', it is no regular file", l->c->text);
        close(fd);
        return ANSWER_NO;
    } else if ((size_t)st.st_size > most) {
        err_set(e, ERR_ENV, "'%s' has %lld bytes; only %zu are looked at", path, (long long)st.st_size, most);
    } else {
        size_t size = (size_t)st.st_size;
        char *to = xcalloc(size + 1, 1);
        for (ssize_t n = 1; *len < size && (n = read(fd, to + *len, size - *len)) > 0;)
            *len += (size_t)n;
        close(fd);
        *data = to;
        return ANSWER_YES;
    }
    if (fd >= 0)
        close(fd);
    return ANSWER_ERROR;
}

static enum answer has_content(struct look *l, const char *path, struct err *e)
{
    const struct check *c = l->c;
    char *data;
    size_t len;
    enum answer a =
        read_content(l, path, c->sha256 && !c->text2 ? CHECK_HASHED : CHECK_CONTENT, &data, &len, e);
    if (a == ANSWER_YES && c->text2) {
        look_says(l, "expected %s '%.200s' in '%s', it has %zu bytes: '%.*s'", c->absent ? "no" : "to find",
                  c->text2, c->text, len, look_cut(data, len), data);
        a = has_pattern(c->text2, data, len, e);
    }
    if (a == ANSWER_YES && c->sha256) {
        char hex[65];
        struct sha256 sum;
        sha256_begin(&sum);
        sha256_add(&sum, data, len);
        sha256_end(&sum, hex);
        a = strcmp(hex, c->sha256) ? ANSWER_NO : ANSWER_YES;
        if (a == ANSWER_NO || !c->text2)
            look_says(l, "expected '%s' %s sha256 %.16s..., it has %zu bytes with %.16s...", c->text,
                      c->absent ? "without" : "with", c->sha256, len, hex);
    }
    free(data);
    return a;
}

enum answer check_file(struct look *l, struct err *e)
{
    const struct check *c = l->c;
    char *path = *c->text == '/' ? xstrdup(c->text) : xasprintf("%s/%s", desk_home(l->s->desk), c->text);
    struct stat st;
    enum answer a = ANSWER_YES;
    if (stat(path, &st)) {
        a = errno == ENOENT || errno == ENOTDIR ? ANSWER_NO : ANSWER_ERROR;
        err_set(e, ERR_ENV, "cannot look at '%s': %s", path, strerror(errno));
        look_says(l, "expected %sfile '%s', there is none", c->absent ? "no " : "a ", c->text);
    } else if (c->text2 || c->sha256) {
        a = has_content(l, path, e);
    } else {
        look_says(l, "expected %sfile '%s', there is %s of %lld bytes", c->absent ? "no " : "a ", c->text,
                  S_ISDIR(st.st_mode) ? "a folder" : "one", (long long)st.st_size);
    }
    free(path);
    return a;
}

/* ---- processes and ports ---------------------------------------------------------------------------------------- */

enum answer check_process(struct look *l, struct err *e)
{
    int n = desk_processes(l->s->desk, l->c->text, e);
    if (n < 0)
        return ANSWER_ERROR;
    char count[32] = "none";
    if (n)
        snprintf(count, sizeof count, "%d", n);
    look_says(l, "expected %s process whose command matches '%s', there %s %s", l->c->absent ? "no" : "a",
              l->c->text, n == 1 ? "is" : "are", count);
    return n ? ANSWER_YES : ANSWER_NO;
}

/* 0, or the errno of connecting; what takes longer than a moment is ETIMEDOUT. */
static int connect_error(const struct look *l, int port)
{
    enum { MOMENT_MS = 1000, SLICE_MS = 20 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int why = connect(fd, (const struct sockaddr *)&to, sizeof to) ? errno : 0;
    if (why == EINPROGRESS) {
        struct pollfd p = {fd, POLLOUT, 0};
        socklen_t size = sizeof why;
        int ready = 0;
        for (int64_t start = clock_ns();
             ready <= 0 && clock_ms_since(start) < MOMENT_MS && !look_cancelled(l);)
            ready = poll(&p, 1, SLICE_MS);
        why = ETIMEDOUT;
        if (ready > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size))
            why = errno;
    }
    close(fd);
    return why;
}

enum answer check_port(struct look *l, struct err *e)
{
    int why = connect_error(l, l->c->port);
    bool ours = why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM || why == EADDRNOTAVAIL;
    if (ours)
        err_set(e, ERR_ENV, "cannot try port %d of 127.0.0.1: %s", l->c->port, strerror(why));
    look_says(l, "expected %s to listen on port %d of 127.0.0.1, %s", l->c->absent ? "nobody" : "somebody",
              l->c->port, why ? strerror(why) : "somebody does");
    return ours ? ANSWER_ERROR : why ? ANSWER_NO : ANSWER_YES;
}
