/* pointer.c - motion, buttons, drags, wheel.
 *
 * The delays are what toolkits need: hover effects between arriving and pressing, presses apart but within
 * the double-click time, a drag that crosses the threshold in small steps and rests at the target so that
 * drop sites answer.  Wheel clicks are buttons 4 to 7.
 */
#include "screen/private.h"

#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <math.h>
#include <stdlib.h>

enum {
    HOVER_MS = 30,   /* from arriving to the press */
    DOWN_MS = 30,    /* from press to release */
    BETWEEN_MS = 60, /* from release to the next press */
    WHEEL_MS = 15,
    WHEEL_MAX = 100,
    DRAG_MS = 500,
    DRAG_STEPS = 24,
    DRAG_START_MS = 80, /* from the press to the first motion */
    DRAG_STEP_MIN_MS = 10,
    DRAG_DWELL_MS = 150,
    DRAG_NUDGE = 4, /* three of these cross every toolkit's threshold of about 8 px */
};

static int clamp(int v, int size)
{
    return v < 0 ? 0 : v >= size ? size - 1 : v;
}

int screen_pointer(struct screen *s, int *x, int *y)
{
    Window root, child;
    int wx, wy;
    unsigned mask;
    if (s->remote)
        return computer_pointer(s, x, y);
    if (s->lost || !XQueryPointer(s->dpy, s->root, &root, &child, x, y, &wx, &wy, &mask) || s->lost)
        return -1;
    return 0;
}

/* Coordinates are clamped: they are 16 bits on the wire and would wrap. */
static int motion(struct screen *s, int x, int y, struct err *e)
{
    if (input_begin(s, true, e))
        return -1;
    event_origin_add(&s->held.origin, ORIGIN_MOTION, 0, true);
    XTestFakeMotionEvent(s->dpy, -1, clamp(x, s->root_rect.w), clamp(y, s->root_rect.h), CurrentTime);
    XSync(s->dpy, False);
    return input_end(s, e);
}

int screen_move(struct screen *s, int x, int y, struct err *e)
{
    if (s->remote)
        return computer_move(s, x, y, e);
    if (screen_may_act(s, e))
        return -1;
    screen_pump(s);
    x = clamp(x, s->root_rect.w);
    y = clamp(y, s->root_rect.h);
    int at_x = -1, at_y = -1;
    for (int attempt = 0; attempt < 2; attempt++) {
        /* XTEST ignores the screen number: a pointer on another X screen is warped to ours first */
        if (screen_pointer(s, &at_x, &at_y))
            XWarpPointer(s->dpy, None, s->root, 0, 0, 0, 0, x, y);
        if (motion(s, x, y, e))
            return -1;
        if (screen_pointer(s, &at_x, &at_y))
            return screen_alive(s, e) ? -1 : err_set(e, ERR_FAILED, "the pointer is on another screen");
        if (at_x == x && at_y == y)
            return 0;
    }
    return err_set(e, ERR_FAILED,
                   "the pointer was sent to %d,%d but is at %d,%d: somebody else moves it, or it is confined",
                   x, y, at_x, at_y);
}

/* The server applies the pointer mapping to XTEST too: with a left-handed mapping button 1 is pressed as 3.
 * */
static int physical_button(struct screen *s, int button, struct err *e)
{
    unsigned char map[256];
    int n = XGetPointerMapping(s->dpy, map, sizeof map);
    for (int i = 0; i < n && i < HELD_BUTTONS - 1; i++)
        if (map[i] == button)
            return i + 1;
    err_set(e, ERR_FAILED, "mouse button %d does not exist or is switched off in the pointer mapping",
            button);
    return 0;
}

static void note_press(struct screen *s)
{
    int x = -1, y = -1;
    if (held_any_button(&s->held))
        return;
    if (screen_pointer(s, &x, &y))
        x = y = -1;
    held_set_press(&s->held, x, y);
}

static int button_event(struct screen *s, int physical, bool down, struct err *e)
{
    if ((down && grab_before_press(s, e)) || input_begin(s, down, e))
        return -1;
    if (down) {
        note_press(s);
        held_set_button(&s->held, physical, true);
    }
    event_origin_add(&s->held.origin, ORIGIN_BUTTON, physical, down);
    XTestFakeButtonEvent(s->dpy, (unsigned)physical, down, CurrentTime);
    XSync(s->dpy, False);
    if (!down && !s->lost)
        held_set_button(&s->held, physical, false);
    return input_end(s, e) || (!down && grab_after_release(s, e)) ? -1 : 0;
}

int screen_button(struct screen *s, int button, bool down, struct err *e)
{
    if (s->remote)
        return computer_button(s, button, down, e);
    if (screen_alive(s, e))
        return -1;
    int physical = physical_button(s, button, e);
    if (!physical)
        return -1;
    int rc = (down && keyboard_begin_pointer(s, LockMask, e)) || button_event(s, physical, down, e) ? -1 : 0;
    keyboard_end(s);
    return rc;
}

/* Press and release; releases even when the wait between fails. */
static int tap_button(struct screen *s, int physical, double down_ms, struct err *e)
{
    if (button_event(s, physical, true, e))
        return -1;
    int rc = screen_wait(s, down_ms, e);
    return button_event(s, physical, false, rc ? NULL : e) || rc ? -1 : 0;
}

