/* screen.c - opens and closes a screen, and decides whether an event may be sent. */
#include "screen/private.h"

#include "base/buf.h"
#include "base/clock.h"
#include "screen/guard.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_MS = 50 };

/* ---- open ------------------------------------------------------------------------------------- */

struct screen *screen_open(const struct screen_options *o, struct err *e)
{
    static const struct screen_options none;
    struct screen *s = xcalloc(1, sizeof *s);
    s->ops = &screen_x11;
    s->fd = -1;
    s->options = o ? *o : none;
    if (s->options.keymap_settle_ms <= 0)
        s->options.keymap_settle_ms = 50;
    s->view_name = xstrdup(s->options.view ? s->options.view : "all");
    s->options.view = s->options.display = NULL; /* borrowed only during the call */
    pointer_forget_place(s);
    if ((s->stop = stop_open(e)) && s->ops->open(s, o ? o->display : NULL, e) == 0 &&
        monitors_update(s, e) == 0)
        return s;
    screen_close(s);
    return NULL;
}

void screen_close(struct screen *s)
{
    if (!s)
        return;
    observed_drop(s);
    s->ops->close(s);
    stop_close(s->stop);
    free(s->view_name);
    free(s->name);
    free(s);
}

/* ---- state ------------------------------------------------------------------------------------ */

int screen_alive(struct screen *s, struct err *e)
{
    if (s->lost)
        return err_set(e, ERR_ENV, "display '%s' was lost", s->name);
    return 0;
}

/* Calls the check of this event. The check may query other programs for several seconds and has its own time
 * limits, so the watchdog must not count that time as a hung action. */
static int ask_check(struct screen *s, struct err *e)
{
    screen_set_acting(s, false);
    int rc = s->check(s->check_arg, e);
    screen_set_acting(s, true);
    return rc;
}

void screen_set_check(struct screen *s, int (*check)(void *arg, struct err *e), void *arg)
{
    s->check = check;
    s->check_arg = arg;
}

void screen_set_is_field(struct screen *s, bool (*is_field)(void *arg, const char *title), void *arg)
{
    s->is_field = is_field;
    s->is_field_arg = arg;
}

int screen_may_act(struct screen *s, struct err *e)
{
    if (screen_alive(s, e) || stop_check(s->stop, e))
        return -1;
    if (screen_user_input(s))
        return err_set(e, ERR_FAILED, "a person uses the %s: nothing more was done", screen_user_input(s));
    if (s->check && ask_check(s, e))
        return -1;
    return s->ops->acquire(s, e);
}

int input_begin(struct screen *s, bool down, struct err *e)
{
    guard_progress(s->stop->slot);
    s->ops->lock(s, true);
    if (!down || screen_may_act(s, e) == 0)
        return 0;
    s->ops->lock(s, false);
    return -1;
}

int input_end(struct screen *s, struct err *e)
{
    s->ops->lock(s, false);
    s->events++;
    return screen_alive(s, e);
}

int screen_acquire_input(struct screen *s, struct err *e)
{
    return screen_alive(s, e) ? -1 : s->ops->acquire(s, e);
}

void screen_pump(struct screen *s)
{
    if (!s->lost)
        s->ops->pump(s);
}

const char *screen_name(const struct screen *s)
{
    return s->name;
}

int64_t screen_events_sent(const struct screen *s)
{
    return s->events;
}

int screen_release_all(struct screen *s)
{
    bool any = s->ops->release(s);
    if (any)
        pointer_forget_place(s); /* a button was released where it was pressed */
    return any;
}

/* Detects a server that has exited while no request is pending. */
static void check_connection(struct screen *s)
{
    struct pollfd p = {.fd = s->lost ? -1 : s->fd, .events = POLLRDHUP};
    if (poll(&p, 1, 0) > 0)
        s->lost = true;
}

/* Waits for ms, or until an event of the display was handled if events is true. Returns -1 with e if stopped
 * or the display is lost. The guard counts on a sign of progress every SLICE_MS. */
static int wait(struct screen *s, double ms, bool events, struct err *e)
{
    int64_t start = clock_ns();
    for (double left = ms;; left = ms - clock_ms_since(start)) {
        guard_progress(s->stop->slot);
        check_connection(s);
        if (screen_alive(s, e) || stop_check(s->stop, e))
            return -1;
        if ((events && s->ops->pump(s)) || left <= 0)
            return 0;
        stop_sleep(s->stop, left < SLICE_MS ? left : SLICE_MS, s->fd, events);
    }
}

int screen_wait(struct screen *s, double ms, struct err *e)
{
    return wait(s, ms, false, e);
}

int screen_wait_event(struct screen *s, double ms, struct err *e)
{
    return wait(s, ms, true, e);
}

/* ---- the user --------------------------------------------------------------------------------- */

int screen_watch(struct screen *s, struct err *e)
{
    return s->ops->watch(s, e);
}

int screen_watch_check(struct screen *s, struct err *e)
{
    return s->ops->watch_check(s, e);
}

void screen_note_user(struct screen *s, const char *device)
{
    s->user.device = device;
    s->user.at = clock_ns();
}

const char *screen_user_input(const struct screen *s)
{
    return s->options.pause_on_user && s->user.at ? s->user.device : NULL;
}

int screen_wait_for_user(struct screen *s, double quiet_ms, struct err *e)
{
    int64_t last = 0;
    if (!screen_user_input(s))
        return 0;
    do {
        last = s->user.at;
        if (screen_wait(s, 20, e))
            return -1;
    } while (clock_ms_since(last) < quiet_ms);
    atomic_compare_exchange_strong(&s->user.at, &last, 0);
    pointer_forget_place(s);
    return 0;
}

/* ---- facts ------------------------------------------------------------------------------------ */

void screen_describe(struct screen *s, struct buf *out)
{
    if (screen_alive(s, NULL))
        return;
    buf_printf(out, "display: %s\n", s->name);
    s->ops->describe(s, out);
    buf_printf(out, "input: %s\n",
               s->ops->acquire(s, NULL) ? "no, display in use by another holorun" : "yes");
}
