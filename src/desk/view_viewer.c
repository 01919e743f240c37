/* view_viewer.c - one viewer, in its own process, until it disconnects.
 *
 * libvncserver implements the protocol.  It gets the password, and every FRAME_MS the changed pixels of
 * view_picture.c; keys and buttons go to view_input.c.  File transfer, clipboard and its other features stay
 * off.  A viewer that does not authenticate in time, or does not read, is disconnected. */
#include "desk/view_impl.h"

#include "base/clock.h"
#include "screen/x11/xtrap.h"

#include <poll.h>
#include <rfb/rfb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* GREETING_MS: time for the protocol's version and the type of password; PASSWORD_MS: time to type it */
enum {
    FRAME_MS = 30,
    GREETING_MS = 5000,
    PASSWORD_MS = 30000,
    STALLED_MS = 5000,
    BITS = 8,
    SAMPLES = 3,
    BYTES = 4
};

struct viewer {
    rfbScreenInfoPtr rfb;
    rfbClientPtr client; /* NULL: the viewer has disconnected */
    struct picture picture;
    struct viewer_input input;
    const char *password; /* NULL: none */
    struct viewer_shared *shared;
    int slot;
    uid_t user; /* at the other end */
    atomic_bool lost;
};

static struct viewer *of(rfbClientPtr client)
{
    return client->screen->screenData;
}

/* ---- callbacks of libvncserver ------------------------------------------------------------------------- */

static void on_key(rfbBool down, rfbKeySym keysym, rfbClientPtr client)
{
    viewer_input_key(&of(client)->input, (unsigned)keysym, down);
}

static void on_pointer(int buttons, int x, int y, rfbClientPtr client)
{
    viewer_input_pointer(&of(client)->input, (unsigned)buttons, x, y);
}

static void on_release(rfbClientPtr client)
{
    viewer_input_release(of(client)->input.dpy, of(client)->input.down);
}

static void on_gone(rfbClientPtr client)
{
    of(client)->client = NULL;
}

static rfbBool on_password(rfbClientPtr client, const char *response, int n)
{
    struct viewer *v = of(client);
    unsigned char expected[CHALLENGESIZE];
    char password[PASSWORD + 1];
    if (!lockout_try(&v->shared->lockout, v->user))
        return FALSE;
    snprintf(password, sizeof password, "%s", v->password);
    memcpy(expected, client->authChallenge, CHALLENGESIZE);
    rfbEncryptBytes(expected, password);
    unsigned differs = n != CHALLENGESIZE;
    for (int i = 0; i < CHALLENGESIZE && i < n; i++)
        differs |= expected[i] ^ (unsigned char)response[i];
    if (!differs)
        lockout_right(&v->shared->lockout, v->user);
    return !differs;
}

static void be_quiet(const char *format, ...)
{
}

static void on_changed(void *arg, struct rect r)
{
    const struct viewer *v = arg;
    rfbMarkRectAsModified(v->rfb, r.x, r.y, r.x + r.w, r.y + r.h);
}

/* ---- life cycle ---------------------------------------------------------------------------------------- */

static void describe_pixels(rfbScreenInfoPtr rfb)
{
    rfb->serverFormat.redShift = 16; /* BGRX */
    rfb->serverFormat.greenShift = 8;
    rfb->serverFormat.blueShift = 0;
}

/* Starts the protocol on fd.  Without argc and argv the library reads no options, and with port 0 it does not
 * listen.  Returns -1 on failure. */
