/* t_computer.c - OSWorld's machine as the screen: actions and pictures over HTTP, seen from outside.
 *
 * The machine is a server of this test with the routes of the one in OSWorld's machine, over a private X server:
 * it takes its screenshots there and runs the programs that it is sent with a real Python.  pyautogui is
 * tests/computer/pyautogui.py, or the package itself where HOLORUN_PYAUTOGUI names a Python that has it and
 * Xlib.  What is asserted about input comes from a window on that X server.
 */
#include "check.h"
#include "computer/machine.h"
#include "driven.h"
#include "far.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

struct rig {
    struct stage stage;  /* stage.s: the machine as a screen */
    struct screen *eyes; /* of the server, on the display */
    struct far_server server;
    struct machine *machine;
    char *picture, *python;
    const char *fault, *fault_at; /* in place of the answer to requests with fault_at */
    struct screen_rect claims;    /* the size that it says its screen has; w 0: the real one */
    int asked, executed;          /* requests, those to execute */
};

static char *json_reply(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT), *all = xasprintf(FAR_JSON "%s", text);
    free(text);
    json_decref(object);
    return all;
}

/* ---- the routes ------------------------------------------------------------------------------------- */

static char *screenshot(struct rig *g)
{
    struct image im = {0};
    struct err e = ERR_INIT;
    if (screen_capture(g->eyes, &im, &e) || image_write_png(&im, g->picture, &e))
        fail_msg("%s", e.text);
    image_free(&im);
    return xasprintf("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nConnection: close\r\n\r\nFILE %s",
                     g->picture);
}

/* Where Python has no Xlib: what the script of windows would say. */
static char *tell_window(struct rig *g, const json_t *command)
{
    struct screen_window w;
    int x = atoi(json_string_value(json_array_get(command, 3))),
        y = atoi(json_string_value(json_array_get(command, 4)));
    int rc = x < 0 ? screen_focused_window(g->eyes, &w) : screen_window_at(g->eyes, x, y, &w);
    assert_int_equal(rc, 0);
    json_t *said = json_pack("{s:I, s:s, s:s, s:[i,i,i,i]}", "id", (json_int_t)w.id, "title", w.title,
                             "class", w.class, "rect", w.rect.x, w.rect.y, w.rect.w, w.rect.h);
    char *line = json_dumps(said, 0), *text = xasprintf("Xlib: a warning\n%s\n", line);
    free(line);
    json_decref(said);
    json_t *answer =
        json_pack("{s:s, s:s, s:s, s:i}", "status", "success", "output", text, "error", "", "returncode", 0);
    free(text);
    return json_reply(answer);
}

/* Runs argv[1..] of the command with that Python; its stdout, and stderr when it fails. */
static char *execute(struct rig *g, const json_t *command)
{
    const char *program = json_string_value(json_array_get(command, 2));
    assert_string_equal(json_string_value(json_array_get(command, 0)), "python3");
    if (!getenv("HOLORUN_PYAUTOGUI") && strstr(program, "from Xlib"))
        return tell_window(g, command);
    char display[32], *path = xvfb_place(&g->stage.x, "output"), *output = NULL;
    snprintf(display, sizeof display, "DISPLAY=%s", g->stage.x.display);
    const char *words[12] = {"env", display, "sh", "-c", "exec \"$@\" >\"$0\"", path, g->python};
    for (size_t i = 1; i < json_array_size(command) && i < 5; i++)
        words[i + 6] = json_string_value(json_array_get(command, i));
    int code = xvfb_run(&g->stage.x, words);
    size_t n;
    if (file_read(path, 1 << 20, &output, &n, NULL))
        output = NULL;
    json_t *answer =
        json_pack("{s:s, s:s, s:s, s:i}", "status", "success", "output", output ? output : "", "error",
                  code ? "Traceback:\n  File \"x\"\nValueError: no\n" : "", "returncode", code);
    free(output);
    free(path);
    return json_reply(answer);
}

