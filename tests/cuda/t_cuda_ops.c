/* t_cuda_ops.c - tests of the kernels in cuda/ against the scalar reference.
 *
 * Without a GPU, tests/emu runs the threads of a block in a new random order at each barrier, with shared
 * memory initialized to NaN.  A missing barrier or an unwritten value then shows in a result, and a thread
 * that misses a barrier aborts the program with the name of the kernel.  lab.h explains the tolerances.
 */
#include "check.h"
#include "lab.h"

#include "src/ops/cuda.h"

#include <math.h>

static void t_norms(void **state)
{
    struct lab l = lab_open(DT_F32);
    lab_compare(&l, lab_norms, 20);
    lab_close(&l);
}

/* Row lengths that fit into a block's registers, just below and above that limit, and far above. */
static void t_long_norms(void **state)
{
    static const int sizes[] = {8, 64, 1280, 2040, 2048, 2056, 5120, 6144, 6152, 16384, 20000};
    struct lab l = lab_open(DT_BF16);
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        int D = sizes[i / 2], T = lab_between(1, 3);
        l.act = i % 2 ? DT_BF16 : DT_F32;
        struct tensor X = lab_make(l.mem, l.act, T, D + 8, -3, 3), x = tensor_cols(X, 8, D),
                      z = lab_make(l.mem, l.act, T, D, -3, 3), w = lab_make(l.mem, DT_F32, 1, D, 0.5, 2),
                      bias = lab_make(l.mem, DT_F32, 1, D, -1, 1), want = lab_twin(l.mem, z),
                      have = lab_twin(l.mem, z);
        for (int groups = -1; groups < 3; groups++) { /* -1: layer norm, 0: RMS norm */
            struct tensor pair[] = {want, have};
            lab_poison(want);
            lab_poison(have);
            for (int side = 0; side < 2; side++) {
                struct backend *b = side ? l.fast : l.ref;
                if (groups < 0)
                    b->ops->layernorm(b, pair[side], x, w, bias, 1e-5f);
                else if (groups == 0)
                    b->ops->rmsnorm(b, pair[side], x, w, 1e-5f);
                else
                    b->ops->gated_norm(b, pair[side], x, z, w, groups, 1e-5f);
            }
            assert_true(lab_worst(have, want) <= 1);
        }
        /* an unaligned row has the same bits as an aligned one */
        struct tensor O = lab_make(l.mem, l.act, T, D + 3, 0, 0), odd = tensor_cols(O, 1, D);
        l.fast->ops->copy(l.fast, odd, z);
        l.fast->ops->gated_norm(l.fast, want, x, z, w, 1, 1e-5f);
        l.fast->ops->gated_norm(l.fast, have, x, odd, w, 1, 1e-5f);
        assert_true(lab_worst(have, want) == 0);
        l.fast->ops->copy(l.fast, odd, x);
        l.fast->ops->rmsnorm(l.fast, have, odd, w, 1e-5f);
        l.fast->ops->rmsnorm(l.fast, want, x, w, 1e-5f);
        assert_true(lab_worst(have, want) == 0);
        l.fast->ops->free(l.fast, &O);
        l.fast->ops->rmsnorm(l.fast, x, x, w, 1e-5f);
        assert_true(lab_worst(x, want) == 0);
        lab_drop(l.mem, 6, (struct tensor *const[]){&X, &z, &w, &bias, &want, &have});
    }
    lab_close(&l);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct lab lab;

static void same(struct tensor have, struct tensor want)
{
    for (int64_t r = 0; r < want.rows; r++)
        for (int64_t c = 0; c < want.cols; c++)
            assert_true(lab_at(have, r, c) == lab_at(want, r, c));
}

/* Returns a view of poisoned memory inside a wider matrix; edges() checks that the rest is still poisoned. */
static struct tensor amid(struct tensor *whole, enum dtype t, int64_t rows, int64_t cols)
{
    *whole = lab.fast->ops->alloc(lab.fast, t, rows, cols + 3);
    lab_poison(*whole);
    return tensor_cols(*whole, 2, cols);
}

static void edges(struct tensor whole)
{
    for (int64_t r = 0; r < whole.rows; r++)
        assert_true(isnan(lab_at(whole, r, 0)) && isnan(lab_at(whole, r, 1)) &&
                    isnan(lab_at(whole, r, whole.cols - 1)));
}

static void t_embed(void **state)
{
    enum { MOST = 530 }; /* more ids than one launch takes */
    lab = lab_open(DT_F32);
    for (int round = 0; round < 4; round++) {
        int n = round ? lab_between(1, 20) : MOST, cols = lab_between(round ? 257 : 1, round ? 600 : 40);
        int32_t ids[MOST];
        struct tensor table = lab_make(lab.fast, round % 2 ? DT_BF16 : DT_F32, 70, cols, -1, 1), whole,
                      have = amid(&whole, round / 2 ? DT_BF16 : DT_F32, n, cols),
                      want = lab.fast->ops->alloc(lab.fast, have.dtype, n, cols);
        for (int i = 0; i < n; i++)
            ids[i] = lab_between(0, 69);
        lab.ref->ops->embed(lab.ref, want, table, ids);
        lab.fast->ops->embed(lab.fast, have, table, ids);
        same(have, want);
        edges(whole);
        lab_drop(lab.fast, 3, (struct tensor *const[]){&table, &whole, &want});
    }
    lab_close(&lab);
}

