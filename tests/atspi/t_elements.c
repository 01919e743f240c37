/* t_elements.c - reading trees that lie, are endless or silent, from a program of the test on a private
 * bus. */
#include "check.h"
#include "fake_tree.h"
#include "xvfb.h"

#include "atspi/bus.h"
#include "atspi/elements.h"
#include "atspi/reader_impl.h"
#include "atspi/roles.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"

#include <signal.h>

enum { PATIENCE_MS = 20000, READ_MS = 3000 };
#define BIT(state) (1ULL << (state))
#define SHOWN      (BIT(STATE_SHOWING) | BIT(STATE_VISIBLE) | BIT(STATE_SENSITIVE) | BIT(STATE_ENABLED))
enum { FRAME = 23, LIST = 31, PANEL = 39, BUTTON = 43, TABLE = 55 };

static struct xvfb server;

/* Starts a server with a session bus and an accessibility bus; skips without them. */
static void open_bus(void)
{
    size_t n = 0;
    char *address = NULL;
    struct err e = ERR_INIT;
    if (!program_exists("dbus-daemon") || !file_exists("/usr/libexec/at-spi-bus-launcher") ||
        xvfb_start(&server, "800x600x24", NULL))
        skip();
    setenv("GSETTINGS_BACKEND", "memory", 1); /* as on a desk: at-spi-bus-launcher would write into HOME */
    char *log = xasprintf("%s/bus.log", server.dir);
    xvfb_spawn(&server, "bus.log",
               (const char *const[]){"dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address",
                                     NULL});
    for (int ms = 0; ms < PATIENCE_MS && !n; ms += 20, clock_sleep_ms(20)) {
        free(address);
        address = NULL;
        n = file_read(log, 4096, &address, &n, NULL) || !strchr(address, '\n') ? 0 : n;
    }
    assert_true(n > 0);
    address[strcspn(address, "\n")] = 0;
    setenv("DBUS_SESSION_BUS_ADDRESS", address, 1);
    if (bus_wake(address, PATIENCE_MS, &e))
        fail_msg("%s", e.text);
    free(address);
    free(log);
}

static void close_bus(void)
{
    unsetenv("DBUS_SESSION_BUS_ADDRESS");
    xvfb_stop(&server);
}

static const struct snapshot *read_all(struct elements *x, double ms)
{
    struct err e = ERR_INIT;
    const struct snapshot *s;
    if (elements_snapshot(x, &(struct elements_scope){.all = true}, ms, &s, &e))
        fail_msg("%s", e.text);
    return s;
}

static const struct element *named(const struct snapshot *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->e[i].name, name))
            return &s->e[i];
    return NULL;
}

static void stop(struct fake_tree *t)
{
    char what[4096];
    if (fake_tree_stop(t, what, sizeof what))
        fail_msg("a call that must not be made: %s", what);
}

struct reading {
    struct fake_tree t;
    struct elements *x;
};

/* Starts the buses and a program with this tree, and reads it. */
static const struct snapshot *begin(struct reading *r, const char *toolkit, const struct fake_node *nodes,
                                    int n)
{
    open_bus();
    assert_int_equal(fake_tree_start(&r->t, toolkit, nodes, n), 0);
    r->x = elements_open(NULL);
    return read_all(r->x, READ_MS);
}
#define BEGIN(r, toolkit, nodes) begin(r, toolkit, nodes, sizeof(nodes) / sizeof *(nodes))

static void end(struct reading *r)
{
    elements_close(r->x);
    stop(&r->t);
    close_bus();
}

/* ---- reading ------------------------------------------------------------------------------------ */

