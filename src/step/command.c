/* command.c - parses commands of the stepper from lines of text. */
#include "step/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum arguments { ARGS_NONE, ARGS_TEXT, ARGS_MAYBE_TEXT, ARGS_NUMBER, ARGS_MAYBE_NUMBER, ARGS_PLACE };

/* The letters are those of the window's buttons (scene.c). */
static const struct {
    const char *name;
    char letter;
    enum arguments args;
    const char *help;
} verbs[] = {
    /* clang-format off */
    [STEP_RUN] = {"run", 'n', ARGS_NONE, "run                  run this step, then show the next"},
    [STEP_EDIT] = {"edit", 'e', ARGS_TEXT,
                   "edit {\"x\": 40}       change members of the action, or all of it"},
    [STEP_TARGET] = {"target", 'p', ARGS_PLACE,
                     "target X Y           move the target, in pixels of the screenshot"},
    [STEP_TARGET2] = {"target2", 'o', ARGS_PLACE, "target2 X Y          move the end of a drag"},
    [STEP_TEXT] = {"text", 't', ARGS_TEXT, "text WORDS           type or answer this instead"},
    [STEP_RESET] = {"reset", 'u', ARGS_NONE, "reset                undo these changes"},
    [STEP_VETO] = {"veto", 'v', ARGS_MAYBE_TEXT, "veto [REASON]        reject it and tell the model why"},
    [STEP_AGAIN] = {"again", 'a', ARGS_NONE, "again                sample another reply"},
    [STEP_REWIND] = {"rewind", 'r', ARGS_NUMBER, "rewind STEP          continue from an earlier step"},
    [STEP_FORK] = {"fork", 'f', ARGS_MAYBE_NUMBER, "fork [N]             sample 3 or N more replies"},
    [STEP_TAKE] = {"take", 'k', ARGS_NUMBER, "take N               take one of these; 0 is the first"},
    [STEP_CONTINUE] = {"continue", 'c', ARGS_NONE, "continue             run until a breakpoint"},
    [STEP_BREAK] = {"break", 'b', ARGS_TEXT, "break WHEN           step 7 | kind click | text PATTERN |\n"
                    "                          window PATTERN | irreversible | confidence 0.8 | no-effect;\n"
                    "                          window Shop and text Pay"},
    [STEP_UNTIL] = {"until", 'g', ARGS_TEXT,
                    "until WHEN           run to here: until WHEN, or another breakpoint"},
    [STEP_TOGGLE] = {"toggle", 'd', ARGS_NUMBER, "toggle N             switch a breakpoint off or on"},
    [STEP_CLEAR] = {"clear", 'x', ARGS_MAYBE_NUMBER, "clear [N]            delete a breakpoint, or all"},
    [STEP_STOP] = {"stop", 's', ARGS_MAYBE_TEXT,
                   "stop [REASON]        end the run (also quit, exit, q, Ctrl-D)"},
    [STEP_SHOW] = {"show", 'l', ARGS_MAYBE_TEXT, "show                 show this step again"},
    /* clang-format on */
};
enum { VERBS = sizeof verbs / sizeof *verbs };

const char *step_verb_name(enum step_verb v)
{
    return verbs[v].name;
}

const char *step_help(void)
{
    static char help[4096];
    size_t n = 0;
    for (int i = 0; i < VERBS && n < sizeof help; i++)
        n += (size_t)snprintf(help + n, sizeof help - n, "  %c  %s\n", verbs[i].letter, verbs[i].help);
    return help;
}

/* Finds a verb by name, letter or unambiguous prefix. Returns -1 if none matches, -2 if several do. */
static int find_verb(const char *word, size_t len)
{
    static const char *const ends[] = {"quit", "exit", "q"}; /* names for "stop" in other debuggers */
    int found = -1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strlen(ends[i]) == len && !strncmp(ends[i], word, len))
            return STEP_STOP;
    for (int i = 0; i < VERBS; i++) {
        if (len == 1 && verbs[i].letter == *word)
            return i;
        if (strncmp(verbs[i].name, word, len) != 0)
            continue;
        if (!verbs[i].name[len])
            return i;
        found = found == -1 ? i : -2;
    }
    return found;
}

/* Parses a number up to a million and moves *at past it. Returns -1 if there is none. */
static int parse_number(const char **at)
{
    char *end;
    long n = strtol(*at, &end, 10);
    if (end == *at || n < 0 || n > 1000000 || (*end && *end != ' ' && *end != '\t'))
        return -1;
    *at = end + strspn(end, " \t");
    return (int)n;
}

static int parse_place(const char *rest, struct step_command *out, struct err *e)
{
    out->x = parse_number(&rest);
    out->y = out->x < 0 ? -1 : parse_number(&rest);
    if (out->y < 0 || *rest)
        return err_set(e, ERR_USAGE, "'%s' needs two numbers: %s X Y", step_verb_name(out->verb),
                       step_verb_name(out->verb));
    return 0;
}

static int normalise(const char *rest, struct step_command *out, struct err *e)
{
    enum arguments args = verbs[out->verb].args;
    const char *name = step_verb_name(out->verb);
    bool number = args == ARGS_NUMBER || args == ARGS_MAYBE_NUMBER;
    if (args == ARGS_PLACE)
        return parse_place(rest, out, e);
    if (number && *rest)
        out->n = parse_number(&rest);
    else if (args == ARGS_NUMBER)
        out->n = -1;
    if (number && (out->n < 0 || *rest))
        return err_set(e, ERR_USAGE, "'%s' needs a number", name);
    if (args == ARGS_NONE && *rest)
        return err_set(e, ERR_USAGE, "'%s' takes no argument", name);
    if (args == ARGS_TEXT && !*rest)
        return err_set(e, ERR_USAGE, "'%s' needs an argument", name);
    if (!number)
        snprintf(out->text, sizeof out->text, "%s", rest);
    return 0;
}

int step_parse(const char *line, struct step_command *out, struct err *e)
{
    char copy[STEP_LINE];
    line += strspn(line, " \t");
    size_t n = strcspn(line, "\r\n");
    if (n >= sizeof copy)
        return err_set(e, ERR_USAGE, "the command is longer than %d bytes", STEP_LINE - 1);
    while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    snprintf(copy, sizeof copy, "%.*s", (int)n, line);
    size_t len = strcspn(copy, " \t");
    int verb = len ? find_verb(copy, len) : -1;
    if (verb < 0)
        return err_set(e, ERR_USAGE, "%s '%.*s'; 'help' lists them",
                       verb == -2 ? "ambiguous command" : "unknown command", (int)len, copy);
    *out = (struct step_command){.verb = (enum step_verb)verb};
    return normalise(copy + len + strspn(copy + len, " \t"), out, e);
}
