/* keyboard.c - the keyboard map (keysyms to keycodes) and single key events.
 *
 * Keys are sent through the XTEST keyboard, a device with its own map, so that map is read. Clients switch to
 * it once the device has been used, which keyboard_begin() ensures. A keysym is looked up on the plain and
 * the Shift level; keysyms on higher levels, dead keys and missing characters need a borrowed keycode
 * (spare_keycodes.c).
 *
 * The map and the state may change at any time (setxkbmap, xmodmap, another keyboard). The server reports
 * this only with XKB events, because it withholds MappingNotify from clients that use XKB; another keyboard
 * also with an XInput event. Between two of our keys they are read again only after such an event.
 * x11.layouts counts changes of the map made by other clients. */
#include "screen/x11/x11_impl.h"

#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <string.h>

enum { STATE_READS = 4 }; /* at most, while it keeps changing */

/* ---- devices ---------------------------------------------------------------------------------- */

int keyboard_xtest_id(struct screen *s, int *source)
{
    int n = 0, id = 0;
    *source = 0;
    if (!s->x11->xinput)
        return 0;
    XIDeviceInfo *list = XIQueryDevice(s->x11->dpy, XIAllDevices, &n);
    for (int i = 0; list && i < n; i++) {
        const XIDeviceInfo *d = &list[i];
        if (d->use == XISlaveKeyboard && !id && strstr(d->name, "XTEST"))
            id = d->deviceid;
        for (int c = 0; d->use == XIMasterKeyboard && !*source && c < d->num_classes; c++)
            if (d->classes[c]->type == XIKeyClass)
                *source = d->classes[c]->sourceid;
    }
    if (list)
        XIFreeDeviceInfo(list);
    return id;
}

static unsigned keyboard_spec(const struct screen *s)
{
    return s->x11->keyboard_id ? (unsigned)s->x11->keyboard_id : XkbUseCoreKbd;
}

void keyboard_open(struct screen *s)
{
    const unsigned events = XkbMapNotifyMask | XkbNewKeyboardNotifyMask;
    const unsigned states = XkbAllStateComponentsMask & ~(unsigned)XkbPointerButtonMask;
    unsigned char mask[XIMaskLen(XI_LASTEVENT)] = {0};
    XIEventMask devices = {XIAllDevices, sizeof mask, mask};
    s->x11->keyboard_id = keyboard_xtest_id(s, &s->x11->source);
    XkbSelectEvents(s->x11->dpy, XkbUseCoreKbd, events, events);
    XkbSelectEventDetails(s->x11->dpy, XkbUseCoreKbd, XkbStateNotify, states, states);
    XkbSelectEventDetails(s->x11->dpy, XkbUseCoreKbd, XkbControlsNotify, XkbControlsEnabledMask,
                          XkbControlsEnabledMask);
    XISetMask(mask, XI_DeviceChanged);
    XISetMask(mask, XI_HierarchyChanged);
    if (s->x11->xinput)
        XISelectEvents(s->x11->dpy, s->x11->root, &devices, 1);
    s->x11->map_stale = s->x11->state_stale = s->x11->controls_stale = s->x11->source_stale = true;
}

void keyboard_note_event(struct screen *s, const XEvent *ev)
{
    struct x11 *x = s->x11;
    const XkbEvent *k = (const XkbEvent *)(const void *)ev;
    bool xkb = ev->type == x->xkb_event;
    x->source_stale = x->source_stale || !xkb;
    x->state_stale = true;
    x->controls_stale = x->controls_stale || !xkb || k->any.xkb_type != XkbStateNotify;
    x->map_stale = x->map_stale || ev->type == MappingNotify ||
                   (xkb && k->any.xkb_type != XkbStateNotify && k->any.xkb_type != XkbControlsNotify);
}

void keyboard_close(struct screen *s)
{
    if (s->x11->map)
        XkbFreeKeyboard(s->x11->map, XkbAllComponentsMask, True);
    s->x11->map = NULL;
}

/* ---- the map ---------------------------------------------------------------------------------- */

/* Returns the number of keysyms of a key; 0 also if all of them are NoSymbol. */
static int count_symbols(XkbDescPtr m, int code)
{
    int n = XkbKeyNumSyms(m, code);
    for (int i = 0; i < n; i++)
        if (XkbKeySymsPtr(m, code)[i] != NoSymbol)
            return n;
    return 0;
}

/* Hashes the map without borrowed keycodes. */
static uint64_t hash_layout(const struct screen *s)
{
    uint64_t h = 0xcbf29ce484222325;
    for (int code = s->x11->map->min_key_code; code <= s->x11->map->max_key_code; code++) {
        int n = s->x11->held.spare[code] ? 0 : count_symbols(s->x11->map, code);
        for (int i = 0; i < n; i++)
            h = (h ^ ((uint64_t)code << 48 | (uint64_t)i << 32 | XkbKeySymsPtr(s->x11->map, code)[i])) *
                0x100000001b3;
    }
    return h;
}

