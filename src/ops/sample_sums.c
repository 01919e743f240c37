/* sample_sums.c - passes over a row of logits, scalar and vectorized (sample_sums.h).
 *
 * A block is 64 ids, one word of the set; blocks without an id are skipped. The plain variant is the
 * definition. The vector variants share their loop over the blocks, compiled for each instruction set:
 * most of it is plain C that the compiler vectorizes, the weights are intrinsics of x86. */
#include "ops/sample_sums.h"
#include "ops/sampling.h"

#include <math.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { BLOCK = 64, LANES = 16 };

#define BODY   static inline __attribute__((always_inline))
#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512dq")))

/* ---- plain: one id at a time --------------------------------------------------------------------------- */

static bool has(const uint64_t *set, const uint64_t *also, int id)
{
    return sampling_has(set, id) && (!also || sampling_has(also, id));
}

static float plain_largest(const float *logits, int n, const uint64_t *set, const uint64_t *also)
{
    float best = -INFINITY;
    for (int i = 0; i < n; i++) {
        if (!has(set, also, i))
            continue;
        if (isnan(logits[i]))
            return NAN;
        if (logits[i] > best)
            best = logits[i];
    }
    return best;
}

static int32_t plain_first(const float *logits, int n, const uint64_t *set, const uint64_t *also, float logit)
{
    for (int i = 0; i < n; i++)
        if (logits[i] == logit && has(set, also, i))
            return i;
    return -1;
}

static uint64_t plain_mass(const float *logits, int n, const uint64_t *set, const uint64_t *also,
                           float largest, double rate)
{
    uint64_t mass = 0;
    for (int i = 0; i < n; i++)
        if (has(set, also, i))
            mass += sampling_weight(sampling_fall(largest - logits[i], rate));
    return mass;
}

