/* t_cuda_kv8.c - tests of 8-bit keys and values on the device: rows, attention over them, and a model that
 * rewinds, forks and continues with them.
 */
#include "kv_claims.h"
#include "lab.h"
#include "tiny_check.h"

#include "ops/kv8.h"
#include "src/ops/cuda.h"

#include <math.h>

/* ---- rows ------------------------------------------------------------------------------------ */

static void fill(struct tensor t, int heads)
{
    int64_t d = t.cols / heads;
    for (int64_t r = 0; r < t.rows; r++)
        for (int h = 0; h < heads; h++) {
            struct tensor head = tensor_cols(tensor_rows(t, r, 1), h * d, d);
            double most = exp2(lab_between(-130, 30));
            lab_fill(head, -most, most);
            if (lab_between(0, 9) == 0)
                lab_fill(head, 0, 0);
            if (lab_between(0, 9) == 0)
                lab_fill(tensor_cols(head, lab_between(0, (int)d - 1), 1), NAN, NAN);
        }
}

static void narrow(const struct lab *l, int rows, int heads, int d, bool each)
{
    int64_t cols = kv8_cols(heads, d);
    struct tensor block = l->mem->ops->alloc(l->mem, l->act, rows, (int64_t)heads * d + 8),
                  src = tensor_cols(block, lab_between(0, 8), (int64_t)heads * d),
                  have = l->mem->ops->alloc(l->mem, DT_F8E4M3, rows, cols + 16),
                  want = l->mem->ops->alloc(l->mem, DT_F8E4M3, rows, cols + 16);
    fill(src, heads);
    lab_poison(have);
    lab_poison(want);
    struct tensor to = tensor_cols(have, 0, cols), *row = malloc((size_t)rows * sizeof *row);
    for (int r = 0; r < rows; r++)
        row[r] = tensor_rows(to, rows - 1 - r, 1);
    if (each)
        l->fast->ops->kv_quantize_batch(l->fast, row, src, heads);
    else
        l->fast->ops->kv_quantize(l->fast, to, src, heads);
    l->ref->ops->kv_quantize(l->ref, tensor_cols(want, 0, cols), src, heads);
    for (int r = 0; r < rows; r++)
        assert_memory_equal((uint8_t *)have.data + (each ? rows - 1 - r : r) * have.stride,
                            (uint8_t *)want.data + r * want.stride, (size_t)have.stride);
    free(row);
    lab_drop(l->mem, 3, (struct tensor *const[]){&block, &have, &want});
}

