/* value.c - reads one value of a suite: expands its variables, or reports the expected type. */
#include "qa/suite/private.h"

#include "base/buf.h"
#include "base/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int part_read(struct suite_reader *r, int rc)
{
    if (rc >= 0 || !r->faults)
        return rc < 0 ? -1 : 0;
    json_object_set_new_nocheck(r->faults, r->e->text, json_null());
    *r->e = (struct err)ERR_INIT;
    return 0;
}

static int unknown_variable(struct suite_reader *r, const struct expansion *x)
{
    autobuf names = buf_of(300);
    char where[48] = "";
    for (int i = 0; i < r->vars.n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", r->vars.names[i]);
    if (x->line > 1)
        snprintf(where, sizeof where, " (line %d of the text)", x->line);
    fault(r, "no variable {%s}%s; known: %s ({{%s}} writes the braces themselves)", x->unknown, where,
          names.data, x->unknown);
    return -1;
}

int value_text(struct suite_reader *r, const struct doc_node *n, unsigned how, const char **out)
{
    if (n->kind != DOC_SCALAR || (!*n->text && !(how & VALUE_EMPTY)))
        return fault(r, "expected a text%s", n->kind == DOC_SCALAR ? " that is not empty" : "");
    autobuf b = buf_of(SUITE_MAX_TEXT);
    struct expansion x;
    int rc = 0;
    vars_expand(&r->vars, n->text, how & (EXPAND_STRICT | EXPAND_SHELL), &b, &x);
    if (b.full)
        rc = fault(r, "expected at most %d bytes of text", SUITE_MAX_TEXT);
    else if (x.line && r->draft)
        rc = VALUE_UNRESOLVED;
    else if (x.line && how & EXPAND_STRICT)
        rc = unknown_variable(r, &x);
    else if (how & VALUE_ONE_LINE && strpbrk(b.data, "\n\r"))
        rc = fault(r, "expected one line");
    else if (!b.len && !(how & VALUE_EMPTY))
        rc = fault(r, "expected a text, but its variables are empty");
    else
        *out = arena_strndup(r->s->arena, b.data, b.len);
    return rc;
}

int value_number(struct suite_reader *r, double min, double max, bool whole, double *out)
{
    const char *text = "";
    if (r->n->kind == DOC_SCALAR && *r->n->text) {
        int rc = value_text(r, r->n, VALUE_STRICT, &text);
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
    return fault(r, "expected a %snumber from %g to %.10g%s%.40s%s", whole ? "whole " : "", min, max,
                 r->n->text ? ", not '" : "", r->n->text ? r->n->text : "", r->n->text ? "'" : "");
}

int value_seed(struct suite_reader *r, uint64_t *out)
{
    const char *text = r->n->text;
    size_t n = text ? strspn(text, "0123456789") : 0;
    if (!n || n > 19 || text[n])
        return fault(r, "expected a whole number of at most 19 digits");
    *out = strtoull(text, NULL, 10);
    return 0;
}

int value_each(struct suite_reader *r, const char *what, int most,
               int (*add)(struct suite_reader *r, const struct doc_node *n))
{
    const struct doc_node *list = r->n;
    int count = 0;
    for (const struct doc_node *n = each_first(list); n; n = each_next(list, n)) {
        if (n->kind != DOC_SCALAR || !*n->text)
            return fault(r, "expected %s", what);
        if (++count > most)
            return fault(r, "expected at most %d of them", most);
        if (part_read(r, add(r, n)))
            return -1;
    }
    return 0;
}

int value_find_name(const char *const *list, int n, const char *name, size_t len)
{
    int at = 0;
    while (at < n && (strncmp(list[at], name, len) != 0 || list[at][len] != '='))
        at++;
    return at;
}

bool value_is_word(const char *s)
{
    size_t n = 0;
    for (; s[n]; n++)
        if (!isalnum((unsigned char)s[n]) && (!n || !strchr("._-", s[n])))
            return false;
    return n >= 1 && n <= SUITE_MAX_ID;
}

/* ---- readers of keys ----------------------------------------------------------------------------- */

int key_int(struct suite_reader *r, const struct key *k, void *member)
{
    double v = 0;
    int rc = value_number(r, k->min, k->max, true, &v);
    if (!rc)
        *(int *)member = (int)v;
    return rc;
}

int key_number(struct suite_reader *r, const struct key *k, void *member)
{
    return value_number(r, k->min, k->max, false, member);
}

int key_bool(struct suite_reader *r, const struct key *k, void *member)
{
    static const char *const words[2][3] = {{"no", "false", "off"}, {"yes", "true", "on"}};
    for (int v = 0; r->n->kind == DOC_SCALAR && v < 2; v++)
        for (int i = 0; i < 3; i++)
            if (!strcasecmp(words[v][i], r->n->text)) {
                *(bool *)member = v;
                return 0;
            }
    return fault(r, "expected yes or no");
}

int key_pattern(struct suite_reader *r, const struct key *k, void *member)
{
    const char **pattern = member;
    if (r->n->kind != DOC_SCALAR || !*r->n->text)
        return fault(r, "expected a regular expression");
    int rc = value_text(r, r->n, 0, pattern);
    if (rc || (r->again && !strchr(r->n->text, '{')))
        return rc;
    struct err why = ERR_INIT;
    struct regex *regex = regex_new(*pattern, false, &why);
    if (!regex)
        return fault(r, "expected a regular expression: %s", why.text);
    regex_free(regex);
    return 0;
}

int key_line(struct suite_reader *r, const struct key *k, void *member)
{
    return value_text(r, r->n, VALUE_STRICT | VALUE_ONE_LINE, member);
}

int key_text(struct suite_reader *r, const struct key *k, void *member)
{
    return value_text(r, r->n, VALUE_STRICT, member);
}

int key_command(struct suite_reader *r, const struct key *k, void *member)
{
    return value_text(r, r->n, VALUE_SHELL, member);
}

/* ---- tables of keys ------------------------------------------------------------------------------ */

const struct key *key_find(struct suite_reader *r, const struct key *table, unsigned where, const char *what)
{
    const char *names[64];
    struct buf all;
    int n = 0;
    bool elsewhere = false; /* in this file it is part of another word */
    buf_init(&all, 400);
    for (const struct key *k = table; k->name; k++) {
        elsewhere = elsewhere || (!(k->where & where) && !strcmp(k->name, r->n->key));
        if (!(k->where & where))
            continue;
        if (!strcmp(k->name, r->n->key)) {
            buf_free(&all);
            return k;
        }
        buf_printf(&all, "%s%s", n ? ", " : "", k->name);
        names[n++] = k->name;
    }
    const char *near = elsewhere ? NULL : suggested_name(r->n->key, names, n);
    fault(r, "no such key%s%s%s; %s %s", near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "",
          what, all.data);
    buf_free(&all);
    return NULL;
}

int keys_read(struct suite_reader *r, const struct doc_node *map, const struct key *table, unsigned where,
              const char *what, void *to)
{
    for (const struct doc_node *n = map->child; n; n = n->next) {
        r->n = n;
        const struct key *k = key_find(r, table, where, what);
        if (part_read(r, !k ? -1 : k->read ? k->read(r, k, (char *)to + k->at) : 0))
            return -1;
    }
    r->n = map;
    return 0;
}
