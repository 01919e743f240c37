/* recorder.c - the event loop of `holorun record`; see recorder.h.
 *
 *   listen.c ─► gestures.c ─► steps ─► recording.c ─► FILE.part
 *   screenshots, windows, elements under the pointer ──┘
 *
 * A press changes its target, so a target is recorded as it looked before: screenshots are taken
 * continuously, window and elements are requested as soon as the pointer stops moving (scenes.h).
 */
#include "record/recorder.h"

#include "atspi/elements.h"
#include "record/listen.h"
#include "record/prompt_tty.h"
#include "record/recorder_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"
#include "gate/redact.h"

#include <X11/keysym.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    TICK_MS = 20,
    SHOT_MS = 60,       /* between screenshots while the user works */
    IDLE_SHOT_MS = 300, /* between screenshots otherwise */
    IDLE_MS = 5000,
    LIST_MS = 200, /* between two lists of the windows, if the screen has changed */
    LIST_IDLE_MS = 1000,
    LAG_MAX_MS = 5000, /* by which an event may be read late */
    LATE_MS = 500,     /* a screen change this long after an action needs a wait */
    LONG_PAUSE_MS = 2000,
    END_SECONDS = 15, /* for the effect of the last action */
};

/* ---- gestures --------------------------------------------------------------------------------------- */

/* Converts a time of the X server to clock_ns(). */
static int64_t ns_of(const struct recorder *r, int64_t ms)
{
    return r->in_ns - (r->in_ms - ms) * 1000000;
}

static void list_windows(struct recorder *r)
{
    windows_read(r->o->screen, &r->windows_now);
    r->windows_read = clock_ns();
}

static void start_gesture(struct recorder *r)
{
    double pause = (double)(r->in_ns - r->last_end) / 1e6,
           change = (double)(r->last_change - r->last_end) / 1e6;
    r->late = r->last_end && pause > LONG_PAUSE_MS && change > LATE_MS;
    r->focus_asked = r->typed = 0;
    r->windows_earlier = r->windows_before;
    if (r->windows_read < r->last_end || r->windows_read < r->last_change)
        list_windows(r); /* or the effect of the previous gesture would count as that of this one */
    r->windows_before = r->windows_now;
}

static void on_pointed(void *arg, const struct input *at)
{
    struct recorder *r = arg;
    recorder_look_below(r);
    start_gesture(r);
    recorder_look_at(r, at->x, at->y);
}

static void on_typing(void *arg, const struct input *at)
{
    struct recorder *r = arg;
    start_gesture(r);
    recording_target_free(&r->target);
    r->press = (struct press){0};
    screen_focused_window(r->o->screen, &r->focus);
    recorder_look_around(r, r->focus.id ? r->focus.rect : screen_root(r->o->screen));
    r->hidden = prompt_tty_hides(r->focus.pid);
    r->typed = *at->text ? clock_ns() : 0;
    if (r->redact)
        redact_before(r->redact, r->o->screen, NULL);
}

/* Fills the members of a step that its action does not contain: target or focused window. */
static void describe_step(struct recorder *r, struct recording_step *s)
{
    s->target = r->target; /* under the pointer, or with the keyboard */
    r->target = (struct recording_target){0};
    s->look = r->look;
    r->look = (struct recording_look){0};
    s->has_target = action_is(s->action.kind, ACTION_POINTER);
    if (!s->has_target) {
        snprintf(s->class, sizeof s->class, "%s", r->focus.class);
        snprintf(s->title, sizeof s->title, "%.*s", (int)sizeof s->title - 1, r->focus.title);
        window_language(r->focus.pid, s->language);
    }
    if (action_is(s->action.kind, ACTION_DRAGS)) {
        s->has_to = true;
        recorder_look_back(r, s->action.x2, s->action.y2, &s->to);
    }
}