static char *say(void *arg, int n, const char *request)
{
    struct rig *g = arg;
    const char *body = strstr(request, "\r\n\r\n");
    flag_set(&g->asked, n + 1);
    g->executed += !strncmp(request, "POST /execute ", 14);
    if (g->fault && strstr(request, g->fault_at))
        return xstrdup(g->fault);
    if (!strncmp(request, "GET /screenshot ", 16))
        return screenshot(g);
    json_t *sent = json_loads(body ? body + 4 : "", 0, NULL);
    char *answer = NULL;
    if (!strncmp(request, "POST /screen_size ", 18)) {
        struct screen_rect all = g->claims.w ? g->claims : screen_root(g->eyes);
        answer = json_reply(json_pack("{s:i, s:i}", "width", all.w, "height", all.h));
    } else if (!strncmp(request, "POST /execute ", 14)) {
        answer = execute(g, json_object_get(sent, "command"));
    }
    json_decref(sent);
    return answer ? answer : xstrdup(FAR_ERROR("404 Not Found", "no such route"));
}

/* The package's Xlib does not find the display's cookie, whose entry is for any host. */
static void admit_user(Display *dpy)
{
    const struct passwd *me = getpwuid(getuid());
    char kind[] = "localuser";
    assert_non_null(me);
    XServerInterpretedAddress who = {
        .type = kind, .typelength = 9, .value = me->pw_name, .valuelength = (int)strlen(me->pw_name)};
    XHostAddress address = {.family = FamilyServerInterpreted, .address = (char *)&who};
    XAddHost(dpy, &address);
    XSync(dpy, False);
}

static void rig_open(struct rig *g)
{
    *g = (struct rig){0};
    driven_open(&g->stage);
    char *stub = realpath("tests/computer", NULL);
    assert_non_null(stub);
    setenv("PYTHONPATH", getenv("HOLORUN_PYAUTOGUI") ? "" : stub, 1);
    free(stub);
    if (getenv("HOLORUN_PYAUTOGUI"))
        admit_user(g->stage.other);
    g->python = xstrdup(getenv("HOLORUN_PYAUTOGUI") ? getenv("HOLORUN_PYAUTOGUI") : "python3");
    g->picture = xvfb_place(&g->stage.x, "picture.png");
    must(!(g->eyes = screen_open(NULL, &why)));
    far_open_with(&g->server, say, g);
}

static char *address(const struct rig *g)
{
    return xasprintf("http://127.0.0.1:%d", g->server.port);
}

/* -1: it could not be opened, with the reason in `why`. */
static int rig_screen(struct rig *g)
{
    char *url = address(g);
    why = (struct err)ERR_INIT;
    g->machine = machine_open(url, &why);
    free(url);
    assert_non_null(g->machine);
    assert_int_equal(g->server.served, 0); /* nothing is connected by opening it */
    struct screen_options o = {.computer = machine_computer(g->machine)};
    g->stage.s = screen_open(&o, &why);
    return g->stage.s ? 0 : -1;
}

static void rig_close(struct rig *g)
{
    screen_close(g->stage.s);
    g->stage.s = NULL;
    machine_close(g->machine);
    far_close(&g->server);
    screen_close(g->eyes);
    free(g->picture);
    free(g->python);
    stage_close(&g->stage);
}

/* n events of this kind since stage_clear(), when they have come. */
static json_t *await_events(struct stage *t, const char *name, size_t n)
{
    int64_t start = clock_ns();
    json_t *ev = stage_events(t, name);
    while (json_array_size(ev) < n && clock_ms_since(start) < PATIENCE_MS)
        ev = stage_events(t, name);
    assert_int_equal(json_array_size(ev), n);
    return ev;
}

/* ---- hands and eyes ----------------------------------------------------------------------------------- */

static void t_pictures(void **state)
{
    (void)state;
    struct rig g;
    struct image there = {0}, here = {0};
    rig_open(&g);
    must(rig_screen(&g));
    struct screen_rect view = screen_view(g.stage.s);
    assert_int_equal(view.w, 800);
    assert_int_equal(view.h, 600);
    must(screen_capture(g.stage.s, &there, &why));
    must(screen_capture(g.eyes, &here, &why));
    assert_true(image_equal(&there, &here));
    struct settle p = {1, 30, 20000};
    struct settled settled;
    must(screen_settle(g.stage.s, &p, &settled, &why));
    assert_string_not_equal(settled.why, "timeout");
    image_free(&there);
    image_free(&here);
    rig_close(&g);
}

