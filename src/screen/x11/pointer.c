/* pointer.c - the state of the pointer, and single pointer events through XTEST. */
#include "screen/x11/x11_impl.h"

#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <string.h>

bool x11_pointer(struct screen *s, struct screen_pointer *out)
{
    struct x11 *x = s->x11;
    unsigned char map[HELD_BUTTONS];
    Window root;
    int wx, wy;
    unsigned mask = 0;
    out->top = None;
    x->elsewhere = !XQueryPointer(x->dpy, x->root, &root, &out->top, &out->x, &out->y, &wx, &wy, &mask);
    out->others = s->lost ? 0 : mask >> 8 & 0x1f;
    int n = out->others && held_any_button(&x->held) ? XGetPointerMapping(x->dpy, map, sizeof map) : 0;
    for (int i = 0; i < n && i + 1 < HELD_BUTTONS; i++)
        if (x->held.button[i + 1] && map[i] > 0 && map[i] <= 5)
            out->others &= ~(1u << (map[i] - 1));
    return !x->elsewhere;
}

/* Returns whether a device of the user holds a button. The server counts a button that two devices hold only
 * once, and ignores the release by the first of them. */
bool x11_user_holds_button(struct screen *s)
{
    int n = 0;
    bool found = false;
    XIDeviceInfo *list = s->x11->xinput && !s->lost ? XIQueryDevice(s->x11->dpy, XIAllDevices, &n) : NULL;
    for (int i = 0; i < n && !found; i++)
        for (int k = 0; k < list[i].num_classes && list[i].use == XISlavePointer; k++) {
            const XIButtonClassInfo *b = (const XIButtonClassInfo *)(const void *)list[i].classes[k];
            for (int bit = 1; b->type == XIButtonClass && bit < 8 * b->state.mask_len; bit++)
                found = found || (XIMaskIsSet(b->state.mask, bit) && !strstr(list[i].name, "XTEST"));
        }
    if (list)
        XIFreeDeviceInfo(list);
    return found;
}

/* The server applies the pointer mapping to XTEST too: with a left-handed mapping button 1 is pressed as
 * 3. */
int x11_find_button(struct screen *s, int button)
{
    unsigned char map[256];
    int n = XGetPointerMapping(s->x11->dpy, map, sizeof map);
    for (int i = 0; i < n && i < HELD_BUTTONS - 1; i++)
        if (map[i] == button)
            return i + 1;
    return 0;
}

void x11_motion(struct screen *s, int x, int y)
{
    /* XTEST ignores the screen number: a pointer on another X screen is first warped to ours */
    if (s->x11->elsewhere)
        XWarpPointer(s->x11->dpy, None, s->x11->root, 0, 0, 0, 0, x, y);
    s->x11->elsewhere = false;
    event_origin_add(&s->x11->held.origin, ORIGIN_MOTION, 0, true);
    XTestFakeMotionEvent(s->x11->dpy, -1, x, y, CurrentTime);
    XSync(s->x11->dpy, False);
}

static void note_press(struct screen *s)
{
    int x = -1, y = -1;
    if (held_any_button(&s->x11->held))
        return;
    if (screen_pointer(s, &x, &y))
        x = y = -1;
    held_set_press(&s->x11->held, x, y);
}

void x11_button(struct screen *s, int number, bool down)
{
    struct held *h = &s->x11->held;
    if (down) {
        note_press(s);
        held_set_button(h, number, true);
    }
    event_origin_add(&h->origin, ORIGIN_BUTTON, number, down);
    XTestFakeButtonEvent(s->x11->dpy, (unsigned)number, down, CurrentTime);
    XSync(s->x11->dpy, False);
    if (!down && !s->lost)
        held_set_button(h, number, false);
}

int x11_prepare(struct screen *s, struct err *e)
{
    return keyboard_begin_pointer(s, LockMask, e);
}
