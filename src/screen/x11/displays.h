/* displays.h - lists the X displays of this machine that this user may open, for callers without a display
 * name.
 *
 * A display is a socket in /tmp/.X11-unix, opened with a cookie from a file: $XAUTHORITY, ~/.Xauthority,
 * or a file of the display manager, the session or `holorun desk`. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

enum { DISPLAYS_MAX = 32, DISPLAY_NAME_MAX = 300 };

struct display_found {
    char name[16];  /* ":0" */
    char auth[256]; /* file whose cookie opens it; "": no file other than the default is needed */
    bool desk;      /* a private desktop of holorun */
};

/* Lists the displays that this user may open, by number, without connecting to them. Returns how many, at
 * most max. */
int displays_list(struct display_found *out, int max);

/* Writes the canonical name of a server: ":7" for ":7.0", "unix:7", "localhost:7", this machine's name,
 * and the path of its socket or a link to it; "host:7" for another machine. Screens of one server (":7.0"
 * and ":7.1") have the same name. name NULL or "": $DISPLAY; writes "" if that is not set. Does not
 * contact a server. */
void displays_canonical(const char *name, char out[DISPLAY_NAME_MAX]);
/* Returns whether both names refer to the same server. */
bool displays_same(const char *a, const char *b);

/* Returns -1 with e for an unset DISPLAY; the message lists the displays that can be opened. */
int displays_refuse(struct err *e);

/* Sets XAUTHORITY of this process if a local display (NULL: $DISPLAY) opens only with another file. Call
 * it before threads are started. */
void displays_authorize(const char *name);

/* Finds the file that opens the display. Returns false if there is none, or if the display opens without
 * one or with $XAUTHORITY. */
bool displays_auth_of(const char *name, char *file, unsigned long size);
