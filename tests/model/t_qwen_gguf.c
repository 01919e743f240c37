/* t_qwen_gguf.c - tests of GGUF files of the Qwen3.5 family, of Qwen2 and Qwen3: models whose golden data
 * transformers computed, with the names, orders and types of such files (gguf_model.h). */
#include "check.h"
#include "gguf_model.h"

#include "base/gguf.h"
#include "base/sha256.h"
#include "checkpoint/find.h"
#include "model/language.h"
#include "model/weights.h"
#include "session/chat.h"
#include "session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct gguf_form full = {GGML_F32, false}, half = {GGML_BF16, false};

/* A directory with the files of a model. */
struct folder {
    struct golden g;
    char dir[PLACE_PATH];
};

static void folder_open(struct folder *f, const char *name, struct gguf_form form)
{
    golden_open(&f->g, name);
    assert_non_null(mkdtemp(place_template(f->dir)));
    gguf_model(&f->g, form, f->dir);
}

static void folder_close(struct folder *f)
{
    static const char *const files[] = {"model.gguf", "mmproj.gguf"};
    for (int i = 0; i < 2; i++) {
        char *path = xasprintf("%s/%s", f->dir, files[i]);
        unlink(path);
        free(path);
    }
    rmdir(f->dir);
    golden_close(&f->g);
}

static char *place_of(const struct folder *f)
{
    struct err e = ERR_INIT;
    char *place = model_find(f->dir, &e);
    if (!place)
        fail_msg("%s", e.text);
    return place;
}

/* ---- the language model -------------------------------------------------------------------------------- */

struct run {
    struct model_config config;
    struct model_weights weights;
    struct safetensors *files;
    struct backend *b;
    struct language m;
    struct lm_state s;
};

static void run_open(struct run *r, const struct folder *f, const char *isa)
{
    struct err e = ERR_INIT;
    struct bind_options o = {.f32 = true};
    char *place = place_of(f);
    *r = (struct run){.b = backend_cpu(isa, NULL, &e)};
    if (config_load(&r->config, place, &e) || !(r->files = safetensors_open(place, &e)) ||
        weights_bind(&r->weights, &r->config, r->files, r->b, &o, &e))
        fail_msg("%s", e.text);
    language_init(&r->m, &r->config.lm, &r->weights, r->b, DT_F32);
    state_init(&r->s, &r->config.lm, r->b, (struct state_types){DT_F32, DT_F32, DT_F32});
    free(place);
}

static void run_close(struct run *r)
{
    state_free(&r->s, &r->config.lm, r->b);
    language_free(&r->m);
    weights_free(&r->weights, &r->config, r->b);
    safetensors_close(r->files);
    backend_free(r->b);
}

/* Computes the logits after a prompt of the golden data. */
static void read_prompt(struct run *r, const struct golden *g, const char *name, float *logits)
{
    char text[32];
    snprintf(text, sizeof text, "%s.ids", name);
    struct golden_array ids = golden_find(g, text);
    assert_non_null(ids.data);
    assert_int_equal(language_forward(&r->m, &r->s, ids.data, ids.rows, NULL, 0), 0);
    language_logits(&r->m, &r->s, logits);
}

static void check_prompt(const char *name, const char *isa, struct gguf_form form)
{
    struct folder f;
    struct run r;
    float logits[512];
    folder_open(&f, name, form);
    run_open(&r, &f, isa);
    struct golden_array want = golden_find(&f.g, "logits");
    read_prompt(&r, &f.g, "prompt", logits);
    double off = golden_apart(logits, (const float *)want.data + (want.rows - 1) * want.cols, want.cols);
    check_note("%-10s %-10s logits off by %.1e of the largest", isa, name, off);
    assert_true(off < 1e-4);
    run_close(&r);
    folder_close(&f);
}

static void t_prompt(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++) {
        check_prompt("qwen/dense", names[i], half);
        check_prompt("qwen/moe", names[i], i % 2 ? half : full);
        check_prompt("qwen/text2", names[i], i % 2 ? half : full);
        check_prompt("qwen/text2tied", names[i], i % 2 ? full : half);
        check_prompt("qwen/text3", names[i], half);
    }
}

static void t_greedy(void **state)
{
    static const char *const models[] = {"qwen/dense", "qwen/moe", "qwen/text2", "qwen/text2tied",
                                         "qwen/text3"};
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        struct folder f;
        struct run r;
        float logits[512];
        folder_open(&f, models[k], half);
        run_open(&r, &f, NULL);
        struct golden_array want = golden_find(&f.g, "greedy0");
        read_prompt(&r, &f.g, "greedy0", logits);
        for (int64_t i = 0; i < want.rows; i++) {
            int32_t id = golden_best(logits, r.weights.vocab);
            assert_int_equal(id, ((const int32_t *)want.data)[i]);
            language_forward(&r.m, &r.s, &id, 1, NULL, 0);
            language_logits(&r.m, &r.s, logits);
        }
        run_close(&r);
        folder_close(&f);
    }
}

