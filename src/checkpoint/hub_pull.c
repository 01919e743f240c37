/* hub_pull.c - see hub.h: opens a repository, checks the disk space, downloads and links its files. */
#include "checkpoint/hub_impl.h"

#include "base/file.h"
#include "checkpoint/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define HUB_ADDRESS "https://huggingface.co"

enum { MARGIN = 64 << 20, MIB = 1 << 20 };

/* ---- opening ------------------------------------------------------------------------------------ */

/* Returns the path of the token file of other tools; NULL: there is none. */
static char *token_file(void)
{
    const char *path = getenv("HF_TOKEN_PATH"), *home = getenv("HF_HOME"), *user = getenv("HOME");
    char *file = path && *path   ? xstrdup(path)
                 : home && *home ? xasprintf("%s/token", home)
                 : user && *user ? xasprintf("%s/.cache/huggingface/token", user)
                                 : NULL;
    if (file && access(file, R_OK) == 0)
        return file;
    free(file);
    return NULL;
}

static int read_token(struct hub *h, struct err *e)
{
    char *file = h->o.key ? NULL : token_file(), *spec;
    if (!h->o.key && !file)
        return 0;
    spec = h->o.key ? xasprintf("KEY=%s", h->o.key) : xasprintf("KEY=file:%s", file);
    h->token = secrets_new();
    int rc = secrets_add(h->token, spec, e);
    free(spec);
    free(file);
    return rc;
}

static int set_folders(struct hub *h, struct err *e)
{
    const char *endpoint = getenv("HF_ENDPOINT");
    h->endpoint = xstrdup(endpoint && *endpoint ? endpoint : HUB_ADDRESS);
    for (size_t n = strlen(h->endpoint); n && h->endpoint[n - 1] == '/';)
        h->endpoint[--n] = 0;
    if (strncasecmp(h->endpoint, "http://", 7) != 0 && strncasecmp(h->endpoint, "https://", 8) != 0)
        return err_set(e, ERR_USAGE, "HF_ENDPOINT '%.200s' is not an address; an example is " HUB_ADDRESS,
                       h->endpoint);
    autofree char *cache = known_cache(e);
    if (!cache)
        return -1;
    h->folder = known_folder(cache, h->o.repo);
    h->locks = xasprintf("%s/.locks/%s", cache, strrchr(h->folder, '/') + 1);
    return 0;
}

/* Adds the remedy to the error of a hub that cannot be reached. */
static void tell_remedy(struct err *e)
{
    struct err why = *e;
    err_set(e, why.kind,
            "%.160s; set HF_ENDPOINT=https://HOST to use a mirror, or copy the model's files from another "
            "machine and pass their directory to --model",
            why.text);
}

static int ask_list(struct hub *h, struct err *e)
{
    autofree char *revision = http_escape_path(h->o.revision);
    autofree char *url =
        xasprintf("%s/api/models/%s/revision/%s?blobs=true", h->endpoint, h->o.repo, revision);
    int rc;
    for (int i = 0;; i++) {
        struct http_request q = {.max_bytes = LISTING_BYTES, .first_s = 60, .idle_s = 60};
        struct http_reply r = {0};
        rc = hub_get(h, url, &q, &r, e);
        if (rc == 0)
            rc = listing_parse(r.body.data ? r.body.data : "", r.body.len, h->o.include, &h->list, e);
        bool again = rc && hub_again(h, &r, i, e);
        if (rc && !again && r.unreached)
            tell_remedy(e);
        http_reply_free(&r);
        if (!again)
            break;
    }
    return rc;
}

static char *ref_path(const struct hub *h)
{
    return xasprintf("%s/refs/%s", h->folder, h->o.revision);
}

static void read_before(struct hub *h)
{
    autofree char *path = ref_path(h), *text = NULL;
    size_t len;
    if (!known_is_commit(h->o.revision) && file_read(path, 64, &text, &len, NULL) == 0 && len >= 40) {
        text[40] = 0;
        if (known_is_commit(text) && strcmp(text, h->list.commit) != 0)
            h->before = xstrdup(text);
    }
}

