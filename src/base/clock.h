/* clock.h - monotonic time for durations, wall-clock time for names. */
#pragma once

#include <stdint.h>
#include <time.h>

int64_t clock_ns(void);               /* CLOCK_MONOTONIC */
double clock_ms_since(int64_t start); /* start from clock_ns() */
void clock_sleep_ms(double ms);       /* returns early on a signal */
/* Returns the time on a clock, as CLOCK_REALTIME, that is so many ms away. */
struct timespec clock_after(clockid_t clock, double ms);
void clock_utc(char out[20]); /* "20261121T054500Z" */
void clock_iso(char out[28]); /* "2026-11-21T05:45:00.123Z" */
