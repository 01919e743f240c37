/* report.c - see report.h. */
#include "report/report.h"

int reports_write(const struct results *r, const struct report_paths *p, struct err *first)
{
    const struct {
        const char *path;
        int (*write)(const struct results *r, const char *path, struct err *e);
    } all[] = {{p->junit, report_junit},
               {p->json, report_json},
               {p->tap, report_tap},
               {p->html, report_html},
               {p->github, report_github}};
    int failed = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct err e = ERR_INIT;
        if (!all[i].path || !all[i].write(r, all[i].path, &e))
            continue;
        warn("%s", e.text);
        if (failed++ == 0 && first)
            *first = e;
    }
    return failed;
}
