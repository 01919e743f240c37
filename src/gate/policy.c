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

EMBED(gate_builtin, "src/gate/builtin.yaml");

enum { SUMMARY_COLUMNS = 96 };

/* Launchers execute the text that is written into them, like terminals. */
static const char launcher_classes[] =
    "rofi|krunner|dmenu|bemenu|wofi|fuzzel|^tofi|gmrun|xfrun|appfinder|ulauncher|^albert|synapse|kupfer"
    "|lxqt-runner|launchy|^run$|^run.dialog|gnome-do$|jgmenu|rlaunch|^gexec|^fbrun|lxrun|^lxpanel.run"
    "|interrobang|sxlaunch|9menu|gnome-shell|plasmashell|whisker|wrapper-2|^cinnamon$|budgie-panel|mate-panel"
    "|lxqt-panel|lxpanel|brisk-menu|onagre|anyrun|^walker$|sherlock|cerebro|zazu|vicinae|^wox$|flow.launcher"
    "|^dex$|catfish|^gnome-panel|xfce4-run|xfdashboard|^tint2$|^plank$|appmenu|app-?launcher";

static const char browser_classes[] =
    "chrom(e|ium)|firefox|navigator|browser|epiphany|falkon|brave|\\bopera|vivaldi|edge|midori|konqueror"
    "|librewolf|waterfox|palemoon|pale moon|seamonkey|thorium|floorp|^zen|dillo|netsurf|^surf|luakit|nyxt"
    "|iceweasel|icecat|mullvad|tor-?browser|qutebrowser|minibrowser|ladybird|servo|cachy|helium|^arc$";

/* Names of buttons that accept a dialog: Yes, OK, Apply and Continue as translated by GTK, Qt and zenity,
 * words of the same meaning, and descriptions without a name ("the blue button"). */
static const char *const agreeing_names[AGREEING] = {
    /* clang-format off */
    "(*UCP)(?x) \\b ( yes | yep | ok(ay|e)? | o\\.k\\. | apply | continue | proceed "
    "| confirm | sure | accept | agree| do\\ it | correct | understand | understood "
    "| got\\ it | execute| allow | i\\ am | ja | anwenden | weiter | fortfahren "
    "| fortsetzen | bestatigen | fertig | ausfuhren | einverstanden| trotzdem "
    "| verstanden | oui | valider | appliquer | continuer | poursuivre | confirmer "
    "| accepter | d'accord| terminer | executer | si | aceptar | aplicar | continuar "
    "| seguir | confirmar | vale | de\\ acuerdo | hecho| ejecutar | adelante | applica "
    "| continua | prosegui | conferma | avanti | va\\ bene | procedi | sim | prosseguir"
    "| concluir | toepassen | doorgaan | verdergaan | bevestigen | akkoord | verkstall "
    "| fortsatt | bekrafta | godkann| fortsæt | bekreft | anvend | bruk | tak | zastosuj "
    "| kontynuuj | potwierdz | dalej | ano | budiz | pouzit| pokracovat | potvrdit | evet"
    " | tamam | uygula | devam | onayla | kylla | toteuta | jatka | igen | alkalmaz"
    "| folytatas | da | aplica | ya | terapkan | lanjutkan | dong\\ y | ap\\ dung "
    "| tiep\\ tuc ) \\b | ^ \\W* (the \\W+)? (go | co | next | start | run | done "
    "| finish | submit) \\W* (button \\W*)? $"
    "| ^ \\W* ((the|a) \\W+)? ((left|right|first|second|last|blue|red|green|dark|default"
    "|primary|main|highlighted|focused|big|bottom|lower|upper|rounded) (most)? \\W+)* button"
    " \\b (\\W+ (in|of|on|at) \\b .*)? \\W* $",
    "(*UCP)(?x) \\b ( да | ок | применить | продолжить | подтвердить | далее | согласен "
    "| так | гаразд | застосувати| продовжити | ναι | ενταξει | εφαρμογη | συνεχεια ) \\b"
    " | はい | 適用 | 続行 | 続ける | 実行 | 確定 | 了解 | 次へ | 進む| ^ \\W* (是 | 好) | 确定 | 应用 | 套用 | 继续 "
    "| 繼續 | 确认 | 確認 | 執行 | 执行 | 同意 | ^ \\W* (예|네) | 적용 | 계속| 확인 | 진행 | نعم | طبق | متابعة"
    " | כן | אישור | החלה | हा | ठीक | लागू | जारी | ใช่ | ตกลง"};
