/* writing.c - what an action would put into a window, and how (subject.h).
 *
 * Text gets into a window by typing, by single keys, by pasting and by dropping.  Rules about writing hold
 * for all of these alike; the gate reads the selections, this file says which of them matter.
 */
#include "gate/subject.h"

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

static bool has_key(const struct policy_subject *s, uint32_t key)
{
    const struct action *a = s->action;
    for (int i = 0; i < a->nkeys; i++)
        if (policy_key(a->keys[i]) == key)
            return true;
    for (int i = 0; i < s->n_held; i++)
        if (s->held[i] == key)
            return true;
    return false;
}

static bool has_command(const struct policy_subject *s)
{
    return has_key(s, XK_Control_L) || has_key(s, XK_Super_L) ||
           (has_key(s, XK_Alt_L) && !has_key(s, XK_ISO_Level3_Shift));
}

/* The character of a keysym in the Latin-1, keypad or Unicode range; 0: none. */
static uint32_t character_of(uint32_t key)
{
    if (key >= XK_KP_Multiply && key <= XK_KP_9)
        return key - XK_KP_Multiply + '*';
    if (key >> 24 == 1)
        return key & 0xffffff;
    return key >= ' ' && key < 0x100 ? key : 0;
}

/* The characters that the keys make, in order, as often as they are pressed. */
static void put_characters(const struct action *a, char *out)
{
    int times = a->kind == ACT_KEY && a->count > 1 ? a->count : 1;
    for (int k = 0; k < times; k++)
        for (int i = 0; i < a->nkeys; i++) {
            uint32_t c = is_modifier(a->keys[i]) ? 0 : character_of(a->keys[i]);
            out += c ? utf8_encode(c, out) : 0;
        }
    *out = 0;
}

bool writing_ends_line(const struct action *a)
{
    static const uint32_t moving[] = {XK_Left, XK_Right, XK_Up,        XK_Down,   XK_Home,
                                      XK_End,  XK_Prior, XK_BackSpace, XK_Delete, XK_Next};
    for (int i = 0; action_is(a->kind, ACTION_NAMED_KEYS) && i < a->nkeys; i++)
        for (size_t k = 0; k < sizeof moving / sizeof *moving; k++)
            if (policy_key(a->keys[i]) == moving[k])
                return true;
    return false;
}

/* Space in a text counts only when the element is known to be none that holds text. */
enum policy_press writing_press(const struct policy_subject *s)
{
    const struct action *a = s->action;
    enum policy_press press = PRESS_NOTHING;
    if (a->kind == ACT_TYPE) {
        const char *text = a->text ? a->text : "";
        return a->press_enter || strpbrk(text, "\n\r") ? PRESS_ENTER
               : strchr(text, ' ')                     ? PRESS_IN_TEXT
                                                       : PRESS_NOTHING;
    }
    for (int i = 0; action_is(a->kind, ACTION_NAMED_KEYS) && !has_command(s) && i < a->nkeys; i++) {
        uint32_t k = policy_key(a->keys[i]);
        if (k == XK_Return || k == XK_ISO_Enter)
            return PRESS_ENTER;
        press = k == ' ' ? PRESS_SPACE : press;
    }
    return press;
}

/* ---- sources ---------------------------------------------------------------------------------- */

/* A drop takes the text that is selected; between two windows only, for within one it selects. */
static bool drops(const struct policy_subject *s)
{
    if (s->action->kind == ACT_DRAG)
        return s->n_targets == 2 && s->targets[0].window.id != s->targets[1].window.id;
    return s->action->kind == ACT_MUP && s->drags && s->n_targets &&
           (!s->pressed_in || s->pressed_in != s->targets[0].window.id);
}

/* An entry of a menu, by what the model or the program calls it. */
static bool pastes_by_name(const struct policy_subject *s)
{
    static const char *const words[] = {"paste", "einfügen", "coller",  "pegar",      "incolla",
                                        "colar", "plakken",  "wklej",   "klistra in", "вставить",
                                        "粘贴",  "貼り付け", "붙여넣기"};
    const struct action *a = s->action;
    const char *name = s->n_targets ? s->targets[0].name : "";
    for (size_t i = 0; a->kind == ACT_CLICK && i < sizeof words / sizeof *words; i++)
        if (strcasestr(a->element, words[i]) || strcasestr(name, words[i]))
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
    if (has_key(s, XK_Insert) && has_key(s, XK_Shift_L))
        return WRITING_PRIMARY | WRITING_CLIPBOARD;
    bool v = has_key(s, XK_v) && (has_key(s, XK_Control_L) || has_key(s, XK_Super_L));
    return v || has_key(s, 0x1008ff6d) /* XF86Paste */ ? WRITING_CLIPBOARD : WRITING_NONE;
}

void writing_begin(struct policy_subject *s, char *typed)
{
    const struct action *a = s->action;
    struct policy_writing *w = &s->writing;
    *w = (struct policy_writing){.text = "", .before = ""};
    typed[0] = 0;
    if (!s->n_targets)
        return;
    if (a->kind == ACT_TYPE) {
        *w =
            (struct policy_writing){.any = true, .known = true, .text = a->text ? a->text : "", .before = ""};
    } else if (writing_sources(s)) {
        w->any = true;
    } else if (action_is(a->kind, ACTION_NAMED_KEYS) && !has_command(s)) {
        put_characters(a, typed);
        *w = (struct policy_writing){.any = *typed, .known = *typed, .text = typed, .before = ""};
    }
    s->targets[s->n_targets - 1].writes = w->any;
}
