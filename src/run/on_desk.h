/* on_desk.h - a private desktop for one run, or kept by `holorun desk`: opened, given a program, shown. */
#ifndef HOLORUN_RUN_ON_DESK_H
#define HOLORUN_RUN_ON_DESK_H

#include "desk/desk.h"

struct on_desk_options {
    const char *size;   /* "1280x800"; NULL: ON_DESK_SIZE */
    const char *start;  /* shell command; NULL: none */
    double window_s;    /* how long its first window may take; 0: it is not waited for */
    const char *viewed; /* where viewers connect (desk/view.h), NULL: nowhere */
    const char *password_file;
    const char *home; /* folder that is HOME on the desk and stays, made when missing; NULL: a fresh one */
};
#define ON_DESK_SIZE "1280x800"

struct on_desk;

/* Before there are threads and before screen_guard(). */
struct on_desk *on_desk_open(const struct on_desk_options *o, struct err *e);
struct desk *on_desk_desk(const struct on_desk *d);
const char *on_desk_address(const struct on_desk *d); /* for viewers; NULL: it is not shown */
void on_desk_close(struct on_desk *d);                /* ends viewers and programs; NULL is fine */

/* The size in "desk" or "desk:1024x768"; -1: it is another place. */
int on_desk_parse(const char *on, const char **size, struct err *e);

#endif
