/* t_chooser.c - the choice of a line by a model without vision, on a tiny model with random weights. */
#include "tiny_check.h"

#include "planner/chooser.h"

#include <math.h>

enum { N = 3 };
static const char *const lines[N] = {"press \"OK\"", "tick \"A > 'b'\"", "enter \"Ana\" into \"Name\""};

static struct chooser *opened(void)
{
    struct err e = ERR_INIT;
    struct chooser *c = chooser_open(engine, NULL, &e);
    if (!c || chooser_ask(c, "Form", lines, N, &e))
        fail_msg("%s", e.text);
    return c;
}

static void t_choice(void **state)
{
    (void)state;
    struct chooser *c = opened();
    struct err e = ERR_INIT;
    double p[N], again;
    uint32_t skip = 0;
    int order[N];
    for (int i = 0; i < N; i++) {
        order[i] = chooser_choose(c, "do it", skip, &p[i], &e);
        if (order[i] < 0 || order[i] >= N)
            fail_msg("%d %s", order[i], e.text);
        assert_false(skip >> order[i] & 1);
        skip |= 1U << order[i];
    }
    /* the lines differ in their first byte, so that leaving one out scales the others alike */
    double second = p[1] * (1 - p[0]), third = 1 - p[0] - second;
    check_note("%.4f %.4f %.4f", p[0], second, third);
    assert_true(p[0] >= second - 1e-4 && second >= third - 1e-4);
    assert_true(fabs(p[2] - 1) < 1e-6);
    assert_int_equal(chooser_choose(c, "do it", 0, &again, &e), order[0]);
    assert_true(again == p[0]);
    chooser_free(c);
}

static void t_gain(void **state)
{
    (void)state;
    struct chooser *c = opened();
    struct err e = ERR_INIT;
    double same, more, less;
    assert_int_equal(chooser_gain(c, 1, "one two", "one two", &same, &e), 0);
    assert_int_equal(chooser_gain(c, 1, "one two", "one", &more, &e), 0);
    assert_int_equal(chooser_gain(c, 1, "one", "one two", &less, &e), 0);
    assert_true(same == 0 && more == -less && more != 0);
    chooser_free(c);
}

static const struct CMUnitTest tests[] = {
    WITH_MODEL_F32("only allowed lines are chosen, the most probable first, and a question leaves no trace",
                   t_choice),
    WITH_MODEL_F32("words gain what their absence loses", t_gain),
};

CHECK_MAIN()
