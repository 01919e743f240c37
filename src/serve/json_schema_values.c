/* json_schema_values.c - compiles numbers and strings of a schema, and any JSON value (json_schema.h).
 *
 * Bounds of numbers are in millionths, because numbers have at most six digits after the point. */
#include "serve/json_schema_impl.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 6, MICRO = 1000000 };

/* ---- bounds -------------------------------------------------------------------------------------------- */

struct bounds {
    int64_t lo, hi; /* in steps of 1 or of a millionth, both inclusive */
};

/* Returns the smallest step not below v, or above v if `above`; clamped. */
static int64_t step_from(double v, double steps, bool above, int64_t most)
{
    double s = v * steps, up = ceil(s - 1e-6);
    up += above && up <= s + 1e-6 ? 1 : 0;
    return up < (double)-most ? -most : up > (double)most ? most + 1 : (int64_t)up;
}

static void narrow(struct bounds *b, const json_t *v, bool is_minimum, bool excluded, double steps,
                   int64_t most)
{
    if (!json_is_number(v))
        return;
    double d = json_number_value(v);
    int64_t s = is_minimum ? step_from(d, steps, excluded, most) : -step_from(-d, steps, excluded, most);
    if (is_minimum && s > b->lo)
        b->lo = s;
    if (!is_minimum && s < b->hi)
        b->hi = s;
}

