/* methods.c - methods of strings, dicts, lists and loops, and global functions (jinja_impl.h). */
#include "jinja/jinja_impl.h"

#include "base/utf8.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(name, *names))
            return true;
    return false;
}

/* ---- texts -------------------------------------------------------------------------------------------- */

/* Returns whether the string begins (or ends, if at_end) with the argument or with an element of a tuple. */
static bool affixed(struct jx *x, struct jinja_value v, struct jinja_value with, bool at_end)
{
    if (with.kind == JINJA_TUPLE) {
        for (int i = 0; i < with.l->n; i++)
            if (affixed(x, v, with.l->items[i], at_end))
                return true;
        return false;
    }
    if (with.kind != JINJA_STRING)
        jx_fail(x, "line %d: startswith and endswith need a string", x->line);
    jx_spend(x, with.s->len);
    return at_end ? jx_text_ends(v.s, with.s) : jx_text_begins(v.s, with.s);
}

static struct jinja_value find_in(struct jx *x, struct jinja_value v, const struct arguments *a, bool last)
{
    struct jinja_value what = argument(a, 0, NULL);
    if (what.kind != JINJA_STRING)
        jx_fail(x, "line %d: find needs a string", x->line);
    jx_spend(x, v.s->len);
    int64_t at = jx_text_find(v.s, what.s, 0);
    for (int64_t next = at; last && next >= 0; next = jx_text_find(v.s, what.s, (size_t)next + 1)) {
        at = next;
        jx_spend(x, 0);
    }
    int64_t chars = 0;
    for (int64_t i = 0; i < at; i++)
        chars += ((unsigned char)v.s->data[i] & 0xc0) != 0x80;
    return value_int(at < 0 ? -1 : chars);
}

static int64_t count_in(struct jx *x, struct jinja_value v, struct jinja_value what)
{
    int64_t n = 0, at;
    if (what.kind != JINJA_STRING || !what.s->len)
        jx_fail(x, "line %d: count needs a string that is not empty", x->line);
    jx_spend(x, v.s->len);
    for (size_t from = 0; (at = jx_text_find(v.s, what.s, from)) >= 0; from = (size_t)at + what.s->len)
        n++;
    return n;
}

static struct jinja_value fill_zeros(struct jx *x, struct jinja_value v, int64_t width)
{
    struct output o = {0};
    bool sign = v.s->len && strchr("+-", v.s->data[0]);
    spell(x, &o, string_part(x, v.s, 0, sign));
    for (int64_t n = (int64_t)utf8_count(v.s->data, v.s->len); n < width; n++)
        out_puts(x, &o, "0");
    spell(x, &o, string_part(x, v.s, sign, v.s->len - sign));
    return out_value(x, &o);
}

static struct jinja_value partition(struct jx *x, struct jinja_value v, struct jinja_value by)
{
    struct jinja_value out = value_tuple(x->arena);
    if (by.kind != JINJA_STRING || !by.s->len)
        jx_fail(x, "line %d: partition needs a string that is not empty", x->line);
    int64_t at = jx_text_find(v.s, by.s, 0);
    size_t n = at < 0 ? v.s->len : (size_t)at, step = at < 0 ? 0 : by.s->len;
    jinja_add(x->arena, out, string_part(x, v.s, 0, n));
    jinja_add(x->arena, out, string_part(x, v.s, n, step));
    jinja_add(x->arena, out, string_part(x, v.s, n + step, v.s->len - n - step));
    return out;
}

static struct jinja_value cut_affix(struct jx *x, struct jinja_value v, struct jinja_value affix, bool at_end)
{
    if (affix.kind != JINJA_STRING)
        jx_fail(x, "line %d: removeprefix and removesuffix need a string", x->line);
    if (!affixed(x, v, affix, at_end))
        return v;
    return string_part(x, v.s, at_end ? 0 : affix.s->len, v.s->len - affix.s->len);
}

