/* t_calibrate.c - tests of calibration: generated screens, line fits, verdicts on simulated models with a
 * known dialect and coordinate space, and the saved result. */
#include "check.h"

#include "actions/place.h"
#include "program.h"

#include "actions/syntax.h"
#include "base/file.h"
#include "eval/calibrate.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

/* ---- screens --------------------------------------------------------------------------------- */

/* Checks that every character of a label is visible: both colours of its button occur. */
static void has_ink(const struct calibration_screen *s, const struct calibration_target *t)
{
    for (int i = 0; t->label[i]; i++) {
        int x0 = (int)t->box[0] + (2 + i) * 20, y0 = (int)t->box[1] + 5, lightest = 255 * 3, darkest = 0;
        for (int y = y0; y < y0 + 30; y++)
            for (int x = x0; x < x0 + 20; x++) {
                const uint8_t *p = s->image.rgb + ((size_t)y * (size_t)s->image.w + (size_t)x) * 3;
                int sum = p[0] + p[1] + p[2];
                lightest = sum < lightest ? sum : lightest;
                darkest = sum > darkest ? sum : darkest;
            }
        assert_true(darkest - lightest > 200);
    }
}

static void t_screens(void **state)
{
    static const int sizes[][2] = {{640, 480}, {1280, 800}, {1366, 768}, {641, 777}};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct err e = ERR_INIT;
        struct calibration_screen s, again;
        int w = sizes[seed % 4][0], h = sizes[seed % 4][1];
        if (calibration_draw(&s, w, h, CALIBRATE_ON_SCREEN, seed, &e) ||
            calibration_draw(&again, w, h, CALIBRATE_ON_SCREEN, seed, &e))
            fail_msg("%s", e.text);
        assert_true(image_equal(&s.image, &again.image));
        assert_int_equal(s.n, CALIBRATE_ON_SCREEN);
        for (int i = 0; i < s.n; i++) {
            const double *a = s.targets[i].box;
            assert_true(a[0] >= 0 && a[1] >= 0 && a[2] <= w && a[3] <= h && strlen(s.targets[i].label) >= 5);
            has_ink(&s, &s.targets[i]);
            for (int j = 0; j < i; j++) {
                const double *b = s.targets[j].box;
                assert_true(a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1]);
                assert_int_not_equal(s.targets[i].label[0], s.targets[j].label[0]);
            }
        }
        image_free(&s.image);
        image_free(&again.image);
    }
    struct calibration_screen s;
    assert_int_equal(calibration_draw(&s, 200, 480, 6, 1, NULL), -1);
    assert_int_equal(calibration_draw(&s, 640, 480, 7, 1, NULL), -1);
    assert_int_equal(calibration_draw(&s, 640, 480, 0, 1, NULL), -1);
}

/* ---- line fits ------------------------------------------------------------------------------- */

static void t_lines(void **state)
{
    uint64_t random = check_seed();
    double x[60], y[60];
    for (int i = 0; i < 60; i++) {
        x[i] = 1280 * check_random(&random);
        y[i] = 0.78125 * x[i] + 3 + check_random(&random) - 0.5;
        if (i % 4 == 0)
            y[i] = 1000 * check_random(&random); /* every fourth is an outlier */
    }
    struct line l = line_fit(x, y, 60, 5);
    check_note("%.4f x %+.2f, %d of %d near", l.a, l.b, l.near, l.n);
    assert_true(fabs(l.a - 0.78125) < 0.004 && fabs(l.b - 3) < 2);
    assert_in_range(l.near, 45, 52);

    assert_int_equal(line_fit(x, y, 2, 5).near, 0);
    for (int i = 0; i < 60; i++)
        x[i] = 7;
    l = line_fit(x, y, 60, 5);
    assert_true(l.near == 0 && !(l.a > 0) && !(l.a < 0));
    assert_true(fabs(line_of_space(COORD_NORM1000, 1280).a - 0.78125) < 1e-12);
    assert_true(fabs(line_of_space(COORD_NORM1, 640).a - 0.0015625) < 1e-12);
}

/* ---- verdicts on simulated models ------------------------------------------------------------ */

enum { W = 640, H = 480 }; /* coordinates of the embedded model's dialect end at 1023 */

