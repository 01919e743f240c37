/* value.c - see private.h: one value of a suite, with its variables in place, or what was expected there. */
#include "qa/suite/private.h"

#include "base/nearest.h"
#include "base/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int unknown_variable(struct suite_reading *g, const struct filled *f)
{
    struct buf names;
    char where[48] = "";
    buf_init(&names, 300);
    for (int i = 0; i < g->vars.n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", g->vars.names[i]);
    if (f->line > 1)
        snprintf(where, sizeof where, " (line %d of the text)", f->line);
    doc_fault(g->y, g->n, g->e, "no variable {%s}%s; there are %s ({{%s}} writes the braces themselves)",
              f->unknown, where, names.data, f->unknown);
    buf_free(&names);
    return -1;
}

int value_text(struct suite_reading *g, const struct doc_node *n, unsigned how, const char **out)
{
    if (n->kind != DOC_SCALAR || (!*n->text && !(how & VALUE_EMPTY)))
        return doc_fault(g->y, g->n, g->e, "expected a text%s",
                         n->kind == DOC_SCALAR ? " that is not empty" : "");
    struct buf b;
    struct filled f;
    int rc = 0;
    buf_init(&b, SUITE_MAX_TEXT);
    vars_fill(&g->vars, n->text, how & (FILL_STRICT | FILL_SHELL), &b, &f);
    if (b.full)
        rc = doc_fault(g->y, g->n, g->e, "expected at most %d bytes of text", SUITE_MAX_TEXT);
    else if (f.line && g->draft)
        rc = VALUE_OPEN;
    else if (f.line && how & FILL_STRICT)
        rc = unknown_variable(g, &f);
    else if (how & VALUE_LINE && strpbrk(b.data, "\n\r"))
        rc = doc_fault(g->y, g->n, g->e, "expected one line");
    else if (!b.len && !(how & VALUE_EMPTY))
        rc = doc_fault(g->y, g->n, g->e, "expected a text; its variables are empty");
    else
        *out = texts_keep(g->s->texts, b.data, b.len);
    buf_free(&b);
    return rc;
}

int value_number(struct suite_reading *g, double min, double max, bool whole, double *out)
{
    const char *text = "";
    if (g->n->kind == DOC_SCALAR && *g->n->text) {
        int rc = value_text(g, g->n, FILL_STRICT, &text);
        if (rc)
            return rc;
        char *end = NULL;
        double v = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : -1;
        bool plain = end && !*end && strspn(text, "0123456789.") == strlen(text);
        if (plain && v >= min && v <= max && (!whole || !strchr(text, '.'))) {
            *out = v;
            return 0;
        }
    }
    return doc_fault(g->y, g->n, g->e, "expected a %snumber from %g to %.10g%s%.40s%s", whole ? "whole " : "",
                     min, max, g->n->text ? ", not '" : "", g->n->text ? g->n->text : "",
                     g->n->text ? "'" : "");
}

int value_seed(struct suite_reading *g, uint64_t *out)
{
    const char *text = g->n->text;
    size_t n = text ? strspn(text, "0123456789") : 0;
    if (!n || n > 19 || text[n])
        return doc_fault(g->y, g->n, g->e, "expected a whole number of at most 19 digits");
    *out = strtoull(text, NULL, 10);
    return 0;
}

int value_yes(struct suite_reading *g, bool *out)
{
    static const char *const words[2][3] = {{"no", "false", "off"}, {"yes", "true", "on"}};
    for (int v = 0; g->n->kind == DOC_SCALAR && v < 2; v++) {
        for (int i = 0; i < 3; i++) {
            if (!strcasecmp(words[v][i], g->n->text)) {
                *out = v;
                return 0;
            }
        }
    }
    return doc_fault(g->y, g->n, g->e, "expected yes or no");
}

int value_pattern(struct suite_reading *g, const char **out)
{
    if (g->n->kind != DOC_SCALAR || !*g->n->text)
        return doc_fault(g->y, g->n, g->e, "expected a regular expression");
    int rc = value_text(g, g->n, 0, out);
    if (rc || (g->again && !strchr(g->n->text, '{')))
        return rc;
    struct err why = ERR_INIT;
    struct regex *r = regex_new(*out, false, &why);
    if (!r)
        return doc_fault(g->y, g->n, g->e, "expected a regular expression: %s", why.text);
    regex_free(r);
    return 0;
}

int value_each(struct suite_reading *g, const char *what, int most,
               int (*take)(struct suite_reading *g, const struct doc_node *n))
{
    const struct doc_node *list = g->n, *one = list->kind == DOC_LIST ? list->child : list;
    if (list->kind == DOC_MAP)
        return doc_fault(g->y, g->n, g->e, "expected %s, or a list of such", what);
    for (int count = 0; one; one = list->kind == DOC_LIST ? one->next : NULL) {
        if (one->kind != DOC_SCALAR || !*one->text)
            return doc_fault(g->y, g->n, g->e, "expected %s, or a list of such", what);
        if (++count > most)
            return doc_fault(g->y, g->n, g->e, "expected at most %d of them", most);
        int rc = take(g, one);
        if (rc < 0)
            return rc;
    }
    return 0;
}

bool value_word(const char *s)
{
    size_t n = 0;
    for (; s[n]; n++)
        if (!isalnum((unsigned char)s[n]) && (!n || !strchr("._-", s[n])))
            return false;
    return n >= 1 && n <= SUITE_MAX_ID;
}

int value_unknown(struct suite_reading *g, const char *what, const char *const *names, int n)
{
    struct buf all;
    buf_init(&all, 400);
    for (int i = 0; i < n; i++)
        buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
    const char *near = nearest_word(g->n->key, names, n);
    doc_fault(g->y, g->n, g->e, "no such key%s%s%s; %s %s", near ? ", did you mean '" : "", near ? near : "",
              near ? "'?" : "", what, all.data);
    buf_free(&all);
    return -1;
}
