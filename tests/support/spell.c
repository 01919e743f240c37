/* spell.c - see spell.h. */
#include "spell.h"

#include "actions/syntax.h"
#include "actions/tools.h"
#include "base/buf.h"
#include "base/image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spelling {
    const struct dialect *d;
    const struct want *w;
    int width, height;
};

/* ---- values ------------------------------------------------------------------------------------- */

static json_t *coord(const struct spelling *s, int v, bool vertical)
{
    int size = vertical ? s->height : s->width;
    switch (s->d->coords) {
    case COORD_NORM1000:
        return json_integer((v * 1000 + size / 2) / size);
    case COORD_NORM1:
        return json_real((double)v / size);
    case COORD_NATIVE:
        return json_integer((long long)ceil(v * image_native_scale(s->width, s->height, 1024)));
    case COORD_PIXEL:
        break;
    case COORD_PX28:
    case COORD_FIT: {
        int w = s->width, h = s->height;
        dialect_picture_size(s->d->coords, &w, &h);
        int shown = vertical ? h : w;
        return json_integer((v * shown + size - 1) / size);
    }
    }
    return json_integer(v);
}

static json_t *point(const struct spelling *s, int x, int y)
{
    json_t *list = json_array();
    json_array_append_new(list, coord(s, x, false));
    json_array_append_new(list, coord(s, y, true));
    return list;
}

static json_t *path(const struct spelling *s)
{
    const struct want *w = s->w;
    return json_pack("[{s:o,s:o},{s:o,s:o}]", "x", coord(s, w->x, false), "y", coord(s, w->y, true), "x",
                     coord(s, w->x2, false), "y", coord(s, w->y2, true));
}

static json_t *key_list(const char *keys)
{
    json_t *list = json_array();
    for (const char *p = keys; *p; p += *p == '+') {
        size_t n = strcspn(p, "+");
        json_array_append_new(list, json_stringn(p, n));
        p += n;
    }
    return list;
}

/* Returns the value of an argument; NULL: omitted. */
static json_t *value_of(const struct spelling *s, const struct tool_arg *a)
{
    const struct want *w = s->w;
    switch (a->id) {
    case P_ELEMENT:
        return a->hidden ? NULL : json_string(w->element ? w->element : "the middle of it");
    case P_X:
    case P_Y:
        return w->x ? coord(s, a->id == P_X ? w->x : w->y, a->id == P_Y) : NULL;
    case P_X2:
    case P_Y2:
        return w->x2 ? coord(s, a->id == P_X2 ? w->x2 : w->y2, a->id == P_Y2) : NULL;
    case P_POINT:
        return w->x ? point(s, w->x, w->y) : NULL;
    case P_POINT2:
        return w->x2 ? point(s, w->x2, w->y2) : NULL;
    case P_PATH:
        return w->x2 ? path(s) : NULL;
    case P_TEXT:
        return w->text ? json_string(w->text) : NULL;
    case P_KEY:
        return w->keys ? json_string(w->keys) : NULL;
    case P_KEYS:
        return w->keys ? key_list(w->keys) : NULL;
    case P_BUTTON:
        return json_string(w->button != 2 ? "left" : strstr(a->values, "middle") ? "middle" : "wheel");
    case P_DIRECTION:
        return json_string("down");
    case P_AMOUNT:
    case P_SECONDS:
    case P_SCROLL_Y:
        return json_integer(2);
    case P_SCROLL_X:
        return json_integer(0);
    default:
        return NULL;
    }
}

/* ---- tool --------------------------------------------------------------------------------------- */

static bool takes(const struct tool *t, enum param_id id)
{
    for (int i = 0; i < t->nargs; i++)
        if (t->args[i].id == id)
            return true;
    return false;
}

static bool fits(const struct spelling *s, const struct tool *t)
{
    const struct want *w = s->w;
    const char *button = json_string_value(json_object_get(t->with, "button"));
    bool placed = takes(t, P_X) || takes(t, P_POINT) || takes(t, P_PATH);
    bool ends = takes(t, P_X2) || takes(t, P_POINT2) || takes(t, P_PATH);
    bool chord = w->keys && strchr(w->keys, '+');
    if (t->kind != w->kind || json_object_get(t->with, "count") || (w->x && !placed) || (w->x2 && !ends))
        return false;
    if (w->button == 2 ? !takes(t, P_BUTTON) && (!button || strcmp(button, "middle") != 0) : button != NULL)
        return false;
    if (chord && syntax_is(s->d, "pyautogui") && !takes(t, P_KEYS))
        return false;
    for (int i = 0; i < t->nargs; i++) {
        json_t *v = value_of(s, &t->args[i]);
        bool missing = t->args[i].required && !v;
        json_decref(v);
        if (missing)
            return false;
    }
    return true;
}

static const struct tool *tool_for(const struct spelling *s)
{
    for (int hidden = 0; hidden < 2; hidden++) /* prefers tools that are offered */
        for (int i = 0; i < s->d->tools->n; i++)
            if (s->d->tools->list[i].hidden == hidden && fits(s, &s->d->tools->list[i]))
                return &s->d->tools->list[i];
    return NULL;
}

static json_t *arguments(const struct spelling *s, const struct tool *t)
{
    json_t *args = json_object();
    for (int i = 0; i < t->nargs; i++) {
        json_t *v = value_of(s, &t->args[i]);
        if (v)
            json_object_set_new(args, t->args[i].name, v);
    }
    return args;
}

/* ---- syntaxes ----------------------------------------------------------------------------------- */