static int read_bounds(struct schema_reading *r, const json_t *s, double steps, struct bounds *b)
{
    int64_t most = (int64_t)((double)(SCHEMA_WHOLE + 1) * steps) - 1;
    *b = (struct bounds){-most, most};
    const json_t *above = json_object_get(s, "exclusiveMinimum"),
                 *below = json_object_get(s, "exclusiveMaximum");
    narrow(b, json_object_get(s, "minimum"), true, json_is_true(above), steps, most);
    narrow(b, json_object_get(s, "maximum"), false, json_is_true(below), steps, most);
    narrow(b, above, true, true, steps, most);
    narrow(b, below, false, true, steps, most);
    return b->lo > b->hi ? schema_refuse(r, "no number of nine digits is in this range") : 0;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

gx_node schema_integer(struct schema_reading *r, const json_t *s)
{
    struct bounds b;
    const json_t *step = json_object_get(s, "multipleOf");
    if (step && !(json_number_value(step) >= 1 && json_number_value(step) <= 1))
        notes_ignore(r->notes, "schema: multipleOf");
    return read_bounds(r, s, 1, &b) ? -1 : gx_int(r->x, (int)b.lo, (int)b.hi);
}

struct fraction {
    struct gx *x;
    const char *lo, *hi; /* six digits each */
    int most;            /* digits after the point */
};

static gx_node one_digit(struct gx *x, char from, char to)
{
    const char range[4] = {from, '-', to, 0};
    return gx_set(x, range);
}

static bool all_zeros(const char *digits)
{
    return !digits[strspn(digits, "0")];
}

/* Returns the digits from position `at`; tight: the preceding digits equal those of the bound. IMPOSSIBLE:
 * none. */
static gx_node fraction_from(const struct fraction *f, int at, bool tight_lo, bool tight_hi)
{
    gx_node parts[4];
    int n = 0;
    if (at > 0 && (!tight_lo || all_zeros(f->lo + at)))
        parts[n++] = gx_lit(f->x, "");
    char low = tight_lo && at < DIGITS ? f->lo[at] : '0', high = tight_hi && at < DIGITS ? f->hi[at] : '9';
    if (at < f->most) {
        bool both = tight_lo && tight_hi && low == high;
        char from = (char)(low + tight_lo), to = (char)(high - tight_hi);
        gx_node rest =
            !both && from <= to ? gx_repeat(f->x, gx_set(f->x, "0-9"), 0, f->most - at - 1) : IMPOSSIBLE;
        if (rest >= 0)
            parts[n++] = GX_SEQ(f->x, one_digit(f->x, from, to), rest);
        gx_node edge = tight_lo && low <= high ? fraction_from(f, at + 1, true, both) : IMPOSSIBLE;
        if (edge >= 0)
            parts[n++] = GX_SEQ(f->x, one_digit(f->x, low, low), edge);
        edge = tight_hi && !both && low <= high ? fraction_from(f, at + 1, false, true) : IMPOSSIBLE;
        if (edge >= 0)
            parts[n++] = GX_SEQ(f->x, one_digit(f->x, high, high), edge);
    }
    return n ? gx_alt(f->x, n, parts) : IMPOSSIBLE;
}

/* Adds INT.FRACTION with an integer in [a, b] and a fraction in [lo, hi] millionths. */
static void add_fractions(struct gx *x, gx_node *parts, int *n, int64_t a, int64_t b, int64_t lo, int64_t hi,
                          int digits)
{
    char low[DIGITS + 2], high[DIGITS + 2];
    if (a > b || lo > hi)
        return;
    snprintf(low, sizeof low, "%06d", (int)lo);
    snprintf(high, sizeof high, "%06d", (int)hi);
    const struct fraction f = {x, low, high, digits};
    gx_node fraction = fraction_from(&f, 0, true, true);
    if (fraction >= 0)
        parts[(*n)++] = GX_SEQ(x, gx_int(x, (int)a, (int)b), gx_lit(x, "."), fraction);
}

/* Returns numbers with a point from lo to hi millionths, lo >= 0; IMPOSSIBLE: none. */
static gx_node with_point(struct gx *x, int64_t lo, int64_t hi, int digits)
{
    gx_node parts[3];
    int n = 0;
    int64_t a = lo / MICRO, b = hi / MICRO, from = lo % MICRO, to = hi % MICRO;
    if (lo > hi || !digits)
        return IMPOSSIBLE;
    if (a == b) {
        add_fractions(x, parts, &n, a, a, from, to, digits);
    } else {
        add_fractions(x, parts, &n, a, a, from, MICRO - 1, digits);
        add_fractions(x, parts, &n, a + 1, b - 1, 0, MICRO - 1, digits);
        add_fractions(x, parts, &n, b, b, 0, to, digits);
    }
    return n ? gx_alt(x, n, parts) : IMPOSSIBLE;
}

/* Returns the digits after the point of multiples of 1, 0.1, 0.01, ...; -1 for another step. */
static int digits_of(const json_t *step)
{
    double power = 1, v = json_number_value(step);
    if (!step)
        return DIGITS;
    for (int n = 0; n <= DIGITS; n++, power *= 10)
        if (fabs(v * power - 1) < 1e-9)
            return n;
    return -1;
}

static int64_t floor_of(int64_t micro)
{
    return micro >= 0 ? micro / MICRO : -((-micro + MICRO - 1) / MICRO);
}

gx_node schema_number(struct schema_reading *r, const json_t *s)
{
    struct gx *x = r->x;
    struct bounds b;
    gx_node parts[3], node;
    int n = 0, digits = digits_of(json_object_get(s, "multipleOf"));
    if (digits < 0)
        notes_ignore(r->notes, "schema: multipleOf");
    digits = digits < 0 ? DIGITS : digits;
    if (read_bounds(r, s, MICRO, &b))
        return -1;
    int64_t lo = -floor_of(-b.lo), hi = floor_of(b.hi);
    if (lo <= hi)
        parts[n++] = gx_int(x, (int)lo, (int)hi);
    if (b.hi >= 0 && (node = with_point(x, b.lo > 0 ? b.lo : 0, b.hi, digits)) >= 0)
        parts[n++] = node;
    if (b.lo < 0 && (node = with_point(x, b.hi < 0 ? -b.hi : 0, -b.lo, digits)) >= 0)
        parts[n++] = GX_SEQ(x, gx_lit(x, "-"), node);
    return n ? gx_alt(x, n, parts) : schema_refuse(r, "no number of these digits is in this range");
}

/* ---- strings ---------------------------------------------------------------------------------------- */

static gx_node digits(struct gx *x, int n)
{
    return gx_repeat(x, gx_set(x, "0-9"), n, n);
}

static gx_node two(struct gx *x, const char *first, const char *second)
{
    return GX_SEQ(x, gx_set(x, first), gx_set(x, second));
}

/* Returns dates that exist in every year: 29 February is excluded. */
static gx_node date(struct gx *x)
{
    gx_node month = GX_ALT(x, two(x, "0", "1-9"), two(x, "1", "0-2"));
    gx_node day = GX_ALT(x, two(x, "0", "1-9"), two(x, "1", "0-9"), two(x, "2", "0-8"));
    gx_node not_february = GX_ALT(x, two(x, "0", "13-9"), two(x, "1", "0-2"));
    gx_node late = GX_ALT(x, gx_lit(x, "29"), gx_lit(x, "30"));
    gx_node longest = GX_ALT(x, two(x, "0", "13578"), two(x, "1", "02"));
    gx_node rest =
        GX_ALT(x, GX_SEQ(x, month, gx_lit(x, "-"), day), GX_SEQ(x, not_february, gx_lit(x, "-"), late),
               GX_SEQ(x, longest, gx_lit(x, "-31")));
    return GX_SEQ(x, gx_set(x, "12"), digits(x, 3), gx_lit(x, "-"), rest);
}

static gx_node clock(struct gx *x)
{
    gx_node hour = GX_ALT(x, two(x, "01", "0-9"), two(x, "2", "0-3")), sixty = two(x, "0-5", "0-9");
    gx_node part = gx_repeat(x, GX_SEQ(x, gx_lit(x, "."), gx_repeat(x, gx_set(x, "0-9"), 1, 6)), 0, 1);
    gx_node zone = GX_ALT(x, gx_lit(x, "Z"), GX_SEQ(x, gx_set(x, "+\\-"), hour, gx_lit(x, ":"), sixty));
    return GX_SEQ(x, hour, gx_lit(x, ":"), sixty, gx_lit(x, ":"), sixty, part, zone);
}

static gx_node date_time(struct gx *x)
{
    return GX_SEQ(x, date(x), gx_lit(x, "T"), clock(x));
}

static gx_node hex(struct gx *x, int n)
{
    return gx_repeat(x, gx_set(x, "0-9a-f"), n, n);
}

static gx_node uuid(struct gx *x)
{
    gx_node dash = gx_lit(x, "-");
    return GX_SEQ(x, hex(x, 8), dash, hex(x, 4), gx_lit(x, "-4"), hex(x, 3), dash, gx_set(x, "89ab"),
                  hex(x, 3), dash, hex(x, 12));
}

static gx_node ipv4(struct gx *x)
{
    gx_node part = gx_int(x, 0, 255), dot = gx_lit(x, ".");
    return GX_SEQ(x, part, dot, part, dot, part, dot, part);
}

static gx_node email(struct gx *x)
{
    gx_node word = gx_repeat(x, gx_set(x, "a-zA-Z0-9_+\\-"), 1, -1), dot = gx_lit(x, ".");
    gx_node label = GX_SEQ(x, gx_set(x, "a-z"), gx_repeat(x, gx_set(x, "a-z0-9"), 1, -1));
    return GX_SEQ(x, gx_set(x, "a-zA-Z0-9"), gx_repeat(x, word, 0, 1),
                  gx_repeat(x, GX_SEQ(x, dot, word), 0, -1), gx_lit(x, "@"), label,
                  gx_repeat(x, GX_SEQ(x, dot, label), 0, -1), dot, gx_repeat(x, gx_set(x, "a-z"), 2, 6));
}

/* Returns the function for a format, or NULL. */
static gx_node (*format_of(const char *name))(struct gx *x)
{
    static const struct {
        const char *name;
        gx_node (*text)(struct gx *x);
    } formats[] = {{"date", date}, {"time", clock},  {"date-time", date_time},
                   {"uuid", uuid}, {"uuid4", uuid},  {"ipv4", ipv4},
                   {"guid", uuid}, {"email", email}, {"idn-email", email}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, name))
            return formats[i].text;
    return NULL;
}

