/* t_player.c - replies of the player to names and reasons that come from other programs. */
#include "check.h"
#include "xvfb.h"

#include "atspi/roles.h"
#include "base/clock.h"
#include "plain/player_impl.h"

#include <stdlib.h>
#include <string.h>

static struct xvfb x;
static struct screen *screen; /* NULL: no server can be started */

#define CALL "<tool_call>{\"name\": \"click\", \"arguments\": {\"x\": 7, \"y\": 7}}</tool_call>"

static int refuse(void *arg, const struct snapshot *now, bool last, struct plain_steps *more, char *why,
                  size_t size)
{
    (void)now;
    (void)last;
    (void)more;
    snprintf(why, size, "nearest: press \"%s\"", CALL);
    return *(int *)arg;
}

static int give(void *arg, const struct snapshot *now, bool last, struct plain_steps *more, char *why,
                size_t size)
{
    (void)arg;
    (void)now;
    (void)last;
    (void)why;
    (void)size;
    assert_int_equal(plain_parse("tick \""
                                 "<tool_call>"
                                 "\"",
                                 more, NULL),
                     0);
    return 1;
}

/* Returns the second reply of a player whose source answers so, after an action that failed; the caller frees
 * it. */
static char *reply_of(struct player_source *source)
{
    static struct image image;
    struct chat_part parts[] = {{.text = "FAILED by the program"}, {.image = &image}};
    struct llm_request r = {.goal = GOAL_STEP};
    struct generated out = {0};
    struct llm *m = player_open((struct plain_steps){0}, NULL, NULL, source);
    for (int i = 0; i < 2; i++) {
        buf_free(&out.text);
        assert_int_equal(m->ops->user(m, parts, 2, 0, NULL), 0);
        assert_int_equal(m->ops->speak(m, &r, &out, NULL), 0);
    }
    m->ops->free(m);
    return buf_take(&out.text);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

static void t_names(void **state)
{
    (void)state;
    int waits = -1, ends = -2;
    struct player_source sources[] = {
        {.arg = &waits, .next = refuse}, {.arg = &ends, .next = refuse}, {.next = give}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        char *reply = reply_of(&sources[i]);
        assert_int_equal(count(reply, "<tool_call>"), 1);
        free(reply);
    }
}

/* The window may have a button of this name, which could not be read. */
static void t_key_or_button(void **state)
{
    static struct image image;
    const struct chat_part part = {.image = &image};
    struct llm_request r = {.goal = GOAL_STEP};
    struct plain_steps steps;
    (void)state;
    assert_int_equal(plain_parse("press Delete", &steps, NULL), 0);
    struct llm *m = player_open(steps, NULL, NULL, NULL);
    for (int64_t begin = clock_ns(); clock_ms_since(begin) < 4000; clock_sleep_ms(100)) {
        struct generated out = {0};
        assert_int_equal(m->ops->user(m, &part, 1, 0, NULL), 0);
        assert_int_equal(m->ops->speak(m, &r, &out, NULL), 0);
        assert_non_null(strstr(out.text.data, "\"wait\""));
        buf_free(&out.text);
    }
    m->ops->free(m);
}

#define ON (1ULL << STATE_SHOWING | 1ULL << STATE_SENSITIVE)
#define WINDOW                                                                                               \
    {                                                                                                        \
        .ref = 1, .role = "frame", .name = "Order", .value = "", .label = "",                                \
        .states = ON | 1ULL << STATE_ACTIVE, .rect = {0, 0, 300, 200}, .parent = -1                          \
    }
#define IN_GTK4(r, n)                                                                                        \
    {                                                                                                        \
        .ref = 2, .role = r, .name = n, .value = "", .label = "", .states = ON, .rect = {0, 0, 90, 30},      \
        .trust = PLACE_DOUBTFUL, .depth = 1                                                                  \
    }

/* Performs the step on the elements and returns what follows; the reply must have this key, "": none. */
static enum player_next next_of(struct player *p, const char *key)
{
    char why[ERR_TEXT] = "";
    struct buf b;
    buf_init(&b, 1 << 16);
    buf_puts(&b, "");
    enum player_next next = player_step(p, &b, why, sizeof why);
    p->s.phase += next == NEXT_ACTION;
    if (!strstr(b.data, key) || (!*key && b.len))
        fail_msg("%s: %s %s", key, b.data, why);
    buf_free(&b);
    return next;
}

/* GTK 4.18 leaves the padding of each group out of the places of its elements. */
static void t_tab(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW, IN_GTK4("entry", "Name"), IN_GTK4("push button", "OK")};
    struct snapshot s = {.e = e, .n = 3, .hit = -1};
    struct player p = {.now = &s};
    e[2].ref = 3;
    assert_int_equal(plain_parse("press OK", &p.steps, NULL), 0);
    e[1].states |= 1ULL << STATE_FOCUSED;
    assert_int_equal(next_of(&p, "\"Tab\""), NEXT_ACTION);
    s.n = 2;
    assert_int_equal(next_of(&p, ""), NEXT_WAIT); /* the button was not read */
    s.n = 3;
    e[1].states = ON;
    e[2].states |= 1ULL << STATE_FOCUSED;
    assert_int_equal(next_of(&p, "\"space\""), NEXT_ACTION);
    assert_int_equal(next_of(&p, ""), NEXT_STEP);
    plain_free(&p.steps);
    p.s = (struct player_state){0};
    assert_int_equal(plain_parse("enter Ana into Name", &p.steps, NULL), 0);
    assert_int_equal(next_of(&p, "\"Tab\""), NEXT_ACTION);
    e[2].states = ON;
    e[1].states |= 1ULL << STATE_FOCUSED;
    assert_int_equal(next_of(&p, "\"ctrl\", \"a\""), NEXT_ACTION);
    assert_int_equal(next_of(&p, "\"Ana\""), NEXT_ACTION);
    e[1].value = "Ana";
    assert_int_equal(next_of(&p, ""), NEXT_STEP);
    plain_free(&p.steps);
}

