/* bar.c - finds the address that Enter would open in a browser.
 *
 * The browser reports the text of its address bar (struct gate_options, field). If it does not, the gate
 * tracks the text that the run has written into each window. The text is known as long as it was only
 * appended to. Keys that delete, move the cursor or complete the text make it unknown, and Enter then needs
 * confirmation. A click may return the focus to a field that the run has left, so such a field's text stays
 * tracked. */
#include "gate/gate_impl.h"

#include "actions/registry.h"
#include "base/clock.h"

#include <X11/XF86keysym.h>
#include <X11/keysym.h>
#include <stdio.h>
#include <string.h>

/* ---- keys ----------------------------------------------------------------------------------------- */

static bool is_one_of(uint32_t key, const uint32_t *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i] == key)
            return true;
    return false;
}

#define ONE_OF(key, ...)                                                                                     \
    is_one_of(key, (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4)

static bool is_modifier(uint32_t key)
{
    return (key >= XK_Shift_L && key <= XK_Hyper_R) || ONE_OF(key, XK_Caps_Lock, XK_Num_Lock);
}

/* Classifies a key with Control, Alt or Super. */
static enum edit edit_by_command(const struct policy_subject *s, uint32_t key)
{
    bool control = subject_has_key(s, XK_Control_L), alt = subject_has_key(s, XK_Alt_L);
    if (key == XK_Return)
        return EDIT_COMMITS;
    if (control && key == XK_a)
        return EDIT_SELECTS;
    if (key == XK_BackSpace || key == XK_Delete || (control && key == XK_x))
        return EDIT_ERASES;
    if (control && ONE_OF(key, XK_c, XK_v, XK_s, XK_Insert))
        return EDIT_NONE;
    bool changes = control && ONE_OF(key, XK_z, XK_y, XK_u, XK_h, XK_w, XK_d);
    return changes || (alt && !control && key > ' ' && key < 0x100) ? EDIT_CHANGES : EDIT_MOVES;
}

/* Classifies a key without Control, Alt or Super. With Shift, cursor keys select; dead keys and Compose
 * produce unknown characters. */
static enum edit edit_by_key(const struct policy_subject *s, uint32_t key)
{
    bool shift = subject_has_key(s, XK_Shift_L);
    if (key == XK_Return)
        return EDIT_COMMITS;
    if (key == XK_BackSpace || key == XK_Delete)
        return EDIT_ERASES;
    if ((key >= XK_Home && key <= XK_Begin) || ONE_OF(key, XK_Tab, XK_Escape))
        return shift && key != XK_Tab ? EDIT_CHANGES : EDIT_MOVES;
    bool odd = (key >= 0xfe50 && key <= 0xfe93) ||
               ONE_OF(key, XK_Multi_key, XK_Clear, XK_Undo, XK_Redo, XK_Codeinput, XF86XK_Cut);
    return odd || (key == XK_Insert && !shift) ? EDIT_CHANGES : EDIT_NONE;
}

/* Returns whether the action is a whole drag, or the release that ends one. */
static bool drags(const struct policy_subject *s)
{
    return action_is(s->action->kind, ACTION_DRAGS) ||
           (action_is(s->action->kind, ACTION_BUTTON) && s->drags);
}

static enum edit edit_of(const struct policy_subject *s)
{
    const struct action *a = s->action;
    enum edit edit = EDIT_NONE;
    if (edit_enters_bar(s))
        return EDIT_SELECTS;
    if (action_is(a->kind, ACTION_CLICKS))
        return a->count >= 3 ? EDIT_SELECTS : a->count == 2 || a->nhold ? EDIT_CHANGES : EDIT_NONE;
    if (drags(s))
        return EDIT_CHANGES;
    bool command =
        subject_has_key(s, XK_Control_L) || subject_has_key(s, XK_Alt_L) || subject_has_key(s, XK_Super_L);
    for (int i = 0; action_is(a->kind, ACTION_NAMED_KEYS) && i < a->nkeys; i++) {
        uint32_t key = policy_key(a->keys[i]);
        if (is_modifier(key))
            continue;
        enum edit one = command ? edit_by_command(s, key) : edit_by_key(s, key);
        if (action_is(a->kind, ACTION_HOLDS) && one == EDIT_NONE) /* the key may repeat */
            one = EDIT_MOVES;
        edit = one > edit ? one : edit;
    }
    return edit;
}

bool edit_enters_bar(const struct policy_subject *s)
{
    bool control = subject_has_key(s, XK_Control_L), alt = subject_has_key(s, XK_Alt_L);
    if (!action_is(s->action->kind, ACTION_NAMED_KEYS) || subject_has_key(s, XK_Super_L))
        return false;
    return (control && !alt &&
            (subject_has_key(s, XK_l) || subject_has_key(s, XK_t) || subject_has_key(s, XK_n))) ||
           (alt && !control && subject_has_key(s, XK_d)) || (!alt && !control && subject_has_key(s, XK_F6));
}

bool edit_opens_launcher(const struct policy_subject *s)
{
    const struct action *a = s->action;
    bool control = subject_has_key(s, XK_Control_L), alt = subject_has_key(s, XK_Alt_L);
    if (!action_is(a->kind, ACTION_NAMED_KEYS) && !action_is(a->kind, ACTION_RELEASES | ACTION_FOCUS))
        return false;
    return subject_has_key(s, XK_Super_L) ||
           (alt && !control &&
            (subject_has_key(s, XK_F1) || subject_has_key(s, XK_F2) || subject_has_key(s, XK_F3) ||
             subject_has_key(s, ' '))) ||
           (control && !alt && (subject_has_key(s, ' ') || subject_has_key(s, XK_Escape))) ||
           (control && alt && subject_has_key(s, XK_t)) || subject_has_key(s, XF86XK_Search) ||
           subject_has_key(s, XF86XK_LaunchA) || subject_has_key(s, XF86XK_Tools);
}

bool edit_opens_menu(const struct action *a)
{
    bool named = action_is(a->kind, ACTION_NAMED_KEYS);
    for (int i = 0; named && i < a->nkeys; i++)
        if (a->keys[i] == XK_Menu || a->keys[i] == XK_F10)
            return true;
    return a->button == 3 &&
           (action_is(a->kind, ACTION_CLICKS) || action_is(a->kind, ACTION_BUTTON | ACTION_HOLDS));
}

/* ---- possible content of a field --------------------------------------------------------------------- */

enum {
    BAR_H = 110,   /* height in pixels of a browser window above its page */
    COPY_MS = 2000 /* time for a busy program to own the copied selection */
};

/* Returns whether the action points into the part of the window with the address bar. */
static bool points_at_bar(const struct policy_subject *s)
{
    const struct policy_target *t = &s->targets[0];
    int y = s->n_targets && t->placed ? t->y - t->window.rect.y : BAR_H;
    return y >= 0 && y < BAR_H;
}

/* Returns whether keys that change or move something may move the focus out of the address bar. Cursor and
 * editing keys do not. */
static bool leaves_bar(const struct written *w, const struct policy_subject *s)
{
    const struct action *a = s->action;
    if (!action_is(a->kind, ACTION_NAMED_KEYS))
        return !points_at_bar(s);
    if (subject_has_key(s, XK_Alt_L) || subject_has_key(s, XK_Super_L))
        return true;
    for (int i = 0; i < a->nkeys; i++) {
        uint32_t key = policy_key(a->keys[i]);
        bool edits = subject_has_key(s, XK_Control_L) && ONE_OF(key, XK_z, XK_y, XK_u, XK_h, XK_x);
        bool cursor = (key >= XK_Home && key <= XK_Begin) || key == XK_Insert;
        bool suggests = key == XK_Tab && *w->text; /* Tab cycles through the browser's suggestions */
        if (!is_modifier(key) && !edits && !cursor && !suggests && edit_of(s) != EDIT_NONE)
            return true;
    }
    return false;
}

/* Returns whether the characters written so far, in any order, contain a scheme that runs code. */
static bool could_be_code(const struct written *w)
{
    static const char *const needed[] = {"javascript", "vbscript", "data/", "jar"};
    if (!w->seen[':'] && !w->seen[';'])
        return false;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        bool all = true;
        for (const char *c = needed[i]; *c; c++) {
            int n = 0;
            for (const char *d = needed[i]; *d; d++)
                n += *d == *c;
            all = all && w->seen[(unsigned char)*c] >= n;
        }
        if (all)
            return true;
    }
    return false;
}

