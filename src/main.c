/* main.c - the table of commands, and the choice among them.
 *
 *   holorun COMMAND ...      that command
 *   holorun "TASK"           run: the task is one argument with a space in it
 *
 * A single word that is not a command is refused rather than run as a task: a mistyped command must not
 * move the pointer.
 */
#include "base/buf.h"
#include "base/file.h"
#include "cli/manual.h"
#include "cmd/commands.h"
#include "cmd/topics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct help_settings {
    bool man, all;
    const char *pages;
};
static const struct option_spec help_options[] = {
    {"man", 0, OPTION_FLAG, offsetof(struct help_settings, man),
     .help = "print the manual page in the format of man -l -"},
    {"pages", 0, OPTION_TEXT, offsetof(struct help_settings, pages), "DIR", 0, 4096, NULL,
     "write the manual pages of the program and of all commands to this folder", NULL, .show = OPTION_MORE},
    {"all", 'a', OPTION_FLAG, offsetof(struct help_settings, all), .help = "also list rarely used options"},
    {0},
};
const struct command help_command = {
    "help",
    "[COMMAND" TOPIC_NAMES "]",
    "explain the program, one command, the dialects or the providers",
    NULL,
    "holorun help run\nholorun help dialects\nholorun help --man | man -l -\n",
    help_options,
    cmd_help};

const struct command completion_command = {"completion",
                                           "bash|zsh|fish",
                                           "print a completion script for a shell",
                                           NULL,
                                           "source <(holorun completion bash)\nsource <(holorun completion "
                                           "zsh)\nholorun completion fish | source\n",
                                           NULL,
                                           cmd_completion};

#define COMMAND_ADDRESS(name) &name##_command,
static const struct command *const commands[] = {COMMANDS(COMMAND_ADDRESS) NULL};

static const struct command *find_command(const char *name)
{
    for (const struct command *const *c = commands; *c; c++)
        if (!strcmp((*c)->name, name))
            return *c;
    return NULL;
}

/* Reports an unknown command with the closest name. help: topics of `holorun help` are candidates, too. */
static void refuse_name(const char *word, bool help)
{
    const char *names[64];
    int n = 0;
    for (const struct command *const *c = commands; *c && n < 64; c++)
        names[n++] = (*c)->name;
    for (const struct topic *t = topics; help && t->name && n < 64; t++)
        names[n++] = t->name;
    const char *near = !strcmp(word, "merge") ? "qa merge" : nearest_word(word, names, n);
    if (near)
        fprintf(stderr, "holorun: unknown command '%s'; did you mean '%s'?\n", word, near);
    else
        fprintf(stderr, "holorun: unknown command '%s'\n", word);
}

/* Reports an unknown command, and how to run the words as a task, which ends at the first option. */
static int refuse_words(char *const *words, int count)
{
    int task = 1;
    if (!*words[0]) {
        fputs("holorun: the task is empty\n", stderr);
        return ERR_USAGE;
    }
    refuse_name(words[0], false);
    while (task < count && words[task][0] != '-')
        task++;
    autofree char *quoted = options_quoted(words, task);
    fprintf(stderr, "holorun: to run it as a task: holorun run %s", quoted);
    for (int i = task; i < count; i++)
        fprintf(stderr, " %s", words[i]);
    fputc('\n', stderr);
    return ERR_USAGE;
}

/* ---- topics ---------------------------------------------------------------------------------------- */

static const struct topic *find_topic(const char *name)
{
    for (const struct topic *t = topics; t->name; t++)
        if (!strcmp(t->name, name))
            return t;
    return NULL;
}

static void print_topic(const struct topic *t)
{
    autofree char *text = t->text();
    printf("%s:\n\n%s", t->title, text);
}

static void print_manual(FILE *f)
{
    manual_page(commands, f);
    for (const struct topic *t = topics; t->name; t++) {
        autofree char *text = t->text();
        manual_page_section(t->name, t->title, text, f);
    }
}

/* ---- small commands ------------------------------------------------------------------------- */

static int write_page(const char *dir, const struct command *c, struct err *e)
{
    struct file_stream s;
    autofree char *path = c ? xasprintf("%s/holorun-%s.1", dir, c->name) : xasprintf("%s/holorun.1", dir);
    int rc = file_stream_open(&s, path, e);
    if (rc == 0) {
        if (c)
            manual_page_of(c, s.f);
        else
            print_manual(s.f);
        rc = file_stream_close(&s, e);
    }
    return rc;
}

