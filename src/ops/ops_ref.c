/* ops_ref.c - the scalar reference: every operation as its equation, one output at a time.
 *
 * It specifies the results of the fast kernels and is the place to look up the meaning of an operation. */
#include "ops/ref.h"

/* Computes y[t] = E[ids[t]]. */
static void ref_embed(struct backend *b, struct tensor y, struct tensor table, const int32_t *ids)
{
    for (int64_t t = 0; t < y.rows; t++)
        for (int64_t c = 0; c < y.cols; c++)
            put(y, t, c, get(table, ids[t], c));
}

/* Computes y[t,n] (+)= epi( sum_k x[t,k] W[n,k] + bias[n] ). */
static void ref_linear(struct backend *b, struct tensor y, struct tensor x, const struct weight *w,
                       struct tensor bias, enum epilogue epi, enum accumulate mode)
{
    autofree float *row = xmalloc((unsigned long)x.cols + 1, sizeof *row);
    for (int64_t t = 0; t < y.rows; t++) {
        ref_row(w, x, t, row);
        for (int64_t n = 0; n < y.cols; n++) {
            float sum = 0;
            for (int64_t k = 0; k < x.cols; k++)
                sum += row[k] * ref_number(w, n, k);
            if (bias.data)
                sum += get(bias, 0, n);
            float v = epilogue(y, sum, epi);
            put(y, t, n, mode == ADD ? get(y, t, n) + rounded(y, v) : v);
        }
    }
    cpu_weight_read(w);
}

static void ref_rmsnorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float eps)
{
    for (int64_t t = 0; t < x.rows; t++) {
        double sum = 0;
        for (int64_t c = 0; c < x.cols; c++)
            sum += (double)get(x, t, c) * get(x, t, c);
        float r = 1.0f / sqrtf((float)(sum / (double)x.cols) + eps);
        for (int64_t c = 0; c < x.cols; c++)
            put(y, t, c, get(w, 0, c) * (get(x, t, c) * r));
    }
}

static void ref_layernorm(struct backend *b, struct tensor y, struct tensor x, struct tensor w,
                          struct tensor bias, float eps)
{
    for (int64_t t = 0; t < x.rows; t++) {
        double sum = 0, square = 0;
        for (int64_t c = 0; c < x.cols; c++)
            sum += get(x, t, c);
        double mean = sum / (double)x.cols;
        for (int64_t c = 0; c < x.cols; c++)
            square += (get(x, t, c) - mean) * (get(x, t, c) - mean);
        float r = 1.0f / sqrtf((float)(square / (double)x.cols) + eps);
        for (int64_t c = 0; c < x.cols; c++)
            put(y, t, c, (get(x, t, c) - (float)mean) * r * get(w, 0, c) + get(bias, 0, c));
    }
}

/* Computes q = y silu(z); out = w q rsqrt(mean of the group's q^2 + eps): the gate comes before the norm. */
static void ref_gated_norm(struct backend *b, struct tensor out, struct tensor y, struct tensor z,
                           struct tensor w, int groups, float eps)
{
    int64_t size = y.cols / groups;
    for (int64_t t = 0; t < y.rows; t++) {
        for (int64_t g = 0; g < groups; g++) {
            double sum = 0;
            for (int64_t c = g * size; c < (g + 1) * size; c++) {
                float q = get(y, t, c) * silu(get(z, t, c));
                sum += (double)q * q;
            }
            float r = 1.0f / sqrtf((float)(sum / (double)size) + eps);
            for (int64_t c = g * size; c < (g + 1) * size; c++)
                put(out, t, c, get(w, 0, c) * (get(y, t, c) * silu(get(z, t, c)) * r));
        }
    }
}

static void ref_add(struct backend *b, struct tensor h, struct tensor y)
{
    for (int64_t t = 0; t < h.rows; t++)
        for (int64_t c = 0; c < h.cols; c++)
            put(h, t, c, get(h, t, c) + get(y, t, c));
}

