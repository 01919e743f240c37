/* t_secret_run.c - tests of secrets in a run: the model sees their names, only the field gets their values.
 *
 * A canary value is typed into a window that shows it in clear.  Then every byte of the run directory,
 * every printed line and every pixel of every recorded screen is searched for it.
 */
#include "check.h"
#include "driven.h"

#include "base/file.h"

#include <X11/Xutil.h>
#include <dirent.h>

#define PLAIN "quokka-4417-willow"
enum { FIELD_X = 50, FIELD_Y = 50 };

/* ---- a run ----------------------------------------------------------------------------------- */

/* Calls `see` for each file in a directory tree and returns their number. */
static int each_file(const char *dir, void (*see)(void *arg, const char *path), void *arg)
{
    DIR *d = opendir(dir);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        char *path = NULL;
        if (f->d_name[0] == '.')
            continue;
        assert_true(asprintf(&path, "%s/%s", dir, f->d_name) > 0);
        if (f->d_type == DT_DIR)
            n += each_file(path, see, arg);
        else
            see(arg, path), n++;
        free(path);
    }
    closedir(d);
    return n;
}

/* Searches every byte of a file, also reversed and as UTF-16. */
static void holds_no_canary(void *arg, const char *path)
{
    const char *text = arg;
    char *data, wide[256];
    size_t len, n = strlen(text);
    assert_int_equal(file_read(path, 64 << 20, &data, &len, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        wide[2 * i] = text[i];
        wide[2 * i + 1] = 0;
    }
    if (memmem(data, len, text, n) || memmem(data, len, wide, 2 * n))
        fail_msg("%s holds the canary", path);
    free(data);
}

struct seen { /* the image of the typed text, and the number of matches */
    struct image glyphs;
    int pictures, hits;
    char last[256];
};

static int occurrences(const struct image *im, const struct image *g)
{
    int n = 0;
    for (int y = 0; y + g->h <= im->h; y++) {
        for (int x = 0; x + g->w <= im->w; x++) {
            int j = 0;
            while (j < g->h && !memcmp(im->rgb + 3 * ((size_t)(y + j) * (size_t)im->w + (size_t)x),
                                       g->rgb + 3 * (size_t)j * (size_t)g->w, 3 * (size_t)g->w))
                j++;
            n += j == g->h;
        }
    }
    return n;
}

static void look_at_picture(void *arg, const char *path)
{
    struct seen *s = arg;
    struct image im = {0};
    if (!strstr(path, ".png"))
        return;
    assert_int_equal(image_read_png(&im, path, NULL), 0);
    s->pictures++;
    if (occurrences(&im, &s->glyphs)) {
        s->hits++;
        snprintf(s->last, sizeof s->last, "%s", path);
    }
    image_free(&im);
}

/* Copies the first characters of the field from the display, cropped to their ink. */
static void read_glyphs(Display *d, int x, int y, struct image *out)
{
    enum { W = 40, H = 12 };
    XImage *im = XGetImage(d, DefaultRootWindow(d), x, y, W, H, AllPlanes, ZPixmap);
    assert_non_null(im);
    assert_int_equal(image_alloc(out, W, H, NULL), 0);
    int ink = 0;
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            unsigned long p = XGetPixel(im, i, j);
            uint8_t *to = out->rgb + 3 * (j * W + i);
            to[0] = (uint8_t)(p >> 16);
            to[1] = (uint8_t)(p >> 8);
            to[2] = (uint8_t)p;
            ink += to[0] < 128;
        }
    assert_true(ink > 20); /* the field is not empty */
    XDestroyImage(im);
}

struct fields { /* a stage with a field that shows typed text */
    struct stage t;
    char *typed;
};

static void open_fields(struct fields *f)
{
    driven_open(&f->t);
    f->typed = xvfb_place(&f->t.x, "typed");
    const char *argv[] = {helper_path("xfield"), f->typed, NULL};
    xvfb_spawn(&f->t.x, "xfield.log", argv);
    assert_true(xvfb_wait_window(&f->t.x, "^xfield$"));
}

static void close_fields(struct fields *f)
{
    free(f->typed);
    stage_close(&f->t);
}

