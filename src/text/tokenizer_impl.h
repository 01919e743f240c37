/* tokenizer_impl.h - struct tokenizer: built by tokenizer_file.c, _json.c and _split.c, used by
 * tokenizer.c; private to them. */
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/buf.h"
#include "text/tokenizer.h"

#include <jansson.h>
#include <pcre2.h>

enum { TOKENIZER_MAX_SPLITS = 8 };

struct token {
    uint32_t at, len; /* bytes [at, at + len) of the arena; len 0: unused id */
    bool added;
    bool lstrip, rstrip; /* an added token that absorbs the whitespace before or after it */
};

/* Entry of the hash table of merges, open addressing. */
struct merge {
    int32_t left, right; /* ids of the two tokens */
    int32_t result;      /* id of the merged token, -1: free slot */
    int32_t rank;        /* lower ranks are merged first */
};

struct tokenizer {
    struct token *tokens; /* [size] by id */
    int size;
    struct buf arena;  /* the bytes of all tokens */
    int32_t *by_bytes; /* hash table of the plain tokens, open addressing; below 0: free slot */
    uint32_t by_bytes_mask;
    struct merge *merges;
    uint32_t merges_mask;
    int32_t byte_ids[256];
    int32_t *added; /* sorted by first byte, then longest first */
    int n_added;
    int added_from[257]; /* the added tokens that start with byte b are added[added_from[b] .. added_from[b +
                          * 1]) */
    pcre2_code *splits[TOKENIZER_MAX_SPLITS];
    bool literal[TOKENIZER_MAX_SPLITS]; /* a literal text instead of a pattern */
    int n_splits;
    bool trained_split; /* the pattern is one of trained_splits */
    bool nfc;           /* text is converted to normal form C before it is split */
    bool ignore_merges; /* a word that is a token needs no merging */
};

int32_t tokenizer_find_plain(const struct tokenizer *t, const char *bytes, size_t len); /* -1 */
uint32_t tokenizer_merge_slot(const struct tokenizer *t, int32_t left,
                              int32_t right); /* its slot or a free one */

/* Builds the tokenizer from a GGUF file's keys (tokenizer_gguf.c). */
struct gguf_file;
struct tokenizer *tokenizer_of_gguf(const struct gguf_file *f, struct err *e);

int tokenizer_read_splits(struct tokenizer *t, const json_t *pre_tokenizer, struct err *e);

/* A row of a table in the order of its characters.  category: as the table defines it. */
struct char_range {
    uint32_t first, last;
    int category;
};
/* Returns the row of n that contains a character, or NULL. */
const struct char_range *char_range_find(const struct char_range *table, size_t n, uint32_t c);

/* Returns a text of n bytes of UTF-8 with replacements for characters unknown to the split patterns
 * (tokenizer_unicode.c): s itself, or a copy in `buf` with the same byte positions, valid until the next
 * call with that buffer. */
const char *tokenizer_known(const char *s, size_t n, struct buf *buf);

/* Returns a valid UTF-8 text of *n bytes in normal form C (tokenizer_nfc.c): s itself, or a copy of *n
 * bytes in `buf`. */
const char *tokenizer_nfc(const char *s, size_t *n, struct buf *buf);

/* ---- tokenizer_json.c: reads the two long parts of a tokenizer.json in place --------------------------- */

struct json_reader { /* the rest of a text */
    const char *at, *end;
};

/* Points readers to model.vocab and model.merges (`at` NULL: absent) and copies everything else to rest,
 * replacing them by null. Never fails: malformed text stays in rest, where the parser rejects it. */
void json_cut(const char *json, size_t len, struct buf *rest, struct json_reader *vocab,
              struct json_reader *merges);

/* Skips whitespace, and c if that is the next character; returns whether it was. */
bool json_next(struct json_reader *r, char c);

/* Reads a string into out, NUL-terminated. Returns its length, or -1 if there is none or it does not fit
 * in max bytes. */
int json_read_string(struct json_reader *r, char *out, int max);

/* Reads an integer from 0 to max; -1 if there is none. */
int json_read_count(struct json_reader *r, int max);
