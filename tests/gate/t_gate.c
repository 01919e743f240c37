/* t_gate.c - tests of the check before each action, on a real display: its target, who is asked, and valid
 * answers. Whole runs are in t_gate_run.c.
 */
#include "check.h"
#include "driven.h"

#include "base/clock.h"
#include "base/file.h"
#include "gate/gate.h"

#include <X11/Xatom.h>
#include <X11/Xutil.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 40000 }; /* for loaded machines */

static const struct view_transform same = {0, 0, 1, 1};

/* ---- a gate on a stage ----------------------------------------------------------------------- */

struct guarded { /* xclient is at 20,20, 600x500 */
    struct stage t;
    struct policy *policy;
    struct gate *gate;
    struct gate_ruling r;
    char *json; /* file in which a command stores its question */
};

static void guard(struct guarded *g, const char *rules, const char *how, double seconds)
{
    struct err e = ERR_INIT;
    struct gate_options o = {.confirm = {.seconds = seconds}, .task = "the task"};
    g->policy = policy_parse(rules, strlen(rules), "p.yaml", &e);
    if (!g->policy || confirm_parse(how, &o.confirm, &e))
        fail_msg("%s", e.text);
    o.policy = g->policy;
    g->gate = gate_new(&o);
    gate_begin(g->gate, g->t.s, g->t.x.dir);
}

static void unguard(struct guarded *g)
{
    gate_free(g->gate);
    policy_free(g->policy);
    g->gate = NULL;
}

static int decide(struct guarded *g, const char *json, struct err *e)
{
    struct action a;
    assert_int_equal(action_from_json(json, strlen(json), &a, NULL), 0);
    int rc = gate_decide(g->gate, &a, &same, 7, false, &g->r, e);
    action_free(&a);
    return rc;
}

static Window client_window(struct guarded *g)
{
    struct screen_window w;
    assert_int_equal(screen_window_at(g->t.s, 300, 300, &w), 0);
    assert_string_equal(w.class, "Xclient");
    return w.id;
}

static void set_title(Display *d, Window w, const char *title)
{
    XChangeProperty(d, w, XInternAtom(d, "_NET_WM_NAME", False), XInternAtom(d, "UTF8_STRING", False), 8,
                    PropModeReplace, (const unsigned char *)title, (int)strlen(title));
    XSync(d, False);
}

#define ASK_ALL  "builtin: no\notherwise: confirm\n"
#define CLICK_IN "{\"kind\": \"click\", \"x\": 300, \"y\": 300, \"element\": \"the button\"}"

/* ---- targets --------------------------------------------------------------------------------- */

