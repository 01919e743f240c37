/* t_tokenizer.c - tests byte-level BPE on a small hand-made vocabulary: its rules and refusals. t_tekken.c
 * tests the published vocabulary.
 */
#include "check.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "text/tokenizer_impl.h"

/* ---- a vocabulary of 256 bytes and a few merged tokens --------------------------------------------- */

static void put_byte_char(struct buf *b, int byte)
{
    bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    int rank = 0;
    for (int i = 0; i < byte; i++)
        rank += !((i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174);
    char s[4];
    int n = utf8_encode(plain ? (uint32_t)byte : 256 + (uint32_t)rank, s);
    buf_putc(b, '"');
    if (byte == '"' || byte == '\\')
        buf_putc(b, '\\');
    buf_put(b, s, (size_t)n);
    buf_printf(b, "\":%d,", byte);
}

static const char words[] = "\"ab\":256,\"bc\":257,\"abc\":258,\"abcd\":259,\"\xc4\xa0"
                            "ab\":260,\"aa\":261,\"aaaa\":262";
static const char merges[] = "\"b c\",[\"a\",\"b\"],\"a bc\",\"abc d\",\"\xc4\xa0 ab\",\"a a\",\"aa aa\"";
static const char added[] = "{\"id\":263,\"content\":\"<x>\"},{\"id\":264,\"content\":\"<x><y>\"},"
                            "{\"id\":265,\"content\":\"<z>\",\"lstrip\":true,\"rstrip\":true}";
static const char gpt2[] = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}";

struct parts { /* parts of a tokenizer.json that a test may replace */
    const char *words, *merges, *added, *pre, *model, *root;
    int without_byte;
};

static char *make_json(const struct parts *p)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_printf(&b, "{%s\"added_tokens\":[%s],\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\",%s\"vocab\":{",
               p->root, p->added, p->pre, p->model);
    for (int i = 0; i < 256; i++)
        if (i != p->without_byte)
            put_byte_char(&b, i);
    buf_printf(&b, "%s},\"merges\":[%s]}}", p->words, p->merges);
    char *json = buf_take(&b);
    buf_free(&b);
    return json;
}

static struct parts whole(void)
{
    return (struct parts){words, merges, added, gpt2, "", "", -1};
}

static struct tokenizer *make(const struct parts *p, struct err *e)
{
    char *json = make_json(p);
    struct tokenizer *t = tokenizer_parse(json, strlen(json), e);
    free(json);
    return t;
}

static void encodes(const struct tokenizer *t, const char *text, size_t len, bool special, int n,
                    const int32_t *ids)
{
    struct tokens out = {0};
    tokenizer_encode(t, text, len, special, &out);
    bool same = out.n == n;
    for (int i = 0; same && i < n; i++)
        same = out.ids[i] == ids[i];
    if (!same) {
        printf("'%.*s' gives", (int)len, text);
        for (int64_t i = 0; i < out.n; i++)
            printf(" %d", out.ids[i]);
        printf("\n");
    }
    assert_true(same);
    tokens_free(&out);
}

#define ENCODES(t, text, special, ...)                                                                       \
    encodes(t, text, sizeof(text) - 1, special, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)),   \
            (const int32_t[]){__VA_ARGS__})

static void t_merges(void **state)
{
    struct err e = ERR_INIT;
    struct parts p = whole();
    struct tokenizer *t = make(&p, &e);
    assert_non_null(t);
    assert_int_equal(tokenizer_size(t), 266);
    ENCODES(t, "abc", false, 258); /* "b c" has the lower rank and comes before "a b" */
    ENCODES(t, "ab", false, 256);
    ENCODES(t, "abcd", false, 259);
    ENCODES(t, "ab ab", false, 256, 260); /* the second piece includes its space */
    ENCODES(t, "aaa", false, 261, 'a');   /* leftmost of equal pairs */
    ENCODES(t, "aaaaaaa", false, 262, 261, 'a');
    ENCODES(t, "abd", false, 256, 'd');
    ENCODES(t, "\xff\x00z", false, 0xff, 0, 'z'); /* invalid UTF-8 */
    ENCODES(t, "\xc3\xa9", false, 0xc3, 0xa9);
    tokenizer_free(t);
}

