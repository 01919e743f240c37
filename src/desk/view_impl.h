/* view_impl.h - declarations shared by the files that serve a desktop to VNC viewers.
 *
 *     view_place.c     where to listen; the password
 *     view.c           the process that listens, and how it is started and ended
 *     view_lockout.c   wrong passwords
 *     view_viewer.c    one viewer: its process, and libvncserver
 *     view_picture.c   the desktop as libvncserver's framebuffer
 *     view_input.c     the viewer's keys and buttons on the desktop
 *
 *     this process --- listener --- viewer 1
 *                         `-------- viewer 2 ...
 */
#ifndef HOLORUN_DESK_VIEW_IMPL_H
#define HOLORUN_DESK_VIEW_IMPL_H

#include "desk/view.h"

#include <X11/Xlib.h>
#include <X11/extensions/XShm.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PASSWORD = 8 }; /* of the protocol: more characters do not count */

/* ---- place.c ----------------------------------------------------------------------------------- */

struct place {
    int fd;            /* listens; -1: closed */
    char path[108];    /* of a socket in the file system; "": TCP */
    char address[128]; /* for a viewer */
};
int place_open(struct place *p, const char *where, bool password, struct err *e);
void place_close(struct place *p);
/* Parses "PORT" or "HOST:PORT" of this machine; public for tests. */
int place_parse(const char *where, bool *six, int *port, struct err *e);
/* "" when there is no file. */
int password_read(const char *path, char out[PASSWORD + 1], struct err *e);

/* ---- view_input.c ------------------------------------------------------------------------------- */

/* What a viewer has down, in memory that the listener shares: a viewer's process may die. */
struct viewer_down {
    volatile unsigned char keys[256]; /* by keycode */
    volatile unsigned buttons;
};
struct viewer_input {
    Display *dpy;
    struct viewer_down *down;
    struct viewer_key {
        unsigned sym, code;
    } keys[32]; /* pressed: a key is released by what it was pressed as */
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
    char *pixels; /* BGRX, the image with the pointer on it */
    int w, h, damage_event;
    XID damage;
    struct rect pointer; /* where it is drawn */
    unsigned long pointer_serial;
};
int picture_open(struct picture *p, Display *dpy, struct err *e);
/* Brings the pixels up to date and calls changed() for each part.  1: the desktop has another size now, and
 * the pixels are other ones; -1: it cannot be shown any more. */
int picture_update(struct picture *p, void (*changed)(void *arg, struct rect r), void *arg);
void picture_close(struct picture *p);

/* ---- view_lockout.c ---------------------------------------------------------------------------- */

#define LOCKOUT_UNKNOWN ((uid_t)-1)
enum { LOCKOUT_USERS = 16 };

struct lockout { /* in memory that the listener and all viewers share */
    pthread_mutex_t lock;
    struct lockout_count {
        uid_t user;
        int wrong;    /* passwords in a row */
        int reported; /* of these */
        int64_t last; /* clock_ns() of the last one; 0: none */
    } users[LOCKOUT_USERS], total;
};
void lockout_init(struct lockout *l);
/* Returns whether no password of this user is read at present. */
bool lockout_locked(struct lockout *l, uid_t user);
/* Counts a wrong password, before it is compared.  Returns false when none is read at present. */
bool lockout_try(struct lockout *l, uid_t user);
/* The password was right: forgets the wrong ones of this user. */
void lockout_right(struct lockout *l, uid_t user);
/* Warns once when the user is locked out. */
void lockout_report(struct lockout *l, uid_t user);
/* Returns the user at the other end of a connection from this machine, or LOCKOUT_UNKNOWN. */
uid_t lockout_user(int fd);

/* ---- view_viewer.c ----------------------------------------------------------------------------- */

/* Up to VIEWERS_MAX viewers that have got in, and as many that have not yet: these make room for others. */
enum { VIEWER_SLOTS = 2 * VIEWERS_MAX };

struct viewer_shared { /* by the listener and its viewers */
    struct viewer_down down[VIEWER_SLOTS];
    volatile unsigned char known[VIEWER_SLOTS]; /* it has got in */
    struct lockout lockout;
};

/* Serves the viewer at this socket to its end, in a process of its own. */
void viewer_serve(int fd, const char *display, const char *password, struct viewer_shared *shared, int slot);

#endif
