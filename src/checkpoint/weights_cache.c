/* weights_cache.c - cache file of quantized weights; see weights_cache.h. */
#include "checkpoint/weights_cache.h"

#include "base/file.h"
#include "base/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    VERSION = 1,
    PAGE = 4096,
    NAME = 160,
    MAX_ENTRIES = 1 << 18,
    CHECK_ALL = 256 << 20, /* files up to this size are verified completely */
    CHECK_FIRST = 64 << 10,
};

static const char magic[16] = "holorun weights";

struct header {
    char magic[16];
    uint32_t version, count;
    uint64_t identity, size, table; /* table: offset of the entries */
    uint64_t table_sum, header_sum; /* header_sum: checksum of all preceding fields */
};

struct entry {
    char name[NAME];
    int64_t rows, cols;
    uint64_t format, at, bytes;
    uint64_t first, whole; /* checksums of the first CHECK_FIRST bytes and of all bytes */
};

struct weight_cache {
    char *path, *temporary;
    bool named; /* the new file has a temporary name; O_TMPFILE files have none */
    uint64_t identity;
    struct file_map map;
    const struct entry *found; /* sorted by name; NULL: no file is mapped */
    int fd;                    /* descriptor of the new file; -1: none */
    uint64_t at;
    struct entry *entries;
    unsigned long count, cap;
};

/* ---- identity ------------------------------------------------------------------------------------------ */

