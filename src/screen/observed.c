/* observed.c - checks before each event that the screen is still as observed; see observed.h.
 *
 * Windows are top-level windows with their frames, topmost first. A window that lets pointer events through
 * (a compositor's overlay) is above the window that the server finds at a point; the comparison ignores it.
 * If pixels differ in an unchanged window, they are monitored for up to WATCH_MS (observed_busy.c); pixels
 * that keep changing are ignored. */
#include "screen/observed_impl.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOCUS_MS = 400,  /* time for a window manager to return the focus */
    WINDOW_MS = 200, /* time for a closing window to disappear */
    POLL_MS = 20,
    OWN_X = 72, /* pixels around a press of our own: changes are its effect */
    OWN_Y = 20
};

/* ---- windows ------------------------------------------------------------------------------------- */

static const struct screen_top *find_top(const struct screen_top *list, int n, unsigned long w)
{
    for (int i = 0; i < n; i++)
        if (list[i].id == w)
            return &list[i];
    return NULL;
}

/* Returns the top-level window that the server finds at a point; 0: none. */
static unsigned long top_at(struct screen *s, int x, int y)
{
    unsigned long top = 0;
    return s->ops->chain(s, x, y, &top, 1) ? top : 0;
}

/* Returns the topmost observed window at (qx, qy), ignoring windows that are now above `hit`: those let the
 * pointer through. */
static unsigned long top_then(const struct observed *o, const struct observed_now *now, unsigned long hit,
                              int qx, int qy)
{
    for (int i = 0; i < o->n; i++) {
        bool through = false;
        if (!screen_rect_contains(o->tops[i].rect, qx, qy))
            continue;
        for (int k = 0; k < now->n && now->tops[k].id != hit; k++)
            through = through || (now->tops[k].id == o->tops[i].id &&
                                  screen_rect_contains(now->tops[k].rect, qx + now->dx, qy + now->dy));
        if (!through)
            return o->tops[i].id;
    }
    return 0;
}

static void set_change(struct observed_change *c, enum observed_reason reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->text, sizeof c->text, fmt, args);
    va_end(args);
    c->text[utf8_valid_prefix(c->text, strlen(c->text))] = 0;
    c->reason = reason;
}

/* Writes a window's name for messages, for example "another window ('Chat')". */
static void describe(struct screen *s, const struct screen_window *w, char *out, size_t size)
{
    if (!w->id)
        snprintf(out, size, "the desktop");
    else if (!*w->title && !*w->class)
        snprintf(out, size, "another window");
    else
        snprintf(out, size, "another window ('%.120s')", *w->title ? w->title : w->class);
}

/* Compares the window at a position with the one that was observed there. */
static void compare_windows(struct screen *s, struct observed_now *now, int x, int y,
                            struct observed_change *c)
{
    struct observed *o = s->observed;
    struct screen_window w;
    char name[200];
    *c = (struct observed_change){OBSERVED_SAME, ""};
    now->n = s->ops->tops(s, now->tops);
    now->hit = top_at(s, x, y);
    const struct screen_top *is = find_top(now->tops, now->n, now->hit),
                            *was = find_top(o->tops, o->n, now->hit);
    if (top_then(o, now, now->hit, x - now->dx, y - now->dy) != now->hit || (now->hit && !was)) {
        if (now->hit && was && is &&
            (is->rect.x != was->rect.x + now->dx || is->rect.y != was->rect.y + now->dy)) {
            set_change(c, OBSERVED_MOVED, "a window has moved to the target meanwhile");
            return;
        }
        screen_window_at(s, x, y, &w);
        describe(s, &w, name, sizeof name);
        set_change(c, OBSERVED_WINDOW, "%s is at the target now", name);
    } else if (was && is && (is->rect.x != was->rect.x + now->dx || is->rect.y != was->rect.y + now->dy)) {
        set_change(c, OBSERVED_MOVED, "the window under the target has moved meanwhile");
    }
}

struct observed *observed_active(const struct screen *s)
{
    return s->observed && s->observed->frame.rgb ? s->observed : NULL;
}

/* ---- targets ---------------------------------------------------------------------------------------- */

/* Returns whether an earlier press of our own near (x, y) may have changed the pixels there. */
static bool is_own(const struct observed *o, int x, int y)
{
    bool own = false;
    for (int i = 0; i < o->n_pressed && i < OBSERVED_PRESSED; i++)
        own = own || (abs(o->pressed[i].x - x) <= OWN_X && abs(o->pressed[i].y - y) <= OWN_Y);
    return own;
}