static void t_rows(void **state)
{
    for (int act = 0; act < 2; act++) {
        struct lab l = lab_open(act ? DT_BF16 : DT_F32);
        narrow(&l, 5, 8, 128, false);
        narrow(&l, 300, 2, 16, true); /* more rows than one launch takes */
        for (int i = 0; i < 8; i++)
            narrow(&l, lab_between(1, 9), lab_between(1, 20), lab_between(1, 90), i % 2);
        lab_close(&l);
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

static double worse(double a, double b)
{
    return b <= a ? a : isnan(b) ? INFINITY : b;
}

static struct lab quantized_lab(enum dtype act)
{
    struct lab l = lab_open(act);
    l.small = true;
    return l;
}

static void end(struct lab *l, double off)
{
    lab_close(l);
    check_note("%-4s worst difference %.2f of the tolerance", dtype_name(l->act), off);
    assert_true(off <= 1);
}

static void t_attend(void **state)
{
    static const struct lab_attention sizes[] = {
        {.queries = 26, .past = 37, .heads = 2, .group = 5, .d = 128, .score = 1},
        {.queries = 70, .past = 0, .heads = 1, .group = 5, .d = 128, .score = 1},
        {.queries = 40, .past = 200, .heads = 1, .group = 5, .d = 64, .score = 1},
        {.queries = 20, .past = 50, .heads = 18, .group = 1, .d = 64, .score = 1},
        {.queries = 90, .past = 10, .heads = 3, .group = 3, .d = 128, .score = 1},
        {.queries = 30, .past = 50, .heads = 1, .group = 5, .d = 128, .score = 120},
        {.queries = 5, .past = 62, .heads = 1, .group = 5, .d = 128, .score = 1},
        {.queries = 20, .past = 70, .heads = 2, .group = 4, .d = 256, .score = 1},
    };
    struct lab l = quantized_lab(DT_BF16);
    double off = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        off = worse(off, lab_attend_sizes(&l, sizes[i]));
    end(&l, off);
}

static void t_each(void **state)
{
    static const int keys[] = {1, 400, 15, 16, 17, 128, 129, 255, 300, 2, 63, 65};
    struct lab l = quantized_lab(DT_BF16);
    struct lab_attention s = {.queries = 12, .heads = 2, .group = 5, .d = 128, .score = 1};
    double off = lab_each_sizes(&l, s, keys);
    s.queries = 3, s.heads = 1, s.group = 16;
    off = worse(off, lab_each_sizes(&l, s, keys));
    s.queries = 5, s.heads = 18, s.group = 9, s.d = 64;
    off = worse(off, lab_each_sizes(&l, s, keys));
    s.queries = 5, s.heads = 2, s.group = 11, s.d = 256;
    off = worse(off, lab_each_sizes(&l, s, keys));
    s.queries = 3, s.heads = 1, s.group = 5, s.d = 128, s.score = 1000;
    off = worse(off, lab_each_sizes(&l, s, keys));
    s = (struct lab_attention){.queries = 4, .past = 700, .heads = 1, .group = 5, .d = 128, .score = 1};
    off = worse(off, lab_attend_sizes(&l, s)); /* few queries over many keys */
    end(&l, off);
}

static void t_odd(void **state)
{
    static const int keys[] = {130, 1, 100, 129};
    for (int act = 0; act < 2; act++) {
        struct lab l = quantized_lab(act ? DT_BF16 : DT_F32);
        struct lab_attention s = {.queries = 4, .heads = 2, .group = 3, .d = 80, .score = 1};
        double off = lab_each_sizes(&l, s, keys);
        s.heads = 3, s.group = 1, s.d = 37, s.loose = true;
        off = worse(off, lab_each_sizes(&l, s, keys));
        s.past = 140, s.d = 128;
        off = worse(off, lab_attend_sizes(&l, s));
        for (int i = 0; i < 4; i++) { /* rows at any addresses */
            s = (struct lab_attention){.queries = 4, .heads = 1, .group = 5, .d = 128, .score = 1};
            s.loose = true;
            off = worse(off, lab_each_sizes(&l, s, keys));
        }
        end(&l, off);
    }
}

/* ---- a model --------------------------------------------------------------------------------- */

static void t_model(void **state)
{
    kv_claims_check(&tiny, "cuda", NULL);
}

/* A difference in the last bit may move a key to the next code, a 16th away.  This is rare in f32 and
 * frequent in bf16. */
static void t_near(void **state)
{
    for (int f32 = 0; f32 < 2; f32++) {
        struct engine *gpu = kv_claims_engine(&tiny, "cuda", NULL, true, f32),
                      *cpu = kv_claims_engine(&tiny, "cpu", "ref", true, f32);
        double gap = kv_claims_apart(gpu, cpu);
        check_note("%s: logits differ by %.1e of their size", f32 ? "f32" : "bf16", gap);
        assert_true(gap < (f32 ? 0.05 : 0.2));
        engine_close(gpu);
        engine_close(cpu);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("8-bit rows have the bytes of the reference, together and separately", t_rows),
    CLAIM("attention of prompts over 8-bit keys equals the reference", t_attend),
    CLAIM("several sessions equal the reference, and have the same bits as each alone", t_each),
    CLAIM("8-bit attention with any sizes equals the reference in f32 and bf16", t_odd),
    CLAIM("rewind, fork, spill, save and batch keep the bits of a model with 8-bit keys", t_model),
    CLAIM("logits equal those of the same model on the CPU", t_near),
};

TINY_MAIN(lab_random = check_seed())
