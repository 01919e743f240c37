/* rounding.c - the cost of rounding on real text (--text): engines with rounded weights, activations, keys
 * and values, compared with one that computes in f32 with the weights as stored.
 *
 * The text is cut into windows of equal length.  Each engine evaluates a window teacher forced: row i
 * contains the logits after the first i + 1 tokens, which should predict the next token of the text.  Rows of
 * one window are correlated, so a window is the unit of all intervals: the mean of W windows is given with
 * its 95 % confidence interval by Student's t.
 *
 * Memory contains one option's engine in addition to the reference, whose logits of a group of windows are
 * kept for the comparison with the options.  With --json each option's sums over a window are printed as a
 * line as soon as they are known, so that an interrupted measurement keeps its results and --from continues
 * it. */
#include "base/number.h"
#include "bench/bench.h"
#include "bench/subject.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/find.h"
#include "text/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 8, TEXT_BYTES = 64 << 20 };

struct choice {
    const char *name, *weights, *activations, *kv, *state;
    struct engine_options o;
};

/* activations are rounded only if the name says so */
#define EXACT .activations = ACTIVATIONS_BF16
static const struct choice choices[] = {
    {"default", "auto", "auto", "auto", "fp32", {.weights = WEIGHTS_AUTO}},
    {"stored", "auto", "bf16", "auto", "fp32", {EXACT}},
    {"bf16", "bf16", "bf16", "auto", "fp32", {.weights = WEIGHTS_BF16, EXACT}},
    {"int8", "int8", "bf16", "auto", "fp32", {.weights = WEIGHTS_INT8, EXACT}},
    {"int4", "int4", "bf16", "auto", "fp32", {.weights = WEIGHTS_INT4, EXACT}},
    {"fp8", "fp8", "bf16", "auto", "fp32", {.weights = WEIGHTS_FP8, EXACT}},
    {"stored+kv-fp8", "auto", "bf16", "fp8", "fp32", {.kv = KV_FP8, EXACT}},
    {"stored+activations-int8", "auto", "int8", "auto", "fp32", {.activations = ACTIVATIONS_INT8}},
    {"int8+activations-int8",
     "int8",
     "int8",
     "auto",
     "fp32",
     {.weights = WEIGHTS_INT8, .activations = ACTIVATIONS_INT8}},
    {"int4+activations-int8",
     "int4",
     "int8",
     "auto",
     "fp32",
     {.weights = WEIGHTS_INT4, .activations = ACTIVATIONS_INT8}},
    {"fp8+activations-fp8", "fp8", "fp8", "auto", "fp32", {.activations = ACTIVATIONS_FP8}},
    {"stored+state-fp16", "auto", "bf16", "auto", "fp16", {.state = STATE_FP16, EXACT}},
};

enum { CHOICES = sizeof choices / sizeof *choices };

struct sums {                /* over the rows of a window */
    int rows, same, most_at; /* most_at: the row with the largest divergence */
    double kl, most, nll, nll_exact;
};

struct totals { /* sums and sums of squares of the means of an option's windows */
    int windows;
    double kl[2], same[2], nll[2], nll_exact, rise[2], most;
};

struct row { /* a row of logits: the likeliest id, and the logarithm of the sum of the exponentials */
    int best;
    double log_sum;
};

struct rounding {
    const struct bench *k;
    char *dir;
    struct engine *exact;
    struct tokens ids;
    int vocab, window;
    float *logits;          /* [GROUP, window - 1, V]: logits of the reference */
    struct row *exact_rows; /* [GROUP, window - 1] */
    int64_t slot;           /* index of the current window in the group */
    const int32_t *now;     /* tokens of the current window */
    struct sums sums;
    struct totals totals[CHOICES];
    bool refused[CHOICES];
};

/* ---- one row ------------------------------------------------------------------------------------------ */

/* Returns log(sum(exp(x))) of n logits; x[best] is the largest.  Exponentials in f32 have an error of 1e-7 of
 * each term, their sum less: far below any divergence that rounding causes. */
static double log_sum(const float *x, int n, int best)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)expf(x[i] - x[best]);
    return (double)x[best] + log(fmax(sum, 1)); /* the largest term alone gives 1 */
}

/* Adds the comparison of one row: p of the reference, summarized in *of, and q of an option, n logits each;
 * `next` is the following token of the text. */
static void add_row(struct sums *s, const float *p, const struct row *of, const float *q, int n, int32_t next)
{
    int best = floats_argmax(q, n);
    double zq = log_sum(q, n, best), shift = zq - of->log_sum, kl = 0;
    for (int i = 0; i < n; i++) {
        double logp = (double)p[i] - of->log_sum;
        kl += (double)expf((float)logp) * ((double)p[i] - (double)q[i] + shift);
    }
    s->most_at = kl > s->most ? s->rows : s->most_at;
    s->most = fmax(s->most, kl);
    s->rows++;
    s->same += best == of->best;
    s->kl += kl;
    s->nll += zq - (double)q[next];
    s->nll_exact += of->log_sum - (double)p[next];
}

