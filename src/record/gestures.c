/* gestures.c - a state machine with one pending gesture; see gestures.h. */
#include "record/gestures.h"

#include <X11/keysym.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLICK_MS = 400, /* between the presses of a double click */
    CLICK_PX = 6,   /* larger movement is a drag, or another click */
    SCROLL_MS = 1500,
    SCROLL_PX = 30,
    KEY_MS = 700,   /* Escape twice must still be one gesture */
    TEXT_MS = 2000, /* then the text is saved, in case this program is killed */
    TEXT_BYTES = 1000,
    COUNT_MOST = 20,
    SCROLL_MOST = 100,
};

enum pending { NOTHING, CLICK, PRESSED, SCROLL, KEYS, TEXT };

struct gestures {
    struct gesture_sink sink;
    enum pending pending;
    struct gesture g; /* gesture of CLICK, PRESSED, SCROLL, KEYS */
    char text[TEXT_BYTES + 64];
    size_t len;
    struct action_point path[ACTION_MAX_PATH];
    int npath, stride, skipped; /* PRESSED: every stride-th point is kept */
    bool dragged;
    uint32_t held[ACTION_MAX_KEYS]; /* pressed modifiers, in order */
    int nheld;
    uint32_t alone; /* modifier pressed last, 0 if another key or button followed */
};

struct gestures *gestures_new(const struct gesture_sink *sink)
{
    struct gestures *g = xcalloc(1, sizeof *g);
    g->sink = *sink;
    return g;
}

void gestures_free(struct gestures *g)
{
    if (!g)
        return;
    action_free(&g->g.action);
    explicit_bzero(g, sizeof *g);
    free(g);
}

/* ---- endings ---------------------------------------------------------------------------------------- */

static struct action empty(enum action_kind kind)
{
    return (struct action){.kind = kind,
                           .x = ACTION_ABSENT,
                           .y = ACTION_ABSENT,
                           .x2 = ACTION_ABSENT,
                           .y2 = ACTION_ABSENT,
                           .button = 1,
                           .count = 1};
}

static void finish_drag(struct gestures *g)
{
    struct action *a = &g->g.action;
    if (!g->dragged)
        return;
    a->kind = ACT_DRAG;
    a->x2 = g->path[g->npath - 1].x;
    a->y2 = g->path[g->npath - 1].y;
    a->path = xcalloc((unsigned long)g->npath, sizeof *a->path);
    memcpy(a->path, g->path, (size_t)g->npath * sizeof *a->path);
    a->npath = g->npath;
}

/* Ends the pending gesture and passes it to the sink. */
static void finish(struct gestures *g)
{
    enum pending what = g->pending;
    g->pending = NOTHING;
    if (what == NOTHING)
        return;
    if (what == PRESSED)
        finish_drag(g);
    if (what == TEXT) {
        bool enter = g->g.action.press_enter;
        g->g.action = empty(ACT_TYPE);
        g->g.action.press_enter = enter;
        g->g.action.text = xstrdup(g->text);
        explicit_bzero(g->text, sizeof g->text);
        g->len = 0;
    }
    struct gesture done = g->g;
    g->g = (struct gesture){0};
    g->sink.done(g->sink.arg, &done);
}

static void begin(struct gestures *g, enum pending what, enum action_kind kind, const struct input *in)
{
    finish(g);
    g->pending = what;
    g->g = (struct gesture){.action = empty(kind), .from = in->ms, .to = in->ms};
}

void gestures_tick(struct gestures *g, double quiet_ms)
{
    static const int limits[] = {[CLICK] = CLICK_MS, [SCROLL] = SCROLL_MS, [KEYS] = KEY_MS, [TEXT] = TEXT_MS};
    if (g->pending != NOTHING && g->pending != PRESSED && quiet_ms > limits[g->pending])
        finish(g);
}

void gestures_end(struct gestures *g, bool without_escapes)
{
    struct action *a = &g->g.action;
    bool escape = g->pending == KEYS && a->nkeys == 1 && a->keys[0] == XK_Escape;
    if (escape && without_escapes && a->count <= 2)
        g->pending = NOTHING;
    else if (escape && without_escapes)
        a->count = (uint8_t)(a->count - 2);
    if (g->pending == PRESSED) /* never released: not a gesture */
        g->pending = NOTHING;
    finish(g);
}

/* ---- modifiers -------------------------------------------------------------------------------------- */

