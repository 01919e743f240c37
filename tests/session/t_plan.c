/* t_plan.c - tests memory plans against the shapes of the published model and the memory of a running one. */
#include "check.h"
#include "full_model.h"

#include "capacity/cost.h"
#include "capacity/memory.h"
#include "capacity/plan.h"
#include "capacity/roofline.h"
#include "ops/work.h"
#include "session/session_impl.h"

#include <malloc.h>

#define POCKET "assets/pocket/model"

static struct full_model full; /* written once */

/* ---- numbers --------------------------------------------------------------------------------- */

static struct plan plan_of(const char *dir, struct model_config *c, const struct engine_options *o)
{
    struct err e = ERR_INIT;
    struct plan p;
    struct safetensors *s = safetensors_open(dir, &e);
    if (!s || config_load(c, dir, &e) || plan_make(&p, c, s, o, &e))
        fail_msg("%s", e.text);
    safetensors_close(s);
    return p;
}

static void t_published_memory(void **state)
{
    struct model_config c;
    struct engine_options o = {.weights_in = WEIGHTS_IN_RAM};
    struct plan p = plan_of(full.dir, &c, &o);
    assert_int_equal(p.ssm, 28 * 128 * 80 * 128 * 4);
    check_about("SSM state in MiB", (double)p.ssm / (1 << 20), 140.0, 1e-9);
    assert_int_equal(p.conv, 28 * 12288 * 3 * 2);
    check_about("convolution state in MiB", (double)p.conv / (1 << 20), 1.97, 1e-3);
    assert_int_equal(p.kv_token, 24 * 1024 + PLAN_TOKEN_BYTES);
    assert_int_equal(p.weights.stored, 2 * 13181860352);
    assert_int_equal(p.parts[PLAN_MAMBA].stored, 2 * 4718131712);
    assert_int_equal(p.parts[PLAN_MLP].stored, 2 * 5872168960);
    assert_int_equal(p.parts[PLAN_ATTENTION].stored, 2 * 377518080);
    assert_int_equal(p.parts[PLAN_EMBEDDINGS].stored, 2 * 676331520);
    assert_int_equal(p.parts[PLAN_HEAD].stored, 2 * (676331520 + 5120));
    assert_int_equal(p.parts[PLAN_VISION].stored, 2 * 651653120);
    assert_int_equal(p.parts[PLAN_PROJECTOR].stored, 2 * 209720320);
    assert_int_equal(p.prefix, 16);
    assert_int_equal(p.vocab, FULL_VOCAB);
    assert_int_equal(p.parts[PLAN_MAMBA].tensors, 28 * 9);
    assert_int_equal(p.parts[PLAN_VISION].tensors, 387);
    o.state = STATE_FP16;
    assert_int_equal(plan_of(full.dir, &c, &o).ssm, 28 * 128 * 80 * 128 * 2);
}

static void t_published_work(void **state)
{
    struct model_config c;
    struct engine_options o = {.weights_in = WEIGHTS_IN_MMAP};
    struct plan p = plan_of(full.dir, &c, &o);
    double weights = cost_weight_bytes(&c, p.vocab, 1, p.number);
    check_about("bytes of weights", weights, 2 * (10965483520.0 + 676331520.0), 1e-12);
    assert_true(weights == cost_weight_bytes(&c, p.vocab, 100, 2)); /* no experts */
    check_about("bytes, 1 session of 4 k",
                weights + cost_session_bytes(&c, state_types(false, STATE_FP32, KV_AUTO), 1, 4096), 23.68e9,
                1e-3);
    check_about("bytes, 32 sessions of 16 k",
                weights + 32 * cost_session_bytes(&c, state_types(false, STATE_FP32, KV_AUTO), 32, 16384),
                45.7e9, 2e-3);
    check_about("bytes, 100 sessions of 20 k",
                weights + 100 * cost_session_bytes(&c, state_types(false, STATE_FP32, KV_AUTO), 100, 20000),
                102e9, 3e-3);
    check_about("FLOP of logits", cost_head_flop(&c, p.vocab), 2 * 676331520.0, 1e-12);
    double past = cost_text_flop(&c, 1, 32768) - cost_text_flop(&c, 1, 0);
    check_about("FLOP of looking back 32 k", past, 122880.0 * 32768, 1e-12);
    check_about("FLOP of a token", cost_text_flop(&c, 1, 0), 2 * 10965483520.0 + 0.22e9, 1e-3);
    check_about("FLOP of a tile", cost_tile_flop(&c, p.prefix), 1.595e12, 1e-3);
}

