/* tekken.c - see tekken.h.
 *
 * Each token of the table joins two earlier ones, so the table is a list of pairs of ranks. The file has more
 * merges: each division of a token into two others, in order of the token, then of the halves.
 */
#include "tekken.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { WORDS = TEKKEN_IDS - TEKKEN_SPECIAL, RANK_BITS = 17, SLOTS = 1 << 18, MAX_WORD = 128 };
#define TABLE "tests/golden/tokenizer/tekken.bin"

struct table {
    char *bytes[WORDS];
    int len[WORDS];
    int slots[SLOTS]; /* hash table of ranks, -1: free */
};

/* ---- table --------------------------------------------------------------------------------------------- */

static int *slot_of(struct table *t, const char *s, int n)
{
    uint32_t i = (uint32_t)XXH3_64bits(s, (size_t)n) % SLOTS;
    while (t->slots[i] >= 0 && (t->len[t->slots[i]] != n || memcmp(t->bytes[t->slots[i]], s, (size_t)n) != 0))
        i = (i + 1) % SLOTS;
    return &t->slots[i];
}

static int read_rank(const uint8_t *data, size_t index)
{
    size_t bit = index * RANK_BITS;
    uint32_t v = data[bit / 8] | (uint32_t)data[bit / 8 + 1] << 8 | (uint32_t)data[bit / 8 + 2] << 16;
    return (int)(v >> bit % 8 & ((1u << RANK_BITS) - 1));
}

static struct table *unpack(void)
{
    struct err e = ERR_INIT;
    char *data;
    size_t len;
    if (file_read(TABLE, 1 << 20, &data, &len, &e))
        die(ERR_FAILED, "%s", e.text);
    if (len != ((WORDS - 256) * 2 * RANK_BITS + 7) / 8)
        die(ERR_FAILED, "'%s' has not the size of the table", TABLE);
    data = xrealloc(data, len + 2, 1); /* reading the last rank touches two more bytes */
    struct table *t = xcalloc(1, sizeof *t);
    memset(t->slots, -1, sizeof t->slots);
    for (int r = 0; r < WORDS; r++) {
        char word[MAX_WORD];
        if (r < 256) {
            word[0] = (char)r;
            t->len[r] = 1;
        } else {
            int a = read_rank((uint8_t *)data, (size_t)(r - 256) * 2);
            int b = read_rank((uint8_t *)data, (size_t)(r - 256) * 2 + 1);
            if (a >= r || b >= r || t->len[a] + t->len[b] > MAX_WORD)
                die(ERR_FAILED, "'%s': token %d is not made of two earlier ones", TABLE, r);
            memcpy(word, t->bytes[a], (size_t)t->len[a]);
            memcpy(word + t->len[a], t->bytes[b], (size_t)t->len[b]);
            t->len[r] = t->len[a] + t->len[b];
        }
        t->bytes[r] = xmalloc((size_t)t->len[r], 1);
        memcpy(t->bytes[r], word, (size_t)t->len[r]);
        *slot_of(t, word, t->len[r]) = r;
    }
    free(data);
    return t;
}

static void release(struct table *t)
{
    for (int r = 0; r < WORDS; r++)
        free(t->bytes[r]);
    free(t);
}

/* ---- file ------------------------------------------------------------------------------------------------
 */

