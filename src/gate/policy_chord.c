/* policy_chord.c - lists the sets of keys that an action would hold down together.
 *
 * Keys that earlier actions left pressed are part of every chord of a later action, including chords used to
 * type or to open an address, as for the X server. So a denied chord cannot be assembled over several
 * actions. */
#include "gate/policy_impl.h"

#include "actions/keys.h"
#include "actions/registry.h"
#include "base/utf8.h"

#include <X11/keysym.h>

#include <string.h>

/* Maps equivalent keys to one keysym. */
static uint32_t canonical_keysym(uint32_t k)
{
    /* clang-format off */
    static const uint32_t pairs[][2] = {
        {XK_Control_R, XK_Control_L}, {XK_Shift_R, XK_Shift_L}, {XK_Alt_R, XK_Alt_L},
        {XK_Meta_L, XK_Alt_L}, {XK_Meta_R, XK_Alt_L}, {XK_ISO_Level3_Shift, XK_Alt_L},
        {XK_Mode_switch, XK_Alt_L}, {XK_Super_R, XK_Super_L}, {XK_Hyper_L, XK_Super_L},
        {XK_Hyper_R, XK_Super_L}, {XK_KP_Enter, XK_Return}, {XK_ISO_Enter, XK_Return},
        {XK_Linefeed, XK_Return}, {XK_KP_Delete, XK_Delete}, {XK_KP_Insert, XK_Insert},
        {XK_KP_Home, XK_Home}, {XK_KP_End, XK_End}, {XK_KP_Page_Up, XK_Page_Up},
        {XK_KP_Page_Down, XK_Page_Down}, {XK_KP_Up, XK_Up}, {XK_KP_Down, XK_Down}, {XK_KP_Left, XK_Left},
        {XK_KP_Right, XK_Right}, {XK_KP_Tab, XK_Tab}, {XK_ISO_Left_Tab, XK_Tab}, {XK_KP_Space, XK_space},
        {XK_Sys_Req, XK_Print}, {XK_Break, XK_Pause}, {XK_KP_Add, XK_plus}, {XK_KP_Subtract, XK_minus},
        {XK_KP_Multiply, XK_asterisk}, {XK_KP_Divide, XK_slash},
        {XK_KP_Equal, XK_equal},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0] == k)
            return pairs[i][1];
    if (k >= XK_KP_0 && k <= XK_KP_9)
        return k - XK_KP_0 + XK_0;
    if (k >= XK_KP_F1 && k <= XK_KP_F4)
        return k - XK_KP_F1 + XK_F1;
    return k;
}

uint32_t policy_key(uint32_t keysym)
{
    if (keysym >> 24 == 1 && (keysym & 0xffffff) < 0x100) /* Latin-1 in Unicode encoding */
        keysym &= 0xff;
    return keysym_lower(canonical_keysym(keysym));
}

void chord_add(struct chord *c, uint32_t keysym)
{
    uint32_t k = policy_key(keysym);
    int at = 0;
    while (at < c->n && c->keys[at] < k)
        at++;
    if (c->n == POLICY_MAX_KEYS || (at < c->n && c->keys[at] == k))
        return;
    memmove(c->keys + at + 1, c->keys + at, (size_t)(c->n - at) * sizeof *c->keys);
    c->keys[at] = k;
    c->n++;
}

bool chord_within(const struct chord *part, const struct chord *whole)
{
    int j = 0;
    for (int i = 0; i < part->n; i++) {
        while (j < whole->n && whole->keys[j] < part->keys[i])
            j++;
        if (j == whole->n || whole->keys[j] != part->keys[i])
            return false;
    }
    return true;
}

/* ---- chords of an action ---------------------------------------------------------------------- */

struct walk {
    struct chord held; /* keys held by earlier actions and during this one */
    bool (*visit)(void *arg, const struct chord *c);
    void *arg;
    bool ended;
};

static void visit_with(struct walk *w, const uint32_t *keys, int n)
{
    struct chord c = w->held;
    for (int i = 0; i < n; i++)
        chord_add(&c, keys[i]);
    if (!w->ended)
        w->ended = !w->visit(w->arg, &c);
}

static void visit_one(struct walk *w, uint32_t key)
{
    visit_with(w, &key, 1);
}

/* Visits the keys of a text. Characters are chords only while other keys are down; Enter and Tab always
 * are. */
static void visit_text(struct walk *w, const char *text)
{
    size_t n = strlen(text);
    for (uint32_t cp; n && !w->ended;) {
        int len = utf8_decode(text, n, &cp);
        len = len > 0 ? len : 1;
        bool enter = cp == '\n' || cp == '\r';
        if (enter || cp == '\t')
            visit_one(w, enter ? XK_Return : XK_Tab);
        else if (w->held.n)
            visit_one(w, cp < 0x100 ? cp : 0x01000000 | cp);
        text += len;
        n -= (size_t)len;
    }
}

static void visit_type(struct walk *w, const struct action *a)
{
    uint32_t keys[3];
    for (int i = 0, n; a->overwrite && (n = screen_overwrite_keys(i, keys)) != 0; i++)
        visit_with(w, keys, n);
    if (a->overwrite) /* to empty the field, and after a completion by the program */
        visit_one(w, XK_BackSpace);
    visit_text(w, a->text ? a->text : "");
    if (a->press_enter)
        visit_one(w, XK_Return);
}

void chords_of(const struct policy_subject *s, bool (*visit)(void *arg, const struct chord *c), void *arg)
{
    uint32_t shortcut[2];
    const struct action *a = s->action;
    struct walk w = {.visit = visit, .arg = arg};
    for (int i = 0; i < s->n_held; i++)
        chord_add(&w.held, s->held[i]);
    for (int i = 0; !action_takes(a->kind, P_TAP) && i < a->nhold; i++)
        chord_add(&w.held, a->hold[i]);
    int n = action_shortcut(a->kind, shortcut);
    if (action_is(a->kind, ACTION_NAMED_KEYS)) {
        /* all keys as one chord, although they are tapped separately: stricter than necessary */
        visit_with(&w, a->keys, a->nkeys);
    } else if (action_is(a->kind, ACTION_TYPES)) {
        visit_type(&w, a);
    } else if (n || a->nhold) {
        visit_with(&w, shortcut, n);
    }
    if (action_is(a->kind, ACTION_ADDRESS)) {
        visit_text(&w, a->text ? a->text : "");
        visit_one(&w, XK_Return);
    }
}
