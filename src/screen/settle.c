/* settle.c - waits until the screen stops changing.
 *
 * The wait ends with one of four results, "quiet" and "stable" after at least `min` ms:
 *   "known"     the caller's function accepts the screen, and still does after KNOWN_MS
 *   "quiet"     nothing new was drawn for `quiet` ms
 *   "stable"    the frames of `quiet` ms, at least 200, have the same tiles; other changes are negligible
 *   "timeout"   `max` ms have passed
 * The display system reports redraws; if it does not, the view is captured at 10 Hz. Time in which a program
 * that would draw waits for a CPU (cpu_wait.c) counts only towards `max` and the wait for a next change.
 *
 * Before any of the first three is returned, the focused program must answer a ping. A late answer means
 * that the program was busy, perhaps with the effect of the action, and counts as a change.
 *
 * A small area that is redrawn repeatedly at one position is a text caret and is ignored, also in later
 * calls. Other repetitions are those of seen.c.
 *
 * A wait can pause early, after a short time without redraws, and continue in another thread. One that is
 * over can be continued until the next change, if the caller expects one (settle_await_change()). */
#include "screen/private.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLINK_W = 24,
    BLINK_H = 40, /* an area of this width or height or larger is not a caret */
    BLINK_TIMES = 3,
    LOOK_MS = 10, /* between two looks at areas that are redrawn all the time */
    CPU_MS = 20,  /* between two samples of the CPU wait */
    COMPARE_MS = 200,
    CAPTURE_MS = 100,
    KNOWN_MS = 32, /* two frames of a display with 60 Hz */
    REDRAWN_AREAS = 16,
};
static const double blink_forget_ms = 5000;
/* difference from which a tile has changed: a caret or one character gives about 1.6, a word 4.5 */
static const double tile_level = 3.0;
static const double tile_fraction = 0.001; /* two frames are the same below this fraction of changed tiles */

struct settle_run {
    struct screen *screen;
    struct settle limits;
    struct settled result;
    bool over;
    int64_t start;
    struct screen_rect redrawn; /* since the last call of settle_redrawn() */
    double last_unknown;        /* like last_change, without areas that mostly change by themselves */
    /* ms since start, without cpu_wait_ms. same_since: the age of frame[0], which later frames equal */
    double last_change, last_frame, same_since;
    struct cpu_wait cpu_wait;
    double cpu_wait_ms; /* so far */
    struct image frame[2];
    bool have_frame;
    struct seen seen;
    bool look_again;    /* something was redrawn since the last call of settle.known */
    double known_asked; /* ms since start of that call */
    double known_since; /* ms since start; below 0: the screen is not known */
    /* ms since start, the second with cpu_wait_ms; without a change after the first the wait lasts until the
     * second */
    double await_from, await_until;
};

/* Returns whether r is a known caret; adds a small unknown r to the candidates, replacing the oldest. */
static bool blinks(struct screen *s, struct screen_rect r)
{
    if (r.w >= BLINK_W || r.h >= BLINK_H)
        return false;
    struct blinker *slot = &s->blinkers[0];
    for (int i = 0; i < MAX_BLINKERS; i++) {
        struct blinker *b = &s->blinkers[i];
        bool here = b->times && b->rect.x == r.x && b->rect.y == r.y;
        if (here && clock_ms_since(b->last_ns) < blink_forget_ms) {
            b->last_ns = clock_ns();
            return ++b->times > BLINK_TIMES;
        }
        if (here || b->last_ns < slot->last_ns)
            slot = b;
    }
    *slot = (struct blinker){r, 1, clock_ns()};
    return false;
}

/* Returns whether a redrawn area in the view counts as a change. A program may redraw more than its caret:
 * then the pixels that differ are the caret. A redraw without a difference counts, because the program is at
 * work. */
static bool area_counts(struct screen *s, struct settle_run *w, struct screen_rect area)
{
    struct screen_rect differs;
    bool caret = blinks(s, area);
    enum seen_kind kind = seen_look(&w->seen, s, area, &differs);
    bool within = kind == SEEN_NEW && (differs.w < area.w || differs.h < area.h);
    return !caret && kind != SEEN_REPEATED && !(within && blinks(s, differs));
}

static void note_change(struct settle_run *w, struct screen_rect r, double now)
{
    w->last_change = now;
    if (!observed_mostly_busy(w->screen, r))
        w->last_unknown = now;
    w->redrawn = w->redrawn.w ? screen_rect_join(w->redrawn, r) : r;
    w->look_again = true;
}

/* Notes the redrawn areas in the view that count as changes. Returns 1 if anything in the view
 * was redrawn, 0 if not, -1 if redraws are not reported. */
