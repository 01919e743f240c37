/* ground.c - reads the answer to the localizer's question: the position of the named element, or that it
 * is absent.
 *
 *   <at><12><.3><20><.0>      pocket-wide, also as a click: only step<click>Save<at><12><.3><20><.0>
 *   <missing>Save             pocket-wide: absent
 *
 * Other dialects use the notations of place.h.
 */
#include "actions/parse.h"

#include <string.h>

enum { MAX_REPLY = 1000, IMAGE_SIDE = 1 << 14 };

/* Parses a click, its end "<at><x><y>", or the word that nothing is there. */
static enum action_fault pocket_place(struct parse *p, const char *text, size_t len, struct place *out)
{
    char step[MAX_REPLY + 16];
    bool place_alone = len >= 4 && !memcmp(text, "<at>", 4);
    if (len > MAX_REPLY)
        return parse_fault(p, FAULT_PARSE, "a place takes less than %d bytes", MAX_REPLY);
    int size = snprintf(step, sizeof step, "%s%.*s", place_alone ? "<click>-" : "", (int)len, text);
    enum action_fault f = parse_pocket(p, step, (size_t)size);
    const struct action *a = &p->out->actions[0];
    if (!f && a->kind != ACT_CLICK && a->kind != ACT_INFEASIBLE)
        f = parse_fault(p, FAULT_SCHEMA, "a place was expected, or a click");
    if (!f)
        *out = (struct place){.absent = a->kind == ACT_INFEASIBLE, .n = {.x = a->nx, .y = a->ny}};
    step_free(p->out);
    return f;
}

int dialect_read_place(const struct dialect *d, const char *text, size_t len, struct place *out,
                       struct err *e)
{
    /* A large image, so that no number is out of range. */
    struct step step = {0};
    struct parse p = {d, IMAGE_SIDE, IMAGE_SIDE, d->coords, &step, e};
    if (d->syntax != SYNTAX_POCKET)
        return place_read(text, len, out, e);
    *out = (struct place){0};
    parse_trim(&text, &len);
    enum action_fault f = pocket_place(&p, text, len, out);
    step_free(&step);
    return f ? -1 : 0;
}
