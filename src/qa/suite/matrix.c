/* matrix.c - see private.h: one entry that is many tests.
 *
 *     matrix: { page: [click-test, click-button], seed: 1000000..1000019 }
 *
 * The last axis changes fastest.  A range has both its ends.
 */
#include "qa/suite/private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(struct suite_reading *g, struct axis *a, const char *value)
{
    if (a->n == SUITE_MAX_TESTS)
        return doc_fault(g->y, g->n, g->e, "expected at most %d values", SUITE_MAX_TESTS);
    if (a->n == a->room)
        a->values =
            xrealloc(a->values, (unsigned long)(a->room = a->room ? 2 * a->room : 8), sizeof *a->values);
    a->values[a->n++] = texts_keep(g->s->texts, value, strlen(value));
    return 0;
}

/* "1..20"; false: it is no range. */
static bool range(const char *text, uint64_t *from, uint64_t *to)
{
    size_t n = strspn(text, "0123456789"),
           m = n && !strncmp(text + n, "..", 2) ? strspn(text + n + 2, "0123456789") : 0;
    if (!m || n > 18 || m > 18 || text[n + 2 + m])
        return false;
    *from = strtoull(text, NULL, 10);
    *to = strtoull(text + n + 2, NULL, 10);
    return true;
}

static int take(struct suite_reading *g, struct axis *a, const struct doc_node *n)
{
    uint64_t from, to;
    if (n->kind != DOC_SCALAR || strpbrk(n->text, "\n\r") || strlen(n->text) > SUITE_MAX_VALUE)
        return doc_fault(g->y, g->n, g->e, "expected values of one line, in a list or as 1..20");
    if (n->quoted || !range(n->text, &from, &to))
        return add(g, a, n->text);
    if (to < from)
        return doc_fault(g->y, g->n, g->e, "expected a range from less to more, not '%.40s'", n->text);
    if (to - from >= SUITE_MAX_TESTS)
        return doc_fault(g->y, g->n, g->e, "expected at most %d values", SUITE_MAX_TESTS);
    for (char text[24]; from <= to; from++) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)from);
        if (add(g, a, text))
            return -1;
    }
    return 0;
}

static int read_axis(struct suite_reading *g, struct suite_matrix *m)
{
    if (!vars_name(g->n->key) || !strcmp(g->n->key, "id") || !strcmp(g->n->key, "dir"))
        return doc_fault(g->y, g->n, g->e,
                         "expected the name of a variable: small letters, digits and _, not id or dir");
    if (m->n == SUITE_MAX_AXES)
        return doc_fault(g->y, g->n, g->e, "expected at most %d of them in a matrix", SUITE_MAX_AXES);
    struct axis *a = &m->axes[m->n++];
    a->name = texts_keep(g->s->texts, g->n->key, strlen(g->n->key));
    const struct doc_node *one = g->n->kind == DOC_LIST ? g->n->child : g->n;
    if (!one)
        return doc_fault(g->y, g->n, g->e, "expected values of one line, in a list or as 1..20");
    for (; one; one = g->n->kind == DOC_LIST ? one->next : NULL)
        if (take(g, a, one))
            return -1;
    bool numbers = strcmp(a->name, "seed") != 0;
    for (int i = 0; !numbers && i < a->n; i++) {
        size_t n = strspn(a->values[i], "0123456789");
        if (!n || n > 19 || a->values[i][n])
            return doc_fault(g->y, g->n, g->e, "expected whole numbers, not '%.40s'", a->values[i]);
    }
    m->combinations *= a->n;
    if (m->combinations > SUITE_MAX_TESTS)
        return doc_fault(g->y, g->n, g->e, "expected at most %d combinations in a matrix", SUITE_MAX_TESTS);
    return 0;
}

int matrix_read(struct suite_reading *g, const struct doc_node *n, struct suite_matrix *m)
{
    *m = (struct suite_matrix){.combinations = 1};
    if (!n)
        return 0;
    g->n = n;
    if (n->kind != DOC_MAP || !n->child)
        return doc_fault(g->y, n, g->e,
                         "expected variables with their values, as { page: [a, b], seed: 1..20 }");
    for (g->n = n->child; g->n; g->n = g->n->next)
        if (read_axis(g, m))
            return -1;
    return 0;
}

void matrix_free(struct suite_matrix *m)
{
    for (int i = 0; i < m->n; i++)
        free(m->axes[i].values);
}

void matrix_set(const struct suite_matrix *m, long which, struct suite_reading *g)
{
    const char *said[SUITE_MAX_AXES];
    for (int i = m->n - 1; i >= 0; i--) {
        const struct axis *a = &m->axes[i];
        const char *value = a->values[which % a->n];
        which /= a->n;
        vars_set(&g->vars, a->name, value); /* fewer than there is room for */
        if (!strcmp(a->name, "seed"))
            g->t->seed = strtoull(value, NULL, 10);
        char *text = xasprintf("%s=%s", a->name, value);
        said[i] = texts_keep(g->s->texts, text, strlen(text));
        free(text);
    }
    g->t->matrix = texts_list(g->s->texts, said, m->n);
}
