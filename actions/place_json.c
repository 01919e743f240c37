/* place_json.c - finds the places in a JSON value. */
#include "actions/place_impl.h"

#include <string.h>
#include <strings.h>

static const struct place absent = {.absent = true};

/* ---- numbers ------------------------------------------------------------------------------------- */

/* Appends a number, or a string that contains one; returns false for other values. */
static bool add_number(const json_t *v, struct place_numbers *n)
{
    struct place_numbers one = {0};
    if (json_is_string(v)) {
        if (!place_numbers(json_string_value(v), json_string_length(v), &one) || one.n != 1)
            return false;
    } else if (json_is_number(v)) {
        one = (struct place_numbers){1, {json_number_value(v)}, {json_is_real(v)}};
    } else {
        return false;
    }
    if (n->n < PLACE_MAX_NUMBERS) {
        n->v[n->n] = one.v[0];
        n->real[n->n] = one.real[0];
    }
    n->n++;
    return true;
}

/* Reads a list of numbers only, at least one; returns false for other values. */
static bool list_numbers(const json_t *list, struct place_numbers *n)
{
    size_t i;
    json_t *one;
    *n = (struct place_numbers){0};
    json_array_foreach((json_t *)list, i, one)
    {
        if (!add_number(one, n))
            return false;
    }
    return n->n > 0;
}

static void swap_axes(struct place_numbers *n)
{
    for (int i = 0; i + 1 < n->n && i < 4; i += 2) {
        double v = n->v[i];
        bool real = n->real[i];
        n->v[i] = n->v[i + 1];
        n->real[i] = n->real[i + 1];
        n->v[i + 1] = v;
        n->real[i + 1] = real;
    }
}

static json_t *member(const json_t *object, const char *name)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)object, key, v)
    {
        if (!strcasecmp(key, name))
            return v;
    }
    return NULL;
}

/* ---- the value of a place's key ------------------------------------------------------------------ */

static bool has_word(const char *key, const char *word)
{
    return strcasestr(key, word) != NULL;
}

/* Reads two corners, [[x1, y1], [x2, y2]], of a box. */
static bool corners(const char *key, const json_t *list, struct place_numbers *n)
{
    struct place_numbers second;
    if (!has_word(key, "box") || json_array_size(list) != 2 || !list_numbers(json_array_get(list, 0), n) ||
        !list_numbers(json_array_get(list, 1), &second) || n->n != 2 || second.n != 2)
        return false;
    memcpy(n->v + 2, second.v, 2 * sizeof *n->v);
    memcpy(n->real + 2, second.real, 2 * sizeof *n->real);
    n->n = 4;
    return true;
}

static void scan_string(struct place_finder *f, const char *s, size_t len)
{
    struct place_finder inner = {.reason = ERR_INIT, .depth = f->depth, .tries = f->tries};
    if (!len || place_says_absent(s, len)) {
        place_found(f, RANK_MARKED, &absent);
        return;
    }
    place_scan(&inner, s, len);
    f->tries = inner.tries;
    if (inner.bad || (!inner.rank && *inner.reason.text))
        place_refused(f, RANK_MARKED, "%s", inner.reason.text);
    else if (!inner.rank)
        place_refused(f, RANK_MARKED, "expected two numbers x, y or a box of four");
    else
        place_found(f, RANK_MARKED, &inner.found);
    if (inner.several)
        place_found(f, RANK_MARKED, &inner.other);
}

static void scan_list(struct place_finder *f, const char *key, const json_t *list)
{
    struct place_numbers n;
    size_t i;
    json_t *one;
    if (!json_array_size(list)) {
        place_found(f, RANK_MARKED, &absent);
    } else if (list_numbers(list, &n) || corners(key, list, &n)) {
        if (!strcasecmp(key, "box_2d"))
            swap_axes(&n);
        place_from_numbers(f, RANK_MARKED, &n);
    } else {
        json_array_foreach((json_t *)list, i, one) place_scan_member(f, key, one);
    }
}

void place_scan_member(struct place_finder *f, const char *key, const json_t *v)
{
    if (++f->depth > PLACE_MAX_DEPTH)
        place_refused(f, RANK_MARKED, "it is nested more than %d deep", PLACE_MAX_DEPTH);
    else if (json_is_string(v))
        scan_string(f, json_string_value(v), json_string_length(v));
    else if (json_is_array(v))
        scan_list(f, key, v);
    else if (json_is_object(v) && json_object_size(v)) {
        place_scan_json(f, v);
        if (!f->rank)
            place_refused(f, RANK_MARKED, "expected two numbers x, y or a box of four");
    } else if (json_is_number(v))
        place_refused(f, RANK_MARKED, "it has 1 number; a position has two, a box has four");
    else
        place_found(f, RANK_MARKED, &absent);
    f->depth--;
}

/* ---- objects ------------------------------------------------------------------------------------- */

static bool is_null(const json_t *v)
{
    return json_is_null(v) ||
           (json_is_string(v) && place_says_absent(json_string_value(v), json_string_length(v)));
}

/* {"left": ..., "top": ..., "width": ..., "height": ...}: Reads a box with a size instead of the far
 * corner. */
static bool sized_box(const json_t *o, const json_t *x, const json_t *y, struct place_numbers *n)
{
    json_t *w = member(o, "width"), *h = member(o, "height");
    *n = (struct place_numbers){0};
    if (!(w = w ? w : member(o, "w")) || !(h = h ? h : member(o, "h")))
        return false;
    if (!add_number(x, n) || !add_number(y, n) || !add_number(w, n) || !add_number(h, n))
        return false;
    n->v[2] += n->v[0];
    n->v[3] += n->v[1];
    return true;
}

