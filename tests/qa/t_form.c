/* t_form.c - tests of the form program, which replaces a browser in tests: it looks and behaves like the
 * page that it imitates.
 *
 * tests/golden/form has images and titles that Chromium produced for the same input.
 * HOLORUN_FORM_GOLDEN=1 recreates them with a browser.
 */
#include "check.h"
#include "stage.h"

#include "base/clock.h"
#include "base/file.h"

#include <unistd.h>

#define DIR "tests/golden/form/"

struct act { /* a click at x, y; or text; or Control and a letter if `control` is set */
    int x, y;
    const char *text;
    uint32_t key, control;
};

struct scene {
    const char *name, *query, *title; /* title: a pattern for the final window title */
    struct act acts[8];
};

#define CLICK(x, y)                                                                                          \
    {                                                                                                        \
        x, y, NULL, 0, 0                                                                                     \
    }
#define TYPE(text)                                                                                           \
    {                                                                                                        \
        0, 0, text, 0, 0                                                                                     \
    }
#define KEY(key)                                                                                             \
    {                                                                                                        \
        0, 0, NULL, key, 0                                                                                   \
    }

static const struct scene scenes[] = {
    {"ticks",
     "seed=5&kind=ticks&labels=One|Two|Three&buttons=OK|No&on=0",
     "^DIALOG pressed=OK;ticked=One,Two",
     {CLICK(150, 105), CLICK(100, 135), CLICK(150, 135), CLICK(360, 195)}},
    {"options",
     "seed=6&kind=options&title=Hello&labels=One|Two|Three&buttons=OK|No&on=1",
     "^DIALOG pressed=;chosen=Three",
     {CLICK(60, 195), CLICK(150, 255)}},
    {"fields",
     "seed=9&kind=fields&labels=Name|City&values=Old%20name&buttons=OK|No",
     "^DIALOG pressed=;Name=Ana Lima;City=A very long text, too",
     {CLICK(60, 45),
      {0, 0, NULL, XK_a, XK_Control_L},
      TYPE("Ana Limit"),
      KEY(XK_BackSpace),
      KEY(XK_BackSpace),
      TYPE("a"),
      KEY(XK_Tab),
      TYPE("A very long text, too")}},
    {"buttons",
     "seed=3100017&kind=buttons&title=Lost&text=Then%20ab%20bird.&labels=Baidiad|lutntbq|ukelimgk|Klaicrook",
     "^DIALOG pressed=lutntbq",
     {CLICK(200, 20), CLICK(370, 195)}},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

/* ---- a display with a form on it ------------------------------------------------------------- */

struct show {
    struct xvfb x;
    struct screen *s;
    char log[160];
};

static void show_open(struct show *w)
{
    memset(w, 0, sizeof *w);
    screen_stop_all(0);
    if (xvfb_start(&w->x, "640x480x24", NULL))
        skip();
    snprintf(w->log, sizeof w->log, "%s/log", w->x.dir);
    struct err e = ERR_INIT;
    w->s = screen_open(NULL, &e);
    if (!w->s)
        fail_msg("%s", e.text);
}

static void show_close(struct show *w)
{
    screen_close(w->s);
    xvfb_stop(&w->x);
}

static void form_start(struct show *w, const char *query, const char *delay)
{
    const char *argv[] = {helper_path("form"), "--log", w->log, "--delay", delay, query, NULL};
    if (access(argv[0], X_OK)) {
        printf("           %s is not built\n", argv[0]);
        show_close(w);
        skip();
    }
    xvfb_spawn(&w->x, "form.log", argv);
}

static void browser_start(struct show *w, const char *query)
{
    char *dir = realpath("assets/demo/dialog.html", NULL), *url = xasprintf("file://%s?%s", dir, query);
    char *profile = xasprintf("--user-data-dir=%s/profile", w->x.dir);
    const char *argv[] = {"chromium",
                          "--no-sandbox",
                          "--test-type",
                          profile,
                          "--no-first-run",
                          "--disable-gpu",
                          "--disable-dev-shm-usage",
                          "--force-device-scale-factor=1",
                          "--kiosk",
                          url,
                          NULL};
    assert_int_equal(xvfb_window_manager(&w->x), 0);
    xvfb_spawn(&w->x, "chromium.log", argv);
    free(dir);
    free(url);
    free(profile);
}

static void act(struct show *w, const struct act *a)
{
    const uint32_t chord[] = {a->control, a->key};
    if (a->text)
        must(screen_type(w->s, a->text, strlen(a->text), &why));
    else if (a->key)
        must(screen_chord(w->s, a->control ? chord : chord + 1, a->control ? 2 : 1, &why));
    else if (a->x)
        must(screen_click(w->s, a->x, a->y, 1, 1, &why));
}

static void assert_title(struct show *w, const char *pattern)
{
    char title[512] = "";
    if (!xvfb_wait_window(&w->x, pattern)) {
        xvfb_find_window(w->s, "^DIALOG", title, sizeof title, NULL);
        fail_msg("no window '%s'; there is '%s'", pattern, title);
    }
}

static bool log_has(const struct show *w, const char *line)
{
    char *text;
    size_t len;
    assert_int_equal(file_read(w->log, 1 << 20, &text, &len, NULL), 0);
    bool has = strstr(text, line);
    free(text);
    return has;
}

/* ---- tests ------------------------------------------------------------------------------------ */

/* Counts pixels with a channel that differs by more than `level`. */
static int pixels_off(const struct image *a, const struct image *b, int level)
{
    int n = 0;
    assert_int_equal(a->w, b->w);
    assert_int_equal(a->h, b->h);
    for (int i = 0; i < a->w * a->h; i++) {
        int most = 0;
        for (int k = 0; k < 3; k++) {
            int off = abs(a->rgb[3 * i + k] - b->rgb[3 * i + k]);
            most = off > most ? off : most;
        }
        n += most > level;
    }
    return n;
}

static void t_looks(void **state)
{
    bool write = getenv("HOLORUN_FORM_GOLDEN");
    for (int k = 0; k < SCENES; k++) {
        const struct scene *c = &scenes[k];
        struct image golden = {0}, now = {0};
        struct settled rest;
        struct show w;
        char *path = xasprintf(DIR "%s.png", c->name);
        show_open(&w);
        if (write)
            browser_start(&w, c->query);
        else
            form_start(&w, c->query, "0");
        assert_title(&w, "^DIALOG pressed=");
        must(screen_settle(w.s, NULL, &rest, &why));
        for (size_t i = 0; i < sizeof c->acts / sizeof *c->acts; i++)
            act(&w, &c->acts[i]);
        assert_title(&w, c->title);
        must(screen_settle(w.s, NULL, &rest, &why));
        must(screen_capture(w.s, &now, &why));
        if (write) {
            must(image_write_png(&now, path, &why));
        } else {
            must(image_read_png(&golden, path, &why));
            int off = pixels_off(&golden, &now, 24), far = pixels_off(&golden, &now, 96);
            check_note(
                "%-8s %4d of %d pixels differ from the browser's by more than 24 of 255, %d by more than 96",
                c->name, off, now.w * now.h, far);
            assert_in_range(off, 0, 1500);
            assert_int_equal(far, 0);
        }
        image_free(&golden);
        image_free(&now);
        free(path);
        show_close(&w);
    }
}

static void t_log(void **state)
{
    struct show w;
    show_open(&w);
    form_start(&w, "dialog.html?seed=9&kind=fields&labels=Name|City&buttons=OK", "0");
    assert_title(&w, "^DIALOG pressed=;Name=;City=$");
    must(screen_click(w.s, 60, 45, 1, 1, &why));
    must(screen_type(w.s, "é0", 3, &why));
    assert_title(&w, "^DIALOG pressed=;Name=é0;City=$");
    must(screen_click(w.s, 300, 350, 1, 1, &why)); /* on the background: the field loses the focus */
    must(screen_type(w.s, "x", 1, &why));
    must(screen_click(w.s, 60, 135, 1, 1, &why));
    must(screen_type(w.s, "y", 1, &why));
    assert_title(&w, "^DIALOG pressed=;Name=é0;City=y$");
    assert_true(log_has(&w, "button 1 down 60 45\nbutton 1 up 60 45\n"));
    assert_true(log_has(&w, "key 0 down\n"));
    assert_true(log_has(&w, "title DIALOG pressed=;Name=é0;City=y\n"));
    show_close(&w);
}

static void t_slow(void **state)
{
    struct show w;
    struct image before = {0}, now = {0};
    show_open(&w);
    form_start(&w, "seed=5&kind=ticks&labels=One|Two|Three&buttons=OK|No", "1.5");
    assert_title(&w, "^DIALOG is busy$");
    must(screen_click(w.s, 360, 195, 1, 1, &why));
    int64_t start = clock_ns();
    assert_title(&w, "^DIALOG pressed=;ticked=$"); /* an early click was ignored */
    must(screen_click(w.s, 150, 105, 1, 1, &why)); /* a checkbox reacts at once */
    assert_title(&w, "^DIALOG pressed=;ticked=Two$");
    must(screen_capture(w.s, &before, &why));
    must(screen_click(w.s, 360, 195, 1, 1, &why));
    must(screen_click(w.s, 150, 75, 1, 1, &why)); /* ignored as well */
    assert_title(&w, "^DIALOG pressed=OK;ticked=Two$");
    check_note("shown and pressed %.0f ms after the first click", clock_ms_since(start));
    assert_true(clock_ms_since(start) > 1500);
    struct settled rest;
    must(screen_settle(w.s, NULL, &rest, &why));
    must(screen_capture(w.s, &now, &why));
    assert_in_range(pixels_off(&before, &now, 24), 1000,
                    40000); /* the button and the report changed, and the progress bar is gone */
    image_free(&before);
    image_free(&now);
    show_close(&w);
}

static void t_small(void **state)
{
    struct show w;
    show_open(&w);
    form_start(&w, "seed=5&kind=ticks&labels=One|Two|Three&buttons=OK|No", "0");
    assert_title(&w, "^DIALOG pressed=");
    char *path = xasprintf("/proc/%d/smaps_rollup", (int)w.x.children[w.x.n_children - 1]), *text;
    size_t len;
    long private = 0;
    assert_int_equal(file_read(path, 1 << 16, &text, &len, NULL), 0);
    for (const char *p = text; (p = strstr(p, "Private_")); p++)
    private += strtol(strchr(p, ':') + 1, NULL, 10);
    check_note("%ld KB of memory of its own", private);
    assert_in_range(private, 1, 15000);
    free(path);
    free(text);
    show_close(&w);
}

static void t_wrong(void **state)
{
    static const char *const wrong[] = {"kind=circles", "seed=x", "on=17", "values=%ff", "colour=red"};
    struct show w;
    show_open(&w);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *argv[] = {helper_path("form"), wrong[i], NULL};
        assert_int_equal(xvfb_run(&w.x, argv), ERR_USAGE);
    }
    show_close(&w);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a form looks as the browser shows its page, after the same clicks and keys", t_looks),
    CLAIM("a form records its input, and typing goes to the focused field only", t_log),
    CLAIM("a slow form shows the effect of a click later, and ignores input until then", t_slow),
    CLAIM("a form needs less than 15 MB of its own", t_small),
    CLAIM("a form refuses unknown parameters", t_wrong),
};

CHECK_MAIN()
