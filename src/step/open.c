/* open.c - opens the stepper with the front end that --step names. */
#include "step/window.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct step_front *open_window(const struct step_where *w, struct err *e)
{
    return step_window(
        &(struct window_options){.display = w->display, .captured = w->captured, .view = w->view}, e);
}

static struct step_front *open_best(const struct step_where *w, struct err *e)
{
    struct err unopened = ERR_INIT;
    if (w->display)
        return open_window(w, e);
    struct step_front *f = getenv("SSH_CONNECTION") ? NULL : open_window(w, &unopened);
    if (!f && !(f = step_terminal(STDIN_FILENO, w->out, e)) && unopened.kind)
        err_set(e, e->kind, "%s; %s", unopened.text, e->text);
    return f;
}

static struct step_front *open_front(const char *how, const struct step_where *w, struct err *e)
{
    if (!strncmp(how, "script:", 7) && how[7])
        return step_script(how + 7, w->quiet ? NULL : w->out, e);
    if (!strcmp(how, "auto"))
        return open_best(w, e);
    if (!strcmp(how, "terminal"))
        return step_terminal(STDIN_FILENO, w->out, e);
    if (!strcmp(how, "window"))
        return open_window(w, e);
    err_set(e, ERR_USAGE, "--step is one of auto, terminal, window and script:FILE, not '%s'", how);
    return NULL;
}

struct stepper *stepper_open(const char *how, const char *const *breaks, const struct step_where *w,
                             struct err *e)
{
    struct step_front *f = open_front(how, w, e);
    return f ? stepper_new(f, breaks, e) : NULL;
}
