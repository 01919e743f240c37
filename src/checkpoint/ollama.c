/* ollama.c - see ollama.h.
 *
 * A name becomes the path of a manifest, as Ollama fills it up: registry.ollama.ai/library/NAME:latest.  For
 * a blob the manifests are searched for the one that lists it, whose projector it then gets.  Manifests are
 * read up to 1 MiB, at most SEARCHED of them, MAX_DEPTH folders deep.
 */
#include "checkpoint/ollama.h"

#include "base/file.h"

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_MANIFEST = 1 << 20, MAX_LAYERS = 64, SEARCHED = 4096, MAX_DEPTH = 5, DIGITS = 64, ROOTS = 4 };

#define PREFIX   "ollama:"
#define DIGEST   "sha256-"
#define LAYER    "application/vnd.ollama.image."
#define HOST     "registry.ollama.ai"
#define MANIFEST "/manifests/"

/* Returns whether a text is "sha256", one of two separators and 64 hex digits. */
static bool is_digest(const char *s)
{
    return !strncmp(s, "sha256", 6) && (s[6] == '-' || s[6] == ':') &&
           strspn(s + 7, "0123456789abcdef") == DIGITS && !s[7 + DIGITS];
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool ollama_is_name(const char *option)
{
    bool blob = is_digest(base_of(option)) && (base_of(option)[6] == '-' || !strchr(option, '/'));
    struct stat st;
    if (strchr(option, ',')) /* two files */
        return false;
    bool manifest = strstr(option, MANIFEST) && stat(option, &st) == 0 && S_ISREG(st.st_mode);
    return !strncmp(option, PREFIX, sizeof PREFIX - 1) || blob || manifest;
}

/* Fills in the folders of models that exist; the caller frees them. */
static int find_roots(char *roots[ROOTS])
{
    const char *set = getenv("OLLAMA_MODELS"), *home = getenv("HOME");
    char *all[ROOTS] = {set && *set ? xstrdup(set) : NULL,
                        home && *home ? xasprintf("%s/.ollama/models", home) : NULL,
                        xstrdup("/usr/share/ollama/.ollama/models"), xstrdup("/var/lib/ollama")};
    int n = 0;
    for (int i = 0; i < ROOTS; i++)
        if (all[i] && file_exists(all[i]))
            roots[n++] = all[i];
        else
            free(all[i]);
    return n;
}

static char *blob_path(const char *root, const char *digest)
{
    return xasprintf("%s/blobs/" DIGEST "%s", root, digest + sizeof DIGEST - 1);
}

/* ---- manifests ----------------------------------------------------------------------------------------- */

static json_t *parse_manifest(const char *text, size_t len, const char *name, struct err *e)
{
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        err_set(e, ERR_MODEL, "'%s' is not a manifest of Ollama: line %d: %s", name, why.line, why.text);
    return root;
}

static json_t *read_manifest(const char *path, struct err *e)
{
    char *text;
    size_t len;
    if (file_read(path, MAX_MANIFEST, &text, &len, e))
        return NULL;
    json_t *root = parse_manifest(text, len, path, e);
    free(text);
    return root;
}

/* Returns the first layer of a kind; NULL: none. */
static const json_t *find_layer(const json_t *manifest, const char *kind)
{
    size_t i;
    json_t *layer;
    json_array_foreach(json_object_get(manifest, "layers"), i, layer)
    {
        const char *type = json_string_value(json_object_get(layer, "mediaType"));
        if (i < MAX_LAYERS && type && !strncmp(type, LAYER, sizeof LAYER - 1) &&
            !strcmp(type + sizeof LAYER - 1, kind))
            return layer;
    }
    return NULL;
}

static const char *digest_of(const json_t *layer)
{
    const char *digest = json_string_value(json_object_get(layer, "digest"));
    return digest && is_digest(digest) ? digest : NULL;
}

/* Returns the path of a layer's blob; NULL when the blob is missing or shorter than its size. */
static char *layer_path(const char *root, const json_t *layer, const char *name, struct err *e)
{
    const char *digest = digest_of(layer);
    if (!digest) {
        err_set(e, ERR_MODEL, "the manifest of '%s' has a layer without a SHA-256 digest", name);
        return NULL;
    }
    char *path = blob_path(root, digest);
    json_int_t size = json_integer_value(json_object_get(layer, "size"));
    struct stat st;
    if (stat(path, &st) == 0 && (size <= 0 || st.st_size == size))
        return path;
    err_set(e, ERR_MODEL, "the download of '%s' is incomplete: '%s' is %s; 'ollama pull' continues it", name,
            path, file_exists(path) ? "cut short" : "missing");
    free(path);
    return NULL;
}

static char *place_of(const char *root, const json_t *manifest, const char *name, struct err *e)
{
    const json_t *model = find_layer(manifest, "model"), *eyes = find_layer(manifest, "projector");
    if (!model) {
        err_set(e, ERR_MODEL, "'%s' has no GGUF model in its manifest%s", name,
                find_layer(manifest, "tensor") ? ", but single tensors, which are not supported" : "");
        return NULL;
    }
    if (find_layer(manifest, "adapter")) {
        err_set(e, ERR_MODEL, "'%s' is a model with an adapter, which is not supported; name its base model",
                name);
        return NULL;
    }
    char *place = layer_path(root, model, name, e),
         *second = place && eyes ? layer_path(root, eyes, name, e) : NULL;
    if (place && eyes) {
        char *both = second ? xasprintf("%s,%s", place, second) : NULL;
        free(place);
        place = both;
    }
    free(second);
    return place;
}

char *ollama_place(const char *models, const char *text, size_t len, const char *name, struct err *e)
{
    json_t *manifest = parse_manifest(text, len, name, e);
    char *place = manifest ? place_of(models, manifest, name, e) : NULL;
    json_decref(manifest);
    return place;
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* HOST/NAMESPACE/NAME/TAG of a name; NULL with a message when it is not one. */
static char *manifest_of_name(const char *name, struct err *e)
{
    const char *colon = strrchr(name, ':'), *slash = strrchr(name, '/');
    if (colon && slash && colon < slash) /* a port */
        colon = NULL;
    char *path = xasprintf("%.*s", (int)(colon ? colon - name : (ptrdiff_t)strlen(name)), name);
    const char *tag = colon ? colon + 1 : "latest";
    int slashes = 0;
    for (const char *p = path; *p; p++)
        slashes += *p == '/';
    const char *front = slashes == 0 ? HOST "/library/" : slashes == 1 ? HOST "/" : "";
    char *full = xasprintf("%s%s/%s", front, path, tag);
    bool bad = !*path || !*tag || slashes > 2 || strstr(full, "..") || strstr(full, "//") || full[0] == '/';
    free(path);
    if (!bad)
        return full;
    free(full);
    err_set(e, ERR_MODEL,
            "'%.200s' is not a name of Ollama; write ollama:NAME, ollama:NAME:TAG or ollama:USER/NAME:TAG",
            name);
    return NULL;
}

static char *find_name(const char *name, char *const *roots, int n, struct err *e)
{
    char *below = manifest_of_name(name, e), *place = NULL;
    bool found = false;
    for (int i = 0; below && i < n && !found; i++) {
        char *path = xasprintf("%s" MANIFEST "%s", roots[i], below);
        found = file_exists(path);
        json_t *manifest = found ? read_manifest(path, e) : NULL;
        if (manifest)
            place = place_of(roots[i], manifest, name, e);
        json_decref(manifest);
        free(path);
    }
    if (below && !found)
        err_set(e, ERR_MODEL, "'%.200s' is not among the models of Ollama%s%s; 'ollama pull' fetches it",
                name, n ? " in " : ", whose folder was not found: OLLAMA_MODELS names it", n ? roots[0] : "");
    free(below);
    return place;
}

/* ---- blobs --------------------------------------------------------------------------------------------- */

struct search {
    const char *root, *digest;
    char *found;
    int left; /* manifests that may still be read */
};

/* Finds the place that a manifest below a folder gives to this blob; others of the blob may be incomplete. */
static void search_folder(struct search *s, const char *dir, int depth)
{
    DIR *d = depth < MAX_DEPTH ? opendir(dir) : NULL;
    for (struct dirent *entry; d && !s->found && (entry = readdir(d));) {
        struct stat st;
        if (entry->d_name[0] == '.')
            continue;
        char *path = xasprintf("%s/%s", dir, entry->d_name);
        bool there = lstat(path, &st) == 0;
        if (there && S_ISDIR(st.st_mode)) {
            search_folder(s, path, depth + 1);
        } else if (there && S_ISREG(st.st_mode) && s->left-- > 0) {
            json_t *manifest = read_manifest(path, NULL);
            const char *digest = digest_of(find_layer(manifest, "model"));
            if (digest && !strcmp(digest + 7, s->digest + 7))
                s->found = place_of(s->root, manifest, s->digest, NULL);
            json_decref(manifest);
        }
        free(path);
    }
    if (d)
        closedir(d);
}

/* The place of a blob that exists, in MODELS/blobs or wherever it was copied to. */
static char *find_projector(const char *path)
{
    size_t n = strlen(path) - strlen(base_of(path));
    char *root = n ? xasprintf("%.*s..", (int)n, path) : xstrdup(".."),
         *manifests = xasprintf("%s/manifests", root);
    struct search s = {.root = root, .digest = base_of(path), .left = SEARCHED};
    search_folder(&s, manifests, 0);
    bool eyes = s.found && strchr(s.found, ',');
    char *place = eyes ? xasprintf("%s,%.*s%s", path, (int)n, path, base_of(s.found)) : xstrdup(path);
    free(s.found);
    free(manifests);
    free(root);
    return place;
}

static char *find_blob(const char *option, char *const *roots, int n, struct err *e)
{
    char *place = NULL;
    if (file_exists(option))
        return find_projector(option);
    for (int i = 0; i < n && !place && !strchr(option, '/'); i++) {
        char *path = blob_path(roots[i], option);
        if (file_exists(path))
            place = find_projector(path);
        free(path);
    }
    if (!place)
        err_set(e, ERR_MODEL, "the blob '%s' was not found%s%s", option,
                n ? " in " : ": OLLAMA_MODELS names its folder", n ? roots[0] : "");
    return place;
}

static char *find_manifest(const char *path, struct err *e)
{
    json_t *manifest = read_manifest(path, e);
    char *root = xasprintf("%.*s", (int)(strstr(path, MANIFEST) - path), path);
    char *place = manifest ? place_of(root, manifest, path, e) : NULL;
    json_decref(manifest);
    free(root);
    return place;
}

char *ollama_find(const char *option, struct err *e)
{
    char *roots[ROOTS], *place;
    int n = find_roots(roots);
    if (!strncmp(option, PREFIX, sizeof PREFIX - 1))
        place = find_name(option + sizeof PREFIX - 1, roots, n, e);
    else if (is_digest(base_of(option)))
        place = find_blob(option, roots, n, e);
    else
        place = find_manifest(option, e);
    for (int i = 0; i < n; i++)
        free(roots[i]);
    return place;
}
