/* policy_match.c - finds the first rule that matches an action (policy.h).
 *
 * The keys of a rule are checked one by one, cheap ones first. In doubt, a rule that denies or asks matches,
 * and a rule that allows does not. */
#include "gate/policy_impl.h"

#include "base/utf8.h"
#include "gate/fold.h"

#include <stdlib.h>
#include <string.h>

/* FOLDED: maximum number of texts; SMALL: maximum size in pixels of a window that may be a dialog */
enum { FOLDED = 32, SMALL_W = 640, SMALL_H = 320 };

struct folded { /* folded texts of one action, created on demand */
    const char *text[FOLDED];
    char *as[FOLDED];
    int n;
};

struct rule_match { /* matching of rule r against subject s */
    const struct policy *p;
    const struct rule *r;
    const struct policy_subject *s;
    struct folded *folded;
    bool doubt;         /* result in case of doubt */
    bool only_writing;  /* the rule concerns the action only because it writes */
    bool only_pressing; /* the rule concerns the action only because it presses an element with a key */
};

static const char *fold(struct folded *f, const char *text)
{
    for (int i = 0; i < f->n; i++)
        if (f->text[i] == text)
            return f->as[i];
    if (f->n == FOLDED)
        return text;
    f->text[f->n] = text;
    return f->as[f->n++] = fold_text(text);
}

static void free_folded(struct folded *f)
{
    while (f->n)
        free(f->as[--f->n]);
}

/* Returns whether the text matches, unchanged or folded. For a rule that allows, both forms must match. */
static bool regex_matches(const struct rule_match *q, const struct regex *r, const char *text)
{
    const char *forms[2] = {text, text};
    bool all = !q->doubt;
    for (int i = 0; i < 2; i++) {
        if (i && !*text)
            break;
        forms[1] = i ? fold(q->folded, text) : text;
        int found = regex_find(r, forms[i], strlen(forms[i]));
        bool hit = found < 0 ? q->doubt : found > 0;
        if (hit != all)
            return hit;
    }
    return all;
}

static bool member_matches(const struct rule_match *q, enum rule_regex which, const char *text)
{
    const struct regex *r = q->r->regex[which];
    return !r || regex_matches(q, r, text);
}

/* ---- positions and windows --------------------------------------------------------------------------- */

static bool inside_zone(const struct rule_match *q, int x, int y)
{
    struct screen_rect z = zone_rect(&q->r->zone, q->s->root_w, q->s->root_h);
    return zone_touched(&z, (const int[]){x, y}, (const int[]){x, y});
}

static const char *program_name(const struct screen_window *w)
{
    const char *slash = strrchr(w->program, '/');
    return slash ? slash + 1 : w->program;
}

/* Returns whether the target is a terminal or a launcher: both execute text that is written into them. */
static bool is_terminal(const struct rule_match *q, const struct policy_target *t)
{
    const char *program = program_name(&t->window);
    return t->shell || regex_matches(q, q->p->terminals, t->window.class) ||
           regex_matches(q, q->p->terminals, program) || regex_matches(q, q->p->launchers, t->window.class) ||
           regex_matches(q, q->p->launchers, program);
}

/* Returns whether one target meets all conditions of the rule on targets. */
static bool target_matches(const struct rule_match *q, const struct policy_target *t, bool zoned)
{
    const struct screen_window *w = &t->window;
    if (q->only_writing && !t->writes)
        return false;
    if (zoned && (!t->placed || !inside_zone(q, t->x, t->y)))
        return false;
    if (q->r->terminal >= 0 && is_terminal(q, t) != q->r->terminal)
        return false;
    if (q->r->browser >= 0 && policy_is_browser(q->p, w) != q->r->browser)
        return false;
    return member_matches(q, RULE_TITLE, w->title) && member_matches(q, RULE_CLASS, w->class) &&
           member_matches(q, RULE_PROGRAM, w->program);
}