static int note_redrawn(struct screen *s, struct settle_run *w, double now)
{
    struct screen_rect area[REDRAWN_AREAS];
    int n = s->ops->redrawn(s, area, REDRAWN_AREAS), any = n < 0 ? -1 : 0;
    for (int i = 0; i < n; i++) {
        struct screen_rect r = screen_rect_intersect(area[i], s->view);
        if (!r.w || !r.h)
            continue;
        any = 1;
        if (area_counts(s, w, area[i]))
            note_change(w, r, now);
    }
    return any;
}

/* Returns the age that the first of equal frames must have. */
static double stable_ms(const struct settle *p)
{
    return fmax(p->quiet_ms, COMPARE_MS);
}

/* Compares a new frame with the oldest one that all later ones equal, which is replaced if it differs.
 * Returns 1 if that one is old enough, 0 if not or if it is too early to compare, -1 with e. */
static int frames_agree(struct screen *s, struct settle_run *w, const struct settle *p, double now,
                        struct err *e)
{
    bool due = now - w->same_since >= stable_ms(p);
    if (w->have_frame && !due && now - w->last_frame < COMPARE_MS)
        return 0;
    if (screen_capture(s, &w->frame[1], e))
        return -1;
    bool same = w->have_frame && image_tiles_changed(&w->frame[0], &w->frame[1], tile_level) < tile_fraction;
    if (w->have_frame)
        observed_learn(s, &w->frame[0], &w->frame[1], same && due);
    w->last_frame = now;
    if (same)
        return due;
    struct image swap = w->frame[0];
    w->frame[0] = w->frame[1];
    w->frame[1] = swap;
    w->have_frame = true;
    w->same_since = now;
    return 0;
}

static double elapsed(const struct settle_run *w)
{
    return clock_ms_since(w->start) - w->cpu_wait_ms;
}

/* Sets last_change if something new was drawn; returns the ms to sleep at least, or -1 with e. Redraws
 * that only repeat need the pause too, because each look captures them. */
static double poll_changes(struct screen *s, struct settle_run *w, struct err *e)
{
    w->cpu_wait_ms += cpu_wait_sample(&w->cpu_wait);
    screen_pump(s);
    double now = elapsed(w);
    int changed = s->lost ? 0 : note_redrawn(s, w, now);
    if (changed >= 0)
        return changed ? LOOK_MS : 0;
    struct screen_rect differs;
    if (seen_look(&w->seen, s, s->view, &differs) == SEEN_NEW && !blinks(s, differs))
        note_change(w, s->view, now);
    return screen_alive(s, e) ? -1 : CAPTURE_MS;
}

/* Returns 1 if the caller has accepted the screen for KNOWN_MS, 0 if not, -1 with e. Looks again after the
 * screen was redrawn, and every CAPTURE_MS, because titles change without that. */
static int is_known(struct screen *s, struct settle_run *w, const struct settle *p, double now, struct err *e)
{
    if (!p->known)
        return 0;
    if (w->look_again || now - w->known_asked >= CAPTURE_MS) {
        w->look_again = false;
        w->known_asked = now;
        if (screen_capture(s, &w->frame[1], e))
            return -1;
        bool yes = p->known(p->arg, &w->frame[1]);
        w->known_since = !yes ? -1 : w->known_since < 0 ? now : w->known_since;
    }
    return w->known_since >= 0 && now - w->known_since >= KNOWN_MS;
}

static bool awaits_change(const struct settle_run *w, double now)
{
    return now + w->cpu_wait_ms < w->await_until && w->last_change <= w->await_from;
}

/* Returns why the wait may end ("known", "quiet" or "stable"), or NULL. *rc is -1 after an error. */
static const char *at_rest(struct screen *s, struct settle_run *w, const struct settle *p, double now,
                           int *rc, struct err *e)
{
    int known = is_known(s, w, p, now, e);
    *rc = known < 0 ? -1 : 0;
    if (known)
        return known > 0 ? "known" : NULL;
    if (now < p->min_ms || awaits_change(w, now))
        return NULL;
    if (now - w->last_change >= p->quiet_ms)
        return "quiet";
    int same = frames_agree(s, w, p, now, e);
    *rc = same < 0 ? -1 : 0;
    return same > 0 ? "stable" : NULL;
}

/* Returns whether the focused program answers a ping in time. A program that was busy may be about to draw,
 * so its late answer counts as a change. */
static bool program_idle(struct screen *s, struct settle_run *w, const struct settle *p, int *rc,
                         struct err *e)
{
    bool late = false;
    double left = p->max_ms - elapsed(w) - w->cpu_wait_ms;
    *rc = s->ops->ping(s, left > 0 ? left : 0, &late, e);
    if (*rc == 0 && late) {
        w->last_change = elapsed(w);
        w->have_frame = false;
    }
    return !late;
}

