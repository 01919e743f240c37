/* listen.h - reads every key, button and motion event of a display, in order, through the RECORD extension.
 *
 * RECORD reports device events before any grab, with the pointer position at the time of the event. The text
 * of a key is determined with the keyboard map and a private input method, so that dead keys and Compose
 * give their character.
 */
#pragma once

#include "record/gestures.h"

struct listen; /* used by one thread; has two private connections */

/* Starts listening. Sets LC_CTYPE of the process to UTF-8. Returns NULL with e if the display cannot be
 * opened or has no RECORD extension. */
struct listen *listen_open(const char *display, struct err *e);
void listen_close(struct listen *l); /* accepts NULL */
int listen_fd(const struct listen *l);
/* Reads the next event into *out. Returns false if none is pending or the display is lost. */
bool listen_next(struct listen *l, struct input *out);
bool listen_lost(const struct listen *l);