static void assert_typed(const struct fields *f, const char *text)
{
    char *data;
    size_t len;
    assert_int_equal(file_read(f->typed, 1 << 16, &data, &len, NULL), 0);
    assert_string_equal(data, text);
    free(data);
}

#define FILL(text)  CLICK(125, 115) TYPE(text)
#define WRITE(text) "password<write>the field<at><7><.6><3><.4>" text "\n" /* clicks, empties, types */
#define DONE        "done<done>Done.\n"
#define PRESS(key)  STEP("\"hotkey_desktop\", \"keys\": [\"" key "\"]")

/* Searches the run's directory and output. */
static void search_run(const struct fields *f, const struct outcome *o, const char *canary, struct seen *s)
{
    char *runs = xvfb_place(&f->t.x, "runs"), *dir = record_newest(runs, NULL);
    assert_true(each_file(dir, holds_no_canary, (void *)(uintptr_t)canary) > 5);
    assert_null(strstr(o->out, canary));
    assert_null(strstr(o->err, canary));
    each_file(dir, look_at_picture, s);
    free(dir);
    free(runs);
}

/* Types the canary, scrolls, shows it twice, and has it in the title and in the model's own words. */
static void t_canary(void **state)
{
    static const char echo[] = "{\"note\": \"the field says " PLAIN "\", \"thought\": \"it was " PLAIN
                               "\", \"tool_call\": {\"tool_name\": \"click_desktop\", \"element\": \"" PLAIN
                               "\", \"x\": 125, \"y\": 300}}\n";
    static const char script[] = FILL("{{PASSWORD}}") CLICK(125, 300) PRESS("F2") PRESS("F3") PRESS("F4")
        CLICK(125, 300) PRESS("F2") CLICK(125, 300);
    struct fields f = {0};
    struct outcome o = {0};
    struct seen s = {0};
    struct record r;
    char *replies = NULL;
    assert_true(asprintf(&replies, "%s%s%s", script, echo,
                         STEP("\"answer\", \"content\": \"The password is " PLAIN ".\"")) > 0);
    open_fields(&f);
    setenv("SECRET", PLAIN, 1);
    driven_run(&f.t, replies,
               WORDS("--secret", "PASSWORD=env:SECRET", "--confirm", "yes-to-all", "--verbose"), &o);
    unsetenv("SECRET");
    if (o.code != ERR_UNVERIFIED) /* the last click has no effect */
        fail_msg("exit %d: %s", o.code, o.err);
    assert_typed(&f, PLAIN);
    assert_string_equal(o.out, "unverified: The password is {{PASSWORD}}.\n");

    driven_read(&f.t, &r);
    const json_t *gate = NULL;
    for (int i = 0; i < r.n; i++)
        if (!strcmp(r.events[i].kind, "gate") &&
            !strcmp(field_text(r.events[i].fields, "rule"), "typing a secret"))
            gate = r.events[i].fields;
    assert_non_null(gate);
    assert_non_null(strstr(field_text(r.events[0].fields, "system"), "{{PASSWORD}}"));
    record_free(&r);

    /* the text is in two positions on the display, scrolled by 37 twice */
    read_glyphs(f.t.other, FIELD_X + 12, FIELD_Y + 24 + 2 * 37 - 9, &s.glyphs);
    search_run(&f, &o, PLAIN, &s);
    if (s.hits)
        fail_msg("%d of %d images show the canary, the last is %s", s.hits, s.pictures, s.last);
    check_note("%d files and images without the canary", s.pictures);
    image_free(&s.glyphs);
    outcome_free(&o);
    free(replies);
    close_fields(&f);
}

/* Types the secret into the field, with one more option or NULL. */
static void type_secret(struct fields *f, struct outcome *o, const char *more)
{
    open_fields(f);
    setenv("SECRET", PLAIN, 1);
    driven_run(&f->t, FILL("{{PASSWORD}}") CLICK(125, 300) ANSWER("Done."),
               WORDS("--secret", "PASSWORD=env:SECRET", "--confirm", "yes-to-all", more), o);
}

