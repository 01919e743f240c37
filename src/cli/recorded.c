/* recorded.c - see recorded.h. */
#include "cli/recorded.h"

#include "base/file.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_MAX_BYTES = 8192 };

/* Returns the directory of a run, checking first that it is a run; NULL with e.  The caller frees it. */
static char *find_below(const char *name, const char *runs, struct err *e)
{
    if (!name)
        return record_newest(runs, e);
    autofree char *below = xasprintf("%s/%s", runs, name);
    bool is_path = strchr(name, '/') || file_exists(name) || !file_exists(below);
    char *dir = xstrdup(is_path ? name : below), *events = xasprintf("%s/events.jsonl", dir);
    if (!file_exists(events)) {
        struct err none = ERR_INIT;
        autofree char *newest = record_newest(runs, &none);
        if (file_exists(dir))
            err_set(e, ERR_USAGE, "'%s' is not a run: events.jsonl not found", dir);
        else if (newest)
            err_set(e, ERR_USAGE, "run '%s' not found; the newest is '%s'", name, newest);
        else
            err_set(e, ERR_USAGE, "run '%s' not found, and %s", name, none.text);
        free(dir);
        dir = NULL;
    }
    free(events);
    return dir;
}

char *recorded_find(const char *name, const char *runs, struct err *e)
{
    char *standard = runs ? NULL : trace_runs_dir(e);
    if (!runs && !standard)
        return NULL;
    char *dir = find_below(name, runs ? runs : standard, e);
    free(standard);
    return dir;
}

int recorded_open(struct record *r, const char *name, const char *runs, struct err *e)
{
    autofree char *dir = recorded_find(name, runs, e);
    return dir ? record_open(r, dir, e) : -1;
}

struct dialect *recorded_dialect(const struct record *r, const char *name, struct err *e)
{
    struct err why = ERR_INIT;
    struct dialect *d = dialect_load(name, &why);
    if (!d)
        err_set(e, ERR_USAGE,
                "'%s' was recorded with the dialect '%s', which cannot be loaded: %s; choose another with "
                "--dialect",
                r->dir, name, why.text);
    return d;
}

int recorded_name(const struct command *c, void *settings, int argc, char **argv, const char **name,
                  struct err *e)
{
    char **words = xcalloc((unsigned long)argc + 1, sizeof *words);
    memcpy(words, argv, (size_t)argc * sizeof *words);
    int n = options_parse(c, settings, argc, words, e);
    *name = n > 0 ? words[0] : NULL;
    free(words);
    return n;
}

static const struct option_spec *find_option(const struct option_spec *table, const char *name)
{
    while (table->name && strcmp(table->name, name) != 0)
        table++;
    return table->name ? table : NULL;
}

/* Returns a setting as a word, such as "--seed=7" or "--no-cursor"; NULL: unknown setting, or a value that
 * could not be typed. */
static char *word_of(const struct option_spec *o, const json_t *value)
{
    bool yes = json_is_true(value);
    const char *at = o->show == OPTION_SWITCH ? "@" : "";
    if (json_is_boolean(value) != (o->type == OPTION_FLAG))
        return NULL;
    if (o->type == OPTION_FLAG)
        return *at ? xasprintf("--@%s=%s", o->name, yes ? "yes" : "no")
                   : xasprintf("--%s%s", yes ? "" : "no-", o->name);
    if (json_is_integer(value))
        return xasprintf("--%s%s=%lld", at, o->name, (long long)json_integer_value(value));
    if (json_is_real(value))
        return xasprintf("--%s%s=%.17g", at, o->name, json_real_value(value));
    const char *text = json_string_value(value);
    return text && strlen(text) < WORD_MAX_BYTES ? xasprintf("--%s%s=%s", at, o->name, text) : NULL;
}

static void put_word(struct recorded_line *l, char *word)
{
    if (!word)
        return;
    l->words[l->argc] = word;
    l->argv[l->argc++] = word;
}

void recorded_line(struct recorded_line *l, const json_t *settings, const struct option_spec *table,
                   const char *const *names, int argc, char **argv)
{
    int max = argc;
    for (int i = 0; names[i]; i++)
        max += OPTION_LIST_MAX;
    *l = (struct recorded_line){.argv = xcalloc((unsigned long)max + 1, sizeof *l->argv),
                                .words = xcalloc((unsigned long)max + 1, sizeof *l->words)};
    l->argv[l->argc++] = argv[0];
    for (int i = 0; names[i]; i++) {
        const struct option_spec *o = find_option(table, names[i]);
        const json_t *value = json_object_get(settings, names[i]);
        bool list = o && o->type == OPTION_LIST && json_is_array(value);
        for (size_t k = 0; list && k < json_array_size(value) && k < OPTION_LIST_MAX; k++)
            put_word(l, word_of(o, json_array_get(value, k)));
        if (o && value && !list)
            put_word(l, word_of(o, value));
    }
    for (int i = 1; i < argc; i++)
        l->argv[l->argc++] = argv[i];
}

void recorded_line_free(struct recorded_line *l)
{
    for (int i = 0; l->words && i < l->argc; i++)
        free(l->words[i]);
    free(l->words);
    free(l->argv);
    *l = (struct recorded_line){0};
}

json_t *recorded_settings(const json_t *run)
{
    const json_t *model = json_object_get(run, "model");
    json_t *settings = json_copy(json_object_get(run, "settings"));
    if (!json_is_object(settings)) {
        json_decref(settings);
        settings = json_object();
    }
    const char *activations = json_string_value(json_object_get(settings, "activations"));
    if (activations && !strcmp(activations, "auto") && json_object_get(model, "isa") &&
        !json_object_get(model, "rounded_matrices") && !json_is_true(json_object_get(settings, "f32")))
        json_object_set_new(settings, "activations", json_string("bf16"));
    return settings;
}
