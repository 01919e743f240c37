/* target_element.c - describes an element for a recording, and finds it again; see target_element.h. */
#include "record/target_element.h"

#include "atspi/roles.h"
#include "plain/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EQUALS = 64 };

static const char *const menus[] = {"menu", NULL};
static const char *const fields[] = {"combo box", "spin button", "entry", "text", "password text", NULL};
/* elements that a press turns on or off; pressing a radio button again changes nothing */
static const char *const toggles[] = {"check box", "switch", "toggle button", "check menu item", NULL};

/* ---- description ------------------------------------------------------------------------------------ */

static void copy(char out[RECORDING_TEXT], const char *text)
{
    snprintf(out, RECORDING_TEXT, "%s", text);
}

/* Returns the text by which an element is recognized beside others: its name, or its label. */
static const char *known_as(const struct element *e)
{
    return *e->name ? e->name : e->label;
}

/* Writes the roles from the window down to an element, each with its number among siblings of this role. */
static void path_of(const struct snapshot *s, int at, char *out, size_t size)
{
    int chain[RECORDING_DEPTH], n = 0;
    size_t used = 0;
    for (int i = at; i >= 0 && s->e[i].parent >= 0 && n < RECORDING_DEPTH; i = s->e[i].parent)
        chain[n++] = i;
    out[0] = 0;
    while (n-- > 0 && used < size) {
        const struct element *e = &s->e[chain[n]];
        int before = 0;
        for (int k = e->parent + 1; k < chain[n]; k++)
            before += s->e[k].parent == e->parent && !strcmp(s->e[k].role, e->role);
        used += (size_t)snprintf(out + used, size - used, "%s%s %d", used ? "/" : "", e->role, before);
    }
}

/* Writes the names of the menus around an element, the outermost first: "File > Export". */
static void menus_of(const struct snapshot *s, int at, char out[RECORDING_TEXT])
{
    const char *names[8];
    int n = 0;
    size_t used = 0;
    for (int i = s->e[at].parent; i >= 0 && n < 8; i = s->e[i].parent)
        if (text_listed(menus, s->e[i].role) && *s->e[i].name)
            names[n++] = s->e[i].name;
    out[0] = 0;
    while (n-- > 0 && used < RECORDING_TEXT)
        used += (size_t)snprintf(out + used, RECORDING_TEXT - used, "%s%s", used ? " > " : "", names[n]);
}

static bool in_row_of(const struct element *a, const struct element *b)
{
    int middle = a->rect.y + a->rect.h / 2;
    return a->window == b->window && a->rect.h > 0 && middle >= b->rect.y && middle < b->rect.y + b->rect.h;
}

static bool is_sibling(const struct snapshot *s, int i, int at)
{
    int low = i < at ? i : at, high = i < at ? at : i;
    for (int k = low + 1; k < high; k++)
        if (s->e[k].parent == s->e[at].parent)
            return false;
    return s->e[i].parent == s->e[at].parent;
}

/* Lists the neighbours of an element that have a name: the elements in its row, or without any the siblings
 * before and after it. Returns their number. */
static int neighbours(const struct snapshot *s, int at, int list[RECORDING_NEAR])
{
    int n = 0;
    for (int row = 1; row >= 0 && !n; row--)
        for (int i = 0; i < s->n && n < RECORDING_NEAR; i++) {
            const struct element *e = &s->e[i];
            bool named = i != at && i != s->e[at].parent && *known_as(e) && !text_listed(fields, e->role);
            if (named && (row ? in_row_of(e, &s->e[at]) : is_sibling(s, i, at)))
                list[n++] = i;
        }
    return n;
}

static int state_of(const struct element *e)
{
    if (!text_listed(toggles, e->role))
        return RECORDING_NO_STATE;
    return state_in(e->states, STATE_CHECKED) || state_in(e->states, STATE_PRESSED);
}

/* Returns whether toolkits name elements of this role by their choice. */
static bool is_list(const char *role)
{
    return !strcmp(role, role_name(ROLE_COMBO_BOX));
}

/* Returns whether an element has the role and the name, or label, of the target. */
static bool is_equal(const struct snapshot *s, const struct element *e, const struct recording_target *t)
{
    bool list = is_list(t->role);
    if (strcmp(e->role, role_canonical(t->role)) != 0 || !resolve_visible(s, e))
        return false;
    if (*t->label && (list || !*t->name))
        return resolve_same(resolve_label(s, e), t->label) || (!list && resolve_same(e->name, t->label));
    if (*t->name && !list)
        return resolve_same(e->name, t->name);
    return !*e->name || list;
}

/* Lists the elements that are equal to the target. Returns their number. */
static int equals(const struct snapshot *s, const struct recording_target *t, int list[EQUALS])
{
    int n = 0;
    for (int i = 0; i < s->n && n < EQUALS; i++)
        if (is_equal(s, &s->e[i], t))
            list[n++] = i;
    return n;
}

void target_describe(const struct snapshot *s, int at, struct recording_target *t)
{
    const struct element *e = &s->e[at];
    int list[EQUALS] = {0};
    copy(t->name, e->name);
    copy(t->role, e->role);
    copy(t->label, resolve_label(s, e));
    path_of(s, at, t->path, sizeof t->path);
    menus_of(s, at, t->menu);
    t->on = state_of(e);
    t->w = e->rect.w;
    t->h = e->rect.h;
    t->fx = (t->x - e->rect.x + 0.5) / e->rect.w;
    t->fy = (t->y - e->rect.y + 0.5) / e->rect.h;
    t->equals = equals(s, t, list);
    t->equal = 0;
    for (int i = 0; i < t->equals; i++)
        t->equal = list[i] == at ? i : t->equal;
    t->n_near = neighbours(s, at, list);
    for (int i = 0; i < t->n_near; i++)
        copy(t->near[i], known_as(&s->e[list[i]]));
}

