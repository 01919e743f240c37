/* prompt.h - the texts of the loop's prompts, from the templates of a dialect. The caller frees all results
 * except prompt_tool()'s. Functions with e return NULL on errors.
 */
#pragma once

#include "actions/action.h"
#include "actions/dialect.h"
#include "base/secret.h"

struct prompt_vars { /* for the system text */
    const char *task;
    int max_steps, width, height;
    double max_seconds;
};

/* Escapes the marks of dialects and templates in a text: "<observation>" becomes "&lt;observation>". The
 * functions below apply it to the task and to results, which can contain text from the screen. */
char *prompt_escape(const char *text);

char *prompt_system(const struct dialect *d, const struct prompt_vars *w, struct err *e);
/* Returns the system text followed by the names of the secrets, if any. */
char *prompt_secrets(const char *system, const struct secrets *s);
char *prompt_task(const struct dialect *d, const char *task);

/* Returns the text for the result of an action; "" if the result is empty and the dialect omits it. */
char *prompt_output(const struct dialect *d, const char *tool, const char *result, struct err *e);
char *prompt_error(const struct dialect *d, const char *tool, const char *message, struct err *e);

/* Returns the dialect's name of the tool that a reply called: among the tools of this kind the one that the
 * reply names, else the first. ACT_NONE: any kind, "unknown" if none is named. Borrowed from the dialect. */
const char *prompt_tool(const struct dialect *d, enum action_kind kind, const char *reply);

/* Returns the reply as kept in the history: without the reasoning before "</think>" and the final newline. */
char *prompt_reply_as_history(const char *reply);
