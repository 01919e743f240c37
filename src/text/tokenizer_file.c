/* tokenizer_file.c - reads a tokenizer.json.
 *
 * Supported is what these families publish: byte-level BPE, no normalizer or NFC, a pre-tokenizer of Split
 * and ByteLevel steps. Anything else would change the ids and is rejected by name.
 *
 * The vocabulary and the merges are read in place (tokenizer_json.c), the rest as JSON values. A
 * byte-level vocabulary spells each byte as one printable character (GPT-2's table): printable Latin-1
 * bytes as themselves, the others as U+0100 and following. Added tokens are spelled literally. */
#include "text/tokenizer_impl.h"

#include "base/file.h"
#include "base/gguf.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    TEXT_MAX = 128 << 20,
    MAX_ID = 1 << 21,
    MAX_MERGES = 1 << 21,
    MAX_TOKEN = 1024, /* bytes per token */
    ARENA_MAX = 256 << 20,
};

/* ---- bytes as characters ---------------------------------------------------------------------------- */

/* The byte of each character below U+0144; -1: none. */
struct alphabet {
    int16_t byte[256 + 68];
};

static struct alphabet make_alphabet(void)
{
    struct alphabet a;
    memset(&a, -1, sizeof a);
    for (int byte = 0, hidden = 0; byte < 256; byte++) {
        bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        a.byte[shown ? byte : 256 + hidden++] = (int16_t)byte;
    }
    return a;
}

/* Decodes a spelled token into bytes. Returns their number, or -1 for other characters or a token that is
 * too long. */
static int decode_spelling(const struct alphabet *a, const char *s, int n, char out[MAX_TOKEN])
{
    int len = 0;
    for (int i = 0; i < n; len++) {
        uint32_t cp = (unsigned char)s[i++];
        if (cp >= 0x80) { /* the alphabet has characters of at most two bytes */
            if ((cp & 0xe0) != 0xc0 || i == n || (s[i] & 0xc0) != 0x80)
                return -1;
            cp = (cp & 0x1f) << 6 | ((unsigned char)s[i++] & 0x3f);
        }
        if (len == MAX_TOKEN || cp >= sizeof a->byte / sizeof *a->byte || a->byte[cp] < 0)
            return -1;
        out[len] = (char)a->byte[cp];
    }
    return len;
}

/* ---- tokens ------------------------------------------------------------------------------------------- */

static int set_token(struct tokenizer *t, int32_t id, const char *bytes, size_t len, struct err *e)
{
    t->tokens[id].at = (uint32_t)t->arena.len;
    t->tokens[id].len = (uint32_t)len;
    return buf_put(&t->arena, bytes, len) ? err_set(e, ERR_MODEL, "the tokens are too long in total") : 0;
}

static int token_id(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < MAX_ID
               ? (int)json_integer_value(v)
               : -1;
}

/* Returns the highest id of the added tokens, -1 without any, -2 if one is out of range. */
static int top_added(const json_t *added)
{
    int top = -1;
    size_t i;
    json_t *v;
    json_array_foreach(added, i, v)
    {
        int id = token_id(json_object_get(v, "id"));
        if (id < 0)
            return -2;
        top = id > top ? id : top;
    }
    return top;
}

static int read_added(struct tokenizer *t, const json_t *added, struct err *e)
{
    size_t i;
    json_t *v;
    json_array_foreach(added, i, v)
    {
        int id = token_id(json_object_get(v, "id"));
        const char *content = json_string_value(json_object_get(v, "content"));
        size_t n = content ? strlen(content) : 0;
        if (!n || n > MAX_TOKEN)
            return err_set(e, ERR_MODEL, "added token %d has no content of 1 to %d bytes", id, MAX_TOKEN);
        if (t->tokens[id].len)
            return err_set(e, ERR_MODEL, "added token %d occurs twice", id);
        if (json_is_true(json_object_get(v, "single_word")))
            return err_set(e, ERR_MODEL, "added token '%s' is single_word, which is not implemented",
                           content);
        if (set_token(t, id, content, n, e))
            return -1;
        t->tokens[id].added = true;
        t->tokens[id].lstrip = json_is_true(json_object_get(v, "lstrip"));
        t->tokens[id].rstrip = json_is_true(json_object_get(v, "rstrip"));
    }
    return 0;
}

