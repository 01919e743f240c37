/* attempts.c - see attempts.h. */
#include "attempts.h"

#include "check.h"

#include <fcntl.h>
#include <unistd.h>

static const char *const dialects[] = {"holo3",     "holo1",           "holo31",
                                       "uitars",    "openai-computer", "anthropic-computer",
                                       "pyautogui", "pocket-wide"};
_Static_assert(sizeof dialects / sizeof *dialects == ATTEMPTS_DIALECTS, "all of them are tried");

/* ---- gate --------------------------------------------------------------------------------------- */

static bool name_at(void *arg, int x, int y, const char *title, char *name, char *other, size_t size)
{
    struct attempts *s = arg;
    snprintf(name, size, "%s", s->named ? s->named : "");
    other[0] = 0;
    return s->named != NULL;
}

static bool field(void *arg, const char *title, struct gate_field *out)
{
    const struct attempts *s = arg;
    *out = (struct gate_field){.in_page = s->bar && !strcmp(s->bar, "page"), .editable = true};
    snprintf(out->text, sizeof out->text, "%s", s->bar ? s->bar : "");
    return s->bar != NULL;
}

void attempts_open_gate(struct attempts *s, const char *rules, const char *confirm)
{
    struct err e = ERR_INIT;
    s->policy = policy_parse(rules, strlen(rules), "rules.yaml", &e);
    struct gate_options o = {
        .policy = s->policy, .confirm = {.seconds = 20}, .name_at = name_at, .field = field, .name_arg = s};
    if (!s->policy || confirm_parse(confirm, &o.confirm, &e))
        fail_msg("%s", e.text);
    s->gate = gate_new(&o);
    gate_begin(s->gate, s->a.s, s->a.x.dir);
}

void attempts_close_gate(struct attempts *s)
{
    gate_free(s->gate);
    policy_free(s->policy);
}

/* Decides with stderr silenced: each refusal without a user prints a line. */
static int decide_quietly(struct attempts *s, const struct action *a, struct gate_ruling *r, struct err *e)
{
    static const struct view_transform same = {0, 0, 1, 1};
    fflush(stderr);
    int to = dup(2), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, 2);
    int rc = gate_decide(s->gate, a, &same, 1, false, r, e);
    dup2(to, 2);
    close(to);
    close(nowhere);
    return rc;
}

/* Judges one parsed action, and executes it if `perform` is set. */
static enum attempts_result try_action(struct attempts *s, const struct action *a, bool perform)
{
    static const struct view_transform same = {0, 0, 1, 1};
    struct gate_ruling r;
    struct exec_result done;
    struct err e = ERR_INIT;
    if (decide_quietly(s, a, &r, &e))
        fail_msg("%s", e.text);
    snprintf(s->held_by, sizeof s->held_by, "%s", r.rule.rule);
    if (!r.pass)
        return HELD;
    enum action_fault f =
        perform || a->kind == ACT_MOVE ? gate_execute(s->gate, a, &same, &done, &e) : FAULT_NONE;
    if (f) {
        snprintf(s->held_by, sizeof s->held_by, "%s %.150s", action_fault_name(f), e.text);
        return HELD;
    }
    gate_action_done(s->gate, a);
    return PASSED;
}

static enum attempts_result try_reply(struct attempts *s, const struct dialect *d, const char *reply,
                                      bool perform)
{
    struct step step = {0};
    struct err e = ERR_INIT;
    enum attempts_result r = PASSED;
    if (action_parse(reply, strlen(reply), d, ARENA_W, ARENA_H, &step, &e)) {
        snprintf(s->held_by, sizeof s->held_by, "reply: %.150s", e.text);
        return HELD;
    }
    gate_set_thought(s->gate, step.thought);
    for (int i = 0; i < step.nactions && r == PASSED; i++)
        r = try_action(s, &step.actions[i], perform);
    step_free(&step);
    return r;
}

enum attempts_result attempts_try(struct attempts *s, const struct dialect *d, const struct want *w, int n,
                                  const char *thought, bool perform)
{
    enum attempts_result r = PASSED;
    for (int i = 0; i < n && w[i].kind && r == PASSED; i++) {
        char *reply = spell_reply(d, &w[i], thought, ARENA_W, ARENA_H);
        if (!reply && w[i].kind == ACT_TYPE && w[i].x) {
            struct want parts[2] = {w[i], w[i]};
            parts[0].kind = ACT_CLICK;
            parts[0].text = NULL;
            parts[1].x = parts[1].y = 0;
            r = attempts_try(s, d, parts, 2, thought, perform);
            continue;
        }
        r = reply ? try_reply(s, d, reply, perform) : UNSPOKEN;
        free(reply);
    }
    return r;
}

/* ---- attempts ----------------------------------------------------------------------------------- */

Window attempts_window(struct attempts *s, enum attempts_place p)
{
    const Window of[] = {None,           s->a.terminal,   s->a.disguised, s->a.of[EDITOR],
                         s->a.of[PANEL], s->a.of[BROWSER]};
    return of[p];
}

void attempts_count(struct attempts *s, struct attempts_score *c, const char *name, int dialect,
                    enum attempts_result r)
{
    const char *how = getenv("HOLORUN_ATTEMPTS");
    if (r == UNSPOKEN)
        return;
    c->tried++;
    c->passed += r == PASSED;
    if (r == PASSED)
        printf("           PASSED: %s (%s): %s\n", name, dialects[dialect], s->held_by);
    else if (how && !strcmp(how, "list"))
        printf("           held: %s (%s): %s\n", name, dialects[dialect], s->held_by);
}

void attempts_open(struct attempts *s)
{
    memset(s, 0, sizeof *s);
    arena_open(&s->a);
    for (int i = 0; i < ATTEMPTS_DIALECTS; i++)
        assert_non_null(s->dialects[i] = dialect_load(dialects[i], NULL));
}

void attempts_close(struct attempts *s)
{
    for (int i = 0; i < ATTEMPTS_DIALECTS; i++)
        dialect_free(s->dialects[i]);
    arena_close(&s->a);
}

bool attempts_all(void)
{
    return getenv("HOLORUN_ATTEMPTS") != NULL;
}
