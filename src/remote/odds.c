/* odds.c - token probabilities of a server's reply, converted to alternatives for a heat map. */
#include "remote/odds.h"

#include "actions/tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SPELLED = 16 << 20, MAX_TOKENS = 1 << 16 };
static const double LEAST_ODDS = 1e-4;

/* ---- from the server ------------------------------------------------------------------------------- */

/* Appends the token's bytes if the server returns them, else its text. */
static void put_token(struct buf *b, const json_t *token)
{
    json_t *bytes = json_object_get(token, "bytes"), *text = json_object_get(token, "token"), *one;
    size_t i;
    json_array_foreach(bytes, i, one) buf_putc(b, (char)json_integer_value(one));
    if (!json_is_array(bytes) && json_is_string(text))
        buf_put(b, json_string_value(text), json_string_length(text));
}

static float probability(const json_t *token)
{
    double p = exp(json_number_value(json_object_get(token, "logprob")));
    return p >= 0 && p <= 1 ? (float)p : 0;
}

/* Returns the last position at which the tokens spell the text; -1: they do not. */
static ptrdiff_t find_last(const struct buf *all, const char *text, size_t n)
{
    ptrdiff_t found = -1;
    const char *at = all->data, *end = at ? at + all->len : at;
    while (n && at && (at = memmem(at, (size_t)(end - at), text, n))) {
        found = at - all->data;
        at++;
    }
    return found;
}

static void keep_alternatives(struct generated *out, struct buf *spelled, const json_t *token)
{
    struct token_alternative *a = out->alternatives + (ptrdiff_t)out->n * out->width;
    const json_t *top = json_object_get(token, "top_logprobs");
    for (int k = 0; k < out->width; k++) {
        const json_t *one = json_array_get(top, (size_t)k);
        size_t from = spelled->len;
        a[k] = (struct token_alternative){-1, 0};
        put_token(spelled, one);
        if (one && spelled->len > from && !spelled->full &&
            !memchr(spelled->data + from, 0, spelled->len - from))
            a[k] = (struct token_alternative){(int32_t)from, probability(one)};
        buf_putc(spelled, 0);
    }
}

/* Stores the tokens. ends[i]: end of token i in the text that the tokens spell. */
static void keep_tokens(struct generated *out, const json_t *tokens, const size_t *ends, size_t from,
                        size_t n, size_t at)
{
    struct buf spelled;
    size_t count = json_array_size(tokens);
    buf_init(&spelled, MAX_SPELLED);
    out->n = 0;
    out->width = ODDS_TOP;
    out->choices = xcalloc(count, sizeof *out->choices);
    out->alternatives = xcalloc(count * ODDS_TOP, sizeof *out->alternatives);
    for (size_t i = 0; i < count; i++) {
        size_t begin = i ? ends[i - 1] : 0;
        if (ends[i] <= from || begin >= from + n)
            continue;
        const json_t *token = json_array_get(tokens, i);
        size_t end = ends[i] < from + n ? ends[i] - from : n;
        float logprob = logf(probability(token));
        out->choices[out->n] = (struct token_choice){
            .id = -1, .logprob = logprob, .logprob_masked = logprob, .end = (uint32_t)(at + end)};
        keep_alternatives(out, &spelled, token);
        out->n++;
    }
    out->spelled = buf_take(&spelled);
}

void odds_keep(struct generated *out, const json_t *tokens, const char *text, size_t n, size_t at)
{
    struct buf all;
    size_t count = json_array_size(tokens);
    if (!count || count > MAX_TOKENS)
        return;
    autofree size_t *ends = xcalloc(count, sizeof *ends);
    buf_init(&all, MAX_SPELLED);
    for (size_t i = 0; i < count; i++) {
        put_token(&all, json_array_get(tokens, i));
        ends[i] = all.len;
    }
    ptrdiff_t from = find_last(&all, text, n);
    if (from >= 0)
        keep_tokens(out, tokens, ends, (size_t)from, n, at);
    buf_free(&all);
}

/* ---- candidates -------------------------------------------------------------------------------------- */

struct candidates {
    const struct dialect *dialect;
    const struct slot *slot;
    struct beam_candidate *out;
    int n, max;
};

/* Inserts a candidate in the order of probability. Equal texts are one candidate; the least likely is dropped
 * if the list is full. */
