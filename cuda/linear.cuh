/* linear.cuh - between the files of the matrix products. */
#ifndef HOLORUN_CUDA_LINEAR_CUH
#define HOLORUN_CUDA_LINEAR_CUH

#include "host.cuh"

/* y = epi(x W^T + bias), or y += that. */
struct product {
    struct tensor y, x;
    const struct weight *w;
    const float *bias; /* or NULL */
    enum epilogue epi;
    enum accumulate mode;
};

/* With kernels of our own, for any number of rows, types and strides. */
void matvec(struct backend *b, const struct product &p);

/* Whether x's rows can be read 16 bytes at a time. */
bool in_sixteens(struct tensor x);

/* What stays from call to call. */
struct products {
    struct cublas *cublas;
    struct tables *tables; /* of moe.cu */
};
struct products *products_of(struct backend *b);
void tables_close(struct tables *t);

#endif
