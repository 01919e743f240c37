/* t_policy.c - tests of the policy: invalid files, and actions that try to get around the rules.  They need
 * no display.
 */
#include "check.h"
#include "place.h"

#include "actions/dialect.h"
#include "base/doc.h"
#include "base/file.h"
#include "gate/subject.h"

#include <X11/Xlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- invalid files --------------------------------------------------------------------------- */

static char *repeat(const char *head, const char *text, int n, const char *tail)
{
    size_t h = strlen(head), len = strlen(text), t = strlen(tail);
    char *out = malloc(h + len * (size_t)n + t + 1), *p = out;
    memcpy(p, head, h);
    p += h;
    for (int i = 0; i < n; i++, p += len)
        memcpy(p, text, len);
    memcpy(p, tail, t + 1);
    return out;
}

/* Each line has a file and a part of the error message. */
static const struct {
    const char *text, *says;
} wrong[] = {
    {"rules: [", "p.yaml:2: not YAML"},
    {"rules:\n  - deny: a\n   zone: [1, 2, 3, 4]\n", "p.yaml:3: not YAML"},
    {"\t- x", "p.yaml:1: not YAML"},
    {"- deny: x", "p.yaml:1: expected the keys builtin, otherwise, limits and rules"},
    {"rulez: []", "p.yaml:1: key 'rulez': unknown key; did you mean 'rules'?; the keys of a policy are"},
    {"limits:\n  error: 3\n", "p.yaml:2: key 'error': unknown key; did you mean 'errors'?; the limits are"},
    {"rules:\n  - deny: a\n    action: click\n",
     "p.yaml:3: key 'action': unknown key; did you mean 'actions'?; a rule has"},
    {"rules: deny", "p.yaml:1: key 'rules': expected a list of rules"},
    {"rules:\n  - hello\n", "p.yaml:2: expected a rule"},
    {"rules:\n  - element: x\n", "p.yaml:2: expected allow, confirm or deny in this rule"},
    {"rules:\n  - deny: a\n    allow: b\n", "p.yaml:3: key 'allow': expected only one verdict"},
    {"rules:\n  - deny: [a]\n", "p.yaml:2: key 'deny': expected the rule's name"},
    {"rules:\n  - deny: \"a\\nb\"\n", "p.yaml:2: key 'deny': expected the rule's name"},
    {"rules:\n  - deny: a\n    colour: red\n", "p.yaml:3: key 'colour': unknown key; a rule has"},
    {"rules:\n  - deny: a\n    deny: b\n", "p.yaml:3: key 'deny': appears twice"},
    {"rules:\n  - deny: a\n    actions: clik\n", "p.yaml:3: key 'actions': unknown kind of action 'clik'"},
    {"rules:\n  - deny: a\n    actions: {click: 1}\n",
     "p.yaml:3: key 'actions': expected the name of a kind"},
    {"rules:\n  - deny: a\n    element: '(b'\n",
     "p.yaml:3: key 'element': expected a regular expression: missing"},
    {"rules:\n  - deny: a\n    title: []\n", "p.yaml:3: key 'title': expected a regular expression"},
    {"rules:\n  - deny: a\n    text: (((((a{999}){999}){999}){999}){999})\n",
     "p.yaml:3: key 'text': expected a regular"},
    {"rules:\n  - deny: a\n    zone: [0, 0, 10]\n", "p.yaml:3: key 'zone': expected [x, y, width, height]"},
    {"rules:\n  - deny: a\n    zone: [-1, 0, 10, 10]\n", "p.yaml:3: key 'zone': expected"},
    {"rules:\n  - deny: a\n    zone: [0, 0, 0, 10]\n", "p.yaml:3: key 'zone': expected"},
    {"rules:\n  - deny: a\n    zone: [0, 0, 101%, 10]\n", "p.yaml:3: key 'zone': expected"},
    {"rules:\n  - deny: a\n    zone: [0, 0, nan, 10]\n", "p.yaml:3: key 'zone': expected"},
    {"rules:\n  - deny: a\n    zone: [0, 0, 1e99, 10]\n", "p.yaml:3: key 'zone': expected"},
    {"rules:\n  - deny: a\n    keys: ctrl+bananas\n", "p.yaml:3: key 'keys': expected keys joined by +"},
    {"rules:\n  - deny: a\n    keys: a+b+c+d+e+f+g+h+i\n", "p.yaml:3: key 'keys': expected at most 8 keys"},
    {"rules:\n  - deny: a\n    longer: -1\n", "p.yaml:3: key 'longer': expected a number of characters"},
    {"rules:\n  - deny: a\n    longer: 99999999999999999999\n", "p.yaml:3: key 'longer': expected"},
    {"rules:\n  - deny: a\n    host: 'ex ample.org'\n", "p.yaml:3: key 'host': expected a lower-case host"},
    {"rules:\n  - deny: a\n    terminal: maybe\n", "p.yaml:3: key 'terminal': expected yes or no"},
    {"rules:\n  - deny: a\n    new_goal: maybe\n", "p.yaml:3: key 'new_goal': expected yes or no"},
    {"rules:\n  - deny: a\n    after: 50\n", "p.yaml:3: key 'after': expected a number of steps"},
    {"rules:\n  - deny: a\n    after: [5 steps, -1 steps]\n", "p.yaml:3: key 'after': expected a number"},
    {"rules:\n  - deny: a\n    after: 5 bananas\n", "p.yaml:3: key 'after': expected a number"},
    {"otherwise: perhaps", "p.yaml:1: key 'otherwise': expected allow, confirm or deny"},
    {"builtin: 1", "p.yaml:1: key 'builtin': expected yes or no"},
    {"rules: &a [*a]", "p.yaml:1: anchors (&name) are not allowed"},
    {"rules: !!python/object []", "p.yaml:1: tags (!name) are not allowed"},
    {"rules: []\n---\nrules: []\n", "p.yaml:2: a second document"},
    {"rules:\n  - deny: \"a\\0b\"\n", "p.yaml:2: a string contains a NUL"},
    {"rules:\n  - deny: \xff\n", "p.yaml:2: not valid UTF-8"},
    {"? [a]\n: b\n", "p.yaml:1: a key must be a scalar"},
};

