/* dialect.c - reads dialect files into struct dialect.
 *
 * One table lists the keys, their members, and the slots that their templates may have.  Every key is
 * checked; missing keys have defaults that are safe for any model. */
#include "actions/syntax.h"
#include "actions/tools.h"

#include "base/file.h"
#include "base/sha256.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 256 << 10, MAX_FILLED = 1 << 20, MAX_SLOT = 32, MAX_CONFIG = 32 << 20 };

static const char *const spaces[] = {"norm1000", "norm1", "px", "native", "px28", "fit", NULL};
static const char *const windows[] = {"sawtooth", "strict", NULL};

enum field_type { FIELD_TEXT, FIELD_BOOL, FIELD_INT, FIELD_FLOAT, FIELD_WORD, FIELD_SYNTAX };

struct field {
    const char *key;
    enum field_type type;
    size_t offset;
    double min, max, fallback;
    const char *text;         /* TEXT: default */
    const char *slots;        /* TEXT: allowed slots, separated by spaces; NULL: not a template */
    const char *const *words; /* WORD: values in the order of the enum */
};

/* clang-format off */
#define AT(member) offsetof(struct dialect, member)
#define TEXT(key, text, slots) {#key, FIELD_TEXT, AT(key), 0, 0, 0, text, slots, NULL}
#define WORD(key, words) {#key, FIELD_WORD, AT(key), 0, 0, 0, NULL, NULL, words}
#define FLAG(key) {#key, FIELD_BOOL, AT(key), 0, 1, 0, NULL, NULL, NULL}
#define NUMBER(key, type, min, max, fallback) {#key, type, AT(key), min, max, fallback, NULL, NULL, NULL}
/* clang-format on */

static const struct field fields[] = {
    {"syntax", FIELD_SYNTAX, AT(syntax), 0, 0, 0, NULL, NULL, NULL},
    WORD(coords, spaces),
    WORD(window, windows),
    TEXT(system, "", " date max_steps max_time_s os width height task schema tools "),
    TEXT(task_open, "", NULL),
    TEXT(task_close, "\n", NULL),
    TEXT(observation_open, "", NULL),
    TEXT(observation_close, "", NULL),
    TEXT(tool_output, "{result}\n", " tool result "),
    TEXT(tool_error, "{message}\n", " tool message "),
    TEXT(no_effect, "", NULL),
    TEXT(image_placeholder, "-", NULL),
    TEXT(ground, "", " target "),
    TEXT(ask, "{question}", " question "),
    TEXT(view, "all", NULL),
    TEXT(judge, "", NULL),
    TEXT(validator, "", NULL),
    FLAG(tool_output_always),
    FLAG(image_inline),
    FLAG(think),
    FLAG(yes_no),
    FLAG(cmd_is_ctrl),
    FLAG(run_all),
    FLAG(verbatim),
    FLAG(native_tools),
    NUMBER(max_images, FIELD_INT, 1, 4, 3),
    NUMBER(max_tokens, FIELD_INT, 16, 65536, 4096),
    NUMBER(temperature, FIELD_FLOAT, 0, 5, 0),
    NUMBER(top_p, FIELD_FLOAT, 0.01, 1, 1),
};
enum { NFIELDS = sizeof fields / sizeof *fields };

static const char *const other_keys[] = {"name", "system_file", "screen", "tools", NULL};

/* ---- templates -------------------------------------------------------------------------------- */

/* Returns the length of the {slot} at s including braces; 0: none. */
static size_t slot_at(const char *s)
{
    size_t n = 1;
    if (*s != '{')
        return 0;
    while (n <= MAX_SLOT && (islower((unsigned char)s[n]) || s[n] == '_'))
        n++;
    return n > 1 && s[n] == '}' ? n + 1 : 0;
}

int dialect_fill(const char *tmpl, const char *const *slots, struct buf *out, struct err *e)
{
    for (const char *s = tmpl; *s;) {
        size_t n = slot_at(s);
        if (!n) {
            buf_putc(out, *s++);
            continue;
        }
        const char *const *pair = slots;
        while (*pair && (strlen(pair[0]) != n - 2 || memcmp(pair[0], s + 1, n - 2) != 0))
            pair += 2;
        if (!*pair)
            return err_set(e, ERR_USAGE, "the template has the unknown slot '%.*s'", (int)n, s);
        buf_puts(out, pair[1]);
        s += n;
    }
    return out->full ? err_set(e, ERR_USAGE, "the filled template is too long") : 0;
}

