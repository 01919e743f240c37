/* t_calls_mutated.c - tests mutated replies in every dialect: each is read as intended, or reported.
 *
 * A reply is an action in the words of a dialect (spell.h), for native calls in any form of calls.h.
 * Mutations drop, double, swap or misspell closers, drop openers and line breaks, truncate the reply, put
 * sentences or a code fence around it, write CRLF, or repeat it. Text to type is never mutated.
 */
#include "check.h"
#include "spell.h"

#include "actions/action.h"
#include "actions/calls.h"
#include "actions/dialect.h"
#include "actions/syntax.h"

#include <jansson.h>

enum { W = 1280, H = 720, REPLIES = 2400, MAX_TEXT = 1 << 16 };

/* ---- forms of a native call ------------------------------------------------------------------------- */

static char *as_xml(const struct call *c, const char *function, const char *parameter, const char *ends[2])
{
    struct buf b;
    const char *key;
    json_t *v;
    buf_init(&b, MAX_TEXT);
    buf_printf(&b, function, c->name);
    json_object_foreach(c->arguments, key, v)
    {
        char *text = json_is_string(v) ? xstrdup(json_string_value(v)) : json_dumps(v, JSON_ENCODE_ANY);
        buf_printf(&b, parameter, key);
        buf_printf(&b, "\n%s\n%s\n", text, ends[0]);
        free(text);
    }
    buf_printf(&b, "%s", ends[1]);
    return buf_take(&b);
}

static char *as_python(const struct call *c)
{
    struct buf b;
    const char *key;
    json_t *v;
    buf_init(&b, MAX_TEXT);
    buf_printf(&b, "%s(", c->name);
    json_object_foreach(c->arguments, key, v)
    {
        char *text = json_dumps(v, JSON_ENCODE_ANY);
        buf_printf(&b, "%s%s=%s", b.data[b.len - 1] == '(' ? "" : ", ", key, text);
        free(text);
    }
    buf_putc(&b, ')');
    return buf_take(&b);
}

enum { FORMS = 12 };

/* Writes the call in a form, after a thought; the caller frees it. */
static char *spell_form(const struct call *c, int form)
{
    static const char *const formats[FORMS] = {
        "I do it.\n\n<tool_call>\n%s\n</tool_call>",
        "I do it.\n%s",
        "<tool_call>\n{\"name\": \"%s\", \"arguments\": %s}\n</tool_call>",
        "I do it. <TOOLCALL>[{\"name\": \"%s\", \"arguments\": %s}]</TOOLCALL>",
        "[TOOL_CALLS][{\"name\": \"%s\", \"arguments\": %s}]",
        "{\"name\": \"%s\", \"parameters\": %s}",
        "{\"type\": \"tool_use\", \"name\": \"%s\", \"input\": %s}",
        "[TOOL_CALLS]%s%s",
        "<function=%s>%s</function>",
        "I do it.\n[%s]",
        "%s",
        "{\"function\": {\"name\": \"%s\", \"args\": %s}}"};
    static const char *plain[2] = {"</parameter>", "</function>"}, *named[2] = {"</parameter>", "</invoke>"};
    char *inner = form == 0   ? as_xml(c, "<function=%s>\n", "<parameter=%s>", plain)
                  : form == 1 ? as_xml(c, "<invoke name=\"%s\">\n", "<parameter name=\"%s\">", named)
                  : form == 9 || form == 10 ? as_python(c)
                                            : json_dumps(c->arguments, 0);
    bool whole = form < 2 || form == 9 || form == 10;
    const char *slot = strstr(formats[form], "%s"), *second = whole ? NULL : strstr(slot + 2, "%s");
    char *out = whole ? xasprintf("%.*s%s%s", (int)(slot - formats[form]), formats[form], inner, slot + 2)
                      : xasprintf("%.*s%s%.*s%s%s", (int)(slot - formats[form]), formats[form], c->name,
                                  (int)(second - slot - 2), slot + 2, inner, second + 2);
    free(inner);
    return out;
}

/* ---- mutations --------------------------------------------------------------------------------------- */

enum mutation { DROP, DOUBLE, SWAP, MISSPELL, UNWRAP, UNBREAK, PROSE, FENCE, CRLF, REPEAT, CUT, MUTATIONS };
static const char *const mutation_names[] = {"drop",  "double", "swap", "misspell", "unwrap", "unbreak",
                                             "prose", "fence",  "crlf", "repeat",   "cut"};

static const char *const closers[] = {
    "</parameter>", "</function>", "</tool_call>", "</TOOLCALL>", "</invoke>", "}", "]", ")", "'",
    "\"",           "```"};