/* Returns whether a segment of a drag touches the zone. The path between its ends belongs to the window of
 * its start. */
static bool path_matches(const struct rule_match *q, const int *at)
{
    struct screen_rect z = zone_rect(&q->r->zone, q->s->root_w, q->s->root_h);
    return zone_touched(&z, at, at + 2) && target_matches(q, &q->s->targets[0], false);
}

static bool targets_match(const struct rule_match *q)
{
    const struct rule *r = q->r;
    bool asked = r->zoned || r->terminal >= 0 || r->browser >= 0 || r->regex[RULE_TITLE] ||
                 r->regex[RULE_CLASS] || r->regex[RULE_PROGRAM];
    if (!asked)
        return true;
    if (!q->s->n_targets)
        return false;
    bool all = r->verdict == POLICY_ALLOW;
    for (int i = 0; i < q->s->n_targets; i++)
        if (target_matches(q, &q->s->targets[i], r->zoned) != all)
            return !all;
    for (int i = 0; r->zoned && i + 1 < q->s->n_corners;
         i++) /* a zone that allows must contain all points of the path */
        if (all ? !inside_zone(q, q->s->corners[2 * i], q->s->corners[2 * i + 1])
                : path_matches(q, &q->s->corners[2 * i]))
            return !all;
    return all;
}

/* ---- words --------------------------------------------------------------------------------------- */

static bool is_excepted(const struct rule_match *q, const char *text)
{
    const struct regex *r = q->r->regex[RULE_EXCEPT];
    const char *read = r ? fold(q->folded, text) : "";
    return r && q->doubt && regex_find(r, read, strlen(read)) > 0;
}

/* Returns whether a name matches the key "element". Programs also report identifiers as names; these are
 * split into words, but never lead to an allow. */
static bool name_matches(const struct rule_match *q, const char *text)
{
    const struct regex *r = q->r->regex[RULE_ELEMENT];
    bool found = r && regex_matches(q, r, text);
    if (found && is_excepted(q, text))
        return false;
    if (found || !r || !q->doubt)
        return found;
    autofree char *apart = fold_identifier(text);
    found = regex_find(r, apart, strlen(apart)) != 0;
    return found;
}

static bool mentions_button(const char *thought)
{
    static const char *const words[] = {"button", "knopf",    "schaltfl",     "bouton", "bot\xc3\xb3n",
                                        "boton",  "pulsante", "bot\xc3\xa3o", "knap",   "кнопк",
                                        "按钮",   "ボタン",   "버튼"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(thought, words[i]))
            return true;
    return false;
}

/* Returns whether the window is a dialog. Small windows count, because some programs do not mark their
 * messages as dialogs. */
static bool is_dialog(const struct screen_window *w)
{
    return w->dialog || (w->rect.w > 0 && w->rect.w <= SMALL_W && w->rect.h <= SMALL_H);
}

/* Returns whether the text of the dialog around the target, or the title of its window, matches. A dialog
 * whose text was not reported in time also matches. */
static bool dialog_text_matches(const struct rule_match *q, const struct policy_target *t,
                                const struct regex *r)
{
    return r && ((is_dialog(&t->window) && (t->silent || regex_matches(q, r, t->window.title))) ||
                 (*t->dialog && regex_matches(q, r, t->dialog)));
}

static bool dialog_matches(const struct rule_match *q, const struct policy_target *t)
{
    return dialog_text_matches(q, t, q->r->regex[RULE_ELEMENT]) ||
           dialog_text_matches(q, t, q->r->regex[RULE_DIALOG]);
}

/* Returns whether the action presses a button that accepts, or one with an unknown name, in a dialog that
 * matches the rule. */
