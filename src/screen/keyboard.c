/* keyboard.c - keysyms to key presses and releases.
 *
 * Keys are injected through the XTEST keyboard, a device with a map of its own, so that map is read
 * (clients see it once the device has been used; keyboard_ready() sees to that).  A keysym is looked up on
 * the plain and the Shift level; higher levels, dead keys and absent characters take a borrowed keycode
 * (spare_keycodes.c).  Chords go through libxdo one key at a time, typing does not.
 *
 * Modifiers that a person holds would turn text into commands and clicks into selections.  We wait for
 * their release; releasing them ourselves and pressing them again leaves them stuck when the person lets go
 * in between.  Locked modifiers are taken off while we type, and put back.
 */
#include "screen/private.h"

#include <X11/extensions/XInput2.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>
#include <string.h>

enum {
    MODIFIER_WAIT_MS = 1000,
    CHORD_MS = 20, /* all keys down, then up */
};

/* ---- devices ---------------------------------------------------------------------------------- */

/* Id of the XTEST keyboard; *source: the device whose map the core keyboard shows now. */
static int xtest_keyboard(struct screen *s, int *source)
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
    int source;
    s->keyboard_id = xtest_keyboard(s, &source);
    s->map_stale = true;
}

void keyboard_close(struct screen *s)
{
    if (s->map)
        XkbFreeKeyboard(s->map, XkbAllComponentsMask, True);
    s->map = NULL;
}

/* ---- the map ---------------------------------------------------------------------------------- */

int keyboard_read(struct screen *s, struct err *e)
{
    screen_pump(s);
    if (s->map && !s->map_stale)
        return screen_alive(s, e);
    keyboard_close(s);
    struct xtrap t;
    xtrap_begin(&t, s->dpy);
    s->map = XkbGetMap(s->dpy, XkbAllClientInfoMask, keyboard_spec(s));
    int code = xtrap_end(&t);
    if (screen_alive(s, e))
        return -1;
    if (code || !s->map || !s->map->map || !s->map->map->syms)
        return err_set(e, ERR_ENV, "display '%s' does not report its keyboard map (X error %d)", s->name,
                       code);
    s->map_stale = false;
    return 0;
}

/* Locked modifiers select the level (Num Lock on a keypad); Caps Lock is taken off before typing.  Clients
 * translate by the core keyboard's state: the layout that a person has switched to is not in the XTEST
 * keyboard's. */
static void read_state(struct screen *s, int *group, unsigned *mods)
{
    XkbStateRec st = {0};
    if (!s->lost) /* unsafe on a lost connection */
        XkbGetState(s->dpy, XkbUseCoreKbd, &st);
    *group = st.group;
    *mods = st.locked_mods & ~(unsigned)LockMask;
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
    int group;
    unsigned mods;
    read_state(s, &group, &mods);
    if (find_in_group(s, keysym, group, mods, out))
        return true;
    for (int g = 0; any_group && g < XkbNumKbdGroups; g++)
        if (g != group && find_in_group(s, keysym, g, mods, out))
            return true;
    return false;
}

int keyboard_free_codes(struct screen *s, uint8_t *codes, int max)
{
    if (keyboard_read(s, NULL))
        return 0;
    XkbDescPtr m = s->map;
    int n = 0;
    for (int code = m->min_key_code; code <= m->max_key_code && n < max; code++) {
        int syms = XkbKeyNumSyms(m, code);
        bool free = !(m->map->modmap && m->map->modmap[code]);
        for (int i = 0; free && i < syms; i++)
            free = XkbKeySymsPtr(m, code)[i] == NoSymbol;
        if (free)
            codes[n++] = (uint8_t)code;
    }
    return n;
}

/* ---- events ----------------------------------------------------------------------------------- */

/* Before a press: may we, and recorded as held. */
static int key_begin(struct screen *s, int code, bool down, struct err *e)
{
    if (input_begin(s, down, e))
        return -1;
    if (down)
        held_set_key(&s->held, code, true);
    event_origin_add(&s->held.origin, ORIGIN_KEY, code, down);
    return 0;
}

static int key_end(struct screen *s, int code, bool down, struct err *e)
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
    s->events++; /* two of them */
    return key_end(s, code, false, e);
}

/* ---- modifiers -------------------------------------------------------------------------------- */