/* Writes the reply of a model that points at (x, y) of a w x h image in this space and dialect. */
static void say(char out[128], const struct dialect *d, enum coord_space space, double x, double y, int w,
                int h)
{
    static const char *const forms[] = {"{\"x\": %s, \"y\": %s}", "Click(%s, %s)",
                                        "Action: click(start_box='(%s,%s)')"};
    int form = syntax_is(d, "holo1") ? 1 : syntax_is(d, "uitars") ? 2 : 0, px = (int)x, py = (int)y;
    char a[32], b[32];
    const char *number = space == COORD_NORM1 ? "%.4f" : "%.0f";
    double top = space == COORD_NORM1000 ? 1000 : 1;
    snprintf(a, sizeof a, number, space == COORD_PIXEL ? x : x / w * top);
    snprintf(b, sizeof b, number, space == COORD_PIXEL ? y : y / h * top);
    if (syntax_is(d, "pocket"))
        snprintf(out, 128, "only step<click>Save<at><%d><.%d><%d><.%d>", px / 16, px % 16 / 2, py / 16,
                 py % 16 / 2);
    else
        snprintf(out, 128, forms[form], a, b);
}

/* Returns a target; all models get the same screens. */
static const struct calibration_target *target_of(int i)
{
    static struct calibration_target targets[24];
    if (!targets[i].label[0]) {
        struct calibration_screen s;
        assert_int_equal(calibration_draw(&s, W, H, 1, (uint64_t)i, NULL), 0);
        targets[i] = s.targets[0];
        image_free(&s.image);
    }
    return &targets[i];
}

/* Calibrates a model that uses one dialect and one space, and gives a nonsense reply each `babble`th time. */
static struct verdict made_up(struct candidate *c, int *n, const char *speaks, enum coord_space space,
                              int babble)
{
    *n = 0;
    for (const char *const *name = dialect_names(); *name; name++) {
        struct dialect *d = dialect_load(*name, NULL);
        if (*d->ground) {
            struct candidate *k = &c[(*n)++];
            *k = (struct candidate){
                .dialect = (char *)(uintptr_t)*name, .own = calibration_space(d->coords), .w = W, .h = H};
            for (int i = 0; i < 24; i++) {
                struct place at;
                char reply[128] = "I see a page";
                const double *b = target_of(i)->box;
                if (!strcmp(*name, speaks) && i % babble)
                    say(reply, d, space, (b[0] + b[2]) / 2, (b[1] + b[3]) / 2, k->w, k->h);
                bool read = !dialect_read_place(d, reply, strlen(reply), &at, NULL);
                candidate_count(k, QUESTION_PLACE, target_of(i), read ? &at.n : NULL, false);
            }
        }
        dialect_free(d);
    }
    return calibration_verdict(c, *n);
}

static void t_verdict(void **state)
{
    static struct candidate c[16];
    int n;
    for (const char *const *name = dialect_names(); *name; name++)
        for (int space = 0; space < CALIBRATE_SPACES; space++) {
            struct dialect *d = dialect_load(*name, NULL);
            bool possible = *d->ground && (!syntax_is(d, "pocket") || space == COORD_PIXEL);
            dialect_free(d);
            if (!possible)
                continue;
            struct verdict v = made_up(c, &n, *name, (enum coord_space)space, 5);
            if (!v.candidate || strcmp(v.candidate->dialect, *name) != 0 ||
                v.space != (enum coord_space)space || !v.sure)
                fail_msg("%s in %s: %s in %s, %d of %d", *name, dialect_space_name((enum coord_space)space),
                         v.candidate ? v.candidate->dialect : "nothing", dialect_space_name(v.space), v.hits,
                         v.asked);
            struct line x = line_fit(v.candidate->truth[0], v.candidate->said[0], v.candidate->n, 1),
                        want = line_of_space((enum coord_space)space, W);
            assert_true(fabs(x.a / want.a - 1) < 0.02);
        }
    struct verdict v = made_up(c, &n, "nobody", COORD_PIXEL, 5);
    assert_true(!v.candidate && !v.sure);
    for (int i = 0; i < n; i++)
        assert_true(candidate_hopeless(&c[i], QUESTION_PLACE));
    v = made_up(c, &n, "holo3", COORD_NORM1000, 2); /* correct half of the time: not confident */
    assert_true(v.candidate && !v.sure);
}

