/* pointer.c - pointer motion, buttons, drags and the wheel.
 *
 * The user may use the mouse at any time. Before each press, wheel click and drag motion the pointer must be
 * where this program moved it, and nobody else may hold a button. Otherwise the action fails, and its button
 * is released where it was pressed (held.h).
 *
 * Toolkits require the delays: hover effects need time between arrival and press, two presses must be
 * separate but within the double-click time, and a drag must cross the threshold in small steps and pause at
 * the target so that drop sites respond. Wheel clicks are buttons 4 to 7. */
#include "screen/private.h"

#include "base/number.h"

#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOVER_MS = 30,   /* from arrival to press */
    DOWN_MS = 30,    /* from press to release */
    BETWEEN_MS = 60, /* from release to the next press */
    WHEEL_MS = 15,
    WHEEL_MAX = 100,
    DRAG_MS = 500,
    DRAG_STEPS = 24,
    DRAG_START_MS = 80, /* from the press to the first motion */
    DRAG_STEP_MIN_MS = 10,
    DRAG_DWELL_MS = 150,
    BUTTON_WAIT_MS = 1000, /* time for somebody else to release a button */
    DRAG_NUDGE = 4,        /* three of these exceed the drag threshold of every toolkit (about 8 px) */
};

int screen_pointer(struct screen *s, int *x, int *y)
{
    Window root, child;
    int wx, wy;
    unsigned mask;
    if (s->lost || !XQueryPointer(s->dpy, s->root, &root, &child, x, y, &wx, &wy, &mask) || s->lost)
        return -1;
    return 0;
}

/* ---- input of others --------------------------------------------------------------------------------- */

void pointer_forget_place(struct screen *s)
{
    s->put_x = s->put_y = -1;
}

/* Reads the pointer position. *buttons: buttons that somebody else holds, bit 0 for button 1. Returns -1 with
 * e if the display is lost or the pointer is on another screen. */
static int query(struct screen *s, int *x, int *y, unsigned *buttons, struct err *e)
{
    unsigned char map[HELD_BUTTONS];
    Window root, child;
    int wx, wy;
    unsigned mask = 0;
    *x = *y = -1;
    *buttons = 0;
    bool here = !s->lost && XQueryPointer(s->dpy, s->root, &root, &child, x, y, &wx, &wy, &mask);
    if (screen_alive(s, e))
        return -1;
    *buttons = mask >> 8 & 0x1f;
    int n = *buttons && held_any_button(&s->held) ? XGetPointerMapping(s->dpy, map, sizeof map) : 0;
    for (int i = 0; i < n && i + 1 < HELD_BUTTONS; i++)
        if (s->held.button[i + 1] && map[i] > 0 && map[i] <= 5)
            *buttons &= ~(1u << (map[i] - 1));
    return here ? 0 : err_set(e, ERR_FAILED, "the pointer is on another screen");
}

/* Returns the outcome of a disturbed action, for the message. */
static const char *consequence(const struct screen *s)
{
    return held_any_button(&s->held) ? "the button was released where it was pressed" : "nothing was done";
}

static int refuse_button(const struct screen *s, unsigned buttons, struct err *e)
{
    return err_set(e, ERR_FAILED, "somebody else holds mouse button %d; %s", __builtin_ctz(buttons) + 1,
                   consequence(s));
}

/* Releases a button that an earlier action has left down, as consequence() announces. */
static void release_leftover(struct screen *s)
{
    if (held_any_button(&s->held))
        screen_release_all(s);
}

int pointer_wait_for_buttons(struct screen *s, struct err *e)
{
    int x, y;
    unsigned buttons = 0;
    for (int ms = 0; query(s, &x, &y, &buttons, NULL), buttons; ms += 20) {
        if (ms >= BUTTON_WAIT_MS) {
            refuse_button(s, buttons, e);
            release_leftover(s);
            return -1;
        }
        if (screen_wait(s, 20, e))
            return -1;
    }
    return screen_alive(s, e);
}

/* Returns -1 with e if the pointer is not where this program moved it, or somebody else holds a button. A
 * pointer sent into a gap between monitors is not checked, because the server moves it out. After a failure
 * the next action starts from the actual position. */
