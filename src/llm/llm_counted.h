/* llm_counted.h - a struct llm without tokens, whose marks are lengths of the conversation.
 *
 * Its replies come from elsewhere: a recording (record/playback.c), a client (host/hand.c). Those
 * implementations begin with this struct; LLM_COUNTED_OPS are the operations that they share.
 */
#pragma once

#include "llm/llm.h"

struct llm_counted {
    struct llm base;
    int64_t length; /* estimated tokens: bytes of texts, 256 for an image */
    struct session_stats stats;
};

/* Adds the parts of a turn to the length. */
void llm_counted_add(struct llm_counted *c, const struct chat_part *parts, int n);

/* Copies the reason for which the last action failed, from the text before a screenshot; "": it was
 * performed. i: index of the screenshot's part. */
void llm_counted_failed(const struct chat_part *parts, int i, char out[ERR_TEXT]);

/* Completes out, whose text is set: counts it, passes it to r->on_text and sets the time. start: clock_ns()
 * at its beginning. */
void llm_counted_spoken(struct llm_counted *c, const struct llm_request *r, int64_t start,
                        struct generated *out);

int llm_counted_begin(struct llm *m, const char *system, struct err *e);
int llm_counted_reply(struct llm *m, const char *text, struct err *e);
int llm_counted_close(struct llm *m, struct err *e);
struct llm_mark *llm_counted_mark(struct llm *m, struct err *e);
int llm_counted_rewind(struct llm *m, const struct llm_mark *at, struct err *e);
int64_t llm_counted_mark_length(const struct llm_mark *at);
void llm_counted_mark_free(struct llm_mark *at);
int64_t llm_counted_length(const struct llm *m);
struct session_stats llm_counted_stats(const struct llm *m);

/* clang-format off */
#define LLM_COUNTED_OPS                                                                                      \
    .begin = llm_counted_begin, .reply = llm_counted_reply, .close = llm_counted_close,                      \
    .mark = llm_counted_mark, .rewind = llm_counted_rewind,                                                  \
    .branch = llm_counted_rewind, /* marks are numbers and stay valid */                                     \
    .mark_length = llm_counted_mark_length, .mark_free = llm_counted_mark_free,                              \
    .length = llm_counted_length, .stats = llm_counted_stats
/* clang-format on */
