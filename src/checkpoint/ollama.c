/* ollama.c - models in Ollama's local store: names, blobs and manifests; see ollama.h.
 *
 * A name is completed to the path of a manifest as Ollama does: registry.ollama.ai/library/NAME:latest. A
 * blob is a GGUF model without its vision file, so that the manifests are searched for one that lists the
 * blob with a projector. At most SEARCHED manifests of at most 1 MiB are read, in directories at most
 * MAX_DEPTH deep. */
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

/* Returns whether a text is "sha256", '-' or ':', and 64 lower-case hex digits. */
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
    if (strchr(option, ',')) /* two GGUF files */
        return false;
    bool manifest = strstr(option, MANIFEST) && stat(option, &st) == 0 && S_ISREG(st.st_mode);
    return !strncmp(option, PREFIX, sizeof PREFIX - 1) || blob || manifest;
}

/* Fills roots with the existing store directories and returns their number. The caller frees them. */
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
        err_set(e, ERR_MODEL, "'%s' is not an Ollama manifest: line %d: %s", name, why.line, why.text);
    return root;
}

static json_t *read_manifest(const char *path, struct err *e)
{
    autofree char *text = NULL;
    size_t len;
    if (file_read(path, MAX_MANIFEST, &text, &len, e))
        return NULL;
    return parse_manifest(text, len, path, e);
}

/* Returns the first layer of a kind; NULL if there is none. */
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

/* Returns the path of a layer's blob; NULL with e if the blob is missing or its size differs from the
 * manifest. */
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
    err_set(e, ERR_MODEL, "the download of '%s' is incomplete: '%s' is %s; run 'ollama pull'", name, path,
            file_exists(path) ? "truncated" : "missing");
    free(path);
    return NULL;
}

static char *place_of(const char *root, const json_t *manifest, const char *name, struct err *e)
{
    const json_t *model = find_layer(manifest, "model"), *vision = find_layer(manifest, "projector");
    if (!model) {
        err_set(e, ERR_MODEL, "the manifest of '%s' lists no GGUF model%s", name,
                find_layer(manifest, "tensor") ? ", only single tensors, which are not supported" : "");
        return NULL;
    }
    if (find_layer(manifest, "adapter")) {
        err_set(e, ERR_MODEL, "'%s' has an adapter, which is not supported; use its base model", name);
        return NULL;
    }
    char *place = layer_path(root, model, name, e),
         *second = place && vision ? layer_path(root, vision, name, e) : NULL;
    if (place && vision) {
        char *both = second ? xasprintf("%s,%s", place, second) : NULL;
        free(place);
        place = both;
    }
    free(second);
    return place;
}

