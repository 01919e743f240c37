/* attend.cuh - what the attention kernels share. */
#ifndef HOLORUN_CUDA_ATTEND_CUH
#define HOLORUN_CUDA_ATTEND_CUH

#include "flash.cuh"
#include "host.cuh"

/* KV cache of one session, as kernels read it from a table. */
struct session_keys {
    const void *k, *v;
    int64_t k_stride, v_stride;
    int keys;
    int split; /* index of its first split: attend_split.cu */
};

/* The arguments of the three operations.  Queries come in tiles of n; ks and vs hold the keys of every
 * query, or are NULL, and k and v hold `keys` rows for each tile. */
struct attention {
    struct tensor y, q, k, v;
    const struct tensor *ks, *vs; /* of each query, or NULL */
    int tiles, n, keys, past;     /* query t of a tile sees past + t + 1 keys; past -1: all */
    int heads, group, d;          /* KV heads, query heads of each, width */
};

/* Any sizes, f32 or bf16. */
void attend_plain(struct backend *b, const struct attention *a);

/* Whether all rows are 16-byte aligned, as the fast kernels need. */
bool attend_aligned(struct tensor t);

/* Table of every query's keys on the device, and room for `floats_each` partial results of each split;
 * in cuda_scratch. */
struct attention_table {
    session_keys *sessions;
    int *owner; /* session of each split */
    float *partial;
    int splits;
};
struct attention_table attend_table(struct backend *b, const struct attention *a, int64_t floats_each);

/* Few queries over many keys, which many blocks read in splits; false: not for these sizes. */
bool attend_split(struct backend *b, const struct attention *a);

#endif
