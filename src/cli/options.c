/* options.c - see options.h.
 *
 * Parsing makes one pass over argv.  An option finds its row and takes its value from the same word (after
 * "=" or the letter) or from the next one; set_value() checks the value against the row and stores it.
 * Defaults and environment variables use the same set_value(), so an invalid default is detected. */
#include "cli/options.h"

#include "base/json.h"
#include "cli/manual.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 64 << 10 };

/* ---- values --------------------------------------------------------------------------------- */

/* Writes the word of an OPTION_CHOICE at an index. */
static void options_choice(const struct option_spec *o, int index, char *out, size_t size)
{
    const char *p = o->unit;
    for (int i = 0; i < index && *p; i++) {
        p += strcspn(p, "|");
        p += *p == '|';
    }
    snprintf(out, size, "%.*s", (int)strcspn(p, "|"), p);
}

static int set_number(const struct option_spec *o, void *at, const char *from, const char *text,
                      struct err *e)
{
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(v) || (o->type == OPTION_INT && v != floor(v)))
        return err_set(e, ERR_USAGE, "%s must be %s, not '%s'", from,
                       o->type == OPTION_INT ? "a whole number" : "a number", text);
    if (v < o->min || v > o->max)
        return err_set(e, ERR_USAGE, "%s is %s, outside %g to %g", from, text, o->min, o->max);
    if (o->type == OPTION_INT)
        *(int *)at = (int)v;
    else
        *(double *)at = v;
    return 0;
}

static int set_seed(void *at, const char *from, const char *text, struct err *e)
{
    char *end;
    errno = 0;
    uint64_t v = strtoull(text, &end, 0);
    if (end == text || *end || errno || strchr(text, '-'))
        return err_set(e, ERR_USAGE, "%s must be a whole number from 0, not '%s'", from, text);
    *(uint64_t *)at = v;
    return 0;
}

/* Parses a number followed by K, M, G or T; a number below 10000 without a letter is in G. */
int options_size(size_t *bytes, const char *from, const char *text, struct err *e)
{
    static const char units[] = "KMGT";
    char *end;
    double n = strtod(text, &end);
    const char *unit = end == text ? NULL : *end ? strchr(units, *end) : n < 10000 ? "G" : NULL;
    bool bare = unit && !*end;
    if (!unit || !(n > 0 && n < 1e6) ||
        (!bare && end[1] && strcmp(end + 1, "B") != 0 && strcmp(end + 1, "iB") != 0))
        return err_set(e, ERR_USAGE, "%s must be a size like 24G, not '%s'", from, text);
    for (long k = bare ? 2 : unit - units; k >= 0; k--)
        n *= 1024;
    *bytes = (size_t)n;
    return 0;
}

static int set_text(const struct option_spec *o, const char **at, const char *from, const char *text,
                    struct err *e)
{
    size_t max = o->max > 0 ? (size_t)o->max : TEXT_MAX;
    if (strlen(text) > max)
        return err_set(e, ERR_USAGE, "%s is longer than %zu bytes", from, max);
    *at = text;
    return 0;
}

static int set_list(const struct option_spec *o, const char **list, const char *from, const char *text,
                    struct err *e)
{
    int n = 0;
    while (list[n])
        n++;
    if (n == OPTION_LIST_MAX)
        return err_set(e, ERR_USAGE, "%s may be given at most %d times", from, OPTION_LIST_MAX);
    return set_text(o, &list[n], from, text, e);
}

static int refuse_choice(const struct option_spec *o, const char *from, const char *text, struct err *e)
{
    enum { CHOICES = 32, CHOICE = 32 };
    char words[CHOICES][CHOICE], hint[NAME_HINT];
    const char *names[CHOICES];
    int n = 0;
    for (const char *p = o->unit; n < CHOICES; p++) {
        options_choice(o, n, words[n], CHOICE);
        names[n] = words[n];
        n++;
        p += strcspn(p, "|");
        if (!*p)
            break;
    }
    return err_set(e, ERR_USAGE, "%s must be one of %s, not '%.100s'%s", from, o->unit, text,
                   name_hint(hint, text, names, n));
}

