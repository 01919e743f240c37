/* known.c - table of models with short names, and lookup of downloads in the Hugging Face cache; see
 * known.h.
 *
 * The sizes of vision models are those of the published files. The duration of a step is estimated from
 * the parameter counts (cmd/models.c). The sizes of text models follow from their published
 * configurations, at 2 bytes per parameter. The two small Qwen3 models store the embedding twice, the
 * second time as lm_head. */
#include "checkpoint/known.h"

#include "base/file.h"
#include "checkpoint/find.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define APACHE "Apache-2.0"
#define NVIDIA "NVIDIA open model"

/* clang-format off */
const struct known_model known_models[] = {
    {"holo3.1-0.8b", "Hcompany/Holo-3.1-0.8B", "any machine", APACHE,
     2.2, 753, 753, 101, 2040, 8160},
    {"holo3.1-4b", "Hcompany/Holo-3.1-4B", "GPU with 12 GB; slow on a CPU", APACHE,
     10.4, 4206, 4206, 334, 2040, 8160},
    {"holo3.1-9b", "Hcompany/Holo-3.1-9B", "GPU with 24 GB", APACHE,
     18.8, 8954, 8954, 456, 2040, 8160},
    {"holo3.1-35b-a3b", "Hcompany/Holo-3.1-35B-A3B", "best of its family; needs much memory", APACHE,
     70.2, 34661, 2946, 447, 2040, 8160},
    {"holo2-4b", "Hcompany/Holo2-4B", "like Holo 3.1 4B; older family", "see model card",
     8.9, 4022, 4022, 415, 2040, 8160},
    {"holo1.5-7b", "Hcompany/Holo1.5-7B", "element localization; GPU with 24 GB", APACHE,
     16.6, 7616, 7616, 677, 2691, 10764},
    {"fara-7b", "microsoft/Fara-7B", "web pages; GPU with 24 GB", "MIT",
     16.6, 7616, 7616, 677, 2691, 10764},
    {"holotron-12b", "Hcompany/Holotron-12B", "many sessions on one large GPU", NVIDIA,
     26.4, 12310, 12310, 653, 3328, 13312},
    {"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B-Instruct", "text only; any machine", APACHE,
     1.0, 494, 494, 0, 0, 0},
    {"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B-Instruct", "text only", APACHE,
     3.1, 1544, 1544, 0, 0, 0},
    {"qwen2.5-3b", "Qwen/Qwen2.5-3B-Instruct", "text only", "see model card",
     6.2, 3086, 3086, 0, 0, 0},
    {"qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct", "text only", APACHE,
     15.2, 7616, 7616, 0, 0, 0},
    {"qwen2.5-coder-0.5b", "Qwen/Qwen2.5-Coder-0.5B-Instruct", "text only: code; any machine", APACHE,
     1.0, 494, 494, 0, 0, 0},
    {"qwen2.5-coder-1.5b", "Qwen/Qwen2.5-Coder-1.5B-Instruct", "text only: code", APACHE,
     3.1, 1544, 1544, 0, 0, 0},
    {"qwen2.5-coder-3b", "Qwen/Qwen2.5-Coder-3B-Instruct", "text only: code", "see model card",
     6.2, 3086, 3086, 0, 0, 0},
    {"qwen2.5-coder-7b", "Qwen/Qwen2.5-Coder-7B-Instruct", "text only: code", APACHE,
     15.2, 7616, 7616, 0, 0, 0},
    {"qwen3-0.6b", "Qwen/Qwen3-0.6B", "text only; any machine", APACHE,
     1.5, 596, 596, 0, 0, 0},
    {"qwen3-1.7b", "Qwen/Qwen3-1.7B", "text only", APACHE,
     4.1, 1721, 1721, 0, 0, 0},
    {"qwen3-4b", "Qwen/Qwen3-4B", "text only", APACHE,
     8.0, 4022, 4022, 0, 0, 0},
    {"qwen3-8b", "Qwen/Qwen3-8B", "text only", APACHE,
     16.4, 8191, 8191, 0, 0, 0},
    {0},
};
/* clang-format on */

const struct known_model *known_find(const char *name)
{
    for (const struct known_model *m = known_models; m->name; m++)
        if (!strcasecmp(m->name, name) || !strcasecmp(m->repo, name))
            return m;
    return NULL;
}

bool known_is_text(const struct known_model *m)
{
    return m->vision <= 0;
}

const char *known_fits(const struct known_model *m, double budget, double *bits)
{
    static const struct {
        const char *name;
        double bits;
    } forms[] = {{"bf16", 16}, {"int8", 8.25}, {"int4", 4.5}};
    enum { BESIDE = 1000000000 }; /* states, KV cache and images, in bytes */
    double all = (m->language + m->vision) * 1e6;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (all * forms[i].bits / 8 + BESIDE < 0.75 * budget) {
            *bits = forms[i].bits;
            return forms[i].name;
        }
    return NULL;
}

const struct known_model *known_better(double budget, bool *pulled)
{
    const struct known_model *best = NULL;
    double bits;
    *pulled = false;
    for (const struct known_model *m = known_models; m->name; m++) {
        if (known_is_text(m) || !known_fits(m, budget, &bits))
            continue;
        autofree char *here = known_pulled(m->name, NULL);
        if (here || !best)
            best = m;
        *pulled = *pulled || here;
    }
    return best;
}

/* Returns whether a text is a valid part of a repository name: letters, digits, '-', '_' and '.', without
 * ".." and "--", beginning with a letter or digit, at most 96 characters. */