static void refused(const char *text, size_t len, const char *says)
{
    struct err e = ERR_INIT;
    struct policy *p = policy_parse(text, len, "p.yaml", &e);
    if (p || e.kind != ERR_USAGE || strncmp(e.text, says, strlen(says)) != 0)
        fail_msg("instead of '%s': '%s'", says, p ? "accepted" : e.text);
}

static void t_wrong(void **state)
{
    int n = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++, n++)
        refused(wrong[i].text, strlen(wrong[i].text), wrong[i].says);
    struct {
        const char *head, *text;
        int n;
        const char *tail, *says;
    } big[] = {
        {"rules: ", "[", 5000, "", "p.yaml:1: nested more than 12 deep"},
        {"a: ", "{b: ", 5000, "", "p.yaml:1: nested more than 12 deep"},
        {"rules:\n", "  - deny: x\n", 501, "", "p.yaml:502: expected at most 500 rules"},
        {"rules: [", "1, ", 30000, "]", "p.yaml:1: more than 20000 values"},
        {"# ", "x", 300000, "", "p.yaml: 300002 bytes; the limit is 262144"},
        {"rules:\n  - deny: a\n    element: ", "(a|b)", 1000, "",
         "p.yaml:3: key 'element': expected a regular expression: pattern of 5000 bytes; the limit is 2000"},
        {"rules:\n  - deny: a\n    host: [", "a, ", 100, "b]", "p.yaml:3: key 'host': expected at most 64"},
        /* nested aliases, which would expand tenfold at each level */
        {"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n", "#\n", 1, "",
         "p.yaml:1: anchors (&name) are not allowed"},
    };
    for (size_t i = 0; i < sizeof big / sizeof *big; i++, n++) {
        char *text = repeat(big[i].head, big[i].text, big[i].n, big[i].tail);
        refused(text, strlen(text), big[i].says);
        free(text);
    }
    check_note("%d of %d hostile cases ended as documented", n, n);
}

/* ---- actions --------------------------------------------------------------------------------- */

static const struct view_transform same = {0, 0, 1, 1};
static const struct subject_root root = {1000, 800, NULL};

struct scene { /* target of the action; NULL: "" */
    const char *title, *class, *program;
};

static enum policy_verdict judge(const struct policy *p, const char *json, struct scene where,
                                 const char **rule)
{
    struct action a;
    struct err e = ERR_INIT;
    if (action_from_json(json, strlen(json), &a, &e))
        fail_msg("%s: %s", json, e.text);
    struct subject *s = calloc(1, sizeof *s);
    subject_build(s, &a, &same, &root);
    for (int i = 0; i < s->s.n_targets; i++) {
        struct screen_window *w = &s->s.targets[i].window;
        snprintf(w->title, sizeof w->title, "%s", where.title ? where.title : "");
        snprintf(w->class, sizeof w->class, "%s", where.class ? where.class : "");
        snprintf(w->program, sizeof w->program, "%s", where.program ? where.program : "");
    }
    struct policy_ruling r = policy_judge(p, &s->s);
    if (rule)
        *rule = r.rule;
    free(s);
    action_free(&a);
    return r.verdict;
}

static struct policy *policy_of(const char *text)
{
    struct err e = ERR_INIT;
    struct policy *p = policy_parse(text, strlen(text), "p.yaml", &e);
    if (!p)
        fail_msg("%s", e.text);
    return p;
}

#define A POLICY_ALLOW
#define C POLICY_CONFIRM
#define D POLICY_DENY

#define CLICKED(e) "{\"kind\": \"click\", \"x\": 1, \"y\": 2, \"element\": \"" e "\"}"
#define TYPED(t)   "{\"kind\": \"type\", \"text\": \"" t "\"}"
#define PRESSED(k) "{\"kind\": \"key\", \"keys\": [" k "]}"

