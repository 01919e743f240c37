/* policy.c - see policy.h: reads policy files, and finds the first rule that matches.
 *
 * Keys of a rule are checked one by one, the cheap ones first.  In doubt a rule that denies or asks
 * matches, one that allows does not.
 */
#include "gate/policy_impl.h"

#include "base/buf.h"
#include "base/embed.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

EMBED(gate_builtin, "src/gate/builtin.yaml");

static const char terminal_classes[] =
    "term|console|rxvt|alacritty|kitty|^foot|^st$|^st-|tilix|guake|yakuake|tilda|ghostty|konsole|^eterm$";

/* ---- reading ---------------------------------------------------------------------------------- */

static int read_rules(struct policy *p, const struct doc *y, const struct doc_node *list, struct err *e)
{
    if (list->kind != DOC_LIST)
        return doc_fault(y, list, e, "expected a list of rules, each beginning with \"- \"");
    for (const struct doc_node *n = list->child; n; n = n->next) {
        if (p->n == POLICY_MAX_RULES)
            return doc_fault(y, n, e, "expected at most %d rules", POLICY_MAX_RULES);
        if (p->n == p->cap) {
            p->cap = p->cap ? 2 * p->cap : 32;
            p->rules = xrealloc(p->rules, (unsigned long)p->cap, sizeof *p->rules);
        }
        if (rule_read(&p->rules[p->n++], y, n, e))
            return -1;
    }
    return 0;
}

/* The top level of a file; *builtin: whether the built-in rules follow. */
static int read_file(struct policy *p, const struct doc *y, bool *builtin, struct err *e)
{
    const struct doc_node *root = doc_root(y);
    if (root->kind != DOC_MAP)
        return doc_fault(y, root, e, "expected the keys builtin, otherwise, limits and rules");
    for (const struct doc_node *n = root->child; n; n = n->next) {
        int rc = 0;
        if (!strcmp(n->key, "rules")) {
            rc = read_rules(p, y, n, e);
        } else if (!strcmp(n->key, "otherwise")) {
            rc = policy_read_verdict(y, n, &p->otherwise, e);
            p->otherwise_line = n->line;
        } else if (!strcmp(n->key, "limits")) {
            rc = limits_read(&p->limits, y, n, e);
        } else if (!strcmp(n->key, "builtin")) {
            *builtin = n->text && !strcmp(n->text, "yes");
            if (!*builtin && !(n->text && !strcmp(n->text, "no")))
                rc = doc_fault(y, n, e, "expected yes or no");
        } else {
            rc = doc_fault(y, n, e, "no such key; a policy has builtin, otherwise, limits and rules");
        }
        if (rc)
            return -1;
    }
    return 0;
}

static void read_builtin(struct policy *p)
{
    struct err e = ERR_INIT;
    bool unused;
    p->builtin = doc_parse(gate_builtin, strlen(gate_builtin), "built in", &e);
    if (!p->builtin || read_file(p, p->builtin, &unused, &e))
        bug("%s", e.text);
}

static void add_source(struct sha256 *sum, const struct doc *y)
{
    size_t len;
    const char *text = y ? doc_source(y, &len) : NULL;
    if (text)
        sha256_add(sum, text, len);
}

static struct policy *finish(struct policy *p, bool builtin)
{
    struct sha256 sum;
    if (builtin)
        read_builtin(p);
    p->terminals = regex_new(terminal_classes, true, NULL);
    sha256_begin(&sum);
    add_source(&sum, p->file);
    add_source(&sum, p->builtin);
    sha256_end(&sum, p->sha256);
    return p;
}

static struct policy *new_policy(void)
{
    struct policy *p = xcalloc(1, sizeof *p);
    p->limits = limits_default();
    return p;
}

struct policy *policy_builtin(void)
{
    return finish(new_policy(), true);
}

const struct policy_limits *policy_limits(const struct policy *p)
{
    return &p->limits;
}