static void t_equals(void **state)
{
    struct candidate c[2] = {{.dialect = (char *)(uintptr_t) "a", .own = COORD_PIXEL},
                             {.dialect = (char *)(uintptr_t) "b"}};
    for (int i = 0; i < 2; i++) {
        c[i].counts[QUESTION_PLACE].asked = 10;
        for (int k = 0; k < CALIBRATE_SPACES; k++)
            c[i].counts[QUESTION_PLACE].hits[k] = 7;
    }
    struct verdict v = calibration_verdict(c, 2);
    assert_ptr_equal(v.candidate, &c[0]);
    assert_int_equal(v.space, COORD_PIXEL);
    c[1].counts[QUESTION_STEP].asked = 10;
    c[1].counts[QUESTION_STEP].hits[COORD_NORM1] = 8;
    v = calibration_verdict(c, 2);
    assert_ptr_equal(v.candidate, &c[1]);
    assert_int_equal(v.space, COORD_NORM1);
    assert_int_equal(v.hits, 15);
    assert_int_equal(v.asked, 20);

    /* a reply constrained by the grammar counts in the dialect's own space, without a second question */
    struct candidate forced = {.own = COORD_NORM1000, .w = 1000, .h = 1000};
    const struct calibration_target t = {"Save", {0, 0, 1000, 1000}};
    const struct dialect_numbers n = {0.5, 0.5, true, true};
    candidate_count(&forced, QUESTION_PLACE, &t, NULL, false);
    candidate_count(&forced, QUESTION_PLACE, &t, &n, true);
    assert_int_equal(forced.counts[QUESTION_PLACE].asked, 1);
    assert_int_equal(forced.counts[QUESTION_PLACE].read, 0);
    assert_int_equal(forced.counts[QUESTION_PLACE].hits[COORD_NORM1000], 1);
    assert_int_equal(forced.counts[QUESTION_PLACE].hits[COORD_NORM1], 0);
    assert_int_equal(forced.n, 0);
}

/* ---- saving ---------------------------------------------------------------------------------- */

static struct xvfb folder(void)
{
    struct xvfb x;
    xvfb_folder(&x);
    return x;
}

