/* provider.c - table of known model services and local servers (--provider). */
#include "remote/provider.h"

#include <stddef.h>

#define ENTRY(name, ...) {#name, __VA_ARGS__},

static const struct provider providers[] = {PROVIDERS(ENTRY)};

const struct provider *provider_at(int choice)
{
    size_t n = sizeof providers / sizeof *providers;
    return choice > 0 && (size_t)choice <= n ? &providers[choice - 1] : NULL;
}