static void t_added(void **state)
{
    struct err e = ERR_INIT;
    struct parts p = whole();
    struct tokenizer *t = make(&p, &e);
    assert_non_null(t);
    ENCODES(t, "a<x>b", true, 'a', 263, 'b');
    ENCODES(t, "<x><y>", true, 264); /* the longest one */
    ENCODES(t, "<x><z>", true, 263, 265);
    ENCODES(t, "ab <z> \n ab", true, 256, 265, 256);
    ENCODES(t, "<x>", false, '<', 'x', '>');
    size_t n;
    assert_memory_equal(tokenizer_bytes(t, 264, &n), "<x><y>", 6);
    assert_int_equal(n, 6);
    assert_memory_equal(tokenizer_bytes(t, 260, &n), " ab", 3);
    tokenizer_bytes(t, 266, &n);
    assert_int_equal(n, 0);
    tokenizer_bytes(t, -1, &n);
    assert_int_equal(n, 0);
    assert_true(tokenizer_is_special(t, 263));
    assert_false(tokenizer_is_special(t, 260));
    assert_int_equal(tokenizer_find(t, "<x>"), 263);
    assert_int_equal(tokenizer_find(t, "abcd"), 259);
    assert_int_equal(tokenizer_find(t, "nothing"), -1);
    assert_int_equal(tokenizer_find(t, ""), -1);

    /* Text of the user cannot form a special token, not even across two parts. */
    const struct text_part parts[] = {
        {"<x>a", 4, true}, {"b<x>", 4, false}, {"c<x", 3, true}, {">", 1, false}};
    const int32_t want[] = {263, 256, '<', 'x', '>', 'c', '<', 'x', '>'};
    struct tokens out = {0};
    tokenizer_encode_parts(t, parts, 4, &out);
    assert_int_equal(out.n, sizeof want / sizeof *want);
    assert_memory_equal(out.ids, want, sizeof want);
    tokens_free(&out);
    tokenizer_free(t);
}

static void t_round_trip(void **state)
{
    struct parts p = whole();
    struct tokenizer *t = make(&p, NULL);
    uint64_t rng = check_seed();
    for (int round = 0; round < 300; round++) {
        char text[600];
        size_t len = (size_t)(check_random(&rng) * sizeof text);
        for (size_t i = 0; i < len; i++)
            text[i] = check_random(&rng) < 0.7 ? "abcd <>xyz\n"[(int)(check_random(&rng) * 11)]
                                               : (char)(check_random(&rng) * 256);
        struct tokens out = {0};
        struct buf back;
        buf_init(&back, 1 << 16);
        tokenizer_encode(t, text, len, round % 2, &out);
        for (int64_t i = 0; i < out.n; i++) {
            size_t n;
            const char *s = tokenizer_bytes(t, out.ids[i], &n);
            buf_put(&back, s, n);
        }
        if (round % 2 == 0) /* special tokens may strip white space */
            assert_int_equal(back.len, len);
        if (back.len == len)
            assert_memory_equal(back.data, text, len);
        buf_free(&back);
        tokens_free(&out);
    }
    /* A piece of a megabyte is merged in n log n. */
    char *big = malloc(1 << 20);
    memset(big, 'a', 1 << 20);
    int64_t start = clock_ns();
    struct tokens out = {0};
    tokenizer_encode(t, big, 1 << 20, false, &out);
    assert_int_equal(out.n, 1 << 18);
    check_note("1 MiB of one letter in %.0f ms", clock_ms_since(start));
    tokens_free(&out);
    free(big);
    tokenizer_free(t);
}

/* ---- refusals ------------------------------------------------------------------------------------------ */

static void refuses(struct parts p, const char *naming)
{
    struct err e = ERR_INIT;
    struct tokenizer *t = make(&p, &e);
    if (t || !strstr(e.text, naming))
        printf("%s: '%s'\n", naming, e.text);
    assert_null(t);
    assert_non_null(strstr(e.text, naming));
    assert_int_equal(e.kind, ERR_MODEL);
}

