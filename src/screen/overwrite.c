/* overwrite.c - replaces the text of the focused field and reads the field back.
 *
 * Toolkits do not agree on a key for "select all": ctrl+a moves the cursor in Tk and in shells, and Chromium
 * ignores it on layouts without Latin letters. All of them move to the start with ctrl+shift+Home and Home,
 * and extend the selection to the end with shift+End or ctrl+shift+End; a toolkit ignores the chords that it
 * does not support. ctrl+Home would set a spin button of GTK 3 to its minimum. The selection goes forwards,
 * because GTK 4 does not publish a backward selection. The new text is typed over the selection: BackSpace is
 * pressed only to empty a field, and only if text is known to be selected.
 *
 * Afterwards the same keys select the new text. Programs publish selected text as PRIMARY, so this process
 * takes PRIMARY first, waits until a program takes it over, and reads the content of the field from it. Some
 * fields publish nothing or one placeholder per character, and secrets must not be published. Such a field is
 * not read back.
 *
 * In a terminal no key empties the line in every program, and at a prompt the rest of the old line would
 * become part of a command. In a spreadsheet these keys move to other cells. Both are rejected, except in
 * the dialogs of a spreadsheet. An editor with a built-in terminal has fields too: they are written if the
 * program describes the focused element as a text field. */
#include "screen/private.h"

#include "base/clock.h"
#include "base/regex.h"
#include "base/utf8.h"

#include <X11/keysym.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PUBLISH_MS = 1500, /* time from the selecting keys until the program takes PRIMARY */
    STEADY_MS = 60,    /* interval between two readings that must agree, unless the program is at rest */
    CHANGE_MS = 900,   /* time within which the field may still change: completions close, pages react */
    SHOWN_BYTES = 120
};

const char screen_terminal_classes[] =
    "term|console|rxvt|alacritty|kitty|^foot(client)?$|^st$|^st-|tilix|guake|yakuake|tilda|ghostty|konsole"
    "|ptyxis|^kgx|warp|tabby|sakura|^hyper$|^contour$|^rio$|black-?box|zutty|^havoc$|^tym$|^wave$|^edex"
    "|germinal|powershell";
/* editors in which letters are commands; spreadsheets */
static const char modal_classes[] = "^gvim|^neovide|^emacs|^goneovim";
static const char table_classes[] = "^libreoffice-calc|^gnumeric|^sc$";

/* ---- where it is rejected ---------------------------------------------------------------------------- */

static bool class_matches(const char *pattern, const struct screen_window *w)
{
    const char *slash = strrchr(w->program, '/'), *program = slash ? slash + 1 : w->program;
    struct regex *r = regex_new(pattern, true, NULL);
    bool yes =
        r && (regex_find(r, w->class, strlen(w->class)) > 0 || regex_find(r, program, strlen(program)) > 0);
    regex_free(r);
    return yes;
}

static int check_program(struct screen *s, struct err *e)
{
    struct screen_window w;
    if (screen_focused_window(s, &w))
        return screen_alive(s, e) ? -1
                                  : err_set(e, ERR_FAILED, "cannot overwrite: the focused window is unknown");
    bool shell = class_matches(screen_terminal_classes, &w) || screen_has_shell(&w);
    if (shell && !(s->is_field && s->is_field(s->is_field_arg, w.title)))
        return err_set(
            e, ERR_FAILED,
            "overwrite is not supported in a terminal (%.60s), where no key clears the line in every "
            "program; send keys instead",
            w.class);
    if (class_matches(modal_classes, &w))
        return err_set(
            e, ERR_FAILED,
            "overwrite is not supported in %.60s, where keys are editor commands; send keys instead",
            w.class);
    if (class_matches(table_classes, &w) && !w.dialog)
        return err_set(
            e, ERR_FAILED,
            "overwrite is not supported in a spreadsheet (%.60s): text typed into a cell replaces its "
            "content, so use a plain type action",
            w.class);
    return 0;
}

/* ---- selecting ------------------------------------------------------------------------------------ */

int screen_overwrite_keys(int index, uint32_t keys[3])
{
    static const uint32_t chords[][3] = {{XK_Control_L, XK_Shift_L, XK_Home},
                                         {XK_Home},
                                         {XK_Shift_L, XK_End},
                                         {XK_Control_L, XK_Shift_L, XK_End}};
    static const int counts[] = {3, 1, 2, 3};
    if (index < 0 || index >= (int)(sizeof counts / sizeof *counts))
        return 0;
    memcpy(keys, chords[index], sizeof chords[index]);
    return counts[index];
}

/* Returns whether a completion list is shown: in Qt it consumes ctrl+Home and ctrl+End and changes the
 * text. */
static bool popup_shows(struct screen *s)
{
    struct screen_window one;
    return screen_overlays(s, &one, 1) > 0;
}

/* Selects the text of the field. The program must have handled one chord before the next: after four chords
 * at once, GTK 4 often had nothing selected, or did not publish it. */
