/* tokenizer.c - encodes text with byte-level BPE (tokenizer.h).
 *
 * Encoding has four stages; each splits its text for the next:
 *
 *     encode_parts   at added tokens, in parts where they are recognized
 *     encode_plain   into valid UTF-8, in normal form C if the file requires it, and other bytes, which
 *                    become byte tokens
 *     encode_split   by each regular expression in turn, into matches and gaps
 *     encode_word    byte-pair merges: of all neighbours the pair with the lowest rank is merged first
 *
 * Candidate pairs are kept in a heap, so that a word of n bytes costs n log n. */
#include "text/tokenizer_impl.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void tokens_push(struct tokens *t, int32_t id)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->ids = xrealloc(t->ids, (unsigned long)t->cap, sizeof *t->ids);
    }
    t->ids[t->n++] = id;
}

void tokens_free(struct tokens *t)
{
    free(t->ids);
    *t = (struct tokens){0};
}

/* ---- lookups ------------------------------------------------------------------------------------ */

int32_t tokenizer_find_plain(const struct tokenizer *t, const char *bytes, size_t len)
{
    uint32_t i = (uint32_t)XXH3_64bits(bytes, len) & t->by_bytes_mask;
    for (; t->by_bytes[i] >= 0; i = (i + 1) & t->by_bytes_mask) {
        const struct token *k = &t->tokens[t->by_bytes[i]];
        if (k->len == len && !memcmp(t->arena.data + k->at, bytes, len))
            return t->by_bytes[i];
    }
    return -1;
}

uint32_t tokenizer_merge_slot(const struct tokenizer *t, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & t->merges_mask;
    while (t->merges[i].result >= 0 && (t->merges[i].left != left || t->merges[i].right != right))
        i = (i + 1) & t->merges_mask;
    return i;
}

static const struct merge *find_merge(const struct tokenizer *t, int32_t left, int32_t right)
{
    const struct merge *m = &t->merges[tokenizer_merge_slot(t, left, right)];
    return m->result >= 0 ? m : NULL;
}

/* Returns the longest added token at the beginning of s, or -1. */
static int32_t added_at(const struct tokenizer *t, const char *s, size_t n)
{
    unsigned char first = (unsigned char)s[0];
    for (int i = t->added_from[first]; i < t->added_from[first + 1]; i++) {
        const struct token *k = &t->tokens[t->added[i]];
        if (k->len <= n && !memcmp(t->arena.data + k->at, s, k->len))
            return t->added[i];
    }
    return -1;
}

/* ---- merging -------------------------------------------------------------------------------------- */

struct symbol { /* a token of the word so far; merged ones have id -1 */
    int32_t id;
    int prev, next; /* -1 at the ends */
};

struct candidate { /* two neighbours that may be merged */
    int32_t rank;
    int at; /* the left one */
    int32_t left, right;
};

struct encoder { /* scratch of one call */
    const struct tokenizer *t;
    struct tokens *out;
    pcre2_match_data *match;
    const char *text, *known; /* the text being split, and the text passed to the patterns */
    struct buf known_buf;     /* buffer of `known` */
    struct buf normal;        /* buffer of `text` if it is normalized */
    struct symbol *symbols;
    struct candidate *heap;
    int cap, heap_n;
};

