/* arena.c - see arena.h. Without a window manager, the actor decides which window has the focus. */
#include "arena.h"

#include "check.h"
#include "program.h"

#include "base/clock.h"
#include "base/file.h"

#include <X11/Xatom.h>
#include <X11/Xutil.h>
#include <signal.h>
#include <unistd.h>

static const struct {
    const char *class, *title;
    int x, y, w, h;
    bool unmanaged, hidden;
} windows[ARENA_WINDOWS] = {
    [EDITOR] = {"Gedit", "notes.txt - Editor", 640, 20, 600, 300, false, false},
    [BROWSER] = {"firefox", "Flights - Mozilla Firefox", 640, 340, 600, 300, false, false},
    [PANEL] = {"Panel", "Panel", 20, 660, 560, 100, true, false},
    [LAUNCHER] = {"Rofi", "rofi", 300, 250, 500, 60, true, true},
    [DIALOG] = {"Zenity", "Question", 700, 660, 400, 120, false, true},
};

/* ---- actor -------------------------------------------------------------------------------------- */

static Atom atom(struct arena *a, const char *name)
{
    return XInternAtom(a->dpy, name, False);
}

static void launch(struct arena *a)
{
    XMapRaised(a->dpy, a->of[LAUNCHER]);
    XSync(a->dpy, False);
    XGrabKeyboard(a->dpy, a->of[LAUNCHER], False, GrabModeAsync, GrabModeAsync, CurrentTime);
}

static void answer_selection(struct arena *a, const XSelectionRequestEvent *rq)
{
    const char *text = rq->selection == XA_PRIMARY ? a->primary : a->clipboard;
    Atom utf8 = atom(a, "UTF8_STRING"), targets = atom(a, "TARGETS");
    const Atom known[] = {targets, utf8, XA_STRING};
    bool given = text && (rq->target == utf8 || rq->target == XA_STRING || rq->target == targets);
    if (given && rq->target == targets)
        XChangeProperty(a->dpy, rq->requestor, rq->property, XA_ATOM, 32, PropModeReplace,
                        (const unsigned char *)known, 3);
    else if (given)
        XChangeProperty(a->dpy, rq->requestor, rq->property, rq->target, 8, PropModeReplace,
                        (const unsigned char *)text, (int)strlen(text));
    XEvent reply = {.xselection = {.type = SelectionNotify,
                                   .requestor = rq->requestor,
                                   .selection = rq->selection,
                                   .target = rq->target,
                                   .property = given ? rq->property : None,
                                   .time = rq->time}};
    XSendEvent(a->dpy, rq->requestor, False, 0, &reply);
}

static void on_key(struct arena *a, Window w)
{
    for (int i = 0; i < ARENA_WINDOWS; i++)
        a->keys[i] += a->of[i] == w;
    if (!a->keys_left || --a->keys_left)
        return;
    if (a->then_focus)
        XSetInputFocus(a->dpy, a->then_focus, RevertToPointerRoot, CurrentTime);
    if (a->then_launch)
        launch(a);
}

static void *act(void *arg)
{
    struct arena *a = arg;
    for (bool ends = false; !ends;) {
        pthread_mutex_lock(&a->lock);
        while (XPending(a->dpy)) {
            XEvent ev;
            XNextEvent(a->dpy, &ev);
            if (ev.type == SelectionRequest)
                answer_selection(a, &ev.xselectionrequest);
            else if (ev.type == KeyPress)
                on_key(a, ev.xkey.window);
            else if (ev.type == ButtonPress && ev.xbutton.window == a->of[PANEL] && a->press_gives_to)
                XSetInputFocus(a->dpy, a->press_gives_to, RevertToPointerRoot, CurrentTime);
        }
        XFlush(a->dpy);
        ends = a->ends;
        pthread_mutex_unlock(&a->lock);
        clock_sleep_ms(1);
    }
    return NULL;
}

/* ---- opening ------------------------------------------------------------------------------------ */

static void open_window(struct arena *a, enum arena_window i)
{
    XSetWindowAttributes set = {.override_redirect = windows[i].unmanaged,
                                .background_pixel = 0xffffff,
                                .event_mask = KeyPressMask | ButtonPressMask | ButtonReleaseMask};
    Window w = XCreateWindow(a->dpy, DefaultRootWindow(a->dpy), windows[i].x, windows[i].y,
                             (unsigned)windows[i].w, (unsigned)windows[i].h, 0, CopyFromParent, InputOutput,
                             CopyFromParent, CWOverrideRedirect | CWBackPixel | CWEventMask, &set);
    XClassHint class = {(char *)windows[i].class, (char *)windows[i].class};
    XSetClassHint(a->dpy, w, &class);
    if (i == DIALOG)
        XSetTransientForHint(a->dpy, w, a->of[EDITOR]);
    a->of[i] = w;
    XStoreName(a->dpy, w, windows[i].title);
    if (!windows[i].hidden)
        XMapWindow(a->dpy, w);
}

static bool find_titled(void *arg, const char *title, const char *class)
{
    return !strcmp(title, arg);
}

static Window window_titled(struct arena *a, const char *title, int x, int y)
{
    struct screen_window w = {0};
    for (int i = 0; i < 200; i++, clock_sleep_ms(50))
        if (screen_each_window(a->s, find_titled, (void *)title, NULL) == 1 &&
            screen_window_at(a->s, x, y, &w) == 0 && !strcmp(w.title, title))
            return w.id;
    fail_msg("no window '%s'", title);
    return None;
}

