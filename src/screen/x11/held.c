/* held.c - records pressed keys and buttons and releases them; see held.h. The file is in held_file.c. */
#include "screen/x11/held.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "screen/x11/displays.h"
#include "screen/x11/x11_impl.h"

#include <X11/XKBlib.h>
#include <X11/extensions/XTest.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LOCK_WAIT_MS = 20, /* longest time that the owner of the lock needs for one event */
    REGISTRY_WAIT_MS = 300,
    EMERGENCY_MS = 1500,
    NOTE_MS = 2000,    /* time for which an event sent by this program is remembered */
    MOVE_BACK_MS = 40, /* time for a drop site to respond to a motion */
    MOVE_BACK_FAST_MS = 10,
};

/* displays of this process, for held_emergency() */
static struct held *registry;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;

static void registry_add(struct held *h)
{
    pthread_mutex_lock(&registry_lock);
    h->next = registry;
    registry = h;
    pthread_mutex_unlock(&registry_lock);
}

static void registry_remove(const struct held *h)
{
    pthread_mutex_lock(&registry_lock);
    for (struct held **at = &registry; *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    pthread_mutex_unlock(&registry_lock);
}

/* ---- origin of events -------------------------------------------------------------------------------- */

void event_origin_add(struct event_origin *o, enum event_origin_kind kind, int detail, bool down)
{
    pthread_mutex_lock(&o->lock);
    o->notes[o->next++ % ORIGIN_NOTES] = (struct event_origin_note){kind, detail, down, clock_ns()};
    pthread_mutex_unlock(&o->lock);
}

bool event_origin_match(struct event_origin *o, enum event_origin_kind kind, int detail, bool down)
{
    bool found = false;
    pthread_mutex_lock(&o->lock);
    for (int i = 0; i < ORIGIN_NOTES && !found; i++) {
        struct event_origin_note *n = &o->notes[i];
        found = n->at && n->kind == kind && n->detail == detail && n->down == down &&
                clock_ms_since(n->at) < NOTE_MS;
        if (found)
            n->at = 0;
    }
    pthread_mutex_unlock(&o->lock);
    return found;
}

/* ---- releasing --------------------------------------------------------------------------------------- */

void held_lock(struct held *h)
{
    pthread_mutex_lock(&h->lock);
}

void held_unlock(struct held *h)
{
    pthread_mutex_unlock(&h->lock);
}

/* Removes the keysyms of a borrowed keycode, unless another client has mapped the keycode meanwhile. */
static void spare_clear(Display *dpy, int code, uint32_t keysym)
{
    int per = 0;
    KeySym *now = XGetKeyboardMapping(dpy, (KeyCode)code, 1, &per);
    KeySym lower, upper;
    XConvertCase(keysym, &lower, &upper);
    bool ours = now && per >= 2 && now[0] == keysym && (now[1] == keysym || now[1] == upper);
    if (now)
        XFree(now);
    if (ours) {
        KeySym none[2] = {NoSymbol, NoSymbol};
        XChangeKeyboardMapping(dpy, code, 2, none, 1);
    }
}

static void move_back(Display *dpy, int x, int y, struct event_origin *origin)
{
    if (origin)
        event_origin_add(origin, ORIGIN_MOTION, 0, true);
    XTestFakeMotionEvent(dpy, -1, x, y, CurrentTime);
}

static void move_back_and_wait(Display *dpy, int x, int y, struct event_origin *origin, int wait_ms)
{
    move_back(dpy, x, y, origin);
    XFlush(dpy);
    clock_sleep_ms(wait_ms);
}

/* Moves the pointer to where the button went down, so that a dragged object is dropped on itself. Waits after
 * each motion, because toolkits drop at the last position to which the drop site has responded. The last
 * motion is sent together with the release, because the user may move the pointer during the waits. */
static void move_drag_back(Display *dpy, const struct pressed *p, struct event_origin *origin, int wait_ms)
{
    bool any = false;
    for (int b = 1; b < HELD_BUTTONS; b++)
        any = any || p->button[b];
    if (!any || p->press_x < 0)
        return;
    move_back_and_wait(dpy, p->press_x + 1, p->press_y, origin, wait_ms);
    move_back_and_wait(dpy, p->press_x, p->press_y, origin, wait_ms);
    move_back(dpy, p->press_x, p->press_y, origin);
}

static void send_releases(Display *dpy, const struct pressed *p, struct event_origin *origin, int wait_ms)
{
    for (int k = 8; k < HELD_KEYS; k++)
        if (p->key[k]) {
            if (origin)
                event_origin_add(origin, ORIGIN_KEY, k, false);
            XTestFakeKeyEvent(dpy, (unsigned)k, False, CurrentTime);
        }
    move_drag_back(dpy, p, origin, wait_ms);
    for (int b = 1; b < HELD_BUTTONS; b++)
        if (p->button[b]) {
            if (origin)
                event_origin_add(origin, ORIGIN_BUTTON, b, false);
            XTestFakeButtonEvent(dpy, (unsigned)b, False, CurrentTime);
        }
}

bool held_any_settings(const struct held_settings *t)
{
    return t->locks || t->latches || t->controls;
}

/* Restores the user's settings with one write. Sticky keys are switched on before the locks are set, because
 * the server clears locks when sticky keys are switched off. */
static void restore_settings(Display *dpy, const struct held_settings *t)
{
    if (t->controls)
        XkbChangeEnabledControls(dpy, XkbUseCoreKbd, t->controls, t->controls);
    if (t->locks)
        XkbLockModifiers(dpy, XkbUseCoreKbd, t->locks, t->locks);
    if (t->latches)
        XkbLatchModifiers(dpy, XkbUseCoreKbd, t->latches, t->latches);
    XSync(dpy, False);
}

void held_restore_settings(struct held *h, Display *dpy)
{
    if (!held_any_settings(&h->settings))
        return;
    restore_settings(dpy, &h->settings);
    h->settings = (struct held_settings){0};
    held_store(h);
}

void held_undo(Display *dpy, const struct pressed *p, struct event_origin *origin)
{
    struct xtrap t;
    xtrap_begin(&t, dpy);
    send_releases(dpy, p, origin, MOVE_BACK_MS);
    XSync(dpy, False);
    for (int k = 8; k < HELD_KEYS; k++)
        if (p->spare[k])
            spare_clear(dpy, k, p->spare[k]);
    restore_settings(dpy, &p->settings);
    xtrap_end(&t);
}

bool held_pressed(const struct held *h)
{
    for (int i = 0; i < HELD_KEYS; i++)
        if ((h->key[i] && !h->key_sent[i]) || (i < HELD_BUTTONS && h->button[i] && !h->button_sent[i]))
            return true;
    return false;
}

bool held_any_button(const struct held *h)
{
    for (int i = 0; i < HELD_BUTTONS; i++)
        if (h->button[i])
            return true;
    return false;
}

bool held_any(const struct held *h)
{
    for (int i = 0; i < HELD_KEYS; i++)
        if (h->key[i] || h->spare[i] || (i < HELD_BUTTONS && h->button[i]))
            return true;
    return held_any_settings(&h->settings);
}

static void copy_pressed(const struct held *h, struct pressed *p)
{
    for (int i = 0; i < HELD_KEYS; i++) {
        p->key[i] = h->key[i];
        p->spare[i] = h->spare[i];
    }
    for (int i = 0; i < HELD_BUTTONS; i++)
        p->button[i] = h->button[i];
    p->press_x = h->press_x;
    p->press_y = h->press_y;
    p->settings = h->settings;
}

static void forget_pressed(struct held *h)
{
    for (int i = 0; i < HELD_KEYS; i++) {
        h->key[i] = h->key_sent[i] = false;
        h->spare[i] = 0;
    }
    for (int i = 0; i < HELD_BUTTONS; i++)
        h->button[i] = h->button_sent[i] = false;
    h->settings = (struct held_settings){0};
    held_store(h);
}

struct timespec held_deadline(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000L;
    t.tv_sec += t.tv_nsec / 1000000000L;
    t.tv_nsec %= 1000000000L;
    return t;
}

void held_release_pressed(struct held *h, Display *dpy, bool at_once)
{
    struct timespec until = held_deadline(LOCK_WAIT_MS);
    bool locked = pthread_mutex_clocklock(&h->lock, CLOCK_MONOTONIC, &until) == 0, any = false;
    struct pressed p = {.press_x = h->press_x, .press_y = h->press_y};
    for (int i = 0; i < HELD_KEYS; i++)
        any |= p.key[i] = h->key[i] && !atomic_exchange(&h->key_sent[i], true);
    for (int i = 0; i < HELD_BUTTONS; i++)
        any |= p.button[i] = h->button[i] && !atomic_exchange(&h->button_sent[i], true);
    if (any) {
        send_releases(dpy, &p, &h->origin, at_once ? MOVE_BACK_FAST_MS : MOVE_BACK_MS);
        XFlush(dpy);
    }
    if (locked)
        held_unlock(h);
}

void held_confirm_released(struct held *h)
{
    bool any = false;
    for (int i = 0; i < HELD_KEYS; i++)
        if (atomic_exchange(&h->key_sent[i], false))
            any |= atomic_exchange(&h->key[i], false);
    for (int i = 0; i < HELD_BUTTONS; i++)
        if (atomic_exchange(&h->button_sent[i], false))
            any |= atomic_exchange(&h->button[i], false);
    if (any)
        held_store(h);
}

/* ---- all displays ------------------------------------------------------------------------------------ */

/* Undoes *p through a new connection. If none can be opened, the server has exited, and its key state with
 * it. */
static void undo_reconnected(const char *display, const struct pressed *p, struct event_origin *origin)
{
    atomic_bool lost = false;
    Display *dpy = xtrap_open(display, &lost); /* NULL also if another server has this number now */
    if (!dpy)
        return;
    held_undo(dpy, p, origin);
    xtrap_close(dpy, &lost);
}

void held_release_anew(struct held *h)
{
    struct pressed p;
    if (!held_any(h))
        return;
    copy_pressed(h, &p);
    undo_reconnected(h->display, &p, &h->origin);
    forget_pressed(h);
}

struct emergency { /* one display; freed by its thread */
    struct pressed pressed;
    char *display;
    struct event_origin *origin;
};

static void *emergency_thread(void *arg)
{
    struct emergency *r = arg;
    undo_reconnected(r->display, &r->pressed, r->origin);
    free(r->display);
    free(r);
    return NULL;
}

/* Starts a thread that releases everything held on one display. Returns false if no thread could be started;
 * the release is then already done. */
static bool emergency(struct held *h, pthread_t *thread)
{
    struct emergency *r = xcalloc(1, sizeof *r);
    copy_pressed(h, &r->pressed);
    r->display = xstrdup(h->display);
    r->origin = &h->origin;
    if (thread_start(thread, 0, emergency_thread, r) == 0)
        return true;
    emergency_thread(r);
    return false;
}

void held_emergency(void)
{
    static pthread_t threads[STOP_SLOTS];
    struct timespec until = held_deadline(REGISTRY_WAIT_MS);
    int n = 0;
    if (pthread_mutex_clocklock(&registry_lock, CLOCK_MONOTONIC, &until))
        return; /* the owner of the lock hangs */
    for (struct held *h = registry; h; h = h->next)
        if (n < STOP_SLOTS && held_any(h))
            n += emergency(h, &threads[n]);
    until = held_deadline(EMERGENCY_MS);
    bool all = true;
    for (int i = 0; i < n; i++)
        all = pthread_clockjoin_np(threads[i], NULL, CLOCK_MONOTONIC, &until) == 0 && all;
    for (struct held *h = registry; h && all; h = h->next)
        if (held_any(h))
            forget_pressed(h);
    if (all)
        pthread_mutex_unlock(&registry_lock); /* otherwise a thread still uses an entry */
}

/* ---- opening and closing ---------------------------------------------------------------------- */

void held_open(struct held *h, const char *display)
{
    memset(h, 0, sizeof *h);
    h->fd = -1;
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_init(&h->origin.lock, NULL);
    h->display = xstrdup(display);
    struct err e = ERR_INIT;
    char *dir = file_place(PLACE_RUNTIME, &e);
    if (dir) {
        char name[DISPLAY_NAME_MAX];
        displays_canonical(display, name);
        for (char *p = name; *p; p++) /* a display name may be the path of a socket */
            if (*p == '/')
                *p = '_';
        h->path = xasprintf("%s/held-%s.json", dir, name);
        free(dir);
    } else {
        warn("%s; after a crash, held keys will stay pressed", e.text);
        h->memory_only = true;
    }
    registry_add(h);
}

void held_close(struct held *h)
{
    registry_remove(h);
    held_unlock_file(h);
    free(h->path);
    free(h->display);
    pthread_mutex_destroy(&h->lock);
    pthread_mutex_destroy(&h->origin.lock);
    memset(h, 0, sizeof *h);
    h->fd = -1;
}

static void set_down(struct held *h, atomic_bool *down, atomic_bool *sent, bool on)
{
    *sent = false;
    if (atomic_exchange(down, on) != on)
        held_store(h);
}

void held_set_key(struct held *h, int keycode, bool on)
{
    if (keycode >= 8 && keycode < HELD_KEYS)
        set_down(h, &h->key[keycode], &h->key_sent[keycode], on);
}

void held_set_button(struct held *h, int button, bool on)
{
    if (button >= 1 && button < HELD_BUTTONS)
        set_down(h, &h->button[button], &h->button_sent[button], on);
}

void held_set_press(struct held *h, int x, int y)
{
    h->press_x = x;
    h->press_y = y;
}

void held_set_spare(struct held *h, int keycode, uint32_t keysym)
{
    if (keycode >= 8 && keycode < HELD_KEYS)
        h->spare[keycode] = keysym;
}
