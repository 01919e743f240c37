/* merge.c - merges the steps that write a text into a field: a click, perhaps Ctrl+A, and typing.
 *
 * An element that the program describes as a text field counts. So does a point without an element if the
 * window looks the same before the click and before the text, except in the row of the point. Elsewhere a
 * click may open something that takes the keyboard, and Ctrl+A may mean another command. The file keeps the
 * single gestures, so that one that was cut off remains valid, and line numbers in messages are those of the
 * clicks. Playback performs the gestures as recorded (playback_put.h): Ctrl+A is what the user pressed, and
 * opens no completions.
 */
#include "actions/registry.h"
#include "record/look.h"

#include <X11/keysym.h>
#include <stdio.h>
#include <string.h>

enum { ROW = 32 }; /* px */
static const char *const fields[] = {"entry", "text", "password text", NULL};

static struct screen_rect row_of(const struct recording_target *t)
{
    return (struct screen_rect){0, t->y - t->rect.y - ROW / 2, t->rect.w, ROW};
}

/* Returns whether the window of a click looks the same before the text that follows, except in the rows of
 * the click and of the target before it: they may show the keyboard focus and the selection. */
static bool looks_alike(const struct recording_step *before, const struct recording_step *click,
                        const struct recording_step *text)
{
    bool beside = before && !strcmp(before->target.class, click->target.class) &&
                  !strcmp(before->target.title, click->target.title);
    struct screen_rect rows[] = {row_of(&click->target), row_of(beside ? &before->target : &click->target)};
    return !strcmp(click->target.title, text->title) && look_same(&click->look, &text->look, rows, 2);
}

/* Returns whether a step is a click into the field that a later step types into. before: the step with the
 * target before it, NULL: none. all: Ctrl+A was pressed between them; without it, a click on a point that has
 * no element may have opened the field. */
static bool is_click_into_field(const struct recording_step *before, const struct recording_step *s,
                                const struct recording_step *text, bool all)
{
    const struct action *a = &s->action;
    return a->kind == ACT_CLICK && a->button == 1 && a->count == 1 && !a->nhold && s->has_target &&
           (*s->target.role ? text_listed(fields, s->target.role) : all && looks_alike(before, s, text));
}

/* Returns whether the keys of a step go to the field of a click, as far as the recording tells. */
static bool goes_to(const struct recording_step *s, const struct recording_step *click)
{
    const struct recording_target *t = &s->target;
    return !s->has_target && !strcmp(s->class, click->target.class) &&
           (!*t->role || (!strcmp(t->role, click->target.role) && !strcmp(t->path, click->target.path)));
}

static bool selects_all(const struct recording_step *s)
{
    const struct action *a = &s->action;
    return a->kind == ACT_KEY && a->nkeys == 2 && a->count == 1 && a->keys[0] == XK_Control_L &&
           a->keys[1] == XK_a;
}

/* Returns the number of steps from s[0] on, of n, that write into a field; 0: none. */
static int written(const struct recording_step *before, const struct recording_step *s, int n)
{
    int all = n > 2 && selects_all(&s[1]) && goes_to(&s[1], s), last = 1 + all;
    bool writes = n > last && s[last].action.kind == ACT_TYPE &&
                  is_click_into_field(before, s, &s[last], all) && goes_to(&s[last], s);
    return writes ? last + 1 : 0;
}

/* Moves the text of the last of n steps into the first, and frees the others. */
static void merge(struct recording_step *s, int n)
{
    struct action text = s[n - 1].action;
    s[n - 1].action = (struct action){.kind = ACT_NONE};
    text.x = s->target.x;
    text.y = s->target.y;
    text.overwrite = n > 2;
    snprintf(text.element, sizeof text.element, "%s", *s->target.name ? s->target.name : s->target.label);
    action_free(&s->action);
    s->action = text;
    for (int i = 1; i < n; i++)
        recording_step_free(&s[i]);
}

void recording_merge(struct recording *r)
{
    int kept = 0;
    const struct recording_step *before = NULL;
    for (int i = 0, n; i < r->n; i += n) {
        n = written(before, &r->steps[i], r->n - i);
        if (n)
            merge(&r->steps[i], n);
        n = n ? n : 1;
        r->steps[kept] = r->steps[i];
        before = r->steps[kept].has_target ? &r->steps[kept] : before;
        kept++;
    }
    r->n = kept;
}
