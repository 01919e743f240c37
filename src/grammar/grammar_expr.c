/* grammar_expr.c - gx_ combinators, which build grammar expressions as rows of a table (grammar.h).
 *
 * A node is an index. Texts and children are slices of the builder's pools; each byte set is stored once.
 * Misuse (an empty alternative, an invalid range) ends in bug(). Size does not, because schemas of clients
 * are converted to expressions: beyond a limit the builder is full. */
#include "grammar/grammar_impl.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_EXPRS = 1 << 20, MAX_KIDS = 1 << 22, MAX_CHARS = 1 << 20, MAX_SETS = 1024 };

void *grammar_grow(void *rows, int64_t n, int *cap, int more, unsigned long size)
{
    if (n + more <= *cap)
        return rows;
    *cap = (int)(n + more) * 2 + 16;
    return xrealloc(rows, (unsigned long)*cap, size);
}

struct gx *gx_new(void)
{
    return gx_new_within(NULL);
}

struct gx *gx_new_within(struct effort *w)
{
    struct gx *x = xcalloc(1, sizeof *x);
    effort_begin(w);
    x->effort = w;
    return x;
}

void gx_free(struct gx *x)
{
    if (!x)
        return;
    free(x->exprs);
    free(x->sets);
    free(x->chars);
    free(x->kids);
    free(x);
}

struct effort *gx_effort(const struct gx *x)
{
    return x->effort;
}

bool gx_failed(struct gx *x, struct err *e)
{
    if (effort_over(x->effort, 1)) {
        x->full = true;
        effort_error(x->effort, "the grammar of the reply", e);
    } else if (x->full) {
        err_set(e, ERR_USAGE, "the grammar is too large: more than %d parts, or %d kinds of characters",
                MAX_EXPRS, MAX_SETS);
    }
    return x->full;
}

static gx_node add_expr(struct gx *x, struct gx_expr expr)
{
    x->full = x->full || x->nexprs == MAX_EXPRS;
    if (x->full)
        return 0;
    x->exprs = grammar_grow(x->exprs, x->nexprs, &x->cap_exprs, 1, sizeof *x->exprs);
    x->exprs[x->nexprs] = expr;
    return x->nexprs++;
}

static gx_node add_kids(struct gx *x, enum gx_op op, int n, const gx_node *parts)
{
    int first = x->nkids;
    x->full = x->full || n > MAX_KIDS - x->nkids;
    if (x->full)
        return 0;
    x->kids = grammar_grow(x->kids, x->nkids, &x->cap_kids, n, sizeof *x->kids);
    if (n)
        memcpy(x->kids + first, parts, (size_t)n * sizeof *parts);
    x->nkids += n;
    return add_expr(x, (struct gx_expr){.op = op, .first = first, .n = n});
}

static gx_node add_set(struct gx *x, const struct byte_set *set)
{
    int i = 0;
    if (x->full)
        return 0;
    effort_over(x->effort, (unsigned)x->nsets / 4);
    while (i < x->nsets && memcmp(&x->sets[i], set, sizeof *set) != 0)
        i++;
    x->full = i == MAX_SETS;
    if (i == x->nsets && !x->full) {
        x->sets = grammar_grow(x->sets, x->nsets, &x->cap_sets, 1, sizeof *x->sets);
        x->sets[x->nsets++] = *set;
    }
    return add_expr(x, (struct gx_expr){.op = GX_OP_SET, .first = i});
}

static gx_node byte_range(struct gx *x, unsigned lo, unsigned hi)
{
    struct byte_set set = {0};
    for (unsigned b = lo; b <= hi; b++)
        byte_set_add(&set, b);
    return add_set(x, &set);
}

gx_node gx_lit(struct gx *x, const char *text)
{
    size_t len = strlen(text);
    int n = (int)len;
    x->full = x->full || len > MAX_KIDS;
    if (x->full)
        return 0;
    gx_node *bytes = xmalloc((unsigned long)n + 1, sizeof *bytes);
    for (int i = 0; i < n; i++)
        bytes[i] = byte_range(x, (unsigned char)text[i], (unsigned char)text[i]);
    gx_node node = add_kids(x, GX_OP_SEQ, n, bytes);
    free(bytes);
    return node;
}

gx_node gx_token(struct gx *x, const char *spelling)
{
    int n = (int)strlen(spelling) + 1, first = x->nchars;
    x->full = x->full || n > MAX_CHARS - x->nchars;
    if (x->full)
        return 0;
    x->chars = grammar_grow(x->chars, x->nchars, &x->cap_chars, n, 1);
    memcpy(x->chars + first, spelling, (size_t)n);
    x->nchars += n;
    return add_expr(x, (struct gx_expr){.op = GX_OP_TOKEN, .first = first});
}

gx_node gx_seq(struct gx *x, int n, const gx_node *parts)
{
    return add_kids(x, GX_OP_SEQ, n, parts);
}

gx_node gx_alt(struct gx *x, int n, const gx_node *parts)
{
    if (n < 1)
        bug("a grammar alternative without parts");
    return add_kids(x, GX_OP_ALT, n, parts);
}

gx_node gx_repeat(struct gx *x, gx_node part, int min, int max)
{
    if (min < 0 || min > GX_EXACT || (max >= 0 && max < min))
        bug("a grammar repetition of %d..%d", min, max);
    return add_expr(
        x, (struct gx_expr){.op = GX_OP_REPEAT, .first = part, .min = min, .max = max > GX_EXACT ? -1 : max});
}

/* ---- sets -------------------------------------------------------------------------------------- */

static unsigned hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    bug("a bad escape in a grammar set");
}

