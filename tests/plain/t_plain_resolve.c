/* t_plain_resolve.c - which element a name means, in snapshots as programs describe them. */
#include "check.h"

#include "atspi/roles.h"
#include "plain/resolve.h"

#include <string.h>

#define ON (1ULL << STATE_SHOWING | 1ULL << STATE_SENSITIVE)
#define AT(x, y)                                                                                             \
    {                                                                                                        \
        x, y, 80, 20                                                                                         \
    }

/* Two windows; the second is not active. */
static struct element elements[] = {
    {.ref = 1,
     .role = "frame",
     .name = "Order",
     .states = ON | 1ULL << STATE_ACTIVE,
     .rect = {0, 0, 400, 400},
     .parent = -1},
    {.ref = 2, .role = "push button", .name = "_Save", .states = ON, .rect = AT(10, 10), .parent = 0},
    {.ref = 3, .role = "push button", .name = "Save As...", .states = ON, .rect = AT(110, 10), .parent = 0},
    {.ref = 4, .role = "label", .name = "Colour:", .states = ON, .rect = AT(10, 50), .parent = 0},
    {.ref = 5, .role = "combo box", .name = "Red", .states = ON, .rect = AT(110, 50), .parent = 0},
    {.ref = 6,
     .role = "entry",
     .name = "",
     .label = "Full name",
     .states = ON,
     .rect = AT(110, 80),
     .parent = 0},
    {.ref = 7,
     .role = "menu item",
     .name = "Find & Replace   Ctrl+H",
     .states = ON,
     .rect = AT(10, 110),
     .parent = 0},
    {.ref = 8, .role = "table", .name = "", .states = ON, .rect = {0, 150, 400, 100}, .parent = 0},
    {.ref = 9, .role = "table cell", .name = "", .states = ON, .rect = {0, 150, 20, 20}, .parent = 7},
    {.ref = 10, .role = "table cell", .name = "Pear", .states = ON, .rect = {20, 150, 300, 20}, .parent = 7},
    {.ref = 11, .role = "table cell", .name = "", .states = ON, .rect = {0, 170, 20, 20}, .parent = 7},
    {.ref = 12, .role = "table cell", .name = "Plum", .states = ON, .rect = {20, 170, 300, 20}, .parent = 7},
    {.ref = 13, .role = "push button", .name = "Open", .states = ON, .rect = {330, 150, 60, 20}, .parent = 7},
    {.ref = 14, .role = "push button", .name = "Open", .states = ON, .rect = {330, 170, 60, 20}, .parent = 7},
    {.ref = 15, .role = "push button", .name = "Hidden", .states = ON, .trust = PLACE_NONE, .parent = 0},
    {.ref = 16, .role = "label", .name = "Save", .states = ON, .rect = AT(10, 300), .parent = 0},
    {.ref = 17, .role = "frame", .name = "Other", .states = ON, .rect = {500, 0, 200, 200}, .parent = -1},
    {.ref = 18, .role = "push button", .name = "Save", .states = ON, .rect = AT(510, 10), .parent = 16},
    {.ref = 19, .role = "push button", .name = "Help", .states = ON, .rect = AT(510, 40), .parent = 16},
    {.ref = 20, .role = "menu", .name = "File", .states = ON, .rect = AT(0, 0), .parent = 0},
    {.ref = 21, .role = "menu item", .name = "Quit      ", .states = ON, .rect = AT(0, 60), .parent = 19},
    {.ref = 22, .role = "page tab", .name = "Fonts", .states = ON, .rect = AT(200, 260), .parent = 0},
    {.ref = 23, .role = "check box", .name = "Hinting", .states = ON, .rect = AT(200, 330), .parent = 21},
    {.ref = 24, .role = "scroll pane", .name = "", .states = ON, .rect = AT(300, 300), .parent = 0},
    {.ref = 25, .role = "push button", .name = "Scrolled", .states = ON, .rect = AT(300, 380), .parent = 23},
    {.ref = 26, .role = "label", .name = "Pear tart", .states = ON, .rect = AT(240, 170), .parent = 7},
    {.ref = 27, .role = "check box", .name = "Meal (+12)", .states = ON, .rect = AT(10, 360), .parent = 0},
    {.ref = 28,
     .role = "push button",
     .name = "\uf07b More ▼",
     .states = ON,
     .rect = AT(110, 360),
     .parent = 0},
};
enum { N = sizeof elements / sizeof *elements };

