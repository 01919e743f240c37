/* json_schema_pattern.c - compiles `pattern`, an ECMAScript regular expression, into a grammar expression
 * over the characters of a JSON string (json_schema.h).
 *
 * Supported: alternatives, groups, * + ? {n} {n,} {n,m} and their lazy forms, ^ and $ at the ends, . [...] \d
 * \w \s \D \W \S, escapes.
 *
 * Not supported: look-around, back references, \b, \p, characters above ASCII. A class contains all or none
 * of the characters above ASCII. Where engines differ (letters above ASCII in \w), the expression has only
 * texts that all of them match. */
#include "serve/json_schema_impl.h"

#include <stdlib.h>
#include <string.h>

enum { NESTED = 20, BRANCHES = 64, ITEMS = 256, KIND = -2 };

struct chars {
    uint64_t ascii[2];
    bool above; /* characters above ASCII */
};

struct parsing {
    struct gx *x;
    const char *at;
    int depth;
};

/* ---- characters ---------------------------------------------------------------------------------------- */

static void add(struct chars *c, int from, int to)
{
    for (int i = from; i <= to; i++)
        c->ascii[i / 64] |= 1ull << (i % 64);
}

static bool has(const struct chars *c, int i)
{
    return c->ascii[i / 64] >> (i % 64) & 1;
}

static struct chars inverse(struct chars c)
{
    return (struct chars){{~c.ascii[0], ~c.ascii[1]}, !c.above};
}

static void add_all(struct chars *c, struct chars more)
{
    c->ascii[0] |= more.ascii[0];
    c->ascii[1] |= more.ascii[1];
    c->above = c->above || more.above;
}

/* Returns one character of the class in JSON encoding; IMPOSSIBLE if the class has no character that can be
 * written. */
