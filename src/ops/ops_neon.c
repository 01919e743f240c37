/* ops_neon.c - CPU kernels for NEON, which every 64-bit ARM processor has. */
#define VL           4
#define MR           4
#define KERNELS_FILL ops_neon_fill
#include "ops/kernels.h"
