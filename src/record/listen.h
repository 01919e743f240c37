/* listen.h - every key, button and motion of a display, in order, through the RECORD extension.
 *
 * RECORD sees device events before any grab, with the pointer's place at the time of the event.  What a key
 * types is found with the keyboard's map and an input method of our own, so that dead keys and Compose give
 * their character.
 */
#ifndef HOLORUN_RECORD_LISTEN_H
#define HOLORUN_RECORD_LISTEN_H

#include "record/gestures.h"

struct listen; /* used by one thread; two connections of its own */

/* Sets LC_CTYPE of the process to UTF-8.  NULL with e: no such display, or no RECORD extension. */
struct listen *listen_open(const char *display, struct err *e);
void listen_close(struct listen *l); /* NULL is fine */
int listen_fd(const struct listen *l);
/* The next event, if there is one. */
bool listen_next(struct listen *l, struct input *out);
bool listen_lost(const struct listen *l);

#endif
