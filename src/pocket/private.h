/* private.h - the assist of the embedded model and the functions behind its operations.  Private to
 * pocket/. */
#pragma once

#include "llm/assist.h"
#include "pocket/heads.h"
#include "pocket/task_names.h"

struct stand_ins {                 /* words in the task that stand for secrets (stand_ins.c) */
    const struct secrets *secrets; /* NULL: none */
    const char *town[SECRETS_MAX]; /* stand-in of secret i; NULL: the task does not mention the secret */
};

/* Returns a task with such words, which the caller frees.  *unused: a secret that the task does not mention,
 * else unchanged. */
char *stand_ins_task(struct stand_ins *x, const char *task, const struct secrets *s, const char **unused);
/* Replaces these words by {{NAME}} in the texts that a step types. */
void stand_ins_resolve(const struct stand_ins *x, struct step *step);

struct pocket {
    struct assist base;
    struct assist_ops ops; /* without those that this model or dialect does not support */
    struct heads *heads;   /* NULL: the model has none */
    const volatile int *cancel;
    struct stand_ins stand_ins;
    struct seen seen; /* on the last image that was read */
    uint64_t seen_hash;
    int seen_w, seen_h; /* 0: none yet */
};

/* Corrections that a measurement disables (tests/helpers/without.c). The program disables none. */
enum {
    WITHOUT_OMISSIONS = 1, /* coverage.c */
    WITHOUT_REPEATS = 2,   /* repeated_texts.c */
    WITHOUT_PLACES = 4,    /* by_name.c: positions of actions and of `ground` */
    WITHOUT_ANSWERS = 8,   /* answers.c */
};
extern unsigned pocket_without;

/* Reads an image, unless it is the last one read.  *out is borrowed until the next call; its map has no
 * patches if the model has no heads or memory was short.  Returns -1 with e if stopped or out of memory. */
int pocket_look(struct pocket *x, const struct image *im, const struct seen **out, struct err *e);

/* Operations of assist.h. */
int pocket_correct_reply(struct assist *x, struct assist_step *s, struct err *e); /* coverage.c */
int pocket_correct_action(struct assist *x, struct assist_step *s, int index, struct action *a,
                          struct err *e); /* by_name.c */
int pocket_find(struct assist *x, const struct image *im, const char *name, struct grounding *inout,
                struct err *e); /* by_name.c */
int pocket_answer(struct assist *x, const struct image *im, const char *question, const char *answer,
                  char **out, struct err *e);
int pocket_judge(struct assist *x, const struct assist_question *q, enum assist_verdict *out, char **reason,
                 struct err *e); /* verdict.c */

/* Returns whether a question names something that is not on the image (answers.c). */
bool asks_for_absent(const struct picture_text *t, const char *question);
