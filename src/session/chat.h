/* chat.h - appends the turns of a conversation to a session, in the layout of the model's chat template
 * (text/chat_template.h).
 *
 * All functions return -1 with e if the template cannot be split into turns. */
#pragma once

#include "session/session.h"
#include "text/chat_template.h"

struct engine;

/* Opens the template of the engine's model, or the default layout of its family. The engine owns the
 * template. */
struct chat_template *chat_open_template(const struct engine *g);

/* ---- turn by turn ---------------------------------------------------------------------------------
 *
 * For a session that grows with an agent. Texts come from screens and pages, so special tokens and
 * switches such as "/think" in them stay plain text. */

/* Appends the text before the first user turn to an empty session; text "": no system message. think:
 * whether replies will be opened for thinking, which some templates state here. */
int chat_system(struct session *s, const char *text, bool think, struct err *e);

/* Appends the system text and a table of tools (JSON, one tool per line) as the model's template lists
 * them. */
int chat_system_tools(struct session *s, const char *text, const char *tools, bool think, struct err *e);

/* Appends one user turn of n parts. */
int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e);

/* Opens the assistant's turn, which generation continues. think: leaves the think block open. */
int chat_open_reply(struct session *s, bool think, struct err *e);

/* Closes the assistant's turn after generation: appends the part of its end that was not generated. */
int chat_close_reply(struct session *s, struct err *e);

/* Appends a complete assistant turn of the history. Special tokens in its text are recognized, except
 * those of turns, images and tools, which stay text. */
int chat_reply(struct session *s, const char *reply, struct err *e);

/* Returns whether later prompts contain this generated reply verbatim. If not, the session must be rewound
 * to before the opening, and chat_reply() appends the reply again. */
bool chat_keeps_reply(const struct session *s, const char *reply);

/* ---- whole conversations --------------------------------------------------------------------------- */

/* Appends segments [from, to) of a layout. */
int chat_append_layout(struct session *s, const struct layout *l, int from, int to, struct err *e);

/* Appends a whole conversation to an empty session, as the template renders it. */
int chat_append(struct session *s, const struct chat_conversation *c, struct err *e);
