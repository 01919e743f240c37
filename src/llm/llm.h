/* llm.h - the model as the loop sees it: turns go in, replies come out, marks can be rewound to.
 *
 * Two implementations: llm_local() is a session of an engine; llm_script() reads its replies from a file,
 * so that the loop, the trace and the executor can run and be tested without weights.  A script keeps the
 * conversation as text, which tests read.
 */
#ifndef HOLORUN_LLM_LLM_H
#define HOLORUN_LLM_LLM_H

#include "actions/slots.h"
#include "session/beam_search.h"
#include "session/chat.h"
#include "session/session.h"

struct llm;
struct llm_mark;

struct llm_request { /* for one reply */
    enum dialect_goal goal;
    struct sampling sampling;
    bool think;
    const char *begins;         /* text that the reply begins with, marks as tokens; NULL: none */
    bool free;                  /* without the grammar of the goal */
    int resample;               /* 0, or the number of a further sample: other random numbers */
    int alternatives;           /* kept of each sampled token (generate.h) */
    const volatile int *cancel; /* generation stops when it becomes non-zero */
    void (*on_text)(void *arg, const char *text, size_t len); /* may be NULL */
    void *arg;
};

struct beam_request { /* candidates for a slot of a reply, by beam search */
    enum dialect_goal goal;
    bool think;
    const struct generated *said;
    const struct slot *slot;  /* of its text */
    const char *const *words; /* [n_words] what may stand there; NULL: what the grammar of the goal allows */
    int n_words;
    const volatile int *cancel;
};

struct llm_usage { /* of the last reply of a server, in tokens as it counts them; -1: it does not say */
    int64_t prompt, cached, reply;
    double first_ms; /* until the first text; -1: there was none */
    double cost;     /* by the price list; -1: there is none */
    const char *currency;
    int exchange; /* its number in the record of exchanges, from 1; 0: none */
};

struct llm_ops { /* all return 0, or -1 with a message */
    int (*begin)(struct llm *m, const char *system,
                 struct err *e); /* again: a new conversation; marks stay valid */
    int (*user)(struct llm *m, const struct chat_part *parts, int n, enum chat_place place, struct err *e);
    int (*reply)(struct llm *m, const char *text, struct err *e); /* an earlier reply, with its end */
    /* A whole conversation, with tools of its own, in place of what was said; may be NULL. */
    int (*converse)(struct llm *m, const struct chat_conversation *c, struct err *e);
    int (*speak)(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e);
    /* Returns the number of candidates, at most max, the likeliest first; `before` is the mark before the
     * reply.  The conversation stays as it is.  May be NULL. */
    int (*beam_search)(struct llm *m, const struct llm_mark *before, const struct beam_request *x,
                       struct beam_candidate *out, int max, struct err *e);
    int (*close)(struct llm *m, struct err *e); /* ends the turn that speak left open */

    struct llm_mark *(*mark)(struct llm *m, struct err *e); /* NULL: out of memory */
    int (*rewind)(struct llm *m, const struct llm_mark *mark, struct err *e);
    /* As rewind, but later marks stay valid: the conversation continues in a second session, and the
     * first lives as long as it has marks. */
    int (*branch)(struct llm *m, const struct llm_mark *mark, struct err *e);
    int64_t (*mark_length)(const struct llm_mark *mark);
    void (*mark_free)(struct llm_mark *mark); /* NULL is fine */

    int64_t (*length)(const struct llm *m); /* tokens */
    struct session_stats (*stats)(const struct llm *m);
    const struct llm_usage *(*usage)(const struct llm *m); /* may be NULL: no server */
    struct session *(*session)(
        const struct llm *m); /* the present one; NULL for a script, which has no tokens */
    void (*set_cancel)(struct llm *m, const volatile int *flag); /* may be NULL */
    /* A person has let pass what the server of the last reply wanted looked at (step.check); may be NULL. */
    void (*checks_passed)(struct llm *m);
    void (*free)(struct llm *m);
};

struct llm { /* the first member of each implementation */
    const struct llm_ops *ops;
};

/* Tells a dialect whose coordinates are pixels of a resized picture how this model resizes it. */
void llm_fit_dialect(struct dialect *d, const struct engine *g);

/* A fresh session of g.  The dialect is borrowed. */
struct llm *llm_local(struct engine *g, const struct dialect *d, uint64_t seed);

/* One reply a line or, when the text has an empty line, one reply a block between empty lines. */
struct llm *llm_script(const char *replies, size_t len);
struct llm *llm_script_file(const char *path, struct err *e);
/* Another conversation that takes its replies from the same script, in the order of asking.  Freed before
 * m. */
struct llm *llm_script_share(struct llm *m);
const char *llm_script_transcript(const struct llm *m); /* what a model would have in view */

/* Prefill, and waiting for a shared engine, stop with ERR_STOPPED when *flag is non-zero
 * (session_set_cancel). NULL: none. */
void llm_set_cancel(struct llm *m, const volatile int *flag);

struct session *llm_session(const struct llm *m);       /* NULL for a script */
const struct llm_usage *llm_usage(const struct llm *m); /* NULL: it is no server's */

/* Fills parts[n + 2] with a question about n images, in the order of the dialect's training: the images first
 * or the question first.  Returns the number of parts. */
int llm_question(const struct dialect *d, const char *question, const struct image *images, int n,
                 struct chat_part *parts);

/* Asks one question in a new conversation. */
int llm_ask(struct llm *m, const char *system, const struct chat_part *parts, int n, enum chat_place place,
            const struct llm_request *r, struct generated *out, struct err *e);

void llm_free(struct llm *m); /* NULL is fine */

#endif
