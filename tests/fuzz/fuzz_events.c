/* fuzz_events.c - any bytes as events.jsonl: reading, sorting into steps and printing the page. */
#include "trace/report.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record r = {.run = json_object()};
    record_parse(&r, (const char *)data, size, NULL);
    char *page;
    size_t len;
    FILE *f = open_memstream(&page, &len);
    if (f) {
        report_print(&r, f);
        fclose(f);
        free(page);
    }
    record_free(&r);
    return 0;
}
