/* vqa.c - see vqa.h. */
#include "agent/vqa.h"

#include "model/find.h"
#include "screen/screen.h"

#include <stdlib.h>
#include <string.h>

int vqa_open(struct vqa *l, const char *dialect, const struct engine_options *model, uint64_t seed,
             struct err *e)
{
    *l = (struct vqa){0};
    if (!(l->dir = model_find(model->dir, e)))
        return -1;
    char *name = dialect ? xstrdup(dialect) : dialect_for_model(l->dir, e);
    l->dialect = name ? dialect_load(name, e) : NULL;
    free(name);
    if (!l->dialect)
        return -1;
    struct engine_options o = *model;
    o.dir = l->dir;
    if (!(l->engine = engine_open(&o, e)))
        return -1;
    l->session = session_new(l->engine, seed);
    return 0;
}

static struct grammar *grammar_for(struct vqa *l, enum dialect_goal goal, struct err *e)
{
    if (!l->grammars[goal])
        l->grammars[goal] = dialect_grammar(l->dialect, goal, engine_tokenizer(l->engine), e);
    return l->grammars[goal];
}

static int generate_reply(struct vqa *l, struct grammar *g, const struct sampling *sampling, struct err *e)
{
    if (generate(l->session,
                 &(struct generation){.grammar = g, .sampling = *sampling, .cancel = screen_stop_flag(NULL)},
                 &l->reply, e))
        return -1;
    return l->reply.finish == FINISH_CANCELLED ? err_set(e, ERR_STOPPED, "stopped") : 0;
}

int vqa_ask(struct vqa *l, const char *question, const struct image *images, int n, enum dialect_goal goal,
            const struct sampling *sampling, struct err *e)
{
    struct chat_part parts[8] = {{.text = question}, {.text = "\n"}};
    if (n < 0 || n > 6)
        return err_set(e, ERR_USAGE, "%d images; at most 6 fit", n);
    for (int i = 0; i < n; i++)
        parts[2 + i] = (struct chat_part){.image = &images[i]};
    struct grammar *g = l->free ? NULL : grammar_for(l, goal, e);
    if (!g && !l->free)
        return -1;
    enum chat_place place = l->dialect->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE;
    int rc = chat_system(l->session, "", e);
    if (rc == 0)
        rc = chat_user(l->session, parts, n ? 2 + n : 1, place, e);
    if (rc == 0)
        rc = chat_open_reply(l->session, false, e);
    return rc ? rc : generate_reply(l, g, sampling, e);
}

int vqa_converse(struct vqa *l, const struct chat_conversation *c, const struct sampling *sampling,
                 struct err *e)
{
    return chat_append(l->session, c, e) ? -1 : generate_reply(l, NULL, sampling, e);
}

void vqa_reset(struct vqa *l, uint64_t seed)
{
    generated_free(&l->reply);
    l->reply = (struct generated){0};
    session_free(l->session);
    l->session = session_new(l->engine, seed);
}

static void free_dialect(struct vqa *l)
{
    for (int i = 0; i <= GOAL_TEXT; i++) {
        if (l->grammars[i])
            grammar_free(l->grammars[i]);
        l->grammars[i] = NULL;
    }
    dialect_free(l->dialect);
    l->dialect = NULL;
}

int vqa_set_dialect(struct vqa *l, const char *dialect, struct err *e)
{
    struct dialect *d = dialect_load(dialect, e);
    if (!d)
        return -1;
    free_dialect(l);
    l->dialect = d;
    return 0;
}

void vqa_close(struct vqa *l)
{
    generated_free(&l->reply);
    session_free(l->session);
    free_dialect(l);
    engine_close(l->engine);
    free(l->dir);
    *l = (struct vqa){0};
}