static void t_form(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "Form", NULL, SHOWN | BIT(STATE_ACTIVE), 10, 20, 400, 300},
        {2, 1, ROLE_LABEL, "Name", NULL, SHOWN | BIT(STATE_CLICKABLE), 20, 40, 60, 20},
        {3, 1, ROLE_ENTRY, "", "Ana", SHOWN | BIT(STATE_EDITABLE) | BIT(STATE_FOCUSED), 100, 40, 200, 20},
        {4, 1, ROLE_PASSWORD, "Code", "hunter2", SHOWN | BIT(STATE_EDITABLE), 100, 80, 200, 20},
        {5, 1, BUTTON, "OK", NULL, SHOWN | BIT(STATE_IS_DEFAULT), 300, 280, 80, 30},
        {6, 1, BUTTON, "Hidden", NULL, BIT(STATE_VISIBLE), 100, 280, 80, 30},
        {7, 1, BUTTON, "Can\tcel\xe2\x80\xae \xef\xbf\xbc", NULL, SHOWN, 200, 282, 80, 30},
    };
    struct reading r;
    struct buf text;
    const struct snapshot *s = BEGIN(&r, "fake", nodes);
    assert_int_equal(s->end, SNAPSHOT_WHOLE);
    assert_int_equal(s->n, 6);
    assert_null(named(s, "Hidden"));
    assert_string_equal(named(s, "OK")->role, "push button"); /* of any version of at-spi2-core */
    assert_false(state_in(s->e[1].states, STATE_CLICKABLE));  /* the program cannot say so itself */
    assert_non_null(named(s, "Can cel "));
    buf_init(&text, 1 << 16);
    elements_text(s, false, &text);
    uint32_t ref[4] = {s->e[2].ref, s->e[3].ref, s->e[4].ref, s->e[5].ref};
    char *expected = xasprintf("window \"Form\" 400x300 active\n  e%u field \"Name\" = \"Ana\" focused\n"
                               "  e%u password \"Code\"\n  e%u button \"Can cel \"\n  e%u button \"OK\"\n",
                               ref[0], ref[1], ref[2], ref[3]);
    assert_string_equal(text.data, expected);
    free(expected);
    buf_free(&text);
    uint32_t ok = named(s, "OK")->ref;
    assert_int_equal(named(read_all(r.x, READ_MS), "OK")->ref, ok);
    struct element found, list[ELEMENTS_MATCHES];
    struct element_field field;
    char dialog[512];
    assert_true(elements_pressed(r.x, true, "Form", READ_MS, &found));
    assert_string_equal(found.name, "OK");
    assert_true(elements_field(r.x, "Form", READ_MS, &field));
    assert_true(field.editable && !field.in_page && !strcmp(field.text, "Ana"));
    assert_int_equal(elements_find(r.x, "OK", "button", "Form", READ_MS, list),
                     1); /* the newer name of the role */
    assert_int_equal(elements_find(r.x, "OK", "push button", "Form", READ_MS, list), 1);
    assert_int_equal(elements_dialog(r.x, 310, 290, "Form", READ_MS, dialog, sizeof dialog), 1);
    assert_string_equal(dialog, "Name\nForm");
    end(&r);
}

/* An editor of Electron: its search field, and its terminal, which is described as a field, too. */
static void t_terminal_field(void **state)
{
    (void)state;
    static const char *const names[] = {"Search", "Terminal 1, bash", "Terminal input"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fake_node nodes[] = {
            {1, 0, FRAME, "Editor", NULL, SHOWN | BIT(STATE_ACTIVE), 0, 0, 400, 300},
            {2, 1, ROLE_DOCUMENT_WEB, "Editor", NULL, SHOWN, 0, 0, 400, 300},
            {3, 2, ROLE_ENTRY, names[i], "", SHOWN | BIT(STATE_EDITABLE) | BIT(STATE_FOCUSED), 9, 9, 90, 20},
        };
        struct reading r;
        struct element_field field;
        BEGIN(&r, "Chromium", nodes);
        assert_true(elements_field(r.x, "Editor", READ_MS, &field));
        assert_true(field.in_page && field.editable == !i);
        end(&r);
    }
}

