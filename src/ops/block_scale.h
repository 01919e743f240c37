/* block_scale.h - scale and minimum of a group of a block (quant.h), shared by host and device. A record's
 * words are described in quant.h. BLOCK_HALF converts an f16 to f32. */
#pragma once

#include "ops/quant.h"

#ifndef BLOCK_FUNCTION /* CUDA needs its own qualifiers */
#define BLOCK_FUNCTION static inline
#define BLOCK_HALF     f16_to_f32
#endif

/* Returns byte `at` of the scales that follow the first `skip` words. */
BLOCK_FUNCTION int block_byte(const uint16_t *record, int skip, int at)
{
    return record[skip + at / 2] >> at % 2 * 8 & 255;
}

BLOCK_FUNCTION struct blocks_scale block_scale(int format, const uint16_t *record, int group)
{
    float d = BLOCK_HALF(record[0]);
    struct blocks_scale s = {d, 0};
    switch (format) {
    case QUANT_Q8_0:
    case QUANT_Q8_16:
        break;
    case QUANT_Q4_1:
    case QUANT_Q5_1:
    case QUANT_Q4_16:
        s.low = BLOCK_HALF(record[1]);
        break;
    case QUANT_GPTQ:
        s.low = d * (float)record[1];
        break;
    case QUANT_Q6_K:
        s.scale = d * (float)(int8_t)block_byte(record, 1, group);
        break;
    default:
        s.scale = d * (float)block_byte(record, 2, group);
        s.low = BLOCK_HALF(record[1]) * (float)block_byte(record, 6, group);
    }
    return s;
}
