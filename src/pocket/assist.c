/* assist.c - opens the assist of the embedded model and reads images for it.
 *
 * Operations that read the screenshot need the checkpoint's heads; stand-ins for secrets need its dialect;
 * yes-or-no verdicts need a dialect with `yes_no`.
 */
#include "pocket/assist.h"

#include "actions/syntax.h"
#include "base/err.h"
#include "pocket/private.h"

#include <stdlib.h>

unsigned pocket_without;

static void forget(struct pocket *x)
{
    text_free(&x->seen.text);
    patch_map_free(&x->seen.map);
    x->seen_w = x->seen_h = 0;
}

int pocket_look(struct pocket *x, const struct image *im, const struct seen **out, struct err *e)
{
    uint64_t hash = image_hash(im);
    *out = &x->seen;
    if (!x->heads || (x->seen_w == im->w && x->seen_h == im->h && x->seen_hash == hash))
        return 0;
    forget(x);
    if (heads_read(x->heads, im, x->cancel, &x->seen.map, e))
        return -1;
    if (!x->seen.map.patches)
        return 0;
    x->seen.text = text_read(&x->seen.map);
    x->seen_hash = hash;
    x->seen_w = im->w;
    x->seen_h = im->h;
    return 0;
}

static bool pocket_shows(struct assist *assist, const struct image *im, const char *text)
{
    const struct seen *seen;
    struct err none = ERR_INIT;
    return pocket_look((struct pocket *)assist, im, &seen, &none) == 0 &&
           (!seen->map.patches || text_is_written(&seen->text, text));
}

static char *read_task(struct assist *x, const char *task, const struct secrets *s, const char **unused)
{
    return stand_ins_task(&((struct pocket *)x)->stand_ins, task, s, unused);
}

static void restore_secrets(struct assist *x, struct step *step)
{
    stand_ins_resolve(&((struct pocket *)x)->stand_ins, step);
}

static void pocket_free(struct assist *assist)
{
    autofree struct pocket *x = (struct pocket *)assist;
    forget(x);
    free(x->heads);
}

int pocket_assist_open(struct assist **out, struct engine *engine, const struct dialect *dialect,
                       const volatile int *cancel, struct err *e)
{
    struct err why = ERR_INIT;
    struct heads *heads = engine ? heads_open(engine, &why) : NULL;
    bool speaks = syntax_is(dialect, "pocket");
    *out = NULL;
    if (why.kind)
        return err_set(e, why.kind, "%s", why.text);
    if (!heads && !speaks && !dialect->yes_no)
        return 0;
    struct pocket *x = xcalloc(1, sizeof *x);
    *x = (struct pocket){.base = {.ops = &x->ops}, .heads = heads, .cancel = cancel};
    x->ops.free = pocket_free;
    if (speaks) {
        x->ops.read_task = read_task;
        x->ops.restore_secrets = restore_secrets;
    }
    if (dialect->yes_no)
        x->ops.judge = pocket_judge;
    if (heads) {
        x->ops.correct_reply = pocket_correct_reply;
        x->ops.correct_action = pocket_correct_action;
        x->ops.find = pocket_find;
        x->ops.answer = pocket_answer;
        x->ops.shows = pocket_shows;
    }
    *out = &x->base;
    return 0;
}
