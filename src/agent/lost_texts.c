/* lost_texts.c - texts that were written over, and fields that were left empty.
 *
 * A small model that does not find the name it expects ("Departure" where the page says "Origin") takes
 * another field's, and later writes over what it wrote there.  So before a button is pressed, or the task
 * ends, what the task says and stands nowhere any more goes into a field that nothing was written into:
 * the likeliest of such fields, and the likeliest of such texts.
 */
#include "agent/coverage.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS = 32, TEXTS = 8 };

/* Whether a reply ends a page: it presses a button, says that it is done, or says the same again. */
static bool ends_page(const struct review *v)
{
    const struct action *last = reviewed_action(v->a);
    struct thing is;
    if (last->kind == ACT_TYPE)
        return is_repeated(v);
    return last->kind != ACT_CLICK ||
           (thing_of_name(&v->seen.map, &v->seen.text, last->element, false, LOCATE_CLICK, &is) && is.button);
}

/* Whether a text of the task was written over and stands nowhere. */
static bool is_lost(const struct review *v, int i)
{
    const char *text = v->writes.all[i].text;
    return is_written_over(&v->writes, i) && spoken_of(v->a->run.task, text) &&
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

int see_to_lost_texts(const struct review *v, struct err *e)
{
    char labels[LABELS][LOCATE_NAME], texts[TEXTS][TASK_NAME];
    double least = -INFINITY;
    int n_texts = lost_texts(v, texts), rc = 0;
    if (!n_texts || !ends_page(v))
        return 0;
    int n = labels_read(&v->seen.map, &v->seen.text, LOCATE_TYPE, labels, LABELS);
    for (int i = 0; i < n && rc == 0; i++) {
        char *begins = is_filled(&v->writes, labels[i])
                           ? NULL
                           : dialect_step_begin(v->a->o->dialect, ACT_TYPE, labels[i]);
        rc = begins ? try_instead(v->a, begins, &least, e) : 0;
        free(begins);
    }
    return rc || least == -INFINITY ? rc : type_one_of(v, texts, n_texts, e);
}
