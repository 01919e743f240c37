/* kernels_amx.c - attention and the gradients of matrices with the tile unit (AMX), for processors that
 * have one.
 *
 * The library's batched products of 160 x 160 x 32 reach a sixth of the product rate and its products with a
 * transposed left side a third; here attention of one head is one pass, its scores in fp32 and in cache, read
 * from and written to where the rows lie.  Heads are 32 wide and sequences multiples of 32 long.
 *
 * A tile is 16 rows of 64 bytes.  dpbf16ps(C, A, B): C[i][j] += sum over r, e of A[i][2r+e] B[r][2j+e],
 * so that
 *   A   is 16 rows of 32 numbers as they lie in memory,
 * B   is `paired`: row r holds, for 16 columns j, the numbers of rows 2r and 2r+1 of the right side, side
 * by side.
 * Taken as 32-bit words, the transpose of a 16 x 16 block of A's kind is B of the transposed matrix, and the
 * transpose of a paired block is an A of the transposed matrix.
 */
#include "amx.h"

enum { P = 32 }; /* width of a head, and numbers in a tile's row */

/* One row of n scores to weights. */
static inline void weigh(float *s, bf16 *p, int64_t n, float scale)
{
    __m512 top = _mm512_loadu_ps(s), sum = _mm512_setzero_ps();
    for (int64_t i = 16; i < n; i += 16)
        top = _mm512_max_ps(top, _mm512_loadu_ps(s + i));
    __m512 most = _mm512_set1_ps(_mm512_reduce_max_ps(top)), by = _mm512_set1_ps(scale);
    for (int64_t i = 0; i < n; i += 16) {
        __m512 e = exp16(_mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(s + i), most), by));
        _mm512_storeu_ps(s + i, e);
        sum = _mm512_add_ps(sum, e);
    }
    __m512 one = _mm512_set1_ps(1 / _mm512_reduce_add_ps(sum));
    for (int64_t i = 0; i < n; i += 16)
        narrow(p + i, _mm512_mul_ps(_mm512_loadu_ps(s + i), one));
}

/* out[16][32] = sum over kk of rows A (stride in numbers) times paired tiles B; as bf16, stride in
 * numbers. */
static inline void rows_times(const bf16 *a, int64_t as, const word *b, int64_t steps, bf16 *out, int64_t os)
{
    float f[T * P] __attribute__((aligned(64)));
    tile_zero(0);
    tile_zero(1);
    for (int64_t kk = 0; kk < steps; kk++) {
        tile_load(4, a + kk * P, as * 2);
        tile_load(5, b + (2 * kk) * TILE, 64);
        tile_load(6, b + (2 * kk + 1) * TILE, 64);
        tile_product(0, 4, 5);
        tile_product(1, 4, 6);
    }
    tile_store(0, f, P * 4);
    tile_store(1, f + T, P * 4);
    for (int r = 0; r < T; r++) {
        narrow(out + r * os, _mm512_load_ps(f + r * P));
        narrow(out + r * os + T, _mm512_load_ps(f + r * P + T));
    }
}

/* s [16][n] fp32 = rows A (16 x 32) times the tiles of a transposed matrix. */
static inline void scores(const bf16 *a, int64_t as, const word *b, int64_t n, float *s)
{
    tile_load(4, a, as * 2);
    for (int64_t j = 0; j < n / T; j += 2) {
        tile_zero(0);
        tile_zero(1);
        tile_load(5, b + j * TILE, 64);
        tile_load(6, b + (j + 1) * TILE, 64);
        tile_product(0, 4, 5);
        tile_product(1, 4, 6);
        tile_store(0, s + j * T, n * 4);
        tile_store(1, s + j * T + T, n * 4);
    }
}

