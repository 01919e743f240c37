/* ground.c - parses the localizer's answer: the position of the named element.
 *
 *   {"x": 552, "y": 404}      also with "action"
 *   Click(552, 404)           (552, 404)     start_box='(552,404)'     <point>552 404</point>
 *   <at><12><.3><20><.0>      pocket-wide, also as a click: only step<click>Save<at><12><.3><20><.0>
 *
 * Anything else is an error.  In a dialect with a word for it the answer may be that there is no such
 * element: <missing>Save.
 */
#include "actions/parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPLY = 1000, IMAGE_SIDE = 1 << 14 };

/* A click, or its end "<at><x><y>", which is completed to one. */
static enum action_fault pocket_point(struct parse *p, const char *text, size_t len,
                                      struct dialect_numbers *n)
{
    char step[MAX_REPLY + 16];
    bool place_alone = len >= 4 && !memcmp(text, "<at>", 4);
    int size = snprintf(step, sizeof step, "%s%.*s", place_alone ? "<click>-" : "", (int)len, text);
    enum action_fault f = parse_pocket(p, step, (size_t)size);
    if (!f && p->out->actions[0].kind != ACT_CLICK)
        f = parse_fault(p, FAULT_SCHEMA, "a place was expected, or a click");
    if (!f)
        *n = (struct dialect_numbers){.x = p->out->actions[0].nx, .y = p->out->actions[0].ny};
    step_free(p->out);
    return f;
}

/* Blanks and a number: the end of it, or NULL. */
static const char *number(const char *s, double *v, bool *fraction)
{
    char *end;
    while (*s == ' ')
        s++;
    if (!isdigit((unsigned char)*s) && *s != '-' && *s != '.')
        return NULL;
    *v = strtod(s, &end);
    *fraction = false;
    for (const char *c = s; c < end; c++)
        *fraction = *fraction || *c == '.';
    return end > s ? end : NULL;
}

/* Two numbers and nothing else between brackets. */
static bool two_numbers(const char *text, struct dialect_numbers *n)
{
    static const char *const pairs[][2] = {{"(", ")"}, {"[", "]"}, {"<point>", "</point>"}};
    for (int i = 0; i < 3; i++)
        for (const char *at = text; (at = strstr(at, pairs[i][0])); at++) {
            const char *s = number(at + strlen(pairs[i][0]), &n->x, &n->fx);
            if (!s)
                continue;
            s += *s == ',';
            s = number(s, &n->y, &n->fy);
            while (s && *s == ' ')
                s++;
            if (s && !strncmp(s, pairs[i][1], strlen(pairs[i][1])))
                return true;
        }
    return false;
}

static enum action_fault json_point(struct parse *p, const char *text, size_t len, struct dialect_numbers *n)
{
    json_t *root;
    enum action_fault f = parse_json(p, text, len, &root);
    json_t *x = json_object_get(root, "x"), *y = json_object_get(root, "y");
    if (!f && (!json_is_number(x) || !json_is_number(y)))
        f = parse_fault(p, FAULT_SCHEMA, "a place needs the numbers 'x' and 'y'");
    *n = (struct dialect_numbers){json_number_value(x), json_number_value(y), json_is_real(x),
                                  json_is_real(y)};
    json_decref(root);
    return f;
}

static enum action_fault read_numbers(struct parse *p, const char *text, size_t len,
                                      struct dialect_numbers *n)
{
    char copy[MAX_REPLY + 1];
    parse_trim(&text, &len);
    if (len > MAX_REPLY)
        return parse_fault(p, FAULT_PARSE, "a place takes less than %d bytes", MAX_REPLY);
    memcpy(copy, text, len);
    copy[len] = 0;
    if (p->d->syntax == SYNTAX_POCKET)
        return pocket_point(p, text, len, n);
    if (len && *text == '{')
        return json_point(p, text, len, n);
    if (!two_numbers(copy, n))
        return parse_fault(p, FAULT_PARSE, "a place was expected, two numbers");
    return FAULT_NONE;
}

int dialect_parse_numbers(const struct dialect *d, const char *text, size_t len, struct dialect_numbers *out,
                          struct err *e)
{
    /* A large image, so that no number is out of range. */
    struct step step = {0};
    struct parse p = {d, IMAGE_SIDE, IMAGE_SIDE, d->coords, &step, e};
    *out = (struct dialect_numbers){0};
    enum action_fault f = read_numbers(&p, text, len, out);
    step_free(&step);
    return f ? -1 : 0;
}

int dialect_parse_point(const struct dialect *d, const char *text, size_t len, int w, int h, double *x,
                        double *y, struct err *e)
{
    struct step step = {0};
    struct parse p = {d, w, h, d->coords, &step, e};
    struct dialect_numbers n;
    int32_t px, py;
    if (dialect_parse_numbers(d, text, len, &n, e) || coords_to_pixels(&p, "x, y", n, &px, &py))
        return -1;
    *x = px, *y = py;
    return 0;
}

bool dialect_says_missing(const struct dialect *d, const char *text, size_t len)
{
    struct step step = {0};
    struct parse p = {d, IMAGE_SIDE, IMAGE_SIDE, d->coords, &step, NULL};
    parse_trim(&text, &len);
    bool missing = d->syntax == SYNTAX_POCKET && len <= MAX_REPLY && !parse_pocket(&p, text, len) &&
                   step.actions[0].kind == ACT_INFEASIBLE;
    step_free(&step);
    return missing;
}
