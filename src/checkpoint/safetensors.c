/* safetensors.c - reader of sharded safetensors checkpoints; see safetensors.h.
 *
 * Finds the files (list_shards), maps each of them and checks its header against its size: read_header for
 * the whole, read_entry for each tensor, and check_ranges for all byte ranges. Finally sorts all tensors
 * by name, which detects duplicate names. */
#include "checkpoint/safetensors_impl.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MAX_HEADER = 100 << 20, /* limit of the reference implementation */
    MAX_INDEX = 64 << 20,
    MAX_TENSORS = 1 << 18,
    MAX_NAME = 256,
    MAX_SHARDS = 1024,
};

/* ---- one entry of a header ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum dtype dtype;
} dtypes[] = {
    {"F32", DT_F32}, {"BF16", DT_BF16}, {"F16", DT_F16}, {"I8", DT_I8},
    {"U8", DT_U8},   {"I32", DT_I32},   {"I64", DT_I64}, {"F8_E4M3", DT_F8E4M3},
};

static int read_dtype(const char *file, const char *name, const char *text, enum dtype *out, struct err *e)
{
    for (size_t i = 0; text && i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(text, dtypes[i].name)) {
            *out = dtypes[i].dtype;
            return 0;
        }
    return err_set(e, ERR_MODEL, "%s: tensor '%s' has unknown dtype '%s'", file, name, text ? text : "none");
}

/* Reads the shape and computes the bytes that it needs; each multiplication is checked for overflow. */
static int read_shape(const char *file, const char *name, const json_t *shape, struct st_tensor *t,
                      size_t *bytes, struct err *e)
{
    if (!json_is_array(shape) || json_array_size(shape) > ST_MAX_DIMS)
        return err_set(e, ERR_MODEL, "%s: tensor '%s': the shape is not an array of at most %d dimensions",
                       file, name, ST_MAX_DIMS);
    t->dims = (int)json_array_size(shape);
    *bytes = dtype_size(t->dtype);
    for (int i = 0; i < t->dims; i++) {
        const json_t *v = json_array_get(shape, (size_t)i);
        t->shape[i] = json_is_integer(v) ? json_integer_value(v) : -1;
        if (t->shape[i] < 0 || __builtin_mul_overflow(*bytes, (size_t)t->shape[i], bytes))
            return err_set(e, ERR_MODEL, "%s: tensor '%s' has an invalid shape", file, name);
    }
    return 0;
}

static int read_range(const json_t *offsets, size_t data_len, size_t *begin, size_t *end)
{
    const json_t *a = json_array_get(offsets, 0), *b = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(a) || !json_is_integer(b))
        return -1;
    json_int_t x = json_integer_value(a), y = json_integer_value(b);
    if (x < 0 || y < x || (uint64_t)y > data_len)
        return -1;
    *begin = (size_t)x;
    *end = (size_t)y;
    return 0;
}

static int read_entry(const char *file, const char *name, const json_t *entry, const uint8_t *data,
                      size_t data_len, struct st_tensor *t, struct err *e)
{
    size_t begin = 0, end = 0, bytes = 0;
    if (strlen(name) > MAX_NAME)
        return err_set(e, ERR_MODEL, "%s: a tensor name is longer than %d bytes", file, MAX_NAME);
    if (read_dtype(file, name, json_string_value(json_object_get(entry, "dtype")), &t->dtype, e) ||
        read_shape(file, name, json_object_get(entry, "shape"), t, &bytes, e))
        return -1;
    if (read_range(json_object_get(entry, "data_offsets"), data_len, &begin, &end))
        return err_set(e, ERR_MODEL,
                       "%s: tensor '%s' lies outside the %zu bytes of data; the file is truncated; copy or "
                       "download it again",
                       file, name, data_len);
    if (end - begin != bytes)
        return err_set(e, ERR_MODEL, "%s: tensor '%s' has %zu bytes, but its shape needs %zu", file, name,
                       end - begin, bytes);
    t->file = file;
    t->data = data + begin;
    t->bytes = bytes;
    return 0;
}

/* ---- one file ------------------------------------------------------------------------------------------ */