static unsigned our_modifiers(const struct screen *s)
{
    unsigned ours = 0;
    for (int code = 8; code < HELD_KEYS; code++)
        if (s->held.key[code] && s->map->map->modmap)
            ours |= s->map->map->modmap[code];
    return ours;
}

/* Modifiers that somebody else holds.  A latched one (sticky keys) would apply to our next key: it is
 * cleared. */
static unsigned foreign_modifiers(struct screen *s)
{
    XkbStateRec st = {0};
    if (!s->lost)
        XkbGetState(s->dpy, XkbUseCoreKbd, &st);
    if (st.latched_mods)
        XkbLatchModifiers(s->dpy, XkbUseCoreKbd, st.latched_mods, 0);
    return st.base_mods & ~our_modifiers(s);
}

static bool same_symbols(XkbDescPtr a, XkbDescPtr b)
{
    if (a->min_key_code != b->min_key_code || a->max_key_code != b->max_key_code)
        return false;
    for (int code = a->min_key_code; code <= a->max_key_code; code++) {
        int n = XkbKeyNumSyms(a, code);
        if (n != XkbKeyNumSyms(b, code) || XkbKeyNumGroups(a, code) != XkbKeyNumGroups(b, code) ||
            memcmp(XkbKeySymsPtr(a, code), XkbKeySymsPtr(b, code), (size_t)n * sizeof(KeySym)) != 0)
            return false;
    }
    return true;
}

/* Clients translate by the map of the keyboard used last.  If that is another map, a tap of an unmapped key
 * makes them read the XTEST keyboard's; they get time for it. */
static int activate_xtest_keyboard(struct screen *s, struct err *e)
{
    int source;
    uint8_t code;
    if (!s->keyboard_id || xtest_keyboard(s, &source) != s->keyboard_id || source == s->keyboard_id)
        return screen_alive(s, e);
    XkbDescPtr core = XkbGetMap(s->dpy, XkbAllClientInfoMask, XkbUseCoreKbd);
    bool same = core && core->map && core->map->syms && same_symbols(core, s->map);
    if (core)
        XkbFreeKeyboard(core, XkbAllComponentsMask, True);
    if (same || !keyboard_free_codes(s, &code, 1))
        return screen_alive(s, e);
    return key_tap(s, code, e) || screen_wait(s, s->options.keymap_settle_ms, e) ? -1 : 0;
}

int keyboard_wait_modifiers(struct screen *s, struct err *e)
{
    if (screen_may_act(s, e) || keyboard_read(s, e))
        return -1;
    unsigned mods = 0;
    for (int ms = 0; (mods = foreign_modifiers(s)) != 0; ms += 20) {
        if (ms >= MODIFIER_WAIT_MS)
            return err_set(e, ERR_FAILED, "somebody holds %s on the keyboard; nothing was done",
                           mods & ShiftMask     ? "Shift"
                           : mods & ControlMask ? "Control"
                                                : "a modifier key");
        if (screen_wait(s, 20, e))
            return -1;
    }
    return screen_alive(s, e);
}

int keyboard_ready(struct screen *s, struct err *e)
{
    return keyboard_wait_modifiers(s, e) || activate_xtest_keyboard(s, e) ? -1 : 0;
}

unsigned keyboard_clear_locks(struct screen *s)
{
    XkbStateRec st = {0};
    if (!s->lost)
        XkbGetState(s->dpy, XkbUseCoreKbd, &st);
    unsigned locked =
        st.locked_mods & (LockMask | ControlMask | Mod1Mask | Mod4Mask); /* Mod1, Mod4: Alt, Super */
    if (locked) {
        held_set_locks(&s->held, locked);
        XkbLockModifiers(s->dpy, XkbUseCoreKbd, locked, 0);
        XSync(s->dpy, False);
    }
    return locked;
}

void keyboard_restore_locks(struct screen *s, unsigned locked)
{
    if (locked && !s->lost) {
        XkbLockModifiers(s->dpy, XkbUseCoreKbd, locked, locked);
        XSync(s->dpy, False);
    }
    if (locked)
        held_set_locks(&s->held, 0);
}

/* ---- keys ------------------------------------------------------------------------------------- */

