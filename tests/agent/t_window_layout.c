/* t_window_layout.c - tests of the pages of the step window: nothing is drawn over another element, and
 * clicks and keys do the action that is displayed.
 *
 * The scene records each drawn element and its box (struct paint_log).  HOLORUN_TEST_PICTURES=FOLDER saves
 * an image of each page at three sizes.
 */
#include "check.h"

#include "base/file.h"
#include "example.h"
#include "place.h"
#include "step/private.h"
#include "step/scene.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { HISTORY = 12, FORKS = 4, BREAKS = 3 };

/* A run with a question of the policy, several replies, and earlier steps of each kind. */
struct full {
    struct example x;
    struct history_step history[HISTORY];
    struct proposed_reply forks[FORKS];
    struct step steps[FORKS];
    struct step_odds odds;
    char *dir;
};

static struct alternative odd(const char *text, double p, int x, int y)
{
    struct alternative a = {.p = p, .x = x, .y = y};
    snprintf(a.text, sizeof a.text, "%s", text);
    return a;
}

static void make_history(struct full *f)
{
    static char
        what[] = "click \"Add to basket\" at 212,140; type \"two tickets to Lima\" into \"Notes\" at 90,300",
        thought[] =
            "The basket is still empty, so the first thing to do is to add the ticket for the morning "
            "flight; the list below shows its price.",
        window[] = "Shop - Mozilla Firefox";
    for (int i = 0; i < HISTORY; i++) {
        struct history_step *h = &f->history[i];
        *h = (struct history_step){
            .number = i + 1, .frame = i % 2, .what = what, .thought = thought, .window = window};
        h->x = 212, h->y = 140, h->x2 = h->y2 = ACTION_ABSENT;
        h->ran = i % 7 != 6;
        h->failed = i % 5 == 3;
        h->judged = i % 3 != 0;
        h->changed = i % 2;
        h->tiles = 0.12;
        h->reachable = i > 4;
        h->left = i == 5;
        h->edited = i == 9;
        h->confidence = 0.41;
        h->chosen[0] = odd("click_desktop", 0.97, ACTION_ABSENT, 0);
        h->chosen[1] = odd("212,140", 0.41, 212, 140);
        h->n_chosen = 2;
        for (int p = 0; p < PHASES; p++)
            h->ms[p] = 120.0 * (p + 1);
    }
    f->odds = (struct step_odds){.number = HISTORY, .n_verbs = 2, .n_places = 2};
    f->odds.verbs[0] = odd("click_desktop", 0.97, ACTION_ABSENT, 0);
    f->odds.verbs[1] = odd("double_click_desktop", 0.02, ACTION_ABSENT, 0);
    f->odds.places[0] = odd("212,140", 0.41, 212, 140);
    f->odds.places[1] = odd("214,162", 0.33, 214, 162);
}

/* Paints a substitute for a screenshot. */
static void paint_frame_of(struct image *im, int shift)
{
    for (int y = 0; y < im->h; y++)
        for (int x = 0; x < im->w; x++) {
            uint8_t *c = im->rgb + 3 * ((size_t)y * (size_t)im->w + (size_t)x);
            bool edge = x % 160 < 2 || y % 120 < 2, bar = y < 28;
            c[0] = bar ? 60 : edge ? 120 : (uint8_t)(225 + shift);
            c[1] = bar ? 70 : edge ? 130 : 228;
            c[2] = bar ? 90 : edge ? 150 : 232;
        }
}

