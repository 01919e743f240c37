/* chooser.c - see chooser.h.
 *
 * The instructions and examples are computed once, the lines once for each window: the words follow them, so
 * that a question needs only its own tokens. */
#include "planner/chooser.h"

#include "base/buf.h"
#include "session/beam_search.h"
#include "session/chat.h"
#include "text/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 1 << 14, WIDTH = 4 };

static const char instructions[] =
    "A user operates a window. You get its steps, one a line, and the user's words. Copy the step that the "
    "words ask for first.";

static const char *const examples[][2] = {
    {"Window: Draft\nSteps:\ntick \"Private\"\npress \"Post\"\npress \"Discard\"\nWords: get rid of it",
     "press \"Discard\""},
    {"Window: Ticket\nSteps:\nenter \"Eva\" into \"Name\"\nchoose \"One way\" in \"Trip\"\n"
     "choose \"Return\" in \"Trip\"\npress \"Buy\"\nWords: a ticket both ways for Eva",
     "choose \"Return\" in \"Trip\""},
};

struct chooser {
    struct engine *engine;
    struct session *base;  /* instructions and examples */
    struct session *lined; /* ... and the lines of the question */
    int64_t shared;        /* tokens of the lines */
    const char *window;
    const char *const *lines;
    int n;
};

void chooser_free(struct chooser *c)
{
    if (!c)
        return;
    session_free(c->lined);
    session_free(c->base);
    free(c);
}

struct chooser *chooser_open(struct engine *g, const volatile int *cancel, struct err *e)
{
    struct chooser *c = xcalloc(1, sizeof *c);
    *c = (struct chooser){.engine = g, .base = session_new(g, 1)};
    session_set_cancel(c->base, cancel);
    int rc = chat_system(c->base, instructions, false, e);
    for (size_t i = 0; i < sizeof examples / sizeof *examples && rc == 0; i++) {
        const struct chat_part part = {.text = examples[i][0]};
        rc = chat_user(c->base, &part, 1, CHAT_PLACE_TEMPLATE, e) || chat_reply(c->base, examples[i][1], e);
    }
    if (rc == 0 && session_prefill(c->base, e) == 0)
        return c;
    chooser_free(c);
    return NULL;
}

/* Tokenizes the question after the instructions.  Returns -1 with e. */
static int render(const struct chooser *c, const char *task, struct tokens *out, struct err *e)
{
    struct session *s = session_try_fork(c->base, e);
    struct buf b;
    if (!s)
        return -1;
    buf_init(&b, PROMPT);
    buf_printf(&b, "Window: %s\nSteps:\n", c->window);
    for (int i = 0; i < c->n; i++)
        buf_printf(&b, "%s\n", c->lines[i]);
    buf_printf(&b, "Words: %s", task);
    const struct chat_part part = {.text = b.data};
    int64_t from = session_length(s);
    int rc = b.full ? err_set(e, ERR_MODEL, "the question is too long")
             : chat_user(s, &part, 1, CHAT_PLACE_TEMPLATE, e) || chat_open_reply(s, false, e) ? -1
                                                                                              : 0;
    *out = (struct tokens){0};
    for (int64_t i = from; i < session_length(s) && rc == 0; i++)
        tokens_push(out, session_tokens(s)[i]);
    session_free(s);
    buf_free(&b);
    return rc;
}

static int64_t common(const struct tokens *a, const struct tokens *b)
{
    int64_t n = 0;
    while (n < a->n && n < b->n && a->ids[n] == b->ids[n])
        n++;
    return n;
}

int chooser_ask(struct chooser *c, const char *window, const char *const *lines, int n, struct err *e)
{
    struct tokens ids = {0}, other = {0};
    session_free(c->lined);
    c->lined = NULL;
    c->window = window;
    c->lines = lines;
    c->n = n < CHOOSER_LINES ? n : CHOOSER_LINES;
    int rc = render(c, "a", &ids, e) || render(c, "", &other, e) ? -1 : 0;
    c->shared = common(&ids, &other);
    if (rc == 0 && (c->lined = session_try_fork(c->base, e)))
        rc = session_append(c->lined, ids.ids, c->shared, e) || session_prefill(c->lined, e) ? -1 : 0;
    tokens_free(&ids);
    tokens_free(&other);
    return rc || !c->lined ? -1 : 0;
}

