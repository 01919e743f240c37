/* t_host_places.c - tests the access of callers of `holorun mcp` and `holorun acp`: one display, no secret,
 * and no permission that a user has not given.
 */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "driven.h"
#include "hosted.h"
#include "screen/x11/displays.h"

#include <X11/Xutil.h>
#include <unistd.h>

#define SAVE  CLICK(300, 300) TYPE("abc") ANSWER("Done.")
#define PAY   CLICK_ON("Pay now", 300, 300) ANSWER("Paid.")
#define VALUE "quokka-4417-willow"

static void begin(struct hosted *h, const struct stage *t, const char *replies, const char *const *more)
{
    hosted_start_with(h, t, "mcp", replies, more);
    hosted_say(h, HELLO);
    hosted_answer(h, 1);
}

/* ---- names of displays ------------------------------------------------------------------------------- */

/* All spellings that Xlib maps to the same server are equal; others are not. */
static void t_names(void **state)
{
    static const char *const same[] = {":%s",
                                       ":%s.0",
                                       ":%s.1",
                                       "unix:%s",
                                       "unix:%s.0",
                                       "localhost:%s",
                                       "127.0.0.1:%s",
                                       "[::1]:%s",
                                       "tcp/localhost:%s",
                                       "unix/other:%s",
                                       "unix/:%s",
                                       "other/unix:%s",
                                       "LOCALHOST:%s",
                                       "/tmp/.X11-unix/X%s",
                                       "unix:/tmp/.X11-unix/X%s",
                                       "/tmp/../tmp/.X11-unix/X%s.0"};
    static const char *const other[] = {":%s1", "elsewhere:%s", "192.0.2.1:%s", "/tmp/.X11-unix/X%s1"};
    struct xvfb x;
    char name[DISPLAY_NAME_MAX], is[DISPLAY_NAME_MAX];
    if (xvfb_start(&x, "640x480x24", NULL))
        skip();
    for (size_t i = 0; i < sizeof same / sizeof *same + sizeof other / sizeof *other; i++) {
        size_t k = i - sizeof same / sizeof *same;
        bool equal = i < sizeof same / sizeof *same;
        snprintf(name, sizeof name, equal ? same[i] : other[k], x.display + 1);
        displays_canonical(name, is);
        if (displays_same(name, x.display) != equal || (equal && strcmp(is, x.display) != 0))
            fail_msg("%s is %s", name, is);
    }
    assert_true(displays_same(NULL, x.display)); /* $DISPLAY */
    char *link = xvfb_place(&x, "link");
    snprintf(name, sizeof name, "/tmp/.X11-unix/X%s", x.display + 1);
    assert_int_equal(symlink(name, link), 0);
    assert_true(displays_same(link, x.display));
    free(link);
    xvfb_stop(&x);
    assert_false(displays_same("localhost:64999", ":64999")); /* without a socket it may be ssh's */
}

/* ---- display ----------------------------------------------------------------------------------------- */

static const char *refusal(struct hosted *h, int id)
{
    const json_t *answer = hosted_answer(h, id);
    const char *text = json_string_value(json_object_get(hosted_told(answer), "error"));
    return hosted_is_error(answer) && text ? text : "";
}

static void call_with_display(struct hosted *h, int id, const char *tool, const char *more,
                              const char *display)
{
    char *call = xasprintf(TOOL(% d, "%s", "{%s\"display\":\"%s\"}"), id, tool, more, display);
    hosted_say(h, call);
    free(call);
}

