/* fuzz_listing.c - any text as a hub's list of files; names stay below a directory, and have sizes and
 * hashes. */
#include "checkpoint/hub_listing.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const all[] = {"*", NULL};
    struct hub_listing l;
    if (listing_parse((const char *)data, size, size % 2 ? all : NULL, &l, NULL) == 0) {
        for (int i = 0; i < l.n; i++) {
            const char *p = l.files[i].path, *up = strstr(p, "..");
            bool leaves = up && (up == p || up[-1] == '/') && (up[2] == '/' || !up[2]);
            if (*p == '/' || leaves || (strlen(l.files[i].hash) != 40 && strlen(l.files[i].hash) != 64))
                __builtin_trap();
        }
        listing_free(&l);
    }
    return 0;
}
