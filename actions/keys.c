/* keys.c - see keys.h.  Reads names of keys, chords and sequences of chords. */
#include "actions/keys.h"

#include "actions/parse.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const keys_modifiers[] = {"ctrl", "shift", "alt", "super", NULL};
const char *const keys_offered[] = {
    "enter", "escape", "tab",      "space", "backspace",   "delete", "insert", "home",
    "end",   "pageup", "pagedown", "up",    "down",        "left",   "right",  "f1",
    "f2",    "f3",     "f4",       "f5",    "f6",          "f7",     "f8",     "f9",
    "f10",   "f11",    "f12",      "menu",  "printscreen", "plus",   NULL};

enum { MAX_NAME = 40 };

/* ---- names -------------------------------------------------------------------------------------------- */

bool keys_is_modifier(uint32_t k)
{
    return (k >= XK_Shift_L && k <= XK_Hyper_R && k != XK_Caps_Lock && k != XK_Shift_Lock) ||
           k == XK_ISO_Level3_Shift;
}

static int by_name(const void *name, const void *row)
{
    return strcmp(name, ((const struct key_name *)row)->name);
}

static uint32_t in_table(const char *name)
{
    const struct key_name *row =
        bsearch(name, key_names, (size_t)key_names_count, sizeof *key_names, by_name);
    return row ? row->keysym : 0;
}

static uint32_t keysym_of_char(uint32_t cp)
{
    static const uint32_t control[][2] = {{'\n', XK_Return},    {'\r', XK_Return}, {'\t', XK_Tab},
                                          {'\b', XK_BackSpace}, {0x1b, XK_Escape}, {0x7f, XK_Delete}};
    for (size_t i = 0; i < sizeof control / sizeof *control; i++)
        if (control[i][0] == cp)
            return control[i][1];
    if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
        return 0;
    return cp <= 0xff ? cp : 0x01000000 | cp;
}

/* Folds a name to lower case, without "-", "_" and spaces between letters and digits.  Returns false if the
 * name is too long or contains a NUL. */
static bool fold(const char *name, size_t len, char out[MAX_NAME + 1])
{
    size_t n = 0;
    if (len > MAX_NAME || memchr(name, 0, len))
        return false;
    for (size_t i = 0; i < len; i++) {
        bool between =
            i && i + 1 < len && isalnum((unsigned char)name[i - 1]) && isalnum((unsigned char)name[i + 1]);
        if (!between || !strchr("-_ ", name[i]))
            out[n++] = (char)tolower((unsigned char)name[i]);
    }
    out[n] = 0;
    return true;
}

/* Returns the keysym of one name; 0: unknown. */
static uint32_t key_named(const char *name, size_t len, bool cmd_is_ctrl);

/* Returns whether the text before the first "-" or space makes this a chord: "alt-left", "control l",
 * "C-r". */
static bool begins_chord(const char *name, size_t len, bool cmd_is_ctrl)
{
    size_t n = 0;
    while (n < len && name[n] != '-' && name[n] != ' ')
        n++;
    return n < len && (n < 2 || keys_is_modifier(key_named(name, n, cmd_is_ctrl)));
}

static uint32_t key_named(const char *name, size_t len, bool cmd_is_ctrl)
{
    char key[MAX_NAME + 1], exact[MAX_NAME + 1];
    uint32_t cp;
    bool single = len && utf8_decode(name, len, &cp) == (int)len;
    if (single && cp < 0x80)
        return keysym_of_char(cp);
    if (!len || !fold(name, len, key) || (!single && begins_chord(name, len, cmd_is_ctrl)))
        return 0;
    uint32_t found = in_table(key);
    if (found && cmd_is_ctrl && (!strncmp(key, "cmd", 3) || !strncmp(key, "command", 7) || !strcmp(key, "⌘")))
        return XK_Control_L;
    if (found || single)
        return found ? found : keysym_of_char(cp);
    memcpy(exact, name, len);
    exact[len] = 0;
    return keysym_named(exact);
}

