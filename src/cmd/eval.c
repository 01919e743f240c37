/* eval.c - `holorun eval FILE.jsonl`: scores grounding, the share of targets that the model locates.
 *
 * Asks one greedy question per item, as `ground` does; the answer is mapped exactly, without rounding to
 * pixels, to the coordinates of the item's box.  Each answer is written to the results file before the next
 * question is asked.  The file format and the scoring are in eval/eval.h. */
#include "actions/syntax.h"
#include "cmd/commands.h"

#include "base/bar.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/image.h"
#include "eval/eval.h"
#include "pocket/assist.h"
#include "remote/vqa_remote.h"
#include "screen/screen.h"
#include "session/session.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMED = 20, MAX_TOKENS = 256 };

struct settings {
    MODEL_SETTINGS;
    ENDPOINT_SETTINGS;
    const char *dialect, *results, *only;
    int limit;
    bool json, resume, free, quiet;
};

static const struct option_spec options[] = {
    MODEL_OPTIONS(struct settings),
    ENDPOINT_OPTIONS(struct settings),
    DIALECT_OPTION(struct settings),
    {"limit", 'n', OPTION_INT, offsetof(struct settings, limit), "N", 0, EVAL_MAX_ITEMS, "0",
     "only the first N items, 0 for all", NULL},
    {"only", 0, OPTION_TEXT, offsetof(struct settings, only), "GROUP", 0, 512, NULL,
     "only items with this tag: TAG=VALUE, or a value of any tag", NULL},
    {"results", 'o', OPTION_TEXT, offsetof(struct settings, results), "FILE", 0, 4096, NULL,
     "results file; default: NAME-TIME.jsonl in the eval folder of the user's state folder", NULL},
    {"resume", 0, OPTION_FLAG, offsetof(struct settings, resume),
     .help = "continue an interrupted evaluation: the file of --results, or the newest of this set"},
    {"free", 0, OPTION_FLAG, offsetof(struct settings, free),
     .help =
         "generate without a grammar: shows how often the model follows the format, and allows it to answer "
         "that the target is absent"},
    JSON_OPTION(struct settings),
    {"quiet", 'q', OPTION_FLAG, offsetof(struct settings, quiet), .help = "no progress bar"},
    {0},
};

const struct command eval_command = {
    "eval",
    "FILE.jsonl",
    "score how often the model locates a target",
    "Each line of the file is a JSON object with image (a PNG, relative to the file), instruction, and box "
    "[x1, y1, x2, y2] or poly [x1, y1, x2, y2, ...] in pixels, or null if the target is absent; also id, w "
    "and h (the size that the box refers to, if not the image's), and tags, an object of texts: each value "
    "of each tag is a group with its own score. convert.sh, in assets/eval or, installed, in "
    "share/holorun/eval, converts public data sets; reliability.py in the same folder shows from the "
    "results how often answers of each confidence were correct.\n\n"
    "A point on the edge of a target counts as inside. An unreadable reply counts as wrong. Unreadable "
    "images are listed and not counted; the exit code is then 3.",
    "holorun eval screenspot.jsonl\nholorun eval screenspot.jsonl --only platform=web --limit 100\n"
    "holorun eval screenspot.jsonl --resume --json\n",
    options,
    cmd_eval};

struct evaluation {
    const struct settings *s;
    struct vqa l;
    struct assist *assist; /* NULL: the model has none */
    struct eval_set set;
    struct eval_results results;
    struct image image; /* image of the current item, kept for the next one */
    char *image_path;
    int done, hits, shown, broken;
    bool told; /* the totals were printed */
};

/* ---- selection of items -------------------------------------------------------------------------------- */

static bool is_wanted(const struct eval_item *item, const char *only)
{
    const char *tag, *equals = only ? strchr(only, '=') : NULL;
    json_t *value;
    if (!only)
        return true;
    json_object_foreach(json_object_get(item->fields, "tags"), tag, value)
    {
        const char *v = json_string_value(value);
        bool whole = equals && strlen(tag) == (size_t)(equals - only) &&
                     !strncmp(tag, only, (size_t)(equals - only)) && !strcmp(v, equals + 1);
        if (whole || !strcmp(v, only))
            return true;
    }
    return false;
}