/* Computes Y[p][q][dr*2C + dc*C + ch] = X[2p+dr][2q+dc][ch]. */
static void ref_pixel_shuffle(struct backend *b, struct tensor y, struct tensor x, int g)
{
    int64_t channels = x.cols, half = g / 2;
    for (int64_t i = 0; i < y.rows; i++) {
        int64_t p = i / half, q = i % half;
        for (int64_t c = 0; c < y.cols; c++) {
            int64_t dr = c / (2 * channels), dc = c / channels % 2;
            put(y, i, c, get(x, (2 * p + dr) * g + 2 * q + dc, c % channels));
        }
    }
}

/* Computes the two neighbours in a line of `in` values from which output i of `out` is interpolated, edges
 * repeated. Returns the weight of the second. */
static float between(int i, int in, int out, int64_t at[2])
{
    float step = (float)in / (float)out, x = fmaxf(((float)i + 0.5f) * step - 0.5f, 0);
    at[0] = (int64_t)x;
    at[1] = at[0] + (at[0] < in - 1);
    return x - (float)at[0];
}

void tensor_resize_grid(struct tensor y, struct tensor table, int rows, int cols)
{
    int side = (int)lrint(sqrt((double)table.rows)), grid = rows > cols ? rows : cols;
    int64_t r[2], q[2];
    for (int i = 0; i < rows * cols; i++) {
        float fy = between(i / cols, side, grid, r), fx = between(i % cols, side, grid, q);
        for (int64_t c = 0; c < y.cols; c++) {
            float above =
                (1 - fx) * get(table, r[0] * side + q[0], c) + fx * get(table, r[0] * side + q[1], c);
            float below =
                (1 - fx) * get(table, r[1] * side + q[0], c) + fx * get(table, r[1] * side + q[1], c);
            put(y, i, c, (1 - fy) * above + fy * below);
        }
    }
}

static void ref_resize_grid(struct backend *b, struct tensor y, struct tensor table, int rows, int cols)
{
    tensor_resize_grid(y, table, rows, cols);
}

/* Computes the two neighbours of position i of n, aligned at the corners of a line of `side` values.
 * Returns the weight of the second. */
static float corner_aligned(int64_t i, int64_t n, int64_t side, int64_t at[2])
{
    float x = n > 1 ? (float)i * ((float)(side - 1) / (float)(n - 1)) : 0;
    at[0] = (int64_t)x < side - 1 ? (int64_t)x : side - 1;
    at[1] = at[0] + (at[0] < side - 1);
    return x - (float)at[0];
}

static void ref_sample_grid(struct backend *b, struct tensor y, struct tensor table, int cols, int merge)
{
    int64_t side = lrint(sqrt((double)table.rows)), rows = y.rows / cols, across = cols / merge, r[2], q[2];
    for (int64_t i = 0; i < y.rows; i++) {
        int64_t block = i / (merge * merge), inside = i % (merge * merge);
        float fy = corner_aligned(block / across * merge + inside / merge, rows, side, r);
        float fx = corner_aligned(block % across * merge + inside % merge, cols, side, q);
        for (int64_t c = 0; c < y.cols; c++) {
            float v = (1 - fy) * (1 - fx) * get(table, r[0] * side + q[0], c);
            v += (1 - fy) * fx * get(table, r[0] * side + q[1], c);
            v += fy * (1 - fx) * get(table, r[1] * side + q[0], c);
            put(y, i, c, v + fy * fx * get(table, r[1] * side + q[1], c));
        }
    }
}

static double ref_probe(struct backend *b, enum dtype t, int64_t rounds)
{
    volatile float sink = 1;
    float sum = sink, factor = sink;
    for (int64_t i = 0; i < rounds; i++)
        sum = sum * factor + factor;
    sink = sum;
    return 2.0 * (double)rounds;
}

void ops_ref_fill(struct ops *o)
{
    o->embed = ref_embed;
    o->linear = ref_linear;
    o->rmsnorm = ref_rmsnorm;
    o->layernorm = ref_layernorm;
    o->gated_norm = ref_gated_norm;
    o->add = ref_add;
    o->pixel_shuffle = ref_pixel_shuffle;
    o->resize_grid = ref_resize_grid;
    o->sample_grid = ref_sample_grid;
    o->probe = ref_probe;
    ref_mamba_fill(o);
    ref_delta_fill(o);
    ref_attend_fill(o);
    ref_moe_fill(o);
    ref_quant_fill(o);
    ops_synthetic_fill(o);
    ops_kv8_fill(o);
}