static void complete(void)
{
    for (int i = 0; i < N; i++) {
        struct element *e = &elements[i];
        e->name = e->name ? e->name : "";
        e->label = e->label ? e->label : "";
        e->value = e->value ? e->value : "";
        e->window = i < 16 || i > 18 ? 1 : 2;
        e->depth = e->parent < 0 ? 0 : elements[e->parent].depth + 1;
    }
}

/* Returns the ref of the only match, 0: none, minus the number of several. */
static int ref_of(const char *name, enum resolve_for use, const char *row)
{
    const struct snapshot s = {.e = elements, .n = N};
    const struct element *found[8];
    int n = resolve(&s, &(struct resolve_query){name, use, row, NULL, false}, found, 8);
    return n == 1 ? (int)found[0]->ref : -n;
}

static void t_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum resolve_for use;
        const char *row;
        int ref;
    } cases[] = {
        {"Save", RESOLVE_PRESS, NULL, 2}, /* not the label, nor the window behind */
        {"save as", RESOLVE_PRESS, NULL, 3},
        {"Save As…", RESOLVE_PRESS, NULL, 3},
        {"Sav", RESOLVE_PRESS, NULL, 0},
        {"Help", RESOLVE_PRESS, NULL, 19},
        {"Colour", RESOLVE_LIST, NULL, 5},
        {"Full Name", RESOLVE_FIELD, NULL, 6},
        {"Find and Replace", RESOLVE_PRESS, NULL, 7},
        {"Find & Replace", RESOLVE_MENU, NULL, 7},
        {"Open", RESOLVE_PRESS, NULL, -2},
        {"Open", RESOLVE_PRESS, "Plum", 14},
        {"Open", RESOLVE_PRESS, "Apple", 0},
        {"Hidden", RESOLVE_PRESS, NULL, 0},
        {"Pear", RESOLVE_OPTION, NULL, 10},
        {"Open", RESOLVE_PRESS, "Pear", 13}, /* not the row of "Pear tart" */
        {"Save", RESOLVE_FIELD, NULL, 0},
        {"", RESOLVE_PRESS, NULL, 0},
        {"Quit", RESOLVE_MENU_ITEM, NULL, 21}, /* in a window of its own, outside the menu's title */
        {"Hinting", RESOLVE_TICK, NULL, 23},   /* below its tab in the tree of GTK 3 */
        {"Scrolled", RESOLVE_PRESS, NULL, 0},
        {"Meal", RESOLVE_TICK, NULL, 27}, /* a note in brackets does not belong to the name */
        {"Find", RESOLVE_PRESS, NULL, 0},
        {"More", RESOLVE_PRESS, NULL, 28}, /* an icon of a font, and a triangle */
    };
    assert_true(resolve_same("New Launcher", "New Launcher Ctrl+Shift+L"));
    assert_false(resolve_same("New", "New Launcher Ctrl+Shift+L"));
    complete();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int ref = ref_of(cases[i].name, cases[i].use, cases[i].row);
        if (ref != cases[i].ref)
            fail_msg("'%s' is e%d, expected e%d", cases[i].name, ref, cases[i].ref);
    }
}

static void t_box(void **state)
{
    (void)state;
    const struct snapshot s = {.e = elements, .n = N};
    complete();
    assert_int_equal(resolve_box(&s, &elements[11])->ref, 11);
    static struct element row[] = {
        {.role = "table row", .name = "Plum", .states = ON, .rect = {0, 0, 90, 20}, .parent = -1},
        {.role = "table cell", .name = "", .states = ON, .rect = {0, 0, 20, 20}, .parent = 0, .depth = 1},
        {.role = "check box", .name = "", .states = ON, .rect = {0, 0, 20, 20}, .parent = 1, .depth = 2},
        {.role = "table cell",
         .name = "Plum",
         .states = ON,
         .rect = {20, 0, 70, 20},
         .parent = 0,
         .depth = 1}};
    for (int i = 0; i < 4; i++)
        row[i].label = row[i].value = "";
    const struct snapshot gtk4 = {.e = row, .n = 4};
    assert_ptr_equal(resolve_box(&gtk4, &row[3]), &row[2]);
    assert_null(resolve_box(&s, &elements[1]));
}