static const struct {
    enum policy_verdict verdict;
    const char *action;
    struct scene where;
} standard[] = {
    {A, CLICKED("the Search button"), {0}},
    {C, CLICKED("the SEND button"), {0}},
    {C, CLICKED("Empty the trash"), {0}},
    {C, CLICKED("Check out"), {0}},
    {C, "{\"kind\": \"mouse_down\", \"x\": 1, \"y\": 2, \"element\": \"Pay now\"}", {0}},
    {A, CLICKED("the paypal logo, a postcard, a facebook"), {0}},
    {A,
     "{\"kind\": \"type\", \"text\": \"Rome\", \"element\": \"the field To\"}",
     {"Flights", "chromium", NULL}},
    {C, TYPED("rm -rf /"), {"~", "XTerm", NULL}},
    {C, PRESSED("\"Return\""), {"~", "Gnome-terminal", NULL}},
    {C, "{\"kind\": \"type\", \"text\": \"x\", \"element\": \"the Password field\"}", {0}},
    {C, TYPED("x"), {"Authentication required - polkit", "Polkit-gnome", NULL}},
    {C, "{\"kind\": \"goto\", \"text\": \"example.org\"}", {0}},
    {D, "{\"kind\": \"goto\", \"text\": \" JavaScript:alert(1)\"}", {0}},
    {C, PRESSED("\"Control_L\", \"w\""), {"*letter.txt - Editor", "Gedit", NULL}},
    {A, PRESSED("\"Control_L\", \"w\""), {"letter.txt - Editor", "Gedit", NULL}},
    {C, CLICKED("Close button of the window"), {"letter - modified", "Gedit", NULL}},
    {C, CLICKED("×"), {"• letter.txt", "Code", NULL}},
    {A, CLICKED("Close button of the window"), {"letter.txt", "Gedit", NULL}},
    {A, CLICKED("the text"), {"• letter.txt", "Code", NULL}},
    {C, PRESSED("\"Control_R\", \"KP_Enter\""), {0}},
    /* one shortcut in many spellings and orders */
    {D, PRESSED("\"Control_L\", \"Alt_L\", \"Delete\""), {0}},
    {D, PRESSED("\"Delete\", \"Alt_R\", \"Control_R\""), {0}},
    {D, PRESSED("\"Control_L\", \"Shift_L\", \"Alt_L\", \"KP_Delete\""), {0}},
    {D, PRESSED("\"Control_L\", \"Meta_L\", \"BackSpace\""), {0}},
    {D, PRESSED("\"Control_L\", \"ISO_Level3_Shift\", \"F7\""), {0}},
    {D, PRESSED("\"Alt_L\", \"Sys_Req\", \"b\""), {0}},
    {D, PRESSED("\"XF86Switch_VT_3\""), {0}},
    {D, PRESSED("\"Terminate_Server\""), {0}},
    {D,
     "{\"kind\": \"hold_and_tap\", \"keys\": [\"Control_L\", \"Alt_L\", \"a\", \"F1\"], \"nhold\": 2}",
     {0}},
    {A, PRESSED("\"Control_L\", \"Delete\""), {0}},
    {D, PRESSED("\"Control_L\", \"Alt_L\", \"KP_Decimal\""), {0}},
    {D, PRESSED("\"XF86PowerDown\""), {0}},
    {D, PRESSED("\"XF86Standby\""), {0}},
    /* names in source code style, icons, variants of well-known keys */
    {C, CLICKED("deleteAccount"), {0}},
    {C, CLICKED("btn_delete_account"), {0}},
    {A, CLICKED("PayPal logo"), {0}},
    {A, CLICKED("PostScript file"), {0}},
    {C, CLICKED("Continue to PayPal"), {0}},
    {C, CLICKED("Go to check-out"), {0}},
    {C, CLICKED("🗑"), {0}},
    {C, CLICKED("the trash can icon in the row"), {0}},
    {A, CLICKED("the trash icon on the desktop"), {0}},
    {C, PRESSED("\"Super_L\", \"Return\""), {0}},
    {C, PRESSED("\"Shift_L\", \"KP_Decimal\""), {0}},
    {C, PRESSED("\"Control_L\", \"F4\""), {"* letter", "Gedit", NULL}},
    {C, PRESSED("\"F12\""), {"Shop", "firefox", NULL}},
    {C, PRESSED("\"Control_L\", \"Shift_L\", \"c\""), {"Shop", "Chromium", NULL}},
    {A, PRESSED("\"Control_L\", \"c\""), {"Shop", "Chromium", NULL}},
    {C, PRESSED("\"Control_R\", \"Shift_R\", \"E\""), {"Shop", "firefox", NULL}},
    {C, PRESSED("\"Shift_L\", \"F5\""), {"Shop", "firefox", NULL}},
    {C, PRESSED("\"Shift_L\", \"F9\""), {"Shop", "Navigator", NULL}},
    {A, PRESSED("\"F5\""), {"Shop", "firefox", NULL}},
    {C, CLICKED("Inspect (Q)"), {"Shop", "firefox", NULL}},
    {C, CLICKED("Seitenquelltext anzeigen"), {"Shop", "firefox", NULL}},
    {C, CLICKED("检查"), {"Shop", "chromium", NULL}},
    {A, CLICKED("Inspect (Q)"), {"drawing.svg", "Inkscape", NULL}},
    {A, CLICKED("Inspect the offers"), {"Shop", "firefox", NULL}},
    /* accounts, and buttons of banners */
    {C, CLICKED("Create account"), {0}},
    {C, CLICKED("Create your Example account"), {0}},
    {C, CLICKED("Register"), {0}},
    {C, CLICKED("Konto erstellen"), {0}},
    {C, CLICKED("S'inscrire"), {0}},
    {C, CLICKED("Crear una cuenta"), {0}},
    {C, CLICKED("新規登録"), {0}},
    {C, CLICKED("註冊"), {0}},
    {C, CLICKED("Зарегистрироваться"), {0}},
    {A, CLICKED("the cash register"), {0}},
    {A, CLICKED("Registered users"), {0}},
    {A, CLICKED("Accept all"), {0}},
    {A, CLICKED("the Accept all cookies button"), {0}},
    {A, CLICKED("Alle akzeptieren"), {0}},
    {A, CLICKED("Tout accepter"), {0}},
    {A, CLICKED("Aceptar todas"), {0}},
    {A, CLICKED("すべて同意する"), {0}},
    {A, CLICKED("全部接受"), {0}},
    {C, CLICKED("Accept all changes"), {0}},
    {C, CLICKED("Accept all terms and pay"), {0}},
    {C, CLICKED("I accept"), {0}},
    {C, CLICKED("Akzeptieren"), {0}},
    /* launchers and terminals by key */
    {C, PRESSED("\"Super_L\""), {0}},
    {C, "{\"kind\": \"key_down\", \"keys\": [\"Super_R\"]}", {0}},
    {C, PRESSED("\"Alt_L\", \"F3\""), {0}},
    {C, PRESSED("\"Control_L\", \"Alt_L\", \"t\""), {0}},
    {A, PRESSED("\"Control_L\", \"t\""), {0}},
    {C, TYPED("x"), {"", "Xfce4-appfinder", NULL}},
    {C, TYPED("x"), {"", "plasmashell", NULL}},
    /* URLs that browsers interpret leniently */
    {D, TYPED("javascript;void(1)"), {"Shop", "chromium", NULL}},
    {D, TYPED("data: text/html,<b>x"), {"Shop", "chromium", NULL}},
    {D, TYPED("view-source: javascript:1"), {"Shop", "firefox", NULL}},
    {A, TYPED("Data: 5 rows"), {"Shop", "firefox", NULL}},
    {A, TYPED("note; and javascript"), {"Shop", "firefox", NULL}},
    {C, PRESSED("\"Control_L\", \"Shift_L\", \"J\""), {"Shop", "Chromium", NULL}},
    {A, PRESSED("\"F12\""), {"letter", "libreoffice-writer", NULL}},
    /* every way to write to a terminal or a launcher */
    {C, "{\"kind\": \"click\", \"x\": 1, \"y\": 2, \"button\": \"middle\"}", {"~", "XTerm", NULL}},
    {C, "{\"kind\": \"mouse_up\", \"x\": 1, \"y\": 2, \"button\": \"middle\"}", {"~", "XTerm", NULL}},
    {A, "{\"kind\": \"click\", \"x\": 1, \"y\": 2}", {"~", "XTerm", NULL}},
    {C, TYPED("x"), {"", "org.gnome.Ptyxis", NULL}},
    {C, TYPED("x"), {"", "kgx", NULL}},
    {C, TYPED("x"), {"", "dev.warp.Warp", NULL}},
    {C, TYPED("x"), {"", "Tabby", NULL}},
    {C, TYPED("x"), {"", "Sakura", NULL}},
    {C, TYPED("x"), {"", "Rofi", NULL}},
    {C, TYPED("x"), {"", "krunner", NULL}},
    {C, TYPED("x"), {"", "", "/usr/bin/xfce4-terminal"}},
    {A, TYPED("x"), {"", "Gedit", "/usr/bin/gedit"}},
};

