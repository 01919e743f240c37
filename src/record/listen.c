/* listen.c - receives, queues and translates the events of the RECORD extension; see listen.h. */
#include "record/listen.h"

#include "base/utf8.h"
#include "screen/x11/xtrap.h"

#include <X11/XKBlib.h>
#include <X11/Xlib.h>
#include <X11/Xproto.h>
#include <X11/Xutil.h>
#include <X11/extensions/record.h>
#include <X11/keysym.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE = 4096 }; /* events; motion is dropped when half of the queue is used */

struct listen {
    Display *control, *data; /* connection for requests; connection for RECORD data */
    atomic_bool lost;
    XRecordContext context;
    bool enabled;
    int xkb_event;
    struct raw {
        uint8_t type, detail;
        uint32_t time;
        uint16_t state;
        int16_t x, y;
    } queue[QUEUE];
    int first, n;
    uint32_t last_time;
    int64_t ms;
    Window window; /* window of the input method; unmapped */
    XIM im;
    XIC ic;
};

/* ---- events ----------------------------------------------------------------------------------------- */

static void on_data(XPointer arg, XRecordInterceptData *d)
{
    struct listen *l = (struct listen *)(void *)arg;
    const xEvent *v = (const xEvent *)(const void *)d->data;
    if (d->category == XRecordFromServer && !d->client_swapped && d->data_len * 4 >= sizeof *v) {
        bool motion = v->u.u.type == MotionNotify;
        if (l->n < (motion ? QUEUE / 2 : QUEUE)) {
            const struct raw r = {v->u.u.type,
                                  v->u.u.detail,
                                  v->u.keyButtonPointer.time,
                                  v->u.keyButtonPointer.state,
                                  v->u.keyButtonPointer.rootX,
                                  v->u.keyButtonPointer.rootY};
            l->queue[(l->first + l->n++) % QUEUE] = r;
        }
    }
    XRecordFreeData(d);
}

/* Sets out->text with the input method. Sends it a synthetic key event, which the input method may keep
 * until a sequence is complete; out->keysym and out->plain are then 0. */
static void compose(struct listen *l, const struct raw *r, struct input *out)
{
    XEvent v = {.xkey = {.type = KeyPress,
                         .display = l->control,
                         .window = l->window,
                         .root = DefaultRootWindow(l->control),
                         .time = r->time,
                         .state = r->state,
                         .keycode = r->detail,
                         .same_screen = True}};
    KeySym sym;
    Status status = 0;
    if (!l->ic)
        return;
    if (XFilterEvent(&v, None) && !XCheckTypedWindowEvent(l->control, l->window, KeyPress, &v)) {
        out->keysym = out->plain = 0; /* inside a sequence */
        return;
    }
    int n = Xutf8LookupString(l->ic, &v.xkey, out->text, sizeof out->text - 1, &sym, &status);
    bool text = (status == XLookupChars || status == XLookupBoth) && n > 0;
    out->text[text ? n : 0] = 0;
    out->text[utf8_valid_prefix(out->text, strlen(out->text))] = 0;
}

/* Sets out->text without an input method, for Latin-1 and Unicode keysyms. */
static void spell(struct input *out)
{
    uint32_t k = out->keysym, cp = k >> 24 == 1                                          ? k & 0xffffff
                                   : (k >= 0x20 && k < 0x7f) || (k >= 0xa0 && k < 0x100) ? k
                                                                                         : 0;
    int n = cp ? utf8_encode(cp, out->text) : 0;
    out->text[n > 0 ? n : 0] = 0;
}

static void translate_key(struct listen *l, const struct raw *r, struct input *out)
{
    unsigned used;
    KeySym sym = NoSymbol;
    int group = r->state >> 13 & 3;
    XEvent v;
    XSync(l->control, False); /* reads changes of the keyboard map before the keys that depend on them */
    while (XPending(l->control)) {
        XNextEvent(l->control, &v);
        if (v.type == MappingNotify)
            XRefreshKeyboardMapping(&v.xmapping);
        else if (v.type == l->xkb_event)
            XkbRefreshKeyboardMapping((XkbMapNotifyEvent *)(void *)&v);
    }
    XkbLookupKeySym(l->control, r->detail, r->state, &used, &sym);
    out->keysym = (uint32_t)sym;
    out->plain = (uint32_t)XkbKeycodeToKeysym(l->control, r->detail, group, 0);
    if (!out->plain)
        out->plain = (uint32_t)XkbKeycodeToKeysym(l->control, r->detail, 0, 0);
    if (out->down && l->ic && !IsModifierKey(sym))
        compose(l, r, out);
    else if (out->down)
        spell(out);
}

