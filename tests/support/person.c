/* person.c - see person.h. */
#include "person.h"

#include "base/clock.h"

#include <X11/XKBlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XTest.h>
#include <string.h>

enum { PATIENCE_MS = 40000 }; /* loaded machines are slow */

static void press_key(Display *d, KeySym key)
{
    KeyCode code = XKeysymToKeycode(d, key);
    bool shift = XkbKeycodeToKeysym(d, code, 0, 0) != key;
    KeyCode shift_code = XKeysymToKeycode(d, XK_Shift_L);
    if (shift)
        XTestFakeKeyEvent(d, shift_code, True, CurrentTime);
    XTestFakeKeyEvent(d, code, True, CurrentTime);
    XTestFakeKeyEvent(d, code, False, CurrentTime);
    if (shift)
        XTestFakeKeyEvent(d, shift_code, False, CurrentTime);
}

static Window find_window(Display *d, Window at, const char *name)
{
    Window root, parent, *children = NULL, found = None;
    unsigned n = 0;
    char *title = NULL;
    XWindowAttributes a;
    if (XFetchName(d, at, &title) && title) {
        bool same = !strncmp(title, name, strlen(name)) && XGetWindowAttributes(d, at, &a) &&
                    a.map_state == IsViewable;
        XFree(title);
        if (same)
            return at;
    }
    if (!XQueryTree(d, at, &root, &parent, &children, &n))
        return None;
    for (unsigned i = 0; i < n && found == None; i++)
        found = find_window(d, children[i], name);
    if (children)
        XFree(children);
    return found;
}

Window person_window(Display *d, const char *title)
{
    Window w = None;
    for (int ms = 0; ms < PATIENCE_MS && w == None; ms += 30) {
        w = find_window(d, DefaultRootWindow(d), title);
        clock_sleep_ms(30);
    }
    return w;
}

bool person_finds(Display *d, const char *title, int *x, int *y)
{
    Window child, w = person_window(d, title);
    return w != None && XTranslateCoordinates(d, w, DefaultRootWindow(d), 0, 0, x, y, &child);
}

bool person_is_asked(Display *d, const char *title, int *x, int *y)
{
    Window child, focus, w = person_window(d, title);
    int before_x = -1, before_y = -1, revert;
    for (int ms = 0; w != None && ms < PATIENCE_MS; ms += 50) {
        XGetInputFocus(d, &focus, &revert);
        if (!XTranslateCoordinates(d, w, DefaultRootWindow(d), 0, 0, x, y, &child))
            return false;
        if (focus == w && *x == before_x && *y == before_y)
            return true;
        before_x = *x;
        before_y = *y;
        clock_sleep_ms(50);
    }
    return false;
}

/* A window manager may hold back pointer events until it has processed a press; keys would overtake them. */
static void wait_released(Display *d)
{
    Window root, child;
    int x, y, wx, wy;
    unsigned mask = 0, buttons = Button1Mask | Button2Mask | Button3Mask;
    for (int ms = 0; ms < PATIENCE_MS; ms += 5) {
        XQueryPointer(d, DefaultRootWindow(d), &root, &child, &x, &y, &wx, &wy, &mask);
        if (!(mask & buttons))
            return;
        clock_sleep_ms(5);
    }
}

void person_does(Display *d, int x0, int y0, const struct deed *a)
{
    unsigned button = a->what == G_AIM ? 3 : 1;
    if (a->what >= G_PRESS)
        XTestFakeMotionEvent(d, -1, x0 + (int)a->x, y0 + (int)a->y, CurrentTime);
    if (a->what == G_KEY)
        press_key(d, a->key);
    for (const char *c = a->what == G_WORDS ? a->words : ""; *c; c++)
        press_key(d, (KeySym)(unsigned char)*c);
    if (a->what == G_PRESS || a->what == G_CLICK || a->what == G_AIM)
        XTestFakeButtonEvent(d, button, True, CurrentTime);
    if (a->what == G_RELEASE || a->what == G_CLICK || a->what == G_AIM)
        XTestFakeButtonEvent(d, button, False, CurrentTime);
    XSync(d, False);
    if (a->what == G_RELEASE || a->what == G_CLICK || a->what == G_AIM)
        wait_released(d);
    clock_sleep_ms(60);
}
