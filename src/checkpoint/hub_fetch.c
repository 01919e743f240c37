/* hub_fetch.c - fetches one file: resumes a partial download, checks size and hash, and links it.
 *
 * The partial file is blobs/HASH.incomplete, protected by a lock file at the path that other tools use. If
 * the hash is wrong, the partial file is discarded; if an older partial file was continued, the download is
 * repeated once from the beginning.
 */
#include "checkpoint/hub_impl.h"

#include "base/file.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <sha1.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, MIB = 1 << 20 };

struct part {
    struct hub *h;
    const struct hub_file *f;
    char *path, *name; /* path of the partial file, and of the complete one */
    int fd;
    uint64_t at; /* bytes written and hashed */
    bool git;    /* git's hash instead of SHA-256 */
    struct sha256 sha256;
    SHA1_CTX sha1;
    struct http_reply *reply;
    struct err *e; /* error of a failed write */
    bool failed;
};

static void hub_show(struct hub *h, const struct hub_file *f)
{
    char note[300];
    snprintf(note, sizeof note, "MiB, %.200s", f->path);
    bar_show(&h->bar, (int)(h->here / MIB), note);
}

uint64_t hub_present(const struct hub *h, const struct hub_file *f)
{
    struct stat st;
    autofree char *name = xasprintf("%s/blobs/%s", h->folder, f->hash),
                  *path = xasprintf("%s.incomplete", name);
    uint64_t n = 0;
    if (stat(name, &st) == 0 && (uint64_t)st.st_size == f->size)
        n = f->size;
    else if (stat(path, &st) == 0 && (uint64_t)st.st_size <= f->size)
        n = (uint64_t)st.st_size;
    return n;
}

/* ---- the hash ----------------------------------------------------------------------------------- */

static void hash_begin(struct part *p)
{
    char head[40];
    p->at = 0;
    p->git = strlen(p->f->hash) == 40;
    sha256_begin(&p->sha256);
    SHA1Init(&p->sha1);
    if (p->git) /* git hashes "blob SIZE", a NUL byte, and the content */
        SHA1Update(&p->sha1, (const uint8_t *)head,
                   (size_t)snprintf(head, sizeof head, "blob %llu", (unsigned long long)p->f->size) + 1);
}

static void hash_add(struct part *p, const void *data, size_t n)
{
    if (p->git)
        SHA1Update(&p->sha1, data, n);
    else
        sha256_add(&p->sha256, data, n);
    p->at += n;
}

static bool hash_fits(struct part *p)
{
    char hex[65];
    if (p->git)
        SHA1End(&p->sha1, hex);
    else
        sha256_end(&p->sha256, hex);
    return p->at == p->f->size && !strcmp(hex, p->f->hash);
}

/* Hashes what is there. */
static int hash_file(struct part *p)
{
    autofree char *block = xmalloc(BLOCK, 1);
    ssize_t n;
    hash_begin(p);
    while ((n = pread(p->fd, block, BLOCK, (off_t)p->at)) > 0)
        hash_add(p, block, (size_t)n);
    return n < 0 ? err_set(p->e, ERR_ENV, "cannot read '%s': %s", p->path, strerror(errno)) : 0;
}

static int begin_anew(struct part *p)
{
    p->h->here -= p->at < p->h->here ? p->at : p->h->here;
    hash_begin(p);
    return ftruncate(p->fd, 0) == 0
               ? 0
               : err_set(p->e, ERR_ENV, "cannot empty '%s': %s", p->path, strerror(errno));
}

/* ---- the bytes ---------------------------------------------------------------------------------- */

static int on_data(void *arg, const char *data, size_t n)
{
    struct part *p = arg;
    if (p->reply->status == 200 && p->at && !p->reply->received)
        p->failed = begin_anew(p) != 0; /* the server does not support ranges */
    p->reply->received = true;
    for (size_t done = 0; done < n && !p->failed;) {
        ssize_t w = pwrite(p->fd, data + done, n - done, (off_t)p->at);
        if (w <= 0) {
            err_set(p->e, ERR_ENV,
                    "cannot write '%s': %s; the downloaded part is kept, and the next pull continues it",
                    p->path, strerror(errno));
            p->failed = true;
            break;
        }
        hash_add(p, data + done, (size_t)w);
        p->h->here += (uint64_t)w;
        done += (size_t)w;
    }
    hub_show(p->h, p->f);
    return p->failed;
}

