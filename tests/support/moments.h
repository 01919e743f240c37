/* moments.h - stops runs at random moments and measures the time until their last event.
 *
 * Each session has its own X server with a window. Runs and ways to stop them alternate:
 *
 *   typing     letters without a key, so that keycodes are borrowed
 *   dragging   with Control held
 *   settling   with Shift held from an earlier step
 *   model      the embedded model decides
 *
 *   Escape twice on the user's keyboard, SIGTERM, a stop file
 *
 * Times are the server's: of the raw event of the second Escape, and of the last raw event of the XTEST
 * devices. The load of the measuring process has no effect.
 */
#pragma once

#include "xvfb.h"

#include <X11/extensions/XInput.h>
#include <stdint.h>

enum doing { DOING_TYPE, DOING_DRAG, DOING_SETTLE, DOING_MODEL, DOINGS };
enum gesture { GESTURE_ESCAPE, GESTURE_SIGNAL, GESTURE_FILE, GESTURES };

struct moments {
    struct xvfb x;
    Display *eyes;
    XDevice *person;
    int opcode, keyboard, pointer; /* opcode of XInput; XTEST devices */
    pid_t run;                     /* 0: none */
    enum doing doing;
    char *before; /* newest run directory before this run; NULL: none */
    double last;  /* server time of the last XTEST event in ms, 0: none yet */
    double escape;
};

struct moment {
    double silence_ms; /* from the stop to the last event */
    double end_ms;     /* to the end of the process */
    char wrong[256];   /* "" or the first problem found afterwards */
};

int moments_open(struct moments *m); /* -1: no Xvfb */
void moments_close(struct moments *m);

/* Starts a run of this kind; the previous one must have been stopped. */
void moments_start(struct moments *m, enum doing doing);

/* Waits until the run has begun and wait_ms more, stops it and waits for its end. Returns 1 if the run ended
 * by itself before. */
int moments_stop(struct moments *m, enum gesture how, double wait_ms, struct moment *out);

extern const char *const doing_names[DOINGS];
