/* place.c - corrects the rectangles that programs report, by their X windows.
 *
 *   scale    GTK 3 and Qt report logical pixels when they draw with a scale: a window is smaller than its X
 *            window
 *   origin   GTK 4 reports places relative to the window, which is then at 0,0, inside its shadow or border
 *   padding  GTK 4.18 leaves the padding of each parent out of the places of its children: all of them are
 *            doubtful, and so are those of a window that begins above or to the left of 0,0, in its shadow
 *   page     Chromium with a scale reports its window and buttons in logical pixels, its page in real ones
 *   popover  GTK 4 reports wrong places below a button that shows a popover: all of them are doubtful
 *   entries  Qt 6 reports entries of an open list that are wider than it
 *   bridge   LibreOffice reports a pane that is as large as its parent but elsewhere: its menu bar is
 *            missing in the places of all elements below, except those of the menu bar itself and of
 *            embedded widgets of GTK 3
 *   styled   a page may draw an element apart from its parent; browsers report it as showing only if nothing
 *            clips it
 *
 * Another element whose middle is outside its parent is doubtful, unless it is in a menu, a list or a popup,
 * which are windows of their own. The items of Swing's menus are always doubtful: they are drawn
 * elsewhere. */
#include "atspi/reader_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BRIDGE_DEPTH = 3, BRIDGE_MAX = 100, SLACK = 2, SHADOW_MAX = 64, BORDER_MAX = 16 };

struct shift {
    double scale;
    int x, y;   /* of the window */
    int bx, by; /* of the bridge */
    bool loose; /* places are wrong by an unknown number of pixels */
    bool page;  /* inside the page of a browser */
};

static bool alike(int a, int b)
{
    return abs(a - b) <= SLACK;
}

static bool same_size(struct screen_rect a, struct screen_rect b)
{
    return alike(a.w, b.w) && alike(a.h, b.h);
}

static bool fits(double s, struct screen_rect told, const struct xwindow *w)
{
    bool wide = fabs(s * told.w - w->rect.w) <= 2 * SLACK || fabs(s * told.w - w->frame.w) <= 2 * SLACK;
    bool high = fabs(s * told.h - w->rect.h) <= 2 * SLACK || fabs(s * told.h - w->frame.h) <= 2 * SLACK;
    return wide && high;
}

/* Returns the factor from 1.1 to 3 by which a window is larger than its program says; 1: none. Multiples of a
 * quarter come first: the program may count the frame of the window manager, and rounds. Qt has any factor,
 * such as 134/96. */
static double scale_of(struct screen_rect told, const struct xwindow *w)
{
    double exact = told.w > 0 ? (double)w->rect.w / told.w : 1, s = round(4 * exact) / 4;
    if (s >= 1.25 && s <= 3 && fits(s, told, w))
        return s;
    return exact >= 1.1 && exact <= 3 && fabs(exact * told.h - w->rect.h) <= SLACK ? exact : 1;
}

/* Returns the X window of a window of the program: by title, then by size, then the only one. */
static const struct xwindow *window_of(const struct node *n, int pid, const struct xwindow *list, int count)
{
    const struct xwindow *sized = NULL, *only = NULL;
    int own = 0;
    for (int i = 0; i < count; i++) {
        if (!pid || list[i].pid != pid)
            continue;
        bool size = same_size(list[i].rect, n->told) || same_size(list[i].frame, n->told);
        if (!list[i].popup && n->name && *n->name && !strcmp(list[i].title, n->name))
            return &list[i];
        sized = size && !sized ? &list[i] : sized;
        own += !list[i].popup;
        only = list[i].popup ? only : &list[i];
    }
    return sized ? sized : own == 1 ? only : NULL;
}

/* Finds the part of an X window that a window of this size fills: without a shadow, or without a border of
 * the same width on all sides, which GTK 4 draws where nothing composites. Returns false if none has it. */
static bool part_of(const struct xwindow *w, struct screen_rect told, struct screen_rect *part)
{
    int border = (w->rect.w - told.w) / 2;
    *part = same_size(told, w->rect) ? w->rect : w->inner;
    if (same_size(told, *part))
        return true;
    *part = (struct screen_rect){w->rect.x + border, w->rect.y + border, told.w, told.h};
    return border > 0 && border <= BORDER_MAX && alike(w->rect.h - told.h, 2 * border);
}

/* gtk4: places are relative to the window. */
static struct shift shift_of(const struct node *n, const struct xwindow *w, bool gtk4)
{
    struct shift s = {.scale = 1, .loose = gtk4};
    struct screen_rect part;
    if (!w || !n->placed)
        return s;
    s.scale = scale_of(n->told, w);
    s.loose = false;
    bool framed = w->frame.x == 0 && w->frame.y == 0 && same_size(w->frame, n->told);
    bool at_origin = n->told.x <= 0 && n->told.x >= -SHADOW_MAX && n->told.y <= 0 && n->told.y >= -SHADOW_MAX;
    bool fills = part_of(w, n->told, &part) && (gtk4 || same_size(n->told, w->rect));
    if (s.scale == 1 && at_origin && fills && !framed) {
        s.x = part.x - n->told.x;
        s.y = part.y - n->told.y;
        s.loose = (n->told.x < 0 || n->told.y < 0) && (s.x || s.y);
    } else if (gtk4 && at_origin && !framed) {
        s.x = w->inner.x;
        s.y = w->inner.y;
        s.loose = true;
    }
    return s;
}

/* Adds the shift of a pane as large as its parent. It ends at a menu bar, and at widgets of GTK 3 inside the
 * pane, which are as large as their parent but differ from it by just that shift. */
