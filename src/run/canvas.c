/* canvas.c - limits the image size so that a step takes at most STEP_SECONDS on a CPU.  See job.h.
 *
 * The time of a vision encoder that sees a whole screen at once (Qwen) grows with the square of the pixels;
 * the published limit is made for GPUs.  When the model has been opened, its rate is measured with two small
 * images, and the time to decode a token with two tokens.  The time of a step is then
 *
 *      encoder(pixels) + prompt(tokens of the image + TEXT_TOKENS) + REPLY_TOKENS * time per token
 *
 * The limit is the largest image with which a step takes STEP_SECONDS, but at least LEAST_PIXELS, below which
 * text on a screen cannot be read.  The result is a setting of the run, like one from the command line: it is
 * recorded, and a replay does not measure again. */
#include "base/bar.h"
#include "capacity/cost.h"
#include "model/config.h"
#include "run/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEP_SECONDS = 20,
    TEXT_TOKENS = 300,
    REPLY_TOKENS = 100,
    LEAST_PIXELS = 1152 * 640, /* a screen of 1920x1080 scaled to 60 %; 720 tokens */
    PROBE = 256,               /* width and height of a probe's image in pixels */
};

/* Measures the seconds to encode one image.  Encoded images are cached, so each probe needs another shade. */
static int probe_tower(struct session *s, int shade, double *seconds, struct err *e)
{
    struct image im;
    if (image_alloc(&im, PROBE, PROBE, e))
        return -1;
    for (int i = 0; i < 3 * PROBE * PROBE; i++)
        im.rgb[i] = (uint8_t)((i * 37 >> 3) + shade);
    double before = session_stats(s).vision_ms;
    int rc = session_append_image(s, &im, e);
    *seconds = (session_stats(s).vision_ms - before) / 1000;
    image_free(&im);
    return rc;
}

static int probe_token(struct session *s, double *seconds, struct err *e)
{
    const int32_t id = 1;
    double before = session_stats(s).decode_ms;
    int rc = session_append(s, &id, 1, e) || session_compute_logits(s, e) ? -1 : 0;
    *seconds = (session_stats(s).decode_ms - before) / 1000;
    return rc;
}

/* Measures the rates of the model.  The first run of each probe warms up: files are mapped and scratch memory
 * is allocated.  Returns -1 with e. */
static int probe(struct engine *g, struct pace *p, struct err *e)
{
    const struct model_config *c = engine_config(g);
    double tower[2], token[2];
    int rc = 0, patches = engine_image_tokens(g, PROBE, PROBE, NULL, NULL) * c->vit.merge * c->vit.merge;
    struct session *picture = session_new(g, 1), *text = session_new(g, 1);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = probe_tower(picture, i, &tower[i], e) || probe_token(text, &token[i], e) ? -1 : 0;
    session_free(picture);
    session_free(text);
    if (rc)
        return -1;
    p->rate = cost_patches_flop(c, 0, patches) / fmax(tower[1], 1e-6);
    p->token = token[1];
    return 0;
}

static double step_seconds(const struct engine *g, const struct pace *p, int64_t tokens)
{
    const struct model_config *c = engine_config(g);
    double flop = cost_patches_flop(c, 0, tokens * c->vit.merge * c->vit.merge) +
                  cost_text_flop(c, tokens + TEXT_TOKENS, 0);
    return flop / p->rate + REPLY_TOKENS * p->token;
}

int job_fit_canvas(struct job_model *m, const struct run_settings *s, struct err *e)
{
    const struct model_config *c = engine_config(m->engine);
    if (!c->vision || !family_is_qwen(c->family) || !strcmp(engine_isa(m->engine), "cuda"))
        return 0;
    if (probe(m->engine, &m->pace, e))
        return -1;
    if (s->max_pixels)
        return 0;
    int side = c->vit.patch * c->vit.merge, cell = side * side, tokens = c->vit.max_pixels / cell;
    while (tokens > LEAST_PIXELS / cell && step_seconds(m->engine, &m->pace, tokens) > STEP_SECONDS)
        tokens--;
    if (tokens * cell == c->vit.max_pixels)
        return 0;
    m->max_pixels = tokens * cell > c->vit.min_pixels ? tokens * cell : c->vit.min_pixels;
    return engine_limit_pixels(m->engine, m->max_pixels, e);
}

void job_tell_canvas(const struct job *j)
{
    const struct engine *g = j->model->engine;
    if (!g || j->model->pace.rate <= 0)
        return;
    struct screen_rect view = screen_view(j->screen);
    int tokens = engine_image_tokens(g, view.w, view.h, NULL, NULL);
    double seconds = step_seconds(g, &j->model->pace, tokens);
    char time[32];
    bar_time(seconds > 1 ? seconds : 1, time);
    autofree char *text =
        xasprintf("%d tokens per image%s: a step takes about %s here", tokens,
                  j->model->max_pixels ? ", reduced for this CPU (see --max-pixels)" : "", time);
    progress_head(&j->progress, "images", text);
}