static int by_address(const void *a, const void *b)
{
    const struct st_tensor *x = *(const struct st_tensor *const *)a, *y = *(const struct st_tensor *const *)b;
    const uint8_t *p = x->data, *q = y->data;
    return p != q ? (p > q) - (p < q) : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Checks that the byte ranges follow each other without gaps from the first byte of the data to the last. */
static int check_ranges(const char *file, struct st_tensor *tensors, int n, const uint8_t *data, size_t len,
                        struct err *e)
{
    struct st_tensor **order = xcalloc((unsigned long)n + 1, sizeof *order);
    for (int i = 0; i < n; i++)
        order[i] = &tensors[i];
    qsort(order, (size_t)n, sizeof *order, by_address);
    const uint8_t *at = data;
    int rc = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        const uint8_t *p = order[i]->data;
        if (p < at)
            rc = err_set(e, ERR_MODEL, "%s: tensors '%s' and '%s' overlap", file, order[i - 1]->name,
                         order[i]->name);
        else if (p > at)
            rc = err_set(e, ERR_MODEL, "%s: %zu bytes before tensor '%s' belong to no tensor", file,
                         (size_t)(p - at), order[i]->name);
        at = p + order[i]->bytes;
    }
    if (rc == 0 && at != data + len)
        rc = err_set(e, ERR_MODEL, "%s: %zu bytes at the end belong to no tensor", file,
                     (size_t)(data + len - at));
    free(order);
    return rc;
}

struct st_tensor *safetensors_add(struct safetensors *s)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->tensors = xrealloc(s->tensors, (unsigned long)s->cap, sizeof *s->tensors);
    }
    struct st_tensor *t = &s->tensors[s->count++];
    *t = (struct st_tensor){0};
    return t;
}

static int read_header(struct safetensors *s, const char *file, json_t *header, const uint8_t *data,
                       size_t len, struct err *e)
{
    int first = s->count;
    const char *name;
    json_t *entry;
    if (!json_is_object(header))
        return err_set(e, ERR_MODEL, "%s: the header is not a JSON object", file);
    json_object_foreach(header, name, entry)
    {
        if (!strcmp(name, "__metadata__"))
            continue;
        if (s->count >= MAX_TENSORS)
            return err_set(e, ERR_MODEL, "%s: more than %d tensors", file, MAX_TENSORS);
        struct st_tensor *t = safetensors_add(s);
        t->name = xstrdup(name);
        if (read_entry(file, name, entry, data, len, t, e))
            return -1;
    }
    struct st_tensor *added = s->count > first ? &s->tensors[first] : NULL;
    return check_ranges(file, added, s->count - first, data, len, e);
}

static int read_file(struct safetensors *s, const char *file, const uint8_t *p, size_t len, struct err *e)
{
    uint64_t header_len = 0;
    if (len < 8)
        return err_set(e, ERR_MODEL, "%s: %zu bytes are too short for a header", file, len);
    for (int i = 0; i < 8; i++)
        header_len |= (uint64_t)p[i] << (8 * i);
    if (header_len > MAX_HEADER || header_len > len - 8)
        return err_set(e, ERR_MODEL,
                       "%s: the header claims %llu bytes in a file of %zu; copy or download it again", file,
                       (unsigned long long)header_len, len);
    json_error_t why;
    json_auto_t *header = json_loadb((const char *)p + 8, (size_t)header_len, JSON_REJECT_DUPLICATES, &why);
    if (!header)
        return err_set(e, ERR_MODEL, "%s: header: byte %d: %s", file, why.position, why.text);
    return read_header(s, file, header, p + 8 + header_len, len - 8 - (size_t)header_len, e);
}

/* ---- list of files ------------------------------------------------------------------------------------- */

static void safetensors_add_file(struct safetensors *s, const char *file)
{
    for (int i = 0; i < s->shards; i++)
        if (!strcmp(s->files[i], file))
            return;
    s->files = xrealloc(s->files, (unsigned long)s->shards + 1, sizeof *s->files);
    s->files[s->shards++] = xstrdup(file);
}

