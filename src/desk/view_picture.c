/* view_picture.c - the desktop as pixels for libvncserver, with the agent's pointer painted on them.
 *
 * XDamage reports the redrawn parts; they are fetched through shared memory, because the server is on this
 * machine.  The pointer is painted instead of sent as a cursor shape: viewers would draw a shape at the
 * position of their own mouse, but the user wants to see the agent's pointer. */
#include "desk/view_impl.h"

#include "screen/x11/xtrap.h"

#include <X11/Xutil.h>
#include <X11/extensions/Xdamage.h>
#include <X11/extensions/Xfixes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>

static bool clip(struct rect *r, int w, int h)
{
    int x1 = r->x + r->w < w ? r->x + r->w : w, y1 = r->y + r->h < h ? r->y + r->h : h;
    r->x = r->x > 0 ? r->x : 0;
    r->y = r->y > 0 ? r->y : 0;
    r->w = x1 - r->x;
    r->h = y1 - r->y;
    return r->w > 0 && r->h > 0;
}

/* ---- shared memory ---------------------------------------------------------------------------------- */

static void drop_image(struct picture *p)
{
    if (p->segment.shmaddr) {
        XShmDetach(p->dpy, &p->segment);
        shmdt(p->segment.shmaddr);
        p->segment.shmaddr = NULL;
    }
    if (p->image) {
        p->image->data = NULL; /* XDestroyImage would free() it */
        XDestroyImage(p->image);
    }
    p->image = NULL;
    free(p->pixels);
    p->pixels = NULL;
}

static int attach(struct picture *p)
{
    struct xtrap t;
    p->segment = (XShmSegmentInfo){.shmid = -1};
    p->segment.shmid = shmget(IPC_PRIVATE, (size_t)p->image->bytes_per_line * (size_t)p->h, IPC_CREAT | 0600);
    void *at = p->segment.shmid < 0 ? (void *)-1 : shmat(p->segment.shmid, NULL, 0);
    if (at != (void *)-1) {
        p->segment.shmaddr = p->image->data = at;
        xtrap_begin(&t, p->dpy);
        XShmAttach(p->dpy, &p->segment);
        if (xtrap_end(&t)) {
            shmdt(at);
            p->segment.shmaddr = NULL;
        }
    }
    if (p->segment.shmid >= 0)
        shmctl(p->segment.shmid, IPC_RMID, NULL); /* freed when both sides have detached */
    return p->segment.shmaddr ? 0 : -1;
}

static int make_image(struct picture *p, struct err *e)
{
    int number = DefaultScreen(p->dpy);
    XWindowAttributes root;
    XGetWindowAttributes(p->dpy, DefaultRootWindow(p->dpy), &root);
    p->w = root.width;
    p->h = root.height;
    p->image = XShmCreateImage(p->dpy, DefaultVisual(p->dpy, number), (unsigned)DefaultDepth(p->dpy, number),
                               ZPixmap, NULL, &p->segment, (unsigned)p->w, (unsigned)p->h);
    if (!p->image || p->image->bits_per_pixel != 32 || p->image->red_mask != 0xff0000 || attach(p))
        return err_set(e, ERR_ENV,
                       "cannot show this desktop: its pixels do not have 32 bits, or its X server has no "
                       "shared memory with this process");
    p->pixels = xcalloc((size_t)p->h, (size_t)p->w * 4);
    return 0;
}

int picture_open(struct picture *p, Display *dpy, struct err *e)
{
    int error, major = 2, minor = 0;
    *p = (struct picture){.dpy = dpy};
    if (!XShmQueryExtension(dpy) || !XFixesQueryExtension(dpy, &p->damage_event, &error) ||
        !XFixesQueryVersion(dpy, &major, &minor) || !XDamageQueryExtension(dpy, &p->damage_event, &error) ||
        !XDamageQueryVersion(dpy, &major, &minor))
        return err_set(e, ERR_ENV, "the X server of this desktop lacks MIT-SHM, XFixes or DAMAGE");
    XSelectInput(dpy, DefaultRootWindow(dpy), StructureNotifyMask);
    p->damage = XDamageCreate(dpy, DefaultRootWindow(dpy), XDamageReportNonEmpty);
    return make_image(p, e);
}

void picture_close(struct picture *p)
{
    drop_image(p);
}

/* ---- the pointer ------------------------------------------------------------------------------------ */

