/* window.c - the SDL part of the step window; see step.h.
 *
 *   agent's thread                      window's thread
 *   show, ask ── view, under lock ───►  scene_draw, events
 *     ▲                                   │
 *     └──────────── command ◄─────────────┘
 *
 * The view belongs to the agent loop and is valid only during window_ask() and window_passed(). In between,
 * the window's thread shows the surface that it drew last, and only Stop has an effect. */
#include "step/window_impl.h"

#include "base/clock.h"
#include "base/flag.h"
#include "screen/x11/displays.h"
#include "step/scene.h"

#include <SDL_syswm.h>
#include <X11/Xlib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 20, HIDE_MS = 120, GONE_MS = 2000, LAST_S = 60 };

struct window {
    struct step_front front;
    struct window_options o;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;

    /* protected by the lock */
    const struct step_view *view; /* NULL: no step is shown */
    volatile int *stop;           /* stop flag of the last run shown; NULL: none yet */
    bool fresh;                   /* the view is not drawn yet */
    bool answered, end, ready;
    int questions;
    struct outcome_box last; /* head NULL: the run has not ended */
    struct focus *focus;     /* NULL: the agent works on another display */
    struct step_command command;
    struct err err;

    /* used by the window's thread only */
    SDL_Window *sdl;
    Display *x; /* SDL's connection; NULL: not X11 */
    unsigned long id;
    struct scene scene;
    cairo_surface_t *drawn;
    bool dirty, shown, covers; /* covers: it overlaps the captured view */
    Uint32 wake;
};

/* Returns whether the window opens on the display that the agent works on. */
static bool same_display(const struct window *w)
{
    return !w->o.display || !w->o.captured || displays_same(w->o.display, w->o.captured);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Draws the view. The caller holds the lock. */
static void draw_view(struct window *w)
{
    int width, height;
    SDL_GetWindowSize(w->sdl, &width, &height);
    if (!w->drawn || w->scene.w != width || w->scene.h != height) {
        cairo_surface_destroy(w->drawn);
        w->drawn = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
        w->scene.w = width;
        w->scene.h = height;
    }
    if (w->view)
        scene_draw(&w->scene, w->view, w->drawn);
}

static void dim_surface(cairo_surface_t *s)
{
    cairo_t *cr = cairo_create(s);
    cairo_set_source_rgba(cr, 0.07, 0.08, 0.10, 0.35);
    cairo_paint(cr);
    cairo_destroy(cr);
}

static void present(struct window *w)
{
    SDL_Surface *to = SDL_GetWindowSurface(w->sdl);
    if (!to || !w->drawn || cairo_surface_status(w->drawn) != CAIRO_STATUS_SUCCESS)
        return;
    SDL_Surface *from = SDL_CreateRGBSurfaceWithFormatFrom(
        cairo_image_surface_get_data(w->drawn), cairo_image_surface_get_width(w->drawn),
        cairo_image_surface_get_height(w->drawn), 32, cairo_image_surface_get_stride(w->drawn),
        SDL_PIXELFORMAT_RGB888);
    if (from)
        SDL_BlitSurface(from, NULL, to, NULL);
    SDL_FreeSurface(from);
    SDL_UpdateWindowSurface(w->sdl);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int key_of(const SDL_KeyboardEvent *k)
{
    static const struct {
        SDL_Keycode from;
        int to;
    } keys[] = {
        {SDLK_RETURN, KEY_ENTER},
        {SDLK_KP_ENTER, KEY_ENTER},
        {SDLK_ESCAPE, KEY_ESCAPE},
        {SDLK_BACKSPACE, KEY_BACKSPACE},
        {SDLK_DELETE, KEY_DELETE},
        {SDLK_LEFT, KEY_LEFT},
        {SDLK_RIGHT, KEY_RIGHT},
        {SDLK_HOME, KEY_HOME},
        {SDLK_END, KEY_END},
        {SDLK_UP, KEY_UP},
        {SDLK_DOWN, KEY_DOWN},
        {SDLK_PAGEUP, KEY_PAGE_UP},
        {SDLK_PAGEDOWN, KEY_PAGE_DOWN},
        {SDLK_F1, KEY_HELP},
    };
    SDL_Keycode sym = k->keysym.sym;
    if (k->keysym.mod & KMOD_CTRL)
        return sym == SDLK_PLUS || sym == SDLK_EQUALS ? KEY_LARGER : sym == SDLK_MINUS ? KEY_SMALLER : 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].from == sym)
            return keys[i].to;
    return 0; /* letters arrive as SDL_TEXTINPUT */
}

