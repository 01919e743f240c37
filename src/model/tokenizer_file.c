/* tokenizer_file.c - tokenizer.json into a struct tokenizer.
 *
 * What is understood is what this family and its relatives publish: model BPE at byte level, no
 * normaliser, a pre-tokenizer made of Split steps and ByteLevel.  Anything else changes the ids and is
 * refused with the part named.
 *
 * A byte-level vocabulary spells each byte as one printable character (GPT-2's table): printable Latin-1
 * bytes as themselves, the others as U+0100 and following.  Added tokens are spelled as they are.
 */
#include "model/tokenizer_impl.h"

#include "base/file.h"
#include "base/utf8.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    TEXT_MAX = 128 << 20,
    MAX_ID = 1 << 21,
    MAX_MERGES = 1 << 21,
    MAX_TOKEN = 1024, /* bytes of one token */
    MAX_PATTERN = 4096,
    ARENA_MAX = 256 << 20,
};

/* GPT-2's own split, which a ByteLevel step with use_regex does. */
static const char gpt2_split[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static int bad(struct err *e, const char *what)
{
    return err_set(e, ERR_MODEL, "tokenizer.json: %s", what);
}

/* ---- bytes as characters ---------------------------------------------------------------------------- */

/* The byte that a character of a byte-level vocabulary stands for, or -1. */
static int char_to_byte(uint32_t cp)
{
    static const struct {
        uint32_t from, to; /* printable: these stand for themselves */
    } plain[] = {{33, 126}, {161, 172}, {174, 255}};
    uint32_t byte = 0, rank = cp - 256;
    for (size_t i = 0; i < 3; i++)
        if (cp >= plain[i].from && cp <= plain[i].to)
            return (int)cp;
    if (cp < 256)
        return -1;
    for (size_t i = 0; i < 3; i++) { /* the rank-th of the bytes that do not */
        uint32_t gap = plain[i].from - byte;
        if (rank < gap)
            return (int)(byte + rank);
        rank -= gap;
        byte = plain[i].to + 1;
    }
    return -1;
}

/* Bytes of a spelled token; -1 when a character stands for none or it is too long. */
static int unspell(const char *s, size_t n, char out[MAX_TOKEN])
{
    int len = 0;
    while (n) {
        uint32_t cp;
        int k = utf8_decode(s, n, &cp), byte = k > 0 ? char_to_byte(cp) : -1;
        if (byte < 0 || len == MAX_TOKEN)
            return -1;
        out[len++] = (char)byte;
        s += k;
        n -= (size_t)k;
    }
    return len;
}

/* ---- tokens ------------------------------------------------------------------------------------------- */

static int set_token(struct tokenizer *t, int32_t id, const char *bytes, size_t len, struct err *e)
{
    t->tokens[id].at = (uint32_t)t->arena.len;
    t->tokens[id].len = (uint32_t)len;
    return buf_put(&t->arena, bytes, len) ? bad(e, "the tokens are too long altogether") : 0;
}

static int token_id(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < MAX_ID
               ? (int)json_integer_value(v)
               : -1;
}

/* Highest id + 1 of vocabulary and added tokens, -1 when one is impossible. */
static int count_ids(json_t *vocab, const json_t *added)
{
    int top = -1;
    const char *key;
    json_t *v;
    size_t i;
    json_object_foreach(vocab, key, v)
    {
        int id = token_id(v);
        if (id < 0)
            return -1;
        top = id > top ? id : top;
    }
    json_array_foreach(added, i, v)
    {
        int id = token_id(json_object_get(v, "id"));
        if (id < 0)
            return -1;
        top = id > top ? id : top;
    }
    return top + 1;
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
            return err_set(e, ERR_MODEL, "tokenizer.json: added token %d has no content of 1 to %d bytes", id,
                           MAX_TOKEN);
        if (t->tokens[id].len)
            return err_set(e, ERR_MODEL, "tokenizer.json: added token %d is there twice", id);
        if (json_is_true(json_object_get(v, "single_word")))
            return err_set(e, ERR_MODEL,
                           "tokenizer.json: added token '%s' is single_word, which is not implemented",
                           content);
        if (set_token(t, id, content, n, e))
            return -1;
        t->tokens[id].added = true;
        t->tokens[id].lstrip = json_is_true(json_object_get(v, "lstrip"));
        t->tokens[id].rstrip = json_is_true(json_object_get(v, "rstrip"));
    }
    return 0;
}

