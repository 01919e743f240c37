/* export_actions.c - converts actions to pyautogui calls and to UI-TARS syntax. */
#include "replay/export.h"

#include "base/buf.h"

#include <ctype.h>
#include <string.h>

enum { WORDS_MAX = 1 << 20 };

/* Returns the pyautogui name of an X keysym. */
static const char *python_key(const char *x, char out[32])
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
        put_literal(b, python_key(x ? x : "", name));
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

static void put_click(struct buf *b, const json_t *a)
{
    static const char *const calls[] = {"click", "click", "doubleClick", "tripleClick"};
    int64_t count = field_int(a, "count");
    put_button(b, a, calls[count >= 1 && count <= 3 ? count : 1]);
}

static void put_drag(struct buf *b, const json_t *a)
{
    put_xy(b, a, "pyautogui.moveTo(%d, %d); ");
    buf_printf(b, "pyautogui.dragTo(%d, %d, duration=%g, button=\"left\")", (int)field_int(a, "x2"),
               (int)field_int(a, "y2"), field_int(a, "ms") > 0 ? (double)field_int(a, "ms") / 1000 : 0.5);
}

static void put_scroll(struct buf *b, const json_t *a)
{
    int dy = (int)field_int(a, "dy"), dx = (int)field_int(a, "dx");
    put_xy(b, a, "pyautogui.moveTo(%d, %d); ");
    if (dy || !dx)
        buf_printf(b, "pyautogui.scroll(%d)%s", -dy, dx ? "; " : "");
    if (dx)
        buf_printf(b, "pyautogui.hscroll(%d)", dx);
}

static void put_type(struct buf *b, const json_t *a)
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

static void put_key(struct buf *b, const json_t *a)
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

static void put_holdtap(struct buf *b, const json_t *a)
{
    const json_t *keys = json_object_get(a, "keys");
    size_t n = json_array_size(keys), held = (size_t)field_int(a, "nhold");
    put_each(b, "keyDown", keys, 0, held, "; ");
    put_each(b, "press", keys, held, n, "; ");
    put_each(b, "keyUp", keys, 1, held, "; ");
    put_each(b, "keyUp", keys, 0, 1, "");
}

static void put_goto(struct buf *b, const json_t *a)
{
    buf_puts(b, "pyautogui.hotkey(\"ctrl\", \"l\"); pyautogui.write(");
    put_literal(b, field_text(a, "text"));
    buf_puts(b, "); pyautogui.press(\"enter\")");
}

static void put_other(struct buf *b, const char *kind, const json_t *a)
{
    static const char *const known[][2] = {{"back", "pyautogui.hotkey(\"alt\", \"left\")"},
                                           {"forward", "pyautogui.hotkey(\"alt\", \"right\")"},
                                           {"refresh", "pyautogui.press(\"f5\")"},
                                           {"answer", "DONE"},
                                           {"infeasible", "FAIL"}};
    const char *code = "WAIT";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        code = strcmp(known[i][0], kind) ? code : known[i][1];
    if (!strcmp(kind, "move"))
        buf_printf(b, "pyautogui.moveTo(%d, %d)", (int)field_int(a, "x"), (int)field_int(a, "y"));
    else if (!strcmp(kind, "goto"))
        put_goto(b, a);
    else
        buf_puts(b, code);
}

char *export_python(const json_t *a)
{
    const char *kind = field_text(a, "kind");
    const json_t *keys = json_object_get(a, "keys"), *hold = json_object_get(a, "hold");
    struct buf b;
    buf_init(&b, WORDS_MAX);
    put_each(&b, "keyDown", hold, 0, json_array_size(hold), "; ");
    if (!strcmp(kind, "click"))
        put_click(&b, a);
    else if (!strcmp(kind, "drag"))
        put_drag(&b, a);
    else if (!strcmp(kind, "scroll"))
        put_scroll(&b, a);
    else if (!strcmp(kind, "type"))
        put_type(&b, a);
    else if (!strcmp(kind, "key"))
        put_key(&b, a);
    else if (!strcmp(kind, "hold_and_tap"))
        put_holdtap(&b, a);
    else if (!strcmp(kind, "mouse_down") || !strcmp(kind, "mouse_up"))
        put_button(&b, a, kind[6] == 'd' ? "mouseDown" : "mouseUp");
    else if (!strcmp(kind, "key_down") || !strcmp(kind, "key_up"))
        put_each(&b, kind[4] == 'd' ? "keyDown" : "keyUp", keys, 0, 1, "");
    else if (!strcmp(kind, "wait"))
        buf_printf(&b, "time.sleep(%g)", (double)field_int(a, "ms") / 1000);
    else
        put_other(&b, kind, a);
    for (size_t i = 0; i < json_array_size(hold); i++) {
        buf_puts(&b, "; ");
        put_each(&b, "keyUp", hold, i, i + 1, "");
    }
    return buf_take(&b);
}
