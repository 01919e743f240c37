/* attend.cuh - declarations shared by the attention kernels: KV cache tables, arguments, entry points. */
#pragma once

#include "flash.cuh"
#include "host.cuh"

/* KV cache of one session, as an entry of a table on the device. */
struct session_keys {
    const void *k, *v;
    int64_t k_stride, v_stride;
    int keys;
    int split; /* index of its first split (attend_split.cu) */
};

/* Arguments of the three attention operations. Queries are in tiles of n rows. Either ks and vs contain
 * the keys and values of each query's session, or they are NULL, and k and v contain `keys` rows per tile. */
struct attention {
    struct tensor y, q, k, v;
    const struct tensor *ks, *vs; /* per query, or NULL */
    int tiles, n, keys, past;     /* query t of a tile sees past + t + 1 keys; past -1: all keys */
    int heads, group, d;          /* number of KV heads, query heads per KV head, head dimension */
};

/* Computes attention of any sizes and types. */
void attend_plain(struct backend *b, const struct attention *a);

/* Table of the KV caches of all queries on the device, with memory for `floats_each` partial results per
 * split. Allocated by cuda_scratch. */
struct attention_table {
    session_keys *sessions;
    int *owner; /* session of each split */
    float *partial;
    int splits;
};
struct attention_table attend_table(struct backend *b, const struct attention *a, int64_t floats_each);

/* Computes attention of few queries over many keys by many blocks per session. Returns false for sizes
 * that it does not support. */
bool attend_split(struct backend *b, const struct attention *a);
