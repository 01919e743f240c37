/* pull.c - `holorun pull`: downloads a model from the hub. */
#include "cmd/commands.h"

#include "base/json.h"
#include "checkpoint/hub.h"
#include "checkpoint/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *revision, *key;
    const char *include[OPTION_LIST_MAX + 1];
    bool list, quiet, json;
};

static const struct option_spec options[] = {
    {"revision", 'r', OPTION_TEXT, offsetof(struct settings, revision), "REV", 0, 200, "main",
     "branch, tag or commit; a commit never changes", NULL},
    {"key", 'k', OPTION_TEXT, offsetof(struct settings, key), "env:VAR|file:PATH", 0, 4096, NULL,
     "token for models that require one; default: the file in which other tools keep it", NULL},
    {"include", 'i', OPTION_LIST, offsetof(struct settings, include), "PATTERN", 0, 200, NULL,
     "files to download, such as '*.gguf', instead of those of a model directory", NULL},
    {"list", 'l', OPTION_FLAG, offsetof(struct settings, list),
     .help = "list the files without downloading them"},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct settings, quiet), .help = "no progress on stderr"},
    JSON_OPTION(struct settings),
    {0},
};

const struct command pull_command = {
    "pull",
    "NAME",
    "download a model from the model hub",
    "NAME is a name that 'holorun models' lists, or ORG/NAME. Connects to the hub and to the hosts that it "
    "redirects to; only the hub receives the token. Sizes and hashes are verified, and an interrupted "
    "download is resumed. The files are stored in the cache that other tools for such models use ($HF_HOME, "
    "$HF_HUB_CACHE). HF_ENDPOINT selects another hub, such as a mirror in a closed network; without network "
    "access, copy the files from another machine and give their folder to --model. The folder of the model "
    "is printed; --model NAME finds it.",
    "holorun pull holo3.1-0.8b && holorun run --model holo3.1-0.8b 'Open the report.'\n"
    "holorun pull Hcompany/Holotron-12B --list\nholorun pull ORG/NAME --revision COMMIT --key file:token\n",
    options,
    cmd_pull};

static void print_list(const struct hub *h)
{
    const struct hub_listing *l = hub_listing(h);
    for (int i = 0; i < l->n; i++)
        printf("%12llu  %s\n", (unsigned long long)l->files[i].size, l->files[i].path);
}

static void print_json(const struct hub *h, const char *repo, const char *folder)
{
    const struct hub_listing *l = hub_listing(h);
    json_t *files = json_array();
    for (int i = 0; i < l->n; i++)
        json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "path", l->files[i].path, "bytes",
                                               (json_int_t)l->files[i].size, "hash", l->files[i].hash));
    json_auto_t *o = json_pack("{s:s, s:s, s:s?, s:I, s:o}", "repository", repo, "commit", l->commit,
                               "folder", folder, "bytes", (json_int_t)l->bytes, "files", files);
    json_print(o, stdout, JSON_COMPACT);
    putchar('\n');
}

/* Writes a size such as "2.21 GB" or "11.0 MB". */
static const char *size_text(uint64_t bytes, char out[32])
{
    if (bytes >= 1000000000)
        snprintf(out, 32, "%.2f GB", (double)bytes / 1e9);
    else
        snprintf(out, 32, "%.1f MB", (double)bytes / 1e6);
    return out;
}

static void tell(const struct hub *h, const struct settings *s, const char *repo)
{
    const struct hub_listing *l = hub_listing(h);
    char all[32], missing[32];
    if (s->quiet)
        return;
    fprintf(stderr, "holorun: %s at %.12s from %s: %d files, %s, %s to download\n", repo, l->commit,
            hub_endpoint(h), l->n, size_text(l->bytes, all), size_text(hub_missing(h), missing));
    if (hub_before(h))
        fprintf(stderr, "holorun: '%s' was previously %.12s\n", s->revision, hub_before(h));
}

int cmd_pull(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int n = options_parse(&pull_command, &s, argc, argv, &e);
    if (n >= 0 && n != 1)
        n = err_set(&e, ERR_USAGE,
                    n ? "pull takes one model" : "no model given; 'holorun models' lists the known models");
    if (n < 0)
        return options_refuse(&pull_command, &e);
    const struct known_model *m = known_find(argv[0]);
    const struct pull_options o = {.repo = m ? m->repo : argv[0],
                                   .revision = s.revision,
                                   .key = s.key,
                                   .include = s.include,
                                   .quiet = s.quiet};
    struct hub *h = hub_open(&o, &e);
    autofree char *folder = NULL;
    if (h)
        tell(h, &s, o.repo);
    if (h && !s.list)
        folder = hub_pull(h, &e);
    bool good = h && (s.list || folder);
    if (good && s.json)
        print_json(h, o.repo, folder);
    else if (good && s.list)
        print_list(h);
    else if (good)
        puts(folder);
    hub_close(h);
    return good ? 0 : options_failed(&e);
}
