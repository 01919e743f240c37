/* mcp.c - `holorun mcp`: a server of the Model Context Protocol on stdin and stdout (host/mcp.h); `holorun
 * mcp install HOST` configures a host program to start it (host/install.h). */
#include "cmd/host_command.h"

#include "cli/version.h"
#include "host/install.h"
#include "host/mcp.h"
#include "run/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct command mcp_command = {
    .name = "mcp",
    .arguments = "[install HOST]",
    .purpose = "let coding agents and editors use the desktop (Model Context Protocol)",
    .details =
        "Speaks the Model Context Protocol on stdin and stdout, versions 2024-11-05 to 2026-07-28, with the "
        "tools run_task, run_status, run_answer, run_stop, screenshot, act, windows, snapshot and find. A "
        "host program starts it; the options are those of holorun run and apply to every run. The model is "
        "loaded for the first task. Actions of the host pass the same rules, limits, lock and record as "
        "those of a run. If a rule asks for confirmation, the host asks its user; if the host cannot ask, "
        "the action is refused. With --confirm caller, the calling program may answer with the tool "
        "run_answer; this is dangerous, because the model then approves its own actions. All tools work on "
        "the same display, or on the private desktop of --on. Cancelling a request stops its run at once, "
        "and all runs end when the host exits.\n\n"
        "Arguments are also read as JSON text (\"100\", \"[1, 2]\"), null stands for an absent optional "
        "argument, and a position may be a pair: \"x\": [100, 200]. Unknown arguments are ignored, and the "
        "result lists them. A value of a wrong type is refused; the error names the required type. A reply "
        "has less than 1 MB: larger images are scaled down (the result states the scale), longer texts are "
        "cut.\n\n"
        "An example without pictures: snapshot answers\n\n"
        "  window \"Add a new entry\" 196x148 active\n"
        "    e9 field \"Name\" focused\n"
        "    e10 button \"Cancel\"\n"
        "    e11 button \"OK\"\n\n"
        "act {\"action\": \"fill\", \"ref\": \"e9\", \"value\": \"Ana Lima\"} answers\n\n"
        "  filled field \"Name\"\n"
        "  changed:\n"
        "    e9 field \"Name\" = \"Ana Lima\" focused\n\n"
        "and act {\"action\": \"press\", \"ref\": \"e11\"}: pressed button \"OK\"; the window \"Add a new "
        "entry\" closed. Before each act the element is read again; if it is gone or another one now, one "
        "line says so, and nothing is done. See holorun help elements.\n\n"
        "holorun mcp install HOST prints the lines to add for HOST: claude-code, codex, cursor, "
        "claude-desktop, copilot, opencode or gemini; with --write it adds them to the host's file and "
        "keeps a copy of the old file in the same folder. To configure a host yourself, use the path that "
        "command -v holorun prints:\n\n"
        "  ~/.claude.json (Claude Code), ~/.cursor/mcp.json, ~/.gemini/settings.json,\n"
        "  ~/.config/Claude/claude_desktop_config.json:\n"
        "      \"mcpServers\": {\n"
        "        \"holorun\": {\"command\": \"/usr/bin/holorun\", \"args\": [\"mcp\"],\n"
        "          \"env\": {\"DISPLAY\": \":0\"}}\n"
        "      }\n\n"
        "  ~/.codex/config.toml:\n"
        "      [mcp_servers.holorun]\n"
        "      command = \"/usr/bin/holorun\"\n"
        "      args = [\"mcp\"]\n\n"
        "  ~/.copilot/mcp-config.json:\n"
        "      \"mcpServers\": {\n"
        "        \"holorun\": {\"type\": \"local\", \"command\": \"/usr/bin/holorun\", \"args\": "
        "[\"mcp\"],\n"
        "          \"tools\": [\"*\"]}\n"
        "      }\n\n"
        "  ~/.config/opencode/opencode.json:\n"
        "      \"mcp\": {\n"
        "        \"holorun\": {\"type\": \"local\", \"command\": [\"/usr/bin/holorun\", \"mcp\"]}\n"
        "      }",
    .examples = "holorun mcp install claude-code --write\n"
                "holorun mcp --display :1 --policy strict.yaml\n",
    .options = job_options,
    .run = cmd_mcp,
};

