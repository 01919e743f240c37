/* computer.c - the functions of screen.h on a machine behind an address; see computer.h.
 *
 * An action is one list of events, so that the machine performs it without the network between its parts, and
 * presses and releases in it belong together.  What a list leaves pressed is remembered until it is released.
 */
#include "screen/private.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    EVENTS_MAX = 128,
    HOVER_MS = 30, /* from arriving to the press, and from press to release, as on a display */
    BETWEEN_MS = 60,
    DRAG_STEPS = 24,
    DRAG_MS = 500,
    DRAG_ENDS_MS = 100,
    CHORD_MS = 20,
    TEXT_PART = 200, /* bytes of a request: a stop comes between two */
    TEXT_MAX = 1 << 20,
    WHEEL_MAX = 100,
    BUTTONS = 3,
};

struct remote_screen {
    struct computer ops;
    struct stopfile *files; /* NULL until screen_watch() */
    int x, y;               /* where the pointer was sent; x < 0: nowhere yet */
    uint32_t keys[MAX_DOWN];
    bool buttons[BUTTONS + 1];
};

struct events {
    struct computer_event list[EVENTS_MAX];
    int n;
};

static void add(struct events *v, struct computer_event one)
{
    if (v->n == EVENTS_MAX)
        bug("a list of more than %d events", EVENTS_MAX);
    v->list[v->n++] = one;
}

static void add_move(struct events *v, int x, int y)
{
    add(v, (struct computer_event){.kind = COMPUTER_MOVE, .x = x, .y = y});
}

static void add_button(struct events *v, bool down, int button)
{
    add(v, (struct computer_event){.kind = down ? COMPUTER_DOWN : COMPUTER_UP, .button = button});
}

static void add_key(struct events *v, bool down, uint32_t keysym)
{
    add(v, (struct computer_event){.kind = down ? COMPUTER_KEY_DOWN : COMPUTER_KEY_UP, .keysym = keysym});
}

static void add_pause(struct events *v, double ms)
{
    add(v, (struct computer_event){.kind = COMPUTER_PAUSE, .ms = ms});
}

/* ---- opening ------------------------------------------------------------------------------------ */

static void take_size(struct screen *s, const struct image *im)
{
    s->root_rect = s->view = (struct screen_rect){0, 0, im->w, im->h};
}

int computer_screen_open(struct screen *s, const struct computer *ops, struct err *e)
{
    struct image first = {0};
    bool whole = !strcmp(s->view_name, "all") || view_is_active(s);
    s->remote = xcalloc(1, sizeof *s->remote);
    s->remote->ops = *ops;
    s->remote->x = -1;
    s->name = xstrdup(ops->name);
    if (!whole)
        return err_set(e, ERR_USAGE, "--view '%s' needs a display: of %s the whole screen is shown",
                       s->view_name, s->name);
    int rc = ops->capture(ops->arg, screen_stop_flag(s), &first, e);
    if (rc == 0)
        take_size(s, &first);
    image_free(&first);
    return rc;
}

void computer_screen_close(struct screen *s)
{
    computer_release_all(s);
    stopfile_close(s->remote->files);
    free(s->remote);
    s->remote = NULL;
}

int computer_watch(struct screen *s, struct err *e)
{
    if (!s->remote->files)
        s->remote->files = stopfile_open(s->stop, NULL, NULL, e);
    return s->remote->files ? 0 : -1;
}

/* ---- looking ------------------------------------------------------------------------------------- */

int computer_capture(struct screen *s, struct image *out, struct err *e)
{
    const struct computer *c = &s->remote->ops;
    if (stop_check(s->stop, e) || c->capture(c->arg, screen_stop_flag(s), out, e))
        return -1;
    take_size(s, out);
    return 0;
}

int computer_pointer(const struct screen *s, int *x, int *y)
{
    *x = s->remote->x;
    *y = s->remote->y;
    return *x < 0 ? -1 : 0;
}

int computer_window(struct screen *s, int x, int y, struct screen_window *out)
{
    const struct computer *c = &s->remote->ops;
    *out = (struct screen_window){0};
    c->window(c->arg, screen_stop_flag(s), x, y, out);
    return 0;
}

/* ---- acting -------------------------------------------------------------------------------------- */

/* keysym 0: a free place. */
static uint32_t *key_place(struct remote_screen *r, uint32_t keysym)
{
    for (int i = 0; i < MAX_DOWN; i++)
        if (r->keys[i] == keysym)
            return &r->keys[i];
    return NULL;
}

