/* clock.c - monotonic and wall clock (clock.h). */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double clock_ms_since(int64_t start)
{
    return (double)(clock_ns() - start) * 1e-6;
}

void clock_sleep_ms(double ms)
{
    if (ms <= 0)
        return;
    struct timespec t = {.tv_sec = (time_t)(ms / 1000)};
    t.tv_nsec = (long)((ms - (double)t.tv_sec * 1000) * 1e6);
    nanosleep(&t, NULL);
}

struct timespec clock_after(clockid_t clock, double ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    int64_t ns = t.tv_nsec + (int64_t)(ms * 1e6);
    return (struct timespec){t.tv_sec + ns / 1000000000, ns % 1000000000};
}

void clock_utc(char out[20])
{
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(out, 20, "%Y%m%dT%H%M%SZ", &tm);
}

void clock_iso(char out[28])
{
    struct timespec t;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &tm);
    size_t n = strftime(out, 28, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, 28 - n, ".%03uZ", (unsigned)(t.tv_nsec / 1000000) % 1000u);
}
