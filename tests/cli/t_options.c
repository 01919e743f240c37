/* t_options.c - tests of the command line: values, ranges, spellings, suggestions, and texts generated from
 * the tables. */
#include "base/file.h"
#include "cli/manual.h"
#include "cli/options.h"
#include "cli/recorded.h"

#include "check.h"
#include "place.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct settings {
    int steps;
    double seconds;
    uint64_t seed;
    const char *name;
    bool json, report;
    int window;
};

static const struct option_spec table[] = {
    {"steps", 'n', OPTION_INT, offsetof(struct settings, steps), "N", 1, 100, "7", "how many", NULL},
    {"seconds", 't', OPTION_NUMBER, offsetof(struct settings, seconds), "S", 0, 10, "2.5", "how long", NULL},
    {"seed", 0, OPTION_SEED, offsetof(struct settings, seed), "N", 0, 0, "3", "random seed", NULL},
    {"name", 'x', OPTION_TEXT, offsetof(struct settings, name), "TEXT", 0, 8, NULL, "a name",
     "HOLORUN_T_NAME"},
    {"json", 'j', OPTION_FLAG, offsetof(struct settings, json), NULL, 0, 0, NULL, "as JSON", NULL},
    {"report", 0, OPTION_FLAG, offsetof(struct settings, report), NULL, 0, 0, "yes", "write a report", NULL},
    {"window", 0, OPTION_CHOICE, offsetof(struct settings, window), "strict|sawtooth", 0, 0, "sawtooth",
     "which images stay", NULL},
    {0},
};

static const struct command command = {"probe",
                                       "WORD...",
                                       "probe the parser",
                                       "A text\nof one line.\n\n  a:   b\n    c: d\n\nThe end.",
                                       "holorun probe -n 3 a\n",
                                       table,
                                       NULL};

static char *words[17]; /* argv after the last parse() */

/* Parses words separated by spaces.  The copy is static, because the settings point into it. */
static int parse(struct settings *s, struct err *e, const char *line)
{
    static char copy[256];
    static char name[] = "probe";
    memset(s, 0, sizeof *s);
    *e = (struct err)ERR_INIT;
    snprintf(copy, sizeof copy, "%s", line);
    int n = 0;
    words[n++] = name;
    for (char *rest = copy, *w; n < 16 && (w = strsep(&rest, " "));)
        words[n++] = w;
    return options_parse(&command, s, n, words, e);
}

static void t_defaults(void **state)
{
    struct settings s;
    struct err e;
    assert_int_equal(parse(&s, &e, "word"), 1);
    assert_int_equal(s.steps, 7);
    assert_true(s.seconds == 2.5 && s.seed == 3 && !s.name && !s.json && s.report && s.window == 1);
}

static void t_spellings(void **state)
{
    struct settings s;
    struct err e;
    const char *line =
        "one -n 3 --seconds=1.5 -jxabc --no-report --seed 18446744073709551615 --window strict two -- --json";
    assert_int_equal(parse(&s, &e, line), 3);
    assert_string_equal(words[0], "one");
    assert_string_equal(words[1], "two");
    assert_string_equal(words[2], "--json");
    assert_int_equal(s.steps, 3);
    assert_true(s.seconds == 1.5 && s.json && !s.report && s.window == 0 && s.seed == UINT64_MAX);
    assert_string_equal(s.name, "abc");
    assert_int_equal(parse(&s, &e, "-n4 -"), 1);
    assert_int_equal(s.steps, 4);
}

