/* form - a dialog of the demo theme as an X program: looks like assets/demo/dialog.html in a browser, with
 * a few megabytes instead of a few hundred.
 *
 *   form [--delay S] [--log FILE] [--font FILE] QUERY
 *   form --picture FILE.ppm QUERY        draws to a file, without a display
 *
 * QUERY is the page's query ("seed=7&kind=buttons&labels=Save|Discard"), with or without the prefix
 * "dialog.html?".  The window covers the screen of 640 x 480; its title is the title of the page.  With
 * --delay it is busy for S seconds before it shows the dialog, and after each press of a button before it
 * shows the result; meanwhile it shows a progress bar and ignores input.  The log has a line for each
 * event: "button 1 down 120 40", "key a down", "title DIALOG ...".
 */
#include "form/dialog.h"
#include "form/paint.h"

#include "base/clock.h"
#include "base/err.h"

#include <X11/Xatom.h>
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 100 };

struct form {
    Display *x;
    Window window;
    GC gc;
    XImage *image;
    struct font *font;
    FILE *log;
    struct dialog d;
    struct item items[ITEMS_MAX];
    int n, down; /* number of items; the pressed item, -1: none */
    struct canvas shown, next;
    double delay;
    int64_t busy_until; /* 0: not busy */
    bool waiting;       /* for the result of `press` */
    struct item press;
    bool closed;
};

/* ---- output ---------------------------------------------------------------------------------- */

static void set_title(struct form *f, const char *title)
{
    Atom name = XInternAtom(f->x, "_NET_WM_NAME", False), utf8 = XInternAtom(f->x, "UTF8_STRING", False);
    XChangeProperty(f->x, f->window, name, utf8, 8, PropModeReplace, (const unsigned char *)title,
                    (int)strlen(title));
    XStoreName(f->x, f->window, title);
    if (f->log)
        fprintf(f->log, "title %s\n", title);
}

static void show(struct form *f, struct box b)
{
    if (b.w > 0)
        XPutImage(f->x, f->window, f->gc, f->image, b.x, b.y, b.x, b.y, (unsigned)b.w, (unsigned)b.h);
}

/* Sends only the changed part to the screen. */
static void redraw(struct form *f)
{
    bool hidden = f->busy_until && !f->waiting;
    f->n = dialog_items(&f->d, f->items);
    if (hidden)
        paint_empty(&f->next);
    else
        paint_dialog(&f->next, f->font, &f->d, f->items, f->n);
    if (f->busy_until)
        paint_busy(&f->next, 1 - (double)(f->busy_until - clock_ns()) / (f->delay * 1e9));
    struct box b = canvas_difference(&f->shown, &f->next);
    f->shown = f->next;
    show(f, b);
}

static void tell(struct form *f)
{
    static char title[TITLE_MAX];
    dialog_title(&f->d, title);
    set_title(f, title);
}

static void begin_wait(struct form *f)
{
    f->busy_until = clock_ns() + (int64_t)(f->delay * 1e9);
}

static void end_wait(struct form *f)
{
    f->busy_until = 0;
    if (f->waiting)
        dialog_click(&f->d, &f->press);
    f->waiting = false;
    redraw(f);
    tell(f);
}

/* ---- input ----------------------------------------------------------------------------------- */

static void on_button(struct form *f, const XButtonEvent *b, bool down)
{
    if (f->log)
        fprintf(f->log, "button %u %s %d %d\n", b->button, down ? "down" : "up", b->x, b->y);
    if (b->button != Button1 || f->busy_until)
        return;
    int at = item_at(f->items, f->n, b->x, b->y);
    if (down) {
        f->down = at;
        dialog_down(&f->d, at < 0 ? NULL : &f->items[at]);
    } else if (at >= 0 && at == f->down) {
        if (f->items[at].kind == ITEM_BUTTON && f->delay > 0) {
            f->press = f->items[at];
            f->waiting = true;
            begin_wait(f);
        } else {
            dialog_click(&f->d, &f->items[at]);
            tell(f);
        }
    }
    redraw(f);
}