static void paste(struct window *w)
{
    char *text = SDL_GetClipboardText();
    if (text)
        scene_type(&w->scene, text);
    SDL_free(text);
}

/* Handles text: a verb, or input if the input line is open. Returns whether *out is a command. */
static bool on_text(struct window *w, const char *text, struct step_command *out)
{
    if (w->scene.mode == MODE_NONE || w->scene.help)
        return text[0] > ' ' && !text[1] && scene_key(&w->scene, w->view, text[0], out);
    scene_type(&w->scene, text);
    return false;
}

/* Handles an event while a command is expected. Returns whether *out is a command. */
static bool on_event(struct window *w, const SDL_Event *ev, struct step_command *out)
{
    struct scene *s = &w->scene;
    const struct step_view *v = w->view;
    switch (ev->type) {
    case SDL_KEYDOWN:
        if (ev->key.keysym.sym == SDLK_v && ev->key.keysym.mod & KMOD_CTRL)
            paste(w);
        else if (key_of(&ev->key))
            return scene_key(s, v, key_of(&ev->key), out);
        return false;
    case SDL_TEXTINPUT:
        return on_text(w, ev->text.text, out);
    case SDL_MOUSEBUTTONDOWN:
        return scene_press(s, v, ev->button.x / scene_scale(s), ev->button.y / scene_scale(s),
                           ev->button.button == SDL_BUTTON_RIGHT, out);
    case SDL_MOUSEBUTTONUP:
        return scene_release(s, ev->button.x / scene_scale(s), ev->button.y / scene_scale(s), out);
    case SDL_MOUSEMOTION:
        scene_move(s, ev->motion.x / scene_scale(s), ev->motion.y / scene_scale(s));
        return false;
    case SDL_MOUSEWHEEL:
        scene_wheel(s, v, ev->wheel.mouseX / scene_scale(s), ev->wheel.mouseY / scene_scale(s),
                    ev->wheel.y + ev->wheel.x);
        return false;
    default:
        return false;
    }
}

/* Returns whether an event stops the run while no command is expected. On the agent's display a letter may
 * have been typed by the agent, so only the button counts. */
static bool wants_stop(const struct window *w, const SDL_Event *ev)
{
    struct box b;
    int key;
    if (ev->type == SDL_TEXTINPUT)
        return !same_display(w) && (!strcmp(ev->text.text, "s") || !strcmp(ev->text.text, "S"));
    if (ev->type != SDL_MOUSEBUTTONDOWN)
        return false;
    for (int i = 0; scene_button(&w->scene, i, &b, &key); i++)
        if (box_has(b, ev->button.x / scene_scale(&w->scene), ev->button.y / scene_scale(&w->scene)))
            return key == 's';
    return false;
}

