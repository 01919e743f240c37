/* event_target.c - facts about the target of input: selections, overlays, terminals.
 *
 * A terminal is recognized by its process: it has a child on a pseudo-terminal that differs from its own. All
 * functions have a time limit; facts that cannot be determined are reported as unknown. */
#include "screen/private.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <X11/Xatom.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SELECTION_MS = 300,
    SELECTION_MAX = 1 << 20,
    OVERLAYS = 64,
    PROCESSES = 20000,
    PTS_MAJOR = 136,
    PTS_MAJORS = 8
};

/* ---- selections ------------------------------------------------------------------------------- */

/* Converts Latin-1 to UTF-8; the caller frees the result. */
static char *from_latin1(const unsigned char *data, unsigned long n)
{
    char *out = xmalloc(2 * n + 1, 1), *to = out;
    for (unsigned long i = 0; i < n && data[i]; i++)
        to += utf8_encode(data[i], to);
    *to = 0;
    return out;
}

/* Returns the text of the property that the selection owner has written; NULL if it is not text. */
static char *take_property(struct screen *s, Window w, Atom property)
{
    Atom type = None, utf8 = XInternAtom(s->dpy, "UTF8_STRING", False);
    int format = 0;
    unsigned long n = 0, after = 0;
    unsigned char *data = NULL;
    char *text = NULL;
    if (XGetWindowProperty(s->dpy, w, property, 0, SELECTION_MAX / 4, True, AnyPropertyType, &type, &format,
                           &n, &after, &data) == Success &&
        data && format == 8 && !after && (type == utf8 || type == XA_STRING)) {
        bool valid = type == utf8 && utf8_valid_prefix((const char *)data, n) == n;
        text = valid ? xasprintf("%.*s", (int)n, (const char *)data) : from_latin1(data, n);
    }
    if (data)
        XFree(data);
    return text;
}

/* Returns the selection in one format; NULL if its owner does not offer it or does not answer in time. */
static char *convert(struct screen *s, Window w, Atom selection, Atom target)
{
    Atom property = XInternAtom(s->dpy, "HOLORUN_SELECTION", False);
    int64_t start = clock_ns();
    XEvent ev;
    XConvertSelection(s->dpy, selection, target, property, w, CurrentTime);
    XFlush(s->dpy);
    while (!XCheckTypedWindowEvent(s->dpy, w, SelectionNotify, &ev)) {
        if (s->lost || clock_ms_since(start) > SELECTION_MS)
            return NULL;
        clock_sleep_ms(2);
    }
    return ev.xselection.property ? take_property(s, w, property) : NULL;
}

int screen_selection(struct screen *s, bool primary, char **text)
{
    *text = NULL;
    if (s->lost)
        return -1;
    Atom selection = primary ? XA_PRIMARY : XInternAtom(s->dpy, "CLIPBOARD", False);
    Window owner = XGetSelectionOwner(s->dpy, selection);
    if (!owner)
        *text = xstrdup("");
    else if (owner == s->paste_window && s->offered)
        *text = xstrdup(s->offered);
    if (*text)
        return 0;
    struct xtrap trap;
    xtrap_begin(&trap, s->dpy);
    Window w = XCreateSimpleWindow(s->dpy, s->root, -10, -10, 1, 1, 0, 0, 0);
    *text = convert(s, w, selection, XInternAtom(s->dpy, "UTF8_STRING", False));
    if (!*text)
        *text = convert(s, w, selection, XA_STRING);
    XDestroyWindow(s->dpy, w);
    xtrap_end(&trap);
    return *text ? 0 : -1;
}

/* ---- windows that take the keyboard without the focus ------------------------------------------------ */

