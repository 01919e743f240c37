/* steps.c - reads a task that is a list of steps on named elements (plain/plain.h).
 *
 *     task:
 *       - fill: { Name: Ana, Colour: blue }
 *       - choose: { Size: Large }
 *       - check: Name equals Ana
 *       - press: [Save, Close]
 *       - do: order a large shirt
 *         steps: [choose Large in Size, press Order]
 *         steps_of: 5f0c36e2a1b4d987
 *
 * Names and texts are copied into the steps as they are; only the values of do, steps, check and wait are
 * sentences. Variables are replaced after a sentence was parsed, so that no value changes its meaning. */
#include "qa/suite/private.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 500, STEPS_IN_SUITE = 100000 };

static const char example[] = "expected a list of steps, as \"- press: Save\"";

/* ---- adding steps -------------------------------------------------------------------------------- */

/* Appends the step on a line; plain NULL: `text` is a task for a model. */
static int add(struct suite_reader *r, int line, const struct plain_step *plain, const char *text)
{
    struct test *t = r->t;
    struct buf b;
    if (t->n_script == SUITE_MAX_STEPS || r->n_steps == STEPS_IN_SUITE)
        return fault(r, "expected at most %d steps in a test, and %d in a suite", SUITE_MAX_STEPS,
                     STEPS_IN_SUITE);
    r->n_steps++;
    t->script = xrealloc(t->script, (unsigned long)t->n_script + 1, sizeof *t->script);
    struct test_step *step = &t->script[t->n_script++];
    *step = (struct test_step){.line = line, .text = text, .plain = -1};
    if (!plain)
        return 0;
    buf_init(&b, 4 * SUITE_MAX_TEXT);
    plain_print(plain, &b);
    step->text = arena_strndup(r->s->arena, b.data, b.len);
    step->plain = t->plain.n;
    plain_add(&t->plain, plain);
    buf_free(&b);
    return 0;
}

/* Reads a name or text of a list or mapping, which may be its key. Returns NULL with a fault. */
static const char *expanded(struct suite_reader *r, const char *text, unsigned how)
{
    struct doc_node n = {.kind = DOC_SCALAR, .text = (char *)(uintptr_t)text};
    const char *out = NULL;
    return value_text(r, &n, how, &out) ? NULL : out;
}

static const char *name_of(struct suite_reader *r, const char *text)
{
    const char *name = text ? expanded(r, text, VALUE_STRICT | VALUE_ONE_LINE) : NULL;
    if (!text)
        fault(r, "expected a name");
    else if (name && strlen(name) > NAME_BYTES)
        name = fault(r, "expected a name of at most %d bytes", NAME_BYTES) ? NULL : name;
    return name;
}

/* Adds the step VERB WHAT [IN] [VALUE], whose texts are copied. */
static int add_named(struct suite_reader *r, int line, enum plain_verb verb, const char *what, const char *in,
                     const char *value)
{
    autofree char *name = what ? xstrdup(what) : NULL, *of = in ? xstrdup(in) : NULL;
    autofree char *text = value ? xstrdup(value) : NULL;
    struct plain_step s = {.verb = verb, .what = name, .whole = name, .in = of, .value = text, .times = 1};
    if (verb == PLAIN_CHECK || verb == PLAIN_WAIT)
        s.state = value ? PLAIN_EQUALS : PLAIN_SHOWN;
    return add(r, line, &s, NULL);
}

/* ---- forms of values ----------------------------------------------------------------------------- */

/* press, tick, tab ...: a name, or a list of them. */
static int read_names(struct suite_reader *r, const struct key *k, void *member)
{
    const struct doc_node *list = r->n;
    if (list->kind == DOC_MAP || (list->kind == DOC_LIST && !list->child))
        return fault(r, "expected a name, or a list of them");
    for (const struct doc_node *n = each_first(list); n; n = each_next(list, n)) {
        const char *name = name_of(r, n->text);
        if (!name || add_named(r, n->line, (enum plain_verb)k->at, name, NULL, NULL))
            return -1;
    }
    return 0;
}