static int check_slots(const struct field *f, const char *text, const char *name, struct err *e)
{
    for (const char *s = text; f->slots && *s; s++) {
        char wanted[MAX_SLOT + 4];
        size_t n = slot_at(s);
        if (!n)
            continue;
        snprintf(wanted, sizeof wanted, " %.*s ", (int)n - 2, s + 1);
        if (!strstr(f->slots, wanted))
            return err_set(e, ERR_USAGE, "dialect '%s': key '%s' has an unknown slot '%.*s'", name, f->key,
                           (int)n, s);
    }
    return 0;
}

/* ---- keys ------------------------------------------------------------------------------------- */

static int wrong(const struct field *f, const char *name, const char *expected, struct err *e)
{
    return err_set(e, ERR_USAGE, "dialect '%s': key '%s' must be %s", name, f->key, expected);
}

static int read_word(const struct field *f, json_t *v, int *to, const char *name, struct err *e)
{
    const char *word = json_string_value(v);
    char list[128] = "one of";
    for (int i = 0; f->words[i]; i++) {
        if (word && !strcmp(word, f->words[i])) {
            *to = i;
            return 0;
        }
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, " '%s'", f->words[i]);
    }
    return v ? wrong(f, name, list, e) : 0;
}

static int read_syntax(const struct field *f, json_t *v, const struct syntax **to, const char *name,
                       struct err *e)
{
    const char *names[32];
    struct field list = *f;
    int n = 0, word = 0;
    for (; n < 31 && syntaxes[n]; n++)
        names[n] = syntaxes[n]->name;
    names[n] = NULL;
    list.words = names;
    if (read_word(&list, v, &word, name, e))
        return -1;
    *to = syntaxes[word];
    return 0;
}

static int read_field(const struct field *f, json_t *v, struct dialect *d, struct err *e)
{
    void *to = (char *)d + f->offset;
    char range[64];
    double number = v ? json_number_value(v) : f->fallback;
    switch (f->type) {
    case FIELD_WORD:
        return read_word(f, v, to, d->name, e);
    case FIELD_SYNTAX:
        return read_syntax(f, v, to, d->name, e);
    case FIELD_BOOL:
        if (v && !json_is_boolean(v))
            return wrong(f, d->name, "true or false", e);
        *(bool *)to = json_is_true(v);
        return 0;
    case FIELD_TEXT:
        if (v && !json_is_string(v))
            return wrong(f, d->name, "a string", e);
        *(char **)to = xstrdup(v ? json_string_value(v) : f->text);
        return check_slots(f, *(char **)to, d->name, e);
    default:
        snprintf(range, sizeof range, "%s from %g to %g", f->type == FIELD_INT ? "an integer" : "a number",
                 f->min, f->max);
        if (v && (!(f->type == FIELD_INT ? json_is_integer(v) : json_is_number(v)) || number < f->min ||
                  number > f->max))
            return wrong(f, d->name, range, e);
        if (f->type == FIELD_INT)
            *(int *)to = (int)number;
        else
            *(float *)to = (float)number;
        return 0;
    }
}

static int check_known(json_t *root, const char *name, struct err *e)
{
    const char *key;
    json_t *value;
    const char *known[NFIELDS + sizeof other_keys / sizeof *other_keys];
    char hint[NAME_HINT];
    int n = 0;
    for (int i = 0; i < NFIELDS; i++)
        known[n++] = fields[i].key;
    for (int i = 0; other_keys[i]; i++)
        known[n++] = other_keys[i];
    json_object_foreach(root, key, value)
    {
        bool found = false;
        for (int i = 0; i < n; i++)
            found = found || !strcmp(known[i], key);
        if (!found)
            return err_set(e, ERR_USAGE, "dialect '%s': unknown key '%s'%s", name, key,
                           name_hint(hint, key, known, n));
    }
    return 0;
}

static int read_screen(json_t *v, struct dialect *d, struct err *e)
{
    json_int_t w = json_integer_value(json_array_get(v, 0)), h = json_integer_value(json_array_get(v, 1));
    if (v && (json_array_size(v) != 2 || w < 1 || h < 1 || w > 16384 || h > 16384))
        return err_set(e, ERR_USAGE, "dialect '%s': key 'screen' must be [width, height]", d->name);
    d->screen_w = (int)w;
    d->screen_h = (int)h;
    return 0;
}

/* Returns the file of a built-in dialect; NULL: unknown name. */
static const char *builtin_text(const char *name, size_t *len)
{
    char *file = xasprintf("%s.json", name);
    const char *text = builtin_file(file, len);
    free(file);
    return text;
}

static json_t *builtin_json(const char *name)
{
    size_t len;
    const char *text = builtin_text(name, &len);
    return text ? json_loadb(text, len, 0, NULL) : NULL;
}

