/* record.c - the events of a run that make a step reproducible.
 *
 * The start event holds the system text, which contains the date. Each generate event holds the reply's
 * settings, the number of its prompt's tokens and their hash, the positions of images among them, the hash
 * of the logits, and offsets into tokens.bin and logprobs.bin. tokens.bin holds of each conversation only
 * the tokens that the previous reply's conversation does not share:
 *
 *     conversation of a reply = first `kept` tokens of the previous reply's + the tokens at `tokens_at`
 *                             = prompt [prompt_tokens] + generated tokens [tokens]
 *
 * A script used instead of a model has no tokens and records none of this.
 */
#include "agent/record.h"

#include "agent/private.h"
#include "model/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SPANS_MAX = 1 << 16 };

int agent_record_fault(struct agent *a, const char *kind, const char *code, const char *message,
                       struct err *e)
{
    trace_begin(a->o->trace, a->step.number, kind);
    trace_text(a->o->trace, "code", code);
    trace_text(a->o->trace, "message", message);
    progress_trouble(a->o->progress, message);
    return trace_end(a->o->trace, e);
}

int agent_record_unreadable(struct agent *a, struct err *e)
{
    return agent_record_fault(a, "unreadable", action_fault_name(a->reply.fault), a->reply.why.text, e);
}

int record_action(struct trace *t, const struct progress *p, int step, int index, const struct action *a,
                  struct buf *json, struct err *e)
{
    autobuf what = buf_of(AGENT_TEXT_MAX);
    size_t at = json->len;
    action_describe(a, &what);
    action_to_json(a, json);
    progress_action(p, what.data);
    trace_begin(t, step, "action");
    trace_int(t, "index", index);
    trace_text(t, "what", what.data);
    trace_json(t, "action", json->data + at);
    return trace_end(t, e);
}

int record_ruling(struct trace *t, int step, int index, const struct gate_ruling *r, bool pass,
                  const char *error, struct err *e)
{
    trace_begin(t, step, "gate");
    trace_int(t, "index", index);
    trace_text(t, "rule", r->rule.rule);
    trace_text(t, "verdict", policy_verdict_name(r->rule.verdict));
    trace_text(t, "who", r->who);
    trace_bool(t, "pass", pass);
    if (*r->where)
        trace_text(t, "window", r->where);
    if (*r->crop)
        trace_text(t, "crop", r->crop);
    if (error)
        trace_text(t, "error", error);
    return trace_end(t, e);
}

int agent_record_start(struct agent *a, const char *system, struct err *e)
{
    trace_begin(a->o->trace, 0, "start");
    trace_text(a->o->trace, "task", a->o->task);
    trace_text(a->o->trace, "system", system);
    return trace_end(a->o->trace, e);
}

/* Records [[first, end), ...], the token ranges of each image. */
static void put_spans(struct trace *t, const int32_t *ids, int64_t n, int32_t image)
{
    autobuf b = buf_of(SPANS_MAX);
    buf_puts(&b, "[");
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; ids[i] == image && end < n && ids[end] == image;)
            end++;
        if (ids[i] == image)
            buf_printf(&b, "%s[%lld, %lld]", b.len > 1 ? ", " : "", (long long)i, (long long)end);
    }
    buf_puts(&b, "]");
    trace_json(t, "image_spans", b.full ? "null" : b.data);
}

/* Returns the length of the prefix shared with the conversation recorded last. */
static int64_t shared_prefix(const struct agent *a, const int32_t *ids, int64_t n)
{
    int64_t i = 0;
    while (i < n && i < a->run.n_ids && ids[i] == a->run.ids[i])
        i++;
    return i;
}

/* Fills the tokens of a local session's reply; their log-probabilities are allocated. */
static void session_reply(const struct session *s, const struct generated *g, struct llm_tokens *out)
{
    const struct model_config *model = engine_config(session_engine(s));
    *out = (struct llm_tokens){.ids = (int32_t *)(uintptr_t)session_tokens(s),
                               .prompt = session_length(s) - g->n,
                               .n = g->n,
                               .logprobs = xmalloc((unsigned long)g->n + 1, 2 * sizeof(float)),
                               .image_token = model->vision ? model->image_token : -1};
    for (int i = 0; i < g->n; i++) {
        const struct token_choice *c = &g->choices[i];
        out->logprobs[2 * i] = c->forced ? NAN : c->logprob;
        out->logprobs[2 * i + 1] = c->forced ? NAN : c->logprob_masked;
    }
}