static void handle_event(struct window *w, const SDL_Event *ev)
{
    struct step_command c;
    bool closed = ev->type == SDL_QUIT;
    if (w->last.head) {
        outcome_event(&w->last, ev);
        pthread_cond_broadcast(&w->changed);
        w->dirty = w->dirty || ev->type == SDL_WINDOWEVENT;
        return;
    }
    if (ev->type == SDL_WINDOWEVENT || ev->type == w->wake)
        w->dirty = true;
    if (!w->view || w->answered) {
        if (closed || wants_stop(w, ev))
            *(w->stop ? w->stop : screen_stop_flag(NULL)) = STOP_HUMAN;
        return;
    }
    if (closed)
        c = (struct step_command){.verb = STEP_STOP};
    if (closed || on_event(w, ev, &c)) {
        w->command = c;
        w->answered = true;
        w->scene.status = "running";
        pthread_cond_broadcast(&w->changed);
    }
    w->dirty = true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static int open_window(struct window *w)
{
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    SDL_SetHint(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0");
    SDL_SetHint(SDL_HINT_VIDEODRIVER, "x11");
    SDL_SetHint(SDL_HINT_APP_NAME, "holorun");
    SDL_SetHint(SDL_HINT_MOUSE_FOCUS_CLICKTHROUGH, "1"); /* Stop works even if another window had the focus */
    if (SDL_Init(SDL_INIT_VIDEO))
        return err_set(&w->err, ERR_ENV, "cannot open the step window on display '%s': %s",
                       w->o.display ? w->o.display : "", SDL_GetError());
    SDL_EnableScreenSaver();
    SDL_Rect r = window_place(&w->o, same_display(w), &w->covers);
    w->wake = SDL_RegisterEvents(1);
    w->sdl = SDL_CreateWindow("holorun step", r.x, r.y, r.w, r.h, SDL_WINDOW_RESIZABLE | SDL_WINDOW_HIDDEN);
    if (!w->sdl)
        return err_set(&w->err, ERR_ENV, "cannot open the step window on display '%s': %s",
                       w->o.display ? w->o.display : "", SDL_GetError());
    SDL_SysWMinfo x;
    SDL_VERSION(&x.version);
    if (SDL_GetWindowWMInfo(w->sdl, &x) && x.subsystem == SDL_SYSWM_X11) {
        w->x = x.info.x11.display;
        w->id = x.info.x11.window;
    }
    SDL_SetWindowMinimumSize(w->sdl, SDL_min(WIDTH_MIN, r.w), SDL_min(HEIGHT_MIN, r.h));
    scene_init(&w->scene, r.w, r.h);
    if (w->covers)
        w->scene.notice = "this window is hidden while the agent captures and acts";
    SDL_StartTextInput();
    return 0;
}

/* Maps the window, and focuses it while it asks. */
static void show_window(struct window *w)
{
    if (!w->answered)
        focus_remember(w->focus, w->id);
    if (!w->shown) {
        SDL_ShowWindow(w->sdl);
        SDL_RaiseWindow(w->sdl);
    }
    if (!w->answered)
        focus_take(w->focus, w->id);
    w->shown = true;
}

/* Sets the title: while the window asks, it contains the step and the number of questions in this run. */
static void set_title(struct window *w)
{
    char title[64] = "holorun step";
    if (!w->answered)
        snprintf(title, sizeof title, "holorun step %d #%d", w->view->p->number, w->questions);
    SDL_SetWindowTitle(w->sdl, title);
}

/* Hides the window and waits until its frame is gone, because a slow window manager would leave the frame in
 * the screenshot. */
static void hide(struct window *w)
{
    bool framed = w->x;
    SDL_HideWindow(w->sdl);
    for (int64_t since = clock_ns(); framed && clock_ms_since(since) < GONE_MS / 2.0;) {
        Window root, parent = None, *children = NULL;
        unsigned n;
        framed = XQueryTree(w->x, w->id, &root, &parent, &children, &n) && parent != root;
        if (children)
            XFree(children);
        if (framed)
            clock_sleep_ms(5);
    }
    w->shown = false;
}

static void handle_events(struct window *w)
{
    SDL_Event ev;
    SDL_WaitEventTimeout(NULL, WAIT_MS);
    pthread_mutex_lock(&w->lock);
    if (w->last.head && w->fresh) {
        SDL_SetWindowTitle(w->sdl, "holorun step: the run has ended");
        outcome_draw(&w->last, &w->scene, w->drawn);
        show_window(w);
        w->last.shown = clock_ns();
    } else if (w->view && w->fresh) {
        w->scene.status = w->answered ? "running to a breakpoint" : NULL;
        scene_show(&w->scene, w->view);
        set_title(w);
        show_window(w);
    }
    while (SDL_PollEvent(&ev))
        handle_event(w, &ev);
    if (w->covers && w->shown && !w->last.head && (!w->view || w->answered))
        hide(w);
    if (w->view && (w->dirty || w->fresh)) {
        draw_view(w);
        if (w->answered)
            dim_surface(w->drawn);
    }
    if (w->dirty || w->fresh)
        present(w);
    w->dirty = w->fresh = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void *window_thread(void *arg)
{
    struct window *w = arg;
    pthread_mutex_lock(&w->lock);
    int rc = open_window(w);
    w->ready = true;
    pthread_cond_broadcast(&w->changed);
    bool end = w->end;
    pthread_mutex_unlock(&w->lock);
    while (rc == 0 && !end) {
        handle_events(w);
        pthread_mutex_lock(&w->lock);
        end = w->end;
        pthread_mutex_unlock(&w->lock);
    }
    cairo_surface_destroy(w->drawn);
    scene_free(&w->scene);
    SDL_Quit();
    return NULL;
}

/* ---- the front end --------------------------------------------------------------------------- */

static void wait_briefly(struct window *w)
{
    struct timespec until = clock_after(CLOCK_REALTIME, WAIT_MS);
    pthread_cond_timedwait(&w->changed, &w->lock, &until);
}

/* Passes a view to the window's thread. The caller holds the lock. answered: no command is expected. */
static void give_view(struct window *w, const struct step_view *v, bool answered)
{
    SDL_Event ev = {.type = w->wake};
    w->view = v;
    w->stop = step_stop_flag(v);
    w->fresh = true;
    w->answered = answered;
    SDL_PushEvent(&ev);
}

/* Shows the view until a command arrives. */
static int window_ask(struct step_front *f, const struct step_view *v, struct step_command *out,
                      struct err *e)
{
    struct window *w = (struct window *)f;
    int rc = 0;
    pthread_mutex_lock(&w->lock);
    w->questions++;
    give_view(w, v, false);
    while (!w->answered && rc == 0) {
        if (flag_up(w->stop))
            rc = err_set(e, ERR_STOPPED, "stopped while the step window waited");
        else
            wait_briefly(w);
    }
    *out = w->command;
    /* The next screenshot and the next click must not hit the window. */
    for (int64_t since = clock_ns(); w->covers && w->shown && clock_ms_since(since) < GONE_MS;)
        wait_briefly(w);
    w->view = NULL;
    pthread_mutex_unlock(&w->lock);
    if (w->covers)
        clock_sleep_ms(HIDE_MS); /* windows below it are redrawn */
    focus_give_back(w->focus, w->id);
    return rc;
}

static void window_passed(struct step_front *f, const struct step_view *v)
{
    struct window *w = (struct window *)f;
    if (w->covers)
        return;
    pthread_mutex_lock(&w->lock);
    give_view(w, v, true);
    for (int64_t since = clock_ns(); w->fresh && clock_ms_since(since) < 200;)
        wait_briefly(w);
    w->view = NULL;
    pthread_mutex_unlock(&w->lock);
    focus_remember(w->focus, w->id);
    focus_give_back(w->focus, w->id); /* a click may have moved the focus to the window */
}

static void window_ended(struct step_front *f, const char *head, const char *text)
{
    struct window *w = (struct window *)f;
    SDL_Event ev = {.type = w->wake};
    pthread_mutex_lock(&w->lock);
    if (w->drawn) {
        w->last = (struct outcome_box){.head = head, .text = text};
        w->answered = false;
        w->fresh = true;
        SDL_PushEvent(&ev);
        for (int64_t since = clock_ns();
             !w->last.seen && !flag_up(screen_stop_flag(NULL)) && clock_ms_since(since) < 1000.0 * LAST_S;)
            wait_briefly(w);
    }
    pthread_mutex_unlock(&w->lock);
    focus_give_back(w->focus, w->id);
}

static void window_close(struct step_front *f)
{
    struct window *w = (struct window *)f;
    pthread_mutex_lock(&w->lock);
    w->end = true;
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    focus_close(w->focus);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w);
}

/* Starts the window's thread. SDL opens the display in $DISPLAY; the agent's connections are already open. */
static int start_thread(struct window *w)
{
    const char *old = getenv("DISPLAY");
    char *kept = old ? xstrdup(old) : NULL;
    setenv("DISPLAY", w->o.display ? w->o.display : w->o.captured ? w->o.captured : "", 1);
    int rc = pthread_create(&w->thread, NULL, window_thread, w);
    pthread_mutex_lock(&w->lock);
    while (rc == 0 && !w->ready)
        wait_briefly(w);
    pthread_mutex_unlock(&w->lock);
    if (kept)
        setenv("DISPLAY", kept, 1);
    else
        unsetenv("DISPLAY");
    free(kept);
    return rc;
}

struct step_front *step_window(const struct window_options *o, struct err *e)
{
    struct window *w = xcalloc(1, sizeof *w);
    w->front = (struct step_front){.name = "window",
                                   .person = true,
                                   .beam_search = STEP_ALTERNATIVES,
                                   .ask = window_ask,
                                   .passed = window_passed,
                                   .ended = window_ended,
                                   .close = window_close};
    w->o = *o;
    if (same_display(w) && (o->display || o->captured))
        w->focus = focus_open(o->display ? o->display : o->captured);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int rc = start_thread(w);
    if (rc) {
        err_set(e, ERR_ENV, "cannot start the thread of the step window: %s", strerror(rc));
        focus_close(w->focus);
        free(w);
        return NULL;
    }
    if (w->err.kind) {
        *e = w->err;
        window_close(&w->front);
        return NULL;
    }
    return &w->front;
}
