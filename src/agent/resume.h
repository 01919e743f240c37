/* resume.h - a run that continues an interrupted one.
 *
 * The conversation is repeated without its screenshots, because they show a desktop that has changed since.
 * The model is told that the run was interrupted; its next turn has a new screenshot.  Steps, tokens and time
 * count on.
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
    const char *lead; /* of a last turn without a reply; NULL: there is none */

    /* totals so far */
    int number, steps; /* of the last step; steps that count */
    double seconds;
    int64_t generated, forced, prefilled, reused, typed;
    int acted;
};

#endif
