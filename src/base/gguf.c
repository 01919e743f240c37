/* gguf.c - parses GGUF files (gguf.h).
 *
 * A cursor passes over the header once: read_keys and read_tensors check each length before they advance,
 * so that later readers of values need not. check_ranges then checks the location of the data. */
#include "base/gguf.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_KEYS = 1 << 14,
    MAX_TENSORS = 1 << 18,
    MAX_NAME = 255,
    MAX_ALIGN = 1 << 16,
    ALIGN = 32, /* unless the file has another value */
};

struct key {
    const char *name;
    size_t len;
    struct gguf_value value;
};

struct gguf_file {
    struct file_map map;
    char *name;
    const uint8_t *data; /* the whole file */
    size_t len;
    struct key *keys;
    struct gguf_entry *tensors;
    int n_keys, n_tensors;
};

/* ---- the cursor ---------------------------------------------------------------------------------------- */

/* Returns the bytes of a value; 0: strings and lists, which contain their length. */
static size_t kind_bytes(uint32_t kind)
{
    static const uint8_t bytes[GGUF_KINDS] = {
        [GGUF_U8] = 1,    [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4,   [GGUF_I32] = 4,
        [GGUF_FLOAT] = 4, [GGUF_FLAG] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_DOUBLE] = 8};
    return kind < GGUF_KINDS ? bytes[kind] : 0;
}

struct cursor {
    const struct gguf_file *f;
    const uint8_t *at, *end;
    struct err *e;
};

static bool take(struct cursor *c, void *out, size_t n)
{
    if ((size_t)(c->end - c->at) < n)
        return false;
    memcpy(out, c->at, n);
    c->at += n;
    return true;
}

static bool skip(struct cursor *c, uint64_t n)
{
    if ((uint64_t)(c->end - c->at) < n)
        return false;
    c->at += n;
    return true;
}

/* Reads a string in place. */
static bool take_text(struct cursor *c, const char **text, size_t *len)
{
    uint64_t n;
    if (!take(c, &n, sizeof n) || !skip(c, n))
        return false;
    *text = (const char *)c->at - n;
    *len = (size_t)n;
    return true;
}

