/* without.c - runs the program without some corrections of the embedded model, to measure their effect.
 *
 *   HOLORUN_MODEL=assets/pocket/model without omissions,repeats qa tests/suites/forms.yaml --jobs 2 --out DIR
 *
 * The first argument lists the corrections to disable, separated by commas, or is "none"; the rest is a
 * command line of holorun. */
#include "pocket/private.h"

#include <stdio.h>
#include <string.h>

int holorun_main(int argc, char **argv);

#define main holorun_main
#include "../../src/main.c"
#undef main

static unsigned find_correction(const char *name, size_t n)
{
    static const char *const names[] = {"omissions", "repeats", "places", "answers"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && !memcmp(names[i], name, n))
            return 1U << i;
    return 0;
}

int main(int argc, char **argv)
{
    const char *list = argc > 1 ? argv[1] : "";
    for (const char *s = list; *s && strcmp(list, "none") != 0; s += *s == ',') {
        size_t n = strcspn(s, ",");
        unsigned correction = find_correction(s, n);
        if (!correction) {
            fprintf(stderr, "without: unknown correction '%.*s'\n", (int)n, s);
            return 2;
        }
        pocket_without |= correction;
        s += n;
    }
    if (argc < 3) {
        fprintf(stderr, "usage: without CORRECTION[,CORRECTION...]|none COMMAND ...\n");
        return 2;
    }
    argv[1] = argv[0];
    return holorun_main(argc - 1, argv + 1);
}
