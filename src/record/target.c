/* target.c - the ways to find a target, and cutting its picture; see target.h. */
#include "record/target.h"

#include "record/picture.h"
#include "record/target_element.h"
#include "record/windows.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEAR = 3,       /* px: largest distance at which a picture counts as at the expected position */
    SIZE_SLACK = 4, /* px by which the size of a window may differ for its pixels to be valid */
    NAME_MS = 1500, /* longest wait for names */
    LARGE = 60,     /* px; in a larger element the distance from its left top corner counts */
    CLOSE_W = 96,   /* size of the surroundings of a target, px */
    CLOSE_H = 64,
};
static const double CLEARLY = 0.05; /* minimum lead over the second best score */

const char *target_way_name(enum target_way w)
{
    static const char *const names[TARGET_WAYS] = {"nothing", "image", "name", "position",
                                                   "place among its neighbours"};
    return names[w];
}

/* ---- finding ---------------------------------------------------------------------------------------- */

struct search {
    const struct target_finder *f;
    const struct recording_target *t;
    const struct image *im;
    int x0, y0, ex, ey; /* ex, ey: expected position, root pixels */
    bool window;        /* its window exists */
    bool same_size;     /* and has its recorded size */
    bool covered;       /* another window is at the expected position */
    bool plain;         /* all pictures are plain, so none identifies the target */
    int alike;          /* number of matching pictures, none clearly best */
    bool translated;    /* its program uses another language than in the recording */
    bool unfit;         /* its element is disabled or in another state: nothing else is the target */

    const struct snapshot *elements; /* NULL: not read */
    char missing[300];               /* why its element was not found; "": it has none */
    const char *other;               /* name of another element at its position */
};

static bool in_class(const struct search *q, int x, int y)
{
    struct screen_window w;
    return !*q->t->class || (screen_window_at(q->f->screen, x, y, &w) == 0 && !strcmp(w.class, q->t->class));
}

/* Computes the expected position of the target: relative to its window, at the window's current position. */
static void expect(struct search *q)
{
    const struct recording_target *t = q->t;
    struct screen_rect root = screen_root(q->f->screen);
    struct screen_window w = {.rect = root};
    q->ex = t->x;
    q->ey = t->y;
    q->window = !*t->class || screen_find_window(q->f->screen, t->class, t->title, &w) == 0;
    if (q->window && t->rect.w) {
        q->ex += w.rect.x - t->rect.x;
        q->ey += w.rect.y - t->rect.y;
        q->same_size = abs(w.rect.w - t->rect.w) <= SIZE_SLACK && abs(w.rect.h - t->rect.h) <= SIZE_SLACK;
    }
    q->covered = q->window && !in_class(q, q->ex, q->ey);
    q->translated = q->window && w.pid && window_translated(w.pid, t->language);
}

static void read_elements(struct search *q)
{
    const struct elements_scope scope = {.window = q->t->title};
    if (*q->t->role && elements_snapshot(q->f->elements, &scope, NAME_MS, &q->elements, NULL))
        q->elements = NULL;
    if (*q->t->role && !q->elements)
        snprintf(q->missing, sizeof q->missing, "the elements could not be read");
}

static enum target_way found(struct target_found *out, enum target_way way, int x, int y, double score)
{
    out->way = way;
    out->x = x;
    out->y = y;
    out->score = score;
    return way;
}

static enum target_way at_expected(struct search *q, struct target_found *out)
{
    struct picture_match at;
    if (q->covered || !q->window)
        return TARGET_NONE;
    for (int i = 0; i < q->t->n_pictures; i++) {
        const struct recording_picture *p = &q->t->pictures[i];
        if (!q->plain && picture_plain(&p->image))
            continue;
        double s = picture_score_near(q->im, &p->image, q->ex - p->x - q->x0, q->ey - p->y - q->y0, NEAR,
                                      p->x, p->y, &at);
        if (s >= PICTURE_FOUND)
            return found(out, TARGET_PICTURE, at.x + p->x + q->x0, at.y + p->y + q->y0, s);
    }
    return TARGET_NONE;
}

