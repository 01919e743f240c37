/* plan.h - what a model takes before it is loaded: memory by part, arithmetic and bytes for each step.
 *
 * Nothing is estimated from a table: the model is bound, and an engine and a session are set up, on a backend
 * that only counts what it is asked for.  A number here is wrong only when the program would do something else.
 * No weight is read, headers are enough.
 */
#ifndef HOLORUN_CAPACITY_PLAN_H
#define HOLORUN_CAPACITY_PLAN_H

#include "model/options.h"
#include "model/weights.h"

enum { PLAN_TOKEN_BYTES = 8 }; /* of a token beside its keys and values: its id and its epoch */

enum plan_kind {
    PLAN_EMBEDDINGS, /* one row of it for each token */
    PLAN_HEAD,       /* logits */
    PLAN_MAMBA,
    PLAN_ATTENTION,
    PLAN_MLP,
    PLAN_EXPERTS,
    PLAN_VISION,
    PLAN_PROJECTOR,
    PLAN_OTHER, /* of no use at run time */
    PLAN_KINDS,
};
const char *plan_kind_name(enum plan_kind k);

/* To which part of the model a tensor belongs, by its name. */
enum plan_kind plan_kind_of(const struct lm_config *c, const char *name);

struct plan_part {
    int tensors;
    size_t stored; /* bytes in the files */
    size_t own;    /* bytes of memory that are ours alone */
    size_t mapped; /* bytes used where they lie in the files */
};

struct plan {
    struct plan_part parts[PLAN_KINDS], weights; /* the last one is their sum */
    size_t resident; /* of the mapped bytes: what stays in memory once it was read */
    size_t streamed; /* and what is read again each time; embeddings are neither */
    size_t language; /* working memory of an engine */
    size_t vision;
    size_t scratch; /* on a GPU: of the operation that takes most, which is reserved */
    size_t work;    /* with what the libraries and choices of tokens take */
    size_t picture; /* of a picture's pixels and patches; see plan_picture */
    size_t tokenizer;
    size_t base; /* the program itself */

    size_t ssm, conv;  /* of a session: fixed */
    size_t session;    /* the rest that is fixed: last row, logits */
    size_t kv_token;   /* of a session: for each token */
    size_t state;      /* of a session, in state memory: the fixed part; a checkpoint takes as much */
    size_t tile;       /* of the vision cache: one tile */
    size_t tile_cache; /* and at most */
    int vocab, prefix; /* rows of the embedding, of the tower's prefix */
    double number;     /* bytes of a number in the matrices of the language model */
};

/* Every fault of config and weights that engine_open would refuse, one after the other, and every tensor it would leave
 * out (engine_check_tokenizer looks at the rest).  Returns the rows of the embedding, 0 when there were problems. */
struct plan_look {
    void (*problem)(void *arg, const char *text);
    void (*ignored)(void *arg, const struct st_tensor *t);
    void *arg;
};
int plan_look(const struct plan_look *l, const struct model_config *c, const struct safetensors *s);

/* f32, weights (AUTO chooses), kv and memory count, as does allow_extra; with a device that is a GPU it is the memory of one,
 * and what stays on the host is left out.  -1 when the checkpoint would be refused. */
int plan_make(struct plan *p, const struct model_config *c, const struct safetensors *s,
              const struct engine_options *o, struct err *e);

/* How the weights are held with these options: what engine_open and plan_make go by.  Fails like plan_make, so
 * that a checkpoint is refused before the first weight is read. */
struct weights_placement {
    bool mapped;
    size_t resident; /* see weights.h */
};
int plan_placement(struct weights_placement *h, const struct model_config *c, const struct safetensors *s,
                   const struct engine_options *o, struct err *e);

/* What pictures of up to this size take beside, on a GPU; into p->picture, too. */
size_t plan_picture(struct plan *p, const struct model_config *c, int w, int h);

/* Memory of our own with n sessions of so many tokens each; 0 sessions: of the engine alone. */
size_t plan_own(const struct plan *p, int sessions, int64_t tokens);
size_t plan_session(const struct plan *p, int64_t tokens); /* one of them */

/* State memory that a session of so many tokens takes, and how many of them fit. */
size_t plan_state(const struct plan *p, int64_t tokens);
int64_t plan_states(const struct plan *p, size_t memory, int64_t tokens);

/* What fits in so much memory; 0 when not even the engine does. */
int64_t plan_sessions(const struct plan *p, size_t memory, int64_t tokens); /* of so many tokens */
int64_t plan_tokens(const struct plan *p, size_t memory, int sessions);     /* of each of so many sessions */

#endif