static void put(const struct xvfb *x, const char *name, const char *text)
{
    char *path = xvfb_place(x, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    free(path);
}

static json_t *got(const struct xvfb *x, const char *name)
{
    char *path = xvfb_place(x, name);
    json_t *v = json_load_file(path, 0, NULL);
    free(path);
    return v;
}

static int keep(const struct xvfb *x, const char *dialect, enum coord_space own, enum coord_space space,
                struct err *e)
{
    const struct candidate c = {.dialect = (char *)(uintptr_t)dialect, .own = own};
    const struct verdict v = {.candidate = &c, .space = space, .sure = true};
    return calibration_save(x->dir, &v, e);
}

/* Checks the dialect that later runs read from the directory. */
static void asks_for(const struct xvfb *x, const char *name, enum coord_space space, const char *kept_key)
{
    struct err e = ERR_INIT;
    char *found = dialect_for_model(x->dir, &e);
    struct dialect *d = found ? dialect_load(found, &e) : NULL;
    if (!d)
        fail_msg("%s", e.text);
    assert_string_equal(d->name, name);
    assert_int_equal(d->coords, space);
    json_t *v = got(x, "holorun.json");
    if (kept_key)
        assert_non_null(json_object_get(v, kept_key));
    json_decref(v);
    dialect_free(d);
    free(found);
}

static void t_keep(void **state)
{
    struct xvfb x = folder();
    struct err e = ERR_INIT;
    assert_int_equal(keep(&x, "holo1", COORD_NORM1000, COORD_NORM1000, &e), 0);
    asks_for(&x, "holo1", COORD_NORM1000, NULL);
    put(&x, "holorun.json", "{\"dialect\": \"holo1\", \"note\": \"mine\"}");
    assert_int_equal(keep(&x, "holo3", COORD_NORM1000, COORD_PIXEL, &e), 0);
    asks_for(&x, "holo3-px", COORD_PIXEL, "note");
    char *own = xvfb_place(&x, "holorun-dialect.json");
    assert_int_equal(keep(&x, own, COORD_PIXEL, COORD_PIXEL, &e), 0); /* as a second calibration does */
    asks_for(&x, "holo3-px", COORD_PIXEL, "note");
    assert_int_equal(keep(&x, own, COORD_PIXEL, COORD_NORM1, &e), -1);
    assert_non_null(strstr(e.text, "norm1"));
    assert_int_equal(keep(&x, "/elsewhere/my.json", COORD_PIXEL, COORD_PIXEL, &e), -1);
    assert_non_null(strstr(e.text, "copy it there"));
    asks_for(&x, "holo3-px", COORD_PIXEL, "note");
    put(&x, "holorun.json", "[broken");
    assert_int_equal(keep(&x, "holo3", COORD_NORM1000, COORD_NORM1000, &e), -1);
    assert_non_null(strstr(e.text, "was not changed"));
    char *text;
    size_t len;
    char *path = xvfb_place(&x, "holorun.json");
    assert_int_equal(file_read(path, 100, &text, &len, NULL), 0);
    assert_string_equal(text, "[broken");
    free(text);
    free(path);
    free(own);
}

/* Compares a built-in dialect's file with its variant, except for name, space, and the location of the
 * prompt. */
static void same_but_for_space(const char *name, const char *text)
{
    static const char *const differing[] = {"name", "coords", "system", "system_file"};
    char path[64];
    snprintf(path, sizeof path, "prompts/%s.json", name);
    json_t *was = json_load_file(path, 0, NULL), *is = json_loads(text, 0, NULL);
    assert_true(json_object_size(was) > 4);
    for (size_t i = 0; i < sizeof differing / sizeof *differing; i++) {
        json_object_del(was, differing[i]);
        json_object_del(is, differing[i]);
    }
    if (!json_equal(was, is))
        fail_msg("%s: %s", name, text);
    json_decref(was);
    json_decref(is);
}

static void t_in_space(void **state)
{
    for (const char *const *name = dialect_names(); *name; name++) {
        struct dialect *d = dialect_load(*name, NULL);
        for (int space = 0; space < CALIBRATE_SPACES; space++) {
            struct err e = ERR_INIT;
            char *text = dialect_in_space(*name, (enum coord_space)space, &e);
            assert_non_null(text);
            struct dialect *other = dialect_parse(text, strlen(text), "copy", &e);
            if (!other)
                fail_msg("%s: %s", *name, e.text);
            assert_int_equal(other->coords, space);
            assert_string_equal(other->system, d->system);
            assert_string_equal(other->tool_list, d->tool_list);
            same_but_for_space(*name, text);
            dialect_free(other);
            free(text);
        }
        dialect_free(d);
    }
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Copies the embedded model without the file that names its dialect. */
static void copy_model(const struct xvfb *x)
{
    char cwd[1024];
    assert_non_null(getcwd(cwd, sizeof cwd));
    char *command =
        xasprintf("for f in '%s'/assets/pocket/model/*; do ln -s \"$f\" '%s'/; done; rm '%s/holorun.json'",
                  cwd, x->dir, x->dir);
    assert_int_equal(system(command), 0);
    free(command);
}

static void t_embedded(void **state)
{
    struct xvfb x = folder();
    OUTCOME(o);
    copy_model(&x);
    program_run(
        &x, &o,
        WORDS("calibrate", "--model", x.dir, "--dialect", "pocket-wide", "-n", "12", "--json", "--write"));
    if (o.code)
        fail_msg("%d: %s", o.code, o.err);
    json_t *v = json_loads(o.out, 0, NULL), *verdict = json_object_get(v, "verdict");
    check_note("%lld of %lld answers hit", (long long)json_integer_value(json_object_get(verdict, "hits")),
               (long long)json_integer_value(json_object_get(verdict, "asked")));
    assert_int_equal(json_integer_value(json_object_get(verdict, "asked")), 24);
    assert_true(json_integer_value(json_object_get(verdict, "hits")) >= 22);
    assert_string_equal(json_string_value(json_object_get(verdict, "space")), "px");
    const json_t *line = json_object_get(json_array_get(json_object_get(v, "dialects"), 0), "x");
    assert_true(fabs(json_number_value(json_object_get(line, "a")) - 1) < 0.03);
    asks_for(&x, "pocket-wide", COORD_NATIVE, NULL);
    json_decref(v);
}

static void t_unsure(void **state)
{
    struct xvfb x = folder();
    OUTCOME(o);
    copy_model(&x);
    program_run(&x, &o,
                WORDS("calibrate", "--model", x.dir, "--dialect", "holo15", "-n", "8", "--no-steps",
                      "--write", "--quiet"));
    ONE_LINE(&o, ERR_UNSURE, "nothing was written");
    assert_non_null(strstr(o.out, "holo15"));
    json_t *v = got(&x, "holorun.json");
    assert_null(v);
    program_run(&x, &o, WORDS("calibrate", "--dialect", "openai-computer"));
    ONE_LINE(&o, ERR_USAGE, "openai-computer");
    static const char *const sizes[] = {"640", "640x", "100x480", "640x480x2", "9000x480", "axb"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        program_run(&x, &o, WORDS("calibrate", "--size", sizes[i]));
        assert_int_equal(o.code, ERR_USAGE);
        assert_non_null(strstr(o.err, sizes[i]));
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("screens have buttons with readable labels that do not overlap, the same for the same seed",
          t_screens),
    CLAIM("a line is found although every fourth point is an outlier", t_lines),
    CLAIM("dialect and space of simulated models are found, in every combination", t_verdict),
    CLAIM("among equal candidates a dialect's own space wins, then the first", t_equals),
    CLAIM("a verdict is saved where later runs find it, and other settings do not change", t_keep),
    CLAIM("a dialect in another space is otherwise unchanged", t_in_space),
    CLAIM("the embedded model's dialect and space are found and saved", t_embedded),
    CLAIM("a hit rate below one half gives no verdict, and invalid options are refused", t_unsure),
};

CHECK_MAIN()
