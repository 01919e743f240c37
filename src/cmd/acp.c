/* acp.c - `holorun acp`: an agent of the Agent Client Protocol on stdin and stdout (host/acp.h). */
#include "cmd/host_command.h"

#include "host/acp.h"

const struct command acp_command = {
    .name = "acp",
    .arguments = "",
    .purpose = "be the agent of an editor (Agent Client Protocol)",
    .details =
        "Speaks version 1 of the Agent Client Protocol on stdin and stdout: Zed and other editors start it "
        "and show the plan, each step with its picture, and the rules' questions as requests for permission. "
        "Cancelling stops at once. A further prompt goes on in the same conversation; a session that is "
        "loaded goes on from its record. The options are those of holorun run and hold for every prompt.\n\n"
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