const char *keysym_name(uint32_t keysym)
{
    return keysym >> 24 == 1 ? NULL : XKeysymToString(keysym); /* Xlib would leak names of Unicode keysyms */
}

uint32_t keysym_named(const char *name)
{
    return (uint32_t)XStringToKeysym(name);
}

uint32_t keysym_lower(uint32_t keysym)
{
    KeySym lower = 0, upper = 0;
    XConvertCase(keysym, &lower, &upper);
    return (uint32_t)lower;
}

void action_plain_keys(struct action *a)
{
    for (int i = 0; a->nkeys > 1 && i < a->nkeys; i++)
        if (a->keys[i] >= 'A' && a->keys[i] <= 'Z')
            a->keys[i] += 'a' - 'A';
}

/* ---- the nearest name ---------------------------------------------------------------------------- */

/* Returns the edit distance with transpositions. */
static int distance(const char *a, int n, const char *b, int m)
{
    int rows[3][MAX_NAME + 2] = {0};
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int d = last[j - 1] + (a[i - 1] != b[j - 1]);
            d = last[j] + 1 < d ? last[j] + 1 : d;
            d = now[j - 1] + 1 < d ? now[j - 1] + 1 : d;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < d)
                d = before[j - 2] + 1;
            now[j] = d;
        }
    }
    return rows[n % 3][m];
}

/* Returns the known name with the least distance; an equal length and a common beginning reduce the
 * distance. */
static const char *nearest(char *name)
{
    const char *best = "ctrl";
    int least = 1 << 20, n = (int)strlen(name);
    while (n > 1 && !isalnum((unsigned char)name[n - 1]))
        name[--n] = 0;
    while (n > 1 && !isalnum((unsigned char)*name))
        name++, n--;
    for (int i = 0; i < key_names_count; i++) {
        const char *other = key_names[i].name;
        int m = (int)strlen(other), same = 0;
        if (m > MAX_NAME || (unsigned char)*other >= 0x80)
            continue;
        while (same < n && name[same] == other[same])
            same++;
        int cost = distance(name, n, other, m) * 1000 + (m != n ? 400 : 0) - 100 * same;
        if (cost < least) {
            least = cost;
            best = other;
        }
    }
    return best;
}

static enum action_fault unknown(const char *s, size_t n, struct err *e)
{
    char key[MAX_NAME + 1] = {0}, shown[64];
    size_t len = utf8_valid_prefix(s, n < 60 ? n : 60);
    memcpy(shown, s, len);
    shown[len] = 0;
    if (!n)
        err_set(e, ERR_FAILED, "unknown key ''; expected a key or a chord such as 'ctrl+c'");
    else if (!fold(s, n, key))
        err_set(e, ERR_FAILED, "unknown key '%s'; names of keys have at most %d bytes", shown, MAX_NAME);
    else
        err_set(e, ERR_FAILED, "unknown key '%s'; the nearest is '%s'", shown, nearest(key));
    return FAULT_KEY;
}

/* ---- chords -------------------------------------------------------------------------------------- */

struct reader {
    const char *text; /* the whole text, for messages */
    size_t len;
    bool cmd_is_ctrl;
    struct key_sequence *out;
    struct key_chord part; /* the keys of one word */
    struct err *e;
};

static enum action_fault too_many(const struct reader *r, const char *what)
{
    int shown = (int)utf8_valid_prefix(r->text, r->len < 60 ? r->len : 60);
    err_set(r->e, ERR_FAILED, "too many %s in '%.*s'", what, shown, r->text);
    return FAULT_SCHEMA;
}

static uint32_t folded(uint32_t k)
{
    return k >= 'A' && k <= 'Z' ? k + 'a' - 'A' : k;
}

/* Appends a key.  A modifier that is pressed already is ignored; another key that is named twice is an
 * error. */
