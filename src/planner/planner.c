/* planner.c - plans the clauses of a task for one window; see planner.h. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"
#include "planner/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct planner *planner_open(const char *task, const struct planner_model *m, struct err *e)
{
    struct planner *p = xcalloc(1, sizeof *p);
    buf_init(&p->done, PLANNER_TEXT);
    p->model = m ? *m : (struct planner_model){0};
    p->task = xstrdup(task);
    int rc = clauses_split(task, p->model.open || p->model.write, &p->clauses, e);
    if (!sum_read((struct span){p->clauses.words.w, p->clauses.words.n}, p->sum) && rc) {
        planner_free(p);
        return NULL;
    }
    return p;
}

void planner_free(struct planner *p)
{
    if (p) {
        clauses_free(&p->clauses);
        writer_free(p->writer);
        free(p->task);
        buf_free(&p->done);
    }
    free(p);
}

void planner_accept(struct planner *p, const struct plan *plan)
{
    p->at = plan->at;
    for (int i = 0; i < plan->steps.n; i++) {
        plain_print(&plan->steps.s[i], &p->done);
        buf_putc(&p->done, '\n');
    }
}

void plan_free(struct plan *plan)
{
    if (plan->steps.s)
        plain_free(&plan->steps);
    *plan = (struct plan){0};
}

/* ---- effects ------------------------------------------------------------------------------------------- */

/* Returns whether a text that was typed into the focused element is in some field. */
static bool is_typed(const struct snapshot *s, const char *typed)
{
    for (int i = 0; i < s->n; i++)
        if (resolve_is_field(&s->e[i]) && (strstr(s->e[i].value, typed) || element_is_password(&s->e[i])))
            return true;
    return false;
}

/* Returns whether the program asks a question that the task does not answer: overwrite, save changes. */
static bool asks_back(const struct planner *p, const struct snapshot *s)
{
    static const char *const asking[] = {"alert", "dialog", "file chooser", NULL};
    enum deed last = p->clauses.n ? p->clauses.c[p->clauses.n - 1].deed : DEED_OTHER;
    bool values = p->at.form || last == DEED_SAVE || last == DEED_CLOSE || last == DEED_WRITE;
    int w = 0;
    while (w < s->n && (s->e[w].parent >= 0 || !state_in(s->e[w].states, STATE_ACTIVE)))
        w++;
    return w < s->n && values && p->at.pressed && !p->at.filled && text_listed(asking, s->e[w].role);
}

/* ---- planning ------------------------------------------------------------------------------------------ */

static void unsure(struct plan *out, const char *why)
{
    if (why != out->why)
        snprintf(out->why, sizeof out->why, "%s", why);
    out->end = PLAN_UNSURE;
    out->sure = false;
}

/* Returns whether the last step may open a window: a menu item with "...", or a button that does not end a
 * dialog. */
static bool may_open(const struct plan *out)
{
    const struct plain_step *s = out->steps.n ? &out->steps.s[out->steps.n - 1] : NULL;
    const char *name = s && s->verb == PLAIN_MENU ? s->path[s->levels - 1] : s ? s->what : "";
    char plain[RESOLVE_NAME];
    if (s && s->verb == PLAIN_KEYS) /* Enter */
        return true;
    if (!s || (s->verb != PLAIN_PRESS && s->verb != PLAIN_MENU))
        return false;
    resolve_normalize(name, plain);
    return s->verb == PLAIN_MENU ? strstr(name, "...") || strstr(name, "\xe2\x80\xa6")
                                 : text_choice("ok|cancel|apply|close|yes|no|quit|done", plain) < 0;
}

/* Lists the clauses that are left for the window that opens. */
static void list_later(const struct planner *p, struct plan *out)
{
    autobuf b = buf_of(sizeof out->later - 1);
    for (int i = out->at.clause; i < p->clauses.n; i++)
        buf_printf(&b, "%s%.100s", b.len ? "; " : "", p->clauses.c[i].text);
    snprintf(out->later, sizeof out->later, "%s", b.data ? b.data : "");
}

static void plan_cut(struct plan *out, int n)
{
    while (out->steps.n > n) {
        plain_step_free(&out->steps.s[--out->steps.n]);
        out->steps.s[out->steps.n] = (struct plain_step){0};
    }
}

/* Appends the steps of one clause that names no element, or names it plainly. */
static enum framed plan_clause(struct frame *f, const struct clause *k)
{
    enum framed done = frame_close(f, k);
    done = done == FRAME_NONE ? frame_plain(f, k) : done;
    return done == FRAME_NONE ? frame_edit(f, k) : done;
}

/* Checks the clauses after a step that may change the window: they are planned when that has happened, but a
 * task that cannot be understood must not begin.  Returns false with the reason in out->why. */
