/* config_reader.c - reads JSON objects with range checks (config_impl.h).
 *
 * Python's json module writes Infinity and NaN, which are not JSON. They are quoted before parsing, and
 * reader_number() understands them. */
#include "model/config_impl.h"

#include "base/buf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON with Python's constants ---------------------------------------------------------------------- */

/* Copies JSON text and quotes bare Infinity, -Infinity and NaN. Returns -1 if it is too long. */
static int quote_infinities(const char *s, struct buf *out)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    bool inside = false;
    for (; *s; s++) {
        const char *word = NULL;
        if (inside && *s == '\\' && s[1]) {
            buf_putc(out, *s++);
        } else if (*s == '"') {
            inside = !inside;
        } else if (!inside) {
            for (size_t i = 0; i < sizeof words / sizeof *words && !word; i++)
                word = text_starts(s, words[i]) ? words[i] : NULL;
        }
        if (word) {
            buf_printf(out, "\"%s\"", word);
            s += strlen(word) - 1;
        } else {
            buf_putc(out, *s);
        }
    }
    return out->full ? -1 : 0;
}

json_t *reader_parse(const char *text, const char *file, struct err *e)
{
    autobuf quoted = buf_of(2 * (size_t)CONFIG_TEXT_MAX);
    json_t *root = NULL;
    json_error_t why;
    if (quote_infinities(text, &quoted))
        err_set(e, ERR_MODEL, "%s: too long", file);
    else if (!(root = json_loads(quoted.data, JSON_REJECT_DUPLICATES, &why)))
        err_set(e, ERR_MODEL, "%s: line %d: %s", file, why.line, why.text);
    else if (!json_is_object(root)) {
        err_set(e, ERR_MODEL, "%s: not a JSON object", file);
        json_decref(root);
        root = NULL;
    }
    return root;
}

/* ---- reader -------------------------------------------------------------------------------------------- */

static bool reader_failed(const struct reader *r)
{
    return r->e->kind != ERR_NONE;
}

void reader_refuse(struct reader *r, const char *fmt, ...)
{
    if (reader_failed(r))
        return;
    va_list ap;
    va_start(ap, fmt);
    char text[ERR_TEXT];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(r->e, ERR_MODEL, "%s: %s", r->where, text);
}

/* Returns the value of the first spelling that is present and not null, or NULL. */
json_t *reader_get(const struct reader *r, const char *names)
{
    char name[64];
    for (const char *p = names;; p++) {
        size_t n = strcspn(p, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        json_t *v = json_object_get(r->object, name);
        if (v && !json_is_null(v))
            return v;
        p += n;
        if (!*p)
            return NULL;
    }
}

double reader_number(const json_t *v)
{
    if (json_is_number(v))
        return json_number_value(v);
    if (json_is_object(v))
        v = json_object_get(v, "__float__");
    const char *s = json_string_value(v);
    if (!s)
        return NAN;
    char *end;
    double x = strtod(s, &end);
    return *end || end == s ? NAN : x;
}

int reader_int(struct reader *r, const char *names, int lo, int hi, int absent)
{
    const json_t *v = reader_get(r, names);
    if (!v && absent >= 0)
        return absent;
    if (!v)
        reader_refuse(r, "'%s' is missing", names);
    double x = v ? reader_number(v) : lo;
    if (!(x >= lo && x <= hi) || x != floor(x))
        reader_refuse(r, "'%s' is not a whole number from %d to %d", names, lo, hi);
    return reader_failed(r) ? lo : (int)x;
}

float reader_float(struct reader *r, const char *names, double lo, double hi, double absent)
{
    const json_t *v = reader_get(r, names);
    double x = v ? reader_number(v) : absent;
    if (!(x >= lo && x <= hi)) {
        reader_refuse(r, "'%s' is not a number from %g to %g", names, lo, hi);
        return (float)absent;
    }
    return (float)x;
}

bool reader_bool(struct reader *r, const char *names, bool absent)
{
    const json_t *v = reader_get(r, names);
    if (v && !json_is_boolean(v))
        reader_refuse(r, "'%s' is neither true nor false", names);
    return v ? json_is_true(v) : absent;
}

void reader_only_text(struct reader *r, const char *names, const char *known)
{
    const json_t *v = reader_get(r, names);
    const char *s = json_string_value(v);
    if (v && (!s || strcmp(s, known)))
        reader_refuse(r, "'%s' is '%s'; only '%s' is implemented", names, s ? s : "not a string", known);
}

void reader_only_bool(struct reader *r, const char *names, bool known)
{
    if (reader_bool(r, names, known) != known)
        reader_refuse(r, "'%s' is %s, which is not implemented", names, known ? "false" : "true");
}

struct reader reader_inside(struct reader *r, const char *names)
{
    const json_t *v = reader_get(r, names);
    if (v && !json_is_object(v))
        reader_refuse(r, "'%s' is not an object", names);
    struct reader in = {.object = json_is_object(v) ? v : NULL, .e = r->e};
    snprintf(in.where, sizeof in.where, "%.60s: %.*s", r->where, (int)(strcspn(names, "|") & 31), names);
    return in;
}