/* Returns one keysym for both sides of a modifier, or 0 if chords do not use the key. */
static uint32_t modifier(uint32_t keysym)
{
    switch (keysym) {
    case XK_Control_L:
    case XK_Control_R:
        return XK_Control_L;
    case XK_Alt_L:
    case XK_Alt_R:
    case XK_Meta_L:
    case XK_Meta_R:
        return XK_Alt_L;
    case XK_Super_L:
    case XK_Super_R:
        return XK_Super_L;
    case XK_Shift_L:
    case XK_Shift_R:
        return XK_Shift_L;
    default:
        return 0;
    }
}

/* Returns whether a key is a lock, a level shift such as AltGr, Compose or a dead key: they change the
 * meaning of other keys and are not recorded themselves. */
static bool is_silent(uint32_t keysym)
{
    return (keysym >= XK_ISO_Lock && keysym <= XK_ISO_Last_Group_Lock) || keysym == XK_Caps_Lock ||
           keysym == XK_Num_Lock || keysym == XK_Scroll_Lock || keysym == XK_Mode_switch ||
           keysym == XK_Multi_key || (keysym >= 0xfe50 && keysym <= 0xfe93); /* dead keys */
}

static bool holds(const struct gestures *g, uint32_t keysym)
{
    for (int i = 0; i < g->nheld; i++)
        if (g->held[i] == keysym)
            return true;
    return false;
}

static void copy_held(const struct gestures *g, uint32_t *to, int max, int *n)
{
    *n = g->nheld < max ? g->nheld : max;
    memcpy(to, g->held, (size_t)*n * sizeof *to);
}

/* ---- keys ------------------------------------------------------------------------------------------- */

static void press_chord(struct gestures *g, const struct input *in, uint32_t key, const uint32_t *held,
                        int nheld)
{
    struct action a = empty(ACT_KEY);
    memcpy(a.keys, held, (size_t)nheld * sizeof *held);
    a.nkeys = nheld;
    if (a.nkeys < ACTION_MAX_KEYS)
        a.keys[a.nkeys++] = key;
    struct action *was = &g->g.action;
    if (g->pending == KEYS && was->nkeys == a.nkeys && !memcmp(was->keys, a.keys, sizeof a.keys) &&
        was->count < COUNT_MOST && in->ms - g->g.to <= KEY_MS) {
        was->count++;
        g->g.to = in->ms;
        return;
    }
    begin(g, KEYS, ACT_KEY, in);
    *was = a;
    g->sink.typing(g->sink.arg, in);
}

static void modifier_moved(struct gestures *g, const struct input *in, uint32_t m)
{
    if (in->down) {
        if (!holds(g, m) && g->nheld < ACTION_MAX_KEYS - 1) {
            g->held[g->nheld++] = m;
            g->alone = m;
        }
        return;
    }
    for (int i = 0; i < g->nheld; i++)
        if (g->held[i] == m) {
            memmove(g->held + i, g->held + i + 1, (size_t)(g->nheld - i - 1) * sizeof *g->held);
            g->nheld--;
        }
    if (g->alone == m && m != XK_Shift_L && m != XK_Control_L) /* opens a menu */
        press_chord(g, in, m, g->held, g->nheld);
    g->alone = 0;
}

static void type_text(struct gestures *g, const struct input *in)
{
    size_t n = strlen(in->text);
    if (g->pending != TEXT || g->len + n > TEXT_BYTES) {
        begin(g, TEXT, ACT_TYPE, in);
        g->len = 0;
        g->sink.typing(g->sink.arg, in);
    }
    memcpy(g->text + g->len, in->text, n + 1);
    g->len += n;
    g->g.to = in->ms;
}

static void erase(struct gestures *g)
{
    while (g->len && (g->text[--g->len] & 0xc0) == 0x80)
        ;
    g->text[g->len] = 0;
    if (!g->len)
        g->pending = NOTHING;
}

static void key_down(struct gestures *g, const struct input *in)
{
    bool command = holds(g, XK_Control_L) || holds(g, XK_Alt_L) || holds(g, XK_Super_L);
    g->alone = 0;
    if (is_silent(in->keysym))
        return;
    if (*in->text && !command && (unsigned char)in->text[0] >= ' ' && in->text[0] != 127) {
        type_text(g, in);
    } else if (in->keysym == XK_BackSpace && !g->nheld && g->pending == TEXT) {
        g->g.to = in->ms;
        erase(g);
    } else if (in->keysym == XK_Return && !g->nheld && g->pending == TEXT) {
        g->g.action.press_enter = true;
        g->g.to = in->ms;
        finish(g);
    } else if (in->plain || in->keysym) { /* no keysym: inside a Compose sequence */
        press_chord(g, in, in->plain ? in->plain : in->keysym, g->held, g->nheld);
    }
}