/* Fills *c and *top for a position that is to be pressed. Returns -1 with e if stopped or the display is
 * lost. */
static int check_place(struct screen *s, int x, int y, struct observed_change *c, unsigned long *top,
                       struct err *e)
{
    struct observed *o = s->observed;
    struct observed_now *now = &o->now;
    *top = 0;
    now->dx = s->view.x - o->view.x;
    now->dy = s->view.y - o->view.y;
    for (int64_t start = clock_ns();;) {
        compare_windows(s, now, x, y, c);
        if (screen_alive(s, e))
            return -1;
        if (c->reason != OBSERVED_WINDOW || clock_ms_since(start) > WINDOW_MS)
            break;
        if (screen_wait(s, POLL_MS, e))
            return -1;
    }
    *top = now->hit;
    if (c->reason || is_own(o, x, y))
        return 0;
    bool changed;
    if (observed_pixels_changed(s, now, x, y, &changed, e))
        return -1;
    if (changed)
        set_change(c, OBSERVED_PIXELS, "the window shows something else at the target now");
    return 0;
}

static int refuse(struct screen *s, const struct observed_change *c, struct err *e)
{
    struct observed *o = s->observed;
    if (c->reason == OBSERVED_PIXELS)
        observed_note_stop(o);
    o->change = *c;
    return err_set(e, ERR_FAILED, "%s", c->text);
}

int observed_aim(struct screen *s, int x, int y, struct err *e)
{
    struct observed *o = observed_active(s);
    if (!o || s->ops->holds_button(s, 0))
        return 0;
    o->aim = (struct observed_aim){.x = x, .y = y};
    if (check_place(s, x, y, &o->aim.change, &o->aim.top, e))
        return -1;
    o->aim.valid = true;
    return 0;
}

int observed_check_place(struct screen *s, int x, int y, struct err *e)
{
    struct observed_change c;
    unsigned long top;
    if (!observed_active(s))
        return 0;
    if (check_place(s, x, y, &c, &top, e))
        return -1;
    return c.reason ? refuse(s, &c, e) : 0;
}

/* Checks that the window under the pointer is still the one aimed at, and that it looks the same. */
static int check_before_press(struct screen *s, int x, int y, unsigned long top, bool wheel,
                              struct observed_change *c, struct err *e)
{
    struct observed *o = s->observed;
    struct screen_window w;
    char name[200];
    bool changed = false;
    if (top != o->aim.top) {
        screen_window_at(s, x, y, &w);
        describe(s, &w, name, sizeof name);
        set_change(c, OBSERVED_WINDOW, "%s has come to the target just before the press", name);
    } else if (!wheel && !is_own(o, x, y)) {
        if (observed_under_changed(s, &o->now, x, y, &changed, e))
            return -1;
        if (changed)
            set_change(c, OBSERVED_PIXELS, "the target changed just before the press");
    }
    return 0;
}

int observed_may_press(struct screen *s, bool wheel, struct err *e)
{
    struct observed *o = observed_active(s);
    struct screen_pointer at;
    if (!o)
        return 0;
    if (s->lost || !s->ops->pointer(s, &at))
        return screen_alive(s, e); /* the pointer is on another screen */
    if (s->ops->holds_button(s, 0))
        return 0;
    if ((!o->aim.valid || o->aim.x != at.x || o->aim.y != at.y) && observed_aim(s, at.x, at.y, e))
        return -1;
    struct observed_change c = o->aim.change;
    if (wheel && c.reason == OBSERVED_PIXELS)
        c.reason = OBSERVED_SAME;
    if (!c.reason && check_before_press(s, at.x, at.y, at.top, wheel, &c, e))
        return -1;
    if (c.reason)
        return refuse(s, &c, e);
    o->presses++;
    if (!wheel)
        o->pressed[o->n_pressed++ % OBSERVED_PRESSED] = (struct observed_press){at.x, at.y, at.top};
    return 0;
}

/* ---- keys ------------------------------------------------------------------------------------------ */

static bool may_have_keyboard(const struct screen *s, unsigned long top)
{
    const struct observed *o = s->observed;
    bool may =
        top == o->focus_top || (o->aim.valid && !o->aim.change.reason && top == o->aim.top && !o->focus);
    for (int i = 0; i < o->n_pressed && i < OBSERVED_PRESSED; i++)
        may = may || o->pressed[i].top == top;
    return may;
}

