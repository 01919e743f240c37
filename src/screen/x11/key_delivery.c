/* key_delivery.c - detects when the focused program has consumed the keys sent to it.
 *
 * A program translates a key when it reads the event, with the keyboard map of that moment. Until it has read
 * a key, the meaning of that key must not change; and while the map changes, the result is undefined.
 *
 *   a program with _NET_WM_PING (all toolkits)   answers a ping after all earlier keys
 *   another local program                        has consumed all keys if its sockets to the display are
 *                                                empty and its main thread sleeps, at two checks in a row
 *   a program on another machine                 cannot be determined
 *   none                                         no window has the focus, or the focused window selects no
 *                                                key events: the keys are lost
 *
 * Programs that receive keys only through XInput do not select core key events, but they are toolkits, which
 * answer pings. */
#include "screen/x11/x11_impl.h"

#include "base/buf.h"
#include "base/clock.h"

#include <X11/Xatom.h>
#include <X11/Xlibint.h> /* resource_mask, and requests of an extension without a library here */
#include <X11/extensions/XResproto.h>
#undef min
#undef max
#undef xmalloc
#undef xrealloc
#undef xfree
#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    SEARCH_WINDOWS = 300,
    SEARCH_DEPTH = 4,
    LOOK_MS = 10,
    LATE_MS = 60, /* an idle program answers a ping sooner */
    EXISTS_MS = 200,
    FOCUS_MS = 1000,   /* time for a window to take the focus after a click, on a busy machine */
    MAX_SOCKETS = 256, /* of one process */
    DIAG_BYTES = 32 << 10,
};

/* ---- the window to ping ------------------------------------------------------------------------------ */

bool same_client(struct screen *s, Window a, Window b)
{
    return (a & ~s->x11->dpy->resource_mask) == (b & ~s->x11->dpy->resource_mask);
}

static bool answers_pings(struct screen *s, Window w)
{
    Atom *list = NULL, ping = XInternAtom(s->x11->dpy, "_NET_WM_PING", False);
    int n = 0;
    bool found = false;
    if (XGetWMProtocols(s->x11->dpy, w, &list, &n))
        for (int i = 0; i < n; i++)
            found = found || list[i] == ping;
    if (list)
        XFree(list);
    return found;
}

/* Returns any window of this client, at or below w, that answers pings. */
static Window search(struct screen *s, Window client, Window w, int depth, int *budget)
{
    Window root, parent, *children = NULL, found = None;
    unsigned n = 0;
    if (depth > SEARCH_DEPTH || --*budget < 0)
        return None;
    if (w != s->x11->root && same_client(s, w, client) && answers_pings(s, w))
        return w;
    if (XQueryTree(s->x11->dpy, w, &root, &parent, &children, &n))
        for (unsigned i = n; i-- > 0 && !found;)
            found = search(s, client, children[i], depth + 1, budget);
    if (children)
        XFree(children);
    return found;
}

int client_pid(struct screen *s, XID resource)
{
    Display *dpy = s->x11->dpy;
    int opcode, event, error;
    uint32_t pid = 0, answer[4]; /* client, mask, bytes, pid */
    xXResQueryClientIdsReq *req;
    xXResQueryClientIdsReply rep;
    if (!XQueryExtension(dpy, "X-Resource", &opcode, &event, &error))
        return 0;
    LockDisplay(dpy);
    GetReqExtra(XResQueryClientIds, sz_xXResClientIdSpec, req);
    req->reqType = (CARD8)opcode;
    req->XResReqType = X_XResQueryClientIds;
    req->numSpecs = 1;
    const xXResClientIdSpec spec = {(CARD32)resource, X_XResLocalClientPIDMask};
    memcpy(req + 1, &spec, sizeof spec);
    if (_XReply(dpy, (xReply *)&rep, 0, xFalse)) {
        if (rep.numIds == 1 && rep.length == sizeof answer / 4) {
            _XRead(dpy, (char *)answer, sizeof answer);
            pid = answer[2] == 4 ? answer[3] : 0;
        } else {
            _XEatDataWords(dpy, rep.length);
        }
    }
    UnlockDisplay(dpy);
    SyncHandle();
    return pid <= INT32_MAX ? (int)pid : 0;
}