/* Builds a string with a pattern or format; minLength and maxLength are then not enforced. */
static gx_node formatted(struct schema_reading *r, const json_t *s, gx_node text)
{
    static const char *const lengths[] = {"minLength", "maxLength"};
    for (int i = 0; i < 2; i++)
        if (json_number_value(json_object_get(s, lengths[i])) > 0)
            notes_ignore(r->notes, "schema: %s beside pattern or format", lengths[i]);
    return GX_SEQ(r->x, gx_lit(r->x, "\""), text, gx_lit(r->x, "\""));
}

gx_node schema_string(struct schema_reading *r, const json_t *s)
{
    const char *name = json_string_value(json_object_get(s, "format")),
               *pattern = json_string_value(json_object_get(s, "pattern"));
    gx_node (*format)(struct gx * x) = name ? format_of(name) : NULL;
    gx_node text = pattern ? schema_pattern(r->x, pattern) : IMPOSSIBLE;
    int min = 0, max = 0;
    if (text >= 0)
        return formatted(r, s, text);
    if (pattern)
        notes_ignore(r->notes, "schema: pattern");
    if (format)
        return formatted(r, s, format(r->x));
    if (name)
        notes_ignore(r->notes, "schema: format %.40s", name);
    if (schema_count(r, s, "minLength", 0, &min) || schema_count(r, s, "maxLength", -1, &max))
        return -1;
    if (max >= 0 && max < min)
        return schema_refuse(r, "'minLength' is above 'maxLength'");
    return gx_json_string(r->x, min, max);
}

/* ---- any JSON ------------------------------------------------------------------------------------------ */

gx_node schema_any_value(struct gx *x, int deep)
{
    gx_node number =
        GX_SEQ(x, gx_int(x, -SCHEMA_WHOLE, SCHEMA_WHOLE),
               gx_repeat(x, GX_SEQ(x, gx_lit(x, "."), gx_repeat(x, gx_set(x, "0-9"), 1, DIGITS)), 0, 1));
    gx_node plain =
        GX_ALT(x, gx_json_string(x, 0, -1), number, gx_lit(x, "true"), gx_lit(x, "false"), gx_lit(x, "null"));
    if (deep == 0)
        return plain;
    return GX_ALT(x, plain, schema_any_object(x, deep),
                  schema_list_of(x, schema_any_value(x, deep - 1), 0, -1));
}

gx_node schema_any_object(struct gx *x, int deep)
{
    gx_node pair = GX_SEQ(x, gx_json_string(x, 0, -1), gx_lit(x, ": "), schema_any_value(x, deep - 1));
    gx_node rest = gx_repeat(x, GX_SEQ(x, gx_lit(x, ", "), pair), 0, -1);
    return GX_SEQ(x, gx_lit(x, "{"), gx_repeat(x, GX_SEQ(x, pair, rest), 0, 1), gx_lit(x, "}"));
}

gx_node json_any_object(struct gx *x)
{
    return schema_any_object(x, 3);
}
