/* action.c - life and names of actions and steps. */
#include "actions/action.h"

#include <stdlib.h>

const char *action_fault_name(enum action_fault f)
{
    static const char *const names[] = {
        [FAULT_NONE] = "OK",
        [FAULT_PARSE] = "E_PARSE",
        [FAULT_NO_ACTION] = "E_NO_ACTION",
        [FAULT_SCHEMA] = "E_SCHEMA",
        [FAULT_UNSUPPORTED] = "E_UNSUPPORTED",
        [FAULT_RANGE] = "E_RANGE",
        [FAULT_KEY] = "E_KEY",
        [FAULT_TEXT] = "E_TEXT",
        [FAULT_DENIED] = "E_DENIED",
        [FAULT_ZONE] = "E_ZONE",
        [FAULT_REFUSED] = "E_CONFIRM_REFUSED",
        [FAULT_GRAB] = "E_GRAB",
        [FAULT_FOCUS] = "E_FOCUS",
        [FAULT_X11] = "E_X11",
        [FAULT_BUDGET] = "E_BUDGET",
        [FAULT_STOPPED] = "E_STOPPED",
    };
    return f >= FAULT_NONE && f <= FAULT_STOPPED ? names[f] : "E_UNKNOWN";
}

void action_free(struct action *a)
{
    free(a->path);
    free(a->text);
    *a = (struct action){0};
}

void step_free(struct step *s)
{
    for (int i = 0; i < s->nactions; i++)
        action_free(&s->actions[i]);
    free(s->note);
    free(s->thought);
    *s = (struct step){0};
}