char *ollama_place(const char *models, const char *text, size_t len, const char *name, struct err *e)
{
    json_auto_t *manifest = parse_manifest(text, len, name, e);
    return manifest ? place_of(models, manifest, name, e) : NULL;
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* Returns the manifest path HOST/NAMESPACE/NAME/TAG of a model name; NULL with e if the name is invalid. */
static char *manifest_of_name(const char *name, struct err *e)
{
    const char *colon = strrchr(name, ':'), *slash = strrchr(name, '/');
    if (colon && slash && colon < slash) /* the colon separates a port */
        colon = NULL;
    autofree char *path = xasprintf("%.*s", (int)(colon ? colon - name : (ptrdiff_t)strlen(name)), name);
    const char *tag = colon ? colon + 1 : "latest";
    int slashes = 0;
    for (const char *p = path; *p; p++)
        slashes += *p == '/';
    const char *front = slashes == 0 ? HOST "/library/" : slashes == 1 ? HOST "/" : "";
    char *full = xasprintf("%s%s/%s", front, path, tag);
    bool bad = !*path || !*tag || slashes > 2 || strstr(full, "..") || strstr(full, "//") || full[0] == '/';
    if (!bad)
        return full;
    free(full);
    err_set(e, ERR_MODEL,
            "'%.200s' is not an Ollama model name; use ollama:NAME, ollama:NAME:TAG or ollama:USER/NAME:TAG",
            name);
    return NULL;
}

static char *find_name(const char *name, char *const *roots, int n, struct err *e)
{
    char *below = manifest_of_name(name, e), *place = NULL;
    bool found = false;
    for (int i = 0; below && i < n && !found; i++) {
        autofree char *path = xasprintf("%s" MANIFEST "%s", roots[i], below);
        found = file_exists(path);
        json_auto_t *manifest = found ? read_manifest(path, e) : NULL;
        if (manifest)
            place = place_of(roots[i], manifest, name, e);
    }
    if (below && !found)
        err_set(e, ERR_MODEL, "Ollama model '%.200s' not found%s%s; run 'ollama pull'", name,
                n ? " in " : ": no model directory; set OLLAMA_MODELS", n ? roots[0] : "");
    free(below);
    return place;
}

/* ---- blobs --------------------------------------------------------------------------------------------- */

struct search {
    const char *root, *digest;
    char *found;
    int left; /* manifests that may still be read */
};

/* Searches a directory recursively for a manifest that lists the blob s->digest as its model, and sets
 * s->found to the GGUF place of that model. Manifests with missing blobs are skipped. */
static void search_folder(struct search *s, const char *dir, int depth)
{
    DIR *d = depth < MAX_DEPTH ? opendir(dir) : NULL;
    for (struct dirent *entry; d && !s->found && (entry = readdir(d));) {
        struct stat st;
        if (entry->d_name[0] == '.')
            continue;
        autofree char *path = xasprintf("%s/%s", dir, entry->d_name);
        bool there = lstat(path, &st) == 0;
        if (there && S_ISDIR(st.st_mode)) {
            search_folder(s, path, depth + 1);
        } else if (there && S_ISREG(st.st_mode) && s->left-- > 0) {
            json_auto_t *manifest = read_manifest(path, NULL);
            const char *digest = digest_of(find_layer(manifest, "model"));
            if (digest && !strcmp(digest + 7, s->digest + 7))
                s->found = place_of(s->root, manifest, s->digest, NULL);
        }
    }
    if (d)
        closedir(d);
}

/* Returns the GGUF place of an existing blob, with its projector if a manifest lists one. The blob may be
 * in MODELS/blobs or in any other directory next to a directory `manifests`. */
static char *find_projector(const char *path)
{
    size_t n = strlen(path) - strlen(base_of(path));
    autofree char *root = n ? xasprintf("%.*s..", (int)n, path) : xstrdup(".."),
                  *manifests = xasprintf("%s/manifests", root);
    struct search s = {.root = root, .digest = base_of(path), .left = SEARCHED};
    search_folder(&s, manifests, 0);
    bool vision = s.found && strchr(s.found, ',');
    char *place = vision ? xasprintf("%s,%.*s%s", path, (int)n, path, base_of(s.found)) : xstrdup(path);
    free(s.found);
    return place;
}

static char *find_blob(const char *option, char *const *roots, int n, struct err *e)
{
    char *place = NULL;
    if (file_exists(option))
        return find_projector(option);
    for (int i = 0; i < n && !place && !strchr(option, '/'); i++) {
        autofree char *path = blob_path(roots[i], option);
        if (file_exists(path))
            place = find_projector(path);
    }
    if (!place)
        err_set(e, ERR_MODEL, "blob '%s' not found%s%s", option,
                n ? " in " : ": no model directory; set OLLAMA_MODELS", n ? roots[0] : "");
    return place;
}

static char *find_manifest(const char *path, struct err *e)
{
    json_auto_t *manifest = read_manifest(path, e);
    autofree char *root = xasprintf("%.*s", (int)(strstr(path, MANIFEST) - path), path);
    return manifest ? place_of(root, manifest, path, e) : NULL;
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
