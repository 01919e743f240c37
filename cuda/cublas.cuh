/* cublas.cuh - matrix products of many rows, by NVIDIA's cuBLASLt. */
#ifndef HOLORUN_CUDA_CUBLAS_CUH
#define HOLORUN_CUDA_CUBLAS_CUH

#include "host.cuh"

struct cublas;

/* y[T,N] = or += factor x[T,K] w[N,K]^T; x and w bf16, y bf16 or f32, sums in f32.  Addresses and rows
 * are 16-byte aligned. */
void gemm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float factor,
          enum accumulate mode);

struct cublas *cublas_open();
void cublas_close(struct cublas *c);

/* Whether the library can be opened, and the message if not. */
bool cublas_here();
static const char *const cublas_missing = "libcublasLt.so.13 (or .12) is not found: install cuBLAS from "
                                          "NVIDIA's packages (libcublas-13-0), name its folder in "
                                          "LD_LIBRARY_PATH, or use --device cpu";

#endif