static void keep_row(void *arg, int64_t i, const float *logits)
{
    struct rounding *r = arg;
    if (i == r->window - 1)
        return;
    int best = floats_argmax(logits, r->vocab);
    r->exact_rows[r->slot * (r->window - 1) + i] = (struct row){best, log_sum(logits, r->vocab, best)};
    memcpy(r->logits + (r->slot * (r->window - 1) + i) * r->vocab, logits, (size_t)r->vocab * sizeof *logits);
}

static void compare_row(void *arg, int64_t i, const float *logits)
{
    struct rounding *r = arg;
    int64_t at = r->slot * (r->window - 1) + i;
    if (i < r->window - 1)
        add_row(&r->sums, r->logits + at * r->vocab, &r->exact_rows[at], logits, r->vocab, r->now[i + 1]);
}

/* ---- windows ------------------------------------------------------------------------------------------ */

static int evaluate(struct rounding *r, struct engine *g, int window, int slot, session_row_fn *fn,
                    struct err *e)
{
    struct session *s = session_new(g, 1);
    r->now = r->ids.ids + (int64_t)window * r->window;
    r->slot = slot;
    r->sums = (struct sums){0};
    int rc = session_score(s, r->now, r->window, fn, r, e);
    session_free(s);
    return rc;
}

static void add_window(struct totals *t, const struct sums *s)
{
    double n = s->rows, kl = s->kl / n, same = s->same / n, nll = s->nll / n,
           rise = (s->nll - s->nll_exact) / n;
    const struct {
        double *to, value;
    } all[] = {{t->kl, kl}, {t->same, same}, {t->nll, nll}, {t->rise, rise}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        all[i].to[0] += all[i].value;
        all[i].to[1] += all[i].value * all[i].value;
    }
    t->windows++;
    t->nll_exact += s->nll_exact / n;
    t->most = fmax(t->most, s->most);
}

static void print_window(const struct rounding *r, const struct choice *c, int window, double ms)
{
    const struct sums *s = &r->sums;
    json_auto_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "section", "rounding",
                                 "model", r->k->model ? r->k->model : r->dir, "text", r->k->text, "choice",
                                 c->name, "weights", c->weights, "activations", c->activations, "kv", c->kv,
                                 "state", c->state, "isa", engine_isa(r->exact));
    json_auto_t *sums =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "window", window, "tokens", r->window,
                  "rows", s->rows, "same", s->same, "most_at", s->most_at, "most", s->most, "kl", s->kl,
                  "nll", s->nll, "nll_exact", s->nll_exact, "ms", ms);
    json_object_update(row, sums);
    json_print(row, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    fflush(stdout);
}

/* Compares one option with the reference logits of n windows.  Reports an option that this model or machine
 * rejects once on stderr.  Returns -1 with e. */
static int compare(struct rounding *r, int choice, int first, int n, struct err *e)
{
    const struct choice *c = &choices[choice];
    struct engine_options o = c->o;
    struct err why = ERR_INIT;
    o.dir = r->dir;
    o.device = r->k->device;
    o.isa = r->k->isa;
    o.threads = r->k->threads;
    o.any_drift = true;
    o.cache = r->k->weight_cache;
    struct engine *g = engine_open(&o, &why);
    if (!g) {
        r->refused[choice] = true;
        fprintf(stderr, "rounding: '%s' does not apply: %s\n", c->name, why.text);
        return 0;
    }
    int rc = 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        int64_t start = clock_ns();
        rc = evaluate(r, g, first + i, i, compare_row, e);
        double ms = clock_ms_since(start);
        if (rc)
            break;
        add_window(&r->totals[choice], &r->sums);
        if (r->k->json)
            print_window(r, c, first + i, ms);
        fprintf(stderr, "rounding: window %d, %s: KL %.3g nat, %.1f s\n", first + i, c->name,
                r->sums.kl / r->sums.rows, ms * 1e-3);
    }
    engine_close(g);
    return rc;
}

static bool is_wanted(const struct rounding *r, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = r->k->choices; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !strncmp(at, name, n))
            return true;
    return !r->k->choices;
}

static int measure_group(struct rounding *r, int first, int n, struct err *e)
{
    for (int i = 0; i < n; i++) {
        int64_t start = clock_ns();
        if (evaluate(r, r->exact, first + i, i, keep_row, e))
            return -1;
        fprintf(stderr, "rounding: window %d, reference: %.1f s\n", first + i, clock_ms_since(start) * 1e-3);
    }
    for (int c = 0; c < CHOICES; c++)
        if (is_wanted(r, choices[c].name) && !r->refused[c] && compare(r, c, first, n, e))
            return -1;
    return 0;
}

/* ---- results ------------------------------------------------------------------------------------------ */

