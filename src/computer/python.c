/* python.c - events as a Python program of pyautogui calls; see machine.h.
 *
 * pyautogui passes over keys and characters that it does not know without a word, so those are refused here.
 * What it writes with "<" comes out as ">" on an X server, so that character is pressed with its own key.
 * Keypad keys are pressed as the characters they stand for: what the keypad's own give depends on Num Lock.
 */
#include "computer/machine.h"

#include <X11/keysym.h>
#include <stdlib.h>
#include <string.h>

struct key {
    uint32_t keysym;
    const char *name;
};

/* clang-format off */
static const struct key keys[] = {
    {XK_Control_L, "ctrl"}, {XK_Control_R, "ctrlright"}, {XK_Shift_L, "shift"}, {XK_Shift_R, "shiftright"},
    {XK_Alt_L, "alt"}, {XK_Alt_R, "altright"}, {XK_Super_L, "winleft"}, {XK_Super_R, "winright"},
    {XK_Return, "enter"}, {XK_KP_Enter, "enter"}, {XK_Escape, "esc"}, {XK_Tab, "tab"}, {XK_space, "space"},
    {XK_BackSpace, "backspace"}, {XK_Delete, "delete"}, {XK_Insert, "insert"}, {XK_Home, "home"},
    {XK_End, "end"}, {XK_Page_Up, "pageup"}, {XK_Page_Down, "pagedown"}, {XK_Up, "up"}, {XK_Down, "down"},
    {XK_Left, "left"}, {XK_Right, "right"}, {XK_Caps_Lock, "capslock"}, {XK_Num_Lock, "numlock"},
    {XK_Scroll_Lock, "scrolllock"}, {XK_Print, "printscreen"}, {XK_Pause, "pause"}, {XK_Menu, "apps"},
    {XK_Sys_Req, "printscreen"},
    {XK_F1, "f1"}, {XK_F2, "f2"}, {XK_F3, "f3"}, {XK_F4, "f4"}, {XK_F5, "f5"}, {XK_F6, "f6"}, {XK_F7, "f7"},
    {XK_F8, "f8"}, {XK_F9, "f9"}, {XK_F10, "f10"}, {XK_F11, "f11"}, {XK_F12, "f12"},
};
/* clang-format on */

/* As the inside of a Python literal in single quotes; ASCII only. */
static void put_character(struct buf *out, char c)
{
    if (c == '\n' || c == '\r')
        buf_puts(out, "\\n");
    else if (c == '\t')
        buf_puts(out, "\\t");
    else if (c == '\\' || c == '\'')
        buf_printf(out, "\\%c", c);
    else
        buf_putc(out, c);
}

/* A character's key on the main part of the keyboard, for those of the keypad. */
static uint32_t off_keypad(uint32_t keysym)
{
    if (keysym >= XK_KP_Multiply && keysym <= XK_KP_9)
        return keysym - XK_KP_Multiply + '*';
    return keysym == XK_KP_Equal ? '=' : keysym == XK_KP_Space ? ' ' : keysym;
}

/* call: "keyDown", "keyUp". */
static int put_key(struct buf *out, const char *call, uint32_t keysym, struct err *e)
{
    bool up = !strcmp(call, "keyUp");
    keysym = off_keypad(keysym);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].keysym == keysym) {
            buf_printf(out, "p.%s('%s')\n", call, keys[i].name);
            return 0;
        }
    if (keysym == '<') {
        buf_puts(out, up ? "p.keyUp(',')\n" : "p.keyDown('shift')\np.keyDown(',')\np.keyUp('shift')\n");
        return 0;
    }
    if (keysym <= ' ' ||
        keysym > '~') /* such a key was never pressed, and keeps no other from being released */
        return up ? 0
                  : err_set(e, ERR_FAILED, "that machine has no name for the key with the keysym 0x%x",
                            keysym);
    buf_printf(out, "p.%s('", call);
    put_character(out, (char)keysym);
    buf_puts(out, "')\n");
    return 0;
}

static int put_text(struct buf *out, const char *text, size_t len, struct err *e)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0x7f)
            return err_set(
                e, ERR_FAILED,
                "that machine can only be given the characters of ASCII, so this text was not typed "
                "from here on");
    for (size_t i = 0; i < len;) {
        if (text[i] == '<') {
            buf_puts(out, "p.hotkey('shift',',')\n");
            i++;
            continue;
        }
        buf_puts(out, "p.write('");
        for (; i < len && text[i] != '<'; i++)
            if (text[i] != '\r' || i + 1 == len || text[i + 1] != '\n')
                put_character(out, text[i]);
        buf_puts(out, "',interval=0.005)\n");
    }
    return 0;
}

static int put_event(struct buf *out, const struct computer_event *v, struct err *e)
{
    static const char *const buttons[] = {"", "left", "middle", "right"};
    switch (v->kind) {
    case COMPUTER_MOVE:
        buf_printf(out, "p.moveTo(%d,%d)\n", v->x, v->y);
        return 0;
    case COMPUTER_DOWN:
    case COMPUTER_UP:
        buf_printf(out, "p.mouse%s(button='%s')\n", v->kind == COMPUTER_DOWN ? "Down" : "Up",
                   buttons[v->button]);
        return 0;
    case COMPUTER_KEY_DOWN:
        return put_key(out, "keyDown", v->keysym, e);
    case COMPUTER_KEY_UP:
        return put_key(out, "keyUp", v->keysym, e);
    case COMPUTER_TEXT:
        return put_text(out, v->text, v->len, e);
    case COMPUTER_WHEEL:
        if (v->y)
            buf_printf(out, "p.scroll(%d)\n", -v->y); /* up is positive there */
        if (v->x)
            buf_printf(out, "p.hscroll(%d)\n", v->x);
        return 0;
    case COMPUTER_PAUSE:
        buf_printf(out, "t.sleep(%.3f)\n", v->ms / 1000);
        return 0;
    }
    bug("an event of kind %d", (int)v->kind);
}

int machine_program(const struct computer_event *v, int n, struct buf *out, struct err *e)
{
    buf_puts(out, "import pyautogui as p,time as t\np.FAILSAFE=False\np.PAUSE=0\n");
    for (int i = 0; i < n; i++)
        if (put_event(out, &v[i], e))
            return -1;
    return 0;
}
