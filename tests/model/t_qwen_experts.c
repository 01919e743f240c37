/* t_qwen_experts.c - tests of stacked experts of Qwen3-VL in both orientations: as published, [E, D, 2M]
 * and [E, M, D], which t_qwen compares with transformers, and as saved by transformers 5.24, [E, 2M, D] and
 * [E, D, M]. */
#include "check.h"
#include "golden.h"

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "model/language.h"
#include "model/weights.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB = 160, GATE_UP = 1, DOWN = 2 };

static const char *const names[] = {"experts.gate_up_proj", "experts.down_proj"};

/* Transposes the last two dimensions of a bf16 tensor. */
static void turn(json_t *entry, char *data)
{
    json_t *shape = json_object_get(entry, "shape"), *first = json_array_get(shape, 1);
    int64_t n = json_integer_value(json_array_get(shape, 0)), rows = json_integer_value(first),
            cols = json_integer_value(json_array_get(shape, 2)),
            at = json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
    uint16_t *old = malloc((size_t)(rows * cols) * sizeof *old);
    for (int64_t k = 0; k < n; k++) {
        char *one = data + at + k * rows * cols * (int64_t)sizeof *old;
        memcpy(old, one, (size_t)(rows * cols) * sizeof *old);
        for (int64_t i = 0; i < rows * cols; i++)
            memcpy(one + (i % cols * rows + i / cols) * (int64_t)sizeof *old, old + i, sizeof *old);
    }
    free(old);
    json_incref(first);
    json_array_remove(shape, 1);
    json_array_append_new(shape, first);
}

/* Transposes the tensors in the set `which` of every layer of a checkpoint, or makes only one flat. */
static void turn_file(const struct golden *g, int which, bool flat)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/model.safetensors", g->checkpoint), *bytes;
    const char *name;
    size_t len;
    uint64_t head;
    assert_int_equal(file_read(path, 64 << 20, &bytes, &len, &e), 0);
    memcpy(&head, bytes, sizeof head);
    json_t *header = json_loadb(bytes + 8, head, 0, NULL), *entry;
    json_object_foreach(header, name, entry) for (int k = 0; k < 2;
                                                  k++) if (which >> k & 1 && strstr(name, names[k]))
        turn(entry, bytes + 8 + head);
    json_t *down = json_object_get(header, "model.language_model.layers.0.mlp.experts.down_proj");
    if (flat)
        json_array_insert_new(json_object_get(down, "shape"), 0, json_integer(1));
    char *text = json_dumps(header, JSON_COMPACT);
    uint64_t now = strlen(text);
    FILE *f = fopen(path, "w");
    fwrite(&now, sizeof now, 1, f);
    fputs(text, f);
    fwrite(bytes + 8 + head, 1, len - 8 - head, f);
    assert_int_equal(fclose(f), 0);
    json_decref(header);
    free(text);
    free(bytes);
    free(path);
}

static int bind(const struct golden *g, struct err *e, float *logits)
{
    static const int32_t ids[6] = {3, 150, 7, 42, 99, 12};
    struct model_config c;
    struct model_weights w;
    struct language m;
    struct lm_state s;
    struct bind_options o = {.f32 = true};
    struct backend *b = backend_cpu("ref", NULL, e);
    struct safetensors *files = safetensors_open(g->checkpoint, e);
    if (!files || config_load(&c, g->checkpoint, e))
        fail_msg("%s", e->text);
    int rc = weights_bind(&w, &c, files, b, &o, e);
    if (rc == 0) {
        language_init(&m, &c.lm, &w, b, DT_F32);
        state_init(&s, &c.lm, b, (struct state_types){DT_F32, DT_F32, DT_F32});
        assert_int_equal(language_forward(&m, &s, ids, 6, NULL, 0), 0);
        language_logits(&m, &s, logits);
        state_free(&s, &c.lm, b);
        language_free(&m);
        weights_free(&w, &c, b);
    }
    safetensors_close(files);
    backend_free(b);
    return rc;
}

/* Opens the golden model, with experts of another width if `width` is not 0. */
static void open_model(struct golden *g, int64_t width)
{
    size_t i;
    json_t *entry;
    golden_open(g, "qwen/vl3moe");
    json_array_foreach(json_object_get(g->root, "weights"), i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        json_t *shape = json_object_get(entry, "shape");
        if (width && strstr(name, names[0]))
            json_array_set_new(shape, 2, json_integer(2 * width));
        if (width && strstr(name, names[1]))
            json_array_set_new(shape, 1, json_integer(width));
    }
    golden_checkpoint(g);
    if (!width)
        return;
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/config.json", g->checkpoint), *text;
    json_t *config = json_load_file(path, 0, NULL);
    json_object_set_new(json_object_get(config, "text_config"), "moe_intermediate_size", json_integer(width));
    text = json_dumps(config, 0);
    assert_int_equal(file_write(path, text, strlen(text), &e), 0);
    json_decref(config);
    free(text);
    free(path);
}

/* Widths M: none square, 2M = D, M = D. */
static void t_both(void **state)
{
    static const int64_t widths[] = {0, 32, 64, 16};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        float want[VOCAB], have[VOCAB];
        for (int which = 0; which < 4; which++) {
            struct golden g;
            struct err e = ERR_INIT;
            bool square = widths[i] == 32 || widths[i] == 64;
            if (square && (which == GATE_UP || which == DOWN)) /* no program writes these */
                continue;
            open_model(&g, widths[i]);
            turn_file(&g, which, false);
            if (bind(&g, &e, which ? have : want))
                fail_msg("%s", e.text);
            if (which)
                assert_memory_equal(have, want, sizeof have);
            golden_close(&g);
        }
    }
}

static void t_refused(void **state)
{
    struct golden g;
    struct err e = ERR_INIT;
    float logits[VOCAB];
    open_model(&g, 0);
    turn_file(&g, DOWN, true);
    assert_int_equal(bind(&g, &e, logits), -1);
    check_has(e.text, "mlp.experts.down_proj", "[1, 8, 64, 48]");
    golden_close(&g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("experts in both orientations give the same logits, square ones too", t_both),
    CLAIM("experts of another shape are refused with the shape", t_refused),
};

CHECK_MAIN()
