/* chords.c - presses and releases single keys and chords.
 *
 * libxdo sends one key at a time and locks the key's group for that event; typing does not need this
 * (typing.c). A keysym that is not on any key of any group gets a borrowed keycode. While Shift is down, a
 * letter is bound with its capital on the Shift level, as on a regular keyboard. */
#include "screen/private.h"

#include <X11/extensions/XTest.h>
#include <X11/keysym.h>

enum { CHORD_MS = 20 }; /* time between the last press and the first release */

/* Creates the libxdo context. libxdo then reads the keymap, and crashes if the display is lost meanwhile. */
static int open_xdo(void *arg)
{
    struct screen *s = arg;
    s->xdo = xdo_new_with_opened_display(s->dpy, s->name, 0);
    return s->xdo ? 0 : -1;
}

/* Sends a key event like key_event(), but through libxdo. */
static int chord_event(struct screen *s, int code, int group, bool down, struct err *e)
{
    int rc = s->xdo ? 0 : xtrap_asking(open_xdo, s);
    s->lost = s->lost || rc == XTRAP_LOST;
    if (screen_alive(s, e))
        return -1;
    if (rc)
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

/* Returns whether our press is still in effect; a stop may have released the key. */
static bool is_down(const struct screen *s, int code)
{
    return s->held.key[code] && !s->held.key_sent[code];
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

static int key(struct screen *s, uint32_t keysym, bool down, unsigned leave, struct err *e)
{
    if (screen_alive(s, e))
        return -1;
    if (!keysym)
        return err_set(e, ERR_USAGE, "no such key");
    if (!down)
        return release(s, keysym, e);
    bool before = down_entry(s, keysym) != NULL;
    if (keyboard_begin(s, leave, e) == 0 && press(s, keysym, e) == 0)
        return 0;
    if (!before) /* a key that was held stays held */
        release(s, keysym, NULL);
    keyboard_end(s);
    return -1;
}

/* Returns the locks that stay on during a chord: all of them if the chord itself changes a lock. */
static unsigned locks_to_leave(const uint32_t *keysyms, int n)
{
    for (int i = 0; i < n; i++)
        if (keysyms[i] == XK_Caps_Lock || keysyms[i] == XK_Shift_Lock)
            return ~0u;
    return 0;
}

int screen_key(struct screen *s, uint32_t keysym, bool down, struct err *e)
{
    return key(s, keysym, down, locks_to_leave(&keysym, 1), e);
}

int screen_chord(struct screen *s, const uint32_t *keysyms, int n, struct err *e)
{
    bool before[MAX_DOWN] = {0}; /* a key that was held before the chord stays held after it */
    int done = 0, rc = 0;
    if (n > MAX_DOWN)
        return err_set(e, ERR_USAGE, "a chord of %d keys", n);
    for (; done < n && rc == 0; done++) {
        before[done] = down_entry(s, keysyms[done]) != NULL;
        rc = key(s, keysyms[done], true, locks_to_leave(keysyms, n), e);
    }
    if (rc == 0)
        rc = screen_wait(s, CHORD_MS, e);
    while (done-- > 0)
        if (!before[done] && key(s, keysyms[done], false, 0, rc ? NULL : e))
            rc = -1;
    return rc;
}
