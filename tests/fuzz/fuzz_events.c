/* fuzz_events.c - any bytes as events.jsonl and as frames.idx: reading, sorting into steps, printing the page, and
 * following the conversation that can be done again.
 */
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
    static const int32_t tokens[NUMBERS];
    static const float logprobs[2 * NUMBERS];
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
    free(c.ids);
    timeline_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record r = {.run = json_object()};
    struct frame_index x = {0};
    record_parse(&r, (const char *)data, size, NULL);
    print(&r);
    follow(&r);
    index_parse(&x, (const char *)data, size, NULL);
    index_find(&x, 3);
    index_free(&x);
    record_free(&r);
    return 0;
}
