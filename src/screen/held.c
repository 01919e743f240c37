/* held.c - see held.h.
 *
 * The file is one JSON object rewritten in place by one pwrite: {"version":1,"pid":4711,
 * "keys":[37],"buttons":[1],"scratch":[[93,16777297]]}.  A kill between two writes leaves the older
 * or the newer truth, never half of one.  What it lists is checked against the server before it is
 * undone, since a new server may have got the same display number.
 */
#include "screen/held.h"

#include "base/buf.h"
#include "base/file.h"
#include "screen/guard.h"
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

/* Room for a few dozen keys and borrowed keycodes, which is all that ever happens at once. */
enum { FILE_BYTES = 1024, FILE_MAX = 16 << 10 };
enum { LIFT_WAIT_MS = 20 }; /* longest that the owner of the lock may take over one event */

/* Displays of this process, for held_emergency(). */
enum { MAX_DISPLAYS = 16 };
static struct held *registry[MAX_DISPLAYS];
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;

static void registry_put(struct held *h, bool add)
{
    pthread_mutex_lock(&registry_lock);
    struct held *from = add ? NULL : h, *to = add ? h : NULL;
    for (int i = 0; i < MAX_DISPLAYS; i++)
        if (registry[i] == from) {
            registry[i] = to;
            break;
        }
    pthread_mutex_unlock(&registry_lock);
}

/* ---- undoing ----------------------------------------------------------------------------------- */

void held_lock(struct held *h)
{
    pthread_mutex_lock(&h->lock);
}

void held_unlock(struct held *h)
{
    pthread_mutex_unlock(&h->lock);
}

/* A keycode is given back only while it still carries what we put there. */
static void scratch_clear(Display *dpy, int code, uint32_t keysym)
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

static void undo(Display *dpy, const bool *key, const bool *button, const uint32_t *scratch)
{
    struct xtrap t;
    xtrap_begin(&t, dpy);
    for (int b = 1; b < HELD_BUTTONS; b++)
        if (button[b]) {
            ours_note(OURS_BUTTON, b, false);
            XTestFakeButtonEvent(dpy, (unsigned)b, False, CurrentTime);
        }
    for (int k = 8; k < HELD_KEYS; k++)
        if (key[k]) {
            ours_note(OURS_KEY, k, false);
            XTestFakeKeyEvent(dpy, (unsigned)k, False, CurrentTime);
        }
    XSync(dpy, False);
    for (int k = 8; k < HELD_KEYS; k++)
        if (scratch[k])
            scratch_clear(dpy, k, scratch[k]);
    xtrap_end(&t);
}

bool held_any(const struct held *h)
{
    for (int i = 0; i < HELD_KEYS; i++)
        if (h->key[i] || h->scratch[i] || (i < HELD_BUTTONS && h->button[i]))
            return true;
    return false;
}

void held_release(struct held *h, Display *dpy)
{
    if (!held_any(h))
        return;
    bool key[HELD_KEYS], button[HELD_BUTTONS];
    uint32_t scratch[HELD_KEYS];
    for (int i = 0; i < HELD_KEYS; i++) {
        key[i] = h->key[i];
        scratch[i] = h->scratch[i];
    }
    for (int i = 0; i < HELD_BUTTONS; i++)
        button[i] = h->button[i];
    undo(dpy, key, button, scratch);
    for (int i = 0; i < HELD_KEYS; i++) {
        h->key[i] = false;
        h->scratch[i] = 0;
    }
    for (int i = 0; i < HELD_BUTTONS; i++)
        h->button[i] = false;
    held_store(h);
}

void held_lift(struct held *h, Display *dpy)
{
    static const uint32_t nothing[HELD_KEYS];
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LIFT_WAIT_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    bool locked = pthread_mutex_clocklock(&h->lock, CLOCK_MONOTONIC, &until) == 0;
    bool key[HELD_KEYS] = {0}, button[HELD_BUTTONS] = {0}, any = false;
    for (int i = 0; i < HELD_KEYS; i++)
        any |= key[i] = atomic_exchange(&h->key[i], false);
    for (int i = 0; i < HELD_BUTTONS; i++)
        any |= button[i] = atomic_exchange(&h->button[i], false);
    if (any) {
        undo(dpy, key, button, nothing);
        held_store(h);
    }
    if (locked)
        held_unlock(h);
}

void held_emergency(void)
{
    if (pthread_mutex_trylock(&registry_lock))
        return; /* somebody is opening or closing: that thread releases */
    for (int i = 0; i < MAX_DISPLAYS; i++) {
        struct held *h = registry[i];
        if (!h || !held_any(h))
            continue;
        static volatile bool lost;
        Display *dpy = XOpenDisplay(h->display);
        if (!dpy)
            continue;
        xtrap_watch(dpy, &lost);
        held_release(h, dpy);
        XCloseDisplay(dpy);
    }
    pthread_mutex_unlock(&registry_lock);
}

/* ---- the file ---------------------------------------------------------------------------------- */