static gx_node node_of(struct gx *x, const struct chars *c)
{
    static const struct {
        char is;
        const char *spelled;
    } escapes[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\t', "\\t"}};
    char ranges[4 * 128 + 1] = "", all[96];
    gx_node parts[6];
    int n = 0;
    for (int i = ' '; i < 127; i++)
        if (i != '"' && i != '\\' && has(c, i))
            snprintf(ranges + strlen(ranges), 5, "\\x%02x", (unsigned)i);
    if (*ranges)
        parts[n++] = gx_set(x, ranges);
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
        if (has(c, escapes[i].is))
            parts[n++] = gx_lit(x, escapes[i].spelled);
    for (int i = 0; i < 95; i++)
        all[i] = (char)(' ' + i);
    all[95] = 0;
    if (c->above)
        parts[n++] = gx_utf8(x, all, 1, 1);
    return n ? gx_alt(x, n, parts) : IMPOSSIBLE;
}

/* Reads \d \w \s and their inverses. */
static bool read_kind(char letter, struct chars *c)
{
    *c = (struct chars){{0, 0}, false};
    switch (letter | 32) {
    case 'w':
        add(c, 'a', 'z');
        add(c, 'A', 'Z');
        add(c, '_', '_');
        add(c, '0', '9');
        break;
    case 'd':
        add(c, '0', '9');
        break;
    case 's':
        add(c, ' ', ' ');
        add(c, '\t', '\r');
        break;
    default:
        return false;
    }
    if (!(letter & 32))
        *c = inverse(*c);
    c->above = false; /* engines differ for letters above ASCII */
    return true;
}

/* Reads the character of an escape after its backslash; -1: another kind of escape. */
static int read_escape(struct parsing *p)
{
    static const char from[] = "ntrfv", to[] = "\n\t\r\f\v";
    const char *named = *p->at ? strchr(from, *p->at) : NULL;
    int digits = *p->at == 'x' ? 2 : *p->at == 'u' ? 4 : 0;
    if (digits) {
        char text[5] = "", *end;
        strncpy(text, p->at + 1, (size_t)digits);
        long v = strtol(text, &end, 16);
        p->at += strlen(text) == (size_t)digits ? 1 + digits : 0;
        return *end || v >= 128 || strlen(text) != (size_t)digits ? -1 : (int)v;
    }
    int c = named ? to[named - from] : *p->at;
    if (!named && (c <= 0 || strchr("bBpPkc0123456789", c) || (c | 32) == 'w' || (c | 32) == 'd' ||
                   (c | 32) == 's' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        return -1;
    p->at++;
    return c;
}

/* Reads a member of [...]: a character, or a class such as \d, which is added to *set (KIND). Returns -1 if
 * it is not supported. */
static int read_member(struct parsing *p, struct chars *set)
{
    struct chars kind;
    if (*p->at != '\\')
        return *p->at > 0 ? *p->at++ : -1;
    p->at++;
    if (read_kind(*p->at, &kind)) {
        p->at++;
        add_all(set, kind);
        return KIND;
    }
    if (*p->at == 'b') /* a backspace, which cannot be written */
        return -1;
    return read_escape(p);
}

/* Reads a class after its opening bracket. */
static bool read_class(struct parsing *p, struct chars *set)
{
    bool negated = *p->at == '^', kinds = false;
    *set = (struct chars){{0, 0}, false};
    p->at += negated;
    while (*p->at && *p->at != ']') {
        int from = read_member(p, set), to = from;
        if (from >= 0 && p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
            p->at++;
            to = read_member(p, set);
        }
        if (from == -1 || to == -1 || to < from)
            return false;
        kinds = kinds || from == KIND;
        if (from >= 0)
            add(set, from, to);
    }
    if (*p->at++ != ']')
        return false;
    *set = negated ? inverse(*set) : *set;
    set->above = set->above && !kinds;
    return true;
}

/* ---- the expression ------------------------------------------------------------------------------------ */

static gx_node read_alternatives(struct parsing *p, bool top);

/* Reads a group, a class or a character; IMPOSSIBLE: not supported. */
static gx_node read_atom(struct parsing *p)
{
    struct chars c = {{0, 0}, false};
    char first = *p->at++;
    if (first == '(') {
        if (*p->at == '?' && strncmp(p->at, "?:", 2) != 0)
            return IMPOSSIBLE;
        p->at += *p->at == '?' ? 2 : 0;
        gx_node inside = p->depth++ < NESTED ? read_alternatives(p, false) : IMPOSSIBLE;
        p->depth--;
        return inside < 0 || *p->at++ != ')' ? IMPOSSIBLE : inside;
    }
    if (first == '[') {
        if (!read_class(p, &c))
            return IMPOSSIBLE;
    } else if (first == '.') {
        add(&c, '\n', '\n');
        add(&c, '\r', '\r');
        c = inverse(c);
    } else if (first == '\\') {
        bool kind = read_kind(*p->at, &c);
        int one = kind ? 0 : read_escape(p);
        p->at += kind;
        if (one < 0)
            return IMPOSSIBLE;
        if (!kind)
            add(&c, one, one);
    } else if (first <= 0 || strchr("*+?{}^$|)]", first)) {
        return IMPOSSIBLE;
    } else {
        add(&c, first, first);
    }
    return node_of(p->x, &c);
}

/* Reads {n}, {n,} or {n,m}. Returns false if it is malformed or above 256. */
static bool read_counts(struct parsing *p, int *min, int *max)
{
    char *end;
    if (p->at[0] < '0' || p->at[0] > '9')
        return false;
    long a = strtol(p->at, &end, 10), b = a;
    if (*end == ',') {
        p->at = end + 1;
        b = *p->at >= '0' && *p->at <= '9' ? strtol(p->at, &end, 10) : -1;
        end = b < 0 ? (char *)(uintptr_t)p->at : end;
    }
    p->at = end + 1;
    *min = (int)a;
    *max = (int)b;
    return *end == '}' && a <= GX_EXACT && b <= GX_EXACT && (b < 0 || b >= a);
}

static gx_node read_repeated(struct parsing *p)
{
    gx_node atom = read_atom(p);
    int min = *p->at == '+', max = *p->at == '?' ? 1 : -1;
    if (atom < 0 || !*p->at || !strchr("*+?{", *p->at))
        return atom;
    if (*p->at++ == '{' && !read_counts(p, &min, &max))
        return IMPOSSIBLE;
    p->at += *p->at == '?'; /* lazy: matches the same texts */
    return *p->at && strchr("*+{", *p->at) ? IMPOSSIBLE : gx_repeat(p->x, atom, min, max);
}

/* Returns an expression for any text. */
static gx_node anything(struct gx *x)
{
    struct chars all = {{~0ull, ~0ull}, true};
    return gx_repeat(x, node_of(x, &all), 0, -1);
}

/* Reads one branch. At the top level it has its own anchors; without an anchor any text may precede or
 * follow. */
static gx_node read_branch(struct parsing *p, bool top)
{
    gx_node parts[ITEMS + 2];
    int n = 0;
    bool from = top && *p->at == '^', to = false;
    p->at += from;
    if (top && !from)
        parts[n++] = anything(p->x);
    while (*p->at && *p->at != '|' && *p->at != ')') {
        if (top && p->at[0] == '$' && (!p->at[1] || p->at[1] == '|')) {
            to = true;
            p->at++;
            break;
        }
        gx_node node = n < ITEMS ? read_repeated(p) : IMPOSSIBLE;
        if (node < 0)
            return IMPOSSIBLE;
        parts[n++] = node;
    }
    if (top && !to)
        parts[n++] = anything(p->x);
    return gx_seq(p->x, n, parts);
}

static gx_node read_alternatives(struct parsing *p, bool top)
{
    gx_node parts[BRANCHES];
    int n = 0;
    do {
        if (n == BRANCHES || (parts[n] = read_branch(p, top)) < 0)
            return IMPOSSIBLE;
        n++;
    } while (*p->at == '|' && *p->at++);
    return gx_alt(p->x, n, parts);
}

gx_node schema_pattern(struct gx *x, const char *pattern)
{
    struct parsing p = {.x = x, .at = pattern};
    gx_node node = strlen(pattern) <= 1000 ? read_alternatives(&p, true) : IMPOSSIBLE;
    return node < 0 || *p.at ? IMPOSSIBLE : node;
}
