/* t_secret.c - tests of secret values: how they are given, and that neither texts nor memory keep them. */
#include "check.h"
#include "place.h"

#include "base/file.h"
#include "base/secret.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANARY "Kx7\\\"qZ-canary-91" /* contains characters that JSON escapes */
#define PLAIN  "quokka-4417-willow"

/* ---- options --------------------------------------------------------------------------------- */

static void t_taking(void **state)
{
    char dir[PLACE_PATH], *spec = NULL, *path = NULL;
    assert_non_null(mkdtemp(place_template(dir)));
    assert_true(asprintf(&path, "%s/s", dir) > 0 && asprintf(&spec, "FILE=file:%s", path) > 0);
    static const struct {
        const char *spec, *says;
    } wrong[] = {
        {"", "expects NAME=env:VARIABLE"},
        {"hunter2-in-clear", "expects NAME=env:VARIABLE"}, /* the message does not repeat the argument */
        {"2fa=env:A", "expects NAME=env:VARIABLE"},
        {"A B=env:A", "expects NAME=env:VARIABLE"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ=env:A", "up to 32"},
        {"A=hunter2-in-clear", "expects env:VARIABLE or file:PATH"},
        {"A=env:HOLORUN_NOT_THERE", "environment variable 'HOLORUN_NOT_THERE' is not set"},
        {"A=env:SHORT", "shorter than 4"},
        {"A=env:TAB", "control character"},
        {"A=env:BYTES", "not UTF-8"},
        {"A=file:/nowhere/at/all", "/nowhere/at/all"},
        {"A=file:/dev/zero", "secret A"},
    };
    int n = sizeof wrong / sizeof *wrong;
    struct secrets *s = secrets_new();
    for (int i = 0; i < n; i++) {
        struct err e = ERR_INIT;
        setenv("SHORT", "abc", 1);
        setenv("TAB", "ab\tcd", 1);
        setenv("BYTES",
               "ab\xff\xff"
               "cd",
               1);
        if (!secrets_add(s, wrong[i].spec, &e) || e.kind != ERR_USAGE || !strstr(e.text, wrong[i].says))
            fail_msg("%s: %s", wrong[i].spec, e.text);
        assert_null(strstr(e.text, "hunter2"));
    }
    assert_int_equal(secrets_count(s), 0);
    setenv("GOOD", PLAIN, 1);
    char *environment = getenv("GOOD");
    assert_int_equal(secrets_add(s, "GOOD=env:GOOD", NULL), 0);
    assert_null(getenv("GOOD"));
    assert_int_equal(environment[0], 0); /* as visible in /proc */
    assert_int_equal(file_write(path, PLAIN "\r\n", sizeof PLAIN + 1, NULL), 0);
    assert_int_equal(chmod(path, 0666), 0); /* writable by everyone */
    struct err others = ERR_INIT;
    assert_int_equal(secrets_add(s, spec, &others), -1);
    assert_non_null(strstr(others.text, "writable by every user"));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(secrets_add(s, spec, NULL), 0);
    setenv("GOOD", PLAIN, 1);
    assert_int_equal(secrets_add(s, "GOOD=env:GOOD", NULL), -1); /* duplicate name */
    char *filled = secrets_fill(s, "a{{FILE}}b{{NONE}}{{GOOD}}{{GOOD");
    assert_string_equal(filled, "a" PLAIN "b{{NONE}}" PLAIN "{{GOOD");
    secrets_free_filled(filled);
    secrets_free(s);
    unlink(path);
    rmdir(dir);
    free(spec);
    free(path);
    check_note("%d of %d hostile cases ended as documented", n + 1, n + 1);
}

/* ---- masking --------------------------------------------------------------------------------- */

static struct secrets *three(void)
{
    struct secrets *s = secrets_new();
    setenv("A", CANARY, 1);
    setenv("B", "1234", 1);
    setenv("C", "nine", 1);
    assert_int_equal(secrets_add(s, "CANARY=env:A", NULL), 0);
    assert_int_equal(secrets_add(s, "PIN=env:B", NULL), 0);
    assert_int_equal(secrets_add(s, "WORD=env:C", NULL), 0);
    return s;
}

static void t_scrub(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"{\"a\": \"x 1234 y\", \"t\": 1234, \"n\": [1234]}",
         "{\"a\": \"x {{PIN}} y\", \"t\": 1234, \"n\": [1234]}"},
        {"{\"a\": \"Kx7\\\\\\\"qZ-canary-91\"}", "{\"a\": \"{{CANARY}}\"}"},
        {"{\"reply\": \"{\\\"a\\\": \\\"Kx7\\\\\\\\\\\\\\\"qZ-canary-91\\\"}\"}",
         "{\"reply\": \"{\\\"a\\\": \\\"{{CANARY}}\\\"}\"}"}, /* JSON inside a JSON string, as in an event */
        {"{\"a\": \"\\nine \\u0009ine \\\\nine\"}", "{\"a\": \"\\nine \\u0009ine \\\\{{WORD}}\"}"},
        {"{\"a\": \"\\u1234\"}", "{\"a\": \"\\u1234\"}"}, /* unchanged */
        {"{\"1234\": \"\\\"1234\\\\\"}", "{\"{{PIN}}\": \"\\\"{{PIN}}\\\\\"}"},
        {"{\"a\": \"Authorization: Bearer abcdef0123456789 x\"}",
         "{\"a\": \"Authorization: Bearer [redacted] x\"}"},
        {"{\"a\": \"HAI_API_KEY=hk-abcdefghijklmnop\"}", "{\"a\": \"HAI_API_KEY=[redacted]\"}"},
        {"{\"a\": \"sk-proj-ABCDEFGHIJKLMNOP.\"}", "{\"a\": \"sk-[redacted]\"}"},
        {"{\"a\": \"AKIAIOSFODNN7EXAMPLE\"}", "{\"a\": \"AKIA[redacted]\"}"},
        {"{\"a\": \"?user=b&password=s3cret\\\"x&z=1\"}", "{\"a\": \"?user=b&password=[redacted]&z=1\"}"},
        {"{\"a\": \"PassWord=geheim\\nnext\"}", "{\"a\": \"PassWord=[redacted]\\nnext\"}"},
        {"{\"a\": \"a task-list, risk-free: the bearer of bad news\"}",
         "{\"a\": \"a task-list, risk-free: the bearer of bad news\"}"},
        {"{\"a\": \"Password=\"}", "{\"a\": \"Password=\"}"},
        {"{\"a\": \"cut off 1234", "{\"a\": \"cut off {{PIN}}"},
    };
    struct secrets *s = three();
    int n = sizeof cases / sizeof *cases;
    for (int i = 0; i < n; i++) {
        struct buf b;
        buf_init(&b, 1 << 16);
        buf_puts(&b, cases[i].from);
        secrets_scrub_json(s, &b);
        assert_string_equal(b.data, cases[i].to);
        buf_free(&b);
    }
    char *masked = secrets_mask(s, "say " CANARY "1234");
    assert_string_equal(masked, "say {{CANARY}}{{PIN}}");
    free(masked);
    masked = secrets_mask(s, "{\"a\": \"Kx7\\\\\\\"qZ-canary-91\"}"); /* a reply shown verbatim */
    assert_string_equal(masked, "{\"a\": \"{{CANARY}}\"}");
    free(masked);
    secrets_free(s);
    check_note("%d of %d hostile cases ended as documented", n, n);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Counts occurrences of a text in the writable memory of this process.  The argument is reversed, so that
 * it does not match itself. */