static bool check_rest(struct frame *f)
{
    struct plan *out = f->out;
    struct planner_at at = out->at;
    int n = out->steps.n;
    bool opens = at.later || may_open(out), sure = out->sure, understood = true;
    for (int i = at.clause + at.later; i < f->p->clauses.n && understood; i++) {
        const struct clause *k = &f->p->clauses.c[i];
        if (opens && k->known)
            continue; /* its elements may be in the window that opens */
        enum framed done = plan_clause(f, k);
        done = done == FRAME_NONE ? frame_ask(f, i, 1, true) : done;
        understood = done != FRAME_UNSURE;
        opens = opens || may_open(out);
        plan_cut(out, n);
    }
    out->at = at;
    out->sure = sure;
    return understood;
}

/* Returns whether a window is a form: buttons without menus. */
static bool has_buttons(const struct candidates *all)
{
    bool buttons = false;
    for (int i = 0; i < all->n; i++) {
        if (all->c[i].kind == CANDIDATE_MENU)
            return false;
        buttons = buttons || (all->c[i].kind == CANDIDATE_PRESS && all->c[i].words.n);
    }
    return buttons;
}

/* Returns the number of clauses from `from` up to that with the name of a file, n if there is none. */
static int until_file(const struct planner *p, int from, int n)
{
    int file = file_word(p);
    for (int c = from; c < p->clauses.n && file >= 0; c++)
        if (&p->clauses.words.w[file] < p->clauses.c[c].all.w + p->clauses.c[c].all.n)
            return c + 1 - from;
    return n;
}

/* Plans clauses until a step may change the window: each by itself, then the others as a state of a form. */
static enum framed plan_clauses(struct frame *f)
{
    struct planner *p = f->p;
    struct plan *out = f->out;
    enum framed done = FRAME_DONE;
    if (out->at.later) {
        int made = 0;
        done = frame_save(f);
        out->at.clause +=
            folder_name(p, &made).n ? made : until_file(p, out->at.clause, p->clauses.n - out->at.clause);
        out->at.later = false;
    } else if (frame_folder(f) == FRAME_OPENS)
        return FRAME_OPENS;
    while (done == FRAME_DONE && out->at.clause < p->clauses.n && !out->at.pressed) {
        bool saves = until_file(p, out->at.clause, 0) == 1;
        const struct clause *k = &p->clauses.c[out->at.clause];
        bool aside = asked_is_empty(k->all) && out->at.clause + 1 < p->clauses.n;
        done = aside ? FRAME_DONE : plan_clause(f, k);
        out->at.any = out->at.any || out->steps.n;
        if (done == FRAME_DONE && saves) { /* "put X into a file x.txt" */
            const struct candidate *item = find_save_as(f);
            return item && frame_use(f, item, USE_PRESS, 1) == FRAME_DONE ? FRAME_OPENS : FRAME_UNSURE;
        }
        out->at.clause += done == FRAME_DONE;
    }
    if (done != FRAME_NONE)
        return done;
    int rest = p->clauses.n - out->at.clause, n = until_file(p, out->at.clause, rest), steps = out->steps.n;
    struct planner_at at = out->at;
    out->at.form = true;
    done = frame_ask(f, at.clause, n, true);
    if (done == FRAME_UNSURE && rest > 1 && !has_buttons(f->all)) { /* one menu after the other */
        plan_cut(out, steps);
        out->at = at;
        out->at.form = out->sure = true;
        done = frame_ask(f, at.clause, n = 1, true);
    }
    out->at.clause += done == FRAME_DONE ? n : 0;
    return done;
}

/* Returns whether the model is there; it is opened at its first use. */
static bool has_writer(struct planner *p)
{
    struct err e = ERR_INIT;
    if (p->model.open) {
        struct engine *g = p->model.open(p->model.arg, &e);
        p->writer = g ? writer_open(g, p->model.cancel, &e) : NULL;
        if (!p->writer)
            warn("the planner does without the model: %s", e.text);
        p->model.open = NULL;
    }
    return p->writer || p->model.write;
}

enum way { BY_SUM, BY_CLAUSES, BY_FORM, BY_MODEL, BY_FORM_LOOSELY, WAYS };

/* Plans in one way.  Returns false if it does not apply. */
static bool plan_by(struct planner *p, enum way way, const struct candidates *all, enum plan_effort effort,
                    struct plan *out)
{
    bool first = !p->at.clause && !p->at.later && !p->at.any && !p->at.asked, model = way == BY_MODEL;
    bool proposal = effort == PLAN_PROPOSAL, loosely = way == BY_FORM_LOOSELY;
    struct frame f = {.p = p, .all = all, .out = out, .proposal = (loosely || model) && proposal};
    if (way == BY_SUM                   ? !*p->sum
        : !p->clauses.n                 ? true
        : p->clauses.by_model && !model ? true
        : way == BY_CLAUSES             ? p->at.asked || p->clauses.nots
        : model                         ? effort == PLAN_RULES || !has_writer(p)
                                        : !first || (loosely && !proposal))
        return false;
    out->end = PLAN_MORE;
    out->at.asked = model;
    out->at.form = way >= BY_FORM;
    enum framed done = way == BY_SUM       ? frame_sum(&f)
                       : way == BY_CLAUSES ? plan_clauses(&f)
                                           : frame_ask(&f, 0, p->clauses.n, !model);
    if (done == FRAME_DONE && way != BY_CLAUSES)
        out->at.clause = p->clauses.n;
    out->at.any = out->at.any || out->steps.n;
    out->at.later = done == FRAME_OPENS && !model;
    if (done == FRAME_UNSURE || done == FRAME_NONE || (way == BY_CLAUSES && !check_rest(&f)))
        unsure(out, out->why);
    else if (out->at.clause == p->clauses.n && out->at.filled && !out->at.pressed && has_buttons(all))
        out->sure = false; /* a dialog that stays open */
    out->at.filled = out->at.filled && (!out->at.pressed || way != BY_CLAUSES);
    return true;
}

