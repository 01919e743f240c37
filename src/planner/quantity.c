/* quantity.c - see quantity.h. */
#include "planner/quantity.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HALF = 5, MOST = 1000000 };

static const char *const months[] = {
    "january|jan", "february|feb", "march|mar",          "april|apr",   "may",          "june|jun",
    "july|jul",    "august|aug",   "september|sept|sep", "october|oct", "november|nov", "december|dec"};

static bool is_digits(const char *text)
{
    size_t n = strlen(text);
    return n && isdigit((unsigned char)text[0]) && isdigit((unsigned char)text[n - 1]) &&
           strspn(text, "0123456789.") == n;
}

/* Adds a number word to those before it: "hundred" to "two", "fifty" to "one hundred".  Returns false if it
 * begins another number. */
static bool add(struct span s, int i, int *total, int *now)
{
    char word[MATCH_WORD];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(s.w[i].text, "?!"), s.w[i].text);
    int n = match_number(word);
    if (words_is(s, i, "thousand") && *now != 0 && !*total) {
        *total = 1000 * (*now < 0 ? 1 : *now);
        *now = 0;
    } else if (words_is(s, i, "hundred|dozen") && *now != 0 && *now < 100) {
        *now = (*now < 0 ? 1 : *now) * (words_is(s, i, "hundred") ? 100 : 12);
    } else if (n >= 0 && n < 100 && !s.w[i].quoted &&
               (*now <= 0 || (*now % 100 == 0 && n) || (*now % 10 == 0 && *now % 100 > 10 && n && n < 10))) {
        *now = (*now < 0 ? 0 : *now) + n;
    } else {
        return false;
    }
    return true;
}

int quantity_number(struct span s, int i, char out[MATCH_WORD])
{
    int total = 0, now = -1, at = i;
    bool digits = i < s.n && is_digits(s.w[i].text), half = false;
    at += digits || (words_is(s, at, "a|an") && words_is(s, at + 1, "hundred|thousand|dozen"));
    while (at < s.n && !digits && (at == i || !s.w[at - 1].after)) {
        bool joint = now >= 0 && words_is(s, at, "and") && words_is(s, at - 1, "hundred|thousand");
        if (at + joint >= s.n || !add(s, at + joint, &total, &now))
            break;
        at += joint + 1;
    }
    if (at == i || (!digits && now < 0) || total + now > MOST)
        return 0;
    if (!s.w[at - 1].after && words_is(s, at, "and") && words_is(s, at + 1, "a") &&
        words_is(s, at + 2, "half")) {
        half = true;
        at += 3;
    }
    if (digits)
        snprintf(out, MATCH_WORD, half ? "%.20s.%d" : "%.20s", s.w[i].text, HALF);
    else
        snprintf(out, MATCH_WORD, half ? "%d.%d" : "%d", total + now, HALF);
    return at - i;
}

int quantity_time(struct span s, int i, char out[MATCH_WORD])
{
    char number[MATCH_WORD];
    bool half = words_is(s, i, "half"), quarter = words_is(s, i, "quarter");
    int n = half || quarter ? 1 : quantity_number(s, i, number),
        at = i + n + (n && words_is(s, i + n, "minutes"));
    bool past = words_is(s, at, "past|after"), to = words_is(s, at, "to|before");
    int clock = n && !half && !quarter ? atoi(number) : 0;
    if (clock > 0 && clock <= 12 && words_is(s, at, "am|a.m|pm|p.m")) { /* "seven pm" */
        bool late = words_is(s, at, "pm|p.m");
        snprintf(out, MATCH_WORD, "%d:00", clock % 12 + (late ? 12 : 0));
        return at + 1 - i;
    }
    int minutes = half ? 30 : quarter ? 15 : n ? atoi(number) : 0;
    if (!n || (!past && !to) || minutes >= 60 || at + 1 >= s.n)
        return 0;
    int k = quantity_number(s, at + 1, number), hour = k ? atoi(number) : 0;
    if (k != 1 || hour < 1 || hour > 24)
        return 0;
    minutes = past ? minutes : 60 - minutes;
    snprintf(out, MATCH_WORD, "%d:%02d", past ? hour : hour - 1, minutes);
    return at + 1 + k - i;
}

/* ---- dates --------------------------------------------------------------------------------------------- */

/* Reads a day, "2", "2nd" or "31st". */
static int read_day(struct span s, int i)
{
    char *end = NULL;
    long n = i < s.n && isdigit((unsigned char)s.w[i].text[0]) ? strtol(s.w[i].text, &end, 10) : 0;
    return n > 0 && n < 32 && (!*end || text_choice("st|nd|rd|th", end) >= 0) ? (int)n : 0;
}

static int read_month(struct span s, int i)
{
    for (int m = 0; m < 12; m++)
        if (words_is(s, i, months[m]))
            return m + 1;
    return 0;
}

/* Reads day and month in either order.  Returns the number of words. */
static int read_day_month(struct span s, int i, int *day, int *month)
{
    int at = i + words_is(s, i, "the");
    if ((*day = read_day(s, at))) {
        at += 1 + words_is(s, at + 1, "of");
        *month = read_month(s, at);
    } else if ((*month = read_month(s, at))) {
        at += 1 + words_is(s, at + 1, "the");
        *day = read_day(s, at);
    }
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return *day && *month && *day <= days[*month - 1] ? at + 1 - i : 0;
}

bool quantity_is_year(struct span s, int i)
{
    return i > 0 && i < s.n && s.w[i - 1].after == ',' && is_digits(s.w[i].text) &&
           strlen(s.w[i].text) == 4 && (read_day(s, i - 1) || read_month(s, i - 1));
}

int quantity_date(struct span s, int i, const char *like, char out[MATCH_WORD])
{
    int a, b, c, end = 0, day = 0, month = 0, n = read_day_month(s, i, &day, &month);
    char sign, again;
    if (!n || sscanf(like, "%4d%c%2d%c%4d%n", &a, &sign, &b, &again, &c, &end) != 5 || like[end] ||
        sign != again || !strchr("./-", sign))
        return 0;
    bool iso = a > 31, first = sign == '.' || a > 12;                                   /* the day is first */
    bool joined = i + n < s.n && (!s.w[i + n - 1].after || quantity_is_year(s, i + n)); /* "July 5, 2027" */
    int year = joined && is_digits(s.w[i + n].text) ? atoi(s.w[i + n].text) : 0;
    if (!iso && !first && b <= 12)
        return 0; /* 03/04/2026 */
    n += year > 1000;
    year = year > 1000 ? year : iso ? a : c;
    if (iso)
        snprintf(out, MATCH_WORD, "%d%c%02d%c%02d", year, sign, month, sign, day);
    else
        snprintf(out, MATCH_WORD, "%02d%c%02d%c%d", first ? day : month, sign, first ? month : day, sign,
                 year);
    return n;
}
