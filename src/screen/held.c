/* held.c - see held.h.
 *
 * The file is one JSON object, replaced by one pwrite: {"version":1,"pid":4711,"keys":[37],"buttons":[1],
 * "scratch":[[93,16777297]],"locks":2,"latches":0,"controls":8,"server":"c3..."}.  A kill leaves the old or the new
 * state, never half of one.  What it lists is undone on the same server only, since a new one may have the same
 * display number.
 */
#include "screen/held.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/pool.h"
#include "screen/private.h"

#include <X11/XKBlib.h>
#include <X11/Xatom.h>
#include <X11/extensions/XTest.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Enough for a few dozen keys and borrowed keycodes. */
enum { FILE_BYTES = 1024, FILE_MAX = 16 << 10 };
enum {
    LOCK_WAIT_MS = 20, /* longest that the owner of the lock takes for one event */
    REGISTRY_WAIT_MS = 300,
    EMERGENCY_MS = 1500,
};

/* Displays of this process, for held_emergency(). */
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

/* ---- undoing ---------------------------------------------------------------------------------- */

void held_lock(struct held *h)
{
    pthread_mutex_lock(&h->lock);
}

void held_unlock(struct held *h)
{
    pthread_mutex_unlock(&h->lock);
}

/* Empties a borrowed keycode, unless somebody has mapped it anew meanwhile. */
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

struct pressed { /* a snapshot of struct held */
    bool key[HELD_KEYS], button[HELD_BUTTONS];
    uint32_t spare[HELD_KEYS];
    struct held_settings settings;
};

static void send_releases(Display *dpy, const struct pressed *p, struct event_origin *origin)
{
    for (int b = 1; b < HELD_BUTTONS; b++)
        if (p->button[b]) {
            if (origin)
                event_origin_add(origin, ORIGIN_BUTTON, b, false);
            XTestFakeButtonEvent(dpy, (unsigned)b, False, CurrentTime);
        }
    for (int k = 8; k < HELD_KEYS; k++)
        if (p->key[k]) {
            if (origin)
                event_origin_add(origin, ORIGIN_KEY, k, false);
            XTestFakeKeyEvent(dpy, (unsigned)k, False, CurrentTime);
        }
}

static bool any_settings(const struct held_settings *t)
{
    return t->locks || t->latches || t->controls;
}

/* One write carries all of it.  Sticky keys come first: the server forgets locks when they go off. */
static void put_back(Display *dpy, const struct held_settings *t)
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
    if (!any_settings(&h->settings))
        return;
    put_back(dpy, &h->settings);
    h->settings = (struct held_settings){0};
    held_store(h);
}

/* origin: NULL when no thread of this process watches the display. */
static void undo(Display *dpy, const struct pressed *p, struct event_origin *origin)
{
    struct xtrap t;
    xtrap_begin(&t, dpy);
    send_releases(dpy, p, origin);
    XSync(dpy, False);
    for (int k = 8; k < HELD_KEYS; k++)
        if (p->spare[k])
            spare_clear(dpy, k, p->spare[k]);
    put_back(dpy, &p->settings);
    xtrap_end(&t);
}

bool held_pressed(const struct held *h)
{
    for (int i = 0; i < HELD_KEYS; i++)
        if ((h->key[i] && !h->key_sent[i]) || (i < HELD_BUTTONS && h->button[i] && !h->button_sent[i]))
            return true;
    return false;
}

bool held_any(const struct held *h)
{
    for (int i = 0; i < HELD_KEYS; i++)
        if (h->key[i] || h->spare[i] || (i < HELD_BUTTONS && h->button[i]))
            return true;
    return any_settings(&h->settings);
}