static void t_pointer(void **state)
{
    (void)state;
    struct rig g;
    struct stage *t = &g.stage;
    int x, y;
    rig_open(&g);
    must(rig_screen(&g));
    assert_int_equal(screen_pointer(t->s, &x, &y), -1);
    must(screen_click(t->s, 123, 234, 1, 1, &why));
    json_t *ev = await_events(t, NULL, 2);
    assert_string_equal(word(ev, 0, "event"), "button_press");
    assert_int_equal(field(ev, 0, "button"), 1);
    assert_int_equal(field(ev, 0, "x"), 123);
    assert_int_equal(field(ev, 0, "y"), 234);
    stage_clear(t);
    must(screen_move(t->s, 9999, -5, &why));
    pointer_at(t->other, &x, &y);
    assert_int_equal(x, 799);
    assert_int_equal(y, 0);
    must(screen_click(t->s, 50, 60, 3, 2, &why));
    ev = await_events(t, NULL, 4);
    assert_string_equal(word(ev, 2, "event"), "button_press");
    assert_int_equal(field(ev, 2, "button"), 3);
    stage_clear(t);
    static const int path[] = {100, 100, 300, 100, 300, 250};
    must(screen_drag(t->s, path, 3, 1, 100, &why));
    ev = await_events(t, NULL, 2);
    assert_int_equal(field(ev, 0, "x"), 100);
    assert_int_equal(field(ev, 1, "x"), 300);
    assert_int_equal(field(ev, 1, "y"), 250);
    assert_true(json_array_size(stage_events(t, "motion")) > 10);
    stage_clear(t);
    must(screen_scroll(t->s, -1, 2, &why));
    ev = await_events(t, NULL, 6);
    assert_int_equal(field(ev, 0, "button"), 5);
    assert_int_equal(field(ev, 4, "button"), 6);
    stage_clear(t);
    static const int beyond[] = {-50, 100, 9000, 100};
    must(screen_drag(t->s, beyond, 2, 1, 50, &why));
    assert_int_equal(screen_pointer(t->s, &x, &y), 0); /* the X server would hold it back by itself */
    assert_int_equal(x, 799);
    assert_int_equal(screen_button(t->s, 8, true, &why), -1);
    assert_int_equal(pressed(t->other), 0);
    rig_close(&g);
}

/* Waits until the window's key presses make as many characters as this has: those must be these. */
static void expect_typed(struct stage *t, const char *text)
{
    struct buf made;
    int64_t start = clock_ns();
    buf_init(&made, 1 << 16);
    do {
        json_t *ev = stage_events(t, "key_press");
        buf_clear(&made);
        for (size_t i = 0; i < json_array_size(ev); i++)
            buf_puts(&made, word(ev, i, "text"));
    } while (made.len < strlen(text) && clock_ms_since(start) < PATIENCE_MS);
    assert_string_equal(made.data, text);
    buf_free(&made);
}

static void t_keyboard(void **state)
{
    (void)state;
    struct rig g;
    struct stage *t = &g.stage;
    static const uint32_t chord[] = {XK_Control_L, XK_s};
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_click(t->s, 100, 100, 1, 1, &why));
    stage_clear(t);
    static const char said[] = "it's a \\ B<c>\n";
    must(screen_type(t->s, said, strlen(said), &why));
    expect_typed(t, "it's a \\ B<c>\r");
    stage_clear(t);
    must(screen_chord(t->s, chord, 2, &why));
    json_t *ev = await_events(t, NULL, 4);
    assert_int_equal(field(ev, 1, "state"), ControlMask);
    stage_clear(t);
    /* What pyautogui would pass over is refused, and nothing of a secret is said. */
    assert_int_equal(screen_type_secret(t->s, "pass\xc3\xa4word", 10, &why), -1);
    assert_int_equal(why.kind, ERR_FAILED);
    assert_null(strstr(why.text, "word"));
    static const uint32_t unknown[] = {0x1008ff11};
    assert_int_equal(screen_chord(t->s, unknown, 1, &why), -1);
    assert_int_equal(json_array_size(stage_events(t, NULL)), 0);
    rig_close(&g);
}

