/* t_step_rules.c - tests that each front end shows the policy rule that asks about a step or denies it, and
 * that a breakpoint stops only before steps that the policy asks about.
 *
 * The loop and the gate are the real ones.  There are three replies: one that the built-in rules allow, one
 * that they ask about, one that they deny.
 */
#include "check.h"
#include "program.h"
#include "stepped.h"

#include "gate/gate.h"
#include "step/private.h"
#include "step/scene.h"

#include <pty.h>
#include <unistd.h>

#define SEND CLICK_ON("the Send button", 500, 500)
#define ZAP  STEP("\"hotkey_desktop\", \"keys\": [\"alt\", \"delete\", \"ctrl\"]")

#define THREE_STEPS CLICK(250, 250) SEND ZAP

enum { ALLOWED, ASKED, DENIED, STEPS };
static const char *const labels[STEPS] = {NULL, "confirm: sending, paying, deleting, granting",
                                          "deny: keys of the console and the X server"};

static void open_with_rules(struct play *p)
{
    struct gate_options o = {.policy = policy_builtin(), .task = "Press Save"};
    stepped_open(p);
    p->o.gate = gate_new(&o);
    gate_begin(p->o.gate, p->stage.s, NULL);
}

static void close_with_rules(struct play *p)
{
    gate_free(p->o.gate);
    play_close(p);
}

/* text: a front end's output for three steps, each beginning with "step N of". */
static void check_labels(char *text)
{
    char *step[STEPS + 1];
    for (int i = 0; i < STEPS; i++) {
        char head[16];
        snprintf(head, sizeof head, "step %d of", i + 1);
        step[i] = strstr(text, head);
        assert_non_null(step[i]);
    }
    for (int i = 1; i < STEPS; i++)
        step[i][-1] = 0;
    for (int i = 0; i < STEPS; i++) {
        for (int k = ASKED; k < STEPS; k++)
            if (!!strstr(step[i], labels[k]) != (i == k))
                fail_msg("step %d %s '%s':\n%s", i + 1, i == k ? "does not say" : "says", labels[k], step[i]);
        assert_int_equal(!!strstr(step[i], "rules"), i != ALLOWED);
    }
}

static void t_script(void **state)
{
    struct play p;
    char *text = NULL;
    size_t len;
    open_with_rules(&p);
    char *path = xvfb_put(&p.stage.x, "commands", "veto no\nveto no\nveto no\nstop\n");
    FILE *log = open_memstream(&text, &len);
    struct step_front *f = step_script(path, log, NULL);
    assert_non_null(f);
    stepped_by(&p, f, NULL, THREE_STEPS ANSWER("x"));
    fclose(log);
    check_labels(text);
    free(text);
    free(path);
    close_with_rules(&p);
}

static void t_terminal(void **state)
{
    static const char commands[] = "veto no\nveto no\nveto no\nstop\n";
    struct play p;
    char *text = NULL;
    size_t len;
    int master, slave;
    open_with_rules(&p);
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    assert_int_equal(write(master, commands, sizeof commands - 1), sizeof commands - 1);
    FILE *out = open_memstream(&text, &len);
    struct step_front *f = step_terminal(slave, out, NULL);
    assert_non_null(f);
    stepped_by(&p, f, NULL, THREE_STEPS ANSWER("x"));
    fclose(out);
    check_labels(text);
    free(text);
    close(master);
    close(slave);
    close_with_rules(&p);
}

/* ---- the window ------------------------------------------------------------------------------ */

struct drawn {
    struct step_front base;
    int n;
    bool as_labelled[STEPS], differs[STEPS], irreversible[STEPS];
};

static cairo_surface_t *draw(const struct step_view *v)
{
    cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1200, 800);
    struct scene scene;
    scene_init(&scene, 1200, 800);
    scene_show(&scene, v);
    scene_draw(&scene, v, s);
    scene_free(&scene);
    cairo_surface_flush(s);
    return s;
}

/* Returns whether v is drawn like a view with this label. */
static bool drawn_as(const struct step_view *v, const char *label)
{
    struct proposal p = *v->p;
    struct step_view w = *v;
    p.gate = label;
    p.irreversible = false;
    w.p = &p;
    cairo_surface_t *a = draw(v), *b = draw(&w);
    bool same = !memcmp(cairo_image_surface_get_data(a), cairo_image_surface_get_data(b),
                        (size_t)cairo_image_surface_get_stride(a) * 800);
    cairo_surface_destroy(a);
    cairo_surface_destroy(b);
    return same;
}

static int show_window(struct step_front *f, const struct step_view *v, struct err *e)
{
    struct drawn *d = (struct drawn *)f;
    if (d->n < STEPS) {
        d->as_labelled[d->n] = drawn_as(v, labels[d->n]);
        d->differs[d->n] = !drawn_as(v, NULL);
        d->irreversible[d->n++] = v->p->irreversible;
    }
    return 0;
}

static int ask_window(struct step_front *f, const struct step_view *v, struct step_command *out,
                      struct err *e)
{
    const struct drawn *d = (const struct drawn *)f;
    *out = (struct step_command){.verb = d->n < STEPS ? STEP_VETO : STEP_STOP};
    return 0;
}

static void close_window(struct step_front *f)
{
}

static void t_window(void **state)
{
    struct play p;
    struct drawn d = {
        .base = {
            .name = "window", .person = true, .show = show_window, .ask = ask_window, .close = close_window}};
    open_with_rules(&p);
    stepped_by(&p, &d.base, NULL, THREE_STEPS ANSWER("x"));
    assert_int_equal(d.n, STEPS);
    for (int i = 0; i < STEPS; i++) {
        assert_true(d.as_labelled[i]);
        assert_int_equal(d.differs[i], i != ALLOWED);
        assert_int_equal(d.irreversible[i], i == ASKED);
    }
    close_with_rules(&p);
}

static void t_break_irreversible(void **state)
{
    static const char *const breaks[] = {"irreversible", NULL};
    struct play p;
    open_with_rules(&p);
    stepped(&p, breaks, "stop here\n", THREE_STEPS ANSWER("x"));
    stepped_ended(&p, AGENT_STOPPED);
    assert_string_equal(p.e.text, "stopped before step 2: here");
    stepped(&p, breaks, "stop here\n", ZAP CLICK(250, 250) SEND);
    stepped_ended(&p, AGENT_STOPPED);
    assert_string_equal(p.e.text, "stopped before step 3: here");
    close_with_rules(&p);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct CMUnitTest tests[] = {
    CLAIM("a script's log names the rule that asks about or denies a step, and none if it is allowed",
          t_script),
    CLAIM("the terminal names the rule", t_terminal),
    CLAIM("the window draws the rule; only a step that needs confirmation counts as irreversible", t_window),
    CLAIM("the breakpoint 'irreversible' stops before steps that need confirmation, not before denied ones",
          t_break_irreversible),
};

CHECK_MAIN()
