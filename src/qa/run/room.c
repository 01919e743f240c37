/* room.c - measures idle cores and free memory; see room.h. */
#include "qa/run/room.h"

#include "base/clock.h"
#include "capacity/memory.h"

#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { WINDOW_MS = 300, PER_CORE = 2, MOST = 256 };
static const double idle_cores = 0.5;
static const size_t heavy_weights = (size_t)512 << 20;
static const size_t desktop_bytes = (size_t)1 << 30; /* Xvfb, a browser and the memory of its pages */

static int usable(cpu_set_t *set)
{
    CPU_ZERO(set);
    int n = sched_getaffinity(0, sizeof *set, set) ? 0 : CPU_COUNT(set);
    return n < 1 ? 1 : n;
}

int room_most(const struct suite *s, size_t weights, struct group_limits limits)
{
    cpu_set_t set;
    double cores = usable(&set);
    if (limits.cores > 0 && limits.cores < cores)
        cores = ceil(limits.cores);
    int n = PER_CORE * (int)cores;
    bool one = (s->setup && *s->setup) || weights > heavy_weights;
    return one ? 1 : n < MOST ? n : MOST;
}

/* Adds up the idle and all ticks of the usable cores. Returns false if the system does not tell. */
static bool read_ticks(double *idle, double *total)
{
    cpu_set_t set;
    int cpu;
    unsigned long long t[8];
    char line[512];
    *idle = *total = 0;
    usable(&set);
    FILE *f = fopen("/proc/stat", "re");
    while (f && fgets(line, sizeof line, f)) {
        int n = sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2],
                       &t[3], &t[4], &t[5], &t[6], &t[7]);
        if (strncmp(line, "cpu", 3) != 0)
            break;
        if (n < 9 || cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &set))
            continue;                   /* the sum of all cores, or another one */
        *idle += (double)(t[3] + t[4]); /* idle, and waiting for a disk */
        for (int i = 0; i < 8; i++)
            *total += (double)t[i];
    }
    if (f)
        fclose(f);
    return *total > 0;
}

bool room_left(struct room *r)
{
    cpu_set_t set;
    double idle, total;
    if (r->since && clock_ms_since(r->since) < WINDOW_MS)
        return false;
    if (!read_ticks(&idle, &total))
        return false;
    uint64_t throttled = group_limits("").throttled;
    bool measured = r->since && total > r->total;
    double cores = measured ? (idle - r->idle) / (total - r->total) * usable(&set) : 0;
    measured = measured && throttled == r->throttled;
    *r = (struct room){clock_ns(), idle, total, throttled};
    return measured && cores >= idle_cores && memory_available() >= desktop_bytes;
}

/* ---- ports --------------------------------------------------------------------------------------- */

/* Returns whether a number that can be a port begins here and ends with the word. */
static bool is_port(const char *p)
{
    size_t n = strspn(p, "0123456789");
    return n >= 2 && n <= 5 && !isalnum((unsigned char)p[n]);
}

/* Finds ":8080", but not the minutes of "12:30", and "-p 8080". */
static bool has_number_of_port(const char *text)
{
    for (const char *p = text; *p; p++) {
        bool time = p > text && isdigit((unsigned char)p[-1]) && strspn(p + 1, "0123456789") == 2;
        bool option = p[0] == '-' && tolower((unsigned char)p[1]) == 'p' &&
                      (p == text || isspace((unsigned char)p[-1]));
        if ((*p == ':' && !time && is_port(p + 1)) || (option && is_port(p + 2 + strspn(p + 2, " ="))))
            return true;
    }
    return false;
}

static bool names_port(const char *text)
{
    static const char *const words[] = {"localhost", "127.0.0.1", "[::1]",  "0.0.0.0",    "-port",
                                        "PORT",      "--listen",  "--bind", "http.server"};
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]))
            return true;
    return text && has_number_of_port(text);
}

static bool any_names_port(const char *const *texts)
{
    for (; texts && *texts; texts++)
        if (names_port(*texts))
            return true;
    return false;
}

bool room_shares_port(const struct test *t)
{
    bool found = names_port(t->start) || names_port(t->task) || any_names_port(t->setup) ||
                 any_names_port(t->env) || any_names_port(t->teardown);
    for (int i = 0; i < t->n_checks; i++)
        found = found || t->checks[i].kind == CHECK_PORT || names_port(t->checks[i].text);
    for (int i = 0; i < t->n_waits; i++)
        found = found || t->waits[i].kind == CHECK_PORT || names_port(t->waits[i].text);
    return found;
}
