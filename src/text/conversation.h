/* conversation.h - a conversation in a JSON file, in the format of OpenAI's chat API and its relatives.
 *
 *   {"messages": [{"role": "system", "content": "Be brief."},
 *                 {"role": "user", "content": [{"type": "image", "image": "screen.png"},
 *                                              {"type": "text", "text": "What is open?"}]},
 *                 {"role": "assistant", "content": "A form.",
 *                  "tool_calls": [{"function": {"name": "click", "arguments": {"x": 3}}}]},
 *                 {"role": "tool", "content": "done"}],
 *    "tools": [{"type": "function", "function": {"name": "click", ...}}]}
 *
 * or the list of messages alone.  An assistant may have "reasoning_content".  Pictures are PNG files,
 * relative to the file; "image_url" with {"url": "file.png"} names one too.  "chat_template_kwargs" is
 * an object with further variables of the template.  Anything else is refused with its place, never left
 * out.
 */
#ifndef HOLORUN_TEXT_CONVERSATION_H
#define HOLORUN_TEXT_CONVERSATION_H

#include "text/chat_template.h"

#include <jansson.h>

enum {
    CONVERSATION_BYTES = 16 << 20,
    CONVERSATION_MESSAGES = 4096,
    CONVERSATION_PARTS = 256,  /* of one message; also its calls, and the tools */
    CONVERSATION_IMAGES = 600, /* in all */
};

struct conversation {
    struct chat_conversation chat; /* points into what follows */
    json_t *root;
    struct chat_message *messages;
    char **texts; /* calls and tools, serialised again */
    int n_texts;
    struct image *images; /* in order; empty until they are read */
    const char **files;   /* their names */
    int n_images;
};

/* Reads the file and its pictures.  ERR_USAGE for its contents, ERR_ENV when a file cannot be read.
 * The caller calls conversation_free also after a failure. */
int conversation_read(struct conversation *v, const char *path, struct err *e);

/* The same from memory, without the pictures. */
int conversation_parse(struct conversation *v, const char *text, size_t len, struct err *e);

/* The same from JSON that has been read, of any size; takes over `root`. */
int conversation_take(struct conversation *v, json_t *root, struct err *e);

void conversation_free(struct conversation *v);

#endif
