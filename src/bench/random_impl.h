/* random_impl.h - declarations shared by src/bench/random*.c. */
#pragma once

#include "bench/random.h"

struct listing {
    random_tensor *fn;
    void *arg;
    const char *front; /* prefix of the names of a layer or block, followed by its number */
    int number;
};

void random_list(const struct listing *l, const char *name, int dims, const int64_t *shape);

#define ADD(l, name, ...)                                                                                    \
    random_list(l, name, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                          \
                (const int64_t[]){__VA_ARGS__})

/* the Qwen3.5 family: configs of 0.8B, 4B, 9B and 35B-A3B, and their tensors */
extern const char random_qwen_small[], random_qwen_middle[], random_qwen_large[], random_qwen_experts[];
extern const struct random_special random_qwen_named[];
void random_list_qwen(const struct model_config *c, random_tensor *fn, void *arg);
