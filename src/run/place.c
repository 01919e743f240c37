/* place.c - see place.h. */
#include "run/place.h"

#include "screen/x11/displays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_S = 60 }; /* seconds for the program on a private desktop to open its first window */

static int open_desk(struct run_settings *s, struct on_desk **desk, struct err *e)
{
    struct on_desk_options o = {.start = s->start,
                                .home = s->home,
                                .no_elements = !s->elements,
                                .window_s = WINDOW_S,
                                .viewed = s->desk_view,
                                .password_file = s->password_file};
    if (on_desk_parse(s->on, &o.size, e) || !(*desk = on_desk_open(&o, e)))
        return -1;
    if (on_desk_address(*desk) && !s->quiet)
        fprintf(stderr, "holorun: vncviewer %s\n", on_desk_address(*desk));
    s->display = desk_display(on_desk_desk(*desk));
    return 0;
}

int place_settle(struct run_settings *s, struct on_desk **desk, struct err *e)
{
    *desk = NULL;
    if (!s->on && (s->start || s->home || s->desk_view || s->password_file))
        return err_set(e, ERR_USAGE, "--start, --home, --desk-view and --password-file need --on desk");
    if (s->on) {
        s->ui_display = s->ui_display ? s->ui_display : getenv("DISPLAY");
        return open_desk(s, desk, e);
    }
    displays_authorize(s->display);
    return 0;
}

struct screen *place_screen(const struct run_settings *s, struct screen_options o, struct err *e)
{
    o.display = s->display;
    o.view = s->view;
    o.cursor = s->cursor;
    return screen_open(&o, e);
}

const char *place_name(const struct run_settings *s)
{
    return s->display ? s->display : "";
}

bool place_is(const struct run_settings *s, const char *name)
{
    return displays_same(name, s->display);
}