bool listen_next(struct listen *l, struct input *out)
{
    if (l->n == 0 && !l->lost)
        XRecordProcessReplies(l->data);
    if (l->n == 0 || l->lost)
        return false;
    const struct raw r = l->queue[l->first];
    l->first = (l->first + 1) % QUEUE;
    l->n--;
    if (l->last_time) /* the 32-bit time wraps after 49 days */
        l->ms += (int32_t)(r.time - l->last_time);
    l->last_time = r.time;
    *out = (struct input){.ms = l->ms, .x = r.x, .y = r.y};
    out->down = r.type == KeyPress || r.type == ButtonPress;
    out->kind = r.type == MotionNotify                             ? INPUT_MOTION
                : r.type == ButtonPress || r.type == ButtonRelease ? INPUT_BUTTON
                                                                   : INPUT_KEY;
    if (out->kind == INPUT_BUTTON)
        out->button = r.detail;
    if (out->kind == INPUT_KEY)
        translate_key(l, &r, out);
    return !l->lost;
}

/* ---- opening ---------------------------------------------------------------------------------------- */

static void open_input_method(struct listen *l)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8") || !XSupportsLocale())
        return;
    XSetLocaleModifiers("@im=none");
    l->window = XCreateSimpleWindow(l->control, DefaultRootWindow(l->control), -10, -10, 1, 1, 0, 0, 0);
    l->im = XOpenIM(l->control, NULL, NULL, NULL);
    if (l->im)
        l->ic = XCreateIC(l->im, XNInputStyle, XIMPreeditNothing | XIMStatusNothing, XNClientWindow,
                          l->window, XNFocusWindow, l->window, NULL);
    if (l->ic)
        XSetICFocus(l->ic);
}

static int begin(struct listen *l, const char *display, struct err *e)
{
    int major, minor, event, error, op;
    if (!(l->control = xtrap_open(display, &l->lost)) || !(l->data = xtrap_open(display, &l->lost)))
        return err_set(e, ERR_ENV, "cannot open display '%s'", display ? display : "");
    if (!XRecordQueryVersion(l->control, &major, &minor))
        return err_set(e, ERR_ENV, "display '%s' has no RECORD extension, which recording needs",
                       display ? display : "");
    l->xkb_event = XkbQueryExtension(l->control, &op, &event, &error, NULL, NULL) ? event : -1;
    XkbSetDetectableAutoRepeat(l->control, True, NULL);
    XkbSelectEvents(l->control, XkbUseCoreKbd, XkbMapNotifyMask | XkbNewKeyboardNotifyMask,
                    XkbMapNotifyMask | XkbNewKeyboardNotifyMask);
    open_input_method(l);
    XRecordRange *range = XRecordAllocRange();
    XRecordClientSpec all = XRecordAllClients;
    if (!range)
        return err_set(e, ERR_ENV, "out of memory");
    range->device_events.first = KeyPress;
    range->device_events.last = MotionNotify;
    l->context = XRecordCreateContext(l->control, 0, &all, 1, &range, 1);
    XFree(range);
    XSync(l->control, False);
    l->enabled = l->context && XRecordEnableContextAsync(l->data, l->context, on_data, (XPointer)l);
    return l->enabled && !l->lost ? 0
                                  : err_set(e, ERR_ENV, "cannot record display '%s': refused by the X server",
                                            display ? display : "");
}

struct listen *listen_open(const char *display, struct err *e)
{
    struct listen *l = xcalloc(1, sizeof *l);
    if (begin(l, display, e) == 0)
        return l;
    listen_close(l);
    return NULL;
}

void listen_close(struct listen *l)
{
    if (!l)
        return;
    if (l->enabled && !l->lost) {
        XRecordDisableContext(l->control, l->context);
        XSync(l->control, False);
    }
    if (l->ic)
        XDestroyIC(l->ic);
    if (l->im)
        XCloseIM(l->im);
    if (l->data)
        xtrap_close(l->data, &l->lost);
    if (l->control)
        xtrap_close(l->control, &l->lost);
    explicit_bzero(l, sizeof *l);
    free(l);
}

int listen_fd(const struct listen *l)
{
    return ConnectionNumber(l->data);
}

bool listen_lost(const struct listen *l)
{
    return l->lost;
}
