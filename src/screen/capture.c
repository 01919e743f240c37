/* capture.c - screenshots of the view. */
#include "screen/private.h"

/* Captures the view into *out, which it allocates or reuses. */
static int capture_view(struct screen *s, struct image *out, struct err *e)
{
    if (out->w != s->view.w || out->h != s->view.h || !out->rgb) {
        image_free(out);
        if (image_alloc(out, s->view.w, s->view.h, e))
            return -1;
    }
    return s->ops->capture(s, s->view, out->rgb, e);
}

int screen_capture(struct screen *s, struct image *out, struct err *e)
{
    struct screen_rect r;
    if (view_is_active(s) && !s->lost)
        active_view_pick(s);
    if (screen_view_now(s, &r, e))
        return -1;
    /* The screen may have been resized after the view was read: retry once. */
    if (capture_view(s, out, e) && (s->lost || monitors_update(s, e) || capture_view(s, out, e)))
        return -1;
    active_view_pad(s, out);
    if (s->options.cursor)
        s->ops->draw_cursor(s, out);
    return 0;
}
