/* t_full.c - tests of a checkpoint of the published size, stored as a sparse file, and of weights that are
 * read from their files. */
#include "check.h"
#include "full_start.h"
#include "place.h"
#include "tiny_model.h"

#include "base/file.h"
#include "capacity/memory.h"
#include "session/session_impl.h"

#include <unistd.h>

#define LAYER "language_model.backbone.layers."

static const size_t machine = 20u << 30; /* simulated memory of the machine */

/* ---- opening --------------------------------------------------------------------------------- */

static void t_start(void **state)
{
    struct full_model m;
    full_init(&m);
    assert_int_equal(m.n, FULL_TENSORS);
    full_write(&m);
    struct engine_options o = {.dir = m.dir, .memory = machine};
    struct plan p = full_starts(m.dir, &o, false);
    assert_int_equal(p.weights.tensors, FULL_TENSORS);
    assert_true(p.weights.mapped > (size_t)26e9);
    full_free(&m);
}

/* ---- mapped weights -------------------------------------------------------------------------- */

/* Returns the logits after a text, an image and one more token. */
static float *look(const struct tiny *t, const char *isa, bool f32, enum weights_in hold, size_t memory)
{
    struct err e = ERR_INIT;
    struct engine_options o = {
        .dir = t->dir, .isa = isa, .threads = 2, .f32 = f32, .weights_in = hold, .memory = memory};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    assert_true((g->files != NULL) == (hold == WEIGHTS_IN_MMAP));
    struct session *s = session_new(g, 1);
    struct image im = tiny_image(130, 70, 3);
    const int32_t ids[] = {30, 60, 90, 41, 52};
    size_t bytes = (size_t)engine_vocab(g) * sizeof(float);
    float *all = malloc(2 * bytes);
    assert_int_equal(session_append(s, ids, 5, &e), 0);
    assert_int_equal(session_append_image(s, &im, &e), 0);
    memcpy(all, session_logits(s), bytes);
    assert_int_equal(session_append(s, ids, 1, &e), 0);
    memcpy(all + engine_vocab(g), session_logits(s), bytes);
    image_free(&im);
    session_free(s);
    engine_close(g);
    return all;
}

static void t_mapped(void **state)
{
    const char *isa[8];
    int n = backend_cpu_list(isa, 8);
    for (int f32 = 0; f32 < 2; f32++) {
        struct tiny t;
        tiny_init(&t, 5);
        tiny_write(&t);
        for (int i = 0; i < n; i++) {
            float *packed = look(&t, isa[i], f32, WEIGHTS_IN_RAM, 0),
                  *mapped = look(&t, isa[i], f32, WEIGHTS_IN_MMAP, machine),
                  *streamed = look(&t, isa[i], f32, WEIGHTS_IN_MMAP, 1);
            assert_memory_equal(packed, mapped, 2 * 288 * sizeof(float));
            assert_memory_equal(packed, streamed, 2 * 288 * sizeof(float));
            free(packed);
            free(mapped);
            free(streamed);
        }
        tiny_free(&t);
    }
}

/* A matrix that does not fit is dropped from memory after its product. */
static void t_given_back(void **state)
{
    enum { N = 4096, K = 2048 };
    struct file_map map;
    char path[PLACE_PATH];
    int fd = mkstemp(place_template(path));
    assert_true(fd >= 0 && ftruncate(fd, (off_t)N * K * 2) == 0);
    close(fd);
    assert_int_equal(file_map(&map, path, NULL), 0);
    struct backend *b = backend_cpu(NULL, NULL, NULL);
    struct tensor x = b->ops->alloc(b, DT_BF16, 1, K), y = b->ops->alloc(b, DT_BF16, 1, N), none = {0};
    struct tensor host = {(void *)(uintptr_t)map.data, DT_BF16, N, K, K};
    size_t before = memory_use().file; /* pages of the program itself */
    for (int once = 0; once < 2; once++) {
        struct weight *w = b->ops->borrow(b, host, once);
        b->ops->linear(b, y, x, w, none, EPI_NONE, SET);
        struct memory_use use = memory_use();
        b->ops->weight_free(b, w);
        check_note("%s: %.1f MB of files in memory", once ? "read once" : "kept", (double)use.file * 1e-6);
        bool gone = use.file < before + (size_t)N * K; /* half of the matrix */
        assert_true(CHECK_SANITIZED || gone == once);
    }
    b->ops->free(b, &x);
    b->ops->free(b, &y);
    backend_free(b);
    file_unmap(&map);
    unlink(path);
}

static void t_choice(void **state)
{
    struct full_model m;
    full_init(&m);
    full_write(&m);
    struct engine_options o = {.dir = m.dir, .memory = (size_t)64 << 30};
    struct plan p = full_planned(m.dir, &o);
    assert_true(p.weights.mapped == 0 && p.weights.own > (size_t)25e9); /* with 64 GB: packed */
    o.memory = (size_t)24 << 30;
    p = full_planned(m.dir, &o);
    assert_true(p.weights.own < (size_t)50e6 && p.weights.mapped > (size_t)24e9);
    assert_true(p.resident > (size_t)17e9 && p.resident < (size_t)19e9);
    assert_int_equal(p.resident + p.streamed + p.parts[PLAN_EMBEDDINGS].mapped, p.weights.mapped);
    o.memory = 1;
    p = full_planned(m.dir, &o);
    assert_int_equal(p.resident, 0);
    full_free(&m);
}

