/* keys.c - key names of people and models to X keysyms.
 *
 * Names are compared ignoring case and "-", "_" and spaces between letters.  Single characters and all
 * names of X ("KP_Enter", "XF86Back") are known too.
 */
#include "actions/parse.h"

#include "base/utf8.h"

#include <X11/XF86keysym.h>
#include <X11/Xlib.h>
#include <X11/keysym.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct name {
    const char *name;
    uint32_t keysym;
};

/* clang-format off */
static const struct name names[] = {
    {"ctrl", XK_Control_L}, {"control", XK_Control_L}, {"shift", XK_Shift_L}, {"alt", XK_Alt_L},
    {"option", XK_Alt_L}, {"altgr", XK_ISO_Level3_Shift}, {"win", XK_Super_L}, {"windows", XK_Super_L},
    {"super", XK_Super_L}, {"meta", XK_Super_L}, {"cmd", XK_Super_L}, {"command", XK_Super_L},
    {"os", XK_Super_L}, {"enter", XK_Return}, {"return", XK_Return}, {"kpenter", XK_KP_Enter},
    {"esc", XK_Escape}, {"escape", XK_Escape}, {"tab", XK_Tab}, {"space", XK_space}, {"spacebar", XK_space},
    {"backspace", XK_BackSpace}, {"delete", XK_Delete}, {"del", XK_Delete}, {"insert", XK_Insert},
    {"ins", XK_Insert}, {"home", XK_Home}, {"end", XK_End}, {"pageup", XK_Page_Up}, {"pgup", XK_Page_Up},
    {"pagedown", XK_Page_Down}, {"pgdown", XK_Page_Down}, {"pgdn", XK_Page_Down}, {"up", XK_Up},
    {"down", XK_Down}, {"left", XK_Left}, {"right", XK_Right}, {"arrowup", XK_Up}, {"arrowdown", XK_Down},
    {"arrowleft", XK_Left}, {"arrowright", XK_Right}, {"uparrow", XK_Up}, {"downarrow", XK_Down},
    {"leftarrow", XK_Left}, {"rightarrow", XK_Right}, {"capslock", XK_Caps_Lock}, {"numlock", XK_Num_Lock},
    {"scrolllock", XK_Scroll_Lock}, {"printscreen", XK_Print}, {"prtsc", XK_Print}, {"prtscr", XK_Print},
    {"print", XK_Print}, {"sysrq", XK_Sys_Req}, {"pause", XK_Pause}, {"menu", XK_Menu}, {"apps", XK_Menu},
    {"volumeup", XF86XK_AudioRaiseVolume}, {"volumedown", XF86XK_AudioLowerVolume},
    {"volumemute", XF86XK_AudioMute}, {"mute", XF86XK_AudioMute}, {"playpause", XF86XK_AudioPlay},
    {"nexttrack", XF86XK_AudioNext}, {"prevtrack", XF86XK_AudioPrev}, {"browserback", XF86XK_Back},
    {"browserforward", XF86XK_Forward}, {"browserrefresh", XF86XK_Reload}, {"plus", XK_plus},
    {"minus", XK_minus}, {"hyphen", XK_minus}, {"comma", XK_comma}, {"period", XK_period},
    {"dot", XK_period}, {"slash", XK_slash}, {"backslash", XK_backslash}, {"semicolon", XK_semicolon},
    {"colon", XK_colon}, {"equal", XK_equal}, {"equals", XK_equal}, {"quote", XK_apostrophe},
    {"apostrophe", XK_apostrophe}, {"backtick", XK_grave}, {"grave", XK_grave}, {"tilde", XK_asciitilde},
    {"asterisk", XK_asterisk}, {"underscore", XK_underscore},
};
/* clang-format on */

/* As one word only: "alt left" is a chord. */
static const struct name sides[] = {
    {"ctrlleft", XK_Control_L}, {"ctrlright", XK_Control_R}, {"shiftleft", XK_Shift_L},
    {"shiftright", XK_Shift_R}, {"altleft", XK_Alt_L},       {"altright", XK_Alt_R},
    {"winleft", XK_Super_L},    {"winright", XK_Super_R},
};

const char *const keys_modifiers[] = {"ctrl", "shift", "alt", "super", NULL};
const char *const keys_offered[] = {
    "enter", "escape", "tab",      "space", "backspace",   "delete", "insert", "home",
    "end",   "pageup", "pagedown", "up",    "down",        "left",   "right",  "f1",
    "f2",    "f3",     "f4",       "f5",    "f6",          "f7",     "f8",     "f9",
    "f10",   "f11",    "f12",      "menu",  "printscreen", "plus",   NULL};

