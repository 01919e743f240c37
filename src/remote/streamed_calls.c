/* streamed_calls.c - joins the streamed pieces of a reply's tool calls.
 *
 * During streaming, each call has a member PLACE with the index that the server gives it. A piece belongs to
 * the newest call with the same index, else with the same id, else to the newest call. If the piece has an id
 * or a name that this call cannot accept any more, it starts a new call. */
#include "remote/streamed_calls.h"

#include "base/err.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 16 };

#define PLACE  "(index)"
#define PARTS  "(parts)"  /* true: the arguments came in parts */
#define AGAIN  "(again)"  /* true: the name came again after the arguments */
#define LEGACY "(legacy)" /* true: of a "function_call" */

struct piece {
    const char *id, *name, *text; /* "" if missing */
    char *owned;                  /* the arguments, if they came as a JSON value instead of a string */
    json_int_t place;             /* -1: none */
    bool whole, first;            /* the call is of a complete message; it is the first in its array */
};

/* Returns the string of a member, or "". */
static const char *call_text(const json_t *object, const char *key)
{
    const char *text = json_text(object, key);
    return text ? text : "";
}

static void set_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_string(text));
}

static bool is_complete(const char *text)
{
    size_t n = strlen(text);
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    json_auto_t *v = n && text[n - 1] == '}' ? json_loads(text, 0, NULL) : NULL;
    return json_is_object(v);
}

/* ---- matching pieces to calls ----------------------------------------------------------------------- */

static json_t *newest_with(const json_t *calls, const struct piece *p, bool by_id)
{
    for (size_t i = json_array_size(calls); i-- > 0;) {
        json_t *call = json_array_get(calls, i);
        if (by_id ? !strcmp(call_text(call, "id"), p->id)
                  : json_integer_value(json_object_get(call, PLACE)) == p->place)
            return call;
    }
    return NULL;
}

static json_t *call_at_place(const json_t *calls, const struct piece *p)
{
    json_t *found = p->place >= 0 ? newest_with(calls, p, false) : NULL;
    if (!found && *p->id)
        found = newest_with(calls, p, true);
    if (!found && p->place < 0 && !*p->id)
        found = json_array_get(calls, json_array_size(calls) - 1);
    return found;
}

static bool equal_arguments(const char *a, const char *b)
{
    json_auto_t *one = json_loads(a, 0, NULL), *two = json_loads(b, 0, NULL);
    return one && json_equal(one, two);
}

/* Returns whether a piece that names a complete call repeats this call instead of starting a second one: it
 * has the same id, or the call came in parts and the piece is all of it. */
static bool repeats(const json_t *call, const struct piece *p)
{
    bool same_id = *p->id && !strcmp(p->id, call_text(call, "id"));
    return !strcmp(p->name, call_text(call, "name")) && (same_id || json_object_get(call, PARTS)) &&
           equal_arguments(p->text, call_text(call, "arguments"));
}

/* Returns whether a streamed piece starts a new call instead of continuing the one at its index. */
static bool opens_another(const json_t *call, const struct piece *p)
{
    const char *id = call_text(call, "id"), *name = call_text(call, "name"),
               *text = call_text(call, "arguments");
    bool named = *p->name && *name, other_name = named && strcmp(p->name, name) != 0;
    bool bare = p->place < 0 && !*p->id;
    if (bare && named && (!p->first || (other_name && !*text)))
        return true;
    if (*p->id && *id && strcmp(p->id, id) != 0)
        return *p->name || is_complete(text);
    if (!named && !json_object_get(call, AGAIN))
        return false;
    return is_complete(text) && (other_name || (*p->text && !repeats(call, p)));
}

/* Inserts a call before those with a larger index and returns it. */
static json_t *open_call(json_t *calls, const struct piece *p)
{
    size_t at = json_array_size(calls);
    json_int_t place = p->place;
    if (at >= MAX_CALLS)
        return NULL;
    if (place < 0)
        place = at ? json_integer_value(json_object_get(json_array_get(calls, at - 1), PLACE)) + 1 : 0;
    while (at > 0 && json_integer_value(json_object_get(json_array_get(calls, at - 1), PLACE)) > place)
        at--;
    json_t *call = json_pack("{s:s, s:s, s:s, s:I}", "id", "", "name", "", "arguments", "", PLACE, place);
    json_array_insert_new(calls, at, call);
    return call;
}

/* ---- members ---------------------------------------------------------------------------------------- */

static void append(json_t *call, const char *key, const char *more)
{
    autofree char *text = xasprintf("%s%s", call_text(call, key), more);
    set_text(call, key, text);
}

