/* model.c - finds, opens, checks and hashes the model of one run or of many.  See job.h. */
#include "run/job.h"

#include "cli/shared_options.h"
#include "model/find.h"
#include "text/tokenizer.h"

#include <stdlib.h>

int job_model_find(struct job_model *m, const struct run_settings *s, struct err *e)
{
    m->dir = model_find(s->model, e);
    return m->dir ? 0 : -1;
}

int job_model_open(struct job_model *m, const struct run_settings *s, const volatile int *stop, bool share,
                   struct err *e)
{
    struct engine_options o = MODEL_ENGINE(*s);
    o.dir = m->dir;
    o.cancel = stop;
    o.shared = share;
    if (!(m->engine = engine_open(&o, e)))
        return -1;
    const char *odd = chat_check(engine_dir(m->engine), engine_tokenizer(m->engine));
    if (odd)
        warn("%s", odd);
    odd = s->verbose ? tokenizer_check(engine_tokenizer(m->engine)) : NULL;
    if (odd)
        warn("%s", odd);
    int large = model_hash_weights(m->dir, MODEL_HASH_MOST, &m->hash, e);
    m->hashed = large == 0;
    return large < 0 ? -1 : 0;
}

void job_model_close(struct job_model *m)
{
    engine_close(m->engine);
    free(m->dir);
    *m = (struct job_model){0};
}
