/* on_desk.c - see on_desk.h. */
#include "run/on_desk.h"

#include "base/file.h"
#include "base/secret.h"
#include "desk/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct on_desk {
    struct desk *desk;
    struct view *view;
};

int on_desk_parse(const char *on, const char **size, struct err *e)
{
    *size = ON_DESK_SIZE;
    if (!strcmp(on, "desk"))
        return 0;
    if (strncmp(on, "desk:", 5) != 0)
        return err_set(e, ERR_USAGE, "--on '%s': expected 'desk' or, with its size, 'desk:1280x800'", on);
    int w = 0, h = 0, end = 0;
    *size = on + 5;
    if (sscanf(*size, "%5dx%5d%n", &w, &h, &end) != 2 || !end || (*size)[end])
        return err_set(e, ERR_USAGE, "--on '%s': '%s' is not a size such as 1280x800", on, *size);
    return 0;
}

static int show(struct on_desk *d, const struct on_desk_options *o, struct err *e)
{
    const struct view_options v = {
        .display = desk_display(d->desk), .where = o->viewed, .password_file = o->password_file};
    if (!o->viewed && o->password_file)
        return err_set(e, ERR_USAGE,
                       "--password-file needs a desktop with viewers: add --view or --desk-view");
    if (o->password_file)
        secrets_no_core(); /* after the desktop's processes have started: they keep their own limits */
    return o->viewed && !(d->view = view_start(&v, e)) ? -1 : 0;
}

/* Returns the absolute path of the directory for HOME, creating it if missing; the caller frees it.  NULL
 * with e. */
static char *home_folder(const char *path, struct err *e)
{
    char *full = *path && dir_make(path, e) == 0 ? realpath(path, NULL) : NULL;
    if (!full && !e->kind)
        err_set(e, ERR_USAGE, "--home '%s': %s", path, *path ? strerror(errno) : "expected a folder");
    return full;
}

/* Opens the desktop, its viewers, then its program, so that a user can see the program start.  Returns -1
 * with e. */
static int open_all(struct on_desk *d, const struct on_desk_options *o, struct err *e)
{
    autofree char *display = xasprintf("xvfb:%s", o->size ? o->size : ON_DESK_SIZE);
    autofree char *home = o->home ? home_folder(o->home, e) : NULL;
    const struct desk_options options = {
        .display = display, .home_kept = home, .no_elements = o->no_elements};
    int rc = o->home && !home ? -1 : desks_begin(e);
    if (rc == 0)
        rc = (d->desk = desk_open(&options, e)) && show(d, o, e) == 0 ? 0 : -1;
    if (rc == 0 && o->start)
        rc = desk_start(d->desk, o->start, e);
    if (rc == 0 && o->start && o->window_s > 0)
        rc = desk_wait_window(d->desk, NULL, o->window_s, NULL, e);
    return rc;
}

struct on_desk *on_desk_open(const struct on_desk_options *o, struct err *e)
{
    struct on_desk *d = xcalloc(1, sizeof *d);
    if (open_all(d, o, e) == 0)
        return d;
    on_desk_close(d);
    return NULL;
}

struct desk *on_desk_desk(const struct on_desk *d)
{
    return d->desk;
}

const char *on_desk_address(const struct on_desk *d)
{
    return d->view ? view_address(d->view) : NULL;
}

void on_desk_close(struct on_desk *d)
{
    if (!d)
        return;
    view_stop(d->view);
    desk_close(d->desk);
    desks_end();
    free(d);
}