static int write_pages(const char *dir, struct err *e)
{
    int rc = write_page(dir, NULL, e);
    for (const struct command *const *c = commands; *c && rc == 0; c++)
        rc = write_page(dir, *c, e);
    return rc;
}

int cmd_help(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct help_settings s = {0};
    int n = options_parse(&help_command, &s, argc, argv, &e);
    if (n < 0)
        return options_refuse(&help_command, &e);
    if (s.pages)
        return write_pages(s.pages, &e) ? options_failed(&e) : 0;
    if (s.man) {
        print_manual(stdout);
        return 0;
    }
    if (n == 0) {
        manual_overview(commands, stdout);
        return 0;
    }
    const struct topic *t = find_topic(argv[0]);
    if (t) {
        print_topic(t);
        return 0;
    }
    const struct command *c = find_command(argv[0]);
    if (!c) {
        refuse_name(argv[0], true);
        fputs("holorun: 'holorun help' lists all commands\n", stderr);
        return ERR_USAGE;
    }
    manual_help(c, s.all, stdout);
    return 0;
}

int cmd_completion(int argc, char **argv)
{
    struct err e = ERR_INIT;
    int n = options_parse(&completion_command, NULL, argc, argv, &e);
    if (n < 0)
        return options_refuse(&completion_command, &e);
    static const char shells[] = "bash|zsh|fish";
    static void (*const scripts[])(const struct command *const *, FILE *) = {manual_bash, manual_zsh,
                                                                             manual_fish};
    int shell = n == 1 ? text_choice(shells, argv[0]) : -1;
    if (shell < 0) {
        err_set(&e, ERR_USAGE, "completion supports these shells: %s", shells);
        return options_refuse(&completion_command, &e);
    }
    scripts[shell](commands, stdout);
    return 0;
}

/* ---- choosing the command -------------------------------------------------------------------------- */

/* Inserts "run", so that every command finds its name in argv[0]. */
static int run_task(int argc, char **argv)
{
    static char name[] = "run";
    argv[0] = name;
    return cmd_run(argc, argv);
}

static int run_command_line(int argc, char **argv)
{
    if (argc < 2) {
        manual_overview(commands, stderr);
        return ERR_USAGE;
    }
    const char *first = argv[1];
    const struct command *c = find_command(first);
    if (c)
        return c->run(argc - 1, argv + 1);
    if (!strcmp(first, "--help") || !strcmp(first, "-h")) {
        manual_overview(commands, stdout);
        return 0;
    }
    if (!strcmp(first, "--version") || !strcmp(first, "-V"))
        return cmd_version(1, argv);
    if (first[0] == '-' || strchr(first, ' '))
        return run_task(argc, argv);
    return refuse_words(argv + 1, argc - 1);
}

/* ---- memory --------------------------------------------------------------------------------- */

#ifndef __SANITIZE_ADDRESS__

/* These functions replace the C library's for all libraries. libxdo, libyaml and others crash or abort
 * silently if a small allocation fails; here the program ends with a message and releases its keys. Callers
 * of large allocations handle the failure themselves. */
enum { SMALL = 1 << 20 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void *or_die(void *p, size_t size)
{
    if (!p && size && size < SMALL)
        die(ERR_ENV, "out of memory: %zu bytes requested", size);
    return p;
}

void *malloc(size_t size)
{
    return or_die(__libc_malloc(size), size);
}

void *calloc(size_t n, size_t size)
{
    return or_die(__libc_calloc(n, size), n && size < SIZE_MAX / n ? n * size : SMALL);
}

void *realloc(void *old, size_t size)
{
    return or_die(__libc_realloc(old, size), size);
}

/* GLib allocates its slices with this function. */
int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) || !alignment || (alignment & (alignment - 1)))
        return EINVAL;
    void *p = or_die(__libc_memalign(alignment, size), size);
    if (p || !size)
        *out = p;
    return p || !size ? 0 : ENOMEM;
}

#endif

/* Opens /dev/null for each standard descriptor that the caller has closed; otherwise the next file or socket
 * would get its number. stdout is opened for reading, so that a lost answer is an error. */
static void open_closed(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) < 0)
            open("/", O_RDONLY); /* no /dev here: only the number matters */
}

/* Runs the command line. An answer that could not be written to stdout is an error. */
int main(int argc, char **argv)
{
    open_closed();
    int code = run_command_line(argc, argv);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "holorun: cannot write to stdout: %s\n", strerror(errno));
        code = code == ERR_NONE ? ERR_ENV : code;
    }
    return code;
}
