/* on_desk.h - a private desktop for one run, or kept by `holorun desk`: opens it, starts a program, serves
 * viewers. */
#pragma once

#include "desk/desk.h"

struct on_desk_options {
    const char *size;   /* such as "1280x800"; NULL: ON_DESK_SIZE */
    const char *start;  /* shell command; NULL: none */
    double window_s;    /* seconds to wait for its first window; 0: does not wait */
    const char *viewed; /* address for viewers (desk/view.h); NULL: none */
    const char *password_file;
    /* directory that is HOME on the desk and is kept, created if missing; NULL: a fresh one */
    const char *home;
    bool no_elements; /* without session bus and accessibility bus */
};
#define ON_DESK_SIZE "1280x800"

struct on_desk;

/* Opens a desktop.  Call before there are threads and before screen_guard().  Returns NULL with e. */
struct on_desk *on_desk_open(const struct on_desk_options *o, struct err *e);
struct desk *on_desk_desk(const struct on_desk *d);
const char *on_desk_address(const struct on_desk *d); /* address for viewers; NULL: not served */
void on_desk_close(struct on_desk *d);                /* ends viewers and programs; NULL is allowed */

/* Parses "desk" or "desk:1024x768" and sets *size.  Returns -1 with e if `on` is something else. */
int on_desk_parse(const char *on, const char **size, struct err *e);
