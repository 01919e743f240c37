/* displays.h - the displays of this machine that this user may open, for whoever has not named one.
 *
 * A display is a socket in /tmp/.X11-unix; what opens it is a cookie in a file: $XAUTHORITY, ~/.Xauthority,
 * or one of the places where display managers, sessions and `holorun desk` keep theirs.
 */
#ifndef HOLORUN_SCREEN_DISPLAYS_H
#define HOLORUN_SCREEN_DISPLAYS_H

#include "base/err.h"

#include <stdbool.h>

enum { DISPLAYS_MAX = 32 };

struct display_found {
    char name[16];  /* ":0" */
    char auth[256]; /* file whose cookie opens it; "": opens with what this process has */
    bool desk;      /* a private desktop of holorun */
};

/* Those that let this user in, by number, as far as can be known without asking them.  Returns how many. */
int displays_list(struct display_found *out, int max);

/* DISPLAY is not set: -1 with one line that lists them and says how to name one. */
int displays_refuse(struct err *e);

/* Sets XAUTHORITY of this process when a local display (NULL: $DISPLAY) opens with another file only.
 * Before there are threads. */
void displays_authorize(const char *name);

/* The file that opens it, when it is none that Xlib would use; false: there is none. */
bool displays_auth_of(const char *name, char *file, unsigned long size);

#endif
