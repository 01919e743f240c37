/* t_keys.c - tests names of keys: the lists of tests/cases/keys, chords, sequences, unknown names.
 *
 * A list has one name and one keysym per line: the name of X, or its number. "\t", "\n", "\r" and "\\" are
 * escapes.
 */
#include "check.h"

#include "actions/action.h"
#include "actions/dialect.h"
#include "actions/keys.h"
#include "base/file.h"

#include <X11/Xlib.h>

/* ---- lists --------------------------------------------------------------------------------------------- */

static size_t unescape(char *s)
{
    size_t n = 0;
    for (; *s; s++, n++)
        if (*s == '\\' && s[1]) {
            s[0] = s[1] == 't' ? '\t' : s[1] == 'n' ? '\n' : s[1] == 'r' ? '\r' : s[1];
            memmove(s + 1, s + 2, strlen(s + 2) + 1);
        }
    return n;
}

static void check_line(const char *path, char *line)
{
    char *tab = strrchr(line, '\t');
    struct err e = ERR_INIT;
    struct key_sequence keys;
    if (!tab)
        fail_msg("%s: %s", path, line);
    *tab = 0;
    unsigned long want = tab[1] == '0' && tab[2] == 'x' ? strtoul(tab + 1, NULL, 16) : 0;
    static const struct {
        const char *name;
        unsigned long keysym;
    } newer[] = {{"XF86OK", 0x10081160}, {"XF86Fn", 0x100811d0}}; /* than some Xlib */
    for (int i = 0; i < 2; i++)
        want = strcmp(tab + 1, newer[i].name) == 0 ? newer[i].keysym : want;
    want = want ? want : XStringToKeysym(tab + 1);
    size_t len = unescape(line);
    if (keys_parse(line, len, false, &keys, &e))
        fail_msg("%s: %s", path, e.text);
    uint32_t is = keys.chords[0].keys[0];
    bool same = is == want || is == (0x01000000 | want);
    if (!want || keys.n != 1 || keys.chords[0].n != 1 || !same)
        fail_msg("%s: '%s' is 0x%x, 0x%lx was expected", path, line, is, want);
}

static void check_list(const char *name)
{
    struct err e = ERR_INIT;
    char *text, *path = xasprintf("tests/cases/keys/%s.txt", name), *rest;
    size_t len;
    int n = 0;
    if (file_read(path, 1 << 20, &text, &len, &e))
        fail_msg("%s", e.text);
    rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line && (*line != '#' || line[1] == '\t')) {
            check_line(path, line);
            n++;
        }
    check_note("%d names of %s", n, name);
    assert_true(n >= 80);
    free(text);
    free(path);
}

static void t_lists(void **state)
{
    static const char *const names[] = {"pyautogui", "playwright", "xdotool", "browser", "models"};
    for (int i = 0; i < 5; i++)
        check_list(names[i]);
}

/* ---- chords ---------------------------------------------------------------------------------------------- */

/* Returns chords with X's names: "Control_L+c, Tab". */
static char *named(const struct key_sequence *s)
{
    struct buf out;
    buf_init(&out, 1 << 12);
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->chords[i].n; k++)
            buf_printf(&out, "%s%s", k ? "+" : i ? ", " : "", XKeysymToString(s->chords[i].keys[k]));
    return buf_take(&out);
}

