/* t_qwen_session.c - tests sessions of the Qwen3.5 family on a tiny random model: rewinding, copying, saving
 * and batching of states and rotary positions; and the tensors of a model directory.
 *
 * The image rows are random instead of coming from a vision encoder.
 */
#include "check.h"
#include "tiny_qwen.h"

#include "base/file.h"
#include "session/generate.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = TINY_QWEN_HIDDEN, IMAGE = 272, COLS = 2, ROWS = 5 };

static struct tiny tiny;
static struct engine *engine;

static int setup(void **state)
{
    tiny_qwen(&tiny, check_seed());
    tiny_write(&tiny);
    engine = tiny_open(&tiny, NULL, 1, false);
    return 0;
}

static int teardown(void **state)
{
    engine_close(engine);
    tiny_free(&tiny);
    return 0;
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

static void append(struct session *s, int first, int n)
{
    for (int i = 0; i < n; i++) {
        int32_t id = 16 + (first * 7 + i * 3) % 256;
        assert_int_equal(session_append(s, &id, 1, NULL), 0);
    }
}

/* Appends an image of ROWS x COLS rows; it advances the position by ROWS. */
static void look(struct session *s, uint64_t seed)
{
    struct tensor rows = {NULL, engine->act, ROWS * COLS, HIDDEN, HIDDEN};
    float values[ROWS * COLS * HIDDEN];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(seed >> 40) / 16777216.0f - 0.5f;
    }
    assert_int_equal(state_pool_alloc(&engine->state_pool, &rows, NULL), 0);
    tensor_convert(rows, (struct tensor){values, DT_F32, ROWS * COLS, HIDDEN, HIDDEN});
    s->images = realloc(s->images, (size_t)(s->n_images + 1) * sizeof *s->images);
    s->images[s->n_images++] = (struct image_rows){s->n, rows, COLS};
    for (int i = 0; i < ROWS * COLS; i++)
        session_push(s, IMAGE);
}

static void same(struct session *a, struct session *b)
{
    assert_int_equal(session_length(a), session_length(b));
    assert_memory_equal(session_logits(a), session_logits(b), (size_t)engine_vocab(engine) * sizeof(float));
    assert_int_equal(a->state.position, b->state.position);
}

static void t_rewind(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(engine, 1), *straight = session_new(engine, 1);
    struct session *both[] = {s, straight};
    for (int i = 0; i < 2; i++) {
        append(both[i], 1, 30);
        look(both[i], 5);
        append(both[i], 2, 7);
        session_logits(both[i]);
    }
    assert_int_equal(s->state.position, 30 + ROWS + 7);
    struct checkpoint *c = session_checkpoint(s);
    for (int round = 0; round < 3; round++) {
        append(s, 50 + round, 9);
        look(s, 77);
        append(s, 3, 1 + 80 * round);
        session_logits(s);
        assert_int_equal(session_rewind(s, c, &e), 0);
        assert_int_equal(s->state.position, 42);
    }
    for (int i = 0; i < 2; i++) {
        append(both[i], 9, 3);
        look(both[i], 6);
        append(both[i], 4, 20);
    }
    same(s, straight);
    append(s, 5, 1);
    append(straight, 5, 1);
    same(s, straight);
    checkpoint_free(c);
    session_free(s);
    session_free(straight);
}

static void t_copies(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(engine, 1);
    append(s, 1, 12);
    look(s, 5);
    append(s, 2, 5);
    struct checkpoint *c = session_checkpoint(s);
    struct session *fork = session_fork(s);
    append(s, 30, 40);
    session_logits(s);
    struct session *branch = session_try_branch(s, c, &e);
    assert_non_null(branch);
    append(fork, 9, 6);
    append(branch, 9, 6);
    same(fork, branch);
    assert_int_equal(session_rewind(s, c, &e), 0);
    append(s, 9, 6);
    same(fork, s);
    checkpoint_free(c);
    session_free(fork);
    session_free(branch);
    session_free(s);
}

