/* subject.c - see subject.h. */
#include "bench/subject.h"

#include "bench/random.h"
#include "capacity/memory.h"
#include "capacity/plan.h"
#include "checkpoint/find.h"
#include "ops/ops.h"
#include "session/generate.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { ANY_WIDTH = 1920, ANY_HEIGHT = 1080, GRID = 64 };

void subject_need(int rc, const struct err *e)
{
    if (rc)
        die(e->kind, "%s", e->text);
}

void subject_append(struct session *s, const int32_t *ids, int64_t n)
{
    struct err e = ERR_INIT;
    subject_need(session_append(s, ids, n, &e), &e);
}

void subject_extend(const struct subject *m, struct session *s, int64_t length)
{
    enum { CHUNK = 512 };
    for (int64_t left; (left = length - session_length(s)) > 0;) {
        subject_append(s, m->ids, left < CHUNK ? left : CHUNK);
        session_logits(s);
    }
}

void subject_fork(const struct subject *m, struct session **s, int n, int64_t length)
{
    s[0] = session_new(m->g, 1);
    subject_extend(m, s[0], length);
    for (int i = 1; i < n; i++)
        s[i] = session_fork(s[0]);
}

void subject_free_forks(struct session **s, int n)
{
    for (int i = 0; i < n; i++)
        session_free(s[i]);
}

void subject_rewind(struct subject *m)
{
    struct err e = ERR_INIT;
    subject_need(session_rewind(m->s, m->from, &e), &e);
}

void subject_append_screen(struct subject *m)
{
    struct err e = ERR_INIT;
    subject_rewind(m);
    subject_need(session_append_image(m->s, &m->screen, &e), &e);
}

void subject_run_prefill(void *arg)
{
    struct subject *m = arg;
    subject_rewind(m);
    for (int64_t n = m->n; n > 0; n -= SUBJECT_IDS)
        subject_append(m->s, m->ids, n < SUBJECT_IDS ? n : SUBJECT_IDS);
    subject_sample(m, &m->s, 1);
}

