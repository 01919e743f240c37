/* arith.cc - arithmetic with the largest errors a GPU may have (see cuda_runtime.h). */
#include "cuda_runtime.h"

#include <algorithm>

namespace emu
{

/* Moves `exact` by up to `steps` units in the last place, depending on the argument `of`. */
float off_by(float exact, float of, int steps)
{
    uint32_t bits = __float_as_uint(of), result = __float_as_uint(exact);
    if (!watched.inside || !std::isnormal(2 * exact) || std::fabs(exact) < 1e-35f || of == 0)
        return exact;
    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return __uint_as_float(result + bits % (2 * (unsigned)steps + 1) - (unsigned)steps);
}

/* Adds like a tensor core: all terms are shifted to the largest exponent and truncated to KEPT bits behind
 * the point, and so is the sum. */
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
        beyond = size ? 8 - __builtin_clz((unsigned)size) : 0; /* bits that do not fit into a float */
    size = beyond > 0 ? size >> beyond << beyond : size;
    return (float)(all < 0 ? -size : size) * unit;
}

} // namespace emu
