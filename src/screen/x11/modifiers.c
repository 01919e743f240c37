/* modifiers.c - the user's modifiers, locks and accessibility settings around our own keys and clicks.
 *
 * Modifiers held by the user would turn text into commands and clicks into selections. We wait for their
 * release; if we released and pressed them ourselves, they would get stuck if the user lets go in between.
 *
 * Locked and latched modifiers and the accessibility controls would change our keys as well: Caps Lock, a
 * Control latched by sticky keys, slow keys that ignore a short press. And our keys would change them: two
 * keys at once switch sticky keys off. They are recorded (held.h), cleared before the first key, and restored
 * when none of our keys or buttons is down. */
#include "screen/x11/x11_impl.h"

#include <X11/keysym.h>
#include <string.h>

enum {
    MODIFIER_WAIT_MS = 1000,
    DISTURBING_LOCKS = LockMask | ControlMask | Mod1Mask | Mod4Mask, /* Mod1, Mod4: Alt, Super */
    DISTURBING_CONTROLS =
        XkbSlowKeysMask | XkbBounceKeysMask | XkbStickyKeysMask | XkbMouseKeysMask | XkbAccessXKeysMask,
};

unsigned keyboard_our_modifiers(const struct screen *s)
{
    unsigned ours = 0;
    for (int code = 8; code < HELD_KEYS; code++)
        if (s->x11->held.key[code] && s->x11->map && s->x11->map->map->modmap)
            ours |= s->x11->map->map->modmap[code];
    return ours;
}

unsigned keyboard_foreign_modifiers(const struct screen *s)
{
    return s->x11->state.base_mods & ~keyboard_our_modifiers(s);
}

/* ---- disturbing settings ----------------------------------------------------------------------------- */

static unsigned disturbing_controls(struct screen *s)
{
    XkbDescRec d = {.device_spec = XkbUseCoreKbd};
    bool ask = !s->lost && s->x11->controls_stale;
    if (ask && XkbGetControls(s->x11->dpy, XkbControlsEnabledMask, &d) == Success && d.ctrls) {
        s->x11->controls = d.ctrls->enabled_ctrls;
        s->x11->controls_stale = false;
        screen_pump(s); /* changes before that reply */
    }
    if (d.ctrls)
        XkbFreeControls(&d, XkbAllControlsMask, True);
    return s->x11->controls & DISTURBING_CONTROLS;
}

/* Clears settings that would change our keys. leave: locks that stay. */
static void clear_settings(struct screen *s, unsigned leave)
{
    struct held_settings *h = &s->x11->held.settings;
    unsigned controls = disturbing_controls(s), locks = s->x11->state.locked_mods & DISTURBING_LOCKS & ~leave,
             latches = s->x11->state.latched_mods, others = s->x11->state.locked_mods & ~locks;
    if (!controls && !locks && !latches)
        return;
    held_lock(&s->x11->held);
    *h = (struct held_settings){h->locks | locks, h->latches | latches, h->controls | controls};
    held_store(&s->x11->held);
    held_unlock(&s->x11->held);
    if (controls)
        XkbChangeEnabledControls(s->x11->dpy, XkbUseCoreKbd, controls, 0);
    if (locks)
        XkbLockModifiers(s->x11->dpy, XkbUseCoreKbd, locks, 0);
    if (latches)
        XkbLatchModifiers(s->x11->dpy, XkbUseCoreKbd, latches, 0);
    /* without sticky keys the server clears all locks and the selected layout */
    if (controls & XkbStickyKeysMask) {
        XkbLockModifiers(s->x11->dpy, XkbUseCoreKbd, others, others);
        XkbLockGroup(s->x11->dpy, XkbUseCoreKbd, s->x11->state.locked_group);
    }
    /* One write carries all of these requests: a kill leaves all or none of them done. */
    XSync(s->x11->dpy, False);
}

void keyboard_end(struct screen *s)
{
    if (s->lost || held_pressed(&s->x11->held) || !held_any(&s->x11->held))
        return;
    held_lock(&s->x11->held);
    held_restore_settings(&s->x11->held, s->x11->dpy);
    held_unlock(&s->x11->held);
}

/* ---- before the first key or click ------------------------------------------------------------- */

int keyboard_begin_pointer(struct screen *s, unsigned leave, struct err *e)
{
    unsigned mods = 0;
    if (!held_pressed(&s->x11->held)) /* before the first key, not only after an event */
        s->x11->state_stale = s->x11->controls_stale = true;
    if (screen_may_act(s, e) || pointer_wait_for_buttons(s, e) || keyboard_read(s, e))
        return -1;
    for (int ms = 0; (mods = keyboard_foreign_modifiers(s)) != 0; ms += 20) {
        if (ms >= MODIFIER_WAIT_MS)
            return err_set(e, ERR_FAILED, "somebody holds %s on the keyboard; nothing was done",
                           mods & ShiftMask     ? "Shift"
                           : mods & ControlMask ? "Control"
                                                : "a modifier key");
        if (screen_wait(s, 20, e) || keyboard_read(s, e))
            return -1;
    }
    clear_settings(s, leave);
    return keyboard_read(s, e);
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

/* Makes clients use the map of the XTEST keyboard. Clients translate keys with the map of the keyboard used
 * last. If that map differs, a tap of an unmapped key makes them read the new one, and they get time for
 * it. */
static int activate_xtest_keyboard(struct screen *s, struct err *e)
{
    uint8_t code;
    int id = s->x11->keyboard_id;
    if (s->x11->source_stale) {
        s->x11->source_stale = false;
        id = keyboard_xtest_id(s, &s->x11->source);
    }
    if (!s->x11->keyboard_id || id != s->x11->keyboard_id || s->x11->source == s->x11->keyboard_id)
        return screen_alive(s, e);
    XkbDescPtr core = XkbGetMap(s->x11->dpy, XkbAllClientInfoMask, XkbUseCoreKbd);
    bool same = core && core->map && core->map->syms && same_symbols(core, s->x11->map);
    if (core)
        XkbFreeKeyboard(core, XkbAllComponentsMask, True);
    if (same || !keyboard_free_codes(s, &code, 1))
        return screen_alive(s, e);
    return key_tap(s, code, e) || delivery_settle(s, e) ? -1 : 0;
}

int keyboard_begin(struct screen *s, unsigned leave, struct err *e)
{
    return keyboard_begin_pointer(s, leave, e) || grab_check_keyboard(s, e) || activate_xtest_keyboard(s, e)
               ? -1
               : 0;
}