/* Where the pointer is and what is down after this event. */
static void note(struct remote_screen *r, const struct computer_event *v)
{
    uint32_t *key = v->keysym ? key_place(r, v->keysym) : NULL;
    if (v->kind == COMPUTER_MOVE) {
        r->x = v->x;
        r->y = v->y;
    } else if (v->kind == COMPUTER_DOWN || v->kind == COMPUTER_UP) {
        r->buttons[v->button] = v->kind == COMPUTER_DOWN;
    } else if (v->kind == COMPUTER_KEY_DOWN && !key && (key = key_place(r, 0))) {
        *key = v->keysym;
    } else if (v->kind == COMPUTER_KEY_UP && key) {
        *key = 0;
    }
}

/* Presses count from before they are sent: a request that fails may have been carried out in part. */
static int send(struct screen *s, const volatile int *stop, const struct events *v, struct err *e)
{
    struct remote_screen *r = s->remote;
    for (int i = 0; i < v->n; i++)
        if (v->list[i].kind == COMPUTER_DOWN || v->list[i].kind == COMPUTER_KEY_DOWN)
            note(r, &v->list[i]);
    if (r->ops.perform(r->ops.arg, stop, v->list, v->n, e))
        return -1;
    for (int i = 0; i < v->n; i++)
        note(r, &v->list[i]);
    s->events += v->n;
    return 0;
}

/* Releases what is down and was not before; whether there was anything.  Also after a stop, whose flag would
 * end the request. */
static bool release_since(struct screen *s, const struct remote_screen *before)
{
    struct remote_screen *r = s->remote;
    struct events v = {.n = 0};
    for (int b = 1; b <= BUTTONS; b++)
        if (r->buttons[b] && !before->buttons[b])
            add_button(&v, false, b);
    for (int i = 0; i < MAX_DOWN; i++)
        if (r->keys[i] && r->keys[i] != before->keys[i])
            add_key(&v, false, r->keys[i]);
    if (v.n)
        send(s, NULL, &v, NULL);
    return v.n != 0;
}

/* What fails leaves nothing pressed: a chord would take a key that it finds down for one that is to stay. */
static int act(struct screen *s, const struct events *v, struct err *e)
{
    struct remote_screen before = *s->remote;
    if (screen_may_act(s, e))
        return -1;
    if (send(s, screen_stop_flag(s), v, e) == 0)
        return 0;
    release_since(s, &before);
    return -1;
}

int computer_release_all(struct screen *s)
{
    static const struct remote_screen nothing;
    struct remote_screen *r = s->remote;
    bool any = release_since(s, &nothing);
    memset(r->keys, 0, sizeof r->keys);
    memset(r->buttons, 0, sizeof r->buttons);
    return any;
}

static int clamp(int v, int size)
{
    return v < 0 ? 0 : v >= size ? size - 1 : v;
}

int computer_move(struct screen *s, int x, int y, struct err *e)
{
    struct events v = {.n = 0};
    add_move(&v, clamp(x, s->root_rect.w), clamp(y, s->root_rect.h));
    return observed_aim(s, clamp(x, s->root_rect.w), clamp(y, s->root_rect.h), e) || act(s, &v, e) ? -1 : 0;
}

static int check_button(const struct screen *s, int button, struct err *e)
{
    return button >= 1 && button <= BUTTONS
               ? 0
               : err_set(e, ERR_FAILED, "%s has no mouse button %d", s->name, button);
}

int computer_button(struct screen *s, int button, bool down, struct err *e)
{
    struct events v = {.n = 0};
    if (check_button(s, button, e))
        return -1;
    add_button(&v, down, button);
    if (down && observed_may_press(s, false, e))
        return -1;
    return down ? act(s, &v, e) : send(s, NULL, &v, e); /* a release is always allowed */
}

int computer_click(struct screen *s, int x, int y, int button, int count, struct err *e)
{
    struct events v = {.n = 0};
    if (check_button(s, button, e))
        return -1;
    if (x >= 0 ? observed_check_place(s, x, y, e) : observed_may_press(s, false, e))
        return -1;
    if (x >= 0)
        add_move(&v, clamp(x, s->root_rect.w), clamp(y, s->root_rect.h));
    add_pause(&v, HOVER_MS);
    for (int i = 0; i < count && i < 10; i++) {
        if (i)
            add_pause(&v, BETWEEN_MS);
        add_button(&v, true, button);
        add_pause(&v, HOVER_MS);
        add_button(&v, false, button);
    }
    return act(s, &v, e);
}

