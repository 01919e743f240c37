/* memory.c - memory of the machine and of this process (memory.h). */
#include "capacity/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 256 << 10 };

/* Returns the value of a line "NAME:   123 kB" of a file in /proc, in bytes; 0 if it is missing. */
static size_t proc_bytes(const char *path, const char *name)
{
    FILE *f = fopen(path, "re");
    char line[256];
    size_t found = 0, n = strlen(name);
    while (f && !found && fgets(line, sizeof line, f))
        if (!strncmp(line, name, n) && line[n] == ':')
            found = (size_t)strtoull(line + n + 1, NULL, 10) << 10;
    if (f)
        fclose(f);
    return found;
}

/* Returns the memory limit of this process's control group; 0: none. */
static size_t group_limit(void)
{
    static const char *const paths[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    size_t limit = 0;
    for (size_t i = 0; i < sizeof paths / sizeof *paths && !limit; i++) {
        FILE *f = fopen(paths[i], "re");
        char line[64] = "";
        if (f && fgets(line, sizeof line, f))
            limit = (size_t)strtoull(line, NULL, 10); /* "max" reads as 0 */
        if (f)
            fclose(f);
    }
    return limit;
}

size_t memory_available(void)
{
    size_t all = proc_bytes("/proc/meminfo", "MemTotal"), have = proc_bytes("/proc/meminfo", "MemAvailable");
    size_t limit = group_limit();
    if (limit && limit < all)
        all = limit;
    return have < all ? have : all;
}

struct memory_use memory_use(void)
{
    struct memory_use u = {
        proc_bytes("/proc/self/status", "VmRSS"), proc_bytes("/proc/self/status", "RssAnon"),
        proc_bytes("/proc/self/status", "RssFile") + proc_bytes("/proc/self/status", "RssShmem")};
    return u;
}

size_t memory_heap(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

void memory_return_large(void)
{
    mallopt(M_MMAP_THRESHOLD, LARGE); /* setting a threshold disables its automatic increase */
    mallopt(M_TRIM_THRESHOLD, LARGE);
}

void memory_share_heaps(void)
{
    mallopt(M_ARENA_MAX, 2);
}

void memory_trim(void)
{
    malloc_trim(0);
}
