/* fuzz_earlier.c - any bytes as the results.json of an earlier run; every test that is read is found
 * again. */
#include "qa/suite/earlier.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct earlier p;
    int rc = earlier_parse((const char *)data, size, "fuzz", &p, NULL);
    for (int i = 0; !rc && i < p.n && i < 100; i++) {
        const struct earlier_test *t = earlier_find(&p, p.suite ? p.suite : "", p.tests[i].id);
        if (!t || strcmp(t->id, p.tests[i].id) != 0)
            abort();
    }
    earlier_free(&p);
    return 0;
}
