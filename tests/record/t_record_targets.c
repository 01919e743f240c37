/* t_record_targets.c - tests that a recorded element is found again in a changed window, and that no other
 * element takes its place. The windows are snapshots of this test.
 */
#include "check.h"

#include "atspi/roles.h"
#include "record/target_element.h"
#include "record/windows.h"

enum { ROW_H = 30, STATES = 1 << STATE_SENSITIVE | 1 << STATE_ENABLED };

struct form {
    struct element e[40];
    struct snapshot s;
};

static int put(struct form *f, int parent, const char *role, const char *name, int x, int y, int w)
{
    int i = f->s.n++;
    f->e[i] = (struct element){.ref = (uint32_t)i + 1,
                               .role = role,
                               .name = name,
                               .value = "",
                               .label = "",
                               .states = STATES,
                               .rect = {x, y, w, ROW_H},
                               .parent = parent,
                               .depth = parent < 0 ? 0 : f->e[parent].depth + 1,
                               .window = 7};
    f->s.e = f->e;
    return i;
}

/* A window with two fields, a list and three rows with a button each; `titles`: of the rows. */
static struct form *guests(const char *const titles[3], int x, int step)
{
    struct form *f = xcalloc(1, sizeof *f);
    int w = put(f, -1, "frame", "Guests", x, 0, 400), a = 0;
    f->e[w].rect.h = 800;
    put(f, w, "label", "Name:", x, step, 80);
    a = put(f, w, "text", "", x + 100, step, 200);
    f->e[a].label = "Name:";
    put(f, w, "label", "City:", x, 2 * step, 80);
    a = put(f, w, "text", "", x + 100, 2 * step, 200);
    f->e[a].label = "City:";
    put(f, w, "label", "Size", x, 3 * step, 80);
    put(f, w, "combo box", "Small", x + 100, 3 * step, 200);
    for (int i = 0; i < 3; i++) {
        if (!titles[i])
            continue;
        put(f, w, "label", titles[i], x, (4 + i) * step, 80);
        put(f, w, "push button", "Remove", x + 100, (4 + i) * step, 80);
    }
    put(f, w, "check box", "Gift", x, 8 * step, 80);
    put(f, w, "push button", "Cancel", x, 9 * step, 80);
    put(f, w, "push button", "Save", x + 100, 9 * step, 80);
    return f;
}

static int find(const struct form *f, const char *role, const char *name, int nth)
{
    for (int i = 0; i < f->s.n; i++)
        if (!strcmp(f->e[i].role, role) && (!strcmp(f->e[i].name, name) || !strcmp(f->e[i].label, name)) &&
            !nth--)
            return i;
    fail_msg("no %s %s", role, name);
    return -1;
}

static struct recording_target describe(const struct form *f, int at)
{
    struct recording_target t = {.x = f->e[at].rect.x + 10, .y = f->e[at].rect.y + 10};
    target_describe(&f->s, at, &t);
    return t;
}

/* Returns the index of the element that is found, -1: none. */
static int again(const struct form *f, const struct recording_target *t, bool translated)
{
    char why[300] = "";
    struct target_match how;
    const struct element *e = target_element(&f->s, t, translated, &how, why, sizeof why);
    if (!e)
        check_note("%s", why);
    assert_true(e || *why);
    return e ? (int)(e - f->e) : -1;
}

/* Returns whether the element is found, but refused: then its looks do not count either. */
static bool refused(const struct form *f, const struct recording_target *t)
{
    char why[300] = "";
    struct target_match how;
    return !target_element(&f->s, t, false, &how, why, sizeof why) && how.unfit;
}

static const char *const three[3] = {"Ana", "Bo", "Cy"};

static void t_moved(void **state)
{
    struct form *then = guests(three, 0, 40), *now = guests(three, 300, 55);
    for (int i = 1; i < then->s.n; i++) {
        struct recording_target t = describe(then, i);
        if (again(now, &t, false) != i)
            fail_msg("%s '%s' (%d)", then->e[i].role, then->e[i].name, i);
    }
    free(then);
    free(now);
}

/* The row of a button decides among buttons of one name; without its row, none of them is pressed. */
static void t_rows(void **state)
{
    static const char *const sorted[3] = {"Cy", "Ana", "Bo"}, *const without[3] = {"Ana", NULL, "Cy"};
    struct form *then = guests(three, 0, 40), *other = guests(sorted, 0, 40), *less = guests(without, 0, 40);
    struct recording_target t = describe(then, find(then, "push button", "Remove", 1));
    assert_int_equal(t.equals, 3);
    assert_int_equal(again(other, &t, false), find(other, "push button", "Remove", 2));
    assert_int_equal(again(less, &t, false), -1);
    free(then);
    free(other);
    free(less);
}

static void t_replaced(void **state)
{
    struct form *then = guests(three, 0, 40), *now = guests(three, 0, 40);
    int save = find(then, "push button", "Save", 0), cancel = find(then, "push button", "Cancel", 0);
    struct recording_target t = describe(then, save);
    now->e[save].name = "Delete";
    assert_int_equal(again(now, &t, false), -1);
    assert_false(refused(now, &t));
    assert_string_equal(target_contradicted(&now->s, &t, t.x, t.y), "Delete");
    now->e[save].name = "Cancel"; /* swapped */
    now->e[cancel].name = "Save";
    assert_int_equal(again(now, &t, false), cancel);
    now->e[cancel].states = 0;
    assert_true(refused(now, &t));
    now->e[cancel].states = STATES;
    now->e[cancel].trust = PLACE_DOUBTFUL;
    assert_int_equal(again(now, &t, false), -1);
    assert_false(refused(now, &t));
    free(then);
    free(now);
}

