/* llm_counted.c - operations of a conversation that keeps only its length; see llm_counted.h. */
#include "llm/llm_counted.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_TOKENS = 256 };

static struct llm_counted *counted_of(const struct llm *m)
{
    return (struct llm_counted *)(uintptr_t)m;
}

void llm_counted_add(struct llm_counted *c, const struct chat_part *parts, int n)
{
    for (int i = 0; i < n; i++)
        c->length += parts[i].image ? IMAGE_TOKENS : (int64_t)strlen(parts[i].text);
}

void llm_counted_failed(const struct chat_part *parts, int i, char out[ERR_TEXT])
{
    static const char mark[] = "FAILED ";
    const char *failed = i && parts[0].text ? strstr(parts[0].text, mark) : NULL;
    failed = failed ? failed + sizeof mark - 1 : "";
    snprintf(out, ERR_TEXT, "%.*s", (int)strcspn(failed, "\n"), failed);
}

void llm_counted_spoken(struct llm_counted *c, const struct llm_request *r, int64_t start,
                        struct generated *out)
{
    out->n = 1;
    c->stats.decoded++;
    c->length += (int64_t)out->text.len;
    if (r->on_text)
        r->on_text(r->arg, out->text.data, out->text.len);
    out->ms = clock_ms_since(start);
}

int llm_counted_begin(struct llm *m, const char *system, struct err *e)
{
    counted_of(m)->length = (int64_t)strlen(system);
    return 0;
}

int llm_counted_reply(struct llm *m, const char *text, struct err *e)
{
    counted_of(m)->length += (int64_t)strlen(text);
    return 0;
}

int llm_counted_close(struct llm *m, struct err *e)
{
    return 0;
}

struct llm_mark *llm_counted_mark(struct llm *m, struct err *e)
{
    int64_t *mark = xmalloc(1, sizeof *mark);
    *mark = counted_of(m)->length;
    return (struct llm_mark *)mark;
}

int llm_counted_rewind(struct llm *m, const struct llm_mark *at, struct err *e)
{
    counted_of(m)->length = llm_counted_mark_length(at);
    return 0;
}

int64_t llm_counted_mark_length(const struct llm_mark *at)
{
    return *(const int64_t *)(const void *)at;
}

void llm_counted_mark_free(struct llm_mark *at)
{
    free(at);
}

int64_t llm_counted_length(const struct llm *m)
{
    return counted_of(m)->length;
}

struct session_stats llm_counted_stats(const struct llm *m)
{
    return counted_of(m)->stats;
}