/* "tools" may name a built-in dialect whose table is used. */
static struct tools *tools_of(json_t *v, const char *name, struct err *e)
{
    const char *other = json_string_value(v);
    if (!other)
        return tools_parse(v, name, e);
    json_t *root = builtin_json(other), *list = json_object_get(root, "tools");
    struct tools *t = NULL;
    if (json_is_array(list))
        t = tools_parse(list, name, e);
    else
        err_set(e, ERR_USAGE, "dialect '%s': key 'tools': '%s' is not a built-in dialect with a table", name,
                other);
    json_decref(root);
    return t;
}

static int read_dialect(json_t *root, struct dialect *d, struct err *e)
{
    const char *name = json_string_value(json_object_get(root, "name"));
    d->name = xstrdup(name ? name : "?");
    if (!name || !*name)
        return err_set(e, ERR_USAGE, "dialect: key 'name' must be a string");
    if (check_known(root, name, e))
        return -1;
    for (int i = 0; i < 2; i++)
        if (!json_object_get(root, fields[i].key))
            return err_set(e, ERR_USAGE, "dialect '%s': key '%s' is missing", name, fields[i].key);
    for (int i = 0; i < NFIELDS; i++)
        if (read_field(&fields[i], json_object_get(root, fields[i].key), d, e))
            return -1;
    d->tools = tools_of(json_object_get(root, "tools"), name, e);
    if (!d->tools || read_screen(json_object_get(root, "screen"), d, e))
        return -1;
    d->schema = tools_schema(d);
    d->tool_list = tools_list(d);
    return 0;
}

/* ---- files ------------------------------------------------------------------------------------ */

/* Replaces "system" by the text of "system_file".  folder NULL: a built-in file. */
static int read_system_file(json_t *root, const char *folder, struct sha256 *sum, struct err *e)
{
    json_t *v = json_object_get(root, "system_file");
    const char *file = json_string_value(v), *text = NULL;
    char *data = NULL;
    size_t len = 0;
    if (!v)
        return 0;
    if (!file || !*file || strchr(file, '/') || json_object_get(root, "system"))
        return err_set(e, ERR_USAGE,
                       "dialect: key 'system_file' must name a file in its directory, without key 'system'");
    if (!folder)
        text = builtin_file(file, &len);
    else {
        char *path = xasprintf("%s/%s", folder, file);
        int r = file_read(path, MAX_FILE, &data, &len, e);
        free(path);
        if (r)
            return -1;
        text = data;
    }
    json_t *string = text ? json_stringn(text, len) : NULL;
    if (!string || strlen(json_string_value(string)) != len) {
        json_decref(string);
        free(data);
        return err_set(e, ERR_USAGE, "dialect: '%s' is %s", file,
                       text ? "not UTF-8 text" : "not a built-in text");
    }
    sha256_add(sum, text, len);
    json_object_set_new(root, "system", string);
    free(data);
    return 0;
}

static struct dialect *parse_in(const char *json, size_t len, const char *name, const char *folder,
                                struct err *e)
{
    json_error_t je;
    json_t *root = len <= MAX_FILE ? json_loadb(json, len, JSON_REJECT_DUPLICATES, &je) : NULL;
    struct dialect *d = xcalloc(1, sizeof *d);
    struct sha256 sum;
    int r = -1;
    d->sha256 = xmalloc(65, 1);
    sha256_begin(&sum);
    sha256_add(&sum, json, len);
    if (len > MAX_FILE)
        err_set(e, ERR_USAGE, "dialect '%s': longer than %d bytes", name, MAX_FILE);
    else if (!root)
        err_set(e, ERR_USAGE, "dialect '%s': line %d: %s", name, je.line, je.text);
    else if (!json_is_object(root))
        err_set(e, ERR_USAGE, "dialect '%s': must be a JSON object", name);
    else
        r = read_system_file(root, folder, &sum, e);
    if (!r)
        r = read_dialect(root, d, e);
    sha256_end(&sum, d->sha256);
    json_decref(root);
    if (r) {
        dialect_free(d);
        return NULL;
    }
    return d;
}

struct dialect *dialect_parse(const char *json, size_t len, const char *name, struct err *e)
{
    return parse_in(json, len, name, NULL, e);
}

static bool is_path(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".json");
}

static int unknown_name(const char *name, struct err *e)
{
    char known[256] = "", hint[NAME_HINT];
    int n = 0;
    for (; dialect_names()[n]; n++) {
        size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, " %s", dialect_names()[n]);
    }
    return err_set(e, ERR_USAGE, "unknown dialect '%s'%s; expected a path ending in .json, or one of:%s",
                   name, name_hint(hint, name, dialect_names(), n), known);
}