enum { CLOSERS = sizeof closers / sizeof *closers, TAGS = 5 };

struct mutant {
    char *text;        /* owned */
    const char *typed; /* not mutated; "" none */
    uint64_t *seed;
};

/* Replaces n bytes at `at` with another text. */
static void splice(struct mutant *m, size_t at, size_t n, const char *by)
{
    char *out = xasprintf("%.*s%s%s", (int)at, m->text, by, m->text + at + n);
    free(m->text);
    m->text = out;
}

/* Returns whether the range is within the text to type. */
static bool within_typed(const struct mutant *m, size_t at, size_t n)
{
    for (const char *s = m->text; *m->typed && (s = strstr(s, m->typed)); s++)
        if (m->text + at + n > s && m->text + at < s + strlen(m->typed))
            return true;
    return false;
}

/* Returns a random occurrence of one of the marks outside the text to type; -1: none. */
static ptrdiff_t find_any(struct mutant *m, const char *const *marks, int n, int *which)
{
    ptrdiff_t found = -1;
    int seen = 0;
    for (const char *s = m->text; *s; s++)
        for (int i = 0; i < n; i++)
            if (!strncmp(s, marks[i], strlen(marks[i])) &&
                !within_typed(m, (size_t)(s - m->text), strlen(marks[i])) && !check_below(m->seed, ++seen)) {
                found = s - m->text;
                *which = i;
            }
    return found;
}

/* Returns whether the closer is a quote. Swapping a quote with a bracket would move the bracket into the
 * text. */
static bool is_quote(int which)
{
    return closers[which][0] == '\'' || closers[which][0] == '"';
}

static void swap_closers(struct mutant *m)
{
    int a = 0, b = 0;
    ptrdiff_t at = find_any(m, closers, CLOSERS, &a);
    if (at < 0 || is_quote(a))
        return;
    const char *after = m->text + at + strlen(closers[a]);
    after += strspn(after, " \n\r");
    for (b = 0; b < CLOSERS && strncmp(after, closers[b], strlen(closers[b])) != 0; b++)
        ;
    if (b == CLOSERS || is_quote(b))
        return;
    char *both =
        xasprintf("%s%.*s%s", closers[b], (int)(after - (m->text + at) - (ptrdiff_t)strlen(closers[a])),
                  m->text + at + strlen(closers[a]), closers[a]);
    splice(m, (size_t)at, strlen(both), both);
    free(both);
}

static void write_crlf(struct mutant *m)
{
    struct buf b;
    buf_init(&b, MAX_TEXT);
    for (const char *s = m->text; *s; s++)
        buf_printf(&b, "%s%c", *s == '\n' ? "\r" : "", *s);
    free(m->text);
    m->text = buf_take(&b);
}

static void mutate(struct mutant *m, enum mutation kind)
{
    static const char *const openers[] = {"<tool_call>", "<TOOLCALL>", "[TOOL_CALLS]"}, *const breaks[] = {
                                                                                            "\n"};
    static const char *const misspelt[] = {"</parameter1>", "</function_invocation>", "</tool_call",
                                           "</TOOLCALL/>", "</invoke >"};
    int which = 0;
    ptrdiff_t at = kind == UNWRAP                   ? find_any(m, openers, 3, &which)
                   : kind == UNBREAK                ? find_any(m, breaks, 1, &which)
                   : kind == DROP || kind == DOUBLE ? find_any(m, closers, CLOSERS, &which)
                   : kind == MISSPELL               ? find_any(m, closers, TAGS, &which)
                                                    : 0;
    char *was = xstrdup(m->text);
    if (at >= 0 && kind == DROP) {
        size_t n = strlen(closers[which]);
        size_t line = strspn(was + at + n, "\r\n");
        splice(m, (size_t)at, n + (at > 0 && was[at - 1] == '\n' ? line : 0), "");
    } else if (at >= 0 && kind == UNBREAK)
        splice(m, (size_t)at, 1, "");
    else if (at >= 0 && kind == UNWRAP)
        splice(m, (size_t)at, strlen(openers[which]), "");
    else if (at >= 0 && kind == DOUBLE)
        splice(m, (size_t)at, 0, closers[which]);
    else if (at >= 0 && kind == MISSPELL)
        splice(m, (size_t)at, strlen(closers[which]), misspelt[which]);
    else if (kind == SWAP)
        swap_closers(m);
    else if (kind == PROSE)
        splice(m, 0, strlen(was), check_below(m->seed, 2) ? "Sure, here it is:\n\n" : ""),
            splice(m, strlen(m->text), 0, was), splice(m, strlen(m->text), 0, "\n\nThat should do it.");
    else if (kind == FENCE)
        splice(m, 0, 0, check_below(m->seed, 2) ? "```json\n" : "```\n"),
            splice(m, strlen(m->text), 0, "\n```");
    else if (kind == CRLF)
        write_crlf(m);
    else if (kind == REPEAT)
        splice(m, strlen(m->text), 0, "\n"), splice(m, strlen(m->text), 0, was);
    else if (kind == CUT)
        m->text[check_below(m->seed, (int)strlen(was))] = 0;
    free(was);
}

