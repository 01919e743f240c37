/* linear.cuh - what the files of the matrix products share. */
#ifndef HOLORUN_CUDA_LINEAR_CUH
#define HOLORUN_CUDA_LINEAR_CUH

#include "host.cuh"

/* y = or += epi(x W^T + bias). */
struct product {
    struct tensor y, x;
    const struct weight *w;
    const float *bias; /* or NULL */
    enum epilogue epi;
    enum accumulate mode;
};

/* Our own kernels, for any number of rows, types and strides. */
void matvec(struct backend *b, const struct product &p);

/* Whether x's rows can be read 16 bytes at a time. */
bool rows_aligned16(struct tensor x);

/* Kept between calls. */
struct products {
    struct cublas *cublas;
    struct tables *tables; /* of moe.cu */
};
struct products *products_of(struct backend *b);
void tables_close(struct tables *t);

#endif
