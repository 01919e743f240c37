/* print.c - prints a view as text, for terminals and the logs of scripts.
 *
 * Texts of the model and the screen may contain control characters; these are never sent to the terminal. */
#include "step/private.h"

#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 2000, SHOWN_HISTORY = 8, SHOWN_ALTERNATIVES = 6 };

static void print_text(FILE *f, const char *text)
{
    size_t n = strlen(text);
    utf8_print(f, text, n < SHOWN ? n : SHOWN);
    fputs(n > SHOWN ? "..." : "", f);
}

struct page {
    FILE *f;
    bool color;
};

static const char bold[] = "\033[1m", soft[] = "\033[2m", bad[] = "\033[31m", warm[] = "\033[33m";

static void print_ink(const struct page *p, const char *code)
{
    if (p->color)
        fputs(code ? code : "\033[0m", p->f);
}

static void print_label(const struct page *p, const char *what)
{
    print_ink(p, soft);
    fprintf(p->f, "%9s  ", what);
    print_ink(p, NULL);
}

static void print_line(const struct page *p, const char *what, const char *code, const char *text)
{
    if (!text || !*text)
        return;
    print_label(p, what);
    if (code)
        print_ink(p, code);
    print_text(p->f, text);
    print_ink(p, NULL);
    fputc('\n', p->f);
}

