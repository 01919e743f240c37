/* example.h - a step made without a model, for tests of the views that show it. */
#pragma once

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

/* Makes a step that clicks the centre of a frame of w x h; the caller frees x->frame. */
void example_make(struct example *x, int w, int h);
