/* fuzz_running.c - any bytes as the state file of a running run: rejected with a reason, or a process. */
#include "run/running.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = ERR_INIT;
    struct running r;
    int rc = running_parse((const char *)data, size, &r, &e);
    if (rc ? !*e.text : r.pid < 2 || !r.born)
        bug("neither refused with a reason nor a process");
    return 0;
}
