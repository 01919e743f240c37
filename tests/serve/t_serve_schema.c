/* t_serve_schema.c - claims about JSON schemas of replies: those that pydantic and zod generate
 * (golden/schemas) are read, and texts of their grammars fit them. */
#include "tiny_check.h"

#include "base/buf.h"
#include "serve/json_schema.h"

#include <jansson.h>
#include <stdlib.h>

enum { MOST = 3000 };

static const char *of(const json_t *c, const char *key)
{
    return json_string_value(json_object_get(c, key));
}

static struct grammar *compile(const json_t *schema, const char *name)
{
    struct gx *x = gx_new();
    struct err e = ERR_INIT;
    gx_node root = json_schema_expression(x, schema, &e);
    struct grammar *g = root < 0 ? NULL : grammar_compile(x, root, engine_tokenizer(engine), &e);
    if (!g)
        fail_msg("%s: %s", name, e.text);
    gx_free(x);
    return g;
}

/* Token 16 + b is byte b. */
static bool accepts(struct grammar *g, const char *text)
{
    int state = grammar_start(g);
    for (; *text && state != GRAMMAR_DEAD; text++)
        state = grammar_advance(g, state, 16 + (unsigned char)*text);
    return state != GRAMMAR_DEAD && grammar_accepts(g, state);
}

static void t_texts(void **state)
{
    json_t *golden = json_load_file("tests/golden/schemas/schemas.json", 0, NULL), *c, *text;
    size_t i, k;
    int told = 0, wrong = 0;
    assert_non_null(golden);
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        struct grammar *g = compile(json_object_get(c, "schema"), of(c, "name"));
        static const char *const lists[] = {"wrong", "fits"};
        for (int fits = 0; fits < 2; fits++)
            json_array_foreach(json_object_get(c, lists[fits]), k, text)
            {
                bool is = accepts(g, json_string_value(text));
                if (is != (bool)fits)
                    print_error("%s: %s is%s accepted\n", of(c, "name"), json_string_value(text),
                                is ? "" : " not");
                wrong += is != (bool)fits;
                told++;
            }
        grammar_free(g);
    }
    check_note("%zu schemas, %d texts", json_array_size(json_object_get(golden, "cases")), told);
    assert_int_equal(wrong, 0);
    json_decref(golden);
}

static void t_noted(void **state)
{
    json_t *golden = json_load_file("tests/golden/schemas/schemas.json", 0, NULL), *c;
    size_t i;
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        struct notes n = {{0}, {0}};
        struct err e = ERR_INIT;
        assert_int_equal(json_schema_check(json_object_get(c, "schema"), &n, NULL, &e), 0);
        if (strcmp(n.ignored, of(c, "ignored")) != 0)
            fail_msg("%s: '%s'", of(c, "name"), n.ignored);
    }
    json_decref(golden);
}

/* ---- texts that a grammar allows ---------------------------------------------------------------------- */

static bool allowed(const uint64_t *mask, int byte)
{
    return mask[(16 + byte) / 64] >> (16 + byte) % 64 & 1;
}

/* A random byte that may come; ends of strings and lists often. */
static int next_byte(const uint64_t *mask, uint64_t *rng)
{
    int all[256], n = 0;
    for (const char *p = "\"]}"; *p; p++)
        if (allowed(mask, *p) && check_random(rng) < 0.3)
            return *p;
    for (int b = 1; b < 256; b++)
        if (allowed(mask, b))
            all[n++] = b;
    return n ? all[(int)(check_random(rng) * n)] : -1;
}

static bool walk(struct grammar *g, struct buf *out, uint64_t *rng)
{
    int state = grammar_start(g);
    for (int i = 0; i < MOST; i++) {
        if (grammar_finished(g, state) || (grammar_accepts(g, state) && check_random(rng) < 0.3))
            return true;
        int byte = next_byte(grammar_mask(g, state), rng);
        if (byte < 0)
            return grammar_accepts(g, state);
        buf_putc(out, (char)byte);
        state = grammar_advance(g, state, 16 + byte);
    }
    return false;
}