/* The caller sees and controls the private desktop; its own display gets nothing. */
static void t_desk(void **state)
{
    static const char *const commands[] = {"mcp", "acp"};
    struct stage t;
    driven_open(&t);
    for (int i = 0; i < 2; i++) {
        struct hosted h;
        char *there = xvfb_place(&t.x, "there");
        char *start = xasprintf("'%s' '%s' --geometry 640x480+0+0", helper_path("xclient"), there);
        hosted_start_with(&h, &t, commands[i], SAVE, WORDS("--on", "desk:640x480", "--start", start));
        if (i == 0) {
            hosted_say(&h, HELLO);
            hosted_answer(&h, 1);
            hosted_say(&h, TOOL(2, "screenshot", "{}"));
            const json_t *size = json_object_get(hosted_told(hosted_answer(&h, 2)), "picture_size");
            assert_int_equal(json_integer_value(json_array_get(size, 0)), 640);
            hosted_say(&h, TOOL(3, "act", "{\"action\":\"click\",\"x\":30,\"y\":40,\"picture\":false}"));
            assert_false(hosted_is_error(hosted_answer(&h, 3)));
            call_with_display(&h, 4, "screenshot", "", t.x.display);
            assert_non_null(strstr(refusal(&h, 4), "is not the display of this server"));
            hosted_say(&h, TOOL(5, "run_task", "{\"task\":\"Press Save\",\"wait_s\":20}"));
            assert_string_equal(hosted_status(hosted_answer(&h, 5)), "answered");
        } else {
            hosted_say(&h, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{}}");
            const json_t *made = json_object_get(hosted_answer(&h, 1), "result");
            char *ask = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/prompt\",\"params\":{"
                                  "\"sessionId\":\"%s\",\"prompt\":\"Press Save\"}}",
                                  json_string_value(json_object_get(made, "sessionId")));
            hosted_say(&h, ask);
            hosted_answer(&h, 2);
            free(ask);
        }
        assert_int_equal(hosted_end(&h), 0);
        char *look = xasprintf("[ $(grep -c button_press '%s') = %d ]", there, 2 - i);
        assert_int_equal(system(look), 0);
        unlink(there);
        free(look);
        free(start);
        free(there);
        assert_int_equal(json_array_size(stage_events(&t, NULL)), 0);
    }
    driven_left_nothing(&t);
    stage_close(&t);
}

/* One server works on one display, in any spelling of its name. */
static void t_display(void **state)
{
    static const struct {
        const char *tool, *more;
    } tools[] = {{"screenshot", ""},
                 {"windows", ""},
                 {"act", "\"action\":\"click\",\"x\":5,\"y\":5,"},
                 {"run_task", "\"task\":\"Press Save\","}};
    static const char *const own[] = {":%s", ":%s.0", "unix:%s", "localhost:%s", "/tmp/.X11-unix/X%s"};
    struct stage t;
    struct xvfb other;
    struct hosted h;
    int id = 10;
    driven_open(&t);
    assert_int_equal(xvfb_start_beside(&other, "640x480x24", &t.x), 0);
    begin(&h, &t, SAVE, NULL);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        char name[64];
        snprintf(name, sizeof name, own[i], t.x.display + 1);
        call_with_display(&h, ++id, "screenshot", "", name);
        if (hosted_is_error(hosted_answer(&h, id)))
            fail_msg("%s is the same display", name);
        snprintf(name, sizeof name, own[i], other.display + 1);
        for (size_t k = 0; k < sizeof tools / sizeof *tools; k++) {
            call_with_display(&h, ++id, tools[k].tool, tools[k].more, name);
            if (!strstr(refusal(&h, id), "is not the display of this server"))
                fail_msg("%s reaches %s", tools[k].tool, name);
        }
    }
    assert_int_equal(hosted_end(&h), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    xvfb_stop(&other);
    stage_close(&t);
}

