/* attend.cuh - what the files of attention share: the ways to compute it, one of which fits. */
#ifndef HOLORUN_CUDA_ATTEND_CUH
#define HOLORUN_CUDA_ATTEND_CUH

#include "flash.cuh"
#include "host.cuh"

/* Keys and values of one session, as kernels find them in a table. */
struct session_keys {
    const void *k, *v;
    int64_t k_stride, v_stride;
    int keys;
    int piece; /* number of its first piece: attend_batch.cu */
};

/* What is common to the three operations.  Queries come in tiles of n; `each` holds the keys of every query,
 * or is NULL, and then k and v do, `keys` rows for each tile. */
struct attention {
    struct tensor y, q, k, v;
    const struct tensor *ks, *vs; /* of each query, or NULL */
    int tiles, n, keys, past;     /* query t of a tile sees past + t + 1 keys; past -1: all */
    int heads, group, d;          /* key heads, queries for each, width */
};

/* By the rule: any sizes, f32 or bf16. */
void attend_plain(struct backend *b, const struct attention *a);

/* Whether all rows begin at a multiple of 16 bytes, as the fast kernels want them. */
bool attend_aligned(struct tensor t);

/* The keys of every query on the device, and room for `floats_each` numbers of each piece; in cuda_scratch. */
struct attention_table {
    session_keys *sessions;
    int *owner; /* session of each piece */
    float *partial;
    int pieces;
};
struct attention_table attend_table(struct backend *b, const struct attention *a, int64_t floats_each);

/* Few queries over many keys, which are read in pieces by many blocks; false: not for these sizes. */
bool attend_pieces(struct backend *b, const struct attention *a);

#endif
