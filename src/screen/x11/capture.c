/* capture.c - copies areas of the root window, and reports which were redrawn.
 *
 * Shared memory (MIT-SHM) avoids the copy through the socket: 0.5 ms instead of 17 ms for a full HD
 * screen. It works only if server and client share memory, which cannot be known without trying: after the
 * first failure XGetImage is used. */
#include "screen/x11/x11_impl.h"

#include <X11/extensions/Xfixes.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>

/* ---- shared memory ------------------------------------------------------------------------------ */

static void drop_last(struct x11 *x)
{
    if (!x->last)
        return;
    if (x->segment_bytes)
        x->last->data = NULL; /* belongs to the segment; XDestroyImage would free() it */
    XDestroyImage(x->last);
    x->last = NULL;
}

static void drop_segment(struct screen *s)
{
    struct x11 *x = s->x11;
    drop_last(x);
    if (x->segment_bytes && !s->lost)
        XShmDetach(x->dpy, &x->segment);
    if (x->segment_bytes)
        shmdt(x->segment.shmaddr);
    x->segment_bytes = 0;
}

/* Creates a segment. Returns false, with the reason in shm_why, if that fails. */
static bool make_segment(struct screen *s, size_t bytes)
{
    struct x11 *x = s->x11;
    x->segment = (XShmSegmentInfo){.shmid = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600)};
    void *at = x->segment.shmid < 0 ? (void *)-1 : shmat(x->segment.shmid, NULL, 0);
    x->shm_why = at == (void *)-1 ? "cannot allocate shared memory" : NULL;
    if (at != (void *)-1) {
        struct xtrap t;
        xtrap_begin(&t, x->dpy);
        x->segment.shmaddr = at;
        bool attached = XShmAttach(x->dpy, &x->segment);
        if (xtrap_end(&t) || !attached) {
            x->shm_why = "the server cannot attach our shared memory";
            shmdt(at);
        }
    }
    if (x->segment.shmid >= 0)
        shmctl(x->segment.shmid, IPC_RMID, NULL); /* freed after both sides have detached */
    x->segment_bytes = x->shm_why ? 0 : bytes;
    return !x->shm_why;
}

/* Returns an image whose pixels are in the segment, which grows if necessary. Returns NULL, with the reason
 * in shm_why, without shared memory. */
static XImage *shm_image(struct screen *s, int w, int h)
{
    struct x11 *x = s->x11;
    if (s->options.no_shm)
        x->shm_why = "disabled";
    if (!x->shm_why && !XShmQueryExtension(x->dpy))
        x->shm_why = "the server has no MIT-SHM";
    XImage *im = x->shm_why ? NULL
                            : XShmCreateImage(x->dpy, x->visual, (unsigned)x->depth, ZPixmap, NULL,
                                              &x->segment, (unsigned)w, (unsigned)h);
    if (!im) {
        x->shm_why = x->shm_why ? x->shm_why : "the server refuses the image format";
        return NULL;
    }
    size_t bytes = (size_t)im->bytes_per_line * (size_t)h;
    if (bytes > x->segment_bytes) {
        drop_segment(s);
        if (!make_segment(s, bytes)) {
            XDestroyImage(im);
            return NULL;
        }
    }
    im->data = x->segment.shmaddr;
    return im;
}

/* ---- interface -------------------------------------------------------------------------------------- */

int x11_capture(struct screen *s, struct screen_rect r, uint8_t *rgb, struct err *e)
{
    struct x11 *x = s->x11;
    bool ok;
    struct xtrap t;
    drop_last(x);
    x->last = shm_image(s, r.w, r.h);
    xtrap_begin(&t, x->dpy);
    if (x->last) {
        ok = XShmGetImage(x->dpy, x->root, x->last, r.x, r.y, AllPlanes);
    } else {
        x->last = XGetImage(x->dpy, x->root, r.x, r.y, (unsigned)r.w, (unsigned)r.h, AllPlanes, ZPixmap);
        ok = x->last != NULL;
    }
    int code = xtrap_end(&t);
    if (screen_alive(s, e))
        return -1;
    if (!ok || code) {
        drop_last(x); /* undefined pixels */
        return err_set(e, ERR_ENV, "display '%s' refused a screenshot of %dx%d+%d+%d (X error %d)", s->name,
                       r.w, r.h, r.x, r.y, code);
    }
    return pixels_to_rgb(x->last, rgb, r.w, r.h, e);
}

bool x11_recall(struct screen *s, int w, int h, uint8_t *rgb)
{
    const XImage *last = s->x11->last;
    return last && last->width == w && last->height == h && pixels_to_rgb(last, rgb, w, h, NULL) == 0;
}

void x11_draw_cursor(struct screen *s, struct image *im)
{
    XFixesCursorImage *c = s->x11->xfixes ? XFixesGetCursorImage(s->x11->dpy) : NULL;
    if (!c)
        return;
    pixels_blend(im, c->pixels, c->x - c->xhot - s->view.x, c->y - c->yhot - s->view.y, c->width, c->height);
    XFree(c);
}

int x11_redrawn(struct screen *s, struct screen_rect *out, int max)
{
    struct x11 *x = s->x11;
    if (!x->damage || !x->damage_waiting)
        return x->damage ? 0 : -1;
    x->damage_waiting = false;
    XserverRegion region = XFixesCreateRegion(x->dpy, NULL, 0);
    XDamageSubtract(x->dpy, x->damage, None, region);
    int n = 0, found = 0;
    XRectangle *rects = XFixesFetchRegion(x->dpy, region, &n);
    XFixesDestroyRegion(x->dpy, region);
    for (int i = 0; rects && i < n; i++) {
        struct screen_rect r = {rects[i].x, rects[i].y, rects[i].width, rects[i].height};
        if (found < max)
            out[found++] = r;
        else
            out[max - 1] = screen_rect_join(out[max - 1], r);
    }
    if (rects)
        XFree(rects);
    return found;
}

void capture_open(struct screen *s)
{
    if (s->x11->damage_event)
        s->x11->damage = XDamageCreate(s->x11->dpy, s->x11->root, XDamageReportNonEmpty);
}

void capture_close(struct screen *s)
{
    if (s->x11->damage && !s->lost)
        XDamageDestroy(s->x11->dpy, s->x11->damage);
    s->x11->damage = None;
    drop_segment(s);
}