static void t_hidden_text(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "Account", NULL, SHOWN | BIT(STATE_ACTIVE), 10, 20, 400, 300},
        {2, 1, ROLE_TEXT, "New password", "hunter2", SHOWN, 100, 40, 200, 20},
        {3, 1, ROLE_LABEL, "PIN:", NULL, SHOWN, 20, 80, 60, 20},
        {4, 1, ROLE_ENTRY, "", "hunter2", SHOWN, 100, 80, 200, 20},
        {5, 4, ROLE_TEXT, "", "hunter2", SHOWN, 100, 80, 200, 20},
        {6, 1, PANEL, "", NULL, SHOWN, 20, 120, 60, 20},
        {7, 6, ROLE_LABEL, "Mot de passe", NULL, SHOWN, 20, 120, 60, 20},
        {8, 1, PANEL, "", NULL, SHOWN, 100, 120, 200, 20},
        {9, 8, ROLE_TEXT, "", "hunter2", SHOWN | BIT(STATE_FOCUSED), 100, 120, 200, 20},
        {10, 1, ROLE_LABEL, "Shipping", NULL, SHOWN, 20, 160, 60, 20},
        {11, 1, ROLE_TEXT, "", "by air", SHOWN, 100, 160, 200, 20},
    };
    struct reading r;
    const struct snapshot *s = BEGIN(&r, "GTK", nodes);
    int hidden = 0;
    assert_int_equal(s->end, SNAPSHOT_WHOLE);
    for (int i = 0; i < s->n; i++) {
        hidden += element_is_password(&s->e[i]);
        assert_string_not_equal(s->e[i].value, "hunter2");
    }
    assert_int_equal(hidden, 4);
    assert_string_equal(s->e[s->n - 1].value, "by air");
    assert_true(elements_password_between(r.x, clock_ns(), clock_ns())); /* it has the focus */
    end(&r);
}

static void t_point(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "W", NULL, SHOWN, 0, 0, 400, 300},
        {2, 1, PANEL, "P", NULL, SHOWN, 0, 0, 400, 100},
        {3, 2, BUTTON, "One", NULL, SHOWN, 10, 10, 80, 30},
        {4, 2, BUTTON, "Two", NULL, SHOWN, 110, 10, 80, 30},
        {5, 1, BUTTON, "Three", NULL, SHOWN, 10, 200, 80, 30},
    };
    struct reading r;
    struct element found, other;
    BEGIN(&r, "fake", nodes);
    elements_ask_at(r.x, 120, 20);
    assert_false(elements_answer_at(r.x, 10, 20, READ_MS, &found, &other)); /* of another place */
    elements_ask_at(r.x, 120, 20);
    assert_true(elements_answer_at(r.x, 121, 20, READ_MS, &found, &other));
    assert_string_equal(found.name, "Two");
    assert_string_equal(other.name, "");
    end(&r);
}

/* ---- trees that lie ---------------------------------------------------------------------------------- */

static void t_huge(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "Sheet", NULL, SHOWN, 0, 0, 400, 400},
        {2, 1, TABLE, "Cells", NULL, SHOWN | BIT(STATE_MANAGES_DESCENDANTS), 0, 0, 400, 360, FAKE_CELLS},
        {3, 1, BUTTON, "After", NULL, SHOWN, 0, 370, 80, 30},
        {4, 1, PANEL, "Crowd", NULL, SHOWN, 100, 370, 80, 30, 201},
    };
    struct reading r;
    const struct snapshot *s = BEGIN(&r, "fake", nodes);
    assert_int_equal(s->end, SNAPSHOT_WHOLE);
    assert_non_null(named(s, "After"));
    assert_non_null(named(s, "Cell 0"));
    assert_non_null(named(s, "Cell 17"));
    assert_int_equal(named(s, "Cells")->children, FAKE_CELLS);
    check_note("%d elements by %d calls in %.1f ms", s->n, s->calls, s->ms);
    end(&r); /* GetChildren was not called on more than 200 */
}

