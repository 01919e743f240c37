/* t_active_view.c - tests the view "active" on a private X server: windows of another client get the focus,
 * move, change size and close.
 */
#include "canvas.h"
#include "check.h"
#include "driven.h"

#include "screen/screen.h"

#include <X11/Xatom.h>
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
    struct canvas t;
    canvas_open(&t, "800x600x24", NULL);
    Window a = make_window(&t, 100, 50, 300, 200, 0xff0000, false),
           b = make_window(&t, 500, 350, 290, 240, 0x00ff00, false);
    focus(&t, a);
    struct screen *s = canvas_view("active", false, false);
    expect(s, true, 100, 50, 320, 224); /* rounded up to multiples of 32 */
    focus(&t, b);
    expect(s, false, 100, 50, 320, 224); /* actions on the last screenshot still use the first window */
    XMoveWindow(t.other, a, 130, 90);
    XSync(t.other, False);
    expect(s, false, 130, 90, 320, 224); /* the view moves with its window */
    expect(s, true, 480, 344, 320, 256); /* the next screenshot: moved left and up to fit on the screen */
    Window menu = make_window(&t, 300, 330, 260, 60, 0x0000ff, true);
    expect(s, true, 288, 312, 512, 288); /* a menu extends past the window's edge */
    XDestroyWindow(t.other, menu);
    XResizeWindow(t.other, b, 250, 240);
    XSync(t.other, False);
    struct screen_rect r;
    assert_int_equal(screen_view_now(s, &r, &canvas_why), 0);
    assert_int_not_equal(r.w, 512); /* the size changed: the caller must capture again */
    XDestroyWindow(t.other, b);
    XSync(t.other, False);
    assert_int_equal(screen_view_now(s, &r, &canvas_why), 0); /* a window that closed is not an error */
    XDestroyWindow(t.other, a);
    XSync(t.other, False);
    expect(s, true, 0, 0, 800, 600); /* no window: the whole screen */
    Window small = make_window(&t, 10, 10, 40, 30, 0xffffff, false);
    focus(&t, small);
    expect(s, true, 10, 10, 160, 160);
    screen_close(s);
    canvas_close(&t);
}

/* The colour of a pixel as 0xRRGGBB. */
static unsigned colour_at(const struct image *im, int x, int y)
{
    const uint8_t *p = im->rgb + 3 * ((size_t)y * (size_t)im->w + (size_t)x);
    return (unsigned)p[0] << 16 | (unsigned)p[1] << 8 | p[2];
}

enum { PAINTED = 0x808080 };

/* A blue desktop, the active red window, a green window beside it and a menu over its corner. */
static void t_padding(void **state)
{
    struct canvas t;
    struct image im = {0};
    canvas_open(&t, "800x600x24", NULL);
    XSetWindowBackground(t.other, t.root, 0x0000ff);
    XClearWindow(t.other, t.root);
    Window red = make_window(&t, 100, 50, 300, 200, 0xff0000, false);
    make_window(&t, 404, 50, 100, 200, 0x00ff00, false);
    focus(&t, red);
    struct screen *s = canvas_view("active", false, false);
    assert_int_equal(screen_capture(s, &im, &canvas_why), 0); /* 320x224 at 100,50 */
    assert_int_equal(colour_at(&im, 0, 0), 0xff0000);
    assert_int_equal(colour_at(&im, 299, 199), 0xff0000);
    assert_int_equal(colour_at(&im, 310, 100), PAINTED); /* the green window is painted over */
    assert_int_equal(colour_at(&im, 100, 210), PAINTED); /* so is the desktop */
    assert_true(screen_shows(s, 299, 199) && !screen_shows(s, 300, 100) && !screen_shows(s, 100, 200));
    Window menu = make_window(&t, 380, 230, 100, 60, 0xffff00, true);
    assert_int_equal(screen_capture(s, &im, &canvas_why), 0); /* 384x256 at 100,50 */
    assert_int_equal(colour_at(&im, 300, 200), 0xffff00);
    /* inside the rectangle around window and menu, but in neither */
    assert_int_equal(colour_at(&im, 360, 100), PAINTED);
    assert_true(screen_shows(s, 370, 230) && !screen_shows(s, 370, 100));
    XDestroyWindow(t.other, menu);
    const long extents[4] = {10, 20, 30, 40}; /* shadow margins in which a GTK program draws its window */
    XChangeProperty(t.other, red, XInternAtom(t.other, "_GTK_FRAME_EXTENTS", False), XA_CARDINAL, 32,
                    PropModeReplace, (const unsigned char *)extents, 4);
    XSync(t.other, False);
    expect(s, true, 110, 80, 288, 160); /* 270x130 */
    assert_true(screen_shows(s, 269, 129) && !screen_shows(s, 270, 129));
    screen_close(s);
    s = canvas_view("all", false, false);
    assert_int_equal(screen_capture(s, &im, &canvas_why), 0);
    assert_true(screen_shows(s, 799, 599)); /* with another view nothing is painted over */
    image_free(&im);
    screen_close(s);
    canvas_close(&t);
}

/* The window ends above the last rows of the screenshot, whose height is a multiple of 32. */
static void t_outside(void **state)
{
    struct stage t;
    struct record r;
    struct outcome o = {0};
    stage_open_sized(&t, "1024x768x24");
    screen_close(t.s);
    t.s = NULL;
    char *replies = xvfb_put(&t.x, "replies", CLICK(500, 998) CLICK(500, 500) ANSWER("Done."));
    char *runs = xvfb_place(&t.x, "runs");
    program_run(&t.x, &o,
                WORDS("run", "Press Save", "--fake", replies, "--runs", runs, "--settle-quiet", "30",
                      "--view", "active"));
    assert_int_equal(o.code, 0);
    json_t *clicks = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(clicks), 1);
    assert_non_null(strstr(o.err, "is outside the window"));
    driven_read(&t, &r);
    assert_non_null(strstr(field_text(driven_last(&r, "error"), "message"), "is outside the window"));
    record_free(&r);
    outcome_free(&o);
    free(replies);
    free(runs);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("outside the active window and its popups the screenshot has one colour", t_padding),
    CLAIM("a point outside the active window is refused with a message to the model", t_outside),
    CLAIM("the view follows the active window and its menus, and changes when another is activated",
          t_active),
};

CHECK_MAIN()
