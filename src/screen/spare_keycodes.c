/* spare_keycodes.c - borrowed keycodes for characters the keyboard has not.
 *
 * A keycode without any keysym is given one for a while.  Three things make this reliable where
 * rebinding one key per character is not:
 *   - both columns get the same keysym: with one column the server takes a capital for the shifted
 *     half of a letter key, and O-acute arrives as o-acute;
 *   - many keysyms are bound together and stay, since every change makes every client read the whole
 *     map again, at its own pace;
 *   - after a change, and before a keycode gets another meaning, there is a wait: a key is translated
 *     with the map the client has when it looks, not the one that was valid when it was pressed.
 * What is bound is written to the held file first, so that the next start can give it back.
 */
#include "screen/private.h"

#include <X11/XKBlib.h>

/* The list of free keycodes is made when nothing is bound: then "without keysym" means free. */
static void list_codes(struct screen *s)
{
    for (int i = 0; i < s->n_spare; i++)
        if (s->spare[i].keysym)
            return;
    uint8_t codes[MAX_SPARE];
    s->n_spare = keyboard_free_codes(s, codes, MAX_SPARE);
    for (int i = 0; i < s->n_spare; i++)
        s->spare[i] = (struct spare){.code = codes[i]};
}

int scratch_room(struct screen *s)
{
    list_codes(s);
    return s->n_spare;
}

int spare_code(struct screen *s, uint32_t keysym)
{
    for (int i = 0; i < s->n_spare; i++)
        if (s->spare[i].keysym == keysym)
            return s->spare[i].code;
    return 0;
}

/* The map as wanted, in one request for each row of neighbouring keycodes. */
static int write_map(struct screen *s, const bool *changed, struct err *e)
{
    held_store(&s->held);
    struct xtrap t;
    xtrap_begin(&t, s->dpy);
    for (int i = 0; i < s->n_spare;) {
        KeySym syms[2 * MAX_SPARE];
        int n = 0;
        for (; i + n < s->n_spare && changed[i + n] && s->spare[i + n].code == s->spare[i].code + n; n++)
            syms[2 * n] = syms[2 * n + 1] = s->spare[i + n].keysym;
        if (n)
            XChangeKeyboardMapping(s->dpy, s->spare[i].code, 2, syms, n);
        i += n ? n : 1;
    }
    int code = xtrap_end(&t);
    s->map_stale = true;
    if (screen_alive(s, e))
        return -1;
    return code ? err_set(e, ERR_FAILED, "display '%s' refused to bind keys (X error %d)", s->name, code) : 0;
}

static int oldest(struct screen *s, const bool *taken)
{
    int best = -1;
    for (int i = 0; i < s->n_spare; i++)
        if (!taken[i] && (best < 0 || s->spare[i].since < s->spare[best].since))
            best = i;
    return best;
}

int spare_bind(struct screen *s, const uint32_t *keysyms, int n, struct err *e)
{
    bool taken[MAX_SPARE] = {0}, changed[MAX_SPARE] = {0}, reused = false, any = false;
    if (screen_may_act(s, e))
        return -1;
    list_codes(s);
    for (int i = 0; i < s->n_spare; i++)
        for (int k = 0; k < n; k++)
            if (s->spare[i].keysym == keysyms[k])
                taken[i] = true;
    s->spare_clock++;
    for (int k = 0; k < n; k++) {
        if (spare_code(s, keysyms[k]))
            continue;
        int i = oldest(s, taken);
        if (i < 0)
            return err_set(e, ERR_USAGE, "no key gives U+%04X and no keycode is free for it",
                           (unsigned)(keysyms[k] & 0xffffff));
        reused |= s->spare[i].keysym != 0;
        s->spare[i].keysym = keysyms[k];
        s->spare[i].since = s->spare_clock;
        taken[i] = changed[i] = any = true;
    }
    if (!any)
        return 0;
    if (reused && screen_wait(s, s->options.keymap_settle_ms, e))
        return -1;
    for (int i = 0; i < s->n_spare; i++)
        if (changed[i])
            held_set_spare(&s->held, s->spare[i].code, s->spare[i].keysym);
    if (write_map(s, changed, e))
        return -1;
    return screen_wait(s, s->options.keymap_settle_ms, e);
}

bool spare_bound(const struct screen *s)
{
    for (int i = 0; i < s->n_spare; i++)
        if (s->held.spare[s->spare[i].code])
            return true;
    return false;
}

void spare_restore(struct screen *s)
{
    bool changed[MAX_SPARE] = {0}, any = false;
    for (int i = 0; i < s->n_spare; i++) {
        any |= changed[i] = s->held.spare[s->spare[i].code] != 0;
        s->spare[i].keysym = 0;
    }
    if (!any || s->lost)
        return;
    write_map(s, changed, NULL);
    for (int i = 0; i < s->n_spare; i++)
        held_set_spare(&s->held, s->spare[i].code, 0);
    held_store(&s->held);
}
