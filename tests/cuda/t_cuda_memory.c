/* t_cuda_memory.c - tests of device memory: usage matches the plan, and if an allocation fails during work,
 * the session gets an error or works with less memory, without effect on other sessions.
 *
 * They need the emulated GPU, which counts all allocations exactly.
 */
#include "check.h"
#include "pool_check.h"

#include "capacity/plan.h"
#include "emu/emu.h"
#include "model/preprocess.h"
#include "session/session_impl.h"

enum { N = 5, W = 90, H = 60 };

static void only_emulated(void)
{
    if (!&emu_card)
        skip();
}

static int append_image(struct session *s, int w, int h, uint64_t seed, struct err *e)
{
    struct image im = tiny_image(w, h, seed);
    int rc = session_append_image(s, &im, e);
    image_free(&im);
    return rc;
}

static void compute(struct session *s)
{
    struct err e = ERR_INIT;
    if (session_compute_logits(s, &e))
        fail_msg("%s", e.text);
}

static struct engine *open_on_card(const struct tiny *t, enum weight_storage numbers)
{
    struct err e = ERR_INIT;
    struct engine_options o = {.dir = t->dir, .device = "cuda", .threads = 1, .weights = numbers};
    struct engine *g = engine_open(&o, &e);
    if (!g)
        fail_msg("%s", e.text);
    return g;
}

/* ---- planned memory -------------------------------------------------------------------------- */

static struct plan plan_of(const struct tiny *t, struct model_config *c, enum weight_storage numbers)
{
    struct err e = ERR_INIT;
    struct plan p;
    struct engine_options o = {.weights_in = WEIGHTS_IN_RAM, .device = "cuda", .weights = numbers};
    struct safetensors *f = safetensors_open(t->dir, &e);
    if (!f || config_load(c, t->dir, &e) || plan_make(&p, c, f, &o, &e))
        fail_msg("%s", e.text);
    safetensors_close(f);
    plan_picture(&p, c, W, H);
    return p;
}

static void within(double part, const char *what, const char *name, double have, double want)
{
    check_note("%s, %s: %.0f bytes, planned %.0f", name, what, have, want);
    if (!(have > (1 - part) * want && have < (1 + part) * want))
        fail_msg("%s, %s: %.0f bytes, planned %.0f", name, what, have, want);
}

/* Compares planned and used memory of a model, and of sessions that prefill text and images and decode
 * together. */
static void as_planned(const struct tiny *t, enum weight_storage numbers, const char *name)
{
    struct err e = ERR_INIT;
    struct model_config c;
    struct plan p = plan_of(t, &c, numbers);
    struct tile_grid grid = preprocess_grid(&c, W, H);
    size_t before = emu_card.used;
    struct engine *g = open_on_card(t, numbers);
    within(0.003, "at the start", name, (double)(emu_card.used - before),
           (double)(plan_own(&p, 0, 0) - p.picture));
    struct session *s[N];
    int64_t longest = 0;
    for (int i = 0; i < N; i++) {
        s[i] = session_new(g, 1);
        tiny_append(s[i], i, 40);
        if (append_image(s[i], W, H, 1, &e))
            fail_msg("%s", e.text);
        compute(s[i]);
        longest = session_length(s[i]) > longest ? session_length(s[i]) : longest;
    }
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < N; i++)
            tiny_append(s[i], i + step, 1);
        session_decode_batch(s, N);
    }
    within(0.02, "in use", name, (double)(emu_card.used - before),
           (double)(plan_own(&p, N, longest) + (size_t)grid.tiles * p.tile));
    for (int i = 0; i < N; i++)
        session_free(s[i]);
    engine_close(g);
    assert_int_equal(emu_card.used, before);
}

