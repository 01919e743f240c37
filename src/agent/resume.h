/* resume.h - a run that goes on where another one ended.
 *
 * What was said is said again, without its screenshots: they show a desktop that has moved on.  The model is told that
 * the run was interrupted; its next turn has the screen of now.  Steps, tokens and time count on.
 */
#ifndef HOLORUN_AGENT_RESUME_H
#define HOLORUN_AGENT_RESUME_H

#include <stdint.h>

struct resume_turn {
    char *lead, *history; /* before the screenshot; the reply as history holds it */
};

struct resume {
    const char *parent; /* the run's folder */
    const char *system; /* its system text */
    struct resume_turn *turns;
    int n;
    const char *lead; /* of a turn that was not answered any more; NULL: all were */

    /* what it took so far */
    int number, steps; /* its last step; those that count */
    double seconds;
    int64_t generated, forced, prefilled, reused, typed;
    int acted;
};

#endif
