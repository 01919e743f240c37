/* view.h - shows a desktop to VNC viewers, who may take its pointer and keyboard (RFB by libvncserver).
 *
 *     v = view_start(&(struct view_options){.display = ":101", .where = "127.0.0.1:5901", ...}, &e)
 *     puts(view_address(v))
 *     view_stop(v)
 *
 * A process listens, and each viewer is served by a process of its own: what one of them sends or does not
 * send harms neither the others nor the agent.  What a viewer does is a person's doing: a run on that display
 * pauses until the viewer rests or presses the Pause key (SCREEN_HAND_BACK).
 */
#ifndef HOLORUN_DESK_VIEW_H
#define HOLORUN_DESK_VIEW_H

#include "base/err.h"

enum { VIEWERS_MAX = 8 };

struct view_options {
    const char *display;
    /* NULL, "" or "auto": a socket in the user's runtime folder; "unix:PATH"; "PORT", "127.0.0.1:PORT",
     * "localhost:PORT" or "[::1]:PORT", port 0 for a free one. */
    const char *where;
    const char *password_file; /* 0600, its first line; NULL: none, for sockets in the file system only */
};

struct view;

/* Before there are threads.  NULL: ERR_USAGE for an address that others reach or a TCP port without a
 * password, ERR_ENV for the rest and in a build without libvncserver. */
struct view *view_start(const struct view_options *o, struct err *e);
/* What a viewer is given: "/run/user/1000/holorun/desk-4711.vnc", "127.0.0.1::5901". */
const char *view_address(const struct view *v);
void view_stop(struct view *v); /* ends all viewers; NULL is fine */

#endif
