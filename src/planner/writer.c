/* writer.c - see writer.h.
 *
 * The instructions and examples are computed once for each model, and kept in a file of the cache.  The file
 * is used if it has their tokens. */
#include "planner/writer.h"

#include "base/buf.h"
#include "base/file.h"
#include "session/chat.h"
#include "session/generate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_TOKENS = 700, CANNOT_LETTERS = 80 };

/* the last line of a reply: the part of the request that the window lacks */
#define CANNOT  "Cannot: "
#define NOTHING "nothing"

static const char instructions[] =
    "You operate a window for a user. You get the state of the window and a request. Write the state "
    "that the request asks for, line by line. Values that the request does not mention stay as they "
    "are. Button: the button that carries out the request, or none. Then write which wish of the "
    "request this window cannot carry out, or nothing.";

static const char *const examples[][2] = {
    {"Window: Flight\nName = \"\"\nTown = \"\"\nSeat = Aisle (Aisle, Window, Middle)\nInsurance = "
     "no\nNewsletter = yes\nButton = none (Buy, Abort)\nRequest: hi, my name is Eva Roth and I like "
     "to look outside. Insure me please",
     "Name = \"Eva Roth\"\nTown = \"\"\nSeat = Window\nInsurance = yes\nNewsletter = yes\nButton = "
     "Buy\nCannot: nothing\n"},
    {"Window: Hotel Adler\nNights = \"1\"\nRoom = Single (Single, Double)\nSauna = no\nButton = none "
     "(Book, Back)\nRequest: three nights in a double with a balcony",
     "Nights = \"3\"\nRoom = Double\nSauna = no\nButton = Book\nCannot: a balcony\n"},
    {"Window: Draft\nText = \"\"\nPrivate = no\nMenu = none (File > Print..., Edit > Redo, File > "
     "Export...)\nButton = none (Post, Discard)\nRequest: nah, get rid of it",
     "Text = \"\"\nPrivate = no\nMenu = none\nButton = Discard\nCannot: nothing\n"},
    {"Window: Sandwiches\nNumber = \"1\" (1 to 5)\nFilling = Cheese (Cheese, Egg)\nButton = none "
     "(Order, Cancel)\nRequest: We are a dozen at the office, so twelve with egg",
     "Number = \"1\"\nFilling = Egg\nButton = none\nCannot: twelve\n"},
    {"Window: Countries\nRow = none (Peru Lima, Chile Santiago, Cuba Havana)\nButton = none (Cancel, "
     "OK)\nRequest: I'm off to Chile for two weeks, so that one",
     "Row = Chile Santiago\nButton = OK\nCannot: nothing\n"},
    {"Window: Pastry\nRow = none (Muffin 2.00, Brownie 2.50, Scone 1.80)\nButton = none (Cancel, "
     "Order)\nRequest: get me a croissant",
     "Row = none\nButton = none\nCannot: a croissant\n"},
    {"Window: Bill 311\nText: Pay 80.00 to the gardener?\nButton = none (Pay, Reject)\nRequest: "
     "print it out for me",
     "Button = none\nCannot: print it out\n"},
    {"Window: Notes\nText = \"old\"\nMenu = none (File > Print..., Edit > Redo, File > Export...)\n"
     "Request: Make a paper copy of this",
     "Text = \"old\"\nMenu = File > Print...\nCannot: nothing\n"},
    {"Window: Backup\nDisk = A (A, B)\nCompress = yes\nEncrypt = yes\nNotify = no\nButton = none "
     "(Start, Cancel)\nRequest: don't compress it, encryption stays, and tell me by mail when you're "
     "through - it's for the tax office",
     "Disk = A\nCompress = no\nEncrypt = yes\nNotify = yes\nButton = Start\nCannot: nothing\n"},
    {"Window: Appointment\nDate = \"01.01.2026\"\nHour = 08 (08, 09, 10)\nMinute = 00 (00, 15, 30, "
     "45)\nReminder = no\nParking = yes\nButton = none (Save, Cancel)\nRequest: Put me down for "
     "quarter past nine on March 4th 2026. I come by bus so no parking, but do remind me",
     "Date = \"04.03.2026\"\nHour = 09\nMinute = 15\nReminder = yes\nParking = no\nButton = Save\n"
     "Cannot: nothing\n"},
    {"Window: Share files\nReport = yes\nPhotos = yes\nBudget = no\nButton = none (Share, Cancel)\n"
     "Request: only the budget please",
     "Report = no\nPhotos = no\nBudget = yes\nButton = Share\nCannot: nothing\n"},
};

struct writer {
    struct engine *engine;
    struct session *base; /* instructions and examples */
};

void writer_free(struct writer *w)
{
    if (w)
        session_free(w->base);
    free(w);
}

