/* t_backend_check.c - tests of the self-check that a GPU must pass when it is opened: the instruction sets
 * of this CPU pass it, and it detects and names each incorrect operation.
 */
#include "check.h"
#include "lab.h"

#include "ops/ops.h"
#include "ops/sampling.h"

static struct backend *right; /* a correct backend; the tests replace single operations of it */

static int products, spoilt_product; /* number of calls so far, and the call that gives a wrong result */

static void wrong_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                         struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    right->ops->linear(right, y, x, w, bias, epi, mode);
    if (products++ == spoilt_product)
        for (int64_t r = 0; r < y.rows; r++) /* the kernel omits the last column */
            ((uint16_t *)y.data)[(r + 1) * y.stride - 1] = 0;
}

static void wrong_norm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float eps)
{
    right->ops->rmsnorm(right, y, x, w, eps + 0.1f);
}

static void wrong_step(struct backend *b, struct tensor y, struct tensor v, struct tensor dt,
                       const struct tensor *states, const uint32_t *keys, const struct ssm_shape *s,
                       const struct ssm_const *c)
{
    struct tensor none = right->ops->alloc(right, states->dtype, states->rows, states->cols);
    right->ops->ssm_step_batch(right, y, v, dt, &none, keys, s, c); /* ignores the state */
    right->ops->free(right, &none);
}

static void wrong_attend(struct backend *b, struct tensor y, struct tensor q, struct tensor k,
                         struct tensor v, int q_heads, int kv_heads, int64_t past)
{
    right->ops->attend_tokens(right, y, q, tensor_rows(k, 0, k.rows - 1), tensor_rows(v, 0, v.rows - 1),
                              q_heads, kv_heads, past - 1);
}

/* ---- operations of a decode step ------------------------------------------------------------- */

static struct {
    int head;
    enum dtype type;
} wrong_states;

/* A fused layer, as on a GPU, that does not update one kind of state. */
static void mamba_forgets(struct backend *b, struct tensor out, struct tensor z, struct tensor xbc,
                          struct tensor dt, const struct mamba_batch *e)
{
    const struct ops *o = right->ops;
    struct tensor v = o->alloc(right, xbc.dtype, xbc.rows, xbc.cols), kept[8];
    bool wrong = e->shape->head_dim == wrong_states.head && e->ssm_states->dtype == wrong_states.type;
    for (int64_t i = 0; i < out.rows; i++) {
        kept[i] = o->alloc(right, e->ssm_states[i].dtype, e->ssm_states[i].rows, e->ssm_states[i].cols);
        o->copy(right, kept[i], e->ssm_states[i]);
    }
    o->conv_batch(right, v, xbc, e->conv, e->conv_bias, e->conv_states);
    o->ssm_step_batch(right, out, v, dt, e->ssm_states, e->keys, e->shape, e->constants);
    o->gated_norm(right, out, out, z, e->norm, e->shape->groups, e->eps);
    for (int64_t i = 0; i < out.rows; i++) {
        if (wrong)
            o->copy(right, e->ssm_states[i], kept[i]);
        o->free(right, &kept[i]);
    }
    o->free(right, &v);
}

/* Omits the last key with one size of heads and type of keys. */
static void attend_fewer(struct backend *b, struct tensor y, struct tensor q, const struct tensor *k,
                         const struct tensor *v, int q_heads, int kv_heads)
{
    bool wrong = q.cols / q_heads == wrong_states.head && k->dtype == wrong_states.type;
    struct tensor keys = tensor_rows(*k, 0, k->rows - wrong), values = tensor_rows(*v, 0, keys.rows);
    right->ops->attend_batch(right, y, q, &keys, &values, q_heads, kv_heads);
}

/* Attends to the first tile from every tile. */
static void attend_all(struct backend *b, struct tensor y, struct tensor qkv, int heads, int tiles)
{
    right->ops->attend_tiles(right, y, qkv, heads, 1);
}

