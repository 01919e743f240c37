/* page.h - the HTML report of a suite: the page (page.c) and a single test on it (page_test.c). */
#pragma once

#include "qa/report/result.h"

#include <stdio.h>

enum { QA_PAGE_IMAGE_BYTES = 14 << 20 }; /* limit for all images embedded in a page */

struct qa_page {
    FILE *f;
    const struct results *r;
    const struct result **list; /* in the order on the page */
    char *folder;               /* directory of the page: links are relative to it */
    size_t image_bytes;         /* remaining part of QA_PAGE_IMAGE_BYTES */
    char nonce[33];
};

/* Writes a text, cleaned and escaped; of a long text only the end. */
void qa_page_text(FILE *f, const char *s);
void qa_page_line(FILE *f, const char *s);                       /* the same, in one line */
void qa_page_fact(FILE *f, const char *name, const char *value); /* the same, as a page_pair() */
void qa_page_href(const struct qa_page *p, const char *path);    /* writes a path as the value of href */

/* Writes one test, with screenshots if it needs attention. number: position on the page, from 0. */
void qa_page_test(struct qa_page *p, const struct result *r, int number);
