/* amx.h - what the files with tile code share: 16 x 16 tiles, their forms, conversions.  See kernels_amx.c
 * for the forms.
 *
 * A processor without a tile unit but with bf16 products of vectors (AVX-512 BF16) runs the same code.  A sum
 * (tiles 0 to 3) is then 1 KiB of memory that stays in cache, a left side (4, 5) is packed unless it is
 * already, a right side (6, 7) is where it was loaded from, and a product of two tiles is 256 instructions on
 * sixteen registers. */
#ifndef POCKET_AMX_H
#define POCKET_AMX_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef uint16_t bf16;
typedef uint32_t word;
enum { T = 16, TILE = 256 };

#ifdef __AMX_BF16__
enum { REQUEST = 0x1023, TILE_DATA = 18 };
#define tile_zero    _tile_zero
#define tile_load    _tile_loadd
#define tile_store   _tile_stored
#define tile_product _tile_dpbf16ps

struct config {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} __attribute__((packed, aligned(64)));

/* 1: this machine can; asks the kernel for the tile unit's state when it is first needed. */
static inline int64_t amx_ready(void)
{
    static __thread int ready;
    if (!ready)
        ready = syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0 ? 1 : -1;
    return ready > 0;
}

/* All eight tiles full size.  The library remembers what it has configured, so that is put back
 * afterwards. */
static inline void enter(struct config *old)
{
    struct config c = {.palette = 1};
    if (!amx_ready())
        abort();
    for (int i = 0; i < 8; i++) {
        c.bytes[i] = 64;
        c.rows[i] = 16;
    }
    _tile_storeconfig(old);
    _tile_loadconfig(&c);
}

static inline void leave(const struct config *old)
{
    if (old->palette)
        _tile_loadconfig(old);
    else
        _tile_release();
}
#else
struct config {
    int none;
};

struct tiles {
    float sum[4][TILE] __attribute__((aligned(64)));
    word packed[2][TILE] __attribute__((aligned(64)));
    const word *at[8];
};

static struct tiles tiles; /* of the one thread; workers are processes */

static inline void enter(struct config *old)
{
    old->none = 0;
}

static inline void leave(const struct config *old)
{
    (void)old;
}

static inline void tile_zero(int t)
{
    memset(tiles.sum[t], 0, sizeof tiles.sum[t]);
}

/* Rows `stride` bytes apart. */
static inline void tile_load(int t, const void *from, int64_t stride)
{
    char *to = t < 4 ? (char *)tiles.sum[t] : (char *)tiles.packed[t & 1];
    tiles.at[t] = from;
    if (t >= 4 && stride == 64)
        return;
    for (int r = 0; r < T; r++)
        _mm512_store_si512(to + r * 64, _mm512_loadu_si512((const char *)from + r * stride));
    tiles.at[t] = (const word *)to;
}

static inline void tile_store(int t, void *to, int64_t stride)
{
    for (int r = 0; r < T; r++)
        _mm512_storeu_ps((char *)to + r * stride, _mm512_load_ps(tiles.sum[t] + r * T));
}

/* c += a b */
static inline void tile_product(int c, int a, int b)
{
    const word *left = tiles.at[a], *right = tiles.at[b];
    __m512 sum[T];
#pragma GCC unroll 16
    for (int i = 0; i < T; i++)
        sum[i] = _mm512_load_ps(tiles.sum[c] + i * T);
    for (int r = 0; r < T; r++) {
        __m512bh row = (__m512bh)_mm512_loadu_si512(right + r * T);
#pragma GCC unroll 16
        for (int i = 0; i < T; i++)
            sum[i] = _mm512_dpbf16_ps(sum[i], row, (__m512bh)_mm512_set1_epi32((int)left[i * T + r]));
    }
#pragma GCC unroll 16
    for (int i = 0; i < T; i++)
        _mm512_store_ps(tiles.sum[c] + i * T, sum[i]);
}
#endif

static inline void *room(void **mine, size_t *have, size_t want)
{
    if (*have < want) {
        free(*mine);
        *mine = aligned_alloc(64, (want + 63) / 64 * 64);
        *have = want;
    }
    return *mine;
}

/* to[c][r] = from[r][c], 16 x 16 words; strides in words. */
static inline void turn(const word *from, int64_t fs, word *to, int64_t ts)
{
    __m512i r[16], t[16], u[16];
    for (int i = 0; i < 16; i++)
        r[i] = _mm512_loadu_si512(from + i * fs);
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int g = 0; g < 16; g += 4) {
        u[g] = _mm512_unpacklo_epi64(t[g], t[g + 2]);
        u[g + 1] = _mm512_unpackhi_epi64(t[g], t[g + 2]);
        u[g + 2] = _mm512_unpacklo_epi64(t[g + 1], t[g + 3]);
        u[g + 3] = _mm512_unpackhi_epi64(t[g + 1], t[g + 3]);
    }
    for (int k = 0; k < 4; k++) {
        __m512i x0 = _mm512_shuffle_i32x4(u[k], u[4 + k], 0x88),
                x1 = _mm512_shuffle_i32x4(u[k], u[4 + k], 0xdd);
        __m512i y0 = _mm512_shuffle_i32x4(u[8 + k], u[12 + k], 0x88),
                y1 = _mm512_shuffle_i32x4(u[8 + k], u[12 + k], 0xdd);
        _mm512_storeu_si512(to + k * ts, _mm512_shuffle_i32x4(x0, y0, 0x88));
        _mm512_storeu_si512(to + (4 + k) * ts, _mm512_shuffle_i32x4(x1, y1, 0x88));
        _mm512_storeu_si512(to + (8 + k) * ts, _mm512_shuffle_i32x4(x0, y0, 0xdd));
        _mm512_storeu_si512(to + (12 + k) * ts, _mm512_shuffle_i32x4(x1, y1, 0xdd));
    }
}

/* 32 columns of 32 rows from `from` (stride in numbers) as two paired tiles. */
static inline void pair(const bf16 *from, int64_t stride, word *left, word *right)
{
    for (int r = 0; r < 16; r++) {
        __m512i a = _mm512_loadu_si512(from + 2 * r * stride),
                b = _mm512_loadu_si512(from + (2 * r + 1) * stride);
        __m512i al = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(a)),
                ah = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(a, 1));
        __m512i bl = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(b)),
                bh = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(b, 1));
        _mm512_storeu_si512(left + r * 16, _mm512_or_si512(al, _mm512_slli_epi32(bl, 16)));
        _mm512_storeu_si512(right + r * 16, _mm512_or_si512(ah, _mm512_slli_epi32(bh, 16)));
    }
}

static inline __m512 wide(const bf16 *p)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

static inline void narrow(bf16 *p, __m512 v)
{
    _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(v));
}

static inline __m512 exp16(__m512 x)
{
    __m512 z = _mm512_max_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), _mm512_set1_ps(-126));
    __m512 n = _mm512_roundscale_ps(z, 0),
           f = _mm512_mul_ps(_mm512_sub_ps(z, n), _mm512_set1_ps(0.69314718f));
    __m512 p = _mm512_set1_ps(0.0083333f);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.041666668f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.16666667f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1));
    return _mm512_scalef_ps(p, n);
}

#endif
