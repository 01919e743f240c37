/* tiny_dirs_write.c - writes a small random model for each published template given, prints its directory,
 * and removes all of them at the end of its input (tests/scripts/serve_tools.py). */
#include "check.h"
#include "tiny_dirs.h"

#include <stdio.h>

enum { MAX_DIRS = 16 };

int main(int argc, char **argv)
{
    static struct tiny_dir dirs[MAX_DIRS];
    int n = 0;
    for (int i = 1; i < argc && n < MAX_DIRS; i++) {
        char *template = published_template(argv[i]);
        if (!template) {
            fprintf(stderr, "tiny_dirs_write: no template '%s': run tests/scripts/templates.sh\n", argv[i]);
            return ERR_ENV;
        }
        tiny_dir_open(&dirs[n], tiny_dir_kind_of(argv[i]), template);
        printf("%s %s\n", argv[i], dirs[n++].dir);
        free(template);
    }
    fflush(stdout);
    while (getchar() != EOF)
        ;
    for (int i = 0; i < n; i++)
        tiny_dir_close(&dirs[i]);
    return 0;
}
