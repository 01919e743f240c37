/* record.c - `holorun record`: records a session on a display as a script or a test; see
 * record/recorder.h. */
#include "cmd/commands.h"

#include "base/clock.h"
#include "base/file.h"
#include "record/recorder.h"
#include "record/suite_file.h"
#include "run/place.h"
#include "run/running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *display, *out;
    const char *secrets[OPTION_LIST_MAX + 1];
    bool test, elements, json, quiet;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_spec options[] = {
    {"out", 'o', OPTION_TEXT, AT(out), "FILE", 0, 4096, NULL,
     "file to write; it must not exist; default: recording.jsonl, with --test recording.yaml"},
    {"test", 't', OPTION_FLAG, AT(test),
     .help = "write a suite for holorun qa to FILE, with a check of the window that the last action opened "
             "or closed, and the recording next to it"},
    {"display", 'd', OPTION_TEXT, AT(display), "NAME", 0, 256, NULL, "X display to record", "DISPLAY"},
    {"secret", 0, OPTION_LIST, AT(secrets), "NAME=env:VARIABLE|NAME=file:PATH", 0, 4096, NULL,
     "record typing of this value as {{NAME}}; may be repeated", NULL},
    {"elements", 0, OPTION_FLAG, AT(elements), NULL, 0, 0, "yes",
     "record the names of elements, through AT-SPI", NULL},
    JSON_OPTION(struct settings),
    QUIET_OPTION(struct settings),
    {0},
};

const struct command record_command = {
    .name = "record",
    .arguments = "",
    .purpose = "record your actions on a display as a script or a test",
    .details =
        "Watches the display while you work and writes each click, drag, scroll, text and key as a step, "
        "until you press Escape twice, Ctrl-C in the terminal, or run holorun stop. It sends no input "
        "itself. run --fake FILE repeats the recording with rules, record and report as in any run.\n\n"
        "For each target the recording stores the element if the program provides it (AT-SPI): role, name"
        " or label, menu, neighbours, whether it was ticked; also an image and the position in the "
        "window. Playback searches for the element; else for the image, in the window or anywhere on the "
        "screen; else it uses the position, if the screen still looks alike there. So windows may have "
        "moved or have another size, theme or font. In a program that now uses another language, an "
        "element is also found by its path in the tree, and the answer counts it as mended. An element "
        "with another name at the recorded position is not used, nor one of several equal ones if none "
        "has the recorded neighbours, nor a box that is ticked now and was not. The run waits until the "
        "target, or the window and field that had the keyboard focus, appear; if they do not, the run "
        "ends with exit code 1 and reports the step. A click into a text field, Ctrl+A and the text typed "
        "there are one step of the run. An action is performed as soon as its window looks as it did before "
        "the recorded action, if the action before it had changed that window; otherwise when the screen has "
        "settled. Where you waited for the screen, playback waits "
        "until the screen stops changing; where a window opened, until one of its class and title is "
        "open. If the last action opened or closed a window or changed a title, playback succeeds only "
        "after that has happened.\n\n"
        "Text typed into a password field, or in a terminal that does not show it, and each value of "
        "--secret are written as {{NAME}}, and playback needs --secret NAME. Other text is recorded as "
        "typed.\n\n"
        "The file is JSON Lines, one step per line, and may be edited. It is written as FILE.part and "
        "renamed at the end; the part of a killed recording can be played.",
    .examples = "holorun record -o save.jsonl\n"
                "holorun run --fake save.jsonl \"Save the letter\"\n"
                "holorun record --test -o save.yaml --secret PASSWORD=env:LETTER_PASSWORD\n"
                "holorun qa save.yaml\n",
    .options = options,
    .run = cmd_record,
};

struct names {
    char *suite, *recording; /* suite NULL: none */
};

/* Returns the names of the output files; save.yaml has its recording in save.jsonl. */
static struct names names_of(const struct settings *s)
{
    const char *out = s->out    ? s->out
                      : s->test ? "recording.yaml"
                                : "recording.jsonl",
               *dot = strrchr(out, '.');
    struct names n = {0};
    if (!s->test) {
        n.recording = xstrdup(out);
        return n;
    }
    bool yaml = dot && !strchr(dot, '/') && dot > out && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
    n.suite = xstrdup(out);
    n.recording = xasprintf("%.*s.jsonl", yaml ? (int)(dot - out) : (int)strlen(out), out);
    return n;
}

static void tell(const struct settings *s, const struct names *n, const struct recorder_result *r)
{
    if (s->json) {
        json_t *all = json_pack("{s:i, s:i, s:i}", "exit", 0, "steps", r->steps, "named", r->named);
        json_t *hidden = json_array();
        json_set_text(all, "recording", n->recording);
        json_set_text(all, "suite", n->suite);
        for (int i = 0; i < r->n_hidden; i++)
            json_array_append_new(hidden, json_string(r->hidden[i]));
        json_object_set_new(all, "hidden", hidden);
        options_print_json(all, 0);
    }
    if (s->quiet)
        return;
    fprintf(stderr, "holorun: %d step%s in '%s'; play with: ", r->steps, r->steps == 1 ? "" : "s",
            n->recording);
    if (n->suite)
        fprintf(stderr, "holorun qa %s\n", n->suite);
    else
        fprintf(stderr, "holorun run --fake %s \"TASK\"\n", n->recording);
    for (int i = 0; i < r->n_hidden; i++)
        fprintf(stderr, "holorun: {{%s}} replaces a typed password; pass it with --secret %s=...\n",
                r->hidden[i], r->hidden[i]);
}

static int record_display(const struct settings *s, const struct names *n, struct screen *screen,
                          const struct secrets *secrets, struct err *e)
{
    struct recorder_result r;
    struct err unlisted = ERR_INIT;
    char started[28];
    clock_iso(started);
    const struct recorder_options o = {.screen = screen,
                                       .path = n->recording,
                                       .secrets = secrets,
                                       .elements = s->elements,
                                       .quiet = s->quiet};
    if (n->suite && file_exists(n->suite))
        return err_set(e, ERR_USAGE, "'%s' already exists; choose another file with -o, or remove it",
                       n->suite);
    if (screen_watch(screen, e))
        return -1;
    struct running_own *told = running_enter(0, screen_name(screen), "recording", started, &unlisted);
    if (!told)
        warn("holorun stop cannot find this recording: %s", unlisted.text);
    int rc = recorder_run(&o, &r, e);
    if (rc == 0 && n->suite)
        rc = suite_file_write(n->suite, n->recording, &r, e);
    running_leave(told);
    if (rc == 0)
        tell(s, n, &r);
    return rc;
}

int cmd_record(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    struct secrets *secrets = NULL;
    struct screen *screen = NULL;
    int n = options_parse(&record_command, &s, argc, argv, &e);
    if (n == OPTIONS_HELP)
        return 0;
    if (n > 0)
        n = err_set(&e, ERR_USAGE, "record takes no argument; set the file with -o");
    if (n < 0)
        return options_refuse(&record_command, &e);
    struct run_settings at = {.display = s.display};
    struct on_desk *desk;
    struct names names = names_of(&s);
    screen_install_signals();
    int rc = place_settle(&at, &desk, &e) || secrets_open(&secrets, s.secrets, &e) ||
                     !(screen = place_screen(&at, (struct screen_options){0}, &e))
                 ? -1
                 : record_display(&s, &names, screen, secrets, &e);
    screen_close(screen);
    secrets_free(secrets);
    free(names.suite);
    free(names.recording);
    return rc ? options_failed(&e) : 0;
}
