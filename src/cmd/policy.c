/* policy.c - `holorun policy`: prints the rules in force, checks a policy file, and explains which rule
 * applies to an action. */
#include "cmd/commands.h"

#include "actions/dialect.h"
#include "gate/goals.h"
#include "gate/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *explain, *title, *class, *program, *task, *thought, *name, *paste,
        *spent[OPTION_LIST_MAX + 1];
    int width, height;
    bool json, patterns;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_spec options[] = {
    {"explain", 0, OPTION_TEXT, AT(explain), "ACTION", 0, 65536, NULL,
     "print the rule that applies to this action (a JSON object as in the record of a run)", NULL},
    {"title", 0, OPTION_TEXT, AT(title), "TEXT", 0, 500, "",
     "with --explain: title of the window that receives the action", NULL},
    {"class", 0, OPTION_TEXT, AT(class), "TEXT", 0, 120, "", "with --explain: its window class", NULL},
    {"program", 0, OPTION_TEXT, AT(program), "FILE", 0, 250, "",
     "with --explain: the executable of its process", NULL},
    {"task", 0, OPTION_TEXT, AT(task), "TEXT", 0, 65536, "",
     "with --explain: the task to compare a plan with", NULL},
    {"thought", 0, OPTION_TEXT, AT(thought), "TEXT", 0, 65536, "",
     "with --explain: the thought of the model, for actions that do not describe their target", NULL},
    {"name", 0, OPTION_TEXT, AT(name), "TEXT", 0, 250, "",
     "with --explain: the accessible name of the element under the pointer", NULL},
    {"paste", 0, OPTION_TEXT, AT(paste), "TEXT", 0, 65536, "",
     "with --explain: the text that the action pastes", NULL},
    {"spent", 0, OPTION_LIST, AT(spent), "'N COUNTER'", 0, 64, NULL,
     "with --explain: usage of the run so far, such as '50 steps', for rules with after; may be repeated",
     NULL},
    {"width", 0, OPTION_INT, AT(width), "PIXELS", 1, 32767, "1920",
     "with --explain: the width of the root window", NULL},
    {"height", 0, OPTION_INT, AT(height), "PIXELS", 1, 32767, "1080", "with --explain: its height", NULL},
    {"patterns", 'v', OPTION_FLAG, AT(patterns), NULL, 0, 0, NULL,
     "print each rule with its patterns, in order of precedence", NULL},
    JSON_OPTION(struct settings),
    {0},
};

const struct command policy_command = {
    .name = "policy",
    .arguments = "[FILE]",
    .purpose = "show and check the rules for actions of the agent",
    .details =
        "Summarizes the denied, confirmed and allowed actions, first by the rules of the file (default: "
        "policy.yaml in the user's configuration folder, if it exists), then by the built-in rules; "
        "--patterns prints the rules themselves. An error in the file is reported with its line, the key "
        "and the expected value.\n\n"
        "A rule has a verdict (deny, confirm, allow) and conditions; the first rule that matches an action "
        "decides:\n\n"
        "  builtin: yes              # no: ignore the built-in rules\n"
        "  otherwise: allow          # if no rule matches\n"
        "  limits:                   # budgets that end a run; 0: none\n"
        "    typed: 0                # characters typed\n"
        "    rate: 0                 # actions on the screen per minute\n"
        "    errors: 5               # failed or refused steps in a row\n"
        "    repeats: 5              # of the same action without a visible effect\n"
        "    no_effect: 12           # actions in a row without a visible effect\n"
        "    corner_stop: no         # yes: the pointer in the top left corner stops\n"
        "  rules:\n"
        "    - deny: the panel\n"
        "      zone: [0, 0, 100%, 32]\n"
        "    - confirm: orders\n"
        "      actions: [click, type]\n"
        "      element: buy|order\n\n"
        "Keys of a rule: actions, element, text, title, class, program dialog, except (regular expressions, "
        "case-insensitive, applied to the original text and to the text without accents and look-alike "
        "letters), terminal, browser, zone, keys, longer, host, secret, new_goal (a plan with goals that "
        "the task does not mention), after (use so far: 50 steps, 600 seconds, or tokens, actions, "
        "characters, errors). In doubt, rules that deny or confirm match, and rules that allow do not.",
    .examples = "holorun policy\n"
                "holorun policy --patterns\n"
                "holorun policy mine.yaml --explain '{\"kind\": \"click\", \"x\": 3, \"y\": 5, "
                "\"element\": \"Buy\"}'\n",
    .options = options,
    .run = cmd_policy,
};

/* Returns the built-in dialects whose replies describe the elements that they click, or the others. */
static json_t *list_dialects(bool describing)
{
    json_t *list = json_array();
    for (const char *const *name = dialect_names(); *name; name++) {
        struct dialect *d = dialect_load(*name, NULL);
        if (d && dialect_describes(d) == describing)
            json_array_append_new(list, json_string(*name));
        dialect_free(d);
    }
    return list;
}

static void put_dialects(struct buf *b, bool describing)
{
    json_t *list = list_dialects(describing), *name;
    size_t i;
    json_array_foreach(list, i, name) buf_printf(b, "%s%s", i ? ", " : "", json_string_value(name));
    json_decref(list);
}

