/* full_start.c - see full_start.h. */
#include "full_start.h"

#include "check.h"

#include "base/clock.h"
#include "capacity/memory.h"
#include "checkpoint/find.h"
#include "session/session_impl.h"

#include <malloc.h>

static void near(const char *what, double have, double want)
{
    check_note("%s: %.1f MB, planned %.1f MB", what, have * 1e-6, want * 1e-6);
    /* 4 % above the plan with 31,666 tensors, 5.3 % on a machine with a load of 30 */
    if (!CHECK_SANITIZED && (have > want * 1.07 || have < want * 0.95))
        fail_msg("%s: %.1f MB where %.1f MB are planned", what, have * 1e-6, want * 1e-6);
}

struct plan full_planned(const char *dir, const struct engine_options *o)
{
    struct err e = ERR_INIT;
    struct model_config c;
    struct plan p;
    struct safetensors *s = safetensors_open(dir, &e);
    if (!s || config_load(&c, dir, &e) || plan_make(&p, &c, s, o, &e))
        fail_msg("%s", e.text);
    safetensors_close(s);
    size_t before = memory_heap();
    struct tokenizer *t = tokenizer_open(dir, NULL);
    p.tokenizer = memory_heap() - before;
    tokenizer_free(t);
    return p;
}

struct plan full_starts(const char *dir, const struct engine_options *o, bool largest)
{
    struct err e = ERR_INIT;
    struct plan p = full_planned(dir, o);
    malloc_trim(0); /* releases memory used for reading it */
    struct memory_use before = memory_use();
    int64_t start = clock_ns();
    struct engine *g = engine_open(o, &e);
    if (!g)
        fail_msg("%s", e.text);
    struct session *s = session_new(g, 1);
    if (session_pin(s, 0, &e)) /* allocates the session's state */
        fail_msg("%s", e.text);
    session_unpin(s);
    double ms = clock_ms_since(start);
    if (largest && vision_reserve(&g->vision, 1, 2, g->config.vit.max_patches / 2, &e))
        fail_msg("%s", e.text);
    double later = g->config.vit.max_patches && !largest ? (double)p.vision : 0;
    struct memory_use after = memory_use();
    check_note("ready after %.2f s", ms * 1e-3);
    assert_non_null(g->files);
    near("memory of its own", (double)(after.own - before.own),
         (double)(plan_own(&p, 1, 0) - p.base) - later);
    near("all its memory", (double)after.resident,
         (double)(plan_own(&p, 1, 0) - p.base + before.own + before.file) - later);
    session_free(s);
    engine_close(g);
    return p;
}
