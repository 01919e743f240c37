/* stop.c - `holorun stop`: ends runs of this user in other processes. */
#include "cmd/commands.h"

#include "run/running.h"
#include "screen/x11/displays.h"
#include "screen/x11/input_owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    bool all, list, json;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_spec options[] = {
    {"all", 'a', OPTION_FLAG, AT(all), .help = "stop every run"},
    {"list", 'l', OPTION_FLAG, AT(list), .help = "list the runs without stopping any"},
    JSON_OPTION(struct settings),
    {0},
};

const struct command stop_command = {
    .name = "stop",
    .arguments = "[RUN|DISPLAY]",
    .purpose = "stop a run",
    .details =
        "Asks the run to end and waits until it has ended. Pressed keys and buttons are released at once, "
        "the record is closed, and the run exits with 130. A run that does not respond within two seconds "
        "is asked again, then killed, and its pressed keys and buttons are released.\n\n"
        "Without an argument it stops the only run, or the one that controls $DISPLAY. If there are "
        "several, select one by its process id, its display, or its run directory. A process with several "
        "runs, such as qa, is listed once itself and once for each session, numbered 4711.3. The number of "
        "the process ends all its sessions; the number or display of a session ends only that session.\n\n"
        "Exit status: 0 stopped; 1 no such run; 2 several runs and none selected; 3 a run has not ended.",
    .examples =
        "holorun stop\nholorun stop :1\nholorun stop 4711.3\nholorun stop --list\nholorun stop --all\n",
    .options = options,
    .run = cmd_stop,
};

/* Writes the number of a run, such as "4711" or "4711.3". */
static const char *number_of(const struct running *r, char out[32])
{
    snprintf(out, 32, r->session ? "%d.%d" : "%d", (int)r->pid, r->session);
    return out;
}

static bool named(const struct running *r, const char *name)
{
    char number[32];
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    const char *slash = strrchr(r->dir, '/'), *last = slash ? slash + 1 : r->dir;
    return !strcmp(name, number_of(r, number)) || (*name && *r->display && displays_same(name, r->display)) ||
           (n && *r->dir &&
            ((strlen(r->dir) == n && !strncmp(name, r->dir, n)) ||
             (strlen(last) == n && !strncmp(name, last, n))));
}

/* Copies one entry per process; a process without its own entry is represented by its first session.  Returns
 * their number. */
static int whole(const struct running *runs, int n, struct running *out)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (i && runs[i].pid == runs[i - 1].pid)
            continue;
        out[k] = runs[i];
        out[k++].session = 0;
    }
    return k;
}

static int several(int n, struct err *e)
{
    return err_set(e, ERR_USAGE,
                   "%d runs are active: select one by process, display or run directory, or use --all", n);
}

/* Finds the run that controls a display by asking its server, for another spelling of the display or a run
 * with another runtime directory.  Returns 1, 0 if there is none, or -1 with e. */
static int ask_server(const char *display, const struct running *runs, int n, struct running *out,
                      struct err *e)
{
    struct input_owner d;
    bool here;
    if (!display || !input_owner_find(display, &d, &here))
        return 0;
    if (!here)
        return err_set(e, ERR_ENV, "display '%s' is controlled by process %d on %.*s: stop it there", display,
                       (int)d.pid, (int)strcspn(d.where, " "), d.where);
    *out = (struct running){.pid = d.pid, .born = d.start_ticks};
    snprintf(out->display, sizeof out->display, "%s", display);
    snprintf(out->task, sizeof out->task, "the run that controls this display");
    for (int i = 0; i < n; i++)
        if (runs[i].pid == d.pid && !runs[i].session)
            *out = runs[i];
    return 1;
}