static int open_protocol(struct viewer *v, int fd, const char *name)
{
    rfbLog = rfbErr = be_quiet;
    rfbMaxClientWait = STALLED_MS;
    rfbScreenInfoPtr rfb = v->rfb =
        rfbGetScreen(NULL, NULL, v->picture.w, v->picture.h, BITS, SAMPLES, BYTES);
    if (!rfb)
        return -1;
    describe_pixels(rfb);
    rfb->screenData = v;
    rfb->frameBuffer = v->picture.pixels;
    rfb->desktopName = name;
    rfb->autoPort = FALSE;
    rfb->port = rfb->ipv6port = rfb->udpPort = 0;
    rfb->cursor = NULL;
    rfb->alwaysShared = TRUE;
    rfb->deferUpdateTime = 0;
    rfb->maxClientWait = STALLED_MS;
    rfb->permitFileTransfer = FALSE;
    rfb->kbdAddEvent = on_key;
    rfb->ptrAddEvent = on_pointer;
    rfb->kbdReleaseAllKeys = on_release;
    if (v->password) {
        rfb->authPasswdData = (void *)(uintptr_t)v->password;
        rfb->passwordCheck = on_password;
    }
    rfbInitServer(rfb);
    v->client = rfbNewClient(rfb, fd);
    if (v->client)
        v->client->clientGoneHook = on_gone;
    return v->client ? 0 : -1;
}

/* Drops the rights to create files and child processes: a large library parses data of unknown clients
 * here. */
static void give_up_rights(void)
{
    static const int limits[] = {RLIMIT_FSIZE, RLIMIT_CORE, RLIMIT_NPROC};
    const struct rlimit none = {0, 0};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        setrlimit((__rlimit_resource_t)limits[i], &none);
}

static int show(struct viewer *v)
{
    int what = picture_update(&v->picture, on_changed, v);
    if (what > 0) {
        rfbNewFramebuffer(v->rfb, v->picture.pixels, v->picture.w, v->picture.h, BITS, SAMPLES, BYTES);
        describe_pixels(v->rfb);
    }
    return what < 0 ? -1 : 0;
}

/* Returns whether the viewer has exceeded the time to authenticate. */
static bool is_slow(const struct viewer *v, int64_t start)
{
    bool asked = v->client->state == RFB_AUTHENTICATION || v->client->state == RFB_INITIALISATION;
    return clock_ms_since(start) > (asked ? PASSWORD_MS : GREETING_MS);
}

/* Returns whether VIEWERS_MAX other viewers are connected. */
static bool is_full(const struct viewer *v)
{
    int n = 0;
    for (int i = 0; i < VIEWER_SLOTS; i++)
        n += i != v->slot && v->shared->known[i];
    return n >= VIEWERS_MAX;
}

static void serve(struct viewer *v)
{
    int64_t start = clock_ns(), frame = 0;
    while (v->client && !v->lost) {
        double left = FRAME_MS - clock_ms_since(frame);
        struct pollfd p = {.fd = v->client->sock, .events = POLLIN};
        if (left > 0)
            poll(&p, 1, (int)left + 1);
        bool known = v->client->state == RFB_NORMAL;
        if (known ? is_full(v) && !v->shared->known[v->slot] : is_slow(v, start))
            rfbCloseClient(v->client);
        else
            v->shared->known[v->slot] = known;
        if (clock_ms_since(frame) >= FRAME_MS) {
            if (known && show(v))
                return;
            frame = clock_ns();
        }
        rfbProcessEvents(v->rfb, 0);
    }
}

void viewer_serve(int fd, const char *display, const char *password, struct viewer_shared *shared, int slot)
{
    static struct viewer v;
    struct err e = ERR_INIT;
    char name[64];
    v.password = password && *password ? password : NULL;
    v.shared = shared;
    v.slot = slot;
    v.user = lockout_user(fd);
    Display *dpy = xtrap_open(display, &v.lost);
    if (!dpy || picture_open(&v.picture, dpy, &e)) {
        warn("cannot show the desktop to a viewer: %s", dpy ? e.text : "the display was closed");
        return;
    }
    viewer_input_open(&v.input, dpy, &shared->down[slot]);
    give_up_rights();
    snprintf(name, sizeof name, "holorun desk %s", display);
    if (open_protocol(&v, fd, name))
        return;
    serve(&v);
    if (!v.lost) {
        viewer_input_close(&v.input);
        picture_close(&v.picture);
        XSync(dpy, False);
    }
}
