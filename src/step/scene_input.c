/* scene_input.c - keys and mouse in the step window; see scene.h.
 *
 * A letter is the verb of its button.  Verbs with arguments open the input line, which Enter closes with
 * a command and Escape without.  A target is dragged with the mouse, or set with the right button.  A
 * click on an earlier step shows its screen, and Enter rewinds to it.
 */
#include "step/scene.h"

#include "base/utf8.h"
#include "step/private.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = 18 }; /* a press this close to a target grabs it */

const char *scene_prompt(const struct scene *s)
{
    static const char *const prompts[] = {
        [MODE_NONE] = "Drag the target, or right-click its new place. U undoes edits.",
        [MODE_TEXT] = "text",
        [MODE_EDIT] = "action",
        [MODE_VETO] = "why not",
        [MODE_REWIND] = "rewind to step",
        [MODE_FORK] = "how many replies",
        [MODE_BREAK] = "break at",
        [MODE_CLEAR] = "remove breakpoint (0: all)",
    };
    return prompts[s->mode];
}

static void open_line(struct scene *s, enum scene_mode mode, const char *text)
{
    s->mode = mode;
    snprintf(s->input, sizeof s->input, "%s", text ? text : "");
    s->input[utf8_valid_prefix(s->input, strlen(s->input))] = 0; /* it may have been cut */
    s->caret = strlen(s->input);
}

static bool close_line(struct scene *s, struct step_command *out)
{
    static const enum step_verb verbs[] = {
        [MODE_TEXT] = STEP_TEXT,     [MODE_EDIT] = STEP_EDIT, [MODE_VETO] = STEP_VETO,
        [MODE_REWIND] = STEP_REWIND, [MODE_FORK] = STEP_FORK, [MODE_BREAK] = STEP_BREAK,
        [MODE_CLEAR] = STEP_CLEAR,
    };
    enum scene_mode mode = s->mode;
    char *end;
    s->mode = MODE_NONE;
    *out = (struct step_command){.verb = verbs[mode]};
    snprintf(out->text, sizeof out->text, "%s", s->input);
    if (mode == MODE_REWIND || mode == MODE_FORK || mode == MODE_CLEAR) {
        long n = strtol(s->input, &end, 10);
        if (end == s->input || *end || n < 0 || n > 1000000)
            return false; /* no number: as Escape */
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
    char number[16];
    snprintf(number, sizeof number, "%d", history->number);
    s->selected = history->number;
    open_line(s, MODE_REWIND, history->reachable ? number : "");
}

static void select_last_step(struct scene *s, const struct step_view *v)
{
    for (int i = v->p->n_history - 1; i >= 0; i--)
        if (v->p->history[i].reachable) {
            select_step(s, &v->p->history[i]);
            return;
        }
    open_line(s, MODE_REWIND, "");
}

static void edit_line(struct scene *s, const struct step_view *v)
{
    char *json = v->step->nactions ? edit_to_json(&v->step->actions[0]) : NULL;
    open_line(s, MODE_EDIT, json);
    free(json);
}

static bool letter_key(struct scene *s, const struct step_view *v, int key, struct step_command *out)
{
    static const struct {
        char key;
        enum step_verb verb;
    } commands[] = {
        {'\n', STEP_RUN}, {'a', STEP_AGAIN}, {'c', STEP_CONTINUE}, {'s', STEP_STOP}, {'u', STEP_RESET}};
    if (key >= '0' && key <= '9' && v->p->n_forks)
        return emit(out, STEP_TAKE, key - '0');
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].key == key)
            return emit(out, commands[i].verb, 0);
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
        select_last_step(s, v);
    else if (key == 'b')
        open_line(s, MODE_BREAK, "kind ");
    else if (key == 'x')
        open_line(s, MODE_CLEAR, v->n_breaks ? "0" : "");
    return false;
}

bool scene_key(struct scene *s, const struct step_view *v, int key, struct step_command *out)
{
    if (key == KEY_LARGER || key == KEY_SMALLER) {
        s->scale = fmin(fmax(s->scale * (key == KEY_LARGER ? 1.1 : 1 / 1.1), 0.5), 4);
        return false;
    }
    if (s->mode != MODE_NONE)
        return line_key(s, key, out);
    if (key == KEY_ESCAPE)
        s->selected = 0;
    return letter_key(s, v, key == KEY_ENTER ? '\n' : key < 128 ? tolower(key) : key, out);
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

bool scene_press(struct scene *s, const struct step_view *v, double x, double y, bool aim,
                 struct step_command *out)
{
    const struct scene_layout l = scene_layout(s);
    for (int i = 0; i < SCENE_BUTTONS; i++) {
        char key;
        if (box_has(scene_button(s, i, &key), x, y))
            return letter_key(s, v, key, out);
    }
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
    const struct box b = scene_layout(s).strip;
    if (!box_has(b, x, y) || !v->p->n_history)
        return;
    s->scrolled += by * 60;
    double hidden = b.x - scene_thumb(s, v, 0).x + s->scrolled; /* width hidden on the left */
    s->scrolled = fmin(fmax(s->scrolled, 0), fmax(hidden, 0));
}
