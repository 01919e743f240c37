/* fuzz_earlier.c - any bytes as the results.json of an earlier run; every test that is read can be looked
 * up. */
#include "qa/suite/private.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct earlier p;
    const char *id;
    json_t *test;
    if (!earlier_parse((const char *)data, size, "fuzz", &p, NULL))
        json_object_foreach(p.tests, id, test)
        {
            if (!earlier_find(&p, p.suite ? p.suite : "", id).known)
                abort();
        }
    earlier_free(&p);
    return 0;
}
