/* acp.c - `holorun acp`: an agent of the Agent Client Protocol on stdin and stdout (host/acp.h). */
#include "cmd/host_command.h"

#include "host/acp.h"

const struct command acp_command = {
    .name = "acp",
    .arguments = "",
    .purpose = "serve as the agent of an editor (Agent Client Protocol)",
    .details =
        "Speaks version 1 of the Agent Client Protocol on stdin and stdout. Zed and other editors start it "
        "and show the plan, each step with its screenshot, and the questions of the rules as permission "
        "requests. Cancelling a prompt stops the run at once. A further prompt continues the same "
        "conversation; a loaded session continues from its record. The options are those of holorun run and "
        "apply to every prompt.\n\n"
        "  ~/.config/zed/settings.json:\n"
        "      \"agent_servers\": {\n"
        "        \"holorun\": {\"command\": \"/usr/bin/holorun\", \"args\": [\"acp\"],\n"
        "          \"env\": {\"DISPLAY\": \":0\"}}\n"
        "      }",
    .examples = "holorun acp --display :1\n",
    .options = job_options,
    .run = cmd_acp,
};

int cmd_acp(int argc, char **argv)
{
    return host_command(&acp_command, acp_serve, argc, argv);
}