#define BELOW(i, up, r, n, l, v, more)                                                                       \
    {                                                                                                        \
        .ref = i, .role = r, .name = n, .value = v, .label = l, .states = ON | (more),                       \
        .rect = {0, 0, 90, 30}, .trust = PLACE_DOUBTFUL, .parent = up, .depth = (up) ? 2 : 1                 \
    }
#define FOCUSED  (1ULL << STATE_FOCUSED)
#define SELECTED (1ULL << STATE_SELECTED)

/* The form of zenity 4; its list is open while s.n is 7. */
static void t_closed_list(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW,
                                 BELOW(2, 0, "push button", "OK", "", "", FOCUSED),
                                 BELOW(3, 0, "combo box", "Size", "", "Small", 0),
                                 BELOW(4, 2, "toggle button", "Size", "", "", 0),
                                 BELOW(5, 2, "list item", "", "Small", "", SELECTED),
                                 BELOW(6, 2, "list item", "", "Medium", "", 0),
                                 BELOW(7, 2, "list item", "", "Large", "", 0)};
    struct snapshot s = {.e = e, .n = 4, .hit = -1};
    struct player p = {.now = &s};
    assert_int_equal(plain_parse("choose Large in Size", &p.steps, NULL), 0);
    assert_int_equal(next_of(&p, "\"Tab\""), NEXT_ACTION);
    e[1].states = ON;
    e[3].states |= FOCUSED;
    assert_int_equal(next_of(&p, "\"space\""), NEXT_ACTION);
    s.n = 7;
    for (int i = 4; i < 6; i++) {
        assert_int_equal(next_of(&p, "\"Down\""), NEXT_ACTION);
        assert_int_equal(next_of(&p, ""), NEXT_WAIT); /* the key has no effect yet */
        p.s.since = 0;
        e[i].states = ON;
        e[i + 1].states |= SELECTED;
    }
    assert_int_equal(next_of(&p, "\"Return\""), NEXT_ACTION);
    s.n = 4;
    assert_int_equal(next_of(&p, ""), NEXT_WAIT); /* it still shows "Small" */
    e[2].value = "Large";
    assert_int_equal(next_of(&p, ""), NEXT_STEP);
    plain_free(&p.steps);
    p.s = (struct player_state){0};
    assert_int_equal(plain_parse("enter Small into Size", &p.steps, NULL), 0);
    assert_int_equal(next_of(&p, ""), NEXT_WAIT); /* it takes no text */
    plain_free(&p.steps);
}