/* Waits up to FOCUS_MS until a window that may have the keyboard has it. */
static int wait_for_focus(struct screen *s, unsigned long *focus, bool *may, struct err *e)
{
    unsigned opened;
    for (int64_t start = clock_ns();;) {
        *focus = screen_focus(s, &opened);
        *may = !s->lost && may_have_keyboard(s, s->ops->focus_top(s));
        if (screen_alive(s, e))
            return -1;
        if (*may || clock_ms_since(start) > FOCUS_MS)
            return 0;
        if (screen_wait(s, POLL_MS, e))
            return -1;
    }
}

/* Returns whether the focused window shows another tab, page or document: its title has changed and most of
 * its pixels differ. */
static bool is_other_content(struct screen *s)
{
    struct observed *o = s->observed;
    struct screen_window w;
    if (!o->client || o->presses || s->lost || s->ops->window(s, o->client, &w))
        return false;
    return strcmp(w.title, o->title) != 0 && observed_window_changed(s, o->client_rect);
}

int observed_may_type(struct screen *s, struct err *e)
{
    struct observed *o = observed_active(s);
    struct observed_change c = {OBSERVED_SAME, ""};
    unsigned long focus = 0;
    unsigned opened;
    bool may;
    if (!o || s->ops->count_keys(s) > o->held) /* the remaining keys of a chord */
        return 0;
    if (o->typed_into) {
        focus = screen_focus(s, &opened);
        if (focus == o->typed_into) {
            o->presses++;
            return 0;
        }
    }
    if (wait_for_focus(s, &focus, &may, e))
        return -1;
    if (!may) {
        struct screen_window w;
        char name[200];
        screen_focused_window(s, &w);
        describe(s, &w, name, sizeof name);
        if (w.id)
            set_change(&c, OBSERVED_FOCUS, "%s has the keyboard now", name);
        else
            set_change(&c, OBSERVED_FOCUS, "no window has the keyboard any more");
    } else if (is_other_content(s)) {
        set_change(&c, OBSERVED_CONTENT, "the window with the keyboard shows something else now");
    }
    if (c.reason)
        return refuse(s, &c, e);
    o->typed_into = focus;
    o->presses++;
    return 0;
}

/* ---- observing -------------------------------------------------------------------------------------- */

static void take_focus(struct screen *s, struct observed *o)
{
    struct screen_window w;
    unsigned opened;
    o->focus = screen_focus(s, &opened);
    o->focus_top = s->lost ? 0 : s->ops->focus_top(s);
    screen_focused_window(s, &w);
    o->client = w.id;
    o->client_rect = w.rect;
    snprintf(o->title, sizeof o->title, "%s", w.title);
}

void observed_take(struct screen *s, const struct image *frame)
{
    struct observed *o = s->observed ? s->observed : xcalloc(1, sizeof *o);
    s->observed = o;
    o->view = s->view;
    o->taken = clock_ns();
    o->aim.valid = false;
    o->typed_into = 0;
    o->n_pressed = o->presses = 0;
    o->change = (struct observed_change){OBSERVED_SAME, ""};
    o->held = s->ops->count_keys(s);
    if (!observed_keep_frame(s, o, frame)) {
        observed_drop(s); /* out of memory, or the display is lost */
        return;
    }
    o->n = s->ops->tops(s, o->tops);
    take_focus(s, o);
}

void observed_renew(struct screen *s, const struct image *frame)
{
    if (observed_active(s))
        observed_take(s, frame);
}

void observed_drop(struct screen *s)
{
    observed_free(s->observed);
    s->observed = NULL;
}

void observed_free(struct observed *o)
{
    if (!o)
        return;
    image_free(&o->frame);
    free(o->cells);
    free(o);
}

struct observed *observed_detach(struct screen *s)
{
    struct observed *o = s->observed;
    s->observed = NULL;
    return o;
}

void observed_attach(struct screen *s, struct observed *o)
{
    struct observed *was = s->observed;
    if (o && was && o->columns == was->columns &&
        o->rows == was->rows) { /* keep the cells that are known to change */
        struct observed_cell *cells = o->cells;
        o->cells = was->cells;
        was->cells = cells;
    }
    s->observed = o;
    if (o)
        o->held = s->ops->count_keys(s);
    observed_free(was);
}

const struct observed_change *observed_changed(const struct screen *s)
{
    return s->observed && s->observed->change.reason ? &s->observed->change : NULL;
}

int observed_presses(const struct screen *s)
{
    return s->observed ? s->observed->presses : 0;
}

double observed_age_ms(const struct screen *s)
{
    return s->observed ? clock_ms_since(s->observed->taken) : 0;
}

const char *observed_reason_name(enum observed_reason r)
{
    static const char *const names[] = {"same", "window", "moved", "pixels", "focus", "content"};
    return names[r];
}