/* Quantized weights: the memory of the language model's matrices, and the bytes that a step reads. */
static void t_small_memory(void **state)
{
    struct model_config c;
    double layers = 10965483520.0, head = 676331520.0;
    struct engine_options o = {.weights_in = WEIGHTS_IN_RAM, .weights = WEIGHTS_BF16};
    double tower = (double)plan_of(full.dir, &c, &o).parts[PLAN_VISION].own;
    o.weights = WEIGHTS_INT8;
    struct plan p = plan_of(full.dir, &c, &o);
    /* plus one scale per several thousand numbers */
    check_about("int8: bytes of a number", p.number, 1, 1e-3);
    check_about("int8: MLP layers", (double)p.parts[PLAN_MLP].own, 5872168960.0, 1e-3);
    check_about("int8: head", (double)p.parts[PLAN_HEAD].own, head, 2e-3);
    check_about("int8: embeddings stay", (double)p.parts[PLAN_EMBEDDINGS].own, 2 * head, 1e-9);
    check_about("int8: so does the tower", (double)p.parts[PLAN_VISION].own, tower, 1e-9);
    o.weights = WEIGHTS_FP8; /* as many bytes as int8 */
    struct plan same = plan_of(full.dir, &c, &o);
    assert_true(same.number == p.number && same.weights.own == p.weights.own);
    o.kv = KV_FP8; /* 1024 codes and 8 scales, rounded up to 16 bytes, for keys and values of 6 layers */
    assert_int_equal(plan_of(full.dir, &c, &o).kv_token, 2 * 6 * 1040 + PLAN_TOKEN_BYTES);
    o.kv = KV_AUTO;
    o.weights = WEIGHTS_INT4;
    p = plan_of(full.dir, &c, &o);
    check_about("int4: MLP layers, 4.5 bits", (double)p.parts[PLAN_MLP].own, 5872168960.0 * 4.5 / 8, 2e-3);
    check_about("int4: head in int8", (double)p.parts[PLAN_HEAD].own, head, 2e-3);
    check_about("int4: bytes of a step", cost_weight_bytes(&c, p.vocab, 1, p.number), layers * 4.5 / 8 + head,
                2e-3);
}

/* A GPU allocates blocks above 1 MiB in pages of 2 MiB. At 1536 tokens this adds a third to the KV cache. */
static void t_pages(void **state)
{
    struct model_config c;
    struct engine_options o = {.weights_in = WEIGHTS_IN_RAM, .device = "cuda"};
    struct plan p = plan_of(full.dir, &c, &o);
    static const struct {
        int tokens, mib; /* of one layer's keys */
    } sizes[] = {{512, 1}, {1024, 2}, {1536, 4}, {2048, 4}, {12288, 24}};
    assert_int_equal(work_tensor(1 << 20), 1 << 20);
    assert_int_equal(work_tensor((1 << 20) + 1), 2 << 20);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(plan_state(&p, sizes[i].tokens) - p.state, (size_t)12 * (size_t)sizes[i].mib << 20);
    size_t memory = plan_own(&p, 2, 5000);
    assert_int_equal(plan_tokens(&p, memory, 2), state_capacity(0, 5000));
    assert_true(plan_tokens(&p, memory - 1, 2) < 5000);
    assert_int_equal(plan_sessions(&p, plan_own(&p, 7, 1500), 1500), 7);
}

/* Plans 2,048 rows and 13 tiles per chunk if memory allows. Otherwise the embedding moves to host memory
 * first, then the chunks shrink step by step. */
static void t_chunks(void **state)
{
    struct model_config c;
    struct engine_options o = {.weights_in = WEIGHTS_IN_RAM, .device = "cuda"};
    struct plan p = plan_of(full.dir, &c, &o);
    size_t most = plan_own(&p, 1, 4096) + p.tile_cache, before = most;
    assert_int_equal(p.chunks[p.chunk].prompt_rows, 2048);
    check_about("2,048 rows, MiB", (double)p.language / (1 << 20), 2048 * 86144 * 2.0 / (1 << 20), 0.01);
    plan_fit(&p, most);
    assert_int_equal(p.chunk, 0);
    for (int i = 0; i < PLAN_CHUNKS; i++) {
        plan_fit(&p, before - 1);
        assert_int_equal(p.chunk, i);
        check_about("the embedding, bytes", (double)p.pinned, p.vocab * 5120.0 * 2, 0.002);
        assert_true(plan_own(&p, 1, 4096) + p.tile_cache < before);
        before = plan_own(&p, 1, 4096) + p.tile_cache;
    }
    plan_fit(&p, 0);
    assert_int_equal(p.chunks[p.chunk].prompt_rows, 512);
    assert_int_equal(p.chunks[p.chunk].picture_tiles, 1);
    check_note("the largest chunks and the embedding take %.0f MiB more than the smallest",
               (double)(most - before) / (1 << 20));
    o.device = "cpu";
    p = plan_of(full.dir, &c, &o);
    size_t same = plan_own(&p, 1, 0);
    plan_fit(&p, 0);
    assert_int_equal(plan_own(&p, 1, 0), same);
}

/* A conversation of 12,288 tokens, with int4 weights, an int8 vision encoder and the embedding in host
 * memory, on a 12 GB GPU that also drives the desktop. */
