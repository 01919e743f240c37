/* displays.h - the displays of this machine that this user may open, for whoever has not named one.
 *
 * A display is a socket in /tmp/.X11-unix; what opens it is a cookie in a file: $XAUTHORITY, ~/.Xauthority,
 * or one of the places where display managers, sessions and `holorun desk` keep theirs.
 */
#ifndef HOLORUN_SCREEN_DISPLAYS_H
#define HOLORUN_SCREEN_DISPLAYS_H

#include "base/err.h"

#include <stdbool.h>

enum { DISPLAYS_MAX = 32, DISPLAY_NAME_MAX = 300 };

struct display_found {
    char name[16];  /* ":0" */
    char auth[256]; /* file whose cookie opens it; "": opens with what this process has */
    bool desk;      /* a private desktop of holorun */
};

/* Those that let this user in, by number, as far as can be known without asking them.  Returns how many. */
int displays_list(struct display_found *out, int max);

/* Writes the one spelling of the server that a name means: ":7" for ":7.0", "unix:7", "localhost:7",
 * this machine's name, and the path of its socket or a link to it; "host:7" for another machine.  A
 * server's screens (":7.0" and ":7.1") are not told apart.  NULL or "" means $DISPLAY; "" without one.
 * Asks no server. */
void displays_canonical(const char *name, char out[DISPLAY_NAME_MAX]);
/* Returns whether both names mean the same server. */
bool displays_same(const char *a, const char *b);

/* DISPLAY is not set: -1 with one line that lists them and says how to name one. */
int displays_refuse(struct err *e);

/* Sets XAUTHORITY of this process when a local display (NULL: $DISPLAY) opens with another file only.
 * Before there are threads. */
void displays_authorize(const char *name);

/* The file that opens it, when it is none that Xlib would use; false: there is none. */
bool displays_auth_of(const char *name, char *file, unsigned long size);

#endif