static void t_refusals(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"--steps 0", "--steps is 0, outside 1 to 100"},
        {"--steps 2.5", "--steps must be a whole number, not '2.5'"},
        {"-n 3x", "-n must be a whole number"},
        {"--seconds nan", "--seconds must be a number, not 'nan'"},
        {"--seconds 1e999", "must be a number"},
        {"--seed -1", "--seed must be a whole number from 0"},
        {"--window loose", "--window must be one of strict|sawtooth, not 'loose'"},
        {"--window sawtoth", "not 'sawtoth'; did you mean 'sawtooth'?"},
        {"--name 123456789", "--name is longer than 8 bytes"},
        {"word --steps", "--steps needs a value: N"},
        {"word --step", "unknown option '--step'; did you mean '--steps'?"},
        {"word --xylophone", "unknown option '--xylophone'"},
        {"word --secs 3", "unknown option '--secs'"},
        {"word --secondes 3", "unknown option '--secondes'; did you mean '--seconds'?"},
        {"word --windows strict", "unknown option '--windows'; did you mean '--window'?"},
        {"word --json=1", "--json takes no value"},
        {"word --no-steps", "unknown option '--no-steps'"},
        {"word -q", "unknown option '-q'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct settings s;
        struct err e;
        assert_int_equal(parse(&s, &e, cases[i].line), -1);
        assert_int_equal(e.kind, ERR_USAGE);
        if (!strstr(e.text, cases[i].says))
            fail_msg("%s: '%s' does not say '%s'", cases[i].line, e.text, cases[i].says);
    }
}

/* Unknown names and the suggestions for them; NULL: no similar name. */
static void t_suggested(void **state)
{
    static const char *const names[] = {"cert",        "listen", "max-time", "retries", "timeout_s",
                                        "temperature", "run",    "on",       "start",   "output"};
    static const char *const cases[][2] = {
        {"port", "listen"},   {"host", "listen"},      {"certs", "cert"},       {"timeout", "timeout_s"},
        {"retry", "retries"}, {"temp", "temperature"}, {"rnu", "run"},          {"dir", NULL},
        {"colour", NULL},     {"headless", "on"},      {"out", "output"},       {"max-tmie", "max-time"},
        {"star", "start"},    {"stop", NULL},          {"listen-on", "listen"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = suggested_name(cases[i][0], names, sizeof names / sizeof *names);
        if (!found != !cases[i][1] || (found && strcmp(found, cases[i][1]) != 0))
            fail_msg("'%s' is taken for '%s'", cases[i][0], found ? found : "nothing");
    }
}

static void t_variable(void **state)
{
    struct settings s;
    struct err e;
    setenv("HOLORUN_T_NAME", "env", 1);
    assert_int_equal(parse(&s, &e, "word"), 1);
    assert_string_equal(s.name, "env");
    assert_int_equal(parse(&s, &e, "--name opt"), 0);
    assert_string_equal(s.name, "opt");
    setenv("HOLORUN_T_NAME", "much too long", 1);
    assert_int_equal(parse(&s, &e, "word"), -1);
    assert_non_null(strstr(e.text, "$HOLORUN_T_NAME is longer"));
    unsetenv("HOLORUN_T_NAME");
}

static void t_json(void **state)
{
    struct settings s;
    struct err e;
    assert_int_equal(parse(&s, &e, "--name a\"b -j"), 0);
    json_t *all = options_json(table, &s);
    char *text = json_dumps(all, 0);
    assert_string_equal(text,
                        "{\"steps\": 7, \"seconds\": 2.5, \"seed\": 3, \"name\": \"a\\\"b\", \"json\": true, "
                        "\"report\": true, \"window\": \"sawtooth\"}");
    free(text);
    json_decref(all);
}

/* Returns the output of a function; the caller frees it. */
static char *written(void (*page)(const struct command *const *, FILE *))
{
    static const struct option_spec from[] = {{"from", 0, OPTION_TEXT, 0, "FILE", 0, 8, NULL, "a file", NULL},
                                              {0}};
    static const struct command choose = {"choose", "one|two[:n]", "", NULL, NULL, table, NULL},
                                explain = {"explain", "[COMMAND]", "", NULL, NULL, NULL, NULL},
                                page_of = {"page", "[RUN]", "", NULL, NULL, NULL, NULL},
                                look = {"look", "[MODEL]", "", NULL, NULL, from, NULL};
    static const struct command *const commands[] = {&command, &choose, &explain, &page_of, &look, NULL};
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (page)
        page(commands, f);
    else
        manual_help(&command, true, f);
    fclose(f);
    return text;
}

static void t_documents(void **state)
{
    char *help = written(NULL), *man = written(manual_page), *bash = written(manual_bash), roff[64];
    for (const struct option_spec *o = table; o->name; o++) {
        check_has(help, o->name, o->help);
        assert_non_null(strstr(bash, o->name));
        snprintf(roff, sizeof roff, "\\-%s", o->name);
        assert_non_null(strstr(man, roff));
    }
    assert_non_null(strstr(help, "\n\nA text of one line.\n\n  a:   b\n    c: d\n\nThe end.\n\n"));
    assert_non_null(strstr(man, "\n.PP\n.nf\n  a:   b\n    c: d\n.fi\n.PP\nThe end.\n"));
    check_has(help, "--no-report", "1 to 100 [7]", "holorun probe -n 3 a");
    assert_non_null(strstr(bash, "probe:--window) words=\"strict sawtooth\""));
    static const char *const sections[] = {
        ".SH EXIT STATUS\n.TP\n.B 0\ndone, and confirmed", ".B 130\nstopped",
        ".SH ENVIRONMENT\n.TP\n.B HOLORUN_T_NAME\ndefault of ", ".SH FILES\n"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (!strstr(man, sections[i]))
            fail_msg("the manual lacks %s", sections[i]);
    free(help);
    free(man);
    free(bash);
}

static size_t widest(const char *text)
{
    size_t most = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        most = strcspn(text, "\n") > most ? strcspn(text, "\n") : most;
    return most;
}

/* Uses a terminal of this width as stdout. */
static void t_width(void **state)
{
    static const struct {
        unsigned short columns;
        size_t most;
    } cases[] = {{80, 80}, {40, 54 /* a line of usage */}, {5, 54}, {300, 96}};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), old = dup(STDOUT_FILENO);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    fflush(stdout);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct winsize size = {.ws_row = 24, .ws_col = cases[i].columns};
        assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
        assert_true(dup2(slave, STDOUT_FILENO) == STDOUT_FILENO);
        char *overview = written(manual_overview), *help = written(NULL);
        assert_true(dup2(old, STDOUT_FILENO) == STDOUT_FILENO);
        if (widest(overview) > cases[i].most || widest(help) > cases[i].most)
            fail_msg("on %d columns lines of %zu and %zu", cases[i].columns, widest(overview), widest(help));
        free(overview);
        free(help);
    }
    close(old);
    close(slave);
    close(master);
}

