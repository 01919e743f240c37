/* calibrate.c - `holorun calibrate`: finds the dialect and the coordinate space of a model.
 *
 * eval/calibrate.h does the measuring; this file selects the dialects and prints the counts before the
 * verdict. */
#include "cmd/commands.h"

#include "base/bar.h"
#include "base/file.h"
#include "eval/calibrate.h"
#include "remote/vqa_remote.h"
#include "screen/screen.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CANDIDATES = 16 };

struct settings {
    MODEL_SETTINGS;
    ENDPOINT_SETTINGS;
    const char *dialect, *size;
    int targets;
    uint64_t seed;
    bool json, write, steps, quiet;
};

static const struct option_spec options[] = {
    MODEL_OPTIONS(struct settings),
    ENDPOINT_OPTIONS(struct settings),
    {"dialect", 0, OPTION_TEXT, offsetof(struct settings, dialect), "NAME", 0, 4096, NULL,
     "measure only this dialect; default: all dialects that can ask for a position", NULL},
    {"targets", 'n', OPTION_INT, offsetof(struct settings, targets), "N", CALIBRATE_GIVE_UP,
     CALIBRATE_MAX_TARGETS, "24", "buttons to ask for in each dialect", NULL},
    {"size", 0, OPTION_TEXT, offsetof(struct settings, size), "WxH", 0, 32, NULL,
     "size of the screens; default: that of the dialect (640x480 if it says native), else 1280x800", NULL},
    {"steps", 0, OPTION_FLAG, offsetof(struct settings, steps), NULL, 0, 0, "yes",
     "also ask for a step as in a run, with the whole system prompt", NULL},
    {"seed", 0, OPTION_SEED, offsetof(struct settings, seed), "N", 0, 0, "1", "random seed of the buttons",
     NULL},
    {"write", 'w', OPTION_FLAG, offsetof(struct settings, write),
     .help = "save the result in the model's directory (holorun.json), where all commands read it, or in the "
             "profile of its server"},
    JSON_OPTION(struct settings),
    {"quiet", 'q', OPTION_FLAG, offsetof(struct settings, quiet), .help = "no progress bar"},
    {0},
};

const struct command calibrate_command = {
    "calibrate",
    "",
    "find the dialect and the coordinate space of a model",
    "Draws screens with labelled buttons, asks the model for each of them in every dialect, and counts in "
    "which coordinate space its answers hit the buttons: norm1000 (0 to 1000), norm1 (0 to 1) or px "
    "(pixels). No display is needed.\n\n"
    "A dialect is abandoned if most of its first 8 answers are unreadable and almost none hits. A line "
    "fitted to the answers helps to interpret the numbers when no coordinate space fits. Exit code 5: no "
    "dialect hits more than half of the buttons, and nothing is written.",
    "holorun calibrate --model ~/models/Holotron-12B\n"
    "holorun calibrate --model ~/models/Holotron-12B --dialect holo3 --targets 50 --write\n",
    options,
    cmd_calibrate};

struct calibration {
    const struct settings *s;
    struct vqa l;
    struct candidate *candidates;
    int n;
    struct bar bar;
    const char *at; /* dialect being measured */
    bool told;      /* the result is on stdout */
    int before;     /* number of answers of earlier candidates */
};

static void add_candidate(struct calibration *k, const char *name, bool own)
{
    struct dialect *d = dialect_load(name, NULL);
    if (d && *d->ground && k->n < MAX_CANDIDATES) {
        struct candidate *c = &k->candidates[k->n++];
        c->dialect = xstrdup(name);
        c->own = calibration_space(d->coords);
        c->own_dialect = own;
    }
    dialect_free(d);
}

/* Selects the candidates. The model's own dialect comes first, so that it wins a tie. Returns -1 with e if
 * none can ask for a position. */
static int choose_candidates(struct calibration *k, struct err *e)
{
    struct err ignored = ERR_INIT;
    const struct endpoint *far = vqa_endpoint(&k->l);
    autofree char *own = far ? xstrdup(endpoint_dialect(far)) : dialect_for_model(k->l.dir, &ignored);
    if (k->s->dialect) {
        add_candidate(k, k->s->dialect, own && !strcmp(own, k->s->dialect));
    } else {
        if (own)
            add_candidate(k, own, true);
        for (const char *const *name = dialect_names(); *name; name++)
            if (!own || strcmp(*name, own) != 0)
                add_candidate(k, *name, false);
    }
    return k->n ? 0
                : err_set(e, ERR_USAGE, "dialect '%s' cannot ask for a position (it has no key 'ground')",
                          k->s->dialect);
}