/* Formats with str.format(): {} and {0}. Other replacement fields are not supported. */
static struct jinja_value format_braces(struct jx *x, struct jinja_value v, const struct arguments *a)
{
    struct output o = {0};
    int next = 0;
    bool numbered = false;
    for (size_t i = 0; i < v.s->len; i++) {
        const char *p = v.s->data + i;
        size_t left = v.s->len - i, digits = 0;
        if (left > 1 && (*p == '{' || *p == '}') && p[1] == *p) {
            spell(x, &o, string_part(x, v.s, i++, 1));
            continue;
        }
        if (*p == '}')
            jx_fail(x, "line %d: format: a single '}'", x->line);
        if (*p != '{') {
            spell(x, &o, string_part(x, v.s, i, 1));
            continue;
        }
        while (1 + digits < left && p[1 + digits] >= '0' && p[1 + digits] <= '9' && digits < 4)
            digits++;
        if (1 + digits >= left || p[1 + digits] != '}')
            jx_fail(x, "line %d: format: only {} and {0} are supported", x->line);
        numbered = numbered || digits;
        struct jinja_value one = argument(a, digits ? atoi(p + 1) : next++, NULL);
        if (numbered && next)
            jx_fail(x, "line %d: format: {} and {0} cannot be mixed", x->line);
        if (!given(one))
            jx_fail(x, "line %d: format: not enough arguments", x->line);
        spell(x, &o, one);
        i += digits + 1;
    }
    return out_value(x, &o);
}

static struct jinja_value join_texts(struct jx *x, struct jinja_value items, struct jinja_value between)
{
    struct jinja_value list = iterate(x, items);
    for (int i = 0; i < list.l->n; i++)
        if (list.l->items[i].kind != JINJA_STRING)
            jx_fail(x, "line %d: join: item %d is not a string", x->line, i + 1);
    return jx_text_join(x, list, between);
}

static const char *const text_methods[] = {
    "strip",        "lstrip",       "rstrip",  "split",      "rsplit",
    "startswith",   "endswith",     "upper",   "lower",      "title",
    "replace",      "find",         "rfind",   "index",      "count",
    "join",         "format",       "isdigit", "isnumeric",  "isdecimal",
    "isalpha",      "isalnum",      "isspace", "isupper",    "islower",
    "removeprefix", "removesuffix", "zfill",   "splitlines", "capitalize",
    "swapcase",     "partition",    NULL};

static struct jinja_value edit_text(struct jx *x, struct jinja_value v, const char *name,
                                    const struct arguments *a)
{
    struct jinja_value first = argument(a, 0, NULL);
    if (strstr(name, "strip"))
        return jx_text_strip(x, v, first, *name != 'r', *name != 'l');
    if (!strcmp(name, "split") || !strcmp(name, "rsplit"))
        return jx_text_split(x, v, argument(a, 0, "sep"), argument_int(x, a, 1, "maxsplit", -1),
                             *name == 'r');
    if (!strcmp(name, "replace")) {
        struct jinja_value to = argument(a, 1, "new");
        if (first.kind != JINJA_STRING || to.kind != JINJA_STRING)
            jx_fail(x, "line %d: replace needs two strings", x->line);
        return jx_text_replace(x, v, first.s, to.s, argument_int(x, a, 2, "count", -1));
    }
    if (!strcmp(name, "join"))
        return join_texts(x, first, v);
    if (!strcmp(name, "format"))
        return format_braces(x, v, a);
    if (!strcmp(name, "removeprefix") || !strcmp(name, "removesuffix"))
        return cut_affix(x, v, first, name[6] == 's');
    if (!strcmp(name, "zfill"))
        return fill_zeros(x, v, argument_int(x, a, 0, "width", 0));
    if (!strcmp(name, "splitlines"))
        return jx_text_lines(x, v, value_true(argument(a, 0, "keepends")));
    if (!strcmp(name, "partition"))
        return partition(x, v, first);
    return jx_text_case(x, v, name);
}

