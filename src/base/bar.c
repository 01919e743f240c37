/* bar.c - progress bar on stderr (bar.h). */
#include "base/bar.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH = 30, NARROW = 76 }; /* columns; a line that wraps cannot be cleared */

void bar_time(double seconds, char out[32])
{
    long s = seconds > 0 ? (long)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(out, 32, "%ld h %02ld min", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(out, 32, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(out, 32, "%ld s", s);
}

bool bar_colors(FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(f)) == 1 && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

int bar_columns(int otherwise)
{
    static const int fds[] = {STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO};
    struct winsize w;
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (ioctl(fds[i], TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
            return w.ws_col;
    return otherwise;
}

void bar_begin(struct bar *b, int total, int skipped, bool quiet)
{
    *b = (struct bar){
        .total = total, .skipped = skipped, .start = clock_ns(), .terminal = isatty(2) == 1, .quiet = quiet};
    b->shown = b->start;
}

void bar_show(struct bar *b, int done, const char *note)
{
    static const char full[] = "##############################", empty[] = "..............................";
    double pause = b->terminal ? 100 : 30000, elapsed = clock_ms_since(b->start) / 1000;
    if (b->quiet || (done < b->total && clock_ms_since(b->shown) < pause))
        return;
    if (!b->terminal && elapsed * 1000 < pause)
        return;
    b->shown = clock_ns();
    int fresh = done - b->skipped, filled = b->total > 0 ? done * WIDTH / b->total : 0;
    char left[32] = "?";
    if (fresh > 0)
        bar_time(elapsed / fresh * (b->total - done), left);
    if (b->terminal && bar_columns(80) < NARROW)
        fprintf(stderr, "\r%d/%d  %s left\033[K", done, b->total, left);
    else if (b->terminal)
        fprintf(stderr, "\r[%.*s%.*s] %d/%d  %s  %s left\033[K", filled, full, WIDTH - filled, empty, done,
                b->total, note, left);
    else
        fprintf(stderr, "holorun: %d of %d, %s, %s left\n", done, b->total, note, left);
    fflush(stderr);
}

void bar_end(const struct bar *b)
{
    if (b->terminal && !b->quiet)
        fputs("\r\033[K", stderr);
}

void bar_loading(void *arg, double fraction, const char *what)
{
    enum { PARTS = 1000, PATIENCE_MS = 1000 };
    static struct bar bar;
    static double last = 2;
    if (fraction < last) /* another model */
        bar_begin(&bar, PARTS, 0, false);
    last = fraction;
    bool shown = bar.shown != bar.start;
    if (fraction >= 1 && shown)
        bar_end(&bar);
    else if (fraction < 1 && clock_ms_since(bar.start) > PATIENCE_MS)
        bar_show(&bar, (int)(fraction * PARTS), "loading the model");
}
