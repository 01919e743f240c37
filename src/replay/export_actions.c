/* export_actions.c - converts actions to pyautogui calls: the column `python` of the table of actions. */
#include "replay/export.h"

#include "actions/registry.h"
#include "base/buf.h"

#include <ctype.h>
#include <string.h>

enum { WORDS_MAX = 1 << 20 };

/* Returns the pyautogui name of an X keysym. */
static const char *key_name(const char *x, char out[32])
{
    /* clang-format off */
    static const char *const known[][2] = {
        {"Control_L", "ctrl"}, {"Control_R", "ctrlright"}, {"Shift_L", "shift"}, {"Shift_R", "shiftright"},
        {"Alt_L", "alt"}, {"Alt_R", "altright"}, {"Super_L", "win"}, {"Super_R", "winright"},
        {"Return", "enter"}, {"Escape", "esc"}, {"BackSpace", "backspace"}, {"Delete", "delete"},
        {"Prior", "pageup"}, {"Next", "pagedown"}, {"space", "space"}, {"Print", "printscreen"},
        {"Page_Up", "pageup"}, {"Page_Down", "pagedown"}, {"Caps_Lock", "capslock"}, {"Menu", "apps"},
        {"plus", "+"}, {"minus", "-"}, {"comma", ","}, {"period", "."}, {"slash", "/"}, {"backslash", "\\"},
        {"equal", "="}, {"semicolon", ";"},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i][0], x))
            return known[i][1];
    snprintf(out, 32, "%s", x);
    for (char *p = out; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return out;
}

/* Appends a Python string literal. Every JSON string is one. */
static void put_literal(struct buf *b, const char *s)
{
    buf_put_json(b, s, strlen(s));
}

static void put_keys(struct buf *b, const json_t *keys, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < json_array_size(keys); i++) {
        char name[32];
        const char *x = json_string_value(json_array_get(keys, i));
        buf_puts(b, i > from ? ", " : "");
        put_literal(b, key_name(x ? x : "", name));
    }
}

/* Appends one call for each key, such as pyautogui.keyDown("shift"). */
static void put_each(struct buf *b, const char *call, const json_t *keys, size_t from, size_t to,
                     const char *after)
{
    for (size_t i = from; i < to && i < json_array_size(keys); i++) {
        buf_printf(b, "pyautogui.%s(", call);
        put_keys(b, keys, i, i + 1);
        buf_printf(b, ")%s", after);
    }
}

static void put_xy(struct buf *b, const json_t *a, const char *fmt)
{
    if (json_object_get(a, "x"))
        buf_printf(b, fmt, (int)field_int(a, "x"), (int)field_int(a, "y"));
}

static void put_button(struct buf *b, const json_t *a, const char *call)
{
    buf_printf(b, "pyautogui.%s(", call);
    put_xy(b, a, "x=%d, y=%d, ");
    buf_puts(b, "button=");
    put_literal(b, *field_text(a, "button") ? field_text(a, "button") : "left");
    buf_puts(b, ")");
}

static void python_click(struct buf *b, const json_t *a)
{
    static const char *const calls[] = {"click", "click", "doubleClick", "tripleClick"};
    int64_t count = field_int(a, "count");
    put_button(b, a, calls[count >= 1 && count <= 3 ? count : 1]);
}

static void python_button_down(struct buf *b, const json_t *a)
{
    put_button(b, a, "mouseDown");
}

static void python_button_up(struct buf *b, const json_t *a)
{
    put_button(b, a, "mouseUp");
}

static void python_move(struct buf *b, const json_t *a)
{
    buf_printf(b, "pyautogui.moveTo(%d, %d)", (int)field_int(a, "x"), (int)field_int(a, "y"));
}

static void python_drag(struct buf *b, const json_t *a)
{
    put_xy(b, a, "pyautogui.moveTo(%d, %d); ");
    buf_printf(b, "pyautogui.dragTo(%d, %d, duration=%g, button=\"left\")", (int)field_int(a, "x2"),
               (int)field_int(a, "y2"), field_int(a, "ms") > 0 ? (double)field_int(a, "ms") / 1000 : 0.5);
}

static void python_scroll(struct buf *b, const json_t *a)
{
    int dy = (int)field_int(a, "dy"), dx = (int)field_int(a, "dx");
    put_xy(b, a, "pyautogui.moveTo(%d, %d); ");
    if (dy || !dx)
        buf_printf(b, "pyautogui.scroll(%d)%s", -dy, dx ? "; " : "");
    if (dx)
        buf_printf(b, "pyautogui.hscroll(%d)", dx);
}