/* ---- results ---------------------------------------------------------------------------------------- */

static char *actions_json(const struct step *s, int from, int to)
{
    struct buf b;
    buf_init(&b, MAX_TEXT);
    for (int i = from; i < to; i++)
        action_to_json(&s->actions[i], &b);
    return buf_take(&b);
}

static bool same_actions(const struct step *have, const struct step *want)
{
    if (have->nactions % want->nactions)
        return false;
    bool same = true;
    char *all = actions_json(want, 0, want->nactions);
    for (int i = 0; same && i < have->nactions; i += want->nactions) { /* all of them twice, with run_all */
        char *some = actions_json(have, i, i + want->nactions);
        same = !strcmp(all, some);
        free(some);
    }
    free(all);
    return same;
}

/* A reply truncated between two lines may be read as its beginning: the same points, and the part of the text
 * that the reply holds. */
static bool beginning_of(const struct step *have, const struct step *want, const char *reply)
{
    for (int i = 0; i < have->nactions; i++) {
        const struct action *a = &have->actions[i], *b = &want->actions[i];
        if (i >= want->nactions || a->kind != b->kind || a->x != b->x || a->y != b->y || a->x2 != b->x2 ||
            a->y2 != b->y2 || a->nkeys != b->nkeys || memcmp(a->keys, b->keys, sizeof a->keys) != 0)
            return false;
        if (a->text &&
            (!b->text || strncmp(b->text, a->text, strlen(a->text)) != 0 || !strstr(reply, a->text)))
            return false;
    }
    return true;
}

static void no_markup(const struct step *s, const char *reply)
{
    static const char *const marks[] = {"<tool_call", "</tool_call", "</parameter", "<parameter", "<function",
                                        "</function", "<TOOLCALL",   "</TOOLCALL",  "<invoke",    "</invoke",
                                        "<|im_end",   "<|box_start", "[TOOL_CALLS"};
    for (int i = 0; i < s->nactions; i++)
        for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
            if (s->actions[i].text && strstr(s->actions[i].text, marks[k]))
                fail_msg("types '%s', of\n%s", s->actions[i].text, reply);
}

struct counts {
    int read[MUTATIONS], all[MUTATIONS];
};

/* Parses the mutated reply and compares it with the intended step. */
static void judge(const struct dialect *d, const struct mutant *m, const struct step *want, unsigned kinds,
                  struct counts *counts)
{
    struct err e = ERR_INIT;
    struct step have;
    enum action_fault f = action_parse(m->text, strlen(m->text), d, W, H, &have, &e);
    for (int i = 0; i < MUTATIONS; i++) {
        counts->all[i] += kinds >> i & 1;
        counts->read[i] += !f && (kinds >> i & 1);
    }
    if (f) {
        assert_true(*e.text && !strchr(e.text, '\n'));
        return;
    }
    no_markup(&have, m->text);
    bool good = same_actions(&have, want) || (kinds >> CUT & 1 && beginning_of(&have, want, m->text));
    if (!good) {
        char *a = actions_describe(want->actions, want->nactions),
             *b = actions_describe(have.actions, have.nactions);
        fail_msg("%s (mutations 0x%x): meant %s, read %s, of\n%s", d->name, kinds, a, b, m->text);
    }
    if (kinds >> REPEAT & 1 && !(kinds >> CUT & 1) && have.nactions == want->nactions && !have.dropped)
        fail_msg("%s: a repeated action is dropped silently, of\n%s", d->name, m->text);
    step_free(&have);
}

/* ---- random replies ---------------------------------------------------------------------------------- */

static const char *const texts[] = {
    "hello world", "x = 1 < 2 and <b>bold</b>", "first line\nsecond line",
    "12",          "Zürich, 3. Mai: 5 EUR",     "if (a) { b[0] = c; }",
};
enum { TEXTS = sizeof texts / sizeof *texts };

/* Returns a reply of the dialect for a random action, or NULL if it cannot express the action. *typed: its
 * text. */
