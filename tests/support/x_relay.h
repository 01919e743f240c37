/* x_relay.h - proxy of a test's X server that can stop in the middle of a message.
 *
 *     struct x_relay r;
 *     x_relay_open(&r, &x);            r.display is like ":20007"
 *     r.cut = 1000;                    of the next message of at least 1000 bytes only the first 40
 *     x_relay_wait_frozen(&r);         arrive, then nothing more on any connection
 *     x_relay_close(&r);
 */
#pragma once

#include "xvfb.h"

#include <pthread.h>
#include <stdatomic.h>

struct x_relay {
    char display[16];
    const char *server; /* the real display */
    int listening;
    atomic_int cut; /* bytes; 0: no cut */
    atomic_bool frozen, end;
    pthread_t thread;
};

void x_relay_open(struct x_relay *r, const struct xvfb *x);
void x_relay_wait_frozen(struct x_relay *r);
void x_relay_close(struct x_relay *r);