static uint64_t identify(const char *dir, const struct safetensors *s, uint64_t identity)
{
    uint64_t seed = identity;
    const char *file = NULL;
    autofree char *folder = xstrdup(dir);
    if (gguf_is_place(dir)) { /* dir names a file in the directory */
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = 0;
        else
            snprintf(folder, 2, ".");
    }
    for (int i = 0; i < safetensors_count(s); i++) {
        const struct st_tensor *t = safetensors_at(s, i);
        if (t->file == file)
            continue;
        file = t->file;
        autofree char *path = xasprintf("%s/%s", folder, file);
        struct stat st = {0};
        if (stat(path, &st))
            st.st_size = -1;
        int64_t facts[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
        seed = XXH3_64bits_withSeed(facts, sizeof facts, XXH3_64bits_withSeed(file, strlen(file), seed));
    }
    return seed;
}

char *weight_cache_path(uint64_t key, const char *kind, struct err *e)
{
    char *place = file_place(PLACE_CACHE, e), *folder = place ? xasprintf("%s/weights", place) : NULL,
         *path = NULL;
    if (folder && dir_make(folder, e) == 0)
        path = xasprintf("%s/%016llx.%s", folder, (unsigned long long)key, kind);
    free(folder);
    free(place);
    return path;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static uint64_t header_sum(const struct header *h)
{
    return XXH3_64bits(h, offsetof(struct header, header_sum));
}

static uint64_t first_sum(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes < CHECK_FIRST ? bytes : CHECK_FIRST);
}

/* Checks an entry of the mapped file p, whose matrices end before offset `end`. all: verify all bytes. */
static bool is_entry_sound(const struct entry *x, const uint8_t *p, size_t end, bool all)
{
    if (x->name[NAME - 1] || x->at % PAGE || x->at > end || x->bytes > end - x->at)
        return false;
    return all ? XXH3_64bits(p + x->at, x->bytes) == x->whole : first_sum(p + x->at, x->bytes) == x->first;
}

static bool is_sound(const struct weight_cache *c, const struct header *h)
{
    const uint8_t *p = c->map.data;
    size_t len = c->map.len;
    if (memcmp(h->magic, magic, sizeof magic) != 0 || h->header_sum != header_sum(h) || h->version != VERSION)
        return false;
    if (h->size != len || h->count > MAX_ENTRIES || h->table % PAGE || h->table > len ||
        (len - h->table) / sizeof(struct entry) < h->count)
        return false;
    const struct entry *list = (const struct entry *)(const void *)(p + h->table);
    if (XXH3_64bits(list, h->count * sizeof *list) != h->table_sum)
        return false;
    for (uint32_t i = 0; i < h->count; i++)
        if (!is_entry_sound(&list[i], p, h->table, len <= CHECK_ALL))
            return false;
    return true;
}

/* Maps the existing file if it is valid and current. A missing or stale file needs no message because it
 * is rewritten. */
static void map_old(struct weight_cache *c)
{
    struct header h;
    if (file_map(&c->map, c->path, NULL))
        return;
    if (c->map.len >= sizeof h) {
        memcpy(&h, c->map.data, sizeof h);
        if (is_sound(c, &h) && h.identity == c->identity) {
            c->found = (const struct entry *)(const void *)(c->map.data + h.table);
            c->count = h.count;
            madvise((void *)(uintptr_t)c->map.data, c->map.len, MADV_WILLNEED);
            return;
        }
    }
    file_unmap(&c->map);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

void *weight_cache_find(const struct weight_cache *c, const char *name, enum quant_format format,
                        int64_t rows, int64_t cols, size_t bytes)
{
    if (!c || !c->found || strlen(name) >= NAME)
        return NULL;
    struct entry key = {0};
    memcpy(key.name, name, strlen(name) + 1);
    const struct entry *x = bsearch(&key, c->found, c->count, sizeof *x, by_name);
    bool same = x && x->format == format && x->rows == rows && x->cols == cols && x->bytes == bytes;
    return same ? (void *)(uintptr_t)(c->map.data + x->at) : NULL;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void drop_file(struct weight_cache *c)
{
    if (c->fd >= 0)
        close(c->fd);
    if (c->named)
        unlink(c->temporary);
    c->named = false;
    c->fd = -1;
}

/* Warns and stops writing. */
static void give_up(struct weight_cache *c, const char *why)
{
    warn("quantized weights are not kept in '%s': %s; the next start quantizes again", c->path, why);
    drop_file(c);
}

static bool write_padded(struct weight_cache *c, const void *data, size_t bytes)
{
    static const uint8_t zeros[PAGE];
    struct err e = ERR_INIT;
    size_t gap = (PAGE - (c->at + bytes) % PAGE) % PAGE;
    if (file_write_all(c->fd, c->path, data, bytes, &e) || file_write_all(c->fd, c->path, zeros, gap, &e)) {
        give_up(c, strerror(errno));
        return false;
    }
    c->at += bytes + gap;
    return true;
}

static void begin(struct weight_cache *c)
{
    struct header empty = {0};
    autofree char *folder = xasprintf("%.*s", (int)(strrchr(c->path, '/') - c->path), c->path);
    c->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600); /* vanishes if this process is killed */
    if (c->fd < 0) {
        c->fd = file_temp(c->path, &c->temporary, NULL);
        c->named = c->fd >= 0;
    }
    if (c->fd < 0)
        give_up(c, strerror(errno));
    else
        write_padded(c, &empty, sizeof empty);
}

void weight_cache_add(struct weight_cache *c, const char *name, enum quant_format format, int64_t rows,
                      int64_t cols, const void *data, size_t bytes)
{
    if (!c || c->fd < 0 || strlen(name) >= NAME)
        return;
    if (c->count == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 64;
        c->entries = xrealloc(c->entries, c->cap, sizeof *c->entries);
    }
    struct entry *x = &c->entries[c->count++];
    *x = (struct entry){.rows = rows, .cols = cols, .format = format, .at = c->at, .bytes = bytes};
    memcpy(x->name, name, strlen(name) + 1);
    x->first = first_sum(data, bytes);
    x->whole = XXH3_64bits(data, bytes);
    write_padded(c, data, bytes);
}

/* Renames the completed file to its final name. */
static int publish(struct weight_cache *c)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", c->fd);
    if (fsync(c->fd))
        return -1;
    if (!c->named) {
        c->temporary = file_temp_name(c->path);
        if (linkat(AT_FDCWD, link, AT_FDCWD, c->temporary, AT_SYMLINK_FOLLOW))
            return -1;
        c->named = true;
    }
    if (rename(c->temporary, c->path))
        return -1;
    c->named = false;
    return 0;
}

void weight_cache_finish(struct weight_cache *c, bool complete)
{
    if (!c || c->fd < 0)
        return;
    if (!complete) {
        drop_file(c);
        return;
    }
    struct header h = {
        .version = VERSION, .identity = c->identity, .count = (uint32_t)c->count, .table = c->at};
    size_t bytes = c->count * sizeof *c->entries;
    if (c->count)
        qsort(c->entries, c->count, sizeof *c->entries, by_name);
    if (c->count > MAX_ENTRIES || !write_padded(c, c->entries, bytes))
        return;
    memcpy(h.magic, magic, sizeof magic);
    h.size = c->at;
    h.table_sum = XXH3_64bits(c->entries, bytes);
    h.header_sum = header_sum(&h);
    if (pwrite(c->fd, &h, sizeof h, 0) != (ssize_t)sizeof h || publish(c))
        give_up(c, strerror(errno));
    else
        drop_file(c);
}

/* ---- life ---------------------------------------------------------------------------------------------- */

struct weight_cache *weight_cache_open(const char *dir, const struct safetensors *s, uint64_t identity,
                                       enum weight_storage numbers, const char *layout)
{
    struct err e = ERR_INIT;
    char real[PATH_MAX],
        *what = xasprintf("%s\n%d\n%s", realpath(dir, real) ? real : dir, (int)numbers, layout);
    char *path = weight_cache_path(XXH3_64bits(what, strlen(what)), "weights", &e);
    free(what);
    if (!path) {
        warn("quantized weights are not kept: %s; the next start quantizes again", e.text);
        return NULL;
    }
    struct weight_cache *c = xcalloc(1, sizeof *c);
    *c = (struct weight_cache){.path = path, .fd = -1};
    c->identity = identify(dir, s, identity);
    map_old(c);
    if (!c->found)
        begin(c);
    return c;
}

void weight_cache_close(struct weight_cache *c)
{
    if (!c)
        return;
    weight_cache_finish(c, false);
    file_unmap(&c->map);
    free(c->entries);
    free(c->temporary);
    free(c->path);
    free(c);
}
