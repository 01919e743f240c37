/* context.h - the conversation, and the choice of screenshots that stay in view.
 *
 * A screenshot costs hundreds or thousands of tokens, so only the last few stay in view; older ones are
 * evicted and become placeholders. A recurrent state cannot drop tokens: an eviction rewinds to a mark
 * before the screenshot and prefills the following turns again. Two policies:
 *
 *   sawtooth   screenshots accumulate up to N; then all old ones are evicted at once, and only the
 *              new one is prefilled. In view: 1, 2, 3, 1, 2, 3, ... Every step prefills one screenshot.
 *   strict     always the last N. Beyond N every step prefills N screenshots again.
 *
 * Texts of turns are never shortened.
 *
 *     context_observe(c, lead, image)     adds a user's turn: lead text, screenshot
 *     context_think(c, ...)               generates a reply; a further call replaces the reply
 *     context_accept(c, text)             keeps the reply
 */
#pragma once

#include "llm/llm.h"

struct context;

struct context_cost {                 /* cost of one observe */
    int64_t total, reused, prefilled; /* tokens now; reused from the session; prefilled */
    int images;                       /* in view now */
    bool cut;                         /* old screenshots were evicted */
    double ms;
};

/* Opens the conversation with the system text. m and d are borrowed; max_images is 1 to 4; rewindable is the
 * number of last turns with rewind points. Returns NULL with e. */
struct context *context_new(struct llm *m, const struct dialect *d, enum window_policy window, int max_images,
                            int rewindable, const char *system, struct err *e);
void context_free(struct context *c); /* accepts NULL */
/* Leaves all screenshots out: the model has no vision. */
void context_hide_images(struct context *c);

/* Adds a turn with a screenshot. lead: text before the screenshot (the task, or the result of the last
 * action); the dialect's observation wrapper is added here. The image is copied if an eviction will prefill
 * it again. Returns -1 with e. */
int context_observe(struct context *c, const char *lead, const struct image *im, struct context_cost *cost,
                    struct err *e);
/* Appends a turn of an earlier run, without its screenshot; call before the first observe. */
int context_recall(struct context *c, const char *lead, const char *reply, struct err *e);
/* Lets the turns observed from now on be undone. cancel: flag that stops their prefill, but not that of older
 * turns after an eviction, which the next turn needs as well; NULL: they need not be undone any more. */
void context_allow_undo(struct context *c, const volatile int *cancel);
/* Removes the last turn if it was observed, in whole or in part, since context_allow_undo() and has no
 * accepted reply. The conversation continues, bit for bit, as if the turn had not been observed. */
int context_undo(struct context *c, struct err *e);
int context_think(struct context *c, const struct llm_request *r, struct generated *out, struct err *e);
/* Finds candidates for a slot of the last reply (llm.h); returns their number, or -1 with e. */
int context_beam_search(struct context *c, const struct beam_request *x, struct beam_candidate *out, int max,
                        struct err *e);
/* Keeps the reply. text: the reply as kept in the history (without reasoning). as_said: text is byte for
 * byte the output of the last think, so that the session need not be rewound. Returns -1 with e. */
int context_accept(struct context *c, const char *text, bool as_said, struct err *e);

/* ---- rewinding ----------------------------------------------------------------------------------
 *
 * A rewind restores the state in which a turn had been observed and had no reply yet. At a rewind point
 * equal random numbers give the same reply, bit for bit. The abandoned branch of the conversation stays in
 * memory as long as its points do. If memory is short, and for older turns, everything is prefilled again:
 * the tokens are then equal, but the last bits of the state may differ. */
int context_turns(const struct context *c);                   /* observed so far */
const char *context_reply(const struct context *c, int turn); /* NULL: none yet */
/* Returns whether the last turn has its reply, so that another turn can follow. */
bool context_replied(const struct context *c);

/* Loads the screenshot of a turn (from 0) into an empty image; the conversation takes ownership. */
typedef int context_image(void *arg, int turn, struct image *out, struct err *e);
int context_rewind(struct context *c, int turn, context_image *image, void *arg, struct context_cost *cost,
                   struct err *e);
