/* check_fixture.c - see check_fixture.h. */
#include "check_fixture.h"
#include "check.h"

#include "base/file.h"
#include "xvfb.h"

#include <X11/Xutil.h>

void check_fixture_open(struct check_fixture *t)
{
    struct err e = ERR_INIT;
    *t = (struct check_fixture){0};
    if (!program_exists("Xvfb"))
        skip();
    t->desk = desk_open(
        &(struct desk_options){.display = "xvfb:400x300,noglx", .wm = "", .seconds = CHECK_FIXTURE_PATIENCE},
        &e);
    if (!t->desk)
        fail_msg("%s", e.text);
    snprintf(t->out, sizeof t->out, "%s/out", desk_home(t->desk));
    t->s = (struct check_context){.test = &t->test,
                                  .desk = t->desk,
                                  .golden_dir = desk_home(t->desk),
                                  .out_dir = t->out,
                                  .ended = true};
    t->dpy = XOpenDisplay(desk_display(t->desk));
    t->s.screen = screen_open(&(struct screen_options){.display = desk_display(t->desk)}, &e);
    assert_non_null(t->dpy);
    if (!t->s.screen)
        fail_msg("%s", e.text);
}

void check_fixture_close(struct check_fixture *t)
{
    attempt_free(&t->a);
    screen_close(t->s.screen);
    if (t->dpy)
        XCloseDisplay(t->dpy);
    desk_close(t->desk);
}

const struct check_result *check_fixture_run(struct check_fixture *t, struct check c)
{
    attempt_free(&t->a);
    if (c.kind == CHECK_REGION)
        c.tolerance = 16;
    t->test.checks[0] = c;
    t->test.n_checks = 1;
    checks_run(&t->s, &t->a);
    assert_int_equal(t->a.n_checks, 1);
    assert_ptr_equal(t->a.checks[0].check, &t->test.checks[0]);
    return &t->a.checks[0];
}

void check_fixture_expect(const struct check_result *r, enum answer a, const char *detail, const char *file,
                          int line)
{
    if (r->answer == a && r->detail && strstr(r->detail, detail) && !strchr(r->detail, '\n'))
        return;
    fail_msg("%s:%d: answer %d: %s", file, line, r->answer, r->detail ? r->detail : "no detail");
}

void check_fixture_file(const struct check_fixture *t, const char *name, const char *text, size_t len)
{
    char *path = xasprintf("%s/%s", desk_home(t->desk), name);
    struct err e = ERR_INIT;
    if (file_write(path, text, len, &e))
        fail_msg("%s", e.text);
    free(path);
}

Window check_fixture_window(Display *dpy, const char *title, const char *class, int x, int y, int w, int h,
                            unsigned long color)
{
    XSetWindowAttributes at = {.override_redirect = True, .background_pixel = color};
    Window win = XCreateWindow(dpy, DefaultRootWindow(dpy), x, y, (unsigned)w, (unsigned)h, 0, CopyFromParent,
                               InputOutput, CopyFromParent, CWOverrideRedirect | CWBackPixel, &at);
    char *name = xstrdup(class);
    XClassHint hint = {name, name};
    XStoreName(dpy, win, title);
    XSetClassHint(dpy, win, &hint);
    XMapRaised(dpy, win);
    XSync(dpy, False);
    free(name);
    return win;
}

int check_fixture_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
    struct err e = ERR_INIT;
    place_make();
    if (desks_begin(&e))
        die(e.kind, "%s", e.text);
    int rc = check_main(argc, argv, tests, n);
    desks_end();
    return rc;
}