/* Checks and stores a value.  `from` names its source in messages: "--max-steps" or "$HOLORUN_MODEL".
 * Returns -1 with e. */
static int set_value(const struct option_spec *o, void *settings, const char *from, const char *text,
                     struct err *e)
{
    void *at = (char *)settings + o->at;
    switch (o->type) {
    case OPTION_FLAG:
        *(bool *)at = !strcmp(text, "yes") || !strcmp(text, "1");
        return 0;
    case OPTION_INT:
    case OPTION_NUMBER:
        return set_number(o, at, from, text, e);
    case OPTION_SEED:
        return set_seed(at, from, text, e);
    case OPTION_TEXT:
    case OPTION_MAYBE:
        return set_text(o, at, from, text, e);
    case OPTION_LIST:
        return set_list(o, at, from, text, e);
    case OPTION_CHOICE: {
        int i = text_choice(o->unit, text);
        if (i >= 0)
            *(int *)at = i;
        return i < 0 ? refuse_choice(o, from, text, e) : 0;
    }
    case OPTION_SIZE:
        return options_size(at, from, text, e);
    }
    bug("option '%s' has no such type", o->name);
}

int options_defaults(const struct option_spec *table, void *settings, struct err *e)
{
    for (const struct option_spec *o = table; o && o->name; o++) {
        if (o->standard && set_value(o, settings, o->name, o->standard, NULL))
            bug("the default '%s' of option '%s' is invalid in its own row", o->standard, o->name);
        const char *value = o->variable ? getenv(o->variable) : NULL;
        char from[64];
        snprintf(from, sizeof from, "$%s", o->variable ? o->variable : "");
        if (value && *value && set_value(o, settings, from, value, e))
            return -1;
    }
    return 0;
}

/* ---- finding rows --------------------------------------------------------------------------- */

static int refuse_unknown(const struct option_spec *table, const char *name, struct err *e)
{
    const char *names[128];
    int n = 0;
    names[n++] = "help";
    for (const struct option_spec *o = table; o && o->name && n < 128; o++) {
        if (o->show == OPTION_SWITCH && !strcmp(o->name, name))
            return err_set(e, ERR_USAGE, "'%s' can only be set by the environment variable $%s", name,
                           o->variable);
        if (o->show != OPTION_SWITCH)
            names[n++] = o->name;
    }
    const char *near = suggested_name(name, names, n);
    if (near)
        return err_set(e, ERR_USAGE, "unknown option '--%s'; did you mean '--%s'?", name, near);
    return err_set(e, ERR_USAGE, "unknown option '--%s'", name);
}

static const struct option_spec *find_name(const struct option_spec *table, const char *name, size_t len)
{
    bool recorded = len && *name == '@';
    for (const struct option_spec *o = table; o && o->name; o++)
        if (strlen(o->name) == len - recorded && !strncmp(o->name, name + recorded, len - recorded) &&
            (o->show == OPTION_SWITCH) == recorded)
            return o;
    return NULL;
}

