/* gguf.h - reads GGUF files, versions 2 and 3: keys with values, and named tensors, in one mapped file.
 *
 *     "GGUF"  version u32  tensors u64  keys u64
 *     key:    text, type u32, value          text: length u64, bytes; list: type u32, count u64, items
 *     tensor: text, dimensions u32, sizes u64 fastest first, type u32, offset u64
 *     padding, then the tensors' data, each at a multiple of general.alignment (32)
 *
 * The file is untrusted: every length is compared with the rest of the file before it is used, and the
 * tensors must be contiguous, without overlaps or gaps, inside the file. Only little-endian files are
 * supported. Values stay in the file: pointers in the structs below are valid while the file is open. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_MAX_DIMS = 4 };

/* Types of values. */
enum gguf_kind {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_FLOAT,
    GGUF_FLAG,
    GGUF_TEXT,
    GGUF_LIST,
    GGUF_U64,
    GGUF_I64,
    GGUF_DOUBLE,
    GGUF_KINDS
};

/* Types of tensors. ops/gguf_rows.h supports all but the integers and Q1_0. */
enum ggml_type {
    GGML_F32 = 0,
    GGML_F16 = 1,
    GGML_Q4_0 = 2,
    GGML_Q4_1 = 3,
    GGML_Q5_0 = 6,
    GGML_Q5_1 = 7,
    GGML_Q8_0 = 8,
    GGML_Q8_1 = 9,
    GGML_Q2_K = 10,
    GGML_Q3_K = 11,
    GGML_Q4_K = 12,
    GGML_Q5_K = 13,
    GGML_Q6_K = 14,
    GGML_Q8_K = 15,
    GGML_IQ2_XXS = 16,
    GGML_IQ2_XS = 17,
    GGML_IQ3_XXS = 18,
    GGML_IQ1_S = 19,
    GGML_IQ4_NL = 20,
    GGML_IQ3_S = 21,
    GGML_IQ2_S = 22,
    GGML_IQ4_XS = 23,
    GGML_F64 = 28,
    GGML_IQ1_M = 29,
    GGML_BF16 = 30,
    GGML_TQ1_0 = 34,
    GGML_TQ2_0 = 35,
    GGML_MXFP4 = 39,
    GGML_NVFP4 = 40,
    GGML_TYPES = 42,
};

struct gguf_value {
    enum gguf_kind kind; /* for a list: type of its items */
    bool list;
    uint64_t count; /* 1, or the number of items of a list */
    const uint8_t *at, *end;
};

struct gguf_entry {
    char *name;
    uint32_t type; /* enum ggml_type, or another type with a known size */
    int dims;
    int64_t shape[GGUF_MAX_DIMS]; /* slowest first */
    const uint8_t *data;
    size_t bytes;
};

struct gguf_file;

struct gguf_file *gguf_open(const char *path, struct err *e); /* NULL on failure */
/* Parses a file in memory, which remains the caller's; `name` is for messages. Returns NULL with e. */
struct gguf_file *gguf_parse(const char *name, const void *data, size_t len, struct err *e);
void gguf_close(struct gguf_file *f);

const char *gguf_name(const struct gguf_file *f);                  /* without directory */
const uint8_t *gguf_whole(const struct gguf_file *f, size_t *len); /* the whole file */

int gguf_count(const struct gguf_file *f);
const struct gguf_entry *gguf_at(const struct gguf_file *f, int i); /* in file order */
const struct gguf_entry *gguf_find(const struct gguf_file *f, const char *name);

/* Looks up the value of a key; returns false if it is missing. */
bool gguf_value(const struct gguf_file *f, const char *key, struct gguf_value *out);

/* Read the next item of a list, or the value itself, and advance: a number or flag as a double; a string,
 * not NUL-terminated. Return false at the end or if it is of another kind. */
bool gguf_next_number(struct gguf_value *v, double *out);
bool gguf_next_text(struct gguf_value *v, const char **text, size_t *len);

/* Return a single value: a number, or `absent`; a string that the caller frees, or NULL. */
double gguf_number_of(const struct gguf_file *f, const char *key, double absent);
char *gguf_text_of(const struct gguf_file *f, const char *key);

/* ---- models in GGUF files (gguf_place.c) ----------------------------------------------------------------
 *
 * The place of a model is the path of its file, or of two files, TEXT.gguf,VISION.gguf: the second
 * contains the vision encoder. A path ends in .gguf or is a blob of Ollama, sha256-HEX. For a split file
 * the place names the first part, NAME-00001-of-00003.gguf. */
bool gguf_is_place(const char *place);

/* Open the first or the second file of a place. Return NULL without a message if the place has only one.
 * Of a split file only the first part is opened; it contains all keys. */
struct gguf_file *gguf_open_text(const char *place, struct err *e);
struct gguf_file *gguf_open_vision(const char *place, struct err *e);

/* Returns the number of parts of a split file, given its first part; 1: not split. */
int gguf_parts(const struct gguf_file *text);

/* Opens part `part` (1 to `of`) of a split file; of = 0: the number that part 1 claims. */
struct gguf_file *gguf_open_part(const char *place, int part, int of, struct err *e);

/* Returns the place for a user's option: a file, two files, or a directory with one GGUF file. For a
 * single file, a vision encoder with "mmproj" in its name is searched in the same directory. The caller
 * frees it; NULL without a message if such a file does not exist. */
char *gguf_find_place(const char *option, struct err *e);

/* Return the name of a type ("Q4_K", "type 77", in a thread-local buffer), the values per block, and the
 * bytes per block; 0: unknown. */
const char *ggml_type_name(uint32_t type);
int ggml_block(uint32_t type);
int ggml_block_bytes(uint32_t type);