static void t_standard(void **state)
{
    struct policy *p = policy_builtin();
    int n = sizeof standard / sizeof *standard;
    for (int i = 0; i < n; i++) {
        const char *rule;
        enum policy_verdict v = judge(p, standard[i].action, standard[i].where, &rule);
        if (v != standard[i].verdict)
            fail_msg("%s: %s by '%s' instead of %s", standard[i].action, policy_verdict_name(v), rule,
                     policy_verdict_name(standard[i].verdict));
    }
    policy_free(p);
    check_note("%d of %d hostile cases ended as documented", n, n);
}

/* A button that Enter or space presses counts as clicked. */
static void t_pressed(void **state)
{
    static const struct {
        enum policy_verdict verdict;
        const char *action, *presses; /* presses: name of that button; NULL: not reported */
        const char *title, *thought;  /* title: of a dialog */
    } cases[] = {
        {C, PRESSED("\"Return\""), "Pay now", "Shop", NULL},
        {C, PRESSED("\"KP_Enter\""), "Jetzt kaufen", "Shop", NULL},
        {C, PRESSED("\"space\""), "Delete all", "Shop", NULL},
        {C, PRESSED("\"Shift_L\", \"Return\""), "Delete all", "Shop", NULL},
        {C, "{\"kind\": \"key_down\", \"keys\": [\"Return\"]}", "Pay now", "Shop", NULL},
        {C, "{\"kind\": \"hold_and_tap\", \"keys\": [\"Shift_L\", \"space\"], \"nhold\": 1}", "Pay now", "",
         NULL},
        {C, TYPED("\\n"), "Pay now", "Shop", NULL},
        {C, TYPED(" "), "Pay now", "Shop", NULL},
        {C, "{\"kind\": \"type\", \"text\": \"x\", \"press_enter\": true}", "Send", "Shop", NULL},
        {A, TYPED("x"), "Pay now", "Shop", NULL}, /* no button takes an x */
        {A, PRESSED("\"Return\""), "Next page", "Delete files", NULL},
        {A, PRESSED("\"Return\""), "", "Delete files", "Pay with the button"}, /* nothing */
        {C, PRESSED("\"Return\""), NULL, "Delete files", NULL},
        {C, PRESSED("\"Return\""), NULL, "", "I press Enter for the button Pay now."},
        {A, PRESSED("\"Return\""), NULL, "", "I press Enter to submit the search."},
        {A, PRESSED("\"Down\""), "Pay now", "Delete files", NULL},
        {A, TYPED("two words"), NULL, "Share", NULL},
        {A, TYPED("two words"), "", "Share", NULL},
    };
    struct policy *p = policy_builtin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct subject *s = calloc(1, sizeof *s);
        struct action a;
        struct err e = ERR_INIT;
        if (action_from_json(cases[i].action, strlen(cases[i].action), &a, &e))
            fail_msg("%s", e.text);
        subject_build(s, &a, &same, &root);
        struct policy_target *t = &s->s.targets[0];
        t->window.dialog = *cases[i].title != 0;
        snprintf(t->window.title, sizeof t->window.title, "%s", cases[i].title);
        t->presses_known = cases[i].presses != NULL;
        snprintf(t->presses, sizeof t->presses, "%s", cases[i].presses ? cases[i].presses : "");
        s->s.thought = cases[i].thought;
        s->s.press = writing_press(&s->s);
        struct policy_ruling r = policy_judge(p, &s->s);
        if (r.verdict != cases[i].verdict)
            fail_msg("case %zu, %s on '%s': %s by '%s'", i, cases[i].action,
                     cases[i].presses ? cases[i].presses : "?", policy_verdict_name(r.verdict), r.rule);
        action_free(&a);
        free(s);
    }
    policy_free(p);
}