/* Compares a file in block formats with the same model in the blocks' values. */
static void t_blocks(void **state)
{
    const char *names[8];
    int n = backend_cpu_list(names, 8);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            float logits[2][512];
            for (int numbers = 0; numbers < 2; numbers++) {
                struct folder f;
                struct run r;
                folder_open(&f, k ? "qwen/moe" : "qwen/dense", (struct gguf_form){GGML_Q8_0, numbers});
                run_open(&r, &f, names[i]);
                assert_true(numbers || r.weights.embed_codes.rows);
                read_prompt(&r, &f.g, "prompt", logits[numbers]);
                run_close(&r);
                folder_close(&f);
            }
            double off = golden_apart(logits[0], logits[1], 160);
            check_note("%-10s %s off by %.1e of the largest", names[i], k ? "moe  " : "dense", off);
            assert_true(off < 1e-4);
        }
}

/* ---- comparison with the gguf package ------------------------------------------------------------------ */

/* Compares one of our tensors with the file of the gguf package, which llama.cpp reads. */
static void check_tensor(const struct gguf_file *f, const json_t *want)
{
    const char *name = json_string_value(json_object_get(want, "name")),
               *type = json_string_value(json_object_get(want, "type")),
               *hash = json_string_value(json_object_get(want, "sha256"));
    const json_t *shape = json_object_get(want, "shape"), *values = json_object_get(want, "values");
    const struct gguf_entry *t = gguf_find(f, name);
    if (!t || strcmp(ggml_type_name(t->type), type) != 0 || (size_t)t->dims != json_array_size(shape))
        fail_msg("tensor '%s' is not there, or of another type or shape", name);
    for (int i = 0; i < t->dims; i++)
        assert_int_equal(t->shape[i], json_integer_value(json_array_get(shape, (size_t)i)));
    for (size_t i = 0; i < json_array_size(values); i++) {
        float x;
        memcpy(&x, t->data + i * sizeof x, sizeof x);
        double w = json_number_value(json_array_get(values, i));
        assert_true(fabs((double)x - w) < 1e-6 * fabs(w));
    }
    char hex[65];
    sha256((const char *)t->data, t->bytes, hex);
    if (!values && strcmp(hex, hash) != 0)
        fail_msg("tensor '%s' has other values", name);
}

static void t_as_package(void **state)
{
    static const char *const cases[] = {"dense", "moe", "whole", "text2", "text2tied", "text3"};
    json_t *root = json_load_file("tests/golden/gguf/reference.json", 0, NULL), *want;
    assert_non_null(root);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct folder f;
        struct err e = ERR_INIT;
        size_t i;
        char name[32];
        snprintf(name, sizeof name, "qwen/%s", cases[k]);
        folder_open(&f, name, half);
        char *place = place_of(&f);
        struct gguf_file *text = gguf_open_text(place, &e), *vision = gguf_open_vision(place, &e);
        const json_t *list = json_object_get(root, cases[k]);
        assert_true(text && (vision || k != 2));
        assert_int_equal(json_array_size(list), gguf_count(text) + (vision ? gguf_count(vision) : 0));
        json_array_foreach(list, i, want)
        {
            const char *of = json_string_value(json_object_get(want, "name"));
            check_tensor(!strncmp(of, "v.", 2) || !strncmp(of, "mm.", 3) ? vision : text, want);
        }
        gguf_close(text);
        gguf_close(vision);
        free(place);
        folder_close(&f);
    }
    json_decref(root);
}

/* ---- the whole model ----------------------------------------------------------------------------------- */

static void look_and_say(struct engine *engine, const struct golden *g)
{
    struct err e = ERR_INIT;
    struct image pictures[2];
    for (size_t i = 0; i < 2; i++) {
        const json_t *p = json_array_get(json_object_get(g->root, "pictures"), i);
        golden_picture(&pictures[i], (int)json_integer_value(json_array_get(p, 0)),
                       (int)json_integer_value(json_array_get(p, 1)),
                       (int)json_integer_value(json_array_get(p, 2)));
    }
    const struct chat_part user[] = {{.text = " Look: "},
                                     {.image = &pictures[0]},
                                     {.text = " and "},
                                     {.image = &pictures[1]},
                                     {.text = "\nWhich is cafe\u0301? <|im_end|>\n"}};
    struct session *s = session_new(engine, 1);
    if (chat_system(s, "Be brief.\n", false, &e) || chat_user(s, user, 5, CHAT_PLACE_TEMPLATE, &e) ||
        chat_open_reply(s, false, &e) || session_prefill(s, &e))
        fail_msg("%s", e.text);
    struct golden_array ids = golden_find(g, "first.ids"), logits = golden_find(g, "first.logits"),
                        said = golden_find(g, "first.said");
    assert_int_equal(session_length(s), ids.rows);
    assert_memory_equal(session_tokens(s), ids.data, (size_t)ids.rows * sizeof(int32_t));
    double off = golden_apart(session_logits(s), logits.data, logits.rows);
    check_note("logits off by %.1e of the largest", off);
    assert_true(off < 1e-4);
    for (int64_t k = 0; k < said.rows; k++) {
        int32_t id = golden_best(session_logits(s), 268);
        assert_int_equal(id, ((const int32_t *)said.data)[k]);
        if (id == 261)
            break;
        if (session_append(s, &id, 1, &e) || session_prefill(s, &e))
            fail_msg("%s", e.text);
    }
    session_free(s);
    image_free(&pictures[0]);
    image_free(&pictures[1]);
}