/* Writes a token in the printable letters for bytes, as a JSON string. */
static void put_word(struct buf *b, const char *s, int n)
{
    static char letter[256][4];
    static int size[256];
    if (!size[0])
        for (int c = 0, hidden = 0; c < 256; c++) {
            bool shown = (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || c >= 0xae;
            size[c] = utf8_encode(shown ? (uint32_t)c : 256 + (uint32_t)hidden, letter[c]);
            hidden += !shown;
        }
    buf_putc(b, '"');
    for (int i = 0; i < n; i++) {
        if (s[i] == '"' || s[i] == '\\')
            buf_putc(b, '\\');
        buf_put(b, letter[(unsigned char)s[i]], (size_t)size[(unsigned char)s[i]]);
    }
    buf_putc(b, '"');
}

static const char *special_name(int id)
{
    static const char *const first[] = {"<unk>", "<s>", "</s>"};
    static const char *const added[TEKKEN_ADDED] = {"<image>", "<img>",  "</img>", "<quad>", "</quad>",
                                                    "<ref>",   "</ref>", "<box>",  "</box>", "<video>"};
    static char name[32];
    if (id >= TEKKEN_IDS)
        return added[id - TEKKEN_IDS];
    if (id < 3)
        return first[id];
    snprintf(name, sizeof name, "<SPECIAL_%d>", id);
    return name;
}

static void put_added(struct buf *b)
{
    for (int i = 0; i < TEKKEN_SPECIAL + TEKKEN_ADDED; i++) {
        int id = i < TEKKEN_SPECIAL ? i : TEKKEN_IDS + i - TEKKEN_SPECIAL;
        buf_printf(b,
                   "%s    {\n      \"id\": %d,\n      \"content\": \"%s\",\n      \"single_word\": false,\n"
                   "      \"lstrip\": false,\n      \"rstrip\": false,\n      \"normalized\": false,\n"
                   "      \"special\": true\n    }",
                   i ? ",\n" : "", id, special_name(id));
    }
}

static void put_vocab(struct buf *b, const struct table *t)
{
    for (int id = 0; id < TEKKEN_SPECIAL; id++)
        buf_printf(b, "%s      \"%s\": %d", id ? ",\n" : "", special_name(id), id);
    for (int r = 0; r < WORDS; r++) {
        buf_puts(b, ",\n      ");
        put_word(b, t->bytes[r], t->len[r]);
        buf_printf(b, ": %d", TEKKEN_SPECIAL + r);
    }
}

struct cut {
    int left, right; /* ranks */
};

static int by_halves(const void *a, const void *b)
{
    const struct cut *x = a, *y = b;
    return x->left != y->left ? (x->left < y->left ? -1 : 1) : (x->right > y->right) - (x->right < y->right);
}

static void put_merges(struct buf *b, struct table *t)
{
    bool first = true;
    for (int r = 256; r < WORDS; r++) {
        struct cut cuts[MAX_WORD];
        int n = 0;
        for (int at = 1; at < t->len[r]; at++) {
            int left = *slot_of(t, t->bytes[r], at);
            int right = *slot_of(t, t->bytes[r] + at, t->len[r] - at);
            if (left >= 0 && right >= 0)
                cuts[n++] = (struct cut){left, right};
        }
        qsort(cuts, (size_t)n, sizeof *cuts, by_halves);
        for (int i = 0; i < n; i++, first = false) {
            buf_puts(b, first ? "      [\n        " : ",\n      [\n        ");
            put_word(b, t->bytes[cuts[i].left], t->len[cuts[i].left]);
            buf_puts(b, ",\n        ");
            put_word(b, t->bytes[cuts[i].right], t->len[cuts[i].right]);
            buf_puts(b, "\n      ]");
        }
    }
}

static const char between[] =
    "\n  ],\n  \"normalizer\": null,\n  \"pre_tokenizer\": {\n    \"type\": \"Sequence\",\n"
    "    \"pretokenizers\": [\n      {\n        \"type\": \"Split\",\n        \"pattern\": {\n"
    "          \"Regex\": \"[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*"
    "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
    "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*|"
    "\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"\n"
    "        },\n        \"behavior\": \"Isolated\",\n        \"invert\": false\n      },\n      {\n"
    "        \"type\": \"ByteLevel\",\n        \"add_prefix_space\": false,\n"
    "        \"trim_offsets\": true,\n        \"use_regex\": false\n      }\n    ]\n  },\n"
    "  \"post_processor\": {\n    \"type\": \"ByteLevel\",\n    \"add_prefix_space\": true,\n"
    "    \"trim_offsets\": false,\n    \"use_regex\": true\n  },\n  \"decoder\": {\n"
    "    \"type\": \"ByteLevel\",\n    \"add_prefix_space\": true,\n    \"trim_offsets\": true,\n"
    "    \"use_regex\": true\n  },\n  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
    "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n"
    "    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n"
    "    \"ignore_merges\": true,\n    \"vocab\": {\n";

char *tekken_json(size_t *len)
{
    struct table *t = unpack();
    struct buf b;
    buf_init(&b, 32 << 20);
    buf_puts(&b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
                 "  \"added_tokens\": [\n");
    put_added(&b);
    buf_puts(&b, between);
    put_vocab(&b, t);
    buf_puts(&b, "\n    },\n    \"merges\": [\n");
    put_merges(&b, t);
    buf_puts(&b, "\n    ]\n  }\n}");
    release(t);
    *len = b.len;
    char *json = buf_take(&b);
    buf_free(&b);
    return json;
}
