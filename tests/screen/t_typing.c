/* t_typing.c - tests that text arrives in real programs exactly as given.
 *
 * Three kinds of client read the keyboard map in different ways: xterm (Xt), zenity (GTK) and Chromium (its
 * own code). The text has the characters of a US keyboard, and more letters of five scripts, signs and emoji
 * than there are free keycodes, with capitals and small letters of the same key. A shuffled tail reassigns
 * keycodes several times.
 *
 * HOLORUN_TYPING_RUNS=n: n texts per program instead of 3.
 */
#include "check.h"
#include "xvfb.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"
#include "screen/screen.h"

#include <X11/Xatom.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static const char core[] = "Hi, W! ~`@#$%^&*()_+-={}[]|\\:\";'<>?,./ 09 ÁáÓóŐőŽŁ Ωω Жж 日語 한 √ €— “q” 😀🚀.";
static const char more[] = " Árvíztűrő TÜKÖRFÚRÓGÉP Žluťoučký kůň Łódź Γειά σου Κόσμε Привет, мир Ёё Ыы "
                           "日本語テキスト 中文 한국어 ∑∫≠√∞ €£¥ — “quoted” 😀🚀🎉👍 done.";

static int runs(void)
{
    const char *s = getenv("HOLORUN_TYPING_RUNS");
    int n = s ? atoi(s) : 3;
    return n < 1 ? 1 : n > 1000 ? 1000 : n;
}

/* Writes the core text, or the whole text if many runs are requested, and then some of its characters in
 * random order. */
static void make_text(char *out, size_t size, uint64_t *state)
{
    bool all = getenv("HOLORUN_TYPING_RUNS") != NULL;
    uint32_t chars[400];
    size_t n = 0, len = (size_t)snprintf(out, size, "%s%s", core, all ? more : "");
    for (size_t i = 0; i < len && n < 400;)
        i += (size_t)utf8_decode(out + i, len - i, &chars[n++]);
    for (int i = 0; i < (all ? 60 : 15) && len + 4 < size; i++) {
        uint32_t c = chars[(size_t)(check_random(state) * (double)n)];
        len += (size_t)utf8_encode(c == ' ' ? 0x151 : c, out + len);
    }
    out[len] = 0;
}

/* Prints the first difference if there is one. */
static bool same_text(const char *program, int run, const char *want, const char *got)
{
    if (!strcmp(want, got))
        return true;
    size_t i = 0;
    while (want[i] && want[i] == got[i])
        i++;
    while (i && (want[i] & 0xc0) == 0x80)
        i--;
    check_note("%s run %d: at byte %zu wanted '%.24s', got '%.24s'", program, run, i, want + i, got + i);
    return false;
}

static struct screen *open_screen(void)
{
    struct err e = ERR_INIT;
    struct screen *s = screen_open(NULL, &e);
    if (!s)
        fail_msg("%s", e.text);
    return s;
}