/* A box that is already ticked would be unticked. */
static void t_ticked(void **state)
{
    struct form *form = guests(three, 0, 40);
    int box = find(form, "check box", "Gift", 0);
    struct recording_target t = describe(form, box);
    assert_int_equal(t.on, 0);
    assert_int_equal(again(form, &t, false), box);
    form->e[box].states |= 1 << STATE_CHECKED;
    assert_true(refused(form, &t));
    t.on = RECORDING_NO_STATE;
    assert_int_equal(again(form, &t, false), box);
    free(form);
}

/* Fields without names and labels differ only by their rows. */
static void t_keyboard(void **state)
{
    struct form *form = guests(three, 0, 40);
    int name = find(form, "text", "Name:", 0), city = find(form, "text", "City:", 0);
    char why[300] = "";
    form->e[name].label = form->e[city].label = "";
    struct recording_target t = describe(form, name);
    assert_true(target_has_keyboard(&form->s, &t, name, false, why, sizeof why));
    assert_true(target_has_keyboard(&form->s, &t, -1, false, why, sizeof why));
    assert_false(target_has_keyboard(&form->s, &t, city, false, why, sizeof why));
    check_note("%s", why);
    t.n_near = t.equals = 0; /* nothing tells them apart */
    assert_true(target_has_keyboard(&form->s, &t, city, false, why, sizeof why));
    free(form);
}

static void t_chosen(void **state)
{
    struct form *form = guests(three, 0, 40);
    int list = find(form, "combo box", "Small", 0);
    struct recording_target t = describe(form, list);
    assert_string_equal(t.label, "Size");
    form->e[list].name = "Large";
    assert_int_equal(again(form, &t, false), list);
    free(form);
}

static void add_menus(struct form *f, const char *file, const char *save, const char *edit)
{
    int bar = put(f, 0, "menu bar", "", 0, 0, 400);
    int first = put(f, bar, "menu", file, 0, 0, 50);
    put(f, first, "menu item", save, 0, 40, 50);
    put(f, first, "menu item", "Quit", 0, 80, 50);
    put(f, put(f, bar, "menu", edit, 60, 0, 50), "menu item", "Save", 60, 0, 50);
    for (int i = first + 1; i < f->s.n; i++) /* popups are not clipped */
        f->e[i].trust = PLACE_SURE;
    f->e[first].rect.h = f->e[bar].rect.h = 200;
}

static void t_menus(void **state)
{
    struct form *then = guests(three, 0, 40), *now = guests(three, 0, 40), *german = guests(three, 0, 40);
    add_menus(then, "File", "Save", "Macro");
    add_menus(now, "File", "Save", "Macro");
    add_menus(german, "Datei", "Speichern", "Makro");
    int save = find(then, "menu item", "Save", 0);
    struct recording_target t = describe(then, save);
    assert_string_equal(t.menu, "File");
    assert_int_equal(again(now, &t, false), save);
    now->e[save].name = "Save As..."; /* the other "Save" is in another menu */
    assert_int_equal(again(now, &t, false), -1);
    german->e[find(german, "menu item", "Save", 0)].name = "Sichern";
    assert_int_equal(again(german, &t, false), -1);
    assert_int_equal(again(german, &t, true), save);
    free(then);
    free(now);
    free(german);
}

static void set(struct windows *w, const char *first, const char *second)
{
    const char *titles[] = {first, second};
    w->n = 0;
    for (int i = 0; i < 2; i++)
        if (titles[i]) {
            snprintf(w->w[w->n].class, RECORDING_TEXT, "Editor");
            snprintf(w->w[w->n++].title, RECORDING_TEXT, "%s", titles[i]);
        }
}

/* The end of a recording: a window closed, opened or got another title. */
static void t_end(void **state)
{
    static struct windows before, after;
    struct recording_step saved = {.for_end = true}, closed = {.for_end = true}, nothing = {.for_end = true};
    char why[300];
    set(&before, "Save As", "Untitled 1");
    set(&after, "a.txt", NULL);
    assert_true(windows_changed(&before, &after, &saved));
    assert_string_equal(saved.title, "a.txt");
    assert_true(windows_agree(&before, &after, &saved, false, why, sizeof why));
    assert_false(windows_agree(&before, &before, &saved, false, why, sizeof why));
    check_note("%s", why);
    assert_false(windows_agree(&after, &after, &saved, false, why, sizeof why)); /* it was open before */
    check_note("%s", why);
    set(&before, "Sichern", "Unbenannt 1");
    assert_false(windows_agree(&before, &before, &saved, true, why, sizeof why));
    assert_true(windows_agree(&before, &after, &saved, true, why, sizeof why));

    set(&before, "Form", NULL);
    set(&after, NULL, NULL);
    assert_true(windows_changed(&before, &after, &closed));
    assert_string_equal(closed.closed_title, "Form");
    assert_true(windows_agree(&before, &after, &closed, false, why, sizeof why));
    assert_false(windows_agree(&before, &before, &closed, false, why, sizeof why));
    check_note("%s", why);
    assert_false(windows_changed(&before, &before, &nothing));
}

static const struct CMUnitTest tests[] = {
    CLAIM("each element of a window is found again after all have moved", t_moved),
    CLAIM("of buttons with one name the one in the recorded row is found, or none", t_rows),
    CLAIM("a renamed, disabled or doubtful element is not found, and a swapped one at its new place",
          t_replaced),
    CLAIM("a box that is in another state than recorded is not pressed", t_ticked),
    CLAIM("a text is not typed if the keyboard is in another field than recorded", t_keyboard),
    CLAIM("a list is found by its label, whatever it shows", t_chosen),
    CLAIM("a menu item is found in its menu only, and in another language by its path", t_menus),
    CLAIM("the end of a recording holds if the same window opened, closed or changed its title", t_end),
};

CHECK_MAIN()
