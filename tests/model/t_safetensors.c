/* t_safetensors.c - tests of the reader of weight files: parsed content, and detection of invalid files. */
#include "check.h"
#include "place.h"

#include "base/buf.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"

#include <unistd.h>

/* Creates a file in memory from its header and a number of data bytes 0, 1, 2, ... */
static char *make_file(const char *header, size_t data, size_t *len)
{
    size_t n = strlen(header);
    *len = 8 + n + data;
    char *p = malloc(*len + 1);
    for (int i = 0; i < 8; i++)
        p[i] = (char)((uint64_t)n >> (8 * i));
    memcpy(p + 8, header, n);
    for (size_t i = 0; i < data; i++)
        p[8 + n + i] = (char)i;
    return p;
}

static const char good[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                           "\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},"
                           "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                           "\"c\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[20,28]},"
                           "\"empty\":{\"dtype\":\"U8\",\"shape\":[0,4],\"data_offsets\":[20,20]}}";

static void t_reads(void **state)
{
    struct err e = ERR_INIT;
    size_t len;
    char *file = make_file(good, 28, &len);
    struct safetensors *s = safetensors_parse(file, len, &e);
    assert_non_null(s);
    assert_int_equal(safetensors_count(s), 4);
    assert_string_equal(safetensors_at(s, 0)->name, "a");
    const struct st_tensor *t = safetensors_find(s, "b.weight");
    assert_non_null(t);
    assert_int_equal(t->dtype, DT_BF16);
    assert_int_equal(t->dims, 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(((const uint8_t *)t->data)[0], 8);
    assert_int_equal(t->bytes, 12);
    char shape[64];
    safetensors_shape_text(t, shape, sizeof shape);
    assert_string_equal(shape, "[2, 3]");
    assert_int_equal(safetensors_find(s, "c")->dims, 0);
    assert_null(safetensors_find(s, "d"));
    safetensors_close(s);
    free(file);
}

static void refuses(const char *header, size_t data, const char *naming)
{
    struct err e = ERR_INIT;
    size_t len;
    char *file = make_file(header, data, &len);
    struct safetensors *s = safetensors_parse(file, len, &e);
    if (s || !strstr(e.text, naming))
        printf("%s: '%s'\n", naming, e.text);
    assert_null(s);
    assert_int_equal(e.kind, ERR_MODEL);
    assert_non_null(strstr(e.text, naming));
    free(file);
}

#define ENTRY(dtype, shape, offsets) "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void t_lies(void **state)
{
    refuses("{\"t\":" ENTRY("\"F32\"", "[2]", "[0,8]"), 8, "header");
    refuses("[1]", 0, "not a JSON object");
    refuses("{\"t\":1}", 0, "'t'");
    refuses("{\"t\":" ENTRY("\"F32\"", "[2]", "[0,8]") "}", 7, "outside the 7 bytes");
    refuses("{\"t\":" ENTRY("\"F32\"", "[2]", "[0,8]") "}", 9, "1 bytes at the end");
    refuses("{\"t\":" ENTRY("\"F32\"", "[3]", "[0,8]") "}", 8, "'t' has 8 bytes, but its shape needs 12");
    refuses("{\"t\":" ENTRY("\"F32\"", "[2]", "[8,0]") "}", 8, "'t' lies outside");
    refuses("{\"t\":" ENTRY("\"F32\"", "[2]", "[-8,0]") "}", 8, "'t' lies outside");
    refuses("{\"t\":" ENTRY("\"F32\"", "[2]", "[0]") "}", 8, "'t' lies outside");
    refuses("{\"t\":" ENTRY("\"F32\"", "[2]", "[0,8.5]") "}", 8, "'t' lies outside");
    refuses("{\"t\":" ENTRY("\"F32\"", "[2]", "[0,9223372036854775807]") "}", 8, "'t' lies outside");
    refuses("{\"t\":" ENTRY("\"F32\"", "[-2]", "[0,8]") "}", 8, "'t' has an invalid shape");
    refuses("{\"t\":" ENTRY("\"F32\"", "[4294967296,4294967296,2]", "[0,8]") "}", 8, "invalid shape");
    refuses("{\"t\":" ENTRY("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]") "}", 8, "at most 8 dimensions");
    refuses("{\"t\":" ENTRY("\"F32\"", "\"2\"", "[0,8]") "}", 8, "at most 8 dimensions");
    refuses("{\"t\":" ENTRY("\"C64\"", "[1]", "[0,8]") "}", 8, "'t' has unknown dtype 'C64'");
    refuses("{\"t\":" ENTRY("7", "[1]", "[0,8]") "}", 8, "'t' has unknown dtype 'none'");
    refuses("{\"t\":" ENTRY("\"U8\"", "[4]", "[0,4]") ",\"t\":" ENTRY("\"U8\"", "[4]", "[4,8]") "}", 8, "t");
    refuses("{\"t\":" ENTRY("\"U8\"", "[5]", "[0,5]") ",\"u\":" ENTRY("\"U8\"", "[4]", "[4,8]") "}", 8,
            "'t' and 'u' overlap");
    refuses("{\"t\":" ENTRY("\"U8\"", "[3]", "[0,3]") ",\"u\":" ENTRY("\"U8\"", "[4]", "[4,8]") "}", 8,
            "1 bytes before tensor 'u'");
}

static void t_cut(void **state)
{
    size_t len;
    char *file = make_file(good, 28, &len);
    for (size_t cut = 0; cut < len; cut++) {
        char *copy = malloc(cut ? cut : 1); /* of exact size, so that a sanitizer detects reads beyond it */
        memcpy(copy, file, cut);
        struct err e = ERR_INIT;
        assert_null(safetensors_parse(copy, cut, &e));
        assert_int_equal(e.kind, ERR_MODEL);
        free(copy);
    }
    uint64_t rng = check_seed();
    for (int round = 0; round < 3000; round++) { /* flipped bits: refused or read */
        char *copy = malloc(len);
        memcpy(copy, file, len);
        copy[(size_t)(check_random(&rng) * (double)(len - 28))] ^= (char)(1 << (int)(check_random(&rng) * 8));
        safetensors_close(safetensors_parse(copy, len, NULL));
        free(copy);
    }
    free(file);
}

/* ---- shards ---------------------------------------------------------------------------------- */

static char folder[PLACE_PATH];

static void put(const char *name, const char *header, size_t data)
{
    size_t len = data;
    char *file = header[0] == '{' && data != (size_t)-1 ? make_file(header, data, &len) : strdup(header);
    char *path = xasprintf("%s/%s", folder, name);
    if (data == (size_t)-1)
        len = strlen(header);
    assert_int_equal(file_write(path, file, len, NULL), 0);
    free(path);
    free(file);
}

static void drop(const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    unlink(path);
    free(path);
}

static void opens(int count)
{
    struct err e = ERR_INIT;
    struct safetensors *s = safetensors_open(folder, &e);
    if (!s)
        printf("%s\n", e.text);
    assert_non_null(s);
    assert_int_equal(safetensors_count(s), count);
    for (int i = 0; i < count; i++)
        safetensors_release(s, safetensors_at(s, i));
    assert_int_equal(((const uint8_t *)safetensors_find(s, "t1")->data)[3], 3);
    safetensors_close(s);
}

static void refuses_folder(const char *naming)
{
    struct err e = ERR_INIT;
    struct safetensors *s = safetensors_open(folder, &e);
    if (s || !strstr(e.text, naming))
        printf("%s: '%s'\n", naming, e.text);
    assert_null(s);
    assert_int_equal(e.kind, ERR_MODEL);
    assert_non_null(strstr(e.text, naming));
}

static void t_shards(void **state)
{
    static const char one[] = "{\"t1\":" ENTRY("\"U8\"", "[4]", "[0,4]") "}";
    static const char two[] = "{\"t2\":" ENTRY("\"U8\"", "[4]", "[0,4]") "}";
    static const char index_of[] = "model.safetensors.index.json";
    static const size_t text = (size_t)-1;
    assert_non_null(mkdtemp(place_template(folder)));
    refuses_folder("neither model.safetensors");
    put("model-00001-of-00002.safetensors", one, 4);
    refuses_folder("model-00002-of-00002.safetensors");
    put("model-00002-of-00002.safetensors", two, 4);
    opens(2);
    put(index_of, "{\"weight_map\":{\"t1\":\"model-00001-of-00002.safetensors\"}}", text);
    opens(1);
    put(index_of,
        "{\"weight_map\":{\"t1\":\"model-00001-of-00002.safetensors\",\"t2\":\"model-00001-of-00002."
        "safetensors\"}}",
        text);
    refuses_folder("'t2' is not in model-00001-of-00002.safetensors");
    put(index_of, "{\"weight_map\":{\"t2\":\"model-00001-of-00002.safetensors\"}}", text);
    refuses_folder("'t2' is not in");
    put(index_of, "{\"weight_map\":{\"t1\":\"../model.safetensors\"}}", text);
    refuses_folder("'t1' is in a file outside this directory");
    put(index_of, "{\"weight_map\":{}}", text);
    refuses_folder("no 'weight_map'");
    put(index_of, "{\"weight_map\":", text);
    refuses_folder("line 1");
    drop(index_of);
    put("model-00002-of-00002.safetensors", one, 4);
    refuses_folder("'t1' is both in");
    put("model.safetensors", one, 4);
    opens(1);
}

static const struct CMUnitTest tests[] = {
    CLAIM("tensors are found with their dtype, shape and bytes", t_reads),
    CLAIM("every invalid header is refused and the tensor named", t_lies),
    CLAIM("every truncation is refused, and no flipped bit causes a read beyond the file", t_cut),
    CLAIM("shards with and without index are read; missing, duplicate and misplaced tensors are refused",
          t_shards),
};

CHECK_MAIN()
