/* chat.h - turns of a conversation, appended to a session (text/chat_template.h has the layout). */
#ifndef HOLORUN_SESSION_CHAT_H
#define HOLORUN_SESSION_CHAT_H

#include "session/session.h"
#include "text/chat_template.h"

/* ---- turn by turn ---------------------------------------------------------------------------------
 *
 * For a session that grows while somebody works with it.  Texts come from screens and pages, so words
 * in them switch nothing; who opens the reply says whether it thinks.
 */

/* <s> and the system block.  The session must be empty. */
int chat_system(struct session *s, const char *text, struct err *e);

/* One user turn of n parts. */
int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e);

/* Opens the assistant's turn: generation goes on from here. think: leave the think block open. */
int chat_open_reply(struct session *s, bool think, struct err *e);

/* Closes the assistant's turn after generation: appends what of its end is missing. */
int chat_close_reply(struct session *s, struct err *e);

/* An assistant turn that was said before (history), with its closing.  Of added tokens those that
 * mark turns, images and tools are text in it, whichever it spells; others are recognised. */
int chat_reply(struct session *s, const char *reply, struct err *e);

/* Appends a whole conversation to an empty session; refuses models with other marks than the template's. */
int chat_append(struct session *s, const struct chat_conversation *c, struct err *e);

#endif
