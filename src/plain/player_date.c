/* player_date.c - dates and times in fields of a page that have a spin button for each part.
 *
 * Browsers move to the next part when a part is full, so that a date is typed at once: "03142027".  A year
 * has room for 6 digits, and a month in words is never full: the part after them is clicked.  The parts are
 * in the order that the page shows, and so must be those of the text, apart from 2027-03-14. */
#include "plain/player_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PARTS_MAX = 7, YEAR_DIGITS = 4, NOON = 12, HOURS = 24, HOUR_AFTER_DATE = 3 };

struct parts {
    const struct element *e[PARTS_MAX];
    int n;
};

struct date {
    char text[PARTS_MAX][YEAR_DIGITS + 1]; /* numbers, and "AM" or "PM" */
    int n;
};

/* Finds the parts in a field, n 0: it has none.  Firefox describes a time as a panel, as other toolkits do
 * groups of any spin buttons. */
static struct parts parts_of(const struct snapshot *s, const struct element *field)
{
    struct parts p = {.n = 0};
    if (strcmp(field->role, "date editor") != 0 &&
        (strcmp(field->role, "panel") != 0 || !resolve_page(s, field)))
        return p;
    for (const struct element *e = field + 1; e < s->e + s->n && e->depth > field->depth; e++)
        if (p.n < PARTS_MAX && (!strcmp(e->role, "spin button") || (p.n && !strcmp(e->role, "entry"))))
            p.e[p.n++] = e;
    return p;
}

bool player_is_date(const struct snapshot *s, const struct element *e)
{
    return s && parts_of(s, e).n > 1;
}

/* Returns 1 for AM and 2 for PM, as Chromium numbers them; 0: neither. */
static int half_of(const char *text)
{
    return !strcasecmp(text, "AM") ? 1 : !strcasecmp(text, "PM") ? 2 : 0;
}

/* Splits a text into numbers and AM or PM.  Returns false if it has too many, another word, or a number that
 * is too long. */
static bool split(const char *text, struct date *out)
{
    *out = (struct date){.n = 0};
    while (*text) {
        const char *begin = text;
        while (isdigit((unsigned char)*text))
            text++;
        while (!isdigit((unsigned char)*begin) && isalpha((unsigned char)*text))
            text++;
        size_t n = (size_t)(text - begin);
        if (n == 1 && (*begin == 'T' || *begin == 't'))
            continue;
        if (n > YEAR_DIGITS || (n && out->n == PARTS_MAX))
            return false;
        if (n)
            memcpy(out->text[out->n++], begin, n);
        else
            text++;
        if (n && !isdigit((unsigned char)*begin) && !half_of(out->text[out->n - 1]))
            return false;
    }
    return true;
}

static int part_named(const struct parts *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (!strncasecmp(p->e[i]->name, name, strlen(name)))
            return i;
    return -1;
}

/* Brings year, month and day into the order of the field, which may have no day, or neither month nor day.
 * Returns false if its parts have other names. */
static bool order_parts(const struct parts *p, struct date *d)
{
    static const char *const names[] = {"Year", "Month", "Day"};
    struct date from = *d;
    int n = 0;
    for (int i = 0; i < 3; i++)
        n += part_named(p, names[i]) >= 0;
    for (int i = 0; i < n; i++) {
        int to = part_named(p, names[i]);
        if (to < 0 || to >= n || d->n < n)
            return false;
        memcpy(d->text[to], from.text[i], sizeof from.text[i]);
    }
    return n > 0;
}

/* Adds AM or PM to a time of 24 hours.  Returns false if it is none. */
static bool halve_day(const struct parts *p, struct date *d)
{
    int named = part_named(p, "Hour"), dated = part_named(p, "Year") >= 0;
    int at = named >= 0 ? named : dated ? HOUR_AFTER_DATE : 0, hour = at < d->n ? atoi(d->text[at]) : HOURS;
    if (hour >= HOURS || !isdigit((unsigned char)d->text[d->n - 1][0]))
        return false;
    snprintf(d->text[at], sizeof d->text[at], "%d", hour % NOON ? hour % NOON : NOON);
    memcpy(d->text[d->n++], hour >= NOON ? "PM" : "AM", sizeof "PM");
    return true;
}