/* Reads one token of the vocabulary, spelled as `key`. */
static int read_word(struct tokenizer *t, const struct alphabet *a, const char *key, int n, int id,
                     struct err *e)
{
    char bytes[MAX_TOKEN];
    struct token *k = &t->tokens[id];
    if (k->added) {
        if ((uint32_t)n != k->len || memcmp(key, t->arena.data + k->at, k->len) != 0)
            return err_set(e, ERR_MODEL, "id %d is '%s' and also an added token with another name", id, key);
        return 0;
    }
    if (k->len)
        return err_set(e, ERR_MODEL, "id %d occurs twice, the second time as '%s'", id, key);
    int len = decode_spelling(a, key, n, bytes);
    if (len <= 0)
        return err_set(e, ERR_MODEL, "token %d '%s' has a character that is not in the byte-level alphabet",
                       id, key);
    return set_token(t, id, bytes, (size_t)len, e);
}

/* Reads {"word": id, ...} into t; without t only finds the highest id. */
static int read_vocab(struct tokenizer *t, struct json_reader r, int *top, struct err *e)
{
    struct alphabet alphabet = make_alphabet();
    char key[2 * MAX_TOKEN + 8];
    if (!json_next(&r, '{'))
        return err_set(e, ERR_MODEL, "'vocab' is not an object");
    if (json_next(&r, '}'))
        return 0;
    for (int count = 0;; count++) {
        int n = json_read_string(&r, key, sizeof key), id;
        if (n < 0 || !json_next(&r, ':'))
            return err_set(e, ERR_MODEL, "entry %d of the vocabulary has no name of 1 to %d bytes", count,
                           MAX_TOKEN);
        if ((id = json_read_count(&r, MAX_ID - 1)) < 0)
            return err_set(e, ERR_MODEL, "'%s' has no id from 0 to %d", key, MAX_ID - 1);
        if (t && read_word(t, &alphabet, key, n, id, e))
            return -1;
        *top = id > *top ? id : *top;
        if (!json_next(&r, ','))
            break;
    }
    return json_next(&r, '}') ? 0
                              : err_set(e, ERR_MODEL, "the vocabulary has an element that is not an entry");
}

/* ---- tables -------------------------------------------------------------------------------------------- */

static uint32_t table_mask(int n)
{
    uint32_t size = 16;
    while (size < 2 * (uint32_t)n)
        size *= 2;
    return size - 1;
}

static int index_plain(struct tokenizer *t, struct err *e)
{
    t->by_bytes_mask = table_mask(t->size);
    t->by_bytes = xmalloc((unsigned long)t->by_bytes_mask + 1, sizeof *t->by_bytes);
    memset(t->by_bytes, -1, ((size_t)t->by_bytes_mask + 1) * sizeof *t->by_bytes);
    for (int id = 0; id < t->size; id++) {
        const struct token *k = &t->tokens[id];
        if (!k->len || k->added)
            continue;
        uint32_t i = (uint32_t)XXH3_64bits(t->arena.data + k->at, k->len) & t->by_bytes_mask;
        for (; t->by_bytes[i] >= 0; i = (i + 1) & t->by_bytes_mask) {
            const struct token *other = &t->tokens[t->by_bytes[i]];
            if (other->len == k->len && !memcmp(t->arena.data + other->at, t->arena.data + k->at, k->len))
                return err_set(e, ERR_MODEL, "tokens %d and %d are duplicates", t->by_bytes[i], id);
        }
        t->by_bytes[i] = id;
    }
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        if ((t->byte_ids[b] = tokenizer_find_plain(t, &c, 1)) < 0)
            return err_set(e, ERR_MODEL, "byte 0x%02x has no token", b);
    }
    return 0;
}

static int by_first_byte(const void *a, const void *b, void *arg)
{
    const struct tokenizer *t = arg;
    const struct token *x = &t->tokens[*(const int32_t *)a], *y = &t->tokens[*(const int32_t *)b];
    const unsigned char *p = (const unsigned char *)t->arena.data + x->at;
    const unsigned char *q = (const unsigned char *)t->arena.data + y->at;
    if (*p != *q)
        return *p < *q ? -1 : 1;
    return x->len != y->len ? (x->len > y->len ? -1 : 1) : memcmp(p, q, x->len);
}

