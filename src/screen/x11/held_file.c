/* held_file.c - the held file: pressed keys and buttons as JSON, and the input lock of a display.
 *
 * The file contains one JSON object, written with one pwrite():
 *
 *     {"version":1,"pid":4711,"keys":[37],"buttons":[1],"press":[300,200],
 *      "scratch":[[93,16777297]],"locks":2,"latches":0,"controls":8,"server":"c3..."}
 *
 * A process killed during the write leaves the old or the new state, never a mixture. Entries are undone only
 * on the server that they were made on, because a new server may have the same display number. */
#include "screen/x11/x11_impl.h"

#include "base/buf.h"

#include <X11/Xatom.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* padded size of the file, enough for a few dozen keys and borrowed keycodes; maximum size */
enum { FILE_BYTES = 1024, FILE_MAX = 16 << 10 };

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
    buf_printf(&b, "\"press\":[%d,%d],\"scratch\":[", h->press_x, h->press_y);
    const char *comma = "";
    for (int i = 0; i < HELD_KEYS; i++)
        if (h->spare[i]) {
            buf_printf(&b, "%s[%d,%u]", comma, i, h->spare[i]);
            comma = ",";
        }
    buf_printf(&b, "],\"locks\":%u,\"latches\":%u,\"controls\":%u,\"server\":\"%s\"}", h->settings.locks,
               h->settings.latches, h->settings.controls, h->server);
    /* Padded to a fixed size, so that one write replaces the whole line. */
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

/* Reads the random id that the first run sets on the root window of a server; "" if there is none. The id
 * identifies the server as long as it runs. */
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

/* Returns one coordinate of "press"; -1 if it is missing or out of range. */
static int read_place(const json_t *root, size_t axis)
{
    const json_t *v = json_array_get(json_object_get(root, "press"), axis);
    json_int_t at = json_is_integer(v) ? json_integer_value(v) : -1;
    return at >= 0 && at <= INT16_MAX ? (int)at : -1;
}

/* Undoes everything that the file lists, if it was written for this server. Returns the number of keys,
 * buttons, keycodes and changed settings. */
static int undo_list(int fd, Display *dpy)
{
    json_t *root = read_file(fd), *v;
    struct pressed p = {.press_x = -1};
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
    p.press_x = read_place(root, 0);
    p.press_y = read_place(root, 1);
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
    found += held_any_settings(&p.settings);
    json_decref(root);
    if (found)
        held_undo(dpy, &p, NULL);
    return found;
}

int held_release_file(const char *path, Display *dpy)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), found = fd >= 0 ? undo_list(fd, dpy) : 0;
    if (fd >= 0)
        close(fd);
    return found;
}

/* Opens and locks the file. Returns its descriptor, -1 if it cannot be opened, -2 if another process has the
 * lock. The previous owner may remove the file between open() and flock(), so the inode is compared. */
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

/* Returns 0 if this process has the lock, or if the file cannot be created; -1 if another process has it. */
static int lock_file(struct held *h, Display *dpy)
{
    if (h->memory_only || h->fd >= 0)
        return 0;
    int fd = open_locked(h);
    if (fd == -1) {
        warn("cannot open '%s': %s; after a crash, held keys will stay pressed", h->path, strerror(errno));
        h->memory_only = true;
        return 0;
    }
    if (fd < 0)
        return -1;
    h->fd = fd;
    int found = undo_list(fd, dpy);
    if (found)
        warn("an earlier run on display '%s' left %d keys, buttons, keycodes or locks changed; restored",
             h->display, found);
    name_server(h, dpy);
    held_store(h);
    return 0;
}

int held_acquire(struct held *h, Display *dpy, struct err *e)
{
    if (lock_file(h, dpy) == 0)
        return 0;
    return err_set(e, ERR_ENV,
                   "display '%s' is in use by another holorun (process %d); stop that process first",
                   h->display, h->owner);
}

void held_unlock_file(struct held *h)
{
    if (h->fd < 0)
        return;
    if (held_any(h))
        held_store(h);
    else
        unlink(h->path); /* before the lock is released: see open_locked() */
    close(h->fd);
    h->fd = -1;
}