/* Reads a text as the parts of a field.  Returns false with the reason. */
static bool read_date(const struct parts *p, const char *text, struct date *d, char *why, size_t size)
{
    bool halves = part_named(p, "AM/PM") == p->n - 1;
    if (!split(text, d) || d->n < 2) {
        snprintf(why, size, "'%.80s' is not a date or time of this field", text);
        return false;
    }
    if (strlen(d->text[0]) == YEAR_DIGITS && part_named(p, "Year") != 0 && !order_parts(p, d)) {
        snprintf(why, size, "the order of year, month and day in this field is unknown");
        return false;
    }
    snprintf(why, size, "'%.80s' has %d parts, and the field %d", text, d->n, p->n);
    return d->n == p->n || (halves && d->n == p->n - 1 && halve_day(p, d));
}

/* Returns whether the field has these parts. */
static bool shows(const struct parts *p, const struct date *d)
{
    int halves = part_named(p, "AM/PM");
    for (int i = 0; i < p->n; i++) {
        const char *value = p->e[i]->value, *text = d->text[i];
        bool number = isdigit((unsigned char)*value);
        int half = half_of(text), wanted = half ? half : atoi(text);
        bool same = number ? atoi(value) == wanted && (!half || i == halves) : half && half == half_of(value);
        if (!same)
            return false;
    }
    return true;
}

/* Returns whether browsers stay in part i after its digits were typed. */
static bool is_left_by_click(const struct parts *p, int i)
{
    int month = part_named(p, "Month");
    return i == part_named(p, "Year") || (i == month && part_named(p, "Day") < 0);
}

/* Appends the keys for the parts from `from` on that are typed at once.  Returns the part after them. */
static int put_keys(const struct parts *p, const struct date *d, int from, char *keys, size_t size)
{
    int i = from;
    do {
        bool number = isdigit((unsigned char)d->text[i][0]);
        size_t used = strlen(keys);
        snprintf(keys + used, size - used, number ? "%s%s" : "%s%.1s", number && !d->text[i][1] ? "0" : "",
                 d->text[i]);
    } while (++i < p->n && !is_left_by_click(p, i - 1));
    return i;
}

bool player_date_is(const struct snapshot *s, const struct element *e, const char *text)
{
    struct parts parts = parts_of(s, e);
    struct date d;
    char why[ERR_TEXT];
    return read_date(&parts, text, &d, why, sizeof why) && shows(&parts, &d);
}

enum player_next player_enter_date(struct player *p, const struct element *e, struct buf *b, char *why,
                                   size_t size)
{
    const char *text = p->steps.s[p->s.at].value;
    struct parts parts = parts_of(p->now, e);
    struct date d;
    if (!read_date(&parts, text, &d, why, size))
        return NEXT_FAILED;
    p->field = e->rect;
    for (int at = 0, phase = 0; at < parts.n; phase += 2) { /* a click and keys for each run of parts */
        char keys[PARTS_MAX * (YEAR_DIGITS + 1)] = "";
        int next = put_keys(&parts, &d, at, keys, sizeof keys);
        if (p->s.phase == phase)
            player_click(p, parts.e[at], "left", 1, b);
        else if (p->s.phase == phase + 1)
            player_call(b, "type", "text", keys);
        if (p->s.phase <= phase + 1)
            return NEXT_ACTION;
        at = next;
    }
    if (shows(&parts, &d))
        return NEXT_STEP;
    snprintf(why, size, "'%.80s' does not show %.80s after typing", resolve_name(e), text);
    return player_wait_or_fail(p, PLAYER_EFFECT_MS);
}
