/* spare_keycodes.c - borrowed keycodes for characters that the keyboard lacks.
 *
 * A keycode without any keysym is given one for a while.  Rebinding one key per character is unreliable, so:
 *   - both columns get the same keysym: with one column the server treats a capital as the shifted half of a
 *     letter key, and O-acute arrives as o-acute;
 *   - many keysyms are bound together and stay: each change makes every client read the whole map again;
 *   - a wait follows each change and precedes each reuse of a keycode: a client translates a key with the map
 *     it has when it reads the event, not with the one that was valid when the key was pressed.
 * Bindings are recorded in the held file first, so that the next start can undo them.
 */
#include "screen/private.h"

#include <X11/XKBlib.h>

/* Lists the free keycodes while nothing is bound: only then is a keycode without keysym free. */
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

int spare_capacity(struct screen *s)
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

/* One request for each run of consecutive keycodes. */
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
