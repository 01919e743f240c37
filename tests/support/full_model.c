/* full_model.c - see full_model.h. Shapes, config and tokenizer are those of bench --random (bench/random.h).
 */
#include "full_model.h"

#include "check.h"
#include "place.h"

#include "base/buf.h"
#include "base/file.h"
#include "bench/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VIT "vision_model.radio_model.model."

enum { HEADER_MAX = 16 << 20 };

/* ---- tensors ----------------------------------------------------------------------------------------- */

struct full_tensor *full_add(struct full_model *m, const char *name, int shard, int dims,
                             const int64_t *shape)
{
    m->tensors = xrealloc(m->tensors, (unsigned long)m->n + 1, sizeof *m->tensors);
    struct full_tensor *t = &m->tensors[m->n++];
    *t = (struct full_tensor){.dtype = "BF16", .dims = dims, .shard = shard, .index_shard = -2};
    snprintf(t->name, sizeof t->name, "%s", name);
    memcpy(t->shape, shape, (size_t)dims * sizeof *shape);
    return t;
}

/* Returns the file of a tensor: 13 layers per file, 0 for the embedding, 5 for vision, 4 for the rest. */
static int shard_of(const char *name)
{
    const char *layer = strstr(name, "layers.");
    if (layer && !strstr(name, "mtp."))
        return atoi(layer + strlen("layers.")) / 13;
    if (!strncmp(name, VIT, strlen(VIT)) || !strncmp(name, "mlp1.", 5) || strstr(name, "visual."))
        return 5;
    return strstr(name, "embed") ? 0 : 4;
}

static void add(void *arg, const char *name, int dims, const int64_t *shape)
{
    full_add(arg, name, shard_of(name), dims, shape);
}

void full_init_as(struct full_model *m, const char *name)
{
    struct err e = ERR_INIT;
    *m = (struct full_model){.without = -1, .as = random_find(name, &e)};
    if (!m->as)
        die(ERR_FAILED, "%s", e.text);
    random_tensors(m->as, add, m);
}

void full_init(struct full_model *m)
{
    full_init_as(m, "holotron-12b");
}

void full_free(struct full_model *m)
{
    if (m->dir[0] && place_remove(m->dir))
        warn("cannot remove '%s'", m->dir);
    free(m->tensors);
    *m = (struct full_model){0};
}

struct full_tensor *full_find(struct full_model *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (!strcmp(m->tensors[i].name, name))
            return &m->tensors[i];
    die(ERR_FAILED, "no tensor '%s'", name);
}

void full_drop(struct full_model *m, const char *name)
{
    struct full_tensor *t = full_find(m, name);
    memmove(t, t + 1, (size_t)(&m->tensors[--m->n] - t) * sizeof *t);
}

int64_t full_bytes(const struct full_tensor *t)
{
    bool four = !strcmp(t->dtype, "F32") || !strcmp(t->dtype, "I32"),
         two = !strcmp(t->dtype, "BF16") || !strcmp(t->dtype, "F16");
    int64_t bytes = four ? 4 : two ? 2 : 1;
    for (int i = 0; i < t->dims; i++)
        bytes *= t->shape[i];
    return bytes;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void put_file(const struct full_model *m, const char *name, const char *data, size_t len)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/%s", m->dir, name);
    if (file_write(path, data, len, &e))
        die(ERR_FAILED, "%s", e.text);
    free(path);
}

static void shard_name(int shard, char out[64])
{
    snprintf(out, 64, "model-%05d-of-%05d.safetensors", shard + 1, FULL_SHARDS);
}

