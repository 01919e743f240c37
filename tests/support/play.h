/* play.h - the agent loop with scripted replies, on a real display with a window that records its events.
 *
 * `played` shows the loop's requests and texts, stage_events() its input, and the record its end. Include
 * after check.h.
 */
#pragma once

#include "replies.h"
#include "stage.h"

#include "agent/agent.h"
#include "trace/story.h"

enum { PLAY_TURNS = 64 };

/* Requests that the loop made, and side effects before a reply; empty after play_open() and play_forget(). */
struct played {
    const struct llm_ops *script;
    struct llm_request asked[PLAY_TURNS];
    int n_asked;
    char *told[PLAY_TURNS]; /* texts of each user's turn, as tokenized */
    int n_told;
    int downs[PLAY_TURNS]; /* keys and buttons down at each request */

    Display *dpy;
    int stop_at, cut_off_at; /* number of the request, from 1; 0: never */
    bool repaint;            /* the screen changes before each reply */
    void (*meanwhile)(void); /* called at the first request; NULL: nothing */
    void (*always)(void);    /* called at each request */
    double slow_ms;
};
extern struct played played;

struct play {
    struct stage stage;
    struct dialect *dialect;
    struct progress progress; /* silent */
    struct agent_options o;
    struct agent_result r;
    struct err e;
    int rc;
    char *transcript; /* of the last play_script() */
    struct record record;
    struct story story;
};

void play_open(struct play *p);
void play_close(struct play *p);
void play_forget(void);

/* Performs one run with this partner and overseer (NULL: none), reads its record and story, and checks that
 * nothing is down. */
void play_run(struct play *p, struct llm *m, struct overseer *o);
/* Does the same with scripted replies; set `played` before, read it after. */
void play_script(struct play *p, const char *replies, struct overseer *o);
