/* heads.c - runs the screen heads on the tower's rows of an image.
 *
 *   u = LN(x)      present = sigmoid(u Wp + bp)   shift = u Ws + bs   letter = argmax_{c > 0} u W[slot, c]
 *   y = block(x)                                  (one more block of the tower's kind)
 *   v = LN(y)      kind = softmax of the first rows of Wo GELU(v Wi + bi) + bo
 *   w = LN(y)      query = w Wq + bq   key = w Wk + bk   nothing = w Wn + bn
 *                  f = w Wf + bf   down = Ed f   right = Er f
 *
 * The heads take about a fifth of the tower's time.
 */
#include "pocket/heads.h"

#include "base/err.h"
#include "model/vision.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX VISION_EXTRA

enum {
    ROWS_MAX = 4096,
    LETTER_COLS = PATCH_SLOTS * PATCH_LETTERS,
    SAID_COLS = 2 * PATCH_SLOTS + LETTER_COLS,
    POINTER_COLS = 2 * POINTER_WIDTH + 1 + 2 * POINTER_STEPS
};
static_assert(sizeof(struct patch_pointer) == POINTER_COLS * sizeof(float), "a row of the pointer's numbers");
static const float reader_eps = 1e-5f;

/* A matrix with its bias, or a norm. */
struct layer {
    struct weight *matrix;
    struct tensor scale, bias; /* [1, cols] */
    int64_t rows;
};

struct heads {
    struct engine *engine;
    struct layer norm, present, shift, letters;          /* letters: [8 * 96, W] */
    struct layer find_norm, inner, find;                 /* [F, W], [kinds and more, F] */
    struct layer pointer_norm, query, key, nothing, far; /* [P, W], [P, W], [1, W], [R, W] */
    struct layer down, right;                            /* [POINTER_STEPS, R]: relative positions */
};

/* ---- weights ------------------------------------------------------------------------------------------ */

struct finder {
    struct engine *engine;
    int64_t width;     /* width of the tower's rows */
    const char *wrong; /* name of the first tensor that is missing or has another shape; NULL: none */
};

static const struct extra_tensor *look_up(const struct finder *f, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, PREFIX "%s", name);
    return engine_extra_tensor(f->engine, path);
}

/* Finds a vector (rows 0) or a matrix of the given shape. */
static const struct extra_tensor *find_tensor(struct finder *f, const char *name, int64_t rows, int64_t cols)
{
    const struct extra_tensor *t = look_up(f, name);
    if (t && t->cols == cols && (rows ? t->matrix && t->rows == rows : t->vector.data != NULL))
        return t;
    f->wrong = f->wrong ? f->wrong : name;
    return NULL;
}

/* Finds the matrix of a linear layer and its bias, unless `bias` is NULL. */
static struct layer find_linear(struct finder *f, const char *weight, const char *bias, int64_t rows,
                                int64_t cols)
{
    const struct extra_tensor *w = find_tensor(f, weight, rows, cols),
                              *b = bias ? find_tensor(f, bias, 0, rows) : NULL;
    return (struct layer){
        .matrix = w ? w->matrix : NULL, .rows = rows, .bias = b ? b->vector : (struct tensor){0}};
}

static struct layer find_norm(struct finder *f, const char *weight, const char *bias)
{
    const struct extra_tensor *w = find_tensor(f, weight, 0, f->width),
                              *b = find_tensor(f, bias, 0, f->width);
    return (struct layer){.scale = w ? w->vector : (struct tensor){0},
                          .bias = b ? b->vector : (struct tensor){0}};
}

/* Returns the rows of a matrix whose number only the checkpoint determines: min to ROWS_MAX. */
static int64_t free_rows(struct finder *f, const char *name, int64_t min)
{
    const struct extra_tensor *t = look_up(f, name);
    if (t && t->rows >= min && t->rows <= ROWS_MAX)
        return t->rows;
    f->wrong = f->wrong ? f->wrong : name;
    return 1;
}

#define LINEAR(name, rows, cols) find_linear(f, name ".weight", name ".bias", rows, cols)
#define NORM(name)               find_norm(f, name ".weight", name ".bias")