void subject_sample(const struct subject *m, struct session *const *s, int n)
{
    struct sampler how[SUBJECT_MOST];
    struct sampled out[SUBJECT_MOST];
    struct err e = ERR_INIT;
    if (!m->k->b->ops->sample) {
        session_decode_batch(s, n);
        return;
    }
    for (int i = 0; i < n; i++)
        how[i] = (struct sampler){.known = m->known, .top_p = 1};
    subject_need(session_sample_batch(s, n, how, out, &e), &e);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct state_types types_of(const struct subject *m)
{
    struct state_types t = state_types(false, engine_state_storage(m->g), engine_kv_storage(m->g));
    t.ring = state_ring(t, &m->c->lm, m->k->b->ops->ssm_flush != NULL);
    return t;
}

double subject_decode_bytes(const struct subject *m, int n, int64_t past)
{
    return cost_weight_bytes(m->c, engine_vocab(m->g), n, engine_bytes_per_weight(m->g)) +
           n * cost_session_bytes(m->c, types_of(m), n, past);
}

double subject_memory_free(const struct subject *m)
{
    return m->k->b->ops->memory_left ? (double)engine_memory_left(m->g) : bench_memory_free(m->k);
}

double subject_memory_used(const struct subject *m)
{
    return (double)memory_heap() - (m->k->b->ops->memory_left ? subject_memory_free(m) : 0);
}

size_t subject_checkpoint_memory(const struct subject *m)
{
    struct recurrent shapes;
    recurrent_set_shapes(&shapes, &m->c->lm, types_of(m));
    recurrent_free_shapes(&shapes);
    return (size_t)shapes.block.cols;
}

size_t subject_session_memory(const struct subject *m, int64_t tokens)
{
    return subject_checkpoint_memory(m) +
           (size_t)state_capacity(0, tokens) * state_position(&m->c->lm, types_of(m).kv);
}

/* Uses at most half of the free memory of the host, leaving the rest for other programs, or 95 % of a GPU's.
 * Beyond the limit of state memory sessions would be spilled. */
bool subject_fits(const struct subject *m, int n, int64_t tokens, int checkpoints)
{
    double room = subject_memory_free(m) * (bench_on_gpu(m->k) ? 0.95 : 0.5),
           need = (double)n * (double)subject_session_memory(m, tokens) +
                  (double)checkpoints * (double)subject_checkpoint_memory(m);
    struct state_memory pool = engine_state_memory(m->g);
    double left = (double)pool.bound - (double)pool.used;
    if (pool.bound && left < need)
        return false;
    return n == 1 || room == 0 || need < room;
}

/* ---- screen and text ------------------------------------------------------------------------- */

/* Draws rows of boxes; the time does not depend on the contents of a screen. */
static void draw_screen(struct image *im)
{
    for (int y = 0; y < im->h; y++)
        for (int x = 0; x < im->w; x++) {
            bool box = x % 160 < 120 && y % 60 < 30, edge = x % 160 < 2 || y % 60 < 2;
            memset(im->rgb + ((size_t)y * (size_t)im->w + (size_t)x) * 3, box ? (edge ? 40 : 255) : 230, 3);
        }
}

static void mark_pixel(struct subject *m, int x, int y)
{
    uint8_t *p = m->screen.rgb + ((size_t)y * (size_t)m->screen.w + (size_t)x) * 3;
    p[0] = (uint8_t)m->frame;
    p[1] = (uint8_t)(m->frame >> 8);
}

void subject_new_corner(struct subject *m)
{
    m->frame++;
    mark_pixel(m, 0, 0);
}

void subject_new_screen(struct subject *m)
{
    m->frame++;
    for (int y = 0; y < m->screen.h; y += GRID)
        for (int x = 0; x < m->screen.w; x += GRID)
            mark_pixel(m, x, y);
}

static int32_t *read_text(const struct tokenizer *t)
{
    static const char text[] =
        "Open the settings, find the row that says language, and choose the third one. ";
    struct tokens all = {0};
    while (all.n < SUBJECT_IDS)
        tokenizer_encode(t, text, sizeof text - 1, false, &all);
    return all.ids;
}

/* ---- opening and closing ------------------------------------------------------------------------------- */

int subject_screen(struct subject *m, int w, int h, struct err *e)
{
    if (!w && m->trial) {
        w = 2 * m->c->vit.tile;
        h = m->c->vit.tile;
    } else if (!w) {
        w = m->dialect->screen_w ? m->dialect->screen_w : ANY_WIDTH;
        h = m->dialect->screen_h ? m->dialect->screen_h : ANY_HEIGHT;
    }
    image_free(&m->screen);
    if (image_alloc(&m->screen, w, h, e))
        return -1;
    draw_screen(&m->screen);
    return 0;
}

static int find_model(struct subject *m, struct err *e)
{
    const struct random_model *sizes = m->k->random ? random_find(m->k->random, e) : NULL;
    m->synthetic = sizes;
    m->trial = sizes && !strcmp(sizes->name, "tiny");
    if (sizes || !m->k->random)
        m->dir = sizes ? random_write(sizes, e) : model_find(m->k->model, e);
    return m->dir ? 0 : -1;
}

/* Returns -1 with e if synthetic weights, which cannot be mapped from a file, would exceed the memory. */
static int check_memory(const struct subject *m, const struct engine_options *o, struct err *e)
{
    struct model_config c;
    struct plan p;
    if (!m->synthetic)
        return 0;
    struct safetensors *s = safetensors_open(m->dir, e);
    struct engine_options packed = *o;
    packed.weights_in = WEIGHTS_IN_RAM;
    int rc = !s || config_load(&c, m->dir, e) || plan_make(&p, &c, s, &packed, e) ? -1 : 0;
    double room = bench_memory_free(m->k);
    if (rc == 0)
        plan_fit(&p, room > 0 ? (size_t)room : SIZE_MAX);
    double need = rc ? 0 : (double)plan_own(&p, 1, SUBJECT_IDS);
    safetensors_close(s);
    if (rc == 0 && room > 0 && need > room)
        return err_set(e, ERR_ENV,
                       "%s needs %.1f GB of memory, but only %.1f GB are free: use another --device, "
                       "--weights int8 or --random tiny",
                       m->k->random, need * 1e-9, room * 1e-9);
    return rc;
}

int subject_open(struct subject *m, const struct bench *k, struct err *e)
{
    *m = (struct subject){.k = k};
    if (find_model(m, e))
        return -1;
    char *name = dialect_for_model(m->dir, e);
    m->dialect = name ? dialect_load(name, e) : NULL;
    free(name);
    if (!m->dialect)
        return -1;
    struct engine_options o = {.dir = m->dir,
                               .device = k->device,
                               .isa = k->isa,
                               .threads = k->threads,
                               .weights_in = (enum weights_in)k->weights_in,
                               .weights = (enum weight_storage)k->weights,
                               .tower = (enum tower_storage)k->tower,
                               .speculate = k->speculate,
                               .activations = (enum activation_rounding)k->activations,
                               .min_pixels = k->min_pixels,
                               .max_pixels = k->max_pixels,
                               .kv = (enum kv_storage)k->kv,
                               .cache = k->weight_cache,
                               .state = (enum state_storage)k->state,
                               .state_memory = k->state_memory,
                               .random = m->synthetic,
                               .shared = !strcmp(k->section, "threads")};
    if (check_memory(m, &o, e) || !(m->g = engine_open(&o, e)))
        return -1;
    if (strcmp(engine_isa(m->g), k->b->ops->name) != 0)
        return err_set(e, ERR_ENV,
                       "the model runs on '%s', but the limits were measured on '%s': set --device",
                       engine_isa(m->g), k->b->ops->name);
    m->c = engine_config(m->g);
    if (subject_screen(m, 0, 0, e))
        return -1;
    m->ids = read_text(engine_tokenizer(m->g));
    m->s = session_new(m->g, 1);
    if (session_append(m->s, m->ids, 4, e))
        return -1;
    m->start = m->from = session_checkpoint(m->s);
    m->known = generate_known(m->g);
    return 0;
}

void subject_close(struct subject *m)
{
    checkpoint_free(m->start);
    session_free(m->s);
    image_free(&m->screen);
    engine_close(m->g);
    if (m->dialect)
        dialect_free(m->dialect);
    free(m->ids);
    free(m->known);
    if (m->synthetic)
        random_remove(m->dir);
    else
        free(m->dir);
}