/* Checks bash's completions of the last word, in a directory with a file and a directory. */
static void offers(const char *script, const char *line, const char *want)
{
    char *command_line =
             xasprintf("cd %s && bash -c 'source ./script; COMP_WORDS=(%s); "
                       "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _holorun 2>/dev/null; echo ${COMPREPLY[@]}'",
                       script, line),
         got[512] = "";
    FILE *f = popen(command_line, "r");
    assert_non_null(f);
    size_t n = fread(got, 1, sizeof got - 1, f);
    assert_int_equal(pclose(f), 0);
    got[n] = 0;
    if (strncmp(got, want, strlen(want)) != 0 || strcmp(got + strlen(want), "\n") != 0)
        fail_msg("for '%s' bash offers '%s', not '%s'", line, got, want);
    free(command_line);
}

static void t_completion(void **state)
{
    char dir[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(dir)));
    char *bash = written(manual_bash), *script = xasprintf("%s/script", dir),
         *folder = xasprintf("%s/runs/one", dir);
    assert_int_equal(file_write(script, bash, strlen(bash), NULL), 0);
    assert_int_equal(dir_make(folder, NULL), 0);
    setenv("HOLORUN_RUNS", "runs", 1);
    offers(dir, "holorun pr", "probe");
    offers(dir, "holorun --v", "--version");
    offers(dir, "holorun probe --window sa", "sawtooth");
    offers(dir, "holorun probe --window = sa", "sawtooth");
    offers(dir, "holorun probe --window = ", "strict sawtooth");
    offers(dir, "holorun probe --no", "--no-report");
    offers(dir, "holorun probe --steps \"\"", "");
    offers(dir, "holorun probe s", ""); /* left to bash's completion of files */
    offers(dir, "holorun choose o", "one");
    offers(dir, "holorun choose --report x -- t", "two");
    offers(dir, "holorun explain pr", "probe");
    offers(dir, "holorun page o", "one");
    offers(dir, "holorun look r", "runs");
    offers(dir, "holorun look --from s", "script");
    unsetenv("HOLORUN_RUNS");
    free(bash);
    free(script);
    free(folder);
}