/* A program may report late that its menu is open; then the element that Enter would press is unknown. */
static void t_menus(void **state)
{
    static const char *const presses[] = {NULL, "", "Reload", "Delete"};
    static const enum policy_verdict verdicts[] = {C, C, A, C};
    static const char enter[] = PRESSED("\"Return\"");
    struct policy *p = policy_builtin();
    for (size_t i = 0; i < sizeof presses / sizeof *presses; i++) {
        struct subject *s = calloc(1, sizeof *s);
        struct action a;
        struct err e = ERR_INIT;
        assert_int_equal(action_from_json(enter, strlen(enter), &a, &e), 0);
        subject_build(s, &a, &same, &root);
        struct policy_target *t = &s->s.targets[0];
        t->presses_known = presses[i] != NULL;
        snprintf(t->presses, sizeof t->presses, "%s", presses[i] ? presses[i] : "");
        s->s.in_menu = true;
        s->s.press = writing_press(&s->s);
        assert_int_equal(policy_judge(p, &s->s).verdict, verdicts[i]);
        action_free(&a);
        free(s);
    }
    policy_free(p);
}

/* Where the list of elements and the program's hit test disagree, each name can lead to a question. */
static void t_two_names(void **state)
{
    (void)state;
    static const struct {
        enum policy_verdict verdict;
        const char *name, *other;
    } cases[] = {
        {A, "Bold", ""}, {A, "Bold", "Italic"}, {C, "Delete all", "Bold"}, {C, "Bold", "Delete all"}};
    struct policy *p = policy_builtin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct subject *s = calloc(1, sizeof *s);
        struct action a = {.kind = ACT_CLICK, .x = 1, .y = 2, .button = 1, .count = 1};
        subject_build(s, &a, &same, &root);
        struct policy_target *t = &s->s.targets[0];
        snprintf(t->name, sizeof t->name, "%s", cases[i].name);
        snprintf(t->other, sizeof t->other, "%s", cases[i].other);
        assert_int_equal(policy_judge(p, &s->s).verdict, cases[i].verdict);
        free(s);
    }
    policy_free(p);
}

/* A button that confirms is judged by the title and text of its dialog; labels are GTK's translations. */
static void t_dialogs(void **state)
{
    static const struct {
        enum policy_verdict verdict;
        const char *element, *name; /* as named by the model and by the program */
        const char *title, *text;   /* of the dialog */
    } cases[] = {
        {C, "Yes", "", "Delete 3 files?", ""},
        {C, "the Yes button", "Yes", "Question", "This will permanently delete the folder."},
        {C, "OK", "OK", "Warning", "A file with this name already exists."},
        {C, "the blue button", "", "Delete 3 files?", ""},
        {C, "the blue button", "Yes", "Question", "All data will be erased."},
        {C, "Ja", "Ja", "Frage", "Der Ordner wird endgültig gelöscht."},
        {C, "Valider", "Valider", "Attention", "Voulez-vous le remplacer ?"},
        {C, "Oui", "Oui", "Question", "Les modifications seront perdues."},
        {C, "Sí", "Sí", "Aviso", "¿Desea borrar la carpeta?"},
        {C, "はい", "はい", "質問", "完全に削除しますか"},
        {C, "是", "是", "警告", "文件已存在。要覆盖吗?"},
        {C, "确定", "确定", "提示", "所有数据将丢失。"},
        {A, "No", "No", "Delete 3 files?", "They will be deleted."},
        {A, "Cancel", "Cancel", "Delete 3 files?", "They will be deleted."},
        {A, "Abbrechen", "Abbrechen", "3 Dateien löschen?", ""},
        {A, "キャンセル", "キャンセル", "削除しますか", ""},
        {A, "OK", "OK", "Print", "The job has 3 pages."},
        {A, "Yes", "Yes", "Question", "Open the last document again?"},
        {A, "Weiter", "Weiter", "Hinweis", "Der Druckauftrag ist fertig."},
    };
    struct policy *p = policy_builtin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct subject *s = calloc(1, sizeof *s);
        struct action a = {.kind = ACT_CLICK, .x = 1, .y = 2, .button = 1, .count = 1};
        snprintf(a.element, sizeof a.element, "%s", cases[i].element);
        subject_build(s, &a, &same, &root);
        struct policy_target *t = &s->s.targets[0];
        t->window.dialog = true;
        snprintf(t->window.title, sizeof t->window.title, "%s", cases[i].title);
        snprintf(t->name, sizeof t->name, "%s", cases[i].name);
        snprintf(t->dialog, sizeof t->dialog, "%s", cases[i].text);
        struct policy_ruling r = policy_judge(p, &s->s);
        if (r.verdict != cases[i].verdict)
            fail_msg("'%s' in '%s', '%s': %s by '%s'", cases[i].element, cases[i].title, cases[i].text,
                     policy_verdict_name(r.verdict), r.rule);
        free(s);
    }
    policy_free(p);
}