/* Returns the logits after text and an image. */
static float *read_some(struct engine *g)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(g, 1);
    tiny_append(s, 3, 40);
    if (append_image(s, W, H, 1, &e))
        fail_msg("%s", e.text);
    compute(s);
    float *copy = malloc((size_t)engine_vocab(g) * sizeof *copy);
    memcpy(copy, session_logits(s), (size_t)engine_vocab(g) * sizeof *copy);
    session_free(s);
    return copy;
}

/* With too little memory, the embedding table stays in host memory; with even less, prompts and images are
 * processed in smaller chunks. */
static void t_short(void **state)
{
    only_emulated();
    struct tiny t;
    struct model_config c;
    tiny_init(&t, check_seed());
    tiny_write(&t);
    struct plan p = plan_of(&t, &c, WEIGHTS_BF16);
    size_t before = emu_card.used, all = emu_card.memory;
    struct engine *g = open_on_card(&t, WEIGHTS_BF16);
    assert_null(g->weights.embed_pinned);
    assert_int_equal(g->language.rows, 2048);
    float *want = read_some(g);
    int vocab = engine_vocab(g);
    engine_close(g);
    p.picture = 0;
    for (int i = 0; i <= PLAN_CHUNKS; i++) {
        size_t need = plan_own(&p, 1, 4096) + p.tile_cache;
        plan_fit(&p, need - 1);
        emu_card.memory = before + need - 1;
        g = open_on_card(&t, WEIGHTS_BF16);
        assert_non_null(g->weights.embed_pinned);
        assert_int_equal(g->language.rows, p.chunks[p.chunk].prompt_rows);
        float *have = read_some(g);
        if (i == 0) /* smaller batches of tiles use kernels that sum in another order */
            assert_memory_equal(have, want, (size_t)vocab * sizeof *want);
        assert_true(tiny_distance(have, want, vocab) < 0.2); /* random weights amplify rounding errors */
        free(have);
        engine_close(g);
        assert_int_equal(emu_card.used, before);
    }
    emu_card.memory = all;
    free(want);
    tiny_free(&t);
}

static void t_planned(void **state)
{
    only_emulated();
    struct tiny t;
    tiny_init(&t, check_seed());
    tiny_write(&t);
    as_planned(&t, WEIGHTS_BF16, "bf16");
    as_planned(&t, WEIGHTS_INT8, "int8");
    as_planned(&t, WEIGHTS_INT4, "int4");
    tiny_free(&t);
}

/* ---- a full device --------------------------------------------------------------------------- */

static void same(struct session *a, struct session *b)
{
    compute(a);
    compute(b);
    assert_memory_equal(session_logits(a), session_logits(b),
                        (size_t)engine_vocab(session_engine(a)) * sizeof(float));
}

/* Makes all further allocations fail, or undoes that. */
static void fill_card(bool full)
{
    static size_t memory;
    memory = memory ? memory : emu_card.memory;
    emu_card.memory = full ? emu_card.used : memory;
}

static void t_picture(void **state)
{
    only_emulated();
    struct err e = ERR_INIT;
    struct tiny t;
    tiny_init(&t, check_seed());
    tiny_write(&t);
    struct engine *g = open_on_card(&t, WEIGHTS_AUTO);
    struct session *s = session_new(g, 1), *other = session_new(g, 1), *straight = session_new(g, 1);
    for (int i = 0; i < 2; i++) {
        tiny_append(i ? other : straight, 1, 30);
        compute(i ? other : straight);
    }
    tiny_append(s, 2, 10);
    compute(s);
    assert_int_equal(append_image(straight, 64, 64, 9, &e), 0); /* caches one tile */
    compute(straight);
    assert_int_equal(session_rewind(straight, session_try_checkpoint(straight, &e), &e), 0);
    int64_t length = session_length(s);
    fill_card(true);
    for (int i = 0; i < 3; i++) {
        e = (struct err)ERR_INIT;
        assert_int_equal(append_image(s, 600, 400, 3, &e), -1);
        if (e.kind != ERR_ENV || !strstr(e.text, "not enough device memory for") || strchr(e.text, '\n'))
            fail_msg("error %d: %s", (int)e.kind, e.text);
        assert_int_equal(session_length(s), length);
        tiny_append(other, i, 1);
        compute(other); /* still works */
    }
    fill_card(false);
    assert_int_equal(append_image(s, 600, 400, 3, &e), 0); /* works again */
    struct session *again = session_new(g, 1);
    tiny_append(again, 2, 10);
    compute(again);
    assert_int_equal(append_image(again, 600, 400, 3, &e), 0);
    same(s, again);
    session_free(s);
    session_free(other);
    session_free(straight);
    session_free(again);
    engine_close(g);
    tiny_free(&t);
}