static void t_nearest(void **state)
{
    (void)state;
    const struct snapshot s = {.e = elements, .n = N};
    struct buf b;
    complete();
    buf_init(&b, 1000);
    resolve_nearest(&s, &(struct resolve_query){"Save as PDF", RESOLVE_PRESS, NULL, NULL, false}, &b);
    assert_non_null(strstr(b.data, "Save As..."));
    buf_free(&b);
}

static void t_open_menu(void **state)
{
    (void)state;
    static struct element menu[] = {
        {.role = "frame",
         .name = "Editor",
         .states = ON | 1ULL << STATE_ACTIVE,
         .rect = {0, 0, 400, 400},
         .parent = -1},
        {.role = "menu bar", .name = "", .states = ON, .rect = {0, 0, 400, 20}, .parent = 0},
        {.role = "menu", .name = "File", .states = ON, .rect = {0, 0, 40, 20}, .parent = 1},
        {.role = "menu item", .name = "Save As...", .states = ON, .rect = {0, 60, 120, 20}, .parent = 2},
    };
    for (int i = 0; i < 4; i++)
        menu[i].label = menu[i].value = "";
    struct snapshot s = {.e = menu, .n = 4, .hit = -1};
    const struct element *found[2];
    struct resolve_query q = {"Save As", RESOLVE_MENU_ITEM, NULL, NULL, false};
    assert_int_equal(resolve(&s, &q, found, 2), 1);
    assert_ptr_equal(found[0], &menu[3]);
}

#define CLICK (ON | 1ULL << STATE_CLICKABLE)

/* A page as Firefox and Chromium describe it: texts with click handlers, and a group of several texts. */
static void t_clickable(void **state)
{
    (void)state;
    static struct element page[] = {
        {.role = "frame", .states = ON | 1ULL << STATE_ACTIVE, .rect = {0, 0, 400, 400}, .parent = -1},
        {.role = "document web", .states = ON, .rect = {0, 0, 400, 400}, .parent = 0, .depth = 1},
        {.role = "section", .states = CLICK, .rect = {0, 0, 400, 400}, .parent = 1, .depth = 2},
        {.role = "heading", .name = "Board", .states = ON, .rect = AT(0, 0), .parent = 2, .depth = 3},
        {.role = "static", .value = "Archive", .states = CLICK, .rect = AT(0, 40), .parent = 2, .depth = 3},
        {.role = "section",
         .value = "Fence",
         .states = CLICK,
         .rect = {0, 80, 90, 90},
         .parent = 2,
         .depth = 3},
        {.role = "static", .name = "Fence", .states = ON, .rect = AT(5, 82), .parent = 5, .depth = 4},
        {.role = "static", .name = "Friday", .states = ON, .rect = AT(5, 102), .parent = 5, .depth = 4},
        {.role = "paragraph", .value = "Costs", .states = ON, .rect = AT(0, 200), .parent = 2, .depth = 3},
        {.role = "section",
         .value = "Open all archived files",
         .states = CLICK,
         .rect = AT(0, 240),
         .parent = 2,
         .depth = 3},
    };
    static const struct {
        const char *name;
        int at;
    } cases[] = {{"Archive", 4}, {"Fence", 6}, {"Friday", 7}, {"Costs", -1}, {"Board", -1}, {"Open", -1}};
    for (size_t i = 0; i < sizeof page / sizeof *page; i++) {
        page[i].name = page[i].name ? page[i].name : "";
        page[i].value = page[i].value ? page[i].value : "";
        page[i].label = "";
    }
    struct snapshot s = {.e = page, .n = sizeof page / sizeof *page, .hit = -1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct element *found[2];
        struct resolve_query q = {cases[i].name, RESOLVE_PRESS, NULL, NULL, false};
        int n = resolve(&s, &q, found, 2);
        if (n != (cases[i].at >= 0) || (n && found[0] != &page[cases[i].at]))
            fail_msg("'%s': %d found, %s", cases[i].name, n, n ? found[0]->role : "");
    }
    assert_true(resolve_acts_by_group(&s, &page[7]));
    assert_false(resolve_acts_by_group(&s, &page[4]));
}

#define FIELD(i, y, in)                                                                                      \
    {                                                                                                        \
        .ref = i, .role = "entry", .states = ON, .rect = AT(100, y), .parent = in, .depth = 2                \
    }