static void python_type(struct buf *b, const json_t *a)
{
    put_xy(b, a, "pyautogui.click(x=%d, y=%d); ");
    if (field_bool(a, "overwrite"))
        buf_puts(b, "pyautogui.hotkey(\"ctrl\", \"a\"); pyautogui.press(\"backspace\"); ");
    if (field_bool(a, "at_end"))
        buf_puts(b, "pyautogui.press(\"end\"); ");
    buf_puts(b, "pyautogui.write(");
    put_literal(b, field_text(a, "text"));
    buf_puts(b, field_bool(a, "press_enter") ? "); pyautogui.press(\"enter\")" : ")");
}

static void python_key(struct buf *b, const json_t *a)
{
    const json_t *keys = json_object_get(a, "keys");
    size_t n = json_array_size(keys);
    int64_t count = field_int(a, "count");
    for (int64_t i = 0; i < (count > 1 && count <= 20 ? count : 1); i++) {
        buf_printf(b, "%spyautogui.%s(", i ? "; " : "", n == 1 ? "press" : "hotkey");
        put_keys(b, keys, 0, n);
        buf_puts(b, ")");
    }
}

static void python_key_down(struct buf *b, const json_t *a)
{
    put_each(b, "keyDown", json_object_get(a, "keys"), 0, 1, "");
}

static void python_key_up(struct buf *b, const json_t *a)
{
    put_each(b, "keyUp", json_object_get(a, "keys"), 0, 1, "");
}

static void python_holdtap(struct buf *b, const json_t *a)
{
    const json_t *keys = json_object_get(a, "keys");
    size_t n = json_array_size(keys), held = (size_t)field_int(a, "nhold");
    put_each(b, "keyDown", keys, 0, held, "; ");
    put_each(b, "press", keys, held, n, "; ");
    put_each(b, "keyUp", keys, 1, held, "; ");
    put_each(b, "keyUp", keys, 0, 1, "");
}

/* Appends the chord of the kind, such as pyautogui.hotkey("alt", "left"). */
static void python_shortcut(struct buf *b, const json_t *a)
{
    uint32_t keys[2];
    int n = action_shortcut(registry_kind(field_text(a, "kind")), keys);
    buf_printf(b, "pyautogui.%s(", n == 1 ? "press" : "hotkey");
    for (int i = 0; i < n; i++) {
        struct buf name;
        char known[32];
        buf_init(&name, sizeof known);
        action_put_keys(&name, &keys[i], 1, "");
        buf_puts(b, i ? ", " : "");
        put_literal(b, key_name(name.data, known));
        buf_free(&name);
    }
    buf_puts(b, ")");
}

static void python_goto(struct buf *b, const json_t *a)
{
    python_shortcut(b, a);
    buf_puts(b, "; pyautogui.write(");
    put_literal(b, field_text(a, "text"));
    buf_puts(b, "); pyautogui.press(\"enter\")");
}

static void python_sleep(struct buf *b, const json_t *a)
{
    buf_printf(b, "time.sleep(%g)", (double)field_int(a, "ms") / 1000);
}

static void python_wait(struct buf *b, const json_t *a)
{
    (void)a;
    buf_puts(b, "WAIT");
}

static void python_done(struct buf *b, const json_t *a)
{
    (void)a;
    buf_puts(b, "DONE");
}

static void python_fail(struct buf *b, const json_t *a)
{
    (void)a;
    buf_puts(b, "FAIL");
}

char *export_python(const json_t *a)
{
#define ACTION(kind, execute, describe, tell, python, ...) [kind] = python,
    static void (*const exporters[ACT_COUNT])(struct buf *, const json_t *) = {
#include "actions/kinds.h"
    };
    const json_t *hold = json_object_get(a, "hold");
    struct buf b;
    buf_init(&b, WORDS_MAX);
    put_each(&b, "keyDown", hold, 0, json_array_size(hold), "; ");
    exporters[registry_kind(field_text(a, "kind"))](&b, a);
    for (size_t i = 0; i < json_array_size(hold); i++) {
        buf_puts(&b, "; ");
        put_each(&b, "keyUp", hold, i, i + 1, "");
    }
    return buf_take(&b);
}
