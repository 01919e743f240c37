/* t_model_find.c - tests of finding models stored by other programs: Ollama's blobs and manifests, the
 * hub's cache, split GGUF files; and of incomplete downloads. */
#include "check.h"
#include "gguf_model.h"

#include "checkpoint/find.h"
#include "checkpoint/safetensors.h"
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT   "sha256-1111111111111111111111111111111111111111111111111111111111111111"
#define EYES   "sha256-2222222222222222222222222222222222222222222222222222222222222222"
#define ABSENT "sha256-3333333333333333333333333333333333333333333333333333333333333333"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static struct golden g;
static char root[PLACE_PATH];

static char *below(const char *path)
{
    return xasprintf("%s/%s", root, path);
}

static void make_dir(const char *path)
{
    struct err e = ERR_INIT;
    char *whole = below(path);
    if (dir_make(whole, &e))
        fail_msg("%s", e.text);
    free(whole);
}

static void write_text(const char *path, const char *text)
{
    struct err e = ERR_INIT;
    char *whole = below(path), *dir = xstrdup(path);
    *strrchr(dir, '/') = 0;
    make_dir(dir);
    if (file_write(whole, text, strlen(text), &e))
        fail_msg("%s", e.text);
    free(dir);
    free(whole);
}

static void link_file(const char *from, const char *to)
{
    char *a = below(from), *b = below(to), *dir = xstrdup(to);
    *strrchr(dir, '/') = 0;
    make_dir(dir);
    unlink(b);
    assert_int_equal(symlink(a, b), 0);
    free(dir);
    free(a);
    free(b);
}

static int64_t size_of(const char *path)
{
    struct stat st;
    char *whole = below(path);
    assert_int_equal(stat(whole, &st), 0);
    free(whole);
    return st.st_size;
}

/* Writes a manifest with layers of these kinds and digests; off is added to their sizes. */
static void write_manifest(const char *path, const char *const layers[][2], int n, int64_t off)
{
    char *all = xstrdup("");
    for (int i = 0; i < n; i++) {
        char *blob = xasprintf("models/blobs/%s", layers[i][1]), *whole = below(blob);
        char *digest = xstrdup(layers[i][1]), *more;
        digest[6] = ':';
        more = xasprintf(
            "%s%s{\"mediaType\":\"application/vnd.ollama.image.%s\",\"digest\":\"%s\",\"size\":%lld}", all,
            i ? "," : "", layers[i][0], digest, (long long)(access(whole, R_OK) ? 5 : size_of(blob)) + off);
        free(all);
        free(blob);
        free(whole);
        free(digest);
        all = more;
    }
    char *text = xasprintf("{\"schemaVersion\":2,\"layers\":[%s]}", all);
    write_text(path, text);
    free(all);
    free(text);
}

static const char *const both[][2] = {{"model", TEXT}, {"template", ABSENT}, {"projector", EYES}};

static int setup(void **state)
{
    golden_open(&g, "qwen/whole");
    assert_non_null(mkdtemp(place_template(root)));
    gguf_model(&g, (struct gguf_form){GGML_BF16, false}, root);
    link_file("model.gguf", "models/blobs/" TEXT);
    link_file("mmproj.gguf", "models/blobs/" EYES);
    write_manifest("models/manifests/registry.ollama.ai/library/qwen3.5/latest", both, 3, 0);
    write_manifest("models/manifests/registry.ollama.ai/library/qwen3.5/9b", both, 3, 0);
    write_manifest("models/manifests/registry.ollama.ai/me/own/q8", both, 1, 0);
    write_manifest("models/manifests/hf.co/org/repo-GGUF/Q4_K_M", both, 3, 0);
    char *models = below("models");
    setenv("OLLAMA_MODELS", models, 1);
    setenv("HF_HUB_CACHE", root, 1);
    free(models);
    return 0;
}

static int teardown(void **state)
{
    golden_close(&g);
    return 0;
}

/* Checks the end of the found path; a leading "" means below the root. */
static void finds(const char *option, const char *end)
{
    struct err e = ERR_INIT;
    char *place = model_find(option, &e);
    if (!place || strlen(place) < strlen(end) || strcmp(place + strlen(place) - strlen(end), end) != 0)
        fail_msg("'%s': %s, not ...%s", option, place ? place : e.text, end);
    free(place);
}

static void refuses(const char *option, const char *says)
{
    struct err e = ERR_INIT;
    char *place = model_find(option, &e);
    if (place || !strstr(e.text, says))
        fail_msg("'%s': '%s' does not say '%s'", option, place ? place : e.text, says);
    assert_int_equal(e.kind, ERR_MODEL);
}

static void opens(const char *option)
{
    struct err e = ERR_INIT;
    char *place = model_find(option, &e);
    struct engine_options o = {.dir = place, .threads = 1, .min_pixels = 4096, .max_pixels = 8192};
    struct engine *engine = place ? engine_open(&o, &e) : NULL;
    if (!engine)
        fail_msg("%s", e.text);
    engine_close(engine);
    free(place);
}

