/* player_date.c - dates and times in fields of a page that have a spin button for each part.
 *
 * Browsers move to the next part when a part is full, so that a date is typed at once: "03142027".  The
 * parts are in the order that the page shows, and so must be those of the text, apart from 2027-03-14. */
#include "plain/player_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PARTS_MAX = 7, YEAR_DIGITS = 4, NOON = 12 };

struct parts {
    const struct element *e[PARTS_MAX];
    int n;
};

struct date {
    char text[PARTS_MAX][YEAR_DIGITS + 1]; /* numbers, and "AM" or "PM" */
    int n;
};

/* Finds the parts in a field, n 0: it has none. */
static struct parts parts_of(const struct snapshot *s, const struct element *field)
{
    struct parts p = {.n = 0};
    if (strcmp(field->role, "date editor") != 0 && strcmp(field->role, "panel") != 0)
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

/* Splits a text into numbers and words.  Returns false if it has too many, or one is too long. */
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

/* Brings year, month and day into the order of the field.  Returns false if its parts have other names. */
static bool order_parts(const struct parts *p, struct date *d)
{
    static const char *const names[] = {"Year", "Month", "Day"};
    struct date from = *d;
    for (int i = 0; i < 3; i++) {
        int to = part_named(p, names[i]);
        if (to < 0 || to > 2 || d->n < 3)
            return false;
        memcpy(d->text[to], from.text[i], sizeof from.text[i]);
    }
    return true;
}

/* Adds AM or PM to a time of 24 hours. */
static void halve_day(struct date *d)
{
    int at = d->n - 2, hour = atoi(d->text[at]);
    snprintf(d->text[at], sizeof d->text[at], "%d", hour % NOON ? hour % NOON : NOON);
    memcpy(d->text[d->n++], hour >= NOON ? "PM" : "AM", sizeof "PM");
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
    if (halves && d->n == p->n - 1)
        halve_day(d);
    snprintf(why, size, "'%.80s' has %d parts, and the field %d", text, d->n, p->n);
    return d->n == p->n;
}

/* Returns whether the field has these parts.  "AM" and "PM" have a number in Chromium. */
static bool shows(const struct parts *p, const struct date *d)
{
    for (int i = 0; i < p->n; i++)
        if (isdigit((unsigned char)d->text[i][0])
                ? atoi(p->e[i]->value) != atoi(d->text[i]) || !isdigit((unsigned char)p->e[i]->value[0])
                : isalpha((unsigned char)p->e[i]->value[0]) && strcasecmp(p->e[i]->value, d->text[i]) != 0)
            return false;
    return true;
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
    if (!p->s.phase) {
        p->field = e->rect;
        player_click(p, parts.e[0], "left", 1, b);
        return NEXT_ACTION;
    }
    if (p->s.phase == 1) {
        char keys[PARTS_MAX * (YEAR_DIGITS + 1)] = "";
        for (int i = 0; i < d.n; i++) {
            bool number = isdigit((unsigned char)d.text[i][0]);
            size_t used = strlen(keys);
            snprintf(keys + used, sizeof keys - used, number ? "%s%s" : "%s%.1s",
                     number && !d.text[i][1] ? "0" : "", d.text[i]);
        }
        player_call(b, "type", "text", keys);
        return NEXT_ACTION;
    }
    if (shows(&parts, &d))
        return NEXT_STEP;
    snprintf(why, size, "'%.80s' does not show %.80s after typing", resolve_name(e), text);
    return player_wait_or_fail(p, PLAYER_EFFECT_MS);
}
