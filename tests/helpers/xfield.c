/* xfield.c - a window that shows typed text in clear, for tests of hidden text.
 *
 *   xfield OUT [--class NAME] [--geometry WxH+X+Y]
 *
 * OUT contains the text typed so far, with Return as a newline.  The field is one line at the top; Escape
 * clears it, F2 moves the text down by 37 pixels, as scrolling would, F3 shows it a second time, F4 sets it
 * as the title, F5 adds a word after 200 ms of work.
 */
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SIZE = 4096, LEFT = 12, TOP = 24, SCROLLED = 37, AGAIN = 80 };

static void draw(Display *d, Window w, GC gc, const char *text, int y, int again)
{
    XClearWindow(d, w);
    XDrawRectangle(d, w, gc, 4, y - 18, 300, 26);
    XDrawString(d, w, gc, LEFT, y, text, (int)strlen(text));
    if (again)
        XDrawString(d, w, gc, LEFT + 100, y + AGAIN, text, (int)strlen(text));
    XSync(d, False);
}

/* Uses the given CPU time, however long that takes. */
static void work(double ms)
{
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    while ((double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6 < ms);
}

int main(int argc, char **argv)
{
    const char *class = "Field", *geometry = "400x200+50+50";
    for (int i = 2; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--class"))
            class = argv[++i];
        else if (!strcmp(argv[i], "--geometry"))
            geometry = argv[++i];
    }
    Display *d = XOpenDisplay(NULL);
    FILE *out = argc > 1 ? fopen(argv[1], "we") : NULL;
    if (!d || !out)
        return 2;
    int x = 0, y = 0, at = TOP, again = 0;
    unsigned width = 400, height = 200;
    XParseGeometry(geometry, &x, &y, &width, &height);
    Window w = XCreateSimpleWindow(d, DefaultRootWindow(d), x, y, width, height, 0, 0, 0xffffff);
    XClassHint hint = {(char *)"field", (char *)class};
    XSetClassHint(d, w, &hint);
    XStoreName(d, w, "xfield");
    XSelectInput(d, w, KeyPressMask | ExposureMask);
    GC gc = XCreateGC(d, w, 0, NULL);
    XSetForeground(d, gc, 0x202020);
    XMapWindow(d, w);
    char text[SIZE] = "";
    for (;;) {
        XEvent ev;
        XNextEvent(d, &ev);
        char typed[16] = "";
        KeySym key = NoSymbol;
        if (ev.type == KeyPress)
            XLookupString(&ev.xkey, typed, sizeof typed - 1, &key, NULL);
        if (key == XK_Escape)
            text[0] = 0;
        else if (key == XK_F2)
            at += SCROLLED;
        else if (key == XK_F3)
            again = 1;
        else if (key == XK_F4)
            XStoreName(d, w, text);
        else if (key == XK_F5 && strlen(text) + 8 < SIZE) {
            work(200);
            strcat(text, "worked ");
        } else if (ev.type == KeyPress && (unsigned char)typed[0] >= ' ' && strlen(text) + 2 < SIZE)
            strcat(text, typed);
        if (ev.type == KeyPress) {
            fputs(key == XK_Return ? "\n" : (unsigned char)typed[0] >= ' ' ? typed : "", out);
            fflush(out);
        }
        draw(d, w, gc, text, at, again);
    }
}