struct hub *hub_open(const struct pull_options *o, struct err *e)
{
    struct hub *h = xcalloc(1, sizeof *h);
    h->o = *o;
    h->o.revision = o->revision && *o->revision ? o->revision : "main";
    if (!known_is_repo(o->repo))
        err_set(e, ERR_USAGE, "invalid repository '%s': expected ORG/NAME; 'holorun models' lists some",
                o->repo);
    else if (strstr(h->o.revision, "..") || h->o.revision[0] == '/' || strlen(h->o.revision) > 200)
        err_set(e, ERR_USAGE, "invalid revision '%s'", h->o.revision);
    else if (read_token(h, e) == 0 && set_folders(h, e) == 0) {
        h->http = http_open();
        if (ask_list(h, e) == 0) {
            read_before(h);
            return h;
        }
    }
    hub_close(h);
    return NULL;
}

void hub_close(struct hub *h)
{
    if (!h)
        return;
    http_close(h->http);
    secrets_free(h->token);
    listing_free(&h->list);
    free(h->endpoint);
    free(h->folder);
    free(h->locks);
    free(h->before);
    free(h);
}

const struct hub_listing *hub_listing(const struct hub *h)
{
    return &h->list;
}

const char *hub_endpoint(const struct hub *h)
{
    return h->endpoint;
}

const char *hub_before(const struct hub *h)
{
    return h->before;
}

uint64_t hub_missing(const struct hub *h)
{
    uint64_t n = 0;
    for (int i = 0; i < h->list.n; i++)
        n += h->list.files[i].size - hub_present(h, &h->list.files[i]);
    return n;
}

/* ---- pulling ------------------------------------------------------------------------------------ */

static int check_space(const struct hub *h, struct err *e)
{
    struct statvfs v;
    uint64_t missing = hub_missing(h);
    if (missing == 0 || statvfs(h->folder, &v) != 0)
        return 0;
    uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
    if (left >= missing + MARGIN)
        return 0;
    return err_set(e, ERR_ENV,
                   "%.2f GB must be downloaded, but only %.2f GB are free at '%s'; set HF_HOME to another "
                   "directory",
                   (double)missing / 1e9, (double)left / 1e9, h->folder);
}

static int make_folders(const struct hub *h, struct err *e)
{
    autofree char *blobs = xasprintf("%s/blobs", h->folder);
    return dir_make(blobs, e) || dir_make(h->locks, e) ? -1 : 0;
}

/* Creates the symbolic link snapshots/COMMIT/PATH to the blob. */
static int link_file(const struct hub *h, const struct hub_file *f, struct err *e)
{
    autobuf target = buf_of(4096);
    buf_puts(&target, "../../");
    for (const char *p = f->path; *p; p++)
        if (*p == '/')
            buf_puts(&target, "../");
    buf_printf(&target, "blobs/%s", f->hash);
    autofree char *at = xasprintf("%s/snapshots/%s/%s", h->folder, h->list.commit, f->path);
    char *fresh = xasprintf("%s.new", at), *slash = strrchr(at, '/');
    *slash = 0;
    int rc = dir_make(at, e);
    *slash = '/';
    unlink(fresh);
    if (rc == 0 && (symlink(target.data, fresh) || rename(fresh, at)))
        rc = err_set(e, ERR_ENV, "cannot link '%s': %s", at, strerror(errno));
    free(fresh);
    return rc;
}

static int write_ref(const struct hub *h, struct err *e)
{
    char *path = ref_path(h), *slash = strrchr(path, '/');
    *slash = 0;
    int rc = dir_make(path, e);
    *slash = '/';
    if (rc == 0 && !known_is_commit(h->o.revision))
        rc = file_write(path, h->list.commit, 40, e);
    free(path);
    return rc;
}

char *hub_pull(struct hub *h, struct err *e)
{
    if (make_folders(h, e) || check_space(h, e))
        return NULL;
    int rc = 0;
    h->here = h->list.bytes - hub_missing(h);
    bar_begin(&h->bar, (int)(h->list.bytes / MIB), (int)(h->here / MIB), h->o.quiet);
    for (int i = 0; i < h->list.n && rc == 0; i++)
        rc = hub_fetch(h, &h->list.files[i], e);
    bar_end(&h->bar);
    for (int i = 0; i < h->list.n && rc == 0; i++)
        rc = link_file(h, &h->list.files[i], e);
    if (rc || write_ref(h, e))
        return NULL;
    return xasprintf("%s/snapshots/%s", h->folder, h->list.commit);
}