static void on_done(void *arg, struct gesture *g)
{
    struct recorder *r = arg;
    r->typed = r->focus_asked = 0;
    struct item q = {.from = ns_of(r, g->from), .until = clock_ns(), .done = clock_ns(), .wait = r->late};
    q.hidden = action_is(g->action.kind, ACTION_TYPES) && r->hidden;
    q.step.action = g->action;
    q.step.pause = r->last_end ? fmax(0, (double)(q.from - r->last_end) / 1e9) : 0;
    describe_step(r, &q.step);
    if (q.step.has_target && r->press.unnamed) {
        q.press = r->press;
        q.before = r->before;
        r->before = (struct image){0};
    }
    r->press = (struct press){0};
    q.opened = recorder_is_new_window(r, q.step.has_target ? r->under.id : r->focus.id);
    /* Programs report a focus change late. Without a report between the previous gesture and the first key, a
     * text that was typed faster than FOCUS_MS may belong to the element that a later report names. */
    bool known = elements_focus_since(r->elements, r->last_end) && !elements_focus_since(r->elements, q.from);
    q.unsure = g->to - g->from < FOCUS_MS && !known;
    q.until += q.unsure ? REPORT_MS * INT64_C(1000000) : 0;
    for (int i = 0; i < r->n_queue; i++) /* reports after a pause belong to the gesture that ended it */
        if (q.from - r->queue[i].ended > FOCUS_MS * INT64_C(1000000) && r->queue[i].until > q.from)
            r->queue[i].until = q.from;
    r->last_end = q.ended = ns_of(r, g->to);
    if (action_is(q.step.action.kind, ACTION_TYPES) && r->redact &&
        secrets_contained_in(r->o->secrets, q.step.action.text)) {
        redact_after(r->redact, r->o->screen, &r->focus, -1, -1, NULL);
        redact_seal(r->redact);
    }
    if (r->n_queue == QUEUE_MOST && recorder_write_queue(r, true, &r->trouble))
        r->failed = true;
    r->queue[r->n_queue++] = q;
}

/* ---- the loop ------------------------------------------------------------------------------------- */

/* Returns the clock_ns() at which an event occurred: on a loaded machine it is read later, and must not seem
 * to come after the focus report that it caused. Times of the X server may wrap. */
static int64_t time_of(struct recorder *r, int64_t ms)
{
    double now = (double)clock_ns() / 1e6, skew = now - (double)ms;
    bool unknown = r->skew == 0 || skew < r->skew || skew > r->skew + LAG_MAX_MS;
    r->skew = unknown ? skew : r->skew;
    return (int64_t)(((double)ms + r->skew) * 1e6);
}

static void on_input(struct recorder *r, const struct input *in)
{
    r->pointed = in->kind == INPUT_KEY ? 0 : clock_ns();
    if (in->kind == INPUT_MOTION || in->x != r->px || in->y != r->py) {
        r->px = in->x;
        r->py = in->y;
        r->moved = clock_ns();
        r->typed = r->focus_asked = 0; /* the element under the pointer is more urgent */
    }
    r->last_input = clock_ns();
    r->in_ms = in->ms;
    r->in_ns = time_of(r, in->ms);
    gestures_input(r->gestures, in);
}

/* Reads answers of programs and takes screenshots, as far as they are due. Returns -1 with e. */
static int look(struct recorder *r, struct err *e)
{
    elements_pump(r->elements);
    if (r->focus_asked)
        recorder_hear_focus(r);
    else if (r->typed && clock_ms_since(r->typed) > FOCUS_MS)
        recorder_ask_focus(r);
    else
        recorder_look_ahead(r);
    bool idle = clock_ms_since(r->last_input) > IDLE_MS;
    if (clock_ms_since(r->last_shot) > (idle ? IDLE_SHOT_MS : SHOT_MS) && recorder_shoot(r, e))
        return -1;
    recorder_name_presses(r);
    return 0;
}

static int work(struct recorder *r, struct err *e)
{
    const volatile int *stop = screen_stop_flag(r->o->screen);
    struct input in;
    while (!flag_up(stop)) {
        struct pollfd p[2] = {{listen_fd(r->listen), POLLIN, 0}, {elements_fd(r->elements), POLLIN, 0}};
        poll(p, 2, TICK_MS);
        while (listen_next(r->listen, &in))
            on_input(r, &in);
        if (listen_lost(r->listen))
            return err_set(e, ERR_ENV, "display '%s' was lost", screen_name(r->o->screen));
        gestures_tick(r->gestures, clock_ms_since(r->last_input));
        if (look(r, e))
            return -1;
        if (clock_ms_since(r->windows_read) > (r->last_change > r->windows_read ? LIST_MS : LIST_IDLE_MS))
            list_windows(r);
        if (r->failed) {
            *e = r->trouble;
            return -1;
        }
        if (recorder_write_queue(r, false, e))
            return -1;
    }
    return 0;
}

