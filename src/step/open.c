/* open.c - a stepper with the front end that the command line names. */
#include "step/step.h"

#include <string.h>
#include <unistd.h>

static struct step_front *front(const char *how, const struct step_where *w, struct err *e)
{
    if (!strncmp(how, "script:", 7) && how[7])
        return step_script(how + 7, w->quiet ? NULL : w->out, e);
    if (!strcmp(how, "auto") || !strcmp(how, "terminal"))
        return step_terminal(STDIN_FILENO, w->out, e);
    if (!strcmp(how, "window"))
        err_set(e, ERR_USAGE, "this build shows no window; use --step=terminal");
    else
        err_set(e, ERR_USAGE, "--step is one of auto, terminal, window and script:FILE, not '%s'", how);
    return NULL;
}

struct stepper *stepper_open(const char *how, const char *const *breaks, const struct step_where *w,
                             struct err *e)
{
    struct step_front *f = front(how, w, e);
    return f ? stepper_new(f, breaks, e) : NULL;
}
