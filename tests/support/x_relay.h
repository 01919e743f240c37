/* x_relay.h - another name for a test's X server, whose messages can stop in the middle.
 *
 *     struct x_relay r;
 *     x_relay_open(&r, &x);            r.display is like ":20007"
 *     r.cut = 1000;                    from the next message of at least so many bytes on the first 40 bytes
 *     x_relay_wait_frozen(&r);         arrive, and nothing more on any connection
 *     x_relay_close(&r);
 */
#ifndef HOLORUN_TESTS_X_RELAY_H
#define HOLORUN_TESTS_X_RELAY_H

#include "xvfb.h"

#include <pthread.h>
#include <stdatomic.h>

struct x_relay {
    char display[16];
    const char *server; /* the real display */
    int listening;
    atomic_int cut; /* bytes; 0: everything passes */
    atomic_bool frozen, end;
    pthread_t thread;
};

void x_relay_open(struct x_relay *r, const struct xvfb *x);
void x_relay_wait_frozen(struct x_relay *r);
void x_relay_close(struct x_relay *r);

#endif
