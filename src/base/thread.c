/* thread.c - see thread.h. */
#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *), void *arg)
{
    pthread_attr_t how;
    sigset_t all, old;
    sigfillset(&all);
    pthread_attr_init(&how);
    if (stack)
        pthread_attr_setstacksize(&how, stack);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* a thread inherits its creator's mask */
    int rc = pthread_create(thread, &how, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&how);
    return rc;
}