/* Writes what the last action changed. escaped: Escape was pressed after it and may have closed a window. */
static int write_end(struct recorder *r, bool escaped, struct err *e)
{
    const struct windows *before = escaped ? &r->windows_earlier : &r->windows_before,
                         *after = escaped ? &r->windows_before : &r->windows_now;
    struct recording_step s = {.for_end = true, .seconds = END_SECONDS};
    if (!r->result->steps || !windows_changed(before, after, &s))
        return 0;
    recorder_mask_title(r, s.title);
    recorder_mask_title(r, s.closed_title);
    return recorder_append(r, &s, e);
}

/* Processes the pending events, drops the two Escapes that ended the recording, and writes all steps.
 * Returns -1 with e. */
static int finish(struct recorder *r, struct err *e)
{
    struct input in;
    clock_sleep_ms(30);
    while (listen_next(r->listen, &in))
        on_input(r, &in);
    bool escaped = *screen_stop_flag(r->o->screen) == STOP_HUMAN;
    gestures_end(r->gestures, escaped);
    for (int i = r->n_queue; i-- > 0;)
        while (recorder_awaits(r, &r->queue[i]) && look(r, e) == 0)
            clock_sleep_ms(TICK_MS);
    if (recorder_write_queue(r, true, e))
        return -1;
    if (!escaped)
        list_windows(r);
    return write_end(r, escaped, e);
}

/* ---- the file ------------------------------------------------------------------------------------- */

static int open_part(struct recorder *r, struct err *e)
{
    struct buf head;
    struct screen_rect root = screen_root(r->o->screen);
    if (file_exists(r->o->path))
        return err_set(e, ERR_USAGE, "'%s' already exists; choose another file with -o, or remove it",
                       r->o->path);
    r->part = xasprintf("%s.part", r->o->path);
    r->fd = open(r->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_APPEND, 0600);
    if (r->fd < 0 && errno == EEXIST)
        return err_set(e, ERR_USAGE, "'%s' is the part of a killed recording: rename or remove it", r->part);
    if (r->fd < 0)
        return err_set(e, ERR_ENV, "cannot create '%s': %s", r->part, strerror(errno));
    buf_init(&head, 4096);
    recording_put_head(root.w, root.h, &head);
    int rc = file_write_all(r->fd, r->part, head.data, head.len, e);
    buf_free(&head);
    return rc;
}

/* Renames FILE.part to FILE, or deletes it if no step was written. Returns rc, or -1 with e. */
static int close_part(struct recorder *r, int rc, struct err *e)
{
    if (r->fd < 0)
        return rc;
    bool flushed = fsync(r->fd) == 0 && close(r->fd) == 0;
    r->fd = -1;
    if (!r->result->steps) {
        unlink(r->part);
        return rc ? rc : err_set(e, ERR_FAILED, "nothing was recorded");
    }
    if (!flushed || renameat2(AT_FDCWD, r->part, AT_FDCWD, r->o->path, RENAME_NOREPLACE))
        return rc ? rc
                  : err_set(e, ERR_ENV, "cannot write '%s': %s; the recording is in '%s'", r->o->path,
                            strerror(errno), r->part);
    return rc;
}

int recorder_run(const struct recorder_options *o, struct recorder_result *result, struct err *e)
{
    struct recorder *r = xcalloc(1, sizeof *r);
    const struct gesture_sink sink = {r, on_pointed, on_typing, on_done};
    *result = (struct recorder_result){0};
    r->o = o;
    r->result = result;
    r->fd = -1;
    if (getrandom(&r->salt, sizeof r->salt, 0) != sizeof r->salt)
        r->salt = (uint64_t)clock_ns();
    r->last_input = r->moved = clock_ns();
    r->gestures = gestures_new(&sink);
    r->elements = o->elements ? elements_open(screen_name(o->screen)) : NULL;
    r->redact = o->secrets ? redact_new() : NULL;
    int rc = (r->listen = listen_open(screen_name(o->screen), e)) ? open_part(r, e) : -1;
    if (rc == 0 && (rc = recorder_shoot(r, e)) == 0) {
        if (!o->quiet)
            fprintf(stderr, "holorun: recording %s; Escape twice ends it\n", screen_name(o->screen));
        rc = work(r, e);
        struct err late = ERR_INIT;
        if (finish(r, &late) && rc == 0) {
            *e = late;
            rc = -1;
        }
    }
    rc = close_part(r, rc, e);
    listen_close(r->listen);
    elements_close(r->elements);
    gestures_free(r->gestures);
    redact_free(r->redact);
    recorder_free_pictures(r);
    for (int i = 0; i < r->n_queue; i++)
        recorder_free_item(&r->queue[i]);
    free(r->part);
    free(r);
    return rc;
}