/* ---- install ------------------------------------------------------------------------------------------- */

struct install_settings {
    bool write;
};
static const struct option_spec install_options[] = {
    {"write", 'w', OPTION_FLAG, offsetof(struct install_settings, write),
     .help = "add the lines to the host's file instead of printing them"},
    {0},
};
static const struct command install_command = {
    .name = "mcp",
    .arguments = "install HOST",
    .purpose = "configure a host program to start holorun mcp",
    .examples = "holorun mcp install codex\nholorun mcp install codex --write\n",
    .options = install_options,
    .run = cmd_mcp,
};

static char *own_path(struct err *e)
{
    char *path = realpath("/proc/self/exe", NULL);
    if (!path)
        err_set(e, ERR_ENV, "cannot find the path of this program");
    return path;
}

static int install(const char *host, bool write, struct err *e)
{
    autofree char *program = own_path(e), *path = NULL;
    autobuf text = buf_of(1 << 16);
    int rc = !program ? -1
             : write  ? install_write(host, program, &path, e)
                      : install_show(host, program, &text, e);
    if (rc >= 0 && write)
        printf("%s%s\n", path,
               rc ? " already starts holorun mcp" : " now starts holorun mcp; restart the host");
    else if (rc >= 0)
        fputs(text.data, stdout);
    return rc < 0 ? options_failed(e) : 0;
}

static int cmd_install(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct install_settings s = {0};
    int n = options_parse(&install_command, &s, argc, argv, &e);
    if (n >= 0 && n != 2)
        n = err_set(&e, ERR_USAGE, "mcp install needs the name of a host");
    if (n < 0)
        return options_refuse(&install_command, &e);
    return install(argv[1], s.write, &e);
}

/* ---- the server ----------------------------------------------------------------------------------- */

int host_command(const struct command *c, host_serve *serve, int argc, char **argv)
{
    struct err e = ERR_INIT, unguarded = ERR_INIT;
    struct job shell; /* only for its settings, which apply to every run */
    job_begin(&shell, version_build(), argc, argv);
    int n = options_parse(c, &shell.s, argc, argv, &e), code = 0;
    if (n > 0)
        n = err_set(&e, ERR_USAGE, "%s does not know what to do with '%s'", c->name, argv[0]);
    if (n == 0 && (shell.s.step || *shell.s.breaks))
        n = err_set(&e, ERR_USAGE, "--step and --break need a user at the terminal: use holorun step");
    if (n < 0) {
        job_close(&shell);
        return options_refuse(c, &e);
    }
    if (isatty(STDIN_FILENO))
        fprintf(stderr,
                "holorun %s: reading messages of a host program (JSON-RPC) from stdin, which is a terminal; "
                "see 'holorun %s --help'; Ctrl-D ends it\n",
                c->name, c->name);
    struct host *h = NULL;
    code = place_settle(&shell.s, &shell.desk, &e); /* this and the guard must precede the first thread */
    if (code == 0 && !shell.s.dry_run && screen_guard(&unguarded))
        warn("%s", unguarded.text);
    screen_install_signals();
    if (code == 0 && (h = host_open(&shell.s, version_build(), shell.argc, shell.argv, &e)))
        code = serve(h, HOLORUN_VERSION, &e);
    else
        code = -1;
    host_close(h);
    if (code < 0)
        code = options_failed(&e);
    job_close(&shell);
    screen_guard_end();
    return code;
}

int cmd_mcp(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "install"))
        return cmd_install(argc, argv);
    return host_command(&mcp_command, mcp_serve, argc, argv);
}
