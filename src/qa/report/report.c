/* report.c - see report.h. */
#include "qa/report/report.h"

int reports_write(const struct results *r, struct report_paths *p, struct err *e)
{
    const struct {
        const char **path;
        int (*write)(const struct results *r, const char *path, struct err *e);
    } all[] = {{&p->junit, report_junit},
               {&p->json, report_json},
               {&p->tap, report_tap},
               {&p->html, report_html},
               {&p->github, report_github}};
    struct err first = ERR_INIT, later = ERR_INIT;
    int failed = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!*all[i].path || !all[i].write(r, *all[i].path, failed ? &later : &first))
            continue;
        *all[i].path = NULL;
        failed++;
    }
    if (failed > 1)
        err_set(e, first.kind, "%s, and %d more report%s not written", first.text, failed - 1,
                failed == 2 ? " was" : "s were");
    else if (failed)
        *(e ? e : &later) = first;
    return failed ? -1 : 0;
}
