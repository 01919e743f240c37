/* answers.c - snaps answers about an image to the recognized text.
 *
 * A transcribed line is replaced by the text of the character head.  "Yes" becomes "no" if the question
 * contains a name, in quotes or with a capital, that is not on the image.  "No" is kept. */
#include "pocket/private.h"

#include "base/err.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME = 64, ANSWER_MAX = 512 /* bytes */ };

/* Copies the next name of a question and returns the rest; NULL: there is none.  The first word of a
 * question is a name only in quotes. */
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

/* Returns whether a question may be about an absent element: "Is the Save button gone?" */
static bool is_about_absence(const char *question)
{
    static const char *const words[] = {"gone", "missing", "closed", "hidden", "absent", "away"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words_find_last(question, words[i]))
            return true;
    return !words_find_last(question, "yes or no") &&
           (words_find_last(question, "no") || task_has_conditions(question));
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

int pocket_answer(struct assist *x, const struct image *im, const char *question, const char *said,
                  char **out, struct err *e)
{
    const struct seen *seen;
    char line[ANSWER_MAX] = "";
    size_t n = strcspn(said, ".\n");
    *out = NULL;
    if (strlen(said) >= ANSWER_MAX)
        return 0;
    if (pocket_look((struct pocket *)x, im, &seen, e))
        return -1;
    if (!seen->map.patches || pocket_without & WITHOUT_ANSWERS)
        return 0;
    if (n == 3 && !strncasecmp(said, "yes", n) && asks_for_absent(&seen->text, question))
        *out = xstrdup("no");
    else if (text_aloud(&seen->text, said, line, ANSWER_MAX) && *line && strcmp(line, said) != 0)
        *out = xstrdup(line);
    return 0;
}
