/* llm.h - the interface between the loop and a model: append turns, generate replies, rewind to marks.
 *
 * The model is a session of an engine (llm_local()), or a file of replies (llm_script()), so that the loop,
 * the trace and the executor can run and be tested without weights. A script keeps the conversation as text,
 * which tests read. Recordings, clients and servers have their own implementations.
 */
#pragma once

#include "actions/slots.h"
#include "session/beam_search.h"
#include "session/chat.h"
#include "session/session.h"

struct llm;
struct llm_mark;

struct llm_request { /* request for one reply */
    enum dialect_goal goal;
    struct sampling sampling;
    bool think;
    const char *begins;         /* forced prefix of the reply, marks encoded as tokens; NULL: none */
    bool free;                  /* without the grammar of the goal */
    int resample;               /* 0, or the number of a further sample: other random numbers */
    int alternatives;           /* alternatives kept per sampled token (generate.h) */
    const volatile int *cancel; /* generation stops when *cancel becomes non-zero */
    void (*on_text)(void *arg, const char *text, size_t len); /* may be NULL */
    void *arg;
};

struct beam_request { /* beam search for candidates of a slot of a reply */
    enum dialect_goal goal;
    bool think;
    const struct generated *said;
    const struct slot *slot;  /* slot of the reply's text */
    const char *const *words; /* [n_words] allowed values; NULL: all that the grammar allows */
    int n_words;
    const volatile int *cancel;
};

struct llm_usage { /* usage of a server's last reply, in its tokens; -1: not reported */
    int64_t prompt, cached, reply;
    double first_ms; /* time to the first text; -1: no text */
    double cost;     /* from the price list; -1: no price list */
    const char *currency;
    int exchange; /* number in the record of exchanges, from 1; 0: none */
};

/* Tokens of the conversation up to the end of the last reply, as a server returned them. */
struct llm_tokens {
    int32_t *ids;        /* [prompt + n] */
    int64_t prompt;      /* tokens before the reply */
    int n;               /* tokens of the reply */
    float *logprobs;     /* [n][2], before and after the mask; NaN for a forced token */
    int32_t image_token; /* id at the positions of images; -1: none */
    char weights[48];    /* identifies the weights; "": not reported */
};

struct llm_ops { /* operations returning int return 0, or -1 with e, unless stated otherwise */
    int (*begin)(struct llm *m, const char *system,
                 struct err *e); /* a further call starts a new conversation; marks stay valid */
    int (*user)(struct llm *m, const struct chat_part *parts, int n, enum chat_place place, struct err *e);
    int (*reply)(struct llm *m, const char *text, struct err *e); /* appends an earlier reply, with its end */
    /* Replaces the conversation by another one, which has its own tools. May be NULL. */
    int (*converse)(struct llm *m, const struct chat_conversation *c, struct err *e);
    int (*speak)(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e);
    /* Finds candidates for a slot; `before` is the mark before the reply. Returns their number, at most max,
     * the most probable first, or -1 with e. The conversation is unchanged. May be NULL. */
    int (*beam_search)(struct llm *m, const struct llm_mark *before, const struct beam_request *x,
                       struct beam_candidate *out, int max, struct err *e);
    int (*close)(struct llm *m, struct err *e); /* ends the turn that speak left open */

    struct llm_mark *(*mark)(struct llm *m, struct err *e); /* NULL with e: out of memory */
    /* Like mark, but a rewind to it leaves no trace: nothing is computed for it (session_try_bookmark()), and
     * a script gives the same replies again. NULL: mark does that. */
    struct llm_mark *(*bookmark)(struct llm *m, struct err *e);
    int (*rewind)(struct llm *m, const struct llm_mark *mark, struct err *e);
    /* Like rewind, but later marks stay valid: the conversation continues in a second session, and the first
     * session exists as long as it has marks. */
    int (*branch)(struct llm *m, const struct llm_mark *mark, struct err *e);
    int64_t (*mark_length)(const struct llm_mark *mark);
    void (*mark_free)(struct llm_mark *mark); /* accepts NULL */

    int64_t (*length)(const struct llm *m); /* tokens */
    struct session_stats (*stats)(const struct llm *m);
    const struct llm_usage *(*usage)(const struct llm *m);   /* may be NULL: not a server */
    const struct llm_tokens *(*tokens)(const struct llm *m); /* may be NULL, or return NULL: unknown */
    struct session *(*session)(
        const struct llm *m); /* the current session; may be NULL: a script has no tokens */
    void (*set_cancel)(struct llm *m, const volatile int *flag); /* may be NULL */
    /* Reports that the user approved the check of the server's last reply (step.check). May be NULL. */
    void (*checks_passed)(struct llm *m);
    void (*free)(struct llm *m);
};

/* The operations of an implementation with marks of its own, by the prefix of their functions. */
#define LLM_OPS(of)                                                                                          \
    .begin = of##_begin, .user = of##_user, .reply = of##_reply, .speak = of##_speak, .close = of##_close,   \
    .mark = of##_mark_new, .rewind = of##_rewind, .mark_length = of##_mark_length,                           \
    .mark_free = of##_mark_free, .length = of##_length, .stats = of##_stats, .free = of##_free

struct llm { /* first member of each implementation */
    const struct llm_ops *ops;
};

/* Copies the model's limits for resizing an image to a dialect whose coordinates are pixels of the resized
 * image (Qwen2.5-VL). */
void llm_fit_dialect(struct dialect *d, const struct engine *g);

/* Opens a new session of g. The dialect is borrowed. The caller frees the result. */
struct llm *llm_local(struct engine *g, const struct dialect *d, uint64_t seed);

/* Opens a script of replies: one per line or, if the text has an empty line, one per block between empty
 * lines. llm_script_file() returns NULL with ERR_USAGE if the file cannot be read. */
struct llm *llm_script(const char *replies, size_t len);
struct llm *llm_script_file(const char *path, struct err *e);
/* Opens another conversation that takes its replies from the same script, in the order of requests. Must be
 * freed before m. */
struct llm *llm_script_share(struct llm *m);
const char *llm_script_transcript(const struct llm *m); /* the conversation so far; borrowed */

/* Sets a flag that stops prefill, and waiting for a shared engine, with ERR_STOPPED when non-zero
 * (session_set_cancel()). NULL: none. */
void llm_set_cancel(struct llm *m, const volatile int *flag);

struct session *llm_session(const struct llm *m);         /* NULL for a script */
const struct llm_usage *llm_usage(const struct llm *m);   /* NULL: not a server */
const struct llm_tokens *llm_tokens(const struct llm *m); /* NULL: not a server, or it returns no ids */

/* Fills parts[n + 2] with a question about n images, in the order of the dialect's training: images first or
 * question first. Returns the number of parts. */
int llm_question(const struct dialect *d, const char *question, const struct image *images, int n,
                 struct chat_part *parts);

/* Asks one question in a new conversation. Returns -1 with e. */
int llm_ask(struct llm *m, const char *system, const struct chat_part *parts, int n, enum chat_place place,
            const struct llm_request *r, struct generated *out, struct err *e);

void llm_free(struct llm *m); /* accepts NULL */