/* fill: { FIELD: TEXT }, choose: { LIST: OPTION }, check: { FIELD: TEXT }. */
static int read_pairs(struct suite_reader *r, const struct key *k, void *member)
{
    const struct doc_node *map = r->n;
    enum plain_verb verb = (enum plain_verb)k->at;
    if (map->kind != DOC_MAP || !map->child)
        return fault(r, "expected names and values, as { Name: Ana }");
    for (r->n = map->child; r->n; r->n = r->n->next) {
        const char *name = name_of(r, r->n->key), *value = NULL;
        if (!name || value_text(r, r->n, VALUE_STRICT | (verb == PLAIN_CHECK ? VALUE_EMPTY : 0), &value))
            return -1;
        bool option = verb == PLAIN_CHOOSE;
        if (add_named(r, r->n->line, verb, option ? value : name, option ? name : NULL,
                      option ? NULL : value))
            return -1;
    }
    r->n = map;
    return 0;
}

/* choose: OPTION, or { LIST: OPTION }. */
static int read_choose(struct suite_reader *r, const struct key *k, void *member)
{
    return r->n->kind == DOC_MAP ? read_pairs(r, k, member) : read_names(r, k, member);
}

/* Appends a level of a menu. */
static int add_level(struct suite_reader *r, const char *text, size_t n, struct plain_step *s)
{
    while (n && isspace((unsigned char)*text))
        text++, n--;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    autofree char *level = xstrdup(text);
    level[n] = 0;
    const char *name = !n || s->levels == PLAIN_PATH_MAX ? NULL : name_of(r, level);
    if (!n || s->levels == PLAIN_PATH_MAX)
        fault(r, "expected at most %d names, as File > Save As, or [File, \"A > B\"]", PLAIN_PATH_MAX);
    if (!name)
        return -1;
    s->path[s->levels++] = xstrdup(name);
    return 0;
}

/* menu: File > Save As, or [File, Save As], in which ">" is part of a name. */
static int read_menu(struct suite_reader *r, const struct key *k, void *member)
{
    const struct doc_node *list = r->n;
    struct plain_step s = {.verb = PLAIN_MENU};
    int rc = list->kind == DOC_MAP || (list->kind == DOC_LIST && !list->child)
                 ? fault(r, "expected a menu, as File > Save As")
                 : 0;
    for (const struct doc_node *n = each_first(list); rc == 0 && n; n = each_next(list, n)) {
        const char *at = n->text, *mark;
        if (!at) {
            rc = fault(r, "expected a name");
            break;
        }
        for (; rc == 0 && list->kind == DOC_SCALAR && (mark = strchr(at, '>')); at = mark + 1)
            rc = add_level(r, at, (size_t)(mark - at), &s);
        rc = rc ? rc : add_level(r, at, strlen(at), &s);
    }
    rc = rc ? rc : add(r, list->line, &s, NULL);
    for (int i = 0; i < s.levels; i++)
        free(s.path[i]);
    return rc;
}

/* keys: ctrl+s, or a list of keys. */
static int read_keys(struct suite_reader *r, const struct key *k, void *member)
{
    const struct doc_node *list = r->n;
    if (list->kind == DOC_MAP || (list->kind == DOC_LIST && !list->child))
        return fault(r, "expected a key, as ctrl+s or Enter, or a list of them");
    for (const struct doc_node *n = each_first(list); n; n = each_next(list, n)) {
        const char *text = name_of(r, n->text);
        autofree char *keys = text ? plain_keys(text) : NULL;
        if (text && !keys)
            fault(r, "expected a key, as ctrl+s or Enter, not '%.40s'; for text use type", text);
        int rc = keys ? add_named(r, n->line, PLAIN_KEYS, keys, NULL, NULL) : -1;
        if (rc)
            return -1;
    }
    return 0;
}

