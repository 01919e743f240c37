/* messages.c - converts the messages of a request into the form of chat templates; see messages.h. */
#include "serve/messages.h"

#include "base/json.h"
#include "jinja/jinja.h"
#include "serve/body_text.h"
#include "serve/parts.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 64 << 20 };

struct settling {
    json_t *out;
    bool result_pictures;
    json_t *pictures;  /* images of tool results that cannot contain them; they go into the next user turn */
    struct buf system; /* leading system texts */
    bool leading;      /* only system messages so far */
    bool has_system;
    size_t at; /* number of the message, from 1 */
    struct notes *notes;
    int values; /* JSON values that argument texts may still have */
};

static bool is_role(const json_t *message, const char *role)
{
    const char *is = json_text(message, "role");
    return is && !strcmp(is, role);
}

/* ---- calls ------------------------------------------------------------------------------------------- */

/* Parses the text of arguments as an object; NULL if it is not one. *exact: no other text follows. */
static json_t *normalise(const char *text, struct settling *s, bool *exact)
{
    json_error_t why;
    size_t len = strlen(text);
    if (body_text_check(text, len, &s->values, NULL))
        return NULL;
    json_t *v = body_text_load(text, len, JSON_DECODE_ANY, s->notes, &why);
    *exact = v != NULL;
    v = v ? v : body_text_load(text, len, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, s->notes, &why);
    if (json_is_string(v)) { /* encoded twice */
        const char *again = json_string_value(v);
        bool large = body_text_check(again, strlen(again), &s->values, NULL);
        json_t *inner = large ? NULL : json_loads(again, 0, &why);
        json_decref(v);
        v = inner;
    }
    if (json_is_object(v))
        return v;
    json_decref(v);
    return NULL;
}

/* Returns the arguments of a call as a new object. */
static json_t *arguments_of(const json_t *given, struct settling *s, size_t call)
{
    const char *text = json_string_value(given);
    bool exact = true;
    if (json_is_object(given))
        return json_incref((json_t *)(uintptr_t)given);
    if (!given || json_is_null(given) || (text && !text[strspn(text, " \t\r\n")]))
        return json_object();
    json_t *v = text ? normalise(text, s, &exact) : NULL;
    if (v && !exact)
        notes_warn(s->notes, "message %zu: text after the arguments of call %zu is dropped", s->at, call);
    if (!v)
        notes_warn(s->notes, "message %zu: the arguments of call %zu are not a JSON object; {} is used",
                   s->at, call);
    return v ? v : json_object();
}

/* Converts a call; calls of custom tools have a single text in `input`. Returns NULL, with a warning, for a
 * call without a name. */
static json_t *call_of(const json_t *given, struct settling *s, size_t i)
{
    const json_t *f = json_object_get(given, "function"), *custom = json_object_get(given, "custom");
    f = json_is_object(f) ? f : json_is_object(custom) ? custom : given;
    const char *name = json_text(f, "name");
    json_t *id = json_object_get(given, "id"), *input = json_object_get(custom, "input");
    if (!name || !*name) {
        notes_warn(s->notes, "message %zu: call %zu has no name and is dropped", s->at, i);
        return NULL;
    }
    json_t *arguments =
        input ? json_pack("{s:O}", "input", input) : arguments_of(json_object_get(f, "arguments"), s, i);
    json_t *call = json_pack("{s:s, s:{s:s, s:o}}", "type", "function", "function", "name", name, "arguments",
                             arguments);
    if (json_is_string(id))
        json_object_set(call, "id", id);
    return call;
}

static void add_calls(json_t *message, const json_t *given, struct settling *s)
{
    const json_t *list = json_object_get(given, "tool_calls"), *old = json_object_get(given, "function_call");
    json_t *calls = json_array(), *call;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, call)
    {
        json_t *settled = call_of(call, s, i + 1);
        if (settled)
            json_array_append_new(calls, settled);
    }
    if (json_is_object(old) && !json_array_size(calls)) {
        json_t *settled = call_of(old, s, 1);
        if (settled)
            json_array_append_new(calls, settled);
    }
    if (json_array_size(calls))
        json_object_set(message, "tool_calls", calls);
    json_decref(calls);
}

