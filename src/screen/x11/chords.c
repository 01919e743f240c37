/* chords.c - presses and releases keys that may stay down.
 *
 * A key of another group than the active one is sent by libxdo, which locks the key's group for that event.
 * It reads the whole keyboard map each time, so it is not used for other keys. A keysym that is not on any
 * key of any group gets a borrowed keycode. While Shift is down, a letter is bound with its capital on the
 * Shift level, as on a regular keyboard. */
#include "screen/x11/x11_impl.h"

#include <X11/extensions/XTest.h>
#include <X11/keysym.h>

/* Creates the libxdo context. libxdo then reads the keymap, and crashes if the display is lost meanwhile. */
static int open_xdo(void *arg)
{
    struct screen *s = arg;
    s->x11->xdo = xdo_new_with_opened_display(s->x11->dpy, s->name, 0);
    return s->x11->xdo ? 0 : -1;
}

/* Sends a key event like key_event(), with this group. */
static int chord_event(struct screen *s, int code, int group, bool down, struct err *e)
{
    if (keyboard_read(s, down ? e : NULL) && down) /* a release is sent in any case */
        return -1;
    if (group == s->x11->state.group)
        return key_event(s, code, down, e);
    int rc = s->x11->xdo ? 0 : xtrap_asking(open_xdo, s);
    s->lost = s->lost || rc == XTRAP_LOST;
    if (screen_alive(s, e))
        return -1;
    if (rc)
        return key_event(s, code, down, e);
    s->x11->xdo->quiet = 1;
    if (key_begin(s, code, down, e))
        return -1;
    charcodemap_t key = {.code = (KeyCode)code, .group = group};
    int modifiers = 0;
    int failed =
        xdo_send_keysequence_window_list_do(s->x11->xdo, CURRENTWINDOW, &key, 1, down, &modifiers, 0);
    if (key_end(s, code, down || failed, e)) /* failed: the release was not sent */
        return -1;
    return failed ? err_set(e, ERR_FAILED, "libxdo could not send keycode %d", code) : 0;
}

/* Returns whether our press is still in effect; a stop may have released the key. */
static bool is_down(const struct screen *s, int code)
{
    return s->x11->held.key[code] && !s->x11->held.key_sent[code];
}

static struct key_down *down_entry(struct screen *s, uint32_t keysym)
{
    for (int i = 0; i < MAX_DOWN; i++)
        if (s->x11->down[i].keysym == keysym)
            return &s->x11->down[i];
    return NULL;
}

static int press(struct screen *s, uint32_t keysym, struct err *e)
{
    struct keypress k, shift;
    if (down_entry(s, keysym))
        return 0;
    struct key_down *d = down_entry(s, 0);
    if (!d)
        return err_set(e, ERR_FAILED, "more than %d keys held at once", MAX_DOWN);
    if (keyboard_read(s, e))
        return -1;
    if (!keyboard_find(s, keysym, true, &k)) {
        if (delivery_begin(s, e))
            return -1;
        const struct spare want =
            keyboard_our_modifiers(s) & ShiftMask ? spare_with_case(keysym) : spare_of(keysym);
        if (spare_bind(s, &want, 1, e))
            return -1;
        k = (struct keypress){.code = spare_code(s, &want), .shift = want.keysym != keysym};
    }
    *d = (struct key_down){.keysym = keysym, .code = k.code, .group = k.group};
    if (k.shift && !(keyboard_our_modifiers(s) & ShiftMask) && keyboard_find(s, XK_Shift_L, true, &shift)) {
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
        return 0; /* not pressed by us, or already released */
    d = *entry;
    *entry = (struct key_down){0};
    int rc = 0;
    if (is_down(s, d.code))
        rc = chord_event(s, d.code, d.group, false, e);
    if (d.shift_code && is_down(s, d.shift_code) && chord_event(s, d.shift_code, d.group, false, e))
        rc = -1;
    keyboard_end(s);
    return rc;
}

bool chords_hold(const struct screen *s, uint32_t keysym)
{
    for (int i = 0; i < MAX_DOWN; i++)
        if (s->x11->down[i].keysym == keysym)
            return true;
    return false;
}

int chords_key(struct screen *s, uint32_t keysym, bool down, bool leave_locks, struct err *e)
{
    if (!down)
        return release(s, keysym, e);
    bool before = chords_hold(s, keysym);
    if (keyboard_begin(s, leave_locks ? ~0u : 0, e) == 0 && press(s, keysym, e) == 0)
        return 0;
    if (!before) /* a key that was held stays held */
        release(s, keysym, NULL);
    keyboard_end(s);
    return -1;
}