/* All that is printed, and a line end that lies across the end of a request. */
static void t_characters(void **state)
{
    (void)state;
    struct rig g;
    char text[260] = "", arrives[260];
    int n = 0;
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_click(g.stage.s, 100, 100, 1, 1, &why));
    stage_clear(&g.stage);
    for (int c = ' '; c <= '~'; c++)
        text[n++] = (char)c;
    while (n < 199)
        text[n++] = '<';
    memcpy(arrives, text, sizeof arrives);
    snprintf(text + n, sizeof text - (size_t)n, "\r\nx\ty");
    snprintf(arrives + n, sizeof arrives - (size_t)n, "\rx\ty");
    must(screen_type(g.stage.s, text, strlen(text), &why));
    expect_typed(&g.stage, arrives);
    assert_int_equal(g.executed, 3); /* one click and two parts */
    assert_int_equal(pressed(g.stage.other), 0);
    rig_close(&g);
}

/* Every key of its own, in one request: the window sees its keysym. */
static void t_keys(void **state)
{
    (void)state;
    static const uint32_t special[] = {
        XK_Control_L, XK_Control_R, XK_Shift_L,     XK_Shift_R, XK_Alt_L,     XK_Alt_R,     XK_Super_L,
        XK_Super_R,   XK_Return,    XK_Escape,      XK_Tab,     XK_space,     XK_BackSpace, XK_Delete,
        XK_Insert,    XK_Home,      XK_End,         XK_Page_Up, XK_Page_Down, XK_Up,        XK_Down,
        XK_Left,      XK_Right,     XK_Scroll_Lock, XK_Print,   XK_Pause,     XK_Menu,      XK_F1,
        XK_F2,        XK_F3,        XK_F4,          XK_F5,      XK_F6,        XK_F7,        XK_F8,
        XK_F9,        XK_F10,       XK_F11,         XK_F12,     XK_Num_Lock,  XK_Caps_Lock,
    };
    static const uint32_t others[][2] = {{XK_KP_Enter, XK_Return}, {XK_Sys_Req, XK_Print},
                                         {XK_KP_7, '7'},           {XK_KP_Add, '+'},
                                         {XK_KP_Multiply, '*'},    {XK_KP_Equal, '='}};
    enum { SPECIAL = sizeof special / sizeof *special, OTHERS = sizeof others / sizeof *others };
    enum { KEYS = '~' - ' ' + OTHERS + SPECIAL };
    struct computer_event v[2 * KEYS];
    uint32_t seen[KEYS];
    int n = 0;
    for (int i = 0; i < KEYS; i++) {
        int other = i - ('~' - ' '), last = other - OTHERS; /* locks come last: they change what follows */
        uint32_t key = last >= 0 ? special[last] : other >= 0 ? others[other][0] : (uint32_t)('!' + i);
        seen[i] = other >= 0 && last < 0 ? others[other][1] : key;
        v[n++] = (struct computer_event){.kind = COMPUTER_KEY_DOWN, .keysym = key};
        v[n++] = (struct computer_event){.kind = COMPUTER_KEY_UP, .keysym = key};
    }
    struct rig g;
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_click(g.stage.s, 100, 100, 1, 1, &why));
    stage_clear(&g.stage);
    const struct computer *c = machine_computer(g.machine);
    must(c->perform(c->arg, NULL, v, n, &why));
    int at = 0;
    int64_t start = clock_ns();
    while (at < KEYS && clock_ms_since(start) < PATIENCE_MS) {
        json_t *ev = stage_events(&g.stage, "key_press");
        at = 0; /* each in its turn; Shift comes before some */
        for (size_t i = 0; i < json_array_size(ev) && at < KEYS; i++)
            at += field(ev, i, "keysym") == seen[at];
    }
    if (at < KEYS)
        fail_msg("the key with the keysym 0x%x has not arrived", seen[at]);
    assert_int_equal(pressed(g.stage.other), 0);
    rig_close(&g);
}