static int check_undisturbed(struct screen *s, struct err *e)
{
    int x, y, put_x = s->put_x, put_y = s->put_y;
    unsigned buttons;
    if (query(s, &x, &y, &buttons, e))
        return -1;
    if (buttons)
        return refuse_button(s, buttons, e);
    if (put_x < 0 || (x == put_x && y == put_y) || !screen_visible(s, put_x, put_y))
        return 0;
    pointer_forget_place(s);
    return err_set(e, ERR_FAILED, "somebody else moved the pointer from %d,%d to %d,%d; %s", put_x, put_y, x,
                   y, consequence(s));
}

/* Returns whether a device of the user holds a button. The server counts a button that two devices hold only
 * once, and ignores the release by the first of them. */
static bool held_by_device(struct screen *s)
{
    int n = 0;
    bool found = false;
    XIDeviceInfo *list = s->xinput && !s->lost ? XIQueryDevice(s->dpy, XIAllDevices, &n) : NULL;
    for (int i = 0; i < n && !found; i++)
        for (int k = 0; k < list[i].num_classes && list[i].use == XISlavePointer; k++) {
            const XIButtonClassInfo *b = (const XIButtonClassInfo *)(const void *)list[i].classes[k];
            for (int bit = 1; b->type == XIButtonClass && bit < 8 * b->state.mask_len; bit++)
                found = found || (XIMaskIsSet(b->state.mask, bit) && !strstr(list[i].name, "XTEST"));
        }
    if (list)
        XIFreeDeviceInfo(list);
    return found;
}

/* ---- motion ------------------------------------------------------------------------------------ */

/* Moves the pointer. Coordinates are clamped, because they are 16 bits on the wire and would wrap. */
static int motion(struct screen *s, int x, int y, struct err *e)
{
    if (input_begin(s, true, e))
        return -1;
    s->put_x = int_clamp(x, 0, s->root_rect.w - 1);
    s->put_y = int_clamp(y, 0, s->root_rect.h - 1);
    event_origin_add(&s->held.origin, ORIGIN_MOTION, 0, true);
    XTestFakeMotionEvent(s->dpy, -1, s->put_x, s->put_y, CurrentTime);
    XSync(s->dpy, False);
    return input_end(s, e);
}

static int move(struct screen *s, int x, int y, struct err *e)
{
    int at_x = -1, at_y = -1;
    x = int_clamp(x, 0, s->root_rect.w - 1);
    y = int_clamp(y, 0, s->root_rect.h - 1);
    if (observed_aim(s, x, y, e))
        return -1;
    for (int attempt = 0; attempt < 2; attempt++) {
        /* XTEST ignores the screen number: a pointer on another X screen is first warped to ours */
        if (screen_pointer(s, &at_x, &at_y))
            XWarpPointer(s->dpy, None, s->root, 0, 0, 0, 0, x, y);
        if (motion(s, x, y, e))
            return -1;
        if (screen_pointer(s, &at_x, &at_y))
            return screen_alive(s, e) ? -1 : err_set(e, ERR_FAILED, "the pointer is on another screen");
        if (at_x == x && at_y == y)
            return 0;
    }
    pointer_forget_place(s);
    return err_set(e, ERR_FAILED,
                   "the pointer was sent to %d,%d but is at %d,%d: somebody else moves it, or it is confined",
                   x, y, at_x, at_y);
}

int screen_move(struct screen *s, int x, int y, struct err *e)
{
    if (screen_may_act(s, e) || pointer_wait_for_buttons(s, e))
        return -1;
    screen_pump(s);
    bool holds = held_any_button(&s->held);
    if ((!holds || check_undisturbed(s, e) == 0) && move(s, x, y, e) == 0)
        return 0;
    if (holds) /* a drag across actions */
        screen_release_all(s);
    return -1;
}

/* ---- buttons ----------------------------------------------------------------------------------- */

/* Returns the physical button for a logical one; 0 with e if there is none. The server applies the pointer
 * mapping to XTEST too: with a left-handed mapping button 1 is pressed as 3. */
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
    if (down && (observed_may_press(s, physical >= 4 && physical <= 7, e) || grab_before_press(s, e)))
        return -1;
    if (input_begin(s, down, e))
        return -1;
    if (down && check_undisturbed(s, e)) {
        held_unlock(&s->held);
        release_leftover(s);
        return -1;
    }
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