/* Reads one byte of a range list, resolving escapes; advances *p. */
static unsigned set_byte(const char **p)
{
    const char *s = *p;
    if (*s != '\\') {
        *p = s + 1;
        return (unsigned char)*s;
    }
    if (s[1] == 'x') {
        unsigned high = hex_digit(s[2]);
        *p = s + 4;
        return high * 16 + hex_digit(s[3]);
    }
    if (!s[1])
        bug("a grammar set ends in a backslash");
    *p = s + 2;
    return (unsigned char)s[1];
}

gx_node gx_set(struct gx *x, const char *ranges)
{
    struct byte_set set = {0};
    if (!*ranges)
        bug("an empty grammar set");
    for (const char *p = ranges; *p;) {
        unsigned lo = set_byte(&p), hi = lo;
        if (*p == '-' && p[1]) {
            p++;
            hi = set_byte(&p);
        }
        for (unsigned b = lo; b <= hi; b++)
            byte_set_add(&set, b);
    }
    return add_set(x, &set);
}

/* ---- numbers ----------------------------------------------------------------------------------- */

static gx_node digits(struct gx *x, int lo, int hi)
{
    return byte_range(x, '0' + (unsigned)lo, '0' + (unsigned)hi);
}

/* Returns all numbers of exactly n digits from lo to hi, including leading zeros. The first digit is lo's
 * (the rest goes from lo's rest to 99..9), or one in between (the rest is free), or hi's. */
static gx_node int_of_width(struct gx *x, int lo, int hi, int n)
{
    if (n == 1)
        return digits(x, lo, hi);
    int unit = 1;
    for (int i = 1; i < n; i++)
        unit *= 10;
    int a = lo / unit, b = hi / unit;
    if (a == b)
        return GX_SEQ(x, digits(x, a, a), int_of_width(x, lo - a * unit, hi - a * unit, n - 1));
    gx_node parts[3];
    int k = 0;
    if (lo % unit) {
        parts[k++] = GX_SEQ(x, digits(x, a, a), int_of_width(x, lo - a * unit, unit - 1, n - 1));
        a++;
    }
    gx_node last = -1;
    if (hi % unit != unit - 1) {
        last = GX_SEQ(x, digits(x, b, b), int_of_width(x, 0, hi - b * unit, n - 1));
        b--;
    }
    if (a <= b)
        parts[k++] = GX_SEQ(x, digits(x, a, b), gx_repeat(x, digits(x, 0, 9), n - 1, n - 1));
    if (last >= 0)
        parts[k++] = last;
    return gx_alt(x, k, parts);
}

gx_node gx_int(struct gx *x, int lo, int hi)
{
    gx_node parts[12];
    int k = 0;
    if (lo > hi || lo < -999999999 || hi > 999999999)
        bug("a grammar number of %d..%d", lo, hi);
    if (lo < 0)
        parts[k++] = GX_SEQ(x, gx_lit(x, "-"), gx_int(x, hi < 0 ? -hi : 1, -lo));
    int from = lo < 0 ? 0 : lo;
    for (int n = 1, top = 9, least = 0; n <= 9 && from <= hi; n++) {
        if (from <= top && hi >= least)
            parts[k++] = int_of_width(x, from > least ? from : least, hi < top ? hi : top, n);
        least = top + 1;
        top = n < 9 ? top * 10 + 9 : top;
    }
    return gx_alt(x, k, parts);
}

/* ---- texts ------------------------------------------------------------------------------------- */

/* Returns one printable scalar: ASCII without `except`, or a well-formed longer sequence (no overlong
 * forms, surrogates, C1 controls, nothing above U+10FFFF). The tails are shared. */
static gx_node printable(struct gx *x, const char *except)
{
    struct byte_set ascii = {0};
    for (unsigned b = 0x20; b < 0x7f; b++)
        if (!strchr(except, (int)b))
            byte_set_add(&ascii, b);
    gx_node tail = byte_range(x, 0x80, 0xbf);
    gx_node four = GX_ALT(x, GX_SEQ(x, byte_range(x, 0xf0, 0xf0), byte_range(x, 0x90, 0xbf)),
                          GX_SEQ(x, byte_range(x, 0xf1, 0xf3), tail),
                          GX_SEQ(x, byte_range(x, 0xf4, 0xf4), byte_range(x, 0x80, 0x8f)));
    gx_node three =
        GX_ALT(x, GX_SEQ(x, byte_range(x, 0xe0, 0xe0), byte_range(x, 0xa0, 0xbf)),
               GX_SEQ(x, byte_range(x, 0xe1, 0xec), tail), GX_SEQ(x, byte_range(x, 0xee, 0xef), tail),
               GX_SEQ(x, byte_range(x, 0xed, 0xed), byte_range(x, 0x80, 0x9f)), GX_SEQ(x, four, tail));
    gx_node two = GX_ALT(x, byte_range(x, 0xc3, 0xdf), three);
    return GX_ALT(x, add_set(x, &ascii), GX_SEQ(x, byte_range(x, 0xc2, 0xc2), byte_range(x, 0xa0, 0xbf)),
                  GX_SEQ(x, two, tail));
}

gx_node gx_utf8(struct gx *x, const char *except, int min, int max)
{
    return gx_repeat(x, printable(x, except), min, max);
}

gx_node gx_json_string(struct gx *x, int min, int max)
{
    gx_node escape = GX_SEQ(x, gx_lit(x, "\\"), gx_set(x, "\"\\\\nt"));
    gx_node unit = GX_ALT(x, printable(x, "\"\\"), escape);
    return GX_SEQ(x, gx_lit(x, "\""), gx_repeat(x, unit, min, max), gx_lit(x, "\""));
}
