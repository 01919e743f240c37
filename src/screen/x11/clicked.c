/* clicked.c - when the programs concerned have processed a motion, click or key of ours.
 *
 * The program under the pointer answers a ping after the event, and then a dialog that its handler has opened
 * is on the server. The window manager may still have to show that dialog and move the focus, and other
 * processes of the program may still work. So after a click both must be at rest (at_rest.c). If one of these
 * things cannot be known, the caller waits for a fixed time instead. */
#include "screen/x11/x11_impl.h"

#include <X11/Xatom.h>

enum { PONG_MS = 2000 }; /* time for a program that is stopped or has no CPU to read a click */

/* Finds the program under the pointer. *ping: its window that answers pings, or None. Returns its process; 0:
 * unknown. */
static int find_under_pointer(struct screen *s, Window *ping)
{
    Window chain[WINDOW_DEPTH];
    struct xtrap t;
    int x, y, pid = 0;
    *ping = None;
    if (s->lost || screen_pointer(s, &x, &y))
        return 0;
    xtrap_begin(&t, s->x11->dpy);
    int n = hit_test_chain(s, x, y, chain, WINDOW_DEPTH);
    if (n)
        *ping = delivery_ping_window(s, chain, n);
    if (*ping && !(pid = client_pid(s, *ping)))
        pid = hit_test_pid(s, *ping);
    xtrap_end(&t);
    return pid;
}

int clicked_hover(struct screen *s, double max_ms, bool *answered, struct err *e)
{
    Window ping;
    enum delivery r = DELIVERY_UNKNOWN;
    find_under_pointer(s, &ping);
    if (ping && delivery_ping_once(s, ping, max_ms, &r, e))
        return -1;
    *answered = r == DELIVERY_DONE;
    return screen_alive(s, e);
}

static int window_manager_pid(struct screen *s)
{
    struct xtrap t;
    xtrap_begin(&t, s->x11->dpy);
    Window w = window_property(s, s->x11->root, "_NET_SUPPORTING_WM_CHECK", XA_WINDOW);
    int pid = w ? client_pid(s, w) : 0;
    return xtrap_end(&t) ? 0 : pid;
}

int clicked_wait(struct screen *s, double max_ms, bool *processed, struct err *e)
{
    Window ping;
    struct at_rest rest;
    enum delivery r;
    *processed = false;
    const int pids[] = {find_under_pointer(s, &ping), window_manager_pid(s)};
    if (!ping || !pids[0])
        return screen_alive(s, e);
    at_rest_begin(&rest, pids, pids[1] || window_manager_redirects(s) ? 2 : 1, x11_server_pid(s));
    if (delivery_ping_once(s, ping, PONG_MS, &r, e))
        return -1;
    return r == DELIVERY_DONE ? at_rest_wait(&rest, s, max_ms, processed, e) : screen_alive(s, e);
}

int clicked_keys_rest(struct screen *s, double max_ms, bool *rests, struct err *e)
{
    struct at_rest rest;
    struct xtrap t;
    *rests = false;
    if (screen_alive(s, e))
        return -1;
    xtrap_begin(&t, s->x11->dpy);
    int pid = s->x11->target.ping ? client_pid(s, s->x11->target.ping) : s->x11->target.pid;
    if (xtrap_end(&t) || !pid)
        return screen_alive(s, e);
    at_rest_begin(&rest, &pid, 1, x11_server_pid(s));
    return at_rest_wait(&rest, s, max_ms, rests, e);
}
