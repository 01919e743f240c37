/* arith.cc - arithmetic as bad as a card's may be: see cuda_runtime.h. */
#include "cuda_runtime.h"

#include <algorithm>

namespace emu
{

/* `exact`, a function of `of`, some steps up or down. */
float off_by(float exact, float of, int steps)
{
    uint32_t bits = __float_as_uint(of), result = __float_as_uint(exact);
    if (!watched.inside || !std::isnormal(2 * exact) || std::fabs(exact) < 1e-35f || of == 0)
        return exact;
    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return __uint_as_float(result + bits % (2 * (unsigned)steps + 1) - (unsigned)steps);
}

/* Terms are brought to the largest exponent, with KEPT bits behind the point, and cut off there; so is
 * the sum. */
float tensor_sum(float sum, const float term[8])
{
    enum : unsigned { KEPT = 24, EXPONENT = 0x7f800000u };
    unsigned most = __float_as_uint(sum) & EXPONENT;
    for (int i = 0; i < 8; i++)
        most = std::max(most, __float_as_uint(term[i]) & (unsigned)EXPONENT);
    if (most == EXPONENT || most >> 23 <= KEPT) {
        for (int i = 0; i < 8; i++)
            sum += term[i];
        return sum;
    }
    const float unit = __uint_as_float(most - (KEPT << 23)),
                by = __uint_as_float(((254 + KEPT) << 23) - most);
    int all = (int)(sum * by);
    for (int i = 0; i < 8; i++)
        all += (int)(term[i] * by);
    int size = std::abs(all),
        beyond = size ? 8 - __builtin_clz((unsigned)size) : 0; /* bits that a float lacks */
    size = beyond > 0 ? size >> beyond << beyond : size;
    return (float)(all < 0 ? -size : size) * unit;
}

} // namespace emu
