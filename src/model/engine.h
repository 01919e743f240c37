/* engine.h - inside of an engine; private to src/model.  Users include model.h. */
#ifndef HOLORUN_MODEL_ENGINE_H
#define HOLORUN_MODEL_ENGINE_H

#include "model/config.h"
#include "model/drift.h"
#include "model/language.h"
#include "model/model.h"
#include "model/plan.h"
#include "model/tokenizer.h"
#include "model/vision.h"
#include "model/weights.h"
#include "model/weights_cache.h"

enum { ENGINE_MAX_STOPS = CONFIG_MAX_EOS + 5 };

struct engine {
    char *dir;
    struct model_config config;
    struct tokenizer *tokenizer;
    struct pool *pool;
    struct backend *backend;
    enum dtype act;
    struct state_types types;   /* of a session's state */
    struct drift drift;         /* of states in f16 from f32, at the start; no steps: not measured */
    struct safetensors *files;  /* NULL: the weights are packed and need them no more */
    struct weight_cache *cache; /* NULL: no weight lies in it */
    struct model_weights weights;
    struct plan plan; /* of it on a GPU, else zeros */
    struct room room; /* of the sessions' states and checkpoints */
    struct language language;
    struct vision vision;
    bool round8;
    uint64_t hash;
    int32_t stops[ENGINE_MAX_STOPS];
    int n_stops;
    int32_t image_open, image_close; /* <img> and </img>; -1 for a text model */
};

/* Whether tokenizer, config and V agree; collects what ends a reply. */
int engine_agree(struct engine *g, struct err *e);

#endif
