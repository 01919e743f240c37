/* memory.c - memory of the machine and of this process (memory.h). */
#include "capacity/memory.h"

#include "capacity/group.h"

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

size_t memory_available(void)
{
    size_t have = proc_bytes("/proc/meminfo", "MemAvailable"), left = group_limits("").memory_left;
    return have < left ? have : left;
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
