/* spare_keycodes.c - borrowed keycodes for characters that the keyboard lacks.
 *
 * A keycode without a keysym is bound to one. A client translates a key with the map that it has when it
 * reads the event, not with the map at the time of the press. Therefore:
 *
 *   - a keycode keeps its keysym until another one needs it or the run ends;
 *   - before it gets another keysym, the program must have consumed its keys (key_delivery.c);
 *   - both levels get the same keysym: with one level, a capital would be the shifted half of a letter key,
 *     and O-acute would arrive as o-acute;
 *   - many keysyms are bound together: each change makes every client read the whole map again, and the
 *     program gets time for that.
 *
 * Bindings are recorded in the held file first, so that the next start can undo them. A user who loads
 * another layout removes them; keyboard_read() notices this. */
#include "screen/x11/x11_impl.h"

#include <X11/extensions/XInput2.h>
#include <stdlib.h>

struct spare spare_of(uint32_t keysym)
{
    return (struct spare){.keysym = keysym, .shifted = keysym};
}

struct spare spare_with_case(uint32_t keysym)
{
    KeySym lower, upper;
    XConvertCase(keysym, &lower, &upper);
    return (struct spare){.keysym = (uint32_t)lower, .shifted = (uint32_t)upper};
}

static bool same_keysyms(const struct spare *a, const struct spare *b)
{
    return a->keysym == b->keysym && a->shifted == b->shifted;
}

static int by_code(const void *a, const void *b)
{
    const struct spare *x = a, *y = b;
    return x->code - y->code;
}

/* Lists the keycodes, sorted. If there are more than MAX_SPARE, bound ones have priority over those that are
 * free now. */
static void list_codes(struct screen *s)
{
    uint8_t codes[MAX_SPARE];
    int found = keyboard_free_codes(s, codes, MAX_SPARE), n = 0;
    for (int i = 0; i < s->x11->n_spare; i++)
        if (s->x11->spare[i].keysym)
            s->x11->spare[n++] = s->x11->spare[i];
    for (int i = 0; i < found && n < MAX_SPARE; i++)
        s->x11->spare[n++] = (struct spare){.code = codes[i]};
    qsort(s->x11->spare, (size_t)n, sizeof *s->x11->spare, by_code);
    s->x11->n_spare = n;
}

int spare_capacity(struct screen *s)
{
    list_codes(s);
    return s->x11->n_spare;
}

int spare_code(struct screen *s, const struct spare *want)
{
    for (int i = 0; i < s->x11->n_spare; i++)
        if (same_keysyms(&s->x11->spare[i], want))
            return s->x11->spare[i].code;
    return 0;
}

/* Writes the changed keycodes into one device's map with a single request. The request covers a range of
 * keycodes, so it repeats the keys in between as this device has them. The actions are read, too, because
 * XkbChangeTypesOfKey() of newer libX11 (Debian 13) clears those of a key without groups, and crashes
 * without them. */
static void write_device(struct screen *s, unsigned device, const bool *changed)
{
    XkbDescPtr m = XkbGetMap(s->x11->dpy, XkbAllClientInfoMask | XkbKeyActionsMask, device);
    XkbMapChangesRec range = {.changed = XkbKeySymsMask};
    int two_levels[XkbNumKbdGroups] = {XkbTwoLevelIndex}, last = 0;
    for (int i = 0; m && m->map && m->map->syms && i < s->x11->n_spare; i++) {
        const struct spare *p = &s->x11->spare[i];
        if (!changed[i] || p->code < m->min_key_code || p->code > m->max_key_code ||
            XkbChangeTypesOfKey(m, p->code, p->keysym ? 1 : 0, XkbGroup1Mask, two_levels, NULL) != Success)
            continue;
        if (p->keysym) {
            XkbKeySymsPtr(m, p->code)[0] = p->keysym;
            XkbKeySymsPtr(m, p->code)[1] = p->shifted;
        }
        range.first_key_sym = last ? range.first_key_sym : p->code;
        last = p->code;
    }
    range.num_key_syms = (unsigned char)(last ? last - range.first_key_sym + 1 : 0);
    if (last)
        XkbChangeMap(s->x11->dpy, m, &range);
    if (m)
        XkbFreeKeyboard(m, XkbAllComponentsMask, True);
}

/* Writes the keysyms into the maps of all keyboards, because the user may use another one meanwhile and the
 * server copies the map of the keyboard used last to clients. One request per keycode would announce as many
 * mappings, and window managers grab all their keys again after each. The server is grabbed so that nobody
 * can load another layout between reading and writing a map. */
