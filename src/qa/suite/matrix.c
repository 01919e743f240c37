/* matrix.c - test matrix: expands an entry of a suite into one test per combination of values.
 *
 *     matrix: { page: [click-test, click-button], seed: 1000000..1000019 }
 *
 * The last axis varies fastest. A range includes both ends. */
#include "qa/suite/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_value(struct suite_reader *r, struct axis *a, const char *value)
{
    if (a->n == SUITE_MAX_TESTS)
        return fault(r, "expected at most %d values", SUITE_MAX_TESTS);
    if (a->n == a->capacity)
        a->values = xrealloc(a->values, (unsigned long)(a->capacity = a->capacity ? 2 * a->capacity : 8),
                             sizeof *a->values);
    a->values[a->n++] = arena_strdup(r->s->arena, value);
    return 0;
}

/* Parses a range such as "1..20"; returns false for other texts. */
static bool parse_range(const char *text, uint64_t *from, uint64_t *to)
{
    size_t n = strspn(text, "0123456789"),
           m = n && !strncmp(text + n, "..", 2) ? strspn(text + n + 2, "0123456789") : 0;
    if (!m || n > 18 || m > 18 || text[n + 2 + m])
        return false;
    *from = strtoull(text, NULL, 10);
    *to = strtoull(text + n + 2, NULL, 10);
    return true;
}

static int add_values(struct suite_reader *r, struct axis *a, const struct doc_node *n)
{
    uint64_t from, to;
    if (n->kind != DOC_SCALAR || strpbrk(n->text, "\n\r") || strlen(n->text) > SUITE_MAX_VALUE)
        return fault(r, "expected values of one line, in a list or as 1..20");
    if (n->quoted || !parse_range(n->text, &from, &to))
        return add_value(r, a, n->text);
    if (to < from)
        return fault(r, "expected an ascending range, not '%.40s'", n->text);
    if (to - from >= SUITE_MAX_TESTS)
        return fault(r, "expected at most %d values", SUITE_MAX_TESTS);
    for (char text[24]; from <= to; from++) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)from);
        if (add_value(r, a, text))
            return -1;
    }
    return 0;
}

static int read_axis(struct suite_reader *r, struct suite_matrix *m)
{
    if (!vars_is_name(r->n->key) || !strcmp(r->n->key, "id") || !strcmp(r->n->key, "dir"))
        return fault(r, "expected a variable's name: lower-case letters, digits and _, not id or dir");
    if (m->n == SUITE_MAX_AXES)
        return fault(r, "expected at most %d axes in a matrix", SUITE_MAX_AXES);
    struct axis *a = &m->axes[m->n++];
    a->name = arena_strdup(r->s->arena, r->n->key);
    if (!each_first(r->n))
        return fault(r, "expected values of one line, in a list or as 1..20");
    for (const struct doc_node *one = each_first(r->n); one; one = each_next(r->n, one))
        if (add_values(r, a, one))
            return -1;
    bool seed = !strcmp(a->name, "seed");
    for (int i = 0; seed && i < a->n; i++) {
        size_t n = strspn(a->values[i], "0123456789");
        if (!n || n > 19 || a->values[i][n])
            return fault(r, "expected whole numbers, not '%.40s'", a->values[i]);
    }
    m->combinations *= a->n;
    if (m->combinations > SUITE_MAX_TESTS)
        return fault(r, "expected at most %d combinations in a matrix", SUITE_MAX_TESTS);
    return 0;
}

int matrix_read(struct suite_reader *r, const struct doc_node *n, struct suite_matrix *m)
{
    *m = (struct suite_matrix){.combinations = 1};
    if (!n)
        return 0;
    r->n = n;
    if (n->kind != DOC_MAP || !n->child)
        return fault_at(r, n, "expected variables and values, as { page: [a, b], seed: 1..20 }");
    for (r->n = n->child; r->n; r->n = r->n->next)
        if (read_axis(r, m))
            return -1;
    return 0;
}

void matrix_free(struct suite_matrix *m)
{
    for (int i = 0; i < m->n; i++)
        free(m->axes[i].values);
}

void matrix_set(const struct suite_matrix *m, long which, struct suite_reader *r)
{
    const char *pairs[SUITE_MAX_AXES];
    for (int i = m->n - 1; i >= 0; i--) {
        const struct axis *a = &m->axes[i];
        const char *value = a->values[which % a->n];
        which /= a->n;
        vars_set(&r->vars, a->name, value); /* never too many */
        if (!strcmp(a->name, "seed"))
            r->t->seed = strtoull(value, NULL, 10);
        pairs[i] = arena_take(r->s->arena, xasprintf("%s=%s", a->name, value));
    }
    r->t->matrix = arena_list(r->s->arena, pairs, m->n);
}