#define PAIR "/blobs/" TEXT "," /* and the projector's path */

static void t_ollama(void **state)
{
    char *blob = below("models/blobs/" TEXT), *digest = xstrdup(TEXT),
         *manifest = below("models/manifests/registry.ollama.ai/library/qwen3.5/9b"),
         *pair = xasprintf("%s,%s/models/blobs/" EYES, blob, root);
    digest[6] = ':';
    const char *const names[] = {"ollama:qwen3.5", "ollama:qwen3.5:9b", "ollama:library/qwen3.5:latest",
                                 "ollama:hf.co/org/repo-GGUF:Q4_K_M", manifest};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        finds(names[i], pair);
    finds("ollama:me/own:q8", "/blobs/" TEXT);
    finds(pair, pair);
    finds(TEXT, "/blobs/" EYES);
    finds(digest, "/blobs/" EYES);
    finds(blob, "/blobs/" EYES);
    opens("ollama:qwen3.5:9b");
    opens(blob);
    free(blob);
    free(digest);
    free(manifest);
    free(pair);
}

static void t_ollama_refused(void **state)
{
    static const char *const adapter[][2] = {{"model", TEXT}, {"adapter", EYES}},
                             *const tensors[][2] = {{"tensor", TEXT}}, *const gone[][2] = {{"model", ABSENT}};
#define LIBRARY "models/manifests/registry.ollama.ai/library/"
    write_manifest(LIBRARY "short/latest", both, 3, 1);
    write_manifest(LIBRARY "adapted/latest", adapter, 2, 0);
    write_manifest(LIBRARY "apart/latest", tensors, 1, 0);
    write_manifest(LIBRARY "gone/latest", gone, 1, 0);
    write_text(LIBRARY "broken/latest", "{\"layers\":[");
    write_text(LIBRARY "odd/latest",
               "{\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":"
               "\"sha256:../../etc/passwd\"}]}");
    refuses("ollama:short", "the download of 'short' is incomplete");
    refuses("ollama:gone", "is missing; run 'ollama pull'");
    refuses("ollama:adapted", "has an adapter");
    refuses("ollama:apart", "single tensors");
    refuses("ollama:broken", "is not an Ollama manifest");
    refuses("ollama:odd", "without a SHA-256 digest");
    refuses("ollama:qwen99", "run 'ollama pull'");
    refuses("ollama:", "is not an Ollama model name");
    refuses("ollama:../../x", "is not an Ollama model name");
    refuses("ollama:a/b/c/d:e", "is not an Ollama model name");
    refuses(ABSENT, "not found");
    refuses("/nowhere/" ABSENT, "not found");
}

#define REPO "models--org--small"
#define SNAP REPO "/snapshots/" COMMIT "/"

static void t_hub(void **state)
{
    char *folder = below(REPO), *slash = below(REPO "/"), *snapshots = below(REPO "/snapshots");
    link_file("model.gguf", SNAP "small-BF16.gguf");
    link_file("mmproj.gguf", SNAP "mmproj-BF16.gguf");
    write_text(SNAP "config.json", "{}"); /* publishers of GGUF files include it */
    const char *const names[] = {folder, slash, snapshots, "org/small", "org/small@" COMMIT};
    for (int ref = 0; ref < 2; ref++) { /* a single snapshot is found without a ref */
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            finds(names[i], "/mmproj-BF16.gguf");
        write_text(REPO "/refs/main", COMMIT "\n");
    }
    opens(folder);
    link_file("model.gguf", SNAP "small-Q8_0.gguf");
    refuses("org/small", "has 2 GGUF files; name one");
    finds("ollama:qwen3.5", "/blobs/" EYES);
    free(folder);
    free(slash);
    free(snapshots);
}

#define SHARDS REPO "2/snapshots/" COMMIT "/"

static void t_incomplete(void **state)
{
    char *folder = below(REPO "2"), *part = below("models/x.gguf.incomplete");
    write_text(REPO "2/refs/main", COMMIT);
    make_dir(SHARDS);
    refuses(folder, "has neither config.json nor a GGUF file");
    write_text(REPO "2/blobs/abc.incomplete", "x");
    refuses(folder, "1 file is not finished");
    refuses("org/small2", "pull it again");
    write_text(SHARDS "config.json", "{}");
    write_text(SHARDS "model-00002-of-00003.safetensors", "x");
    write_text(
        SHARDS "model.safetensors.index.json",
        "{\"weight_map\":{\"a\":\"model-00001-of-00003.safetensors\",\"b\":\"model-00002-of-00003.safetensors\","
        "\"c\":\"model-00003-of-00003.safetensors\"}}");
    char *blobs = below(REPO "2/blobs/abc.incomplete");
    unlink(blobs);
    refuses(folder, "2 of 3 weight files are missing, shard 1 of 3 is 'model-00001-of-00003.safetensors'");
    write_text(REPO "2/refs/main", "main");
    write_text(REPO "2/snapshots/1123456789abcdef0123456789abcdef01234567/x", "x");
    refuses(folder, "has no snapshot of 'main'");
    refuses(part, "is an unfinished download");
    free(blobs);
    free(part);
    free(folder);
}