#define CELL(i, n, x_, more)                                                                                 \
    {                                                                                                        \
        .ref = i, .role = "table cell", .name = n, .value = "", .label = "", .states = ON | (more),          \
        .rect = {x_, 0, 90, 30}, .trust = PLACE_DOUBTFUL, .parent = 1, .depth = 2                            \
    }

/* The view of Nautilus has the keyboard itself; its cells are selected. */
static void t_cells(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW, BELOW(2, 0, "table", "", "", "", FOCUSED), CELL(3, "a.txt", 0, 0),
                                 CELL(4, "b.txt", 100, 0), CELL(5, "c.txt", 200, 0)};
    struct snapshot s = {.e = e, .n = 5, .hit = -1};
    struct player p = {.now = &s};
    assert_int_equal(plain_parse("double-click b.txt", &p.steps, NULL), 0);
    assert_int_equal(next_of(&p, "\"Down\""), NEXT_ACTION);
    e[2].states |= SELECTED;
    assert_int_equal(next_of(&p, "\"Right\""), NEXT_ACTION);
    e[2].states = ON;
    e[4].states |= SELECTED; /* too far, and b.txt as well: Return would open both */
    e[3].states |= SELECTED;
    assert_int_equal(next_of(&p, "\"Left\""), NEXT_ACTION);
    e[4].states = ON;
    assert_int_equal(next_of(&p, "\"Return\""), NEXT_ACTION);
    plain_free(&p.steps);
}

/* The switcher of GNOME Clocks: a tab with the keyboard is not yet the chosen one. */
static void t_page_tabs(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW, BELOW(2, 0, "text", "", "", "", FOCUSED),
                                 BELOW(3, 0, "page tab", "World", "", "", SELECTED),
                                 BELOW(4, 0, "page tab", "Alarms", "", "", 0)};
    struct snapshot s = {.e = e, .n = 4, .hit = -1};
    struct player p = {.now = &s};
    e[1].parent = e[2].parent = e[3].parent = 0;
    e[1].depth = 1;
    e[3].rect.x = 100;
    assert_int_equal(plain_parse("go to tab Alarms", &p.steps, NULL), 0);
    e[1].states |= 1ULL << STATE_MULTI_LINE | 1ULL << STATE_EDITABLE;
    assert_int_equal(next_of(&p, ""), NEXT_WAIT); /* Tab would be typed, ctrl+Tab could change the tab */
    e[1].states = ON;
    e[2].states |= FOCUSED;
    p.s.since = 0;
    assert_int_equal(next_of(&p, "\"Right\""), NEXT_ACTION);
    e[2].states = ON | SELECTED;
    e[3].states |= FOCUSED;
    assert_int_equal(next_of(&p, "\"space\""), NEXT_ACTION);
    e[2].states = ON;
    e[3].states |= SELECTED;
    assert_int_equal(next_of(&p, ""), NEXT_STEP);
    plain_free(&p.steps);
}

