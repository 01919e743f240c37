/* t_package.c - tests of the other files of a package: manual pages, completion, units, licences. */
#include "check.h"
#include "program.h"

#include "base/file.h"
#include "checkpoint/licence.h"

#include <dirent.h>
#include <jansson.h>
#include <unistd.h>

/* Returns the output of a command without its last newline; the caller frees it. */
static char *shell(const char *command, int *code)
{
    FILE *f = popen(command, "r");
    char *text = calloc(1, 1 << 20);
    assert_non_null(f);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    int status = pclose(f);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (n && text[n - 1] == '\n')
        text[n - 1] = 0;
    return text;
}

static void prints(const char *command, const char *wanted)
{
    int code;
    char *got = shell(command, &code);
    if (strcmp(got, wanted) != 0)
        fail_msg("'%s' prints '%s', not '%s'", command, got, wanted);
    free(got);
}

/* ---- manual pages -------------------------------------------------------------------------------- */

static void t_pages(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    program_run(&x, &o, WORDS("help", "--pages", x.dir));
    assert_int_equal(o.code, 0);
    program_run(&x, &o, WORDS("help"));
    int commands = 0, code;
    for (char *line = strtok(o.out, "\n"); line; line = strtok(NULL, "\n")) {
        char name[32], *path, *text;
        size_t n;
        if (strncmp(line, "  ", 2) != 0 || sscanf(line, "  %31[a-z]", name) != 1 || line[2] == ' ' ||
            line[2 + strlen(name)] != ' ')
            continue;
        path = xasprintf("%s/holorun-%s.1", x.dir, name);
        if (file_read(path, 1 << 20, &text, &n, NULL))
            continue; /* a continued line of text */
        commands++;
        check_has(text, ".SH NAME\nholorun\\-", ".SH SYNOPSIS\n", ".SH OPTIONS\n");
        free(text);
        if (program_exists("man") && program_exists("groff")) {
            char *command = xasprintf("man --warnings -E UTF-8 -l -Tutf8 -Z %s 2>&1 >/dev/null", path);
            char *said = shell(command, &code);
            assert_string_equal(said, "");
            free(said);
            free(command);
        }
        free(path);
    }
    check_note("%d commands, each with a page", commands);
    assert_true(commands > 20);
    xvfb_stop(&x);
}

/* ---- completion ---------------------------------------------------------------------------------- */