/* type: text for the element with the keyboard focus. */
static int read_type(struct suite_reader *r, const struct key *k, void *member)
{
    const char *text;
    int rc = value_text(r, r->n, VALUE_STRICT, &text);
    return rc ? -1 : add_named(r, r->n->line, PLAIN_ENTER, NULL, NULL, text);
}

static int read_close(struct suite_reader *r, const struct key *k, void *member)
{
    if (r->n->kind != DOC_SCALAR || strcmp(r->n->text, "window") != 0)
        return fault(r, "expected window: the active one is closed");
    return add_named(r, r->n->line, PLAIN_CLOSE, NULL, NULL, NULL);
}

/* ---- sentences ----------------------------------------------------------------------------------- */

/* Replaces the variables of one text of a step.  how: VALUE_EMPTY, or for names VALUE_ONE_LINE. */
static int expand_text(struct suite_reader *r, char **text, unsigned how)
{
    const char *value = *text ? expanded(r, *text, VALUE_STRICT | how) : NULL;
    if (!*text)
        return 0;
    if (!value)
        return -1;
    free(*text);
    *text = xstrdup(value);
    return 0;
}

/* Adds the steps of a parsed sentence, which were read on a line. */
static int add_parsed(struct suite_reader *r, int line, struct plain_steps *steps)
{
    int rc = 0;
    for (int i = 0; i < steps->n && rc == 0; i++) {
        struct plain_step *s = &steps->s[i];
        rc = expand_text(r, &s->what, VALUE_ONE_LINE) || expand_text(r, &s->whole, VALUE_ONE_LINE) ||
                     expand_text(r, &s->in, VALUE_ONE_LINE) || expand_text(r, &s->row, VALUE_ONE_LINE) ||
                     expand_text(r, &s->value, VALUE_EMPTY)
                 ? -1
                 : 0;
        for (int l = 0; l < s->levels && rc == 0; l++)
            rc = expand_text(r, &s->path[l], VALUE_ONE_LINE);
        rc = rc ? rc : add(r, line, s, NULL);
    }
    return rc;
}

/* Parses "check that TEXT" or "wait until TEXT". Returns false if it is not one step of this verb. */
static bool parse_condition(const char *head, const char *text, enum plain_verb verb, struct plain_steps *out,
                            struct err *why)
{
    autofree char *sentence = xasprintf("%s %s", head, text);
    bool parsed = plain_parse(sentence, out, why) == 0;
    if (parsed && out->n == 1 && out->s[0].verb == verb)
        return true;
    if (parsed) {
        plain_free(out);
        err_set(why, ERR_USAGE, "several steps");
    }
    return false;
}

/* check: a condition, or { FIELD: TEXT }. */
static int read_check_step(struct suite_reader *r, const struct key *k, void *member)
{
    struct plain_steps steps = {0};
    struct err why = ERR_INIT;
    if (r->n->kind == DOC_MAP)
        return read_pairs(r, k, member);
    if (r->n->kind != DOC_SCALAR || !parse_condition("check that", r->n->text, PLAIN_CHECK, &steps, &why))
        return fault(r,
                     "expected a condition, as 'Save is shown' or 'Name equals Ana' (is shown, gone, ticked, "
                     "unticked, enabled or disabled, equals, contains)%s%.200s; quote names with such words",
                     why.kind ? ": " : "", why.text);
    int rc = add_parsed(r, r->n->line, &steps);
    plain_free(&steps);
    return rc;
}

/* wait: a condition, or a name that must appear. */
static int read_wait(struct suite_reader *r, const struct key *k, void *member)
{
    struct plain_steps steps = {0};
    if (r->n->kind != DOC_SCALAR || !parse_condition("wait until", r->n->text, PLAIN_WAIT, &steps, NULL))
        return read_names(r, k, member);
    int rc = add_parsed(r, r->n->line, &steps);
    plain_free(&steps);
    return rc;
}