/* Transmission with GTK 4.18: F10 opens the first menu, and the arrow keys the one beside it. */
static void t_menu_bar(void **state)
{
    (void)state;
    static struct element e[] = {
        WINDOW, BELOW(2, 0, "menu bar", "", "", "", 0), BELOW(3, 1, "menu item", "File", "", "", 0),
        BELOW(4, 1, "menu item", "Edit", "", "", 0), BELOW(5, 3, "menu item", "Copy", "", "", 0)};
    struct snapshot s = {.e = e, .n = 4, .hit = -1};
    struct player p = {.now = &s};
    e[3].rect.x = 100;
    e[4].rect.y = 40; /* below the menu, in a window of its own */
    e[4].depth = 3;
    assert_int_equal(plain_parse("open menu Edit > Copy", &p.steps, NULL), 0);
    assert_int_equal(next_of(&p, "\"F10\""), NEXT_ACTION);
    e[2].states |= 1ULL << STATE_EXPANDED;
    assert_int_equal(next_of(&p, "\"Right\""), NEXT_ACTION);
    assert_int_equal(next_of(&p, ""), NEXT_WAIT); /* the menu has not changed yet */
    e[2].states = ON;
    e[3].states |= 1ULL << STATE_EXPANDED;
    e[4].states |= FOCUSED;
    e[4].rect.x = 100;
    s.n = 5;
    assert_int_equal(next_of(&p, "\"space\""), NEXT_ACTION);
    assert_int_equal(next_of(&p, ""), NEXT_STEP);
    plain_free(&p.steps);
}

/* The properties of a document in Inkscape: ctrl+s saves the number that was there before. */
static void t_number(void **state)
{
    (void)state;
    static struct element e[] = {
        WINDOW, BELOW(2, 0, "spin button", "Width", "", "123", FOCUSED | 1ULL << STATE_EDITABLE)};
    struct snapshot s = {.e = e, .n = 2, .hit = -1};
    static const char *const tasks[] = {"set Width to 123, press ctrl+s", "set Width to 123, press Return"};
    for (int i = 0; i < 2; i++) {
        struct player p = {.now = &s, .s = {.phase = 1}};
        assert_int_equal(plain_parse(tasks[i], &p.steps, NULL), 0);
        e[1].value = "123";
        if (!i) {
            assert_int_equal(next_of(&p, "\"Tab\""), NEXT_ACTION);
            e[1].value = "100.000"; /* it was not taken */
            assert_int_equal(next_of(&p, ""), NEXT_WAIT);
            e[1].value = "123.000";
        }
        assert_int_equal(next_of(&p, ""), NEXT_STEP);
        plain_free(&p.steps);
    }
}

/* Tab reaches only the chosen radio button of a group. */
static void t_radio_group(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW, BELOW(2, 0, "list", "", "", "", 0),
                                 BELOW(3, 1, "radio button", "Red", "", "", FOCUSED | 1ULL << STATE_CHECKED),
                                 BELOW(4, 1, "radio button", "Green", "", "", 0),
                                 BELOW(5, 1, "radio button", "Blue", "", "", 0)};
    struct snapshot s = {.e = e, .n = 5, .hit = -1};
    struct player p = {.now = &s};
    assert_int_equal(plain_parse("press Blue", &p.steps, NULL), 0);
    assert_int_equal(next_of(&p, "\"Down\""), NEXT_ACTION);
    e[2].states = ON | 1ULL << STATE_CHECKED;
    e[3].states = ON | FOCUSED;
    assert_int_equal(next_of(&p, "\"Down\""), NEXT_ACTION);
    e[3].states = ON | 1ULL << STATE_CHECKED; /* of another group: arrow keys could change that */
    e[2].states |= FOCUSED;
    assert_int_equal(next_of(&p, "\"Tab\""), NEXT_ACTION);
    e[2].states = ON | 1ULL << STATE_CHECKED;
    e[3].states = ON;
    e[4].states = ON | FOCUSED;
    assert_int_equal(next_of(&p, "\"space\""), NEXT_ACTION);
    plain_free(&p.steps);
}