/* All are JSON; HOLORUN_SCHEMA_TEXTS=FILE writes them for make_schemas.py --check. */
static void t_walks(void **state)
{
    json_t *golden = json_load_file("tests/golden/schemas/schemas.json", 0, NULL), *c;
    const char *path = getenv("HOLORUN_SCHEMA_TEXTS");
    FILE *to = path ? fopen(path, "w") : NULL;
    uint64_t rng = check_seed();
    int told = 0;
    size_t i;
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        struct grammar *g = compile(json_object_get(c, "schema"), of(c, "name"));
        for (int k = 0; k < (to ? 60 : 6); k++) {
            struct buf text;
            buf_init(&text, 1 << 20);
            if (walk(g, &text, &rng)) {
                json_t *v = json_loadb(text.data, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
                if (!v)
                    fail_msg("%s: %s", of(c, "name"), text.data);
                json_decref(v);
                if (to) {
                    json_t *line = json_pack("{s:s, s:s}", "name", of(c, "name"), "text", text.data);
                    json_dumpf(line, to, JSON_COMPACT);
                    fputc('\n', to);
                    json_decref(line);
                }
                told++;
            }
            buf_free(&text);
        }
        grammar_free(g);
    }
    if (to)
        fclose(to);
    check_note("%d texts", told);
    json_decref(golden);
}