/* Returns whether any client selects key events of this window or a descendant. */
static bool asks_for_keys(struct screen *s, Window w, int depth, int *budget)
{
    XWindowAttributes a;
    Window root, parent, *children = NULL;
    unsigned n = 0;
    if (depth > SEARCH_DEPTH || --*budget < 0 || !XGetWindowAttributes(s->x11->dpy, w, &a))
        return false;
    bool found = a.all_event_masks & (KeyPressMask | KeyReleaseMask);
    if (!found && XQueryTree(s->x11->dpy, w, &root, &parent, &children, &n))
        for (unsigned i = n; i-- > 0 && !found;)
            found = asks_for_keys(s, children[i], depth + 1, budget);
    if (children)
        XFree(children);
    return found;
}

/* Returns whether any client selects key events of the focused window, its ancestors or its descendants: keys
 * that no client selects propagate to the ancestors. */
static bool chain_asks_for_keys(struct screen *s, const Window *chain, int n)
{
    XWindowAttributes a;
    int budget = SEARCH_WINDOWS;
    for (int i = 0; i < n; i++)
        if (XGetWindowAttributes(s->x11->dpy, chain[i], &a) &&
            a.all_event_masks & (KeyPressMask | KeyReleaseMask))
            return true;
    return n && asks_for_keys(s, chain[n - 1], 0, &budget);
}

Window delivery_ping_window(struct screen *s, const Window *chain, int n)
{
    int budget = SEARCH_WINDOWS;
    for (int i = n; i-- > 0;)
        if (same_client(s, chain[i], chain[n - 1]) && answers_pings(s, chain[i]))
            return chain[i];
    return search(s, chain[n - 1], s->x11->root, 0, &budget);
}

static void find_target(struct screen *s, struct key_target *r)
{
    Window chain[WINDOW_DEPTH];
    struct xtrap t;
    *r = (struct key_target){0};
    if (s->lost)
        return;
    xtrap_begin(&t, s->x11->dpy);
    int n = hit_test_focus(s, chain);
    if (n)
        r->focus = chain[n - 1];
    if (n)
        r->ping = delivery_ping_window(s, chain, n);
    if (n && !r->ping && !(r->pid = client_pid(s, r->focus)))
        r->pid = hit_test_pid(s, r->focus);
    r->no_listener = !r->ping && !chain_asks_for_keys(s, chain, n) && !grab_keyboard_taken(s);
    xtrap_end(&t);
}

int delivery_begin(struct screen *s, struct err *e)
{
    int64_t start = clock_ns();
    for (find_target(s, &s->x11->target); s->x11->target.no_listener && clock_ms_since(start) < FOCUS_MS;
         find_target(s, &s->x11->target))
        if (screen_wait(s, 2 * LOOK_MS, e))
            return -1;
    return screen_alive(s, e);
}

bool delivery_target_changed(struct screen *s)
{
    Window chain[WINDOW_DEPTH], focus = None;
    struct xtrap t;
    int revert;
    if (s->lost)
        return false;
    XGetInputFocus(s->x11->dpy, &focus, &revert);
    if (focus > PointerRoot && focus != s->x11->root && focus == s->x11->target.focus)
        return false;
    xtrap_begin(&t, s->x11->dpy);
    int n = hit_test_focus(s, chain);
    xtrap_end(&t);
    return s->x11->target.focus ? !n || !same_client(s, chain[n - 1], s->x11->target.focus) : n > 0;
}

/* ---- unread bytes ------------------------------------------------------------------------------------ */

struct unix_socket {
    unsigned inode, peer, unread;
    bool server; /* the X server's end of a connection to this display */
};

/* Reads the socket name of the X server. Returns its length, or 0 if the connection is not a local one. */
static size_t server_name(struct screen *s, struct sockaddr_un *at)
{
    socklen_t len = sizeof *at;
    if (getpeername(ConnectionNumber(s->x11->dpy), (struct sockaddr *)at, &len) || at->sun_family != AF_UNIX)
        return 0;
    return len - offsetof(struct sockaddr_un, sun_path);
}

static void read_socket(const struct nlmsghdr *h, const struct sockaddr_un *at, size_t n,
                        struct unix_socket *out)
{
    const struct unix_diag_msg *m = NLMSG_DATA(h);
    int left = (int)(h->nlmsg_len - NLMSG_LENGTH(sizeof *m));
    *out = (struct unix_socket){.inode = m->udiag_ino};
    const struct nlattr *a = (const struct nlattr *)(m + 1);
    for (; left >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN && a->nla_len <= left;) {
        const char *data = (const char *)a + NLA_HDRLEN;
        size_t len = a->nla_len - NLA_HDRLEN;
        if (a->nla_type == UNIX_DIAG_NAME)
            out->server = len && len <= n && !memcmp(data, at->sun_path, len);
        else if (a->nla_type == UNIX_DIAG_PEER && len >= 4)
            memcpy(&out->peer, data, 4);
        else if (a->nla_type == UNIX_DIAG_RQLEN && len >= 4)
            memcpy(&out->unread, data, 4);
        left -= NLA_ALIGN(a->nla_len);
        a = (const struct nlattr *)(const void *)((const char *)a + NLA_ALIGN(a->nla_len));
    }
}

