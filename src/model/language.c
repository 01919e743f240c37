/* language.c - see language.h for the equations. */
#include "model/language.h"

#include "base/flag.h"

static const struct tensor no_bias = {0};

/* ---- one piece of the prompt -------------------------------------------------------------------- */

/* h += W_down . max(0, W_up . u)^2 */
static void mlp_layer(struct language *m, const struct mlp_weights *w, int width, struct tensor h,
                      struct tensor u)
{
    struct backend *b = m->backend;
    struct tensor t = tensor_cols(tensor_rows(m->m, 0, h.rows), 0, width);
    b->ops->linear(b, t, u, w->up, no_bias, EPI_RELU2, 0);
    b->ops->linear(b, h, t, w->down, no_bias, EPI_NONE, 1);
}

/* The rows of h that belong to an image come from the projector. `first` is the index of h's row 0. */
static void place_images(struct language *m, struct tensor h, int64_t first, const struct image_rows *images,
                         int n_images)
{
    for (int i = 0; i < n_images; i++) {
        int64_t begin = images[i].at, end = begin + images[i].rows.rows;
        int64_t from = begin > first ? begin : first, to = end < first + h.rows ? end : first + h.rows;
        if (from < to)
            m->backend->ops->copy(m->backend, tensor_rows(h, from - first, to - from),
                                  tensor_rows(images[i].rows, from - begin, to - from));
    }
}

/* The last layer where tokens meet; of those behind it only rows that somebody will look at are computed. */
static int last_mixer(const struct lm_config *c)
{
    int i = c->layers - 1;
    while (i >= 0 && c->pattern[i] != LAYER_MAMBA && c->pattern[i] != LAYER_ATTENTION)
        i--;
    return i;
}

static struct tensor last_rows(struct tensor t, int64_t n)
{
    return tensor_rows(t, t.rows - n, n);
}

/* Layer i for the last rows of u that h has; a mixer learns from all of u. */
static void run_layer(struct language *m, struct language_batch of, int i, struct tensor h, struct tensor u)
{
    const struct layer_weights *w = &m->weights->layers[i];
    switch (m->config->pattern[i]) {
    case LAYER_MAMBA:
        mamba_layer(m, &w->mamba, of, i, h, u);
        break;
    case LAYER_ATTENTION:
        attention_layer(m, &w->att, of, i, h, u);
        break;
    case LAYER_MOE:
        moe_layer(m, &w->moe, h, u);
        break;
    default:
        mlp_layer(m, &w->mlp, m->config->mlp[i], h, u);
    }
}

/* The last row of each session, behind the last norm: what logits are made of. */
static void keep_last(struct language *m, struct language_batch of, struct tensor h)
{
    struct backend *b = m->backend;
    struct tensor last[LANGUAGE_ROWS];
    h = last_rows(h,
                  of.sessions); /* of one session all but the last row have gone through for others to see */
    b->ops->rmsnorm(b, tensor_rows(m->u, 0, h.rows), h, m->weights->norm, m->config->eps);
    for (int i = 0; i < of.sessions; i++)
        last[i] = of.states[i]->now.last;
    b->ops->scatter(b, last, tensor_rows(m->u, 0, h.rows));
}

static bool cancelled(const struct language *m)
{
    return flag_up(m->cancel) || flag_up(m->own);
}