struct dialect *dialect_load(const char *name, struct err *e)
{
    size_t len;
    char *data;
    if (is_path(name)) {
        if (file_read(name, MAX_FILE, &data, &len, e))
            return NULL;
        const char *slash = strrchr(name, '/');
        char *folder = slash ? xasprintf("%.*s", (int)(slash - name), name) : xstrdup(".");
        struct dialect *d = parse_in(data, len, name, *folder ? folder : "/", e);
        free(folder);
        free(data);
        return d;
    }
    const char *json = builtin_text(name, &len);
    if (json)
        return parse_in(json, len, name, NULL, e);
    unknown_name(name, e);
    return NULL;
}

void dialect_free(struct dialect *d)
{
    if (!d)
        return;
    for (int i = 0; i < NFIELDS; i++)
        if (fields[i].type == FIELD_TEXT)
            free(*(char **)((char *)d + fields[i].offset));
    tools_free(d->tools);
    free(d->name);
    free(d->schema);
    free(d->tool_list);
    free(d->sha256);
    free(d);
}

const char *dialect_space_name(enum coord_space space)
{
    return spaces[space];
}

char *dialect_in_space(const char *name, enum coord_space space, struct err *e)
{
    size_t len;
    json_t *root = builtin_json(name);
    if (!root) {
        err_set(e, ERR_USAGE, "'%s' is not a built-in dialect: in its file, \"coords\" should be \"%s\"",
                name, spaces[space]);
        return NULL;
    }
    const char *system = json_string_value(json_object_get(root, "system_file"));
    const char *prompt = system ? builtin_file(system, &len) : NULL;
    if (prompt) {
        json_object_set_new(root, "system", json_stringn(prompt, len));
        json_object_del(root, "system_file");
    }
    char *named = xasprintf("%s-%s", name, spaces[space]);
    json_object_set_new(root, "name", json_string(named));
    json_object_set_new(root, "coords", json_string(spaces[space]));
    char *text = json_dumps(root, JSON_INDENT(2));
    free(named);
    json_decref(root);
    return text;
}

/* Returns whether a word is in the last three parts of a directory's name, or in the name in its config. */
static bool is_called(const char *dir, const char *called, const char *word)
{
    char *path = realpath(dir, NULL), *at = path ? path + strlen(path) : NULL;
    for (int parts = 0; at && at > path && parts < 3; parts += *at == '/')
        at--;
    bool found = (at && strcasestr(at, word)) || (called && strcasestr(called, word));
    free(path);
    return found;
}

/* Returns the dialect for the architecture in config.json and, among models of one architecture, for the
 * model's name. */
static const char *usual_dialect(const char *dir)
{
    static const struct {
        const char *type, *word, *dialect;
    } known[] = {
        {"qwen2_5_vl", "ui-tars", "uitars15"},
        {"qwen2_5_vl", "uitars", "uitars15"},
        {"qwen2_5_vl", "fara", "fara"},
        {"qwen2_5_vl", "holo1", "holo15"},
        {"qwen2_5_vl", "", "qwen25"},
        {"qwen3_vl", "holo2", "holo1"},
        {"qwen3_vl", "", "qwen"},
        {"qwen3_vl_moe", "holo2", "holo1"},
        {"qwen3_vl_moe", "", "qwen"},
    };
    char *path = xasprintf("%s/config.json", dir), *data = NULL;
    size_t len;
    json_t *root = file_read(path, MAX_CONFIG, &data, &len, NULL) ? NULL : json_loadb(data, len, 0, NULL);
    const char *type = json_string_value(json_object_get(root, "model_type")), *found = "holo3",
               *called = json_string_value(json_object_get(root, "_name_or_path"));
    for (size_t i = 0; type && i < sizeof known / sizeof *known; i++)
        if (!strcmp(type, known[i].type) && (!*known[i].word || is_called(dir, called, known[i].word))) {
            found = known[i].dialect;
            break;
        }
    json_decref(root);
    free(data);
    free(path);
    return found;
}

char *dialect_for_model(const char *model_dir, struct err *e)
{
    char *path = xasprintf("%s/holorun.json", model_dir), *data = NULL, *name = NULL;
    size_t len;
    if (!file_exists(path)) {
        name = xstrdup(usual_dialect(model_dir));
    } else if (!file_read(path, MAX_FILE, &data, &len, e)) {
        json_t *root = json_loadb(data, len, 0, NULL);
        const char *said = json_string_value(json_object_get(root, "dialect"));
        if (!said || !*said || strchr(said, '/'))
            err_set(e, ERR_MODEL, "'%s' must be a JSON object with a \"dialect\"", path);
        else
            name = is_path(said) ? xasprintf("%s/%s", model_dir, said) : xstrdup(said);
        json_decref(root);
        free(data);
    }
    free(path);
    return name;
}
