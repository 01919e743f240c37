/* exec.c - performs one action on the screen: the column `execute` of the table of actions (actions/kinds.h).
 *
 * For all kinds of action, image pixels are converted to root pixels here (struct view_transform).  Actions
 * without their own X event (go to an address, go back) are short key sequences.  An action releases all keys
 * and buttons that it has pressed, also on failure; only MDOWN and KEYDOWN leave one pressed for later steps.
 *
 * ZOOM and RESTART are not supported, and no built-in dialect offers them. */
#include "screen/exec.h"

#include "base/clock.h"

#include <X11/keysym.h>
#include <math.h>
#include <string.h>

enum {
    REPEAT_MS = 30,  /* between repeats of a chord, unless the program confirms that it has read them */
    ADDRESS_MS = 150 /* from ctrl+l to typing */
};

struct execution {
    struct screen *s;
    const struct action *a;
    const struct view_transform *p;
    struct err *e;
    const char *unsure; /* exec_result */
};

static const char UNREAD[] = "the text was typed, but the field could not be read back";

/* ---- places ----------------------------------------------------------------------------------- */

static bool has_point(const struct action *a)
{
    return a->x != ACTION_ABSENT && a->y != ACTION_ABSENT;
}

static int to_root(double v, double origin, double scale)
{
    double r = floor(origin + v * scale + 0.5);
    return r < -30000 ? -30000 : r > 30000 ? 30000 : (int)r;
}

void action_root_point(const struct view_transform *p, int32_t x, int32_t y, int *root_x, int *root_y)
{
    *root_x = to_root(x, p->ox, p->sx);
    *root_y = to_root(y, p->oy, p->sy);
}

/* Rejects points between monitors of different size, because these parts of the root window are not
 * visible. */
static enum action_fault check_visible(const struct execution *r, int32_t x, int32_t y)
{
    int rx, ry;
    action_root_point(r->p, x, y, &rx, &ry);
    struct screen_rect v = screen_view(r->s);
    bool inside = rx >= v.x && ry >= v.y && rx < v.x + v.w && ry < v.y + v.h;
    if (!inside || screen_visible(r->s, rx, ry))
        return FAULT_NONE; /* outside the view: the move is clamped */
    err_set(r->e, ERR_FAILED, "%d,%d lies in the gap between two monitors", x, y);
    return FAULT_RANGE;
}

static int move_to(const struct execution *r, int32_t x, int32_t y)
{
    int rx, ry;
    action_root_point(r->p, x, y, &rx, &ry);
    return screen_move(r->s, rx, ry, r->e);
}

static int move_to_target(const struct execution *r)
{
    return has_point(r->a) ? move_to(r, r->a->x, r->a->y) : 0;
}

/* ---- kinds of action ----------------------------------------------------------------------------- */

static int button_of(const struct action *a)
{
    return a->button ? a->button : 1;
}

static int run_nothing(struct execution *r)
{
    (void)r;
    return 0;
}

static int run_move(struct execution *r)
{
    return move_to_target(r);
}

static int run_button_down(struct execution *r)
{
    return move_to_target(r) ? -1 : screen_button(r->s, button_of(r->a), true, r->e);
}

static int run_button_up(struct execution *r)
{
    return move_to_target(r) ? -1 : screen_button(r->s, button_of(r->a), false, r->e);
}

static int click(const struct execution *r)
{
    if (move_to_target(r))
        return -1;
    return screen_click(r->s, -1, -1, button_of(r->a), r->a->count ? r->a->count : 1, r->e);
}

