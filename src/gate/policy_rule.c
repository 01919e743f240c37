/* policy_rule.c - parses, checks and prints one rule of a policy file. A table maps each key to its
 * parser. */
#include "gate/policy_impl.h"

#include "actions/parse.h"
#include "actions/registry.h"
#include "base/buf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rule_regex_keys[RULE_REGEXES] = {"element", "text",   "title", "class",
                                                   "program", "dialog", "except"};

static const char *const verdicts[] = {"allow", "confirm", "deny"};

const char *policy_verdict_name(enum policy_verdict v)
{
    return verdicts[v];
}

/* ---- values ----------------------------------------------------------------------------------- */

struct rule_reader {
    struct rule *r;
    const struct doc *y;
    const struct doc_node *n; /* the member being parsed */
    struct err *e;
};

/* Calls add() for a scalar, or for each scalar of a list. */
static int each_word(struct rule_reader *g, const char *what,
                     int (*add)(struct rule_reader *g, const char *word))
{
    const struct doc_node *one = g->n->kind == DOC_LIST ? g->n->child : g->n;
    int count = 0;
    if (!one || g->n->kind == DOC_MAP)
        return doc_fault(g->y, g->n, g->e, "expected %s, or a list of these", what);
    for (; one; one = g->n->kind == DOC_LIST ? one->next : NULL) {
        if (one->kind != DOC_SCALAR || !*one->text)
            return doc_fault(g->y, g->n, g->e, "expected %s, or a list of these", what);
        if (++count > RULE_MAX_LIST)
            return doc_fault(g->y, g->n, g->e, "expected at most %d of them", RULE_MAX_LIST);
        if (add(g, one->text))
            return -1;
    }
    return 0;
}

static int add_action(struct rule_reader *g, const char *word)
{
    enum action_kind k = registry_kind(word);
    if (k != ACT_NONE) {
        g->r->kinds |= 1u << k;
        return 0;
    }
    autobuf known = buf_of(4096);
    for (int i = ACT_NONE + 1; i < ACT_COUNT; i++)
        buf_printf(&known, "%s%s", i > 1 ? ", " : "", action_kind_name((enum action_kind)i));
    doc_fault(g->y, g->n, g->e, "unknown kind of action '%.40s'; the kinds are %s", word, known.data);
    return -1;
}

static int read_regex(struct rule_reader *g)
{
    const struct doc_node *n = g->n;
    int which = 0;
    while (strcmp(rule_regex_keys[which], n->key) != 0)
        which++;
    if (n->kind != DOC_SCALAR || !*n->text)
        return doc_fault(g->y, n, g->e, "expected a regular expression");
    struct err why = ERR_INIT;
    g->r->regex[which] = regex_new(n->text, true, &why);
    return g->r->regex[which] ? 0 : doc_fault(g->y, n, g->e, "expected a regular expression: %s", why.text);
}

/* terminal, browser, new_goal */
static int read_yes_or_no(struct rule_reader *g)
{
    static const char *const words[2][3] = {{"no", "false", "off"}, {"yes", "true", "on"}};
    int *to = *g->n->key == 't' ? &g->r->terminal : *g->n->key == 'b' ? &g->r->browser : &g->r->new_goal;
    for (*to = 0; g->n->kind == DOC_SCALAR && *to < 2; ++*to)
        for (int i = 0; i < 3; i++)
            if (!strcasecmp(words[*to][i], g->n->text))
                return 0;
    return doc_fault(g->y, g->n, g->e, "expected yes or no");
}

static int add_after(struct rule_reader *g, const char *word)
{
    struct rule *r = g->r;
    struct rule_after a;
    if (!policy_spent_read(word, &a.of, &a.n))
        return doc_fault(g->y, g->n, g->e,
                         "expected a number of steps, seconds, tokens, actions, characters or errors, for "
                         "example 50 steps; not '%.60s'",
                         word);
    r->after = xrealloc(r->after, (unsigned long)r->n_after + 1, sizeof *r->after);
    r->after[r->n_after++] = a;
    return 0;
}

static int read_zone(struct rule_reader *g)
{
    const struct doc_node *one = g->n->kind == DOC_LIST ? g->n->child : NULL;
    int i = 0;
    for (; one && i < 4; one = one->next, i++)
        if (one->kind != DOC_SCALAR || !zone_length(one->text, i, &g->r->zone.at[i]))
            break;
    if (i != 4 || one)
        return doc_fault(g->y, g->n, g->e,
                         "expected [x, y, width, height] in pixels of the root window or in %% of it, none "
                         "negative, for example [0, 0, 100%%, 32]");
    g->r->zoned = true;
    return 0;
}