static void full_make(struct full *f, int w, int h)
{
    static char texts[FORKS][40] = {"no", "two tickets", "three tickets", "none"};
    memset(f, 0, sizeof *f);
    example_make(&f->x, w, h);
    paint_frame_of(&f->x.frame, 0);
    char dir[PLACE_PATH];
    f->dir = xstrdup(mkdtemp(place_template(dir)));
    char *frames = xasprintf("%s/frames", f->dir);
    must(dir_make(frames, &why));
    for (int i = 0; i < 2; i++) {
        char *path = xasprintf("%s/%06d.png", frames, i);
        paint_frame_of(&f->x.frame, 10 * i);
        must(image_write_png(&f->x.frame, path, &why));
        free(path);
    }
    free(frames);
    make_history(f);
    struct proposal *p = &f->x.p;
    struct step_view *v = &f->x.v;
    p->dir = f->dir;
    p->task =
        "Book the 9:40 flight from Paris to Lima for Ada Lovelace and pay with the card that is on file";
    p->title = "Pay - Shop - Mozilla Firefox";
    p->class = "firefox";
    p->number = HISTORY + 1;
    p->max_steps = 100;
    p->seconds = 83.4;
    p->history = f->history;
    p->n_history = HISTORY;
    p->frame_number = 1;
    p->lead = "The result of the last action: the screen changed.";
    p->reused = 2048, p->prefilled = 512, p->forced = 31, p->sampled = 12;
    for (int k = 0; k < PHASES; k++)
        p->ms[k] = 100 * (k + 1);
    for (int i = 0; i < FORKS; i++) {
        f->steps[i] = (struct step){.nactions = 1};
        f->steps[i].actions[0] = action_of(ACT_TYPE);
        f->steps[i].actions[0].text = texts[i];
        f->forks[i] = (struct proposed_reply){.step = &f->steps[i], .message = "", .reply = ""};
    }
    v->why = "breakpoint: window Pay and text card";
    v->confidence = 0.37;
    v->verbs[0] = odd("click_desktop", 0.93, ACTION_ABSENT, 0);
    v->verbs[1] = odd("write_desktop", 0.06, ACTION_ABSENT, 0);
    v->n_verbs = 2;
    v->places[0] = odd("320,240", 0.37, w / 2, h / 2);
    v->places[1] = odd("322,262", 0.35, w / 2 + 2, h / 2 + 22);
    v->n_places = 2;
    v->odds = &f->odds;
    v->n_odds = 1;
    static const struct step_break breaks[BREAKS] = {{"window \"Pay and go\" and text card", false, 2},
                                                     {"irreversible", true, 0},
                                                     {"confidence 0.8", false, 1}};
    memcpy(v->breaks, breaks, sizeof breaks);
    v->n_breaks = BREAKS;
}

static void full_free(struct full *f)
{
    image_free(&f->x.frame);
    free(f->dir);
}

/* ---- pages ------------------------------------------------------------------------------------ */

enum page {
    STEP,
    QUESTION,
    REPLIES,
    BREAKPOINTS,
    PAST,
    HELP,
    EDITING,
    MESSAGE,
    RUNNING,
    RECORDED,
    MANY,
    PAGES
};
static const char *const names[PAGES] = {"step",    "question", "replies", "breakpoints", "past", "help",
                                         "editing", "message",  "running", "recorded",    "many"};

static void press(struct scene *s, const struct step_view *v, int key)
{
    struct step_command c;
    assert_false(scene_key(s, v, key, &c));
}

/* Switches the window to this page.  full_make() resets the view. */
static void open_page(struct full *f, struct scene *s, enum page page)
{
    static char long_text[] =
        "please send to account 12 34 56 78 90 with the reference of the invoice of last May the sum "
        "of $ 1,250.00 and then CHF 7 for the fee; thank you very much";
    struct step_view *v = &f->x.v;
    struct proposal *p = &f->x.p;
    p->gate = page == QUESTION ? "confirm: sending, paying, deleting, granting" : NULL;
    p->irreversible = page == QUESTION;
    p->where = page == QUESTION ? "Pay - Shop - Mozilla Firefox, firefox, /usr/lib/firefox/firefox" : "";
    f->x.step.actions[0].kind = page == QUESTION ? ACT_TYPE : ACT_CLICK;
    f->x.step.actions[0].text = page == QUESTION ? long_text : NULL;
    p->forks = page == REPLIES ? f->forks : NULL;
    p->n_forks = page == REPLIES ? FORKS : 0;
    p->taken = page == REPLIES ? 1 : -1;
    p->recorded = page == RECORDED;
    p->from = 3;
    p->moved_on = page == RECORDED ? 0.2 : -1;
    v->message =
        page == MESSAGE ? "breakpoint 'text (': missing closing parenthesis at character 2 of '('" : "";
    v->error = page == MESSAGE;
    f->x.step.nactions = page == MANY ? 5 : 1;
    for (int i = 1; i < f->x.step.nactions; i++) {
        f->x.step.actions[i] = f->x.step.actions[0];
        f->x.step.actions[i].x += 3 * i;
    }
    scene_show(s, v);
    s->status = page == RUNNING ? "running to a breakpoint" : NULL;
    s->notice = page == RUNNING ? "this window is hidden while the agent captures and acts" : NULL;
    if (page == BREAKPOINTS)
        press(s, v, 'b');
    else if (page == HELP)
        press(s, v, '?');
    else if (page == EDITING)
        press(s, v, 'e');
    else if (page == PAST)
        press(s, v, KEY_LEFT);
}

