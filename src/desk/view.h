/* view.h - serves a desktop to VNC viewers, which may take its pointer and keyboard (RFB by libvncserver).
 *
 *     v = view_start(&(struct view_options){.display = ":101", .where = "127.0.0.1:5901", ...}, &e)
 *     puts(view_address(v))
 *     view_stop(v)
 *
 * One process listens, and each viewer is served by its own process, so that no viewer can disturb the others
 * or the agent, whether it sends invalid data or nothing.  Input of a viewer counts as user input: a run on
 * that display pauses until the viewer is idle or presses the Pause key (SCREEN_HAND_BACK). */
#pragma once

#include "base/err.h"

enum { VIEWERS_MAX = 8 };

struct view_options {
    const char *display;
    /* NULL, "" or "auto": a socket in the user's runtime directory; "unix:PATH"; "PORT", "127.0.0.1:PORT",
     * "localhost:PORT" or "[::1]:PORT", port 0 for a free one */
    const char *where;
    /* mode 0600, password in its first line; NULL: none, for sockets in the file system only */
    const char *password_file;
};

struct view;

/* Starts the listening process; call before there are threads.  Returns NULL with ERR_USAGE for an address
 * that others reach or a TCP port without a password, and with ERR_ENV for other failures and in a build
 * without libvncserver. */
struct view *view_start(const struct view_options *o, struct err *e);
/* Returns the address for viewers, such as "/run/user/1000/holorun/desk-4711.vnc" or "127.0.0.1::5901". */
const char *view_address(const struct view *v);
void view_stop(struct view *v); /* disconnects all viewers and frees v; NULL is allowed */
