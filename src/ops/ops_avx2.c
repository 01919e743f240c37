/* ops_avx2.c - CPU kernels for AVX2 with FMA. */
#define VL           8
#define MR           6
#define KERNELS_FILL ops_avx2_fill
#include "ops/kernels.h"
