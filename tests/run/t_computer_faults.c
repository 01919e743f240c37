/* t_computer_faults.c - OSWorld's machine that lies, is silent or cannot be found, and whole runs on one. */
#include "computer_rig.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    char *url = rig_address(&g),
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
    rig_expect_typed(&g.stage, "abc");
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
    char *url = rig_address(&g),
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