/* Removes items that --only and --limit exclude.  Returns -1 with e if none is left. */
static int select_items(struct eval_set *set, const struct settings *s, struct err *e)
{
    int n = 0;
    for (int i = 0; i < set->n; i++) {
        struct eval_item *item = &set->items[i];
        if (is_wanted(item, s->only) && (!s->limit || n < s->limit)) {
            struct eval_item kept = *item;
            set->items[n++] = kept;
            continue;
        }
        json_decref(item->fields);
        free(item->target.at);
    }
    set->n = n;
    return n ? 0 : err_set(e, ERR_USAGE, "no item has the tag '%s'", s->only);
}

/* Warns about unknown fields, which are only copied to the results. */
static void tell_unknown(const struct eval_set *set)
{
    autobuf names = buf_of(1 << 16);
    const char *key;
    json_t *v;
    json_object_foreach(set->unknown, key, v) buf_printf(&names, "%s%s", names.len ? ", " : "", key);
    if (names.len)
        warn("unknown fields are only copied to the results: %s", names.data);
}

/* ---- one item ----------------------------------------------------------------------------------- */

static int show_image(struct evaluation *v, const struct eval_item *item, struct err *e)
{
    char *path = eval_image_path(&v->set, item);
    if (v->image_path && !strcmp(path, v->image_path)) {
        free(path);
        return 0;
    }
    image_free(&v->image);
    free(v->image_path);
    v->image_path = NULL;
    if (image_read_png(&v->image, path, e)) {
        free(path);
        return -1;
    }
    v->image_path = path;
    return 0;
}

/* Corrects an answer with the model's assist, as `ground` does.  Returns -1 with e. */
static int put_right(struct evaluation *v, const struct eval_item *item, struct eval_answer *a, struct err *e)
{
    const struct target *t = &item->target;
    int w = v->image.w, h = v->image.h;
    struct grounding f = {!a->placed, t->w > 0 ? a->x * w / t->w : a->x, t->h > 0 ? a->y * h / t->h : a->y,
                          a->p};
    if (a->wrong_format || !ASSIST(v->assist, find))
        return 0;
    if (v->assist->ops->find(v->assist, &v->image, item->instruction, &f, e))
        return -1;
    a->p = f.p;
    if (f.missing)
        eval_missing(t, a);
    else
        eval_place(t, f.x, f.y, w, h, a);
    return 0;
}

/* Asks about one item.  Returns -1 with e only if the whole evaluation must end; other failures go into
 * a->error. */
static int ask_item(struct evaluation *v, const struct eval_item *item, struct eval_answer *a, struct err *e)
{
    struct sampling greedy = {.temperature = 0, .top_p = 1, .max_tokens = MAX_TOKENS};
    struct err why = ERR_INIT;
    autobuf question = buf_of(1 << 20);
    double confidence;
    *a = (struct eval_answer){0};
    int64_t start = clock_ns();
    int rc = show_image(v, item, &why);
    const char *const slots[] = {"target", item->instruction, NULL};
    if (rc == 0)
        rc = dialect_fill(v->l.dialect->ground, slots, &question, &why);
    if (rc == 0)
        rc = vqa_ask(&v->l, question.data, &v->image, 1, GOAL_GROUND, &greedy, &why);
    a->p = vqa_confidence(&v->l, &confidence) ? confidence : -1;
    if (rc == 0) {
        eval_score(&item->target, v->l.dialect, v->l.reply.text.data, v->image.w, v->image.h, a);
        rc = put_right(v, item, a, &why);
    }
    a->ms = clock_ms_since(start);
    a->tokens = v->l.reply.n;
    if (rc && why.kind == ERR_STOPPED)
        return err_set(e, ERR_STOPPED, "stopped; --resume continues '%s'", v->results.path);
    if (rc)
        snprintf(a->error, sizeof a->error, "%s", why.text);
    return 0;
}