/* Returns the ms until the wait may end or must look again, if nothing is redrawn until then. */
static double until_next(const struct settle_run *w, const struct settle *p)
{
    double now = elapsed(w), rest = fmax(p->min_ms - now, p->quiet_ms - (now - w->last_change));
    if (awaits_change(w, now))
        return fmin(w->await_until - now - w->cpu_wait_ms, CPU_MS);
    double frame = w->have_frame
                       ? fmin(COMPARE_MS - (now - w->last_frame), stable_ms(p) - (now - w->same_since))
                       : CPU_MS;
    double ms = fmin(fmin(rest, fmax(p->min_ms - now, frame)), p->max_ms - now - w->cpu_wait_ms);
    return fmax(0, fmin(ms, CPU_MS));
}

static double given(double ms, double otherwise)
{
    return ms >= 0 ? ms : otherwise;
}

/* Captures the view, with all that was redrawn before. */
static void begin_looking(struct screen *s, struct settle_run *w)
{
    struct screen_rect unused[1];
    screen_pump(s);
    if (!s->lost)
        s->ops->redrawn(s, unused, 1);
    seen_begin(&w->seen, s);
    w->have_frame = w->seen.shown.rgb && image_copy(&w->frame[0], &w->seen.shown, NULL) == 0;
}

struct settle settle_limits(const struct settle *p)
{
    struct settle l = p ? *p : (struct settle){-1, -1, -1};
    l.quiet_ms = given(l.quiet_ms, 300);
    l.min_ms = given(l.min_ms, fmin(150, l.quiet_ms));
    l.max_ms = given(l.max_ms, fmax(3000, l.quiet_ms + 2700));
    return l;
}

struct settle_run *settle_begin(struct screen *s, const struct settle *p)
{
    struct settle_run *w = xcalloc(1, sizeof *w);
    *w = (struct settle_run){.screen = s,
                             .limits = settle_limits(p),
                             .start = clock_ns(),
                             .result = {0, "timeout"},
                             .look_again = true,
                             .known_since = -1};
    cpu_wait_begin(&w->cpu_wait, s);
    observed_begin_learning(s);
    begin_looking(s, w);
    return w;
}

/* Checks once for redraws. Returns the ms to sleep before anything else is checked, or -1 with e. */
static double look_once(struct settle_run *w, struct err *e)
{
    struct screen *s = w->screen;
    int rc = 0;
    double sleep = poll_changes(s, w, e), now = elapsed(w);
    if (sleep < 0 || screen_alive(s, e))
        return -1;
    if (w->over)
        return sleep;
    const char *why = at_rest(s, w, &w->limits, now, &rc, e);
    if (why && rc == 0 && !program_idle(s, w, &w->limits, &rc, e))
        why = NULL;
    if (!why && now + w->cpu_wait_ms >= w->limits.max_ms)
        why = "timeout";
    if (rc)
        return -1;
    if (why) {
        w->over = true;
        w->result = (struct settled){clock_ms_since(w->start), why};
    }
    return sleep;
}

double settle_look(struct settle_run *w, struct err *e)
{
    double sleep = look_once(w, e);
    return sleep < 0 ? -1 : fmax(sleep, LOOK_MS);
}

int settle_pause(struct settle_run *w, double quiet_ms, struct err *e)
{
    for (;;) {
        double sleep = look_once(w, e), quiet = quiet_ms - (elapsed(w) - w->last_unknown);
        if (sleep < 0)
            return -1;
        if (w->over || (quiet_ms > 0 && quiet <= 0))
            return 0;
        double next = until_next(w, &w->limits);
        if (screen_wait(w->screen, sleep, e) ||
            screen_wait_event(w->screen, quiet_ms > 0 ? fmin(next, quiet) : next, e))
            return -1;
    }
}

bool settle_over(const struct settle_run *w, struct settled *out)
{
    *out = w->result;
    if (!w->over)
        *out = (struct settled){clock_ms_since(w->start), "early"};
    return w->over;
}

bool settle_await_change(struct settle_run *w, double ms)
{
    bool rests = !strcmp(w->result.why, "quiet") || !strcmp(w->result.why, "stable");
    if (!w->over || !rests)
        return false;
    w->over = false;
    w->await_from = elapsed(w);
    w->await_until = w->await_from + w->cpu_wait_ms + ms;
    return true;
}

const struct image *settle_shown(const struct settle_run *w)
{
    return &w->seen.shown;
}

struct screen_rect settle_redrawn(struct settle_run *w)
{
    struct screen_rect r = w->redrawn;
    w->redrawn = (struct screen_rect){0};
    return r;
}

void settle_end(struct settle_run *w)
{
    if (!w)
        return;
    cpu_wait_end(&w->cpu_wait);
    seen_end(&w->seen);
    image_free(&w->frame[0]);
    image_free(&w->frame[1]);
    free(w);
}

int screen_settle(struct screen *s, const struct settle *p, struct settled *out, struct err *e)
{
    struct settle_run *w = settle_begin(s, p);
    int rc = settle_pause(w, 0, e);
    settle_over(w, out);
    if (rc)
        out->why = stop_check(s->stop, NULL) ? "stopped" : "timeout";
    settle_end(w);
    return rc;
}
