/* fuzz_events.c - any bytes as events.jsonl and as frames.idx: parsing, grouping into steps, printing the
 * page, replaying or resuming the conversation, comparing a run with its first half, and exporting its
 * actions.
 */
#include "replay/diff.h"
#include "replay/export.h"
#include "replay/interrupted.h"
#include "replay/timeline.h"
#include "trace/index.h"
#include "trace/report.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NUMBERS = 500 };

static void print(const struct record *r)
{
    char *page;
    size_t len;
    FILE *f = open_memstream(&page, &len);
    if (!f)
        return;
    report_print(r, f);
    fclose(f);
    free(page);
}

static void follow(const struct record *r)
{
    int32_t *tokens = xcalloc(NUMBERS, sizeof *tokens);
    float *logprobs = xcalloc(NUMBERS, 2 * sizeof *logprobs);
    struct timeline t;
    struct err e = ERR_INIT;
    if (timeline_read(&t, r, tokens, NUMBERS, logprobs, NUMBERS, &e)) {
        if (!*e.text)
            bug("a refusal without a message");
        return;
    }
    struct conversation_ids c = {0};
    int32_t sum = 0;
    for (int i = 0; i < t.n; i++)
        if (t.turns[i].op == TURN_REPLY && t.turns[i].reply.has_tokens &&
            timeline_follow(&t, &t.turns[i], &c, NULL) == 0)
            for (int k = 0; k < t.turns[i].reply.n; k++)
                sum += turn_ids(&t, &t.turns[i])[k] + (int32_t)turn_logprobs(&t, &t.turns[i])[2 * k];
    if (sum)
        bug("numbers that are not there");
    timeline_complete(&t, &e);
    struct resume p;
    if (interrupted_make(&p, &t, &e) == 0)
        interrupted_free(&p);
    free(c.ids);
    timeline_free(&t);
}

/* Compares two records and frees both. */
static void compare(const struct record *a, const struct record *b)
{
    struct run_diff d;
    char *page;
    size_t len;
    diff_make(&d, a, b);
    FILE *f = open_memstream(&page, &len);
    if (f) {
        diff_print(&d, f);
        diff_page_print(&d, "fuzz", f);
        fclose(f);
        free(page);
    }
    diff_free(&d);
}

static void translate(const struct record *r)
{
    for (int i = 0; i < r->n; i++) {
        const json_t *action = json_object_get(r->events[i].fields, "action");
        if (!json_is_object(action))
            continue;
        free(export_python(action));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record r = {.run = json_object()}, half = {.run = json_object()};
    struct frame_index x = {0};
    record_parse(&r, (const char *)data, size, NULL);
    print(&r);
    follow(&r);
    translate(&r);
    record_parse(&half, (const char *)data, size / 2, NULL);
    index_parse(&x, (const char *)data, size, NULL);
    index_find(&x, 3);
    index_free(&x);
    compare(&r, &half);
    return 0;
}