/* Adds the files that the index names. weight_map maps tensor names to file names. */
static int list_index(struct safetensors *s, const json_t *weight_map, struct err *e)
{
    const char *name;
    json_t *value;
    if (!json_is_object(weight_map) || !json_object_size(weight_map))
        return err_set(e, ERR_MODEL, "model.safetensors.index.json: no 'weight_map'");
    json_object_foreach((json_t *)(uintptr_t)weight_map, name, value)
    {
        const char *file = json_string_value(value);
        if (!file || !*file || strchr(file, '/') || file[0] == '.')
            return err_set(e, ERR_MODEL,
                           "model.safetensors.index.json: tensor '%s' is in a file outside this directory",
                           name);
        safetensors_add_file(s, file);
        if (s->shards > MAX_SHARDS)
            return err_set(e, ERR_MODEL, "model.safetensors.index.json: more than %d files", MAX_SHARDS);
    }
    return 0;
}

/* Adds the files of a directory without an index: a single file, or a series whose first name states their
 * number. */
static int list_series(struct safetensors *s, const char *dir, struct err *e)
{
    autofree char *one = xasprintf("%s/model.safetensors", dir);
    bool single = file_exists(one);
    if (single) {
        safetensors_add_file(s, "model.safetensors");
        return 0;
    }
    for (int n = 1; n <= MAX_SHARDS; n++) {
        autofree char *path = xasprintf("%s/model-00001-of-%05d.safetensors", dir, n);
        bool found = file_exists(path);
        for (int i = 1; found && i <= n; i++) {
            autofree char *file = xasprintf("model-%05d-of-%05d.safetensors", i, n);
            safetensors_add_file(s, file);
        }
        if (found)
            return 0;
    }
    return err_set(e, ERR_MODEL, "neither model.safetensors nor an index nor a first shard found");
}

static int list_shards(struct safetensors *s, const char *dir, json_t **weight_map, struct err *e)
{
    autofree char *path = xasprintf("%s/model.safetensors.index.json", dir), *text = NULL;
    size_t len;
    int rc;
    if (!file_exists(path)) {
        rc = list_series(s, dir, e);
    } else if ((rc = file_read(path, MAX_INDEX, &text, &len, e)) == 0) {
        json_error_t why;
        json_auto_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
        *weight_map = json_incref(json_object_get(root, "weight_map"));
        rc = root ? list_index(s, *weight_map, e)
                  : err_set(e, ERR_MODEL, "model.safetensors.index.json: line %d: %s", why.line, why.text);
    }
    return rc;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct st_tensor *)a)->name, ((const struct st_tensor *)b)->name);
}

int safetensors_sort(struct safetensors *s, struct err *e)
{
    if (s->count)
        qsort(s->tensors, (size_t)s->count, sizeof *s->tensors, by_name);
    for (int i = 1; i < s->count; i++)
        if (!by_name(&s->tensors[i - 1], &s->tensors[i]))
            return err_set(e, ERR_MODEL, "tensor '%s' is both in %s and in %s", s->tensors[i].name,
                           s->tensors[i - 1].file, s->tensors[i].file);
    return 0;
}

/* Checks that the index and the shards contain the same tensors, each in the file that the index names. */
static int check_index(const struct safetensors *s, const json_t *weight_map, struct err *e)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)weight_map, name, value)
    {
        const struct st_tensor *t = safetensors_find(s, name);
        if (!t || strcmp(t->file, json_string_value(value)) != 0)
            return err_set(e, ERR_MODEL,
                           "tensor '%s' is not in %s, although the index lists it there; download both again",
                           name, json_string_value(value));
    }
    for (int i = 0; i < s->count; i++)
        if (!json_object_get(weight_map, s->tensors[i].name))
            return err_set(e, ERR_MODEL, "tensor '%s' of %s is not in the index", s->tensors[i].name,
                           s->tensors[i].file);
    return 0;
}

static int check_shards(const struct safetensors *s, const char *dir, struct err *e)
{
    int missing = 0, first = 0;
    for (int i = s->shards - 1; i >= 0; i--) {
        autofree char *path = xasprintf("%s/%s", dir, s->files[i]);
        bool here = file_exists(path);
        missing += !here;
        first = here ? first : i;
    }
    if (!missing)
        return 0;
    return err_set(
        e, ERR_MODEL,
        "the download is incomplete: %d of %d weight files are missing, shard %d of %d is '%s': No such "
        "file; copy or download it into this directory",
        missing, s->shards, first + 1, s->shards, s->files[first]);
}

