/* writing.c - determines the text that an action would write into a window, and its source (subject.h).
 *
 * Text gets into a window by typing, single keys, pasting and dropping. Rules about writing apply to all of
 * these; the gate reads the selections, and this file determines which of them are used. */
#include "gate/subject.h"

#include "actions/registry.h"
#include "base/utf8.h"

#include <X11/keysym.h>

#include <string.h>

/* ---- keys ------------------------------------------------------------------------------------- */

static bool is_shift(uint32_t key)
{
    return key == XK_Shift_L || key == XK_Shift_R || key == XK_ISO_Level3_Shift || key == XK_Mode_switch ||
           key == XK_Caps_Lock || key == XK_Num_Lock;
}

static bool is_modifier(uint32_t key)
{
    return is_shift(key) || (key >= XK_Shift_L && key <= XK_Hyper_R);
}

static bool has_command(const struct policy_subject *s)
{
    return subject_has_key(s, XK_Control_L) || subject_has_key(s, XK_Super_L) ||
           (subject_has_key(s, XK_Alt_L) && !subject_has_key(s, XK_ISO_Level3_Shift));
}

/* Returns the character of a keysym in the Latin-1, keypad or Unicode range; 0: none. */
static uint32_t character_of(uint32_t key)
{
    if (key >= XK_KP_Multiply && key <= XK_KP_9)
        return key - XK_KP_Multiply + '*';
    if (key >> 24 == 1)
        return key & 0xffffff;
    return key >= ' ' && key < 0x100 ? key : 0;
}

/* Returns the key's symbol with Shift on a US keyboard. */
static uint32_t shifted_us(uint32_t key)
{
    static const char plain[] = "`1234567890-=[]\\;',./", shifted[] = "~!@#$%^&*()_+{}|:\"<>?";
    const char *at = key < 0x80 && key ? strchr(plain, (int)key) : NULL;
    return at ? (uint32_t)shifted[at - plain] : key;
}

/* Writes the characters that the keys produce, in order, repeated as often as they are pressed. */
static void put_characters(const struct policy_subject *s, char *out)
{
    const struct action *a = s->action;
    int times = action_takes(a->kind, P_REPEAT) && a->count > 1 ? a->count : 1;
    bool shift = subject_has_key(s, XK_Shift_L);
    for (int k = 0; k < times; k++)
        for (int i = 0; i < a->nkeys; i++) {
            uint32_t key = a->keys[i], with = shift && s->shifted ? s->shifted(s->keyboard, key) : 0;
            with = with ? with : shift ? shifted_us(key) : key;
            uint32_t c = is_modifier(key) ? 0 : character_of(with);
            out += c ? utf8_encode(c, out) : 0;
        }
    *out = 0;
}

/* Returns whether Alt and a letter activate the button or menu with that letter underlined. */
static bool has_mnemonic(const struct policy_subject *s)
{
    return subject_has_key(s, XK_Alt_L) && !subject_has_key(s, XK_Control_L) &&
           !subject_has_key(s, XK_Super_L);
}

/* Classifies the press. A space in a text counts only if the element is known not to hold text. */
enum policy_press writing_press(const struct policy_subject *s)
{
    const struct action *a = s->action;
    enum policy_press press = PRESS_NOTHING;
    if (action_is(a->kind, ACTION_TYPES)) {
        const char *text = a->text ? a->text : "";
        return a->press_enter || strpbrk(text, "\n\r") ? PRESS_ENTER
               : s->in_menu && *text                   ? PRESS_MNEMONIC
               : strchr(text, ' ')                     ? PRESS_IN_TEXT
                                                       : PRESS_NOTHING;
    }
    for (int i = 0; action_is(a->kind, ACTION_NAMED_KEYS) && i < a->nkeys; i++) {
        uint32_t k = policy_key(a->keys[i]);
        bool letter = !is_modifier(a->keys[i]) && character_of(k) > ' ';
        if (letter && press == PRESS_NOTHING && (s->in_menu || has_mnemonic(s)))
            press = PRESS_MNEMONIC;
        if (has_command(s))
            continue;
        if (k == XK_Return || k == XK_ISO_Enter)
            return PRESS_ENTER;
        press = k == ' ' ? PRESS_SPACE : press;
    }
    return press;
}