static char *random_reply(const struct dialect *d, uint64_t *seed, const char **typed)
{
    static const enum action_kind kinds[] = {ACT_CLICK,  ACT_TYPE,   ACT_KEY, ACT_DRAG,
                                             ACT_SCROLL, ACT_ANSWER, ACT_WAIT};
    struct want w = {.kind = kinds[check_below(seed, 7)], .element = "Save", .keys = "ctrl+s"};
    const char *text = texts[check_below(seed, TEXTS)];
    bool place = w.kind == ACT_CLICK || w.kind == ACT_DRAG || w.kind == ACT_SCROLL || check_below(seed, 2);
    w.text = w.kind == ACT_TYPE || w.kind == ACT_ANSWER ? text : NULL;
    w.keys = w.kind == ACT_KEY ? w.keys : NULL;
    w.x = place ? 100 + check_below(seed, 1000) : 0;
    w.y = place ? 100 + check_below(seed, 500) : 0;
    w.x2 = w.kind == ACT_DRAG ? 50 + check_below(seed, 1000) : 0;
    w.y2 = w.kind == ACT_DRAG ? 50 + check_below(seed, 500) : 0;
    *typed = w.text ? w.text : "";
    char *reply = spell_reply(d, &w, "I do it.", W, H);
    if (reply || !place)
        return reply;
    w.x = w.y = 0;
    return spell_reply(d, &w, "I do it.", W, H);
}

/* Returns the same call in another form if the dialect has native calls. */
static char *another_form(const struct dialect *d, char *reply, uint64_t *seed)
{
    struct calls c;
    bool native = syntax_is(d, "function") || syntax_is(d, "xml") || syntax_is(d, "qwen");
    if (!native || !check_below(seed, FORMS))
        return reply;
    calls_read(reply, strlen(reply), NULL, &c);
    assert_int_equal(c.n, 1);
    int form = check_below(seed, FORMS);
    form = syntax_is(d, "qwen") && form == 10 ? 9 : form;
    char *out = spell_form(&c.list[0], form);
    calls_free(&c);
    free(reply);
    return out;
}

/* Returns the text to type as it is in the reply, escaped or not. */
static char *spelt(const char *reply, const char *typed)
{
    json_t *v = json_string(typed);
    char *text = json_dumps(v, JSON_ENCODE_ANY), *ascii = json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    char *options[] = {xstrdup(typed), xasprintf("%.*s", (int)strlen(text) - 2, text + 1),
                       xasprintf("%.*s", (int)strlen(ascii) - 2, ascii + 1)};
    char *out = NULL;
    for (int i = 0; i < 3; i++) {
        if (!out && *typed && strstr(reply, options[i]))
            out = options[i];
        else
            free(options[i]);
    }
    json_decref(v);
    free(text);
    free(ascii);
    return out ? out : xstrdup("");
}

static void one_reply(const struct dialect *d, uint64_t *seed, struct counts *counts)
{
    struct err e = ERR_INIT;
    struct step want;
    const char *typed;
    char *reply = random_reply(d, seed, &typed);
    if (!reply)
        return;
    reply = another_form(d, reply, seed);
    if (action_parse(reply, strlen(reply), d, W, H, &want, &e))
        fail_msg("%s: %s, of\n%s", d->name, e.text, reply);
    char *literal = spelt(reply, typed);
    struct mutant m = {reply, literal, seed};
    unsigned kinds = 0;
    for (int n = 1 + check_below(seed, 3); n > 0; n--) {
        /* texts of this dialect have no closing mark */
        int kind = check_below(seed, syntax_is(d, "pocket") ? PROSE : MUTATIONS);
        mutate(&m, (enum mutation)kind);
        kinds |= 1u << kind;
    }
    judge(d, &m, &want, kinds, counts);
    step_free(&want);
    free(literal);
    free(m.text);
}

static void t_mutated(void **state)
{
    uint64_t seed = check_seed();
    struct counts counts = {0};
    for (const char *const *name = dialect_names(); *name; name++) {
        struct err e = ERR_INIT;
        struct dialect *d = dialect_load(*name, &e);
        if (!d)
            fail_msg("%s", e.text);
        for (int i = 0; i < REPLIES / 12; i++)
            one_reply(d, &seed, &counts);
        dialect_free(d);
    }
    int all = 0;
    for (int i = 0; i < MUTATIONS; i++) {
        check_note("%-8s %4d of %4d read", mutation_names[i], counts.read[i], counts.all[i]);
        all += counts.all[i];
    }
    assert_true(all > REPLIES);
}

static const struct CMUnitTest tests[] = {
    CLAIM("each mutated reply is read as intended, or reported", t_mutated),
};

CHECK_MAIN()