static bool agrees_to_dialog(const struct rule_match *q)
{
    const struct policy_subject *s = q->s;
    const char *element = s->action->element;
    for (int i = 0; i < s->n_targets; i++) {
        const struct policy_target *t = &s->targets[i];
        const char *name = s->press ? t->presses : t->name;
        bool described = *element && !s->press, nothing = s->press && t->presses_known && !*name;
        bool agrees = *name       ? policy_agrees(q->p, name) || (described && policy_agrees(q->p, element))
                      : described ? policy_agrees(q->p, element)
                                  : !nothing;
        if (agrees && s->press != PRESS_IN_TEXT && dialog_matches(q, t))
            return true;
    }
    return false;
}

/* Matches the element that the keys would press, as reported by the program. If the program does not report
 * it, matches the dialog, or a thought that mentions a button. */
static bool pressed_matches(const struct rule_match *q)
{
    const struct regex *r = q->r->regex[RULE_ELEMENT];
    const struct policy_subject *s = q->s;
    const struct policy_target *t = s->targets;
    if (s->in_menu && (s->press == PRESS_MNEMONIC || !t->presses_known || !*t->presses))
        return true;
    if (!s->n_targets || t->presses_known)
        return s->n_targets && ((*t->presses && name_matches(q, t->presses)) || agrees_to_dialog(q));
    if (s->press == PRESS_IN_TEXT)
        return false;
    return dialog_matches(q, t) || (s->press != PRESS_MNEMONIC && s->thought && r &&
                                    mentions_button(s->thought) && regex_matches(q, r, s->thought));
}

/* Matches the key "element" against the description of the target, its accessible name, and without a
 * description the thought. For rules that confirm or deny any of them suffices; for rules that allow the
 * description and the accessible name must match. */
static bool element_matches(const struct rule_match *q)
{
    const struct regex *r = q->r->regex[RULE_ELEMENT];
    const char *element = q->s->action->element;
    if (!r && !q->r->regex[RULE_DIALOG])
        return true;
    if (q->s->press && q->doubt && pressed_matches(q))
        return true;
    if (q->only_pressing)
        return false;
    if (q->doubt && agrees_to_dialog(q))
        return true;
    if (!r)
        return false;
    bool all = !q->doubt;
    if (name_matches(q, element) != all)
        return !all;
    for (int i = 0; i < q->s->n_targets; i++) {
        const struct policy_target *t = &q->s->targets[i];
        if ((*t->name && name_matches(q, t->name) != all) || (*t->other && name_matches(q, t->other) != all))
            return !all;
    }
    return !all && !*element && q->s->thought ? regex_matches(q, r, q->s->thought) : all;
}

/* Tests the written text, alone and joined to the text written before it, or an address. */
static bool text_matches(const struct rule_match *q,
                         bool (*test)(const struct rule_match *q, const char *text))
{
    const struct policy_writing *w = &q->s->writing;
    if (!w->any)
        return test(q, q->s->action->text ? q->s->action->text : "");
    if (!w->known)
        return q->doubt;
    if (!*w->before || !q->doubt)
        return test(q, w->text);
    autofree char *together = xasprintf("%s%s", w->before, w->text),
                  *turned = xasprintf("%s%s", w->text, w->before);
    struct folded mine = {.n = 0};
    struct rule_match again = *q;
    again.folded = &mine;
    bool found = test(q, w->text) || test(&again, together) || (w->moved && test(&again, turned));
    free_folded(&mine);
    return found;
}

static bool test_regex(const struct rule_match *q, const char *text)
{
    return member_matches(q, RULE_TEXT, text);
}

static bool test_length(const struct rule_match *q, const char *text)
{
    return utf8_count(text, strlen(text)) > (size_t)q->r->longer;
}

/* ---- keys ----------------------------------------------------------------------------------------- */

struct chords { /* comparison of the chords of an action with those of a rule */
    const struct rule *r;
    int seen;
    bool matches;
};

