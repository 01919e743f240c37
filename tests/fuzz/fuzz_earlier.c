/* fuzz_earlier.c - any bytes as the report of an earlier run, XML or JSON; what is read is looked up. */
#include "qa/suite/earlier.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct earlier p;
    if (earlier_parse((const char *)data, size, "fuzz", &p, NULL))
        return 0;
    for (int i = 0; i < p.n && i < 100; i++) {
        const struct earlier_test *t = earlier_find(&p, p.tests[i].suite, p.tests[i].id);
        if (!t || strcmp(t->id, p.tests[i].id) != 0)
            abort();
    }
    earlier_free(&p);
    return 0;
}
