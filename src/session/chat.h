/* chat.h - turns of a conversation, appended to a session in the layout of its chat template
 * (text/chat_template.h). */
#ifndef HOLORUN_SESSION_CHAT_H
#define HOLORUN_SESSION_CHAT_H

#include "session/session.h"
#include "text/chat_template.h"

/* ---- turn by turn ---------------------------------------------------------------------------------
 *
 * For a session that grows with an agent.  Texts come from screens and pages: unlike in chat_append,
 * "/think" in them is plain text.
 */

/* <s> and the system block.  The session must be empty. */
int chat_system(struct session *s, const char *text, struct err *e);

/* The same with a table of tools, the JSON of one a line, as the model's own template lists them; a model
 * without such a template is refused. */
int chat_system_tools(struct session *s, const char *text, const char *tools, struct err *e);

/* One user turn of n parts. */
int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e);

/* Opens the assistant's turn: generation goes on from here.  think: leaves the think block open. */
int chat_open_reply(struct session *s, bool think, struct err *e);

/* Closes the assistant's turn after generation: appends what is missing of its end. */
int chat_close_reply(struct session *s, struct err *e);

/* An assistant turn of the history, closed.  Added tokens that it spells are recognised, except those that
 * mark turns, images and tools, which stay text. */
int chat_reply(struct session *s, const char *reply, struct err *e);

/* Whether a later prompt holds a reply as it was said, or without how it was opened and reasoned (Qwen's
 * template): then the session goes back to before the opening, and chat_reply reads the reply again. */
bool chat_keeps_reply(const struct session *s);

/* One user turn with the results of n calls.  Refuses models with ChatML. */
int chat_results(struct session *s, const char *const *results, int n, struct err *e);

/* Appends a whole conversation to an empty session; refuses Nemotron models with ChatML. */
int chat_append(struct session *s, const struct chat_conversation *c, struct err *e);

#endif
