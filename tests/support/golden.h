/* golden.h - values that somebody else's code computed, and the same numbers drawn again.
 *
 * A folder of tests/golden made by tests/reference/golden.py holds config.json, reference.json and
 * reference.bin.  Its weights are not stored: the table in reference.json says how each tensor is drawn (the
 * generator is described in golden.py), and golden_checkpoint writes them as a model directory that is
 * loaded like any other.
 */
#ifndef HOLORUN_TESTS_GOLDEN_H
#define HOLORUN_TESTS_GOLDEN_H

#include "place.h"

#include "base/file.h"
#include "base/image.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct golden {
    json_t *root;
    struct file_map data;
    uint64_t seed;
    char dir[64];                /* where the fixture is */
    char checkpoint[PLACE_PATH]; /* where golden_checkpoint wrote; "" before */
};

/* One array: some rows of a stage, or all of them. */
struct golden_array {
    const void *data;
    int64_t rows, cols;  /* of what is stored; a vector is one column */
    const json_t *which; /* the rows' numbers; NULL: all from 0 */
};

void golden_open(struct golden *g, const char *name); /* fails the test when it cannot */
void golden_close(struct golden *g);                  /* removes the checkpoint */

struct golden_array golden_find(const struct golden *g, const char *name); /* data NULL: not there */
int64_t golden_number(const struct golden *g, const char *key);

/* Returns the largest difference of n values, as a fraction of the largest of `want`. */
double golden_apart(const float *have, const float *want, int64_t n);
/* Returns the index of the largest of n values. */
int32_t golden_best(const float *values, int n);

/* n numbers of a tensor from number `first` on, as bf16. */
void golden_draw(uint64_t seed, const char *name, int64_t first, int64_t n, int64_t offset, float unit,
                 uint16_t *out);
/* The 64 bits that number i of a tensor is made of. */
uint64_t golden_mixed(uint64_t seed, const char *name, int64_t i);
/* +1 or -1 for column c of the sums. */
float golden_sign(uint64_t column, int64_t c);

/* The picture that make_qwen_picture.py draws; the caller frees it with image_free. */
void golden_picture(struct image *im, int w, int h, int kind);

/* Writes config.json and model.safetensors (bf16) into a folder of its own. */
void golden_checkpoint(struct golden *g);

#endif