static void copy(struct picture *p, struct rect r)
{
    if (!clip(&r, p->w, p->h))
        return;
    for (int y = r.y; y < r.y + r.h; y++)
        memcpy(p->pixels + ((size_t)y * (size_t)p->w + (size_t)r.x) * 4,
               p->image->data + (size_t)y * (size_t)p->image->bytes_per_line + (size_t)r.x * 4,
               (size_t)r.w * 4);
}

/* Blends c, a premultiplied ARGB pixel, over a BGRX pixel. */
static void blend(uint8_t *to, uint32_t c)
{
    uint32_t rest = 255 - (c >> 24);
    for (int i = 0; i < 3; i++) {
        uint32_t v = (c >> 8 * i & 255) + to[i] * rest / 255;
        to[i] = (uint8_t)(v < 255 ? v : 255);
    }
}

static void paint(struct picture *p, const XFixesCursorImage *c)
{
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++) {
            int px = p->pointer.x + x, py = p->pointer.y + y;
            if (px >= 0 && py >= 0 && px < p->w && py < p->h)
                blend((uint8_t *)p->pixels + ((size_t)py * (size_t)p->w + (size_t)px) * 4,
                      (uint32_t)c->pixels[y * c->width + x]);
        }
}

/* ---- changes ---------------------------------------------------------------------------------------- */

/* Reads pending events; sets *redrawn if something was redrawn.  Returns true if the desktop has another
 * size. */
static bool read_events(struct picture *p, bool *redrawn)
{
    bool resized = false;
    while (XPending(p->dpy)) {
        XEvent ev;
        XNextEvent(p->dpy, &ev);
        *redrawn |= ev.type == p->damage_event + XDamageNotify;
        resized |=
            ev.type == ConfigureNotify && (ev.xconfigure.width != p->w || ev.xconfigure.height != p->h);
    }
    return resized;
}

static int fetch(struct picture *p)
{
    struct xtrap t;
    xtrap_begin(&t, p->dpy);
    XShmGetImage(p->dpy, DefaultRootWindow(p->dpy), p->image, 0, 0, AllPlanes);
    return xtrap_end(&t) ? -1 : 0;
}

/* Updates the damaged parts.  The damage is cleared before the pixels are fetched, so that later drawing is
 * reported again.  Returns -1 if the pixels cannot be fetched. */
static int update_damage(struct picture *p, void (*changed)(void *arg, struct rect r), void *arg)
{
    XserverRegion region = XFixesCreateRegion(p->dpy, NULL, 0);
    XDamageSubtract(p->dpy, p->damage, None, region);
    int n = 0, rc = fetch(p);
    XRectangle *list = XFixesFetchRegion(p->dpy, region, &n);
    XFixesDestroyRegion(p->dpy, region);
    for (int i = 0; list && i < n && rc == 0; i++) {
        struct rect r = {list[i].x, list[i].y, list[i].width, list[i].height};
        copy(p, r);
        if (clip(&r, p->w, p->h))
            changed(arg, r);
    }
    if (list)
        XFree(list);
    return rc;
}

static void update_pointer(struct picture *p, bool redrawn, void (*changed)(void *arg, struct rect r),
                           void *arg)
{
    XFixesCursorImage *c = XFixesGetCursorImage(p->dpy);
    if (!c)
        return;
    struct rect r = {c->x - c->xhot, c->y - c->yhot, c->width, c->height}, old = p->pointer;
    bool moved = memcmp(&r, &old, sizeof r) != 0 || c->cursor_serial != p->pointer_serial;
    if (moved || redrawn) {
        copy(p, old);
        p->pointer = r;
        p->pointer_serial = c->cursor_serial;
        paint(p, c);
        if (moved && clip(&old, p->w, p->h))
            changed(arg, old);
        if (clip(&r, p->w, p->h))
            changed(arg, r);
    }
    XFree(c);
}

int picture_update(struct picture *p, void (*changed)(void *arg, struct rect r), void *arg)
{
    bool redrawn = !p->pointer.w; /* in the first call */
    bool resized = read_events(p, &redrawn);
    if (resized) {
        struct err e = ERR_INIT;
        drop_image(p);
        p->pointer = (struct rect){0, 0, 0, 0};
        return make_image(p, &e) ? -1 : 1;
    }
    if (!p->pointer.w) {
        /* otherwise the initial damage would suppress later reports */
        XDamageSubtract(p->dpy, p->damage, None, None);
        if (fetch(p))
            return -1;
        copy(p, (struct rect){0, 0, p->w, p->h});
        changed(arg, (struct rect){0, 0, p->w, p->h});
    } else if (redrawn && update_damage(p, changed, arg)) {
        return -1;
    }
    update_pointer(p, redrawn, changed, arg);
    return 0;
}