/* Enter in an address bar opens its URL, which the program may report or not. */
static void t_addresses(void **state)
{
    static const struct {
        enum policy_verdict verdict;
        const char *class, *bar; /* NULL: unknown */
        const char *rule;
    } cases[] = {
        {D, "firefox", "javascript:alert(1)", "addresses that run code"},
        {D, "Chromium", "java script:alert(1)", "addresses that run code"},
        {C, "Chromium", "chrome://settings", "pages of the browser itself, and files in it"},
        {C, "firefox", "ABOUT:config", "pages of the browser itself, and files in it"},
        {C, "firefox", "file:///etc/passwd", "pages of the browser itself, and files in it"},
        {C, "firefox", "view-source: https://example.org", "pages of the browser itself, and files in it"},
        {C, "firefox", NULL, "an address that cannot be read"},
        {A, "firefox", "about:blank", "otherwise"},
        {A, "firefox", "https://example.org/a?b=c", "otherwise"},
        {A, "firefox", "about cats: a book", "otherwise"},
        {A, "firefox", "café.example", "otherwise"},
        {A, "Gedit", "javascript:alert(1)", "otherwise"},
    };
    struct policy *p = policy_builtin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct subject *s = calloc(1, sizeof *s);
        struct action a = {.kind = ACT_KEY, .keys = {0xff0d}, .nkeys = 1, .count = 1};
        subject_build(s, &a, &same, &root);
        struct policy_target *t = &s->s.targets[0];
        t->writes = true;
        snprintf(t->window.class, sizeof t->window.class, "%s", cases[i].class);
        s->s.address = (struct policy_address){true, cases[i].bar != NULL, cases[i].bar ? cases[i].bar : ""};
        struct policy_ruling r = policy_judge(p, &s->s);
        if (r.verdict != cases[i].verdict || strcmp(r.rule, cases[i].rule) != 0)
            fail_msg("'%s' in %s: %s by '%s'", cases[i].bar ? cases[i].bar : "?", cases[i].class,
                     policy_verdict_name(r.verdict), r.rule);
        free(s);
    }
    policy_free(p);
}

/* A shortcut may be pressed in several actions: held keys count for every later key. */
static void t_held(void **state)
{
    static const char *const down[] = {"{\"kind\": \"key_down\", \"keys\": [\"Alt_L\"]}",
                                       "{\"kind\": \"key_down\", \"keys\": [\"Control_L\"]}"};
    static const struct {
        enum policy_verdict verdict;
        const char *last;
    } cases[] = {
        {D, PRESSED("\"Delete\"")},
        {D, "{\"kind\": \"key_down\", \"keys\": [\"F12\"]}"},
        {D, "{\"kind\": \"type\", \"text\": \"x\", \"overwrite\": true}"}, /* sends BackSpace */
        {A, TYPED("x")},
        {A, "{\"kind\": \"click\", \"x\": 1, \"y\": 1}"},
    };
    struct policy *p = policy_builtin();
    uint32_t held[POLICY_MAX_KEYS];
    int n_held = 0;
    for (int i = 0; i < 2; i++) {
        struct action a;
        assert_int_equal(action_from_json(down[i], strlen(down[i]), &a, NULL), 0);
        subject_update_held(&a, held, &n_held);
        action_free(&a);
    }
    assert_int_equal(n_held, 2);
    struct subject *s = calloc(1, sizeof *s);
    for (int i = 0; i < 5; i++) {
        struct action a;
        assert_int_equal(action_from_json(cases[i].last, strlen(cases[i].last), &a, NULL), 0);
        subject_build(s, &a, &same, &root);
        assert_int_equal(policy_judge(p, &s->s).verdict == D, false);
        memcpy(s->s.held, held, sizeof held);
        s->s.n_held = n_held;
        assert_int_equal(policy_judge(p, &s->s).verdict, cases[i].verdict);
        action_free(&a);
    }
    struct action up = {.kind = ACT_KEYUP, .keys = {0xffea}, .nkeys = 1}; /* Alt_R counts as Alt */
    subject_update_held(&up, held, &n_held);
    assert_int_equal(n_held, 1);
    free(s);
    policy_free(p);
    check_note("5 of 5 hostile cases ended as documented");
}

