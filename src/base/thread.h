/* thread.h - threads that only serve: small, and none of the process's signals is theirs to take. */
#ifndef HOLORUN_BASE_THREAD_H
#define HOLORUN_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* With all signals blocked and a stack of so many bytes (0: the usual 8 MiB).  0, or an errno. */
int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *), void *arg);

#endif
