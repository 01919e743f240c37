/* fuzz_tokenizer.c - byte 0 selects the rest: a tokenizer.json, or a text for a small tokenizer, whose
 * tokens must give the text again. */
#include "text/tokenizer.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tokenizer *small_tokenizer(void)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    buf_puts(&b, "{\"added_tokens\":[{\"id\":259,\"content\":\"<x>\"},{\"id\":260,\"content\":\"<x>\\n\"}],"
                 "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
                 "\"model\":{\"type\":\"BPE\",\"merges\":[\"a b\",\"ab ab\",\"a a\"],\"vocab\":{");
    int other = 0;
    for (int i = 0; i < 256; i++) {
        bool plain = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        char s[4];
        int n = utf8_encode(plain ? (uint32_t)i : 256 + (uint32_t)other++, s);
        buf_printf(&b, "\"%s%.*s\":%d,", i == '"' || i == '\\' ? "\\" : "", n, s, i);
    }
    buf_puts(&b, "\"ab\":256,\"abab\":257,\"aa\":258}}}");
    struct tokenizer *t = tokenizer_parse(b.data, b.len, NULL);
    buf_free(&b);
    return t;
}

static void encode(const struct tokenizer *t, const char *text, size_t size, bool special)
{
    struct tokens out = {0};
    struct buf back;
    buf_init(&back, size + 1);
    tokenizer_encode(t, text, size, special, &out);
    for (int64_t i = 0; i < out.n; i++) {
        size_t n;
        const char *s = tokenizer_bytes(t, out.ids[i], &n);
        buf_put(&back, s, n);
    }
    if (back.len != size || (size && memcmp(back.data, text, size)))
        __builtin_trap();
    buf_free(&back);
    tokens_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tokenizer *small;
    if (!small)
        small = small_tokenizer();
    if (!small)
        __builtin_trap();
    if (!size)
        return 0;
    const char *text = (const char *)data + 1;
    if (data[0] == '{') {
        struct tokenizer *t = tokenizer_parse((const char *)data, size, NULL);
        if (t) {
            struct tokens out = {0};
            tokenizer_encode(t, text, size - 1, true, &out);
            tokens_free(&out);
        }
        tokenizer_free(t);
    } else {
        encode(small, text, size - 1, data[0] & 1);
    }
    return 0;
}
