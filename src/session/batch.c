/* batch.c - see batch.h. */
#include "session/batch.h"

#include "session/generate.h"
#include "session/session_impl.h"

#include <stdlib.h>

struct line { /* jobs one behind the other */
    struct batch_job *first, *last;
    int n;
};

struct batch {
    struct engine *engine;
    uint64_t *known;
    int64_t prefill, round;
    struct line waiting, working; /* working: in the order in which they began, reading ones take turns */
};

static void line_put(struct line *l, struct batch_job *j)
{
    j->next = NULL;
    *(l->last ? &l->last->next : &l->first) = j;
    l->last = j;
    l->n++;
}

static struct batch_job *line_take(struct line *l)
{
    struct batch_job *j = l->first;
    l->first = j->next;
    l->last = l->first ? l->last : NULL;
    l->n--;
    return j;
}

struct batch *batch_new(struct engine *g, int64_t prefill)
{
    struct batch *b = xcalloc(1, sizeof *b);
    *b = (struct batch){.engine = g, .known = generate_known(g)};
    b->prefill = prefill < LANGUAGE_ROWS ? LANGUAGE_ROWS : prefill;
    return b;
}

void batch_free(struct batch *b)
{
    if (!b)
        return;
    for (struct batch_job *j = b->working.first; j; j = j->next)
        session_unpin(j->session);
    free(b->known);
    free(b);
}

void batch_add(struct batch *b, struct batch_job *j)
{
    if (session_engine(j->session) != b->engine)
        bug("a session of another engine in a batch");
    j->state = BATCH_WAITS;
    j->generated = j->began = j->done_at = 0;
    j->err = (struct err)ERR_INIT;
    line_put(&b->waiting, j);
}

static void end(const struct batch *b, struct batch_job *j)
{
    if (j->state != BATCH_WAITS)
        session_unpin(j->session);
    j->state = BATCH_ENDED;
    j->done_at = b->round;
    if (j->ended)
        j->ended(j);
}

/* ---- admission -------------------------------------------------------------------------------------------- */

/* Tokens that its session will have at most. */
static int64_t length_at_end(const struct batch_job *j)
{
    int64_t n = session_length(j->session), most = engine_config(session_engine(j->session))->lm.max_tokens;
    return j->limit < most - n ? n + j->limit : most;
}

/* Whether it could begin if it were alone. */
static int could_begin(const struct batch_job *j, struct err *e)
{
    size_t bound = j->session->engine->state_pool.bound, need = session_need(j->session, length_at_end(j));
    if (session_length(j->session) == 0)
        return err_set(e, ERR_MODEL, "there is nothing to continue");
    if (bound && need > bound)
        return err_set(e, ERR_ENV, "a session of %lld tokens takes %.2f MiB of the %.2f MiB of state memory",
                       (long long)length_at_end(j), (double)need / (1 << 20), (double)bound / (1 << 20));
    return 0;
}

/* 1: it works now; 0: it has to wait; -1: it never will. */
static int begin(struct batch *b, struct batch_job *j, bool alone)
{
    int64_t more = length_at_end(j) - session_length(j->session);
    if (could_begin(j, &j->err))
        return -1;
    if ((!alone && !session_fits(j->session, more)) || session_pin(j->session, more, &j->err)) {
        if (alone)
            return -1;
        j->err = (struct err)ERR_INIT;
        return 0;
    }
    j->began = b->round;
    j->state = BATCH_READS;
    return 1;
}

static void admit(struct batch *b)
{
    while (b->waiting.n) {
        int rc = begin(b, b->waiting.first, b->working.n == 0);
        if (rc == 0)
            return;
        struct batch_job *j = line_take(&b->waiting);
        if (rc > 0)
            line_put(&b->working, j);
        else
            end(b, j);
    }
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

static bool reads(const struct batch_job *j)
{
    return session_pending(j->session) > 1 || j->session->n_images > 0;
}

/* A token, or -1 for the end of the reply. */
static void took(struct batch_job *j, int32_t id)
{
    j->state = BATCH_ENDED; /* unless it goes on */
    if (id < 0 || session_append(j->session, &id, 1, &j->err))
        return;
    j->generated++;
    if (j->wrote)
        j->wrote(j, id);
    if (j->generated < j->limit && !engine_is_stop(session_engine(j->session), id))
        j->state = BATCH_WRITES;
}

static void choose(struct batch *b, struct batch_job **jobs, struct session **s, int n)
{
    struct choosing *how = xcalloc((unsigned long)n + 1, sizeof *how);
    struct choice *out = xcalloc((unsigned long)n + 1, sizeof *out);
    for (int i = 0; i < n; i++) {
        how[i] = (struct choosing){.known = b->known, .top_p = 1};
        if (jobs[i]->choose)
            jobs[i]->choose(jobs[i], &how[i]);
    }
    session_choose(s, n, how, out);
    for (int i = 0; i < n; i++) {
        if (out[i].id < 0)
            err_set(&jobs[i]->err, ERR_MODEL,
                    "the model's output is not a distribution over the allowed tokens");
        took(jobs[i], out[i].id);
    }
    free(how);
    free(out);
}

static void pick(struct batch_job **jobs, struct session **s, int n)
{
    session_decode_batch(s, n);
    for (int i = 0; i < n; i++)
        took(jobs[i], jobs[i]->pick(jobs[i], session_logits(s[i])));
}

/* One token of each that has read all. */
static void write_round(struct batch *b)
{
    struct batch_job **jobs = xcalloc((unsigned long)b->working.n + 1, sizeof *jobs);
    struct session **s = xcalloc((unsigned long)b->working.n + 1, sizeof *s);
    for (int picks = 0; picks < 2; picks++) {
        int n = 0;
        for (struct batch_job *j = b->working.first; j; j = j->next)
            if (!reads(j) && j->limit > 0 && !j->pick == !picks) {
                jobs[n] = j;
                s[n++] = j->session;
            }
        if (picks)
            pick(jobs, s, n);
        else if (n)
            choose(b, jobs, s, n);
    }
    free(jobs);
    free(s);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static int64_t piece(const struct batch_job *j)
{
    int64_t n = session_pending(j->session);
    return n < LANGUAGE_ROWS ? n : LANGUAGE_ROWS;
}

/* Pieces in turns, whole ones: where a prompt is cut does not depend on the others.  Who has read goes behind the
 * others. */
static void read_round(struct batch *b)
{
    int64_t left = b->prefill;
    for (int passed = 0; passed < b->working.n;) {
        struct batch_job *j = b->working.first;
        if (j->state == BATCH_ENDED || !reads(j)) {
            passed++;
        } else {
            if (piece(j) > left)
                return;
            left -= piece(j);
            passed = 0;
            if (session_prefill_chunk(j->session, &j->err))
                j->state = BATCH_ENDED;
        }
        line_put(&b->working, line_take(&b->working));
    }
}

/* ---- rounds -------------------------------------------------------------------------------------------------- */

static void sweep(struct batch *b)
{
    for (int i = b->working.n; i > 0; i--) {
        struct batch_job *j = line_take(&b->working);
        if (j->state == BATCH_ENDED || (j->limit <= 0 && session_pending(j->session) == 0))
            end(b, j);
        else
            line_put(&b->working, j);
    }
}

bool batch_round(struct batch *b)
{
    b->round++;
    admit(b);
    if (b->working.n) {
        write_round(b);
        read_round(b);
        sweep(b);
    }
    return b->working.n || b->waiting.n;
}

void batch_run(struct batch *b)
{
    while (batch_round(b))
        ;
}
