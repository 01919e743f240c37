/* vqa_remote.c - asks a model behind an HTTP endpoint about images. */
#include "remote/vqa_remote.h"

#include "remote/llm_remote.h"
#include "screen/screen.h"

static struct llm *converse(void *arg, const struct dialect *d, uint64_t seed)
{
    return llm_remote(arg, d, seed, NULL);
}

static void close_endpoint(void *arg)
{
    endpoint_free(arg);
}

int vqa_open_remote(struct vqa *l, const struct endpoint_options *o, const char *dialect, uint64_t seed,
                    struct err *e)
{
    struct endpoint *p = endpoint_open(o, screen_stop_flag(NULL), e);
    *l = (struct vqa){0};
    if (!p)
        return -1;
    const struct vqa_far far = {converse, close_endpoint, p};
    return vqa_open_far(l, dialect ? dialect : endpoint_dialect(p), xstrdup(p->model), &far, seed, e);
}

struct endpoint *vqa_endpoint(const struct vqa *l)
{
    return l->far.close == close_endpoint ? l->far.arg : NULL;
}