static int select_text(struct screen *s, struct err *e)
{
    uint32_t keys[3];
    bool popup = popup_shows(s), late;
    for (int i = 0, n; (n = screen_overwrite_keys(i, keys)) != 0; i++)
        if (!(popup && keys[0] == XK_Control_L) &&
            (screen_chord(s, keys, n, e) || s->ops->ping(s, PUBLISH_MS, &late, e)))
            return -1;
    return 0;
}

static int press(struct screen *s, uint32_t key, struct err *e)
{
    return screen_chord(s, &key, 1, e);
}

/* Waits until a program has taken PRIMARY from us. *taken: whether one did within PUBLISH_MS. */
static int wait_for_owner(struct screen *s, bool *taken, struct err *e)
{
    enum delivery r;
    *taken = false;
    if (s->ops->keys_wait(s, READ_MS, &r, e))
        return -1;
    if (r == DELIVERY_BEHIND)
        return err_set(
            e, ERR_FAILED,
            "unsure whether the text arrived as meant: the program has not read its keys for %d s; "
            "look at it",
            READ_MS / 1000);
    for (int64_t start = clock_ns(); !*taken && clock_ms_since(start) < PUBLISH_MS;) {
        *taken = !s->lost && s->ops->primary_taken(s);
        if (!*taken && screen_wait_event(s, 10, e))
            return -1;
    }
    return screen_alive(s, e);
}

/* Returns a copy with LF line ends and plain spaces, without trailing line ends; the caller frees it. */
static char *plain(const char *text)
{
    char *out = xmalloc(strlen(text) + 1, 1), *to = out;
    for (const char *p = text; *p; p++) {
        if (p[0] == '\r' && p[1] == '\n')
            continue;
        bool space = !strncmp(p, "\xc2\xa0", 2); /* no-break spaces of editable web pages */
        *to++ = space ? ' ' : *p;
        p += space;
    }
    while (to > out && to[-1] == '\n')
        to--;
    *to = 0;
    return out;
}

static bool same_content(const char *a, const char *b)
{
    char *x = plain(a), *y = plain(b);
    bool same = !strcmp(x, y);
    free(x);
    free(y);
    return same;
}

/* Waits for STEADY_MS between two readings; if the first one was as wanted, at most until the program has
 * nothing left to do. */
static int wait_steady(struct screen *s, bool wanted, struct err *e)
{
    int64_t start = clock_ns();
    bool rests = false;
    if (wanted && s->ops->keys_rest(s, STEADY_MS, &rests, e))
        return -1;
    return rests ? 0 : screen_wait(s, STEADY_MS - clock_ms_since(start), e);
}

/* Reads the selected text until two readings agree on `want`, or on another text after CHANGE_MS. *out, owned
 * by the caller, is NULL if the text cannot be read. */
static int read_selected(struct screen *s, const char *want, char **out, struct err *e)
{
    char *last = NULL;
    int64_t start = clock_ns();
    for (;;) {
        char *now;
        if (screen_selection(s, true, &now))
            now = NULL;
        bool steady = last && now && !strcmp(last, now), wanted = now && same_content(now, want);
        free(last);
        last = now;
        if ((steady && (wanted || clock_ms_since(start) > CHANGE_MS)) ||
            (!now && clock_ms_since(start) > CHANGE_MS))
            break;
        if (wait_steady(s, wanted, e)) {
            free(last);
            *out = NULL;
            return -1;
        }
    }
    *out = last;
    return screen_alive(s, e);
}

/* Returns whether the field hides its text: it shows one placeholder per character. */
static bool is_hidden(const char *got, const char *text)
{
    static const char *const signs[] = {"\xe2\x80\xa2", "\xe2\x97\x8f", "*"}; /* bullet, black circle */
    size_t n = 0;
    for (const char *p = text; *p; p++)
        n += (*p & 0xc0) != 0x80;
    for (size_t i = 0; n && i < sizeof signs / sizeof *signs; i++) {
        size_t len = strlen(signs[i]), at = 0;
        while (!strncmp(got + at, signs[i], len))
            at += len;
        if (!got[at] && at == n * len)
            return true;
    }
    return false;
}

/* Shrinks and extends the selection by one character and reads it again: Firefox does not publish a selection
 * made with ctrl+shift+End. In right-to-left text the two keys have the opposite effect, so the second try
 * has another order. */
static int read_extended(struct screen *s, const char *want, char **out, struct err *e)
{
    static const uint32_t left[] = {XK_Shift_L, XK_Left}, right[] = {XK_Shift_L, XK_Right};
    for (int i = 0; i < 2 && *want && *out && !same_content(*out, want) && !is_hidden(*out, want); i++) {
        free(*out);
        *out = NULL;
        if (screen_chord(s, left, 2, e) || (!i && screen_chord(s, right, 2, e)) ||
            read_selected(s, want, out, e))
            return -1;
    }
    return 0;
}

