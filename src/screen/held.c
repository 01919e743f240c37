/* held.c - see held.h.
 *
 * The file is one JSON object, replaced by one pwrite: {"version":1,"pid":4711,"keys":[37],"buttons":[1],
 * "scratch":[[93,16777297]],"locks":2}.  A kill leaves the old or the new state, never half of one.  What
 * it lists is checked against the server before it is undone, since a new server may have the same display
 * number.  Locks cannot be checked: only a caller that has been connected to the server since before puts
 * them back.
 */
#include "screen/held.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/pool.h"
#include "screen/private.h"

#include <X11/XKBlib.h>
#include <X11/extensions/XTest.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
    bool ours = now && per >= 2 && now[0] == keysym && now[1] == keysym;
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
    unsigned locks;
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
    if (p->locks)
        XkbLockModifiers(dpy, XkbUseCoreKbd, p->locks, p->locks);
    xtrap_end(&t);
}

bool held_any(const struct held *h)
{
    for (int i = 0; i < HELD_KEYS; i++)
        if (h->key[i] || h->spare[i] || (i < HELD_BUTTONS && h->button[i]))
            return true;
    return h->locks != 0;
}

static void copy_pressed(const struct held *h, struct pressed *p)
{
    for (int i = 0; i < HELD_KEYS; i++) {
        p->key[i] = h->key[i];
        p->spare[i] = h->spare[i];
    }
    for (int i = 0; i < HELD_BUTTONS; i++)
        p->button[i] = h->button[i];
    p->locks = h->locks;
}

static void forget_pressed(struct held *h)
{
    for (int i = 0; i < HELD_KEYS; i++) {
        h->key[i] = false;
        h->spare[i] = 0;
    }
    for (int i = 0; i < HELD_BUTTONS; i++)
        h->button[i] = false;
    h->locks = 0;
    held_store(h);
}

void held_release(struct held *h, Display *dpy)
{
    struct pressed p;
    if (!held_any(h))
        return;
    copy_pressed(h, &p);
    undo(dpy, &p, &h->origin);
    forget_pressed(h);
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
        any |= p.key[i] = atomic_exchange(&h->key[i], false);
    for (int i = 0; i < HELD_BUTTONS; i++)
        any |= p.button[i] = atomic_exchange(&h->button[i], false);
    if (any) {
        send_releases(dpy, &p, &h->origin);
        XFlush(dpy);
        held_store(h);
    }
    if (locked)
        held_unlock(h);
}

/* ---- all displays ----------------------------------------------------------------------------- */

struct emergency { /* one display; freed by its thread */
    struct pressed pressed;
    char *display;
    struct event_origin *origin;
};

static void *emergency_thread(void *arg)
{
    struct emergency *r = arg;
    atomic_bool lost = false;
    Display *dpy = xtrap_open(r->display, &lost);
    if (dpy) {
        undo(dpy, &r->pressed, r->origin);
        XCloseDisplay(dpy);
    }
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
    buf_printf(&b, "],\"locks\":%u}", h->locks);
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

/* Undoes what the file lists; returns how much that was.  same_server: see held_open. */
static int undo_list(int fd, Display *dpy, bool same_server)
{
    json_t *root = read_file(fd), *v;
    struct pressed p = {0};
    char down[32] = {0};
    int found = 0;
    size_t i;

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
    json_int_t locks = json_integer_value(json_object_get(root, "locks"));
    if (same_server && locks > 0 && locks <= UINT8_MAX) {
        p.locks = (unsigned)locks;
        found++;
    }
    json_decref(root);
    if (found)
        undo(dpy, &p, NULL);
    return found;
}

int held_release_file(const char *path, Display *dpy)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), found = fd >= 0 ? undo_list(fd, dpy, true) : 0;
    if (fd >= 0)
        close(fd);
    return found;
}

static void undo_abandoned(struct held *h, Display *dpy, bool same_server)
{
    int found = undo_list(h->fd, dpy, same_server);
    if (found)
        warn("an earlier run on display '%s' left %d keys, buttons, keycodes or locks changed; put back",
             h->display, found);
}

/* 0 when this process has the lock. */
static int lock_file(struct held *h, Display *dpy, bool same_server)
{
    if (h->memory_only || h->fd >= 0)
        return 0;
    int fd = open(h->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        warn("cannot open '%s': %s; keys held at a crash will stay down", h->path, strerror(errno));
        h->memory_only = true;
        return 0;
    }
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        json_t *root = read_file(fd);
        h->owner = (int)json_integer_value(json_object_get(root, "pid"));
        json_decref(root);
        close(fd);
        return -1;
    }
    h->fd = fd;
    undo_abandoned(h, dpy, same_server);
    held_store(h);
    return 0;
}

void held_open(struct held *h, Display *dpy, const char *display, bool same_server)
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
    lock_file(h, dpy, same_server);
    registry_add(h);
}

int held_acquire(struct held *h, Display *dpy, struct err *e)
{
    if (lock_file(h, dpy, false) == 0)
        return 0;
    return err_set(e, ERR_ENV, "display '%s' is driven by another holorun (process %d); stop that one first",
                   h->display, h->owner);
}

void held_close(struct held *h)
{
    registry_remove(h);
    if (h->fd >= 0) {
        /* Not removed: two processes could then lock two files of the same name. */
        held_store(h);
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
    if (keycode >= 8 && keycode < HELD_KEYS && atomic_exchange(&h->key[keycode], on) != on)
        held_store(h);
}

void held_set_button(struct held *h, int button, bool on)
{
    if (button >= 1 && button < HELD_BUTTONS && atomic_exchange(&h->button[button], on) != on)
        held_store(h);
}

void held_set_spare(struct held *h, int keycode, uint32_t keysym)
{
    if (keycode >= 8 && keycode < HELD_KEYS)
        h->spare[keycode] = keysym;
}

void held_set_locks(struct held *h, unsigned mods)
{
    held_lock(h);
    h->locks = mods;
    held_store(h);
    held_unlock(h);
}
