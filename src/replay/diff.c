/* diff.c - compares two recorded runs and prints the differences. */
#include "replay/diff.h"

#include "agent/progress.h"
#include "base/image.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void diff_image(const struct run_diff *d, int side, const struct story_step *s, struct image *im)
{
    autofree char *png = NULL;
    size_t len;
    *im = (struct image){0};
    if (!s || s->frame < 0 || !d->record[side].dir ||
        record_frame(&d->record[side], s->frame, &png, &len, NULL))
        return;
    image_parse_png(im, png, len, NULL);
}

static void compare_frames(const struct run_diff *d, struct diff_step *s)
{
    const char *a = field_text(s->side[0]->observe, "hash"), *b = field_text(s->side[1]->observe, "hash");
    s->tiles = 0;
    if (*a && !strcmp(a, b))
        return;
    struct image x, y;
    diff_image(d, 0, s->side[0], &x);
    diff_image(d, 1, s->side[1], &y);
    s->tiles = x.rgb && y.rgb ? image_tiles_changed(&x, &y, IMAGE_EFFECT_LEVEL) : -1;
    if (s->tiles != 0)
        s->differs |= DIFF_FRAME;
    image_free(&x);
    image_free(&y);
}

static bool same_actions(const struct story_step *a, const struct story_step *b)
{
    if (a->nactions != b->nactions)
        return false;
    for (int i = 0; i < a->nactions; i++)
        if (!json_equal(a->actions[i].action, b->actions[i].action) ||
            !*a->actions[i].failure != !*b->actions[i].failure)
            return false;
    return true;
}

static void compare_steps(const struct run_diff *d, struct diff_step *s)
{
    const struct story_step *a = s->side[0], *b = s->side[1];
    if (!a || !b) {
        s->differs = DIFF_MISSING;
        s->tiles = -1;
        return;
    }
    compare_frames(d, s);
    if (a->step && b->step &&
        (strcmp(field_text(a->step, "thought"), field_text(b->step, "thought")) != 0 ||
         strcmp(field_text(a->step, "note"), field_text(b->step, "note")) != 0))
        s->differs |= DIFF_THOUGHT;
    if (!same_actions(a, b))
        s->differs |= DIFF_ACTION;
    if (a->effect && b->effect && field_bool(a->effect, "changed") != field_bool(b->effect, "changed"))
        s->differs |= DIFF_EFFECT;
}

void diff_make(struct run_diff *d, const struct record *a, const struct record *b)
{
    *d = (struct run_diff){.record = {*a, *b}};
    for (int k = 0; k < 2; k++)
        story_make(&d->story[k], &d->record[k]);
    d->steps = xcalloc((unsigned long)(d->story[0].n + d->story[1].n) + 1, sizeof *d->steps);
    for (int i = 0, j = 0; i < d->story[0].n || j < d->story[1].n;) {
        const struct story_step *x = i < d->story[0].n ? &d->story[0].steps[i] : NULL,
                                *y = j < d->story[1].n ? &d->story[1].steps[j] : NULL;
        int nx = x ? x->number : INT_MAX, ny = y ? y->number : INT_MAX;
        bool take_x = nx <= ny, take_y = ny <= nx;
        struct diff_step *s = &d->steps[d->n++];
        *s = (struct diff_step){take_x ? nx : ny, {take_x ? x : NULL, take_y ? y : NULL}, 0, 0};
        i += take_x;
        j += take_y;
        compare_steps(d, s);
        d->differing += s->differs != 0;
    }
    const json_t *p = d->story[0].end, *q = d->story[1].end;
    d->end_differs = strcmp(field_text(p, "status"), field_text(q, "status")) != 0 ||
                     strcmp(field_text(p, "answer"), field_text(q, "answer")) != 0;
}