/* What was pressed before a part that fails goes up at once, and keys that the machine lacks keep none down. */
static void t_failed(void **state)
{
    (void)state;
    static const uint32_t unknown[] = {XK_Control_L, 0x1008ff11}, chord[] = {XK_Control_L, XK_s};
    struct rig g;
    struct screen *s;
    rig_open(&g);
    must(rig_screen(&g));
    s = g.stage.s;
    must(screen_key(s, XK_Shift_L, true, &why));
    assert_int_equal(screen_chord(s, unknown, 2, &why), -1);
    assert_int_equal(pressed(g.stage.other), 1);
    must(screen_chord(s, chord, 2, &why));
    assert_int_equal(pressed(g.stage.other), 1); /* Shift stays, Ctrl does not */
    assert_int_equal(screen_key(s, 0x1008ff11, true, &why), -1);
    assert_int_equal(screen_release_all(s), 1);
    assert_int_equal(pressed(g.stage.other), 0);
    rig_close(&g);
}

static void t_released(void **state)
{
    (void)state;
    struct rig g;
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_move(g.stage.s, 40, 40, &why));
    must(screen_button(g.stage.s, 1, true, &why));
    must(screen_key(g.stage.s, XK_Shift_L, true, &why));
    assert_int_equal(pressed(g.stage.other), 2);
    screen_stop(g.stage.s, STOP_HOST); /* nothing more is pressed, and what is down goes up */
    assert_int_equal(screen_click(g.stage.s, 10, 10, 1, 1, &why), -1);
    assert_int_equal(why.kind, ERR_STOPPED);
    assert_int_equal(screen_release_all(g.stage.s), 1);
    assert_int_equal(pressed(g.stage.other), 0);
    rig_close(&g);
}

static void t_windows(void **state)
{
    (void)state;
    struct rig g;
    struct screen_window there, here;
    struct image im = {0};
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_move(g.stage.s, 40, 40, &why));
    must(screen_window_at(g.stage.s, 40, 40, &there));
    must(screen_window_at(g.eyes, 40, 40, &here));
    assert_int_equal(there.id, here.id);
    assert_string_equal(there.title, here.title);
    assert_int_equal(there.pid, 0); /* it is no process of this machine */
    int asked = g.asked;
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked); /* nothing was done since */
    must(screen_capture(g.stage.s, &im, &why));
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked + 2); /* what was seen since may be another window */
    image_free(&im);
    asked = g.asked;
    must(screen_move(g.stage.s, 50, 50, &why));
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked + 2);
    /* One that could not be told is asked for again; after three in a row nothing is. */
    must(screen_move(g.stage.s, 40, 40, &why));
    g.fault = FAR_JSON "{\"status\": \"success\", \"returncode\": 1, \"error\": \"BadWindow\"}";
    g.fault_at = "Xlib";
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(there.id, 0);
    g.fault = NULL;
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(there.id, here.id);
    must(screen_move(g.stage.s, 40, 40, &why));
    g.fault = FAR_ERROR("500 Oops", "no");
    asked = g.asked;
    for (int i = 0; i < 5; i++)
        must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked + 3);
    rig_close(&g);
}

/* ---- servers that lie ----------------------------------------------------------------------------------- */

