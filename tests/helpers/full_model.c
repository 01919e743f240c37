/* full_model - writes a model directory of the published size with sparse weights, for experiments:
 * full_model DIR.  It takes a few megabytes of disk and reads as 26 GB of zeros. */
#include "full_model.h"

#include "base/err.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct full_model m;
    struct err e = ERR_INIT;
    full_init(&m);
    if (argc != 2 || strlen(argv[1]) >= sizeof m.dir) {
        fprintf(stderr, "full_model: say which folder to write, in less than %zu letters\n", sizeof m.dir);
        return ERR_USAGE;
    }
    if (dir_make(argv[1], &e)) {
        fprintf(stderr, "full_model: %s\n", e.text);
        return (int)e.kind;
    }
    strcpy(m.dir, argv[1]);
    full_write(&m);
    m.dir[0] = 0; /* keeps the directory */
    full_free(&m);
    return 0;
}
