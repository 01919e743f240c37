/* ops_avx512.c - CPU kernels for AVX-512 (F, BW, VL, DQ). */
#define VL           16
#define MR           12
#define KERNELS_FILL ops_avx512_fill
#include "ops/kernels.h"
