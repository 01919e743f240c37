/* scene_input.c - what keys and the mouse mean in the step window; see scene.h.
 *
 * A letter is a verb, as it stands on its button; verbs that need words open the line below the picture, which Enter
 * closes with a command and Escape without.  A target is taken with the mouse and put down elsewhere, or set where
 * the right button is pressed.  A past step that is clicked is looked at, and Enter goes back to it.
 */
#include "step/scene.h"

#include "base/utf8.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REACH = 18 }; /* how far from a target a press still takes it */

/* ---- the line -------------------------------------------------------------------------------- */

const char *scene_prompt(const struct scene *s)
{
    static const char *const prompts[] = {
        [MODE_NONE] = "Drag the target, or right-click its new place. U undoes edits.",
        [MODE_TEXT] = "text",
        [MODE_EDIT] = "action",
        [MODE_VETO] = "why not",
        [MODE_REWIND] = "back to step",
        [MODE_FORK] = "how many replies",
        [MODE_BREAK] = "stop at",
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
            return false; /* no number: as if Escape had been pressed */
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

static bool inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t before(const struct scene *s, size_t at)
{
    while (at && inside(s->input[--at]))
        ;
    return at;
}

static size_t after(const struct scene *s, size_t at)
{
    if (s->input[at])
        at++;
    while (inside(s->input[at]))
        at++;
    return at;
}

static void cut(struct scene *s, size_t from, size_t to)
{
    memmove(s->input + from, s->input + to, strlen(s->input + to) + 1);
    s->caret = from;
}

static bool line_key(struct scene *s, int key, struct step_command *out)
{
    switch (key) {
    case KEY_ENTER:
        return close_line(s, out);
    case KEY_ESCAPE:
        s->mode = MODE_NONE;
        s->selected = 0;
        break;
    case KEY_BACKSPACE:
        cut(s, before(s, s->caret), s->caret);
        break;
    case KEY_DELETE:
        cut(s, s->caret, after(s, s->caret));
        break;
    case KEY_LEFT:
        s->caret = before(s, s->caret);
        break;
    case KEY_RIGHT:
        s->caret = after(s, s->caret);
        break;
    case KEY_HOME:
        s->caret = 0;
        break;
    case KEY_END:
        s->caret = strlen(s->input);
        break;
    default:
        break;
    }
    return false;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static bool say(struct step_command *out, enum step_verb verb, int n)
{
    *out = (struct step_command){.verb = verb, .n = n};
    return true;
}

static void look_at(struct scene *s, const struct history_step *history)
{
    char number[16];
    snprintf(number, sizeof number, "%d", history->number);
    s->selected = history->number;
    open_line(s, MODE_REWIND, history->reachable ? number : "");
}

static void look_back(struct scene *s, const struct step_view *v)
{
    for (int i = v->p->n_history - 1; i >= 0; i--)
        if (v->p->history[i].reachable) {
            look_at(s, &v->p->history[i]);
            return;
        }
    open_line(s, MODE_REWIND, "");
}

static void edit_line(struct scene *s, const struct step_view *v)
{
    struct buf json;
    buf_init(&json, sizeof s->input);
    if (v->step->nactions)
        action_to_json(&v->step->actions[0], &json);
    open_line(s, MODE_EDIT, json.data);
    buf_free(&json);
}

static bool letter(struct scene *s, const struct step_view *v, int key, struct step_command *out)
{
    if (key >= '0' && key <= '9' && v->p->n_forks)
        return say(out, STEP_TAKE, key - '0');
    switch (key) {
    case '\n':
        return say(out, STEP_RUN, 0);
    case 'a':
        return say(out, STEP_AGAIN, 0);
    case 'c':
        return say(out, STEP_CONTINUE, 0);
    case 's':
        return say(out, STEP_STOP, 0);
    case 'u':
        return say(out, STEP_RESET, 0);
    case 'h':
        s->heat = !s->heat;
        break;
    case 't':
        open_line(s, MODE_TEXT, v->step->nactions ? v->step->actions[0].text : "");
        break;
    case 'e':
        edit_line(s, v);
        break;
    case 'v':
        open_line(s, MODE_VETO, "");
        break;
    case 'f':
        open_line(s, MODE_FORK, "3");
        break;
    case 'r':
        look_back(s, v);
        break;
    case 'b':
        open_line(s, MODE_BREAK, "kind ");
        break;
    case 'x':
        open_line(s, MODE_CLEAR, v->n_breaks ? "0" : "");
        break;
    default:
        break;
    }
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
    return letter(s, v, key == KEY_ENTER ? '\n' : key < 128 ? tolower(key) : key, out);
}

/* ---- the mouse ------------------------------------------------------------------------------- */

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

static bool take_target(struct scene *s, const struct step_view *v, double x, double y)
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
            return letter(s, v, key, out);
    }
    for (int i = 0; i < v->p->n_history && box_has(l.strip, x, y); i++)
        if (box_has(scene_thumb(s, v, i), x, y))
            look_at(s, &v->p->history[i]);
    if (!box_has(l.frame, x, y) || s->selected)
        return false;
    return !take_target(s, v, x, y) && aim && aim_at(s, false, x, y, out);
}

void scene_move(struct scene *s, const struct step_view *v, double x, double y)
{
    (void)v;
    if (s->drag)
        to_frame(s, x, y, &s->at_x, &s->at_y);
}

bool scene_release(struct scene *s, const struct step_view *v, double x, double y, struct step_command *out)
{
    (void)v;
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
    double hidden = b.x - scene_thumb(s, v, 0).x + s->scrolled; /* what can be pulled in from the left */
    s->scrolled = fmin(fmax(s->scrolled, 0), fmax(hidden, 0));
}