/* ---- sources ---------------------------------------------------------------------------------- */

/* Returns whether the action drops selected text: only between two windows, because a drag within one window
 * selects. */
static bool drops(const struct policy_subject *s)
{
    if (action_is(s->action->kind, ACTION_DRAGS))
        return s->n_targets == 2 && s->targets[0].window.id != s->targets[1].window.id;
    return action_is(s->action->kind, ACTION_BUTTON) && s->drags && s->n_targets &&
           (!s->pressed_in || s->pressed_in != s->targets[0].window.id);
}

/* Returns whether the action activates a menu entry "Paste", by the model's or the program's name of it. */
static bool pastes_by_name(const struct policy_subject *s)
{
    static const char *const words[] = {
        "paste",      "einfügen",    "coller",   "pegar",  "incolla",    "colar", "plakken", "wklej",
        "klistra in", "вставить",    "вставити", "vložit", "yapıştır",   "liitä", "sæt ind", "indsæt",
        "lim inn",    "beillesztés", "lipește",  "tempel", "επικόλληση", "粘贴",  "貼上",    "貼り付け",
        "ペースト",   "붙여넣기",    "لصق",      "הדבק",   "चिपका"};
    const struct action *a = s->action;
    bool pointer = action_is(a->kind, ACTION_BUTTON) && !action_is(a->kind, ACTION_DRAGS);
    const struct policy_target *t = s->n_targets ? &s->targets[0] : NULL;
    const char *name = !t ? "" : pointer ? t->name : s->press && s->press != PRESS_MNEMONIC ? t->presses : "";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((pointer && strcasestr(a->element, words[i])) || strcasestr(name, words[i]))
            return true;
    return false;
}

unsigned writing_sources(const struct policy_subject *s)
{
    const struct action *a = s->action;
    bool pointer = action_is(a->kind, ACTION_BUTTON);
    if ((pointer && a->button == 2) || drops(s))
        return WRITING_PRIMARY;
    if (pastes_by_name(s))
        return WRITING_CLIPBOARD;
    if (!action_is(a->kind, ACTION_NAMED_KEYS))
        return WRITING_NONE;
    if (subject_has_key(s, XK_Insert) && subject_has_key(s, XK_Shift_L))
        return WRITING_PRIMARY | WRITING_CLIPBOARD;
    bool v = subject_has_key(s, XK_v) && (subject_has_key(s, XK_Control_L) || subject_has_key(s, XK_Super_L));
    return v || subject_has_key(s, 0x1008ff6d) /* XF86Paste */ ? WRITING_CLIPBOARD : WRITING_NONE;
}

void writing_begin(struct policy_subject *s, char *typed)
{
    const struct action *a = s->action;
    struct policy_writing *w = &s->writing;
    *w = (struct policy_writing){.text = "", .before = ""};
    typed[0] = 0;
    if (!s->n_targets)
        return;
    if (action_is(a->kind, ACTION_TYPES)) { /* Shift or AltGr that is down changes the characters */
        *w = (struct policy_writing){.any = true, .text = a->text ? a->text : "", .before = ""};
        w->known = !subject_has_key(s, XK_Shift_L) && !subject_has_key(s, XK_Alt_L);
    } else if (writing_sources(s)) {
        w->any = true;
    } else if (action_is(a->kind, ACTION_NAMED_KEYS) && !has_command(s)) {
        put_characters(s, typed);
        *w = (struct policy_writing){.any = *typed, .known = *typed, .text = typed, .before = ""};
    }
    s->targets[s->n_targets - 1].writes = w->any;
}
