/* check_desk.c - checks that need no screenshot: commands, the agent's answer, files, processes, ports.
 *
 * The program under test may have left any kind of file, so sizes are limited and only regular files are
 * read. */
#include "qa/run/check_impl.h"

#include "base/file.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANSWER_MAX = 32 << 10 }; /* limit for the answer in the environment of a command, in bytes */

/* ---- shell --------------------------------------------------------------------------------------- */

static void put_exit_code(struct probe *probe, int code, const struct buf *output)
{
    size_t len;
    const char *line = text_last_line(output->data, output->len, &len);
    int shown = probe_cut(line, len);
    probe_detail(probe, "expected exit code 0, got %d%s%.*s", code, shown ? "; last line of output: " : "",
                 shown, line);
}

enum answer check_shell(struct probe *probe, struct err *e)
{
    const struct check_context *s = probe->s;
    const char *said = s->answer ? s->answer : "";
    size_t n = strlen(said);
    autofree char *dir = xasprintf("HOLORUN_DIR=%s", s->run_dir ? s->run_dir : "");
    autofree char *home = xasprintf("HOLORUN_HOME=%s", desk_home(s->desk));
    autofree char *answer = xasprintf("HOLORUN_ANSWER=%.*s",
                                      (int)(n > ANSWER_MAX ? utf8_valid_prefix(said, ANSWER_MAX) : n), said);
    const char *const env[] = {dir, home, answer, NULL};
    double seconds = probe->seconds > 0 ? probe->seconds : 60;
    autobuf output = buf_of(CHECK_OUTPUT);
    int code = 0, rc = desk_run(s->desk, probe->c->text, env, seconds, s->cancel, &code, &output, e);
    for (size_t i = 0; i < output.len; i++)
        output.data[i] = output.data[i] ? output.data[i] : '?';
    probe->late = rc && e->kind == ERR_TIME;
    if (probe->late)
        probe_detail(probe, "expected exit code 0, timed out after %.0f s", ceil(seconds));
    else if (!rc)
        put_exit_code(probe, code, &output);
    probe->r.output = output.len ? buf_take(&output) : NULL;
    return probe->late ? ANSWER_NO : rc ? ANSWER_ERROR : code == 0 ? ANSWER_YES : ANSWER_NO;
}

/* ---- the answer ---------------------------------------------------------------------------------- */

enum answer check_answer(struct probe *probe, struct err *e)
{
    const char *text = probe->s->answer, *pattern = probe->c->text;
    if (!text) {
        probe_detail(probe, "expected an answer that matches '%s', got none", pattern);
        return ANSWER_NO;
    }
    size_t n = strlen(text);
    probe_detail(probe, "expected an answer that matches '%.200s', got '%.*s'", pattern, probe_cut(text, n),
                 text);
    return probe_find(pattern, text, n, e);
}

/* ---- files --------------------------------------------------------------------------------------- */

static enum answer has_content(struct probe *probe, const char *path, struct err *e)
{
    const struct check *c = probe->c;
    autofree char *data = NULL;
    size_t len;
    enum answer a = ANSWER_YES;
    if (file_read(path, c->sha256 && !c->text2 ? CHECK_HASHED : CHECK_CONTENT, &data, &len, e))
        return ANSWER_ERROR;
    if (c->text2) {
        probe_detail(probe, "expected %s '%.200s' in '%s', got %zu bytes: '%.*s'",
                     c->absent ? "no match for" : "a match for", c->text2, c->text, len, probe_cut(data, len),
                     data);
        a = probe_find(c->text2, data, len, e);
    }
    if (a == ANSWER_YES && c->sha256) {
        char hex[65];
        sha256(data, len, hex);
        a = strcmp(hex, c->sha256) ? ANSWER_NO : ANSWER_YES;
        if (a == ANSWER_NO || !c->text2)
            probe_detail(probe, "expected '%s' %s sha256 %.16s..., got %zu bytes with %.16s...", c->text,
                         c->absent ? "without" : "with", c->sha256, len, hex);
    }
    return a;
}

enum answer check_file(struct probe *probe, struct err *e)
{
    const struct check *c = probe->c;
    autofree char *path =
        *c->text == '/' ? xstrdup(c->text) : xasprintf("%s/%s", desk_home(probe->s->desk), c->text);
    struct stat st;
    enum answer a = ANSWER_YES;
    if (stat(path, &st)) {
        a = errno == ENOENT || errno == ENOTDIR ? ANSWER_NO : ANSWER_ERROR;
        err_set(e, ERR_ENV, "cannot stat '%s': %s", path, strerror(errno));
        probe_detail(probe, "expected %sfile '%s'; it does not exist", c->absent ? "no " : "a ", c->text);
    } else if ((c->text2 || c->sha256) && !S_ISREG(st.st_mode)) {
        a = ANSWER_NO;
        probe_detail(probe, "expected a file '%s', but it is not a regular file", c->text);
    } else if (c->text2 || c->sha256) {
        a = has_content(probe, path, e);
    } else {
        probe_detail(probe, "expected %sfile '%s', there is %s of %lld bytes", c->absent ? "no " : "a ",
                     c->text, S_ISDIR(st.st_mode) ? "a folder" : "one", (long long)st.st_size);
    }
    return a;
}

/* ---- processes and ports ------------------------------------------------------------------------- */

enum answer check_process(struct probe *probe, struct err *e)
{
    int n = desk_processes(probe->s->desk, probe->c->text, e);
    if (n < 0)
        return ANSWER_ERROR;
    char count[32] = "none";
    if (n)
        snprintf(count, sizeof count, "%d", n);
    probe_detail(probe, "expected %s process whose command line matches '%s', there %s %s",
                 probe->c->absent ? "no" : "a", probe->c->text, n == 1 ? "is" : "are", count);
    return n ? ANSWER_YES : ANSWER_NO;
}

/* Connects to a port, for at most a second. Returns 0 or the errno of connect(). */
static int connect_error(int port)
{
    const struct timeval second = {1, 0};
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
    int why = connect(fd, (const struct sockaddr *)&to, sizeof to) ? errno : 0;
    close(fd);
    return why == EINPROGRESS ? ETIMEDOUT : why;
}

enum answer check_port(struct probe *probe, struct err *e)
{
    int why = connect_error(probe->c->port);
    bool ours = why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM || why == EADDRNOTAVAIL;
    if (ours)
        err_set(e, ERR_ENV, "cannot connect to port %d of 127.0.0.1: %s", probe->c->port, strerror(why));
    probe_detail(probe, "expected port %d of 127.0.0.1 to %s connections: %s", probe->c->port,
                 probe->c->absent ? "refuse" : "accept", why ? strerror(why) : "accepted");
    return ours ? ANSWER_ERROR : why ? ANSWER_NO : ANSWER_YES;
}
