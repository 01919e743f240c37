/* group.c - reads the limits of control groups (group.h). */
#include "capacity/group.h"

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads two numbers; "max" and a missing one become -1. Returns false if the file is missing. */
static bool numbers(const char *dir, const char *name, double out[2])
{
    char line[128], *end = line, *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "re");
    free(path);
    bool found = f && fgets(line, sizeof line, f);
    for (int i = 0; found && i < 2; i++) {
        char *from = end;
        out[i] = strtod(from, &end);
        if (end == from)
            out[i] = -1;
    }
    if (f)
        fclose(f);
    return found;
}

/* Returns the value of a line "NAME 123"; 0 if it is missing. */
static uint64_t value_of(const char *dir, const char *file, const char *name)
{
    char line[256], *path = xasprintf("%s/%s", dir, file);
    size_t n = strlen(name);
    uint64_t found = 0;
    FILE *f = fopen(path, "re");
    free(path);
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, n) && line[n] == ' ')
            found = strtoull(line + n, NULL, 10);
    if (f)
        fclose(f);
    return found;
}

static void read_cpu(const char *dir, struct group_limits *out)
{
    double quota[2], period[2];
    bool found = numbers(dir, "cpu.max", quota);
    if (!found && numbers(dir, "cpu.cfs_quota_us", quota) && numbers(dir, "cpu.cfs_period_us", period)) {
        quota[1] = period[0];
        found = true;
    }
    if (!found || quota[0] <= 0 || quota[1] <= 0)
        return;
    double cores = quota[0] / quota[1];
    if (out->cores <= 0 || cores < out->cores)
        out->cores = cores;
    out->throttled += value_of(dir, "cpu.stat", "nr_throttled");
}

static void read_memory(const char *dir, struct group_limits *out)
{
    double limit[2], use[2];
    uint64_t cached;
    if (numbers(dir, "memory.max", limit) && numbers(dir, "memory.current", use))
        cached = value_of(dir, "memory.stat", "inactive_file");
    else if (numbers(dir, "memory.limit_in_bytes", limit) && numbers(dir, "memory.usage_in_bytes", use))
        cached = value_of(dir, "memory.stat", "total_inactive_file");
    else
        return;
    if (limit[0] < 0 || limit[0] >= (double)(SIZE_MAX >> 2)) /* version 1 writes a huge number for none */
        return;
    double used = use[0] > (double)cached ? use[0] - (double)cached : 0;
    size_t left = limit[0] > used ? (size_t)(limit[0] - used) : 0;
    if (left < out->memory_left)
        out->memory_left = left;
}

/* Calls read() with the directory of a group, and with each one above it. In a container that does not see
 * its own path, only the top exists, and has the container's limits. */
static void climb(const char *root, const char *controller, const char *group,
                  void (*read)(const char *, struct group_limits *), struct group_limits *out)
{
    autofree char *dir = xasprintf("%s/sys/fs/cgroup%s%s", root, controller, group);
    char *top = dir + strlen(dir) - strlen(group);
    for (;;) {
        read(dir, out);
        char *slash = strrchr(top, '/');
        if (!slash)
            break;
        *slash = 0;
    }
}

/* Returns whether a list such as "cpu,cpuacct" has a name. */
static bool lists(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, name, n) && (p[n] == ',' || !p[n]))
            return true;
    return false;
}

struct group_limits group_limits(const char *root)
{
    struct group_limits out = {.memory_left = SIZE_MAX};
    char line[PATH_MAX], *path = xasprintf("%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    free(path);
    while (f && fgets(line, sizeof line, f)) { /* "4:cpu,cpuacct:/path"; version 2: "0::/path" */
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        bool second = !list[1];
        if (second || lists(list + 1, "cpu"))
            climb(root, second ? "" : "/cpu", group, read_cpu, &out);
        if (second || lists(list + 1, "memory"))
            climb(root, second ? "" : "/memory", group, read_memory, &out);
    }
    if (f)
        fclose(f);
    return out;
}
