/* scene_input.c - handles keys and mouse in the step window; see scene.h, and scene_help.c for each key.
 *
 * A letter runs the verb of its button, as in a terminal. Verbs with arguments open the input line; Enter
 * closes it with a command, Escape without. A target is dragged with the mouse or set with the right button.
 * While an earlier step is shown, keys refer to that step. */
#include "step/scene.h"

#include "base/utf8.h"
#include "step/private.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = 18 }; /* a press within this distance of a target grabs it */

const char *scene_prompt(const struct scene *s)
{
    static const char *const prompts[] = {
        [MODE_NONE] = "Drag the target, or right-click its new position. U undoes edits, ? shows help.",
        [MODE_TEXT] = "text",
        [MODE_EDIT] = "action",
        [MODE_VETO] = "why not",
        [MODE_REWIND] = "rewind to step",
        [MODE_FORK] = "how many replies",
        [MODE_BREAK] = "break at",
        [MODE_UNTIL] = "run until",
        [MODE_TOGGLE] = "switch off or on breakpoint",
        [MODE_CLEAR] = "remove breakpoint (0: all)",
    };
    if (s->status)
        return "The Stop button ends the run.";
    return s->mode == MODE_NONE && s->selected
               ? "Enter continues from this step. Esc returns to the pending step."
               : prompts[s->mode];
}

static void open_line(struct scene *s, enum scene_mode mode, const char *text)
{
    s->mode = mode;
    snprintf(s->input, sizeof s->input, "%s", text ? text : "");
    s->input[utf8_valid_prefix(s->input, strlen(s->input))] = 0; /* it may have been truncated */
    s->caret = strlen(s->input);
}

static bool close_line(struct scene *s, struct step_command *out)
{
    static const enum step_verb verbs[] = {
        [MODE_TEXT] = STEP_TEXT,     [MODE_EDIT] = STEP_EDIT,     [MODE_VETO] = STEP_VETO,
        [MODE_REWIND] = STEP_REWIND, [MODE_FORK] = STEP_FORK,     [MODE_BREAK] = STEP_BREAK,
        [MODE_UNTIL] = STEP_UNTIL,   [MODE_TOGGLE] = STEP_TOGGLE, [MODE_CLEAR] = STEP_CLEAR,
    };
    enum scene_mode mode = s->mode;
    char *end;
    s->mode = MODE_NONE;
    *out = (struct step_command){.verb = verbs[mode]};
    snprintf(out->text, sizeof out->text, "%s", s->input);
    if (mode == MODE_REWIND || mode == MODE_FORK || mode == MODE_CLEAR || mode == MODE_TOGGLE) {
        long n = strtol(s->input, &end, 10);
        if (end == s->input || *end || n < 0 || n > 1000000)
            return false; /* not a number: like Escape */
        out->n = (int)n;
    }
    return mode == MODE_TEXT || *s->input;
}