static void t_cycle(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "W", NULL, SHOWN, 0, 0, 400, 300},
        {2, 1, PANEL, "P", NULL, SHOWN, 0, 0, 400, 100, 0, 1},
        {3, 2, PANEL, "Q", NULL, SHOWN, 0, 0, 400, 100, 0, 3},
    };
    static struct fake_node deep[101], wide[4600];
    struct reading r;
    const struct snapshot *s = BEGIN(&r, "fake", nodes);
    assert_int_equal(s->end, SNAPSHOT_WHOLE);
    assert_int_equal(s->n, 3);
    stop(&r.t);
    for (int i = 0; i < 101; i++) /* a chain that is deeper than the limit of 40 */
        deep[i] = (struct fake_node){i + 1, i, i ? PANEL : FRAME, "D", NULL, SHOWN, 0, 0, 400, 300};
    assert_int_equal(fake_tree_start(&r.t, "fake", deep, 101), 0);
    s = read_all(r.x, READ_MS);
    assert_int_equal(s->end, SNAPSHOT_CUT);
    assert_true(s->n > 30 && s->n <= 41);
    stop(&r.t);
    for (int i = 0; i < 4600; i++) /* more elements than the limit of 4,000 */
        wide[i] = (struct fake_node){i + 1, i / 100, i ? PANEL : FRAME, "X", NULL, SHOWN, 0, 0, 400, 300};
    assert_int_equal(fake_tree_start(&r.t, "fake", wide, 4600), 0);
    s = read_all(r.x, 2 * PATIENCE_MS);
    assert_int_equal(s->end, SNAPSHOT_CUT);
    assert_true(s->n <= 4000);
    check_note("%d elements of 4600", s->n);
    end(&r);
}

static void t_long(void **state)
{
    static char name[1 << 20];
    static struct fake_node nodes[] = {
        {1, 0, FRAME, "W", NULL, SHOWN, 0, 0, 400, 300},
        {2, 1, BUTTON, name, NULL, SHOWN, 2000000000, -2000000000, 2000000000, 2000000000},
        {3, 1, ROLE_TEXT, "T", name, SHOWN, 0, 0, 10, 10},
    };
    struct reading r;
    memset(name, 'n', sizeof name - 1);
    const struct snapshot *s = BEGIN(&r, "fake", nodes);
    assert_int_equal(s->end, SNAPSHOT_WHOLE);
    assert_int_equal(s->n, 3);
    for (int i = 0; i < s->n; i++)
        assert_true(strlen(s->e[i].name) < 256 && strlen(s->e[i].value) <= 16000);
    end(&r);
}

/* ---- programs that do not answer --------------------------------------------------------------------- */

static void t_silent(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "W", NULL, SHOWN, 0, 0, 400, 300},
        {2, 1, BUTTON, "One", NULL, SHOWN, 0, 0, 80, 30},
        {3, 1, BUTTON, "Never", NULL, SHOWN, 100, 0, 80, 30, 0, 0, 1},
        {4, 1, BUTTON, "Two", NULL, SHOWN, 200, 0, 80, 30},
    };
    struct reading r;
    const struct snapshot *s = BEGIN(&r, "fake", nodes); /* one overdue call does not make a program silent */
    assert_non_null(named(s, "One"));
    assert_non_null(named(s, "Two"));
    assert_true(s->ms >= 390 && s->ms < READ_MS);
    kill(r.t.pid, SIGSTOP);
    s = read_all(r.x, 250);
    assert_int_equal(s->end, SNAPSHOT_SILENT);
    check_note("stopped: %.0f ms", s->ms);
    s = read_all(r.x, 250); /* it is not asked again for 5 s */
    assert_int_equal(s->end, SNAPSHOT_SILENT);
    assert_true(s->ms < 200);
    check_note("then: %.1f ms, %d calls", s->ms, s->calls);
    assert_int_equal(s->calls, 0);
    end(&r);
}

static void t_no_bus(void **state)
{
    struct err e = ERR_INIT;
    const struct snapshot *s;
    (void)state;
    if (xvfb_start(&server, "640x480x24", NULL))
        skip();
    setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent", 1);
    struct elements *x = elements_open(NULL);
    assert_int_equal(elements_snapshot(x, &(struct elements_scope){.all = true}, READ_MS, &s, &e), -1);
    assert_int_equal(e.kind, ERR_ENV);
    assert_non_null(strstr(e.text, "bus"));
    assert_true(elements_nobody(x));
    elements_close(x);
    setenv("HOLORUN_ELEMENTS", "no", 1);
    assert_null(elements_open(NULL));
    unsetenv("HOLORUN_ELEMENTS");
    close_bus();
}