static void add(struct candidates *c, const char *text, size_t len, double p)
{
    struct beam_candidate one = {.p = p};
    int i = 0;
    if (len >= sizeof one.text || !(p > LEAST_ODDS))
        return;
    memcpy(one.text, text, len);
    while (i < c->n && strcmp(c->out[i].text, one.text) != 0)
        i++;
    if (i < c->n) {
        one.p += c->out[i].p;
        memmove(c->out + i, c->out + i + 1, (size_t)(--c->n - i) * sizeof one);
    }
    for (i = c->n; i > 0 && c->out[i - 1].p < one.p; i--)
        ;
    if (i == c->max)
        return;
    c->n += c->n < c->max;
    memmove(c->out + i + 1, c->out + i, (size_t)(c->n - 1 - i) * sizeof one);
    c->out[i] = one;
}

/* Adds the only tool whose name begins with the text; if several do, the text itself. */
static void add_verb(struct candidates *c, const char *text, size_t len, double p)
{
    const struct tools *t = c->dialect->tools;
    const char *name = NULL;
    int found = 0;
    char begin[BEAM_TEXT + 4];
    for (int i = 0; i < t->n; i++)
        if (!t->list[i].hidden && !strncmp(t->list[i].name, text, len)) {
            name = t->list[i].name;
            found++;
        }
    if (found == 1)
        add(c, name, strlen(name), p);
    else if (found && len < BEAM_TEXT)
        add(c, begin, (size_t)snprintf(begin, sizeof begin, "%.*s...", (int)len, text), p);
}

/* Adds a value in which one token is replaced by an alternative: text[0..known) is from the alternative, the
 * rest from the reply. */
static void add_exchanged(struct candidates *c, const char *text, size_t known, double p)
{
    enum slot_kind kind = c->slot->kind;
    ptrdiff_t end = dialect_slot_end(c->dialect, kind, text, strlen(text));
    if (kind == SLOT_VERB && c->dialect->tools && (end < 0 || (size_t)end >= known))
        add_verb(c, text, known, p);
    else if (end > 0)
        add(c, text, (size_t)end, p);
}

/* Returns the probability of the slot's tokens after token i. */
static double odds_of_rest(const struct candidates *c, const struct generated *said, int i)
{
    double p = 1;
    for (; c->slot->kind == SLOT_POINT && i + 1 < said->n && said->choices[i].end < c->slot->end; i++)
        p *= exp((double)said->choices[i + 1].logprob);
    return p;
}

/* Adds the alternatives to token i. first: where the slot's first token begins in the reply. */
static void exchange(struct candidates *c, const struct generated *said, int i, size_t first, double p)
{
    size_t begin = i ? said->choices[i - 1].end : 0, end = said->choices[i].end;
    size_t given = c->slot->begin - first;
    const char *text = said->text.data;
    begin = begin > first ? begin : first;
    p *= odds_of_rest(c, said, i);
    for (int k = 0; k < said->width; k++) {
        const struct token_alternative *a = &said->alternatives[(ptrdiff_t)i * said->width + k];
        const char *other = a->id < 0 ? "" : said->spelled + a->id;
        size_t n = strlen(other);
        if (!n || (n == end - begin && !memcmp(other, text + begin, n)))
            continue;
        autofree char *whole = xasprintf("%.*s%s%s", (int)(begin - first), text + first, other, text + end);
        size_t known = begin - first + n;
        if (known > given && !memcmp(whole, text + first, given))
            add_exchanged(c, whole + given, known - given, p * (double)a->p);
    }
}

int odds_candidates(const struct dialect *d, const struct generated *said, const struct slot *slot,
                    struct beam_candidate *out, int max)
{
    struct candidates c = {.dialect = d, .slot = slot, .out = out, .max = max};
    size_t begin = 0, first = slot->begin;
    double p = 1;
    for (int i = 0; said->spelled && i < said->n; begin = said->choices[i++].end) {
        if (said->choices[i].end <= slot->begin || begin >= slot->end)
            continue;
        first = begin < slot->begin ? begin : first;
        exchange(&c, said, i, first, p);
        p *= exp((double)said->choices[i].logprob);
    }
    if (said->spelled)
        add(&c, said->text.data + slot->begin, slot->end - slot->begin, p);
    return c.n;
}
