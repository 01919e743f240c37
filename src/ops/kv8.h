/* kv8.h - keys and values in 8 bits: what a row of such a cache holds, in one place for processors and devices.
 *
 *     codes    e4m3 [heads * d]     as f8.h rounds them
 *     scales   a byte s for each head
 *     zeros    up to a multiple of 16 bytes, so that rows are read 16 bytes at a time
 *
 *     value = code * 2^(s - 247)                        0 where s is 0, NaN where s is 255
 *
 * Of each head s is the least that brings its largest magnitude to 448 or below: from 147 to 254, so that numbers up
 * to 2^-110 become 0 and those beyond 448 * 2^7 become that.  A head that has an infinity or NaN is NaN as a whole, so that
 * it is seen.  Scales are powers of two because a value then is a number of bf16: whoever computes with it computes with
 * exactly what is stored.  247 is the bias of f32 and of bf16, 127, and what it is more than that of e4m3: moved to where
 * bf16 has its bits, a code times 2^(s - 127) is the value.
 */
#ifndef HOLORUN_OPS_KV8_H
#define HOLORUN_OPS_KV8_H

#include "ops/f8.h"

enum { KV8_NAN = 255, KV8_MOST = 254, KV8_LEAST = 147, KV8_BIAS = 247 };

F8_FUNCTION int64_t kv8_cols(int64_t heads, int64_t d)
{
    return (heads * (d + 1) + 15) / 16 * 16;
}

/* Of a head whose numbers, as the bits of f32 without sign, are at most these. */
F8_FUNCTION uint32_t kv8_scale(uint32_t most)
{
    uint32_t s =
        (most >> 23) - (127 + 8) + KV8_BIAS + ((most & 0x7fffffu) > 0x600000u); /* 448 is 1.75 * 2^8 */
    if (most >= 0x7f800000u)
        return KV8_NAN;
    if (most == 0)
        return 0;
    s = s < KV8_LEAST ? (uint32_t)KV8_LEAST : s;
    return s > KV8_MOST ? (uint32_t)KV8_MOST : s;
}

F8_FUNCTION uint8_t kv8_code(float v, uint32_t scale)
{
    uint32_t u = (2 * 127 + 120 - scale) << 23; /* 2^(247 - scale) */
    float by;
    memcpy(&by, &u, 4);
    return scale == 0 || scale == KV8_NAN ? 0 : f8_of(v * by);
}

/* What codes are multiplied with. */
F8_FUNCTION float kv8_factor(uint32_t scale)
{
    uint32_t u = scale == KV8_NAN ? 0x7fc00000u : scale == 0 ? 0 : (scale - 120) << 23;
    float by;
    memcpy(&by, &u, 4);
    return by;
}

#endif