/* Prints which information rules by element have. */
static void print_sight(struct buf *b)
{
    buf_puts(b, "rules about elements see the model's description of its target in the dialects ");
    put_dialects(b, true);
    buf_puts(b, ";\n  in ");
    put_dialects(b, false);
    buf_puts(
        b,
        ", which describe no target, they see the model's thought, if any, and the titles of dialogs;\n"
        "  in all dialects they also see the accessible names of elements, if the program provides them "
        "(see holorun doctor);\n"
        "Enter and space count as a click on the focused element, Enter in a field as a click on the "
        "default button,\n"
        "  if the program reports it; otherwise the rules see the title of a dialog, and a thought that "
        "mentions a button;\n"
        "  they do not see which button of a web form Enter presses; for a mnemonic like alt+p they see the "
        "text of the dialog\n");
}

static void print_rules(const struct policy *p, bool json, bool patterns)
{
    if (json) {
        json_t *all = json_object();
        json_set_text(all, "sha256", policy_sha256(p));
        json_set_text(all, "policy", policy_name(p));
        json_object_set_new(all, "describe_targets", list_dialects(true));
        json_object_set_new(all, "describe_none", list_dialects(false));
        options_print_json(all, 0);
        return;
    }
    autobuf b = buf_of(4 << 20);
    if (patterns) {
        policy_print(p, &b);
        print_sight(&b);
    } else {
        policy_print_summary(p, &b);
        buf_puts(&b, "'holorun policy --patterns' prints each rule; --explain ACTION prints the one that "
                     "applies.\n");
    }
    fputs(b.data, stdout);
}

static void print_ruling(const struct policy_ruling *r, bool json)
{
    const char *verdict = policy_verdict_name(r->verdict);
    if (json) {
        json_t *all = json_object();
        json_set_text(all, "verdict", verdict);
        json_set_text(all, "rule", r->rule);
        json_set_text(all, "file", r->file);
        json_object_set_new(all, "line", json_integer(r->line));
        options_print_json(all, 0);
    } else if (r->line) {
        printf("%s: %s (%s:%d)\n", verdict, r->rule, r->file, r->line);
    } else {
        printf("%s: no rule matches\n", verdict);
    }
}

static int take_spent(const struct settings *s, struct policy_spent *out, struct err *e)
{
    for (int i = 0; s->spent[i]; i++) {
        enum policy_counter c;
        double n;
        if (!policy_spent_read(s->spent[i], &c, &n))
            return err_set(
                e, ERR_USAGE,
                "--spent must be a number of steps, seconds, tokens, actions, characters or errors, such as "
                "'50 steps'; not '%s'",
                s->spent[i]);
        out->of[c] = n;
    }
    return 0;
}

static bool is_strange(const struct settings *s, const struct action *a)
{
    struct goals *g = goals_new(s->task);
    bool strange = *s->task && a->kind == ACT_PLAN && a->text && goals_has_new(g, a->text);
    goals_free(g);
    return strange;
}

static int explain(const struct policy *p, const struct settings *s, struct err *e)
{
    static const struct view_transform same = {0, 0, 1, 1};
    struct action a;
    if (action_from_json(s->explain, strlen(s->explain), &a, e))
        return err_set(e, ERR_USAGE,
                       "--explain must be an action such as {\"kind\": \"click\", \"x\": 3, \"y\": 5}: %s",
                       e->text);
    struct subject_root root = {s->width, s->height, NULL, false};
    autofree struct subject *subject = xcalloc(1, sizeof *subject);
    subject_build(subject, &a, &same, &root);
    for (int i = 0; i < subject->s.n_targets; i++) {
        struct screen_window *w = &subject->s.targets[i].window;
        snprintf(w->title, sizeof w->title, "%s", s->title);
        snprintf(w->class, sizeof w->class, "%s", s->class);
        snprintf(w->program, sizeof w->program, "%s", s->program);
        snprintf(subject->s.targets[i].name, sizeof subject->s.targets[i].name, "%s", s->name);
    }
    subject->s.thought = *s->thought ? s->thought : NULL;
    if (writing_sources(&subject->s) && *s->paste)
        subject->s.writing.known = true, subject->s.writing.text = s->paste;
    subject->s.new_goal = is_strange(s, &a);
    int rc = take_spent(s, &subject->s.spent, e);
    if (rc == 0) {
        struct policy_ruling r = policy_judge(p, &subject->s);
        print_ruling(&r, s->json);
    }
    action_free(&a);
    return rc;
}

int cmd_policy(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int n = options_parse(&policy_command, &s, argc, argv, &e);
    if (n < 0)
        return options_refuse(&policy_command, &e);
    struct policy *p = policy_open(n ? argv[0] : NULL, &e);
    int rc = p ? 0 : -1;
    if (p && s.explain)
        rc = explain(p, &s, &e);
    else if (p)
        print_rules(p, s.json, s.patterns);
    policy_free(p);
    return rc ? options_failed(&e) : 0;
}
