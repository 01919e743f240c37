/* norm.cuh - the gated norm of one group of one row by one block: alone (rows.cu) and fused after a
 * state space step (mamba.cu), with the same bits. */
#ifndef HOLORUN_CUDA_NORM_CUH
#define HOLORUN_CUDA_NORM_CUH

#include "device.cuh"

/* q = y silu(z); out = w q rsqrt(mean of q^2 + eps) over `size` elements.  out may be y. */
template <int THREADS, class T>
__device__ __forceinline__ void gated_norm_group(T *out, const T *y, const T *z, const float *w, int size,
                                                 float eps)
{
    float sum = 0;
    for (int c = threadIdx.x; c < size; c += THREADS) {
        float q = number(y[c]) * silu(number(z[c]));
        sum += q * q;
    }
    float r = 1.0f / sqrtf(block_sum(sum) / (float)size + eps);
    for (int c = threadIdx.x; c < size; c += THREADS)
        store(out + c, w[c] * (number(y[c]) * silu(number(z[c])) * r));
}

#endif
