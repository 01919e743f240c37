/* t_cuda_attend.c - tests of attention on the device against the scalar reference.
 *
 * Head sizes are those of real models (128 with five query heads, 80, 64), which use the fast kernels, and
 * odd sizes, which use the others.  Lengths are just below and above block sizes.  See t_cuda_ops.c.
 */
#include "check.h"
#include "lab.h"

#include "src/ops/cuda.h"

#include <math.h>

static void end(struct lab *l, double off)
{
    lab_close(l);
    check_note("%-4s worst difference %.2f of the tolerance", dtype_name(l->act), off);
    assert_true(off <= 1);
}

/* Returns the larger difference; NaN counts as infinite. */
static double worse(double a, double b)
{
    return b <= a ? a : isnan(b) ? INFINITY : b;
}

static void t_attend(void **state)
{
    static const struct lab_attention sizes[] = {
        {1, 0, 1, 5, 128, 1, false},    {2, 0, 2, 5, 128, 1, false},    {26, 37, 2, 5, 128, 1, false},
        {70, 0, 1, 5, 128, 1, false},   {40, 200, 1, 5, 64, 1, false},  {3, 130, 1, 16, 128, 1, false},
        {33, 64, 2, 1, 80, 1, false},   {64, 0, 1, 2, 64, 1, false},    {4, 700, 1, 5, 128, 1, false},
        {5, 62, 1, 5, 128, 1, false},   {20, 100, 1, 6, 256, 1, false}, {1, 70, 2, 4, 256, 1, false},
        {2, 600, 1, 16, 256, 1, false},
    };
    struct lab l = lab_open(DT_BF16);
    double off = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        off = worse(off, lab_attend_sizes(&l, sizes[i]));
    end(&l, off);
}

static void t_attend_wide(void **state) /* more blocks than multiprocessors */
{
    struct lab l = lab_open(DT_BF16);
    double off = lab_attend_sizes(&l, (struct lab_attention){90, 10, 3, 3, 128, 1, false});
    off = worse(off, lab_attend_sizes(&l, (struct lab_attention){70, 10, 2, 4, 256, 1, false}));
    end(&l, off);
}

static void t_attend_odd(void **state)
{
    for (int act = 0; act < 2; act++) {
        struct lab l = lab_open(act ? DT_BF16 : DT_F32);
        double off = 0;
        for (int i = 0; i < 3; i++)
            off = worse(off, lab_attend(&l));
        off = worse(off, lab_attend_sizes(&l, (struct lab_attention){5, 140, 2, 3, 128, 1, true}));
        end(&l, off);
    }
}

static void t_tiles(void **state)
{
    struct lab l = lab_open(DT_BF16);
    double off = lab_tiles_sizes(&l, 2, 80, 2, 81, false);
    off = worse(off, lab_tiles_sizes(&l, 1, 80, 1, 200, false));
    off = worse(off, lab_tiles_sizes(&l, 2, 64, 3, 63, false));
    off = worse(off, lab_tiles_sizes(&l, 1, 64, 1, 130, false));
    off = worse(off, lab_tiles_sizes(&l, 3, 80, 2, 1, false));
    off = worse(off, lab_tiles_sizes(&l, 2, 72, 2, 81, false));
    off = worse(off, lab_tiles_sizes(&l, 1, 72, 1, 130, false));
    end(&l, off);
}

static void t_tiles_odd(void **state)
{
    for (int act = 0; act < 2; act++) {
        struct lab l = lab_open(act ? DT_BF16 : DT_F32);
        double off = 0;
        for (int i = 0; i < 3; i++)
            off = worse(off, lab_tiles(&l));
        off = worse(off, lab_tiles_sizes(&l, 2, 80, 2, 33, true));
        end(&l, off);
    }
}

