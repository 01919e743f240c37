/* chat.h - turns of a conversation, appended to a session in the layout of its chat template
 * (text/chat_template.h).  All functions return -1 with e if the template cannot be assembled from turns. */
#ifndef HOLORUN_SESSION_CHAT_H
#define HOLORUN_SESSION_CHAT_H

#include "session/session.h"
#include "text/chat_template.h"

struct engine;

/* Opens the template of the engine's model, or the layout of its family (engine.c). */
struct chat_template *chat_open_template(const struct engine *g);

/* ---- turn by turn ---------------------------------------------------------------------------------
 *
 * For a session that grows with an agent.  Texts come from screens and pages: markers and switches such as
 * "/think" in them are plain text.
 */

/* The text before the first user turn.  The session must be empty.  text "": no system message.  think:
 * whether replies will be opened for thinking, which some templates mention here. */
int chat_system(struct session *s, const char *text, bool think, struct err *e);

/* The same with a table of tools, the JSON of one a line, as the model's own template lists them. */
int chat_system_tools(struct session *s, const char *text, const char *tools, bool think, struct err *e);

/* One user turn of n parts. */
int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e);

/* Opens the assistant's turn; generation continues from here.  think: leaves the think block open. */
int chat_open_reply(struct session *s, bool think, struct err *e);

/* Closes the assistant's turn after generation: appends the missing part of its end. */
int chat_close_reply(struct session *s, struct err *e);

/* An assistant turn of the history, closed.  Added tokens that it spells are recognised, except those that
 * mark turns, images and tools, which stay text. */
int chat_reply(struct session *s, const char *reply, struct err *e);

/* Returns whether a later prompt contains this generated reply as it is.  If not, the session must return to
 * before the opening, and chat_reply reads the reply again. */
bool chat_keeps_reply(const struct session *s, const char *reply);

/* ---- whole conversations --------------------------------------------------------------------------- */

/* Appends segments [from, to) of a layout. */
int chat_append_layout(struct session *s, const struct layout *l, int from, int to, struct err *e);

/* Appends a whole conversation to an empty session, as the template renders it. */
int chat_append(struct session *s, const struct chat_conversation *c, struct err *e);

#endif
