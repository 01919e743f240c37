/* canvas.c - see canvas.h. */
#include "canvas.h"

#include "check.h"

struct err canvas_why;

void canvas_open(struct canvas *t, const char *screen, const char *const *extra)
{
    memset(t, 0, sizeof *t);
    screen_stop_all(0);
    if (xvfb_start(&t->x, screen, extra))
        skip();
    t->other = XOpenDisplay(NULL);
    assert_non_null(t->other);
    t->root = DefaultRootWindow(t->other);
    t->gc = XCreateGC(t->other, t->root, 0, NULL);
    XSetSubwindowMode(t->other, t->gc, IncludeInferiors);
}

void canvas_close(struct canvas *t)
{
    XFreeGC(t->other, t->gc);
    XCloseDisplay(t->other);
    xvfb_stop(&t->x);
}

struct screen *canvas_view(const char *view, bool no_shm, bool cursor)
{
    struct screen_options o = {.view = view, .no_shm = no_shm, .cursor = cursor};
    struct screen *s = screen_open(&o, &canvas_why);
    if (!s)
        fail_msg("%s", canvas_why.text);
    return s;
}