/* Tests positions at the borders of zones, off the screen, and in drags. */
static void t_zones(void **state)
{
    struct policy *p = policy_of("builtin: no\nrules:\n  - deny: panel\n    zone: [0, 0, 100%, 32]\n"
                                 "  - deny: dot\n    zone: [500, 400, 1, 1]\n"
                                 "  - deny: corner\n    zone: [99.95%, 99.95%, 0.05%, 0.05%]\n"
                                 "  - allow: page\n    zone: [100, 100, 200, 200]\n"
                                 "otherwise: confirm\n");
    static const struct {
        enum policy_verdict verdict;
        const char *action;
    } cases[] = {
        {D, "{\"kind\": \"click\", \"x\": 0, \"y\": 0}"},
        {D, "{\"kind\": \"click\", \"x\": 999, \"y\": 31}"},
        {C, "{\"kind\": \"click\", \"x\": 999, \"y\": 32}"},
        {D, "{\"kind\": \"click\", \"x\": -40, \"y\": -7}"},   /* clamped to 0, 0 */
        {D, "{\"kind\": \"click\", \"x\": 100000, \"y\": 5}"}, /* clamped to 999, 5 */
        {D, "{\"kind\": \"click\", \"x\": 500, \"y\": 400}"},
        {C, "{\"kind\": \"click\", \"x\": 501, \"y\": 400}"},
        {C, "{\"kind\": \"click\", \"x\": 500, \"y\": 399}"},
        {D, "{\"kind\": \"click\", \"x\": 999, \"y\": 799}"},
        {A, "{\"kind\": \"click\", \"x\": 100, \"y\": 100}"},
        {A, "{\"kind\": \"click\", \"x\": 299, \"y\": 299}"},
        {C, "{\"kind\": \"click\", \"x\": 300, \"y\": 299}"},
        {A, "{\"kind\": \"drag\", \"x\": 100, \"y\": 100, \"x2\": 200, \"y2\": 200}"},
        {C,
         /* ends outside the allowed zone */
         "{\"kind\": \"drag\", \"x\": 100, \"y\": 100, \"x2\": 400, \"y2\": 200}"},
        {D, "{\"kind\": \"drag\", \"x\": 100, \"y\": 100, \"x2\": 200, \"y2\": 3}"},
        {D, "{\"kind\": \"drag\", \"path\": [[100, 100], [500, 400], [200, 200]]}"}, /* crosses a corner */
        {C, "{\"kind\": \"click\"}"},                                                /* unknown position */
        {C, TYPED("x")},
    };
    int n = sizeof cases / sizeof *cases;
    for (int i = 0; i < n; i++) {
        const char *rule;
        enum policy_verdict v = judge(p, cases[i].action, (struct scene){0}, &rule);
        if (v != cases[i].verdict)
            fail_msg("%s: %s by '%s'", cases[i].action, policy_verdict_name(v), rule);
    }
    policy_free(p);
    check_note("%d of %d hostile cases ended as documented", n, n);
}

/* If it is unclear whether a rule applies, a deny rule does and an allow rule does not. */
static void t_doubt(void **state)
{
    static const char bomb[] = "(a+)+$";
    char *as = repeat("{\"kind\": \"type\", \"text\": \"", "a", 3000, "b\"}");
    char *deny = NULL, *allow = NULL;
    assert_true(asprintf(&deny, "builtin: no\nrules:\n  - deny: bomb\n    text: %s\n", bomb) > 0);
    assert_true(asprintf(&allow, "builtin: no\notherwise: confirm\nrules:\n  - allow: bomb\n    text: %s\n",
                         bomb) > 0);
    struct policy *p = policy_of(deny), *q = policy_of(allow);
    assert_int_equal(judge(p, as, (struct scene){0}, NULL), D);
    assert_int_equal(judge(q, as, (struct scene){0}, NULL), C);
    policy_free(p);
    policy_free(q);
    p = policy_of("builtin: no\notherwise: confirm\nrules:\n  - deny: that\n    host: evil.org\n"
                  "  - allow: these\n    host: [example.org, \"*.example.org\"]\n"
                  "  - allow: save\n    keys: ctrl+s\n"
                  "  - allow: form\n    actions: type\n    title: ^Form$\n    longer: 3\n");
    static const struct {
        enum policy_verdict verdict;
        const char *action;
    } cases[] = {
        {A, "{\"kind\": \"goto\", \"text\": \"https://example.org/a?b#c\"}"},
        {A, "{\"kind\": \"goto\", \"text\": \"HTTP:\\\\\\\\www.EXAMPLE.org.\"}"},
        {A, "{\"kind\": \"goto\", \"text\": \"a.b.example.org:8080\"}"},
        {C, "{\"kind\": \"goto\", \"text\": \"notexample.org\"}"},
        {C, "{\"kind\": \"goto\", \"text\": \"example.org.evil.com\"}"},
        {C, "{\"kind\": \"goto\", \"text\": \"http://example.org@evil.com/\"}"},
        {C, "{\"kind\": \"goto\", \"text\": \"example.org:80@evil.com\"}"},
        {D, "{\"kind\": \"goto\", \"text\": \"http://example.org@evil.org/\"}"},
        {D, "{\"kind\": \"goto\", \"text\": \"http://ev%69l.org\"}"}, /* ambiguous */
        {D, "{\"kind\": \"goto\", \"text\": \"http://ex\xd0\xb0mple.org\"}"},
        {D, "{\"kind\": \"goto\", \"text\": \"\"}"},
        {A, "{\"kind\": \"goto\", \"text\": \"http://example.org\\\\@evil.org\"}"}, /* a path in browsers */
        {C, "{\"kind\": \"goto\", \"text\": \"file:///etc/passwd\"}"},
        {A, PRESSED("\"Control_L\", \"S\"")},
        {C, PRESSED("\"Control_L\", \"s\", \"Delete\"")}, /* more than was allowed */
        {C, TYPED("abc")},
    };
    int n = sizeof cases / sizeof *cases;
    for (int i = 0; i < n; i++) {
        const char *rule;
        enum policy_verdict v = judge(p, cases[i].action, (struct scene){0}, &rule);
        if (v != cases[i].verdict)
            fail_msg("%s: %s by '%s'", cases[i].action, policy_verdict_name(v), rule);
    }
    assert_int_equal(judge(p, TYPED("abcd"), (struct scene){.title = "Form"}, NULL), A);
    assert_int_equal(judge(p, TYPED("abcd"), (struct scene){.title = "Former"}, NULL), C);
    policy_free(p);
    free(as);
    free(deny);
    free(allow);
    check_note("%d of %d hostile cases ended as documented", n + 4, n + 4);
}

