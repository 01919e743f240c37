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

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rig {
    struct stage stage;  /* stage.s: the machine as a screen */
    struct screen *eyes; /* of the server, on the display */
    struct far_server server;
    struct machine *machine;
    char *picture, *python;
    const char *fault, *fault_at; /* in place of the answer to requests with fault_at */
    int asked;                    /* requests */
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
    char *text = json_dumps(said, 0);
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
    char display[32];
    snprintf(display, sizeof display, "DISPLAY=%s", g->stage.x.display);
    const char *words[10] = {"env", display, g->python};
    for (size_t i = 1; i < json_array_size(command) && i < 7; i++)
        words[i + 2] = json_string_value(json_array_get(command, i));
    int code = xvfb_run(&g->stage.x, words);
    return json_reply(json_pack("{s:s, s:s, s:s, s:i}", "status", "success", "output", "", "error",
                                code ? "Traceback:\n  File \"x\"\nValueError: no\n" : "", "returncode",
                                code));
}

static char *say(void *arg, int n, const char *request)
{
    struct rig *g = arg;
    const char *body = strstr(request, "\r\n\r\n");
    g->asked = n + 1;
    if (g->fault && strstr(request, g->fault_at))
        return xstrdup(g->fault);
    if (!strncmp(request, "GET /screenshot ", 16))
        return screenshot(g);
    json_t *sent = json_loads(body ? body + 4 : "", 0, NULL);
    char *answer = NULL;
    if (!strncmp(request, "POST /screen_size ", 18)) {
        struct screen_rect all = screen_root(g->eyes);
        answer = json_reply(json_pack("{s:i, s:i}", "width", all.w, "height", all.h));
    } else if (!strncmp(request, "POST /execute ", 14)) {
        answer = execute(g, json_object_get(sent, "command"));
    }
    json_decref(sent);
    return answer ? answer : xstrdup(FAR_ERROR("404 Not Found", "no such route"));
}

static void rig_open(struct rig *g)
{
    *g = (struct rig){0};
    driven_open(&g->stage);
    char *stub = realpath("tests/computer", NULL);
    assert_non_null(stub);
    setenv("PYTHONPATH", getenv("HOLORUN_PYAUTOGUI") ? "" : stub, 1);
    free(stub);
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
    json_t *ev = stage_events(t, NULL);
    assert_int_equal(json_array_size(ev), 2);
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
    ev = stage_events(t, "button_press");
    assert_int_equal(json_array_size(ev), 2);
    assert_int_equal(field(ev, 1, "button"), 3);
    stage_clear(t);
    static const int path[] = {100, 100, 300, 100, 300, 250};
    must(screen_drag(t->s, path, 3, 1, 100, &why));
    ev = stage_events(t, NULL);
    assert_int_equal(json_array_size(ev), 2);
    assert_int_equal(field(ev, 0, "x"), 100);
    assert_int_equal(field(ev, 1, "x"), 300);
    assert_int_equal(field(ev, 1, "y"), 250);
    assert_true(json_array_size(stage_events(t, "motion")) > 10);
    stage_clear(t);
    must(screen_scroll(t->s, -1, 2, &why));
    ev = stage_events(t, "button_press");
    assert_int_equal(json_array_size(ev), 3);
    assert_int_equal(field(ev, 0, "button"), 5);
    assert_int_equal(field(ev, 2, "button"), 6);
    assert_int_equal(screen_button(t->s, 8, true, &why), -1);
    assert_int_equal(pressed(t->other), 0);
    rig_close(&g);
}

/* The text that the window's key presses make. */
static void typed(struct stage *t, char out[200])
{
    json_t *ev = stage_events(t, "key_press");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(ev); i++)
        n += (size_t)snprintf(out + n, 200 - n, "%s", word(ev, i, "text"));
}

static void t_keyboard(void **state)
{
    (void)state;
    struct rig g;
    struct stage *t = &g.stage;
    char text[200] = "";
    static const uint32_t chord[] = {XK_Control_L, XK_s};
    rig_open(&g);
    must(rig_screen(&g));
    must(screen_click(t->s, 100, 100, 1, 1, &why));
    stage_clear(t);
    static const char said[] = "it's a \\ B<c>\n";
    must(screen_type(t->s, said, strlen(said), &why));
    typed(t, text);
    assert_string_equal(text, "it's a \\ B<c>\r");
    stage_clear(t);
    must(screen_chord(t->s, chord, 2, &why));
    json_t *ev = stage_events(t, "key_press");
    assert_int_equal(json_array_size(ev), 2);
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
    must(screen_move(g.stage.s, 50, 50, &why));
    must(screen_window_at(g.stage.s, 40, 40, &there));
    assert_int_equal(g.asked, asked + 2);
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

static void *stop_soon(void *arg)
{
    struct rig *g = arg;
    while (!*(volatile int *)&g->asked)
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
    g.asked = 0;
    pthread_create(&thread, NULL, stop_soon, &g);
    assert_int_equal(screen_capture(g.stage.s, &im, &why), -1);
    if (why.kind != ERR_STOPPED)
        fail_msg("%d: %s", (int)why.kind, why.text);
    pthread_join(thread, NULL);
    g.fault = NULL;
    rig_close(&g);
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
    json_t *ev = stage_events(&g.stage, NULL);
    assert_string_equal(word(ev, 0, "event"), "button_press");
    assert_int_equal(field(ev, 0, "x"), 400);
    assert_int_equal(field(ev, 0, "y"), 300);
    char text[200] = "";
    typed(&g.stage, text);
    assert_string_equal(text, "abc");
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
    CLAIM("what a stopped run has pressed there goes up", t_released),
    CLAIM("windows there are asked for once, until something is done", t_windows),
    CLAIM("each lie of a server is one line with what it was", t_lies),
    CLAIM("a stop ends a request to a silent machine", t_silence),
    CLAIM("a run works on a machine without a display of its own", t_run),
    CLAIM("addresses that cannot be are refused with what is meant", t_refused),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