/* Reads a frozen step, which must be understood. */
static int add_frozen(struct suite_reader *r, const struct doc_node *n)
{
    struct plain_steps steps;
    struct err why = ERR_INIT;
    if (plain_parse(n->text, &steps, &why))
        return fault_at(r, n, "'%.80s' is not a step: %.200s (holorun help sentences)", n->text, why.text);
    int rc = add_parsed(r, n->line, &steps);
    plain_free(&steps);
    return rc;
}

/* Notes the sentence that the steps from `from` on perform.  Steps of a sentence with variables are not
 * written back, because they would have their values. */
static void belong(struct suite_reader *r, int from, const struct doc_node *sentence, const char *text,
                   bool stale)
{
    const char *of = strcmp(text, sentence->text) ? NULL : text;
    for (int i = from; i < r->t->n_script; i++) {
        r->t->script[i].of = of;
        r->t->script[i].of_line = sentence->line;
        r->t->script[i].stale = stale;
    }
}

/* do: a sentence. With `steps` beside it these are performed; else the sentence itself if every word of it is
 * understood; else it is a task for a model. */
static int read_do(struct suite_reader *r, const struct doc_node *item)
{
    const struct doc_node *sentence = doc_get(item, "do"), *frozen = doc_get(item, "steps"),
                          *of = doc_get(item, "steps_of");
    struct plain_steps steps = {0};
    char hash[SUITE_HASH];
    const char *text;
    int from = r->t->n_script;
    r->n = sentence;
    if (value_text(r, sentence, VALUE_STRICT, &text))
        return -1;
    r->n = of;
    suite_sentence_hash(sentence->text, hash);
    if (of && !frozen)
        return fault(r, "expected the key steps beside it, the steps that were made for the sentence");
    if (of && (of->kind != DOC_SCALAR || strlen(of->text) != strlen(hash) ||
               strspn(of->text, "0123456789abcdef") != strlen(hash)))
        return fault(r, "expected the %d hex digits that were written with the steps", SUITE_HASH - 1);
    bool stale = of && strcmp(of->text, hash) != 0;
    if (stale && !r->t->stale) {
        r->t->stale = of->line;
        r->t->stale_hash = arena_strdup(r->s->arena, hash);
    }
    r->n = frozen;
    int rc = frozen ? value_each(r, "sentences, as [choose Large in Size, press Order]", SUITE_MAX_STEPS,
                                 add_frozen)
                    : 0;
    r->n = sentence;
    if (!frozen && plain_parse(sentence->text, &steps, NULL)) {
        rc = add(r, sentence->line, NULL, text);
        frozen = sentence;
    }
    if (frozen) {
        belong(r, from, sentence, text, stale);
        return rc;
    }
    rc = add_parsed(r, sentence->line, &steps);
    plain_free(&steps);
    return rc;
}

void suite_sentence_hash(const char *sentence, char out[SUITE_HASH])
{
    struct buf words;
    buf_init(&words, strlen(sentence) + 1);
    buf_puts(&words, "");
    for (const char *p = sentence + strspn(sentence, " \t\r\n"); *p;) {
        size_t n = strcspn(p, " \t\r\n"), gap = strspn(p + n, " \t\r\n");
        buf_put(&words, p, n);
        p += n + gap;
        if (*p)
            buf_putc(&words, ' ');
    }
    snprintf(out, SUITE_HASH, "%016" PRIx64, suite_hash_text(words.data));
    buf_free(&words);
}

/* ---- the list ------------------------------------------------------------------------------------ */

enum { STEP = 1, BESIDE = 2 }; /* BESIDE: a key beside `do` */

