/* computer_rig.c - see computer_rig.h. */
#include "computer_rig.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *rig_json_reply(json_t *object)
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
    return rig_json_reply(answer);
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
    return rig_json_reply(answer);
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
        answer = rig_json_reply(json_pack("{s:i, s:i}", "width", all.w, "height", all.h));
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

void rig_open(struct rig *g)
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

char *rig_address(const struct rig *g)
{
    return xasprintf("http://127.0.0.1:%d", g->server.port);
}

int rig_screen(struct rig *g)
{
    char *url = rig_address(g);
    why = (struct err)ERR_INIT;
    g->machine = machine_open(url, &why);
    free(url);
    assert_non_null(g->machine);
    assert_int_equal(g->server.served, 0); /* nothing is connected by opening it */
    struct screen_options o = {.computer = machine_computer(g->machine)};
    g->stage.s = screen_open(&o, &why);
    return g->stage.s ? 0 : -1;
}

void rig_close(struct rig *g)
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

json_t *rig_await_events(struct stage *t, const char *name, size_t n)
{
    int64_t start = clock_ns();
    json_t *ev = stage_events(t, name);
    while (json_array_size(ev) < n && clock_ms_since(start) < PATIENCE_MS)
        ev = stage_events(t, name);
    assert_int_equal(json_array_size(ev), n);
    return ev;
}

void rig_expect_typed(struct stage *t, const char *text)
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