/* Draws the scene; the caller frees log->list. */
static void draw(struct full *f, struct scene *s, struct paint_log *log, const char *picture)
{
    cairo_surface_t *on = cairo_image_surface_create(CAIRO_FORMAT_RGB24, s->w, s->h);
    *log = (struct paint_log){0};
    s->log = log;
    scene_draw(s, &f->x.v, on);
    s->log = NULL;
    if (picture)
        cairo_surface_write_to_png(on, picture);
    cairo_surface_destroy(on);
}

/* ---- positions ------------------------------------------------------------------------------- */

static bool is(const struct painted *d, const char *name)
{
    return d->part && !strcmp(d->what, name);
}

static double slack; /* tolerance: one pixel for rounded clips, and rounding errors of sums */

static double shared(double a0, double a1, double b0, double b1)
{
    return fmin(a1, b1) - fmax(a0, b0);
}

/* Returns whether boxes overlap by more than a rounding error. */
static bool overlap(struct box a, struct box b)
{
    return shared(a.x, a.x + a.w, b.x, b.x + b.w) > slack && shared(a.y, a.y + a.h, b.y, b.y + b.h) > slack;
}

static bool within(struct box a, struct box b)
{
    return a.x >= b.x - slack && a.y >= b.y - slack && a.x + a.w <= b.x + b.w + slack &&
           a.y + a.h <= b.y + b.h + slack;
}

/* Returns whether d is a region of the window; all other elements lie in one of these. */
static bool is_region(const struct painted *d)
{
    static const char *const regions[] = {"head", "picture", "panel", "line", "strip", "help", "button"};
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++)
        if (is(d, regions[i]))
            return true;
    return false;
}

static const struct painted *region_of(const struct paint_log *log, const struct painted *d)
{
    for (int i = 0; i < log->n; i++)
        if (is_region(&log->list[i]) && within(d->at, log->list[i].at))
            return &log->list[i];
    return NULL;
}

/* Returns whether a may cover b: a text on its element, or an element on its region. */
static bool may_overlap(const struct painted *a, const struct painted *b)
{
    if (is_region(a) != is_region(b))
        return true;
    if (a->part != b->part) {
        const struct painted *part = a->part ? a : b, *text = a->part ? b : a;
        return within(text->at, part->at);
    }
    return false;
}

static void check_page(const struct scene *s, const struct paint_log *log, const char *page)
{
    const struct box window = {0, 0, s->w / scene_scale(s), s->h / scene_scale(s)};
    slack = 1 / scene_scale(s) + 0.1;
    for (int i = 0; i < log->n; i++) {
        const struct painted *a = &log->list[i];
        if (!within(a->at, window) || (!is_region(a) && !region_of(log, a)))
            fail_msg("%s at %d x %d: '%s' at %.0f,%.0f %.0fx%.0f is not in its part", page, s->w, s->h,
                     a->what, a->at.x, a->at.y, a->at.w, a->at.h);
        const struct painted *in = region_of(log, a);
        bool heading = !strpbrk(a->what, "abcdefghijklmnopqrstuvwxyz");
        if (a->cut && in && (is(in, "button") || is(in, "help") || heading))
            fail_msg("%s at %d x %d: '%s' is cut", page, s->w, s->h, a->what);
        for (int k = 0; k < i; k++) {
            const struct painted *b = &log->list[k];
            if (overlap(a->at, b->at) && !may_overlap(a, b))
                fail_msg("%s at %d x %d: '%s' (%.0f,%.0f %.0fx%.0f) covers '%s' (%.0f,%.0f %.0fx%.0f)", page,
                         s->w, s->h, a->what, a->at.x, a->at.y, a->at.w, a->at.h, b->what, b->at.x, b->at.y,
                         b->at.w, b->at.h);
        }
    }
}