static bool is_part(const char *s, size_t n)
{
    if (n == 0 || n > 96 || !isalnum((unsigned char)s[0]))
        return false;
    for (size_t i = 0; i < n; i++) {
        bool twice = i && s[i] == s[i - 1] && (s[i] == '.' || s[i] == '-');
        if (twice || (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i])))
            return false;
    }
    return true;
}

bool known_is_repo(const char *text)
{
    const char *slash = strchr(text, '/');
    return slash && is_part(text, (size_t)(slash - text)) && is_part(slash + 1, strlen(slash + 1));
}

char *known_cache(struct err *e)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *at = getenv(places[i].variable);
        if (at && *at == '/')
            return xasprintf("%s%s", at, places[i].below);
        if (at && *at) {
            err_set(e, ERR_ENV, "%s is '%s'; it must be an absolute path", places[i].variable, at);
            return NULL;
        }
    }
    err_set(e, ERR_ENV, "model directory: HOME is not set; set HF_HOME");
    return NULL;
}

char *known_folder(const char *cache, const char *repo)
{
    const char *slash = strchr(repo, '/');
    return xasprintf("%s/models--%.*s--%s", cache, (int)(slash - repo), repo, slash + 1);
}

bool known_is_commit(const char *s)
{
    return strlen(s) == 40 && strspn(s, "0123456789abcdef") == 40;
}

/* Returns the commit of a branch, tag or commit of a downloaded repository; NULL if it has no such ref. */
static char *read_ref(const char *folder, const char *revision)
{
    char *path = xasprintf("%s/refs/%s", folder, revision), *text = NULL;
    size_t len;
    if (known_is_commit(revision))
        text = xstrdup(revision);
    else if (!strstr(revision, "..") && file_read(path, 64, &text, &len, NULL) == 0)
        text[strcspn(text, " \r\n")] = 0;
    if (text && !known_is_commit(text)) {
        free(text);
        text = NULL;
    }
    free(path);
    return text;
}

bool known_is_folder(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    static const char below[] = "/snapshots";
    if (n > sizeof below && !strncmp(path + n - (sizeof below - 1), below, sizeof below - 1))
        n -= sizeof below - 1;
    size_t at = n;
    while (at && path[at - 1] != '/')
        at--;
    return n - at > 8 && !strncmp(path + at, "models--", 8) && file_exists(path);
}

/* Returns the commit of the single snapshot in a directory; NULL if there are none or several. */
static char *only_commit(const char *folder)
{
    char *path = xasprintf("%s/snapshots", folder), *only = NULL;
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (!known_is_commit(entry->d_name))
            continue;
        free(only);
        only = xstrdup(entry->d_name);
        n++;
    }
    if (d)
        closedir(d);
    free(path);
    if (n == 1)
        return only;
    free(only);
    return NULL;
}

char *known_snapshot(const char *folder, const char *revision, struct err *e)
{
    autofree char *commit = read_ref(folder, revision);
    if (!commit && !strcmp(revision, "main"))
        commit = only_commit(folder);
    char *path = commit ? xasprintf("%s/snapshots/%s", folder, commit) : NULL;
    if (path && !file_exists(path)) {
        free(path);
        path = NULL;
    }
    if (!path)
        err_set(e, ERR_MODEL, "'%s' has no snapshot of '%s'", folder, revision);
    return path;
}

/* Counts the partially downloaded files of a repository. */
static int count_unfinished(const char *folder)
{
    static const char end[] = ".incomplete";
    autofree char *path = xasprintf("%s/blobs", folder);
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        size_t len = strlen(entry->d_name);
        n += len > sizeof end && !strcmp(entry->d_name + len - (sizeof end - 1), end);
    }
    if (d)
        closedir(d);
    return n;
}

char *known_model_in(const char *folder, const char *snapshot, struct err *e)
{
    struct err why = ERR_INIT;
    char *found = model_in(snapshot, &why);
    int unfinished = found ? 0 : count_unfinished(folder);
    if (!found && unfinished)
        err_set(e, ERR_MODEL, "the download of '%s' is incomplete: %d file%s not finished; pull it again",
                folder, unfinished, unfinished == 1 ? " is" : "s are");
    else if (!found)
        err_set(e, ERR_MODEL, "%s%s", why.kind ? why.text : snapshot,
                why.kind ? "" : " has neither config.json nor a GGUF file");
    return found;
}

char *known_pulled(const char *name, struct err *e)
{
    const struct known_model *m = known_find(name);
    char *repo = xstrdup(m ? m->repo : name), *at = strchr(repo, '@'), *found = NULL;
    if (at)
        *at = 0;
    if (!m && (m = known_find(repo))) {
        free(repo);
        repo = xstrdup(m->repo);
    }
    autofree char *cache = known_is_repo(repo) ? known_cache(e) : NULL;
    autofree char *folder = cache ? known_folder(cache, repo) : NULL;
    const char *revision = strchr(name, '@') ? strchr(name, '@') + 1 : "main";
    autofree char *snapshot = folder ? known_snapshot(folder, revision, NULL) : NULL;
    if (snapshot)
        found = known_model_in(folder, snapshot, e);
    if (cache && !snapshot)
        err_set(e, ERR_MODEL, "model '%s' is not downloaded; run 'holorun pull %s'", name, name);
    else if (!cache && !known_is_repo(repo))
        err_set(e, ERR_MODEL,
                "'%s' is neither a directory nor a known model; 'holorun models' lists the models", name);
    free(repo);
    return found;
}