/* A program that registers later is found by the next question. */
static void t_nobody(void **state)
{
    static const struct fake_node nodes[] = {{1, 0, FRAME, "W", NULL, SHOWN, 0, 0, 400, 300}};
    struct fake_tree t;
    (void)state;
    open_bus();
    struct elements *x = elements_open(NULL);
    assert_int_equal(read_all(x, READ_MS)->n, 0);
    assert_true(elements_nobody(x));
    assert_int_equal(fake_tree_start(&t, "fake", nodes, 1), 0);
    assert_int_equal(read_all(x, READ_MS)->n, 1);
    assert_false(elements_nobody(x));
    elements_close(x);
    stop(&t);
    close_bus();
}

/* ---- places ------------------------------------------------------------------------------------------ */

/* GTK 4.8: SHOWING on the window only; class names; a page that is not inside its parent. */
static void t_visible(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "W", NULL, SHOWN, 0, 0, 400, 300},
        {2, 1, PANEL, "", NULL, BIT(STATE_VISIBLE), 0, 0, 400, 300},
        {3, 2, BUTTON, "Save", NULL, BIT(STATE_VISIBLE), 10, 10, 80, 30},
        {4, 2, ROLE_COMBO_BOX, "GtkDropDown", NULL, BIT(STATE_VISIBLE), 100, 10, 80, 30},
        {5, 2, BUTTON, "Other page", NULL, BIT(STATE_VISIBLE), 500, 10, 80, 30},
        {6, 2, BUTTON, "No size", NULL, BIT(STATE_VISIBLE), 10, 10, 0, 0},
    };
    struct reading r;
    const struct snapshot *s = BEGIN(&r, "GTK", nodes);
    assert_non_null(named(s, "Save"));
    assert_null(named(s, "GtkDropDown"));
    assert_null(named(s, "Other page"));
    assert_null(named(s, "No size"));
    assert_int_equal(s->n, 4);
    end(&r);
}

/* LibreOffice: a pane as large as the window but 27 px too high; only the menu bar is right. */
static void t_bridge(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "W", NULL, SHOWN, 0, 0, 400, 300},
        {2, 1, PANEL, "", NULL, SHOWN, 0, -27, 400, 300},
        {3, 2, ROLE_MENU_BAR, "", NULL, SHOWN, 0, 0, 400, 27},
        {4, 3, ROLE_MENU, "File", NULL, SHOWN, 0, 0, 40, 27},
        {5, 2, BUTTON, "Bold", NULL, SHOWN, 100, 79, 30, 30},
        {6, 2, PANEL, "Swing", NULL, SHOWN, 0, 200, 100, 30},
        {7, 6, BUTTON, "Outside", NULL, SHOWN, 200, 250, 30, 30},
        {8, 2, PANEL, "", NULL, SHOWN, 10, 100, 90, 30},
        {9, 8, PANEL, "", NULL, SHOWN, 10, 127, 90, 31},
        {10, 9, ROLE_TEXT, "Font", NULL, SHOWN, 12, 127, 80, 30},
    };
    struct reading r;
    const struct snapshot *s = BEGIN(&r, "VCL", nodes);
    assert_int_equal(named(s, "File")->rect.y, 0);
    assert_int_equal(named(s, "File")->trust, PLACE_SURE);
    assert_int_equal(named(s, "Bold")->rect.y, 106);
    assert_int_equal(named(s, "Bold")->trust, PLACE_SHIFTED);
    assert_int_equal(named(s, "Font")->rect.y, 127); /* a widget of GTK 3 */
    assert_int_equal(named(s, "Outside")->trust, PLACE_DOUBTFUL);
    end(&r);
}