/* Writes ones at an offset of a file. */
static void put_ones(int fd, const char *path, const struct full_tensor *t, int64_t at)
{
    static const uint16_t half = 0x3f80;
    static const float one = 1;
    size_t bytes = (size_t)full_bytes(t), each = !strcmp(t->dtype, "F32") ? sizeof one : sizeof half;
    char *data = xmalloc(bytes, 1);
    for (size_t i = 0; i < bytes; i += each)
        memcpy(data + i, each == sizeof one ? (const void *)&one : &half, each);
    if (pwrite(fd, data, bytes, at) != (ssize_t)bytes)
        die(ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    free(data);
}

/* Writes the header, padded to a multiple of 8 bytes. Returns the length of the data. */
static int64_t put_header(const struct full_model *m, int shard, struct buf *b)
{
    int64_t at = 0;
    buf_puts(b, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < m->n; i++) {
        const struct full_tensor *t = &m->tensors[i];
        if (t->shard != shard || t->only_in_index)
            continue;
        buf_printf(b, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, t->dtype);
        for (int k = 0; k < t->dims; k++)
            buf_printf(b, "%s%lld", k ? "," : "", (long long)t->shape[k]);
        int64_t end = at + full_bytes(t);
        buf_printf(b, "],\"data_offsets\":[%lld,%lld]}", (long long)(at + t->begin_off),
                   (long long)(end + t->end_off));
        at = end;
    }
    buf_putc(b, '}');
    while (b->len % 8)
        buf_putc(b, ' ');
    return at;
}

static void put_shard(const struct full_model *m, int shard)
{
    struct buf header;
    struct err e = ERR_INIT;
    char name[64];
    buf_init(&header, HEADER_MAX);
    int64_t data = put_header(m, shard, &header);
    uint64_t len = header.len;
    shard_name(shard, name);
    char *path = xasprintf("%s/%s", m->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die(ERR_ENV, "cannot write '%s': %s", path, strerror(errno));
    if (file_write_all(fd, path, &len, sizeof len, &e) ||
        file_write_all(fd, path, header.data, header.len, &e))
        die(ERR_ENV, "%s", e.text);
    int64_t at = (int64_t)sizeof len + (int64_t)header.len;
    for (int i = 0; i < m->n; i++) {
        const struct full_tensor *t = &m->tensors[i];
        if (t->shard != shard || t->only_in_index)
            continue;
        if (t->ones)
            put_ones(fd, path, t, at);
        at += full_bytes(t);
    }
    int64_t size = (int64_t)sizeof len + (int64_t)header.len + data - (shard == FULL_SHARDS - 1 ? m->cut : 0);
    if (ftruncate(fd, size) || close(fd))
        die(ERR_ENV, "cannot make '%s' %lld bytes long: %s", path, (long long)size, strerror(errno));
    free(path);
    buf_free(&header);
}

static void put_index(const struct full_model *m)
{
    struct buf b;
    int first = 1;
    buf_init(&b, HEADER_MAX);
    buf_puts(&b, "{\"metadata\":{},\"weight_map\":{");
    for (int i = 0; i < m->n; i++) {
        const struct full_tensor *t = &m->tensors[i];
        char file[64];
        int shard = t->index_shard == -2 ? t->shard : t->index_shard;
        if (shard < 0)
            continue;
        shard_name(shard, file);
        buf_printf(&b, "%s\"%s\":\"%s\"", first ? "" : ",", t->name, file);
        first = 0;
    }
    buf_puts(&b, "}}");
    put_file(m, "model.safetensors.index.json", b.data, b.len);
    buf_free(&b);
}

void full_write_shards(const struct full_model *m)
{
    for (int i = 0; i < FULL_SHARDS; i++) {
        char name[64];
        shard_name(i, name);
        char *path = xasprintf("%s/%s", m->dir, name);
        if (i == m->without)
            unlink(path);
        else
            put_shard(m, i);
        free(path);
    }
    put_index(m);
}

void full_write(struct full_model *m)
{
    struct buf b;
    if (!m->dir[0] && !mkdtemp(place_template(m->dir)))
        die(ERR_ENV, "cannot make folder '%s'", m->dir);
    const struct random_model *p = m->as;
    char *config = m->quantization
                       ? xasprintf("{\"quantization_config\":{%s},%s", m->quantization, p->config + 1)
                       : xstrdup(p->config);
    put_file(m, "config.json", config, strlen(config));
    free(config);
    put_file(m, "generation_config.json", p->generation, strlen(p->generation));
    if (p->preprocessor)
        put_file(m, "preprocessor_config.json", p->preprocessor, strlen(p->preprocessor));
    buf_init(&b, 32 << 20);
    random_put_tokenizer(p, &b);
    put_file(m, "tokenizer.json", b.data, b.len);
    buf_free(&b);
    full_write_shards(m);
}

void full_begin(struct full_model *m)
{
    place_make();
    full_init(m);
    full_write(m);
}

void full_damaged(struct full_model *m, struct engine_options o, const char *naming, const char *also)
{
    struct err e = ERR_INIT;
    char dir[sizeof m->dir];
    full_write_shards(m);
    o.dir = m->dir;
    struct engine *g = engine_open(&o, &e);
    if (g || !strstr(e.text, naming) || !strstr(e.text, also))
        fail_msg("expected %s ... %s; got '%s'", naming, also, g ? "an engine" : e.text);
    check_note("%s", e.text + (strstr(e.text, "': ") ? strstr(e.text, "': ") - e.text + 3 : 0));
    assert_int_equal(e.kind, ERR_MODEL);
    assert_null(strchr(e.text, '\n'));
    strcpy(dir, m->dir);
    m->dir[0] = 0;
    full_free(m);
    strcpy(m->dir, dir);
}