static int drag(const struct execution *r)
{
    const struct action *a = r->a;
    int xy[2 * ACTION_MAX_PATH], n = 0;
    if (a->path && a->npath >= 2) {
        for (; n < a->npath && n < ACTION_MAX_PATH; n++)
            action_root_point(r->p, a->path[n].x, a->path[n].y, &xy[2 * n], &xy[2 * n + 1]);
    } else {
        if (a->x2 == ACTION_ABSENT || a->y2 == ACTION_ABSENT)
            return err_set(r->e, ERR_FAILED, "a drag without an end");
        if (has_point(a))
            action_root_point(r->p, a->x, a->y, &xy[0], &xy[1]);
        else if (screen_pointer(r->s, &xy[0], &xy[1])) /* from where the pointer is */
            return err_set(r->e, ERR_FAILED, "the pointer is not on this screen");
        action_root_point(r->p, a->x2, a->y2, &xy[2], &xy[3]);
        n = 2;
    }
    return screen_drag(r->s, xy, n, button_of(a), (int)(a->ms < 10000 ? a->ms : 10000), r->e);
}

static int scroll(const struct execution *r)
{
    return move_to_target(r) ? -1 : screen_scroll(r->s, r->a->dx, r->a->dy, r->e);
}

static int chord(const struct execution *r, const uint32_t *keys, int n)
{
    return screen_chord(r->s, keys, n, r->e);
}

static int run_key(struct execution *r)
{
    int count = r->a->count ? r->a->count : 1;
    for (int i = 0; i < count; i++)
        if ((i && screen_keys_read(r->s, REPEAT_MS, r->e)) || chord(r, r->a->keys, r->a->nkeys))
            return -1;
    return 0;
}

static int each_key(const struct execution *r, bool down)
{
    for (int i = 0; i < r->a->nkeys; i++)
        if (screen_key(r->s, r->a->keys[i], down, r->e))
            return -1;
    return 0;
}

static int run_keys_down(struct execution *r)
{
    return each_key(r, true);
}

static int run_keys_up(struct execution *r)
{
    return each_key(r, false);
}

static int press_all(const struct execution *r, const uint32_t *keys, int n, int *pressed)
{
    for (*pressed = 0; *pressed < n; ++*pressed)
        if (screen_key(r->s, keys[*pressed], true, r->e))
            return -1;
    return 0;
}

static int release_all(const struct execution *r, const uint32_t *keys, int pressed, int rc)
{
    while (pressed-- > 0)
        if (screen_key(r->s, keys[pressed], false, rc ? NULL : r->e))
            rc = -1;
    return rc;
}

static int run_holdtap(struct execution *r)
{
    const uint32_t *keys = r->a->keys;
    int held = r->a->nhold < r->a->nkeys ? r->a->nhold : r->a->nkeys, pressed;
    int rc = press_all(r, keys, held, &pressed);
    for (int i = held; i < r->a->nkeys && rc == 0; i++)
        rc = chord(r, &keys[i], 1);
    return release_all(r, keys, pressed, rc);
}

/* Replaces the text of a field.  Enter is pressed only if the field was read back. */
static int overwrite(struct execution *r)
{
    const struct action *a = r->a;
    const char *text = a->text ? a->text : "";
    bool confirmed;
    if (screen_overwrite(r->s, text, strlen(text), a->secret, &confirmed, r->e))
        return -1;
    if (!confirmed)
        r->unsure = UNREAD;
    if (!confirmed && a->press_enter)
        return err_set(r->e, ERR_FAILED, "unsure: %s, so Enter was not pressed; look at it", UNREAD);
    return 0;
}

static int type_text(struct execution *r)
{
    static const uint32_t enter = XK_Return, end = XK_End;
    const struct action *a = r->a;
    if (a->overwrite && overwrite(r))
        return -1;
    if (!a->overwrite && a->at_end && chord(r, &end, 1))
        return -1;
    if (!a->overwrite && a->text &&
        (a->secret ? screen_type_secret : screen_type)(r->s, a->text, strlen(a->text), r->e))
        return -1;
    return a->press_enter ? chord(r, &enter, 1) : 0;
}

static int run_type(struct execution *r)
{
    if (has_point(r->a) &&
        (move_to_target(r) || screen_click(r->s, -1, -1, 1, 1, r->e) || screen_click_done(r->s, r->e)))
        return -1;
    return type_text(r);
}