/* A press on a chosen radio button or tab would change nothing. */
static void t_chosen(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW, IN_GTK4("radio button", "Dark"), IN_GTK4("page tab", "Advanced"),
                                 IN_GTK4("page tab", "General")};
    static const char *const presses[] = {"press Dark", "go to tab Advanced"};
    struct snapshot s = {.e = e, .n = 4, .hit = -1};
    for (size_t i = 0; i < 2; i++) {
        struct player p = {.now = &s};
        assert_int_equal(plain_parse(presses[i], &p.steps, NULL), 0);
        e[1 + i].states |= 1ULL << (i ? STATE_SELECTED : STATE_CHECKED);
        assert_int_equal(next_of(&p, ""), NEXT_STEP);
        e[3].states |= 1ULL << STATE_SELECTED; /* the program does not say which one is shown */
        e[1].states = ON;
        assert_int_equal(next_of(&p, "\"Tab\""), NEXT_ACTION);
        e[3].states = ON;
        plain_free(&p.steps);
    }
}

/* A field whose place becomes reliable between two keys is not yet filled; a key that was not pressed has
 * selected no text. */
static void t_unfilled(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW, IN_GTK4("push button", "OK"), IN_GTK4("password text", "PIN")};
    static struct image image;
    if (!screen)
        skip();
    struct snapshot s = {.e = e, .n = 3, .hit = -1};
    struct plain_steps steps;
    struct generated out = {0};
    const struct chat_part parts[] = {{.text = "FAILED click: nothing was done"}, {.image = &image}};
    struct llm_request r = {.goal = GOAL_STEP};
    assert_int_equal(plain_parse("enter 1234 into PIN", &steps, NULL), 0);
    struct llm *m = player_open(steps, NULL, NULL, NULL);
    struct player *p = (struct player *)m;
    p->now = &s;
    p->screen = screen;
    e[2].ref = 3;
    e[1].states |= 1ULL << STATE_FOCUSED;
    assert_int_equal(next_of(p, "\"Tab\""), NEXT_ACTION);
    e[2].trust = PLACE_SURE;
    assert_int_equal(next_of(p, "1234"), NEXT_ACTION);
    p->s = (struct player_state){.phase = 2, .keys = 2, .keyed = true, .mark = UINT32_MAX};
    p->turns = 1;
    p->screen = NULL;
    assert_int_equal(m->ops->user(m, parts, 2, 0, NULL), 0);
    assert_int_equal(m->ops->speak(m, &r, &out, NULL), 0);
    assert_int_equal(p->s.mark, 0);
    buf_free(&out.text);
    m->ops->free(m);
}

#define PART(i, n, v, x)                                                                                     \
    {                                                                                                        \
        .ref = i, .role = "spin button", .name = n, .value = v, .label = "", .states = ON,                   \
        .rect = {x, 0, 20, 20}, .parent = 2, .depth = 3                                                      \
    }

/* A field of a page as Chromium describes it; its parts follow from index 3 on. */
#define IN_PAGE(name_)                                                                                       \
    WINDOW,                                                                                                  \
        {.ref = 2,                                                                                           \
         .role = "document web",                                                                             \
         .name = "",                                                                                         \
         .value = "",                                                                                        \
         .label = "",                                                                                        \
         .states = ON,                                                                                       \
         .rect = {0, 0, 300, 200},                                                                           \
         .depth = 1},                                                                                        \
    {                                                                                                        \
        .ref = 3, .role = "date editor", .name = name_, .value = "", .label = "", .states = ON,              \
        .rect = {0, 0, 200, 20}, .parent = 1, .depth = 2                                                     \
    }

static struct element date[] = {IN_PAGE("Day"), PART(4, "Month Month", "3", 0), PART(5, "Day Day", "14", 20),
                                PART(6, "Year Year", "2027", 40)};