static int found_in_memory(const char *backwards)
{
    size_t n = strlen(backwards), len = 0;
    char line[512];
    int found = 0;
    int dumpable = prctl(PR_GET_DUMPABLE); /* without it only root opens the file */
    prctl(PR_SET_DUMPABLE, 1);
    FILE *maps = fopen("/proc/self/maps", "r"), *mem = fopen("/proc/self/mem", "r");
    prctl(PR_SET_DUMPABLE, dumpable);
    assert_true(maps && mem);
    setvbuf(mem, NULL, _IONBF, 0);
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char mode[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || mode[0] != 'r' || mode[1] != 'w')
            continue;
        len = to - from;
        if (len > 1ul << 30) /* shadow memory of a sanitizer */
            continue;
        char *copy = malloc(len);
        if (copy && !fseek(mem, (long)from, SEEK_SET) && fread(copy, 1, len, mem) == len)
            for (size_t i = 0; i + n <= len; i++) {
                size_t k = 0;
                while (k < n && copy[i + k] == backwards[n - 1 - k])
                    k++;
                found += k == n;
            }
        if (copy)
            explicit_bzero(copy, len); /* else the next search finds the copy */
        free(copy);
    }
    fclose(maps);
    fclose(mem);
    return found;
}

static void t_memory(void **state)
{
    static const char backwards[] = "71-nocub-evitcepser";
    char forwards[sizeof backwards] = "";
    for (size_t i = 0; i + 1 < sizeof backwards; i++)
        forwards[i] = backwards[sizeof backwards - 2 - i];
    char dir[PLACE_PATH], *spec = NULL, *path = NULL;
    assert_non_null(mkdtemp(place_template(dir)));
    assert_true(asprintf(&path, "%s/s", dir) > 0 && asprintf(&spec, "A=file:%s", path) > 0);
    assert_int_equal(file_write(path, forwards, strlen(forwards), NULL), 0);
    explicit_bzero(forwards, sizeof forwards);
    assert_int_equal(found_in_memory(backwards), 0);
    struct secrets *s = secrets_new();
    assert_int_equal(secrets_add(s, spec, NULL), 0);
    char *filled = secrets_fill(s, "{{A}}");
    assert_int_equal(found_in_memory(backwards), 2); /* the value and the filled text */
    secrets_free_filled(filled);
    assert_int_equal(found_in_memory(backwards), 1);
    secrets_free(s);
    assert_int_equal(found_in_memory(backwards), 0);
    unlink(path);
    rmdir(dir);
    free(path);
    free(spec);
}

