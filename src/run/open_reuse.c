/* open_reuse.c - a run that repeats what an earlier run did, as long as the screens agree. */
#include "run/job.h"

#include "record/playback.h"
#include "replay/reuse.h"

void job_open_reuse(struct job *j)
{
    struct err e = ERR_INIT;
    bool played = j->playback || j->plain || j->planner || j->s.fake;
    if (!j->reuse || j->playback)
        return;
    j->reused = reuse_open(j->reuse, j->llm, j->dialect, j->gate, !played, &e);
    if (!j->reused)
        warn("an earlier run is not reused: %s", e.text);
}

int job_reused(const struct job *j)
{
    return j->reused ? reuse_count(j->reused) : 0;
}

bool job_reused_whole(const struct job *j)
{
    return j->reused && reuse_whole(j->reused);
}

void job_expect(const struct job *j, struct agent_options *o)
{
    if (j->playback || j->reused) {
        o->settle.known = j->playback ? playback_known : reuse_known;
        o->settle.arg = j->playback ? j->llm : j->reused;
    }
    o->expects = j->reused ? reuse_expects : NULL;
    o->follows = j->reused ? reuse_follows : NULL;
}
