/* roles.c - names of the roles of AT-SPI; see roles.h. */
#include "atspi/roles.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */
static const char *const names[] = { /* AtspiRole, from 0 */
    "invalid", "accelerator label", "alert", "animation", "arrow", "calendar", "canvas", "check box",
    "check menu item", "color chooser", "column header", "combo box", "date editor", "desktop icon",
    "desktop frame", "dial", "dialog", "directory pane", "drawing area", "file chooser", "filler",
    "focus traversable", "font chooser", "frame", "glass pane", "html container", "icon", "image",
    "internal frame", "label", "layered pane", "list", "list item", "menu", "menu bar", "menu item",
    "option pane", "page tab", "page tab list", "panel", "password text", "popup menu", "progress bar",
    "push button", "radio button", "radio menu item", "root pane", "row header", "scroll bar",
    "scroll pane", "separator", "slider", "spin button", "split pane", "status bar", "table", "table cell",
    "table column header", "table row header", "tearoff menu item", "terminal", "text", "toggle button",
    "tool bar", "tool tip", "tree", "tree table", "unknown", "viewport", "window", "extended", "header",
    "footer", "paragraph", "ruler", "application", "autocomplete", "editbar", "embedded", "entry", "chart",
    "caption", "document frame", "heading", "page", "section", "redundant object", "form", "link",
    "input method window", "table row", "tree item", "document spreadsheet", "document presentation",
    "document text", "document web", "document email", "comment", "list box", "grouping", "image map",
    "notification", "info bar", "level bar", "title bar", "block quote", "audio", "video", "definition",
    "article", "landmark", "log", "marquee", "math", "rating", "timer", "static", "math fraction",
    "math root", "subscript", "superscript", "description list", "description term", "description value",
    "footnote", "content deletion", "content insertion", "mark", "suggestion", "push button menu", "switch",
};
/* clang-format on */

const char *role_name(uint32_t role)
{
    return role < sizeof names / sizeof *names ? names[role] : names[ROLE_UNKNOWN];
}

const char *role_canonical(const char *name)
{
    return strcmp(name, "button") ? name : "push button";
}

/* Returns whether a byte is of a word; those above ASCII are of letters. */
static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c > 127;
}

bool role_hides_text(const char *name)
{
    static const char *const parts[] = {
        "password",
        "passphrase",
        "pass phrase",
        "passcode",
        "pass code",
        "passwort",
        "kennwort",
        "mot de passe",
        "contrase\xc3\xb1",
        "senha",
        "palavra-passe",
        "parola d'ordine",
        "wachtwoord",
        "l\xc3\xb6senord",
        "adgangskode",
        "has\xc5\x82o",
        "\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c", /* ru, without the first letter: either case */
        "\xe5\xaf\x86\xe7\xa0\x81",
        "\xe5\xaf\x86\xe7\xa2\xbc",                                     /* zh */
        "\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf\xe3\x83\xbc\xe3\x83\x89", /* ja */
        "\xeb\xb9\x84\xeb\xb0\x80\xeb\xb2\x88\xed\x98\xb8",             /* ko */
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcasestr(name, parts[i]))
            return true;
    for (const char *at = name; (at = strcasestr(at, "pin")); at += 3)
        if ((at == name || !is_of_word(at[-1])) && !is_of_word(at[3]))
            return true;
    return false;
}