static void t_lies(void **state)
{
    (void)state;
    static const struct lie {
        const char *at, *says, *told;
        enum err_kind kind;
    } lies[] = {
        {"GET /screenshot", FAR_ERROR("500 Oops", "no display"), "status 500: {\"error\"", ERR_ENV},
        {"GET /screenshot", FAR_ERROR("302 Found", ""), "status 302", ERR_ENV},
        {"GET /screenshot", "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nConnection: close\r\n\r\n",
         "points to http://elsewhere/", ERR_ENV},
        {"GET /screenshot", "", "--computer: 127.0.0.1", ERR_ENV},
        {"GET /screenshot", FAR_JSON "{}", "is no picture", ERR_ENV},
        {"GET /screenshot", FAR_JSON "\x89PNG\r\n", "is no picture", ERR_ENV},
        {"GET /screenshot", FAR_JSON "ENDLESS picture", "more than 64 MiB", ERR_ENV},
        {"POST /screen_size", FAR_JSON "[]", "no JSON object", ERR_ENV},
        {"POST /screen_size", FAR_JSON "{\"width\": 1e9, \"height\": 2}", "no width and height", ERR_ENV},
        {"POST /screen_size", FAR_JSON "{\"width\": 400, \"height\": 300}", "its screen is 400x300", ERR_ENV},
        {"POST /execute", FAR_JSON "nonsense", "no JSON object", ERR_ENV},
        {"POST /execute", FAR_JSON "ENDLESS x", "more than 1 MiB", ERR_ENV},
        {"POST /execute", FAR_JSON "{\"status\": \"success\"}", "no reason was given", ERR_FAILED},
        {"POST /execute",
         FAR_JSON "{\"status\":\"success\",\"returncode\":1,\"error\":\"Traceback\\nValueError: no\\n\"}",
         "the action failed there: ValueError: no", ERR_FAILED},
        {"POST /execute", FAR_ERROR("404 Not Found", "what"), "answered POST /execute with status 404",
         ERR_ENV},
        {"POST /execute",
         FAR_JSON
         "{\"status\":\"success\",\"returncode\":1,\"error\":\"ImportError: No module named 'pyautogui'\"}",
         "its Python cannot act", ERR_ENV},
    };
    struct rig g;
    rig_open(&g);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const struct lie *l = &lies[i];
        g.server.served = 0;
        g.fault = l->says;
        g.fault_at = l->at;
        int rc = rig_screen(&g);
        if (!strcmp(l->at, "POST /execute")) {
            must(rc);
            rc = screen_move(g.stage.s, 5, 5, &why);
        }
        if (rc != -1 || why.kind != l->kind || !strstr(why.text, l->told) || strchr(why.text, '\n'))
            fail_msg("%s, %.60s: %d, %d: %s", l->at, l->says, rc, (int)why.kind, why.text);
        g.fault = NULL;
        screen_close(g.stage.s);
        g.stage.s = NULL;
        machine_close(g.machine);
        g.machine = NULL;
    }
    assert_int_equal(json_array_size(stage_events(&g.stage, NULL)), 0);
    rig_close(&g);
}

/* The second picture has another size: of a screen that was set to it, or not. */
static void t_resized(void **state)
{
    (void)state;
    struct rig g;
    struct image small = {0}, im = {0};
    rig_open(&g);
    must(rig_screen(&g));
    must(image_alloc(&small, 400, 300, &why));
    char *path = xvfb_place(&g.stage.x, "small.png");
    must(image_write_png(&small, path, &why));
    char *reply = xasprintf("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nFILE %s", path);
    g.fault_at = "GET /screenshot";
    g.fault = reply;
    assert_int_equal(screen_capture(g.stage.s, &im, &why), -1);
    assert_int_equal(why.kind, ERR_ENV);
    assert_non_null(strstr(why.text, "its screenshots are 400x300 and its screen is 800x600"));
    assert_int_equal(screen_view(g.stage.s).w, 800);
    g.claims = (struct screen_rect){0, 0, 400, 300};
    must(screen_capture(g.stage.s, &im, &why));
    assert_int_equal(screen_view(g.stage.s).w, 400);
    int asked = g.asked;
    must(screen_capture(g.stage.s, &im, &why));
    assert_int_equal(g.asked, asked + 1); /* it is not compared each time */
    g.fault = NULL;
    free(reply);
    free(path);
    image_free(&small);
    image_free(&im);
    rig_close(&g);
}

/* libcurl sends a request anew when the connection that it had kept is closed without an answer. */
static void t_once(void **state)
{
    (void)state;
    struct rig g;
    rig_open(&g);
    g.fault_at = "POST /screen_size";
    g.fault = "HTTP/1.1 200 OK\r\nContent-Length: 29\r\nConnection: keep-alive\r\n\r\n"
              "{\"width\": 800, \"height\": 600}";
    must(rig_screen(&g));
    g.fault_at = "POST /execute";
    g.fault = "";
    assert_int_equal(screen_move(g.stage.s, 5, 5, &why), -1);
    assert_int_equal(why.kind, ERR_ENV);
    assert_int_equal(g.executed, 1);
    assert_int_equal(screen_button(g.stage.s, 1, true, &why), -1);
    assert_int_equal(g.executed, 3); /* it may have been pressed: it is released */
    g.fault = NULL;
    rig_close(&g);
}

static void *stop_soon(void *arg)
{
    struct rig *g = arg;
    while (!flag_up(&g->asked))
        clock_sleep_ms(5);
    screen_stop(g->stage.s, STOP_HOST);
    return NULL;
}

