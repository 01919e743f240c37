/* t_gguf.c - tests of the GGUF reader: parsed content, and error messages for damaged files. */
#include "check.h"
#include "gguf.h"

#include "base/gguf.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 24 };

/* Creates a file of two tensors with all kinds of values. */
static void make(struct buf *out)
{
    struct gguf g;
    const uint32_t ints[3] = {1, 2, (uint32_t)-3};
    const float floats[2] = {0.5f, -2};
    const int64_t matrix[2] = {3, 64}, vector[1] = {5};
    gguf_init(&g);
    gguf_text(&g, "general.architecture", "qwen35");
    gguf_int(&g, "count", 7);
    gguf_float(&g, "eps", 1e-6f);
    gguf_flag(&g, "on");
    gguf_ints(&g, "ints", ints, 3);
    gguf_floats(&g, "floats", floats, 2);
    gguf_texts(&g, "words", 3);
    gguf_item(&g, "ab", 2);
    gguf_item(&g, "", 0);
    gguf_item(&g, "c", 1);
    gguf_tensor(&g, "m", GGML_Q8_0, matrix, 2);
    gguf_tensor(&g, "v", GGML_F32, vector, 1);
    gguf_head(&g, out);
    for (uint64_t i = 0; i < g.at; i++)
        buf_putc(out, (char)i);
    gguf_free(&g);
}

static void t_reads(void **state)
{
    struct buf b;
    struct err e = ERR_INIT;
    make(&b);
    struct gguf_file *f = gguf_parse("a/b.gguf", b.data, b.len, &e);
    if (!f)
        fail_msg("%s", e.text);
    char *text = gguf_text_of(f, "general.architecture");
    assert_string_equal(text, "qwen35");
    free(text);
    assert_string_equal(gguf_name(f), "b.gguf");
    assert_true(gguf_number_of(f, "count", -1) == 7 && gguf_number_of(f, "on", -1) == 1);
    assert_true((float)gguf_number_of(f, "eps", -1) == 1e-6f && gguf_number_of(f, "absent", -1) == -1);
    assert_true(gguf_number_of(f, "ints", -1) == -1 && !gguf_text_of(f, "count"));
    struct gguf_value v;
    double x, sum = 0;
    assert_true(gguf_value(f, "ints", &v) && v.list && v.count == 3);
    while (gguf_next_number(&v, &x))
        sum += x;
    assert_true(sum == 0);
    const char *word;
    size_t len, all = 0, words = 0;
    assert_true(gguf_value(f, "words", &v));
    for (; gguf_next_text(&v, &word, &len); words++)
        all += len;
    assert_true(words == 3 && all == 3);
    const struct gguf_entry *m = gguf_find(f, "m"), *w = gguf_find(f, "v");
    assert_true(m && w && gguf_count(f) == 2 && !gguf_find(f, "x"));
    assert_true(m->dims == 2 && m->shape[0] == 3 && m->shape[1] == 64 && m->bytes == 3 * 2 * 34);
    assert_true(w->dims == 1 && w->bytes == 20 && w->data == m->data + 224 && m->data[1] == 1);
    gguf_close(f);
    buf_free(&b);
}

/* Checks that the file is refused with n bytes at `at` replaced, or truncated there if bytes is NULL. */
static void refuses(size_t at, const void *bytes, size_t n, const char *naming)
{
    struct buf b;
    struct err e = ERR_INIT;
    make(&b);
    if (n)
        memcpy(b.data + at, bytes, n);
    else
        b.len = at;
    struct gguf_file *f = gguf_parse("x.gguf", b.data, b.len, &e);
    if (f || !strstr(e.text, naming))
        fail_msg("%s: '%s'", naming, f ? "accepted" : e.text);
    assert_int_equal(e.kind, ERR_MODEL);
    assert_non_null(strstr(e.text, "x.gguf"));
    buf_free(&b);
}