/* clang-format off */
static const struct key keys[] = { /* `at`: the verb */
    {"press", STEP, read_names, PLAIN_PRESS, 0, 0},
    {"double_click", STEP, read_names, PLAIN_DOUBLE_CLICK, 0, 0},
    {"right_click", STEP, read_names, PLAIN_RIGHT_CLICK, 0, 0},
    {"fill", STEP, read_pairs, PLAIN_ENTER, 0, 0},
    {"choose", STEP, read_choose, PLAIN_CHOOSE, 0, 0},
    {"tick", STEP, read_names, PLAIN_TICK, 0, 0},
    {"untick", STEP, read_names, PLAIN_UNTICK, 0, 0},
    {"menu", STEP, read_menu, PLAIN_MENU, 0, 0},
    {"tab", STEP, read_names, PLAIN_TAB, 0, 0},
    {"scroll_to", STEP, read_names, PLAIN_SCROLL, 0, 0},
    {"keys", STEP, read_keys, PLAIN_KEYS, 0, 0},
    {"type", STEP, read_type, PLAIN_ENTER, 0, 0},
    {"close", STEP, read_close, PLAIN_CLOSE, 0, 0},
    {"wait", STEP, read_wait, PLAIN_WAIT, 0, 0},
    {"check", STEP, read_check_step, PLAIN_CHECK, 0, 0},
    {"do", STEP, NULL, 0, 0, 0},
    {"steps", STEP | BESIDE, NULL, 0, 0, 0},
    {"steps_of", STEP | BESIDE, NULL, 0, 0, 0},
    {0},
};
/* clang-format on */

static int read_step(struct suite_reader *r, const struct doc_node *item)
{
    const struct key *step = NULL;
    if (item->kind != DOC_MAP || !item->child)
        return fault_at(r, item, "%s", example);
    for (r->n = item->child; r->n; r->n = r->n->next) {
        const struct key *k = key_find(r, keys, STEP, "a step has one of");
        if (!k)
            return -1;
        if (k->where & BESIDE && !doc_get(item, "do"))
            return fault(r, "expected the key do beside it, the sentence that the steps perform");
        if (step && !(k->where & BESIDE))
            return fault(r, "expected one step in an item of the list, besides '%s'; begin another with -",
                         step->name);
        step = k->where & BESIDE ? step : k;
    }
    if (!step)
        return fault_at(r, item, "%s", example);
    if (!step->read)
        return read_do(r, item);
    r->n = doc_get(item, step->name);
    return step->read(r, step, NULL);
}

int steps_read(struct suite_reader *r, const struct doc_node *list)
{
    struct buf all;
    if (!list->child)
        return fault_at(r, list, "%s", example);
    for (const struct doc_node *item = list->child; item; item = item->next)
        if (part_read(r, read_step(r, item)))
            return -1;
    buf_init(&all, SUITE_MAX_TEXT);
    buf_puts(&all, "");
    for (int i = 0; i < r->t->n_script; i++)
        buf_printf(&all, "%s%s", i ? ";\n" : "", r->t->script[i].text);
    r->t->task = arena_strndup(r->s->arena, all.data, all.len);
    bool full = all.full;
    buf_free(&all);
    return full ? fault_at(r, list, "expected at most %d bytes of text", SUITE_MAX_TEXT) : 0;
}

/* ---- the steps of a test ------------------------------------------------------------------------- */

static bool verifies(const struct test *t, int i)
{
    const struct plain_step *s = t->script[i].plain < 0 ? NULL : &t->plain.s[t->script[i].plain];
    return s && (s->verb == PLAIN_CHECK || s->verb == PLAIN_WAIT);
}

bool test_step_proves(const struct test *t, int i)
{
    int first = 0; /* step that acts */
    while (first < t->n_script && verifies(t, first))
        first++;
    return verifies(t, i) && (i > first || first == t->n_script);
}

bool test_step_is_planned(const struct test_step *s)
{
    return s->of && (s->plain < 0 || s->stale);
}

bool test_needs_model(const struct test *t)
{
    bool asks = !t->n_script;
    for (int i = 0; i < t->n_script; i++)
        asks = asks || t->script[i].plain < 0;
    for (int i = 0; i < t->n_checks && t->n_script; i++)
        asks = asks || check_evidence(t->checks[i].kind) == BY_MODEL;
    return asks && !t->recording;
}

void test_free(struct test *t)
{
    plain_free(&t->plain);
    free(t->script);
    t->script = NULL;
    t->n_script = 0;
}
