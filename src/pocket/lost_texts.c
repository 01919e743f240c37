/* lost_texts.c - restores texts that were overwritten into fields that were left empty.
 *
 * When a small model cannot find the expected label ("Departure" where the page says "Origin"), it types
 * into another field and later overwrites that text.  So before a button is pressed or the task ends, a
 * text of the task that no field holds any more goes into a field without a text: the most probable field,
 * and the most probable of such texts.
 */
#include "pocket/coverage.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS = 32, TEXTS = 8 };

/* Returns whether the reply ends a page: it presses a button, reports the end, or repeats an earlier
 * reply. */
static bool ends_page(const struct review *v)
{
    const struct action *last = last_action(v);
    struct thing is;
    if (last->kind == ACT_TYPE)
        return is_repeated(v);
    return last->kind != ACT_CLICK || (named_element(v, last->element, &is) && is.button);
}

/* Returns whether a text of the task was overwritten and no field holds it. */
static bool is_lost(const struct review *v, int i)
{
    const char *text = v->writes.all[i].text;
    return is_written_over(&v->writes, i) && words_find_last(v->s->task, text) &&
           !times_standing(&v->writes, text);
}

static int lost_texts(const struct review *v, char out[TEXTS][TASK_NAME])
{
    int n = 0;
    for (int i = 0; i < v->writes.n && n < TEXTS; i++)
        if (is_lost(v, i))
            memcpy(out[n++], v->writes.all[i].text, TASK_NAME);
    return n;
}

int fix_overwritten(const struct review *v, struct err *e)
{
    char labels[LABELS][LOCATE_NAME], texts[TEXTS][TASK_NAME];
    double min_logprob = -INFINITY;
    int n_texts = lost_texts(v, texts), rc = 0;
    if (!n_texts || !ends_page(v))
        return 0;
    int n = labels_read(&v->seen->map, &v->seen->text, LOCATE_TYPE, labels, LABELS);
    for (int i = 0; i < n && rc == 0; i++) {
        char *begins =
            is_filled(&v->writes, labels[i]) ? NULL : dialect_step_begin(v->s->dialect, ACT_TYPE, labels[i]);
        rc = begins ? v->s->resample(v->s, "overwritten text", begins, &min_logprob, e) : 0;
        free(begins);
    }
    return rc || min_logprob == -INFINITY ? rc : type_one_of(v, texts, n_texts, e);
}