static void copy_pressed(const struct held *h, struct pressed *p)
{
    for (int i = 0; i < HELD_KEYS; i++) {
        p->key[i] = h->key[i];
        p->spare[i] = h->spare[i];
    }
    for (int i = 0; i < HELD_BUTTONS; i++)
        p->button[i] = h->button[i];
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

void held_release_pressed(struct held *h, Display *dpy)
{
    struct timespec until = held_deadline(LOCK_WAIT_MS);
    bool locked = pthread_mutex_clocklock(&h->lock, CLOCK_MONOTONIC, &until) == 0, any = false;
    struct pressed p = {0};
    for (int i = 0; i < HELD_KEYS; i++)
        any |= p.key[i] = h->key[i] && !atomic_exchange(&h->key_sent[i], true);
    for (int i = 0; i < HELD_BUTTONS; i++)
        any |= p.button[i] = h->button[i] && !atomic_exchange(&h->button_sent[i], true);
    if (any) {
        send_releases(dpy, &p, &h->origin);
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

/* ---- all displays ----------------------------------------------------------------------------- */

/* Through a new connection; without one the server is gone, and its keys with it. */
static void undo_anew(const char *display, const struct pressed *p, struct event_origin *origin)
{
    atomic_bool lost = false;
    Display *dpy = xtrap_open(display, &lost);
    if (!dpy)
        return;
    undo(dpy, p, origin);
    XCloseDisplay(dpy);
}

void held_release_anew(struct held *h)
{
    struct pressed p;
    if (!held_any(h))
        return;
    copy_pressed(h, &p);
    undo_anew(h->display, &p, &h->origin);
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
    undo_anew(r->display, &r->pressed, r->origin);
    free(r->display);
    free(r);
    return NULL;
}

/* Whether a thread has been started for it. */
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
        return; /* its owner hangs */
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
        pthread_mutex_unlock(&registry_lock); /* else a thread still uses an entry */
}

/* ---- the file --------------------------------------------------------------------------------- */

static void put_pressed(struct buf *b, const char *name, const atomic_bool *pressed, int n)
{
    const char *comma = "";
    buf_printf(b, "\"%s\":[", name);
    for (int i = 0; i < n; i++)
        if (pressed[i]) {
            buf_printf(b, "%s%d", comma, i);
            comma = ",";
        }
    buf_puts(b, "],");
}

void held_store(struct held *h)
{
    if (h->fd < 0)
        return;
    struct buf b;
    buf_init(&b, FILE_MAX);
    buf_printf(&b, "{\"version\":1,\"pid\":%d,", (int)getpid());
    put_pressed(&b, "keys", h->key, HELD_KEYS);
    put_pressed(&b, "buttons", h->button, HELD_BUTTONS);
    buf_puts(&b, "\"scratch\":[");
    const char *comma = "";
    for (int i = 0; i < HELD_KEYS; i++)
        if (h->spare[i]) {
            buf_printf(&b, "%s[%d,%u]", comma, i, h->spare[i]);
            comma = ",";
        }
    buf_printf(&b, "],\"locks\":%u,\"latches\":%u,\"controls\":%u,\"server\":\"%s\"}", h->settings.locks,
               h->settings.latches, h->settings.controls, h->server);
    /* Padded to one size, so that one write replaces the whole line. */
    while (b.len < FILE_BYTES - 1)
        buf_putc(&b, ' ');
    buf_putc(&b, '\n');
    if (b.full || pwrite(h->fd, b.data, b.len, 0) != (ssize_t)b.len)
        warn("cannot write '%s': %s", h->path, strerror(errno));
    buf_free(&b);
}

static json_t *read_file(int fd)
{
    char text[FILE_MAX];
    ssize_t n = pread(fd, text, sizeof text, 0);
    return n > 0 ? json_loadb(text, (size_t)n, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

/* The server's name for itself, as long as it lives: a random text that the first run leaves on the root window.
 * "" when there is none. */
static void read_server(Display *dpy, char out[HELD_SERVER])
{
    Atom type;
    int format = 0;
    unsigned long n = 0, after;
    unsigned char *data = NULL;
    struct xtrap t;
    out[0] = 0;
    xtrap_begin(&t, dpy);
    XGetWindowProperty(dpy, DefaultRootWindow(dpy), XInternAtom(dpy, "_HOLORUN_SERVER", False), 0,
                       HELD_SERVER / 4, False, XA_STRING, &type, &format, &n, &after, &data);
    if (!xtrap_end(&t) && data && format == 8 && n == HELD_SERVER - 1)
        snprintf(out, HELD_SERVER, "%s", (const char *)data);
    if (data)
        XFree(data);
}

static void name_server(struct held *h, Display *dpy)
{
    uint64_t random;
    read_server(dpy, h->server);
    if (*h->server || getrandom(&random, sizeof random, 0) != sizeof random)
        return;
    snprintf(h->server, sizeof h->server, "%016llx", (unsigned long long)random);
    XChangeProperty(dpy, DefaultRootWindow(dpy), XInternAtom(dpy, "_HOLORUN_SERVER", False), XA_STRING, 8,
                    PropModeReplace, (const unsigned char *)h->server, HELD_SERVER - 1);
}

static unsigned read_bits(const json_t *root, const char *name)
{
    json_int_t v = json_integer_value(json_object_get(root, name));
    return v > 0 && v <= UINT16_MAX ? (unsigned)v : 0;
}

/* Undoes what the file lists, if it is of this server; returns how much that was. */
static int undo_list(int fd, Display *dpy)
{
    json_t *root = read_file(fd), *v;
    struct pressed p = {0};
    char down[32] = {0}, server[HELD_SERVER];
    const char *written = json_string_value(json_object_get(root, "server"));
    int found = 0;
    size_t i;

    read_server(dpy, server);
    if (!written || !*written || strcmp(written, server) != 0) {
        json_decref(root);
        return 0;
    }
    XQueryKeymap(dpy, down);
    json_array_foreach(json_object_get(root, "keys"), i, v)
    {
        json_int_t k = json_integer_value(v);
        if (k >= 8 && k < HELD_KEYS && (down[k / 8] >> (k % 8) & 1) && !p.key[k])
            found += p.key[k] = true;
    }
    json_array_foreach(json_object_get(root, "buttons"), i, v)
    {
        json_int_t b = json_integer_value(v);
        if (b >= 1 && b < HELD_BUTTONS && !p.button[b])
            found += p.button[b] = true;
    }
    json_array_foreach(json_object_get(root, "scratch"), i, v)
    {
        json_int_t k = json_integer_value(json_array_get(v, 0)),
                   sym = json_integer_value(json_array_get(v, 1));
        if (k >= 8 && k < HELD_KEYS && sym > 0 && sym <= UINT32_MAX) {
            p.spare[k] = (uint32_t)sym;
            found++;
        }
    }
    p.settings = (struct held_settings){read_bits(root, "locks"), read_bits(root, "latches"),
                                        read_bits(root, "controls")};
    found += any_settings(&p.settings);
    json_decref(root);
    if (found)
        undo(dpy, &p, NULL);
    return found;
}

int held_release_file(const char *path, Display *dpy)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), found = fd >= 0 ? undo_list(fd, dpy) : 0;
    if (fd >= 0)
        close(fd);
    return found;
}

/* Opens the file and locks it; -1: it cannot be opened, -2: another process has it.  The process that had it
 * before may have removed it meanwhile: then there is another one of that name, or none. */
static int open_locked(struct held *h)
{
    for (;;) {
        struct stat own, there;
        int fd = open(h->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            json_t *root = read_file(fd);
            h->owner = (int)json_integer_value(json_object_get(root, "pid"));
            json_decref(root);
            close(fd);
            return -2;
        }
        if (fstat(fd, &own) == 0 && stat(h->path, &there) == 0 && own.st_ino == there.st_ino &&
            own.st_dev == there.st_dev)
            return fd;
        close(fd);
    }
}

/* 0 when this process has the lock. */
static int lock_file(struct held *h, Display *dpy)
{
    if (h->memory_only || h->fd >= 0)
        return 0;
    int fd = open_locked(h);
    if (fd == -1) {
        warn("cannot open '%s': %s; keys held at a crash will stay down", h->path, strerror(errno));
        h->memory_only = true;
        return 0;
    }
    if (fd < 0)
        return -1;
    h->fd = fd;
    int found = undo_list(fd, dpy);
    if (found)
        warn("an earlier run on display '%s' left %d keys, buttons, keycodes or locks changed; put back",
             h->display, found);
    name_server(h, dpy);
    held_store(h);
    return 0;
}

void held_open(struct held *h, Display *dpy, const char *display)
{
    memset(h, 0, sizeof *h);
    h->fd = -1;
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_init(&h->origin.lock, NULL);
    h->display = xstrdup(display);
    struct err e = ERR_INIT;
    char *dir = file_place(PLACE_RUNTIME, &e);
    if (dir) {
        /* ":1.0" and ":1" are the same display; names of local sockets contain "/" */
        char *name = xstrdup(display);
        char *colon = strrchr(name, ':'), *dot = colon ? strchr(colon, '.') : NULL;
        if (dot)
            *dot = 0;
        for (char *p = name; *p; p++)
            if (*p == '/')
                *p = '_';
        h->path = xasprintf("%s/held-%s.json", dir, name);
        free(name);
        free(dir);
    } else {
        warn("%s; keys held at a crash will stay down", e.text);
        h->memory_only = true;
    }
    lock_file(h, dpy);
    registry_add(h);
}

int held_acquire(struct held *h, Display *dpy, struct err *e)
{
    if (lock_file(h, dpy) == 0)
        return 0;
    return err_set(e, ERR_ENV, "display '%s' is driven by another holorun (process %d); stop that one first",
                   h->display, h->owner);
}

void held_close(struct held *h)
{
    registry_remove(h);
    if (h->fd >= 0) {
        if (held_any(h))
            held_store(h);
        else
            unlink(h->path); /* before the lock goes: see open_locked() */
        close(h->fd);
    }
    free(h->path);
    free(h->display);
    pthread_mutex_destroy(&h->lock);
    pthread_mutex_destroy(&h->origin.lock);
    memset(h, 0, sizeof *h);
    h->fd = -1;
}

void held_set_key(struct held *h, int keycode, bool on)
{
    if (keycode < 8 || keycode >= HELD_KEYS)
        return;
    h->key_sent[keycode] = false;
    if (atomic_exchange(&h->key[keycode], on) != on)
        held_store(h);
}

void held_set_button(struct held *h, int button, bool on)
{
    if (button < 1 || button >= HELD_BUTTONS)
        return;
    h->button_sent[button] = false;
    if (atomic_exchange(&h->button[button], on) != on)
        held_store(h);
}

void held_set_spare(struct held *h, int keycode, uint32_t keysym)
{
    if (keycode >= 8 && keycode < HELD_KEYS)
        h->spare[keycode] = keysym;
}