int keyboard_read(struct screen *s, struct err *e)
{
    screen_pump(s);
    for (int i = 0; i < STATE_READS && !s->lost && s->x11->state_stale;
         i++) { /* unsafe on a lost connection */
        s->x11->state_stale = false;
        XkbGetState(s->x11->dpy, XkbUseCoreKbd, &s->x11->state);
        screen_pump(s); /* events that arrived before that reply */
    }
    if (s->x11->map && !s->x11->map_stale)
        return screen_alive(s, e);
    keyboard_close(s);
    struct xtrap t;
    xtrap_begin(&t, s->x11->dpy);
    s->x11->map_stale = false; /* changes from now on are reported again */
    s->x11->map = XkbGetMap(s->x11->dpy, XkbAllClientInfoMask, keyboard_spec(s));
    int code = xtrap_end(&t);
    if (screen_alive(s, e))
        return -1;
    if (code || !s->x11->map || !s->x11->map->map || !s->x11->map->map->syms) {
        s->x11->map_stale = true;
        return err_set(e, ERR_ENV, "display '%s' does not report its keyboard map (X error %d)", s->name,
                       code);
    }
    bool lost = spare_forget_lost(s);
    uint64_t layout = hash_layout(s);
    s->x11->layouts += lost || layout != s->x11->layout;
    s->x11->layout = layout;
    return 0;
}

static int level_of(const XkbKeyTypeRec *type, unsigned mods)
{
    for (int i = 0; i < type->map_count; i++)
        if (type->map[i].active && type->map[i].mods.mask == (mods & type->mods.mask))
            return type->map[i].level;
    return 0;
}

static bool find_in_group(struct screen *s, uint32_t keysym, int group, unsigned mods, struct keypress *out)
{
    XkbDescPtr m = s->x11->map;
    for (int shift = 0; shift < 2; shift++)
        for (int code = m->min_key_code; code <= m->max_key_code; code++) {
            int groups = XkbKeyNumGroups(m, code);
            if (!groups || s->x11->held.spare[code])
                continue;
            int g = group < groups ? group : group % groups;
            int level = level_of(XkbKeyKeyType(m, code, g), mods | (shift ? ShiftMask : 0));
            if (level < XkbKeyGroupWidth(m, code, g) && XkbKeySymEntry(m, code, level, g) == keysym) {
                *out = (struct keypress){code, shift, group};
                return true;
            }
        }
    return false;
}

bool keyboard_find(struct screen *s, uint32_t keysym, bool any_group, struct keypress *out)
{
    /* Locked modifiers select the level (Num Lock on a keypad); Caps Lock is cleared before typing. The group
     * is that of the core keyboard, whose state clients use to translate keys: the XTEST keyboard's state
     * does not contain the layout that the user has selected. */
    int group = s->x11->state.group;
    unsigned mods = s->x11->state.locked_mods & ~(unsigned)LockMask;
    if (find_in_group(s, keysym, group, mods, out))
        return true;
    for (int g = 0; any_group && g < XkbNumKbdGroups; g++)
        if (g != group && find_in_group(s, keysym, g, mods, out))
            return true;
    return false;
}

uint32_t keyboard_shifted(struct screen *s, uint32_t keysym)
{
    struct keypress k;
    if (keyboard_read(s, NULL) || !keyboard_find(s, keysym, true, &k))
        return 0;
    int groups = XkbKeyNumGroups(s->x11->map, k.code), g = k.group < groups ? k.group : k.group % groups;
    unsigned mods = (s->x11->state.locked_mods & ~(unsigned)LockMask) | ShiftMask;
    int level = level_of(XkbKeyKeyType(s->x11->map, k.code, g), mods);
    return level < XkbKeyGroupWidth(s->x11->map, k.code, g)
               ? (uint32_t)XkbKeySymEntry(s->x11->map, k.code, level, g)
               : keysym;
}

int keyboard_free_codes(struct screen *s, uint8_t *codes, int max)
{
    if (keyboard_read(s, NULL))
        return 0;
    XkbDescPtr m = s->x11->map;
    int n = 0;
    for (int code = m->min_key_code; code <= m->max_key_code && n < max; code++) {
        if (!(m->map->modmap && m->map->modmap[code]) && !count_symbols(m, code))
            codes[n++] = (uint8_t)code;
    }
    return n;
}

/* ---- events ----------------------------------------------------------------------------------- */

int key_begin(struct screen *s, int code, bool down, struct err *e)
{
    if ((down && observed_may_type(s, e)) || input_begin(s, down, e))
        return -1;
    if (down)
        held_set_key(&s->x11->held, code, true);
    event_origin_add(&s->x11->held.origin, ORIGIN_KEY, code, down);
    return 0;
}

int key_end(struct screen *s, int code, bool down, struct err *e)
{
    XSync(s->x11->dpy, False);
    if (!down && !s->lost)
        held_set_key(&s->x11->held, code, false);
    return input_end(s, e);
}

int key_event(struct screen *s, int code, bool down, struct err *e)
{
    if (key_begin(s, code, down, e))
        return -1;
    XTestFakeKeyEvent(s->x11->dpy, (unsigned)code, down, CurrentTime);
    return key_end(s, code, down, e);
}

int key_tap(struct screen *s, int code, struct err *e)
{
    if (key_begin(s, code, true, e))
        return -1;
    event_origin_add(&s->x11->held.origin, ORIGIN_KEY, code, false);
    XTestFakeKeyEvent(s->x11->dpy, (unsigned)code, True, CurrentTime);
    XTestFakeKeyEvent(s->x11->dpy, (unsigned)code, False, CurrentTime);
    s->events++; /* two events */
    return key_end(s, code, false, e);
}
