/* random.h - models of published sizes without their checkpoints.
 *
 * A directory is written with config, tokenizer and the header of a weights file whose data is a hole: it takes
 * some megabytes on the disk and reads as zeros.  An engine that is opened with a seed (engine_options.random) does
 * not read them, and has random numbers of the usual sizes in their place.
 */
#ifndef HOLORUN_BENCH_RANDOM_H
#define HOLORUN_BENCH_RANDOM_H

#include "base/buf.h"
#include "model/config.h"

struct random_special {
    int id;
    const char *text;
};

struct random_model {
    const char *name, *config, *generation, *preprocessor; /* texts of the files; the last may be NULL */
    int specials;     /* ids below it are special tokens; then come 256 bytes and words */
    int words;        /* the first id that is no word: `named` may go on from there */
    int prefix, side; /* of the tower: tokens in front of the patches, side of the table of positions */
    const struct random_special *named; /* specials with names of their own; the last has no text */
};

/* NULL with the names there are. */
const struct random_model *random_find(const char *name, struct err *e);
struct model_config random_config(const struct random_model *m);

/* Every tensor of it, in the order of the published files. */
typedef void random_tensor(void *arg, const char *name, int dims, const int64_t *shape);
void random_tensors(const struct random_model *m, random_tensor *fn, void *arg);

/* tokenizer.json: as many tokens and merges as the real one, texts of letters, each a merge of two others. */
void random_put_tokenizer(const struct random_model *m, struct buf *b);

/* A directory in the user's place for passing things, to be removed with random_remove; NULL and why. */
char *random_write(const struct random_model *m, struct err *e);
void random_remove(char *dir);

#endif