static int ends_early(struct cursor *c, const char *where)
{
    return err_set(c->e, ERR_MODEL, "%s: the file ends inside %s; copy or download it again", c->f->name,
                   where);
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

static bool skip_items(struct cursor *c, const struct gguf_value *v)
{
    const char *text;
    size_t n, each = kind_bytes(v->kind);
    if (each)
        return v->count <= (uint64_t)(c->end - c->at) / each && skip(c, v->count * each);
    for (uint64_t i = 0; i < v->count; i++)
        if (!take_text(c, &text, &n))
            return false;
    return true;
}

static int read_value(struct cursor *c, struct key *k)
{
    uint32_t kind;
    char where[MAX_NAME + 32];
    struct gguf_value *v = &k->value;
    snprintf(where, sizeof where, "the value of '%.*s'", (int)k->len, k->name);
    if (!take(c, &kind, sizeof kind))
        return ends_early(c, where);
    *v = (struct gguf_value){.list = kind == GGUF_LIST, .count = 1};
    if (v->list && (!take(c, &kind, sizeof kind) || !take(c, &v->count, sizeof v->count)))
        return ends_early(c, where);
    if (!kind_bytes(kind) && kind != GGUF_TEXT)
        return err_set(c->e, ERR_MODEL, "%s: '%.*s' has a value of type %u, which is unknown", c->f->name,
                       (int)k->len, k->name, kind);
    v->kind = (enum gguf_kind)kind;
    v->at = c->at;
    if (!skip_items(c, v))
        return ends_early(c, where);
    v->end = c->at;
    return 0;
}

static int read_keys(struct gguf_file *f, struct cursor *c, int n)
{
    f->keys = xcalloc((unsigned long)n + 1, sizeof *f->keys);
    for (int i = 0; i < n; i++) {
        struct key *k = &f->keys[i];
        if (!take_text(c, &k->name, &k->len))
            return ends_early(c, "the keys");
        if (k->len == 0 || k->len > MAX_NAME)
            return err_set(c->e, ERR_MODEL, "%s: key %d has a name of %zu bytes; expected 1 to %d", f->name,
                           i, k->len, MAX_NAME);
        struct gguf_value twice;
        char name[MAX_NAME + 1];
        snprintf(name, sizeof name, "%.*s", (int)k->len, k->name);
        if (gguf_value(f, name, &twice))
            return err_set(c->e, ERR_MODEL, "%s: key '%s' occurs twice", f->name, name);
        if (read_value(c, k))
            return -1;
        f->n_keys++;
    }
    return 0;
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

static int read_shape(struct cursor *c, struct gguf_entry *t)
{
    uint32_t dims;
    uint64_t size[GGUF_MAX_DIMS];
    if (!take(c, &dims, sizeof dims))
        return ends_early(c, "the table of tensors");
    if (dims < 1 || dims > GGUF_MAX_DIMS)
        return err_set(c->e, ERR_MODEL, "%s: tensor '%s' has %u dimensions; expected 1 to %d", c->f->name,
                       t->name, dims, GGUF_MAX_DIMS);
    if (!take(c, size, dims * sizeof *size) || !take(c, &t->type, sizeof t->type))
        return ends_early(c, "the table of tensors");
    t->dims = (int)dims;
    t->bytes = 1;
    for (uint32_t i = 0; i < dims; i++) {
        if (size[i] < 1 || size[i] > INT64_MAX ||
            __builtin_mul_overflow(t->bytes, (size_t)size[i], &t->bytes))
            return err_set(c->e, ERR_MODEL, "%s: tensor '%s' has an impossible shape", c->f->name, t->name);
        t->shape[dims - 1 - i] = (int64_t)size[i];
    }
    int block = ggml_block(t->type);
    if (!block)
        return err_set(c->e, ERR_MODEL, "%s: tensor '%s' is stored as %s, which is unknown", c->f->name,
                       t->name, ggml_type_name(t->type));
    if (size[0] % (uint64_t)block)
        return err_set(c->e, ERR_MODEL, "%s: tensor '%s' has rows of %llu, not a multiple of %s's %d",
                       c->f->name, t->name, (unsigned long long)size[0], ggml_type_name(t->type), block);
    t->bytes /= (size_t)block;
    if (__builtin_mul_overflow(t->bytes, (size_t)ggml_block_bytes(t->type), &t->bytes))
        return err_set(c->e, ERR_MODEL, "%s: tensor '%s' has an impossible shape", c->f->name, t->name);
    return 0;
}

/* Reads the table of tensors; the offset is stored in `data` until the whole header has been read. */
static int read_tensors(struct gguf_file *f, struct cursor *c, int n)
{
    f->tensors = xcalloc((unsigned long)n + 1, sizeof *f->tensors);
    for (int i = 0; i < n; i++) {
        struct gguf_entry *t = &f->tensors[i];
        const char *name;
        size_t len;
        uint64_t offset;
        if (!take_text(c, &name, &len))
            return ends_early(c, "the table of tensors");
        if (len == 0 || len > MAX_NAME || memchr(name, 0, len))
            return err_set(c->e, ERR_MODEL, "%s: tensor %d does not have a name of 1 to %d bytes", f->name, i,
                           MAX_NAME);
        t->name = xasprintf("%.*s", (int)len, name);
        f->n_tensors++;
        if (read_shape(c, t))
            return -1;
        if (!take(c, &offset, sizeof offset))
            return ends_early(c, "the table of tensors");
        if (offset > f->len)
            return err_set(c->e, ERR_MODEL,
                           "%s: tensor '%s' is outside the file's %zu bytes; copy or download it again",
                           f->name, t->name, f->len);
        t->data = f->data + offset;
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct gguf_entry *x = *(const struct gguf_entry *const *)a,
                            *y = *(const struct gguf_entry *const *)b;
    return (x->data > y->data) - (x->data < y->data);
}

/* Checks that the data are contiguous, with less than one alignment between them. base: start of the data. */
static int check_ranges(struct gguf_file *f, size_t base, size_t align, struct err *e)
{
    struct gguf_entry **order = xcalloc((unsigned long)f->n_tensors + 1, sizeof *order);
    for (int i = 0; i < f->n_tensors; i++)
        order[i] = &f->tensors[i];
    qsort(order, (size_t)f->n_tensors, sizeof *order, by_place);
    size_t at = 0;
    int rc = 0;
    for (int i = 0; i < f->n_tensors && rc == 0; i++) {
        struct gguf_entry *t = order[i];
        size_t offset = (size_t)(t->data - f->data), room = f->len > base ? f->len - base : 0;
        if (offset > room || t->bytes > room - offset)
            rc = err_set(e, ERR_MODEL,
                         "%s: tensor '%s' is outside the file's %zu bytes; the file is truncated, copy or "
                         "download it again",
                         f->name, t->name, f->len);
        else if (offset % align)
            rc = err_set(e, ERR_MODEL, "%s: tensor '%s' is not at a multiple of %zu bytes", f->name, t->name,
                         align);
        else if (offset < at)
            rc = err_set(e, ERR_MODEL, "%s: tensors '%s' and '%s' overlap", f->name, order[i - 1]->name,
                         t->name);
        else if (offset - at >= align)
            rc = err_set(e, ERR_MODEL, "%s: %zu unused bytes before tensor '%s'", f->name, offset - at,
                         t->name);
        at = offset + t->bytes;
        t->data = f->data + base + offset;
    }
    free(order);
    if (rc == 0 && f->len - base > at && f->len - base - at >= align)
        rc = err_set(e, ERR_MODEL, "%s: %zu unused bytes at the end", f->name, f->len - base - at);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct gguf_entry *const *)a)->name, (*(const struct gguf_entry *const *)b)->name);
}