/* Copies between types; one case has more rows than a grid takes. */
static void t_copy(void **state)
{
    lab = lab_open(DT_F32);
    for (int round = 0; round < 4; round++) {
        enum dtype from = round % 2 ? DT_BF16 : DT_F32, to = round / 2 ? DT_BF16 : DT_F32;
        int64_t rows = round == 2 ? 32771 : lab_between(1, 20), cols = round == 2 ? 2 : lab_between(257, 700);
        struct tensor source = lab_make(lab.fast, from, rows, cols + 5, -1, 1),
                      x = tensor_cols(source, 3, cols), whole, have = amid(&whole, to, rows, cols),
                      want = lab.fast->ops->alloc(lab.fast, to, rows, cols);
        lab.ref->ops->copy(lab.ref, want, x);
        lab.fast->ops->copy(lab.fast, have, x);
        same(have, want);
        edges(whole);
        lab_drop(lab.fast, 3, (struct tensor *const[]){&source, &whole, &want});
    }
    lab_close(&lab);
}

static void t_images(void **state)
{
    lab = lab_open(DT_F32);
    for (int round = 0; round < 6; round++) {
        enum dtype t = round % 2 ? DT_BF16 : DT_F32;
        int g = 2 * lab_between(1, 5), cols = lab_between(1, round < 2 ? 300 : 40), side = lab_between(2, 9),
            rows = lab_between(1, 9), across = lab_between(1, 9);
        struct tensor X = lab_make(lab.fast, t, (int64_t)g * g, cols + 2, -1, 1), x = tensor_cols(X, 1, cols),
                      whole, have = amid(&whole, t, (int64_t)g * g / 4, 4 * (int64_t)cols),
                      want = lab.fast->ops->alloc(lab.fast, t, have.rows, have.cols);
        lab.ref->ops->pixel_shuffle(lab.ref, want, x, g);
        lab.fast->ops->pixel_shuffle(lab.fast, have, x, g);
        same(have, want);
        edges(whole);
        lab_drop(lab.fast, 3, (struct tensor *const[]){&X, &whole, &want});
        struct tensor grid = lab_make(lab.fast, DT_F32, (int64_t)side * side, cols, -1, 1);
        have = amid(&whole, t, (int64_t)rows * across, cols);
        want = lab.fast->ops->alloc(lab.fast, t, have.rows, cols);
        lab.ref->ops->resize_grid(lab.ref, want, grid, rows, across);
        lab.fast->ops->resize_grid(lab.fast, have, grid, rows, across);
        assert_true(lab_worst(have, want) <= 1);
        edges(whole);
        lab_drop(lab.fast, 3, (struct tensor *const[]){&grid, &whole, &want});
    }
    lab_close(&lab);
}

/* Unaligned rows, more than one launch takes. */
static void t_rows(void **state)
{
    enum { MOST = 140 };
    lab = lab_open(DT_F32);
    for (int round = 0; round < 4; round++) {
        enum dtype t = round % 2 ? DT_BF16 : DT_F32;
        int n = round < 2 ? MOST : lab_between(1, 9),
            cols = lab_between(round < 2 ? 1 : 257, round < 2 ? 20 : 600);
        struct tensor X = lab_make(lab.fast, t, n, cols + 4, -1, 1), x = tensor_cols(X, 1, cols), apart,
                      whole, rows[MOST], have = amid(&whole, t, n, cols), there = amid(&apart, t, n, cols);
        for (int i = 0; i < n; i++)
            rows[i] = tensor_rows(there, (i * 3 + 1) % n, 1);
        if (n % 3 == 0)
            for (int i = 0; i < n; i++)
                rows[i] = tensor_rows(there, n - 1 - i, 1);
        lab.fast->ops->scatter(lab.fast, rows, x);
        for (int i = 0; i < n; i++)
            same(rows[i], tensor_rows(x, i, 1));
        lab.fast->ops->gather(lab.fast, have, rows);
        same(have, x);
        edges(whole);
        edges(apart);
        lab_drop(lab.fast, 3, (struct tensor *const[]){&X, &whole, &apart});
    }
    lab_close(&lab);
}

static const struct CMUnitTest tests[] = {
    CLAIM("norms and sums equal the reference", t_norms),
    CLAIM("norms of long rows equal the reference, in place too, with the same bits at any address",
          t_long_norms),
    CLAIM("embeddings equal the rows of the table, for any number of ids", t_embed),
    CLAIM("copies between types and views round as in the reference", t_copy),
    CLAIM("rearranged pixels and resized positions equal the reference", t_images),
    CLAIM("rows scattered to many addresses and gathered from there are bit-identical", t_rows),
};

CHECK_MAIN(lab_random = check_seed())