static void count_characters(struct written *w, const char *text)
{
    for (const char *c = text; *c; c++) {
        unsigned char k = (unsigned char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        if (k < sizeof w->seen && w->seen[k] < 255)
            w->seen[k]++;
    }
}

static bool is_empty(const struct written *w)
{
    return !*w->text && !w->unknown && !w->moved;
}

static void append(struct written *w, const char *text)
{
    size_t have = strlen(w->text), n = strlen(text), most = sizeof w->text - 1;
    if (n > most)
        text += n - most, n = most;
    if (have + n > most) {
        memmove(w->text, w->text + (have + n - most), most - n);
        have = most - n;
    }
    memcpy(w->text + have, text, n);
    w->text[have + n] = 0;
    w->last += n;
    count_characters(w, text);
}

static void begin_field(struct written *w)
{
    w->text[0] = 0;
    w->moved = w->unknown = w->selected = w->bar = false;
    w->last = 0;
}

/* Notes that the focus moves to another field, or back to one that was written into before. */
static void leave_field(struct written *w)
{
    w->left = w->left || !is_empty(w);
    w->left_unknown = w->left_unknown || w->unknown;
    w->moved = w->moved || w->left;
    w->unknown = w->left_unknown;
    w->selected = w->bar = false;
    w->last = 0;
}

/* Tracks whether the address bar has the focus. */
static void note_place(struct written *w, const struct policy_subject *s, enum edit edit)
{
    const struct action *a = s->action;
    bool placed =
        action_is(a->kind, ACTION_BUTTON) || (action_is(a->kind, ACTION_TYPES) && a->x != ACTION_ABSENT);
    if (placed && a->button != 3)
        w->in_bar = points_at_bar(s);
    else if (edit_enters_bar(s))
        w->in_bar = !(w->in_bar && subject_has_key(s, XK_F6)); /* F6 in the bar moves the focus to the page */
    else if (edit == EDIT_COMMITS || ((edit == EDIT_MOVES || edit == EDIT_CHANGES) && leaves_bar(w, s)))
        w->in_bar = false;
}

static void note_edit(struct written *w, const struct policy_subject *s)
{
    const struct action *a = s->action;
    enum edit edit = edit_of(s);
    if (action_is(a->kind, ACTION_CLICKS) && a->button != 3 && edit == EDIT_NONE)
        leave_field(w);
    note_place(w, s, edit);
    w->last = edit == EDIT_NONE || edit == EDIT_MOVES ? w->last : 0;
    switch (edit) {
    case EDIT_NONE:
        break;
    case EDIT_MOVES:
        w->unknown = w->unknown || w->bar || *w->text;
        w->moved = true;
        w->selected = false;
        break;
    case EDIT_SELECTS:
        w->selected = true;
        w->bar = edit_enters_bar(s);
        break;
    case EDIT_ERASES:
        if (w->selected)
            w->text[0] = 0;
        w->unknown = !w->selected;
        w->moved = w->moved || !w->selected;
        break;
    case EDIT_CHANGES:
        w->unknown = w->moved = true;
        w->selected = false;
        break;
    case EDIT_COMMITS:
        w->left_unknown = !w->bar && (w->left_unknown || w->unknown);
        if (w->bar) {
            memset(w->seen, 0, sizeof w->seen);
            w->left = false;
        }
        begin_field(w);
    }
}

static bool leaves_by_tab(const struct written *w, const struct action *a)
{
    return action_takes(a->kind, P_REPEAT) && a->nkeys == 1 && policy_key(a->keys[0]) == XK_Tab && !w->bar;
}

const struct written *gate_written(const struct gate *g, unsigned long window)
{
    static const struct written nothing;
    for (int i = 0; i < WINDOWS_KEPT; i++)
        if (window && g->written[i].window == window)
            return &g->written[i];
    return &nothing;
}

/* Returns the entry of a window and moves it to the front; a new entry replaces the oldest. */
static struct written *written_in(struct gate *g, unsigned long window)
{
    int i = 0;
    while (i < WINDOWS_KEPT - 1 && g->written[i].window != window)
        i++;
    struct written now = g->written[i];
    if (now.window != window)
        now = (struct written){.window = window};
    memmove(g->written + 1, g->written, (size_t)i * sizeof now);
    g->written[0] = now;
    return &g->written[0];
}

/* Returns whether the action pastes text that the run copied less than COPY_MS ago. The program may not own
 * the selection yet, so the text that was read may be outdated. */
static bool pastes_too_early(struct gate *g)
{
    const struct policy_subject *s = &g->subject.s;
    if (action_is(s->action->kind, ACTION_NAMED_KEYS) && subject_has_key(s, XK_Control_L) &&
        (subject_has_key(s, XK_c) || subject_has_key(s, XK_x) || subject_has_key(s, XK_Insert)))
        g->copied = clock_ns();
    return g->copied && writing_sources(s) && clock_ms_since(g->copied) < COPY_MS;
}

void gate_note_edit(struct gate *g, const struct action *a, unsigned long window)
{
    if (!window || !(action_is(a->kind, ACTION_KEYBOARD) || action_is(a->kind, ACTION_BUTTON)))
        return;
    struct written *w = written_in(g, window);
    const struct policy_writing *writing = &g->subject.s.writing;
    bool replaces = action_is(a->kind, ACTION_TYPES) && a->overwrite;
    if (action_is(a->kind, ACTION_ADDRESS))
        *w = (struct written){.window = window};
    if (leaves_by_tab(w, a)) {
        bool unknown = w->unknown;
        begin_field(w);
        w->in_bar = false;
        w->left_unknown = w->left_unknown || unknown;
        w->left = true;
        return;
    }
    if (action_is(a->kind, ACTION_TYPES) && a->x != ACTION_ABSENT) {
        leave_field(w);
        note_place(w, &g->subject.s, EDIT_NONE);
    }
    if (writing->any && (w->selected || replaces)) {
        bool bar = w->bar;
        if (bar) {
            memset(w->seen, 0, sizeof w->seen);
            w->left = w->left_unknown = false;
        }
        begin_field(w);
        w->bar = bar;
    }
    w->last = writing->any && w->moved ? 0 : w->last;
    if (writing->any && writing->known)
        append(w, writing->text), w->unknown = w->unknown || (w->bar && strchr(writing->text, '\t'));
    else if (writing->any)
        w->unknown = true;
    if (writing->any && (!writing->known || writing_sources(&g->subject.s)))
        w->last = 0;
    w->unknown = w->unknown || pastes_too_early(g);
    if (!writing->any || action_is(a->kind, ACTION_NAMED_KEYS))
        note_edit(w, &g->subject.s);
    if (action_is(a->kind, ACTION_TYPES) && a->press_enter)
        w->text[0] = 0;
}

/* ---- the address that an action opens -------------------------------------------------------------- */

/* Enter alone, Enter after text, or a click, which may hit a suggestion or the button next to the bar */
enum opening { OPENS_NOTHING, OPENS_BY_ENTER, OPENS_AFTER_TEXT, OPENS_BY_CLICK };

static enum opening opening_of(const struct gate *g)
{
    const struct policy_subject *s = &g->subject.s;
    const struct action *a = s->action;
    const char *text = a->text ? a->text : "";
    if (action_is(a->kind, ACTION_TYPES) && (a->press_enter || strpbrk(text, "\r\n")))
        return strcspn(text, "\r\n") ? OPENS_AFTER_TEXT : OPENS_BY_ENTER;
    if (action_is(a->kind, ACTION_NAMED_KEYS) && edit_of(s) == EDIT_COMMITS)
        return OPENS_BY_ENTER;
    const struct written *w = gate_written(g, s->n_targets ? s->targets[0].window.id : 0);
    bool click = (action_is(a->kind, ACTION_CLICKS) || action_is(a->kind, ACTION_BUTTON | ACTION_RELEASES)) &&
                 a->button != 3;
    return click && (w->unknown || could_be_code(w)) ? OPENS_BY_CLICK : OPENS_NOTHING;
}

/* Derives the address from the text that the run has written; used if the program does not report it. */
static void infer_address(struct gate *g, enum opening how, unsigned long window)
{
    const struct written *w = gate_written(g, window);
    struct policy_address *bar = &g->subject.s.address;
    const char *text = g->subject.s.action->text ? g->subject.s.action->text : "";
    bool unknown = w->unknown || (w->moved && could_be_code(w));
    if (how == OPENS_BY_CLICK && !(unknown && could_be_code(w)))
        return;
    int n = how == OPENS_AFTER_TEXT ? (int)strcspn(text, "\r\n") : 0;
    unknown = unknown || (w->bar && memchr(text, '\t', (size_t)n)); /* Tab completes the text */
    snprintf(g->bar, sizeof g->bar, "%s%.*s", w->selected ? "" : w->text, n, text);
    *bar = (struct policy_address){true, !unknown, g->bar};
    if (how == OPENS_AFTER_TEXT && (w->selected || g->subject.s.action->overwrite))
        bar->known = true;
}

/* Returns whether a drag goes from the page to the upper part of a window: a browser opens a link or a text
 * that is dropped on its address bar or tabs. */
static bool drops_on_bar(const struct policy_subject *s)
{
    const struct policy_target *t = &s->targets[0];
    if (!drags(s) || s->n_corners < 2)
        return false;
    int from = s->corners[1] - t->window.rect.y, to = s->corners[2 * s->n_corners - 1] - t->window.rect.y;
    return from >= BAR_H && to >= 0 && to < BAR_H;
}

void gate_look_up_address(struct gate *g)
{
    struct policy_subject *s = &g->subject.s;
    struct policy_target *t = &s->targets[0];
    struct gate_field field = {.in_page = false};
    bool differs = false;
    enum opening how = opening_of(g);
    s->address = (struct policy_address){false, false, ""};
    if (!s->n_targets || !policy_is_browser(g->o.policy, &t->window))
        return;
    if (drops_on_bar(s)) {
        s->address.goes = t->writes = true;
        return;
    }
    if (how == OPENS_NOTHING)
        return;
    bool read = gate_read_field(g, t, &field, &differs);
    if (!read || (differs && !field.tools)) {
        infer_address(g, how, t->window.id);
        s->address.known = s->address.known && !(differs && g->part);
    } else if (field.tools) {
        t->shell = true;
    } else if (!field.in_page && field.editable && how != OPENS_AFTER_TEXT) {
        snprintf(g->bar, sizeof g->bar, "%s", field.text);
        s->address = (struct policy_address){how == OPENS_BY_ENTER || action_is_code(g->bar), true, g->bar};
    }
    t->writes = t->writes || s->address.goes;
}
