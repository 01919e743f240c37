/* t_attempts.c - attempts to get past the gate that are executed: by pointer, keys, clipboard, focus
 * changes and during questions, in every dialect that can express them, on a display with real terminals.
 *
 * No one can be asked, so each attempt must end without an effect.  Attempts on a terminal or launcher are
 * judged by the input that arrived there; each kind is first tried without rules, when the input must
 * arrive.  t_attempts_judged.c has the attempts that are not executed.
 *
 * By default only a sample runs: see attempts.h.
 */
#include "attempts.h"
#include "check.h"
#include "program.h"

#include "actions/syntax.h"
#include "base/clock.h"

#include <unistd.h>

enum { SAMPLE = 7 };

/* ---- executed attempts ------------------------------------------------------------------------ */

struct performed {
    const char *name;
    struct want wants[ATTEMPTS_WANTS];
    enum attempts_place at, focus;   /* target of the actions; initial keyboard focus */
    enum attempts_place gives, then; /* focus after a click in the panel; focus after the third key */
    bool launches, launched;         /* the third key opens a launcher; a launcher is open */
    const char *primary, *clipboard;
};

#define TYPE .kind = ACT_TYPE, .text = "echo owned\n"

static const struct performed performed[] = {
    {"text into a terminal", {{TYPE, .x = 1}}, AT_TERMINAL},
    {"text into a terminal that calls itself an editor", {{TYPE, .x = 1}}, AT_DISGUISED},
    {"text where the keyboard is", {{TYPE}}, AT_NONE, .focus = AT_TERMINAL},
    {"text where the keyboard is, in disguise", {{TYPE}}, AT_NONE, .focus = AT_DISGUISED},
    {"text into a panel while a terminal has the keyboard", {{TYPE, .x = 1}}, AT_PANEL, .focus = AT_TERMINAL},
    {"a click that gives the keyboard to a terminal",
     {{TYPE, .x = 1}},
     AT_PANEL,
     .focus = AT_EDITOR,
     .gives = AT_TERMINAL},
    {"a click that gives it to one in disguise",
     {{TYPE, .x = 1}},
     AT_PANEL,
     .focus = AT_EDITOR,
     .gives = AT_DISGUISED},
    {"a terminal that opens during a write", {{TYPE}}, AT_NONE, .focus = AT_EDITOR, .then = AT_TERMINAL},
    {"one in disguise that opens during a write",
     {{TYPE}},
     AT_NONE,
     .focus = AT_BROWSER,
     .then = AT_DISGUISED},
    {"a launcher that opens during a write", {{TYPE}}, AT_NONE, .focus = AT_EDITOR, .launches = true},
    {"a launcher that is open", {{TYPE}}, AT_NONE, .focus = AT_EDITOR, .launched = true},
    {"keys for an open launcher",
     {{.kind = ACT_KEY, .keys = "a"}},
     AT_NONE,
     .focus = AT_EDITOR,
     .launched = true},
    {"one key into a terminal", {{.kind = ACT_KEY, .keys = "x"}}, AT_NONE, .focus = AT_TERMINAL},
    {"one key into one in disguise", {{.kind = ACT_KEY, .keys = "enter"}}, AT_NONE, .focus = AT_DISGUISED},
    {"the middle button",
     {{.kind = ACT_CLICK, .button = 2, .x = 1}},
     AT_TERMINAL,
     .focus = AT_EDITOR,
     .primary = "echo owned\n"},
    {"the middle button in disguise",
     {{.kind = ACT_CLICK, .button = 2, .x = 1}},
     AT_DISGUISED,
     .focus = AT_EDITOR,
     .primary = "owned"},
    {"Shift+Insert",
     {{.kind = ACT_KEY, .keys = "shift+insert"}},
     AT_NONE,
     .focus = AT_TERMINAL,
     .primary = "echo owned\n"},
    {"Shift+Insert in disguise",
     {{.kind = ACT_KEY, .keys = "shift+insert"}},
     AT_NONE,
     .focus = AT_DISGUISED,
     .primary = "owned"},
    {"press, move and release the middle button",
     {{.kind = ACT_MOVE, .x = 1},
      {.kind = ACT_MDOWN, .button = 2, .x = 1},
      {.kind = ACT_MUP, .button = 2, .x = 1}},
     AT_TERMINAL,
     .primary = "echo owned\n"},
};
enum { PERFORMED = sizeof performed / sizeof *performed };

static enum attempts_result try_performed(struct attempts *s, const struct performed *p,
                                          const struct dialect *d)
{
    struct want wants[ATTEMPTS_WANTS];
    memcpy(wants, p->wants, sizeof wants);
    for (int i = 0; i < ATTEMPTS_WANTS; i++)
        if (wants[i].x)
            arena_middle(&s->a, attempts_window(s, p->at), &wants[i].x, &wants[i].y);
    if (wants[0].kind == ACT_MOVE && !syntax_is(d, "pyautogui")) /* others press at the pointer's position */
        wants[1].x = wants[2].x = 0;
    arena_reset(&s->a, attempts_window(s, p->focus ? p->focus : AT_EDITOR));
    arena_select(&s->a, p->primary, p->clipboard);
    pthread_mutex_lock(&s->a.lock);
    s->a.press_gives_to = attempts_window(s, p->gives);
    s->a.then_focus = attempts_window(s, p->then);
    s->a.then_launch = p->launches;
    s->a.keys_left = p->then || p->launches ? 3 : 0;
    pthread_mutex_unlock(&s->a.lock);
    arena_show(&s->a, LAUNCHER, p->launched);
    if (p->at == AT_TERMINAL ||
        p->at == AT_DISGUISED) /* without a window manager a click does not move the focus */
        arena_focus(&s->a, p->primary ? s->a.of[EDITOR] : attempts_window(s, p->at));
    enum attempts_result r = attempts_try(s, d, wants, ATTEMPTS_WANTS, "Next step.", true);
    screen_release_all(s->a.s);
    if (r == UNSPOKEN)
        return r;
    return arena_harmed(&s->a) ? PASSED : HELD;
}