static void bridge(struct shift *s, const struct node *n, const struct node *up)
{
    int dx = up->told.x - n->told.x, dy = up->told.y - n->told.y;
    bool moved = n->placed && up->placed && same_size(n->told, up->told) && (dx || dy);
    if (n->role == ROLE_MENU_BAR || (moved && (s->bx || s->by) && dx == -s->bx && dy == -s->by)) {
        s->bx = s->by = 0;
    } else if (moved && n->depth <= BRIDGE_DEPTH && abs(dx) <= BRIDGE_MAX && abs(dy) <= BRIDGE_MAX) {
        s->bx = dx;
        s->by = dy;
    }
}

/* Returns the topmost popup of the program that holds the middle of an element, NULL: none. */
static const struct xwindow *popup_at(const struct node *n, int pid, const struct xwindow *list, int count)
{
    int x = n->rect.x + n->rect.w / 2, y = n->rect.y + n->rect.h / 2;
    for (int i = 0; i < count && pid; i++) /* 0: unknown */
        if (list[i].popup && list[i].pid == pid && screen_rect_contains(list[i].rect, x, y))
            return &list[i];
    return NULL;
}

/* Returns whether elements of this role show their children in a popup. */
static bool opens_popup(uint32_t role)
{
    return role == ROLE_MENU || role == ROLE_COMBO_BOX || role == ROLE_MENU_BAR || role == ROLE_MENU_ITEM ||
           role == ROLE_POPUP_MENU;
}

static bool is_button(uint32_t role)
{
    return role == ROLE_PUSH_BUTTON || role == ROLE_TOGGLE_BUTTON;
}

/* Cuts an entry to the width of its list: Qt 6 reports entries that are wider than the list that it opens. */
static void cut_entry(struct node *n, const struct node *up)
{
    struct screen_rect both = screen_rect_intersect(n->rect, up->rect);
    if (n->role == ROLE_LIST_ITEM && up->placed && both.w > 0) {
        n->rect.x = both.x;
        n->rect.w = both.w;
    }
}

static bool is_outside(const struct node *n, const struct node *up)
{
    int x = n->rect.x + n->rect.w / 2, y = n->rect.y + n->rect.h / 2;
    return up->parent >= 0 && up->placed && !screen_rect_contains(up->rect, x, y);
}

/* Returns whether an element of a page is drawn apart from its parent, or inside one that is. An element that
 * overlaps its parent may be scrolled halfway out of it. */
static bool is_apart(const struct node *n, const struct node *up)
{
    struct screen_rect both = screen_rect_intersect(n->rect, up->rect);
    return up->trust == PLACE_APART || (is_outside(n, up) && (both.w <= 0 || both.h <= 0));
}

/* Returns whether a version of GTK 4 leaves padding out of places: 4.14 does not, 4.18 does. */
static bool lacks_padding(const char *version)
{
    int major = 0, minor = 0;
    return sscanf(version, "%d.%d", &major, &minor) == 2 && major == 4 && minor > 14;
}

void place_nodes(struct node *nodes, int n, const struct program *p, const struct xwindow *windows,
                 int n_windows)
{
    const char *toolkit = p->toolkit;
    int pid = p->pid;
    struct shift *shifts = xcalloc((unsigned long)n + 1, sizeof *shifts);
    bool gtk4 = !strcmp(toolkit, "GTK");
    bool java = strstr(toolkit, "J2SE") || strstr(toolkit, "java") || strstr(toolkit, "Java");
    for (int i = 0; i < n; i++) { /* parents come before their children */
        struct node *e = &nodes[i];
        struct shift *s = &shifts[i];
        e->placed = e->placed && !e->closed;
        const struct node *up = e->parent >= 0 ? &nodes[e->parent] : NULL;
        *s = up ? shifts[e->parent] : (struct shift){.scale = 1};
        if (up && up->parent < 0) {
            const struct xwindow *w = window_of(e, pid, windows, n_windows);
            *s = shift_of(e, w, gtk4);
            s->loose = s->loose || (gtk4 && lacks_padding(p->version));
            e->window = w ? w->id : 0;
        } else if (up) {
            e->window = up->window;
            bridge(s, e, up);
            bool chromium = !strcmp(toolkit, "Chromium");
            if (e->role == ROLE_DOCUMENT_WEB && (chromium || !strcmp(toolkit, "Gecko")))
                s->page = true;
            if (s->page && chromium)
                s->scale = 1;
        }
        e->rect = (struct screen_rect){(int)lround(e->told.x * s->scale) + s->x + s->bx,
                                       (int)lround(e->told.y * s->scale) + s->y + s->by,
                                       (int)lround(e->told.w * s->scale), (int)lround(e->told.h * s->scale)};
        bool shifted = s->scale > 1 || s->x || s->y || s->bx || s->by;
        e->trust = !e->placed ? PLACE_NONE : shifted ? PLACE_SHIFTED : PLACE_SURE;
        if (!e->placed)
            e->rect = (struct screen_rect){0};
        if (up && !s->page)
            cut_entry(e, up);
        bool outside = e->placed && up && is_outside(e, up);
        s->loose = s->loose || (gtk4 && outside && is_button(up->role));
        const struct xwindow *popup = outside && !java ? popup_at(e, pid, windows, n_windows) : NULL;
        if (popup && opens_popup(up->role))
            e->window = popup->id; /* and that of the elements below it */
        bool moved = java && e->placed && up && (up->role == ROLE_POPUP_MENU || up->role == ROLE_MENU);
        if (moved || (outside && !popup && (java || !opens_popup(up->role))) ||
            (s->loose && e->placed && up && up->parent >= 0))
            e->trust = PLACE_DOUBTFUL;
        if (e->placed && s->page && e->role != ROLE_DOCUMENT_WEB && !opens_popup(up->role) && is_apart(e, up))
            e->trust = PLACE_APART;
    }
    free(shifts);
}