static enum action_fault add_key(struct reader *r, struct key_chord *c, uint32_t k)
{
    for (int i = 0; i < c->n; i++) {
        if (folded(c->keys[i]) != folded(k))
            continue;
        if (keys_is_modifier(k))
            return FAULT_NONE;
        int shown = (int)utf8_valid_prefix(r->text, r->len < 60 ? r->len : 60);
        err_set(r->e, ERR_FAILED, "'%.*s' names a key twice; Control is 'ctrl+' or 'C-'", shown, r->text);
        return FAULT_KEY;
    }
    if (c->n == ACTION_MAX_KEYS)
        return too_many(r, "keys");
    c->keys[c->n++] = k;
    return FAULT_NONE;
}

/* Returns the modifier of Emacs ("C-x") or, in angle brackets, of Vim ("<c-x>"); 0: none. */
static uint32_t letter_modifier(char c, bool angle)
{
    static const struct {
        char letter;
        uint32_t keysym;
    } all[] = {{'C', XK_Control_L}, {'M', XK_Alt_L},   {'A', XK_Alt_L},  {'S', XK_Shift_L},
               {'s', XK_Super_L},   {'H', XK_Hyper_L}, {'D', XK_Super_L}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].letter == (angle ? (char)toupper((unsigned char)c) : c))
            return all[i].keysym;
    return 0;
}

static enum action_fault parse_part(struct reader *r, const char *s, size_t n, bool angle);

/* Parses "<ctrl>c" or "{ctrl}c": a name in brackets, and the text after it. */
static enum action_fault parse_bracketed(struct reader *r, const char *s, size_t n, const char *close)
{
    const char *rest = close + 1, *end = s + n;
    enum action_fault f = parse_part(r, s + 1, (size_t)(close - s - 1), true);
    if (rest + 1 < end && (*rest == '+' || *rest == '-'))
        rest++;
    return f || rest == end ? f : parse_part(r, rest, (size_t)(end - rest), false);
}

static enum action_fault parse_part(struct reader *r, const char *s, size_t n, bool angle)
{
    uint32_t k = key_named(s, n, r->cmd_is_ctrl);
    if (k)
        return add_key(r, &r->part, k);
    const char *close =
        n > 2 && (*s == '<' || *s == '{') ? memchr(s + 1, *s == '<' ? '>' : '}', n - 1) : NULL;
    if (close && close > s + 1)
        return parse_bracketed(r, s, n, close);
    const char *plus = n > 2 ? memchr(s + 1, '+', n - 2) : NULL;
    if (plus && plus[1] == '+' && plus + 2 < s + n) /* such as "ctrl++c" */
        return unknown(s, n, r->e);
    if (plus) {
        enum action_fault f = parse_part(r, s, (size_t)(plus - s), angle);
        return f ? f : parse_part(r, plus + 1, (size_t)(s + n - plus - 1), angle);
    }
    if (n == 2 && *s == '^' && isalpha((unsigned char)s[1])) { /* a terminal's "^C" */
        enum action_fault f = add_key(r, &r->part, XK_Control_L);
        return f ? f : parse_part(r, s + 1, 1, angle);
    }
    size_t at = 1; /* position of the separator in "ctrl-c" or "ctrl,c", which follows a modifier */
    while (at + 1 < n && s[at] != '-' && s[at] != ',')
        at++;
    if (at + 1 < n)
        k = at == 1 && s[at] == '-' ? letter_modifier(*s, angle) : key_named(s, at, r->cmd_is_ctrl);
    if (!k || !keys_is_modifier(k))
        return unknown(s, n, r->e);
    enum action_fault f = add_key(r, &r->part, k);
    return f ? f : parse_part(r, s + at + 1, n - at - 1, angle);
}

/* ---- sequences ----------------------------------------------------------------------------------- */