static enum target_way by_picture(struct search *q, struct target_found *out)
{
    struct picture_match list[PICTURE_MATCHES], best = {.score = 0};
    double second = 0;
    if (q->plain) /* see by_pixel() */
        return TARGET_NONE;
    if (at_expected(q, out))
        return TARGET_PICTURE;
    for (int i = 0; i < q->t->n_pictures && best.score < PICTURE_FOUND; i++) {
        const struct recording_picture *p = &q->t->pictures[i];
        int n = picture_find(q->im, &p->image, p->x, p->y, list);
        for (int k = 0; k < n; k++) {
            struct picture_match m = {list[k].x + p->x + q->x0, list[k].y + p->y + q->y0, list[k].score};
            if (!in_class(q, m.x, m.y))
                continue;
            q->alike++;
            second = fmax(second, fmin(best.score, m.score));
            best = m.score > best.score ? m : best;
        }
    }
    if (best.score < PICTURE_FOUND || second > best.score - CLEARLY)
        return TARGET_NONE;
    return found(out, TARGET_PICTURE, best.x, best.y, best.score);
}

/* Returns the recorded position inside an element along one axis. */
static int inside(double fraction, int recorded, int at, int size)
{
    double offset = fraction * (recorded > LARGE && fraction * recorded < size ? recorded : size);
    return at + (int)fmin(offset, size - 1);
}

static enum target_way by_element(struct search *q, struct target_found *out)
{
    const struct recording_target *t = q->t;
    struct screen_rect view = {q->x0, q->y0, q->im->w, q->im->h};
    struct target_match how;
    if (!q->elements)
        return TARGET_NONE;
    const struct element *e =
        target_element(q->elements, t, q->translated, &how, q->missing, sizeof q->missing);
    q->unfit = how.unfit;
    if (!e)
        return TARGET_NONE;
    int x = inside(t->fx, t->w, e->rect.x, e->rect.w), y = inside(t->fy, t->h, e->rect.y, e->rect.h);
    if (!screen_rect_contains(view, x, y) || !in_class(q, x, y)) {
        snprintf(q->missing, sizeof q->missing, "%s \"%.80s\" is covered, or not on the screen", e->role,
                 e->name);
        return TARGET_NONE;
    }
    if (how.mended)
        snprintf(out->now, sizeof out->now, "%s", e->name);
    return found(out, how.mended ? TARGET_MENDED : TARGET_NAME, x, y, 0);
}

/* Cuts the surroundings of the target out of a picture: a field looks the same if only its wider
 * surroundings have changed. Returns -1 if empty or out of memory. */
static int cut_close(const struct recording_picture *p, struct recording_picture *out)
{
    struct screen_rect r = {p->x - CLOSE_W / 2, p->y - CLOSE_H / 2, CLOSE_W, CLOSE_H};
    r = screen_rect_intersect(r, (struct screen_rect){0, 0, p->image.w, p->image.h});
    *out = (struct recording_picture){.x = p->x - r.x, .y = p->y - r.y};
    return r.w && r.h ? image_crop(&out->image, &p->image, r.x, r.y, r.w, r.h, NULL) : -1;
}

static enum target_way like_close(struct search *q, struct target_found *out)
{
    struct recording_picture part;
    struct picture_match at;
    double best = 0;
    for (int i = 0; i < q->t->n_pictures; i++) {
        if (cut_close(&q->t->pictures[i], &part))
            continue;
        best = fmax(best, picture_score_near(q->im, &part.image, q->ex - part.x - q->x0,
                                             q->ey - part.y - q->y0, NEAR, part.x, part.y, &at));
        image_free(&part.image);
    }
    return best >= PICTURE_LIKE ? found(out, TARGET_PIXEL, q->ex, q->ey, best) : TARGET_NONE;
}

static enum target_way by_pixel(struct search *q, struct target_found *out)
{
    struct screen_rect view = {q->x0, q->y0, q->im->w, q->im->h};
    if (!q->window || !q->same_size || q->covered || !screen_rect_contains(view, q->ex, q->ey))
        return TARGET_NONE;
    if (!q->t->n_pictures)
        return found(out, TARGET_PIXEL, q->ex, q->ey, 0);
    return like_close(q, out);
}

