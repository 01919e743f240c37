/* moments.h - runs that are stopped at a random moment, and how long it takes until nothing happens any more.
 *
 * Each session has an X server of its own with a window on it.  What a run does and what stops it go round:
 *
 *   typing     letters of which some have no key, so that keycodes are borrowed
 *   dragging   with Control held
 *   settling   with Shift held from an earlier step
 *   model      the embedded model looks, reads, decides and acts by itself
 *
 *   Escape twice on the person's keyboard, SIGTERM, a stop file
 *
 * Times are the server's own: of the raw event of the second Escape, and of the last raw event that came from
 * XTEST's devices.  How busy the process that measures is does not matter.
 */
#ifndef HOLORUN_TESTS_MOMENTS_H
#define HOLORUN_TESTS_MOMENTS_H

#include "xvfb.h"

#include <X11/extensions/XInput.h>
#include <stdint.h>

enum doing { DOING_TYPE, DOING_DRAG, DOING_SETTLE, DOING_MODEL, DOINGS };
enum gesture { GESTURE_ESCAPE, GESTURE_SIGNAL, GESTURE_FILE, GESTURES };

struct moments {
    struct xvfb x;
    Display *eyes;
    XDevice *person;
    int opcode, keyboard, pointer; /* of XInput; XTEST's devices */
    pid_t run;                     /* 0: none */
    enum doing doing;
    char *before; /* newest run directory before this one; NULL: none */
    double last;  /* server's ms of XTEST's last event, 0: none yet */
    double escape;
};

struct moment {
    double silence_ms; /* from the gesture to the last event */
    double end_ms;     /* to the end of the process */
    char wrong[256];   /* "" or what was wrong afterwards */
};

int moments_open(struct moments *m); /* -1: no Xvfb here */
void moments_close(struct moments *m);

/* A run that does this; the one before must have been stopped. */
void moments_start(struct moments *m, enum doing doing);

/* Waits until the run has begun and wait_ms more, stops it and waits for its end.  1: the run ended by
 * itself before. */
int moments_stop(struct moments *m, enum gesture how, double wait_ms, struct moment *out);

extern const char *const doing_names[DOINGS];

#endif