#define TEXT(i, r, n, x, y)                                                                                  \
    {                                                                                                        \
        .ref = i, .role = r, .name = n, .states = ON, .rect = AT(x, y), .parent = 1, .depth = 2              \
    }

/* A table of a page whose fields have no names: the heads of the columns are. */
static void t_field_in_row(void **state)
{
    (void)state;
    static struct element table[] = {
        {.role = "frame", .states = ON | 1ULL << STATE_ACTIVE, .rect = {0, 0, 400, 400}, .parent = -1},
        {.role = "table", .states = ON, .rect = {0, 0, 400, 120}, .parent = 0, .depth = 1},
        TEXT(1, "static", "Item", 0, 0),
        TEXT(2, "static", "Amount", 100, 0),
        TEXT(3, "static", "Coffee", 0, 25),
        FIELD(4, 25, 1),
        TEXT(5, "static", "Tea", 0, 50),
        FIELD(6, 50, 1),
        TEXT(7, "static", "Cocoa", 0, 100),
        FIELD(8, 100, 1),
        TEXT(9, "static", "Milk", 0, 200), /* scrolled out of the table */
        FIELD(10, 200, 1),
        {.ref = 11, .role = "combo box", .states = ON, .rect = AT(200, 50), .parent = 1, .depth = 2},
        TEXT(12, "table column header", "Size", 200, 0),
        {.ref = 13,
         .role = "panel",
         .name = "Days",
         .states = ON,
         .rect = AT(0, 300),
         .parent = 0,
         .depth = 1},
        {.ref = 14, .role = "spin button", .states = ON, .rect = AT(0, 300), .parent = 14, .depth = 2},
    };
    static const struct {
        const char *name, *row;
        enum resolve_for use;
        int ref;
    } cases[] = {{"Amount", "Coffee", RESOLVE_FIELD, 4},
                 {"Amount", "Tea", RESOLVE_FIELD, 6},
                 {"Amount", "Cocoa", RESOLVE_FIELD, 8},
                 {"Amount", "Milk", RESOLVE_FIELD, 0},
                 {"Amount", "Rice", RESOLVE_FIELD, 0},
                 {"Size", "Tea", RESOLVE_LIST, 11},
                 {"Size", "Coffee", RESOLVE_LIST, 0},
                 {"Days", NULL, RESOLVE_FIELD, 0}}; /* a group of Qt, not a time of a page */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        table[i].name = table[i].name ? table[i].name : "";
        table[i].label = table[i].value = "";
    }
    struct snapshot s = {.e = table, .n = sizeof table / sizeof *table, .hit = -1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct element *found[2];
        struct resolve_query q = {cases[i].name, cases[i].use, cases[i].row, NULL, false};
        int n = resolve(&s, &q, found, 2), ref = n == 1 ? (int)found[0]->ref : -n;
        if (ref != cases[i].ref)
            fail_msg("'%s' in row '%s' is e%d, expected e%d", cases[i].name, cases[i].row ? cases[i].row : "",
                     ref, cases[i].ref);
    }
}

/* The menu button of gnome-text-editor 43: its items are below it in the tree and outside it on the screen. */
static void t_popover(void **state)
{
    (void)state;
    struct element e[] = {
        {.ref = 1, .role = "frame", .rect = {0, 0, 700, 600}, .parent = -1, .states = 1ULL << STATE_ACTIVE},
        {.ref = 2, .role = "push button", .rect = {680, 10, 30, 30}, .parent = 0},
        {.ref = 3, .role = "menu", .rect = {600, 60, 100, 300}, .trust = PLACE_DOUBTFUL, .parent = 1},
        {.ref = 4, .role = "menu item", .rect = {600, 90, 100, 30}, .trust = PLACE_DOUBTFUL, .parent = 2},
        {.ref = 5, .role = "scroll pane", .rect = {0, 50, 100, 100}, .parent = 0},
        {.ref = 6, .role = "push button", .rect = {0, 300, 90, 30}, .parent = 4},
    };
    static const char *const names[] = {"Editor", "Menu", "", "Save", "", "Scrolled away"};
    for (size_t i = 0; i < sizeof e / sizeof *e; i++) {
        e[i].name = names[i];
        e[i].label = e[i].value = "";
    }
    const struct snapshot s = {.e = e, .n = sizeof e / sizeof *e, .hit = -1};
    const struct element *found[2];
    assert_int_equal(resolve(&s, &(struct resolve_query){"Save", RESOLVE_PRESS, NULL, NULL, false}, found, 2),
                     1);
    assert_int_equal(found[0]->ref, 4);
    assert_int_equal(
        resolve(&s, &(struct resolve_query){"Scrolled away", RESOLVE_PRESS, NULL, NULL, false}, found, 2), 0);
}

