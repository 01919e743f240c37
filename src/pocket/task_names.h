/* task_names.h - the words of a task: which of them a reply mentions, and which label an element on an image.
 *
 * Texts are compared as whole words; case is ignored.  Pure functions.
 */
#pragma once

#include "pocket/locate.h"

enum { TASK_NAME = 40 }; /* bytes of a name, with its end */

struct seen { /* on the newest screenshot */
    struct patch_map map;
    struct picture_text text;
};

/* Returns the last occurrence of these words in a text, or NULL. */
const char *words_find_last(const char *text, const char *words);

/* Returns their number of occurrences. */
int words_count(const char *text, const char *words);

/* Lists the phrases of a task of up to three words without punctuation between them, mentioned words and
 * instructions: at most max.  Returns their number. */
int task_pieces(const char *task, const char *said, char (*out)[TASK_NAME], int max);

/* Returns whether a task has negations or conditions: "not", "if", "or", ... */
bool task_has_conditions(const char *task);

/* Copies a reply with a newline in place of each tag, so that names and texts remain; the caller frees it. */
char *reply_words(const char *reply);

/* Finds the first name of the task, before its byte `until`, that labels an element of the image and is not
 * mentioned in `said`; false: none. */
bool task_unmentioned(const char *task, int until, const char *said, const struct seen *s,
                      char name[TASK_NAME], struct thing *thing);
