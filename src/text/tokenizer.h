/* tokenizer.h - text to ids and back: byte-level BPE from a published tokenizer.json.
 *
 * Text that comes from outside (task, notes, tool output, screen) is encoded with special == false:
 * a literal "<SPECIAL_12>" or "<image>" in it is plain text and can neither end a turn nor claim an
 * image.  Only our own template pieces are encoded with special == true.
 */
#ifndef HOLORUN_TEXT_TOKENIZER_H
#define HOLORUN_TEXT_TOKENIZER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

struct tokens { /* growing list of ids; zero-initialised is empty */
    int32_t *ids;
    int64_t n, cap;
};
void tokens_push(struct tokens *t, int32_t id);
void tokens_free(struct tokens *t);

struct tokenizer *tokenizer_open(const char *model_dir, struct err *e);
struct tokenizer *tokenizer_parse(const char *json, size_t len, struct err *e); /* for tests and fuzzing */
void tokenizer_free(struct tokenizer *t);

/* NULL when text is cut the way this family was trained, else one line that says it is not: what the file
 * says counts, but published files of the family are known to carry an older pattern. */
const char *tokenizer_check(const struct tokenizer *t);

/* Appends the ids of text[0..len) to out.  Adds no <s>. Never fails on any bytes. */
void tokenizer_encode(const struct tokenizer *t, const char *text, size_t len, bool special,
                      struct tokens *out);

/* The same for text that comes in parts: what stands between added tokens is encoded as one text, also
 * across the border of two parts, the way the published template is encoded after it is rendered. */
struct text_part {
    const char *text;
    size_t len;
    bool special; /* added tokens are recognised inside this part */
};
void tokenizer_encode_parts(const struct tokenizer *t, const struct text_part *parts, int n,
                            struct tokens *out);

int tokenizer_size(const struct tokenizer *t);                        /* highest id + 1 */
int32_t tokenizer_find(const struct tokenizer *t, const char *token); /* exact token text; -1 */
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);     /* an added token */

/* The bytes of one token: plain tokens decoded to raw bytes, added tokens as spelled.
 * Borrowed, not NUL-terminated; *len 0 for ids out of range. */
const char *tokenizer_bytes(const struct tokenizer *t, int32_t id, size_t *len);

#endif