/* Takes ownership of y. */
static struct policy *from_yaml(struct doc *y, struct err *e)
{
    struct policy *p = new_policy();
    bool builtin = true;
    p->file = y;
    if (y && read_file(p, y, &builtin, e) == 0)
        return finish(p, builtin);
    policy_free(p);
    return NULL;
}

struct policy *policy_parse(const char *text, size_t len, const char *name, struct err *e)
{
    return from_yaml(doc_parse(text, len, name, e), e);
}

struct policy *policy_open(const char *path, struct err *e)
{
    if (path)
        return from_yaml(doc_read(path, e), e);
    char *config = file_place(PLACE_CONFIG, NULL);
    char *own = config ? xasprintf("%s/policy.yaml", config) : NULL;
    struct policy *p = own && file_exists(own) ? from_yaml(doc_read(own, e), e) : policy_builtin();
    free(own);
    free(config);
    return p;
}

void policy_free(struct policy *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n; i++)
        rule_free(&p->rules[i]);
    free(p->rules);
    regex_free(p->terminals);
    doc_free(p->file);
    doc_free(p->builtin);
    free(p);
}

const char *policy_name(const struct policy *p)
{
    return doc_name(p->file ? p->file : p->builtin);
}

const char *policy_sha256(const struct policy *p)
{
    return p->sha256;
}

void policy_print(const struct policy *p, struct buf *out)
{
    const char *file = "";
    for (int i = 0; i < p->n; i++) {
        const struct rule *r = &p->rules[i];
        if (strcmp(file, r->file) != 0)
            buf_printf(out, "%s:\n", file = r->file);
        buf_printf(out, "  %4d  %-7s  %s\n%16s", r->line, policy_verdict_name(r->verdict), r->name, "");
        rule_print(r, out);
        buf_puts(out, "\n");
    }
    limits_print(&p->limits, out);
    buf_printf(out, "otherwise: %s\n", policy_verdict_name(p->otherwise));
}

/* ---- matching --------------------------------------------------------------------------------- */

struct rule_match { /* of rule r and subject s */
    const struct policy *p;
    const struct rule *r;
    const struct policy_subject *s;
    bool doubt; /* the result when in doubt */
};

static bool regex_matches(const struct rule_match *q, const struct regex *r, const char *text)
{
    int found = regex_find(r, text, strlen(text));
    return found < 0 ? q->doubt : found > 0;
}

static bool member_matches(const struct rule_match *q, enum rule_regex which, const char *text)
{
    const struct regex *r = q->r->regex[which];
    return !r || regex_matches(q, r, text);
}

static bool inside_zone(const struct rule_match *q, int x, int y)
{
    struct screen_rect z = zone_rect(&q->r->zone, q->s->root_w, q->s->root_h);
    return x >= z.x && x < z.x + z.w && y >= z.y && y < z.y + z.h;
}

/* All conditions on the target must hold for the same target. */
static bool target_matches(const struct rule_match *q, const struct policy_target *t)
{
    const struct screen_window *w = &t->window;
    if (q->r->zoned && (!t->placed || !inside_zone(q, t->x, t->y)))
        return false;
    if (q->r->terminal >= 0 && regex_matches(q, q->p->terminals, w->class) != q->r->terminal)
        return false;
    return member_matches(q, RULE_TITLE, w->title) && member_matches(q, RULE_CLASS, w->class) &&
           member_matches(q, RULE_PROGRAM, w->program);
}

/* Points of a drag's path belong to the window of its start. */
static bool corner_matches(const struct rule_match *q, int i)
{
    struct policy_target t = q->s->targets[0];
    t.placed = true;
    t.x = q->s->corners[2 * i];
    t.y = q->s->corners[2 * i + 1];
    return target_matches(q, &t);
}

static bool targets_match(const struct rule_match *q)
{
    const struct rule *r = q->r;
    bool asked = r->zoned || r->terminal >= 0 || r->regex[RULE_TITLE] || r->regex[RULE_CLASS] ||
                 r->regex[RULE_PROGRAM];
    if (!asked)
        return true;
    if (!q->s->n_targets)
        return false;
    bool all = r->verdict == POLICY_ALLOW;
    for (int i = 0; i < q->s->n_targets; i++)
        if (target_matches(q, &q->s->targets[i]) != all)
            return !all;
    for (int i = 0; r->zoned && i < q->s->n_corners; i++)
        if (corner_matches(q, i) != all)
            return !all;
    return all;
}