/* A page with a list at the edge of its field, which scrolls, a folded group, a drawer beside the page, and a button
 * below the window. */
static void t_beyond(void **state)
{
    (void)state;
    enum { AWAY = 1 << STATE_SENSITIVE };
    static struct element e[] = {
        {.role = "frame", .states = ON | 1ULL << STATE_ACTIVE, .rect = {0, 0, 400, 400}, .parent = -1},
        {.role = "document web", .states = ON, .rect = {0, 100, 400, 300}, .parent = 0, .depth = 1},
        {.role = "section", .states = ON, .rect = {10, 110, 200, 40}, .parent = 1, .depth = 2},
        {.role = "list box",
         .states = ON,
         .rect = {10, 145, 200, 60},
         .trust = PLACE_DOUBTFUL,
         .parent = 2,
         .depth = 3},
        {.role = "list item",
         .name = "Gold",
         .states = ON,
         .rect = {10, 145, 200, 20},
         .parent = 3,
         .depth = 4},
        {.role = "list item",
         .name = "Zinc",
         .states = AWAY,
         .rect = {10, 245, 200, 20},
         .parent = 3,
         .depth = 4},
        {.role = "section", .states = AWAY, .rect = {10, 500, 200, 0}, .parent = 1, .depth = 2},
        {.role = "push button",
         .name = "Folded",
         .states = AWAY,
         .rect = {10, 500, 90, 20},
         .parent = 6,
         .depth = 3},
        {.role = "push button",
         .name = "Drawer",
         .states = AWAY,
         .rect = {-200, 500, 90, 20},
         .parent = 1,
         .depth = 2},
        {.role = "push button",
         .name = "Below",
         .states = AWAY,
         .rect = {10, 600, 90, 20},
         .parent = 1,
         .depth = 2},
        {.role = "push button",
         .name = "Close",
         .states = ON,
         .rect = {10, 300, 90, 20},
         .parent = 1,
         .depth = 2},
        {.role = "push button",
         .name = "Close",
         .states = ON,
         .rect = {380, 0, 20, 20},
         .parent = 0,
         .depth = 1},
    };
    static const struct {
        const char *name;
        int near, far, pane; /* indices; 0: none */
    } cases[] = {{"Gold", 4, 4, 0},   {"Zinc", 0, 5, 3},  {"Folded", 0, 0, 0},
                 {"Drawer", 0, 0, 0}, {"Below", 0, 9, 1}, {"Close", 10, 10, 0}};
    struct snapshot s = {.e = e, .n = sizeof e / sizeof *e, .hit = -1};
    for (int i = 0; i < s.n; i++) {
        e[i].name = e[i].name ? e[i].name : "";
        e[i].label = e[i].value = "";
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int far = 0; far < 2; far++) {
            struct resolve_query q = {cases[i].name, RESOLVE_PRESS, NULL, NULL, far};
            const struct element *found[2] = {e, e};
            int n = resolve(&s, &q, found, 2), expected = far ? cases[i].far : cases[i].near;
            if (n != (expected > 0) || found[0] != &e[expected])
                fail_msg("%s: %d found, the first is %d", q.name, n, (int)(found[0] - e));
            const struct element *pane = far && n ? resolve_scrolled_by(&s, &found[0]) : NULL;
            assert_int_equal(pane ? pane - e : 0, far ? cases[i].pane : 0);
        }
}

static const struct CMUnitTest tests[] = {
    CLAIM("elements that are scrolled away are found only on request, those of a folded group are not",
          t_beyond),
    CLAIM("an item of a button's popover is found, an element scrolled out of its pane is not", t_popover),
    CLAIM("a text of a page is pressed if a click handler is its own or its group's", t_clickable),
    CLAIM("a field without a name is found by its row and the head of its column", t_field_in_row),
    CLAIM("an item of an open menu is found outside the menu bar", t_open_menu),
    CLAIM("a name means the element that people would take, or none", t_names),
    CLAIM("the check box of a table row is its unnamed cell", t_box),
    CLAIM("a missing name is answered with the nearest ones", t_nearest),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