/* ---- split files --------------------------------------------------------------------------------------- */

/* Writes part `part` of `of` of model.gguf; its last key is `last`. */
static void write_part(const struct gguf_file *f, const char *last, int part, int of, int claims)
{
    struct gguf w;
    struct buf head;
    struct gguf_value v;
    struct err e = ERR_INIT;
    size_t len;
    const uint8_t *whole = gguf_whole(f, &len);
    gguf_init(&w);
    assert_true(gguf_value(f, last, &v));
    if (part == 0) {
        memcpy(&w.n_keys, whole + 16, sizeof w.n_keys);
        buf_put(&w.keys, whole + 24, (size_t)(v.end - whole) - 24);
    }
    gguf_int(&w, "split.no", (uint32_t)part);
    gguf_int(&w, "split.count", (uint32_t)of);
    gguf_int(&w, "split.tensors.count", (uint32_t)claims);
    for (int i = part; i < gguf_count(f); i += of)
        gguf_tensor(&w, gguf_at(f, i)->name, (enum ggml_type)gguf_at(f, i)->type, gguf_at(f, i)->shape,
                    gguf_at(f, i)->dims);
    gguf_head(&w, &head);
    for (int i = part; i < gguf_count(f); i += of) {
        buf_put(&head, gguf_at(f, i)->data, gguf_at(f, i)->bytes);
        while (head.len % GGUF_ALIGN)
            buf_putc(&head, 0);
    }
    char *path = xasprintf("%s/parts/m-%05d-of-%05d.gguf", root, part + 1, of);
    assert_int_equal(file_write(path, head.data, head.len, &e), 0);
    free(path);
    buf_free(&head);
    gguf_free(&w);
}

static void t_parts(void **state)
{
    struct err e = ERR_INIT;
    char *path = below("model.gguf"), *first = below("parts/m-00001-of-00003.gguf"),
         *second = below("parts/m-00002-of-00003.gguf"), *dir = below("parts");
    struct gguf_file *f = gguf_open(path, &e);
    make_dir("parts");
    int all = gguf_count(f);
    for (int i = 0; i < 3; i++)
        write_part(f, "tokenizer.ggml.eos_token_id", i, 3, all);
    link_file("mmproj.gguf", "parts/mmproj.gguf");
    finds(first, "/parts/mmproj.gguf");
    finds(dir, "/parts/mmproj.gguf");
    finds(second, "/parts/mmproj.gguf"); /* another part leads to the first one */
    opens(second);
    struct safetensors *parts = safetensors_open(first, &e), *whole = safetensors_open(path, &e);
    if (!parts || !whole)
        fail_msg("%s", e.text);
    assert_int_equal(safetensors_files(parts), 3);
    assert_int_equal(safetensors_count(parts), safetensors_count(whole));
    for (int i = 0; i < safetensors_count(whole); i++)
        assert_memory_equal(safetensors_at(parts, i)->data, safetensors_at(whole, i)->data,
                            safetensors_at(whole, i)->bytes);
    safetensors_close(parts);
    safetensors_close(whole);
    write_part(f, "tokenizer.ggml.eos_token_id", 0, 3, all + 1);
    assert_null(safetensors_open(first, &e));
    assert_non_null(strstr(e.text, "the first one claims"));
    write_part(f, "tokenizer.ggml.eos_token_id", 0, 3, all);
    char *third = below("parts/m-00003-of-00003.gguf");
    rename(second, third);
    link_file("parts/m-00003-of-00003.gguf", "parts/m-00002-of-00003.gguf");
    assert_null(safetensors_open(first, &e));
    assert_non_null(strstr(e.text, "is part 2 of 3; expected part 3 of 3"));
    free(third);
    unlink(second);
    assert_null(safetensors_open(first, &e));
    check_has(e.text, "part 2 of 3", "is missing; download it");
    gguf_close(f);
    free(path);
    free(first);
    free(second);
    free(dir);
}

static const struct CMUnitTest tests[] = {
    CLAIM("models of Ollama are found by name, digest, blob and manifest, with their projector", t_ollama),
    CLAIM("models of Ollama that are incomplete or not GGUF are refused in one line", t_ollama_refused),
    CLAIM("a folder of the hub's cache and ORG/NAME lead to the snapshot", t_hub),
    CLAIM("incomplete downloads are named", t_incomplete),
    CLAIM("a split GGUF file is one model", t_parts),
};

CHECK_MAIN_WITH(setup(NULL), teardown(NULL))