static int index_added(struct tokenizer *t, struct err *e)
{
    t->added = xmalloc((unsigned long)t->size + 1, sizeof *t->added);
    for (int id = 0; id < t->size; id++)
        if (t->tokens[id].added)
            t->added[t->n_added++] = id;
    qsort_r(t->added, (size_t)t->n_added, sizeof *t->added, by_first_byte, t);
    for (int i = 0; i < t->n_added; i++) {
        if (i && !by_first_byte(&t->added[i - 1], &t->added[i], t))
            return err_set(e, ERR_MODEL, "added tokens %d and %d have the same name", t->added[i - 1],
                           t->added[i]);
        t->added_from[(unsigned char)t->arena.data[t->tokens[t->added[i]].at] + 1] = i + 1;
    }
    for (int b = 0; b < 256; b++)
        if (t->added_from[b + 1] < t->added_from[b])
            t->added_from[b + 1] = t->added_from[b];
    return 0;
}

/* ---- merges -------------------------------------------------------------------------------------------- */

enum { HALF_MAX = 2 * MAX_TOKEN + 8 };

struct merge_list {
    struct merge *items;
    size_t n, cap;
};

/* Reads the two spelled halves of a merge, "left right" or ["left", "right"]. Returns false if it is
 * neither. */
static bool read_halves(struct json_reader *r, char left[2 * HALF_MAX], char right[HALF_MAX], int len[2])
{
    if (json_next(r, '[')) {
        len[0] = json_read_string(r, left, HALF_MAX);
        len[1] = json_next(r, ',') ? json_read_string(r, right, HALF_MAX) : -1;
        return len[0] > 0 && len[1] > 0 && json_next(r, ']');
    }
    int n = json_read_string(r, left, 2 * HALF_MAX);
    char *space = n > 0 ? memchr(left, ' ', (size_t)n) : NULL;
    if (!space)
        return false;
    *space = 0;
    len[0] = (int)(space - left);
    len[1] = n - len[0] - 1;
    if (len[1] >= HALF_MAX)
        return false;
    memcpy(right, space + 1, (size_t)len[1] + 1);
    return len[0] > 0 && len[1] > 0;
}

static int read_merge(const struct tokenizer *t, const struct alphabet *a, struct json_reader *r,
                      struct merge_list *list, struct err *e)
{
    char left[2 * HALF_MAX], right[HALF_MAX], both[2 * MAX_TOKEN];
    int len[2];
    int32_t rank = (int32_t)list->n;
    if (!read_halves(r, left, right, len))
        return err_set(e, ERR_MODEL, "merge %d is not a pair", rank);
    int n = decode_spelling(a, left, len[0], both),
        m = n < 0 ? -1 : decode_spelling(a, right, len[1], both + n);
    if (m < 0)
        return err_set(e, ERR_MODEL, "merge %d has a character that is not in the byte-level alphabet", rank);
    struct merge merge = {.left = tokenizer_find_plain(t, both, (size_t)n),
                          .right = tokenizer_find_plain(t, both + n, (size_t)m),
                          .result = tokenizer_find_plain(t, both, (size_t)(n + m)),
                          .rank = rank};
    if (merge.left < 0 || merge.right < 0 || merge.result < 0)
        return err_set(e, ERR_MODEL, "merge %d, '%s' and '%s', is not in the vocabulary", rank, left, right);
    if (list->n == MAX_MERGES)
        return err_set(e, ERR_MODEL, "more than %d merges", MAX_MERGES);
    if (list->n == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 1024;
        list->items = xrealloc(list->items, list->cap, sizeof *list->items);
    }
    list->items[list->n++] = merge;
    return 0;
}

static int read_list(const struct tokenizer *t, struct json_reader r, struct merge_list *list, struct err *e)
{
    struct alphabet alphabet = make_alphabet();
    if (!r.at || !json_next(&r, '['))
        return err_set(e, ERR_MODEL, "'merges' is not a list");
    if (json_next(&r, ']'))
        return 0;
    do {
        if (read_merge(t, &alphabet, &r, list, e))
            return -1;
    } while (json_next(&r, ','));
    return json_next(&r, ']') ? 0 : err_set(e, ERR_MODEL, "'merges' has an element that is not a merge");
}

static int read_merges(struct tokenizer *t, struct json_reader r, struct err *e)
{
    struct merge_list list = {0};
    int rc = read_list(t, r, &list, e);
    t->merges_mask = table_mask((int)list.n);
    t->merges = xmalloc((unsigned long)t->merges_mask + 1, sizeof *t->merges);
    for (uint32_t k = 0; k <= t->merges_mask; k++)
        t->merges[k].result = -1;
    for (size_t i = 0; i < list.n; i++) {
        struct merge *slot = &t->merges[tokenizer_merge_slot(t, list.items[i].left, list.items[i].right)];
        if (slot->result < 0) /* only the first of equal pairs is used */
            *slot = list.items[i];
    }
    free(list.items);
    return rc;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static bool is_empty(const json_t *v)
{
    return !v || json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0);
}