static void t_chords(void **state)
{
    static const char *const cases[][2] = {
        {"ctrl+c", "Control_L+c"},
        {"Ctrl + C", "Control_L+C"},
        {"CTRL+SHIFT+T", "Control_L+Shift_L+T"},
        {"ctrl c", "Control_L+c"},
        {"ctrl shift t", "Control_L+Shift_L+t"},
        {"ctrl-alt-delete", "Control_L+Alt_L+Delete"},
        {"ctrl-shift+t", "Control_L+Shift_L+t"},
        {"ctrl++", "Control_L+plus"},
        {"ctrl + +", "Control_L+plus"},
        {"ctrl +", "Control_L+plus"},
        {"ctrl+-", "Control_L+minus"},
        {"ctrl + -", "Control_L+minus"},
        {"ctrl--", "Control_L+minus"},
        {"ctrl -", "Control_L+minus"},
        {"ctrl-+", "Control_L+plus"},
        {"ctrl+plus", "Control_L+plus"},
        {"ctrl+,", "Control_L+comma"},
        {"ctrl+page down", "Control_L+Next"},
        {"ctrl+page-down", "Control_L+Next"},
        {"ctrl page down", "Control_L+Next"},
        {"+", "plus"},
        {"-", "minus"},
        {" ", "space"},
        {"<ctrl>c", "Control_L+c"},
        {"<Ctrl><Shift>t", "Control_L+Shift_L+t"},
        {"<ctrl>+c", "Control_L+c"},
        {"<Primary>c", "Control_L+c"},
        {"<Return>", "Return"},
        {"<c-x>", "Control_L+x"},
        {"{ENTER}", "Return"},
        {"C-c", "Control_L+c"},
        {"C-x", "Control_L+x"},
        {"M-x", "Alt_L+x"},
        {"C-M-x", "Control_L+Alt_L+x"},
        {"S-Tab", "Shift_L+Tab"},
        {"s-l", "Super_L+l"},
        {"C-r", "Control_L+r"},
        {"C-S-t", "Control_L+Shift_L+t"},
        {"C--", "Control_L+minus"},
        {"^C", "Control_L+C"},
        {"ctrl,c", "Control_L+c"},
        {"ctrl,shift,t", "Control_L+Shift_L+t"},
        {"control-l", "Control_L+l"},
        {"super-r", "Super_L+r"},
        {"alt-left", "Alt_L+Left"},
        {"alt left", "Alt_L+Left"},
        {"shift left", "Shift_L+Left"},
        {"left shift", "Shift_L"},
        {"Meta+c", "Super_L+c"},
        {"ControlOrMeta+a", "Control_L+a"},
        {"Control+KeyA", "Control_L+a"},
        {"\xe2\x8c\x98+c", "Super_L+c"},
        {"cmd+shift+4", "Super_L+Shift_L+4"},
        {"ctrl ctrl", "Control_L"},
        /* in sequence */
        {"ctrl+k ctrl+s", "Control_L+k, Control_L+s"},
        {"ctrl+k, ctrl+s", "Control_L+k, Control_L+s"},
        {"Ctrl+K S", "Control_L+K, S"},
        {"C-x C-s", "Control_L+x, Control_L+s"},
        {"ctrl++ ctrl+-", "Control_L+plus, Control_L+minus"},
        {"ctrl c ctrl v", "Control_L+c, Control_L+v"},
        {"Down Down", "Down, Down"},
        {"Tab Tab Enter", "Tab, Tab, Return"},
        {"shift+Tab Return", "Shift_L+Tab, Return"},
        {"page down page down", "Next, Next"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        struct key_sequence s;
        if (keys_parse(cases[i][0], strlen(cases[i][0]), false, &s, &e))
            fail_msg("'%s': %s", cases[i][0], e.text);
        char *is = named(&s);
        if (strcmp(is, cases[i][1]) != 0)
            fail_msg("'%s': %s, and %s was expected", cases[i][0], is, cases[i][1]);
        free(is);
    }
}

static void t_unknown(void **state)
{
    static const char *const cases[][2] = {
        {"ctlr+c", "unknown key 'ctlr'; the nearest is 'ctrl'"},
        {"ctrl+pagedwon", "unknown key 'pagedwon'; the nearest is 'pagedown'"},
        {"Retrun", "unknown key 'Retrun'; the nearest is 'return'"},
        {"f36", "unknown key 'f36'; the nearest is 'f30'"},
        {"ctrl+", "unknown key 'ctrl+'; the nearest is 'ctrl'"},
        {"ctrl++c", "unknown key 'ctrl++c'; the nearest is 'ctrl'"},
        {"", "unknown key ''; expected a key or a chord such as 'ctrl+c'"},
        {"C+c", "'C+c' names a key twice; Control is 'ctrl+' or 'C-'"},
        {"c+c", "'c+c' names a key twice; Control is 'ctrl+' or 'C-'"},
        {"a-b", "unknown key 'a-b'; the nearest is "},
        {"c-c", "unknown key 'c-c'; the nearest is "},
        {"hello world", "unknown key 'hello'; the nearest is "},
        {"<>", "unknown key '<>'; the nearest is "},
        {"ctrl+<", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = ERR_INIT;
        struct key_sequence s;
        enum action_fault f = keys_parse(cases[i][0], strlen(cases[i][0]), false, &s, &e);
        bool known = !cases[i][1];
        if (known ? f : f != FAULT_KEY || strncmp(e.text, cases[i][1], strlen(cases[i][1])) != 0)
            fail_msg("'%s': %s", cases[i][0], e.text);
    }
}

/* ---- actions ----------------------------------------------------------------------------------------------- */

/* Returns the keys of an action: "Control_L+k x1; ..." */
static char *pressed(const char *dialect, const char *reply)
{
    struct err e = ERR_INIT;
    struct step s;
    struct buf out;
    struct dialect *d = dialect_load(dialect, &e);
    buf_init(&out, 1 << 12);
    if (action_parse(reply, strlen(reply), d, 640, 480, &s, &e))
        buf_puts(&out, e.text);
    for (int i = 0; i < s.nactions; i++) {
        const struct action *a = &s.actions[i];
        assert_int_equal(a->kind, ACT_KEY);
        buf_puts(&out, i ? "; " : "");
        for (int k = 0; k < a->nkeys; k++)
            buf_printf(&out, "%s%s", k ? "+" : "", XKeysymToString(a->keys[k]));
        if (a->count > 1)
            buf_printf(&out, " x%d", a->count);
    }
    step_free(&s);
    dialect_free(d);
    return buf_take(&out);
}

static void t_actions(void **state)
{
    static const char *const cases[][3] = {
        {"anthropic-computer", "{\"action\": \"key\", \"text\": \"ctrl+k ctrl+s\"}",
         "Control_L+k; Control_L+s"},
        {"anthropic-computer", "{\"action\": \"key\", \"text\": \"C-c\"}", "Control_L+c"},
        {"anthropic-computer", "{\"action\": \"key\", \"text\": \"C-x C-s\"}", "Control_L+x; Control_L+s"},
        {"anthropic-computer", "{\"action\": \"key\", \"text\": \"Down Down Down\"}", "Down x3"},
        {"anthropic-computer", "{\"action\": \"key\", \"text\": \"Tab Tab Return\"}", "Tab x2; Return"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"CTRL\", \"C\"]}", "Control_L+c"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"ctrl+k\", \"ctrl+s\"]}",
         "Control_L+k; Control_L+s"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"ctrl+c\"]}", "Control_L+c"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"ctrl+a\", \"Delete\"]}",
         "Control_L+a; Delete"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"Escape\", \"ctrl+a\"]}",
         "Escape; Control_L+a"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"ctrl+shift\", \"t\"]}",
         "Control_L+Shift_L+t"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"ctrl\", \"shift+t\"]}",
         "Control_L+Shift_L+t"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"ctrl\", \"alt\", \"Delete\"]}",
         "Control_L+Alt_L+Delete"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": [\"Tab\", \"Tab\"]}", "Tab x2"},
        {"openai-computer", "{\"type\": \"keypress\", \"keys\": \"['ctrl', 'c']\"}", "Control_L+c"},
        {"uitars", "Action: hotkey(key='ctrl k ctrl s')", "Control_L+k; Control_L+s"},
        {"uitars", "Action: hotkey(key='ctrl shift t')", "Control_L+Shift_L+t"},
        {"pyautogui", "pyautogui.hotkey('ctrl', 'c')", "Control_L+c"},
        {"pyautogui", "pyautogui.press('volumemute', presses=2)", "XF86AudioMute x2"},
        {"pyautogui", "pyautogui.press(['tab', 'browserstop'])", "Tab; XF86Stop"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *is = pressed(cases[i][0], cases[i][1]);
        if (strcmp(is, cases[i][2]) != 0)
            fail_msg("%s: %s, and %s was expected", cases[i][1], is, cases[i][2]);
        free(is);
    }
}

static void t_sorted(void **state)
{
    for (int i = 1; i < key_names_count; i++)
        if (strcmp(key_names[i - 1].name, key_names[i].name) >= 0)
            fail_msg("%s, %s", key_names[i - 1].name, key_names[i].name);
}

static const struct CMUnitTest tests[] = {
    CLAIM("each key name of other programs is the key in their own tables", t_lists),
    CLAIM("chords and sequences are read in the notations of terminals, editors and toolkits", t_chords),
    CLAIM("an unknown key is refused with its name and the nearest known one", t_unknown),
    CLAIM("chords become actions, one for each of a sequence", t_actions),
    CLAIM("the table of names is sorted, without duplicates", t_sorted),
};

CHECK_MAIN()
