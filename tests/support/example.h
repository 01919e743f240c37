/* example.h - a view of a step that nobody thought, for tests of what shows it. */
#ifndef HOLORUN_TESTS_EXAMPLE_H
#define HOLORUN_TESTS_EXAMPLE_H

#include "stage.h"
#include "step/scene.h"

struct example {
    struct image frame;
    struct step step;
    struct history_step history[3];
    struct proposed_reply forks[2];
    struct proposal p;
    struct step_view v;
};

/* A click in the middle of a frame of this size; x->frame is the caller's to free. */
void example_make(struct example *x, int w, int h);

#endif
