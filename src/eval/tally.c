/* tally.c - tables of outcomes: all items, and each value of each tag. */
#include "eval/eval.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 500, MAX_COLUMN = 40 };

static struct tally_row *row_of(struct tally *t, const char *tag, const char *value)
{
    for (int i = 0; i < t->n; i++) {
        struct tally_row *r = &t->rows[i];
        if (tag ? r->tag && !strcmp(r->tag, tag) && !strcmp(r->value, value) : !r->tag)
            return r;
    }
    t->cut |= t->n == MAX_ROWS;
    if (t->n == MAX_ROWS)
        return NULL;
    t->rows[t->n] = (struct tally_row){.tag = tag, .value = value};
    return &t->rows[t->n++];
}

static void count(struct tally_row *r, const struct eval_outcome *o)
{
    if (!r)
        return;
    r->n += !o->broken;
    r->hits += o->correct;
    r->wrong_format += o->wrong_format;
    r->broken += o->broken;
}

static int by_name(const void *a, const void *b)
{
    const struct tally_row *x = a, *y = b;
    int c = strcmp(x->tag ? x->tag : "", y->tag ? y->tag : "");
    return c ? c : strcmp(x->value ? x->value : "", y->value ? y->value : "");
}

void tally_make(struct tally *t, const struct eval_set *set, const struct eval_results *r)
{
    *t = (struct tally){.rows = xcalloc(MAX_ROWS, sizeof *t->rows)};
    row_of(t, NULL, NULL);
    for (int i = 0; i < set->n; i++) {
        const struct eval_outcome *o = &r->outcomes[i];
        const char *tag;
        json_t *value;
        if (!o->done)
            continue;
        count(row_of(t, NULL, NULL), o);
        json_object_foreach(json_object_get(set->items[i].fields, "tags"), tag, value)
            count(row_of(t, tag, json_string_value(value)), o);
        t->nothing += !o->broken && set->items[i].target.kind == TARGET_NONE;
        t->ms += o->broken ? 0 : (double)o->ms;
        t->tokens += o->broken ? 0 : o->tokens;
    }
    if (t->rows[0].n) {
        t->ms /= t->rows[0].n;
        t->tokens /= t->rows[0].n;
    }
    qsort(t->rows + 1, (size_t)t->n - 1, sizeof *t->rows, by_name);
}

/* ---- printing ----------------------------------------------------------------------------------- */

static void print_name(FILE *f, const struct tally_row *r, int width)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s%s", r->tag ? r->tag : "all", r->tag ? " = " : "",
             r->tag ? r->value : "");
    int shown = 0, bytes = 0;
    for (; name[bytes] && (shown < width || ((unsigned char)name[bytes] & 0xc0) == 0x80); bytes++)
        shown += ((unsigned char)name[bytes] & 0xc0) != 0x80;
    utf8_print(f, name,
               (size_t)bytes); /* names come from the set: control characters must not reach the terminal */
    fprintf(f, "%*s", width - shown, "");
}

void tally_print(const struct tally *t, FILE *f)
{
    fprintf(f, "%-*s %7s %7s %8s   %-17s %12s %7s\n", MAX_COLUMN, "group", "items", "hits", "rate",
            "95 % interval", "wrong format", "broken");
    for (int i = 0; i < t->n; i++) {
        const struct tally_row *r = &t->rows[i];
        double low, high;
        char interval[32];
        wilson(r->hits, r->n, &low, &high);
        snprintf(interval, sizeof interval, "%.1f - %.1f %%", 100 * low, 100 * high);
        print_name(f, r, MAX_COLUMN);
        fprintf(f, " %7d %7d ", r->n, r->hits);
        if (r->n)
            fprintf(f, "%6.1f %%   %-17s", 100.0 * r->hits / r->n, interval);
        else
            fprintf(f, "%8s   %-17s", "-", "-");
        fprintf(f, " %12d %7d\n", r->wrong_format, r->broken);
    }
    if (t->cut)
        fprintf(f, "there are more than %d groups; the others are not counted separately\n", MAX_ROWS);
    if (t->rows[0].n)
        fprintf(f, "one item takes %.0f ms and %.1f tokens of reply on average\n", t->ms, t->tokens);
}

json_t *tally_json(const struct tally *t)
{
    json_t *groups = json_array(), *all = NULL;
    for (int i = 0; i < t->n; i++) {
        const struct tally_row *r = &t->rows[i];
        double low, high;
        wilson(r->hits, r->n, &low, &high);
        json_t *v = json_pack("{s:i, s:i, s:o, s:[f, f], s:i, s:i}", "items", r->n, "hits", r->hits, "rate",
                              r->n ? json_real((double)r->hits / r->n) : json_null(), "interval", low, high,
                              "wrong_format", r->wrong_format, "broken", r->broken);
        if (r->tag) {
            json_object_set_new(v, "tag", json_string(r->tag));
            json_object_set_new(v, "value", json_string(r->value));
            json_array_append_new(groups, v);
        } else {
            all = v;
        }
    }
    return json_pack("{s:o, s:o, s:i, s:f, s:f}", "all", all, "groups", groups, "nothing_to_find", t->nothing,
                     "ms", t->ms, "tokens", t->tokens);
}

void tally_free(struct tally *t)
{
    free(t->rows);
    *t = (struct tally){0};
}