/* Rejects properties that change the ids and are not implemented. */
static int check_kind(const json_t *root, const json_t *model, struct err *e)
{
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!type || strcmp(type, "BPE") != 0)
        return err_set(e, ERR_MODEL, "model '%s' is not implemented, only BPE", type ? type : "none");
    if (!is_empty(json_object_get(model, "continuing_subword_prefix")) ||
        !is_empty(json_object_get(model, "end_of_word_suffix")) ||
        json_is_true(json_object_get(model, "byte_fallback")))
        return err_set(e, ERR_MODEL, "its BPE is not byte-level, which is not implemented");
    return 0;
}

static int read_normalizer(struct tokenizer *t, const json_t *normalizer, struct err *e)
{
    const char *type = json_string_value(json_object_get(normalizer, "type"));
    if (is_empty(normalizer))
        return 0;
    if (!type || strcmp(type, "NFC") != 0)
        return err_set(e, ERR_MODEL, "normalizer '%s' is not implemented, only NFC", type ? type : "none");
    t->nfc = true;
    return 0;
}

struct file_parts {
    json_t *root; /* everything except vocab and merges */
    struct json_reader vocab, merges;
};

static int read_parts(struct tokenizer *t, const struct file_parts *p, struct err *e)
{
    const json_t *model = json_object_get(p->root, "model"),
                 *added = json_object_get(p->root, "added_tokens");
    int top = top_added(added);
    if (check_kind(p->root, model, e) || (p->vocab.at && top >= -1 && read_vocab(NULL, p->vocab, &top, e)))
        return -1;
    if (!p->vocab.at || top < 0)
        return err_set(e, ERR_MODEL, "no vocabulary with ids from 0 to %d", MAX_ID - 1);
    t->size = top + 1;
    t->tokens = xcalloc((unsigned long)t->size, sizeof *t->tokens);
    t->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    if (read_normalizer(t, json_object_get(p->root, "normalizer"), e) || read_added(t, added, e) ||
        read_vocab(t, p->vocab, &top, e) || index_plain(t, e) || index_added(t, e) ||
        read_merges(t, p->merges, e))
        return -1;
    return tokenizer_read_splits(t, json_object_get(p->root, "pre_tokenizer"), e);
}

struct tokenizer *tokenizer_parse(const char *json, size_t len, struct err *e)
{
    json_error_t why;
    struct file_parts p = {0};
    struct buf rest;
    buf_init(&rest, TEXT_MAX);
    json_cut(json, len, &rest, &p.vocab, &p.merges);
    p.root = json_loadb(rest.data, rest.len, JSON_REJECT_DUPLICATES, &why);
    buf_free(&rest);
    if (!p.root) { /* again, for the line number in the whole file */
        json_decref(json_loadb(json, len, JSON_REJECT_DUPLICATES, &why));
        return err_set(e, ERR_MODEL, "tokenizer.json: line %d: %s", why.line, why.text), NULL;
    }
    struct tokenizer *t = xcalloc(1, sizeof *t);
    buf_init(&t->arena, ARENA_MAX);
    if (read_parts(t, &p, e)) {
        err_prefix(e, "tokenizer.json");
        tokenizer_free(t);
        t = NULL;
    }
    json_decref(p.root);
    return t;
}

struct tokenizer *tokenizer_open(const char *model_dir, struct err *e)
{
    autofree char *path = xasprintf("%s/tokenizer.json", model_dir), *json = NULL;
    size_t len;
    struct tokenizer *t = NULL;
    struct gguf_file *f = gguf_is_place(model_dir) ? gguf_open_text(model_dir, e) : NULL;
    if (f)
        t = tokenizer_of_gguf(f, e);
    else if (!gguf_is_place(model_dir) && file_read(path, TEXT_MAX, &json, &len, e) == 0)
        t = tokenizer_parse(json, len, e);
    gguf_close(f);
    if (!t && e) {
        e->kind = ERR_MODEL;
        err_prefix(e, "model '%s'", model_dir);
    }
    return t;
}
