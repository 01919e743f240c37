/* tokenizer_nfc.c - Unicode normal form C, as tokenizers with a normalizer "NFC" apply it before
 * splitting.
 *
 * GLib composes characters with the Unicode tables of the machine it runs on. Hugging Face tokenizers,
 * with which these models were trained, have tables of Unicode 9: there a newer combining mark is an
 * ordinary character, which does not move and does not combine. The text is therefore normalized in spans
 * between such characters, which are copied unchanged. Characters of Unicode 9 have not changed since, by
 * its stability policy, so the result is the same on every machine. */
#include "text/tokenizer_impl.h"

#include "base/utf8.h"

#include <glib.h>

/* Characters newer than Unicode 9 that combine, compose or decompose, in order; printed by
 * tests/reference/make_nfc.py. */
static const struct char_range newer[] = {
    /* clang-format off */
    {0x5c8, 0x5c9}, {0x7fd, 0x7fd}, {0x897, 0x89f}, {0x8ca, 0x8d3}, {0x9fe, 0x9fe}, {0xc3c, 0xc3c},
    {0xd3b, 0xd3c}, {0xeba, 0xeba}, {0x1715, 0x1715}, {0x1abf, 0x1af0}, {0x1df6, 0x1dfa}, {0xa82c, 0xa82c},
    {0x105d2, 0x105d2}, {0x105da, 0x105da}, {0x10d24, 0x10d27}, {0x10d69, 0x10d6d}, {0x10eab, 0x10eac},
    {0x10ecb, 0x10ecf}, {0x10ef0, 0x10efb}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85},
    {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x11382, 0x11382}, {0x11384, 0x11384}, {0x1138b, 0x1138b},
    {0x11390, 0x11390}, {0x113b8, 0x113b8}, {0x113bb, 0x113bb}, {0x113c2, 0x113c2}, {0x113c9, 0x113c9},
    {0x113ce, 0x113d0}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11930}, {0x11935, 0x11935},
    {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47},
    {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42},
    {0x1611e, 0x16122}, {0x16129, 0x16129}, {0x1612f, 0x1612f}, {0x16d63, 0x16d63}, {0x16d67, 0x16d67},
    {0x16d69, 0x16d69}, {0x16ff0, 0x16ff1}, {0x1d127, 0x1d128}, {0x1d250, 0x1d252}, {0x1d25b, 0x1d25c},
    {0x1d25f, 0x1d25f}, {0x1d280, 0x1d281}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae},
    {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1e5ee, 0x1e5ef}, {0x1e6e3, 0x1e6e3}, {0x1e6e6, 0x1e6e6},
    {0x1e6ee, 0x1e6ef}, {0x1e6f5, 0x1e6f5}
    /* clang-format on */
};

/* Returns whether the character is copied unchanged; also NUL, at which GLib would stop. */
static bool stands_alone(uint32_t c)
{
    return c == 0 || char_range_find(newer, sizeof newer / sizeof *newer, c);
}

/* Returns whether a text is certainly normalized: all characters are below U+0300, whose first byte is
 * 0xcc. */
static bool is_normal(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] >= 0xcc)
            return false;
    return true;
}

static void put_stretch(struct buf *out, const char *s, size_t n)
{
    char *composed = is_normal(s, n) ? NULL : g_utf8_normalize(s, (gssize)n, G_NORMALIZE_NFC);
    if (composed)
        buf_puts(out, composed);
    else
        buf_put(out, s, n);
    g_free(composed);
}

const char *tokenizer_nfc(const char *s, size_t *n, struct buf *buf)
{
    if (is_normal(s, *n))
        return s;
    buf_clear(buf);
    size_t from = 0;
    for (size_t i = 0; i < *n;) {
        uint32_t c;
        int len = utf8_decode(s + i, *n - i, &c);
        if (len <= 0)
            bug("text to normalise is not valid UTF-8");
        if (stands_alone(c)) {
            put_stretch(buf, s + from, i - from);
            buf_put(buf, s + i, (size_t)len);
            from = i + (size_t)len;
        }
        i += (size_t)len;
    }
    put_stretch(buf, s + from, *n - from);
    *n = buf->len;
    return buf->data;
}