/* ---- roles ------------------------------------------------------------------------------------------- */

/* Appends a message and takes ownership of its parts. */
static void append(struct settling *s, const char *role, json_t *parts)
{
    json_array_append_new(s->out, json_pack("{s:s, s:o}", "role", role, "content", parts));
}

/* Puts pending images of tool results at the beginning of a user turn. */
static void flush_pictures(struct settling *s, json_t *parts)
{
    if (!json_array_size(s->pictures))
        return;
    if (parts) {
        json_auto_t *own = json_copy(parts);
        json_array_clear(parts);
        json_array_extend(parts, s->pictures);
        json_array_extend(parts, own);
    } else {
        append(s, "user", json_copy(s->pictures));
    }
    json_array_clear(s->pictures);
}

static void end_leading(struct settling *s)
{
    if (!s->leading)
        return;
    s->leading = false;
    if (s->has_system) {
        json_t *text = json_stringn(s->system.data, s->system.len);
        json_array_append_new(s->out, json_pack("{s:s, s:o}", "role", "system", "content", text));
    }
}

static int add_system(struct settling *s, json_t *parts, struct err *e)
{
    json_auto_t *pictures = json_array();
    if (!s->leading) {
        flush_pictures(s, parts);
        append(s, "user", parts);
        return 0;
    }
    autofree char *text = parts_text(parts, pictures);
    int rc = json_array_size(pictures) ? err_set(e, ERR_USAGE, "system messages cannot contain images") : 0;
    buf_puts(&s->system, s->system.len && *text ? "\n\n" : "");
    buf_puts(&s->system, text);
    s->has_system = true;
    json_decref(parts);
    return rc;
}

static void add_user(struct settling *s, json_t *parts)
{
    flush_pictures(s, parts);
    append(s, "user", parts);
}

static void add_assistant(struct settling *s, const json_t *given, json_t *parts, const struct buf *thought)
{
    static const char *const keys[] = {"reasoning_content", "reasoning", "thinking"};
    flush_pictures(s, NULL);
    append(s, "assistant", parts);
    json_t *message = json_array_get(s->out, json_array_size(s->out) - 1);
    const char *text = thought->len ? thought->data : NULL;
    for (int i = 0; i < 3 && !text; i++)
        text = json_text(given, keys[i]);
    if (text && *text)
        json_object_set_new(message, "reasoning_content", json_string(text));
    add_calls(message, given, s);
}

static void add_result(struct settling *s, const json_t *given, json_t *parts)
{
    json_t *id = json_object_get(given, "tool_call_id");
    json_auto_t *pictures = json_array();
    autofree char *text = parts_text(parts, pictures);
    bool inside = s->result_pictures && json_array_size(pictures);
    json_t *content = inside ? json_incref(parts) : json_string(text);
    json_t *message = json_pack("{s:s, s:o}", "role", "tool", "content", content);
    if (!inside)
        json_array_extend(s->pictures, pictures);
    if (json_is_string(id))
        json_object_set(message, "tool_call_id", id);
    json_array_append_new(s->out, message);
    json_decref(parts);
}

/* ---- the list ---------------------------------------------------------------------------------------- */

/* Returns the template's name for a role, or NULL. */
static const char *role_of(const json_t *message)
{
    static const char *const names[][2] = {{"system", "system"}, {"developer", "system"},
                                           {"user", "user"},     {"assistant", "assistant"},
                                           {"tool", "tool"},     {"function", "tool"}};
    const char *role = json_text(message, "role");
    for (size_t i = 0; role && i < sizeof names / sizeof *names; i++)
        if (!strcmp(role, names[i][0]))
            return names[i][1];
    return NULL;
}

