/* expected.h - whether the screen shows a recorded screenshot. */
#pragma once

#include "gate/gate.h"

struct expected {
    struct image before, then; /* recorded before the last performed action, and after it; empty: none */
    double threshold;          /* fraction of the tiles that may differ from `then` */
    struct gate *gate;         /* borrowed; covers secrets in screenshots; may be NULL */
};

struct expected_differences {
    double fraction; /* of the screen */
    int tiles;
    struct screen_rect area; /* around them, in pixels of the screenshot */
};

void expected_free(struct expected *x);
/* Replaces the pair of screenshots by (then, next). Takes ownership of next. */
void expected_next(struct expected *x, struct image *next);

/* Returns whether `then` can end a wait: it differs visibly from `before`, or nothing was performed yet. */
bool expected_tells(const struct expected *x);
/* Returns whether a screenshot shows `then`: at most the threshold differs, and no tile in which the recorded
 * action had its effect. Without a recorded action no tile may differ. A function for settle.known; arg: the
 * struct expected. */
bool expected_shown(void *arg, struct image *now);

/* Compares a screenshot with `then`. */
struct expected_differences expected_compare(const struct expected *x, const struct image *now);