static void t_refused(void **state)
{
    static const struct {
        const char *schema, *says;
    } cases[] = {
        {"{\"type\": \"text\"}", "unknown 'type'"},
        {"{\"$ref\": \"#/$defs/x\"}", "is not in this schema"},
        {"{\"$ref\": \"other.json#/a\"}", "is not in this schema"},
        {"{\"$ref\": \"#\"}", "the schema requires itself"},
        {"{\"type\": \"object\", \"properties\": {\"a\": {\"$ref\": \"#\"}}, \"required\": [\"a\"]}",
         "the schema requires itself"},
        {"{\"type\": \"integer\", \"minimum\": 5, \"maximum\": 4}", "no number"},
        {"{\"type\": \"number\", \"minimum\": 0.0000001, \"maximum\": 0.0000002}", "no number"},
        {"{\"type\": \"integer\", \"minimum\": 1e12}", "no number of nine digits"},
        {"{\"type\": \"string\", \"minLength\": 4, \"maxLength\": 3}", "'minLength' is above"},
        {"{\"type\": \"string\", \"minLength\": -1}", "must be a whole number from 0"},
        {"{\"type\": \"array\", \"items\": false, \"minItems\": 1}", "no item is allowed"},
        {"{\"type\": \"array\", \"prefixItems\": [{}], \"minItems\": 3}", "'minItems' is above"},
        {"{\"enum\": []}", "'enum' must be a list"},
        {"{\"anyOf\": []}", "'anyOf'"},
        {"{\"type\": []}", "'type' is an empty list"},
        {"{\"type\": \"object\", \"properties\": []}", "'properties' must be an object"},
        {"{\"type\": \"object\", \"required\": [3]}", "'required' must be a list of names"},
        {"{\"type\": \"object\", \"properties\": {\"a\": 3}}",
         "at '#/properties/a': a schema must be an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *schema = json_loads(cases[i].schema, 0, NULL);
        struct err e = ERR_INIT;
        assert_non_null(schema);
        assert_int_equal(json_schema_check(schema, NULL, NULL, &e), -1);
        if (!strstr(e.text, cases[i].says))
            fail_msg("%s: %s", cases[i].schema, e.text);
        json_decref(schema);
    }
}

/* Reads and compiles a schema within 5 s of CPU time.  Returns the error. */
static struct err tried(char *text)
{
    json_t *schema = json_loads(text, 0, NULL);
    struct effort w = {.cpu_s = 5};
    struct err e = ERR_INIT;
    struct gx *x = gx_new_within(&w);
    assert_non_null(schema);
    gx_node root = json_schema_expression(x, schema, &e);
    struct grammar *g = root < 0 ? NULL
                                 : grammar_compile_within(x, root, engine_tokenizer(engine),
                                                          &(struct grammar_limits){64 << 20, &w}, &e);
    assert_false(w.spent);
    grammar_free(g);
    gx_free(x);
    json_decref(schema);
    free(text);
    return e;
}

static char *repeated(const char *begin, const char *part, int n, const char *end)
{
    struct buf b;
    buf_init(&b, 64 << 20);
    buf_puts(&b, begin);
    for (int i = 0; i < n; i++) {
        buf_puts(&b, i ? ", " : "");
        buf_printf(&b, part, i, i, i, i);
    }
    buf_puts(&b, end);
    return buf_take(&b);
}

static void t_bombs(void **state)
{
    struct err e = tried(xstrdup("{\"type\": \"string\", \"pattern\": "
                                 "\"^(((((((()){256}){256}){256}){256}){256}){256}){256}$\"}"));
    assert_non_null(strstr(e.text, "too many repetitions"));
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_puts(&b, "{\"allOf\": [{\"$ref\": \"#/$defs/d0\"}], \"$defs\": {\"d8\": {\"type\": \"object\"}");
    for (int i = 0; i < 8; i++) {
        buf_printf(&b, ", \"d%d\": {\"allOf\": [", i);
        for (int k = 0; k < 60; k++)
            buf_printf(&b, "%s{\"$ref\": \"#/$defs/d%d\"}", k ? ", " : "", i + 1);
        buf_puts(&b, "]}");
    }
    buf_puts(&b, "}}");
    e = tried(buf_take(&b));
    assert_non_null(strstr(e.text, "'allOf' merges more"));
    e = tried(repeated("{\"oneOf\": [",
                       "{\"type\": \"object\", \"required\": [\"k\"], \"properties\": {\"k\": "
                       "{\"enum\": [%d, \"a%d\", \"b%d\"]}}}",
                       512, "]}"));
    assert_int_equal(e.kind, ERR_NONE);
    e = tried(repeated("{\"properties\": {", "\"p%d\": {\"pattern\": \"[a%dx-z]{1,200}.{3,200}\\\\d{250}\"}",
                       128, "}}"));
    assert_non_null(strstr(e.text, "too large"));
}

/* One property tells the objects apart; the list is compared once, not each with each. */
static void t_exclusive(void **state)
{
    static const struct {
        const char *schema;
        bool noted;
    } cases[] = {
        {"{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"integer\"}, {\"type\": \"null\"}]}", false},
        {"{\"oneOf\": [{\"type\": \"number\"}, {\"type\": \"integer\"}]}", true},
        {"{\"oneOf\": [{\"const\": 1}, {\"const\": 2}, {\"enum\": [3, \"1\"]}]}", false},
        {"{\"oneOf\": [{\"const\": 1}, {\"enum\": [3, 1]}]}", true},
        {"{\"oneOf\": [{\"$ref\": \"#/$defs/a\"}, {\"$ref\": \"#/$defs/b\"}, {\"type\": \"null\"}], \"$defs\": {"
         "\"a\": {\"type\": \"object\", \"required\": [\"x\", \"k\"], \"properties\": {\"x\": {\"const\": 1}, "
         "\"k\": {\"const\": \"a\"}}}, "
         "\"b\": {\"type\": \"object\", \"required\": [\"x\", \"k\"], \"properties\": {\"x\": {\"const\": 1}, "
         "\"k\": {\"const\": \"b\"}}}}}",
         false},
        {"{\"oneOf\": [{\"type\": \"object\", \"properties\": {\"k\": {\"const\": 1}}}, "
         "{\"type\": \"object\", \"properties\": {\"k\": {\"const\": 2}}}]}",
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct notes n = {0};
        struct err e = ERR_INIT;
        json_t *schema = json_loads(cases[i].schema, 0, NULL);
        assert_int_equal(json_schema_check(schema, &n, NULL, &e), 0);
        if (cases[i].noted != (strstr(n.ignored, "oneOf") != NULL))
            fail_msg("%s: '%s'", cases[i].schema, n.ignored);
        json_decref(schema);
    }
}

static const struct CMUnitTest tests[] = {
    WITH_MODEL("schemas of pydantic and zod accept the texts that fit and no others", t_texts),
    CLAIM("keywords that are not enforced are named", t_noted),
    WITH_MODEL("texts of a schema's grammar are JSON", t_walks),
    CLAIM("schemas without a meaning are refused with the place", t_refused),
    CLAIM("oneOf is noted unless types, values or one property tell the schemas apart", t_exclusive),
    WITH_MODEL("a small schema that stands for a huge grammar is refused within 5 s", t_bombs),
};

CHECK_MAIN()