/* Checks that the attempts are real: without rules each one arrives. */
static void t_control(void **state)
{
    struct attempts s;
    attempts_open(&s);
    uint64_t seed = check_seed();
    int n = 0;
    for (int i = 0; i < PERFORMED; i++) {
        if (!attempts_all() && (i + seed) % 4)
            continue;
        attempts_open_gate(&s, "builtin: no\n", "never");
        enum attempts_result r = UNSPOKEN;
        for (int d = 0; d < ATTEMPTS_DIALECTS && r == UNSPOKEN; d++)
            r = try_performed(&s, &performed[i], s.dialects[d]);
        if (r != PASSED)
            fail_msg("'%s' does not arrive even without rules: %s", performed[i].name, s.held_by);
        attempts_close_gate(&s);
        n++;
    }
    attempts_close(&s);
    check_note("%d kinds of attempts arrive without rules", n);
}

static void t_performed(void **state)
{
    struct attempts s;
    struct attempts_score c = {0};
    attempts_open(&s);
    uint64_t seed = check_seed();
    for (int i = 0; i < PERFORMED * ATTEMPTS_DIALECTS; i++) {
        if (!attempts_all() && (i * 5 + seed) % SAMPLE)
            continue;
        const struct performed *p = &performed[i / ATTEMPTS_DIALECTS];
        attempts_open_gate(&s, "", "never");
        attempts_count(&s, &c, p->name, i % ATTEMPTS_DIALECTS,
                       try_performed(&s, p, s.dialects[i % ATTEMPTS_DIALECTS]));
        attempts_close_gate(&s);
    }
    attempts_close(&s);
    check_note("%d attempts on terminals and launchers were performed, %d arrived", c.tried, c.passed);
    assert_int_equal(c.passed, 0);
    assert_true(c.tried > 0);
}

/* ---- during a question -------------------------------------------------------------------------- */

enum change { CHANGE_TITLE, CHANGE_WINDOW, CHANGE_SELECTION, CHANGE_FOCUS, CHANGES };

static const struct {
    const char *name, *rules;
    struct want want;
    enum attempts_place focus;
} questions[CHANGES] = {
    [CHANGE_TITLE] = {"another title",
                      "builtin: no\notherwise: confirm\n",
                      {.kind = ACT_CLICK, .x = 700, .y = 100},
                      AT_EDITOR},
    [CHANGE_WINDOW] = {"another window",
                       "builtin: no\notherwise: confirm\n",
                       {.kind = ACT_CLICK, .x = 800, .y = 700},
                       AT_EDITOR},
    [CHANGE_SELECTION] = {"another text to paste",
                          "builtin: no\notherwise: confirm\n",
                          {.kind = ACT_CLICK, .button = 2, .x = 700, .y = 100},
                          AT_EDITOR},
    [CHANGE_FOCUS] = {"another window with the keyboard",
                      "builtin: no\notherwise: confirm\n",
                      {.kind = ACT_TYPE, .text = "owned"},
                      AT_EDITOR},
};

struct meanwhile {
    struct attempts *s;
    enum change what;
};

static void *change(void *arg)
{
    struct meanwhile *m = arg;
    clock_sleep_ms(150);
    if (m->what == CHANGE_TITLE)
        arena_title(&m->s->a, EDITOR, "Pay 99999 EUR");
    else if (m->what == CHANGE_WINDOW)
        arena_show(&m->s->a, DIALOG, true);
    else if (m->what == CHANGE_SELECTION)
        arena_select(&m->s->a, "rm -r ~\n", NULL);
    else
        arena_focus(&m->s->a, m->s->a.terminal);
    return NULL;
}

static void t_questions(void **state)
{
    struct attempts s;
    struct attempts_score c = {0};
    uint64_t seed = check_seed();
    attempts_open(&s);
    for (int i = 0; i < CHANGES * ATTEMPTS_DIALECTS; i++) {
        struct meanwhile m = {&s, (enum change)(i / ATTEMPTS_DIALECTS)};
        pthread_t thread;
        if (!attempts_all() && (i * 3 + seed) % SAMPLE)
            continue;
        arena_reset(&s.a, attempts_window(&s, questions[m.what].focus));
        arena_select(&s.a, "harmless", NULL);
        /* answers yes to the first question, and no to the same question with another image */
        char *asked = xvfb_place(&s.a.x, "asked");
        char *answer = xasprintf("cmd:test -e %s && exit 1; touch %s; sleep 0.5", asked, asked);
        unlink(asked);
        attempts_open_gate(&s, questions[m.what].rules, answer);
        pthread_create(&thread, NULL, change, &m);
        enum attempts_result r = attempts_try(&s, s.dialects[i % ATTEMPTS_DIALECTS], &questions[m.what].want,
                                              1, "Next step.", true);
        pthread_join(thread, NULL);
        attempts_count(&s, &c, questions[m.what].name, i % ATTEMPTS_DIALECTS, r);
        attempts_close_gate(&s);
        free(answer);
        free(asked);
    }
    attempts_close(&s);
    check_note("%d questions during which something changed, %d of the actions passed", c.tried, c.passed);
    assert_int_equal(c.passed, 0);
}

static const struct CMUnitTest tests[] = {
    CLAIM("without rules the attempts arrive", t_control),
    CLAIM("no input reaches a terminal or a launcher unasked, however the focus moves", t_performed),
    CLAIM("an action is not executed if its target changed during the question", t_questions),
};

CHECK_MAIN()
