/* verdict.c - questions about one image that the model answers with yes or no.
 *
 * Text to look for is searched with the character head first: it is on the image, or clearly not.  Otherwise
 * the model is asked.  Its answer counts only above a probability threshold, and "yes" becomes no if the
 * question names something that is not on the image.
 */
#include "pocket/private.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Minimum probability of the model's answer; how often it is then right: assets/pocket/README.md. */
static const double min_probability = 0.9;

/* Decides whether a text is on the image, if the character head can tell. */
static int read_shown(struct pocket *x, const struct assist_question *q, enum assist_verdict *out,
                      char **reason, struct err *e)
{
    const struct seen *seen;
    if (!q->shows || !q->image)
        return 0;
    if (pocket_look(x, q->image, &seen, e))
        return -1;
    if (seen->map.patches && text_is_written(&seen->text, q->shows))
        *out = ASSIST_YES;
    else if (seen->map.patches && text_absent(&seen->text, q->shows) > 0)
        *out = ASSIST_NO;
    if (*out != ASSIST_UNKNOWN)
        *reason = xasprintf("\"%.100s\" %s the recognized text", q->shows,
                            *out == ASSIST_YES ? "is in" : "is not in");
    return 0;
}

/* Turns a yes, or no verdict, into no if the question names something that is not on the image. */
static int check_names(struct pocket *x, const struct assist_question *q, const char *text,
                       enum assist_verdict *out, char **reason, struct err *e)
{
    const struct seen *seen;
    if (*out == ASSIST_NO)
        return 0;
    if (pocket_look(x, q->image, &seen, e))
        return -1;
    if (seen->map.patches && asks_for_absent(&seen->text, text)) {
        free(*reason);
        *reason = xasprintf("a name in the question is not in the recognized text");
        *out = ASSIST_NO;
    }
    return 0;
}

static enum assist_verdict read_yes_no(const struct generated *g, char **reason)
{
    double logprob;
    bool yes = g->text.data && strncmp(g->text.data, "yes", 3) == 0;
    double p = generated_logprob(g, &logprob) ? exp(logprob) : 0;
    bool enough = p >= min_probability;
    *reason = xasprintf("answer %s, probability %.2f%s", yes ? "yes" : "no", p,
                        enough ? "" : ", too low for a verdict");
    return !enough ? ASSIST_UNKNOWN : yes ? ASSIST_YES : ASSIST_NO;
}

static int ask(struct pocket *x, const struct assist_question *q, const char *text, enum assist_verdict *out,
               char **reason, struct err *e)
{
    struct generated g = {0};
    int rc = q->ask(q->arg, text, &g, reason, e);
    if (rc == 0)
        *out = read_yes_no(&g, reason);
    generated_free(&g);
    return rc < 0 ? -1 : check_names(x, q, text, out, reason, e);
}

int pocket_judge(struct assist *assist, const struct assist_question *q, enum assist_verdict *out,
                 char **reason, struct err *e)
{
    struct pocket *x = (struct pocket *)assist;
    *out = ASSIST_UNKNOWN;
    if (read_shown(x, q, out, reason, e))
        return -1;
    if (*out != ASSIST_UNKNOWN)
        return 0;
    if (!q->image)
        return err_set(e, ERR_USAGE, "this model judges screenshots, and there is none");
    autofree char *text = q->shows ? xasprintf("Is \"%s\" on the screen?", q->shows) : xstrdup(q->text);
    return ask(x, q, text, out, reason, e);
}
