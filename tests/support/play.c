/* play.c - see play.h. */
/* cmocka.h needs these headers first */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include "play.h"

#include "base/buf.h"
#include "base/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct played played;

/* ---- conversation partner ------------------------------------------------------------------------ */

static int see_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place, struct err *e)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < n; i++)
        buf_puts(&b, parts[i].text ? parts[i].text : "[image]");
    assert_true(played.n_told < PLAY_TURNS);
    played.told[played.n_told++] = buf_take(&b);
    buf_free(&b);
    return played.script->user(m, parts, n, place, e);
}

static void repaint(void)
{
    GC gc = XCreateGC(played.dpy, DefaultRootWindow(played.dpy), 0, NULL);
    XSetForeground(played.dpy, gc, played.n_asked % 2 ? 0xffffff : 0x2040c0);
    XFillRectangle(played.dpy, DefaultRootWindow(played.dpy), gc, 640, 100, 150, 400);
    XFreeGC(played.dpy, gc);
    XSync(played.dpy, False);
}

static int see_speak(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e)
{
    assert_true(played.n_asked < PLAY_TURNS);
    played.downs[played.n_asked] = pressed(played.dpy);
    played.asked[played.n_asked++] = *r;
    if (played.repaint)
        repaint();
    if (played.stop_at == played.n_asked)
        screen_stop_all(SIGINT);
    if (played.meanwhile && played.n_asked == 1)
        played.meanwhile();
    if (played.always)
        played.always();
    clock_sleep_ms(played.slow_ms);
    int rc = played.script->speak(m, r, out, e);
    if (played.cut_off_at == played.n_asked)
        out->finish = FINISH_LENGTH;
    if (*r->cancel)
        out->finish = FINISH_CANCELLED;
    return rc;
}

/* ---- run ----------------------------------------------------------------------------------------- */

void play_forget(void)
{
    for (int i = 0; i < played.n_told; i++)
        free(played.told[i]);
    memset(&played, 0, sizeof played);
}

void play_open(struct play *p)
{
    memset(p, 0, sizeof *p);
    stage_open(&p->stage);
    p->dialect = dialect_load("holo3", NULL);
    p->o = (struct agent_options){
        .task = "Press Save",
        .dialect = p->dialect,
        .screen = p->stage.s,
        .progress = &p->progress,
        .window = WINDOW_SAWTOOTH,
        .max_images = PLAY_TURNS, /* keeps all images, so that nothing is repeated after an eviction */
        .sampling = {0.5f, 1, 100},
        .max_steps = 40,
        .max_seconds = 60,
        .max_errors = 5,
        .max_repeats = 5,
        .max_still = 12,
        .settle = {1, 20, 200},
    };
    play_forget();
}

static void forget_run(struct play *p)
{
    story_free(&p->story);
    record_free(&p->record);
    free(p->transcript);
    agent_result_free(&p->r);
    p->transcript = NULL;
}

void play_close(struct play *p)
{
    forget_run(p);
    play_forget();
    dialect_free(p->dialect);
    stage_close(&p->stage);
}

void play_run(struct play *p, struct llm *m, struct overseer *o)
{
    char *runs = xasprintf("%s/runs", p->stage.x.dir);
    forget_run(p);
    p->o.llm = m;
    p->o.overseer = o;
    p->e = (struct err)ERR_INIT;
    screen_stop_all(0);
    struct trace *t = trace_open(runs, &p->e);
    assert_non_null(t);
    p->o.trace = t;
    stage_clear(&p->stage);
    p->rc = agent_run(&p->o, &p->r, &p->e);
    screen_stop_all(0);
    char *dir = xstrdup(trace_dir(t));
    assert_int_equal(trace_close(t, NULL), 0);
    assert_int_equal(record_open(&p->record, dir, NULL), 0);
    story_make(&p->story, &p->record);
    free(dir);
    free(runs);
    /* In each case the end is recorded and nothing is down. */
    assert_string_equal(field_text(p->story.end, "status"), agent_status_name(p->r.status));
    assert_int_equal(pressed(p->stage.other), 0);
}

void play_script(struct play *p, const char *replies, struct overseer *o)
{
    struct llm *m = llm_script(replies, strlen(replies));
    struct llm_ops ops = *m->ops;
    played.script = m->ops;
    played.dpy = p->stage.other;
    ops.user = see_user;
    ops.speak = see_speak;
    m->ops = &ops;
    play_run(p, m, o);
    p->transcript = xstrdup(llm_script_transcript(m));
    m->ops = played.script;
    llm_free(m);
}
