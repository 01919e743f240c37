/* writer.c - see writer.h.
 *
 * The instructions and examples are computed once, the text of a window once for each window: the request
 * follows it, so that a second question needs only its own tokens. */
#include "planner/writer.h"

#include "base/buf.h"
#include "session/chat.h"
#include "session/generate.h"
#include "text/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 1 << 15, REPLY_TOKENS = 600 };

static const char instructions[] =
    "You operate a window for a user. You get the state of the window and a request. Write the state that "
    "the request asks for, line by line. Values that the request does not mention stay as they are. Button: "
    "the button that carries out the request, or none.";

static const char *const examples[][2] = {
    {"Window: Flight\nName = \"\"\nTown = \"\"\nSeat = Aisle (Aisle, Window, Middle)\nInsurance = no\n"
     "Newsletter = yes\nButton = none (Buy, Abort)\nRequest: a window seat with insurance for Eva Roth",
     "Name = \"Eva Roth\"\nTown = \"\"\nSeat = Window\nInsurance = yes\nNewsletter = yes\nButton = Buy\n"},
    {"Window: Draft\nText = \"\"\nPrivate = no\nMenu = none (File > Print..., Edit > Redo, File > Export...)"
     "\nButton = none (Post, Discard)\nRequest: get rid of it",
     "Text = \"\"\nPrivate = no\nMenu = none\nButton = Discard\n"},
    {"Window: Notes\nText = \"old\"\nMenu = none (File > Print..., Edit > Redo, File > Export...)\n"
     "Request: Make a paper copy of this",
     "Text = \"old\"\nMenu = File > Print...\n"},
    {"Window: Countries\nRow = none (Peru Lima, Chile Santiago, Cuba Havana)\nButton = none (Cancel, OK)\n"
     "Request: Chile would be nice",
     "Row = Chile Santiago\nButton = OK\n"},
};

struct writer {
    struct engine *engine;
    struct session *base;  /* instructions and examples */
    struct session *shown; /* ... and the window */
    char *window;
    int64_t shared; /* tokens of the window */
};

void writer_free(struct writer *w)
{
    if (!w)
        return;
    session_free(w->shown);
    session_free(w->base);
    free(w->window);
    free(w);
}

struct writer *writer_open(struct engine *g, const volatile int *cancel, struct err *e)
{
    struct writer *w = xcalloc(1, sizeof *w);
    *w = (struct writer){.engine = g, .base = session_new(g, 1)};
    session_set_cancel(w->base, cancel);
    int rc = chat_system(w->base, instructions, false, e);
    for (size_t i = 0; i < sizeof examples / sizeof *examples && rc == 0; i++) {
        const struct chat_part part = {.text = examples[i][0]};
        rc = chat_user(w->base, &part, 1, CHAT_PLACE_TEMPLATE, e) || chat_reply(w->base, examples[i][1], e);
    }
    if (rc == 0 && session_prefill(w->base, e) == 0)
        return w;
    writer_free(w);
    return NULL;
}

/* Tokenizes the question after the instructions.  Returns -1 with e. */
static int render(const struct writer *w, const char *window, const char *request, struct tokens *out,
                  struct err *e)
{
    struct session *s = session_try_fork(w->base, e);
    autobuf b = buf_of(PROMPT);
    if (!s)
        return -1;
    buf_printf(&b, "%sRequest: %s", window, request);
    const struct chat_part part = {.text = b.data};
    int64_t from = session_length(s);
    int rc = b.full ? err_set(e, ERR_MODEL, "the question is too long")
             : chat_user(s, &part, 1, CHAT_PLACE_TEMPLATE, e) || chat_open_reply(s, false, e) ? -1
                                                                                              : 0;
    *out = (struct tokens){0};
    for (int64_t i = from; i < session_length(s) && rc == 0; i++)
        tokens_push(out, session_tokens(s)[i]);
    session_free(s);
    return rc;
}

static int64_t common(const struct tokens *a, const struct tokens *b)
{
    int64_t n = 0;
    while (n < a->n && n < b->n && a->ids[n] == b->ids[n])
        n++;
    return n;
}

/* Computes the text of the window, if it is another one than before. */
static int show(struct writer *w, const char *window, struct err *e)
{
    struct tokens ids = {0}, other = {0};
    if (w->shown && !strcmp(w->window, window))
        return 0;
    session_free(w->shown);
    free(w->window);
    w->shown = NULL;
    w->window = xstrdup(window);
    int rc = render(w, window, "a", &ids, e) || render(w, window, "1", &other, e) ? -1 : 0;
    w->shared = common(&ids, &other);
    if (rc == 0 && (w->shown = session_try_fork(w->base, e)))
        rc = session_append(w->shown, ids.ids, w->shared, e) || session_prefill(w->shown, e) ? -1 : 0;
    tokens_free(&ids);
    tokens_free(&other);
    if (rc) { /* a part of the window must not be taken for all of it */
        session_free(w->shown);
        w->shown = NULL;
    }
    return w->shown ? 0 : -1;
}

