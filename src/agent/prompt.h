/* prompt.h - what the loop says to the model, in the words of its dialect.
 *
 * All results are owned by the caller.
 */
#ifndef HOLORUN_AGENT_PROMPT_H
#define HOLORUN_AGENT_PROMPT_H

#include "actions/action.h"
#include "actions/dialect.h"
#include "gate/secret.h"

struct prompt_vars { /* what the system text may speak of */
    const char *task;
    int max_steps, width, height;
    double max_seconds;
};

/* text with the marks of dialects and templates in it made inert: "<observation>" becomes "&lt;observation>".  Done here
 * with the task and with all that is told of an action: both can hold what somebody wrote on a screen. */
char *prompt_escape(const char *text);

char *prompt_system(const struct dialect *d, const struct prompt_vars *w, struct err *e);
/* The system text, and what the model has to know of secrets when there are any. */
char *prompt_secrets(const char *system, const struct secrets *s);
char *prompt_task(const struct dialect *d, const char *task);

/* What came of an action; "" when the dialect says nothing about an empty result. */
char *prompt_output(const struct dialect *d, const char *tool, const char *result, struct err *e);
char *prompt_error(const struct dialect *d, const char *tool, const char *message, struct err *e);

/* The dialect's name of the tool that a reply called: the one of this kind whose name stands in the
 * reply, else the first of this kind.  ACT_NONE: any kind.  Borrowed from the dialect. */
const char *prompt_tool(const struct dialect *d, enum action_kind kind, const char *reply);

/* The reply as history holds it: without reasoning before "</think>" and the newline at its end. */
char *prompt_reply_as_history(const char *reply);

#endif