static int record_tokens(struct agent *a, const struct llm_tokens *k, const struct generated *g,
                         struct err *e)
{
    struct trace *t = a->o->trace;
    int64_t length = k->prompt + k->n, at, logprobs_at;
    int64_t kept = shared_prefix(a, k->ids, k->prompt);
    a->run.kept_least = kept < a->run.kept_least ? kept : a->run.kept_least;
    if (trace_tokens(t, k->ids + kept, length - kept, &at, e) ||
        trace_logprobs(t, k->logprobs, k->n, &logprobs_at, e))
        return -1;
    a->run.ids = xrealloc(a->run.ids, (unsigned long)length + 1, sizeof *a->run.ids);
    memcpy(a->run.ids + kept, k->ids + kept, (size_t)(length - kept) * sizeof *k->ids);
    a->run.n_ids = length;
    trace_int(t, "prompt_tokens", k->prompt);
    trace_int(t, "kept", kept);
    trace_int(t, "tokens_at", at);
    trace_int(t, "logprobs_at", logprobs_at);
    trace_hash(t, "prompt_hash", XXH3_64bits(k->ids, (size_t)k->prompt * sizeof *k->ids));
    put_spans(t, k->ids, k->prompt, k->image_token);
    if (*k->weights)
        trace_text(t, "weights", k->weights);
    if (g->hashed)
        trace_hash(t, "logits_hash", g->logits_hash);
    else
        trace_text(t, "logits_hash", NULL); /* the logits stayed on the GPU or the server */
    return 0;
}

/* Records the usage that a remote server reports with its reply. */
static void put_server(struct trace *t, const struct llm_usage *u)
{
    if (u->prompt >= 0)
        trace_int(t, "server_prompt", u->prompt);
    if (u->cached >= 0)
        trace_int(t, "server_cached", u->cached);
    if (u->first_ms >= 0)
        trace_number(t, "first_ms", u->first_ms);
    if (u->cost >= 0)
        trace_number(t, "cost", u->cost);
    trace_int(t, "exchange", u->exchange);
}

/* Records a reply; k NULL: without its tokens. */
static int record_reply(struct agent *a, const struct llm_request *r, const struct generated *g,
                        const struct llm_tokens *k, struct err *e)
{
    static const char *const finish[] = {"stop", "length", "grammar", "cancelled"};
    struct trace *t = a->o->trace;
    int forced = g->forced;
    for (int i = 0; k && !llm_session(a->o->llm) && i < k->n; i++)
        forced += isnan(k->logprobs[2 * i]);
    trace_begin(t, a->step.number, "generate");
    trace_text(t, "text", g->text.data ? g->text.data : "");
    trace_int(t, "tokens", k ? k->n : g->n);
    trace_int(t, "forced", forced);
    trace_text(t, "finish", finish[g->finish]);
    trace_text(t, "goal", r->goal == GOAL_ANSWER ? "answer" : "step");
    trace_number(t, "temperature", (double)r->sampling.temperature);
    trace_number(t, "top_p", (double)r->sampling.top_p);
    trace_int(t, "max_tokens", r->sampling.max_tokens);
    trace_int(t, "resample", r->resample);
    if (r->begins)
        trace_text(t, "begins", r->begins);
    trace_bool(t, "think", r->think);
    if (g->reused)
        trace_bool(t, "reused", true);
    trace_number(t, "ms", g->ms);
    if (llm_usage(a->o->llm))
        put_server(t, llm_usage(a->o->llm));
    if (k && record_tokens(a, k, g, e))
        return -1;
    return trace_end(t, e);
}

int agent_record_reply(struct agent *a, const struct llm_request *r, const struct generated *g, struct err *e)
{
    const struct session *session = llm_session(a->o->llm);
    const struct llm_tokens *k = session ? NULL : llm_tokens(a->o->llm);
    struct llm_tokens own = {0};
    /* Token ids cannot be masked: once the model has written a secret, no more are recorded. */
    a->run.secret_spelled =
        a->run.secret_spelled || secrets_contained_in(a->o->secrets, g->text.data ? g->text.data : "");
    bool wanted = a->o->log_tokens && !a->run.secret_spelled && !g->reused;
    if (wanted && session) {
        session_reply(session, g, &own);
        k = &own;
    }
    int rc = record_reply(a, r, g, wanted ? k : NULL, e);
    free(own.logprobs);
    return rc;
}
