/* keys.c - single keys and chords. */
#include "screen/private.h"

#include <X11/keysym.h>

/* time between the last press and the first release, for programs that may poll the keyboard: those that
 * answer pings read events, and need none */
enum { CHORD_MS = 20 };

/* Returns whether the locks stay on during a chord: they do if the chord itself changes one. */
static bool changes_locks(const uint32_t *keysyms, int n)
{
    for (int i = 0; i < n; i++)
        if (keysyms[i] == XK_Caps_Lock || keysyms[i] == XK_Shift_Lock)
            return true;
    return false;
}

static int key(struct screen *s, uint32_t keysym, bool down, bool leave_locks, struct err *e)
{
    if (screen_alive(s, e))
        return -1;
    if (!keysym)
        return err_set(e, ERR_USAGE, "no such key");
    return s->ops->key(s, keysym, down, leave_locks, e);
}

int screen_key(struct screen *s, uint32_t keysym, bool down, struct err *e)
{
    return key(s, keysym, down, changes_locks(&keysym, 1), e);
}

int screen_chord(struct screen *s, const uint32_t *keysyms, int n, struct err *e)
{
    bool before[MAX_DOWN] = {0}; /* a key that was held before the chord stays held after it */
    int done = 0, rc = 0;
    if (n > MAX_DOWN)
        return err_set(e, ERR_USAGE, "a chord of %d keys", n);
    for (; done < n && rc == 0; done++) {
        before[done] = s->ops->holds_key(s, keysyms[done]);
        rc = key(s, keysyms[done], true, changes_locks(keysyms, n), e);
    }
    if (rc == 0)
        rc = screen_wait(s, !s->lost && s->ops->confirms(s) ? 0 : CHORD_MS, e);
    while (done-- > 0)
        if (!before[done] && key(s, keysyms[done], false, false, rc ? NULL : e))
            rc = -1;
    return rc;
}

int screen_keys_read(struct screen *s, double max_ms, struct err *e)
{
    bool late;
    if (screen_alive(s, e) || !s->ops->confirms(s))
        return screen_wait(s, max_ms, e);
    return s->ops->ping(s, max_ms, &late, e);
}

uint32_t screen_shifted(struct screen *s, uint32_t keysym)
{
    return s && !s->lost ? s->ops->shifted(s, keysym) : 0;
}
