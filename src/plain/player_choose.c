/* player_choose.c - the next action of a step that chooses an option. */
#include "plain/player_impl.h"

#include "atspi/roles.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POPUP_GAP = 40 }; /* px */

/* Returns the choice that a list shows, as far as the program reports it: toolkits that name a list by its
 * choice report no value. */
const char *player_shown_choice(const struct element *list, const char *name)
{
    return *list->value ? list->value : name && resolve_same(list->name, name) ? "" : list->name;
}

bool player_is_closed_list(const struct element *e)
{
    return !strcmp(e->role, "combo box") || !strcmp(e->role, "push button menu");
}

/* Finds the list that the step has opened: by its name, else by its number, else where it was. */
static const struct element *opened_list(struct player *p, const struct resolve_query *q)
{
    bool several;
    char why[ERR_TEXT];
    const struct element *e = q->name ? player_find(p, q, &several, why, sizeof why) : NULL;
    for (int i = 0; !e && p->now && i < p->now->n; i++)
        if (p->now->e[i].ref == p->s.list)
            e = &p->now->e[i];
    for (int i = 0; !e && p->now && i < p->now->n; i++)
        if (player_is_closed_list(&p->now->e[i]) && screen_rect_contains(p->now->e[i].rect, p->s.x, p->s.y))
            e = &p->now->e[i];
    return e;
}

/* Compares the choice of the list that was opened with the option. */
static enum player_next verify_choice(struct player *p, const struct resolve_query *lists, char *why,
                                      size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    const struct element *list = opened_list(p, lists);
    const char *shows = list ? player_shown_choice(list, s->in) : "";
    const char *name = s->in ? s->in : "the list";
    if (list && (!*shows || resolve_same(shows, s->what)))
        return NEXT_STEP;
    if (list)
        snprintf(why, size, "'%.80s' shows '%.80s' after the choice", name, shows);
    else
        snprintf(why, size, "'%.80s' is gone after the choice", name);
    return player_wait_or_fail(p, PLAYER_EFFECT_MS);
}

bool player_is_new(const struct player *p, const struct element *e)
{
    for (int i = 0; i < p->n_refs; i++)
        if (p->refs[i] == e->ref)
            return false;
    return p->n_refs > 0;
}

/* Returns whether a list is drawn just below or above the field that opens it. */
static bool is_beside(const struct element *opened, const struct element *field)
{
    struct screen_rect r = opened->rect, f = field->rect;
    int below = r.y - f.y - f.h, above = f.y - r.y - r.h;
    return r.x < f.x + f.w && f.x < r.x + r.w && (abs(below) <= POPUP_GAP || abs(above) <= POPUP_GAP);
}

/* Returns whether an entry that is not below an open list can belong to it: it is in another window, was not
 * there before, or is in no other list than one beside it. */
static bool is_of_popup(const struct player *p, const struct element *e, const struct element *list)
{
    static const char *const others[] = {"list", "list box", "table", "tree", "tree table", NULL};
    if (e->window != list->window || player_is_new(p, e))
        return true;
    for (int i = e->parent; i >= 0; i = p->now->e[i].parent)
        if (text_listed(others, p->now->e[i].role))
            return state_in(list->states, STATE_EXPANDED) && is_beside(&p->now->e[i], list);
    return strcmp(e->role, "radio button") != 0 && strcmp(e->role, "check box") != 0;
}

/* Clicks the option of this name, below an element or, with NULL, anywhere. */
static enum player_next click_option(struct player *p, const char *name, const struct element *below,
                                     struct buf *b, char *why, size_t size)
{
    const char *row = below ? NULL : p->steps.s[p->s.at].row;
    struct resolve_query option = {name, RESOLVE_OPTION, row, below, false};
    enum player_next next;
    bool several;
    const struct element *e = player_find(p, &option, &several, why, size);
    if (!e && !several && below && p->s.opened) {
        option.below = NULL;
        e = player_find(p, &option, &several, why, size);
        if (e && !is_of_popup(p, e, below)) {
            snprintf(why, size, "'%.80s' is not in the list '%.80s' but elsewhere", name,
                     resolve_name(below));
            e = NULL;
        }
    }
    const struct element *box = e && !strcmp(e->role, "table cell") ? resolve_box(p->now, e) : NULL;
    if (box && player_is_on(box))
        return NEXT_STEP;
    if (box && box->rect.x < e->rect.x) /* a row with a button: selecting it does not press that */
        e = box;
    if (player_goes_by_keys(p, e) && !p->s.opened) {
        next = player_focus_by_keys(p, e, b, why, size);
        return next == NEXT_STEP ? player_press_focused(p, b) : next;
    }
    if (e && e->trust == PLACE_DOUBTFUL && resolve_is_row(e) && !player_is_off(e))
        return (p->s.opened ? player_press_by_keys : player_select_by_keys)(p, e, b, why, size);
    if (!(e = player_usable(p, e, &next, why, size)))
        return next;
    player_click(p, e, "left", 1, b);
    return NEXT_ACTION;
}

