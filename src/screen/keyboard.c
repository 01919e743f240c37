/* keyboard.c - the keyboard map (keysyms to keycodes) and single key events.
 *
 * Keys are sent through the XTEST keyboard, a device with its own map, so that map is read. Clients switch to
 * it once the device has been used, which keyboard_begin() ensures. A keysym is looked up on the plain and
 * the Shift level; keysyms on higher levels, dead keys and missing characters need a borrowed keycode
 * (spare_keycodes.c).
 *
 * The map may change at any time (setxkbmap, xmodmap, another keyboard). The server reports this only with
 * XKB events, because it withholds MappingNotify from clients that use XKB. s->layouts counts changes made by
 * other clients. */
#include "screen/private.h"

#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <string.h>

/* ---- devices ---------------------------------------------------------------------------------- */

int keyboard_xtest_id(struct screen *s, int *source)
{
    int n = 0, id = 0;
    *source = 0;
    if (!s->xinput)
        return 0;
    XIDeviceInfo *list = XIQueryDevice(s->dpy, XIAllDevices, &n);
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
    return s->keyboard_id ? (unsigned)s->keyboard_id : XkbUseCoreKbd;
}

void keyboard_open(struct screen *s)
{
    const unsigned events = XkbMapNotifyMask | XkbNewKeyboardNotifyMask;
    int source;
    s->keyboard_id = keyboard_xtest_id(s, &source);
    XkbSelectEvents(s->dpy, XkbUseCoreKbd, events, events);
    s->map_stale = true;
}

void keyboard_close(struct screen *s)
{
    if (s->map)
        XkbFreeKeyboard(s->map, XkbAllComponentsMask, True);
    s->map = NULL;
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
    for (int code = s->map->min_key_code; code <= s->map->max_key_code; code++) {
        int n = s->held.spare[code] ? 0 : count_symbols(s->map, code);
        for (int i = 0; i < n; i++)
            h = (h ^ ((uint64_t)code << 48 | (uint64_t)i << 32 | XkbKeySymsPtr(s->map, code)[i])) *
                0x100000001b3;
    }
    return h;
}

int keyboard_read(struct screen *s, struct err *e)
{
    screen_pump(s);
    if (!s->lost) /* unsafe on a lost connection */
        XkbGetState(s->dpy, XkbUseCoreKbd, &s->state);
    screen_pump(s); /* events that arrived before that reply */
    if (s->map && !s->map_stale)
        return screen_alive(s, e);
    keyboard_close(s);
    struct xtrap t;
    xtrap_begin(&t, s->dpy);
    s->map_stale = false; /* changes from now on are reported again */
    s->map = XkbGetMap(s->dpy, XkbAllClientInfoMask, keyboard_spec(s));
    int code = xtrap_end(&t);
    if (screen_alive(s, e))
        return -1;
    if (code || !s->map || !s->map->map || !s->map->map->syms) {
        s->map_stale = true;
        return err_set(e, ERR_ENV, "display '%s' does not report its keyboard map (X error %d)", s->name,
                       code);
    }
    bool lost = spare_forget_lost(s);
    uint64_t layout = hash_layout(s);
    s->layouts += lost || layout != s->layout;
    s->layout = layout;
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
    XkbDescPtr m = s->map;
    for (int shift = 0; shift < 2; shift++)
        for (int code = m->min_key_code; code <= m->max_key_code; code++) {
            int groups = XkbKeyNumGroups(m, code);
            if (!groups || s->held.spare[code])
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
    int group = s->state.group;
    unsigned mods = s->state.locked_mods & ~(unsigned)LockMask;
    if (find_in_group(s, keysym, group, mods, out))
        return true;
    for (int g = 0; any_group && g < XkbNumKbdGroups; g++)
        if (g != group && find_in_group(s, keysym, g, mods, out))
            return true;
    return false;
}

uint32_t screen_shifted(struct screen *s, uint32_t keysym)
{
    struct keypress k;
    if (!s || s->lost || keyboard_read(s, NULL) || !keyboard_find(s, keysym, true, &k))
        return 0;
    int groups = XkbKeyNumGroups(s->map, k.code), g = k.group < groups ? k.group : k.group % groups;
    unsigned mods = (s->state.locked_mods & ~(unsigned)LockMask) | ShiftMask;
    int level = level_of(XkbKeyKeyType(s->map, k.code, g), mods);
    return level < XkbKeyGroupWidth(s->map, k.code, g) ? (uint32_t)XkbKeySymEntry(s->map, k.code, level, g)
                                                       : keysym;
}

int keyboard_free_codes(struct screen *s, uint8_t *codes, int max)
{
    if (keyboard_read(s, NULL))
        return 0;
    XkbDescPtr m = s->map;
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
        held_set_key(&s->held, code, true);
    event_origin_add(&s->held.origin, ORIGIN_KEY, code, down);
    return 0;
}

int key_end(struct screen *s, int code, bool down, struct err *e)
{
    XSync(s->dpy, False);
    if (!down && !s->lost)
        held_set_key(&s->held, code, false);
    return input_end(s, e);
}

int key_event(struct screen *s, int code, bool down, struct err *e)
{
    if (key_begin(s, code, down, e))
        return -1;
    XTestFakeKeyEvent(s->dpy, (unsigned)code, down, CurrentTime);
    return key_end(s, code, down, e);
}

int key_tap(struct screen *s, int code, struct err *e)
{
    if (key_begin(s, code, true, e))
        return -1;
    event_origin_add(&s->held.origin, ORIGIN_KEY, code, false);
    XTestFakeKeyEvent(s->dpy, (unsigned)code, True, CurrentTime);
    XTestFakeKeyEvent(s->dpy, (unsigned)code, False, CurrentTime);
    s->events++; /* two events */
    return key_end(s, code, false, e);
}