static const struct option_spec *find_letter(const struct option_spec *table, char letter)
{
    for (const struct option_spec *o = table; o && o->name; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

/* ---- the walk over argv --------------------------------------------------------------------- */

struct walk {
    const struct option_spec *table;
    void *settings;
    int argc, i;
    char **argv;
};

/* Sets the value of option o: `inside` if it came in the same word, else the next word.  Returns -1 with
 * e. */
static int take_value(struct walk *w, const struct option_spec *o, const char *from, const char *inside,
                      struct err *e)
{
    if (!inside && w->i + 1 >= w->argc)
        return err_set(e, ERR_USAGE, "%s needs a value: %s", from, o->unit ? o->unit : "TEXT");
    return set_value(o, w->settings, from, inside ? inside : w->argv[++w->i], e);
}

static int take_long(struct walk *w, const char *word, struct err *e)
{
    size_t len = strcspn(word, "=");
    const char *inside = word[len] ? word + len + 1 : NULL;
    const struct option_spec *o = find_name(w->table, word, len);
    bool no = !o && len > 3 && !strncmp(word, "no-", 3);
    if (no)
        o = find_name(w->table, word + 3, len - 3);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(len < 60 ? len : 60), word);
    if (!o || (no && o->type != OPTION_FLAG))
        return refuse_unknown(w->table, name, e);
    char from[72];
    snprintf(from, sizeof from, "--%s", name);
    if (o->type == OPTION_MAYBE && !inside)
        inside = "auto";
    if (o->type != OPTION_FLAG || (inside && *word == '@'))
        return take_value(w, o, from, inside, e);
    if (inside)
        return err_set(e, ERR_USAGE, "%s takes no value; to turn it off use --no-%s", from, o->name);
    return set_value(o, w->settings, from, no ? "no" : "yes", e);
}

static int take_letters(struct walk *w, const char *word, struct err *e)
{
    for (; *word; word++) {
        const struct option_spec *o = find_letter(w->table, *word);
        if (!o)
            return err_set(e, ERR_USAGE, "unknown option '-%c'", *word);
        char from[3] = {'-', *word, 0};
        if (o->type != OPTION_FLAG)
            return take_value(w, o, from, word[1] ? word + 1 : NULL, e);
        set_value(o, w->settings, from, "yes", NULL);
    }
    return 0;
}

/* whether the command line has --json: then a failure is also reported on stdout; one per process */
static bool json_asked;

/* Returns whether --json is anywhere on the command line, because parsing may fail at an earlier word. */
static bool asks_for_json(const struct command *c, int argc, char **argv)
{
    const struct option_spec *o = find_name(c->options, "json", 4);
    bool asked = false;
    for (int i = 1; o && o->type == OPTION_FLAG && i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool letter = o->letter && argv[i][0] == '-' && argv[i][1] == o->letter && !argv[i][2];
        asked = letter || !strcmp(argv[i], "--json") || (asked && strcmp(argv[i], "--no-json") != 0);
    }
    return asked;
}

/* Returns whether --all is on the command line, before or after --help. */
static bool asks_for_all(int argc, char **argv)
{
    bool all = false;
    for (int i = 1; i < argc; i++)
        all = all || !strcmp(argv[i], "--all");
    return all;
}

/* Returns n, or -1 with e if there are more arguments than the command names; commands with "TASK" or "..."
 * check the number themselves. */
static int check_count(const struct command *c, char **argv, int n, struct err *e)
{
    int most = *c->arguments != 0;
    for (const char *p = c->arguments; *p; p++)
        most += *p == ' ';
    if (n <= most || !strncmp(c->arguments, "TASK", 4) || strstr(c->arguments, "..."))
        return n;
    return err_set(e, ERR_USAGE, "unexpected argument '%s'", argv[most]);
}

int options_parse(const struct command *c, void *settings, int argc, char **argv, struct err *e)
{
    json_asked = asks_for_json(c, argc, argv);
    struct walk w = {.table = c->options, .settings = settings, .argc = argc, .argv = argv};
    if (options_defaults(c->options, settings, e))
        return -1;
    int n = 0;
    bool ended = false;
    for (w.i = 1; w.i < argc; w.i++) {
        char *word = argv[w.i];
        int rc = 0;
        if (ended || word[0] != '-' || !word[1])
            argv[n++] = word; /* n never exceeds i: an overwritten word has been read */
        else if (!strcmp(word, "--"))
            ended = true;
        else if (!strcmp(word, "--help") || !strcmp(word, "-h"))
            return manual_help(c, asks_for_all(argc, argv), stdout), OPTIONS_HELP;
        else if (word[1] == '-')
            rc = take_long(&w, word + 2, e);
        else
            rc = take_letters(&w, word + 1, e);
        if (rc)
            return -1;
    }
    return check_count(c, argv, n, e);
}

void options_print_json(json_t *object, size_t flags)
{
    json_print(object, stdout, flags & JSON_REAL_PRECISION(31) ? flags : flags | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(object);
}

static int print_failure(const struct err *e, int otherwise)
{
    int code = e->kind ? (int)e->kind : otherwise;
    if (!json_asked)
        return code;
    json_t *all = json_pack("{s:s, s:i}", "status", code == ERR_STOPPED ? "stopped" : "failed", "exit", code);
    json_set_text(all, "error", e->text);
    options_print_json(all, 0);
    return code;
}

int options_refuse(const struct command *c, const struct err *e)
{
    if (!e->kind) /* the help was printed on request */
        return 0;
    fprintf(stderr, "holorun %s: %s\nholorun %s: 'holorun %s --help' lists the options\n", c->name, e->text,
            c->name, c->name);
    return print_failure(e, ERR_USAGE);
}

int options_failed(const struct err *e)
{
    fprintf(stderr, "holorun: %s\n", e->text);
    return print_failure(e, ERR_ENV);
}

int options_end(int rc, bool told, const struct err *e)
{
    if (rc && told)
        fprintf(stderr, "holorun: %s\n", e->text);
    return !rc ? 0 : told ? (int)e->kind : options_failed(e);
}

char *options_quoted(char *const *words, int n)
{
    struct buf plain, quoted;
    buf_init(&plain, TEXT_MAX);
    buf_init(&quoted, 5 * TEXT_MAX);
    for (int i = 0; i < n; i++)
        buf_printf(&plain, "%s%s", i ? " " : "", words[i]);
    bool special = plain.len && strpbrk(plain.data, "\"$`\\!");
    buf_putc(&quoted, special ? '\'' : '"');
    for (const char *p = plain.len ? plain.data : ""; *p; p++)
        if (special && *p == '\'')
            buf_puts(&quoted, "'\\''");
        else
            buf_putc(&quoted, *p);
    buf_putc(&quoted, special ? '\'' : '"');
    char *text = buf_take(&quoted);
    buf_free(&plain);
    buf_free(&quoted);
    return text;
}

static json_t *list_json(const char *const *list)
{
    json_t *all = json_array();
    for (int i = 0; list[i]; i++)
        json_array_append_new(all, json_clean_string(list[i]));
    return all;
}

/* Returns a value as JSON; null: not given. */
static json_t *value_json(const struct option_spec *o, const void *at)
{
    const char *text;
    char word[64];
    switch (o->type) {
    case OPTION_FLAG:
        return json_boolean(*(const bool *)at);
    case OPTION_INT:
        return json_integer(*(const int *)at);
    case OPTION_NUMBER:
        return isfinite(*(const double *)at) ? json_plain_number(*(const double *)at) : json_null();
    case OPTION_SEED:
        return json_seed(*(const uint64_t *)at);
    case OPTION_TEXT:
    case OPTION_MAYBE:
        text = *(const char *const *)at;
        return text ? json_clean_string(text) : json_null();
    case OPTION_LIST:
        return list_json(at);
    case OPTION_CHOICE:
        options_choice(o, *(const int *)at, word, sizeof word);
        return *(const int *)at >= 0 ? json_clean_string(word) : json_null();
    case OPTION_SIZE:
        return *(const size_t *)at ? json_integer((json_int_t) * (const size_t *)at) : json_null();
    }
    bug("option '%s' has no such type", o->name);
}

json_t *options_json(const struct option_spec *table, const void *settings)
{
    json_t *all = json_object();
    for (const struct option_spec *o = table; o && o->name; o++)
        json_object_set_new(all, o->name, value_json(o, (const char *)settings + o->at));
    return all;
}
