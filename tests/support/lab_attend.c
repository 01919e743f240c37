/* lab_attend.c - attention with the sizes of real heads, on views as in the model; see lab.h. */
#include "lab.h"

#include "ops/kv8.h"

#include <math.h>
#include <stdlib.h>

/* Attention is a mean of values of at most 1 with weights rounded to bf16: half a step each. */
static const double weights_rounded = 0x1p-8;

static double slack(const struct lab *l)
{
    return l->act == DT_BF16 ? weights_rounded : 0;
}

/* Allocates rows with a gap after each: a multiple of 16 bytes, as the fast kernels need, or with `loose` any
 * gap. */
static struct tensor with_gap(struct tensor *block, const struct lab *l, bool loose, int64_t rows,
                              int64_t cols, double most)
{
    int gap = loose && lab_between(0, 1) ? lab_between(1, 7) : 8 * lab_between(0, 2);
    *block = l->mem->ops->alloc(l->mem, l->act, rows, cols + gap);
    lab_poison(*block);
    struct tensor view = tensor_cols(*block, 0, cols);
    if (most > 0)
        lab_fill(view, -most, most);
    return view;
}

/* Makes 8-bit rows of numbers of many sizes, with some all-zero heads; without a gap rows begin at multiples
 * of 16. */
static struct tensor quantized_keys(struct tensor *block, const struct lab *l, const struct lab_attention *s,
                                    int64_t rows, int64_t unseen)
{
    struct tensor wide = l->mem->ops->alloc(l->mem, l->act, rows, (int64_t)s->heads * s->d);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < s->heads; h++) {
            double most = lab_between(0, 20) ? exp2(lab_between(-8, 0)) : 0;
            lab_fill(tensor_cols(tensor_rows(wide, r, 1), h * s->d, s->d), -most, most);
        }
    int64_t cols = kv8_cols(s->heads, s->d);
    *block = l->mem->ops->alloc(l->mem, DT_F8E4M3, rows + unseen,
                                cols + (s->loose ? lab_between(1, 7) : 16 * lab_between(0, 1)));
    lab_poison(*block);
    struct tensor view = tensor_cols(*block, 0, cols);
    l->ref->ops->kv_quantize(l->ref, tensor_rows(view, 0, rows), wide, s->heads);
    l->mem->ops->free(l->mem, &wide);
    return view;
}

/* Makes keys or values, followed by `unseen` rows of later tokens. */
static struct tensor keys_of(struct tensor *block, const struct lab *l, const struct lab_attention *s,
                             int64_t rows, int64_t unseen)
{
    struct tensor view = l->small ? quantized_keys(block, l, s, rows, unseen)
                                  : with_gap(block, l, s->loose, rows + unseen, (int64_t)s->heads * s->d, 1);
    lab_poison(tensor_rows(view, rows, unseen));
    view.rows = rows;
    return view;
}

double lab_attend_sizes(const struct lab *l, struct lab_attention s)
{
    struct tensor block[4];
    int64_t width = (int64_t)s.heads * s.d;
    struct tensor q = with_gap(&block[0], l, s.loose, s.queries, width * s.group, s.score),
                  k = keys_of(&block[1], l, &s, s.past + s.queries, 3),
                  v = keys_of(&block[2], l, &s, s.past + s.queries, 3),
                  have = with_gap(&block[3], l, s.loose, s.queries, width * s.group, 0);
    struct tensor want = l->mem->ops->alloc(l->mem, l->act, have.rows, have.cols);
    l->ref->ops->attend_tokens(l->ref, want, q, k, v, s.heads * s.group, s.heads, s.past);
    l->fast->ops->attend_tokens(l->fast, have, q, k, v, s.heads * s.group, s.heads, s.past);
    double off = lab_worst_within(have, want, slack(l));
    for (int i = 0; i < 4; i++)
        l->mem->ops->free(l->mem, &block[i]);
    l->mem->ops->free(l->mem, &want);
    return off;
}

double lab_tiles_sizes(const struct lab *l, int heads, int d, int tiles, int n, bool loose)
{
    struct tensor block[2];
    int64_t width = (int64_t)heads * d;
    struct tensor qkv = with_gap(&block[0], l, loose, (int64_t)tiles * n, 3 * width, 1),
                  have = with_gap(&block[1], l, loose, qkv.rows, width, 0);
    struct tensor want = l->mem->ops->alloc(l->mem, l->act, have.rows, have.cols);
    l->ref->ops->attend_tiles(l->ref, want, qkv, heads, tiles);
    l->fast->ops->attend_tiles(l->fast, have, qkv, heads, tiles);
    double off = lab_worst_within(have, want, slack(l));
    for (int i = 0; i < 2; i++)
        l->mem->ops->free(l->mem, &block[i]);
    l->mem->ops->free(l->mem, &want);
    return off;
}

/* Returns NAN unless each session alone has the same bits as in the batch. */
static double bits_alone(const struct lab *l, struct lab_attention s, struct tensor have, struct tensor q,
                         const struct tensor *k, const struct tensor *v)
{
    struct tensor one = l->mem->ops->alloc(l->mem, l->act, 1, have.cols);
    double off = 0;
    for (int i = 0; i < s.queries; i++)
        for (int way = 0; way < 2; way++) {
            struct tensor qi = tensor_rows(q, i, 1);
            lab_poison(one);
            if (way)
                l->fast->ops->attend_batch(l->fast, one, qi, k + i, v + i, s.heads * s.group, s.heads);
            else
                l->fast->ops->attend_tokens(l->fast, one, qi, k[i], v[i], s.heads * s.group, s.heads,
                                            k[i].rows - 1);
            for (int64_t c = 0; c < one.cols; c++)
                if (lab_at(one, 0, c) != lab_at(have, i, c))
                    off = NAN;
        }
    l->mem->ops->free(l->mem, &one);
    return off;
}

double lab_each_sizes(const struct lab *l, struct lab_attention s, const int *keys)
{
    int n = s.queries;
    struct tensor *block = malloc((size_t)(2 * n + 2) * sizeof *block);
    struct tensor *k = malloc((size_t)n * sizeof *k), *v = malloc((size_t)n * sizeof *v);
    int64_t width = (int64_t)s.heads * s.d;
    for (int i = 0; i < n; i++) {
        k[i] = keys_of(&block[2 * i], l, &s, keys[i], 1);
        v[i] = keys_of(&block[2 * i + 1], l, &s, keys[i], 1);
    }
    struct tensor q = with_gap(&block[2 * n], l, s.loose && lab_between(0, 3) == 0, n, width * s.group,
                               s.score),
                  have = with_gap(&block[2 * n + 1], l, s.loose, n, width * s.group, 0);
    struct tensor want = l->mem->ops->alloc(l->mem, l->act, n, have.cols);
    l->ref->ops->attend_batch(l->ref, want, q, k, v, s.heads * s.group, s.heads);
    l->fast->ops->attend_batch(l->fast, have, q, k, v, s.heads * s.group, s.heads);
    double off = lab_worst_within(have, want, slack(l)), alone = bits_alone(l, s, have, q, k, v);
    for (int i = 0; i < 2 * n + 2; i++)
        l->mem->ops->free(l->mem, &block[i]);
    l->mem->ops->free(l->mem, &want);
    free(block);
    free(k);
    free(v);
    return isnan(alone) ? alone : off;
}
