/* loading.c - see loading.h. */
#include "cli/loading.h"

#include "base/bar.h"
#include "base/clock.h"

#include <stddef.h>
#include <stdint.h>

enum { PARTS = 1000, PATIENCE_MS = 1000 };

void loading_progress(void *arg, double fraction, const char *what)
{
    static struct bar bar;
    static double last = 2;
    (void)arg;
    (void)what;
    if (fraction < last) /* of another model */
        bar_begin(&bar, PARTS, 0, false);
    last = fraction;
    bool shown = bar.shown != bar.start;
    if (fraction >= 1 && shown)
        bar_end(&bar);
    else if (fraction < 1 && clock_ms_since(bar.start) > PATIENCE_MS)
        bar_show(&bar, (int)(fraction * PARTS), "loading the model");
}
