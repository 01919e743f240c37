/* t_tekken.c - the tokenizer at full size against Hugging Face tokenizers and tiktoken, whose ids for
 * 100,000 texts and for every character stand as hashes in tests/golden/tokenizer/texts.json
 * (tests/reference/make_tokenizer.py).  The texts are drawn here again; a hash of theirs tells a
 * difference in drawing from one in the ids. */
#include "check.h"
#include "place.h"
#include "tekken.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

#include <jansson.h>
#include <unistd.h>

enum { MAX_TEXT = 1 << 20 };

static struct tokenizer *tk;
static double load_ms; /* of processor time: other programs do not count */
static json_t *golden;

/* ---- what all claims share --------------------------------------------------------------------------- */

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void check_file(const char *json, size_t len)
{
    char hex[65];
    sha256(json, len, hex);
    assert_string_equal(hex, json_string_value(json_object_get(golden, "tokenizer.json")));
}

/* The file is written and opened like any model's. */
static void open_all(void)
{
    if (tk)
        return;
    struct err e = ERR_INIT;
    char dir[PLACE_PATH];
    golden = json_load_file("tests/golden/tokenizer/texts.json", 0, NULL);
    assert_non_null(golden);
    size_t len;
    char *json = tekken_json(&len);
    check_file(json, len);
    assert_non_null(mkdtemp(place_template(dir)));
    char *path = xasprintf("%s/tokenizer.json", dir);
    assert_int_equal(file_write(path, json, len, &e), 0);
    double start = cpu_ms();
    tk = tokenizer_open(dir, &e);
    load_ms = cpu_ms() - start;
    unlink(path);
    rmdir(dir);
    free(path);
    free(json);
    if (!tk)
        printf("%s\n", e.text);
    assert_non_null(tk);
}

static void encodes(const char *text, bool special, int n, const int32_t *ids)
{
    struct tokens out = {0};
    tokenizer_encode(tk, text, strlen(text), special, &out);
    bool same = out.n == n && !memcmp(out.ids, ids, (size_t)n * sizeof *ids);
    if (!same) {
        printf("'%s' gives", text);
        for (int64_t i = 0; i < out.n; i++)
            printf(" %d", out.ids[i]);
        printf("\n");
    }
    assert_true(same);
    tokens_free(&out);
}

#define ENCODES(text, special, ...)                                                                          \
    encodes(text, special, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)),                        \
            (const int32_t[]){__VA_ARGS__})

/* ---- known ids ---------------------------------------------------------------------------------------- */

static void t_known(void **state)
{
    (void)state;
    open_all();
    assert_int_equal(tokenizer_size(tk), TEKKEN_IDS + TEKKEN_ADDED);
    assert_null(tokenizer_check(tk));
    assert_int_equal(tokenizer_find(tk, "<SPECIAL_11>"), 11);
    assert_int_equal(tokenizer_find(tk, "<image>"), 131072);
    assert_int_equal(tokenizer_find(tk, "</img>"), 131074);
    ENCODES("Assistant\n", false, 102897, 1010);
    ENCODES("User\n", false, 4019, 1010);
    ENCODES("System\n\n", false, 6775, 1267);
    ENCODES("<think></think>", false, 49250, 2077, 4468, 74045, 1062);
    ENCODES("<think>\n", false, 49250, 2077, 1561);
    ENCODES("/no_think", false, 75010, 31180, 2077);
    ENCODES("Hello world!", false, 22177, 4304, 1033);
    ENCODES("\nDescribe the image.\n", false, 1010, 5847, 13089, 1278, 3937, 1626);
    ENCODES("click(123, 456)", false, 8356, 1040, 1049, 1050, 1051, 1044, 1032, 1052, 1053, 1054, 1041);
    ENCODES("naïve café — 東京 2024年 🙂", false, 2302, 7884, 1672, 35858, 2251, 48798, 1032, 1050,
            1048, 1050, 1052, 1587, 119685, 1153, 1130);
    ENCODES("{\"action\": \"click\", \"x\": 512, \"y\": 384}", false, 19227, 3419, 2811, 1429, 8356, 1897,
            1429, 1120, 2811, 1032, 1053, 1049, 1050, 1044, 1429, 1121, 2811, 1032, 1051, 1056, 1052, 1125);
    ENCODES("https://example.com/a/b?c=d", false, 3299, 2345, 16609, 2354, 22139, 15836, 1063, 1099, 97316);
    ENCODES("I'm DON'T HTTPServer camelCaseWord", false, 1073, 4525, 119801, 1039, 1084, 23733, 11473, 98537,
            11139, 24469);
    ENCODES("  indented\n\n\tcode", false, 1032, 2495, 38498, 1267, 1009, 6154);
    ENCODES("\r\n\r\n", false, 1013, 1010, 1013, 1010);
    ENCODES("a  b", false, 1097, 1032, 1289);
    ENCODES("<SPECIAL_11>Assistant\n", true, 11, 102897, 1010);
    ENCODES("<s><SPECIAL_10>System\n\n", true, 1, 10, 6775, 1267);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static uint32_t below(uint64_t *state, uint32_t n) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(((z ^ z >> 31) >> 32) * n >> 32);
}

