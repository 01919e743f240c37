/* cmd_stop.c - `holorun stop`: ends runs of this user that other processes carry out. */
#include "commands.h"

#include "brakes/stopping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    bool all, list, json;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_spec options[] = {
    {"all", 'a', OPTION_FLAG, AT(all), .help = "stop every run"},
    {"list", 'l', OPTION_FLAG, AT(list), .help = "say what is running and stop nothing"},
    {"json", 'j', OPTION_FLAG, AT(json), .help = "one JSON object on stdout"},
    {0},
};

const struct command stop_command = {
    .name = "stop",
    .arguments = "[RUN|DISPLAY]",
    .purpose = "stop a run",
    .details = "Asks the run to end and waits until it has: what is pressed goes up at once, the record is "
               "closed, and "
               "the run's exit code is 130.  A run that does not answer within two seconds is asked again, "
               "then killed, "
               "and what it held is released.\n\n"
               "Without an argument it stops the only run there is.  Of several, name one by the number of "
               "its process, "
               "its display, or its run directory.\n\n"
               "Exit status: 0 stopped; 1 no such run; 2 several runs and none named; 3 one has not ended.",
    .examples = "holorun stop\nholorun stop :1\nholorun stop --list\nholorun stop --all\n",
    .options = options,
    .run = cmd_stop,
};

/* ---- which ---------------------------------------------------------------------------------------- */

/* ":1" is the first screen of ":1.0". */
static bool same_display(const char *a, const char *b)
{
    const char *colon = strrchr(a, ':'), *dot = colon ? strchr(colon, '.') : NULL;
    size_t n = dot ? (size_t)(dot - a) : strlen(a);
    return !strncmp(a, b, n) && (!b[n] || b[n] == '.');
}

static bool named(const struct running *r, const char *name)
{
    char pid[16];
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    const char *slash = strrchr(r->dir, '/'), *last = slash ? slash + 1 : r->dir;
    snprintf(pid, sizeof pid, "%d", (int)r->pid);
    return !strcmp(name, pid) || same_display(name, r->display) ||
           (n && ((strlen(r->dir) == n && !strncmp(name, r->dir, n)) ||
                  (strlen(last) == n && !strncmp(name, last, n))));
}

/* Those that are meant come first; how many. */
static int choose(struct running *runs, int n, const struct settings *s, const char *name, struct err *e)
{
    int k = 0;
    for (int i = 0; i < n; i++)
        if (s->all || s->list || !name || named(&runs[i], name)) {
            struct running swap = runs[k];
            runs[k++] = runs[i];
            runs[i] = swap;
        }
    if (k == 0 && !s->all && !s->list)
        return n == 0 ? err_set(e, ERR_FAILED, "nothing is running")
                      : err_set(e, ERR_FAILED,
                                "no run is called '%s'; holorun stop --list names those there are", name);
    if (k > 1 && !s->all && !s->list)
        return err_set(e, ERR_USAGE,
                       "%d runs are under way: name one by process, display or run directory, or --all", k);
    return k;
}

/* ---- what is said ---------------------------------------------------------------------------------- */

static void print_run(FILE *f, const struct running *r)
{
    fprintf(f, "%d\t%s\t%s\t%s\n", (int)r->pid, r->display, *r->dir ? r->dir : "-", r->task);
}

static void put_run(struct buf *b, const struct running *r, const struct stopping *s)
{
    const char *const pairs[][2] = {
        {"display", r->display}, {"run_dir", r->dir}, {"task", r->task}, {"started", r->started}};
    buf_printf(b, "{\"pid\": %d", (int)r->pid);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        buf_printf(b, ", \"%s\": ", pairs[i][0]);
        buf_put_json(b, pairs[i][1], strlen(pairs[i][1]));
    }
    if (s)
        buf_printf(b, ", \"stopped\": \"%s\", \"ms\": %.0f", stopped_name(s->how), s->ms);
    buf_putc(b, '}');
}

/* runs, or what became of them. */
static void print_json(const struct running *runs, const struct stopping *stopped, int n, int code)
{
    struct buf b;
    buf_init(&b, 16 << 20);
    buf_printf(&b, "{\"exit\": %d, \"runs\": [", code);
    for (int i = 0; i < n; i++) {
        buf_puts(&b, i ? ", " : "");
        put_run(&b, stopped ? &stopped[i].run : &runs[i], stopped ? &stopped[i] : NULL);
    }
    buf_puts(&b, "]}");
    puts(b.data);
    buf_free(&b);
}

static void print_stopped(const struct stopping *s)
{
    static const char *const how[] = {[STOPPED_GONE] = "had ended by itself",
                                      [STOPPED_ASKED] = "stopped",
                                      [STOPPED_URGED] = "stopped, asked twice",
                                      [STOPPED_KILLED] = "killed, and what it held is released",
                                      [STOPPED_NOT] = "has NOT ended"};
    fprintf(stderr, "holorun: run %d on %s %s after %.1f s: %s\n", (int)s->run.pid, s->run.display,
            how[s->how], s->ms / 1000, s->run.task);
}

/* ---- the command ----------------------------------------------------------------------------------- */

static int stop_them(const struct running *runs, int n, bool json)
{
    struct stopping *s = xcalloc((unsigned long)n + 1, sizeof *s);
    for (int i = 0; i < n; i++)
        s[i].run = runs[i];
    int code = stopping_run(s, n) ? ERR_ENV : 0;
    for (int i = 0; i < n && !json; i++)
        print_stopped(&s[i]);
    if (json)
        print_json(NULL, s, n, code);
    free(s);
    return code;
}

int cmd_stop(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    struct running *runs = NULL;
    int n = options_parse(&stop_command, &s, argc, argv, &e);
    if (n == OPTIONS_HELP)
        return 0;
    if (n > 1)
        n = err_set(&e, ERR_USAGE, "name one run, or --all");
    else if (n == 1 && (s.all || s.list))
        n = err_set(&e, ERR_USAGE, "--all and --list name every run already");
    if (n < 0)
        return options_refuse(&stop_command, &e);
    int all = running_list(&runs, &e), code = 0;
    int chosen = all < 0 ? -1 : choose(runs, all, &s, n ? argv[0] : NULL, &e);
    if (chosen < 0) {
        code = options_failed(&e);
        for (int i = 0; i < all && e.kind == ERR_USAGE; i++)
            print_run(stderr, &runs[i]);
    } else if (s.list && s.json) {
        print_json(runs, NULL, chosen, 0);
    } else if (s.list) {
        for (int i = 0; i < chosen; i++)
            print_run(stdout, &runs[i]);
    } else {
        code = stop_them(runs, chosen, s.json);
    }
    free(runs);
    return code;
}
