/* session_many.c - many sessions at once: a token of each, its logits or the choice among them.
 *
 * Their rows go through the model together, so that a weight is read once for all of them, in groups of up to
 * LANGUAGE_ROWS that there is room for at once.  Each session comes to the bits that it would have come to alone.
 */
#include "model/session.h"

#include "base/clock.h"
#include "model/sample.h"

#include <stdlib.h>

/* n <= LANGUAGE_ROWS sessions with one text token waiting in each. */
static void step_together(struct session *const *s, int n)
{
    struct lm_state *states[LANGUAGE_ROWS];
    int32_t ids[LANGUAGE_ROWS];
    int64_t start = clock_ns();
    for (int i = 0; i < n; i++) {
        states[i] = &s[i]->state;
        ids[i] = s[i]->tokens[s[i]->n - 1];
    }
    language_step_each(&s[0]->engine->language, states, n, ids);
    double ms = clock_ms_since(start) / n;
    for (int i = 0; i < n; i++) {
        s[i]->stats.decoded++;
        s[i]->stats.decode_ms += ms;
    }
}

/* All that waits in n <= LANGUAGE_ROWS sessions that are held goes through the model. */
static void flush_together(struct session *const *s, int n)
{
    struct session *together[LANGUAGE_ROWS];
    struct err e = ERR_INIT;
    int k = 0;
    for (int i = 0; i < n; i++)
        if (session_waiting(s[i]) == 1 && !s[i]->n_images)
            together[k++] = s[i];
        else
            session_must(session_read(s[i], &e), &e);
    if (k)
        step_together(together, k);
}

/* Sessions in groups that there is room for, with all that waits computed; `first` counts those before a group. */
static void in_groups(struct session *const *s, int n,
                      void (*fn)(void *arg, struct session *const *s, int n, int first), void *arg)
{
    struct err e = ERR_INIT;
    for (int i = 0; i < n; i++)
        if (s[i]->engine != s[0]->engine)
            bug("sessions of two engines at once");
    for (int first = 0, k; first < n; first += k) {
        session_must(session_hold(s[first], 0, &e), &e);
        for (k = 1; k < LANGUAGE_ROWS && first + k < n && session_hold(s[first + k], 0, NULL) == 0;)
            k++;
        flush_together(s + first, k);
        fn(arg, s + first, k, first);
        for (int i = 0; i < k; i++)
            session_release(s[first + i]);
    }
}

static void look_together(void *arg, struct session *const *s, int n, int first)
{
    (void)arg;
    (void)first;
    struct lm_state *states[LANGUAGE_ROWS];
    float *logits[LANGUAGE_ROWS];
    int64_t start = clock_ns();
    for (int i = 0; i < n; i++) {
        states[i] = &s[i]->state;
        logits[i] = s[i]->logits;
    }
    language_logits_each(&s[0]->engine->language, states, n, logits);
    double ms = clock_ms_since(start) / n;
    for (int i = 0; i < n; i++) {
        s[i]->logits_at = s[i]->n;
        s[i]->stats.decode_ms += ms;
    }
}

void session_step_many(struct session *const *s, int n)
{
    struct session **asked = xcalloc((unsigned long)n + 1, sizeof *asked);
    int k = 0;
    for (int i = 0; i < n; i++)
        if (s[i]->logits_at != s[i]->n)
            asked[k++] = s[i];
    in_groups(asked, k, look_together, NULL);
    free(asked);
}

struct choices {
    const struct choosing *how;
    struct choice *out;
};

static void choose_together(void *arg, struct session *const *s, int n, int first)
{
    const struct choices *c = arg;
    struct lm_state *states[LANGUAGE_ROWS];
    int64_t start = clock_ns();
    for (int i = 0; i < n; i++)
        states[i] = &s[i]->state;
    language_choose_each(&s[0]->engine->language, states, n, tokenizer_size(s[0]->engine->tokenizer),
                         c->how + first, c->out + first);
    double ms = clock_ms_since(start) / n;
    for (int i = 0; i < n; i++)
        s[i]->stats.decode_ms += ms;
}

void session_choose(struct session *const *s, int n, const struct choosing *how, struct choice *out)
{
    for (int i = 0; i < n; i++)
        if (s[i]->n == 0)
            bug("a choice in an empty session");
    if (n && s[0]->engine->backend->ops->choose) {
        in_groups(s, n, choose_together, &(struct choices){how, out});
        return;
    }
    session_step_many(s, n);
    for (int i = 0; i < n; i++)
        out[i] = sample_token(s[i]->logits, tokenizer_size(s[i]->engine->tokenizer), &how[i]);
}