/* Returns the 97.5 % quantile of Student's t with n degrees of freedom, by the expansion of Hill (1970) in 1
 * / n; exact values for n < 3. */
static double student(int n)
{
    double z = 1.959963985, z3 = z * z * z, z5 = z3 * z * z;
    if (n < 3)
        return n < 2 ? 12.7062 : 4.3027;
    return z + (z3 + z) / (4.0 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96.0 * n * n);
}

/* Returns half the width of the 95 % confidence interval of the mean of n values; infinite for one value. */
static double half_width(const double sums[2], int n)
{
    double mean = sums[0] / n, variance = n > 1 ? fmax(sums[1] / n - mean * mean, 0) * n / (n - 1) : INFINITY;
    return n > 1 ? student(n - 1) * sqrt(variance / n) : INFINITY;
}

static void print_totals(const struct rounding *r)
{
    printf("%-24s %7s %21s %9s %18s %10s %10s %21s\n", "option", "windows", "mean KL, nat", "largest",
           "same likeliest, %", "ppl exact", "ppl", "rise of log ppl");
    for (int i = 0; i < CHOICES; i++) {
        const struct totals *t = &r->totals[i];
        int n = t->windows;
        if (n == 0)
            continue;
        printf("%-24s %7d %11.3e +- %.1e %9.2e %9.2f +- %4.2f %10.4f %10.4f %11.3e +- %.1e\n",
               choices[i].name, n, t->kl[0] / n, half_width(t->kl, n), t->most, 100 * t->same[0] / n,
               100 * half_width(t->same, n), exp(t->nll_exact / n), exp(t->nll[0] / n), t->rise[0] / n,
               half_width(t->rise, n));
    }
    fflush(stdout);
}

/* ---- opening and running ------------------------------------------------------------------------------- */

static int check_choices(const struct bench *k, struct err *e)
{
    for (const char *at = k->choices; at && *at; at += strcspn(at, ","), at += *at == ',') {
        int n = (int)strcspn(at, ","), found = 0;
        for (int c = 0; c < CHOICES; c++)
            found |= (int)strlen(choices[c].name) == n && !strncmp(choices[c].name, at, (size_t)n);
        if (!found)
            return err_set(
                e, ERR_USAGE,
                "unknown option '%.*s' in --choices; the options are default, stored, bf16, int8, int4, fp8, "
                "stored+kv-fp8, stored+activations-int8, int8+activations-int8, int4+activations-int8, "
                "fp8+activations-fp8 and stored+state-fp16",
                n, at);
    }
    return 0;
}

static int open_rounding(struct rounding *r, struct err *e)
{
    const struct bench *k = r->k;
    struct engine_options o = {
        .device = k->device, .isa = k->isa, .threads = k->threads, .f32 = true, .any_drift = true};
    char *text = NULL;
    size_t len = 0;
    if (check_choices(k, e) || !(r->dir = model_find(k->model, e)))
        return -1;
    o.dir = r->dir;
    if (file_read(k->text, TEXT_BYTES, &text, &len, e) || !(r->exact = engine_open(&o, e))) {
        free(text);
        return -1;
    }
    r->vocab = engine_vocab(r->exact);
    r->window = k->window;
    tokenizer_encode(engine_tokenizer(r->exact), text, len, false, &r->ids);
    free(text);
    if (r->window > engine_config(r->exact)->lm.max_tokens)
        return err_set(e, ERR_USAGE,
                       "a window of %d tokens exceeds the model's context of %d: use a smaller --window",
                       r->window, engine_config(r->exact)->lm.max_tokens);
    if (r->ids.n / r->window <= k->from)
        return err_set(e, ERR_USAGE, "'%s' has %lld tokens, too few for window %d of %d tokens", k->text,
                       (long long)r->ids.n, k->from, r->window);
    return 0;
}

int bench_rounding(const struct bench *k, struct err *e)
{
    struct rounding r = {.k = k};
    int rc = open_rounding(&r, e), end = 0;
    if (rc == 0) {
        int64_t most = r.ids.n / r.window;
        end = most - k->from < k->windows ? (int)most : k->from + k->windows;
        fprintf(stderr, "rounding: %lld tokens, windows %d to %d of %d tokens\n", (long long)r.ids.n, k->from,
                end - 1, r.window);
        size_t rows = (size_t)(end - k->from < GROUP ? end - k->from : GROUP) * (size_t)(r.window - 1);
        r.logits = xmalloc(rows * (size_t)r.vocab, sizeof *r.logits);
        r.exact_rows = xcalloc(rows, sizeof *r.exact_rows);
    }
    for (int first = k->from; rc == 0 && first < end; first += GROUP)
        rc = measure_group(&r, first, end - first < GROUP ? end - first : GROUP, e);
    if (rc == 0 && !k->json)
        print_totals(&r);
    free(r.logits);
    free(r.exact_rows);
    tokens_free(&r.ids);
    engine_close(r.exact);
    free(r.dir);
    return rc;
}
