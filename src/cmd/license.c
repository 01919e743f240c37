/* license.c - `holorun license`: prints the licences of the program, its libraries and a model.
 *
 * Libraries are linked when the program starts and belong to the system; their entries summarize their own
 * copyright files.  For a model only the statements of its files are printed; if a file states nothing, no
 * licence is assumed. */
#include "cmd/commands.h"

#include "base/feature.h"
#include "checkpoint/find.h"
#include "checkpoint/licence.h"
#include "cli/version.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NONE_CHOSEN "none chosen by its owner"

struct settings {
    bool json;
};

static const struct option_spec options[] = {JSON_OPTION(struct settings), {0}};

const struct command license_command = {
    .name = "license",
    .arguments = "[DIR]",
    .purpose = "print the licences of the program, its libraries and a model",
    .details =
        "Lists the program itself, the files embedded in it, the libraries it is linked with, and the files "
        "of a model directory (default: the embedded model) with the licence that each states: README.md in "
        "its front matter, JSON in its key license, weights in their metadata, LICENSE and NOTICE in their "
        "first line. A file without a statement is listed as such. The web page of a model is not consulted.",
    .examples = "holorun license\nholorun license ~/models/Holo-3.1-0.8B\n",
    .options = options,
    .run = cmd_license,
};

/* from their own copyright files, as SPDX identifiers */
static const struct part {
    const char *name, *licence;
} libraries[] = {
    {"glibc", "LGPL-2.1-or-later"},
    {"x11", "MIT"},
    {"x11-xcb", "MIT"},
    {"xau", "MIT"},
    {"xcb", "MIT"},
    {"xtst", "MIT"},
    {"xext", "MIT"},
    {"xfixes", "MIT"},
    {"xdamage", "MIT"},
    {"xrandr", "MIT"},
    {"xi", "MIT"},
    {"xdo", "BSD-3-Clause"},
    {"jansson", "MIT"},
    {"libpcre2-8", "BSD-3-Clause"},
    {"spng", "BSD-2-Clause AND libpng-2.0"},
    {"libjpeg", "IJG AND BSD-3-Clause AND Zlib"},
    {"libxxhash", "BSD-2-Clause"},
    {"libmd", "BSD-3-Clause AND BSD-2-Clause AND ISC AND Beerware"},
    {"yaml-0.1", "MIT"},
    {"sdl2", "Zlib"},
    {"pangocairo", "LGPL-2.0-or-later"},
    {"cairo", "LGPL-2.1-only OR MPL-1.1"},
    {"dbus-1", "AFL-2.1 OR GPL-2.0-or-later"},
    {"glib-2.0", "LGPL-2.1-or-later"},
    {"libcurl", "curl"},
    {"libmicrohttpd", "LGPL-2.1-or-later"},
    {"libvncserver", "GPL-2.0-or-later: a program distributed with it must be under the GPL as a whole"},
};

/* files that the build embeds into the program */
static const struct part embedded[] = {
    {"prompts/", NONE_CHOSEN},
    {"rules, report pages, styles", NONE_CHOSEN},
    {"assets/calibrate/glyphs.png", NONE_CHOSEN},
};

/* Returns whether a library is part of this build; false for libraries of a feature that it lacks. */
static bool is_linked(const char *library)
{
    for (int i = 0; i < FEATURES; i++)
        if (!feature_get(i)->built && strstr(feature_get(i)->libraries, library))
            return false;
    return true;
}

static json_t *list_of(const struct part *parts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (is_linked(parts[i].name))
            json_array_append_new(
                list, json_pack("{s:s, s:s}", "name", parts[i].name, "licence", parts[i].licence));
    return list;
}

/* Returns a file's name and the licence that it states; null: none. */
static json_t *of_file(const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s", dir, name), *head = xmalloc(LICENCE_HEAD, 1), text[LICENCE_TEXT];
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(head, 1, LICENCE_HEAD, f) : 0;
    json_t *file =
        json_pack("{s:s, s:s?}", "name", name, "licence", licence_stated(name, head, n, text) ? text : NULL);
    if (f)
        fclose(f);
    free(head);
    free(path);
    return file;
}

static int is_file(const char *dir, const char *name)
{
    autofree char *path = xasprintf("%s/%s", dir, name);
    struct stat st;
    return name[0] != '.' && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static json_t *files_of(const char *dir)
{
    json_t *list = json_array();
    struct dirent **names;
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (is_file(dir, names[i]->d_name))
            json_array_append_new(list, of_file(dir, names[i]->d_name));
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return list;
}

static void print_list(const char *heading, const json_t *list)
{
    size_t i;
    json_t *part;
    printf("\n%s:\n", heading);
    json_array_foreach(list, i, part)
    {
        const char *licence = json_string_value(json_object_get(part, "licence"));
        printf("  %-28s %s\n", json_string_value(json_object_get(part, "name")),
               licence ? licence : "states none");
    }
}

static void print_text(const json_t *all)
{
    autofree char *heading = xasprintf("model %s", json_string_value(json_object_get(all, "model")));
    printf("holorun %s: %s\n", HOLORUN_VERSION, NONE_CHOSEN);
    print_list("embedded in the program", json_object_get(all, "embedded"));
    print_list("linked libraries", json_object_get(all, "libraries"));
    print_list(heading, json_object_get(all, "files"));
}

int cmd_license(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int n = options_parse(&license_command, &s, argc, argv, &e);
    if (n < 0)
        return options_refuse(&license_command, &e);
    autofree char *dir = model_find(n ? argv[0] : NULL, &e);
    if (!dir)
        return options_failed(&e);
    json_t *all = json_pack("{s:s, s:n, s:o, s:o, s:s, s:o}", "version", HOLORUN_VERSION, "licence",
                            "embedded", list_of(embedded, sizeof embedded / sizeof *embedded), "libraries",
                            list_of(libraries, sizeof libraries / sizeof *libraries), "model", dir, "files",
                            files_of(dir));
    if (s.json) {
        options_print_json(all, 0);
    } else {
        print_text(all);
        json_decref(all);
    }
    return 0;
}
