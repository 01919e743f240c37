/* score.c - computes the logits after every token of a text, for perplexity and for comparing engines.
 *
 * A prefill computes the logits of its last row only. Here each chunk keeps all its rows (language_rows),
 * and the head is applied to SCORE_ROWS of them at a time: one row of a vocabulary of 150,000 ids takes
 * 600 KB, a chunk of 512 rows 300 MB. */
#include "session/session_impl.h"

#include <stdlib.h>

enum { SCORE_ROWS = 64 };

/* Applies the head to the n rows of the last chunk; its first row is row `at` of the text. */
static void score_rows(struct session *s, int n, int64_t at, session_row_fn *fn, void *arg)
{
    struct language *m = &s->engine->language;
    size_t vocab = (size_t)s->engine->weights.vocab;
    float *logits = xmalloc(vocab * (size_t)(n < SCORE_ROWS ? n : SCORE_ROWS), sizeof *logits),
          *rows[SCORE_ROWS] = {NULL};
    for (int first = 0; first < n; first += SCORE_ROWS) {
        int k = n - first < SCORE_ROWS ? n - first : SCORE_ROWS;
        for (int i = 0; i < k; i++)
            rows[i] = logits + (size_t)i * vocab;
        language_verify_logits(m, first, k, rows);
        for (int i = 0; i < k; i++)
            fn(arg, at + first + i, rows[i]);
    }
    free(logits);
}

static int score_chunks(struct session *s, int64_t before, session_row_fn *fn, void *arg, struct err *e)
{
    struct language *m = &s->engine->language;
    int64_t n;
    while ((n = session_pending(s)) > 0) {
        n = language_chunk(m, s->state.length, n, n);
        int64_t at = s->state.length - before;
        m->session_cancel = s->client.stop;
        int rc = language_rows(m, &s->state, s->tokens + s->state.length, (int)n);
        m->session_cancel = NULL;
        if (rc) {
            s->interrupted = true;
            return err_set(e, ERR_STOPPED, "stopped during prefill");
        }
        score_rows(s, (int)n, at, fn, arg);
        s->stats.prefilled += n;
    }
    return 0;
}

int session_score(struct session *s, const int32_t *ids, int64_t n, session_row_fn *fn, void *arg,
                  struct err *e)
{
    if (session_prefill(s, e) || session_append(s, ids, n, e) || engine_try_enter(s->engine, &s->client, e))
        return -1;
    int rc = session_pin(s, 0, e);
    if (rc == 0) {
        rc = score_chunks(s, s->n - n, fn, arg, e);
        session_unpin(s);
    }
    engine_leave(s->engine);
    return rc;
}