static void put_char(struct buf *b, uint32_t cp)
{
    char utf8[4];
    buf_put(b, utf8, (size_t)utf8_encode(cp, utf8));
}

struct range {
    uint32_t from, to;
};

struct kinds { /* of characters, and words, as the file has them */
    struct range *ranges;
    int *at; /* kind k: ranges[at[k] .. at[k + 1]) */
    uint32_t n, n_words;
    const json_t *words;
};

static void read_kinds(struct kinds *k)
{
    const json_t *all = json_object_get(golden, "kinds");
    size_t i, j, n = 0;
    json_t *kind, *r;
    k->n = (uint32_t)json_array_size(all);
    k->at = xcalloc(k->n + 1, sizeof *k->at);
    json_array_foreach(all, i, kind) n += json_array_size(kind);
    k->ranges = xcalloc(n, sizeof *k->ranges);
    n = 0;
    json_array_foreach(all, i, kind)
    {
        json_array_foreach(kind, j, r) k->ranges[n++] =
            (struct range){(uint32_t)json_integer_value(json_array_get(r, 0)),
                           (uint32_t)json_integer_value(json_array_get(r, 1))};
        k->at[i + 1] = (int)n;
    }
    k->words = json_object_get(golden, "words");
    k->n_words = (uint32_t)json_array_size(k->words);
}

static uint32_t draw_char(uint64_t *rng, const struct range *r)
{
    return r->from + below(rng, r->to - r->from + 1);
}

static void draw_run(struct buf *b, uint64_t *rng, const struct kinds *k)
{
    uint32_t kind = below(rng, k->n + 4);
    if (kind >= k->n) {
        buf_puts(b, json_string_value(json_array_get(k->words, below(rng, k->n_words))));
        return;
    }
    const struct range *ranges = &k->ranges[k->at[kind]];
    uint32_t count = (uint32_t)(k->at[kind + 1] - k->at[kind]), n = 1 + below(rng, 8), cp = 0;
    if (below(rng, 40) == 0)
        n += 20 + below(rng, 300);
    bool same = below(rng, 4) == 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!same || i == 0)
            cp = draw_char(rng, &ranges[below(rng, count)]);
        put_char(b, cp);
    }
}

