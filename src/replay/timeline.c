/* timeline.c - reads and checks the recorded conversation of a run. */
#include "replay/timeline.h"

#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static struct turn *add_turn(struct timeline *t, enum turn_op op, int step)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->turns = xrealloc(t->turns, (unsigned long)t->cap, sizeof *t->turns);
    }
    t->turns[t->n] = (struct turn){.op = op, .step = step, .frame = -1};
    return &t->turns[t->n++];
}

static int damaged(const struct event *v, const char *what, struct err *e)
{
    return err_set(e, ERR_ENV, "the record of step %d is damaged: '%s' of its '%s'", v->step, what, v->kind);
}

static bool get_hash(const json_t *fields, const char *key, uint64_t *hash)
{
    const char *s = field_text(fields, key);
    char *end;
    *hash = strtoull(s, &end, 16);
    return strlen(s) == 16 && !*end;
}

/* Reads an integer; returns false if it is missing or out of range. */
static bool get_int(const json_t *fields, const char *key, int64_t lo, int64_t hi, int64_t *out)
{
    const json_t *v = json_object_get(fields, key);
    *out = json_integer_value(v);
    return json_is_integer(v) && *out >= lo && *out <= hi;
}

/* Does the same; returns -1 with a message about the damaged recording. */
static int need_int(const struct event *v, const char *key, int64_t lo, int64_t hi, int64_t *out,
                    struct err *e)
{
    return get_int(v->fields, key, lo, hi, out) ? 0 : damaged(v, key, e);
}

static int need_number(const struct event *v, const char *key, double hi, float *out, struct err *e)
{
    const json_t *n = json_object_get(v->fields, key);
    double x = json_number_value(n);
    *out = (float)x;
    return json_is_number(n) && x >= 0 && x <= hi ? 0 : damaged(v, key, e);
}

/* Reads the offsets and hashes of a reply's tokens. */
static int read_offsets(const struct timeline *t, const struct event *v, struct turn_reply *r, struct err *e)
{
    if (need_int(v, "prompt_tokens", 0, TIMELINE_MAX_CONVERSATION, &r->prompt, e) ||
        need_int(v, "kept", 0, r->prompt, &r->kept, e) ||
        need_int(v, "tokens_at", 0, TIMELINE_MAX_TOKENS, &r->at, e) ||
        need_int(v, "logprobs_at", 0, TIMELINE_MAX_TOKENS, &r->logprobs_at, e))
        return -1;
    if (!get_hash(v->fields, "prompt_hash", &r->prompt_hash))
        return damaged(v, "prompt_hash", e);
    int64_t end = r->at + r->prompt - r->kept + r->n;
    if (end > t->n_tokens)
        return err_set(e, ERR_ENV, "tokens.bin has %lld tokens, step %d needs %lld: the file was cut off",
                       (long long)t->n_tokens, v->step, (long long)end);
    if (r->logprobs_at + r->n > t->n_logprobs)
        return err_set(e, ERR_ENV, "logprobs.bin has %lld tokens, step %d needs %lld: the file was cut off",
                       (long long)t->n_logprobs, v->step, (long long)(r->logprobs_at + r->n));
    r->hashed = get_hash(v->fields, "logits_hash", &r->logits_hash);
    r->has_tokens = true;
    return 0;
}

static int read_reply(struct timeline *t, const struct event *v, struct err *e)
{
    const json_t *f = v->fields;
    struct turn_reply *r = &add_turn(t, TURN_REPLY, v->step)->reply;
    int64_t n, forced, most = 0, resample = 0;
    r->text = field_text(f, "text");
    r->begins = json_text(f, "begins");
    r->weights = json_text(f, "weights");
    r->goal = !strcmp(field_text(f, "goal"), "answer") ? GOAL_ANSWER : GOAL_STEP;
    r->think = field_bool(f, "think");
    r->cancelled = !strcmp(field_text(f, "finish"), "cancelled");
    if (need_int(v, "tokens", 0, TIMELINE_MAX_REPLY, &n, e) || need_int(v, "forced", 0, n, &forced, e))
        return -1;
    r->n = (int)n;
    r->forced = (int)forced;
    t->replies++;
    if (json_object_get(f, "top_p") && (need_number(v, "temperature", 100, &r->sampling.temperature, e) ||
                                        need_number(v, "top_p", 1, &r->sampling.top_p, e) ||
                                        need_int(v, "max_tokens", 0, TIMELINE_MAX_REPLY, &most, e) ||
                                        need_int(v, "resample", 0, 1000, &resample, e)))
        return -1;
    r->sampling.max_tokens = (int)most;
    r->resample = (int)resample;
    return json_object_get(f, "prompt_tokens") ? read_offsets(t, v, r, e) : 0;
}