/* Finds an option whose name is the whole text, as "Made in Italy" is not the option Made in a list Italy. */
const struct element *player_whole_option(struct player *p)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct resolve_query q = {s->whole, RESOLVE_OPTION, NULL, NULL, false};
    const struct element *found[2];
    bool split = s->in && s->whole;
    return split && p->now && resolve(p->now, &q, found, 2) == 1 &&
                   resolve_same(resolve_name(found[0]), s->whole)
               ? found[0]
               : NULL;
}

/* Returns whether another entry of the same list is selected, and this one is not.  Programs that do not
 * report selections select none. */
static bool is_passed_over(const struct snapshot *s, const struct element *e)
{
    bool other = false;
    for (int i = 0; i < s->n; i++)
        other = other || (s->e[i].parent == e->parent && !strcmp(s->e[i].role, e->role) &&
                          state_in(s->e[i].states, STATE_SELECTED));
    return other && !state_in(e->states, STATE_SELECTED);
}

/* Verifies that the option, tab or radio button that was clicked is the chosen one, if it still shows. */
enum player_next player_verify_selected(struct player *p, const struct element *e, char *why, size_t size)
{
    bool radio = e && !strcmp(e->role, "radio button");
    p->s.verified = e && (radio ? player_is_on(e) : state_in(e->states, STATE_SELECTED));
    if (!e || (radio ? player_is_on(e) : !is_passed_over(p->now, e)))
        return NEXT_STEP;
    snprintf(why, size, "%s '%.80s' is not selected after a click", e->role, resolve_name(e));
    return player_wait_or_fail(p, PLAYER_EFFECT_MS);
}

/* Chooses in the list that the step has opened. */
static enum player_next choose_in_opened(struct player *p, const struct resolve_query *lists, struct buf *b,
                                         char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    const struct element *list = opened_list(p, lists);
    if (!p->s.typing && player_chooses_by_keys(p, list, s->in))
        return player_choose_by_keys(p, list, b, why, size);
    struct resolve_query option = {s->what, RESOLVE_OPTION, NULL, NULL, false};
    bool writes = list && state_in(list->states, STATE_EDITABLE) && !p->s.keys && !p->ref;
    const struct element *found[1];
    if (writes && !resolve(p->now, &option, found, 1) &&
        player_wait_or_fail(p, PLAYER_EFFECT_MS) == NEXT_FAILED) {
        p->s.typing = true;
        p->s.keys++; /* a field that suggests what fits its text, and may open only then */
        player_write(p, list, s->what, b);
        return NEXT_ACTION;
    }
    return click_option(p, s->what, list, b, why, size);
}

int player_choice(const struct player *p, const struct plain_step *s, struct plain_step *out)
{
    struct plain_step one;
    int n = 0;
    *out = (struct plain_step){0};
    for (int k = 0; p->now && !p->ref && plain_choice(s, k, &one); k++) {
        struct resolve_query q = {one.in, RESOLVE_LIST, s->row, NULL, false};
        const struct element *found[1];
        if (one.in && resolve(p->now, &q, found, 1) && !n++)
            *out = one;
        else
            plain_step_free(&one);
    }
    return n;
}

/* Replaces the option and list of the step by those of the only reading whose list is on the screen. */
static enum player_next take_reading(struct player *p, char *why, size_t size)
{
    struct plain_step *s = &p->steps.s[p->s.at], found;
    int n = player_choice(p, s, &found);
    if (n == 1) {
        free(s->what);
        free(s->in);
        s->what = found.what;
        s->in = found.in;
        found.what = found.in = NULL;
    }
    plain_step_free(&found);
    if (n < 2)
        return NEXT_STEP;
    snprintf(why, size, "'%.80s' names several lists of this window; quote the names", s->whole);
    return NEXT_FAILED;
}

