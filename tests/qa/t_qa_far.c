/* t_qa_far.c - tests a suite whose model runs in another process (tests/scripts/qa_far.sh). */
#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static void t_far(void **state)
{
    if (access("build/release/helpers/form", X_OK) || system("command -v Xvfb jq >/dev/null"))
        skip();
    assert_int_equal(
        system(
            "F32=1 tests/scripts/qa_far.sh tests/suites/crowd.yaml 3 --only dialog-buttons-1 --only dialog-buttons-2 --only dialog-options-61 >&2"),
        0);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a suite has the same verdicts and exports with the model behind `holorun serve` as in one process",
          t_far),
};

CHECK_MAIN()
