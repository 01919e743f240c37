/* constraint.c - compiles and caches the grammars of constrained replies; see constraint.h. */
#include "serve/constraint.h"

#include "base/lock.h"

#include "actions/dialect.h"
#include "jinja/jinja.h"
#include "serve/json_schema.h"
#include "serve/picture.h"
#include "text/chat_template.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    KEPT = 16,
    GRAMMAR_BYTES = 64 << 20, /* limit for one reply */
    KEPT_BYTES = 64 << 20,    /* limit for all idle grammars */
    /* larger grammars are not cached: they could exceed the limit in the next request */
    REUSED_BYTES = GRAMMAR_BYTES / 2,
    TOOL_PROPERTIES = 256,
};

struct constraints {
    pthread_mutex_t lock;
    struct constraint kept[KEPT]; /* idle; oldest first */
    int n;
    size_t bytes; /* bytes of the cached grammars */
    const struct tokenizer *tokenizer;
};

struct constraints *constraints_new(const struct tokenizer *t)
{
    struct constraints *c = xcalloc(1, sizeof *c);
    c->tokenizer = t;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void constraints_flush(struct constraints *c, const struct tokenizer *t)
{
    LOCKED(&c->lock);
    c->tokenizer = t;
    for (int i = 0; i < c->n; i++)
        grammar_free(c->kept[i].grammar);
    c->n = 0;
    c->bytes = 0;
}

void constraints_free(struct constraints *c)
{
    if (!c)
        return;
    constraints_flush(c, NULL);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* ---- expressions ------------------------------------------------------------------------------------- */

/* Returns a tag as a special token if the vocabulary has it, otherwise as its characters. */
static gx_node mark(struct gx *x, const struct tokenizer *t, const char *spelling)
{
    return tokenizer_is_special(t, tokenizer_find(t, spelling)) ? gx_token(x, spelling) : gx_lit(x, spelling);
}

/* Returns a text of the template in which special tokens are matched as tokens. */
static gx_node template_text(struct gx *x, const struct tokenizer *t, const char *text)
{
    gx_node all = gx_lit(x, "");
    while (*text) {
        const char *end = *text == '<' ? strchr(text, '>') : NULL;
        char *tag = end ? xasprintf("%.*s", (int)(end - text) + 1, text) : NULL;
        bool special = tag && tokenizer_is_special(t, tokenizer_find(t, tag));
        size_t n = special ? strlen(tag) : 1;
        if (!special) { /* up to the next tag */
            n += strcspn(text + 1, "<");
            free(tag);
            tag = xasprintf("%.*s", (int)n, text);
        }
        all = GX_SEQ(x, all, special ? gx_token(x, tag) : gx_lit(x, tag));
        free(tag);
        text += n;
    }
    return all;
}

/* Returns the properties of a tool's parameters, or NULL. */
static const json_t *properties_of(const json_t *function)
{
    const json_t *p = json_object_get(json_object_get(function, "parameters"), "properties");
    return json_object_size(p) ? p : NULL;
}

/* Builds: begin {"name": NAME, "arguments": {...}} end. */
static gx_node json_call(struct gx *x, const struct chat_calls *k, const json_t *function,
                         const struct tokenizer *t, struct err *e)
{
    autofree char *name = jinja_json_text(json_object_get(function, "name"));
    autofree char *head = xasprintf("{\"name\": %s, \"arguments\": ", name);
    gx_node arguments = properties_of(function)
                            ? json_schema_expression(x, json_object_get(function, "parameters"), e)
                            : gx_lit(x, "{}");
    gx_node node = arguments < 0 ? -1
                                 : GX_SEQ(x, template_text(x, t, k->begin), gx_lit(x, head), arguments,
                                          gx_lit(x, "}"), template_text(x, t, k->end));
    return node;
}

/* Returns whether a value is written as plain text: a string without a list of values. */
static bool is_text(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    return type && !strcmp(type, "string") && !json_object_get(schema, "enum") &&
           !json_object_get(schema, "const");
}

/* Matches text that does not contain the beginning of a tag of a call. */
static gx_node free_text(struct gx *x)
{
    gx_node angle = GX_SEQ(x, gx_lit(x, "<"), gx_utf8(x, "<|/pPfFtT", 1, 1));
    return gx_repeat(x, GX_ALT(x, gx_utf8(x, "<", 1, 1), angle, gx_set(x, "\\x0a\\x09")), 0, -1);
}

/* Returns an alternative of the strings in a list; -1 if the list has other values. */
static gx_node word_values(struct gx *x, const json_t *values)
{
    size_t n = json_array_size(values), i = 0;
    gx_node *words = xcalloc(n + 1, sizeof *words);
    for (; i < n && json_is_string(json_array_get(values, i)) && !gx_failed(x, NULL); i++)
        words[i] = gx_lit(x, json_string_value(json_array_get(values, i)));
    gx_node all = n && i == n ? gx_alt(x, (int)n, words) : -1;
    free(words);
    return all;
}

static gx_node xml_value(struct gx *x, const json_t *schema, struct err *e)
{
    gx_node words = word_values(x, json_object_get(schema, "enum"));
    return is_text(schema) ? free_text(x) : words >= 0 ? words : json_schema_expression(x, schema, e);
}

static bool is_required(const json_t *function, const char *name)
{
    const json_t *list = json_object_get(json_object_get(function, "parameters"), "required");
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v) if (json_is_string(v) && !strcmp(json_string_value(v), name)) return true;
    return false;
}

/* Builds part[1] KEY part[2] VALUE part[3] for each property. Returns -1 with e for a schema that cannot be
 * read. */
static gx_node xml_arguments(struct gx *x, const struct chat_calls *k, const json_t *function, struct err *e)
{
    gx_node parts[TOOL_PROPERTIES];
    const json_t *properties = properties_of(function);
    const char *key;
    json_t *schema;
    int n = 0;
    if (json_object_size(properties) > TOOL_PROPERTIES)
        return err_set(e, ERR_USAGE, "'parameters' has more than %d properties", TOOL_PROPERTIES);
    json_object_foreach((json_t *)(uintptr_t)properties, key, schema)
    {
        gx_node value = xml_value(x, schema, e);
        if (value < 0)
            return -1;
        gx_node one = GX_SEQ(x, gx_lit(x, k->part[1]), gx_lit(x, key), gx_lit(x, k->part[2]), value,
                             gx_lit(x, k->part[3]));
        parts[n++] = is_required(function, key) ? one : gx_repeat(x, one, 0, 1);
    }
    return gx_seq(x, n, parts);
}

/* Builds: begin NAME part[0] ARGUMENTS end. */
static gx_node xml_call(struct gx *x, const struct chat_calls *k, const json_t *function,
                        const struct tokenizer *t, struct err *e)
{
    const char *name = json_string_value(json_object_get(function, "name"));
    gx_node arguments = xml_arguments(x, k, function, e);
    return arguments < 0 ? -1
                         : GX_SEQ(x, template_text(x, t, k->begin), gx_lit(x, name), gx_lit(x, k->part[0]),
                                  arguments, template_text(x, t, k->end));
}

static gx_node any_call(struct gx *x, const struct chat_body *b, const struct chat_template *c,
                        const struct tokenizer *t, struct err *e)
{
    const struct chat_calls *k = chat_template_calls(c);
    gx_node calls[CONVERSATION_PARTS];
    int n = 0;
    json_t *tool;
    size_t i;
    json_array_foreach(json_object_get(b->talk.root, "tools"), i, tool)
    {
        struct err why = ERR_INIT;
        const json_t *function = json_object_get(tool, "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        if (b->tools == TOOLS_NAMED && strcmp(name, b->tool) != 0)
            continue;
        calls[n] = k->form == CHAT_CALLS_XML ? xml_call(x, k, function, t, &why)
                                             : json_call(x, k, function, t, &why);
        if (calls[n++] < 0)
            return err_set(e, ERR_USAGE, "tool %s: %s", name, why.text);
    }
    return GX_SEQ(x, gx_repeat(x, gx_lit(x, "\n"), 0, 2), gx_alt(x, n, calls));
}

static gx_node expression(struct gx *x, const struct chat_body *b, const struct chat_template *c,
                          const struct tokenizer *t, struct err *e)
{
    gx_node root = b->schema       ? json_schema_expression(x, b->schema, e)
                   : b->any_object ? json_any_object(x)
                                   : any_call(x, b, c, t, e);
    if (root < 0)
        return -1;
    gx_node end = gx_repeat(x, mark(x, t, chat_end_mark(t)), 0, 1);
    return GX_SEQ(x, root, end);
}

/* Reads the size of the newest image, which bounds the coordinates of a dialect; zeros if there is none. */
static void newest_size(const struct chat_body *b, int *w, int *h)
{
    *w = *h = 0;
    if (b->talk.n_images)
        picture_size(b->talk.files[b->talk.n_images - 1], w, h, NULL);
}

static struct grammar *compile(const struct chat_body *b, const struct chat_template *c,
                               const struct tokenizer *t, struct err *e)
{
    if (b->dialect) {
        const char *const *names = dialect_names();
        while (*names && strcmp(*names, b->dialect) != 0)
            names++;
        struct dialect *d = *names ? dialect_load(b->dialect, e) : NULL;
        int w, h;
        newest_size(b, &w, &h);
        struct grammar *g = d ? dialect_grammar(d, GOAL_STEP, t, w, h, e) : NULL;
        if (!*names)
            err_set(e, ERR_USAGE, "unknown dialect '%.60s'", b->dialect);
        dialect_free(d);
        return g;
    }
    struct gx *x = gx_new_within(b->effort);
    gx_node root = expression(x, b, c, t, e);
    const struct grammar_limits limits = {GRAMMAR_BYTES, b->effort};
    struct grammar *g = root < 0 ? NULL : grammar_compile_within(x, root, t, &limits, e);
    gx_free(x);
    return g;
}

/* ---- cache ------------------------------------------------------------------------------------------ */

static void hash_json(XXH3_state_t *x, const json_t *v)
{
    autofree char *text = json_dumps(v, JSON_ENCODE_ANY);
    if (text)
        XXH3_64bits_update(x, text, strlen(text) + 1);
}

/* Hashes the constraint. Returns 0 without memory: then no cached grammar matches, and the new one is not
 * cached. */
static uint64_t hash_of(const struct chat_body *b)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x)
        return 0;
    XXH3_64bits_reset(x);
    int kind[2] = {b->any_object, b->schema ? 0 : (int)b->tools};
    XXH3_64bits_update(x, kind, sizeof kind);
    if (b->dialect) {
        int size[2];
        newest_size(b, &size[0], &size[1]);
        XXH3_64bits_update(x, b->dialect, strlen(b->dialect) + 1);
        XXH3_64bits_update(x, size, sizeof size);
    }
    if (b->schema)
        hash_json(x, b->schema);
    if (b->tools >= TOOLS_REQUIRED)
        hash_json(x, json_object_get(b->talk.root, "tools"));
    if (b->tools == TOOLS_NAMED)
        XXH3_64bits_update(x, b->tool, strlen(b->tool) + 1);
    uint64_t hash = XXH3_64bits_digest(x);
    XXH3_freeState(x);
    return hash;
}

