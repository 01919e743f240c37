/* view_input.c - sends a viewer's keys and buttons to the desktop with XTEST.
 *
 * A viewer sends the keysyms of its own keyboard, modifiers included.  The keycode is looked up on the
 * desktop's keyboard.  If it needs another level than the modifiers give, Shift or AltGr are changed around
 * that key; a keysym that no key has borrows an unused keycode.  The run's input monitor counts all these
 * events as user input, because they are not its own. */
#include "desk/view_impl.h"

#include "base/clock.h"
#include "screen/screen.h"

#include <X11/XKBlib.h>
#include <X11/Xatom.h>
#include <X11/Xutil.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>

enum {
    KEYS = sizeof((struct viewer_input *)0)->keys / sizeof(struct viewer_key),
    BUTTONS = 9,
    LEVELS = 4,
    MAP_MS = 200
};
enum { BUTTON_BITS = (1 << BUTTONS) - 1 };

void viewer_input_open(struct viewer_input *h, Display *dpy, struct viewer_down *down)
{
    *h = (struct viewer_input){.dpy = dpy, .down = down, .x = -1, .y = -1};
}

static void press(struct viewer_input *h, unsigned code, bool down)
{
    if (down)
        /* set first: the key may be released once too often, but never forgotten */
        h->down->keys[code & 255] = 1;
    XTestFakeKeyEvent(h->dpy, code, down, 0);
    if (!down) {
        XFlush(h->dpy);
        h->down->keys[code & 255] = 0;
    }
}

/* ---- which key -------------------------------------------------------------------------------------- */

/* Returns the keycode that has this keysym, on the lowest level; 0: none. */
static unsigned find_code(Display *dpy, unsigned keysym, int *level)
{
    int low, high;
    XDisplayKeycodes(dpy, &low, &high);
    for (*level = 0; *level < LEVELS; ++*level)
        for (int code = low; code <= high; code++)
            if (XkbKeycodeToKeysym(dpy, (KeyCode)code, 0, *level) == keysym)
                return (unsigned)code;
    return 0;
}

static bool is_empty(Display *dpy, int code)
{
    for (int level = 0; level < LEVELS; level++)
        if (XkbKeycodeToKeysym(dpy, (KeyCode)code, 0, level) != NoSymbol)
            return false;
    return true;
}

/* Assigns the keysym to an unused keycode, the highest one, because a run borrows from the other end.  Waits
 * MAP_MS so that programs read the new keyboard mapping before the key event.  Returns 0 if none is
 * unused. */
static unsigned borrow_code(struct viewer_input *h, unsigned keysym)
{
    int low, high;
    KeySym syms[] = {keysym, keysym};
    XDisplayKeycodes(h->dpy, &low, &high);
    for (int code = high; code >= low && !h->borrowed; code--)
        if (is_empty(h->dpy, code))
            h->borrowed = (unsigned)code;
    if (!h->borrowed)
        return 0;
    XChangeKeyboardMapping(h->dpy, (int)h->borrowed, 2, syms, 1);
    XSync(h->dpy, False);
    clock_sleep_ms(MAP_MS);
    return h->borrowed;
}

static bool is_modifier(unsigned keysym)
{
    return (keysym >= XK_Shift_L && keysym <= XK_Hyper_R) || keysym == XK_ISO_Level3_Shift ||
           keysym == XK_Mode_switch || keysym == XK_Num_Lock;
}

/* ---- modifiers around one key ----------------------------------------------------------------------- */

/* keys that are changed around a key: pressed before and released after it, or the reverse */
struct level_keys {
    unsigned code[4];
    bool down[4];
    int n;
};

static void change(struct viewer_input *h, struct level_keys *k, unsigned code, bool down)
{
    if (!code || k->n == 4)
        return;
    k->code[k->n] = code;
    k->down[k->n++] = down;
    press(h, code, down);
}

/* Presses or releases modifiers so that code gives keysym.  Does nothing if the pressed modifiers already do
 * so, as Shift with an arrow key, or with Control or Alt: in a shortcut the viewer's own Shift counts. */