static bool before(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(struct encoder *x, struct candidate c)
{
    int i = x->heap_n++;
    for (int up; i > 0 && before(&c, &x->heap[up = (i - 1) / 2]); i = up)
        x->heap[i] = x->heap[up];
    x->heap[i] = c;
}

static struct candidate heap_pop(struct encoder *x)
{
    struct candidate top = x->heap[0], last = x->heap[--x->heap_n];
    int i = 0;
    for (int down; (down = 2 * i + 1) < x->heap_n; i = down) {
        if (down + 1 < x->heap_n && before(&x->heap[down + 1], &x->heap[down]))
            down++;
        if (!before(&x->heap[down], &last))
            break;
        x->heap[i] = x->heap[down];
    }
    x->heap[i] = last;
    return top;
}

static void offer_pair(struct encoder *x, int at)
{
    int next = at >= 0 ? x->symbols[at].next : -1;
    if (next < 0)
        return;
    int32_t left = x->symbols[at].id, right = x->symbols[next].id;
    const struct merge *m = find_merge(x->t, left, right);
    if (m)
        heap_push(x, (struct candidate){m->rank, at, left, right});
}

static void merge_pair(struct encoder *x, const struct candidate *c)
{
    struct symbol *a = &x->symbols[c->at];
    int next = a->next;
    if (a->id != c->left || next < 0 || x->symbols[next].id != c->right)
        return; /* one of the two has been merged with another symbol meanwhile */
    a->id = find_merge(x->t, c->left, c->right)->result;
    a->next = x->symbols[next].next;
    x->symbols[next].id = -1;
    if (a->next >= 0)
        x->symbols[a->next].prev = c->at;
    offer_pair(x, a->prev);
    offer_pair(x, c->at);
}

static void encode_word(struct encoder *x, const char *s, size_t len)
{
    int32_t whole = x->t->ignore_merges || len == 1 ? tokenizer_find_plain(x->t, s, len) : -1;
    if (whole >= 0) {
        tokens_push(x->out, whole);
        return;
    }
    int n = (int)len;
    if (n > x->cap) { /* a merge removes one symbol and offers at most two pairs */
        x->cap = n * 2;
        x->symbols = xrealloc(x->symbols, (unsigned long)x->cap, sizeof *x->symbols);
        x->heap = xrealloc(x->heap, (unsigned long)x->cap * 3, sizeof *x->heap);
    }
    for (int i = 0; i < n; i++)
        x->symbols[i] = (struct symbol){x->t->byte_ids[(unsigned char)s[i]], i - 1, i + 1 < n ? i + 1 : -1};
    x->heap_n = 0;
    for (int i = 0; i < n; i++)
        offer_pair(x, i);
    while (x->heap_n) {
        struct candidate c = heap_pop(x);
        merge_pair(x, &c);
    }
    for (int i = 0; i >= 0; i = x->symbols[i].next)
        tokens_push(x->out, x->symbols[i].id);
}

/* ---- splitting ----------------------------------------------------------------------------------------- */

/* Finds the next match at or after `from`; returns false if there is none. The JIT fails on texts that
 * need a deep stack, for which the interpreter is used; beyond its limits nothing matches, either. */
static bool next_match(struct encoder *x, const pcre2_code *re, const char *s, size_t n, size_t from,
                       size_t *begin, size_t *end)
{
    int rc = pcre2_match(re, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK, x->match, NULL);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(re, (PCRE2_SPTR)s, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, x->match, NULL);
    if (rc < 0)
        return false;
    const PCRE2_SIZE *v = pcre2_get_ovector_pointer(x->match);
    *begin = v[0];
    *end = v[1];
    return true;
}

static void encode_split(struct encoder *x, int stage, const char *s, size_t n)
{
    if (n == 0)
        return;
    if (stage == x->t->n_splits) {
        encode_word(x, s, n);
        return;
    }
    size_t done = 0, from = 0, begin, end;
    const char *seen = x->t->literal[stage] ? s : x->known + (s - x->text);
    while (from < n && next_match(x, x->t->splits[stage], seen, n, from, &begin, &end)) {
        if (end <= begin) { /* an empty match splits nothing: continue after the next character */
            for (from = end + 1; from < n && (s[from] & 0xc0) == 0x80; from++)
                ;
            continue;
        }
        encode_split(x, stage + 1, s + done, begin - done);
        encode_split(x, stage + 1, s + begin, end - begin);
        done = from = end;
    }
    encode_split(x, stage + 1, s + done, n - done);
}

enum { SPLIT_MAX = 1 << 24 }; /* positions are ints: longer texts are split at any byte */

static void encode_text(struct encoder *x, const char *s, size_t n)
{
    x->text = x->t->nfc ? tokenizer_nfc(s, &n, &x->normal) : s;
    x->known = tokenizer_known(x->text, n, &x->known_buf);
    encode_split(x, 0, x->text, n);
}

static void encode_plain(struct encoder *x, const char *s, size_t n)
{
    while (n) {
        size_t valid = utf8_valid_prefix(s, n < SPLIT_MAX ? n : SPLIT_MAX);
        encode_text(x, s, valid);
        s += valid;
        n -= valid;
        if (n && valid == 0) {
            tokens_push(x->out, x->t->byte_ids[(unsigned char)*s++]);
            n--;
        }
    }
}

/* ---- parts -------------------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Encodes the plain text before an added token, without the whitespace that the token absorbs. */
static void flush_plain(struct encoder *x, struct buf *plain, const struct token *before_token)
{
    if (before_token && before_token->lstrip)
        while (plain->len && is_space(plain->data[plain->len - 1]))
            plain->len--;
    encode_plain(x, plain->data, plain->len);
    buf_clear(plain);
}

static void scan_part(struct encoder *x, const struct text_part *p, struct buf *plain)
{
    for (size_t i = 0; i < p->len;) {
        int32_t id = p->special ? added_at(x->t, p->text + i, p->len - i) : -1;
        if (id < 0) {
            buf_putc(plain, p->text[i++]);
            continue;
        }
        const struct token *k = &x->t->tokens[id];
        flush_plain(x, plain, k);
        tokens_push(x->out, id);
        i += k->len;
        while (k->rstrip && i < p->len && is_space(p->text[i]))
            i++;
    }
}

void tokenizer_encode_parts(const struct tokenizer *t, const struct text_part *parts, int n,
                            struct tokens *out)
{
    struct encoder x = {.t = t, .out = out, .match = pcre2_match_data_create(1, NULL)};
    if (!x.match)
        die(ERR_ENV, "out of memory");
    struct buf plain;
    buf_init(&plain, (size_t)-1 / 4);
    buf_init(&x.known_buf, (size_t)-1 / 4);
    buf_init(&x.normal, (size_t)-1 / 4);
    for (int i = 0; i < n; i++)
        scan_part(&x, &parts[i], &plain);
    flush_plain(&x, &plain, NULL);
    buf_free(&plain);
    buf_free(&x.known_buf);
    buf_free(&x.normal);
    pcre2_match_data_free(x.match);
    free(x.symbols);
    free(x.heap);
}

void tokenizer_encode(const struct tokenizer *t, const char *text, size_t len, bool special,
                      struct tokens *out)
{
    tokenizer_encode_parts(t, &(struct text_part){text, len, special}, 1, out);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

int tokenizer_size(const struct tokenizer *t)
{
    return t->size;
}

int32_t tokenizer_find(const struct tokenizer *t, const char *token)
{
    size_t n = strlen(token);
    int32_t id = n ? added_at(t, token, n) : -1;
    return id >= 0 && t->tokens[id].len == n ? id : tokenizer_find_plain(t, token, n);
}

const char *tokenizer_check(const struct tokenizer *t)
{
    if (t->trained_split && t->n_splits == 1)
        return NULL;
    return "the tokenizer's split pattern differs from the one used in training; using the file's";
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->size && t->tokens[id].added;
}

const char *tokenizer_bytes(const struct tokenizer *t, int32_t id, size_t *len)
{
    bool known = id >= 0 && id < t->size;
    *len = known ? t->tokens[id].len : 0;
    return t->arena.data + (known ? t->tokens[id].at : 0);
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->n_splits; i++)
        pcre2_code_free(t->splits[i]);
    buf_free(&t->arena);
    free(t->tokens);
    free(t->by_bytes);
    free(t->merges);
    free(t->added);
    free(t);
}
