/* judge.c - one reply against one target.
 *
 * The place is where the model's numbers are, not the pixel that would be clicked: rounding is not the
 * model's.  Whoever names no place where there is something is wrong, but kept to the format.
 */
#include "eval/results.h"

#include <string.h>

/* "none", in any case and with a full stop: how a model says that there is nothing. */
static bool says_none(const char *text)
{
    static const char *const words[] = {"none", "null", "nothing", "not found", NULL};
    text += strspn(text, " \n\t\"");
    for (const char *const *w = words; *w; w++) {
        size_t n = strlen(*w);
        if (!strncasecmp(text, *w, n) && !text[n + strspn(text + n, " \n\t.\"")])
            return true;
    }
    return false;
}

void eval_judge(const struct target *t, const struct dialect *d, const char *reply, int w, int h,
                struct eval_answer *a)
{
    struct dialect_numbers n;
    double x, y;
    snprintf(a->raw, sizeof a->raw, "%s", reply);
    if (says_none(reply)) {
        a->correct = t->kind == TARGET_NONE;
        return;
    }
    a->wrong_format = dialect_parse_numbers(d, reply, strlen(reply), &n, NULL) ||
                      dialect_exact_point(d->coords, &n, w, h, &x, &y, NULL);
    if (a->wrong_format)
        return;
    a->placed = true;
    a->x = t->w > 0 ? x * t->w / w : x;
    a->y = t->h > 0 ? y * t->h / h : y;
    a->distance = target_distance(t, a->x, a->y);
    a->correct = target_holds(t, a->x, a->y);
}