/* clang-format on */

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

/* Reads the top level of a file. *builtin: whether the built-in rules follow. */
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
            rc = doc_fault(y, n, e,
                           "unknown key%s; the keys of a policy are builtin, otherwise, limits and rules",
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
    p->with_builtin = builtin;
    p->terminals = regex_new(screen_terminal_classes, true, NULL);
    p->launchers = regex_new(launcher_classes, true, NULL);
    p->browsers = regex_new(browser_classes, true, NULL);
    for (int i = 0; i < AGREEING; i++)
        p->agreeing[i] = regex_new(agreeing_names[i], true, NULL);
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

/* Rejects files that everyone can modify: such rules do not protect. */
static struct policy *read_checked(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        if (st.st_mode & S_IWOTH) {
            err_set(e, ERR_USAGE, "'%s' is writable by every user: run chmod go-w on it", path);
            return NULL;
        }
        if (st.st_mode & S_IWGRP || (st.st_uid && st.st_uid != geteuid()))
            warn("other users can change the rules in '%s'", path);
    }
    return from_yaml(doc_read(path, e), e);
}

struct policy *policy_open(const char *path, struct err *e)
{
    if (path)
        return read_checked(path, e);
    autofree char *config = file_place(PLACE_CONFIG, NULL);
    autofree char *own = config ? xasprintf("%s/policy.yaml", config) : NULL;
    return own && file_exists(own) ? read_checked(own, e) : policy_builtin();
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
    regex_free(p->browsers);
    for (int i = 0; i < AGREEING; i++)
        regex_free(p->agreeing[i]);
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

/* Prints the names of the rules with one verdict as a paragraph, equal names once. */
static void print_verdict(const struct policy *p, enum policy_verdict v, const char *head, struct buf *out)
{
    int rules = 0, patterns = 0, column = 0;
    for (int i = 0; i < p->n; i++) {
        rules += p->rules[i].verdict == v;
        patterns += p->rules[i].verdict == v ? rule_patterns(&p->rules[i]) : 0;
    }
    if (!rules)
        return;
    buf_printf(out, "%s (%d %s, %d patterns):", head, rules, rules == 1 ? "rule" : "rules", patterns);
    for (int i = 0; i < p->n; i++) {
        const char *name = p->rules[i].name;
        bool seen = p->rules[i].verdict != v;
        for (int k = 0; k < i && !seen; k++)
            seen = p->rules[k].verdict == v && !strcmp(p->rules[k].name, name);
        if (seen)
            continue;
        bool wraps = !column || column + strlen(name) > SUMMARY_COLUMNS;
        buf_printf(out, "%s%s%s", column ? ";" : "", wraps ? "\n  " : " ", name);
        column = (wraps ? 2 : column + 2) + (int)strlen(name);
    }
    buf_puts(out, "\n");
}

void policy_print_summary(const struct policy *p, struct buf *out)
{
    static const char *const rest[] = {"is allowed", "requires confirmation", "is denied"};
    buf_printf(out, "Rules of '%s'%s. The first rule that matches an action decides.\n", policy_name(p),
               p->file && p->with_builtin ? ", then the built-in ones" : "");
    print_verdict(p, POLICY_DENY, "Denied", out);
    print_verdict(p, POLICY_CONFIRM, "Confirmation required", out);
    print_verdict(p, POLICY_ALLOW, "Allowed", out);
    buf_printf(out, "Everything else %s.\n", rest[p->otherwise]);
    limits_print(&p->limits, out);
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