enum { MAX_NAME = 40 };

/* f1..f35, num0..num9 */
static uint32_t numbered_key(const char *key)
{
    if (key[0] == 'f' && isdigit((unsigned char)key[1]) && strlen(key) <= 3) {
        int n = atoi(key + 1);
        return key[1] != '0' && n >= 1 && n <= 35 ? XK_F1 + (uint32_t)n - 1 : 0;
    }
    if (!strncmp(key, "num", 3) && isdigit((unsigned char)key[3]) && !key[4])
        return XK_KP_0 + (uint32_t)(key[3] - '0');
    return 0;
}

static uint32_t keysym_of_char(uint32_t cp)
{
    if (cp == '\n' || cp == '\r')
        return XK_Return;
    if (cp == '\t')
        return XK_Tab;
    if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
        return 0;
    return cp <= 0xff ? cp : 0x01000000 | cp;
}

static uint32_t keysym_of_name(const char *name, size_t len, bool cmd_is_ctrl)
{
    char key[MAX_NAME + 1], exact[MAX_NAME + 1];
    uint32_t cp;
    size_t n = 0;
    if (len && utf8_decode(name, len, &cp) == (int)len)
        return keysym_of_char(cp);
    if (len > MAX_NAME)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (!name[i])
            return 0;
        exact[i] = name[i];
        bool between =
            i && i + 1 < len && isalnum((unsigned char)name[i - 1]) && isalnum((unsigned char)name[i + 1]);
        if (!between || (name[i] != '-' && name[i] != '_' && name[i] != ' '))
            key[n++] = (char)tolower((unsigned char)name[i]);
    }
    key[n] = exact[len] = 0;
    if (cmd_is_ctrl && (!strcmp(key, "cmd") || !strcmp(key, "command")))
        return XK_Control_L;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, key))
            return names[i].keysym;
    for (size_t i = 0; n == len && i < sizeof sides / sizeof *sides; i++)
        if (!strcmp(sides[i].name, key))
            return sides[i].keysym;
    uint32_t found = numbered_key(key);
    return found ? found : (uint32_t)XStringToKeysym(exact);
}

void action_plain_keys(struct action *a)
{
    for (int i = 0; a->nkeys > 1 && i < a->nkeys; i++)
        if (a->keys[i] >= 'A' && a->keys[i] <= 'Z')
            a->keys[i] += 'a' - 'A';
}

/* ---- chords ----------------------------------------------------------------------------------- */

/* Splits text at `by` and looks up every part; -1 when one is unknown, -2 when there are too many.  An
 * empty part is an error, except that "ctrl++" and "+" mean the plus key. */
static int split_chord(const char *text, size_t len, char by, bool cmd_is_ctrl, uint32_t *keys, int max,
                       char bad[64])
{
    int n = 0;
    for (size_t at = 0; at <= len;) {
        size_t end = at;
        while (end < len && text[end] != by)
            end++;
        if (end == at && end < len && end + 1 == len && by == '+')
            end = len; /* the last "+" is a key */
        if (end == at && by == ' ' && end < len) {
            at++;
            continue;
        }
        size_t from = at, to = end;
        while (from + 1 < to && text[from] == ' ')
            from++;
        while (to > from + 1 && text[to - 1] == ' ')
            to--;
        uint32_t k = to > from ? keysym_of_name(text + from, to - from, cmd_is_ctrl) : 0;
        if (k && n == max)
            return -2;
        if (!k) {
            const char *part = to > from ? text + from : text;
            size_t shown = to > from ? to - from : len;
            shown = utf8_valid_prefix(part, shown < 60 ? shown : 60);
            memcpy(bad, part, shown);
            bad[shown] = 0;
            return -1;
        }
        keys[n++] = k;
        at = end + 1;
    }
    return n;
}

int action_chord(const char *text, size_t len, bool cmd_is_ctrl, uint32_t *keys, int max, char bad[64])
{
    char unused[64];
    uint32_t whole = keysym_of_name(text, len, cmd_is_ctrl);
    if (whole && max > 0) {
        keys[0] = whole;
        return 1;
    }
    while (len && *text == ' ')
        text++, len--;
    while (len && text[len - 1] == ' ')
        len--;
    int n = split_chord(text, len, '+', cmd_is_ctrl, keys, max, bad);
    for (const char *by = " -"; *by && n < 0; by++)
        if (memchr(text, *by, len))
            n = split_chord(text, len, *by, cmd_is_ctrl, keys, max, unused);
    return n;
}
