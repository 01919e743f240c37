/* llm.h - whom the loop talks with: a model's session, or a script in its place.
 *
 * What the loop needs of a conversation partner and nothing more: turns go in, replies come out, and one
 * can go back to a mark.  Two partners: llm_local() is a session of an engine; llm_script() reads its
 * replies from a file, so that the loop, the trace and the executor can be run and tested without
 * weights.  A script keeps the conversation as readable text, which is what tests look at.
 */
#ifndef HOLORUN_AGENT_LLM_H
#define HOLORUN_AGENT_LLM_H

#include "actions/slots.h"
#include "session/beam_search.h"
#include "session/chat.h"
#include "session/session.h"

struct llm;
struct llm_mark;

struct llm_request { /* one reply wanted */
    enum dialect_goal goal;
    struct sampling sampling;
    bool think;
    int resample;               /* 0, or which further attempt: throws the dice differently */
    int alternatives;           /* kept of each sampled token (generate.h) */
    const volatile int *cancel; /* stop when it becomes non-zero */
    void (*on_text)(void *arg, const char *text, size_t len); /* may be NULL */
    void *arg;
};

struct beam_request { /* other ways in which a reply could have gone on */
    enum dialect_goal goal;
    bool think;
    const struct generated *said;
    const struct slot *slot; /* of its text */
    const volatile int *cancel;
};

struct llm_ops {                                                    /* all return 0, or -1 with a message */
    int (*begin)(struct llm *m, const char *system, struct err *e); /* also from anew; marks remain good */
    int (*user)(struct llm *m, const struct chat_part *parts, int n, enum chat_place place, struct err *e);
    int (*reply)(struct llm *m, const char *text, struct err *e); /* what was said before, with its closing */
    int (*speak)(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e);
    /* At most max, the likeliest first, and the number of them; `before` is the mark before the reply.  The conversation
     * stays as it is.  May be NULL. */
    int (*beam_search)(struct llm *m, const struct llm_mark *before, const struct beam_request *x,
                       struct beam_candidate *out, int max, struct err *e);
    int (*close)(struct llm *m, struct err *e); /* ends the turn that speak left open */

    struct llm_mark *(*mark)(struct llm *m, struct err *e); /* NULL: no room for it */
    int (*rewind)(struct llm *m, const struct llm_mark *mark, struct err *e);
    /* The same, but marks behind that one remain good: as long as there are any, what was said there is kept.  Takes
     * memory for a second conversation. */
    int (*branch)(struct llm *m, const struct llm_mark *mark, struct err *e);
    int64_t (*mark_length)(const struct llm_mark *mark);
    void (*mark_free)(struct llm_mark *mark); /* NULL is fine */

    int64_t (*length)(const struct llm *m);          /* tokens so far */
    bool (*fits)(const struct llm *m, int64_t more); /* there is memory for so many tokens more */
    const int32_t *(*tokens)(const struct llm *m);   /* [length], NULL for a script */
    int32_t (*image_token)(const struct llm *m);     /* each stands for a row of an image; -1: none */
    struct session_stats (*stats)(const struct llm *m);
    uint64_t (*rng)(const struct llm *m); /* which are thrown next; go back with a mark */
    void (*set_rng)(struct llm *m, uint64_t rng);
    void (*set_cancel)(struct llm *m, const volatile int *flag); /* may be NULL */
    void (*free)(struct llm *m);
};

struct llm { /* the first member of each partner */
    const struct llm_ops *ops;
};

/* A fresh session of g.  The dialect is borrowed. */
struct llm *llm_local(struct engine *g, const struct dialect *d, uint64_t seed);

/* Replies one a line, or, when the text has an empty line, one a block between empty lines. */
struct llm *llm_script(const char *replies, size_t len);
struct llm *llm_script_file(const char *path, struct err *e);
/* Another conversation over the same script: whoever speaks has the next reply.  To be freed before m. */
struct llm *llm_script_beside(struct llm *m);
const char *llm_script_transcript(const struct llm *m); /* what a model would have in view now */

/* Non-zero in *flag: what reads, or waits for a shared engine, gives up with ERR_STOPPED (session_set_cancel).  NULL: none. */
void llm_set_cancel(struct llm *m, const volatile int *flag);

void llm_free(struct llm *m); /* NULL is fine */

#endif