/* qkv [B*n, 3*H*32] -> y [B*n, H*32]; the weights are kept in p [B*H, n, n]. */
void attend(const bf16 *qkv, bf16 *p, bf16 *y, int64_t B, int64_t n, int64_t H, float scale)
{
    static __thread void *mine;
    static __thread size_t have;
    struct config old;
    enter(&old);
    int64_t d = H * P, w = 3 * d;
    word *kt = room(&mine, &have, (size_t)(n / T * TILE + n / P * 2 * TILE) * 4 + (size_t)(T * n) * 4),
         *vp = kt + n / T * TILE;
    float *s = (float *)(vp + n / P * 2 * TILE);
    for (int64_t u = 0; u < B * H; u++) {
        const bf16 *q = qkv + u / H * n * w + u % H * P, *k = q + d, *v = q + 2 * d;
        for (int64_t j = 0; j < n / T; j++)
            turn((const word *)(k + j * T * w), w / 2, kt + j * TILE, T);
        for (int64_t j = 0; j < n / P; j++)
            pair(v + j * P * w, w, vp + 2 * j * TILE, vp + (2 * j + 1) * TILE);
        for (int64_t i = 0; i < n; i += T) {
            bf16 *row = p + (u * n + i) * n;
            scores(q + i * w, w, kt, n, s);
            for (int64_t r = 0; r < T; r++)
                weigh(s + r * n, row + r * n, n, scale);
            rows_times(row, n, vp, n / P, y + (u / H * n + i) * d + u % H * P, d);
        }
    }
    leave(&old);
}

/* The transposed product: out[n][32] (stride in numbers) = sum over queries of left[q][32] right[q][n];
 * `lt` holds the left side's
 * transposed tiles (2 a step), `right` [n][n] row by row. */
static inline void transposed(const word *lt, const bf16 *right, int64_t n, word *paired, bf16 *out,
                              int64_t os)
{
    float f[4 * TILE] __attribute__((aligned(64))), g[TILE] __attribute__((aligned(64)));
    for (int64_t j = 0; j < n; j += P) {
        for (int64_t kk = 0; kk < n / P; kk++)
            pair(right + kk * P * n + j, n, paired + 2 * kk * TILE, paired + (2 * kk + 1) * TILE);
        tile_zero(0);
        tile_zero(1);
        tile_zero(2);
        tile_zero(3);
        for (int64_t kk = 0; kk < n / P; kk++) {
            tile_load(4, lt + 2 * kk * TILE, 64);
            tile_load(5, lt + (2 * kk + 1) * TILE, 64);
            tile_load(6, paired + 2 * kk * TILE, 64);
            tile_load(7, paired + (2 * kk + 1) * TILE, 64);
            tile_product(0, 4, 6);
            tile_product(1, 5, 6);
            tile_product(2, 4, 7);
            tile_product(3, 5, 7);
        }
        tile_store(0, f, 64);
        tile_store(1, f + TILE, 64);
        tile_store(2, f + 2 * TILE, 64);
        tile_store(3, f + 3 * TILE, 64);
        for (int t = 0; t < 4; t++) {
            turn((const word *)(f + t * TILE), T, (word *)g, T);
            for (int r = 0; r < T; r++)
                narrow(out + (j + t / 2 * T + r) * os + t % 2 * T, _mm512_load_ps(g + r * T));
        }
    }
}

/* Tiles of the transpose of 32 columns: two tiles for every 32 rows. */
static inline void left_side(const bf16 *from, int64_t stride, int64_t n, word *lt)
{
    word a[TILE], b[TILE];
    for (int64_t kk = 0; kk < n / P; kk++) {
        pair(from + kk * P * stride, stride, a, b);
        turn(a, T, lt + 2 * kk * TILE, T);
        turn(b, T, lt + (2 * kk + 1) * TILE, T);
    }
}

