/* flag.h - an int that a signal handler or another thread sets and that the working thread polls. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

static inline int flag_value(const volatile int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static inline bool flag_up(const volatile int *flag) /* NULL: never set */
{
    return flag && flag_value(flag);
}

static inline void flag_set(volatile int *flag, int to)
{
    __atomic_store_n(flag, to, __ATOMIC_RELAXED);
}
