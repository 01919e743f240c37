/* constraint.c - see constraint.h. */
#include "serve/constraint.h"

#include "actions/dialect.h"
#include "serve/json_schema.h"
#include "text/chat_template.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { KEPT = 16 };

struct constraints {
    pthread_mutex_t lock;
    struct constraint kept[KEPT]; /* idle; the oldest first */
    int n;
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
    pthread_mutex_lock(&c->lock);
    c->tokenizer = t;
    for (int i = 0; i < c->n; i++)
        grammar_free(c->kept[i].grammar);
    c->n = 0;
    pthread_mutex_unlock(&c->lock);
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

/* A mark, as the token that it is in this vocabulary, or as its letters. */
static gx_node mark(struct gx *x, const struct tokenizer *t, const char *spelling)
{
    return tokenizer_is_special(t, tokenizer_find(t, spelling)) ? gx_token(x, spelling) : gx_lit(x, spelling);
}

/* {"name": "...", "arguments": {...}} */
static gx_node call_of(struct gx *x, const json_t *tool, struct err *e)
{
    const json_t *f = json_object_get(tool, "function"), *parameters = json_object_get(f, "parameters");
    struct err why = ERR_INIT;
    char *name = conversation_json(json_object_get(f, "name"));
    char *head = xasprintf("{\"name\": %s, \"arguments\": ", name);
    gx_node arguments =
        json_object_size(parameters) ? json_schema_expression(x, parameters, &why) : gx_lit(x, "{}");
    gx_node node = arguments < 0 ? err_set(e, ERR_USAGE, "tool %s: %s", name, why.text)
                                 : GX_SEQ(x, gx_lit(x, head), arguments, gx_lit(x, "}"));
    free(head);
    free(name);
    return node;
}

static gx_node any_call(struct gx *x, const struct chat_body *b, const struct tokenizer *t, struct err *e)
{
    gx_node calls[CONVERSATION_PARTS];
    int n = 0;
    json_t *tool;
    size_t i;
    json_array_foreach(json_object_get(b->talk.root, "tools"), i, tool)
    {
        const char *name = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
        if (b->tools == TOOLS_NAMED && strcmp(name, b->tool) != 0)
            continue;
        if ((calls[n++] = call_of(x, tool, e)) < 0)
            return -1;
    }
    return GX_SEQ(x, mark(x, t, "<TOOLCALL>"), gx_lit(x, "["), gx_alt(x, n, calls), gx_lit(x, "]"),
                  mark(x, t, "</TOOLCALL>"));
}

static gx_node expression(struct gx *x, const struct chat_body *b, const struct tokenizer *t, struct err *e)
{
    gx_node root = b->schema       ? json_schema_expression(x, b->schema, e)
                   : b->any_object ? json_any_object(x)
                                   : any_call(x, b, t, e);
    if (root < 0)
        return -1;
    gx_node end = gx_repeat(x, mark(x, t, chat_end_mark(t)), 0, 1);
    return GX_SEQ(x, root, end);
}

static struct grammar *compile(const struct chat_body *b, const struct tokenizer *t, struct err *e)
{
    if (b->dialect) {
        const char *const *names = dialect_names();
        while (*names && strcmp(*names, b->dialect) != 0)
            names++;
        struct dialect *d = *names ? dialect_load(b->dialect, e) : NULL;
        struct grammar *g = d ? dialect_grammar(d, GOAL_STEP, t, 0, 0, e) : NULL;
        if (!*names)
            err_set(e, ERR_USAGE, "there is no dialect '%.60s'", b->dialect);
        dialect_free(d);
        return g;
    }
    struct gx *x = gx_new();
    gx_node root = expression(x, b, t, e);
    struct grammar *g = root < 0 ? NULL : grammar_compile(x, root, t, e);
    gx_free(x);
    return g;
}

/* ---- keeping ----------------------------------------------------------------------------------------- */

static void hash_json(XXH3_state_t *x, const json_t *v)
{
    char *text = json_dumps(v, JSON_ENCODE_ANY);
    if (text)
        XXH3_64bits_update(x, text, strlen(text) + 1);
    free(text);
}

static uint64_t hash_of(const struct chat_body *b)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x)
        die(ERR_ENV, "out of memory");
    XXH3_64bits_reset(x);
    int kind[2] = {b->any_object, b->schema ? 0 : (int)b->tools};
    XXH3_64bits_update(x, kind, sizeof kind);
    if (b->dialect)
        XXH3_64bits_update(x, b->dialect, strlen(b->dialect) + 1);
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
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->n && !found; i++)
        if (c->kept[i].hash == want->hash && c->kept[i].tokenizer == want->tokenizer) {
            *want = c->kept[i];
            memmove(c->kept + i, c->kept + i + 1, (size_t)(--c->n - i) * sizeof *c->kept);
            found = true;
        }
    pthread_mutex_unlock(&c->lock);
    return found;
}

int constraint_take(struct constraints *c, const struct chat_body *b, const struct tokenizer *t,
                    struct constraint *out, struct err *e)
{
    struct err why = ERR_INIT;
    *out = (struct constraint){.tokenizer = t};
    if (!b->schema && !b->any_object && !b->dialect && b->tools < TOOLS_REQUIRED)
        return 0;
    out->hash = hash_of(b);
    if (take_kept(c, out) || (out->grammar = compile(b, t, &why)))
        return 0;
    return err_set(e, ERR_USAGE, "%s", why.text);
}

void constraint_give(struct constraints *c, struct constraint *used)
{
    if (!used->grammar)
        return;
    struct grammar *unused = used->grammar;
    pthread_mutex_lock(&c->lock);
    if (used->tokenizer == c->tokenizer) {
        unused = c->n == KEPT ? c->kept[0].grammar : NULL;
        if (unused)
            memmove(c->kept, c->kept + 1, (size_t)--c->n * sizeof *c->kept);
        c->kept[c->n++] = *used;
    }
    pthread_mutex_unlock(&c->lock);
    if (unused)
        grammar_free(unused);
    used->grammar = NULL;
}