static void sample_any(struct backend *b, struct tensor logits, const struct sampler *how,
                       struct sampled *out)
{
    for (int64_t t = 0; t < logits.rows; t++) {
        struct sampler h = how[t];
        h.allowed = NULL; /* ignores the mask */
        out[t] = sample_token((const float *)logits.data + t * logits.stride, (int)logits.cols, &h);
    }
}

/* From the third step on, uses the ids of the recorded graph. */
static void embed_old(struct backend *b, struct tensor y, struct tensor table, const int32_t *ids)
{
    static int32_t recorded[2];
    static int step;
    if (++step == 2)
        memcpy(recorded, ids, sizeof recorded);
    right->ops->embed(right, y, table, step > 2 ? recorded : ids);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void found_out(const struct ops *ops, const char *what)
{
    struct err e = ERR_INIT;
    struct backend b = {ops, right->pool, right->priv};
    if (backend_check(&b, &e) == 0)
        fail_msg("nothing is wrong with %s", what);
    check_note("%s", e.text);
    assert_non_null(strstr(e.text, what));
}

/* Replaces one operation; the check must fail and name it. */
#define SPOIL(operation, by, what)                                                                           \
    do {                                                                                                     \
        struct ops spoilt = *right->ops;                                                                     \
        spoilt.operation = by;                                                                               \
        found_out(&spoilt, what);                                                                            \
    } while (0)

static void check_right(struct backend *b)
{
    struct err e = ERR_INIT;
    if (backend_check(b, &e))
        fail_msg("%s", e.text);
}

static void t_right(void **state)
{
    lab_each_isa(check_right);
}

static void t_prompts(void **state)
{
    SPOIL(rmsnorm, wrong_norm, "a norm");
    SPOIL(ssm_step_batch, wrong_step, "state space");
    SPOIL(attend_tokens, wrong_attend, "attention");
    SPOIL(attend_tiles, attend_all, "the tower's attention");
}

static void t_products(void **state)
{
    static const char *const names[] = {"few rows incorrectly", "many rows incorrectly", "few rows in int8",
                                        "some rows in int8",    "many rows in int8",     "few rows in int4",
                                        "many rows in int4",    "few rows in fp8",       "many rows in fp8",
                                        "few rows in fp4",      "many rows in fp4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        products = 0;
        spoilt_product = (int)i;
        SPOIL(linear, wrong_linear, names[i]);
    }
}

/* Computes nothing. */
static void delta_rests(struct backend *b, struct tensor out, struct tensor z, struct tensor x,
                        struct tensor ab, const struct delta_batch *e)
{
}

static void t_decoding(void **state)
{
    static const struct {
        int head;
        enum dtype type;
        const char *name;
    } steps[] = {{80, DT_F32, "decode step incorrectly"},
                 {64, DT_F32, "decode step with heads of 64"},
                 {80, DT_F16, "decode step in fp16"},
                 {128, DT_BF16, "attention incorrectly"},
                 {128, DT_F8E4M3, "attention over 8-bit keys"},
                 {256, DT_BF16, "heads of 256 incorrectly"},
                 {256, DT_F8E4M3, "heads of 256 over 8-bit keys"}};
    for (int i = 0; i < 7; i++) {
        wrong_states.head = steps[i].head;
        wrong_states.type = steps[i].type;
        if (i < 3)
            SPOIL(mamba_batch, mamba_forgets, steps[i].name);
        else
            SPOIL(attend_batch, attend_fewer, steps[i].name);
    }
    SPOIL(delta_batch, delta_rests, "Qwen's decode step");
    SPOIL(sample, sample_any, "sampling");
    SPOIL(embed, embed_old, "a replayed graph");
}

static const struct CMUnitTest tests[] = {
    CLAIM("every instruction set of this CPU passes", t_right),
    CLAIM("a wrong operation of prompts is detected and named", t_prompts),
    CLAIM("a wrong product is detected in each format, with few rows and with many", t_products),
    CLAIM("a wrong part of a decode step and a graph replayed with old arguments are detected", t_decoding),
};

CHECK_MAIN_WITH(right = backend_cpu(NULL, NULL, NULL), backend_free(right))
