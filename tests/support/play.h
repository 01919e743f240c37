/* play.h - the loop over scripted replies, on a real display with a window that writes down what reaches it.
 *
 * What the loop asked for and told is seen at the conversation partner (played), what it did at the window
 * (stage_events), how it ended in the record.  To be included after check.h.
 */
#ifndef HOLORUN_TESTS_PLAY_H
#define HOLORUN_TESTS_PLAY_H

#include "replies.h"
#include "stage.h"

#include "agent/agent.h"
#include "trace/story.h"

enum { PLAY_TURNS = 64 };

/* What the partner saw, and what it does beside replying; empty after play_open() and play_forget(). */
struct played {
    const struct llm_ops *script;
    struct llm_request asked[PLAY_TURNS];
    int n_asked;
    char *told[PLAY_TURNS]; /* texts of each user's turn, as they were read */
    int n_told;
    int downs[PLAY_TURNS]; /* keys and buttons down when asked */

    Display *dpy;
    int stop_at, cut_off_at; /* the asking at which this happens, from 1; 0: never */
    bool repaint;            /* the screen changes before each reply */
    void (*meanwhile)(void); /* at the first asking; NULL: nothing */
    void (*always)(void);    /* at each */
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

/* One run with this partner under this overseer (NULL: none): its record and story are read, nothing is
 * down. */
void play_run(struct play *p, struct llm *m, struct overseer *o);
/* The same over these replies; what `played` is to do is set before, what it saw is there after. */
void play_script(struct play *p, const char *replies, struct overseer *o);

#endif