/* ---- groups, rare options, switches ---------------------------------------------------------- */

struct levels {
    int common, rare;
    const char *isa;
    bool cache;
};
static const struct option_spec levels_table[] = {
    {"common", 0, OPTION_INT, offsetof(struct levels, common), "N", 0, 9, "1", "one", NULL, .group = "model"},
    {"rare", 0, OPTION_INT, offsetof(struct levels, rare), "N", 0, 9, "2", "two", NULL, .show = OPTION_MORE},
    {"isa", 0, OPTION_TEXT, offsetof(struct levels, isa), "WORD", 0, 8, NULL, "kernels", "HOLORUN_T_ISA",
     .show = OPTION_SWITCH},
    {"cache", 0, OPTION_FLAG, offsetof(struct levels, cache), NULL, 0, 0, "yes", "keep", "HOLORUN_T_CACHE",
     .show = OPTION_SWITCH},
    {"last", 0, OPTION_INT, offsetof(struct levels, common), "N", 0, 9, "1", "three", NULL,
     .group = "record"},
    {0},
};
static const struct command levels_command = {"probe", "", "probe", NULL, NULL, levels_table, NULL};

static char *help_of(bool all)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    manual_help(&levels_command, all, f);
    fclose(f);
    return text;
}

static void t_levels(void **state)
{
    char *help = help_of(false), *all = help_of(true);
    assert_non_null(strstr(help, "\nmodel:\n"));
    assert_true(strstr(help, "--common") < strstr(help, "\nrecord:\n"));
    assert_non_null(strstr(help, "--help --all"));
    assert_null(strstr(help, "--rare"));
    assert_true(strstr(all, "--common") < strstr(all, "--rare"));
    assert_null(strstr(all, "isa"));
    free(help);
    free(all);
    static const struct command *const commands[] = {&levels_command, NULL};
    char *man;
    size_t size;
    FILE *f = open_memstream(&man, &size);
    manual_page(commands, f);
    fclose(f);
    assert_non_null(strstr(man, "\\-\\-rare"));
    assert_null(strstr(man, "\\-\\-isa"));
    assert_non_null(strstr(man, ".B HOLORUN_T_ISA\nkernels"));
    free(man);
}

static int parse_levels(struct levels *l, const char *word, struct err *e)
{
    static char name[] = "probe", copy[64];
    char *argv[] = {name, copy};
    *l = (struct levels){0};
    *e = (struct err)ERR_INIT;
    snprintf(copy, sizeof copy, "%s", word);
    int n = options_parse(&levels_command, l, 2, argv, e);
    l->isa = l->isa ? "set" : NULL; /* it points into argv */
    return n;
}

static void t_switches(void **state)
{
    struct levels l;
    struct err e;
    assert_int_equal(parse_levels(&l, "--isa=ref", &e), -1);
    assert_non_null(strstr(e.text, "variable $HOLORUN_T_ISA"));
    assert_int_equal(parse_levels(&l, "--no-cache", &e), -1);
    assert_int_equal(parse_levels(&l, "--rare=3", &e), 0);
    assert_int_equal(l.rare, 3);
    assert_true(l.cache && !l.isa);
    assert_int_equal(parse_levels(&l, "--@isa=ref", &e), 0); /* as in a recorded run */
    assert_non_null(l.isa);
    assert_int_equal(parse_levels(&l, "--@cache=no", &e), 0);
    assert_false(l.cache);
    setenv("HOLORUN_T_ISA", "avx2", 1);
    setenv("HOLORUN_T_CACHE", "0", 1);
    assert_int_equal(parse_levels(&l, "--rare=3", &e), 0);
    assert_true(l.isa && !l.cache);
    unsetenv("HOLORUN_T_ISA");
    unsetenv("HOLORUN_T_CACHE");
}

