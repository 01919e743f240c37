/* conversation.h - a conversation in a JSON file, in the format of OpenAI's chat API and its relatives.
 *
 *     {"messages": [{"role": "system", "content": "Be brief."},
 *                   {"role": "user", "content": [{"type": "image", "image": "screen.png"},
 *                                                {"type": "text", "text": "What is open?"}]},
 *                   {"role": "assistant", "content": "A form.",
 *                    "tool_calls": [{"function": {"name": "click", "arguments": {"x": 3}}}]},
 *                   {"role": "tool", "content": "done"}],
 *      "tools": [{"type": "function", "function": {"name": "click", ...}}]}
 *
 * or only the list of messages. An assistant message may have "reasoning_content". Images are PNG files
 * with paths relative to the file, also as "image_url" with {"url": "file.png"}. "chat_template_kwargs" is
 * an object with further variables of the template. Anything else is rejected with its location, never
 * ignored. */
#pragma once

#include "text/chat_template.h"

#include <jansson.h>

enum {
    CONVERSATION_BYTES = 16 << 20,
    CONVERSATION_MESSAGES = 4096,
    CONVERSATION_PARTS = 256,  /* per message; also limits its calls, and the tools */
    CONVERSATION_IMAGES = 600, /* in total */
};

struct conversation {
    struct chat_conversation chat; /* points into the members below */
    json_t *root;
    struct chat_message *messages;
    char **texts; /* calls and tools, serialized again */
    int n_texts;
    struct image *images; /* in order; empty until they are read */
    const char **files;   /* their file names */
    int n_images;
};

/* Reads a file and its images. Returns -1 with ERR_USAGE for invalid contents, ERR_ENV if a file cannot be
 * read. The caller calls conversation_free() also after a failure. */
int conversation_read(struct conversation *v, const char *path, struct err *e);

/* Parses a text in memory, without reading the images. */
int conversation_parse(struct conversation *v, const char *text, size_t len, struct err *e);

/* Converts parsed JSON of any size; takes ownership of `root`. */
int conversation_take(struct conversation *v, json_t *root, struct err *e);

void conversation_free(struct conversation *v);
