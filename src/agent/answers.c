/* answers.c - what a small model answers about a picture, held to what its tower reads there.
 *
 * A line that it reads aloud is taken from the tower's letters.  Its "yes" is no when the question has a
 * name, in quotes or with a capital, that is written nowhere; its "no" may be about anything.
 */
#include "agent/task_names.h"
#include "llm/llm.h"

#include "base/err.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME = 64 };

/* The next name of a question and what follows it; NULL: there is none.  Its first word is no name, unless
 * it is in quotes. */
static const char *next_name(const char *question, const char *s, char name[NAME])
{
    for (; *s; s++) {
        bool begins = s == question || s[-1] == ' ';
        size_t n = 0;
        if (begins && *s == '"')
            n = strcspn(++s, "\"");
        else if (begins && s != question && isupper((unsigned char)*s))
            for (n = strcspn(s, " ,.:;!?\""); s[n] == ' ' && isupper((unsigned char)s[n + 1]);)
                n += 1 + strcspn(s + n + 1, " ,.:;!?\"");
        if (n && n < NAME) {
            snprintf(name, NAME, "%.*s", (int)n, s);
            return s + n;
        }
    }
    return NULL;
}

/* Whether a question may be true of what is not there: "Is the Save button gone?" */
static bool is_about_absence(const char *question)
{
    static const char *const words[] = {"gone", "missing", "closed", "hidden", "absent", "away"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (spoken_of(question, words[i]))
            return true;
    return !spoken_of(question, "yes or no") && (spoken_of(question, "no") || task_has_conditions(question));
}

bool asks_for_absent(const struct picture_text *t, const char *question)
{
    char name[NAME];
    if (is_about_absence(question))
        return false;
    for (const char *s = question; (s = next_name(question, s, name));)
        if (text_absent(t, name) > 0)
            return true;
    return false;
}

int llm_hold_answer(struct llm *m, const struct image *im, const char *question, const char *said,
                    char out[LLM_ANSWER], struct err *e)
{
    struct patch_map map;
    struct picture_text text;
    size_t n = strcspn(said, ".\n");
    *out = 0;
    if (llm_read_picture(m, im, &map, &text, e))
        return -1;
    if (map.patches && n == 3 && !strncasecmp(said, "yes", n) && asks_for_absent(&text, question))
        snprintf(out, LLM_ANSWER, "no");
    else if (map.patches && (!text_aloud(&text, said, out, LLM_ANSWER) || !strcmp(out, said)))
        *out = 0;
    text_free(&text);
    patch_map_free(&map);
    return 0;
}