static void t_fish(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    if (!program_exists("fish"))
        skip();
    xvfb_folder(&x);
    program_run(&x, &o, WORDS("completion", "fish"));
    assert_int_equal(o.code, 0);
    char *script = xvfb_put(&x, "holorun.fish", o.out), *runs = xasprintf("%s/runs/one", x.dir);
    assert_int_equal(dir_make(runs, NULL), 0);
    static const struct {
        const char *line, *wanted;
    } cases[] = {
        {"holorun des", "desk"},
        {"holorun run --weights-in ", "auto\nmmap\nram"},
        {"holorun run --window s", "sawtooth\nstrict"},
        {"holorun run --no-rep", "--no-report"},
        {"holorun report ", "one"},
        {"holorun help ver", "version"},
        {"holorun completion z", "zsh"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *command =
            xasprintf("HOLORUN_RUNS=%s/runs fish --no-config -c 'source %s; complete -C \"%s\"' 2>&1 | "
                      "cut -f 1",
                      x.dir, script, cases[i].line);
        prints(command, cases[i].wanted);
        free(command);
    }
    free(script);
    free(runs);
    xvfb_stop(&x);
}

/* zsh completes only in a terminal, so its script is read and called directly. */
static void t_zsh(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    if (!program_exists("zsh"))
        skip();
    xvfb_folder(&x);
    program_run(&x, &o, WORDS("completion", "zsh"));
    assert_int_equal(o.code, 0);
    char *script = xvfb_put(&x, "_holorun", o.out);
    char *command = xasprintf("zsh -n %s 2>&1 && grep -c 'run) _arguments' %s", script, script);
    prints(command, "1");
    check_has(o.out, "--weights-in=[copy the weights to memory", ":(auto ram mmap)");
    free(command);
    free(script);
    xvfb_stop(&x);
}

/* ---- units --------------------------------------------------------------------------------------- */

static void t_units(void **state)
{
    struct xvfb x;
    static const char *const units[] = {"holorun-desk", "holorun-serve"};
    if (!program_exists("systemd-analyze"))
        skip();
    xvfb_folder(&x);
    for (size_t i = 0; i < 2; i++) {
        char *command = xasprintf(
            "sed \"s|/usr/bin/holorun|$(realpath %s)|\" assets/systemd/%s.service >%s/%s.service && "
            "XDG_RUNTIME_DIR=%s systemd-analyze verify --user --man=no %s/%s.service 2>&1 && "
            "systemd-analyze security --offline=true --no-pager --threshold=60 %s/%s.service >/dev/null 2>&1 && "
            "echo accepted",
            program_path(), units[i], x.dir, units[i], x.dir, x.dir, units[i], x.dir, units[i]);
        prints(command, "accepted");
        free(command);
    }
    xvfb_stop(&x);
}

/* ---- licences ------------------------------------------------------------------------------------ */

static void t_stated(void **state)
{
    static const struct {
        const char *name, *seed, *wanted; /* wanted: the stated licence; NULL: none */
    } cases[] = {
        {"README.md", "card", "nvidia-open"},
        {"config.json", "json", "mit"},
        {"a.safetensors", "safetensors", "cc-by-4.0"},
        {"a.gguf", "gguf", "apache-2.0"},
        {"LICENSE.txt", "text", "Apache License"},
        {"merges.txt", "text", NULL},
        {"a.safetensors", "gguf", NULL},
        {"a.gguf", "json", NULL},
        {"config.json", "text", NULL},
        {"README.md", "text", NULL},
        {"README.md", "below", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[128], *data, out[LICENCE_TEXT];
        size_t n;
        snprintf(path, sizeof path, "tests/fuzz/seeds/licence/%s", cases[i].seed);
        assert_int_equal(file_read(path, 1 << 20, &data, &n, NULL), 0);
        assert_int_equal(licence_stated(cases[i].name, data, n, out), cases[i].wanted != NULL);
        assert_string_equal(out, cases[i].wanted ? cases[i].wanted : "");
        free(data);
    }
}

static void t_license(void **state)
{
    struct xvfb x;
    struct outcome o = {0}, version = {0};
    xvfb_folder(&x);
    char *model = xvfb_place(&x, "m"), *card = xvfb_place(&x, "m/README.md"),
         *config = xvfb_place(&x, "m/config.json");
    assert_int_equal(dir_make(model, NULL), 0);
    assert_int_equal(file_write(config, "{}", 2, NULL), 0);
    assert_int_equal(file_write(card, "---\nlicense: mit\n---\n", 21, NULL), 0);
    program_run(&x, &o, WORDS("license", "--json", model));
    assert_int_equal(o.code, 0);
    json_t *all = json_loads(o.out, 0, NULL), *files = json_object_get(all, "files");
    assert_true(json_is_null(json_object_get(all, "licence")));
    assert_int_equal(json_array_size(files), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(files, 0), "licence")), "mit");
    assert_true(json_is_null(json_object_get(json_array_get(files, 1), "licence")) ||
                !json_object_get(json_array_get(files, 1), "licence"));

    /* the licence of every library of this build is printed */
    program_run(&x, &version, WORDS("version"));
    char *line = strstr(version.out, "libraries  ");
    assert_non_null(line);
    line += strlen("libraries  ");
    line[strcspn(line, "\n")] = 0;
    int n = 0;
    for (char *word = strtok(line, ", "); word; word = strtok(NULL, ", ")) {
        size_t i;
        json_t *part;
        bool known = word[strspn(word, "0123456789.")] == 0 || strspn(word, "0123456789.") > 0;
        json_array_foreach(json_object_get(all, "libraries"), i, part)
        {
            known = known || !strcmp(json_string_value(json_object_get(part, "name")), word);
        }
        if (!known)
            fail_msg("no licence is printed for %s", word);
        n++;
    }
    assert_true(n > 20);
    json_decref(all);
    free(model);
    free(card);
    free(config);
    outcome_free(&o);
    outcome_free(&version);
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("each command has a manual page, which man reads without a warning", t_pages),
    CLAIM("fish completes commands, options, choices, runs", t_fish),
    CLAIM("zsh reads its script, which has every option", t_zsh),
    CLAIM("systemd accepts the user units", t_units),
    CLAIM("the licence of a file is the one that the file states, or none where it states none", t_stated),
    CLAIM("license names every library of this build, and invents nothing for a model", t_license),
};

CHECK_MAIN()
