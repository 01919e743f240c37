/* f8.h - rounding to FP8 e4m3, shared by host and device.
 *
 * A value has 8 bits: sign, four bits of exponent with bias 7, three of mantissa.  Values from 2^-6 to 448
 * have three fractional bits, smaller ones are multiples of 2^-9.  e4m3 has one NaN per
 * sign, but not infinity. */
#pragma once

#include <stdint.h>
#include <string.h>

#ifndef F8_FUNCTION /* CUDA needs its own qualifiers */
#define F8_FUNCTION static inline
#endif

/* Rounds to nearest, ties to even; magnitudes above 448 become 448. */
F8_FUNCTION uint8_t f8_of(float f)
{
    uint32_t u, sum;
    memcpy(&u, &f, 4);
    uint32_t sign = u >> 24 & 0x80, size = u & 0x7fffffffu, code;
    float from_zero;
    memcpy(&from_zero, &size, 4);
    from_zero += 16384.0f; /* the last bit is worth 2^-9 */
    memcpy(&sum, &from_zero, 4);
    if (size > 0x7f800000u)
        code = 0x7f;
    else if (size > 0x43e00000u) /* 448 */
        code = 0x7e;
    else if (size < 0x3c800000u) /* 2^-6 */
        code = sum - 0x46800000u;
    else
        code = ((size + 0x7ffffu + (size >> 20 & 1)) >> 20) - (127 - 7) * 8;
    return (uint8_t)(sign | code);
}

/* The scaling of a row of activations in e4m3: codes are f8_of(value * each), and code * scale restores
 * the value. The largest magnitude becomes 448. A row so small that `each` would be infinite becomes zero;
 * a row with an infinity or NaN becomes NaN as a whole, so that the error is visible. */
struct f8_row {
    float each, scale;
};

F8_FUNCTION struct f8_row f8_row_of(float most)
{
    struct f8_row r = {0, 0};
    uint32_t bits, nan = 0x7fc00000u;
    memcpy(&bits, &most, 4);
    if (bits >= 0x7f800000u)
        memcpy(&r.scale, &nan, 4);
    else if (most > 2e-36f) { /* 448 / most is finite */
        r.each = 448.0f / most;
        r.scale = most / 448.0f;
    }
    return r;
}