static int write_map(struct screen *s, const bool *changed, struct err *e)
{
    int n = 0;
    struct xtrap t;
    held_store(&s->x11->held);
    xtrap_begin(&t, s->x11->dpy);
    XGrabServer(s->x11->dpy);
    XIDeviceInfo *list = s->x11->xinput && !s->lost ? XIQueryDevice(s->x11->dpy, XIAllDevices, &n) : NULL;
    for (int i = 0; i < n && list; i++)
        if (list[i].use == XISlaveKeyboard)
            write_device(s, (unsigned)list[i].deviceid, changed);
    if (!list && !s->lost)
        write_device(s, XkbUseCoreKbd, changed);
    if (list)
        XIFreeDeviceInfo(list);
    XUngrabServer(s->x11->dpy);
    int code = xtrap_end(&t);
    s->x11->map_stale = true;
    if (screen_alive(s, e))
        return -1;
    return code ? err_set(e, ERR_FAILED, "display '%s' refused to bind keys (X error %d)", s->name, code) : 0;
}

static int oldest(struct screen *s, const bool *taken)
{
    int best = -1;
    for (int i = 0; i < s->x11->n_spare; i++)
        if (!taken[i] && (best < 0 || s->x11->spare[i].since < s->x11->spare[best].since))
            best = i;
    return best;
}

/* Waits until the program has consumed the text typed with a keycode that is about to get another keysym. */
static int wait_before_reuse(struct screen *s, struct err *e)
{
    enum delivery r;
    if (delivery_wait(s, READ_MS, &r, e))
        return -1;
    if (r == DELIVERY_BEHIND)
        return err_set(e, ERR_FAILED,
                       "unsure: the program has not read its keys for %d s, so the text is "
                       "incomplete",
                       READ_MS / 1000);
    return r == DELIVERY_DONE ? 0 : screen_wait(s, s->options.keymap_settle_ms, e);
}

int spare_bind(struct screen *s, const struct spare *want, int n, struct err *e)
{
    bool taken[MAX_SPARE] = {0}, changed[MAX_SPARE] = {0}, reused = false, any = false;
    struct spare next[MAX_SPARE];
    if (screen_may_act(s, e))
        return -1;
    list_codes(s);
    for (int i = 0; i < s->x11->n_spare; i++) {
        next[i] = s->x11->spare[i];
        for (int k = 0; k < n; k++)
            taken[i] = taken[i] || same_keysyms(&s->x11->spare[i], &want[k]);
    }
    s->x11->spare_clock++;
    for (int k = 0; k < n; k++) {
        if (spare_code(s, &want[k]))
            continue;
        int i = oldest(s, taken);
        if (i < 0)
            return err_set(e, ERR_USAGE,
                           "cannot type U+%04X: no key produces it and no keycode is free for it",
                           (unsigned)(want[k].keysym & 0xffffff));
        reused |= s->x11->spare[i].keysym != 0;
        next[i] = (struct spare){s->x11->spare[i].code, want[k].keysym, want[k].shifted, s->x11->spare_clock};
        taken[i] = changed[i] = any = true;
    }
    if (!any)
        return 0;
    unsigned layouts = s->x11->layouts;
    if ((reused && wait_before_reuse(s, e)) || keyboard_read(s, e))
        return -1;
    if (s->x11->layouts != layouts) /* other keycodes may be free now */
        return spare_bind(s, want, n, e);
    for (int i = 0; i < s->x11->n_spare; i++) {
        s->x11->spare[i] = next[i];
        if (changed[i])
            held_set_spare(&s->x11->held, s->x11->spare[i].code, s->x11->spare[i].keysym);
    }
    return write_map(s, changed, e) || delivery_settle(s, e) ? -1 : 0;
}

bool spare_bound(const struct screen *s)
{
    for (int i = 0; i < s->x11->n_spare; i++)
        if (s->x11->spare[i].keysym)
            return true;
    return false;
}

bool spare_forget_lost(struct screen *s)
{
    bool any = false;
    for (int i = 0; i < s->x11->n_spare; i++) {
        struct spare *p = &s->x11->spare[i];
        XkbDescPtr m = s->x11->map;
        if (!p->keysym || (XkbKeyNumGroups(m, p->code) && XkbKeySymEntry(m, p->code, 0, 0) == p->keysym &&
                           (p->keysym == p->shifted || (XkbKeyGroupWidth(m, p->code, 0) > 1 &&
                                                        XkbKeySymEntry(m, p->code, 1, 0) == p->shifted))))
            continue;
        held_set_spare(&s->x11->held, p->code, 0);
        p->keysym = p->shifted = 0;
        any = true;
    }
    if (any)
        held_store(&s->x11->held);
    return any;
}

void spare_restore(struct screen *s)
{
    bool changed[MAX_SPARE] = {0};
    if (s->lost || keyboard_read(s, NULL) || !spare_bound(s))
        return;
    for (int i = 0; i < s->x11->n_spare; i++) {
        changed[i] = s->x11->spare[i].keysym != 0;
        s->x11->spare[i].keysym = s->x11->spare[i].shifted = 0;
    }
    write_map(s, changed, NULL);
    for (int i = 0; i < s->x11->n_spare; i++)
        held_set_spare(&s->x11->held, s->x11->spare[i].code, 0);
    held_store(&s->x11->held);
}
