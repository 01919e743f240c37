/* options.h - how a model is to be opened: where its weights are kept, and the storage types of weights, states, keys
 * and values. */
#ifndef HOLORUN_MODEL_OPTIONS_H
#define HOLORUN_MODEL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the weights are while the model runs; see weights.h. */
enum weights_in {
    WEIGHTS_IN_AUTO, /* packed when that leaves memory to spare, else mapped */
    WEIGHTS_IN_RAM,  /* copied into memory at the start, in the form that multiplies fastest */
    WEIGHTS_IN_MMAP, /* left in the files, which are read as they are needed */
};

/* What numbers the large matrices are held in; see weights.h. */
enum weight_storage {
    WEIGHTS_AUTO, /* those of the checkpoint */
    WEIGHTS_BF16,
    WEIGHTS_INT8, /* at most 8 bits: a scale for each output */
    WEIGHTS_INT4, /* at most 4 bits: a scale for 32 numbers */
    WEIGHTS_FP8,  /* at most 8 bits, e4m3: a scale for each output */
};

/* And the states of Mamba layers. */
enum state_storage {
    STATE_FP32,
    STATE_FP16, /* rounded by chance, for models that do not mind: see drift.h */
};

/* What numbers keys and values of attention are kept in. */
enum kv_storage {
    KV_AUTO, /* those of the activations */
    KV_FP8,  /* e4m3, with a scale for each token and head: see ops/kv8.h */
};

struct engine_options {
    const char *dir;    /* model directory in the published layout */
    const char *device; /* "auto" or NULL, "cpu", "cuda", "cuda:N": see backend_open */
    const char *isa;    /* of the CPU; NULL: best; "ref" for the scalar reference */
    int threads;        /* 0: one per core */
    bool f32;           /* activations and weights in f32 instead of bf16 */
    bool allow_extra;   /* unknown tensors are a warning, not a refusal */
    enum weights_in weights_in;
    enum weight_storage weights;
    enum state_storage state;
    enum kv_storage kv;
    bool any_drift;  /* fp16 states are taken without being measured first */
    bool cache;      /* what int8, int4 and fp8 make is kept in a file, so that the next start maps it */
    size_t memory;   /* bytes that may be used, to choose how to hold them; 0: what the system has free */
    uint64_t random; /* a seed: weights are made, the files only say their shapes; 0: weights are read */
    size_t
        state_memory; /* bytes that states and checkpoints of sessions may take; 0: what the weights leave of a
                            device's memory, and no bound on a processor */
    const volatile int
        *cancel; /* non-zero: what reads a prompt or a picture gives up with ERR_STOPPED, within a layer's
                                 * time; may be NULL */
    bool shared; /* by threads that have sessions of their own */
    bool round8; /* resized pixels are rounded to 8 bits, as some runtimes do: to compare with them */
    void (*progress)(void *arg, double fraction, const char *what); /* may be NULL */
    void *progress_arg;
};

#endif
