/* messages.h - the messages of a request, as clients write them, become messages that chat templates have.
 *
 *   system     `developer` is another name of it.  The leading ones are joined with an empty line between
 *              them.  A later one becomes a user's turn at its position: templates have one system text, at
 *              the beginning, and moving the text there would change how the conversation began.  Where
 *              nothing but system messages is sent, their text becomes the user's turn.
 *   user       as it is; several in a row stay several turns.
 *   assistant  null, "" and absent content are the same.  Thoughts of any spelling are `reasoning_content`.
 *              A last message without text and calls is dropped.
 *   tool       `function` is an older name of it.  Its texts are joined; its pictures begin the user's turn
 *              behind the run of results, unless the template shows pictures in a result.
 *   calls      arguments become an object: text that is not the JSON of one is replaced by the object at its
 *              beginning, else by {}, with a warning.  A call without a name is dropped with a warning.
 */
#ifndef HOLORUN_SERVE_MESSAGES_H
#define HOLORUN_SERVE_MESSAGES_H

#include "base/err.h"
#include "serve/notes.h"

#include <jansson.h>
#include <stdbool.h>

/* Replaces root's "messages", where they are a list.  result_pictures: the template shows pictures in
 * results of tools.  ERR_USAGE names the message. */
int messages_settle(json_t *root, bool result_pictures, struct notes *n, struct err *e);

#endif
