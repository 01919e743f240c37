/* drift.c - measures how much f16 recurrent states change a model's predictions (drift.h). */
#include "session/drift.h"

#include "base/file.h"
#include "base/number.h"
#include "capacity/cost.h"
#include "session/engine_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- comparing ---------------------------------------------------------------------------------------- */

static double log_sum(const float *x, int n)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, (double)x[i]);
    for (int i = 0; i < n; i++)
        sum += exp((double)x[i] - most);
    return most + log(fmax(sum, 1)); /* the largest term alone is 1 */
}

/* Returns the Kullback-Leibler divergence of the softmax of q from that of p, in nat. */
static double divergence(const float *p, const float *q, int n)
{
    double zp = log_sum(p, n), zq = log_sum(q, n), kl = 0;
    for (int i = 0; i < n; i++)
        kl += exp((double)p[i] - zp) * ((double)p[i] - zp - (double)q[i] + zq);
    return kl;
}

void drift_add(struct drift *d, const float *exact, const float *x, int n, bool late)
{
    double kl = divergence(exact, x, n);
    d->steps++;
    d->sum += kl;
    d->last += late ? kl : 0;
    d->most = fmax(d->most, kl);
    d->same += floats_argmax(exact, n) == floats_argmax(x, n);
    for (int i = 0; i < n; i++)
        d->logit = fmax(d->logit, fabs((double)exact[i] - (double)x[i]));
}

/* ---- measuring ------------------------------------------------------------------------------- */

enum {
    PROMPT = 32,
    MOST = 256, /* maximum and minimum number of decoded tokens */
    LEAST = 32,
};

/* Returns the number of tokens that decode in about a second, at 32 GB/s on a CPU and 4 TB/s on a GPU. */
static int tokens_of(const struct engine *g)
{
    double budget = g->backend->ops->memory_left ? 4e12 : 32e9,
           n = budget / cost_weight_bytes(&g->config, g->weights.vocab, 2, g->weights.element_bytes);
    int most = g->config.lm.max_tokens - PROMPT < MOST ? g->config.lm.max_tokens - PROMPT : MOST;
    return n > most ? most : n < LEAST ? (LEAST < most ? LEAST : most) : (int)n;
}

/* Returns the i-th token of a pseudorandom text, which depends only on the vocabulary size. */
static int32_t synthetic_token(const struct engine *g, int i)
{
    uint64_t z = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    int32_t id = (int32_t)((z ^ z >> 27) % (uint64_t)tokenizer_size(g->tokenizer));
    return g->config.vision && id == g->config.image_token ? 0 : id;
}

static struct drift measure(struct engine *g, int tokens)
{
    const struct lm_config *c = &g->config.lm;
    struct lm_state s[2], *both[2] = {&s[0], &s[1]};
    int32_t prompt[PROMPT];
    struct drift d = {0};
    float *logits[2];
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = synthetic_token(g, i);
    for (int k = 0; k < 2; k++) {
        logits[k] = xmalloc((unsigned long)g->weights.vocab, sizeof(float));
        state_init(&s[k], c, g->backend, (struct state_types){g->act, k ? DT_F16 : DT_F32, g->types.kv});
        language_forward(&g->language, &s[k], prompt, PROMPT, NULL, 0);
    }
    for (int i = 0; i < tokens; i++) {
        int32_t id = synthetic_token(g, PROMPT + i);
        language_decode_batch(&g->language, both, 2, (int32_t[]){id, id});
        language_logits_batch(&g->language, both, 2, logits);
        drift_add(&d, logits[0], logits[1], g->weights.vocab, i >= tokens - tokens / 4);
    }
    for (int k = 0; k < 2; k++) {
        state_free(&s[k], c, g->backend);
        free(logits[k]);
    }
    return d;
}

/* ---- the cache ------------------------------------------------------------------------------- */

enum { VERSION = 2 };

static const char magic[] = "HOLODRFT";

struct drift_file { /* no padding */
    char magic[8];
    uint64_t version, key; /* key: hash of model, storage types, backend and number of tokens */
    struct drift drift;
    uint64_t hash; /* XXH3 of all bytes before it */
};

static uint64_t cache_key(const struct engine *g, const struct engine_options *o, int tokens)
{
    uint64_t facts[] = {g->hash,          (uint64_t)o->weights,
                        (uint64_t)g->act, (uint64_t)g->weights.rounded,
                        (uint64_t)tokens, XXH3_64bits(g->backend->ops->name, strlen(g->backend->ops->name))};
    return XXH3_64bits(facts, sizeof facts);
}

static bool load_cached(struct drift *d, const char *path, uint64_t key)
{
    struct drift_file f;
    autofree char *data = NULL;
    size_t len = 0;
    bool sound = file_exists(path) && file_read(path, sizeof f, &data, &len, NULL) == 0 && len == sizeof f;
    if (sound) {
        memcpy(&f, data, sizeof f);
        sound = !memcmp(f.magic, magic, sizeof f.magic) && f.version == VERSION && f.key == key &&
                f.hash == XXH3_64bits(&f, offsetof(struct drift_file, hash)) && f.drift.steps > 0;
    }
    if (sound)
        *d = f.drift;
    return sound;
}

static void save_cached(const struct drift *d, const char *path, uint64_t key)
{
    struct drift_file f = {.version = VERSION, .key = key, .drift = *d};
    struct err e = ERR_INIT;
    memcpy(f.magic, magic, sizeof f.magic);
    f.hash = XXH3_64bits(&f, offsetof(struct drift_file, hash));
    if (file_write(path, &f, sizeof f, &e))
        warn("the drift of fp16 states will be measured again at the next start: %s", e.text);
}

/* ---- the gate -------------------------------------------------------------------------------- */

int drift_gate(struct engine *g, const struct engine_options *o, struct err *e)
{
    int tokens = tokens_of(g);
    if (tokens <= 0)
        return 0; /* the context is shorter than the prompt */
    uint64_t key = cache_key(g, o, tokens);
    autofree char *path = o->cache ? weight_cache_path(key, "drift", NULL) : NULL;
    if (!path || !load_cached(&g->drift, path, key)) {
        g->drift = measure(g, tokens);
        if (path)
            save_cached(&g->drift, path, key);
    }
    double kl = g->drift.sum / g->drift.steps, same = (double)g->drift.same / g->drift.steps;
    if (kl <= DRIFT_KL && same >= DRIFT_SAME)
        return 0;
    return err_set(
        e, ERR_MODEL,
        "model '%s': fp16 states change the output: over %d tokens the mean KL divergence from fp32 is "
        "%.2g nat (at most %g), and %.0f %% of the most probable tokens are the same (at least %g %%); use "
        "--state fp32",
        o->dir, g->drift.steps, kl, DRIFT_KL, 100 * same, 100 * DRIFT_SAME);
}