static void t_refusals(void **state)
{
    struct parts p = whole();
#define SPOILT(member, value, naming) (p = whole(), p.member = (value), refuses(p, naming))
    SPOILT(without_byte, 200, "byte 0xc8 has no token");
    SPOILT(words, "\"ab\":256,\"bc\":256", "id 256");
    SPOILT(words, "\"ab\":256,\"ab\":257", "duplicate");
    SPOILT(words, "\"ab\":-1", "'ab' has no id");
    SPOILT(words, "\"ab\":99999999", "'ab' has no id");
    SPOILT(words, "\"ab\":256.5", "'ab' has no id");
    SPOILT(words, "\"ab\":\"256\"", "'ab' has no id");
    SPOILT(words, "\"ab\" 256", "entry 256");
    SPOILT(words, "\"a\\qb\":256", "entry 256");
    SPOILT(words, "\"a\nb\":256", "entry 256");
    SPOILT(words, "7", "entry 256");
    SPOILT(words, "\"a b\":256", "'a b'");
    SPOILT(words, "\"\":256", "token 256");
    SPOILT(merges, "\"a\"", "merge 0");
    SPOILT(merges, "\"b c\",\"a z\"", "merge 1");
    SPOILT(merges, "[\"a\"]", "merge 0");
    SPOILT(merges, "7", "merge 0");
    SPOILT(merges, "[\"a\",\"b\",\"c\"]", "merge 0");
    SPOILT(merges, "[\"a\",\"\"]", "merge 0");
    SPOILT(merges, "\"b c\" \"a b\"", "'merges'");
    SPOILT(merges, "\"b c\",", "merge 1");
    SPOILT(merges, "\"\xe6\x9d\xb1 b\"", "byte-level alphabet");
    SPOILT(added, "{\"id\":3,\"content\":\"<x>\"}", "id 3");
    SPOILT(added, "{\"id\":300,\"content\":\"<x>\"},{\"id\":300,\"content\":\"<y>\"}", "300");
    SPOILT(added, "{\"id\":300,\"content\":\"<x>\"},{\"id\":301,\"content\":\"<x>\"}", "same name");
    SPOILT(added, "{\"id\":-1,\"content\":\"<x>\"}", "no vocabulary");
    SPOILT(added, "{\"id\":9999999,\"content\":\"<x>\"}", "no vocabulary");
    SPOILT(added, "{\"id\":300,\"content\":\"\"}", "added token 300");
    SPOILT(added, "{\"id\":300,\"content\":\"<x>\",\"single_word\":true}", "'<x>'");
    SPOILT(pre, "null", "pre-tokenizer");
    SPOILT(pre, "{\"type\":\"Metaspace\"}", "Metaspace");
    SPOILT(pre, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}",
           "split pattern");
    SPOILT(pre, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Removed\"}", "Removed");
    SPOILT(pre, "{\"type\":\"Split\",\"behavior\":\"Isolated\"}", "pattern");
    SPOILT(pre, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\h\"},\"behavior\":\"Isolated\"}", "'\\h'");
    SPOILT(pre, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"},\"behavior\":\"Isolated\"}", "'&&'");
    SPOILT(pre, "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "add_prefix_space");
    SPOILT(model, "\"byte_fallback\":true,", "byte-level");
    SPOILT(model, "\"type\":\"Unigram\",", "duplicate");
    SPOILT(root, "\"normalizer\":{\"type\":\"NFKC\"},", "NFKC");
    SPOILT(root, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]},", "Sequence");
    SPOILT(root, "\"x\":", "line");
    struct err e = ERR_INIT;
    assert_null(tokenizer_parse("[]", 2, &e));
    assert_null(tokenizer_parse("{\"model\":{\"type\":\"WordPiece\"}}", 30, &e));
    assert_non_null(strstr(e.text, "WordPiece"));
    assert_null(tokenizer_open("/nonexistent", &e));
    assert_non_null(strstr(e.text, "/nonexistent"));
}

/* ---- spellings of files ---------------------------------------------------------------------- */

static void t_spellings(void **state)
{
    struct err e = ERR_INIT;
    struct parts p = whole();
    p.words = " \"\\u0061b\" : 256 ,\n\t\"b\\u0063\":257,\"\\u0120a\":300,\"\\ud83d\\ude42\":310";
    p.merges = " [ \"a\" , \"b\" ] ,\r\n\"b c\",[\"\\u0120\",\"a\"],\"b c\" ";
    p.added = "{\"id\":310,\"content\":\"\xf0\x9f\x99\x82\"}";
    struct tokenizer *t = make(&p, &e);
    if (!t)
        printf("%s\n", e.text);
    assert_non_null(t);
    assert_int_equal(tokenizer_size(t), 311);
    ENCODES(t, "ab", false, 256);
    ENCODES(t, "bc a", false, 257, 300);
    for (int32_t id = 258; id < 310; id++) { /* gaps are not tokens */
        size_t n;
        tokenizer_bytes(t, id, &n);
        assert_int_equal(n, id == 300 ? 2 : 0);
        assert_false(tokenizer_is_special(t, id));
    }
    assert_non_null(tokenizer_check(t)); /* GPT-2's pattern is not the one used in training */
    tokenizer_free(t);
}

#define SPLIT(regex) "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\"}"

