/* action.c - names of faults, freeing, and the number of characters that an action types. */
#include "actions/registry.h"

#include "base/utf8.h"

#include <X11/keysym.h>
#include <stdlib.h>
#include <string.h>

const char *action_fault_name(enum action_fault f)
{
    static const char *const names[] = {
        "OK",      "E_PARSE", "E_NO_ACTION", "E_SCHEMA", "E_UNSUPPORTED",
        "E_RANGE", "E_KEY",   "E_TEXT",      "E_DENIED", "E_CONFIRM_REFUSED",
        "E_FOCUS", "E_X11",   "E_BUDGET",    "E_STOPPED"}; /* in the order of the enum */
    return f >= FAULT_NONE && f <= FAULT_STOPPED ? names[f] : "E_UNKNOWN";
}

void action_free(struct action *a)
{
    free(a->path);
    free(a->text);
    *a = (struct action){0};
}

void step_free(struct step *s)
{
    for (int i = 0; i < s->nactions; i++)
        action_free(&s->actions[i]);
    free(s->note);
    free(s->thought);
    free(s->check);
    free(s->dropped);
    *s = (struct step){0};
}

/* ---- characters typed ---------------------------------------------------------------------------- */

/* Returns whether a key types a character: Latin-1, the legacy keysyms of other scripts, the keypad, and
 * Unicode keysyms. */
static bool makes_character(uint32_t key)
{
    return (key >= XK_space && key < 0x2100) || (key >= XK_KP_Multiply && key <= XK_KP_9) || key >> 24 == 1;
}

/* Returns whether a key makes a chord a command: Control, Meta, Alt, Super or Hyper. */
static bool makes_command(uint32_t key)
{
    return key == XK_Control_L || key == XK_Control_R || (key >= XK_Meta_L && key <= XK_Hyper_R);
}

static int characters_of_keys(const struct action *a)
{
    int n = 0;
    for (int i = 0; i < a->nkeys; i++) {
        if (makes_command(a->keys[i]))
            return 0;
        n += makes_character(a->keys[i]);
    }
    return n;
}

int action_characters(const struct action *a)
{
    if (!action_is(a->kind, ACTION_CHARACTERS))
        return 0;
    if (!action_is(a->kind, ACTION_NAMED_KEYS))
        return a->text ? (int)utf8_count(a->text, strlen(a->text)) : 0;
    return characters_of_keys(a) * (action_takes(a->kind, P_REPEAT) && a->count ? a->count : 1);
}

uint32_t action_ref(const char *text)
{
    size_t n = *text == 'e' ? strspn(text + 1, "0123456789") : 0;
    return n && n < 10 && !text[1 + n] ? (uint32_t)strtoul(text + 1, NULL, 10) : 0;
}
