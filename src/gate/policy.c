/* policy.c - reads policy files, and prints them (policy.h). */
#include "gate/policy_impl.h"

#include "base/buf.h"
#include "base/embed.h"
#include "base/file.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILTIN "built in" /* name of the file of the built-in rules */

EMBED(gate_builtin, "src/gate/builtin.yaml");

/* Terminals and launchers run the text that is written into them. */
static const char terminal_classes[] =
    "term|console|rxvt|alacritty|kitty|^foot(client)?$|^st$|^st-|tilix|guake|yakuake|tilda|ghostty|konsole"
    "|ptyxis|^kgx|warp|tabby|sakura|^hyper$|^contour$|^rio$|black-?box|zutty|^havoc$|^tym$|^wave$|^edex"
    "|germinal|powershell";
static const char launcher_classes[] =
    "rofi|krunner|dmenu|bemenu|wofi|fuzzel|^tofi|gmrun|xfrun|appfinder|ulauncher|^albert|synapse|kupfer"
    "|lxqt-runner|launchy|^run$|^run.dialog|gnome-do$|jgmenu|rlaunch|^gexec|^fbrun|lxrun|^lxpanel.run"
    "|interrobang|sxlaunch|9menu";

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
            static const char *const known[] = {"builtin", "otherwise", "limits", "rules"};
            char hint[NAME_HINT];
            rc = doc_fault(y, n, e, "no such key%s; a policy has builtin, otherwise, limits and rules",
                           name_hint(hint, n->key, known, 4));
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
    p->builtin = doc_parse(gate_builtin, strlen(gate_builtin), BUILTIN, &e);
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
    p->launchers = regex_new(launcher_classes, true, NULL);
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

/* Rules that anybody can change protect from nothing. */
static struct policy *read_checked(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        if (st.st_mode & S_IWOTH) {
            err_set(e, ERR_USAGE, "everybody on this machine can change '%s': chmod go-w it", path);
            return NULL;
        }
        if (st.st_mode & S_IWGRP || (st.st_uid && st.st_uid != geteuid()))
            warn("others can change the rules in '%s'", path);
    }
    return from_yaml(doc_read(path, e), e);
}

struct policy *policy_open(const char *path, struct err *e)
{
    if (path)
        return read_checked(path, e);
    char *config = file_place(PLACE_CONFIG, NULL);
    char *own = config ? xasprintf("%s/policy.yaml", config) : NULL;
    struct policy *p = own && file_exists(own) ? read_checked(own, e) : policy_builtin();
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
    regex_free(p->launchers);
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

void policy_print(const struct policy *p, bool full, struct buf *out)
{
    int counts[3] = {0};
    for (int i = 0; i < p->n; i++)
        counts[p->rules[i].verdict]++;
    buf_printf(out,
               "%d rules: %d deny, %d ask a person, %d allow; the first that matches an action decides\n",
               p->n, counts[POLICY_DENY], counts[POLICY_CONFIRM], counts[POLICY_ALLOW]);
    const char *file = "";
    for (int i = 0; i < p->n; i++) {
        const struct rule *r = &p->rules[i];
        if (strcmp(file, r->file) != 0)
            buf_printf(out, "%s:\n", file = r->file);
        buf_printf(out, "  %4d  %-7s  %s\n", r->line, policy_verdict_name(r->verdict), r->name);
        if (!full && !strcmp(r->file, BUILTIN))
            continue;
        buf_printf(out, "%16s", "");
        rule_print(r, out);
        buf_puts(out, "\n");
    }
    limits_print(&p->limits, out);
    buf_printf(out, "otherwise: %s\n", policy_verdict_name(p->otherwise));
}
