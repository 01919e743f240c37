/* scenes.h - the newest descriptions of programs, each with the screen of that moment, and the name of a
 * pressed element in them.
 *
 * A press changes its target, and on a loaded machine a program answers up to seconds later. A description
 * that was read before the press names an element if the place of the element looked the same at the press.
 * A later one needs the same look until SCENES_RIPE_MS after it was read, or an earlier one that describes
 * the same object equally. So a press rather has no name than that of the next element at its place.
 */
#pragma once

#include "atspi/elements.h"
#include "base/image.h"
#include "record/recording.h"

enum {
    SCENES = 4,
    SCENES_RIPE_MS = 300, /* by which programs may draw a change later than they describe it */
    SCENES_NEAR = 3,      /* px between the points of a question and of a press */
};

struct scene {
    struct snapshot s;   /* owned */
    struct image screen; /* owned; when the question was sent */
    int64_t asked;       /* clock_ns() of the question */
    int x, y;            /* its point, or far off the screen */
};

struct scenes {
    struct scene list[SCENES]; /* the newest first */
    int n;
    bool added;   /* since scenes_news() */
    int64_t seen; /* time of the screen at scenes_news() */
};

/* Adds a scene, which takes the snapshot and the image of *c; drops the oldest. */
void scenes_add(struct scenes *q, struct scene *c);
void scenes_free(struct scenes *q);
/* Returns whether a scene was added, or has become ripe with a screen of this time, since the last call. */
bool scenes_news(struct scenes *q, int64_t now_at);

struct press {
    bool unnamed; /* its element is wanted */
    int x, y;
    unsigned long window;    /* 0: unknown, because it may have closed */
    struct screen_rect rect; /* of the window, or the screen */
    int64_t at;              /* clock_ns() */
};

/* Returns whether the scene has an element at the point of a press in its window. */
bool scene_has(const struct scene *c, const struct press *p);

/* Names the element of a press if that is certain: fills the element members of *t and clears p->unnamed.
 * Clears it also when nothing can be learned any more. before: the screen before the press. now: a later
 * screen, of time now_at. */
void scenes_name(const struct scenes *q, struct press *p, const struct image *before, const struct image *now,
                 int64_t now_at, struct recording_target *t);
