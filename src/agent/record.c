/* keep.c - what makes a step repeatable goes into the record.
 *
 * The system text (it has the date in it) stands in the first event; with each reply stand its settings, the
 * number of its prompt's tokens and their hash, where images lie among them, the hash of the logits, and places in
 * tokens.bin and logprobs.bin.  tokens.bin gets of each conversation what is new: the tokens before `kept` are those of
 * the reply before.
 *
 *     conversation of a reply = first `kept` tokens of that of the reply before + what stands at `tokens_at`
 *                             = prompt [prompt_tokens] + what was generated [tokens]
 *
 * A script in the model's place has no tokens, and leaves none of this.
 */
#include "agent/private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SPANS_MAX = 1 << 16 };

int agent_keep_start(struct agent *a, const char *system, struct err *e)
{
    trace_begin(a->o->trace, 0, "start");
    trace_text(a->o->trace, "task", a->o->task);
    trace_text(a->o->trace, "system", system);
    return trace_end(a->o->trace, e);
}

static void put_hash(struct trace *t, const char *key, uint64_t hash)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)hash);
    trace_text(t, key, hex);
}

/* [[first, end], ...] of each image's rows among the tokens. */
static void put_spans(struct trace *t, const int32_t *ids, int64_t n, int32_t image)
{
    struct buf b;
    buf_init(&b, SPANS_MAX);
    buf_puts(&b, "[");
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; ids[i] == image && end < n && ids[end] == image;)
            end++;
        if (ids[i] == image)
            buf_printf(&b, "%s[%lld, %lld]", b.len > 1 ? ", " : "", (long long)i, (long long)end);
    }
    buf_puts(&b, "]");
    trace_json(t, "image_spans", b.full ? "null" : b.data);
    buf_free(&b);
}

/* Tokens that this conversation has in common with that of the reply before. */
static int64_t common(const struct agent *a, const int32_t *ids, int64_t n)
{
    int64_t i = 0;
    while (i < n && i < a->n_kept && ids[i] == a->kept[i])
        i++;
    return i;
}

static int keep_tokens(struct agent *a, const struct generated *g, struct err *e)
{
    const struct llm *m = a->o->llm;
    struct trace *t = a->o->trace;
    const int32_t *ids = m->ops->tokens(m);
    int64_t length = m->ops->length(m), prompt = length - g->n, at, logprobs_at;
    if (!ids)
        return 0;
    int64_t kept = common(a, ids, prompt);
    float *pairs = xmalloc((unsigned long)g->n + 1, 2 * sizeof *pairs);
    for (int i = 0; i < g->n; i++) {
        const struct token_choice *c = &g->choices[i];
        pairs[2 * i] = c->forced ? NAN : c->logprob;
        pairs[2 * i + 1] = c->forced ? NAN : c->logprob_masked;
    }
    int rc =
        trace_tokens(t, ids + kept, length - kept, &at, e) || trace_logprobs(t, pairs, g->n, &logprobs_at, e)
            ? -1
            : 0;
    free(pairs);
    if (rc)
        return -1;
    a->kept = xrealloc(a->kept, (unsigned long)length + 1, sizeof *a->kept);
    memcpy(a->kept + kept, ids + kept, (size_t)(length - kept) * sizeof *ids);
    a->n_kept = length;
    trace_int(t, "prompt_tokens", prompt);
    trace_int(t, "kept", kept);
    trace_int(t, "tokens_at", at);
    trace_int(t, "logprobs_at", logprobs_at);
    put_hash(t, "prompt_hash", XXH3_64bits(ids, (size_t)prompt * sizeof *ids));
    put_spans(t, ids, prompt, m->ops->image_token(m));
    if (g->hashed)
        put_hash(t, "logits_hash", g->logits_hash);
    else
        trace_text(t, "logits_hash", NULL); /* they stayed on the device */
    return 0;
}

int agent_keep_reply(struct agent *a, const struct llm_request *r, const struct generated *g, struct err *e)
{
    static const char *const finish[] = {"stop", "length", "grammar", "cancelled"};
    struct trace *t = a->o->trace;
    trace_begin(t, a->number, "generate");
    trace_text(t, "text", g->text.data ? g->text.data : "");
    trace_int(t, "tokens", g->n);
    trace_int(t, "forced", g->forced);
    trace_text(t, "finish", finish[g->finish]);
    trace_text(t, "goal", r->goal == GOAL_ANSWER ? "answer" : "step");
    trace_number(t, "temperature", (double)r->sampling.temperature);
    trace_number(t, "top_p", (double)r->sampling.top_p);
    trace_int(t, "max_tokens", r->sampling.max_tokens);
    trace_int(t, "reroll", r->resample);
    trace_bool(t, "think", r->think);
    trace_number(t, "ms", g->ms);
    /* Tokens cannot be masked: from a reply that spells a secret on there are none. */
    a->spelled = a->spelled || secrets_contained_in(a->o->secrets, g->text.data ? g->text.data : "");
    if (a->o->log_tokens && !a->spelled && keep_tokens(a, g, e))
        return -1;
    return trace_end(t, e);
}
