/* targets.c - looks up the windows, elements and text that an action would affect, and applies the rules.
 *
 * subject.c determines the relevant points and windows from the action alone. This file adds the windows on
 * the display, the names of elements, the text that would be pasted, and the text written just before. */
#include "gate/gate_impl.h"

#include "base/utf8.h"

#include <X11/keysym.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OVERLAYS = 8 };

/* ---- windows ------------------------------------------------------------------------------------ */

static int look_up_windows(struct gate *g, struct err *e)
{
    struct policy_subject *s = &g->subject.s;
    for (int i = 0; i < s->n_targets; i++) {
        struct policy_target *t = &s->targets[i];
        int rc = t->placed ? screen_window_at(g->screen, t->x, t->y, &t->window)
                           : screen_focused_window(g->screen, &t->window);
        if (rc)
            return err_set(e, ERR_ENV, "display '%s' was lost", screen_name(g->screen));
    }
    return 0;
}

static void add_target(struct policy_subject *s, const struct screen_window *w)
{
    if (s->n_targets < POLICY_MAX_TARGETS)
        s->targets[s->n_targets++] = (struct policy_target){.window = *w, .writes = true};
}

/* Adds windows that receive text without being the target: launchers have the keyboard without the focus, and
 * the menu entry "Paste" writes into the focused window. */
static void add_receivers(struct gate *g, const struct action *a)
{
    struct policy_subject *s = &g->subject.s;
    struct screen_window found[OVERLAYS];
    int n = action_is(a->kind, ACTION_CHARACTERS) ? screen_overlays(g->screen, found, OVERLAYS) : 0;
    for (int i = 0; i < n; i++)
        if (policy_is_launcher(g->o.policy, found[i].class))
            add_target(s, &found[i]);
    if (action_is(a->kind, ACTION_CLICKS) && s->writing.any &&
        screen_focused_window(g->screen, &found[0]) == 0)
        add_target(s, &found[0]);
}

/* Determines which targets execute text. Text written into a launcher that the run has opened counts as
 * written into a shell, because the search of a desktop may have no window of its own. */
static void look_for_shells(struct gate *g, bool keys)
{
    struct policy_subject *s = &g->subject.s;
    bool launcher = g->in_launcher && (s->writing.any || s->press == PRESS_ENTER);
    for (int i = 0; i < s->n_targets; i++) {
        struct policy_target *t = &s->targets[i];
        t->shell = t->shell || (launcher && keys) || ((keys || t->writes) && screen_has_shell(&t->window));
    }
}

static void look_up_names(struct gate *g)
{
    struct policy_subject *s = &g->subject.s;
    for (int i = 0; g->o.name_at && i < s->n_targets; i++) {
        struct policy_target *t = &s->targets[i];
        if (t->placed &&
            !g->o.name_at(g->o.name_arg, t->x, t->y, t->window.title, t->name, t->other, sizeof t->name))
            t->name[0] = t->other[0] = 0;
    }
}

/* Looks up the element that the keys of the current action would press in the target's window. */
static void gate_look_up_pressed(struct gate *g, struct policy_target *t)
{
    bool enter = g->subject.s.press == PRESS_ENTER;
    t->presses_known = g->subject.s.press != PRESS_MNEMONIC && g->o.pressed &&
                       g->o.pressed(g->o.name_arg, enter, t->window.title, t->presses, sizeof t->presses);
    if (!t->presses_known)
        t->presses[0] = 0;
}

/* Reads the text of the dialog around each target whose button accepts or has an unknown name. */
static void look_up_dialogs(struct gate *g)
{
    struct policy_subject *s = &g->subject.s;
    const char *element = s->action->element;
    bool pointer = action_is(s->action->kind, ACTION_BUTTON);
    for (int i = 0; g->o.dialog && (pointer || s->press) && i < s->n_targets; i++) {
        struct policy_target *t = &s->targets[i];
        const char *name = s->press ? t->presses : t->name;
        bool asked =
            *name ? policy_agrees(g->o.policy, name) || (pointer && policy_agrees(g->o.policy, element))
                  : !*element || policy_agrees(g->o.policy, element);
        int told = asked ? g->o.dialog(g->o.name_arg, t->placed ? t->x : -1, t->y, t->window.title, t->dialog,
                                       sizeof t->dialog)
                         : 0;
        t->silent = told < 0;
        if (told <= 0 || strcasestr(t->dialog, "cookie")) /* a cookie banner is not a confirmation dialog */
            t->dialog[0] = 0;
    }
}