struct many {
    const char *show, *stops[OPTION_LIST_MAX + 1];
};
static const struct option_spec many_table[] = {
    {"show", 0, OPTION_MAYBE, offsetof(struct many, show), "a|b", 0, 8, NULL, "show it", NULL},
    {"stop", 's', OPTION_LIST, offsetof(struct many, stops), "WHEN", 0, 8, NULL, "stop there", NULL},
    {0},
};
static const struct command many_command = {"probe",    "WORD", "probe", NULL, "holorun probe a\n",
                                            many_table, NULL};

static int parse_many(struct many *m, const char *line, struct err *e)
{
    static char copy[512];
    *m = (struct many){0};
    *e = (struct err)ERR_INIT;
    snprintf(copy, sizeof copy, "%s", line);
    char *argv[2 * OPTION_LIST_MAX + 8], *w;
    int n = 0;
    for (char *rest = copy; n < 2 * OPTION_LIST_MAX + 8 && (w = strsep(&rest, " "));)
        argv[n++] = w;
    return options_parse(&many_command, m, n, argv, e);
}

static void t_many(void **state)
{
    struct many m;
    struct err e;
    assert_int_equal(parse_many(&m, "probe --show word --stop one -stwo --stop=three", &e), 1);
    assert_string_equal(m.show, "auto"); /* an optional value needs "=" */
    assert_string_equal(m.stops[0], "one");
    assert_string_equal(m.stops[1], "two");
    assert_string_equal(m.stops[2], "three");
    assert_null(m.stops[3]);
    json_t *all = options_json(many_table, &m);
    char *text = json_dumps(all, 0);
    assert_string_equal(text, "{\"show\": \"auto\", \"stop\": [\"one\", \"two\", \"three\"]}");
    free(text);
    json_decref(all);
    assert_int_equal(parse_many(&m, "probe --show=later -s 123456789", &e), -1);
    assert_string_equal(m.show, "later");
    assert_non_null(strstr(e.text, "longer than 8"));
    char line[256] = "probe";
    for (int i = 0; i <= OPTION_LIST_MAX; i++)
        strcat(line, " -sx");
    assert_int_equal(parse_many(&m, line, &e), -1);
    assert_non_null(strstr(e.text, "at most 32 times"));
}

/* A record without "rounded_matrices" is from a version in which auto was bf16. */
static void t_recorded_activations(void **state)
{
    static const char *const cases[][2] = {
        {"{\"settings\": {\"activations\": \"auto\"}, \"model\": {\"isa\": \"avx2\"}}", "bf16"},
        {"{\"settings\": {\"activations\": \"int8\"}, \"model\": {\"isa\": \"avx2\"}}", "int8"},
        {"{\"settings\": {\"activations\": \"auto\", \"f32\": true}, \"model\": {\"isa\": \"avx2\"}}",
         "auto"},
        {"{\"settings\": {\"activations\": \"auto\"}, \"model\": {\"isa\": \"avx2\", "
         "\"rounded_matrices\": 0}}",
         "auto"},
        {"{\"settings\": {\"activations\": \"auto\"}, \"model\": {}}", "auto"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *run = json_loads(cases[i][0], 0, NULL), *settings = recorded_settings(run);
        assert_string_equal(json_string_value(json_object_get(settings, "activations")), cases[i][1]);
        json_decref(settings);
        json_decref(run);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("a name is suggested only if it is similar, has the same prefix or is a common synonym",
          t_suggested),
    CLAIM("records of versions without rounded activations keep bf16", t_recorded_activations),
    CLAIM("a missing option has its default", t_defaults),
    CLAIM("a value may be optional, and an option may be repeatable", t_many),
    CLAIM("every spelling of an option is read, and other words keep their order", t_spellings),
    CLAIM("an invalid value is refused with the option, the value and the valid values", t_refusals),
    CLAIM("help has groups, and omits rare options unless all are requested", t_levels),
    CLAIM("a switch is set by its variable or a recorded run, not on the command line", t_switches),
    CLAIM("an environment variable replaces a missing option and is checked as well", t_variable),
    CLAIM("the effective settings are written as JSON", t_json),
    CLAIM("help, manual and completion name every option of the table", t_documents),
    CLAIM("help is as wide as the terminal, up to 96 columns", t_width),
    CLAIM("bash completes commands, choices, option names, and arguments of commands", t_completion),
};

CHECK_MAIN()