/* Lists all unix sockets; the caller frees the list. Returns their number, or -1 if the kernel does not
 * provide the list. */
static int list_sockets(struct screen *s, struct unix_socket **out)
{
    static const struct {
        struct nlmsghdr head;
        struct unix_diag_req ask;
    } request = {{sizeof request, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0},
                 {.sdiag_family = AF_UNIX,
                  .udiag_states = ~0u,
                  .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN}};
    struct sockaddr_un at = {0};
    size_t name = server_name(s, &at);
    int fd = name ? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG) : -1, n = 0;
    bool done = false;
    char *data = xmalloc(DIAG_BYTES, 1);
    *out = NULL;
    if (fd < 0 || send(fd, &request, sizeof request, 0) < 0)
        n = -1;
    while (n >= 0 && !done) {
        ssize_t got = recv(fd, data, DIAG_BYTES, 0);
        const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)data;
        size_t left = got > 0 ? (size_t)got : 0;
        if (!left)
            n = -1;
        for (; n >= 0 && NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            done = done || h->nlmsg_type == NLMSG_DONE;
            if (h->nlmsg_type == NLMSG_ERROR)
                n = -1;
            if (n < 0 || h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
                continue;
            *out = xrealloc(*out, (size_t)n + 1, sizeof **out);
            read_socket(h, &at, name, &(*out)[n++]);
        }
    }
    if (fd >= 0)
        close(fd);
    free(data);
    return n;
}

static bool owns_socket(const unsigned *inodes, int n, unsigned inode)
{
    for (int i = 0; i < n; i++)
        if (inodes[i] == inode)
            return true;
    return false;
}

