/* lock.h - holds a mutex until the end of a scope. */
#pragma once

#include <pthread.h>

static inline pthread_mutex_t *lock_take(pthread_mutex_t *m)
{
    pthread_mutex_lock(m);
    return m;
}

static inline void lock_release(pthread_mutex_t **m)
{
    pthread_mutex_unlock(*m);
}

/* One per scope. */
#define LOCKED(mutex)                                                                                        \
    __attribute__((cleanup(lock_release), unused)) pthread_mutex_t *locked_ = lock_take(mutex)