/* ---- pointer ---------------------------------------------------------------------------------------- */

static bool near(const struct action *a, const struct input *in, int px)
{
    return abs(a->x - in->x) <= px && abs(a->y - in->y) <= px;
}

static bool same_hold(const struct gestures *g, const struct action *a)
{
    uint32_t now[ACTION_MAX_HOLD];
    int n;
    copy_held(g, now, ACTION_MAX_HOLD, &n);
    return n == a->nhold && !memcmp(now, a->hold, (size_t)n * sizeof *now);
}

static void point(struct gestures *g, enum pending what, enum action_kind kind, const struct input *in)
{
    begin(g, what, kind, in);
    struct action *a = &g->g.action;
    a->x = in->x;
    a->y = in->y;
    copy_held(g, a->hold, ACTION_MAX_HOLD, &a->nhold);
    g->sink.pointed(g->sink.arg, in);
}

static void wheel(struct gestures *g, const struct input *in)
{
    int dx = in->button == 6 ? -1 : in->button == 7, dy = in->button == 4 ? -1 : in->button == 5;
    struct action *a = &g->g.action;
    bool goes_on = g->pending == SCROLL && near(a, in, SCROLL_PX) && in->ms - g->g.to <= SCROLL_MS &&
                   same_hold(g, a) && a->dx * dx >= 0 && a->dy * dy >= 0 && !a->dx == !dx &&
                   abs(a->dx + a->dy) < SCROLL_MOST;
    if (!goes_on)
        point(g, SCROLL, ACT_SCROLL, in);
    a->dx = (int16_t)(a->dx + dx);
    a->dy = (int16_t)(a->dy + dy);
    g->g.to = in->ms;
}

static void button_down(struct gestures *g, const struct input *in)
{
    struct action *a = &g->g.action;
    if (g->pending == PRESSED) /* a second button meanwhile */
        return;
    bool again = g->pending == CLICK && a->button == in->button && a->count < 3 && near(a, in, CLICK_PX) &&
                 in->ms - g->g.to <= CLICK_MS && same_hold(g, a);
    if (again) {
        a->count++;
        g->pending = PRESSED;
        g->g.to = in->ms;
    } else {
        point(g, PRESSED, ACT_CLICK, in);
        a->button = (uint8_t)in->button;
    }
    g->dragged = false;
    g->npath = g->stride = 1;
    g->skipped = 0;
    g->path[0] = (struct action_point){in->x, in->y};
}

/* Keeps every stride-th point; if the path is full, drops every second point and doubles the stride. */
static void add_point(struct gestures *g, int x, int y)
{
    if (++g->skipped < g->stride)
        return;
    g->skipped = 0;
    if (g->npath == ACTION_MAX_PATH / 4) {
        g->stride *= 2;
        for (int i = 1; 2 * i < g->npath; i++)
            g->path[i] = g->path[2 * i];
        g->npath = (g->npath + 1) / 2;
    }
    g->path[g->npath++] = (struct action_point){x, y};
}

static void button_up(struct gestures *g, const struct input *in)
{
    struct action *a = &g->g.action;
    if (g->pending != PRESSED || a->button != in->button)
        return;
    g->dragged = g->dragged || !near(a, in, CLICK_PX);
    if (!g->dragged) {
        g->pending = CLICK;
        return;
    }
    if (a->count > 1) { /* the clicks before the drag were separate gestures */
        a->count--;
        g->dragged = false;
    } else {
        g->path[g->npath++] = (struct action_point){in->x, in->y};
    }
    g->g.to = in->ms;
    finish(g);
}

void gestures_input(struct gestures *g, const struct input *in)
{
    uint32_t m = in->kind == INPUT_KEY ? modifier(in->keysym) : 0;
    if (in->kind == INPUT_MOTION) {
        if (g->pending != PRESSED)
            return;
        g->dragged = g->dragged || !near(&g->g.action, in, CLICK_PX);
        if (g->dragged)
            add_point(g, in->x, in->y);
    } else if (in->kind == INPUT_BUTTON) {
        g->alone = 0;
        if (in->button >= 4 && in->button <= 7) {
            if (in->down && g->pending != PRESSED)
                wheel(g, in);
        } else if (in->down) {
            button_down(g, in);
        } else {
            button_up(g, in);
        }
    } else if (m) {
        modifier_moved(g, in, m);
    } else if (in->down && g->pending != PRESSED) {
        key_down(g, in);
    }
}
