/* export_replies.h - iterates over the replies that became steps, for the export formats used in training.
 *
 *     struct replies x = {.o = o, .s = s, .put = put_reply};
 *     rc = replies_export(&x, "trajectory.jsonl", e);
 *
 * A forced token was not chosen by the model: its mask is 0, its log-probability is 0 after the logit mask
 * and unknown (not finite) before it. */
#pragma once

#include "replay/export.h"

struct replies {
    const struct export_options *o;
    const struct story *s;
    int (*put)(struct replies *x, const struct turn *u, const struct conversation_ids *ids, struct err *e);
    int (*end)(struct replies *x, struct err *e); /* called after the last reply; may be NULL */
    void *arg;                                    /* for the functions of the format */

    FILE *f;
    struct timeline t;
    struct conversation_ids ids; /* up to the end of the reply */
    struct seen {
        int step, frame;
    } * seen; /* [n] screenshots of the conversation, oldest first */
    int n;
    const char *id; /* of the run */
};

/* Writes the file `name` in the output directory, and the images into its subdirectory frames. */
int replies_export(struct replies *x, const char *name, struct err *e);

json_t *replies_ids(const int32_t *ids, int64_t n);
json_t *replies_mask(const struct replies *x,
                     const struct turn *u); /* mask of the reply's tokens; 1: chosen by the model */
/* Returns the sampler's settings and what identifies the weights: {temperature, top_p, seed, weights}. The
 * log-probabilities are at temperature 1 whatever the sampler's is. */
json_t *replies_sampler(const struct record *r, const struct turn_reply *reply);
const json_t *replies_event(const struct replies *x, const struct turn *u); /* the generate event */
bool replies_last(const struct replies *x, const struct turn *u);

struct reply_image {
    int64_t from, to; /* range of its rows in the prompt's ids */
    char name[40];    /* of its file */
};
/* Fills the i-th image of a reply's prompt, whose file will be written. Returns 1, 0 after the last image, -1
 * on an error. */
int replies_image(const struct replies *x, const struct turn *u, int i, struct reply_image *out,
                  struct err *e);