static void on_progress(void *arg, int answers)
{
    struct calibration *k = arg;
    bar_show(&k->bar, k->before + answers, k->at);
}

static int ask(struct calibration *k, int w, int h, struct err *e)
{
    int each = k->s->targets * (k->s->steps ? 2 : 1), rc = 0;
    struct calibration_run a = {&k->l, k->s->targets, w, h, k->s->steps, k->s->seed, on_progress, k};
    bar_begin(&k->bar, k->n * each, 0, k->s->quiet);
    for (int i = 0; i < k->n && rc == 0; i++) {
        k->at = k->candidates[i].dialect;
        rc = calibration_ask(&a, &k->candidates[i], e);
        k->before += each;
    }
    bar_end(&k->bar);
    return rc;
}

static void print_counts(const struct answer_counts *h, enum coord_space space)
{
    if (h->asked)
        printf("  %3d of %-3d", h->hits[space], h->asked);
    else
        printf("  %10s", "-");
}

/* Returns the line through the answers on one axis; *own: the exact line of the dialect's space. */
static struct line fit_axis(const struct candidate *c, int axis, struct line *own)
{
    int size = axis ? c->h : c->w;
    *own = line_of_space(c->own, size);
    return line_fit(c->truth[axis], c->said[axis], c->n, 0.02 * own->a * size);
}

static void print_lines(const struct candidate *c)
{
    static const char *const axes[] = {"x", "y"};
    for (int axis = 0; axis < 2; axis++) {
        struct line own, l = fit_axis(c, axis, &own);
        if (l.n >= 3)
            printf("  %s: answered %s = %.5g * true %+.4g, %d of %d answers within 2 %%; %s is %.5g * true "
                   "%+.4g\n",
                   c->dialect, axes[axis], l.a, l.b, l.near, l.n, dialect_space_name(c->own), own.a, own.b);
    }
}

static void print_table(const struct calibration *k)
{
    printf("%-14s %-10s %11s %11s   %s\n", "dialect", "space", "places", "steps",
           "format kept without grammar");
    for (int i = 0; i < k->n; i++) {
        const struct candidate *c = &k->candidates[i];
        const struct answer_counts *place = &c->counts[QUESTION_PLACE];
        for (int space = 0; space < CALIBRATE_SPACES; space++) {
            if (!(space == (int)c->own || candidate_hits(c, (enum coord_space)space) > 0))
                continue;
            printf("%-14s %-10s", c->dialect, dialect_space_name((enum coord_space)space));
            print_counts(&c->counts[QUESTION_PLACE], (enum coord_space)space);
            print_counts(&c->counts[QUESTION_STEP], (enum coord_space)space);
            printf("   %d of %d\n", place->read, place->asked);
        }
        if (*c->error)
            printf("  %s: %s\n", c->dialect, c->error);
        print_lines(c);
    }
}

static json_t *line_json(const struct candidate *c, int axis)
{
    struct line own, l = fit_axis(c, axis, &own);
    return json_pack("{s:f, s:f, s:i, s:i}", "a", l.a, "b", l.b, "near", l.near, "answers", l.n);
}

static json_t *candidate_json(const struct candidate *c)
{
    json_t *spaces = json_object();
    for (int i = 0; i < CALIBRATE_SPACES; i++)
        json_object_set_new(spaces, dialect_space_name((enum coord_space)i),
                            json_pack("{s:i, s:i}", "places", c->counts[QUESTION_PLACE].hits[i], "steps",
                                      c->counts[QUESTION_STEP].hits[i]));
    json_t *v =
        json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "dialect", c->dialect, "own_space",
                  dialect_space_name(c->own), "width", c->w, "height", c->h, "places",
                  c->counts[QUESTION_PLACE].asked, "places_in_form", c->counts[QUESTION_PLACE].read, "steps",
                  c->counts[QUESTION_STEP].asked, "hits", spaces, "x", line_json(c, 0), "y", line_json(c, 1));
    if (*c->error)
        json_object_set_new(v, "trouble", json_string(c->error));
    return v;
}

static void print_json(const struct calibration *k, const struct verdict *v)
{
    json_t *list = json_array(), *verdict = json_null();
    for (int i = 0; i < k->n; i++)
        json_array_append_new(list, candidate_json(&k->candidates[i]));
    if (v->candidate)
        verdict = json_pack("{s:s, s:s, s:i, s:i, s:[f, f], s:b}", "dialect", v->candidate->dialect, "space",
                            dialect_space_name(v->space), "hits", v->hits, "asked", v->asked, "interval",
                            v->low, v->high, "sure", v->sure);
    json_t *out = json_pack("{s:s, s:o, s:o}", "model", k->l.dir, "dialects", list, "verdict", verdict);
    options_print_json(out, JSON_COMPACT);
}

