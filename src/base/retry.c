/* retry.c - computes when to repeat a failed request. */
#include "base/retry.h"

#include <curl/curl.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { LONGEST_BACKOFF_S = 30, LONGEST_S = 366 * 86400, DOUBLINGS = 16 };

double retry_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- durations and dates ---------------------------------------------------------------------------- */

/* Returns the seconds of a unit at the start of a text, *n: its length in bytes. 0: not a unit. */
static double unit_at(const char *text, size_t *n)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"milliseconds", 0.001},
                 {"ms", 0.001},
                 {"seconds", 1},
                 {"second", 1},
                 {"secs", 1},
                 {"sec", 1},
                 {"s", 1},
                 {"minutes", 60},
                 {"minute", 60},
                 {"mins", 60},
                 {"min", 60},
                 {"m", 60},
                 {"hours", 3600},
                 {"hour", 3600},
                 {"h", 3600},
                 {"days", 86400},
                 {"day", 86400},
                 {"d", 86400}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        *n = strlen(units[i].name);
        if (!strncasecmp(text, units[i].name, *n))
            return units[i].seconds;
    }
    return 0;
}

/* Parses a duration ("12", "1.5s", "6m0s", "1h2m", "6 seconds") into seconds; *end: the character after it.
 * -1: not a duration. */
static double duration(const char *text, const char **end)
{
    double sum = 0;
    bool any = false;
    for (;;) {
        const char *p = text + strspn(text, " ");
        size_t n = 0;
        if ((*p < '0' || *p > '9') && *p != '.')
            break;
        double v = strtod(p, (char **)&p);
        double unit = unit_at(p + strspn(p, " "), &n);
        if (!isfinite(v) || v < 0 || (!unit && any))
            break;
        any = true;
        sum += unit ? v * unit : v;
        text = unit ? p + strspn(p, " ") + n : p;
        if (!unit)
            break;
    }
    *end = text;
    return any ? sum : -1;
}

static double date(const char *said, double now)
{
    autofree char *text = xstrdup(said);
    size_t n = strlen(g_strchomp(text));
    if (n > 1 && text[n - 1] == 'z') /* GLib reads a capital Z only */
        text[n - 1] = 'Z';
    GTimeZone *utc = g_time_zone_new_utc();
    GDateTime *exact = g_date_time_new_from_iso8601(text, utc);
    double at = exact ? (double)g_date_time_to_unix(exact) : (double)curl_getdate(text, NULL);
    g_clear_pointer(&exact, g_date_time_unref);
    g_time_zone_unref(utc);
    return at < 0 ? 0 : at - now;
}

static double bounded(double seconds)
{
    return seconds < LONGEST_S ? seconds : LONGEST_S;
}

/* Returns the seconds from now to a date; 0: unknown, or not in the future. */
static double seconds_until(const char *text, double now)
{
    const char *end;
    double v = duration(text, &end);
    if (v >= 0 && !*end)
        v = v >= 1e12 ? v / 1000 - now : v >= 1e9 ? v - now : v; /* since 1970, in ms or s */
    else
        v = date(text, now);
    return isfinite(v) && v > 0 ? bounded(v) : 0;
}

/* ---- headers ---------------------------------------------------------------------------------------- */

static bool is_reset(const char *name)
{
    static const char reset[] = "x-ratelimit-reset", end[] = "-reset", anthropic[] = "anthropic-ratelimit-";
    size_t n = strlen(name);
    return !strncasecmp(name, reset, strlen(reset)) || !strcasecmp(name, "ratelimit-reset") ||
           (!strncasecmp(name, anthropic, strlen(anthropic)) && n > strlen(end) &&
            !strcasecmp(name + n - strlen(end), end));
}

void retry_header(struct retry_hint *h, const char *name, const char *value, double now)
{
    const char *end;
    if (!strcasecmp(name, "retry-after-ms")) {
        double ms = duration(value, &end);
        if (ms > 0 && !*end) /* more exact than Retry-After */
            h->after = bounded(ms / 1000);
    } else if (!strcasecmp(name, "retry-after")) {
        double s = seconds_until(value, now);
        h->after = h->after > 0 ? h->after : s;
    } else if (is_reset(name)) {
        double s = seconds_until(value, now);
        h->reset = s > 0 && (h->reset <= 0 || s < h->reset) ? s : h->reset;
    }
}

double retry_in_text(const char *message)
{
    static const char *const leads[] = {"try again in ", "retry in ", "retry after ", "try again after "};
    for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
        const char *at = strcasestr(message, leads[i]), *end;
        double s = at ? duration(at + strlen(leads[i]), &end) : 0;
        if (s > 0)
            return bounded(s);
    }
    return 0;
}

/* ---- waiting ---------------------------------------------------------------------------------------- */

double retry_wait(const struct retry_limits *l, const struct failure *f, int tries, double elapsed,
                  double chance)
{
    double wait = l->first_s * (double)(1 << (tries < DOUBLINGS ? tries - 1 : DOUBLINGS));
    wait = wait < LONGEST_BACKOFF_S ? wait : LONGEST_BACKOFF_S;
    wait = f->reset > wait ? f->reset : wait;
    wait = f->after > 0 ? f->after * (1 + chance / 10) : wait * (1 + chance / 4);
    bool again = tries < l->tries && tries < failure_tries(f->class) && elapsed + wait <= l->total_s;
    return again ? wait : -1;
}
