/* kernels.c - what a training step does between its matrix products, one pass over memory each.
 *
 * Products run in bf16 at about 1000 GFLOP/s a core where the processor has tiles for them; then the
 * library's softmax, GELU, norms and copies take most of a step.  These loops are written so that gcc
 * turns them into vector code (-O3 -march=native -ffast-math); each is checked against torch by tower.py.
 * A `half` is bf16 or fp32, see half.h.  One thread: workers are processes.
 */
#include "half.h"

/* e^x for x <= 88, relative error below 1e-6; far below zero it is 0. */
static inline float fast_exp(float x)
{
    float z = x * 1.44269504f;
    z = z < -126 ? -126 : z;
    float n = rintf(z), f = (z - n) * 0.69314718f;
    float p = 1 + f * (1 + f * (0.5f + f * (0.16666667f + f * (0.041666668f + f * 0.0083333f))));
    int32_t bits;
    memcpy(&bits, &p, 4);
    bits += (int32_t)n << 23;
    memcpy(&p, &bits, 4);
    return p;
}

/* x += delta (unless NULL), u = (x - mean) / deviation, rdev = 1 / deviation; d columns. */
void add_norm(float *restrict x, const half *restrict delta, half *restrict u, float *restrict rdev,
              int64_t rows, int64_t d, float eps)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * d, sum = 0, square = 0;
        half *out = u + r * d;
        if (delta)
            for (int64_t i = 0; i < d; i++)
                row[i] += one(delta[r * d + i]);
        for (int64_t i = 0; i < d; i++)
            sum += row[i];
        float mean = sum / (float)d;
        for (int64_t i = 0; i < d; i++)
            square += (row[i] - mean) * (row[i] - mean);
        float s = 1 / sqrtf(square / (float)d + eps);
        rdev[r] = s;
        for (int64_t i = 0; i < d; i++)
            out[i] = back_to((row[i] - mean) * s);
    }
}

/* dx += the norm's way back of du; and dx as half for the products that come next. */
void norm_back(float *restrict dx, const half *restrict du, const half *restrict u,
               const float *restrict rdev, half *restrict dxh, int64_t rows, int64_t d)
{
    for (int64_t r = 0; r < rows; r++) {
        const half *g = du + r * d, *h = u + r * d;
        float a = 0, b = 0;
        for (int64_t i = 0; i < d; i++) {
            a += one(g[i]);
            b += one(g[i]) * one(h[i]);
        }
        a /= (float)d;
        b /= (float)d;
        for (int64_t i = 0; i < d; i++) {
            float v = dx[r * d + i] + rdev[r] * (one(g[i]) - a - one(h[i]) * b);
            dx[r * d + i] = v;
            dxh[r * d + i] = back_to(v);
        }
    }
}

/* qkv [B*n, 3*H*p] -> q (times scale), k, v, each [B, H, n, p]. */
void split_heads(const half *restrict qkv, half *restrict q, half *restrict k, half *restrict v, int64_t B,
                 int64_t n, int64_t H, int64_t p, float scale)
{
    int64_t w = 3 * H * p;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t t = 0; t < n; t++) {
                const half *from = qkv + (b * n + t) * w + h * p;
                int64_t to = ((b * H + h) * n + t) * p;
                for (int64_t i = 0; i < p; i++)
                    q[to + i] = back_to(one(from[i]) * scale);
                memcpy(k + to, from + H * p, (size_t)p * sizeof(half));
                memcpy(v + to, from + 2 * H * p, (size_t)p * sizeof(half));
            }
}

void join_heads(const half *restrict q, const half *restrict k, const half *restrict v, half *restrict qkv,
                int64_t B, int64_t n, int64_t H, int64_t p, float scale)
{
    int64_t w = 3 * H * p;
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t t = 0; t < n; t++) {
                half *to = qkv + (b * n + t) * w + h * p;
                int64_t from = ((b * H + h) * n + t) * p;
                for (int64_t i = 0; i < p; i++)
                    to[i] = back_to(one(q[from + i]) * scale);
                memcpy(to + H * p, k + from, (size_t)p * sizeof(half));
                memcpy(to + 2 * H * p, v + from, (size_t)p * sizeof(half));
            }
}