/* Without redaction the same search finds the canary, so the search works. */
static void t_search_works(void **state)
{
    struct fields f = {0};
    struct outcome o = {0};
    struct seen s = {0};
    type_secret(&f, &o, "--no-redact-frames");
    unsetenv("SECRET");
    assert_int_equal(o.code, ERR_UNVERIFIED);
    read_glyphs(f.t.other, FIELD_X + 12, FIELD_Y + 24 - 9, &s.glyphs);
    search_run(&f, &o, PLAIN, &s); /* still not found in text files */
    assert_true(s.hits > 0);
    image_free(&s.glyphs);
    outcome_free(&o);
    close_fields(&f);
}

/* In a redacted image the field has two colours, whatever was typed. */
static void t_field(void **state)
{
    struct fields f = {0};
    struct outcome o = {0};
    struct record r;
    open_fields(&f);
    setenv("SECRET", PLAIN, 1);
    driven_run(&f.t, FILL("{{PASSWORD}}") WAIT(0.1) ANSWER("Done."),
               WORDS("--secret", "PASSWORD=env:SECRET", "--confirm", "yes-to-all"), &o);
    unsetenv("SECRET");
    if (o.code)
        fail_msg("exit %d: %s", o.code, o.err);
    driven_read(&f.t, &r);
    int64_t frame = field_int(driven_last(&r, "observe"), "frame");
    char *path = NULL;
    struct image im = {0}, progress = {0};
    assert_true(asprintf(&path, "%s/frames/%06d.png", r.dir, (int)frame) > 0);
    assert_int_equal(image_read_png(&im, path, NULL), 0);
    read_glyphs(f.t.other, FIELD_X + 12, FIELD_Y + 24 - 9, &progress);
    uint8_t colours[8][3];
    int n = 0;
    for (int y = 0; y < progress.h; y++) {
        for (int x = 0; x < progress.w; x++) {
            const uint8_t *p =
                im.rgb + 3 * ((size_t)(FIELD_Y + 15 + y) * (size_t)im.w + (size_t)(FIELD_X + 12 + x));
            int k = 0;
            while (k < n && memcmp(colours[k], p, 3) != 0)
                k++;
            if (k == n && n < 8)
                memcpy(colours[n++], p, 3);
        }
    }
    if (n != 2)
        fail_msg("%d colours in %s", n, path);
    image_free(&im);
    image_free(&progress);
    free(path);
    record_free(&r);
    outcome_free(&o);
    close_fields(&f);
}

/* ---- allowed targets ------------------------------------------------------------------------- */

static void t_where(void **state)
{
    static const char allow[] =
        "rules:\n  - allow: sign in\n    secret: PASSWORD\n    class: ^Field$\n    title: ^xfield$\n";
    static const struct {
        const char *replies, *policy, *typed, *dialect;
    } cases[] = {
        {WRITE("{{PASSWORD}}") DONE, "", "", "pocket-wide"},
        {WRITE("{{PASSWORD}}") DONE, allow, PLAIN, "pocket-wide"},
        {FILL("{{PASSWORD}}") ANSWER("Done."), "", "", "holo3"}, /* needs confirmation, no one can be asked */
        {FILL("{{PASSWORD}}") ANSWER("Done."), allow, PLAIN, "holo3"}, /* the policy names the window */
        {FILL("{{OTHER}}") ANSWER("Done."), allow, "", "holo3"},       /* ... but not this secret */
        {FILL("{{PASSWORD}}{{OTHER}}") ANSWER("Done."), allow, "", "holo3"},
        {FILL("{{UNKNOWN}}") ANSWER("Done."), allow, "{{UNKNOWN}}", "holo3"}, /* not a secret, plain text */
        {TYPE("{{PASSWORD}}") ANSWER("Done."), allow, "", "holo3"}, /* without a click: another window */
    };
    int n = sizeof cases / sizeof *cases;
    for (int i = 0; i < n; i++) {
        struct fields f = {0};
        struct outcome o = {0};
        open_fields(&f);
        XWarpPointer(f.t.other, None, DefaultRootWindow(f.t.other), 0, 0, 0, 0, 500,
                     450); /* keys go to xclient */
        XSync(f.t.other, False);
        setenv("SECRET", PLAIN, 1);
        setenv("SECOND", "another-" PLAIN, 1);
        char *policy = xvfb_place(&f.t.x, "p.yaml");
        assert_int_equal(file_write(policy, cases[i].policy, strlen(cases[i].policy), NULL), 0);
        driven_run(&f.t, cases[i].replies,
                   WORDS("--secret", "PASSWORD=env:SECRET", "--secret", "OTHER=env:SECOND", "--confirm",
                         "never", "--policy", policy, "--dialect", cases[i].dialect),
                   &o);
        assert_int_equal(o.code, *cases[i].typed ? 0 : ERR_FAILED);
        assert_typed(&f, cases[i].typed);
        assert_int_equal(json_array_size(stage_events(&f.t, "key_press")), 0); /* in the other window */
        struct seen s = {0};
        if (*cases[i].typed && cases[i].policy == allow && cases[i].typed[0] != '{')
            read_glyphs(f.t.other, FIELD_X + 12, FIELD_Y + 24 - 9, &s.glyphs);
        if (s.glyphs.rgb)
            search_run(&f, &o, PLAIN, &s);
        assert_int_equal(s.hits, 0);
        image_free(&s.glyphs);
        free(policy);
        outcome_free(&o);
        close_fields(&f);
    }
    unsetenv("SECRET");
    unsetenv("SECOND");
    check_note("%d of %d hostile cases ended as documented", n, n);
}

