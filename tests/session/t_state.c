/* t_state.c - tests sessions with fp16 states: size, equal results in all operations, and the drift check. */
#include "place.h"
#include "timeline.h"
#include "tiny_check.h"

#include "base/file.h"
#include "session/drift.h"
#include "session/session_impl.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static void t_ways(void **state)
{
    static const char *const isas[] = {"ref", NULL};
    for (int i = 0; i < 4; i++) {
        struct engine *g = timeline_engine(&tiny, "cpu", isas[i / 2], i % 2);
        timeline_check(g, NULL);
        engine_close(g);
    }
}

static size_t session_bytes(struct engine *g)
{
    struct session *s = session_new(g, 1);
    size_t n = 0;
    for (int i = 0; i < engine_config(g)->lm.layers; i++)
        n += (size_t)(s->state.now.ssm[i].rows * s->state.now.ssm[i].cols) *
             dtype_size(s->state.now.ssm[i].dtype);
    session_free(s);
    return n;
}

/* fp16 takes half the memory; the logits differ from fp32 by less than 1 %. */
static void t_size(void **state)
{
    struct engine *wide = tiny_open(&tiny, NULL, 1, true), *small = timeline_engine(&tiny, "cpu", NULL, true);
    assert_int_equal(session_bytes(wide), 2 * session_bytes(small));
    struct session *a = session_new(wide, 1), *b = session_new(small, 1);
    for (int i = 0; i < 60; i++) {
        int32_t id = 16 + i * 5 % 256;
        assert_int_equal(session_append(a, &id, 1, NULL) | session_append(b, &id, 1, NULL), 0);
        assert_true(session_logits(a) && session_logits(b));
    }
    double off = tiny_distance(session_logits(b), session_logits(a), engine_vocab(wide));
    check_note("logits after 60 tokens are off by %.1e of their size", off);
    assert_true(off > 0 && off < 0.01);
    session_free(a);
    session_free(b);
    engine_close(wide);
    engine_close(small);
}

/* A session file with one state type is refused by the other. */
static void t_files(void **state)
{
    char path[PLACE_PATH];
    struct err e = ERR_INIT;
    struct engine *wide = tiny_open(&tiny, NULL, 1, true), *small = timeline_engine(&tiny, "cpu", NULL, true);
    struct session *s = session_new(small, 1);
    int32_t id = 20;
    int fd = mkstemp(place_template(path));
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(session_append(s, &id, 1, NULL), 0);
    assert_int_equal(session_save(s, path, &e), 0);
    assert_null(session_load(wide, path, &e));
    assert_non_null(strstr(e.text, "another --state"));
    assert_int_equal(e.kind, ERR_MODEL);
    session_free(s);
    engine_close(wide);
    engine_close(small);
    unlink(path);
}

static struct engine *open_with(const struct tiny *t, enum state_storage numbers, bool cache, struct err *e)
{
    struct engine_options o = {
        .dir = t->dir, .device = "cpu", .threads = 1, .state = numbers, .cache = cache};
    return engine_open(&o, e);
}

/* ---- drift check ----------------------------------------------------------------------------- */

/* Sets all numbers of a tensor. */
static void set_all(struct tiny *t, const char *name, float v)
{
    struct tiny_tensor *x = tiny_find(t, name);
    bool f32 = !strcmp(x->type, "F32");
    uint16_t half = bf16_from_f32(v);
    for (size_t i = 0; i < x->bytes; i += f32 ? 4 : 2)
        memcpy(x->data + i, f32 ? (void *)&v : (void *)&half, f32 ? 4 : 2);
}

/* Builds a model whose states overflow fp16: no decay and steps of thousands. */
static void spoilt(struct tiny *t)
{
    tiny_init(t, 5);
    for (int i = 0; i < 5; i += 4) {
        char name[96];
        snprintf(name, sizeof name, "language_model.backbone.layers.%d.mixer.dt_bias", i);
        set_all(t, name, 30000);
        snprintf(name, sizeof name, "language_model.backbone.layers.%d.mixer.A_log", i);
        set_all(t, name, -18);
    }
    tiny_write(t);
}

static int figures(const char *cache, char *path, size_t size)
{
    char line[256];
    snprintf(line, sizeof line, "ls %s/holorun/weights/*.drift 2>/dev/null", cache);
    FILE *f = popen(line, "re");
    int n = 0;
    while (f && fgets(line, sizeof line, f)) {
        n++;
        line[strcspn(line, "\n")] = 0;
        snprintf(path, size, "%s", line);
    }
    if (f)
        pclose(f);
    return n;
}

static void t_gate(void **state)
{
    char cache[PLACE_PATH], path[300] = "", command[300];
    struct tiny bad;
    struct err e = ERR_INIT;
    assert_non_null(mkdtemp(place_template(cache)));
    setenv("XDG_CACHE_HOME", cache, 1);
    spoilt(&bad);
    for (int i = 0; i < 3; i++) { /* measured, read from the cache, damaged and measured again */
        assert_null(open_with(&bad, STATE_FP16, true, &e));
        if (i == 0)
            check_note("%s", e.text);
        assert_int_equal(e.kind, ERR_MODEL);
        assert_non_null(strstr(e.text, "use --state fp32"));
        assert_int_equal(figures(cache, path, sizeof path), 1);
        if (i == 1)
            assert_int_equal(truncate(path, 20), 0);
    }
    struct engine *g = open_with(&bad, STATE_FP32, true, &e);
    assert_non_null(g);
    assert_int_equal(engine_drift(g)->steps, 0);
    engine_close(g);
    snprintf(command, sizeof command, "rm -r %s", cache);
    assert_int_equal(system(command), 0);
    tiny_free(&bad);
}

static void t_passes(void **state)
{
    struct err e = ERR_INIT;
    struct engine *g = open_with(&tiny, STATE_FP16, false, &e);
    if (!g)
        fail_msg("%s", e.text);
    const struct drift *d = engine_drift(g);
    check_note("%d tokens, mean KL %.1e, %d with the same likeliest token", d->steps, d->sum / d->steps,
               d->same);
    assert_true(d->steps >= 32 && d->sum > 0);
    engine_close(g);
}

static const struct CMUnitTest tests[] = {
    CLAIM("fp16 states have equal bits after rewind, fork, load and in a batch", t_ways),
    CLAIM("fp16 states take half the memory and hardly change the logits", t_size),
    CLAIM("a session saved with fp16 states is refused by fp32 ones", t_files),
    CLAIM("a model whose output changes with fp16 states is refused, and the figure is cached", t_gate),
    CLAIM("a model whose output does not change passes", t_passes),
};

TINY_MAIN(3)
