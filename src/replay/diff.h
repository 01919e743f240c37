/* diff.h - comparison of two recorded runs, step by step: screenshot, thought, actions, effect.
 *
 * Steps with the same number are compared. Screenshots count as equal if their hashes are equal or no tile
 * differs by IMAGE_EFFECT_LEVEL. Times are shown but are never a difference. */
#pragma once

#include "base/image.h"
#include "trace/story.h"

#include <stdio.h>

enum { DIFF_FRAME = 1, DIFF_THOUGHT = 2, DIFF_ACTION = 4, DIFF_EFFECT = 8, DIFF_MISSING = 16 };

struct diff_step {
    int number;
    const struct story_step *side[2]; /* NULL: that run does not have this step */
    int differs;                      /* bit set of DIFF_* */
    double tiles;                     /* fraction of the screen that differs, 0..1; -1: not known */
};

struct run_diff {
    struct record record[2];
    struct story story[2];
    struct diff_step *steps;
    int n, differing;
    bool end_differs; /* in status or answer */
};

int diff_open(struct run_diff *d, const char *a, const char *b, struct err *e);
/* Compares two open recordings and takes ownership of them. */
void diff_make(struct run_diff *d, const struct record *a, const struct record *b);
void diff_free(struct run_diff *d);

bool diff_any(const struct run_diff *d);
/* Decodes the screenshot of a step; an empty image if it has none. */
void diff_image(const struct run_diff *d, int side, const struct story_step *s, struct image *im);

void diff_print(const struct run_diff *d, FILE *f);                         /* for a terminal */
void diff_page_print(const struct run_diff *d, const char *title, FILE *f); /* as one page (diff.html) */
int diff_page_write(const struct run_diff *d, const char *title, const char *path,
                    struct err *e); /* 0600, atomic */