/* Adds the turn that an event describes, if any. *seen: the last observe event. */
static int read_event(struct timeline *t, const struct event *v, const struct event **seen, struct err *e)
{
    const json_t *f = v->fields;
    int64_t frame = -1;
    if (!strcmp(v->kind, "start")) {
        t->system = json_text(f, "system");
    } else if (!strcmp(v->kind, "observe")) {
        *seen = v;
    } else if (!strcmp(v->kind, "prompt") && json_object_get(f, "lead")) {
        if (!*seen || (*seen)->step != v->step || !get_int((*seen)->fields, "frame", 0, 999999, &frame))
            return damaged(v, "frame", e);
        struct turn *u = add_turn(t, TURN_OBSERVE, v->step);
        u->lead = field_text(f, "lead");
        u->frame = (int)frame;
        int64_t from = field_int((*seen)->fields, "from");
        if (from < 0 || from >= v->step)
            return damaged(v, "from", e);
        u->from = (int)from;
        get_hash((*seen)->fields, "hash", &u->pixels);
    } else if (!strcmp(v->kind, "recall")) {
        struct turn *u = add_turn(t, TURN_RECALL, v->step);
        u->lead = field_text(f, "lead");
        u->history = field_text(f, "history");
    } else if (!strcmp(v->kind, "generate")) {
        return read_reply(t, v, e);
    } else if (!strcmp(v->kind, "step")) {
        struct turn *u = add_turn(t, TURN_ACCEPT, v->step);
        u->as_said = field_bool(f, "as_said");
        int64_t resample;
        u->has_resample = get_int(f, "resample", 0, 1000, &resample);
        u->resample = u->has_resample ? (int)resample : 0;
        u->history = json_text(f, "history");
    }
    return 0;
}

/* Checks the order of turns: recalled turns; then, repeatedly, a screenshot, its replies and an accepted one.
 * After any of these the conversation may rewind to the screenshot of an earlier step. */
static int check_order(const struct timeline *t, struct err *e)
{
    enum turn_op before = TURN_ACCEPT;
    for (int i = 0; i < t->n; i++) {
        enum turn_op op = t->turns[i].op;
        bool first = i == 0 || before == TURN_RECALL;
        bool fits = op == TURN_RECALL    ? first
                    : op == TURN_OBSERVE ? first || before == TURN_ACCEPT || t->turns[i].from
                    : op == TURN_REPLY   ? before == TURN_OBSERVE || before == TURN_REPLY
                                         : before == TURN_REPLY;
        if (i == 0) /* no earlier turn to rewind to */
            fits = op == TURN_RECALL || (op == TURN_OBSERVE && !t->turns[i].from);
        if (op == TURN_REPLY || op == TURN_ACCEPT)
            fits = fits && t->turns[i].step == t->turns[i - 1].step;
        else if (op == TURN_OBSERVE && i)
            fits = fits && t->turns[i].step > t->turns[i - 1].step;
        if (!fits)
            return err_set(e, ERR_ENV, "the record of step %d is damaged: its events are out of order",
                           t->turns[i].step);
        before = op;
    }
    return 0;
}