static bool match_chord(void *arg, const struct chord *c)
{
    struct chords *k = arg;
    bool all = k->r->verdict == POLICY_ALLOW, hit = false;
    for (int i = 0; i < k->r->chord_texts.n && !hit; i++)
        hit = chord_within(&k->r->chords[i], c) && (!all || c->n == k->r->chords[i].n);
    k->seen++;
    k->matches = hit;
    return hit == all; /* continue until one decides */
}

static bool chords_match(const struct rule_match *q)
{
    struct chords k = {.r = q->r};
    if (!q->r->chord_texts.n)
        return true;
    chords_of(q->s, match_chord, &k);
    return k.seen && k.matches;
}

static bool host_matches(const char *pattern, const char *host)
{
    size_t n = strlen(pattern), m = strlen(host);
    if (!strcmp(pattern, "*"))
        return true;
    if (!strncmp(pattern, "*.", 2)) /* "*.example.org": the dot counts */
        return m > n - 1 && !strcmp(host + m - (n - 1), pattern + 1);
    return !strcmp(pattern, host);
}

/* Returns whether any line of a written text, or all lines as a browser joins them, would run code as an
 * address. */
static bool test_code(const struct rule_match *q, const char *text)
{
    bool found = action_is_code(text) || action_is_code(fold(q->folded, text));
    for (const char *line = strchr(text, '\n'); line && !found; line = strchr(line + 1, '\n'))
        found = action_is_code(line + 1);
    return found;
}

static bool has_host(const struct rule *r, const char *word)
{
    for (int i = 0; i < r->hosts.n; i++)
        if (!strcmp(r->hosts.at[i], word))
            return true;
    return false;
}

/* Returns whether a text without a clear host could be an address that the rule names. Text in an address bar
 * may also be a search. */
static bool unclear_matches(const struct rule_match *q, const char *text)
{
    bool names_host = false;
    for (int i = 0; i < q->r->hosts.n; i++)
        names_host = names_host || q->r->hosts.at[i][strlen(q->r->hosts.at[i]) - 1] != ':';
    return q->doubt &&
           (action_is(q->s->action->kind, ACTION_ADDRESS) || (names_host && *text && !strchr(text, ' ')));
}

static bool opens_host(const struct rule_match *q, const char *text)
{
    struct action_address address;
    if (has_host(q->r, "internal:") &&
        (action_is_internal(text) || action_is_internal(fold(q->folded, text))))
        return true;
    if (action_address(text, &address, NULL) || !address.clear)
        return unclear_matches(q, text);
    for (int i = 0; i < q->r->hosts.n; i++)
        if (host_matches(q->r->hosts.at[i], address.host))
            return true;
    return false;
}

static bool hosts_match(const struct rule_match *q)
{
    const struct policy_address *bar = &q->s->address;
    bool named = action_is(q->s->action->kind, ACTION_ADDRESS), code = has_host(q->r, "code:");
    if (!q->r->hosts.n)
        return true;
    if (bar->goes && !bar->known && has_host(q->r, "unknown:"))
        return true;
    if (code && (named || q->s->writing.any) && text_matches(q, test_code))
        return true;
    if (bar->goes && bar->known)
        return (code && test_code(q, bar->text)) || opens_host(q, bar->text);
    return named && opens_host(q, q->s->action->text ? q->s->action->text : "");
}

static bool named(const struct rule *r, const char *secret)
{
    for (int i = 0; i < r->secrets.n; i++)
        if (!strcmp(r->secrets.at[i], "*") || !strcmp(r->secrets.at[i], secret))
            return true;
    return false;
}

static bool secrets_match(const struct rule_match *q)
{
    bool all = q->r->verdict == POLICY_ALLOW;
    if (!q->r->secrets.n)
        return true;
    for (int i = 0; i < q->s->n_secrets; i++)
        if (named(q->r, q->s->secrets[i]) != all)
            return !all;
    return all && q->s->n_secrets;
}