/* Ends a drag. If somebody else has moved the pointer or holds the button too, they would determine where it
 * ends: then it is moved back to its start. */
static int drop(struct screen *s, int physical, struct err *e)
{
    int rc = check_undisturbed(s, e);
    if (rc == 0 && held_by_device(s))
        rc = err_set(e, ERR_FAILED, "somebody else holds a mouse button; %s", consequence(s));
    if (rc == 0)
        return button_event(s, physical, false, e);
    screen_release_all(s); /* where the drag began: see held.h */
    return -1;
}

int screen_button(struct screen *s, int button, bool down, struct err *e)
{
    if (screen_alive(s, e))
        return -1;
    int physical = physical_button(s, button, e);
    if (!physical)
        return -1;
    int rc;
    if (!down && s->held.button[physical] && !s->held.button_sent[physical])
        rc = drop(s, physical, e);
    else
        rc = (down && keyboard_begin_pointer(s, LockMask, e)) || button_event(s, physical, down, e) ? -1 : 0;
    keyboard_end(s);
    return rc;
}

/* Presses and releases a button; releases it even if the wait in between fails. If somebody else moved the
 * pointer meanwhile, the button is released where it was pressed. */
static int tap_button(struct screen *s, int physical, double down_ms, struct err *e)
{
    if (button_event(s, physical, true, e))
        return -1;
    int rc = screen_wait(s, down_ms, e);
    if (rc || down_ms <= 0 || check_undisturbed(s, e) == 0)
        return button_event(s, physical, false, rc ? NULL : e) || rc ? -1 : 0;
    screen_release_all(s);
    return -1;
}

int screen_click(struct screen *s, int x, int y, int button, int count, struct err *e)
{
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

/* Computes the point `at` pixels along the stroke. */
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

/* Moves the pointer, waits, and fails if somebody else moved it meanwhile. */
static int drag_motion(struct screen *s, int x, int y, double wait_ms, struct err *e)
{
    return motion(s, x, y, e) || screen_wait(s, wait_ms, e) || check_undisturbed(s, e) ? -1 : 0;
}

static int drag_to(struct screen *s, const struct stroke *k, double at, double wait_ms, struct err *e)
{
    int x, y;
    stroke_point(k, at, &x, &y);
    return drag_motion(s, x, y, wait_ms, e);
}

static int drag_moves(struct screen *s, const struct stroke *k, int ms, struct err *e)
{
    if (screen_wait(s, DRAG_START_MS, e) || check_undisturbed(s, e))
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
    /* Two motions of one pixel at the end: drop sites respond to motion over themselves. */
    const int *end = k->xy + 2 * (k->n - 1);
    int nudge = end[0] > 0 ? -1 : 1;
    return drag_motion(s, end[0] + nudge, end[1], DRAG_DWELL_MS / 2.0, e) ||
                   drag_motion(s, end[0], end[1], DRAG_DWELL_MS / 2.0, e)
               ? -1
               : 0;
}

int screen_drag(struct screen *s, const int *xy, int n, int button, int ms, struct err *e)
{
    if (n < 2)
        return err_set(e, ERR_FAILED, "a drag needs a start and an end");
    struct stroke k = {xy, n, 0};
    for (int i = 0; i + 1 < n; i++)
        k.length += segment(xy, i);
    if (screen_move(s, xy[0], xy[1], e) || observed_check_place(s, xy[2 * n - 2], xy[2 * n - 1], e) ||
        screen_wait(s, HOVER_MS, e) || screen_button(s, button, true, e))
        return -1;
    if (drag_moves(s, &k, ms > 0 ? ms : DRAG_MS, e) == 0)
        return screen_button(s, button, false, e);
    screen_release_all(s); /* where the drag began: see held.h */
    return -1;
}

/* ---- wheel ------------------------------------------------------------------------------------ */

static int wheel(struct screen *s, int button, int clicks, struct err *e)
{
    int physical = physical_button(s, button, NULL);
    bool shift = false;
    if (!physical && button >= 6) { /* no horizontal wheel: use Shift and the vertical one */
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
    if (screen_alive(s, e))
        return -1;
    if (dy && wheel(s, dy > 0 ? 5 : 4, abs(dy), e))
        return -1;
    if (dx && wheel(s, dx > 0 ? 7 : 6, abs(dx), e))
        return -1;
    return screen_alive(s, e);
}