void scene_type(struct scene *s, const char *utf8)
{
    size_t len = strlen(s->input);
    for (const char *at = utf8; s->mode != MODE_NONE && *at;) {
        uint32_t cp;
        int n = utf8_decode(at, strlen(at), &cp);
        if (n <= 0)
            return;
        if (cp >= ' ' && cp != 127 && len + (size_t)n < sizeof s->input) {
            memmove(s->input + s->caret + n, s->input + s->caret, len - s->caret + 1);
            memcpy(s->input + s->caret, at, (size_t)n);
            s->caret += (size_t)n;
            len += (size_t)n;
        }
        at += n;
    }
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t prev_char(const struct scene *s, size_t at)
{
    while (at && is_continuation(s->input[--at]))
        ;
    return at;
}

static size_t next_char(const struct scene *s, size_t at)
{
    if (s->input[at])
        at++;
    while (is_continuation(s->input[at]))
        at++;
    return at;
}

static void delete_bytes(struct scene *s, size_t from, size_t to)
{
    memmove(s->input + from, s->input + to, strlen(s->input + to) + 1);
    s->caret = from;
}

static bool line_key(struct scene *s, int key, struct step_command *out)
{
    if (key == KEY_ENTER)
        return close_line(s, out);
    if (key == KEY_ESCAPE) {
        s->mode = MODE_NONE;
        s->breaks = false;
        s->selected = 0;
    } else if (key == KEY_BACKSPACE) {
        delete_bytes(s, prev_char(s, s->caret), s->caret);
    } else if (key == KEY_DELETE) {
        delete_bytes(s, s->caret, next_char(s, s->caret));
    } else if (key == KEY_LEFT) {
        s->caret = prev_char(s, s->caret);
    } else if (key == KEY_RIGHT) {
        s->caret = next_char(s, s->caret);
    } else if (key == KEY_HOME) {
        s->caret = 0;
    } else if (key == KEY_END) {
        s->caret = strlen(s->input);
    }
    return false;
}

static bool emit(struct step_command *out, enum step_verb verb, int n)
{
    *out = (struct step_command){.verb = verb, .n = n};
    return true;
}

static void select_step(struct scene *s, const struct history_step *history)
{
    s->selected = history->number;
    s->mode = MODE_NONE;
    s->down = 0;
}

/* Shows the previous or next step; after the last one the pending step. */
static void move_selection(struct scene *s, const struct step_view *v, int by)
{
    int n = v->p->n_history, i = n;
    for (int k = 0; k < n; k++)
        if (v->p->history[k].number == s->selected)
            i = k;
    if (i + by >= 0 && i + by < n)
        select_step(s, &v->p->history[i + by]);
    else if (i + by >= n)
        s->selected = 0;
}

static void rewind_line(struct scene *s, const struct step_view *v)
{
    const struct history_step *to = s->selected ? scene_history(v, s->selected) : NULL;
    char number[16] = "";
    for (int i = v->p->n_history - 1; i >= 0 && !to; i--)
        if (v->p->history[i].reachable)
            to = &v->p->history[i];
    if (to) {
        select_step(s, to);
        snprintf(number, sizeof number, "%d", to->number);
    }
    open_line(s, MODE_REWIND, to && to->reachable ? number : "");
}

static void edit_line(struct scene *s, const struct step_view *v)
{
    char *json = v->step->nactions ? edit_to_json(&v->step->actions[0]) : NULL;
    open_line(s, MODE_EDIT, json);
    free(json);
}

/* Opens the page with the list of breakpoints and the line to add one. */
static void open_breaks(struct scene *s, enum scene_mode mode, const char *text)
{
    s->breaks = true;
    s->selected = 0;
    s->down = 0;
    open_line(s, mode, text);
}

static bool letter_key(struct scene *s, const struct step_view *v, int key, struct step_command *out)
{
    static const struct {
        int key;
        enum step_verb verb;
    } commands[] = {
        {KEY_ENTER, STEP_RUN}, {'a', STEP_AGAIN}, {'c', STEP_CONTINUE}, {'u', STEP_RESET}, {'l', STEP_SHOW}};
    char step[32];
    if (key >= '0' && key <= '9' && v->p->n_forks)
        return emit(out, STEP_TAKE, key - '0'); /* replies are numbered from 0 */
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].key == key)
            return emit(out, commands[i].verb, 0);
    snprintf(step, sizeof step, "step %d", v->p->number + 1);
    if (key == 'h')
        s->heat = !s->heat;
    else if (key == 't')
        open_line(s, MODE_TEXT, v->step->nactions ? v->step->actions[0].text : "");
    else if (key == 'e')
        edit_line(s, v);
    else if (key == 'v')
        open_line(s, MODE_VETO, "");
    else if (key == 'f')
        open_line(s, MODE_FORK, "3");
    else if (key == 'r')
        rewind_line(s, v);
    else if (key == 'b')
        open_breaks(s, MODE_BREAK, "kind ");
    else if (key == 'g')
        open_breaks(s, MODE_UNTIL, step);
    else if (key == 'd')
        open_breaks(s, MODE_TOGGLE, v->n_breaks == 1 ? "1" : "");
    else if (key == 'x')
        open_breaks(s, MODE_CLEAR, v->n_breaks ? "0" : "");
    return false;
}

/* Handles keys while an earlier step is shown. The pending step is not visible, so no key may execute it. */
static bool past_key(struct scene *s, const struct step_view *v, int key, struct step_command *out)
{
    const struct history_step *h = scene_history(v, s->selected);
    if (key == KEY_ENTER && h && h->reachable)
        return emit(out, STEP_REWIND, h->number);
    if (key == KEY_ENTER)
        snprintf(s->said, sizeof s->said, "The run cannot be rewound to step %d: %s.", s->selected,
                 h && h->left ? "it was discarded by a rewind" : "its turn is no longer in memory");
    else if (key == 'r')
        rewind_line(s, v);
    return false;
}

/* Scrolls the panel or help. Returns whether the key was a scroll key. scene_draw() clamps the offset. */
static bool scroll_key(struct scene *s, int key)
{
    double by = key == KEY_UP          ? -40
                : key == KEY_DOWN      ? 40
                : key == KEY_PAGE_UP   ? -240
                : key == KEY_PAGE_DOWN ? 240
                                       : 0;
    s->down = fmax(s->down + by, 0);
    return by != 0;
}

static void close_page(struct scene *s)
{
    if (!s->help) {
        s->breaks = false;
        s->selected = 0;
    }
    s->help = false;
    s->down = 0;
}

/* Handles keys with the same effect on each page. Returns whether the key was one of them. */
static bool common_key(struct scene *s, const struct step_view *v, int key)
{
    bool typing = s->mode != MODE_NONE && !s->help;
    if (key == KEY_LARGER || key == KEY_SMALLER) {
        s->scale = fmin(fmax(scene_scale(s) * (key == KEY_LARGER ? 1.1 : 1 / 1.1), 0.5), 4);
    } else if (key == KEY_HELP || (key == '?' && !typing)) {
        s->help = !s->help;
        s->down = 0;
    } else if (typing) {
        return false;
    } else if (key == KEY_ESCAPE) {
        close_page(s);
    } else if ((key == KEY_LEFT || key == KEY_RIGHT) && !s->help) {
        move_selection(s, v, key == KEY_LEFT ? -1 : 1);
    } else {
        return scroll_key(s, key);
    }
    return true;
}