static int sockets_of(int pid, unsigned inodes[MAX_SOCKETS])
{
    char path[320], to[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    for (const struct dirent *f; d && n < MAX_SOCKETS && (f = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, f->d_name);
        ssize_t len = readlink(path, to, sizeof to - 1);
        to[len > 0 ? len : 0] = 0;
        n += sscanf(to, "socket:[%u]", &inodes[n]) == 1;
    }
    if (d)
        closedir(d);
    return n;
}

/* Returns the number of bytes sent by the display that this process has not read yet; -1: unknown. */
static int64_t unread_bytes(struct screen *s, int pid)
{
    unsigned inodes[MAX_SOCKETS];
    struct unix_socket *all;
    int n = list_sockets(s, &all), own = n > 0 ? sockets_of(pid, inodes) : 0;
    int64_t unread = -1;
    for (int i = 0; i < n; i++)
        for (int k = 0; all[i].server && k < n; k++)
            if (all[k].inode == all[i].peer && owns_socket(inodes, own, all[k].inode))
                unread = (unread < 0 ? 0 : unread) + all[k].unread;
    free(all);
    return unread;
}

/* ---- waiting ----------------------------------------------------------------------------------- */

static void send_ping(struct screen *s, Window w)
{
    XEvent ev = {.xclient = {.type = ClientMessage, .window = w, .format = 32}};
    ev.xclient.message_type = XInternAtom(s->x11->dpy, "WM_PROTOCOLS", False);
    ev.xclient.data.l[0] = (long)XInternAtom(s->x11->dpy, "_NET_WM_PING", False);
    ev.xclient.data.l[1] = ++s->x11->ping;
    ev.xclient.data.l[2] = (long)w;
    XSendEvent(s->x11->dpy, w, False, NoEventMask, &ev);
    XFlush(s->x11->dpy);
}

void delivery_note_pong(struct screen *s, const XClientMessageEvent *ev)
{
    if (ev->window == s->x11->root && ev->data.l[0] == (long)XInternAtom(s->x11->dpy, "_NET_WM_PING", False))
        s->x11->pong = (int)ev->data.l[1];
}

static bool window_exists(struct screen *s, Window w)
{
    XWindowAttributes a;
    struct xtrap t;
    xtrap_begin(&t, s->x11->dpy);
    bool there = XGetWindowAttributes(s->x11->dpy, w, &a);
    return !xtrap_end(&t) && there;
}

/* Waits for the answer to a ping. A program whose window was closed consumes no more keys, so the wait
 * ends. */
int delivery_ping_once(struct screen *s, Window w, double max_ms, enum delivery *out, struct err *e)
{
    int64_t start = clock_ns(), looked = start;
    struct xtrap t;
    *out = DELIVERY_DONE;
    xtrap_begin(&t, s->x11->dpy);
    send_ping(s, w);
    if (xtrap_end(&t))
        return screen_alive(s, e);
    int rc = 0;
    for (screen_pump(s); s->x11->pong != s->x11->ping && rc == 0; screen_pump(s)) {
        rc = screen_wait_event(s, fmax(0, fmin(EXISTS_MS, max_ms - clock_ms_since(start))), e);
        if (clock_ms_since(looked) > EXISTS_MS && rc == 0) {
            looked = clock_ns();
            if (!window_exists(s, w))
                break;
        }
        if (clock_ms_since(start) > max_ms) {
            *out = DELIVERY_BEHIND;
            break;
        }
    }
    return rc;
}

static int wait_for_sockets(struct screen *s, const struct key_target *r, double max_ms, enum delivery *out,
                            struct err *e)
{
    int64_t start = clock_ns();
    for (int idle = 0; idle < 2;) {
        if (!window_exists(s, r->focus))
            break;
        int64_t unread = unread_bytes(s, r->pid);
        if (unread < 0) {
            *out = DELIVERY_UNKNOWN;
            return screen_alive(s, e);
        }
        idle = unread == 0 && cpu_wait_asleep(r->pid) ? idle + 1 : 0;
        if (clock_ms_since(start) > max_ms) {
            *out = DELIVERY_BEHIND;
            return screen_alive(s, e);
        }
        if (screen_wait(s, 2 * LOOK_MS, e))
            return -1;
    }
    *out = DELIVERY_DONE;
    return screen_alive(s, e);
}

static int wait_for(struct screen *s, const struct key_target *r, double max_ms, enum delivery *out,
                    struct err *e)
{
    *out = r->no_listener ? DELIVERY_NOBODY : DELIVERY_UNKNOWN;
    if (r->no_listener || !r->focus || screen_alive(s, e))
        return screen_alive(s, e);
    if (r->ping)
        return delivery_ping_once(s, r->ping, max_ms, out, e);
    if (r->pid)
        return wait_for_sockets(s, r, max_ms, out, e);
    return 0;
}

int delivery_wait(struct screen *s, double max_ms, enum delivery *out, struct err *e)
{
    enum delivery now = DELIVERY_DONE;
    struct key_target first = s->x11->target;
    if (wait_for(s, &first, max_ms, out, e))
        return -1;
    find_target(s, &s->x11->target); /* the text may open another window, which receives the rest */
    if (s->x11->target.focus && first.focus && !same_client(s, s->x11->target.focus, first.focus) &&
        wait_for(s, &s->x11->target, max_ms, &now, e))
        return -1;
    *out = now > *out ? now : *out;
    return 0;
}

int delivery_keep_up(struct screen *s, enum delivery *out, struct err *e)
{
    return wait_for(s, &s->x11->target, READ_MS, out, e);
}

/* Returns the focused program, which is searched only if another window has the focus than the last time. */
static struct key_target *focused_program(struct screen *s)
{
    struct key_target *r = &s->x11->asked;
    unsigned opened;
    unsigned long focus = s->lost ? None : hit_test_input_focus(s, &opened);
    if (!focus || focus != r->focus)
        find_target(s, r);
    return r;
}

bool delivery_confirms(struct screen *s)
{
    return focused_program(s)->ping != None;
}

int delivery_settle(struct screen *s, struct err *e)
{
    enum delivery unused;
    return delivery_wait(s, READ_MS, &unused, e) || screen_wait(s, s->options.keymap_settle_ms, e) ? -1 : 0;
}

int delivery_ping(struct screen *s, double max_ms, bool *late, struct err *e)
{
    enum delivery now = DELIVERY_DONE;
    struct key_target *r = focused_program(s);
    *late = false;
    if (!r->ping) /* it may have opened its window before it said that it answers */
        find_target(s, r);
    if (!r->ping)
        return screen_alive(s, e);
    int64_t start = clock_ns();
    if (delivery_ping_once(s, r->ping, max_ms, &now, e))
        return -1;
    if (now == DELIVERY_DONE && s->x11->pong != s->x11->ping) { /* that window is gone */
        find_target(s, r);
        if (r->ping && delivery_ping_once(s, r->ping, max_ms, &now, e))
            return -1;
    }
    *late = now == DELIVERY_BEHIND || clock_ms_since(start) > LATE_MS;
    return screen_alive(s, e);
}
