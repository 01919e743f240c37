/* hub_listing.c - see hub_listing.h. */
#include "checkpoint/hub_listing.h"

#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool is_hex(const char *s, size_t n)
{
    return s && strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* Returns whether a path stays inside its directory on any file system. */
static bool is_safe(const char *path)
{
    int depth = 1;
    if (!path || !*path || strlen(path) > LISTING_PATH || strchr(path, '\\'))
        return false;
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if (*p < 32 || *p == 127)
            return false;
    for (const char *part = path;; depth++) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n <= 2 && part[0] == '.' && (n == 1 || part[1] == '.')))
            return false;
        if (!part[n])
            return depth <= LISTING_DEPTH;
        part += n + 1;
    }
}

static bool is_wanted(const char *path, const char *const *include)
{
    static const char *const model[] = {"*.json",  "*.jinja",   "*.txt",  "*.model", "*.safetensors",
                                        "LICENSE", "LICENSE.*", "NOTICE", NULL};
    static const char *const other[] = {"original/*", "onnx/*", "runs/*", ".*", NULL};
    bool own = include && include[0];
    for (int i = 0; !own && other[i]; i++)
        if (fnmatch(other[i], path, 0) == 0)
            return false;
    for (const char *const *p = own ? include : model; *p; p++)
        if (fnmatch(*p, path, 0) == 0)
            return true;
    return false;
}

static int add_file(struct hub_listing *l, const json_t *entry, const char *const *include, struct err *e)
{
    const char *path = json_string_value(json_object_get(entry, "rfilename"));
    const json_t *lfs = json_object_get(entry, "lfs");
    const char *hash = json_string_value(
        json_object_get(json_is_object(lfs) ? lfs : entry, json_is_object(lfs) ? "sha256" : "blobId"));
    json_int_t size = json_integer_value(json_object_get(json_is_object(lfs) ? lfs : entry, "size"));
    if (!is_safe(path))
        return err_set(e, ERR_ENV, "the hub lists a file '%.80s', whose name is not allowed",
                       path ? path : "");
    if (!is_wanted(path, include))
        return 0;
    if (!is_hex(hash, json_is_object(lfs) ? 64 : 40) || size < 0 || size > (json_int_t)1 << 42)
        return err_set(e, ERR_ENV, "the hub lists '%.80s' without a size and a hash", path);
    struct hub_file *f = &l->files[l->n++];
    f->path = xstrdup(path);
    f->size = (uint64_t)size;
    snprintf(f->hash, sizeof f->hash, "%s", hash);
    l->bytes += f->size;
    return 0;
}

/* Sorts small files first, so that a wrong model is detected before its weights are downloaded. */
static int by_size(const void *a, const void *b)
{
    const struct hub_file *x = a, *y = b;
    return x->size != y->size ? x->size < y->size ? -1 : 1 : strcmp(x->path, y->path);
}

static int check_doubles(const struct hub_listing *l, struct err *e)
{
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(l->files[i].path, l->files[k].path))
                return err_set(e, ERR_ENV, "the hub lists '%s' twice", l->files[i].path);
    return 0;
}

int listing_parse(const char *json, size_t len, const char *const *include, struct hub_listing *out,
                  struct err *e)
{
    *out = (struct hub_listing){0};
    json_auto_t *root = len <= LISTING_BYTES ? json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const json_t *files = json_object_get(root, "siblings"), *entry;
    const char *commit = json_string_value(json_object_get(root, "sha"));
    size_t i, n = json_array_size(files);
    int rc = 0;
    if (!is_hex(commit, 40) || n == 0 || n > LISTING_FILES) {
        return err_set(e, ERR_ENV, "the hub's file list is invalid: expected a commit and 1 to %d files",
                       LISTING_FILES);
    }
    memcpy(out->commit, commit, 41);
    out->files = xcalloc(n, sizeof *out->files);
    json_array_foreach(files, i, entry) if (rc == 0) rc = add_file(out, entry, include, e);
    if (rc == 0 && out->n == 0)
        rc = err_set(e, ERR_ENV,
                     "none of its %zu files belongs to a model directory; select others with --include, for "
                     "example '*.gguf'",
                     n);
    if (rc == 0)
        rc = check_doubles(out, e);
    if (rc)
        listing_free(out);
    else
        qsort(out->files, (size_t)out->n, sizeof *out->files, by_size);
    return rc;
}

void listing_free(struct hub_listing *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->files[i].path);
    free(l->files);
    *l = (struct hub_listing){0};
}