int safetensors_complete(const char *dir, bool *here, struct err *e)
{
    struct safetensors *s = xcalloc(1, sizeof *s);
    json_auto_t *weight_map = NULL;
    *here = list_shards(s, dir, &weight_map, NULL) == 0;
    int rc = *here ? check_shards(s, dir, e) : 0;
    safetensors_close(s);
    return rc ? err_prefix(e, "model '%s'", dir) : 0;
}

struct safetensors *safetensors_open(const char *dir, struct err *e)
{
    struct safetensors *s = xcalloc(1, sizeof *s);
    json_t *weight_map = NULL;
    if (gguf_is_place(dir))
        return safetensors_of_gguf(s, dir, e);
    int rc = list_shards(s, dir, &weight_map, e) ? -1 : check_shards(s, dir, e);
    s->maps = xcalloc((unsigned long)s->shards + 1, sizeof *s->maps);
    for (int i = 0; i < s->shards && rc == 0; i++) {
        autofree char *path = xasprintf("%s/%s", dir, s->files[i]);
        rc = file_map(&s->maps[i], path, e);
        if (rc == 0)
            rc = read_file(s, s->files[i], s->maps[i].data, s->maps[i].len, e);
    }
    if (rc == 0)
        rc = safetensors_sort(s, e);
    if (rc == 0 && weight_map)
        rc = check_index(s, weight_map, e);
    json_decref(weight_map);
    if (rc) {
        safetensors_close(s);
        if (e)
            e->kind = ERR_MODEL;
        err_prefix(e, "model '%s'", dir);
        return NULL;
    }
    return s;
}

struct safetensors *safetensors_parse(const void *data, size_t len, struct err *e)
{
    struct safetensors *s = xcalloc(1, sizeof *s);
    safetensors_add_file(s, "memory");
    if (read_file(s, s->files[0], data, len, e) || safetensors_sort(s, e)) {
        safetensors_close(s);
        return NULL;
    }
    return s;
}

void safetensors_close(struct safetensors *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->shards; i++) {
        if (s->maps && !s->n_gguf)
            file_unmap(&s->maps[i]);
        free(s->files[i]);
    }
    for (int i = 0; i < s->count; i++)
        free(s->tensors[i].name);
    for (int i = 0; i < s->n_gguf; i++)
        gguf_close(s->gguf[i]);
    free(s->gguf);
    free(s->maps);
    free(s->files);
    free(s->tensors);
    free(s);
}

/* ---- access -------------------------------------------------------------------------------------------- */

int safetensors_count(const struct safetensors *s)
{
    return s->count;
}

const struct st_tensor *safetensors_at(const struct safetensors *s, int i)
{
    return &s->tensors[i];
}

const struct st_tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    int lo = 0, hi = s->count;
    while (lo < hi) {
        int mid = (lo + hi) / 2, c = strcmp(s->tensors[mid].name, name);
        if (c == 0)
            return &s->tensors[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

void safetensors_release(const struct safetensors *s, const struct st_tensor *t)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)t->data + page - 1) / page * page,
              end = ((uintptr_t)t->data + t->bytes) / page * page;
    if (s->maps && end > begin) /* whole pages only: the first and the last may also contain a neighbour */
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void safetensors_release_all(const struct safetensors *s)
{
    for (int i = 0; s->maps && i < s->shards; i++)
        if (s->maps[i].len)
            madvise((void *)(uintptr_t)s->maps[i].data, s->maps[i].len, MADV_DONTNEED);
}

void safetensors_scattered(const struct safetensors *s, bool scattered)
{
    for (int i = 0; s->maps && i < s->shards; i++)
        if (s->maps[i].len)
            madvise((void *)(uintptr_t)s->maps[i].data, s->maps[i].len,
                    scattered ? MADV_RANDOM : MADV_NORMAL);
}

int safetensors_files(const struct safetensors *s)
{
    return s->shards;
}

size_t safetensors_bytes(const struct safetensors *s)
{
    size_t all = 0;
    for (int i = 0; s->maps && i < s->shards; i++)
        all += s->maps[i].len;
    return all;
}

void safetensors_shape_text(const struct st_tensor *t, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < t->dims && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    if (n < size)
        snprintf(out + n, size - n, "]");
}
