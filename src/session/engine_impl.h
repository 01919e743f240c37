/* engine_impl.h - struct engine; private to src/session and its tests. */
#pragma once

#include "capacity/plan.h"
#include "checkpoint/weights_cache.h"
#include "model/config.h"
#include "model/language.h"
#include "model/vision.h"
#include "model/weights.h"
#include "session/drift.h"
#include "session/prefix.h"
#include "session/scheduler.h"
#include "session/session.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

enum { ENGINE_MAX_STOPS = CONFIG_MAX_EOS + 5 };

struct engine {
    char *dir;
    struct model_config config;
    struct tokenizer *tokenizer;
    struct chat_template *chat;
    struct pool *pool;
    struct backend *backend;
    enum dtype act;             /* type of activations */
    struct state_types types;   /* types of a session's state */
    struct drift drift;         /* drift of f16 from f32 states; steps 0: not measured */
    struct safetensors *files;  /* memory-mapped weights; NULL: all weights are in RAM */
    struct weight_cache *cache; /* quantized weights; NULL: none */
    struct model_weights weights;
    struct plan plan;             /* memory plan of a GPU; zeros on a CPU */
    struct state_pool state_pool; /* memory of sessions and checkpoints */
    struct language language;
    struct vision vision;
    struct scheduler *scheduler;  /* NULL: the engine is not shared */
    struct prefix_cache prefixes; /* used by a shared engine */
    bool round8;
    int speculate;                    /* engine_options.speculate */
    struct speculation_counts drafts; /* counters of all sessions */
    uint64_t hash;
    int32_t stops[ENGINE_MAX_STOPS];
    int n_stops;
    int32_t image_open, image_close; /* <img> and </img>; -1 for a text model */
};

/* Acquire a shared engine for the calling thread until engine_leave(); calls nest. c: the session's
 * client, or NULL. engine_try_enter() returns -1 with ERR_STOPPED if the client is cancelled while it
 * waits. */
void engine_enter(struct engine *g, struct scheduler_client *c);
int engine_try_enter(struct engine *g, struct scheduler_client *c, struct err *e);
void engine_leave(struct engine *g);
