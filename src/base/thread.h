/* thread.h - service threads: a small stack, all signals blocked. */
#ifndef HOLORUN_BASE_THREAD_H
#define HOLORUN_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* stack: bytes; 0: the default, 8 MiB.  Returns 0 or an errno. */
int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *), void *arg);

#endif