/* ---- search ----------------------------------------------------------------------------------------- */

/* Returns the number of recorded neighbours that an element has. */
static int near_score(const struct snapshot *s, int at, const struct recording_target *t)
{
    int list[RECORDING_NEAR], all = neighbours(s, at, list), n = 0;
    for (int i = 0; i < t->n_near; i++)
        for (int k = 0; k < all; k++)
            if (resolve_same(known_as(&s->e[list[k]]), t->near[i])) {
                n++;
                break;
            }
    return n;
}

/* Keeps the elements of the list that are in the recorded menu. Returns their number. */
static int in_menu(const struct snapshot *s, const struct recording_target *t, int *list, int n)
{
    char menu[RECORDING_TEXT];
    int kept = 0, all[EQUALS];
    memcpy(all, list, (size_t)n * sizeof *all);
    for (int i = 0; i < n; i++) {
        menus_of(s, all[i], menu);
        if (!strcmp(menu, t->menu))
            list[kept++] = all[i];
    }
    return kept;
}

/* Returns the element of the list with most of the recorded neighbours; if all have equally many, and any at
 * all, the recorded one of them; -1: none is meant more than another. */
static int choose(const struct snapshot *s, const struct recording_target *t, const int *list, int n,
                  bool translated)
{
    int best = -1, most = 0, ties = 0;
    if (n == 1 && t->equals <= 1)
        return list[0];
    for (int i = 0; i < n; i++) {
        int score = near_score(s, list[i], t);
        ties = score == most ? ties + 1 : score > most ? 1 : ties;
        best = score > most ? list[i] : best;
        most = score > most ? score : most;
    }
    if (most > 0 && ties == 1)
        return best;
    bool known = most > 0 || !t->n_near || translated;
    return known && ties == n && n == t->equals && t->equal < n ? list[t->equal] : -1;
}

/* Finds the element with the recorded path, in a program whose names are translated. */
static int by_path(const struct snapshot *s, const struct recording_target *t)
{
    char path[RECORDING_PATH];
    int found = -1;
    for (int i = 0; i < s->n && *t->path; i++) {
        if (strcmp(s->e[i].role, role_canonical(t->role)) != 0 || !resolve_visible(s, &s->e[i]))
            continue;
        path_of(s, i, path, sizeof path);
        if (strcmp(path, t->path) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

static void describe_missing(const struct recording_target *t, int n, char *why, size_t size)
{
    const char *name = *t->name ? t->name : t->label;
    if (n)
        snprintf(why, size, "%s \"%.80s\" is on the screen %d times, and none has the recorded neighbours",
                 t->role, name, n);
    else
        snprintf(why, size, "%s \"%.80s\" is not on the screen", t->role, name);
}

const struct element *target_element(const struct snapshot *s, const struct recording_target *t,
                                     bool translated, struct target_match *how, char *why, size_t size)
{
    int list[EQUALS], n = equals(s, t, list), at;
    *how = (struct target_match){.mended = false};
    if (n && *t->menu && !translated)
        n = in_menu(s, t, list, n);
    at = n ? choose(s, t, list, n, translated) : -1;
    if (at < 0 && translated && (at = by_path(s, t)) >= 0)
        how->mended = true;
    if (at < 0) {
        describe_missing(t, n, why, size);
        return NULL;
    }
    const struct element *e = &s->e[at];
    int on = state_of(e);
    how->unfit = true;
    if (!state_in(e->states, STATE_SENSITIVE) && !state_in(e->states, STATE_ENABLED))
        snprintf(why, size, "%s \"%.80s\" is disabled", e->role, known_as(e));
    else if (t->on != RECORDING_NO_STATE && on != RECORDING_NO_STATE && on != t->on)
        snprintf(why, size, "%s \"%.80s\" was %s before the recorded action and is %s now", e->role,
                 known_as(e), t->on ? "on" : "off", on ? "on" : "off");
    else
        how->unfit = false;
    if (!how->unfit && e->trust == PLACE_DOUBTFUL)
        snprintf(why, size, "the program does not say reliably where %s \"%.80s\" is", e->role, known_as(e));
    return how->unfit || e->trust == PLACE_DOUBTFUL ? NULL : e;
}

bool target_has_keyboard(const struct snapshot *s, const struct recording_target *t, int focus,
                         bool translated, char *why, size_t size)
{
    struct target_match how;
    char unused[300];
    const struct element *e = focus >= 0 ? &s->e[focus] : NULL;
    if (!e || !*t->role || (translated && !strcmp(e->role, role_canonical(t->role))))
        return true;
    const struct element *found = target_element(s, t, translated, &how, unused, sizeof unused);
    if (found ? found == e : is_equal(s, e, t))
        return true;
    snprintf(why, size, "the keyboard is in %s \"%.80s\", not in %s \"%.80s\"", e->role, known_as(e), t->role,
             *t->name ? t->name : t->label);
    return false;
}

const char *target_contradicted(const struct snapshot *s, const struct recording_target *t, int x, int y)
{
    if (!*t->name || is_list(t->role))
        return NULL;
    for (int i = s->n - 1; i >= 0; i--) {
        const struct element *e = &s->e[i];
        if (!strcmp(e->role, role_canonical(t->role)) && resolve_visible(s, e) && *e->name &&
            screen_rect_contains(e->rect, x, y))
            return resolve_same(e->name, t->name) ? NULL : e->name;
    }
    return NULL;
}