/* Returns a copy of the shown window; rest: the tokens of the request.  Returns NULL with e. */
static struct session *with_request(struct writer *w, const char *window, const char *request,
                                    struct tokens *rest, struct err *e)
{
    struct tokens ids = {0};
    if (show(w, window, e) || render(w, window, request, &ids, e))
        return NULL;
    struct session *s = session_try_fork(w->shown, e);
    for (int64_t i = w->shared; ids.ids && i < ids.n && s; i++)
        tokens_push(rest, ids.ids[i]);
    tokens_free(&ids);
    return s;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static struct grammar *form_grammar(const struct writer *w, const struct form *form, struct err *e)
{
    gx_node lines[FORM_LINES], any[FORM_VALUES];
    struct gx *x = gx_new();
    for (int i = 0; i < form->n; i++) {
        const struct form_line *l = &form->l[i];
        for (int k = 0; k < l->n; k++)
            any[k] = gx_lit(x, l->v[k].text);
        lines[i] = GX_SEQ(x, gx_lit(x, l->name), gx_lit(x, " = "), gx_alt(x, l->n, any), gx_lit(x, "\n"));
    }
    struct grammar *g = grammar_compile(x, gx_seq(x, form->n, lines), engine_tokenizer(w->engine), e);
    gx_free(x);
    return g;
}

/* Reads the values and their probabilities from a reply.  Returns -1 with e. */
static int read_reply(const struct generated *r, const struct form *form, struct written *out, struct err *e)
{
    const char *at = r->text.data ? r->text.data : "";
    size_t from = 0;
    int t = 0;
    for (int i = 0; i < form->n; i++) {
        const struct form_line *l = &form->l[i];
        size_t n = strcspn(at, "\n"), name = strlen(l->name) + 3;
        double logp = 0;
        out->value[i] = -1;
        for (int k = 0; k < l->n && n >= name; k++)
            if (strlen(l->v[k].text) == n - name && !memcmp(at + name, l->v[k].text, n - name))
                out->value[i] = k;
        if (out->value[i] < 0)
            return err_set(e, ERR_MODEL, "the reply does not end");
        from += n + 1;
        for (; t < r->n && r->choices[t].end <= from; t++)
            logp += r->choices[t].forced ? 0 : (double)r->choices[t].logprob_masked;
        out->p[i] = (float)exp(logp);
        at += n + 1;
    }
    return 0;
}

int writer_write(struct writer *w, const char *window, const char *request, const struct form *form,
                 struct written *out, struct err *e)
{
    struct tokens rest = {0};
    struct generated reply = {0};
    *out = (struct written){.text = NULL};
    struct grammar *g = form_grammar(w, form, e);
    struct session *s = g ? with_request(w, window, request, &rest, e) : NULL;
    int rc = s ? session_append(s, rest.ids, rest.n, e) : -1;
    if (rc == 0) {
        const struct generation how = {.grammar = g, .sampling = {.top_p = 1, .max_tokens = REPLY_TOKENS}};
        rc = generate(s, &how, &reply, e) || read_reply(&reply, form, out, e) ? -1 : 0;
        out->text = rc == 0 ? xstrdup(reply.text.data) : NULL;
        generated_free(&reply);
    }
    tokens_free(&rest);
    session_free(s);
    grammar_free(g);
    return rc;
}

void written_free(struct written *p)
{
    free(p->text);
    *p = (struct written){.text = NULL};
}

/* ---- comparing requests -------------------------------------------------------------------------------- */

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

int writer_score(struct writer *w, const char *window, const char *request, const char *reply, double *logp,
                 struct err *e)
{
    const struct tokenizer *t = engine_tokenizer(w->engine);
    struct tokens all = {0};
    struct session *s = with_request(w, window, request, &all, e);
    struct sum sum = {.first = all.n, .vocab = tokenizer_size(t)};
    tokenizer_encode(t, reply, strlen(reply), false, &all);
    sum.ids = all.ids;
    sum.n = all.n;
    int rc = s ? session_score(s, all.ids, all.n, add_row, &sum, e) : -1;
    *logp = sum.logp;
    tokens_free(&all);
    session_free(s);
    return rc;
}
