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

#include "base/clock.h"
#include "base/number.h"

#include <X11/keysym.h>
#include <math.h>
#include <stdlib.h>

enum {
    HOVER_MS = 30, /* from arrival to press, for a program that does not answer pings */
    DOWN_MS = 30,  /* from press to release, for the same: it may poll the button */
    CONFIRMED_DOWN_MS = 8,
    FRAME_MS = 16, /* from arrival to press, if the program draws where the pointer is */
    NEAR_PX = 48,
    CLICKED_MS = 120, /* time for a click to move the focus, if its end cannot be known */
    BETWEEN_MS = 60,  /* from release to the next press */
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

/* ---- input of others --------------------------------------------------------------------------------- */

void pointer_forget_place(struct screen *s)
{
    s->put_x = s->put_y = -1;
}

/* Queries the pointer. Returns -1 with e if the display is lost or the pointer is on another screen. */
static int query(struct screen *s, struct screen_pointer *out, struct err *e)
{
    *out = (struct screen_pointer){.x = -1, .y = -1};
    bool here = !s->lost && s->ops->pointer(s, out);
    if (screen_alive(s, e))
        return -1;
    return here ? 0 : err_set(e, ERR_FAILED, "the pointer is on another screen");
}

static bool holds_any(const struct screen *s)
{
    return s->ops->holds_button(s, 0);
}

/* Returns the outcome of a disturbed action, for the message. */
static const char *consequence(const struct screen *s)
{
    return holds_any(s) ? "the button was released where it was pressed" : "nothing was done";
}

static int refuse_button(const struct screen *s, unsigned buttons, struct err *e)
{
    return err_set(e, ERR_FAILED, "somebody else holds mouse button %d; %s", __builtin_ctz(buttons) + 1,
                   consequence(s));
}

/* Releases a button that an earlier action has left down, as consequence() announces. */
static void release_leftover(struct screen *s)
{
    if (holds_any(s))
        screen_release_all(s);
}

int pointer_wait_for_buttons(struct screen *s, struct err *e)
{
    struct screen_pointer at;
    for (int ms = 0; query(s, &at, NULL), at.others; ms += 20) {
        if (ms >= BUTTON_WAIT_MS) {
            refuse_button(s, at.others, e);
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
    struct screen_pointer at;
    int put_x = s->put_x, put_y = s->put_y;
    if (query(s, &at, e))
        return -1;
    if (at.others)
        return refuse_button(s, at.others, e);
    if (put_x < 0 || (at.x == put_x && at.y == put_y) || !screen_visible(s, put_x, put_y))
        return 0;
    pointer_forget_place(s);
    return err_set(e, ERR_FAILED, "somebody else moved the pointer from %d,%d to %d,%d; %s", put_x, put_y,
                   at.x, at.y, consequence(s));
}

/* ---- motion ------------------------------------------------------------------------------------ */

/* Moves the pointer. Coordinates are clamped, because they are 16 bits on the wire and would wrap. */
static int motion(struct screen *s, int x, int y, struct err *e)
{
    if (input_begin(s, true, e))
        return -1;
    s->put_x = int_clamp(x, 0, s->root_rect.w - 1);
    s->put_y = int_clamp(y, 0, s->root_rect.h - 1);
    s->ops->motion(s, s->put_x, s->put_y);
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
    bool holds = holds_any(s);
    if ((!holds || check_undisturbed(s, e) == 0) && move(s, x, y, e) == 0)
        return 0;
    if (holds) /* a drag across actions */
        screen_release_all(s);
    return -1;
}

/* ---- buttons ----------------------------------------------------------------------------------- */

/* Returns the number of a logical button for events; 0 with e if there is none. */
static int find_button(struct screen *s, int button, struct err *e)
{
    int number = s->ops->find_button(s, button);
    if (!number)
        err_set(e, ERR_FAILED, "mouse button %d does not exist or is switched off in the pointer mapping",
                button);
    return number;
}

static int button_event(struct screen *s, int number, bool down, struct err *e)
{
    if (down && (observed_may_press(s, number >= 4 && number <= 7, e) || s->ops->press_begin(s, e)))
        return -1;
    if (input_begin(s, down, e))
        return -1;
    if (down && check_undisturbed(s, e)) {
        s->ops->lock(s, false);
        release_leftover(s);
        return -1;
    }
    s->ops->button(s, number, down);
    return input_end(s, e) || (!down && s->ops->press_end(s, e)) ? -1 : 0;
}

/* Ends a drag. If somebody else has moved the pointer or holds the button too, they would determine where it
 * ends: then it is moved back to its start. */
static int drop(struct screen *s, int number, struct err *e)
{
    int rc = check_undisturbed(s, e);
    if (rc == 0 && s->ops->user_holds_button(s))
        rc = err_set(e, ERR_FAILED, "somebody else holds a mouse button; %s", consequence(s));
    if (rc == 0)
        return button_event(s, number, false, e);
    screen_release_all(s); /* where the drag began: see held.h */
    return -1;
}

int screen_button(struct screen *s, int button, bool down, struct err *e)
{
    if (screen_alive(s, e))
        return -1;
    int number = find_button(s, button, e);
    if (!number)
        return -1;
    int rc;
    if (!down && s->ops->holds_button(s, number))
        rc = drop(s, number, e);
    else
        rc = (down && s->ops->prepare(s, e)) || button_event(s, number, down, e) ? -1 : 0;
    s->ops->restore(s);
    return rc;
}

/* Presses and releases a button; releases it even if the wait in between fails. If somebody else moved the
 * pointer meanwhile, the button is released where it was pressed. */
static int tap_button(struct screen *s, int number, double down_ms, struct err *e)
{
    if (button_event(s, number, true, e))
        return -1;
    int rc = screen_wait(s, down_ms, e);
    if (rc || down_ms <= 0 || check_undisturbed(s, e) == 0)
        return button_event(s, number, false, rc ? NULL : e) || rc ? -1 : 0;
    screen_release_all(s);
    return -1;
}

/* Returns whether something near the pointer was redrawn. */
static bool redrawn_near_pointer(struct screen *s)
{
    struct screen_rect area[16], near = {s->put_x - NEAR_PX, s->put_y - NEAR_PX, 2 * NEAR_PX, 2 * NEAR_PX};
    bool any = false;
    screen_pump(s);
    int n = s->lost ? 0 : s->ops->redrawn(s, area, 16);
    for (int i = 0; i < n; i++)
        any = any || screen_rect_intersect(area[i], near).w;
    return any;
}

/* Waits until the program under the pointer has seen it arrive. *answered: it has said so. */
static int hover(struct screen *s, bool *answered, struct err *e)
{
    int64_t start = clock_ns();
    if (screen_alive(s, e) || s->ops->hover(s, HOVER_MS, answered, e))
        return -1;
    double ms = !*answered ? HOVER_MS - clock_ms_since(start) : redrawn_near_pointer(s) ? FRAME_MS : 0;
    return screen_wait(s, ms, e);
}

int screen_click(struct screen *s, int x, int y, int button, int count, struct err *e)
{
    bool answered = false;
    if ((x >= 0 && screen_move(s, x, y, e)) || hover(s, &answered, e))
        return -1;
    int number = find_button(s, button, e), down_ms = answered ? CONFIRMED_DOWN_MS : DOWN_MS;
    int rc = !number || s->ops->prepare(s, e) ? -1 : 0;
    for (int i = 0; i < count && rc == 0; i++)
        rc = (i && screen_wait(s, BETWEEN_MS, e)) || tap_button(s, number, down_ms, e) ? -1 : 0;
    s->ops->restore(s);
    return rc;
}

int screen_click_done(struct screen *s, struct err *e)
{
    int64_t start = clock_ns();
    bool processed;
    if (screen_alive(s, e) || s->ops->clicked(s, CLICKED_MS, &processed, e))
        return -1;
    return processed ? screen_alive(s, e) : screen_wait(s, CLICKED_MS - clock_ms_since(start), e);
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
    int number = find_button(s, button, NULL);
    bool shift = false;
    if (!number && button >= 6) { /* no horizontal wheel: use Shift and the vertical one */
        number = find_button(s, button - 2, NULL);
        shift = number != 0;
    }
    if (!number)
        return err_set(e, ERR_FAILED, "the pointer has no wheel (button %d)", button);
    int rc = s->ops->prepare(s, e) || (shift && screen_key(s, XK_Shift_L, true, e)) ? -1 : 0;
    for (int i = 0; i < clicks && i < WHEEL_MAX && rc == 0; i++)
        rc = (i && screen_wait(s, WHEEL_MS, e)) || tap_button(s, number, 0, e) ? -1 : 0;
    if (shift && screen_key(s, XK_Shift_L, false, rc ? NULL : e))
        rc = -1;
    s->ops->restore(s);
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