static void print_format(const struct page *p, const char *what, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void print_format(const struct page *p, const char *what, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    print_line(p, what, NULL, text);
}

char *describe_reply(const struct step *s, const char *message)
{
    return s->nactions ? actions_describe(s->actions, s->nactions) : xstrdup(message);
}

static void put_action(const struct page *p, const struct step_view *v, int i)
{
    int x, y, x2, y2;
    char *what = actions_describe(&v->step->actions[i], 1);
    print_label(p, v->edited ? "changed" : "does");
    print_ink(p, v->edited ? warm : bold);
    print_text(p->f, what);
    print_ink(p, NULL);
    bool aims = step_target(v, i, false, &x, &y), drags = step_target(v, i, true, &x2, &y2);
    if (aims && drags)
        fprintf(p->f, "  (on the display from %d,%d to %d,%d)", x, y, x2, y2);
    else if (aims)
        fprintf(p->f, "  (on the display at %d,%d)", x, y);
    fputc('\n', p->f);
    free(what);
}

static void put_json(const struct page *p, const struct step_view *v)
{
    for (int i = 0; i < v->step->nactions; i++) {
        char *json = edit_to_json(&v->step->actions[i]);
        print_line(p, "as JSON", NULL, json);
        free(json);
    }
}

static void put_alternatives(const struct page *p, const char *what, const struct alternative *a, int n)
{
    if (!n)
        return;
    print_label(p, what);
    for (int i = 0; i < n && i < SHOWN_ALTERNATIVES; i++) {
        fputs(i ? "   " : "", p->f);
        print_text(p->f, a[i].text);
        fprintf(p->f, " %.3g", a[i].p);
    }
    fputc('\n', p->f);
}

static void put_screen(const struct page *p, const struct step_view *v)
{
    const struct proposal *o = v->p;
    if (o->recorded) {
        print_ink(p, warm);
        fprintf(p->f, "%9s  this is the recorded screen of step %d", "NOTE", o->from);
        if (o->moved_on > 0)
            fprintf(p->f, "; %.0f %% of the screen has changed since, and the step acts on the current one",
                    ceil(100 * o->moved_on));
        fputc('\n', p->f);
        print_ink(p, NULL);
    }
    print_format(p, "window", "%s%s%s%s", o->title, *o->class ? " (" : "", o->class, *o->class ? ")" : "");
    if (o->judged)
        print_format(p, "effect",
                     o->changed ? "the last step changed %.0f %% of the screen"
                                : "the last step did not change the screen",
                     fmax(1, 100 * o->tiles));
}

static void put_costs(const struct page *p, const struct step_view *v)
{
    const struct proposal *o = v->p;
    print_format(p, "tokens", "%lld reused, %lld prefilled, %d sampled, %d forced; %d screenshot%s in view",
                 (long long)o->reused, (long long)o->prefilled, o->sampled, o->forced, o->images,
                 o->images == 1 ? "" : "s");
    print_format(p, "times", "settle %.0f  see %.0f  read %.0f  decide %.0f ms", o->ms[PHASE_SETTLE],
                 o->ms[PHASE_SEE], o->ms[PHASE_READ], o->ms[PHASE_WRITE]);
    if (v->confidence >= 0)
        print_format(p, "sure", "every token of verb and places at least %.3g", v->confidence);
}

static void put_forks(const struct page *p, const struct step_view *v)
{
    for (int i = 0; i < v->p->n_forks; i++) {
        const struct proposed_reply *t = &v->p->forks[i];
        char *what = describe_reply(t->step, t->message);
        print_label(p, i ? "" : "replies");
        fprintf(p->f, "%c%d  ", i == v->p->taken ? '*' : ' ', i);
        print_text(p->f, what);
        if (t->step->thought && *t->step->thought) {
            fputs("  -  ", p->f);
            print_text(p->f, t->step->thought);
        }
        fputc('\n', p->f);
        free(what);
    }
}

static void put_history(const struct page *p, const struct step_view *v, int shown)
{
    int first = v->p->n_history > shown ? v->p->n_history - shown : 0;
    for (int i = first; i < v->p->n_history; i++) {
        const struct history_step *s = &v->p->history[i];
        print_label(p, i == first ? "history" : "");
        fprintf(p->f, "%3d%c ", s->number, s->left ? 'x' : ' ');
        print_text(p->f, s->what);
        fputs(!s->ran      ? "  [not done]"
              : s->failed  ? "  [failed]"
              : !s->judged ? ""
              : s->changed ? ""
                           : "  [no effect]",
              p->f);
        fputc('\n', p->f);
    }
}

bool step_target(const struct step_view *v, int i, bool second, int *root_x, int *root_y)
{
    const struct action *a = &v->step->actions[i];
    int32_t x = second ? a->x2 : a->x, y = second ? a->y2 : a->y;
    if (i >= v->step->nactions || x == ACTION_ABSENT || y == ACTION_ABSENT)
        return false;
    action_root_point(&v->p->place, x, y, root_x, root_y);
    return true;
}

volatile int *step_stop_flag(const struct step_view *v)
{
    return v->p->stop ? v->p->stop : screen_stop_flag(NULL);
}

void step_print(FILE *f, const struct step_view *v, unsigned flags)
{
    struct page p = {f, flags & PRINT_COLOR};
    const struct proposal *o = v->p;
    print_ink(&p, bold);
    fprintf(f, "\n%9s %d of %d", o->beyond_budget ? "end after" : "step", o->number, o->max_steps);
    print_ink(&p, NULL);
    fputs("  -  ", f);
    print_text(f, v->why);
    fputc('\n', f);
    put_screen(&p, v);
    print_line(&p, "told", NULL, flags & PRINT_MORE ? o->lead : NULL);
    print_line(&p, "note", NULL, o->now.step->note);
    print_line(&p, "thought", NULL, o->now.step->thought);
    if (o->now.fault != FAULT_NONE && !v->edited) {
        print_label(&p, action_fault_name(o->now.fault));
        print_ink(&p, bad);
        print_text(f, o->now.message);
        print_ink(&p, NULL);
        fputc('\n', f);
    }
    for (int i = 0; i < v->step->nactions; i++)
        put_action(&p, v, i);
    if (flags & PRINT_MORE) {
        put_json(&p, v);
        print_line(&p, "reply", NULL, o->now.reply);
    }
    print_line(&p, "rules", warm, o->gate);
    print_line(&p, "touches", NULL, o->where);
    put_alternatives(&p, "verbs", v->verbs, v->n_verbs);
    put_alternatives(&p, "places", v->places, v->n_places);
    put_forks(&p, v);
    put_costs(&p, v);
    put_history(&p, v, flags & PRINT_MORE ? 1000 : SHOWN_HISTORY);
    for (int i = 0; i < v->n_breaks; i++)
        print_format(&p, i ? "" : "breaks", "%d  %s%s", i + 1, v->breaks[i].spec,
                     v->breaks[i].off ? "  [off]" : "");
    print_line(&p, v->error ? "!" : "", v->error ? bad : NULL, v->message);
}

void step_print_passed(FILE *f, const struct step_view *v, unsigned flags)
{
    struct page p = {f, flags & PRINT_COLOR};
    char number[16];
    snprintf(number, sizeof number, "%d", v->p->number);
    char *what = describe_reply(v->step, v->p->now.message);
    print_line(&p, number, NULL, what);
    free(what);
}