static int append(struct rule_list *list, const char *word)
{
    list->at = xrealloc(list->at, (unsigned long)list->n + 1, sizeof *list->at);
    list->at[list->n++] = xstrdup(word);
    return 0;
}

static int add_chord(struct rule_reader *g, const char *word)
{
    struct key_sequence keys;
    struct err why = ERR_INIT;
    enum action_fault f = keys_parse(word, strlen(word), false, &keys, &why);
    if (f == FAULT_SCHEMA)
        return doc_fault(g->y, g->n, g->e, "expected at most %d keys in a chord", ACTION_MAX_KEYS);
    if (f)
        return doc_fault(g->y, g->n, g->e, "expected keys joined by +, for example ctrl+w: %s", why.text);
    if (keys.n != 1)
        return doc_fault(g->y, g->n, g->e, "expected one chord, for example ctrl+w; '%.60s' has %d", word,
                         keys.n);
    struct rule *r = g->r;
    r->chords = xrealloc(r->chords, (unsigned long)r->chord_texts.n + 1, sizeof *r->chords);
    struct chord *c = &r->chords[r->chord_texts.n];
    c->n = 0;
    for (int i = 0; i < keys.chords[0].n; i++)
        chord_add(c, keys.chords[0].keys[i]);
    return append(&r->chord_texts, word);
}

static int read_longer(struct rule_reader *g)
{
    char *end = NULL;
    long v =
        g->n->kind == DOC_SCALAR && isdigit((unsigned char)*g->n->text) ? strtol(g->n->text, &end, 10) : -1;
    if (v < 0 || v > ACTION_MAX_TEXT || *end)
        return doc_fault(g->y, g->n, g->e, "expected a number of characters from 0 to %d", ACTION_MAX_TEXT);
    g->r->longer = (int)v;
    return 0;
}

/* Adds a host, "*." and a host, "*", or a scheme with its colon. */
static int add_host(struct rule_reader *g, const char *word)
{
    const char *p = !strncmp(word, "*.", 2) ? word + 2 : word;
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789.-:[]"); /* includes "code:" */
    if (strcmp(word, "*") != 0 && (!*p || p[n]))
        return doc_fault(g->y, g->n, g->e,
                         "expected a lower-case host such as example.org, *.example.org for its subdomains, "
                         "or *; not '%.60s'",
                         word);
    return append(&g->r->hosts, word);
}

static int add_secret(struct rule_reader *g, const char *word)
{
    return append(&g->r->secrets, word);
}

/* ---- the rule --------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    int (*read)(struct rule_reader *g); /* NULL: one or several words, described by `what` */
    const char *what;
    int (*add)(struct rule_reader *g, const char *word);
} readers[] = {
    {"actions", NULL, "the name of a kind of action", add_action},
    {"element", read_regex},
    {"text", read_regex},
    {"title", read_regex},
    {"class", read_regex},
    {"program", read_regex},
    {"zone", read_zone},
    {"keys", NULL, "a chord, for example ctrl+w", add_chord},
    {"longer", read_longer},
    {"terminal", read_yes_or_no},
    {"secret", NULL, "the name of a secret, or \"*\"", add_secret},
    {"host", NULL, "a host", add_host},
    {"new_goal", read_yes_or_no},
    {"after", NULL, "a counter, for example 50 steps", add_after},
    {"browser", read_yes_or_no},
    {"dialog", read_regex},
    {"except", read_regex},
};
enum { N_READERS = sizeof readers / sizeof *readers };

int policy_read_verdict(const struct doc *y, const struct doc_node *n, enum policy_verdict *out,
                        struct err *e)
{
    for (int v = 0; n->kind == DOC_SCALAR && v < 3; v++) {
        if (!strcmp(verdicts[v], n->text)) {
            *out = (enum policy_verdict)v;
            return 0;
        }
    }
    return doc_fault(y, n, e, "expected allow, confirm or deny");
}

/* Reads the member with the verdict and the rule's name. *read: whether the member is one. */
static int read_verdict(struct rule_reader *g, bool *read)
{
    *read = false;
    for (int v = 0; v < 3; v++) {
        if (strcmp(g->n->key, verdicts[v]) != 0)
            continue;
        *read = true;
        if (g->r->name)
            return doc_fault(g->y, g->n, g->e, "expected only one verdict in a rule");
        if (g->n->kind != DOC_SCALAR || !*g->n->text || strlen(g->n->text) > 200 ||
            strpbrk(g->n->text, "\n\t"))
            return doc_fault(g->y, g->n, g->e, "expected the rule's name: one line, at most 200 bytes");
        g->r->verdict = (enum policy_verdict)v;
        g->r->name = xstrdup(g->n->text);
    }
    return 0;
}