struct chords { /* compares the chords of an action with those of a rule */
    const struct rule *r;
    int seen;
    bool matches;
};

static bool match_chord(void *arg, const struct chord *c)
{
    struct chords *k = arg;
    bool all = k->r->verdict == POLICY_ALLOW, hit = false;
    for (int i = 0; i < k->r->chord_texts.n && !hit; i++)
        hit = chord_within(&k->r->chords[i], c) && (!all || c->n == k->r->chords[i].n);
    k->seen++;
    k->matches = hit;
    return hit == all; /* continue until one decides */
}

static bool chords_match(const struct rule_match *q)
{
    struct chords k = {.r = q->r};
    if (!q->r->chord_texts.n)
        return true;
    chords_of(q->s, match_chord, &k);
    return k.seen && k.matches;
}

static bool host_matches(const char *pattern, const char *host)
{
    size_t n = strlen(pattern), m = strlen(host);
    if (!strcmp(pattern, "*"))
        return true;
    if (!strncmp(pattern, "*.", 2)) /* "*.example.org": the dot counts */
        return m > n - 1 && !strcmp(host + m - (n - 1), pattern + 1);
    return !strcmp(pattern, host);
}

static bool hosts_match(const struct rule_match *q)
{
    char host[256];
    if (!q->r->hosts.n)
        return true;
    if (q->s->action->kind != ACT_GOTO)
        return false;
    if (!policy_host(q->s->action->text ? q->s->action->text : "", host))
        return q->doubt;
    for (int i = 0; i < q->r->hosts.n; i++)
        if (host_matches(q->r->hosts.at[i], host))
            return true;
    return false;
}

static bool named(const struct rule *r, const char *secret)
{
    for (int i = 0; i < r->secrets.n; i++)
        if (!strcmp(r->secrets.at[i], "*") || !strcmp(r->secrets.at[i], secret))
            return true;
    return false;
}

static bool secrets_match(const struct rule_match *q)
{
    bool all = q->r->verdict == POLICY_ALLOW;
    if (!q->r->secrets.n)
        return true;
    for (int i = 0; i < q->s->n_secrets; i++)
        if (named(q->r, q->s->secrets[i]) != all)
            return !all;
    return all && q->s->n_secrets;
}

static bool match_spent(const struct rule_match *q)
{
    for (int i = 0; i < q->r->n_after; i++)
        if (q->s->spent.of[q->r->after[i].of] >= q->r->after[i].n)
            return true;
    return !q->r->n_after;
}

static bool rule_matches(const struct rule_match *q)
{
    const struct rule *r = q->r;
    const struct action *a = q->s->action;
    const char *text = a->text ? a->text : "";
    if (r->kinds && !(r->kinds & 1u << a->kind))
        return false;
    if (r->longer >= 0 && utf8_count(text, strlen(text)) <= (size_t)r->longer)
        return false;
    if (r->new_goal >= 0 && q->s->new_goal != r->new_goal)
        return false;
    return match_spent(q) && hosts_match(q) && secrets_match(q) && chords_match(q) &&
           member_matches(q, RULE_ELEMENT, a->element) && member_matches(q, RULE_TEXT, text) &&
           targets_match(q);
}

struct policy_ruling policy_judge(const struct policy *p, const struct policy_subject *s)
{
    for (int i = 0; i < p->n; i++) {
        const struct rule *r = &p->rules[i];
        struct rule_match q = {p, r, s, r->verdict != POLICY_ALLOW};
        if (rule_matches(&q))
            return (struct policy_ruling){r->verdict, r->name, r->file, r->line};
    }
    return (struct policy_ruling){p->otherwise, "otherwise", policy_name(p), p->otherwise_line};
}
