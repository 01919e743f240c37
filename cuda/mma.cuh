/* mma.cuh - tensor core instructions (mma.sync, ldmatrix) and asynchronous copies to shared memory.
 *
 * There is one function per instruction that C++ lacks. On the host (tests/emu) the same result is
 * computed from the values of all 32 lanes. All lanes of a warp must call these functions together.
 *
 * Fragments have the layout of the PTX ISA, with g = lane / 4 and t = lane % 4:
 *     A [16, 16]  a[0], a[1]: rows g and g + 8, columns 2t and 2t + 1;  a[2], a[3]: the same, columns + 8
 *     B [16, 8]   b[0], b[1]: rows 2t and 2t + 1, and these + 8, of column g
 *     D [16, 8]   d[0], d[1]: row g, columns 2t and 2t + 1;  d[2], d[3]: row g + 8
 * The lower half of a word is the element with the lower index. */
#pragma once

#include "device.cuh"

/* Packs two values rounded to bf16, with a in the lower half. */
__device__ __forceinline__ unsigned pack2(float a, float b)
{
#ifdef CUDA_EMULATED
    return bf16_of(a).bits | (unsigned)bf16_of(b).bits << 16;
#else
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    return r;
#endif
}

/* Splits a pair of floats into the sum of two bf16 pairs. */
__device__ __forceinline__ void split2(unsigned *most, unsigned *rest, float a, float b)
{
    *most = pack2(a, b);
    *rest = pack2(a - __uint_as_float(*most << 16), b - __uint_as_float(*most & 0xffff0000u));
}

/* Computes a b + c of bf16 pairs, rounded once. */
__device__ __forceinline__ unsigned fma2(unsigned a, unsigned b, unsigned c)
{
#ifdef CUDA_EMULATED
    unsigned r = 0;
    for (int i = 0; i < 32; i += 16)
        r |= (unsigned)bf16_of(__uint_as_float(a >> i << 16) * __uint_as_float(b >> i << 16) +
                               __uint_as_float(c >> i << 16))
                 .bits
             << i;
    return r;
#else
    unsigned r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
#endif
}

#ifdef CUDA_EMULATED
namespace emu
{
/* Returns element i of a fragment's words. */
inline float element(const unsigned char *words, int i)
{
    bf16 h;
    memcpy(&h, words + 2 * i, sizeof h);
    return number(h);
}
} // namespace emu
#endif

/* Computes d += A B of bf16 with sums in f32. */
__device__ __forceinline__ void mma_16816(float d[4], const unsigned a[4], const unsigned b[2])
{
#ifdef CUDA_EMULATED
    unsigned mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const unsigned char(*lanes)[64] = emu::exchange(mine, sizeof mine);
    int g = emu::here.lane / 4, t = emu::here.lane % 4;
    for (int i = 0; i < 4; i++)
        for (int half = 0; half < 2; half++) {
            float term[8];
            for (int k = 0; k < 8; k++)
                term[k] = emu::element(lanes[4 * g + k / 2], 2 * (half * 2 + i / 2) + k % 2) *
                          emu::element(lanes[4 * (2 * t + i % 2) + k / 2], 8 + 2 * half + k % 2);
            d[i] = emu::tensor_sum(d[i], term);
        }
#else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/* Loads four 8 x 8 matrices of bf16 from shared memory. Lane l gives the address of row l % 8 of matrix l
 * / 8 (16 bytes, aligned). r[m] is row g, columns 2t and 2t + 1 of matrix m; with TRANSPOSED, rows 2t and
 * 2t + 1 of column g. The "memory" clobber keeps earlier stores before the load. */
template <bool TRANSPOSED> __device__ __forceinline__ void load_matrices(unsigned r[4], const void *row)
{
#ifdef CUDA_EMULATED
    emu::watch_aligned(row, 16);
    const unsigned char(*lanes)[64] = emu::exchange(row, 16);
    int g = emu::here.lane / 4, t = emu::here.lane % 4;
    for (int m = 0; m < 4; m++) {
        unsigned char *to = reinterpret_cast<unsigned char *>(&r[m]);
        for (int i = 0; i < 2; i++)
            memcpy(to + 2 * i,
                   TRANSPOSED ? lanes[8 * m + 2 * t + i] + 2 * g : lanes[8 * m + g] + 2 * (2 * t + i), 2);
    }
#else
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
#endif
}

/* Transposes an 8 x 8 matrix of bf16. A lane has row g, columns 2t and 2t + 1. */
__device__ __forceinline__ unsigned transposed(unsigned v)
{
    unsigned r;
#ifdef CUDA_EMULATED
    const unsigned char(*lanes)[64] = emu::exchange(&v, sizeof v);
    int g = emu::here.lane / 4, t = emu::here.lane % 4;
    for (int i = 0; i < 2; i++)
        memcpy(reinterpret_cast<unsigned char *>(&r) + 2 * i, lanes[4 * (2 * t + i) + g / 2] + g % 2 * 2, 2);
#else
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(v));
#endif
    return r;
}

/* Combine the lower or the upper halves of two words, with a's half in the lower one. */
__device__ __forceinline__ unsigned lower_halves(unsigned a, unsigned b)
{
    return (a & 0xffffu) | b << 16;
}

__device__ __forceinline__ unsigned upper_halves(unsigned a, unsigned b)
{
    return a >> 16 | (b & 0xffff0000u);
}

/* Loads A [16, 16] of a row-major matrix in shared memory, with `pitch` elements between rows. */
__device__ __forceinline__ void load_a(unsigned a[4], const bf16 *at, int pitch)
{
    int lane = threadIdx.x % WARP;
    load_matrices<false>(a, at + lane % 16 * pitch + lane / 16 * 8);
}

/* Loads two adjacent B, b[0..1] and b[2..3], of a matrix stored transposed: rows n..n+15 of [N, K],
 * columns k..k+15. */
__device__ __forceinline__ void load_b_columns(unsigned b[4], const bf16 *at, int pitch)
{
    int lane = threadIdx.x % WARP;
    load_matrices<false>(b, at + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8);
}

/* Loads two adjacent B of a matrix [K, N]: rows k..k+15, columns n..n+15. */
__device__ __forceinline__ void load_b_rows(unsigned b[4], const bf16 *at, int pitch)
{
    int lane = threadIdx.x % WARP;
    load_matrices<true>(b, at + lane % 16 * pitch + lane / 16 * 8);
}

/* ---- asynchronous copies ------------------------------------------------------------------------------- */

/* Starts copying 16 bytes to shared memory; both addresses are 16-byte aligned. Writes zeros if `wanted`
 * is false (`from` must still be a valid address). Visible to this thread after copies_wait, to others
 * after a barrier. */
__device__ __forceinline__ void copy16(void *to, const void *from, bool wanted)
{
#ifdef CUDA_EMULATED
    emu::copy_later(to, from, 16, wanted ? 16 : 0);
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(wanted ? 16 : 0)
                 : "memory");
#endif
}

/* Ends a group of copies. */
__device__ __forceinline__ void copies_end()
{
#ifdef CUDA_EMULATED
    emu::copies_end();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most the latest GROUPS groups are incomplete. */
template <int GROUPS> __device__ __forceinline__ void copies_wait()
{
#ifdef CUDA_EMULATED
    emu::copies_wait(GROUPS);
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}