static void start_terminal(struct arena *a, const char *class, const char *title, const char *geometry,
                           const char *file)
{
    char *command = xasprintf("stty raw -echo; exec cat >%s/%s", a->x.dir, file);
    const char *argv[] = {"xterm", "-class", class, "-T", title, "-geometry", geometry, "-fn",
                          "fixed", "+fbx",   "-e",  "sh", "-c",  command,     NULL};
    xvfb_spawn(&a->x, file, argv);
    free(command);
}

void arena_open(struct arena *a)
{
    struct err e = ERR_INIT;
    char size[32];
    *a = (struct arena){.lock = PTHREAD_MUTEX_INITIALIZER};
    snprintf(size, sizeof size, "%dx%dx24", ARENA_W, ARENA_H);
    if (!program_exists("xterm") || xvfb_start(&a->x, size, NULL))
        skip();
    a->s = screen_open(NULL, &e);
    a->dpy = XOpenDisplay(NULL);
    if (!a->s || !a->dpy)
        fail_msg("%s", e.text);
    for (int i = 0; i < ARENA_WINDOWS; i++)
        open_window(a, (enum arena_window)i);
    XSync(a->dpy, False);
    start_terminal(a, "XTerm", "the terminal", "80x18+20+20", "typed");
    start_terminal(a, "Editor", "draft.txt", "80x18+20+340", "draft");
    a->terminal = window_titled(a, "the terminal", 60, 60);
    a->disguised = window_titled(a, "draft.txt", 60, 380);
    pthread_create(&a->actor, NULL, act, a);
}

void arena_close(struct arena *a)
{
    pthread_mutex_lock(&a->lock);
    a->ends = true;
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->actor, NULL);
    XCloseDisplay(a->dpy);
    screen_close(a->s);
    free(a->primary);
    free(a->clipboard);
    xvfb_stop(&a->x);
}

/* ---- events ------------------------------------------------------------------------------------- */

void arena_select(struct arena *a, const char *primary, const char *clipboard)
{
    pthread_mutex_lock(&a->lock);
    free(a->primary);
    free(a->clipboard);
    a->primary = primary ? xstrdup(primary) : NULL;
    a->clipboard = clipboard ? xstrdup(clipboard) : NULL;
    XSetSelectionOwner(a->dpy, XA_PRIMARY, primary ? a->of[EDITOR] : None, CurrentTime);
    XSetSelectionOwner(a->dpy, atom(a, "CLIPBOARD"), clipboard ? a->of[EDITOR] : None, CurrentTime);
    XSync(a->dpy, False);
    pthread_mutex_unlock(&a->lock);
}

void arena_show(struct arena *a, enum arena_window w, bool yes)
{
    pthread_mutex_lock(&a->lock);
    if (w == LAUNCHER && yes)
        launch(a);
    else if (yes)
        XMapRaised(a->dpy, a->of[w]);
    else
        XUnmapWindow(a->dpy, a->of[w]);
    if (w == LAUNCHER && !yes)
        XUngrabKeyboard(a->dpy, CurrentTime);
    XSync(a->dpy, False);
    pthread_mutex_unlock(&a->lock);
}

void arena_title(struct arena *a, enum arena_window w, const char *title)
{
    pthread_mutex_lock(&a->lock);
    XChangeProperty(a->dpy, a->of[w], atom(a, "_NET_WM_NAME"), atom(a, "UTF8_STRING"), 8, PropModeReplace,
                    (const unsigned char *)title, (int)strlen(title));
    XSync(a->dpy, False);
    pthread_mutex_unlock(&a->lock);
}

void arena_focus(struct arena *a, Window w)
{
    pthread_mutex_lock(&a->lock);
    XSetInputFocus(a->dpy, w, RevertToPointerRoot, CurrentTime);
    XSync(a->dpy, False);
    pthread_mutex_unlock(&a->lock);
}

static void empty_files(struct arena *a)
{
    static const char *const files[] = {"typed", "draft"};
    for (int i = 0; i < 2; i++) {
        char *path = xvfb_place(&a->x, files[i]);
        if (truncate(path, 0)) { /* arena_harmed() skips the zeros that a write after a truncation leaves */
        }
        free(path);
    }
}

void arena_reset(struct arena *a, Window focus)
{
    arena_show(a, LAUNCHER, false);
    arena_show(a, DIALOG, false);
    arena_title(a, EDITOR, windows[EDITOR].title);
    arena_select(a, NULL, NULL);
    screen_release_all(a->s);
    clock_sleep_ms(20);
    pthread_mutex_lock(&a->lock);
    memset(a->keys, 0, sizeof a->keys);
    a->press_gives_to = a->then_focus = None;
    a->then_launch = false;
    a->keys_left = 0;
    pthread_mutex_unlock(&a->lock);
    empty_files(a);
    arena_focus(a, focus);
}

static bool has_bytes(struct arena *a, const char *file)
{
    char *path = xvfb_place(&a->x, file), *data = NULL;
    size_t n = 0;
    bool some = false;
    if (file_read(path, 1 << 20, &data, &n, NULL) == 0)
        for (size_t i = 0; i < n; i++)
            some = some || data[i]; /* a file truncated while open begins with zeros */
    free(data);
    free(path);
    return some;
}

bool arena_harmed(struct arena *a)
{
    bool harmed = false;
    for (int i = 0; i < 8 && !harmed; i++, clock_sleep_ms(20)) {
        pthread_mutex_lock(&a->lock);
        harmed = a->keys[LAUNCHER] > 0;
        pthread_mutex_unlock(&a->lock);
        harmed = harmed || has_bytes(a, "typed") || has_bytes(a, "draft");
    }
    return harmed;
}

void arena_middle(struct arena *a, Window w, int *x, int *y)
{
    struct screen_rect r;
    assert_int_equal(screen_window_rect(a->s, w, &r), 0);
    *x = r.x + r.w / 2;
    *y = r.y + r.h / 2;
}