static void t_apart(void **state)
{
    static const int sizes[][2] = {{640, 400},  {641, 1200},  {899, 599}, {900, 600},
                                   {1024, 768}, {1920, 1080}, {2000, 400}};
    enum { FIXED = sizeof sizes / sizeof *sizes, CASES = 14 };
    uint64_t random = check_seed();
    struct paint_log log;
    struct full f;
    int drawn = 0;
    for (int i = 0; i < CASES; i++) {
        int w = i < FIXED ? sizes[i][0] : (int)check_within(&random, 640, 2400);
        int h = i < FIXED ? sizes[i][1] : (int)check_within(&random, 400, 1500);
        full_make(&f, (int)check_within(&random, 300, 1400), (int)check_within(&random, 200, 1000));
        struct scene s;
        scene_init(&s, w, h);
        s.scale = i < FIXED ? 1 : check_within(&random, 0.5, 3);
        f.x.step.actions[0].x = (int)check_within(&random, 0, f.x.frame.w);
        f.x.step.actions[0].y = (int)check_within(&random, 0, f.x.frame.h);
        for (int page = 0; page < PAGES; page++) {
            open_page(&f, &s, (enum page)page);
            s.down = i < FIXED ? 0 : check_within(&random, 0, 400); /* random scroll position */
            draw(&f, &s, &log, NULL);
            check_page(&s, &log, names[page]);
            drawn += log.n;
            free(log.list);
        }
        scene_free(&s);
        full_free(&f);
    }
    check_note("%d sizes, %d pages each, %d texts and parts", CASES, PAGES, drawn);
}

static void t_pictures(void **state)
{
    static const int sizes[][2] = {{640, 400}, {1024, 768}, {1920, 1080}};
    const char *folder = getenv("HOLORUN_TEST_PICTURES");
    struct paint_log log;
    for (int i = 0; i < 3; i++)
        for (int page = 0; page < PAGES; page++) {
            char *path = folder ? xasprintf("%s/%s-%d.png", folder, names[page], sizes[i][0]) : NULL;
            struct full f;
            struct scene s;
            full_make(&f, 1280, 800);
            scene_init(&s, sizes[i][0], sizes[i][1]);
            open_page(&f, &s, (enum page)page);
            draw(&f, &s, &log, path);
            assert_true(log.n > 10);
            free(log.list);
            scene_free(&s);
            full_free(&f);
            free(path);
        }
}

/* ---- displayed actions ----------------------------------------------------------------------- */

static const struct painted *find_text(const struct paint_log *log, const char *text)
{
    for (int i = 0; i < log->n; i++)
        if (!log->list[i].part && strstr(log->list[i].what, text))
            return &log->list[i];
    return NULL;
}

/* Returns the row of the reply with this text, and the digit in it. */
static const struct painted *row_with(const struct paint_log *log, const char *text, char *digit)
{
    const struct painted *row = NULL;
    *digit = 0;
    for (int i = 0; i < log->n; i++)
        for (int k = 0; k < log->n; k++)
            if (is(&log->list[i], "reply") && !log->list[k].part && strstr(log->list[k].what, text) &&
                within(log->list[k].at, log->list[i].at))
                row = &log->list[i];
    for (int k = 0; row && k < log->n; k++)
        if (!log->list[k].part && within(log->list[k].at, row->at) && isdigit(*log->list[k].what) &&
            !log->list[k].what[1])
            *digit = *log->list[k].what;
    return row;
}

static void t_digits(void **state)
{
    struct full f;
    struct scene s;
    struct paint_log log;
    full_make(&f, 800, 600);
    scene_init(&s, 1280, 1000);
    open_page(&f, &s, REPLIES);
    draw(&f, &s, &log, NULL);
    for (int i = 0; i < FORKS; i++) {
        char digit, *what = xasprintf("\"%s\"", f.steps[i].actions[0].text);
        const struct painted *row = row_with(&log, what, &digit);
        struct step_command key = {0}, click = {0};
        if (!row || !digit)
            fail_msg("no row with a digit says %s", what);
        assert_true(scene_key(&s, &f.x.v, digit, &key));
        assert_int_equal(key.verb, STEP_TAKE);
        if (key.n != i)
            fail_msg("the row of reply %d says '%c', which takes reply %d", i, digit, key.n);
        assert_true(scene_press(&s, &f.x.v, row->at.x + 5, row->at.y + 5, false, &click));
        assert_int_equal(click.verb, STEP_TAKE);
        assert_int_equal(click.n, i);
        free(what);
    }
    free(log.list);
    scene_free(&s);
    full_free(&f);
}

