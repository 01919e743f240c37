/* drawn_texts.c - see drawn_texts.h. */
#include "drawn_texts.h"

#include "check.h"

#include "base/buf.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include <time.h>

enum { MAX_TEXT = 1 << 20, PARTS = 4 };

double drawn_cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
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

struct kinds { /* kinds of characters, and words, as in the golden file */
    struct range *ranges;
    int *at; /* kind k is ranges[at[k] .. at[k + 1]) */
    uint32_t n, n_words;
    const json_t *words;
    uint64_t seed;
};

static void read_kinds(struct kinds *k, const json_t *golden)
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
    k->seed = (uint64_t)json_integer_value(json_object_get(golden, "seed"));
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
    uint64_t rng = k->seed << 32 | index;
    uint32_t runs = 1 + below(&rng, 16);
    for (uint32_t i = 0; i < runs; i++)
        draw_run(b, &rng, k);
    if (index % 5000 == 4999) {
        uint32_t cp = draw_char(&rng, &k->ranges[k->at[below(&rng, k->n)]]);
        for (int i = 0; i < 5000; i++)
            put_char(b, cp);
    }
}

struct block { /* hashes of one block of texts */
    struct drawn *d;
    struct sha256 texts, special, plain;
    struct tokens ids;
    struct buf back;
};

static void hash_u32(struct sha256 *h, const void *data, uint32_t n, size_t size)
{
    sha256_add(h, &n, sizeof n);
    sha256_add(h, data, n * size);
}

static void encode_text(struct block *b, const struct buf *text, bool special)
{
    b->ids.n = 0;
    double start = drawn_cpu_ms();
    tokenizer_encode(b->d->tk, text->data, text->len, special, &b->ids);
    b->d->ms += drawn_cpu_ms() - start;
    hash_u32(special ? &b->special : &b->plain, b->ids.ids, (uint32_t)b->ids.n, sizeof *b->ids.ids);
    buf_clear(&b->back);
    for (int64_t i = 0; i < b->ids.n; i++) {
        size_t n;
        const char *bytes = tokenizer_bytes(b->d->tk, b->ids.ids[i], &n);
        buf_put(&b->back, bytes, n);
    }
    if (b->d->normalises)
        return;
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
    b->d->bytes += 2 * text->len;
    encode_text(b, text, true);
    encode_text(b, text, false);
}

/* Returns whether a hash equals the golden one; prints the name of one that differs. */
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
    const json_t *want = json_array_get(json_object_get(b->d->golden, list), from / size);
    bool texts = same_hash(&b->texts, want, "texts", from, to);
    bool special = same_hash(&b->special, want, "special", from, to);
    bool plain = same_hash(&b->plain, want, "plain", from, to);
    return texts && special && plain;
}

/* Returns the remainder of the numbers of blocks that are compared: another one in each run and round. */
static size_t part(void)
{
    return check_seed() % PARTS;
}

/* ---- the two lists ----------------------------------------------------------------------------------- */

static size_t number(const struct drawn *d, const char *key)
{
    return (size_t)json_integer_value(json_object_get(d->golden, key));
}

static void open_block(struct block *b, struct drawn *d)
{
    *b = (struct block){.d = d};
    d->n = d->bytes = 0;
    d->ms = 0;
    buf_init(&b->back, MAX_TEXT);
}

static void close_block(struct block *b)
{
    buf_free(&b->back);
    tokens_free(&b->ids);
}

int drawn_texts(struct drawn *d)
{
    struct kinds k;
    struct block b;
    struct buf text;
    size_t n = number(d, "texts"), size = number(d, "block");
    int bad = 0;
    read_kinds(&k, d->golden);
    buf_init(&text, MAX_TEXT);
    open_block(&b, d);
    for (size_t from = part() * size; from < n; from += PARTS * size) {
        begin_block(&b);
        for (size_t i = from; i < from + size; i++) {
            buf_clear(&text);
            draw_text(&text, (uint32_t)i, &k);
            add_text(&b, &text);
            d->n++;
        }
        bad += !end_block(&b, "blocks", from, from + size, size);
    }
    buf_free(&text);
    close_block(&b);
    free(k.ranges);
    free(k.at);
    return bad;
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

int drawn_chars(struct drawn *d)
{
    struct block b;
    struct buf text;
    size_t size = number(d, "chars_block"), n = 0, which = part();
    int bad = 0;
    buf_init(&text, MAX_TEXT);
    open_block(&b, d);
    begin_block(&b);
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        if (cp >= 0xd800 && cp < 0xe000)
            continue;
        if (n++ / size % PARTS != which)
            continue;
        put_surroundings(&text, cp);
        add_text(&b, &text);
        d->n++;
        if (n % size == 0) {
            bad += !end_block(&b, "chars_blocks", n - size, n, size);
            begin_block(&b);
        }
    }
    if (n % size && n / size % PARTS == which)
        bad += !end_block(&b, "chars_blocks", n - n % size, n, size);
    buf_free(&text);
    close_block(&b);
    assert_int_equal(n, number(d, "chars"));
    return bad;
}