/* Reads the content of a message; for a tool it may be any JSON value. */
static json_t *content_of(const json_t *given, const char *role, struct buf *thought, struct notes *n,
                          struct err *e)
{
    const json_t *content = json_object_get(given, "content");
    bool typed = json_is_object(content) && json_object_get(content, "type");
    if (strcmp(role, "tool") != 0 || json_is_string(content) || json_is_array(content) || typed || !content ||
        json_is_null(content))
        return parts_read(content, thought, n, e);
    autofree char *text = jinja_json_text(content);
    return json_pack("[o]", parts_new_text(text));
}

static int settle_one(struct settling *s, const json_t *given, struct err *e)
{
    const char *role = role_of(given), *is = json_text(given, "role");
    const json_t *audio = json_object_get(given, "audio"), *name = json_object_get(given, "name");
    struct buf thought;
    if (!role)
        return err_set(e, ERR_USAGE,
                       "invalid 'role': must be system, developer, user, assistant or tool%s%.40s%s",
                       is ? ", not '" : "", is ? is : "", is ? "'" : "");
    if (audio && !json_is_null(audio))
        return err_set(e, ERR_USAGE, "'audio' refers to an earlier reply, and replies are not stored");
    if (name && !json_is_null(name) && strcmp(role, "tool") != 0)
        notes_ignore(s->notes, "messages.name");
    buf_init(&thought, TEXT_MAX);
    json_t *parts = content_of(given, role, &thought, s->notes, e);
    int rc = parts ? 0 : -1;
    if (parts && strcmp(role, "system") != 0)
        end_leading(s);
    if (!parts)
        ;
    else if (!strcmp(role, "system"))
        rc = add_system(s, parts, e);
    else if (!strcmp(role, "user"))
        add_user(s, parts);
    else if (!strcmp(role, "assistant"))
        add_assistant(s, given, parts, &thought);
    else
        add_result(s, given, parts);
    buf_free(&thought);
    return rc;
}

/* Returns whether a message has non-empty text or an image. */
static bool has_content(const json_t *message)
{
    json_t *content = json_object_get(message, "content"), *part;
    size_t i;
    json_array_foreach(content, i,
                       part) if (!json_text(part, "text") || *json_text(part, "text")) return true;
    return json_string_length(content) > 0;
}

static void settle_end(struct settling *s)
{
    bool only_system = s->leading && s->has_system;
    end_leading(s);
    flush_pictures(s, NULL);
    size_t n = json_array_size(s->out);
    json_t *last = json_array_get(s->out, n - 1);
    if (only_system)
        json_object_set_new(last, "role", json_string("user"));
    if (n > 1 && is_role(last, "assistant") && !has_content(last) && !json_object_get(last, "tool_calls"))
        json_array_remove(s->out, n - 1);
}

int messages_settle(json_t *root, bool result_pictures, struct notes *n, struct err *e)
{
    const json_t *list = json_object_get(root, "messages");
    struct settling s = {.out = json_array(),
                         .pictures = json_array(),
                         .result_pictures = result_pictures,
                         .leading = true,
                         .notes = n,
                         .values = BODY_VALUES};
    json_t *given;
    size_t i;
    int rc = 0;
    buf_init(&s.system, TEXT_MAX);
    json_array_foreach((json_t *)(uintptr_t)list, i, given)
    {
        struct err why = ERR_INIT;
        s.at = i + 1;
        if (settle_one(&s, given, &why)) {
            rc = err_set(e, why.kind, "message %zu: %s", i + 1, why.text);
            break;
        }
    }
    if (rc == 0 && json_array_size(list)) {
        settle_end(&s);
        json_object_set(root, "messages", s.out);
    }
    buf_free(&s.system);
    json_decref(s.pictures);
    json_decref(s.out);
    return rc;
}