void held_store(struct held *h)
{
    if (h->fd < 0)
        return;
    struct buf b;
    buf_init(&b, FILE_MAX);
    buf_printf(&b, "{\"version\":1,\"pid\":%d,\"keys\":[", (int)getpid());
    const char *comma = "";
    for (int i = 0; i < HELD_KEYS; i++)
        if (h->key[i]) {
            buf_printf(&b, "%s%d", comma, i);
            comma = ",";
        }
    buf_puts(&b, "],\"buttons\":[");
    comma = "";
    for (int i = 0; i < HELD_BUTTONS; i++)
        if (h->button[i]) {
            buf_printf(&b, "%s%d", comma, i);
            comma = ",";
        }
    buf_puts(&b, "],\"scratch\":[");
    comma = "";
    for (int i = 0; i < HELD_KEYS; i++)
        if (h->scratch[i]) {
            buf_printf(&b, "%s[%d,%u]", comma, i, h->scratch[i]);
            comma = ",";
        }
    buf_puts(&b, "]}");
    /* Always the same size, so that one write replaces the line whole. */
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

/* What another process has left pressed or bound; how much that was. */
static int undo_list(int fd, Display *dpy)
{
    json_t *root = read_file(fd), *v;
    bool key[HELD_KEYS] = {0}, button[HELD_BUTTONS] = {0};
    uint32_t scratch[HELD_KEYS] = {0};
    char down[32] = {0};
    int found = 0;
    size_t i;

    XQueryKeymap(dpy, down);
    json_array_foreach(json_object_get(root, "keys"), i, v)
    {
        json_int_t k = json_integer_value(v);
        if (k >= 8 && k < HELD_KEYS && (down[k / 8] >> (k % 8) & 1) && !key[k])
            found += key[k] = true;
    }
    json_array_foreach(json_object_get(root, "buttons"), i, v)
    {
        json_int_t b = json_integer_value(v);
        if (b >= 1 && b < HELD_BUTTONS && !button[b])
            found += button[b] = true;
    }
    json_array_foreach(json_object_get(root, "scratch"), i, v)
    {
        json_int_t k = json_integer_value(json_array_get(v, 0)),
                   sym = json_integer_value(json_array_get(v, 1));
        if (k >= 8 && k < HELD_KEYS && sym > 0 && sym <= UINT32_MAX) {
            scratch[k] = (uint32_t)sym;
            found++;
        }
    }
    json_decref(root);
    if (found)
        undo(dpy, key, button, scratch);
    return found;
}

int held_undo_file(const char *path, Display *dpy)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), found = fd >= 0 ? undo_list(fd, dpy) : 0;
    if (fd >= 0)
        close(fd);
    return found;
}

static void undo_leftovers(struct held *h, Display *dpy)
{
    int found = undo_list(h->fd, dpy);
    if (found)
        warn("an earlier run on display '%s' ended with %d keys, buttons or borrowed keycodes in use; "
             "released",
             h->display, found);
}

/* 0 when the lock is ours. */
static int lock_file(struct held *h, Display *dpy)
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
    undo_leftovers(h, dpy);
    held_store(h);
    return 0;
}

void held_open(struct held *h, Display *dpy, const char *display)
{
    memset(h, 0, sizeof *h);
    h->fd = -1;
    pthread_mutex_init(&h->lock, NULL);
    h->display = xstrdup(display);
    struct err e = ERR_INIT;
    char *dir = file_place(PLACE_RUNTIME, &e);
    if (dir) {
        /* ":1.0" and ":1" are one display; "/" occurs in names of local sockets */
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
    guard_display(h->display, h->path);
    registry_put(h, true);
}

int held_own(struct held *h, Display *dpy, struct err *e)
{
    if (lock_file(h, dpy) == 0)
        return 0;
    return err_set(e, ERR_ENV, "display '%s' is driven by another holorun (process %d); stop that one first",
                   h->display, h->owner);
}

void held_close(struct held *h)
{
    registry_put(h, false);
    if (h->fd >= 0) {
        /* Emptied, not removed: removing a lock file lets two processes lock two files of one name. */
        held_store(h);
        close(h->fd);
    }
    free(h->path);
    free(h->display);
    pthread_mutex_destroy(&h->lock);
    memset(h, 0, sizeof *h);
    h->fd = -1;
}

void held_set_key(struct held *h, int keycode, bool on)
{
    if (keycode < 8 || keycode >= HELD_KEYS || h->key[keycode] == on)
        return;
    h->key[keycode] = on;
    held_store(h);
}

void held_set_button(struct held *h, int button, bool on)
{
    if (button < 1 || button >= HELD_BUTTONS || h->button[button] == on)
        return;
    h->button[button] = on;
    held_store(h);
}

void held_set_scratch(struct held *h, int keycode, uint32_t keysym)
{
    if (keycode >= 8 && keycode < HELD_KEYS)
        h->scratch[keycode] = keysym;
}
