/* context.h - the conversation, and which screenshots stay in view.
 *
 * A screenshot costs hundreds of tokens or thousands, so only the last few stay; an older one becomes a
 * placeholder.  A recurrent state cannot forget: dropping a screenshot means going back to a mark before
 * it and appending what followed again.  Two policies:
 *
 *   sawtooth   screenshots gather up to N; then all old ones become placeholders at once, and only the
 *              new one is read.  In view: 1, 2, 3, 1, 2, 3, ...  Every step reads one screenshot.
 *   strict     always the last N.  Beyond N every step reads N screenshots again.
 *
 * Texts of turns are never shortened.  What the model said is appended again in its own accepted words.
 *
 *     context_observe(c, lead, image)     a user's turn: lead text, screenshot
 *     context_think(c, ...)               a reply; again: another attempt at the same place
 *     context_accept(c, text)             the reply stays
 */
#ifndef HOLORUN_AGENT_CONTEXT_H
#define HOLORUN_AGENT_CONTEXT_H

#include "agent/llm.h"

struct context;

struct context_cost {                 /* of one observe */
    int64_t total, reused, prefilled; /* tokens now; kept from before; read in this step */
    int images;                       /* in view now */
    bool cut;                         /* old screenshots became placeholders */
    double ms;
};

/* Opens the conversation with the system text.  Mind and dialect are borrowed; max_images 1..4. */
struct context *context_new(struct llm *m, const struct dialect *d, enum window_policy window, int max_images,
                            const char *system, struct err *e);
void context_free(struct context *c); /* NULL is fine */

/* lead: text before the screenshot (the task, or what came of the last action), without the dialect's
 * observation wrapper, which is put here.  The image is copied if it will be read again. */
int context_observe(struct context *c, const char *lead, const struct image *im, struct context_cost *cost,
                    struct err *e);
/* A turn of an earlier run, before the first observe: what was said then, without its screenshot. */
int context_recall(struct context *c, const char *lead, const char *reply, struct err *e);
int context_think(struct context *c, const struct llm_request *r, struct generated *out, struct err *e);
/* What else the reply that stands there could have said (llm.h). */
int context_beam_search(struct context *c, const struct beam_request *x, struct beam_candidate *out, int max,
                        struct err *e);
/* text: the reply as history holds it (without reasoning).  as_said: it is what the last think produced,
 * byte for byte, so that the state can simply go on. */
int context_accept(struct context *c, const char *text, bool as_said, struct err *e);

/* ---- going back ---------------------------------------------------------------------------------
 *
 * To where a turn had been observed and not yet answered.  Of the last `marks` turns the states are kept: the same dice
 * give the same reply there, bit for bit.  What was given up at a cut is kept with them, a second conversation's memory
 * each; where there is no room, and for older turns, everything is said again.  Then the tokens are the same, and the
 * last bits of the state need not be.
 */
void context_keep(struct context *c, int marks); /* right after context_new */
int context_turns(const struct context *c);      /* that were observed */

/* The screenshot of a turn (from 0) is wanted again: fills an empty image, which becomes the conversation's. */
typedef int context_image(void *arg, int turn, struct image *out, struct err *e);
int context_back(struct context *c, int turn, context_image *image, void *arg, struct context_cost *cost,
                 struct err *e);

#endif