/* y [B, H, n, p] <-> [B*n, H*p]; `back` goes from rows to heads. */
void turn_heads(const half *restrict from, half *restrict to, int64_t B, int64_t n, int64_t H, int64_t p,
                int back)
{
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t t = 0; t < n; t++) {
                int64_t heads = ((b * H + h) * n + t) * p, rows = (b * n + t) * H * p + h * p;
                memcpy(to + (back ? heads : rows), from + (back ? rows : heads), (size_t)p * sizeof(half));
            }
}

/* Rows of n scores become weights, in place; n <= 4160, a table full of patches and what stands before them. */
void softmax(half *restrict s, int64_t rows, int64_t n)
{
    float e[4160];
    for (int64_t r = 0; r < rows; r++) {
        half *row = s + r * n;
        float top = -1e30f, sum = 0;
        for (int64_t i = 0; i < n; i++) {
            e[i] = one(row[i]);
            top = e[i] > top ? e[i] : top;
        }
        for (int64_t i = 0; i < n; i++) {
            e[i] = fast_exp(e[i] - top);
            sum += e[i];
        }
        float share = 1 / sum;
        for (int64_t i = 0; i < n; i++)
            row[i] = back_to(e[i] * share);
    }
}

/* dp becomes ds = p (dp - sum dp p), in place. */
void softmax_back(half *restrict dp, const half *restrict p, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        half *g = dp + r * n;
        const half *w = p + r * n;
        float sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += one(g[i]) * one(w[i]);
        for (int64_t i = 0; i < n; i++)
            g[i] = back_to(one(w[i]) * (one(g[i]) - sum));
    }
}

/* Phi(x) and the slope of x Phi(x) as odd polynomials, |x| <= 4 (beyond it the ends): absolute errors
 * 2.5e-5 and 7e-5, far below
 * what bf16 keeps, and a third of the time of the exact form. */
static inline float within4(float x)
{
    return x > 4 ? 4 : x < -4 ? -4 : x;
}

static inline float normal(float x)
{
    float y = within4(x), z = y * y;
    return 0.5f +
           y * (0.398832912f +
                z * (-0.0661411744f +
                     z * (0.0096417153f +
                          z * (-0.0010412958f +
                               z * (7.96099747e-05f +
                                    z * (-4.01422155e-06f + z * (1.1809647e-07f - z * 1.52048009e-09f)))))));
}

static inline float slope(float x)
{
    float y = within4(x), z = y * y;
    return 0.5f + y * (0.797564812f +
                       z * (-0.264691742f +
                            z * (0.0583377758f +
                                 z * (-0.00866971796f +
                                      z * (0.000897597986f +
                                           z * (-6.38059045e-05f +
                                                z * (2.95072287e-06f +
                                                     z * (-7.94124051e-08f + z * 9.38745919e-10f))))))));
}

void gelu(const half *restrict a, half *restrict g, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = one(a[i]);
        g[i] = back_to(x * normal(x));
    }
}

/* dg becomes da, in place. */
void gelu_back(half *restrict dg, const half *restrict a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dg[i] = back_to(one(dg[i]) * slope(one(a[i])));
}

/* sums[c] += the column's sum, `rows` rows of `cols` <= 4096. */
void column_sums(const half *restrict y, float *restrict sums, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            sums[c] += one(y[r * cols + c]);
}

/* A crop of a picture [h, w, 3] at (x, y), rows x cols patches of 16: normalised patches [rows*cols, 768],
 * column
 * channel*256 + y*16 + x.  Channel c is taken from channel from[c], as value * gain[c] + shift[c]. */
void cut_patches(const uint8_t *restrict rgb, int64_t w, int64_t x, int64_t y, int64_t rows, int64_t cols,
                 const int64_t *from, const float *gain, const float *shift, half *restrict out)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t q = 0; q < cols; q++)
            for (int64_t c = 0; c < 3; c++)
                for (int64_t i = 0; i < 16; i++) {
                    const uint8_t *line = rgb + ((y + r * 16 + i) * w + x + q * 16) * 3 + from[c];
                    half *to = out + ((r * cols + q) * 3 + c) * 256 + i * 16;
                    for (int64_t j = 0; j < 16; j++)
                        to[j] = back_to((float)line[j * 3] * gain[c] + shift[c]);
                }
}
