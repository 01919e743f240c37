/* context.h - the conversation, and which screenshots stay in view.
 *
 * A screenshot costs hundreds or thousands of tokens, so only the last few stay in view; older ones are
 * evicted and become placeholders.  A recurrent state cannot drop tokens: an eviction rewinds to a mark
 * before the screenshot and prefills what followed again.  Two policies:
 *
 *   sawtooth   screenshots gather up to N; then all old ones are evicted at once, and only the new one is
 *              prefilled.  In view: 1, 2, 3, 1, 2, 3, ...  Every step prefills one screenshot.
 *   strict     always the last N.  Beyond N every step prefills N screenshots again.
 *
 * Texts of turns are never shortened.
 *
 *     context_observe(c, lead, image)     a user's turn: lead text, screenshot
 *     context_think(c, ...)               generates a reply; called again: another reply in its place
 *     context_accept(c, text)             the reply stays
 */
#ifndef HOLORUN_AGENT_CONTEXT_H
#define HOLORUN_AGENT_CONTEXT_H

#include "llm/llm.h"

struct context;

struct context_cost {                 /* of one observe */
    int64_t total, reused, prefilled; /* tokens now; in the session before; prefilled */
    int images;                       /* in view now */
    bool cut;                         /* old screenshots were evicted */
    double ms;
};

/* Opens the conversation with the system text.  m and d are borrowed; max_images 1..4; rewindable: how
 * many of the last turns have rewind points. */
struct context *context_new(struct llm *m, const struct dialect *d, enum window_policy window, int max_images,
                            int rewindable, const char *system, struct err *e);
void context_free(struct context *c); /* NULL is fine */

/* lead: text before the screenshot (the task, or the result of the last action); the dialect's observation
 * wrapper is added here.  The image is copied if an eviction will prefill it again. */
int context_observe(struct context *c, const char *lead, const struct image *im, struct context_cost *cost,
                    struct err *e);
/* Appends a turn of an earlier run, without its screenshot; before the first observe. */
int context_recall(struct context *c, const char *lead, const char *reply, struct err *e);
int context_think(struct context *c, const struct llm_request *r, struct generated *out, struct err *e);
/* Candidates for a slot of the last reply (llm.h). */
int context_beam_search(struct context *c, const struct beam_request *x, struct beam_candidate *out, int max,
                        struct err *e);
/* text: the reply as history holds it (without reasoning).  as_said: it is byte for byte what the last think
 * generated, so that the session need not be rewound. */
int context_accept(struct context *c, const char *text, bool as_said, struct err *e);

/* ---- rewinding ----------------------------------------------------------------------------------
 *
 * To where a turn had been observed and had no reply yet.  At a rewind point the same random numbers
 * give the same reply, bit for bit.  The conversation that a rewind leaves stays in memory as long as
 * its points do.  Where memory is short, and for older turns, everything is prefilled again: the tokens
 * are then the same, the last bits of the state may not be.
 */
int context_turns(const struct context *c);                   /* observed so far */
const char *context_reply(const struct context *c, int turn); /* NULL: none yet */
/* Whether the last turn has its reply, so that another can follow. */
bool context_replied(const struct context *c);

/* Fills an empty image with the screenshot of a turn (from 0); the conversation takes it over. */
typedef int context_image(void *arg, int turn, struct image *out, struct err *e);
int context_rewind(struct context *c, int turn, context_image *image, void *arg, struct context_cost *cost,
                   struct err *e);

#endif
