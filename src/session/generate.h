/* generate.h - a reply out of a session: sampling, logit mask of a grammar, forced tokens, stop tokens. */
#ifndef HOLORUN_SESSION_GENERATE_H
#define HOLORUN_SESSION_GENERATE_H

#include "base/buf.h"
#include "grammar/grammar.h"
#include "session/session.h"

struct sampling {
    float temperature; /* 0: greedy */
    float top_p;       /* 1: off */
    int max_tokens;
    /* By the definitions of ops/sample_filter.h; 0: off.  With any of them logits come to the host, and no
     * tokens are guessed. */
    int top_k;
    float min_p, presence_penalty, frequency_penalty, repetition_penalty;
};

enum finish { FINISH_STOP, FINISH_LENGTH, FINISH_GRAMMAR, FINISH_CANCELLED };

struct token_choice { /* one generated token, for --json and traces */
    int32_t id;
    float logprob;        /* at temperature 1, without the logit mask */
    float logprob_masked; /* with the mask; equal without a grammar */
    bool forced;          /* the grammar allowed nothing else: it was not sampled */
    uint32_t end;         /* bytes of the text up to here */
};

enum { GENERATE_MAX_ALTERNATIVES = 64 };

struct token_alternative { /* a token that could have been sampled */
    int32_t id;            /* -1: there is no further one */
    float p;               /* at temperature 1, with the logit mask */
};

struct generation {
    struct grammar *grammar; /* its logit mask; may be NULL */
    const int32_t *said;     /* [n_said]: ids at the end of the session that the grammar begins with */
    int n_said;
    const int32_t
        *begins;  /* [n_begins]: ids that the reply begins with, whatever the model would say; they */
    int n_begins; /* get its log-probabilities all the same */
    struct sampling sampling;
    int earlier; /* tokens at the end of the session that belong to the reply already, for penalties */
    /* Likeliest alternatives recorded for each sampled token, at most GENERATE_MAX_ALTERNATIVES.  They need
     * the logits on the host, which costs time where a device samples. */
    int alternatives;
    const volatile int *cancel;                               /* non-zero: stop; may be NULL */
    void (*on_text)(void *arg, const char *text, size_t len); /* text as it comes; may be NULL */
    void *arg;
};

struct generated {
    struct buf text;                        /* added tokens as spelled, without the stop token */
    struct token_choice *choices;           /* [n] */
    struct token_alternative *alternatives; /* [n][width], likeliest first, none for forced tokens; or NULL */
    int width;
    char *spelled; /* of a server's reply: an alternative's id is where its text begins here; else NULL */
    int n, forced; /* all tokens, and the forced ones among them */
    int proposed, accepted; /* guesses, and those that were sampled then: see session/speculate.h */
    enum finish finish;
    double ms;
    /* XXH3 of the logits (f32 [V]) that each sampled token was chosen from, one after the other.  Not
     * `hashed`: a device chose, and its logits never came to the host. */
    uint64_t logits_hash;
    bool hashed;
};

/* Continues the session until a stop token, the end of the grammar, max_tokens or *cancel.  The session
 * then ends with the generated ids, the stop token included.  The caller calls generated_free, also after a
 * failure. */
int generate(struct session *s, const struct generation *how, struct generated *out, struct err *e);
void generated_free(struct generated *g);

/* The logarithm of the probability of the sampled tokens together; false: it is not known. */
bool generated_logprob(const struct generated *g, double *logprob);
/* Returns the log-probability of the first `bytes` bytes; tokens forced by the grammar count as 0. */
double generated_prefix_logprob(const struct generated *g, size_t bytes);

/* Bit set of the ids that may be generated: all tokens but the image token, which stands for pixels.  The
 * caller frees it. */
uint64_t *generate_known(const struct engine *g);

/* The likeliest of the ids below n that are known and allowed (NULL: all) into top[width], filled up with
 * -1; returns their number. */
int generate_top(const float *logits, int n, const uint64_t *known, const uint64_t *allowed,
                 struct token_alternative *top, int width);

#endif