static void take(json_t *call, const struct piece *p)
{
    const char *name = call_text(call, "name"), *text = call_text(call, "arguments");
    bool complete = is_complete(text);
    if (*p->id && !*call_text(call, "id"))
        set_text(call, "id", p->id);
    if (complete && *p->name && !*p->text)
        json_object_set_new(call, AGAIN, json_true());
    if (*p->name && !*name)
        set_text(call, "name", p->name);
    else if (*p->name && strcmp(p->name, name) != 0 && !*text && !strncmp(p->name, name, strlen(name)))
        set_text(call, "name", p->name); /* repeats and extends the name, as "cli", "click" */
    else if (*p->name && strcmp(p->name, name) != 0 && !*text)
        append(call, "name", p->name); /* sends the name in parts, as "cli", "ck" */
    if (*p->text && p->whole && (is_complete(p->text) || !*text)) {
        set_text(call, "arguments", p->text);
    } else if (*p->text && !p->whole && !complete) {
        if (*text)
            json_object_set_new(call, PARTS, json_true());
        append(call, "arguments", p->text);
    }
}

/* Returns the streamed call that item i of a complete message repeats; such a message has them in the same
 * order. */
static json_t *call_of_message(json_t *calls, const struct piece *p, size_t i)
{
    for (size_t k = i; k < json_array_size(calls); k++) {
        json_t *at = json_array_get(calls, k);
        const char *id = call_text(at, "id"), *name = call_text(at, "name");
        bool same_id = !*p->id || !*id || !strcmp(p->id, id);
        if (same_id && (!*p->name || !*name || !strcmp(p->name, name)))
            return at;
    }
    return open_call(calls, p);
}

static json_t *call_of_stream(json_t *calls, const struct piece *p)
{
    json_t *call = call_at_place(calls, p), *named = *p->id ? newest_with(calls, p, true) : NULL;
    call = named && strcmp(call_text(call, "id"), p->id) != 0 ? named : call;
    if (call && !opens_another(call, p))
        return call;
    json_t *fresh = open_call(calls, p);
    if (fresh && call && !*p->name && json_object_get(call, AGAIN))
        set_text(fresh, "name", call_text(call, "name"));
    return fresh;
}

static void add_piece(json_t *calls, const struct piece *p, size_t i)
{
    json_t *call = p->whole ? call_of_message(calls, p, i) : call_of_stream(calls, p);
    if (call)
        take(call, p);
}

/* ---- pieces ----------------------------------------------------------------------------------------- */

/* Returns a call's index, a number or a string with a number; -1 if it is missing or negative. */
static json_int_t place_of(const json_t *call)
{
    const json_t *index = json_object_get(call, "index");
    const char *text = json_string_value(index);
    char *end = NULL;
    json_int_t at = json_is_integer(index) ? json_integer_value(index)
                    : text && *text        ? (json_int_t)strtol(text, &end, 10)
                                           : -1;
    return at >= 0 && at < 1 << 20 && !(end && *end) ? at : -1;
}

static void read_arguments(struct piece *p, const json_t *function)
{
    static const char *const members[] = {"arguments", "parameters", "input"};
    const json_t *v = NULL;
    for (size_t i = 0; !v && i < sizeof members / sizeof *members; i++)
        v = json_object_get(function, members[i]);
    if (json_is_object(v) || json_is_array(v))
        p->owned = json_dumps(v, JSON_COMPACT);
    p->text = p->owned ? p->owned : json_is_string(v) ? json_string_value(v) : "";
}

static void add_call(json_t **calls, const json_t *call, const json_t *function, size_t i, bool whole)
{
    struct piece p = {.id = call_text(call, "id"),
                      .name = call_text(function, "name"),
                      .place = place_of(call),
                      .whole = whole,
                      .first = i == 0};
    *calls = *calls ? *calls : json_array();
    read_arguments(&p, function);
    if (*p.id || *p.name || *p.text)
        add_piece(*calls, &p, i);
    free(p.owned);
}

void streamed_calls_add(json_t **calls, json_t *pieces, bool whole)
{
    json_t *call;
    size_t i;
    if (json_is_object(pieces)) { /* one call without a list */
        json_t *f = json_object_get(pieces, "function");
        add_call(calls, pieces, f ? f : pieces, 0, whole);
        return;
    }
    json_array_foreach(pieces, i, call)
    {
        json_t *f = json_object_get(call, "function");
        add_call(calls, call, json_is_object(f) ? f : call, i, whole);
    }
}

void streamed_calls_add_legacy(json_t **calls, json_t *function, bool whole)
{
    json_t *first = json_array_get(*calls, 0);
    if (!json_is_object(function) || (first && !json_object_get(first, LEGACY)))
        return;
    add_call(calls, NULL, function, 0, whole);
    json_t *call;
    size_t i;
    json_array_foreach(*calls, i, call) json_object_set_new(call, LEGACY, json_true());
}

void streamed_calls_end(json_t **calls)
{
    for (size_t i = json_array_size(*calls); i-- > 0;) {
        json_t *call = json_array_get(*calls, i);
        json_object_del(call, PLACE);
        json_object_del(call, PARTS);
        json_object_del(call, AGAIN);
        json_object_del(call, LEGACY);
        if (!*call_text(call, "name") && !*call_text(call, "arguments"))
            json_array_remove(*calls, i);
    }
    if (!json_array_size(*calls)) {
        json_decref(*calls);
        *calls = NULL;
    }
}