int diff_open(struct run_diff *d, const char *a, const char *b, struct err *e)
{
    struct record x, y;
    *d = (struct run_diff){0};
    if (record_open(&x, a, e))
        return -1;
    if (record_open(&y, b, e)) {
        record_free(&x);
        return -1;
    }
    diff_make(d, &x, &y);
    return 0;
}

void diff_free(struct run_diff *d)
{
    for (int k = 0; k < 2; k++) {
        story_free(&d->story[k]);
        record_free(&d->record[k]);
    }
    free(d->steps);
    *d = (struct run_diff){0};
}

bool diff_any(const struct run_diff *d)
{
    return d->differing || d->end_differs;
}

static double seconds_of(const struct story_step *s)
{
    double ms = 0;
    for (int p = 0; p < PHASES; p++)
        ms += s->ms[p];
    return ms / 1000;
}

static void print_side(FILE *f, const char *name, const char *text)
{
    fprintf(f, "      %s  ", name);
    progress_text(f, text);
    fputc('\n', f);
}

static void print_actions(FILE *f, const char *name, const struct story_step *s)
{
    if (!s->nactions)
        print_side(f, name, "no action");
    for (int i = 0; i < s->nactions; i++)
        print_side(f, name, s->actions[i].what);
}

static void print_step(const struct diff_step *s, FILE *f)
{
    static const char *const sides[] = {"a", "b"};
    const struct story_step *a = s->side[0], *b = s->side[1];
    fprintf(f, "%4d  ", s->number);
    if (s->differs & DIFF_MISSING) {
        fprintf(f, "only in %s\n", sides[b != NULL]);
        if (a || b)
            print_actions(f, sides[b != NULL], a ? a : b);
        return;
    }
    fprintf(f, "%s", s->differs ? "" : "same");
    if (s->differs & DIFF_FRAME && s->tiles >= 0)
        fprintf(f, "screen %.1f %%  ", s->tiles * 100);
    else if (s->differs & DIFF_FRAME)
        fprintf(f, "screen unknown  ");
    fprintf(f, "%s%s%s", s->differs & DIFF_THOUGHT ? "thought  " : "",
            s->differs & DIFF_ACTION ? "action  " : "", s->differs & DIFF_EFFECT ? "effect  " : "");
    fprintf(f, "  (%.1f s, %.1f s)\n", seconds_of(a), seconds_of(b));
    for (int k = 0; k < 2 && s->differs & DIFF_THOUGHT; k++)
        print_side(f, sides[k], field_text(s->side[k]->step, "thought"));
    for (int k = 0; k < 2 && s->differs & DIFF_ACTION; k++)
        print_actions(f, sides[k], s->side[k]);
    for (int k = 0; k < 2 && s->differs & DIFF_EFFECT; k++)
        print_side(f, sides[k],
                   field_bool(s->side[k]->effect, "changed") ? "the screen changed"
                                                             : "the screen did not change");
}

void diff_print(const struct run_diff *d, FILE *f)
{
    static const char *const sides[] = {"a", "b"};
    for (int k = 0; k < 2; k++) {
        fprintf(f, "%s  ", sides[k]);
        progress_text(f, d->record[k].dir ? d->record[k].dir : "");
        fputs("  ", f);
        progress_text(f, field_text(d->record[k].run, "task"));
        fputc('\n', f);
    }
    for (int i = 0; i < d->n; i++)
        print_step(&d->steps[i], f);
    for (int k = 0; k < 2 && d->end_differs; k++) {
        const json_t *end = d->story[k].end;
        const char *status = field_text(end, "status");
        fprintf(f, "   %s  ended: ", sides[k]);
        progress_text(f, *status ? status : "interrupted");
        fputs(*field_text(end, "answer") ? ": " : "", f);
        progress_text(f, field_text(end, "answer"));
        fputc('\n', f);
    }
    if (!diff_any(d))
        fprintf(f, "the same in all %d steps\n", d->n);
    else
        fprintf(f, "%d of %d steps differ%s\n", d->differing, d->n, d->end_differs ? ", and the end" : "");
}
