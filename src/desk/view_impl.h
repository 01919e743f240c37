/* view_impl.h - declarations shared by the files that serve a desktop to VNC viewers.
 *
 *     view_place.c      where to listen; the password
 *     view.c            the listening process, its start and its end
 *     view_lockout.c    wrong passwords
 *     view_viewer.c     one viewer: its process, and libvncserver
 *     view_picture.c    the desktop as libvncserver's framebuffer
 *     view_input.c      the viewer's keys and buttons on the desktop
 *
 *     this process --- listener --- viewer 1
 *                         `-------- viewer 2 ... */
#pragma once

#include "desk/view.h"

#include <X11/Xlib.h>
#include <X11/extensions/XShm.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PASSWORD = 8 }; /* limit of the protocol: further characters are ignored */

/* ---- view_place.c -------------------------------------------------------------------------------------- */

struct place {
    int fd;            /* listening socket; -1: closed */
    char path[108];    /* path of a socket in the file system; "": TCP */
    char address[128]; /* address for a viewer */
};
int place_open(struct place *p, const char *where, bool password, struct err *e);
void place_close(struct place *p);
/* Parses "PORT" or "HOST:PORT" of this machine; public for tests.  Returns -1 with e. */
int place_parse(const char *where, bool *six, int *port, struct err *e);
/* Reads the password; "" without a file.  Returns -1 with e. */
int password_read(const char *path, char out[PASSWORD + 1], struct err *e);

/* ---- view_input.c ------------------------------------------------------------------------------- */

/* keys and buttons that a viewer holds, in memory shared with the listener: a viewer's process may die */
struct viewer_down {
    volatile unsigned char keys[256]; /* indexed by keycode */
    volatile unsigned buttons;
};
struct viewer_input {
    Display *dpy;
    struct viewer_down *down;
    struct viewer_key {
        unsigned sym, code;
    } keys[32]; /* pressed keys: a key is released with the keycode with which it was pressed */
    unsigned borrowed;
    int x, y;
};
void viewer_input_open(struct viewer_input *h, Display *dpy, struct viewer_down *down);
void viewer_input_key(struct viewer_input *h, unsigned keysym, bool down);
void viewer_input_pointer(struct viewer_input *h, unsigned buttons, int x, int y);
void viewer_input_close(struct viewer_input *h);
void viewer_input_release(Display *dpy, struct viewer_down *down);

/* ---- view_picture.c ---------------------------------------------------------------------------- */

struct rect {
    int x, y, w, h;
};
struct picture {
    Display *dpy;
    XImage *image; /* in shared memory */
    XShmSegmentInfo segment;
    char *pixels; /* BGRX: the image with the pointer painted on it */
    int w, h, damage_event;
    XID damage;
    struct rect pointer; /* position at which the pointer is painted */
    unsigned long pointer_serial;
};
int picture_open(struct picture *p, Display *dpy, struct err *e);
/* Updates the pixels and calls changed() for each changed part.  Returns 1 if the desktop has another size
 * now and p->pixels was reallocated, -1 if it cannot be captured any more, else 0. */
int picture_update(struct picture *p, void (*changed)(void *arg, struct rect r), void *arg);
void picture_close(struct picture *p);

/* ---- view_lockout.c ---------------------------------------------------------------------------- */

#define LOCKOUT_UNKNOWN ((uid_t)-1)
enum { LOCKOUT_USERS = 16 };

struct lockout { /* in memory shared by the listener and all viewers */
    pthread_mutex_t lock;
    struct lockout_count {
        uid_t user;
        int wrong;    /* wrong passwords in a row */
        int reported; /* number of these that have been reported */
        int64_t last; /* clock_ns() of the last one; 0: none */
    } users[LOCKOUT_USERS], total;
};
void lockout_init(struct lockout *l);
/* Returns whether passwords of this user are rejected at present. */
bool lockout_locked(struct lockout *l, uid_t user);
/* Counts a wrong password, before the password is compared.  Returns false if passwords of this user are
 * rejected at present. */
bool lockout_try(struct lockout *l, uid_t user);
/* Removes the wrong passwords of this user from the count: the password was right. */
void lockout_right(struct lockout *l, uid_t user);
/* Warns once when the user is locked out. */
void lockout_report(struct lockout *l, uid_t user);
/* Returns the user at the other end of a connection from this machine, or LOCKOUT_UNKNOWN. */
uid_t lockout_user(int fd);

/* ---- view_viewer.c ----------------------------------------------------------------------------- */

/* up to VIEWERS_MAX authenticated viewers, and as many others, which are disconnected when slots run out */
enum { VIEWER_SLOTS = 2 * VIEWERS_MAX };

struct viewer_shared { /* shared by the listener and its viewers */
    struct viewer_down down[VIEWER_SLOTS];
    volatile unsigned char known[VIEWER_SLOTS]; /* the viewer has authenticated */
    struct lockout lockout;
};

/* Serves the viewer at this socket until it leaves; runs in a separate process. */
void viewer_serve(int fd, const char *display, const char *password, struct viewer_shared *shared, int slot);
