/* xclient.c - a window that records the events it receives, for tests of input.
 *
 *   xclient OUT.jsonl [--title TEXT] [--geometry WxH+X+Y] [--xi2] [--keys N]
 *
 * With --keys it exits at the Nth key press.  Each press of a key or a button fills or clears one of the
 * squares at the bottom of the window, so that an action has a visible effect; with XCLIENT_STILL in the
 * environment the window never changes.
 *
 * Prints one JSON object per line: {"event":"ready","window":…} when the window is mapped, then key_press
 * and key_release (keycode, state, keysym, text), button_press and button_release (button, state, x, y in
 * root pixels), motion (x, y, state), and with --xi2 raw_key and raw_button with the id of the source
 * device.  It uses Xlib without a toolkit, so that it sees exactly the delivered events.
 */
#include <X11/XKBlib.h>
#include <X11/Xatom.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XInput2.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct client {
    Display *dpy;
    Window window;
    XIC ic;
    FILE *out;
    int xi_opcode;
    int keys; /* key presses left until it exits; 0: unlimited */
    int presses;
    bool still;
    GC gc;
};

static void put_string(FILE *f, const char *s, int n)
{
    fputc('"', f);
    for (int i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static void show_press(struct client *c)
{
    enum { SQUARES = 4, SIZE = 32 };
    Window root;
    int x, y;
    unsigned w, h, border, depth;
    if (c->still || !XGetGeometry(c->dpy, c->window, &root, &x, &y, &w, &h, &border, &depth))
        return;
    int n = c->presses++, screen = DefaultScreen(c->dpy);
    if (!c->gc)
        c->gc = XCreateGC(c->dpy, c->window, 0, NULL);
    XSetForeground(c->dpy, c->gc, n / SQUARES % 2 ? WhitePixel(c->dpy, screen) : BlackPixel(c->dpy, screen));
    XFillRectangle(c->dpy, c->window, c->gc, n % SQUARES * SIZE, (int)h - SIZE, SIZE, SIZE);
}

static void on_key(struct client *c, XKeyEvent *ev)
{
    char text[64] = "";
    KeySym sym = NoSymbol;
    int n = 0;
    Status status;
    if (ev->type == KeyPress && c->ic)
        n = Xutf8LookupString(c->ic, ev, text, sizeof text - 1, &sym, &status);
    else
        n = XLookupString(ev, text, sizeof text - 1, &sym, NULL);
    fprintf(c->out, "{\"event\":\"%s\",\"keycode\":%u,\"state\":%u,\"keysym\":%lu,\"text\":",
            ev->type == KeyPress ? "key_press" : "key_release", ev->keycode, ev->state, sym);
    put_string(c->out, text, n > 0 ? n : 0);
    fputs("}\n", c->out);
    if (ev->type == KeyPress && c->keys && !--c->keys)
        exit(0);
}

static void on_raw(struct client *c, XGenericEventCookie *cookie)
{
    if (cookie->extension != c->xi_opcode || !XGetEventData(c->dpy, cookie))
        return;
    const XIRawEvent *raw = cookie->data;
    const char *name =
        raw->evtype == XI_RawKeyPress || raw->evtype == XI_RawKeyRelease ? "raw_key" : "raw_button";
    int down = raw->evtype == XI_RawKeyPress || raw->evtype == XI_RawButtonPress;
    fprintf(c->out, "{\"event\":\"%s\",\"detail\":%d,\"down\":%d,\"source\":%d}\n", name, raw->detail, down,
            raw->sourceid);
    XFreeEventData(c->dpy, cookie);
}

static void on_event(struct client *c, XEvent *ev)
{
    if (ev->type == KeyPress || ev->type == ButtonPress)
        show_press(c);
    switch (ev->type) {
    case KeyPress:
    case KeyRelease:
        on_key(c, &ev->xkey);
        break;
    case ButtonPress:
    case ButtonRelease:
        fprintf(c->out, "{\"event\":\"%s\",\"button\":%u,\"state\":%u,\"x\":%d,\"y\":%d}\n",
                ev->type == ButtonPress ? "button_press" : "button_release", ev->xbutton.button,
                ev->xbutton.state, ev->xbutton.x_root, ev->xbutton.y_root);
        break;
    case MotionNotify:
        fprintf(c->out, "{\"event\":\"motion\",\"x\":%d,\"y\":%d,\"state\":%u}\n", ev->xmotion.x_root,
                ev->xmotion.y_root, ev->xmotion.state);
        break;
    case MappingNotify:
        XRefreshKeyboardMapping(&ev->xmapping);
        break;
    case GenericEvent:
        on_raw(c, &ev->xcookie);
        break;
    case VisibilityNotify:
        fprintf(c->out, "{\"event\":\"ready\",\"window\":%lu}\n", c->window);
        break;
    default:
        break;
    }
}

static void select_raw(struct client *c)
{
    int event, error, major = 2, minor = 2;
    if (!XQueryExtension(c->dpy, "XInputExtension", &c->xi_opcode, &event, &error) ||
        XIQueryVersion(c->dpy, &major, &minor) != Success)
        return;
    unsigned char bits[XIMaskLen(XI_LASTEVENT)] = {0};
    XISetMask(bits, XI_RawKeyPress);
    XISetMask(bits, XI_RawKeyRelease);
    XISetMask(bits, XI_RawButtonPress);
    XISetMask(bits, XI_RawButtonRelease);
    XIEventMask mask = {.deviceid = XIAllMasterDevices, .mask_len = sizeof bits, .mask = bits};
    XISelectEvents(c->dpy, DefaultRootWindow(c->dpy), &mask, 1);
}

static void open_window(struct client *c, const char *title, const char *geometry)
{
    int x = 0, y = 0;
    unsigned w = 400, h = 300;
    int given = XParseGeometry(geometry, &x, &y, &w, &h);
    int screen = DefaultScreen(c->dpy);
    c->window =
        XCreateSimpleWindow(c->dpy, DefaultRootWindow(c->dpy), x, y, w, h, 0, 0, WhitePixel(c->dpy, screen));
    XSizeHints hints = {.flags = given & (XValue | YValue) ? USPosition : 0, .x = x, .y = y};
    XSetWMNormalHints(c->dpy, c->window, &hints);
    XClassHint class = {(char *)"xclient", (char *)"Xclient"};
    XSetClassHint(c->dpy, c->window, &class);
    XStoreName(c->dpy, c->window, title);
    XChangeProperty(c->dpy, c->window, XInternAtom(c->dpy, "_NET_WM_NAME", False),
                    XInternAtom(c->dpy, "UTF8_STRING", False), 8, PropModeReplace,
                    (const unsigned char *)title, (int)strlen(title));
    XSelectInput(c->dpy, c->window,
                 KeyPressMask | KeyReleaseMask | ButtonPressMask | ButtonReleaseMask | PointerMotionMask |
                     VisibilityChangeMask);
    XIM im = XOpenIM(c->dpy, NULL, NULL, NULL);
    if (im)
        c->ic = XCreateIC(im, XNInputStyle, XIMPreeditNothing | XIMStatusNothing, XNClientWindow, c->window,
                          NULL);
    XMapWindow(c->dpy, c->window);
}

int main(int argc, char **argv)
{
    const char *title = "xclient", *geometry = "400x300+0+0";
    int xi2 = 0, keys = 0;
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--title") && i + 1 < argc)
            title = argv[++i];
        else if (!strcmp(argv[i], "--geometry") && i + 1 < argc)
            geometry = argv[++i];
        else if (!strcmp(argv[i], "--xi2"))
            xi2 = 1;
        else if (!strcmp(argv[i], "--keys") && i + 1 < argc)
            keys = atoi(argv[++i]);
    }
    setlocale(LC_ALL, "C.UTF-8");
    struct client c = {.dpy = XOpenDisplay(NULL),
                       .out = argc > 1 ? fopen(argv[1], "we") : NULL,
                       .keys = keys,
                       .still = getenv("XCLIENT_STILL") != NULL};
    if (!c.dpy || !c.out) {
        fprintf(stderr, "usage: xclient OUT.jsonl [--title TEXT] [--geometry WxH+X+Y] [--xi2] [--keys N], "
                        "with DISPLAY set\n");
        return 2;
    }
    setvbuf(c.out, NULL, _IOLBF, 0);
    XSetLocaleModifiers("");
    if (xi2)
        select_raw(&c);
    open_window(&c, title, geometry);
    for (;;) {
        XEvent ev;
        XNextEvent(c.dpy, &ev);
        if (!XFilterEvent(&ev, None))
            on_event(&c, &ev);
    }
}