static void find_layers(struct finder *f, struct heads *h)
{
    int64_t width = f->width, inner = free_rows(f, "find.inner.weight", 1),
            kinds = free_rows(f, "find.out.weight", ELEMENT_KINDS),
            far = free_rows(f, "pointer.far.weight", 1);
    *h = (struct heads){.engine = f->engine,
                        .norm = NORM("norm"),
                        .present = LINEAR("present", PATCH_SLOTS, width),
                        .shift = LINEAR("shift", PATCH_SLOTS, width),
                        .letters = find_linear(f, "letter", NULL, LETTER_COLS, width),
                        .find_norm = NORM("find.norm"),
                        .inner = LINEAR("find.inner", inner, width),
                        .find = LINEAR("find.out", kinds, inner),
                        .pointer_norm = NORM("pointer.norm"),
                        .query = LINEAR("pointer.query", POINTER_WIDTH, width),
                        .key = LINEAR("pointer.key", POINTER_WIDTH, width),
                        .nothing = LINEAR("pointer.nothing", 1, width),
                        .far = LINEAR("pointer.far", far, width),
                        .down = find_linear(f, "pointer.down", NULL, POINTER_STEPS, far),
                        .right = find_linear(f, "pointer.right", NULL, POINTER_STEPS, far)};
    find_tensor(f, "block.attn.qkv.weight", 3 * width, width);
}

struct heads *heads_open(struct engine *g, struct err *e)
{
    struct finder f = {.engine = g, .width = engine_config(g)->vit.hidden};
    if (!engine_extra_tensor(g, PREFIX "letter"))
        return NULL;
    struct heads *h = xcalloc(1, sizeof *h);
    find_layers(&f, h);
    if (!f.wrong)
        return h;
    free(h);
    err_set(e, ERR_MODEL, "model '%s': tensor '" PREFIX "%s' is missing or has the wrong shape",
            engine_dir(g), f.wrong);
    return NULL;
}

/* ---- outputs ------------------------------------------------------------------------------------------- */

void patch_map_free(struct patch_map *m)
{
    free(m->patches);
    *m = (struct patch_map){0};
}

static void read_letters(struct patch_reading *out, const float *said)
{
    for (int s = 0; s < PATCH_SLOTS; s++) {
        const float *letters = said + 2 * PATCH_SLOTS + s * PATCH_LETTERS;
        int best = 1;
        for (int c = 2; c < PATCH_LETTERS; c++)
            best = letters[c] > letters[best] ? c : best;
        out->present[s] = 1 / (1 + expf(-said[s]));
        out->shift[s] = fminf(fmaxf(said[PATCH_SLOTS + s], 0), 1);
        out->letter[s] = (uint8_t)best;
    }
}

static void read_kinds(struct patch_reading *out, const float *said)
{
    float most = said[0], sum = 0;
    for (int k = 1; k < ELEMENT_KINDS; k++)
        most = fmaxf(most, said[k]);
    for (int k = 0; k < ELEMENT_KINDS; k++)
        sum += out->kind[k] = expf(said[k] - most);
    for (int k = 0; k < ELEMENT_KINDS; k++)
        out->kind[k] /= sum;
}

/* ---- layers -------------------------------------------------------------------------------------------- */

struct reader { /* reads one image */
    const struct heads *h;
    const struct vision_tower_rows *r;
    struct backend *b;
    struct patch_map *out;
};

static void normalize(const struct reader *x, struct tensor y, struct tensor rows, const struct layer *l)
{
    x->b->ops->layernorm(x->b, y, rows, l->scale, l->bias, reader_eps);
}

static void multiply(const struct reader *x, struct tensor y, struct tensor rows, const struct layer *l,
                     enum epilogue end)
{
    x->b->ops->linear(x->b, y, rows, l->matrix, l->bias, end, SET);
}

/* Characters [n, SAID_COLS] of the tower's rows. */
static void run_letters(const struct reader *x, struct tensor rows, struct tensor u, struct tensor out)
{
    const struct heads *h = x->h;
    normalize(x, u, rows, &h->norm);
    multiply(x, tensor_cols(out, 0, PATCH_SLOTS), u, &h->present, EPI_NONE);
    multiply(x, tensor_cols(out, PATCH_SLOTS, PATCH_SLOTS), u, &h->shift, EPI_NONE);
    multiply(x, tensor_cols(out, 2 * PATCH_SLOTS, LETTER_COLS), u, &h->letters, EPI_NONE);
}

