/* observed_view.c - compares a part of the view with the observed frame, pixel by pixel; see observed.h.
 *
 * Unlike the comparison around a target (observed_pixels.c), any difference of colour counts. */
#include "screen/observed_impl.h"

#include "base/clock.h"

enum { CARET_W = 2, CARET_H = 48 }; /* a difference of at most this size is a caret that blinks */

static bool is_caret_known(const struct screen *s, int x, int y)
{
    bool known = false;
    for (int i = 0; i < MAX_BLINKERS; i++)
        known = known || (s->blinkers[i].times > 2 && screen_rect_contains(s->blinkers[i].rect, x, y));
    return known;
}

/* Returns the smallest rectangle around the pixels that differ; w is 0 if none do. now: the pixels of r. */
static struct screen_rect differing(const struct screen *s, struct screen_rect r, const struct image *now)
{
    const struct observed *o = s->observed;
    int x0 = r.w, y0 = r.h, x1 = -1, y1 = -1;
    int64_t time = clock_ns();
    for (int y = 0; y < r.h; y++) {
        const uint8_t *is = now->rgb + 3 * (size_t)y * (size_t)r.w,
                      *was = o->frame.rgb + 3 * ((size_t)(r.y + y - o->view.y) * (size_t)o->frame.w +
                                                 (size_t)(r.x - o->view.x));
        for (int x = 0; x < r.w; x++) {
            if (observed_same_colour(is + 3 * x, was + 3 * x) ||
                observed_busy_at(o, r.x + x, r.y + y, time) || is_caret_known(s, r.x + x, r.y + y))
                continue;
            x0 = x < x0 ? x : x0, x1 = x > x1 ? x : x1;
            y0 = y < y0 ? y : y0, y1 = y;
        }
    }
    return (struct screen_rect){r.x + x0, r.y + y0, x1 < 0 ? 0 : x1 - x0 + 1, x1 < 0 ? 0 : y1 - y0 + 1};
}

int observed_view_changed(struct screen *s, struct screen_rect r, bool *changed, struct err *e)
{
    const struct observed *o = observed_active(s);
    struct screen_rect view;
    struct image now = {0};
    *changed = false;
    if (!o)
        return 0;
    if (screen_view_now(s, &view, e))
        return -1;
    if (view_is_active(s) && !s->lost &&
        s->ops->focus_top(s) != o->focus_top) { /* another window is the view */
        *changed = true;
        return 0;
    }
    if (view.x != o->view.x || view.y != o->view.y || view.w != o->frame.w || view.h != o->frame.h) {
        *changed = true;
        return 0;
    }
    r = screen_rect_intersect(screen_rect_intersect(r, view), s->root_rect);
    if (!r.w || !r.h)
        return 0;
    int rc = image_alloc(&now, r.w, r.h, e) || s->ops->capture(s, r, now.rgb, e) ? -1 : 0;
    if (rc == 0) {
        struct screen_rect d = differing(s, r, &now);
        *changed = d.w > CARET_W || d.h > CARET_H;
    }
    image_free(&now);
    return rc;
}
