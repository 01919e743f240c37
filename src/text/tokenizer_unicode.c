/* tokenizer_unicode.c - replaces characters that PCRE2's tables do not contain yet.
 *
 * Models are trained with the split of Hugging Face tokenizers or tiktoken, whose regular expressions use
 * Unicode 16. PCRE2 10.42 uses Unicode 14, where newer letters are not letters. The expressions are
 * therefore given a replacement for each such character, one of the same general category and byte length,
 * and their matches are cut out of the original text. With a PCRE2 of Unicode 16 the splits are the same
 * with and without replacements. */
#include "text/tokenizer_impl.h"

#include "base/utf8.h"

enum category { LU, LL, LM, LO, MN, MC, ND, NO, PD, PO, SM, SO, CF, CATEGORIES };

/* Replacements of three and of four bytes, the same in all versions. */
static const uint32_t stand_ins[CATEGORIES][2] = {
    [LU] = {0x1e00, 0x10400}, [LL] = {0x1e01, 0x10428}, [LM] = {0x1d2c, 0x16f93}, [LO] = {0x1401, 0x10000},
    [MN] = {0x20d0, 0x1d167}, [MC] = {0x903, 0x1d165},  [ND] = {0x966, 0x1d7ce},  [NO] = {0x2460, 0x10107},
    [PD] = {0x2010, 0x10ead}, [PO] = {0x2020, 0x10100}, [SM] = {0x2200, 0x1d6c1}, [SO] = {0x2300, 0x1d000},
    [CF] = {0x2060, 0x1d173},
};