/* Opens four sessions with a prefilled prompt and one pending token each. */
static struct engine *four(const struct tiny *t, struct session *s[4])
{
    struct engine *g = open_on_card(t, WEIGHTS_AUTO);
    for (int i = 0; i < 4; i++) {
        s[i] = session_new(g, 1);
        tiny_append(s[i], i, 20 + i);
        compute(s[i]);
        tiny_append(s[i], 7 * i, 1);
    }
    return g;
}

/* Work that more memory would only make faster is done with less. */
static void t_less(void **state)
{
    only_emulated();
    struct err e = ERR_INIT;
    struct tiny t;
    struct session *s[4], *with[4];
    tiny_init(&t, check_seed());
    tiny_write(&t);
    struct engine *g = four(&t, s), *roomy = four(&t, with);
    assert_int_equal(append_image(s[0], 64, 64, 1, &e), 0);
    assert_int_equal(append_image(with[0], 64, 64, 1, &e), 0);
    int tiles = g->vision.cached;
    session_decode_batch(with, 4);
    fill_card(true);
    session_decode_batch(s, 4);
    assert_int_equal(g->language.logits.rows, 1); /* one session at a time */
    assert_int_equal(roomy->language.logits.rows, 4);
    for (int i = 0; i < 4; i++)
        same(s[i], with[i]);
    fill_card(true);
    emu_card.memory += 512; /* rows of one tile */
    assert_int_equal(append_image(s[0], 64, 64, 2, &e), 0);
    assert_int_equal(g->vision.cached, tiles); /* replaces a cached tile */
    fill_card(false);
    assert_int_equal(append_image(with[0], 64, 64, 2, &e), 0);
    assert_int_equal(roomy->vision.cached, 2 * tiles);
    same(s[0], with[0]);
    for (int i = 0; i < 4; i++) {
        session_free(s[i]);
        session_free(with[i]);
    }
    engine_close(g);
    engine_close(roomy);
    tiny_free(&t);
}

/* ---- host memory ----------------------------------------------------------------------------- */

static struct backend *card(void)
{
    struct err e = ERR_INIT;
    struct backend *b = backend_open("cuda", NULL, 0, NULL, &e);
    if (!b)
        fail_msg("%s", e.text);
    return b;
}

static void t_pinned(void **state)
{
    struct backend *b = card();
    void *first = b->ops->host_alloc(b, 250000);
    b->ops->host_free(b, first);
    void *again = b->ops->host_alloc(b, 240000), *other = b->ops->host_alloc(b, 240000);
    assert_ptr_equal(again, first);
    assert_ptr_not_equal(other, first);
    b->ops->host_free(b, again);
    b->ops->host_free(b, other);
    void *larger = b->ops->host_alloc(b, 300000), *small = b->ops->host_alloc(b, 10);
    memset(larger, 1, 300000);
    for (int i = 0; i < 2; i++) {
        assert_ptr_not_equal(larger, i ? other : first);
        assert_ptr_not_equal(small, i ? other : first);
    }
    b->ops->host_free(b, larger);
    b->ops->host_free(b, small);
    long waits = &emu_card ? emu_card.waits : 0;
    for (int i = 0; i < 3; i++)
        b->ops->host_free(b, b->ops->host_alloc(b, 300000));
    if (&emu_card)
        assert_int_equal(emu_card.waits, waits);
    backend_free(b);
}

