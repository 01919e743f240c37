/* generate.h - generates a reply: sampling, grammar mask, forced tokens, stop tokens, speculation. */
#pragma once

#include "base/buf.h"
#include "grammar/grammar.h"
#include "session/session.h"

struct sampling {
    float temperature; /* 0: greedy */
    float top_p;       /* 1: off */
    int max_tokens;
    /* Defined in ops/sample_filter.h; 0: off. Any of them requires the logits on the host and disables
     * speculation. */
    int top_k;
    float min_p, presence_penalty, frequency_penalty, repetition_penalty;
};

enum finish { FINISH_STOP, FINISH_LENGTH, FINISH_GRAMMAR, FINISH_CANCELLED };

struct token_choice { /* one generated token, for --json and traces */
    int32_t id;
    float logprob;        /* at temperature 1, without the logit mask */
    float logprob_masked; /* with the mask; equal without a grammar */
    bool forced;          /* not sampled: the grammar allowed no other token */
    uint32_t end;         /* length of the text in bytes after this token */
};

enum { GENERATE_MAX_ALTERNATIVES = 64 };

struct token_alternative { /* a token that could have been sampled */
    int32_t id;            /* -1: none */
    float p;               /* at temperature 1, with the logit mask */
};

struct generation {
    struct grammar *grammar; /* constrains the reply; may be NULL */
    const int32_t *said;     /* [n_said]: last ids of the session, which the grammar has already consumed */
    int n_said;
    /* Forced prefix [n_begins]: ids with which the reply must start.  Log-probabilities are the model's. */
    const int32_t *begins;
    int n_begins;
    struct sampling sampling;
    int earlier; /* last tokens of the session that already belong to the reply, for penalties */
    /* Number of most probable alternatives recorded for each sampled token, at most
     * GENERATE_MAX_ALTERNATIVES. They need the logits on the host, which costs time if the device samples. */
    int alternatives;
    const volatile int *cancel;                               /* non-zero: stop; may be NULL */
    void (*on_text)(void *arg, const char *text, size_t len); /* called with new text, complete characters
                                                               * only; may be NULL */
    void *arg;
};

struct generated {
    struct buf text;                        /* generated text, special tokens spelled out, without the stop
                                             * token */
    struct token_choice *choices;           /* [n] */
    struct token_alternative *alternatives; /* [n][width], most probable first, id -1 for forced tokens; or
                                             * NULL */
    int width;
    /* Texts of a server's alternatives, whose ids are offsets into this string; NULL for a local model. */
    char *spelled;
    int n, forced;          /* all tokens; forced tokens among them */
    int proposed, accepted; /* draft tokens proposed and accepted (speculate.h) */
    enum finish finish;
    double ms;
    /* XXH3 of the logits (f32 [V]) of all sampled tokens, in order. `hashed` is false if a device sampled
     * and its logits did not reach the host. */
    uint64_t logits_hash;
    bool hashed;
    bool reused; /* not generated: the reply of an earlier run (replay/reuse.h) */
};

/* Continues the session until a stop token, the end of the grammar, max_tokens or *cancel. The session
 * then ends with the generated ids, including the stop token. Returns -1 with e. The caller calls
 * generated_free(), also after a failure. */
int generate(struct session *s, const struct generation *how, struct generated *out, struct err *e);
void generated_free(struct generated *g);

/* Sums the log-probabilities of the sampled tokens. Returns false if they are unknown. */
bool generated_logprob(const struct generated *g, double *logprob);
/* Returns the log-probability of the first `bytes` bytes; tokens forced by the grammar count as 0. */
double generated_prefix_logprob(const struct generated *g, size_t bytes);

/* Returns the bit set of ids that may be generated: all tokens with a text except the image token. The
 * caller frees it. */
uint64_t *generate_known(const struct engine *g);

/* Writes the most probable ids below n that are in `known` and in `allowed` (NULL: all) to top[width],
 * most probable first, padded with id -1. Returns their number. */
int generate_top(const float *logits, int n, const uint64_t *known, const uint64_t *allowed,
                 struct token_alternative *top, int width);