/* Ranges in which Unicode 16 differs from 14, in order; printed by tests/reference/make_unicode.py. */
static const struct char_range newer[] = {
    /* clang-format off */
    {0x897, 0x897, MN}, {0xcf3, 0xcf3, MC}, {0xece, 0xece, MN}, {0x1b4e, 0x1b4f, PO}, {0x1b7f, 0x1b7f, PO},
    {0x1c89, 0x1c89, LU}, {0x1c8a, 0x1c8a, LL}, {0x2427, 0x2429, SO}, {0x2ffc, 0x2fff, SO},
    {0x31e4, 0x31e5, SO}, {0x31ef, 0x31ef, SO}, {0xa7cb, 0xa7cc, LU}, {0xa7cd, 0xa7cd, LL},
    {0xa7da, 0xa7da, LU}, {0xa7db, 0xa7db, LL}, {0xa7dc, 0xa7dc, LU}, {0x105c0, 0x105f3, LO},
    {0x10d40, 0x10d49, ND}, {0x10d4a, 0x10d4d, LO}, {0x10d4e, 0x10d4e, LM}, {0x10d4f, 0x10d4f, LO},
    {0x10d50, 0x10d65, LU}, {0x10d69, 0x10d6d, MN}, {0x10d6e, 0x10d6e, PD}, {0x10d6f, 0x10d6f, LM},
    {0x10d70, 0x10d85, LL}, {0x10d8e, 0x10d8f, SM}, {0x10ec2, 0x10ec4, LO}, {0x10efc, 0x10eff, MN},
    {0x1123f, 0x11240, LO}, {0x11241, 0x11241, MN}, {0x11380, 0x11389, LO}, {0x1138b, 0x1138b, LO},
    {0x1138e, 0x1138e, LO}, {0x11390, 0x113b5, LO}, {0x113b7, 0x113b7, LO}, {0x113b8, 0x113ba, MC},
    {0x113bb, 0x113c0, MN}, {0x113c2, 0x113c2, MC}, {0x113c5, 0x113c5, MC}, {0x113c7, 0x113ca, MC},
    {0x113cc, 0x113cd, MC}, {0x113ce, 0x113ce, MN}, {0x113cf, 0x113cf, MC}, {0x113d0, 0x113d0, MN},
    {0x113d1, 0x113d1, LO}, {0x113d2, 0x113d2, MN}, {0x113d3, 0x113d3, LO}, {0x113d4, 0x113d5, PO},
    {0x113d7, 0x113d8, PO}, {0x113e1, 0x113e2, MN}, {0x116d0, 0x116e3, ND}, {0x1171e, 0x1171e, MC},
    {0x11b00, 0x11b09, PO}, {0x11bc0, 0x11be0, LO}, {0x11be1, 0x11be1, PO}, {0x11bf0, 0x11bf9, ND},
    {0x11f00, 0x11f01, MN}, {0x11f02, 0x11f02, LO}, {0x11f03, 0x11f03, MC}, {0x11f04, 0x11f10, LO},
    {0x11f12, 0x11f33, LO}, {0x11f34, 0x11f35, MC}, {0x11f36, 0x11f3a, MN}, {0x11f3e, 0x11f3f, MC},
    {0x11f40, 0x11f40, MN}, {0x11f41, 0x11f41, MC}, {0x11f42, 0x11f42, MN}, {0x11f43, 0x11f4f, PO},
    {0x11f50, 0x11f59, ND}, {0x11f5a, 0x11f5a, MN}, {0x1342f, 0x1342f, LO}, {0x13439, 0x1343f, CF},
    {0x13440, 0x13440, MN}, {0x13441, 0x13446, LO}, {0x13447, 0x13455, MN}, {0x13460, 0x143fa, LO},
    {0x16100, 0x1611d, LO}, {0x1611e, 0x16129, MN}, {0x1612a, 0x1612c, MC}, {0x1612d, 0x1612f, MN},
    {0x16130, 0x16139, ND}, {0x16d40, 0x16d42, LM}, {0x16d43, 0x16d6a, LO}, {0x16d6b, 0x16d6c, LM},
    {0x16d6d, 0x16d6f, PO}, {0x16d70, 0x16d79, ND}, {0x18cff, 0x18cff, LO}, {0x1b132, 0x1b132, LO},
    {0x1b155, 0x1b155, LO}, {0x1cc00, 0x1ccef, SO}, {0x1ccf0, 0x1ccf9, ND}, {0x1cd00, 0x1ceb3, SO},
    {0x1d2c0, 0x1d2d3, NO}, {0x1df25, 0x1df2a, LL}, {0x1e030, 0x1e06d, LM}, {0x1e08f, 0x1e08f, MN},
    {0x1e4d0, 0x1e4ea, LO}, {0x1e4eb, 0x1e4eb, LM}, {0x1e4ec, 0x1e4ef, MN}, {0x1e4f0, 0x1e4f9, ND},
    {0x1e5d0, 0x1e5ed, LO}, {0x1e5ee, 0x1e5ef, MN}, {0x1e5f0, 0x1e5f0, LO}, {0x1e5f1, 0x1e5fa, ND},
    {0x1e5ff, 0x1e5ff, PO}, {0x1f6dc, 0x1f6dc, SO}, {0x1f774, 0x1f776, SO}, {0x1f77b, 0x1f77f, SO},
    {0x1f7d9, 0x1f7d9, SO}, {0x1f8b2, 0x1f8bb, SO}, {0x1f8c0, 0x1f8c1, SO}, {0x1fa75, 0x1fa77, SO},
    {0x1fa87, 0x1fa89, SO}, {0x1fa8f, 0x1fa8f, SO}, {0x1faad, 0x1faaf, SO}, {0x1fabb, 0x1fabf, SO},
    {0x1fac6, 0x1fac6, SO}, {0x1face, 0x1facf, SO}, {0x1fada, 0x1fadc, SO}, {0x1fadf, 0x1fadf, SO},
    {0x1fae8, 0x1fae9, SO}, {0x1faf7, 0x1faf8, SO}, {0x1fbcb, 0x1fbef, SO}, {0x2b739, 0x2b739, LO},
    {0x2ebf0, 0x2ee5d, LO}, {0x31350, 0x323af, LO}
    /* clang-format on */
};

const struct char_range *char_range_find(const struct char_range *table, size_t n, uint32_t c)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c > table[mid].last)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && c >= table[lo].first ? &table[lo] : NULL;
}

/* Returns the stand-in of a character, or 0. */
static uint32_t stand_in(uint32_t c)
{
    const struct char_range *r = char_range_find(newer, sizeof newer / sizeof *newer, c);
    return r ? stand_ins[r->category][c > 0xffff] : 0;
}

const char *tokenizer_known(const char *s, size_t n, struct buf *buf)
{
    const char *out = s;
    for (size_t i = 0; i < n; i++) {
        unsigned char lead = (unsigned char)s[i];
        uint32_t c, other;
        if (lead < 0xe0) /* the first newer character has three bytes */
            continue;
        int len = utf8_decode(s + i, n - i, &c);
        if (len > 2 && (other = stand_in(c))) {
            if (out == s) {
                buf_clear(buf);
                buf_put(buf, s, n);
                out = buf->data;
            }
            utf8_encode(other, buf->data + i);
        }
        i += len > 0 ? (size_t)len - 1 : 0;
    }
    return out;
}