/* Adds the keys of a word to the last chord if that chord has modifiers only, else to a new chord. */
static enum action_fault add_part(struct reader *r)
{
    struct key_sequence *o = r->out;
    struct key_chord *last = o->n ? &o->chords[o->n - 1] : NULL;
    if (!last || !keys_is_modifier(last->keys[last->n - 1])) {
        if (o->n == KEYS_MAX_CHORDS)
            return too_many(r, "chords");
        last = &o->chords[o->n++];
        last->n = 0;
    }
    enum action_fault f = FAULT_NONE;
    for (int i = 0; !f && i < r->part.n; i++)
        f = add_key(r, last, r->part.keys[i]);
    return f;
}

static size_t word_length(const char *s, const char *end)
{
    size_t n = 0;
    while (s + n < end && !isspace((unsigned char)s[n]))
        n++;
    return n;
}

/* Copies the text without the blanks next to a joining "+": "Ctrl + C".  Returns the length of the copy. */
static size_t join_plus(const char *s, size_t len, char out[KEYS_MAX_TEXT + 1])
{
    const char *end = s + len;
    size_t n = 0;
    for (s = text_skip_space(s, end); s < end;) {
        const char *next = text_skip_space(s, end);
        if (next == s) {
            out[n++] = *s++;
            continue;
        }
        if (next == end)
            break;
        bool after = n > 1 && out[n - 1] == '+' && out[n - 2] != '+' && !isspace((unsigned char)out[n - 2]);
        bool before = *next == '+' && text_skip_space(next + 1, end) < end;
        if (!after && !before)
            out[n++] = ' ';
        s = next;
    }
    out[n] = 0;
    return n;
}

/* Returns the length of the word at s, or of the words at s and after it if they end with a name of two
 * words: "page down", "ctrl+page down", "left shift". */
static size_t part_length(const struct reader *r, const char *s, const char *end)
{
    size_t n = word_length(s, end);
    const char *plus = n > 2 ? memrchr(s + 1, '+', n - 2) : NULL, *name = plus ? plus + 1 : s;
    const char *next = text_skip_space(s + n, end), *stop = next + word_length(next, end);
    return stop > next && key_named(name, (size_t)(stop - name), r->cmd_is_ctrl) ? (size_t)(stop - s) : n;
}

static enum action_fault parse_words(struct reader *r, const char *s, const char *end)
{
    enum action_fault f = FAULT_NONE;
    for (; !f && s < end; s = text_skip_space(s, end)) {
        size_t n = part_length(r, s, end), drop = 0;
        if (n > 1 && s[n - 1] == ',' && s + n < end && !strchr("+-", s[n - 2])) /* "ctrl+k, ctrl+s" */
            drop = 1;
        r->part = (struct key_chord){0};
        if (r->out->n && n == 3 && !strncasecmp(s, "key", 3)) { /* "Windows key" */
            s += n;
            continue;
        }
        f = parse_part(r, s, n - drop, false);
        f = f ? f : add_part(r);
        s += n;
    }
    return f;
}

enum action_fault keys_parse(const char *text, size_t len, bool cmd_is_ctrl, struct key_sequence *out,
                             struct err *e)
{
    char copy[KEYS_MAX_TEXT + 1] = {0};
    struct reader r = {.text = text, .len = len, .cmd_is_ctrl = cmd_is_ctrl, .out = out, .e = e};
    uint32_t whole = key_named(text, len, cmd_is_ctrl);
    out->n = 0;
    if (whole) {
        out->chords[out->n++] = (struct key_chord){{whole}, 1};
        return FAULT_NONE;
    }
    if (len > KEYS_MAX_TEXT || memchr(text, 0, len)) {
        err_set(e, ERR_FAILED, "the keys have a NUL, or more than %d bytes", KEYS_MAX_TEXT);
        return FAULT_KEY;
    }
    size_t n = join_plus(text, len, copy);
    return n ? parse_words(&r, copy, copy + n) : unknown("", 0, e);
}
