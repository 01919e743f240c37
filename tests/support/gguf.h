/* gguf.h - writes the head of a GGUF file, version 3: keys with values, and a table of tensors.
 *
 * Keys and tensors keep the order of the calls. The data follows the head in the order of gguf_tensor(); the
 * head and each tensor are padded to GGUF_ALIGN bytes.
 */
#pragma once

#include "base/buf.h"
#include "base/gguf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_ALIGN = 32, GGUF_BLOCK = 32 }; /* BLOCK: numbers per scale in Q8_0 */

/* Q8_0 block: scale as a half, then the codes. */
struct gguf_q8 {
    uint16_t scale;
    int8_t codes[GGUF_BLOCK];
};

struct gguf {
    struct buf keys, tensors;
    uint64_t n_keys, n_tensors, at; /* at: offset of the next tensor's data from the first tensor's */
};

void gguf_init(struct gguf *g);
void gguf_free(struct gguf *g);

void gguf_int(struct gguf *g, const char *key, uint32_t v);
void gguf_float(struct gguf *g, const char *key, float v);
void gguf_text(struct gguf *g, const char *key, const char *v);
void gguf_flag(struct gguf *g, const char *key); /* true */
void gguf_false(struct gguf *g, const char *key);
void gguf_ints(struct gguf *g, const char *key, const uint32_t *v, uint64_t n);
void gguf_floats(struct gguf *g, const char *key, const float *v, uint64_t n);
void gguf_texts(struct gguf *g, const char *key, uint64_t n); /* n calls of gguf_item follow */
void gguf_item(struct gguf *g, const char *s, size_t len);

uint64_t gguf_bytes(enum ggml_type type, uint64_t count); /* size of `count` numbers without padding */
void gguf_tensor(struct gguf *g, const char *name, enum ggml_type type, const int64_t *shape,
                 int dims); /* slowest dimension first */

/* Writes everything before the data; the caller frees it. */
void gguf_head(const struct gguf *g, struct buf *out);

/* Fills n bytes with blocks of a type as make_blocks.py draws them. A nonzero exponent, 1 to 30, is that of
 * all f16 scales (15: from 1 to 2); other types get scales of that size. */
void gguf_draw(enum ggml_type type, uint64_t seed, int exponent, uint8_t *out, size_t n);

/* Quantizes 32 numbers: the largest becomes 127, codes are rounded to nearest. */
void gguf_make_q8(const float v[GGUF_BLOCK], struct gguf_q8 *out);