static struct element month[] = {IN_PAGE("Day"), PART(4, "Month Month", "3", 0),
                                 PART(5, "Year Year", "2027", 20)};
static struct element when[] = {IN_PAGE("Day"),
                                PART(4, "Month Month", "3", 0),
                                PART(5, "Day Day", "14", 20),
                                PART(6, "Year Year", "2027", 40),
                                PART(7, "Hours Hours", "9", 60),
                                PART(8, "Minutes Minutes", "30", 80),
                                PART(9, "AM/PM AM/PM", "1", 100)};
static struct element meet[] = {IN_PAGE("Day"), PART(4, "Hours Hours", "10", 0),
                                PART(5, "Minutes Minutes", "30", 20), PART(6, "Seconds Seconds", "0", 40),
                                PART(7, "AM/PM AM/PM", "2", 60)};

static void t_dates(void **state)
{
    (void)state;
    static const struct {
        struct element *e;
        int n;
        const char *text;
        bool shown;
    } cases[] = {
        {date, 6, "2027-03-14", true},        {date, 6, "3/14/2027", true},
        {date, 6, "Jan 14 2027", false},      {date, 6, "AM 14 2027", false},
        {month, 5, "2027-03", true},          {month, 5, "2027-04", false},
        {when, 9, "2027-03-14T09:30", true},  {when, 9, "2027-03-14 9:30 AM", true},
        {when, 9, "2027-03-14T21:30", false}, {when, 9, "2027-03-14 9:30 PM", false},
        {meet, 7, "22:30:00", true},          {meet, 7, "10:30:00 PM", true},
        {meet, 7, "10:30:00 AM", false},      {meet, 7, "10:30:00", false},
        {meet, 7, "10:30 PM", false},         {meet, 7, "34:30:00", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct snapshot s = {.e = cases[i].e, .n = cases[i].n, .hit = -1};
        if (player_date_is(&s, &cases[i].e[2], cases[i].text) != cases[i].shown)
            fail_msg("'%s' is %s", cases[i].text, cases[i].shown ? "not shown" : "shown");
    }
}

/* Parts that are never full are left by a click on the next one. */
static void t_typed_dates(void **state)
{
    (void)state;
    static const struct {
        struct element *e;
        int n;
        const char *text, *first, *then;
    } cases[] = {{date, 6, "2027-03-14", "\"03142027\"", NULL},
                 {month, 5, "2027-03", "\"03\"", "\"2027\""},
                 {when, 9, "2027-03-14T09:30", "\"03142027\"", "\"0930A\""},
                 {meet, 7, "01:15:09", "\"011509A\"", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases && screen; i++) {
        struct snapshot s = {.e = cases[i].e, .n = cases[i].n, .hit = -1};
        struct player p = {.now = &s, .screen = screen};
        char *task = xasprintf("set Day to \"%s\"", cases[i].text);
        assert_int_equal(plain_parse(task, &p.steps, NULL), 0);
        assert_int_equal(next_of(&p, "\"click\""), NEXT_ACTION);
        assert_int_equal(next_of(&p, cases[i].first), NEXT_ACTION);
        if (cases[i].then) {
            assert_int_equal(next_of(&p, "\"click\""), NEXT_ACTION);
            assert_int_equal(next_of(&p, cases[i].then), NEXT_ACTION);
        }
        assert_int_equal(next_of(&p, ""), i == 3 ? NEXT_WAIT : NEXT_STEP);
        plain_free(&p.steps);
        free(task);
    }
}

static const char *const typing_keys[] = {"\"type\"", "\"Escape\""};

/* Performs the step on the elements until something else than waiting follows, at most ms. */
static enum player_next after_waits(struct player *p, const char *key, double ms)
{
    enum player_next next = NEXT_WAIT;
    for (int64_t begin = clock_ns(); next == NEXT_WAIT && clock_ms_since(begin) < ms; clock_sleep_ms(50)) {
        char why[ERR_TEXT] = "";
        struct buf b;
        buf_init(&b, 1 << 16);
        buf_puts(&b, "");
        next = player_step(p, &b, why, sizeof why);
        p->s.phase += next == NEXT_ACTION;
        p->s.since = next == NEXT_ACTION ? 0 : p->s.since;
        if (next == NEXT_ACTION && !strstr(b.data, key))
            fail_msg("%s: %s", key, b.data);
        buf_free(&b);
    }
    return next;
}

/* Thunar describes no files: the status bar names the one that was selected by typing. */
static void t_files(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW,
                                 {.ref = 2,
                                  .role = "directory pane",
                                  .name = "",
                                  .value = "",
                                  .label = "",
                                  .states = ON | 1ULL << STATE_FOCUSED,
                                  .rect = {0, 0, 300, 180},
                                  .depth = 1},
                                 {.ref = 3,
                                  .role = "status bar",
                                  .name = "3 files",
                                  .value = "",
                                  .label = "",
                                  .states = ON,
                                  .rect = {0, 180, 300, 20},
                                  .depth = 1}};
    static const struct {
        const char *task, *before, *after; /* texts of the status bar; NULL: hidden */
        enum player_next next;
    } cases[] = {
        {"check that a.pdf is gone", NULL, NULL, NEXT_FAILED},
        {"check that a.pdf is gone", "3 files", "3 files", NEXT_STEP},
        {"check that a.pdf is gone", "3 files", "\"a.pdf\" (2 bytes)", NEXT_FAILED},
        {"check that a.pdf is gone", "3 Dateien", "„a.pdf“ (2 Bytes)", NEXT_FAILED},
        {"check that Photos is gone", NULL, NULL, NEXT_FAILED},
        {"check that Photos is gone", "3 files", "3 files", NEXT_STEP},
        {"check that Photos is gone", "3 files", "\"Photos\" (folder)", NEXT_FAILED},
        {"check that a.pdf is shown", "3 fichiers", "«\u00a0a.pdf\u00a0» (2 octets)", NEXT_STEP},
        {"wait for a.pdf", "3 files", "3 files", NEXT_ACTION},
        {"wait for Copy complete", "3 files", "3 files", NEXT_WAIT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct snapshot s = {.e = e, .n = cases[i].before ? 3 : 2, .hit = -1};
        struct player p = {.now = &s, .begun = clock_ns()};
        bool typed = cases[i].before && !strstr(cases[i].task, "Copy");
        assert_int_equal(plain_parse(cases[i].task, &p.steps, NULL), 0);
        e[2].name = cases[i].before ? cases[i].before : "";
        for (int k = 0; typed && k < 2; k++) {
            assert_int_equal(after_waits(&p, typing_keys[k], 5000), NEXT_ACTION);
            e[2].name = cases[i].after;
        }
        enum player_next next = after_waits(&p, "\"type\"", 5000);
        if (next != cases[i].next)
            fail_msg("%s, '%s': %d", cases[i].task, cases[i].after ? cases[i].after : "", (int)next);
        plain_free(&p.steps);
    }
}

/* A condition that held before a press that changed nothing does not say that the press met its element. */
static void t_confirms(void **state)
{
    (void)state;
    static struct element e[] = {WINDOW,
                                 BELOW(2, 0, "label", "b.txt", "", "", 0),
                                 BELOW(3, 0, "check box", "Bold", "", "", 0),
                                 BELOW(4, 0, "entry", "Amount", "", "5", 0),
                                 BELOW(5, 0, "label", "b.txt", "", "", 0),
                                 BELOW(6, 0, "label", "Saved", "", "", 0)};
    static const struct {
        const char *task;
        int before, after; /* elements of the window */
        bool confirms;
    } cases[] = {
        {"press a.txt, press key Delete, wait for b.txt", 4, 4, false},
        {"press a.txt, check that b.txt is shown", 4, 5, true}, /* at a second place */
        {"press a.txt, wait for Saved", 5, 6, true},
        {"press a.txt, wait for Saved", 6, 6, false},
        {"press a.txt, wait until Saved is gone", 6, 5, true},
        {"press a.txt, wait until Saved is gone", 5, 5, false},
        {"press a.txt, check that Bold is not ticked", 4, 4, false},
        {"press a.txt, check that Bold is not ticked", 2, 4, true},
        {"press a.txt, check that Amount equals 5", 4, 4, false},
        {"press a.txt, check that Amount equals 5", 3, 4, true},
        {"press a.txt, check that Order is shown", 4, 4, false}, /* the window */
        {"press a.txt, press OK", 4, 5, false},
    };
    e[4].rect.y = 60;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 3; k++) { /* then: the window could not be read whole; the step came later */
            struct snapshot s = {.e = e, .n = cases[i].before, .hit = -1};
            struct player p = {.now = &s, .s = {.acted = true, .phase = 1}};
            s.end = k == 1 ? SNAPSHOT_CUT : SNAPSHOT_WHOLE;
            assert_int_equal(plain_parse(cases[i].task, &p.steps, NULL), 0);
            int n = p.steps.n;
            p.steps.n -= k == 2;
            player_weigh_conditions(&p);
            p.steps.n = n;
            assert_true(p.s.at == 0 && p.s.acted && p.s.phase == 1);
            p.s.at = n - 1;
            s.n = cases[i].after;
            s.end = SNAPSHOT_WHOLE;
            if (player_confirms(&p) != (cases[i].confirms && !k))
                fail_msg("%s, %d then %d elements, %d", cases[i].task, s.n, cases[i].after, k);
            free(p.weights);
            plain_free(&p.steps);
        }
}

static void t_new(void **state)
{
    (void)state;
    uint32_t refs[] = {4, 7};
    const struct player p = {.refs = refs, .n_refs = 2};
    assert_false(player_is_new(&p, &(struct element){.ref = 7, .role = "option"}));
    assert_true(player_is_new(&p, &(struct element){.ref = 8, .role = "option"}));
}

static const struct CMUnitTest tests[] = {
    CLAIM("a radio button that is on and a selected tab are not pressed", t_chosen),
    CLAIM("a field is not filled before its text was typed", t_unfilled),
    CLAIM("a date or time is shown if all its parts are", t_dates),
    CLAIM("a date is typed in runs that browsers do not end themselves", t_typed_dates),
    CLAIM("a condition on a file needs a status bar, and waits", t_files),
    CLAIM("a condition confirms a press only if it did not hold before, or has further elements", t_confirms),
    CLAIM("an entry is new if it was not on the screen before the step", t_new),
    CLAIM("an element without a reliable place is reached with the Tab key", t_tab),
    CLAIM("an option of a closed list without a reliable place is chosen with keys, and verified",
          t_closed_list),
    CLAIM("a cell without a reliable place is selected alone before it is opened", t_cells),
    CLAIM("a tab without a reliable place is chosen with the arrow keys", t_page_tabs),
    CLAIM("a menu of a menu bar without a reliable place is opened with F10 and the arrow keys", t_menu_bar),
    CLAIM("a number is left with Tab, and read again, before a shortcut", t_number),
    CLAIM("a radio button is reached with the arrow keys if its group is the only one", t_radio_group),
    CLAIM("a button that has the name of a key is waited for while the window is not read", t_key_or_button),
    CLAIM("a name on the screen never becomes a call in a reply", t_names),
};
static void open_screen(void)
{
    struct err e = ERR_INIT;
    if (xvfb_start(&x, "640x480x24", NULL) == 0)
        screen = screen_open(&(struct screen_options){0}, &e);
}

static void close_screen(void)
{
    screen_close(screen);
    xvfb_stop(&x);
}

CHECK_MAIN_WITH(open_screen(), close_screen())
