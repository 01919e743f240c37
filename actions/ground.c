/* ground.c - the localizer's answer: where the named thing is.
 *
 *   pocket      <at><12><33>
 */
#include "actions/parse.h"

#include <string.h>

/* "<at><x><y>" is the end of a click in the pocket dialect: read it as one. */
static enum action_fault pocket_point(struct parse *p, const char *text, size_t len)
{
    static const char before[] = "<click>-";
    char step[128];
    if (len > sizeof step - sizeof before)
        return parse_fault(p, FAULT_PARSE, "expected '<at><x><y>'");
    memcpy(step, before, sizeof before - 1);
    memcpy(step + sizeof before - 1, text, len);
    return parse_pocket(p, step, len + sizeof before - 1);
}

int dialect_parse_point(const struct dialect *d, const char *text, size_t len, int w, int h, double *x,
                        double *y, struct err *e)
{
    struct step step = {0};
    struct parse p = {d, w, h, &step, e};
    enum action_fault f = pocket_point(&p, text, len);
    if (!f) {
        *x = step.actions[0].x;
        *y = step.actions[0].y;
    }
    step_free(&step);
    return f ? -1 : 0;
}
