/* text.c - types text.
 *
 * Each character becomes a keysym. Keysyms on the keyboard (plain or with Shift) are typed with their own
 * keys; others are bound to free keycodes (spare_keycodes.c), and the text is typed in runs that need no more
 * new keysyms than there are keycodes. All runs but the last use at most half of the keycodes, so that the
 * next run rarely has to wait until the program has consumed its keys (key_delivery.c). On a keyboard without
 * free keycodes, a text that needs one is pasted (paste.c), and so is a text with characters beyond U+FFFF
 * for Java, which drops such keysyms.
 *
 * The layout, locks and modifiers may change at any time: keyboard and state are read again before each
 * character, and after a change the rest is planned again. The amount of text consumed by then is unknown. So
 * the text counts as typed only if one program has consumed all of it and nothing changed meanwhile;
 * otherwise the result is "unsure", an error that asks the model to check.
 *
 * Press and release of a key are sent together: a key that stays down while this process is not scheduled
 * would repeat. */
#include "screen/x11/x11_impl.h"

#include <X11/keysym.h>
#include <string.h>

enum {
    MOST_CHANGES = 100,
    UNREAD_KEYS = 64, /* characters after which the program must confirm that it has read them */
    BLIND_MS = 5,     /* after each character for a program that confirms nothing */
};

struct text_typing {
    struct screen *s;
    const uint32_t *text; /* keysyms */
    size_t n, done, read; /* read: characters that the program has confirmed */
    bool spare;           /* some characters were typed with a borrowed keycode */
    bool changed;         /* the keyboard map or state has changed since the first key */
    bool moved;           /* another program has received the focus before the last key */
    bool grabbed;         /* the keyboard is grabbed by a permitted program: grab_check_keyboard() */
    unsigned layouts;     /* screen.layouts at the time of planning */
    int group;
    struct err *e;
};

static bool on_keyboard(struct screen *s, uint32_t keysym)
{
    struct keypress k;
    return keyboard_find(s, keysym, false, &k);
}

static bool contains(const struct spare *list, int n, uint32_t v)
{
    for (int i = 0; i < n; i++)
        if (list[i].keysym == v)
            return true;
    return false;
}

/* Plans the longest run of the remaining text that needs at most `capacity` borrowed keycodes, and lists
 * these in need. Returns its length. */
