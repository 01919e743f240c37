/* t_active_view.c - the view "active" on a private X server: windows of another client take the keyboard,
 * move, change their size and vanish.
 */
#include "canvas.h"
#include "check.h"

#include "screen/screen.h"

#include <X11/Xutil.h>

static Window make_window(struct canvas *t, int x, int y, int w, int h, unsigned colour, bool popup)
{
    XSetWindowAttributes a = {.background_pixel = colour, .override_redirect = popup};
    Window id = XCreateWindow(t->other, t->root, x, y, (unsigned)w, (unsigned)h, 0, CopyFromParent,
                              InputOutput, CopyFromParent, CWBackPixel | CWOverrideRedirect, &a);
    XStoreName(t->other, id, popup ? "menu" : "window");
    XClassHint hint = {(char *)"t", (char *)"T"};
    XSetClassHint(t->other, id, &hint);
    XMapRaised(t->other, id);
    XSync(t->other, False);
    return id;
}

static void focus(struct canvas *t, Window w)
{
    XSetInputFocus(t->other, w, RevertToPointerRoot, CurrentTime);
    XSync(t->other, False);
}

static void expect(struct screen *s, bool anew, int x, int y, int w, int h)
{
    struct image im = {0};
    struct screen_rect r;
    if (anew) {
        assert_int_equal(screen_capture(s, &im, &canvas_why), 0);
        assert_int_equal(im.w, w);
        assert_int_equal(im.h, h);
        image_free(&im);
    }
    assert_int_equal(screen_view_now(s, &r, &canvas_why), 0);
    if (r.x != x || r.y != y || r.w != w || r.h != h)
        fail_msg("%dx%d+%d+%d, not %dx%d+%d+%d", r.w, r.h, r.x, r.y, w, h, x, y);
}

static void t_active(void **state)
{
    (void)state;
    struct canvas t;
    canvas_open(&t, "800x600x24", NULL);
    Window a = make_window(&t, 100, 50, 300, 200, 0xff0000, false),
           b = make_window(&t, 500, 350, 290, 240, 0x00ff00, false);
    focus(&t, a);
    struct screen *s = canvas_view("active", false, false);
    expect(s, true, 100, 50, 320, 224); /* whole multiples of 32 */
    focus(&t, b);
    expect(s, false, 100, 50, 320, 224); /* what is decided on still belongs to the first */
    XMoveWindow(t.other, a, 130, 90);
    XSync(t.other, False);
    expect(s, false, 130, 90, 320, 224); /* and goes with it */
    expect(s, true, 480, 344, 320, 256); /* the next picture: moved left and up to have room on the screen */
    Window menu = make_window(&t, 300, 330, 260, 60, 0x0000ff, true);
    expect(s, true, 288, 312, 512, 288); /* a menu over its edge */
    XDestroyWindow(t.other, menu);
    XResizeWindow(t.other, b, 250, 240);
    XSync(t.other, False);
    struct screen_rect r;
    assert_int_equal(screen_view_now(s, &r, &canvas_why), 0);
    assert_int_not_equal(r.w, 512); /* another size: the caller looks again */
    XDestroyWindow(t.other, b);
    XSync(t.other, False);
    assert_int_equal(screen_view_now(s, &r, &canvas_why), 0); /* closed meanwhile: no error */
    XDestroyWindow(t.other, a);
    XSync(t.other, False);
    expect(s, true, 0, 0, 800, 600); /* no window: the whole screen */
    Window small = make_window(&t, 10, 10, 40, 30, 0xffffff, false);
    focus(&t, small);
    expect(s, true, 10, 10, 160, 160);
    screen_close(s);
    canvas_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the active window is the view, with its menus; it is followed, and picked anew", t_active),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