/* ---- choosing ------------------------------------------------------------------------------------------ */

static ptrdiff_t line_end(void *arg, const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len);
    return end ? end - text : -1;
}

/* Compiles the grammar of the lines.  skip: bits of those that are not allowed. */
static struct grammar *lines_grammar(const struct chooser *c, uint32_t skip, struct err *e)
{
    gx_node any[CHOOSER_LINES];
    struct gx *x = gx_new();
    int n = 0;
    for (int i = 0; i < c->n; i++)
        if (!(skip >> i & 1))
            any[n++] = gx_lit(x, c->lines[i]);
    struct grammar *g =
        grammar_compile(x, GX_SEQ(x, gx_alt(x, n, any), gx_lit(x, "\n")), engine_tokenizer(c->engine), e);
    gx_free(x);
    return g;
}

/* Appends the end of the question with these words to a copy of the lines.  Returns NULL with e. */
static struct session *with_words(const struct chooser *c, const char *words, struct tokens *rest,
                                  struct err *e)
{
    struct tokens ids = {0};
    int rc = render(c, words, &ids, e);
    struct session *s = rc == 0 ? session_try_fork(c->lined, e) : NULL;
    for (int64_t i = c->shared; ids.ids && i < ids.n && s; i++)
        tokens_push(rest, ids.ids[i]);
    tokens_free(&ids);
    return s;
}

int chooser_choose(struct chooser *c, const char *words, uint32_t skip, double *p, struct err *e)
{
    struct beam_candidate best;
    struct tokens rest = {0};
    struct grammar *g = lines_grammar(c, skip, e);
    struct session *s = g ? with_words(c, words, &rest, e) : NULL;
    int chosen = -1;
    if (s && session_append(s, rest.ids, rest.n, e) == 0) {
        const struct beam_search how = {
            .grammar = g, .state = grammar_start(g), .given = "", .end = line_end, .width = WIDTH};
        int found = beam_search(s, &how, &best, 1, e);
        if (found == 0)
            err_set(e, ERR_MODEL, "the search found no line");
        for (int i = 0; i < c->n && found > 0; i++)
            chosen = strcmp(c->lines[i], best.text) ? chosen : i;
        *p = found > 0 ? best.p : 0;
    }
    tokens_free(&rest);
    session_free(s);
    grammar_free(g);
    return chosen;
}

/* ---- comparing words ----------------------------------------------------------------------------------- */

struct sum { /* of log-probabilities */
    const int32_t *ids;
    int64_t n, first, vocab;
    double logp;
};

/* Row i predicts token i + 1. */
static void add_row(void *arg, int64_t i, const float *logits)
{
    struct sum *s = arg;
    if (i + 1 < s->first || i + 1 >= s->n)
        return;
    float most = logits[0];
    double all = 0;
    for (int64_t k = 1; k < s->vocab; k++)
        most = logits[k] > most ? logits[k] : most;
    for (int64_t k = 0; k < s->vocab; k++)
        all += exp((double)(logits[k] - most));
    s->logp += (double)(logits[s->ids[i + 1]] - most) - log(all > 1 ? all : 1);
}

/* Computes the log-probability of a line after these words.  Returns -1 with e. */
static int score(const struct chooser *c, int line, const char *words, double *logp, struct err *e)
{
    const struct tokenizer *t = engine_tokenizer(c->engine);
    struct tokens all = {0};
    struct session *s = with_words(c, words, &all, e);
    struct sum sum = {.first = all.n, .vocab = tokenizer_size(t)};
    tokenizer_encode(t, c->lines[line], strlen(c->lines[line]), false, &all);
    sum.ids = all.ids;
    sum.n = all.n;
    int rc = s ? session_score(s, all.ids, all.n, add_row, &sum, e) : -1;
    *logp = sum.logp;
    tokens_free(&all);
    session_free(s);
    return rc;
}

int chooser_gain(struct chooser *c, int line, const char *words, const char *fewer, double *gain,
                 struct err *e)
{
    double with, without;
    int rc = score(c, line, words, &with, e) || score(c, line, fewer, &without, e) ? -1 : 0;
    *gain = rc ? 0 : with - without;
    return rc;
}