/* wanted: 1 where the row of the last token is looked at; else 0.  -1: cancelled between two layers. */
static int run_layers(struct language *m, struct language_batch of, struct tensor h, int wanted)
{
    const struct lm_config *c = m->config;
    struct backend *b = m->backend;
    int mixer = last_mixer(c);
    int64_t each = h.rows / of.sessions;
    for (int i = 0; i < c->layers && h.rows > 0; i++) {
        if (each > 1 && cancelled(m))
            return -1;
        bool all = m->watch || i < mixer;
        struct tensor out = all ? h : last_rows(h, (int64_t)wanted * of.sessions);
        struct tensor in = i > mixer ? out : h, u = tensor_rows(m->u, 0, in.rows);
        b->ops->rmsnorm(b, u, in, m->weights->layers[i].norm, c->eps);
        run_layer(m, of, i, out, u);
        h = out;
        if (m->watch)
            m->watch(m->watch_arg, i, h);
    }
    for (int i = 0; i < of.sessions; i++)
        of.states[i]->length += each;
    if (wanted)
        keep_last(m, of, h);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

/* By what steps are told apart: as many sessions, and as many of them with small states. */
static uint64_t step_key(struct language_batch of)
{
    uint64_t key = (uint64_t)of.sessions;
    for (int i = 0; i < of.sessions; i++)
        key += (uint64_t)(of.states[i]->now.types.ssm == DT_F16) << 32;
    return key;
}

/* One token of each of n sessions: the same operations each time. */
static void run_step(struct language *m, struct language_batch of, const int32_t *ids)
{
    struct backend *b = m->backend;
    struct tensor h = tensor_rows(m->h, 0, of.sessions);
    bool again = b->ops->step_begin && !m->watch;
    if (again)
        b->ops->step_begin(b, step_key(of));
    b->ops->embed(b, h, m->weights->embed, ids);
    run_layers(m, of, h, 1);
    if (again)
        b->ops->step_end(b);
}

/* One token alone goes another way than the last of many: where pieces end must not decide which. */
int64_t language_chunk(const struct language *m, int64_t n)
{
    int64_t chunk = m->config->ssm.chunk;
    if (n == LANGUAGE_ROWS + 1)
        return LANGUAGE_ROWS - (chunk < LANGUAGE_ROWS ? chunk : 1);
    return n < LANGUAGE_ROWS ? n : LANGUAGE_ROWS;
}

int language_forward(struct language *m, struct lm_state *s, const int32_t *ids, int64_t n,
                     const struct image_rows *images, int n_images)
{
    state_reserve(s, m->config, m->backend, s->length + n);
    if (n == 1 && n_images == 0) {
        run_step(m, (struct language_batch){&s, 1}, ids);
        return 0;
    }
    for (int64_t first = 0, rows; first < n; first += rows) {
        rows = language_chunk(m, n - first);
        struct tensor h = tensor_rows(m->h, 0, rows);
        m->backend->ops->embed(m->backend, h, m->weights->embed, ids + first);
        place_images(m, h, first, images, n_images);
        if (run_layers(m, (struct language_batch){&s, 1}, h, first + rows == n))
            return -1;
    }
    return 0;
}

void language_step_each(struct language *m, struct lm_state *const *s, int n, const int32_t *ids)
{
    for (int i = 0; i < n; i++)
        state_reserve(s[i], m->config, m->backend, s[i]->length + 1);
    run_step(m, (struct language_batch){s, n}, ids);
}

/* Of n rows of logits as many as there is memory for: one at least. */
static int logits_at_once(struct language *m, int n)
{
    const struct ops *ops = m->backend->ops;
    if (m->logits.rows < n) {
        struct tensor more =
            (ops->try_alloc ? ops->try_alloc : ops->alloc)(m->backend, DT_F32, n, m->weights->vocab);
        if (!more.data)
            return (int)m->logits.rows;
        ops->free(m->backend, &m->logits);
        m->logits = more;
    }
    return n;
}

/* [n, V] on the backend, until the next call. */
static struct tensor project(struct language *m, struct tensor last)
{
    struct backend *b = m->backend;
    struct tensor y = tensor_rows(m->logits, 0, last.rows);
    b->ops->linear(b, y, last, m->weights->head, no_bias, EPI_NONE, 0);
    return y;
}

static struct tensor project_each(struct language *m, struct lm_state *const *s, int n)
{
    struct tensor last[LANGUAGE_ROWS], rows = tensor_rows(m->u, 0, n);
    if (n == 1)
        return project(m, s[0]->now.last);
    for (int i = 0; i < n; i++)
        last[i] = s[i]->now.last;
    m->backend->ops->gather(m->backend, rows, last);
    return project(m, rows);
}

static void to_host(struct language *m, float *logits, struct tensor row)
{
    m->backend->ops->download(m->backend, (struct tensor){logits, DT_F32, 1, row.cols, row.cols}, row);
}

void language_logits(struct language *m, const struct lm_state *s, float *logits)
{
    to_host(m, logits, project(m, s->now.last));
}

void language_logits_each(struct language *m, struct lm_state *const *s, int n, float *const *logits)
{
    for (int first = 0, some = logits_at_once(m, n); first < n; first += some) {
        int k = n - first < some ? n - first : some;
        struct tensor y = project_each(m, s + first, k);
        for (int i = 0; i < k; i++)
            to_host(m, logits[first + i], tensor_rows(y, i, 1));
    }
}

void language_choose_each(struct language *m, struct lm_state *const *s, int n, int ids,
                          const struct choosing *how, struct choice *out)
{
    for (int first = 0, some = logits_at_once(m, n); first < n; first += some) {
        int k = n - first < some ? n - first : some;
        struct tensor y = project_each(m, s + first, k);
        m->backend->ops->choose(m->backend, tensor_cols(y, 0, ids), how + first, out + first);
    }
}

static int widest_mlp(const struct lm_config *c)
{
    int widest = c->moe.shared;
    for (int i = 0; i < c->layers; i++)
        widest = c->mlp[i] > widest ? c->mlp[i] : widest;
    return widest;
}

void language_init(struct language *m, const struct lm_config *c, const struct model_weights *w,
                   struct backend *b, enum dtype act)
{
    *m = (struct language){.config = c, .weights = w, .backend = b, .act = act};
    const struct {
        struct tensor *t;
        int64_t cols;
    } scratch[] = {
        {&m->h, c->hidden},
        {&m->u, c->hidden},
        {&m->p, config_proj_rows(c)},
        {&m->v, config_conv_dim(c)},
        {&m->y, config_inner(c)},
        {&m->q, (int64_t)c->q_heads * c->head_dim},
        {&m->a, (int64_t)c->q_heads * c->head_dim},
        {&m->m, widest_mlp(c)},
    };
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        *scratch[i].t = b->ops->alloc(b, act, LANGUAGE_ROWS, scratch[i].cols);
    m->logits = b->ops->alloc(b, DT_F32, 1, w->vocab);
    if (c->moe.width)
        moe_init(m);
}

void language_free(struct language *m)
{
    struct tensor *scratch[] = {&m->h, &m->u, &m->p, &m->v, &m->y, &m->q, &m->a, &m->m, &m->logits};
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        if (scratch[i]->data)
            m->backend->ops->free(m->backend, scratch[i]);
    moe_free(m);
}