static struct jinja_value text_method(struct jx *x, struct jinja_value v, const char *name,
                                      const struct arguments *a)
{
    struct jinja_value first = argument(a, 0, NULL);
    if (a->n > 1 && (!strcmp(name, "startswith") || !strcmp(name, "endswith") || strstr(name, "find") ||
                     !strcmp(name, "index") || !strcmp(name, "count")))
        jx_fail(x, "line %d: %s: positions are not supported", x->line, name);
    static const char *const bare[] = {"upper", "lower", "title", "capitalize", "swapcase", NULL};
    if (a->n > (is_one_of(name, bare) || !strncmp(name, "is", 2) ? 0
                : strstr(name, "split") && *name != 'p'          ? 2
                : !strcmp(name, "replace")                       ? 3
                : !strcmp(name, "format")                        ? a->n
                                                                 : 1))
        jx_fail(x, "line %d: %s has too many arguments", x->line, name);
    if (!strcmp(name, "startswith") || !strcmp(name, "endswith"))
        return jinja_bool(affixed(x, v, first, *name == 'e'));
    if (!strcmp(name, "find") || !strcmp(name, "rfind"))
        return find_in(x, v, a, *name == 'r');
    if (!strcmp(name, "index")) {
        struct jinja_value at = find_in(x, v, a, false);
        if (at.i < 0)
            jx_fail(x, "line %d: index: the string was not found", x->line);
        return at;
    }
    if (!strcmp(name, "count"))
        return value_int(count_in(x, v, first));
    if (v.s->markup && (!strcmp(name, "replace") || !strcmp(name, "join") || !strcmp(name, "format")))
        jx_fail(x, "line %d: %s on a string marked as safe is not supported", x->line, name);
    if (!strncmp(name, "is", 2))
        return jinja_bool(jx_text_all(x, v, name));
    return edit_text(x, v, name, a);
}

/* ---- dicts, lists, loops ------------------------------------------------------------------------------ */

static const char *const dict_methods[] = {"items", "keys", "values", "get", "copy", NULL};

static struct jinja_value dict_method(struct jx *x, struct jinja_value v, const char *name,
                                      const struct arguments *a)
{
    struct jinja_value out = jinja_list(x->arena), first = argument(a, 0, NULL);
    if (!strcmp(name, "get")) {
        if (first.kind == JINJA_LIST || first.kind == JINJA_DICT || !given(first))
            jx_fail(x, "line %d: get needs a key", x->line);
        jx_spend(x, 8 * (size_t)v.d->n);
        const struct jinja_value *found = dict_find(v.d, first);
        return found ? *found : argument_or(a, 1, NULL, value_none());
    }
    if (!strcmp(name, "copy"))
        return v;
    if (!strcmp(name, "items"))
        run_filter(x, "items", v, a, &out);
    for (int i = 0; strcmp(name, "items") != 0 && i < v.d->n; i++)
        jinja_add(x->arena, out, *name == 'k' ? v.d->keys[i] : v.d->values[i]);
    return value_form(out, LIST_VIEW);
}

static struct jinja_value list_method(struct jx *x, struct jinja_value v, const char *name,
                                      const struct arguments *a)
{
    int64_t n = 0;
    struct jinja_value what = argument(a, 0, NULL);
    for (int i = 0; i < v.l->n; i++) {
        jx_spend(x, 0);
        bool same = value_equal(x, v.l->items[i], what);
        if (same && *name == 'i')
            return value_int(i);
        n += same;
    }
    if (*name == 'i')
        jx_fail(x, "line %d: index: the value is not in the list", x->line);
    return value_int(n);
}