/* Returns the offset of a text in the file. */
static size_t place(const char *text)
{
    struct buf b;
    make(&b);
    const char *p = memmem(b.data, b.len, text, strlen(text));
    assert_non_null(p);
    size_t at = (size_t)(p - b.data);
    buf_free(&b);
    return at;
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define HUGE_64    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f

static void t_damage(void **state)
{
    size_t m = place("m\2"), v = place("v\1"), words = place("words"), count = place("count");
    struct buf whole;
    make(&whole);
    size_t len = whole.len;
    buf_free(&whole);
    refuses(0, BYTES('g'), "is not a GGUF file");
    refuses(4, BYTES(1), "version 1");
    refuses(4, BYTES(0, 0, 0, 3), "big-endian");
    refuses(8, BYTES(HUGE_64), "claims");
    refuses(16, BYTES(HUGE_64), "claims");
    refuses(20, "", 0, "is not a GGUF file");
    refuses(HEAD, BYTES(HUGE_64), "ends inside the keys");
    refuses(HEAD, BYTES(0), "name of 0 bytes");
    refuses(HEAD + 8 + 20, BYTES(77), "type 77");
    refuses(HEAD + 8 + 20 + 4, BYTES(HUGE_64), "ends inside the value of 'general.architecture'");
    refuses(words + 5, BYTES(9, 0, 0, 0, 9), "'words' has a value of type 9");
    refuses(words + 5 + 8, BYTES(HUGE_64), "ends inside the value of 'words'");
    refuses(words + 5 + 16, BYTES(HUGE_64), "ends inside the value of 'words'");
    refuses(place("ints") + 4 + 8, BYTES(HUGE_64), "ends inside the value of 'ints'");
    refuses(count, BYTES('w', 'o', 'r', 'd', 's'), "'words' occurs twice");
    refuses(m - 8, BYTES(HUGE_64), "ends inside the table");
    refuses(m, BYTES(0), "does not have a name");
    refuses(m, BYTES('v'), "tensor 'v' occurs twice");
    refuses(m + 1, BYTES(5), "has 5 dimensions");
    refuses(m + 1, BYTES(0), "has 0 dimensions");
    refuses(m + 5, BYTES(63), "rows of 63");
    refuses(m + 5, BYTES(0), "impossible shape");
    refuses(m + 5, BYTES(HUGE_64), "impossible shape");
    refuses(m + 5 + 8, BYTES(HUGE_64), "impossible shape");
    refuses(v + 5 + 8 + 4, BYTES(32), "overlap");
    refuses(m + 5 + 8, BYTES(1), "unused bytes");
    refuses(m + 5 + 16, BYTES(99), "type 99");
    refuses(v + 5 + 8 + 4, BYTES(HUGE_64), "is outside");
    refuses(v + 5 + 8 + 4, BYTES(0, 16), "is outside");
    refuses(v + 5 + 8 + 4, BYTES(1), "not at a multiple of 32");
    refuses(v + 5, BYTES(60), "is outside");
    refuses(len - 16, "", 0, "truncated");
    refuses(m + 6, "", 0, "ends inside the table");
}

/* A truncated file is refused, or read if only padding is missing. */
static void t_cut(void **state)
{
    struct buf b;
    make(&b);
    for (size_t n = 0; n < b.len; n++) {
        struct err e = ERR_INIT;
        uint8_t *copy = malloc(n + 1); /* of exact size, for the sanitizer */
        memcpy(copy, b.data, n);
        struct gguf_file *f = gguf_parse("x.gguf", copy, n, &e);
        assert_true(!f || n >= b.len - 12);
        gguf_close(f);
        free(copy);
    }
    buf_free(&b);
}

static void t_alignment(void **state)
{
    static const struct {
        uint32_t align;
        bool fine;
    } cases[] = {{8, true}, {32, true}, {0, false}, {24, false}, {1u << 31, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf g;
        struct buf b;
        struct err e = ERR_INIT;
        const int64_t shape[1] = {8};
        gguf_init(&g);
        gguf_int(&g, "general.alignment", cases[i].align);
        gguf_tensor(&g, "t", GGML_F32, shape, 1);
        gguf_head(&g, &b);
        if (cases[i].align == 8) /* moves the end of the header to a multiple of 8 */
            while (b.len > 8 && b.len - 8 >= HEAD + 8 + 17 + 4 + 4 + 8 + 1 + 4 + 8 + 4 + 8)
                b.len -= 8;
        for (int k = 0; k < 32; k++)
            buf_putc(&b, (char)k);
        struct gguf_file *f = gguf_parse("x.gguf", b.data, b.len, &e);
        assert_true((f != NULL) == cases[i].fine);
        assert_true(!f || gguf_at(f, 0)->data[1] == 1);
        assert_true(f || strstr(e.text, "general.alignment"));
        gguf_close(f);
        gguf_free(&g);
        buf_free(&b);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("keys, lists and tensors of a file are found", t_reads),
    CLAIM("damage is refused with its position", t_damage),
    CLAIM("a file truncated anywhere is refused", t_cut),
    CLAIM("alignments that are powers of two are read, others refused", t_alignment),
};

CHECK_MAIN()