static void t_silence(void **state)
{
    (void)state;
    struct rig g;
    struct image im = {0};
    pthread_t thread;
    rig_open(&g);
    must(rig_screen(&g));
    g.fault = "SILENCE";
    g.fault_at = "GET /screenshot";
    flag_set(&g.asked, 0);
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, &g), 0);
    int rc = screen_capture(g.stage.s, &im, &why);
    if (rc != -1 || why.kind != ERR_STOPPED)
        fail_msg("%d, %d: %s; request %d had come, the flag was %d", rc, (int)why.kind, why.text,
                 flag_value(&g.asked), flag_value(screen_stop_flag(g.stage.s)));
    pthread_join(thread, NULL);
    g.fault = NULL;
    rig_close(&g);
}

/* A machine that falls silent with something pressed holds up the end for seconds, not for as long as an
 * action may take. */
static void t_silent_end(void **state)
{
    (void)state;
    struct rig g;
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_key(g.stage.s, XK_Shift_L, true, &why));
    g.fault = "SILENCE";
    g.fault_at = "POST /execute";
    screen_stop(g.stage.s, STOP_HOST);
    int64_t start = clock_ns();
    assert_int_equal(screen_release_all(g.stage.s), 1);
    check_note("%.1f s", clock_ms_since(start) / 1000);
    assert_int_equal(g.executed, 2);
    g.fault = NULL;
    rig_close(&g);
}

/* ---- a name that nobody finds ------------------------------------------------------------------------- */

static struct {
    int asked, returned, answer; /* flags: the search began; the request ended; the search may end */
    volatile int stop;
    bool early; /* the request ended before the search */
} search;

/* In place of the C library's, for libcurl's thread. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (!node || strcmp(node, "silent.test") != 0) {
        if (!real)
            *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real(node, service, hints, out);
    }
    flag_set(&search.asked, 1);
    while (!flag_up(&search.answer))
        clock_sleep_ms(5);
    return EAI_AGAIN;
}

static void *stop_search(void *arg)
{
    while (!flag_up(&search.asked))
        clock_sleep_ms(5);
    flag_set(&search.stop, 1);
    for (int64_t start = clock_ns(); !flag_up(&search.returned) && clock_ms_since(start) < PATIENCE_MS;)
        clock_sleep_ms(5);
    search.early = flag_up(&search.returned);
    flag_set(&search.answer, 1);
    return arg;
}

static void t_nameless(void **state)
{
    (void)state;
    struct image im = {0};
    pthread_t thread;
    struct machine *m = machine_open("http://silent.test:5000", &why);
    assert_non_null(m);
    const struct computer *c = machine_computer(m);
    assert_int_equal(pthread_create(&thread, NULL, stop_search, NULL), 0);
    assert_int_equal(c->capture(c->arg, &search.stop, &im, &why), -1);
    flag_set(&search.returned, 1);
    pthread_join(thread, NULL);
    assert_int_equal(why.kind, ERR_STOPPED);
    assert_true(search.early);
    machine_close(m);
}

/* ---- the program ------------------------------------------------------------------------------------------ */

static void t_run(void **state)
{
    (void)state;
    struct rig g;
    struct record r;
    struct outcome o = {0};
    rig_open(&g);
    char *url = address(&g),
         *script = xvfb_put(&g.stage.x, "script", CLICK(500, 500) TYPE("abc") ANSWER("Done.")),
         *runs = xvfb_place(&g.stage.x, "runs");
    /* DISPLAY names nothing: the machine is all that it has. */
    setenv("DISPLAY", ":9999", 1);
    program_run(&g.stage.x, &o,
                WORDS("run", "Write abc", "--computer", url, "--fake", script, "--runs", runs, "--settle-min",
                      "1", "--settle-quiet", "30", "--confirm", "never"));
    setenv("DISPLAY", g.stage.x.display, 1);
    if (o.code)
        fail_msg("%d: %s", o.code, o.err);
    assert_string_equal(o.out, "Done.\n");
    expect_typed(&g.stage, "abc");
    json_t *ev = stage_events(&g.stage, NULL);
    assert_string_equal(word(ev, 0, "event"), "button_press");
    assert_int_equal(field(ev, 0, "x"), 400);
    assert_int_equal(field(ev, 0, "y"), 300);
    driven_read(&g.stage, &r);
    assert_string_equal(json_string_value(json_object_get(json_object_get(r.run, "display"), "name")), url);
    record_free(&r);
    assert_int_equal(pressed(g.stage.other), 0);
    outcome_free(&o);
    free(url);
    free(script);
    free(runs);
    rig_close(&g);
}