bool scene_key(struct scene *s, const struct step_view *v, int key, struct step_command *out)
{
    key = key < 128 ? tolower(key) : key;
    s->said[0] = 0;
    if (common_key(s, v, key))
        return false;
    if (s->mode != MODE_NONE && !s->help)
        return line_key(s, key, out);
    if (key == 's' || key == 'q')
        return emit(out, STEP_STOP, 0);
    if (s->help)
        return false;
    return s->selected ? past_key(s, v, key, out) : letter_key(s, v, key, out);
}

static void to_frame(const struct scene *s, double x, double y, double *fx, double *fy)
{
    const struct scene_layout l = scene_layout(s);
    *fx = fmin(fmax((x - l.frame.x) / l.fit - 0.5, 0), s->frame_w - 1);
    *fy = fmin(fmax((y - l.frame.y) / l.fit - 0.5, 0), s->frame_h - 1);
}

static bool aim_at(const struct scene *s, bool second, double x, double y, struct step_command *out)
{
    double fx, fy;
    to_frame(s, x, y, &fx, &fy);
    *out = (struct step_command){
        .verb = second ? STEP_TARGET2 : STEP_TARGET, .x = (int)lround(fx), .y = (int)lround(fy)};
    return true;
}

static bool grab_target(struct scene *s, const struct step_view *v, double x, double y)
{
    for (int second = 1; second >= 0; second--) {
        double tx, ty;
        if (!scene_target(s, v, 0, second, &tx, &ty) || hypot(x - tx, y - ty) > REACH)
            continue;
        s->drag = true;
        s->second = second;
        to_frame(s, x, y, &s->at_x, &s->at_y);
        return true;
    }
    return false;
}

static bool press_hit(struct scene *s, const struct step_view *v, const struct scene_hit *h,
                      struct step_command *out)
{
    if (h->kind == HIT_EXAMPLE) {
        open_line(s, s->mode == MODE_UNTIL ? MODE_UNTIL : MODE_BREAK, h->text);
        return false;
    }
    static const enum step_verb verbs[] = {[HIT_TAKE] = STEP_TAKE,
                                           [HIT_TOGGLE] = STEP_TOGGLE,
                                           [HIT_UNTIL] = STEP_UNTIL,
                                           [HIT_CLEAR] = STEP_CLEAR};
    emit(out, verbs[h->kind], h->n);
    if (h->kind == HIT_UNTIL)
        snprintf(out->text, sizeof out->text, "%s", h->n <= v->n_breaks ? v->breaks[h->n - 1].spec : "");
    return true;
}

bool scene_press(struct scene *s, const struct step_view *v, double x, double y, bool aim,
                 struct step_command *out)
{
    const struct scene_layout l = scene_layout(s);
    struct box b;
    int key;
    for (int i = 0; scene_button(s, i, &b, &key); i++)
        if (box_has(b, x, y)) {
            s->mode = MODE_NONE; /* a button is not text input */
            return scene_key(s, v, key, out);
        }
    if (s->help)
        return false;
    for (int i = 0; i < s->n_hits && box_has(l.panel, x, y); i++)
        if (box_has(s->hits[i].at, x, y))
            return press_hit(s, v, &s->hits[i], out);
    for (int i = 0; i < v->p->n_history && box_has(l.strip, x, y); i++)
        if (box_has(scene_thumb(s, v, i), x, y))
            select_step(s, &v->p->history[i]);
    if (!box_has(l.frame, x, y) || s->selected)
        return false;
    return !grab_target(s, v, x, y) && aim && aim_at(s, false, x, y, out);
}

void scene_move(struct scene *s, double x, double y)
{
    if (s->drag)
        to_frame(s, x, y, &s->at_x, &s->at_y);
}

bool scene_release(struct scene *s, double x, double y, struct step_command *out)
{
    if (!s->drag)
        return false;
    s->drag = false;
    return aim_at(s, s->second, x, y, out);
}

void scene_wheel(struct scene *s, const struct step_view *v, double x, double y, double by)
{
    const struct scene_layout l = scene_layout(s);
    if (s->help || box_has(l.panel, x, y))
        s->down = fmax(s->down - by * 40, 0); /* scene_draw() clamps it */
    if (!box_has(l.strip, x, y) || !v->p->n_history)
        return;
    s->scrolled += by * 60;
    double hidden = l.strip.x - scene_thumb(s, v, 0).x + s->scrolled; /* width hidden on the left */
    s->scrolled = fmin(fmax(s->scrolled, 0), fmax(hidden, 0));
}
