/* gguf.h - the head of a GGUF file, version 3: keys with values, and a table of tensors.
 *
 * Written in the order of the calls; the data of tensors follow the head in the order of gguf_tensor, each
 * padded to GGUF_ALIGN bytes, and so does the first.
 */
#ifndef HOLORUN_TESTS_GGUF_H
#define HOLORUN_TESTS_GGUF_H

#include "base/buf.h"
#include "base/gguf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_ALIGN = 32, GGUF_BLOCK = 32 }; /* BLOCK: numbers that share a scale in Q8_0 */

/* A block of Q8_0: scale as a half, then the codes. */
struct gguf_q8 {
    uint16_t scale;
    int8_t codes[GGUF_BLOCK];
};

struct gguf {
    struct buf keys, tensors;
    uint64_t n_keys, n_tensors, at; /* at: where data of the next tensor begin, from the first */
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

uint64_t gguf_bytes(enum ggml_type type, uint64_t count); /* of `count` numbers, without padding */
void gguf_tensor(struct gguf *g, const char *name, enum ggml_type type, const int64_t *shape,
                 int dims); /* slowest first */

/* All that stands before the data; the caller frees. */
void gguf_head(const struct gguf *g, struct buf *out);

/* Fills n bytes with blocks of a type as make_blocks.py draws them; with an exponent from 1 to 30 all their
 * scales in f16 have that one (15: from 1 to 2), and the other types scales of that size. */
void gguf_draw(enum ggml_type type, uint64_t seed, int exponent, uint8_t *out, size_t n);

/* A block of 32 numbers: scale so that the largest is 127, codes rounded to nearest. */
void gguf_make_q8(const float v[GGUF_BLOCK], struct gguf_q8 *out);

#endif
