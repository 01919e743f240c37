/* tokenizer.h - converts text to token ids and back: byte-level BPE from a published tokenizer.json.
 *
 * External text (task, notes, tool output, screen) is encoded with special == false: a literal
 * "<SPECIAL_12>" or "<image>" in it is plain text, and can neither end a turn nor represent an image. Only
 * segments of the chat template are encoded with special == true. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

struct tokens { /* growing list of ids; zero-initialized is empty */
    int32_t *ids;
    int64_t n, cap;
};
void tokens_push(struct tokens *t, int32_t id);
void tokens_free(struct tokens *t);

struct tokenizer *tokenizer_open(const char *model_dir, struct err *e);
struct tokenizer *tokenizer_parse(const char *json, size_t len, struct err *e); /* for tests and fuzzing */
void tokenizer_free(struct tokenizer *t);

/* Returns NULL if the file splits text as in the family's training, else a one-line warning: some
 * published files have an older pattern, which is used nevertheless. */
const char *tokenizer_check(const struct tokenizer *t);

/* Appends the ids of text[0..len), any bytes, to out; without <s>. */
void tokenizer_encode(const struct tokenizer *t, const char *text, size_t len, bool special,
                      struct tokens *out);

/* Encodes text in parts: the text between two added tokens is encoded as a unit, also across parts, as in
 * a rendered template. */
struct text_part {
    const char *text;
    size_t len;
    bool special; /* added tokens are recognized inside this part */
};
void tokenizer_encode_parts(const struct tokenizer *t, const struct text_part *parts, int n,
                            struct tokens *out);

int tokenizer_size(const struct tokenizer *t);                        /* highest id + 1 */
int32_t tokenizer_find(const struct tokenizer *t, const char *token); /* exact token text; -1 */
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);     /* an added token */

/* Returns the bytes of a token; of added tokens as spelled. Borrowed, not NUL-terminated; *len 0 for
 * unknown ids. */
const char *tokenizer_bytes(const struct tokenizer *t, int32_t id, size_t *len);