/* ---- all items ---------------------------------------------------------------------------------- */

static int ask_all(struct evaluation *v, struct err *e)
{
    struct bar bar;
    struct eval_answer a;
    int rc = 0;
    for (int i = 0; i < v->set.n; i++) {
        v->done += v->results.outcomes[i].done;
        v->hits += v->results.outcomes[i].correct;
        v->broken += v->results.outcomes[i].broken;
    }
    v->shown = v->done - v->broken;
    bar_begin(&bar, v->set.n, v->done, v->s->quiet);
    for (int i = 0; i < v->set.n && rc == 0; i++) {
        const struct eval_item *item = &v->set.items[i];
        if (v->results.outcomes[i].done)
            continue;
        if ((rc = ask_item(v, item, &a, e)) || (rc = results_add(&v->results, &v->set, i, &a, e)))
            break;
        v->done++;
        v->hits += a.correct;
        if (*a.error && v->broken++ < NAMED) {
            bar_end(&bar);
            warn("item '%s' is not counted: %s", item->id, a.error);
        }
        v->shown += !*a.error;
        char note[64];
        snprintf(note, sizeof note, "hits %.1f %%", v->shown ? 100.0 * v->hits / v->shown : 0);
        bar_show(&bar, v->done, note);
    }
    bar_end(&bar);
    return rc;
}

/* Returns the modification time of the newest weight file: a model that was trained further counts as another
 * model. */
static json_t *weights_time(const char *dir)
{
    long long newest = 0;
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        size_t n = strlen(entry->d_name);
        struct stat st;
        if (n > 12 && !strcmp(entry->d_name + n - 12, ".safetensors") &&
            !fstatat(dirfd(d), entry->d_name, &st, 0) && st.st_mtime > newest)
            newest = st.st_mtime;
    }
    if (d)
        closedir(d);
    return json_integer(newest);
}

static json_t *head_of(const struct evaluation *v)
{
    char model[512];
    const struct endpoint *far = vqa_endpoint(&v->l);
    if (far)
        snprintf(model, sizeof model, "%s at %s", far->model, far->base);
    else
        snprintf(model, sizeof model, "%016llx", (unsigned long long)engine_hash(v->l.engine));
    return json_pack("{s:i, s:s, s:s, s:o, s:s, s:s, s:b}", "holorun_eval", 1, "set", v->set.sha256, "model",
                     model, "weights_time", far ? json_null() : weights_time(v->l.dir), "dialect",
                     v->l.dialect->name, "dialect_sha256", v->l.dialect->sha256, "free", v->s->free);
}

/* Returns whether name is NAME-20261121T054500Z.jsonl, the results of a set NAME.jsonl (stem NAME). */
static bool is_results_of(const char *name, const char *stem)
{
    size_t n = strlen(stem);
    return strlen(name) == n + 17 + 6 && !strncmp(name, stem, n) && name[n] == '-' &&
           strspn(name + n + 1, "0123456789") == 8 && name[n + 9] == 'T' && !strcmp(name + n + 16, "Z.jsonl");
}

/* Returns the path of the newest results of this set; the caller frees it.  NULL: there are none. */
static char *newest_results(const char *dir, const char *stem)
{
    char *newest = NULL;
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (is_results_of(entry->d_name, stem) && (!newest || strcmp(entry->d_name, newest) > 0)) {
            free(newest);
            newest = xstrdup(entry->d_name);
        }
    if (d)
        closedir(d);
    char *path = newest ? xasprintf("%s/%s", dir, newest) : NULL;
    free(newest);
    return path;
}

/* Returns the path of the results: that of --results, else in the user's state directory the newest one of
 * this set to resume, or a new one.  The caller frees it.  NULL with e. */
