/* place_text.c - finds the places in a text: JSON, tags, calls, names with numbers, brackets, numbers
 * alone. */
#include "actions/json_in.h"
#include "actions/place_impl.h"
#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_TAG = 400, MAX_TRIES = 64 };

struct scan {
    struct place_finder *f;
    const char *start, *at, *end;
    struct place_numbers named[4]; /* values of x, y, x2, y2; n == 0: not given */
    int loose;                     /* number of numbers outside of all notations */
    const char *loose_end;         /* end of the last one */
    struct place_numbers pair;     /* the first two of them, if a comma and a blank separate them */
};

static size_t left(const struct scan *s)
{
    return (size_t)(s->end - s->at);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static bool scan_json(struct scan *s)
{
    struct json_in in = {.max_depth = JSON_IN_MAX_DEPTH};
    struct err why = ERR_INIT;
    json_t *v = s->f->tries++ < MAX_TRIES ? json_in(s->at, left(s), &in, &why) : NULL;
    const char *next = text_skip_space(s->at + 1, s->end);
    bool object = *s->at == '{' && next < s->end && (*next == '"' || *next == '\'');
    if (!v && object)
        place_refused(s->f, RANK_MARKED, "%s", *why.text ? why.text : "it has too many JSON objects");
    if (v && in.cut)
        place_refused(s->f, RANK_MARKED, "the JSON is cut off before a closing tag");
    if (v) {
        place_scan_json(s->f, v);
        s->at += in.used;
    } else if (object) {
        s->at = s->end;
    }
    json_decref(v);
    return v || object;
}

/* ---- brackets ------------------------------------------------------------------------------------ */

static const char *closing_bracket(const char *open, const char *end)
{
    const char *close = memchr(open, *open == '(' ? ')' : ']', (size_t)(end - open));
    for (const char *at = close; at && at + 1 < end && *text_skip_space(at + 1, end) == ')'; close = at)
        at = text_skip_space(at + 1, end); /* such as ((1, 2)) */
    return close;
}

/* Returns whether digits are joined to the text before them, as in "(650,327)!420". */
static bool digits_joined(const char *at, const char *end)
{
    while (at < end && !isspace((unsigned char)*at) && !isdigit((unsigned char)*at) &&
           !strchr("([{<,'\"", *at))
        at++;
    return at < end && isdigit((unsigned char)*at);
}

/* Reads numbers in brackets; "(x1, y1), (x2, y2)" is a box. */
static bool scan_brackets(struct scan *s)
{
    struct place_numbers n, second;
    const char *close = closing_bracket(s->at, s->end);
    if (!close) {
        if (place_numbers(s->at, left(s), &n) && n.n)
            place_refused(s->f, RANK_MARKED, "it is cut off: the closing bracket is missing");
        return false;
    }
    if (!place_numbers(s->at, (size_t)(close - s->at), &n) || !n.n)
        return false;
    bool round = *s->at == '(';
    s->at = close + 1;
    const char *next = text_skip_space(s->at, s->end);
    if (next < s->end && *next == ',')
        next = text_skip_space(next + 1, s->end);
    const char *stop =
        n.n == 2 && round && next < s->end && *next == '(' ? closing_bracket(next, s->end) : NULL;
    if (stop && place_numbers(next, (size_t)(stop - next), &second) && second.n == 2) {
        memcpy(n.v + 2, second.v, 2 * sizeof *n.v);
        memcpy(n.real + 2, second.real, 2 * sizeof *n.real);
        n.n = 4;
        s->at = stop + 1;
    }
    if (digits_joined(s->at, s->end)) {
        place_refused(s->f, RANK_MARKED, "digits follow its closing bracket");
        return true;
    }
    place_from_numbers(s->f, n.n == 2 || n.n == 4 ? RANK_BRACKETS : RANK_WORDS, &n);
    return true;
}

/* ---- tags ---------------------------------------------------------------------------------------- */

/* Reads numbers of attributes whose names end with a digit or are x or y: x1="10" y1="20".  A tag of points
 * has one place for each pair. */
static bool scan_attributes(struct place_finder *f, const char *at, const char *end, bool box)
{
    struct place_numbers all = {0};
    bool real = false;
    while (at < end) {
        const char *name = at;
        while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
            at++;
        bool axis = at > name && strchr("xXyY", *name) && (at - name == 1 || isdigit((unsigned char)name[1]));
        if (at < end && *at == '=' && axis) {
            at += 1 + (at + 1 < end && strchr("\"'", at[1]));
            struct place_numbers one = {0};
            if (!(at = place_number(at, end, &one)))
                return place_refused(f, RANK_MARKED, "an attribute is not a number"), true;
            real = real || one.real[0];
            if (all.n < PLACE_MAX_NUMBERS) {
                all.v[all.n] = one.v[0];
                all.real[all.n] = one.real[0];
            }
            all.n++;
        } else if (at < end && *at == '=' && at + 1 < end && strchr("\"'", at[1])) {
            const char *close = memchr(at + 2, at[1], (size_t)(end - at - 2));
            at = close ? close + 1 : end;
        } else if (at == name) {
            at++;
        }
    }
    if (!all.n)
        return false;
    bool several = !box && all.n > 2;
    if (several && (all.n != 4 || all.v[0] != all.v[2] || all.v[1] != all.v[3])) {
        place_refused(f, RANK_MARKED, "it has several points; expected one");
        return true;
    }
    all.n = several ? 2 : all.n;
    struct place_finder inner = {.reason = ERR_INIT};
    place_from_numbers(&inner, RANK_MARKED, &all);
    if (inner.rank) {
        inner.found.percent = real && inner.found.n.x <= 100 && inner.found.n.y <= 100 &&
                              (inner.found.n.x > 1 || inner.found.n.y > 1) && !box;
        place_found(f, RANK_MARKED, &inner.found);
    } else {
        place_refused(f, RANK_MARKED, "%s", inner.reason.text);
    }
    return true;
}

static bool contains(const char *s, size_t n, const char *word)
{
    for (size_t k = strlen(word); n >= k; s++, n--)
        if (!strncasecmp(s, word, k))
            return true;
    return false;
}

/* Reads the content of a tag such as <point>: numbers up to the next tag. */
static void scan_content(struct scan *s, const char *content, bool point)
{
    struct place_numbers n;
    static const struct place absent = {.absent = true};
    const char *stop = memchr(content, '<', (size_t)(s->end - content));
    size_t len = (size_t)((stop ? stop : s->end) - content);
    s->at = content;
    if (place_says_absent(content, len)) {
        place_found(s->f, RANK_MARKED, &absent);
        s->at += len;
    } else if (place_numbers(content, len, &n) && n.n) {
        s->at += len;
        if (!stop)
            place_refused(s->f, RANK_MARKED, "it is cut off: the closing tag is missing");
        else if (point && n.n == 4)
            place_refused(s->f, RANK_MARKED, "it has two points; expected one");
        else
            place_from_numbers(s->f, RANK_MARKED, &n);
    }
}

static bool scan_tag(struct scan *s)
{
    size_t most = left(s) < MAX_TAG ? left(s) : MAX_TAG;
    const char *close = memchr(s->at, '>', most);
    const char *name = s->at + 1, *blank;
    if (!close || name == close || (!isalpha((unsigned char)*name) && *name != '|' && *name != '/'))
        return false;
    while (name < close && (*name == '|' || *name == '/'))
        name++;
    for (blank = name; blank < close && !isspace((unsigned char)*blank);)
        blank++;
    const char *stop = blank;
    while (stop > name && (stop[-1] == '|' || stop[-1] == '/'))
        stop--;
    const char *is = memchr(name, '=', (size_t)(blank - name)); /* such as <parameter=coordinate> */
    if (is && blank == close)
        name = is + 1;
    size_t len = (size_t)(stop - name);
    bool place = place_is_name(name, len) && s->at[1] != '/', box = contains(name, len, "box");
    bool axis = len == 1 && strchr("xXyY", *name) && s->at[1] != '/';
    if (place && blank < close && scan_attributes(s->f, blank, close, box)) {
        const char *end = memmem(close, (size_t)(s->end - close), "</", 2);
        s->at = close[-1] != '/' && end ? end : close + 1;
    } else if (axis) {
        struct place_numbers n = {0};
        const char *number = text_skip_space(close + 1, s->end), *after = place_number(number, s->end, &n);
        s->at = after ? after : close + 1;
        if (after)
            s->named[tolower((unsigned char)*name) == 'y'] = n;
    } else if (place) {
        scan_content(s, close + 1, contains(name, len, "point"));
    } else {
        s->at = close + 1;
    }
    return true;
}

/* ---- names and calls ----------------------------------------------------------------------------- */

/* Returns the closing parenthesis of a call, outside of quotes; NULL: it is missing. */
static const char *end_of_call(const char *at, const char *end)
{
    int depth = 0;
    for (char quote = 0; at < end; at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"')
            quote = quote ? 0 : *at;
        else if (!quote && (*at == '(' || *at == '['))
            depth++;
        else if (!quote && (*at == ')' || *at == ']') && --depth == 0)
            return at;
    }
    return NULL;
}

static bool is_call(const char *name, size_t len)
{
    return place_is_name(name, len) || contains(name, len, "tap") || contains(name, len, "press") ||
           contains(name, len, "move") || contains(name, len, "hover") || contains(name, len, "single") ||
           contains(name, len, "double") || contains(name, len, "select");
}

/* Reads click(500, 250, button='left'): the numbers before the first named argument. */
static bool positional(struct place_finder *f, const char *at, const char *end)
{
    struct place_numbers n = {0};
    for (const char *next; (next = place_number(text_skip_space(at, end), end, &n));) {
        at = text_skip_space(next, end);
        if (at == end || *at != ',')
            break;
        at++;
    }
    if (n.n)
        place_from_numbers(f, RANK_MARKED, &n);
    return n.n > 0;
}

static bool scan_call(struct scan *s, const char *name, size_t len)
{
    struct place_finder inner = {.reason = ERR_INIT, .depth = s->f->depth + 1, .tries = s->f->tries};
    const char *open = name + len, *close = end_of_call(open, s->end);
    if (!is_call(name, len) || inner.depth > PLACE_MAX_DEPTH)
        return false;
    const char *stop = close ? close : s->end;
    bool bare = positional(&inner, open + 1, stop);
    if (!bare)
        place_scan(&inner, open + 1, (size_t)(stop - open - 1));
    if (!close && bare)
        place_refused(s->f, RANK_MARKED, "the call is cut off: ')' is missing");
    else if (inner.several)
        place_refused(s->f, RANK_MARKED, "the call has several positions; expected one");
    else if (inner.rank && !inner.bad)
        place_found(s->f, RANK_MARKED, &inner.found);
    else if (*inner.reason.text)
        place_refused(s->f, RANK_MARKED, "%s", inner.reason.text);
    s->f->tries = inner.tries;
    s->at = stop + (close != NULL);
    return true;
}

static void flush_named(struct scan *s)
{
    struct place_numbers all = {0};
    bool box = s->named[2].n && s->named[3].n;
    if (s->named[0].n && s->named[1].n && !s->named[2].n == !s->named[3].n) {
        all.n = box ? 4 : 2;
        for (int i = 0; i < all.n; i++) {
            all.v[i] = s->named[i].v[0];
            all.real[i] = s->named[i].real[0];
        }
        place_from_numbers(s->f, RANK_MARKED, &all);
    } else if (s->named[0].n || s->named[1].n || box) {
        place_refused(s->f, RANK_WORDS, "it has an x without a y, or a y without an x");
    }
    memset(s->named, 0, sizeof s->named);
}

/* Returns the index in s->named of x, y, x1, y1, x2, y2; -1: another name. */
static int axis_of(const char *name, size_t len)
{
    int c = tolower((unsigned char)*name);
    if ((c != 'x' && c != 'y') || len > 2 || (len == 2 && name[1] != '1' && name[1] != '2'))
        return -1;
    return (c == 'y') + (len == 2 && name[1] == '2' ? 2 : 0);
}

/* Reads a name, "=" or ":", and a value, such as x=500 or "point": '100 200'. */
static bool scan_named(struct scan *s, const char *name, size_t len)
{
    const char *at = name + len;
    at += at < s->end && (*at == '"' || *at == '\'');
    at = text_skip_space(at, s->end);
    if (at == s->end || (*at != '=' && *at != ':'))
        return false;
    at = text_skip_space(at + 1, s->end);
    const char *quote = at < s->end && (*at == '"' || *at == '\'') ? at : NULL;
    int axis = axis_of(name, len);
    struct place_numbers n = {0};
    if (axis >= 0) {
        const char *after = place_number(at + (quote != NULL), s->end, &n);
        if (!after)
            return false;
        if (s->named[axis].n)
            flush_named(s);
        s->named[axis] = n;
        s->at = after + (quote && after < s->end && *after == *quote);
        return true;
    }
    const char *close = quote ? memchr(quote + 1, *quote, (size_t)(s->end - quote - 1)) : NULL;
    if (!place_is_name(name, len) || !close || !place_numbers(quote, (size_t)(close - quote), &n) || !n.n)
        return false;
    place_from_numbers(s->f, RANK_MARKED, &n);
    s->at = close + 1;
    return true;
}

static void scan_word(struct scan *s)
{
    const char *name = s->at, *end = name;
    while (end < s->end && is_word(*end))
        end++;
    size_t len = (size_t)(end - name);
    while (len > 1 && name[len - 1] == '.')
        len--;
    if (end < s->end && *end == '(' && scan_call(s, name, (size_t)(end - name)))
        return;
    if (end < s->end && *end == '(' && (contains(name, len, "drag") || contains(name, len, "swipe"))) {
        place_refused(s->f, RANK_MARKED, "a drag has two positions; expected one");
        s->at = s->end;
    } else if (!scan_named(s, name, len)) {
        s->at = end;
    }
}

/* ---- numbers alone ------------------------------------------------------------------------------- */

static void scan_number(struct scan *s)
{
    struct place_numbers n = {0};
    const char *from = s->at;
    const char *after = place_number(from, s->end, &n);
    if (!after)
        for (after = from + 1; after < s->end && is_word(*after);)
            after++;
    bool joined = s->loose == 1 && s->pair.n == 1 && n.n && from - s->loose_end >= 2 &&
                  *s->loose_end == ',' && text_skip_space(s->loose_end + 1, s->end) == from;
    s->loose++;
    s->loose_end = after;
    if (s->loose == 1)
        s->pair = n;
    if (joined) {
        s->pair.v[1] = n.v[0];
        s->pair.real[1] = n.real[0];
        s->pair.n = 2;
    }
    s->at = after;
}

void place_scan(struct place_finder *f, const char *text, size_t len)
{
    struct scan s = {.f = f, .start = text, .at = text, .end = text + len};
    struct place_numbers all;
    size_t bare = len;
    while (bare && (text[bare - 1] == '.' || isspace((unsigned char)text[bare - 1])))
        bare--;
    if (bare && *text != '[' && *text != '(' && place_numbers(text, bare, &all) && all.n) {
        place_from_numbers(f, RANK_WORDS, &all);
        return;
    }
    size_t label = strcspn(text, "0123456789:"); /* such as "Answer: 500 250" */
    if (label + 1 < bare && text[label] == ':' && place_numbers(text + label + 1, bare - label - 1, &all) &&
        (all.n == 2 || all.n == 4)) {
        place_from_numbers(f, RANK_WORDS, &all);
        return;
    }
    while (s.at < s.end) {
        char c = *s.at;
        bool sign = (c == '-' || c == '.') && s.at + 1 < s.end && isdigit((unsigned char)s.at[1]);
        if ((c == '{' || c == '[') && scan_json(&s))
            continue;
        if ((c == '(' || c == '[') && scan_brackets(&s))
            continue;
        if (c == '<' && scan_tag(&s))
            continue;
        if (isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80)
            scan_word(&s);
        else if (isdigit((unsigned char)c) || sign)
            scan_number(&s);
        else
            s.at++;
    }
    flush_named(&s);
    if (!f->rank && s.loose == 2 && s.pair.n == 2)
        place_from_numbers(f, RANK_WORDS, &s.pair);
}