static void t_whole(void **state)
{
    struct err e = ERR_INIT;
    struct folder f;
    folder_open(&f, "qwen/whole", half);
    char *place = place_of(&f);
    check_has(place, "model.gguf,", "mmproj.gguf");
    /* images of this golden data are smaller than the published minimum */
    struct engine_options o = {
        .dir = place, .threads = 1, .f32 = true, .min_pixels = 4096, .max_pixels = 8192};
    struct engine *engine = engine_open(&o, &e);
    if (!engine)
        fail_msg("%s", e.text);
    look_and_say(engine, &f.g);
    engine_close(engine);
    free(place);
    folder_close(&f);
}

/* ---- damage -------------------------------------------------------------------------------------------- */

/* Checks that the file with each `from` replaced by `to` of the same length is refused with `naming`. */
static void refuses(const struct folder *f, const char *file, const char *from, const char *to, size_t n,
                    const char *naming)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/%s", f->dir, file), *old, *bytes;
    size_t len;
    assert_int_equal(file_read(path, 64 << 20, &old, &len, &e), 0);
    bytes = malloc(len);
    memcpy(bytes, old, len);
    char *at = memmem(bytes, len, from, n);
    assert_non_null(at);
    memcpy(at, to, n);
    assert_int_equal(file_write(path, bytes, len, &e), 0);
    char *place = place_of(f);
    struct engine *engine =
        engine_open(&(struct engine_options){.dir = place, .threads = 1, .f32 = true}, &e);
    if (engine || !strstr(e.text, naming))
        fail_msg("%s: '%s'", naming, engine ? "opened" : e.text);
    assert_int_equal(e.kind, ERR_MODEL);
    assert_int_equal(file_write(path, old, len, &e), 0);
    free(old);
    free(bytes);
    free(place);
    free(path);
}

static void t_damage(void **state)
{
    struct folder f;
    folder_open(&f, "qwen/whole", half);
    refuses(&f, "model.gguf", "qwen35", "qwen36", 6, "architecture 'qwen36'");
    refuses(&f, "model.gguf", "qwen35.ssm.group", "qwen35.ssm.graup", 16,
            "'qwen35.ssm.group_count' is missing");
    refuses(&f, "model.gguf", "token_embd.weight", "token_embd.waight", 17, "'token_embd.weight' is missing");
    refuses(&f, "model.gguf", "blk.1.ssm_a\1", "blk.1.ssm_x\1", 12, "'blk.1.ssm_a' is missing");
    refuses(&f, "model.gguf", "blk.3.attn_q.weight", "blk.3.attn_j.weight", 19,
            "'blk.3.attn_q.weight' is missing");
    refuses(&f, "model.gguf", "tokenizer.ggml.pre\10\0\0\0\6\0\0\0\0\0\0\0qwen35",
            "tokenizer.ggml.pre\10\0\0\0\6\0\0\0\0\0\0\0qwen99", 36, "splits of 'qwen99'");
    refuses(&f, "mmproj.gguf", "qwen3vl_merger", "qwen9vl_merger", 14, "projector 'qwen9vl_merger'");
    refuses(&f, "mmproj.gguf", "clip.vision.block_count", "clip.vision.black_count", 23,
            "'clip.vision.block_count' is missing");
    refuses(&f, "mmproj.gguf", "mm.2.weight", "mm.3.weight", 11, "'mm.2.weight' is missing");
    refuses(&f, "mmproj.gguf", "GGUF", "GGML", 4, "mmproj.gguf is not a GGUF file");
    folder_close(&f);
}

static const struct CMUnitTest tests[] = {
    CLAIM("logits of a prompt equal those of transformers, dense and with experts", t_prompt),
    CLAIM("greedy continuations of 256 tokens equal those of transformers", t_greedy),
    CLAIM("a file in blocks computes the same as its values", t_blocks),
    CLAIM("these files equal those of the gguf package, which llama.cpp reads", t_as_package),
    CLAIM("tokenizer, tower and images from two files give the result of transformers", t_whole),
    CLAIM("files that do not match are refused with the name that they use", t_damage),
};

CHECK_MAIN()
