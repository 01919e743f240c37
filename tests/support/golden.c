/* golden.c - see golden.h. */
#include "golden.h"
#include "place.h"

#include "base/buf.h"
#include "ops/ops.h"

#include "check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GAMMA 0x9e3779b97f4a7c15ull

/* ---- fixture ---------------------------------------------------------------------------------------- */

void golden_open(struct golden *g, const char *name)
{
    struct err e = ERR_INIT;
    char path[128];
    *g = (struct golden){0};
    snprintf(g->dir, sizeof g->dir, "tests/golden/%s", name);
    snprintf(path, sizeof path, "%s/reference.json", g->dir);
    g->root = json_load_file(path, 0, NULL);
    snprintf(path, sizeof path, "%s/reference.bin", g->dir);
    if (!g->root || file_map(&g->data, path, &e))
        fail_msg("%s is missing or unreadable", g->dir);
    g->seed = (uint64_t)golden_number(g, "seed");
}

void golden_close(struct golden *g)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    char path[128];
    for (int i = 0; g->checkpoint[0] && i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", g->checkpoint, files[i]);
        unlink(path);
    }
    if (g->checkpoint[0])
        rmdir(g->checkpoint);
    file_unmap(&g->data);
    json_decref(g->root);
}

int64_t golden_number(const struct golden *g, const char *key)
{
    return json_integer_value(json_object_get(g->root, key));
}

struct golden_array golden_find(const struct golden *g, const char *name)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(g->root, "arrays"), i, v)
    {
        if (strcmp(json_string_value(json_object_get(v, "name")), name) != 0)
            continue;
        const json_t *shape = json_object_get(v, "shape");
        struct golden_array a = {.rows = json_integer_value(json_array_get(shape, 0)), .cols = 1};
        for (size_t k = 1; k < json_array_size(shape); k++)
            a.cols *= json_integer_value(json_array_get(shape, k));
        a.data = g->data.data + json_integer_value(json_object_get(v, "offset"));
        a.which = json_object_get(v, "rows");
        return a;
    }
    return (struct golden_array){0};
}

/* ---- numbers ------------------------------------------------------------------------------------------ */

static uint64_t key_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
    return h;
}

static uint64_t mixed(uint64_t key, int64_t i)
{
    uint64_t z = key + ((uint64_t)i + 1) * GAMMA;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

void golden_draw(uint64_t seed, const char *name, int64_t first, int64_t n, int64_t offset, float unit,
                 uint16_t *out)
{
    uint64_t key = key_of(name) ^ (seed * GAMMA);
    for (int64_t i = 0; i < n; i++) {
        uint64_t z = mixed(key, first + i);
        int64_t s = (int64_t)((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
        out[i] = bf16_from_f32((float)(s - 131070 + offset) * unit);
    }
}

uint64_t golden_mixed(uint64_t seed, const char *name, int64_t i)
{
    return mixed(key_of(name) ^ (seed * GAMMA), i);
}

float golden_sign(uint64_t column, int64_t c)
{
    return golden_mixed(column, "signs", c) >> 63 ? -1.0f : 1.0f;
}

void golden_picture(struct image *im, int w, int h, int kind)
{
    assert_int_equal(image_alloc(im, w, h, NULL), 0);
    for (size_t n = 0; n < 3 * (size_t)w * (size_t)h; n++) {
        size_t i = kind == 2 ? n / (3 * (size_t)w) / 5 * (size_t)w + n / 3 % (size_t)w / 7 : n;
        uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        uint8_t v = (uint8_t)((z ^ z >> 31) >> 56);
        im->rgb[n] = kind == 1 ? (uint8_t)(v % 2 * 255) : v;
    }
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

static int64_t count_of(const json_t *tensor)
{
    size_t i;
    json_t *dim;
    int64_t n = 1;
    json_array_foreach(json_object_get(tensor, "shape"), i, dim) n *= json_integer_value(dim);
    return n;
}

static void write_header(FILE *f, const json_t *table)
{
    json_t *header = json_object(), *v;
    size_t i;
    int64_t at = 0;
    json_array_foreach(table, i, v)
    {
        int64_t end = at + 2 * count_of(v);
        json_object_set_new(header, json_string_value(json_object_get(v, "name")),
                            json_pack("{s:s, s:O, s:[I, I]}", "dtype", "BF16", "shape",
                                      json_object_get(v, "shape"), "data_offsets", (json_int_t)at,
                                      (json_int_t)end));
        at = end;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    uint64_t len = strlen(text);
    fwrite(&len, sizeof len, 1, f);
    fputs(text, f);
    free(text);
    json_decref(header);
}

static void write_tensor(FILE *f, uint64_t seed, const json_t *tensor)
{
    enum { STEP = 1 << 20 };
    static uint16_t piece[STEP];
    int64_t n = count_of(tensor), offset = json_integer_value(json_object_get(tensor, "offset"));
    float unit = (float)json_number_value(json_object_get(tensor, "unit"));
    for (int64_t first = 0; first < n; first += STEP) {
        int64_t now = n - first < STEP ? n - first : STEP;
        golden_draw(seed, json_string_value(json_object_get(tensor, "name")), first, now, offset, unit,
                    piece);
        fwrite(piece, sizeof *piece, (size_t)now, f);
    }
}

void golden_checkpoint(struct golden *g)
{
    struct err e = ERR_INIT;
    char path[128], *config;
    size_t len, i;
    json_t *table = json_object_get(g->root, "weights"), *v;
    assert_non_null(mkdtemp(place_template(g->checkpoint)));

    snprintf(path, sizeof path, "%s/config.json", g->dir);
    assert_int_equal(file_read(path, 1 << 20, &config, &len, &e), 0);
    snprintf(path, sizeof path, "%s/config.json", g->checkpoint);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite(config, 1, len, f);
    fclose(f);
    free(config);

    snprintf(path, sizeof path, "%s/model.safetensors", g->checkpoint);
    f = fopen(path, "w");
    assert_non_null(f);
    write_header(f, table);
    json_array_foreach(table, i, v) write_tensor(f, g->seed, v);
    if (fclose(f))
        fail_msg("%s: no room for the weights", path);
}

double golden_apart(const float *have, const float *want, int64_t n)
{
    double most = 0, off = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)want[i]));
        off = check_worse(off, fabs((double)have[i] - (double)want[i]));
    }
    return off / most;
}

int32_t golden_best(const float *values, int n)
{
    int32_t most = 0;
    for (int i = 1; i < n; i++)
        most = values[i] > values[most] ? i : most;
    return most;
}
