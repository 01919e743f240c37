/* shared_options.h - rows of option tables (options.h) that several commands share: which model, which screen.
 *
 * Above each stand the fields that T, a command's settings, has for it.
 */
#ifndef HOLORUN_SHARED_OPTIONS_H
#define HOLORUN_SHARED_OPTIONS_H

#include "loading.h"
#include "options.h"

/* clang-format off */
/* const char *model, *device, *isa; int threads, hold, weights, state, kv; bool weight_cache; size_t state_memory; */
#define MODEL_OPTIONS(T)                                                                                     \
    {"model", 'm', OPTION_TEXT, offsetof(T, model), "DIR", 0, 4096, NULL,                                    \
     "model directory in the published layout; without it the model that comes with holorun", "HOLORUN_MODEL"}, \
    {"threads", 0, OPTION_INT, offsetof(T, threads), "N", 0, 256, "0",                                       \
     "threads for the model, 0 for one on every core", "HOLORUN_THREADS"},                                   \
    {"device", 0, OPTION_TEXT, offsetof(T, device), "auto|cpu|cuda[:N]", 0, 32, "auto",                       \
     "where the model runs: a GPU if there is one that has room for it, the processor, or that GPU",            \
     "HOLORUN_DEVICE"},                                                                                       \
    {"isa", 0, OPTION_TEXT, offsetof(T, isa), "ref|avx2|avx512|avx512bf16", 0, 32, NULL,                                           \
     "instruction set of the kernels, \"ref\" for the plain reference; the best one without it", NULL},         \
    WEIGHTS_OPTIONS(T),                                                                                      \
    STATE_OPTION(T),                                                                         \
    {"state-memory", 0, OPTION_SIZE, offsetof(T, state_memory), "SIZE", 0, 0, NULL,                           \
     "memory that the states of conversations may take, as 24G; on a GPU what the weights leave of its own, and "  \
     "idle ones go to the host's", "HOLORUN_STATE_MEMORY"},                                                   \
    {"weight-cache", 0, OPTION_FLAG, offsetof(T, weight_cache), NULL, 0, 0, "yes",                           \
     "keep what int8, int4 and fp8 have made in a file, so that the next start need not make it again",       \
     "HOLORUN_WEIGHT_CACHE"}

/* int hold, weights, kv; */
#define WEIGHTS_OPTIONS(T)                                                                                   \
    {"weights", 0, OPTION_CHOICE, offsetof(T, weights), "auto|bf16|int8|int4|fp8", 0, 0, "auto",                 \
     "numbers that large matrices are held in: those of the checkpoint, or smaller ones made of them at the "  \
     "first start", "HOLORUN_WEIGHTS"},                                                                      \
    {"hold", 0, OPTION_CHOICE, offsetof(T, hold), "auto|packed|mapped", 0, 0, "auto",                        \
     "where they are: packed in memory at the start, mapped and read where they lie in the files, or packed "  \
     "when memory allows", "HOLORUN_HOLD"},                                                                  \
    {"kv", 0, OPTION_CHOICE, offsetof(T, kv), "auto|fp8", 0, 0, "auto",                                      \
     "numbers that keys and values of a conversation are kept in: those of the computation, or a byte each and "  \
     "a scale for each head of a token", "HOLORUN_KV"}

/* int state; */
#define STATE_OPTION(T)                                                                                      \
    {"state", 0, OPTION_CHOICE, offsetof(T, state), "fp32|fp16|bf16", 0, 0, "fp32",                          \
     "numbers that a conversation's state is held in: fp16 takes half the memory, is rounded by chance, and refused "  \
     "where the model says something else with it; bf16 is always refused", "HOLORUN_STATE"}

/* The same as engine_open wants them; S is one of T. */
#define MODEL_ENGINE(S)                                                                                      \
    {.dir = (S).model, .device = (S).device, .isa = (S).isa, .threads = (S).threads, .hold = (enum weight_hold)(S).hold,           \
     .weights = (enum weight_numbers)(S).weights, .cache = (S).weight_cache,                             \
     .state = (enum state_numbers)(S).state, .kv = (enum kv_numbers)(S).kv, .state_memory = (S).state_memory,                                                                       \
     .progress = loading_progress}

/* const char *display, *view; bool cursor; */
#define SCREEN_OPTIONS(T)                                                                                    \
    {"display", 'd', OPTION_TEXT, offsetof(T, display), "NAME", 0, 256, NULL, "X display to work on", "DISPLAY"}, \
    {"view", 'v', OPTION_TEXT, offsetof(T, view), "WHAT", 0, 256, "all",                                     \
     "what of it to look at: all, a monitor's name or number, or window:ID", NULL},                          \
    {"cursor", 0, OPTION_FLAG, offsetof(T, cursor), NULL, 0, 0, NULL, "show the pointer in screenshots", NULL}
/* clang-format on */

#endif