/* The way back: dy [B*n, H*32] -> dqkv like qkv; p as attend left it. */
void attend_back(const bf16 *qkv, const bf16 *p, const bf16 *dy, bf16 *dqkv, int64_t B, int64_t n, int64_t H,
                 float scale)
{
    static __thread void *mine;
    static __thread size_t have;
    struct config old;
    enter(&old);
    int64_t d = H * P, w = 3 * d, tiles = n / T * TILE;
    word *vt = room(&mine, &have, (size_t)(5 * tiles) * 4 + (size_t)(T * n) * 4 + (size_t)(n * n) * 2),
         *kp = vt + tiles, *lq = kp + tiles, *lo = lq + tiles, *paired = lo + tiles;
    float *s = (float *)(paired + tiles);
    bf16 *ds = (bf16 *)(s + T * n);
    for (int64_t u = 0; u < B * H; u++) {
        const bf16 *q = qkv + u / H * n * w + u % H * P, *k = q + d, *v = q + 2 * d,
                   *go = dy + u / H * n * d + u % H * P, *weights = p + u * n * n;
        bf16 *dq = dqkv + u / H * n * w + u % H * P;
        for (int64_t j = 0; j < n / T; j++)
            turn((const word *)(v + j * T * w), w / 2, vt + j * TILE, T);
        for (int64_t j = 0; j < n / P; j++)
            pair(k + j * P * w, w, kp + 2 * j * TILE, kp + (2 * j + 1) * TILE);
        left_side(q, w, n, lq);
        left_side(go, d, n, lo);
        for (int64_t i = 0; i < n; i += T) {
            scores(go + i * d, d, vt, n, s);
            for (int64_t r = 0; r < T; r++) {
                const bf16 *a = weights + (i + r) * n;
                __m512 sum = _mm512_setzero_ps();
                for (int64_t c = 0; c < n; c += T)
                    sum = _mm512_fmadd_ps(wide(a + c), _mm512_loadu_ps(s + r * n + c), sum);
                __m512 own = _mm512_set1_ps(_mm512_reduce_add_ps(sum)), by = _mm512_set1_ps(scale);
                for (int64_t c = 0; c < n; c += T)
                    narrow(ds + (i + r) * n + c,
                           _mm512_mul_ps(_mm512_mul_ps(wide(a + c), by),
                                         _mm512_sub_ps(_mm512_loadu_ps(s + r * n + c), own)));
            }
            rows_times(ds + i * n, n, kp, n / P, dq + i * w, w);
        }
        transposed(lq, ds, n, paired, dq + d, w);
        transposed(lo, weights, n, paired, dq + 2 * d, w);
    }
    leave(&old);
}

/* g [m, k] fp32 += dy^T u, of dy [N, m] (rows `ld` numbers apart) and u [N, k]; N, m and k multiples of
 * 32. */
void matrix_grad(const bf16 *dy, int64_t ld, const bf16 *u, float *g, int64_t N, int64_t m, int64_t k)
{
    enum { CHUNK = 640 };
    static __thread void *mine;
    static __thread size_t have;
    struct config old;
    enter(&old);
    word *a = room(&mine, &have, (size_t)(CHUNK * (m + k)) * 2), *b = a + CHUNK * m / 2, x[TILE], y[TILE];
    for (int64_t first = 0; first < N; first += CHUNK) {
        int64_t rows = N - first < CHUNK ? N - first : CHUNK, steps = rows / P;
        for (int64_t i = 0; i < m; i += P)
            for (int64_t s = 0; s < steps; s++) {
                pair(dy + (first + s * P) * ld + i, ld, x, y);
                turn(x, T, a + (i / T * steps + s) * TILE, T);
                turn(y, T, a + ((i / T + 1) * steps + s) * TILE, T);
            }
        for (int64_t j = 0; j < k; j += P)
            for (int64_t s = 0; s < steps; s++)
                pair(u + (first + s * P) * k + j, k, b + (j / T * steps + s) * TILE,
                     b + ((j / T + 1) * steps + s) * TILE);
        for (int64_t i = 0; i < m / T; i += 2)
            for (int64_t j = 0; j < k / T; j += 2) {
                float *to = g + i * T * k + j * T;
                const word *a0 = a + i * steps * TILE, *a1 = a0 + steps * TILE, *b0 = b + j * steps * TILE,
                           *b1 = b0 + steps * TILE;
                tile_load(0, to, k * 4);
                tile_load(1, to + T, k * 4);
                tile_load(2, to + T * k, k * 4);
                tile_load(3, to + T * k + T, k * 4);
                for (int64_t s = 0; s < steps; s++) {
                    tile_load(4, a0 + s * TILE, 64);
                    tile_load(5, a1 + s * TILE, 64);
                    tile_load(6, b0 + s * TILE, 64);
                    tile_load(7, b1 + s * TILE, 64);
                    tile_product(0, 4, 6);
                    tile_product(1, 4, 7);
                    tile_product(2, 5, 6);
                    tile_product(3, 5, 7);
                }
                tile_store(0, to, k * 4);
                tile_store(1, to + T, k * 4);
                tile_store(2, to + T * k, k * 4);
                tile_store(3, to + T * k + T, k * 4);
            }
    }
    leave(&old);
}