static int check_names(const struct gguf_file *f, struct err *e)
{
    const struct gguf_entry **order = xcalloc((unsigned long)f->n_tensors + 1, sizeof *order);
    int rc = 0;
    for (int i = 0; i < f->n_tensors; i++)
        order[i] = &f->tensors[i];
    qsort(order, (size_t)f->n_tensors, sizeof *order, by_name);
    for (int i = 1; i < f->n_tensors && rc == 0; i++)
        if (!by_name(&order[i - 1], &order[i]))
            rc = err_set(e, ERR_MODEL, "%s: tensor '%s' occurs twice", f->name, order[i]->name);
    free(order);
    return rc;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static int read_head(struct gguf_file *f, struct cursor *c, uint64_t counts[2])
{
    char magic[4];
    uint32_t version;
    if (!take(c, magic, 4) || !take(c, &version, sizeof version) || !take(c, counts, 2 * sizeof *counts) ||
        memcmp(magic, "GGUF", 4) != 0)
        return err_set(c->e, ERR_MODEL, "%s is not a GGUF file", f->name);
    if (version != 2 && version != 3)
        return err_set(c->e, ERR_MODEL, "%s: GGUF version %u is not supported, only 2 and 3%s", f->name,
                       version, version > 1 << 16 ? "; it may be a big-endian file" : "");
    if (counts[0] > MAX_TENSORS || counts[1] > MAX_KEYS)
        return err_set(c->e, ERR_MODEL,
                       "%s: claims %llu tensors and %llu keys; at most %d and %d are supported", f->name,
                       (unsigned long long)counts[0], (unsigned long long)counts[1], MAX_TENSORS, MAX_KEYS);
    return 0;
}

static int read_all(struct gguf_file *f, struct err *e)
{
    struct cursor c = {f, f->data, f->data + f->len, e};
    uint64_t counts[2] = {0}; /* tensors, keys */
    if (read_head(f, &c, counts) || read_keys(f, &c, (int)counts[1]))
        return -1;
    double align = gguf_number_of(f, "general.alignment", ALIGN);
    if (!(align >= 1 && align <= MAX_ALIGN) || ((unsigned)align & ((unsigned)align - 1)))
        return err_set(e, ERR_MODEL, "%s: 'general.alignment' is %g, not a power of two up to %d", f->name,
                       align, MAX_ALIGN);
    if (read_tensors(f, &c, (int)counts[0]))
        return -1;
    size_t step = (size_t)align, base = ((size_t)(c.at - f->data) + step - 1) / step * step;
    if (check_names(f, e) || (f->n_tensors && check_ranges(f, base, step, e)))
        return -1;
    return 0;
}

struct gguf_file *gguf_parse(const char *name, const void *data, size_t len, struct err *e)
{
    struct gguf_file *f = xcalloc(1, sizeof *f);
    const char *slash = strrchr(name, '/');
    f->name = xstrdup(slash ? slash + 1 : name);
    f->data = data;
    f->len = len;
    if (read_all(f, e)) {
        gguf_close(f);
        return NULL;
    }
    return f;
}

struct gguf_file *gguf_open(const char *path, struct err *e)
{
    struct file_map map;
    if (file_map(&map, path, e))
        return NULL;
    struct gguf_file *f = gguf_parse(path, map.data, map.len, e);
    if (f)
        f->map = map;
    else
        file_unmap(&map);
    return f;
}

void gguf_close(struct gguf_file *f)
{
    if (!f)
        return;
    for (int i = 0; i < f->n_tensors; i++)
        free(f->tensors[i].name);
    free(f->tensors);
    free(f->keys);
    free(f->name);
    file_unmap(&f->map);
    free(f);
}

/* ---- access ------------------------------------------------------------------------------------------- */

const char *gguf_name(const struct gguf_file *f)
{
    return f->name;
}

const uint8_t *gguf_whole(const struct gguf_file *f, size_t *len)
{
    *len = f->len;
    return f->data;
}

int gguf_count(const struct gguf_file *f)
{
    return f->n_tensors;
}

const struct gguf_entry *gguf_at(const struct gguf_file *f, int i)
{
    return &f->tensors[i];
}

const struct gguf_entry *gguf_find(const struct gguf_file *f, const char *name)
{
    for (int i = 0; i < f->n_tensors; i++)
        if (!strcmp(f->tensors[i].name, name))
            return &f->tensors[i];
    return NULL;
}

bool gguf_value(const struct gguf_file *f, const char *key, struct gguf_value *out)
{
    size_t len = strlen(key);
    for (int i = 0; i < f->n_keys; i++)
        if (f->keys[i].len == len && !memcmp(f->keys[i].name, key, len)) {
            *out = f->keys[i].value;
            return true;
        }
    return false;
}

bool gguf_next_number(struct gguf_value *v, double *out)
{
    uint64_t bits = 0;
    size_t n = kind_bytes(v->kind);
    if (!n || v->at == v->end)
        return false;
    memcpy(&bits, v->at, n);
    v->at += n;
    float single;
    int spare = 64 - 8 * (int)n;
    memcpy(&single, &bits, sizeof single);
    if (v->kind == GGUF_FLOAT)
        *out = (double)single;
    else if (v->kind == GGUF_DOUBLE)
        memcpy(out, &bits, sizeof *out);
    else if (v->kind == GGUF_I8 || v->kind == GGUF_I16 || v->kind == GGUF_I32 || v->kind == GGUF_I64)
        *out = (double)((int64_t)(bits << spare) >> spare);
    else
        *out = (double)bits;
    return true;
}

bool gguf_next_text(struct gguf_value *v, const char **text, size_t *len)
{
    uint64_t n;
    if (v->kind != GGUF_TEXT || v->at == v->end)
        return false;
    memcpy(&n, v->at, sizeof n);
    *text = (const char *)v->at + sizeof n;
    *len = (size_t)n;
    v->at += sizeof n + n;
    return true;
}

double gguf_number_of(const struct gguf_file *f, const char *key, double absent)
{
    struct gguf_value v;
    double x = absent;
    if (gguf_value(f, key, &v) && !v.list)
        gguf_next_number(&v, &x);
    return x;
}

char *gguf_text_of(const struct gguf_file *f, const char *key)
{
    struct gguf_value v;
    const char *text;
    size_t len;
    if (!gguf_value(f, key, &v) || v.list || !gguf_next_text(&v, &text, &len) || len > INT32_MAX)
        return NULL;
    return xasprintf("%.*s", (int)len, text);
}