/* ---- spellings ------------------------------------------------------------------------------- */

static void t_spellings(void **state)
{
    static const char *const bodies[] = {"language_model.backbone.", "language_model.model.", "backbone.",
                                         "model."};
    static const char *const heads[] = {"language_model.lm_head", "language_model.lm_head", "lm_head",
                                        "lm_head"};
    float *first = NULL;
    for (int k = 0; k < 4; k++) {
        struct tiny t;
        tiny_init(&t, 7);
        for (int i = 0; i < t.n; i++) {
            char old[sizeof t.tensors[i].name];
            strcpy(old, t.tensors[i].name);
            if (!strncmp(old, bodies[0], strlen(bodies[0])))
                snprintf(t.tensors[i].name, sizeof old, "%s%s", bodies[k], old + strlen(bodies[0]));
            else if (!strncmp(old, heads[0], strlen(heads[0])))
                snprintf(t.tensors[i].name, sizeof old, "%s%s", heads[k], old + strlen(heads[0]));
        }
        tiny_write(&t);
        float *logits = look(&t, NULL, false, WEIGHTS_IN_RAM, 0);
        if (first)
            assert_memory_equal(first, logits, 2 * 288 * sizeof(float));
        if (k)
            free(logits);
        else
            first = logits;
        tiny_free(&t);
    }
    free(first);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Opens the model, expects an error with both texts, and repairs the model for the next case. */
static void refused(struct full_model *m, const char *naming, const char *also)
{
    full_damaged(m, (struct engine_options){.memory = machine}, naming, also);
    char dir[sizeof m->dir];
    strcpy(dir, m->dir);
    full_init(m);
    strcpy(m->dir, dir);
}

static void spoil_contents(struct full_model *m)
{
    full_drop(m, LAYER "33.mixer.out_proj.weight");
    refused(m, LAYER "33.mixer.out_proj.weight", "is missing");
    full_find(m, LAYER "16.mixer.k_proj.weight")->shape[0] = 5120;
    refused(m, LAYER "16.mixer.k_proj.weight", "[5120, 5120]; the config requires [1024, 5120]");
    full_find(m, "vision_model.radio_model.model.blocks.31.mlp.fc2.weight")->shape[1] = 5121;
    refused(m, "blocks.31.mlp.fc2.weight", "[1280, 5121]; the config requires [1280, 5120]");
    full_find(m, "language_model.lm_head.weight")->shape[0] = 131072;
    refused(m, "language_model.lm_head.weight", "[131072, 5120]; the config requires [132096, 5120]");
    full_find(m, LAYER "59.mixer.up_proj.weight")->dtype = "I8";
    refused(m, LAYER "59.mixer.up_proj.weight", "i8; expected bf16");
    full_find(m, LAYER "0.mixer.D")->dtype = "F64";
    refused(m, LAYER "0.mixer.D", "'F64'");
    full_add(m, LAYER "61.mixer.gate_proj.weight", 4, 2, (const int64_t[]){20480, 5120});
    refused(m, LAYER "61.mixer.gate_proj.weight", "is not part of this model");
}

static void spoil_files(struct full_model *m)
{
    full_add(m, LAYER "40.norm.weight", 0, 1, (const int64_t[]){5120})->index_shard = -1;
    refused(m, LAYER "40.norm.weight", "is both in model-0000");
    full_find(m, LAYER "2.mixer.in_proj.weight")->begin_off = -4096;
    full_find(m, LAYER "2.mixer.in_proj.weight")->end_off = -4096;
    refused(m, LAYER "2.mixer.in_proj.weight", "overlap");
    full_find(m, "mlp1.3.weight")->begin_off = 1 << 20;
    full_find(m, "mlp1.3.weight")->end_off = 1 << 20;
    refused(m, "mlp1.3.weight", "lies outside");
    m->cut = 1;
    refused(m, "model-00006-of-00006.safetensors", "truncated");
    m->cut = 1600 << 20;
    refused(m, "model-00006-of-00006.safetensors", "truncated");
    m->without = 2;
    refused(m, "model-00003-of-00006.safetensors", "copy or download it");
    full_find(m, LAYER "20.mixer.conv1d.bias")->index_shard = 3;
    refused(m, LAYER "20.mixer.conv1d.bias", "is not in model-00004-of-00006.safetensors");
    full_find(m, LAYER "20.mixer.conv1d.bias")->only_in_index = true;
    refused(m, LAYER "20.mixer.conv1d.bias", "is not in model-00002-of-00006.safetensors");
    full_find(m, LAYER "20.mixer.conv1d.bias")->index_shard = -1;
    refused(m, LAYER "20.mixer.conv1d.bias", "is not in the index");
}

static void t_damage(void **state)
{
    struct full_model m;
    full_init(&m);
    full_write(&m);
    spoil_contents(&m);
    spoil_files(&m);
    full_free(&m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a model of the published size opens within the planned memory", t_start),
    CLAIM("mapped weights give the same logits as packed ones, bit for bit", t_mapped),
    CLAIM("a matrix that is read once does not stay in memory", t_given_back),
    CLAIM("weights are packed if memory allows, else as many are kept as fit", t_choice),
    CLAIM("four spellings of the names give the same model", t_spellings),
    CLAIM("damage to a checkpoint of the published size is refused by its name", t_damage),
};

CHECK_MAIN()
