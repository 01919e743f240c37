/* plan.h - the memory that a model will take, before it is loaded.
 *
 * Nothing is estimated from a table: weights are bound, and an engine and a session are set up, on a backend
 * that only counts what is allocated.  The headers of the weight files are enough, no weight is read.
 */
#ifndef HOLORUN_CAPACITY_PLAN_H
#define HOLORUN_CAPACITY_PLAN_H

#include "checkpoint/options.h"
#include "model/weights.h"

enum { PLAN_CHUNKS = 4 };
enum { PLAN_TOKEN_BYTES = 8 }; /* of each token, without keys and values: its id and its epoch */

enum plan_kind {
    PLAN_EMBEDDINGS, /* a token reads one row */
    PLAN_HEAD,       /* logits */
    PLAN_MAMBA,
    PLAN_DELTA,
    PLAN_ATTENTION,
    PLAN_MLP,
    PLAN_EXPERTS,
    PLAN_VISION,
    PLAN_PROJECTOR,
    PLAN_OTHER, /* not used at run time */
    PLAN_KINDS,
};
const char *plan_kind_name(enum plan_kind k);

/* The part of the model that a tensor belongs to, by its name. */
enum plan_kind plan_kind_of(const struct lm_config *c, const char *name);

struct plan_part {
    int tensors;
    size_t stored; /* bytes in the files */
    size_t own;    /* bytes of allocated memory */
    size_t mapped; /* bytes used in the mapped files */
};

struct plan {
    struct plan_part parts[PLAN_KINDS], weights; /* the last one is their sum */
    size_t resident;                             /* mapped bytes that stay in RAM once they are read */
    size_t streamed;    /* mapped bytes that are read from disk each time; embeddings are neither */
    size_t language;    /* activations of the language model */
    size_t vision;      /* and of the vision tower */
    struct plan_chunk { /* on a GPU: what both are with so many rows and tiles at once, most first */
        int prompt_rows, picture_tiles;
        size_t language, vision;
    } chunks[PLAN_CHUNKS];
    int chunk;        /* the one that is planned with: see plan_fit */
    size_t embedding; /* on a GPU: of the weights, the table of which a token reads one row */
    size_t pinned;    /* and that, when it stays in the host's memory */
    size_t scratch;   /* on a GPU: of the operation that takes most, which is reserved */
    size_t work;      /* on a GPU: scratch, libraries and sampling */
    size_t picture;   /* on a GPU: pixels and patches of an image; see plan_picture */
    size_t tokenizer;
    size_t base; /* the program itself */

    size_t ssm, conv;  /* fixed states of a session */
    size_t session;    /* the rest that is fixed: last row, logits */
    size_t kv_token;   /* of a session, for each token */
    int kv_tensors;    /* that these are divided over, each in pages of its own; 0: of the host's memory */
    size_t state;      /* fixed part of a session's state memory; a checkpoint takes as much */
    size_t tile;       /* one tile in the vision cache */
    size_t tile_cache; /* the whole cache */
    int vocab, prefix; /* rows of the embedding, of the tower's prefix */
    double number;     /* bytes per weight of the language model's matrices */
    char forms[256];   /* matrices that are kept in another format than stored; empty: none */
};

/* Reports every fault of config and weights for which engine_open would refuse the model, and every tensor
 * that it would ignore; engine_check_tokenizer checks the rest.  Returns the rows of the embedding, 0 when
 * there were problems. */
struct plan_check {
    void (*problem)(void *arg, const char *text);
    void (*ignored)(void *arg, const struct st_tensor *t);
    void *arg;
};
int plan_check(const struct plan_check *l, const struct model_config *c, const struct safetensors *s);

/* Uses o->f32, weights, kv, memory and device: of a GPU it is the device's memory, without
 * what stays on the host.  -1 when the model would be refused. */
int plan_make(struct plan *p, const struct model_config *c, const struct safetensors *s,
              const struct engine_options *o, struct err *e);

/* Where engine_open and plan_make place the weights with these options.  Fails like plan_make, so that a
 * model is refused before the first weight is read. */
struct weights_placement {
    bool mapped;
    size_t resident; /* see weights.h */
};
int plan_placement(struct weights_placement *h, const struct model_config *c, const struct safetensors *s,
                   const struct engine_options *o, struct err *e);

/* Sets and returns p->picture for images of up to this size; 0 without a GPU. */
size_t plan_picture(struct plan *p, const struct model_config *c, int w, int h);

/* On a GPU: what leaves room in `memory` for one session of some thousand tokens: all of it; else without the
 * embedding, which costs least; and then the largest chunks for which that is enough, or the smallest.
 * Without this the plan has all of it. */
void plan_fit(struct plan *p, size_t memory);

/* Allocated memory with n sessions of so many tokens each; 0 sessions: of the engine alone. */
size_t plan_own(const struct plan *p, int sessions, int64_t tokens);
size_t plan_session(const struct plan *p, int64_t tokens); /* one of them */

/* State memory that a session of so many tokens takes, and how many of them fit. */
size_t plan_state(const struct plan *p, int64_t tokens);
int64_t plan_states(const struct plan *p, size_t memory, int64_t tokens);

/* Sessions of so many tokens that fit in `memory`, and tokens of each of so many sessions; 0 when not even
 * the engine fits. */
int64_t plan_sessions(const struct plan *p, size_t memory, int64_t tokens);
int64_t plan_tokens(const struct plan *p, size_t memory, int sessions);

#endif
