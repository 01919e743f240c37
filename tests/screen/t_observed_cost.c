/* t_observed_cost.c - what the checks of an observed screen add to a motion, a press and a key.
 *
 * Compares times with a limit, so run_tests.sh runs it when all other programs have ended.
 */
#include "check.h"
#include "stage.h"

#include "base/clock.h"
#include "screen/observed.h"

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { TIMES = 150 };
struct costs {
    double take[TIMES], aim[TIMES], press[TIMES], key[TIMES];
};

/* The times of a motion, a press and a key. */
static void measure(struct stage *t, int i, bool observe, struct costs *c)
{
    static struct image im;
    must(screen_capture(t->s, &im, &why));
    int64_t start = clock_ns();
    if (observe)
        observed_take(t->s, &im);
    c->take[i] = clock_ms_since(start);
    start = clock_ns();
    must(screen_move(t->s, 300 + i % 2, 230, &why));
    c->aim[i] = clock_ms_since(start);
    start = clock_ns();
    must(screen_button(t->s, 1, true, &why));
    c->press[i] = clock_ms_since(start);
    must(screen_button(t->s, 1, false, &why));
    start = clock_ns();
    must(screen_key(t->s, XK_Escape, true, &why));
    c->key[i] = clock_ms_since(start);
    must(screen_key(t->s, XK_Escape, false, &why));
    assert_null(observed_changed(t->s));
    if (observe)
        observed_drop(t->s);
    if (i == TIMES - 1)
        image_free(&im);
}

/* Returns the difference that observing makes at a quantile of the sorted times. */
static double added(double *with, double *without, double share)
{
    qsort(with, TIMES, sizeof *with, by_size);
    qsort(without, TIMES, sizeof *without, by_size);
    return with[(int)(share * TIMES)] - without[(int)(share * TIMES)];
}

static void t_cost(void **state)
{
    (void)state;
    struct stage t;
    struct costs with, without;
    stage_open_sized(&t, "1920x1080x24");
    for (int i = 0; i < TIMES; i++) {
        measure(&t, i, false, &without);
        measure(&t, i, true, &with);
    }
    check_note("1920x1080: medians: observing %.2f ms; checks of a motion %.2f, a press %.2f, a key %.2f ms",
               added(with.take, without.take, 0.5), added(with.aim, without.aim, 0.5),
               added(with.press, without.press, 0.5), added(with.key, without.key, 0.5));
    if (!CHECK_SANITIZED) /* on a busy machine the median depends on other programs */
        assert_true(added(with.aim, without.aim, 0.2) < 3 && added(with.press, without.press, 0.2) < 3);
    stage_close(&t);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CLAIM("a check takes less than 3 ms", t_cost),
    };
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