/* ---- help ------------------------------------------------------------------------------------- */

/* Returns whether the key gives a command or changes the view. */
static bool does_something(struct full *f, int key)
{
    struct scene s;
    struct step_command c;
    scene_init(&s, 1000, 500);
    open_page(f, &s, REPLIES);
    s.down = 50;
    struct scene before = s;
    bool does = scene_key(&s, &f->x.v, key, &c) || s.mode != before.mode || s.heat != before.heat ||
                s.help != before.help || s.breaks != before.breaks || s.selected != before.selected ||
                s.down != before.down || s.scale != before.scale;
    scene_free(&s);
    return does;
}

static void t_help(void **state)
{
    struct full f;
    struct scene s;
    struct paint_log log;
    char letters[64] = "";
    full_make(&f, 800, 600);
    scene_init(&s, 1200, 1600);
    open_page(&f, &s, HELP);
    draw(&f, &s, &log, NULL);
    for (char key = 'a'; key <= 'z'; key++) {
        char label[2] = {(char)toupper(key), 0};
        bool listed = false;
        for (int i = 0; i < log.n; i++)
            listed = listed || !strcmp(log.list[i].what, label);
        if (listed != does_something(&f, key))
            fail_msg("help %s '%s', which does %s", listed ? "has" : "lacks", label,
                     listed ? "nothing" : "something");
        if (listed)
            strncat(letters, label, 2);
    }
    static const struct {
        int key;
        const char *label;
    } others[] = {{KEY_ENTER, "Enter"},     {KEY_HELP, "? F1"},    {'?', "? F1"},
                  {'7', "0 - 9"},           {KEY_LEFT, "\u2190"},  {KEY_DOWN, "\u2193"},
                  {KEY_PAGE_UP, "Page Up"}, {KEY_LARGER, "Ctrl +"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_true(does_something(&f, others[i].key));
        if (!find_text(&log, others[i].label))
            fail_msg("help lacks '%s'", others[i].label);
    }
    static const char *const words[] = {"reused", "kept from",    "prefilled", "processed in this",
                                        "forced", "allowed only", "sampled",   "have chosen",
                                        "least",  "heat map"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!find_text(&log, words[i]))
            fail_msg("help does not say '%s'", words[i]);
    check_note("letters %s", letters);
    /* while it is open only closing, scrolling and stopping work */
    struct step_command c;
    for (char key = 'a'; key <= 'z'; key++)
        assert_int_equal(scene_key(&s, &f.x.v, key, &c), key == 's' || key == 'q');
    assert_false(scene_key(&s, &f.x.v, KEY_ENTER, &c));
    assert_true(s.help);
    press(&s, &f.x.v, KEY_ESCAPE);
    assert_false(s.help);
    free(log.list);
    scene_free(&s);
    full_free(&f);
}

/* ---- breakpoints ------------------------------------------------------------------------------ */

static struct step_command click_hit(struct full *f, struct scene *s, enum hit_kind kind, int n)
{
    struct step_command c = {.n = -1};
    for (int i = 0; i < s->n_hits; i++)
        if (s->hits[i].kind == kind && s->hits[i].n == n) {
            struct box b = s->hits[i].at;
            bool is_command = scene_press(s, &f->x.v, b.x + b.w / 2, b.y + b.h / 2, false, &c);
            assert_int_equal(is_command, kind != HIT_EXAMPLE);
            return c;
        }
    fail_msg("nothing of that kind can be clicked");
    return c;
}

static void t_breakpoints(void **state)
{
    struct full f;
    struct scene s;
    struct paint_log log;
    full_make(&f, 800, 600);
    scene_init(&s, 1280, 1000);
    open_page(&f, &s, BREAKPOINTS);
    draw(&f, &s, &log, NULL);
    for (int i = 0; i < BREAKS; i++)
        assert_non_null(find_text(&log, f.x.v.breaks[i].spec));
    assert_non_null(find_text(&log, "hit 2 times"));
    assert_non_null(find_text(&log, "off"));
    free(log.list);
    struct step_command c = click_hit(&f, &s, HIT_TOGGLE, 2);
    assert_int_equal(c.verb, STEP_TOGGLE);
    assert_int_equal(c.n, 2);
    c = click_hit(&f, &s, HIT_CLEAR, 3);
    assert_int_equal(c.verb, STEP_CLEAR);
    assert_int_equal(c.n, 3);
    c = click_hit(&f, &s, HIT_UNTIL, 1);
    assert_int_equal(c.verb, STEP_UNTIL);
    assert_string_equal(c.text, f.x.v.breaks[0].spec);
    click_hit(&f, &s, HIT_EXAMPLE, 0);
    assert_int_equal(s.mode, MODE_BREAK);
    assert_true(scene_key(&s, &f.x.v, KEY_ENTER, &c));
    assert_int_equal(c.verb, STEP_BREAK);
    for (int i = 0; i < s.n_hits; i++) /* each example is a valid condition */
        if (s.hits[i].kind == HIT_EXAMPLE) {
            struct breakpoint *b = break_parse(s.hits[i].text, &why);
            if (!b)
                fail_msg("%s", why.text);
            break_free(b);
        }
    scene_show(&s, &f.x.v); /* the list stays open if the same step changes */
    assert_int_equal(scene_page(&s), PAGE_BREAKS);
    press(&s, &f.x.v, 'g');
    assert_int_equal(s.mode, MODE_UNTIL);
    assert_true(scene_key(&s, &f.x.v, KEY_ENTER, &c));
    assert_int_equal(c.verb, STEP_UNTIL);
    assert_string_equal(c.text, "step 14");
    press(&s, &f.x.v, KEY_ESCAPE);
    assert_int_equal(scene_page(&s), PAGE_STEP);
    scene_free(&s);
    full_free(&f);
}

/* ---- earlier steps ---------------------------------------------------------------------------- */

static void t_past(void **state)
{
    static const char *const shown[] = {"STEP 12",
                                        "Add to basket",
                                        "basket is still empty",
                                        "Shop - Mozilla",
                                        "click_desktop",
                                        "97 %",
                                        "41 %",
                                        "double_click_desktop",
                                        "33 %",
                                        "before",
                                        "after",
                                        "changed 12 %",
                                        "act 600"};
    struct full f;
    struct scene s;
    struct paint_log log;
    struct step_command c = {0};
    full_make(&f, 800, 600);
    f.history[HISTORY - 1].judged = f.history[HISTORY - 1].changed = true;
    f.history[HISTORY - 1].failed = false;
    scene_init(&s, 1280, 1000);
    open_page(&f, &s, PAST);
    draw(&f, &s, &log, NULL);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (!find_text(&log, shown[i]))
            fail_msg("an earlier step does not show '%s'", shown[i]);
    assert_null(find_text(&log, "not recorded")); /* both screens are available */
    free(log.list);
    for (char key = 'a'; key <= 'z'; key++) /* the pending step is not visible: no key runs it */
        if (key != 's' && key != 'q' && key != 'r')
            assert_false(scene_key(&s, &f.x.v, key, &c));
    assert_int_equal(s.selected, HISTORY);
    assert_true(scene_key(&s, &f.x.v, KEY_ENTER, &c));
    assert_int_equal(c.verb, STEP_REWIND);
    assert_int_equal(c.n, HISTORY);
    for (int i = HISTORY - 1; i >= 1; i--) {
        press(&s, &f.x.v, KEY_LEFT);
        assert_int_equal(s.selected, i);
    }
    assert_false(scene_key(&s, &f.x.v, KEY_ENTER, &c)); /* the first step cannot be rewound to */
    assert_non_null(strstr(s.said, "cannot be rewound to step 1"));
    for (int i = 2; i <= HISTORY; i++)
        press(&s, &f.x.v, KEY_RIGHT);
    press(&s, &f.x.v, KEY_RIGHT);
    assert_int_equal(scene_page(&s), PAGE_STEP);
    scene_free(&s);
    full_free(&f);
}

static const struct CMUnitTest tests[] = {
    CLAIM("no element or text is drawn over another, at any size from 640 x 400, on each page", t_apart),
    CLAIM("each page can be drawn at three sizes", t_pictures),
    CLAIM("the digit beside a reply selects that reply, and so does a click", t_digits),
    CLAIM("help lists every key that works, no other, and the words of the panel", t_help),
    CLAIM("in the list of breakpoints a click disables, enables, runs to, deletes or uses an example",
          t_breakpoints),
    CLAIM("an earlier step shows its action, odds, before and after; keys apply to that step", t_past),
};

CHECK_MAIN()