static int read_turns(struct timeline *t, struct err *e)
{
    const struct event *seen = NULL;
    int last = 0;
    for (int i = 0; i < t->record->n; i++) {
        const struct event *v = &t->record->events[i];
        int before = t->n;
        if (read_event(t, v, &seen, e))
            return -1;
        if (t->n == before)
            continue;
        if (t->n > TIMELINE_MAX_TURNS)
            return err_set(e, ERR_ENV, "more than %d turns", TIMELINE_MAX_TURNS);
        t->steps += v->step != last;
        last = v->step;
    }
    if (t->n && t->turns[0].op != TURN_RECALL && t->turns[0].op != TURN_OBSERVE)
        return 0; /* recorded by an older version, without leads */
    return check_order(t, e);
}

int timeline_read(struct timeline *t, const struct record *r, int32_t *tokens, int64_t n_tokens,
                  float *logprobs, int64_t n_logprobs, struct err *e)
{
    *t = (struct timeline){r, .tokens = tokens, .n_tokens = n_tokens, .logprobs = logprobs,
                           .n_logprobs = n_logprobs};
    if (read_turns(t, e) == 0)
        return 0;
    timeline_free(t);
    return -1;
}

/* Reads a binary file. A missing file is empty; an incomplete last element is dropped. */
static int read_array(const struct record *r, const char *name, size_t size, char **data, int64_t *n,
                      struct err *e)
{
    autofree char *path = xasprintf("%s/%s", r->dir, name);
    size_t len = 0;
    int rc = 0;
    if (file_exists(path))
        rc = file_read(path, TIMELINE_MAX_TOKENS * size, data, &len, e);
    else
        *data = xcalloc(1, 8);
    *n = (int64_t)(len / size);
    return rc;
}

int timeline_open(struct timeline *t, const struct record *r, struct err *e)
{
    char *tokens = NULL, *logprobs = NULL;
    int64_t n_tokens = 0, n_logprobs = 0;
    int rc = read_array(r, "tokens.bin", sizeof(int32_t), &tokens, &n_tokens, e) ||
             read_array(r, "logprobs.bin", 2 * sizeof(float), &logprobs, &n_logprobs, e);
    *t = (struct timeline){r, .tokens = (int32_t *)(void *)tokens, .logprobs = (float *)(void *)logprobs};
    if (rc)
        timeline_free(t);
    else
        rc = timeline_read(t, r, t->tokens, n_tokens, t->logprobs, n_logprobs, e);
    return rc ? err_prefix(e, "'%s'", r->dir) : 0;
}

void timeline_free(struct timeline *t)
{
    free(t->turns);
    free(t->tokens);
    free(t->logprobs);
    *t = (struct timeline){0};
}

int timeline_complete(const struct timeline *t, struct err *e)
{
    const char *dir = t->record->dir ? t->record->dir : "";
    if (!t->system || !t->replies)
        return err_set(e, ERR_USAGE, "cannot verify '%s': the run has no replies", dir);
    for (int i = 0; i < t->n; i++)
        if (t->turns[i].op == TURN_REPLY && !t->turns[i].reply.has_tokens)
            return err_set(e, ERR_USAGE, "cannot verify '%s': no tokens (--no-log-tokens or a script)", dir);
    return 0;
}

const int32_t *turn_ids(const struct timeline *t, const struct turn *u)
{
    return t->tokens + u->reply.at + (u->reply.prompt - u->reply.kept);
}

const float *turn_logprobs(const struct timeline *t, const struct turn *u)
{
    return t->logprobs + 2 * u->reply.logprobs_at;
}

int timeline_follow(const struct timeline *t, const struct turn *u, struct conversation_ids *c, struct err *e)
{
    const struct turn_reply *r = &u->reply;
    int64_t more = r->prompt - r->kept + r->n;
    if (!r->has_tokens || r->kept > c->n)
        return err_set(e, ERR_ENV,
                       "the record of step %d is damaged: its prompt begins with %lld tokens of %lld",
                       u->step, (long long)r->kept, (long long)c->n);
    c->ids = xrealloc(c->ids, (unsigned long)(r->kept + more) + 1, sizeof *c->ids);
    memcpy(c->ids + r->kept, t->tokens + r->at, (size_t)more * sizeof *c->ids);
    c->n = r->kept + more;
    return 0;
}
