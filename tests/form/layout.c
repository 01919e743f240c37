/* layout.c - positions of a dialog's items, from the same random choices as assets/demo/dialog.js. */
#include "form/dialog.h"

#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

/* Seeds a mulberry32 with the FNV-1a hash of the name mixed with the seed, as kiosk.js does. */
static uint32_t stream_open(uint32_t seed, const char *name)
{
    uint32_t h = 0x811c9dc5u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x01000193u;
    return h ^ (seed + 1) * 0x9e3779b1u;
}

static double stream_next(uint32_t *a)
{
    uint32_t t = *a += 0x6d2b79f5u;
    t = (t ^ t >> 15) * (t | 1);
    t ^= t + (t ^ t >> 7) * (t | 61);
    return (double)(t ^ t >> 14) / 4294967296.0;
}

static int below(uint32_t *a, int n)
{
    return (int)(stream_next(a) * n);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* ---- style ----------------------------------------------------------------------------------- */

enum shape { SHAPE_STACK, SHAPE_BAR, SHAPE_GRID };
enum side { SIDE_LEFT, SIDE_MIDDLE, SIDE_RIGHT };
enum mains { MAIN_FIRST, MAIN_NONE, MAIN_ALL };

struct style {
    int band, title_col, top, col, pitch, wide, room;
    enum shape shape;
    enum side side;
    enum mains mains;
    bool equal, above, prose;
};

/* Returns the style for a seed, denser from call to call if a dialog does not fit.  The order of random
 * draws is that of the page. */
static struct style style_of(uint32_t seed, int dense)
{
    static const int bands[] = {1, 1, 2, 3};
    static const enum shape shapes[] = {SHAPE_STACK, SHAPE_STACK, SHAPE_BAR, SHAPE_GRID};
    uint32_t a = stream_open(seed, "dialog");
    struct style st = {.prose = true};
    st.band = bands[below(&a, 4)];
    st.title_col = 1 + below(&a, 6);
    st.top = below(&a, 3);
    st.col = 1 + below(&a, 5);
    st.pitch = 1 + below(&a, 3);
    st.shape = shapes[below(&a, 4)];
    st.wide = below(&a, 5);
    st.equal = stream_next(&a) < 0.6;
    st.mains = (enum mains)below(&a, 3);
    st.above = below(&a, 3) == 2;
    st.room = 14 + below(&a, 5);
    st.side = (enum side)below(&a, 3);
    if (dense > 0)
        st.top = 0;
    if (dense > 1)
        st.pitch = least(st.pitch, 2);
    if (dense > 2)
        st.band = 1;
    if (dense > 3)
        st.prose = false;
    if (dense > 4)
        st.pitch = 1;
    return st;
}

/* ---- items ----------------------------------------------------------------------------------- */

struct page {
    const struct dialog *d;
    struct style st;
    struct item *items;
    int n;
};

static struct item *add(struct page *p, enum item_kind kind, int row, int col, int len)
{
    struct item *it = &p->items[p->n];
    p->n += p->n + 1 < ITEMS_MAX;
    *it = (struct item){.kind = kind, .row = row, .col = col, .len = len, .names = -1, .rows = 1};
    return it;
}

/* Adds a text, cut at the right edge of the screen. */
static struct item *add_text(struct page *p, int row, int col, const struct text *t, int first, int chars)
{
    int n = most(0, least(chars, COLS - col));
    struct item *it = add(p, ITEM_TEXT, row, col, n);
    it->text = t;
    it->first = first;
    it->chars = n;
    it->column = col;
    return it;
}

static void add_button(struct page *p, int row, int col, int len, const struct text *label, int k)
{
    struct item *it = add(p, ITEM_BUTTON, row, col, len);
    it->text = label;
    it->chars = label->n;
    it->column = col + ((len - label->n) >> 1);
    it->index = k;
    it->look = p->st.mains == MAIN_ALL || (p->st.mains == MAIN_FIRST && k == 0) ? LOOK_MAIN : LOOK_PLAIN;
    const struct text *pressed = &p->d->pressed;
    it->pressed = pressed->n && pressed->n == label->n &&
                  !memcmp(pressed->c, label->c, (size_t)label->n * sizeof *label->c);
}

static int heading(struct page *p)
{
    const struct text *t = &p->d->title;
    if (!t->n)
        return 1;
    if (p->st.band == 2) {
        add_text(p, 1, p->st.title_col, t, 0, t->n)->look = LOOK_ACCENT;
        return 3;
    }
    add(p, ITEM_BAND, 0, 0, COLS)->rows = p->st.band;
    add_text(p, p->st.band >> 1, p->st.title_col, t, 0, t->n)->look = LOOK_LIGHT;
    return p->st.band + 1;
}

/* Adds the first two lines of the sentence, of at most 30 characters, broken at spaces. */
static int sentence(struct page *p, int row)
{
    const struct text *t = &p->d->sentence;
    int lines = 0, from = 0, end = 0; /* from, end: of the current line */
    while (p->st.prose && lines < 2) {
        int word = end;
        while (word < t->n && t->c[word] == ' ')
            word++;
        int over = word;
        while (over < t->n && t->c[over] != ' ')
            over++;
        if (over == word)
            break;
        bool full = end > from && over - from > 30;
        if (full)
            add_text(p, row + lines++, 1, t, from, end - from);
        if (full || end == from)
            from = word;
        end = over;
    }
    if (end > from && lines < 2)
        add_text(p, row + lines++, 1, t, from, end - from);
    return row + (lines ? lines + 1 : 0);
}

/* Adds buttons in one column, in two columns, or side by side with line breaks. */
static void buttons(struct page *p, int row)
{
    const struct list *l = &p->d->labels;
    const struct style *st = &p->st;
    int pitch = most(2, st->pitch), widest = 0;
    for (int k = 0; k < l->n; k++)
        widest = most(widest, l->t[k].n);
    widest += st->wide;
    int left = st->side == SIDE_LEFT     ? st->col + 1
               : st->side == SIDE_MIDDLE ? (COLS - widest) >> 1
                                         : COLS - 2 - widest;
    int start = st->side == SIDE_LEFT ? 1 : st->col, col = start;
    enum shape shape = l->n > 5 && st->shape == SHAPE_STACK ? SHAPE_GRID : st->shape;
    for (int k = 0; k < l->n; k++) {
        const struct text *t = &l->t[k];
        if (shape == SHAPE_STACK) {
            add_button(p, row + k * pitch, left, st->equal ? widest : t->n + (st->wide & ~1), t, k);
        } else if (shape == SHAPE_GRID) {
            add_button(p, row + (k >> 1) * pitch, k & 1 ? 18 : 2, st->equal ? 12 : t->n, t, k);
        } else {
            int len = t->n + (st->wide > 2 ? 2 : 0);
            if (col + len + 2 > COLS && col > start) {
                col = start;
                row += pitch;
            }
            add_button(p, row, col + 1, len, t, k);
            col += len + 3;
        }
    }
}

/* Adds the closing buttons of a form: side by side, or in a column if they do not fit. */
static void closing(struct page *p, int row)
{
    const struct list *l = &p->d->buttons;
    int pad = p->st.wide & ~1, total = -1;
    for (int k = 0; k < l->n; k++)
        total += l->t[k].n + pad + 3;
    int right = COLS - total - (total < COLS);
    int col = p->st.side == SIDE_LEFT     ? least(p->st.col, right)
              : p->st.side == SIDE_MIDDLE ? (COLS - total) >> 1
                                          : right;
    for (int k = 0; k < l->n; k++) {
        int len = l->t[k].n + pad;
        if (total > COLS)
            add_button(p, row + 2 * k, p->st.col + 1, len, &l->t[k], k);
        else
            add_button(p, row, col + 1, len, &l->t[k], k);
        col += len + 3;
    }
}

static int marks(struct page *p, int row)
{
    const struct list *l = &p->d->labels;
    for (int k = 0; k < l->n; k++) {
        struct item *it = add(p, p->d->kind == DIALOG_TICKS ? ITEM_TICK : ITEM_OPTION, row + k * p->st.pitch,
                              p->st.col, l->t[k].n);
        it->text = &l->t[k];
        it->chars = l->t[k].n;
        it->column = p->st.col + 3;
        it->index = k;
    }
    return row + (l->n - 1) * p->st.pitch + 2;
}

static int fields(struct page *p, int row)
{
    const struct list *l = &p->d->labels;
    int longest = 0, col = p->st.col;
    for (int k = 0; k < l->n; k++)
        longest = most(longest, l->t[k].n);
    bool above = p->st.above || col + longest + 2 + 14 > COLS - 1;
    for (int k = 0; k < l->n; k++) {
        add_text(p, row, col, &l->t[k], 0, l->t[k].n)->names = k;
        int at = above ? col : col + longest + 2;
        struct item *it = add(p, ITEM_FIELD, above ? row + 1 : row, at, least(p->st.room, COLS - 1 - at));
        it->text = &p->d->values.t[k];
        it->column = at;
        it->index = k;
        it->snug = above;
        row += above ? 3 : most(2, p->st.pitch);
    }
    return row;
}

static bool compose(struct page *p, int dense)
{
    p->n = 0;
    p->st = style_of(p->d->seed, dense);
    int row = sentence(p, heading(p)) + p->st.top;
    if (p->d->kind == DIALOG_BUTTONS)
        buttons(p, row);
    else
        closing(p, p->d->kind == DIALOG_FIELDS ? fields(p, row) : marks(p, row));
    for (int i = 0; i < p->n; i++)
        if (p->items[i].row > ROWS - 2)
            return false;
    return true;
}

/* Reserves the last row for the report of a press. */
int dialog_items(const struct dialog *d, struct item items[ITEMS_MAX])
{
    struct page p = {.d = d, .items = items};
    for (int dense = 0; !compose(&p, dense) && dense < 5; dense++)
        ;
    if (d->pressed.n) {
        struct item *it = add_text(&p, ROWS - 1, 1, &d->pressed, 0, most(0, least(d->pressed.n, COLS - 9)));
        it->look = LOOK_ACCENT;
        it->report = true;
        it->len += 8;
    }
    return p.n;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

struct box item_box(const struct item *it)
{
    int x = it->col * CELL_W, y = it->row * CELL_H, w = it->len * CELL_W;
    switch (it->kind) {
    case ITEM_FIELD:
        return it->snug ? (struct box){x - 10, y, w + 20, 30} : (struct box){x - 10, y - 5, w + 20, 40};
    case ITEM_BUTTON:
        return (struct box){x - 20, y - 5, w + 40, 40};
    case ITEM_TICK:
    case ITEM_OPTION:
        return (struct box){x, y, w + 3 * CELL_W, CELL_H};
    case ITEM_BAND:
        return (struct box){x, y, w, CELL_H * it->rows};
    case ITEM_TEXT:
        break;
    }
    return (struct box){x, y - 1, w, CELL_H}; /* the theme shifts text up by one pixel */
}

int item_at(const struct item *items, int n, int x, int y)
{
    while (n--) {
        struct box b = item_box(&items[n]);
        if (x >= b.x && y >= b.y && x < b.x + b.w && y < b.y + b.h)
            return n;
    }
    return -1;
}
