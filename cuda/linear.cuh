/* linear.cuh - declarations shared by the files of matrix products. */
#pragma once

#include "host.cuh"

/* y = or += epi(x W^T + bias). */
struct product {
    struct tensor y, x;
    const struct weight *w;
    const float *bias; /* or NULL */
    enum epilogue epi;
    enum accumulate mode;
};

/* Computes a product by our own kernels, for any number of rows, types and strides. */
void matvec(struct backend *b, const struct product &p);

/* Returns whether our kernels for tensor cores support the product. */
bool suits_tensor_cores(const struct product &p);

/* The matrices of a product that has one of several for each of its rows. */
struct chosen {
    const struct any_matrix *table; /* on the device */
    const int32_t *expert;          /* matrix of each row of y; NULL: all have p.w */
    const int32_t *row;             /* row of x of each row of y; NULL: the same */
};

/* Computes a product in f32 arithmetic. The matrices may differ in format. */
void scalar_product(struct backend *b, const struct product &p, const struct chosen &of);

/* Multiplies f8 weights with 16-byte aligned bf16 rows, which are quantized to e4m3 (fp8.cu). */
void multiply_fp8(struct backend *b, const struct product &p);

/* Computes y = or += epi(sums[t][n] * scales[n] * factors[t] + bias[n]). scales and factors may be NULL,
 * and sums may be y itself (linear.cu). */
void epilogue(struct backend *b, const struct product &p, struct tensor sums, const float *scales,
              const float *factors);

/* Returns whether the rows of x can be read 16 bytes at a time. */
bool rows_aligned16(struct tensor x);

/* Data kept between calls. */
struct biases;
struct products {
    struct cublas *cublas;
    struct biases *biases; /* state of linear.cu */
    struct tables *tables; /* state of moe.cu */
};
struct products *products_of(struct backend *b);
void tables_close(struct tables *t);

/* ---- quantized.cu: quantized matrices on the device ---------------------------------------------------- */

/* Implement quant_bytes, quant_pack and quant_weight of ops.h. */
size_t quantized_bytes(const struct backend *b, enum quant_format format, int64_t rows, int64_t cols);
void quantized_pack(struct backend *b, void *bytes, enum quant_format format, const struct quant_source *s);
struct weight *quantized_weight(struct backend *b, void *bytes, bool owned, enum quant_format format,
                                int64_t rows, int64_t cols);

/* The same for formats with records (blocks.cu). */
void blocks_pack(struct backend *b, void *bytes, enum quant_format format, const struct quant_source *s);
void blocks_dequantize(struct backend *b, struct tensor to, const struct weight *w, int64_t first);

/* Dequantizes rows [first, first + to.rows) to bf16, without row scales. first and to.rows are multiples
 * of 16, and a row of `to` has space for quantized_padded() elements. */
int64_t quantized_padded(const struct weight *w);
void quantized_dequantize(struct backend *b, struct tensor to, const struct weight *w, int64_t first);

/* ---- cublas.cu: matrix products of many rows, by NVIDIA's cuBLASLt ------------------------------------- */

struct cublas;

/* Computes y[T,N] = or += factor x[T,K] w[N,K]^T + bias[N]. x and w are bf16 or both e4m3, and y is bf16
 * or f32. Sums are f32 (with fewer bits for e4m3: fp8.cu) and rounded once. The bias has the type of y, or
 * is NULL. Addresses and rows are 16-byte aligned; for e4m3, N and K are multiples of 16. */
void gemm(struct backend *b, struct tensor y, struct tensor x, struct tensor w, float factor,
          const void *bias, enum accumulate mode);

struct cublas *cublas_open();
void cublas_close(struct cublas *c);

/* Returns whether the library can be opened. cublas_missing is the message if not. */
bool cublas_here();
static const char *const cublas_missing = "libcublasLt.so.13 (or .12) not found: install cuBLAS from "
                                          "NVIDIA's packages (libcublas-13-0), add its directory to "
                                          "LD_LIBRARY_PATH, or use --device cpu";
