/* t_tekken.c - tests the full-size tokenizer against hashes of Hugging Face tokenizers' and tiktoken's ids
 * for 100,000 texts and every character in tests/golden/tokenizer/texts.json
 * (tests/reference/make_tokenizer.py, drawn_texts.h).
 */
#include "check.h"
#include "drawn_texts.h"
#include "place.h"
#include "tekken.h"

#include "base/file.h"
#include "base/sha256.h"
#include "text/tokenizer.h"

#include <jansson.h>
#include <unistd.h>

static struct tokenizer *tk;
static double load_ms; /* CPU time */
static json_t *golden;

/* ---- shared by all tests ------------------------------------------------------------------------------ */

static void check_file(const char *json, size_t len)
{
    char hex[65];
    sha256(json, len, hex);
    assert_string_equal(hex, json_string_value(json_object_get(golden, "tokenizer.json")));
}

/* Writes and opens the file like that of any model. */
static void open_all(void)
{
    if (tk)
        return;
    struct err e = ERR_INIT;
    char dir[PLACE_PATH];
    golden = json_load_file("tests/golden/tokenizer/texts.json", 0, NULL);
    assert_non_null(golden);
    size_t len;
    char *json = tekken_json(&len);
    check_file(json, len);
    assert_non_null(mkdtemp(place_template(dir)));
    char *path = xasprintf("%s/tokenizer.json", dir);
    assert_int_equal(file_write(path, json, len, &e), 0);
    double start = drawn_cpu_ms();
    tk = tokenizer_open(dir, &e);
    load_ms = drawn_cpu_ms() - start;
    unlink(path);
    rmdir(dir);
    free(path);
    free(json);
    if (!tk)
        printf("%s\n", e.text);
    assert_non_null(tk);
}

static void encodes(const char *text, bool special, int n, const int32_t *ids)
{
    struct tokens out = {0};
    tokenizer_encode(tk, text, strlen(text), special, &out);
    bool same = out.n == n && !memcmp(out.ids, ids, (size_t)n * sizeof *ids);
    if (!same) {
        printf("'%s' gives", text);
        for (int64_t i = 0; i < out.n; i++)
            printf(" %d", out.ids[i]);
        printf("\n");
    }
    assert_true(same);
    tokens_free(&out);
}

#define ENCODES(text, special, ...)                                                                          \
    encodes(text, special, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)),                        \
            (const int32_t[]){__VA_ARGS__})

/* ---- known ids ---------------------------------------------------------------------------------------- */

static void t_known(void **state)
{
    open_all();
    assert_int_equal(tokenizer_size(tk), TEKKEN_IDS + TEKKEN_ADDED);
    assert_null(tokenizer_check(tk));
    assert_int_equal(tokenizer_find(tk, "<SPECIAL_11>"), 11);
    assert_int_equal(tokenizer_find(tk, "<image>"), 131072);
    assert_int_equal(tokenizer_find(tk, "</img>"), 131074);
    ENCODES("Assistant\n", false, 102897, 1010);
    ENCODES("User\n", false, 4019, 1010);
    ENCODES("System\n\n", false, 6775, 1267);
    ENCODES("<think></think>", false, 49250, 2077, 4468, 74045, 1062);
    ENCODES("<think>\n", false, 49250, 2077, 1561);
    ENCODES("/no_think", false, 75010, 31180, 2077);
    ENCODES("Hello world!", false, 22177, 4304, 1033);
    ENCODES("\nDescribe the image.\n", false, 1010, 5847, 13089, 1278, 3937, 1626);
    ENCODES("click(123, 456)", false, 8356, 1040, 1049, 1050, 1051, 1044, 1032, 1052, 1053, 1054, 1041);
    ENCODES("naïve café — 東京 2024年 🙂", false, 2302, 7884, 1672, 35858, 2251, 48798, 1032, 1050,
            1048, 1050, 1052, 1587, 119685, 1153, 1130);
    ENCODES("{\"action\": \"click\", \"x\": 512, \"y\": 384}", false, 19227, 3419, 2811, 1429, 8356, 1897,
            1429, 1120, 2811, 1032, 1053, 1049, 1050, 1044, 1429, 1121, 2811, 1032, 1051, 1056, 1052, 1125);
    ENCODES("https://example.com/a/b?c=d", false, 3299, 2345, 16609, 2354, 22139, 15836, 1063, 1099, 97316);
    ENCODES("I'm DON'T HTTPServer camelCaseWord", false, 1073, 4525, 119801, 1039, 1084, 23733, 11473, 98537,
            11139, 24469);
    ENCODES("  indented\n\n\tcode", false, 1032, 2495, 38498, 1267, 1009, 6154);
    ENCODES("\r\n\r\n", false, 1013, 1010, 1013, 1010);
    ENCODES("a  b", false, 1097, 1032, 1289);
    ENCODES("<SPECIAL_11>Assistant\n", true, 11, 102897, 1010);
    ENCODES("<s><SPECIAL_10>System\n\n", true, 1, 10, 6775, 1267);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void note_speed(const struct drawn *d, const char *what)
{
    check_note("%zu %s, %.1f MB, ids and bytes as they must be; encoding %.1f MB/s", d->n, what,
               (double)d->bytes / 2e6, (double)d->bytes / 1e3 / d->ms);
}

static void t_texts(void **state)
{
    open_all();
    struct drawn d = {.tk = tk, .golden = golden};
    assert_int_equal(drawn_texts(&d), 0);
    assert_int_equal(d.n, 100000 / 4);
    note_speed(&d, "texts");
}

static void t_chars(void **state)
{
    open_all();
    struct drawn d = {.tk = tk, .golden = golden};
    assert_int_equal(drawn_chars(&d), 0);
    note_speed(&d, "characters");
}

/* ---- speed ----------------------------------------------------------------------------------- */

static void t_speed(void **state)
{
    open_all();
    static const char sentence[] = "The quick brown fox {\"x\": 12} jumps over the lazy dog, naïvely.\n";
    struct tokens out = {0};
    char text[8192];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = sentence[i % (sizeof sentence - 1)];
    double start = drawn_cpu_ms();
    for (int i = 0; i < 100; i++)
        tokenizer_encode(tk, text, sizeof text, false, &out);
    check_note("131082 tokens loaded in %.0f ms; English %.1f MB/s", load_ms,
               sizeof text * 100 / 1e3 / (drawn_cpu_ms() - start));
#ifndef __SANITIZE_ADDRESS__
    assert_true(load_ms < 1000);
#endif
    tokens_free(&out);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the file equals the one that transformers makes of the table, and gives the published ids",
          t_known),
    CLAIM("a quarter of 100,000 texts gives the ids of tokenizers and tiktoken, and decodes to its bytes",
          t_texts),
    CLAIM("every fourth block of characters between others gives the ids of tokenizers and tiktoken",
          t_chars),
    CLAIM("the full vocabulary loads within a second", t_speed),
};

CHECK_MAIN_WITH(, tokenizer_free(tk); json_decref(golden))