static bool take_kept(struct constraints *c, struct constraint *want)
{
    bool found = false;
    LOCKED(&c->lock);
    for (int i = 0; i < c->n && !found && want->hash; i++)
        if (c->kept[i].hash == want->hash && c->kept[i].tokenizer == want->tokenizer) {
            *want = c->kept[i];
            c->bytes -= grammar_bytes(want->grammar);
            memmove(c->kept + i, c->kept + i + 1, (size_t)(--c->n - i) * sizeof *c->kept);
            found = true;
        }
    return found;
}

int constraint_acquire(struct constraints *c, const struct chat_body *b, const struct chat_template *template,
                       const struct tokenizer *t, struct constraint *out, struct err *e)
{
    struct err why = ERR_INIT;
    *out = (struct constraint){.tokenizer = t};
    if (b->tools >= TOOLS_REQUIRED && !chat_template_calls(template))
        return err_set(e, ERR_USAGE,
                       "the model's chat template does not support tools, so none can be required");
    if (!b->schema && !b->any_object && !b->dialect && b->tools < TOOLS_REQUIRED)
        return 0;
    out->hash = hash_of(b);
    if (take_kept(c, out))
        grammar_set_effort(out->grammar, b->effort);
    else if (!(out->grammar = compile(b, template, t, &why)))
        return err_set(e, why.kind == ERR_MODEL ? ERR_USAGE : why.kind, "%s", why.text);
    grammar_mask(out->grammar, grammar_start(out->grammar)); /* fails before a stream begins */
    if (!grammar_failed(out->grammar, e))
        return 0;
    constraint_release(c, out);
    return -1;
}

/* Evicts the oldest grammars until `bytes` more fit. */
static void evict(struct constraints *c, size_t bytes)
{
    int n = 0;
    for (; c->n - n == KEPT || (n < c->n && c->bytes + bytes > KEPT_BYTES); n++) {
        c->bytes -= grammar_bytes(c->kept[n].grammar);
        grammar_free(c->kept[n].grammar);
    }
    c->n -= n;
    memmove(c->kept, c->kept + n, (size_t)c->n * sizeof *c->kept);
}

void constraint_release(struct constraints *c, struct constraint *used)
{
    struct grammar *g = used->grammar;
    if (!g)
        return;
    grammar_set_effort(g, NULL);
    size_t bytes = grammar_bytes(g);
    bool reusable = used->hash && bytes <= REUSED_BYTES && !grammar_failed(g, NULL);
    pthread_mutex_lock(&c->lock);
    if (reusable && used->tokenizer == c->tokenizer) {
        evict(c, bytes);
        c->kept[c->n++] = *used;
        c->bytes += bytes;
        g = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    grammar_free(g);
    used->grammar = NULL;
}
