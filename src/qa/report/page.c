/* page.c - writes the HTML report of a suite, from the embedded template page.html with its {{slots}}.
 *
 * The page is self-contained and can be opened from disk. It links to the pages of the runs for their steps.
 * Tests that need attention come first, expanded and with their last screenshots, then flaky tests; each
 * other test is one line that can be expanded. A script adds a search field and a filter by outcome. */
#include "qa/report/page.h"

#include "base/bar.h"
#include "base/embed.h"
#include "qa/report/report.h"
#include "qa/report/summary.h"
#include "trace/page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

EMBED(qa_template, "src/qa/report/page.html");

enum { TEXT = 16 << 10, SHORT = 400, LANE = 18, GAP = 4, WIDE = 1000 };

/* ---- text ---------------------------------------------------------------------------------------- */

void qa_page_text(FILE *f, const char *s)
{
    autofree char *clean = clean_text(s, TEXT);
    page_text(f, clean);
}

void qa_page_line(FILE *f, const char *s)
{
    autofree char *line = clean_line(s, SHORT);
    page_text(f, line);
}

void qa_page_fact(FILE *f, const char *name, const char *value)
{
    autofree char *line = clean_line(value, SHORT);
    page_pair(f, name, line);
}

/* Writes a percent-encoded path. Only plain characters stay unencoded, so it cannot contain a scheme, query
 * or markup. */
void qa_page_href(const struct qa_page *p, const char *path)
{
    autofree char *seen = artifact_link(p->folder, path);
    for (const char *c = seen; *c; c++) {
        if (isalnum((unsigned char)*c) || strchr("-_./~", *c))
            fputc(*c, p->f);
        else
            fprintf(p->f, "%%%02X", (unsigned char)*c);
    }
}

/* Returns the position of a test on the page. */
static int number_of(const struct qa_page *p, const struct result *r)
{
    int i = 0;
    while (p->list[i] != r)
        i++;
    return i;
}

/* ---- the head ------------------------------------------------------------------------------------ */

static void slot_title(void *arg)
{
    const struct qa_page *p = arg;
    qa_page_line(p->f, p->r->suite->name);
}

static void slot_nonce(void *arg)
{
    const struct qa_page *p = arg;
    fputs(p->nonce, p->f);
}

static void slot_status(void *arg)
{
    const struct qa_page *p = arg;
    const struct results *r = p->r;
    bool all = r->n && summary_count(r, SUMMARY_GROUPS - 1) == r->n;
    autofree char *counts = all ? xasprintf("all %d passed", r->n) : summary_counts(r);
    fprintf(p->f, "<span class=\"status %s\">%s</span>",
            all                    ? "good"
            : results_exit_code(r) ? "bad"
                                   : "unsure",
            counts);
}

static void slot_facts(void *arg)
{
    const struct qa_page *p = arg;
    char text[64];
    double sum = 0;
    bar_time(p->r->seconds, text);
    page_pair(p->f, "time", text);
    for (int i = 0; i < p->r->n; i++)
        sum += p->r->results[i].seconds;
    page_pairf(p->f, "workers", "%d", p->r->jobs);
    if (p->r->jobs > 1) {
        bar_time(sum, text);
        page_pair(p->f, "sum of tests", text);
    }
    qa_page_fact(p->f, "started", p->r->started);
    qa_page_fact(p->f, "model", p->r->model);
    qa_page_fact(p->f, "dialect", p->r->dialect);
    qa_page_fact(p->f, "holorun", p->r->version);
    qa_page_fact(p->f, "host", p->r->host);
    qa_page_fact(p->f, "suite", p->r->suite->path);
    for (int i = 0; p->r->notes && p->r->notes[i]; i++)
        qa_page_fact(p->f, "note", p->r->notes[i]);
    if (p->r->memory_peak)
        page_pairf(p->f, "memory", "peak %.0f MiB: weights %.0f, session states %.0f", mib(p->r->memory_peak),
                   mib(p->r->memory_weights), mib(p->r->memory_state));
}