/* Returns the character of a key: Latin-1, or the one of a Unicode keysym. */
static uint32_t scalar_of(KeySym key)
{
    if ((key >= 0x20 && key <= 0x7e) || (key >= 0xa0 && key <= 0xff))
        return (uint32_t)key;
    return key > 0x1000100 && key <= 0x110ffff ? (uint32_t)(key - 0x1000000) : 0;
}

static void on_key(struct form *f, XKeyEvent *k)
{
    static const struct {
        KeySym key;
        enum edit how;
    } edits[] = {{XK_Left, EDIT_LEFT}, {XK_Right, EDIT_RIGHT},         {XK_Home, EDIT_HOME},
                 {XK_End, EDIT_END},   {XK_BackSpace, EDIT_BACKSPACE}, {XK_Delete, EDIT_DELETE}};
    char unused[16];
    KeySym key = NoSymbol;
    XLookupString(k, unused, sizeof unused, &key, NULL);
    const char *name = XKeysymToString(key);
    if (f->log)
        fprintf(f->log, "key %s %s\n", name ? name : "?", k->type == KeyPress ? "down" : "up");
    if (k->type != KeyPress || f->busy_until)
        return;
    bool shift = k->state & ShiftMask;
    if (key == XK_Tab || key == XK_ISO_Left_Tab)
        dialog_tab(&f->d, shift);
    else if (k->state & ControlMask && (key == XK_a || key == XK_A))
        dialog_edit(&f->d, EDIT_ALL, false);
    else if (!(k->state & (ControlMask | Mod1Mask)) && scalar_of(key))
        dialog_insert(&f->d, scalar_of(key));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        if (key == edits[i].key)
            dialog_edit(&f->d, edits[i].how, shift);
    redraw(f);
    tell(f);
}

static void on_event(struct form *f, XEvent *e)
{
    switch (e->type) {
    case Expose:
        show(f, (struct box){e->xexpose.x, e->xexpose.y, e->xexpose.width, e->xexpose.height});
        break;
    case ButtonPress:
    case ButtonRelease:
        on_button(f, &e->xbutton, e->type == ButtonPress);
        break;
    case KeyPress:
    case KeyRelease:
        on_key(f, &e->xkey);
        break;
    case MappingNotify:
        XRefreshKeyboardMapping(&e->xmapping);
        break;
    case ClientMessage:
        f->closed = true; /* WM_DELETE_WINDOW is the only client message */
        break;
    default:
        break;
    }
}

static void loop(struct form *f)
{
    while (!f->closed) {
        while (XPending(f->x)) {
            XEvent e;
            XNextEvent(f->x, &e);
            on_event(f, &e);
        }
        if (f->busy_until && clock_ns() >= f->busy_until)
            end_wait(f);
        else if (f->busy_until)
            redraw(f);
        XFlush(f->x);
        if (f->log)
            fflush(f->log);
        struct pollfd in = {ConnectionNumber(f->x), POLLIN, 0};
        poll(&in, 1, f->busy_until ? TICK_MS : -1);
    }
}

/* ---- start ----------------------------------------------------------------------------------- */

static void open_window(struct form *f)
{
    f->x = XOpenDisplay(NULL);
    if (!f->x)
        die(ERR_ENV, "form: cannot open display '%s'", XDisplayName(NULL));
    int screen = DefaultScreen(f->x);
    Visual *v = DefaultVisual(f->x, screen);
    if (v->red_mask != 0xff0000 || v->green_mask != 0xff00 || v->blue_mask != 0xff)
        die(ERR_ENV, "form: the display has no pixels of 8 bits a colour");
    XSetWindowAttributes a = {.background_pixel = 0xf3f5f7,
                              .event_mask = ExposureMask | ButtonPressMask | ButtonReleaseMask |
                                            KeyPressMask | KeyReleaseMask};
    f->window = XCreateWindow(f->x, RootWindow(f->x, screen), 0, 0, SCREEN_W, SCREEN_H, 0, CopyFromParent,
                              InputOutput, CopyFromParent, CWBackPixel | CWEventMask, &a);
    Atom full = XInternAtom(f->x, "_NET_WM_STATE_FULLSCREEN", False),
         close = XInternAtom(f->x, "WM_DELETE_WINDOW", False);
    XChangeProperty(f->x, f->window, XInternAtom(f->x, "_NET_WM_STATE", False), XA_ATOM, 32, PropModeReplace,
                    (const unsigned char *)&full, 1);
    XSetWMProtocols(f->x, f->window, &close, 1);
    XClassHint class = {(char *)"form", (char *)"Form"};
    XSetClassHint(f->x, f->window, &class);
    f->gc = XCreateGC(f->x, f->window, 0, NULL);
    f->image = XCreateImage(f->x, v, (unsigned)DefaultDepth(f->x, screen), ZPixmap, 0, (char *)f->shown.px,
                            SCREEN_W, SCREEN_H, 32, SCREEN_W * 4);
    if (!f->image)
        die(ERR_ENV, "form: no memory for a picture");
}

