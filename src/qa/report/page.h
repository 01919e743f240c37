/* page.h - the two parts of the suite's page: the page (page.c) and one test on it (page_test.c). */
#ifndef HOLORUN_QA_REPORT_PAGE_H
#define HOLORUN_QA_REPORT_PAGE_H

#include "qa/report/result.h"

#include <stdio.h>

enum { QA_PAGE_ROOM = 14 << 20 }; /* bytes of all pictures on a page */

struct qa_page {
    FILE *f;
    const struct results *r;
    const struct result **list; /* in the order of the page */
    char *folder;               /* the page's own, from which links are seen */
    size_t room;                /* bytes of pictures that may still go into the page */
    char nonce[33];
};

/* How a result is filed on the page: its outcome, or "flaky". */
const char *qa_page_group(const struct result *r);

void qa_page_text(FILE *f, const char *s); /* clean, escaped, cut at its beginning when it is very long */
void qa_page_line(FILE *f, const char *s); /* ... in one line */
void qa_page_href(const struct qa_page *p, const char *path); /* a path as the value of href */

/* One test, with pictures when it wants a look; number: on the page, from 0. */
void qa_page_test(struct qa_page *p, const struct result *r, int number);

#endif
