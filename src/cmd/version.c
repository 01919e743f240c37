/* version.c - `holorun version`: prints the release, the commit of its sources, and the libraries.
 *
 * The Makefile writes build.h; a build without it prints less. */
#include "cmd/commands.h"

#include "base/feature.h"
#include "checkpoint/find.h"
#include "cli/version.h"
#include "ops/ops.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <xdo.h>

#if __has_include("build.h")
#include "build.h"
#else
#define HOLORUN_BUILD    ""
#define HOLORUN_KERNELS  "unknown"
#define HOLORUN_PACKAGES "unknown"
#endif

enum { MAX_NAMES = 16 };

const struct command version_command = {
    "version", "", "print version and build information", NULL, "holorun version\n", NULL, cmd_version};

const char *version_build(void)
{
    return HOLORUN_BUILD;
}

int cmd_version(int argc, char **argv)
{
    struct err e = ERR_INIT;
    const char *names[MAX_NAMES];
    int n = options_parse(&version_command, NULL, argc, argv, &e);
    if (n < 0)
        return options_refuse(&version_command, &e);
    printf("holorun %s%s%s%s\n", HOLORUN_VERSION, *HOLORUN_BUILD ? " (" : "", HOLORUN_BUILD,
           *HOLORUN_BUILD ? ")" : "");
#ifdef __clang__
    printf("compiler   %s\n", __VERSION__);
#else
    printf("compiler   gcc %s\n", __VERSION__);
#endif
    n = backend_cpu_list(names, MAX_NAMES);
    printf("kernels    %s; here %s\n", HOLORUN_KERNELS, names[n - 1]);
    printf("libraries  glibc %s, xdo %s, %s\n", gnu_get_libc_version(), xdo_version(), HOLORUN_PACKAGES);
    for (int i = 0; i < FEATURES; i++)
        if (feature_require(i, &e))
            printf("missing    %s\n", e.text);
    autofree char *dir = model_find(NULL, &e);
    printf("model      %s\n", dir ? dir : e.text);
    return 0;
}
