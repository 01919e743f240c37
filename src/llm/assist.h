/* assist.h - optional corrections of a model's replies, positions and answers.
 *
 * A model with outputs in addition to its text, or with known weaknesses, can come with an assist, which the
 * run opens with the model; other models have none (NULL). An operation that is NULL is not supported, and
 * the loop then uses the model's own words. Each correction is recorded as an event
 *
 *     assist {by, index, element, from, to, logprob, taken, ms}
 *
 * by: name of the correction; from, to: the value before and after; taken: whether a resampled reply
 * replaced the first one; ms: time since the previous event of the same call, or since the call. Members
 * that do not apply are omitted.
 *
 * An assist belongs to one thread. Functions return -1 with e.
 */
#pragma once

#include "actions/action.h"
#include "actions/slots.h"
#include "base/image.h"
#include "base/secret.h"
#include "session/beam_search.h"
#include "session/generate.h"

/* One correction, for the record; members are borrowed. */
struct assist_note {
    const char *by;
    int index;             /* index of the action in its step; -1: the whole reply */
    const char *element;   /* NULL: none */
    const char *from, *to; /* NULL: none */
    const double *logprob; /* log-probability of the forced prefix `to`; NULL: not resampled */
    bool taken;            /* ... the resampled reply replaced the first */
};

/* The current step, and the means to change its reply. */
struct assist_step {
    const struct dialect *dialect;
    const char *task;
    const struct image *frame;  /* screenshot that the model read */
    const char *const *earlier; /* [n_earlier] earlier replies to this task; entries may be NULL */
    int n_earlier;

    /* The current reply: parsed, as kept in the history, and as generated. resample() may replace them. */
    const struct step *step;
    const char *text;
    const struct generated *raw;

    /* Samples a reply with the forced prefix `begins`. It replaces the current reply if it can be parsed and
     * the log-probability of the prefix exceeds *min_logprob, which is then raised to that value. */
    int (*resample)(struct assist_step *s, const char *by, const char *begins, double *min_logprob,
                    struct err *e);
    /* Finds the most probable values of a word slot of the current reply: among n words or, if words is
     * NULL, all that the grammar allows. Returns the number written to out, at most max; 0 without such a
     * slot. */
    int (*search)(struct assist_step *s, enum slot_kind kind, const char *const *words, int n,
                  struct slot *slot, struct beam_candidate *out, int max, struct err *e);
    int (*note)(struct assist_step *s, const struct assist_note *n, struct err *e); /* records a correction */
    void *arg;
};

struct grounding { /* position of a named element */
    bool missing;
    double x, y; /* unless missing; pixels of the image */
    double p;    /* confidence, 0 to 1; negative: unknown */
};

enum assist_verdict { ASSIST_YES, ASSIST_NO, ASSIST_UNKNOWN };

struct assist_question {       /* a yes-or-no question about one image */
    const struct image *image; /* NULL: none */
    const char *text;
    const char *shows; /* text to look for, if the question is only that; else NULL */
    /* Asks the model. Returns 1 with *reason (owned by the caller) if the reply is incomplete, -1 with e. */
    int (*ask)(void *arg, const char *text, struct generated *out, char **reason, struct err *e);
    void *arg;
};

struct assist;
struct assist_ops {
    /* Returns the task as the model reads it, without the names of secrets; the caller frees it. *unused: a
     * secret that the task does not mention, else unchanged. */
    char *(*read_task)(struct assist *x, const char *task, const struct secrets *s, const char **unused);
    /* Restores the names of secrets in the texts of a step. */
    void (*restore_secrets)(struct assist *x, struct step *step);
    /* Checks the current reply and may replace it. */
    int (*correct_reply)(struct assist *x, struct assist_step *s, struct err *e);
    /* Corrects text and position of one action of the accepted reply. */
    int (*correct_action)(struct assist *x, struct assist_step *s, int index, struct action *a,
                          struct err *e);
    /* Corrects the position that the model gives for a named element. */
    int (*find)(struct assist *x, const struct image *im, const char *name, struct grounding *inout,
                struct err *e);
    /* Corrects the model's answer to a question about an image. *out: the new answer, which the caller
     * frees, or NULL if the answer is unchanged. */
    int (*answer)(struct assist *x, const struct image *im, const char *question, const char *answer,
                  char **out, struct err *e);
    /* Returns whether a text is visible on an image. */
    bool (*shows)(struct assist *x, const struct image *im, const char *text);
    /* Decides a question. Sets *reason (owned by the caller). */
    int (*judge)(struct assist *x, const struct assist_question *q, enum assist_verdict *out, char **reason,
                 struct err *e);
    void (*free)(struct assist *x);
};

struct assist { /* first member of each implementation */
    const struct assist_ops *ops;
};

/* Evaluates to the operation of an assist, or NULL. The assist may be NULL. */
#define ASSIST(x, op) ((x) ? (x)->ops->op : NULL)

void assist_free(struct assist *x); /* accepts NULL */