static int receive_once(struct part *p, struct http_reply *r)
{
    struct hub *h = p->h;
    char range[64];
    const char *headers[] = {range, NULL};
    snprintf(range, sizeof range, "Range: bytes=%llu-", (unsigned long long)p->at);
    char *path = http_escape_path(p->f->path);
    autofree char *url = xasprintf("%s/%s/resolve/%s/%s", h->endpoint, h->o.repo, h->list.commit, path);
    struct http_request q = {.headers = p->at ? headers : NULL,
                             .max_bytes = p->f->size + 1,
                             .first_s = 60,
                             .idle_s = 60,
                             .on_data = on_data,
                             .arg = p};
    p->reply = r;
    int rc = hub_get(h, url, &q, r, p->e);
    free(path);
    if (p->failed)
        return -1;
    if (rc == 0 && p->at < p->f->size) {
        r->broken = true;
        rc = err_set(p->e, ERR_ENV, "the hub sent %llu of the %llu bytes of '%s'", (unsigned long long)p->at,
                     (unsigned long long)p->f->size, p->f->path);
    }
    return rc;
}

static int receive(struct part *p)
{
    for (int i = 0;; i++) {
        struct http_reply r = {0};
        int rc = p->at == p->f->size ? 0 : receive_once(p, &r);
        bool again = rc && !p->failed && hub_again(p->h, &r, i, p->e);
        http_reply_free(&r);
        if (!again)
            return rc;
    }
}

/* Downloads the file, verifies its hash, and renames it. */
static int complete(struct part *p)
{
    bool older = p->at > 0;
    for (;; older = false) {
        if (receive(p))
            return -1;
        if (hash_fits(p))
            break;
        if (begin_anew(p))
            return -1;
        if (!older)
            return err_set(p->e, ERR_ENV, "'%s' does not match the hub's list: its %s differs", p->f->path,
                           p->git ? "SHA-1" : "SHA-256");
    }
    if (fsync(p->fd) || rename(p->path, p->name))
        return err_set(p->e, ERR_ENV, "cannot write '%s': %s", p->name, strerror(errno));
    return 0;
}

static int lock_file(const struct hub *h, const struct hub_file *f, struct err *e)
{
    autofree char *path = xasprintf("%s/%s.lock", h->locks, f->hash);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        err_set(e, ERR_ENV, "cannot create '%s': %s", path, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB)) {
        err_set(e, ERR_ENV, "another program is downloading '%s' ('%s' is locked)", f->path, path);
        close(fd);
        fd = -1;
    }
    return fd;
}

int hub_fetch(struct hub *h, const struct hub_file *f, struct err *e)
{
    struct part p = {.h = h, .f = f, .e = e};
    if (hub_present(h, f) == f->size && f->size) {
        struct stat st;
        autofree char *name = xasprintf("%s/blobs/%s", h->folder, f->hash);
        bool whole = stat(name, &st) == 0;
        if (whole)
            return 0;
    }
    int lock = lock_file(h, f, e), rc = -1;
    if (lock < 0)
        return -1;
    p.name = xasprintf("%s/blobs/%s", h->folder, f->hash);
    p.path = xasprintf("%s.incomplete", p.name);
    p.fd = open(p.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (p.fd < 0)
        err_set(e, ERR_ENV, "cannot create '%s': %s", p.path, strerror(errno));
    else if ((rc = hash_file(&p)) == 0 && p.at > f->size)
        rc = begin_anew(&p);
    if (rc == 0)
        rc = complete(&p);
    if (p.fd >= 0)
        close(p.fd);
    close(lock);
    free(p.path);
    free(p.name);
    return rc;
}