static void t_repeated_name(void **state)
{
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "W", NULL, SHOWN, 0, 0, 400, 300},
        {2, 1, BUTTON, "7 7", NULL, SHOWN, 10, 10, 30, 30},
        {3, 1, BUTTON, "Save all Save all", NULL, SHOWN, 50, 10, 90, 30},
        {4, 1, BUTTON, "Save Save all", NULL, SHOWN, 150, 10, 90, 30},
        {5, 1, BUTTON, "  ", NULL, SHOWN, 250, 10, 90, 30},
        {6, 1, ROLE_LABEL, "Bora Bora", NULL, SHOWN, 10, 50, 90, 30},
    };
    struct reading r;
    const struct snapshot *s = BEGIN(&r, "GTK", nodes);
    assert_non_null(named(s, "7"));
    assert_non_null(named(s, "Save all"));
    assert_non_null(named(s, "Save Save all"));
    assert_non_null(named(s, "Bora Bora"));
    end(&r);
    s = BEGIN(&r, "gtk", nodes); /* GTK 3 does not join names */
    assert_non_null(named(s, "7 7"));
    end(&r);
}

/* Fills a program's tree: root, a window of told size, and a button 100,50 from its corner. Returns the button
 * after its place was computed from the X window w. */
static const struct node *placed_button(struct node nodes[3], const struct program *p, int told_w, int told_h,
                                        const struct xwindow *w)
{
    static char title[] = "W";
    nodes[0] = (struct node){.parent = -1};
    nodes[1] = (struct node){
        .role = FRAME, .name = title, .told = {0, 0, told_w, told_h}, .placed = true, .depth = 1};
    nodes[2] =
        (struct node){.role = BUTTON, .parent = 1, .told = {100, 50, 40, 30}, .placed = true, .depth = 2};
    place_nodes(nodes, 3, p, w, 1);
    return &nodes[2];
}

/* The windows are those of gnome-calculator 43 under openbox, and with the shadow that it draws under a
 * compositor. */
static void t_relative(void **state)
{
    (void)state;
    static const struct program gtk3 = {.toolkit = "gtk", .version = "3.24.49", .pid = 7},
                                old = {.toolkit = "GTK", .version = "4.14.5", .pid = 7},
                                new = {.toolkit = "GTK", .version = "4.18.6", .pid = 7};
    struct node nodes[3];
    struct xwindow w = {
        .id = 1, .pid = 7, .title = "W", .rect = {320, 114, 360, 513}, .inner = {320, 114, 360, 513}};
    w.frame = w.rect;
    const struct node *b = placed_button(nodes, &old, 350, 503, &w);
    assert_int_equal(b->rect.x, 425);
    assert_int_equal(b->rect.y, 169);
    assert_int_equal(b->trust, PLACE_SHIFTED);

    w.inner = (struct screen_rect){346, 137, 308, 458};
    b = placed_button(nodes, &old, 308, 458, &w);
    assert_int_equal(b->rect.x, 446);
    assert_int_equal(b->rect.y, 187);
    assert_int_equal(b->trust, PLACE_SHIFTED);

    b = placed_button(nodes, &new, 308, 458, &w); /* without the padding of groups */
    assert_int_equal(b->trust, PLACE_DOUBTFUL);
    b = placed_button(nodes, &old, 200, 458, &w); /* no part of the window has this size */
    assert_int_equal(b->trust, PLACE_DOUBTFUL);
    b = placed_button(nodes, &gtk3, 350, 503, &w); /* GTK 3 reports places on the screen */
    assert_int_equal(b->rect.x, 100);
    assert_int_equal(b->trust, PLACE_SURE);
    w.pid = 8;
    b = placed_button(nodes, &old, 350, 503, &w);
    assert_int_equal(b->trust, PLACE_DOUBTFUL);
}