static void t_save(void **state)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/session", tiny.dir), *data;
    size_t len;
    struct session *s = session_new(engine, 11);
    append(s, 1, 90);
    look(s, 5);
    append(s, 2, 5);
    assert_int_equal(session_save(s, path, &e), 0);
    struct session *back = session_load(engine, path, &e);
    if (!back)
        fail_msg("%s", e.text);
    for (int i = 0; i < 2; i++) {
        append(i ? back : s, 9, 6);
        look(i ? back : s, 8);
        append(i ? back : s, 4, 2);
    }
    same(s, back);
    session_free(back);
    session_free(s);
    assert_int_equal(file_read(path, 1 << 24, &data, &len, NULL), 0);
    for (size_t at = 0; at < 64; at += 3) {
        data[at] ^= 16;
        assert_int_equal(file_write(path, data, len, NULL), 0);
        assert_null(session_load(engine, path, &e));
        data[at] ^= 16;
    }
    free(data);
    free(path);
}

/* Sessions at different positions decode in a batch with the bits of decoding alone. */
static void t_batch(void **state)
{
    enum { N = 5 };
    struct session *together[N], *alone[N];
    for (int i = 0; i < 2 * N; i++) {
        struct session *s = session_new(engine, 1);
        (i < N ? together : alone)[i % N] = s;
        append(s, i % N, 3 + 4 * (i % N));
        for (int k = 0; k < i % N; k++)
            look(s, (uint64_t)k);
        append(s, 9, 2);
        session_logits(s);
    }
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < N; i++) {
            append(together[i], step + i, 1);
            append(alone[i], step + i, 1);
        }
        session_decode_batch(together, N);
        for (int i = 0; i < N; i++)
            same(together[i], alone[i]);
    }
    for (int i = 0; i < N; i++) {
        session_free(together[i]);
        session_free(alone[i]);
    }
}

/* ---- directories --------------------------------------------------------------------------------------- */

static void refused(const struct engine_options *o, const char *says)
{
    struct err e = ERR_INIT;
    struct engine *g = engine_open(o, &e);
    if (g || !strstr(e.text, says))
        fail_msg("'%s' does not contain '%s'", g ? "" : e.text, says);
}

static void t_directories(void **state)
{
    struct err e = ERR_INIT;
    static const char *const needed[] = {"embed_tokens.weight",
                                         "layers.0.linear_attn.conv1d.weight",
                                         "layers.1.linear_attn.A_log",
                                         "layers.3.self_attn.q_norm.weight",
                                         "layers.2.mlp.experts.4.up_proj.weight",
                                         "layers.1.mlp.gate.weight"};
    tiny_qwen(&tiny, 1);
    tiny_write(&tiny);
    refused(&(struct engine_options){.dir = tiny.dir, .state = STATE_FP16}, "fp32");
    tiny_free(&tiny);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        char name[128];
        tiny_qwen(&tiny, 1);
        snprintf(name, sizeof name, "model.language_model.%s", needed[i]);
        tiny_drop(&tiny, name);
        tiny_write(&tiny);
        refused(&(struct engine_options){.dir = tiny.dir}, needed[i]);
        tiny_free(&tiny);
    }
    float logits[2];
    for (int second = 0; second < 2; second++) { /* an output head is ignored if the embedding is tied */
        tiny_qwen(&tiny, 1);
        if (second)
            tiny_add(&tiny, "lm_head.weight", 0, 1, TINY_SHAPE(288, HIDDEN));
        tiny_write(&tiny);
        struct engine *g =
            engine_open(&(struct engine_options){.dir = tiny.dir, .isa = "ref", .threads = 1}, &e);
        if (!g)
            fail_msg("%s", e.text);
        struct session *s = session_new(g, 1);
        append(s, 1, 3);
        logits[second] = session_logits(s)[7];
        session_free(s);
        engine_close(g);
        tiny_free(&tiny);
    }
    assert_true(logits[0] == logits[1]);
    tiny_qwen(&tiny, 1);
    tiny_add(&tiny, "model.language_model.layers.0.self_attn.q_proj.weight", 0, 1, TINY_SHAPE(4));
    tiny_write(&tiny);
    refused(&(struct engine_options){.dir = tiny.dir}, "is not part of this model");
    tiny_free(&tiny);
}

