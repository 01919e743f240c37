/* t_pocket_package.c - the training package of the embedded model (assets/pocket): imports, vocabulary, dialect.
 *
 * tests/scripts/pocket_package.py does the checks; it skips modules whose third-party packages are missing. */
#include "check.h"

#include <stdlib.h>

static void t_package(void **state)
{
    if (system("python3 -c 'import random' 2>/dev/null")) {
        check_note("python3 is missing");
        skip();
    }
    assert_int_equal(system("python3 -B tests/scripts/pocket_package.py"), 0);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the training package imports without cycles and has the published vocabulary", t_package),
};

CHECK_MAIN()