static void start_again(const struct planner *p, struct plan *out)
{
    plan_cut(out, 0);
    out->at = p->at;
    out->at.pressed = out->at.form = false;
    out->at.typed[0] = 0;
    out->sure = true;
}

/* Plans in the first way that is sure, else with effort in the first that makes a proposal. */
static void plan_window(struct planner *p, const struct candidates *all, enum plan_effort effort,
                        struct plan *out)
{
    char why[ERR_TEXT] = "";
    for (enum way way = 0; way < WAYS; way++) {
        bool tried = plan_by(p, way, all, effort, out);
        if (tried && out->end != PLAN_UNSURE && (out->sure || way >= BY_MODEL))
            return;
        if (*out->why && (!*why || way == BY_FORM || way == BY_MODEL))
            snprintf(why, sizeof why, "%s", out->why);
        start_again(p, out);
    }
    for (enum way way = 0; way < BY_MODEL && effort == PLAN_RULES; way++) {
        if (plan_by(p, way, all, effort, out) && out->end != PLAN_UNSURE)
            return; /* not sure, but a plan */
        start_again(p, out);
    }
    unsure(out, *why ? why : "the window after these steps is not there yet");
}

void planner_next(struct planner *p, const struct snapshot *now, enum plan_effort effort, struct plan *out)
{
    struct candidates all;
    *out = (struct plan){.sure = true, .at = p->at};
    if (*p->at.typed && !is_typed(now, p->at.typed)) {
        unsure(out, "the typed text is not seen in a field");
        return;
    }
    out->at.typed[0] = 0;
    if (p->at.clause == p->clauses.n && (p->clauses.n || p->at.any)) {
        out->end = PLAN_DONE;
        if (asks_back(p, now))
            unsure(out, "the program asks a question that the task does not answer");
        return;
    }
    out->at.pressed = out->at.form = false;
    candidates_read(now, &all);
    if (!all.n)
        unsure(out, "the window describes no elements");
    else
        plan_window(p, &all, effort, out);
    candidates_free(&all);
    if (out->end == PLAN_UNSURE)
        return;
    out->end = out->at.clause == p->clauses.n ? PLAN_DONE : PLAN_MORE;
    if (out->end == PLAN_MORE)
        list_later(p, out);
}

/* ---- printing ------------------------------------------------------------------------------------------ */

void plan_print(const struct plan *plan, struct buf *out)
{
    for (int i = 0; i < plan->steps.n; i++) {
        buf_printf(out, "%s%d. ", i ? "  " : "", i + 1);
        plain_print(&plan->steps.s[i], out);
    }
    if (*plan->later)
        buf_printf(out, "%sthen, in the window that opens: %s", plan->steps.n ? "  " : "", plan->later);
}

void plan_explain(const struct plan *plan, struct buf *out)
{
    for (int i = 0; i < plan->steps.n; i++) {
        buf_printf(out, "%d. ", i + 1);
        plain_print(&plan->steps.s[i], out);
        buf_printf(out, "   p %.2f\n", (double)plan->p[i]);
    }
}

static void put_step_json(const struct plan *plan, int i, struct buf *out)
{
    struct buf text;
    buf_init(&text, 2 * PLAIN_TEXT_MAX);
    plain_print(&plan->steps.s[i], &text);
    buf_puts(out, i ? ", {\"step\": " : "{\"step\": ");
    buf_put_json(out, text.data, text.len);
    buf_printf(out, ", \"p\": %.3f}", (double)plan->p[i]);
    buf_free(&text);
}

void plan_json(const struct plan *plan, struct buf *out)
{
    static const char *const ends[] = {"more", "done", "unsure"};
    buf_printf(out, "{\"end\": \"%s\", \"sure\": %s, \"by\": \"%s\", \"steps\": [", ends[plan->end],
               plan->sure ? "true" : "false", plan->at.asked ? "model" : "rules");
    for (int i = 0; i < plan->steps.n; i++)
        put_step_json(plan, i, out);
    buf_putc(out, ']');
    buf_put_member(out, "later", *plan->later ? plan->later : NULL);
    buf_put_member(out, "why", *plan->why ? plan->why : NULL);
    buf_putc(out, '}');
}
