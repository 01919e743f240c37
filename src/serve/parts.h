/* parts.h - the content of a message, in the spellings of three protocols, as a list of two kinds of parts:
 * {"type": "text", "text": ...} and {"type": "image_url", "image_url": {"url": ...}}.
 *
 *   text       text, input_text, output_text, refusal, search_result, compaction, a document of text
 *   pictures   image_url (an object or a string), input_image, image, computer_screenshot
 *   thoughts   thinking, reasoning: not part of the content; redacted_thinking is dropped
 *   dropped    records of tools that a vendor ran: named in the notes
 *   refused    whatever else a message holds (audio, files, video): the model would not see it
 */
#ifndef HOLORUN_SERVE_PARTS_H
#define HOLORUN_SERVE_PARTS_H

#include "base/buf.h"
#include "base/err.h"
#include "serve/notes.h"

#include <jansson.h>

/* Reads a text, a list of parts, one part, or null.  thought: thoughts are appended; may be NULL.  Returns a
 * new list, NULL with ERR_USAGE. */
json_t *parts_read(const json_t *content, struct buf *thought, struct notes *n, struct err *e);

/* Moves the pictures of a list into `pictures` and returns its texts, behind each other; the caller frees
 * them. */
char *parts_text(const json_t *parts, json_t *pictures);

json_t *parts_new_text(const char *text);
json_t *parts_new_image(json_t *url); /* takes over the string */

#endif
