/* engine_impl.h - inside of an engine; private to src/session and its tests. */
#ifndef HOLORUN_SESSION_ENGINE_IMPL_H
#define HOLORUN_SESSION_ENGINE_IMPL_H

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
    enum dtype act;             /* of activations */
    struct state_types types;   /* of a session's state */
    struct drift drift;         /* of f16 states from f32; no steps: not measured */
    struct safetensors *files;  /* NULL: all weights are in RAM */
    struct weight_cache *cache; /* of quantized weights; NULL: none */
    struct model_weights weights;
    struct plan plan;             /* on a GPU, else zeros */
    struct state_pool state_pool; /* of the states of sessions and checkpoints */
    struct language language;
    struct vision vision;
    struct scheduler *scheduler;  /* NULL: the engine is not shared */
    struct prefix_cache prefixes; /* of a shared engine */
    bool round8;
    int speculate;                     /* engine_options.speculate */
    struct speculation_counts guesses; /* of all sessions */
    uint64_t hash;
    int32_t stops[ENGINE_MAX_STOPS];
    int n_stops;
    int32_t image_open, image_close; /* <img> and </img>; -1 for a text model */
};

/* Between enter and leave the calling thread has a shared engine to itself; calls nest.  c: the session's
 * client, or NULL.  engine_try_enter: -1 when the client is stopped while it waits. */
void engine_enter(struct engine *g, struct scheduler_client *c);
int engine_try_enter(struct engine *g, struct scheduler_client *c, struct err *e);
void engine_leave(struct engine *g);

#endif
