/* service.c - opens the model, the session cache and the grammar cache of the server; see service.h. */
#include "serve/service.h"

#include "actions/dialect.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sets the format of turns that the dialect defines. */
static int set_defaults(struct service *v, const struct service_options *o, struct err *e)
{
    char *name = o->dialect ? xstrdup(o->dialect) : dialect_for_model(o->model.dir, e);
    struct dialect *d = name ? dialect_load(name, e) : NULL;
    v->dialect = name;
    if (!d)
        return -1;
    v->defaults = (struct body_defaults){.sampling = {.temperature = 1, .top_p = 1},
                                         .place = d->image_inline ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE};
    dialect_free(d);
    return 0;
}

/* Returns the last component of the path that is not "model". */
static char *name_of(const char *dir)
{
    char *path = realpath(dir, NULL), *name = NULL;
    for (char *slash; path && !name && (slash = strrchr(path, '/')); *slash = 0)
        if (slash[1] && strcmp(slash + 1, "model") != 0)
            name = xstrdup(slash + 1);
    free(path);
    return name ? name : xstrdup("model");
}

int service_open(struct service *v, const struct service_options *o, struct err *e)
{
    struct engine_options model = o->model;
    struct engine *g = NULL;
    *v = (struct service){.opened = (int64_t)time(NULL)};
    model.shared = true;
    if (set_defaults(v, o, e) || (o->store.spill && dir_make(o->store.spill, e)) ||
        !(g = engine_open(&model, e)))
        return -1;
    v->model = o->name ? xstrdup(o->name) : name_of(model.dir);
    v->weights = weights_slot_new(g);
    v->constraints = constraints_new(engine_tokenizer(g));
    v->store = store_new(v->weights, &o->store);
    v->defaults.result_pictures = chat_template_result_images(engine_chat(g));
    const char *odd = chat_template_warning(engine_chat(g));
    if (odd)
        warn("%s", odd);
    return 0;
}

void service_close(struct service *v)
{
    store_free(v->store);
    constraints_free(v->constraints);
    weights_slot_free(v->weights);
    free(v->model);
    free(v->dialect);
    *v = (struct service){0};
}
