/* session_batch.c - many sessions at once: a token of each, its logits or the choice among them.
 *
 * Their rows go through the model together, so that a weight is read once for all of them, in groups of up to
 * LANGUAGE_ROWS that there is room for at once.  Each session comes to the bits that it would have come to alone.
 * They are those that one caller names, or, of a shared engine, those of all threads that ask while it is busy.
 */
#include "session/session_impl.h"

#include "base/clock.h"
#include "session/sample.h"

#include <stdlib.h>

struct asking;

struct step { /* what one session wants */
    struct session *session;
    const struct choosing *how; /* NULL: its logits */
    struct choice *out;
    struct asking *of;
};

struct asking { /* what one caller wants: steps of one kind, of sessions of one engine */
    struct scheduler_request request;
    struct step *steps;
    int n;
    struct err *e;
    int rc;
};

/* ---- groups ------------------------------------------------------------------------------------------------- */

static struct engine *engine_of(const struct step *s)
{
    return s->session->engine;
}

/* The tokens that wait in n <= LANGUAGE_ROWS sessions, one in each at most. */
static void step_together(const struct step *s, int n)
{
    struct lm_state *states[LANGUAGE_ROWS];
    struct session *of[LANGUAGE_ROWS];
    int32_t ids[LANGUAGE_ROWS];
    int64_t start = clock_ns();
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (session_pending(s[i].session) == 0)
            continue;
        of[k] = s[i].session;
        states[k] = &of[k]->state;
        ids[k] = of[k]->tokens[of[k]->n - 1];
        k++;
    }
    if (k == 0)
        return;
    language_step_each(&of[0]->engine->language, states, k, ids);
    double ms = clock_ms_since(start) / k;
    for (int i = 0; i < k; i++) {
        of[i]->stats.decoded++;
        of[i]->stats.decode_ms += ms;
    }
}

static void look_together(const struct step *s, int n)
{
    struct lm_state *states[LANGUAGE_ROWS] = {NULL};
    float *logits[LANGUAGE_ROWS] = {NULL};
    for (int i = 0; i < n; i++) {
        states[i] = &s[i].session->state;
        logits[i] = s[i].session->logits;
    }
    language_logits_each(&engine_of(s)->language, states, n, logits);
    for (int i = 0; i < n; i++)
        s[i].session->logits_at = s[i].session->n;
}

static void choose_together(const struct step *s, int n)
{
    struct lm_state *states[LANGUAGE_ROWS];
    struct choosing how[LANGUAGE_ROWS];
    struct choice out[LANGUAGE_ROWS];
    for (int i = 0; i < n; i++) {
        states[i] = &s[i].session->state;
        how[i] = *s[i].how;
    }
    language_choose_each(&engine_of(s)->language, states, n, tokenizer_size(engine_of(s)->tokenizer), how,
                         out);
    for (int i = 0; i < n; i++)
        *s[i].out = out[i];
}

/* As many of the first as there is room for at once; 0: not even for the first, which is told so. */
static int hold(const struct step *s, int n)
{
    int k = 1;
    if (session_pin(s[0].session, 0, s[0].of->e)) {
        s[0].of->rc = -1;
        return 0;
    }
    while (k < LANGUAGE_ROWS && k < n && session_pin(s[k].session, 0, NULL) == 0)
        k++;
    return k;
}

/* Steps of one kind. */
static void in_groups(const struct step *s, int n)
{
    for (int first = 0, k; first < n; first += k ? k : 1) {
        k = hold(s + first, n - first);
        if (k == 0)
            continue;
        step_together(s + first, k);
        int64_t start = clock_ns();
        (s[first].how ? choose_together : look_together)(s + first, k);
        double ms = clock_ms_since(start) / k;
        for (int i = first; i < first + k; i++) {
            s[i].session->stats.decode_ms += ms;
            session_unpin(s[i].session);
        }
    }
}

/* ---- asking --------------------------------------------------------------------------------------------------- */

/* Steps of that kind of all callers, into a list of their own. */
static int collect(struct scheduler_request *requests, bool choices, struct step *out)
{
    int n = 0;
    for (struct scheduler_request *w = requests; w; w = w->next) {
        const struct asking *a = (const struct asking *)w;
        for (int i = 0; i < a->n; i++)
            if ((a->steps[i].how != NULL) == choices)
                out[n++] = a->steps[i];
    }
    return n;
}

void session_serve(void *arg, struct scheduler_request *requests)
{
    struct engine *g = arg;
    unsigned long most = 1;
    for (struct scheduler_request *w = requests; w; w = w->next)
        most += (unsigned long)w->rows;
    struct step *steps = xmalloc(most, sizeof *steps);
    engine_enter(g, NULL);
    for (int choices = 0; choices < 2; choices++)
        in_groups(steps, collect(requests, choices, steps));
    engine_leave(g);
    free(steps);
}

/* Prompts are read by who asks, in turns of its own; what goes through together is one token of each. */
static int ask(struct step *steps, int n, struct err *e)
{
    struct asking a = {.request = {.rows = n}, .steps = steps, .n = n, .e = e};
    for (int i = 0; i < n; i++) {
        struct session *s = steps[i].session;
        steps[i].of = &a;
        if (s->engine != engine_of(steps))
            bug("sessions of two engines at once");
        if ((session_pending(s) > 1 || s->n_images || s->torn) && session_read(s, e))
            return -1;
    }
    if (n == 0)
        return 0;
    if (!engine_of(steps)->scheduler)
        in_groups(steps, n);
    else if (scheduler_submit(engine_of(steps)->scheduler, &steps[0].session->client, &a.request))
        return session_stopped(e);
    return a.rc;
}

int session_try_decode_batch(struct session *const *s, int n, struct err *e)
{
    struct step *steps = xcalloc((unsigned long)n + 1, sizeof *steps);
    int k = 0;
    for (int i = 0; i < n; i++)
        if (s[i]->logits_at != s[i]->n)
            steps[k++].session = s[i];
    int rc = ask(steps, k, e);
    free(steps);
    return rc;
}

void session_decode_batch(struct session *const *s, int n)
{
    struct err e = ERR_INIT;
    session_must(session_try_decode_batch(s, n, &e), &e);
}

static int choose(struct session *const *s, int n, const struct choosing *how, struct choice *out,
                  struct err *e)
{
    struct step *steps = xcalloc((unsigned long)n + 1, sizeof *steps);
    for (int i = 0; i < n; i++) {
        if (s[i]->n == 0)
            bug("a choice in an empty session");
        steps[i] = (struct step){.session = s[i], .how = &how[i], .out = &out[i]};
    }
    int rc = 0;
    if (n && s[0]->engine->backend->ops->choose) {
        rc = ask(steps, n, e);
    } else if ((rc = session_try_decode_batch(s, n, e)) == 0) {
        for (int i = 0; i < n; i++)
            out[i] = sample_token(s[i]->logits, tokenizer_size(s[i]->engine->tokenizer), &how[i]);
    }
    free(steps);
    return rc;
}

int session_try_choose(struct session *s, const struct choosing *how, struct choice *out, struct err *e)
{
    return choose(&s, 1, how, out, e);
}

void session_choose(struct session *const *s, int n, const struct choosing *how, struct choice *out)
{
    struct err e = ERR_INIT;
    session_must(choose(s, n, how, out, &e), &e);
}
