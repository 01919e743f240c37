/* cublas.cuh - products of many rows: one function of NVIDIA's library. */
#ifndef HOLORUN_CUDA_CUBLAS_CUH
#define HOLORUN_CUDA_CUBLAS_CUH

#include "host.cuh"

struct cublas;

/* y[T,N] = factor x[T,K] w[N,K]^T, or y += that; x and w bf16, y bf16 or f32, sums in f32.  Everything begins at
 * multiples of 16 bytes, and so do rows. */
void gemm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float factor, enum accumulate mode);

struct cublas *cublas_open();
void cublas_close(struct cublas *c);

/* Whether the library can be opened; what to say when not. */
bool cublas_here();
static const char *const cublas_missing = "libcublasLt.so.13 (or .12) is not found: install cuBLAS from "
                                          "NVIDIA's packages (libcublas-13-0), name its folder in "
                                          "LD_LIBRARY_PATH, or use --device cpu";

#endif
