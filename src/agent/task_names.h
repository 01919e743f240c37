/* task_names.h - the words of a task: which of them have been spoken of, and which name a thing on a picture.
 *
 * Texts are compared as whole words, upper and lower case alike.  Pure functions.
 */
#ifndef HOLORUN_AGENT_TASK_NAMES_H
#define HOLORUN_AGENT_TASK_NAMES_H

#include "locate/locate.h"

enum { TASK_NAME = 40 }; /* bytes of a name, with its end */

struct seen { /* on the newest screenshot */
    struct patch_map map;
    struct picture_text text;
};

/* The last place at which these words stand in a text; NULL: nowhere. */
const char *spoken_of(const char *text, const char *words);

/* At how many they stand. */
int times_spoken_of(const char *text, const char *words);

/* Whether any of these words stands in a text. */
bool any_spoken_of(const char *text, const char *words);

/* The last word of a task; false: it has none of at least two letters. */
bool task_last_word(const char *task, char name[TASK_NAME]);

/* The pieces of a task of up to three words, with no mark between them, none of which is spoken of or says
 * what to do: at most max.  Returns how many. */
int task_pieces(const char *task, const char *said, char (*out)[TASK_NAME], int max);

/* Returns whether a task asks for an answer: it has a question mark outside quotes, or begins with a word
 * such as "which" or "read". */
bool task_asks(const char *task);

/* Returns whether an answer is empty, or a word such as "null"; whether it is a word such as "Done.". */
bool answer_is_blank(const char *answer);
bool answer_is_bare_claim(const char *answer);

/* Puts the word that stands before a text in the task, or behind it, together with the text: if both begin
 * with a capital, no mark stands between them, the word begins no clause, and `said` does not speak of it.
 * Returns how many there are. */
int task_longer_names(const char *task, const char *text, const char *said, char out[2][TASK_NAME]);

/* Whether a task is more than a list of what to do: "not", "if", "or", ... */
bool task_has_conditions(const char *task);

/* A reply with a new line in place of each mark, so that only names and texts are left; the caller frees
 * it. */
char *reply_words(const char *reply);

/* The first name of the task, before byte `until` of it, that names a thing of the picture and is not
 * spoken of in `said`; false: there is none. */
bool task_left_out(const char *task, int until, const char *said, const struct seen *s, char name[TASK_NAME],
                   struct thing *thing);

#endif