/* Writes a bar with all groups, and their counts, which link to the first test of each group. */
static void slot_summary(void *arg)
{
    const struct qa_page *p = arg;
    int first = 0;
    fputs("<div class=\"bar whole\" aria-hidden=\"true\">", p->f);
    for (int g = SUMMARY_GROUPS - 1; g >= 0; g--)
        if (summary_count(p->r, g))
            fprintf(p->f, "<span class=\"of-%s\" style=\"flex:%d\"></span>", summary_group_class(g),
                    summary_count(p->r, g));
    fputs("</div>\n<nav class=\"choose number\" aria-label=\"outcomes\">", p->f);
    for (int g = 0; g < SUMMARY_GROUPS; g++) {
        int n = summary_count(p->r, g);
        if (n)
            fprintf(p->f, "<a class=\"of-%s\" data-of=\"%s\" href=\"#test-%d\"><i></i><b>%d</b> %s</a>\n",
                    summary_group_class(g), summary_group_class(g), first, n, summary_group_name(g));
        first += n;
    }
    fputs("</nav>\n", p->f);
}

/* Writes the timeline, with one lane per worker. */
static void slot_lanes(void *arg)
{
    const struct qa_page *p = arg;
    const struct results *r = p->r;
    char took[32];
    int lanes = 1;
    for (int i = 0; i < r->n; i++)
        if (r->results[i].n && r->results[i].worker + 1 > lanes && r->results[i].worker < 256)
            lanes = r->results[i].worker + 1;
    if (r->seconds <= 0 || r->n < 2)
        return;
    int high = lanes > 16 ? LANE / 2 : LANE;
    fprintf(p->f,
            "<figure class=\"lanes\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
            "style=\"height:%dpx\" role=\"img\" aria-label=\"timeline of tests\">\n",
            WIDE, lanes * high, lanes * high);
    for (int i = 0; i < r->n; i++) {
        const struct result *x = &r->results[i];
        if (!x->n || x->worker < 0 || x->worker >= lanes)
            continue;
        double left = x->began / r->seconds * WIDE, wide = x->seconds / r->seconds * WIDE;
        fprintf(p->f,
                "<a href=\"#test-%d\"><rect class=\"of-%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" "
                "height=\"%d\"><title>",
                number_of(p, x), summary_group_class(summary_group(x)), left, x->worker * high,
                wide > 1.5 ? wide - .8 : wide, high - GAP);
        qa_page_line(p->f, x->test->id);
        fprintf(p->f, ", %.1f s</title></rect></a>\n", x->seconds);
    }
    bar_time(r->seconds, took);
    fprintf(p->f,
            "</svg><figcaption class=\"number\"><span>0 s</span><span>%d "
            "worker%s</span><span>%s</span></figcaption></figure>\n",
            lanes, lanes == 1 ? "" : "s", took);
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void slot_tests(void *arg)
{
    struct qa_page *p = arg;
    for (int i = 0; i < p->r->n; i++)
        qa_page_test(p, p->list[i], i);
    if (!p->r->n)
        fputs("<p>No tests ran.</p>\n", p->f);
}

void report_html(const struct results *r, const char *path, FILE *f)
{
    static const struct page_slot slots[] = {
        {"title", slot_title},     {"nonce", slot_nonce}, {"status", slot_status}, {"facts", slot_facts},
        {"summary", slot_summary}, {"lanes", slot_lanes}, {"tests", slot_tests},
    };
    struct qa_page p = {.f = f,
                        .r = r,
                        .list = summary_worst_first(r),
                        .folder = artifact_folder(path),
                        .image_bytes = QA_PAGE_IMAGE_BYTES};
    page_nonce(p.nonce);
    page_print(qa_template, slots, (int)(sizeof slots / sizeof *slots), p.f, &p);
    free(p.list);
    free(p.folder);
}
