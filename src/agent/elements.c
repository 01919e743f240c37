/* elements.c - the elements of the active window as text for the model, and refs in its replies.
 *
 * The text is part of the lead of a turn, so that the record, a replay and a continued run have it, too.
 * Turns whose screenshot has been evicted lose it: only recent texts can be true. */
#include "agent/private.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN   "Elements of the active window; a ref (e12) may stand for a place:\n"
#define END     "(end of elements)\n"
#define OMITTED "[elements omitted]\n"

enum { TEXT_MAX = 64 << 10, NAME_BYTES = 128 };

void agent_tell_elements(struct agent *a)
{
    const struct agent_elements *el = a->o->elements;
    struct buf text;
    if (!el)
        return;
    buf_init(&text, TEXT_MAX);
    buf_puts(&text, "");
    el->read(el->arg, &text);
    autofree char *inert =
        prompt_escape(*text.data ? text.data : "none: the window does not describe its elements\n");
    agent_set_text(&a->outcome.lead, xasprintf("%s" BEGIN "%s" END, a->outcome.lead, inert));
    buf_free(&text);
}

char *agent_without_elements(const char *lead)
{
    const char *begin = strstr(lead, BEGIN), *end = begin ? strstr(begin, "\n" END) : NULL;
    if (!end)
        return xstrdup(lead);
    return xasprintf("%.*s" OMITTED "%s", (int)(begin - lead), lead, end + 1 + strlen(END));
}

/* Replaces the ref of one action by the middle of its element, in pixels of the screenshot. */
static int resolve(struct agent *a, struct action *action, struct err *e)
{
    const struct agent_elements *el = a->o->elements;
    const struct view_transform *view = &a->step.place;
    char name[NAME_BYTES] = "";
    int x, y;
    if (el->find(el->arg, action_ref(action->element), &x, &y, name, sizeof name, e))
        return -1;
    action->x = (int32_t)((x - view->ox) / view->sx);
    action->y = (int32_t)((y - view->oy) / view->sy);
    if (action->x < 0 || action->y < 0 || action->x >= a->step.frame.w || action->y >= a->step.frame.h)
        return err_set(e, ERR_FAILED, "%s is outside the screenshot; nothing was done", action->element);
    name[utf8_valid_prefix(name, strlen(name))] = 0; /* it may be cut */
    snprintf(action->element, sizeof action->element, "%s", name);
    return 0;
}

unsigned agent_resolve_refs(struct agent *a)
{
    struct err why = ERR_INIT;
    unsigned resolved = 0;
    for (int i = 0; a->o->elements && a->reply.fault == FAULT_NONE && i < a->reply.step.nactions; i++) {
        struct action *action = &a->reply.step.actions[i];
        if (!action_ref(action->element))
            continue;
        resolved |= 1U << i;
        if (resolve(a, action, &why) == 0)
            continue;
        a->reply.fault = FAULT_RANGE;
        err_set(&a->reply.why, ERR_FAILED, "%s", why.text);
    }
    return resolved;
}