/* Element classes [n, find.rows] of the block's rows; m is [n, inner.rows] of scratch. */
static void run_finder(const struct reader *x, struct tensor rows, struct tensor u, struct tensor m,
                       struct tensor out)
{
    normalize(x, u, rows, &x->h->find_norm);
    multiply(x, m, u, &x->h->inner, EPI_GELU);
    multiply(x, out, m, &x->h->find, EPI_NONE);
}

/* The pointer's numbers [n, POINTER_COLS] of the block's rows; f is [n, far.rows] of scratch. */
static void run_pointer(const struct reader *x, struct tensor rows, struct tensor u, struct tensor f,
                        struct tensor out)
{
    const struct heads *h = x->h;
    int64_t at = 0;
    normalize(x, u, rows, &h->pointer_norm);
    multiply(x, tensor_cols(out, at, POINTER_WIDTH), u, &h->query, EPI_NONE);
    multiply(x, tensor_cols(out, at += POINTER_WIDTH, POINTER_WIDTH), u, &h->key, EPI_NONE);
    multiply(x, tensor_cols(out, at += POINTER_WIDTH, 1), u, &h->nothing, EPI_NONE);
    multiply(x, f, u, &h->far, EPI_NONE);
    multiply(x, tensor_cols(out, at += 1, POINTER_STEPS), f, &h->down, EPI_NONE);
    multiply(x, tensor_cols(out, at + POINTER_STEPS, POINTER_STEPS), f, &h->right, EPI_NONE);
}

/* Copies a tensor's numbers to the host; the caller frees them. */
static float *numbers_of(struct backend *b, struct tensor t)
{
    float *out = xmalloc((size_t)t.rows * (size_t)t.cols, sizeof *out);
    b->ops->download(b, (struct tensor){out, DT_F32, t.rows, t.cols, t.cols}, t);
    return out;
}

static struct patch_reading *readings_of(struct backend *b, struct tensor letters, struct tensor kinds,
                                         struct tensor pointer)
{
    autofree float *said = numbers_of(b, letters), *found = numbers_of(b, kinds),
                   *points = numbers_of(b, pointer);
    struct patch_reading *out = xmalloc((size_t)letters.rows, sizeof *out);
    for (int64_t i = 0; i < letters.rows; i++) {
        read_letters(&out[i], said + i * SAID_COLS);
        read_kinds(&out[i], found + i * kinds.cols);
        memcpy(&out[i].pointer, points + i * POINTER_COLS, sizeof out[i].pointer);
    }
    return out;
}

static int read_rows(void *arg, const struct vision_tower_rows *r, struct err *e)
{
    struct reader *x = arg;
    struct backend *b = x->b = r->vision->backend;
    const struct ops *ops = b->ops;
    const struct heads *h = x->h;
    (void)e; /* if memory is short, the map stays empty */
    enum dtype act = r->vision->act;
    int64_t n = r->rows.rows;
    struct tensor u = ops->try_alloc(b, act, n, r->rows.cols), m = ops->try_alloc(b, act, n, h->inner.rows),
                  f = ops->try_alloc(b, act, n, h->far.rows),
                  letters = ops->try_alloc(b, DT_F32, n, SAID_COLS),
                  kinds = ops->try_alloc(b, DT_F32, n, h->find.rows),
                  pointer = ops->try_alloc(b, DT_F32, n, POINTER_COLS);
    if (u.data && m.data && f.data && letters.data && kinds.data && pointer.data) {
        run_letters(x, r->rows, u, letters);
        vision_extra_block(r);
        run_finder(x, r->rows, u, m, kinds);
        run_pointer(x, r->rows, u, f, pointer);
        *x->out = (struct patch_map){r->patch_rows, r->patch_cols, r->patch, r->scale,
                                     readings_of(b, letters, kinds, pointer)};
    }
    struct tensor *all[] = {&u, &m, &f, &letters, &kinds, &pointer};
    for (int i = 0; i < 6; i++)
        if (all[i]->data)
            ops->free(b, all[i]);
    return 0;
}

int heads_read(const struct heads *h, const struct image *im, const volatile int *cancel,
               struct patch_map *out, struct err *e)
{
    struct reader x = {.h = h, .out = out};
    *out = (struct patch_map){0};
    return engine_use_tower(h->engine, im, cancel, read_rows, &x, e);
}