static bool match_spent(const struct rule_match *q)
{
    for (int i = 0; i < q->r->n_after; i++)
        if (q->s->spent.of[q->r->after[i].of] >= q->r->after[i].n)
            return true;
    return !q->r->n_after;
}

/* Returns the kind, and the one whose rules apply to all actions of its class. */
static uint32_t own_kinds(enum action_kind k)
{
    static const struct {
        enum action_class of;
        enum action_kind kind;
    } ruled[] = {{ACTION_CLICKS, ACT_CLICK},
                 {ACTION_DRAGS, ACT_DRAG},
                 {ACTION_TYPES, ACT_TYPE},
                 {ACTION_ADDRESS, ACT_GOTO}};
    uint32_t own = 1u << k;
    _Static_assert(ACT_COUNT <= 32, "a rule has a bit for each kind");
    for (size_t i = 0; i < sizeof ruled / sizeof *ruled; i++)
        own |= action_is(k, ruled[i].of) ? 1u << ruled[i].kind : 0;
    return own;
}

/* Computes the kinds that an action counts as: its own, writing, the rest of a drag, and for rules about
 * elements a click by key. */
static bool kinds_match(struct rule_match *q)
{
    uint32_t own = own_kinds(q->s->action->kind);
    uint32_t as = own | (q->s->writing.any || q->s->address.goes ? 1u << ACT_TYPE : 0) |
                  (q->s->drags ? 1u << ACT_DRAG : 0);
    q->only_writing = q->r->kinds && !(q->r->kinds & (as & ~(1u << ACT_TYPE))) && !(own & 1u << ACT_TYPE);
    q->only_pressing = q->s->press && q->doubt && (q->r->regex[RULE_ELEMENT] || q->r->regex[RULE_DIALOG]) &&
                       q->r->kinds & 1u << ACT_CLICK && !(q->r->kinds & as);
    if (q->only_pressing)
        q->only_writing = false;
    return !q->r->kinds || q->only_pressing ||
           (q->doubt ? (q->r->kinds & as) != 0 : (as & ~q->r->kinds) == 0);
}

static bool rule_matches(struct rule_match *q)
{
    const struct rule *r = q->r;
    if (!kinds_match(q) || (r->new_goal >= 0 && q->s->new_goal != r->new_goal))
        return false;
    return (r->longer < 0 || text_matches(q, test_length)) && match_spent(q) && hosts_match(q) &&
           secrets_match(q) && chords_match(q) && element_matches(q) &&
           (!r->regex[RULE_TEXT] || text_matches(q, test_regex)) && targets_match(q);
}

bool policy_is_launcher(const struct policy *p, const char *class)
{
    return regex_find(p->launchers, class, strlen(class)) != 0;
}

bool policy_is_browser(const struct policy *p, const struct screen_window *w)
{
    const char *program = program_name(w);
    return regex_find(p->browsers, w->class, strlen(w->class)) != 0 ||
           regex_find(p->browsers, program, strlen(program)) != 0;
}

bool policy_agrees(const struct policy *p, const char *name)
{
    bool agrees = false;
    autofree char *read = fold_text(name);
    for (int i = 0; i < AGREEING; i++)
        agrees = agrees || regex_find(p->agreeing[i], name, strlen(name)) != 0 ||
                 regex_find(p->agreeing[i], read, strlen(read)) != 0;
    return agrees;
}

struct policy_ruling policy_judge(const struct policy *p, const struct policy_subject *s)
{
    struct policy_ruling ruling = {p->otherwise, "otherwise", policy_name(p), p->otherwise_line};
    struct folded folded = {.n = 0};
    for (int i = 0; i < p->n; i++) {
        const struct rule *r = &p->rules[i];
        struct rule_match q = {p, r, s, &folded, r->verdict != POLICY_ALLOW, false, false};
        if (!rule_matches(&q))
            continue;
        ruling = (struct policy_ruling){r->verdict, r->name, r->file, r->line};
        break;
    }
    free_folded(&folded);
    return ruling;
}