static int plain_from(const float *logits, int n, const uint64_t *set, const uint64_t *also, float least,
                      int32_t *ids)
{
    int k = 0;
    for (int i = 0; i < n; i++)
        if (logits[i] >= least && has(set, also, i))
            ids[k++] = i;
    return k;
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

BODY uint64_t ids_of(const uint64_t *set, const uint64_t *also, int at)
{
    return also ? set[at / BLOCK] & also[at / BLOCK] : set[at / BLOCK];
}

/* Pads a block with n ids at the end of a row. */
BODY const float *whole_block(float buf[BLOCK], const float *logits, int n)
{
    if (n >= BLOCK)
        return logits;
    for (int i = 0; i < BLOCK; i++)
        buf[i] = i < n ? logits[i] : -INFINITY;
    return buf;
}

/* Returns the next block with an id, and its ids; advances *at. NULL: none is left. */
BODY const float *next_block(const float *logits, int n, const uint64_t *set, const uint64_t *also, int *at,
                             uint64_t *ids, float buf[BLOCK])
{
    for (int here = *at; here < n; here += BLOCK)
        if ((*ids = ids_of(set, also, here))) {
            *at = here + BLOCK;
            return whole_block(buf, logits + here, n - here);
        }
    return NULL;
}

BODY float block_walk_largest(const float *logits, int n, const uint64_t *set, const uint64_t *also)
{
    float lanes[LANES], buf[BLOCK], best = -INFINITY;
    uint64_t ids;
    int nans = 0, at = 0;
    for (int k = 0; k < LANES; k++)
        lanes[k] = -INFINITY;
    for (const float *x; (x = next_block(logits, n, set, also, &at, &ids, buf));)
        for (int i = 0; i < BLOCK; i += LANES)
            for (int k = 0; k < LANES; k++) {
                float v = (ids >> i & 0xffff) >> k & 1 ? x[i + k] : -INFINITY;
                lanes[k] = v > lanes[k] ? v : lanes[k];
                nans |= v != v;
            }
    for (int k = 0; k < LANES; k++)
        best = lanes[k] > best ? lanes[k] : best;
    return nans ? NAN : best;
}

BODY int32_t block_walk_first(const float *logits, int n, const uint64_t *set, const uint64_t *also,
                              float logit)
{
    int at = 0;
    for (; at + BLOCK <= n; at += BLOCK) {
        int any = 0;
        for (int i = 0; i < BLOCK; i++)
            any |= logits[at + i] == logit;
        for (int i = at; any && i < at + BLOCK; i++)
            if (logits[i] == logit && has(set, also, i))
                return i;
    }
    for (; at < n; at++)
        if (logits[at] == logit && has(set, also, at))
            return at;
    return -1;
}

BODY int block_walk_from(const float *logits, int n, const uint64_t *set, const uint64_t *also, float least,
                         int32_t *ids)
{
    int k = 0;
    for (int at = 0; at < n; at += BLOCK) {
        int end = n - at < BLOCK ? n : at + BLOCK, any = n - at < BLOCK;
        for (int i = 0; i < BLOCK && end - at == BLOCK; i++)
            any |= logits[at + i] >= least;
        for (int i = at; any && i < end; i++)
            if (logits[i] >= least && has(set, also, i))
                ids[k++] = i;
    }
    return k;
}

#ifdef __x86_64__

/* ---- weights ------------------------------------------------------------------------------------------- */

/* Computes sampling_weight()'s polynomial for each lane; `mul` etc. belong to one instruction set. A fall
 * of SAMPLING_DEPTH halvings shifts all bits out, so no comparison is needed. */
#define WEIGHT(I, fall, shifted)                                                                             \
    ({                                                                                                       \
        static const uint32_t terms[] = {5712048, 41304489, 238387495, 1031764939, 2977044471u};             \
        I##_t f = I##_shl(fall, 32 - SAMPLING_STEPS);                                                        \
        I##_t q = I##_sub(I##_all(639488), I##_shr(I##_mul(f, I##_all(48550)), 32));                         \
        for (size_t t = 0; t < sizeof terms / sizeof *terms; t++)                                            \
            q = I##_sub(I##_all(terms[t]), I##_shr(I##_mul(f, q), 32));                                      \
        q = I##_sub(I##_all((int64_t)1 << 32), I##_shr(I##_mul(f, q), 32));                                  \
        shifted(I##_shl(q, 8), I##_shr(fall, SAMPLING_STEPS));                                               \
    })

#define v8_t   __m512i
#define v8_shl _mm512_slli_epi64
#define v8_shr _mm512_srli_epi64
#define v8_mul _mm512_mul_epu32
#define v8_sub _mm512_sub_epi64
#define v8_all _mm512_set1_epi64

AVX512 static inline __m512i block_falls_avx512(const float *x, __m512 largest, __m512d rate)
{
    __m256 below = _mm256_sub_ps(_mm512_castps512_ps256(largest), _mm256_loadu_ps(x));
    __m512d fall = _mm512_mul_pd(_mm512_cvtps_pd(below), rate);
    return _mm512_cvttpd_epu64(_mm512_min_pd(fall, _mm512_set1_pd((double)SAMPLING_NOTHING)));
}

AVX512 static uint64_t avx512_mass(const float *logits, int n, const uint64_t *set, const uint64_t *also,
                                   float largest, double rate)
{
    __m512i mass = _mm512_setzero_si512();
    float buf[BLOCK];
    uint64_t ids;
    int at = 0;
    for (const float *x; (x = next_block(logits, n, set, also, &at, &ids, buf));)
        for (int i = 0; i < BLOCK; i += 8) {
            __m512i fall = block_falls_avx512(x + i, _mm512_set1_ps(largest), _mm512_set1_pd(rate));
            mass =
                _mm512_mask_add_epi64(mass, (__mmask8)(ids >> i), mass, WEIGHT(v8, fall, _mm512_srlv_epi64));
        }
    return (uint64_t)_mm512_reduce_add_epi64(mass);
}

#define v4_t   __m256i
#define v4_shl _mm256_slli_epi64
#define v4_shr _mm256_srli_epi64
#define v4_mul _mm256_mul_epu32
#define v4_sub _mm256_sub_epi64
#define v4_all _mm256_set1_epi64x

/* Computes fall(l) of sampling.h. AVX2 converts to 32 bits only, so halvings and steps are separate. */
AVX2 static inline __m256i block_falls_avx2(const float *x, __m128 largest, __m256d rate)
{
    const __m256d one = _mm256_set1_pd(1 << SAMPLING_STEPS),
                  part = _mm256_set1_pd(1.0 / (1 << SAMPLING_STEPS));
    __m256d fall = _mm256_mul_pd(_mm256_cvtps_pd(_mm_sub_ps(largest, _mm_loadu_ps(x))), rate);
    fall = _mm256_min_pd(fall, _mm256_set1_pd((double)SAMPLING_NOTHING));
    __m128i halvings = _mm256_cvttpd_epi32(_mm256_mul_pd(fall, part));
    __m256d rest = _mm256_sub_pd(fall, _mm256_mul_pd(_mm256_cvtepi32_pd(halvings), one));
    return _mm256_or_si256(_mm256_slli_epi64(_mm256_cvtepu32_epi64(halvings), SAMPLING_STEPS),
                           _mm256_cvtepu32_epi64(_mm256_cvttpd_epi32(rest)));
}

AVX2 static uint64_t avx2_mass(const float *logits, int n, const uint64_t *set, const uint64_t *also,
                               float largest, double rate)
{
    const __m256i lane = _mm256_set_epi64x(8, 4, 2, 1);
    __m256i mass = _mm256_setzero_si256();
    float buf[BLOCK];
    uint64_t ids;
    int at = 0;
    for (const float *x; (x = next_block(logits, n, set, also, &at, &ids, buf));)
        for (int i = 0; i < BLOCK; i += 4) {
            __m256i fall = block_falls_avx2(x + i, _mm_set1_ps(largest), _mm256_set1_pd(rate));
            __m256i in = _mm256_and_si256(_mm256_set1_epi64x((int64_t)(ids >> i)), lane);
            __m256i w = WEIGHT(v4, fall, _mm256_srlv_epi64);
            mass = _mm256_add_epi64(mass, _mm256_and_si256(w, _mm256_cmpeq_epi64(in, lane)));
        }
    uint64_t sum[4];
    _mm256_storeu_si256((__m256i *)(void *)sum, mass);
    return sum[0] + sum[1] + sum[2] + sum[3];
}

#endif

/* ---- selection ----------------------------------------------------------------------------------------- */

#define WALKS_FOR(isa, features)                                                                             \
    features static float isa##_largest(const float *logits, int n, const uint64_t *set,                     \
                                        const uint64_t *also)                                                \
    {                                                                                                        \
        return block_walk_largest(logits, n, set, also);                                                     \
    }                                                                                                        \
    features static int32_t isa##_first(const float *logits, int n, const uint64_t *set,                     \
                                        const uint64_t *also, float logit)                                   \
    {                                                                                                        \
        return block_walk_first(logits, n, set, also, logit);                                                \
    }                                                                                                        \
    features static int isa##_from(const float *logits, int n, const uint64_t *set, const uint64_t *also,    \
                                   float least, int32_t *ids)                                                \
    {                                                                                                        \
        return block_walk_from(logits, n, set, also, least, ids);                                            \
    }

#ifdef __x86_64__
WALKS_FOR(avx2, AVX2)
WALKS_FOR(avx512, AVX512)

const struct sample_sums *sample_sums(int k)
{
    static const struct sample_sums forms[] = {
        {"plain", plain_largest, plain_first, plain_mass, plain_from},
        {"avx2", avx2_largest, avx2_first, avx2_mass, avx2_from},
        {"avx512", avx512_largest, avx512_first, avx512_mass, avx512_from}};
    bool avx2 = __builtin_cpu_supports("avx2");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return k <= avx2 + avx512 ? &forms[k] : NULL;
}
#else
WALKS_FOR(blocks, )

const struct sample_sums *sample_sums(int k)
{
    static const struct sample_sums forms[] = {
        {"plain", plain_largest, plain_first, plain_mass, plain_from},
        {"blocks", blocks_largest, blocks_first, plain_mass, blocks_from}};
    return k <= 1 ? &forms[k] : NULL;
}
#endif

const struct sample_sums *sample_sums_here(void)
{
    const struct sample_sums *best = sample_sums(0);
    for (int k = 1; sample_sums(k); k++)
        best = sample_sums(k);
    return best;
}
