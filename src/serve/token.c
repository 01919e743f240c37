/* token.c - reads or creates the file with the server's token (server.h). */
#include "serve/server.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKEN_BYTES = 32, TOKEN_MIN = 16, TOKEN_MAX = 1024 };

static char *read_token(const char *path, int fd, struct err *e)
{
    struct stat st;
    char text[TOKEN_MAX + 2];
    if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 077) {
        err_set(e, ERR_ENV, "'%s' must be owned by you and readable by you only: chmod 600", path);
        return NULL;
    }
    ssize_t n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    size_t len = strcspn(text, "\r\n");
    text[len] = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            len = 0;
    if (len < TOKEN_MIN || len > TOKEN_MAX) {
        err_set(e, ERR_ENV, "invalid token in '%s': expected one line of %d to %d printable characters", path,
                TOKEN_MIN, TOKEN_MAX);
        return NULL;
    }
    char *token = xstrdup(text);
    explicit_bzero(text, sizeof text);
    return token;
}

static char *make_token(const char *path, struct err *e)
{
    unsigned char noise[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 2];
    if (getrandom(noise, sizeof noise, 0) != (ssize_t)sizeof noise) {
        err_set(e, ERR_ENV, "cannot create a token: %s", strerror(errno));
        return NULL;
    }
    for (size_t i = 0; i < sizeof noise; i++)
        snprintf(text + 2 * i, 3, "%02x", noise[i]);
    text[sizeof text - 2] = '\n';
    text[sizeof text - 1] = 0;
    if (file_write(path, text, sizeof text - 1, e))
        return NULL;
    text[sizeof text - 2] = 0;
    return xstrdup(text);
}

char *server_token(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return make_token(path, e);
    if (fd < 0) {
        err_set(e, ERR_ENV, "cannot read '%s': %s", path, strerror(errno));
        return NULL;
    }
    char *token = read_token(path, fd, e);
    close(fd);
    return token;
}
