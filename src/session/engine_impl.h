/* engine_impl.h - inside of an engine; private to src/model.  Users include session.h. */
#ifndef HOLORUN_SESSION_ENGINE_IMPL_H
#define HOLORUN_SESSION_ENGINE_IMPL_H

#include "capacity/plan.h"
#include "model/config.h"
#include "model/language.h"
#include "model/vision.h"
#include "model/weights.h"
#include "model/weights_cache.h"
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
    struct template_traits traits;
    struct pool *pool;
    struct backend *backend;
    enum dtype act;
    struct state_types types;   /* of a session's state */
    struct drift drift;         /* of states in f16 from f32, at the start; no steps: not measured */
    struct safetensors *files;  /* NULL: the weights are packed and need them no more */
    struct weight_cache *cache; /* NULL: no weight lies in it */
    struct model_weights weights;
    struct plan plan;             /* of it on a GPU, else zeros */
    struct state_pool state_pool; /* of the sessions' states and checkpoints */
    struct language language;
    struct vision vision;
    struct scheduler *scheduler; /* of the threads that share it; NULL: there is one */
    struct prefixes prefixes;    /* what its sessions began with; only of one that is shared */
    bool round8;
    uint64_t hash;
    int32_t stops[ENGINE_MAX_STOPS];
    int n_stops;
    int32_t image_open, image_close; /* <img> and </img>; -1 for a text model */
};

/* Between the two the calling thread has a shared engine to itself, and may call others that enter it.  Others wait: m is
 * whose session it is, or NULL.  engine_try_enter: -1 when that is stopped meanwhile. */
void engine_enter(struct engine *g, struct scheduler_client *m);
int engine_try_enter(struct engine *g, struct scheduler_client *m, struct err *e);
void engine_leave(struct engine *g);

#endif