/* A client that cannot ask a user, and a model that would agree. */
static void t_unasked(void **state)
{
    struct stage t;
    struct hosted h;
    driven_open(&t);
    begin(&h, &t, PAY, NULL);
    hosted_say(&h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
    char *list = json_dumps(hosted_answer(&h, 2), 0);
    assert_null(strstr(list, "run_answer"));
    free(list);
    hosted_say(&h, TOOL(3, "run_task", "{\"task\":\"Pay\",\"wait_s\":20}"));
    const json_t *told = hosted_told(hosted_answer(&h, 3));
    const char *refused = json_string_value(json_object_get(told, "refused"));
    assert_true(refused && strstr(refused, "Pay now") && strstr(refused, "--confirm"));
    hosted_say(&h, TOOL(4, "run_answer", "{\"run_id\":\"run-0\",\"allow\":true}"));
    assert_non_null(strstr(refusal(&h, 4), "is disabled"));
    hosted_say(&h, TOOL(5, "act", "{\"action\":\"click\",\"element\":\"Pay now\",\"x\":300,\"y\":300}"));
    assert_true(hosted_is_error(hosted_answer(&h, 5)));
    assert_int_equal(hosted_end(&h), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_press")), 0);
    stage_close(&t);
}

/* ---- secrets ----------------------------------------------------------------------------------------- */

/* Two Tk windows, which source lines of Tcl from a file. */
static const char program[] =
    "wm title . field\n"
    "wm geometry . 360x120+20+20\n"
    "entry .e -font {Courier 14} -highlightthickness 0\n"
    "place .e -x 20 -y 20 -width 320 -height 60\n"
    "toplevel .n\n"
    "wm title .n notes\n"
    "wm geometry .n 700x150+20+300\n"
    "text .n.t -font {Helvetica 26}\n"
    "place .n.t -x 0 -y 0 -width 700 -height 150\n"
    "proc look {} {\n"
    "  if {[file exists $::argv0.do]} { catch {source $::argv0.do}; update; file delete $::argv0.do }\n"
    "  after 20 look\n"
    "}\n"
    "look\n";

struct tk {
    struct stage t;
    struct hosted h;
    char *script;
    int id;
};

static void tcl(const struct tk *k, const char *line)
{
    char *path = xasprintf("%s.do", k->script);
    assert_int_equal(file_write(path, line, strlen(line), NULL), 0);
    for (int i = 0; i < 1000 && file_exists(path); i++)
        clock_sleep_ms(20);
    assert_false(file_exists(path));
    free(path);
    clock_sleep_ms(300); /* drawn */
}

/* Takes a screenshot as the caller. */
static void look(struct tk *k, const char *arguments, struct image *out)
{
    char *call = xasprintf(TOOL(% d, "screenshot", "%s"), ++k->id, arguments);
    char *path = xvfb_place(&k->t.x, "look.png"), *shell = xasprintf("base64 -d >'%s'", path);
    hosted_say(&k->h, call);
    const json_t *content =
        json_object_get(json_object_get(hosted_answer(&k->h, k->id), "result"), "content");
    const char *data = json_string_value(json_object_get(json_array_get(content, 1), "data"));
    assert_non_null(data);
    FILE *f = popen(shell, "w");
    assert_non_null(f);
    assert_true(fputs(data, f) >= 0);
    assert_int_equal(pclose(f), 0);
    assert_int_equal(image_read_png(out, path, NULL), 0);
    free(call);
    free(path);
    free(shell);
}

/* Performs an action. It is compared with the last screenshot, so one is taken first. */
static void act(struct tk *k, const char *arguments)
{
    struct image seen = {0};
    look(k, "{}", &seen);
    image_free(&seen);
    char *call = xasprintf(TOOL(% d, "act", "{\"picture\":false,%s}"), ++k->id, arguments);
    hosted_say(&k->h, call);
    const json_t *answer = hosted_answer(&k->h, k->id);
    if (hosted_is_error(answer))
        fail_msg("%s: %s", arguments, json_dumps(answer, 0));
    free(call);
}

/* Returns the bounding box of the text within a part of the screen; w 0: no dark pixels. */
static struct screen_rect text_on_display(const struct tk *k, struct screen_rect r, struct image *text)
{
    XImage *im = XGetImage(k->t.other, DefaultRootWindow(k->t.other), r.x, r.y, (unsigned)r.w, (unsigned)r.h,
                           AllPlanes, ZPixmap);
    struct screen_rect box = {r.w, r.h, 0, 0};
    int x1 = -1, y1 = -1;
    assert_non_null(im);
    for (int y = 4; y < r.h - 4; y++)
        for (int x = 4; x < r.w - 4; x++)
            if ((XGetPixel(im, x, y) & 0xff) < 90) {
                box.x = x < box.x ? x : box.x;
                box.y = y < box.y ? y : box.y;
                x1 = x > x1 ? x : x1;
                y1 = y > y1 ? y : y1;
            }
    box.w = x1 < 0 ? 0 : x1 - box.x + 1;
    box.h = y1 < 0 ? 0 : y1 - box.y + 1;
    assert_true(box.w > 40 && box.h > 6); /* there is text */
    assert_int_equal(image_alloc(text, box.w, box.h, NULL), 0);
    for (int y = 0; y < box.h; y++)
        for (int x = 0; x < box.w; x++) {
            unsigned long p = XGetPixel(im, box.x + x, box.y + y);
            uint8_t *to = text->rgb + 3 * (y * box.w + x);
            to[0] = (uint8_t)(p >> 16);
            to[1] = (uint8_t)(p >> 8);
            to[2] = (uint8_t)p;
        }
    XDestroyImage(im);
    return (struct screen_rect){r.x + box.x, r.y + box.y, box.w, box.h};
}

/* Returns the percentage of a text's dark pixels that the caller's screenshot shows. */
static int shown(struct tk *k, const char *arguments, struct screen_rect within)
{
    struct image text = {0}, seen = {0};
    struct screen_rect at = text_on_display(k, within, &text);
    int dark = 0, same = 0;
    look(k, arguments, &seen);
    for (int y = 0; y < at.h; y++)
        for (int x = 0; x < at.w; x++) {
            const uint8_t *was = text.rgb + 3 * (y * at.w + x);
            const uint8_t *is = seen.rgb + 3 * ((at.y + y) * seen.w + at.x + x);
            dark += was[2] < 90;
            same += was[2] < 90 && is[2] < 90;
        }
    image_free(&text);
    image_free(&seen);
    return 100 * same / dark;
}

static void hidden(struct tk *k, const char *when, const char *arguments, struct screen_rect within)
{
    int percent = shown(k, arguments, within);
    if (percent)
        fail_msg("%s, %s: %d %% of the secret is shown", when, arguments, percent);
}

static bool open_tk_with(struct tk *k, const char *const *option)
{
    *k = (struct tk){.id = 10};
    if (system("command -v wish >/dev/null"))
        return false;
    driven_open(&k->t);
    k->script = xvfb_put(&k->t.x, "program.tcl", program);
    const char *argv[] = {"/bin/sh", "-c", "exec wish \"$0\"", k->script, NULL};
    xvfb_spawn(&k->t.x, "wish.log", argv);
    assert_true(xvfb_wait_window(&k->t.x, "^notes$"));
    tcl(k, "raise .n; raise .");
    setenv("SECRET", VALUE, 1);
    begin(&k->h, &k->t, SAVE, option);
    unsetenv("SECRET");
    return true;
}

static bool open_tk(struct tk *k)
{
    return open_tk_with(k, WORDS("--secret", "PASSWORD=env:SECRET", "--confirm", "yes-to-all"));
}

/* Checks that the server cannot dump a core with the secret. */
static void assert_no_core(const struct tk *k)
{
    char *look = xasprintf("grep -q 'Max core file size *0 *0 ' /proc/%d/limits", (int)k->h.pid);
    assert_int_equal(system(look), 0);
    free(look);
}

static void close_tk(struct tk *k)
{
    assert_int_equal(hosted_end(&k->h), 0);
    free(k->script);
    stage_close(&k->t);
}

static const struct screen_rect field_at = {40, 40, 320, 60}, notes_at = {20, 300, 700, 150};

static void type_secret(struct tk *k)
{
    act(k, "\"action\":\"click\",\"x\":100,\"y\":70");
    tcl(k, "focus -force .e");
    act(k, "\"action\":\"type\",\"text\":\"{{PASSWORD}}\"");
}

static const char *in_another_font(struct tk *k)
{
    tcl(k, ".e configure -font {Helvetica 20}; .e configure -insertwidth 0");
    return "in another font";
}

/* Ends the current run. */
static void stop_run(struct tk *k)
{
    hosted_say(&k->h, TOOL(5, "run_task", "{\"task\":\"Press Save\",\"wait_s\":20}"));
    json_t *answer = hosted_answer(&k->h, 5);
    char *call = xasprintf(TOOL(6, "run_stop", "{\"run_id\":\"%s\"}"),
                           json_string_value(json_object_get(hosted_told(answer), "run_id")));
    hosted_say(&k->h, call);
    hosted_answer(&k->h, 6);
    free(call);
}

/* Gives the field's own window another parent, at 400,100 of the screen. */
static void reparent(struct tk *k)
{
    char *path = xvfb_place(&k->t.x, "id"),
         *line = xasprintf("set f [open {%s} w]; puts $f [winfo id .e]; close $f", path), *text;
    size_t len;
    tcl(k, line);
    assert_int_equal(file_read(path, 100, &text, &len, NULL), 0);
    XSetWindowAttributes a = {.background_pixel = 0xffffff, .override_redirect = True};
    Window dock =
        XCreateWindow(k->t.other, DefaultRootWindow(k->t.other), 390, 90, 400, 120, 0, CopyFromParent,
                      InputOutput, CopyFromParent, CWBackPixel | CWOverrideRedirect, &a);
    XMapRaised(k->t.other, dock);
    XReparentWindow(k->t.other, strtoul(text, NULL, 0), dock, 10, 10);
    XMapWindow(k->t.other, strtoul(text, NULL, 0));
    XSync(k->t.other, False);
    clock_sleep_ms(500);
    free(path);
    free(line);
    free(text);
}

/* A field with a secret is covered as long as its window and the server exist. */
static void t_stays_covered(void **state)
{
    struct tk k;
    char own[64], *canonical;
    struct screen_rect moved = {120, 170, 320, 60}, docked = {400, 100, 320, 60};
    if (!open_tk(&k))
        skip();
    snprintf(own, sizeof own, "{\"display\":\"%s.0\"}", k.t.x.display);
    canonical = xasprintf("{\"display\":\"unix%s\"}", k.t.x.display);
    assert_no_core(&k);
    tcl(&k, ".e insert 0 {not a secret}");
    assert_true(shown(&k, "{}", field_at) > 90); /* ordinary text is visible */
    tcl(&k, ".e delete 0 end");
    type_secret(&k);
    hidden(&k, "typed", "{}", field_at);
    hidden(&k, "typed", own, field_at);
    hidden(&k, "typed", canonical, field_at);
    hidden(&k, in_another_font(&k), "{}", field_at);
    stop_run(&k);
    hidden(&k, "after the run and another one", "{}", field_at);
    hidden(&k, "after the run and another one", own, field_at);
    tcl(&k, "wm geometry . +100+150");
    hidden(&k, "moved", "{}", moved);
    tcl(&k, "wm withdraw .");
    struct image away = {0};
    look(&k, "{}", &away);
    image_free(&away);
    tcl(&k, "wm deiconify .; raise .");
    hidden(&k, "shown again", "{}", moved);
    reparent(&k);
    hidden(&k, "with another parent", "{}", docked);
    free(canonical);
    close_tk(&k);
}

/* A pasted secret needs the same confirmation as a typed one, and the question does not contain it. */
static void t_pasted_is_asked(void **state)
{
    static const char *const options[] = {"--secret", "PASSWORD=env:SECRET", "--confirm", "caller", NULL};
    static const char *const parts[] = {VALUE, "uokka-4417"};
    struct tk k;
    if (!open_tk_with(&k, options))
        skip();
    act(&k, "\"action\":\"click\",\"x\":300,\"y\":400");
    tcl(&k, "focus -force .n.t");
    for (int i = 0; i < 2; i++) {
        char *copy = xasprintf("clipboard clear; clipboard append {%s}", parts[i]);
        tcl(&k, copy);
        free(copy);
        char *call = xasprintf(TOOL(% d, "act", "{\"action\":\"key\",\"keys\":[\"ctrl\",\"v\"]}"), ++k.id);
        hosted_say(&k.h, call);
        free(call);
        const json_t *told = hosted_told(hosted_answer(&k.h, k.id));
        const char *question = json_string_value(json_object_get(told, "question"));
        if (!question || !strstr(question, "{{PASSWORD}}") || strstr(question, "4417"))
            fail_msg("%s", json_dumps(told, 0));
        call = xasprintf(TOOL(% d, "run_answer", "{\"run_id\":\"%s\",\"allow\":false}"), ++k.id,
                         json_string_value(json_object_get(told, "run_id")));
        hosted_say(&k.h, call);
        free(call);
        assert_true(hosted_is_error(hosted_answer(&k.h, k.id)));
    }
    close_tk(&k);
}

static void t_pasted(void **state)
{
    struct tk k;
    if (!open_tk(&k))
        skip();
    type_secret(&k);
    act(&k, "\"action\":\"key\",\"keys\":[\"ctrl\",\"slash\"]"); /* Tk selects all */
    act(&k, "\"action\":\"key\",\"keys\":[\"ctrl\",\"c\"]");
    act(&k, "\"action\":\"click\",\"x\":300,\"y\":400");
    tcl(&k, "focus -force .n.t; .n.t configure -insertwidth 0");
    act(&k, "\"action\":\"key\",\"keys\":[\"ctrl\",\"v\"]");
    hidden(&k, "pasted by keys", "{}", notes_at);
    stop_run(&k);
    hidden(&k, "pasted by keys, after the run", "{}", notes_at);
    tcl(&k, ".n.t delete 1.0 end; .e selection range 0 10");
    act(&k, "\"action\":\"click\",\"button\":\"middle\",\"x\":60,\"y\":320");
    hidden(&k, "a part of it, pasted by the middle button", "{}", notes_at);
    close_tk(&k);
}

static const struct CMUnitTest tests[] = {
    CLAIM("all spellings of a display's name are equal", t_names),
    CLAIM("with --on desk all tools work there, and the caller's display gets nothing", t_desk),
    CLAIM("a server works only on its own display, in every spelling of the name", t_display),
    CLAIM("a question without a user to ask is refused, and the caller cannot answer it", t_unasked),
    CLAIM("a secret stays covered across runs, moves, another font and another parent", t_stays_covered),
    CLAIM("pasting a secret or a part of it needs confirmation, which does not show it", t_pasted_is_asked),
    CLAIM("a copied and pasted secret is covered at the new position", t_pasted),
};

CHECK_MAIN()
