/* example.c - see example.h. */
#include "example.h"
#include "check.h"

void example_make(struct example *x, int w, int h)
{
    static char what[] = "click \"Save\" at 10,20", thought[] = "the form is full";
    memset(x, 0, sizeof *x);
    must(image_alloc(&x->frame, w, h, &why));
    for (int i = 0; i < w * h * 3; i++)
        x->frame.rgb[i] = (uint8_t)(40 + i % 180);
    x->step.nactions = 1;
    x->step.thought = thought;
    x->step.actions[0] = action_of(ACT_CLICK);
    x->step.actions[0].x = w / 2;
    x->step.actions[0].y = h / 2;
    x->step.actions[0].button = x->step.actions[0].count = 1;
    for (int i = 0; i < 3; i++)
        x->history[i] = (struct history_step){
            .number = i + 1, .frame = -1, .what = what, .thought = thought, .ran = true, .reachable = i > 0};
    for (int i = 0; i < 2; i++)
        x->forks[i] = (struct proposed_reply){.step = &x->step, .message = "", .reply = ""};
    x->p = (struct proposal){.number = 4,
                             .max_steps = 9,
                             .task = "an example",
                             .frame = &x->frame,
                             .moved_on = -1,
                             .place = {0, 0, 1, 1},
                             .lead = "",
                             .now = x->forks[0],
                             .taken = -1,
                             .history = x->history,
                             .n_history = 3};
    x->v = (struct step_view){
        .p = &x->p, .step = &x->step, .why = "first step", .message = "", .confidence = -1};
}