/* ---- replay ---------------------------------------------------------------------------------- */

static void replay(const struct fields *f, struct outcome *o, const char *run, const char *confirm,
                   const char *secret)
{
    char *runs = xvfb_place(&f->t.x, "runs");
    setenv("SECRET", PLAIN, 1);
    program_run(&f->t.x, o,
                WORDS("replay", run, "--actions", "--settle-min", "1", "-q", "--runs", runs, "--confirm",
                      confirm, secret));
    unsetenv("SECRET");
    free(runs);
}

/* Clears the field, to restore the initial screen. */
static void press_escape(const struct fields *f)
{
    Display *d = f->t.other;
    XWarpPointer(d, None, DefaultRootWindow(d), 0, 0, 0, 0, 100, 80);
    XTestFakeKeyEvent(d, XKeysymToKeycode(d, XK_Escape), True, 0);
    XTestFakeKeyEvent(d, XKeysymToKeycode(d, XK_Escape), False, 0);
    XSync(d, False);
}

static void t_replayed(void **state)
{
    struct fields f = {0};
    struct outcome o = {0};
    struct seen s = {0};
    type_secret(&f, &o, NULL);
    assert_int_equal(o.code, ERR_UNVERIFIED);
    assert_typed(&f, PLAIN);
    char *runs = xvfb_place(&f.t.x, "runs"), *run = record_newest(runs, NULL);
    press_escape(&f);
    replay(&f, &o, run, "yes-to-all", NULL);
    ONE_LINE(&o, ERR_USAGE, "step 2 types the secret PASSWORD; pass it with --secret PASSWORD=env:");
    replay(&f, &o, run, "never", "--secret=PASSWORD=env:SECRET");
    assert_int_equal(o.code, ERR_FAILED);
    assert_non_null(strstr(o.err, "step 2 was not allowed"));
    assert_typed(&f, PLAIN); /* not typed again */
    replay(&f, &o, run, "yes-to-all", "--secret=PASSWORD=env:SECRET");
    if (o.code)
        fail_msg("exit %d: %s%s", o.code, o.out, o.err);
    assert_typed(&f, PLAIN PLAIN);
    read_glyphs(f.t.other, FIELD_X + 12, FIELD_Y + 24 - 9, &s.glyphs);
    assert_true(each_file(runs, holds_no_canary, (void *)(uintptr_t)PLAIN) >
                15); /* the run and its replays */
    each_file(runs, look_at_picture, &s);
    if (s.hits)
        fail_msg("%d of %d images show the canary, the last is %s", s.hits, s.pictures, s.last);
    image_free(&s.glyphs);
    outcome_free(&o);
    free(runs);
    free(run);
    close_fields(&f);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a canary typed into a field is in no byte and no pixel of the run", t_canary),
    CLAIM("without redaction the same search finds the canary", t_search_works),
    CLAIM("a redacted field has two colours", t_field),
    CLAIM("a secret is typed only where the rules allow it", t_where),
    CLAIM("a replay needs the secret again, follows the rules, and does not record it either", t_replayed),
};

CHECK_MAIN()