static void print_verdict(const struct verdict *v)
{
    if (!v->candidate) {
        puts("\nno answer hits its button in any coordinate space; the fitted lines above may explain the "
             "numbers");
        return;
    }
    printf("\n%s: dialect %s, coordinates %s: %d of %d answers hit, 95 %% interval %.1f to %.1f %%\n",
           v->sure ? "verdict" : "no verdict; best", v->candidate->dialect, dialect_space_name(v->space),
           v->hits, v->asked, 100 * v->low, 100 * v->high);
    if (v->space != v->candidate->own)
        printf("the dialect specifies %s: --write saves a copy that specifies %s\n",
               dialect_space_name(v->candidate->own), dialect_space_name(v->space));
    else if (v->candidate->own_dialect)
        puts("the model's directory already specifies this");
}

static int read_size(const char *text, int *w, int *h, struct err *e)
{
    int end = 0;
    *w = *h = 0;
    if (!text)
        return 0;
    if (sscanf(text, "%5dx%5d%n", w, h, &end) != 2 || text[end] || *w < CALIBRATE_MIN_W ||
        *h < CALIBRATE_MIN_H || *w > 8192 || *h > 8192)
        return err_set(e, ERR_USAGE, "--size must be WxH from %dx%d to 8192x8192, not '%s'", CALIBRATE_MIN_W,
                       CALIBRATE_MIN_H, text);
    return 0;
}

/* Stores the verdict about a model behind an endpoint in the profile of its server.  Returns -1 with e. */
static int keep_far(const struct endpoint *p, const struct verdict *v, struct err *e)
{
    autofree char *path = profile_kept(p->base, p->model, e), *file = NULL, *text = NULL;
    int rc = path ? 0 : -1;
    if (rc == 0 && v->space != v->candidate->own) {
        file = xasprintf("%.*s-dialect.json", (int)(strlen(path) - 5), path);
        text = dialect_in_space(v->candidate->dialect, v->space, e);
        rc = text ? file_write(file, text, strlen(text), e) : -1;
    }
    json_auto_t *found = json_pack("{s:s}", "dialect", file ? file : v->candidate->dialect);
    rc = rc ? rc : profile_keep(path, p->base, p->model, found, e);
    if (rc == 0)
        fprintf(stderr, "holorun: saved in '%s'\n", path);
    return rc;
}

static int calibrate(struct calibration *k, int w, int h, struct err *e)
{
    const struct settings *s = k->s;
    struct engine_options model = MODEL_ENGINE(*s);
    const struct endpoint_options at = ENDPOINT_AT(*s);
    const char *first = s->dialect ? s->dialect : "holo3";
    if (!ENDPOINT_GIVEN(*s) && vqa_check_vision(&model, e))
        return -1;
    if ((ENDPOINT_GIVEN(*s) ? vqa_open_remote(&k->l, &at, first, 1, e)
                            : vqa_open(&k->l, first, &model, 1, e)) ||
        choose_candidates(k, e) || ask(k, w, h, e))
        return -1;
    struct verdict v = calibration_verdict(k->candidates, k->n);
    k->told = true;
    if (s->json) {
        print_json(k, &v);
    } else {
        print_table(k);
        print_verdict(&v);
    }
    if (!v.sure)
        return err_set(e, ERR_UNSURE, "no dialect hits more than half of the buttons%s",
                       s->write ? "; nothing was written" : "");
    if (!s->write)
        return 0;
    if (vqa_endpoint(&k->l))
        return keep_far(vqa_endpoint(&k->l), &v, e);
    if (calibration_save(k->l.dir, &v, e))
        return -1;
    fprintf(stderr, "holorun: saved in '%s/holorun.json'\n", k->l.dir);
    return 0;
}

int cmd_calibrate(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int w = 0, h = 0;
    int n = options_parse(&calibrate_command, &s, argc, argv, &e);
    if (n == 0)
        n = read_size(s.size, &w, &h, &e);
    if (n < 0)
        return options_refuse(&calibrate_command, &e);
    screen_install_signals();
    struct calibration k = {.s = &s, .candidates = xcalloc(MAX_CANDIDATES, sizeof *k.candidates)};
    int rc = calibrate(&k, w, h, &e);
    for (int i = 0; i < k.n; i++)
        free(k.candidates[i].dialect);
    free(k.candidates);
    vqa_close(&k.l);
    return options_end(rc, k.told, &e);
}