static void t_windows(void **state)
{
    struct guarded g = {0};
    struct screen_window w;
    stage_open(&g.t);
    Window id = client_window(&g);
    assert_int_equal(screen_window_at(g.t.s, 5, 5, &w), 0); /* the root window */
    assert_int_equal(w.id, 0);
    assert_int_equal(screen_window_at(g.t.s, 20, 20, &w), 0);
    assert_int_equal(w.id, id);
    assert_int_equal(screen_window_at(g.t.s, 19, 20, &w), 0);
    assert_int_equal(w.id, 0);
    assert_int_equal(screen_window_at(g.t.s, 619, 519, &w), 0);
    assert_int_equal(w.id, id);
    assert_int_equal(w.rect.w, 600);
    /* the process that the window claims to belong to */
    long pid = getpid();
    XChangeProperty(g.t.other, id, XInternAtom(g.t.other, "_NET_WM_PID", False), XA_CARDINAL, 32,
                    PropModeReplace, (const unsigned char *)&pid, 1);
    XSync(g.t.other, False);
    assert_int_equal(screen_window_at(g.t.s, 300, 300, &w), 0);
    assert_non_null(strstr(w.program, "t_gate"));
    assert_int_equal(screen_window_rect(g.t.s, id, &w.rect), 0);
    assert_int_equal(screen_window_rect(g.t.s, 0x7654321, &w.rect), -1);
    assert_true(screen_window_covers(g.t.s, id, 300, 300));
    assert_false(screen_window_covers(g.t.s, id, 700, 300));

    int n = 0;
    guard(&g, "rules:\n  - deny: that program\n    program: t_gate$\n", "never", 1);
    assert_int_equal(decide(&g, CLICK_IN, NULL), 0);
    assert_string_equal(g.r.rule.rule, "that program");
    assert_int_equal(g.r.fault, FAULT_DENIED);
    assert_non_null(strstr(g.r.told, "E_DENIED"));
    assert_non_null(strstr(g.r.told, "that program"));
    n++;
    assert_int_equal(decide(&g, "{\"kind\": \"click\", \"x\": 700, \"y\": 300}", NULL), 0);
    assert_true(g.r.pass);
    n++;
    /* a drag counts at its end as well */
    assert_int_equal(
        decide(&g, "{\"kind\": \"drag\", \"x\": 700, \"y\": 300, \"x2\": 300, \"y2\": 300}", NULL), 0);
    assert_false(g.r.pass);
    n++;
    /* keys go to the window with the focus, wherever the pointer is */
    XSetInputFocus(g.t.other, id, RevertToPointerRoot, CurrentTime);
    XWarpPointer(g.t.other, None, DefaultRootWindow(g.t.other), 0, 0, 0, 0, 700, 300);
    XSync(g.t.other, False);
    assert_int_equal(decide(&g, "{\"kind\": \"type\", \"text\": \"x\"}", NULL), 0);
    assert_false(g.r.pass);
    n++;
    /* a click without a position is at the pointer */
    assert_int_equal(decide(&g, "{\"kind\": \"click\"}", NULL), 0);
    assert_true(g.r.pass);
    n++;
    unguard(&g);
    XClassHint class = {(char *)"xterm", (char *)"XTerm"};
    XSetClassHint(g.t.other, id, &class);
    XSync(g.t.other, False);
    guard(&g, "", "never", 1);
    assert_int_equal(decide(&g, "{\"kind\": \"type\", \"text\": \"rm -r x\"}", NULL), 0);
    assert_string_equal(g.r.rule.rule, "commands in a terminal");
    assert_int_equal(g.r.fault, FAULT_REFUSED);
    n++;
    unguard(&g);
    /* a window manager's frame has no class; the program's window is inside it */
    Display *d = g.t.other;
    Window frame = XCreateSimpleWindow(d, DefaultRootWindow(d), 640, 20, 120, 90, 0, 0, 0);
    Window inner = XCreateSimpleWindow(d, frame, 10, 30, 100, 50, 0, 0, 0xffffff);
    XClassHint shop = {(char *)"shop", (char *)"Shop"};
    XSetClassHint(d, inner, &shop);
    XMapWindow(d, inner);
    XMapWindow(d, frame);
    XSync(d, False);
    assert_int_equal(screen_window_at(g.t.s, 645, 25, &w), 0);
    assert_int_equal(w.id, inner);
    n++;
    stage_close(&g.t);
    check_note("%d of %d hostile cases ended as documented", n, n);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct later { /* a change while the question is open */
    Display *dpy;
    Window window;
    int what; /* 0: the title, 1: the image, 2: the stop flag, 3: the image far from the target */
};

static void *happen(void *arg)
{
    struct later *l = arg;
    clock_sleep_ms(150);
    if (l->what == 0) {
        set_title(l->dpy, l->window, "Transfer 10000");
    } else if (l->what == 2) {
        screen_stop_all(SIGINT);
    } else {
        GC gc = XCreateGC(l->dpy, l->window, 0, NULL);
        XSetForeground(l->dpy, gc, 0xcc0000);
        XFillRectangle(l->dpy, l->window, gc, l->what == 1 ? 270 : 10, l->what == 1 ? 270 : 10, 40, 40);
        XFreeGC(l->dpy, gc);
        XSync(l->dpy, False);
    }
    return NULL;
}

static void t_command(void **state)
{
    static const struct {
        const char *command;
        bool pass;
        enum action_fault fault;
        const char *told; /* part of the message to the model */
    } cases[] = {
        {"cmd:true", true, FAULT_NONE, ""},
        {"cmd:false", false, FAULT_REFUSED, "declined"},
        {"cmd:exit 3", false, FAULT_REFUSED, "declined"},
        {"cmd:kill -9 $$", false, FAULT_REFUSED, "declined"},
        {"cmd:/no/such/program", false, FAULT_REFUSED, "nobody can be asked"},
        {"cmd:head -c 10000000 /dev/urandom; exit 1", false, FAULT_REFUSED, "declined"},
        {"cmd:yes yes y; true", false, FAULT_REFUSED, "did not answer in time"}, /* output is not an answer */
        {"cmd:sleep 100", false, FAULT_REFUSED, "did not answer in time"},
        {"cmd:trap '' TERM; sleep 100 & sleep 100; sleep 100", false, FAULT_REFUSED,
         "did not answer in time"},
        {"never", false, FAULT_REFUSED, "nobody can be asked"},
        {"yes-to-all", true, FAULT_NONE, ""},
    };
    struct guarded g = {0};
    stage_open(&g.t);
    int n = sizeof cases / sizeof *cases;
    for (int i = 0; i < n; i++) {
        int64_t start = clock_ns();
        guard(&g, ASK_ALL, cases[i].command, 1);
        assert_int_equal(decide(&g, CLICK_IN, NULL), 0);
        if (g.r.pass != cases[i].pass || g.r.fault != cases[i].fault || !strstr(g.r.told, cases[i].told))
            fail_msg("%s: pass %d, '%s'", cases[i].command, g.r.pass, g.r.told);
        assert_true(clock_ms_since(start) < PATIENCE_MS); /* less than the command's own time */
        unguard(&g);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* all children have been reaped */
    stage_close(&g.t);
    check_note("%d of %d hostile cases ended as documented", n, n);
}

/* Checks the question that a command receives, and the image that it names. */
static void t_question(void **state)
{
    struct guarded g = {0};
    struct image crop;
    struct stat st;
    stage_open(&g.t);
    set_title(g.t.other, client_window(&g), "Shop \"\x1b[31m\" \xe2\x80\xae");
    char *file = xvfb_place(&g.t.x, "question"), *how = NULL, *text, *path;
    size_t len;
    assert_true(asprintf(&how, "cmd:cat >%s", file) > 0);
    guard(&g, "rules:\n  - confirm: buttons\n    element: button\n", how, 5);
    assert_int_equal(decide(&g, CLICK_IN, NULL), 0);
    assert_true(g.r.pass);
    assert_string_equal(g.r.who, "command");
    assert_int_equal(file_read(file, 1 << 20, &text, &len, NULL), 0);
    json_t *q = json_loads(text, 0, NULL);
    assert_non_null(q);
    assert_string_equal(field_text(q, "rule"), "buttons");
    assert_non_null(strstr(text, "\"seconds\": 5,"));
    assert_string_equal(field_text(q, "task"), "the task");
    assert_string_equal(field_text(q, "what"), "click \"the button\" at 300,300");
    assert_string_equal(field_text(json_object_get(q, "action"), "kind"), "click");
    assert_int_equal(json_integer_value(json_array_get(json_array_get(json_object_get(q, "targets"), 0), 1)),
                     300);
    assert_non_null(strstr(field_text(json_object_get(q, "window"), "title"), "Shop"));
    assert_int_equal(image_read_png(&crop, field_text(q, "crop"), NULL), 0);
    assert_int_equal(crop.w, 600); /* the window's full width, 400 pixels around the target */
    assert_int_equal(crop.h, 400);
    path = xvfb_place(&g.t.x, g.r.crop);
    assert_string_equal(path, field_text(q, "crop"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    image_free(&crop);
    json_decref(q);
    free(text);
    free(path);
    free(file);
    free(how);
    unguard(&g);
    stage_close(&g.t);
}

/* A yes is void if the content of the question has changed. */
static void t_meanwhile(void **state)
{
    static const bool pass[] = {true, true, false, true}; /* two questions, the second answered yes as well */
    struct guarded g = {0};
    stage_open(&g.t);
    struct later l = {.dpy = g.t.other, .window = client_window(&g)};
    for (l.what = 0; l.what < 4; l.what++) {
        struct err e = ERR_INIT;
        pthread_t thread;
        int64_t start = clock_ns();
        guard(&g, ASK_ALL, l.what == 2 ? "cmd:sleep 50" : "cmd:sleep 0.6", 60);
        pthread_create(&thread, NULL, happen, &l);
        int rc = decide(&g, CLICK_IN, &e);
        pthread_join(thread, NULL);
        if (l.what == 2) { /* set by Escape twice, Ctrl-C and the stop file */
            assert_int_equal(rc, -1);
            assert_int_equal(e.kind, ERR_STOPPED);
            assert_true(clock_ms_since(start) < PATIENCE_MS);
            screen_stop_all(0);
        } else {
            assert_int_equal(rc, 0);
            assert_int_equal(g.r.pass, pass[l.what]);
            assert_true(pass[l.what] || strstr(g.r.told, "has changed"));
        }
        unguard(&g);
    }
    stage_close(&g.t);
    check_note("4 of 4 hostile cases ended as documented");
}

static void t_observe_only(void **state)
{
    static const struct {
        bool pass;
        const char *action;
    } cases[] = {
        {true, "{\"kind\": \"move\", \"x\": 300, \"y\": 300}"},
        {true, "{\"kind\": \"scroll\", \"x\": 300, \"y\": 300, \"dy\": 2}"},
        {true, "{\"kind\": \"wait\", \"ms\": 5}"},
        {true, "{\"kind\": \"observe\"}"},
        {true, "{\"kind\": \"zoom\"}"},
        {true, "{\"kind\": \"plan\", \"text\": \"x\"}"},
        {false, "{\"kind\": \"click\", \"x\": 300, \"y\": 300}"},
        {false, "{\"kind\": \"mouse_down\"}"},
        {false, "{\"kind\": \"type\", \"text\": \"x\"}"},
        {false, "{\"kind\": \"key\", \"keys\": [\"a\"]}"},
        {false, "{\"kind\": \"key_down\", \"keys\": [\"Shift_L\"]}"},
        {false, "{\"kind\": \"goto\", \"text\": \"x\"}"},
        {false, "{\"kind\": \"back\"}"},
        {false, "{\"kind\": \"drag\", \"x\": 1, \"y\": 1, \"x2\": 2, \"y2\": 2}"},
    };
    struct guarded g = {0};
    stage_open(&g.t);
    g.policy = policy_parse("builtin: no\n", 12, "p", NULL);
    struct gate_options o = {.policy = g.policy, .confirm = {CONFIRM_YES, NULL, 1}, .observe_only = true};
    g.gate = gate_new(&o);
    gate_begin(g.gate, g.t.s, NULL);
    int n = sizeof cases / sizeof *cases;
    for (int i = 0; i < n; i++) {
        assert_int_equal(decide(&g, cases[i].action, NULL), 0);
        if (g.r.pass != cases[i].pass)
            fail_msg("%s: %d", cases[i].action, g.r.pass);
    }
    unguard(&g);
    stage_close(&g.t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("rules see the window that an event would reach", t_windows),
    CLAIM("only exit code 0 of a command, in time, is yes; it is ended with all its children", t_command),
    CLAIM("a question names action, rule, window and an image of the target", t_question),
    CLAIM("an answer is void if the target has changed, and a stop ends the question", t_meanwhile),
    CLAIM("--observe-only allows no action except observing", t_observe_only),
};

CHECK_MAIN()
