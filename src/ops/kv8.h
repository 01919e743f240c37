/* kv8.h - row format of an 8-bit KV cache, shared by host and device.
 *
 *     codes    e4m3 [heads * d]     rounded as in f8.h
 *     scales   a byte s for each head
 *     zeros    padding to a multiple of 16 bytes, so that rows are read 16 bytes at a time
 *
 *     value = code * 2^(s - 247)                        0 if s is 0, NaN if s is 255
 *
 * s is the smallest exponent that scales the head's largest magnitude to 448 or below, limited to
 * 147..254: values up to 2^-110 become 0 and those beyond 448 * 2^7 are clamped to that. A head with an
 * infinity or NaN becomes NaN as a whole, so that the error is visible. Scales are powers of two, so every
 * dequantized value is exact in bf16. 247 is the exponent bias of f32 and bf16, 127, plus 120, by which it
 * exceeds the bias of e4m3: shifted to bf16's bit positions, a code times 2^(s - 127) is the value. */
#pragma once

#include "ops/f8.h"

enum { KV8_NAN = 255, KV8_MOST = 254, KV8_LEAST = 147, KV8_BIAS = 247 };

F8_FUNCTION int64_t kv8_cols(int64_t heads, int64_t d)
{
    return (heads * (d + 1) + 15) / 16 * 16;
}

/* Returns the scale of a head, from the largest magnitude of its values as f32 bits without sign. */
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

/* Returns the factor that dequantizes codes. */
F8_FUNCTION float kv8_factor(uint32_t scale)
{
    uint32_t u = scale == KV8_NAN ? 0x7fc00000u : scale == 0 ? 0 : (scale - 120) << 23;
    float by;
    memcpy(&by, &u, 4);
    return by;
}