int computer_drag(struct screen *s, const int *xy, int n, int button, int ms, struct err *e)
{
    struct events v = {.n = 0};
    int legs = n - 1, steps = legs > 0 && DRAG_STEPS / legs > 1 ? DRAG_STEPS / legs : 1;
    if (n < 2 || legs * steps * 2 > EVENTS_MAX - 8)
        return err_set(e, ERR_FAILED,
                       n < 2 ? "a drag needs a start and an end" : "a drag along %d points is too long", n);
    if (check_button(s, button, e) || observed_check_place(s, xy[0], xy[1], e) ||
        observed_check_place(s, xy[2 * n - 2], xy[2 * n - 1], e))
        return -1;
    int w = s->root_rect.w, h = s->root_rect.h;
    add_move(&v, clamp(xy[0], w), clamp(xy[1], h));
    add_pause(&v, HOVER_MS);
    add_button(&v, true, button);
    add_pause(&v, DRAG_ENDS_MS);
    for (int i = 0; i < legs; i++)
        for (int k = 1; k <= steps; k++) {
            const int *a = xy + 2 * i;
            add_move(&v, clamp(a[0] + (a[2] - a[0]) * k / steps, w),
                     clamp(a[1] + (a[3] - a[1]) * k / steps, h));
            add_pause(&v, (double)(ms > 0 ? ms : DRAG_MS) / (legs * steps));
        }
    add_pause(&v, DRAG_ENDS_MS);
    add_button(&v, false, button);
    return act(s, &v, e);
}

int computer_scroll(struct screen *s, int dx, int dy, struct err *e)
{
    struct events v = {.n = 0};
    int x = dx > WHEEL_MAX ? WHEEL_MAX : dx < -WHEEL_MAX ? -WHEEL_MAX : dx;
    int y = dy > WHEEL_MAX ? WHEEL_MAX : dy < -WHEEL_MAX ? -WHEEL_MAX : dy;
    add(&v, (struct computer_event){.kind = COMPUTER_WHEEL, .x = x, .y = y});
    return act(s, &v, e);
}

int computer_key(struct screen *s, uint32_t keysym, bool down, struct err *e)
{
    struct events v = {.n = 0};
    if (down && !key_place(s->remote, keysym) && !key_place(s->remote, 0))
        return err_set(e, ERR_FAILED, "more than %d keys held at once", MAX_DOWN);
    if (!down && !key_place(s->remote, keysym))
        return 0; /* not pressed by us, or released meanwhile */
    add_key(&v, down, keysym);
    return down ? act(s, &v, e) : send(s, NULL, &v, e);
}

/* Keys held before stay held. */
int computer_chord(struct screen *s, const uint32_t *keysyms, int n, struct err *e)
{
    struct events v = {.n = 0};
    bool before[MAX_DOWN];
    if (n > MAX_DOWN)
        return err_set(e, ERR_USAGE, "a chord of %d keys", n);
    for (int i = 0; i < n; i++) {
        before[i] = key_place(s->remote, keysyms[i]) != NULL;
        add_key(&v, true, keysyms[i]);
    }
    add_pause(&v, CHORD_MS);
    for (int i = n; i-- > 0;)
        if (!before[i])
            add_key(&v, false, keysyms[i]);
    return act(s, &v, e);
}

static bool is_control(uint32_t c)
{
    return (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || (c >= 0x7f && c < 0xa0);
}

static int check_text(const char *utf8, size_t len, struct err *e)
{
    uint32_t c;
    if (len > TEXT_MAX)
        return err_set(e, ERR_USAGE, "text of %zu bytes; the limit is %d", len, TEXT_MAX);
    for (size_t i = 0; i < len;) {
        int k = utf8_decode(utf8 + i, len - i, &c);
        if (k <= 0 || is_control(c))
            return err_set(e, ERR_USAGE, "text has %s at byte %zu",
                           k <= 0 ? "invalid UTF-8" : "a control character", i);
        i += (size_t)k;
    }
    return 0;
}

/* Neither inside of a character nor between CR and LF, which are one line end. */
static bool may_cut(const char *p)
{
    return ((unsigned char)*p & 0xc0) != 0x80 && !(*p == '\n' && p[-1] == '\r');
}

int computer_type(struct screen *s, const char *utf8, size_t len, struct err *e)
{
    if (check_text(utf8, len, e))
        return -1;
    for (size_t at = 0; at < len;) {
        struct events v = {.n = 0};
        size_t part = len - at < TEXT_PART ? len - at : TEXT_PART;
        while (at + part < len && part > 1 && !may_cut(utf8 + at + part))
            part--;
        add(&v, (struct computer_event){.kind = COMPUTER_TEXT, .text = utf8 + at, .len = part});
        if (act(s, &v, e))
            return -1;
        at += part;
    }
    return 0;
}