/* Selects the content of the field and reads it. *out, owned by the caller, is NULL if nothing was selected
 * or the selection cannot be read. */
static int read_field(struct screen *s, const char *want, char **out, struct err *e)
{
    bool taken = false;
    *out = NULL;
    if (screen_alive(s, e))
        return -1;
    s->ops->take_primary(s, true);
    int rc = s->ops->keys_begin(s, e) || select_text(s, e) || wait_for_owner(s, &taken, e) ||
                     (taken && (read_selected(s, want, out, e) || read_extended(s, want, out, e)))
                 ? -1
                 : 0;
    if (!s->lost)
        s->ops->take_primary(s, false);
    return rc;
}

/* ---- interface --------------------------------------------------------------------------------------- */

/* Returns -1 with e, which contains the actual content of the field. */
static int refuse_content(const char *got, struct err *e)
{
    char shown[SHOWN_BYTES + 1];
    snprintf(shown, sizeof shown, "%s", got);
    shown[utf8_valid_prefix(shown, strlen(shown))] = 0;
    return err_set(e, ERR_FAILED,
                   "unsure whether the text arrived as meant: the field reads '%s%s' now; look at it", shown,
                   strlen(got) > SHOWN_BYTES ? "..." : "");
}

/* Types the text, a space and BackSpace, which removes the completion that browsers append. */
static int type_without_completion(struct screen *s, const char *text, struct err *e)
{
    return screen_type(s, text, strlen(text), e) || screen_type(s, " ", 1, e) || press(s, XK_BackSpace, e)
               ? -1
               : 0;
}

static int empty_field(struct screen *s, bool *confirmed, struct err *e)
{
    char *old, *left = NULL;
    if (read_field(s, "", &old, e))
        return -1;
    bool any = old && *old;
    free(old);
    if (!any) /* the field is empty or publishes nothing, and the effect of BackSpace is unknown */
        return 0;
    if (press(s, XK_BackSpace, e) || read_field(s, "", &left, e))
        return -1;
    int rc = left && *left ? refuse_content(left, e) : 0;
    *confirmed = rc == 0;
    free(left);
    return rc;
}

static int write_line(struct screen *s, const char *text, bool *confirmed, struct err *e)
{
    char *got = NULL;
    if (select_text(s, e) || screen_type(s, text, strlen(text), e) || read_field(s, text, &got, e)) {
        free(got);
        return -1;
    }
    /* the completion is selected */
    if (got && strlen(got) > strlen(text) && !strncmp(got, text, strlen(text))) {
        free(got);
        got = NULL;
        if (type_without_completion(s, text, e) || read_field(s, text, &got, e)) {
            free(got);
            return -1;
        }
    }
    *confirmed = got && same_content(got, text);
    int rc = press(s, XK_End, e) || (got && !*confirmed && !is_hidden(got, text) && refuse_content(got, e))
                 ? -1
                 : 0;
    free(got);
    return rc;
}

/* Replaces the text by a secret without reading it back: the value must not become a selection. */
static int overwrite_secret(struct screen *s, const char *utf8, size_t len, struct err *e)
{
    if (select_text(s, e))
        return -1;
    if (!len)
        return press(s, XK_BackSpace, e);
    return screen_type_secret(s, utf8, len, e);
}

/* Types the rest of a text after its first line. Further lines are read back together with the first, unless
 * a tab leaves the field or the text ends with its only line end, which may submit a form. */
static int write_rest(struct screen *s, const char *text, size_t line, bool *confirmed, struct err *e)
{
    char *got = NULL;
    if (!text[line])
        return 0;
    if (screen_type(s, text + line, strlen(text + line), e))
        return -1;
    if (strchr(text, '\t') || !text[line + strspn(text + line, "\r\n")])
        return 0;
    int rc = read_field(s, text, &got, e) || press(s, XK_End, e) ? -1 : 0;
    *confirmed = *confirmed && got && same_content(got, text);
    if (rc == 0 && got && !same_content(got, text))
        rc = refuse_content(got, e);
    free(got);
    return rc;
}

int screen_overwrite(struct screen *s, const char *utf8, size_t len, bool secret, bool *confirmed,
                     struct err *e)
{
    *confirmed = false;
    if (screen_alive(s, e) || check_program(s, e))
        return -1;
    if (secret)
        return overwrite_secret(s, utf8, len, e);
    char *all = xasprintf("%.*s", (int)len, utf8);
    /* the first line is read back before a tab or line end can leave the field */
    size_t line = strcspn(all, "\t\r\n");
    char *text = xasprintf("%.*s", (int)line, all);
    int rc = line ? write_line(s, text, confirmed, e) : empty_field(s, confirmed, e);
    rc = rc || write_rest(s, all, line, confirmed, e) ? -1 : 0;
    free(text);
    free(all);
    return rc;
}