static void t_patterns(void **state)
{
    struct parts p = whole();
    p.words = "\"a\xc3\x83\":256,\"b\xc4\xa0\":257,\"xyz\":258";
    p.merges = "\"a \xc3\x83\",\"b \xc4\xa0\"";
    p.added = "";
    p.pre = SPLIT("\\\\w+");
    struct tokenizer *t = make(&p, NULL);
    assert_non_null(t);
    ENCODES(t, "a\xc3\xa9", false, 256, 0xa9); /* a non-ASCII letter is a letter */
    ENCODES(t, "xyz", false, 'x', 'y', 'z');   /* no merge produces it */
    tokenizer_free(t);

    /* A match that needs more stack than the compiled pattern has still works. */
    p.pre = SPLIT("(?:ab|b)+| cd");
    p.model = "\"ignore_merges\":true,";
    t = make(&p, NULL);
    assert_non_null(t);
    ENCODES(t, "xyz", false, 258); /* a piece that is a token */
    enum { PAIRS = 50000 };
    char *text = malloc(2 * PAIRS + 4);
    for (int i = 0; i < PAIRS; i++)
        memcpy(text + 2 * (size_t)i, "ab", 2);
    strcpy(text + (size_t)2 * PAIRS, " cd");
    struct tokens out = {0};
    tokenizer_encode(t, text, 2 * PAIRS + 3, false, &out);
    assert_int_equal(out.n, 2 * PAIRS + 3); /* "b" and the space are in two pieces */
    tokens_free(&out);
    free(text);
    tokenizer_free(t);
}

/* ---- categories ------------------------------------------------------------------------------------- */

/* Writes all characters except surrogates. */
static void put_all(struct buf *b)
{
    char s[4];
    buf_init(b, 8 << 20);
    for (uint32_t c = 0; c < 0x110000; c++)
        if (c < 0xd800 || c > 0xdfff)
            buf_put(b, s, (size_t)utf8_encode(c, s));
}

/* Checks the characters of a category in split patterns: their number golden[0] and hash golden[1]. */
static void check_category(const char *name, const json_t *golden, const struct buf *text, const char *known)
{
    char pattern[16], hex[65];
    int code;
    size_t at, count = 0;
    struct sha256 sum;
    snprintf(pattern, sizeof pattern, "\\p{%s}", name);
    pcre2_code *re =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    assert_non_null(re);
    pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    const PCRE2_SIZE *v = pcre2_get_ovector_pointer(match);
    sha256_begin(&sum);
    for (size_t from = 0;
         pcre2_match(re, (PCRE2_SPTR)known, text->len, from, PCRE2_NO_UTF_CHECK, match, NULL) > 0;
         from = v[1]) {
        uint32_t c;
        utf8_decode(text->data + v[0], text->len - v[0], &c);
        sha256_add(&sum, &c, sizeof c);
        count++;
    }
    sha256_end(&sum, hex);
    assert_string_equal(hex, json_string_value(json_array_get(golden, 1)));
    assert_int_equal(count, json_integer_value(json_array_get(golden, 0)));
    pcre2_match_data_free(match);
    pcre2_code_free(re);
}

static void t_categories(void **state)
{
    json_t *golden = json_load_file("tests/golden/tokenizer/categories.json", 0, NULL), *v;
    struct buf text, room;
    const char *name, *known;
    int n = 0;
    put_all(&text);
    buf_init(&room, 8 << 20);
    assert_ptr_equal(tokenizer_known(text.data, 1000, &room), text.data); /* nothing newer: no copy */
    known = tokenizer_known(text.data, text.len, &room);
    json_object_foreach(golden, name, v)
    {
        if (json_is_string(v))
            continue;
        check_category(name, v, &text, known);
        n++;
    }
    assert_int_equal(n, 28);
    buf_free(&text);
    buf_free(&room);
    json_decref(golden);
}

static void t_truncated(void **state)
{
    struct parts p = whole();
    char *json = make_json(&p);
    for (size_t n = 0, len = strlen(json); n < len; n++) {
        char *head = malloc(n ? n : 1); /* a separate block, so that sanitizers detect reads past its end */
        memcpy(head, json, n);
        struct err e = ERR_INIT;
        assert_null(tokenizer_parse(head, n, &e));
        assert_int_equal(e.kind, ERR_MODEL);
        assert_non_null(strstr(e.text, "tokenizer.json: "));
        free(head);
    }
    free(json);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the pair of lowest rank is merged first, leftmost of equals; any bytes are encoded", t_merges),
    CLAIM("added tokens: longest first, only where they are allowed, never across parts", t_added),
    CLAIM("decoding returns the encoded bytes; long pieces stay fast", t_round_trip),
    CLAIM("words and merges are read in every JSON spelling; ids may have gaps", t_spellings),
    CLAIM("patterns match Unicode without a depth limit; whole tokens are used if the file says so",
          t_patterns),
    CLAIM("every character has the category that the published splits give it", t_categories),
    CLAIM("a truncated file is refused wherever it ends", t_truncated),
    CLAIM("unsupported settings that would change ids are refused and named", t_refusals),
};

CHECK_MAIN()