/* A button with its content below it: a list and an item, which GTK 3 reports where they are. */
static void t_popover(void **state)
{
    static char title[] = "W";
    struct screen_rect list = {100, 90, 120, 60}, window = {0, 0, 400, 300};
    struct xwindow w = {.id = 1, .pid = 7, .title = "W", .rect = window, .frame = window, .inner = window};
    (void)state;
    for (int gtk4 = 0; gtk4 < 2; gtk4++) {
        struct node nodes[] = {
            {.parent = -1},
            {.role = FRAME, .name = title, .told = window, .placed = true, .depth = 1},
            {.role = BUTTON, .parent = 1, .told = {100, 50, 40, 30}, .placed = true, .depth = 2},
            {.role = ROLE_PANEL, .parent = 2, .told = list, .placed = true, .depth = 3},
            {.role = ROLE_MENU_ITEM, .parent = 3, .told = {110, 100, 100, 20}, .placed = true, .depth = 4},
        };
        const struct program p = {.toolkit = "gtk", .pid = 7}, p4 = {.toolkit = "GTK", .pid = 7};
        place_nodes(nodes, 5, gtk4 ? &p4 : &p, &w, 1);
        assert_int_equal(nodes[2].trust, PLACE_SURE);
        assert_int_equal(nodes[4].trust, gtk4 ? PLACE_DOUBTFUL : PLACE_SURE);
    }
}

/* The form of zenity 4 with its list open, and a list of FeatherPad with Qt 6.8 that is closed. */
static void t_lists(void **state)
{
    (void)state;
    static const struct fake_node open[] = {
        {1, 0, FRAME, "W", NULL, SHOWN | BIT(STATE_ACTIVE), 0, 0, 400, 300},
        {2, 1, ROLE_COMBO_BOX, "Size", NULL, SHOWN, 57, 111, 182, 34},
        {3, 2, BUTTON, "Size", NULL, SHOWN, 57, 111, 182, 34},
        {4, 3, ROLE_LABEL, "Small", "Small", SHOWN, 57, 111, 42, 24},
        {5, 2, LIST, "", NULL, SHOWN, 61, 143, 182, 114},
        {6, 5, ROLE_LIST_ITEM, "", NULL, SHOWN | BIT(STATE_SELECTED), 67, 143, 170, 34},
        {7, 6, ROLE_LABEL, "Medium", "Medium", SHOWN, 67, 143, 54, 16},
        {8, 5, ROLE_LIST_ITEM, "", NULL, SHOWN, 67, 177, 170, 34},
        {9, 8, ROLE_LABEL, "a.txt", "a.txt", SHOWN, 67, 177, 54, 16},
        {10, 8, ROLE_LABEL, "3 kB", "3 kB", SHOWN, 127, 177, 54, 16},
        {11, 1, ROLE_COMBO_BOX, "Angle Units", NULL, SHOWN, 7, 250, 374, 45}, /* of Adwaita */
        {12, 11, ROLE_LABEL, "Angle Units", "Angle Units", SHOWN, 19, 260, 58, 16},
        {13, 11, ROLE_LABEL, "Degrees", "Degrees", SHOWN, 290, 260, 58, 16},
    };
    static const struct fake_node closed[] = {
        {1, 0, FRAME, "W", NULL, SHOWN | BIT(STATE_ACTIVE), 0, 0, 400, 300},
        {2, 1, ROLE_COMBO_BOX, "North", NULL, SHOWN, 57, 111, 65, 22},
        {3, 2, LIST, "", NULL, BIT(STATE_SENSITIVE), 0, 0, 0, 0},
        {4, 3, ROLE_LIST_ITEM, "South", NULL, SHOWN, 0, 22, 707, 22},
    };
    struct reading r;
    struct err e = ERR_INIT;
    const struct snapshot *s = BEGIN(&r, "GTK", open);
    assert_int_equal(s->n, 13);
    assert_string_equal(named(s, "Angle Units")->value, "Degrees");
    assert_string_equal(s->e[1].value, "Small"); /* until the choice is confirmed */
    assert_string_equal(s->e[5].label, "Medium");
    assert_string_equal(s->e[7].label, "");
    end(&r);
    BEGIN(&r, "Qt", closed);
    if (elements_snapshot(r.x, &(struct elements_scope){.all = true, .closed = true}, READ_MS, &s, &e))
        fail_msg("%s", e.text);
    assert_int_equal(named(s, "South")->trust, PLACE_NONE);
    end(&r);
}

