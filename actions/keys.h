/* keys.h - names of keys and chords of keys.
 *
 * Names of X and xdotool, PyAutoGUI, Playwright and browsers, macOS, and single characters (key_names.c).
 * Except for X's letters they are compared ignoring case, "_", "-" and spaces.
 *
 *     ctrl+shift+t  Ctrl + C  ctrl c  ctrl-alt-delete  ctrl++  ctrl+-  <ctrl>c  C-x  M-x  ⌘+c
 *     ctrl+k ctrl+s   C-x C-s   Tab Tab Enter    in sequence
 *
 * A space separates chords if a part has its own separator or follows a key that is not a modifier. */
#pragma once

#include "actions/action.h"

enum { KEYS_MAX_CHORDS = 32, KEYS_MAX_TEXT = 512 };

struct key_name {
    const char *name;
    uint32_t keysym;
};
extern const struct key_name key_names[];
extern const int key_names_count;

struct key_chord {
    uint32_t keys[ACTION_MAX_KEYS]; /* modifiers first, in press order */
    int n;
};

struct key_sequence {
    struct key_chord chords[KEYS_MAX_CHORDS];
    int n;
};

/* Parses chords; cmd_is_ctrl: "cmd" means Control.  Returns FAULT_NONE, or a fault with a message that names
 * the unknown key and the nearest known one. */
enum action_fault keys_parse(const char *text, size_t len, bool cmd_is_ctrl, struct key_sequence *out,
                             struct err *e);

bool keys_is_modifier(uint32_t keysym);

/* Convert between keysyms and the names of X. NULL or 0: unknown. */
const char *keysym_name(uint32_t keysym);
uint32_t keysym_named(const char *name);
/* Returns the lower-case letter of a letter, otherwise the keysym itself. */
uint32_t keysym_lower(uint32_t keysym);