/* key_event() through libxdo, which also locks the key's group for that event. */
static int chord_event(struct screen *s, int code, int group, bool down, struct err *e)
{
    if (!s->xdo && !(s->xdo = xdo_new_with_opened_display(s->dpy, s->name, 0)))
        return key_event(s, code, down, e);
    s->xdo->quiet = 1;
    if (key_begin(s, code, down, e))
        return -1;
    charcodemap_t key = {.code = (KeyCode)code, .group = group};
    int modifiers = 0;
    int failed = xdo_send_keysequence_window_list_do(s->xdo, CURRENTWINDOW, &key, 1, down, &modifiers, 0);
    if (key_end(s, code, down || failed, e)) /* failed: the release was not sent */
        return -1;
    return failed ? err_set(e, ERR_FAILED, "libxdo could not send keycode %d", code) : 0;
}

static struct key_down *down_entry(struct screen *s, uint32_t keysym)
{
    for (int i = 0; i < MAX_DOWN; i++)
        if (s->down[i].keysym == keysym)
            return &s->down[i];
    return NULL;
}

static int press(struct screen *s, uint32_t keysym, struct err *e)
{
    if (down_entry(s, keysym))
        return 0;
    struct key_down *d = down_entry(s, 0);
    if (!d)
        return err_set(e, ERR_FAILED, "more than %d keys held at once", MAX_DOWN);
    struct keypress k, shift;
    if (keyboard_read(s, e))
        return -1;
    if (!keyboard_find(s, keysym, true, &k)) {
        if (spare_bind(s, &keysym, 1, e))
            return -1;
        k = (struct keypress){.code = spare_code(s, keysym)};
    }
    *d = (struct key_down){.keysym = keysym, .code = k.code, .group = k.group};
    if (k.shift && !(our_modifiers(s) & ShiftMask) && keyboard_find(s, XK_Shift_L, true, &shift)) {
        d->shift_code = shift.code;
        if (chord_event(s, shift.code, k.group, true, e))
            return -1;
    }
    return chord_event(s, k.code, k.group, true, e);
}

static int release(struct screen *s, uint32_t keysym, struct err *e)
{
    struct key_down *entry = down_entry(s, keysym), d;
    if (!entry)
        return 0; /* not pressed by us, or released meanwhile */
    d = *entry;
    *entry = (struct key_down){0};
    int rc = 0;
    if (s->held.key[d.code])
        rc = chord_event(s, d.code, d.group, false, e);
    if (d.shift_code && s->held.key[d.shift_code] && chord_event(s, d.shift_code, d.group, false, e))
        rc = -1;
    if (!rc && spare_code(s, keysym)) {
        screen_wait(s, s->options.keymap_settle_ms, NULL); /* clients still look it up */
        spare_restore(s);
    }
    return rc;
}

int screen_key(struct screen *s, uint32_t keysym, bool down, struct err *e)
{
    if (screen_alive(s, e))
        return -1;
    if (!keysym)
        return err_set(e, ERR_USAGE, "no such key");
    if (!down)
        return release(s, keysym, e);
    if (keyboard_ready(s, e) == 0 && press(s, keysym, e) == 0)
        return 0;
    release(s, keysym, NULL);
    return -1;
}

static int chord(struct screen *s, const uint32_t *keysyms, int n, struct err *e)
{
    bool before[MAX_DOWN] = {0}; /* a key that was held before the chord stays held after it */
    int done = 0, rc = 0;
    for (; done < n && rc == 0; done++) {
        before[done] = down_entry(s, keysyms[done]) != NULL;
        rc = screen_key(s, keysyms[done], true, e);
    }
    if (rc == 0)
        rc = screen_wait(s, CHORD_MS, e);
    while (done-- > 0)
        if (!before[done] && screen_key(s, keysyms[done], false, rc ? NULL : e))
            rc = -1;
    return rc;
}

int screen_chord(struct screen *s, const uint32_t *keysyms, int n, struct err *e)
{
    if (n > MAX_DOWN)
        return err_set(e, ERR_USAGE, "a chord of %d keys", n);
    bool locks = false; /* the chord changes a lock */
    for (int i = 0; i < n; i++)
        locks = locks || keysyms[i] == XK_Caps_Lock || keysyms[i] == XK_Shift_Lock;
    unsigned locked = locks || screen_may_act(s, NULL) ? 0 : keyboard_clear_locks(s);
    int rc = chord(s, keysyms, n, e);
    keyboard_restore_locks(s, locked);
    return rc;
}