/* Returns whether a closed list has an option of this name, as far as the program describes its entries. */
static bool has_option(const struct snapshot *s, const struct element *list, const char *option)
{
    for (const struct element *e = list + 1; e < s->e + s->n && e->depth > list->depth; e++)
        if (resolve_suits(e, RESOLVE_OPTION) && resolve_same(resolve_name(e), option))
            return true;
    return false;
}

const struct element *player_list_with(struct player *p, const char *option)
{
    const char *row = p->steps.s[p->s.at].row;
    struct resolve_query q = {option, RESOLVE_OPTION, row, NULL, false};
    const struct element *found[1], *only = NULL;
    if (!p->now || resolve(p->now, &q, found, 1))
        return NULL;
    for (int i = 0; i < p->now->n; i++) {
        const struct element *e = &p->now->e[i];
        if (!player_is_closed_list(e) || !resolve_in_active_window(p->now, e) ||
            !resolve_visible(p->now, e) || !has_option(p->now, e, option) ||
            (row && !resolve_in_row(p->now, e, row)))
            continue;
        if (only)
            return NULL;
        only = e;
    }
    return only;
}

/* Returns the smallest group of a page around the text of this name that has the option, NULL: none, or
 * several have it: pages draw such a text as the title of a group of buttons. */
static const struct element *titled_group(const struct player *p, const char *title, const char *option)
{
    const struct snapshot *s = p->now;
    const struct element *text[2], *found[1];
    struct resolve_query named = {title, RESOLVE_ANY, NULL, NULL, false},
                         q = {option, RESOLVE_OPTION, NULL, NULL, false};
    if (!s || resolve(s, &named, text, 2) != 1 || !resolve_page(s, text[0]))
        return NULL;
    for (q.below = text[0]; strcmp(q.below->role, "document web") != 0; q.below = &s->e[q.below->parent])
        if (resolve(s, &q, found, 1))
            return q.below;
    return NULL;
}

/* Opens a closed list, with a click or, without a reliable place, with the space key. */
static enum player_next open_list(struct player *p, const struct element *list, struct buf *b, char *why,
                                  size_t size)
{
    enum player_next next = NEXT_ACTION;
    if (player_goes_by_keys(p, list) && player_text_of(p->now, list) == list) {
        if ((next = player_focus_by_keys(p, list, b, why, size)) == NEXT_STEP)
            next = player_press_focused(p, b);
        if (p->s.keyed || next != NEXT_ACTION)
            return next;
    } else if (!player_usable(p, list, &next, why, size)) {
        return next;
    } else {
        player_click(p, list, "left", 1, b);
    }
    p->s.opened = true;
    p->s.list = list->ref;
    p->s.x = list->rect.x + list->rect.w / 2;
    p->s.y = list->rect.y + list->rect.h / 2;
    return NEXT_ACTION;
}

/* Opens a closed list, clicks the option, and verifies the choice.  An option of an open list is clicked at
 * once. */
enum player_next player_choose(struct player *p, struct buf *b, char *why, size_t size)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct resolve_query lists = {s->in, RESOLVE_LIST, s->row, NULL, false};
    const struct element *list = NULL;
    bool several = false;
    const struct element *whole = p->s.opened ? NULL : player_whole_option(p);
    if (p->s.phase > p->s.keys && !p->s.opened) {
        list = s->in ? player_find(p, &lists, &several, why, size) : NULL;
        list = s->in && !list ? titled_group(p, s->in, s->what) : list;
        struct resolve_query option = {s->what, RESOLVE_OPTION, list ? NULL : s->row, list, false};
        if (!whole && !(whole = player_find(p, &option, &several, why, size)) && list)
            whole = player_find_away(p);
        return player_verify_selected(p, whole, why, size);
    }
    if (p->s.phase - p->s.keys > 1)
        return verify_choice(p, &lists, why, size);
    if (p->s.phase > p->s.keys)
        return choose_in_opened(p, &lists, b, why, size);
    p->s.opened = false;
    if (whole)
        return click_option(p, s->whole, NULL, b, why, size);
    if (take_reading(p, why, size) == NEXT_FAILED)
        return NEXT_FAILED;
    lists.name = s->in;
    if (s->in && !(list = player_find(p, &lists, &several, why, size)) && !several)
        list = titled_group(p, s->in, s->what);
    if (s->in && !list)
        return player_missing(p, why, size);
    if (!s->in)
        list = player_list_with(p, s->what);
    if (!list || !player_is_closed_list(list))
        return click_option(p, s->what, list, b, why, size);
    if (resolve_same(player_shown_choice(list, s->in), s->what))
        return NEXT_STEP;
    return open_list(p, list, b, why, size);
}