static size_t plan_run(struct text_typing *t, struct spare *need, int *n_need, int capacity)
{
    size_t i = t->done;
    *n_need = 0;
    for (; i < t->n; i++) {
        if (contains(need, *n_need, t->text[i]) || on_keyboard(t->s, t->text[i]))
            continue;
        if (*n_need == capacity)
            break;
        need[(*n_need)++] = spare_of(t->text[i]);
    }
    return i - t->done;
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

/* Checks that the view's window still exists: otherwise keys would reach the window that receives the focus
 * next. */
static int check_view(struct screen *s, struct err *e)
{
    XWindowAttributes a = {0};
    struct xtrap t;
    if (!s->view_window)
        return 0;
    xtrap_begin(&t, s->x11->dpy);
    bool there = XGetWindowAttributes(s->x11->dpy, s->view_window, &a) && a.map_state == IsViewable;
    if (!xtrap_end(&t) && there)
        return 0;
    return screen_alive(s, e)
               ? -1
               : err_set(e, ERR_FAILED, "window 0x%lx disappeared while typing: the rest was not typed",
                         s->view_window);
}

/* Checks whether another program has grabbed the keyboard during the text. */
static int check_grab(struct text_typing *t)
{
    struct err why = ERR_INIT;
    bool grabbed = grab_keyboard_taken(t->s);
    if (grabbed && !t->grabbed && grab_check_keyboard(t->s, &why))
        return err_set(t->e, why.kind, "unsure whether the text arrived as meant: %s; look at it", why.text);
    t->grabbed = grabbed;
    return 0;
}

/* Checks that no key of the run is grabbed by another program as a hotkey: it would be missing in the
 * text. */
static int check_hotkeys(const struct text_typing *t, size_t n)
{
    struct screen *s = t->s;
    bool seen[HELD_KEYS][2] = {0}, shift[HELD_KEYS];
    uint8_t codes[HELD_KEYS];
    int count = 0, which;
    struct keypress k;
    for (size_t i = t->done; i < t->done + n && count < HELD_KEYS; i++) {
        const struct spare want = spare_of(t->text[i]);
        int code = spare_code(s, &want);
        if (!code && !keyboard_find(s, want.keysym, false, &k))
            continue;
        bool up = !code && k.shift;
        code = code ? code : k.code;
        if (!seen[code][up]) {
            codes[count] = (uint8_t)code;
            shift[count++] = up;
        }
        seen[code][up] = true;
    }
    return grab_key_taken(s, codes, shift, count, &which)
               ? err_set(t->e, ERR_FAILED,
                         "another program has grabbed a key of this text as a hotkey; the text was not "
                         "typed to its end")
               : screen_alive(s, t->e);
}

/* Reads the keyboard again and clears settings that the user has changed meanwhile. */
static int read_keyboard_again(struct text_typing *t)
{
    struct screen *s = t->s;
    if (keyboard_read(s, t->e))
        return -1;
    if (keyboard_foreign_modifiers(s) || s->x11->state.latched_mods || s->x11->state.locked_mods & LockMask) {
        t->changed = true;
        if (keyboard_begin(s, 0, t->e))
            return -1;
    }
    if (s->x11->layouts != t->layouts || s->x11->state.group != t->group)
        t->changed = true;
    t->moved = t->moved || (t->done < t->n && delivery_target_changed(s));
    return check_grab(t);
}

static int refuse_behind(struct err *e)
{
    return err_set(e, ERR_FAILED,
                   "unsure whether the text arrived as meant: the program has not read its keys for %d s; "
                   "look at it",
                   READ_MS / 1000);
}

/* Waits after a character, so that the program can keep up. */
static int pace(struct text_typing *t)
{
    struct screen *s = t->s;
    enum delivery r = DELIVERY_DONE;
    bool confirms = s->x11->target.ping != None;
    double ms = s->options.own_key_delay ? s->options.key_delay_ms : confirms ? 0 : BLIND_MS;
    if (confirms && t->done + 1 - t->read >= UNREAD_KEYS) {
        if (delivery_keep_up(s, &r, t->e))
            return -1;
        t->read = t->done + 1;
    }
    return r == DELIVERY_BEHIND ? refuse_behind(t->e) : screen_wait(s, ms, t->e);
}

/* Types up to n characters. Returns 0 early if the keyboard has changed and the rest must be planned again;
 * -1 on failure. */
static int type_run(struct text_typing *t, size_t n)
{
    struct keypress shift = {0}, k;
    struct screen *s = t->s;
    for (size_t end = t->done + n; t->done < end; t->done++) {
        if (read_keyboard_again(t))
            return -1;
        const struct spare want = spare_of(t->text[t->done]);
        int code = spare_code(s, &want);
        t->spare = t->spare || code;
        if (s->x11->layouts != t->layouts || s->x11->state.group != t->group)
            return 0;
        if (!code && !keyboard_find(s, want.keysym, false, &k))
            return err_set(t->e, ERR_FAILED, "the keyboard map changed while typing");
        if (!code && k.shift && !keyboard_find(s, XK_Shift_L, true, &shift))
            return err_set(t->e, ERR_FAILED, "this keyboard has no Shift key");
        if (check_view(s, t->e) || tap(s, code ? code : k.code, !code && k.shift ? shift.code : 0, t->e) ||
            pace(t))
            return -1;
    }
    return 0;
}

/* Plans with the current keyboard, binds keycodes, and types as much as possible. */
static int type_on(struct text_typing *t)
{
    struct screen *s = t->s;
    struct spare need[MAX_SPARE];
    int n_need, capacity = spare_capacity(s);
    t->changed =
        t->changed || (t->done && (t->layouts != s->x11->layouts || t->group != s->x11->state.group));
    t->layouts = s->x11->layouts;
    t->group = s->x11->state.group;
    size_t run = plan_run(t, need, &n_need, capacity);
    if (t->done + run < t->n) /* not the last run: use half of the keycodes */
        run = plan_run(t, need, &n_need, (capacity + 1) / 2);
    if (!run)
        return err_set(t->e, ERR_USAGE, "no key gives U+%04X and no keycode is free for it",
                       (unsigned)(t->text[t->done] & 0xffffff));
    return spare_bind(s, need, n_need, t->e) || check_hotkeys(t, run) || type_run(t, run) ? -1 : 0;
}

/* Returns 0 if the program has consumed all of the text and nothing changed meanwhile; otherwise -1 with the
 * reason. */
static int confirm(struct text_typing *t)
{
    enum delivery r;
    if (delivery_wait(t->s, READ_MS, &r, t->e) || read_keyboard_again(t))
        return -1;
    if (r == DELIVERY_BEHIND)
        return refuse_behind(t->e);
    const char *why =
        t->moved               ? "the keyboard went to another window meanwhile"
        : r == DELIVERY_NOBODY ? "no window that reads keys had the keyboard"
        : t->changed           ? "the keyboard layout or its state changed meanwhile"
        : r == DELIVERY_UNKNOWN && t->spare
            ? "it has characters without a key, and the program does not report whether it read them"
            : NULL;
    return why ? err_set(t->e, ERR_FAILED, "unsure whether the text arrived as meant: %s; look at it", why)
               : 0;
}

static int type_all(struct screen *s, const uint32_t *text, size_t n, struct err *e)
{
    struct text_typing t = {.s = s, .text = text, .n = n, .grabbed = grab_keyboard_taken(s), .e = e};
    int changes = 0;
    while (t.done < n) {
        size_t before = t.done;
        if (type_on(&t))
            return -1;
        changes = t.done == before ? changes + 1 : 0;
        if (changes > MOST_CHANGES)
            return err_set(e, ERR_FAILED,
                           "the keyboard layout keeps changing: the text was not typed to its end");
    }
    return confirm(&t);
}

/* Returns whether keys cannot produce this text in the focused program. */
static bool must_paste(struct screen *s, const uint32_t *text, size_t n)
{
    struct text_typing t = {.s = s, .text = text, .n = n};
    int none;
    bool beyond = false;
    for (size_t i = 0; i < n; i++)
        beyond = beyond || text[i] > (0x01000000 | 0xffff);
    return (beyond && hit_test_java(s)) || (!spare_capacity(s) && plan_run(&t, NULL, &none, 0) < n);
}

/* Pastes the text instead of typing it through an input method, which would change it. Line ends and tabs are
 * sent as keys. */
static int paste_lines(struct screen *s, const char *utf8, size_t len, struct err *e)
{
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        while (i + n < len && !strchr("\t\r\n", utf8[i + n]))
            n++;
        if (n && paste_text(s, utf8 + i, n, e))
            return -1;
        i += n;
        if (i == len)
            break;
        const uint32_t key = utf8[i] == '\t' ? XK_Tab : XK_Return;
        if (screen_chord(s, &key, 1, e))
            return -1;
        i += utf8[i] == '\r' && i + 1 < len && utf8[i + 1] == '\n' ? 2 : 1;
    }
    return 0;
}

/* Types or pastes a text. A secret is never pasted, and error messages do not contain its characters. */
static int type_or_paste(struct screen *s, const struct screen_text *t, struct err *e)
{
    char engine[80];
    if (delivery_begin(s, e) || keyboard_begin(s, 0, e))
        return -1;
    if (input_method_active(s, engine, sizeof engine))
        return t->secret
                   ? err_set(e, ERR_FAILED,
                             "the input method (%s) would change the keys of a secret, and secrets are not "
                             "pasted; switch it off",
                             engine)
                   : paste_lines(s, t->utf8, t->len, e);
    if (!must_paste(s, t->keysyms, t->n))
        return type_all(s, t->keysyms, t->n, e);
    return t->secret ? err_set(e, ERR_USAGE,
                               "no key produces a character of the secret, and secrets are not pasted")
                     : paste_text(s, t->utf8, t->len, e);
}

int text_type(struct screen *s, const struct screen_text *t, struct err *e)
{
    int rc = type_or_paste(s, t, e);
    keyboard_end(s);
    return rc;
}
