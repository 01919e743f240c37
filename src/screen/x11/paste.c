/* paste.c - enters text through the clipboard when keys cannot produce it (text.c).
 *
 * We temporarily own CLIPBOARD and PRIMARY, press Shift+Insert (terminals paste PRIMARY, most other programs
 * CLIPBOARD) and answer the requests. The old content of the clipboard is read first and offered again
 * afterwards, as long as this connection exists. Pasting is the last resort: a page may reject it, and a
 * terminal may ask for confirmation. */
#include "screen/x11/x11_impl.h"

#include "base/clock.h"

#include <X11/Xatom.h>
#include <X11/keysym.h>
#include <stdlib.h>
#include <string.h>

enum { MORE_MS = 150 };

static Atom atom(struct screen *s, const char *name)
{
    return XInternAtom(s->x11->dpy, name, False);
}

/* ---- answering requests ------------------------------------------------------------------------------ */

static bool write_answer(struct screen *s, const XSelectionRequestEvent *rq, Atom property)
{
    Atom utf8 = atom(s, "UTF8_STRING"), targets = atom(s, "TARGETS");
    if (rq->owner != s->x11->paste_window) /* overwrite.c owns PRIMARY and has no text to offer */
        return false;
    if (rq->target == targets) {
        Atom known[] = {targets, utf8, atom(s, "TEXT"), XA_STRING};
        XChangeProperty(s->x11->dpy, rq->requestor, property, XA_ATOM, 32, PropModeReplace,
                        (const unsigned char *)known, 4);
        return true;
    }
    if (!s->x11->offered || (rq->target != utf8 && rq->target != atom(s, "TEXT") && rq->target != XA_STRING))
        return false;
    XChangeProperty(s->x11->dpy, rq->requestor, property, utf8, 8, PropModeReplace,
                    (const unsigned char *)s->x11->offered, (int)strlen(s->x11->offered));
    s->x11->offers_taken++;
    return true;
}

void paste_answer(struct screen *s, const XSelectionRequestEvent *rq)
{
    struct xtrap t; /* the requesting window may have closed */
    xtrap_begin(&t, s->x11->dpy);
    s->x11->offers_asked++;
    Atom property = rq->property ? rq->property : rq->target; /* obsolete clients send no property */
    XEvent reply = {.xselection = {.type = SelectionNotify,
                                   .requestor = rq->requestor,
                                   .selection = rq->selection,
                                   .target = rq->target,
                                   .property = write_answer(s, rq, property) ? property : None,
                                   .time = rq->time}};
    XSendEvent(s->x11->dpy, rq->requestor, False, 0, &reply);
    xtrap_end(&t);
}

void paste_close(struct screen *s)
{
    free(s->x11->offered);
    s->x11->offered = NULL;
    if (s->x11->paste_window && !s->lost)
        XDestroyWindow(s->x11->dpy, s->x11->paste_window);
    s->x11->paste_window = None;
}

/* ---- old content of the clipboard -------------------------------------------------------------------- */

/* Returns NULL if there is none that can be offered again. */
static char *read_old(struct screen *s)
{
    char *old = NULL;
    if (selection_read(s, false, &old) == 0 && *old)
        return old;
    free(old);
    return NULL;
}

static void offer(struct screen *s, char *text)
{
    free(s->x11->offered);
    s->x11->offered = text;
    Window owner = text ? s->x11->paste_window : None;
    XSetSelectionOwner(s->x11->dpy, atom(s, "CLIPBOARD"), owner, CurrentTime);
    XSync(s->x11->dpy, False);
}

/* ---- pasting ---------------------------------------------------------------------------------- */

/* Waits until the text was fetched, the program has consumed its keys, and no request has arrived for
 * MORE_MS: some programs ask twice, and a program that stalls in between would get nothing. */
static int wait_for_taker(struct screen *s, struct err *e)
{
    int64_t start = clock_ns(), quiet = start;
    int asked = 0, confirmed = -1;
    for (;;) {
        screen_pump(s);
        if (s->x11->offers_asked != asked) {
            asked = s->x11->offers_asked;
            quiet = clock_ns();
        }
        if (s->x11->offers_taken && clock_ms_since(quiet) > MORE_MS) {
            enum delivery r;
            if (confirmed == asked)
                return 0;
            confirmed = asked;
            if (delivery_wait(s, READ_MS, &r, e))
                return -1;
            if (r == DELIVERY_BEHIND)
                return err_set(e, ERR_FAILED,
                               "unsure whether the text arrived as meant: the program fetched it but has not "
                               "read its keys for 8 s; look at it");
            quiet = clock_ns();
        }
        if (!s->x11->offers_taken && clock_ms_since(start) > READ_MS)
            return err_set(e, ERR_FAILED,
                           "cannot enter this text: no key produces it, and no program pasted it");
        if (screen_wait(s, 10, e))
            return -1;
    }
}

int paste_text(struct screen *s, const char *utf8, size_t len, struct err *e)
{
    static const uint32_t keys[] = {XK_Shift_L, XK_Insert};
    if (!s->x11->paste_window)
        s->x11->paste_window = XCreateSimpleWindow(s->x11->dpy, s->x11->root, -10, -10, 1, 1, 0, 0, 0);
    char *old = read_old(s);
    offer(s, xasprintf("%.*s", (int)len, utf8));
    XSetSelectionOwner(s->x11->dpy, XA_PRIMARY, s->x11->paste_window, CurrentTime);
    s->x11->offers_taken = s->x11->offers_asked = 0;
    int rc = screen_chord(s, keys, 2, e) || wait_for_taker(s, e) ? -1 : 0;
    if (!s->lost) {
        XSetSelectionOwner(s->x11->dpy, XA_PRIMARY, None, CurrentTime);
        offer(s, old);
    } else {
        free(old);
    }
    return rc;
}