/* {"x": ..., "y": ...}, also with a size, with [min, max] for each, or with a whole place under x. */
static void scan_axes(struct place_finder *f, const json_t *o, const json_t *x, const json_t *y)
{
    struct place_numbers n, nx, ny;
    if (y && is_null(x) && is_null(y)) {
        place_found(f, RANK_MARKED, &absent);
        return;
    }
    if (!y && (json_is_array(x) || json_is_string(x))) {
        place_scan_member(f, "x", x);
        return;
    }
    if (sized_box(o, x, y, &n)) {
        place_from_numbers(f, RANK_MARKED, &n);
        return;
    }
    n = (struct place_numbers){0};
    if (json_is_array(x) && list_numbers(x, &nx) && list_numbers(y, &ny) && nx.n == 2 && ny.n == 2)
        n = (struct place_numbers){
            4, {nx.v[0], ny.v[0], nx.v[1], ny.v[1]}, {nx.real[0], ny.real[0], nx.real[1], ny.real[1]}};
    else if (!add_number(x, &n) || !add_number(y, &n)) {
        place_refused(f, RANK_MARKED, "'x' and 'y' must be numbers");
        return;
    }
    place_from_numbers(f, RANK_MARKED, &n);
}

/* Four members that are the sides of a box. */
static bool scan_sides(struct place_finder *f, const json_t *o)
{
    static const char *const names[][4] = {{"x1", "y1", "x2", "y2"},
                                           {"x0", "y0", "x1", "y1"},
                                           {"left", "top", "right", "bottom"},
                                           {"xmin", "ymin", "xmax", "ymax"},
                                           {"x_min", "y_min", "x_max", "y_max"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct place_numbers n = {0};
        int k = 0;
        while (k < 4 && add_number(member(o, names[i][k]), &n))
            k++;
        bool sized = k == 2 && sized_box(o, member(o, names[i][0]), member(o, names[i][1]), &n);
        if (k == 4 || sized || (k == 2 && i == 0 && !member(o, "x2") && !member(o, "x0"))) {
            place_from_numbers(f, RANK_MARKED, &n);
            return true;
        }
    }
    return false;
}

/* Returns whether a value describes a position without numbers, or an action: "location": "top right",
 * "clicks": 2. */
static bool describes(const char *key, const json_t *v)
{
    const char *s = json_string_value(v);
    struct place_numbers n;
    bool soft = has_word(key, "click") || has_word(key, "position") || has_word(key, "location") ||
                has_word(key, "place");
    if (s)
        return !place_says_absent(s, strlen(s)) && *s &&
               (!strpbrk(s, "0123456789") || (soft && !place_numbers(s, strlen(s), &n)));
    return json_is_boolean(v) || (soft && json_is_number(v));
}

/* Scans the members whose names announce a place; points precede boxes, which the same object may have,
 * too. */
static bool scan_members(struct place_finder *f, const json_t *o, bool boxes)
{
    const char *key;
    json_t *v;
    bool any = false;
    json_object_foreach((json_t *)o, key, v)
    {
        if (place_is_name(key, strlen(key)) && has_word(key, "box") == boxes && !describes(key, v)) {
            place_scan_member(f, key, v);
            any = true;
        }
    }
    return any;
}

static bool says_not_found(const json_t *o)
{
    static const char *const names[] = {"found", "visible", "present", "exists", NULL};
    static const char *const words[] = {"status", "result", "answer", "error", NULL};
    for (const char *const *n = names; *n; n++)
        if (json_is_false(member(o, *n)))
            return true;
    for (const char *const *n = words; *n; n++) {
        const json_t *v = member(o, *n);
        if (json_is_string(v) && place_says_absent(json_string_value(v), json_string_length(v)))
            return true;
    }
    return false;
}

static void scan_object(struct place_finder *f, const json_t *o)
{
    static const char *const axes[][2] = {
        {"x", "y"},   {"center_x", "center_y"}, {"x_center", "y_center"},
        {"cx", "cy"}, {"x_coord", "y_coord"},   {"x_coordinate", "y_coordinate"}};
    const json_t *x = NULL, *y = NULL;
    const char *key;
    json_t *v;
    for (size_t i = 0; i < sizeof axes / sizeof *axes && !x && !y; i++) {
        x = member(o, axes[i][0]);
        y = member(o, axes[i][1]);
    }
    if (says_not_found(o)) {
        place_found(f, RANK_MARKED, &absent);
    } else if (x || y) {
        scan_axes(f, o, x, y);
    } else if (scan_members(f, o, false) || scan_members(f, o, true) || scan_sides(f, o)) {
        return;
    } else {
        json_object_foreach((json_t *)o, key, v)
        {
            const char *s = json_string_value(v);
            if (json_is_object(v) || json_is_array(v))
                place_scan_json(f, v);
            else if (s && *s == '{')
                place_scan(f, s, json_string_length(v));
        }
    }
}

void place_scan_json(struct place_finder *f, const json_t *v)
{
    struct place_numbers n;
    size_t i;
    json_t *one;
    if (++f->depth > PLACE_MAX_DEPTH)
        place_refused(f, RANK_MARKED, "it is nested more than %d deep", PLACE_MAX_DEPTH);
    else if (json_is_object(v))
        scan_object(f, v);
    else if (json_is_null(json_array_get(v, 0)) && json_array_size(v) > 1)
        place_found(f, RANK_BRACKETS, &absent);
    else if (list_numbers(v, &n))
        place_from_numbers(f, n.n == 2 || n.n == 4 ? RANK_BRACKETS : RANK_WORDS, &n);
    else
        json_array_foreach((json_t *)v, i, one)
        {
            const char *s = json_string_value(one);
            if (json_is_object(one) || json_is_array(one))
                place_scan_json(f, one);
            else if (s)
                place_scan(f, s, json_string_length(one));
        }
    f->depth--;
}
