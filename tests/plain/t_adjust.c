/* t_adjust.c - numbers that are set with the arrow keys, or typed, in widgets that behave like those of toolkits. */
#include "check.h"
#include "xvfb.h"

#include "atspi/roles.h"
#include "base/clock.h"
#include "plain/player_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ON (1ULL << STATE_SHOWING | 1ULL << STATE_SENSITIVE)

static struct xvfb x;
static struct screen *screen; /* clicks are relative to its origin; NULL: no server can be started */

/* A widget, and the text that was typed into it. */
struct widget {
    const char *role, *unit;    /* after the number in its text */
    double number, step, click; /* click: the number after one, NAN: unchanged */
    bool types, home;           /* takes typed text, at once; Home sets the least number */
    double least, most;
    int keys; /* that were pressed */
};

static double within(const struct widget *w, double v)
{
    return v < w->least ? w->least : v > w->most ? w->most : v;
}

/* Performs the reply of the player. */
static void perform(struct widget *w, const char *reply)
{
    const char *times = strstr(reply, "\"repeat\": "), *text = strstr(reply, "\"text\": \"");
    int n = times ? atoi(times + 10) : 1;
    if (strstr(reply, "\"Right\"") || strstr(reply, "\"Up\""))
        w->number = within(w, w->number + n * w->step);
    else if (strstr(reply, "\"Left\"") || strstr(reply, "\"Down\""))
        w->number = within(w, w->number - n * w->step);
    else if (strstr(reply, "\"Home\""))
        w->number = w->home ? w->least : w->number;
    else if (strstr(reply, "\"click\""))
        w->number = isnan(w->click) ? w->number : w->click;
    else if (text && w->types)
        w->number = within(w, atof(text + 9));
    w->keys += strstr(reply, "\"click\"") ? 0 : n;
}

/* Lets the player set the widget to a number; why has the reason if it fails. */
static enum player_next set(struct widget *w, const char *number, char *why, size_t size)
{
    char text[64];
    struct element e[] = {{.ref = 1,
                           .role = "frame",
                           .name = "Window",
                           .value = "",
                           .label = "",
                           .states = ON | 1ULL << STATE_ACTIVE,
                           .rect = {0, 0, 300, 200},
                           .parent = -1,
                           .number = NAN},
                          {.ref = 2,
                           .role = w->role,
                           .name = "Level",
                           .value = text,
                           .label = "",
                           .states = ON,
                           .rect = {0, 0, 90, 30},
                           .depth = 1,
                           .least = w->least,
                           .most = w->most}};
    struct snapshot s = {.e = e, .n = 2, .hit = -1};
    struct player p = {.now = &s, .screen = screen};
    autofree char *task = xasprintf("set Level to %s", number);
    enum player_next next = NEXT_ACTION;
    assert_int_equal(plain_parse(task, &p.steps, NULL), 0);
    for (int i = 0; i < 200 && next != NEXT_STEP && next != NEXT_FAILED; i++) {
        struct buf b;
        buf_init(&b, 1 << 16);
        buf_puts(&b, "");
        e[1].number = w->number;
        snprintf(text, sizeof text, "%.6g%s", w->number, w->unit);
        next = player_step(&p, &b, why, size);
        if (next == NEXT_ACTION) {
            perform(w, b.data);
            p.s.phase++;
            p.s.since = 0;
        } else if (next == NEXT_WAIT) {
            p.s.since = p.s.since ? clock_ns() - 60000 * INT64_C(1000000) : 0; /* the time is over */
        }
        buf_free(&b);
    }
    plain_free(&p.steps);
    return next;
}

static void t_set(void **state)
{
    static const struct {
        struct widget w;
        const char *number, *why; /* why: part of the reason if it fails */
        double end;
    } cases[] = {
        {{"slider", "", 20, 1, NAN, false, true, 0, 100, 0}, "77", NULL, 77},
        {{"slider", "", 10, 5, 33, false, true, 5, 60, 0}, "20", NULL, 20}, /* moved by the click */
        {{"slider", "", 10, 5, 33, false, false, 5, 60, 0}, "20", "in steps of 5", 38}, /* ignores Home */
        {{"slider", "", 10, 5, 33, false, true, 5, 60, 0}, "22", "in steps of 5", 38},  /* on no step */
        {{"slider", "", 20, -1, NAN, false, true, 0, 100, 0}, "50", NULL, 50},          /* inverted keys */
        {{"slider", "", 100, 1, NAN, false, true, 0, 100, 0}, "98", NULL, 98},          /* at its end */
        {{"slider", "", 20, 0, NAN, false, true, 0, 100, 0}, "50", "after 1 keys", 20}, /* ignores keys */
        {{"slider", "", 20, 1, 50, false, true, 0, 100, 0}, "101", "from 0 to 100, not 101", 20},
        {{"dial", "", 20, 1, 3, false, true, 0, 100, 0}, "45", NULL, 45},
        {{"spin button", " kg", 2, .5, NAN, true, false, 0, 40, 0}, "12.5", NULL, 12.5},
        {{"spin button", " kg", 2, .5, NAN, true, false, 0, 40, 0}, "12.3", NULL, 12.3},
        {{"spin button", "", 2, .5, NAN, false, false, 0, 40, 0}, "12.3", "after typing 12.3", 2.5},
        {{"spin button", "", 2, 1, NAN, true, false, 0, 9999, 0}, "5000", NULL, 5000},
        {{"spin button", "", 2, 1, NAN, true, false, 0, 40, 0}, "41", "from 0 to 40, not 41", 2},
    };
    (void)state;
    if (!screen)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct widget w = cases[i].w;
        char why[ERR_TEXT] = "";
        enum player_next next = set(&w, cases[i].number, why, sizeof why);
        if ((next == NEXT_STEP) != !cases[i].why || (cases[i].why && !strstr(why, cases[i].why)) ||
            fabs(w.number - cases[i].end) > 1e-9 || w.keys > 120)
            fail_msg("%zu: %s to %s: %d, %g after %d keys: %s", i, w.role, cases[i].number, next, w.number,
                     w.keys, why);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a slider, dial or spin button gets the number, or keeps to its range and steps and fails", t_set),
};

static void open_screen(void)
{
    struct err e = ERR_INIT;
    if (xvfb_start(&x, "640x480x24", NULL) == 0)
        screen = screen_open(&(struct screen_options){0}, &e);
}

static void close_screen(void)
{
    screen_close(screen);
    xvfb_stop(&x);
}

CHECK_MAIN_WITH(open_screen(), close_screen())
