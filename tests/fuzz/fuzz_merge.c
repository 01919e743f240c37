/* fuzz_merge.c - any bytes as the results.json of a shard; accepted results are merged and printed, and a
 * merge with themselves is never green. */
#include "qa/report/merge.h"
#include "qa/report/report.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct results_file f[2];
    struct merged m = {0};
    int rc = 0;
    for (int i = 0; i < 2; i++)
        rc |= results_file_parse((const char *)data, size, "results.json", &f[i], NULL);
    if (rc == 0) {
        FILE *out = fopen("/dev/null", "w");
        merge(f, 2, &m);
        if (m.results.n && results_exit_code(&m.results) == 0)
            abort();
        for (int i = 0; i < REPORT_GITHUB; i++)
            ((report_printer *const[]){report_junit, report_tap, report_json, report_html})[i](
                &m.results, "results", out);
        fclose(out);
    }
    merged_free(&m);
    for (int i = 0; i < 2; i++)
        results_file_free(&f[i]);
    return 0;
}
