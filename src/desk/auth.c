/* auth.c - cookies: one Xauthority file per desk, and one for this process with all of them.
 *
 * An entry has five fields, big-endian: family, address, display number, name, data; all but the first have a
 * length.  Family 0xffff matches any host; 256 is this host by name, which some clients require.  The file of
 * this process contains the desks first, then the user's own entries, so that ":0" can be opened too. */
#include "desk/private.h"

#include "base/file.h"
#include "base/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROTOCOL "MIT-MAGIC-COOKIE-1"

enum { FAMILY_LOCAL = 256, FAMILY_WILD = 0xffff, USER_MAX = 1 << 20, FILE_MAX = 4 << 20 };

struct entry {
    struct entry *next;
    int number;
    unsigned char cookie[COOKIE];
};
static struct {
    pthread_mutex_t lock;
    char *path, *user;
    struct entry *entries;
} auth = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void put_field(struct buf *b, const void *data, size_t n)
{
    unsigned char length[2] = {(unsigned char)(n >> 8), (unsigned char)n};
    buf_put(b, length, 2);
    buf_put(b, data, n);
}

static void put_entry(struct buf *b, int family, const char *address, const char *number,
                      const unsigned char cookie[COOKIE])
{
    unsigned char f[2] = {(unsigned char)(family >> 8), (unsigned char)family};
    buf_put(b, f, 2);
    put_field(b, address, strlen(address));
    put_field(b, number, strlen(number));
    put_field(b, PROTOCOL, strlen(PROTOCOL));
    put_field(b, cookie, COOKIE);
}

int auth_write(const char *path, int number, const unsigned char cookie[COOKIE], struct err *e)
{
    char host[256] = "", display[16];
    autobuf b = buf_of(4096);
    gethostname(host, sizeof host - 1);
    snprintf(display, sizeof display, "%d", number);
    put_entry(&b, FAMILY_LOCAL, host, display, cookie);
    put_entry(&b, FAMILY_WILD, "", display, cookie);
    return file_write(path, b.data, b.len, e);
}

/* Rewrites the file of this process.  The caller holds auth.lock.  Returns -1 with e. */
static int rewrite(struct err *e)
{
    autobuf b = buf_of(FILE_MAX);
    for (struct entry *x = auth.entries; x; x = x->next) {
        char number[16];
        snprintf(number, sizeof number, "%d", x->number);
        put_entry(&b, FAMILY_WILD, "", number, x->cookie);
    }
    autofree char *user = NULL;
    size_t len = 0;
    if (auth.user && file_read(auth.user, USER_MAX, &user, &len, NULL) == 0)
        buf_put(&b, user, len);
    return file_write(auth.path, b.data, b.len, e);
}

int auth_begin(const char *root, struct err *e)
{
    const char *given = getenv("XAUTHORITY"), *home = getenv("HOME");
    auth.path = xasprintf("%s/Xauthority", root);
    auth.user = given && *given ? xstrdup(given) : home && *home ? xasprintf("%s/.Xauthority", home) : NULL;
    if (rewrite(e)) {
        auth_end();
        return -1;
    }
    setenv("XAUTHORITY", auth.path, 1);
    return 0;
}

void auth_end(void)
{
    const char *now = getenv("XAUTHORITY");
    if (auth.path && now && !strcmp(now, auth.path)) {
        if (auth.user)
            setenv("XAUTHORITY", auth.user, 1);
        else
            unsetenv("XAUTHORITY");
    }
    free(auth.path);
    free(auth.user);
    auth.path = auth.user = NULL;
    while (auth.entries) {
        autofree struct entry *x = auth.entries;
        auth.entries = x->next;
    }
}

int auth_add(int number, const unsigned char cookie[COOKIE], struct err *e)
{
    struct entry *x = xcalloc(1, sizeof *x);
    x->number = number;
    memcpy(x->cookie, cookie, COOKIE);
    LOCKED(&auth.lock);
    x->next = auth.entries;
    auth.entries = x;
    return rewrite(e);
}

void auth_drop(int number)
{
    LOCKED(&auth.lock);
    for (struct entry **at = &auth.entries; *at; at = &(*at)->next)
        if ((*at)->number == number) {
            autofree struct entry *x = *at;
            *at = x->next;
            rewrite(NULL);
            break;
        }
}
