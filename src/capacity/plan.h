/* plan.h - computes the memory of a model before it is loaded (`holorun plan`).
 *
 * Nothing is estimated from tables: weights are bound, and an engine and a session are set up, on a
 * backend that only counts allocations. The headers of the weight files suffice; weights are not read. */
#pragma once

#include "checkpoint/options.h"
#include "model/weights.h"

enum { PLAN_CHUNKS = 4 };
enum { PLAN_TOKEN_BYTES = 8 }; /* bytes per token without keys and values: its id and its epoch */

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

/* Returns the part of the model to which a tensor belongs, by its name. */
enum plan_kind plan_kind_of(const struct lm_config *c, const char *name);

struct plan_part {
    int tensors;
    size_t stored; /* bytes in the files */
    size_t own;    /* bytes of allocated memory */
    size_t mapped; /* bytes used in the mapped files */
};

struct plan {
    struct plan_part parts[PLAN_KINDS], weights; /* weights: sum of all parts */
    size_t resident;                             /* mapped bytes that stay in RAM once they are read */
    size_t streamed;    /* mapped bytes that are read from disk for every product; embeddings belong to
                         * neither */
    size_t language;    /* activations of the language model */
    size_t vision;      /* activations of the vision encoder */
    struct plan_chunk { /* on a GPU: both for several numbers of rows and tiles at once, largest first */
        int prompt_rows, picture_tiles;
        size_t language, vision;
    } chunks[PLAN_CHUNKS];
    int chunk;        /* index of the chosen chunk (plan_fit) */
    size_t embedding; /* on a GPU: bytes of the embedding; a token reads one row */
    size_t pinned;    /* on a GPU: the embedding's bytes if it stays in host memory */
    size_t scratch;   /* on a GPU: scratch of the operation that needs most, which is reserved */
    size_t work;      /* on a GPU: scratch, libraries and sampling */
    size_t picture;   /* on a GPU: pixels and patches of an image (plan_picture) */
    size_t tokenizer;
    size_t base; /* the program itself */

    size_t ssm, conv;  /* fixed states of a session */
    size_t session;    /* other fixed memory of a session: last row, logits */
    size_t kv_token;   /* per session and token */
    int kv_tensors;    /* number of KV tensors, each with pages of its own on a GPU; 0: host memory */
    size_t state;      /* fixed part of a session's state memory; also the size of a checkpoint */
    size_t tile;       /* one tile in the cache of encoded tiles */
    size_t tile_cache; /* the whole cache */
    int vocab, prefix; /* rows of the embedding; rows of the vision encoder's prefix */
    double number;     /* bytes per weight of the language model's matrices */
    bool records;      /* as in model_weights */
    char forms[256];   /* matrices kept in another format than stored; empty: none */
};

/* Reports every error in config and weights for which engine_open() would reject the model, and every
 * tensor that it would ignore; engine_check_tokenizer() checks the rest. Returns the rows of the
 * embedding, or 0 if there were problems. */
struct plan_check {
    void (*problem)(void *arg, const char *text);
    void (*ignored)(void *arg, const struct st_tensor *t);
    void *arg;
};
int plan_check(const struct plan_check *l, const struct model_config *c, const struct safetensors *s);

/* Computes the plan from o->f32, weights, kv, memory and device; for a GPU it is the device's memory,
 * without data that stays on the host. Returns -1 with e if the model would be rejected. */
int plan_make(struct plan *p, const struct model_config *c, const struct safetensors *s,
              const struct engine_options *o, struct err *e);

/* Determines where engine_open() and plan_make() place the weights with these options. Fails like
 * plan_make(), so that a model is rejected before the first weight is read. */
struct weights_placement {
    bool mapped;
    size_t resident; /* see weights.h */
};
int plan_placement(struct weights_placement *h, const struct model_config *c, const struct safetensors *s,
                   const struct engine_options *o, struct err *e);

/* Sets and returns p->picture for images of up to w x h pixels; 0 without a GPU. */
size_t plan_picture(struct plan *p, const struct model_config *c, int w, int h);

/* Fits a GPU plan into `memory` with one session of some thousand tokens: first with everything on the
 * device, then without the embedding, which is the cheapest to move; then with the largest chunks that
 * fit, or the smallest ones. Until this is called the plan has everything on the device. */
void plan_fit(struct plan *p, size_t memory);

/* Returns the allocated memory with n sessions of `tokens` tokens each; 0 sessions: of the engine alone. */
size_t plan_own(const struct plan *p, int sessions, int64_t tokens);
size_t plan_session(const struct plan *p, int64_t tokens); /* one of them */

/* Return the state memory of a session of `tokens` tokens, and the number of such states that fit in
 * `memory`. */
size_t plan_state(const struct plan *p, int64_t tokens);
int64_t plan_states(const struct plan *p, size_t memory, int64_t tokens);

/* Return the number of sessions of `tokens` tokens that fit in `memory`, and the tokens per session for a
 * number of sessions; 0 if not even the engine fits. */
int64_t plan_sessions(const struct plan *p, size_t memory, int64_t tokens);
int64_t plan_tokens(const struct plan *p, size_t memory, int sessions);