static int run_wait(struct execution *r)
{
    return screen_wait(r->s, r->a->ms, r->e);
}

static int run_shortcut(struct execution *r)
{
    uint32_t keys[2];
    int n = action_shortcut(r->a->kind, keys);
    return chord(r, keys, n);
}

static int run_goto(struct execution *r)
{
    static const uint32_t enter = XK_Return;
    struct action_address address;
    if (!r->a->text)
        return err_set(r->e, ERR_FAILED, "no address to go to");
    if (action_address(r->a->text, &address, r->e))
        return -1;
    if (run_shortcut(r) || screen_wait(r->s, ADDRESS_MS, r->e) ||
        screen_type(r->s, address.typed, strlen(address.typed), r->e))
        return -1;
    return chord(r, &enter, 1);
}

/* Holds modifiers during a pointer action: ctrl+click, shift+drag. */
static int run_held(const struct execution *r, int (*verb)(const struct execution *))
{
    int pressed, n = r->a->nhold < ACTION_MAX_HOLD ? r->a->nhold : ACTION_MAX_HOLD;
    int rc = press_all(r, r->a->hold, n, &pressed);
    if (rc == 0)
        rc = verb(r);
    return release_all(r, r->a->hold, pressed, rc);
}

static int run_click(struct execution *r)
{
    return run_held(r, click);
}

static int run_drag(struct execution *r)
{
    return run_held(r, drag);
}

static int run_scroll(struct execution *r)
{
    return run_held(r, scroll);
}

/* ---- dispatch --------------------------------------------------------------------------------- */

#define ACTION(kind, execute, ...) [kind] = execute,
static int (*const executors[ACT_COUNT])(struct execution *) = {
#include "actions/kinds.h"
};

static enum action_fault check_targets(const struct execution *r)
{
    const struct action *a = r->a;
    enum action_fault f = has_point(a) ? check_visible(r, a->x, a->y) : FAULT_NONE;
    bool drags = action_is(a->kind, ACTION_DRAGS);
    if (!f && drags && a->x2 != ACTION_ABSENT && a->y2 != ACTION_ABSENT)
        f = check_visible(r, a->x2, a->y2);
    for (int i = 0; !f && drags && a->path && i < a->npath; i++)
        f = check_visible(r, a->path[i].x, a->path[i].y);
    return f;
}

static enum action_fault fault_of(const struct err *e, enum action_kind kind)
{
    if (e->kind == ERR_STOPPED || e->kind == ERR_TIME)
        return FAULT_STOPPED;
    if (e->kind == ERR_USAGE)
        return action_is(kind, ACTION_CHARACTERS) && !action_is(kind, ACTION_NAMED_KEYS) ? FAULT_TEXT
                                                                                         : FAULT_KEY;
    return FAULT_X11;
}

enum action_fault action_execute(struct screen *s, const struct action *a, const struct view_transform *p,
                                 struct exec_result *result, struct err *e)
{
    struct err own = ERR_INIT;
    struct execution r = {s, a, p, e ? e : &own, NULL};
    int64_t start = clock_ns(), events = screen_events_sent(s);
    enum action_fault fault = FAULT_NONE;

    screen_set_acting(s, true);
    if (!executors[a->kind]) {
        err_set(r.e, ERR_FAILED, "'%s' is not something that can be done on the screen",
                action_kind_name(a->kind));
        fault = FAULT_UNSUPPORTED;
    } else if ((fault = check_targets(&r)) == FAULT_NONE && executors[a->kind](&r)) {
        fault = fault_of(r.e, a->kind);
    }
    if (fault == FAULT_STOPPED)
        screen_release_all(s); /* includes keys and buttons that earlier steps hold */
    screen_set_acting(s, false);
    if (result)
        *result =
            (struct exec_result){(int)(screen_events_sent(s) - events), clock_ms_since(start), r.unsure};
    return fault;
}