/* ---- written text ------------------------------------------------------------------------------------ */

static void read_selections(struct gate *g)
{
    struct policy_writing *w = &g->subject.s.writing;
    unsigned sources = writing_sources(&g->subject.s);
    char *primary = NULL, *clipboard = NULL;
    free(g->pasted);
    g->pasted = NULL;
    if (!sources)
        return;
    bool unknown = (sources & WRITING_PRIMARY && screen_selection(g->screen, true, &primary)) ||
                   (sources & WRITING_CLIPBOARD && screen_selection(g->screen, false, &clipboard));
    if (!unknown)
        g->pasted = xasprintf("%s%s%s", primary ? primary : "", primary && clipboard ? "\n" : "",
                              clipboard ? clipboard : "");
    free(primary);
    free(clipboard);
    w->known = g->pasted != NULL;
    w->text = g->pasted ? g->pasted : "";
    if (g->pasted) /* for rules about secrets, pasting a secret counts as typing it */
        g->subject.s.n_secrets = secrets_find_values(g->o.secrets, g->pasted, g->named);
}

static void remember_before(struct gate *g, const struct action *a)
{
    struct policy_subject *s = &g->subject.s;
    struct policy_writing *w = &s->writing;
    const struct written *before = gate_written(g, s->n_targets ? s->targets[0].window.id : 0);
    bool replaced = action_is(a->kind, ACTION_TYPES) && a->overwrite;
    if (!w->any || replaced)
        return;
    w->before = before->text;
    w->moved = before->moved || a->x != ACTION_ABSENT;
    w->before = before->selected && !w->moved ? "" : w->before;
}

void gate_note_written(struct gate *g, const struct action *a)
{
    const struct policy_subject *s = &g->subject.s;
    unsigned long window = s->n_targets ? s->targets[0].window.id : 0;
    for (int i = 0; i < s->n_targets; i++)
        window = s->targets[i].writes ? s->targets[i].window.id : window;
    if (action_is(a->kind, ACTION_BUTTON | ACTION_HOLDS)) {
        g->buttons |= 1u << (a->button & 31);
        g->pressed_in = s->n_targets ? s->targets[0].window.id : 0;
    }
    if (action_is(a->kind, ACTION_BUTTON | ACTION_RELEASES))
        g->buttons &= ~(1u << (a->button & 31));
    gate_note_edit(g, a, window);
    bool ends =
        action_is(a->kind, ACTION_CLICKS) || writing_press(s) == PRESS_ENTER || subject_has_key(s, XK_Escape);
    g->in_menu = edit_opens_menu(a) || (g->in_menu && !ends);
    g->in_launcher = edit_opens_launcher(s) || (g->in_launcher && !ends);
}

/* ---- interface --------------------------------------------------------------------------------------- */

static uint32_t shifted_on_screen(void *keyboard, uint32_t key)
{
    return screen_shifted(keyboard, key);
}

int gate_look(struct gate *g, const struct action *a, const struct view_transform *transform, struct err *e)
{
    struct policy_subject *s = &g->subject.s;
    struct screen_rect all = screen_root(g->screen);
    int pointer[2];
    bool known = screen_pointer(g->screen, &pointer[0], &pointer[1]) == 0;
    struct subject_root root = {all.w, all.h, known ? pointer : NULL, g->buttons != 0};
    subject_build(&g->subject, a, transform, &root);
    s->pressed_in = s->drags ? g->pressed_in : 0;
    memcpy(s->held, g->held, sizeof s->held);
    s->n_held = g->n_held;
    if (action_is(a->kind, ACTION_TYPES) && a->text)
        s->n_secrets = secrets_find_names(g->o.secrets, a->text, g->named);
    s->secrets = g->named;
    s->new_goal = a->kind == ACT_PLAN && a->text && g->goals && goals_has_new(g->goals, a->text);
    s->spent = g->spent;
    s->thought = *g->thought ? g->thought : NULL;
    s->in_menu = g->in_menu;
    s->shifted = shifted_on_screen;
    s->keyboard = g->screen;
    if (look_up_windows(g, e))
        return -1;
    if (action_is(a->kind, ACTION_BUTTON) || action_is(a->kind, ACTION_TYPES))
        look_up_names(g);
    /* A click precedes text typed at a position: gate_execute checks again after the click. */
    s->press = s->n_targets && !s->targets[0].placed ? writing_press(s) : PRESS_NOTHING;
    if (s->press)
        gate_look_up_pressed(g, &s->targets[0]);
    look_up_dialogs(g);
    writing_begin(s, g->subject.typed); /* with the current windows, names and held keys */
    gate_look_up_address(g);
    add_receivers(g, a);
    look_for_shells(g, action_is(a->kind, ACTION_CHARACTERS));
    read_selections(g);
    remember_before(g, a);
    return 0;
}