/* Appends a line to a message. */
static void add(struct target_found *out, const char *format, ...)
{
    size_t n = strlen(out->text);
    va_list list;
    va_start(list, format);
    vsnprintf(out->text + n, sizeof out->text - n, format, list);
    va_end(list);
}

static void tell_missing(const struct search *q, struct target_found *out)
{
    if (!q->window) {
        add(out, "its window (class %.100s) is not on the screen", q->t->class);
        return;
    }
    if (*q->missing)
        add(out, q->unfit ? "%s" : "%s, and ", q->missing);
    if (q->unfit)
        return;
    if (q->other)
        add(out, "\"%.80s\" is at the position of its image", q->other);
    else if (q->alike > 1)
        add(out, "its image is on the screen %d times", q->alike);
    else
        add(out, "its image is not on the screen");
    add(out, "%s",
        q->covered     ? ", and another window covers its position"
        : q->same_size ? ", and its position looks different"
                       : ", and its window has another size");
}

static void tell(const struct search *q, struct target_found *out)
{
    int dx = out->x - q->t->x, dy = out->y - q->t->y;
    if (!out->way) {
        tell_missing(q, out);
        return;
    }
    add(out, "found by its %s", target_way_name(out->way));
    if (out->way == TARGET_MENDED)
        add(out, ", \"%.100s\" instead of \"%.100s\"", out->now, q->t->name);
    if (dx || dy)
        add(out, ", %+d,%+d px from its recorded position", dx, dy);
}

/* Discards a target that was found by its looks if its program describes another element there. */
static void contradict(struct search *q, struct target_found *out)
{
    bool looks = out->way == TARGET_PICTURE || out->way == TARGET_PIXEL;
    if (looks && q->elements && !q->translated)
        q->other = target_contradicted(q->elements, q->t, out->x, out->y);
    if (q->other)
        *out = (struct target_found){0};
}

enum target_way target_find(const struct target_finder *f, const struct recording_target *t,
                            const struct image *im, int x0, int y0, bool settle_for_pixel,
                            struct target_found *out)
{
    struct search q = {.f = f, .t = t, .im = im, .x0 = x0, .y0 = y0};
    *out = (struct target_found){0};
    expect(&q);
    q.plain = true;
    for (int i = 0; i < t->n_pictures; i++)
        q.plain = q.plain && picture_plain(&t->pictures[i].image);
    read_elements(&q);
    if (!by_element(&q, out) && !q.unfit && !by_picture(&q, out) &&
        (settle_for_pixel || (q.plain && !*t->role)))
        by_pixel(&q, out);
    contradict(&q, out);
    tell(&q, out);
    return out->way;
}

/* ---- cutting ---------------------------------------------------------------------------------------- */

int target_cut(const struct image *im, int x, int y, struct screen_rect within, struct recording_picture *out,
               struct err *e)
{
    static const int sizes[][2] = {{48, 48}, {96, 64}, {160, 112}, {320, 200}};
    struct screen_rect all = {0, 0, im->w, im->h};
    struct picture_match list[PICTURE_MATCHES];
    within = screen_rect_intersect(within, all);
    *out = (struct recording_picture){0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct screen_rect r = {x - sizes[i][0] / 2, y - sizes[i][1] / 2, sizes[i][0], sizes[i][1]};
        r = screen_rect_intersect(r, within);
        if (!screen_rect_contains(r, x, y))
            return err_set(e, ERR_FAILED, "the position %d,%d is outside its window", x, y);
        image_free(&out->image);
        if (image_crop(&out->image, im, r.x, r.y, r.w, r.h, e))
            return -1;
        out->x = x - r.x;
        out->y = y - r.y;
        int n = picture_find(im, &out->image, out->x, out->y, list);
        if (n == 1 || (n == 2 && list[1].score < list[0].score - CLEARLY))
            break;
    }
    return 0;
}

int target_cut_same(const struct image *im, int x, int y, const struct recording_picture *like,
                    struct recording_picture *out, struct err *e)
{
    *out = (struct recording_picture){.x = like->x, .y = like->y};
    return image_crop(&out->image, im, x - like->x, y - like->y, like->image.w, like->image.h, e);
}