static void t_desk(void **state)
{
    struct model_config c;
    const size_t card = (size_t)roofline_card("rtx3060")->memory, desktop = (size_t)1 << 30;
    struct engine_options o = {.weights_in = WEIGHTS_IN_RAM, .device = "cuda", .weights = WEIGHTS_INT4};
    struct plan p = plan_of(full.dir, &c, &o);
    size_t tower = p.parts[PLAN_VISION].own;
    o.tower = TOWER_INT8;
    p = plan_of(full.dir, &c, &o);
    /* int8 halves the transformer blocks, which hold most of the encoder's memory */
    assert_in_range(p.parts[PLAN_VISION].own, tower / 2, tower / 10 * 6);
    plan_picture(&p, &c, 1920, 1080);
    plan_fit(&p, card / 20 * 19 - desktop);
    size_t need = plan_own(&p, 1, 12288) + p.tile_cache;
    check_note("%.2f GiB of %.2f on the GPU, %.2f in host memory, chunks of %d", (double)need / (1 << 30),
               (double)card / (1 << 30), (double)p.pinned / (1 << 30), p.chunks[p.chunk].prompt_rows);
    assert_true(need < card / 20 * 19 - desktop);
}

/* Compares the memory of an open engine with its plan. */
static void t_pocket_memory(void **state)
{
    static const enum weights_in holds[] = {WEIGHTS_IN_RAM, WEIGHTS_IN_MMAP, WEIGHTS_IN_RAM, WEIGHTS_IN_RAM};
    static const enum weight_storage numbers[] = {WEIGHTS_AUTO, WEIGHTS_AUTO, WEIGHTS_INT8, WEIGHTS_INT4};
    static const char *const names[] = {"packed", "mapped", "int8", "int4"};
    for (int i = 0; i < 4; i++) {
        struct model_config c;
        struct err e = ERR_INIT;
        struct engine_options o = {
            .dir = POCKET, .weights_in = holds[i], .weights = numbers[i], .memory = (size_t)8 << 30};
        struct plan p = plan_of(POCKET, &c, &o);
        malloc_trim(0);
        size_t before = memory_use().own;
        struct engine *g = engine_open(&o, &e);
        if (!g)
            fail_msg("%s", e.text);
        struct session *s = session_new(g, 1);
        int side = g->config.vit.native_side / g->config.vit.patch;
        /* The encoder allocates its memory with the first image, a session its state at first use. */
        if (vision_reserve(&g->vision, 1, side, side, &e) || session_pin(s, 0, &e))
            fail_msg("%s", e.text);
        session_unpin(s);
        double have = (double)(memory_use().own - before), want = (double)(plan_own(&p, 1, 0) - p.base);
        check_note("%s: %.2f MB, planned %.2f MB", names[i], have * 1e-6, want * 1e-6);
        if (!CHECK_SANITIZED)
            check_about("memory", have, want, 0.05);
        session_free(s);
        engine_close(g);
    }
}

/* Compares the memory of sessions of different lengths with the plan. */
static void t_state_memory(void **state)
{
    enum { N = 6 };
    static const int tokens[N] = {1, 700, 2048, 3000, 4100, 8000};
    struct model_config c;
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = POCKET, .weights_in = WEIGHTS_IN_RAM, .device = "cpu"};
    struct plan p = plan_of(POCKET, &c, &o);
    struct session *s[N];
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    double want = 0;
    malloc_trim(0);
    size_t before = memory_use().own;
    for (int i = 0; i < N; i++) {
        s[i] = session_new(g, 1);
        if (session_pin(s[i], tokens[i], &e))
            fail_msg("%s", e.text);
        session_unpin(s[i]);
        want += (double)plan_state(&p, tokens[i]);
    }
    double have = (double)(memory_use().own - before);
    check_note("%d sessions: %.2f MB, planned %.2f MB", N, have * 1e-6, want * 1e-6);
    check_about("counted state memory", (double)engine_state_memory(g).used, want, 1e-9);
    if (!CHECK_SANITIZED)
        check_about("state memory", have, want, 0.05);
    for (int i = 0; i < N; i++)
        session_free(s[i]);
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("planned memory of the published model follows from its shapes", t_published_memory),
    CLAIM("planned work of the published model follows from its shapes", t_published_work),
    CLAIM("int8 halves the matrices, int4 takes under a third; embedding and encoder keep their size",
          t_small_memory),
    CLAIM("a session allocates GPU memory in pages", t_pages),
    CLAIM("12B in 4 bits fits on a 12 GB GPU beside a desktop", t_desk),
    CLAIM("a GPU that is short of memory processes prompts and images in smaller chunks", t_chunks),
    CLAIM("the embedded model takes the planned memory, within 5 %", t_pocket_memory),
    CLAIM("sessions take the planned state memory, within 5 %", t_state_memory),
};

CHECK_MAIN_WITH(full_begin(&full), full_free(&full))