static int read_vocab(struct tokenizer *t, json_t *vocab, struct err *e)
{
    const char *key;
    json_t *v;
    char bytes[MAX_TOKEN];
    json_object_foreach(vocab, key, v)
    {
        int id = token_id(v), len;
        struct token *k = &t->tokens[id];
        if (k->added) {
            if (strlen(key) != k->len || memcmp(key, t->arena.data + k->at, k->len) != 0)
                return err_set(e, ERR_MODEL,
                               "tokenizer.json: id %d is '%s' and an added token of another name", id, key);
            continue;
        }
        if (k->len)
            return err_set(e, ERR_MODEL, "tokenizer.json: id %d is there twice, the second time as '%s'", id,
                           key);
        if ((len = unspell(key, strlen(key), bytes)) <= 0)
            return err_set(e, ERR_MODEL, "tokenizer.json: token %d '%s' is not spelled in the byte alphabet",
                           id, key);
        if (set_token(t, id, bytes, (size_t)len, e))
            return -1;
    }
    return 0;
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
        while (t->by_bytes[i] >= 0)
            i = (i + 1) & t->by_bytes_mask;
        t->by_bytes[i] = id;
    }
    for (int b = 0; b < 256; b++) {
        char c = (char)b;
        if ((t->byte_ids[b] = tokenizer_find_plain(t, &c, 1)) < 0)
            return err_set(e, ERR_MODEL, "tokenizer.json: byte 0x%02x has no token", b);
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
            return err_set(e, ERR_MODEL, "tokenizer.json: added tokens %d and %d have the same name",
                           t->added[i - 1], t->added[i]);
        t->added_from[(unsigned char)t->arena.data[t->tokens[t->added[i]].at] + 1] = i + 1;
    }
    for (int b = 0; b < 256; b++)
        if (t->added_from[b + 1] < t->added_from[b])
            t->added_from[b + 1] = t->added_from[b];
    return 0;
}

/* ---- merges -------------------------------------------------------------------------------------------- */

/* The two halves of a merge, which is "left right" or ["left", "right"]. */
static int split_merge(const json_t *v, const char *half[2], size_t len[2])
{
    const char *s = json_string_value(v);
    const char *space = s ? strchr(s, ' ') : NULL;
    if (s) {
        half[0] = s;
        len[0] = space ? (size_t)(space - s) : 0;
        half[1] = space ? space + 1 : s;
        len[1] = space ? strlen(space + 1) : 0;
    } else {
        for (size_t i = 0; i < 2; i++) {
            half[i] = json_string_value(json_array_get(v, i));
            len[i] = half[i] ? strlen(half[i]) : 0;
        }
    }
    return len[0] && len[1] ? 0 : -1;
}

static int read_merge(struct tokenizer *t, const json_t *v, int rank, struct err *e)
{
    const char *half[2];
    size_t len[2];
    char both[2 * MAX_TOKEN];
    if (split_merge(v, half, len))
        return err_set(e, ERR_MODEL, "tokenizer.json: merge %d is not a pair", rank);
    int n = unspell(half[0], len[0], both), m = n < 0 ? -1 : unspell(half[1], len[1], both + n);
    if (m < 0)
        return err_set(e, ERR_MODEL, "tokenizer.json: merge %d is not spelled in the byte alphabet", rank);
    int32_t left = tokenizer_find_plain(t, both, (size_t)n);
    int32_t right = tokenizer_find_plain(t, both + n, (size_t)m);
    int32_t result = tokenizer_find_plain(t, both, (size_t)(n + m));
    if (left < 0 || right < 0 || result < 0)
        return err_set(e, ERR_MODEL, "tokenizer.json: merge %d, '%.*s' and '%.*s', is not in the vocabulary",
                       rank, (int)len[0], half[0], (int)len[1], half[1]);
    struct merge *slot = &t->merges[tokenizer_merge_slot(t, left, right)];
    if (slot->result < 0) /* a pair that comes again would never be used */
        *slot = (struct merge){left, right, result, rank};
    return 0;
}