static void set_level(struct viewer_input *h, struct level_keys *k, unsigned code, unsigned keysym, int level)
{
    unsigned left = XKeysymToKeycode(h->dpy, XK_Shift_L), right = XKeysymToKeycode(h->dpy, XK_Shift_R);
    unsigned third = XKeysymToKeycode(h->dpy, XK_ISO_Level3_Shift), used;
    XkbStateRec state;
    KeySym now = NoSymbol;
    k->n = 0;
    if (is_modifier(keysym) || XkbGetState(h->dpy, XkbUseCoreKbd, &state) != Success ||
        (XkbLookupKeySym(h->dpy, (KeyCode)code, state.mods, &used, &now) && now == keysym) ||
        state.mods & (ControlMask | Mod1Mask))
        return;
    if (level & 1 && !(state.mods & ShiftMask)) {
        change(h, k, left, true);
    } else if (!(level & 1) && state.mods & ShiftMask) {
        change(h, k, h->down->keys[left & 255] ? left : 0, false);
        change(h, k, h->down->keys[right & 255] ? right : 0, false);
    }
    if (level > 1 && third && !h->down->keys[third & 255])
        change(h, k, third, true);
}

static void restore_level(struct viewer_input *h, const struct level_keys *k)
{
    for (int i = k->n - 1; i >= 0; i--)
        press(h, k->code[i], !k->down[i]);
}

/* ---- events ----------------------------------------------------------------------------------------- */

static struct viewer_key *slot_of(struct viewer_input *h, unsigned keysym)
{
    for (int i = 0; i < KEYS; i++)
        if (h->keys[i].sym == keysym)
            return &h->keys[i];
    return NULL;
}

static void hand_back(Display *dpy)
{
    static unsigned long count;
    count++;
    XChangeProperty(dpy, DefaultRootWindow(dpy), XInternAtom(dpy, SCREEN_HAND_BACK, False), XA_CARDINAL, 32,
                    PropModeReplace, (unsigned char *)&count, 1);
}

static void key_down(struct viewer_input *h, unsigned keysym)
{
    struct viewer_key *key = slot_of(h, keysym);
    struct level_keys around;
    int level = 0;
    if (key) /* the server repeats keys itself */
        return;
    unsigned code = find_code(h->dpy, keysym, &level);
    if (!code) {
        code = borrow_code(h, keysym);
        level = 0;
    }
    key = slot_of(h, 0);
    if (!code || !key)
        return;
    *key = (struct viewer_key){keysym, code};
    set_level(h, &around, code, keysym, level);
    press(h, code, true);
    restore_level(h, &around);
}

void viewer_input_key(struct viewer_input *h, unsigned keysym, bool down)
{
    if (keysym == XK_Pause || keysym == XK_Break) {
        if (down)
            hand_back(h->dpy);
    } else if (down) {
        key_down(h, keysym);
    } else {
        struct viewer_key *key = keysym ? slot_of(h, keysym) : NULL;
        if (key) {
            press(h, key->code, false);
            *key = (struct viewer_key){0, 0};
        }
    }
    XFlush(h->dpy);
}

void viewer_input_pointer(struct viewer_input *h, unsigned buttons, int x, int y)
{
    unsigned before = h->down->buttons & BUTTON_BITS;
    buttons &= BUTTON_BITS;
    if (x != h->x || y != h->y)
        XTestFakeMotionEvent(h->dpy, -1, x, y, 0);
    h->x = x;
    h->y = y;
    h->down->buttons = before | buttons;
    for (unsigned i = 0; i < BUTTONS; i++)
        if ((before ^ buttons) & 1u << i)
            XTestFakeButtonEvent(h->dpy, i + 1, (buttons & 1u << i) != 0, 0);
    XFlush(h->dpy);
    h->down->buttons = buttons;
}

void viewer_input_release(Display *dpy, struct viewer_down *down)
{
    for (unsigned code = 0; code < 256; code++)
        if (down->keys[code])
            XTestFakeKeyEvent(dpy, code, False, 0);
    for (unsigned i = 0; i < BUTTONS; i++)
        if (down->buttons & 1u << i)
            XTestFakeButtonEvent(dpy, i + 1, False, 0);
    XSync(dpy, False);
    *down = (struct viewer_down){.buttons = 0};
}

void viewer_input_close(struct viewer_input *h)
{
    KeySym none[] = {NoSymbol, NoSymbol};
    viewer_input_release(h->dpy, h->down);
    if (h->borrowed)
        XChangeKeyboardMapping(h->dpy, (int)h->borrowed, 2, none, 1);
    XSync(h->dpy, False);
}