/* ---- freed memory ---------------------------------------------------------------------------- */

/* Sessions enlarge their keys and values twice, without synchronizing with the device. */
static void t_grow(void **state)
{
    only_emulated();
    struct tiny t;
    struct session *s[4];
    tiny_init(&t, check_seed());
    tiny_write(&t);
    struct engine *g = four(&t, s);
    for (int round = 0; round < 2; round++) {
        long waits = emu_card.waits;
        for (int i = 0; i < 4; i++) {
            int64_t had = s[i]->state.capacity;
            tiny_append(s[i], 5 * i + round, 520);
            assert_int_equal(session_pin(s[i], 0, NULL), 0); /* allocates, without a forward pass */
            session_unpin(s[i]);
            assert_true(s[i]->state.capacity > had);
        }
        assert_int_equal(emu_card.waits, waits);
        assert_true(emu_card.kept > 0);
    }
    size_t left = g->backend->ops->memory_left(g->backend);
    assert_int_equal(left, emu_card.memory - emu_card.used); /* memory in the pool counts as free */
    for (int i = 0; i < 4; i++)
        session_free(s[i]);
    engine_close(g);
    tiny_free(&t);
}

/* If memory is short, the pool's unused memory is released for other allocations. */
static void t_trimmed(void **state)
{
    only_emulated();
    struct backend *b = card();
    struct err e = ERR_INIT;
    enum { MIB = 1 << 20 };
    struct tensor t = b->ops->alloc(b, DT_U8, 64, MIB);
    fill_card(true);
    b->ops->free(b, &t);
    assert_int_equal(emu_card.kept, 64 * MIB);
    struct work_need need = {.bytes = 60 * MIB};
    assert_int_equal(b->ops->reserve(b, &need, &e), 0);
    assert_int_equal(emu_card.kept, 0);
    assert_null(b->ops->try_alloc(b, DT_U8, 10, MIB).data);
    fill_card(false);
    backend_free(b);
    assert_int_equal(emu_card.used, 0);
}

/* Working memory of kernels is allocated when it is reserved, so that a kernel cannot run out of it. */
static void t_reserved(void **state)
{
    only_emulated();
    struct backend *b = card();
    const struct work_need needs[] = {{.bytes = 64 << 20}, {.groups = 1 << 20}, {.ids = 1 << 20}};
    for (int i = 0; i < 3; i++) {
        struct err e = ERR_INIT;
        fill_card(true);
        assert_int_equal(b->ops->reserve(b, &needs[i], &e), -1);
        if (e.kind != ERR_ENV || !strstr(e.text, "out of memory"))
            fail_msg("error %d: %s", (int)e.kind, e.text);
        fill_card(false);
        assert_int_equal(b->ops->reserve(b, &needs[i], &e), 0);
    }
    backend_free(b);
}

/* Uses a driver without memory pools. */
static void t_no_pools(void **state)
{
    only_emulated();
    emu_card.pools = false;
    t_less(state);
    assert_int_equal(emu_card.kept, 0);
    emu_card.pools = true;
}

static const struct CMUnitTest tests[] = {
    CLAIM("sessions grow without waiting for the device's other work", t_grow),
    CLAIM("memory that tensors have freed is available to other allocations", t_trimmed),
    CLAIM("lack of memory is reported when memory is reserved", t_reserved),
    CLAIM("without memory pools a full device behaves the same", t_no_pools),
    CLAIM("freed pinned memory is reused for requests of a similar size", t_pinned),
    CLAIM("with little memory a device leaves the embedding to the host, then uses smaller chunks", t_short),
    CLAIM("models, sessions and images use the planned memory, within 2 %", t_planned),
    CLAIM("an image that does not fit is an error of its session only", t_picture),
    CLAIM("on a full device logits are computed in parts and tiles are not cached, with the same bits",
          t_less),
};

CHECK_MAIN()
