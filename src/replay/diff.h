/* diff.h - compares two runs step by step: screenshot, thought, actions, effect.
 *
 * Steps with the same number are compared.  Screenshots are the same when their hashes are equal or no tile
 * differs by IMAGE_EFFECT_LEVEL.  Times are shown but never count as a difference.
 */
#ifndef HOLORUN_REPLAY_DIFF_H
#define HOLORUN_REPLAY_DIFF_H

#include "base/image.h"
#include "trace/story.h"

#include <stdio.h>

enum { DIFF_FRAME = 1, DIFF_THOUGHT = 2, DIFF_ACTION = 4, DIFF_EFFECT = 8, DIFF_MISSING = 16 };

struct diff_step {
    int number;
    const struct story_step *side[2]; /* NULL: that run has no such step */
    int differs;                      /* DIFF_* */
    double tiles;                     /* share of the screen that differs; -1: not known */
};

struct run_diff {
    struct record record[2];
    struct story story[2];
    struct diff_step *steps;
    int n, differing;
    bool end_differs; /* in status or answer */
};

int diff_open(struct run_diff *d, const char *a, const char *b, struct err *e);
/* Of open records, which it takes over. */
void diff_make(struct run_diff *d, const struct record *a, const struct record *b);
void diff_free(struct run_diff *d);

bool diff_any(const struct run_diff *d);
/* The screenshot of a step; empty when there is none. */
void diff_image(const struct run_diff *d, int side, const struct story_step *s, struct image *im);

void diff_print(const struct run_diff *d, FILE *f);                         /* for a terminal */
void diff_page_print(const struct run_diff *d, const char *title, FILE *f); /* as one page (diff.html) */
int diff_page_write(const struct run_diff *d, const char *title, const char *path,
                    struct err *e); /* 0600, atomic */

#endif
