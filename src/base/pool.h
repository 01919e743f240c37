/* pool.h - a thread pool for data-parallel loops, and service threads.
 *
 * pool_for() splits [0, n) into ranges of at least `grain`, several per thread. Idle threads, including
 * the caller, take ranges until all are done. (n, grain, threads) determine the ranges, but not the thread
 * that runs each of them, so the ranges must be independent. One loop at a time per pool; fn must not call
 * pool_for(). */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

typedef void pool_fn(void *arg, int64_t begin, int64_t end, int thread);

struct pool *pool_new(int threads); /* 0: one per usable core */
void pool_free(struct pool *p);
int pool_threads(const struct pool *p);                                          /* 1 for NULL */
void pool_for(struct pool *p, int64_t n, int64_t grain, pool_fn *fn, void *arg); /* p NULL: runs in the
                                                                                  * calling thread */

/* Starts a service thread with a stack of `stack` bytes (0: the default, 8 MiB) and all signals blocked.
 * Returns 0 or an errno. */
int thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *), void *arg);