static int read_merges(struct tokenizer *t, const json_t *merges, struct err *e)
{
    size_t n = json_array_size(merges), i;
    json_t *v;
    if (!json_is_array(merges) || n > MAX_MERGES)
        return bad(e, "'merges' is not a list of at most 2097152");
    t->merges_mask = table_mask((int)n);
    t->merges = xmalloc((unsigned long)t->merges_mask + 1, sizeof *t->merges);
    for (uint32_t k = 0; k <= t->merges_mask; k++)
        t->merges[k].result = -1;
    json_array_foreach(merges, i, v)
    {
        if (read_merge(t, v, (int)i, e))
            return -1;
    }
    return 0;
}

/* ---- pre-tokenizer ------------------------------------------------------------------------------------- */

/* Published patterns are written for Oniguruma and Rust's regex, for which white space is Unicode's
 * property of that name; PCRE2 counts U+180E too.  What else reads differently there is refused. */
static int translate_pattern(struct buf *out, const char *p, struct err *e)
{
    int depth = 0; /* of character classes */
    for (; *p; p++) {
        if (*p == '\\' && (p[1] == 's' || p[1] == 'S')) {
            buf_puts(out, *++p == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
            continue;
        }
        if ((*p == '\\' && (p[1] == 'h' || p[1] == 'H')) || (depth && p[0] == '&' && p[1] == '&'))
            return err_set(e, ERR_MODEL, "tokenizer.json: '%.2s' in a split pattern is not implemented", p);
        buf_putc(out, *p);
        if (*p == '\\' && p[1])
            buf_putc(out, *++p);
        else if (*p == '[')
            depth++;
        else if (*p == ']' && depth)
            depth--;
    }
    return 0;
}

static int compile_split(struct tokenizer *t, const char *pattern, uint32_t flags, struct err *e)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, flags, &code, &at, NULL);
    if (!re) {
        PCRE2_UCHAR why[128];
        pcre2_get_error_message(code, why, sizeof why);
        return err_set(e, ERR_MODEL, "tokenizer.json: split pattern, character %zu: %s", at, (char *)why);
    }
    t->splits[t->n_splits++] = re;
    pcre2_jit_compile(re, PCRE2_JIT_COMPLETE); /* where there is no JIT, matching is only slower */
    return 0;
}

static int add_split(struct tokenizer *t, const char *pattern, bool literal, struct err *e)
{
    if (t->n_splits == TOKENIZER_MAX_SPLITS || strlen(pattern) > MAX_PATTERN)
        return bad(e, "too many split steps or too long a pattern");
    if (literal)
        return compile_split(t, pattern, PCRE2_UTF | PCRE2_LITERAL, e);
    struct buf translated;
    buf_init(&translated, 16 * MAX_PATTERN);
    int rc = translate_pattern(&translated, pattern, e);
    rc = rc ? rc : compile_split(t, translated.data, PCRE2_UTF | PCRE2_UCP, e);
    buf_free(&translated);
    return rc;
}

/* Every byte must come out again: a split that drops what it matches would lose text. */
static int read_split(struct tokenizer *t, const json_t *step, struct err *e)
{
    const char *behavior = json_string_value(json_object_get(step, "behavior"));
    const json_t *pattern = json_object_get(step, "pattern");
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *literal = json_string_value(json_object_get(pattern, "String"));
    bool invert = json_is_true(json_object_get(step, "invert"));
    if (!behavior || !(!strcmp(behavior, "Isolated") || (!strcmp(behavior, "Removed") && invert)))
        return err_set(e, ERR_MODEL, "tokenizer.json: split behaviour '%s' is not implemented",
                       behavior ? behavior : "none");
    if (!regex && !literal)
        return bad(e, "a split step has no pattern");
    return add_split(t, regex ? regex : literal, !regex, e);
}

