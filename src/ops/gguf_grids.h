/* gguf_grids.h - grids of the IQ formats. A word holds a grid row: 8 indices of 2 bits, or 4 indices of 4
 * bits. */
#ifndef HOLORUN_OPS_GGUF_GRIDS_H
#define HOLORUN_OPS_GGUF_GRIDS_H

#include <stdint.h>

extern const uint16_t gguf_grid_iq2_xxs[256], gguf_grid_iq2_xs[512], gguf_grid_iq2_s[1024];
extern const uint16_t gguf_grid_iq3_xxs[256], gguf_grid_iq3_s[512];
extern const uint16_t gguf_grid_iq1[2048];

#endif