/* Items of a menu of GTK 4.18, and one that has a name. */
static void t_labelled(void **state)
{
    (void)state;
    static const struct fake_node nodes[] = {
        {1, 0, FRAME, "W", NULL, SHOWN | BIT(STATE_ACTIVE), 0, 0, 400, 300},
        {.id = 2,
         .parent = 1,
         .role = ROLE_MENU_ITEM,
         .name = "",
         .states = SHOWN,
         .w = 90,
         .h = 30,
         .labelled_by = 4},
        {.id = 3,
         .parent = 1,
         .role = ROLE_MENU_ITEM,
         .name = "Cut",
         .states = SHOWN,
         .y = 30,
         .w = 90,
         .h = 30,
         .labelled_by = 4},
        {4, 2, ROLE_LABEL, "", "Rename…", BIT(STATE_SENSITIVE), 0, 0, 0, 0},
        {.id = 5,
         .parent = 1,
         .role = ROLE_ENTRY,
         .name = "",
         .states = SHOWN,
         .y = 60,
         .w = 90,
         .h = 30,
         .labelled_by = 4},
    };
    struct reading r;
    const struct snapshot *s = BEGIN(&r, "GTK", nodes);
    assert_int_equal(s->n, 4);
    assert_string_equal(s->e[1].name, "Rename…");
    assert_string_equal(s->e[2].name, "Cut");
    assert_string_equal(s->e[3].name, "");
    end(&r);
    s = BEGIN(&r, "gtk", nodes); /* GTK 3 names them */
    assert_string_equal(s->e[1].name, "");
    end(&r);
}

/* An entry of FeatherPad with Qt 6.8: its middle is beside the list. */
static void t_wide_entry(void **state)
{
    (void)state;
    static char title[] = "W";
    struct screen_rect list = {538, 565, 63, 88}, window = {0, 0, 800, 800};
    struct xwindow w = {.id = 1, .pid = 7, .title = "W", .rect = window, .frame = window, .inner = window};
    struct node nodes[] = {
        {.parent = -1},
        {.role = FRAME, .name = title, .told = window, .placed = true, .depth = 1},
        {.role = LIST, .parent = 1, .told = list, .placed = true, .depth = 2},
        {.role = ROLE_LIST_ITEM, .parent = 2, .told = {538, 587, 130, 22}, .placed = true, .depth = 3},
    };
    place_nodes(nodes, 4, &(const struct program){.toolkit = "Qt", .pid = 7}, &w, 1);
    assert_int_equal(nodes[3].trust, PLACE_SURE);
    assert_int_equal(nodes[3].rect.w, 63);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a list of GTK 4 has its label as value, and an entry the only label in it as its own", t_lists),
    CLAIM("an item of a menu of GTK 4 without a name has the text of its label", t_labelled),
    CLAIM("an entry that is wider than its list is in sight", t_wide_entry),
    CLAIM("the terminal of an editor that draws its window as a page is not a field", t_terminal_field),
    CLAIM("items below a button that shows them are doubtful in GTK 4 only", t_popover),
    CLAIM("the repeated name of a button in GTK 4 is shortened", t_repeated_name),
    CLAIM("places relative to a window are counted from inside its border or shadow, else they are doubtful",
          t_relative),
    CLAIM("a form is read with values but without its password, hidden parts and control characters", t_form),
    CLAIM("fields that are labelled as passwords in GTK 4 are not read, and count as passwords",
          t_hidden_text),
    CLAIM("the innermost element at a point is named", t_point),
    CLAIM("a table with 10^9 children is read by hit tests, and what follows it as well", t_huge),
    CLAIM("cycles end, and depth and number of elements are limited", t_cycle),
    CLAIM("a name of a megabyte is cut, and places that overflow are harmless", t_long),
    CLAIM("an element that never answers delays, a stopped program is not asked again for 5 s", t_silent),
    CLAIM("without a bus the reason is given, and HOLORUN_ELEMENTS=no starts nothing", t_no_bus),
    CLAIM("a bus without programs is recognized, and a program that registers later is found", t_nobody),
    CLAIM("where only windows show, visible parts with a size inside their parents count", t_visible),
    CLAIM("a pane that is off by the menu bar shifts its elements, one outside its parent is doubtful",
          t_bridge),
};

CHECK_MAIN()