static int read_member(struct rule_reader *g)
{
    bool read;
    int rc = read_verdict(g, &read);
    if (rc || read)
        return rc;
    for (int i = 0; i < N_READERS; i++)
        if (!strcmp(readers[i].key, g->n->key))
            return readers[i].read ? readers[i].read(g) : each_word(g, readers[i].what, readers[i].add);
    const char *known[N_READERS + 3] = {verdicts[0], verdicts[1], verdicts[2]};
    char hint[NAME_HINT];
    for (int i = 0; i < N_READERS; i++)
        known[i + 3] = readers[i].key;
    return doc_fault(
        g->y, g->n, g->e,
        "unknown key%s; a rule has allow, confirm or deny with its name, and any of actions, element, text, "
        "title, class, program, terminal, browser, dialog, except, zone, keys, longer, host, secret, "
        "new_goal, after",
        name_hint(hint, g->n->key, known, N_READERS + 3));
}

int rule_read(struct rule *r, const struct doc *y, const struct doc_node *n, struct err *e)
{
    struct rule_reader g = {r, y, NULL, e};
    *r = (struct rule){.file = doc_name(y), .line = n->line, .longer = -1};
    r->terminal = r->browser = r->new_goal = -1;
    if (n->kind != DOC_MAP)
        return doc_fault(y, n, e, "expected a rule, for example \"- deny: its name\" and keys below it");
    for (g.n = n->child; g.n; g.n = g.n->next)
        if (read_member(&g))
            return -1;
    if (!r->name)
        return doc_fault(y, n, e,
                         "expected allow, confirm or deny in this rule, for example \"- deny: its name\"");
    return 0;
}

static void free_list(struct rule_list *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->at[i]);
    free(list->at);
}

void rule_free(struct rule *r)
{
    for (int i = 0; i < RULE_REGEXES; i++)
        regex_free(r->regex[i]);
    free_list(&r->hosts);
    free_list(&r->secrets);
    free_list(&r->chord_texts);
    free(r->after);
    free(r->chords);
    free(r->name);
}

/* ---- printing --------------------------------------------------------------------------------- */

static void print_words(const char *key, const struct rule_list *list, struct buf *out)
{
    for (int i = 0; i < list->n; i++)
        buf_printf(out, "%s%s%s%s", i ? ", " : "  ", i ? "" : key, i ? "" : ": ", list->at[i]);
}

/* Counts the alternatives of a regex, at the top level and in groups. */
static int alternatives(const char *pattern)
{
    int n = 1;
    bool class = false;
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else
            class = *p == '[' ? true : *p == ']' ? false : class;
        n += *p == '|' && !class;
    }
    return n;
}

int rule_patterns(const struct rule *r)
{
    int n = r->chord_texts.n + r->hosts.n + r->secrets.n + r->n_after + r->zoned + (r->longer >= 0);
    for (int i = 0; i < RULE_REGEXES; i++)
        n += r->regex[i] && i != RULE_EXCEPT ? alternatives(regex_pattern(r->regex[i])) : 0;
    return n ? n : 1;
}

void rule_print(const struct rule *r, struct buf *out)
{
    bool any = false;
    for (int k = ACT_NONE + 1; k < ACT_COUNT; k++) {
        if (r->kinds & 1u << k) {
            buf_printf(out, "%s%s", any ? ", " : "  actions: ", action_kind_name((enum action_kind)k));
            any = true;
        }
    }
    for (int i = 0; i < RULE_REGEXES; i++)
        if (r->regex[i])
            buf_printf(out, "  %s: %s", rule_regex_keys[i], regex_pattern(r->regex[i]));
    if (r->terminal >= 0)
        buf_printf(out, "  terminal: %s", r->terminal ? "yes" : "no");
    if (r->browser >= 0)
        buf_printf(out, "  browser: %s", r->browser ? "yes" : "no");
    for (int i = 0; r->zoned && i < 4; i++)
        buf_printf(out, "%s%g%s", i ? ", " : "  zone: ", r->zone.at[i].v, r->zone.at[i].percent ? "%" : "");
    print_words("keys", &r->chord_texts, out);
    if (r->longer >= 0)
        buf_printf(out, "  longer: %d", r->longer);
    print_words("host", &r->hosts, out);
    print_words("secret", &r->secrets, out);
    if (r->new_goal >= 0)
        buf_printf(out, "  new_goal: %s", r->new_goal ? "yes" : "no");
    for (int i = 0; i < r->n_after; i++)
        buf_printf(out, "%s%.12g %s", i ? ", " : "  after: ", r->after[i].n,
                   policy_spent_name(r->after[i].of));
}