/* Weights quantized on loading, and weights mapped from the file. */
static void t_storage(void **state)
{
    struct err e = ERR_INIT;
    float exact[288];
    static const struct {
        enum weight_storage weights;
        enum weights_in in;
        double most;
    } ways[] = {{WEIGHTS_AUTO, WEIGHTS_IN_RAM, 0},
                {WEIGHTS_AUTO, WEIGHTS_IN_MMAP, 0},
                {WEIGHTS_INT8, WEIGHTS_IN_RAM, 0.8},
                {WEIGHTS_FP8, WEIGHTS_IN_RAM, 1.1},
                {WEIGHTS_INT4, WEIGHTS_IN_RAM, 1.2}};
    tiny_qwen(&tiny, 2);
    tiny_write(&tiny);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct engine *g = engine_open(&(struct engine_options){.dir = tiny.dir,
                                                                .weights = ways[i].weights,
                                                                .weights_in = ways[i].in,
                                                                .device = "cpu",
                                                                .threads = 1},
                                       &e);
        if (!g)
            fail_msg("%s", e.text);
        struct session *s = session_new(g, 1);
        append(s, 1, 5);
        const float *logits = session_logits(s);
        if (i == 0)
            memcpy(exact, logits, sizeof exact);
        double off = tiny_distance(exact, logits, 288);
        check_note("case %zu: %.2f bytes per weight, logits off by %.2g", i, engine_bytes_per_weight(g), off);
        assert_true(off <= ways[i].most);
        session_free(s);
        engine_close(g);
    }
    tiny_free(&tiny);
}

/* The model has more rows than the tokenizer has tokens, and the token ids have gaps. */
static void t_known(void **state)
{
    static const char last[] = "\"</img>\"}";
    struct err e = ERR_INIT;
    char *json;
    size_t n, len;
    tiny_qwen(&tiny, check_seed());
    tiny_write(&tiny);
    char *path = xasprintf("%s/tokenizer.json", tiny.dir);
    assert_int_equal(file_read(path, 1 << 20, &json, &n, &e), 0);
    char *at = strstr(json, last) + sizeof last - 1,
         *more = xasprintf("%.*s,{\"id\":280,\"content\":\"<more>\"}%s", (int)(at - json), json, at);
    assert_int_equal(file_write(path, more, strlen(more), &e), 0);
    struct engine *g = tiny_open(&tiny, NULL, 1, false);
    const struct tokenizer *t = engine_tokenizer(g);
    uint64_t *known = generate_known(g);
    for (int id = 0; id < tokenizer_size(t); id++) {
        tokenizer_bytes(t, id, &len);
        assert_int_equal(len == 0, id > 274 && id < 280);
        assert_int_equal(known[id / 64] >> (id % 64) & 1, len && (id != IMAGE || !engine_config(g)->vision));
    }
    assert_int_equal(tokenizer_size(t), 281);
    free(known);
    engine_close(g);
    free(more);
    free(json);
    free(path);
    tiny_free(&tiny);
}

#define WITH(text, fn) CLAIM_WITH(text, fn, setup, teardown)

static const struct CMUnitTest tests[] = {
    WITH("a rewind restores the rotary position: the next logits have the same bits", t_rewind),
    WITH("forks and branches after images continue where the session was", t_copies),
    WITH("a saved session continues with the same bits; a damaged file is refused", t_save),
    WITH("sessions at different positions decode in a batch with the bits of decoding alone", t_batch),
    CLAIM("ids without a token are never drawn", t_known),
    CLAIM("missing and unknown tensors are refused by name; a second head is ignored", t_directories),
    CLAIM("mapped weights and weights in RAM give the same bits; quantized ones stay near", t_storage),
};

CHECK_MAIN()