static void draw_text(struct buf *b, uint32_t index, const struct kinds *k)
{
    uint64_t rng = (uint64_t)json_integer_value(json_object_get(golden, "seed")) << 32 | index;
    uint32_t runs = 1 + below(&rng, 16);
    for (uint32_t i = 0; i < runs; i++)
        draw_run(b, &rng, k);
    if (index % 5000 == 4999) {
        uint32_t cp = draw_char(&rng, &k->ranges[k->at[below(&rng, k->n)]]);
        for (int i = 0; i < 5000; i++)
            put_char(b, cp);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct block { /* the hashes of one block of texts */
    struct sha256 texts, special, plain;
    struct tokens ids;
    struct buf back;
    size_t bytes;
    double ms;
};

static void hash_u32(struct sha256 *h, const void *data, uint32_t n, size_t size)
{
    sha256_add(h, &n, sizeof n);
    sha256_add(h, data, n * size);
}

static void encode_text(struct block *b, const struct buf *text, bool special)
{
    b->ids.n = 0;
    double start = cpu_ms();
    tokenizer_encode(tk, text->data, text->len, special, &b->ids);
    b->ms += cpu_ms() - start;
    hash_u32(special ? &b->special : &b->plain, b->ids.ids, (uint32_t)b->ids.n, sizeof *b->ids.ids);
    buf_clear(&b->back);
    for (int64_t i = 0; i < b->ids.n; i++) {
        size_t n;
        const char *bytes = tokenizer_bytes(tk, b->ids.ids[i], &n);
        buf_put(&b->back, bytes, n);
    }
    assert_int_equal(b->back.len, text->len);
    assert_memory_equal(b->back.data, text->data, text->len);
}

static void begin_block(struct block *b)
{
    sha256_begin(&b->texts);
    sha256_begin(&b->special);
    sha256_begin(&b->plain);
}

static void add_text(struct block *b, const struct buf *text)
{
    hash_u32(&b->texts, text->data, (uint32_t)text->len, 1);
    b->bytes += 2 * text->len;
    encode_text(b, text, true);
    encode_text(b, text, false);
}

/* Whether a hash is the one on file; names what differs. */
static bool same_hash(struct sha256 *h, const json_t *want, const char *what, size_t from, size_t to)
{
    char hex[65];
    sha256_end(h, hex);
    bool same = !strcmp(hex, json_string_value(json_object_get(want, what)));
    static int told;
    if (!same && told++ < 20)
        printf("block %zu to %zu: %s differ\n", from, to - 1, what);
    return same;
}

static bool end_block(struct block *b, const char *list, size_t from, size_t to, size_t size)
{
    const json_t *want = json_array_get(json_object_get(golden, list), from / size);
    bool texts = same_hash(&b->texts, want, "texts", from, to);
    bool special = same_hash(&b->special, want, "special", from, to);
    bool plain = same_hash(&b->plain, want, "plain", from, to);
    return texts && special && plain;
}

static void note_speed(const struct block *b, size_t n, const char *what)
{
    check_note("%zu %s, %.1f MB, ids and bytes as they must be; encoding %.1f MB/s", n, what,
               (double)b->bytes / 2e6, (double)b->bytes / 1e3 / b->ms);
}

static void t_texts(void **state)
{
    (void)state;
    open_all();
    struct kinds k;
    struct block b = {0};
    struct buf text;
    size_t n = (size_t)json_integer_value(json_object_get(golden, "texts"));
    size_t size = (size_t)json_integer_value(json_object_get(golden, "block"));
    int bad = 0;
    read_kinds(&k);
    buf_init(&text, MAX_TEXT);
    buf_init(&b.back, MAX_TEXT);
    for (size_t from = 0; from < n; from += size) {
        begin_block(&b);
        for (size_t i = from; i < from + size; i++) {
            buf_clear(&text);
            draw_text(&text, (uint32_t)i, &k);
            add_text(&b, &text);
        }
        bad += !end_block(&b, "blocks", from, from + size, size);
    }
    assert_int_equal(n, 100000);
    assert_int_equal(bad, 0);
    note_speed(&b, n, "texts");
    buf_free(&text);
    buf_free(&b.back);
    tokens_free(&b.ids);
    free(k.ranges);
    free(k.at);
}

static void put_surroundings(struct buf *text, uint32_t cp)
{
    static const char *const around[] = {"a", "B", "", "1 ", "\n", " "};
    buf_clear(text);
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        buf_puts(text, around[i]);
        if (i + 1 < sizeof around / sizeof *around)
            put_char(text, cp);
    }
}

static void t_chars(void **state)
{
    (void)state;
    open_all();
    struct block b = {0};
    struct buf text;
    size_t size = (size_t)json_integer_value(json_object_get(golden, "chars_block")), n = 0;
    int bad = 0;
    buf_init(&text, MAX_TEXT);
    buf_init(&b.back, MAX_TEXT);
    begin_block(&b);
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        if (cp >= 0xd800 && cp < 0xe000)
            continue;
        put_surroundings(&text, cp);
        add_text(&b, &text);
        if (++n % size == 0) {
            bad += !end_block(&b, "chars_blocks", n - size, n, size);
            begin_block(&b);
        }
    }
    if (n % size)
        bad += !end_block(&b, "chars_blocks", n - n % size, n, size);
    assert_int_equal(n, json_integer_value(json_object_get(golden, "chars")));
    assert_int_equal(bad, 0);
    note_speed(&b, n, "characters");
    buf_free(&text);
    buf_free(&b.back);
    tokens_free(&b.ids);
}

/* ---- speed ----------------------------------------------------------------------------------- */

static void t_speed(void **state)
{
    (void)state;
    open_all();
    static const char sentence[] = "The quick brown fox {\"x\": 12} jumps over the lazy dog, naïvely.\n";
    struct tokens out = {0};
    char text[8192];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = sentence[i % (sizeof sentence - 1)];
    double start = cpu_ms();
    for (int i = 0; i < 100; i++)
        tokenizer_encode(tk, text, sizeof text, false, &out);
    check_note("131082 tokens loaded in %.0f ms; English %.1f MB/s", load_ms,
               sizeof text * 100 / 1e3 / (cpu_ms() - start));
#ifndef __SANITIZE_ADDRESS__
    assert_true(load_ms < 1000);
#endif
    tokens_free(&out);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the file is the one that transformers makes of the table, and gives the published ids", t_known),
    CLAIM("100,000 texts give the ids of tokenizers and tiktoken, and their bytes again", t_texts),
    CLAIM("every character between others gives the ids of tokenizers and tiktoken", t_chars),
    CLAIM("the full vocabulary loads within the second that a start may take", t_speed),
};

int main(int argc, char **argv)
{
    int rc = check_main(argc, argv, tests, sizeof tests / sizeof *tests);
    tokenizer_free(tk);
    json_decref(golden);
    return rc;
}
