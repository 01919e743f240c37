/* parts.h - converts the content of a message, in the formats of three protocols, into a list of two kinds of
 * parts: {"type": "text", "text": ...} and {"type": "image_url", "image_url": {"url": ...}}.
 *
 *   text       text, input_text, output_text, refusal, search_result, compaction, a document of text
 *   images     image_url (an object or a string), input_image, image, computer_screenshot
 *   reasoning  thinking, reasoning: not part of the content; redacted_thinking is dropped
 *   dropped    records of tools that a vendor ran: listed in the notes
 *   rejected   everything else (audio, files, video), because the model would not see it */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "serve/notes.h"

#include <jansson.h>

/* Reads a text, a list of parts, one part, or null. Reasoning is appended to `thought`, which may be NULL.
 * Returns a new list, or NULL with ERR_USAGE. */
json_t *parts_read(const json_t *content, struct buf *thought, struct notes *n, struct err *e);

/* Appends the images of a list to `pictures` and returns its concatenated texts; the caller frees them. */
char *parts_text(const json_t *parts, json_t *pictures);

json_t *parts_new_text(const char *text);