static void start_display(struct xvfb *x, const char *program)
{
    screen_stop_all(0);
    if (!program_exists(program)) {
        check_note("%s is not installed", program);
        skip();
    }
    if (xvfb_start(x, "1024x768x24", NULL))
        skip();
    setenv("LANG", "C.UTF-8", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    if (xvfb_window_manager(x))
        check_note("no window manager here (openbox)");
}

static void type_or_fail(struct screen *s, const char *text)
{
    struct err e = ERR_INIT;
    if (screen_type(s, text, strlen(text), &e))
        fail_msg("%s", e.text);
}

static void press(struct screen *s, uint32_t modifier, uint32_t key)
{
    uint32_t keys[] = {modifier, key};
    struct err e = ERR_INIT;
    if (modifier ? screen_chord(s, keys, 2, &e) : screen_chord(s, keys + 1, 1, &e))
        fail_msg("%s", e.text);
}

static void report(const char *program, int right, int n, double ms)
{
    check_note("%s: %d of %d texts right, %.0f ms each", program, right, n, ms / n);
    assert_int_equal(right, n);
}

/* Waits until a program has ended and returns its output. */
static char *output_of(struct xvfb *x, pid_t pid, const char *file)
{
    char path[160], *text = NULL;
    size_t len = 0;
    int status;
    for (int i = 0; i < 300 && waitpid(pid, &status, WNOHANG) == 0; i++)
        clock_sleep_ms(10);
    process_end(pid);
    x->n_children--;
    snprintf(path, sizeof path, "%s/%s", x->dir, file);
    if (file_read(path, 1 << 20, &text, &len, NULL))
        return xstrdup("");
    unlink(path);
    if (len && text[len - 1] == '\n')
        text[len - 1] = 0;
    return text;
}

/* Reads line `index` of the file once it is complete, or after three seconds the part that exists. */
static void read_line(const char *path, int index, char *out, size_t size)
{
    out[0] = 0;
    for (int i = 0; i < 150; i++) {
        char *text = NULL, *line, *end = NULL;
        size_t len;
        clock_sleep_ms(20);
        if (file_read(path, 1 << 20, &text, &len, NULL))
            continue;
        line = text;
        for (int k = 0; line && k < index; k++)
            line = (line = strchr(line, '\n')) ? line + 1 : NULL;
        if (line) {
            end = strchr(line, '\n');
            snprintf(out, size, "%.*s", (int)(end ? end - line : (ptrdiff_t)strlen(line)), line);
        }
        free(text);
        if (end)
            return;
    }
}

/* Starts a terminal that writes typed text into a file, at `path`. */
static struct screen *start_xterm(struct xvfb *x, char *path, size_t size)
{
    char command[160];
    start_display(x, "xterm");
    snprintf(path, size, "%s/typed", x->dir);
    snprintf(command, sizeof command, "cat >%s/typed", x->dir);
    const char *argv[] = {"xterm", "-u8", "-T", "typing", "-e", "sh", "-c", command, NULL};
    xvfb_spawn(x, "xterm.log", argv);
    assert_true(xvfb_wait_window(x, "^typing$"));
    clock_sleep_ms(300);
    return open_screen();
}

static void t_xterm(void **state)
{
    struct xvfb x;
    uint64_t seed = check_seed();
    int right = 0, n = runs();
    double ms = 0;
    char text[2000], got[4096], path[160];
    struct screen *s = start_xterm(&x, path, sizeof path);
    for (int i = 0; i < n; i++) {
        make_text(text, sizeof text, &seed);
        int64_t start = clock_ns();
        type_or_fail(s, text);
        ms += clock_ms_since(start);
        type_or_fail(s, "\n");
        read_line(path, i, got, sizeof got);
        right += same_text("xterm", i, text, got);
    }
    screen_close(s);
    xvfb_stop(&x);
    report("xterm", right, n, ms);
}

/* A client that owns the clipboard with the text "before". */
struct copier {
    Display *dpy;
    Window window;
    atomic_bool end;
};

static void *serve(void *arg)
{
    struct copier *c = arg;
    XEvent ev;
    while (!c->end) {
        if (!XCheckTypedWindowEvent(c->dpy, c->window, SelectionRequest, &ev)) {
            clock_sleep_ms(5);
            continue;
        }
        const XSelectionRequestEvent *rq = &ev.xselectionrequest;
        XChangeProperty(c->dpy, rq->requestor, rq->property, rq->target, 8, PropModeReplace,
                        (const unsigned char *)"before", 6);
        XEvent reply = {.xselection = {SelectionNotify, 0, 0, NULL, rq->requestor, rq->selection, rq->target,
                                       rq->property, rq->time}};
        XSendEvent(c->dpy, rq->requestor, False, 0, &reply);
        XFlush(c->dpy);
    }
    return NULL;
}

static void fill_free_keycodes(Display *dpy)
{
    int lo, hi, per;
    XDisplayKeycodes(dpy, &lo, &hi);
    KeySym *map = XGetKeyboardMapping(dpy, (KeyCode)lo, hi - lo + 1, &per);
    for (int code = lo; code <= hi; code++) {
        bool free_code = true;
        for (int i = 0; i < per; i++)
            free_code = free_code && map[(code - lo) * per + i] == NoSymbol;
        KeySym f35 = XK_F35;
        if (free_code)
            XChangeKeyboardMapping(dpy, code, 1, &f35, 1);
    }
    XFree(map);
    XSync(dpy, False);
}

static void t_paste(void **state)
{
    struct xvfb x;
    char got[4096], path[160];
    struct screen *s = start_xterm(&x, path, sizeof path);
    struct copier c = {.dpy = XOpenDisplay(NULL)};
    fill_free_keycodes(c.dpy);

    type_or_fail(s, "plain\n"); /* needs no borrowed keycode: typed */
    read_line(path, 0, got, sizeof got);
    assert_string_equal(got, "plain");
    Atom clipboard = XInternAtom(c.dpy, "CLIPBOARD", False);
    type_or_fail(s, "Ősz 日本 😀\n"); /* pasted, with an empty clipboard before */
    read_line(path, 1, got, sizeof got);
    assert_string_equal(got, "Ősz 日本 😀");
    assert_int_equal(XGetSelectionOwner(c.dpy, clipboard), None);

    c.window = XCreateSimpleWindow(c.dpy, DefaultRootWindow(c.dpy), 0, 0, 1, 1, 0, 0, 0);
    XSetSelectionOwner(c.dpy, clipboard, c.window, CurrentTime);
    XSync(c.dpy, False);
    pthread_t thread;
    pthread_create(&thread, NULL, serve, &c);
    type_or_fail(s, "Žluťoučký\n");
    read_line(path, 2, got, sizeof got);
    assert_string_equal(got, "Žluťoučký");
    c.end = true;
    pthread_join(thread, NULL);

    /* A paste gives "before" again, although the screen now owns the clipboard. */
    Window asker = XCreateSimpleWindow(c.dpy, DefaultRootWindow(c.dpy), 0, 0, 1, 1, 0, 0, 0);
    assert_int_not_equal(XGetSelectionOwner(c.dpy, clipboard), None);
    XConvertSelection(c.dpy, clipboard, XInternAtom(c.dpy, "UTF8_STRING", False), XA_WM_NAME, asker,
                      CurrentTime);
    XSync(c.dpy, False);
    struct image im = {0};
    assert_int_equal(screen_capture(s, &im, NULL), 0); /* any call answers pending requests */
    image_free(&im);
    XTextProperty given = {0};
    XGetTextProperty(c.dpy, asker, &given, XA_WM_NAME);
    assert_string_equal(given.value ? (const char *)given.value : "", "before");
    XFree(given.value);
    XCloseDisplay(c.dpy);
    screen_close(s);
    xvfb_stop(&x);
}

static void t_gtk(void **state)
{
    struct xvfb x;
    uint64_t seed = check_seed();
    int right = 0, n = runs();
    double ms = 0;
    char text[2000];
    start_display(&x, "zenity");
    static const char *const argv[] = {"zenity", "--entry", "--title=typing", "--width=600", NULL};
    for (int i = 0; i < n; i++) {
        make_text(text, sizeof text, &seed);
        pid_t pid = xvfb_spawn(&x, "typed", argv);
        assert_true(xvfb_wait_window(&x, "^typing$"));
        clock_sleep_ms(300);
        struct screen *s = open_screen();
        int64_t start = clock_ns();
        type_or_fail(s, text);
        ms += clock_ms_since(start);
        type_or_fail(s, "\n");
        screen_close(s);
        char *got = output_of(&x, pid, "typed"), *line = strrchr(got, '\n'); /* warnings come before it */
        right += same_text("zenity", i, text, line ? line + 1 : got);
        free(got);
    }
    xvfb_stop(&x);
    report("zenity", right, n, ms);
}

/* ---- no reader ---------------------------------------------------------------------------------- */

struct focus { /* the first focus; another thread sets it to `next` after a delay */
    Display *dpy;
    Window next;
    int after_ms;
};

static void *give_focus(void *arg)
{
    const struct focus *f = arg;
    clock_sleep_ms(f->after_ms);
    XSetInputFocus(f->dpy, f->next, RevertToNone, CurrentTime);
    XSync(f->dpy, False);
    return NULL;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
static const char long_text[] = LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS;

/* Types while the focus moves from one window to another. Returns "" or the reason for doubt. */
static const char *type_while(struct screen *s, Display *dpy, Window first, Window next, int after_ms)
{
    static struct err e;
    pthread_t thread;
    struct focus f = {dpy, next, after_ms};
    e = (struct err)ERR_INIT;
    XSetInputFocus(dpy, first, RevertToNone, CurrentTime);
    XSync(dpy, False);
    pthread_create(&thread, NULL, give_focus, &f);
    int rc = screen_type(s, long_text, strlen(long_text), &e);
    pthread_join(thread, NULL);
    return rc ? e.text : "";
}

static void assert_unsure(const char *case_name, const char *said, const char *why)
{
    if (!strstr(said, "unsure") || !strstr(said, why))
        fail_msg("%s: '%s'", case_name, said);
}

static void t_nobody(void **state)
{
    struct xvfb x;
    struct screen_window term;
    char got[512], path[160];
    screen_stop_all(0);
    if (!program_exists("xterm") || xvfb_start(&x, "1024x768x24", NULL))
        skip();
    snprintf(path, sizeof path, "%s/typed", x.dir);
    char *command = xasprintf("cat >%s", path);
    const char *argv[] = {"xterm", "-u8", "-T", "typing", "-e", "sh", "-c", command, NULL};
    xvfb_spawn(&x, "xterm.log", argv);
    free(command);
    assert_true(xvfb_wait_window(&x, "^typing$"));
    Display *dpy = XOpenDisplay(NULL);
    Window deaf = XCreateSimpleWindow(dpy, DefaultRootWindow(dpy), 700, 500, 50, 50, 0, 0, 0);
    XMapWindow(dpy, deaf);
    XSync(dpy, False);
    struct screen *s = open_screen();
    assert_int_equal(screen_find_window(s, "XTerm", "typing", &term), 0);
    assert_int_equal(screen_move(s, 1000, 700, NULL), 0); /* over no window */
    static const char none[] = "no window that reads keys", other[] = "went to another window";
    assert_unsure("None", type_while(s, dpy, None, None, 0), none);
    assert_unsure("PointerRoot", type_while(s, dpy, PointerRoot, PointerRoot, 0), none);
    assert_unsure("a window that asks for no keys", type_while(s, dpy, deaf, deaf, 0), none);
    assert_unsure("None after a while", type_while(s, dpy, term.id, None, 50), other);
    XSetInputFocus(dpy, term.id, RevertToNone, CurrentTime);
    XSync(dpy, False);
    type_or_fail(s, "\n");
    assert_unsure("another window after a while", type_while(s, dpy, term.id, deaf, 50), other);
    XSetInputFocus(dpy, term.id, RevertToNone, CurrentTime);
    XSync(dpy, False);
    type_or_fail(s, "\n");
    assert_string_equal(type_while(s, dpy, None, term.id, 300), ""); /* only late */
    type_or_fail(s, "\n");
    read_line(path, 2, got, sizeof got);
    assert_string_equal(got, long_text);
    assert_int_equal(screen_move(s, 30, 30, NULL), 0);
    /* the window under the pointer */
    assert_string_equal(type_while(s, dpy, PointerRoot, PointerRoot, 0), "");
    type_or_fail(s, "\n");
    read_line(path, 3, got, sizeof got);
    assert_string_equal(got, long_text);
    XCloseDisplay(dpy);
    screen_close(s);
    xvfb_stop(&x);
}

static const char page[] =
    "<!doctype html><meta charset=utf-8><title>ready</title>"
    "<textarea autofocus style='width:90%;height:300px'></textarea><script>"
    "const t=document.querySelector('textarea');"
    "t.addEventListener('input',()=>{let h='';for(const b of new TextEncoder().encode(t.value))"
    "h+=b.toString(16).padStart(2,'0');document.title='T'+h});t.focus()</script>";

/* Waits for the page to show the text, then returns the shown text. */
static void read_page(struct screen *s, const char *want, char *got, size_t size)
{
    char title[4096];
    for (int i = 0; i < 60; i++) {
        size_t n = 0;
        if (xvfb_find_window(s, "^T[0-9a-f]*", title, sizeof title, NULL) == 1)
            for (const char *p = title + 1; n + 1 < size && sscanf(p, "%2hhx", (unsigned char *)&got[n]) == 1;
                 p += 2)
                n++;
        got[n] = 0;
        if (!strcmp(got, want))
            return;
        clock_sleep_ms(50);
    }
}

static void t_chromium(void **state)
{
    struct xvfb x;
    uint64_t seed = check_seed();
    int right = 0, n = runs();
    double ms = 0;
    char text[2000], got[4096], path[160], url[200], profile[160];
    start_display(&x, "chromium");
    snprintf(path, sizeof path, "%s/page.html", x.dir);
    snprintf(url, sizeof url, "--app=file://%s", path);
    snprintf(profile, sizeof profile, "--user-data-dir=%s/profile", x.dir);
    assert_int_equal(file_write(path, page, sizeof page - 1, NULL), 0);
    const char *argv[] = {"chromium",
                          "--no-sandbox",
                          profile,
                          "--no-first-run",
                          "--password-store=basic",
                          "--disable-gpu",
                          "--force-device-scale-factor=1",
                          "--window-size=800,600",
                          url,
                          NULL};
    xvfb_spawn(&x, "chromium.log", argv);
    if (!xvfb_wait_window(&x, "^ready")) {
        check_note("chromium shows no page here");
        xvfb_stop(&x);
        skip();
    }
    clock_sleep_ms(500);
    struct screen *s = open_screen();
    screen_click(s, 300, 200, 1, 1, NULL);
    for (int i = 0; i < n; i++) {
        make_text(text, sizeof text, &seed);
        press(s, XK_Control_L, XK_a);
        press(s, 0, XK_BackSpace);
        clock_sleep_ms(200);
        int64_t start = clock_ns();
        type_or_fail(s, text);
        ms += clock_ms_since(start);
        read_page(s, text, got, sizeof got);
        right += same_text("chromium", i, text, got);
    }
    screen_close(s);
    xvfb_stop(&x);
    report("chromium", right, n, ms);
}

static const struct CMUnitTest tests[] = {
    CLAIM("xterm receives five scripts, signs and emoji as typed", t_xterm),
    CLAIM("without a free keycode the text is pasted, and the clipboard is restored", t_paste),
    CLAIM("text that no window or two windows receive is unsure; a late focus is waited for", t_nobody),
    CLAIM("a GTK program receives the same text as typed", t_gtk),
    CLAIM("Chromium receives the same text as typed", t_chromium),
};

CHECK_MAIN()