/* Tests rules with conditions on the totals used by a run. */
static void t_after(void **state)
{
    struct policy *p =
        policy_of("builtin: no\nrules:\n  - deny: that is enough\n    after: [50 steps, 1000 characters]\n"
                  "  - confirm: late\n    actions: click\n    after: 2.5 seconds\n");
    static const struct {
        enum policy_verdict verdict;
        struct policy_spent spent;
    } cases[] = {
        {A, {{0}}},
        {A,
         {.of =
              {[SPENT_STEPS] = 49, [SPENT_CHARACTERS] = 999, [SPENT_SECONDS] = 2.4, [SPENT_ERRORS] = 2000}}},
        {D, {.of = {[SPENT_STEPS] = 50}}},
        {D, {.of = {[SPENT_CHARACTERS] = 1001, [SPENT_SECONDS] = 9}}},
        {C, {.of = {[SPENT_SECONDS] = 2.5}}},
    };
    struct action a = {.kind = ACT_CLICK, .x = 1, .y = 1};
    struct subject *s = calloc(1, sizeof *s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        subject_build(s, &a, &same, &root);
        s->s.spent = cases[i].spent;
        assert_int_equal(policy_judge(p, &s->s).verdict, cases[i].verdict);
    }
    struct buf b;
    buf_init(&b, 1 << 16);
    policy_print(p, &b);
    assert_non_null(strstr(b.data, "after: 50 steps, 1000 characters\n"));
    buf_free(&b);
    free(s);
    policy_free(p);
}

/* ---- order of rules -------------------------------------------------------------------------- */

static void t_order(void **state)
{
    static const char key[] = PRESSED("\"Control_L\", \"Alt_L\", \"Delete\"");
    static const char click[] = "{\"kind\": \"click\", \"x\": 1, \"y\": 1, \"element\": \"Send\"}";
    struct scene none = {0};
    const char *rule;
    struct policy *p =
        policy_of("rules:\n  - allow: mine\n    element: send\n  - deny: later\n    element: send\n");
    assert_int_equal(judge(p, click, none, &rule), A);
    assert_string_equal(rule, "mine");
    assert_int_equal(judge(p, key, none, NULL), D); /* a built-in rule */
    struct policy *bare = policy_of("builtin: no\n"), *empty = policy_of("");
    assert_int_equal(judge(bare, key, none, NULL), A);
    assert_int_equal(judge(empty, key, none, NULL), D);
    assert_string_not_equal(policy_sha256(p), policy_sha256(empty));
    policy_free(p);
    policy_free(bare);
    policy_free(empty);
}

/* Without an explicit file, the user's own file is used if it exists. */
static void t_config(void **state)
{
    struct err e = ERR_INIT;
    char dir[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(dir)));
    setenv("XDG_CONFIG_HOME", dir, 1);
    struct policy *p = policy_open(NULL, &e);
    assert_non_null(p);
    assert_string_equal(policy_name(p), "built in");
    policy_free(p);
    char *path = NULL;
    assert_true(asprintf(&path, "%s/holorun/policy.yaml", dir) > 0);
    assert_int_equal(file_write(path, "otherwise: deny\n", 16, NULL), 0);
    p = policy_open(NULL, &e);
    assert_string_equal(policy_name(p), path);
    assert_int_equal(judge(p, "{\"kind\": \"wait\"}", (struct scene){0}, NULL), D);
    policy_free(p);
    assert_int_equal(chmod(path, 0666), 0); /* writable by everyone */
    assert_null(policy_open(NULL, &e));
    assert_non_null(strstr(e.text, "is writable by every user"));
    assert_null(policy_open(path, &e));
    assert_int_equal(file_write(path, "otherwise: x\n", 13, NULL), 0);
    assert_null(policy_open(NULL, &e));
    assert_non_null(strstr(e.text, path));
    assert_null(policy_open("/nowhere/policy.yaml", &e));
    assert_int_equal(e.kind, ERR_USAGE);
    unlink(path);
    free(path);
    assert_true(asprintf(&path, "rm -r %s", dir) > 0);
    assert_int_equal(system(path), 0);
    free(path);
    unsetenv("XDG_CONFIG_HOME");
}

static const struct CMUnitTest tests[] = {
    CLAIM("a button that confirms is judged by the title and text of its dialog, in six languages",
          t_dialogs),
    CLAIM("Enter in a context menu without a known entry needs confirmation", t_menus),
    CLAIM("Enter in a browser is judged by the URL that it would open", t_addresses),
    CLAIM("an invalid policy file is refused with its line, the key and the expected value", t_wrong),
    CLAIM("the built-in rules deny and ask as documented, in any spelling", t_standard),
    CLAIM("a button that Enter or space presses counts as clicked, if the program reports it", t_pressed),
    CLAIM("a shortcut cannot be composed of several actions", t_held),
    CLAIM("zones apply at their borders, to clamped positions, and to both ends of a drag", t_zones),
    CLAIM("in doubt a rule denies rather than allows", t_doubt),
    CLAIM("rules apply to the name by places and to that of the program's hit test", t_two_names),
    CLAIM("a rule can apply from a total on", t_after),
    CLAIM("the first matching rule decides, the built-in ones come last", t_order),
    CLAIM("the user's own file is used if it exists", t_config),
};

CHECK_MAIN()
