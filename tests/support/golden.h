/* golden.h - reference values computed by independent code, and the random numbers that they are based on.
 *
 * A folder of tests/golden made by tests/reference/golden.py holds config.json, reference.json and
 * reference.bin. Weights are not stored: a table in reference.json says how to draw each tensor (golden.py
 * describes the generator), and golden_checkpoint() writes them as a normal model directory.
 */
#pragma once

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
    char dir[64];                /* folder of the fixture */
    char checkpoint[PLACE_PATH]; /* output of golden_checkpoint(); "" before */
};

/* One array: some or all rows of a stage. */
struct golden_array {
    const void *data;
    int64_t rows, cols;  /* of the stored rows; a vector is one column */
    const json_t *which; /* numbers of the stored rows; NULL: all from 0 */
};

void golden_open(struct golden *g, const char *name); /* fails the test on an error */
void golden_close(struct golden *g);                  /* removes the checkpoint */

struct golden_array golden_find(const struct golden *g, const char *name); /* data NULL: not found */
int64_t golden_number(const struct golden *g, const char *key);

/* Returns the largest difference of n values, as a fraction of the largest of `want`. */
double golden_apart(const float *have, const float *want, int64_t n);
/* Returns the index of the largest of n values. */
int32_t golden_best(const float *values, int n);

/* Draws n numbers of a tensor, from number `first`, as bf16. */
void golden_draw(uint64_t seed, const char *name, int64_t first, int64_t n, int64_t offset, float unit,
                 uint16_t *out);
/* Returns the 64 random bits of number i of a tensor. */
uint64_t golden_mixed(uint64_t seed, const char *name, int64_t i);
/* Returns +1 or -1 for column c of the sums. */
float golden_sign(uint64_t column, int64_t c);

/* Draws the image of make_qwen_picture.py; free it with image_free(). */
void golden_picture(struct image *im, int w, int h, int kind);

/* Writes config.json and model.safetensors (bf16) into a temporary folder. */
void golden_checkpoint(struct golden *g);