static int read_step(struct tokenizer *t, const json_t *step, struct err *e)
{
    const char *type = json_string_value(json_object_get(step, "type"));
    if (type && !strcmp(type, "Split"))
        return read_split(t, step, e);
    if (!type || strcmp(type, "ByteLevel") != 0)
        return err_set(e, ERR_MODEL, "tokenizer.json: pre-tokenizer '%s' is not implemented",
                       type ? type : "none");
    if (json_is_true(json_object_get(step, "add_prefix_space")))
        return bad(e, "'add_prefix_space' is set, which is not implemented");
    const json_t *use_regex = json_object_get(step, "use_regex");
    return use_regex && !json_is_true(use_regex) ? 0 : add_split(t, gpt2_split, false, e);
}

static int read_pre_tokenizer(struct tokenizer *t, const json_t *pre, struct err *e)
{
    const char *type = json_string_value(json_object_get(pre, "type"));
    if (!type || strcmp(type, "Sequence") != 0)
        return read_step(t, pre, e);
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(pre, "pretokenizers"), i, step)
    {
        if (read_step(t, step, e))
            return -1;
    }
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static bool is_empty(const json_t *v)
{
    return !v || json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0);
}

/* What would change the ids in a way that is not implemented here. */
static int check_kind(const json_t *root, const json_t *model, struct err *e)
{
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!type || strcmp(type, "BPE") != 0)
        return err_set(e, ERR_MODEL, "tokenizer.json: model '%s' is not implemented, only BPE",
                       type ? type : "none");
    if (!is_empty(json_object_get(root, "normalizer")))
        return bad(e, "it has a normalizer, which is not implemented");
    if (!is_empty(json_object_get(model, "continuing_subword_prefix")) ||
        !is_empty(json_object_get(model, "end_of_word_suffix")) ||
        json_is_true(json_object_get(model, "byte_fallback")))
        return bad(e, "its BPE is not at byte level, which is not implemented");
    return 0;
}

static int read_root(struct tokenizer *t, const json_t *root, struct err *e)
{
    const json_t *model = json_object_get(root, "model"), *added = json_object_get(root, "added_tokens");
    json_t *vocab = json_object_get(model, "vocab");
    if (check_kind(root, model, e))
        return -1;
    t->size = json_is_object(vocab) ? count_ids(vocab, added) : 0;
    if (t->size <= 0)
        return err_set(e, ERR_MODEL, "tokenizer.json: no vocabulary with ids from 0 to %d", MAX_ID - 1);
    t->tokens = xcalloc((unsigned long)t->size, sizeof *t->tokens);
    t->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    if (read_added(t, added, e) || read_vocab(t, vocab, e) || index_plain(t, e) || index_added(t, e) ||
        read_merges(t, json_object_get(model, "merges"), e))
        return -1;
    return read_pre_tokenizer(t, json_object_get(root, "pre_tokenizer"), e);
}

struct tokenizer *tokenizer_parse(const char *json, size_t len, struct err *e)
{
    json_error_t why;
    json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return err_set(e, ERR_MODEL, "tokenizer.json: line %d: %s", why.line, why.text), NULL;
    struct tokenizer *t = xcalloc(1, sizeof *t);
    buf_init(&t->arena, ARENA_MAX);
    if (read_root(t, root, e)) {
        tokenizer_free(t);
        t = NULL;
    }
    json_decref(root);
    return t;
}

struct tokenizer *tokenizer_open(const char *model_dir, struct err *e)
{
    char *path = xasprintf("%s/tokenizer.json", model_dir), *json = NULL;
    size_t len;
    struct tokenizer *t = file_read(path, TEXT_MAX, &json, &len, e) ? NULL : tokenizer_parse(json, len, e);
    if (!t && e) {
        e->kind = ERR_MODEL;
        err_prefix(e, "model '%s'", model_dir);
    }
    free(json);
    free(path);
    return t;
}
