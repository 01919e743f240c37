/* xvfb.h - a private X server for a test, and programs on it.
 *
 *     struct xvfb x;
 *     if (xvfb_start(&x, "1280x720x24", NULL)) skip();     // Xvfb is not installed
 *     ...
 *     xvfb_stop(&x);
 *
 * The server takes a free display number, does not listen on the network and accepts only clients with the
 * cookie in a private folder. Until xvfb_stop(), DISPLAY, XAUTHORITY, XDG_RUNTIME_DIR and HOME of this
 * process point there and WAYLAND_DISPLAY is unset. Programs started with xvfb_spawn() end with it.
 */
#pragma once

#include "place.h"

#include <stdbool.h>
#include <sys/types.h>

struct xvfb {
    pid_t server, children[8];
    int n_children;
    char display[16];     /* ":7" */
    char dir[PLACE_PATH]; /* private folder, removed at the end */
};

/* Starts a server. screen: "WxHxDEPTH"; extra: NULL or NULL-terminated server options. Returns 0, or -1 if
 * Xvfb cannot run (the reason is printed). */
int xvfb_start(struct xvfb *x, const char *screen, const char *const *extra);
/* Starts a second server that accepts the cookie of `first`; leaves the environment unchanged. */
int xvfb_start_beside(struct xvfb *x, const char *screen, const struct xvfb *first);
/* Makes only the private folder, for programs without a display; leaves the environment unchanged. */
void xvfb_folder(struct xvfb *x);
void xvfb_stop(struct xvfb *x);
void xvfb_kill_server(struct xvfb *x); /* at once, like a crash */

bool program_exists(const char *name); /* in PATH */
/* Returns whether zenity is installed with GTK 3. GTK 4 (Debian 13) has other classes of windows and places of
 * buttons, and reports a field that hides its text as an ordinary one. */
bool zenity_fits(void);

/* Starts a program with stdout and stderr in dir/LOG; returns -1 if it cannot start. */
pid_t xvfb_spawn(struct xvfb *x, const char *log, const char *const *argv);
int xvfb_run(struct xvfb *x, const char *const *argv); /* waits for the end; returns the exit code */
int xvfb_window_manager(struct xvfb *x);               /* openbox; -1 if not installed */
void process_end(pid_t pid);                           /* TERM, then KILL; reaps */
/* Finds the first window whose title matches the PCRE2 pattern; title may be NULL. Returns 1 found, 0 not, -1
 * error. */
struct screen;
struct err;
int xvfb_find_window(struct screen *s, const char *pattern, char *title, size_t title_size, struct err *e);
bool xvfb_wait_window(struct xvfb *x, const char *pattern); /* until a title matches */

/* Returns the path of a helper program (xclient) beside the test program; static. */
const char *helper_path(const char *name);