int screen_overlays(struct screen *s, struct screen_window *out, int max)
{
    Window root, parent, *children = NULL;
    unsigned n = 0;
    int found = 0;
    if (s->lost)
        return 0;
    struct xtrap trap;
    xtrap_begin(&trap, s->dpy);
    if (XQueryTree(s->dpy, s->root, &root, &parent, &children, &n))
        for (unsigned i = n; i-- > 0 && found < max && n - i < OVERLAYS;) {
            XWindowAttributes a;
            if (!XGetWindowAttributes(s->dpy, children[i], &a) || !a.override_redirect ||
                a.map_state != IsViewable || a.class == InputOnly)
                continue;
            hit_test_describe(s, children[i], &out[found]);
            found += out[found].class[0] != 0;
        }
    if (children)
        XFree(children);
    xtrap_end(&trap);
    return found;
}

unsigned long screen_focus(struct screen *s, unsigned *opened)
{
    Window focus = None;
    int revert;
    *opened = 0;
    if (!s->lost)
        XGetInputFocus(s->dpy, &focus, &revert);
    XEvent ev; /* all events before the reply have been read; other types wait for screen_pump() */
    while (!s->lost && XCheckTypedEvent(s->dpy, MapNotify, &ev))
        s->opened += ev.xmap.override_redirect != 0;
    *opened = s->opened;
    return focus == PointerRoot || focus == s->root ? None : focus;
}

void screen_set_check(struct screen *s, int (*check)(void *arg, struct err *e), void *arg)
{
    s->check = check;
    s->check_arg = arg;
}

/* ---- terminals ---------------------------------------------------------------------------------- */

struct process {
    int pid, parent, tty; /* tty: device number, 0: none */
};

static bool read_process(int pid, struct process *out)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *rest = strrchr(text, ')'); /* the process name may contain any character */
    char state;
    int group, session;
    *out = (struct process){.pid = pid};
    return rest &&
           sscanf(rest + 1, " %c %d %d %d %d", &state, &out->parent, &group, &session, &out->tty) == 5;
}

static bool is_pts(int tty)
{
    int major = tty >> 8 & 0xfff;
    return major >= PTS_MAJOR && major < PTS_MAJOR + PTS_MAJORS;
}

static bool same_program(int a, int b)
{
    char link[64], exe[2][256];
    for (int i = 0; i < 2; i++) {
        snprintf(link, sizeof link, "/proc/%d/exe", i ? b : a);
        ssize_t n = readlink(link, exe[i], sizeof exe[i] - 1);
        if (n <= 0)
            return false;
        exe[i][n] = 0;
    }
    return !strcmp(exe[0], exe[1]);
}

static const struct process *find_process(const struct process *list, int n, int pid)
{
    for (int i = 0; i < n; i++)
        if (list[i].pid == pid)
            return &list[i];
    return NULL;
}

static int list_processes(struct process **out)
{
    DIR *d = opendir("/proc");
    int n = 0, cap = 0;
    *out = NULL;
    for (struct dirent *f; d && n < PROCESSES && (f = readdir(d));) {
        if (!isdigit((unsigned char)f->d_name[0]))
            continue;
        if (n == cap) {
            cap = cap ? 2 * cap : 256;
            *out = xrealloc(*out, (unsigned long)cap, sizeof **out);
        }
        n += read_process(atoi(f->d_name), &(*out)[n]);
    }
    if (d)
        closedir(d);
    return n;
}

/* Also accepts a parent of the same program, up to 4 levels up, as the window's process: editors have
 * helper processes. */
bool screen_has_shell(const struct screen_window *w)
{
    enum { HELPERS = 4 };
    struct process *list;
    int n = w->pid > 0 ? list_processes(&list) : 0;
    if (w->pid <= 0)
        return false;
    const struct process *own = find_process(list, n, w->pid);
    bool found = false;
    for (int i = 0; own && i < n && !found; i++) {
        if (!is_pts(list[i].tty) || list[i].tty == own->tty)
            continue;
        const struct process *p = find_process(list, n, list[i].parent);
        for (int up = 0; p && p != own && up < HELPERS && same_program(p->pid, own->pid); up++)
            p = find_process(list, n, p->parent);
        found = p == own;
    }
    free(list);
    return found;
}
