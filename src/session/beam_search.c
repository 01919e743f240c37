/* beam_search.c - beam search over alternative values at one position of a reply (beam_search.h).
 *
 * Each round extends every path by one choice: forced tokens are appended, the logits of all paths are
 * computed in one batch, and the most probable continuations of all paths form the next beam. The last
 * child of a path takes over its session, the others continue in forks. Probabilities only decrease, so
 * the search ends when no path is more probable than the last requested candidate. */
#include "session/beam_search.h"

#include "base/flag.h"
#include "text/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_TEXT = 256, MAX_CANDIDATES = 4 * BEAM_WIDTH };

struct path {
    struct session *session;
    int state;
    char text[PATH_TEXT]; /* all tokens of the path as text */
    size_t len;
    double logp;
    bool stopped; /* the last token is a stop token */
};

struct child {
    int parent;
    int32_t id;
    double logp;
};

struct search {
    const struct beam_search *how;
    struct session *first; /* the caller's session; the caller frees it */
    const struct tokenizer *tokenizer;
    uint64_t *known;
    struct path paths[BEAM_WIDTH];
    int n;
    struct beam_candidate candidates[MAX_CANDIDATES];
    int n_candidates;
    int wanted; /* candidates requested */
};

static void close_path(const struct search *s, struct path *p)
{
    if (p->session && p->session != s->first)
        session_free(p->session);
    p->session = NULL;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static void add_candidate(struct search *s, const char *text, size_t len, double p)
{
    if (len >= BEAM_TEXT)
        return;
    for (int i = 0; i < s->n_candidates; i++)
        if (strlen(s->candidates[i].text) == len && !memcmp(s->candidates[i].text, text, len)) {
            s->candidates[i].p += p;
            return;
        }
    if (s->n_candidates == MAX_CANDIDATES)
        return;
    struct beam_candidate *v = &s->candidates[s->n_candidates++];
    memcpy(v->text, text, len);
    v->text[len] = 0;
    v->p = p;
}

static int by_probability(const void *a, const void *b)
{
    double x = ((const struct beam_candidate *)a)->p, y = ((const struct beam_candidate *)b)->p;
    return (x < y) - (x > y);
}

/* Returns whether the path has ended: its value is complete and has become a candidate, it does not begin
 * with `given`, it has stopped, or it is too long. */
static bool path_over(struct search *s, const struct path *p)
{
    size_t given = s->how->n_given, both = p->len < given ? p->len : given;
    if (memcmp(p->text, s->how->given, both) != 0)
        return true;
    if (p->len <= given)
        return p->stopped;
    ptrdiff_t end = s->how->end(s->how->arg, p->text + given, p->len - given);
    if (end >= 0)
        add_candidate(s, p->text + given, (size_t)end, exp(p->logp));
    return end >= 0 || p->stopped || p->len + 1 >= PATH_TEXT;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Appends one token. A stop token counts as a newline, so that it ends the value before it. */
static int append(const struct search *s, struct path *p, int32_t id, struct err *e)
{
    size_t len;
    const char *bytes = tokenizer_bytes(s->tokenizer, id, &len);
    p->stopped = engine_is_stop(session_engine(p->session), id);
    if (p->stopped) {
        bytes = "\n";
        len = 1;
    }
    if (p->len + len >= PATH_TEXT)
        len = PATH_TEXT - 1 - p->len;
    memcpy(p->text + p->len, bytes, len);
    p->len += len;
    return session_append(p->session, &id, 1, e);
}

/* Appends the tokens that the grammar forces. Returns 1 if the path has ended, 0 if it has a choice, -1
 * with e. */
static int append_forced(struct search *s, struct path *p, struct err *e)
{
    struct tokens ids = {0};
    int after = p->state, rc = 0;
    int n = s->how->grammar ? grammar_forced(s->how->grammar, p->state, &ids, &after) : 0;
    for (int i = 0; i < n && rc == 0; i++)
        rc = append(s, p, ids.ids[i], e) ? -1 : path_over(s, p);
    p->state = after;
    tokens_free(&ids);
    if (rc == 0 && s->how->grammar && grammar_finished(s->how->grammar, p->state))
        rc = 1;
    return rc;
}

static int by_logp(const void *a, const void *b)
{
    const struct child *x = a, *y = b;
    if (x->logp != y->logp)
        return x->logp < y->logp ? 1 : -1;
    return x->parent != y->parent ? x->parent - y->parent : x->id - y->id;
}

/* Finds the `width` most probable continuations of all paths, best first; returns their number. */
static int continuations(struct search *s, struct child *out, int width)
{
    struct token_alternative top[BEAM_WIDTH];
    int n = 0, vocab = tokenizer_size(s->tokenizer);
    for (int i = 0; i < s->n; i++) {
        struct path *p = &s->paths[i];
        const uint64_t *allowed = s->how->grammar ? grammar_mask(s->how->grammar, p->state) : NULL;
        int found = generate_top(session_logits(p->session), vocab, s->known, allowed, top, width);
        for (int k = 0; k < found; k++)
            if (top[k].p > 0)
                out[n++] = (struct child){i, top[k].id, p->logp + log((double)top[k].p)};
    }
    qsort(out, (size_t)n, sizeof *out, by_logp);
    return n < width ? n : width;
}

/* Creates the path of a child. The last child of a parent takes over its session, the others get a fork. */
static int make_child(struct search *s, struct path *parents, const struct child *c, bool last,
                      struct path *out, struct err *e)
{
    struct path *parent = &parents[c->parent];
    *out = *parent;
    out->logp = c->logp;
    if (last)
        parent->session = NULL;
    else if (!(out->session = session_try_fork(parent->session, e)))
        return -1;
    if (s->how->grammar)
        out->state = grammar_advance(s->how->grammar, out->state, c->id);
    return append(s, out, c->id, e);
}

static int next_generation(struct search *s, const struct child *children, int n, struct err *e)
{
    struct path parents[BEAM_WIDTH];
    int n_parents = s->n, rc = 0;
    memcpy(parents, s->paths, sizeof parents);
    s->n = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        bool last = true;
        for (int k = i + 1; k < n; k++)
            last = last && children[k].parent != children[i].parent;
        struct path *p = &s->paths[s->n++];
        *p = (struct path){0};
        rc = make_child(s, parents, &children[i], last, p, e);
        if (rc == 0 && path_over(s, p)) {
            close_path(s, p);
            s->n--;
        }
    }
    for (int i = 0; i < n_parents; i++)
        close_path(s, &parents[i]);
    return rc;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static int force_all(struct search *s, struct err *e)
{
    for (int i = s->n - 1; i >= 0; i--) {
        int rc = append_forced(s, &s->paths[i], e);
        if (rc < 0)
            return -1;
        if (rc == 0)
            continue;
        close_path(s, &s->paths[i]);
        s->paths[i] = s->paths[--s->n];
    }
    return 0;
}

/* Returns whether no path can become more probable than the requested candidates; sorts the candidates. */
static bool settled(struct search *s)
{
    double best = 0;
    for (int i = 0; i < s->n; i++)
        best = fmax(best, exp(s->paths[i].logp));
    qsort(s->candidates, (size_t)s->n_candidates, sizeof *s->candidates, by_probability);
    return s->n == 0 || (s->n_candidates >= s->wanted && s->candidates[s->wanted - 1].p > best);
}

static int run_rounds(struct search *s, int width, struct err *e)
{
    autofree struct child *children = xmalloc((unsigned long)width * (unsigned long)width, sizeof *children);
    struct session *together[BEAM_WIDTH];
    int rc = 0;
    for (int round = 0; round < BEAM_TOKENS && rc == 0; round++) {
        if (flag_up(s->how->cancel))
            rc = err_set(e, ERR_STOPPED, "stopped during the beam search");
        rc = rc ? rc : force_all(s, e);
        if (rc || settled(s))
            break;
        for (int i = 0; i < s->n; i++)
            together[i] = s->paths[i].session;
        if (session_try_decode_batch(together, s->n, e)) {
            rc = -1;
            break;
        }
        int n = continuations(s, children, width);
        rc = next_generation(s, children, n, e);
    }
    return rc;
}

int beam_search(struct session *s, const struct beam_search *how, struct beam_candidate *out, int max,
                struct err *e)
{
    autofree struct search *search = xcalloc(1, sizeof *search);
    int width = how->width < 1 ? 1 : how->width > BEAM_WIDTH ? BEAM_WIDTH : how->width;
    *search =
        (struct search){.how = how, .first = s, .tokenizer = engine_tokenizer(session_engine(s)), .n = 1};
    search->wanted = max < BEAM_WIDTH ? max : BEAM_WIDTH;
    search->known = generate_known(session_engine(s));
    search->paths[0] = (struct path){.session = s, .state = how->state};
    int rc = max > 0 ? run_rounds(search, width, e) : 0;
    for (int i = 0; i < search->n; i++)
        close_path(search, &search->paths[i]);
    qsort(search->candidates, (size_t)search->n_candidates, sizeof *search->candidates, by_probability);
    int n = search->n_candidates < search->wanted ? search->n_candidates : search->wanted;
    memcpy(out, search->candidates, (size_t)(n > 0 ? n : 0) * sizeof *out);
    free(search->known);
    return rc ? -1 : n;
}
