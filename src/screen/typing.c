/* typing.c - text.
 *
 * Each character becomes a keysym.  Keysyms on the keyboard (plain or with Shift) are typed with their own
 * keys; others are bound to free keycodes (spare_keycodes.c), and the text is typed in runs that need no
 * more new keysyms than there are keycodes.  All runs but the last use at most half of the keycodes, so
 * that the bindings of the run before stay valid for a slow client.  After the last character: a wait, then
 * the keymap is restored. On a keyboard without free keycodes, a text that needs one is pasted (paste.c).
 *
 * Press and release of a key are sent together: a key that stays down while this process is not scheduled
 * would repeat.
 */
#include "screen/private.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <X11/keysym.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20 };

/* The text's *n keysyms, owned by the caller; NULL with e. */
static uint32_t *decode(const char *utf8, size_t len, size_t *n, struct err *e)
{
    if (len > TEXT_MAX) {
        err_set(e, ERR_USAGE, "text of %zu bytes; the limit is %d", len, TEXT_MAX);
        return NULL;
    }
    uint32_t *out = xmalloc(len + 1, sizeof *out);
    *n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        int k = utf8_decode(utf8 + i, len - i, &c);
        if (k < 0 || (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || (c >= 0x7f && c < 0xa0)) {
            err_set(e, ERR_USAGE, "text has %s at byte %zu", k < 0 ? "invalid UTF-8" : "a control character",
                    i);
            free(out);
            return NULL;
        }
        i += (size_t)k;
        if (c == '\r' && i < len && utf8[i] == '\n')
            continue;
        if (c == '\n' || c == '\r')
            out[(*n)++] = XK_Return;
        else if (c == '\t')
            out[(*n)++] = XK_Tab;
        else
            out[(*n)++] = c < 0x100 ? c : 0x01000000 | c; /* how keysyms encode Unicode */
    }
    return out;
}

static bool on_keyboard(struct screen *s, uint32_t keysym)
{
    struct keypress k;
    return keyboard_find(s, keysym, false, &k);
}

static bool contains(const uint32_t *list, int n, uint32_t v)
{
    for (int i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

/* Length of the longest run from text[0] with at most `capacity` unmapped keysyms, returned in need. */
static size_t plan_run(struct screen *s, const uint32_t *text, size_t n, uint32_t *need, int *n_need,
                       int capacity)
{
    size_t i = 0;
    *n_need = 0;
    for (; i < n; i++) {
        if (contains(need, *n_need, text[i]) || on_keyboard(s, text[i]))
            continue;
        if (*n_need == capacity)
            break;
        need[(*n_need)++] = text[i];
    }
    return i;
}

static int tap(struct screen *s, int code, int shift, struct err *e)
{
    if (shift && key_event(s, shift, true, e))
        return -1;
    int rc = key_tap(s, code, e);
    if (shift && key_event(s, shift, false, rc ? NULL : e))
        rc = -1;
    return rc;
}

/* When the window is gone, keys would reach whichever window gets the focus next. */
static int check_view(struct screen *s, struct err *e)
{
    XWindowAttributes a = {0};
    struct xtrap t;
    if (!s->view_window)
        return 0;
    xtrap_begin(&t, s->dpy);
    bool there = XGetWindowAttributes(s->dpy, s->view_window, &a) && a.map_state == IsViewable;
    if (!xtrap_end(&t) && there)
        return 0;
    return screen_alive(s, e)
               ? -1
               : err_set(e, ERR_FAILED,
                         "window 0x%lx went off the screen while typing: the rest was not typed",
                         s->view_window);
}

static int type_run(struct screen *s, const uint32_t *text, size_t n, struct err *e)
{
    struct keypress shift = {0}, k;
    if (keyboard_read(s, e))
        return -1;
    keyboard_find(s, XK_Shift_L, true, &shift);
    for (size_t i = 0; i < n; i++) {
        int code = spare_code(s, text[i]);
        bool shifted = false;
        if (!code) {
            if (keyboard_read(s, e))
                return -1;
            if (!keyboard_find(s, text[i], false, &k))
                return err_set(e, ERR_FAILED, "the keyboard map changed while typing");
            code = k.code;
            shifted = k.shift;
        }
        if (check_view(s, e) || tap(s, code, shifted ? shift.code : 0, e) ||
            screen_wait(s, s->options.key_delay_ms, e))
            return -1;
    }
    return 0;
}

static int type_all(struct screen *s, const uint32_t *text, size_t n, struct err *e)
{
    int capacity = spare_capacity(s);
    for (size_t done = 0; done < n;) {
        uint32_t need[MAX_SPARE];
        int n_need;
        size_t run = plan_run(s, text + done, n - done, need, &n_need, capacity);
        if (done + run < n) /* not the last run: use half */
            run = plan_run(s, text + done, n - done, need, &n_need, (capacity + 1) / 2);
        if (!run)
            return err_set(e, ERR_USAGE, "no key gives U+%04X and no keycode is free for it",
                           (unsigned)(text[done] & 0xffffff));
        if (spare_bind(s, need, n_need, e) || type_run(s, text + done, run, e))
            return -1;
        done += run;
    }
    return 0;
}

/* A secret is never pasted, and no message mentions its characters. */
static int type_with(struct screen *s, const char *utf8, size_t len, bool secret, struct err *e)
{
    size_t n;
    if (screen_alive(s, e))
        return -1;
    uint32_t *text = decode(utf8, len, &n, e);
    if (!text)
        return -1;
    int rc = n ? keyboard_ready(s, e) : 0;
    if (n && rc == 0) {
        unsigned locked = keyboard_clear_locks(s);
        int none;
        if (spare_capacity(s) || plan_run(s, text, n, NULL, &none, 0) == n)
            rc = type_all(s, text, n, e);
        else if (secret)
            rc = err_set(e, ERR_USAGE, "no key gives a character of a secret, and secrets are not pasted");
        else
            rc = paste_text(s, utf8, len, e);
        if (spare_bound(s)) {
            /* Also after a stop: clients still have to translate what was typed. */
            clock_sleep_ms(s->options.keymap_settle_ms);
            spare_restore(s);
        }
        keyboard_restore_locks(s, locked);
    }
    explicit_bzero(text, n * sizeof *text);
    free(text);
    return rc;
}

int screen_type(struct screen *s, const char *utf8, size_t len, struct err *e)
{
    return type_with(s, utf8, len, false, e);
}

int screen_type_secret(struct screen *s, const char *utf8, size_t len, struct err *e)
{
    struct err why = ERR_INIT;
    int rc = type_with(s, utf8, len, true, &why);
    if (rc && why.kind == ERR_USAGE)
        return err_set(e, ERR_USAGE,
                       "a secret has a character that no key gives, and secrets are not pasted");
    return rc ? err_set(e, why.kind, "%s", why.text) : 0;
}