static struct jinja_value loop_method(struct jx *x, struct loop *l, const char *name,
                                      const struct arguments *a)
{
    if (!strcmp(name, "cycle")) {
        if (a->n > 0)
            return a->v[l->index % a->n];
        jx_fail(x, "line %d: loop.cycle needs values", x->line);
    }
    struct jinja_value now = value_tuple(x->arena);
    for (int i = 0; i < a->n; i++)
        jinja_add(x->arena, now, a->v[i]);
    bool changed = !value_equal(x, now, l->changed);
    l->changed = now;
    return jinja_bool(changed);
}

bool has_method(struct jinja_value of, const char *name)
{
    static const char *const list_methods[] = {"count", "index", NULL};
    if (of.kind == JINJA_STRING)
        return is_one_of(name, text_methods);
    if (of.kind == JINJA_DICT)
        return is_one_of(name, dict_methods);
    if ((of.kind == JINJA_LIST && of.l->form <= LIST_RANGE) || of.kind == JINJA_TUPLE)
        return is_one_of(name, list_methods);
    return false;
}

struct jinja_value call_method(struct jx *x, struct jinja_value self, const char *name,
                               const struct arguments *a)
{
    if (self.kind == JINJA_STRING)
        return text_method(x, self, name, a);
    if (self.kind == JINJA_LOOP)
        return loop_method(x, (struct loop *)(uintptr_t)self.p, name, a);
    return self.kind == JINJA_DICT ? dict_method(x, self, name, a) : list_method(x, self, name, a);
}

/* ---- functions ---------------------------------------------------------------------------------------- */

bool is_function(const char *name)
{
    static const char *const names[] = {"raise_exception", "namespace", "range", "dict",
                                        "strftime_now",    NULL};
    return is_one_of(name, names);
}

static struct jinja_value make_range(struct jx *x, const struct arguments *a)
{
    enum { MAX = 100000 }; /* limit of Jinja's sandbox */
    int64_t from = a->n > 1 ? argument_int(x, a, 0, NULL, 0) : 0, to = argument_int(x, a, a->n > 1, NULL, 0);
    int64_t step = argument_int(x, a, 2, NULL, 1);
    struct jinja_value out = jinja_list(x->arena);
    if (!step)
        jx_fail(x, "line %d: range: the step is zero", x->line);
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
        if (out.l->n == MAX)
            jx_fail(x, "line %d: range: more than %d numbers", x->line, MAX);
        jinja_add(x->arena, out, value_int(i));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return value_form(out, LIST_RANGE);
}

static struct jinja_value time_now(struct jx *x, const char *format)
{
    char text[256] = "";
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    if (!strftime(text, sizeof text, format, &tm)) /* NOLINT: the template's format */
        text[0] = 0;
    return value_of(x->arena, text);
}

struct jinja_value call_function(struct jx *x, const char *name, const struct arguments *a)
{
    struct jinja_value first = argument(a, 0, NULL);
    if (!strcmp(name, "raise_exception")) {
        err_set(x->e, ERR_USAGE, "the chat template refuses the conversation: %.300s",
                value_chars(x, as_string(x, first)));
        longjmp(x->stop, 1);
    }
    if (!strcmp(name, "range"))
        return make_range(x, a);
    if (!strcmp(name, "strftime_now"))
        return time_now(x, value_chars(x, first));
    struct jinja_value out = jinja_dict(x->arena); /* both dict() and namespace() */
    if (a->n && first.kind != JINJA_DICT)
        jx_fail(x, "line %d: %s needs a dict or keywords", x->line, name);
    for (int i = 0; a->n && i < first.d->n; i++)
        dict_put(x->arena, out.d, first.d->keys[i], first.d->values[i]);
    for (int i = 0; i < a->n_named && *name == 'n'; i++)
        if (*a->names[i] == '_')
            jx_fail(x, "line %d: a namespace cannot have '%.40s'", x->line, a->names[i]);
    for (int i = 0; i < a->n_named; i++)
        jinja_set(x->arena, out, a->names[i], a->named[i]);
    if (*name == 'n')
        out.kind = JINJA_NAMESPACE;
    return out;
}