struct policy_ruling gate_apply_rules(const struct gate *g, const struct action *a)
{
    if (g->o.observe_only && !action_is(a->kind, ACTION_LOOKS))
        return (struct policy_ruling){POLICY_DENY, "observe-only", "--observe-only", 0};
    struct policy_ruling r = policy_judge(g->o.policy, &g->subject.s);
    if (*g->check && r.verdict == POLICY_ALLOW && action_is(a->kind, ACTION_TOUCHES))
        r = (struct policy_ruling){POLICY_CONFIRM, g->check, "the model's server", 0};
    return r;
}

bool gate_allows_window(struct gate *g, const struct action *a, const struct screen_window *w,
                        struct policy_ruling *out)
{
    struct policy_target *t = &g->subject.s.targets[0], was = *t;
    enum policy_press press = g->subject.s.press;
    struct policy_address address = g->subject.s.address;
    int n = g->subject.s.n_targets;
    t->window = *w;
    t->name[0] = t->other[0] = 0;
    t->shell = screen_has_shell(w);
    t->writes = g->subject.s.writing.any;
    if ((g->subject.s.press = writing_press(&g->subject.s)))
        gate_look_up_pressed(g, t);
    g->subject.s.n_targets = 1;
    gate_look_up_address(g);
    *out = gate_apply_rules(g, a);
    *t = was;
    g->subject.s.press = press;
    g->subject.s.n_targets = n;
    g->subject.s.address = address;
    return gate_lets_through(g, out);
}

/* ---- thoughts ------------------------------------------------------------------------------------- */

static bool mentions_action(const char *text, size_t n)
{
    static const char *const words[] = {
        "click",  "press", "tap",  "hit ", "select",
        "choose", "drag",  "push", "open", "\xe7\x82\xb9\xe5\x87\xbb", /* dianji: click */
        "klick",  "cliqu", "clic", "нажм", "クリック",
        "클릭"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t k = 0, len = strlen(words[i]); k + len <= n; k++)
            if (!strncasecmp(text + k, words[i], len))
                return true;
    return false;
}

static size_t sentence_length(const char *s)
{
    for (size_t n = 0; s[n]; n++) {
        bool end = (strchr(".!?;", s[n]) && (s[n + 1] == ' ' || s[n + 1] == '\n')) || s[n] == '\n';
        if (end)
            return n + 1;
        if (!strncmp(s + n, "\xe3\x80\x82", 3)) /* ideographic full stop */
            return n + 3;
    }
    return strlen(s);
}

/* Sets the task and the words that later plans are compared with. */
void gate_set_task(struct gate *g, const char *task)
{
    goals_free(g->goals);
    g->o.task = task;
    g->goals = task ? goals_new(task) : NULL;
}

void gate_set_thought(struct gate *g, const char *thought)
{
    size_t used = 0;
    g->thought[0] = 0;
    for (const char *s = thought ? thought : ""; *s;) {
        size_t n = sentence_length(s);
        bool last = !s[n + strspn(s + n, " \n")];
        if ((last || mentions_action(s, n)) && used + 1 < sizeof g->thought) {
            size_t take = n < sizeof g->thought - 1 - used ? n : sizeof g->thought - 1 - used;
            memcpy(g->thought + used, s, take);
            used += take;
        }
        s += n;
    }
    g->thought[used] = 0;
    g->thought[utf8_valid_prefix(g->thought, used)] = 0;
}
