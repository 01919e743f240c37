/* options.h - options of an engine: storage types of weights, states and KV cache, memory limits, device
 * and speculative decoding. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Location of the weights while the model runs; see weights.h. */
enum weights_in {
    WEIGHTS_IN_AUTO, /* repacked in RAM if enough memory remains, otherwise mapped */
    WEIGHTS_IN_RAM,  /* copied to RAM at start, in the kernels' fastest layout */
    WEIGHTS_IN_MMAP, /* mapped from the files and paged in as needed */
};

/* Storage type of the large weight matrices; see weights.h. */
enum weight_storage {
    WEIGHTS_AUTO, /* as in the checkpoint */
    WEIGHTS_BF16,
    WEIGHTS_INT8, /* at most 8 bits, one scale per output */
    WEIGHTS_INT4, /* at most 4 bits, one scale per 32 values */
    WEIGHTS_FP8,  /* at most 8 bits, e4m3, one scale per output */
};

/* Rounding of the activations that enter matrix products. */
enum activation_rounding {
    ACTIVATIONS_AUTO, /* int8 for matrices in blocks of a GGUF file on a CPU (W4A8 to W8A8), else bf16 */
    ACTIVATIONS_INT8, /* int8 in layers and tower, groups of 128 or fewer; other weights become int8 */
    ACTIVATIONS_FP8,  /* activations of prompts on a GPU: e4m3, one scale per row; weights become fp8 */
    ACTIVATIONS_BF16, /* never rounded below bf16 */
};

/* Returns whether an option rounds the activations of all layers. */
static inline bool activations_rounded(enum activation_rounding a)
{
    return a == ACTIVATIONS_INT8 || a == ACTIVATIONS_FP8;
}

/* Storage type of the weights in the blocks of the vision encoder. */
enum tower_storage {
    TOWER_AUTO, /* as in the checkpoint */
    TOWER_INT8,
};

/* Storage type of SSM states. */
enum state_storage {
    STATE_FP32,
    STATE_FP16, /* stochastic rounding; only for models that tolerate it: see drift.h */
};

/* Storage type of the KV cache. */
enum kv_storage {
    KV_AUTO, /* type of the activations */
    KV_FP8,  /* e4m3, one scale per token and head: see ops/kv8.h */
};

enum { ENGINE_MAX_SPECULATE = 15 };

struct engine_options {
    const char *dir;    /* model directory in the Hugging Face layout, or a GGUF place */
    const char *device; /* "auto" or NULL, "cpu", "cuda", "cuda:N": see backend_open */
    const char *isa;    /* instruction set of the CPU; NULL: best available; "ref": scalar reference */
    int threads;        /* 0: one per core */
    bool f32;           /* activations and weights in f32 instead of bf16 */
    enum weights_in weights_in;
    enum weight_storage weights;
    enum tower_storage tower;
    enum activation_rounding activations;
    enum state_storage state;
    enum kv_storage kv;
    bool any_drift; /* use fp16 states without measuring their drift */
    bool cache;     /* store quantized weights in a file that the next start maps */
    /* limits for the pixels of an image that replace those of the model's files; 0: the files' */
    int min_pixels, max_pixels;
    size_t memory; /* budget in bytes, which decides weights_in AUTO; 0: free memory */
    /* seed of random weights with the shapes of the files, whose data is not read; 0: read the weights */
    uint64_t random;
    /* Bytes for states and checkpoints of sessions. 0: on a device, the memory that the weights leave
     * free; on a CPU, no limit. */
    size_t state_memory;
    /* If non-zero, prefill and image encoding stop with ERR_STOPPED within the duration of one layer. May
     * be NULL. */
    const volatile int *cancel;
    /* Draft tokens per verification (prompt lookup), at most ENGINE_MAX_SPECULATE; 0: no speculative
     * decoding. Replies do not change: see session/speculate.h. */
    int speculate;
    bool shared; /* several threads use the engine, each with its own sessions */
    bool round8; /* round resized pixels to 8 bits, for comparison with runtimes that do so */
    void (*progress)(void *arg, double fraction, const char *what); /* may be NULL */
    void *progress_arg;
};

/* Returns the storage type of the weights. With AUTO, quantized activations determine it: int8 activations
 * need int8 weights, fp8 activations fp8 weights. */
static inline enum weight_storage options_storage(const struct engine_options *o)
{
    if (o->weights != WEIGHTS_AUTO || !activations_rounded(o->activations))
        return o->weights;
    return o->activations == ACTIVATIONS_FP8 ? WEIGHTS_FP8 : WEIGHTS_INT8;
}
