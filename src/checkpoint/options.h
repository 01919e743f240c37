/* options.h - how an engine is opened: where its weights live, and the storage types of weights, states,
 * keys and values. */
#ifndef HOLORUN_CHECKPOINT_OPTIONS_H
#define HOLORUN_CHECKPOINT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the weights are while the model runs; see weights.h. */
enum weights_in {
    WEIGHTS_IN_AUTO, /* packed when that leaves memory to spare, else mapped */
    WEIGHTS_IN_RAM,  /* copied into RAM at the start, in the layout that multiplies fastest */
    WEIGHTS_IN_MMAP, /* left in the files and paged in as needed */
};

/* Storage type of the large weight matrices; see weights.h. */
enum weight_storage {
    WEIGHTS_AUTO, /* the checkpoint's */
    WEIGHTS_BF16,
    WEIGHTS_INT8, /* at most 8 bits, one scale per output */
    WEIGHTS_INT4, /* at most 4 bits, one scale per 32 values */
    WEIGHTS_FP8,  /* at most 8 bits, e4m3, one scale per output */
};

/* Rounding of the activations that enter matrix products. */
enum activation_rounding {
    ACTIVATIONS_AUTO, /* int8 for matrices in blocks of a GGUF file on a CPU (W4A8 to W8A8), else bf16 */
    ACTIVATIONS_INT8, /* int8 in layers and tower, groups of 128 or fewer; other weights become int8 */
    ACTIVATIONS_FP8,  /* of prompts on a GPU: e4m3, a scale for each row; weights become fp8 */
    ACTIVATIONS_BF16, /* never rounded below bf16 */
};

/* Returns whether an option rounds the activations of all layers. */
static inline bool activations_rounded(enum activation_rounding a)
{
    return a == ACTIVATIONS_INT8 || a == ACTIVATIONS_FP8;
}

/* Storage type of the blocks of the vision tower. */
enum tower_storage {
    TOWER_AUTO, /* the checkpoint's */
    TOWER_INT8,
};

/* Storage type of SSM states. */
enum state_storage {
    STATE_FP32,
    STATE_FP16, /* stochastic rounding; for models that tolerate it: see drift.h */
};

/* Storage type of the KV cache. */
enum kv_storage {
    KV_AUTO, /* the activations' */
    KV_FP8,  /* e4m3, one scale per token and head: see ops/kv8.h */
};

enum { ENGINE_MAX_SPECULATE = 15 };

struct engine_options {
    const char *dir;    /* model directory in the published layout */
    const char *device; /* "auto" or NULL, "cpu", "cuda", "cuda:N": see backend_open */
    const char *isa;    /* of the CPU; NULL: best; "ref" for the scalar reference */
    int threads;        /* 0: one per core */
    bool f32;           /* activations and weights in f32 instead of bf16 */
    enum weights_in weights_in;
    enum weight_storage weights;
    enum tower_storage tower;
    enum activation_rounding activations;
    enum state_storage state;
    enum kv_storage kv;
    bool any_drift; /* fp16 states are used without measuring their drift */
    bool cache;     /* quantized weights are kept in a file that the next start maps */
    /* bounds of a picture's pixels instead of those of the model's files; 0: the files' */
    int min_pixels, max_pixels;
    size_t memory; /* bytes that may be used, which decides weights_in; 0: free memory */
    /* seed of synthetic weights, of which the files give only the shapes; 0: weights are read */
    uint64_t random;
    /* bytes for states and checkpoints of sessions; 0: what the weights leave of a device's memory, and no
     * limit on a CPU */
    size_t state_memory;
    /* non-zero: prefill and image encoding stop with ERR_STOPPED within a layer's time; may be NULL */
    const volatile int *cancel;
    /* tokens proposed at once from what the session said before, at most ENGINE_MAX_SPECULATE; 0: none.
     * Replies are the same: see session/speculate.h */
    int speculate;
    bool shared; /* several threads use the engine, each with its own sessions */
    bool round8; /* resized pixels are rounded to 8 bits, to compare with runtimes that do so */
    void (*progress)(void *arg, double fraction, const char *what); /* may be NULL */
    void *progress_arg;
};

/* What the weights are stored as: activations in int8 are multiplied with integers, in fp8 with fp8. */
static inline enum weight_storage options_storage(const struct engine_options *o)
{
    if (o->weights != WEIGHTS_AUTO || !activations_rounded(o->activations))
        return o->weights;
    return o->activations == ACTIVATIONS_FP8 ? WEIGHTS_FP8 : WEIGHTS_INT8;
}

#endif
