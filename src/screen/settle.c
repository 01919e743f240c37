/* settle.c - waits until the screen stops changing.
 *
 * The wait ends with one of three results, the first two after at least `min` ms:
 *   "quiet"     nothing was redrawn for `quiet` ms
 *   "stable"    two frames at least 200 ms apart have the same tiles; other changes are negligible
 *   "timeout"   `max` ms have passed
 * The display system reports redraws; if it does not, frames are hashed at 10 Hz. Time in which a program
 * that would draw waits for a CPU (cpu_wait.c) counts only towards `max`.
 *
 * Before "quiet" or "stable" is returned, the focused program must answer a ping. A late answer means that
 * the program was busy, perhaps with the effect of the action, and counts as a change.
 *
 * A small area that is redrawn repeatedly at one position is a text caret and is ignored, also in later
 * calls.
 *
 * A wait can pause early, after a short time without redraws, and continue in another thread. */
#include "screen/private.h"

#include "base/clock.h"

#include <stdlib.h>

enum {
    BLINK_W = 24,
    BLINK_H = 40, /* an area of this width or height or larger is not a caret */
    BLINK_TIMES = 3,
    POLL_MS = 10,
    COMPARE_MS = 200,
    HASH_MS = 100,
    REDRAWN_AREAS = 256,
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
    struct screen_rect redrawn;     /* since the last call of settle_redrawn() */
    double last_unknown;            /* like last_change, without areas that mostly change by themselves */
    double last_change, last_frame; /* ms since start, without cpu_wait_ms */
    struct cpu_wait cpu_wait;
    double cpu_wait_ms; /* so far */
    struct image frame[2];
    bool have_frame;
    uint64_t hash;
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

/* Notes the redrawn areas that are in the view and not carets. Returns false if redraws are not reported. */
static bool note_redrawn(struct screen *s, struct settle_run *w, double now)
{
    struct screen_rect area[REDRAWN_AREAS];
    int n = s->ops->redrawn(s, area, REDRAWN_AREAS);
    for (int i = 0; i < n; i++) {
        struct screen_rect r = screen_rect_intersect(area[i], s->view);
        if (!r.w || blinks(s, area[i]))
            continue;
        w->last_change = now;
        if (!observed_mostly_busy(s, r))
            w->last_unknown = now;
        w->redrawn = w->redrawn.w ? screen_rect_join(w->redrawn, r) : r;
    }
    return n >= 0;
}

/* Compares a new frame with the previous one; returns 1 if same, 0 if not or too early, -1 with e. */
static int frames_agree(struct screen *s, struct settle_run *w, double now, struct err *e)
{
    if (w->have_frame && now - w->last_frame < COMPARE_MS)
        return 0;
    if (screen_capture(s, &w->frame[1], e))
        return -1;
    bool same = w->have_frame && image_tiles_changed(&w->frame[0], &w->frame[1], tile_level) < tile_fraction;
    if (w->have_frame)
        observed_learn(s, &w->frame[0], &w->frame[1], same);
    struct image swap = w->frame[0];
    w->frame[0] = w->frame[1];
    w->frame[1] = swap;
    w->have_frame = true;
    w->last_frame = now;
    return same;
}

static double elapsed(const struct settle_run *w)
{
    return clock_ms_since(w->start) - w->cpu_wait_ms;
}

/* Sets last_change if the screen was redrawn; returns the ms to sleep before the next call, or -1 with e. */
static double poll_changes(struct screen *s, struct settle_run *w, struct err *e)
{
    w->cpu_wait_ms += cpu_wait_sample(&w->cpu_wait);
    screen_pump(s);
    double now = elapsed(w);
    if (s->lost || note_redrawn(s, w, now))
        return POLL_MS;
    if (screen_capture(s, &w->frame[1], e))
        return -1;
    uint64_t hash = image_hash(&w->frame[1]);
    if (hash != w->hash) {
        w->last_change = w->last_unknown = now;
        w->redrawn = s->view;
    }
    w->hash = hash;
    return HASH_MS;
}

/* Returns why the wait may end ("quiet" or "stable"), or NULL. *rc is -1 after an error. */
static const char *at_rest(struct screen *s, struct settle_run *w, const struct settle *p, double now,
                           int *rc, struct err *e)
{
    *rc = 0;
    if (now < p->min_ms)
        return NULL;
    if (now - w->last_change >= p->quiet_ms)
        return "quiet";
    int same = frames_agree(s, w, now, e);
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

struct settle_run *settle_begin(struct screen *s, const struct settle *p)
{
    struct settle_run *w = xcalloc(1, sizeof *w);
    *w = (struct settle_run){.screen = s, .start = clock_ns(), .result = {0, "timeout"}};
    w->limits = p ? *p : (struct settle){0};
    if (w->limits.min_ms <= 0)
        w->limits.min_ms = 150;
    if (w->limits.quiet_ms <= 0)
        w->limits.quiet_ms = 300;
    if (w->limits.max_ms <= 0)
        w->limits.max_ms = 3000;
    cpu_wait_begin(&w->cpu_wait, s);
    observed_begin_learning(s);
    return w;
}

double settle_look(struct settle_run *w, struct err *e)
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

int settle_pause(struct settle_run *w, double quiet_ms, struct err *e)
{
    for (;;) {
        double sleep = settle_look(w, e), now = elapsed(w);
        if (sleep < 0)
            return -1;
        if (w->over || (quiet_ms > 0 && now - w->last_unknown >= quiet_ms))
            return 0;
        if (screen_wait(w->screen, sleep, e))
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