/* A machine that breaks down during an action: the run ends, and the action is not tried again. */
static void t_breaks(void **state)
{
    (void)state;
    struct rig g;
    struct outcome o = {0};
    rig_open(&g);
    char *url = address(&g),
         *script = xvfb_put(&g.stage.x, "script", CLICK(500, 500) CLICK(500, 500) ANSWER("Done.")),
         *runs = xvfb_place(&g.stage.x, "runs");
    g.fault = FAR_ERROR("500 Oops", "no more");
    g.fault_at = "button='left'";
    program_run(&g.stage.x, &o,
                WORDS("run", "Click", "--quiet", "--computer", url, "--fake", script, "--runs", runs,
                      "--settle-min", "1", "--settle-quiet", "30", "--confirm", "never"));
    const char *line =
        strstr(o.err, "answered POST /execute with status 500"); /* after a warning about Escape */
    if (o.code != ERR_ENV || !line || !strstr(line, "no more") || strcmp(strchr(line, '\n'), "\n") != 0)
        fail_msg("%d: %s", o.code, o.err);
    int presses = 0;
    for (int i = 0; i < FAR_TURNS; i++)
        presses += g.server.requests[i] && strstr(g.server.requests[i], "mouseDown") != NULL;
    assert_int_equal(presses, 1);
    outcome_free(&o);
    free(url);
    free(script);
    free(runs);
    g.fault = NULL;
    rig_close(&g);
}

static void t_refused(void **state)
{
    (void)state;
    struct xvfb x;
    struct outcome o = {0};
    xvfb_folder(&x);
    char *script = xvfb_put(&x, "script", ANSWER("Done."));
    program_run(&x, &o, WORDS("run", "Go", "--computer", "127.0.0.1:5000", "--fake", script));
    ONE_LINE(&o, ERR_USAGE, "--computer '127.0.0.1:5000'", "http://127.0.0.1:5000");
    program_run(&x, &o, WORDS("run", "Go", "--computer", "http://me:word@127.0.0.1:5000", "--fake", script));
    ONE_LINE(&o, ERR_USAGE, "an address such as");
    program_run(&x, &o,
                WORDS("run", "Go", "--computer", "http://127.0.0.1:5000", "--on", "desk", "--fake", script));
    ONE_LINE(&o, ERR_USAGE, "--computer and --on");
    program_run(&x, &o, WORDS("run", "Go", "--computer", "http://127.0.0.1:1", "--fake", script));
    ONE_LINE(&o, ERR_ENV, "--computer", "127.0.0.1:1");
    outcome_free(&o);
    free(script);
    char *command = xasprintf("rm -rf '%s'", x.dir);
    assert_int_equal(system(command), 0);
    free(command);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a machine's screenshots are its screen, and it settles", t_pictures),
    CLAIM("clicks, drags and the wheel reach a window there", t_pointer),
    CLAIM("keys and text arrive letter by letter, and what cannot be typed is refused", t_keyboard),
    CLAIM("every printed character arrives, and a line end between two requests is one", t_characters),
    CLAIM("every key that has a name there arrives as itself", t_keys),
    CLAIM("what fails leaves nothing pressed there but what was before", t_failed),
    CLAIM("what a stopped run has pressed there goes up", t_released),
    CLAIM("windows there are asked for once, until something is done or seen", t_windows),
    CLAIM("each lie of a server is one line with what it was", t_lies),
    CLAIM("a picture of another size is compared with the screen again", t_resized),
    CLAIM("an action whose answer is lost is not sent twice", t_once),
    CLAIM("a stop ends a request to a silent machine", t_silence),
    CLAIM("a silent machine does not keep what is pressed there from being given up", t_silent_end),
    CLAIM("a stop ends the search for a machine's name", t_nameless),
    CLAIM("a run works on a machine without a display of its own", t_run),
    CLAIM("a machine that breaks down ends a run with one line", t_breaks),
    CLAIM("addresses that cannot be are refused with what is meant", t_refused),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
