/* messages.h - converts the messages of a request, as clients send them, into the messages that chat
 * templates support.
 *
 *   system     `developer` is an alias. The leading ones are joined with an empty line between them. A later
 *              one becomes a user turn at its position: templates have one system text, at the beginning, and
 *              moving the text there would change the prefix of the conversation. If there are only system
 *              messages, their text becomes the user turn.
 *   user       unchanged; consecutive ones stay separate turns.
 *   assistant  null, "" and absent content are equal. Reasoning under any name becomes `reasoning_content`. A
 *              last message without text and calls is dropped.
 *   tool       `function` is an older alias. Its texts are joined; its images go to the beginning of the user
 *              turn after the results, unless the template supports images in a result.
 *   calls      arguments become an object. A text that is not a JSON object is replaced by the object at its
 *              beginning, otherwise by {}, with a warning. A call without a name is dropped with a warning.
 */
#pragma once

#include "base/err.h"
#include "serve/notes.h"

#include <jansson.h>
#include <stdbool.h>

/* Replaces root's "messages" if it is a list. result_pictures: the template supports images in tool results.
 * Returns -1 with ERR_USAGE, which names the message. */
int messages_settle(json_t *root, bool result_pictures, struct notes *n, struct err *e);
