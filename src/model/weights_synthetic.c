/* weights_synthetic.c - synthetic weights for benchmarks (bind_options.random).
 *
 * Matrices are uniform with a mean square of one over their columns, so that inputs of size one give
 * outputs of size one. Other tensors resemble trained ones: norms near 1, typical time steps and decays.
 * Values do not grow without bound and are not zero, so that timings match a real model. */
#include "base/buf.h"
#include "model/weights_impl.h"
#include "ops/synthetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static struct synthetic values_of(const struct binder *x, const char *name, int64_t cols)
{
    static const struct {
        const char *end;
        float mean, spread;
    } known[] = {{"model.norm.weight", 0, 0.1f}, {"layernorm.weight", 0, 0.1f},
                 {"q_norm.weight", 0, 0.1f},     {"k_norm.weight", 0, 0.1f},
                 {"embed_tokens.weight", 0, 1},  {"norm.weight", 1, 0.1f},
                 {"norm1.weight", 1, 0.1f},      {"norm2.weight", 1, 0.1f},
                 {"norm_f.weight", 1, 0.1f},     {"mlp1.0.weight", 1, 0.1f},
                 {"A_log", 1.4f, 1.3f},          {"dt_bias", -4.5f, 2},
                 {"mixer.D", 1, 0.1f},           {"bias", 0, 0.05f},
                 {"conv1d.weight", 0, 0.8f},     {"embeddings.weight", 0, 1},
                 {"cls_token.token", 0, 1},      {"pos_embed", 0, 1}};
    struct synthetic m = {x->o->random + XXH3_64bits(name, strlen(name)), 0, sqrtf(3.0f / (float)cols)};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (text_ends(name, known[i].end)) {
            m.spread = known[i].spread;
            m.offset = known[i].mean / known[i].spread;
            break;
        }
    return m;
}

bool binder_makes(const struct binder *x)
{
    return x->o->random && !x->o->shapes_only;
}

struct weight *binder_synthetic_weight(struct binder *x, const struct st_tensor *t, enum quant_format format,
                                       enum dtype dtype, int64_t rows, int64_t cols)
{
    struct synthetic m = values_of(x, t->name, cols);
    /* cppcheck-suppress returnDanglingLifetime ; a weight keeps no reference to m */
    return x->b->ops->make_synthetic_weight(x->b, format, dtype, rows, cols, &m);
}

void binder_make(struct binder *x, const struct st_tensor *t, struct tensor out)
{
    struct synthetic m = values_of(x, t->name, out.cols);
    x->b->ops->fill_synthetic(x->b, out, &m);
}

void binder_make_host(const struct binder *x, const struct st_tensor *t, float *out, size_t n)
{
    struct synthetic m = values_of(x, t->name, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        out[i] = (synthetic_unit(m.seed, i) + m.offset) * m.spread;
}