static char *results_path(const struct settings *s, const char *set, struct err *e)
{
    if (s->results)
        return xstrdup(s->results);
    const char *base = strrchr(set, '/');
    base = base ? base + 1 : set;
    size_t n = strlen(base);
    char *state = file_place(PLACE_STATE, e), *dir = state ? xasprintf("%s/eval", state) : NULL, *path = NULL;
    char *stem = xasprintf("%.*s", (int)(n > 6 && !strcmp(base + n - 6, ".jsonl") ? n - 6 : n), base),
         now[20];
    clock_utc(now);
    if (dir && dir_make(dir, e) == 0) {
        path = s->resume ? newest_results(dir, stem) : xasprintf("%s/%s-%s.jsonl", dir, stem, now);
        if (!path)
            err_set(e, ERR_USAGE, "no results of '%s' to resume in '%s'", stem, dir);
    }
    free(stem);
    free(dir);
    free(state);
    return path;
}

static void print_totals(struct evaluation *v, const struct err *e)
{
    struct tally t;
    tally_make(&t, &v->set, &v->results);
    if (v->s->json) {
        json_t *out = tally_json(&t);
        json_object_set_new(out, "model", json_string(v->l.dir));
        json_object_set_new(out, "dialect", json_string(v->l.dialect->name));
        json_object_set_new(out, "results", json_string(v->results.path));
        json_object_set_new(out, "wanted", json_integer(v->set.n));
        json_object_set_new(out, "status",
                            json_string(e->kind == ERR_STOPPED ? "stopped"
                                        : e->kind              ? "failed"
                                                               : "done"));
        if (e->kind)
            json_object_set_new(out, "error", json_string(e->text));
        options_print_json(out, JSON_COMPACT);
    } else {
        tally_print(&t, stdout);
        if (!v->s->quiet)
            fprintf(stderr, "holorun: each answer is in '%s'\n", v->results.path);
    }
    if (v->broken > NAMED)
        warn("%d items are not counted; '%s' lists them", v->broken, v->results.path);
    if (t.nothing && !v->s->free && !v->l.dialect->syntax->says_absent)
        warn("%d items have no target; a model can only answer so with --free", t.nothing);
    tally_free(&t);
    v->told = true;
}

static int evaluate(struct evaluation *v, const char *file, struct err *e)
{
    const struct settings *s = v->s;
    struct engine_options model = MODEL_ENGINE(*s);
    if ((!ENDPOINT_GIVEN(*s) && vqa_check_vision(&model, e)) || eval_set_read(&v->set, file, e) ||
        select_items(&v->set, s, e))
        return -1;
    tell_unknown(&v->set);
    const struct endpoint_options at = ENDPOINT_AT(*s);
    if (ENDPOINT_GIVEN(*s) ? vqa_open_remote(&v->l, &at, s->dialect, 1, e)
                           : vqa_open(&v->l, s->dialect, &model, 1, e))
        return -1;
    if (pocket_assist_open(&v->assist, v->l.engine, v->l.dialect, screen_stop_flag(NULL), e))
        return -1;
    v->l.free = s->free;
    if (!*v->l.dialect->ground)
        return err_set(e, ERR_USAGE, "dialect '%s' cannot ask for a position (it has no key 'ground')",
                       v->l.dialect->name);
    if (vqa_check_places(&v->l, e))
        return -1;
    json_auto_t *head = head_of(v);
    autofree char *path = results_path(s, file, e);
    int rc = path ? results_open(&v->results, path, &v->set, head, s->resume, e) : -1;
    if (rc)
        return -1;
    rc = ask_all(v, e);
    if (rc == 0 && v->broken)
        rc = err_set(e, ERR_ENV, "%d of %d items are not counted: their images could not be read", v->broken,
                     v->set.n);
    print_totals(v, e);
    return rc;
}

int cmd_eval(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int n = options_parse(&eval_command, &s, argc, argv, &e);
    if (n == 0)
        n = err_set(&e, ERR_USAGE, "eval takes one file");
    if (n < 0)
        return options_refuse(&eval_command, &e);
    screen_install_signals();
    struct evaluation v = {.s = &s, .results = {.fd = -1}};
    int rc = evaluate(&v, argv[0], &e);
    results_close(&v.results);
    eval_set_free(&v.set);
    image_free(&v.image);
    free(v.image_path);
    assist_free(v.assist);
    vqa_close(&v.l);
    return options_end(rc, v.told, &e);
}
