/* random.h - models of published sizes with synthetic weights.
 *
 * A directory gets config, tokenizer and the header of a weights file whose data is a hole: several megabytes
 * on disk.  An engine opened with a seed (engine_options.random) does not read the data; it generates random
 * weights of the usual magnitude. */
#pragma once

#include "base/buf.h"
#include "model/config.h"

struct random_special {
    int id;
    const char *text;
};

struct random_model {
    const char *name, *config, *generation, *preprocessor; /* contents of files; the last may be NULL */
    int specials;     /* ids below are special tokens; 256 bytes and words follow */
    int words;        /* the first id after the words, at which `named` may continue */
    int prefix, side; /* vision encoder: tokens before the patches, side of the position table */
    const struct random_special *named; /* special tokens with their own names; the last entry has no text */
};

/* Returns a size by its name; NULL with e, which lists the known names. */
const struct random_model *random_find(const char *name, struct err *e);

/* Calls fn for every tensor, in the order of the published files. */
typedef void random_tensor(void *arg, const char *name, int dims, const int64_t *shape);
void random_tensors(const struct random_model *m, random_tensor *fn, void *arg);

/* Appends a tokenizer.json with as many tokens and merges as the real one; words are letters, each word a
 * merge of two others. */
void random_put_tokenizer(const struct random_model *m, struct buf *b);

/* Writes a model's directory below the user's runtime directory and returns its path, which random_remove()
 * frees.  Returns NULL with e. */
char *random_write(const struct random_model *m, struct err *e);
void random_remove(char *dir);