int screen_click(struct screen *s, int x, int y, int button, int count, struct err *e)
{
    if (s->remote)
        return computer_click(s, x, y, button, count, e);
    if (x >= 0 && screen_move(s, x, y, e))
        return -1;
    int physical = screen_wait(s, HOVER_MS, e) ? 0 : physical_button(s, button, e);
    int rc = !physical || keyboard_begin_pointer(s, LockMask, e) ? -1 : 0;
    for (int i = 0; i < count && rc == 0; i++)
        rc = (i && screen_wait(s, BETWEEN_MS, e)) || tap_button(s, physical, DOWN_MS, e) ? -1 : 0;
    keyboard_end(s);
    return rc;
}

/* ---- drag ------------------------------------------------------------------------------------- */

struct stroke {
    const int *xy;
    int n;
    double length;
};

static double segment(const int *xy, int i)
{
    return hypot(xy[2 * i + 2] - xy[2 * i], xy[2 * i + 3] - xy[2 * i + 1]);
}

/* The point `at` pixels along the stroke. */
static void stroke_point(const struct stroke *k, double at, int *x, int *y)
{
    int i = 0;
    for (; i < k->n - 2 && at > segment(k->xy, i); i++)
        at -= segment(k->xy, i);
    double len = segment(k->xy, i), t = len > 0 ? at / len : 1;
    t = t > 1 ? 1 : t;
    *x = (int)lround(k->xy[2 * i] + t * (k->xy[2 * i + 2] - k->xy[2 * i]));
    *y = (int)lround(k->xy[2 * i + 1] + t * (k->xy[2 * i + 3] - k->xy[2 * i + 1]));
}

static int drag_to(struct screen *s, const struct stroke *k, double at, double wait_ms, struct err *e)
{
    int x, y;
    stroke_point(k, at, &x, &y);
    return motion(s, x, y, e) || screen_wait(s, wait_ms, e) ? -1 : 0;
}

static int drag_moves(struct screen *s, const struct stroke *k, int ms, struct err *e)
{
    if (screen_wait(s, DRAG_START_MS, e))
        return -1;
    double start = 0;
    for (int i = 1; i <= 3 && i * DRAG_NUDGE < k->length; i++) {
        start = i * DRAG_NUDGE;
        if (drag_to(s, k, start, DRAG_STEP_MIN_MS, e))
            return -1;
    }
    int steps = DRAG_STEPS > 2 * k->n ? DRAG_STEPS : 2 * k->n;
    double step_ms = (double)ms / steps;
    for (int i = 1; i <= steps; i++)
        if (drag_to(s, k, start + (k->length - start) * i / steps,
                    step_ms < DRAG_STEP_MIN_MS ? DRAG_STEP_MIN_MS : step_ms, e))
            return -1;
    /* Two motions of one pixel at the end: drop sites answer motion over themselves. */
    const int *end = k->xy + 2 * (k->n - 1);
    int nudge = end[0] > 0 ? -1 : 1;
    if (motion(s, end[0] + nudge, end[1], e) || screen_wait(s, DRAG_DWELL_MS / 2.0, e) ||
        motion(s, end[0], end[1], e))
        return -1;
    return screen_wait(s, DRAG_DWELL_MS / 2.0, e);
}

int screen_drag(struct screen *s, const int *xy, int n, int button, int ms, struct err *e)
{
    if (s->remote)
        return computer_drag(s, xy, n, button, ms, e);
    if (n < 2)
        return err_set(e, ERR_FAILED, "a drag needs a start and an end");
    struct stroke k = {xy, n, 0};
    for (int i = 0; i + 1 < n; i++)
        k.length += segment(xy, i);
    if (screen_move(s, xy[0], xy[1], e) || screen_wait(s, HOVER_MS, e) || screen_button(s, button, true, e))
        return -1;
    if (drag_moves(s, &k, ms > 0 ? ms : DRAG_MS, e) == 0)
        return screen_button(s, button, false, e);
    screen_release_all(s); /* where it began: see held.h */
    return -1;
}

/* ---- wheel ------------------------------------------------------------------------------------ */

static int wheel(struct screen *s, int button, int clicks, struct err *e)
{
    int physical = physical_button(s, button, NULL);
    bool shift = false;
    if (!physical && button >= 6) { /* no horizontal wheel: Shift + vertical */
        physical = physical_button(s, button - 2, NULL);
        shift = physical != 0;
    }
    if (!physical)
        return err_set(e, ERR_FAILED, "the pointer has no wheel (button %d)", button);
    int rc = keyboard_begin_pointer(s, LockMask, e) || (shift && screen_key(s, XK_Shift_L, true, e)) ? -1 : 0;
    for (int i = 0; i < clicks && i < WHEEL_MAX && rc == 0; i++)
        rc = (i && screen_wait(s, WHEEL_MS, e)) || tap_button(s, physical, 0, e) ? -1 : 0;
    if (shift && screen_key(s, XK_Shift_L, false, rc ? NULL : e))
        rc = -1;
    keyboard_end(s);
    return rc;
}

int screen_scroll(struct screen *s, int dx, int dy, struct err *e)
{
    if (s->remote)
        return computer_scroll(s, dx, dy, e);
    if (screen_alive(s, e))
        return -1;
    if (dy && wheel(s, dy > 0 ? 5 : 4, abs(dy), e))
        return -1;
    if (dx && wheel(s, dx > 0 ? 7 : 6, abs(dx), e))
        return -1;
    return screen_alive(s, e);
}