/* Appends the instructions and examples.  Returns -1 with e. */
static int instruct(struct session *s, struct err *e)
{
    int rc = chat_system(s, instructions, false, e);
    for (size_t i = 0; i < sizeof examples / sizeof *examples && rc == 0; i++) {
        const struct chat_part part = {.text = examples[i][0]};
        rc = chat_user(s, &part, 1, CHAT_PLACE_TEMPLATE, e) || chat_reply(s, examples[i][1], e);
    }
    return rc;
}

/* Replaces a session that is not computed by the computed one of a file, if that has the same tokens. */
static bool load(struct writer *w, const char *path)
{
    struct err ignored = ERR_INIT;
    struct session *s = file_exists(path) ? session_load(w->engine, path, &ignored) : NULL;
    int64_t n = session_length(w->base);
    bool same = s && session_length(s) == n &&
                !memcmp(session_tokens(s), session_tokens(w->base), (size_t)n * sizeof(int32_t));
    session_free(same ? w->base : s);
    w->base = same ? s : w->base;
    return same;
}

struct writer *writer_open(struct engine *g, const volatile int *cancel, struct err *e)
{
    struct writer *w = xcalloc(1, sizeof *w);
    struct err ignored = ERR_INIT;
    autofree char *place = file_place(PLACE_CACHE, &ignored);
    autofree char *path =
        place ? xasprintf("%s/planner-%016" PRIx64 ".session", place, engine_hash(g)) : NULL;
    *w = (struct writer){.engine = g, .base = session_new(g, 1)};
    int rc = instruct(w->base, e);
    bool loaded = rc == 0 && path && load(w, path);
    session_set_cancel(w->base, cancel);
    if (rc || session_prefill(w->base, e)) {
        writer_free(w);
        return NULL;
    }
    if (path && !loaded)
        session_save(w->base, path, &ignored); /* only a later start is slower without it */
    return w;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static struct grammar *form_grammar(const struct writer *w, const struct form *form, struct err *e)
{
    gx_node lines[FORM_LINES + 1], any[FORM_VALUES];
    struct gx *x = gx_new();
    for (int i = 0; i < form->n; i++) {
        const struct form_line *l = &form->l[i];
        for (int k = 0; k < l->n; k++)
            any[k] = gx_lit(x, l->v[k].text);
        lines[i] = GX_SEQ(x, gx_lit(x, l->name), gx_lit(x, " = "), gx_alt(x, l->n, any), gx_lit(x, "\n"));
    }
    lines[form->n] = GX_SEQ(x, gx_lit(x, CANNOT), gx_utf8(x, "", 1, CANNOT_LETTERS), gx_lit(x, "\n"));
    struct grammar *g = grammar_compile(x, gx_seq(x, form->n + 1, lines), engine_tokenizer(w->engine), e);
    gx_free(x);
    return g;
}

/* Returns the probability of the choices from *at on that end within `to` bytes; moves *at behind them. */
static float probability(const struct generated *r, int *at, size_t to)
{
    double logp = 0;
    for (; *at < r->n && r->choices[*at].end <= to; ++*at)
        logp += r->choices[*at].forced ? 0 : (double)r->choices[*at].logprob_masked;
    return (float)exp(logp);
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
        out->value[i] = -1;
        for (int k = 0; k < l->n && n >= name; k++)
            if (strlen(l->v[k].text) == n - name && !memcmp(at + name, l->v[k].text, n - name))
                out->value[i] = k;
        if (out->value[i] < 0)
            return err_set(e, ERR_MODEL, "the reply does not end");
        from += n + 1;
        out->p[i] = probability(r, &t, from);
        at += n + 1;
    }
    size_t head = strlen(CANNOT), n = strcspn(at, "\n");
    if (!text_starts(at, CANNOT))
        return err_set(e, ERR_MODEL, "the reply does not end");
    out->cannot = xasprintf("%.*s", (int)(n - head), at + head);
    out->whole = !strcmp(out->cannot, NOTHING) ? probability(r, &t, from + n + 1) : 0;
    return 0;
}

int writer_write(struct writer *w, const char *window, const char *request, const struct form *form,
                 struct written *out, struct err *e)
{
    struct generated reply = {0};
    autofree char *question = xasprintf("%sRequest: %s", window, request);
    const struct chat_part part = {.text = question};
    *out = (struct written){.cannot = NULL};
    struct grammar *g = form_grammar(w, form, e);
    struct session *s = g ? session_try_fork(w->base, e) : NULL;
    int rc = !s || chat_user(s, &part, 1, CHAT_PLACE_TEMPLATE, e) || chat_open_reply(s, false, e) ? -1 : 0;
    if (rc == 0) {
        const struct generation how = {.grammar = g, .sampling = {.top_p = 1, .max_tokens = REPLY_TOKENS}};
        rc = generate(s, &how, &reply, e) || read_reply(&reply, form, out, e) ? -1 : 0;
        generated_free(&reply);
    }
    session_free(s);
    grammar_free(g);
    return rc;
}

void written_free(struct written *p)
{
    free(p->cannot);
    *p = (struct written){.cannot = NULL};
}