/* name(a='...', b=0.5): strings in single quotes for UI-TARS, as JSON for Python. */
static char *as_call(const struct spelling *s, const struct tool *t, json_t *args)
{
    struct buf b;
    const char *key;
    json_t *v;
    int n = 0;
    bool script = syntax_is(s->d, "pyautogui");
    buf_init(&b, 1 << 16);
    buf_printf(&b, "%s(", t->name);
    json_object_foreach(args, key, v)
    {
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        bool keys = script && json_is_array(v);
        buf_puts(&b, n++ ? ", " : "");
        if (keys) {
            buf_printf(&b, "%.*s", (int)strlen(text) - 2, text + 1);
        } else if (script) {
            buf_printf(&b, "%s=%s", key, text);
        } else if (json_is_array(v)) {
            buf_printf(&b, "%s='(%lld,%lld)'", key, json_integer_value(json_array_get(v, 0)),
                       json_integer_value(json_array_get(v, 1)));
        } else {
            buf_printf(&b, "%s='", key);
            for (const char *c = json_string_value(v); c && *c; c++)
                buf_puts(&b, *c == '\n'                     ? "\\n"
                             : *c == '\t'                   ? "\\t"
                             : *c == '+' && takes(t, P_KEY) ? " "
                                                            : (char[]){*c, 0});
            buf_putc(&b, '\'');
        }
        free(text);
    }
    buf_putc(&b, ')');
    char *out = buf_take(&b);
    buf_free(&b);
    return out;
}

/* Writes the patch of a pixel, and the eighth of the patch. */
static void pocket_place(const struct spelling *s, int x, int y, char out[64])
{
    double scale = image_native_scale(s->width, s->height, 1024);
    int px = (int)(x * scale), py = (int)(y * scale);
    snprintf(out, 64, "<at><%d><.%d><%d><.%d>", px / 16, px % 16 / 2, py / 16, py % 16 / 2);
}

static char *as_pocket(const struct spelling *s, const char *thought)
{
    const struct want *w = s->w;
    const char *element = w->element ? w->element : "the middle of it";
    char place[64], end[64];
    pocket_place(s, w->x, w->y, place);
    pocket_place(s, w->x2, w->y2, end);
    if (w->kind == ACT_KEY)
        return xasprintf("%.30s<key>%s", thought, w->keys);
    if (w->kind == ACT_DRAG)
        return xasprintf("%.30s<drag>%s%s<to>%s", thought, element, place, end);
    if (w->kind == ACT_CLICK && w->x && !w->button)
        return xasprintf("%.30s<click>%s%s", thought, element, place);
    if (w->kind == ACT_TYPE && w->x && w->text && *w->text && !strpbrk(w->text, "\n\t"))
        return xasprintf("%.30s<write>%s%s%s", thought, element, place, w->text);
    return NULL;
}

static char *as_json(const struct spelling *s, const struct tool *t, json_t *args, const char *thought)
{
    const struct dialect *d = s->d;
    json_t *call = json_object(), *whole = call;
    const char *tag = syntax_is(d, "holo3") ? "tool_name" : syntax_is(d, "openai") ? "type" : "action";
    if (syntax_is(d, "function") || syntax_is(d, "xml")) {
        whole = json_pack("{s:s, s:O}", "name", t->name, "arguments", args);
        json_decref(call);
    } else {
        json_object_set_new(call, tag, json_string(t->name));
        json_object_update(call, args);
    }
    if (syntax_is(d, "holo3") || syntax_is(d, "holo1"))
        whole = json_pack("{s:n, s:s, s:o}", "note", "thought", thought,
                          syntax_is(d, "holo3") ? "tool_call" : "action", call);
    char *text = json_dumps(whole, 0);
    json_decref(whole);
    if (syntax_is(d, "qwen")) {
        char *named = xasprintf(
            "Action: %s\n<tool_call>\n{\"name\": \"computer_use\", \"arguments\": %s}\n</tool_call>", thought,
            text);
        free(text);
        return named;
    }
    return text;
}

/* pyautogui drags from the pointer's position. */
static char *as_two_calls(const struct spelling *s, const char *thought)
{
    const struct want *w = s->w;
    return xasprintf(
        "## Action:\n%s\n## Code:\n```python\npyautogui.moveTo(x=%.4f, y=%.4f)\npyautogui.dragTo(x=%.4f, "
        "y=%.4f)\n```",
        thought, (double)w->x / s->width, (double)w->y / s->height, (double)w->x2 / s->width,
        (double)w->y2 / s->height);
}

char *spell_reply(const struct dialect *d, const struct want *w, const char *thought, int width, int height)
{
    struct spelling s = {d, w, width, height};
    if (syntax_is(d, "pocket"))
        return as_pocket(&s, thought);
    if (syntax_is(d, "pyautogui") && w->kind == ACT_DRAG)
        return as_two_calls(&s, thought);
    const struct tool *t = tool_for(&s);
    if (!t)
        return NULL;
    json_t *args = arguments(&s, t);
    char *out;
    if (syntax_is(d, "uitars") || syntax_is(d, "pyautogui")) {
        char *call = as_call(&s, t, args);
        out = syntax_is(d, "uitars")
                  ? xasprintf("Thought: %s\nAction: %s", thought, call)
                  : xasprintf("## Action:\n%s\n## Code:\n```python\n%s\n```", thought, call);
        free(call);
    } else {
        out = as_json(&s, t, args, thought);
    }
    json_decref(args);
    return out;
}