/* Fills out with the selected runs; returns their number, or -1 with e. */
static int choose(const struct running *runs, int n, const struct settings *s, const char *name,
                  struct running *out, struct err *e)
{
    char number[32];
    int k = 0, processes = whole(runs, n, out);
    if (s->all)
        return processes;
    if (n == 0 && !name && (k = ask_server(getenv("DISPLAY"), runs, n, out, e)))
        return k;
    if (n == 0 && !name)
        return err_set(e, ERR_FAILED, "no active runs");
    if (!name)
        return processes == 1 ? 1 : several(processes, e);
    for (int i = 0; i < processes && !k; i++) /* matches processes with or without their own entry */
        if (!strcmp(name, number_of(&out[i], number)))
            out[k++] = out[i];
    bool found = k > 0;
    for (int i = 0; i < n && !found; i++)
        if (named(&runs[i], name))
            out[k++] = runs[i];
    if (k == 0 && strchr(name, ':') && (k = ask_server(name, runs, n, out, e)))
        return k;
    if (k == 0)
        return n ? err_set(e, ERR_FAILED, "run '%s' not found; holorun stop --list lists the active runs",
                           name)
                 : err_set(e, ERR_FAILED, "no active runs");
    return k == 1 ? 1 : several(k, e);
}

static void print_run(FILE *f, const struct running *r)
{
    char number[32];
    fprintf(f, "%s\t%s\t%s\t%s\n", number_of(r, number), *r->display ? r->display : "-",
            *r->dir ? r->dir : "-", r->task);
}

static json_t *run_json(const struct running *r, const struct stopping *s)
{
    json_t *all = json_pack("{s:i, s:i}", "pid", (int)r->pid, "session", r->session);
    json_set_text(all, "display", r->display);
    json_set_text(all, "run_dir", r->dir);
    json_set_text(all, "task", r->task);
    json_set_text(all, "started", r->started);
    if (s) {
        json_set_text(all, "stopped", stopped_name(s->how));
        json_set_rounded(all, "ms", s->ms, 0);
    }
    return all;
}

/* Prints runs, or the results of stopping them. */
static void print_json(const struct running *runs, const struct stopping *stopped, int n, int code)
{
    json_t *all = json_pack("{s:i}", "exit", code), *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list,
                              run_json(stopped ? &stopped[i].run : &runs[i], stopped ? &stopped[i] : NULL));
    json_object_set_new(all, "runs", list);
    options_print_json(all, 0);
}

static void print_stopped(const struct stopping *s)
{
    static const char *const how[] = {[STOPPED_GONE] = "had already ended",
                                      [STOPPED_ASKED] = "stopped",
                                      [STOPPED_URGED] = "stopped after the second request",
                                      [STOPPED_KILLED] = "killed; its keys and buttons are released",
                                      [STOPPED_NOT] = "has NOT ended"};
    char number[32];
    fprintf(stderr, "holorun: run %s%s%s %s after %.1f s: %s\n", number_of(&s->run, number),
            *s->run.display ? " on " : "", s->run.display, how[s->how], s->ms / 1000, s->run.task);
}

static int stop_them(const struct running *chosen, int n, const struct running *runs, int n_runs, bool json)
{
    autofree struct stopping *s = xcalloc((unsigned long)n + 1, sizeof *s);
    for (int i = 0; i < n; i++)
        s[i].run = chosen[i];
    int code = stopping_run(s, n, runs, n_runs) ? ERR_ENV : 0;
    for (int i = 0; i < n && !json; i++)
        print_stopped(&s[i]);
    if (json)
        print_json(NULL, s, n, code);
    return code;
}

static void list_them(FILE *f, const struct running *runs, int n, bool json)
{
    if (json)
        print_json(runs, NULL, n, 0);
    for (int i = 0; i < n && !json; i++)
        print_run(f, &runs[i]);
}

static int carry_out(const struct settings *s, const char *name, struct err *e)
{
    struct running *runs = NULL;
    int n = running_list(&runs, e);
    if (n < 0)
        return options_failed(e);
    if (s->list) {
        list_them(stdout, runs, n, s->json);
        free(runs);
        return 0;
    }
    autofree struct running *chosen = xcalloc((unsigned long)n + 1, sizeof *chosen);
    int k = choose(runs, n, s, name, chosen, e), code;
    if (k >= 0)
        code = stop_them(chosen, k, runs, n, s->json);
    else
        code = options_failed(e);
    if (code == ERR_USAGE)
        list_them(stderr, runs, n, false);
    free(runs);
    return code;
}

int cmd_stop(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    int n = options_parse(&stop_command, &s, argc, argv, &e);
    if (n == 1 && (s.all || s.list))
        n = err_set(&e, ERR_USAGE, "--all and --list take no run: they select every run");
    if (n < 0)
        return options_refuse(&stop_command, &e);
    return carry_out(&s, n ? argv[0] : NULL, &e);
}