static void t_each(void **state)
{
    static const int keys[] = {1, 400, 15, 16, 17, 128, 129, 255, 300, 2, 63, 65};
    struct lab l = lab_open(DT_BF16);
    double off = lab_each_sizes(&l, (struct lab_attention){12, 0, 2, 5, 128, 1, false}, keys);
    off = worse(off, lab_each_sizes(&l, (struct lab_attention){3, 0, 1, 16, 128, 1, false}, keys));
    off = worse(off, lab_each_sizes(&l, (struct lab_attention){5, 0, 2, 9, 64, 1, false}, keys));
    off = worse(off, lab_each_sizes(&l, (struct lab_attention){4, 0, 3, 1, 64, 1, false}, keys));
    off = worse(off, lab_each_sizes(&l, (struct lab_attention){5, 0, 2, 4, 256, 1, false}, keys));
    off = worse(off, lab_each_sizes(&l, (struct lab_attention){3, 0, 2, 11, 256, 1, false}, keys));
    end(&l, off);
}

static void t_each_long(void **state) /* thousands of keys */
{
    static const int keys[] = {4200, 7};
    struct lab l = lab_open(DT_BF16);
    end(&l, lab_each_sizes(&l, (struct lab_attention){2, 0, 1, 3, 64, 1, false}, keys));
}

static void t_each_many(void **state) /* more sessions than one launch takes */
{
    int keys[200];
    for (int i = 0; i < 200; i++)
        keys[i] = lab_between(1, 40);
    struct lab l = lab_open(DT_BF16);
    end(&l, lab_each_sizes(&l, (struct lab_attention){200, 0, 1, 2, 64, 1, false}, keys));
}

static void t_each_odd(void **state)
{
    static const int keys[] = {130, 1, 100, 129};
    for (int act = 0; act < 2; act++) {
        struct lab l = lab_open(act ? DT_BF16 : DT_F32);
        double off = lab_each_sizes(&l, (struct lab_attention){4, 0, 2, 3, 80, 1, false}, keys);
        off = worse(off, lab_each_sizes(&l, (struct lab_attention){3, 0, 3, 1, 37, 1, true}, keys));
        for (int i = 0; i < 8; i++) /* q and some of the keys are aligned, others are not */
            off = worse(off, lab_each_sizes(&l, (struct lab_attention){4, 0, 1, 5, 128, 1, true}, keys));
        end(&l, off);
    }
}

/* With scores up to +-80 one key has all the weight.  Scores in the hundreds overflow unless the maximum is
 * subtracted first. */
static void t_large(void **state)
{
    static const int keys[] = {200, 1, 70};
    struct lab l = lab_open(DT_BF16);
    double off = lab_attend_sizes(&l, (struct lab_attention){30, 50, 1, 5, 128, 120, false});
    off = worse(off, lab_each_sizes(&l, (struct lab_attention){3, 0, 1, 5, 128, 120, false}, keys));
    off = worse(off, lab_each_sizes(&l, (struct lab_attention){3, 0, 1, 5, 128, 1000, false}, keys));
    end(&l, off);
}

/* With equal scores the result is the mean of the values. */
static void t_equal(void **state)
{
    static const int keys[] = {256, 1, 100};
    struct lab l = lab_open(DT_BF16);
    double off = lab_attend_sizes(&l, (struct lab_attention){20, 108, 1, 5, 128, 0x1p-100, false});
    off = worse(off, lab_each_sizes(&l, (struct lab_attention){3, 0, 1, 5, 128, 0x1p-100, false}, keys));
    end(&l, off);
}

static const struct CMUnitTest tests[] = {
    CLAIM("attention with real head sizes over a cache equals the reference", t_attend),
    CLAIM("attention in large blocks equals the reference", t_attend_wide),
    CLAIM("attention with any sizes equals the reference in f32 and bf16", t_attend_odd),
    CLAIM("attention inside tiles equals the reference", t_tiles),
    CLAIM("attention inside tiles of any sizes equals the reference in f32 and bf16", t_tiles_odd),
    CLAIM("several sessions in one batch have the same bits as each alone", t_each),
    CLAIM("several sessions with thousands of keys have the same bits as each alone", t_each_long),
    CLAIM("hundreds of sessions have the same bits as each alone", t_each_many),
    CLAIM("batched attention with any sizes equals the reference in f32 and bf16", t_each_odd),
    CLAIM("large scores select one key", t_large),
    CLAIM("equal scores give the mean of the values", t_equal),
};

CHECK_MAIN(lab_random = check_seed())