/* Takes the focus, because without a window manager no other program assigns it. */
static void take_keyboard(struct form *f)
{
    XWindowAttributes a;
    Atom type = None;
    int format;
    unsigned long n = 0, left;
    unsigned char *data = NULL;
    XGetWindowProperty(f->x, DefaultRootWindow(f->x), XInternAtom(f->x, "_NET_SUPPORTING_WM_CHECK", False), 0,
                       1, False, XA_WINDOW, &type, &format, &n, &left, &data);
    if (data)
        XFree(data);
    if (!n && XGetWindowAttributes(f->x, f->window, &a) && a.map_state == IsViewable)
        XSetInputFocus(f->x, f->window, RevertToPointerRoot, CurrentTime);
}

static void write_picture(struct form *f, const char *path)
{
    FILE *out = fopen(path, "wbe");
    if (!out)
        die(ERR_ENV, "form: cannot write '%s'", path);
    fprintf(out, "P6\n%d %d\n255\n", SCREEN_W, SCREEN_H);
    f->n = dialog_items(&f->d, f->items);
    paint_dialog(&f->next, f->font, &f->d, f->items, f->n);
    for (int k = 0; k < SCREEN_W * SCREEN_H; k++)
        for (int shift = 16; shift >= 0; shift -= 8)
            fputc((int)(f->next.px[k / SCREEN_W][k % SCREEN_W] >> shift & 255), out);
    if (fclose(out))
        die(ERR_ENV, "form: cannot write '%s'", path);
}

int main(int argc, char **argv)
{
    static struct form f; /* static, because it contains two images */
    const char *query = NULL, *font = NULL, *picture = NULL, *log = NULL;
    char why[128] = "";
    f.down = -1;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (argv[i][0] != '-')
            query = argv[i];
        else if (!strcmp(argv[i], "--delay"))
            f.delay = atof(next);
        else if (!strcmp(argv[i], "--log"))
            log = next;
        else if (!strcmp(argv[i], "--font"))
            font = next;
        else if (!strcmp(argv[i], "--picture"))
            picture = next;
        else
            die(ERR_USAGE, "form: unknown option '%s'", argv[i]);
        i += argv[i][0] == '-';
    }
    const char *mark = query ? strchr(query, '?') : NULL;
    if (!query || !dialog_read(&f.d, mark ? mark + 1 : query, why))
        die(ERR_USAGE, "form: %s",
            query ? why : "say which dialog to show, like 'kind=buttons&labels=Save|Discard'");
    f.font = font_open(font);
    if (!f.font)
        die(ERR_ENV,
            "form: cannot open the font DejaVu Sans Mono; install fonts-dejavu-core or say --font FILE");
    if (picture) {
        write_picture(&f, picture);
        return 0;
    }
    f.log = log ? fopen(log, "we") : NULL;
    if (log && !f.log)
        die(ERR_ENV, "form: cannot write '%s'", log);
    open_window(&f);
    if (f.delay > 0) {
        begin_wait(&f);
        set_title(&f, "DIALOG is busy");
    } else {
        tell(&f);
    }
    redraw(&f);
    XMapWindow(f.x, f.window);
    XSync(f.x, False);
    take_keyboard(&f);
    loop(&f);
    return 0;
}