/* Other programs escape more characters: Python all non-ASCII letters, PHP the slash. */
static void t_spellings(void **state)
{
    static const char *const spellings[] = {
        "p\xc3\xa4ss/\"7\\x\xf0\x9f\x98\x80",
        "p\xc3\xa4ss/\\\"7\\\\x\xf0\x9f\x98\x80",
        "p\\u00e4ss/\\\"7\\\\x\\ud83d\\ude00",
        "p\\u00E4ss\\/\\\"7\\\\x\\uD83D\\uDE00",
        "\\u0070\\u00e4\\u0073\\u0073\\u002f\\u0022\\u0037\\u005c\\u0078\\ud83d\\ude00",
        "p\\\\u00e4ss/\\\\\\\"7\\\\\\\\x\\\\ud83d\\\\ude00",
        "p\\\\u00e4ss\\\\/\\\\u00227\\\\u005cx\xf0\x9f\x98\x80",
    };
    static const char *const others[] = {"p\\u00e5ss/\\\"7\\\\x\\ud83d\\ude00",
                                         "p\\u00e4ss/\\\"7\\\\x\\ud83d\\ude01",
                                         "p\\u00e4ss/\\\"7x\\ud83d\\ude00", "p\\u00e"};
    struct secrets *s = secrets_new();
    const char *names[SECRETS_MAX];
    setenv("ODD", spellings[0], 1);
    assert_int_equal(secrets_add(s, "ODD=env:ODD", NULL), 0);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        char *text = xasprintf("it is %s, yes", spellings[i]), *masked = secrets_mask(s, text);
        struct buf json;
        if (strcmp(masked, "it is {{ODD}}, yes") || !secrets_contained_in(s, text) ||
            secrets_find_values(s, text, names) != 1)
            fail_msg("%s: %s", text, masked);
        buf_init(&json, 1 << 16);
        buf_printf(&json, "{\"a\": \"it is %s, yes\"}", spellings[i]);
        secrets_scrub_json(s, &json);
        if (i && strcmp(json.data, "{\"a\": \"it is {{ODD}}, yes\"}")) /* the first is not JSON */
            fail_msg("%s: %s", text, json.data);
        buf_free(&json);
        free(masked);
        free(text);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char *masked = secrets_mask(s, others[i]);
        assert_string_equal(masked, others[i]);
        assert_false(secrets_contained_in(s, others[i]));
        assert_int_equal(secrets_find_values(s, others[i], names), 0);
        free(masked);
    }
    secrets_free(s);
}

static const struct CMUnitTest tests[] = {
    CLAIM("invalid secrets are refused without being repeated", t_taking),
    CLAIM("values and texts that look like keys are masked in records, inside strings only", t_scrub),
    CLAIM("a value is masked however JSON spells its letters, quoted once, twice or not", t_spellings),
    CLAIM("memory holds a value only while it is needed", t_memory),
};

CHECK_MAIN()
